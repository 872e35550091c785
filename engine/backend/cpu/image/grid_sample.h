/* Grid sampling of images: one set of kernels per instruction set (grid_sample_taps.isa.o3.c is compiled for each), driven
 * by grid_sample.c. */
#pragma once
#include "../../args.h"

enum { GRID_LANE_BYTES = 64 };
/* The taps around the positions of a tile: tap k of position p is element place[k * tile + p] of a plane, -1 outside (which
 * counts as zero), with weight[k * tile + p]; slope[(a * taps + k) * tile + p]: the derivative of the weight by coordinate a
 * of the grid. Places are integers as wide as the elements. */
typedef struct {
    int64_t taps, tile; /* taps of a position, positions of a tile */
    void   *place, *weight, *slope;
} grid_tile;

typedef struct {
    /* positions (n, axes), x first. slopes: whether to compute them */
    void (*lay)(const lc_grid_args *a, const void *positions, int64_t n, bool slopes, grid_tile *t);
    /* out[p] = the sum over taps of weight times plane */
    void (*gather)(const grid_tile *t, void *out, const void *plane, int64_t n);
    /* plane += weight times g[p] at the taps */
    void (*scatter)(const grid_tile *t, void *plane, const void *g, int64_t n);
    /* sum (axes, tile) += g[p] times the sum over taps of slope times plane */
    void (*slope)(const grid_tile *t, int axes, void *sum, const void *plane, const void *g, int64_t n);
    /* gather and scatter of GRID_LANE_BYTES of interleaved channels at a time: out (n, lanes) from rows (elements of a
     * plane, lanes) and back. Row -1 exists too: the outside of the image. */
    void (*gather_lanes)(const grid_tile *t, void *out, const void *rows, int64_t n);
    void (*scatter_lanes)(const grid_tile *t, void *rows, const void *g, int64_t n);
} lc_grid_taps;
typedef struct {
    lc_grid_taps f32, f64;
} lc_grids;

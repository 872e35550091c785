/* Rows of an interpolation: one set of kernels per instruction set (interpolate_rows.isa.o3.c is compiled for each), driven
 * by interpolate.c. */
#pragma once
#include "../../args.h"

/* One dimension: result i is the sum of weight[j] times element index[j], for start[i] <= j < start[i + 1]. */
typedef struct {
    int64_t  n, size;    /* results, elements */
    int64_t  taps, span; /* maximum per result: number of taps, and distance from the first to the last element */
    int64_t *start, *index;
    double  *weight;
    bool     copies; /* one tap each, of weight 1 */
    bool     whole;  /* and result i is element i */
    bool     ragged; /* results have different numbers of taps */
    int      bits;   /* uint8: weights are integers with this many fractional bits; else 0 */
} interpolate_axis;

/* If 64 bytes of results of the last dimension need only elements within two vectors, those are loaded and permuted: the
 * tables of `lanes` results each. Weights have the type of the elements. */
typedef struct {
    int64_t  lanes, blocks, taps;
    int64_t *base; /* per block: the first loaded element */
    void    *place,
        *weight; /* (blocks, taps, lanes): place counts from base, int32 or int64 as wide as the element; negative: no such
                  * tap, checked only if there are more than two */
} interpolate_blocks;

typedef struct {
    const lc_interpolate_args *args;
    int64_t                    from[3], to[3], inner; /* input and output sizes */
    interpolate_axis           axis[3];
    interpolate_blocks         block; /* lanes 0: not applicable */
} interpolate_plan;

/* across: line (to[2] inner, with space for one more block) from row (from[2] inner). down: out (n) from lines and their
 * weights. */
typedef struct {
    void (*across)(const interpolate_plan *p, void *line, const void *row);
    void (*down)(void *out, const void *const *lines, const double *weights, int64_t m, int64_t n, int bits);
    int lanes; /* of permuted blocks; 0: unsupported */
} lc_interpolate_rows;
typedef struct {
    lc_interpolate_rows f32, f64, u8;
} lc_interpolates;

/* Compiled once per instruction set: see grid_sample.h.
 *
 * A tile of positions gets its tap table once, for all channels: places and weights, tap by tap, so that the loops over
 * channels only load, multiply and add. They are bound by random reads: a plane should stay in the cache while a tile of
 * positions goes over it, so tiles are as large as their own tables allow. Loads are scalar; gather instructions measured no
 * faster.
 *
 * If a plane is small enough, as many channels as a cache line holds are interleaved first (grid_sample.c): then a tap is
 * one load for all of them. The order of the sums is the same. */
#include "grid_sample.h"
#include "../kernels.h"
#include <math.h>
#include <string.h>

#define T       float
#define I       int32_t
#define FLOOR   floorf
#define RINT    rintf
#define FMOD    fmodf
#define NAME(f) f##_f32
#include "grid_sample_taps.inc.c"
#define T       double
#define I       int64_t
#define FLOOR   floor
#define RINT    rint
#define FMOD    fmod
#define NAME(f) f##_f64
#include "grid_sample_taps.inc.c"

const lc_grids CAT(lc_cpu_grids,
                   LC_ISA) = { { lay_f32, gather_f32, scatter_f32, slope_f32, gather_lanes_f32, scatter_lanes_f32 },
                               { lay_f64, gather_f64, scatter_f64, slope_f64, gather_lanes_f64, scatter_lanes_f64 } };

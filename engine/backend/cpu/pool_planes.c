/* Compiled once per instruction set: see pool.h.
 *
 * A window is folded in two steps. Down: the rows it covers are folded into one line, whole rows at a time, in vectors. Across: the line is
 * folded at each output column; neighbouring outputs are computed together. So a 3 x 3 window costs 2 + 2 operations per element, not 8, and
 * the line stays in L1. The line has the padding around it, filled once with what changes nothing, so that no window needs clipping.
 *
 * With indices a window is walked in row-major order, since of equal values the first one counts, and of NaNs the last. */
#include "pool.h"
#include "kernels.h"
#include <math.h>
#include <string.h>

#define LARGER(a, b)         ((b) > (a) || (b) != (b) ? (b) : (a)) /* NaN wins */
#define LARGER_INTEGER(a, b) ((b) > (a) ? (b) : (a))
#define PLUS(a, b)           ((a) + (b))

#define T         float
#define I         int32_t
#define LEAST     (-INFINITY)
#define IS_NAN(v) ((v) != (v))
#define MAX(a, b) LARGER(a, b)
#define NAME(f)   f##_f32
#include "pool_planes.inc.c"
#define T         double
#define I         int64_t
#define LEAST     (-INFINITY)
#define IS_NAN(v) ((v) != (v))
#define MAX(a, b) LARGER(a, b)
#define NAME(f)   f##_f64
#include "pool_planes.inc.c"
#define T         int64_t
#define I         int64_t
#define LEAST     INT64_MIN
#define IS_NAN(v) false
#define MAX(a, b) LARGER_INTEGER(a, b)
#define NAME(f)   f##_i64
#include "pool_planes.inc.c"

#define PLANES(type)                                                                                                           \
    {                                                                                                                          \
        max_planes_##type, index_planes_##type, average_planes_##type, spread_planes_##type                                    \
    }
const lc_pools CAT(lc_cpu_pools, LC_ISA) = { PLANES(f32), PLANES(f64), PLANES(i64) };

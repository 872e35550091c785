/* Compiled once per instruction set: see pool.h.
 *
 * A window is folded in two steps. Down: the rows it covers are folded into one line, whole rows at a time, in vectors.
 * Across: the line is folded at each output column; neighbouring outputs are computed together. So a 3 x 3 window costs 2 +
 * 2 operations per element, not 8, and the line stays in L1. The line includes the padding, filled once with the neutral
 * element, so that no window needs clipping.
 *
 * With indices a window is walked in row-major order, since the first of equal values counts, and the last NaN. */
#include "pool.h"
#include "../kernels.h"
#include <math.h>
#include <string.h>

#if defined __AVX512F__
enum { LAST_BYTES = 64 };
#elif defined __AVX2__
enum { LAST_BYTES = 32 };
#else
enum { LAST_BYTES = 16 };
#endif

#define LARGER(a, b)         ((b) > (a) || (b) != (b) ? (b) : (a)) /* NaN wins */
#define LARGER_INTEGER(a, b) ((b) > (a) ? (b) : (a))
#define PLUS(a, b)           ((a) + (b))

/* Every second element of two vectors, and the inverse. */
#define UNZIP8(a, b, at) __builtin_shufflevector(a, b, at, at + 2, at + 4, at + 6, at + 8, at + 10, at + 12, at + 14)
#define ZIP8(a, b, at)   __builtin_shufflevector(a, b, at, at + 8, at + 1, at + 9, at + 2, at + 10, at + 3, at + 11)
#define UNZIP4(a, b, at) __builtin_shufflevector(a, b, at, at + 2, at + 4, at + 6)
#define ZIP4(a, b, at)   __builtin_shufflevector(a, b, at, at + 4, at + 1, at + 5)
#define UNZIP2(a, b, at) __builtin_shufflevector(a, b, at, at + 2)
#define ZIP2(a, b, at)   __builtin_shufflevector(a, b, at, at + 2)

#define T            float
#define I            int32_t
#define LEAST        (-INFINITY)
#define IS_NAN(v)    ((v) != (v))
#define MAX(a, b)    LARGER(a, b)
#define NAME(f)      f##_f32
#define HAS_GRADIENT 1
#include "pool_planes.inc.c"
#define T            double
#define I            int64_t
#define LEAST        (-INFINITY)
#define IS_NAN(v)    ((v) != (v))
#define MAX(a, b)    LARGER(a, b)
#define NAME(f)      f##_f64
#define HAS_GRADIENT 1
#include "pool_planes.inc.c"
#define T            int64_t
#define I            int64_t
#define LEAST        INT64_MIN
#define IS_NAN(v)    false
#define MAX(a, b)    LARGER_INTEGER(a, b)
#define NAME(f)      f##_i64
#define HAS_GRADIENT 0
#include "pool_planes.inc.c"

#define PLANES(type, gradient, paired)                                                                                         \
    {                                                                                                                          \
        max_planes_##type, index_planes_##type, average_planes_##type, average_backward_planes_##type, gradient, paired        \
    }
const lc_pools CAT(lc_cpu_pools, LC_ISA) = { PLANES(f32, gradient_planes_f32, pair_planes_f32),
                                             PLANES(f64, gradient_planes_f64, pair_planes_f64), PLANES(i64, NULL, NULL),
                                             last_row_f32, last_row_f64 };

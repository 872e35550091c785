/* Folds: the inner loops of reductions. Compiled once per instruction set, like loops.c.
 *
 * Sums. Eight rows are added in the element's own type, then go to an accumulator of twice the precision (float32) or with
 * its rounding errors kept beside it (float64): more exact than pairwise summation at the speed of memory. A contiguous row is folded as
 * a fixed number of lanes that are added up at the end; it does not depend on the instruction set, so neither do results. */
#include "kernels.h"
#include "scalar_math.h"
#include <string.h>
#pragma GCC diagnostic ignored "-Wtautological-compare" /* x != x of an integer: written for all dtypes */

/* From L3, half a line at a time comes a tenth faster than whole lines: measured. */
#if defined(__AVX512F__) && !defined(__clang__)
#pragma GCC target("prefer-vector-width=256")
#endif

#define CAT_(a, b) a##_##b
#define CAT(a, b)  CAT_(a, b)
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
#define INLINE static inline __attribute__((always_inline, unused))

#ifndef __AVX512F__ /* integers gain nothing from the widest vectors */
#define T           lc_b8
#define SFX         b8
#define CELL        uint8_t
#define ACC         int64_t
#define PART        int32_t
#define PROD        int64_t
#define UPROD       uint64_t
#define COMPENSATED 0
#define FLOATING    0
#define COMPLEX     0
#define LOWEST      0
#define HIGHEST     1
#include "folds.inc.c"
#define T           lc_u8
#define SFX         u8
#define ACC         int64_t
#define PART        int32_t
#define PROD        int64_t
#define UPROD       uint64_t
#define COMPENSATED 0
#define FLOATING    0
#define COMPLEX     0
#define LOWEST      0
#define HIGHEST     UINT8_MAX
#include "folds.inc.c"
#define T           lc_i8
#define SFX         i8
#define ACC         int64_t
#define PART        int32_t
#define PROD        int64_t
#define UPROD       uint64_t
#define COMPENSATED 0
#define FLOATING    0
#define COMPLEX     0
#define LOWEST      INT8_MIN
#define HIGHEST     INT8_MAX
#include "folds.inc.c"
#define T           lc_i16
#define SFX         i16
#define ACC         int64_t
#define PART        int32_t
#define PROD        int64_t
#define UPROD       uint64_t
#define COMPENSATED 0
#define FLOATING    0
#define COMPLEX     0
#define LOWEST      INT16_MIN
#define HIGHEST     INT16_MAX
#include "folds.inc.c"
#define T           lc_i32
#define SFX         i32
#define ACC         int64_t
#define PART        int64_t
#define PROD        int64_t
#define UPROD       uint64_t
#define COMPENSATED 0
#define FLOATING    0
#define COMPLEX     0
#define LOWEST      INT32_MIN
#define HIGHEST     INT32_MAX
#include "folds.inc.c"
#define T           lc_i64
#define SFX         i64
#define ACC         int64_t
#define PART        int64_t
#define PROD        int64_t
#define UPROD       uint64_t
#define COMPENSATED 0
#define FLOATING    0
#define COMPLEX     0
#define LOWEST      INT64_MIN
#define HIGHEST     INT64_MAX
#include "folds.inc.c"
#endif
#define T           lc_f32
#define SFX         f32
#define ACC         double
#define PART        float
#define PROD        double
#define UPROD       double
#define COMPENSATED 0
#define FLOATING    1
#define COMPLEX     0
#define LOWEST      -INFINITY
#define HIGHEST     INFINITY
#include "folds.inc.c"
#define T           lc_f64
#define SFX         f64
#define ACC         double
#define PART        double
#define PROD        double
#define UPROD       double
#define COMPENSATED 1
#define FLOATING    1
#define COMPLEX     0
#define LOWEST      -INFINITY
#define HIGHEST     INFINITY
#include "folds.inc.c"
#define T       lc_c64
#define SFX     c64
#define PROD    lc_c128
#define UPROD   lc_c128
#define COMPLEX 1
#include "folds.inc.c"
#define T       lc_c128
#define SFX     c128
#define PROD    lc_c128
#define UPROD   lc_c128
#define COMPLEX 1
#include "folds.inc.c"

/* Sums of complex numbers are sums of their parts. */
#define COMPLEX_SUM(dt, real, R)                                                                                               \
    static SMALL void sum_start_##dt(lc_fold_state *s, int64_t n) { sum_start_##real(s, 2 * n); }                              \
    static void       sum_inner_##dt(lc_fold_state *s, const void *in, int64_t n, UNUSED int64_t first)                        \
    {                                                                                                                          \
        sum_lanes_##real(s, in, 2 * n, 2);                                                                                     \
    }                                                                                                                          \
    static void sum_outer_##dt(lc_fold_state *s, const void *in, int64_t rows, int64_t row_bytes, int64_t n, int64_t first)    \
    {                                                                                                                          \
        sum_outer_##real(s, in, rows, row_bytes, 2 * n, first);                                                                \
    }                                                                                                                          \
    static SMALL void sum_merge_##dt(lc_fold_state *to, const lc_fold_state *from, int64_t n)                                  \
    {                                                                                                                          \
        sum_merge_##real(to, from, 2 * n);                                                                                     \
    }                                                                                                                          \
    static SMALL void sum_finish_##dt(const lc_fold_state *s, int64_t n, double parameter, void *value, int64_t *index)        \
    {                                                                                                                          \
        sum_finish_##real(s, 2 * n, parameter, value, index);                                                                  \
    }                                                                                                                          \
    static SMALL void mean_finish_##dt(const lc_fold_state *s, int64_t n, double parameter, void *value, int64_t *index)       \
    {                                                                                                                          \
        mean_finish_##real(s, 2 * n, parameter, value, index);                                                                 \
    }                                                                                                                          \
    static const lc_fold sum_##dt = { sum_start_##dt, sum_inner_##dt, sum_outer_##dt, sum_merge_##dt, sum_finish_##dt },       \
                         mean_##dt = { sum_start_##dt, sum_inner_##dt, sum_outer_##dt, sum_merge_##dt, mean_finish_##dt };
COMPLEX_SUM(c64, f32, float)
COMPLEX_SUM(c128, f64, double)

#define T   float
#define SFX f32
#include "fold_var.inc.c"
#define T   double
#define SFX f64
#include "fold_var.inc.c"

#define FOLDS(op, dt) { FOLD_##op, LC_##dt, &op##_##dt },
#ifdef __AVX512F__
#define EACH_ordered LC_EACH_floating
#define EACH_any     LC_EACH_inexact
#else
#define EACH_ordered LC_EACH_ordered
#define EACH_any     LC_EACH_any
#endif
#define ALIAS(op, dt) { FOLD_arg##op, LC_##dt, &op##_dim_##dt },
const lc_fold_entry CAT(lc_cpu_folds, LC_ISA)[] = {
    EACH_any(FOLDS, sum) LC_EACH_inexact(FOLDS, mean) EACH_any(FOLDS, prod) EACH_ordered(FOLDS, amax) EACH_ordered(FOLDS, amin)
        EACH_ordered(FOLDS, max_dim) EACH_ordered(FOLDS, min_dim) EACH_ordered(ALIAS, max) EACH_ordered(ALIAS, min)
            EACH_any(FOLDS, any) EACH_any(FOLDS, all) LC_EACH_floating(FOLDS, var) LC_EACH_floating(FOLDS, std){ 0 }
};

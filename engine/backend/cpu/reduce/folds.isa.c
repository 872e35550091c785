/* Folds: the inner loops of reductions. Compiled once per instruction set, like loops.isa.c.
 *
 * Sums. Eight rows are added in the element's own type, then go to an accumulator of twice the precision (float32) or with
 * compensated summation (float64): more exact than pairwise summation at the speed of memory. A contiguous row is folded as
 * a fixed number of lanes that are added at the end; the number does not depend on the instruction set, so neither do
 * results. */
#include "../kernels.h"
#include "../math/scalar_math.h"
#include <string.h>
#ifdef __F16C__
#include <immintrin.h>
#endif
#pragma GCC diagnostic ignored "-Wtautological-compare" /* x != x for integers: the code serves all dtypes */

/* From L3, half a line at a time is a tenth faster than whole lines: measured. */
#if defined(__AVX512F__) && !defined(__clang__)
#pragma GCC target("prefer-vector-width=256")
#endif

/* Traits of an element type T = lc_<name> for the folds:
 *                     sums     eight of them  products   kind      lowest     highest */
#define TRAITS_b8                  int64_t, int32_t, uint64_t, INTEGER, 0, 1
#define TRAITS_u8                  int64_t, int32_t, uint64_t, INTEGER, 0, UINT8_MAX
#define TRAITS_i8                  int64_t, int32_t, uint64_t, INTEGER, INT8_MIN, INT8_MAX
#define TRAITS_i16                 int64_t, int32_t, uint64_t, INTEGER, INT16_MIN, INT16_MAX
#define TRAITS_i32                 int64_t, int64_t, uint64_t, INTEGER, INT32_MIN, INT32_MAX
#define TRAITS_i64                 int64_t, int64_t, uint64_t, INTEGER, INT64_MIN, INT64_MAX
#define TRAITS_f32                 double, float, double, FLOATING, -INFINITY, INFINITY
#define TRAITS_f16                 double, float, double, FLOATING, -INFINITY, INFINITY /* half precision: sums only */
#define TRAITS_bf16                TRAITS_f16
#define TRAITS_f64                 double, double, double, FLOATING, -INFINITY, INFINITY
#define TRAITS_c64                 lc_c128, lc_c64, lc_c128, COMPLEX, 0, 0
#define TRAITS_c128                lc_c128, lc_c128, lc_c128, COMPLEX, 0, 0
#define INTEGER                    0
#define FLOATING                   1
#define COMPLEX                    2
#define PICK_1(a, ...)             a
#define PICK_2(a, b, ...)          b
#define PICK_3(a, b, c, ...)       c
#define PICK_4(a, b, c, d, ...)    d
#define PICK_5(a, b, c, d, e, ...) e
#define PICK_6(a, b, c, d, e, f)   f
#define TRAIT_OF(k, ...)           PICK_##k(__VA_ARGS__)
#define TRAIT(k)                   TRAIT_OF(k, CAT(TRAITS, SFX))
#define T                          CAT(lc, SFX)
#define CELL                       CAT(cell, SFX)
#define SUM                        TRAIT(1)
#define PART                       TRAIT(2)
#define PRODUCT                    TRAIT(3)
#define KIND                       TRAIT(4)
#define LOWEST                     TRAIT(5)
#define HIGHEST                    TRAIT(6)
/* Elements of a row of lanes: a few cache lines. Rows that are read in the order of memory need no prefetching. */
#define LANES_OF(bytes) ((int)((bytes) / sizeof(T)))

/* The element type of vectors: T, unless there can be none of it. */
#define CELL_TYPE(op, dt) typedef lc_##dt cell_##dt;
LC_EACH_real(CELL_TYPE, ) typedef uint8_t cell_b8;
typedef uint16_t cell_f16, cell_bf16;

#ifndef __AVX512F__ /* integers gain nothing from the widest vectors */
#define SFX b8
#include "folds.inc.c"
#define SFX u8
#include "folds.inc.c"
#define SFX i8
#include "folds.inc.c"
#define SFX i16
#include "folds.inc.c"
#define SFX i32
#include "folds.inc.c"
#define SFX i64
#include "folds.inc.c"
#endif
#define SFX f32
#include "folds.inc.c"
#define SFX f64
#include "folds.inc.c"
#define SFX c64
#include "folds.inc.c"
#define SFX c128
#include "folds.inc.c"

#ifdef __F16C__ /* elsewhere they pass through tiles of float32 */
#define EIGHT(p)    _mm_loadu_si128((const __m128i *)(p))
#define SFX         f16
#define LOAD(x)     _cvtsh_ss(x)
#define EIGHT_AT(p) ((sum_parts_f16)_mm256_cvtph_ps(EIGHT(p)))
#include "fold_half.inc.c"
#define SFX         bf16
#define LOAD(x)     lc_bf16_to_f32(x)
#define EIGHT_AT(p) ((sum_parts_bf16)_mm256_slli_epi32(_mm256_cvtepu16_epi32(EIGHT(p)), 16))
/* Elements at even positions and those at odd ones: a shift or a mask each. */
#define SIXTEEN(p)   _mm256_loadu_si256((const __m256i *)(p))
#define FIRST_AT(p)  ((sum_parts_bf16)_mm256_slli_epi32(SIXTEEN(p), 16))
#define SECOND_AT(p) ((sum_parts_bf16)_mm256_and_si256(SIXTEEN(p), _mm256_set1_epi32((int)0xffff0000)))
#include "fold_half.inc.c"
#define HALF_DTYPES(X, op) X(op, f16) X(op, bf16)
#else
#define HALF_DTYPES(X, op)
#endif

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
    static SMALL void sum_finish_##dt(const lc_fold_state *s, int64_t n, double parameter, void *value, void *index)           \
    {                                                                                                                          \
        sum_finish_##real(s, 2 * n, parameter, value, index);                                                                  \
    }                                                                                                                          \
    static SMALL void mean_finish_##dt(const lc_fold_state *s, int64_t n, double parameter, void *value, void *index)          \
    {                                                                                                                          \
        mean_finish_##real(s, 2 * n, parameter, value, index);                                                                 \
    }                                                                                                                          \
    static const lc_fold sum_##dt = { sum_start_##dt, sum_inner_##dt, sum_outer_##dt, sum_merge_##dt, sum_finish_##dt, NULL }, \
                         mean_##dt = {                                                                                         \
                             sum_start_##dt, sum_inner_##dt, sum_outer_##dt, sum_merge_##dt, mean_finish_##dt, NULL            \
                         };
COMPLEX_SUM(c64, f32, float)
COMPLEX_SUM(c128, f64, double)

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
    HALF_DTYPES(FOLDS, sum) HALF_DTYPES(FOLDS, mean) EACH_any(FOLDS, sum) LC_EACH_inexact(FOLDS, mean) EACH_any(FOLDS, prod)
        EACH_ordered(FOLDS, amax) EACH_ordered(FOLDS, amin) EACH_ordered(FOLDS, aminmax) EACH_ordered(FOLDS, max_dim)
            EACH_ordered(FOLDS, min_dim) EACH_ordered(ALIAS, max) EACH_ordered(ALIAS, min) EACH_any(FOLDS, any)
                EACH_any(FOLDS, all) LC_EACH_floating(FOLDS, var) LC_EACH_floating(FOLDS, std) EACH_any(FOLDS, count_nonzero)
                    LC_EACH_floating(FOLDS, nansum) LC_EACH_floating(FOLDS, norm_one) LC_EACH_floating(FOLDS, norm_two)
                        LC_EACH_floating(FOLDS, norm_max) LC_EACH_floating(FOLDS, norm_min) LC_EACH_floating(FOLDS, _logsumexp)
                            LC_EACH_floating(FOLDS, _count_numbers){ 0 }
};

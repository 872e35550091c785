/* The kernels of matrix products. Compiled once per instruction set; gemm_serial.c and matmul.c choose among them and block
 * the work.
 *
 *   micro     on packed panels: the register block of sums is two vectors wide, so that per step of k all but two of the
 *   operands
 *             are broadcasts folded into the multiplications. Large products spend their time here.
 *   in_place  on rows of b in place: no packing, so small products and those of few rows pay only for their multiplications
 *   by_dots   rows of a and columns of b are contiguous, and there are too few rows to pay for transposing b
 *
 * Sums are fused multiply-adds where the machine has them: a matrix product is not compared bit for bit with anything, and
 * they are half of its speed. In all kernels but by_dots, an element is one chain of them in the order of k, so its value
 * does not depend on the tile. */
#include "gemm.h"
#include <string.h>
#ifdef __clang__
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("fp-contract=fast")
#endif

/* Vectors of which only the first elements exist. */
#if defined __AVX512F__
#include <immintrin.h>
enum { VECTOR_BYTES = 64, ROWS = 14, TILE_ROWS = 8, TILE_WIDE = 3, DOT_ROWS = 4, DOT_COLUMNS = 4, TRANSPOSES = 1 };
#define EACH_TILE(X) X(8, 1) X(8, 2) X(8, 3) X(4, 1) X(4, 2) X(4, 3)
typedef __mmask16 part_f32;
typedef __mmask8  part_f64;
#define COUNT_OF(part)     __builtin_popcount(part)
#define IS_WHOLE_f32(part) false /* a mask costs nothing */
#define IS_WHOLE_f64(part) false
INLINE part_f32 part_of_f32(int64_t n) { return (part_f32)((1u << n) - 1); }
INLINE part_f64 part_of_f64(int64_t n) { return (part_f64)((1u << n) - 1); }
INLINE __m512   load_part_f32(const float *p, part_f32 n) { return _mm512_maskz_loadu_ps(n, p); }
INLINE __m512d  load_part_f64(const double *p, part_f64 n) { return _mm512_maskz_loadu_pd(n, p); }
INLINE void     store_part_f32(float *p, __m512 x, part_f32 n) { _mm512_mask_storeu_ps(p, n, x); }
INLINE void     store_part_f64(double *p, __m512d x, part_f64 n) { _mm512_mask_storeu_pd(p, n, x); }
#define ZIP_f32(a, b, from)                                                                                                    \
    __builtin_shufflevector(a, b, from, from + 16, from + 1, from + 17, from + 2, from + 18, from + 3, from + 19, from + 4,    \
                            from + 20, from + 5, from + 21, from + 6, from + 22, from + 7, from + 23)
#define ZIP_f64(a, b, from)                                                                                                    \
    __builtin_shufflevector(a, b, from, from + 8, from + 1, from + 9, from + 2, from + 10, from + 3, from + 11)
#elif defined __AVX2__
#include <immintrin.h>
enum { VECTOR_BYTES = 32, ROWS = 6, TILE_ROWS = 6, TILE_WIDE = 2, DOT_ROWS = 4, DOT_COLUMNS = 2, TRANSPOSES = 0 };
#define EACH_TILE(X)       X(6, 1) X(6, 2) X(3, 1) X(3, 2)
typedef __m256i part_f32;
typedef __m256i part_f64;
INLINE part_f32 part_of_f32(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE part_f64 part_of_f64(int64_t n) { return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3)); }
INLINE __m256   load_part_f32(const float *p, part_f32 n) { return _mm256_maskload_ps(p, n); }
INLINE __m256d  load_part_f64(const double *p, part_f64 n) { return _mm256_maskload_pd(p, n); }
#define IS_WHOLE_f32(part) (_mm256_movemask_ps((__m256)(part)) == 0xff)
#define IS_WHOLE_f64(part) (_mm256_movemask_pd((__m256d)(part)) == 0xf)
/* Without maskstore, which takes as long as twenty stores on some machines. */
INLINE void store_part_f32(float *p, __m256 x, part_f32 n)
{
    int    count = __builtin_popcount((unsigned)_mm256_movemask_ps((__m256)n));
    __m128 rest = _mm256_castps256_ps128(x);
    if (count == 8) {
        _mm256_storeu_ps(p, x);
        return;
    }
    if (count & 4) _mm_storeu_ps(p, rest), p += 4, rest = _mm256_extractf128_ps(x, 1);
    if (count & 2) _mm_storel_pi((__m64 *)p, rest), p += 2, rest = _mm_movehl_ps(rest, rest);
    if (count & 1) _mm_store_ss(p, rest);
}
INLINE void store_part_f64(double *p, __m256d x, part_f64 n)
{
    int     count = __builtin_popcount((unsigned)_mm256_movemask_pd((__m256d)n));
    __m128d rest = _mm256_castpd256_pd128(x);
    if (count == 4) {
        _mm256_storeu_pd(p, x);
        return;
    }
    if (count & 2) _mm_storeu_pd(p, rest), p += 2, rest = _mm256_extractf128_pd(x, 1);
    if (count & 1) _mm_store_sd(p, rest);
}
#define ZIP_f32(a, b, from)                                                                                                    \
    __builtin_shufflevector(a, b, from, from + 8, from + 1, from + 9, from + 2, from + 10, from + 3, from + 11)
#define ZIP_f64(a, b, from) __builtin_shufflevector(a, b, from, from + 4, from + 1, from + 5)
#else
enum { VECTOR_BYTES = 16, ROWS = 4, TILE_ROWS = 4, TILE_WIDE = 2, DOT_ROWS = 4, DOT_COLUMNS = 2, TRANSPOSES = 0 };
#define EACH_TILE(X) X(4, 1) X(4, 2) X(2, 1) X(2, 2)
#define PART(T, sfx, LANES)                                                                                                    \
    typedef int64_t part_##sfx;                                                                                                \
    typedef T       some_##sfx __attribute__((vector_size(16)));                                                               \
    INLINE part_##sfx part_of_##sfx(int64_t n) { return n; }                                                                   \
    INLINE some_##sfx load_part_##sfx(const T *p, int64_t n)                                                                   \
    {                                                                                                                          \
        some_##sfx x = { 0 };                                                                                                  \
        if (n == LANES) return memcpy(&x, p, sizeof x), x;                                                                     \
        for (int i = 0; i < LANES; i++)                                                                                        \
            if (i < n) x[i] = p[i];                                                                                            \
        return x;                                                                                                              \
    }                                                                                                                          \
    INLINE void store_part_##sfx(T *p, some_##sfx x, int64_t n)                                                                \
    {                                                                                                                          \
        for (int i = 0; i < LANES; i++)                                                                                        \
            if (i < n) p[i] = x[i];                                                                                            \
    }
#define IS_WHOLE_f32(part)  ((part) == 4)
#define IS_WHOLE_f64(part)  ((part) == 2)
PART(float, f32, 4)
PART(double, f64, 2)
#define ZIP_f32(a, b, from) __builtin_shufflevector(a, b, from, from + 4, from + 1, from + 5)
#define ZIP_f64(a, b, from) __builtin_shufflevector(a, b, from, from + 2)
#endif

#define T       float
#define NAME(x) x##_f32
#include "gemm.inc.c"
#define T       double
#define NAME(x) x##_f64
#include "gemm.inc.c"

#define KERNELS(sfx)                                                                                                           \
    .sfx = { .rows = ROWS,                                                                                                     \
             .columns = COLUMNS_##sfx,                                                                                         \
             .strip = TILE_WIDE * LANES_##sfx,                                                                                 \
             .run = micro_##sfx,                                                                                               \
             .run_into = micro_into_##sfx,                                                                                     \
             .pack = pack_##sfx,                                                                                               \
             .dot = dot_##sfx,                                                                                                 \
             .in_place = in_place_##sfx,                                                                                       \
             .in_place_more = in_place_more_##sfx,                                                                             \
             .transposes = TRANSPOSES,                                                                                         \
             .by_dots = by_dots_##sfx,                                                                                         \
             .finish_row = finish_row_##sfx }
const lc_gemm CAT(lc_cpu_gemm, LC_ISA) = { KERNELS(f32), KERNELS(f64) };

/* Compiled once per instruction set: attention by tiles of ATTENTION_ROWS queries by ATTENTION_KEYS keys, so that no matrix
 * of all queries by all keys ever exists.
 *
 * Bound: multiply-adds, e + ev of them per query and key (and one exponential); backward 3 e + 2 ev. So everything is
 * arranged for one micro-kernel that multiplies without packing: it broadcasts single elements of a, at any strides, and
 * reads row vectors of b and of the result. Products are chosen so that only small tiles that are reused often have to be
 * transposed:
 *   forward, transposed (a column is a query):  S' = K Q', with Q' transposed once per tile of queries; O' = V' P', summed
 *                                               over keys
 *   backward (a row is a query):                S = Q K', dP = dO V', with K' and V' transposed once per tile of keys;
 *                                               dV += P' dO, dK += dS' Q, dQ += dS K
 * In the forward form maxima, exponentials and sums run down columns: no horizontal reductions. One query or two, as in
 * decoding, would leave the columns empty: those are computed row by row.
 *
 * The scale is multiplied into the transposed operand. Exponentials are powers of two of differences times log2(e): the
 * subtraction comes first, because large logits would lose it. A tile of queries keeps its maximum and its sum of powers;
 * earlier sums are rescaled when the maximum grows (in the micro-kernel, as it reads the result). logsumexp is +infinity for
 * a query that sees no key, which makes all its probabilities 0 in both directions, as in PyTorch.
 *
 * Tiles beyond the causal diagonal are never computed, and those across it in quarters. The operands of the next product are
 * prefetched into L2 during the current one, the first time a head's rows are read or written: misses were 6 % of the time.
 * float16 and bfloat16 are converted a tile at a time. Sums are fused where the machine can. */
#include "attention.h"
#include "../matmul/small_gemm.h"
#include "../math/scalar_math.h"
#include <math.h>
#include <string.h>

enum { ROWS = ATTENTION_ROWS, KEYS = ATTENTION_KEYS };
#define LOG2E 1.44269504088896340736
/* 2^x for x at most 0 up to rounding; underflow flushes to zero. NaN stays. */
MATH float power_f32(float x)
{
    float   c = x < -126.f ? -126.f : x, t = c + ROUND32, r = c - (t - ROUND32);
    int32_t n = (int32_t)(bits32(t) - bits32(ROUND32));
    float   p = POLY32(r, 1.5461447462840905e-4f, 1.3390867351352324e-3f, 9.618056669886457e-3f, 5.550357104253082e-2f,
                       2.4022650922342736e-1f, 6.931471880293425e-1f);
    p = (p * r + 1.f) * POWER32(n);
    return x < -126.f ? 0.f : p;
}
MATH double power_f64(double x)
{
    double  c = x < -1022. ? -1022. : x, t = c + ROUND64, r = c - (t - ROUND64);
    int64_t n = (int64_t)(bits64(t) - bits64(ROUND64));
    double  p = POLY64(r, 4.410786161235724e-10, 7.072723678302689e-09, 1.0178389785225824e-07, 1.3215439686127868e-06,
                       1.5252732923041498e-05, 1.5403530450696214e-04, 1.3333558147520335e-03, 9.618129107600407e-03,
                       5.550410866481633e-02, 2.402265069591009e-01, 6.931471805599454e-01);
    p = (p * r + 1.) * POWER64(n);
    return x < -1022. ? 0. : p;
}

/* The same for a vector, where scaling by a power of two is one instruction, which also flushes underflow to zero. */
#ifdef __AVX512F__
#include <immintrin.h>
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
/* e^x: the nearest 32nd of x log2(e) from a table, the rest by two terms: 6 instructions of the multiplier ports. */
static const float _Alignas(64) powers_32[32] = {
    1.f,         1.02189715f, 1.04427378f, 1.0671404f,  1.09050773f, 1.11438674f, 1.13878863f, 1.16372486f,
    1.18920712f, 1.21524736f, 1.24185781f, 1.26905096f, 1.29683955f, 1.32523664f, 1.35425555f, 1.38390988f,
    1.41421356f, 1.44518081f, 1.47682615f, 1.50916443f, 1.54221083f, 1.57598085f, 1.61049033f, 1.64575548f,
    1.68179283f, 1.7186193f,  1.75625216f, 1.79470908f, 1.83400809f, 1.87416763f, 1.91520656f, 1.95714412f,
};
INLINE __m512 exponentials_f32(__m512 x)
{
    const __m512 low = _mm512_load_ps(powers_32), high = _mm512_load_ps(powers_32 + 16), size = _mm512_set1_ps(0x1.8p18f),
                 log2e = _mm512_set1_ps((float)LOG2E);
    x = _mm512_max_ps(_mm512_set1_ps(-150.f), x); /* NaN stays */
    __m512 t = _mm512_fmadd_ps(x, log2e, size), n = _mm512_sub_ps(t, size), r = _mm512_fmsub_ps(x, log2e, n);
    __m512 p = _mm512_permutex2var_ps(low, _mm512_castps_si512(t), high);
    r = r * (r * 0.240228855f + 0.693157344f);
    return _mm512_scalef_ps(p * r + p, n); /* times 2 to the integer part of n */
}
INLINE __m512d powers_f64(__m512d x)
{
    x = _mm512_max_pd(_mm512_set1_pd(-1200.), x);
    __m512d n = _mm512_roundscale_pd(x, 0), r = x - n;
    __m512d p = HORNER_11(MULTIPLY_ADD, r, 4.410786161235724e-10, 7.072723678302689e-09, 1.0178389785225824e-07,
                          1.3215439686127868e-06, 1.5252732923041498e-05, 1.5403530450696214e-04, 1.3333558147520335e-03,
                          9.618129107600407e-03, 5.550410866481633e-02, 2.402265069591009e-01, 6.931471805599454e-01);
    return _mm512_scalef_pd(p * r + 1., n);
}
INLINE __m512d exponentials_f64(__m512d x) { return powers_f64(x * LOG2E); }
INLINE __m512  higher_f32(__m512 x, __m512 y) { return _mm512_max_ps(x, y); } /* y if x is NaN */
INLINE __m512d higher_f64(__m512d x, __m512d y) { return _mm512_max_pd(x, y); }
INLINE __m512  finite_f32(__m512 x) /* -infinity becomes 0 */
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(-INFINITY), _CMP_NEQ_UQ), x);
}
INLINE __m512d finite_f64(__m512d x)
{
    return _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(x, _mm512_set1_pd(-INFINITY), _CMP_NEQ_UQ), x);
}
#endif

#define T       float
#define DTYPE   LC_f32
#define POWER   power_f32
#define NAME(f) f##_f32
#include "attention_tiles.inc.c"
#define T       double
#define DTYPE   LC_f64
#define POWER   power_f64
#define NAME(f) f##_f64
#include "attention_tiles.inc.c"

#define TABLE_OF(isa) lc_cpu_attention_##isa
#define TABLE(isa)    TABLE_OF(isa)
const lc_attention TABLE(LC_ISA) = { { attend_rows_f32, gradient_sums_f32, gradient_keys_f32 },
                                     { attend_rows_f64, gradient_sums_f64, gradient_keys_f64 } };

/* Compiled once per instruction set: see quantized.h. A vector of codes is widened to float and multiplied with the rows of x;
 * a group's sum is scaled as a vector, and lanes are added up once at the end. */
#include "quantized.h"
#include "../kernels.h"
#include <string.h>
#ifdef __clang__
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("fp-contract=fast")
#endif

/* Vectors of codes in memory as floats. The compiler widens signed bytes one by one, hence the instructions by name. */
#if defined __AVX512F__
#include <immintrin.h>
#define LANES        16
#define SIGNED(p)    ((floats)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(p)))))
#define LOW_HALF(p)  ((floats)_mm512_cvtepi32_ps(_mm512_and_si512(BYTES(p), _mm512_set1_epi32(15))))
#define HIGH_HALF(p) ((floats)_mm512_cvtepi32_ps(_mm512_srli_epi32(BYTES(p), 4)))
#define BYTES(p)     _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(p)))
#elif defined __AVX2__
#include <immintrin.h>
#define LANES        8
#define SIGNED(p)    ((floats)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p)))))
#define LOW_HALF(p)  ((floats)_mm256_cvtepi32_ps(_mm256_and_si256(BYTES(p), _mm256_set1_epi32(15))))
#define HIGH_HALF(p) ((floats)_mm256_cvtepi32_ps(_mm256_srli_epi32(BYTES(p), 4)))
#define BYTES(p)     _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p)))
#else
#define LANES        4
#define EACH(f, p)   ((floats){ f((p)[0]), f((p)[1]), f((p)[2]), f((p)[3]) })
#define LOW(c)       (float)((c)&15)
#define HIGH(c)      (float)((c) >> 4)
#define SIGNED(p)    EACH((float), p)
#define LOW_HALF(p)  EACH(LOW, p)
#define HIGH_HALF(p) EACH(HIGH, p)
#endif
enum { HALF_BLOCK = 16 }; /* codes of int4 whose bytes lie beside each other */
typedef float floats __attribute__((vector_size(LANES * sizeof(float))));
typedef float anywhere __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
#define AT(x) (*(const anywhere *)(x))
#define TOTAL(v, s)                                                                                                            \
    for (int lane = 0; lane < LANES; lane++) s += (v)[lane]

INLINE void dot_int8(float *out, int64_t out_step, const float *x, const int8_t *codes, const float *scales, float bias,
                     int64_t k, int64_t group, int rows)
{
    floats sum[QUANTIZED_ROWS] = { { 0 } };
    float  rest[QUANTIZED_ROWS] = { 0 };
    for (int64_t g = 0, at = 0; at < k; g++, at += group) {
        floats  part[QUANTIZED_ROWS] = { { 0 } }, more[QUANTIZED_ROWS] = { { 0 } };
        int64_t i = at, end = at + group;
        for (; i + 2 * LANES <= end; i += 2 * LANES) {
            floats w = SIGNED(codes + i), v = SIGNED(codes + i + LANES);
            IN_REGISTERS
            for (int r = 0; r < rows; r++) part[r] += w * AT(x + r * k + i), more[r] += v * AT(x + r * k + i + LANES);
        }
        IN_REGISTERS
        for (int r = 0; r < rows; r++) sum[r] += (part[r] + more[r]) * scales[g];
        for (; i < end; i++)
            for (int r = 0; r < rows; r++) rest[r] += scales[g] * (float)codes[i] * x[r * k + i];
    }
    for (int r = 0; r < rows; r++) {
        float all = rest[r];
        TOTAL(sum[r], all);
        out[r * out_step] = bias + all;
    }
}
INLINE void dot_int4(float *out, int64_t out_step, const float *x, const uint8_t *codes, const float *scales, const float *sums,
                     float bias, int64_t k, int64_t group, int rows)
{
    floats  sum[QUANTIZED_ROWS] = { { 0 } };
    float   offset[QUANTIZED_ROWS] = { 0 };
    int64_t groups = k / group;
    for (int64_t g = 0, at = 0; at < k; g++, at += group) {
        floats part[QUANTIZED_ROWS] = { { 0 } }, more[QUANTIZED_ROWS] = { { 0 } };
        for (int64_t i = at; i < at + group; i += 2 * HALF_BLOCK) {
            IN_REGISTERS
            for (int j = 0; j < HALF_BLOCK; j += LANES) {
                floats low = LOW_HALF(codes + i / 2 + j), high = HIGH_HALF(codes + i / 2 + j);
                IN_REGISTERS
                for (int r = 0; r < rows; r++)
                    part[r] += low * AT(x + r * k + i + j), more[r] += high * AT(x + r * k + i + j + HALF_BLOCK);
            }
        }
        IN_REGISTERS
        for (int r = 0; r < rows; r++) sum[r] += (part[r] + more[r]) * scales[g], offset[r] += scales[g] * sums[r * groups + g];
    }
    for (int r = 0; r < rows; r++) {
        float all = -offset[r];
        TOTAL(sum[r], all);
        out[r * out_step] = bias + all;
    }
}

#define DOT(name, call)                                                                                                        \
    static void name(float *out, int64_t out_step, const float *x, const void *codes, const float *scales, const float *sums,  \
                     float bias, int64_t k, int64_t group)                                                                     \
    {                                                                                                                          \
        (void)sums;                                                                                                            \
        call;                                                                                                                  \
    }
DOT(int8_one, dot_int8(out, out_step, x, codes, scales, bias, k, group, 1))
DOT(int8_rows, dot_int8(out, out_step, x, codes, scales, bias, k, group, QUANTIZED_ROWS))
DOT(int4_one, dot_int4(out, out_step, x, codes, scales, sums, bias, k, group, 1))
DOT(int4_rows, dot_int4(out, out_step, x, codes, scales, sums, bias, k, group, QUANTIZED_ROWS))

const lc_quantized CAT(lc_cpu_quantized, LC_ISA) = { int8_one, int8_rows, int4_one, int4_rows };

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

#if defined __AVX512F__
#define LANES 16
#elif defined __AVX2__
#define LANES 8
#else
#define LANES 4
#endif
enum { HALF_BLOCK = 16 }; /* codes of int4 whose bytes lie beside each other */
typedef float   floats __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t ints __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef int8_t  int8s __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef uint8_t bytes __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef float   anywhere __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
#define AT(x)      (*(const anywhere *)(x))
#define WIDENED(c) __builtin_convertvector(__builtin_convertvector(c, ints), floats)
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
            floats w = WIDENED(*(const int8s *)(codes + i)), v = WIDENED(*(const int8s *)(codes + i + LANES));
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
                bytes  c = *(const bytes *)(codes + i / 2 + j);
                floats low = WIDENED(c & 15), high = WIDENED(c >> 4);
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

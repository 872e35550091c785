/* The one-dimensional Winograd transforms of conv_winograd.c: rows of an image to values at evaluation points, and back.
 * Compiled once per instruction set.
 *
 * Four neighbouring results of a row are coefficients of a product of two polynomials, the image's and the kernel's. With r
 * taps the product has r + 3 coefficients, so its values at r + 3 points determine it: r + 3 multiplications instead of 4 r.
 * The points (0, 1, -1, small fractions, and infinity: the leading coefficient) were found by trial: errors are 1.5 to 2
 * times those of plain sums.
 *
 *   transform_input    one image row: tiles of 4 elements with the r - 1 that follow each (next) to r + 3 rows of one value
 *   per tile
 *   transform_output   back: r + 3 rows of values to rows of 4 results per tile, `columns` of them
 *   transform_weight   r taps of 16 kernels
 *
 * Lanes are tiles, so shuffles deinterleave rows into every fourth element. The matrices are constants, unrolled. */
#include "conv.h"
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif
#ifdef __clang__
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("fp-contract=fast")
#endif

#if defined __AVX512F__
enum { LANES = 16 };
#define STREAM(p, x) _mm512_stream_ps(p, (__m512)(x))
#define LANE         ((lanes){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 })
#define UNZIP(a, b, at)                                                                                                        \
    __builtin_shufflevector(a, b, at, at + 2, at + 4, at + 6, at + 8, at + 10, at + 12, at + 14, at + 16, at + 18, at + 20,    \
                            at + 22, at + 24, at + 26, at + 28, at + 30)
#define ZIP(a, b, at)                                                                                                          \
    __builtin_shufflevector(a, b, at, at + 16, at + 1, at + 17, at + 2, at + 18, at + 3, at + 19, at + 4, at + 20, at + 5,     \
                            at + 21, at + 6, at + 22, at + 7, at + 23)
#elif defined __AVX2__
enum { LANES = 8 };
#define STREAM(p, x)    _mm256_stream_ps(p, (__m256)(x))
#define LANE            ((lanes){ 0, 1, 2, 3, 4, 5, 6, 7 })
#define UNZIP(a, b, at) __builtin_shufflevector(a, b, at, at + 2, at + 4, at + 6, at + 8, at + 10, at + 12, at + 14)
#define ZIP(a, b, at)   __builtin_shufflevector(a, b, at, at + 8, at + 1, at + 9, at + 2, at + 10, at + 3, at + 11)
#else
enum { LANES = 4 };
#define STREAM(p, x)    store(p, x)
#define LANE            ((lanes){ 0, 1, 2, 3 })
#define UNZIP(a, b, at) __builtin_shufflevector(a, b, at, at + 2, at + 4, at + 6)
#define ZIP(a, b, at)   __builtin_shufflevector(a, b, at, at + 4, at + 1, at + 5)
#endif
typedef float vector __attribute__((vector_size(4 * LANES)));
typedef float loaded __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int   lanes __attribute__((vector_size(4 * LANES)));
typedef float point_matrix[CONV_POINTS][CONV_POINTS];

/* Input transform: n elements of a tile to the values. */
static const point_matrix VALUES_6 = { { 1, 1.5, -2, -1.5, 1, 0 }, { 0, -1, -2.5, -0.5, 1, 0 }, { 0, 1, 0.5, -2.5, 1, 0 },
                                       { 0, -0.5, -1, 0.5, 1, 0 }, { 0, 2, -1, -2, 1, 0 },      { 0, 1, 1.5, -2, -1.5, 1 } };
static const point_matrix VALUES_7 = { { -1.5, 2.75, 2.5, -3.75, -1, 1, 0 }, { 0, 1.5, -1.25, -3.75, 0, 1, 0 },
                                       { 0, -1.5, 4.25, -1.75, -2, 1, 0 },   { 0, 0.75, -1, -1.75, 1, 1, 0 },
                                       { 0, 3, 0.5, -4, -0.5, 1, 0 },        { 0, -1, 2.5, 0, -2.5, 1, 0 },
                                       { 0, -1.5, 2.75, 2.5, -3.75, -1, 1 } };
static const point_matrix VALUES_8 = { { -1, 0, 5.25, 0, -5.25, 0, 1, 0 },      { 0, 1, 1, -4.25, -4.25, 1, 1, 0 },
                                       { 0, -1, 1, 4.25, -4.25, -1, 1, 0 },     { 0, 0.5, 0.25, -2.5, -1.25, 2, 1, 0 },
                                       { 0, -0.5, 0.25, 2.5, -1.25, -2, 1, 0 }, { 0, 2, 4, -2.5, -5, 0.5, 1, 0 },
                                       { 0, -2, 4, 2.5, -5, -0.5, 1, 0 },       { 0, -1, 0, 5.25, 0, -5.25, 0, 1 } };
/* Output transform: values to 4 results. Rows are powers of the points; infinity contributes to the last one only. */
static const point_matrix RESULTS_6 = {
    { 1, 1, 1, 1, 1, 0 }, { 0, 1, -1, 2, -0.5, 0 }, { 0, 1, 1, 4, 0.25, 0 }, { 0, 1, -1, 8, -0.125, 1 }
};
static const point_matrix RESULTS_7 = {
    { 1, 1, 1, 1, 1, 1, 0 }, { 0, 1, -1, 2, 0.5, -1.5, 0 }, { 0, 1, 1, 4, 0.25, 2.25, 0 }, { 0, 1, -1, 8, 0.125, -3.375, 1 }
};
static const point_matrix RESULTS_8 = { { 1, 1, 1, 1, 1, 1, 1, 0 },
                                        { 0, 1, -1, 2, -2, 0.5, -0.5, 0 },
                                        { 0, 1, 1, 4, 4, 0.25, 0.25, 0 },
                                        { 0, 1, -1, 8, -8, 0.125, -0.125, 1 } };
/* Weight transform: the points, and the factors of their powers. */
static const double POINTS_6[2][5] = { { 0, 1, -1, 2, -0.5 }, { 1, -1 / 3., 1 / 3., 1 / 15., -16 / 15. } };
static const double POINTS_7[2][6] = { { 0, 1, -1, 2, 0.5, -1.5 }, { -2 / 3., -2 / 5., 2 / 9., 2 / 63., 8 / 9., -8 / 105. } };
static const double POINTS_8[2][7] = { { 0, 1, -1, 2, -2, 0.5, -0.5 },
                                       { -1, -2 / 9., -2 / 9., 1 / 90., 1 / 90., 32 / 45., 32 / 45. } };

INLINE vector load(const float *p) { return (vector) * (const loaded *)p; }
INLINE void   store(float *p, vector x) { *(loaded *)p = (loaded)x; }
INLINE void   every_fourth(const float *from, vector *to)
{
    vector a = load(from), b = load(from + LANES), c = load(from + 2 * LANES), d = load(from + 3 * LANES);
    vector even[2] = { UNZIP(a, b, 0), UNZIP(c, d, 0) }, odd[2] = { UNZIP(a, b, 1), UNZIP(c, d, 1) };
    to[0] = UNZIP(even[0], even[1], 0), to[1] = UNZIP(odd[0], odd[1], 0);
    to[2] = UNZIP(even[0], even[1], 1), to[3] = UNZIP(odd[0], odd[1], 1);
}
/* sum += row i of a matrix times n vectors. */
INLINE vector times(const int n, const point_matrix m, const int i, const vector *x, vector sum)
{
#pragma GCC unroll 8
    for (int k = 0; k < n; k++)
        if (m[i][k] == 1) sum += x[k];
        else if (m[i][k] == -1) sum -= x[k];
        else if (m[i][k] != 0) sum += m[i][k] * x[k];
    return sum;
}
INLINE void transform_input(const int n, const point_matrix m, const float *line, const float *next, int64_t tiles, float *to,
                            int64_t step)
{
    for (int64_t t = 0; t < tiles; t += LANES, line += 4 * LANES, next += 4 * LANES) {
        vector x[8];
        every_fourth(line, x), every_fourth(next, x + 4);
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) store(to + i * step + t, times(n, m, i, x, (vector){ 0 }));
    }
}
/* Lanes are images, whose elements are interleaved: each column of a row has one address, and nothing is deinterleaved. */
INLINE void transform_input_batch(const int n, const point_matrix m, const float *const *column, int64_t tiles, int64_t images,
                                  float *to, int64_t step)
{
    for (int64_t t = 0; t < tiles; t++)
        for (int64_t at = 0; at < images; at += LANES) {
            vector x[8];
#pragma GCC unroll 8
            for (int k = 0; k < n; k++) x[k] = load(column[4 * t + k] + at);
#pragma GCC unroll 8
            for (int i = 0; i < n; i++) store(to + i * step + t * images + at, times(n, m, i, x, (vector){ 0 }));
        }
}
INLINE bool transform_output_batch(const int n, const point_matrix m, const float *from, int64_t step, int64_t columns,
                                   int64_t images, float start, float *to)
{
    vector odd = { 0 };
    for (int64_t t = 0; 4 * t < columns; t++)
        for (int64_t at = 0; at < images; at += LANES) {
            vector x[8];
#pragma GCC unroll 8
            for (int k = 0; k < n; k++) x[k] = load(from + k * step + t * images + at);
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                vector y = times(n, m, i, x, (vector){ 0 } + start);
                odd += y - y;
                if (4 * t + i < columns) store(to + (4 * t + i) * images + at, y);
            }
        }
    float sum = 0;
    for (int i = 0; i < LANES; i++) sum += odd[i];
    return sum == 0;
}
INLINE bool transform_output(const int n, const point_matrix m, const float *from, int64_t step, int64_t tiles, float start,
                             float *line, int64_t columns, bool stream)
{
    vector odd = { 0 };
    float  spare[4 * LANES];
    stream = stream && columns % LANES == 0 && (uintptr_t)line % sizeof odd == 0;
    for (int64_t t = 0; t < tiles; t += LANES, line += 4 * LANES, columns -= 4 * LANES) {
        vector x[8], y[4];
        lanes  kept = LANE < (int)smaller(tiles - t, LANES); /* lanes past the end may hold anything */
#pragma GCC unroll 8
        for (int k = 0; k < n; k++) x[k] = load(from + k * step + t);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            y[i] = times(n, m, i, x, (vector){ 0 } + start);
            odd += (vector)((lanes)(y[i] - y[i]) & kept);
        }
        vector low[2] = { ZIP(y[0], y[2], 0), ZIP(y[1], y[3], 0) },
               high[2] = { ZIP(y[0], y[2], LANES / 2), ZIP(y[1], y[3], LANES / 2) };
        vector made[4] = { ZIP(low[0], low[1], 0), ZIP(low[0], low[1], LANES / 2), ZIP(high[0], high[1], 0),
                           ZIP(high[0], high[1], LANES / 2) };
        float *to = columns < 4 * LANES ? spare : line;
        if (stream) {
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++)
                if (i * LANES < columns) STREAM(line + i * LANES, made[i]);
            continue;
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) store(to + i * LANES, made[i]);
        if (to == spare) memcpy(line, spare, (size_t)columns * sizeof *line);
    }
    float sum = 0;
    for (int i = 0; i < LANES; i++) sum += odd[i];
    return sum == 0;
}
typedef float  kernels16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef double wide16 __attribute__((vector_size(128)));
INLINE void transform_weight(const int n, const double *point, const double *scale, const float (*tap)[16], int rows, float *to,
                             int64_t step)
{
    wide16 x[5];
#pragma GCC unroll 5
    for (int k = 0; k < n - 3; k++) x[k] = __builtin_convertvector(*(const kernels16 *)tap[k], wide16);
#pragma GCC unroll 8
    for (int i = 0; i < n; i++, to += step) {
        wide16 sum = x[n - 4]; /* at infinity */
        if (i < n - 1) {
            sum = x[n - 4] * point[i] + x[n - 5];
#pragma GCC unroll 3
            for (int k = n - 6; k >= 0; k--) sum = sum * point[i] + x[k];
            sum *= scale[i];
        }
        kernels16 made = __builtin_convertvector(sum, kernels16);
        memcpy(to, &made, (size_t)rows * sizeof *to);
    }
}
/* transform_input_batch with the transposed output matrix. */
INLINE void transform_grad(const int n, const point_matrix m, const float *const *column, int64_t tiles, int64_t images,
                           float *to, int64_t step)
{
    for (int64_t t = 0; t < tiles; t++)
        for (int64_t at = 0; at < images; at += LANES) {
            vector x[4];
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++) x[k] = load(column[4 * t + k] + at);
#pragma GCC unroll 8
            for (int i = 0; i < n; i++) {
                vector sum = { 0 };
#pragma GCC unroll 4
                for (int k = 0; k < 4; k++)
                    if (m[k][i] == 1) sum += x[k];
                    else if (m[k][i] == -1) sum -= x[k];
                    else if (m[k][i] != 0) sum += m[k][i] * x[k];
                store(to + i * step + t * images + at, sum);
            }
        }
}
INLINE bool transform_weight_grad(const int n, const double *point, const double *scale, const float *from, int64_t count,
                                  float *to)
{
    double odd = 0;
    for (int64_t w = 0; w < count; w++, to += n - 3) {
        double sum[5] = { 0 };
#pragma GCC unroll 7
        for (int i = 0; i < n - 1; i++) {
            double power = scale[i] * (double)from[i * count + w];
#pragma GCC unroll 5
            for (int k = 0; k < n - 3; k++, power *= point[i]) sum[k] += power;
        }
        sum[n - 4] += (double)from[(n - 1) * count + w]; /* at infinity */
#pragma GCC unroll 5
        for (int k = 0; k < n - 3; k++) to[k] = (float)sum[k], odd += (double)(to[k] - to[k]);
    }
    return odd == 0;
}
#define POINTS(n)                                                                                                              \
    static void transform_input_##n(const float *line, const float *next, int64_t tiles, float *to, int64_t step)              \
    {                                                                                                                          \
        transform_input(n, VALUES_##n, line, next, tiles, to, step);                                                           \
    }                                                                                                                          \
    static bool transform_output_##n(const float *from, int64_t step, int64_t tiles, float start, float *line,                 \
                                     int64_t columns, bool stream)                                                             \
    {                                                                                                                          \
        return transform_output(n, RESULTS_##n, from, step, tiles, start, line, columns, stream);                              \
    }                                                                                                                          \
    static void transform_input_batch_##n(const float *const *column, int64_t tiles, int64_t images, float *to, int64_t step)  \
    {                                                                                                                          \
        transform_input_batch(n, VALUES_##n, column, tiles, images, to, step);                                                 \
    }                                                                                                                          \
    static bool transform_output_batch_##n(const float *from, int64_t step, int64_t columns, int64_t images, float start,      \
                                           float *to)                                                                          \
    {                                                                                                                          \
        return transform_output_batch(n, RESULTS_##n, from, step, columns, images, start, to);                                 \
    }                                                                                                                          \
    static void transform_weight_##n(const float(*tap)[16], int rows, float *to, int64_t step)                                 \
    {                                                                                                                          \
        transform_weight(n, POINTS_##n[0], POINTS_##n[1], tap, rows, to, step);                                                \
    }                                                                                                                          \
    static void transform_grad_##n(const float *const *column, int64_t tiles, int64_t images, float *to, int64_t step)         \
    {                                                                                                                          \
        transform_grad(n, RESULTS_##n, column, tiles, images, to, step);                                                       \
    }                                                                                                                          \
    static bool transform_weight_grad_##n(const float *from, int64_t count, float *to)                                         \
    {                                                                                                                          \
        return transform_weight_grad(n, POINTS_##n[0], POINTS_##n[1], from, count, to);                                        \
    }
POINTS(6)
POINTS(7)
POINTS(8)
/* Every second element. */
static void every_second(const float *from, int64_t n, float *to)
{
    int64_t i = 0;
    for (; i + LANES < n; i += LANES) store(to + i, UNZIP(load(from + 2 * i), load(from + 2 * i + LANES), 0));
    for (; i < n; i++) to[i] = from[2 * i];
}
static void fence(void)
{
#ifdef __AVX2__
    _mm_sfence();
#endif
}
const conv_points CAT(lc_cpu_conv_points, LC_ISA)[3] = {
    { 6, transform_input_6, transform_output_6, transform_input_batch_6, transform_output_batch_6, transform_weight_6,
      transform_grad_6, transform_weight_grad_6, every_second, fence },
    { 7, transform_input_7, transform_output_7, transform_input_batch_7, transform_output_batch_7, transform_weight_7,
      transform_grad_7, transform_weight_grad_7, every_second, fence },
    { 8, transform_input_8, transform_output_8, transform_input_batch_8, transform_output_batch_8, transform_weight_8,
      transform_grad_8, transform_weight_grad_8, every_second, fence },
};

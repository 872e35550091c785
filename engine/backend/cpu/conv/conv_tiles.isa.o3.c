/* The micro-kernels (tiles) of convolution. Compiled once per instruction set.
 *
 * A tile keeps rows (output channels) x columns (elements of the output grid) of sums in registers. Per channel and tap, it
 * loads the columns' vectors straight from the strip, at the tap's offset, and multiplies them with one weight per row. So
 * there is no im2col, and vectors need not be aligned. Each number of rows has its own tile, as wide as the registers allow:
 * 64 channels are four tiles of 13 rows and one of 12, not five of 14.
 *
 * A dot tile, for gradients of weights, sums over columns instead: its sums stay vectors until the end. It loads one vector
 * per row and one per column and multiplies all pairs.
 *
 * A depthwise convolution (one kernel per channel) reads hardly more than it computes, so it runs on the planes in place,
 * without a strip; in channels-last order, on pixels in place. */
#include "conv.h"
#include <string.h>
#ifdef __clang__
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("fp-contract=fast")
#endif

/* Sums of neighbouring lanes: of a, then of b. */
#define PAIRS_2(a, b) (__builtin_shufflevector(a, b, 0, 2) + __builtin_shufflevector(a, b, 1, 3))
#define PAIRS_4(a, b) (__builtin_shufflevector(a, b, 0, 2, 4, 6) + __builtin_shufflevector(a, b, 1, 3, 5, 7))
#define PAIRS_8(a, b)                                                                                                          \
    (__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14) + __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15))
#define PAIRS_16(a, b)                                                                                                         \
    (__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) +                                \
     __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31))

/* tiles: rows, vectors. dots: rows, columns */
#if defined __AVX512F__
enum { VECTOR_BYTES = 64, ROWS = 14 };
#define EACH_TILE(X)                                                                                                           \
    X(1, 6) X(2, 6) X(3, 6) X(4, 6) X(5, 4) X(6, 4) X(7, 3) X(8, 3) X(9, 2) X(10, 2) X(11, 2) X(12, 2) X(13, 2) X(14, 2)
#define EACH_STRIDED(X) X(10, 2) X(11, 2) X(12, 2) X(13, 2) X(14, 2)
#define EACH_DOT(X)     X(5, 5) X(6, 4) X(4, 6) X(1, 9)
#define PAIRS_f32       PAIRS_16
#define PAIRS_f64       PAIRS_8
#else
#ifdef __AVX2__
enum { VECTOR_BYTES = 32, ROWS = 6 };
#define PAIRS_f32 PAIRS_8
#define PAIRS_f64 PAIRS_4
#else
enum { VECTOR_BYTES = 16, ROWS = 6 };
#define PAIRS_f32 PAIRS_4
#define PAIRS_f64 PAIRS_2
#endif
#define EACH_TILE(X)    X(1, 6) X(2, 4) X(3, 3) X(4, 3) X(5, 2) X(6, 2)
#define EACH_STRIDED(X) X(5, 2) X(6, 2)
#define EACH_DOT(X)     X(3, 4) X(4, 3) X(2, 5) X(1, 9)
#endif

#define T       float
#define INTEGER int32_t
#define NAME(x) x##_f32
#include "conv_tiles.inc.c"
#define T       double
#define INTEGER int64_t
#define NAME(x) x##_f64
#include "conv_tiles.inc.c"

#include "conv_depthwise_pixels.inc.c"

#define ENTRY_f32(rows, wide)   { tile_##rows##_##wide##_f32, tile_##rows##_1_f32, wide * LANES_f32 },
#define ENTRY_f64(rows, wide)   { tile_##rows##_##wide##_f64, tile_##rows##_1_f64, wide * LANES_f64 },
#define STRIDED_f32(rows, wide) [rows - 1] = { strided_##rows##_##wide##_f32, strided_##rows##_1_f32, wide * LANES_f32 },
#define STRIDED_f64(rows, wide) [rows - 1] = { strided_##rows##_##wide##_f64, strided_##rows##_1_f64, wide * LANES_f64 },
#define DOT_f32(rows, columns)  { dot_##rows##_##columns##_f32, rows, columns },
#define DOT_f64(rows, columns)  { dot_##rows##_##columns##_f64, rows, columns },
const lc_conv_tiles CAT(lc_cpu_conv_tiles, LC_ISA) = {
    .f32 = { { EACH_TILE(ENTRY_f32) },
             { EACH_STRIDED(STRIDED_f32) },
             { EACH_DOT(DOT_f32) },
             plane_f32,
             plane_dots_f32,
             ROWS,
             LANES_f32 },
    .f64 = { { EACH_TILE(ENTRY_f64) },
             { EACH_STRIDED(STRIDED_f64) },
             { EACH_DOT(DOT_f64) },
             plane_f64,
             plane_dots_f64,
             ROWS,
             LANES_f64 },
    .pixels = { { [2] = depthwise_2_1, depthwise_3_1, depthwise_4_1, depthwise_5_1, depthwise_6_1, depthwise_7_1 },
                { [3] = depthwise_3_2, [5] = depthwise_5_2, [7] = depthwise_7_2 } },
};

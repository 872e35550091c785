/* Fourier transforms of lines. Compiled once per instruction set.
 *
 * A pass of radix r takes r rows, transforms them in registers (fft_codelets.inc.c), multiplies with twiddles and writes r rows, from one pair of planes
 * to another (Stockham): order is right at the end and nothing is permuted. Rows are vectors of neighbouring elements, or of the same element
 * of several lines; only the first pass over a single line finds neighbours that belong to different transforms, and interleaves its results in
 * registers. Three passes of radix 16 are a line of 4096 in L1 and L2.
 *
 * Products are fused with additions, which saves a third of the arithmetic; results differ between instruction sets in the last bits. */
#if defined __SANITIZE_ADDRESS__ && !defined __clang__ /* AddressSanitizer takes minutes to instrument the optimised codelets */
#pragma GCC                                  optimize("O0")
#endif
#include "../kernels.h"
#include "fft.h"
#include <string.h>
#ifdef __clang__
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("fp-contract=fast")
#endif
#define UNROLL _Pragma("GCC unroll 16")

/* Of vectors of n: alternating elements of the low or the high halves of a and b, every second element of both, and all backwards. */
#define Z2(a, b, f) __builtin_shufflevector(a, b, f, f + 2)
#define Z4(a, b, f) __builtin_shufflevector(a, b, f, f + 4, f + 1, f + 5)
#define Z8(a, b, f) __builtin_shufflevector(a, b, f, f + 8, f + 1, f + 9, f + 2, f + 10, f + 3, f + 11)
#define Z16(a, b, f)                                                                                                           \
    __builtin_shufflevector(a, b, f, f + 16, f + 1, f + 17, f + 2, f + 18, f + 3, f + 19, f + 4, f + 20, f + 5, f + 21, f + 6, \
                            f + 22, f + 7, f + 23)
#define S2(a, b, f) __builtin_shufflevector(a, b, f, f + 2)
#define S4(a, b, f) __builtin_shufflevector(a, b, f, f + 2, f + 4, f + 6)
#define S8(a, b, f) __builtin_shufflevector(a, b, f, f + 2, f + 4, f + 6, f + 8, f + 10, f + 12, f + 14)
#define S16(a, b, f)                                                                                                           \
    __builtin_shufflevector(a, b, f, f + 2, f + 4, f + 6, f + 8, f + 10, f + 12, f + 14, f + 16, f + 18, f + 20, f + 22,       \
                            f + 24, f + 26, f + 28, f + 30)
#define R2(a)  __builtin_shufflevector(a, a, 1, 0)
#define R4(a)  __builtin_shufflevector(a, a, 3, 2, 1, 0)
#define R8(a)  __builtin_shufflevector(a, a, 7, 6, 5, 4, 3, 2, 1, 0)
#define R16(a) __builtin_shufflevector(a, a, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)

#if defined __AVX512F__
#define LANES_F32 16
#define LANES_F64 8
#elif defined __AVX2__
#define LANES_F32 8
#define LANES_F64 4
#else
#define LANES_F32 4
#define LANES_F64 2
#endif

#define T              float
#define NAME(f)        f##_f32
#define LANES          LANES_F32
#define ZIP_LOW(a, b)  JOIN(Z, LANES_F32)(a, b, 0)
#define ZIP_HIGH(a, b) JOIN(Z, LANES_F32)(a, b, LANES_F32 / 2)
#define EVENS(a, b)    JOIN(S, LANES_F32)(a, b, 0)
#define ODDS(a, b)     JOIN(S, LANES_F32)(a, b, 1)
#define REVERSED(a)    JOIN(R, LANES_F32)(a)
#define JOIN_(a, b)    a##b
#define JOIN(a, b)     JOIN_(a, b)
#include "fft_lines.inc.c"
#define T              double
#define NAME(f)        f##_f64
#define LANES          LANES_F64
#define ZIP_LOW(a, b)  JOIN(Z, LANES_F64)(a, b, 0)
#define ZIP_HIGH(a, b) JOIN(Z, LANES_F64)(a, b, LANES_F64 / 2)
#define EVENS(a, b)    JOIN(S, LANES_F64)(a, b, 0)
#define ODDS(a, b)     JOIN(S, LANES_F64)(a, b, 1)
#define REVERSED(a)    JOIN(R, LANES_F64)(a)
#include "fft_lines.inc.c"

#define OF_F32                                                                                                                 \
    {                                                                                                                          \
        LANES_F32, run_f32, load_f32, store_f32, split_f32, join_f32, turn_f32                                                 \
    }
#define OF_F64                                                                                                                 \
    {                                                                                                                          \
        LANES_F64, run_f64, load_f64, store_f64, split_f64, join_f64, turn_f64                                                 \
    }
const lc_ffts CAT(lc_cpu_ffts, LC_ISA) = { { OF_F32, OF_F64 } };

/* For files compiled per instruction set whose products are of small tiles: multiply.inc.c, which multiplies without packing. Of a it broadcasts
 * single elements, at any strides; of b and of the result it reads rows of vectors. Sums are fused where the machine can. */
#pragma once
#include "kernels.h"
#ifdef __clang__
#pragma clang fp contract(fast)
#define ONCE __attribute__((noinline))
#else
#pragma GCC optimize("fp-contract=fast")
#define ONCE __attribute__((noinline, noclone)) /* no copies for some arguments */
#undef INDEPENDENT
#define INDEPENDENT _Pragma("GCC ivdep") _Pragma("GCC unroll 1") /* unrolled first, it is not vectorised */
#endif
#if defined __AVX512F__
enum { VECTOR_BYTES = 64, TALL = 6, WIDE = 4 };
#elif defined __AVX2__
enum { VECTOR_BYTES = 32, TALL = 6, WIDE = 2 };
#else
enum { VECTOR_BYTES = 16, TALL = 4, WIDE = 2 };
#endif
typedef enum { STORE, ADD, RESCALE } ending;

/* For files compiled per instruction set whose products are of small tiles: small_gemm.inc.c, which multiplies without packing. Of a it broadcasts
 * single elements, at any strides; of b and of the result it reads rows of vectors. Sums are fused where the machine can. */
#pragma once
#include "../kernels.h"
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

/* Matrices that are wanted soon, by rows: two of them, or one and NULL. Bytes beyond them are never touched, only asked for. */
typedef struct {
    const char *at[2];
    int64_t     step[2], bytes[2];
} fetches;
INLINE void fetch(const fetches *soon, int64_t first, int64_t rows)
{
    for (int m = 0; m < 2; m++)
        for (int64_t i = first; soon->at[m] && i < first + rows; i++)
            for (int64_t byte = 0; byte < soon->bytes[m]; byte += 64)
                __builtin_prefetch(soon->at[m] + i * soon->step[m] + byte, 0, 2);
}

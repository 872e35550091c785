/* Products of small tiles, without packing (small_gemm.inc.c), for files compiled per instruction set. Broadcasts single
 * elements of a, at any strides; reads rows of vectors of b and of the result. Sums are fused where the machine can. */
#pragma once
#include "../kernels.h"
#ifdef __clang__
#pragma clang fp contract(fast)
#define ONCE __attribute__((noinline))
#else
#pragma GCC optimize("fp-contract=fast")
#define ONCE __attribute__((noinline, noclone)) /* no specialised clones */
#undef INDEPENDENT
#define INDEPENDENT _Pragma("GCC ivdep") _Pragma("GCC unroll 1") /* if unrolled first, it is not vectorised */
#endif
#if defined __AVX512F__
enum { VECTOR_BYTES = 64, TALL = 6, WIDE = 4 };
#elif defined __AVX2__
enum { VECTOR_BYTES = 32, TALL = 6, WIDE = 2 };
#else
enum { VECTOR_BYTES = 16, TALL = 4, WIDE = 2 };
#endif
typedef enum { STORE, ADD, RESCALE } ending;

/* Prefetches the rows of matrices that are needed soon: two of them, or one and NULL. Bytes beyond them are never accessed,
 * only prefetched. */
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

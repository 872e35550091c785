/* Compiled once per instruction set: see norm.h.
 *
 * Memory bounds all of these, so a tile must be read from memory only once. Reductions keep four vectors of sums, which
 * hides the additions behind the loads. The mean is computed in a first pass over a tile; the second pass, for the squares,
 * finds the tile in L1: as exact as Welford's recurrence, without its division per element. Only squares are fused with
 * their sums: what cancels in theory then also cancels here. */
#include "norm.h"
#include "../kernels.h"
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#define FENCE _mm_sfence()
#else
#define FENCE (void)0
#endif
#if defined __AVX512F__
enum { VECTOR_BYTES = 64 };
#define STREAM(p, x) _mm512_stream_ps((float *)(p), (__m512)(x))
#elif defined __AVX2__
enum { VECTOR_BYTES = 32 };
#define STREAM(p, x) _mm256_stream_ps((float *)(p), (__m256)(x))
#else
enum { VECTOR_BYTES = 16 };
#define STREAM(p, x) STORE(p, x)
#endif

#define T       float
#define NAME(x) x##_f32
#include "norm_loops.inc.c"
#define T       double
#define NAME(x) x##_f64
#include "norm_loops.inc.c"

#define LOOPS(type)                                                                                                            \
    {                                                                                                                          \
        moments_##type, squares_##type, scale_##type, scale_each_##type, dots_##type, dots_each_##type, slope_##type,          \
            slope_each_##type, sums_each_##type, column_moments_##type, column_scale_##type, column_dots_##type,               \
            column_slope_##type, column_merge_##type, column_add_##type                                                        \
    }
const lc_norms CAT(lc_cpu_norms, LC_ISA) = { LOOPS(f32), LOOPS(f64) };

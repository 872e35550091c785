/* Compiled once per instruction set: see interpolate.h.
 *
 * An output row combines input rows that were interpolated horizontally first. The horizontal pass is the expensive half: it
 * reads elements at irregular places. Neighbouring output rows need the same input rows, so the driver keeps them, and each
 * input row passes once. If the results of a vector need only elements of two neighbouring vectors (scales above about a
 * half), those are loaded and permuted in registers: a tap costs a permutation, a product and a sum for 16 results. The
 * vertical pass is memory traffic. */
#include "interpolate.h"
#include "../kernels.h"
#include <string.h>

#if defined __AVX512F__
enum { VECTOR_BYTES = 64 };
#elif defined __AVX2__
enum { VECTOR_BYTES = 32 };
#endif
#if (defined __AVX512F__ || defined __AVX2__) && !defined __clang__ /* clang has no variable permutation */
#define PERMUTES
#endif

#define T       float
#define I       int32_t
#define NAME(f) f##_f32
#include "interpolate_rows.inc.c"
#define T       double
#define I       int64_t
#define NAME(f) f##_f64
#include "interpolate_rows.inc.c"

/* ---- uint8: weights of 16 bits, and every pass rounds ---- */
static uint8_t rounded(int32_t sum, int bits)
{
    sum >>= bits;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}
static void across_u8(const interpolate_plan *p, void *line, const void *row)
{
    const interpolate_axis *a = &p->axis[2];
    int64_t                 inner = p->inner;
    for (int64_t i = 0; i < a->n; i++) {
        uint8_t       *to = (uint8_t *)line + i * inner;
        const uint8_t *from = row;
        if (a->copies) memcpy(to, from + a->index[i] * inner, (size_t)inner);
        for (int64_t c = 0; c < inner && !a->copies; c++) {
            int32_t sum = 1 << (a->bits - 1);
            for (int64_t j = a->start[i]; j < a->start[i + 1]; j++)
                sum += (int32_t)a->weight[j] * from[a->index[j] * inner + c];
            to[c] = rounded(sum, a->bits);
        }
    }
}
static void down_u8(void *out, const void *const *lines, const double *weights, int64_t m, int64_t n, int bits)
{
    for (int64_t i = 0; i < n; i++) {
        int32_t sum = 1 << (bits - 1);
        for (int64_t j = 0; j < m; j++) sum += (int32_t)weights[j] * ((const uint8_t *)lines[j])[i];
        ((uint8_t *)out)[i] = rounded(sum, bits);
    }
}

#ifdef PERMUTES
#define LANES(T) (VECTOR_BYTES / (int)sizeof(T))
#else
#define LANES(T) 0
#endif
const lc_interpolates CAT(lc_cpu_interpolates, LC_ISA) = { { across_f32, down_f32, LANES(float) },
                                                           { across_f64, down_f64, LANES(double) },
                                                           { across_u8, down_u8, 0 } };

/* Lines of the cross entropy: one set per instruction set (cross_entropy.isa.o3.c is compiled for each), chosen by
 * cross_entropy.c. */
#pragma once
#include "../../../core/core.h"

enum { CROSS_ENTROPY_LANES = 32 }; /* interleaved positions that are processed together */

/* For one line x (n): the logarithm of the sum of exponentials and, if `weighed` is not NULL, the sum of w[i] x[i] (w NULL:
 * ones). Backward: out[i] = a exp(x[i] - lse) - b w[i]. The wide forms process CROSS_ENTROPY_LANES lines; element i of line
 * l is at [i * step + l], and lse, weighed, a and b have one element per line. */
typedef struct {
    void (*line)(const void *x, int64_t n, const void *w, void *lse, void *weighed);
    void (*line_backward)(void *out, const void *x, int64_t n, const void *w, double lse, double a, double b);
    void (*wide)(const void *x, int64_t n, int64_t step, const void *w, void *lse, void *weighed);
    void (*wide_backward)(void *out, const void *x, int64_t n, int64_t step, const void *w, const void *lse, const void *a,
                          const void *b);
    /* ctc_loss: now[i] = score[i] + log(exp(before[i]) + exp(before[i - 1]) + exp(before[i - 2] + skip[i])); before has two
     * elements in front. */
    void (*align)(void *now, const void *before, const void *skip, const void *score, int64_t n);
} lc_cross_entropy_lines;
typedef struct {
    lc_cross_entropy_lines f32, f64;
} lc_cross_entropy;
const lc_cross_entropy_lines *cpu_cross_entropy_lines(lc_dtype dtype); /* of this CPU; f32 or f64 */

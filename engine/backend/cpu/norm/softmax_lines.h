/* Lines of the softmax family: one set per instruction set (softmax_lines.isa.o3.c is compiled for each), chosen by
 * softmax.c. */
#pragma once
#include "../../../core/core.h"

typedef enum { SOFTMAX, LOG_SOFTMAX, SOFTMAX_BACKWARD, LOG_SOFTMAX_BACKWARD, LINE_KINDS } line_kind;
enum { LINE_LANES = 16 }; /* interleaved lines are processed together */

/* out (n) of x (n), which may be out; y (n) is the forward's output, for the backward kinds. The wide form processes
 * LINE_LANES lines at once: element i of line l at [i * LINE_LANES + l]. */
typedef void (*lc_line)(void *out, const void *x, const void *y, int64_t n);
/* The same for `lines` interleaved lines: element i of all of them at i * step (elements; of out, x, y), contiguous. */
typedef void (*lc_sheet)(void *out, const void *x, const void *y, int64_t n, int64_t lines, const int64_t step[3]);
typedef struct {
    lc_line  f32[LINE_KINDS], f64[LINE_KINDS], f32_wide[LINE_KINDS], f64_wide[LINE_KINDS];
    lc_sheet f32_sheet[LINE_KINDS], f64_sheet[LINE_KINDS];
} lc_softmax_lines;

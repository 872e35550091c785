/* Compiled once per instruction set: see softmax_lines.h. The exponential is the function that exp itself uses. */
#include "softmax_lines.h"
#include "../math/scalar_math.h"
#include <math.h>
#include <string.h>

enum { PARTS = LINE_LANES };
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep") _Pragma("GCC unroll 1") /* if unrolled first, it is not vectorised */
#endif

#define T      float
#define LOG    logf
#define EXP(x) exp_f32(x)
#ifndef __AVX2__ /* else: softmax_vector.inc.c */
#define NAME(f) f##_f32
#define JOINED  1
#include "softmax_lines.inc.c"
#endif
#define NAME(f) f##_sheet_f32
#include "softmax_columns.inc.c"
#define NAME(f) f##_f32_wide
#define JOINED  0
#include "softmax_lines.inc.c"
#undef T
#undef LOG
#undef EXP
#define T       double
#define LOG     log
#define EXP(x)  exp_f64(x)
#define NAME(f) f##_sheet_f64
#include "softmax_columns.inc.c"
#define NAME(f) f##_f64
#define JOINED  1
#include "softmax_lines.inc.c"
#define NAME(f) f##_f64_wide
#define JOINED  0
#include "softmax_lines.inc.c"

#if defined __AVX2__
#include "softmax_vector.inc.c"
#else
#define softmax_vector              softmax_f32
#define log_softmax_vector          log_softmax_f32
#define softmax_backward_vector     softmax_backward_f32
#define log_softmax_backward_vector log_softmax_backward_f32
#endif

#define LINES(suffix)                                                                                                          \
    {                                                                                                                          \
        softmax_##suffix, log_softmax_##suffix, softmax_backward_##suffix, log_softmax_backward_##suffix                       \
    }
#define SHEETS(type)  LINES(sheet_##type)
#define TABLE_OF(isa) lc_cpu_softmax_lines_##isa
#define TABLE(isa)    TABLE_OF(isa)
const lc_softmax_lines TABLE(LC_ISA) = {
    LINES(vector), LINES(f64), LINES(f32_wide), LINES(f64_wide), SHEETS(f32), SHEETS(f64)
};

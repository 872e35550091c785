/* Dot products of rows of x with a row of codes: one set of kernels per instruction set (quantized_dots.isa.o3.c), driven by
 * quantized.c. */
#pragma once
#include "../../args.h"

enum { QUANTIZED_ROWS = 4 }; /* rows of x that are multiplied at once */
/* out[r * out_step] = bias + the sum over groups of scale[g] (x[r] . codes - sums[r][g]), for QUANTIZED_ROWS rows, or one.
 * sums: what the offset of int4 adds to every group; NULL: nothing. k: a multiple of group. */
typedef void (*lc_quantized_dot)(float *out, int64_t out_step, const float *x, const void *codes, const float *scales,
                                 const float *sums, float bias, int64_t k, int64_t group);
typedef struct {
    lc_quantized_dot int8_one, int8_rows, int4_one, int4_rows;
} lc_quantized;

/* What the whole-call kernels take: one struct per family. Shapes are checked by the op; the kernel checks values (index ranges). */
#pragma once
#include "backend.h"

/* matmul family: out (batch, m, n) = in a (batch, m, k) x b (batch, k, n); strides in elements, any of them; batch strides 0 broadcast. */
typedef struct {
    lc_tensor *out, *a, *b;
    int64_t    batch, m, n, k;
    int64_t    out_batch, out_row, out_col, a_batch, a_row, a_col, b_batch, b_row, b_col;
} lc_matmul_args;

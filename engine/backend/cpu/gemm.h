/* The micro-kernels of matmul: one set per instruction set (gemm.c is compiled for each), chosen by matmul.c at first use. */
#pragma once
#include "../../core/core.h"

typedef struct { /* out (rows x columns, row-major) = a (k x rows) transposed times b (k x columns): packed panels */
    int rows, columns;
    void (*run)(int64_t k, const void *a, const void *b, void *out);
    /* Panels of `lanes` rows each, element p of all of them side by side; missing rows are zero. Steps in elements. */
    void (*pack)(void *to, const void *from, int64_t rows, int64_t row_step, int64_t depth, int64_t depth_step, int lanes);
    void (*dot)(int64_t k, const void *a, const void *b, void *out); /* of two contiguous vectors: one element */
} lc_micro_kernel;
typedef struct {
    lc_micro_kernel f32, f64;
} lc_gemm;

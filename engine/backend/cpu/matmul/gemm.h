/* Matrix products for kernels: the micro-kernels, one set per instruction set (gemm.isa.o3.c is compiled for each), and a
 * whole product on the calling thread (gemm_serial.c), on which convolutions, attention and recurrences are built. Products
 * of the matmul op, which use all threads: matmul.c. */
#pragma once
#include "../kernels.h"

/* The epilogue of a product, applied to each element before it is stored: activation(scale * sum + addend_scale * addend) +
 * residual. Operands have the product's dtype, with strides per row and column of the result (a bias has strides 0 and 1);
 * they may alias the result. */
typedef struct {
    double      scale, addend_scale;
    const void *addend, *residual; /* or NULL */
    int64_t     addend_row, addend_col, residual_row, residual_col;
    lc_cpu_loop activation; /* a unary loop of lc_cpu_loops, or NULL */
} lc_epilogue;
typedef struct lc_product lc_product;
typedef struct { /* further terms of a product's sums: a (m x k) is another matrix, b continues with its next rows */
    const void *a;
    int64_t     k, row, col;
} lc_more_steps;
typedef struct { /* out (rows x columns, row-major) = a (k x rows) transposed times b (k x columns): packed panels */
    int rows, columns, strip; /* strip: columns of b that in-place products take at a time */
    void (*run)(int64_t k, const void *a, const void *b, void *out);
    /* The same into a row-major matrix with row stride out_row_step; accumulate: add to the old values. */
    void (*run_into)(int64_t k, const void *a, const void *b, void *out, int64_t out_row_step, bool accumulate);
    /* Packs panels of `lanes` rows each, interleaved: element p of all rows side by side; missing rows are zero. Strides in
     * elements. */
    void (*pack)(void *to, const void *from, int64_t rows, int64_t row_step, int64_t depth, int64_t depth_step, int lanes);
    void (*dot)(int64_t k, const void *a, const void *b, void *out); /* dot product of two contiguous vectors */
    /* Whole products without an epilogue that read a and b in place. */
    void (*in_place)(const lc_product *product, int64_t count, int64_t a_step, int64_t b_step,
                     int64_t out_step); /* b_col and out_col are 1; `count` products, strides between them */
    void (*in_place_more)(const lc_product *product, const lc_more_steps *more); /* n is at most strip */
    bool transposes;                            /* in_place can also store a column-major result (out_row is 1) */
    void (*by_dots)(const lc_product *product); /* a_col and b_row are 1 */
    void (*finish_row)(const lc_epilogue *e, int64_t row, int64_t column, int64_t n, void *out, int64_t out_col);
} lc_micro_kernel;
typedef struct {
    lc_micro_kernel f32, f64;
} lc_gemm;
const lc_micro_kernel *cpu_micro_kernel(lc_dtype dtype); /* of this CPU; f32 or f64 */

/* out (m x n) = a (m x k) times b (k x n), all of one dtype. Any strides, in elements; those of a and b may be zero or
 * negative. */
struct lc_product {
    int64_t            m, n, k;
    const void        *a, *b;
    void              *out;
    int64_t            a_row, a_col, b_row, b_col, out_row, out_col;
    bool               accumulate; /* add to the old values of out, before the epilogue */
    const lc_epilogue *epilogue;   /* or NULL */
};
/* Workspace bytes of cpu_gemm for this product: 0 unless something is packed. Aligned to 64: cpu_scratch once per chunk of
 * work. */
int64_t cpu_gemm_scratch(lc_dtype dtype, const lc_product *product);
void    cpu_gemm(lc_dtype dtype, const lc_product *product, void *scratch); /* on the calling thread; f32 or f64 */
/* `count` products without an epilogue, operands that many elements apart: one plan for all of them. */
void cpu_gemm_batch(lc_dtype dtype, const lc_product *product, int64_t count, int64_t a_step, int64_t b_step, int64_t out_step,
                    void *scratch);

/* For matmul.c, which packs blocks for several threads: rows x columns of the result at (row, column), from panels `depth`
 * deep; add: accumulate. */
enum { LC_GEMM_DEPTH = 256 };
void       cpu_gemm_panels(lc_dtype dtype, const lc_product *g, int64_t row, int64_t rows, int64_t column, int64_t columns,
                           int64_t depth, const void *a, const void *b, bool add);
lc_product cpu_gemm_transposed(
    const lc_product *g, lc_epilogue *epilogue_out); /* out' = b' a'; transposed: receives its epilogue, if there is one */
/* Applies the epilogue to a part of the result. */
void cpu_gemm_finish(lc_dtype dtype, const lc_product *g, int64_t row, int64_t rows, int64_t column, int64_t columns);

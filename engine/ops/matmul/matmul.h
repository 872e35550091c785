/* Matrix products as the files of that family see them: one kernel (args.h: lc_matmul_args) with different names for its axes. */
#pragma once
#include "../rules.h"

/* out = a x b in `dtype`, which all three have (or for_product). Axes start at a_first and so on: 0 for a batch of matrices, 1 for a matrix, 1 for a column
 * vector, 2 for a row. */
int matrix_product(const lc_record *call, lc_dtype dtype, lc_tensor *a, lc_tensor *b, lc_tensor *out, int a_first, int b_first,
                   int out_first);
int matrix_product_with(const lc_record *call, lc_dtype dtype, lc_tensor *a, lc_tensor *b, lc_tensor *out, int a_first,
                        int b_first, int out_first, const lc_matmul_epilogue *epilogue, bool accumulate); /* if can_fuse */
/* Whether a product computing in `dtype` can fuse all of these LC_FUSES_*. */
static inline bool can_fuse(const lc_record *call, lc_dtype dtype, uint32_t wanted)
{
    return (call->backend->can.fuses & wanted) == wanted && lc_is_floating(dtype);
}
/* The dtype in which a product computing in `dtype` takes a tensor: some backends' kernels convert float16 and bfloat16 as
 * they read and write them. for_product gives the tensor in that dtype, a new reference. */
static inline lc_dtype dtype_for_product(const lc_record *call, const lc_tensor *t, lc_dtype dtype)
{
    return call->backend->can.half & LC_HALF_MATMUL && lc_is_floating(dtype) && working_dtype((lc_dtype)t->dtype) == dtype
               ? (lc_dtype)t->dtype
               : dtype;
}
static inline lc_tensor *for_product(const lc_record *call, lc_tensor *t, lc_dtype dtype)
{
    return in_dtype(t, dtype_for_product(call, t, dtype));
}
/* Whether g and x make the gradients of a weight and of this bias by one call of _mm_sums: in half precision, without a graph
 * of the gradients, on a device that has a kernel for it. */
bool                     gives_sums(const lc_tensor *g, const lc_tensor *x, const lc_tensor *bias);
int                      matrices_fit(const lc_tensor *a, const lc_tensor *b); /* 2-d, and a's columns are b's rows */
int                      batches_fit(const lc_tensor *a, const lc_tensor *b);  /* the same for batches of them */
int                      matrix_fits_vector(const lc_tensor *a, const lc_tensor *b);
static inline lc_tensor *adjoint(lc_tensor *t) { return conj_of(lc_transpose(t, -2, -1)); }

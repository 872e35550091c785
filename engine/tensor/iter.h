/* iter: walk several tensors of one broadcast shape, row by row.
 *
 * lc_iter_prepare drops dimensions of size one, reorders the rest so that the innermost is the one every operand steps through most
 * finely (PyTorch's TensorIterator rule, so that output strides can be taken from the same order), and merges neighbours that every
 * operand steps through evenly. Contiguous operands of any rank become a single row. The caller handles one row: shape[ndim-1]
 * elements, operand k at ptr[k], its next element stride[k][ndim-1] bytes further on (0: broadcast).
 *
 * Threads take ranges of elements: each copies the prepared iter and walks lc_iter_range(begin, end). */
#pragma once
#include "tensor.h"

enum { LC_OPERANDS = 8 };
typedef struct {
    int     ndim, operands;
    char   *ptr[LC_OPERANDS];
    int64_t numel;
    int64_t shape[LC_MAX_DIMS], stride[LC_OPERANDS][LC_MAX_DIMS]; /* strides in bytes; entries past ndim are never read */
} lc_iter;

void lc_iter_start(lc_iter *it, int ndim, const int64_t *shape);
void lc_iter_add(lc_iter *it, const lc_tensor *t); /* t's shape must broadcast to the iteration's */
/* An operand with byte strides of its own, ndim of them. */
void lc_iter_add_raw(lc_iter *it, char *data, const int64_t *stride_bytes);
void lc_iter_prepare(lc_iter *it, bool reorder); /* reorder false: keep the order of dimensions (row-major walks) */

static inline int64_t lc_iter_row(const lc_iter *it) { return it->shape[it->ndim - 1]; }
static inline int64_t lc_iter_step(const lc_iter *it, int k) { return it->stride[k][it->ndim - 1]; }

/* Visit elements [begin, end) of the prepared order. row(ctx, ptr, stride, n): n elements, operand k at ptr[k], strides in bytes.
 * Returns the first non-zero result of row. */
typedef int (*lc_row_fn)(void *ctx, char *const *ptr, const int64_t *stride, int64_t n);
int lc_iter_range(const lc_iter *it, int64_t begin, int64_t end, lc_row_fn row, void *ctx);

/* The order TensorIterator would give an output of these inputs: strides for a new tensor of `shape`. Inputs broadcast to shape. */
void lc_output_strides(lc_tensor *const *in, int n_in, int ndim, const int64_t *shape, int64_t *stride);

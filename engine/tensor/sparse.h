/* Sparse tensors: a tensor whose elements are mostly zero, kept as the places and the values of the others.
 *
 * A sparse tensor is an lc_tensor with LC_SPARSE among its flags; its parts hang on `sparse`. Shape, dtype and device are those of the
 * whole. It has no memory of its own: `storage` is one read-only element that all sparse tensors share, and every stride is zero, so code
 * that walks one by mistake reads zeros and never past an end. lc_call takes such a call off the plain path (ops/sparse/dispatch.c), so no
 * kernel sees one.
 *
 * Parts are never written in place by ops: an in-place op makes new parts and the tensor takes them over (lc_tensor_become). Aliases
 * (detach, gradients) can therefore share them. Parts carry no history. History is the sparse tensor's own: the ops that take it apart and
 * put it together are recorded (ops/sparse/parts.c).
 *
 *   COO         index[0]: int64 (sparse dims, nnz), a column per entry; values (nnz, dense dims...)
 *   CSR, CSC    index[0]: where each row (column) starts, (batch..., rows + 1); index[1]: the column (row) of each entry, (batch..., nnz);
 *               values (batch..., nnz, dense dims...)
 *   BSR, BSC    the same of blocks: values (batch..., nnz, block rows, block columns, dense dims...) */
#pragma once
#include "tensor.h"

typedef enum { LC_STRIDED, LC_SPARSE_COO, LC_SPARSE_CSR, LC_SPARSE_CSC, LC_SPARSE_BSR, LC_SPARSE_BSC, LC_LAYOUTS } lc_layout;
extern const char *const lc_layout_names[LC_LAYOUTS];

typedef struct lc_sparse {
    lc_object  object;
    lc_layout  layout;
    bool       coalesced; /* COO: indices are sorted and none occurs twice */
    lc_tensor *index[2];  /* the second is NULL for COO */
    lc_tensor *values;
} lc_sparse;

static inline lc_layout lc_layout_of(const lc_tensor *t) { return t->flags & LC_SPARSE ? t->sparse->layout : LC_STRIDED; }
/* New reference. Parts are shared; what they have of history is left behind. Shapes must fit. */
lc_tensor         *lc_sparse_new(lc_layout layout, int ndim, const int64_t *shape, lc_tensor *const index[2], lc_tensor *values,
                                 bool coalesced);
static inline bool lc_is_blocked(lc_layout layout) { return layout == LC_SPARSE_BSR || layout == LC_SPARSE_BSC; }
static inline bool lc_is_by_row(lc_layout layout) { return layout == LC_SPARSE_CSR || layout == LC_SPARSE_BSR; }
static inline int  lc_sparse_dim(const lc_tensor *t)
{
    return t->sparse->layout == LC_SPARSE_COO ? (int)t->sparse->index[0]->shape[0] : 2;
}
static inline int lc_batch_dim(const lc_tensor *t)
{
    return t->sparse->layout == LC_SPARSE_COO ? 0 : t->sparse->index[0]->ndim - 1;
}
static inline int     lc_dense_dim(const lc_tensor *t) { return t->ndim - lc_sparse_dim(t) - lc_batch_dim(t); }
static inline int64_t lc_nnz(const lc_tensor *t) /* of one matrix of a batch */
{
    const lc_sparse *s = t->sparse;
    return s->layout == LC_SPARSE_COO ? s->index[0]->shape[1] : s->index[1]->shape[s->index[1]->ndim - 1];
}

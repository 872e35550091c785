/* What the ops of linear algebra share: checks with PyTorch's texts, specs of column-major results, operands for kernels, small formulas.
 *
 * Kernel ops are hidden and take batches of one shape; the public functions are composites that check, broadcast the batches and call them, so
 * every gradient stands above a kernel op. A kernel op that can fail on values (a singular matrix) returns info per matrix and takes `check`, the
 * name to raise LinAlgError under; empty: it does not raise. */
#pragma once
#include "../rules.h"
#include "../../backend/args_linalg.h"

/* Checks: -1 after lc_fail. */
int check_matrices(const lc_tensor *t, const char *function, const char *argument);
int check_square(const lc_tensor *t, const char *function, const char *argument); /* and check_matrices */
int check_floating(const lc_tensor *t, const char *function);                     /* no halves, no integers */
int check_same_dtype(const lc_tensor *a, const lc_tensor *b, const char *function, const char *first, const char *second);
int check_info(const lc_record *call, const lc_tensor *info, const char *function); /* LinAlgError with the batch's index */

/* Results: batch of `like` (its dimensions but the last `core`), then rows and columns, column-major; or a vector; or a number. */
int spec_matrices(const lc_record *call, lc_spec *out, lc_dtype dtype, const lc_tensor *like, int core, int64_t rows,
                  int64_t cols);
int spec_vectors(const lc_record *call, lc_spec *out, lc_dtype dtype, const lc_tensor *like, int core, int64_t n);
int spec_numbers(const lc_record *call, lc_spec *out, lc_dtype dtype, const lc_tensor *like, int core);
int spec_nothing(const lc_record *call, lc_spec *out, lc_dtype dtype); /* (0,): not computed */

/* Operands of kernels. core: 2 matrices, 1 vectors, 0 numbers. */
lc_matrices matrices_of(const lc_tensor *t, int core);
int64_t     batch_of(const lc_tensor *t, int core);

/* a and b expanded to one batch: the dimensions in front of the last `core_a` and `core_b`. Scoped. */
int broadcast_batches(lc_tensor *a, int core_a, lc_tensor *b, int core_b, const char *function, lc_tensor **a_out,
                      lc_tensor **b_out);

static inline int64_t rows_of_matrix(const lc_tensor *t) { return t->shape[t->ndim - 2]; }
static inline int64_t cols_of_matrix(const lc_tensor *t) { return t->shape[t->ndim - 1]; }
static inline int64_t fewer(const lc_tensor *t)
{
    return rows_of_matrix(t) < cols_of_matrix(t) ? rows_of_matrix(t) : cols_of_matrix(t);
}
static inline bool wants_grad(const lc_tensor *t) /* or may: inside vmap history is hidden */
{
    return t->flags & LC_BATCHED || (t->flags & LC_REQUIRES_GRAD && !(lc_modes & LC_NO_GRAD));
}

/* Formulas, all scoped; NULL in, NULL out. */
static inline lc_tensor *mT(lc_tensor *t) { return t ? lc_transpose(t, -2, -1) : NULL; }
static inline lc_tensor *mH(lc_tensor *t)
{
    lc_tensor *x = mT(t);
    return x ? conj_of(x) : NULL;
}
static inline lc_tensor *mm(lc_tensor *a, lc_tensor *b) { return a && b ? lc_matmul(a, b) : NULL; }
static inline lc_tensor *mm3(lc_tensor *a, lc_tensor *b, lc_tensor *c) { return mm(mm(a, b), c); }
static inline lc_tensor *diagonal_of(lc_tensor *t) { return t ? lc_diagonal(t, 0, -2, -1) : NULL; }
static inline lc_tensor *as_diagonal(lc_tensor *t) { return t ? lc_diag_embed(t, 0, -2, -1) : NULL; }
static inline lc_tensor *row_of(lc_tensor *t) { return t ? lc_unsqueeze(t, -2) : NULL; }    /* (..., n) as (..., 1, n) */
static inline lc_tensor *column_of(lc_tensor *t) { return t ? lc_unsqueeze(t, -1) : NULL; } /* (..., n) as (..., n, 1) */
static inline lc_tensor *part(lc_tensor *t, int dim, int64_t start, int64_t length)
{
    return t ? lc_narrow(t, dim, start, length) : NULL;
}
static inline bool is_given(const lc_tensor *t) { return t != LC_NONE; }
lc_tensor         *identity_like(const lc_tensor *t, int64_t n); /* (n, n) of t's dtype and device */
lc_tensor         *symmetrised(lc_tensor *t);                    /* t + t^H, the diagonal not doubled */

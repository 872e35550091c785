/* Products of several matrices or of vectors, powers as rows, and systems of equations between tensors. */
#include "linalg.h"

static int linalg_vecdot_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *y = in(1);
    if (!lc_is_differentiable(x->dtype))
        return lc_fail_int(LC_LucidError, "linalg.vecdot: Expected a floating point or complex tensor as input. Got %s",
                           lc_dtypes[x->dtype].name);
    if (x->dtype != y->dtype)
        return lc_fail_int(LC_LucidError, "linalg.vecdot: Expected x and y to have the same dtype, but found %s and %s instead",
                           lc_dtypes[x->dtype].name, lc_dtypes[y->dtype].name);
    lc_tensor *product = lc_mul(conj_of(x), y);
    return (out[0] = product ? lc_sum(product, &in[2].i, 1, false) : NULL) ? 0 : -1;
}
LC_OP(linalg_vecdot, .amp = LC_AMP_LOWER, .sig = "linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor",
      .doc = "The products of vectors, summed over dim; x is conjugated.", .py = "vecdot", .ns = "linalg", .out = true,
      .call = linalg_vecdot_call);

static int linalg_multi_dot_call(const lc_value *in, lc_tensor **out)
{
    int n = in[0].n;
    if (n < 2) return lc_fail_int(LC_LucidError, "multi_dot(): expected at least 2 tensors but got %d", n);
    LC_ARRAY(lc_tensor *, ts, n);
    if (!ts) return -1;
    memcpy(ts, in[0].ts, (size_t)n * sizeof *ts);
    bool first = ts[0]->ndim == 1, last = ts[n - 1]->ndim == 1;
    for (int i = 0; i < n; i++) {
        if (ts[i]->ndim != 2 && !(ts[i]->ndim == 1 && (i == 0 || i == n - 1)))
            return lc_fail_int(LC_ShapeMismatch, "multi_dot(): tensor %d must be 2D but got %dD", i, ts[i]->ndim);
        if (ts[i]->dtype != ts[0]->dtype)
            return lc_fail_int(LC_LucidError,
                               "multi_dot(): all tensors must have be the same dtype but tensor 0 is %s and tensor %d %s",
                               lc_dtypes[ts[0]->dtype].name, i, lc_dtypes[ts[i]->dtype].name);
    }
    if (first) ts[0] = lc_unsqueeze(ts[0], 0);
    if (last) ts[n - 1] = lc_unsqueeze(ts[n - 1], 1);
    for (int i = 0; i + 1 < n && ts[0] && ts[n - 1]; i++)
        if (cols_of_matrix(ts[i]) != rows_of_matrix(ts[i + 1]))
            return lc_fail_int(LC_ShapeMismatch, "multi_dot(): tensors %d and %d with shapes %s and %s cannot be multiplied", i,
                               i + 1, LC_SHAPE(ts[i]), LC_SHAPE(ts[i + 1]));
    lc_tensor *y = lc_chain_matmul(ts, n);
    if (last) y = lc_squeeze(y, (int64_t[]){ -1 }, 1);
    if (first) y = lc_squeeze(y, (int64_t[]){ 0 }, 1);
    return (out[0] = y) ? 0 : -1;
}
LC_OP(linalg_multi_dot, .sig = "linalg_multi_dot(tensors: list[Tensor]) -> Tensor",
      .doc = "The product of matrices, in the order that takes the fewest multiplications; the first and last may be vectors.",
      .py = "multi_dot", .ns = "linalg", .out = true, .call = linalg_multi_dot_call);

static int linalg_vander_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    int64_t    n, shape[LC_MAX_DIMS + 1];
    if (x->dtype == LC_b8) return lc_fail_int(LC_LucidError, "linalg.vander(): bool is not supported");
    if (x->ndim == 0 && !(x = lc_unsqueeze(x, 0))) return -1;
    if (!int_argument(&in[1], &n)) n = x->ndim ? x->shape[x->ndim - 1] : 1;
    else if (n <= 1) return lc_fail_int(LC_LucidError, "N must be greater than 1.");
    if (n < 1) n = 1;
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof *shape);
    shape[x->ndim] = n - 1;
    lc_tensor *column = column_of(x), *powers = lc_cumprod(lc_expand(column, shape, x->ndim + 1), -1, LC_ABSENT);
    if (!powers) return -1;
    lc_tensor *ones = lc_ones_like(column, LC_OF_DTYPE((lc_dtype)powers->dtype), LC_ABSENT, LC_ABSENT);
    return (out[0] = lc_cat((lc_tensor *[]){ ones, powers }, 2, -1)) ? 0 : -1;
}
LC_OP(linalg_vander, .sig = "linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor",
      .doc = "Powers of values as rows: 1, x, x^2, ...", .py = "vander", .ns = "linalg", .call = linalg_vander_call);

static int linalg_tensorinv_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *A = in(0);
    int64_t    ind = in[1].i, first = 1, rest = 1, shape[LC_MAX_DIMS];
    if (ind <= 0) return lc_fail_int(LC_LucidError, "Expected a strictly positive integer for 'ind'");
    for (int d = 0; d < A->ndim; d++) {
        *(d < ind ? &first : &rest) *= A->shape[d];
        shape[d < ind ? A->ndim - ind + d : d - ind] = A->shape[d];
    }
    if (first != rest || ind > A->ndim)
        return lc_fail_int(
            LC_ShapeMismatch,
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got %lld != %lld",
            (long long)rest, (long long)first);
    lc_tensor *square = lc_reshape(A, (int64_t[]){ first, rest }, 2);
    if (!square || check_floating(A, "linalg.tensorinv") < 0) return -1;
    return (out[0] = lc_reshape(lc__linalg_inv(square, "linalg.tensorinv").inverse, shape, A->ndim)) ? 0 : -1;
}
LC_OP(linalg_tensorinv, .sig = "linalg_tensorinv(A: Tensor, ind: int = 2) -> Tensor",
      .doc = "The inverse of a tensor as a map from its last dimensions to its first ind: tensordot(inverse, A, ind) is the "
             "identity.",
      .py = "tensorinv", .ns = "linalg", .out = true, .call = linalg_tensorinv_call, .amp = LC_AMP_CPU_FP32);

static int linalg_tensorsolve_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *A = in(0), *B = in(1);
    int64_t    to[LC_MAX_DIMS];
    if (check_floating(A, "linalg.tensorsolve") < 0) return -1;
    if (in[2].tag != LC_IS_none) {
        for (int i = 0; i < in[2].n; i++) to[i] = A->ndim - in[2].n + i;
        if (!(A = lc_movedim(A, in[2].is, in[2].n, to, in[2].n))) return -1;
    }
    int     lead = B->ndim < A->ndim ? B->ndim : A->ndim, left = A->ndim - lead;
    int64_t first = 1, rest = 1;
    for (int d = 0; d < lead; d++) first *= A->shape[d];
    for (int d = lead; d < A->ndim; d++) rest *= A->shape[d];
    if (first != rest)
        return lc_fail_int(
            LC_ShapeMismatch,
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
            "%lld != %lld",
            (long long)rest, (long long)first);
    lc_tensor *square = lc_reshape(A, (int64_t[]){ first, rest }, 2), *column = lc_reshape(B, (int64_t[]){ -1 }, 1);
    if (!square || !column || check_same_dtype(A, B, "linalg.tensorsolve", "A", "B") < 0) return -1;
    if (column->numel != rest)
        return lc_fail_int(LC_ShapeMismatch, "linalg.tensorsolve: Incompatible shapes %s and %s", LC_SHAPE(A), LC_SHAPE(B));
    return (out[0] = lc_reshape(lc_linalg_solve(square, column, true), A->shape + lead, left)) ? 0 : -1;
}
LC_OP(linalg_tensorsolve, .sig = "linalg_tensorsolve(A: Tensor, B: Tensor, dims: list[int] | None = None) -> Tensor",
      .doc = "X with tensordot(A, X, X.ndim) == B; dims of A are moved to the end first.", .py = "tensorsolve", .ns = "linalg",
      .out = true, .call = linalg_tensorsolve_call, .amp = LC_AMP_CPU_FP32);

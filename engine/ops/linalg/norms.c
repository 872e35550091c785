/* Norms of matrices, and condition numbers. Norms of vectors: ops/reduce/vector_norm.c. */
#include "linalg.h"
#include <math.h>

typedef struct { /* the arguments of a norm, however they were given */
    lc_tensor *A;
    int        d[2];
    bool       keep;
    lc_value   dtype;
} norm_of;
static int norm_args(norm_of *n, lc_tensor *A, const int64_t *dims, int n_dims, bool keep, lc_value dtype)
{
    static const char f[] = "linalg.matrix_norm";
    if (check_matrices(A, f, "A") < 0) return -1;
    if (!lc_is_differentiable(A->dtype))
        return lc_fail_int(LC_LucidError, "%s: Expected a floating point or complex tensor as input. Got %s", f,
                           lc_dtypes[A->dtype].name);
    if (n_dims != 2) return lc_fail_int(LC_ShapeMismatch, "%s: dim must be a 2-tuple. Got %d dimensions", f, n_dims);
    if (dim_index(dims[0], A->ndim, &n->d[0]) < 0 || dim_index(dims[1], A->ndim, &n->d[1]) < 0) return -1;
    if (n->d[0] == n->d[1])
        return lc_fail_int(LC_ShapeMismatch, "%s: dims must be different. Got (%lld, %lld)", f, (long long)dims[0],
                           (long long)dims[1]);
    if (dtype.tag == LC_IS_dtype && (!lc_is_differentiable(dtype.dt) || lc_is_complex(dtype.dt) != lc_is_complex(A->dtype)))
        return lc_fail_int(LC_LucidError, "%s: dtype should be floating point or complex as the input is, got %s for %s", f,
                           lc_dtypes[dtype.dt].name, LC_SHAPE(A));
    n->A = A, n->keep = keep, n->dtype = dtype;
    return 0;
}
static lc_tensor *singular_values(const norm_of *n) /* (..., k) */
{
    lc_tensor *A = n->dtype.tag == LC_IS_dtype ? lc_to(n->A, n->dtype.dt, false, false, LC_ABSENT) : n->A;
    return lc_linalg_svdvals(lc_movedim(A, (int64_t[]){ n->d[0], n->d[1] }, 2, (int64_t[]){ -2, -1 }, 2), NULL);
}
static lc_tensor *kept(const norm_of *n, lc_tensor *y)
{
    int low = n->d[0] < n->d[1] ? n->d[0] : n->d[1], high = n->d[0] < n->d[1] ? n->d[1] : n->d[0];
    return n->keep && y ? lc_unsqueeze(lc_unsqueeze(y, low), high) : y;
}
static lc_tensor *extreme(lc_tensor *y, int64_t dim, bool keep, bool largest)
{
    if (y && largest && !y->shape[dim < 0 ? y->ndim + dim : dim]) return lc_sum(y, &dim, 1, keep); /* of nothing: 0 */
    return largest ? lc_amax(y, &dim, 1, keep) : lc_amin(y, &dim, 1, keep);
}
static lc_tensor *norm_by_number(const norm_of *n, double ord)
{
    double size = fabs(ord);
    if (size == 2) {
        lc_tensor *s = singular_values(n);
        return kept(n, extreme(s, -1, false, ord > 0));
    }
    if (size != 1 && !isinf(ord)) return lc_fail(LC_LucidError, "linalg.matrix_norm: Order %g not supported.", ord);
    int        summed = isinf(ord) ? n->d[1] : n->d[0], other = isinf(ord) ? n->d[0] : n->d[1];
    lc_tensor *sums = lc_linalg_vector_norm(n->A, LC_I(1), (int64_t[]){ summed }, 1, n->keep, n->dtype);
    if (!n->keep && summed < other) other--;
    return extreme(sums, other, n->keep, ord > 0);
}
static lc_tensor *norm_by_name(const norm_of *n, const char *ord)
{
    if (!strcmp(ord, "fro")) return lc_linalg_vector_norm(n->A, LC_I(2), (int64_t[]){ n->d[0], n->d[1] }, 2, n->keep, n->dtype);
    if (strcmp(ord, "nuc")) return lc_fail(LC_LucidError, "linalg.matrix_norm: Order %s not supported.", ord);
    lc_tensor *s = singular_values(n);
    return s ? kept(n, lc_sum(s, (int64_t[]){ -1 }, 1, false)) : NULL;
}
static int linalg_matrix_norm_call(const lc_value *in, lc_tensor **out)
{
    norm_of n;
    if (norm_args(&n, in(0), in[2].is, in[2].n, in[3].b, in[4]) < 0) return -1;
    return (out[0] = norm_by_number(&n, lc_number_of(&in[1]))) ? 0 : -1;
}
static int linalg_matrix_norm_name_call(const lc_value *in, lc_tensor **out)
{
    norm_of n;
    if (norm_args(&n, in(0), in[2].is, in[2].n, in[3].b, in[4]) < 0) return -1;
    return (out[0] = norm_by_name(&n, in[1].s)) ? 0 : -1;
}
LC_OP(linalg_matrix_norm_name, .amp = LC_AMP_GPU_FP32,
      .sig = "linalg_matrix_norm_name(A: Tensor, ord: str = 'fro', dim: tuple[int, ...] = (-2, -1), keepdim: bool = False, *, "
             "dtype: dtype | None = "
             "None) -> Tensor",
      .doc = "The norm of matrices: 'fro', the root of the sum of squares; 'nuc', the sum of the singular values; 2 and -2, "
             "the largest and the "
             "smallest of them; 1, -1, inf and -inf, the largest or smallest sum of a column or of a row.",
      .py = "matrix_norm", .ns = "linalg", .out = true, .call = linalg_matrix_norm_name_call);
LC_OP(linalg_matrix_norm, .amp = LC_AMP_GPU_FP32,
      .sig = "linalg_matrix_norm(A: Tensor, ord: Number, dim: tuple[int, ...] = (-2, -1), keepdim: bool = False, *, dtype: "
             "dtype | None = None) -> "
             "Tensor",
      .doc = "The norm of matrices by a number.", .py = "matrix_norm", .ns = "linalg", .out = true,
      .call = linalg_matrix_norm_call);

/* ---- norm: of vectors or of matrices ---- */

static int linalg_norm_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *A = in(0);
    bool       has_ord = in[1].tag != LC_IS_none, has_dim = in[2].tag != LC_IS_none;
    int        n_dims = has_dim ? in[2].n : 0;
    if (has_dim && n_dims != 1 && n_dims != 2)
        return lc_fail_int(LC_ShapeMismatch, "linalg.norm: If dim is specified, it must be of length 1 or 2. Got %d", n_dims);
    if (!has_dim && has_ord && A->ndim != 1 && A->ndim != 2)
        return lc_fail_int(LC_ShapeMismatch,
                           "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got %dD.", A->ndim);
    if (has_ord && (n_dims == 2 || (!has_dim && A->ndim == 2))) {
        norm_of n;
        if (norm_args(&n, A, has_dim ? in[2].is : (int64_t[]){ 0, 1 }, 2, in[3].b, in[4]) < 0) return -1;
        return (out[0] = norm_by_number(&n, lc_number_of(&in[1]))) ? 0 : -1;
    }
    lc_value ord = has_ord ? in[1] : LC_I(2);
    return (out[0] = lc_linalg_vector_norm(A, ord, has_dim ? in[2].is : NULL, n_dims, in[3].b, in[4])) ? 0 : -1;
}
LC_OP(linalg_norm, .amp = LC_AMP_GPU_FP32,
      .sig = "linalg_norm(A: Tensor, ord: Number | None = None, dim: list[int] | None = None, keepdim: bool = False, *, dtype: "
             "dtype | None = None) "
             "-> Tensor",
      .doc = "The norm of vectors along one dim, or of matrices along two; without ord, of all values of dim as one vector.",
      .py = "norm", .ns = "linalg", .out = true, .call = linalg_norm_call);
static int linalg_norm_name_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *A = in(0);
    bool       has_dim = in[2].tag != LC_IS_none;
    norm_of    n;
    if (has_dim ? in[2].n != 2 : A->ndim != 2)
        return lc_fail_int(LC_ShapeMismatch, "linalg.norm: ord='%s' is a norm of matrices: dim must name two dimensions of %s",
                           in[1].s, LC_SHAPE(A));
    if (norm_args(&n, A, has_dim ? in[2].is : (int64_t[]){ 0, 1 }, 2, in[3].b, in[4]) < 0) return -1;
    return (out[0] = norm_by_name(&n, in[1].s)) ? 0 : -1;
}
LC_OP(linalg_norm_name, .amp = LC_AMP_GPU_FP32,
      .sig = "linalg_norm_name(A: Tensor, ord: str, dim: list[int] | None = None, keepdim: bool = False, *, dtype: dtype | "
             "None = None) -> Tensor",
      .doc = "The norm of matrices by its name.", .py = "norm", .ns = "linalg", .out = true, .call = linalg_norm_name_call);

/* ---- cond ---- */

static int cond(lc_tensor *A, const lc_value *number, const char *name, lc_tensor **out)
{
    static const char f[] = "linalg.cond";
    double            p = name ? 0 : lc_number_of(number);
    norm_of           n;
    if (check_matrices(A, f, "A") < 0 || check_floating(A, f) < 0) return -1;
    if (norm_args(&n, A, (int64_t[]){ -2, -1 }, 2, false, LC_ABSENT) < 0) return -1;
    if (name || fabs(p) != 2) {
        if (check_square(A, f, "A") < 0) return -1;
        if (!A->numel) {
            out[0] = lc_zeros(A->shape, A->ndim - 2, LC_OF_DTYPE(lc_real_of(A->dtype)),
                              (lc_value){ .tag = LC_IS_device, .dev = A->device });
            return out[0] ? 0 : -1;
        }
        lc__linalg_inv_out r = lc__linalg_inv(A, "");
        if (!r.inverse) return -1;
        lc_tensor *singular = column_of(column_of(lc_gt(r.info, LC_NUMBER(0))));
        lc_tensor *a = name ? norm_by_name(&n, name) : norm_by_number(&n, p);
        n.A = lc_masked_fill(r.inverse, singular, LC_NUMBER(INFINITY));
        return a && n.A && (out[0] = lc_mul(a, name ? norm_by_name(&n, name) : norm_by_number(&n, p))) ? 0 : -1;
    }
    if (!A->numel) {
        out[0] = lc_zeros(A->shape, A->ndim - 2, LC_OF_DTYPE(lc_real_of(A->dtype)),
                          (lc_value){ .tag = LC_IS_device, .dev = A->device });
        return out[0] ? 0 : -1;
    }
    lc_tensor *s = singular_values(&n), *most = s ? lc_select(s, -1, 0) : NULL, *least = s ? lc_select(s, -1, -1) : NULL;
    return (out[0] = p > 0 ? lc_div(most, least) : lc_div(least, most)) ? 0 : -1;
}
static int linalg_cond_call(const lc_value *in, lc_tensor **out)
{
    lc_value two = LC_I(2);
    return cond(in(0), in[1].tag == LC_IS_none ? &two : &in[1], NULL, out);
}
LC_OP(linalg_cond, .sig = "linalg_cond(A: Tensor, p: Number | None = None) -> Tensor",
      .doc = "The condition number: the norm p of A times that of its inverse; infinite for a singular A. p: a norm of "
             "matrix_norm, by default 2.",
      .py = "cond", .ns = "linalg", .out = true, .call = linalg_cond_call, .amp = LC_AMP_CPU_FP32);
COMPOSITE(linalg_cond_name, cond(in(0), NULL, in[1].s, out))
LC_OP(linalg_cond_name, .sig = "linalg_cond_name(A: Tensor, p: str) -> Tensor", .doc = "The condition number by a named norm.",
      .py = "cond", .ns = "linalg", .out = true, .call = linalg_cond_name_call, .amp = LC_AMP_CPU_FP32);

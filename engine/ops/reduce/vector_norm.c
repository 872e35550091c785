/* Vector norms over some or all dimensions, taken as one. The orders 1, 2 and the infinities have folds of their own, which
 * keep the precision of sums to the end; other orders are sums of powers. */
#include "reduce.h"
#include <math.h>

#define FOLD_OF_NORM .hidden = true, .shape = reduced, .kind = LC_KIND_REDUCTION, .run = reduction
LC_OP(norm_one, .sig = "norm_one(input: Tensor, dim: list[int] | None = None, keepdim: bool = False) -> Tensor",
      .doc = "Sum of absolute values.", FOLD_OF_NORM);
LC_OP(norm_two, .sig = "norm_two(input: Tensor, dim: list[int] | None = None, keepdim: bool = False) -> Tensor",
      .doc = "Root of the sum of squares.", FOLD_OF_NORM);
LC_OP(norm_max, .sig = "norm_max(input: Tensor, dim: list[int] | None = None, keepdim: bool = False) -> Tensor",
      .doc = "Largest absolute value.", FOLD_OF_NORM);
LC_OP(norm_min, .sig = "norm_min(input: Tensor, dim: list[int] | None = None, keepdim: bool = False) -> Tensor",
      .doc = "Smallest absolute value.", FOLD_OF_NORM);

static int norm_fits(const lc_tensor *x, double order, uint64_t mask, lc_dtype dtype)
{
    if (lc_class_of(x->dtype) < LC_FLOAT)
        return lc_fail_int(LC_LucidError, "linalg.vector_norm: Expected a floating point or complex tensor as input. Got %s",
                           lc_dtypes[x->dtype].name);
    if (lc_class_of(dtype) != lc_class_of(x->dtype) || lc_size_of(dtype) < lc_size_of(x->dtype))
        return lc_fail_int(LC_DtypeMismatch,
                           "linalg.vector_norm: the dtype of the input (%s) should be convertible without narrowing to the "
                           "specified dtype (%s)",
                           lc_dtypes[x->dtype].name, lc_dtypes[dtype].name);
    if (reduced_count(x, mask) == 0 && (order < 0 || isinf(order)))
        return lc_fail_int(LC_LucidError,
                           "linalg.vector_norm cannot compute the %g norm on an empty dimension because the operation does not "
                           "have an identity",
                           order);
    return 0;
}
static lc_tensor *sum_of_powers(lc_tensor *x, const int64_t *dims, int n, double order)
{
    lc_dtype   dtype = (lc_dtype)x->dtype;
    lc_tensor *wide = lc_to(x, working_dtype(dtype), false, false, LC_ABSENT);
    lc_tensor *sum = order == 0 ? lc_to(lc_count_nonzero(wide, dims, n), working_dtype(dtype), false, false, LC_ABSENT)
                                : lc_pow(lc_sum(lc_pow(lc_abs(wide), LC_NUMBER(order)), dims, n, false), LC_NUMBER(1 / order));
    return lc_to(sum, dtype, false, false, LC_ABSENT);
}
static int linalg_vector_norm_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *y;
    double     order = lc_number_of(&in[1]);
    int64_t    dims[LC_MAX_DIMS + 1], shape[LC_MAX_DIMS];
    uint64_t   mask;
    int        n = 0, ndim = 0;
    lc_dtype   dtype = in[4].tag == LC_IS_dtype ? in[4].dt : (lc_dtype)x->dtype;
    if (in[1].tag == LC_IS_complex)
        return lc_fail_int(LC_LucidError, "linalg.vector_norm: Expected a non-complex scalar as the order of norm.");
    if (dims_mask(&in[2], x->ndim, "linalg.vector_norm", &mask) < 0 || norm_fits(x, order, mask, dtype) < 0) return -1;
    for (int d = 0; d < x->ndim; d++) {
        bool gone = mask >> d & 1;
        if (gone) dims[n++] = d;
        if (!gone || in[3].b) shape[ndim++] = gone ? 1 : x->shape[d];
    }
    if (x->dtype != dtype) x = lc_to(x, dtype, false, false, LC_ABSENT);
    if (x && order != 0 && reduced_count(x, mask) == 1) /* exact, however large or small */
        return (out[0] = lc_reshape(lc_abs(x), shape, ndim)) ? 0 : -1;
    if (lc_is_complex(dtype) && order == 2 && x && x->ndim < LC_MAX_DIMS) dims[n++] = x->ndim, x = lc_view_as_real(x);
    else if (lc_is_complex(dtype)) x = lc_abs(x);
    if (!x) return -1;
    if (order == 1) y = lc_norm_one(x, dims, n, false);
    else if (order == 2) y = lc_norm_two(x, dims, n, false);
    else if (isinf(order)) y = order > 0 ? lc_norm_max(x, dims, n, false) : lc_norm_min(x, dims, n, false);
    else y = sum_of_powers(x, dims, n, order);
    return (out[0] = !y || y->ndim == ndim ? y : lc_reshape(y, shape, ndim)) ? 0 : -1;
}

/* Where the norm is not differentiable (at zero, at ties) these are PyTorch's subgradients. */
static lc_tensor *zero_where(lc_tensor *t, lc_tensor *condition) { return lc_masked_fill(t, condition, LC_INTEGER(0)); }
static lc_tensor *norm_slope(lc_tensor *g, lc_tensor *x, lc_tensor *norm, double p, const lc_value *dim)
{
    int64_t  dims[LC_MAX_DIMS];
    uint64_t mask;
    int      n = 0;
    if (p == 0) return LC_NONE;
    if (p == 1) return lc_mul(lc_sgn(x), g);
    if (p == 2) return lc_mul(g, zero_where(lc_div(x, norm), lc_eq(norm, LC_INTEGER(0))));
    lc_tensor *size = lc_abs(x);
    if (isinf(p)) {
        if (dims_mask(dim, x->ndim, "backward", &mask) < 0) return NULL;
        for (int d = 0; d < x->ndim; d++)
            if (mask >> d & 1) dims[n++] = d;
        lc_tensor *found = lc_logical_or(lc_eq(size, norm), lc_isnan(size));
        return lc_mul(lc_sgn(x), lc_mul(lc_div(g, lc_sum(found, dims, n, true)), found));
    }
    if (p < 1) {
        lc_tensor *steep = zero_where(lc_pow(size, LC_NUMBER(p - 1)), lc_eq(x, LC_INTEGER(0)));
        return lc_mul(lc_mul(lc_mul(lc_sgn(x), steep), g), lc_pow(norm, LC_NUMBER(1 - p)));
    }
    lc_tensor *scale = zero_where(lc_div(g, lc_pow(norm, LC_NUMBER(p - 1))), lc_eq(norm, LC_INTEGER(0)));
    if (p < 2) return lc_mul(lc_mul(lc_sgn(x), lc_pow(size, LC_NUMBER(p - 1))), scale);
    return lc_mul(lc_mul(x, lc_pow(size, LC_NUMBER(p - 2))), scale);
}
GRAD(linalg_vector_norm)
{
    lc_tensor *slope =
        norm_slope(restored(g[0], in(0), &in[2]), in(0), restored(y[0], in(0), &in[2]), lc_number_of(&in[1]), &in[2]);
    dx[0] = slope && slope != LC_NONE && slope->dtype != in(0)->dtype
                ? lc_to(slope, (lc_dtype)in(0)->dtype, false, false, LC_ABSENT)
                : slope;
}
LC_OP(linalg_vector_norm, .amp = LC_AMP_GPU_FP32, .batching = LC_BATCH_DIMS, .py = "vector_norm", .ns = "linalg",
      .sig = "linalg_vector_norm(x: Tensor, ord: Number = 2, dim: list[int] | None = None, keepdim: bool = False, *, dtype: "
             "dtype | None = None) -> Tensor",
      .doc = "The norm of vectors: (sum |x|^ord)^(1/ord).", .out = true, .call = linalg_vector_norm_call,
      .grad = linalg_vector_norm_grad, .saves = IN(0) | OUT(0));

/* ---- norm: the older interface ---- */

static const int64_t *dims_of(const lc_value *v) { return v->tag == LC_IS_none ? NULL : v->is; }
static int            dims_count(const lc_value *v) { return v->tag == LC_IS_none ? 0 : v->n; }
static int            nuclear(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    int64_t    to[] = { -2, -1 }, all[] = { 0, 1 };
    int        d[2];
    if (dims_count(&in[2]) != 2 && (in[2].tag != LC_IS_none || x->ndim != 2))
        return lc_fail_int(LC_ShapeMismatch, "norm: the nuclear norm is of matrices: dim must name two dimensions of %s",
                           LC_SHAPE(x));
    const int64_t *dims = in[2].tag == LC_IS_none ? all : in[2].is;
    if (dim_index(dims[0], x->ndim, &d[0]) < 0 || dim_index(dims[1], x->ndim, &d[1]) < 0) return -1;
    if (in[4].tag == LC_IS_dtype) x = lc_to(x, in[4].dt, false, false, LC_ABSENT);
    if (!x || lc_class_of(x->dtype) < LC_FLOAT)
        return x ? lc_fail_int(LC_DtypeMismatch, "norm: the nuclear norm is of floating point or complex numbers, got %s",
                               LC_SHAPE(x))
                 : -1;
    lc_tensor *y = lc_linalg_svdvals(lc_movedim(x, dims, 2, to, 2), NULL);
    y = y ? lc_sum(y, (int64_t[]){ -1 }, 1, false) : NULL;
    for (int k = 0, e = d[0] < d[1] ? 0 : 1; y && in[3].b && k < 2; k++, e = !e) y = lc_unsqueeze(y, d[e]);
    return (out[0] = y) ? 0 : -1;
}
static int norm_call(const lc_value *in, lc_tensor **out)
{
    if (!strcmp(in[1].s, "nuc")) return nuclear(in, out);
    if (strcmp(in[1].s, "fro") || dims_count(&in[2]) > 2)
        return lc_fail_int(LC_LucidError, "norm: p is '%s', and dim names %d dimensions: only 'fro' of at most two is a norm",
                           in[1].s, dims_count(&in[2]));
    return (out[0] = lc_linalg_vector_norm(in(0), LC_I(2), dims_of(&in[2]), dims_count(&in[2]), in[3].b, in[4])) ? 0 : -1;
}
static int norm_of_order_call(const lc_value *in, lc_tensor **out)
{
    lc_value order = in[1].tag == LC_IS_none ? LC_I(2) : in[1];
    return (out[0] = lc_linalg_vector_norm(in(0), order, dims_of(&in[2]), dims_count(&in[2]), in[3].b, in[4])) ? 0 : -1;
}
LC_OP(norm, .amp = LC_AMP_GPU_FP32, .strict_out = true,
      .sig =
          "norm(input: Tensor, p: str = 'fro', dim: list[int] | None = None, keepdim: bool = False, *, dtype: dtype | None = "
          "None) -> Tensor",
      .doc = "The Frobenius norm, the root of the sum of squares, or of matrices the nuclear norm (p 'nuc'), the sum of "
             "singular values.",
      .method = true, .out = true, .call = norm_call);
LC_OP(norm_of_order, .amp = LC_AMP_GPU_FP32, .strict_out = true, .py = "norm",
      .sig = "norm_of_order(input: Tensor, p: Number | None, dim: list[int] | None = None, keepdim: bool = False, *, dtype: "
             "dtype | None = None) -> Tensor",
      .doc = "The norm of order p.", .method = true, .out = true, .call = norm_of_order_call);

static int dist_call(const lc_value *in, lc_tensor **out)
{
    return (out[0] = lc_linalg_vector_norm(lc_sub(in(0), in(1)), in[2], NULL, 0, false, LC_ABSENT)) ? 0 : -1;
}
LC_OP(dist, .amp = LC_AMP_GPU_FP32, .sig = "dist(input: Tensor, other: Tensor, p: Number = 2) -> Tensor",
      .doc = "The norm of input - other.", .method = true, .out = true, .call = dist_call);

/* Slices along dim whose norm exceeds maxnorm are scaled down to it. */
static int renorm_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    double     order = lc_number_of(&in[1]), limit = lc_number_of(&in[3]);
    int64_t    dims[LC_MAX_DIMS];
    int        d, n = 0;
    if (in[1].tag == LC_IS_complex) return lc_fail_int(LC_LucidError, "renorm: p must be real-valued");
    if (!(order > 0)) return lc_fail_int(LC_LucidError, "renorm: non-positive-norm not supported");
    if (in[3].tag == LC_IS_complex) return lc_fail_int(LC_LucidError, "renorm: maxnorm must be real-valued");
    if (!(limit >= 0)) return lc_fail_int(LC_LucidError, "renorm: expected maxnorm to be >= 0 but got %g", limit);
    if (x->ndim < 2)
        return lc_fail_int(LC_ShapeMismatch, "renorm: input needs at least 2 dimensions, got %d dimensions", x->ndim);
    if (dim_index(in[2].i, x->ndim, &d) < 0) return -1;
    for (int e = 0; e < x->ndim; e++)
        if (e != d) dims[n++] = e;
    lc_dtype   wide = working_dtype((lc_dtype)x->dtype);
    lc_tensor *norm =
        lc_linalg_vector_norm(x, in[1], dims, n, true, lc_class_of(wide) < LC_FLOAT ? LC_ABSENT : LC_OF_DTYPE(wide));
    lc_tensor *scale = lc_mul(LC_NUMBER(limit), lc_reciprocal(lc_add(norm, LC_NUMBER(1e-7))));
    lc_tensor *factor = lc_where(lc_gt(norm, LC_NUMBER(limit)), scale, LC_NUMBER(1)), *y = lc_mul(x, factor);
    if (y && y->dtype != x->dtype) y = lc_to(y, (lc_dtype)x->dtype, false, false, LC_ABSENT);
    return (out[0] = lc_contiguous(y, LC_CONTIGUOUS_FORMAT)) ? 0 : -1;
}
LC_OP(renorm, .amp = LC_AMP_GPU_FP32, .strict_out = true,
      .sig = "renorm(input: Tensor, p: Number, dim: int, maxnorm: Number) -> Tensor",
      .doc = "Slices along dim whose norm of order p exceeds maxnorm are scaled down to it.", .method = true, .out = true,
      .call = renorm_call);
static int renorm__call(const lc_value *in, lc_tensor **out)
{
    lc_value before[] = { in[0], in[1], in[2], in[3] }; /* the gradient reads values that are about to be overwritten */
    if (!(before[0].t = lc_clone(in(0), LC_PRESERVE_FORMAT)) || renorm_call(before, out) < 0) return -1;
    return (out[0] = lc_copy_(in(0), out[0], false)) ? 0 : -1;
}
LC_OP(renorm_, .sig = "renorm_(input: Tensor, p: Number, dim: int, maxnorm: Number) -> Tensor", .doc = "In-place renorm.",
      .method = true, .function = false, .writes = IN(0), .call = renorm__call);

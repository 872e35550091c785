/* cdist: distances between all pairs of rows, batch by batch. Euclidean distances of many rows come from one matrix product
 * (|x|^2 - 2 x.y + |y|^2): faster, and less exact for close rows. PyTorch's rule decides which is used. */
#include "matmul.h"
#include <math.h>

static int cdist_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *a = call->in[0], *b = call->in[1];
    return spec_shape(call, out, call->dtype, 3, (int64_t[]){ a->shape[0], a->shape[1], b->shape[1] });
}
static int cdist_run(const lc_record *call)
{
    lc_dtype   dtype = call->dtype;
    lc_tensor *a = packed(call->in[0], dtype), *b = packed(call->in[1], dtype);
    int        rc = a && b ? run_kernel_with(call, &(lc_distance_args){ call->out[0], a, b, call->args[2].f }) : -1;
    return lc_release(a), lc_release(b), rc;
}

static lc_tensor *sign_or_nan(lc_tensor *x)
{
    return lc_add(lc_clamp(lc_ceil(x), LC_INTEGER(0), LC_INTEGER(1)), lc_clamp(lc_floor(x), LC_INTEGER(-1), LC_INTEGER(0)));
}
/* |x - y|^(p - 1) signed, over dist^(p - 1): g's share of every difference, (batch, rows of x, rows of y, columns). */
static lc_tensor *shares(lc_tensor *g, lc_tensor *dist, lc_tensor *x, lc_tensor *y, double p)
{
    lc_tensor *zero = LC_INTEGER(0), *diff = lc_sub(lc_unsqueeze(x, 2), lc_unsqueeze(y, 1));
    lc_tensor *size = lc_abs(diff), *d = lc_unsqueeze(dist, 3), *still = lc_eq(d, zero), *share;
    g = lc_unsqueeze(g, 3);
    if (p == 1 || isinf(p)) still = lc_bitwise_and(still, lc_eq(g, zero)); /* unused pairs (pdist) */
    if (p == 1) share = sign_or_nan(diff);
    else if (isinf(p)) { /* infinity norm: the largest differences */
        lc_tensor *smaller = lc_clamp_max(lc_ceil(lc_abs(lc_sub(size, d))), LC_INTEGER(1));
        share = lc_mul(sign_or_nan(diff), lc_sub(LC_INTEGER(1), smaller));
    } else {
        if (p < 1) still = lc_bitwise_or(still, lc_eq(size, zero));
        lc_tensor *ratio = lc_div(lc_where(still, LC_INTEGER(1), size), lc_where(still, LC_INTEGER(1), d));
        share = lc_mul(lc_sign(diff), lc_pow(ratio, LC_NUMBER(p - 1)));
    }
    return lc_mul(g, lc_where(still, zero, share)); /* no gradient where rows coincide */
}
GRAD(_cdist)
{
    double     p = in[2].f;
    lc_tensor *x = in(0), *y2 = in(1);
    if (p == 0 || !x->shape[2]) {
        dx[0] = zeros_like(x), dx[1] = zeros_like(y2);
        return;
    }
    if (p == 2) { /* by products: sum over j of r_ij (x_i - y_j) */
        lc_tensor *zero = LC_INTEGER(0), *still = lc_eq(y[0], zero);
        lc_tensor *r = lc_where(still, zero, lc_div(g[0], lc_where(still, LC_INTEGER(1), y[0])));
        if (need[0]) dx[0] = lc_sub(lc_mul(x, lc_sum(r, (int64_t[]){ 2 }, 1, true)), lc_bmm(r, y2));
        r = lc_transpose(r, 1, 2);
        if (need[1]) dx[1] = lc_sub(lc_mul(y2, lc_sum(r, (int64_t[]){ 2 }, 1, true)), lc_bmm(r, x));
        return;
    }
    lc_tensor *each = shares(g[0], y[0], x, y2, p);
    if (need[0]) dx[0] = lc_sum(each, (int64_t[]){ 2 }, 1, false);
    if (need[1]) dx[1] = lc_neg(lc_sum(each, (int64_t[]){ 1 }, 1, false));
}
LC_OP(_cdist, .sig = "_cdist(x1: Tensor, x2: Tensor, p: float) -> Tensor", .doc = "Distances of rows in equal batches.",
      .hidden = true, .shape = cdist_shape, .run = cdist_run, .grad = _cdist_grad, .saves = IN(0) | IN(1) | OUT(0));

static int euclidean_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *a = in(0), *b = in(1);
    int64_t    last[] = { 2 };
    lc_tensor *norm_a = lc_sum(lc_square(a), last, 1, true), *norm_b = lc_sum(lc_square(b), last, 1, true);
    if (!norm_a || !norm_b) return -1;
    lc_tensor *one_a = lc_add(zeros_like(norm_a), LC_INTEGER(1)), *one_b = lc_add(zeros_like(norm_b), LC_INTEGER(1));
    lc_tensor *left = lc_cat((lc_tensor *[]){ lc_mul(a, LC_INTEGER(-2)), norm_a, one_a }, 3, 2);
    lc_tensor *right = lc_cat((lc_tensor *[]){ b, one_b, norm_b }, 3, 2);
    lc_tensor *squares = lc_bmm(left, lc_transpose(right, 1, 2));
    return (out[0] = lc_sqrt(lc_clamp_min(squares, LC_INTEGER(0)))) ? 0 : -1;
}
LC_OP(_euclidean, .sig = "_euclidean(x1: Tensor, x2: Tensor, p: float) -> Tensor",
      .doc = "Euclidean distances of rows in equal batches, by one product.", .hidden = true, .call = euclidean_call,
      .grad = _cdist_grad, .saves = IN(0) | IN(1) | OUT(0));

static int product_mode(const char *mode, bool *always, bool *never)
{
    *always = !strcmp(mode, "use_mm_for_euclid_dist"), *never = !strcmp(mode, "donot_use_mm_for_euclid_dist");
    if (*always || *never || !strcmp(mode, "use_mm_for_euclid_dist_if_necessary")) return 0;
    return lc_fail_int(LC_ValueError, "%s is not a valid value for compute_mode", mode);
}
static int cdist_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *a = in(0), *b = in(1);
    double     p = in[2].f;
    bool       always, never;
    int64_t    shape[LC_MAX_DIMS], batch = 1;
    if (product_mode(in[3].s, &always, &never) < 0) return -1;
    if (a->ndim < 2 || b->ndim < 2)
        return lc_fail_int(LC_ShapeMismatch, "cdist only supports at least 2D tensors, got %s and %s", LC_SHAPE(a),
                           LC_SHAPE(b));
    if (!lc_is_floating(a->dtype) || !lc_is_floating(b->dtype))
        return lc_fail_int(LC_DtypeMismatch, "cdist only supports floating-point dtypes, got %s and %s", LC_SHAPE(a),
                           LC_SHAPE(b));
    if (a->shape[a->ndim - 1] != b->shape[b->ndim - 1])
        return lc_fail_int(LC_ShapeMismatch, "X1 and X2 must have the same number of columns. X1: %lld X2: %lld",
                           (long long)a->shape[a->ndim - 1], (long long)b->shape[b->ndim - 1]);
    if (!(p >= 0)) return lc_fail_int(LC_LucidError, "cdist only supports non-negative p values");
    int     na = a->ndim - 2, nb = b->ndim - 2, n = na > nb ? na : nb;
    int64_t rows = a->shape[na], columns = b->shape[nb], m = a->shape[na + 1];
    for (int d = 0; d < n; d++) {
        int64_t x = d < n - na ? 1 : a->shape[d - (n - na)], y = d < n - nb ? 1 : b->shape[d - (n - nb)];
        if (x != y && x != 1 && y != 1)
            return lc_fail_int(LC_ShapeMismatch, "cdist: the batches of %s and %s do not broadcast", LC_SHAPE(a), LC_SHAPE(b));
        batch *= shape[d] = x == 1 ? y : x;
    }
    if (a->dtype != b->dtype) { /* PyTorch does not check empty inputs */
        if (batch && rows && columns && m)
            return lc_fail_int(LC_DtypeMismatch, "cdist: expected inputs of one dtype, got %s and %s", LC_SHAPE(a),
                               LC_SHAPE(b));
        b = lc_to(b, (lc_dtype)a->dtype, false, false, LC_ABSENT);
    }
    shape[n] = rows, shape[n + 1] = m;
    a = lc_reshape(lc_expand(a, shape, n + 2), (int64_t[]){ batch, rows, m }, 3);
    shape[n] = columns;
    b = lc_reshape(lc_expand(b, shape, n + 2), (int64_t[]){ batch, columns, m }, 3);
    bool       by_products = p == 2 && m && batch && rows && columns && (always || (!never && (rows > 25 || columns > 25)));
    lc_tensor *made = by_products ? lc__euclidean(a, b, p) : lc__cdist(a, b, p);
    shape[n] = rows, shape[n + 1] = columns;
    return (out[0] = lc_reshape(made, shape, n + 2)) ? 0 : -1;
}
LC_OP(
    cdist,
    .sig = "cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = 'use_mm_for_euclid_dist_if_necessary') -> Tensor",
    .doc = "The p-norm distances between the rows of two tensors, every pair of them.", .amp = LC_AMP_FP32, .call = cdist_call);

/* ---- pdist: the same between the rows of one tensor, each pair once: (0, 1), (0, 2), ..., (1, 2), ... ---- */
static int pdist_shape(const lc_record *call, lc_spec *out)
{
    int64_t n = call->in[0]->shape[0], pairs = n * (n - 1) / 2;
    return spec_shape(call, out, call->dtype, 1, &pairs);
}
static int pdist_run(const lc_record *call)
{
    lc_tensor *x = packed(call->in[0], call->dtype);
    int        rc = x ? run_kernel_with(call, &(lc_distance_args){ call->out[0], x, NULL, call->args[1].f }) : -1;
    return lc_release(x), rc;
}
/* The gradient of cdist(x, x), of whose distances only those above the diagonal count. */
GRAD(_pdist)
{
    lc_tensor *x = in(0), *index, *square[2], *each[2], *of[] = { g[0], y[0] };
    int64_t    n = x->shape[0];
    index = lc_triu_indices(n, n, 1, LC_OF_DTYPE(LC_i64), (lc_value){ .tag = LC_IS_device, .dev = x->device });
    if (!index) return;
    for (int k = 0; k < 2; k++) {
        lc_tensor *where[] = { lc_select(index, 0, 0), lc_select(index, 0, 1) };
        lc_tensor *zeros = lc_zeros((int64_t[]){ n, n }, 2, LC_OF_DTYPE((lc_dtype)x->dtype),
                                    (lc_value){ .tag = LC_IS_device, .dev = x->device });
        if (!(square[k] = lc_unsqueeze(lc_index_put(zeros, where, 2, of[k], false), 0))) return;
    }
    lc_tensor *rows = lc_unsqueeze(x, 0);
    lc_value   args[] = { { .tag = LC_IS_tensor, .t = rows }, { .tag = LC_IS_tensor, .t = rows }, in[1] };
    if (!rows) return;
    each[0] = each[1] = NULL;
    _cdist_grad(&square[0], &square[1], args, (const bool[]){ true, true }, each);
    if (each[0] && each[1]) dx[0] = lc_select(lc_add(each[0], each[1]), 0, 0);
}
LC_OP(_pdist, .sig = "_pdist(input: Tensor, p: float) -> Tensor", .doc = "Distances of each pair of rows.", .hidden = true,
      .promote = LC_NO_PROMOTION, .shape = pdist_shape, .run = pdist_run, .grad = _pdist_grad, .saves = IN(0) | OUT(0));
static int pdist_call(const lc_value *in, lc_tensor **out)
{
    const lc_tensor *x = in(0);
    if (x->ndim != 2) return lc_fail_int(LC_ShapeMismatch, "pdist only supports 2D tensors, got: %dD", x->ndim);
    if (!lc_is_floating(x->dtype)) return lc_fail_int(LC_DtypeMismatch, "pdist only supports floating-point dtypes");
    if (!(in[1].f >= 0)) return lc_fail_int(LC_LucidError, "pdist only supports non-negative p values");
    if (lc_size_of(x->dtype) < 4)
        return lc_fail_int(LC_NotImplementedError, "pdist is not implemented for %s", lc_dtypes[x->dtype].name);
    return (out[0] = lc__pdist(in(0), in[1].f)) ? 0 : -1;
}
LC_OP(pdist, .amp = LC_AMP_GPU_FP32, .sig = "pdist(input: Tensor, p: float = 2.0) -> Tensor",
      .doc = "The p-norm distances between the rows of a matrix, each pair once.", .promote = LC_NO_PROMOTION,
      .call = pdist_call);

/* Products over chosen dimensions, as permutations and reshapes around one matrix product; and products of all pairs. */
#include "matmul.h"

/* ---- tensordot, inner ---- */
static int tensordot_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *a = in(0), *b = in(1);
    uint64_t   mask[2];
    int64_t    order[2][LC_MAX_DIMS], shape[2 * LC_MAX_DIMS], size[2] = { 1, 1 }, inner = 1;
    lc_value   dtype = LC_OF_DTYPE((lc_dtype)a->dtype);
    int        n = in[2].n, free_a = 0, free_b = 0, ndim = 0, d, e;
    if (n != in[3].n) return lc_fail_int(LC_ShapeMismatch, "both dimension lists should have same length");
    if (a->dtype != b->dtype)
        return lc_fail_int(LC_DtypeMismatch, "tensordot(): expected both inputs to have same dtype, but got %s and %s",
                           LC_SHAPE(a), LC_SHAPE(b));
    mask[0] = mask[1] = 0;
    if (n && (dims_mask(&in[2], a->ndim, "tensordot", &mask[0]) < 0 || dims_mask(&in[3], b->ndim, "tensordot", &mask[1]) < 0))
        return -1;
    for (int i = 0; i < n; i++) {
        if (dim_index(in[2].is[i], a->ndim, &d) < 0 || dim_index(in[3].is[i], b->ndim, &e) < 0) return -1;
        int64_t x = a->ndim ? a->shape[d] : 1, y = b->ndim ? b->shape[e] : 1;
        if (x != y && x != 1 && y != 1)
            return lc_fail_int(
                LC_ShapeMismatch,
                "contracted dimensions need to match, but first has size %lld in dim %d and second has size %lld in dim %d",
                (long long)x, d, (long long)y, e);
        if (x != y && y == 1)
            a = lc_sum_dtype(a, (int64_t[]){ d }, 1, true, dtype); /* size 1 against n: sum the other operand over it */
        else if (x != y) b = lc_sum_dtype(b, (int64_t[]){ e }, 1, true, dtype);
        if (!a || !b) return -1;
        inner *= x == 1 || y == 1 ? 1 : x;
    }
    if (a->ndim - n + b->ndim - n > LC_MAX_DIMS)
        return lc_fail_int(LC_ValueError, "tensordot: more than %d dimensions", LC_MAX_DIMS);
    for (d = 0; d < a->ndim; d++)
        if (!(mask[0] >> d & 1)) order[0][free_a++] = d, size[0] *= shape[ndim++] = a->shape[d];
    for (int i = 0; i < n && a->ndim; i++) dim_index(in[2].is[i], a->ndim, &d), order[0][free_a + i] = d;
    for (int i = 0; i < n && b->ndim; i++) dim_index(in[3].is[i], b->ndim, &d), order[1][i] = d;
    for (d = 0; d < b->ndim; d++)
        if (!(mask[1] >> d & 1)) order[1][n + free_b++] = d, size[1] *= shape[ndim++] = b->shape[d];
    bool       one = size[0] == 1 && size[1] == 1 && lc_class_of(a->dtype) >= LC_FLOAT; /* a 0-d result, as in PyTorch */
    int64_t    rows[] = { size[0], inner }, columns[] = { inner, size[1] };
    lc_tensor *left = lc_reshape(a->ndim ? lc_permute(a, order[0], a->ndim) : a, rows + one, 2 - one);
    lc_tensor *right = lc_reshape(b->ndim ? lc_permute(b, order[1], b->ndim) : b, columns, 2 - one);
    if (one) return (out[0] = lc_reshape(lc_dot(left, right), shape, ndim)) ? 0 : -1;
    return (out[0] = lc_reshape(lc_mm(left, right), shape, ndim)) ? 0 : -1;
}
LC_OP(tensordot, .amp = LC_AMP_GPU_WIDEST, .strict_out = true,
      .sig = "tensordot(input: Tensor, other: Tensor, dims_self: list[int], dims_other: list[int]) -> Tensor",
      .doc = "Products summed over pairs of dimensions.", .out = true, .call = tensordot_call);

static int inner_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *a = in(0), *b = in(1);
    if (!a->ndim || !b->ndim) return (out[0] = lc_mul(a, b)) ? 0 : -1;
    if (a->dtype != b->dtype)
        return lc_fail_int(LC_DtypeMismatch, "inner(): expected both inputs to have same dtype, but got %s and %s", LC_SHAPE(a),
                           LC_SHAPE(b));
    if (a->shape[a->ndim - 1] != b->shape[b->ndim - 1])
        return lc_fail_int(LC_ShapeMismatch,
                           "inner() the last dimension must match on both input tensors but got shapes %s and %s",
                           LC_SIZES(a->shape, a->ndim), LC_SIZES(b->shape, b->ndim));
    return (out[0] = lc_tensordot(a, b, (int64_t[]){ -1 }, 1, (int64_t[]){ -1 }, 1)) ? 0 : -1;
}
LC_OP(inner, .strict_out = true, .sig = "inner(input: Tensor, other: Tensor) -> Tensor",
      .doc = "The products of the last dimensions, summed, for every pair of the others.", .method = true, .out = true,
      .call = inner_call);

/* ---- kron ---- */
static int kron_call(const lc_value *in, lc_tensor **out)
{
    int     n = in(0)->ndim > in(1)->ndim ? in(0)->ndim : in(1)->ndim;
    int64_t shape[2][LC_MAX_DIMS], whole[LC_MAX_DIMS];
    if (2 * n > LC_MAX_DIMS) return lc_fail_int(LC_ValueError, "kron: more than %d dimensions", LC_MAX_DIMS / 2);
    for (int d = 0; d < n; d++) {
        int     a = d - (n - in(0)->ndim), b = d - (n - in(1)->ndim);
        int64_t x = a < 0 ? 1 : in(0)->shape[a], y = b < 0 ? 1 : in(1)->shape[b];
        shape[0][2 * d] = x, shape[0][2 * d + 1] = 1;
        shape[1][2 * d] = 1, shape[1][2 * d + 1] = y;
        if (__builtin_mul_overflow(x, y, &whole[d])) return lc_fail_int(LC_OutOfMemory, "kron: the result is too large");
    }
    lc_tensor *pairs = lc_mul(lc_reshape(in(0), shape[0], 2 * n), lc_reshape(in(1), shape[1], 2 * n));
    return (out[0] = lc_reshape(pairs, whole, n)) ? 0 : -1;
}
LC_OP(kron, .sig = "kron(input: Tensor, other: Tensor) -> Tensor",
      .doc = "Kronecker product: other, scaled by every element of input, in its place.", .method = true, .out = true,
      .call = kron_call);

/* ---- cross ---- */
static int cross_dim(const lc_record *call, int ndim, int *d)
{
    int64_t dim;
    if (int_argument(&call->args[2], &dim)) return dim_index(dim, ndim, d);
    for (*d = 0; *d < ndim; ++*d)
        if (call->in[0]->shape[*d] == 3) return 0;
    return lc_fail_int(LC_ShapeMismatch, "no dimension of size 3 in input");
}
static int cross_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *a = call->in[0], *b = call->in[1];
    int              d;
    if (a->ndim != b->ndim)
        return lc_fail_int(LC_ShapeMismatch, "linalg.cross: inputs must have the same number of dimensions.");
    if (cross_dim(call, a->ndim, &d) < 0) return -1;
    if (!a->ndim || a->shape[d] != 3 || b->shape[d] != 3)
        return lc_fail_int(LC_ShapeMismatch, "linalg.cross: inputs dimension %d must have length 3. Got %s and %s", d,
                           LC_SHAPE(a), LC_SHAPE(b));
    if (a->dtype != b->dtype)
        return lc_fail_int(LC_DtypeMismatch, "cross: expected inputs of one dtype, got %s and %s", LC_SHAPE(a), LC_SHAPE(b));
    if (broadcast(call, out) < 0) return -1;
    return out->order = LC_ORDER_CONTIGUOUS, 0;
}
static lc_tensor *at(lc_tensor *t, int d, int i) /* new reference: one component, broadcast */
{
    int64_t shape[LC_MAX_DIMS];
    memcpy(shape, t->shape, (size_t)t->ndim * sizeof *shape);
    shape[d] = 1;
    return lc_tensor_view(t, t->ndim, shape, t->stride, i % 3 * t->stride[d]);
}
static int cross_run(const lc_record *call)
{
    int        d, rc = 0;
    lc_dtype   dtype = call->dtype;
    lc_tensor *a = call->in[0], *b = call->in[1], *part[6], *minus;
    if (cross_dim(call, a->ndim, &d) < 0) return -1;
    if (dtype == LC_b8) return no_kernel(call);
    if (call->out[0]->numel == 0) return 0;
    if (!(minus = lc_tensor_new(dtype, call->device, a->ndim, a->shape))) return -1;
    rc = call->backend->elementwise(LC_OP_neg, dtype, minus, &a, 1);
    for (int i = 0; i < 3 && rc == 0; i++) { /* out[i] = a[i + 1] * b[i + 2] - a[i + 2] * b[i + 1] */
        lc_tensor *of[5] = { call->out[0], a, b, minus, b };
        int        from[5] = { i, i + 1, i + 2, i + 2, i + 1 }, n = 0;
        for (; n < 5 && rc == 0; n++) rc = (part[n] = at(of[n], d, from[n])) ? 0 : -1;
        if (rc == 0) rc = call->backend->elementwise(LC_OP_mul, dtype, part[0], &part[1], 2);
        if (rc == 0)
            rc = call->backend->elementwise(LC_OP_add_scaled, dtype, part[0], (lc_tensor *[]){ part[0], part[3], part[4] }, 3);
        lc_release_all(part, rc == 0 || part[n - 1] ? n : n - 1);
    }
    lc_release(minus);
    return rc == LC_NO_KERNEL ? no_kernel(call) : rc;
}
GRAD(cross)
{
    lc_value dim = in[2];
    for (int d = 0; dim.tag != LC_IS_int && d < in(0)->ndim; d++)
        if (in(0)->shape[d] == 3) dim = LC_I(d);
    if (need[0]) dx[0] = lc_cross(conj_of(in(1)), g[0], dim);
    if (need[1]) dx[1] = lc_cross(g[0], conj_of(in(0)), dim);
}
LC_OP(cross, .amp = LC_AMP_GPU_WIDEST, .batching = LC_BATCH_DIMS,
      .sig = "cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor",
      .doc = "Cross product of vectors of three; without dim along the first dimension of that size.", .method = true,
      .out = true, .shape = cross_shape, .run = cross_run, .grad = cross_grad, .saves_for = { IN(1), IN(0) });

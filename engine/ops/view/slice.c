/* Views of some elements, and their gradients.
 *
 * The gradient of such a view is zeros with g in the viewed elements. Each is an op of its own, one pass over memory, that
 * uses the view rule again: allocate the result, clear it, take the view, copy g into the view. If the view reaches an
 * element twice (unfold), g is added instead. The gradient of that op is the view again. */
#include "view.h"

static int select_geometry(const lc_tensor *x, const lc_value *a, geometry *v)
{
    int     d;
    int64_t index = a[1].i;
    if (x->ndim == 0) return lc_fail_int(LC_IndexError, "select() cannot be applied to a 0-dim tensor.");
    if (dim_index(a[0].i, x->ndim, &d) < 0) return -1;
    if (index < -x->shape[d] || index >= x->shape[d])
        return lc_fail_int(LC_IndexError, "select(): index %lld out of range for tensor of size %s at dimension %d",
                           (long long)index, LC_SIZES(x->shape, x->ndim), d);
    v->ndim = x->ndim - 1;
    v->offset = (index < 0 ? index + x->shape[d] : index) * x->stride[d];
    for (int e = 0; e < d; e++) v->shape[e] = x->shape[e], v->stride[e] = x->stride[e];
    for (int e = d; e < v->ndim; e++) v->shape[e] = x->shape[e + 1], v->stride[e] = x->stride[e + 1];
    return 0;
}
VIEW(select)
GRAD(select) { dx[0] = lc_select_backward(g[0], in(0)->shape, in(0)->ndim, in[1].i, in[2].i); }
LC_OP(select, .sig = "select(input: Tensor, dim: int, index: int) -> Tensor",
      .doc = "One index of a dimension, which goes away.", .method = true, .view_of = IN(0), .copies = true,
      .call = select_call, .grad = select_grad);

static int64_t clamp_index(int64_t i, int64_t size)
{
    if (i < 0) i += size;
    return i < 0 ? 0 : i > size ? size : i;
}

/* Elements [start, stop) of dimension d, which are there, every step-th. */
static int part_of(const lc_tensor *x, int d, int64_t start, int64_t stop, int64_t step, geometry *v)
{
    geometry_like(x, 0, v);
    if (__builtin_mul_overflow(start, x->stride[d], &v->offset)) v->offset = 0; /* only where there are no elements */
    v->shape[d] = stop > start ? 1 + (stop - start - 1) / step : 0;
    if (__builtin_mul_overflow(x->stride[d], step, &v->stride[d]) && v->shape[d] < 2) v->stride[d] = x->stride[d];
    return 0;
}

static int slice_geometry(const lc_tensor *x, const lc_value *a, geometry *v)
{
    int     d;
    int64_t start = 0, stop = INT64_MAX, step = a[3].i;
    if (x->ndim == 0) return lc_fail_int(LC_IndexError, "slice() cannot be applied to a 0-dim tensor.");
    if (dim_index(a[0].i, x->ndim, &d) < 0) return -1;
    if (step <= 0) return lc_fail_int(LC_LucidError, "slice step must be positive, got %lld", (long long)step);
    int_argument(&a[1], &start);
    int_argument(&a[2], &stop);
    return part_of(x, d, clamp_index(start, x->shape[d]), clamp_index(stop, x->shape[d]), step, v);
}
VIEW(slice)
GRAD(slice) { dx[0] = lc_slice_backward(g[0], in(0)->shape, in(0)->ndim, in[1].i, in[2], in[3], in[4].i); }
LC_OP(slice,
      .sig = "slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor",
      .doc = "Every step-th element from start to end of a dimension.", .view_of = IN(0), .copies = true, .call = slice_call,
      .grad = slice_grad);

static int narrow_geometry(const lc_tensor *x, const lc_value *a, geometry *v)
{
    int     d;
    int64_t start = a[1].i, length = a[2].i;
    if (x->ndim == 0) return lc_fail_int(LC_LucidError, "narrow() cannot be applied to a 0-dim tensor.");
    if (dim_index(a[0].i, x->ndim, &d) < 0) return -1;
    int64_t size = x->shape[d];
    if (start < -size || start > size)
        return lc_fail_int(LC_IndexError, "start out of range (expected to be in range of [%lld, %lld], but got %lld)",
                           (long long)-size, (long long)size, (long long)start);
    if (length < 0) return lc_fail_int(LC_LucidError, "narrow(): length must be non-negative, got %lld", (long long)length);
    if (start < 0) start += size;
    if (length > size - start)
        return lc_fail_int(LC_ShapeMismatch, "start (%lld) + length (%lld) exceeds dimension size (%lld).", (long long)start,
                           (long long)length, (long long)size);
    return part_of(x, d, start, start + length, 1, v);
}
VIEW(narrow)
GRAD(narrow)
{
    int64_t start = in[2].i < 0 ? in[2].i + in(0)->shape[in[1].i < 0 ? in[1].i + in(0)->ndim : in[1].i] : in[2].i;
    dx[0] = lc_slice_backward(g[0], in(0)->shape, in(0)->ndim, in[1].i, LC_I(start), LC_I(start + in[3].i), 1);
}
LC_OP(narrow, .sig = "narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor",
      .doc = "length elements of a dimension from start on.", .method = true, .view_of = IN(0), .copies = true,
      .copies_method = true, .call = narrow_call, .grad = narrow_grad);

static int narrow_tensor_call(const lc_value *in, lc_tensor **out)
{
    int64_t start = 0;
    if (in(2)->ndim || lc_class_of(in(2)->dtype) != LC_INT)
        return lc_fail_int(LC_DtypeMismatch, "start must be an 0-dim integral Tensor, got %s", LC_SHAPE(in(2)));
    if (read_int(in(2), &start) < 0) return -1;
    return (*out = lc_narrow(in(0), in[1].i, start, in[3].i)) ? 0 : -1;
}
LC_OP(narrow_tensor, .py = "narrow", .sig = "narrow_tensor(input: Tensor, dim: int, start: Tensor, length: int) -> Tensor",
      .doc = "length elements of a dimension from start on, which is read.", .method = true, .reads_values = true,
      .any_device = IN(2), .call = narrow_tensor_call);

static int diagonal_geometry(const lc_tensor *x, const lc_value *a, geometry *v)
{
    int     d1, d2;
    int64_t shift = a[0].i;
    if (dim_index(a[1].i, x->ndim, &d1) < 0 || dim_index(a[2].i, x->ndim, &d2) < 0) return -1;
    if (d1 == d2) return lc_fail_int(LC_ShapeMismatch, "diagonal dimensions cannot be identical %d, %d", d1, d2);
    int64_t rows = x->shape[d1] + (shift < 0 ? shift : 0), columns = x->shape[d2] - (shift > 0 ? shift : 0);
    int64_t length = rows < columns ? rows : columns;
    v->ndim = 0, v->offset = 0;
    for (int d = 0; d < x->ndim; d++)
        if (d != d1 && d != d2) v->shape[v->ndim] = x->shape[d], v->stride[v->ndim++] = x->stride[d];
    v->shape[v->ndim] = length > 0 ? length : 0;
    v->stride[v->ndim++] = x->stride[d1] + x->stride[d2];
    if (length > 0) v->offset = shift > 0 ? shift * x->stride[d2] : -shift * x->stride[d1];
    return 0;
}
VIEW(diagonal)
GRAD(diagonal) { dx[0] = lc_diagonal_backward(g[0], in(0)->shape, in(0)->ndim, in[1].i, in[2].i, in[3].i); }
LC_OP(diagonal, .sig = "diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor",
      .doc = "The diagonal of two dimensions, as a last dimension.", .method = true, .view_of = IN(0), .copies = true,
      .call = diagonal_call, .grad = diagonal_grad);

static int unfold_geometry(const lc_tensor *x, const lc_value *a, geometry *v)
{
    int     d;
    int64_t size = a[1].i, step = a[2].i;
    if (dim_index(a[0].i, x->ndim, &d) < 0 || geometry_like(x, 1, v) < 0) return -1;
    int64_t have = x->ndim ? x->shape[d] : 1, stride = x->ndim ? x->stride[d] : 1;
    if (size < 0) return lc_fail_int(LC_ShapeMismatch, "size is %lld but must be >= 0", (long long)size);
    if (size > have)
        return lc_fail_int(LC_ShapeMismatch, "maximum size for tensor at dimension %d is %lld but size is %lld", d,
                           (long long)have, (long long)size);
    if (step <= 0) return lc_fail_int(LC_LucidError, "step is %lld but must be > 0", (long long)step);
    v->shape[v->ndim] = size, v->stride[v->ndim] = stride;
    if (v->ndim++ == 0) return 0;
    v->shape[d] = (have - size) / step + 1;
    if (__builtin_mul_overflow(stride, step, &v->stride[d])) v->stride[d] = stride; /* only where one window fits */
    return 0;
}
VIEW(unfold)
GRAD(unfold) { dx[0] = lc_unfold_backward(g[0], in(0)->shape, in(0)->ndim, in[1].i, in[2].i, in[3].i); }
LC_OP(unfold, .sig = "unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor",
      .doc = "Windows of a dimension, as a last dimension.", .method = true, .function = false, .view_of = IN(0),
      .copies = true, .call = unfold_call, .grad = unfold_grad);

/* Gradients. The result has the shape in argument 1; the rule's arguments follow it. */

static int of_size(const lc_record *call, lc_spec *out)
{
    return spec_shape(call, out, call->in[0]->dtype, call->args[1].n, call->args[1].is);
}

/* Splits dimension by dimension, the smallest first, until no slice reaches an element twice. */
int add_into(const lc_backend *backend, lc_tensor *to, lc_tensor *g)
{
    if (!lc_overlaps_itself(to)) return backend->elementwise(LC_OP_add, (lc_dtype)to->dtype, to, (lc_tensor *[]){ to, g }, 2);
    int      d = -1, rc = 0;
    geometry v;
    for (int e = 0; e < to->ndim; e++)
        if (to->shape[e] > 1 && (d < 0 || to->shape[e] < to->shape[d])) d = e;
    for (int64_t i = 0; i < to->shape[d] && rc == 0; i++) {
        lc_value   at[] = { LC_I(d), LC_I(i) };
        lc_tensor *to_part = select_geometry(to, at, &v) < 0 ? NULL : seen_as(to, &v);
        lc_tensor *g_part = select_geometry(g, at, &v) < 0 ? NULL : seen_as(g, &v);
        rc = to_part && g_part ? add_into(backend, to_part, g_part) : -1;
        lc_release(to_part);
        lc_release(g_part);
    }
    return rc;
}

static int put_back(const lc_record *call, geometry_rule rule)
{
    geometry   v;
    lc_tensor *g = call->in[0], *out = call->out[0];
    if (rule(out, call->args + 2, &v) < 0) return -1;
    lc_tensor *part = seen_as(out, &v);
    int        rc = -1;
    if (part && !lc_same_shape(part, g))
        lc_fail(LC_ShapeMismatch, "%s: %s does not fit %s", call->op->name, LC_SHAPE(g), LC_SHAPE(part));
    else if (part && call->backend->fill(out, LC_INTEGER(0)) == 0)
        rc = lc_overlaps_itself(part) ? add_into(call->backend, part, g) : call->backend->copy(part, g);
    lc_release(part);
    return rc;
}

#define PUT_BACK(name)                                                                                                         \
    static int name##_backward_run(const lc_record *call) { return put_back(call, name##_geometry); }

PUT_BACK(select)
GRAD(select_backward) { dx[0] = lc_select(g[0], in[2].i, in[3].i); }
LC_OP(select_backward, .sig = "select_backward(grad: Tensor, size: list[int], dim: int, index: int) -> Tensor",
      .doc = "The gradient of select.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = of_size,
      .run = select_backward_run, .grad = select_backward_grad);

PUT_BACK(slice)
GRAD(slice_backward) { dx[0] = lc_slice(g[0], in[2].i, in[3], in[4], in[5].i); }
LC_OP(slice_backward,
      .sig = "slice_backward(grad: Tensor, size: list[int], dim: int, start: int | None, end: int | None, step: int) -> Tensor",
      .doc = "The gradient of slice.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = of_size, .run = slice_backward_run,
      .grad = slice_backward_grad);

PUT_BACK(diagonal)
GRAD(diagonal_backward) { dx[0] = lc_diagonal(g[0], in[2].i, in[3].i, in[4].i); }
LC_OP(diagonal_backward, .sig = "diagonal_backward(grad: Tensor, size: list[int], offset: int, dim1: int, dim2: int) -> Tensor",
      .doc = "The gradient of diagonal.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = of_size,
      .run = diagonal_backward_run, .grad = diagonal_backward_grad);

PUT_BACK(unfold)
GRAD(unfold_backward) { dx[0] = lc_unfold(g[0], in[2].i, in[3].i, in[4].i); }
LC_OP(unfold_backward, .sig = "unfold_backward(grad: Tensor, size: list[int], dim: int, window: int, step: int) -> Tensor",
      .doc = "The gradient of unfold.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = of_size,
      .run = unfold_backward_run, .grad = unfold_backward_grad);

/* *_scatter: a copy of input with src copied into a view of it. The copy has input's strides, gaps included, as in PyTorch. */

static int scattered(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    spec_like(call, out, x, (lc_dtype)x->dtype);
    out->order = LC_ORDER_STRIDES;
    if (lc_overlaps_itself(x)) lc_strides_like(x, out->stride);
    else memcpy(out->stride, x->stride, (size_t)x->ndim * sizeof *x->stride);
    return 0;
}

static int put_into(const lc_record *call, geometry_rule rule)
{
    geometry   v;
    lc_tensor *src = call->in[1], *out = call->out[0];
    if (rule(out, call->args + 2, &v) < 0) return -1;
    lc_tensor *part = seen_as(out, &v);
    int        rc = -1;
    if (part && !lc_same_shape(part, src))
        lc_fail(LC_ShapeMismatch, "expected src to have a size equal to the slice of self. src size = %s, slice size = %s",
                LC_SIZES(src->shape, src->ndim), LC_SIZES(v.shape, v.ndim));
    else if (part && call->backend->copy(out, call->in[0]) == 0) rc = call->backend->copy(part, src);
    lc_release(part);
    return rc;
}

#define PUT_INTO(name)                                                                                                         \
    static int name##_scatter_run(const lc_record *call) { return put_into(call, name##_geometry); }

PUT_INTO(select)
GRAD(select_scatter)
{
    if (need[0]) dx[0] = lc_select_scatter(g[0], zeros_like(in(1)), in[2].i, in[3].i);
    if (need[1]) dx[1] = lc_select(g[0], in[2].i, in[3].i);
}
LC_OP(select_scatter, .sig = "select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor",
      .doc = "A copy of input with src at one index of a dimension.", .method = true, .promote = LC_NO_PROMOTION,
      .shape = scattered, .run = select_scatter_run, .grad = select_scatter_grad);

PUT_INTO(slice)
GRAD(slice_scatter)
{
    if (need[0]) dx[0] = lc_slice_scatter(g[0], zeros_like(in(1)), in[2].i, in[3], in[4], in[5].i);
    if (need[1]) dx[1] = lc_slice(g[0], in[2].i, in[3], in[4], in[5].i);
}
LC_OP(slice_scatter,
      .sig = "slice_scatter(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, "
             "step: int = 1) -> Tensor",
      .doc = "A copy of input with src in a slice of a dimension.", .method = true, .out = true, .promote = LC_NO_PROMOTION,
      .shape = scattered, .run = slice_scatter_run, .grad = slice_scatter_grad);

PUT_INTO(diagonal)
GRAD(diagonal_scatter)
{
    if (need[0]) dx[0] = lc_diagonal_scatter(g[0], zeros_like(in(1)), in[2].i, in[3].i, in[4].i);
    if (need[1]) dx[1] = lc_diagonal(g[0], in[2].i, in[3].i, in[4].i);
}
LC_OP(diagonal_scatter,
      .sig = "diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor",
      .doc = "A copy of input with src on a diagonal.", .method = true, .promote = LC_NO_PROMOTION, .shape = scattered,
      .run = diagonal_scatter_run, .grad = diagonal_scatter_grad);

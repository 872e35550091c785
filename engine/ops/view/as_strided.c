/* as_strided and its gradient.
 *
 * as_strided may reach any element of the storage, so its gradient has to know the input's position in it. The tape keeps
 * shapes and strides but no addresses, so the recorded op, as_strided_from, counts its offset from the input's first
 * element.
 *
 * Let S(x) be the map from a storage to the elements that a geometry x reads. The gradient is S(input) · 1/n · S(view)ᵀ g,
 * where n counts how often the input reaches an element (PyTorch's rule). This family is closed: its adjoint, S(view) · 1/n
 * · S(input)ᵀ, swaps the two geometries while n stays the input's, hence the flag `count_from`. */
#include "view.h"

/* First and last element that a geometry with any strides reaches, counted from its first index. False: it overflows. */
static bool reach(int ndim, const int64_t *shape, const int64_t *stride, int64_t *low, int64_t *high)
{
    int64_t span;
    *low = *high = 0;
    for (int d = 0; d < ndim; d++) {
        if (__builtin_mul_overflow(shape[d] ? shape[d] - 1 : 0, stride[d], &span)) return false;
        if (span < 0 ? __builtin_add_overflow(*low, span, low) : __builtin_add_overflow(*high, span, high)) return false;
    }
    return true;
}

static int as_strided_from_geometry(const lc_tensor *x, const lc_value *a, geometry *v)
{
    int64_t low, high, unit = lc_size_of(x->dtype), at = lc_storage_offset(x);
    v->ndim = a[0].n, v->offset = a[2].i;
    if (a[0].n != a[1].n)
        return lc_fail_int(LC_ShapeMismatch, "mismatch in length of strides and shape: %s and %s", LC_SIZES(a[0].is, a[0].n),
                           LC_SIZES(a[1].is, a[1].n));
    if (v->ndim > LC_MAX_DIMS)
        return lc_fail_int(LC_ShapeMismatch, "%d dimensions: at most %d are supported", v->ndim, LC_MAX_DIMS);
    for (int d = 0; d < v->ndim; d++) {
        v->shape[d] = a[0].is[d], v->stride[d] = a[1].is[d];
        if (v->stride[d] < 0)
            return lc_fail_int(LC_LucidError, "as_strided: Negative strides are not supported at the moment, got strides: %s",
                               LC_SIZES(a[1].is, a[1].n));
    }
    int64_t numel = lc_numel_of(v->ndim, v->shape);
    if (numel < 0) return -1;
    int64_t capacity = x->storage ? (int64_t)x->storage->bytes / unit : 0, last;
    bool    fits = reach(v->ndim, v->shape, v->stride, &low, &high) && !__builtin_add_overflow(at, v->offset, &at) && at >= 0 &&
                !__builtin_add_overflow(at, high, &last) && (numel == 0 || last < capacity);
    if (!fits)
        return lc_fail_int(LC_ShapeMismatch,
                           "as_strided: sizes %s, strides %s and storage offset %lld are out of bounds for a storage of %lld "
                           "elements",
                           LC_SIZES(v->shape, v->ndim), LC_SIZES(v->stride, v->ndim), (long long)at, (long long)capacity);
    return 0;
}
VIEW(as_strided_from)

/* g is first summed over dimensions of stride 0: one addition per element instead of one pass per index. */
GRAD(as_strided_from)
{
    int64_t    size[LC_MAX_DIMS], still[LC_MAX_DIMS];
    int        n = 0;
    lc_tensor *sum = g[0];
    for (int d = 0; d < in[1].n; d++) {
        size[d] = in[1].is[d];
        if (in[2].is[d] == 0 && size[d] > 1) still[n++] = d, size[d] = 1;
    }
    if (n) sum = lc_sum(sum, still, n, true);
    dx[0] = lc_as_strided_backward(sum, size, in[1].n, in[2].is, in[2].n, in[3].i, in(0)->shape, in(0)->ndim, in(0)->stride,
                                   in(0)->ndim, false);
}
LC_OP(as_strided_from, .sig = "as_strided_from(input: Tensor, size: list[int], stride: list[int], offset: int) -> Tensor",
      .doc = "Any geometry over input's storage; offset counts from input's first element.", .hidden = true, .view_of = IN(0),
      .call = as_strided_from_call, .grad = as_strided_from_grad);

/* storage_offset, which is absolute, as an offset from input's first element. */
static int relative_offset(const lc_value *in, int64_t *offset)
{
    int64_t here = lc_storage_offset(in(0)), at = here;
    int_argument(&in[3], &at);
    if (at < 0) return lc_fail_int(LC_ShapeMismatch, "Tensor: invalid storage offset %lld", (long long)at);
    return *offset = at - here, 0;
}
static int as_strided_call(const lc_value *in, lc_tensor **out)
{
    int64_t offset;
    if (relative_offset(in, &offset) < 0) return -1;
    return (*out = lc_as_strided_from(in(0), in[1].is, in[1].n, in[2].is, in[2].n, offset)) ? 0 : -1;
}
LC_OP(as_strided,
      .sig = "as_strided(input: Tensor, size: tuple[int, ...], stride: tuple[int, ...], storage_offset: int | None = None) -> "
             "Tensor",
      .doc = "Any geometry over input's storage.", .method = true, .copies = true, .call = as_strided_call);

BECOME(as_strided_from)
LC_OP(as_strided_from_, .sig = "as_strided_from_(input: Tensor, size: list[int], stride: list[int], offset: int) -> Tensor",
      .doc = "In-place as_strided_from.", .hidden = true, .writes = IN(0), .call = as_strided_from__call,
      .grad = as_strided_from_grad);
static int as_strided__call(const lc_value *in, lc_tensor **out)
{
    int64_t offset;
    if (relative_offset(in, &offset) < 0) return -1;
    return (*out = lc_as_strided_from_(in(0), in[1].is, in[1].n, in[2].is, in[2].n, offset)) ? 0 : -1;
}
LC_OP(as_strided_,
      .sig = "as_strided_(input: Tensor, size: tuple[int, ...], stride: tuple[int, ...], storage_offset: int | None = None) -> "
             "Tensor",
      .doc = "In-place as_strided.", .method = true, .writes = IN(0), .call = as_strided__call);

static int second_geometry(const lc_record *call, lc_spec *out)
{
    return spec_shape(call, out, (lc_dtype)call->in[0]->dtype, call->args[4].n, call->args[4].is);
}

/* A cleared 1-d storage of n elements. */
static lc_tensor *cleared(const lc_record *call, int64_t n)
{
    lc_tensor *t = lc_tensor_new((lc_dtype)call->in[0]->dtype, call->device, 1, &n);
    if (t && call->backend->fill(t, LC_INTEGER(0)) < 0) lc_release(t), t = NULL;
    return t;
}

/* How often a geometry reaches each of its elements, in its own shape; LC_NONE if always once. Dimensions of stride 0
 * multiply all counts alike. New reference. */
static lc_tensor *visits(const lc_record *call, const geometry *v)
{
    geometry   moving = *v, of_one = *v;
    int64_t    low, high, still = 1;
    lc_tensor *store = NULL, *seen = NULL, *one = NULL, *ones = NULL, *result = NULL;
    for (int d = 0; d < v->ndim; d++) {
        of_one.stride[d] = 0;
        if (v->stride[d] == 0) still *= v->shape[d], moving.shape[d] = of_one.shape[d] = 1;
    }
    reach(v->ndim, v->shape, v->stride, &low, &high);
    moving.offset = of_one.offset = 0;
    if (!(store = cleared(call, high + 1)) || !(seen = seen_as(store, &moving))) goto done;
    if (still == 1 && !lc_overlaps_itself(seen)) result = lc_retain(LC_NONE);
    else if ((one = lc_tensor_new((lc_dtype)store->dtype, store->device, 0, NULL)) &&
             call->backend->fill(one, LC_INTEGER(still)) == 0 && (ones = seen_as(one, &of_one)) &&
             add_into(call->backend, seen, ones) == 0)
        result = lc_tensor_view(store, v->ndim, v->shape, v->stride, 0);
done:
    lc_release(ones);
    lc_release(one);
    lc_release(seen);
    lc_release(store);
    return result;
}

static int divide(const lc_record *call, lc_tensor *out, lc_tensor *x, lc_tensor *counts)
{
    return call->backend->elementwise(LC_OP_div, (lc_dtype)out->dtype, out, (lc_tensor *[]){ x, counts }, 2);
}

/* Adds g to a zero storage through `from`, then reads out through `to`. */
static int through_storage(const lc_record *call, lc_tensor *g, const geometry *from, const geometry *to, int64_t n)
{
    lc_tensor *store = cleared(call, n), *into = store ? seen_as(store, from) : NULL,
              *result = into ? seen_as(store, to) : NULL;
    int rc = result && add_into(call->backend, into, g) == 0 ? call->backend->copy(call->out[0], result) : -1;
    lc_release(result);
    lc_release(into);
    lc_release(store);
    return rc;
}

static int as_strided_backward_run(const lc_record *call)
{
    geometry        from, to;
    const lc_value *a = call->args;
    int64_t         low, from_high, to_high;
    lc_tensor      *g = call->in[0], *out = call->out[0];
    if (g->numel == 0 || out->numel == 0) return call->backend->fill(out, LC_INTEGER(0));
    from.ndim = a[1].n, to.ndim = a[4].n;
    for (int d = 0; d < from.ndim; d++) from.shape[d] = a[1].is[d], from.stride[d] = a[2].is[d];
    for (int d = 0; d < to.ndim; d++) to.shape[d] = a[4].is[d], to.stride[d] = a[5].is[d];
    from.offset = a[3].i > 0 ? a[3].i : 0, to.offset = a[3].i < 0 ? -a[3].i : 0;
    if (!reach(from.ndim, from.shape, from.stride, &low, &from_high) || !reach(to.ndim, to.shape, to.stride, &low, &to_high))
        return lc_fail_int(LC_ShapeMismatch, "as_strided_backward: the strides overflow");
    int64_t    n = 1 + (from.offset + from_high > to.offset + to_high ? from.offset + from_high : to.offset + to_high);
    lc_tensor *counts = visits(call, a[6].b ? &from : &to), *mean = NULL;
    int        rc = counts ? 0 : -1;
    if (rc == 0 && a[6].b && counts != LC_NONE) {
        mean = lc_tensor_new((lc_dtype)g->dtype, g->device, g->ndim, g->shape);
        rc = mean ? divide(call, mean, g, counts) : -1;
    }
    if (rc == 0) rc = through_storage(call, mean ? mean : g, &from, &to, n);
    if (rc == 0 && !a[6].b && counts != LC_NONE) rc = divide(call, out, out, counts);
    lc_release(mean);
    lc_release(counts);
    return rc;
}
GRAD(as_strided_backward)
{
    dx[0] = lc_as_strided_backward(g[0], in[4].is, in[4].n, in[5].is, in[5].n, -in[3].i, in[1].is, in[1].n, in[2].is, in[2].n,
                                   !in[6].b);
}
LC_OP(as_strided_backward,
      .sig = "as_strided_backward(grad: Tensor, size: list[int], stride: list[int], offset: int, to_size: list[int], "
             "to_stride: list[int], count_from: bool) -> Tensor",
      .doc = "The gradient of as_strided_from: from one geometry through a storage to another.", .hidden = true,
      .promote = LC_NO_PROMOTION, .shape = second_geometry, .run = as_strided_backward_run, .grad = as_strided_backward_grad);

/* A copy of input's storage, with src copied into it. The result is the copy with input's geometry. */
static int as_strided_scatter_call(const lc_value *in, lc_tensor **out)
{
    geometry   v;
    int64_t    offset, here = lc_storage_offset(in(0)), one = 1;
    lc_tensor *x = in(0), *src = in(1);
    lc_value   at[] = { in[2], in[3], { 0 } }, given[] = { in[0], in[2], in[3], in[4] };
    if (relative_offset(given, &offset) < 0) return -1;
    at[2] = LC_I(offset);
    if (as_strided_from_geometry(x, at, &v) < 0) return -1;
    if (src->ndim != v.ndim || !lc_same_sizes(src->shape, v.shape, v.ndim))
        return lc_fail_int(LC_ShapeMismatch,
                           "expected src to have a size equal to the slice of self. src size = %s, slice size = %s",
                           LC_SIZES(src->shape, src->ndim), LC_SIZES(v.shape, v.ndim));
    if (lc_overlaps_itself(
            x)) { /* the strides cannot be kept: PyTorch makes a contiguous copy, and applies the geometry to that */
        lc_tensor *copy = lc_clone(x, LC_PRESERVE_FORMAT);
        return lc_copy_(lc_as_strided(copy, v.shape, v.ndim, v.stride, v.ndim, in[4]), src, false) ? (*out = copy, 0) : -1;
    }
    int64_t    n = x->storage ? (int64_t)x->storage->bytes / lc_size_of(x->dtype) : 0;
    lc_tensor *all = lc_scoped(lc_tensor_view(x, 1, &n, &one, -here)), *copy = all ? lc_clone(all, LC_CONTIGUOUS_FORMAT) : NULL;
    lc_tensor *part = copy ? lc_scoped(lc_tensor_view(copy, v.ndim, v.shape, v.stride, here + v.offset)) : NULL;
    if (!part || !lc_copy_(part, src, false)) return -1;
    return one_view(copy, x->ndim, x->shape, x->stride, here, out);
}
GRAD(as_strided_scatter)
{
    lc_tensor *grad = lc_contiguous(g[0], LC_CONTIGUOUS_FORMAT);
    if (need[0]) dx[0] = lc_as_strided_scatter(grad, zeros_like(in(1)), in[2].is, in[2].n, in[3].is, in[3].n, in[4]);
    if (need[1]) dx[1] = lc_as_strided(grad, in[2].is, in[2].n, in[3].is, in[3].n, in[4]);
}
LC_OP(as_strided_scatter,
      .sig = "as_strided_scatter(input: Tensor, src: Tensor, size: tuple[int, ...], stride: tuple[int, ...], "
             "storage_offset: int | None = None) -> Tensor",
      .doc = "A copy of input with src in the elements of its as_strided view.", .method = true,
      .call = as_strided_scatter_call, .grad = as_strided_scatter_grad);

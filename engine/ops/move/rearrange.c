/* Copies of a tensor's elements in another layout or order. The move itself is the backend's copy between two strided tensors. */
#include "../view/view.h"

static int in_format(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    lc_memory_format format = call->args[1].fmt;
    spec_like(call, out, x, (lc_dtype)x->dtype);
    if (format == LC_CONTIGUOUS_FORMAT || (format == LC_PRESERVE_FORMAT && x->is_contiguous)) return 0;
    out->order = LC_ORDER_STRIDES;
    if (format != LC_PRESERVE_FORMAT) return lc_format_strides(format, x->ndim, x->shape, out->stride);
    return lc_strides_like(x, out->stride), 0;
}
static int clone_run(const lc_record *call) { return call->backend->copy(call->out[0], call->in[0]); }
GRAD(clone) { dx[0] = g[0]; }
LC_OP(clone, .sig = "clone(input: Tensor, *, memory_format: memory_format = preserve_format) -> Tensor",
      .doc = "A copy with a history.", .method = true, .promote = LC_NO_PROMOTION, .shape = in_format,
      .kind = LC_KIND_ELEMENTWISE, .converts = true, .run = clone_run, .grad = clone_grad);

/* The input reversed: negative strides, from the last element on. Such a tensor exists only here. */
static int preserved(const lc_record *call, lc_spec *out)
{
    spec_like(call, out, call->in[0], (lc_dtype)call->in[0]->dtype);
    out->order = LC_ORDER_STRIDES;
    return lc_strides_like(call->in[0], out->stride), 0;
}
static int flip_run(const lc_record *call)
{
    geometry   v;
    uint64_t   mask = 0;
    lc_tensor *x = call->in[0];
    if (call->args[1].n && dims_mask(&call->args[1], x->ndim, "flip", &mask) < 0) return -1;
    geometry_like(x, 0, &v);
    for (int d = 0; d < x->ndim && x->numel; d++)
        if (mask >> d & 1) v.offset += (x->shape[d] - 1) * x->stride[d], v.stride[d] = -x->stride[d];
    lc_tensor *backwards = seen_as(x, &v);
    int        rc = backwards ? call->backend->copy(call->out[0], backwards) : -1;
    lc_release(backwards);
    return rc;
}
GRAD(flip) { dx[0] = lc_flip(g[0], in[1].is, in[1].n); }
LC_OP(flip, .batching = LC_BATCH_DIMS, .sig = "flip(input: Tensor, dims: list[int]) -> Tensor",
      .doc = "A copy with some dimensions reversed.", .method = true, .promote = LC_NO_PROMOTION, .shape = preserved,
      .kind = LC_KIND_MOVE, .run = flip_run, .grad = flip_grad);

static int fliplr_call(const lc_value *in, lc_tensor **out)
{
    if (in(0)->ndim < 2) return lc_fail_int(LC_ShapeMismatch, "Input must be >= 2-d, got %s", LC_SHAPE(in(0)));
    return (*out = lc_flip(in(0), (int64_t[]){ 1 }, 1)) ? 0 : -1;
}
LC_OP(fliplr, .sig = "fliplr(input: Tensor) -> Tensor", .doc = "Columns in reverse order.", .method = true,
      .call = fliplr_call);
static int flipud_call(const lc_value *in, lc_tensor **out)
{
    if (in(0)->ndim < 1) return lc_fail_int(LC_ShapeMismatch, "Input must be >= 1-d, got %s", LC_SHAPE(in(0)));
    return (*out = lc_flip(in(0), (int64_t[]){ 0 }, 1)) ? 0 : -1;
}
LC_OP(flipud, .sig = "flipud(input: Tensor) -> Tensor", .doc = "Rows in reverse order.", .method = true, .call = flipud_call);

static int rot90_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    int        a, b, k = (int)((in[1].i % 4 + 4) % 4);
    if (in[2].n != 2) return lc_fail_int(LC_LucidError, "expected total rotation dims == 2, but got dims = %d", in[2].n);
    if (x->ndim < 2) return lc_fail_int(LC_ShapeMismatch, "expected total dims >= 2, but got total dims = %d", x->ndim);
    if (dim_index(in[2].is[0], x->ndim, &a) < 0 || dim_index(in[2].is[1], x->ndim, &b) < 0) return -1;
    if (a == b)
        return lc_fail_int(LC_LucidError, "expected rotation dims to be different, but got dim0 = %lld and dim1 = %lld",
                           (long long)in[2].is[0], (long long)in[2].is[1]);
    if (k == 0) return (*out = lc_clone(x, LC_CONTIGUOUS_FORMAT)) ? 0 : -1;
    if (k == 2) return (*out = lc_flip(x, (int64_t[]){ a, b }, 2)) ? 0 : -1;
    return (*out = lc_transpose(lc_flip(x, (int64_t[]){ k == 1 ? b : a }, 1), a, b)) ? 0 : -1;
}
LC_OP(rot90, .sig = "rot90(input: Tensor, k: int = 1, dims: list[int] = (0, 1)) -> Tensor",
      .doc = "Rotation by multiples of 90 degrees in the plane of two dimensions, from the first towards the second.",
      .method = true, .call = rot90_call);

static lc_tensor *rolled(lc_tensor *x, int d, int64_t shift) /* scoped */
{
    if (!x) return NULL;
    int64_t size = x->shape[d], start = -(shift % size);
    if (start < 0) start += size;
    lc_tensor *parts[] = { lc_narrow(x, d, start, size - start), lc_narrow(x, d, 0, start) };
    return lc_cat(parts, 2, d);
}
static int roll_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    int64_t    all = -1;
    int        d;
    if (in[1].n == 0) return lc_fail_int(LC_LucidError, "`shifts` required");
    if (x->numel == 0 && in[1].n == in[2].n) return (*out = lc_clone(x, LC_PRESERVE_FORMAT)) ? 0 : -1; /* whatever the dims */
    if (in[2].n == 0 && in[1].n == 1) {
        if (x->numel) x = lc_reshape(rolled(lc_reshape(x, &all, 1), 0, in[1].is[0]), x->shape, x->ndim);
        else x = lc_clone(x, LC_PRESERVE_FORMAT);
        return (*out = x) ? 0 : -1;
    }
    if (in[1].n != in[2].n)
        return lc_fail_int(LC_LucidError, "shifts and dimensions must align. shifts: %d, dims:%d", in[1].n, in[2].n);
    for (int i = 0; i < in[2].n && x; i++) {
        if (dim_index(in[2].is[i], in(0)->ndim, &d) < 0) return -1;
        if (in(0)->ndim == 0) return lc_fail_int(LC_IndexError, "Dimension specified as 0 but tensor has no dimensions");
        x = rolled(x, d, in[1].is[i]);
    }
    return (*out = x) ? 0 : -1;
}
GRAD(roll)
{
    int64_t *back = lc_alloc((size_t)in[1].n * sizeof *back);
    for (int i = 0; back && i < in[1].n; i++) back[i] = (int64_t)(0 - (uint64_t)in[1].is[i]);
    dx[0] = back ? lc_roll(g[0], back, in[1].n, in[2].is, in[2].n) : NULL;
    lc_free(back, (size_t)in[1].n * sizeof *back);
}
LC_OP(roll, .batching = LC_BATCH_DIMS, .sig = "roll(input: Tensor, shifts: list[int], dims: list[int] = ()) -> Tensor",
      .doc = "Elements shifted cyclically along dimensions.", .method = true, .call = roll_call, .grad = roll_grad);

/* repeat. Every dimension of the result is viewed as two: the repetition, and the position in it. Sizes of one are dropped,
 * so there are never more dimensions than the result's number of elements has bits. */
typedef struct {
    int      ndim;
    uint64_t times;                                                  /* bit d: dimension d counts repetitions */
    int64_t  shape[LC_MAX_DIMS], to[LC_MAX_DIMS], from[LC_MAX_DIMS]; /* strides of the result and of the input */
} repetition;

static void repetition_of(const lc_tensor *x, const lc_value *repeats, repetition *r)
{
    int64_t stride = 1;
    int     n = LC_MAX_DIMS;
    r->times = 0;
    for (int d = repeats->n - 1; d >= 0; d--) {
        int     e = d - (repeats->n - x->ndim);
        int64_t size = e < 0 ? 1 : x->shape[e], times = repeats->is[d];
        if (size != 1) n--, r->shape[n] = size, r->to[n] = stride, r->from[n] = x->stride[e];
        stride *= size;
        if (times != 1) n--, r->shape[n] = times, r->to[n] = stride, r->from[n] = 0, r->times |= (uint64_t)1 << n;
        stride *= times;
    }
    r->ndim = LC_MAX_DIMS - n;
    if (r->ndim) r->times >>= n;
    memmove(r->shape, r->shape + n, (size_t)r->ndim * sizeof *r->shape);
    memmove(r->to, r->to + n, (size_t)r->ndim * sizeof *r->to);
    memmove(r->from, r->from + n, (size_t)r->ndim * sizeof *r->from);
}
static int repeat_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    const lc_value  *repeats = &call->args[1];
    int              more = repeats->n - x->ndim;
    if (more < 0)
        return lc_fail_int(
            LC_ShapeMismatch,
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: %s of %s",
            LC_SIZES(repeats->is, repeats->n), LC_SHAPE(x));
    if (spec_shape(call, out, (lc_dtype)x->dtype, repeats->n, repeats->is) < 0) return -1;
    for (int d = more; d < out->ndim; d++)
        if (__builtin_mul_overflow(out->shape[d], x->shape[d - more], &out->shape[d]))
            return lc_fail_int(LC_OutOfMemory, "repeat %s of %s overflows", LC_SIZES(repeats->is, repeats->n), LC_SHAPE(x));
    return lc_numel_of(out->ndim, out->shape) < 0 ? -1 : 0;
}
static int repeat_run(const lc_record *call)
{
    repetition r;
    if (call->out[0]->numel == 0) return 0;
    repetition_of(call->in[0], &call->args[1], &r);
    lc_tensor *to = lc_tensor_view(call->out[0], r.ndim, r.shape, r.to, 0);
    lc_tensor *from = to ? lc_tensor_view(call->in[0], r.ndim, r.shape, r.from, 0) : NULL;
    int        rc = from ? call->backend->copy(to, from) : -1;
    lc_release(from);
    lc_release(to);
    return rc;
}
GRAD(repeat)
{
    repetition r;
    int64_t    dims[LC_MAX_DIMS];
    int        n = 0;
    if (g[0]->numel == 0) { /* zeros that depend on g */
        dx[0] = lc_expand(lc_sum(g[0], NULL, 0, false), in(0)->shape, in(0)->ndim);
        return;
    }
    repetition_of(in(0), &in[1], &r);
    lc_tensor *sum = lc_reshape(g[0], r.shape, r.ndim);
    for (int d = 0; d < r.ndim; d++)
        if (r.times >> d & 1) dims[n++] = d;
    if (n) sum = lc_sum(sum, dims, n, false);
    dx[0] = lc_reshape(sum, in(0)->shape, in(0)->ndim);
}
static int repeat_batch(const lc_batch_call *b, lc_tensor **out)
{
    int     n = b->call->args[1].n, ndim = b->call->in[0]->ndim;
    int64_t shape[LC_MAX_DIMS + 1] = { b->size }, repeats[LC_MAX_DIMS + 1] = { 1 };
    if (n < ndim || n >= LC_MAX_DIMS) return LC_NO_RULE;
    for (int d = 0; d < n; d++) {
        shape[d + 1] = d < n - ndim ? 1 : b->call->in[0]->shape[d - (n - ndim)];
        repeats[d + 1] = b->call->args[1].is[d];
    }
    return (out[0] = lc_repeat(lc_reshape(b->in[0], shape, n + 1), repeats, n + 1)) ? 0 : -1;
}
LC_OP(repeat, .batch = repeat_batch, .sig = "repeat(input: Tensor, repeats: list[int]) -> Tensor",
      .doc = "A copy repeated along each dimension; more repeats than dimensions make new ones in front.", .method = true,
      .promote = LC_NO_PROMOTION, .shape = repeat_shape, .kind = LC_KIND_MOVE, .run = repeat_run, .grad = repeat_grad);

static int tile_call(const lc_value *in, lc_tensor **out)
{
    int64_t repeats[LC_MAX_DIMS];
    int     ndim = in(0)->ndim, more = ndim - in[1].n;
    if (more <= 0) return (*out = lc_repeat(in(0), in[1].is, in[1].n)) ? 0 : -1;
    for (int d = 0; d < ndim; d++) repeats[d] = d < more ? 1 : in[1].is[d - more];
    return (*out = lc_repeat(in(0), repeats, ndim)) ? 0 : -1;
}
LC_OP(tile, .sig = "tile(input: Tensor, dims: list[int]) -> Tensor", .doc = "repeat; fewer dims count from the last.",
      .method = true, .call = tile_call);

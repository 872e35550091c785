/* Ops that autograd itself needs: a user's Function, and the linear maps behind views that were written in place.
 *
 * A view is a geometry over its base: dtype, sizes, strides and an offset in bytes from the base's first element. A gradient
 * of the base has the base's sizes but rarely its strides. So it is first copied into an arena with the base's layout, which
 * holds everything base and view can reach; then the view is a window into the arena. All maps here are linear and each
 * other's adjoints:
 *   seen_through   base -> the view's values          adjoint: seen_back
 *   cleared        base -> base with zeros where the view lies   (its own adjoint)
 *   copy_slices    (base, values) -> base with the view replaced   gradient: cleared, seen_through
 * The first is the history of a rebuilt view; PyTorch calls that AsStridedBackward0. */
#include "view/view.h"

typedef struct {
    lc_dtype        dtype; /* of the view */
    const lc_value *layout, *size, *stride;
    int64_t         offset; /* bytes */
} window;
static window window_of(const lc_value *in) /* in: layout, dtype, size, stride, offset */
{
    return (window){ in[1].dt, &in[0], &in[2], &in[3], in[4].i };
}

typedef struct {
    lc_tensor *base, *view; /* scoped, on one storage */
} arena;

static int64_t reach(int ndim, const int64_t *shape, const int64_t *stride,
                     lc_dtype dtype) /* bytes up to the end of the last element */
{
    int64_t last = 0;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 0) return 0;
        last += (shape[d] - 1) * stride[d];
    }
    return (last + 1) * lc_size_of(dtype);
}

static int arena_open(arena *a, lc_device device, lc_dtype dtype, int ndim, const int64_t *shape, const window *w)
{
    if (ndim != w->layout->n)
        return lc_fail_int(LC_ShapeMismatch, "a gradient of %d dimensions for a base of %d", ndim, w->layout->n);
    int64_t     base_end = reach(ndim, shape, w->layout->is, dtype);
    int64_t     view_end = w->offset + reach(w->size->n, w->size->is, w->stride->is, w->dtype);
    int64_t     from = w->offset < 0 ? w->offset : 0, to = base_end > view_end ? base_end : view_end;
    lc_storage *s = lc_storage_new(device, (size_t)(to - from));
    if (!s) return -1;
    lc_tensor *all = lc_scoped(lc_tensor_on(s, LC_u8, 1, (int64_t[]){ to - from }, (int64_t[]){ 1 }, 0));
    a->base = lc_scoped(lc_tensor_on(s, dtype, ndim, shape, w->layout->is, -from / lc_size_of(dtype)));
    a->view =
        lc_scoped(lc_tensor_on(s, w->dtype, w->size->n, w->size->is, w->stride->is, (w->offset - from) / lc_size_of(w->dtype)));
    lc_storage_release(s);
    if (!all || !a->base || !a->view) return -1;
    if (lc_overlaps_itself(a->base))
        return lc_fail_int(LC_NotImplementedError, "a recorded in-place write to a base whose elements share memory: %s",
                           LC_SHAPE(a->base));
    return lc_fill_values(all, 0);
}

static int arena_of(arena *a, lc_tensor *base, const window *w) /* with base's values */
{
    if (arena_open(a, base->device, (lc_dtype)base->dtype, base->ndim, base->shape, w) < 0) return -1;
    return lc_copy_values(a->base, base);
}

static int seen_through_call(const lc_value *in, lc_tensor **out)
{
    window w = window_of(in + 1);
    arena  a;
    if (arena_of(&a, in(0), &w) < 0) return -1;
    out[0] = lc_scoped(lc_tensor_new(w.dtype, in(0)->device, w.size->n, w.size->is));
    return out[0] ? lc_copy_values(out[0], a.view) : -1;
}
GRAD(seen_through)
{
    window w = window_of(in + 1);
    dx[0] = lc_seen_back(g[0], in(0)->shape, in(0)->ndim, (lc_dtype)in(0)->dtype, w.layout->is, w.layout->n, w.dtype,
                         w.size->is, w.size->n, w.stride->is, w.stride->n, w.offset);
}
LC_OP(seen_through,
      .sig = "seen_through(input: Tensor, layout: list[int], dtype: dtype, size: list[int], stride: list[int], offset: int) -> "
             "Tensor",
      .py = "as_strided", .doc = "The elements of a base that a view covers.", .hidden = true, .call = seen_through_call,
      .grad = seen_through_grad);

static int seen_back_call(const lc_value *in, lc_tensor **out) /* in: values, base size, base dtype, then the window */
{
    window w = window_of(in + 3);
    arena  a;
    if (arena_open(&a, in(0)->device, in[2].dt, in[1].n, in[1].is, &w) < 0) return -1;
    if (!lc_same_shape(in(0), a.view))
        return lc_fail_int(LC_ShapeMismatch, "%s for a view %s", LC_SHAPE(in(0)), LC_SHAPE(a.view));
    out[0] = a.base;
    if (!lc_overlaps_itself(a.view)) return lc_copy_values(a.view, in(0)); /* the rest is zero */
    if (lc_modes & LC_TRACING) lc_reading_values("a gradient of a view whose elements share memory");
    return add_into(lc_backend_of(in(0)->device), a.view, in(0));
}
GRAD(seen_back)
{
    window w = window_of(in + 3);
    dx[0] =
        lc_seen_through(g[0], w.layout->is, w.layout->n, w.dtype, w.size->is, w.size->n, w.stride->is, w.stride->n, w.offset);
}
LC_OP(seen_back,
      .sig =
          "seen_back(input: Tensor, base_size: list[int], base_dtype: dtype, layout: list[int], dtype: dtype, size: list[int], "
          "stride: list[int], offset: int) -> Tensor",
      .doc = "Zeros of a base's size, with input added to the elements that a view covers.", .hidden = true,
      .call = seen_back_call, .grad = seen_back_grad);

static int cleared_call(const lc_value *in, lc_tensor **out)
{
    window w = window_of(in + 1);
    arena  a;
    if (arena_of(&a, in(0), &w) < 0) return -1;
    out[0] = a.base;
    return lc_fill_values(a.view, 0);
}
GRAD(cleared)
{
    window w = window_of(in + 1);
    dx[0] = lc_cleared(g[0], w.layout->is, w.layout->n, w.dtype, w.size->is, w.size->n, w.stride->is, w.stride->n, w.offset);
}
LC_OP(cleared,
      .sig = "cleared(input: Tensor, layout: list[int], dtype: dtype, size: list[int], stride: list[int], offset: int) -> "
             "Tensor",
      .doc = "A base with zeros in the elements that a view covers.", .hidden = true, .call = cleared_call,
      .grad = cleared_grad);

static int copy_slices_call(const lc_value *in, lc_tensor **out)
{
    window w = window_of(in + 2);
    arena  a;
    if (arena_of(&a, in(0), &w) < 0) return -1;
    out[0] = a.base;
    return lc_copy_values(a.view, in(1));
}
GRAD(copy_slices)
{
    window w = window_of(in + 2);
    if (need[0])
        dx[0] =
            lc_cleared(g[0], w.layout->is, w.layout->n, w.dtype, w.size->is, w.size->n, w.stride->is, w.stride->n, w.offset);
    if (need[1])
        dx[1] = lc_seen_through(g[0], w.layout->is, w.layout->n, w.dtype, w.size->is, w.size->n, w.stride->is, w.stride->n,
                                w.offset);
}
LC_OP(copy_slices,
      .sig = "copy_slices(input: Tensor, values: Tensor, layout: list[int], dtype: dtype, size: list[int], stride: list[int], "
             "offset: int) -> Tensor",
      .py = "CopySlices",
      .doc = "A base with values in the elements that a view covers: the effect of an in-place write through the view.",
      .hidden = true, .call = copy_slices_call, .grad = copy_slices_grad);

static int identity_run(const lc_record *call) { return call->backend->copy(call->out[0], call->in[0]); }
GRAD(identity) { dx[0] = g[0]; }
LC_OP(identity, .sig = "identity(input: Tensor) -> Tensor", .doc = "The same values, with a node of its own.", .hidden = true,
      .promote = LC_NO_PROMOTION, .shape = same, .run = identity_run, .grad = identity_grad);

/* A user's differentiable function. Forward and backward live in the host language, which runs forward before it calls this,
 * because only then the number of outputs is known. Opaque to the tracer. */
static int function_count(const lc_value *in) { return in[1].o->n_out; }
static int function_call(const lc_value *in, lc_tensor **out)
{
    int n = in[1].o->n_out, rc = in[1].o->forward(in[1].o->payload, out, n);
    for (int i = 0; i < n && rc == 0; i++)
        if (!(out[i] = lc_scoped(out[i]))) rc = -1;
    return rc;
}
GRAD(function)
{
    lc_foreign *o = in[1].o;
    LC_ARRAY(lc_tensor *, given, o->n_out);
    LC_ARRAY(lc_tensor *, made, in[0].n);
    for (int k = 0; k < in[0].n; k++) dx[k] = NULL;
    if (!given || !made) return;
    for (int i = 0; i < o->n_out; i++) {
        bool wanted =
            g[i] == LC_NONE && !o->keeps_none && !(o->constant && o->constant[i] && !lc_is_differentiable(y[i]->dtype));
        if (!(given[i] = wanted ? zeros_like(y[i]) : g[i])) return;
    }
    if (o->backward(o->payload, given, o->n_out, need, made, in[0].n) < 0) return;
    for (int k = 0; k < in[0].n; k++) dx[k] = lc_scoped(made[k]);
}
LC_OP(function, .sig = "function(inputs: list[Tensor], impl: object) -> list[Tensor]", .doc = "A user-defined Function.",
      .hidden = true, .reads_values = true, .count = function_count, .call = function_call, .grad = function_grad);

/* Pooling over the last one, two or three dimensions: batches and channels before them are planes. The ops with kernels are
 * hidden and independent of the number of dimensions; `window` is kernel, stride, padding and dilation, one after the other.
 * The public ones, above them, are PyTorch's.
 *
 * max_pool without indices saves its input, and its gradient finds the indices again. Most inputs are saved anyway (they
 * come out of an activation), and a forward pass that writes no indices is several times as fast. */
#include "../rules.h"

/* ---- geometry ---- */
static lc_tensor *flat_planes(lc_tensor *t, int nd) { return lc_flatten(t, t->ndim - nd, t->ndim - 1); } /* scoped */

static void start_planes(lc_pool_args *a, const lc_tensor *t, int nd)
{
    *a = (lc_pool_args){ .planes = 1, .channels = 1, .ordered = lc_modes & LC_DETERMINISTIC };
    for (int d = 0; d < 3; d++) a->size[d] = a->result[d] = a->kernel[d] = a->stride[d] = a->dilation[d] = 1;
    for (int d = 0; d < t->ndim - nd; d++) a->planes *= t->shape[d];
}
static void set_sizes(int64_t *to, const int64_t *from, int nd) { memcpy(to + 3 - nd, from, (size_t)nd * sizeof *from); }

static void set_window(lc_pool_args *a, const lc_value *window)
{
    int nd = window->n / 4;
    set_sizes(a->kernel, window->is, nd), set_sizes(a->stride, window->is + nd, nd);
    set_sizes(a->padding, window->is + 2 * nd, nd), set_sizes(a->dilation, window->is + 3 * nd, nd);
}
/* The number of windows. With ceil a partial last window counts, unless it starts in the right padding. */
static int64_t windows_in(int64_t n, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil)
{
    int64_t extent = n + 2 * padding - dilation * (kernel - 1) - 1 + (ceil ? stride - 1 : 0);
    int64_t count = (extent < 0 ? -((-extent + stride - 1) / stride) : extent / stride) + 1;
    return ceil && (count - 1) * stride >= n + padding ? count - 1 : count;
}

/* A result with these sizes in place of the last nd of t. It stays channels last if nd is at most `last`: PyTorch does so in
 * two dimensions, and in three only for the maximum. */
static int pooled_spec(const lc_record *call, lc_spec *out, const lc_tensor *t, const int64_t *sizes, int nd, int last,
                       lc_dtype dtype)
{
    int64_t shape[LC_MAX_DIMS], step = 1;
    memcpy(shape, t->shape, (size_t)(t->ndim - nd) * sizeof *shape);
    memcpy(shape + t->ndim - nd, sizes, (size_t)nd * sizeof *shape);
    if (spec_shape(call, out, dtype, t->ndim, shape) < 0) return -1;
    if (nd < 2 || nd > last || t->ndim != nd + 2 || suggested_format(t) == LC_CONTIGUOUS_FORMAT) return 0;
    out->order = LC_ORDER_STRIDES;
    out->stride[1] = 1, step = shape[1] ? shape[1] : 1;
    for (int d = t->ndim - 1; d != 1; d = d == 2 ? 0 : d - 1) {
        out->stride[d] = step, step *= shape[d] ? shape[d] : 1;
        if (!d) break;
    }
    return 0;
}

static lc_dtype planes_dtype(const lc_pool_args *a, const lc_tensor *t, bool adds) /* adds: several gradients to an element */
{
    lc_dtype dtype = (lc_dtype)t->dtype;
    if (lc_size_of(dtype) == 2 && lc_is_floating(dtype) && !adds && lc_can(t)->half & LC_HALF_POOLS) return dtype;
    if (!lc_is_floating(dtype)) return dtype == LC_b8 || lc_is_complex(dtype) ? dtype : LC_i64;
    bool large = a->size[0] * a->size[1] * a->size[2] > INT32_MAX - 2 * a->padding[2]; /* indices are as wide as elements */
    return large ? LC_f64 : working_dtype(dtype);
}

/* Images with the channels last are pooled as they lie where the device can: those of floating-point numbers. */
static bool is_last(const lc_tensor *t)
{
    return lc_can(t)->last & LC_LAST_POOLS && lc_is_floating((lc_dtype)t->dtype) && (t->ndim == 4 || t->ndim == 5) &&
           t->shape[1] > 1 && t->stride[1] == 1 &&
           lc_is_contiguous_in(t, t->ndim == 4 ? LC_CHANNELS_LAST : LC_CHANNELS_LAST_3D);
}
static lc_tensor *ordered(lc_tensor *t, lc_dtype dtype, bool last) /* new reference */
{
    return last ? packed_last(t, dtype) : packed(t, dtype);
}
/* Where the kernel writes: t, or a tensor that deliver() copies into it. New reference. */
static lc_tensor *target(lc_tensor *t, lc_dtype dtype, bool last)
{
    if (t->dtype == dtype && (last || t->is_contiguous)) return lc_retain(t);
    return last ? lc_tensor_new_strided(dtype, t->device, t->ndim, t->shape, t->stride)
                : lc_tensor_new(dtype, t->device, t->ndim, t->shape);
}

/* Runs the kernel on planes of its computing dtype and delivers the results. index: written or read. */
static int run_pool(const lc_record *call, lc_pool_args *a, lc_tensor *in, lc_tensor *index, bool reads_index)
{
    lc_record planes = *call;
    planes.dtype = planes_dtype(a, in, a->grad || reads_index);
    lc_tensor *to = call->out[0], *places = NULL;
    bool       last = is_last(to) && is_last(in);
    lc_tensor *x = ordered(in, planes.dtype, last), *out = target(to, planes.dtype, last);
    if (last) a->channels = to->shape[1];
    if (index) places = reads_index ? ordered(index, LC_i64, last) : target(index, LC_i64, last);
    a->in = x, a->out = out, a->index = places;
    int rc = x && out && (places || !index) ? run_kernel_with(&planes, a) : -1;
    lc_release(x);
    if (index && !reads_index) rc = deliver(index, places, rc);
    else lc_release(places);
    return deliver(to, out, rc);
}

/* ---- maximum ---- */
static void max_windows(const lc_tensor *x, const lc_value *args, lc_pool_args *a)
{
    int nd = args[1].n / 4;
    start_planes(a, x, nd), set_window(a, &args[1]), set_sizes(a->size, x->shape + x->ndim - nd, nd);
    for (int d = 3 - nd; d < 3; d++)
        a->result[d] = windows_in(a->size[d], a->kernel[d], a->stride[d], a->padding[d], a->dilation[d], args[2].b);
}
static int max_shape(const lc_record *call, lc_spec *out)
{
    lc_pool_args a;
    int          nd = call->args[1].n / 4;
    max_windows(call->in[0], call->args, &a);
    for (int k = 0; k < call->n_out; k++)
        if (pooled_spec(call, &out[k], call->in[0], a.result + 3 - nd, nd, 3, k ? LC_i64 : (lc_dtype)call->in[0]->dtype) < 0)
            return -1;
    return 0;
}
static int max_run(const lc_record *call)
{
    lc_pool_args a;
    max_windows(call->in[0], call->args, &a);
    return run_pool(call, &a, call->in[0], call->n_out > 1 ? call->out[1] : NULL, false);
}
/* The gradient of an input has the input's memory format, whatever the format of g. */
static lc_tensor *laid_like(lc_tensor *g, const lc_tensor *x)
{
    lc_memory_format format = suggested_format(x);
    return g && g->ndim == x->ndim && suggested_format(g) != format ? lc_contiguous(g, format) : g;
}
static lc_tensor *max_backward(lc_tensor *g, lc_tensor *indices, const lc_tensor *x, int nd)
{
    return lc__max_pool_backward(laid_like(g, x), indices, x->shape + x->ndim - nd, nd);
}
#define IS_POOL .hidden = true, .promote = LC_NO_PROMOTION
GRAD(_max_pool) { dx[0] = lc__max_pool_gradient(laid_like(g[0], in(0)), in(0), in[1].is, in[1].n, in[2].b); }
LC_OP(_max_pool, .batching = LC_BATCH_SAMPLES, .batched = IN(0),
      .sig = "_max_pool(input: Tensor, window: list[int], ceil_mode: bool) -> Tensor",
      .doc = "The largest element of each window.", IS_POOL, .shape = max_shape, .run = max_run, .grad = _max_pool_grad,
      .saves = IN(0));
GRAD(_max_pool_with_indices) { dx[0] = max_backward(g[0], y[1], in(0), in[1].n / 4); }
LC_OP(_max_pool_with_indices, .batching = LC_BATCH_SAMPLES, .batched = IN(0),
      .sig = "_max_pool_with_indices(input: Tensor, window: list[int], ceil_mode: bool) -> (out: Tensor, indices: Tensor)",
      .doc = "The largest element of each window, and where it is in its plane.", IS_POOL, .kernel = LC_OP__max_pool,
      .shape = max_shape, .run = max_run, .grad = _max_pool_with_indices_grad, .saves = OUT(1));

/* The gradients, the first input, and their indices must have one shape; the result has these sizes. */
static int scattered_spec(const lc_record *call, lc_spec *out, const lc_tensor *indices, const int64_t *size, int nd)
{
    const lc_tensor *g = call->in[0];
    if (g->ndim < nd || g->ndim != indices->ndim || memcmp(g->shape, indices->shape, (size_t)g->ndim * sizeof *g->shape))
        return lc_fail_int(LC_ShapeMismatch, "max_pool backward: gradients %s and indices %s differ in shape", LC_SHAPE(g),
                           LC_SHAPE(indices));
    if (indices->dtype != LC_i64)
        return lc_fail_int(LC_DtypeMismatch, "max_pool backward: indices must be int64, got %s", LC_SHAPE(indices));
    return pooled_spec(call, out, g, size, nd, 3, (lc_dtype)g->dtype);
}
static int scatter_planes(const lc_record *call, lc_tensor *indices, const int64_t *size, int nd)
{
    lc_pool_args a;
    lc_tensor   *g = call->in[0];
    start_planes(&a, g, nd);
    set_sizes(a.size, size, nd), set_sizes(a.result, g->shape + g->ndim - nd, nd);
    return run_pool(call, &a, g, indices, true);
}
static lc_tensor *gather_planes(lc_tensor *g, lc_tensor *indices, int nd)
{
    return same_size_view(lc_gather(flat_planes(g, nd), -1, flat_planes(indices, nd), false), indices->shape, indices->ndim);
}
static int max_backward_shape(const lc_record *call, lc_spec *out)
{
    return scattered_spec(call, out, call->in[1], call->args[2].is, call->args[2].n);
}
static int max_backward_run(const lc_record *call)
{
    return scatter_planes(call, call->in[1], call->args[2].is, call->args[2].n);
}
static int max_gradient_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *g = call->in[0], *x = call->in[1];
    int              nd = call->args[2].n / 4;
    return pooled_spec(call, out, g, x->shape + x->ndim - nd, nd, 3, (lc_dtype)g->dtype);
}
static int max_gradient_run(const lc_record *call)
{
    lc_pool_args a;
    lc_tensor   *x = call->in[1];
    max_windows(x, call->args + 1, &a);
    lc_tensor *g = ordered(call->in[0], planes_dtype(&a, x, true), is_last(call->out[0]) && is_last(x));
    a.grad = g, a.finish = (lc_finish){ call->epilogue, call->in };
    int rc = g ? run_pool(call, &a, x, NULL, false) : -1;
    lc_release(g);
    return rc;
}
GRAD(_max_pool_gradient)
{
    if (need[0]) {
        lc_tensor *indices = lc__max_pool_with_indices(in(1), in[2].is, in[2].n, in[3].b).indices;
        dx[0] = indices ? gather_planes(g[0], indices, in[2].n / 4) : NULL;
    }
    if (need[1]) dx[1] = zeros_like(in(1));
}
LC_OP(_max_pool_gradient,
      .sig = "_max_pool_gradient(grad: Tensor, input: Tensor, window: list[int], ceil_mode: bool) -> Tensor",
      .doc = "The gradient of the largest element of each window, at its place.", IS_POOL, .shape = max_gradient_shape,
      .run = max_gradient_run, .grad = _max_pool_gradient_grad, .saves = IN(1));
GRAD(_max_pool_backward) { dx[0] = gather_planes(g[0], in(1), in[2].n); }
LC_OP(_max_pool_backward, .sig = "_max_pool_backward(grad: Tensor, indices: Tensor, size: list[int]) -> Tensor",
      .doc = "Sums of gradients at indices, in planes of this size.", IS_POOL, .shape = max_backward_shape,
      .run = max_backward_run, .grad = _max_pool_backward_grad, .saves = IN(1));

/* PyTorch's name for it, where the window does not matter: (grad_output, self, kernel_size, stride, padding, dilation,
 * ceil_mode, indices). The result does not depend on the values of self, but carries its history. */
static int max_backward2d_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[1];
    if (x->ndim != 3 && x->ndim != 4)
        return lc_fail_int(LC_ShapeMismatch, "max_pool2d_with_indices_backward: expected 3D or 4D tensor, got %s", LC_SHAPE(x));
    return scattered_spec(call, out, call->in[2], x->shape + x->ndim - 2, 2);
}
static int max_backward2d_run(const lc_record *call)
{
    const lc_tensor *x = call->in[1];
    return scatter_planes(call, call->in[2], x->shape + x->ndim - 2, 2);
}
GRAD(max_pool2d_with_indices_backward)
{
    if (need[0]) dx[0] = gather_planes(g[0], in[7].t, 2);
    if (need[1]) dx[1] = zeros_like(in(1));
}
LC_OP(
    max_pool2d_with_indices_backward,
    .sig =
        "max_pool2d_with_indices_backward(grad_output: Tensor, self: Tensor, kernel_size: list[int], stride: list[int] | None, "
        "padding: list[int], dilation: list[int], ceil_mode: bool, indices: Tensor) -> Tensor",
    .doc = "The gradient of max_pool2d_with_indices.", .ns = "nn.functional", .promote = LC_NO_PROMOTION,
    .kernel = LC_OP__max_pool_backward, .shape = max_backward2d_shape, .run = max_backward2d_run,
    .grad = max_pool2d_with_indices_backward_grad, .saves = IN(7));

/* ---- average: (input, window, ceil_mode, count_include_pad, divisor) ---- */
static void avg_windows(const lc_value *args, const lc_tensor *t, const int64_t *size, lc_pool_args *a)
{
    int nd = args[0].n / 4;
    start_planes(a, t, nd), set_window(a, &args[0]), set_sizes(a->size, size, nd);
    for (int d = 3 - nd; d < 3; d++)
        a->result[d] = windows_in(a->size[d], a->kernel[d], a->stride[d], a->padding[d], 1, args[1].b);
    a->padding_counts = args[2].b, a->divisor = args[3].i;
}
static int avg_shape(const lc_record *call, lc_spec *out)
{
    lc_pool_args     a;
    const lc_tensor *x = call->in[0];
    int              nd = call->args[1].n / 4;
    avg_windows(&call->args[1], x, x->shape + x->ndim - nd, &a);
    return pooled_spec(call, out, x, a.result + 3 - nd, nd, 2, (lc_dtype)x->dtype);
}
static int avg_run(const lc_record *call)
{
    lc_pool_args a;
    lc_tensor   *x = call->in[0];
    avg_windows(&call->args[1], x, x->shape + x->ndim - call->args[1].n / 4, &a);
    return run_pool(call, &a, x, NULL, false);
}
GRAD(_avg_pool)
{
    int nd = in[1].n / 4;
    dx[0] = lc__avg_pool_backward(laid_like(g[0], in(0)), in[1].is, in[1].n, in[2].b, in[3].b, in[4].i,
                                  in(0)->shape + in(0)->ndim - nd, nd);
}
LC_OP(_avg_pool, .batching = LC_BATCH_SAMPLES, .batched = IN(0),
      .sig = "_avg_pool(input: Tensor, window: list[int], ceil_mode: bool, count_include_pad: bool, divisor: int) -> Tensor",
      .doc = "The mean of each window, or its sum over divisor if that is not 0.", IS_POOL, .shape = avg_shape, .run = avg_run,
      .grad = _avg_pool_grad);

static int avg_backward_shape(const lc_record *call, lc_spec *out)
{
    const lc_value *size = &call->args[5];
    return pooled_spec(call, out, call->in[0], size->is, size->n, 2, (lc_dtype)call->in[0]->dtype);
}
static int avg_backward_run(const lc_record *call)
{
    lc_pool_args a;
    avg_windows(&call->args[1], call->in[0], call->args[5].is, &a);
    return run_pool(call, &a, call->in[0], NULL, false);
}
GRAD(_avg_pool_backward) { dx[0] = lc__avg_pool(g[0], in[1].is, in[1].n, in[2].b, in[3].b, in[4].i); }
LC_OP(_avg_pool_backward,
      .sig =
          "_avg_pool_backward(grad: Tensor, window: list[int], ceil_mode: bool, count_include_pad: bool, divisor: int, size: "
          "list[int]) -> Tensor",
      .doc = "Each gradient, divided, at all elements of its window.", IS_POOL, .shape = avg_backward_shape,
      .run = avg_backward_run, .grad = _avg_pool_backward_grad);

/* ---- adaptive: as many windows as asked for, of sizes that differ by one ---- */
static void adaptive_windows(const lc_tensor *t, int nd, const int64_t *size, const int64_t *result, lc_pool_args *a)
{
    start_planes(a, t, nd), set_sizes(a->size, size, nd), set_sizes(a->result, result, nd);
    a->adaptive = true;
}
static int adaptive_shape(const lc_record *call, lc_spec *out)
{
    const lc_value *size = &call->args[1];
    for (int k = 0; k < call->n_out; k++)
        if (pooled_spec(call, &out[k], call->in[0], size->is, size->n, 2, k ? LC_i64 : (lc_dtype)call->in[0]->dtype) < 0)
            return -1;
    return 0;
}
static int adaptive_run(const lc_record *call)
{
    lc_pool_args    a;
    const lc_value *size = &call->args[1];
    lc_tensor      *x = call->in[0];
    adaptive_windows(x, size->n, x->shape + x->ndim - size->n, size->is, &a);
    return run_pool(call, &a, x, call->n_out > 1 ? call->out[1] : NULL, false);
}
static int adaptive_backward_run(const lc_record *call)
{
    lc_pool_args    a;
    const lc_value *size = &call->args[1];
    lc_tensor      *g = call->in[0];
    adaptive_windows(g, size->n, size->is, g->shape + g->ndim - size->n, &a);
    return run_pool(call, &a, g, NULL, false);
}
GRAD(_adaptive_max_pool) { dx[0] = max_backward(g[0], y[1], in(0), in[1].n); }
LC_OP(_adaptive_max_pool, .batching = LC_BATCH_SAMPLES, .batched = IN(0),
      .sig = "_adaptive_max_pool(input: Tensor, output_size: list[int]) -> (out: Tensor, indices: Tensor)",
      .doc = "The largest element of each of output_size windows, and where it is.", IS_POOL, .kernel = LC_OP__max_pool,
      .shape = adaptive_shape, .run = adaptive_run, .grad = _adaptive_max_pool_grad, .saves = OUT(1));
GRAD(_adaptive_avg_pool)
{
    dx[0] = lc__adaptive_avg_pool_backward(laid_like(g[0], in(0)), in(0)->shape + in(0)->ndim - in[1].n, in[1].n);
}
LC_OP(_adaptive_avg_pool, .batching = LC_BATCH_SAMPLES, .batched = IN(0),
      .sig = "_adaptive_avg_pool(input: Tensor, output_size: list[int]) -> Tensor",
      .doc = "The mean of each of output_size windows.", IS_POOL, .kernel = LC_OP__avg_pool, .shape = adaptive_shape,
      .run = adaptive_run, .grad = _adaptive_avg_pool_grad);
GRAD(_adaptive_avg_pool_backward) { dx[0] = lc__adaptive_avg_pool(g[0], in(0)->shape + in(0)->ndim - in[1].n, in[1].n); }
LC_OP(_adaptive_avg_pool_backward, .sig = "_adaptive_avg_pool_backward(grad: Tensor, size: list[int]) -> Tensor",
      .doc = "Each gradient, divided, at all elements of its adaptive window.", IS_POOL, .kernel = LC_OP__avg_pool_backward,
      .shape = adaptive_shape, .run = adaptive_backward_run, .grad = _adaptive_avg_pool_backward_grad);

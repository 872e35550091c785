/* Convolution: three hidden ops over batches, for one to three dimensions. One sum of products relates image, weight and
 * result, and each op computes one of the three from the other two:
 *   _conv         the result          (convolution)
 *   _conv_input   the image           (its gradient; transposed convolution)
 *   _conv_weight  the weight          (its gradient)
 * so the gradients of each are the other two, to any order. `window` is stride, padding and dilation, one after the other. The public functions,
 * above them (conv_public.c), are PyTorch's. */
#include "../rules.h"

#define IS_CONV .hidden = true, .promote = LC_NO_PROMOTION

static void read_window(const lc_value *window, int64_t groups, lc_conv_args *a)
{
    int    nd = window->n / 3;
    size_t bytes = (size_t)nd * sizeof *window->is;
    *a = (lc_conv_args){ .groups = groups, .dims = nd, .ordered = lc_modes & LC_DETERMINISTIC };
    memcpy(a->stride, window->is, bytes), memcpy(a->padding, window->is + nd, bytes),
        memcpy(a->dilation, window->is + 2 * nd, bytes);
}
/* PYTORCH-QUIRK: a volume stays channels last if oneDNN computes it, which PyTorch decides by size. */
static bool keeps_channels_last_3d(const lc_record *call)
{
    const lc_tensor *x = call->in[0], *w = call->in[1];
    int64_t          size = x->shape[0] * x->shape[1] * x->shape[2] * x->shape[3];
    if (x->dtype != LC_f32) return lc_size_of(x->dtype) == 2;
    return call->args[4].i > 1 || x->shape[0] > 1 || (w->shape[3] > 3 && w->shape[4] > 3) || size > 20480;
}
/* (n, channels, sizes...), channels last if one of the operands is: always in two dimensions, sometimes in three. */
static int conv_spec(const lc_record *call, lc_spec *out, int64_t n, int64_t channels, const int64_t *sizes, int nd)
{
    int64_t  shape[5] = { n, channels };
    lc_dtype dtype = (lc_dtype)call->in[0]->dtype;
    memcpy(shape + 2, sizes, (size_t)nd * sizeof *shape);
    if (spec_shape(call, out, dtype, nd + 2, shape) < 0) return -1;
    bool last = suggested_format(call->in[0]) != LC_CONTIGUOUS_FORMAT || suggested_format(call->in[1]) != LC_CONTIGUOUS_FORMAT;
    if (nd < 2 || !n || !last || (nd == 3 && !keeps_channels_last_3d(call))) return 0;
    out->order = LC_ORDER_STRIDES;
    return lc_format_strides(nd == 2 ? LC_CHANNELS_LAST : LC_CHANNELS_LAST_3D, nd + 2, shape, out->stride);
}
/* The kernel computes floats in their working dtype and integers in int64, and takes the weight in it unless it reads halves.
 * from: the operand besides the weight; to: the result. */
static int run_conv(const lc_record *call, lc_conv_args *a, lc_tensor **from, lc_tensor **to, lc_tensor *bias)
{
    lc_record  kernel = *call;
    lc_dtype   dtype = (lc_dtype)call->in[0]->dtype;
    lc_tensor *out = call->out[0], *added = NULL;
    kernel.dtype = lc_is_floating(dtype) ? working_dtype(dtype) : dtype == LC_b8 || lc_is_complex(dtype) ? dtype : LC_i64;
    lc_dtype   wide = lc_is_floating(dtype) ? dtype : kernel.dtype;
    lc_tensor *weight = in_dtype(call->in[1], call->backend->can.half & LC_HALF_CONV ? wide : kernel.dtype),
              *x = in_dtype(call->in[0], wide);
    lc_tensor *made = out->dtype == wide ? lc_retain(out) : lc_tensor_new(wide, out->device, out->ndim, out->shape);
    if (bias != LC_NONE) added = packed(bias, kernel.dtype);
    a->weight = weight, *from = x, *to = made, a->bias = added, a->finish = (lc_finish){ call->epilogue, call->in };
    int rc = weight && x && made && (added || bias == LC_NONE) ? run_kernel_with(&kernel, a) : -1;
    lc_release(weight), lc_release(x), lc_release(added);
    return deliver(out, made, rc);
}

/* ---- (input, weight, bias, window, groups) ---- */
static int conv_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0], *w = call->in[1];
    lc_conv_args     a;
    int64_t          size[3];
    read_window(&call->args[3], call->args[4].i, &a);
    for (int d = 0; d < a.dims; d++)
        size[d] = (x->shape[2 + d] + 2 * a.padding[d] - a.dilation[d] * (w->shape[2 + d] - 1) - 1) / a.stride[d] + 1;
    return conv_spec(call, out, x->shape[0], w->shape[0], size, a.dims);
}
static int conv_run(const lc_record *call)
{
    lc_conv_args a;
    read_window(&call->args[3], call->args[4].i, &a);
    return run_conv(call, &a, &a.image, &a.result, call->in[2]);
}
static lc_tensor *per_channel(lc_tensor *g) /* sums: the gradient of a bias */
{
    static const int64_t but_one[] = { 0, 2, 3, 4 };
    return lc_sum(g, but_one, g->ndim - 1, false);
}
/* Size of a convolution's result. With an output_padding as large as the stride it would have one row more. */
static lc_tensor *conv_like(lc_tensor *x, lc_tensor *w, const lc_value *window, int64_t groups, const lc_tensor *like)
{
    lc_tensor *y = lc__conv(x, w, LC_NONE, window->is, window->n, groups);
    for (int d = 2; y && d < y->ndim; d++)
        if (y->shape[d] > like->shape[d]) y = lc_narrow(y, d, 0, like->shape[d]);
    return y;
}
/* An expanded gradient (of a sum) is copied: the kernel reads it many times, and contiguous memory is faster. */
static lc_tensor *laid_out(lc_tensor *g)
{
    for (int d = 0; d < g->ndim; d++)
        if (!g->stride[d] && g->shape[d] > 1) return lc_contiguous(g, lc_can(g)->image_format);
    return g;
}
GRAD(_conv)
{
    const lc_tensor *x = in(0), *w = in(1);
    const lc_value  *window = &in[3];
    lc_tensor       *grad = need[0] || need[1] ? laid_out(g[0]) : LC_NONE;
    if (need[0]) dx[0] = lc__conv_input(grad, in(1), LC_NONE, window->is, window->n, in[4].i, x->shape + 2, x->ndim - 2);
    if (need[1]) dx[1] = lc__conv_weight(grad, in(0), window->is, window->n, in[4].i, w->shape + 2, w->ndim - 2);
    if (need[2]) dx[2] = per_channel(g[0]);
}
/* vmap with a weight per example: groups of one convolution. */
static int conv_batch(const lc_batch_call *b, lc_tensor **out)
{
    lc_tensor       *x = b->in[0], *w = b->in[1], *bias = b->in[2];
    const lc_tensor *image = b->call->in[0], *weight = b->call->in[1];
    const lc_value  *args = b->call->args;
    int              ndim = image->ndim;
    int64_t          shape[LC_MAX_DIMS + 1], n = image->shape[0], all[LC_MAX_DIMS + 1] = { b->size };
    if (!b->batched[1] || weight->ndim != ndim || ndim < 3) return LC_NO_RULE;
    memcpy(all + 1, image->shape, (size_t)ndim * sizeof *all);
    x = b->batched[0] ? x : lc_expand(x, all, ndim + 1);
    memcpy(shape, image->shape, (size_t)ndim * sizeof *shape), shape[1] *= b->size;
    x = lc_reshape(lc_movedim(x, (int64_t[]){ 0 }, 1, (int64_t[]){ 1 }, 1), shape, ndim);
    memcpy(shape, weight->shape, (size_t)ndim * sizeof *shape), shape[0] *= b->size;
    w = lc_reshape(w, shape, ndim);
    if (bias != LC_NONE) {
        if (!b->batched[2]) bias = lc_expand(bias, (int64_t[]){ b->size, weight->shape[0] }, 2);
        bias = lc_reshape(bias, (int64_t[]){ -1 }, 1);
    }
    lc_tensor *y = lc__conv(x, w, bias, args[3].is, args[3].n, args[4].i * b->size);
    if (!y) return -1;
    shape[0] = n, shape[1] = b->size, shape[2] = weight->shape[0];
    memcpy(shape + 3, y->shape + 2, (size_t)(ndim - 2) * sizeof *shape);
    y = lc_reshape(y, shape, ndim + 1);
    return (out[0] = lc_movedim(y, (int64_t[]){ 1 }, 1, (int64_t[]){ 0 }, 1)) ? 0 : -1;
}
LC_OP(_conv, .batching = LC_BATCH_SAMPLES, .batched = IN(0), .batch = conv_batch,
      .sig = "_conv(input: Tensor, weight: Tensor, bias: Tensor | None, window: list[int], groups: int) -> Tensor",
      .doc = "Convolution of a batch.", IS_CONV, .shape = conv_shape, .run = conv_run, .grad = _conv_grad,
      .saves = IN(0) | IN(1));

/* ---- (grad, weight, bias, window, groups, size) ---- */
static int conv_input_shape(const lc_record *call, lc_spec *out)
{
    const lc_value *size = &call->args[5];
    return conv_spec(call, out, call->in[0]->shape[0], call->in[1]->shape[1] * call->args[4].i, size->is, size->n);
}
static int conv_input_run(const lc_record *call)
{
    lc_conv_args a;
    read_window(&call->args[3], call->args[4].i, &a);
    return run_conv(call, &a, &a.result, &a.image, call->in[2]);
}
GRAD(_conv_input)
{
    const lc_tensor *w = in(1);
    const lc_value  *window = &in[3];
    if (need[0]) dx[0] = conv_like(g[0], in(1), window, in[4].i, in(0));
    if (need[1]) dx[1] = lc__conv_weight(in(0), g[0], window->is, window->n, in[4].i, w->shape + 2, w->ndim - 2);
    if (need[2]) dx[2] = per_channel(g[0]);
}
LC_OP(_conv_input,
      .sig =
          "_conv_input(grad: Tensor, weight: Tensor, bias: Tensor | None, window: list[int], groups: int, size: list[int]) -> "
          "Tensor",
      .doc = "Transposed convolution of a batch: the gradient with respect to an image of this size.", IS_CONV,
      .shape = conv_input_shape, .run = conv_input_run, .grad = _conv_input_grad, .saves = IN(0) | IN(1));

/* ---- (grad, input, window, groups, kernel) ---- */
static int conv_weight_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *g = call->in[0], *x = call->in[1];
    const lc_value  *kernel = &call->args[4];
    int64_t          shape[5] = { g->shape[1], x->shape[1] / call->args[3].i };
    memcpy(shape + 2, kernel->is, (size_t)kernel->n * sizeof *shape);
    if (spec_shape(call, out, (lc_dtype)g->dtype, kernel->n + 2, shape) < 0) return -1;
    bool last = suggested_format(g) == LC_CHANNELS_LAST && suggested_format(x) == LC_CHANNELS_LAST;
    if (!last || !(lc_can(x)->last & LC_LAST_CONV)) return 0;
    out->order = LC_ORDER_STRIDES;
    return lc_format_strides(LC_CHANNELS_LAST, kernel->n + 2, shape, out->stride);
}
static int conv_weight_run(const lc_record *call)
{
    lc_conv_args a;
    lc_record    kernel = *call;
    read_window(&call->args[2], call->args[3].i, &a);
    kernel.dtype = working_dtype((lc_dtype)call->in[0]->dtype);
    a.result = call->in[0], a.image = call->in[1], a.weight = call->out[0];
    return run_kernel_with(&kernel, &a);
}
GRAD(_conv_weight)
{
    const lc_tensor *x = in(1);
    const lc_value  *window = &in[2];
    if (need[0]) dx[0] = conv_like(in(1), g[0], window, in[3].i, in(0));
    if (need[1]) dx[1] = lc__conv_input(in(0), g[0], LC_NONE, window->is, window->n, in[3].i, x->shape + 2, x->ndim - 2);
}
LC_OP(_conv_weight,
      .sig = "_conv_weight(grad: Tensor, input: Tensor, window: list[int], groups: int, kernel: list[int]) -> Tensor",
      .doc = "The gradient of a convolution's weights.", IS_CONV, .shape = conv_weight_shape, .run = conv_weight_run,
      .grad = _conv_weight_grad, .saves = IN(0) | IN(1));

/* unfold and fold of nn.functional: windows of an image as columns, and the sum of columns back into an image. Each is the other's gradient. */
#include "../rules.h"

#define LARGEST (1ll << 40)

/* (kernel_size, dilation, padding, stride), two values each or one for both. */
static int read_pair(const lc_value *v, const char *name, int64_t least, int64_t *to)
{
    to[0] = 1;
    for (int d = 0; d < 2; d++) {
        if (v->n != 2) return lc_fail_int(LC_LucidError, "It is expected %s equals to 2, but got size %d", name, v->n);
        to[1 + d] = v->is[d];
        if (to[1 + d] < least)
            return lc_fail_int(LC_LucidError, "%s should be %s, but got %lld", name,
                               least ? "greater than zero" : "non-negative", (long long)to[1 + d]);
    }
    return 0;
}
static int read_windows(const lc_value *window, const int64_t *size, lc_pool_args *a)
{
    *a = (lc_pool_args){ .planes = 1, .size = { 1, size[0], size[1] }, .result = { 1 } };
    if (read_pair(&window[0], "kernel_size", 1, a->kernel) < 0 || read_pair(&window[1], "dilation", 1, a->dilation) < 0 ||
        read_pair(&window[2], "padding", 0, a->padding) < 0 || read_pair(&window[3], "stride", 1, a->stride) < 0)
        return -1;
    int64_t places;
    for (int d = 1; d < 3; d++) {
        if (a->kernel[d] == 1) a->dilation[d] = 1; /* without effect, however large; so is the stride of a single window */
        if (a->padding[d] > LARGEST || a->dilation[d] > LARGEST || a->kernel[d] > LARGEST || a->size[d] > LARGEST)
            return lc_fail_int(LC_LucidError, "kernel_size %lld, dilation %lld or padding %lld is too large",
                               (long long)a->kernel[d], (long long)a->dilation[d], (long long)a->padding[d]);
        int64_t span, extent;
        if (__builtin_mul_overflow(a->dilation[d], a->kernel[d] - 1, &span)) span = INT64_MAX;
        extent = a->size[d] + 2 * a->padding[d] - 1 - span;
        if (extent >= 0 && a->stride[d] > extent) a->stride[d] = extent + 1;
        a->result[d] = extent < 0 ? 0 : extent / a->stride[d] + 1;
    }
    if (__builtin_mul_overflow(a->result[1], a->result[2], &places) ||
        __builtin_mul_overflow(a->kernel[1], a->kernel[2], &places))
        return lc_fail_int(LC_OutOfMemory, "unfold: more windows than memory can hold");
    return 0;
}
static int check_dtype(const lc_tensor *x, const char *name)
{
    if (lc_is_floating(x->dtype) || x->dtype == LC_b8 || x->dtype == LC_c64 || x->dtype == LC_c128) return 0;
    return lc_fail_int(LC_NotImplementedError, "%s is not implemented for %s", name, lc_dtypes[x->dtype].name);
}
/* Both work on contiguous memory of the computing dtype. */
static int run_windows(const lc_record *call, lc_pool_args *a, lc_dtype dtype)
{
    lc_record  kernel = *call;
    lc_tensor *out = call->out[0], *x = packed(call->in[0], dtype);
    lc_tensor *made =
        out->is_contiguous && out->dtype == dtype ? lc_retain(out) : lc_tensor_new(dtype, out->device, out->ndim, out->shape);
    kernel.dtype = dtype, a->in = x, a->out = made;
    int rc = x && made ? run_kernel_with(&kernel, a) : -1;
    lc_release(x);
    return deliver(out, made, rc);
}

/* ---- unfold: (input, kernel_size, dilation, padding, stride) ---- */
static int unfold_windows(const lc_record *call, lc_pool_args *a)
{
    const lc_tensor *x = call->in[0];
    bool             good = x->ndim == 3 || x->ndim == 4;
    if (x->ndim < 3) return lc_fail_int(LC_IndexError, "unfold: expected 3D or 4D input, got %s", LC_SHAPE(x));
    for (int d = x->ndim - 3; good && d < x->ndim; d++) good = x->shape[d] != 0;
    if (read_windows(&call->args[1], x->shape + x->ndim - 2, a) < 0) return -1;
    if (!good)
        return lc_fail_int(
            LC_ShapeMismatch,
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but "
            "got: %s",
            LC_SIZES(x->shape, x->ndim));
    for (int d = 0; d < x->ndim - 2; d++) a->planes *= x->shape[d];
    if (!a->result[1] || !a->result[2])
        return lc_fail_int(LC_ShapeMismatch, "Given input with spatial size %s, no window of kernel_size (%lld, %lld) fits",
                           LC_SIZES(x->shape + x->ndim - 2, 2), (long long)a->kernel[1], (long long)a->kernel[2]);
    return 0;
}
static int unfold_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    lc_pool_args     a;
    if (check_dtype(x, "unfold") < 0 || unfold_windows(call, &a) < 0) return -1;
    int64_t channels = x->shape[x->ndim - 3] * a.kernel[1] * a.kernel[2], places = a.result[1] * a.result[2];
    int64_t shape[3] = { x->shape[0], channels, places };
    return spec_shape(call, out, (lc_dtype)x->dtype, x->ndim - 1, x->ndim == 4 ? shape : shape + 1);
}
static int unfold_run(const lc_record *call)
{
    lc_pool_args a;
    return unfold_windows(call, &a) < 0 ? -1 : run_windows(call, &a, (lc_dtype)call->in[0]->dtype);
}
GRAD(im2col)
{
    const lc_tensor *x = in(0);
    dx[0] =
        lc_col2im(g[0], x->shape + x->ndim - 2, 2, in[1].is, in[1].n, in[2].is, in[2].n, in[3].is, in[3].n, in[4].is, in[4].n);
}
LC_OP(im2col,
      .sig = "im2col(input: Tensor, kernel_size: tuple[int, int], dilation: tuple[int, int] = 1, padding: tuple[int, int] = 0, "
             "stride: tuple[int, int] = 1) "
             "-> Tensor",
      .doc = "Windows of images as columns: (n, channels * kernel, windows).", .py = "unfold", .ns = "nn.functional",
      .promote = LC_NO_PROMOTION, .shape = unfold_shape, .run = unfold_run, .grad = im2col_grad);

/* ---- fold: (input, output_size, kernel_size, dilation, padding, stride) ---- */
static int fold_windows(const lc_record *call, lc_pool_args *a)
{
    const lc_tensor *x = call->in[0];
    const lc_value  *to = &call->args[1];
    bool             good = (x->ndim == 2 || x->ndim == 3) && x->shape[x->ndim - 1] && x->shape[x->ndim - 2];
    if (to->n != 2) return lc_fail_int(LC_LucidError, "It is expected output_size equals to 2, but got size %d", to->n);
    int64_t size[2] = { to->is[0], to->is[1] };
    if (read_windows(&call->args[2], size, a) < 0) return -1;
    if (!good)
        return lc_fail_int(
            LC_ShapeMismatch,
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, "
            "but got: %s",
            LC_SIZES(x->shape, x->ndim));
    int64_t taps = a->kernel[1] * a->kernel[2], channels = x->shape[x->ndim - 2];
    if (channels % taps)
        return lc_fail_int(
            LC_ShapeMismatch,
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got %lld and %lld",
            (long long)channels, (long long)taps);
    if (size[0] < 1 || size[1] < 1 || x->shape[x->ndim - 1] != a->result[1] * a->result[2])
        return lc_fail_int(
            LC_ShapeMismatch,
            "Given output_size=(%lld, %lld), expected size of input's dimension 2 to match the calculated number of sliding "
            "blocks %lld * %lld, but got %s",
            (long long)size[0], (long long)size[1], (long long)a->result[1], (long long)a->result[2], LC_SHAPE(x));
    a->planes = channels / taps * (x->ndim == 3 ? x->shape[0] : 1);
    return 0;
}
static int fold_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    lc_pool_args     a;
    if (check_dtype(x, "fold") < 0 || fold_windows(call, &a) < 0) return -1;
    int64_t shape[4] = { x->shape[0], x->shape[x->ndim - 2] / (a.kernel[1] * a.kernel[2]), a.size[1], a.size[2] };
    return spec_shape(call, out, (lc_dtype)x->dtype, x->ndim + 1, x->ndim == 3 ? shape : shape + 1);
}
static int fold_run(const lc_record *call)
{
    lc_pool_args a;
    return fold_windows(call, &a) < 0 ? -1 : run_windows(call, &a, working_dtype((lc_dtype)call->in[0]->dtype));
}
GRAD(col2im) { dx[0] = lc_im2col(g[0], in[2].is, in[2].n, in[3].is, in[3].n, in[4].is, in[4].n, in[5].is, in[5].n); }
LC_OP(col2im,
      .sig = "col2im(input: Tensor, output_size: tuple[int, int], kernel_size: tuple[int, int], dilation: tuple[int, int] = 1, "
             "padding: "
             "tuple[int, int] = 0, "
             "stride: tuple[int, int] = 1) -> Tensor",
      .doc = "Columns, as unfold makes them, summed into images of output_size.", .py = "fold", .ns = "nn.functional",
      .promote = LC_NO_PROMOTION, .shape = fold_shape, .run = fold_run, .grad = col2im_grad);

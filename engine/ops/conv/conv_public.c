/* PyTorch's convolutions: their arguments, defaults and errors, over the ops of conv.c. */
#include "../rules.h"

#define LARGEST     (1ll << 40)
#define IS_FUNCTION .promote = LC_NO_PROMOTION, .amp = LC_AMP_LOWER

typedef struct {
    lc_tensor  *x, *w, *b;
    const char *name;
    int         nd;
    int64_t     groups, window[9], *stride, *padding, *dilation, output_padding[3];
    bool        transposed, alone; /* alone: the input has no batch */
} conv_call;

static int each_dim(const lc_value *v, const char *name, int nd, int64_t least, int64_t *to)
{
    if (v->n != 1 && v->n != nd)
        return lc_fail_int(
            LC_LucidError,
            "expected %s to be a single integer value or a list of %d values to match the convolution dimensions, "
            "but got %d",
            name, nd, v->n);
    for (int d = 0; d < nd; d++) {
        to[d] = v->is[v->n == 1 ? 0 : d];
        if (to[d] < least)
            return lc_fail_int(LC_LucidError, "%s %s is not supported: %lld", least ? "non-positive" : "negative", name,
                               (long long)to[d]);
    }
    return 0;
}
static int start(conv_call *c, const lc_value *in, int nd, bool transposed)
{
    static const char *const names[2][3] = { { "conv1d", "conv2d", "conv3d" },
                                             { "conv_transpose1d", "conv_transpose2d", "conv_transpose3d" } };
    *c = (conv_call){ .x = in(0), .w = in(1), .b = in[2].tag == LC_IS_none ? LC_NONE : in(2), .nd = nd, .groups = in[6].i };
    c->transposed = transposed, c->name = names[transposed][nd - 1];
    c->stride = c->window, c->padding = c->window + nd, c->dilation = c->window + 2 * nd;
    if (c->x->ndim != nd + 1 && c->x->ndim != nd + 2)
        return lc_fail_int(LC_ShapeMismatch, "Expected %dD (unbatched) or %dD (batched) input to %s, but got input of size: %s",
                           nd + 1, nd + 2, c->name, LC_SIZES(c->x->shape, c->x->ndim));
    c->alone = c->x->ndim == nd + 1;
    if (c->alone && !(c->x = lc_unsqueeze(c->x, 0))) return -1;
    return 0;
}
/* Checks of shapes, before anything is computed. */
static int check_dtypes(const conv_call *c)
{
    if (c->x->dtype != c->w->dtype)
        return lc_fail_int(LC_DtypeMismatch, "Input type (%s) and weight type (%s) should be the same",
                           lc_dtypes[c->x->dtype].name, lc_dtypes[c->w->dtype].name);
    if (c->b != LC_NONE && c->b->dtype != c->x->dtype)
        return lc_fail_int(LC_DtypeMismatch, "Input type (%s) and bias type (%s) should be the same",
                           lc_dtypes[c->x->dtype].name, lc_dtypes[c->b->dtype].name);
    bool whole = lc_class_of(c->x->dtype) == LC_INT, dilated = false;
    for (int d = 0; d < c->nd; d++) dilated |= c->dilation[d] > 1;
    if (c->x->dtype == LC_b8 || (whole && c->x->dtype != LC_i64 && (c->transposed || dilated || c->x->dtype > LC_i64)))
        return lc_fail_int(LC_NotImplementedError, "%s is not implemented for %s", c->name, lc_dtypes[c->x->dtype].name);
    return 0;
}
static int check_shapes(const conv_call *c)
{
    const lc_tensor *x = c->x, *w = c->w;
    if (w->ndim != c->nd + 2)
        return lc_fail_int(LC_ShapeMismatch,
                           "expected weight to have %d dimensions to match the convolution, but got weight of size %s",
                           c->nd + 2, LC_SIZES(w->shape, w->ndim));
    if (c->groups <= 0) return lc_fail_int(LC_LucidError, "non-positive groups is not supported");
    if (w->shape[0] < c->groups)
        return lc_fail_int(
            LC_ShapeMismatch,
            "Given groups=%lld, expected weight to be at least %lld at dimension 0, but got weight of size %s instead",
            (long long)c->groups, (long long)c->groups, LC_SIZES(w->shape, w->ndim));
    if (w->shape[0] % c->groups)
        return lc_fail_int(
            LC_ShapeMismatch,
            "Given groups=%lld, expected weight to be divisible by %lld at dimension 0, but got weight of size %s instead",
            (long long)c->groups, (long long)c->groups, LC_SIZES(w->shape, w->ndim));
    int64_t channels = c->transposed ? w->shape[0] : w->shape[1] * c->groups;
    int64_t made = c->transposed ? w->shape[1] * c->groups : w->shape[0];
    if (x->shape[1] != channels)
        return lc_fail_int(
            LC_ShapeMismatch,
            "Given groups=%lld, weight of size %s, expected input%s to have %lld channels, but got %lld channels instead",
            (long long)c->groups, LC_SIZES(w->shape, w->ndim), LC_SIZES(x->shape, x->ndim), (long long)channels,
            (long long)x->shape[1]);
    if (c->b != LC_NONE && (c->b->ndim != 1 || c->b->shape[0] != made))
        return lc_fail_int(
            LC_ShapeMismatch,
            "Given weight of size %s, expected bias to be 1-dimensional with %lld elements, but got bias of size %s instead",
            LC_SIZES(w->shape, w->ndim), (long long)made, LC_SIZES(c->b->shape, c->b->ndim));
    for (int d = 0; d < c->nd; d++)
        if (!w->shape[2 + d])
            return lc_fail_int(LC_ShapeMismatch, "%s: a kernel of size %s has no elements", c->name,
                               LC_SIZES(w->shape, w->ndim));
    return 0;
}
/* A dilation has no effect if the kernel has width 1, nor a stride if there is one window: huge values are replaced by small
 * ones. */
static int settle(conv_call *c)
{
    for (int d = 0; d < c->nd; d++) {
        if (c->w->shape[2 + d] == 1) c->dilation[d] = 1;
        if (c->padding[d] > LARGEST || c->dilation[d] > LARGEST)
            return lc_fail_int(LC_LucidError, "%s: padding %lld and dilation %lld are too large", c->name,
                               (long long)c->padding[d], (long long)c->dilation[d]);
        int64_t n = c->x->shape[2 + d], extent = n + 2 * c->padding[d] - c->dilation[d] * (c->w->shape[2 + d] - 1) - 1;
        int64_t enough = c->transposed ? c->output_padding[d] + 1 : extent + 1;
        if ((c->transposed ? n == 1 : extent >= 0) && c->stride[d] > enough) c->stride[d] = enough;
        if (c->stride[d] > LARGEST || c->output_padding[d] > LARGEST)
            return lc_fail_int(LC_LucidError, "%s: stride %lld and output_padding %lld are too large", c->name,
                               (long long)c->stride[d], (long long)c->output_padding[d]);
    }
    return 0;
}
static int check_sizes(conv_call *c) /* of a convolution: the kernel fits */
{
    if (settle(c) < 0) return -1;
    int64_t n[LC_MAX_DIMS], reach[LC_MAX_DIMS];
    for (int d = 0; d < c->nd; d++)
        n[d] = c->x->shape[2 + d] + 2 * c->padding[d], reach[d] = c->dilation[d] * (c->w->shape[2 + d] - 1) + 1;
    for (int d = 0; d < c->nd; d++) {
        if (n[d] < reach[d])
            return lc_fail_int(
                LC_ShapeMismatch,
                "Calculated padded input size per channel: %s. Kernel size: %s. Kernel size can't be greater than actual input "
                "size",
                LC_SIZES(n, c->nd), LC_SIZES(reach, c->nd));
        if (!c->x->shape[2 + d] && c->x->shape[0] && c->x->shape[1])
            return lc_fail_int(LC_ShapeMismatch,
                               "Only zero batch or zero channel inputs are supported, but got input shape: %s",
                               LC_SIZES(c->x->shape, c->x->ndim));
    }
    return 0;
}
/* Whether a transposed convolution may have an empty result: PyTorch leaves that to its backend, and oneDNN allows it. */
static bool may_be_empty(const conv_call *c)
{
    const int64_t *kernel = c->w->shape + c->nd;
    bool           large = c->groups > 1 || c->x->shape[0] > 1 || (c->nd > 1 && kernel[0] > 3 && kernel[1] > 3);
    return !c->x->shape[0] || (large && (c->x->dtype == LC_f32 || c->x->dtype == LC_bf16));
}
/* Sizes of a transposed convolution. */
static int transposed_size(conv_call *c, int64_t *size)
{
    for (int d = 0; d < c->nd; d++)
        if (c->x->shape[0] && c->output_padding[d] >= c->stride[d] && c->output_padding[d] >= c->dilation[d])
            return lc_fail_int(
                LC_LucidError,
                "output padding must be smaller than either stride or dilation, but got output_padding %lld, stride %lld "
                "and dilation %lld",
                (long long)c->output_padding[d], (long long)c->stride[d], (long long)c->dilation[d]);
    if (settle(c) < 0) return -1;
    if (!c->w->shape[1])
        return lc_fail_int(c->x->shape[0] ? LC_ShapeMismatch : LC_IndexError, "non-empty weight tensor expected, but got: %s",
                           LC_SIZES(c->w->shape, c->w->ndim));
    for (int d = 0; d < c->nd; d++) {
        int64_t n = c->x->shape[2 + d], more = c->output_padding[d];
        if (!n && c->x->shape[0] && c->x->shape[1])
            return lc_fail_int(LC_ShapeMismatch,
                               "Only zero batch or zero channel inputs are supported, but got input shape: %s",
                               LC_SIZES(c->x->shape, c->x->ndim));
        size[d] = (n - 1) * c->stride[d] - 2 * c->padding[d] + c->dilation[d] * (c->w->shape[2 + d] - 1) + more + 1;
        if (size[d] < !may_be_empty(c))
            return lc_fail_int(LC_ShapeMismatch, "Given input size per channel: %s. Calculated output size %lld is too small",
                               LC_SIZES(c->x->shape, c->x->ndim), (long long)size[d]);
    }
    return 0;
}
static lc_tensor *compute(const conv_call *c, lc_tensor *x, lc_tensor *w, lc_tensor *b, const int64_t *size)
{
    if (c->transposed) return lc__conv_input(x, w, b, c->window, 3 * c->nd, c->groups, size, c->nd);
    return lc__conv(x, w, b, c->window, 3 * c->nd, c->groups);
}
/* An empty image of this size; its gradients are zeros. */
static lc_tensor *empty_image(const conv_call *c, const int64_t *size)
{
    int64_t    shape[5] = { c->x->shape[0], c->w->shape[1] * c->groups };
    lc_tensor *from[] = { c->x, c->w, c->b }, *nothing = NULL;
    memcpy(shape + 2, size, (size_t)c->nd * sizeof *size);
    for (int k = 0; k < 3; k++)
        if (from[k] != LC_NONE) {
            lc_tensor *sum = lc_sum(lc_narrow(from[k], 0, 0, 0), NULL, 0, false);
            nothing = nothing ? lc_add(nothing, sum) : sum;
        }
    return lc_contiguous(lc_expand(nothing, shape, c->nd + 2), LC_CONTIGUOUS_FORMAT);
}
static int finish(const conv_call *c, const int64_t *size, lc_tensor **out)
{
    lc_tensor *x = c->x, *w = c->w, *b = c->b, *y;
    bool       empty = c->transposed && !x->shape[0];
    for (int d = 0; c->transposed && d < c->nd; d++) empty |= !size[d];
    if (empty) y = empty_image(c, size);
    else if (!c->transposed && !x->shape[1]) { /* PyTorch refuses output channels without input channels */
        w = lc_narrow(w, 0, 0, c->groups), b = LC_NONE;
        y = compute(c, x, w, b, size);
        y = y ? lc_narrow(y, 1, 0, 0) : NULL;
    } else if (lc_is_complex(x->dtype)) {
        lc_tensor *xr = lc_real(x), *xi = lc_imag(x), *wr = lc_real(w), *wi = lc_imag(w);
        lc_tensor *br = b == LC_NONE ? b : lc_real(b), *bi = b == LC_NONE ? b : lc_imag(b);
        y = lc_complex(lc_sub(compute(c, xr, wr, br, size), compute(c, xi, wi, LC_NONE, size)),
                       lc_add(compute(c, xr, wi, bi, size), compute(c, xi, wr, LC_NONE, size)));
    } else y = compute(c, x, w, b, size);
    if (y && c->alone) y = lc_squeeze(y, (const int64_t[]){ 0 }, 1);
    return (out[0] = y) ? 0 : -1;
}

/* ---- (input, weight, bias, stride, padding, dilation, groups) ---- */
static int read_conv(conv_call *c, const lc_value *in, int nd)
{
    if (start(c, in, nd, false) < 0) return -1;
    if (each_dim(&in[3], "stride", nd, 1, c->stride) < 0 || each_dim(&in[5], "dilation", nd, 1, c->dilation) < 0) return -1;
    return check_dtypes(c) < 0 ? -1 : check_shapes(c);
}
static int conv(const lc_value *in, lc_tensor **out, int nd)
{
    conv_call c;
    if (read_conv(&c, in, nd) < 0 || each_dim(&in[4], "padding", nd, 0, c.padding) < 0) return -1;
    return check_sizes(&c) < 0 ? -1 : finish(&c, NULL, out);
}
/* padding='same': where the padding is odd, one more on the right. */
static int conv_named(const lc_value *in, lc_tensor **out, int nd)
{
    conv_call c;
    int64_t   more[6] = { 0 };
    bool      same = !strcmp(in[4].s, "same"), uneven = false;
    if (!same && strcmp(in[4].s, "valid")) return lc_fail_int(LC_LucidError, "Invalid padding string: '%s'", in[4].s);
    if (read_conv(&c, in, nd) < 0) return -1;
    for (int d = 0; same && d < nd; d++) {
        if (c.stride[d] != 1) return lc_fail_int(LC_LucidError, "padding='same' is not supported for strided convolutions");
        int64_t all = c.dilation[d] * (c.w->shape[2 + d] - 1);
        c.padding[d] = all / 2, more[2 * (nd - 1 - d) + 1] = all % 2, uneven |= all % 2;
    }
    if (uneven) {
        static atomic_bool said;
        lc_warn_once(
            &said, "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the input "
                   "be created");
        if (!(c.x = lc_constant_pad_nd(c.x, more, 2 * nd, LC_I(0)))) return -1;
    }
    return check_sizes(&c) < 0 ? -1 : finish(&c, NULL, out);
}
/* ---- (input, weight, bias, stride, padding, output_padding, groups, dilation) ---- */
static int conv_transpose(const lc_value *in, lc_tensor **out, int nd)
{
    conv_call c;
    int64_t   size[3];
    if (start(&c, in, nd, true) < 0) return -1;
    if (each_dim(&in[3], "stride", nd, 1, c.stride) < 0 || each_dim(&in[4], "padding", nd, 0, c.padding) < 0 ||
        each_dim(&in[5], "output_padding", nd, 0, c.output_padding) < 0 || each_dim(&in[7], "dilation", nd, 1, c.dilation) < 0)
        return -1;
    if (check_dtypes(&c) < 0 || check_shapes(&c) < 0 || transposed_size(&c, size) < 0) return -1;
    return finish(&c, size, out);
}

#define OPERANDS "(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: list[int] = 1, padding: "
#define THE_REST ", dilation: list[int] = 1, groups: int = 1) -> Tensor"
#define CONV(op, nd, dims)                                                                                                     \
    COMPOSITE(op, conv(in, out, nd))                                                                                           \
    LC_OP(op, .sig = #op OPERANDS "list[int] = 0" THE_REST, .doc = "Convolution over the last " dims ".", IS_FUNCTION,         \
          .call = op##_call);                                                                                                  \
    COMPOSITE(op##_named, conv_named(in, out, nd))                                                                             \
    LC_OP(op##_named, .sig = #op "_named" OPERANDS "str = 'valid'" THE_REST,                                                   \
          .doc = "Convolution over the last " dims "; padding: 'same' or 'valid'.", IS_FUNCTION, .py = #op,                    \
          .call = op##_named_call);
CONV(conv1d, 1, "dimension")
CONV(conv2d, 2, "two dimensions")
CONV(conv3d, 3, "three dimensions")

#define CONV_TRANSPOSE(op, nd, dims)                                                                                           \
    COMPOSITE(op, conv_transpose(in, out, nd))                                                                                 \
    LC_OP(op,                                                                                                                  \
          .sig = #op OPERANDS "list[int] = 0, output_padding: list[int] = 0, groups: int = 1, dilation: list[int] = 1) "       \
                              "-> Tensor",                                                                                     \
          .doc = "Transposed convolution over the last " dims ".", IS_FUNCTION, .call = op##_call);
CONV_TRANSPOSE(conv_transpose1d, 1, "dimension")
CONV_TRANSPOSE(conv_transpose2d, 2, "two dimensions")
CONV_TRANSPOSE(conv_transpose3d, 3, "three dimensions")

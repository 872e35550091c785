/* Normalisations with their statistics as results: layer, group and batch norm as PyTorch's native_* functions return them.
 *
 * Composites: gradients of every order come from the ops they are made of. Halves are computed in float32. */
#include "rules.h"

static lc_tensor *converted(lc_tensor *t, lc_dtype dtype)
{
    return !t || (lc_dtype)t->dtype == dtype ? t : lc_to(t, dtype, false, false, LC_ABSENT);
}
static lc_tensor *widened(lc_tensor *t) { return t ? converted(t, working_dtype((lc_dtype)t->dtype)) : NULL; }

typedef struct {
    lc_tensor *centred, *mean, *rstd;
} statistics;
static statistics normalised(lc_tensor *x, const int64_t *dims, int n, double eps) /* statistics keep the reduced dimensions */
{
    statistics s;
    s.mean = lc_mean(x, dims, n, true);
    s.centred = s.mean ? lc_sub(x, s.mean) : NULL;
    lc_tensor *variance = s.centred ? lc_var(x, dims, n, LC_I(0), true) : NULL;
    s.rstd = variance ? lc_rsqrt(lc_add(variance, LC_NUMBER(eps))) : NULL;
    return s;
}
static lc_tensor *scaled(lc_tensor *x, lc_tensor *weight, lc_tensor *bias) /* absent ones count as 1 and 0 */
{
    if (x && weight != LC_NONE) x = lc_mul(x, weight);
    if (x && bias != LC_NONE) x = lc_add(x, bias);
    return x;
}
/* Statistics come in the dtype of the input, unless that is a half and the parameters are float32. */
static lc_dtype statistics_dtype(const lc_tensor *x, const lc_tensor *weight, const lc_tensor *bias)
{
    const lc_tensor *p = weight != LC_NONE ? weight : bias;
    return p != LC_NONE && p->dtype == LC_f32 ? LC_f32 : (lc_dtype)x->dtype;
}
static lc_tensor *in_format_of(const lc_tensor *x, lc_tensor *y) /* contiguous, or with the channels last if x has them there */
{
    lc_memory_format format = x->is_contiguous                              ? LC_CONTIGUOUS_FORMAT
                              : lc_is_contiguous_in(x, LC_CHANNELS_LAST)    ? LC_CHANNELS_LAST
                              : lc_is_contiguous_in(x, LC_CHANNELS_LAST_3D) ? LC_CHANNELS_LAST_3D
                                                                            : LC_CONTIGUOUS_FORMAT;
    return y ? lc_contiguous(y, format) : NULL;
}
static int floats_only(const lc_tensor *x, const char *name)
{
    return lc_is_floating(x->dtype)
               ? 0
               : lc_fail_int(LC_NotImplementedError, "%s is not implemented for %s", name, lc_dtypes[x->dtype].name);
}

static int native_layer_norm_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor     *x = in(0), *weight = in(2), *bias = in(3), *wide = widened(x);
    const int64_t *shape = in[1].is;
    int            n = in[1].n, first = x->ndim - n;
    int64_t        dims[LC_MAX_DIMS];
    if (floats_only(x, "native_layer_norm") < 0) return -1;
    if (n < 1)
        return lc_fail_int(LC_LucidError,
                           "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
                           "element, but got normalized_shape = []");
    for (int k = 2; k < 4; k++)
        if (in(k) != LC_NONE && (in(k)->ndim != n || !lc_same_sizes(in(k)->shape, shape, n)))
            return lc_fail_int(LC_LucidError,
                               "Expected %s to be of same shape as normalized_shape, but got %s and normalized_shape = %s",
                               k == 2 ? "weight" : "bias", LC_SHAPE(in(k)), LC_SIZES(shape, n));
    if (first < 0 || !lc_same_sizes(x->shape + first, shape, n))
        return lc_fail_int(LC_LucidError,
                           "Given normalized_shape=%s, expected input with a shape that ends in it, but got input of size %s",
                           LC_SIZES(shape, n), LC_SIZES(x->shape, x->ndim));
    for (int d = 0; d < n; d++) dims[d] = first + d;
    lc_dtype   kept = statistics_dtype(x, weight, bias);
    statistics s = normalised(wide, dims, n, in[4].f);
    if (!s.rstd) return -1;
    lc_tensor *y =
        scaled(lc_mul(s.centred, s.rstd), weight == LC_NONE ? weight : widened(weight), bias == LC_NONE ? bias : widened(bias));
    out[0] = lc_contiguous(converted(y, (lc_dtype)x->dtype), LC_CONTIGUOUS_FORMAT);
    out[1] = converted(lc_detach(s.mean), kept), out[2] = converted(lc_detach(s.rstd), kept);
    return out[0] && out[1] && out[2] ? 0 : -1;
}
LC_OP(
    native_layer_norm,
    .sig = "native_layer_norm(input: Tensor, normalized_shape: list[int], weight: Tensor | None, bias: Tensor | None, eps: "
           "float) -> "
           "(output: Tensor, mean: Tensor, rstd: Tensor)",
    .doc =
        "The last dimensions with mean 0 and variance 1, then scaled and shifted; their means; 1 / their standard deviations.",
    .amp = LC_AMP_FP32, .call = native_layer_norm_call);

static int native_group_norm_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *weight = in(1), *bias = in(2);
    int64_t    batch = in[3].i, channels = in[4].i, inner = in[5].i, groups = in[6].i, per_channel[LC_MAX_DIMS];
    if (floats_only(x, "native_group_norm") < 0) return -1;
    if (groups < 1 || channels % groups)
        return lc_fail_int(LC_LucidError,
                           "Expected number of channels in input to be divisible by num_groups, but got input of shape %s "
                           "and num_groups=%lld",
                           LC_SIZES(x->shape, x->ndim), (long long)groups);
    if (x->ndim < 2 || batch < 0 || channels < 0 || inner < 0 || x->numel != batch * channels * inner ||
        x->shape[1] != channels)
        return lc_fail_int(LC_LucidError, "native_group_norm: %s does not have %lld x %lld x %lld elements", LC_SHAPE(x),
                           (long long)batch, (long long)channels, (long long)inner);
    for (int k = 1; k < 3; k++)
        if (in(k) != LC_NONE && (in(k)->ndim != 1 || in(k)->numel != channels))
            return lc_fail_int(LC_LucidError,
                               "Expected %s to be a vector of size equal to the number of channels in input, but got %s",
                               k == 1 ? "weight" : "bias", LC_SHAPE(in(k)));
    lc_dtype   kept = statistics_dtype(x, weight, bias);
    lc_tensor *rows = lc_reshape(widened(x), (int64_t[]){ batch, groups, channels / groups * inner }, 3);
    statistics s = rows ? normalised(rows, (int64_t[]){ 2 }, 1, in[7].f) : (statistics){ 0 };
    if (!s.rstd) return -1;
    for (int d = 1; d < x->ndim; d++) per_channel[d - 1] = d == 1 ? channels : 1;
    lc_tensor *w = weight == LC_NONE ? weight : lc_reshape(widened(weight), per_channel, x->ndim - 1);
    lc_tensor *b = bias == LC_NONE ? bias : lc_reshape(widened(bias), per_channel, x->ndim - 1);
    lc_tensor *y = lc_reshape(lc_mul(s.centred, s.rstd), x->shape, x->ndim);
    y = w && b ? converted(scaled(y, w, b), (lc_dtype)x->dtype) : NULL;
    out[0] = y ? in_format_of(x, y) : NULL;
    out[1] = converted(lc_reshape(s.mean, (int64_t[]){ batch, groups }, 2), kept);
    out[2] = converted(lc_reshape(s.rstd, (int64_t[]){ batch, groups }, 2), kept);
    return out[0] && out[1] && out[2] ? 0 : -1;
}
LC_OP(native_group_norm,
      .sig =
          "native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, "
          "eps: float) -> (output: Tensor, mean: Tensor, rstd: Tensor)",
      .doc =
          "Groups of channels with mean 0 and variance 1, then scaled and shifted; their means; 1 / their standard deviations.",
      .amp = LC_AMP_FP32, .call = native_group_norm_call);

/* running = (1 - momentum) * running + momentum * value, not recorded */
static int blend(lc_tensor *running, lc_tensor *value, double momentum)
{
    if (running == LC_NONE) return 0;
    lc_tensor *x = converted(lc_detach(value), (lc_dtype)running->dtype);
    if (!x) return -1;
    lc_tensor *next = lc_add(lc_mul(lc_detach(running), LC_NUMBER(1 - momentum)), lc_mul(x, LC_NUMBER(momentum)));
    return next && lc_copy_(running, next, false) ? 0 : -1;
}
static int native_batch_norm_call(const lc_value *in, lc_tensor **out)
{
    static const char *const names[] = { "", "weight", "bias", "running_mean", "running_var" };
    lc_tensor               *x = in(0), *mean = in(3), *variance = in(4), *wide = widened(x), *w = in(1), *b = in(2), *y;
    bool                     training = in[5].b;
    int64_t                  dims[LC_MAX_DIMS], along[LC_MAX_DIMS], channels = x->ndim > 1 ? x->shape[1] : 0;
    int                      n = 0;
    if (floats_only(x, "native_batch_norm") < 0) return -1;
    if (x->ndim < 2)
        return lc_fail_int(LC_LucidError, "native_batch_norm: the input needs at least 2 dimensions, got %s", LC_SHAPE(x));
    for (int k = 1; k < 5; k++)
        if (in(k) != LC_NONE && (in(k)->ndim != 1 || in(k)->numel != channels))
            return lc_fail_int(LC_LucidError, "%s should contain %lld elements not %lld", names[k], (long long)channels,
                               (long long)in(k)->numel);
    if (!training && (mean == LC_NONE || variance == LC_NONE))
        return lc_fail_int(LC_LucidError, "native_batch_norm: running_mean and running_var must be defined in evaluation mode");
    lc_dtype kept = statistics_dtype(x, w, b);
    for (int d = 0; d < x->ndim; d++) {
        along[d] = d == 1 ? channels : 1;
        if (d != 1) dims[n++] = d;
    }
    w = w == LC_NONE ? w : lc_reshape(widened(w), along, x->ndim),
    b = b == LC_NONE ? b : lc_reshape(widened(b), along, x->ndim);
    if (!wide || !w || !b) return -1;
    if (training) {
        double     count = (double)x->numel / (double)(channels ? channels : 1);
        statistics s = normalised(wide, dims, n, in[7].f);
        if (!s.rstd) return -1;
        y = scaled(lc_mul(s.centred, s.rstd), w, b);
        lc_tensor *unbiased = lc_mul(lc_var(lc_detach(wide), dims, n, LC_I(0), false), LC_NUMBER(count / (count - 1)));
        if (blend(mean, lc_flatten(s.mean, 0, -1), in[6].f) < 0 || !unbiased || blend(variance, unbiased, in[6].f) < 0)
            return -1;
        out[1] = converted(lc_detach(lc_flatten(s.mean, 0, -1)), kept),
        out[2] = converted(lc_detach(lc_flatten(s.rstd, 0, -1)), kept);
    } else {
        lc_tensor *m = lc_reshape(widened(mean), along, x->ndim), *v = lc_reshape(widened(variance), along, x->ndim);
        lc_tensor *rstd = v ? lc_rsqrt(lc_add(v, LC_NUMBER(in[7].f))) : NULL;
        y = m && rstd ? scaled(lc_mul(lc_sub(wide, m), rstd), w, b) : NULL;
        for (int k = 1; k < 3; k++) out[k] = lc_scoped(lc_tensor_new(kept, x->device, 1, (int64_t[]){ 0 }));
    }
    out[0] = y ? in_format_of(x, converted(y, (lc_dtype)x->dtype)) : NULL;
    return out[0] && out[1] && out[2] ? 0 : -1;
}
LC_OP(native_batch_norm,
      .sig = "native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, "
             "running_var: "
             "Tensor | None, training: bool, momentum: float, eps: float) -> (output: Tensor, mean: Tensor, rstd: Tensor)",
      .doc = "Channels with mean 0 and variance 1 (in evaluation by the running statistics), then scaled and shifted; and "
             "while training "
             "their means and 1 / their standard deviations, with which the running statistics are updated.",
      .out = true, .amp = LC_AMP_FP32, .writes = IN(3) | IN(4), .call = native_batch_norm_call);

/* PyTorch's normalisations: their arguments and their errors, over the ops of norm.c. Devices without those kernels get plain ops. */
#include "norm.h"
#include <math.h>

#define SPACE .ns = "nn.functional", .promote = LC_NO_PROMOTION, .amp = LC_AMP_GPU_FP32

static bool has_kernels(const lc_tensor *x) { return lc_backends[x->device.kind]->has(LC_OP__norm_rows, LC_f32); }

/* Statistics have the dtype of the input, unless that is float16 or bfloat16 and the parameters are float32. */
static lc_dtype statistics_dtype(const lc_tensor *x, const lc_tensor *weight, const lc_tensor *bias)
{
    const lc_tensor *p = weight != LC_NONE ? weight : bias;
    return p != LC_NONE && p->dtype == LC_f32 ? LC_f32 : (lc_dtype)x->dtype;
}
static lc_tensor *in_format_of(const lc_tensor *x, lc_tensor *y) /* contiguous, or with the channels last if x has them there */
{
    return y ? lc_contiguous(y, x->is_contiguous ? LC_CONTIGUOUS_FORMAT : suggested_format(x)) : NULL;
}
static int floats_only(const lc_tensor *x, const char *name)
{
    return lc_is_floating(x->dtype)
               ? 0
               : lc_fail_int(LC_NotImplementedError, "%s is not implemented for %s", name, lc_dtypes[x->dtype].name);
}
/* Parameters have the dtype of x, or all are float32 if x is float16 or bfloat16. */
static int parameters_fit(const lc_tensor *x, lc_tensor *const *p, int n)
{
    lc_dtype first = (lc_dtype)x->dtype;
    bool     found = false;
    for (int k = 0; k < n; k++) {
        if (p[k] == LC_NONE) continue;
        lc_dtype dtype = (lc_dtype)p[k]->dtype;
        bool     mixed = dtype == LC_f32 && lc_size_of(x->dtype) == 2;
        if ((dtype != (lc_dtype)x->dtype && !mixed) || (found && dtype != first))
            return lc_fail_int(LC_DtypeMismatch,
                               "mixed dtype (CPU): expect parameter to have scalar type of Float, got %s for input %s",
                               LC_SHAPE(p[k]), LC_SHAPE(x));
        first = dtype, found = true;
    }
    return 0;
}
static lc_tensor *statistic(lc_tensor *t, lc_dtype dtype, const int64_t *shape, int ndim)
{
    return t ? norm_converted(lc_reshape(t, shape, ndim), dtype) : NULL;
}

/* ---- layer and RMS norm ---- */

static int parameters_are(const lc_value *shape, lc_tensor *const *parameter, int n)
{
    static const char *const names[] = { "weight", "bias" };
    if (shape->n < 1)
        return lc_fail_int(LC_LucidError,
                           "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
                           "element, but got normalized_shape = []");
    for (int k = 0; k < n; k++)
        if (parameter[k] != LC_NONE &&
            (parameter[k]->ndim != shape->n || !lc_same_sizes(parameter[k]->shape, shape->is, shape->n)))
            return lc_fail_int(LC_LucidError,
                               "Expected %s to be of same shape as normalized_shape, but got %s and normalized_shape = %s",
                               names[k], LC_SHAPE(parameter[k]), LC_SIZES(shape->is, shape->n));
    return 0;
}
/* shape must be that of the last dimensions; rows: how many there are. */
static int last_dims(const lc_tensor *x, const lc_value *shape, lc_tensor *const *parameter, int n, int64_t *rows,
                     int64_t *length)
{
    int first = x->ndim - shape->n;
    if (parameters_are(shape, parameter, n) < 0) return -1;
    if (first < 0 || !lc_same_sizes(x->shape + first, shape->is, shape->n))
        return lc_fail_int(LC_LucidError,
                           "Given normalized_shape=%s, expected input with a shape that ends in it, but got input of size %s",
                           LC_SIZES(shape->is, shape->n), LC_SIZES(x->shape, x->ndim));
    *rows = *length = 1;
    for (int d = 0; d < x->ndim; d++) *(d < first ? rows : length) *= x->shape[d];
    return 0;
}
static lc_tensor *by_plain_ops(lc_tensor *x, int n, lc_tensor *weight, lc_tensor *bias, double eps, bool centred,
                               norm_statistics *s)
{
    int64_t dims[LC_MAX_DIMS];
    for (int d = 0; d < n; d++) dims[d] = x->ndim - n + d;
    *s = norm_normalised(norm_widened(x), dims, n, eps, centred);
    lc_tensor *y = norm_scaled(s->hat, norm_widened(weight), norm_widened(bias));
    return y ? norm_converted(y, (lc_dtype)x->dtype) : NULL;
}
static int native_layer_norm_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor      *x = in(0), *p[] = { in(2), in(3) };
    int64_t         rows, length, shape[LC_MAX_DIMS];
    lc_dtype        kept = statistics_dtype(x, p[0], p[1]);
    norm_statistics s;
    if (floats_only(x, "native_layer_norm") < 0 || last_dims(x, &in[1], p, 2, &rows, &length) < 0 ||
        parameters_fit(x, p, 2) < 0)
        return -1;
    for (int d = 0; d < x->ndim; d++) shape[d] = d < x->ndim - in[1].n ? x->shape[d] : 1;
    if (has_kernels(x)) {
        lc__norm_rows_out made = lc__norm_rows(x, p[0], p[1], rows, 1, length, 1, in[4].f, true);
        out[0] = made.out, s.mean = made.mean, s.rstd = made.rstd;
    } else out[0] = lc_contiguous(by_plain_ops(x, in[1].n, p[0], p[1], in[4].f, true, &s), LC_CONTIGUOUS_FORMAT);
    out[1] = statistic(lc_detach(s.mean), kept, shape, x->ndim), out[2] = statistic(lc_detach(s.rstd), kept, shape, x->ndim);
    return out[0] && out[1] && out[2] ? 0 : -1;
}
LC_OP(
    native_layer_norm, .unnamed = true,
    .sig =
        "native_layer_norm(input: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None, bias: Tensor | None, eps: "
        "float) -> "
        "(output: Tensor, mean: Tensor, rstd: Tensor)",
    .doc =
        "The last dimensions with mean 0 and variance 1, then scaled and shifted; their means; 1 / their standard deviations.",
    .amp = LC_AMP_GPU_FP32, .call = native_layer_norm_call);

/* (input, normalized_shape, weight, bias, eps), and in the top namespace cudnn_enable, which has no effect without cuDNN */
static int layer_norm_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor      *x = in(0), *p[] = { in(2), in(3) };
    int64_t         rows, length;
    norm_statistics s;
    if (floats_only(x, "layer_norm") < 0 || last_dims(x, &in[1], p, 2, &rows, &length) < 0 || parameters_fit(x, p, 2) < 0)
        return -1;
    if (has_kernels(x)) return (out[0] = lc__norm_rows(x, p[0], p[1], rows, 1, length, 1, in[4].f, true).out) ? 0 : -1;
    return (out[0] = lc_contiguous(by_plain_ops(x, in[1].n, p[0], p[1], in[4].f, true, &s), LC_CONTIGUOUS_FORMAT)) ? 0 : -1;
}
LC_OP(layer_norm,
      .sig = "layer_norm(input: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None = None, bias: Tensor | None = "
             "None, eps: "
             "float = 1e-05, cudnn_enable: bool = True) -> Tensor",
      .doc = "The last dimensions with mean 0 and variance 1, then scaled and shifted.", .promote = LC_NO_PROMOTION,
      .amp = LC_AMP_GPU_FP32, .call = layer_norm_call);
LC_OP(nn_layer_norm, .py = "layer_norm",
      .sig = "nn_layer_norm(input: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None = None, bias: Tensor | "
             "None = None, "
             "eps: float = 1e-05) -> Tensor",
      .doc = "The last dimensions with mean 0 and variance 1, then scaled and shifted.", SPACE, .call = layer_norm_call);

/* numeric_limits::epsilon of what the rows are computed in: float for half precision too. */
static double smallest_step(lc_dtype dtype) { return dtype == LC_f64 || dtype == LC_c128 ? 0x1p-52 : 0x1p-23; }
static int    rms_norm_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor      *x = in(0), *weight = in(2), *y;
    int64_t         rows, length;
    double          eps = in[3].tag == LC_IS_none ? smallest_step((lc_dtype)x->dtype) : in[3].f;
    norm_statistics s;
    if (!lc_is_complex(x->dtype) && floats_only(x, "rms_norm") < 0) return -1;
    if (x->ndim < in[1].n && parameters_are(&in[1], &weight, 1) == 0)
        return lc_fail_int(LC_ValueError, "Input tensor must have at least %d dimensions, but got %d", in[1].n, x->ndim);
    if (last_dims(x, &in[1], &weight, 1, &rows, &length) < 0) return -1;
    if (has_kernels(x) && !lc_is_complex(x->dtype) && (weight == LC_NONE || !lc_is_complex(weight->dtype)))
        y = lc__norm_rows(x, weight, LC_NONE, rows, 1, length, 1, eps, false).out;
    else y = by_plain_ops(x, in[1].n, weight, LC_NONE, eps, false, &s);
    return (out[0] = in_format_of(x, y)) ? 0 : -1;
}
LC_OP(
    rms_norm,
    .sig =
        "rms_norm(input: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None = None, eps: float | None = None) -> "
        "Tensor",
    .doc = "The last dimensions divided by the root of their mean square, then scaled.", .promote = LC_NO_PROMOTION,
    .amp = LC_AMP_GPU_FP32, .call = rms_norm_call);
/* ---- group norm ---- */
typedef struct {
    lc_tensor *y, *mean, *rstd; /* statistics: (batch, groups) */
} grouped;
static grouped group_norm_of(lc_tensor *x, lc_tensor *weight, lc_tensor *bias, int64_t batch, int64_t channels, int64_t inner,
                             int64_t groups, double eps)
{
    int64_t  each = channels / groups, shape[] = { batch, groups }, along[LC_MAX_DIMS];
    lc_dtype kept = statistics_dtype(x, weight, bias);
    grouped  made = { 0 };
    if (has_kernels(x)) {
        lc__norm_rows_out rows = lc__norm_rows(x, weight, bias, batch * groups, groups, each, inner, eps, true);
        made.y = rows.out, made.mean = rows.mean, made.rstd = rows.rstd;
    } else {
        lc_tensor      *flat = lc_reshape(norm_widened(x), (int64_t[]){ batch, groups, each * inner }, 3);
        norm_statistics s = flat ? norm_normalised(flat, (int64_t[]){ 2 }, 1, eps, true) : (norm_statistics){ 0 };
        for (int d = 1; d < x->ndim; d++) along[d - 1] = d == 1 ? channels : 1;
        lc_tensor *w = weight == LC_NONE ? weight : lc_reshape(norm_widened(weight), along, x->ndim - 1);
        lc_tensor *b = bias == LC_NONE ? bias : lc_reshape(norm_widened(bias), along, x->ndim - 1);
        made.y = norm_converted(norm_scaled(lc_reshape(s.hat, x->shape, x->ndim), w, b), (lc_dtype)x->dtype);
        made.mean = s.mean, made.rstd = s.rstd;
    }
    made.y = in_format_of(x, made.y);
    made.mean = statistic(made.mean, kept, shape, 2), made.rstd = statistic(made.rstd, kept, shape, 2);
    return made;
}
static int group_fits(const lc_tensor *x, lc_tensor *const *p, int64_t channels, int64_t groups, const char *name)
{
    if (floats_only(x, name) < 0) return -1;
    if (groups < 1) return lc_fail_int(LC_LucidError, "Expected num groups to be greater than 0, got %lld", (long long)groups);
    if (channels % groups)
        return lc_fail_int(LC_LucidError,
                           "Expected number of channels in input to be divisible by num_groups, but got input of shape %s "
                           "and num_groups=%lld",
                           LC_SIZES(x->shape, x->ndim), (long long)groups);
    for (int k = 0; k < 2; k++)
        if (p[k] != LC_NONE && (p[k]->ndim != 1 || p[k]->numel != channels))
            return lc_fail_int(LC_LucidError,
                               "Expected %s to be a vector of size equal to the number of channels in input, but got %s",
                               k ? "bias" : "weight", LC_SHAPE(p[k]));
    return parameters_fit(x, p, 2);
}
static int native_group_norm_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *p[] = { in(1), in(2) };
    int64_t    batch = in[3].i, channels = in[4].i, inner = in[5].i, groups = in[6].i;
    if (group_fits(x, p, channels, groups, "native_group_norm") < 0) return -1;
    if (x->ndim < 2 || batch < 0 || channels < 0 || inner < 0 || x->numel != batch * channels * inner ||
        x->shape[1] != channels)
        return lc_fail_int(LC_LucidError, "native_group_norm: %s does not have %lld x %lld x %lld elements", LC_SHAPE(x),
                           (long long)batch, (long long)channels, (long long)inner);
    grouped made = group_norm_of(x, p[0], p[1], batch, channels, inner, groups, in[7].f);
    return (out[0] = made.y) && (out[1] = made.mean) && (out[2] = made.rstd) ? 0 : -1;
}
LC_OP(native_group_norm, .unnamed = true,
      .sig =
          "native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, "
          "eps: float) -> (output: Tensor, mean: Tensor, rstd: Tensor)",
      .doc =
          "Groups of channels with mean 0 and variance 1, then scaled and shifted; their means; 1 / their standard deviations.",
      .amp = LC_AMP_GPU_FP32, .call = native_group_norm_call);

static int64_t space_of(const lc_tensor *x) /* elements of a channel of one image */
{
    int64_t n = 1;
    for (int d = 2; d < x->ndim; d++) n *= x->shape[d];
    return n;
}
/* (input, num_groups, weight, bias, eps) */
static int group_norm_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *p[] = { in(2), in(3) };
    if (x->ndim < 2)
        return lc_fail_int(LC_LucidError, "Expected at least 2 dimensions for input tensor but received %d", x->ndim);
    if (group_fits(x, p, x->shape[1], in[1].i, "group_norm") < 0) return -1;
    return (out[0] = group_norm_of(x, p[0], p[1], x->shape[0], x->shape[1], space_of(x), in[1].i, in[4].f).y) ? 0 : -1;
}
LC_OP(group_norm,
      .sig =
          "group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = "
          "1e-05, cudnn_enabled: bool = True) -> Tensor",
      .doc = "Groups of channels with mean 0 and variance 1, then scaled and shifted.", .promote = LC_NO_PROMOTION,
      .amp = LC_AMP_GPU_FP32, .call = group_norm_call);
static int more_than_one(int64_t n, const lc_tensor *x, const char *what)
{
    return n != 1 ? 0
                  : lc_fail_int(LC_ValueError, "Expected more than 1 %s when training, got input size %s", what,
                                LC_SIZES(x->shape, x->ndim));
}
static int nn_group_norm_call(const lc_value *in, lc_tensor **out)
{
    const lc_tensor *x = in(0);
    int64_t          groups = in[1].i;
    if (x->ndim >= 2 && !groups) return lc_fail_int(LC_ZeroDivisionError, "group_norm: num_groups must not be zero");
    if (x->ndim >= 2 && groups > 0 &&
        more_than_one(x->shape[0] * x->shape[1] / groups * space_of(x), x, "value per channel") < 0)
        return -1;
    return group_norm_call(in, out);
}
LC_OP(
    nn_group_norm, .py = "group_norm",
    .sig =
        "nn_group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = "
        "1e-05) -> Tensor",
    .doc = "Groups of channels with mean 0 and variance 1, then scaled and shifted.", SPACE, .call = nn_group_norm_call);

/* ---- batch norm: (input, weight, bias, running_mean, running_var, training, momentum, eps) ---- */

static int blend_lower(const lc_record *call, lc_lowering *to)
{
    lc_tensor *in[] = { call->in[0], call->in[1], number_operand_in(&to->number[0], &call->args[2]),
                        number_operand_in(&to->number[1], &call->args[3]) };
    return lower_to(to, call, LC_OP__blend, in, 4);
}
LC_OP(_blend, .sig = "_blend(input: Tensor, other: Tensor, keep: float, weight: float) -> Tensor",
      .doc = "keep * input + weight * other.", .hidden = true, .inplace = true, .shape = broadcast, LOWERED(blend_lower));

/* running = (1 - momentum) * running + momentum * factor * value, not recorded */
static int blend(lc_tensor *running, lc_tensor *value, double momentum, double factor)
{
    if (running == LC_NONE) return 0;
    lc_tensor *x = value ? norm_converted(lc_detach(value), (lc_dtype)running->dtype) : NULL;
    if (!x) return -1;
    if (lc_overlaps_itself(running)) { /* expanded: all channels update the same elements, one after the other, as in PyTorch */
        for (int64_t c = 0; c < running->shape[0]; c++) {
            lc_tensor *one = lc_narrow(running, 0, c, 1), *part = lc_narrow(x, 0, c, 1);
            if (!one || !part || blend(one, part, momentum, factor) < 0) return -1;
        }
        return 0;
    }
    return lc__blend_(running, x, 1 - momentum, momentum * factor) ? 0 : -1;
}
static int batch_fits(const lc_value *in, const char *name)
{
    static const char *const names[] = { "", "weight", "bias", "running_mean", "running_var" };
    lc_tensor               *x = in(0), *all[] = { in(1), in(2), in(3), in(4) };
    if (floats_only(x, name) < 0) return -1;
    if (x->ndim < 2) {
        bool alone = in(1) == LC_NONE && in(2) == LC_NONE && in(3) == LC_NONE && in(4) == LC_NONE;
        bool index = *name == 'i' || (in[5].b && alone && x->ndim); /* where PyTorch finds it */
        return lc_fail_int(index ? LC_IndexError : LC_LucidError, "%s: the input needs at least 2 dimensions, got %s", name,
                           LC_SHAPE(x));
    }
    for (int k = 1; k < 5; k++)
        if (in(k) != LC_NONE && (in(k)->ndim != 1 || in(k)->numel != x->shape[1]))
            return lc_fail_int(LC_LucidError, "%s should contain %lld elements not %lld", names[k], (long long)x->shape[1],
                               (long long)in(k)->numel);
    if (!in[5].b && (in(3) == LC_NONE || in(4) == LC_NONE))
        return lc_fail_int(LC_LucidError, "%s: running_mean and running_var must be defined in evaluation mode", name);
    if ((in(3) == LC_NONE) != (in(4) == LC_NONE))
        return lc_fail_int(LC_ValueError, "%s: running_mean and running_var must either both be None or neither be None", name);
    if (refuse_grad(in(3), name, names[3]) < 0 || refuse_grad(in(4), name, names[4]) < 0) return -1;
    return parameters_fit(x, all, 4);
}
typedef struct {
    lc_tensor *y, *mean, *rstd; /* mean and rstd: while training */
} batched;
static lc_tensor *along_channels(lc_tensor *t, const lc_tensor *x)
{
    int64_t along[LC_MAX_DIMS];
    for (int d = 1; d < x->ndim; d++) along[d - 1] = d == 1 ? x->shape[1] : 1;
    return t == LC_NONE ? t : lc_reshape(norm_widened(t), along, x->ndim - 1);
}
static lc_tensor *inverse_deviation(lc_tensor *variance, double eps)
{
    return variance ? lc_rsqrt(lc_add(norm_widened(variance), LC_NUMBER(eps))) : NULL;
}
static batched batch_plain(const lc_value *in, lc_tensor **variance)
{
    lc_tensor *x = in(0), *wide = norm_widened(x), *w = along_channels(in(1), x), *b = along_channels(in(2), x);
    int64_t    dims[LC_MAX_DIMS];
    int        n = 0;
    batched    made = { 0 };
    for (int d = 0; d < x->ndim; d++)
        if (d != 1) dims[n++] = d;
    if (in[5].b) {
        norm_statistics s = wide ? norm_normalised(wide, dims, n, in[7].f, true) : (norm_statistics){ 0 };
        made.y = norm_scaled(s.hat, w, b);
        made.mean = lc_flatten(s.mean, 0, -1), made.rstd = lc_flatten(s.rstd, 0, -1), *variance = lc_flatten(s.variance, 0, -1);
    } else {
        lc_tensor *r = along_channels(inverse_deviation(in(4), in[7].f), x);
        made.y = norm_scaled(lc_mul(lc_sub(wide, along_channels(in(3), x)), r), w, b);
    }
    made.y = norm_converted(made.y, (lc_dtype)x->dtype);
    return made;
}
static batched batch_by_kernel(const lc_value *in, lc_tensor **variance)
{
    lc_tensor *mean = in[5].b ? LC_NONE : in(3), *r = in[5].b ? LC_NONE : inverse_deviation(lc_detach(in(4)), in[7].f);
    lc__norm_channels_out made =
        lc__norm_channels(in(0), in(1), in(2), mean == LC_NONE ? mean : norm_widened(lc_detach(mean)), r, in[7].f);
    *variance = made.variance;
    return (batched){ made.out, made.mean, made.rstd };
}
static int batch_norm_of(const lc_value *in, batched *made)
{
    lc_tensor *x = in(0), *variance = NULL;
    bool       updates = in[5].b && (in(3) != LC_NONE || in(4) != LC_NONE);
    *made = has_kernels(x) ? batch_by_kernel(in, &variance) : batch_plain(in, &variance);
    if (!(made->y = in_format_of(x, made->y))) return -1;
    if (!updates) return 0;
    double count = (double)x->shape[0] * (double)space_of(x);
    if (blend(in(3), made->mean, in[6].f, 1) < 0) return -1;
    return blend(in(4), variance, in[6].f, count / (count - 1)); /* of the unbiased variance */
}
static int native_batch_norm_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    batched    made;
    if (batch_fits(in, "native_batch_norm") < 0) return -1;
    if (in[5].b && !x->numel)
        return lc_fail_int(LC_LucidError, "input tensor must have at least one element, but got input_sizes = %s",
                           LC_SIZES(x->shape, x->ndim));
    if (batch_norm_of(in, &made) < 0) return -1;
    lc_dtype kept = statistics_dtype(x, in(1), in(2));
    out[0] = made.y;
    for (int k = 1; k < 3; k++)
        if (in[5].b) out[k] = norm_converted(lc_detach(k == 1 ? made.mean : made.rstd), kept);
        else out[k] = lc_scoped(lc_tensor_new(kept, x->device, 1, (int64_t[]){ 0 }));
    return out[0] && out[1] && out[2] ? 0 : -1;
}
LC_OP(native_batch_norm, .unnamed = true,
      .sig = "native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, "
             "running_var: "
             "Tensor | None, training: bool, momentum: float, eps: float) -> (output: Tensor, mean: Tensor, rstd: Tensor)",
      .doc = "Channels with mean 0 and variance 1 (in evaluation by the running statistics), then scaled and shifted; and "
             "while training "
             "their means and 1 / their standard deviations, with which the running statistics are updated.",
      .out = true, .amp = LC_AMP_GPU_FP32, .writes = IN(3) | IN(4), .call = native_batch_norm_call);

static int batch_norm_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *y;
    batched    made;
    if (!x->numel) { /* empty, but still depends on the parameters */
        y = lc_clone(x, LC_PRESERVE_FORMAT);
        for (int k = 1; k < 3; k++)
            if (in(k) != LC_NONE) {
                lc_tensor *p = norm_converted(lc_select(in(k), 0, 0), (lc_dtype)x->dtype);
                y = k == 1 ? lc_mul(y, p) : lc_add(y, p);
            }
        return (out[0] = y) ? 0 : -1;
    }
    if (batch_fits(in, "batch_norm") < 0 || batch_norm_of(in, &made) < 0) return -1;
    return out[0] = made.y, 0;
}
LC_OP(batch_norm,
      .sig = "batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: "
             "Tensor | None, training: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tensor",
      .doc = "Channels with mean 0 and variance 1 (in evaluation by the running statistics), then scaled and shifted.",
      .promote = LC_NO_PROMOTION, .amp = LC_AMP_GPU_FP32, .writes = IN(3) | IN(4), .call = batch_norm_call);
/* (input, running_mean, running_var, weight, bias, training, momentum, eps) */
static int nn_batch_norm_call(const lc_value *in, lc_tensor **out)
{
    const lc_tensor *x = in(0);
    lc_value         args[] = { in[0], in[3], in[4], in[1], in[2], in[5], in[6], in[7] };
    if (in[5].b && !x->ndim) return lc_fail_int(LC_IndexError, "batch_norm: the input needs at least 2 dimensions, got none");
    if (in[5].b && more_than_one(x->shape[0] * space_of(x), x, "value per channel") < 0) return -1;
    if (in[5].b && in[7].f <= 0)
        return lc_fail_int(LC_ValueError, "batch_norm eps must be positive during training, but got %g", in[7].f);
    if (in[7].f < 0) return lc_fail_int(LC_ValueError, "batch_norm eps must be non-negative, but got %g", in[7].f);
    return batch_norm_call(args, out);
}
LC_OP(nn_batch_norm, .py = "batch_norm",
      .sig =
          "nn_batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None, "
          "bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-05) -> Tensor",
      .doc = "Channels with mean 0 and variance 1 (in evaluation by the running statistics), then scaled and shifted.", SPACE,
      .writes = IN(1) | IN(2), .call = nn_batch_norm_call);

/* ---- instance norm: batch norm in which every image has channels of its own ---- */
static lc_tensor *repeated(lc_tensor *t, int64_t times) { return t == LC_NONE ? t : lc_repeat(t, &times, 1); }
static int        averaged(lc_tensor *running, lc_tensor *each, int64_t batch, int64_t channels)
{
    if (running == LC_NONE) return 0;
    lc_tensor *mean = lc_mean(lc_reshape(each, (int64_t[]){ batch, channels }, 2), (int64_t[]){ 0 }, 1, false);
    return mean && lc_copy_(running, mean, false) ? 0 : -1;
}
static int instance_norm_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    int64_t    shape[LC_MAX_DIMS], batch = x->ndim ? x->shape[0] : 0, channels = x->ndim > 1 ? x->shape[1] : 0;
    lc_value   args[8];
    if (!in[5].b && (in(3) == LC_NONE || in(4) == LC_NONE))
        return lc_fail_int(LC_LucidError, "Expected running_mean and running_var to be defined when use_input_stats is false");
    if (batch_fits(in, "instance_norm") < 0) return -1;
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof *shape), memcpy(args, in, sizeof args);
    shape[0] = 1, shape[1] = batch * channels;
    args[0].t = lc_reshape(lc_contiguous(x, LC_CONTIGUOUS_FORMAT), shape, x->ndim);
    for (int k = 1; k < 5; k++) args[k].t = repeated(k < 3 ? in(k) : in(k) == LC_NONE ? in(k) : lc_detach(in(k)), batch);
    for (int k = 0; k < 5; k++)
        if (!args[k].t) return -1;
    if (batch_norm_call(args, out) < 0) return -1;
    if (x->numel && in[5].b &&
        (averaged(in(3), args[3].t, batch, channels) < 0 || averaged(in(4), args[4].t, batch, channels) < 0))
        return -1;
    return (out[0] = lc_reshape(out[0], x->shape, x->ndim)) ? 0 : -1;
}
LC_OP(instance_norm,
      .sig =
          "instance_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: "
          "Tensor | None, use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tensor",
      .doc = "Channels of each image with mean 0 and variance 1, then scaled and shifted.", .promote = LC_NO_PROMOTION,
      .amp = LC_AMP_GPU_FP32, .writes = IN(3) | IN(4), .call = instance_norm_call);
static int nn_instance_norm_call(const lc_value *in, lc_tensor **out)
{
    lc_value args[] = { in[0], in[3], in[4], in[1], in[2], in[5], in[6], in[7] };
    if (in[5].b && more_than_one(space_of(in(0)), in(0), "spatial element") < 0) return -1;
    return instance_norm_call(args, out);
}
LC_OP(
    nn_instance_norm, .py = "instance_norm",
    .sig =
        "nn_instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor "
        "| None = None, bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-05) "
        "-> Tensor",
    .doc = "Channels of each image with mean 0 and variance 1, then scaled and shifted.", SPACE, .writes = IN(1) | IN(2),
    .call = nn_instance_norm_call);

/* Dropout, of elements and of whole channels, and alpha dropout, which keeps mean and variance of SELU networks. The same
 * seed gives PyTorch's masks. The functions at the end are nn.functional's, over the ops above them. */
#include "../create/random.h"
#include <math.h>

/* ---- dropout: `noise` is 0 with probability p ---- */
static lc_tensor *noise_like(lc_tensor *x, bool feature, double p) /* feature: one draw per sample and channel */
{
    int64_t shape[LC_MAX_DIMS];
    if (!feature) return lc_bernoulli_(lc_empty_like(x, LC_ABSENT, LC_ABSENT, LC_ABSENT), 1 - p, NULL);
    if (x->ndim < 2) return lc_fail(LC_ShapeMismatch, "Feature dropout requires at least 2 dimensions in the input");
    for (int d = 0; d < x->ndim; d++) shape[d] = d < 2 ? x->shape[d] : 1;
    lc_tensor *noise = lc_empty(shape, x->ndim, LC_OF_DTYPE((lc_dtype)x->dtype),
                                (lc_value){ .tag = LC_IS_device, .dev = x->device }, LC_ABSENT);
    return lc_bernoulli_(noise, 1 - p, NULL);
}
/* PyTorch's mul_ by a scalar inside an op first rounds the scalar to the tensor's dtype, which is visible in half precision. */
static lc_tensor *times(lc_tensor *x, double by)
{
    if (!x || lc_working_dtype(x->dtype) == x->dtype) return lc_mul_(x, LC_NUMBER(by));
    lc_value where = { .tag = LC_IS_device, .dev = x->device };
    return lc_mul_(x, lc_scalar_tensor(LC_NUMBER(by), LC_OF_DTYPE((lc_dtype)x->dtype), where));
}
static bool keeps_noise(const lc_tensor *x)
{
    return (x->flags & LC_REQUIRES_GRAD && !(lc_modes & LC_NO_GRAD)) || x->flags & LC_BATCHED;
}
/* ---- a device with a kernel for all of it: PyTorch's numbers on GPUs, which differ from those of its bernoulli_ ---- */
static bool is_fused(const lc_tensor *x)
{
    return !(x->flags & LC_BATCHED) && lc_backends[x->device.kind]->has(LC_OP__fused_dropout, (lc_dtype)x->dtype);
}
static int fused_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    for (int k = 0; k < 2; k++) {
        spec_like(call, &out[k], x, k ? LC_b8 : (lc_dtype)x->dtype);
        if (!lc_is_dense(x)) continue;
        out[k].order = LC_ORDER_STRIDES;
        memcpy(out[k].stride, x->stride, (size_t)x->ndim * sizeof *x->stride);
    }
    return 0;
}
static int fused_run(const lc_record *call)
{
    lc_tensor *x = call->in[0], *out = call->out[0], *mask = call->out[1];
    bool     in_memory_order = x->is_contiguous || (lc_is_dense(x) && x->numel % 2 == 0); /* else as the elements are counted */
    unsigned modes = lc_modes;
    lc_random_args args = { .out = out, .parameters = { x, mask }, .a = call->args[1].f };
    if (!(args.generator = generator_for(&(lc_value){ .tag = LC_IS_none }, x->device))) return -1;
    if (in_memory_order) return run_kernel_with(call, &args);
    lc_value contiguous = { .tag = LC_IS_format, .fmt = LC_CONTIGUOUS_FORMAT };
    lc_scope scope = lc_scope_open();
    lc_modes |= LC_NO_GRAD;
    lc_tensor *from = lc_clone(x, LC_CONTIGUOUS_FORMAT), *made = lc_empty_like(x, LC_ABSENT, LC_ABSENT, contiguous),
              *kept = lc_empty_like(mask, LC_ABSENT, LC_ABSENT, contiguous);
    int rc = from && made && kept ? 0 : -1;
    args.out = made, args.parameters[0] = from, args.parameters[1] = kept, args.apart = true;
    if (rc == 0) rc = run_kernel_with(call, &args);
    if (rc == 0) rc = move_values(out, made);
    if (rc == 0) rc = move_values(mask, kept);
    lc_modes = modes;
    return lc_scope_close(scope), rc;
}
GRAD(_fused_dropout) { dx[0] = lc_native_dropout_backward(g[0], y[1], 1 / (1 - in[1].f)); }
LC_OP(_fused_dropout, .sig = "_fused_dropout(input: Tensor, p: float) -> (output: Tensor, mask: Tensor)",
      .doc = "dropout in training by one kernel, where a device has one; 0 < p < 1.", .hidden = true, .random = true,
      .shape = fused_shape, .run = fused_run, .grad = _fused_dropout_grad, .saves = OUT(1));

typedef enum { FEATURE = 1, ALPHA = 2, INPLACE = 4 } dropout_kind;
static lc_tensor *scaled(lc_tensor *x, lc_tensor *by, bool inplace) { return inplace ? lc_mul_(x, by) : lc_mul(x, by); }
static lc_tensor *with_noise(lc_tensor *x, double p, dropout_kind kind)
{
    lc_tensor *noise = noise_like(x, kind & FEATURE, p);
    if (kind & ALPHA) { /* dropped elements become the smallest value of SELU; mean and variance stay */
        double     alpha = 1.7580993408473766, a = 1 / sqrt((alpha * alpha * p + 1) * (1 - p));
        lc_tensor *b = lc_add_(times(lc_add(noise, LC_NUMBER(-1)), alpha * a), LC_NUMBER(alpha * a * p));
        return lc_add_(scaled(x, times(noise, a), kind & INPLACE), b);
    }
    if (keeps_noise(x) || kind) return scaled(x, lc_div_(noise, LC_NUMBER(1 - p)), kind & INPLACE);
    return lc_mul_(lc_div_(noise, LC_NUMBER(1 - p)), x); /* no gradient will read the noise: its memory becomes the result */
}
/* In place, block by block: the noise of a block is discarded before the next one is drawn. Not on devices whose numbers depend
 * on how many are drawn at once, which are those with a kernel for all of dropout. */
enum { PIECE = 1 << 12 };
static lc_tensor *in_pieces(lc_tensor *x, double p, dropout_kind kind)
{
    lc_tensor *flat = lc_view(x, (int64_t[]){ -1 }, 1);
    bool       fine = flat;
    for (int64_t at = 0; fine && at < x->numel; at += PIECE) {
        lc_scope scope = lc_scope_open();
        fine = with_noise(lc_narrow(flat, 0, at, x->numel - at < PIECE ? x->numel - at : PIECE), p, kind | INPLACE);
        lc_scope_close(scope);
    }
    return fine ? x : NULL;
}
static int drop(const lc_value *in, lc_tensor **out, dropout_kind kind)
{
    lc_tensor *x = in(0);
    double     p = in[1].f;
    if (!(p >= 0 && p <= 1)) return lc_fail_int(LC_LucidError, "dropout probability has to be between 0 and 1, but got %g", p);
    if (!in[2].b || p == 0 || !x->numel) return out[0] = x, 0;
    if (p == 1) { /* by a zero of its dtype: integers stay integers */
        lc_value where = { .tag = LC_IS_device, .dev = x->device };
        return (out[0] = scaled(x, lc_scalar_tensor(LC_NUMBER(0), LC_OF_DTYPE((lc_dtype)x->dtype), where), kind & INPLACE))
                   ? 0
                   : -1;
    }
    if (!kind && is_fused(x)) return (out[0] = lc__fused_dropout(x, p).output) ? 0 : -1;
    bool piecewise = kind && !(kind & FEATURE) && x->numel > PIECE && !keeps_noise(x) && !is_fused(x) &&
                     lc_is_contiguous_in(x, LC_CONTIGUOUS_FORMAT);
    if (piecewise) out[0] = in_pieces(kind & INPLACE ? x : lc_clone(x, LC_PRESERVE_FORMAT), p, kind);
    else out[0] = with_noise(x, p, kind);
    return out[0] ? 0 : -1;
}
#define DROPOUT(name, kind)                                                                                                    \
    static int name##_call(const lc_value *in, lc_tensor **out) { return drop(in, out, kind); }                                \
    static int name##__call(const lc_value *in, lc_tensor **out) { return drop(in, out, (kind) | INPLACE); }
DROPOUT(dropout, 0)
DROPOUT(feature_dropout, FEATURE)
DROPOUT(alpha_dropout, ALPHA)
DROPOUT(feature_alpha_dropout, ALPHA | FEATURE)
LC_OP(dropout, .sig = "dropout(input: Tensor, p: float, train: bool) -> Tensor",
      .doc = "In training: zero with probability p, the rest scaled so that the mean stays.", .random = true,
      .call = dropout_call);
LC_OP(dropout_, .sig = "dropout_(input: Tensor, p: float, train: bool) -> Tensor", .doc = "In-place dropout.", .random = true,
      .writes = IN(0), .call = dropout__call);
LC_OP(feature_dropout, .sig = "feature_dropout(input: Tensor, p: float, train: bool) -> Tensor",
      .doc = "dropout of whole channels: dimensions 0 and 1 count samples and channels.", .random = true,
      .call = feature_dropout_call);
LC_OP(feature_dropout_, .sig = "feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor",
      .doc = "In-place feature_dropout.", .random = true, .writes = IN(0), .call = feature_dropout__call);
LC_OP(alpha_dropout, .sig = "alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor",
      .doc = "dropout for SELU networks: mean and variance stay.", .random = true, .call = alpha_dropout_call);
LC_OP(alpha_dropout_, .sig = "alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor", .doc = "In-place alpha_dropout.",
      .random = true, .writes = IN(0), .call = alpha_dropout__call);
LC_OP(feature_alpha_dropout, .sig = "feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor",
      .doc = "alpha_dropout of whole channels.", .random = true, .call = feature_alpha_dropout_call);
LC_OP(feature_alpha_dropout_, .sig = "feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor",
      .doc = "In-place feature_alpha_dropout.", .random = true, .writes = IN(0), .call = feature_alpha_dropout__call);

static int native_dropout_backward_call(const lc_value *in, lc_tensor **out)
{
    return (out[0] = lc_mul(lc_mul(in(0), in(1)), LC_NUMBER(in[2].f))) ? 0 : -1;
}
LC_OP(native_dropout_backward, .sig = "native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor",
      .doc = "The gradient of native_dropout.", .call = native_dropout_backward_call);
static double kept_scale(const lc_value *in) { return in[1].f == 1 ? 0 : 1 / (1 - in[1].f); }
static bool   trains(const lc_value *in) { return in[2].tag != LC_IS_bool || in[2].b; }
static int    native_dropout_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *mask;
    if (trains(in) && x->numel && in[1].f > 0 && in[1].f < 1 && is_fused(x)) {
        lc__fused_dropout_out both = lc__fused_dropout(x, in[1].f);
        return (out[0] = both.output) && (out[1] = both.mask) ? 0 : -1;
    }
    mask = lc_empty_like(x, x->numel ? LC_OF_DTYPE(LC_b8) : LC_ABSENT, LC_ABSENT, LC_ABSENT);
    if (trains(in) && x->numel) {
        out[1] = lc_bernoulli_(mask, 1 - in[1].f, NULL);
        out[0] = times(lc_mul(x, out[1]), kept_scale(in));
    } else {
        out[1] = lc_fill_(mask, LC_INTEGER(1));
        out[0] = lc_clone(x, LC_PRESERVE_FORMAT);
    }
    return out[0] && out[1] ? 0 : -1;
}
GRAD(native_dropout) { dx[0] = lc_native_dropout_backward(g[0], y[1], trains(in) ? kept_scale(in) : 1); }
LC_OP(native_dropout, .unnamed = true,
      .sig = "native_dropout(input: Tensor, p: float, train: bool | None) -> (output: Tensor, mask: Tensor)",
      .doc = "dropout and the mask of kept elements; train None means True.", .random = true, .call = native_dropout_call,
      .grad = native_dropout_grad, .saves = OUT(1));

/* ---- nn.functional: (input, p, training, inplace) ---- */
#define SPACE .ns = "nn.functional", .random = true
static int check_p(double p)
{
    if (p >= 0 && p <= 1) return 0;
    return lc_fail_int(p != p ? LC_LucidError : LC_ValueError, "dropout probability has to be between 0 and 1, but got %g", p);
}
/* Channels of nd dimensions. Without a batch there is one sample (dropout2d takes the first dimension for samples, as PyTorch does). */
static int drop_channels(const lc_value *in, lc_tensor **out, int nd, dropout_kind inplace)
{
    lc_tensor *x = in(0);
    bool       alone = nd != 2 && x->ndim == nd + 1;
    if (check_p(in[1].f) < 0) return -1;
    if (x->ndim != nd + 1 && x->ndim != nd + 2) {
        if (nd == 1)
            return lc_fail_int(LC_ShapeMismatch, "dropout1d: Expected 2D or 3D input, but received a %dD input.", x->ndim);
        lc_warn("dropout%dd: Received a %d-D input to dropout%dd, which is deprecated and will result in an error in a future "
                "release.",
                nd, x->ndim, nd);
        alone = nd == 3;
    }
    lc_value args[] = { in[0], in[1], in[2] };
    if (alone && !(args[0].t = lc_unsqueeze(x, 0))) return -1;
    if (drop(args, out, FEATURE | inplace) < 0) return -1;
    if (alone) out[0] = inplace ? x : lc_squeeze(out[0], (int64_t[]){ 0 }, 1);
    return out[0] ? 0 : -1;
}
static int drop_checked(const lc_value *in, lc_tensor **out, dropout_kind kind, dropout_kind inplace)
{
    return check_p(in[1].f) < 0 ? -1 : drop(in, out, kind | inplace);
}
#define FUNCTIONAL(op, function, kind, training, about)                                                                        \
    COMPOSITE(functional_##op, function(in, out, kind, 0))                                                                     \
    LC_OP(functional_##op,                                                                                                     \
          .sig = "functional_" #op "(input: Tensor, p: float = 0.5, training: bool = " training                                \
                 ", inplace: truth = False) -> Tensor",                                                                        \
          .py = #op, .doc = about, SPACE, .call = functional_##op##_call);                                                     \
    COMPOSITE(functional_##op##_, function(in, out, kind, INPLACE))                                                            \
    LC_OP(functional_##op##_,                                                                                                  \
          .sig = "functional_" #op "_(input: Tensor, p: float = 0.5, training: bool = " training ") -> Tensor",                \
          .doc = "The same in place.", SPACE, .hidden = true, .writes = IN(0), .call = functional_##op##__call);
FUNCTIONAL(dropout, drop_checked, 0, "True", "In training: zero with probability p, the rest scaled so that the mean stays.")
FUNCTIONAL(dropout1d, drop_channels, 1, "True", "dropout of whole channels of one dimension.")
FUNCTIONAL(dropout2d, drop_channels, 2, "True", "dropout of whole channels of two dimensions.")
FUNCTIONAL(dropout3d, drop_channels, 3, "True", "dropout of whole channels of three dimensions.")
FUNCTIONAL(alpha_dropout, drop_checked, ALPHA, "False", "dropout for SELU networks: mean and variance stay.")
FUNCTIONAL(feature_alpha_dropout, drop_checked, ALPHA | FEATURE, "False", "alpha_dropout of whole channels.")

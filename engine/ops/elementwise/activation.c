/* Activations of neural networks: nn.functional's, and Tensor methods where PyTorch or Lucid has them.
 *
 * Each is a row of scalar.def, and so is its gradient: an op <name>_backward, one pass over memory, with a gradient of its
 * own. For a piecewise linear function that gradient is the same op again; it has no second derivative. */
#include "../rules.h"
#include "../../tensor/iter.h"
#include <float.h>
#include <math.h>

#define SPACE     .ns = "nn.functional"
#define MAP       .ns = "nn.functional", .shape = same
#define BACKWARD  .hidden = true, .shape = broadcast
#define KERNEL    .run = elementwise
#define PARAMETER LOWERED(with_parameters)

/* A row over the tensors of the call and the scalars that follow them in its arguments. */
static int lower_as(const lc_record *call, lc_lowering *to, lc_op_id row)
{
    int n = call->n_in;
    lower_to(to, call, row, call->in, n);
    for (int k = n; k < call->op->args->n_params && n < LC_ROW_OPERANDS && call->op->args->params[k].kind == LC_IS_number;
         k++) {
        double value = lc_number_of(&call->args[k]), most = working_dtype(call->dtype) == LC_f32 ? FLT_MAX : DBL_MAX;
        bool   fits = lc_is_differentiable(call->dtype) ? !isfinite(value) || fabs(value) <= most : isfinite(value);
        if (!fits || (call->args[k].tag == LC_IS_complex && !lc_is_complex(call->dtype)))
            return lc_fail_int(LC_LucidError, "%s: value cannot be converted to type %s without overflow", call->op->name,
                               lc_dtypes[call->dtype].name);
        to->in[n] = number_operand_in(&to->number[n - call->n_in], &call->args[k]);
        to->n_in = ++n;
    }
    return 0;
}
static int with_parameters(const lc_record *call, lc_lowering *to) { return lower_as(call, to, call->op->kernel); }

static int packed_shape(const lc_record *call, lc_spec *out) /* contiguous, whatever the input's strides, as in PyTorch */
{
    return spec_like(call, out, call->in[0], (lc_dtype)call->in[0]->dtype), 0;
}
/* g where x is not positive, else 0: the second derivative of functions that are curved there only. */
static lc_tensor *below_zero(lc_tensor *x, lc_tensor *g) { return lc_where(lc_le(x, LC_INTEGER(0)), g, LC_INTEGER(0)); }

/* ---- straight pieces ---- */
static int hardtanh_lower(const lc_record *call, lc_lowering *to)
{
    double low = lc_number_of(&call->args[1]), high = lc_number_of(&call->args[2]);
    if (low > high) return lc_fail_int(LC_ValueError, "min_val cannot be greater than max_val");
    if (call->dtype == LC_u8 && (low < 0 || high < 0))
        return lc_fail_int(LC_LucidError, "cannot do hardtanh on an unsigned type with negative limits");
    return lower_as(call, to, LC_OP_clamp);
}
GRAD(hardtanh_backward) { dx[0] = lc_hardtanh_backward(g[0], in(1), in[2], in[3]); }
LC_OP(hardtanh_backward,
      .sig = "hardtanh_backward(grad_output: Tensor, input: Tensor, min_val: Number, max_val: Number) -> Tensor",
      .doc = "grad_output where input is inside the limits.", BACKWARD, PARAMETER, .grad = hardtanh_backward_grad,
      .saves = IN(1));
GRAD(hardtanh) { dx[0] = lc_hardtanh_backward(g[0], in(0), in[1], in[2]); }
LC_OP(hardtanh,
      .sig = "hardtanh(input: Tensor, min_val: Number = -1.0, max_val: Number = 1.0, inplace: truth = False) -> Tensor",
      .doc = "input within [min_val, max_val].", MAP, .inplace = true, LOWERED(hardtanh_lower), .grad = hardtanh_grad,
      .saves = IN(0));

GRAD(relu6) { dx[0] = lc_hardtanh_backward(g[0], in(0), LC_I(0), LC_I(6)); }
LC_OP(relu6, .sig = "relu6(input: Tensor, inplace: truth = False) -> Tensor", .doc = "input within [0, 6].", MAP, KERNEL,
      .method = true, .inplace = true, .grad = relu6_grad, .saves = IN(0));

GRAD(hardsigmoid_backward) { dx[0] = lc_hardsigmoid_backward(g[0], in(1)); }
LC_OP(hardsigmoid_backward, .sig = "hardsigmoid_backward(grad_output: Tensor, input: Tensor) -> Tensor",
      .doc = "grad_output / 6 where input is inside (-3, 3).", BACKWARD, KERNEL, .grad = hardsigmoid_backward_grad,
      .saves = IN(1));
GRAD(hardsigmoid) { dx[0] = lc_hardsigmoid_backward(g[0], in(0)); }
LC_OP(hardsigmoid, .sig = "hardsigmoid(input: Tensor, inplace: truth = False) -> Tensor", .doc = "relu6(input + 3) / 6.", MAP,
      KERNEL, .inplace = true, .grad = hardsigmoid_grad, .saves = IN(0));

GRAD(hardswish_backward)
{
    lc_tensor *x = in(1), *inside = lc_logical_and(lc_gt(x, LC_INTEGER(-3)), lc_lt(x, LC_INTEGER(3)));
    if (need[0]) dx[0] = lc_hardswish_backward(g[0], x);
    if (need[1]) dx[1] = lc_where(inside, lc_div(lc_mul(g[0], in(0)), LC_INTEGER(3)), LC_INTEGER(0));
}
LC_OP(hardswish_backward, .sig = "hardswish_backward(grad_output: Tensor, input: Tensor) -> Tensor",
      .doc = "The gradient of hardswish.", BACKWARD, KERNEL, .grad = hardswish_backward_grad, .saves = IN(0) | IN(1));
GRAD(hardswish) { dx[0] = lc_hardswish_backward(g[0], in(0)); }
LC_OP(hardswish, .sig = "hardswish(input: Tensor, inplace: truth = False) -> Tensor", .doc = "input * relu6(input + 3) / 6.",
      MAP, KERNEL, .inplace = true, .grad = hardswish_grad, .saves = IN(0));

/* Lucid's methods with other names. */
static int hard_sigmoid_call(const lc_value *in, lc_tensor **out) { return (out[0] = lc_hardsigmoid(in(0))) ? 0 : -1; }
LC_OP(hard_sigmoid, .sig = "hard_sigmoid(input: Tensor) -> Tensor", .doc = "relu6(input + 3) / 6.", .method = true,
      .function = false, .call = hard_sigmoid_call);
static int hard_swish_call(const lc_value *in, lc_tensor **out) { return (out[0] = lc_hardswish(in(0))) ? 0 : -1; }
LC_OP(hard_swish, .sig = "hard_swish(input: Tensor) -> Tensor", .doc = "input * relu6(input + 3) / 6.", .method = true,
      .function = false, .call = hard_swish_call);

GRAD(threshold_backward) { dx[0] = lc_threshold_backward(g[0], in(1), in[2]); }
LC_OP(threshold_backward, .sig = "threshold_backward(grad_output: Tensor, input: Tensor, threshold: Number) -> Tensor",
      .doc = "grad_output where input is above the threshold.", BACKWARD, PARAMETER, .grad = threshold_backward_grad,
      .saves = IN(1));
GRAD(threshold) { dx[0] = lc_threshold_backward(g[0], in(0), in[1]); }
LC_OP(threshold, .sig = "threshold(input: Tensor, threshold: Number, value: Number, inplace: truth = False) -> Tensor",
      .doc = "input where it is above the threshold, else value.", .inplace = true, .repeats_ok = true, .shape = same,
      PARAMETER, .grad = threshold_grad, .saves = IN(0));

GRAD(shrink_backward) { dx[0] = lc_shrink_backward(g[0], in(1), in[2]); }
LC_OP(shrink_backward, .sig = "shrink_backward(grad_output: Tensor, input: Tensor, lambd: Number) -> Tensor",
      .doc = "grad_output where input is outside [-lambd, lambd].", BACKWARD, PARAMETER, .grad = shrink_backward_grad,
      .saves = IN(1));
GRAD(shrink) { dx[0] = lc_shrink_backward(g[0], in(0), in[1]); }
LC_OP(hardshrink, .sig = "hardshrink(input: Tensor, lambd: Number = 0.5) -> Tensor",
      .doc = "input, and zero where it is inside [-lambd, lambd].", .method = true, .out = true, .shape = same, PARAMETER,
      .grad = shrink_grad, .saves = IN(0));
static int softshrink_lower(const lc_record *call, lc_lowering *to)
{
    double lambd = lc_number_of(&call->args[1]);
    int    dtype = call->in[0]->dtype;
    double most = dtype == LC_f16 ? 65504 : dtype == LC_bf16 ? 0x1.FEp127 : dtype == LC_f32 ? FLT_MAX : DBL_MAX;
    if (lc_is_floating(dtype) && !(lambd >= 0 && lambd <= most))
        return lc_fail_int(LC_LucidError, "lambda must be in range [0, %g], but found %g.", most, lambd);
    return with_parameters(call, to);
}
LC_OP(softshrink, .sig = "softshrink(input: Tensor, lambd: Number = 0.5) -> Tensor",
      .doc = "input shrunk towards zero by lambd.", MAP, .out = true, LOWERED(softshrink_lower), .grad = shrink_grad,
      .saves = IN(0));

/* The slope may be a tensor: prelu's is. NaN counts as not positive, so the slope's gradient gets it. */
static lc_tensor *not_above(lc_tensor *x, lc_tensor *t) { return lc_where(lc_gt(x, LC_INTEGER(0)), LC_INTEGER(0), t); }
GRAD(leaky_relu_backward)
{
    if (need[0]) dx[0] = lc_leaky_relu_backward(g[0], in(1), in(2));
    if (need[2]) dx[2] = not_above(in(1), lc_mul(g[0], in(0)));
}
LC_OP(leaky_relu_backward,
      .sig = "leaky_relu_backward(grad_output: Tensor, input: Tensor, negative_slope: Tensor | Number) -> Tensor",
      .doc = "grad_output, times the slope where input is not positive.", BACKWARD, KERNEL, .grad = leaky_relu_backward_grad,
      .saves = IN(0) | IN(1) | IN(2));
GRAD(leaky_relu) { dx[0] = lc_leaky_relu_backward(g[0], in(0), number_operand(&in[1])); }
LC_OP(leaky_relu, .sig = "leaky_relu(input: Tensor, negative_slope: Number = 0.01, inplace: truth = False) -> Tensor",
      .doc = "input, times negative_slope where it is negative.", MAP, .inplace = true, PARAMETER, .grad = leaky_relu_grad,
      .saves = IN(0));

GRAD(_prelu_kernel)
{
    if (need[0]) dx[0] = lc_leaky_relu_backward(g[0], in(0), in(1));
    if (need[1]) dx[1] = not_above(in(0), lc_mul(g[0], in(0)));
}
LC_OP(_prelu_kernel, .sig = "_prelu_kernel(input: Tensor, weight: Tensor) -> Tensor",
      .doc = "input, times weight where it is negative.", .hidden = true, .kernel = LC_OP_leaky_relu, .shape = broadcast,
      KERNEL, .grad = _prelu_kernel_grad, .saves = IN(0) | IN(1));
static int prelu_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *w = in(1);
    int64_t    shape[LC_MAX_DIMS], channels = x->ndim > 1 ? x->shape[1] : 1;
    if (x->dtype != w->dtype)
        return lc_fail_int(LC_DtypeMismatch, "prelu: Type promoting not supported. Got %s and %s", lc_dtypes[x->dtype].name,
                           lc_dtypes[w->dtype].name);
    if (w->numel != 1) {
        if (x->ndim == 0) return lc_fail_int(LC_ShapeMismatch, "Not allow zero-dim input tensor.");
        if (w->numel != channels)
            return lc_fail_int(LC_ShapeMismatch,
                               "Mismatch of parameter numbers and input channel size. Found parameter numbers = %lld and "
                               "channel size = %lld.",
                               (long long)w->numel, (long long)channels);
    }
    if (w->ndim > 1)
        return lc_fail_int(LC_ShapeMismatch, "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = %d",
                           w->ndim);
    for (int d = 0; d < x->ndim; d++) shape[d] = d == 1 ? w->numel : 1;
    if (x->ndim == 1) shape[0] = w->numel;
    if (x->ndim != w->ndim) w = lc_reshape(w, shape, x->ndim);
    return (out[0] = lc__prelu_kernel(x, w)) ? 0 : -1;
}
LC_OP(prelu, .sig = "prelu(input: Tensor, weight: Tensor) -> Tensor",
      .doc = "input, times weight where it is negative: one weight, or one for each channel (dimension 1).", .method = true,
      .promote = LC_NO_PROMOTION, .amp = LC_AMP_LOWER, .call = prelu_call);

/* ---- exponential pieces ---- */
GRAD(elu_backward)
{
    if (need[0]) dx[0] = lc_elu_backward(g[0], in(1), in[2]);
    if (need[1]) dx[1] = below_zero(in(1), lc_mul(g[0], lc_elu_backward(in(0), in(1), in[2])));
}
LC_OP(elu_backward, .sig = "elu_backward(grad_output: Tensor, input: Tensor, alpha: Number) -> Tensor",
      .doc = "The gradient of elu.", BACKWARD, PARAMETER, .grad = elu_backward_grad, .saves = IN(0) | IN(1));
GRAD(elu) { dx[0] = lc_elu_backward(g[0], in(0), in[1]); }
LC_OP(elu, .sig = "elu(input: Tensor, alpha: Number = 1.0, inplace: truth = False) -> Tensor",
      .doc = "input, and alpha * (exp(input) - 1) where it is negative.", MAP, .inplace = true, PARAMETER, .grad = elu_grad,
      .saves = IN(0));

static int celu_lower(const lc_record *call, lc_lowering *to)
{
    if (lc_number_of(&call->args[1]) == 0) return lc_fail_int(LC_LucidError, "ZeroDivisionError: alpha cannot be 0 for CELU");
    return with_parameters(call, to);
}
/* PyTorch's slope has the factor alpha / alpha. */
static int celu_backward_lower(const lc_record *call, lc_lowering *to)
{
    lc_value   nan = LC_F(NAN);
    lc_tensor *alpha = number_operand_in(&to->number[0], isinf(lc_number_of(&call->args[2])) ? &nan : &call->args[2]);
    return lower_to(to, call, call->op->kernel, (lc_tensor *[]){ call->in[0], call->in[1], alpha }, 3);
}
GRAD(celu_backward)
{
    if (need[0]) dx[0] = lc_celu_backward(g[0], in(1), in[2]);
    if (need[1]) {
        lc_tensor *bend = lc_div(lc_celu_backward(in(0), in(1), in[2]), number_operand(&in[2]));
        dx[1] = below_zero(in(1), lc_mul(g[0], bend));
    }
}
LC_OP(celu_backward, .sig = "celu_backward(grad_output: Tensor, input: Tensor, alpha: Number) -> Tensor",
      .doc = "The gradient of celu.", BACKWARD, LOWERED(celu_backward_lower), .grad = celu_backward_grad,
      .saves = IN(0) | IN(1));
GRAD(celu) { dx[0] = lc_celu_backward(g[0], in(0), in[1]); }
LC_OP(celu, .sig = "celu(input: Tensor, alpha: Number = 1.0, inplace: truth = False) -> Tensor",
      .doc = "input, and alpha * (exp(input / alpha) - 1) where it is negative.", .inplace = true, .shape = same,
      LOWERED(celu_lower), .grad = celu_grad, .saves = IN(0));

/* selu: scale * (x > 0 ? x : alpha * (exp(x) - 1)) */
GRAD(selu_backward)
{
    if (need[0]) dx[0] = lc_selu_backward(g[0], in(1));
    if (need[1]) dx[1] = below_zero(in(1), lc_mul(g[0], lc_selu_backward(in(0), in(1))));
}
LC_OP(selu_backward, .sig = "selu_backward(grad_output: Tensor, input: Tensor) -> Tensor", .doc = "The gradient of selu.",
      BACKWARD, KERNEL, .grad = selu_backward_grad, .saves = IN(0) | IN(1));
GRAD(selu) { dx[0] = lc_selu_backward(g[0], in(0)); }
LC_OP(selu, .sig = "selu(input: Tensor, inplace: truth = False) -> Tensor",
      .doc = "The self-normalising exponential linear unit.", .method = true, .inplace = true, .shape = same, KERNEL,
      .grad = selu_grad, .saves = IN(0));

/* ---- smooth ---- */

/* silu(x) = x s, with s = sigmoid(x). silu_backward(g, x) = g s (1 + x (1 - s)). */
GRAD(silu_backward)
{
    lc_tensor *x = in(1), *s = lc_sigmoid(x), *t = lc_sub(LC_INTEGER(1), s), *st = lc_mul(s, t);
    if (need[0]) dx[0] = lc_silu_backward(g[0], x);
    if (need[1]) { /* s t (2 + x (1 - 2 s)) */
        lc_tensor *bend = lc_add(lc_mul(x, lc_sub(t, s)), LC_INTEGER(2));
        dx[1] = lc_mul(lc_mul(g[0], in(0)), lc_mul(st, bend));
    }
}
LC_OP(silu_backward, .sig = "silu_backward(grad_output: Tensor, input: Tensor) -> Tensor", .doc = "Gradient of silu.", BACKWARD,
      KERNEL, .grad = silu_backward_grad, .saves = IN(1), .saves_for = { 0, IN(0) });
GRAD(silu) { dx[0] = lc_silu_backward(g[0], in(0)); }
LC_OP(silu, .sig = "silu(input: Tensor, inplace: truth = False) -> Tensor", .doc = "input * sigmoid(input).", MAP, KERNEL,
      .method = true, .inplace = true, .grad = silu_grad, .saves = IN(0));

/* mish(x) = x t, with t = tanh(log(1 + exp(x))). With s = sigmoid(x), w = x s, q = 1 - t t: mish' = t + w q, t' = s q, w' = s + w (1 - s). */
GRAD(mish_backward)
{
    lc_tensor *x = in(1), *t = lc_tanh(lc_softplus(x, LC_F(1), LC_F(20))), *s = lc_sigmoid(x), *w = lc_mul(x, s);
    lc_tensor *q = lc_sub(LC_INTEGER(1), lc_mul(t, t));
    if (need[0]) dx[0] = lc_mish_backward(g[0], x);
    if (need[1]) { /* q (s + w' - 2 w t s) */
        lc_tensor *rise = lc_add(s, lc_mul(w, lc_sub(LC_INTEGER(1), s)));
        lc_tensor *bend = lc_sub(lc_add(s, rise), lc_mul(lc_mul(w, t), lc_mul(s, LC_INTEGER(2))));
        dx[1] = lc_mul(lc_mul(g[0], in(0)), lc_mul(q, bend));
    }
}
LC_OP(mish_backward, .sig = "mish_backward(grad_output: Tensor, input: Tensor) -> Tensor", .doc = "The gradient of mish.",
      BACKWARD, KERNEL, .grad = mish_backward_grad, .saves = IN(0) | IN(1));
GRAD(mish) { dx[0] = lc_mish_backward(g[0], in(0)); }
LC_OP(mish, .sig = "mish(input: Tensor, inplace: truth = False) -> Tensor", .doc = "input * tanh(softplus(input)).", MAP,
      KERNEL, .method = true, .inplace = true, .grad = mish_grad, .saves = IN(0));

/* softplus: log(1 + exp(beta x)) / beta, the identity where beta x is above the threshold. */
GRAD(softplus_backward)
{
    lc_tensor *beta = number_operand(&in[2]), *scaled = lc_mul(in(1), beta), *s = lc_sigmoid(scaled);
    if (need[0]) dx[0] = lc_softplus_backward(g[0], in(1), in[2], in[3]);
    if (need[1]) {
        lc_tensor *bend = lc_mul(lc_mul(s, lc_sub(LC_INTEGER(1), s)), beta);
        dx[1] = lc_where(lc_gt(scaled, number_operand(&in[3])), LC_INTEGER(0), lc_mul(lc_mul(g[0], in(0)), bend));
    }
}
LC_OP(softplus_backward,
      .sig = "softplus_backward(grad_output: Tensor, input: Tensor, beta: Number, threshold: Number) -> Tensor",
      .doc = "The gradient of softplus.", BACKWARD, PARAMETER, .grad = softplus_backward_grad, .saves = IN(0) | IN(1));
GRAD(softplus) { dx[0] = lc_softplus_backward(g[0], in(0), in[1], in[2]); }
LC_OP(softplus, .amp = LC_AMP_GPU_FP32, .sig = "softplus(input: Tensor, beta: Number = 1, threshold: Number = 20) -> Tensor",
      .doc = "log(1 + exp(beta * input)) / beta; input itself where beta * input > threshold.", MAP, .method = true,
      .out = true, PARAMETER, .grad = softplus_grad, .saves = IN(0));

GRAD(logsigmoid_backward)
{
    lc_tensor *s = lc_sigmoid(in(1));
    if (need[0]) dx[0] = lc_logsigmoid_backward(g[0], in(1));
    if (need[1]) dx[1] = lc_mul(lc_mul(g[0], in(0)), lc_mul(s, lc_sub(s, LC_INTEGER(1))));
}
LC_OP(logsigmoid_backward, .sig = "logsigmoid_backward(grad_output: Tensor, input: Tensor) -> Tensor",
      .doc = "The gradient of logsigmoid.", BACKWARD, KERNEL, .grad = logsigmoid_backward_grad, .saves = IN(0) | IN(1));
GRAD(logsigmoid) { dx[0] = lc_logsigmoid_backward(g[0], in(0)); }
LC_OP(logsigmoid, .sig = "logsigmoid(input: Tensor) -> Tensor", .doc = "The logarithm of sigmoid(input).", SPACE, KERNEL,
      .shape = packed_shape, .out = true, .grad = logsigmoid_grad, .saves = IN(0));

/* gelu(x) = x P(X <= x) for a standard normal X; approximate='tanh' has the older formula. */
static int gelu_row(const lc_record *call, lc_lowering *to, lc_op_id exact, lc_op_id tanh, int argument)
{
    const char *how = call->args[argument].s;
    if (strcmp(how, "none") && strcmp(how, "tanh"))
        return lc_fail_int(LC_LucidError, "approximate argument must be either none or tanh.");
    return lower_to(to, call, *how == 'n' ? exact : tanh, call->in, call->n_in);
}
static int gelu_lower(const lc_record *call, lc_lowering *to) { return gelu_row(call, to, LC_OP_gelu, LC_OP_gelu_tanh, 1); }
static int gelu_backward_lower(const lc_record *call, lc_lowering *to)
{
    return gelu_row(call, to, LC_OP_gelu_backward, LC_OP_gelu_tanh_backward, 2);
}
GRAD(gelu_backward)
{
    lc_tensor *x = in(1), *xx = lc_mul(x, x), *bend;
    bool       exact = *in[2].s == 'n';
    if (need[0]) dx[0] = lc_gelu_backward(g[0], x, in[2].s);
    if (!need[1]) return;
    if (exact) { /* phi(x) (2 - x x) */
        lc_tensor *phi = lc_mul(lc_exp(lc_mul(xx, LC_NUMBER(-0.5))), LC_NUMBER(0.39894228040143267794));
        bend = lc_mul(phi, lc_sub(LC_INTEGER(2), xx));
    } else { /* with u = k (x + c x^3), t = tanh u: (1 - t t) (u' + x u'' / 2 - x t u' u') */
        double     k = 0.79788456080286535588, c = 0.044715;
        lc_tensor *u = lc_mul(lc_add(x, lc_mul(lc_mul(xx, x), LC_NUMBER(c))), LC_NUMBER(k)), *t = lc_tanh(u);
        lc_tensor *u1 = lc_mul(lc_add(lc_mul(xx, LC_NUMBER(3 * c)), LC_INTEGER(1)), LC_NUMBER(k));
        lc_tensor *half = lc_mul(xx, LC_NUMBER(3 * c * k)); /* x u'' / 2 */
        lc_tensor *sum = lc_sub(lc_add(u1, half), lc_mul(lc_mul(x, t), lc_mul(u1, u1)));
        bend = lc_mul(lc_sub(LC_INTEGER(1), lc_mul(t, t)), sum);
    }
    dx[1] = lc_mul(lc_mul(g[0], in(0)), bend);
}
LC_OP(gelu_backward, .sig = "gelu_backward(grad_output: Tensor, input: Tensor, approximate: str = 'none') -> Tensor",
      .doc = "Gradient of gelu.", BACKWARD, LOWERED(gelu_backward_lower), .grad = gelu_backward_grad, .saves = IN(0) | IN(1));
GRAD(gelu) { dx[0] = lc_gelu_backward(g[0], in(0), in[1].s); }
LC_OP(gelu, .sig = "gelu(input: Tensor, *, approximate: str = 'none') -> Tensor",
      .doc = "input times the probability that a standard normal number is below it.", MAP, .method = true, .out = true,
      LOWERED(gelu_lower), .grad = gelu_grad, .saves = IN(0));
LC_OP(gelu_tanh, .sig = "gelu_tanh(input: Tensor) -> Tensor", .doc = "The kernel of gelu(approximate='tanh').", .hidden = true,
      .shape = same, .run = elementwise);
LC_OP(gelu_tanh_backward, .sig = "gelu_tanh_backward(grad_output: Tensor, input: Tensor) -> Tensor",
      .doc = "The kernel of its gradient.", BACKWARD, .run = elementwise);

/* All dtypes, as in PyTorch: integers are converted to floats. */
static int softsign_call(const lc_value *in, lc_tensor **out)
{
    return (out[0] = lc_div(in(0), lc_add(lc_abs(in(0)), LC_INTEGER(1)))) ? 0 : -1;
}
LC_OP(softsign, .sig = "softsign(input: Tensor) -> Tensor", .doc = "input / (1 + |input|).", SPACE, .call = softsign_call);
static int tanhshrink_call(const lc_value *in, lc_tensor **out) { return (out[0] = lc_sub(in(0), lc_tanh(in(0)))) ? 0 : -1; }
LC_OP(tanhshrink, .sig = "tanhshrink(input: Tensor) -> Tensor", .doc = "input - tanh(input).", SPACE, .call = tanhshrink_call);

/* glu(x) = a sigmoid(b), where a and b are the first and second half of x along dim. */
static int glu_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    int              dim;
    if (x->ndim == 0) return lc_fail_int(LC_ShapeMismatch, "glu does not support 0-dimensional tensors");
    if (dim_index(call->args[1].i, x->ndim, &dim) < 0) return -1;
    if (x->shape[dim] % 2)
        return lc_fail_int(LC_ShapeMismatch, "Halving dimension must be even, but dimension %d is size %lld", dim,
                           (long long)x->shape[dim]);
    lc_tensor half = *x;
    spec_like(call, out, x, (lc_dtype)x->dtype);
    out->shape[dim] /= 2, half.shape = out->shape;
    lc_output_strides((lc_tensor *[]){ &half }, 1, x->ndim, out->shape, out->stride);
    return out->order = LC_ORDER_STRIDES, 0;
}
static int glu_run(const lc_record *call)
{
    lc_tensor *x = call->in[0], *half[2];
    int        dim = 0;
    int64_t    offset = 0, shape[LC_MAX_DIMS];
    if (dim_index(call->args[1].i, x->ndim, &dim) < 0) return -1;
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof *shape), shape[dim] /= 2;
    for (int k = 0; k < 2; k++, offset = shape[dim] * x->stride[dim])
        half[k] = lc_tensor_view(x, x->ndim, shape, x->stride, offset);
    int rc = half[0] && half[1] ? elementwise_as(call, LC_OP_glu, half, 2) : -1;
    return lc_release(half[0]), lc_release(half[1]), rc;
}
GRAD(glu)
{
    int64_t    dim = in[1].i, n = in(0)->shape[dim < 0 ? dim + in(0)->ndim : dim] / 2;
    lc_tensor *a = lc_narrow(in(0), dim, 0, n), *s = lc_sigmoid(lc_narrow(in(0), dim, n, n));
    lc_tensor *both[] = { lc_mul(g[0], s), lc_mul(lc_mul(lc_mul(lc_sub(LC_INTEGER(1), s), s), g[0]), a) };
    dx[0] = lc_cat(both, 2, dim);
}
LC_OP(glu, .batching = LC_BATCH_DIMS, .sig = "glu(input: Tensor, dim: int = -1) -> Tensor",
      .doc = "The first half of input along dim, times the sigmoid of the second.", SPACE, .out = true, .shape = glu_shape,
      .run = glu_run, .grad = glu_grad, .saves = IN(0));

/* ---- rrelu: leaky_relu whose slope is drawn per element in training ---- */
static int noise_run(const lc_record *call)
{
    lc_random_args args = { .out = call->out[0],
                            .parameters = { call->in[0] },
                            .generator = lc_generator_default(),
                            .a = call->args[1].f,
                            .b = call->args[2].f };
    return args.generator ? run_kernel_with(call, &args) : -1;
}
LC_OP(_rrelu_noise, .sig = "_rrelu_noise(input: Tensor, lower: float, upper: float) -> Tensor",
      .doc = "Random slopes where input is not positive, ones elsewhere.", .hidden = true, .random = true,
      .promote = LC_NO_PROMOTION, .shape = packed_shape, .run = noise_run);
static int rrelu(const lc_value *in, lc_tensor **out, bool inplace)
{
    double lower = lc_number_of(&in[1]), upper = lc_number_of(&in[2]);
    if (!isfinite(lower) || !isfinite(upper))
        return lc_fail_int(LC_LucidError, "rrelu: bounds must be finite, got %g and %g", lower, upper);
    if (lower > upper) return lc_fail_int(LC_LucidError, "Lower bound should be less than or equal to the upper bound");
    lc_value   slope = LC_F((lower + upper) / 2);
    lc_tensor *x = inplace ? in(0) : lc_contiguous(in(0), LC_CONTIGUOUS_FORMAT); /* as in PyTorch */
    if (!in[3].b) out[0] = inplace ? lc_leaky_relu_(x, slope) : lc_leaky_relu(x, slope);
    else {
        lc_tensor *noise = lc__rrelu_noise(lc_detach(x), lower, upper);
        out[0] = inplace ? lc_mul_(x, noise) : lc_mul(x, noise);
    }
    return out[0] ? 0 : -1;
}
static int rrelu_call(const lc_value *in, lc_tensor **out) { return rrelu(in, out, false); }
static int rrelu__call(const lc_value *in, lc_tensor **out) { return rrelu(in, out, true); }
LC_OP(rrelu,
      .sig = "rrelu(input: Tensor, lower: Number = 0.125, upper: Number = 0.3333333333333333, training: bool = False, inplace: "
             "truth = False) -> Tensor",
      .doc = "leaky_relu; in training each slope is drawn between lower and upper, else it is their mean.", .random = true,
      .call = rrelu_call);
LC_OP(
    rrelu_,
    .sig = "rrelu_(input: Tensor, lower: Number = 0.125, upper: Number = 0.3333333333333333, training: bool = False) -> Tensor",
    .doc = "In-place rrelu.", .random = true, .writes = IN(0), .call = rrelu__call);

/* cube_ is Lucid's; PyTorch has pow_(3). */
GRAD(cube) { dx[0] = lc_mul(g[0], lc_mul(conj_of(lc_mul(in(0), in(0))), LC_INTEGER(3))); }
LC_OP(cube, .sig = "cube(input: Tensor) -> Tensor", .doc = "input ** 3.", .function = false, .inplace = true, .shape = same,
      .run = elementwise, .grad = cube_grad, .saves = IN(0));

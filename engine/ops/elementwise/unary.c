/* Ops of one operand. If the output makes a gradient cheaper, the op saves its output instead of its input (exp, sqrt, tanh,
 * sigmoid, relu). The common ones of these gradients are ops of their own with one kernel, so that backward is one pass over
 * memory.
 *
 * Complex numbers: with y = f(x) and f holomorphic, dx = g * conj(f'(x)), as PyTorch has it. */
#include "../rules.h"

/* A Python scalar as a 0-d tensor of full precision: as a scalar operand it would be rounded to the default dtype. */
lc_tensor *as_strong_tensor(lc_tensor *t)
{
    if (!t || !t->is_number) return t;
    lc_tensor *made = lc_tensor_new((lc_dtype)t->dtype, (lc_device){ LC_CPU, 0 }, 0, NULL);
    if (made) memcpy(made->data, t->data, (size_t)lc_size_of(t->dtype));
    return lc_scoped(made);
}
lc_tensor *conj_of(lc_tensor *t) { return t && lc_is_complex(t->dtype) ? lc__conj_physical(as_strong_tensor(t)) : t; }

#define MAP       .shape = same, .run = elementwise
#define EXACT_MAP .strict_out = true, MAP
#define FLOAT_MAP .promote = LC_TO_FLOAT, MAP

GRAD(neg) { dx[0] = lc_neg(g[0]); }
LC_OP(neg, .aliases = "negative", .sig = "neg(input: Tensor) -> Tensor", .doc = "Elementwise -input.", .method = true,
      .inplace = true, .out = true, EXACT_MAP, .grad = neg_grad);

static int positive_call(const lc_value *in, lc_tensor **out)
{
    if (in(0)->dtype == LC_b8) return lc_fail_int(LC_LucidError, "The `+` operator, on a bool tensor is not supported.");
    return (out[0] = in(0)), 0;
}
LC_OP(positive, .sig = "positive(input: Tensor) -> Tensor", .doc = "input itself.", .method = true, .call = positive_call);

/* The absolute value of a complex number is real. */
static int magnitude(const lc_record *call, lc_spec *out)
{
    same(call, out);
    out->dtype = lc_real_of(call->dtype);
    if (call->op->writes && lc_is_complex(call->dtype))
        return lc_fail_int(LC_LucidError, "In-place abs is not supported for complex tensors.");
    lc_dtype to = call->out_given ? (lc_dtype)call->out[0]->dtype : out->dtype;
    if (to != call->dtype && (!lc_is_complex(call->dtype) || lc_is_complex(to)))
        return lc_fail_int(LC_DtypeMismatch, "abs: found dtype %s but expected %s", lc_dtypes[to].name,
                           lc_dtypes[call->dtype].name);
    return 0;
}
GRAD(abs) { dx[0] = lc_mul(g[0], lc_sgn(in(0))); }
LC_OP(abs, .aliases = "absolute", .sig = "abs(input: Tensor) -> Tensor", .doc = "Elementwise absolute value.", .method = true,
      .inplace = true, .out = true, .shape = magnitude, .run = elementwise, .grad = abs_grad, .saves = IN(0));

GRAD(flat) { dx[0] = zeros_like(g[0]); } /* the gradient of functions that are constant almost everywhere */
LC_OP(sign, .sig = "sign(input: Tensor) -> Tensor", .doc = "-1, 0 or 1.", .method = true, .inplace = true, .out = true,
      EXACT_MAP, .grad = flat_grad);

GRAD(sgn) /* real: zero. complex: the part of g perpendicular to sgn(x), divided by |x| */
{
    if (!lc_is_complex(in(0)->dtype)) {
        dx[0] = zeros_like(g[0]);
        return;
    }
    lc_tensor *size = lc_abs(in(0)), *along = lc_mul(lc_real(lc_mul(g[0], conj_of(y[0]))), y[0]);
    dx[0] = lc_where(lc_eq(size, LC_INTEGER(0)), LC_INTEGER(0), lc_div(lc_sub(g[0], along), size));
}
LC_OP(sgn, .sig = "sgn(input: Tensor) -> Tensor", .doc = "sign; for complex numbers input / abs(input), or 0.", .method = true,
      .inplace = true, .out = true, EXACT_MAP, .grad = sgn_grad, .saves = IN(0) | OUT(0));

GRAD(reciprocal) { dx[0] = lc_neg(lc_mul(g[0], conj_of(lc_mul(y[0], y[0])))); }
LC_OP(reciprocal, .amp = LC_AMP_GPU_FP32, .sig = "reciprocal(input: Tensor) -> Tensor", .doc = "Elementwise 1 / input.",
      .method = true, .inplace = true, .out = true, FLOAT_MAP, .grad = reciprocal_grad, .saves = OUT(0));

GRAD(sqrt) { dx[0] = lc_div(g[0], lc_mul(conj_of(y[0]), LC_INTEGER(2))); }
LC_OP(sqrt, .sig = "sqrt(input: Tensor) -> Tensor", .doc = "Elementwise square root.", .method = true, .inplace = true,
      .out = true, FLOAT_MAP, .grad = sqrt_grad, .saves = OUT(0));

GRAD(rsqrt) { dx[0] = lc_mul(lc_mul(g[0], LC_NUMBER(-0.5)), conj_of(lc_pow(y[0], LC_INTEGER(3)))); }
LC_OP(rsqrt, .amp = LC_AMP_GPU_FP32, .sig = "rsqrt(input: Tensor) -> Tensor", .doc = "Elementwise 1 / sqrt(input).",
      .method = true, .inplace = true, .out = true, FLOAT_MAP, .grad = rsqrt_grad, .saves = OUT(0));

/* square(bool) gives int64: PyTorch computes pow(input, 2). */
static int squared(const lc_record *call, lc_spec *out)
{
    same(call, out);
    if (call->dtype == LC_b8) out->dtype = LC_i64;
    return 0;
}
static int square_lower(const lc_record *call, lc_lowering *to)
{
    lower_to(to, call, LC_OP_square, call->in, 1);
    if (call->dtype == LC_b8) to->dtype = LC_i64;
    return 0;
}
GRAD(square) { dx[0] = lc_mul(g[0], lc_mul(conj_of(in(0)), LC_INTEGER(2))); }
LC_OP(square, .sig = "square(input: Tensor) -> Tensor", .doc = "Elementwise input * input.", .method = true, .inplace = true,
      .out = true, .shape = squared, LOWERED(square_lower), .grad = square_grad, .saves = IN(0));

/* ---- exponentials and logarithms ---- */

GRAD(exp) { dx[0] = lc_mul(g[0], conj_of(y[0])); }
LC_OP(exp, .amp = LC_AMP_GPU_FP32, .sig = "exp(input: Tensor) -> Tensor", .doc = "Elementwise e ** input.", .method = true,
      .inplace = true, .out = true, FLOAT_MAP, .grad = exp_grad, .saves = OUT(0));

GRAD(exp2) { dx[0] = lc_mul(g[0], lc_mul(conj_of(y[0]), LC_NUMBER(0.69314718055994530942))); }
LC_OP(exp2, .sig = "exp2(input: Tensor) -> Tensor", .doc = "Elementwise 2 ** input.", .method = true, .inplace = true,
      .out = true, FLOAT_MAP, .grad = exp2_grad, .saves = OUT(0));

GRAD(expm1) { dx[0] = lc_mul(g[0], conj_of(lc_add(y[0], LC_INTEGER(1)))); }
LC_OP(expm1, .amp = LC_AMP_GPU_FP32, .sig = "expm1(input: Tensor) -> Tensor",
      .doc = "Elementwise exp(input) - 1, exact for small inputs.", .method = true, .inplace = true, .out = true, FLOAT_MAP,
      .grad = expm1_grad, .saves = OUT(0));

GRAD(log) { dx[0] = lc_div(g[0], conj_of(in(0))); }
LC_OP(log, .amp = LC_AMP_GPU_FP32, .sig = "log(input: Tensor) -> Tensor", .doc = "Elementwise natural logarithm.",
      .method = true, .inplace = true, .out = true, FLOAT_MAP, .grad = log_grad, .saves = IN(0));

GRAD(log1p) { dx[0] = lc_div(g[0], conj_of(lc_add(in(0), LC_INTEGER(1)))); }
LC_OP(log1p, .amp = LC_AMP_GPU_FP32, .sig = "log1p(input: Tensor) -> Tensor",
      .doc = "Elementwise log(1 + input), exact for small inputs.", .method = true, .inplace = true, .out = true, FLOAT_MAP,
      .grad = log1p_grad, .saves = IN(0));

GRAD(log2) { dx[0] = lc_div(g[0], lc_mul(conj_of(in(0)), LC_NUMBER(0.69314718055994530942))); }
LC_OP(log2, .amp = LC_AMP_GPU_FP32, .sig = "log2(input: Tensor) -> Tensor", .doc = "Elementwise logarithm to base 2.",
      .method = true, .inplace = true, .out = true, FLOAT_MAP, .grad = log2_grad, .saves = IN(0));

GRAD(log10) { dx[0] = lc_div(g[0], lc_mul(conj_of(in(0)), LC_NUMBER(2.30258509299404568402))); }
LC_OP(log10, .amp = LC_AMP_GPU_FP32, .sig = "log10(input: Tensor) -> Tensor", .doc = "Elementwise logarithm to base 10.",
      .method = true, .inplace = true, .out = true, FLOAT_MAP, .grad = log10_grad, .saves = IN(0));

/* ---- circular and hyperbolic functions ---- */

GRAD(sin) { dx[0] = lc_mul(g[0], conj_of(lc_cos(in(0)))); }
LC_OP(sin, .sig = "sin(input: Tensor) -> Tensor", .doc = "Elementwise sine.", .method = true, .inplace = true, .out = true,
      FLOAT_MAP, .grad = sin_grad, .saves = IN(0));

GRAD(cos) { dx[0] = lc_neg(lc_mul(g[0], conj_of(lc_sin(in(0))))); }
LC_OP(cos, .sig = "cos(input: Tensor) -> Tensor", .doc = "Elementwise cosine.", .method = true, .inplace = true, .out = true,
      FLOAT_MAP, .grad = cos_grad, .saves = IN(0));

GRAD(tan) { dx[0] = lc_mul(g[0], conj_of(lc_add(lc_square(y[0]), LC_INTEGER(1)))); }
LC_OP(tan, .amp = LC_AMP_GPU_FP32, .sig = "tan(input: Tensor) -> Tensor", .doc = "Elementwise tangent.", .method = true,
      .inplace = true, .out = true, FLOAT_MAP, .grad = tan_grad, .saves = OUT(0));

GRAD(sinh) { dx[0] = lc_mul(g[0], conj_of(lc_cosh(in(0)))); }
LC_OP(sinh, .amp = LC_AMP_GPU_FP32, .sig = "sinh(input: Tensor) -> Tensor", .doc = "Elementwise hyperbolic sine.",
      .method = true, .inplace = true, .out = true, FLOAT_MAP, .grad = sinh_grad, .saves = IN(0));

GRAD(cosh) { dx[0] = lc_mul(g[0], conj_of(lc_sinh(in(0)))); }
LC_OP(cosh, .amp = LC_AMP_GPU_FP32, .sig = "cosh(input: Tensor) -> Tensor", .doc = "Elementwise hyperbolic cosine.",
      .method = true, .inplace = true, .out = true, FLOAT_MAP, .grad = cosh_grad, .saves = IN(0));

/* f(g, y) = g * conj(h(y)): linear in g, and a function of conj(y). */
GRAD(tanh_backward)
{
    if (need[0]) dx[0] = lc_tanh_backward(g[0], conj_of(in(1)));
    if (need[1]) dx[1] = lc_mul(lc_mul(conj_of(g[0]), in(0)), lc_mul(conj_of(in(1)), LC_INTEGER(-2)));
}
LC_OP(tanh_backward, .sig = "tanh_backward(grad_output: Tensor, output: Tensor) -> Tensor",
      .doc = "grad_output * conj(1 - output ** 2).", .hidden = true, .shape = broadcast, .run = elementwise,
      .grad = tanh_backward_grad, .saves = IN(1), .saves_for = { 0, IN(0) });
GRAD(tanh) { dx[0] = lc_tanh_backward(g[0], y[0]); }
LC_OP(tanh, .sig = "tanh(input: Tensor) -> Tensor", .doc = "Elementwise hyperbolic tangent.", .method = true, .inplace = true,
      .out = true, FLOAT_MAP, .grad = tanh_grad, .saves = OUT(0));

GRAD(sigmoid_backward)
{
    if (need[0]) dx[0] = lc_sigmoid_backward(g[0], conj_of(in(1)));
    if (need[1]) dx[1] = lc_mul(lc_mul(conj_of(g[0]), in(0)), lc_sub(LC_INTEGER(1), lc_mul(conj_of(in(1)), LC_INTEGER(2))));
}
LC_OP(sigmoid_backward, .sig = "sigmoid_backward(grad_output: Tensor, output: Tensor) -> Tensor",
      .doc = "grad_output * conj((1 - output) * output).", .hidden = true, .shape = broadcast, .run = elementwise,
      .grad = sigmoid_backward_grad, .saves = IN(1), .saves_for = { 0, IN(0) });
GRAD(sigmoid) { dx[0] = lc_sigmoid_backward(g[0], y[0]); }
LC_OP(sigmoid, .sig = "sigmoid(input: Tensor) -> Tensor", .doc = "Elementwise 1 / (1 + exp(-input)).", .method = true,
      .inplace = true, .out = true, FLOAT_MAP, .grad = sigmoid_grad, .saves = OUT(0));

/* ---- steps ---- */

GRAD(relu_backward) { dx[0] = lc_relu_backward(g[0], in(1)); }
LC_OP(relu_backward, .sig = "relu_backward(grad_output: Tensor, output: Tensor) -> Tensor",
      .doc = "grad_output where output is positive.", .hidden = true, .shape = broadcast, .run = elementwise,
      .grad = relu_backward_grad, .saves = IN(1));
GRAD(relu) { dx[0] = lc_relu_backward(g[0], y[0]); }
LC_OP(relu, .sig = "relu(input: Tensor, inplace: truth = False) -> Tensor", .doc = "Elementwise max(input, 0).", .method = true,
      .inplace = true, MAP, .grad = relu_grad, .saves = OUT(0));

static int rounded_lower(const lc_record *call, lc_lowering *to)
{
    return lc_class_of(call->dtype) == LC_INT ? LC_NO_ROW : lower_to(to, call, call->op->kernel, call->in, 1);
}
static int rounded_run(const lc_record *call) /* the identity on integers */
{
    if (lc_class_of(call->dtype) == LC_INT) return call->backend->copy(call->out[0], call->in[0]);
    return elementwise(call);
}
#define ROUNDED .strict_out = true, .shape = same, .lower = rounded_lower, .run = rounded_run, .grad = flat_grad
LC_OP(floor, .sig = "floor(input: Tensor) -> Tensor", .doc = "The next integer downwards.", .method = true, .inplace = true,
      .out = true, ROUNDED);
LC_OP(ceil, .sig = "ceil(input: Tensor) -> Tensor", .doc = "The next integer upwards.", .method = true, .inplace = true,
      .out = true, ROUNDED);
LC_OP(trunc, .aliases = "fix", .sig = "trunc(input: Tensor) -> Tensor", .doc = "The next integer towards zero.", .method = true,
      .inplace = true, .out = true, ROUNDED);
LC_OP(round, .sig = "round(input: Tensor) -> Tensor", .doc = "The nearest integer; ties go to the even one.", .method = true,
      .inplace = true, .out = true, ROUNDED);
/* To decimal places after the point, or before it: the kernels have the power of ten as an operand. */
static int round_decimals_lower(const lc_record *call, lc_lowering *to)
{
    int64_t decimals = call->args[1].i;
    if (decimals == 0) return lower_to(to, call, LC_OP_round, call->in, 1);
    double     power = __builtin_pow(10, (double)(decimals < 0 ? -decimals : decimals));
    lc_tensor *in[] = { call->in[0], lc_number_init(&to->number[0], LC_f64, power, 0) };
    return lower_to(to, call, decimals > 0 ? LC_OP_round_decimals : LC_OP_round_tens, in, 2);
}
LC_OP(round_decimals, .strict_out = true, .py = "round", .sig = "round_decimals(input: Tensor, *, decimals: int) -> Tensor",
      .doc = "The nearest number with this many decimals.", .method = true, .inplace = true, .out = true, .shape = same,
      LOWERED(round_decimals_lower), .grad = flat_grad);
LC_OP(round_tens, .sig = "round_tens(input: Tensor) -> Tensor", .doc = "The kernel of round with negative decimals.",
      .hidden = true, MAP);

GRAD(frac) { dx[0] = g[0]; }
LC_OP(frac, .sig = "frac(input: Tensor) -> Tensor", .doc = "input - trunc(input).", .method = true, .inplace = true,
      .out = true, EXACT_MAP, .grad = frac_grad);

/* ---- bits and questions ---- */

LC_OP(bitwise_not, .sig = "bitwise_not(input: Tensor) -> Tensor", .doc = "Elementwise ~input.", .method = true, .inplace = true,
      .out = true, EXACT_MAP);
LC_OP(logical_not, .sig = "logical_not(input: Tensor) -> Tensor", .doc = "True where input is zero.", .method = true,
      .inplace = true, .out = true, .shape = same_bool, .run = elementwise);

static int question_lower(const lc_record *call, lc_lowering *to)
{
    return lc_class_of(call->dtype) < LC_FLOAT ? LC_NO_ROW : lower_to(to, call, call->op->kernel, call->in, 1);
}
static int question_run(const lc_record *call) /* integers are finite */
{
    if (lc_class_of(call->dtype) >= LC_FLOAT) return elementwise(call);
    return call->backend->fill(call->out[0], LC_INTEGER(call->op->kernel == LC_OP_isfinite));
}
#define QUESTION .shape = same_bool, .lower = question_lower, .run = question_run
LC_OP(isnan, .sig = "isnan(input: Tensor) -> Tensor", .doc = "True where input is not a number.", .method = true, QUESTION);
LC_OP(isinf, .sig = "isinf(input: Tensor) -> Tensor", .doc = "True where input is infinite.", .method = true, QUESTION);
LC_OP(isfinite, .sig = "isfinite(input: Tensor) -> Tensor", .doc = "True where input is neither infinite nor NaN.",
      .method = true, QUESTION);
static int isreal_lower(const lc_record *call, lc_lowering *to)
{
    return lc_is_complex(call->dtype) ? lower_to(to, call, LC_OP_isreal, call->in, 1) : LC_NO_ROW;
}
static int isreal_run(const lc_record *call)
{
    return lc_is_complex(call->dtype) ? elementwise(call) : call->backend->fill(call->out[0], LC_INTEGER(1));
}
LC_OP(isreal, .sig = "isreal(input: Tensor) -> Tensor", .doc = "True where the imaginary part is 0.", .method = true,
      .shape = same_bool, .lower = isreal_lower, .run = isreal_run);
static int not_complex(const lc_record *call, lc_spec *out)
{
    if (lc_is_complex(call->dtype)) return lc_fail_int(LC_LucidError, "%s does not support complex inputs.", call->op->name);
    if (call->out_given && call->out[0]->dtype != LC_b8)
        return lc_fail_int(LC_DtypeMismatch, "%s does not support non-boolean outputs.", call->op->name);
    return same_bool(call, out);
}
#define SIDE_OF_INFINITY .out = true, .shape = not_complex, .lower = question_lower, .run = question_run
LC_OP(isposinf, .sig = "isposinf(input: Tensor) -> Tensor", .doc = "True where input is positive infinity.", .method = true,
      SIDE_OF_INFINITY);
LC_OP(isneginf, .sig = "isneginf(input: Tensor) -> Tensor", .doc = "True where input is negative infinity.", .method = true,
      SIDE_OF_INFINITY);
LC_OP(signbit, .strict_out = true, .sig = "signbit(input: Tensor) -> Tensor",
      .doc = "True where the sign bit is set, in -0.0 too.", .method = true, .out = true, .shape = same_bool,
      .run = elementwise);

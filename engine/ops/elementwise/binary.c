/* Ops of two operands, which broadcast; summing a gradient over broadcast axes is the engine's work (autograd/backward.c), not the op's.
 * Complex numbers: gradients take the conjugate of the other factor. */
#include "../rules.h"
#include "../../op/promote.h"

/* PyTorch accepts two Python scalars for +, -, * and / only (with_tensor). */
#define PAIR        .shape = broadcast, .run = elementwise
#define TENSOR_PAIR .shape = with_tensor, .run = elementwise

static lc_tensor *number_in(lc_number_box *box, const lc_value *v, double sign)
{
    if (v->tag == LC_IS_int) return lc_number_init_int(box, sign < 0 ? -v->i : v->i);
    if (v->tag == LC_IS_complex) return lc_number_init(box, LC_c128, sign * v->c.re, sign * v->c.im);
    return lc_number_init(box, v->tag == LC_IS_bool ? LC_b8 : LC_f64, sign * lc_number_of(v), 0);
}
static bool is_one(const lc_value *v) { return v->tag != LC_IS_complex && lc_number_of(v) == 1; }

/* input + sign * alpha * other */
static int check_alpha(const lc_record *call)
{
    const lc_value *alpha = &call->args[2];
    if (alpha->tag == LC_IS_bool && call->dtype != LC_b8)
        return lc_fail_int(LC_LucidError, "Boolean alpha only supported for Boolean results.");
    if (lc_class_of(call->dtype) < LC_FLOAT && (alpha->tag == LC_IS_float || alpha->tag == LC_IS_complex))
        return lc_fail_int(LC_LucidError, "For integral input tensors, argument alpha must not be a floating point number.");
    if (!lc_is_complex(call->dtype) && alpha->tag == LC_IS_complex)
        return lc_fail_int(LC_LucidError, "For non-complex input tensors, argument alpha must not be a complex number.");
    return 0;
}
static int scaled(const lc_record *call, lc_lowering *to, double sign)
{
    if (check_alpha(call) < 0) return -1;
    lc_tensor *in[] = { call->in[0], call->in[1], number_in(&to->number[0], &call->args[2], sign) };
    return number_fits(call->dtype, in[2]) < 0 ? -1 : lower_to(to, call, LC_OP_add_scaled, in, 3);
}
static lc_tensor *times_alpha(lc_tensor *g, const lc_value *alpha, double sign)
{
    lc_number_box box;
    if (is_one(alpha)) return sign < 0 ? lc_neg(g) : g;
    lc_value conjugate = *alpha;
    if (alpha->tag == LC_IS_complex) conjugate.c.im = -alpha->c.im;
    return lc_mul(g, number_in(&box, &conjugate, sign));
}

GRAD(add)
{
    if (need[0]) dx[0] = g[0];
    if (need[1]) dx[1] = g[0];
}
LC_OP(add, .sig = "add(input: Tensor | Number, other: Tensor | Number) -> Tensor", .doc = "Elementwise input + other.",
      .method = true, .inplace = true, .out = true, PAIR, .grad = add_grad);
static int add_alpha_lower(const lc_record *call, lc_lowering *to) { return scaled(call, to, 1); }
GRAD(add_alpha)
{
    if (need[0]) dx[0] = g[0];
    if (need[1]) dx[1] = times_alpha(g[0], &in[2], 1);
}
LC_OP(add_alpha, .py = "add", .sig = "add_alpha(input: Tensor | Number, other: Tensor | Number, *, alpha: Number) -> Tensor",
      .doc = "Elementwise input + alpha * other.", .method = true, .inplace = true, .out = true, .shape = broadcast,
      LOWERED(add_alpha_lower), .grad = add_alpha_grad);

GRAD(sub)
{
    if (need[0]) dx[0] = g[0];
    if (need[1]) dx[1] = lc_neg(g[0]);
}
static int difference(const lc_record *call, lc_spec *out)
{
    if (call->in[0]->dtype == LC_b8 || call->in[1]->dtype == LC_b8)
        return lc_fail_int(LC_LucidError,
                           "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a "
                           "mask, use the `~` or `logical_not()` operator instead.");
    return broadcast(call, out);
}
#define DIFFERENCE .shape = difference, .run = elementwise, .kernel = LC_OP_sub, .grad = sub_grad
LC_OP(sub, .aliases = "subtract", .sig = "sub(input: Tensor | Number, other: Tensor | Number) -> Tensor",
      .doc = "Elementwise input - other.", .method = true, .inplace = true, .out = true, DIFFERENCE);
static int sub_alpha_lower(const lc_record *call, lc_lowering *to) { return scaled(call, to, -1); }
GRAD(sub_alpha)
{
    if (need[0]) dx[0] = g[0];
    if (need[1]) dx[1] = times_alpha(g[0], &in[2], -1);
}
#define SCALED_DIFFERENCE .shape = difference, LOWERED(sub_alpha_lower), .grad = sub_alpha_grad
LC_OP(sub_alpha, .aliases = "subtract", .py = "sub",
      .sig = "sub_alpha(input: Tensor | Number, other: Tensor | Number, *, alpha: Number) -> Tensor",
      .doc = "Elementwise input - alpha * other.", .method = true, .inplace = true, .out = true, SCALED_DIFFERENCE);
static int rsub_call(const lc_value *in, lc_tensor **out) { return (out[0] = lc_sub_alpha(operand(1), in(0), in[2])) ? 0 : -1; }
LC_OP(rsub, .sig = "rsub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor",
      .doc = "Elementwise other - alpha * input.", .call = rsub_call);
LC_OP(add_scaled, .sig = "add_scaled(input: Tensor, other: Tensor, alpha: Tensor) -> Tensor",
      .doc = "The kernel of add with alpha.", .hidden = true, PAIR);

GRAD(mul)
{
    if (need[0]) dx[0] = lc_mul(g[0], conj_of(in(1)));
    if (need[1]) dx[1] = lc_mul(g[0], conj_of(in(0)));
}
LC_OP(mul, .aliases = "multiply", .sig = "mul(input: Tensor | Number, other: Tensor | Number) -> Tensor",
      .doc = "Elementwise input * other.", .method = true, .inplace = true, .out = true, PAIR, .grad = mul_grad,
      .saves_for = { IN(1), IN(0) });

/* ---- division ---- */

GRAD(div)
{
    lc_tensor *divisor = conj_of(in(1));
    if (need[0]) dx[0] = lc_div(g[0], divisor);
    if (need[1]) dx[1] = lc_neg(lc_mul(g[0], lc_div(lc_div(conj_of(in(0)), divisor), divisor)));
}
#define DIVISION .promote = LC_TO_FLOAT, PAIR, .kernel = LC_OP_div, .grad = div_grad, .saves = IN(1), .saves_for = { 0, IN(0) }
LC_OP(div, .aliases = "divide true_divide", .sig = "div(input: Tensor | Number, other: Tensor | Number) -> Tensor",
      .doc = "Elementwise input / other.", .method = true, .inplace = true, .out = true, DIVISION);

/* div with rounding_mode: None divides truly, "trunc" and "floor" keep the dtype. */
static lc_dtype division_dtype(const lc_record *call)
{
    return call->args[2].tag == LC_IS_none && lc_class_of(call->dtype) < LC_FLOAT ? lc_default_dtype : call->dtype;
}
static int rounded_quotient(const lc_record *call, lc_spec *out)
{
    const lc_value *mode = &call->args[2];
    if (mode->tag == LC_IS_str && strcmp(mode->s, "trunc") && strcmp(mode->s, "floor"))
        return lc_fail_int(LC_LucidError, "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'",
                           mode->s);
    if (broadcast(call, out) < 0) return -1;
    out->dtype = division_dtype(call);
    return 0;
}
static int div_mode_lower(const lc_record *call, lc_lowering *to)
{
    const lc_value *mode = &call->args[2];
    lc_op_id        row = mode->tag == LC_IS_none ? LC_OP_div : *mode->s == 'f' ? LC_OP_floor_divide : LC_OP_div_trunc;
    return lower_to(to, call, row, call->in, 2), to->dtype = division_dtype(call), 0;
}
GRAD(div_mode)
{
    if (in[2].tag == LC_IS_none) return div_grad(g, y, in, need, dx);
    for (int k = 0; k < 2; k++)
        if (need[k]) dx[k] = zeros_like(in(k));
}
LC_OP(div_mode, .aliases = "divide", .py = "div",
      .sig = "div_mode(input: Tensor | Number, other: Tensor | Number, *, rounding_mode: str | None) -> Tensor",
      .doc = "The quotient as it is (None), rounded towards zero ('trunc') or down ('floor').", .method = true, .inplace = true,
      .out = true, .shape = rounded_quotient, LOWERED(div_mode_lower), .grad = div_mode_grad, .saves = IN(1),
      .saves_for = { 0, IN(0) });
LC_OP(div_trunc, .sig = "div_trunc(input: Tensor, other: Tensor) -> Tensor", .doc = "The kernel of div(rounding_mode='trunc').",
      .hidden = true, PAIR);

GRAD(floor_divide) { dx[need[0] ? 0 : 1] = lc_fail(LC_NotImplementedError, "derivative for floor_divide is not implemented"); }
LC_OP(floor_divide, .sig = "floor_divide(input: Tensor | Number, other: Tensor | Number) -> Tensor",
      .doc = "Elementwise quotient rounded down.", .method = true, .inplace = true, .out = true, PAIR,
      .grad = floor_divide_grad);

GRAD(remainder)
{
    if (need[0]) dx[0] = g[0];
    if (need[1]) dx[1] = lc_neg(lc_mul(g[0], lc_div_mode(in(0), in(1), "floor")));
}
LC_OP(remainder, .sig = "remainder(input: Tensor | Number, other: Tensor | Number) -> Tensor",
      .doc = "Elementwise remainder with the sign of other, as Python's %.", .method = true, .inplace = true, .out = true,
      TENSOR_PAIR, .grad = remainder_grad, .saves_for = { 0, IN(0) | IN(1) });
GRAD(fmod)
{
    if (need[0]) dx[0] = g[0];
    if (need[1]) dx[1] = lc_neg(lc_mul(g[0], lc_div_mode(in(0), in(1), "trunc")));
}
LC_OP(fmod, .sig = "fmod(input: Tensor, other: Tensor | Number) -> Tensor",
      .doc = "Elementwise remainder with the sign of input, as C's.", .method = true, .inplace = true, .out = true, PAIR,
      .grad = fmod_grad, .saves_for = { 0, IN(0) | IN(1) });

/* ---- powers ---- */

/* Exponents with a cheaper op than pow. Only for Python scalars: the value of a tensor is not read. */
static bool real_number(const lc_tensor *t, double *value)
{
    if (!t->is_number || lc_is_complex(t->dtype)) return false;
    *value = t->dtype == LC_i64 ? (double)*(int64_t *)t->data : t->dtype == LC_b8 ? *t->data : *(double *)t->data;
    return true;
}
static int pow_lower(const lc_record *call, lc_lowering *to)
{
    double           e;
    const lc_tensor *exponent = call->in[1];
    bool             inexact = lc_class_of(call->dtype) >= LC_FLOAT, base = !call->in[0]->is_number;
    bool             narrow = inexact ? call->dtype == LC_f16 || call->dtype == LC_bf16 : true; /* PyTorch checks here */
    if (!real_number(exponent, &e)) {
        bool zero = exponent->is_number && base && ((double *)exponent->data)[0] == 0 && ((double *)exponent->data)[1] == 0;
        return zero ? LC_NO_ROW : lower_to(to, call, LC_OP_pow, call->in, 2);
    }
    if (!inexact && e < 0) return lc_fail_int(LC_LucidError, "Integers to negative integer powers are not allowed.");
    if (base && narrow && number_fits(call->dtype, exponent) < 0) return -1;
    if (base && (e == 1 || (e == 0 && lc_is_complex(call->dtype)))) return LC_NO_ROW;
    bool     roots = inexact && call->dtype != LC_f16; /* differs from pow for -0 and -inf, as in PyTorch */
    lc_op_id row = e == 2               ? LC_OP_square
                   : e == 3             ? LC_OP_cube
                   : roots && e == 0.5  ? LC_OP_sqrt
                   : roots && e == -0.5 ? LC_OP_rsqrt
                   : inexact && e == -1 ? LC_OP_reciprocal
                                        : LC_OP_pow;
    return lower_to(to, call, row, call->in, row == LC_OP_pow ? 2 : 1);
}
static int pow_run(const lc_record *call)
{
    lc_lowering to;
    double      e;
    int         rc = pow_lower(call, &to);
    if (rc != LC_NO_ROW) return rc < 0 ? -1 : run_lowered(call, &to);
    if (real_number(call->in[1], &e) && e == 1) return call->backend->copy(call->out[0], call->in[0]);
    return fill_tensor(call->out[0], LC_INTEGER(1)); /* complex x ** 0, also 0 ** 0 */
}
/* 0 ** 0 is 1 by definition: the base gets no gradient where the exponent is 0, the exponent none where the base is 0. */
static lc_tensor *pow_slope(lc_tensor *g, lc_tensor *x, lc_tensor *exponent)
{
    double e;
    if (real_number(exponent, &e)) {
        if (e == 0) return zeros_like(x);
        return lc_mul(g, conj_of(e == 1 ? LC_INTEGER(1) : lc_mul(lc_pow(x, LC_NUMBER(e - 1)), LC_NUMBER(e))));
    }
    exponent = as_strong_tensor(exponent);
    lc_tensor *slope = lc_mul(exponent, lc_pow(x, lc_sub(exponent, LC_INTEGER(1))));
    return lc_where(lc_eq(exponent, LC_INTEGER(0)), LC_INTEGER(0), lc_mul(g, conj_of(slope)));
}
GRAD(pow)
{
    if (need[0]) dx[0] = pow_slope(g[0], in(0), in(1));
    if (need[1]) {
        double     base; /* a Python scalar: compute its logarithm in full precision */
        lc_tensor *x = as_strong_tensor(real_number(in(0), &base) ? LC_NUMBER(base) : in(0)), *e = in(1);
        lc_tensor *zero =
            lc_logical_and(lc_eq(x, LC_INTEGER(0)), lc_ge(lc_is_complex(e->dtype) ? lc_real(e) : e, LC_INTEGER(0)));
        dx[1] = lc_mul(g[0], lc_where(zero, LC_INTEGER(0), conj_of(lc_mul(y[0], lc_log(x)))));
    }
}
LC_OP(pow, .amp = LC_AMP_GPU_FP32, .sig = "pow(input: Tensor | Number, exponent: Tensor | Number) -> Tensor",
      .doc = "Elementwise input ** exponent.", .method = true, .inplace = true, .out = true, .shape = with_tensor,
      .lower = pow_lower, .run = pow_run, .grad = pow_grad, .saves = IN(0) | IN(1), .saves_for = { 0, OUT(0) });

/* ---- the larger and the smaller ---- */

GRAD(winner_share) { dx[0] = lc_winner_share(g[0], in(1), in(2)); }
LC_OP(winner_share, .sig = "winner_share(grad_output: Tensor, mine: Tensor, other: Tensor) -> Tensor",
      .doc = "grad_output where mine is larger, half of it where both are equal, else 0.", .hidden = true, PAIR,
      .grad = winner_share_grad, .saves = IN(1) | IN(2));
GRAD(maximum)
{
    if (need[0]) dx[0] = lc_winner_share(g[0], in(0), in(1));
    if (need[1]) dx[1] = lc_winner_share(g[0], in(1), in(0));
}
GRAD(minimum)
{
    if (need[0]) dx[0] = lc_winner_share(g[0], in(1), in(0));
    if (need[1]) dx[1] = lc_winner_share(g[0], in(0), in(1));
}
#define MAXIMUM PAIR, .kernel = LC_OP_maximum, .grad = maximum_grad, .saves = IN(0) | IN(1)
#define MINIMUM PAIR, .kernel = LC_OP_minimum, .grad = minimum_grad, .saves = IN(0) | IN(1)
LC_OP(maximum, .sig = "maximum(input: Tensor, other: Tensor) -> Tensor", .doc = "Elementwise larger of both; NaN wins.",
      .method = true, .inplace = true, .out = true, MAXIMUM);
LC_OP(max_against, .py = "max", .sig = "max_against(input: Tensor, other: Tensor) -> Tensor",
      .doc = "Elementwise larger of both; NaN wins.", .method = true, .out = true, MAXIMUM);
LC_OP(minimum, .sig = "minimum(input: Tensor, other: Tensor) -> Tensor", .doc = "Elementwise smaller of both; NaN wins.",
      .method = true, .inplace = true, .out = true, MINIMUM);
LC_OP(min_against, .py = "min", .sig = "min_against(input: Tensor, other: Tensor) -> Tensor",
      .doc = "Elementwise smaller of both; NaN wins.", .method = true, .out = true, MINIMUM);

/* clamp: the bounds are arguments 1 and 2; clamp_min and clamp_max have one of them. If both are zero, the input is kept: a
 * bound of 0 does not change -0. */
static int bounded(const lc_record *call, lc_lowering *to, lc_op_id row, lc_tensor *bound)
{
    lc_tensor *x = call->in[0], *both[] = { bound->is_number ? bound : x, bound->is_number ? x : bound };
    return numbers_fit(call, call->dtype) < 0 ? -1 : lower_to(to, call, row, both, 2);
}
static int clamp_lower(const lc_record *call, lc_lowering *to)
{
    if (call->in[2] == LC_NONE) return bounded(call, to, LC_OP_maximum, call->in[1]);
    if (call->in[1] == LC_NONE) return bounded(call, to, LC_OP_minimum, call->in[2]);
    return numbers_fit(call, call->dtype) < 0 ? -1 : lower_to(to, call, LC_OP_clamp, call->in, 3);
}
static int clamp_min_lower(const lc_record *call, lc_lowering *to) { return bounded(call, to, LC_OP_maximum, call->in[1]); }
static int clamp_max_lower(const lc_record *call, lc_lowering *to) { return bounded(call, to, LC_OP_minimum, call->in[1]); }
static int clamped(const lc_record *call, lc_spec *out)
{
    if (call->in[1] == LC_NONE && call->in[2] == LC_NONE)
        return lc_fail_int(LC_LucidError, "torch.clamp: At least one of 'min' or 'max' must not be None");
    const lc_tensor *low = call->in[1], *high = call->in[2];
    if (low != LC_NONE && high != LC_NONE && low->is_number != high->is_number && low->ndim + high->ndim > 0)
        return lc_fail_int(LC_TypeError,
                           "%s() received an invalid combination of arguments: both bounds are numbers, or tensors",
                           call->op->name);
    return lc_is_complex(call->dtype) ? no_kernel(call) : broadcast(call, out);
}
static lc_tensor *kept_where(lc_tensor *condition, lc_tensor *g) { return lc_where(condition, g, LC_INTEGER(0)); }
static lc_tensor *both_hold(lc_tensor *a, lc_tensor *b) { return a == LC_NONE ? b : b == LC_NONE ? a : lc_logical_and(a, b); }
static lc_tensor *either_holds(lc_tensor *a, lc_tensor *b) { return b == LC_NONE ? a : lc_logical_or(a, b); }
GRAD(clamp)
{
    lc_tensor *x = in(0), *low = in(1), *high = in(2);
    bool       has_low = low != LC_NONE, has_high = high != LC_NONE, both = has_low && has_high;
    if (need[0]) dx[0] = kept_where(both_hold(has_low ? lc_ge(x, low) : LC_NONE, has_high ? lc_le(x, high) : LC_NONE), g[0]);
    if (need[1]) dx[1] = kept_where(both_hold(lc_lt(x, low), both ? lc_lt(low, high) : LC_NONE), g[0]);
    if (need[2]) dx[2] = kept_where(either_holds(lc_gt(x, high), both ? lc_lt(high, low) : LC_NONE), g[0]);
}
#define CLAMP .shape = clamped, LOWERED(clamp_lower), .grad = clamp_grad, .saves = IN(0) | IN(1) | IN(2)
LC_OP(clamp, .aliases = "clip",
      .sig = "clamp(input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor",
      .doc = "input within [min, max]; either may be absent.", .method = true, .inplace = true, .out = true, CLAMP);

GRAD(clamp_min)
{
    if (need[0]) dx[0] = kept_where(lc_ge(in(0), in(1)), g[0]);
    if (need[1]) dx[1] = kept_where(lc_lt(in(0), in(1)), g[0]);
}
LC_OP(clamp_min, .sig = "clamp_min(input: Tensor, min: Tensor | Number) -> Tensor",
      .doc = "input, or min where that is larger.", .method = true, .inplace = true, .out = true, .shape = broadcast,
      LOWERED(clamp_min_lower), .grad = clamp_min_grad, .saves = IN(0) | IN(1));
GRAD(clamp_max)
{
    if (need[0]) dx[0] = kept_where(lc_le(in(0), in(1)), g[0]);
    if (need[1]) dx[1] = kept_where(lc_gt(in(0), in(1)), g[0]);
}
LC_OP(clamp_max, .sig = "clamp_max(input: Tensor, max: Tensor | Number) -> Tensor",
      .doc = "input, or max where that is smaller.", .method = true, .inplace = true, .out = true, .shape = broadcast,
      LOWERED(clamp_max_lower), .grad = clamp_max_grad, .saves = IN(0) | IN(1));

/* ---- bits ---- */

LC_OP(bitwise_and, .sig = "bitwise_and(input: Tensor | Number, other: Tensor | Number) -> Tensor",
      .doc = "Elementwise input & other.", .method = true, .inplace = true, .out = true, TENSOR_PAIR);
LC_OP(bitwise_or, .sig = "bitwise_or(input: Tensor | Number, other: Tensor | Number) -> Tensor",
      .doc = "Elementwise input | other.", .method = true, .inplace = true, .out = true, TENSOR_PAIR);
LC_OP(bitwise_xor, .sig = "bitwise_xor(input: Tensor | Number, other: Tensor | Number) -> Tensor",
      .doc = "Elementwise input ^ other.", .method = true, .inplace = true, .out = true, TENSOR_PAIR);
LC_OP(bitwise_left_shift, .sig = "bitwise_left_shift(input: Tensor | Number, other: Tensor | Number) -> Tensor",
      .doc = "Elementwise input << other.", .method = true, .inplace = true, .out = true, TENSOR_PAIR);
LC_OP(bitwise_right_shift, .sig = "bitwise_right_shift(input: Tensor | Number, other: Tensor | Number) -> Tensor",
      .doc = "Elementwise input >> other.", .method = true, .inplace = true, .out = true, TENSOR_PAIR);

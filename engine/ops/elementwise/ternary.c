/* Ops of two to four operands beyond arithmetic: signs and magnitudes, interpolation, fused multiply-add, floating-point
 * representation. */
#include "../rules.h"
#include "../../op/promote.h"

#define FORMS      .method = true, .inplace = true, .out = true
#define PAIR       .shape = broadcast, .run = elementwise
#define FLOAT_PAIR .promote = LC_TO_FLOAT, PAIR

/* ---- signs and sizes ---- */

GRAD(copysign) /* no gradient at 0: the result depends on the sign only */
{
    if (need[0]) dx[0] = lc_where(lc_eq(in(0), LC_INTEGER(0)), LC_INTEGER(0), lc_mul(g[0], lc_div(y[0], in(0))));
    if (need[1]) dx[1] = zeros_like(in(1));
}
LC_OP(copysign, .sig = "copysign(input: Tensor, other: Tensor | Number) -> Tensor",
      .doc = "The magnitude of input with the sign of other.", FORMS, FLOAT_PAIR, .grad = copysign_grad,
      .saves_for = { IN(0) | OUT(0) });

GRAD(hypot)
{
    for (int k = 0; k < 2; k++)
        if (need[k]) dx[k] = lc_div(lc_mul(g[0], in(k)), y[0]);
}
LC_OP(hypot, .sig = "hypot(input: Tensor, other: Tensor) -> Tensor", .doc = "sqrt(input ** 2 + other ** 2), without overflow.",
      FORMS, PAIR, .grad = hypot_grad, .saves = OUT(0), .saves_for = { IN(0), IN(1) });

/* fmax and fmin: a NaN loses against a number. On ties all goes to input. */
static lc_tensor *first_wins(lc_tensor *wins, lc_tensor *other) { return lc_logical_or(wins, lc_isnan(other)); }
static void       share(lc_tensor *g, lc_tensor *first, const bool *need, lc_tensor **dx)
{
    if (need[0]) dx[0] = lc_where(first, g, LC_INTEGER(0));
    if (need[1]) dx[1] = lc_where(first, LC_INTEGER(0), g);
}
GRAD(fmax) { share(g[0], first_wins(lc_ge(in(0), in(1)), in(1)), need, dx); }
GRAD(fmin) { share(g[0], first_wins(lc_le(in(0), in(1)), in(1)), need, dx); }
LC_OP(fmax, .sig = "fmax(input: Tensor, other: Tensor) -> Tensor", .doc = "Elementwise larger of both; a number wins over NaN.",
      .method = true, .out = true, PAIR, .grad = fmax_grad, .saves = IN(0) | IN(1));
LC_OP(fmin, .sig = "fmin(input: Tensor, other: Tensor) -> Tensor",
      .doc = "Elementwise smaller of both; a number wins over NaN.", .method = true, .out = true, PAIR, .grad = fmin_grad,
      .saves = IN(0) | IN(1));

static int one_dtype(const lc_record *call, lc_spec *out)
{
    if (lc_is_complex(call->dtype)) return lc_fail_int(LC_LucidError, "heaviside is not yet implemented for complex tensors.");
    if (call->in[0]->dtype != call->in[1]->dtype)
        return lc_fail_int(LC_LucidError, "heaviside is not yet implemented for tensors with different dtypes.");
    return broadcast(call, out);
}
GRAD(heaviside) { dx[need[0] ? 0 : 1] = lc_fail(LC_NotImplementedError, "derivative for heaviside is not implemented"); }
LC_OP(heaviside, .strict_out = true, .sig = "heaviside(input: Tensor, values: Tensor) -> Tensor",
      .doc = "0 where input is negative, 1 where it is positive, values where it is 0.", FORMS, .shape = one_dtype,
      .run = elementwise, .grad = heaviside_grad);

LC_OP(gcd, .sig = "gcd(input: Tensor, other: Tensor) -> Tensor", .doc = "Elementwise greatest common divisor.", FORMS, PAIR);
LC_OP(lcm, .sig = "lcm(input: Tensor, other: Tensor) -> Tensor", .doc = "Elementwise least common multiple.", FORMS, PAIR);

/* ---- interpolation ---- */

/* x + weight * (end - x), from the nearer end. weight may be a Python scalar; a 0-d weight may have another dtype. */
static int between(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0], *end = call->in[1], *weight = call->in[2];
    bool             joins = weight->is_number ? !lc_is_complex(weight->dtype) || lc_is_complex(x->dtype) : weight->ndim == 0;
    if (end->dtype != x->dtype)
        return lc_fail_int(LC_DtypeMismatch, "expected dtype %s for `end` but got dtype %s", lc_dtypes[x->dtype].name,
                           lc_dtypes[end->dtype].name);
    if (weight->dtype != x->dtype && !joins)
        return lc_fail_int(LC_DtypeMismatch, "expected dtype %s for `weight` but got dtype %s", lc_dtypes[x->dtype].name,
                           lc_dtypes[weight->dtype].name);
    if (call->out_given && !weight->is_number && call->out[0]->dtype != x->dtype)
        return lc_fail_int(LC_DtypeMismatch, "lerp: found dtype %s for out= but expected %s",
                           lc_dtypes[call->out[0]->dtype].name, lc_dtypes[x->dtype].name);
    return numbers_fit(call, lc_working_dtype(x->dtype)) < 0 ? -1 : broadcast(call, out);
}
static bool rounds_weight(
    const lc_record *call) /* PyTorch rounds a 0-d weight to float16 or bfloat16 first; a Python scalar it does not */
{
    const lc_tensor *weight = call->in[2];
    return !weight->is_number && weight->dtype != call->dtype && lc_working_dtype(call->dtype) != call->dtype;
}
static int lerp_lower(const lc_record *call, lc_lowering *to)
{
    return rounds_weight(call) ? LC_NO_ROW : lower_to(to, call, LC_OP_lerp, call->in, 3);
}
static int lerp_run(const lc_record *call)
{
    lc_tensor *weight = call->in[2];
    if (!rounds_weight(call)) return elementwise(call);
    if (!(weight = in_dtype(weight, call->dtype))) return -1;
    int rc = elementwise_as(call, LC_OP_lerp, (lc_tensor *[]){ call->in[0], call->in[1], weight }, 3);
    return lc_release(weight), rc;
}
GRAD(lerp)
{
    lc_tensor *w = in(2);
    if (need[0]) dx[0] = lc_mul(g[0], conj_of(lc_sub(LC_INTEGER(1), as_strong_tensor(w))));
    if (need[1]) dx[1] = lc_mul(g[0], conj_of(w));
    if (need[2]) dx[2] = lc_mul(g[0], conj_of(lc_sub(in(1), in(0))));
}
LC_OP(lerp, .casts_out = true, .sig = "lerp(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor",
      .doc = "input + weight * (end - input).", FORMS, .promote = LC_NO_PROMOTION, .shape = between, .lower = lerp_lower,
      .run = lerp_run,
      .kind = LC_KIND_OPAQUE, /* a 0-d weight of another dtype does not broadcast: vmap cannot add its dimension */
      .grad = lerp_grad, .saves_for = { IN(2), IN(2), IN(0) | IN(1) });

/* ---- fused sums ---- */

/* The kernels take value as a fourth operand; it does not take part in promotion. */
static int fused_sum_lower(const lc_record *call, lc_lowering *to)
{
    const lc_value *value = &call->args[3];
    if (value->tag == LC_IS_complex && !lc_is_complex(call->dtype))
        return lc_fail_int(LC_LucidError, "value cannot be converted to type %s without overflow", lc_dtypes[call->dtype].name);
    lc_tensor *in[] = { call->in[0], call->in[1], call->in[2], number_operand_in(&to->number[0], value) };
    if (number_fits(lc_working_dtype(call->dtype), in[3]) < 0) return -1;
    return lower_to(to, call, call->op->kernel, in, 4);
}
GRAD(addcmul)
{
    lc_tensor *value = number_operand(&in[3]);
    if (need[0]) dx[0] = g[0];
    if (need[1]) dx[1] = lc_mul(g[0], conj_of(lc_mul(in(2), value)));
    if (need[2]) dx[2] = lc_mul(g[0], conj_of(lc_mul(in(1), value)));
}
LC_OP(addcmul, .sig = "addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor",
      .doc = "input + value * tensor1 * tensor2.", FORMS, .shape = broadcast, LOWERED(fused_sum_lower), .grad = addcmul_grad,
      .saves_for = { 0, IN(2), IN(1) });

static int true_quotient(const lc_record *call, lc_spec *out)
{
    if (lc_class_of(call->in[1]->dtype) < LC_FLOAT && lc_class_of(call->in[2]->dtype) < LC_FLOAT)
        return lc_fail_int(LC_LucidError, "Integer division with addcdiv is no longer supported: use input + value * "
                                          "trunc(tensor1 / tensor2), or input + value * tensor1 / tensor2 with floats");
    return broadcast(call, out);
}
GRAD(addcdiv)
{
    lc_tensor *value = number_operand(&in[3]), *divisor = conj_of(in(2));
    if (need[0]) dx[0] = g[0];
    if (need[1]) dx[1] = lc_mul(g[0], conj_of(lc_div(value, in(2))));
    if (need[2]) dx[2] = lc_neg(lc_mul(g[0], lc_div(conj_of(lc_mul(in(1), value)), lc_mul(divisor, divisor))));
}
LC_OP(addcdiv, .sig = "addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor",
      .doc = "input + value * tensor1 / tensor2.", FORMS, .shape = true_quotient, LOWERED(fused_sum_lower),
      .grad = addcdiv_grad, .saves_for = { 0, IN(2), IN(1) | IN(2) });

/* ---- logarithms of sums ---- */

GRAD(logaddexp)
{
    for (int k = 0; k < 2; k++)
        if (need[k]) dx[k] = lc_div(g[0], conj_of(lc_add(lc_exp(lc_sub(in(1 - k), in(k))), LC_INTEGER(1))));
}
LC_OP(logaddexp, .sig = "logaddexp(input: Tensor, other: Tensor) -> Tensor", .doc = "log(exp(input) + exp(other)), safely.",
      .method = true, .out = true, PAIR, .grad = logaddexp_grad, .saves = IN(0) | IN(1));
GRAD(logaddexp2)
{
    for (int k = 0; k < 2; k++)
        if (need[k]) dx[k] = lc_div(g[0], lc_add(lc_exp2(lc_sub(in(1 - k), in(k))), LC_INTEGER(1)));
}
LC_OP(logaddexp2, .sig = "logaddexp2(input: Tensor, other: Tensor) -> Tensor", .doc = "log2(2 ** input + 2 ** other), safely.",
      .method = true, .out = true, PAIR, .grad = logaddexp2_grad, .saves = IN(0) | IN(1));

GRAD(xlogy)
{
    lc_tensor *x = in(0), *y_ = in(1);
    if (need[0]) {
        lc_tensor *zero = lc_logical_and(lc_eq(x, LC_INTEGER(0)), lc_le(as_strong_tensor(y_), LC_INTEGER(0)));
        dx[0] = lc_mul(g[0], lc_where(zero, LC_INTEGER(0), lc_log(as_strong_tensor(y_))));
    }
    if (need[1]) dx[1] = lc_div(lc_mul(g[0], x), y_);
}
LC_OP(xlogy, .sig = "xlogy(input: Tensor | Number, other: Tensor | Number) -> Tensor",
      .doc = "input * log(other); 0 where input is 0 and other is not NaN.", FORMS, .promote = LC_TO_FLOAT,
      .shape = with_tensor, .run = elementwise, .grad = xlogy_grad, .saves = IN(0) | IN(1));

/* ---- powers in double precision ---- */

static lc_dtype double_of(const lc_record *call) { return lc_is_complex(call->dtype) ? LC_c128 : LC_f64; }
static int      double_power(const lc_record *call, lc_spec *out)
{
    if (call->op->writes && call->in[0]->dtype != double_of(call))
        return lc_fail_int(LC_DtypeMismatch,
                           "the base given to float_power_ has dtype %s but the operation's result requires dtype %s",
                           lc_dtypes[call->in[0]->dtype].name, lc_dtypes[double_of(call)].name);
    if (call->out_given && call->out[0]->dtype != double_of(call))
        return lc_fail_int(LC_DtypeMismatch,
                           "the output given to float_power has dtype %s but the operation's result requires dtype %s",
                           lc_dtypes[call->out[0]->dtype].name, lc_dtypes[double_of(call)].name);
    if (with_tensor(call, out) < 0) return -1;
    out->dtype = double_of(call);
    return 0;
}
static int float_power_lower(const lc_record *call, lc_lowering *to)
{
    lc_record wide = *call;
    wide.dtype = double_of(call), wide.op = &lc_op_pow;
    return lc_op_pow.lower(&wide, to);
}
static int float_power_run(const lc_record *call)
{
    lc_record wide = *call;
    wide.dtype = double_of(call), wide.op = &lc_op_pow;
    return lc_op_pow.run(&wide);
}
static lc_tensor *widened(lc_tensor *t, lc_tensor *like)
{
    return t->is_number ? t : lc_to(t, (lc_dtype)like->dtype, false, false, LC_ABSENT);
}
GRAD(float_power)
{
    const lc_value wide[] = { { .tag = LC_IS_tensor, .t = widened(in(0), y[0]) },
                              { .tag = LC_IS_tensor, .t = widened(in(1), y[0]) } };
    if (!wide[0].t || !wide[1].t) {
        dx[need[0] ? 0 : 1] = NULL;
        return;
    }
    lc_op_pow.grad(g, y, wide, need, dx);
}
LC_OP(float_power, .sig = "float_power(input: Tensor | Number, exponent: Tensor | Number) -> Tensor",
      .doc = "input ** exponent in double precision.", FORMS, .shape = double_power, .lower = float_power_lower,
      .run = float_power_run, .grad = float_power_grad, .saves = IN(0) | IN(1) | OUT(0));

/* ---- representation ---- */

/* input * 2 ** other. A float keeps its dtype if other is an integer tensor, and is scaled without forming the power, which
 * may overflow. Otherwise it is a product; the power has the default dtype if other is an integer tensor. */
static lc_tensor *power_of_two(lc_tensor *other) { return lc_exp2(other); }
static bool       scales_exactly(const lc_record *call)
{
    return lc_is_floating(call->in[0]->dtype) && lc_class_of(call->in[1]->dtype) <= LC_INT;
}
static lc_dtype product_dtype(const lc_record *call)
{
    lc_tensor power = *call->in[1];
    if (lc_class_of(power.dtype) <= LC_INT) power.dtype = (uint8_t)lc_default_dtype;
    return lc_result_type((lc_tensor *[]){ call->in[0], &power }, 2);
}
static int scaled_by_power(const lc_record *call, lc_spec *out)
{
    if (broadcast(call, out) < 0) return -1;
    out->dtype = scales_exactly(call) ? (lc_dtype)call->in[0]->dtype : product_dtype(call);
    return 0;
}
static int ldexp_lower(const lc_record *call, lc_lowering *to) /* else the power is a step of its own */
{
    return scales_exactly(call) ? lower_to(to, call, LC_OP_ldexp, call->in, 2), to->dtype = (lc_dtype)call->in[0]->dtype,
                                                                                0 : LC_NO_ROW;
}
static int ldexp_run(const lc_record *call)
{
    lc_record typed = *call;
    typed.dtype = scales_exactly(call) ? (lc_dtype)call->in[0]->dtype : product_dtype(call);
    if (scales_exactly(call)) return elementwise(&typed);
    lc_scope scope = lc_scope_open();
    unsigned modes = lc_modes;
    lc_modes |= LC_NO_GRAD;
    lc_tensor *in[] = { call->in[0], power_of_two(call->in[1]) };
    lc_modes = modes;
    int rc = in[1] ? elementwise_as(&typed, LC_OP_mul, in, 2) : -1;
    lc_scope_close(scope);
    return rc;
}
GRAD(ldexp)
{
    if (need[0]) dx[0] = lc_mul(g[0], conj_of(power_of_two(in(1))));
    if (need[1]) dx[1] = lc_mul(lc_mul(g[0], conj_of(y[0])), LC_NUMBER(0.69314718055994530942));
}
LC_OP(ldexp, .sig = "ldexp(input: Tensor, other: Tensor) -> Tensor", .doc = "input * 2 ** other.", FORMS,
      .shape = scaled_by_power, .lower = ldexp_lower, .run = ldexp_run, .grad = ldexp_grad, .saves_for = { IN(1), OUT(0) });

/* frexp: input = mantissa * 2 ** exponent with a mantissa in [0.5, 1). */
static int mantissa_and_exponent(const lc_record *call, lc_spec *out)
{
    if (!lc_is_floating(call->dtype)) return lc_fail_int(LC_LucidError, "torch.frexp() only supports floating-point dtypes");
    same(call, &out[0]);
    same(call, &out[1]);
    out[1].dtype = LC_i32;
    return 0;
}
static int frexp_run(const lc_record *call)
{
    lc_record exponent = *call;
    exponent.out = call->out + 1; /* first: out[0] may be the input */
    return elementwise_as(&exponent, LC_OP_frexp_exponent, call->in, 1) < 0
               ? -1
               : elementwise_as(call, LC_OP_frexp_mantissa, call->in, 1);
}
GRAD(frexp) { dx[0] = g[0] == LC_NONE ? LC_NONE : lc_div(g[0], lc_exp2(y[1])); }
LC_OP(frexp, .strict_out = true, .sig = "frexp(input: Tensor) -> (mantissa: Tensor, exponent: Tensor)",
      .doc = "input as mantissa * 2 ** exponent, the mantissa between 0.5 and 1.", .method = true, .out = true,
      .kind = LC_KIND_ELEMENTWISE, .shape = mantissa_and_exponent, .run = frexp_run, .grad = frexp_grad, .saves = OUT(1));
#define KERNEL_OF_ONE .hidden = true, .shape = same, .run = elementwise
LC_OP(frexp_mantissa, .sig = "frexp_mantissa(input: Tensor) -> Tensor", .doc = "frexp's mantissa.", KERNEL_OF_ONE);
LC_OP(frexp_exponent, .sig = "frexp_exponent(input: Tensor) -> Tensor", .doc = "frexp's exponent.", KERNEL_OF_ONE);

/* float16 and bfloat16 have kernels of their own: in float32, in which kernels compute them, the next number is a different
 * one. */
static int nextafter_lower(const lc_record *call, lc_lowering *to)
{
    lc_op_id row = call->dtype == LC_f16    ? LC_OP_nextafter_f16
                   : call->dtype == LC_bf16 ? LC_OP_nextafter_bf16
                                            : LC_OP_nextafter;
    return lower_to(to, call, row, call->in, 2);
}
GRAD(nextafter) /* the gradient goes to input where it differs from other; never to other */
{
    if (need[0]) dx[0] = lc_mul(g[0], lc_ne(in(0), in(1)));
    if (need[1]) dx[1] = zeros_like(in(1));
}
LC_OP(nextafter, .sig = "nextafter(input: Tensor, other: Tensor) -> Tensor",
      .doc = "The next number after input in the direction of other.", FORMS, .shape = broadcast, LOWERED(nextafter_lower),
      .grad = nextafter_grad, .saves = IN(0) | IN(1));
LC_OP(nextafter_f16, .sig = "nextafter_f16(input: Tensor, other: Tensor) -> Tensor", .doc = "nextafter among float16.",
      .hidden = true, PAIR);
LC_OP(nextafter_bf16, .sig = "nextafter_bf16(input: Tensor, other: Tensor) -> Tensor", .doc = "nextafter among bfloat16.",
      .hidden = true, PAIR);

/* ---- replacing what is not a number ---- */

/* Absent replacements: 0, the largest and the lowest finite number of the dtype. */
static double largest_of(lc_dtype dtype)
{
    switch (lc_real_of(dtype)) {
    case LC_f16:
        return 65504.;
    case LC_bf16:
        return 0x1.fep127;
    case LC_f32:
        return 0x1.fffffep127;
    default:
        return 0x1.fffffffffffffp1023;
    }
}
static int replaced(const lc_record *call, lc_lowering *to, lc_tensor *from)
{
    double          largest = largest_of(call->dtype), preset[] = { 0, largest, -largest };
    lc_tensor      *in[4] = { from };
    const lc_value *given = call->args + 1;
    for (int k = 0; k < 3; k++)
        in[k + 1] = lc_number_init(&to->number[k], LC_f64, given[k].tag == LC_IS_none ? preset[k] : given[k].f, 0);
    return lower_to(to, call, LC_OP_nan_to_num, in, 4), to->dtype = lc_real_of(call->dtype), 0;
}
static int nan_to_num_lower(const lc_record *call, lc_lowering *to)
{
    return lc_is_floating(call->dtype) ? replaced(call, to, call->in[0]) : LC_NO_ROW;
}
static int nan_to_num_run(const lc_record *call)
{
    lc_lowering row;
    lc_record   part_of = *call;
    int         rc = 0;
    if (lc_class_of(call->dtype) < LC_FLOAT) return call->backend->copy(call->out[0], call->in[0]);
    if (!lc_is_complex(call->dtype)) return replaced(call, &row, call->in[0]), run_lowered(call, &row);
    for (int part = 0; part < 2 && rc == 0; part++) {
        lc_tensor *to = complex_part(call->out[0], part), *from = complex_part(call->in[0], part);
        part_of.out = &to;
        rc = to && from ? replaced(call, &row, from), run_lowered(&part_of, &row) : -1;
        lc_release(to);
        lc_release(from);
    }
    return rc;
}
GRAD(nan_to_num) { dx[0] = lc_mul(g[0], lc_isfinite(in(0))); }
LC_OP(nan_to_num, .strict_out = true,
      .sig = "nan_to_num(input: Tensor, nan: float | None = None, posinf: float | None = None, "
             "neginf: float | None = None) -> Tensor",
      .doc = "NaN and infinities replaced; by default by 0 and the largest and lowest finite numbers.", FORMS, .shape = same,
      .lower = nan_to_num_lower, .run = nan_to_num_run, .grad = nan_to_num_grad, .saves = IN(0));

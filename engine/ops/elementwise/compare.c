/* Comparisons and logic: results are bool and have no gradient. where(), which uses them, is here too. */
#include "../rules.h"

#define COMPARISON .shape = broadcast_bool, .run = elementwise
LC_OP(eq, .sig = "eq(input: Tensor, other: Tensor | Number) -> Tensor", .doc = "True where input is equal to other.",
      .method = true, .inplace = true, .out = true, COMPARISON);
LC_OP(ne, .aliases = "not_equal", .sig = "ne(input: Tensor, other: Tensor | Number) -> Tensor",
      .doc = "True where input is different from other.", .method = true, .inplace = true, .out = true, COMPARISON);
LC_OP(lt, .aliases = "less", .sig = "lt(input: Tensor, other: Tensor | Number) -> Tensor",
      .doc = "True where input is less than other.", .method = true, .inplace = true, .out = true, COMPARISON);
LC_OP(le, .aliases = "less_equal", .sig = "le(input: Tensor, other: Tensor | Number) -> Tensor",
      .doc = "True where input is less than or equal to other.", .method = true, .inplace = true, .out = true, COMPARISON);
LC_OP(gt, .aliases = "greater", .sig = "gt(input: Tensor, other: Tensor | Number) -> Tensor",
      .doc = "True where input is greater than other.", .method = true, .inplace = true, .out = true, COMPARISON);
LC_OP(ge, .aliases = "greater_equal", .sig = "ge(input: Tensor, other: Tensor | Number) -> Tensor",
      .doc = "True where input is greater than or equal to other.", .method = true, .inplace = true, .out = true, COMPARISON);
LC_OP(logical_and, .sig = "logical_and(input: Tensor, other: Tensor) -> Tensor", .doc = "True where both are not zero.",
      .method = true, .inplace = true, .out = true, COMPARISON);
LC_OP(logical_or, .sig = "logical_or(input: Tensor, other: Tensor) -> Tensor",
      .doc = "True where at least one of them is nonzero.", .method = true, .inplace = true, .out = true, COMPARISON);
LC_OP(logical_xor, .sig = "logical_xor(input: Tensor, other: Tensor) -> Tensor",
      .doc = "True where exactly one of them is not zero.", .method = true, .inplace = true, .out = true, COMPARISON);

static int check_condition(const lc_tensor *condition)
{
    if (condition->dtype == LC_b8 || condition->dtype == LC_u8) return 0;
    return lc_fail_int(LC_LucidError, "where expected condition to be a boolean tensor, but got a tensor with dtype %s",
                       lc_dtypes[condition->dtype].name);
}
static int chosen(const lc_record *call, lc_spec *out)
{
    bool half = lc_working_dtype(call->dtype) != call->dtype; /* in PyTorch float16 and bfloat16 overflow to infinity */
    if (check_condition(call->in[0]) < 0 || (!half && numbers_fit(call, call->dtype) < 0)) return -1;
    return broadcast(call, out);
}
GRAD(where)
{
    if (need[1]) dx[1] = lc_where(in(0), g[0], LC_INTEGER(0));
    if (need[2]) dx[2] = lc_where(in(0), LC_INTEGER(0), g[0]);
}
LC_OP(where, .strict_out = true, .sig = "where(condition: Tensor, input: Tensor | Number, other: Tensor | Number) -> Tensor",
      .doc = "input where condition holds, else other.", .out = true, .promote = LC_BEHIND_FIRST, .shape = chosen,
      .run = elementwise, .grad = where_grad, .saves = IN(0));

static int where_method_call(const lc_value *in, lc_tensor **out)
{
    return (out[0] = lc_where(in(1), in(0), operand(2))) ? 0 : -1;
}
LC_OP(where_method, .py = "where", .sig = "where_method(input: Tensor, condition: Tensor, other: Tensor | Number) -> Tensor",
      .doc = "The method: self where condition holds, else other.", .method = true, .function = false,
      .call = where_method_call);

/* ---- closeness ---- */

static int check_closeness(const lc_tensor *x, const lc_tensor *y, double rtol, double atol)
{
    if (x->dtype != y->dtype)
        return lc_fail_int(LC_DtypeMismatch, "%s did not match %s", lc_dtypes[x->dtype].name, lc_dtypes[y->dtype].name);
    if (!(rtol >= 0)) return lc_fail_int(LC_LucidError, "rtol must be greater than or equal to zero, but got %g", rtol);
    if (!(atol >= 0)) return lc_fail_int(LC_LucidError, "atol must be greater than or equal to zero, but got %g", atol);
    return 0;
}
static int isclose_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *y = in(1), *close;
    double     rtol = in[2].f, atol = in[3].f;
    if (check_closeness(x, y, rtol, atol) < 0) return -1;
    close = lc_eq(x, y);
    if (in[4].b && lc_class_of(x->dtype) >= LC_FLOAT) close = lc_logical_or(close, lc_logical_and(lc_isnan(x), lc_isnan(y)));
    if (rtol != 0 || atol != 0) {
        if (lc_class_of(x->dtype) <= LC_INT) { /* their difference may wrap */
            x = lc_to(x, lc_default_dtype, false, false, LC_ABSENT);
            y = lc_to(y, lc_default_dtype, false, false, LC_ABSENT);
        }
        lc_tensor *allowed = lc_add(lc_abs(lc_mul(y, LC_NUMBER(rtol))), LC_NUMBER(atol)), *apart = lc_abs(lc_sub(x, y));
        close = lc_logical_or(close, lc_logical_and(lc_isfinite(apart), lc_le(apart, allowed)));
    }
    return (out[0] = close) ? 0 : -1;
}
LC_OP(
    isclose,
    .sig = "isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor",
    .doc = "True where abs(input - other) <= atol + rtol * abs(other).", .method = true, .call = isclose_call);

static int allclose_call(const lc_value *in, lc_tensor **out)
{
    return (out[0] = lc_all(lc_isclose(in(0), in(1), in[2].f, in[3].f, in[4].b), NULL, 0, false)) ? 0 : -1;
}
LC_OP(
    allclose,
    .sig = "allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool",
    .doc = "Whether isclose holds everywhere.", .method = true, .call = allclose_call);

/* A device with a kernel for it stops at the first difference. */
static int equal_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor        *x = in(0), *y = in(1);
    const lc_backend *backend = lc_backend_of(x->device);
    bool              alike = lc_same_shape(x, y);
    if (!backend) return -1;
    if (alike &&
        !(backend->has(LC_OP_equal, (lc_dtype)x->dtype) && x->dtype == y->dtype && lc_same_device(x->device, y->device)))
        return (out[0] = lc_all(lc_eq(x, y), NULL, 0, false)) ? 0 : -1;
    if (!(out[0] = lc_scoped(lc_tensor_new(LC_b8, x->device, 0, NULL)))) return -1;
    if (!alike) return backend->fill(out[0], LC_INTEGER(0));
    int rc = backend->run(LC_OP_equal, (lc_dtype)x->dtype, &(lc_equal_args){ .x = x, .y = y, .equal = out[0] });
    if (rc == LC_NO_KERNEL)
        return lc_fail_int(LC_NotImplementedError, "equal is not implemented for %s", lc_dtypes[x->dtype].name);
    return rc;
}
LC_OP(equal, .sig = "equal(input: Tensor, other: Tensor) -> bool", .doc = "Whether both have the same shape and values.",
      .method = true, .reads_values = true, .call = equal_call);

/* One pass where the device has a kernel for it, else comparisons. kind: LC_ABOVE_LOW | LC_BELOW_HIGH | LC_WHOLE. */
static int within_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor        *x = in(0);
    int               kind = (int)in[3].i;
    const lc_backend *backend = lc_backend_of(x->device);
    if (!backend) return -1;
    if (backend->has(LC_OP__within, (lc_dtype)x->dtype)) {
        if (!(out[0] = lc_scoped(lc_tensor_new(LC_b8, x->device, 0, NULL)))) return -1;
        lc_within_args args = { .x = x, .low = in[1].f, .high = in[2].f, .kind = kind, .within = out[0] };
        return backend->run(LC_OP__within, (lc_dtype)x->dtype, &args);
    }
    lc_tensor *above = (kind & LC_ABOVE_LOW ? lc_gt : lc_ge)(x, LC_NUMBER(in[1].f));
    lc_tensor *below = (kind & LC_BELOW_HIGH ? lc_lt : lc_le)(x, LC_NUMBER(in[2].f));
    lc_tensor *inside = lc_logical_and(above, below);
    if (kind & LC_WHOLE) inside = lc_logical_and(inside, lc_eq(lc_remainder(x, LC_NUMBER(1)), LC_NUMBER(0)));
    return (out[0] = lc_all(inside, NULL, 0, false)) ? 0 : -1;
}
LC_OP(_within, .sig = "_within(input: Tensor, low: float, high: float, kind: int = 0) -> bool",
      .doc = "Whether every element lies between low and high. kind: 1 excludes low, 2 excludes high, 4 asks for integers.",
      .reads_values = true, .call = within_call);

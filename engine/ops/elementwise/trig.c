/* Inverse circular and hyperbolic functions, angles. Complex numbers: dx = g * conj(f'(x)), as in unary.c. */
#include "../rules.h"

#define FORMS     .method = true, .inplace = true, .out = true
#define FLOAT_MAP .promote = LC_TO_FLOAT, .shape = same, .run = elementwise, .saves = IN(0)

static lc_tensor *one_minus_square(lc_tensor *x) { return lc_sub(LC_INTEGER(1), lc_mul(x, x)); }

GRAD(acos) { dx[0] = lc_neg(lc_mul(g[0], conj_of(lc_rsqrt(one_minus_square(in(0)))))); }
LC_OP(acos, .amp = LC_AMP_GPU_FP32, .aliases = "arccos", .sig = "acos(input: Tensor) -> Tensor",
      .doc = "Elementwise inverse cosine.", FORMS, FLOAT_MAP, .grad = acos_grad);

GRAD(asin) { dx[0] = lc_mul(g[0], conj_of(lc_rsqrt(one_minus_square(in(0))))); }
LC_OP(asin, .amp = LC_AMP_GPU_FP32, .aliases = "arcsin", .sig = "asin(input: Tensor) -> Tensor",
      .doc = "Elementwise inverse sine.", FORMS, FLOAT_MAP, .grad = asin_grad);

GRAD(atan) { dx[0] = lc_div(g[0], conj_of(lc_add(lc_mul(in(0), in(0)), LC_INTEGER(1)))); }
LC_OP(atan, .aliases = "arctan", .sig = "atan(input: Tensor) -> Tensor", .doc = "Elementwise inverse tangent.", FORMS,
      FLOAT_MAP, .grad = atan_grad);

GRAD(acosh) /* sqrt(a) * sqrt(b) is sqrt(a * b) for real numbers only: the branch cuts differ */
{
    lc_tensor *below = lc_sub(in(0), LC_INTEGER(1)), *above = lc_add(in(0), LC_INTEGER(1));
    dx[0] = lc_mul(g[0], lc_is_complex(in(0)->dtype) ? conj_of(lc_mul(lc_rsqrt(below), lc_rsqrt(above)))
                                                     : lc_rsqrt(lc_sub(lc_mul(in(0), in(0)), LC_INTEGER(1))));
}
LC_OP(acosh, .aliases = "arccosh", .sig = "acosh(input: Tensor) -> Tensor", .doc = "Elementwise inverse hyperbolic cosine.",
      FORMS, FLOAT_MAP, .grad = acosh_grad);

GRAD(asinh) { dx[0] = lc_mul(g[0], conj_of(lc_rsqrt(lc_add(lc_mul(in(0), in(0)), LC_INTEGER(1))))); }
LC_OP(asinh, .aliases = "arcsinh", .sig = "asinh(input: Tensor) -> Tensor", .doc = "Elementwise inverse hyperbolic sine.",
      FORMS, FLOAT_MAP, .grad = asinh_grad);

GRAD(atanh) { dx[0] = lc_div(g[0], conj_of(one_minus_square(in(0)))); }
LC_OP(atanh, .aliases = "arctanh", .sig = "atanh(input: Tensor) -> Tensor", .doc = "Elementwise inverse hyperbolic tangent.",
      FORMS, FLOAT_MAP, .grad = atanh_grad);

GRAD(atan2)
{
    lc_tensor *scale = lc_reciprocal(lc_add(lc_mul(in(0), in(0)), lc_mul(in(1), in(1))));
    if (need[0]) dx[0] = lc_mul(lc_mul(g[0], in(1)), scale);
    if (need[1]) dx[1] = lc_neg(lc_mul(lc_mul(g[0], in(0)), scale));
}
#define FLOAT_PAIR .promote = LC_TO_FLOAT, .shape = broadcast, .run = elementwise
LC_OP(atan2, .aliases = "arctan2", .sig = "atan2(input: Tensor, other: Tensor) -> Tensor",
      .doc = "The angle of the point (other, input), between -pi and pi.", FORMS, FLOAT_PAIR, .grad = atan2_grad,
      .saves = IN(0) | IN(1));

GRAD(deg2rad) { dx[0] = lc_mul(g[0], LC_NUMBER(0.017453292519943295769)); }
LC_OP(deg2rad, .sig = "deg2rad(input: Tensor) -> Tensor", .doc = "Angles in degrees as radians.", FORMS, .promote = LC_TO_FLOAT,
      .shape = same, .run = elementwise, .grad = deg2rad_grad);
GRAD(rad2deg) { dx[0] = lc_mul(g[0], LC_NUMBER(57.295779513082320877)); }
LC_OP(rad2deg, .sig = "rad2deg(input: Tensor) -> Tensor", .doc = "Angles in radians as degrees.", FORMS, .promote = LC_TO_FLOAT,
      .shape = same, .run = elementwise, .grad = rad2deg_grad);

/* The angle of a complex number is real; that of a real number is 0 or pi. */
static int real_valued(const lc_record *call, lc_spec *out)
{
    same(call, out);
    out->dtype = lc_real_of(call->dtype);
    if (lc_is_complex(call->dtype)) out->order = LC_ORDER_CONTIGUOUS;
    return 0;
}
GRAD(angle)
{
    if (!lc_is_complex(in(0)->dtype)) {
        dx[0] = zeros_like(in(0));
        return;
    }
    lc_number_box box;
    lc_tensor    *i = lc_number_init(&box, LC_c128, 0, 1), *size = lc_abs(in(0));
    lc_tensor    *rotated = lc_mul(lc_div(lc_mul(g[0], in(0)), lc_mul(size, size)), i);
    dx[0] = lc_where(lc_eq(in(0), LC_INTEGER(0)), LC_INTEGER(0), rotated);
}
LC_OP(angle, .sig = "angle(input: Tensor) -> Tensor", .doc = "The angle of complex numbers; 0 or pi for real ones.",
      .method = true, .out = true, .promote = LC_TO_FLOAT, .shape = real_valued, .run = elementwise, .grad = angle_grad,
      .saves = IN(0));

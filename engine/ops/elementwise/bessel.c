/* The ops of lucid.special that the main namespace does not have: Bessel and Airy functions, orthogonal polynomials, the normal
 * distribution, zeta. Each is a row of scalar.def. Those without a gradient have none in PyTorch either: their results are constants. */
#include "../rules.h"

#define MAP  .promote = LC_TO_FLOAT, .shape = same, .run = elementwise
#define PAIR .promote = LC_TO_FLOAT, .shape = with_tensor, .run = elementwise
#define SPECIAL(name, about, ...)                                                                                              \
    LC_OP(special_##name, .py = #name, .ns = "special", .sig = "special_" #name "(input: Tensor) -> Tensor", .doc = about,     \
          .out = true, MAP, ##__VA_ARGS__)

/* ---- Bessel and Airy functions ---- */

SPECIAL(bessel_j0, "Bessel function of the first kind, order 0.");
SPECIAL(bessel_j1, "Bessel function of the first kind, order 1.");
SPECIAL(bessel_y0, "Bessel function of the second kind, order 0.");
SPECIAL(bessel_y1, "Bessel function of the second kind, order 1.");
SPECIAL(modified_bessel_k0, "Modified Bessel function of the second kind, order 0.");
SPECIAL(modified_bessel_k1, "Modified Bessel function of the second kind, order 1.");
SPECIAL(scaled_modified_bessel_k0, "exp(input) times the modified Bessel function of the second kind, order 0.");
SPECIAL(scaled_modified_bessel_k1, "exp(input) times the modified Bessel function of the second kind, order 1.");
SPECIAL(spherical_bessel_j0, "Spherical Bessel function of the first kind, order 0: sin(input) / input, 1 at 0.");
SPECIAL(airy_ai, "Airy function Ai.");

static int modified_i0(const lc_record *call) { return elementwise_as(call, LC_OP_i0, call->in, 1); }
static int modified_i1(const lc_record *call) { return elementwise_as(call, LC_OP_special_i1, call->in, 1); }
SPECIAL(modified_bessel_i0, "Modified Bessel function of the first kind, order 0.", .run = modified_i0,
        .kind = LC_KIND_ELEMENTWISE);
SPECIAL(modified_bessel_i1, "Modified Bessel function of the first kind, order 1.", .run = modified_i1,
        .kind = LC_KIND_ELEMENTWISE);

/* f(x) - h(x), where h(x) has 1 / x in it and f(x) - h(x) is 1/2 at 0 */
static lc_tensor *half_at_zero(lc_tensor *x, lc_tensor *f, lc_tensor *(*h)(lc_tensor *x, lc_tensor *y), lc_tensor *y)
{
    lc_tensor *zero = lc_eq(x, LC_INTEGER(0)), *safe = lc_where(zero, LC_INTEGER(1), x);
    return lc_where(zero, LC_NUMBER(0.5), lc_sub(f, h(safe, y)));
}
static lc_tensor *by_itself(lc_tensor *x, lc_tensor *y) { return lc_div(y, x); }
static lc_tensor *by_itself_and_sign(lc_tensor *x, lc_tensor *y) { return lc_mul(y, lc_add(lc_sgn(x), lc_reciprocal(x))); }
GRAD(special_i1) { dx[0] = lc_mul(g[0], half_at_zero(in(0), lc_i0(in(0)), by_itself, y[0])); }
SPECIAL(i1, "Modified Bessel function of the first kind, order 1.", .grad = special_i1_grad, .saves = IN(0) | OUT(0));
GRAD(special_i0e) { dx[0] = lc_mul(g[0], lc_sub(lc_special_i1e(in(0)), lc_mul(lc_sgn(in(0)), y[0]))); }
SPECIAL(i0e, "exp(-abs(input)) times i0(input).", .grad = special_i0e_grad, .saves = IN(0) | OUT(0));
GRAD(special_i1e) { dx[0] = lc_mul(g[0], half_at_zero(in(0), lc_special_i0e(in(0)), by_itself_and_sign, y[0])); }
SPECIAL(i1e, "exp(-abs(input)) times i1(input).", .grad = special_i1e_grad, .saves = IN(0) | OUT(0));

/* ---- the normal distribution ---- */

static lc_tensor *bell(lc_tensor *x, double scale) /* scale * exp(-x * x / 2) */
{
    return lc_mul(lc_exp(lc_mul(lc_mul(x, x), LC_NUMBER(-0.5))), LC_NUMBER(scale));
}
GRAD(special_ndtr) { dx[0] = lc_mul(g[0], bell(in(0), 0.39894228040143267794)); } /* 1 / sqrt(2 pi) */
SPECIAL(ndtr, "Distribution function of the standard normal distribution, exact in its tail.", .grad = special_ndtr_grad,
        .saves = IN(0));
GRAD(special_log_ndtr) /* sqrt(2 / pi) / erfcx(-x / sqrt(2)) */
{
    lc_tensor *tail = lc_special_erfcx(lc_mul(in(0), LC_NUMBER(-0.70710678118654752440)));
    dx[0] = lc_mul(lc_div(g[0], tail), LC_NUMBER(0.79788456080286535588));
}
SPECIAL(log_ndtr, "Logarithm of the distribution function of the standard normal distribution.", .grad = special_log_ndtr_grad,
        .saves = IN(0));
GRAD(special_ndtri) /* sqrt(2 pi) exp(y y / 2) */
{
    dx[0] = lc_mul(g[0], lc_mul(lc_exp(lc_mul(lc_mul(y[0], y[0]), LC_NUMBER(0.5))), LC_NUMBER(2.50662827463100050242)));
}
SPECIAL(ndtri, "Quantile of the standard normal distribution: the inverse of ndtr.", .grad = special_ndtri_grad,
        .saves = OUT(0));
GRAD(special_erfcx) /* 2 x y - 2 / sqrt(pi) */
{
    lc_tensor *slope = lc_sub(lc_mul(lc_mul(in(0), y[0]), LC_INTEGER(2)), LC_NUMBER(1.12837916709551257390));
    dx[0] = lc_mul(g[0], slope);
}
SPECIAL(erfcx, "exp(input ** 2) * erfc(input), without overflow for large inputs.", .grad = special_erfcx_grad,
        .saves = IN(0) | OUT(0));

/* ---- entropies, zeta ---- */

GRAD(special_entr) { dx[0] = lc_mul(g[0], lc_sub(LC_INTEGER(-1), lc_log(in(0)))); }
SPECIAL(entr, "-input * log(input); 0 at 0 and -inf below.", .grad = special_entr_grad, .saves = IN(0));

#define TWO(name, second, about, ...)                                                                                          \
    LC_OP(special_##name, .py = #name, .ns = "special",                                                                        \
          .sig = "special_" #name "(input: Tensor | Number, " second ": Tensor | Number) -> Tensor", .doc = about,             \
          .out = true, PAIR, ##__VA_ARGS__)
GRAD(special_xlog1py)
{
    lc_tensor *x = in(0), *other = in(1);
    if (need[0]) {
        lc_tensor *zero = lc_logical_and(lc_eq(x, LC_INTEGER(0)), lc_le(as_strong_tensor(other), LC_INTEGER(-1)));
        dx[0] = lc_mul(g[0], lc_where(zero, LC_INTEGER(0), lc_log1p(as_strong_tensor(other))));
    }
    if (need[1]) dx[1] = lc_div(lc_mul(g[0], x), lc_add(other, LC_INTEGER(1)));
}
TWO(xlog1py, "other", "input * log1p(other); 0 where input is 0 and other is not NaN.", .grad = special_xlog1py_grad,
    .saves = IN(0) | IN(1));
GRAD(special_zeta)
{
    if (need[0]) dx[0] = lc_fail(LC_NotImplementedError, "the derivative for 'zeta' is not implemented.");
    else
        dx[1] = lc_mul(g[0], lc_mul(lc_neg(as_strong_tensor(in(0))),
                                    lc_special_zeta(lc_add(as_strong_tensor(in(0)), LC_INTEGER(1)), in(1))));
}
TWO(zeta, "other", "Hurwitz zeta function: the sum of (k + other) ** -input over k = 0, 1, ...", .grad = special_zeta_grad,
    .saves = IN(0) | IN(1));

/* ---- orthogonal polynomials ---- */

TWO(chebyshev_polynomial_t, "n", "Chebyshev polynomial of the first kind, degree n.");
TWO(chebyshev_polynomial_u, "n", "Chebyshev polynomial of the second kind, degree n.");
TWO(chebyshev_polynomial_v, "n", "Chebyshev polynomial of the third kind, degree n.");
TWO(chebyshev_polynomial_w, "n", "Chebyshev polynomial of the fourth kind, degree n.");
TWO(shifted_chebyshev_polynomial_t, "n", "Chebyshev polynomial of the first kind of 2 * input - 1, degree n.");
TWO(shifted_chebyshev_polynomial_u, "n", "Chebyshev polynomial of the second kind of 2 * input - 1, degree n.");
TWO(shifted_chebyshev_polynomial_v, "n", "Chebyshev polynomial of the third kind of 2 * input - 1, degree n.");
TWO(shifted_chebyshev_polynomial_w, "n", "Chebyshev polynomial of the fourth kind of 2 * input - 1, degree n.");
TWO(hermite_polynomial_h, "n", "Hermite polynomial of the physicists, degree n.");
TWO(hermite_polynomial_he, "n", "Hermite polynomial of the probabilists, degree n.");
TWO(laguerre_polynomial_l, "n", "Laguerre polynomial, degree n.");
TWO(legendre_polynomial_p, "n", "Legendre polynomial, degree n.");

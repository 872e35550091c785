/* Special functions: error functions, the gamma family, Bessel functions, and a few built from logarithms. */
#include "../rules.h"

#define FORMS     .method = true, .inplace = true, .out = true
#define FLOAT_MAP .promote = LC_TO_FLOAT, .shape = same, .run = elementwise

/* ---- error functions ---- */

static lc_tensor *bell(lc_tensor *x, double scale) /* scale * exp(-x * x) */
{
    return lc_mul(lc_exp(lc_neg(lc_mul(x, x))), LC_NUMBER(scale));
}
GRAD(erf) { dx[0] = lc_mul(g[0], bell(in(0), 1.12837916709551257390)); } /* 2 / sqrt(pi) */
LC_OP(erf, .sig = "erf(input: Tensor) -> Tensor", .doc = "Elementwise error function.", FORMS, FLOAT_MAP, .grad = erf_grad,
      .saves = IN(0));
GRAD(erfc) { dx[0] = lc_mul(g[0], bell(in(0), -1.12837916709551257390)); }
LC_OP(erfc, .sig = "erfc(input: Tensor) -> Tensor", .doc = "Elementwise 1 - erf(input), exact for large inputs.", FORMS,
      FLOAT_MAP, .grad = erfc_grad, .saves = IN(0));
GRAD(erfinv) { dx[0] = lc_mul(g[0], lc_mul(lc_exp(lc_mul(y[0], y[0])), LC_NUMBER(0.88622692545275801365))); } /* sqrt(pi) / 2 */
LC_OP(erfinv, .amp = LC_AMP_GPU_FP32, .sig = "erfinv(input: Tensor) -> Tensor", .doc = "Elementwise inverse of erf.", FORMS,
      FLOAT_MAP, .grad = erfinv_grad, .saves = OUT(0));

/* ---- the gamma family ---- */

GRAD(lgamma) { dx[0] = lc_mul(g[0], lc_digamma(in(0))); }
LC_OP(lgamma, .sig = "lgamma(input: Tensor) -> Tensor", .doc = "Elementwise log(abs(gamma(input))).", FORMS, FLOAT_MAP,
      .grad = lgamma_grad, .saves = IN(0));

static int mvlgamma_check(const lc_record *call, lc_spec *out)
{
    if (lc_is_complex(call->dtype) || call->in[0]->dtype == LC_b8)
        return lc_fail_int(LC_NotImplementedError, "mvlgamma is not implemented for %s", lc_dtypes[call->in[0]->dtype].name);
    if (call->args[1].i < 1) return lc_fail_int(LC_LucidError, "p has to be greater than or equal to 1");
    if (call->args[1].i > 1 << 20) return lc_fail_int(LC_OutOfMemory, "mvlgamma: p is too large: a sum of that many terms");
    same(call, out);
    out->order = LC_ORDER_CONTIGUOUS;
    return 0;
}
static lc_tensor *sum_below(lc_tensor *(*f)(lc_tensor *), lc_tensor *x, int64_t p) /* f(x) + f(x - 1/2) + ..., p terms */
{
    lc_tensor *sum = f(x);
    for (int64_t j = 1; j < p && sum; j++) sum = lc_add(sum, f(lc_sub(x, LC_NUMBER(0.5 * (double)j))));
    return sum;
}
static int mvlgamma_run(const lc_record *call)
{
    int64_t  p = call->args[1].i;
    unsigned modes = lc_modes;
    lc_scope scope = lc_scope_open();
    lc_modes |= LC_NO_GRAD;
    lc_tensor *sum =
        lc_add(sum_below(lc_lgamma, call->in[0], p), LC_NUMBER(0.25 * (double)(p * (p - 1)) * 1.1447298858494001741));
    int rc = sum ? call->backend->copy(call->out[0], sum) : -1;
    lc_modes = modes;
    lc_scope_close(scope);
    return rc;
}
GRAD(mvlgamma) { dx[0] = lc_mul(g[0], sum_below(lc_digamma, in(0), in[1].i)); }
LC_OP(mvlgamma, .casts_out = true, .sig = "mvlgamma(input: Tensor, p: int) -> Tensor",
      .doc = "Logarithm of the multivariate gamma function.", FORMS, .promote = LC_TO_FLOAT, .shape = mvlgamma_check,
      .run = mvlgamma_run, .grad = mvlgamma_grad, .saves = IN(0));

GRAD(digamma) { dx[0] = lc_mul(g[0], lc_polygamma(1, in(0))); }
LC_OP(digamma, .sig = "digamma(input: Tensor) -> Tensor", .doc = "Derivative of lgamma.", FORMS, FLOAT_MAP,
      .grad = digamma_grad, .saves = IN(0));

LC_OP(trigamma, .sig = "trigamma(input: Tensor) -> Tensor", .doc = "The kernel of polygamma(1, x).", .hidden = true,
      .shape = same, .run = elementwise);

/* polygamma(n, x) as a function, x.polygamma(n) as a method. */
static int derivative_of_gamma(const lc_record *call, lc_spec *out)
{
    if (call->args[1].i < 0) return lc_fail_int(LC_LucidError, "polygamma(n, x) does not support negative n.");
    return same(call, out);
}
static int gamma_row(const lc_record *call, lc_lowering *to, int64_t n)
{
    if (n < 2) return lower_to(to, call, n ? LC_OP_trigamma : LC_OP_digamma, call->in, 1);
    lc_tensor *in[] = { call->in[0], lc_number_init_int(&to->number[0], n) };
    return lower_to(to, call, LC_OP_polygamma, in, 2);
}
static int polygamma_method_lower(const lc_record *call, lc_lowering *to) { return gamma_row(call, to, call->args[1].i); }
GRAD(polygamma_method) { dx[0] = lc_mul(g[0], lc_polygamma(in[1].i + 1, in(0))); }
LC_OP(polygamma_method, .py = "polygamma", .sig = "polygamma_method(input: Tensor, n: int) -> Tensor",
      .doc = "The derivative of digamma of order n.", .method = true, .function = false, .inplace = true,
      .promote = LC_TO_FLOAT, .shape = derivative_of_gamma, LOWERED(polygamma_method_lower), .grad = polygamma_method_grad,
      .saves = IN(0));
static int derivative_of_gamma_first(const lc_record *call, lc_spec *out)
{
    if (call->args[0].i < 0) return lc_fail_int(LC_LucidError, "polygamma(n, x) does not support negative n.");
    return same(call, out);
}
static int polygamma_lower(const lc_record *call, lc_lowering *to) { return gamma_row(call, to, call->args[0].i); }
GRAD(polygamma) { dx[0] = lc_mul(g[0], lc_polygamma(in[0].i + 1, in(1))); }
LC_OP(polygamma, .sig = "polygamma(n: int, input: Tensor) -> Tensor", .doc = "The derivative of digamma of order n.",
      .out = true, .promote = LC_TO_FLOAT, .shape = derivative_of_gamma_first, LOWERED(polygamma_lower), .grad = polygamma_grad,
      .saves = IN(1));

/* igamma and igammac: d/dx = x ** (a - 1) * exp(-x) / gamma(a); the derivative with respect to a is missing in PyTorch, too. */
static void igamma_slope(lc_tensor *g, const char *name, const lc_value *in, const bool *need, lc_tensor **dx)
{
    lc_tensor *a = in(0), *x = in(1);
    if (need[0]) {
        dx[0] = lc_fail(LC_NotImplementedError, "the derivative for '%s: input' is not implemented.", name);
        return;
    }
    lc_tensor *log_x = lc_mul(lc_sub(a, LC_INTEGER(1)), lc_log(x));
    dx[1] = lc_mul(g, lc_exp(lc_sub(lc_sub(log_x, x), lc_lgamma(a))));
}
GRAD(igamma) { igamma_slope(g[0], "igamma", in, need, dx); }
GRAD(igammac) { igamma_slope(lc_neg(g[0]), "igammac", in, need, dx); }
#define INCOMPLETE .shape = broadcast, .run = elementwise, .saves = IN(0) | IN(1)
LC_OP(igamma, .sig = "igamma(input: Tensor, other: Tensor) -> Tensor", .doc = "Regularised lower incomplete gamma function.",
      FORMS, INCOMPLETE, .grad = igamma_grad);
LC_OP(igammac, .sig = "igammac(input: Tensor, other: Tensor) -> Tensor", .doc = "Regularised upper incomplete gamma function.",
      FORMS, INCOMPLETE, .grad = igammac_grad);

/* ---- modified Bessel functions with gradients; bessel.c has the others ---- */

GRAD(i0) { dx[0] = lc_mul(g[0], lc_special_i1(in(0))); }
LC_OP(i0, .sig = "i0(input: Tensor) -> Tensor", .doc = "Modified Bessel function of the first kind, order 0.", FORMS, FLOAT_MAP,
      .grad = i0_grad, .saves = IN(0));

/* ---- logit, sinc ---- */

LC_OP(_logit, .sig = "_logit(input: Tensor) -> Tensor", .doc = "The kernel of logit without eps.", .hidden = true,
      .shape = same, .run = elementwise);
/* With eps the input is clamped to [eps, 1 - eps] first: the kernel has the bounds as operands. */
static int logit_lower(const lc_record *call, lc_lowering *to)
{
    const lc_value *eps = &call->args[1];
    if (eps->tag == LC_IS_none) return lower_to(to, call, LC_OP__logit, call->in, 1);
    lc_tensor *in[] = { call->in[0], lc_number_init(&to->number[0], LC_f64, eps->f, 0),
                        lc_number_init(&to->number[1], LC_f64, 1 - eps->f, 0) };
    return lower_to(to, call, LC_OP_logit, in, 3);
}
GRAD(logit)
{
    lc_tensor *x = in(0), *slope = lc_div(g[0], lc_mul(x, lc_sub(LC_INTEGER(1), x)));
    bool       any = in[1].tag == LC_IS_none;
    double     low = any ? 0 : in[1].f, high = any ? 1 : 1 - in[1].f;
    lc_tensor *inside = lc_logical_and(lc_ge(x, LC_NUMBER(low)), lc_le(x, LC_NUMBER(high)));
    dx[0] = lc_where(inside, slope, LC_NUMBER(any ? __builtin_nan("") : 0));
}
LC_OP(logit, .sig = "logit(input: Tensor, eps: float | None = None) -> Tensor",
      .doc = "log(input / (1 - input)); with eps, input is clamped to [eps, 1 - eps] first.", FORMS, .promote = LC_TO_FLOAT,
      .shape = same, LOWERED(logit_lower), .grad = logit_grad, .saves = IN(0));

GRAD(sinc)
{
    lc_tensor *x = in(0), *angle = lc_mul(x, LC_NUMBER(3.14159265358979323846)), *below = lc_mul(x, angle);
    lc_tensor *slope = lc_div(lc_sub(lc_mul(angle, lc_cos(angle)), lc_sin(angle)), below);
    dx[0] = lc_where(lc_eq(below, LC_INTEGER(0)), LC_INTEGER(0), lc_mul(g[0], conj_of(slope)));
}
LC_OP(sinc, .sig = "sinc(input: Tensor) -> Tensor", .doc = "sin(pi * input) / (pi * input), 1 at 0.", FORMS, FLOAT_MAP,
      .grad = sinc_grad, .saves = IN(0));

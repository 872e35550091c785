/* Implicit gradients of gamma and beta variables.
 *
 * F is an incomplete gamma or beta function: a power times a series or a continued fraction, which is summed together with its derivative by
 * the parameter. The power is also that of the density, so it divides out and nothing under- or overflows:
 *   gamma, x <= a + 1   F = x^a e^-x / Gamma(a + 1) * S     S = sum over n of x^n / ((a + 1) ... (a + n))
 *          x >  a + 1   1 - F = x^a e^-x / Gamma(a) * h     h: Legendre's continued fraction
 *          a > 1000     Cornish and Fisher's expansion of the quantile, differentiated; its error is below 1e-8 there
 *   beta                F = x^a (1-x)^b / (a B(a, b)) * h   h: the usual continued fraction, on the side of the mean where it converges
 *                                                           fast; on the other side 1 - F with a and b, x and 1 - x exchanged
 * Relative errors are about 1e-12. PyTorch fits polynomials instead, with relative errors up to 1e-3: the two agree to that.
 *
 * Beta's continued fraction goes by Lentz's method. A dual is a number and its derivative.
 *
 * One source for the CPU and CUDA, as special.h: the common subset of C and CUDA C++. */
// clang-format off
typedef struct { double v, d; } dual;
FN dual dual_of(double v, double d) {
  dual x;
  x.v = v;
  x.d = d;
  return x;
}
FN dual dual_add(dual a, dual b) { return dual_of(a.v + b.v, a.d + b.d); }
FN dual dual_mul(dual a, dual b) { return dual_of(a.v * b.v, a.v * b.d + a.d * b.v); }
FN dual dual_div(dual a, dual b)
{
    double q = a.v / b.v;
    return dual_of(q, (a.d - q * b.d) / b.v);
}

/* One step of Lentz's method with partial numerator a and denominator b; true once neither h nor its derivative moves. */
typedef struct {
    dual c, d, h;
} lentz;
FN bool lentz_step(lentz *l, dual a, dual b)
{
    l->d = dual_add(dual_mul(a, l->d), b);
    if (fabs(l->d.v) < 1e-300) l->d.v = 1e-300;
    l->c = dual_add(b, dual_div(a, l->c));
    if (fabs(l->c.v) < 1e-300) l->c.v = 1e-300;
    l->d = dual_div(dual_of(1, 0), l->d);
    dual factor = dual_mul(l->d, l->c), before = l->h;
    l->h = dual_mul(l->h, factor);
    return fabs(factor.v - 1) < 4 * 1e-16 && fabs(l->h.d - before.d) <= 4 * 1e-16 * fabs(l->h.d);
}

/* ---- gamma ---- */

/* digamma with the recurrence as one quotient: slope / product is the sum of 1 / (x + k). */
FN double gamma_psi(double x)
{
    double product = 1, slope = 0;
    for (; x < 10; x += 1) {
        slope = slope * x + product;
        product *= x;
    }
    return digamma_series(x) - slope / product;
}
FN double gamma_psi_above(double a) { return a > 0 && a <= 1000 ? gamma_psi(a + 1) : 0; } /* where gamma_grad_by reads it */
FN double gamma_grad_series(double a, double x, double psi, double eps)
{
    double term = 1, sum = 1, harmonic = 0, slope = 0; /* harmonic: -d log term / da */
    for (int n = 1; n < 50000; n++) {
        double inverse = 1 / (a + n);
        term *= x * inverse;
        harmonic += inverse;
        sum += term;
        slope -= term * harmonic;
        if (term * (1 + harmonic) < eps * sum) break;
    }
    return -x / a * (sum * (log(x) - psi) + slope);
}
/* Convergents p / q, with their derivatives: no division but in the comparison of each fourth with the one before. */
FN double gamma_grad_fraction(double a, double x, double psi, double eps)
{
    double b = x + 1 - a;
    double p = 1, q = b, last_p = 0, last_q = 1, dp = 0, dq = -1, last_dp = 0, last_dq = 0, h = 1 / b, dh = h * h;
    for (int i = 1; i < 50000; i++) {
        double t = -i * (i - a);
        b += 2;
        double next_p = b * p + t * last_p, next_q = b * q + t * last_q;
        double next_dp = b * dp + t * last_dp - p + i * last_p, next_dq = b * dq + t * last_dq - q + i * last_q;
        last_p = p, last_q = q, last_dp = dp, last_dq = dq;
        p = next_p, q = next_q, dp = next_dp, dq = next_dq;
        if (i % 4) continue;
        double inverse = 1 / q, value = p * inverse, slope = (dp - value * dq) * inverse;
        bool   settled = fabs(value - h) <= eps * fabs(value) && fabs(slope - dh) <= eps * fabs(slope);
        h = value, dh = slope;
        if (settled) break;
        if (fabs(q) > 1e100) {
            p *= 1e-100, q *= 1e-100, last_p *= 1e-100, last_q *= 1e-100;
            dp *= 1e-100, dq *= 1e-100, last_dp *= 1e-100, last_dq *= 1e-100;
        }
    }
    return x * (h * (log(x) - psi + 1 / a) + dh);
}
/* x = a + z sqrt(a) + (z^2 - 1) / 3 + ... with a normal z: solve for z, then take the derivative by a. */
FN double gamma_grad_large(double a, double x)
{
    double root = sqrt(a), z = (x - a) / root;
    for (int i = 0; i < 8; i++) {
        double zz = z * z, p3 = (zz - 7) * z, p4 = (3 * zz + 7) * zz - 16, p5 = ((9 * zz + 256) * zz - 433) * z;
        double value = a + z * root + (zz - 1) / 3 + p3 / (36 * root) - p4 / (810 * a) + p5 / (38880 * a * root);
        double slope = root + 2 * z / 3 + (3 * zz - 7) / (36 * root) - (12 * zz + 14) * z / (810 * a);
        double step = (value - x) / slope;
        z -= step;
        if (!(fabs(step) > 1e-14 * (1 + fabs(z)))) break;
    }
    double zz = z * z, p3 = (zz - 7) * z, p4 = (3 * zz + 7) * zz - 16, p5 = ((9 * zz + 256) * zz - 433) * z;
    return 1 + z / (2 * root) - p3 / (72 * a * root) + p4 / (810 * a * a) - p5 / (25920 * a * a * root);
}
/* psi: digamma(a + 1), which whoever has many x of one a computes once. eps: 4e-16, or 1e-10 for results in float32. */
FN double gamma_grad_by(double a, double x, double psi, double eps)
{
    if (!(x > 0) || !(a > 0)) return isnan(x) || isnan(a) ? NAN : 0;
    if (a > 1000) return gamma_grad_large(a, x);
    return x <= a + 1 ? gamma_grad_series(a, x, psi, eps) : gamma_grad_fraction(a, x, psi, eps);
}
FN double gamma_grad_at(double a, double x, double eps) { return gamma_grad_by(a, x, gamma_psi_above(a), eps); }

/* ---- beta ---- */

/* The continued fraction of the incomplete beta function, with its derivative by one of a and b: a.d and b.d say by which. */
FN dual beta_fraction(dual a, dual b, double x)
{
    dual  one = { 1, 0 }, ab = dual_add(a, b), above = dual_add(a, one);
    dual  start = dual_div(ab, above);
    lentz l;
    l.c = one;
    l.d = dual_of(1 - start.v * x, -start.d * x);
    if (fabs(l.d.v) < 1e-300) l.d.v = 1e-300;
    l.d = dual_div(one, l.d), l.h = l.d;
    for (int m = 1; m < 50000; m++) {
        dual even = { a.v + 2 * m, a.d }, odd = { a.v + 2 * m + 1, a.d }, below = { a.v + 2 * m - 1, a.d };
        dual up = dual_div(dual_mul(dual_of(m * x, 0), dual_of(b.v - m, b.d)), dual_mul(below, even));
        dual down = dual_div(dual_mul(dual_of(-x * (a.v + m), -x * a.d), dual_of(ab.v + m, ab.d)), dual_mul(even, odd));
        bool first = lentz_step(&l, up, one);
        if (lentz_step(&l, down, one) && first) break;
    }
    return l.h;
}

FN double dirichlet_grad_at(double x, double a, double total)
{
    double b = total - a;
    if (!(x > 0 && x < 1 && a > 0 && b > 0)) return isnan(x + a + b) ? NAN : 0;
    if (x < (a + 1) / (total + 2)) {
        dual h = beta_fraction(dual_of(a, 1), dual_of(b, 0), x);
        return -x / a * (h.v * (log(x) - special_digamma(a + 1) + special_digamma(total)) + h.d);
    }
    dual h = beta_fraction(dual_of(b, 0), dual_of(a, 1), 1 - x);
    return x / b * (h.v * (log(x) - special_digamma(a) + special_digamma(total)) + h.d);
}
// clang-format on

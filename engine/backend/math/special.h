/* Special functions that neither the C library nor CUDA has, in double precision; float32 rounds their results.
 *
 * One source for both: the CPU includes it (cpu/math/scalar_math.h), CUDA programs embed its text (cuda/kernels/math.cuh).
 * So it uses only the common subset of C and CUDA C++, and FN makes a function local.
 *   digamma, polygamma   recurrence up to 10, then the asymptotic series; reflection for negative arguments, which
 *                        PyTorch rounds to float32 in between if the result is float32
 *   zeta                 Hurwitz: Euler-Maclaurin
 *   igamma, igammac      power series, continued fraction; Temme's expansion where both are slow
 *   polynomial           orthogonal polynomials by their three-term recurrence, from 1 and first(t); of degrees above 64 inside [-1, 1] in
 *                        closed form where there is one (else NaN). step: from degrees k - 1 and k to k + 1
 * Bessel functions and the normal distribution are in bessel.h. */
// clang-format off
FN double digamma_series(double x) {
  double z = 1 / (x * x);
  double s = z * (1. / 12 - z * (1. / 120 - z * (1. / 252 - z * (1. / 240 - z * (1. / 132 - z * (691. / 32760 - z / 12))))));
  return log(x) - 0.5 / x - s;
}
FN double special_digamma(double x) {
  double shift = 0;
  if (x == 0) return copysign(INFINITY, -x);
  if (x < 0) {
    if (x == floor(x)) return NAN;
    shift = -3.14159265358979323846 / tan(3.14159265358979323846 * (x - trunc(x)));
    x = 1 - x;
  }
  for (; x < 10; x += 1) shift -= 1 / x;
  return shift + digamma_series(x);
}
FN double trigamma(double x, bool single) {
  double sum = 0;
  double sign = 1;
  if (x < 0.5) {
    double s = single ? sinf(3.14159274f * (float)x) : sin(3.14159265358979323846 * x);
    sum = -9.86960440108935861883 / (s * s);
    sign = -1;
    x = 1 - x;
  }
  for (; x < (single ? 5 : 10); x += 1) sum += 1 / (x * x);
  double z = 1 / (x * x);
  double s = 1. / 6 - z * (1. / 30 - z * (1. / 42 - z * (1. / 30 - z * (5. / 66 - z * (691. / 2730)))));
  return sign * (sum + 1 / x + z * (0.5 + s / x));
}
FN double inverse_power(double q, double s, bool single) {
  if (s != floor(s) || s > 64) return single ? exp(-s * log(q)) : pow(q, -s);
  double p = 1;
  for (int n = (int)s; n; n >>= 1) {
    if (n & 1) p *= q;
    q *= q;
  }
  return 1 / p;
}
FN double special_zeta(double s, double q, bool single) {
  const double c[] = { 1. / 12, -1. / 720, 1. / 30240, -1. / 1209600, 1. / 47900160, -691. / 1307674368000, 1. / 74724249600.,
    -3617. / 10670622842880000., 43867. / 5109094217170944000., -174611. / 802857662698291200000.,
    854513. / 155112100433309859840000., -236364091. / 1693824136731743669452800000. };
  if (s == 1) return INFINITY;
  if (!(s > 1) || (q <= 0 && q != floor(q) && s != floor(s))) return NAN;
  if (q <= 0 && q == floor(q)) return INFINITY;
  if (q < -1e6) return NAN; /* a term for every integer below zero */
  double sum = 0;
  for (; q < (single ? 3 : 8) + s; q += 1) {
    double p = inverse_power(q, s, single);
    sum += p;
    if (q > 0 && p * (q + 1) <= (single ? 1e-10 : 1e-17) * sum) return sum;
  }
  double term = inverse_power(q, s, single);
  double i = 1 / q;
  sum += q * term / (s - 1) + 0.5 * term;
  term *= s * i;
  for (int j = 0; j < 12; j++) {
    sum += term * c[j];
    term *= (s + 2 * j + 1) * i * ((s + 2 * j + 2) * i);
  }
  return sum;
}
FN double special_polygamma(double x, double n, bool single) {
  if (n == 1) return trigamma(x, single);
  return (fmod(n, 2) == 1 ? 1 : -1) * exp(lgamma(n + 1)) * special_zeta(n + 1, x, single);
}
FN double gamma_weight(double a, double x, bool single) { /* x^a exp(-x) / gamma(a); single: with Stirling's series for gamma(a + 8) */
  if (a < 20 && !single) return exp(a * log(x) - x - lgamma(a));
  if (a < 20) {
    double y = a + 8;
    double i = 1 / y;
    double z = i * i;
    double c = i * (1. / 12 - z * (1. / 360 - z * (1. / 1260 - z * (1. / 1680 - z * (1. / 1188 - z * (691. / 360360 - z / 156))))));
    double p = a * (a + 1) * ((a + 2) * (a + 3)) * ((a + 4) * (a + 5)) * ((a + 6) * (a + 7));
    return p * exp(a * log(x) - x - ((y - 0.5) * log(y) - y + 0.91893853320467274178 + c));
  }
  double m = (x - a) / a;
  double z = 1 / (a * a);
  double c = (1. / 12 - z * (1. / 360 - z * (1. / 1260 - z / 1680))) / a;
  double e = fabs(m) < 0.4 ? log1p(m) - m : log(x / a) - m;
  return exp(a * e - c) * sqrt(a / 6.28318530717958647692);
}
FN double gamma_series(double a, double x, double eps) { /* sum of x^k / ((a + 1) ... (a + k)), as one fraction: no division inside */
  double top = 1;
  double below = 1;
  double power = 1;
  for (int k = 1; k < 100000 && power > eps * top; k++) {
    power *= x;
    below *= a + k;
    top = top * (a + k) + power;
    if (top > 1e200) {
      top *= 1e-200;
      below *= 1e-200;
      power *= 1e-200;
    }
  }
  return top / below * gamma_weight(a, x, eps > 1e-12) / a;
}
FN double gamma_fraction(double a, double x, double eps) { /* convergents p / q of Legendre's fraction */
  double b = x + 1 - a;
  double p = b;
  double q = 1;
  double last_p = 1;
  double last_q = 0;
  for (int k = 1; k < 100000; k++) {
    double t = -k * (k - a);
    b += 2;
    double next_p = b * p + t * last_p;
    double next_q = b * q + t * last_q;
    last_p = p;
    last_q = q;
    p = next_p;
    q = next_q;
    if (fabs(q * last_p - last_q * p) <= eps * fabs(q * last_p)) break;
    if (fabs(p) > 1e100) {
      p *= 1e-100;
      q *= 1e-100;
      last_p *= 1e-100;
      last_q *= 1e-100;
    }
  }
  return q / p * gamma_weight(a, x, eps > 1e-12);
}
FN double gamma_temme(double a, double x, double side) {
  double m = (x - a) / a;
  double e = m - log1p(m);
  double eta = copysign(sqrt(2 * fmax(e, 0.)), m);
  double c = fabs(eta) < 1e-2 ? -1. / 3 + eta * (1. / 12 - eta * (2. / 135 - eta / 864)) : 1 / m - 1 / eta;
  double r = exp(-a * e) / sqrt(6.28318530717958647692 * a) * (c - 1 / (540 * a));
  return 0.5 * erfc(side * eta * sqrt(a / 2)) + side * r;
}
FN double incomplete_gamma(double a, double x, bool upper, bool single) {
  double eps = single ? 1e-8 : 1e-16;
  if (x < 0 || a < 0 || (a == 0 && !(x > 0))) return NAN; /* PyTorch's order: some limits ignore the other argument */
  if (a == 0) return upper ? 0 : 1;
  if (x == 0) return upper ? 1 : 0;
  if (isinf(a)) return isinf(x) ? NAN : upper ? 1 : 0;
  if (isinf(x)) return upper ? 0 : 1;
  if (a != a || x != x) return NAN;
  if (a > 2e5 && fabs(x - a) < 0.3 * a) return gamma_temme(a, x, upper ? 1 : -1);
  if (x < 1 || x < a) return upper ? fmax(1 - gamma_series(a, x, eps), 0) : gamma_series(a, x, eps);
  return upper ? gamma_fraction(a, x, eps) : 1 - gamma_fraction(a, x, eps);
}
FN double step_chebyshev(double t, double k, double p, double q) { (void)k; return 2 * t * q - p; }
FN double step_hermite_h(double t, double k, double p, double q) { return 2 * (t * q - k * p); }
FN double step_hermite_he(double t, double k, double p, double q) { return t * q - k * p; }
FN double step_laguerre(double t, double k, double p, double q) { return ((2 * k + 1 - t) * q - k * p) / (k + 1); }
FN double step_legendre(double t, double k, double p, double q) { return ((2 * k + 1) * t * q - k * p) / (k + 1); }
FN double first_t(double t) { return t; }
FN double first_u(double t) { return 2 * t; }
FN double first_v(double t) { return 2 * t - 1; }
FN double first_w(double t) { return 2 * t + 1; }
FN double first_l(double t) { return 1 - t; }
FN double parity(double n) { return fmod(n, 2) == 0 ? 1 : -1; }
FN double closed_t(double t, double n) { return fabs(t) == 1 ? (t > 0 ? 1 : parity(n)) : cos(n * acos(t)); }
FN double closed_u(double t, double n) {
  return fabs(t) == 1 ? (t > 0 ? 1 : parity(n)) * (n + 1) : sin((n + 1) * acos(t)) / sin(acos(t));
}
FN double closed_v(double t, double n) {
  return fabs(t) == 1 ? (t > 0 ? 1 : parity(n) * (2 * n + 1)) : cos((n + 0.5) * acos(t)) / cos(0.5 * acos(t));
}
FN double closed_w(double t, double n) {
  return fabs(t) == 1 ? (t > 0 ? 2 * n + 1 : parity(n)) : sin((n + 0.5) * acos(t)) / sin(0.5 * acos(t));
}
FN double closed_p(double t, double n) { return fabs(t) == 1 ? (t > 0 ? 1 : parity(n)) : NAN; }
FN double closed_none(double t, double n) { (void)t; (void)n; return NAN; }
FN double polynomial(double t, double degree, double (*first)(double), double (*step)(double, double, double, double),
                     double (*closed)(double, double)) {
  double n = trunc(degree);
  if (!(n >= 0)) return 0;
  if (n > 64 && fabs(t) <= 1) {
    double y = closed(t, n);
    if (y == y) return y;
  }
  if (n > 1e6) return NAN; /* the recurrence takes a step per degree */
  double p = 1;
  double q = n < 1 ? 1 : first(t);
  for (double k = 1; k < n && q == q; k += 1) {
    double r = step(t, k, p, q);
    p = q;
    q = r;
  }
  return q;
}
// clang-format on

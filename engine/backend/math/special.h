/* Special functions that neither the C library nor CUDA has, in double precision; float32 rounds their results.
 *
 * One source for both: the CPU includes it (cpu/math/scalar_math.h), CUDA programs hold its text (cuda/kernels/math.cuh). So it uses only what C and
 * CUDA C++ have in common, and FN stands for what makes a function local.
 *   digamma, polygamma   recurrence up to 10, then the asymptotic series; reflection for negative arguments, which
 *                        PyTorch rounds to float32 on the way where the result is one
 *   zeta                 Hurwitz: Euler-Maclaurin
 *   igamma, igammac      power series, continued fraction; Temme's expansion where both are slow
 *   i0, i1               Chebyshev series of exp(-x) I(x) on [0, 8] and of sqrt(x) exp(-x) I(x) beyond, in 8 / x */
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
FN double inverse_power(double q, double s) {
  if (s != floor(s) || s > 64) return pow(q, -s);
  double p = 1;
  for (int n = (int)s; n; n >>= 1) {
    if (n & 1) p *= q;
    q *= q;
  }
  return 1 / p;
}
FN double special_zeta(double s, double q) {
  const double b[] = { 12, -720, 30240, -1209600, 47900160, -1307674368000. / 691, 74724249600. };
  if (s == 1) return INFINITY;
  if (!(s > 1) || (q <= 0 && q != floor(q) && s != floor(s))) return NAN;
  if (q <= 0 && q == floor(q)) return INFINITY;
  double sum = 0;
  for (; q < 10; q += 1) sum += inverse_power(q, s);
  double term = inverse_power(q, s);
  double factor = s;
  sum += q * term / (s - 1) + 0.5 * term;
  for (int j = 0; j < 7; j++) {
    term /= q;
    sum += factor * term / b[j];
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2);
    term /= q;
  }
  return sum;
}
FN double special_polygamma(double x, double n, bool single) {
  if (n == 1) return trigamma(x, single);
  return (fmod(n, 2) == 1 ? 1 : -1) * exp(lgamma(n + 1)) * special_zeta(n + 1, x);
}
FN double gamma_weight(double a, double x) {
  if (a < 20) return exp(a * log(x) - x - lgamma(a));
  double m = (x - a) / a;
  double z = 1 / (a * a);
  double c = (1. / 12 - z * (1. / 360 - z * (1. / 1260 - z / 1680))) / a;
  double e = fabs(m) < 0.4 ? log1p(m) - m : log(x / a) - m;
  return exp(a * e - c) * sqrt(a / 6.28318530717958647692);
}
FN double gamma_series(double a, double x, double eps) {
  double sum = 1;
  double term = 1;
  for (int k = 1; k < 100000 && term > eps * sum; k++) {
    term *= x / (a + k);
    sum += term;
  }
  return sum * gamma_weight(a, x) / a;
}
FN double gamma_fraction(double a, double x, double eps) {
  double b = x + 1 - a;
  double c = 1e300;
  double d = 1 / b;
  double h = d;
  for (int k = 1; k < 100000; k++) {
    double t = -k * (k - a);
    b += 2;
    d = t * d + b;
    d = 1 / (d == 0 ? 1e-300 : d);
    c = b + t / c;
    c = c == 0 ? 1e-300 : c;
    h *= d * c;
    if (fabs(d * c - 1) < eps) break;
  }
  return h * gamma_weight(a, x);
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
  double eps = single ? 1e-9 : 1e-16;
  if (x < 0 || a < 0 || (a == 0 && !(x > 0))) return NAN; /* else PyTorch's order: some limits do not look at the other argument */
  if (a == 0) return upper ? 0 : 1;
  if (x == 0) return upper ? 1 : 0;
  if (isinf(a)) return isinf(x) ? NAN : upper ? 1 : 0;
  if (isinf(x)) return upper ? 0 : 1;
  if (a != a || x != x) return NAN;
  if (a > 2e5 && fabs(x - a) < 0.3 * a) return gamma_temme(a, x, upper ? 1 : -1);
  if (x < 1 || x < a) return upper ? fmax(1 - gamma_series(a, x, eps), 0) : gamma_series(a, x, eps);
  return upper ? gamma_fraction(a, x, eps) : 1 - gamma_fraction(a, x, eps);
}
FN double chebyshev(const double *c, int n, double t) {
  double b0 = 0;
  double b1 = 0;
  double b2 = 0;
  for (int i = 0; i < n; i++) {
    b2 = b1;
    b1 = b0;
    b0 = 2 * t * b1 - b2 + c[i];
  }
  return 0.5 * (b0 - b2);
}
FN double i0_near(double t) {
  const double c[] = {
    -4.41534164647933938e-18, 3.3307945188222381e-17, -2.43127984654795469e-16, 1.71539128555513303e-15,
    -1.16853328779934517e-14, 7.67618549860493562e-14, -4.85644678311192946e-13, 2.95505266312963983e-12,
    -1.72682629144155571e-11, 9.67580903537323691e-11, -5.18979560163526291e-10, 2.65982372468238665e-9,
    -1.30002500998624804e-8, 6.04699502254191895e-8, -2.67079385394061173e-7, 1.11738753912010372e-6,
    -4.41673835845875056e-6, 0.0000164484480707288971, -0.000057541950100821037, 0.000188502885095841656,
    -0.000576375574538582366, 0.0016394756169413358, -0.00432430999505057594, 0.0105464603945949983,
    -0.0237374148058994688, 0.0493052842396707085, -0.0949010970480476444, 0.171620901522208775,
    -0.304682672343198399, 0.676795274409476085
  };
  return chebyshev(c, 30, t);
}
FN double i0_far(double t) {
  const double c[] = {
    -7.23318048787475395e-18, -4.83050448594418207e-18, 4.46562142029676e-17, 3.46122286769746109e-17,
    -2.82762398051658348e-16, -3.42548561967721913e-16, 1.77256013305652638e-15, 3.81168066935262242e-15,
    -9.55484669882830765e-15, -4.15056934728722209e-14, 1.54008621752140983e-14, 3.8527783827421427e-13,
    7.18012445138366623e-13, -1.79417853150680612e-12, -1.32158118404477131e-11, -3.14991652796324136e-11,
    1.18891471078464383e-11, 4.94060238822496959e-10, 3.39623202570838635e-9, 2.26666899049817806e-8,
    2.04891858946906374e-7, 2.89137052083475648e-6, 0.0000688975834691682398, 0.00336911647825569409,
    0.804490411014108832
  };
  return chebyshev(c, 25, t);
}
FN double i1_near(double t) {
  const double c[] = {
    2.77791411276104637e-18, -2.11142121435816608e-17, 1.55363195773620047e-16, -1.10559694773538631e-15,
    7.60068429473540693e-15, -5.04218550472791169e-14, 3.22379336594557471e-13, -1.98397439776494372e-12,
    1.17361862988909016e-11, -6.66348972350202774e-11, 3.62559028155211704e-10, -1.88724975172282929e-9,
    9.38153738649577178e-9, -4.44505912879632808e-8, 2.00329475355213526e-7, -8.56872026469545474e-7,
    3.47025130813767848e-6, -0.0000132731636560394358, 0.0000478156510755005423, -0.000161760815825896746,
    0.000512285956168575773, -0.00151357245063125315, 0.00415642294431288816, -0.0105640848946261982,
    0.0247264490306265168, -0.0529459812080949914, 0.102643658689847095, -0.176416518357834055, 0.252587186443633655
  };
  return chebyshev(c, 29, t);
}
FN double i1_far(double t) {
  const double c[] = {
    7.51729631084210481e-18, 4.41434832307170795e-18, -4.65030536848935833e-17, -3.20952592199342396e-17,
    2.96262899764595014e-16, 3.30820231092092828e-16, -1.88035477551078245e-15, -3.8144030724370078e-15,
    1.04202769841288028e-14, 4.27244001671195135e-14, -2.10154184277266431e-14, -4.08355111109219732e-13,
    -7.19855177624590851e-13, 2.03562854414708951e-12, 1.41258074366137813e-11, 3.25260358301548824e-11,
    -1.89749581235054123e-11, -5.58974346219658381e-10, -3.83538038596423702e-9, -2.63146884688951951e-8,
    -2.51223623787020893e-7, -3.88256480887769039e-6, -0.000110588938762623716, -0.00976109749136146841,
    0.77857623501828012
  };
  return chebyshev(c, 25, t);
}
FN double special_i0(double x) {
  double a = fabs(x);
  return exp(a) * (a <= 8 ? i0_near(a / 4 - 1) : i0_far(16 / a - 1) / sqrt(a));
}
FN double special_i1(double x) {
  double a = fabs(x);
  return copysign(exp(a) * (a <= 8 ? a * i1_near(a / 4 - 1) : i1_far(16 / a - 1) / sqrt(a)), x);
}
// clang-format on

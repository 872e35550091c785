/* Functions of complex numbers for the rows of scalar.def. Those that C's library has are computed in double precision, by Kahan's formulas,
 * with the signs of zeros on branch cuts; complex64 rounds their results. */
#include "complex.cuh"
template <class R> __device__ R m_real(complex_of<R> z) { return z.re; }
template <class R> __device__ R m_imag(complex_of<R> z) { return z.im; }
template <class R> __device__ complex_of<R> m_conj(complex_of<R> z) { return complex_of<R>(z.re, -z.im); }
template <class R> __device__ complex_of<R> m_mul(complex_of<R> x, complex_of<R> y) { return x * y; }
template <class R> __device__ complex_of<R> m_div(complex_of<R> x, complex_of<R> y) { return x / y; }
FN float                                    fabs(c64 z) { return hypotf(z.re, z.im); }
FN double                                   fabs(c128 z) { return hypot(z.re, z.im); }
FN c128                                     times_i(c128 z) { return c128(-z.im, z.re); }
FN c128                                     over_i(c128 z) { return c128(z.im, -z.re); }

FN c128 exp(c128 z)
{
    double a = z.re, b = z.im, e = exp(a);
    if (b == 0) return c128(e, b);
    if (!isfinite(b) && a == -INFINITY) return c128(0, 0);
    if (!isfinite(b) && a == INFINITY) return c128(a, NAN);
    if (e == INFINITY && isfinite(a)) { /* the parts may be finite */
        e = exp(a / 2);
        return c128(e * cos(b) * e, e * sin(b) * e);
    }
    return c128(e * cos(b), e * sin(b));
}
FN c128 log(c128 z)
{
    double a = fmax(fabs(z.re), fabs(z.im)), b = fmin(fabs(z.re), fabs(z.im)), size = hypot(a, b);
    double re = size > 0.7 && size < 1.4 ? log1p((a - 1) * (a + 1) + b * b) / 2 : log(size);
    return c128(re, atan2(z.im, z.re));
}
FN c128 sqrt(c128 z)
{
    double a = z.re, b = z.im;
    if (a == 0 && b == 0) return c128(0, b);
    if (isinf(b)) return c128(INFINITY, b);
    if (a == INFINITY) return c128(a, b != b ? b : copysign(0., b));
    if (a == -INFINITY) return c128(b != b ? b : 0., copysign(INFINITY, b));
    bool   large = fmax(fabs(a), fabs(b)) > 1e300, tiny = fmax(fabs(a), fabs(b)) < 1e-290;
    double scale = large ? 0.25 : tiny ? 0x1p60 : 1, back = large ? 2 : tiny ? 0x1p-30 : 1;
    a *= scale, b *= scale;
    double t = sqrt((fabs(a) + hypot(a, b)) / 2);
    return a >= 0 ? c128(t * back, b / (2 * t) * back) : c128(fabs(b) / (2 * t) * back, copysign(t, b) * back);
}
FN c128 sinh(c128 z)
{
    double a = z.re, b = z.im;
    if (b == 0) return c128(sinh(a), b);
    if (isinf(a) && !isfinite(b)) return c128(a, NAN);
    if (a == 0) return c128(isfinite(b) ? a : 0., sin(b));
    return c128(sinh(a) * cos(b), cosh(a) * sin(b));
}
FN c128 cosh(c128 z)
{
    double a = z.re, b = z.im;
    if (b == 0) return c128(cosh(a), a == 0 ? a * b : copysign(0., a) * b);
    if (isinf(a) && !isfinite(b)) return c128(INFINITY, NAN);
    if (a == 0) return c128(cos(b), isfinite(b) ? a * sin(b) : 0.);
    return c128(cosh(a) * cos(b), sinh(a) * sin(b));
}
FN c128 tanh(c128 z)
{
    double a = z.re, b = z.im;
    if (fabs(a) > 20) return c128(copysign(1., a), isfinite(b) ? 4 * sin(b) * cos(b) * exp(-2 * fabs(a)) : 0.);
    if (b == 0) return c128(tanh(a), b);
    double t = tan(b), beta = 1 + t * t, s = sinh(a), rho = sqrt(1 + s * s), below = 1 + beta * s * s;
    return c128(beta * rho * s / below, t / below);
}
FN c128 sin(c128 z) { return over_i(sinh(times_i(z))); }
FN c128 cos(c128 z) { return cosh(times_i(z)); }
FN c128 tan(c128 z) { return over_i(tanh(times_i(z))); }
FN c128 asin(c128 z)
{
    c128 low = sqrt(c128(1 - z.re, -z.im)), high = sqrt(c128(1 + z.re, z.im));
    return c128(atan2(z.re, low.re * high.re - low.im * high.im), asinh(low.re * high.im - low.im * high.re));
}
FN c128 acos(c128 z)
{
    c128 low = sqrt(c128(1 - z.re, -z.im)), high = sqrt(c128(1 + z.re, z.im));
    return c128(2 * atan2(low.re, high.re), asinh(high.re * low.im - high.im * low.re));
}
FN c128 acosh(c128 z)
{
    c128 low = sqrt(c128(z.re - 1, z.im)), high = sqrt(c128(z.re + 1, z.im));
    return c128(asinh(low.re * high.re + low.im * high.im), 2 * atan2(low.im, high.re));
}
FN c128 atanh(c128 z)
{
    double x = z.re, y = z.im, far = hypot(x, y);
    if (far > 1e150) return c128(isinf(far) ? copysign(0., x) : x / far / far, copysign(1.57079632679489661923, y));
    return c128(copysign(log1p(4 * fabs(x) / ((1 - fabs(x)) * (1 - fabs(x)) + y * y)) / 4, x),
                atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2);
}
FN c128 asinh(c128 z) { return over_i(asin(times_i(z))); }
FN c128 atan(c128 z) { return over_i(atanh(times_i(z))); }
FN c128 exp2(c128 z) { return exp(z * 0.69314718055994530942); }
FN c128 log2(c128 z) { return log(z) * 1.44269504088896340736; }
FN c128 log10(c128 z) { return log(z) * 0.43429448190325182765; }
FN c128 expm1(c128 z)
{
    double half = sin(z.im / 2), e = expm1(z.re);
    if (z.im == 0) return c128(e, z.im);
    return c128(e * cos(z.im) - 2 * half * half, (e + 1) * sin(z.im));
}
FN c128 log1p(c128 z)
{
    if (!(hypot(z.re, z.im) < 0.5)) return log(c128(1 + z.re, z.im));
    return c128(log1p(z.re * (2 + z.re) + z.im * z.im) / 2, atan2(z.im, 1 + z.re));
}
FN c128 m_pow(c128 x, c128 y)
{
    if (x == c128(0)) return y == c128(0) ? c128(1) : y.re > 0 ? c128(0) : c128(INFINITY, NAN);
    return exp(y * log(x));
}
FN c128 m_sinc(c128 z)
{
    c128 pi_z = z * 3.14159265358979323846;
    return z == c128(0) ? c128(1) : sin(pi_z) / pi_z;
}
FN c128 m_logaddexp(c128 x, c128 y) /* by the one with the larger real part */
{
    if (y != y || x != x) return c128(NAN, NAN);
    c128 low = x.re < y.re ? x : y, high = x.re < y.re ? y : x;
    if (low.re == high.re && isinf(low.re)) return low.re < 0 ? low : log(exp(low) + exp(high));
    return high + log1p(exp(low - high));
}
template <class R> __device__ complex_of<R> m_silu_backward(complex_of<R> g, complex_of<R> z)
{
    typedef complex_of<R> C;
    C                     s = C(1) / (C(1) + C(exp(c128(-z))));
    return g * m_conj(s * (C(1) + z * (C(1) - s)));
}
#define IN_DOUBLE(f)                                                                                                           \
    FN c64 f(c64 z) { return c64(f(c128(z))); }
IN_DOUBLE(exp)
IN_DOUBLE(log)
IN_DOUBLE(sqrt)
IN_DOUBLE(sinh)
IN_DOUBLE(cosh)
IN_DOUBLE(tanh)
IN_DOUBLE(sin)
IN_DOUBLE(cos)
IN_DOUBLE(tan)
IN_DOUBLE(asin)
IN_DOUBLE(acos)
IN_DOUBLE(acosh)
IN_DOUBLE(atanh)
IN_DOUBLE(asinh)
IN_DOUBLE(atan)
IN_DOUBLE(exp2)
IN_DOUBLE(log2)
IN_DOUBLE(log10)
IN_DOUBLE(expm1)
IN_DOUBLE(log1p)
IN_DOUBLE(m_sinc)
FN c64 m_pow(c64 x, c64 y) { return c64(m_pow(c128(x), c128(y))); }
FN c64 m_logaddexp(c64 x, c64 y) { return c64(m_logaddexp(c128(x), c128(y))); }

/* The m_* functions of scalar.def in C, and the element types lc_<name>.
 *
 * exp, log, tanh, sin, cos, and more in vector_math.h, are written so that the compiler can vectorise them: no branch, no
 * table, no library call. Results do not depend on the position in a vector, because vector and scalar code perform the same
 * operations. Where the instruction set has a fused multiply-add the polynomials use it, so tables of different instruction
 * sets may differ in the last bit. Errors: float32 at most 2 ulp (exp and log about 1), float64 at most 4. The polynomials
 * are those of Cephes and fdlibm. */
#pragma once
#include "../../../core/core.h"
#include <complex.h>
#undef complex /* the name of a dtype set, and of an op */
#include <math.h>
#include <stdlib.h>

#define DTYPE(name, ctype, acc, py, class) typedef ctype lc_##name;
#include "../../../core/dtype.def"
#undef DTYPE

#ifdef __FMA__
#define fused32(a, b, c) __builtin_fmaf(a, b, c)
#define fused64(a, b, c) __builtin_fma(a, b, c)
#else
#define fused32(a, b, c) ((a) * (b) + (c))
#define fused64(a, b, c) ((a) * (b) + (c))
#endif
#define MATH static inline __attribute__((always_inline, unused))

MATH float as_f32(uint32_t u)
{
    return (union {
               uint32_t u;
               float    f;
           }){ u }
        .f;
}
MATH uint32_t bits32(float f)
{
    return (union {
               float    f;
               uint32_t u;
           }){ f }
        .u;
}
MATH double as_f64(uint64_t u)
{
    return (union {
               uint64_t u;
               double   f;
           }){ u }
        .f;
}
MATH uint64_t bits64(double f)
{
    return (union {
               double   f;
               uint64_t u;
           }){ f }
        .u;
}

/* Adding this rounds to an integer and leaves it in the low bits. */
#define ROUND32 12582912.f
#define ROUND64 6755399441055744.0

/* exp(c) - 1 = expm1(r) * 2^n + (2^n - 1) with c = n ln 2 + r: shared by exp and tanh. */
MATH float expm1_reduced_f32(float c, int32_t *n)
{
    float t = fused32(c, 1.44269504f, ROUND32), k = t - ROUND32;
    float r = fused32(k, 2.12194440e-4f, fused32(k, -0.693359375f, c));
    float p = fused32(fused32(1.9875691500e-4f, r, 1.3981999507e-3f), r, 8.3334519073e-3f);
    p = fused32(fused32(fused32(p, r, 4.1665795894e-2f), r, 1.6666665459e-1f), r, 5.0000001201e-1f);
    *n = (int32_t)(bits32(t) - bits32(ROUND32));
    return fused32(p, r * r, r);
}
MATH double expm1_reduced_f64(double c, int64_t *n)
{
    double t = fused64(c, 1.4426950408889634, ROUND64), k = t - ROUND64;
    double r = fused64(k, -1.90821492927058770002e-10, fused64(k, -6.93147180369123816490e-01, c)), s = r * r;
    double p = r * fused64(fused64(1.26177193074810590878e-4, s, 3.02994407707441961300e-2), s, 9.99999999999999999910e-1);
    double q = fused64(fused64(fused64(3.00198505138664455042e-6, s, 2.52448340349684104192e-3), s, 2.27265548208155028766e-1),
                       s, 2.0);
    *n = (int64_t)(bits64(t) - bits64(ROUND64));
    return 2 * p / (q - p);
}
/* The power of two is applied as two factors, so that results may be subnormal. NaN falls through every comparison. The
 * lower limit is a variable: from a constant the compiler makes two paths with masks, where a maximum is one instruction. */
extern const float lc_exp_low __attribute__((visibility("hidden"))); /* -104: cpu.c */
MATH float         exp_limited_f32(float c)
{
    int32_t n;
    float   p = 1.f + expm1_reduced_f32(c, &n);
    int32_t half = n >> 1;
    return p * as_f32((uint32_t)(half + 127) << 23) * as_f32((uint32_t)(n - half + 127) << 23);
}
MATH float exp_f32(float x)
{
    float c = x < lc_exp_low ? lc_exp_low : x;
    return exp_limited_f32(c > 89.f ? 89.f : c);
}
MATH float  exp_below_f32(float x) /* for x up to 0 */ { return exp_limited_f32(x < lc_exp_low ? lc_exp_low : x); }
MATH double exp_f64(double x)
{
    int64_t n;
    double  c = x < -746. ? -746. : x > 710. ? 710. : x, p = 1 + expm1_reduced_f64(c, &n);
    int64_t half = (int64_t)((int32_t)n >> 1);
    return p * as_f64((uint64_t)(half + 1023) << 52) * as_f64((uint64_t)(n - half + 1023) << 52);
}
MATH float tanh_f32(float x)
{
    int32_t n;
    float   a = __builtin_fabsf(x), c = a > 10.f ? 20.f : 2 * a, p = expm1_reduced_f32(c, &n);
    float   s = as_f32((uint32_t)(n + 127) << 23), t = fused32(p, s, s - 1);
#ifdef __FMA__
    return __builtin_copysignf(t / (t + 2), x);
#else /* t is less exact: what t + 2 loses is given back, or the error reaches 2.3 ulp */
    float d = t + 2, lost = t - (d - 2), r = t / d;
    return __builtin_copysignf(r - r * (lost / d), x);
#endif
}
MATH double tanh_f64(double x)
{
    int64_t n;
    double  a = __builtin_fabs(x), c = a > 22. ? 44. : 2 * a, p = expm1_reduced_f64(c, &n);
    double  s = as_f64((uint64_t)(n + 1023) << 52), t = fused64(p, s, s - 1);
    return __builtin_copysign(t / (t + 2), x);
}

/* By exp(-|x|), which is at most 1: 1 + exp(-x) for a negative x would round twice. */
MATH float sigmoid_f32(float x)
{
    float z = exp_below_f32(-__builtin_fabsf(x));
    return (x < 0 ? z : 1.f) / (1.f + z);
}
MATH double sigmoid_f64(double x)
{
    double z = exp_f64(-__builtin_fabs(x));
    return (x < 0 ? z : 1.) / (1. + z);
}

/* e ln 2 + log(1 + f), with 1 + f between sqrt(1/2) and sqrt(2). */
MATH float log_reduced_f32(float e, float f)
{
    float z = f * f, p = fused32(fused32(7.0376836292e-2f, f, -1.1514610310e-1f), f, 1.1676998740e-1f);
    p = fused32(fused32(fused32(p, f, -1.2420140846e-1f), f, 1.4249322787e-1f), f, -1.6668057665e-1f);
    p = fused32(fused32(fused32(p, f, 2.0000714765e-1f), f, -2.4999993993e-1f), f, 3.3333331174e-1f);
    float y = fused32(e, -2.12194440e-4f, p * f * z);
    return fused32(e, 0.693359375f, f + fused32(-0.5f, z, y));
}
MATH double log_reduced_f64(double e, double f)
{
    double s = f / (2 + f), z = s * s, h = 0.5 * f * f;
    double p = fused64(fused64(1.479819860511658591e-01, z, 1.531383769920937332e-01), z, 1.818357216161805012e-01);
    p = fused64(fused64(p, z, 2.222219843214978396e-01), z, 2.857142874366239149e-01);
    p = z * fused64(fused64(p, z, 3.999999999940941908e-01), z, 6.666666666666735130e-01);
    return e * 6.93147180369123816490e-01 - ((h - (s * (h + p) + e * 1.90821492927058770002e-10)) - f);
}
/* x = 2^e * m with m between sqrt(1/2) and sqrt(2). */
MATH float log_f32(float x)
{
    bool     tiny = x < 0x1p-126f;
    uint32_t u = bits32(tiny ? x * 0x1p23f : x) - 0x3f3504f3u;
    float    e = (float)((int32_t)u >> 23) - (tiny ? 23.f : 0.f);
    float    y = log_reduced_f32(e, as_f32((u & 0x7fffff) + 0x3f3504f3u) - 1);
    y = x == (float)INFINITY ? x : y;
    return x > 0 ? y : x == 0 ? -(float)INFINITY : (float)NAN;
}
MATH double log_f64(double x)
{
    bool     tiny = x < 0x1p-1022;
    uint64_t u = bits64(tiny ? x * 0x1p52 : x) - 0x3fe6a09e667f3bcdu;
    int32_t  k = (int32_t)(u >> 32) >> 20;
    double e = (double)k - (tiny ? 52. : 0.), y = log_reduced_f64(e, as_f64((u & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1);
    y = x == (double)INFINITY ? x : y;
    return x > 0 ? y : x == 0 ? -(double)INFINITY : (double)NAN;
}

/* x = k pi/2 + r. pi/2 is split into three parts: with the fused multiply-add x - k times the first is exact, and the rest
 * rounds once; without it, the same in double. loops.isa.c calls the library for arguments from FAR on. */
#define FAR 0x1p20f
#ifdef __FMA__
#define QUARTERS_F32(x)                                                                                                        \
    float    t = fused32(x, 0.636619772f, ROUND32), k = t - ROUND32;                                                           \
    uint32_t q = bits32(t);                                                                                                    \
    float    r = fused32(k, 1.71512449e-15f, fused32(k, 4.37113883e-8f, fused32(k, -1.57079637f, x)));
#else
#define QUARTERS_F32(x)                                                                                                        \
    double   t = (double)(x)*0.63661977236758134 + ROUND64, k = t - ROUND64;                                                   \
    uint32_t q = (uint32_t)bits64(t);                                                                                          \
    float    r = (float)(((double)(x)-k * 1.57079637050628662109375) + k * 4.37113900018624283e-8);
#endif
#define REDUCED_F32(x) /* q: the quadrant; s and c: sine and cosine of r */                                                    \
    QUARTERS_F32(x)                                                                                                            \
    float z = r * r, s = fused32(fused32(-1.9515295891e-4f, z, 8.3321608736e-3f), z, -1.6666654611e-1f);                       \
    float c = fused32(fused32(2.443315711809948e-5f, z, -1.388731625493765e-3f), z, 4.166664568298827e-2f);                    \
    s = fused32(s * z, r, r);                                                                                                  \
    c = fused32(c * z, z, fused32(-0.5f, z, 1.f));
MATH float sin_f32(float x)
{
    REDUCED_F32(x)
    float y = q & 1 ? c : s;
    y = q & 2 ? -y : y;
    return x == 0 ? x : y;
}
MATH float cos_f32(float x)
{
    REDUCED_F32(x)
    float y = q & 1 ? s : c;
    return (q + 1) & 2 ? -y : y;
}

#include "vector_math.h"

/* Complex products and quotients as in PyTorch: the product without C99's recovery of infinities, the quotient scaled by the
 * larger part of the divisor. */
#define COMPLEX_MATH(R, C, sfx, abs)                                                                                           \
    MATH C complex_##sfx(R re, R im)                                                                                           \
    {                                                                                                                          \
        return (union {                                                                                                        \
                   R part[2];                                                                                                  \
                   C c;                                                                                                        \
               }){                                                                                                             \
            { re, im }                                                                                                         \
        }.c;                                                                                                                   \
    }                                                                                                                          \
    MATH C mul_##sfx(C x, C y)                                                                                                 \
    {                                                                                                                          \
        R a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y;                                                      \
        return complex_##sfx(a * c - b * d, a * d + b * c);                                                                    \
    }                                                                                                                          \
    MATH C div_##sfx(C x, C y)                                                                                                 \
    {                                                                                                                          \
        R    a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y;                                                   \
        bool swap = abs(c) < abs(d);                                                                                           \
        R    big = swap ? d : c, small = swap ? c : d, rat = big == 0 ? 0 : small / big, scl = 1 / (big + small * rat);        \
        R    re = swap ? a * rat + b : a + b * rat, im = swap ? b * rat - a : b - a * rat;                                     \
        return complex_##sfx(re * scl, im * scl);                                                                              \
    }
COMPLEX_MATH(float, lc_c64, c64, __builtin_fabsf)
COMPLEX_MATH(double, lc_c128, c128, __builtin_fabs)

/* The divisor is not zero (NONZERO); the lowest value over -1 wraps instead of trapping. */
MATH int64_t trunc_div_i64(int64_t x, int64_t y) { return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y; }
MATH int64_t fmod_i64(int64_t x, int64_t y) { return y == -1 ? 0 : x % y; }
#define FN MATH
#include "../../math/shared.h"
#define WHOLE_MATH(dt)                                                                                                         \
    MATH lc_##dt max_##dt(lc_##dt x, lc_##dt y) { return x > y ? x : y; }                                                      \
    MATH lc_##dt min_##dt(lc_##dt x, lc_##dt y) { return x < y ? x : y; }                                                      \
    MATH lc_##dt clamp_##dt(lc_##dt x, lc_##dt low, lc_##dt high) { return min_##dt(max_##dt(x, low), high); }
WHOLE_MATH(u8)
WHOLE_MATH(i8)
WHOLE_MATH(i16)
WHOLE_MATH(i32)
WHOLE_MATH(i64)

/* gcd and lcm of narrow types compute in 32 bits. */
#define INT     int32_t
#define UINT    uint32_t
#define NAME(f) f##_i32
#include "../../math/divisors.inc.c"
#define INT     int64_t
#define UINT    uint64_t
#define NAME(f) f##_i64
#include "../../math/divisors.inc.c"

#define BY_TYPE(x, f32, f64, c64, c128)  _Generic((x), float : f32, double : f64, lc_c64 : c64, lc_c128 : c128)
#define BY_REAL_TYPE(x, f32, f64, whole) _Generic((x), float : f32, double : f64, default : whole)
#define m_abs(x)                         BY_TYPE(x, __builtin_fabsf, __builtin_fabs, cabsf, cabs)(x)
#define m_sqrt(x)                        BY_TYPE(x, sqrtf, sqrt, csqrtf, csqrt)(x)
#define m_exp(x)                         BY_TYPE(x, exp_f32, exp_f64, cexpf, cexp)(x)
#define m_log(x)                         BY_TYPE(x, log_f32, log_f64, clogf, clog)(x)
#define m_sin(x)                         BY_TYPE(x, sin_f32, sin_f64, csinf, csin)(x)
#define m_cos(x)                         BY_TYPE(x, cos_f32, cos_f64, ccosf, ccos)(x)
#define m_tan(x)                         BY_TYPE(x, tan_f32, tan_f64, ctanf, ctan)(x)
#define m_sinh(x)                        BY_TYPE(x, sinh_f32, sinh_f64, csinhf, csinh)(x)
#define m_cosh(x)                        BY_TYPE(x, cosh_f32, cosh_f64, ccoshf, ccosh)(x)
#define m_tanh(x)                        BY_TYPE(x, tanh_f32, tanh_f64, ctanhf, ctanh)(x)
#define m_sigmoid(x)                     BY_REAL_TYPE(x, sigmoid_f32, sigmoid_f64, sigmoid_f64)(x)
#define m_exp2(x)                        BY_TYPE(x, exp2_f32, exp2_f64, exp2_c64, exp2_c128)(x)
#define m_expm1(x)                       BY_TYPE(x, expm1_f32, expm1_f64, expm1_c64, expm1_c128)(x)
#define m_log1p(x)                       BY_TYPE(x, log1p_f32, log1p_f64, log1p_c64, log1p_c128)(x)
#define m_log2(x)                        BY_TYPE(x, log2_f32, log2_f64, log2_c64, log2_c128)(x)
#define m_log10(x)                       BY_TYPE(x, log10_f32, log10_f64, log10_c64, log10_c128)(x)
#define m_erf(x)                         BY_REAL_TYPE(x, erf_f32, erf_f64, erf_f64)(x)
#define m_erfc(x)                        BY_REAL_TYPE(x, erfc_f32, erfc_f64, erfc_f64)(x)
#define m_acos(x)                        BY_TYPE(x, acos_f32, acos_f64, cacosf, cacos)(x)
#define m_asin(x)                        BY_TYPE(x, asin_f32, asin_f64, casinf, casin)(x)
#define m_atan(x)                        BY_TYPE(x, atan_f32, atan_f64, catanf, catan)(x)
#define m_acosh(x)                       BY_TYPE(x, acosh_f32, acosh_f64, cacoshf, cacosh)(x)
#define m_asinh(x)                       BY_TYPE(x, asinh_f32, asinh_f64, casinhf, casinh)(x)
#define m_atanh(x)                       BY_TYPE(x, atanh_f32, atanh_f64, catanhf, catanh)(x)
#define m_atan2(x, y)                    BY_REAL_TYPE(x, atan2_f32, atan2_f64, atan2_f64)(x, y)
#define m_hypot(x, y)                    BY_REAL_TYPE(x, hypot_f32, hypot_f64, hypot_f64)(x, y)
#define m_copysign(x, y)                 BY_REAL_TYPE(x, __builtin_copysignf, __builtin_copysign, copysign)(x, y)
#define m_nextafter(x, y)                BY_REAL_TYPE(x, nextafter_f32, nextafter_f64, nextafter_f64)(x, y)
#define m_ldexp(x, y)                    BY_REAL_TYPE(x, ldexp_f32, ldexp_f64, ldexp_f64)(x, y)
#define m_lgamma(x)                      BY_REAL_TYPE(x, lgamma_f32, lgamma_f64, lgamma_f64)(x)
#define m_trigamma(x)                    BY_REAL_TYPE(x, trigamma_f32, trigamma_f64, trigamma_f64)(x)
#define m_floor(x)                       BY_REAL_TYPE(x, floorf, floor, floor)(x)
#define m_ceil(x)                        BY_REAL_TYPE(x, ceilf, ceil, ceil)(x)
#define m_rint(x)                        BY_REAL_TYPE(x, rintf, rint, rint)(x)
#define m_trunc(x)                       BY_REAL_TYPE(x, truncf, trunc, trunc)(x)
#define m_conj(x)                        _Generic((x), lc_c64 : conjf, lc_c128 : conj)(x)
#define m_real(x)                        (__real__(x))
#define m_imag(x)                        (__imag__(x))
#define m_mul(x, y)                      _Generic((x), lc_c64 : mul_c64, lc_c128 : mul_c128)(x, y)
#define m_div(x, y)                      _Generic((y), lc_c64 : div_c64, lc_c128 : div_c128)(x, y)
#define m_infinity(x)                    ((double)INFINITY)
#define m_signbit(x)                     BY_REAL_TYPE(x, sign_f32, sign_f64, sign_i64)(x)
#define m_pow(x, y)                      _Generic((x), float : pow_f32, double : pow_f64, lc_c64 : cpowf, lc_c128 : cpow, default : pow_i64)(x, y)
#define m_div_trunc(x, y)                trunc_div_i64(x, y)
#define m_floor_divide(x, y)             BY_REAL_TYPE(x, floor_divide_f32, floor_divide_f64, floor_divide_i64)(x, y)
#define m_remainder(x, y)                BY_REAL_TYPE(x, remainder_f32, remainder_f64, remainder_i64)(x, y)
#define m_fmod(x, y)                     BY_REAL_TYPE(x, fmod_f32, fmod_f64, fmod_i64)(x, y)
// clang-format off
#define BY_ORDERED_TYPE(x, f)                                                                                                  \
    _Generic((x), float: f##_f32, double: f##_f64, lc_u8: f##_u8, lc_i8: f##_i8, lc_i16: f##_i16, lc_i32: f##_i32, lc_i64: f##_i64)
// clang-format on
#define m_max(x, y)      BY_ORDERED_TYPE(x, max)(x, y)
#define m_min(x, y)      BY_ORDERED_TYPE(x, min)(x, y)
#define m_clamp(x, y, z) BY_ORDERED_TYPE(x, clamp)(x, y, z)
#define m_gcd(x, y)      _Generic((x), lc_i64 : gcd_i64, default : gcd_i32)(x, y)
#define m_lcm(x, y)      _Generic((x), lc_i64 : lcm_i64, default : lcm_i32)(x, y)
MATH bool sign_i64(int64_t x) { return x < 0; }
/* Remainders twice: those that vectors can compute (vector_math.h), and the library's for the others. */
#define R          float
#define NAME(f)    f##_f32
#define FMOD(x, y) fmod_f32(x, y)
#include "../../math/remainder.inc.c"
#define R          double
#define NAME(f)    f##_f64
#define FMOD(x, y) fmod_f64(x, y)
#include "../../math/remainder.inc.c"
#define R          float
#define NAME(f)    f##_far_f32
#define FMOD(x, y) fmodf(x, y)
#include "../../math/remainder.inc.c"
#define R          double
#define NAME(f)    f##_far_f64
#define FMOD(x, y) fmod(x, y)
#include "../../math/remainder.inc.c"

#undef FN
#define FN static inline UNUSED
#include "../../math/special.h"
#undef FN

/* Complex: through real functions where C has none. */
#define COMPLEX_BUILT(R, C, sfx, f)                                                                                            \
    MATH C scaled_##sfx(C z, R by) { return complex_##sfx(__real__ z * by, __imag__ z * by); }                                 \
    MATH C exp2_##sfx(C z) { return m_exp(scaled_##sfx(z, (R)0.69314718055994530942)); }                                       \
    MATH C log2_##sfx(C z) { return scaled_##sfx(m_log(z), (R)1.44269504088896340736); }                                       \
    MATH C log10_##sfx(C z) { return scaled_##sfx(m_log(z), (R)0.43429448190325182765); }                                      \
    MATH C expm1_##sfx(C z)                                                                                                    \
    {                                                                                                                          \
        R a = __real__ z, b = __imag__ z, half = sin##f(b / 2), e = expm1##f(a);                                               \
        if (b == 0) return complex_##sfx(e, b);                                                                                \
        return complex_##sfx(e * cos##f(b) - 2 * half * half, (e + 1) * sin##f(b));                                            \
    }                                                                                                                          \
    MATH C log1p_##sfx(C z)                                                                                                    \
    {                                                                                                                          \
        R a = __real__ z, b = __imag__ z, size = hypot##f(a, b);                                                               \
        if (!(size < (R)0.5)) return m_log((C)(z + 1));                                                                        \
        return complex_##sfx(log1p##f(a * (2 + a) + b * b) / 2, atan2##f(b, 1 + a));                                           \
    }                                                                                                                          \
    MATH C sinc_##sfx(C z)                                                                                                     \
    {                                                                                                                          \
        C pi_z = scaled_##sfx(z, (R)3.14159265358979323846);                                                                   \
        return z == 0 ? (C)1 : div_##sfx(m_sin(pi_z), pi_z);                                                                   \
    }                                                                                                                          \
    MATH C silu_backward_##sfx(C g, C z)                                                                                       \
    {                                                                                                                          \
        C s = div_##sfx(1, 1 + m_exp(-z));                                                                                     \
        return mul_##sfx(g, m_conj(mul_##sfx(s, 1 + mul_##sfx(z, 1 - s))));                                                    \
    }                                                                                                                          \
    MATH C logaddexp_##sfx(C x, C y) /* by the one with the larger real part */                                                \
    {                                                                                                                          \
        if (y != y || x != x) return complex_##sfx((R)NAN, (R)NAN);                                                            \
        C low = __real__ x < __real__ y ? x : y, high = __real__ x < __real__ y ? y : x;                                       \
        if (__real__ low == __real__ high && isinf(__real__ low))                                                              \
            return __real__ low < 0 ? low : m_log(m_exp(low) + m_exp(high));                                                   \
        return high + log1p_##sfx(m_exp(low - high));                                                                          \
    }
/* The library path of sinc's far loop. */
MATH float  sinc_far_f32(float x) { return sinf(x * (float)3.14159265358979323846) / (x * (float)3.14159265358979323846); }
MATH double sinc_far_f64(double x) { return sin(x * 3.14159265358979323846) / (x * 3.14159265358979323846); }
COMPLEX_BUILT(float, lc_c64, c64, f)
COMPLEX_BUILT(double, lc_c128, c128, )

/* Functions built from those above; a macro each, because they choose by type. */
MATH double lgamma_f64(double x) { return lgamma_r(x, &(int){ 0 }); }
MATH double digamma_f64(double x) { return special_digamma(x); }
/* The next float16 or bfloat16, for numbers that are exactly representable. */
#define HALF_MATH(h)                                                                                                           \
    MATH float nextafter_##h(float x, float y)                                                                                 \
    {                                                                                                                          \
        if (x != x || y != y) return x + y;                                                                                    \
        return x == y ? y : lc_##h##_to_f32(next_half(lc_f32_to_##h(x), y > x));                                               \
    }
HALF_MATH(f16)
HALF_MATH(bf16)
#define m_nextafter_f16(x, y)  nextafter_f16((float)(x), (float)(y))
#define m_nextafter_bf16(x, y) nextafter_bf16((float)(x), (float)(y))

#define FN              MATH
#define UNORDERED(x, y) __builtin_isunordered(x, y)
#define R               float
#define NAME(f)         f##_f32
#include "../../math/real.inc.c"
#define R       double
#define NAME(f) f##_f64
#include "../../math/real.inc.c"
#include "../../math/bessel.h"
#undef FN
#define R          float
#define U          uint32_t
#define NAME(f)    f##_f32
#define BITS(x)    bits32(x)
#define AS(u)      as_f32(u)
#define ABS(x)     __builtin_fabsf(x)
#define MANTISSA   24 /* bits, including the implicit one */
#define BIAS       127
#define MIN_NORMAL 0x1p-126f
#include "frexp.inc.c"
#define R          double
#define U          uint64_t
#define NAME(f)    f##_f64
#define BITS(x)    bits64(x)
#define AS(u)      as_f64(u)
#define ABS(x)     __builtin_fabs(x)
#define MANTISSA   53
#define BIAS       1023
#define MIN_NORMAL 0x1p-1022
#include "frexp.inc.c"
#define BY_FLOAT(x, f)        BY_REAL_TYPE(x, f##_f32, f##_f64, f##_f64)
#define m_mantissa(x)         BY_FLOAT(x, mantissa)(x)
#define m_exponent(x)         BY_FLOAT(x, exponent)(x)
#define m_fmax(x, y)          BY_FLOAT(x, fmax)(x, y)
#define m_fmin(x, y)          BY_FLOAT(x, fmin)(x, y)
#define m_softplus(x)         BY_FLOAT(x, softplus)(x)
#define m_logaddexp2(x, y)    BY_FLOAT(x, logaddexp2)(x, y)
#define m_xlogy(x, y)         BY_FLOAT(x, xlogy)(x, y)
#define m_xlog1py(x, y)       BY_FLOAT(x, xlog1py)(x, y)
#define m_selu(x)             BY_FLOAT(x, selu)(x)
#define m_silu(x)             BY_FLOAT(x, silu)(x)
#define m_gelu(x)             BY_FLOAT(x, gelu)(x)
#define m_mish(x)             BY_FLOAT(x, mish)(x)
#define m_mish_slope(x)       BY_FLOAT(x, mish_slope)(x)
#define m_gelu_slope(x)       BY_FLOAT(x, gelu_slope)(x)
#define m_gelu_tanh_slope(x)  BY_FLOAT(x, gelu_tanh_slope)(x)
#define m_digamma(x)          BY_FLOAT(x, digamma)(x)
#define m_erfinv(x)           BY_FLOAT(x, erfinv)(x)
#define m_sin_any(x)          BY_REAL_TYPE(x, sinf, sin, sin)(x) /* any size: for rows without a far loop */
#define m_cos_any(x)          BY_REAL_TYPE(x, cosf, cos, cos)(x)
#define m_silu_backward(x, y) BY_TYPE(x, silu_backward_f32, silu_backward_f64, silu_backward_c64, silu_backward_c128)(x, y)
#define m_logaddexp(x, y)     BY_TYPE(x, logaddexp_f32, logaddexp_f64, logaddexp_c64, logaddexp_c128)(x, y)
#define m_sinc(x)             BY_TYPE(x, sinc_f32, sinc_f64, sinc_c64, sinc_c128)(x)

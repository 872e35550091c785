/* The m_* functions of scalar.def in CUDA C++: the library's where it has them, formulas shared with the CPU (backend/math)
 * elsewhere. */
#include "types.cuh"
#define INFINITY __int_as_float(0x7f800000)
#define NAN      __int_as_float(0x7fffffff)
#define FN       __device__ inline

#define m_abs         fabs
#define m_exp         exp
#define m_exp2        exp2
#define m_expm1       expm1
#define m_log         log
#define m_log1p       log1p
#define m_log2        log2
#define m_log10       log10
#define m_sin         sin
#define m_cos         cos
#define m_tan         tan
#define m_sin_any     sin
#define m_cos_any     cos
#define m_sinh        sinh
#define m_cosh        cosh
#define m_tanh        tanh
#define m_acos        acos
#define m_asin        asin
#define m_atan        atan
#define m_acosh       acosh
#define m_asinh       asinh
#define m_atanh       atanh
#define m_atan2       atan2
#define m_hypot       hypot
#define m_sqrt        sqrt
#define m_floor       floor
#define m_ceil        ceil
#define m_rint        rint
#define m_trunc       trunc
#define m_erf         erf
#define m_erfc        erfc
#define m_erfinv      erfinv
#define m_lgamma      lgamma
#define m_copysign    copysign
#define m_nextafter   nextafter
#define m_fmax        fmax
#define m_fmin        fmin
#define m_infinity(x) INFINITY

/* A divisor of zero gives the result of PyTorch's kernels; the lowest value over -1 wraps. */
FN int64_t trunc_div_i64(int64_t x, int64_t y) { return y == 0 ? -1 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y; }
FN int64_t fmod_i64(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }
#include "../../math/shared.h"
#include "../../math/special.h"
FN double                               POLY64(double, double p) { return p; } /* Horner's form */
template <class... C> __device__ double POLY64(double z, double p, double next, C... rest)
{
    return POLY64(z, fma(p, z, next), rest...);
}
#define m_exp_single exp
#include "../../math/bessel.h"
#define m_div_trunc(x, y) (T) trunc_div_i64(x, y)
#define m_digamma         special_digamma
#define m_trigamma(x)     trigamma(x, sizeof(T) == 4)

/* Overloads: the type of the arguments chooses. Narrow integers are promoted. */
FN float   m_fmod(float x, float y) { return fmodf(x, y); }
FN double  m_fmod(double x, double y) { return fmod(x, y); }
FN int64_t m_fmod(int64_t x, int64_t y) { return fmod_i64(x, y); }
FN i32     m_fmod(i32 x, i32 y) { return (i32)fmod_i64(x, y); }
FN int64_t m_remainder(int64_t x, int64_t y) { return remainder_i64(x, y); }
FN i32     m_remainder(i32 x, i32 y) { return (i32)remainder_i64(x, y); }
FN int64_t m_floor_divide(int64_t x, int64_t y) { return floor_divide_i64(x, y); }
FN i32     m_floor_divide(i32 x, i32 y) { return (i32)floor_divide_i64(x, y); }
#define NAME(f)    m_##f
#define FMOD(x, y) fmodf(x, y)
#define R          float
#include "../../math/remainder.inc.c"
#define NAME(f)    m_##f
#define FMOD(x, y) fmod(x, y)
#define R          double
#include "../../math/remainder.inc.c"
#define NAME(f) m_##f
#define INT     i32
#define UINT    u32
#include "../../math/divisors.inc.c"
#define NAME(f) m_##f
#define INT     i64
#define UINT    u64
#include "../../math/divisors.inc.c"

FN float m_sigmoid(float x)
{
    float z = expf(-fabsf(x));
    return (x < 0 ? z : 1.f) / (1.f + z);
}
FN double m_sigmoid(double x)
{
    double z = exp(-fabs(x));
    return (x < 0 ? z : 1.) / (1. + z);
}
FN bool m_is_nan(float x) { return x != x; }
FN bool m_is_nan(double x) { return x != x; }
#define UNORDERED(x, y) ((x) != (x) || (y) != (y))
#define NAME(f)         m_##f
#define R               float
#include "../../math/real.inc.c"
#define NAME(f) m_##f
#define R       double
#include "../../math/real.inc.c"
template <class T> __device__ T m_max(T x, T y) { return x > y ? x : y; } /* integers: reals have their own */
template <class T> __device__ T m_min(T x, T y) { return x < y ? x : y; }
template <class T> __device__ T m_clamp(T x, T low, T high) { return m_min(m_max(x, low), high); }

/* Functions for which the library beats the CPU's vector code. */
template <class T> __device__ T    m_pow(T x, T y) { return (T)pow_i64(x, y); } /* exact, and wraps */
FN float                           m_pow(float x, float y) { return powf(x, y); }
FN double                          m_pow(double x, double y) { return pow(x, y); }
template <class T> __device__ bool m_signbit(T x) { return copysign(1.0, (double)x) < 0; }
template <class T> __device__ T    m_ldexp(T x, T y) { return ldexp(x, (int)fmin(fmax(y, (T)-5000), (T)5000)); }
template <class T> __device__ T    m_mantissa(T x)
{
    int e;
    return frexp(x, &e);
}
template <class T> __device__ T m_exponent(T x)
{
    int e = 0;
    if (isfinite(x)) frexp(x, &e);
    return (T)e;
}
template <class H> __device__ float next_of(float x, float y)
{
    if (x != x || y != y) return x + y;
    return x == y ? y : value(H{ next_half(made<H>::of(x).v, y > x) });
}
#define m_nextafter_f16(x, y)  next_of<f16>(x, y)
#define m_nextafter_bf16(x, y) next_of<bf16>(x, y)
template <class T> __device__ T m_normal_cdf(T x) { return (T)0.5 * erfc(x * (T)-0.70710678118654752440); }
#define m_gelu(x) ((x)*m_normal_cdf(x))
#define m_silu(x) ((x)*m_sigmoid(x))
template <class T> __device__ T m_gelu_slope(T x)
{
    return (T)0.5 * (1 + erf(x * (T)0.70710678118654752440)) + x * (T)0.39894228040143267794 * exp((T)-0.5 * x * x);
}
/* For results of 16 bits: the tail of the normal distribution as exp(-x^2 / 2) times a polynomial in 1 / (1 + c |x|), fitted to a
 * relative error of 5e-6. erfc takes three times as long. */
FN float half_bell(float x) { return __expf(-0.5f * x * x); }
FN float half_normal_cdf(float x, float bell)
{
    float t = __fdividef(1.f, fmaf(0.31f, fabsf(x), 1.f)), s = -0.0739313948f;
    s = fmaf(s, t, 0.180455942f), s = fmaf(s, t, 0.015739976f), s = fmaf(s, t, 0.133431215f);
    s = fmaf(s, t, 0.120441275f), s = fmaf(s, t, 0.123860659f) * t * bell;
    return x < 0 ? s : 1.f - s;
}
FN float half_gelu(float x) { return x * half_normal_cdf(x, half_bell(x)); }
FN float half_gelu_slope(float x)
{
    float bell = half_bell(x);
    return half_normal_cdf(x, bell) + x * 0.39894228f * bell;
}

enum { DIMS = 24, OPERANDS = 5 };

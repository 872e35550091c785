/* More functions that the compiler can vectorise, by the rules of scalar_math.h, which includes this file: no branch, no
 * table, no library call. Polynomials have their highest coefficient first; those without a name are this project's own
 * fits, whose relative error over the interval is below half a unit in the last place.
 *
 * Errors: float32 at most 2 ulp, float64 at most 4, unless a comment says otherwise. */
#pragma once

/* Horner's form: POLY32(z, c2, c1, c0) is (c2 z + c1) z + c0. Macros, because an array of coefficients stays in memory. */
#define HORNER_2(F, z, a, b)       F(a, z, b)
#define HORNER_3(F, z, a, b, ...)  HORNER_2(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_4(F, z, a, b, ...)  HORNER_3(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_5(F, z, a, b, ...)  HORNER_4(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_6(F, z, a, b, ...)  HORNER_5(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_7(F, z, a, b, ...)  HORNER_6(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_8(F, z, a, b, ...)  HORNER_7(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_9(F, z, a, b, ...)  HORNER_8(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_10(F, z, a, b, ...) HORNER_9(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_11(F, z, a, b, ...) HORNER_10(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_12(F, z, a, b, ...) HORNER_11(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_13(F, z, a, b, ...) HORNER_12(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_14(F, z, a, b, ...) HORNER_13(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_15(F, z, a, b, ...) HORNER_14(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_16(F, z, a, b, ...) HORNER_15(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_17(F, z, a, b, ...) HORNER_16(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_18(F, z, a, b, ...) HORNER_17(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_19(F, z, a, b, ...) HORNER_18(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_20(F, z, a, b, ...) HORNER_19(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_21(F, z, a, b, ...) HORNER_20(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_22(F, z, a, b, ...) HORNER_21(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_23(F, z, a, b, ...) HORNER_22(F, z, F(a, z, b), __VA_ARGS__)
#define HORNER_24(F, z, a, b, ...) HORNER_23(F, z, F(a, z, b), __VA_ARGS__)
#define COUNT_(a24, a23, a22, a21, a20, a19, a18, a17, a16, a15, a14, a13, a12, a11, a10, a9, a8, a7, a6, a5, a4, a3, a2, a1,  \
               n, ...)                                                                                                         \
    n
#define COUNT(...)     COUNT_(__VA_ARGS__, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)
#define PASTED_(a, b)  a##b
#define PASTED(a, b)   PASTED_(a, b)
#define POLY32(z, ...) PASTED(HORNER_, COUNT(__VA_ARGS__))(fused32, z, __VA_ARGS__)
#define POLY64(z, ...) PASTED(HORNER_, COUNT(__VA_ARGS__))(fused64, z, __VA_ARGS__)
#define ABS32          __builtin_fabsf
#define ABS64          __builtin_fabs
#define SIGN32         __builtin_copysignf
#define SIGN64         __builtin_copysign
#define POWER32(n)     as_f32((uint32_t)((n) + 127) << 23) /* 2^n */
#define POWER64(n)     as_f64((uint64_t)((n) + 1023) << 52)

/* ---- exponentials ---- */

/* (exp(x) - 1) / 2 for |x| up to 89.5 or 710.5. By a quarter, so that the power of two does not overflow before the result
 * does. */
MATH float half_expm1_f32(float x)
{
    int32_t n;
    float   p = expm1_reduced_f32(x, &n), s = POWER32(n - 2);
    return 2 * fused32(p, s, s - 0.25f);
}
MATH double half_expm1_f64(double x)
{
    int64_t n;
    double  p = expm1_reduced_f64(x, &n), s = POWER64(n - 2);
    return 2 * fused64(p, s, s - 0.25);
}
MATH float expm1_f32(float x)
{
    float c = x < -20.f ? -20.f : x > 89.f ? 89.f : x, h = half_expm1_f32(c);
    return ABS32(x) < 1e-30f ? x : 2 * h;
}
MATH double expm1_f64(double x)
{
    double c = x < -40. ? -40. : x > 710. ? 710. : x, h = half_expm1_f64(c);
    return ABS64(x) < 1e-290 ? x : 2 * h;
}
/* sinh x = (e - 1/e) / 2 with e = exp|x|, through h = (e - 1) / 2: h + h / (2 h + 1). */
MATH float sinh_f32(float x)
{
    float a = ABS32(x), h = half_expm1_f32(a > 89.5f ? 89.5f : a), r = a > 20.f ? h : h + h / (2 * h + 1);
    return a < 1e-30f ? x : SIGN32(r, x);
}
MATH double sinh_f64(double x)
{
    double a = ABS64(x), h = half_expm1_f64(a > 710.5 ? 710.5 : a), r = a > 40. ? h : h + h / (2 * h + 1);
    return a < 1e-290 ? x : SIGN64(r, x);
}
MATH float cosh_f32(float x)
{
    float e = half_expm1_f32(ABS32(x) > 89.5f ? 89.5f : ABS32(x)) + 0.5f;
    return e + 0.25f / e;
}
MATH double cosh_f64(double x)
{
    double e = half_expm1_f64(ABS64(x) > 710.5 ? 710.5 : ABS64(x)) + 0.5;
    return e + 0.25 / e;
}
/* To 3e-9, of |x| up to 700: for results in float32. */
MATH double exp_single(double x)
{
    double  t = x * 1.44269504088896340736, u = t + ROUND64, r = t - (u - ROUND64);
    int64_t n = (int64_t)(bits64(u) - bits64(ROUND64));
    return POLY64(r, 1.546144469856912927e-4, 0.001340042817761583765, 0.009618056678524637346, 0.05550327226670302011,
                  0.2402265092228875742, 0.6931472067028325856, 1.0) *
           POWER64(n);
}
#define m_exp_single exp_single
MATH float exp2_f32(float x)
{
    float   c = x < -151.f ? -151.f : x > 129.f ? 129.f : x, t = c + ROUND32, r = c - (t - ROUND32);
    int32_t n = (int32_t)(bits32(t) - bits32(ROUND32)), half = n >> 1;
    float   p = POLY32(r, 1.520191105e-05f, 1.546929102e-04f, 1.333392261e-03f, 9.618027254e-03f, 5.550410353e-02f,
                       2.402265120e-01f, 6.931471807e-01f);
    return fused32(p, r, 1.f) * POWER32(half) * POWER32(n - half);
}
MATH double exp2_f64(double x)
{
    int64_t m;
    double  c = x < -1080. ? -1080. : x > 1025. ? 1025. : x, t = c + ROUND64, r = c - (t - ROUND64);
    double  p = 1 + expm1_reduced_f64(r * 0.69314718055994530942, &m); /* m is 0: |r| is at most 1/2 */
    int64_t n = (int64_t)(bits64(t) - bits64(ROUND64)), half = (int64_t)((int32_t)n >> 1);
    return p * POWER64(half) * POWER64(n - half);
}

/* ---- logarithms ---- */

/* log(1 + x): the log of u = 1 + x rounded, whose part beyond the power of two is corrected by the rounding error. */
MATH float log1p_f32(float x)
{
    float    u = 1 + x, lost = (u - 1) - x;
    uint32_t b = bits32(u) - 0x3f3504f3u;
    int32_t  n = (int32_t)b >> 23;
    float f = as_f32((b & 0x7fffff) + 0x3f3504f3u) - 1, y = log_reduced_f32((float)n, f - lost * POWER32(n > 126 ? -127 : -n));
    y = ABS32(x) < 1e-8f ? x : u == (float)INFINITY ? u : y;
    return u > 0 ? y : u == 0 ? -(float)INFINITY : (float)NAN;
}
MATH double log1p_f64(double x)
{
    double   u = 1 + x, lost = (u - 1) - x;
    uint64_t b = bits64(u) - 0x3fe6a09e667f3bcdu;
    int32_t  n = (int32_t)(b >> 32) >> 20;
    double   f = as_f64((b & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1;
    double   y = log_reduced_f64((double)n, f - lost * POWER64((int64_t)(n > 1022 ? -1023 : -n)));
    y = ABS64(x) < 1e-17 ? x : u == (double)INFINITY ? u : y;
    return u > 0 ? y : u == 0 ? -(double)INFINITY : (double)NAN;
}
/* log2 and log10: the exponent separately, so that powers of two are exact. */
MATH float scaled_log_f32(float x, float per_unit, float high, float low)
{
    bool     tiny = x < 0x1p-126f;
    uint32_t u = bits32(tiny ? x * 0x1p23f : x) - 0x3f3504f3u;
    float    e = (float)((int32_t)u >> 23) - (tiny ? 23.f : 0.f), f = as_f32((u & 0x7fffff) + 0x3f3504f3u) - 1;
    float    y = fused32(e, high, fused32(e, low, log_reduced_f32(0, f) * per_unit));
    y = x == (float)INFINITY ? x : y;
    return x > 0 ? y : x == 0 ? -(float)INFINITY : (float)NAN;
}
MATH double scaled_log_f64(double x, double per_unit, double high, double low)
{
    bool     tiny = x < 0x1p-1022;
    uint64_t u = bits64(tiny ? x * 0x1p52 : x) - 0x3fe6a09e667f3bcdu;
    int32_t  k = (int32_t)(u >> 32) >> 20;
    double   e = (double)k - (tiny ? 52. : 0.), f = as_f64((u & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1;
    double   y = fused64(e, high, fused64(e, low, log_reduced_f64(0, f) * per_unit));
    y = x == (double)INFINITY ? x : y;
    return x > 0 ? y : x == 0 ? -(double)INFINITY : (double)NAN;
}
MATH float  log2_f32(float x) { return scaled_log_f32(x, 1.44269504f, 1.f, 0.f); }
MATH double log2_f64(double x) { return scaled_log_f64(x, 1.44269504088896340736, 1., 0.); }
MATH float  log10_f32(float x) { return scaled_log_f32(x, 0.434294482f, 0.301025390625f, 4.60503901e-6f); }
MATH double log10_f64(double x)
{
    return scaled_log_f64(x, 0.43429448190325182765, 3.01029995663611771306e-01, 3.69423907715893078616e-13);
}

/* Inverse hyperbolic functions by log1p; for large arguments by log, where a square would overflow. */
MATH float asinh_f32(float x)
{
    float a = ABS32(x), s = a * a, near = log1p_f32(a + s / (1 + sqrtf(1 + s))),
          y = a > 1e9f ? log_f32(a) + 0.693147181f : near;
    return SIGN32(y, x);
}
MATH double asinh_f64(double x)
{
    double a = ABS64(x), s = a * a, near = log1p_f64(a + s / (1 + sqrt(1 + s)));
    return SIGN64(a > 1e18 ? log_f64(a) + 0.69314718055994530942 : near, x);
}
MATH float acosh_f32(float x)
{
    float t = x - 1, near = log1p_f32(t + sqrtf(2 * t + t * t)), y = x > 1e9f ? log_f32(x) + 0.693147181f : near;
    return x < 1 ? (float)NAN : y;
}
MATH double acosh_f64(double x)
{
    double t = x - 1, near = log1p_f64(t + sqrt(2 * t + t * t)), y = x > 1e18 ? log_f64(x) + 0.69314718055994530942 : near;
    return x < 1 ? (double)NAN : y;
}
MATH float atanh_f32(float x)
{
    float a = ABS32(x);
    return SIGN32(0.5f * log1p_f32(2 * a / (1 - a)), x);
}
MATH double atanh_f64(double x)
{
    double a = ABS64(x);
    return SIGN64(0.5 * log1p_f64(2 * a / (1 - a)), x);
}

/* ---- inverse circular functions ---- */

/* atan(t) for t in [0, 1] */
MATH float atan_unit_f32(float t)
{
    float z = t * t;
    float p = POLY32(z, -1.793615957e-03f, 1.091458137e-02f, -3.117780347e-02f, 5.795755476e-02f, -8.403448332e-02f,
                     1.095218521e-01f, -1.426424160e-01f, 1.999854828e-01f, -3.333329909e-01f);
    return fused32(p * z, t, t);
}
MATH double atan_unit_f64(double t)
{
    double z = t * t;
    double p = POLY64(z, 0.0000180619546186121522, -0.0001999618937790138206, 0.001049603508496851507, -0.00349588597391630952,
                      0.008368931178450162136, -0.01553515247541417613, 0.02369673158004862201, -0.03127718906699638479,
                      0.03749486812535247112, -0.04260356632601652133, 0.04737749579527778972, -0.05257973334284110807,
                      0.05881506877793656067, -0.06666564699289104211, 0.07692298971033216917, -0.09090908590891934225,
                      0.111111110934908281, -0.1428571428538413154, 0.199999999999975322, -0.3333333333333333025);
    return fused64(p * z, t, t);
}
/* pi/2 and pi in two parts */
MATH float  from_right_f32(float r) { return (1.57079637f - r) - 4.37113883e-8f; }
MATH double from_right_f64(double r) { return (1.57079632679489655800 - r) + 6.12323399573676603587e-17; }
MATH float  from_back_f32(float r) { return (3.14159274f - r) - 8.74227766e-8f; }
MATH double from_back_f64(double r) { return (3.14159265358979311600 - r) + 1.22464679914735317723e-16; }
MATH float  atan_f32(float x)
{
    float a = ABS32(x), r = atan_unit_f32(a > 1 ? 1 / a : a);
    return SIGN32(a > 1 ? from_right_f32(r) : r, x);
}
MATH double atan_f64(double x)
{
    double a = ABS64(x), r = atan_unit_f64(a > 1 ? 1 / a : a);
    return SIGN64(a > 1 ? from_right_f64(r) : r, x);
}
#define ATAN2_MATH(R, sfx, ABS, SIGN, sign_of)                                                                                 \
    MATH R atan2_##sfx(R y, R x)                                                                                               \
    {                                                                                                                          \
        R    a = ABS(x), b = ABS(y);                                                                                           \
        bool steep = b > a;                                                                                                    \
        R    high = steep ? b : a, low = steep ? a : b, t = high == 0 || low == (R)INFINITY ? (R)(high != 0) : low / high;     \
        R    r = atan_unit_##sfx(t);                                                                                           \
        r = steep ? from_right_##sfx(r) : r;                                                                                   \
        r = sign_of(x) ? from_back_##sfx(r) : r;                                                                               \
        r = SIGN(r, y);                                                                                                        \
        return x != x || y != y ? x + y : r;                                                                                   \
    }
MATH bool sign_f32(float x) { return bits32(x) >> 31; }
MATH bool sign_f64(double x) { return bits64(x) >> 63; }
ATAN2_MATH(float, f32, ABS32, SIGN32, sign_f32)
ATAN2_MATH(double, f64, ABS64, SIGN64, sign_f64)

/* asin(s) for s in [0, 1/2], with z = s s; above that by asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)). */
MATH float asin_half_f32(float s, float z)
{
    float p = POLY32(z, 4.216609425e-02f, 2.417964799e-02f, 4.547034716e-02f, 7.495297891e-02f, 1.666675248e-01f);
    return fused32(p * z, s, s);
}
MATH double asin_half_f64(double s, double z)
{
    double p = POLY64(z, 0.02875785136742156471, -0.01485188707124720322, 0.01740087944269402244, 0.0054575067186403583,
                      0.01032281435018577929, 0.0114791774151849059, 0.0139712129735529333, 0.01735239272086997294,
                      0.02237217294214988787, 0.03038194413853124729, 0.04464285714635542978, 0.07499999999998432933,
                      0.1666666666666666783);
    return fused64(p * z, s, s);
}
#define ASIN_MATH(R, sfx, ABS, SIGN, sqrt)                                                                                     \
    MATH R asin_##sfx(R x)                                                                                                     \
    {                                                                                                                          \
        R    a = ABS(x);                                                                                                       \
        bool big = a > (R)0.5;                                                                                                 \
        R    z = big ? (R)0.5 * (1 - a) : a * a, r = asin_half_##sfx(big ? sqrt(z) : a, z);                                    \
        return SIGN(big ? from_right_##sfx(2 * r) : r, x);                                                                     \
    }                                                                                                                          \
    MATH R acos_##sfx(R x)                                                                                                     \
    {                                                                                                                          \
        R    a = ABS(x);                                                                                                       \
        bool big = a > (R)0.5;                                                                                                 \
        R    z = big ? (R)0.5 * (1 - a) : a * a, r = asin_half_##sfx(big ? sqrt(z) : a, z);                                    \
        R    outer = x < 0 ? from_back_##sfx(2 * r) : 2 * r, inner = from_right_##sfx(SIGN(r, x));                             \
        return big ? outer : inner;                                                                                            \
    }
ASIN_MATH(float, f32, ABS32, SIGN32, sqrtf)
ASIN_MATH(double, f64, ABS64, SIGN64, sqrt)

/* ---- circular functions ---- */

MATH float tan_f32(float x) /* 4 ulp */
{
    REDUCED_F32(x)
    float y = q & 1 ? -c / s : s / c;
    return x == 0 ? x : y;
}
/* float64: pi/2 in three parts, of which the first two times k are exact for |x| up to FAR64. Kernels of fdlibm. */
#define FAR64 0x1p20
#define REDUCED_F64(x)                                                                                                         \
    double   t = (x)*0.63661977236758134308 + ROUND64, k = t - ROUND64;                                                        \
    uint64_t q = bits64(t);                                                                                                    \
    double   r = (((x)-k * 1.57079632673412561417e+00) - k * 6.07710050630396597660e-11) - k * 2.02226624879595063154e-21;     \
    double   z = r * r;                                                                                                        \
    double   s = POLY64(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,                \
                        -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01);                 \
    double   c = POLY64(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,               \
                        2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02);                  \
    s = fused64(s * z, r, r);                                                                                                  \
    c = fused64(c * z, z, fused64(-0.5, z, 1.));
MATH double sin_f64(double x)
{
    REDUCED_F64(x)
    double y = q & 1 ? c : s;
    y = q & 2 ? -y : y;
    return x == 0 ? x : y;
}
MATH double cos_f64(double x)
{
    REDUCED_F64(x)
    double y = q & 1 ? s : c;
    return (q + 1) & 2 ? -y : y;
}
MATH double tan_f64(double x)
{
    REDUCED_F64(x)
    double y = q & 1 ? -c / s : s / c;
    return x == 0 ? x : y;
}

/* ---- error functions ---- */

/* Powers of two for moderate t, as t = e + ROUND32 leaves them: adding to the bits of p raises its exponent. To 9e-8. */
MATH float raised_f32(float r, float t)
{
    float p = POLY32(r, 1.326472733e-03f, 9.671512953e-03f, 5.550733745e-02f, 2.402224208e-01f, 6.931469776e-01f);
    return as_f32(bits32(fused32(p, r, 1.f)) + (bits32(t) << 23));
}
/* erf: x P(x x) up to 1; beyond that 1 - 2^P(|x|) in float32, 1 - erfc in float64. */
MATH float erf_f32(float x)
{
    float a = ABS32(x), z = a * a, b = a > 4.f ? 4.f : a;
    float near = POLY32(z, 7.854026312e-05f, -8.010247655e-04f, 5.188334502e-03f, -2.685381607e-02f, 1.128358527e-01f,
                        -3.761262584e-01f, 1.283791660e-01f);
    float e = POLY32(b, -3.130271159e-05f, 6.369065842e-04f, -6.066924751e-03f, 3.637078209e-02f, -1.564199464e-01f,
                     -9.135382292e-01f, -1.629639876e+00f, 2.718935010e-04f);
    float t = e + ROUND32, tail = raised_f32(e - (t - ROUND32), t);
    return SIGN32(a > 1 ? 1 - tail : fused32(near, a, a), x);
}
MATH double erf_near_f64(double a) /* of [0, 1] */
{
    double z = a * a;
    double p = POLY64(z, -7.795898827002142242e-10, 1.37200645467776856e-8, -1.62084838018717059e-7, 1.644742470331736241e-6,
                      -0.00001492473690741966034, 0.0001205529490483970792, -0.0008548325975389692081, 0.005223977607116422732,
                      -0.02686617064323777036, 0.1128379167094500627, -0.3761263890318354044, 0.128379167095512567);
    return fused64(p, a, a);
}
/* erfc = exp(-x x) P(q) / (1 + 2 x) with q = (x - 4) / (x + 4), and the square in two parts: for all x in float32, for x
 * from 1 to 27 in float64. float32: 5 ulp. Results from 10.06 on are zero; those below are subnormal at the last factor
 * only, since processors take long over each subnormal number. */
MATH float erfc_f32(float x)
{
    float a = ABS32(x), b = a > 10.06f ? 1 : a, q = (b - 4) / (b + 4);
#ifdef __FMA__
    float s = b * b, low = fused32(b, b, -s);
#else
    double square = (double)b * (double)b;
    float  s = (float)square, low = (float)(square - (double)s);
#endif
    int32_t n;
    float   p = POLY32(q, -6.419642923e-04f, -1.136579658e-03f, 5.043434327e-03f, -1.602431876e-02f, 3.722189138e-02f,
                       -6.635466187e-02f, 9.372131580e-02f, -1.010378089e-01f, 6.809783306e-02f, 1.537962939e-02f,
                       -1.396211307e-01f, 1.232995119e+00f) /
              (1 + 2 * b);
    float   e = 1.f + expm1_reduced_f32(-s, &n);
    int32_t half = n >> 1;
    float   y = e * (p - low * p) * POWER32(half) * POWER32(n - half);
    y = a > 10.06f ? 0 : y;
    y = x < 0 ? 2 - y : y;
    return x != x ? x : y;
}
MATH double erfc_far_f64(double b)
{
    double q = (b - 4) / (b + 4), high = as_f64(bits64(b) & ~(uint64_t)0x7ffffff), low = (b - high) * (b + high);
    double p = POLY64(q, 5.283248755396035163e-8, 5.863267080048545766e-8, -7.485665385927742716e-7, 2.937412560068219903e-7,
                      5.658261760178869387e-6, -0.00001121615015703645353, -0.00002437926549704489819, 0.0001506184436492630345,
                      -0.0001992614331827018548, -0.0007577724583353904549, 0.005031970673725753713, -0.01619773417360186939,
                      0.03716751547630096752, -0.06633036580350802132, 0.09373283500131729655, -0.1010390660366233923,
                      0.06809705425462611154, 0.01537965210262413258, -0.1396211168405620687, 1.2329951186255525);
    return exp_f64(-high * high) * exp_f64(-low) * p / (1 + 2 * b);
}
MATH double erf_f64(double x)
{
    double a = ABS64(x), y = a > 1 ? 1 - erfc_far_f64(a > 7. ? 7. : a) : erf_near_f64(a);
    return SIGN64(y, x);
}
MATH double erfc_f64(double x)
{
    double a = ABS64(x), y = erfc_far_f64(a > 27.5 ? 27.5 : a < 1 ? 1 : a), inner = 1 - SIGN64(erf_near_f64(a > 1 ? 1 : a), x);
    y = x < 0 ? 2 - y : y;
    return x != x ? x : a > 1 ? y : inner;
}
/* x normal_cdf(x), and x / (1 + exp(-x)), each with one exponential in the fewest instructions: they dominate activations of
 * large tensors. gelu: the tail at -|x| as a power of two, error 4e-7. silu: 3 ulp. At -infinity both are 0 times that, as
 * in PyTorch. */
MATH float gelu_f32(float x)
{
    float a = -ABS32(x), b = a < -6.5f ? -6.5f : a;
    float e = POLY32(b, -2.372626786e-06f, -3.433506173e-07f, 5.975400502e-04f, 7.663069873e-03f, 5.289809160e-02f,
                     -4.590827902e-01f, 1.151119369e+00f, -9.999997427e-01f);
    float t = e + ROUND32, tail = raised_f32(e - (t - ROUND32), t);
    return fused32(x < b ? x : b, a < -6.5f ? 0.f : tail, x > 0 ? x : 0.f);
}
/* The derivative: normal_cdf(x) + x times the density. Selections are between constants: gcc 13 turns a skippable expression
 * into a branch. */
MATH float gelu_slope_f32(float x)
{
    float a = -ABS32(x), b = a < -6.5f ? -6.5f : a;
    float e = POLY32(b, -2.372626786e-06f, -3.433506173e-07f, 5.975400502e-04f, 7.663069873e-03f, 5.289809160e-02f,
                     -4.590827902e-01f, 1.151119369e+00f, -9.999997427e-01f);
    float t = e + ROUND32, tail = raised_f32(e - (t - ROUND32), t), q = b * b * -0.721347520f, u = q + ROUND32;
    float density = raised_f32(q - (u - ROUND32), u), below = fused32(x < 0 ? 1.f : -1.f, tail, x < 0 ? 0.f : 1.f);
    return fused32(x * 0.398942280f, a < -6.5f ? 0.f : density, below);
}
MATH float silu_f32(float x)
{
    float low = x < -88.f ? -88.f : x, c = low > 87.f ? 87.f : low, t = fused32(c, -1.44269504f, ROUND32);
    float y = x / (1.f + raised_f32(fused32(c, -1.44269504f, ROUND32 - t), t));
    return x < -88.f ? x * 0.f : y;
}
MATH double silu_f64(double x) { return x * sigmoid_f64(x); }
MATH double normal_cdf_f64(double x) { return 0.5 * (1 + erf_f64(x * 0.70710678118654752440)); }
MATH double gelu_f64(double x) { return x * normal_cdf_f64(x); }
MATH double gelu_slope_f64(double x) { return normal_cdf_f64(x) + x * 0.39894228040143267794 * exp_f64(-0.5 * x * x); }
/* By w = -log(1 - x x): two fits in w, up to 5 and beyond. Its argument is at most 1 and not subnormal. 3 ulp. */
MATH float erfinv_f32(float x)
{
    float    a = ABS32(x);
    uint32_t b = bits32((1 - a) * (1 + a)) - 0x3f3504f3u;
    float    w = -log_reduced_f32((float)((int32_t)b >> 23), as_f32((b & 0x7fffff) + 0x3f3504f3u) - 1);
    float    v = w - 2.5f, u = w - 10.5f;
    float    near = POLY32(v, -8.791055694e-09f, 2.323264318e-08f, 4.661706546e-07f, -3.462704747e-06f, -4.963347818e-06f,
                           2.183444394e-04f, -1.252741878e-03f, -4.177386781e-03f, 2.466402862e-01f, 1.501409359e+00f);
    float    far =
        POLY32(u, 1.962610761e-12f, -3.975302087e-11f, 3.488232092e-10f, -1.917289549e-09f, -4.938801634e-10f, 3.069563053e-07f,
               -7.621836699e-06f, 1.555095680e-04f, -3.562354055e-03f, 1.550986777e-01f, 3.074205830e+00f);
    float y = (w < 5 ? near : far) * x, edge = a == 1 ? x * (float)INFINITY : (float)NAN;
    return a < 1 ? y : edge;
}

/* float64: the same guess with another fit beyond 5, and one step of Halley's method. */
MATH double erfinv_f64(double x)
{
    double a = ABS64(x), w = -log_f64((1 - a) * (1 + a)), v = w - 2.5, u = sqrt(w) - 4;
    double near = POLY64(v, -8.791055694e-09, 2.323264318e-08, 4.661706546e-07, -3.462704747e-06, -4.963347818e-06,
                         2.183444394e-04, -1.252741878e-03, -4.177386781e-03, 2.466402862e-01, 1.501409359e+00);
    double far = POLY64(u, 1.803832997e-05, -7.891608857e-05, 8.907110472e-05, -2.786247432e-05, 2.592340195e-04,
                        -9.415541285e-04, 1.291079132e-03, 1.009510631e+00, 3.839781636e+00);
    double g = (w < 5 ? near : far) * a, high = erfc_far_f64(g < 1 ? 1 : g), low = erf_near_f64(g > 1 ? 1 : g);
    double error = (g > 1 ? (1 - a) - high : low - a) / (1.12837916709551257390 * exp_f64(-g * g)),
           y = g - error / (1 + g * error);
    return a == 1 ? SIGN64((double)INFINITY, x) : a < 1e-300 ? 0.88622692545275801365 * x : SIGN64(y, x);
}

/* ---- powers ---- */

/* 2^(y log2 x) in double: exact cases and the rest are within one rounding of the result. */
MATH float pow_f32(float x, float y)
{
    float    a = ABS32(x);
    uint64_t u = bits64((double)a) - 0x3fe6a09e667f3bcdu;
    double   e = (double)((int32_t)(u >> 32) >> 20), m = as_f64((u & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu);
    double   s = (m - 1) / (m + 1), z = s * s;
    double   l = e + s * POLY64(z, 0.2828868167240877055, 0.3199066851093233936, 0.4122092267764354582, 0.5770779426353535281,
                                0.9617966941123434123, 2.885390081777850585);
    l = a == 0 ? -(double)INFINITY : a == (float)INFINITY ? (double)INFINITY : l;
    double  p = (double)y * l, c = p < -160. ? -160. : p > 160. ? 160. : p, t = c + ROUND64, r = c - (t - ROUND64);
    int64_t n = (int64_t)(bits64(t) - bits64(ROUND64));
    double  q = POLY64(r, 0.00001530370071136569394, 0.0001546972921411829709, 0.001333347847368541528, 0.009618025613318034249,
                       0.05550410906325866612, 0.2402265121349809266, 0.6931471805568324135, 0.9999999999595617507);
    float   size = (float)(q * POWER64(n)), h = 0.5f * y;
    bool    whole = rintf(y) == y, odd = whole && rintf(h) != h && ABS32(y) < 0x1p24f;
    size = sign_f32(x) && odd ? -size : size;
    size = x < 0 && !whole && a != (float)INFINITY ? (float)NAN : size;
    size = x != x || y != y ? x + y : size;
    return y == 0 || x == 1 || (a == 1 && ABS32(y) == (float)INFINITY) ? 1.f : size;
}
/* float64: the logarithm in two doubles, for which the fused multiply-add is needed; 8 ulp at the ends of the range. */
#ifdef __FMA__
MATH double pow_f64(double x, double y)
{
    double   a = ABS64(x);
    bool     tiny = a < 0x1p-1022;
    uint64_t u = bits64(tiny ? a * 0x1p52 : a) - 0x3fe6a09e667f3bcdu;
    double e = (double)((int32_t)(u >> 32) >> 20) - (tiny ? 52. : 0.), m = as_f64((u & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu);
    double f = m - 1, d = m + 1, inverse = 1 / d, s = f * inverse, left = fused64(-s, d, f) - s * (m - (d - 1));
    double z = s * s, first = s * 2.8853900817779268, more = left * inverse;
    double rest = fused64(s, 2.8853900817779268, -first) + s * 4.0710547481862066e-17 + more * 2.8853900817779268;
    rest += s * z *
            POLY64(z, 0.1714227279204678988, 0.1686237877820104631, 0.1923926063459314977, 0.2219525022975023782,
                   0.2623081951966397763, 0.3205988979412099527, 0.4121985831112303855, 0.5770780163555852547,
                   0.9617966939259756049);
    double high = e + first, low = (first - (high - e)) + rest, log2 = high + low;
    low -= log2 - high;
    log2 = a == 0 ? -(double)INFINITY : a == (double)INFINITY ? (double)INFINITY : log2;
    double p = y * log2, c = p < -1100. ? -1100. : p > 1100. ? 1100. : p, t = c + ROUND64, r = c - (t - ROUND64);
    r += ABS64(p) < 1100. ? fused64(y, log2, -p) + y * low : 0.;
    int64_t more_n, n = (int64_t)(bits64(t) - bits64(ROUND64));
    double  q = 1 + expm1_reduced_f64(r * 0.69314718055994530942, &more_n), h = 0.5 * y;
    n += more_n;
    int64_t half = (int64_t)((int32_t)n >> 1);
    double  size = q * POWER64(half) * POWER64(n - half);
    bool    whole = rint(y) == y, odd = whole && rint(h) != h && ABS64(y) < 0x1p53;
    size = sign_f64(x) && odd ? -size : size;
    size = x < 0 && !whole && a != (double)INFINITY ? (double)NAN : size;
    size = x != x || y != y ? x + y : size;
    return y == 0 || x == 1 || (a == 1 && ABS64(y) == (double)INFINITY) ? 1. : size;
}
#else
MATH double pow_f64(double x, double y) { return pow(x, y); }
#endif
MATH float hypot_f32(float x, float y)
{
    double a = (double)x, b = (double)y;
    float  r = (float)sqrt(a * a + b * b);
    return ABS32(x) == (float)INFINITY || ABS32(y) == (float)INFINITY ? (float)INFINITY : r;
}

MATH double hypot_f64(double x, double y)
{
    double a = ABS64(x), b = ABS64(y), high = a > b ? a : b, low = a > b ? b : a, t = high == 0 ? 0 : low / high;
    double r = x != x || y != y ? x + y : high * sqrt(1 + t * t);
    return a == (double)INFINITY || b == (double)INFINITY ? (double)INFINITY : r;
}

/* ---- the gamma function ---- */

/* sin(pi r) / r of r up to 1/2, in r r */
#define SINPI                                                                                                                  \
    0.0004474920849077101067, -0.007364005472115722526, 0.08214479467064854921, -0.5992644339357286458, 2.550164035906744668,  \
        -5.167712779987959002, 3.141592653589635062
/* log(p) of the product p = x (x + 1) ... (x + 7) moves small arguments to Stirling's series; reflection needs one more
 * factor in the same logarithm, whose argument is positive and normal, or infinite. In double: near the zeros at 1 and 2 the
 * difference keeps 7 digits. */
MATH double log_normal_f64(double x) /* for positive x that are neither subnormal nor infinite */
{
    uint64_t u = bits64(x) - 0x3fe6a09e667f3bcdu;
    int32_t  k = (int32_t)(u >> 32) >> 20;
    return log_reduced_f64((double)k, as_f64((u & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1);
}
MATH float lgamma_f32(float x)
{
    double a = ABS64((double)x), y = a < 8 ? a + 8 : a, i = 1 / y, z = i * i;
    bool   neg = x < 0;
    double p = a * (a + 1) * ((a + 2) * (a + 3)) * ((a + 4) * (a + 5)) * ((a + 6) * (a + 7)), r = a - rint(a), rr = r * r;
    double sine = ABS64(r) * POLY64(rr, SINPI);
    p = a < 8 ? p : 1;
    double top = neg ? 3.14159265358979323846 * p : 1, below = neg ? a * sine : p, s = (y - 0.5) * log_normal_f64(y) - y;
    s += 0.91893853320467274178 + i * POLY64(z, 1. / 156, -691. / 360360, 1. / 1188, -1. / 1680, 1. / 1260, -1. / 360, 1. / 12);
    double l = log_normal_f64(top / below);
    float  result = (float)(l + (neg ? -s : s)) + 0 * x; /* NaN propagates through the last term */
    result = ((below == 0) | (a == (double)INFINITY)) ? (float)INFINITY : result;
    return ((x == 1) | (x == 2)) ? 0.f : result;
}

/* Derivative of lgamma, in double: recurrence over 8 steps as one quotient p' / p, then the asymptotic series; reflection. */
MATH float digamma_f32(float x)
{
    double y = x < 0 ? 1 - (double)x : (double)x, p = y, d = 1;
    d = fused64(d, y + 1, p), p *= y + 1;
    d = fused64(d, y + 2, p), p *= y + 2;
    d = fused64(d, y + 3, p), p *= y + 3;
    d = fused64(d, y + 4, p), p *= y + 4;
    d = fused64(d, y + 5, p), p *= y + 5;
    d = fused64(d, y + 6, p), p *= y + 6;
    d = fused64(d, y + 7, p), p *= y + 7;
    double shift = y < 8 ? d / p : 0, w = y < 8 ? y + 8 : y, i = 1 / w, z = i * i;
    double psi = log_f64(w) - 0.5 * i - z * POLY64(z, 1. / 132, -1. / 240, 1. / 252, -1. / 120, 1. / 12) - shift;
    double r = (double)x - rint((double)x), a = ABS64(r), h = 0.5 - a;
    double sine = a * POLY64(a * a, SINPI), cosine = h * POLY64(h * h, SINPI),
           reflection = 3.14159265358979323846 * cosine / sine;
    float y32 = (float)(x < 0 ? psi - SIGN64(reflection, r) : psi);
    y32 = x < 0 && r == 0 ? (float)NAN : y32;
    return x == 0 ? SIGN32((float)INFINITY, -x) : y32;
}
/* Derivative of digamma: the recurrence over some steps as one quotient d / p, then the asymptotic series; reflection below
 * 1/2, where sine is sin(pi x), in float32 of the product as PyTorch rounds it. */
#define SHIFTED(k) q = (y + (k)) * (y + (k)), d = fused64(d, q, p), p *= q
#define TRIGAMMA_TAIL(steps)                                                                                                   \
    double w = y < (steps) ? y + (steps) : y, i = 1 / w, z = i * i, shift = y < (steps) ? d / p : 0;                           \
    double r = shift + i + z * (0.5 + i * POLY64(z, -691. / 2730, 5. / 66, -1. / 30, 1. / 42, -1. / 30, 1. / 6))
MATH float trigamma_f32(float x)
{
    double y = x < 0.5f ? 1 - (double)x : (double)x, q = y * y, p = q, d = 1, sine = (double)sin_f32(3.14159274f * x);
    SHIFTED(1);
    SHIFTED(2);
    SHIFTED(3);
    SHIFTED(4);
    TRIGAMMA_TAIL(5);
    return (float)(x < 0.5f ? 9.86960440108935861883 / (sine * sine) - r : r);
}
MATH double trigamma_f64(double x)
{
    double y = x < 0.5 ? 1 - x : x, q = y * y, p = q, d = 1, sine = sin_f64(3.14159265358979323846 * x);
    SHIFTED(1);
    SHIFTED(2);
    SHIFTED(3);
    SHIFTED(4);
    SHIFTED(5);
    SHIFTED(6);
    SHIFTED(7);
    SHIFTED(8);
    SHIFTED(9);
    TRIGAMMA_TAIL(10);
    return x < 0.5 ? 9.86960440108935861883 / (sine * sine) - r : r;
}
#undef SHIFTED
#undef TRIGAMMA_TAIL

/* ---- representation and remainders ---- */

/* By its bits: beside other comparisons of the same number gcc 13 makes a branch of x != x. */
MATH int is_nan_f32(float x) { return (bits32(x) & 0x7fffffffu) > 0x7f800000u; }
MATH int is_nan_f64(double x) { return (bits64(x) & 0x7fffffffffffffffu) > 0x7ff0000000000000u; }

/* The next number: bit patterns of one sign are ordered like their values. */
#define NEXT_MATH(R, U, sfx, bits, as, top)                                                                                    \
    MATH R nextafter_##sfx(R x, R y)                                                                                           \
    {                                                                                                                          \
        U u = bits(x), step = (U)((y > x) == !(u >> top) ? 1 : -1);                                                            \
        R from_zero = as((U)(y > x ? 1 : ((U)1 << top) + 1)), r = x == 0 ? from_zero : as(u + step);                           \
        r = x == y ? y : r;                                                                                                    \
        return (is_nan_##sfx(x) | is_nan_##sfx(y)) ? x + y : r;                                                                \
    }
NEXT_MATH(float, uint32_t, f32, bits32, as_f32, 31)
NEXT_MATH(double, uint64_t, f64, bits64, as_f64, 63)
MATH float ldexp_f32(float x, float y) /* exact in double, and rounded once */
{
    float c = y < -300.f ? -300.f : y > 300.f ? 300.f : y;
    return (float)((double)x * POWER64((int64_t)(int32_t)c));
}
MATH double ldexp_f64(double x, double y) { return ldexp(x, y < -5000. ? -5000 : y > 5000. ? 5000 : (int)y); }

/* Remainders of quotients below NEAR: the quotient may be one off, the remainder is exact. Others call the library
 * (loops.isa.c), as all do without the fused multiply-add. */
#ifdef __FMA__
#define NEAR_f32 0x1p22f
#define NEAR_f64 0x1p50
#define FMOD_MATH(R, sfx, trunc, fused, ABS, SIGN)                                                                             \
    MATH R fmod_##sfx(R x, R y)                                                                                                \
    {                                                                                                                          \
        R a = ABS(x), b = ABS(y), q = trunc(a / b), r = fused(-q, b, a);                                                       \
        r = r < 0 ? r + b : r;                                                                                                 \
        r = r >= b ? r - b : r;                                                                                                \
        return SIGN(b == (R)INFINITY ? a : r, x);                                                                              \
    }
FMOD_MATH(float, f32, truncf, fused32, ABS32, SIGN32)
FMOD_MATH(double, f64, trunc, fused64, ABS64, SIGN64)
#else
#define NEAR_f32 0
#define NEAR_f64 0
MATH float fmod_f32(float x, float y) { return fmodf(x, y); }
MATH double fmod_f64(double x, double y) { return fmod(x, y); }
#endif

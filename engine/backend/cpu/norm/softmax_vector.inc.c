/* Single lines of float32 in machine vectors. Three passes over a line that stays in L1: the maximum, the exponentials and
 * their sum, the division. The exponential (a dozen multiply-adds) bounds them, so four vectors are in flight at a time; a
 * partial last vector is read and written under a mask, padded with the neutral element. The 256-bit form flushes subnormal exponentials to zero. */
#include <immintrin.h>
#if defined    __AVX512F__
typedef __m512 vector;
#define OF(x)              _mm512_set1_ps(x)
#define LOAD(p)            _mm512_loadu_ps(p)
#define STORE(p, v)        _mm512_storeu_ps(p, v)
#define FMA(a, b, c)       _mm512_fmadd_ps(a, b, c)
#define MAX(a, b)          _mm512_max_ps(a, b) /* b if one is NaN */
#define MIN(a, b)          _mm512_min_ps(a, b)
#define SCALED(p, t, k, x) _mm512_scalef_ps(p, k)
#define LOWEST             (-104.f)
#else
typedef __m256       vector;
#define OF(x)        _mm256_set1_ps(x)
#define LOAD(p)      _mm256_loadu_ps(p)
#define STORE(p, v)  _mm256_storeu_ps(p, v)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define MAX(a, b)    _mm256_max_ps(a, b)
#define MIN(a, b)    _mm256_min_ps(a, b)
#define LOWEST       (-87.33f)
#define SCALED(p, t, k, x)                                                                                                     \
    _mm256_andnot_ps(_mm256_cmp_ps(x, OF(LOWEST), _CMP_LT_OQ),                                                                 \
                     (p)*_mm256_castsi256_ps(                                                                                  \
                         _mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(t), 23), _mm256_set1_epi32(127 << 23))))
#endif
enum { WIDTH = sizeof(vector) / sizeof(float), STEP = 4 * WIDTH };
#define EACH_OF_4 _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++)

/* exp for x up to 88, by 8 multiply-adds: a fit of degree 5 and ln 2 in one part. The relative error is 2e-7 down to
 * exp(-20), and 4e-7 at the end: less than the rounding of a line's sum. */
MATH vector exp_vector(vector x)
{
    vector c = MAX(OF(LOWEST), x), t = FMA(c, OF(1.44269504f), OF(ROUND32)), k = t - OF(ROUND32);
    vector r = FMA(k, OF(-0.693147182f), c);
    vector p = FMA(FMA(OF(8.290305734e-3f), r, OF(4.189797491e-2f)), r, OF(1.666763723e-1f));
    p = FMA(FMA(FMA(p, r, OF(4.999915063e-1f)), r, OF(9.999997020e-1f)), r, OF(1.f));
    return SCALED(p, t, k, x);
}
#if defined __AVX512F__
MATH vector loaded(const float *p, int64_t n, float rest) /* n elements of a vector, the others `rest` */
{
    return _mm512_mask_loadu_ps(OF(rest), (__mmask16)((1u << n) - 1), p);
}
MATH void  stored(float *p, int64_t n, vector v) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v); }
MATH float sum_of(vector v) { return _mm512_reduce_add_ps(v); }
MATH float most_of(vector v) { return _mm512_reduce_max_ps(v); }
#else
static const int32_t kept[2 * 8] = { -1, -1, -1, -1, -1, -1, -1, -1 };
MATH __m256i         first(int64_t n) { return _mm256_loadu_si256((const __m256i *)(kept + 8 - n)); }
MATH vector          loaded(const float *p, int64_t n, float rest)
{
    return _mm256_blendv_ps(OF(rest), _mm256_maskload_ps(p, first(n)), _mm256_castsi256_ps(first(n)));
}
MATH void  stored(float *p, int64_t n, vector v) { _mm256_maskstore_ps(p, first(n), v); }
#define HALVED(v, F)                                                                                                           \
    __m128 x = F(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));                                                      \
    x = F(x, _mm_movehl_ps(x, x));                                                                                             \
    return _mm_cvtss_f32(F(x, _mm_movehdup_ps(x)))
MATH float sum_of(vector v) { HALVED(v, _mm_add_ps); }
MATH float most_of(vector v) { HALVED(v, _mm_max_ps); }
#undef HALVED
#endif
MATH float total(vector a, vector b, vector c, vector d) { return sum_of((a + b) + (c + d)); }
/* BODY(load, store, k) for every vector; k: which of four sums it belongs to. */
#define VECTORS(BODY)                                                                                                          \
    do {                                                                                                                       \
        int64_t i = 0;                                                                                                         \
        for (; i + STEP <= n; i += STEP) EACH_OF_4                                                                             \
            {                                                                                                                  \
                BODY(FULL, WHOLE, i + k * WIDTH, k);                                                                           \
            }                                                                                                                  \
        for (; i + WIDTH <= n; i += WIDTH) { BODY(FULL, WHOLE, i, 0); }                                                        \
        if (i < n) { BODY(PART, SOME, i, 0); }                                                                                 \
    } while (0)
#define FULL(p, at, rest) LOAD((p) + (at))
#define PART(p, at, rest) loaded((p) + (at), n - (at), rest)
#define WHOLE(p, at, v)   STORE((p) + (at), v)
#define SOME(p, at, v)    stored((p) + (at), n - (at), v)

MATH float most(const float *x, int64_t n)
{
    vector high[4] = { OF(-INFINITY), OF(-INFINITY), OF(-INFINITY), OF(-INFINITY) };
#define BODY(load, store, at, k) high[k] = MAX(load(x, at, -INFINITY), high[k])
    VECTORS(BODY);
#undef BODY
    return most_of(MAX(MAX(high[0], high[1]), MAX(high[2], high[3])));
}
static void softmax_vector(void *out_, const void *x_, UNUSED const void *y_, int64_t n)
{
    float       *out = out_;
    const float *x = x_;
    vector       high = OF(most(x, n)), sum[4] = { OF(0), OF(0), OF(0), OF(0) }, e;
#define BODY(load, store, at, k) e = exp_vector(load(x, at, -INFINITY) - high), store(out, at, e), sum[k] += e
    VECTORS(BODY);
#undef BODY
    vector share = OF(1 / total(sum[0], sum[1], sum[2], sum[3]));
#define BODY(load, store, at, k) store(out, at, load(out, at, 0) * share)
    VECTORS(BODY);
#undef BODY
}
static void log_softmax_vector(void *out_, const void *x_, UNUSED const void *y_, int64_t n)
{
    float       *out = out_;
    const float *x = x_;
    vector       high = OF(most(x, n)), sum[4] = { OF(0), OF(0), OF(0), OF(0) };
#define BODY(load, store, at, k) sum[k] += exp_vector(load(x, at, -INFINITY) - high)
    VECTORS(BODY);
#undef BODY
    vector less = OF(logf(total(sum[0], sum[1], sum[2], sum[3])));
#define BODY(load, store, at, k) store(out, at, load(x, at, 0) - high - less)
    VECTORS(BODY);
#undef BODY
}
static void softmax_backward_vector(void *out_, const void *g_, const void *y_, int64_t n)
{
    float       *out = out_;
    const float *g = g_, *y = y_;
    vector       sum[4] = { OF(0), OF(0), OF(0), OF(0) };
#define BODY(load, store, at, k) sum[k] = FMA(load(g, at, 0), load(y, at, 0), sum[k])
    VECTORS(BODY);
#undef BODY
    vector dot = OF(total(sum[0], sum[1], sum[2], sum[3]));
#define BODY(load, store, at, k) store(out, at, load(y, at, 0) * (load(g, at, 0) - dot))
    VECTORS(BODY);
#undef BODY
}
static void log_softmax_backward_vector(void *out_, const void *g_, const void *y_, int64_t n)
{
    float       *out = out_;
    const float *g = g_, *y = y_;
    vector       sum[4] = { OF(0), OF(0), OF(0), OF(0) };
#define BODY(load, store, at, k) sum[k] += load(g, at, 0)
    VECTORS(BODY);
#undef BODY
    vector all = OF(total(sum[0], sum[1], sum[2], sum[3]));
#define BODY(load, store, at, k) store(out, at, load(g, at, 0) - exp_vector(MIN(OF(88.f), load(y, at, 0))) * all)
    VECTORS(BODY);
#undef BODY
}

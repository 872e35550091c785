/* Random numbers from random bits, bit for bit as PyTorch makes them on the CPU, so that a ported program starts from the
 * same weights, shuffles the same way and drops the same units. Found by experiment against torch 2.13
 * (tests/random/test_random.py repeats it):
 *
 * uniform      float32, float16, bfloat16: 24 bits of one word; float64: 53 bits of two words, the first is the high one.
 * Then
 *              fma(u, hi - lo, lo), float16 and bfloat16 in float32 with float32 bounds, rounded to the dtype; a result that rounds up to hi
 *              becomes lo.
 * normal       contiguous, 16 elements or more: blocks of 16 uniforms d; u1 = 1 - d[j], u2 = d[j + 8]; d[j] = r cos t, d[j + 8] =
 *              r sin t with r = sqrt(-2 log u1), t = 2 pi u2 (float32: by PyTorch's approximations of log, sin, cos). If n is not a
 *              multiple of 16 the last 16 elements are made again from fresh uniforms. float32 and float64 draw n uniforms first (so
 *              the tail wastes some of them); float16 and bfloat16 compute in float32 block by block, and waste none.
 *              Else one by one in float64: uniforms a, b give sqrt(-2 log1p(-b)) * (cos, then sin) of 2 pi a; the second
 *              waits in the generator for the next call, whatever its dtype.
 * integers     word % range, two words from a range of 2^28 on (less than 5 % skew). Without bounds: as many words as the dtype needs.
 * exponential  -1 / lambda * log1p(-u), u a float64 uniform. cauchy: median + sigma * tan(pi * (u - 1/2)). geometric: ceil(log(u) /
 *              log1p(-p)). log_normal: exp of normals made one by one, whatever the size.
 * bernoulli    u < p: a float64 uniform for a scalar p; a uniform of p's dtype for a tensor p. permutation  n < 2^32 / 20:
 * Fisher-Yates from the front with one word each; larger: inside-out with two words each. */
#include "random.h"
#include <math.h>

enum { BLOCK = 16, BUFFER = 512 };

static inline float  unit_f32(uint32_t word) { return (float)(word & ((1u << 24) - 1)) * 0x1p-24f; }
static inline double unit_f64(uint64_t word) { return (double)(word & ((1ull << 53) - 1)) * 0x1p-53; }

/* Runs a body for each block of up to BUFFER elements: `word` holds the bits of `take` of them, from element `at` on. */
#define EACH_STRETCH(g, n, words_each)                                                                                         \
    for (int64_t at = 0, take; at < (n); at += take)                                                                           \
        if (take = (n)-at < BUFFER ? (n)-at : BUFFER, lc_random_words(g, word, take * (words_each)), true)

/* The same from its words, by conversions that vectors have: each is exact, and so is their sum. */
static inline double unit_of_words(uint32_t high, uint32_t low)
{
    double upper = (double)(int32_t)(high & ((1u << 21) - 1)), lower = (double)(int32_t)(low ^ 1u << 31) + 0x1p31;
    return (upper * 0x1p32 + lower) * 0x1p-53;
}

static inline uint64_t joined(const uint32_t *word, int64_t i) { return (uint64_t)word[2 * i] << 32 | word[2 * i + 1]; }

/* ---- uniform ---- */

/* A fused multiply-add is what PyTorch's build makes of it; without the instruction it is a slow call. */
LC_LOOP scale_loop(float *x, int64_t n, float lo, float hi)
{
    for (int64_t i = 0; i < n; i++) {
        float y = __builtin_fmaf(x[i], hi - lo, lo);
        x[i] = y == hi ? lo : y;
    }
}
LC_WIDE(scale, (float *x, int64_t n, float lo, float hi), x, n, lo, hi)

LC_LOOP units_f32_loop(float *restrict out, const uint32_t *restrict word, int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] = (float)(int32_t)(word[i] & ((1u << 24) - 1)) * 0x1p-24f;
}
LC_WIDE(units_f32, (float *out, const uint32_t *word, int64_t n), out, word, n)

LC_LOOP units_f64_loop(double *restrict out, const uint32_t *restrict word, int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] = unit_of_words(word[2 * i], word[2 * i + 1]);
}
LC_WIDE(units_f64, (double *out, const uint32_t *word, int64_t n), out, word, n)

static void uniform_f32(lc_generator *g, float *out, int64_t n, float lo, float hi)
{
    uint32_t word[BUFFER];
    EACH_STRETCH(g, n, 1)
    {
        units_f32(out + at, word, take);
        if (lo != 0 || hi != 1) scale(out + at, take, lo, hi);
    }
}

LC_LOOP spread_f64_loop(double *x, int64_t n, double lo, double hi)
{
    for (int64_t i = 0; i < n; i++) {
        double y = __builtin_fma(x[i], hi - lo, lo);
        x[i] = y == hi ? lo : y;
    }
}
LC_WIDE(spread_f64, (double *x, int64_t n, double lo, double hi), x, n, lo, hi)

static void uniform_f64(lc_generator *g, double *out, int64_t n, double lo, double hi)
{
    uint32_t word[2 * BUFFER];
    EACH_STRETCH(g, n, 2)
    {
        units_f64(out + at, word, take);
        if (lo != 0 || hi != 1) spread_f64(out + at, take, lo, hi);
    }
}

static uint16_t half_of(lc_dtype dtype, float x) { return dtype == LC_f16 ? lc_f32_to_f16(x) : lc_f32_to_bf16(x); }

/* Scales unit[i] to [lo, hi) and rounds it without a branch. A result that rounds to high (hi as float16 or bfloat16)
 * becomes low. */
LC_LOOP scale_half(uint16_t *restrict out, const float *restrict unit, int64_t n, float lo, float hi, uint16_t low,
                   uint16_t high, bool f16)
{
    for (int64_t i = 0; i < n; i++) {
        float    y = __builtin_fmaf(unit[i], hi - lo, lo);
        uint32_t u = lc_bits_of_f32(y), a = u & 0x7fffffff, h = (u + 0x7fff + (u >> 16 & 1)) >> 16;
        if (f16) { /* lc_f32_to_f16 without NaN */
            uint32_t tiny = lc_bits_of_f32(lc_f32_of_bits(a) + 0.5f) - 0x3f000000;
            h = (a + 0xfff + (a >> 13 & 1) - (112u << 23)) >> 13;
            h = a < 0x38800000 ? tiny : h;
            h = (a >= 0x477ff000 ? 0x7c00 : h) | (u >> 16 & 0x8000);
        }
        out[i] = h == high || ((h | high) & 0x7fff) == 0 ? low : (uint16_t)h;
    }
}
LC_LOOP spread_f16_loop(uint16_t *out, const float *unit, int64_t n, float lo, float hi, uint16_t low, uint16_t high)
{
    scale_half(out, unit, n, lo, hi, low, high, true);
}
LC_LOOP spread_bf16_loop(uint16_t *out, const float *unit, int64_t n, float lo, float hi, uint16_t low, uint16_t high)
{
    scale_half(out, unit, n, lo, hi, low, high, false);
}
LC_WIDE(spread_f16, (uint16_t * out, const float *unit, int64_t n, float lo, float hi, uint16_t low, uint16_t high), out, unit,
        n, lo, hi, low, high)
LC_WIDE(spread_bf16, (uint16_t * out, const float *unit, int64_t n, float lo, float hi, uint16_t low, uint16_t high), out, unit,
        n, lo, hi, low, high)

static void uniform_half(lc_generator *g, lc_dtype dtype, uint16_t *out, int64_t n, float lo, float hi)
{
    uint32_t word[BUFFER];
    float    unit[BUFFER];
    EACH_STRETCH(g, n, 1)
    {
        units_f32(unit, word, take);
        (dtype == LC_f16 ? spread_f16 : spread_bf16)(out + at, unit, take, lo, hi, half_of(dtype, lo), half_of(dtype, hi));
    }
}

static void uniform(lc_generator *g, lc_dtype dtype, void *out, int64_t n, double lo, double hi)
{
    if (dtype == LC_f64) uniform_f64(g, out, n, lo, hi);
    else if (dtype == LC_f32) uniform_f32(g, out, n, (float)lo, (float)hi);
    else uniform_half(g, dtype, out, n, (float)lo, (float)hi);
}

void lc_random_uniform(lc_generator *g, lc_dtype dtype, void *out, int64_t n, double lo, double hi)
{
    pthread_mutex_lock(&g->lock);
    uniform(g, dtype, out, n, lo, hi);
    pthread_mutex_unlock(&g->lock);
}

/* ---- normal ---- */

/* log, sin and cos as PyTorch's vector code has them (Cephes' polynomials, with the multiply-adds its compiler fuses): the deviates are
 * equal, and the loop becomes vector code here too: no branch, no call, no table. */
#define FMA __builtin_fmaf
static inline __attribute__((always_inline)) float log_of_unit(float u) /* u a multiple of 2^-24 in (0, 1] */
{
    uint32_t bits = lc_bits_of_f32(u);
    float    x = lc_f32_of_bits((bits & 0x007fffff) | 0x3f000000), e = (float)((int32_t)(bits >> 23) - 126);
    bool     low = x < 0.707106781186547524f;
    float    back = low ? x : 0, p = 7.0376836292e-2f;
    x = (x - 1) + back;
    e = e - (low ? 1.0f : 0.0f);
    float z = x * x;
    p = FMA(p, x, -1.1514610310e-1f);
    p = FMA(p, x, 1.1676998740e-1f);
    p = FMA(p, x, -1.2420140846e-1f);
    p = FMA(p, x, 1.4249322787e-1f);
    p = FMA(p, x, -1.6668057665e-1f);
    p = FMA(p, x, 2.0000714765e-1f);
    p = FMA(p, x, -2.4999993993e-1f);
    p = FMA(p, x, 3.3333331174e-1f);
    float y = FMA(p * x, z, e * -2.12194440e-4f) - 0.5f * z;
    return FMA(e, 0.693359375f, x + y);
}

static inline __attribute__((always_inline)) void cos_sin_of_turn(float u, float *cosine,
                                                                  float *sine) /* of 2 pi u, u in [0, 1) */
{
    float   t = 6.28318530717958647692f * u;
    int32_t octant = ((int32_t)(t * 1.27323954473516f) + 1) & ~1;
    float q = (float)octant, x = FMA(q, -3.77489497744594108e-8f, FMA(q, -2.4187564849853515625e-4f, FMA(q, -0.78515625f, t)));
    float z = x * x, c = 2.443315711809948e-5f, s = -1.9515295891e-4f;
    c = FMA(FMA(c, z, -1.388731625493765e-3f), z, 4.166664568298827e-2f);
    c = FMA(c * z, z, -0.5f * z) + 1;
    s = FMA(FMA(s, z, 8.3321608736e-3f), z, -1.6666654611e-1f);
    s = FMA(s * z, x, x);
    uint32_t k = (uint32_t)octant, swap = -(k >> 1 & 1), cs = lc_bits_of_f32(c), sn = lc_bits_of_f32(s);
    *cosine = lc_f32_of_bits(((cs & ~swap) | (sn & swap)) ^ ((k + 2) & 4) << 29);
    *sine = lc_f32_of_bits(((sn & ~swap) | (cs & swap)) ^ (k & 4) << 29);
}

LC_LOOP blocks_f32_loop(float *d, int64_t blocks, float mean, float std)
{
    for (; blocks > 0; blocks--, d += BLOCK) {
        float r[BLOCK / 2], c[BLOCK / 2], s[BLOCK / 2];
        for (int j = 0; j < BLOCK / 2; j++) {
            r[j] = __builtin_sqrtf(-2 * log_of_unit(1 - d[j]));
            cos_sin_of_turn(d[j + BLOCK / 2], &c[j], &s[j]);
        }
        for (int j = 0; j < BLOCK / 2; j++) {
            d[j] = FMA(r[j] * c[j], std, mean);
            d[j + BLOCK / 2] = FMA(r[j] * s[j], std, mean);
        }
    }
}
LC_WIDE(blocks_f32, (float *d, int64_t blocks, float mean, float std), d, blocks, mean, std)

static void block_f64(double d[BLOCK], double mean, double std)
{
    for (int j = 0; j < BLOCK / 2; j++) {
        double r = sqrt(-2 * log(1 - d[j])), t = 2 * M_PI * d[j + BLOCK / 2];
        d[j] = r * cos(t) * std + mean;
        d[j + BLOCK / 2] = r * sin(t) * std + mean;
    }
}

static void normal_f32(lc_generator *g, float *out, int64_t n, float mean, float std)
{
    for (int64_t at = 0, take; at < n; at += take) { /* in blocks that stay in the cache */
        take = n - at < BUFFER ? n - at : BUFFER;
        uniform_f32(g, out + at, take, 0, 1);
        blocks_f32(out + at, take / BLOCK, mean, std);
    }
    if (n % BLOCK == 0) return;
    uniform_f32(g, out + n - BLOCK, BLOCK, 0, 1);
    blocks_f32(out + n - BLOCK, 1, mean, std);
}

static void normal_f64(lc_generator *g, double *out, int64_t n, double mean, double std)
{
    uniform_f64(g, out, n, 0, 1);
    for (int64_t i = 0; i + BLOCK <= n; i += BLOCK) block_f64(out + i, mean, std);
    if (n % BLOCK == 0) return;
    uniform_f64(g, out + n - BLOCK, BLOCK, 0, 1);
    block_f64(out + n - BLOCK, mean, std);
}

static void normal_half(lc_generator *g, lc_dtype dtype, uint16_t *out, int64_t n, float mean, float std)
{
    for (int64_t i = 0; i < n; i += BLOCK) {
        float     d[BLOCK];
        int64_t   last = n - BLOCK;
        uint16_t *to = out + (i < last ? i : last);
        uniform_f32(g, d, BLOCK, 0, 1);
        blocks_f32(d, 1, mean, std);
        for (int j = 0; j < BLOCK; j++) to[j] = half_of(dtype, d[j]);
    }
}

double lc_next_normal(lc_generator *g)
{
    if (g->has_normal) {
        g->has_normal = false;
        return g->normal;
    }
    double a = lc_next_unit(g), b = lc_next_unit(g), r = sqrt(-2 * log1p(-b)), t = 2 * M_PI * a;
    g->normal = r * sin(t);
    g->has_normal = true;
    return r * cos(t);
}

static void store(lc_dtype dtype, void *out, int64_t i, double x)
{
    if (dtype == LC_f64) ((double *)out)[i] = x;
    else if (dtype == LC_f32) ((float *)out)[i] = (float)x;
    else ((uint16_t *)out)[i] = half_of(dtype, (float)x);
}

void lc_random_normal(lc_generator *g, lc_dtype dtype, void *out, int64_t n, double mean, double std, bool contiguous)
{
    pthread_mutex_lock(&g->lock);
    if (n < BLOCK || !contiguous)
        for (int64_t i = 0; i < n; i++) store(dtype, out, i, fma(lc_next_normal(g), std, mean));
    else if (dtype == LC_f64) normal_f64(g, out, n, mean, std);
    else if (dtype == LC_f32) normal_f32(g, out, n, (float)mean, (float)std);
    else normal_half(g, dtype, out, n, (float)mean, (float)std);
    pthread_mutex_unlock(&g->lock);
}

/* Formulas over one float64 uniform each, computed in blocks. */
#define EACH_UNIT(g, n)                                                                                                        \
    uint32_t word[2 * BUFFER];                                                                                                 \
    double   unit[BUFFER];                                                                                                     \
    EACH_STRETCH(g, n, 2)                                                                                                      \
    for (int64_t i = (units_f64(unit, word, take), 0); i < take; i++)

void lc_random_exponential(lc_generator *g, lc_dtype dtype, void *out, int64_t n, double lambda)
{
    pthread_mutex_lock(&g->lock);
    EACH_UNIT(g, n) store(dtype, out, at + i, -1 / lambda * log1p(-unit[i]));
    pthread_mutex_unlock(&g->lock);
}

void lc_random_cauchy(lc_generator *g, double *out, int64_t n, double median, double sigma)
{
    pthread_mutex_lock(&g->lock);
    EACH_UNIT(g, n) out[at + i] = median + sigma * tan(M_PI * (unit[i] - 0.5));
    pthread_mutex_unlock(&g->lock);
}

void lc_random_log_normal(lc_generator *g, double *out, int64_t n, double mean, double std)
{
    pthread_mutex_lock(&g->lock);
    for (int64_t i = 0; i < n; i++) out[i] = exp(lc_next_normal(g) * std + mean);
    pthread_mutex_unlock(&g->lock);
}

void lc_random_geometric(lc_generator *g, double *out, int64_t n, double p)
{
    double log_q = log1p(-p);
    pthread_mutex_lock(&g->lock);
    EACH_UNIT(g, n) out[at + i] = ceil(log(unit[i]) / log_q);
    pthread_mutex_unlock(&g->lock);
}

/* ---- integers ---- */

/* Remainders by multiplication. 32 bits: the fraction of word / range in 64 bits, times range, is exact. 64 bits: the quotient by
 * floor(2^64 / range) is at most two too small. */
static void words_modulo(lc_generator *g, int64_t *out, int64_t n, uint64_t lo, uint64_t range) /* range < 2^32 */
{
    uint32_t word[BUFFER];
    uint64_t fraction = range ? UINT64_MAX / range + 1 : 0;
    EACH_STRETCH(g, n, 1)
    for (int64_t i = 0; i < take; i++)
        out[at + i] = (int64_t)(lo + (uint64_t)((unsigned __int128)(fraction * word[i]) * range >> 64));
}

static void pairs_modulo(lc_generator *g, int64_t *out, int64_t n, uint64_t lo, uint64_t range)
{
    uint32_t word[2 * BUFFER];
    uint64_t inverse = range > 1 ? (uint64_t)(((unsigned __int128)1 << 64) / range) : 0;
    EACH_STRETCH(g, n, 2)
    for (int64_t i = 0; i < take; i++) {
        uint64_t x = joined(word, i), rest = x;
        if (range > 1) {
            rest = x - (uint64_t)((unsigned __int128)x * inverse >> 64) * range;
            rest = rest >= range ? rest - range : rest;
            rest = rest >= range ? rest - range : rest;
        } else if (range == 1) rest = 0;
        out[at + i] = (int64_t)(range ? lo + rest : x);
    }
}

void lc_random_ints(lc_generator *g, int64_t *out, int64_t n, int64_t lo, uint64_t range)
{
    pthread_mutex_lock(&g->lock);
    (range && range < 1u << 28 ? words_modulo : pairs_modulo)(g, out, n, (uint64_t)lo, range);
    pthread_mutex_unlock(&g->lock);
}

void lc_random_any(lc_generator *g, lc_dtype dtype, int64_t *out, int64_t n)
{
    static const uint64_t range[LC_DTYPE_COUNT] = { /* integers: the non-negative ones; floats: up to the last that is exact */
                                                    [LC_b8] = 2,
                                                    [LC_u8] = 1 << 8,
                                                    [LC_i8] = 1 << 7,
                                                    [LC_i16] = 1 << 15,
                                                    [LC_i32] = 1u << 31,
                                                    [LC_i64] = 1ull << 63,
                                                    [LC_f16] = (1 << 11) + 1,
                                                    [LC_bf16] = (1 << 8) + 1,
                                                    [LC_f32] = (1 << 24) + 1,
                                                    [LC_f64] = (1ull << 53) + 1
    };
    pthread_mutex_lock(&g->lock);
    (range[dtype] < 1ull << 32 ? words_modulo : pairs_modulo)(g, out, n, 0, range[dtype]);
    pthread_mutex_unlock(&g->lock);
}

/* ---- bernoulli, permutation ---- */

LC_LOOP coins_loop(uint8_t *restrict out, const uint32_t *restrict word, int64_t n, double p)
{
    for (int64_t i = 0; i < n; i++) out[i] = unit_of_words(word[2 * i], word[2 * i + 1]) < p;
}
LC_WIDE(coins, (uint8_t * out, const uint32_t *word, int64_t n, double p), out, word, n, p)

void lc_random_bernoulli(lc_generator *g, uint8_t *out, int64_t n, double p)
{
    uint32_t word[2 * BUFFER];
    pthread_mutex_lock(&g->lock);
    EACH_STRETCH(g, n, 2)
    coins(out + at, word, take, p);
    pthread_mutex_unlock(&g->lock);
}

void lc_random_bernoulli_each(lc_generator *g, uint8_t *out, int64_t n, lc_dtype dtype, const void *p)
{
    uint32_t word[2 * BUFFER];
    pthread_mutex_lock(&g->lock);
    if (dtype == LC_f64) {
        EACH_STRETCH(g, n, 2)
        for (int64_t i = 0; i < take; i++) out[at + i] = unit_f64(joined(word, i)) < ((const double *)p)[at + i];
    } else {
        EACH_STRETCH(g, n, 1)
        for (int64_t i = 0; i < take; i++) out[at + i] = unit_f32(word[i]) < ((const float *)p)[at + i];
    }
    pthread_mutex_unlock(&g->lock);
}

/* The target of an element does not depend on the elements before: a block of targets is computed, and its memory
 * prefetched, ahead. */
static void shuffle(lc_generator *g, int64_t *out, int64_t n)
{
    uint32_t word[BUFFER];
    for (int64_t i = 0; i < n; i++) out[i] = i;
    EACH_STRETCH(g, n - 1, 1)
    {
        for (int64_t i = 0; i < take; i++) {
            word[i] %= (uint32_t)(n - at - i);
            __builtin_prefetch(out + at + i + word[i], 1);
        }
        for (int64_t i = at; i < at + take; i++) {
            int64_t k = i + word[i - at], at_i = out[i];
            out[i] = out[k];
            out[k] = at_i;
        }
    }
}

void lc_random_permutation(lc_generator *g, int64_t *out, int64_t n)
{
    pthread_mutex_lock(&g->lock);
    if (n < UINT32_MAX / 20) shuffle(g, out, n);
    else
        for (int64_t i = 0; i < n; i++) {
            int64_t k = (int64_t)(lc_next64(g) % (uint64_t)(i + 1));
            out[i] = i;
            out[i] = out[k];
            out[k] = i;
        }
    pthread_mutex_unlock(&g->lock);
}

/* Random fills in PyTorch's CPU streams (rng.c makes the bits, random.c the numbers): same seed, same numbers. Each call locks the
 * generator for its whole length. `out` is contiguous; a strided tensor is filled through a buffer, in the order of its indices.
 * dtype is f16, bf16, f32 or f64; a complex tensor is filled as twice as many reals (normal: with std / sqrt(2)). */
#pragma once
#include "core.h"

void lc_random_uniform(lc_generator *g, lc_dtype dtype, void *out, int64_t n, double lo, double hi); /* [lo, hi) */
/* contiguous: whether the tensor is. From 16 elements on PyTorch fills a contiguous tensor by another method than a strided one. */
void lc_random_normal(lc_generator *g, lc_dtype dtype, void *out, int64_t n, double mean, double std, bool contiguous);
void lc_random_exponential(lc_generator *g, lc_dtype dtype, void *out, int64_t n, double lambda);
void lc_random_cauchy(lc_generator *g, double *out, int64_t n, double median, double sigma);
void lc_random_log_normal(lc_generator *g, double *out, int64_t n, double mean, double std); /* of the logarithm */
void lc_random_geometric(lc_generator *g, double *out, int64_t n, double p);
void lc_random_ints(lc_generator *g, int64_t *out, int64_t n, int64_t lo,
                    uint64_t range);                                          /* [lo, lo + range); 0: all of int64 */
void lc_random_any(lc_generator *g, lc_dtype dtype, int64_t *out, int64_t n); /* random_() without bounds, for any dtype */
void lc_random_bernoulli(lc_generator *g, uint8_t *out, int64_t n, double p); /* also dropout's keep mask */
void lc_random_bernoulli_each(lc_generator *g, uint8_t *out, int64_t n, lc_dtype dtype, const void *p); /* p[n]: f32 or f64 */
/* A draw per element from parameters per element; -1 after lc_fail if one is out of range (core/random_counts.c). */
int  lc_random_poisson(lc_generator *g, double *out, int64_t n, const double *rate);
void lc_random_binomial(lc_generator *g, lc_dtype dtype, void *out, int64_t n, const void *count,
                        const void *p); /* f32 or f64 */
/* Gamma variables of scale 1; alpha and out are f32 or f64 (core/random_gamma.c). */
void lc_random_gamma(lc_generator *g, lc_dtype dtype, void *out, int64_t n, const void *alpha);
/* rrelu: a slope in [lo, hi) for each x that is not positive, 1 without a draw for the others. */
void lc_random_slopes(lc_generator *g, double *out, int64_t n, const double *x, double lo, double hi);
/* n indices below `categories`, with replacement. cumulative: a buffer of `categories` elements that starts as the weights and becomes
 * their running sum over the total; f32 or f64. */
int  lc_random_multinomial(lc_generator *g, lc_dtype dtype, int64_t *out, int64_t n, void *cumulative, int64_t categories);
void lc_random_permutation(lc_generator *g, int64_t *out, int64_t n);

/* Word by word, for loops that cannot know how many they need. */
void                   lc_random_refill(lc_generator *g); /* 624 new words */
static inline uint32_t lc_tempered(uint32_t y)
{
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}
static inline uint32_t lc_next32(lc_generator *g)
{
    if (__builtin_expect(g->left == 1, 0)) lc_random_refill(g);
    g->left--;
    return lc_tempered(g->state[g->next++]);
}
static inline uint64_t lc_next64(lc_generator *g)
{
    uint64_t high = lc_next32(g);
    return high << 32 | lc_next32(g);
}
static inline double lc_next_unit(lc_generator *g)
{
    return (double)(lc_next64(g) & ((1ull << 53) - 1)) * 0x1p-53;
} /* [0, 1) */
double lc_next_normal(lc_generator *g); /* Box and Muller's method; the second of a pair waits in the generator */

/* A loop, name_loop(...), compiled for this machine's vectors too. Floating-point results do not depend on which runs: nothing is fused
 * that is not written as fma. */
#ifdef __x86_64__
#define LC_WIDE(name, parameters, ...)                                                                                         \
    static void name##_base                         parameters { name##_loop(__VA_ARGS__); }                                   \
    __attribute__((target("avx2,fma"))) static void name##_avx2 parameters { name##_loop(__VA_ARGS__); }                       \
    static void name parameters { (lc_cpu_isa() == LC_ISA_base ? name##_base : name##_avx2)(__VA_ARGS__); }
#else
#define LC_WIDE(name, parameters, ...)                                                                                         \
    static void name parameters { name##_loop(__VA_ARGS__); }
#endif
#define LC_LOOP static inline __attribute__((always_inline)) void

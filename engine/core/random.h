/* Random fills in PyTorch's CPU streams (rng.c makes the bits, random.c the numbers): same seed, same numbers. Each call locks the
 * generator for its whole length. `out` is contiguous; a strided tensor is filled through a buffer, in the order of its indices.
 * dtype is f16, bf16, f32 or f64; a complex tensor is filled as twice as many reals (normal: with std / sqrt(2)). */
#pragma once
#include "core.h"

void lc_random_uniform(lc_generator *g, lc_dtype dtype, void *out, int64_t n, double lo, double hi); /* [lo, hi) */
/* contiguous: whether the tensor is. From 16 elements on PyTorch fills a contiguous tensor by another method than a strided one. */
void lc_random_normal(lc_generator *g, lc_dtype dtype, void *out, int64_t n, double mean, double std, bool contiguous);
void lc_random_exponential(lc_generator *g, lc_dtype dtype, void *out, int64_t n, double lambda);
void lc_random_ints(lc_generator *g, int64_t *out, int64_t n, int64_t lo,
                    uint64_t range);                                          /* [lo, lo + range); 0: all of int64 */
void lc_random_any(lc_generator *g, lc_dtype dtype, int64_t *out, int64_t n); /* random_() without bounds, for any dtype */
void lc_random_bernoulli(lc_generator *g, uint8_t *out, int64_t n, double p); /* also dropout's keep mask */
void lc_random_bernoulli_each(lc_generator *g, uint8_t *out, int64_t n, lc_dtype dtype, const void *p); /* p[n]: f32 or f64 */
void lc_random_permutation(lc_generator *g, int64_t *out, int64_t n);

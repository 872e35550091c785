/* Counts by rejection and by search, drawn as PyTorch's CPU draws them: as many uniforms, compared with the same bounds.
 *
 * poisson      rate < 10: multiply uniforms until the product falls below exp(-rate). Else Hoermann's transformed rejection (PTRS).
 * binomial     count * p < 10: sum geometric gaps until they pass count. Else Hoermann's BTRS. p > 1/2 counts the failures.
 *              Parameters have the tensor's dtype and enter the formulas in it: in float32 a bound may differ in the last bit from
 *              the one computed in float64, and with it the number of draws (random_counts.inc.c, once per dtype).
 * multinomial  with replacement: a binary search of each uniform in the normalised running sum, which has the weights' precision. */
#include "random.h"
#include <math.h>

/* ---- poisson ---- */

static double small_poisson(lc_generator *g, double rate)
{
    double least = exp(-rate), product = 1;
    for (double count = 0;; count++)
        if ((product *= lc_next_unit(g)) <= least) return count;
}

static double large_poisson(lc_generator *g, double rate)
{
    double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b, log_rate = log(rate);
    double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
    while (true) {
        double u = lc_next_unit(g) - 0.5, v = lc_next_unit(g), us = 0.5 - fabs(u),
               k = floor((2 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= v_r) return k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (log(v) + log(inverse_alpha) - log(a / (us * us) + b) <= -rate + k * log_rate - lgamma(k + 1)) return k;
    }
}

int lc_random_poisson(lc_generator *g, double *out, int64_t n, const double *rate)
{
    int rc = 0;
    pthread_mutex_lock(&g->lock);
    for (int64_t i = 0; i < n && rc == 0; i++)
        if (!(rate[i] >= 0))
            rc = lc_fail_int(LC_LucidError, "invalid Poisson rate, expected rate to be non-negative, got %g", rate[i]);
        else out[i] = rate[i] == 0 ? 0 : (rate[i] < 10 ? small_poisson : large_poisson)(g, rate[i]);
    pthread_mutex_unlock(&g->lock);
    return rc;
}

void lc_random_slopes(lc_generator *g, double *out, int64_t n, const double *x, double lo, double hi)
{
    pthread_mutex_lock(&g->lock);
    for (int64_t i = 0; i < n; i++) out[i] = x[i] <= 0 ? lc_next_unit(g) * (hi - lo) + lo : 1;
    pthread_mutex_unlock(&g->lock);
}

/* ---- binomial ---- */

static double stirling_tail(double k) /* of log(k!) */
{
    static const double first[] = { 0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                                    0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                                    0.00925546218271273, 0.00833056343336287 };
    if (k <= 9) return first[(int)k];
    double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

#define REAL         float
#define REAL_(name)  name##_f32
#define REAL_M(name) name##f
#include "random_counts.inc.c"
#undef REAL
#undef REAL_
#undef REAL_M
#define REAL         double
#define REAL_(name)  name##_f64
#define REAL_M(name) name
#include "random_counts.inc.c"

void lc_random_binomial(lc_generator *g, lc_dtype dtype, void *out, int64_t n, const void *count, const void *p)
{
    pthread_mutex_lock(&g->lock);
    if (dtype == LC_f64) binomial_f64(g, out, n, count, p);
    else binomial_f32(g, out, n, count, p);
    pthread_mutex_unlock(&g->lock);
}

int lc_random_multinomial(lc_generator *g, lc_dtype dtype, int64_t *out, int64_t n, void *cumulative, int64_t categories)
{
    pthread_mutex_lock(&g->lock);
    int rc = (dtype == LC_f64 ? accumulate_f64(cumulative, categories) : accumulate_f32(cumulative, categories));
    for (int64_t i = 0; i < n && rc == 0; i++)
        out[i] = dtype == LC_f64 ? search_f64(cumulative, categories, lc_next_unit(g))
                                 : search_f32(cumulative, categories, lc_next_unit(g));
    pthread_mutex_unlock(&g->lock);
    return rc;
}

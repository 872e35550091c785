/* Gamma variables by Marsaglia and Tsang's rejection (2000), drawn as PyTorch's CPU draws them: a normal and a uniform per attempt, all in
 * float64. alpha < 1 draws for alpha + 1 and multiplies by u ** (1 / alpha); that uniform comes first. PyTorch rounds d = alpha - 1/3 to
 * the tensor's dtype and writes its constants as floats: they are part of the stream, because they decide what is rejected. */
#include "random.h"
#include <float.h>
#include <math.h>

/* d is alpha - 1/3 of the boosted alpha. */
static double reject_gamma(lc_generator *g, double d)
{
    double c = 1 / sqrt(9 * d);
    while (true) {
        double x, y;
        do {
            x = lc_next_normal(g);
            y = 1 + c * x;
        } while (y <= 0);
        double v = y * y * y, u = 1 - lc_next_unit(g), square = x * x;
        if (u < 1 - (double)0.0331f * square * square) return d * v;
        if (log(u) < 0.5 * square + d * (1 - v + log(v))) return d * v;
    }
}

static float one_gamma_f32(lc_generator *g, float alpha)
{
    double scale = 1;
    if (alpha == 0) return FLT_MIN;
    if (alpha < 1) scale = pow(1 - lc_next_unit(g), 1 / alpha), alpha += 1;
    double d = alpha - 1.0f / 3.0f;
    float  drawn = (float)(scale * reject_gamma(g, d));
    return drawn > FLT_MIN ? drawn : FLT_MIN; /* NaN becomes the smallest number, as in PyTorch */
}
static double one_gamma_f64(lc_generator *g, double alpha)
{
    double scale = 1;
    if (alpha == 0) return DBL_MIN;
    if (alpha < 1) scale = pow(1 - lc_next_unit(g), 1 / alpha), alpha += 1;
    double drawn = scale * reject_gamma(g, alpha - (double)(1.0f / 3.0f));
    return drawn > DBL_MIN ? drawn : DBL_MIN;
}

void lc_random_gamma(lc_generator *g, lc_dtype dtype, void *out, int64_t n, const void *alpha)
{
    pthread_mutex_lock(&g->lock);
    for (int64_t i = 0; i < n; i++)
        if (dtype == LC_f64) ((double *)out)[i] = one_gamma_f64(g, ((const double *)alpha)[i]);
        else ((float *)out)[i] = one_gamma_f32(g, ((const float *)alpha)[i]);
    pthread_mutex_unlock(&g->lock);
}

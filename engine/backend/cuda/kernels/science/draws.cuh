/* Draws that reject: gamma, Poisson, binomial; each element has a subsequence of Philox for itself. The methods are the CPU's
 * (core/random_gamma.c, core/random_counts.c), the numbers are not PyTorch's. And how gamma and Dirichlet variables move with their
 * parameters. T: the elements, contiguous; parameters are f64. VARIANT: what. */
#include "../philox.cuh"
#include "../../../math/gamma_grad.h"
enum { GAMMA, POISSON, BINOMIAL, GAMMA_SLOPE, DIRICHLET_SLOPE };
struct draw_args {
    T         *out;
    const f64 *parameter[3];
    i64        n;
    u64        seed, offset;
    const u64 *replayed;
    int        single; /* results are rounded to float32 at least */
    trouble   *word;
};
struct stream {
    u64   seed, counter, subsequence;
    words w;
    int   left;
};
__device__ inline u32 next(stream *s)
{
    if (s->left == 0) s->w = philox(s->seed, s->counter++, s->subsequence), s->left = 4;
    return s->w.v[--s->left];
}
__device__ inline double unit(stream *s) /* [0, 1) */
{
    u64 high = next(s);
    return (double)((high << 32 | next(s)) >> 11) * 1.1102230246251565e-16;
}
__device__ inline double normal(stream *s)
{
    double radius = sqrt(-2 * log(1 - unit(s))), angle = 6.28318530717958647692 * unit(s);
    return radius * cos(angle);
}
__device__ inline double gamma(stream *s, double alpha, bool single)
{
    double scale = 1, least = single ? 1.17549435e-38 : 2.2250738585072014e-308, drawn = least;
    if (alpha == 0) return least;
    if (alpha < 1) scale = pow(1 - unit(s), 1 / alpha), alpha += 1;
    double d = alpha - 1. / 3, c = 1 / sqrt(9 * d);
    for (int tries = 0; tries < 10000; tries++) {
        double x = normal(s), y = 1 + c * x, v = y * y * y, u = 1 - unit(s), square = x * x;
        if (y <= 0) continue;
        if (u < 1 - 0.0331 * square * square || log(u) < 0.5 * square + d * (1 - v + log(v))) {
            drawn = scale * d * v;
            break;
        }
    }
    return drawn > least ? drawn : least;
}
__device__ inline double poisson(stream *s, double rate)
{
    if (rate == 0 || rate != rate) return rate;
    if (rate < 10) {
        double least = exp(-rate), product = 1;
        for (double count = 0;; count++)
            if ((product *= unit(s)) <= least) return count;
    }
    double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b, log_rate = log(rate);
    double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
    for (int tries = 0; tries < 10000; tries++) {
        double u = unit(s) - 0.5, v = unit(s), us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= v_r) return k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (log(v) + log(inverse_alpha) - log(a / (us * us) + b) <= -rate + k * log_rate - lgamma(k + 1)) return k;
    }
    return floor(rate);
}
__device__ inline double stirling_tail(double k) /* of log(k!) */
{
    double square = (k + 1) * (k + 1);
    if (k <= 9) return lgamma(k + 1) - ((k + 0.5) * log(k + 1) - (k + 1) + 0.91893853320467274178);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}
__device__ inline double successes(stream *s, double count, double p) /* p up to 1/2 */
{
    if (count * p < 10) {
        double sum = 0, log_q = log1p(-p);
        for (double gaps = 0;; gaps++) {
            sum += ceil(log(1 - unit(s)) / log_q);
            if (sum > count) return gaps;
        }
    }
    double std = sqrt(count * p * (1 - p)), b = 1.15 + 2.53 * std, a = -0.0873 + 0.0248 * b + 0.01 * p,
           centre = count * p + 0.5;
    double v_r = 0.92 - 4.2 / b, odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * std, m = floor((count + 1) * p);
    for (int tries = 0; tries < 10000; tries++) {
        double u = unit(s) - 0.5, v = unit(s), us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + centre);
        if (k < 0 || k > count) continue;
        if (us >= 0.07 && v <= v_r) return k;
        double bound = (m + 0.5) * log((m + 1) / (odds * (count - m + 1))) +
                       (count + 1) * log((count - m + 1) / (count - k + 1)) +
                       (k + 0.5) * log(odds * (count - k + 1) / (k + 1)) + stirling_tail(m) + stirling_tail(count - m) -
                       stirling_tail(k) - stirling_tail(count - k);
        if (log(v * alpha / (a / (us * us) + b)) <= bound) return k;
    }
    return floor(count * p);
}
__device__ inline double binomial(stream *s, double count, double p)
{
    if (count <= 0 || p <= 0) return 0;
    if (count != count || p >= 1) return count;
    if (p != p) return p;
    return p <= 0.5 ? successes(s, count, p) : count - successes(s, count, 1 - p);
}
KERNEL(draw, draw_args, p)
{
    EACH(i, p.n)
    {
        stream s = {
            p.replayed ? p.replayed[0] : p.seed, (p.replayed ? p.replayed[1] + p.offset : p.offset) / 4, (u64)i, {}, 0
        };
        double x = p.parameter[0][i], v = 0;
        if (VARIANT == GAMMA) v = gamma(&s, x, p.single);
        else if (VARIANT == POISSON) {
            if (!(x >= 0)) report(p.word, 5, 0, 0, 0);
            else v = poisson(&s, x);
        } else if (VARIANT == BINOMIAL) v = binomial(&s, x, p.parameter[1][i]);
        else if (VARIANT == GAMMA_SLOPE) v = gamma_grad_at(x, p.parameter[1][i], p.single ? 1e-10 : 4e-16);
        else v = dirichlet_grad_at(x, p.parameter[1][i], p.parameter[2][i]);
        p.out[i] = made<T>::of(v);
    }
}

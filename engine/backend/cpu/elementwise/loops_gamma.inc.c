/* The incomplete gamma functions in float32, many elements at a time. Included by loops.isa.c where there are vectors.
 *
 * The series and the continued fraction of special.h end after ten to fifty steps, each element after its own number. Here a
 * block's elements are sorted into those of the series and those of the fraction, and a group takes each step together until the
 * last of it is done: more steps, but vectors of them. Elements with a from 20 on, or arguments at the border of what is
 * defined, go one by one. */
enum { GROUP = 32, STEPS_AT_ONCE = 4 };
typedef struct {
    double  a[GROUP], x[GROUP], result[GROUP];
    int64_t at[GROUP];
    int     n;
} gamma_group;

static void weigh(gamma_group *g) /* times gamma_weight, for a < 20 */
{
    for (int i = 0; i < GROUP; i++) {
        double a = g->a[i], x = g->x[i], y = a + 8, r = 1 / y, z = r * r;
        double c = r * POLY64(z, 1. / 156, -691. / 360360, 1. / 1188, -1. / 1680, 1. / 1260, -1. / 360, 1. / 12);
        double p = a * (a + 1) * ((a + 2) * (a + 3)) * ((a + 4) * (a + 5)) * ((a + 6) * (a + 7));
        double stirling = (y - 0.5) * log_f64(y) - y + 0.91893853320467274178 + c;
        g->result[i] *= p * exp_f64(a * log_f64(x) - x - stirling);
    }
}
static void sum_series(gamma_group *g)
{
    double top[GROUP], below[GROUP], power[GROUP], *a = g->a, *x = g->x;
    for (int i = 0; i < GROUP; i++) top[i] = below[i] = power[i] = 1;
    for (int64_t k = 1, more = 1; more && k < 1000; k += STEPS_AT_ONCE) {
        for (int i = 0; i < GROUP; i++) {
            double t = top[i], b = below[i], p = power[i];
            for (int s = 0; s < STEPS_AT_ONCE; s++) {
                double next = a[i] + (double)(k + s);
                p *= x[i], b *= next, t = t * next + p;
            }
            double scale = t > 1e150 ? 1e-150 : 1;
            top[i] = t * scale, below[i] = b * scale, power[i] = p * scale;
        }
        more = 0;
        for (int i = 0; i < GROUP; i++) more |= power[i] > 1e-10 * top[i];
    }
    for (int i = 0; i < GROUP; i++) g->result[i] = top[i] / (below[i] * a[i]);
    weigh(g);
}
static void sum_fraction(gamma_group *g)
{
    double p[GROUP], q[GROUP], last_p[GROUP], last_q[GROUP], *a = g->a, *x = g->x;
    for (int i = 0; i < GROUP; i++) p[i] = x[i] + 1 - a[i], q[i] = last_p[i] = 1, last_q[i] = 0;
    for (int64_t k = 1, more = 1; more && k < 1000; k += STEPS_AT_ONCE) {
        for (int i = 0; i < GROUP; i++) {
            double P = p[i], Q = q[i], before_p = last_p[i], before_q = last_q[i];
            for (int s = 0; s < STEPS_AT_ONCE; s++) {
                double n = (double)(k + s), t = n * (a[i] - n), b = x[i] + 1 - a[i] + 2 * n;
                double next_p = b * P + t * before_p, next_q = b * Q + t * before_q;
                before_p = P, before_q = Q, P = next_p, Q = next_q;
            }
            double scale = ABS64(P) > 1e100 ? 1e-100 : 1;
            p[i] = P * scale, q[i] = Q * scale, last_p[i] = before_p * scale, last_q[i] = before_q * scale;
        }
        more = 0;
        for (int i = 0; i < GROUP; i++) more |= !(ABS64(q[i] * last_p[i] - last_q[i] * p[i]) <= 1e-8 * ABS64(q[i] * last_p[i]));
    }
    for (int i = 0; i < GROUP; i++) g->result[i] = q[i] / p[i];
    weigh(g);
}
/* The elements that are in the group, in the other's complement if it is not the function's own. */
static void finish_group(gamma_group *g, bool series, bool upper, float *out)
{
    if (!g->n) return;
    for (int i = g->n; i < GROUP; i++) g->a[i] = g->a[0], g->x[i] = g->x[0];
    if (series) sum_series(g);
    else sum_fraction(g);
    for (int i = 0; i < g->n; i++) {
        double v = g->result[i], other = 1 - v < 0 ? 0 : 1 - v;
        out[g->at[i]] = (float)(series == upper ? other : v);
    }
    g->n = 0;
}
INLINE void gamma_loop(float *out, const float *a, const float *x, unsigned scalars, int64_t n, bool upper)
{
    gamma_group groups[2] = { { .n = 0 }, { .n = 0 } }; /* fraction, series */
    for (int64_t i = 0; i < n; i++) {
        double A = (double)a[scalars & 1 ? 0 : i], X = (double)x[scalars & 2 ? 0 : i];
        if (!((A > 1e-3) & (A < 20) & (X > 1e-30) & (X < 100))) {
            out[i] = (float)incomplete_gamma(A, X, upper, true);
            continue;
        }
        /* The fraction is slow near x = a. There the complement of the series is exact enough, unless it is small. */
        double       reach = upper ? (A < 1 ? 0 : 3) : 6;
        bool         series = (X < 1) | (X < A + reach);
        gamma_group *g = &groups[series];
        g->a[g->n] = A, g->x[g->n] = X, g->at[g->n++] = i;
        if (g->n == GROUP) finish_group(g, series, upper, out);
    }
    finish_group(&groups[0], false, upper, out);
    finish_group(&groups[1], true, upper, out);
}
static void igamma_groups(void *out, const void *const *in, unsigned scalars, int64_t n)
{
    gamma_loop(out, in[0], in[1], scalars, n, false);
}
static void igammac_groups(void *out, const void *const *in, unsigned scalars, int64_t n)
{
    gamma_loop(out, in[0], in[1], scalars, n, true);
}
#define GAMMA_IN_GROUPS { ROW_igamma_floating, LC_f32, igamma_groups }, { ROW_igammac_floating, LC_f32, igammac_groups },

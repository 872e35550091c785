/* Binomial and multinomial draws with parameters of type REAL; REAL_M(f) is the C library's f for it. Where PyTorch's formula is in the
 * tensor's dtype this one is too; the rest is float64. */

static REAL REAL_(count_gaps)(lc_generator *g, REAL count, REAL p)
{
    double sum = 0, log_q = REAL_M(log1p)(-p);
    for (REAL gaps = 0;; gaps++) {
        sum += ceil(log(lc_next_unit(g)) / log_q);
        if (sum > count) return gaps;
    }
}

static REAL REAL_(reject_binomial)(lc_generator *g, REAL count, REAL p)
{
    double std = REAL_M(sqrt)(count * p * (1 - p)), b = 1.15 + 2.53 * std, a = -0.0873 + 0.0248 * b + 0.01 * p;
    double centre = count * p + 0.5, v_r = 0.92 - 4.2 / b, odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * std;
    double m = REAL_M(floor)((count + 1) * p);
    while (true) {
        double u = lc_next_unit(g) - 0.5, v = lc_next_unit(g), us = 0.5 - fabs(u);
        REAL   k = (REAL)floor((2 * a / us + b) * u + centre);
        if (k < 0 || k > count) continue;
        if (us >= 0.07 && v <= v_r) return k;
        double bound = (m + 0.5) * log((m + 1) / (odds * (count - m + 1))) +
                       (count + 1) * log((count - m + 1) / (count - k + 1)) +
                       (k + 0.5) * log(odds * (count - k + 1) / (k + 1)) + stirling_tail(m) + stirling_tail(count - m) -
                       stirling_tail(k) - stirling_tail(count - k);
        if (log(v * alpha / (a / (us * us) + b)) <= bound) return k;
    }
}

static REAL REAL_(one_binomial)(lc_generator *g, REAL count, REAL p)
{
    if (count <= 0 || p <= 0) return 0;
    if (isnan(count)) return count; /* PyTorch would draw for ever */
    if (p >= 1) return count;
    if (p <= (REAL)0.5) return (count * p >= 10 ? REAL_(reject_binomial) : REAL_(count_gaps))(g, count, p);
    if (!(p > (REAL)0.5)) return (REAL)NAN;
    REAL q = (REAL)(1.0 - p);
    return count - (count * q >= 10 ? REAL_(reject_binomial) : REAL_(count_gaps))(g, count, q);
}

static void REAL_(binomial)(lc_generator *g, REAL *out, int64_t n, const REAL *count, const REAL *p)
{
    for (int64_t i = 0; i < n; i++) out[i] = REAL_(one_binomial)(g, count[i], p[i]);
}

static int REAL_(accumulate)(REAL *p, int64_t n)
{
    REAL sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!(p[i] >= 0) && !isnan(p[i]))
            return lc_fail_int(LC_LucidError, "invalid multinomial distribution (encountering probability entry < 0)");
        if (!isfinite(p[i]))
            return lc_fail_int(LC_LucidError,
                               "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
        p[i] = sum += p[i];
    }
    if (!(sum > 0)) return lc_fail_int(LC_LucidError, "invalid multinomial distribution (sum of probabilities <= 0)");
    for (int64_t i = 0; i < n; i++) p[i] /= sum;
    p[n - 1] = 1;
    return 0;
}

static int64_t REAL_(search)(const REAL *p, int64_t n, double u)
{
    int64_t left = 0, right = n;
    while (right > left) {
        int64_t mid = left + (right - left) / 2;
        if (p[mid] < u) left = mid + 1;
        else right = mid;
    }
    return left;
}

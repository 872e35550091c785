/* Variance. a: means, b: sums of squared deviations from them, both double; the count is common to all states. */
static SMALL void CAT(var_start, SFX)(lc_fold_state *s, int64_t n)
{
    for (int64_t c = 0; c < n; c++) STATE(double, s, a)[c] = 0, STATE(double, s, b)[c] = 0;
    s->count = 0;
}
static SMALL void CAT(var_merge, SFX)(lc_fold_state *to, const lc_fold_state *from, int64_t n)
{
    double x = (double)to->count, y = (double)from->count, total = x + y;
    if (from->count == 0) return;
    if (to->count == 0) { /* unchanged: an infinite mean times no elements would be NaN */
        for (int64_t c = 0; c < n; c++) STATE(double, to, a)
        [c] = STATE(const double, from, a)[c], STATE(double, to, b)[c] = STATE(const double, from, b)[c];
        to->count = from->count;
        return;
    }
    for (int64_t c = 0; c < n; c++) {
        double *mean = STATE(double, to, a) + c, delta = STATE(const double, from, a)[c] - *mean;
        STATE(double, to, b)[c] += STATE(const double, from, b)[c] + delta * delta * (x * y / total);
        *mean += delta * (y / total);
    }
    to->count += from->count;
}
/* A block that stays in L1 is read twice: for its mean, then for the deviations from it. */
static void CAT(var_inner, SFX)(lc_fold_state *s, const void *in, int64_t n, UNUSED int64_t first)
{
    enum { BLOCK = 2048, LANE = 16 };
    for (int64_t start = 0; start < n; start += BLOCK) {
        const T      *p = (const T *)in + start;
        int64_t       m = n - start < BLOCK ? n - start : BLOCK, i = 0;
        double        lane[LANE] = { 0 }, mean = 0, squares = 0;
        lc_fold_state block;
        for (; i + LANE <= m; i += LANE)
            for (int l = 0; l < LANE; l++) lane[l] += (double)p[i + l];
        for (; i < m; i++) mean += (double)p[i];
        for (int l = 0; l < LANE; l++) mean += lane[l], lane[l] = 0;
        mean /= (double)m;
        for (i = 0; i + LANE <= m; i += LANE)
            for (int l = 0; l < LANE; l++) lane[l] += ((double)p[i + l] - mean) * ((double)p[i + l] - mean);
        for (; i < m; i++) squares += ((double)p[i] - mean) * ((double)p[i] - mean);
        for (int l = 0; l < LANE; l++) squares += lane[l];
        STATE(double, &block, a)[0] = mean, STATE(double, &block, b)[0] = squares, block.count = m;
        CAT(var_merge, SFX)(s, &block, 1);
    }
}
static void CAT(var_outer, SFX)(lc_fold_state *s, const void *in, int64_t rows, int64_t row_bytes, int64_t n,
                                UNUSED int64_t first)
{
    double *mean = STATE(double, s, a), *squares = STATE(double, s, b);
    for (int64_t r = 0; r < rows; r++) {
        const T *p = ROW_AT(r);
        double   share = 1 / (double)++s->count;
        INDEPENDENT
        for (int64_t c = 0; c < n; c++) {
            double delta = (double)p[c] - mean[c];
            mean[c] += delta * share;
            squares[c] += delta * ((double)p[c] - mean[c]);
        }
    }
}
static SMALL void CAT(var_finish, SFX)(const lc_fold_state *s, int64_t n, double correction, void *value, UNUSED void *index)
{
    double divisor = (double)s->count - correction;
    for (int64_t c = 0; c < n; c++) ((T *)value)[c] = (T)(STATE(const double, s, b)[c] / (divisor > 0 ? divisor : 0));
}
static SMALL void CAT(std_finish, SFX)(const lc_fold_state *s, int64_t n, double correction, void *value, UNUSED void *index)
{
    double divisor = (double)s->count - correction;
    for (int64_t c = 0; c < n; c++) ((T *)value)[c] = (T)sqrt(STATE(const double, s, b)[c] / (divisor > 0 ? divisor : 0));
}
static const lc_fold CAT(var, SFX) = { CAT(var_start, SFX), CAT(var_inner, SFX),  CAT(var_outer, SFX),
                                       CAT(var_merge, SFX), CAT(var_finish, SFX), NULL },
                              CAT(std, SFX) = { CAT(var_start, SFX), CAT(var_inner, SFX),  CAT(var_outer, SFX),
                                                CAT(var_merge, SFX), CAT(std_finish, SFX), NULL };

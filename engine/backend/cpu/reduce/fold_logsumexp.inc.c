/* log(sum(exp(x))). a: the maximum so far (NaN wins), b: the sum of exponentials of the elements minus the maximum, double.
 * A block that stays in L1 is read twice: for its maximum, then for the exponentials. An infinite maximum is not subtracted:
 * then the result is infinite whatever the other elements are. */
#define NAME(part) CAT(CAT(logsumexp, part), SFX)
INLINE T NAME(shift)(T most) { return most - most == 0 ? most : 0; }
/* Rescales a sum to a new maximum. An empty sum stays 0: no 0 times infinity. */
INLINE double NAME(rescaled)(double sum, T from, T to)
{
    return sum == 0 ? 0 : sum * exp((double)NAME(shift)(from) - (double)NAME(shift)(to));
}
static SMALL void NAME(start)(lc_fold_state *s, int64_t n)
{
    for (int64_t c = 0; c < n; c++) STATE(T, s, a)[c] = -INFINITY, STATE(double, s, b)[c] = 0;
}
static SMALL void NAME(merge)(lc_fold_state *to, const lc_fold_state *from, int64_t n)
{
    for (int64_t c = 0; c < n; c++) {
        T      *m = STATE(T, to, a) + c, x = STATE(const T, from, a)[c], most = m_max(x, *m);
        double *sum = STATE(double, to, b) + c;
        *sum = NAME(rescaled)(*sum, *m, most) + NAME(rescaled)(STATE(const double, from, b)[c], x, most), *m = most;
    }
}
static void NAME(inner)(lc_fold_state *s, const void *in, int64_t n, UNUSED int64_t first)
{
    enum { BLOCK = 2048, LANES = 16 };
    for (int64_t at = 0; at < n; at += BLOCK) {
        const T      *p = (const T *)in + at;
        int64_t       m = n - at < BLOCK ? n - at : BLOCK, i = 0;
        T             lane[LANES] = { 0 };
        double        sum = 0;
        lc_fold_state block;
        CAT(amax_start, SFX)(&block, 1);
        CAT(amax_inner, SFX)(&block, p, m, 0);
        T most = STATE(T, &block, a)[0], less = NAME(shift)(most);
        for (; i + LANES <= m; i += LANES) {
            INDEPENDENT
            for (int l = 0; l < LANES; l++) lane[l] += m_exp(p[i + l] - less);
        }
        for (int l = 0; i < m; i++, l++) lane[l] += m_exp(p[i] - less);
        for (int l = 0; l < LANES; l++) sum += (double)lane[l];
        STATE(double, &block, b)[0] = sum;
        NAME(merge)(s, &block, 1);
    }
}
/* Eight rows at a time, columns in pieces: their maxima and sums stay in L1. */
static void NAME(outer)(lc_fold_state *s, const void *in, int64_t rows, int64_t row_bytes, int64_t n, UNUSED int64_t first)
{
    enum { PIECE = 64, ROWS = 8 };
    for (int64_t r = 0, k; r < rows; r += k) {
        k = rows - r < ROWS ? rows - r : ROWS;
        for (int64_t at = 0, m; at < n; at += m) {
            T       part[PIECE], most[PIECE], less[PIECE], *high = STATE(T, s, a) + at;
            double *sum = STATE(double, s, b) + at;
            m = n - at < PIECE ? n - at : PIECE;
            for (int64_t c = 0; c < m; c++) most[c] = high[c], part[c] = 0;
            for (int64_t i = 0; i < k; i++) {
                const T *p = ROW_AT(r + i) + at;
                INDEPENDENT
                for (int64_t c = 0; c < m; c++) most[c] = m_max(p[c], most[c]);
            }
            for (int64_t c = 0; c < m; c++) less[c] = NAME(shift)(most[c]);
            for (int64_t i = 0; i < k; i++) {
                const T *p = ROW_AT(r + i) + at;
                INDEPENDENT
                for (int64_t c = 0; c < m; c++) part[c] += m_exp(p[c] - less[c]);
            }
            INDEPENDENT
            for (int64_t c = 0; c < m; c++) {
                T rest = m_exp(NAME(shift)(high[c]) - less[c]);
                sum[c] = (sum[c] == 0 ? 0 : sum[c] * (double)rest) + (double)part[c], high[c] = most[c];
            }
        }
    }
}
static SMALL void NAME(finish)(const lc_fold_state *s, int64_t n, UNUSED double parameter, void *value, UNUSED void *index)
{
    for (int64_t c = 0; c < n; c++)
        ((T *)value)[c] = (T)(log(STATE(const double, s, b)[c]) + (double)NAME(shift)(STATE(const T, s, a)[c]));
}
static const lc_fold CAT(_logsumexp, SFX) = { NAME(start), NAME(inner), NAME(outer), NAME(merge), NAME(finish), NULL };
#undef NAME

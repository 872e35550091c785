/* Included once per floating dtype: T in memory, W for computing, LOAD to W; ROUND is applied after each step, as a
 * computation in T would. */
static void NAME(range)(const void *in, int64_t n, double *low, double *high)
{
    const T *x = in;
    W        least[LANES], most[LANES];
    bool     nan[LANES] = { 0 };
    for (int l = 0; l < LANES; l++) least[l] = most[l] = LOAD(x[0]);
    for (int64_t i = 0; i < n; i += LANES) {
        const T *at = i + LANES <= n ? x + i : n >= LANES ? x + n - LANES : x; /* the last ones may be processed twice */
        int64_t  lanes = n < LANES ? n : LANES;
        for (int64_t l = 0; l < lanes; l++) {
            W v = LOAD(at[l]);
            least[l] = v < least[l] ? v : least[l], most[l] = v > most[l] ? v : most[l], nan[l] |= v != v;
        }
    }
    for (int l = 1; l < LANES; l++) {
        least[0] = least[l] < least[0] ? least[l] : least[0], most[0] = most[l] > most[0] ? most[l] : most[0];
        nan[0] |= nan[l];
    }
    *low = nan[0] ? NAN : (double)least[0], *high = nan[0] ? NAN : (double)most[0];
}

static inline __attribute__((always_inline)) void NAME(bins_from)(const T *x, int64_t step, int64_t n, const bin_line *b,
                                                                  int32_t *bin)
{
    W       low = (W)b->low, high = (W)b->high, span = ROUND(high - low), count = ROUND((W)b->bins);
    int32_t last = (int32_t)b->bins - 1;
    for (int64_t i = 0; i < n; i++) {
        W       v = LOAD(x[i * step]), p = ROUND(ROUND(ROUND(v - low) * count) / span);
        int     here = (v >= low) & (v <= high);
        int32_t at = (int32_t)(here ? p : (W)0);
        bin[i] = here ? (at < last ? at : last) : -1;
    }
    if (!b->edges) return;
    const T *edge = b->edges;
    for (int64_t i = 0; i < n; i++) { /* values near an edge may be on the wrong side of it */
        int32_t at = bin[i] < 0 ? 0 : bin[i];
        W       v = LOAD(x[i * step]);
        at += (at < last) & (v >= LOAD(edge[at + 1]));
        at -= (at > 0) & (v < LOAD(edge[at]));
        bin[i] = bin[i] < 0 ? -1 : at;
    }
}
static void NAME(bins)(const void *in, int64_t step, int64_t n, const bin_line *b, int32_t *bin)
{
    if (step == 1) NAME(bins_from)(in, 1, n, b, bin);
    else NAME(bins_from)(in, step, n, b, bin);
}
#undef W
#undef LOAD
#undef ROUND

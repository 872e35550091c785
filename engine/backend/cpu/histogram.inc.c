/* Included per floating dtype: T in memory, W computed in, LOAD to W; ROUND is applied after each step, as a computation in T would. */
static void NAME(range)(const void *in, int64_t n, double *low, double *high) /* NaN if there is one */
{
    const T *x = in;
    W        least[LANES], most[LANES];
    bool     nan[LANES] = { 0 };
    for (int l = 0; l < LANES; l++) least[l] = most[l] = LOAD(x[0]);
    for (int64_t i = 0; i < n; i += LANES) {
        const T *at = i + LANES <= n ? x + i : n >= LANES ? x + n - LANES : x; /* the last ones may be seen twice */
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

/* For n <= TILE values, step apart: append the number of the bin to index; -1 goes into `inside` where there is none. */
static void NAME(bins)(const void *in, int64_t step, int64_t n, const bin_line *b, int64_t *index, bool *inside)
{
    const T *x = in, *edge = b->edges;
    W        low = (W)b->low, high = (W)b->high, span = ROUND(high - low), count = ROUND((W)b->bins);
    int32_t  at[TILE], bins = (int32_t)b->bins;
    for (int64_t i = 0; i < n; i++) {
        W    v = LOAD(x[i * step]), p = ROUND(ROUND(ROUND(v - low) * count) / span);
        bool here = (v >= low) & (v <= high);
        at[i] = (int32_t)(here ? p : 0);
        inside[i] &= here;
    }
    if (edge) /* what is near an edge may have been put to the wrong side of it */
        for (int64_t i = 0; i < n; i++) {
            int32_t first = at[i] > 0 ? at[i] - 1 : 0, stop = at[i] + 2 < bins + 1 ? at[i] + 2 : bins + 1, p = first - 1;
            for (int32_t e = first; e < stop; e++) p += LOAD(edge[e]) <= LOAD(x[i * step]);
            at[i] = p > 0 ? p : 0;
        }
    for (int64_t i = 0; i < n; i++) index[i] = index[i] * bins + (at[i] < bins ? at[i] : bins - 1);
}
#undef T
#undef W
#undef LOAD
#undef ROUND
#undef NAME

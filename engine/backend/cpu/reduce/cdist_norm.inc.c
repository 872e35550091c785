/* Distances of n rows b, m elements each, to one row a, by one norm: STEP adds a difference to a sum, JOIN adds two sums,
 * FINISH computes the distance. */
static void NAME(NORM)(const void *a, const void *b, void *to, int64_t n, int64_t m, UNUSED double p)
{
    const T *x = a, *y = b;
    T       *out = to;
    for (int64_t j = 0; j < n; j++, y += m) {
        T       part[LANES], r = 0;
        int64_t i = 0;
        for (int l = 0; l < LANES; l++) part[l] = 0;
        for (; i + LANES <= m; i += LANES)
            for (int l = 0; l < LANES; l++) {
                T d = ABS(x[i + l] - y[i + l]);
                part[l] = STEP(part[l], d);
            }
        for (; i < m; i++) {
            T d = ABS(x[i] - y[i]);
            r = STEP(r, d);
        }
        for (int l = 0; l < LANES; l++) r = JOIN(r, part[l]);
        out[j] = FINISH(r);
    }
}
#undef NORM
#undef STEP
#undef JOIN
#undef FINISH

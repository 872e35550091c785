/* Distances of rows for elements of type T: n of them, m apart from one to the next, to one row. NAME(f): by kind of norm. */
#define DISTANCES(f, START, STEP, JOIN, FINISH)                                                                                \
    static void NAME(f)(const void *a, const void *b, void *to, int64_t n, int64_t m, UNUSED double p)                         \
    {                                                                                                                          \
        const T *x = a, *y = b;                                                                                                \
        T       *out = to;                                                                                                     \
        for (int64_t j = 0; j < n; j++, y += m) {                                                                              \
            T       part[LANES], r = START;                                                                                    \
            int64_t i = 0;                                                                                                     \
            for (int l = 0; l < LANES; l++) part[l] = START;                                                                   \
            for (; i + LANES <= m; i += LANES)                                                                                 \
                for (int l = 0; l < LANES; l++) {                                                                              \
                    T d = ABS(x[i + l] - y[i + l]);                                                                            \
                    part[l] = STEP(part[l], d);                                                                                \
                }                                                                                                              \
            for (; i < m; i++) {                                                                                               \
                T d = ABS(x[i] - y[i]);                                                                                        \
                r = STEP(r, d);                                                                                                \
            }                                                                                                                  \
            for (int l = 0; l < LANES; l++) r = JOIN(r, part[l]);                                                              \
            out[j] = FINISH(r);                                                                                                \
        }                                                                                                                      \
    }
DISTANCES(none, 0, COUNT, PLUS, ITSELF)
DISTANCES(one, 0, PLUS, PLUS, ITSELF)
DISTANCES(two, 0, SQUARES, PLUS, ROOT)
DISTANCES(most, 0, LARGER, LARGER, ITSELF)
DISTANCES(most_number, 0, LARGER_NUMBER, LARGER_NUMBER, ITSELF)
DISTANCES(any, 0, POWERS, PLUS, INVERSE)
#undef DISTANCES
#undef T
#undef NAME
#undef ABS
#undef ROOT
#undef POW

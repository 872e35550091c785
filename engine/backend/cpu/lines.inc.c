/* The softmax family for elements of type T. PARTS is how many partial results are kept side by side: for a single line they are joined
 * at the end, of lines side by side each is its own. The same text serves both: JOINED says which. */
/* NaNs lose here; they win later, because the sum of exponentials has them all. */
static inline void NAME(largest)(const T *x, int64_t n, T *part)
{
    int64_t i = 0;
    for (int l = 0; l < PARTS; l++) part[l] = -INFINITY;
    for (; i + PARTS <= n; i += PARTS)
        for (int l = 0; l < PARTS; l++) part[l] = x[i + l] > part[l] ? x[i + l] : part[l];
    for (; i < n; i++) part[0] = x[i] > part[0] ? x[i] : part[0];
    for (int l = 1; l < PARTS && JOINED; l++) part[0] = part[l] > part[0] ? part[l] : part[0];
    for (int l = 1; l < PARTS && JOINED; l++) part[l] = part[0];
}
static inline void NAME(total)(const T *x, int64_t n, T *part)
{
    int64_t i = 0;
    for (int l = 0; l < PARTS; l++) part[l] = 0;
    for (; i + PARTS <= n; i += PARTS)
        for (int l = 0; l < PARTS; l++) part[l] += x[i + l];
    for (; i < n; i++) part[i % PARTS] += x[i];
    for (int step = PARTS / 2; step && JOINED; step /= 2)
        for (int l = 0; l < step; l++) part[l] += part[l + step];
    for (int l = 1; l < PARTS && JOINED; l++) part[l] = part[0];
}
/* out[i] = EACH for every element; p is the partial result that belongs to it. */
#define MAP(out, EACH)                                                                                                         \
    do {                                                                                                                       \
        int64_t i_ = 0;                                                                                                        \
        for (; i_ + PARTS <= n; i_ += PARTS)                                                                                   \
            for (int l = 0; l < PARTS; l++) {                                                                                  \
                const int64_t i = i_ + l;                                                                                      \
                const T p     UNUSED = part[l];                                                                                \
                out[i] = EACH;                                                                                                 \
            }                                                                                                                  \
        for (; i_ < n; i_++) {                                                                                                 \
            const int64_t i = i_;                                                                                              \
            const T p     UNUSED = part[0];                                                                                    \
            out[i] = EACH;                                                                                                     \
        }                                                                                                                      \
    } while (0)

static void NAME(softmax)(void *x_, UNUSED const void *y_, UNUSED void *scratch_, int64_t length)
{
    T            *x = x_, part[PARTS];
    const int64_t n = length * (JOINED ? 1 : PARTS);
    NAME(largest)(x, n, part);
    MAP(x, x[i] - p);
    EXP(x, n);
    NAME(total)(x, n, part);
    for (int l = 0; l < PARTS; l++) part[l] = 1 / part[l];
    MAP(x, x[i] * p);
}
static void NAME(log_softmax)(void *x_, UNUSED const void *y_, void *scratch_, int64_t length)
{
    T            *x = x_, *scratch = scratch_, part[PARTS];
    const int64_t n = length * (JOINED ? 1 : PARTS);
    NAME(largest)(x, n, part);
    MAP(scratch, x[i] = x[i] - p);
    EXP(scratch, n);
    NAME(total)(scratch, n, part);
    for (int l = 0; l < PARTS; l++) part[l] = LOG(part[l]);
    MAP(x, x[i] - p);
}
static void NAME(softmax_backward)(void *g_, const void *y_, void *scratch_, int64_t length)
{
    T            *g = g_, *scratch = scratch_, part[PARTS] = { 0 };
    const T      *y = y_;
    const int64_t n = length * (JOINED ? 1 : PARTS);
    MAP(scratch, g[i] * y[i]);
    NAME(total)(scratch, n, part);
    MAP(g, y[i] * (g[i] - p));
}
static void NAME(log_softmax_backward)(void *g_, const void *y_, void *scratch_, int64_t length)
{
    T            *g = g_, *scratch = scratch_, part[PARTS];
    const int64_t n = length * (JOINED ? 1 : PARTS);
    NAME(total)(g, n, part);
    memcpy(scratch, y_, (size_t)n * sizeof(T));
    EXP(scratch, n);
    MAP(g, g[i] - scratch[i] * p);
}
#undef MAP
#undef NAME
#undef JOINED

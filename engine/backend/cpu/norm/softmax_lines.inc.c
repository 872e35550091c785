/* The softmax family for elements of type T. PARTS is the number of partial results side by side: those of a single line are
 * joined at the end; of interleaved lines, each is its own result. The same text serves both: JOINED says which. */
/* NaNs lose here; they win later, because the sum of exponentials includes them. */
static inline void NAME(largest)(const T *x, int64_t n, T *part)
{
    int64_t i = 0;
    for (int l = 0; l < PARTS; l++) part[l] = -INFINITY;
    for (; i + PARTS <= n; i += PARTS) {
        INDEPENDENT
        for (int l = 0; l < PARTS; l++) part[l] = x[i + l] > part[l] ? x[i + l] : part[l];
    }
    for (; i < n; i++) part[0] = x[i] > part[0] ? x[i] : part[0];
    for (int l = 1; l < PARTS && JOINED; l++) part[0] = part[l] > part[0] ? part[l] : part[0];
    for (int l = 1; l < PARTS && JOINED; l++) part[l] = part[0];
}
/* EACH for every element i; p is the partial result that belongs to it. */
#define MAP(EACH)                                                                                                              \
    do {                                                                                                                       \
        int64_t i_ = 0;                                                                                                        \
        for (; i_ + PARTS <= n; i_ += PARTS) {                                                                                 \
            INDEPENDENT                                                                                                        \
            for (int l = 0; l < PARTS; l++) {                                                                                  \
                const int64_t i = i_ + l;                                                                                      \
                const T p     UNUSED = part[l];                                                                                \
                EACH;                                                                                                          \
            }                                                                                                                  \
        }                                                                                                                      \
        for (; i_ < n; i_++) {                                                                                                 \
            const int64_t i = i_, l UNUSED = i_ % PARTS;                                                                       \
            const T p UNUSED = part[0];                                                                                        \
            EACH;                                                                                                              \
        }                                                                                                                      \
    } while (0)
/* Joins the partial sums, if they belong to one line. */
static inline void NAME(join)(T *sum)
{
    for (int step = PARTS / 2; step && JOINED; step /= 2)
        for (int l = 0; l < step; l++) sum[l] += sum[l + step];
    for (int l = 1; l < PARTS && JOINED; l++) sum[l] = sum[0];
}

static void NAME(softmax)(void *out_, const void *x_, UNUSED const void *y_, int64_t length)
{
    T            *out = out_, part[PARTS], sum[PARTS] = { 0 };
    const T      *x = x_;
    const int64_t n = length * (JOINED ? 1 : PARTS);
    NAME(largest)(x, n, part);
    MAP(T e = EXP(x[i] - p); out[i] = e; sum[l] += e);
    NAME(join)(sum);
    for (int l = 0; l < PARTS; l++) part[l] = 1 / sum[l];
    MAP(out[i] *= p);
}
static void NAME(log_softmax)(void *out_, const void *x_, UNUSED const void *y_, int64_t length)
{
    T            *out = out_, part[PARTS], sum[PARTS] = { 0 };
    const T      *x = x_;
    const int64_t n = length * (JOINED ? 1 : PARTS);
    NAME(largest)(x, n, part);
    MAP(sum[l] += EXP(x[i] - p));
    NAME(join)(sum);
    for (int l = 0; l < PARTS; l++) sum[l] = LOG(sum[l]);
    MAP(out[i] = x[i] - p - sum[l]);
}
static void NAME(softmax_backward)(void *out_, const void *g_, const void *y_, int64_t length)
{
    T            *out = out_, part[PARTS] = { 0 };
    const T      *g = g_, *y = y_;
    const int64_t n = length * (JOINED ? 1 : PARTS);
    MAP(part[l] += g[i] * y[i]);
    NAME(join)(part);
    MAP(out[i] = y[i] * (g[i] - p));
}
static void NAME(log_softmax_backward)(void *out_, const void *g_, const void *y_, int64_t length)
{
    T            *out = out_, part[PARTS] = { 0 };
    const T      *g = g_, *y = y_;
    const int64_t n = length * (JOINED ? 1 : PARTS);
    MAP(part[l] += g[i]);
    NAME(join)(part);
    MAP(out[i] = g[i] - EXP(y[i]) * p);
}
#undef MAP
#undef NAME
#undef JOINED

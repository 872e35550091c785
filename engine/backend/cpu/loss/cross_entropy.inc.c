/* The lines of cross_entropy.h for elements of type T. */

static void NAME(line)(const void *x_, int64_t n, const void *w_, void *lse, void *weighed)
{
    const T *x = x_, *w = w_;
    T        top[PARTS], sum[PARTS] = { 0 }, m;
    int64_t  i = 0, l;
    for (l = 0; l < PARTS; l++) top[l] = -(T)INFINITY; /* NaNs lose here; they win in the sum */
    for (; i + PARTS <= n; i += PARTS) {
        INDEPENDENT
        for (l = 0; l < PARTS; l++) top[l] = x[i + l] > top[l] ? x[i + l] : top[l];
    }
    for (; i < n; i++) top[0] = x[i] > top[0] ? x[i] : top[0];
    for (m = top[0], l = 1; l < PARTS; l++) m = top[l] > m ? top[l] : m;
    for (i = 0; i + PARTS <= n; i += PARTS) {
        INDEPENDENT
        for (l = 0; l < PARTS; l++) sum[l] += EXP(x[i + l] - m);
    }
    for (; i < n; i++) sum[0] += EXP(x[i] - m);
    for (int step = PARTS / 2; step; step /= 2)
        for (l = 0; l < step; l++) sum[l] += sum[l + step];
    *(T *)lse = m + LOG(sum[0]);
    if (!weighed) return;
    for (l = 0; l < PARTS; l++) sum[l] = 0;
    for (i = 0; i + PARTS <= n; i += PARTS) {
        INDEPENDENT
        for (l = 0; l < PARTS; l++) sum[l] += w ? w[i + l] * x[i + l] : x[i + l];
    }
    for (; i < n; i++) sum[0] += w ? w[i] * x[i] : x[i];
    for (int step = PARTS / 2; step; step /= 2)
        for (l = 0; l < step; l++) sum[l] += sum[l + step];
    *(T *)weighed = sum[0];
}

static void NAME(line_backward)(void *out_, const void *x_, int64_t n, const void *w_, double lse_, double a_, double b_)
{
    T       *out = out_, lse = (T)lse_, a = (T)a_, b = (T)b_;
    const T *x = x_, *w = w_;
    if (w && b != 0) {
        INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = a * EXP(x[i] - lse) - b * w[i];
    } else {
        INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = a * EXP(x[i] - lse) - b;
    }
}

static void NAME(wide)(const void *x_, int64_t n, int64_t step, const void *w_, void *lse, void *weighed)
{
    const T *x = x_, *w = w_;
    T        top[CROSS_ENTROPY_LANES], sum[CROSS_ENTROPY_LANES] = { 0 };
    for (int l = 0; l < CROSS_ENTROPY_LANES; l++) top[l] = -(T)INFINITY;
    for (int64_t i = 0; i < n; i++) {
        INDEPENDENT
        for (int l = 0; l < CROSS_ENTROPY_LANES; l++) top[l] = x[i * step + l] > top[l] ? x[i * step + l] : top[l];
    }
    for (int64_t i = 0; i < n; i++) {
        INDEPENDENT
        for (int l = 0; l < CROSS_ENTROPY_LANES; l++) sum[l] += EXP(x[i * step + l] - top[l]);
    }
    INDEPENDENT
    for (int l = 0; l < CROSS_ENTROPY_LANES; l++) ((T *)lse)[l] = top[l] + LOG(sum[l]);
    if (!weighed) return;
    for (int l = 0; l < CROSS_ENTROPY_LANES; l++) sum[l] = 0;
    for (int64_t i = 0; i < n; i++) {
        T by = w ? w[i] : (T)1;
        INDEPENDENT
        for (int l = 0; l < CROSS_ENTROPY_LANES; l++) sum[l] += by * x[i * step + l];
    }
    for (int l = 0; l < CROSS_ENTROPY_LANES; l++) ((T *)weighed)[l] = sum[l];
}

static void NAME(wide_backward)(void *out_, const void *x_, int64_t n, int64_t step, const void *w_, const void *lse_,
                                const void *a_, const void *b_)
{
    T       *out = out_;
    const T *x = x_, *w = w_, *lse = lse_, *a = a_, *b = b_;
    for (int64_t i = 0; i < n; i++) {
        T by = w ? w[i] : (T)1;
        INDEPENDENT
        for (int l = 0; l < CROSS_ENTROPY_LANES; l++) out[i * step + l] = a[l] * EXP(x[i * step + l] - lse[l]) - b[l] * by;
    }
}

static void NAME(align)(void *now_, const void *before_, const void *skip_, const void *score_, int64_t n)
{
    T       *now = now_;
    const T *before = before_, *skip = skip_, *score = score_;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        T x = before[i], y = before[i - 1], z = before[i - 2] + skip[i], m = x > y ? x : y;
        m = z > m ? z : m;
        m = m == -(T)INFINITY ? 0 : m;
        now[i] = score[i] + m + LOG(EXP(x - m) + EXP(y - m) + EXP(z - m));
    }
}

#undef T
#undef LOG
#undef EXP
#undef NAME

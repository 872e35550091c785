/* Loops of the normalisations for elements of type T. */
enum { NAME(LANES) = VECTOR_BYTES / sizeof(T), NAME(STEP) = 4 * NAME(LANES) };
typedef T NAME(vector) __attribute__((vector_size(VECTOR_BYTES)));
typedef T NAME(loose) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T))));
#define LOAD(p)     (*(const NAME(loose) *)(p))
#define STORE(p, x) (*(NAME(loose) *)(p) = (x))
#define FETCH(p)    __builtin_prefetch(p, 0, 3)
#define CLAIM(p)    __builtin_prefetch(p, 1, 3)        /* to be written */
#define NEAR(n)     ((n) * (int64_t)sizeof(T) <= 8192) /* rows short enough that prefetched lines are not evicted again */
#define LANES       NAME(LANES)
#define EACH_OF_4   _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++)

/* The sum of four vectors. The first step adds vectors: reading single elements of a vector just stored would wait for the
 * store. */
static inline T NAME(joined)(const NAME(vector) * sum)
{
    NAME(vector) all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    typedef T half __attribute__((vector_size(VECTOR_BYTES / 2)));
    half      x[2];
    memcpy(x, &all, sizeof all);
    x[0] += x[1];
    T lanes[NAME(LANES) / 2];
    memcpy(lanes, x, sizeof lanes);
    for (int step = NAME(LANES) / 4; step; step /= 2)
        for (int l = 0; l < step; l++) lanes[l] += lanes[l + step];
    return lanes[0];
}

/* ---- sums along a line; squares are fused with their sums, which frees the adders ---- */
#ifndef __clang__
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#endif
static void NAME(moments)(const void *x_, int64_t n, double *mean, double *square)
{
#ifdef __clang__
#pragma clang fp contract(fast)
#endif
    const T *x = x_;
    int64_t  i = 0;
    T        total, left, m, d;
    NAME(vector) sum[4] = { 0 }, low[4] = { 0 };
    for (; i + NAME(STEP) <= n; i += NAME(STEP)) EACH_OF_4 sum[k] += LOAD(x + i + k * LANES);
    for (; i + LANES <= n; i += LANES) sum[0] += LOAD(x + i);
    for (total = NAME(joined)(sum); i < n; i++) total += x[i];
    m = total / (T)n;
    EACH_OF_4 sum[k] = low[k];
    for (i = 0; i + NAME(STEP) <= n; i += NAME(STEP)) EACH_OF_4
        {
            NAME(vector) apart = LOAD(x + i + k * LANES) - m;
            sum[k] += apart * apart, low[k] += apart;
        }
    for (; i + LANES <= n; i += LANES) {
        NAME(vector) apart = LOAD(x + i) - m;
        sum[0] += apart * apart, low[0] += apart;
    }
    for (total = NAME(joined)(sum), left = NAME(joined)(low); i < n; i++) d = x[i] - m, total += d * d, left += d;
    *mean = (double)m + (double)left / (double)n; /* the rounding error of m */
    *square = (double)total - (double)left * (double)left / (double)n;
}
static double NAME(squares)(const void *x_, int64_t n)
{
#ifdef __clang__
#pragma clang fp contract(fast)
#endif
    const T *x = x_;
    int64_t  i = 0;
    T        total;
    NAME(vector) sum[4] = { 0 };
    for (; i + NAME(STEP) <= n; i += NAME(STEP)) EACH_OF_4 sum[k] += LOAD(x + i + k * LANES) * LOAD(x + i + k * LANES);
    for (; i + LANES <= n; i += LANES) sum[0] += LOAD(x + i) * LOAD(x + i);
    for (total = NAME(joined)(sum); i < n; i++) total += x[i] * x[i];
    return (double)total;
}
/* Differences from the first row, in one pass: m and q become sums of them and of their squares. A row is at most sqrt(rows)
 * deviations from their mean, so cancellation at the end costs a factor of the number of rows at worst, mostly of two. */
static void NAME(column_moments)(const void *x_, int64_t rows, int64_t n, void *mean, void *square)
{
#ifdef __clang__
#pragma clang fp contract(fast)
#endif
    enum { ROWS = 8 };
    const T *x = x_, *a = x;
    T       *m = mean, *q = square, share = 1 / (T)rows;
    int64_t  r = 0, i, ahead = NEAR(n) ? ROWS * n : 0;
    memset(m, 0, (size_t)n * sizeof(T)), memset(q, 0, (size_t)n * sizeof(T));
    for (; r + ROWS <= rows; r += ROWS, a += ROWS * n) {
        for (i = 0; i + LANES <= n; i += LANES) {
            NAME(vector) first = LOAD(x + i), sum = LOAD(m + i), squares = LOAD(q + i);
            _Pragma("GCC unroll 8") for (int k = 0; k < ROWS; k++)
            {
                FETCH(a + k * n + i + ahead);
                NAME(vector) apart = LOAD(a + k * n + i) - first;
                sum += apart, squares += apart * apart;
            }
            STORE(m + i, sum), STORE(q + i, squares);
        }
        for (; i < n; i++)
            for (int k = 0; k < ROWS; k++) {
                T apart = a[k * n + i] - x[i];
                m[i] += apart, q[i] += apart * apart;
            }
    }
    for (; r < rows; r++, a += n) {
        INDEPENDENT
        for (i = 0; i < n; i++) m[i] += a[i] - x[i], q[i] += (a[i] - x[i]) * (a[i] - x[i]);
    }
    INDEPENDENT
    for (i = 0; i < n; i++) {
        T apart = m[i] * share, most = q[i] - m[i] * apart;
        m[i] = apart, q[i] = most > 0 || most != most ? most : 0;
    }
}
#ifndef __clang__
#pragma GCC pop_options
#endif
/* Sums of WEIGHTED(i), the gradient at i, and of that times (x - mean). */
#define DOTS                                                                                                                   \
    const T *g = g_, *x = x_;                                                                                                  \
    const T  m = (T)mean;                                                                                                      \
    int64_t  i = 0;                                                                                                            \
    T        total, product;                                                                                                   \
    NAME(vector) s[4] = { 0 }, p[4] = { 0 };                                                                                   \
    for (; i + NAME(STEP) <= n; i += NAME(STEP)) EACH_OF_4                                                                     \
        {                                                                                                                      \
            NAME(vector) a = VECTOR(i + k * LANES);                                                                            \
            s[k] += a, p[k] += a * (LOAD(x + i + k * LANES) - m);                                                              \
        }                                                                                                                      \
    for (; i + LANES <= n; i += LANES) {                                                                                       \
        NAME(vector) a = VECTOR(i);                                                                                            \
        s[0] += a, p[0] += a * (LOAD(x + i) - m);                                                                              \
    }                                                                                                                          \
    total = NAME(joined)(s), product = NAME(joined)(p);                                                                        \
    for (; i < n; i++) total += SCALAR(i), product += SCALAR(i) * (x[i] - m);                                                  \
    sum[0] += (double)total, sum[1] += (double)product;
#define VECTOR(i) LOAD(g + (i))
#define SCALAR(i) g[i]
static void NAME(dots)(const void *g_, const void *x_, int64_t n, double mean, double sum[2]) { DOTS }
#undef VECTOR
#undef SCALAR
#define VECTOR(i) (LOAD(g + (i)) * LOAD(w + (i)))
#define SCALAR(i) (g[i] * w[i])
static void NAME(dots_each)(const void *g_, const void *x_, int64_t n, double mean, const void *weight, double sum[2])
{
    const T *w = weight;
    if (!w) return NAME(dots)(g_, x_, n, mean, sum);
    DOTS
}
#undef VECTOR
#undef SCALAR
#undef DOTS

/* ---- element by element ---- */
static void NAME(scale)(void *out_, const void *x_, int64_t n, double mean, double factor, double shift)
{
    T       *out = out_;
    const T *x = x_, m = (T)mean, f = (T)factor, s = (T)shift;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) out[i] = (x[i] - m) * f + s;
}
static void NAME(scale_each)(void *out_, const void *x_, int64_t n, double mean, double factor, const void *weight,
                             const void *bias)
{
    T       *out = out_;
    const T *x = x_, *w = weight, *b = bias, m = (T)mean, f = (T)factor;
    if (w && b) {
        INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = (x[i] - m) * f * w[i] + b[i];
    } else if (w) {
        INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = (x[i] - m) * f * w[i];
    } else if (b) {
        INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = (x[i] - m) * f + b[i];
    } else NAME(scale)(out_, x_, n, mean, factor, 0);
}
static void NAME(slope)(void *out_, const void *g_, const void *x_, int64_t n, double mean, const double by[4])
{
    T       *out = out_;
    const T *g = g_, *x = x_, m = (T)mean, a = (T)by[0], b = (T)by[1], e = (T)by[2], r = (T)by[3];
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) out[i] = (g[i] * a - e - (x[i] - m) * b) * r;
}
static void NAME(slope_each)(void *out_, const void *g_, const void *x_, int64_t n, double mean, const void *weight,
                             const double by[4])
{
    T       *out = out_;
    const T *g = g_, *x = x_, *w = weight, m = (T)mean, b = (T)by[1], e = (T)by[2], r = (T)by[3];
    if (!w) return NAME(slope)(out_, g_, x_, n, mean, by);
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) out[i] = (g[i] * w[i] - e - (x[i] - m) * b) * r;
}
static void NAME(sums_each)(const void *g_, const void *x_, int64_t n, double mean, double factor, void *dweight, void *dbias)
{
    const T *g = g_, *x = x_, m = (T)mean, f = (T)factor;
    T       *dw = dweight, *db = dbias;
    if (dw && db) {
        INDEPENDENT
        for (int64_t i = 0; i < n; i++) dw[i] += g[i] * ((x[i] - m) * f), db[i] += g[i];
    } else if (dw) {
        INDEPENDENT
        for (int64_t i = 0; i < n; i++) dw[i] += g[i] * ((x[i] - m) * f);
    } else if (db) {
        INDEPENDENT
        for (int64_t i = 0; i < n; i++) db[i] += g[i];
    }
}

/* ---- columns: several rows at a time, so that sums are read and written once for them. The hardware prefetches only to the
 * end of a page, which a row may be: so loops that write prefetch what is AHEAD. ---- */
enum { NAME(AHEAD) = 2048 / sizeof(T) };
static void NAME(column_scale)(void *out_, const void *x_, int64_t rows, int64_t n, const void *mean, const void *factor,
                               const void *shift, bool stream)
{
    T       *out = out_;
    const T *x = x_, *m = mean, *f = factor, *s = shift;
    stream = stream && ((uintptr_t)out | (size_t)n * sizeof(T)) % VECTOR_BYTES == 0;
    for (int64_t r = 0, i; r < rows; r++, out += n, x += n) {
        for (i = 0; i + LANES <= n; i += LANES) {
            NAME(vector) y = (LOAD(x + i) - LOAD(m + i)) * LOAD(f + i) + LOAD(s + i);
            FETCH(x + i + NAME(AHEAD));
            if (stream) STREAM(out + i, y);
            else CLAIM(out + i + NAME(AHEAD)), STORE(out + i, y);
        }
        for (; i < n; i++) out[i] = (x[i] - m[i]) * f[i] + s[i];
    }
    if (stream) FENCE;
}
static void NAME(column_dots)(const void *g_, const void *x_, int64_t rows, int64_t n, const void *mean, void *sum,
                              void *product)
{
    enum { ROWS = 4 };
    const T *g = g_, *x = x_, *m = mean;
    T       *s = sum, *p = product;
    int64_t  i, ahead = NEAR(n) ? ROWS * n : 0;
    memset(s, 0, (size_t)n * sizeof(T)), memset(p, 0, (size_t)n * sizeof(T));
    for (; rows >= ROWS; rows -= ROWS, g += ROWS * n, x += ROWS * n) {
        for (i = 0; i + LANES <= n; i += LANES) {
            NAME(vector) middle = LOAD(m + i), total = { 0 }, products = { 0 };
            _Pragma("GCC unroll 8") for (int k = 0; k < ROWS; k++)
            {
                FETCH(g + k * n + i + ahead), FETCH(x + k * n + i + ahead);
                NAME(vector) slope = LOAD(g + k * n + i);
                total += slope, products += slope * (LOAD(x + k * n + i) - middle);
            }
            STORE(s + i, LOAD(s + i) + total), STORE(p + i, LOAD(p + i) + products);
        }
        for (; i < n; i++)
            for (int k = 0; k < ROWS; k++) s[i] += g[k * n + i], p[i] += g[k * n + i] * (x[k * n + i] - m[i]);
    }
    for (; rows; rows--, g += n, x += n) {
        INDEPENDENT
        for (i = 0; i < n; i++) s[i] += g[i], p[i] += g[i] * (x[i] - m[i]);
    }
}
static void NAME(column_slope)(void *out_, const void *g_, const void *x_, int64_t rows, int64_t n, const void *mean,
                               const void *const by[3], bool stream)
{
    T       *out = out_;
    const T *g = g_, *x = x_, *m = mean, *f = by[0], *b = by[1], *e = by[2];
    stream = stream && ((uintptr_t)out | (size_t)n * sizeof(T)) % VECTOR_BYTES == 0;
    for (int64_t r = 0, i; r < rows; r++, out += n, g += n, x += n) {
        for (i = 0; i + LANES <= n; i += LANES) {
            NAME(vector) y = LOAD(g + i) * LOAD(f + i) - LOAD(e + i) - (LOAD(x + i) - LOAD(m + i)) * LOAD(b + i);
            FETCH(x + i + NAME(AHEAD)), FETCH(g + i + NAME(AHEAD));
            if (stream) STREAM(out + i, y);
            else CLAIM(out + i + NAME(AHEAD)), STORE(out + i, y);
        }
        for (; i < n; i++) out[i] = g[i] * f[i] - e[i] - (x[i] - m[i]) * b[i];
    }
    if (stream) FENCE;
}
static void NAME(column_merge)(double *to, const void *mean, const void *square, const void *shift, int64_t n, double count,
                               double more)
{
    double   weight = count * more / (count + more), share = more / (count + more), *squares = to + n;
    const T *m = mean, *q = square, *s = shift;
    if (s) {
        INDEPENDENT
        for (int64_t i = 0; i < n; i++) {
            double apart = (double)m[i] + (double)s[i] - to[i];
            squares[i] += (double)q[i] + apart * apart * weight, to[i] += apart * share;
        }
    } else {
        INDEPENDENT
        for (int64_t i = 0; i < n; i++) {
            double apart = (double)m[i] - to[i];
            squares[i] += (double)q[i] + apart * apart * weight, to[i] += apart * share;
        }
    }
}
static void NAME(column_add)(double *to, const void *sum, const void *product, int64_t n)
{
    double  *products = to + n;
    const T *s = sum, *p = product;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) to[i] += (double)s[i], products[i] += (double)p[i];
}
#undef LOAD
#undef STORE
#undef FETCH
#undef CLAIM
#undef NEAR
#undef LANES
#undef EACH_OF_4
#undef T
#undef NAME

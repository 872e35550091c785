/* Embeddings of elements T. */
/* Rows come in no order that the processor foresees: those of the next ids are fetched ahead, which makes sums of long bags five
 * times as fast where the table is larger than the second cache. */
INLINE void NAME(tile)(T *out, const T *table, const int64_t *at, const T *factor, int64_t n, int64_t width, int64_t tile)
{
    enum { AHEAD = 8, LINE = 64 / sizeof(T) };
    T sum[64];
    for (int64_t c = 0; c < tile; c++) sum[c] = 0;
    for (int64_t i = 0; i < n; i++) {
        const T *row = table + at[i] * width;
        if (i + AHEAD < n)
            for (int64_t c = 0; c < tile; c += LINE) __builtin_prefetch(table + at[i + AHEAD] * width + c);
        if (factor) {
            T f = factor[i];
            INDEPENDENT
            for (int64_t c = 0; c < tile; c++) sum[c] += f * row[c];
        } else {
            INDEPENDENT
            for (int64_t c = 0; c < tile; c++) sum[c] += row[c];
        }
    }
    memcpy(out, sum, (size_t)tile * sizeof(T));
}
/* Rows of one element: a vector times a sparse matrix. */
static T NAME(single)(const T *table, const int64_t *at, const T *factor, int64_t n)
{
    enum { LANES = 8 };
    T       sum[LANES] = { 0 }, total = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        T term[LANES];
        INDEPENDENT
        for (int k = 0; k < LANES; k++) term[k] = table[at[i + k]];
        if (factor)
            for (int k = 0; k < LANES; k++) sum[k] += factor[i + k] * term[k];
        else
            for (int k = 0; k < LANES; k++) sum[k] += term[k];
    }
    for (int k = 0; i < n; i++, k++) sum[k] += factor ? factor[i] * table[at[i]] : table[at[i]];
    for (int k = 0; k < LANES; k++) total += sum[k];
    return total;
}
static void NAME(sum)(void *to, const void *from, const int64_t *at, const void *factor, int64_t n, int64_t width)
{
    enum { TILE = 256 / sizeof(T) };
    const T *table = from;
    T       *out = to;
    int64_t  c = 0;
    if (n == 1 && !factor) {
        memcpy(out, table + at[0] * width, (size_t)width * sizeof(T));
        return;
    }
    if (width == 1) {
        *out = NAME(single)(table, at, factor, n);
        return;
    }
    for (; c + TILE <= width; c += TILE) NAME(tile)(out + c, table + c, at, factor, n, width, TILE);
    if (c < width) NAME(tile)(out + c, table + c, at, factor, n, width, width - c);
}
/* A matrix by rows times a vector: memory bounds it, so each id is read and checked once, and lines are fetched ahead. Eight sums
 * hide the latency of additions. */
static bool NAME(products)(void *to, const void *from, const int64_t *at, const void *factors, const int64_t *bags,
                           int64_t begin, int64_t end, int64_t rows)
{
    enum { LANES = 8, AHEAD = 128 };
    const T *table = from, *factor = factors;
    T       *out = to;
    for (int64_t b = begin; b < end; b++) {
        T       sum[LANES] = { 0 };
        int64_t i = bags[b], past = bags[b + 1];
        for (; i + LANES <= past; i += LANES) {
            bool astray = false;
            __builtin_prefetch(at + i + AHEAD);
            __builtin_prefetch(factor + i + AHEAD);
#pragma GCC unroll 8
            for (int k = 0; k < LANES; k++) astray |= (uint64_t)at[i + k] >= (uint64_t)rows;
            if (__builtin_expect(astray, 0)) return false;
#pragma GCC unroll 8
            for (int k = 0; k < LANES; k++) sum[k] += factor[i + k] * table[at[i + k]];
        }
        for (int k = 0; i < past; i++, k++) {
            if ((uint64_t)at[i] >= (uint64_t)rows) return false;
            sum[k] += factor[i] * table[at[i]];
        }
        out[b] = ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
    }
    return true;
}
static double NAME(dot)(const void *a, const void *b, int64_t n)
{
    enum { LANES = 16 };
    const T *x = a, *y = b;
    T        sum[LANES] = { 0 }, total = 0;
    int64_t  i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) sum[k] += x[i + k] * y[i + k];
    for (int k = 0; i < n; i++, k++) sum[k] += x[i] * y[i];
    for (int k = 0; k < LANES; k++) total += sum[k];
    return (double)total;
}
static void NAME(scale)(void *row, double divisor, int64_t n)
{
    T *out = row, d = (T)divisor;
    for (int64_t i = 0; i < n; i++) out[i] /= d;
}
static void NAME(larger)(void *out, int64_t *index, const void *row, int64_t id, int64_t n)
{
    T       *best = out;
    const T *x = row;
    for (int64_t i = 0; i < n; i++) {
        bool more = index[i] < 0 || x[i] > best[i];
        best[i] = more ? x[i] : best[i], index[i] = more ? id : index[i];
    }
}
#undef T
#undef NAME

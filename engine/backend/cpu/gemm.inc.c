/* One micro-kernel for elements of type T: ROWS x COLUMNS sums stay in registers while k runs. */
enum { NAME(LANES) = VECTOR_BYTES / sizeof(T), NAME(WIDE) = 2, NAME(COLUMNS) = NAME(LANES) * NAME(WIDE) };
typedef T NAME(vector) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
typedef T NAME(sums)
    __attribute__((vector_size(VECTOR_BYTES))); /* in registers; or aligned, which arrays of the other are not */

INLINE void NAME(add_products)(int64_t k, const T *a, const T *b, NAME(sums) sum[ROWS][NAME(WIDE)])
{
    for (int64_t p = 0; p < k; p++, a += ROWS, b += NAME(COLUMNS)) {
        const NAME(vector) *row = (const NAME(vector) *)b;
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
            for (int j = 0; j < NAME(WIDE); j++) sum[i][j] += a[i] * row[j];
    }
}
static void NAME(micro)(int64_t k, const void *a, const void *b, void *out_tile)
{
    NAME(sums) sum[ROWS][NAME(WIDE)] = { 0 };
    NAME(add_products)(k, a, b, sum);
    memcpy(out_tile, sum, sizeof sum);
}
static void NAME(micro_into)(int64_t k, const void *a, const void *b, void *out, int64_t step, bool accumulate)
{
    NAME(sums) sum[ROWS][NAME(WIDE)] = { 0 };
    for (int i = 0; i < ROWS; i++)
        __builtin_prefetch((T *)out + i * step, 1), __builtin_prefetch((T *)out + i * step + NAME(COLUMNS) - 1, 1);
    NAME(add_products)(k, a, b, sum);
    if (accumulate) {
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
            for (int j = 0; j < NAME(WIDE); j++) ((NAME(vector) *)((T *)out + i * step))[j] += sum[i][j];
    } else {
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
            for (int j = 0; j < NAME(WIDE); j++) ((NAME(vector) *)((T *)out + i * step))[j] = sum[i][j];
    }
}

/* The product of two contiguous vectors: four vectors of sums, so that additions need not wait for each other. */
static void NAME(dot)(int64_t k, const void *x, const void *y, void *out)
{
    enum { STEP = 4 * NAME(LANES) };
    const T *a = x, *b = y;
    NAME(sums) sum[4] = { 0 };
    int64_t p = 0;
    for (; p + STEP <= k; p += STEP)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            sum[i] += *(const NAME(vector) *)(a + p + i * NAME(LANES)) * *(const NAME(vector) *)(b + p + i * NAME(LANES));
    sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    T lanes[NAME(LANES)], rest = 0;
    memcpy(lanes, sum, sizeof lanes);
    for (; p < k; p++) rest += a[p] * b[p];
    for (int i = 0; i < NAME(LANES); i++) rest += lanes[i];
    memcpy(out, &rest, sizeof rest);
}

/* Where rows are far apart they are read a cache line at a time: one element of each would meet the next of the same line only after all
 * others, which for steps that are powers of two evict each other. */
static void NAME(pack)(void *panels, const void *matrix, int64_t rows, int64_t row_step, int64_t depth, int64_t depth_step,
                       int lanes)
{
    enum { LINE = 64 / sizeof(T) };
    T       *to = panels;
    const T *from = matrix;
    for (int64_t first = 0; first < rows; first += lanes, from += lanes * row_step, to += lanes * depth) {
        int64_t n = rows - first < lanes ? rows - first : lanes;
        if (n < lanes) memset(to, 0, (size_t)(lanes * depth) * sizeof(T));
        for (int64_t p = 0, m; p < depth; p += m) {
            m = depth - p < LINE ? depth - p : LINE;
            if (row_step == 1)
                for (int64_t q = p; q < p + m; q++)
                    for (int64_t i = 0; i < n; i++) to[q * lanes + i] = from[i + q * depth_step];
            else
                for (int64_t i = 0; i < n; i++)
                    for (int64_t q = p; q < p + m; q++) to[q * lanes + i] = from[i * row_step + q * depth_step];
        }
    }
}
#undef T
#undef NAME

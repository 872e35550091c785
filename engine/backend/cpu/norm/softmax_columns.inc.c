/* Interleaved lines for elements of type T: row by row, SHEET lines at a time, with their maxima and sums in L1. Memory is
 * walked in order: gathering lines one by one would touch a page per element. */
enum { NAME(SHEET) = 512 };
#define EACH_SHEET(...)                                                                                                        \
    for (int64_t first = 0, m; first < lines; first += m) {                                                                    \
        T        part[NAME(SHEET)] UNUSED, sum[NAME(SHEET)];                                                                   \
        T       *out = (T *)out_ + first;                                                                                      \
        const T *x = (const T *)x_ + first, *y = (const T *)y_ + first;                                                        \
        m = lines - first < NAME(SHEET) ? lines - first : NAME(SHEET);                                                         \
        for (int64_t l = 0; l < m; l++) part[l] = -INFINITY, sum[l] = 0;                                                       \
        (void)out, (void)x, (void)y;                                                                                           \
        __VA_ARGS__                                                                                                            \
    }
#define EACH_ROW(...)                                                                                                          \
    for (int64_t r = 0; r < n; r++) {                                                                                          \
        T *to      UNUSED = out + r * step[0];                                                                                 \
        const T *a UNUSED = x + r * step[1], *b UNUSED = y + r * step[2];                                                      \
        INDEPENDENT                                                                                                            \
        for (int64_t l = 0; l < m; l++) { __VA_ARGS__; }                                                                       \
    }
#define ARGUMENTS void *out_, const void *x_, const void *y_, int64_t n, int64_t lines, const int64_t step[3]
static void NAME(softmax)(ARGUMENTS)
{
    EACH_SHEET(EACH_ROW(part[l] = a[l] > part[l] ? a[l] : part[l]) EACH_ROW(
                   T e = EXP(a[l] - part[l]); to[l] = e; sum[l] += e) for (int64_t l = 0; l < m; l++) sum[l] = 1 / sum[l];
               EACH_ROW(to[l] *= sum[l]))
}
static void NAME(log_softmax)(ARGUMENTS)
{
    EACH_SHEET(EACH_ROW(part[l] = a[l] > part[l] ? a[l] : part[l])
                   EACH_ROW(sum[l] += EXP(a[l] - part[l])) for (int64_t l = 0; l < m; l++) sum[l] = LOG(sum[l]);
               EACH_ROW(to[l] = a[l] - part[l] - sum[l]))
}
static void NAME(softmax_backward)(ARGUMENTS)
{
    EACH_SHEET(EACH_ROW(sum[l] += a[l] * b[l]) EACH_ROW(to[l] = b[l] * (a[l] - sum[l])))
}
static void NAME(log_softmax_backward)(ARGUMENTS)
{
    EACH_SHEET(EACH_ROW(sum[l] += a[l]) EACH_ROW(to[l] = a[l] - EXP(b[l]) * sum[l]))
}
#undef EACH_SHEET
#undef EACH_ROW
#undef ARGUMENTS
#undef NAME

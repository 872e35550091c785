/* Products of elements of type T: see small_gemm.h. */
enum { NAME(LANES) = VECTOR_BYTES / sizeof(T) };
typedef T NAME(vector) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T))));
typedef T NAME(sums) __attribute__((vector_size(VECTOR_BYTES)));

/* out (tall x wide vectors) = a (tall x k) b (k x wide vectors), or added to out, or to out times factor (one per column). */
INLINE void NAME(micro)(int tall, int wide, int64_t k, const T *a, int64_t a_row, int64_t a_col, const T *b, int64_t b_row,
                        T *out, int64_t out_row, const T *factor, ending how)
{
    NAME(sums)
    sum[TALL][WIDE]; /* in registers, since every loop over it is unrolled; the old value is added last */
#define EACH(...)                                                                                                              \
    _Pragma("GCC unroll 16") for (int i = 0; i < tall; i++) _Pragma("GCC unroll 4") for (int j = 0; j < wide; j++) __VA_ARGS__
    EACH(sum[i][j] = (NAME(sums)){ 0 };)
    for (int64_t p = 0; p < k; p++, a += a_col, b += b_row) {
        const NAME(vector) *row = (const NAME(vector) *)b;
        EACH(sum[i][j] += a[i * a_row] * row[j];)
    }
    if (how == ADD) EACH(sum[i][j] += *(const NAME(vector) *)(out + i * out_row + j * NAME(LANES));)
    if (how == RESCALE)
        EACH(sum[i][j] +=
             *(const NAME(vector) *)(out + i * out_row + j * NAME(LANES)) * *(const NAME(vector) *)(factor + j * NAME(LANES));)
    EACH(*(NAME(vector) *)(out + i * out_row + j * NAME(LANES)) = sum[i][j];)
#undef EACH
}
/* n is a multiple of LANES. Rows are shared out evenly: 16 are 6, 5 and 5, because the narrow kernels wait for their
 * operands. With each block of rows, the same rows of `soon` (if not NULL) are prefetched. */
static ONCE void NAME(multiply)(int64_t m, int64_t n, int64_t k, const T *a, int64_t a_row, int64_t a_col, const T *b,
                                int64_t b_row, T *out, int64_t out_row, const T *factor, ending how, const fetches *soon)
{
    enum { STEP = WIDE * NAME(LANES) };
#define MICRO(tall, wide)                                                                                                      \
    NAME(micro)(tall, wide, k, a + i * a_row, a_row, a_col, b + j, b_row, out + i * out_row + j, out_row, factor + j, how)
#define CASE(tall)                                                                                                             \
    case tall:                                                                                                                 \
        if (wide == WIDE) MICRO(tall, WIDE);                                                                                   \
        else if (WIDE > 2 && wide == 2) MICRO(tall, 2);                                                                        \
        else MICRO(tall, 1);                                                                                                   \
        break;
    for (int64_t j = 0; j < n;) {
        int wide = j + STEP <= n ? WIDE : WIDE > 2 && j + 2 * NAME(LANES) <= n ? 2 : 1;
        for (int64_t i = 0, parts = (m + TALL - 1) / TALL, rows; i < m; i += rows, parts--) {
            rows = (m - i + parts - 1) / parts;
            if (soon) fetch(soon, i, rows);
            switch (rows) {
                CASE(1)
                CASE(2)
                CASE(3)
                CASE(4)
#if defined __AVX2__
                CASE(5)
                CASE(6)
#endif
            }
        }
        j += wide * NAME(LANES);
    }
#undef CASE
#undef MICRO
}
static int64_t NAME(whole)(int64_t n) { return (n + NAME(LANES) - 1) / NAME(LANES) * NAME(LANES); }

/* One micro-kernel for elements of type T: ROWS x COLUMNS sums stay in registers while k runs. */
enum { NAME(LANES) = VECTOR_BYTES / sizeof(T), NAME(WIDE) = 2, NAME(COLUMNS) = NAME(LANES) * NAME(WIDE) };
typedef T NAME(vector) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T))));

static void NAME(micro)(int64_t k, const void *a_panel, const void *b_panel, void *out_tile)
{
    const T *a = a_panel, *b = b_panel;
    NAME(vector) sum[ROWS][NAME(WIDE)] = { 0 };
    const NAME(vector) * row;
    for (int64_t p = 0; p < k; p++, a += ROWS, b += NAME(COLUMNS)) {
        row = (const NAME(vector) *)b;
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
            for (int j = 0; j < NAME(WIDE); j++) sum[i][j] += a[i] * row[j];
    }
    memcpy(out_tile, sum, sizeof sum);
}
#undef T
#undef NAME

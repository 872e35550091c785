/* The tiles for elements of type T. */
enum { NAME(LANES) = VECTOR_BYTES / sizeof(T) };
typedef T NAME(loaded) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
typedef T NAME(sums) __attribute__((vector_size(VECTOR_BYTES)));

#define TILE(ROWS, WIDE)                                                                                                       \
    static void NAME(tile_##ROWS##_##WIDE)(const conv_tile *t)                                                                 \
    {                                                                                                                          \
        NAME(sums) sum[ROWS][WIDE] = { 0 }, column[WIDE];                                                                      \
        const T       *a = t->a, *x = t->x, *start = t->start;                                                                 \
        const int64_t *offset = t->offset, taps = t->taps, step = t->channel_step;                                             \
        for (int64_t c = 0; c < t->channels; c++, x += step)                                                                   \
            for (int64_t k = 0; k < taps; k++, a += ROWS) {                                                                    \
                const T *from = x + offset[k];                                                                                 \
                _Pragma("GCC unroll 8") for (int j = 0; j < WIDE; j++) column[j] =                                             \
                    *(const NAME(loaded) *)(from + j * NAME(LANES));                                                           \
                _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; i++) _Pragma("GCC unroll 8") for (int j = 0; j < WIDE; j++) \
                    sum[i][j] += a[i] * column[j];                                                                             \
            }                                                                                                                  \
        T *out = t->out;                                                                                                       \
        _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; i++, out += t->out_step)                                            \
            _Pragma("GCC unroll 8") for (int j = 0; j < WIDE; j++)                                                             \
        {                                                                                                                      \
            NAME(loaded) *to = (NAME(loaded) *)(out + j * NAME(LANES));                                                        \
            if (t->add) *to = *to + sum[i][j];                                                                                 \
            else *to = sum[i][j] + start[i];                                                                                   \
        }                                                                                                                      \
    }
#define BOTH(rows, wide) TILE(rows, wide) TILE(rows, 1)
EACH_TILE(BOTH)
#undef BOTH
#undef TILE

INLINE T NAME(total)(NAME(sums) v) /* halves are added until one is left */
{
    T lanes[NAME(LANES)];
    memcpy(lanes, &v, sizeof v);
#pragma GCC unroll 4
    for (int n = NAME(LANES) / 2; n; n /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) lanes[i] += lanes[i + n];
    return lanes[0];
}
#define DOT(ROWS, COLUMNS)                                                                                                     \
    static void NAME(dot_##ROWS##_##COLUMNS)(int64_t n, const void *a_rows, int64_t a_step, const void *image,                 \
                                             const int64_t *offset, void *to)                                                  \
    {                                                                                                                          \
        NAME(sums) sum[ROWS][COLUMNS] = { 0 }, row[ROWS];                                                                      \
        const T *a = a_rows, *x[COLUMNS];                                                                                      \
        T       *out = to;                                                                                                     \
        _Pragma("GCC unroll 16") for (int j = 0; j < COLUMNS; j++) x[j] = (const T *)image + offset[j];                        \
        for (int64_t p = 0; p < n; p += NAME(LANES)) {                                                                         \
            _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++) row[i] = *(const NAME(loaded) *)(a + i * a_step + p);       \
            _Pragma("GCC unroll 16") for (int j = 0; j < COLUMNS; j++)                                                         \
            {                                                                                                                  \
                NAME(sums) column = *(const NAME(loaded) *)(x[j] + p);                                                         \
                _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++) sum[i][j] += row[i] * column;                           \
            }                                                                                                                  \
        }                                                                                                                      \
        _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++) _Pragma("GCC unroll 16") for (int j = 0; j < COLUMNS; j++)      \
            out[i * COLUMNS + j] = NAME(total)(sum[i][j]);                                                                     \
    }
EACH_DOT(DOT)
#undef DOT
#undef T
#undef NAME

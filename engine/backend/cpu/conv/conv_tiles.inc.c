/* The tiles for elements of type T. */
enum { NAME(LANES) = VECTOR_BYTES / sizeof(T) };
typedef T NAME(loaded) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
typedef T NAME(sums) __attribute__((vector_size(VECTOR_BYTES)));

/* STRIDED: 0 or 1. Only every third row of strided tiles has a pointer: addressing modes reach the next two. */
#define TILE(ROWS, WIDE, name, STRIDED)                                                                                         \
    static void NAME(name##_##ROWS##_##WIDE)(const conv_tile *t)                                                                \
    {                                                                                                                           \
        NAME(sums) sum[ROWS][WIDE] = { 0 }, column[WIDE];                                                                       \
        const T       *a = t->a, *x = t->x, *start = t->start;                                                                  \
        const int64_t *offset = t->offset, *a_offset = t->a_offset, taps = t->taps, step = t->channel_step, a_tap = t->a_tap,   \
                      a_step = t->a_channel;                                                                                    \
        const int64_t x_step = STRIDED ? t->x_step : NAME(LANES), down = t->a_row * (int64_t)sizeof(T);                         \
        const T      *next = x + (taps ? offset[0] : 0) + (STRIDED ? step : WIDE * NAME(LANES)); /* columns of the next tile */ \
        for (int64_t c = 0; c < t->channels; c++, x += step, a += a_step, next += step) {                                       \
            _Pragma("GCC unroll 8") for (int j = 0; j < WIDE; j++) __builtin_prefetch(next + j * x_step);                       \
            const T *row = a;                                                                                                   \
            for (int64_t k = 0; k < taps; k++, row += a_tap) {                                                                  \
                const T    *from = x + offset[k];                                                                               \
                const char *third[(ROWS + 2) / 3];                                                                              \
                if (STRIDED) {                                                                                                  \
                    third[0] = (const char *)(a + a_offset[k]);                                                                 \
                    _Pragma("GCC unroll 5") for (int i = 1; i < (ROWS + 2) / 3; i++) third[i] = third[i - 1] + 3 * down;        \
                }                                                                                                               \
                _Pragma("GCC unroll 8") for (int j = 0; j < WIDE; j++) column[j] = *(const NAME(loaded) *)(from + j * x_step);  \
                _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; i++) _Pragma("GCC unroll 8") for (int j = 0; j < WIDE; j++)  \
                    sum[i][j] += (STRIDED ? *(const T *)(third[i / 3] + i % 3 * down) : row[i]) * column[j];                    \
            }                                                                                                                   \
        }                                                                                                                       \
        T *out = t->out;                                                                                                        \
        _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; i++, out += t->out_step)                                             \
            _Pragma("GCC unroll 8") for (int j = 0; j < WIDE; j++)                                                              \
        {                                                                                                                       \
            NAME(loaded) *to = (NAME(loaded) *)(out + j * NAME(LANES));                                                         \
            if (t->add) *to = *to + sum[i][j];                                                                                  \
            else *to = sum[i][j] + start[i];                                                                                    \
        }                                                                                                                       \
    }
#define BOTH(rows, wide) TILE(rows, wide, tile, 0) TILE(rows, 1, tile, 0)
EACH_TILE(BOTH)
#undef BOTH
#define BOTH(rows, wide) TILE(rows, wide, strided, 1) TILE(rows, 1, strided, 1)
EACH_STRIDED(BOTH)
#undef BOTH
#undef TILE

/* One plane by one kernel: vectors where no tap leaves the row, single elements elsewhere. */
INLINE void NAME(plane_columns)(const conv_plane *p, int64_t y, int64_t at, T *out, int wide)
{
    NAME(sums) sum[4] = { 0 };
    const T *a = p->a;
    for (int64_t i = 0; i < p->row_taps; i++, a += p->column_taps) {
        int64_t row = y + p->row_offset[i];
        if (row < 0 || row >= p->height) continue;
        const T *from = (const T *)p->x + row * p->x_row + at;
        for (int64_t k = 0; k < p->column_taps; k++) {
            const T *x = from + p->column_offset[k];
#pragma GCC unroll 4
            for (int j = 0; j < wide; j++) sum[j] += a[k] * *(const NAME(loaded) *)(x + j * NAME(LANES));
        }
    }
#pragma GCC unroll 4
    for (int j = 0; j < wide; j++) *(NAME(loaded) *)(out + at + j * NAME(LANES)) = sum[j] + *(const T *)p->start;
}
/* Columns at .. past of row y, whose taps may leave the row. */
static void NAME(plane_edge)(const conv_plane *p, int64_t y, int64_t at, int64_t past, T *out)
{
    int64_t i0 = 0, i1 = p->row_taps;
    while (i0 < i1 && (y + p->row_offset[i0] < 0 || y + p->row_offset[i0] >= p->height)) i0++;
    while (i1 > i0 && (y + p->row_offset[i1 - 1] < 0 || y + p->row_offset[i1 - 1] >= p->height)) i1--;
    for (; at < past; at++) {
        T sum = *(const T *)p->start;
        for (int64_t k = 0; k < p->column_taps; k++) {
            int64_t  x = at + p->column_offset[k];
            const T *a = (const T *)p->a + k, *from = (const T *)p->x + y * p->x_row + x;
            if (x < 0 || x >= p->width) continue;
            for (int64_t i = i0; i < i1; i++) sum += a[i * p->column_taps] * from[p->row_offset[i] * p->x_row];
        }
        out[at] = sum;
    }
}
/* Four rows at once by a 3 x 3 kernel w: each loaded image vector serves three rows. keep: mask of the lanes inside the row,
 * per kernel column; NULL: all lanes. */
typedef INTEGER NAME(lanes) __attribute__((vector_size(VECTOR_BYTES)));
INLINE void     NAME(plane_3x3)(const conv_plane *p, const NAME(sums) * w, const T *x, T *out, const NAME(lanes) * keep)
{
    NAME(sums) sum[4], v[3];
#pragma GCC unroll 4
    for (int q = 0; q < 4; q++) sum[q] = w[9];
#pragma GCC unroll 6
    for (int r = 0; r < 6; r++) {
#pragma GCC unroll 3
        for (int k = 0; k < 3; k++) {
            v[k] = *(const NAME(loaded) *)(x + r * p->x_row + k);
            if (keep) v[k] = (NAME(sums))((NAME(lanes))v[k] & keep[k]);
        }
#pragma GCC unroll 4
        for (int q = 0; q < 4; q++)
#pragma GCC unroll 3
            for (int k = 0; k < 3; k++)
                if (r >= q && r < q + 3) sum[q] += w[3 * (r - q) + k] * v[k];
    }
#pragma GCC unroll 4
    for (int q = 0; q < 4; q++) *(NAME(loaded) *)(out + q * p->out_row) = sum[q];
}
static void NAME(edge_3x3)(const conv_plane *p, const NAME(sums) * w, const T *x, T *out, int64_t column)
{
    NAME(lanes) keep[3] = { 0 }, lane = { 0 };
#pragma GCC unroll 16
    for (int i = 0; i < NAME(LANES); i++) lane[i] = i;
#pragma GCC unroll 3
    for (int k = 0; k < 3; k++) {
        NAME(lanes) at = lane + (INTEGER)(column + k);
        keep[k] = (at >= 0) & (at < (INTEGER)p->width);
    }
    NAME(plane_3x3)(p, w, x, out, keep);
}
/* x: the element under the kernel's first tap at row y, column 0. Reads beside rows must stay inside the image's memory. */
static bool NAME(rows_3x3)(const conv_plane *p, const NAME(sums) * w, const T *x, T *out, int64_t left)
{
    const T *low = p->low, *high = p->high;
    if (p->columns < NAME(LANES) || x < low || x + 5 * p->x_row + p->columns + 2 > high) return false;
    for (int64_t at = 0, from; at < p->columns; at += NAME(LANES)) {
        from = at + NAME(LANES) <= p->columns ? at : p->columns - NAME(LANES);
        if (from >= p->first && from + NAME(LANES) <= p->past) NAME(plane_3x3)(p, w, x + from, out + from, NULL);
        else NAME(edge_3x3)(p, w, x + from, out + from, from + left);
    }
    return true;
}
/* The kernel's weights in order of offsets that grow by one, and the first offset; false if the offsets do not. */
static bool NAME(kernel_3x3)(const conv_plane *p, NAME(sums) * w)
{
    const int64_t *rows = p->row_offset, *columns = p->column_offset;
    if (p->row_taps != 3 || p->column_taps != 3) return false;
    int64_t down = rows[1] - rows[0], right = columns[1] - columns[0];
    if ((down != 1 && down != -1) || (right != 1 && right != -1)) return false;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            w[3 * i + k] = (NAME(sums)){ 0 } + ((const T *)p->a)[3 * (down > 0 ? i : 2 - i) + (right > 0 ? k : 2 - k)];
    w[9] = (NAME(sums)){ 0 } + *(const T *)p->start;
    return true;
}
static void NAME(plane)(const conv_plane *p)
{
    enum { WIDE = 4 * NAME(LANES) };
    T *out = p->out;
    NAME(sums) w[10];
    bool    fast = NAME(kernel_3x3)(p, w);
    int64_t top = fast && p->row_offset[0] > p->row_offset[2] ? p->row_offset[2] : p->row_offset[0];
    int64_t left = fast && p->column_offset[0] > p->column_offset[2] ? p->column_offset[2] : p->column_offset[0];
    for (int64_t y = 0, n; y < p->rows; y += n, out += n * p->out_row) {
        int64_t at = p->first;
        n = fast && y + top >= 0 && y + top + 6 <= p->height && y + 4 <= p->rows ? 4 : 1;
        const T *x = (const T *)p->x + (y + top) * p->x_row + left;
        if (n == 4 && NAME(rows_3x3)(p, w, x, out, left)) continue;
        n = 1;
        for (; at + WIDE <= p->past; at += WIDE) NAME(plane_columns)(p, y, at, out, 4);
        for (; at < p->past; at += NAME(LANES)) /* the last vector overlaps its predecessor to be whole */
            NAME(plane_columns)(p, y, at + NAME(LANES) <= p->past ? at : p->past - NAME(LANES), out, 1);
        for (int64_t q = 0; q < n; q++) {
            NAME(plane_edge)(p, y + q, 0, p->first, out + q * p->out_row);
            NAME(plane_edge)(p, y + q, p->past, p->columns, out + q * p->out_row);
        }
    }
}

/* Horizontal sums of n vectors. Adds neighbours, of as many vectors as there are lanes at once, until one vector is left. */
INLINE void NAME(totals)(const NAME(sums) * v, const int n, T *out)
{
#pragma GCC unroll 16
    for (int at = 0; at < n; at += NAME(LANES)) {
        NAME(sums) left[NAME(LANES)];
#pragma GCC unroll 16
        for (int i = 0; i < NAME(LANES); i++) left[i] = at + i < n ? v[at + i] : (NAME(sums)){ 0 };
#pragma GCC unroll 4
        for (int many = NAME(LANES) / 2; many; many /= 2)
#pragma GCC unroll 8
            for (int i = 0; i < many; i++) left[i] = NAME(PAIRS)(left[2 * i], left[2 * i + 1]);
        memcpy(out + at, left, (n - at < NAME(LANES) ? n - at : NAME(LANES)) * sizeof(T));
    }
}
#define DOT(ROWS, COLUMNS)                                                                                                     \
    static void NAME(dot_##ROWS##_##COLUMNS)(int64_t n, const void *a_rows, int64_t a_step, const void *image,                 \
                                             const int64_t *offset, void *to)                                                  \
    {                                                                                                                          \
        NAME(sums) sum[ROWS][COLUMNS] = { 0 }, row[ROWS];                                                                      \
        const T *a = a_rows, *x[COLUMNS];                                                                                      \
        _Pragma("GCC unroll 16") for (int j = 0; j < COLUMNS; j++) x[j] = (const T *)image + offset[j];                        \
        for (int64_t p = 0; p < n; p += NAME(LANES)) {                                                                         \
            _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++) row[i] = *(const NAME(loaded) *)(a + i * a_step + p);       \
            _Pragma("GCC unroll 16") for (int j = 0; j < COLUMNS; j++)                                                         \
            {                                                                                                                  \
                NAME(sums) column = *(const NAME(loaded) *)(x[j] + p);                                                         \
                _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++) sum[i][j] += row[i] * column;                           \
            }                                                                                                                  \
        }                                                                                                                      \
        NAME(totals)(sum[0], ROWS * COLUMNS, to);                                                                              \
    }
EACH_DOT(DOT)
#undef DOT

/* The gradient of a 3 x 3 kernel over one plane: `columns` at .. of rows y .. past of the image, nine vectors of sums. Each
 * loaded row vector serves three rows of the gradient. keep: mask of the lanes inside the plane, per kernel column, and of
 * gradient lanes not counted before; NULL: all lanes. inside: all gradient rows exist. */
INLINE void NAME(dots_at)(const conv_plane *p, int64_t at, int64_t y, int64_t past, const NAME(lanes) * keep, bool inside,
                          NAME(sums) * total)
{
    const int64_t *down = p->row_offset, *right = p->column_offset;
    NAME(sums) sum[9], v[3], g;
#pragma GCC unroll 9
    for (int i = 0; i < 9; i++) sum[i] = total[i];
    for (; y < past; y++) {
#pragma GCC unroll 3
        for (int k = 0; k < 3; k++) {
            v[k] = *(const NAME(loaded) *)((const T *)p->x + y * p->x_row + at + right[k]);
            if (keep) v[k] = (NAME(sums))((NAME(lanes))v[k] & keep[k]);
        }
#pragma GCC unroll 3
        for (int i = 0; i < 3; i++) {
            if (!inside && (y < down[i] || y - down[i] >= p->rows)) continue;
            g = *(const NAME(loaded) *)((const T *)p->a + (y - down[i]) * p->out_row + at);
            if (keep) g = (NAME(sums))((NAME(lanes))g & keep[3]);
#pragma GCC unroll 3
            for (int k = 0; k < 3; k++) sum[3 * i + k] += g * v[k];
        }
    }
#pragma GCC unroll 9
    for (int i = 0; i < 9; i++) total[i] = sum[i];
}
INLINE void NAME(dots_of)(const conv_plane *p, int64_t at, const NAME(lanes) * keep, NAME(sums) * total)
{
    const int64_t *down = p->row_offset, high = down[0] > down[2] ? down[0] : down[2], low = down[0] + down[2] - high;
    int64_t        from = high > 0 ? high : 0, past = p->rows + low < p->height ? p->rows + low : p->height;
    from = from < p->height ? from : p->height, past = past > from ? past : from;
    NAME(dots_at)(p, at, 0, from, keep, false, total);
    NAME(dots_at)(p, at, from, past, keep, true, total);
    NAME(dots_at)(p, at, past, p->height, keep, false, total);
}
static void NAME(plane_dots)(const conv_plane *p)
{
    NAME(sums) total[9] = { 0 };
    for (int64_t at = 0; at < p->columns; at += NAME(LANES)) { /* the last vector overlaps its predecessor to be whole */
        int64_t from = at + NAME(LANES) <= p->columns ? at : p->columns - NAME(LANES);
        NAME(lanes) keep[4], lane;
#pragma GCC unroll 16
        for (int i = 0; i < NAME(LANES); i++) lane[i] = i;
#pragma GCC unroll 3
        for (int k = 0; k < 3; k++) {
            NAME(lanes) column = lane + (INTEGER)(from + p->column_offset[k]);
            keep[k] = (column >= 0) & (column < (INTEGER)p->width);
        }
        keep[3] = lane >= (INTEGER)(at - from);
        if (from == at && from >= p->first && from + NAME(LANES) <= p->past) NAME(dots_of)(p, from, NULL, total);
        else NAME(dots_of)(p, from, keep, total);
    }
    NAME(totals)(total, 9, p->out);
}
#undef T
#undef INTEGER
#undef NAME

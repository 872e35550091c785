/* Attention of elements of type T: see attention_tiles.isa.o3.c. */
#include "../matmul/small_gemm.inc.c"

/* ---- tiles in and out ---- */

typedef struct {
    const T *at;
    int64_t  row, col;
} NAME(tile);
static char *NAME(place)(const attention_matrix *m, int64_t row) { return m->data + row * m->row * lc_size_of(m->dtype); }

/* Rows from `row` on of two matrices, for a prefetch. */
static fetches NAME(rows_of)(const attention_matrix *x, int64_t row_x, int64_t width_x, const attention_matrix *y,
                             int64_t row_y, int64_t width_y)
{
    int64_t size_x = lc_size_of(x->dtype), size_y = lc_size_of(y->dtype);
    return (fetches){ { x->col == 1 ? NAME(place)(x, row_x) : NULL, y->col == 1 ? NAME(place)(y, row_y) : NULL },
                      { x->row * size_x, y->row * size_y },
                      { width_x * size_x, width_y * size_y } };
}

/* Rows first .. first + n: in place if they have type T (and, where whole row vectors are read, a suitable layout), else in
 * `copy`, whose rows are `step` apart and end in zeros. */
static NAME(tile) NAME(tile_of)(const attention_head *h, const attention_matrix *m, int64_t first, int64_t n, int64_t width,
                                T *copy, int64_t step, bool vectors)
{
    int64_t size = lc_size_of(m->dtype);
    if (m->dtype == DTYPE && (!vectors || (m->col == 1 && width % NAME(LANES) == 0)))
        return (NAME(tile)){ (const T *)NAME(place)(m, first), m->row, m->col };
    for (int64_t i = 0; i < n; i++) {
        h->move(DTYPE, (char *)(copy + i * step), sizeof(T), m->dtype, NAME(place)(m, first + i), m->col * size, width);
        for (int64_t j = width; j < NAME(whole)(width); j++) copy[i * step + j] = 0;
    }
    return (NAME(tile)){ copy, step, 1 };
}
/* to (width x KEYS) = n rows of a tile, times a factor, transposed; columns up to the next vector are zero. */
static void NAME(transpose_tile)(const attention_head *h, T *to, NAME(tile) from, int64_t n, int64_t width, T factor)
{
    int64_t all = NAME(whole)(n), size = sizeof(T);
    if (from.col == 1) h->transpose((char *)to, KEYS * size, (const char *)from.at, from.row * size, width, n, false);
    else
        for (int64_t p = 0; p < width; p++)
            for (int64_t j = 0; j < n; j++) to[p * KEYS + j] = from.at[j * from.row + p * from.col];
    for (int64_t p = 0; p < width && (factor != 1 || n < all); p++) {
        T *row = to + p * KEYS;
        INDEPENDENT
        for (int64_t j = 0; j < n; j++) row[j] *= factor;
        for (int64_t j = n; j < all; j++) row[j] = 0;
    }
}
/* The mask of one query or key over n of the others, as a term added to logits. */
static void NAME(mask_line)(const attention_head *h, T *to, const char *from, int64_t step, int64_t n)
{
    h->move(DTYPE, (char *)to, sizeof(T), h->mask.dtype, from, step, n);
    if (h->mask.dtype == LC_b8)
        for (int64_t j = 0; j < n; j++) to[j] = to[j] != 0 ? 0 : (T)-INFINITY;
}

/* ---- forward: columns are queries ---- */

/* Logits st (n x columns) become powers; top, sum and factor are per column: the maximum, the sum of powers, the correction
 * of earlier sums. */
#ifdef __AVX512F__
INLINE void NAME(soften_columns)(const int wide, T *st, int64_t n, T *top, T *sum, T *factor)
{
    enum { L = NAME(LANES) };
    NAME(sums) high[WIDE], base[WIDE], all[WIDE];
    for (int j = 0; j < wide; j++) high[j] = *(NAME(vector) *)(top + j * L);
    for (int64_t i = 0; i < n; i++)
#pragma GCC unroll 4
        for (int j = 0; j < wide; j++) high[j] = NAME(higher)(*(NAME(vector) *)(st + i * ROWS + j * L), high[j]);
#pragma GCC unroll 4
    for (int j = 0; j < wide; j++) {
        base[j] = NAME(finite)(high[j]);
        NAME(sums) worth = NAME(exponentials)(*(NAME(vector) *)(top + j * L) - base[j]);
        all[j] = *(NAME(vector) *)(sum + j * L) * worth;
        *(NAME(vector) *)(factor + j * L) = worth, *(NAME(vector) *)(top + j * L) = high[j];
    }
    for (int64_t i = 0; i < n; i++)
#pragma GCC unroll 4
        for (int j = 0; j < wide; j++) {
            NAME(vector) *at = (NAME(vector) *)(st + i * ROWS + j * L);
            NAME(sums) p = NAME(exponentials)(*at - base[j]);
            *at = p, all[j] += p;
        }
    for (int j = 0; j < wide; j++) *(NAME(vector) *)(sum + j * L) = all[j];
}
static void NAME(soften)(T *st, int64_t n, int64_t columns, T *top, T *sum, T *factor)
{
    enum { L = NAME(LANES), STEP = WIDE * L };
    int64_t j = 0;
    for (; j + STEP <= columns; j += STEP) NAME(soften_columns)(WIDE, st + j, n, top + j, sum + j, factor + j);
    for (; j < columns; j += L) NAME(soften_columns)(1, st + j, n, top + j, sum + j, factor + j);
}
#else
static void NAME(soften)(T *st, int64_t n, int64_t columns, T *top, T *sum, T *factor)
{
    _Alignas(64) T high[ROWS], base[ROWS];
    memcpy(high, top, sizeof high);
    for (int64_t i = 0; i < n; i++) {
        const T *row = st + i * ROWS;
        INDEPENDENT
        for (int64_t j = 0; j < columns; j++) high[j] = row[j] > high[j] ? row[j] : high[j];
    }
    for (int64_t j = 0; j < columns; j++) {
        base[j] = high[j] == (T)-INFINITY ? 0 : high[j];
        factor[j] = POWER((top[j] - base[j]) * (T)LOG2E);
        sum[j] *= factor[j], top[j] = high[j];
    }
    for (int64_t i = 0; i < n; i++) {
        T *row = st + i * ROWS;
        INDEPENDENT
        for (int64_t j = 0; j < columns; j++) {
            T p = POWER((row[j] - base[j]) * (T)LOG2E);
            row[j] = p, sum[j] += p;
        }
    }
}
#endif
/* For queries first + skip .. first + rows; the others precede all of these keys. */
static void NAME(hide_columns)(const attention_head *h, T *st, T *line, int64_t first, int64_t key, int64_t n, int64_t skip,
                               int64_t rows)
{
    int64_t size = lc_size_of(h->mask.dtype);
    if (h->mask.data)
        for (int64_t i = 0; i < n; i++) {
            NAME(mask_line)(h, line, NAME(place)(&h->mask, first) + (key + i) * h->mask.col * size, h->mask.row * size, rows);
            for (int64_t j = skip; j < rows; j++) st[i * ROWS + j] += line[j];
        }
    if (h->causal && key + n > first + 1)
        for (int64_t i = 0; i < n; i++) {
            int64_t hidden = key + i - first; /* queries before the key */
            for (int64_t j = skip; j < hidden && j < rows; j++) st[i * ROWS + j] = (T)-INFINITY;
        }
}
/* ---- forward, few queries: one after the other, vectors along the width; columns of the other form would be mostly empty
 * ---- */

static T NAME(sum_lanes)(NAME(sums) v)
{
    T lanes[NAME(LANES)];
    memcpy(lanes, &v, sizeof lanes);
#pragma GCC unroll 4
    for (int n = NAME(LANES) / 2; n; n /= 2)
        for (int i = 0; i < n; i++) lanes[i] += lanes[i + n];
    return lanes[0];
}
static void NAME(dots)(T *to, const T *q, NAME(tile) k, int64_t n, int64_t width)
{
    for (int64_t i = 0; i < n; i++) {
        const T *row = k.at + i * k.row;
        NAME(sums) sum = { 0 };
        for (int64_t p = 0; p < width; p += NAME(LANES))
            sum += *(const NAME(vector) *)(q + p) * *(const NAME(vector) *)(row + p);
        to[i] = NAME(sum_lanes)(sum);
    }
}
static void NAME(attend_one)(const attention_head *h, int64_t row)
{
    int64_t wide = attention_wide(h->e), wide_v = attention_wide(h->ev), all = NAME(whole)(h->e), all_v = NAME(whole)(h->ev),
            end = h->causal && row + 1 < h->s ? row + 1 : h->s, size = lc_size_of(h->mask.dtype);
    T *copy = h->workspace, *copy_v = copy + KEYS * wide, *q = copy_v + KEYS * wide_v, *y = q + wide, *s = y + wide_v,
      *line = s + KEYS;
    T top = (T)-INFINITY, sum = 0;
    h->move(DTYPE, (char *)q, sizeof(T), h->q.dtype, NAME(place)(&h->q, row), h->q.col * lc_size_of(h->q.dtype), h->e);
    for (int64_t p = 0; p < all; p++) q[p] = p < h->e ? q[p] * (T)h->scale : 0;
    memset(y, 0, (size_t)all_v * sizeof(T));
    for (int64_t key = 0; key < end; key += KEYS) {
        int64_t n = end - key < KEYS ? end - key : KEYS;
        NAME(tile)
        k = NAME(tile_of)(h, &h->k, key, n, h->e, copy, wide, true),
        v = NAME(tile_of)(h, &h->v, key, n, h->ev, copy_v, wide_v, true);
        NAME(dots)(s, q, k, n, all);
        if (h->mask.data) {
            NAME(mask_line)(h, line, NAME(place)(&h->mask, row) + key * h->mask.col * size, h->mask.col * size, n);
            for (int64_t i = 0; i < n; i++) s[i] += line[i];
        }
        T high = top, part = 0;
        for (int64_t i = 0; i < n; i++) high = s[i] > high ? s[i] : high;
        T base = high == (T)-INFINITY ? 0 : high, factor = POWER((top - base) * (T)LOG2E);
        INDEPENDENT
        for (int64_t i = 0; i < n; i++) s[i] = POWER((s[i] - base) * (T)LOG2E);
        for (int64_t i = 0; i < n; i++) part += s[i];
        for (int64_t p = 0; p < all_v; p++) y[p] *= factor;
        NAME(multiply)(1, all_v, n, s, 0, 1, v.at, v.row, y, 0, y, ADD, NULL);
        top = high, sum = sum * factor + part;
    }
    T share = sum == 0 ? 0 : 1 / sum, *to = (T *)h->out.data + row * h->out.row;
    ((T *)h->lse)[row] = sum == 0 ? (T)INFINITY : top + (T)log((double)sum);
    for (int64_t p = 0; p < h->ev; p++) to[p * h->out.col] = y[p] * share;
}
static void NAME(attend_rows)(const attention_head *h, int64_t first)
{
    int64_t rows = h->l - first < ROWS ? h->l - first : ROWS, columns = NAME(whole)(rows), wide = attention_wide(h->e),
            wide_v = attention_wide(h->ev), end = h->causal && first + rows < h->s ? first + rows : h->s;
    if (4 * rows <= NAME(LANES)) {
        for (int64_t j = first; j < first + rows; j++) NAME(attend_one)(h, j);
        return;
    }
    T *copy = h->workspace, *copy_v = copy + KEYS * wide, *qt = copy_v + KEYS * wide_v, *ot = qt + ROWS * wide,
      *st = ot + ROWS * wide_v;
    T *top = st + ROWS * KEYS, *sum = top + ROWS, *factor = sum + ROWS, *line = factor + ROWS, *lse = (T *)h->lse + first;
    NAME(transpose_tile)
    (h, qt, NAME(tile_of)(h, &h->q, first, rows, h->e, copy, wide, false), rows, h->e, (T)h->scale);
    for (int64_t j = 0; j < ROWS; j++) top[j] = (T)-INFINITY, sum[j] = 0;
    memset(ot, 0, (size_t)(ROWS * h->ev) * sizeof(T));
    for (int64_t key = 0, n; key < end; key += n) {
        bool    crosses = h->causal && key >= first; /* the diagonal: in quarters, without the queries before them */
        int64_t most = crosses ? KEYS / 4 : KEYS, skip = crosses ? (key - first) / NAME(LANES) * NAME(LANES) : 0;
        n = end - key < most ? end - key : most;
        NAME(tile)
        k = NAME(tile_of)(h, &h->k, key, n, h->e, copy, wide, false),
        v = NAME(tile_of)(h, &h->v, key, n, h->ev, copy_v, wide_v, false);
        fetches soon = NAME(rows_of)(&h->k, key + n, h->e, &h->v, key, h->ev),
                later = NAME(rows_of)(&h->out, first, h->ev, &h->q, first + ROWS, h->e);
        NAME(multiply)
        (n, columns - skip, h->e, k.at, k.row, k.col, qt + skip, KEYS, st + skip, ROWS, st, STORE,
         first && !crosses ? NULL : &soon);
        NAME(hide_columns)(h, st, line, first, key, n, skip, rows);
        NAME(soften)(st + skip, n, columns - skip, top + skip, sum + skip, factor + skip);
        NAME(multiply)
        (h->ev, columns - skip, n, v.at, v.col, v.row, st + skip, ROWS, ot + skip, ROWS, factor + skip, RESCALE,
         key ? NULL : &later);
    }
    for (int64_t j = 0; j < columns; j++) factor[j] = sum[j] == 0 ? 0 : 1 / sum[j];
    INDEPENDENT
    for (int64_t j = 0; j < columns; j++) top[j] = sum[j] == 0 ? (T)INFINITY : top[j] + NAME(log)(sum[j]);
    memcpy(lse, top, (size_t)rows * sizeof(T));
    for (int64_t p = 0; p < h->ev; p++) {
        T *row = ot + p * ROWS;
        INDEPENDENT
        for (int64_t j = 0; j < columns; j++) row[j] *= factor[j];
    }
    char   *to = NAME(place)(&h->out, first);
    int64_t step = h->out.row * (int64_t)sizeof(T);
    if (h->out.col == 1) h->transpose(to, step, (const char *)ot, ROWS * sizeof(T), rows, h->ev, false);
    else
        for (int64_t j = 0; j < rows; j++, to += step)
            for (int64_t p = 0; p < h->ev; p++) ((T *)to)[p * h->out.col] = ot[p * ROWS + j];
}

/* ---- backward: rows are queries ---- */

static void NAME(gradient_sums)(const attention_head *h)
{
    T *g = h->workspace, *y = g + attention_wide(h->ev), *delta = h->delta;
    for (int64_t j = 0; j < h->l; j++) {
        NAME(tile)
        a = NAME(tile_of)(h, &h->grad, j, 1, h->ev, g, 0, true), b = NAME(tile_of)(h, &h->out, j, 1, h->ev, y, 0, true);
        NAME(sums) sum = { 0 };
        T total = 0, lanes[NAME(LANES)];
        for (int64_t p = 0; p < h->ev; p += NAME(LANES))
            sum += *(const NAME(vector) *)(a.at + p) * *(const NAME(vector) *)(b.at + p);
        memcpy(lanes, &sum, sizeof lanes);
        for (int i = 0; i < NAME(LANES); i++) total += lanes[i];
        delta[j] = total;
    }
}
/* Logits s (rows x n) become probabilities, and dp, the gradients of those, gradients of unscaled logits. */
static void NAME(gradient_rows)(const attention_head *h, T *s, T *dp, T *line, int64_t first, int64_t rows, int64_t key,
                                int64_t n)
{
    int64_t size = lc_size_of(h->mask.dtype), all = NAME(whole)(n);
    const T scale = (T)h->scale, *lse = (const T *)h->lse + first, *delta = (const T *)h->delta + first;
    for (int64_t j = 0; j < rows; j++, s += KEYS, dp += KEYS) {
        T base = lse[j], mean = delta[j];
        if (h->mask.data) {
            NAME(mask_line)(h, line, NAME(place)(&h->mask, first + j) + key * h->mask.col * size, h->mask.col * size, n);
            for (int64_t i = 0; i < n; i++) s[i] += line[i];
        }
        if (h->causal)
            for (int64_t i = first + j + 1 - key < 0 ? 0 : first + j + 1 - key; i < n; i++) s[i] = (T)-INFINITY;
#ifdef __AVX512F__
#pragma GCC unroll 4
        for (int64_t i = 0; i < all; i += NAME(LANES)) {
            NAME(vector) *at = (NAME(vector) *)(s + i), *slope = (NAME(vector) *)(dp + i);
            NAME(sums) p = NAME(exponentials)(*at - base);
            *at = p, *slope = p * (*slope - mean) * scale;
        }
#else
        INDEPENDENT
        for (int64_t i = 0; i < all; i++) {
            T p = POWER((s[i] - base) * (T)LOG2E);
            s[i] = p, dp[i] = p * (dp[i] - mean) * scale;
        }
#endif
    }
}
static void NAME(store_rows)(const attention_matrix *to, int64_t first, int64_t n, int64_t width, const T *from, int64_t step,
                             bool add)
{
    for (int64_t i = 0; i < n; i++) {
        T *row = (T *)to->data + (first + i) * to->row;
        if (!add && to->col == 1) memcpy(row, from + i * step, (size_t)width * sizeof(T));
        else if (add)
            for (int64_t p = 0; p < width; p++) row[p * to->col] += from[i * step + p];
        else
            for (int64_t p = 0; p < width; p++) row[p * to->col] = from[i * step + p];
    }
}
static void NAME(gradient_keys)(const attention_head *heads, int64_t group, int64_t key)
{
    const attention_head *h = heads;
    int64_t               n = h->s - key < KEYS ? h->s - key : KEYS, e = h->e, ev = h->ev, wide = attention_wide(e),
            wide_v = attention_wide(ev), all = NAME(whole)(e), all_v = NAME(whole)(ev);
    T *copy_k = h->workspace, *copy_q = copy_k + KEYS * wide, *kt = copy_q + ROWS * wide, *dk = kt + KEYS * wide,
      *dq = dk + KEYS * wide;
    T *copy_v = dq + ROWS * wide, *copy_g = copy_v + KEYS * wide_v, *vt = copy_g + ROWS * wide_v, *dv = vt + KEYS * wide_v;
    T *s = dv + KEYS * wide_v, *dp = s + ROWS * KEYS, *line = dp + ROWS * KEYS;
    NAME(tile)
    k = NAME(tile_of)(h, &h->k, key, n, e, copy_k, wide, true), v = NAME(tile_of)(h, &h->v, key, n, ev, copy_v, wide_v, true);
    NAME(transpose_tile)(h, kt, k, n, e, (T)h->scale);
    NAME(transpose_tile)(h, vt, v, n, ev, 1);
    memset(dk, 0, (size_t)(KEYS * wide) * sizeof(T)), memset(dv, 0, (size_t)(KEYS * wide_v) * sizeof(T));
    for (; group--; h++) {
        bool direct = h->dq.col == 1 && e == all;
        for (int64_t first = h->causal ? key / ROWS * ROWS : 0, rows; first < h->l; first += rows) {
            int64_t most = h->causal && first < key + n ? ROWS / 4 : ROWS; /* across the diagonal: in quarters */
            rows = h->l - first < most ? h->l - first : most;
            int64_t seen = h->causal && first + rows - key < n ? first + rows - key : n, wide_s = NAME(whole)(seen);
            NAME(tile)
            q = NAME(tile_of)(h, &h->q, first, rows, e, copy_q, wide, true),
            g = NAME(tile_of)(h, &h->grad, first, rows, ev, copy_g, wide_v, true);
            fetches soon = NAME(rows_of)(&h->grad, first, ev, &h->q, first + rows, e),
                    sums = NAME(rows_of)(&h->dq, first, e, &h->dq, first, 0),
                    keys = NAME(rows_of)(&h->k, key + n, e, &h->v, key + n, ev),
                    ends = NAME(rows_of)(&h->dk, key, e, &h->dv, key, ev);
            bool start = key == 0, begin = first == 0;
            NAME(multiply)(rows, wide_s, e, q.at, q.row, q.col, kt, KEYS, s, KEYS, s, STORE, start ? &soon : NULL);
            NAME(multiply)(rows, wide_s, ev, g.at, g.row, g.col, vt, KEYS, dp, KEYS, dp, STORE, start ? &sums : NULL);
            NAME(gradient_rows)(h, s, dp, line, first, rows, key, seen);
            NAME(multiply)(seen, all_v, rows, s, 1, KEYS, g.at, g.row, dv, wide_v, dv, ADD, begin ? &keys : NULL);
            NAME(multiply)(seen, all, rows, dp, 1, KEYS, q.at, q.row, dk, wide, dk, ADD, begin ? &ends : NULL);
            T *to = direct ? (T *)h->dq.data + first * h->dq.row : dq;
            NAME(multiply)
            (rows, all, seen, dp, KEYS, 1, k.at, k.row, to, direct ? h->dq.row : wide, to, direct && key ? ADD : STORE, NULL);
            if (!direct) NAME(store_rows)(&h->dq, first, rows, e, dq, wide, key > 0);
        }
    }
    NAME(store_rows)(&heads->dk, key, n, e, dk, wide, false);
    NAME(store_rows)(&heads->dv, key, n, ev, dv, wide_v, false);
}
#undef T
#undef DTYPE
#undef POWER
#undef NAME

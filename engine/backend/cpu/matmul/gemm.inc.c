/* The kernels for elements of type T. Lanes of a vector are columns of the result, except in dot products, where they are
 * terms of the sum. */
enum { NAME(LANES) = VECTOR_BYTES / sizeof(T), NAME(WIDE) = 2, NAME(COLUMNS) = NAME(LANES) * NAME(WIDE) };
typedef T NAME(vector) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
typedef T NAME(sums)
    __attribute__((vector_size(VECTOR_BYTES))); /* in registers; and aligned, which arrays of the other are not */
#define LOAD(p)                ((NAME(sums)) * (const NAME(vector) *)(p))
#define STORE(p, x)            (*(NAME(vector) *)(p) = (x))
#define LOAD_PART(p, part)     ((NAME(sums))NAME(load_part)(p, part))
#define STORE_PART(p, x, part) NAME(store_part)(p, x, part)

/* ---- packed panels: ROWS x COLUMNS sums stay in registers while k runs ---- */
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
    T *row = out;
#pragma GCC unroll 1
    for (int i = 0; i < ROWS; i++, row += step) __builtin_prefetch(row, 1), __builtin_prefetch(row + NAME(COLUMNS) - 1, 1);
    NAME(add_products)(k, a, b, sum);
    row = out;
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++, row += step)
#pragma GCC unroll 4
        for (int j = 0; j < NAME(WIDE); j++) {
            T *to = row + j * NAME(LANES);
            STORE(to, accumulate ? LOAD(to) + sum[i][j] : sum[i][j]);
        }
}

/* Transposes n rows of LANES elements to LANES rows of n; y: a buffer of the same size. */
INLINE void NAME(transpose_rows)(NAME(sums) * x, NAME(sums) * y, const int n)
{
    enum { L = NAME(LANES) };
#pragma GCC unroll 8
    for (int round = 1; round < n; round *= 2) {
#pragma GCC unroll 16
        for (int i = 0; i < n / 2; i++) {
            y[2 * i] = NAME(ZIP)(x[i], x[i + n / 2], 0);
            y[2 * i + 1] = NAME(ZIP)(x[i], x[i + n / 2], L / 2);
        }
#pragma GCC unroll 16
        for (int i = 0; i < n; i++) x[i] = y[i];
    }
}
#ifdef COUNT_OF
/* Stores TILE_ROWS rows of V vectors as columns of the result: each column is TILE_ROWS contiguous elements. */
INLINE void NAME(store_transposed)(const int R, const int V, const lc_product *g, NAME(sums) sum[][TILE_WIDE], T *out,
                                   int64_t rows, int64_t columns)
{
    enum { L = NAME(LANES), N = TILE_ROWS };
    typedef T piece __attribute__((vector_size(N * sizeof(T)), aligned(sizeof(T)), may_alias));
    NAME(sums) block[N];
#pragma GCC unroll 4
    for (int j = 0; j < V; j++) {
        NAME(sums) x[N], y[N];
#pragma GCC unroll 8
        for (int i = 0; i < N; i++) x[i] = i < R ? sum[i][j] : (NAME(sums)){ 0 };
        NAME(transpose_rows)(x, y, N);
        memcpy(block, x, sizeof block);
        const T *from = (const T *)block;
        T       *to = out + j * L * g->out_col;
        if (rows == N && columns >= (j + 1) * L) {
            if (g->accumulate)
                for (int c = 0; c < L; c++, from += N, to += g->out_col) *(piece *)to += *(const piece *)from;
            else
                for (int c = 0; c < L; c++, from += N, to += g->out_col) *(piece *)to = *(const piece *)from;
        } else
            for (int64_t c = 0; c < L && j * L + c < columns; c++, from += N, to += g->out_col)
                for (int64_t i = 0; i < rows; i++) to[i] = g->accumulate ? to[i] + from[i] : from[i];
    }
}
#endif
/* ---- in place: a register block of R x V vectors of the result, from rows of b in place. The last vector may be partial,
 * unless `whole` is set. If there are fewer rows, the last one is computed again and not stored. ---- */
INLINE void NAME(tile)(const int R, const int V, const lc_product *g, const T *a, const T *b, T *out, int64_t rows,
                       NAME(part) last, bool whole, const lc_more_steps *more, const T *more_a)
{
    NAME(sums) sum[TILE_ROWS][TILE_WIDE];
    const T      *row[TILE_ROWS];
    const int64_t b_row = g->b_row;
    int64_t       a_col = g->a_col, k = g->k;
#pragma GCC unroll 16
    for (int i = 0; i < R; i++) {
        row[i] = a + (i < rows ? i : rows - 1) * g->a_row;
#pragma GCC unroll 4
        for (int j = 0; j < V; j++) sum[i][j] = (NAME(sums)){ 0 };
    }
again:
    for (int64_t p = 0, q = 0; p < k; p++, q += a_col, b += b_row) {
        NAME(sums) x[TILE_WIDE];
#pragma GCC unroll 4
        for (int j = 0; j < V; j++) {
            x[j] = whole || j + 1 < V ? LOAD(b + j * NAME(LANES)) : LOAD_PART(b + j * NAME(LANES), last);
            __builtin_prefetch(b + 4 * b_row + j * NAME(LANES));
        }
#pragma GCC unroll 16
        for (int i = 0; i < R; i++) {
            T y = row[i][q];
#pragma GCC unroll 4
            for (int j = 0; j < V; j++) sum[i][j] += y * x[j];
        }
    }
    if (more) {
#pragma GCC unroll 16
        for (int i = 0; i < R; i++) row[i] = more_a + (i < rows ? i : rows - 1) * more->row;
        a_col = more->col, k = more->k, more = NULL;
        goto again;
    }
#ifdef COUNT_OF
    if (g->out_col != 1) {
        NAME(store_transposed)(R, V, g, sum, out, rows, (V - 1) * NAME(LANES) + COUNT_OF(last));
        return;
    }
#endif
#pragma GCC unroll 16
    for (int i = 0; i < R; i++)
        if (i < rows) {
            T *to = out + i * g->out_row;
#pragma GCC unroll 4
            for (int j = 0; j < V; j++, to += NAME(LANES))
                if (whole || j + 1 < V) STORE(to, g->accumulate ? LOAD(to) + sum[i][j] : sum[i][j]);
                else STORE_PART(to, g->accumulate ? LOAD_PART(to, last) + sum[i][j] : sum[i][j], last);
        }
}
#define TILE(R, V)                                                                                                             \
    static void NAME(tile_##R##_##V)(const lc_product *g, const T *a, const T *b, T *out, int64_t rows, NAME(part) last)       \
    {                                                                                                                          \
        if (NAME(IS_WHOLE)(last)) NAME(tile)(R, V, g, a, b, out, rows, last, true, NULL, NULL);                                \
        else NAME(tile)(R, V, g, a, b, out, rows, last, false, NULL, NULL);                                                    \
    }
EACH_TILE(TILE)
#undef TILE

/* One row: eight rows of b at a time, all their columns, so that memory is read in streams. */
static void NAME(row_sums)(const lc_product *g, const T *a, const T *b, T *out)
{
    int64_t whole = g->n - g->n % NAME(LANES), p = 0;
    NAME(part) rest = NAME(part_of)(g->n - whole);
    const int64_t step = g->b_row;
    bool          add = g->accumulate;
    for (; p + 8 <= g->k; p += 8, add = true, b += 8 * step) {
        T x[8];
        for (int u = 0; u < 8; u++) x[u] = a[(p + u) * g->a_col];
        for (int64_t j = 0; j < whole; j += NAME(LANES)) {
            NAME(sums) sum = { 0 };
            if (add) sum = LOAD(out + j);
#pragma GCC unroll 8
            for (int u = 0; u < 8; u++) sum += x[u] * LOAD(b + u * step + j);
            STORE(out + j, sum);
        }
        if (whole == g->n) continue;
        NAME(sums) sum = { 0 };
        if (add) sum = LOAD_PART(out + whole, rest);
        for (int u = 0; u < 8; u++) sum += x[u] * LOAD_PART(b + u * step + whole, rest);
        STORE_PART(out + whole, sum, rest);
    }
    for (; p < g->k; p++, add = true, b += step) {
        T x = a[p * g->a_col];
        for (int64_t j = 0; j < g->n; j++) out[j] = add ? out[j] + x * b[j] : x * b[j];
    }
}

static void NAME(in_place_more)(const lc_product *g, const lc_more_steps *more)
{
    int64_t vectors = (g->n + NAME(LANES) - 1) / NAME(LANES);
    NAME(part) last = NAME(part_of)(g->n - (vectors - 1) * NAME(LANES));
    for (int64_t i = 0, rows; i < g->m; i += TILE_ROWS) {
        const T *a = (const T *)g->a + i * g->a_row, *more_a = (const T *)more->a + i * more->row;
        T       *out = (T *)g->out + i * g->out_row;
        rows = g->m - i < TILE_ROWS ? g->m - i : TILE_ROWS;
        if (vectors == 1) NAME(tile)(TILE_ROWS, 1, g, a, g->b, out, rows, last, false, more, more_a);
        else if (vectors == 2) NAME(tile)(TILE_ROWS, 2, g, a, g->b, out, rows, last, false, more, more_a);
        else NAME(tile)(TILE_ROWS, TILE_WIDE, g, a, g->b, out, rows, last, false, more, more_a);
    }
}
static void NAME(in_place)(const lc_product *g, int64_t count, int64_t a_step, int64_t b_step, int64_t out_step)
{
    typedef void (*tile_fn)(const lc_product *, const T *, const T *, T *, int64_t, NAME(part));
#define TILE(R, V) [R > TILE_ROWS / 2][V - 1] = NAME(tile_##R##_##V),
    static const tile_fn tiles[2][TILE_WIDE] = { EACH_TILE(TILE) };
#undef TILE
    const T *a = g->a, *b = g->b;
    T       *out = g->out;
    int64_t  vectors = (g->n + NAME(LANES) - 1) / NAME(LANES), strips = (vectors + TILE_WIDE - 1) / TILE_WIDE;
    if (g->m <= TILE_ROWS && strips == 1) { /* tiny products: one tile each */
        tile_fn one = tiles[g->m > TILE_ROWS / 2][vectors - 1];
        NAME(part) last = NAME(part_of)(g->n - (vectors - 1) * NAME(LANES));
        for (; count-- > 0; a += a_step, b += b_step, out += out_step) one(g, a, b, out, g->m, last);
        return;
    }
    for (; count-- > 0; a += a_step, b += b_step, out += out_step) {
        if (g->m == 1 && g->out_col == 1) {
            NAME(row_sums)(g, a, b, out);
            continue;
        }
        for (int64_t strip = 0, done = 0; strip < strips; strip++) {
            int64_t wide = (vectors - done + strips - strip - 1) / (strips - strip), j = done * NAME(LANES);
            NAME(part) last = NAME(part_of)(done + wide < vectors ? NAME(LANES) : g->n - (vectors - 1) * NAME(LANES));
            for (int64_t i = 0, rows; i < g->m; i += TILE_ROWS) {
                rows = g->m - i < TILE_ROWS ? g->m - i : TILE_ROWS;
                tiles[rows > TILE_ROWS / 2][wide - 1](g, a + i * g->a_row, b + j, out + i * g->out_row + j * g->out_col, rows,
                                                      last);
            }
            done += wide;
        }
    }
}

/* ---- dot products: one vector sum per element of a block of the result; rows of a and columns of b are contiguous ---- */
INLINE T NAME(total)(NAME(sums) x)
{
    T lanes[NAME(LANES)];
    memcpy(lanes, &x, sizeof lanes);
#pragma GCC unroll 8
    for (int n = NAME(LANES) / 2; n; n /= 2)
#pragma GCC unroll 16
        for (int i = 0; i < n; i++) lanes[i] += lanes[i + n];
    return lanes[0];
}
INLINE void NAME(dots)(const int R, const int C, const lc_product *g, int64_t i, int64_t j)
{
    const T *a[DOT_ROWS], *b[DOT_COLUMNS];
    int64_t  p = 0, rows = g->m - i, columns = g->n - j;
    NAME(part) rest = NAME(part_of)(g->k % NAME(LANES));
    NAME(sums) sum[DOT_ROWS][DOT_COLUMNS];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
        a[r] = (const T *)g->a + (i + (r < rows ? r : rows - 1)) * g->a_row;
#pragma GCC unroll 8
        for (int c = 0; c < C; c++) sum[r][c] = (NAME(sums)){ 0 };
    }
#pragma GCC unroll 8
    for (int c = 0; c < C; c++) b[c] = (const T *)g->b + (j + (c < columns ? c : columns - 1)) * g->b_col;
#define ADD_PRODUCTS(load)                                                                                                     \
    NAME(sums) y[DOT_COLUMNS];                                                                                                 \
    _Pragma("GCC unroll 8") for (int c = 0; c < C; c++) y[c] = load(b[c] + p);                                                 \
    _Pragma("GCC unroll 8") for (int r = 0; r < R; r++)                                                                        \
    {                                                                                                                          \
        NAME(sums) x = load(a[r] + p);                                                                                         \
        _Pragma("GCC unroll 8") for (int c = 0; c < C; c++) sum[r][c] += x * y[c];                                             \
    }
#define LOAD_REST(q) LOAD_PART(q, rest)
    for (; p + NAME(LANES) <= g->k; p += NAME(LANES)) { ADD_PRODUCTS(LOAD) }
    if (p < g->k) { ADD_PRODUCTS(LOAD_REST) }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
        for (int c = 0; c < C; c++) {
            T *to = (T *)g->out + (i + r) * g->out_row + (j + c) * g->out_col, s = NAME(total)(sum[r][c]);
            if (r < rows && c < columns) *to = g->accumulate ? *to + s : s;
        }
#undef ADD_PRODUCTS
#undef LOAD_REST
}
static void NAME(dots_many)(const lc_product *g, int64_t i, int64_t j) { NAME(dots)(DOT_ROWS, DOT_COLUMNS, g, i, j); }
static void NAME(dots_one)(const lc_product *g, int64_t i, int64_t j) { NAME(dots)(DOT_ROWS, 1, g, i, j); }
static void NAME(dot)(int64_t k, const void *x, const void *y, void *out);
static void NAME(by_dots)(const lc_product *g)
{
    if (g->m == 1 && g->n == 1) {
        T sum;
        NAME(dot)(g->k, g->a, g->b, &sum);
        *(T *)g->out = g->accumulate ? *(T *)g->out + sum : sum;
        return;
    }
    for (int64_t i = 0; i < g->m; i += DOT_ROWS)
        for (int64_t j = 0; j < g->n;)
            if (g->n - j == 1) NAME(dots_one)(g, i, j), j++;
            else NAME(dots_many)(g, i, j), j += DOT_COLUMNS;
}

/* The dot product of two contiguous vectors, in four accumulators, so that additions do not wait for each other. */
static void NAME(dot)(int64_t k, const void *x, const void *y, void *out)
{
    enum { STEP = 4 * NAME(LANES) };
    const T *a = x, *b = y;
    NAME(sums) sum[4] = { 0 };
    int64_t p = 0;
    for (; p + STEP <= k; p += STEP)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) sum[i] += LOAD(a + p + i * NAME(LANES)) * LOAD(b + p + i * NAME(LANES));
    T rest = NAME(total)((sum[0] + sum[1]) + (sum[2] + sum[3]));
    for (; p < k; p++) rest += a[p] * b[p];
    memcpy(out, &rest, sizeof rest);
}

/* ---- epilogue: of n columns of one row, in L1-sized steps ---- */
static void NAME(finish_row)(const lc_epilogue *e, int64_t row, int64_t column, int64_t n, void *to, int64_t step)
{
    T        scale = (T)e->scale, addend_scale = (T)e->addend_scale, *out = to;
    const T *addend = e->addend ? (const T *)e->addend + row * e->addend_row + column * e->addend_col : NULL;
    const T *residual = e->residual ? (const T *)e->residual + row * e->residual_row + column * e->residual_col : NULL;
    if (addend && step == 1 && e->addend_col == 1) {
        INDEPENDENT
        for (int64_t j = 0; j < n; j++) out[j] = scale * out[j] + addend_scale * addend[j];
    } else if (addend)
        for (int64_t j = 0; j < n; j++) out[j * step] = scale * out[j * step] + addend_scale * addend[j * e->addend_col];
    else if (scale != 1)
        for (int64_t j = 0; j < n; j++) out[j * step] *= scale;
    if (e->activation && step == 1) e->activation(out, (const void *[]){ out }, 0, n);
    else if (e->activation)
        for (int64_t j = 0; j < n; j++) e->activation(out + j * step, (const void *[]){ out + j * step }, 0, 1);
    if (residual && step == 1 && e->residual_col == 1) {
        INDEPENDENT
        for (int64_t j = 0; j < n; j++) out[j] += residual[j];
    } else if (residual)
        for (int64_t j = 0; j < n; j++) out[j * step] += residual[j * e->residual_col];
}

/* ---- packing ---- */
/* Transposes n rows of up to LANES elements each to columns of `to`, whose rows are `lanes` apart. Vectors are stored whole
 * where later stores overwrite the surplus; `exact`: nothing may be written after the last row. */
INLINE void NAME(transpose)(T *to, const T *from, int64_t row_step, int64_t n, int64_t m, int lanes, bool exact)
{
    enum { L = NAME(LANES) };
    NAME(sums) x[L], y[L];
    NAME(part) some = NAME(part_of)(m);
    for (int i = 0; i < L; i++)
        x[i] = i >= n ? (NAME(sums)){ 0 } : m == L ? LOAD(from + i * row_step) : LOAD_PART(from + i * row_step, some);
    NAME(transpose_rows)(x, y, L);
#pragma GCC unroll 16
    for (int q = 0; q < L; q++)
        if (q < m - exact) STORE(to + q * lanes, x[q]);
        else if (q < m) STORE_PART(to + q * lanes, x[q], NAME(part_of)(n));
}
INLINE void NAME(pack_panel)(T *to, const T *from, int64_t n, int64_t row_step, int64_t depth, int64_t depth_step, int lanes)
{
    enum { L = NAME(LANES) };
    if (row_step == 1 && n == lanes) {
        for (int64_t q = 0; q < depth; q++) memcpy(to + q * lanes, from + q * depth_step, (size_t)lanes * sizeof(T));
    } else if (depth_step == 1 && L > 1) {
        for (int64_t p = 0; p < depth; p += L)
            for (int i = (lanes - 1) / L * L; i >= 0; i -= L) {
                int64_t here = n - i < 0 ? 0 : n - i < L ? n - i : L, m = depth - p < L ? depth - p : L;
                bool    spills = lanes - i < L && p + m == depth; /* its surplus goes to the next panel */
                NAME(transpose)(to + p * lanes + i, here ? from + i * row_step + p : from, row_step, here, m, lanes, spills);
            }
    } else if (row_step == 0 && n == lanes) {
        for (int64_t q = 0; q < depth; q++)
            for (int64_t i = 0; i < lanes; i++) to[q * lanes + i] = from[q * depth_step];
    } else {
        if (n < lanes) memset(to, 0, (size_t)(lanes * depth) * sizeof(T));
        for (int64_t q = 0; q < depth; q++)
            for (int64_t i = 0; i < n; i++) to[q * lanes + i] = from[i * row_step + q * depth_step];
    }
}
static void NAME(pack)(void *panels, const void *matrix, int64_t rows, int64_t row_step, int64_t depth, int64_t depth_step,
                       int lanes)
{
    enum { L = NAME(LANES) };
    T       *to = panels;
    const T *from = matrix;
    for (int64_t first = 0; first < rows; first += lanes, from += lanes * row_step, to += lanes * depth) {
        int64_t n = rows - first < lanes ? rows - first : lanes;
        if (lanes == ROWS) NAME(pack_panel)(to, from, n, row_step, depth, depth_step, ROWS);
        else if (lanes == NAME(COLUMNS)) NAME(pack_panel)(to, from, n, row_step, depth, depth_step, NAME(COLUMNS));
        else if (lanes == TILE_WIDE * L) NAME(pack_panel)(to, from, n, row_step, depth, depth_step, TILE_WIDE * L);
        else {
            memset(to, 0, (size_t)(lanes * depth) * sizeof(T));
            for (int64_t q = 0; q < depth; q++)
                for (int64_t i = 0; i < n; i++) to[q * lanes + i] = from[i * row_step + q * depth_step];
        }
    }
}
#undef LOAD
#undef STORE
#undef LOAD_PART
#undef STORE_PART
#undef T
#undef NAME

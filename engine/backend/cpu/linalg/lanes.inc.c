/* For T, of which W matrices are worked on at a time, and I, an integer of its size: included by lanes.isa.o3.c. */
typedef T NAME(lane) __attribute__((vector_size(W * sizeof(T)), aligned(W * sizeof(T))));
typedef I NAME(mask)
    __attribute__((vector_size(W * sizeof(T)), aligned(W * sizeof(T)))); /* of a comparison: all bits or none */
#define V NAME(lane)
#define M NAME(mask)

static inline __attribute__((always_inline)) V NAME(all)(T x) { return x - (V){ 0 }; }
static inline __attribute__((always_inline)) V NAME(pick)(M m, V yes, V no) { return (V)((m & (M)yes) | (~m & (M)no)); }
static inline __attribute__((always_inline)) V NAME(size)(V x) { return NAME(pick)(x < 0, -x, x); }
static inline V                                NAME(root)(V x)
{
    T lanes[W] __attribute__((aligned(W * sizeof(T))));
    __builtin_memcpy(lanes, &x, sizeof lanes);
    for (int l = 0; l < W; l++) lanes[l] = sizeof(T) == 4 ? (T)sqrtf((float)lanes[l]) : (T)sqrt((double)lanes[l]);
    __builtin_memcpy(&x, lanes, sizeof lanes);
    return x;
}
static inline __attribute__((always_inline)) bool NAME(any)(
    M m) /* halves are joined: one by one, lanes take three times as long */
{
    if (W > 8) m |= __builtin_shufflevector(m, m, EACH_LANE(ACROSS, 8));
    if (W > 4) m |= __builtin_shufflevector(m, m, EACH_LANE(ACROSS, 4));
    if (W > 2) m |= __builtin_shufflevector(m, m, EACH_LANE(ACROSS, 2));
    m |= __builtin_shufflevector(m, m, EACH_LANE(ACROSS, 1));
    return m[0] != 0;
}

/* Rows become columns: each stage exchanges a bit of the row with a bit of the lane. */
#define EXCHANGED(s)                                                                                                           \
    if (W > (s)) _Pragma("GCC unroll 16") for (int k = 0; k < W; k++)                                                          \
        {                                                                                                                      \
            if (k & (s)) continue;                                                                                             \
            V x = r[k], y = r[(k + (s)) % W];                                                                                  \
            r[k] = __builtin_shufflevector(x, y, EACH_LANE(UPPER_OF, s));                                                      \
            r[(k + (s)) % W] = __builtin_shufflevector(x, y, EACH_LANE(LOWER_OF, s));                                          \
        }
static inline __attribute__((always_inline)) void NAME(turn_over)(V *r)
{
    EXCHANGED(8)
    EXCHANGED(4)
    EXCHANGED(2)
    EXCHANGED(1)
}
#undef EXCHANGED
/* Matrices whose elements lie together, and they one after another: loaded and stored W elements at a time. A vector may reach
 * into the matrices behind, as far as those of the group: the others go element by element. */
static bool NAME(together)(const lc_matrices *m)
{
    int64_t size = m->rows * m->cols;
    bool    dense = (m->row_step == 1 && m->col_step == m->rows) || (m->col_step == 1 && m->row_step == m->cols);
    return dense && size >= 4 && m->batch_ndim == 1 && m->batch_step == size;
}
/* Elements at, at + 1, ... in the order of memory: to or from r. Those of a matrix by columns are in the order of a; by rows, line
 * after line. */
static inline __attribute__((always_inline)) void NAME(rows_of_lanes)(int64_t rows, int64_t cols, V *a, V *r, int64_t at,
                                                                      int64_t n, bool out)
{
    V *to = a + at % cols * rows + at / cols, *past = a + rows * cols;
#pragma GCC unroll 16
    for (int64_t k = 0; k < n; k++) {
        if (out) r[k] = *to;
        else *to = r[k];
        to += rows;
        if (to >= past) to -= rows * cols - 1;
    }
}
static inline __attribute__((always_inline)) void NAME(elements)(const lc_matrices *m, V *a, V *r, int64_t at, int64_t n,
                                                                 bool out)
{
    if (m->row_step == 1) memcpy(out ? r : a + at, out ? a + at : r, (size_t)n * sizeof(V));
    else NAME(rows_of_lanes)(m->rows, m->cols, a, r, at, n, out);
}
/* A whole group of matrices (n, n) that fit into a vector each: from or to all, in registers. The last one must not reach behind. */
static inline __attribute__((always_inline)) void NAME(move_few)(const int64_t n, bool by_column, T *all, V *a, bool out)
{
    enum { LINES = W };
    const int64_t size = n * n;
    V             r[LINES] = { { 0 } };
    if (out && by_column) memcpy(r, a, (size_t)size * sizeof(V));
    else if (out) NAME(rows_of_lanes)(n, n, a, r, 0, size, true);
#pragma GCC unroll 16
    for (int l = 0; l < LINES && !out; l++) memcpy(&r[l], all + l * size, l + 1 < LINES ? sizeof(V) : (size_t)size * sizeof(T));
    NAME(turn_over)(r);
#pragma GCC unroll 16
    for (int l = 0; l < LINES && out; l++) memcpy(all + l * size, &r[l], l + 1 < LINES ? sizeof(V) : (size_t)size * sizeof(T));
    if (!out && by_column) memcpy(a, r, (size_t)size * sizeof(V));
    else if (!out) NAME(rows_of_lanes)(n, n, a, r, 0, size, false);
}
static inline __attribute__((always_inline)) bool NAME(moved)(const lc_matrices *m, T *all, int64_t count, V *a, bool out)
{
    if (W < 16 || count < W || m->rows != m->cols) return false;
    if (m->rows == 3) NAME(move_few)(3, m->row_step == 1, all, a, out);
    else if (m->rows == 4) NAME(move_few)(4, m->row_step == 1, all, a, out);
    else return false;
    return true;
}
/* Numbers one after the other: lanes as they are. */
static inline bool NAME(numbers)(const lc_matrices *m)
{
    return m->rows == 1 && m->cols == 1 && m->batch_ndim == 1 && m->batch_step == 1;
}
/* How many of the first matrices of a group have W elements behind `at` that belong to it. */
static inline int64_t NAME(safe)(int64_t count, int64_t size, int64_t at)
{
    int64_t behind = (W + at + size - 1) / size;
    return behind < count ? count - behind + 1 : behind == count;
}
/* Element (i, j) of the matrices is a[i + j * rows]. */
static void NAME(gather)(const lc_matrices *m, int64_t first, int64_t count, V *a)
{
    int64_t size = m->rows * m->cols;
    if (!NAME(together)(m)) {
        for (int64_t l = 0; l < W; l++) {
            const T *from = (const T *)matrix_at(m, first + (l < count ? l : count - 1), sizeof(T));
            T       *to = (T *)a + l;
            for (int64_t j = 0; j < m->cols; j++)
                for (int64_t i = 0; i < m->rows; i++, to += W) *to = from[i * m->row_step + j * m->col_step];
        }
        return;
    }
    T *all = (T *)m->data + first * size;
    if (NAME(moved)(m, all, count, a, false)) return;
    for (int64_t at = 0; at < size; at += W) {
        int64_t n = size - at < W ? size - at : W;
        int64_t safe = NAME(safe)(count, size, at);
        V       r[W];
        for (int64_t l = 0; l < safe; l++) __builtin_memcpy(&r[l], all + l * size + at, sizeof(V));
        for (int64_t l = safe; l < W; l++) {
            const T *from = all + (l < count ? l : count - 1) * size + at;
            r[l] = (V){ 0 };
            for (int64_t k = 0; k < n; k++) ((T *)&r[l])[k] = from[k];
        }
        NAME(turn_over)(r);
        NAME(elements)(m, a, r, at, n, false);
    }
}
static void NAME(scatter)(const lc_matrices *m, int64_t first, int64_t count, V *a)
{
    int64_t size = m->rows * m->cols;
    if (!m->data) return;
    if (NAME(numbers)(m)) {
        memcpy((T *)m->data + first, a, (size_t)count * sizeof(T));
        return;
    }
    if (!NAME(together)(m)) {
        for (int64_t l = 0; l < count; l++) {
            T       *to = (T *)matrix_at(m, first + l, sizeof(T));
            const T *from = (const T *)a + l;
            for (int64_t j = 0; j < m->cols; j++)
                for (int64_t i = 0; i < m->rows; i++, from += W) to[i * m->row_step + j * m->col_step] = *from;
        }
        return;
    }
    T *all = (T *)m->data + first * size;
    if (NAME(moved)(m, all, count, a, true)) return;
    for (int64_t at = (size - 1) / W * W; at >= 0; at -= W) { /* from the last: what spills over is overwritten after */
        int64_t n = size - at < W ? size - at : W;
        int64_t safe = NAME(safe)(count, size, at);
        V       r[W] = { { 0 } };
        NAME(elements)(m, a, r, at, n, true);
        NAME(turn_over)(r);
        for (int64_t l = 0; l < safe; l++) __builtin_memcpy(all + l * size + at, &r[l], sizeof(V));
        for (int64_t l = safe; l < count; l++)
            for (int64_t k = 0; k < n; k++) all[l * size + at + k] = ((const T *)&r[l])[k];
    }
}
static void NAME(scatter_ints)(const lc_matrices *m, int64_t first, int64_t count, const V *a, int64_t n, int add)
{
    if (!m->data) return;
    for (int64_t i = 0; i < n; i++) {
        int32_t  whole[W];
        int32_t *to = (int32_t *)m->data + first * m->batch_step + i * m->row_step;
        for (int l = 0; l < W; l++) whole[l] = (int32_t)((const T *)&a[i])[l] + add;
        if (NAME(numbers)(m)) memcpy(to, whole, (size_t)count * sizeof *to);
        else if (m->batch_ndim == 1)
            for (int64_t l = 0; l < count; l++) to[l * m->batch_step] = whole[l];
        else
            for (int64_t l = 0; l < count; l++)
                ((int32_t *)matrix_at(m, first + l, sizeof(int32_t)))[i * m->row_step] = whole[l];
    }
}

/* a (m, n) becomes L and U; piv[k] the row exchanged with row k, info the first zero pivot, from 1. b (m, k): its rows are exchanged too. */
static inline __attribute__((always_inline)) void NAME(factorise_any)(int64_t m, int64_t n, V *restrict a, V *restrict piv,
                                                                      V *restrict info, V *restrict b, int64_t k)
{
    int64_t few = m < n ? m : n;
    *info = (V){ 0 };
#pragma GCC unroll 4
    for (int64_t c = 0; c < few; c++) {
        V *col = a + c * m, most = NAME(size)(col[c]), p = NAME(all)((T)c);
#pragma GCC unroll 4
        for (int64_t i = c + 1; i < m; i++) {
            V size = NAME(size)(col[i]);
            M better = size > most;
            most = NAME(pick)(better, size, most), p = NAME(pick)(better, NAME(all)((T)i), p);
        }
        piv[c] = p;
#pragma GCC unroll 4
        for (int64_t i = c + 1; i < m; i++) {
            M here = p == NAME(all)((T)i);
            if (m > 4 && !NAME(any)(here)) continue; /* of few rows, some lane exchanges nearly always */
#pragma GCC unroll 4
            for (int64_t j = 0; j < n; j++) {
                V x = a[c + j * m], y = a[i + j * m];
                a[c + j * m] = NAME(pick)(here, y, x), a[i + j * m] = NAME(pick)(here, x, y);
            }
            for (int64_t j = 0; j < k; j++) {
                V x = b[c + j * m], y = b[i + j * m];
                b[c + j * m] = NAME(pick)(here, y, x), b[i + j * m] = NAME(pick)(here, x, y);
            }
        }
        M zero = col[c] == NAME(all)(0);
        *info = NAME(pick)(zero & (*info == NAME(all)(0)), NAME(all)((T)(c + 1)), *info);
        V pivot = NAME(pick)(zero, NAME(all)(1), col[c]);
        M tiny = NAME(size)(pivot) < NAME(all)(TINY);
        if (__builtin_expect(NAME(any)(tiny), 0)) /* the inverse of a subnormal number overflows */
#pragma GCC unroll 4
            for (int64_t i = c + 1; i < m; i++) col[i] = col[i] / pivot;
        else {
            V inverse = NAME(all)(1) / pivot;
#pragma GCC unroll 4
            for (int64_t i = c + 1; i < m; i++) col[i] *= inverse;
        }
#pragma GCC unroll 4
        for (int64_t j = c + 1; j < n; j++) {
            V *to = a + j * m, by = to[c];
#pragma GCC unroll 4
            for (int64_t i = c + 1; i < m; i++) to[i] -= col[i] * by;
        }
    }
}
/* Of a constant size: a copy that nothing else points to stays in registers. */
static inline __attribute__((always_inline)) void NAME(factorise_few)(const int64_t n, V *a, V *piv, V *info, V *b, int64_t k)
{
    V matrix[16], exchanged[4], zero;
    memcpy(matrix, a, (size_t)(n * n) * sizeof(V));
    NAME(factorise_any)(n, n, matrix, exchanged, &zero, b, k);
    memcpy(a, matrix, (size_t)(n * n) * sizeof(V)), memcpy(piv, exchanged, (size_t)n * sizeof(V));
    *info = zero;
}
static void NAME(factorise)(int64_t m, int64_t n, V *a, V *piv, V *info, V *b, int64_t k)
{
    if (m == 3 && n == 3) NAME(factorise_few)(3, a, piv, info, b, k);
    else if (m == 4 && n == 4) NAME(factorise_few)(4, a, piv, info, b, k);
    else NAME(factorise_any)(m, n, a, piv, info, b, k);
}
static inline __attribute__((always_inline)) void NAME(substitute_any)(int64_t n, int64_t k, const V *a,
                                                                       V *b) /* b := U^-1 L^-1 b */
{
    for (int64_t j = 0; j < k; j++) {
        V *x = b + j * n;
        for (int64_t c = 0; c < n; c++)
            for (int64_t i = c + 1; i < n; i++) x[i] -= a[i + c * n] * x[c];
        for (int64_t c = n - 1; c >= 0; c--) {
            x[c] = x[c] / a[c + c * n];
            for (int64_t i = 0; i < c; i++) x[i] -= a[i + c * n] * x[c];
        }
    }
}
static void NAME(substitute)(int64_t n, int64_t k, const V *a, V *b)
{
    if (n == 3) NAME(substitute_any)(3, k, a, b);
    else if (n == 4) NAME(substitute_any)(4, k, a, b);
    else NAME(substitute_any)(n, k, a, b);
}
static void NAME(lu)(const lc_linalg_args *g, int64_t first, int64_t count, void *work) /* A, LU, pivots, info */
{
    V *a = work, *piv = a + LANES_ROWS * LANES_ROWS, *info = piv + LANES_ROWS;
    NAME(gather)(&g->m[0], first, count, a);
    NAME(factorise)(g->m[0].rows, g->m[0].cols, a, piv, info, NULL, 0);
    NAME(scatter)(&g->m[1], first, count, a);
    NAME(scatter_ints)(&g->m[2], first, count, piv, g->m[2].rows, 1);
    NAME(scatter_ints)(&g->m[3], first, count, info, 1, 0);
}
static void NAME(solve)(const lc_linalg_args *g, int64_t first, int64_t count, void *work) /* A, B, X, LU, pivots, info; left */
{
    int64_t n = g->m[0].rows, k = g->m[1].cols;
    V      *a = work, *b = a + LANES_ROWS * LANES_ROWS, *piv = b + LANES_ROWS * LANES_ROWS, *info = piv + LANES_ROWS;
    NAME(gather)(&g->m[0], first, count, a);
    NAME(gather)(&g->m[1], first, count, b);
    NAME(factorise)(n, n, a, piv, info, b, k);
    NAME(substitute)(n, k, a, b);
    NAME(scatter)(&g->m[2], first, count, b);
    NAME(scatter)(&g->m[3], first, count, a);
    NAME(scatter_ints)(&g->m[4], first, count, piv, n, 1);
    NAME(scatter_ints)(&g->m[5], first, count, info, 1, 0);
}
static void NAME(inv)(const lc_linalg_args *g, int64_t first, int64_t count, void *work) /* A, inverse, info */
{
    int64_t n = g->m[0].rows;
    V      *a = work, *b = a + LANES_ROWS * LANES_ROWS, *piv = b + LANES_ROWS * LANES_ROWS, *info = piv + LANES_ROWS;
    NAME(gather)(&g->m[0], first, count, a);
    for (int64_t i = 0; i < n * n; i++) b[i] = NAME(all)(i % (n + 1) == 0);
    NAME(factorise)(n, n, a, piv, info, b, n);
    NAME(substitute)(n, n, a, b);
    M singular = *info != NAME(all)(0);
    if (NAME(any)(singular))
        for (int64_t i = 0; i < n * n; i++) b[i] = NAME(pick)(singular, NAME(all)((T)NAN), b[i]);
    NAME(scatter)(&g->m[1], first, count, b);
    NAME(scatter_ints)(&g->m[2], first, count, info, 1, 0);
}
static void NAME(det)(const lc_linalg_args *g, int64_t first, int64_t count,
                      void *work) /* A, det, LU, pivots; or with a logarithm */
{
    bool    logarithm = g->hermitian;
    int64_t n = g->m[0].rows;
    V      *a = work, *piv = a + LANES_ROWS * LANES_ROWS, *info = piv + LANES_ROWS, det = NAME(all)(1), sum = NAME(all)(0);
    NAME(gather)(&g->m[0], first, count, a);
    NAME(factorise)(n, n, a, piv, info, NULL, 0);
    for (int64_t c = 0; c < n; c++) {
        V d = a[c + c * n];
        det = NAME(pick)(piv[c] == NAME(all)((T)c), det, -det);
        if (!logarithm) det *= d;
        else
            for (int l = 0; l < W; l++) {
                sum[l] += (T)log(fabs((double)d[l]));
                det[l] *= d[l] > 0 ? 1 : d[l] < 0 ? -1 : d[l];
            }
    }
    NAME(scatter)(&g->m[1], first, count, &det);
    if (logarithm) NAME(scatter)(&g->m[2], first, count, &sum);
    NAME(scatter)(&g->m[2 + logarithm], first, count, a);
    NAME(scatter_ints)(&g->m[3 + logarithm], first, count, piv, n, 1);
}
static inline __attribute__((always_inline)) V NAME(cholesky_any)(int64_t n, V *a) /* info */
{
    V info = NAME(all)(0);
    for (int64_t c = 0; c < n; c++) {
        V *col = a + c * n;
        M  bad = ~(col[c] > NAME(all)(0)) & (info == NAME(all)(0));
        info = NAME(pick)(bad, NAME(all)((T)(c + 1)), info);
        V d = NAME(root)(NAME(pick)(info == NAME(all)(0), col[c], NAME(all)(1)));
        col[c] = NAME(pick)(info == NAME(all)(0), d, col[c]);
        for (int64_t i = 0; i < c; i++) col[i] = NAME(all)(0);
        for (int64_t i = c + 1; i < n; i++) col[i] = col[i] / d;
        for (int64_t j = c + 1; j < n; j++)
            for (int64_t i = j; i < n; i++) a[i + j * n] -= col[i] * col[j];
    }
    return info;
}
static void NAME(cholesky)(const lc_linalg_args *g, int64_t first, int64_t count, void *work) /* A, L, info */
{
    lc_matrices A = g->upper ? transposed(g->m[0]) : g->m[0], L = g->upper ? transposed(g->m[1]) : g->m[1];
    V          *a = work, info;
    NAME(gather)(&A, first, count, a);
    if (A.rows == 3) info = NAME(cholesky_any)(3, a);
    else if (A.rows == 4) info = NAME(cholesky_any)(4, a);
    else info = NAME(cholesky_any)(A.rows, a);
    NAME(scatter)(&L, first, count, a);
    NAME(scatter_ints)(&g->m[2], first, count, &info, 1, 0);
}

/* Reflections as LAPACK's. Lengths are not scaled: a group with a column whose squares overflow or vanish is refused (false). */
static bool NAME(reflections)(int64_t m, int64_t n, V *a, V *tau)
{
    int64_t few = m < n ? m : n;
    for (int64_t c = 0; c < few; c++) {
        V *col = a + c * m, rest = NAME(all)(0), alpha = col[c];
        for (int64_t i = c + 1; i < m; i++) rest += col[i] * col[i];
        V all = rest + alpha * alpha, none = NAME(all)(0), one = NAME(all)(1);
        M flat = rest == none, odd = (all < NAME(all)(TINY / EPSILON)) | ~(all < NAME(all)(EPSILON / TINY));
        for (int64_t i = c + 1; i < m; i++) odd |= flat & (col[i] != none);
        if (NAME(any)(odd & ~((all == none) & (alpha == none)))) return false;
        V length = NAME(root)(all), beta = NAME(pick)(alpha >= none, -length, length);
        V t = NAME(pick)(flat, none, (beta - alpha) / NAME(pick)(flat, one, beta)),
          scale = one / NAME(pick)(flat, one, alpha - beta);
        tau[c] = t;
        col[c] = NAME(pick)(flat, alpha, beta);
        for (int64_t i = c + 1; i < m; i++) col[i] *= scale;
        for (int64_t j = c + 1; j < n; j++) {
            V *to = a + j * m, by = to[c];
            for (int64_t i = c + 1; i < m; i++) by += col[i] * to[i];
            by *= t;
            to[c] -= by;
            for (int64_t i = c + 1; i < m; i++) to[i] -= col[i] * by;
        }
    }
    return true;
}
static void NAME(qr)(const lc_linalg_args *g, int64_t first, int64_t count,
                     void *work) /* A, Q, R; refused groups: info in work[0] */
{
    const lc_matrices *Q = &g->m[1], *R = &g->m[2];
    int64_t            m = g->m[0].rows, n = g->m[0].cols, few = m < n ? m : n, cols = Q->cols;
    V                 *a = (V *)work + 1, *q = a + LANES_ROWS * LANES_ROWS, *r = q + LANES_ROWS * LANES_ROWS, tau[LANES_ROWS];
    NAME(gather)(&g->m[0], first, count, a);
    *(bool *)work = NAME(reflections)(m, n, a, tau);
    if (!*(bool *)work) return;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < R->rows; i++) r[i + j * R->rows] = i <= j ? a[i + j * m] : NAME(all)(0);
    NAME(scatter)(R, first, count, r);
    if (!g->vectors) return;
    for (int64_t i = 0; i < m * cols; i++) q[i] = NAME(all)(i % m == i / m);
    for (int64_t c = few - 1; c >= 0; c--)
        for (int64_t j = c; j < cols; j++) {
            V *to = q + j * m, *v = a + c * m, by = to[c];
            for (int64_t i = c + 1; i < m; i++) by += v[i] * to[i];
            by *= tau[c];
            to[c] -= by;
            for (int64_t i = c + 1; i < m; i++) to[i] -= v[i] * by;
        }
    NAME(scatter)(Q, first, count, q);
}

static void NAME(rotation)(V zeta, M needed, V *c, V *s) /* of Jacobi; none where it is not needed */
{
    V one = NAME(all)(1), root = NAME(root)(one + zeta * zeta), t = one / (NAME(size)(zeta) + root);
    t = NAME(pick)(zeta < NAME(all)(0), -t, t);
    t = NAME(pick)(needed, t, NAME(all)(0));
    *c = one / NAME(root)(one + t * t), *s = *c * t;
}
static inline void NAME(turn)(V *x, V *y, int64_t n, V c, V s)
{
    for (int64_t i = 0; i < n; i++) {
        V p = x[i], q = y[i];
        x[i] = c * p - s * q, y[i] = s * p + c * q;
    }
}
/* Columns in the order of values: ascending (eigh) or descending (svd). Exchanges under masks, n is small. */
static void NAME(order)(V *w, V *x, int64_t m, V *y, int64_t n, bool ascending)
{
    for (int64_t round = 0; round < n; round++)
        for (int64_t k = 0; k + 1 < n; k++) {
            M wrong = ascending ? w[k] > w[k + 1] : w[k] < w[k + 1];
            if (!NAME(any)(wrong)) continue;
            V p = w[k], q = w[k + 1];
            w[k] = NAME(pick)(wrong, q, p), w[k + 1] = NAME(pick)(wrong, p, q);
            for (int64_t i = 0; i < m + (y ? n : 0); i++) {
                V *u = i < m ? x + i + k * m : y + (i - m) + k * n, *v = i < m ? u + m : u + n;
                p = *u, q = *v;
                *u = NAME(pick)(wrong, q, p), *v = NAME(pick)(wrong, p, q);
            }
        }
}
enum { NAME(SWEEPS) = 30 };
/* Whether all values are finite and of sizes whose squares neither overflow nor vanish. */
static bool NAME(moderate)(const V *a, int64_t n)
{
    V most = NAME(all)(0), none = most;
    M good = none == none;
    for (int64_t i = 0; i < n; i++)
        most = NAME(pick)(NAME(size)(a[i]) > most, NAME(size)(a[i]), most), good &= a[i] - a[i] == none;
    T high = sizeof(T) == 4 ? (T)1e15 : (T)1e150, low = 1 / high;
    good &= (most < NAME(all)(high)) & ((most > NAME(all)(low)) | (most == none));
    return !NAME(any)(~good);
}
static void NAME(eigh)(const lc_linalg_args *g, int64_t first, int64_t count, void *work) /* A, values, vectors, info */
{
    int64_t n = g->m[0].rows;
    V      *b = (V *)work + 1, *v = b + n * n, w[LANES_JACOBI_ROWS], one = NAME(all)(1), none = NAME(all)(0), largest = none;
    NAME(gather)(&g->m[0], first, count, b);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            if (i < j && g->upper) b[j + i * n] = b[i + j * n];
            if (i > j && !g->upper) b[j + i * n] = b[i + j * n];
        }
    *(bool *)work = NAME(moderate)(b, n * n);
    if (!*(bool *)work) return;
    for (int64_t i = 0; i < n * n; i++) {
        V size = NAME(size)(b[i]);
        largest = NAME(pick)(size > largest, size, largest);
        v[i] = i % (n + 1) ? none : one;
    }
    bool rotated = true;
    for (int sweep = 0; rotated && sweep < NAME(SWEEPS); sweep++) {
        rotated = false;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                V off = b[p + q * n], c, s;
                M needed = NAME(size)(off) > largest * NAME(all)(EPSILON * (T)0.1);
                if (!NAME(any)(needed)) continue;
                V zeta = (b[q + q * n] - b[p + p * n]) / (NAME(pick)(needed, off, one) * NAME(all)(2));
                NAME(rotation)(zeta, needed, &c, &s);
                NAME(turn)(b + p * n, b + q * n, n, c, s);
                for (int64_t i = 0; i < n; i++) {
                    V x = b[p + i * n], y = b[q + i * n];
                    b[p + i * n] = c * x - s * y, b[q + i * n] = s * x + c * y;
                }
                b[p + q * n] = NAME(pick)(needed, none, b[p + q * n]), b[q + p * n] = b[p + q * n];
                NAME(turn)(v + p * n, v + q * n, n, c, s);
                rotated = true;
            }
    }
    for (int64_t k = 0; k < n; k++) w[k] = b[k + k * n];
    NAME(order)(w, v, n, NULL, n, true);
    NAME(scatter)(&g->m[1], first, count, w);
    NAME(scatter)(&g->m[2], first, count, v);
    NAME(scatter_ints)(&g->m[3], first, count, &none, 1, 0);
}
static void NAME(svd)(const lc_linalg_args *g, int64_t first, int64_t count, void *work) /* A, U, S, Vh, info; square */
{
    int64_t     n = g->m[0].rows;
    V          *a = (V *)work + 1, *v = a + n * n, s[LANES_JACOBI_ROWS] = { { 0 } }, one = NAME(all)(1), none = NAME(all)(0);
    lc_matrices right = transposed(g->m[3]);
    NAME(gather)(&g->m[0], first, count, a);
    *(bool *)work = NAME(moderate)(a, n * n);
    if (!*(bool *)work) return;
    for (int64_t i = 0; i < n * n; i++) v[i] = i % (n + 1) ? none : one;
    bool rotated = true;
    for (int sweep = 0; rotated && sweep < NAME(SWEEPS); sweep++) {
        rotated = false;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                V *x = a + p * n, *y = a + q * n, off = none, alpha = none, beta = none, c, t;
                for (int64_t i = 0; i < n; i++) off += x[i] * y[i], alpha += x[i] * x[i], beta += y[i] * y[i];
                V limit = NAME(all)(EPSILON * 4) * NAME(root)(alpha) * NAME(root)(beta);
                M needed = (NAME(size)(off) > limit) & (NAME(size)(off) > NAME(all)(TINY));
                if (!NAME(any)(needed)) continue;
                V zeta = (beta - alpha) / (NAME(pick)(needed, off, one) * NAME(all)(2));
                NAME(rotation)(zeta, needed, &c, &t);
                NAME(turn)(x, y, n, c, t);
                NAME(turn)(v + p * n, v + q * n, n, c, t);
                rotated = true;
            }
    }
    for (int64_t k = 0; k < n; k++) {
        V sum = none;
        for (int64_t i = 0; i < n; i++) sum += a[i + k * n] * a[i + k * n];
        s[k] = NAME(root)(sum);
    }
    NAME(order)(s, a, n, v, n, false);
    M tiny = s[n - 1] <= s[0] * NAME(all)(EPSILON * 4);
    tiny |= s[n - 1] < NAME(all)(TINY / EPSILON);
    if (NAME(any)(tiny)) { /* a left vector without a direction of its own: one by one */
        *(bool *)work = false;
        return;
    }
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < n; i++) a[i + k * n] = a[i + k * n] / s[k];
    NAME(scatter)(&g->m[2], first, count, s);
    NAME(scatter_ints)(&g->m[4], first, count, &none, 1, 0);
    if (!g->vectors) return;
    NAME(scatter)(&g->m[1], first, count, a);
    NAME(scatter)(&right, first, count, v);
}

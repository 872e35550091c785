/* One-sided Jacobi rotations of one matrix, its columns in lanes: included by lanes.isa.o3.c after lanes.inc.c, for the same T and W.
 *
 * Rotations of pairs that share no column do not disturb each other. So the columns are paired off as in a round-robin tournament: a row of the matrix
 * lies in 2 H vectors, and the left half's lane l meets the right half's lane l. Each step takes all pairs at once, rows one after the other, and then
 * moves every column but the first to the next place by shuffles; after 2 H W - 1 steps each column has met each other. The rows of the
 * right vectors follow below those of the matrix, and one row holds the columns' numbers.
 *
 * The dot products that the next step needs are summed as rows are written, and its angles are computed before the right vectors are
 * rotated, which hides their latency. */
#ifndef __clang__
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast") /* rotations are products and sums in equal numbers */
#endif
enum { NAME(LEAST_COLUMNS) = 4, NAME(MOST_HALVES) = 4 }; /* H: at most that many vectors of left columns */
#define FROM_FIRST(l, s)  ((l) == 0 ? 0 : (l) == 1 ? W : (l)-1) % (2 * W)
#define FROM_BEFORE(l, s) ((l) == 0 ? W - 1 : W + (l)-1) % (2 * W)
#define FROM_BEHIND(l, s) ((l) + 1 < W ? (l) + 1 : W) % (2 * W)
#define FROM_LAST(l, s)   ((l) + 1 < W ? (l) + 1 : 2 * W - 1) % (2 * W)

/* x and y, the left and right columns of a row: to their next places. */
static inline __attribute__((always_inline)) void NAME(next_places)(const int H, const V *x, const V *y, V *row)
{
#pragma GCC unroll 4
    for (int j = 0; j < H; j++) {
        V before = x[j ? j - 1 : 0], behind = y[j + 1 < H ? j + 1 : j];
        row[j] = j ? __builtin_shufflevector(before, x[j], EACH_LANE(FROM_BEFORE, 0))
                   : __builtin_shufflevector(x[j], y[j], EACH_LANE(FROM_FIRST, 0));
        row[H + j] = j + 1 < H ? __builtin_shufflevector(y[j], behind, EACH_LANE(FROM_BEHIND, 0))
                               : __builtin_shufflevector(y[j], x[j], EACH_LANE(FROM_LAST, 0));
    }
}
typedef struct {
    V off[NAME(MOST_HALVES)], left[NAME(MOST_HALVES)],
        right[NAME(MOST_HALVES)]; /* dot products of a pair and of each with itself */
} NAME(dots);

static inline __attribute__((always_inline)) void NAME(add_dots)(const int H, const V *row, NAME(dots) * d)
{
#pragma GCC unroll 4
    for (int j = 0; j < H; j++) {
        d->off[j] += row[j] * row[H + j];
        d->left[j] += row[j] * row[j], d->right[j] += row[H + j] * row[H + j];
    }
}
/* Rotates n rows by angles of the sines s; t are the tangents of their halves. With dots, sums those of the next pairs. The cosine is not used: that
 * of a small angle rounds to 1, and over hundreds of rotations lengths would grow. */
static inline __attribute__((always_inline)) void NAME(rotate_all)(const int H, V *row, int64_t n, const V *s, const V *t,
                                                                   NAME(dots) * dots)
{
    NAME(dots) sums[2] = { { .off = { { 0 } } } }; /* two, to hide the latency of additions */
    for (int64_t i = 0; i < n; i += 2)
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++, row += 2 * H) {
            V x[NAME(MOST_HALVES)], y[NAME(MOST_HALVES)];
#pragma GCC unroll 4
            for (int j = 0; j < H; j++) {
                V p = row[j], q = row[H + j];
                x[j] = p - s[j] * (q + t[j] * p), y[j] = q + s[j] * (p - t[j] * q);
            }
            NAME(next_places)(H, x, y, row);
            if (dots) NAME(add_dots)(H, row, &sums[k]);
        }
    for (int j = 0; j < H && dots; j++) {
        dots->off[j] = sums[0].off[j] + sums[1].off[j];
        dots->left[j] = sums[0].left[j] + sums[1].left[j], dots->right[j] = sums[0].right[j] + sums[1].right[j];
    }
}
/* The rotations that make the pairs orthogonal; whether there is one. */
static inline __attribute__((always_inline)) bool NAME(angles)(const int H, const NAME(dots) * d, T tolerance, T noise, V *s,
                                                               V *t)
{
    V one = NAME(all)(1), none = NAME(all)(0);
    M any = none != none;
    for (int j = 0; j < H; j++) {
        V size = NAME(size)(d->off[j]), limit = NAME(all)(tolerance) * NAME(root)(d->left[j] * d->right[j]);
        M needed = (size > limit) & (d->left[j] > NAME(all)(noise)) & (d->right[j] > NAME(all)(noise));
        V zeta = (d->right[j] - d->left[j]) / (NAME(pick)(needed, d->off[j], one) * NAME(all)(2));
        V cosine;
        NAME(rotation)(zeta, needed, &cosine, &s[j]);
        t[j] = s[j] / (cosine + one);
        any |= needed;
    }
    return NAME(any)(any);
}
static inline __attribute__((always_inline)) void NAME(sweep_columns)(const int H, V *x, int64_t m, int64_t n, T tolerance,
                                                                      T noise)
{
    enum { SWEEPS = 60 };
    const int64_t round = 2 * H * W - 1;
    NAME(dots) d = { .off = { { 0 } } };
    V s[2][NAME(MOST_HALVES)], t[2][NAME(MOST_HALVES)], left[NAME(MOST_HALVES)], right[NAME(MOST_HALVES)];
    for (int64_t i = 0; i < m; i++) NAME(add_dots)(H, x + i * 2 * H, &d);
    int64_t idle = NAME(angles)(H, &d, tolerance, noise, s[0], t[0]) ? 0 : 1;
    for (int64_t step = 0; idle < round && step < SWEEPS * round; step++) { /* idle: steps since the last rotation */
        int now = step & 1;
        NAME(rotate_all)(H, x, m, s[now], t[now], &d);
        idle = NAME(angles)(H, &d, tolerance, noise, s[!now], t[!now]) ? 0 : idle + 1;
        NAME(rotate_all)(H, x + m * 2 * H, n, s[now], t[now], NULL);
        V *numbers = x + (m + n) * 2 * H;
        memcpy(left, numbers, (size_t)H * sizeof(V)), memcpy(right, numbers + H, (size_t)H * sizeof(V));
        NAME(next_places)(H, left, right, numbers);
    }
}
/* The columns of a (m, n) become orthogonal; v (n, n), if there is one, collects the rotations. work: COLUMNS_WORK(m, n) elements. false: too many columns, or
 * too few. */
static bool NAME(columns)(int64_t m, int64_t n, void *va, int64_t lda, void *vv, int64_t ldv, double tolerance, double noise,
                          void *work)
{
    int64_t half = ((n + 1) / 2 + W - 1) / W, width = 2 * half * W, rows = (m + 1) & -2, below = vv ? (n + 1) & -2 : 0;
    T      *a = va, *v = vv, *x = (T *)(((uintptr_t)work + sizeof(V) - 1) & -sizeof(V)), *numbers = x + (rows + below) * width;
    if (n < NAME(LEAST_COLUMNS) || half > NAME(MOST_HALVES)) return false;
    memset(x, 0, (size_t)((rows + below) * width) * sizeof(T));
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < m; i++) x[i * width + j] = a[i + j * lda];
        if (v) x[(rows + j) * width + j] = 1;
    }
    for (int64_t j = 0; j < width; j++) numbers[j] = (T)j;
    V *first = (V *)x;
    if (half == 1) NAME(sweep_columns)(1, first, rows, below, (T)tolerance, (T)noise);
    else if (half == 2) NAME(sweep_columns)(2, first, rows, below, (T)tolerance, (T)noise);
    else if (half == 3) NAME(sweep_columns)(3, first, rows, below, (T)tolerance, (T)noise);
    else NAME(sweep_columns)(4, first, rows, below, (T)tolerance, (T)noise);
    for (int64_t place = 0; place < width; place++) {
        int64_t j = (int64_t)numbers[place];
        for (int64_t i = 0; i < m && j < n; i++) a[i + j * lda] = x[i * width + place];
        for (int64_t i = 0; i < n && j < n && v; i++) v[i + j * ldv] = x[(rows + i) * width + place];
    }
    return true;
}
#ifndef __clang__
#pragma GCC pop_options
#endif
#undef FROM_FIRST
#undef FROM_BEFORE
#undef FROM_BEHIND
#undef FROM_LAST
#undef V
#undef M
#undef T
#undef W
#undef I
#undef EPSILON
#undef TINY
#undef NAME
#undef EACH_LANE

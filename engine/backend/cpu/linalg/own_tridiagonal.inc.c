/* For T, a real type: eigenvalues of a symmetric matrix by reduction to a tridiagonal one and implicit QL steps. Included by
 * own.inc.c, with its reflections and its vectors of eight.
 *
 * The whole matrix is kept, not one triangle: then every product with it is four dots along columns at a time, and an update
 * is a pass over columns. The rotations of a QL step are collected and applied to the vectors together: a column that two
 * neighbouring rotations change stays in registers. */

/* p := b v for the symmetric b (m, m). */
static void NAME(symmetric_product)(const T *b, int64_t ldb, int64_t m, const T *v, T *p)
{
    int64_t j = 0;
    for (; j + 4 <= m; j += 4) {
        T by[4];
        NAME(four_dots)(b + j * ldb, ldb, m, v, by);
        memcpy(p + j, by, sizeof by);
    }
    for (; j < m; j++) p[j] = NAME(dot)(b + j * ldb, v, m);
}

/* b (n, n) becomes tridiagonal: d, and e below it. The reflections' vectors are left in the columns of b, below the subdiagonal,
 * their first element 1 in the subdiagonal; vector: room for n elements. */
static void NAME(tridiagonalise)(T *b, int64_t ldb, int64_t n, T *d, T *e, T *tau, T *vector)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t m = n - k - 1;
        T      *v = b + k + 1 + k * ldb, *rest = b + (k + 1) * (ldb + 1);
        d[k] = AT(b, k, k);
        if (!m) break;
        tau[k] = NAME(reflect)(v, m), e[k] = v[0], v[0] = 1;
        if (tau[k] == 0) continue;
        NAME(symmetric_product)(rest, ldb, m, v, vector);
        T half = tau[k] * NAME(dot)(vector, v, m) / 2;
        for (int64_t i = 0; i < m; i++) vector[i] = tau[k] * (vector[i] - half * v[i]);
        for (int64_t j = 0; j < m; j++) {
            T *restrict col = rest + j * ldb, x = vector[j], y = v[j];
            for (int64_t i = 0; i < m; i++) col[i] -= v[i] * x + vector[i] * y;
        }
    }
}

/* q's columns low .. high are rotated in pairs (i, i + 1), from the last pair to the first. */
static inline __attribute__((always_inline)) void NAME(rotate_rows)(const int eights, T *q, int64_t ldq, int64_t low,
                                                                    int64_t high, const T *c, const T *s)
{
    NAME(eight) kept[4];
#pragma GCC unroll 4
    for (int k = 0; k < eights; k++) kept[k] = *(const NAME(eight) *)(q + high * ldq + 8 * k);
    for (int64_t i = high - 1; i >= low; i--) {
        T *x = q + i * ldq, *y = x + ldq;
#pragma GCC unroll 4
        for (int k = 0; k < eights; k++) {
            NAME(eight) left = *(const NAME(eight) *)(x + 8 * k);
            *(NAME(eight) *)(y + 8 * k) = s[i] * left + c[i] * kept[k];
            kept[k] = c[i] * left - s[i] * kept[k];
        }
    }
#pragma GCC unroll 4
    for (int k = 0; k < eights; k++) *(NAME(eight) *)(q + low * ldq + 8 * k) = kept[k];
}
static void NAME(rotate_columns)(T *q, int64_t ldq, int64_t n, int64_t low, int64_t high, const T *c, const T *s)
{
    int64_t r = 0;
    for (; r + 32 <= n; r += 32) NAME(rotate_rows)(4, q + r, ldq, low, high, c, s);
    for (; r + 8 <= n; r += 8) NAME(rotate_rows)(1, q + r, ldq, low, high, c, s);
    for (; r < n; r++) {
        T kept = q[r + high * ldq];
        for (int64_t i = high - 1; i >= low; i--) {
            T left = q[r + i * ldq];
            q[r + (i + 1) * ldq] = s[i] * left + c[i] * kept;
            kept = c[i] * left - s[i] * kept;
        }
        q[r + low * ldq] = kept;
    }
}

/* Eigenvalues d of the tridiagonal matrix (d, e), whose norm is near 1; q's columns, if there is a q, are combined to vectors. e has n
 * elements. */
static int NAME(ql_steps)(int64_t n, T *d, T *e, T *q, int64_t ldq, T *c, T *s)
{
    e[n - 1] = 0;
    for (int64_t low = 0, steps = 0; low < n;) {
        int64_t high = low; /* the block that is still connected */
        while (high < n - 1) {
            T size = (T)fabs((double)e[high]);
            if (size <= EPSILON * (T)(fabs((double)d[high]) + fabs((double)d[high + 1])) || size <= EPSILON * EPSILON) break;
            high++;
        }
        if (high == low) {
            low++, steps = 0;
            continue;
        }
        if (steps++ == NAME(MOST_SWEEPS)) return 1;
        T half = (d[low + 1] - d[low]) / (2 * e[low]),
          length = ROOT(half * half + 1); /* the shift: nearest eigenvalue of 2x2 */
        T       g = d[high] - d[low] + e[low] / (half + (half < 0 ? -length : length)), sine = 1, cosine = 1, taken = 0;
        int64_t i = high - 1;
        for (; i >= low; i--) {
            T bulge = sine * e[i], side = cosine * e[i], r = ROOT(bulge * bulge + g * g);
            e[i + 1] = r;
            if (r == 0) break; /* the block falls apart here */
            T inverse = 1 / r;
            sine = s[i] = bulge * inverse, cosine = c[i] = g * inverse;
            g = d[i + 1] - taken;
            T turn = (d[i] - g) * sine + 2 * cosine * side;
            taken = sine * turn, d[i + 1] = g + taken, g = cosine * turn - side;
        }
        if (q) NAME(rotate_columns)(q, ldq, n, i + 1, high, c, s);
        d[i + 1] -= taken;
        if (i < low) e[low] = g;
        e[high] = 0;
    }
    return 0;
}

/* b: the whole symmetric matrix, its largest element near 1. a, unless NULL, becomes the vectors, w the values, in no order.
 * space: 5 n elements. */
static int NAME(eigh_by_ql)(int64_t n, T *b, int64_t ldb, T *a, int64_t lda, T *w, T *space)
{
    T *e = space, *tau = e + n, *c = tau + n, *s = c + n, *vector = s + n;
    NAME(tridiagonalise)(b, ldb, n, w, e, tau, vector);
    if (!a) return NAME(ql_steps)(n, w, e, NULL, 0, c, s);
    T *inner = a + 1 + lda;
    memset(a, 0, (size_t)n * sizeof(T));
    a[0] = 1;
    for (int64_t k = 0; k + 1 < n; k++) {
        AT(a, 0, k + 1) = 0;
        memcpy(inner + k + k * lda, b + k + 1 + k * ldb, (size_t)(n - k - 1) * sizeof(T));
    }
    NAME(orgqr)(n - 1, n - 1, n - 1, inner, lda, tau);
    return NAME(ql_steps)(n, w, e, a, lda, c, s);
}

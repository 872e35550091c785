/* For T, a real or complex type, R its real type: included by own.isa.o3.c. */
#if IS_COMPLEX
#define CONJ(x) (sizeof(R) == 4 ? (T)conjf(x) : (T)conj(x))
#define REAL(x) ((R) __real__(x))
#define ABS1(x) (fabs((double)__real__(x)) + fabs((double)__imag__(x)))
#define ABS2(x) (__real__(x) * __real__(x) + __imag__(x) * __imag__(x))
#define IMAG(x) ((R) __imag__(x))
#else
#define CONJ(x) (x)
#define REAL(x) (x)
#define ABS1(x) fabs((double)(x))
#define ABS2(x) ((x) * (x))
#define IMAG(x) ((R)0)
#endif
#define AT(a, i, j) (a)[(i) + (j)*ld##a]

static inline void NAME(subtract)(T *restrict y, const T *restrict x, T by, int64_t n) /* y -= by x */
{
    for (int64_t i = 0; i < n; i++) y[i] -= by * x[i];
}
static inline T NAME(dot)(const T *restrict x, const T *restrict y, int64_t n) /* x^H y */
{
    T       part[8] = { 0 };
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) part[k] += CONJ(x[i + k]) * y[i + k];
    T sum = ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
    for (; i < n; i++) sum += CONJ(x[i]) * y[i];
    return sum;
}
static inline T NAME(dot_plain)(const T *restrict x, const T *restrict y, int64_t n) /* x^T y */
{
    T sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}
static R NAME(norm)(const T *x, int64_t n) /* scaled where squares would overflow or vanish */
{
    R sum = 0, most = 0;
    for (int64_t i = 0; i < n; i++) sum += ABS2(x[i]);
    if (sum > TINY / EPSILON && sum < (R)1 / (TINY / EPSILON)) return (R)sqrt((double)sum);
    for (int64_t i = 0; i < n; i++) {
        R size = (R)ABS1(x[i]);
        most = size > most || size != size ? size : most;
    }
    if (most == 0 || !(most < (R)INFINITY)) return most;
    sum = 0;
    for (int64_t i = 0; i < n; i++) {
        T scaled = x[i] / most;
        sum += ABS2(scaled);
    }
    return most * (R)sqrt((double)sum);
}

static int NAME(getrf)(int64_t m, int64_t n, void *va, int64_t lda, int32_t *piv, bool pivot)
{
    T      *a = va;
    int     info = 0;
    int64_t few = m < n ? m : n;
    for (int64_t k = 0; k < few; k++) {
        T      *col = a + k * lda;
        int64_t p = k;
        double  most = ABS1(col[k]);
        for (int64_t i = k + 1; i < m && pivot; i++) {
            double size = ABS1(col[i]);
            if (size > most) most = size, p = i;
        }
        if (piv) piv[k] = (int32_t)(p + 1);
        if (p != k)
            for (int64_t j = 0; j < n; j++) {
                T t = AT(a, k, j);
                AT(a, k, j) = AT(a, p, j), AT(a, p, j) = t;
            }
        if (col[k] == 0) {
            if (!info) info = (int)k + 1;
            continue;
        }
        T inverse = 1 / col[k];
        if (ABS1(col[k]) >= TINY)
            for (int64_t i = k + 1; i < m; i++) col[i] *= inverse;
        else
            for (int64_t i = k + 1; i < m; i++) col[i] /= col[k];
        for (int64_t j = k + 1; j < n; j++) NAME(subtract)(a + k + 1 + j * lda, col + k + 1, AT(a, k, j), m - k - 1);
    }
    return info;
}

static int NAME(potrf)(int64_t n, void *va, int64_t lda, bool upper)
{
    T *a = va;
    for (int64_t k = 0; k < n; k++) {
        T *col = a + k * lda;
        if (upper) /* by dot products of columns */
            for (int64_t i = 0; i < k; i++) col[i] = (col[i] - NAME(dot)(a + i * lda, col, i)) / REAL(AT(a, i, i));
        R d = REAL(col[k]) - (upper ? REAL(NAME(dot)(col, col, k)) : 0);
        if (!(d > 0)) {
            col[k] = d;
            return (int)k + 1;
        }
        d = (R)sqrt((double)d);
        col[k] = d;
        if (upper) continue;
        for (int64_t i = k + 1; i < n; i++) col[i] /= d;
        for (int64_t j = k + 1; j < n; j++) NAME(subtract)(a + j + j * lda, col + j, CONJ(col[j]), n - j);
    }
    return 0;
}

static void NAME(trsm)(bool upper, char trans, bool unit, int64_t n, int64_t k, const void *va, int64_t lda, void *vb,
                       int64_t ldb)
{
    const T *a = va;
    for (int64_t j = 0; j < k; j++) {
        T *x = (T *)vb + j * ldb;
        if (trans == 'N' && upper)
            for (int64_t i = n - 1; i >= 0; i--) {
                if (!unit) x[i] /= AT(a, i, i);
                NAME(subtract)(x, a + i * lda, x[i], i);
            }
        else if (trans == 'N')
            for (int64_t i = 0; i < n; i++) {
                if (!unit) x[i] /= AT(a, i, i);
                NAME(subtract)(x + i + 1, a + i + 1 + i * lda, x[i], n - i - 1);
            }
        else
            for (int64_t step = 0; step < n; step++) { /* the transposed upper triangle is a lower one */
                int64_t  i = upper ? step : n - 1 - step, count = upper ? i : n - i - 1;
                const T *column = a + i * lda + (upper ? 0 : i + 1), *known = x + (upper ? 0 : i + 1);
                T        d = AT(a, i, i);
                x[i] -= trans == 'C' ? NAME(dot)(column, known, count) : NAME(dot_plain)(column, known, count);
                if (!unit) x[i] /= trans == 'C' ? CONJ(d) : d;
            }
    }
}

/* One reflection: of x = (alpha, rest) to (beta, 0), beta real. Leaves beta in x[0] and the vector behind it; returns tau. */
static T NAME(reflect)(T *x, int64_t n)
{
    R rest = NAME(norm)(x + 1, n - 1), re = REAL(x[0]), im = IMAG(x[0]);
    if (rest == 0 && im == 0) return 0;
    R most = (R)fmax(fmax(fabs((double)re), fabs((double)im)), (double)rest), length;
    if (!(most < (R)INFINITY) || most == 0) length = most;
    else {
        R a = re / most, b = im / most, c = rest / most;
        length = most * (R)sqrt((double)(a * a + b * b + c * c));
    }
    R beta = re >= 0 ? -length : length;
    T tau = (beta - x[0]) / beta, scale = 1 / (x[0] - beta);
    for (int64_t i = 1; i < n; i++) x[i] *= scale;
    x[0] = beta;
    return tau;
}
#if !IS_COMPLEX
typedef T NAME(eight) __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias));
/* by[c] := x' y_c for four columns y of n elements: they share the loads of x, and four independent sums hide the latency of
 * additions. Each sum has the order of dot(). */
static inline void NAME(four_dots)(const T *y, int64_t ldy, int64_t n, const T *x, T *by)
{
    NAME(eight) part[4] = { 0 };
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        NAME(eight) v = *(const NAME(eight) *)(x + i);
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) part[c] += v * *(const NAME(eight) *)(y + c * ldy + i);
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        NAME(eight) p = part[c];
        by[c] = ((p[0] + p[4]) + (p[1] + p[5])) + ((p[2] + p[6]) + (p[3] + p[7]));
    }
    for (; i < n; i++)
        for (int c = 0; c < 4; c++) by[c] += x[i] * y[c * ldy + i];
}
/* Four columns y of m rows times I - tau v v', v = (1, rest). */
static void NAME(apply_four)(T *y, int64_t ldy, int64_t m, const T *rest, T tau)
{
    T       by[4];
    int64_t i = 0, n = m - 1;
    NAME(four_dots)(y + 1, ldy, n, rest, by);
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) by[c] = tau * (y[c * ldy] + by[c]), y[c * ldy] -= by[c];
    for (; i + 8 <= n; i += 8) {
        NAME(eight) x = *(const NAME(eight) *)(rest + i);
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) *(NAME(eight) *)(y + c * ldy + 1 + i) -= by[c] * x;
    }
    for (; i < n; i++)
        for (int c = 0; c < 4; c++) y[c * ldy + 1 + i] -= by[c] * rest[i];
}
#endif
/* The columns y (m, n) times I - tau v v^H from the left, v = (1, rest). */
static void NAME(apply)(T *y, int64_t ldy, int64_t m, int64_t n, const T *rest, T tau)
{
    int64_t j = 0;
    if (tau == 0) return;
#if !IS_COMPLEX /* complex sums of four columns do not fit in registers */
    for (; j + 4 <= n; j += 4) NAME(apply_four)(y + j * ldy, ldy, m, rest, tau);
#endif
    for (; j < n; j++) {
        T *col = y + j * ldy, by = tau * (col[0] + NAME(dot)(rest, col + 1, m - 1));
        col[0] -= by;
        NAME(subtract)(col + 1, rest, by, m - 1);
    }
}
static void NAME(geqrf)(int64_t m, int64_t n, void *va, int64_t lda, void *vtau)
{
    T      *a = va, *tau = vtau;
    int64_t few = m < n ? m : n;
    for (int64_t k = 0; k < few; k++) {
        T *col = a + k + k * lda;
        tau[k] = NAME(reflect)(col, m - k);
        NAME(apply)(col + lda, lda, m - k, n - k - 1, col + 1, CONJ(tau[k]));
    }
}
static void NAME(orgqr)(int64_t m, int64_t n, int64_t k, void *va, int64_t lda, const void *vtau)
{
    T       *a = va;
    const T *tau = vtau;
    for (int64_t j = k; j < n; j++) {
        memset(a + j * lda, 0, (size_t)m * sizeof(T));
        AT(a, j, j) = 1;
    }
    for (int64_t i = k - 1; i >= 0; i--) {
        T *col = a + i + i * lda;
        NAME(apply)(col + lda, lda, m - i, n - i - 1, col + 1, tau[i]);
        for (int64_t r = 1; r < m - i; r++) col[r] *= -tau[i];
        col[0] = 1 - tau[i];
        memset(a + i * lda, 0, (size_t)i * sizeof(T));
    }
}
static void NAME(ormqr)(bool left, bool adjoint, int64_t m, int64_t n, int64_t k, const void *va, int64_t lda, const void *vtau,
                        void *vc, int64_t ldc)
{
    const T *a = va, *taus = vtau;
    T       *c = vc;
    for (int64_t step = 0; step < k; step++) {
        int64_t  i = left == adjoint ? step : k - 1 - step;
        T        tau = adjoint ? CONJ(taus[i]) : taus[i];
        const T *rest = a + i + 1 + i * lda;
        if (left) NAME(apply)(c + i, ldc, m - i, n, rest, tau);
        else
            for (int64_t r = 0; r < m; r++) { /* rows of c times I - tau v v^H */
                T sum = AT(c, r, i);
                for (int64_t j = 0; j < n - i - 1; j++) sum += AT(c, r, i + 1 + j) * rest[j];
                sum *= tau;
                AT(c, r, i) -= sum;
                for (int64_t j = 0; j < n - i - 1; j++) AT(c, r, i + 1 + j) -= sum * CONJ(rest[j]);
            }
    }
}

/* x, y := c x - s y', s x + c y', where y' = y times a number of size one. */
static inline void NAME(rotate)(T *restrict x, T *restrict y, int64_t n, R c, R s, T phase)
{
    for (int64_t i = 0; i < n; i++) {
        T p = x[i], q = y[i] * phase;
        x[i] = c * p - s * q, y[i] = s * p + c * q;
    }
}
static bool NAME(finite)(const T *a, int64_t lda, int64_t m, int64_t n)
{
    bool all = true;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) all &= isfinite(REAL(AT(a, i, j))) && isfinite(IMAG(AT(a, i, j)));
    return all;
}
enum { NAME(MOST_SWEEPS) = 60 };

#if !IS_COMPLEX
#include "own_tridiagonal.inc.c"
#endif
/* Cyclic Jacobi for complex and for tiny matrices. b holds the whole Hermitian matrix, a collects the rotations. Both sides of b are rotated: its
 * columns here, its rows by symmetry. */
static int NAME(eigh)(int64_t n, void *va, int64_t lda, void *vw, void *work, UNUSED bool vectors)
{
    T      *a = va, *b = work;
    R      *w = vw;
    int64_t ldb = n;
    bool    rotated = true;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < n; i++) {
            T x = AT(a, i, j);
            AT(b, i, j) = x, AT(b, j, i) = CONJ(x);
            if (i == j) AT(b, i, j) = REAL(x);
        }
    if (!NAME(finite)(b, ldb, n, n)) return 1;
    R largest = 0;
    for (int64_t i = 0; i < n * n; i++) {
        R size = (R)ABS1(b[i]);
        largest = size > largest ? size : largest;
    }
    int exponent = 0, limit = sizeof(R) == 4 ? 120 : 1000;
    if (largest > 0) frexp((double)largest, &exponent); /* squares neither overflow nor vanish */
    exponent = exponent < -limit ? -limit : exponent > limit ? limit : exponent;
    R scale = (R)ldexp(1, -exponent), back = (R)ldexp(1, exponent);
    for (int64_t i = 0; i < n * n; i++) b[i] *= scale;
    largest *= scale;
#if !IS_COMPLEX
    bool by_ql = n >= QL_ROWS;
    if (by_ql && NAME(eigh_by_ql)(n, b, ldb, vectors ? a : NULL, lda, w, b + n * n)) return 1;
#else
    const bool by_ql = false;
#endif
    for (int64_t j = 0; j < n && !by_ql; j++) {
        memset(a + j * lda, 0, (size_t)n * sizeof(T));
        AT(a, j, j) = 1;
    }
    for (int sweep = 0; !by_ql && rotated && sweep < NAME(MOST_SWEEPS); sweep++) {
        rotated = false;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                T off = AT(b, p, q);
                R size = (R)(sizeof(R) == 4 ? sqrtf((float)ABS2(off)) : sqrt((double)ABS2(off)));
                if (size <= EPSILON * (R)0.5 * (R)sqrt(fabs((double)REAL(AT(b, p, p))) * fabs((double)REAL(AT(b, q, q)))) ||
                    size <= EPSILON * largest * (R)0.1)
                    continue;
                R zeta = (REAL(AT(b, q, q)) - REAL(AT(b, p, p))) / (2 * size);
                R t = (zeta < 0 ? -1 : 1) / ((R)fabs((double)zeta) + (R)sqrt(1 + (double)zeta * zeta)),
                  c = 1 / (R)sqrt(1 + (double)t * t);
                T phase = CONJ(off) / size;
                NAME(rotate)(b + p * ldb, b + q * ldb, n, c, c * t, phase); /* b := b J */
                for (int64_t i = 0; i < n; i++) {                           /* b := J^H b */
                    T x = AT(b, p, i), y = AT(b, q, i) * CONJ(phase);
                    AT(b, p, i) = c * x - c * t * y, AT(b, q, i) = c * t * x + c * y;
                }
                AT(b, p, q) = AT(b, q, p) = 0;
                AT(b, p, p) = REAL(AT(b, p, p)), AT(b, q, q) = REAL(AT(b, q, q));
                NAME(rotate)(a + p * lda, a + q * lda, n, c, c * t, phase);
                rotated = true;
            }
    }
    for (int64_t k = 0; k < n; k++) w[k] = (by_ql ? w[k] : REAL(AT(b, k, k))) * back;
    for (int64_t k = 0; k < n; k++) { /* ascending: selection, columns are exchanged once */
        int64_t least = k;
        for (int64_t i = k + 1; i < n; i++)
            if (w[i] < w[least]) least = i;
        if (least == k) continue;
        R t = w[k];
        w[k] = w[least], w[least] = t;
        for (int64_t i = 0; i < n && vectors; i++) {
            T x = AT(a, i, k);
            AT(a, i, k) = AT(a, i, least), AT(a, i, least) = x;
        }
    }
    return 0;
}

/* A unit vector orthogonal to the first k columns of u (m rows): a unit vector e_i less its projections, twice. */
static void NAME(complete)(T *u, int64_t ldu, int64_t m, int64_t k)
{
    T *col = u + k * ldu;
    for (int64_t e = 0; e < m; e++) {
        memset(col, 0, (size_t)m * sizeof(T));
        col[e] = 1;
        for (int round = 0; round < 2; round++)
            for (int64_t j = 0; j < k; j++) NAME(subtract)(col, u + j * ldu, NAME(dot)(u + j * ldu, col, m), m);
        R length = NAME(norm)(col, m);
        if (length * length * (R)m < (R)0.5) continue;
        for (int64_t i = 0; i < m; i++) col[i] /= length;
        return;
    }
}

/* Rotates columns in pairs until all are orthogonal; the vector instruction sets have a kernel that takes all pairs at once (columns.inc.c). */
static void NAME(orthogonalise)(int64_t m, int64_t n, T *a, int64_t lda, T *v, int64_t ldv, R noise, UNUSED void *work)
{
    R    tolerance = EPSILON * (R)fmax(4, 2 * sqrt((double)m)); /* of dot products */
    bool rotated = true;
#if !IS_COMPLEX && !defined LC_BASELINE
    if (COLUMNS_OF_THIS_SET[sizeof(T) == 8](m, n, a, lda, v, ldv, (double)tolerance, (double)noise, work)) return;
#endif
    for (int64_t j = 0; j < n && v; j++) {
        memset(v + j * ldv, 0, (size_t)n * sizeof(T));
        AT(v, j, j) = 1;
    }
    for (int sweep = 0; rotated && sweep < NAME(MOST_SWEEPS); sweep++) {
        rotated = false;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                T *x = a + p * lda, *y = a + q * lda, off = NAME(dot)(x, y, m);
                R  alpha = REAL(NAME(dot)(x, x, m)), beta = REAL(NAME(dot)(y, y, m));
                R  size = (R)sqrt((double)ABS2(off));
                if (!(size > tolerance * (R)sqrt((double)alpha) * (R)sqrt((double)beta)) || size < TINY) continue;
                if (alpha <= noise || beta <= noise) continue; /* rounding of the longest column has no direction of its own */
                R zeta = (beta - alpha) / (2 * size);
                R t = (zeta < 0 ? -1 : 1) / ((R)fabs((double)zeta) + (R)sqrt(1 + (double)zeta * zeta)),
                  c = 1 / (R)sqrt(1 + (double)t * t);
                T phase = CONJ(off) / size;
                NAME(rotate)(x, y, m, c, c * t, phase);
                if (v) NAME(rotate)(v + p * ldv, v + q * ldv, n, c, c * t, phase);
                rotated = true;
            }
    }
}
/* One-sided Jacobi: the lengths of orthogonal columns are the singular values. */
static int NAME(svd)(int64_t m, int64_t n, void *va, int64_t lda, void *vs, void *vv, int64_t ldv, void *work)
{
    T *a = va, *v = vv;
    R *s = vs;
    if (!NAME(finite)(a, lda, m, n)) return 1;
    R most = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) most = (R)ABS1(AT(a, i, j)) > most ? (R)ABS1(AT(a, i, j)) : most;
    int exponent = 0;
    if (most > 0) frexp((double)most, &exponent); /* squares neither overflow nor vanish */
    int limit = sizeof(R) == 4 ? 120 : 1000;
    exponent = exponent < -limit ? -limit : exponent > limit ? limit : exponent;
    R scale = (R)ldexp(1, -exponent), back = (R)ldexp(1, exponent);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) AT(a, i, j) *= scale;
    R noise = 0;
    for (int64_t k = 0; k < n; k++) noise = (R)fmax((double)noise, (double)REAL(NAME(dot)(a + k * lda, a + k * lda, m)));
    NAME(orthogonalise)(m, n, a, lda, v, ldv, noise * EPSILON * EPSILON, work);
    for (int64_t k = 0; k < n; k++) s[k] = NAME(norm)(a + k * lda, m);
    for (int64_t k = 0; k < n; k++) {
        int64_t top = k;
        for (int64_t i = k + 1; i < n; i++)
            if (s[i] > s[top]) top = i;
        R t = s[k];
        s[k] = s[top], s[top] = t;
        for (int64_t i = 0; i < m && top != k; i++) {
            T x = AT(a, i, k);
            AT(a, i, k) = AT(a, i, top), AT(a, i, top) = x;
        }
        for (int64_t i = 0; i < n && top != k && v; i++) {
            T x = AT(v, i, k);
            AT(v, i, k) = AT(v, i, top), AT(v, i, top) = x;
        }
    }
    R least = n ? s[0] * EPSILON * 2 : 0;
    for (int64_t k = 0; k < n; k++) {
        if (s[k] <= least || s[k] < TINY) { /* no direction of its own left */
            NAME(complete)(a, lda, m, k);
            s[k] = s[k] < TINY ? 0 : s[k];
        } else
            for (int64_t i = 0; i < m; i++) AT(a, i, k) /= s[k];
        s[k] *= back;
    }
    return 0;
}
#undef T
#undef R
#undef EPSILON
#undef TINY
#undef NAME
#undef CONJ
#undef REAL
#undef IMAG
#undef ABS1
#undef ABS2
#undef AT

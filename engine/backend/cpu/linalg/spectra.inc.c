/* For T, a real or complex type: eigenvalues, singular values and least squares of one matrix of a batch. Included by spectra.c. */
#include "operands.inc.c"

static void NAME(adjoin)(T *a, int64_t n, int64_t ld) /* a := a^H, square */
{
    for (int64_t c = 0; c < n; c++)
        for (int64_t r = 0; r <= c; r++) {
            T x = a[r + c * ld], y = a[c + r * ld];
#if IS_COMPLEX
            x = ~x, y = ~y;
#endif
            a[r + c * ld] = y, a[c + r * ld] = x;
        }
}

static void NAME(eigh_one)(const linalg_job *j, int64_t i, char *work) /* A, values, vectors, info */
{
    const lc_matrices *A = &j->a->m[0], *V = &j->a->m[2];
    int                n = (int)A->rows, ld, info = 0, lwork = j->lwork, lrwork = j->lrwork, liwork = j->liwork;
    lc_matrices        square = V->data ? *V : (lc_matrices){ .rows = n, .cols = n };
    T                 *v = NAME(place)(&square, i, &work, &ld);
    R                 *w = piece(&work, n, sizeof(R));
    T                 *space = piece(&work, lwork, sizeof(T));
    UNUSED R          *rspace = piece(&work, lrwork, sizeof(R));
    int32_t           *ispace = piece(&work, liwork, sizeof(int32_t));
    char               jobz = V->data ? 'V' : 'N', uplo = j->a->upper ? 'U' : 'L';
    NAME(fetch)(A, i, v, ld);
    if (!j->lapack) {
        if (j->a->upper) NAME(adjoin)(v, n, ld);
        info = j->own->eigh(n, v, ld, w, space, V->data);
    } else
#if IS_COMPLEX
        CALL(syevd, &jobz, &uplo, &n, v, &ld, w, space, &lwork, rspace, &lrwork, ispace, &liwork, &info, (size_t)1, (size_t)1);
#else
        CALL(syevd, &jobz, &uplo, &n, v, &ld, w, space, &lwork, ispace, &liwork, &info, (size_t)1, (size_t)1);
#endif
    NAME(put_real)(&j->a->m[1], i, w);
    if (V->data) NAME(put)(V, i, v, ld);
    NAME(put_info)(&j->a->m[3], i, info);
}
static int NAME(run_eigh)(linalg_job *j)
{
    int  n = (int)j->n, ld = (int)leading(n), ask = -1, info = 0, ints = 0;
    T    none = 0, asked = 0;
    R    reals = 0, w = 0;
    char jobz = j->a->m[2].data ? 'V' : 'N', uplo = 'L', *count = NULL;
    j->lwork = n * (n + 5);
    if (j->lapack) {
#if IS_COMPLEX
        CALL(syevd, &jobz, &uplo, &n, &none, &ld, &w, &asked, &ask, &reals, &ask, &ints, &ask, &info, (size_t)1, (size_t)1);
#else
        CALL(syevd, &jobz, &uplo, &n, &none, &ld, &w, &asked, &ask, &ints, &ask, &info, (size_t)1, (size_t)1);
#endif
        j->lwork = (int)(REAL(asked) + 0.5), j->lrwork = (int)(reals + 0.5), j->liwork = ints;
    }
    piece(&count, (int64_t)n * n, sizeof(T)), piece(&count, n, sizeof(R)), piece(&count, j->lwork, sizeof(T));
    piece(&count, j->lrwork, sizeof(R)), piece(&count, j->liwork, sizeof(int32_t));
    j->workspace = (size_t)count, j->one = NAME(eigh_one);
    return linalg_walk(j, 6.0 * n * n * n);
}

static void NAME(eig_one)(const linalg_job *j, int64_t i, char *work) /* A, values, vectors, info; both complex */
{
    const lc_matrices *A = &j->a->m[0], *W = &j->a->m[1], *V = &j->a->m[2];
    int                n = (int)A->rows, ld = (int)leading(n), info = 0, lwork = j->lwork, one = 1;
    T                 *a = piece(&work, (int64_t)n * n, sizeof(T)), *v = piece(&work, V->data ? (int64_t)n * n : 0, sizeof(T));
    R                 *re = piece(&work, 2 * n, sizeof(R)), *im = re + n;
    T                 *space = piece(&work, lwork, sizeof(T));
    char               no = 'N', right = V->data ? 'V' : 'N';
    R                 *w = (R *)matrix_at(W, i, 2 * sizeof(R)), *x = V->data ? (R *)matrix_at(V, i, 2 * sizeof(R)) : NULL;
    NAME(fetch)(A, i, a, ld);
#if IS_COMPLEX
    T *values = (T *)re;
    R *rspace = piece(&work, 2 * n, sizeof(R));
    CALL(geev, &no, &right, &n, a, &ld, values, NULL, &one, v, &ld, space, &lwork, rspace, &info, (size_t)1, (size_t)1);
    for (int64_t k = 0; k < n; k++) ((T *)w)[k * W->row_step] = values[k];
    for (int64_t c = 0; c < n && x; c++)
        for (int64_t r = 0; r < n; r++) ((T *)x)[r * V->row_step + c * V->col_step] = v[r + c * ld];
    (void)im;
#else
    CALL(geev, &no, &right, &n, a, &ld, re, im, NULL, &one, v, &ld, space, &lwork, &info, (size_t)1, (size_t)1);
    for (int64_t k = 0; k < n; k++) w[2 * k * W->row_step] = re[k], w[2 * k * W->row_step + 1] = im[k];
    for (int64_t c = 0; c < n && x; c++) { /* a pair of conjugate values has one real and one imaginary column */
        bool second = c > 0 && im[c] < 0 && im[c - 1] > 0 && im[c] == -im[c - 1];
        for (int64_t r = 0; r < n; r++) {
            R *to = x + 2 * (r * V->row_step + c * V->col_step);
            if (im[c] == 0) to[0] = v[r + c * ld], to[1] = 0;
            else if (second) to[0] = v[r + (c - 1) * ld], to[1] = -v[r + c * ld];
            else to[0] = v[r + c * ld], to[1] = c + 1 < n ? v[r + (c + 1) * ld] : 0;
        }
    }
#endif
    NAME(put_info)(&j->a->m[3], i, info);
}
static int NAME(run_eig)(linalg_job *j)
{
    int  n = (int)j->n, ld = (int)leading(n), ask = -1, info = 0, one = 1;
    T    none = 0, asked = 0;
    R    w = 0;
    char no = 'N', right = j->a->m[2].data ? 'V' : 'N', *count = NULL;
#if IS_COMPLEX
    CALL(geev, &no, &right, &n, &none, &ld, &none, NULL, &one, &none, &ld, &asked, &ask, &w, &info, (size_t)1, (size_t)1);
#else
    CALL(geev, &no, &right, &n, &none, &ld, &w, &w, NULL, &one, &none, &ld, &asked, &ask, &info, (size_t)1, (size_t)1);
#endif
    j->lwork = (int)(REAL(asked) + 0.5);
    piece(&count, (int64_t)n * n, sizeof(T)), piece(&count, (int64_t)n * n, sizeof(T)), piece(&count, 2 * n, sizeof(R));
    piece(&count, j->lwork, sizeof(T)), piece(&count, 2 * n, sizeof(R));
    j->workspace = (size_t)count, j->one = NAME(eig_one);
    return linalg_walk(j, 25.0 * n * n * n);
}

/* U, S, Vh of a, which is destroyed; all column-major. Without LAPACK: a wide matrix is worked on as its adjoint; a full U or V gets the missing
 * columns from a QR decomposition of those that are there. */
static int NAME(own_svd)(const linalg_job *j, int64_t m, int64_t n, const T *a, int64_t lda, T *u, int64_t ldu, R *s, T *vh,
                         int64_t ldvh, bool full, T *work)
{
    bool    wide = m < n;
    int64_t tall = wide ? n : m, few = wide ? m : n;
    T      *left = work, *right = left + tall * tall, *tau = right + few * few,
      *columns_work = tau + few + tall * few; /* left (tall, tall), of which few columns are worked on */
    for (int64_t c = 0; c < few; c++)
        for (int64_t r = 0; r < tall; r++) {
            T x = wide ? a[c + r * lda] : a[r + c * lda];
#if IS_COMPLEX
            x = wide ? ~x : x;
#endif
            left[r + c * tall] = x;
        }
    if (j->own->svd(tall, few, left, leading(tall), s, u ? right : NULL, leading(few), columns_work)) return 1;
    if (!u) return 0;
    int64_t columns = full ? tall : few;
    if (columns > few) { /* reflections of the columns give an orthonormal basis; its sign is free */
        T *basis = tau + few;
        memcpy(basis, left, (size_t)(tall * few) * sizeof(T));
        j->own->geqrf(tall, few, basis, tall, tau);
        j->own->orgqr(tall, tall, few, basis, tall, tau);
        memcpy(left + tall * few, basis + tall * few, (size_t)(tall * (tall - few)) * sizeof(T));
    }
    for (int64_t c = 0; c < columns; c++) /* the long side's vectors */
        for (int64_t r = 0; r < tall; r++) {
            T x = left[r + c * tall];
#if IS_COMPLEX
            x = wide ? ~x : x;
#endif
            if (wide) vh[c + r * ldvh] = x;
            else u[r + c * ldu] = x;
        }
    for (int64_t c = 0; c < few; c++)
        for (int64_t r = 0; r < few; r++) {
            T x = right[r + c * few];
#if IS_COMPLEX
            x = wide ? x : ~x;
#endif
            if (wide) u[r + c * ldu] = x;
            else vh[c + r * ldvh] = x;
        }
    return 0;
}
static void NAME(svd_one)(const linalg_job *j, int64_t i, char *work) /* A, U, S, Vh, info */
{
    const lc_matrices *A = &j->a->m[0], *U = &j->a->m[1], *Vh = &j->a->m[3];
    int m = (int)A->rows, n = (int)A->cols, few = m < n ? m : n, lda = (int)leading(m), ldu = 1, ldv = 1, info = 0,
        lwork = j->lwork;
    T        *a = piece(&work, (int64_t)m * n, sizeof(T)), *u = NULL, *vh = NULL;
    R        *s = piece(&work, few, sizeof(R));
    T        *space = piece(&work, lwork, sizeof(T));
    UNUSED R *rspace = piece(&work, j->lrwork, sizeof(R));
    int32_t  *ispace = piece(&work, 8 * few, sizeof(int32_t));
    char      jobz = !j->a->vectors ? 'N' : j->a->full ? 'A' : 'S';
    if (j->a->vectors) u = NAME(place)(U, i, &work, &ldu), vh = NAME(place)(Vh, i, &work, &ldv);
    NAME(fetch)(A, i, a, lda);
    if (!j->lapack) info = NAME(own_svd)(j, m, n, a, lda, u, ldu, s, vh, ldv, j->a->full, space);
    else
#if IS_COMPLEX
        CALL(gesdd, &jobz, &m, &n, a, &lda, s, u, &ldu, vh, &ldv, space, &lwork, rspace, ispace, &info, (size_t)1);
#else
        CALL(gesdd, &jobz, &m, &n, a, &lda, s, u, &ldu, vh, &ldv, space, &lwork, ispace, &info, (size_t)1);
#endif
    NAME(put_real)(&j->a->m[2], i, s);
    if (u) NAME(put)(U, i, u, ldu), NAME(put)(Vh, i, vh, ldv);
    NAME(put_info)(&j->a->m[4], i, info);
}
static int64_t NAME(own_svd_space)(int64_t m, int64_t n)
{
    int64_t tall = m > n ? m : n, few = m < n ? m : n;
    return 2 * tall * tall + few * few + few + COLUMNS_WORK(tall, few);
}
static int NAME(run_svd)(linalg_job *j)
{
    int m = (int)j->m, n = (int)j->n, few = m < n ? m : n, most = m < n ? n : m, lda = (int)leading(m), ldv = (int)leading(n),
        ask = -1, info = 0;
    int  ints;
    T    none = 0, asked = 0;
    R    s = 0;
    char jobz = !j->a->vectors ? 'N' : j->a->full ? 'A' : 'S', *count = NULL;
    j->lwork = (int)NAME(own_svd_space)(m, n);
    if (j->lapack) {
#if IS_COMPLEX
        CALL(gesdd, &jobz, &m, &n, &none, &lda, &s, &none, &lda, &none, &ldv, &asked, &ask, &s, &ints, &info, (size_t)1);
        double f = few, large = most, plain = 7 * f, vectors = f * fmax(5 * f + 7, 2 * large + 2 * f + 1);
        j->lrwork = (int)(j->a->vectors ? vectors : plain) + 1;
#else
        CALL(gesdd, &jobz, &m, &n, &none, &lda, &s, &none, &lda, &none, &ldv, &asked, &ask, &ints, &info, (size_t)1);
#endif
        j->lwork = (int)(REAL(asked) * (R)(1 + 1e-6) + 1);
    }
    (void)most;
    piece(&count, (int64_t)m * n, sizeof(T)), piece(&count, few, sizeof(R)), piece(&count, j->lwork, sizeof(T));
    piece(&count, j->lrwork, sizeof(R)), piece(&count, 8 * (int64_t)few, sizeof(int32_t));
    if (j->a->vectors)
        piece(&count, j->a->m[1].rows * j->a->m[1].cols, sizeof(T)),
            piece(&count, j->a->m[3].rows * j->a->m[3].cols, sizeof(T));
    j->workspace = (size_t)count, j->one = NAME(svd_one);
    return linalg_walk(j, 12.0 * m * n * few);
}

/* Without LAPACK: gels by QR, gelsd and gelss by singular values. b (max(m, n), k): the right sides, then the solution; below it the rest of
 * Q^H b, whose squares are the residuals. */
static int NAME(own_lstsq)(const linalg_job *j, int64_t m, int64_t n, int64_t k, T *a, int64_t lda, T *b, int64_t ldb, R *s,
                           int *rank, T *work)
{
    int64_t few = m < n ? m : n;
    if (j->a->driver == LC_GELS) {
        T *tau = work, *adjoint = tau + few;
        if (m >= n) {
            j->own->geqrf(m, n, a, lda, tau);
            j->own->ormqr(true, true, m, k, n, a, lda, tau, b, ldb);
            for (int64_t c = 0; c < n; c++)
                if (a[c + c * lda] == 0) return (int)c + 1;
            j->own->trsm(true, 'N', false, n, k, a, lda, b, ldb);
            return 0;
        }
        for (int64_t c = 0; c < m; c++)
            for (int64_t r = 0; r < n; r++) {
                T x = a[c + r * lda];
#if IS_COMPLEX
                x = ~x;
#endif
                adjoint[r + c * n] = x;
            }
        j->own->geqrf(n, m, adjoint, n, tau); /* A = R^H Q^H */
        for (int64_t c = 0; c < m; c++)
            if (adjoint[c + c * n] == 0) return (int)c + 1;
        j->own->trsm(true, 'C', false, m, k, adjoint, n, b, ldb);
        for (int64_t c = 0; c < k; c++) memset(b + c * ldb + m, 0, (size_t)(n - m) * sizeof(T));
        j->own->ormqr(true, false, n, k, m, adjoint, n, tau, b, ldb);
        return 0;
    }
    T *u = work, *vh = u + m * few, *c = vh + few * n, *rest = c + (m > n ? m : n);
    if (NAME(own_svd)(j, m, n, a, lda, u, leading(m), s, vh, leading(few), false, rest)) return 1;
    R limit = (R)(j->a->rcond < 0 ? 0 : j->a->rcond) * (few ? s[0] : 0);
    *rank = 0;
    for (int64_t i = 0; i < few; i++) *rank += s[i] > limit;
    for (int64_t col = 0; col < k; col++) {
        T *x = b + col * ldb;
        R  left_over = 0;
        for (int64_t i = 0; i < m; i++)
            left_over += REAL(x[i]) * REAL(x[i]) + (MODULUS(x[i]) * MODULUS(x[i]) - REAL(x[i]) * REAL(x[i]));
        for (int64_t i = 0; i < few; i++) {
            T sum = 0;
            for (int64_t r = 0; r < m; r++) {
                T e = u[r + i * m];
#if IS_COMPLEX
                e = ~e;
#endif
                sum += e * x[r];
            }
            left_over -= MODULUS(sum) * MODULUS(sum);
            c[i] = s[i] > limit ? sum / s[i] : 0;
        }
        for (int64_t r = 0; r < n; r++) {
            T sum = 0;
            for (int64_t i = 0; i < few; i++) {
                T e = vh[i + r * few];
#if IS_COMPLEX
                e = ~e;
#endif
                sum += e * c[i];
            }
            x[r] = sum;
        }
        for (int64_t r = n; r < m; r++) x[r] = r == n ? (R)sqrt((double)(left_over > 0 ? left_over : 0)) : 0;
    }
    return 0;
}
static void NAME(lstsq_one)(const linalg_job *j, int64_t i, char *work) /* A, B, X, residuals, rank, singular values, info */
{
    const lc_matrices *A = &j->a->m[0], *B = &j->a->m[1], *X = &j->a->m[2], *Res = &j->a->m[3], *Rank = &j->a->m[4],
                      *S = &j->a->m[5];
    int m = (int)A->rows, n = (int)A->cols, k = (int)B->cols, few = m < n ? m : n, lda = (int)leading(m),
        ldb = (int)leading(m > n ? m : n);
    int info = 0, rank = few, lwork = j->lwork;
    T  *a = piece(&work, (int64_t)m * n, sizeof(T)), *b = piece(&work, (int64_t)ldb * k, sizeof(T)),
      *space = piece(&work, lwork, sizeof(T));
    R        *s = piece(&work, few, sizeof(R)), rcond = (R)j->a->rcond;
    UNUSED R *rspace = piece(&work, j->lrwork, sizeof(R));
    int32_t  *ispace = piece(&work, j->liwork, sizeof(int32_t));
    char      no = 'N';
    NAME(fetch)(A, i, a, lda);
    memset(b, 0, (size_t)((int64_t)ldb * k) * sizeof(T));
    NAME(fetch)(B, i, b, ldb);
    if (!j->lapack) info = NAME(own_lstsq)(j, m, n, k, a, lda, b, ldb, s, &rank, space);
    else if (j->a->driver == LC_GELS) CALL(gels, &no, &m, &n, &k, a, &lda, b, &ldb, space, &lwork, &info, (size_t)1);
#if IS_COMPLEX
    else if (j->a->driver == LC_GELSY) {
        memset(ispace, 0, (size_t)n * sizeof *ispace);
        CALL(gelsy, &m, &n, &k, a, &lda, b, &ldb, ispace, &rcond, &rank, space, &lwork, rspace, &info);
    } else if (j->a->driver == LC_GELSD)
        CALL(gelsd, &m, &n, &k, a, &lda, b, &ldb, s, &rcond, &rank, space, &lwork, rspace, ispace, &info);
    else CALL(gelss, &m, &n, &k, a, &lda, b, &ldb, s, &rcond, &rank, space, &lwork, rspace, &info);
#else
    else if (j->a->driver == LC_GELSY) {
        memset(ispace, 0, (size_t)n * sizeof *ispace);
        CALL(gelsy, &m, &n, &k, a, &lda, b, &ldb, ispace, &rcond, &rank, space, &lwork, &info);
    } else if (j->a->driver == LC_GELSD)
        CALL(gelsd, &m, &n, &k, a, &lda, b, &ldb, s, &rcond, &rank, space, &lwork, ispace, &info);
    else CALL(gelss, &m, &n, &k, a, &lda, b, &ldb, s, &rcond, &rank, space, &lwork, &info);
#endif
    NAME(put)(X, i, b, ldb);
    if (S->data) NAME(put_real)(S, i, s);
    if (Rank->data) *(int64_t *)matrix_at(Rank, i, sizeof(int64_t)) = rank;
    for (int64_t c = 0; c < k && Res->data; c++) {
        R sum = 0;
        for (int64_t r = n; r < m; r++) {
            R size = MODULUS(b[r + c * ldb]);
            sum += size * size;
        }
        ((R *)matrix_at(Res, i, sizeof(R)))[c * Res->row_step] = sum;
    }
    NAME(put_info)(&j->a->m[6], i, info);
}
static int NAME(run_lstsq)(linalg_job *j)
{
    int m = (int)j->m, n = (int)j->n, k = (int)j->k, few = m < n ? m : n, most = m < n ? n : m, lda = (int)leading(m),
        ldb = (int)leading(most);
    int  ask = -1, info = 0, rank, ints = 0;
    T    none = 0, asked = 0;
    R    s = 0, rcond = 0, reals = 0;
    char no = 'N', *count = NULL;
    j->liwork = n;
    j->lwork = (int)(NAME(own_svd_space)(m, n) + (int64_t)(m + n) * (few + 1) + few + (int64_t)m * n);
    if (j->lapack && j->a->driver == LC_GELS)
        CALL(gels, &no, &m, &n, &k, &none, &lda, &none, &ldb, &asked, &ask, &info, (size_t)1);
#if IS_COMPLEX
    else if (j->lapack && j->a->driver == LC_GELSY)
        CALL(gelsy, &m, &n, &k, &none, &lda, &none, &ldb, &ints, &rcond, &rank, &asked, &ask, &reals, &info), j->lrwork = 2 * n;
    else if (j->lapack && j->a->driver == LC_GELSD) {
        CALL(gelsd, &m, &n, &k, &none, &lda, &none, &ldb, &s, &rcond, &rank, &asked, &ask, &reals, &ints, &info);
        j->lrwork = (int)reals + 1, j->liwork = ints;
    } else if (j->lapack)
        CALL(gelss, &m, &n, &k, &none, &lda, &none, &ldb, &s, &rcond, &rank, &asked, &ask, &reals, &info), j->lrwork = 5 * few;
#else
    else if (j->lapack && j->a->driver == LC_GELSY)
        CALL(gelsy, &m, &n, &k, &none, &lda, &none, &ldb, &ints, &rcond, &rank, &asked, &ask, &info);
    else if (j->lapack && j->a->driver == LC_GELSD)
        CALL(gelsd, &m, &n, &k, &none, &lda, &none, &ldb, &s, &rcond, &rank, &asked, &ask, &ints, &info), j->liwork = ints;
    else if (j->lapack) CALL(gelss, &m, &n, &k, &none, &lda, &none, &ldb, &s, &rcond, &rank, &asked, &ask, &info);
    (void)reals;
#endif
    if (j->lapack) j->lwork = (int)(REAL(asked) * (R)(1 + 1e-6) + 1);
    piece(&count, (int64_t)m * n, sizeof(T)), piece(&count, (int64_t)ldb * k, sizeof(T)), piece(&count, j->lwork, sizeof(T));
    piece(&count, few, sizeof(R)), piece(&count, j->lrwork, sizeof(R)), piece(&count, j->liwork, sizeof(int32_t));
    j->workspace = (size_t)count, j->one = NAME(lstsq_one);
    return linalg_walk(j, 4.0 * m * n * few);
}

/* For T, a real or complex type, and LETTER, LAPACK's for it: LU, Cholesky, triangular systems, QR and LDL of one matrix of a batch, by LAPACK
 * or by our own kernels. Included by factor.c. */
#include "operands.inc.c"

/* ---- LU ---- */

static int NAME(lu)(const linalg_job *j, int m, int n, T *a, int lda, int32_t *piv)
{
    int info = 0;
    if (j->lapack && j->a->pivot) CALL(getrf, &m, &n, a, &lda, piv, &info);
    else info = j->own->getrf(m, n, a, lda, piv, j->a->pivot);
    return info;
}
/* b (n, k) := op(P L U)^-1 b */
static void NAME(lu_apply)(const linalg_job *j, char trans, int n, int k, const T *lu, int ldlu, const int32_t *piv, T *b,
                           int ldb)
{
    int info;
    if (j->lapack) {
        CALL(getrs, &trans, &n, &k, lu, &ldlu, piv, b, &ldb, &info, (size_t)1);
        return;
    }
    for (int step = 0; step < n && trans == 'N'; step++)
        for (int c = 0, p = piv[step] - 1; p != step && c < k; c++) {
            T t = b[step + (int64_t)c * ldb];
            b[step + (int64_t)c * ldb] = b[p + (int64_t)c * ldb], b[p + (int64_t)c * ldb] = t;
        }
    j->own->trsm(trans != 'N', trans, trans == 'N', n, k, lu, ldlu, b, ldb);
    j->own->trsm(trans == 'N', trans, trans != 'N', n, k, lu, ldlu, b, ldb);
    for (int step = n - 1; step >= 0 && trans != 'N'; step--)
        for (int c = 0, p = piv[step] - 1; p != step && c < k; c++) {
            T t = b[step + (int64_t)c * ldb];
            b[step + (int64_t)c * ldb] = b[p + (int64_t)c * ldb], b[p + (int64_t)c * ldb] = t;
        }
}
static void NAME(lu_one)(const linalg_job *j, int64_t i, char *work) /* A, LU, pivots, info */
{
    const lc_matrices *A = &j->a->m[0], *LU = &j->a->m[1], *P = &j->a->m[2];
    int                ld;
    T                 *lu = NAME(place)(LU, i, &work, &ld);
    int32_t           *piv = piece(&work, P->rows, sizeof *piv);
    NAME(fetch)(A, i, lu, ld);
    int info = NAME(lu)(j, (int)A->rows, (int)A->cols, lu, ld, piv);
    NAME(put)(LU, i, lu, ld);
    NAME(put_pivots)(P, i, piv);
    NAME(put_info)(&j->a->m[3], i, info);
}
static void NAME(solve_one)(const linalg_job *j, int64_t i, char *work) /* A, B, X, LU, pivots, info */
{
    const lc_matrices *A = &j->a->m[0], *LU = &j->a->m[3], *P = &j->a->m[4];
    lc_matrices B = j->a->left ? j->a->m[1] : transposed(j->a->m[1]), X = j->a->left ? j->a->m[2] : transposed(j->a->m[2]);
    int         ld, ldx;
    T          *lu = NAME(place)(LU, i, &work, &ld), *x = NAME(place)(&X, i, &work, &ldx);
    int32_t    *piv = piece(&work, P->rows, sizeof *piv);
    NAME(fetch)(A, i, lu, ld);
    NAME(fetch)(&B, i, x, ldx);
    int info = NAME(lu)(j, (int)A->rows, (int)A->cols, lu, ld, piv);
    NAME(lu_apply)(j, j->a->left ? 'N' : 'T', (int)A->rows, (int)X.cols, lu, ld, piv, x, ldx);
    NAME(put)(LU, i, lu, ld);
    NAME(put)(&X, i, x, ldx);
    NAME(put_pivots)(P, i, piv);
    NAME(put_info)(&j->a->m[5], i, info);
}
static void NAME(lu_solve_one)(const linalg_job *j, int64_t i, char *work) /* LU, pivots, B, X */
{
    const lc_matrices *LU = &j->a->m[0], *P = &j->a->m[1];
    bool        left = j->a->left, adjoint = j->a->adjoint, twice = !left && adjoint; /* X A^H = B: A conj(X^T) = conj(B^T) */
    lc_matrices B = left ? j->a->m[2] : transposed(j->a->m[2]), X = left ? j->a->m[3] : transposed(j->a->m[3]);
    int         ld, ldx;
    T          *lu = NAME(place)(LU, i, &work, &ld), *x = NAME(place)(&X, i, &work, &ldx);
    int32_t    *piv = piece(&work, P->rows, sizeof *piv);
    if (!is_column_major(LU)) NAME(fetch)(LU, i, lu, ld);
    NAME(fetch)(&B, i, x, ldx);
    NAME(get_pivots)(P, i, piv);
    for (int64_t c = 0; c < X.cols && twice; c++) NAME(conjugate)(x + c * ldx, X.rows);
    NAME(lu_apply)(j, left ? (adjoint ? 'C' : 'N') : adjoint ? 'N' : 'T', (int)LU->rows, (int)X.cols, lu, ld, piv, x, ldx);
    for (int64_t c = 0; c < X.cols && twice; c++) NAME(conjugate)(x + c * ldx, X.rows);
    NAME(put)(&X, i, x, ldx);
}
static void NAME(inv_one)(const linalg_job *j, int64_t i, char *work) /* A, inverse, info */
{
    const lc_matrices *A = &j->a->m[0], *X = &j->a->m[1];
    int                n = (int)A->rows, ldx, info, again, ld = (int)leading(n), lwork = j->lwork;
    T                 *x = NAME(place)(X, i, &work, &ldx), *lu = piece(&work, n * (int64_t)n, sizeof(T));
    int32_t           *piv = piece(&work, n, sizeof *piv);
    T                 *space = piece(&work, lwork, sizeof(T));
    if (j->lapack) {
        NAME(fetch)(A, i, x, ldx);
        CALL(getrf, &n, &n, x, &ldx, piv, &info);
        if (info == 0) CALL(getri, &n, x, &ldx, piv, space, &lwork, &again);
    } else {
        NAME(fetch)(A, i, lu, ld);
        info = j->own->getrf(n, n, lu, ld, piv, true);
        for (int64_t c = 0; c < n; c++) {
            memset(x + c * ldx, 0, (size_t)n * sizeof(T));
            x[c + c * ldx] = 1;
        }
        NAME(lu_apply)(j, 'N', n, n, lu, ld, piv, x, ldx);
    }
    for (int64_t c = 0; c < n && info > 0; c++) /* no inverse: whoever did not ask for an error sees it at once */
        for (int64_t r = 0; r < n; r++) x[r + c * ldx] = (R)NAN;
    NAME(put)(X, i, x, ldx);
    NAME(put_info)(&j->a->m[2], i, info);
}
static void NAME(det_one)(const linalg_job *j, int64_t i,
                          char *work) /* A, det, LU, pivots; or A, sign, logabsdet, LU, pivots */
{
    bool               logarithm = j->a->hermitian;
    const lc_matrices *A = &j->a->m[0], *LU = &j->a->m[2 + logarithm], *P = &j->a->m[3 + logarithm];
    int                ld, n = (int)A->rows;
    T                 *lu = NAME(place)(LU, i, &work, &ld), det = 1;
    R                  sum = 0;
    int32_t           *piv = piece(&work, P->rows, sizeof *piv);
    NAME(fetch)(A, i, lu, ld);
    NAME(lu)(j, n, n, lu, ld, piv);
    for (int64_t k = 0; k < n; k++) {
        T d = lu[k + k * ld];
        if (piv[k] != k + 1) det = -det;
        if (logarithm) {
            R size = MODULUS(d);
            sum += (R)log((double)size);
            det *= size == 0 ? d : d / size;
        } else det *= d;
    }
    *(T *)matrix_at(&j->a->m[1], i, sizeof(T)) = det;
    if (logarithm) *(R *)matrix_at(&j->a->m[2], i, sizeof(R)) = sum;
    NAME(put)(LU, i, lu, ld);
    NAME(put_pivots)(P, i, piv);
}

/* ---- Cholesky, triangular systems ---- */

static void NAME(cholesky_one)(const linalg_job *j, int64_t i, char *work) /* A, L, info */
{
    const lc_matrices *A = &j->a->m[0], *L = &j->a->m[1];
    int                ld, n = (int)A->rows, info;
    T                 *l = NAME(place)(L, i, &work, &ld);
    char               uplo = j->a->upper ? 'U' : 'L';
    NAME(fetch)(A, i, l, ld);
    if (j->lapack) CALL(potrf, &uplo, &n, l, &ld, &info, (size_t)1);
    else info = j->own->potrf(n, l, ld, j->a->upper);
    for (int64_t c = 0; c < n; c++)
        if (j->a->upper) memset(l + c * ld + c + 1, 0, (size_t)(n - c - 1) * sizeof(T));
        else memset(l + c * ld, 0, (size_t)c * sizeof(T));
    NAME(put)(L, i, l, ld);
    NAME(put_info)(&j->a->m[2], i, info);
}
static void NAME(triangular_one)(const linalg_job *j, int64_t i, char *work) /* A, B, X */
{
    bool        left = j->a->left, upper = j->a->upper == left; /* X A = B is A^T X^T = B^T */
    lc_matrices A = left ? j->a->m[0] : transposed(j->a->m[0]), B = left ? j->a->m[1] : transposed(j->a->m[1]);
    lc_matrices X = left ? j->a->m[2] : transposed(j->a->m[2]);
    int         n = (int)A.rows, k = (int)X.cols, lda, ldx;
    T          *x = NAME(place)(&X, i, &work, &ldx), one = 1;
    char        trans = 'N';
    if (!is_column_major(&A) && A.col_step == 1 && A.row_step >= n) { /* row-major: the transposed of a column-major matrix */
        A = transposed(A);
        trans = 'T', upper = !upper;
    }
    T *a = NAME(place)(&A, i, &work, &lda);
    if (!is_column_major(&A)) NAME(fetch)(&A, i, a, lda);
    NAME(fetch)(&B, i, x, ldx);
    char side = 'L', uplo = upper ? 'U' : 'L', diagonal = j->a->unit ? 'U' : 'N';
    if (j->lapack)
        CALL(trsm, &side, &uplo, &trans, &diagonal, &n, &k, &one, a, &lda, x, &ldx, (size_t)1, (size_t)1, (size_t)1, (size_t)1);
    else j->own->trsm(upper, trans, j->a->unit, n, k, a, lda, x, ldx);
    NAME(put)(&X, i, x, ldx);
}

/* ---- QR ---- */

static void NAME(reflections)(const linalg_job *j, int m, int n, T *a, int ld, T *tau, T *space)
{
    int lwork = j->lwork, info;
    if (j->lapack) CALL(geqrf, &m, &n, a, &ld, tau, space, &lwork, &info);
    else j->own->geqrf(m, n, a, ld, tau);
}
static void NAME(product)(const linalg_job *j, int m, int n, int k, T *a, int ld, const T *tau, T *space)
{
    int lwork = j->lwork, info;
    if (j->lapack) CALL(orgqr, &m, &n, &k, a, &ld, tau, space, &lwork, &info);
    else j->own->orgqr(m, n, k, a, ld, tau);
}
static void NAME(geqrf_one)(const linalg_job *j, int64_t i, char *work) /* A, a, tau */
{
    const lc_matrices *A = &j->a->m[0], *to = &j->a->m[1], *tau = &j->a->m[2];
    int                ld, ldt;
    T                 *a = NAME(place)(to, i, &work, &ld), *t = NAME(place)(tau, i, &work, &ldt);
    NAME(fetch)(A, i, a, ld);
    NAME(reflections)(j, (int)A->rows, (int)A->cols, a, ld, t, piece(&work, j->lwork, sizeof(T)));
    NAME(put)(to, i, a, ld);
    NAME(put)(tau, i, t, ldt);
}
static void NAME(qr_one)(const linalg_job *j, int64_t i, char *work) /* A, Q, R */
{
    const lc_matrices *A = &j->a->m[0], *Q = &j->a->m[1], *to = &j->a->m[2];
    int                m = (int)A->rows, n = (int)A->cols, few = m < n ? m : n, lda = (int)leading(m), ldq, ldr;
    T                 *a = piece(&work, m * (int64_t)n, sizeof(T)), *tau = piece(&work, few, sizeof(T));
    T                 *r = NAME(place)(to, i, &work, &ldr), *space = piece(&work, j->lwork, sizeof(T));
    NAME(fetch)(A, i, a, lda);
    NAME(reflections)(j, m, n, a, lda, tau, space);
    for (int64_t c = 0; c < n; c++) {
        int64_t top = c + 1 < to->rows ? c + 1 : to->rows;
        memcpy(r + c * ldr, a + c * lda, (size_t)top * sizeof(T));
        memset(r + c * ldr + top, 0, (size_t)(to->rows - top) * sizeof(T));
    }
    NAME(put)(to, i, r, ldr);
    if (!j->a->vectors) return;
    T *q = NAME(place)(Q, i, &work, &ldq);
    for (int64_t c = 0; c < few; c++) memcpy(q + c * ldq, a + c * lda, (size_t)m * sizeof(T));
    if (m) NAME(product)(j, m, (int)Q->cols, few, q, ldq, tau, space);
    NAME(put)(Q, i, q, ldq);
}
static void NAME(householder_one)(const linalg_job *j, int64_t i, char *work) /* A, tau, Q */
{
    const lc_matrices *A = &j->a->m[0], *tau = &j->a->m[1], *Q = &j->a->m[2];
    int                ld, ldt;
    T                 *q = NAME(place)(Q, i, &work, &ld), *t = NAME(place)(tau, i, &work, &ldt);
    NAME(fetch)(A, i, q, ld);
    if (!is_column_major(tau)) NAME(fetch)(tau, i, t, ldt);
    NAME(product)(j, (int)A->rows, (int)A->cols, (int)tau->rows, q, ld, t, piece(&work, j->lwork, sizeof(T)));
    NAME(put)(Q, i, q, ld);
}
static void NAME(ormqr_one)(const linalg_job *j, int64_t i, char *work) /* A, tau, C, out */
{
    const lc_matrices *A = &j->a->m[0], *tau = &j->a->m[1], *C = &j->a->m[2], *to = &j->a->m[3];
    int                lda, ldt, ldc, m = (int)C->rows, n = (int)C->cols, k = (int)tau->rows, lwork = j->lwork, info;
    T   *a = NAME(place)(A, i, &work, &lda), *t = NAME(place)(tau, i, &work, &ldt), *c = NAME(place)(to, i, &work, &ldc);
    T   *space = piece(&work, lwork, sizeof(T));
    char side = j->a->left ? 'L' : 'R', trans = !j->a->adjoint ? 'N' : IS_COMPLEX ? 'C' : 'T';
    if (!is_column_major(A)) NAME(fetch)(A, i, a, lda);
    if (!is_column_major(tau)) NAME(fetch)(tau, i, t, ldt);
    NAME(fetch)(C, i, c, ldc);
    if (j->lapack) CALL(ormqr, &side, &trans, &m, &n, &k, a, &lda, t, c, &ldc, space, &lwork, &info, (size_t)1, (size_t)1);
    else j->own->ormqr(j->a->left, j->a->adjoint, m, n, k, a, lda, t, c, ldc);
    NAME(put)(to, i, c, ldc);
}

/* ---- LDL, by LAPACK alone ---- */

static void NAME(ldl_one)(const linalg_job *j, int64_t i, char *work) /* A, LD, pivots, info */
{
    const lc_matrices *A = &j->a->m[0], *LD = &j->a->m[1], *P = &j->a->m[2];
    int                ld, n = (int)A->rows, info, lwork = j->lwork;
    T                 *l = NAME(place)(LD, i, &work, &ld);
    int32_t           *piv = piece(&work, n, sizeof *piv);
    T                 *space = piece(&work, lwork, sizeof(T));
    char               uplo = 'L';
    NAME(fetch)(A, i, l, ld);
    if (j->a->hermitian) CALL(hetrf, &uplo, &n, l, &ld, piv, space, &lwork, &info, (size_t)1);
    else CALL(sytrf, &uplo, &n, l, &ld, piv, space, &lwork, &info, (size_t)1);
    for (int64_t c = 1; c < n; c++) memset(l + c * ld, 0, (size_t)c * sizeof(T));
    NAME(put)(LD, i, l, ld);
    NAME(put_pivots)(P, i, piv);
    NAME(put_info)(&j->a->m[3], i, info);
}
static void NAME(ldl_solve_one)(const linalg_job *j, int64_t i, char *work) /* LD, pivots, B, X */
{
    const lc_matrices *LD = &j->a->m[0], *P = &j->a->m[1], *B = &j->a->m[2], *X = &j->a->m[3];
    int                ld, ldx, n = (int)LD->rows, k = (int)B->cols, info;
    T                 *l = NAME(place)(LD, i, &work, &ld), *x = NAME(place)(X, i, &work, &ldx);
    int32_t           *piv = piece(&work, n, sizeof *piv);
    char               uplo = 'L';
    if (!is_column_major(LD)) NAME(fetch)(LD, i, l, ld);
    NAME(fetch)(B, i, x, ldx);
    NAME(get_pivots)(P, i, piv);
    if (j->a->hermitian) CALL(hetrs, &uplo, &n, &k, l, &ld, piv, x, &ldx, &info, (size_t)1);
    else CALL(sytrs, &uplo, &n, &k, l, &ld, piv, x, &ldx, &info, (size_t)1);
    NAME(put)(X, i, x, ldx);
}

/* ---- how much workspace LAPACK wants ---- */

static int NAME(want)(T asked) { return (int)(REAL(asked) + 0.5); }
static int NAME(lwork)(const lc_linalg_args *a, lapack_routine what)
{
    const lc_matrices *A = &a->m[0];
    int                m = (int)A->rows, n = (int)A->cols, k = m < n ? m : n, ld = (int)leading(m), ask = -1, info, piv;
    T                  none = 0, asked = 0, more = 0;
    char               uplo = 'L', side = a->left ? 'L' : 'R', trans = !a->adjoint ? 'N' : IS_COMPLEX ? 'C' : 'T';
    switch (what) {
    case LAPACK_getri:
        CALL(getri, &n, &none, &ld, &piv, &asked, &ask, &info);
        break;
    case LAPACK_geqrf:
        CALL(geqrf, &m, &n, &none, &ld, &none, &asked, &ask, &info);
        break;
    case LAPACK_orgqr: /* of A, and of a complete Q */
        CALL(orgqr, &m, &k, &k, &none, &ld, &none, &asked, &ask, &info);
        CALL(orgqr, &m, &m, &k, &none, &ld, &none, &more, &ask, &info);
        break;
    case LAPACK_ormqr: {
        int rows = (int)a->m[2].rows, cols = (int)a->m[2].cols, taus = (int)a->m[1].rows, ldc = (int)leading(rows);
        CALL(ormqr, &side, &trans, &rows, &cols, &taus, &none, &ld, &none, &none, &ldc, &asked, &ask, &info, (size_t)1,
             (size_t)1);
        break;
    }
    default:
        CALL(sytrf, &uplo, &n, &none, &ld, &piv, &asked, &ask, &info, (size_t)1);
#if IS_COMPLEX
        CALL(hetrf, &uplo, &n, &none, &ld, &piv, &more, &ask, &info, (size_t)1);
#endif
    }
    int one = NAME(want)(asked), two = NAME(want)(more);
    return one > two ? one : two;
}

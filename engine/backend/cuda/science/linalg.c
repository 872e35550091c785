/* LU, Cholesky, LDL, QR, triangular systems and least squares. Operands lie anywhere: they are moved to contiguous column-major matrices, worked on
 * there, and moved to the results. Our own kernels take a block per matrix (kernels/science/linalg.cuh); cuSOLVER takes large ones where it is
 * installed (solver.c). */
#include "linalg.h"
#include <string.h>

CUDA_BODY(linalg);
enum { DIMS = 8 };
typedef struct {
    char   *data;
    int64_t row, col;
    int     ndim;
    int64_t size[DIMS], stride[DIMS];
} place;
typedef struct {
    place   to, from;
    int64_t batch, rows, cols;
    int     part, conjugate;
} move_args;

linalg_call linalg_start(lc_dtype dtype, const lc_linalg_args *a)
{
    linalg_call c = { .a = a, .dtype = dtype, .real = lc_real_of(dtype), .device = a->m[0].device, .batch = a->batch };
    c.rc = cuda_use(c.device);
    return c;
}
int linalg_end(linalg_call *c)
{
    for (int i = 0; i < c->n_pieces; i++) cuda_scratch_free(&c->piece[i]);
    return c->rc;
}
void *linalg_memory(linalg_call *c, int64_t elements, int64_t size)
{
    void *p = NULL;
    if (c->rc < 0) return NULL;
    if (c->n_pieces == LINALG_PIECES) c->rc = lc_fail_int(LC_LucidError, "%s: too many workspaces", c->a->name);
    else if (!(p = cuda_scratch_new(&c->piece[c->n_pieces++], c->device, (size_t)(c->batch * elements * size)))) c->rc = -1;
    return p;
}
dense linalg_blank(linalg_call *c, int64_t rows, int64_t cols)
{
    return (dense){ linalg_memory(c, rows * cols, lc_size_of(c->dtype)), rows, cols };
}
lc_matrices linalg_flipped(lc_matrices m)
{
    int64_t rows = m.rows, step = m.row_step;
    m.rows = m.cols, m.cols = rows, m.row_step = m.col_step, m.col_step = step;
    return m;
}
lc_matrices linalg_view(const linalg_call *c, dense d)
{
    return (
        lc_matrices){ d.data, d.rows, d.cols, 1, d.rows, .batch_step = d.rows * d.cols, .batch_ndim = 1, .device = c->device };
}
static place place_of(linalg_call *c, const lc_matrices *m)
{
    place p = { m->data, m->row_step, m->col_step, m->batch_ndim, { c->batch }, { m->batch_step } };
    if (m->batch_ndim == 1) return p;
    if (m->batch_ndim > DIMS) {
        c->rc = lc_fail_int(LC_NotImplementedError, "%s on cuda: a batch of more than %d dimensions", c->a->name, DIMS);
        return p;
    }
    memcpy(p.size, m->batch_size, (size_t)m->batch_ndim * sizeof *p.size);
    memcpy(p.stride, m->batch_stride, (size_t)m->batch_ndim * sizeof *p.stride);
    return p;
}
static cuda_program program(lc_dtype dtype, const char *kernel)
{
    return (cuda_program){ &linalg_body, kernel, .type = { CUDA_TYPE(dtype) }, .variant = lc_is_complex(dtype) };
}
void linalg_move(linalg_call *c, lc_dtype dtype, lc_matrices to, lc_matrices from, int64_t rows, int64_t cols, int part,
                 bool conjugate)
{
    cuda_program q = program(dtype, "move");
    move_args    p = { place_of(c, &to), place_of(c, &from), c->batch, rows, cols, part, conjugate && lc_is_complex(dtype) };
    if (c->rc < 0 || !rows || !cols) return;
    c->rc = cuda_map(&q, c->batch * rows * cols, &p);
}
dense linalg_fetch(linalg_call *c, lc_matrices from, bool conjugate)
{
    dense d = linalg_blank(c, from.rows, from.cols);
    linalg_move(c, c->dtype, linalg_view(c, d), from, d.rows, d.cols, PART_ALL, conjugate);
    return d;
}
void linalg_put(linalg_call *c, lc_matrices to, dense from, int part)
{
    if (!to.data) return;
    int64_t rows = to.rows < from.rows ? to.rows : from.rows, cols = to.cols < from.cols ? to.cols : from.cols;
    linalg_move(c, c->dtype, to, linalg_view(c, from), rows, cols, part, false);
}
void linalg_put_as(linalg_call *c, lc_dtype dtype, lc_matrices to, void *from, int64_t n)
{
    lc_matrices line = linalg_view(c, (dense){ from, n, 1 });
    if (to.data) linalg_move(c, dtype, to, line, n, 1, PART_ALL, false);
}
void linalg_run(linalg_call *c, const char *kernel, int64_t size, linalg_args *p)
{
    cuda_program q = program(c->dtype, kernel);
    if (c->rc == 0) c->rc = cuda_blocks(&q, c->batch, size <= 16 ? 32 : size <= 64 ? 128 : 512, p);
}
static void each_matrix(linalg_call *c, const char *kernel, int64_t threads, linalg_args *p)
{
    cuda_program q = program(c->dtype, kernel);
    if (c->rc == 0) c->rc = cuda_map(&q, threads, p);
}

void linalg_narrow(linalg_call *c, void *to, const void *from, int64_t n)
{
    struct {
        void       *to;
        const void *from;
        int64_t     n;
    } p = { to, from, n };
    cuda_program q = program(c->dtype, "narrow");
    if (c->rc == 0) c->rc = cuda_map(&q, n, &p);
}

/* ---- LU ---- */
void linalg_getrf(linalg_call *c, dense a, void *piv, void *info, bool pivot)
{
    if (pivot && solver_takes(c, a.rows < a.cols ? a.rows : a.cols)) return solver_getrf(c, a, piv, info);
    linalg_run(c, "getrf", a.rows,
               &(linalg_args){ a.data, .piv = piv, .info = info, .m = a.rows, .n = a.cols, .pivot = pivot });
}
void linalg_trsm(linalg_call *c, bool upper, int trans, bool unit, int64_t n, dense a, dense b)
{
    linalg_run(c, "trsm", n > b.cols ? n : b.cols,
               &(linalg_args){ a.data, b.data, .m = b.rows, .n = n, .cols = b.cols, .lda = a.rows, .a_size = a.rows * a.cols,
                               .upper = upper, .trans = trans, .unit = unit });
}
/* b := op(P L U)^-1 b */
static void lu_apply(linalg_call *c, int trans, dense lu, void *piv, dense b)
{
    linalg_args swap = { .b = b.data, .piv = piv, .n = b.rows, .k = lu.rows, .cols = b.cols, .trans = trans };
    if (!trans) linalg_run(c, "swap_rows", b.cols, &swap);
    linalg_trsm(c, trans, trans, !trans, lu.rows, lu, b);
    linalg_trsm(c, !trans, trans, trans, lu.rows, lu, b);
    if (trans) linalg_run(c, "swap_rows", b.cols, &swap);
}
static int lu(UNUSED lc_op_id op, lc_dtype dtype, const void *args) /* A, LU, pivots, info */
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    int64_t               few = a->m[0].rows < a->m[0].cols ? a->m[0].rows : a->m[0].cols;
    dense                 x = linalg_fetch(&c, a->m[0], false);
    void                 *piv = linalg_memory(&c, few, 4), *info = linalg_memory(&c, 1, 4);
    linalg_getrf(&c, x, piv, info, a->pivot);
    linalg_put(&c, a->m[1], x, PART_ALL), linalg_put_as(&c, LINALG_INTS, a->m[2], piv, few),
        linalg_put_as(&c, LINALG_INTS, a->m[3], info, 1);
    return linalg_end(&c);
}
static int solve(UNUSED lc_op_id op, lc_dtype dtype, const void *args) /* A, B, X, LU, pivots, info */
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    int64_t               n = a->m[0].rows;
    dense x = linalg_fetch(&c, a->m[0], false), b = linalg_fetch(&c, a->left ? a->m[1] : linalg_flipped(a->m[1]), false);
    void *piv = linalg_memory(&c, n, 4), *info = linalg_memory(&c, 1, 4);
    linalg_getrf(&c, x, piv, info, true);
    lu_apply(&c, a->left ? 0 : 1, x, piv, b);
    linalg_put(&c, a->left ? a->m[2] : linalg_flipped(a->m[2]), b, PART_ALL), linalg_put(&c, a->m[3], x, PART_ALL);
    linalg_put_as(&c, LINALG_INTS, a->m[4], piv, n), linalg_put_as(&c, LINALG_INTS, a->m[5], info, 1);
    return linalg_end(&c);
}
static int lu_solve(UNUSED lc_op_id op, lc_dtype dtype, const void *args) /* LU, pivots, B, X */
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    int64_t               n = a->m[0].rows;
    bool                  twice = !a->left && a->adjoint; /* X A^H = B: A conj(X^T) = conj(B^T) */
    lc_matrices           X = a->left ? a->m[3] : linalg_flipped(a->m[3]);
    dense x = linalg_fetch(&c, a->m[0], false), b = linalg_fetch(&c, a->left ? a->m[2] : linalg_flipped(a->m[2]), twice);
    void *piv = linalg_memory(&c, n, 4);
    linalg_move(&c, LINALG_INTS, linalg_view(&c, (dense){ piv, n, 1 }), a->m[1], n, 1, PART_ALL, false);
    lu_apply(&c, a->left ? (a->adjoint ? 2 : 0) : a->adjoint ? 0 : 1, x, piv, b);
    linalg_move(&c, dtype, X, linalg_view(&c, b), b.rows, b.cols, PART_ALL, twice);
    return linalg_end(&c);
}
static int inv(UNUSED lc_op_id op, lc_dtype dtype, const void *args) /* A, inverse, info */
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    int64_t               n = a->m[0].rows;
    dense                 x = linalg_fetch(&c, a->m[0], false), b = linalg_blank(&c, n, n);
    void                 *piv = linalg_memory(&c, n, 4), *info = linalg_memory(&c, 1, 4);
    linalg_move(&c, dtype, linalg_view(&c, b), linalg_view(&c, b), n, n, PART_IDENTITY, false);
    linalg_getrf(&c, x, piv, info, true);
    lu_apply(&c, 0, x, piv, b);
    each_matrix(&c, "poison", c.batch * n * n, &(linalg_args){ b.data, .info = info, .n = n, .cols = c.batch });
    linalg_put(&c, a->m[1], b, PART_ALL), linalg_put_as(&c, LINALG_INTS, a->m[2], info, 1);
    return linalg_end(&c);
}
static int det(lc_op_id op, lc_dtype dtype, const void *args) /* A, det, LU, pivots; or A, sign, logabsdet, LU, pivots */
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    bool                  logarithm = op == LC_OP__linalg_slogdet;
    int64_t               n = a->m[0].rows;
    dense                 x = linalg_fetch(&c, a->m[0], false);
    void                 *piv = linalg_memory(&c, n, 4), *info = linalg_memory(&c, 1, 4), *size = linalg_memory(&c, 1, 8);
    dense                 value = linalg_blank(&c, 1, 1);
    linalg_getrf(&c, x, piv, info, true);
    each_matrix(&c, "determinant", c.batch,
                &(linalg_args){ x.data, value.data, .piv = piv, .w = size, .n = n, .cols = c.batch, .logarithm = logarithm });
    linalg_put(&c, a->m[1], value, PART_ALL);
    if (logarithm) linalg_put_as(&c, c.real, a->m[2], size, 1);
    linalg_put(&c, a->m[2 + logarithm], x, PART_ALL), linalg_put_as(&c, LINALG_INTS, a->m[3 + logarithm], piv, n);
    return linalg_end(&c);
}

/* ---- Cholesky, triangular systems ---- */
static int cholesky(UNUSED lc_op_id op, lc_dtype dtype, const void *args) /* A, L, info */
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    dense                 x = linalg_fetch(&c, a->m[0], false);
    void                 *info = linalg_memory(&c, 1, 4);
    if (solver_takes(&c, x.rows)) solver_potrf(&c, x, a->upper, info);
    else linalg_run(&c, "potrf", x.rows, &(linalg_args){ x.data, .info = info, .n = x.rows, .upper = a->upper });
    linalg_put(&c, a->m[1], x, a->upper ? PART_UPPER : PART_LOWER), linalg_put_as(&c, LINALG_INTS, a->m[2], info, 1);
    return linalg_end(&c);
}
static int triangular(UNUSED lc_op_id op, lc_dtype dtype, const void *args) /* A, B, X; X A = B is A^T X^T = B^T */
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    bool                  left = a->left;
    dense                 x = linalg_fetch(&c, left ? a->m[0] : linalg_flipped(a->m[0]), false),
          b = linalg_fetch(&c, left ? a->m[1] : linalg_flipped(a->m[1]), false);
    linalg_trsm(&c, a->upper == left, 0, a->unit, x.rows, x, b);
    linalg_put(&c, left ? a->m[2] : linalg_flipped(a->m[2]), b, PART_ALL);
    return linalg_end(&c);
}

/* ---- LDL ---- */
static int ldl(UNUSED lc_op_id op, lc_dtype dtype, const void *args) /* A, LD, pivots, info */
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    int64_t               n = a->m[0].rows;
    dense                 x = linalg_fetch(&c, a->m[0], false), work = linalg_blank(&c, n, 2);
    void                 *piv = linalg_memory(&c, n, 4), *info = linalg_memory(&c, 1, 4);
    linalg_run(&c, "sytrf", n,
               &(linalg_args){ x.data, .piv = piv, .info = info, .work = work.data, .n = n, .hermitian = a->hermitian });
    linalg_put(&c, a->m[1], x, PART_LOWER), linalg_put_as(&c, LINALG_INTS, a->m[2], piv, n);
    linalg_put_as(&c, LINALG_INTS, a->m[3], info, 1);
    return linalg_end(&c);
}
static int ldl_solve(UNUSED lc_op_id op, lc_dtype dtype, const void *args) /* LD, pivots, B, X */
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    int64_t               n = a->m[0].rows;
    dense                 x = linalg_fetch(&c, a->m[0], false), b = linalg_fetch(&c, a->m[2], false);
    void                 *piv = linalg_memory(&c, n, 4);
    linalg_move(&c, LINALG_INTS, linalg_view(&c, (dense){ piv, n, 1 }), a->m[1], n, 1, PART_ALL, false);
    linalg_run(&c, "sytrs", n, &(linalg_args){ x.data, b.data, .piv = piv, .n = n, .cols = b.cols, .hermitian = a->hermitian });
    linalg_put(&c, a->m[3], b, PART_ALL);
    return linalg_end(&c);
}

/* ---- QR ---- */
void linalg_geqrf(linalg_call *c, dense a, void *tau)
{
    if (solver_takes(c, a.rows < a.cols ? a.rows : a.cols)) return solver_geqrf(c, a, tau);
    linalg_run(c, "geqrf", a.rows, &(linalg_args){ a.data, .tau = tau, .m = a.rows, .n = a.cols });
}
void linalg_orgqr(linalg_call *c, dense a, int64_t k, void *tau)
{
    linalg_run(c, "orgqr", a.rows, &(linalg_args){ a.data, .tau = tau, .m = a.rows, .n = a.cols, .k = k });
}
void linalg_ormqr(linalg_call *c, dense a, void *tau, int64_t k, dense b, bool left, bool adjoint)
{
    linalg_run(c, "ormqr", b.rows,
               &(linalg_args){ a.data, b.data, tau, .m = b.rows, .k = k, .cols = b.cols, .lda = a.rows,
                               .a_size = a.rows * a.cols, .left = left, .trans = adjoint });
}
static int geqrf(UNUSED lc_op_id op, lc_dtype dtype, const void *args) /* A, a, tau */
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    dense                 x = linalg_fetch(&c, a->m[0], false), tau = linalg_blank(&c, x.rows < x.cols ? x.rows : x.cols, 1);
    linalg_geqrf(&c, x, tau.data);
    linalg_put(&c, a->m[1], x, PART_ALL), linalg_put(&c, a->m[2], tau, PART_ALL);
    return linalg_end(&c);
}
static int qr(UNUSED lc_op_id op, lc_dtype dtype, const void *args) /* A, Q, R */
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    dense                 x = linalg_fetch(&c, a->m[0], false);
    int64_t               few = x.rows < x.cols ? x.rows : x.cols;
    void                 *tau = linalg_memory(&c, few, lc_size_of(dtype));
    linalg_geqrf(&c, x, tau);
    linalg_put(&c, a->m[2], x, PART_UPPER);
    if (a->vectors && x.rows) {
        dense q = linalg_blank(&c, x.rows, a->m[1].cols);
        linalg_move(&c, dtype, linalg_view(&c, q), linalg_view(&c, x), x.rows, few, PART_ALL, false);
        linalg_orgqr(&c, q, few, tau);
        linalg_put(&c, a->m[1], q, PART_ALL);
    }
    return linalg_end(&c);
}
static int householder(UNUSED lc_op_id op, lc_dtype dtype, const void *args) /* A, tau, Q */
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    dense                 q = linalg_fetch(&c, a->m[0], false), tau = linalg_fetch(&c, a->m[1], false);
    linalg_orgqr(&c, q, tau.rows, tau.data);
    linalg_put(&c, a->m[2], q, PART_ALL);
    return linalg_end(&c);
}
static int ormqr(UNUSED lc_op_id op, lc_dtype dtype, const void *args) /* A, tau, C, out */
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    dense q = linalg_fetch(&c, a->m[0], false), tau = linalg_fetch(&c, a->m[1], false), x = linalg_fetch(&c, a->m[2], false);
    linalg_ormqr(&c, q, tau.data, tau.rows, x, a->left, a->adjoint);
    linalg_put(&c, a->m[3], x, PART_ALL);
    return linalg_end(&c);
}

/* ---- least squares by QR: A, B, X, residuals, rank, singular values, info ---- */
static int lstsq(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    int64_t               m = a->m[0].rows, n = a->m[0].cols, k = a->m[1].cols, few = m < n ? m : n, most = m > n ? m : n;
    bool                  tall = m >= n; /* else A^H is factorised: A = R^H Q^H */
    dense                 x = linalg_fetch(&c, tall ? a->m[0] : linalg_flipped(a->m[0]), !tall), b = linalg_blank(&c, most, k);
    void *tau = linalg_memory(&c, few, lc_size_of(dtype)), *info = linalg_memory(&c, 1, 4), *rest = linalg_memory(&c, k, 8);
    if (c.rc == 0) c.rc = cuda_zero_bytes(b.data, (size_t)(c.batch * most * k * lc_size_of(dtype)));
    linalg_move(&c, dtype, linalg_view(&c, b), a->m[1], m, k, PART_ALL, false);
    linalg_geqrf(&c, x, tau);
    each_matrix(&c, "zero_pivot", c.batch,
                &(linalg_args){ x.data, .info = info, .m = x.rows, .n = x.cols, .k = few, .cols = c.batch });
    if (tall) linalg_ormqr(&c, x, tau, few, b, true, true);
    linalg_trsm(&c, true, tall ? 0 : 2, false, few, x, b);
    if (!tall) linalg_ormqr(&c, x, tau, few, b, true, false);
    linalg_put(&c, a->m[2], b, PART_ALL);
    each_matrix(&c, "residuals", c.batch * k,
                &(linalg_args){ .b = b.data, .w = rest, .m = m, .n = n, .k = c.batch, .cols = k });
    if (tall) linalg_put_as(&c, c.real, a->m[3], rest, k);
    linalg_put_as(&c, LINALG_INTS, a->m[6], info, 1);
    return linalg_end(&c);
}

enum { MATRICES = CUDA_F32_F64 | 1u << LC_c64 | 1u << LC_c128 };
CUDA_RUN(_linalg_lu, lu, MATRICES)
CUDA_RUN(_linalg_solve, solve, MATRICES)
CUDA_RUN(_linalg_lu_solve, lu_solve, MATRICES)
CUDA_RUN(_linalg_inv, inv, MATRICES)
CUDA_RUN(_linalg_det, det, MATRICES)
CUDA_RUN(_linalg_slogdet, det, MATRICES)
CUDA_RUN(_linalg_cholesky, cholesky, MATRICES)
CUDA_RUN(_linalg_solve_triangular, triangular, MATRICES)
CUDA_RUN(_linalg_ldl_factor, ldl, MATRICES)
CUDA_RUN(_linalg_ldl_solve, ldl_solve, MATRICES)
CUDA_RUN(geqrf, geqrf, MATRICES)
CUDA_RUN(linalg_qr, qr, MATRICES)
CUDA_RUN(_householder_product, householder, MATRICES)
CUDA_RUN(_ormqr, ormqr, MATRICES)
CUDA_RUN(_linalg_lstsq, lstsq, MATRICES)

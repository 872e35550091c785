/* Eigenvalues and singular values: Jacobi's rotations for many small matrices, cuSOLVER for large ones (solver.c); without it rotations for all.
 * General eigenvalues by QR steps of our own where cuSOLVER lacks them. */
#include "linalg.h"

typedef struct {
    void   *a, *b, *w, *info;
    int64_t m, n, batch;
} spectra_args;
CUDA_BODY(spectra);
static void run(linalg_call *c, lc_dtype dtype, const char *kernel, int64_t size, spectra_args p)
{
    cuda_program q = { &spectra_body, kernel, .type = { CUDA_TYPE(dtype) }, .variant = lc_is_complex(dtype) };
    p.batch = c->batch;
    if (c->rc == 0)
        c->rc = size ? cuda_blocks(&q, c->batch, size <= 32 ? 32 : size <= 128 ? 128 : 256, &p) : cuda_map(&q, c->batch, &p);
}

static int eigh(UNUSED lc_op_id op, lc_dtype dtype, const void *args) /* A, values, vectors, info */
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    int64_t               n = a->m[0].rows;
    dense x = linalg_fetch(&c, a->upper ? linalg_flipped(a->m[0]) : a->m[0], a->upper); /* the lower triangle counts */
    void *w = linalg_memory(&c, n, lc_size_of(c.real)), *info = linalg_memory(&c, 1, 4);
    if (solver_takes(&c, n)) solver_eigh(&c, x, w, a->m[2].data, info);
    else run(&c, dtype, "eigh", n, (spectra_args){ x.data, linalg_memory(&c, n * n, lc_size_of(dtype)), w, info, n, n, 0 });
    linalg_put_as(&c, c.real, a->m[1], w, n), linalg_put(&c, a->m[2], x, PART_ALL),
        linalg_put_as(&c, LINALG_INTS, a->m[3], info, 1);
    return linalg_end(&c);
}

/* A tall matrix (m, n): U (m, n, or whole m), singular values, V^H. A wide one is worked on as its adjoint, whose factors change places. */
static void own_svd(linalg_call *c, dense x, dense u, void *s, dense vh, void *info)
{
    dense v = linalg_blank(c, x.cols, x.cols);
    run(c, c->dtype, "svd", x.rows, (spectra_args){ x.data, v.data, s, info, x.rows, x.cols, 0 });
    if (!u.data) return;
    linalg_move(c, c->dtype, linalg_view(c, vh), linalg_flipped(linalg_view(c, v)), x.cols, x.cols, PART_ALL, true);
    if (u.cols > x.cols) { /* reflections of the columns give an orthonormal basis; its sign is free */
        dense basis = linalg_blank(c, x.rows, x.cols);
        void *tau = linalg_memory(c, x.cols, lc_size_of(c->dtype));
        linalg_put(c, linalg_view(c, basis), x, PART_ALL);
        linalg_geqrf(c, basis, tau);
        linalg_put(c, linalg_view(c, u), basis, PART_ALL);
        linalg_orgqr(c, u, x.cols, tau);
    }
    linalg_put(c, linalg_view(c, u), x, PART_ALL);
}
static int svd(UNUSED lc_op_id op, lc_dtype dtype, const void *args) /* A, U, S, Vh, info */
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    bool                  wide = a->m[0].rows < a->m[0].cols;
    dense                 x = linalg_fetch(&c, wide ? linalg_flipped(a->m[0]) : a->m[0], wide), u = { 0 }, vh = { 0 };
    int64_t               few = x.cols;
    void                 *s = linalg_memory(&c, few, lc_size_of(c.real)), *info = linalg_memory(&c, 1, 4);
    if (a->vectors) u = linalg_blank(&c, x.rows, a->full ? x.rows : few), vh = linalg_blank(&c, few, few);
    if (solver_takes(&c, few)) solver_svd(&c, x, u, s, vh, a->vectors, info);
    else own_svd(&c, x, u, s, vh, info);
    linalg_put_as(&c, c.real, a->m[2], s, few), linalg_put_as(&c, LINALG_INTS, a->m[4], info, 1);
    if (a->vectors && wide) {
        lc_matrices left = linalg_flipped(linalg_view(&c, vh)), right = linalg_flipped(linalg_view(&c, u));
        linalg_move(&c, dtype, a->m[1], left, left.rows, left.cols, PART_ALL, true);
        linalg_move(&c, dtype, a->m[3], right, right.rows, right.cols, PART_ALL, true);
    } else if (a->vectors) linalg_put(&c, a->m[1], u, PART_ALL), linalg_put(&c, a->m[3], vh, PART_ALL);
    return linalg_end(&c);
}

static int eig(UNUSED lc_op_id op, lc_dtype dtype,
               const void *args) /* A, values, vectors, info; both complex, and A is worked on as such */
{
    const lc_linalg_args *a = args;
    linalg_call           c = linalg_start(dtype, a);
    int64_t               n = a->m[0].rows;
    lc_dtype              number = lc_is_complex(dtype) ? dtype : dtype == LC_f64 ? LC_c128 : LC_c64;
    dense                 given = linalg_fetch(&c, a->m[0], false);
    c.dtype = number;
    dense x = lc_is_complex(dtype) ? given : linalg_blank(&c, n, n), v = linalg_blank(&c, n, n);
    if (c.rc == 0 && x.data != given.data) {
        int64_t   all = c.batch * n * n;
        lc_tensor from = {
            .dtype = (uint8_t)dtype, .device = { LC_CUDA, (int8_t)c.device }, .ndim = 1, .numel = all, .data = given.data
        };
        lc_tensor to = from;
        from.shape = to.shape = &all, from.stride = to.stride = &(int64_t){ 1 };
        to.dtype = (uint8_t)number, to.data = x.data;
        c.rc = cuda_copy(&to, &from);
    }
    void *w = linalg_memory(&c, n, lc_size_of(number)), *info = linalg_memory(&c, 1, 4);
    bool  solved = solver_takes(&c, n) && solver_eig(&c, x, w, v, a->vectors, info);
    if (!solved) run(&c, number, "eig", 0, (spectra_args){ x.data, v.data, w, info, a->vectors, n, 0 });
    linalg_put_as(&c, number, a->m[1], w, n), linalg_put_as(&c, LINALG_INTS, a->m[3], info, 1);
    if (a->vectors) linalg_put(&c, a->m[2], solved ? v : x, PART_ALL);
    return linalg_end(&c);
}
enum { MATRICES = CUDA_F32_F64 | 1u << LC_c64 | 1u << LC_c128 };
CUDA_RUN(_linalg_eigh, eigh, MATRICES)
CUDA_RUN(_linalg_svd, svd, MATRICES)
CUDA_RUN(_linalg_eig, eig, MATRICES)

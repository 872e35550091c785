/* Kernels of LU, Cholesky, QR, LDL and triangular systems: small matrices by our own kernels (own.h), the rest by LAPACK where there is one. */
#include "lanes.h"
#include <complex.h>
#include <math.h>
#ifndef __clang__
#pragma GCC optimize("cx-fortran-rules")
#endif

#define TEMPLATE "factor.inc.c"
#include "types.h"

enum { DTYPES = 1u << LC_f32 | 1u << LC_f64 | 1u << LC_c64 | 1u << LC_c128, OWN_ROWS = 24, OWN_QR = 128 };

typedef struct {
    void (*one[4])(const linalg_job *, int64_t, char *);
    int (*lwork[4])(const lc_linalg_args *, lapack_routine);
} by_type;
#define EACH(f)                                                                                                                \
    {                                                                                                                          \
        f##_s, f##_d, f##_c, f##_z                                                                                             \
    }

/* own_rows: the largest matrix for which our own kernel is the faster one; 0: there is none.
 * in_lanes: where lc_lanes has kernels for many matrices at a time; 0: nowhere.
 * The workspace of every operand and twice the largest is enough for all of them; LAPACK's own comes on top. */
static int run(lc_dtype dtype, const lc_linalg_args *a, const by_type *f, double cost, int own_rows, size_t in_lanes,
               int routines, const lapack_routine *asks)
{
    int        type = dtype == LC_f32 ? 0 : dtype == LC_f64 ? 1 : dtype == LC_c64 ? 2 : 3;
    int64_t    size = lc_size_of(dtype), n = a->m[0].rows > a->m[0].cols ? a->m[0].rows : a->m[0].cols;
    linalg_job j = { .a = a, .own = &owns_of_this_cpu()->of[type], .one = f->one[type] };
    char      *count = NULL;
    if (!a->batch) return 0;
    j.lapack = (n > own_rows || !own_rows) && lapack_open();
    const lc_lanes *lanes = in_lanes && !j.lapack ? lanes_for(a, dtype, LANES_ROWS) : NULL;
    if (lanes) {
        j.group = ((const lc_lane_kernel *)((const char *)lanes + in_lanes))[type];
        j.width = lanes->width[type], j.may_refuse = in_lanes == offsetof(lc_lanes, qr);
    }
    if (!j.lapack && !own_rows) return lapack_missing(a->name);
    for (int k = 0; k < routines && j.lapack; k++) {
        int want = f->lwork[type](a, asks[k]);
        j.lwork = want > j.lwork ? want : j.lwork;
    }
    for (int k = 0; k < LC_LINALG_OPERANDS; k++) piece(&count, a->m[k].rows * a->m[k].cols, (size_t)size);
    piece(&count, n * n, (size_t)size), piece(&count, a->m[0].rows * a->m[0].cols, (size_t)size), piece(&count, n, 16),
        piece(&count, j.lwork, (size_t)size);
    j.workspace = (size_t)count;
    return linalg_walk(&j, cost);
}
#define LANES(kernel, condition) ((condition) ? offsetof(lc_lanes, kernel) : 0)
#define KERNEL(op, function, flops, own_rows, in_lanes, ...)                                                                   \
    static int cpu_##function(lc_dtype dtype, const void *args)                                                                \
    {                                                                                                                          \
        static const by_type        f = { EACH(function##_one), EACH(lwork) };                                                 \
        static const lapack_routine asks[] = { __VA_ARGS__ };                                                                  \
        const lc_linalg_args       *a = args;                                                                                  \
        double                      m = (double)a->m[0].rows, n = (double)a->m[0].cols, k = (double)a->m[1].cols;              \
        (void)m, (void)n, (void)k;                                                                                             \
        return run(dtype, a, &f, flops, own_rows, in_lanes, (int)(sizeof asks / sizeof *asks) - 1, asks);                      \
    }                                                                                                                          \
    LC_CPU_RUN(op, cpu_##function, DTYPES)
/* Reflections are applied to four real columns at a time (own.inc.c), which beats LAPACK's blocks up to this size. */
static int own_qr(lc_dtype dtype) { return dtype == LC_f32 || dtype == LC_f64 ? OWN_QR : OWN_ROWS; }
KERNEL(_linalg_lu, lu, m *n *n, OWN_ROWS, LANES(lu, a->pivot), 0)
KERNEL(_linalg_solve, solve, n *n *(n + 2 * k), OWN_ROWS, LANES(solve, a->left &&k <= LANES_ROWS), 0)
KERNEL(_linalg_lu_solve, lu_solve, 2 * n * n * (double)(a->left ? a->m[2].cols : a->m[2].rows), OWN_ROWS, 0, 0)
KERNEL(_linalg_inv, inv, 2 * n * n * n, OWN_ROWS, LANES(inv, true), LAPACK_getri, 0)
KERNEL(_linalg_det, det, n *n *n, OWN_ROWS, LANES(det, true), 0)
KERNEL(_linalg_cholesky, cholesky, n *n *n / 3, OWN_ROWS, LANES(cholesky, true), 0)
KERNEL(_linalg_solve_triangular, triangular, n *n *(k + (double)a->m[1].rows), OWN_ROWS, 0, 0)
KERNEL(geqrf, geqrf, 2 * m * n * n, own_qr(dtype), 0, LAPACK_geqrf, 0)
KERNEL(linalg_qr, qr, 4 * m * n * n, own_qr(dtype), LANES(qr, true), LAPACK_geqrf, LAPACK_orgqr, 0)
KERNEL(_householder_product, householder, 2 * m * n * n, own_qr(dtype), 0, LAPACK_orgqr, 0)
KERNEL(_ormqr, ormqr, 2 * m * n * (k + (double)a->m[2].cols), OWN_ROWS, 0, LAPACK_ormqr, 0)
KERNEL(_linalg_ldl_factor, ldl, n *n *n / 3, 0, 0, LAPACK_sytrf, 0)
KERNEL(_linalg_ldl_solve, ldl_solve, 2 * n * n * (double)a->m[2].cols, 0, 0, 0)
static int cpu_slogdet(lc_dtype dtype, const void *args) { return cpu_det(dtype, args); }
LC_CPU_RUN(_linalg_slogdet, cpu_slogdet, DTYPES)

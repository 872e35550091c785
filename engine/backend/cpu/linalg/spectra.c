/* Kernels of eigenvalues, singular values and least squares: LAPACK's divide and conquer, or our own QL steps and Jacobi rotations for small
 * matrices and for machines without a library (own.h). General eigenvalues need the library. */
#include "lanes.h"
#include <complex.h>
#include <math.h>
#ifndef __clang__
#pragma GCC optimize("cx-fortran-rules")
#endif

#define TEMPLATE "spectra.inc.c"
#include "types.h"

enum {
    DTYPES = 1u << LC_f32 | 1u << LC_f64 | 1u << LC_c64 | 1u << LC_c128,
    JACOBI_ROWS = 3,
    QL_ROWS = 96,
    QL_VALUES = 32,
    COLUMNS_F32 = 32,
    COLUMNS_F64 = 16
};
#define RUN(op)                                                                                                                \
    static int run_##op(lc_dtype dtype, linalg_job *j)                                                                         \
    {                                                                                                                          \
        int (*const run[])(linalg_job *) = { run_##op##_s, run_##op##_d, run_##op##_c, run_##op##_z };                         \
        int type = dtype == LC_f32 ? 0 : dtype == LC_f64 ? 1 : dtype == LC_c64 ? 2 : 3;                                        \
        j->own = &owns_of_this_cpu()->of[type];                                                                                \
        return run[type](j);                                                                                                   \
    }
RUN(eigh)
RUN(eig)
RUN(svd)
RUN(lstsq)

static linalg_job job_of(const lc_linalg_args *a)
{
    return (linalg_job){ .a = a, .m = a->m[0].rows, .n = a->m[0].cols, .k = a->m[1].cols };
}
static void use_lanes(linalg_job *j, const lc_lanes *lanes, const lc_lane_kernel *kernels, lc_dtype dtype)
{
    int type = dtype == LC_f64;
    j->lapack = false, j->group = kernels[type], j->width = lanes->width[type], j->may_refuse = true;
}
static int cpu_eigh(lc_dtype dtype, const void *args)
{
    linalg_job      j = job_of(args);
    bool            real = dtype == LC_f32 || dtype == LC_f64;
    int64_t         largest_own = !real ? JACOBI_ROWS : j.a->m[2].data ? QL_ROWS : QL_VALUES; /* LAPACK is faster above */
    const lc_lanes *lanes = lanes_for(args, dtype, LANES_JACOBI_ROWS);
    if (lanes) use_lanes(&j, lanes, lanes->eigh, dtype);
    else j.lapack = j.n > largest_own && lapack_open();
    return run_eigh(dtype, &j);
}
static int cpu_eig(lc_dtype dtype, const void *args)
{
    linalg_job j = job_of(args);
    if (!j.n || !j.a->batch) return 0;
    if (!(j.lapack = lapack_open())) return lapack_missing(j.a->name);
    return run_eig(dtype, &j);
}
/* Whether our own singular values are faster than LAPACK's: where all pairs of columns are rotated at once (columns.inc.c). */
static bool own_svd_is_faster(const linalg_job *j, lc_dtype dtype)
{
    int64_t few = j->m < j->n ? j->m : j->n, most = j->m < j->n ? j->n : j->m, limit = JACOBI_ROWS;
    if (lanes_of_this_cpu()->width[0] && (dtype == LC_f32 || dtype == LC_f64))
        limit = dtype == LC_f32 ? COLUMNS_F32 : COLUMNS_F64;
    return most <= JACOBI_ROWS || (few <= limit && most <= 2 * few);
}
static int cpu_svd(lc_dtype dtype, const void *args)
{
    linalg_job      j = job_of(args);
    const lc_lanes *lanes = j.m == j.n ? lanes_for(args, dtype, LANES_JACOBI_ROWS) : NULL;
    if (lanes) use_lanes(&j, lanes, lanes->svd, dtype);
    else j.lapack = !own_svd_is_faster(&j, dtype) && lapack_open();
    return run_svd(dtype, &j);
}
static int cpu_lstsq(lc_dtype dtype, const void *args)
{
    linalg_job j = job_of(args);
    j.lapack = lapack_open();
    if (!j.lapack && j.a->driver == LC_GELSY) return lapack_missing("linalg.lstsq with driver='gelsy'");
    return run_lstsq(dtype, &j);
}
LC_CPU_RUN(_linalg_eigh, cpu_eigh, DTYPES)
LC_CPU_RUN(_linalg_eig, cpu_eig, DTYPES)
LC_CPU_RUN(_linalg_svd, cpu_svd, DTYPES)
LC_CPU_RUN(_linalg_lstsq, cpu_lstsq, DTYPES)

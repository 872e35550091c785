/* Compiled once per instruction set: our own factorisations (own.h), unblocked and column-oriented, so that the inner loops run over neighbours.
 *
 * LU, Cholesky and QR take the operations in LAPACK's order, so results differ from its unblocked routines by rounding alone. Eigenvalues of real
 * matrices come from QL steps on a tridiagonal matrix; of complex and tiny ones, and singular values, from Jacobi's rotations: slower than reduction to a band by a factor that grows with the size, but short, relatively
 * exact, and the fastest there is for a handful of rows. Rejected: blocking (LAPACK is there for large matrices). */
#include "lanes.h"
#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>
#ifndef __clang__
#pragma GCC optimize("cx-fortran-rules") /* complex products without tests for infinities: those give NaN either way */
#endif

#define COLUMNS_OF(isa)     COLUMNS_OF_(isa)
#define COLUMNS_OF_(isa)    lc_cpu_lanes_##isa.columns
#define COLUMNS_OF_THIS_SET COLUMNS_OF(LC_ISA)
enum { QL_ROWS = 5 }; /* from here on QL steps beat Jacobi's sweeps */
#define IS_COMPLEX 0
#define ROOT(x)    (sizeof(T) == 4 ? (T)sqrtf((float)(x)) : (T)sqrt((double)(x)))
#define T          float
#define R          float
#define EPSILON    FLT_EPSILON
#define TINY       FLT_MIN
#define NAME(f)    f##_s
#include "own.inc.c"
#define T       double
#define R       double
#define EPSILON DBL_EPSILON
#define TINY    DBL_MIN
#define NAME(f) f##_d
#include "own.inc.c"
#undef IS_COMPLEX
#define IS_COMPLEX 1
#define T          float complex
#define R          float
#define EPSILON    FLT_EPSILON
#define TINY       FLT_MIN
#define NAME(f)    f##_c
#include "own.inc.c"
#define T       double complex
#define R       double
#define EPSILON DBL_EPSILON
#define TINY    DBL_MIN
#define NAME(f) f##_z
#include "own.inc.c"

#define TABLE_OF(isa) lc_cpu_owns_##isa
#define TABLE(isa)    TABLE_OF(isa)
#define KERNELS(t)                                                                                                             \
    {                                                                                                                          \
        getrf_##t, potrf_##t, trsm_##t, geqrf_##t, orgqr_##t, ormqr_##t, eigh_##t, svd_##t                                     \
    }
const lc_owns TABLE(LC_ISA) = { { KERNELS(s), KERNELS(d), KERNELS(c), KERNELS(z) } };

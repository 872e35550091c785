/* Singular values and vectors of small matrices, by rotations of pairs of columns until all are orthogonal (Jacobi, one-sided): the lengths of
 * the columns are the singular values then, relatively exact. Everything is computed in complex128. Its time grows with the cube of the size and
 * every pass is a dot product and a rotation of two columns: meant for the nuclear norm, not for large matrices. A wide matrix is worked
 * on as its adjoint. Memory: one matrix and its vectors per thread. */
#include "../cpu.h"
#include "../../args.h"
#include <complex.h>
#include <math.h>
#include <string.h>

typedef double complex number;
typedef struct {
    const lc_svd_args *a;
    int64_t            m, n; /* rows, columns, of what is worked on: m >= n */
    bool               adjoint;
    atomic_int         failed;
} svd_job;

static double squared(const number *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += creal(x[i]) * creal(x[i]) + cimag(x[i]) * cimag(x[i]);
    return sum;
}
/* x, y := c x - s y', s x + c y', where y' = y times a number of size one. */
static void rotate(number *x, number *y, int64_t n, double c, double s, number turn)
{
    for (int64_t i = 0; i < n; i++) {
        number p = x[i], q = y[i] * turn;
        x[i] = c * p - s * q, y[i] = s * p + c * q;
    }
}
/* w: n columns of m; v: n of n, the identity to begin with. Afterwards the old w is (the new w) times the adjoint of v. */
static void orthogonalise(number *w, number *v, int64_t m, int64_t n)
{
    enum { MOST_SWEEPS = 60 };
    bool turned = true;
    for (int sweep = 0; turned && sweep < MOST_SWEEPS; sweep++) {
        turned = false;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                number *x = w + p * m, *y = w + q * m, dot = 0;
                double  alpha = squared(x, m), beta = squared(y, m);
                for (int64_t i = 0; i < m; i++) dot += conj(x[i]) * y[i];
                double size = cabs(dot);
                if (!(size > 1e-15 * sqrt(alpha) * sqrt(beta)) || size == 0) continue;
                double zeta = (beta - alpha) / (2 * size), t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
                double c = 1 / sqrt(1 + t * t);
                rotate(x, y, m, c, c * t, conj(dot) / size);
                rotate(v + p * n, v + q * n, n, c, c * t, conj(dot) / size);
                turned = true;
            }
    }
}
static number element(const lc_tensor *t, int64_t at)
{
    number x;
    cpu_move(LC_c128, (char *)&x, 16, (lc_dtype)t->dtype, t->data + at * lc_size_of(t->dtype), 0, 1);
    return x;
}
static void set_element(lc_tensor *t, int64_t at, number x)
{
    int64_t size = lc_size_of(t->dtype);
    if (lc_is_complex(t->dtype)) cpu_move((lc_dtype)t->dtype, t->data + at * size, size, LC_c128, (char *)&x, 16, 1);
    else cpu_move((lc_dtype)t->dtype, t->data + at * size, size, LC_f64, (char *)&x, 16, 1);
}
static void one_matrix(const svd_job *j, int64_t matrix, number *w, number *v, double *length, int64_t *order)
{
    const lc_svd_args *a = j->a;
    int64_t            m = j->m, n = j->n, rows = j->adjoint ? n : m, columns = j->adjoint ? m : n;
    for (int64_t i = 0; i < m; i++)
        for (int64_t k = 0; k < n; k++) {
            number x = element(a->in, matrix * m * n + (j->adjoint ? k * m + i : i * n + k));
            w[k * m + i] = j->adjoint ? conj(x) : x;
        }
    memset(v, 0, (size_t)(n * n) * sizeof *v);
    for (int64_t k = 0; k < n; k++) v[k * n + k] = 1;
    orthogonalise(w, v, m, n);
    for (int64_t k = 0; k < n; k++) {
        int64_t at = k;
        length[k] = sqrt(squared(w + k * m, m));
        for (; at > 0 && length[order[at - 1]] < length[k]; at--) order[at] = order[at - 1]; /* largest first */
        order[at] = k;
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t from = order[k];
        double  s = length[from], scale = s > 0 ? 1 / s : 0;
        set_element(a->s, matrix * n + k, s);
        for (int64_t i = 0; i < rows; i++) /* u (rows, n) */
            set_element(a->u, matrix * rows * n + i * n + k, j->adjoint ? v[from * n + i] : w[from * m + i] * scale);
        for (int64_t i = 0; i < columns; i++) /* vh (n, columns) */
            set_element(a->vh, matrix * n * columns + k * columns + i,
                        conj(j->adjoint ? w[from * m + i] * scale : v[from * n + i]));
    }
}
static void svd_chunk(void *ctx, int64_t begin, int64_t end)
{
    svd_job *j = ctx;
    int64_t  m = j->m, n = j->n;
    size_t   bytes = (size_t)(m * n + n * n) * sizeof(number) + (size_t)n * (sizeof(double) + sizeof(int64_t));
    number  *w = cpu_scratch(bytes), *v = w + m * n;
    double  *length = (double *)(v + n * n);
    if (!w) {
        j->failed = 1;
        return;
    }
    for (int64_t matrix = begin; matrix < end; matrix++) one_matrix(j, matrix, w, v, length, (int64_t *)(length + n));
    cpu_scratch_free(w, bytes);
}
static int cpu_svd(UNUSED lc_dtype dtype, const void *args)
{
    const lc_svd_args *a = args;
    int64_t            rows = a->in->shape[a->in->ndim - 2], columns = a->in->shape[a->in->ndim - 1];
    svd_job            j = { .a = a, .m = rows, .n = columns, .adjoint = rows < columns };
    if (j.adjoint) j.m = columns, j.n = rows;
    if (!a->in->numel) return 0;
    cpu_parallel(a->in->numel / (rows * columns), 1, 64 * a->in->numel * j.n, svd_chunk, &j);
    return j.failed
               ? lc_fail_int(LC_OutOfMemory, "svd: no memory for a matrix of %lld by %lld", (long long)rows, (long long)columns)
               : 0;
}
LC_CPU_RUN(_svd, cpu_svd, 1u << LC_f32 | 1u << LC_f64 | 1u << LC_c64 | 1u << LC_c128)

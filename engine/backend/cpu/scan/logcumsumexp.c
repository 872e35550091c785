/* logcumsumexp: out[i] = log(exp(in[0]) + ... + exp(in[i])) along a line, computed in double.
 *
 * Real lines go by blocks: if everything in a block lies within a moderate range, exponentials and logarithms are one vector
 * loop each, relative to the maximum, with a running sum between them. Otherwise, and for complex numbers, elements are
 * added to the logarithm one at a time, by PyTorch's rules for infinities and NaNs. */
#include "../cpu.h"
#include "../../args.h"
#include <complex.h>
#include <math.h>
#ifndef CMPLX /* clang with an older C library */
#define CMPLX(re, im) ((double _Complex){ re, im })
#endif

enum { BLOCK = 256 };
static const double RANGE = 50; /* the logarithm of a running sum loses at most this times the rounding of a double */

static double log_add(double x, double total)
{
    double low = isnan(total) || total < x ? total : x, high = isnan(total) || total > x ? total : x;
    if (isnan(x)) return x;
    return low != high || isfinite(low) ? log1p(exp(low - high)) + high : x;
}
static double add_block(double *x, int64_t n, double total) /* in place; returns the last logarithm */
{
    double  first = total > x[0] ? total : x[0], high = first, last = 0;
    int64_t odd = !(first - first == 0);
    for (int64_t i = 0; i < n; i++) high = x[i] > high ? x[i] : high, odd |= x[i] != x[i];
    if (odd || !(high - first <= RANGE)) {
        for (int64_t i = 0; i < n; i++) x[i] = total = log_add(x[i], total);
        return total;
    }
    last = exp(total - high);
    for (int64_t i = 0; i < n; i++) x[i] -= high;
    lc_cpu_loops[LC_OP_exp][LC_f64](x, (const void *[]){ x }, 0, n);
    for (int64_t i = 0; i < n; i++) x[i] = last += x[i];
    lc_cpu_loops[LC_OP_log][LC_f64](x, (const void *[]){ x }, 0, n);
    for (int64_t i = 0; i < n; i++) x[i] += high;
    return x[n - 1];
}

static double _Complex log_add_complex(double _Complex x, double _Complex total)
{
    double _Complex low = creal(x) < creal(total) ? x : total, high = creal(x) >= creal(total) ? x : total;
    if (isnan(creal(x)) || isnan(cimag(x)) || isnan(creal(total)) || isnan(cimag(total))) return CMPLX(NAN, NAN);
    if (!isfinite(creal(high)) && creal(low) == creal(high)) return creal(high) < 0 ? low : clog(cexp(low) + cexp(high));
    double size = exp(creal(low) - creal(high)), angle = cimag(low) - cimag(high);
    double _Complex z = CMPLX(size == 0 ? 0 : size * cos(angle), size == 0 ? 0 : size * sin(angle)); /* log1p(z) + high */
    double re = creal(z), im = cimag(z);
    return CMPLX(0.5 * log1p(re * (2 + re) + im * im) + creal(high), atan2(im, 1 + re) + cimag(high));
}

typedef struct {
    const lc_scan_args *a;
    lc_dtype            dtype;
    int64_t             n, inner, size;
} log_job;
static void log_lines(void *ctx, int64_t begin, int64_t end)
{
    const log_job *j = ctx;
    bool           complex_ = lc_is_complex(j->dtype);
    lc_dtype       wide = complex_ ? LC_c128 : LC_f64;
    int64_t        step = j->inner * j->size, item = lc_size_of(wide);
    _Alignas(64) double _Complex block[BLOCK];
    for (int64_t line = begin; line < end; line++) {
        int64_t first = (line / j->inner * j->n * j->inner + line % j->inner) * j->size;
        double  total = -INFINITY;
        double _Complex sum = CMPLX(-INFINITY, 0);
        for (int64_t at = 0, m; at < j->n; at += m) {
            m = j->n - at < BLOCK ? j->n - at : BLOCK;
            cpu_move(wide, (char *)block, item, j->dtype, j->a->in->data + first + at * step, step, m);
            if (!complex_) total = add_block((double *)block, m, total);
            else
                for (int64_t i = 0; i < m; i++) block[i] = sum = log_add_complex(block[i], sum);
            cpu_move(j->dtype, j->a->out->data + first + at * step, step, wide, (char *)block, item, m);
        }
    }
}
static int cpu_logcumsumexp(lc_dtype dtype, const void *args)
{
    const lc_scan_args *a = args;
    log_job             j = { .a = a, .dtype = dtype, .size = lc_size_of(dtype) };
    int64_t             outer;
    cpu_split_at(a->in, a->dim, &outer, &j.n, &j.inner);
    if (a->in->numel) cpu_parallel(outer * j.inner, CPU_GRAIN / (8 * j.n) + 1, 8 * a->in->numel, log_lines, &j);
    return 0;
}
LC_CPU_RUN(logcumsumexp, cpu_logcumsumexp, 1u << LC_f32 | 1u << LC_f64 | 1u << LC_c64 | 1u << LC_c128)

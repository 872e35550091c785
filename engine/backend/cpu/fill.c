/* Kernels that make values: ranges. They go through a buffer into outputs that are strided or narrow. */
#include "cpu.h"
#include "../args.h"
#include <complex.h>
#include <math.h>
#include <string.h>

enum { RAMP_TILE = 512 };
static int cpu_arange(lc_dtype dtype, const void *args)
{
    const lc_ramp_args *a = args;
    bool                whole = lc_class_of(dtype) == LC_INT;
    int64_t             n = a->out->numel, step = n ? a->out->stride[0] * lc_size_of(dtype) : 0;
    union {
        double  f[RAMP_TILE];
        int64_t i[RAMP_TILE];
    } tile;
    for (int64_t first = 0, m; first < n; first += m) {
        m = n - first < RAMP_TILE ? n - first : RAMP_TILE;
        for (int64_t i = 0; i < m; i++)
            if (whole) tile.i[i] = (int64_t)((uint64_t)a->start_int + (uint64_t)a->step_int * (uint64_t)(first + i));
            else tile.f[i] = a->start + a->step * (double)(first + i);
        cpu_move(dtype, a->out->data + first * step, step, whole ? LC_i64 : LC_f64, (char *)&tile, 8, m);
    }
    return 0;
}

static double rounded(lc_dtype dtype, double value)
{
    char held[16];
    cpu_move(dtype, held, 0, LC_f64, (const char *)&value, 0, 1);
    cpu_move(LC_f64, (char *)&value, 0, dtype, held, 0, 1);
    return value;
}
/* From both ends, so that the last value is end. Ends and step have the precision of the result (integers: a float64 step), as in PyTorch. */
static int even_ramp(lc_dtype dtype, const lc_ramp_args *a, bool power)
{
    int64_t n = a->out->numel, stride = n ? a->out->stride[0] * lc_size_of(dtype) : 0;
    double  start = n == 1 ? a->start : rounded(dtype, a->start), end = rounded(dtype, a->end), tile[RAMP_TILE];
    double  step = n > 1 ? (end - start) / (double)(n - 1) : 0;
    if (lc_is_floating(dtype)) step = rounded(dtype, step);
    for (int64_t first = 0, m; first < n; first += m) {
        m = n - first < RAMP_TILE ? n - first : RAMP_TILE;
        for (int64_t i = 0; i < m; i++) {
            int64_t at = first + i;
            tile[i] = at < n / 2 || n == 1 ? start + step * (double)at : end - step * (double)(n - 1 - at);
            if (power) tile[i] = pow(a->base, tile[i]);
        }
        cpu_move(dtype, a->out->data + first * stride, stride, LC_f64, (char *)tile, 8, m);
    }
    return 0;
}
static int even_complex_ramp(lc_dtype dtype, const lc_ramp_args *a, bool power)
{
    int64_t        n = a->out->numel, stride = n ? a->out->stride[0] * lc_size_of(dtype) : 0;
    double complex start = CMPLX(a->start, a->start_im), end = CMPLX(a->end, a->end_im), base = CMPLX(a->base, a->base_im),
                   step = n > 1 ? (end - start) / (double)(n - 1) : 0;
    for (int64_t at = 0; at < n; at++) {
        double complex value = at < n / 2 || n == 1 ? start + step * (double)at : end - step * (double)(n - 1 - at);
        if (power) value = cpow(base, value);
        cpu_move(dtype, a->out->data + at * stride, stride, LC_c128, (char *)&value, 16, 1);
    }
    return 0;
}
static int cpu_linspace(lc_dtype dtype, const void *args)
{
    return lc_is_complex(dtype) ? even_complex_ramp(dtype, args, false) : even_ramp(dtype, args, false);
}
static int cpu_logspace(lc_dtype dtype, const void *args)
{
    return lc_is_complex(dtype) ? even_complex_ramp(dtype, args, true) : even_ramp(dtype, args, true);
}
#define COUNTABLE (~(1u << LC_b8 | 1u << LC_c32 | 1u << LC_c64 | 1u << LC_c128))
LC_CPU_RUN(arange, cpu_arange, COUNTABLE)
LC_CPU_RUN(linspace, cpu_linspace, ~(1u << LC_b8 | 1u << LC_c32))
LC_CPU_RUN(logspace, cpu_logspace, ~(1u << LC_b8 | 1u << LC_c32))

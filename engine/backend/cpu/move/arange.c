/* Kernels that generate ranges. They write through a buffer into outputs that are strided or narrow. */
#include "../cpu.h"
#include "../../args.h"
#include <complex.h>
#include <math.h>
#include <string.h>
#ifndef CMPLX /* clang with an older C library */
#define CMPLX(re, im) ((double _Complex){ re, im })
#endif

enum { RAMP_TILE = 512 };
typedef struct {
    lc_dtype            dtype;
    const lc_ramp_args *args;
    double              start, end, step; /* of an even ramp, rounded */
    bool                power;
} ramp;

/* The index of an element as a double, without the conversion of 64-bit integers, which vector instruction sets lack. */
#define INDEX(first, i) ((double)(first) + (double)(int)(i))
static bool is_packed(const ramp *r, int64_t step) /* written in place */
{
    return (r->dtype == LC_f32 || r->dtype == LC_f64) && step == lc_size_of(r->dtype);
}
static void arange_chunk(void *ctx, int64_t begin, int64_t end)
{
    const ramp         *r = ctx;
    const lc_ramp_args *a = r->args;
    bool                whole = lc_class_of(r->dtype) == LC_INT;
    int64_t             step = a->out->stride[0] * lc_size_of(r->dtype);
    union {
        double   f[RAMP_TILE];
        uint64_t i[RAMP_TILE];
    } tile;
    for (int64_t first = begin, m; first < end; first += m) {
        uint64_t value = (uint64_t)a->start_int + (uint64_t)a->step_int * (uint64_t)first;
        m = end - first < RAMP_TILE ? end - first : RAMP_TILE;
        if (is_packed(r, step)) {
            lc_cpu_moves.ramp[r->dtype == LC_f64](a->out->data + first * step, a->start, a->step, first, 1, m);
            continue;
        }
        if (whole)
            for (int64_t i = 0; i < m; i++, value += (uint64_t)a->step_int) tile.i[i] = value;
        else
            for (int64_t i = 0; i < m; i++) tile.f[i] = a->start + a->step * INDEX(first, i);
        cpu_move(r->dtype, a->out->data + first * step, step, whole ? LC_i64 : LC_f64, (char *)&tile, 8, m);
    }
}
static int cpu_arange(lc_dtype dtype, const void *args)
{
    ramp    r = { dtype, args, 0, 0, 0, false };
    int64_t n = r.args->out->numel;
    cpu_parallel(n, CPU_GRAIN, n, arange_chunk, &r);
    return 0;
}

static double rounded(lc_dtype dtype, double value)
{
    char held[16];
    cpu_move(dtype, held, 0, LC_f64, (const char *)&value, 0, 1);
    cpu_move(LC_f64, (char *)&value, 0, dtype, held, 0, 1);
    return value;
}
/* From both ends, so that the last value is end. Ends and step have the precision of the result (integers: a float64 step),
 * as in PyTorch. */
static void even_chunk(void *ctx, int64_t begin, int64_t end)
{
    const ramp *r = ctx;
    int64_t     n = r->args->out->numel, stride = r->args->out->stride[0] * lc_size_of(r->dtype);
    int64_t     middle = n == 1 ? 1 : n / 2;
    double      tile[RAMP_TILE];
    for (int64_t first = begin, m; first < end; first += m) {
        m = end - first < RAMP_TILE ? end - first : RAMP_TILE;
        if (first < middle && first + m > middle) m = middle - first; /* a tile belongs to one half */
        if (is_packed(r, stride) && !r->power) {
            bool low = first < middle;
            lc_cpu_moves.ramp[r->dtype == LC_f64](r->args->out->data + first * stride, low ? r->start : r->end,
                                                  low ? r->step : -r->step, low ? first : n - 1 - first, low ? 1 : -1, m);
            continue;
        }
        if (first < middle)
            for (int64_t i = 0; i < m; i++) tile[i] = r->start + r->step * INDEX(first, i);
        else
            for (int64_t i = 0; i < m; i++) tile[i] = r->end - r->step * INDEX(n - 1 - first, -i);
        for (int64_t i = 0; i < m && r->power; i++) tile[i] = pow(r->args->base, tile[i]);
        cpu_move(r->dtype, r->args->out->data + first * stride, stride, LC_f64, (char *)tile, 8, m);
    }
}
static int even_ramp(lc_dtype dtype, const lc_ramp_args *a, bool power)
{
    int64_t n = a->out->numel;
    ramp    r = { dtype, a, n == 1 ? a->start : rounded(dtype, a->start), rounded(dtype, a->end), 0, power };
    if (n > 1) r.step = (r.end - r.start) / (double)(n - 1);
    if (lc_is_floating(dtype)) r.step = rounded(dtype, r.step);
    cpu_parallel(n, CPU_GRAIN, n, even_chunk, &r);
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
#define COUNTABLE (~(1u << LC_b8 | 1u << LC_c32 | 1u << LC_c64 | 1u << LC_c128 | LC_FLOAT8_BITS))
LC_CPU_RUN(arange, cpu_arange, COUNTABLE)
LC_CPU_RUN(linspace, cpu_linspace, ~(1u << LC_b8 | 1u << LC_c32 | LC_FLOAT8_BITS))
LC_CPU_RUN(logspace, cpu_logspace, ~(1u << LC_b8 | 1u << LC_c32 | LC_FLOAT8_BITS))

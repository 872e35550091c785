/* cumsum and cumprod: lines along one dimension, several neighbouring lines side by side so that one addition need not wait for the last.
 * Sums are kept as PyTorch keeps them: floats in double. */
#include "cpu.h"
#include "../args.h"
#include "../../tensor/iter.h"
#include <string.h>

enum { SCAN_LANES = 32 };
#define PLUS(a, b)  ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define T           uint8_t
#define SUM         uint64_t /* unsigned: sums wrap */
#define NAME(f)     f##_u8
#include "scan.inc.c"
#define T       int8_t
#define SUM     uint64_t
#define NAME(f) f##_i8
#include "scan.inc.c"
#define T       int16_t
#define SUM     uint64_t
#define NAME(f) f##_i16
#include "scan.inc.c"
#define T       int32_t
#define SUM     uint64_t
#define NAME(f) f##_i32
#include "scan.inc.c"
#define T       int64_t
#define SUM     uint64_t
#define NAME(f) f##_i64
#include "scan.inc.c"
#define T       float
#define SUM     double
#define NAME(f) f##_f32
#include "scan.inc.c"
#define T       double
#define SUM     double
#define NAME(f) f##_f64
#include "scan.inc.c"
#define T       _Complex float
#define SUM     _Complex double
#define NAME(f) f##_c64
#include "scan.inc.c"
#define T       _Complex double
#define SUM     _Complex double
#define NAME(f) f##_c128
#include "scan.inc.c"

typedef void (*scan_fn)(char *, const char *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
static const scan_fn sums[LC_DTYPE_COUNT] = {
#define SUMS(op, dtype) [LC_##dtype] = cumsum_##dtype,
    LC_EACH_arith(SUMS, )
};
static const scan_fn products[LC_DTYPE_COUNT] = {
#define PRODUCTS(op, dtype) [LC_##dtype] = cumprod_##dtype,
    LC_EACH_arith(PRODUCTS, )
};

typedef struct {
    lc_iter it; /* over the other dimensions: out, in */
    scan_fn scan;
    int64_t n, out_step, in_step;
} scan_walk;

static int scan_lines(void *ctx, char *const *ptr, const int64_t *stride, int64_t lines)
{
    const scan_walk *w = ctx;
    for (int64_t first = 0; first < lines; first += SCAN_LANES) {
        int64_t lanes = lines - first < SCAN_LANES ? lines - first : SCAN_LANES;
        w->scan(ptr[0] + first * stride[0], ptr[1] + first * stride[1], lanes, stride[0], stride[1], w->n, w->out_step,
                w->in_step);
    }
    return 0;
}
static void scan_chunk(void *ctx, int64_t begin, int64_t end)
{
    lc_iter_range(&((scan_walk *)ctx)->it, begin, end, scan_lines, ctx);
}

static int run_scan(const scan_fn *table, lc_dtype dtype, const lc_row_args *a)
{
    int64_t   size = lc_size_of(dtype), bytes[2][LC_MAX_DIMS], shape[LC_MAX_DIMS], lines = 1;
    int       ndim = a->in->ndim, kept = 0;
    scan_walk w = { .scan = table[dtype], .n = ndim ? a->in->shape[a->dim] : 1 };
    for (int d = 0; d < ndim; d++) {
        if (d == a->dim) {
            w.out_step = a->out->stride[d] * size, w.in_step = a->in->stride[d] * size;
            continue;
        }
        shape[kept] = a->in->shape[d], lines *= shape[kept];
        bytes[0][kept] = a->out->stride[d] * size, bytes[1][kept++] = a->in->stride[d] * size;
    }
    if (!lines || !w.n) return 0;
    lc_iter_start(&w.it, kept, shape);
    lc_iter_add_raw(&w.it, a->out->data, bytes[0]);
    lc_iter_add_raw(&w.it, a->in->data, bytes[1]);
    lc_iter_prepare(&w.it, true);
    cpu_parallel(lines, CPU_GRAIN / w.n + 1, lines * w.n, scan_chunk, &w);
    return 0;
}
static int cpu_cumsum(lc_dtype dtype, const void *args) { return run_scan(sums, dtype, args); }
static int cpu_cumprod(lc_dtype dtype, const void *args) { return run_scan(products, dtype, args); }
#define DTYPE_BIT(op, dtype) | 1u << LC_##dtype
LC_CPU_RUN(cumsum, cpu_cumsum, 0 LC_EACH_arith(DTYPE_BIT, ))
LC_CPU_RUN(cumprod, cpu_cumprod, 0 LC_EACH_arith(DTYPE_BIT, ))

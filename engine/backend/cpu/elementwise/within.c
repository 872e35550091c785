/* _within: whether all elements lie in an interval, in one pass and without a mask: what checks of parameters and samples ask. */
#include "../cpu.h"
#include "../../args.h"
#include "../../../tensor/iter.h"
#include <math.h>

enum { WITHIN_TILE = 512 };

static bool tile_within(const lc_within_args *a, const double *x, int64_t n)
{
    bool   above = a->kind & LC_ABOVE_LOW, below = a->kind & LC_BELOW_HIGH;
    double low = a->low, high = a->high;
    int    in = 1;
    for (int64_t i = 0; i < n; i++) in &= (x[i] >= low) & (x[i] <= high) & !(above & (x[i] == low)) & !(below & (x[i] == high));
    if (a->kind & LC_WHOLE)
        for (int64_t i = 0; i < n; i++) in &= x[i] - trunc(x[i]) == 0; /* NaN for infinities */
    return in;
}
static int within_row(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const lc_within_args *a = ctx;
    double                tile[WITHIN_TILE];
    for (int64_t at = 0, m; at < n; at += m) {
        m = n - at < WITHIN_TILE ? n - at : WITHIN_TILE;
        cpu_move(LC_f64, (char *)tile, sizeof(double), (lc_dtype)a->x->dtype, ptr[0] + at * stride[0], stride[0], m);
        if (!tile_within(a, tile, m)) return 1;
    }
    return 0;
}
static int cpu_within(UNUSED lc_dtype dtype, const void *args)
{
    const lc_within_args *a = args;
    lc_iter               it;
    lc_iter_start(&it, a->x->ndim, a->x->shape);
    lc_iter_add(&it, a->x);
    lc_iter_prepare(&it, true);
    *(uint8_t *)a->within->data = !a->x->numel || !lc_iter_range(&it, 0, a->x->numel, within_row, (void *)a);
    return 0;
}
LC_CPU_RUN(_within, cpu_within, ~(1u << LC_c32 | 1u << LC_c64 | 1u << LC_c128 | LC_FLOAT8_BITS))

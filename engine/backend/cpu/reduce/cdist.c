/* Distances between all pairs of rows. */
#include "../cpu.h"
#include "../../args.h"
#include <math.h>

enum { LANES = 8 }; /* separate sums that fill a vector */
#define PLUS(r, d)          ((r) + (d))
#define COUNT(r, d)         ((r) + ((d) != (d) ? (d) : (d) != 0)) /* NaN counts as NaN */
#define SQUARES(r, d)       ((r) + (d) * (d))
#define LARGER(r, d)        ((d) > (r) || (d) != (d) ? (d) : (r)) /* NaN wins */
#define LARGER_NUMBER(r, d) ((d) > (r) ? (d) : (r))               /* passes over NaN */
#define POWERS(r, d)        ((r) + POW(d, (T)p))
#define INVERSE(r)          POW(r, (T)(1 / p))
#define ITSELF(r)           (r)

#define T       float
#define NAME(f) CAT(f, f32)
#define ABS     fabsf
#define POW     powf
#define ROOT    sqrtf
#include "cdist.inc.c"
#define T       double
#define NAME(f) CAT(f, f64)
#define ABS     fabs
#define POW     pow
#define ROOT    sqrt
#include "cdist.inc.c"

typedef void (*distances)(const void *a, const void *b, void *to, int64_t n, int64_t m, double p);
typedef struct {
    const lc_distance_args *args;
    distances               fn;
    int64_t                 size, rows, columns, m; /* size of an element */
} work;

static void distance_rows(void *ctx, int64_t begin, int64_t end) /* rows of all batches in sequence */
{
    const work             *w = ctx;
    const lc_distance_args *a = w->args;
    for (int64_t r = begin; r < end; r++)
        w->fn(a->a->data + r * w->m * w->size, a->b->data + r / w->rows * w->columns * w->m * w->size,
              a->out->data + r * w->columns * w->size, w->columns, w->m, a->p);
}

/* In PyTorch, NaN is the largest distance in pdist, and is ignored in cdist. */
static distances by_kind(lc_dtype dtype, double p, bool pairs)
{
    static const distances all[2][6] = { { none_f32, one_f32, two_f32, any_f32, most_number_f32, most_f32 },
                                         { none_f64, one_f64, two_f64, any_f64, most_number_f64, most_f64 } };
    return all[dtype == LC_f64][p == 0 ? 0 : p == 1 ? 1 : p == 2 ? 2 : !isinf(p) ? 3 : pairs ? 5 : 4];
}
static int cpu_cdist(lc_dtype dtype, const void *args)
{
    const lc_distance_args *a = args;
    work    w = { a, by_kind(dtype, a->p, false), lc_size_of(dtype), a->a->shape[1], a->b->shape[1], a->a->shape[2] };
    int64_t each = w.columns * (w.m ? w.m : 1), rows = a->a->shape[0] * w.rows;
    if (rows && w.columns) cpu_parallel(rows, CPU_GRAIN / each + 1, rows * each, distance_rows, &w);
    return 0;
}
LC_CPU_RUN(_cdist, cpu_cdist, 1u << LC_f32 | 1u << LC_f64)

/* Row r to the rows after it. The last rows have little to do: pairs of rows, one from each end, are balanced. */
static void pair_rows(void *ctx, int64_t begin, int64_t end)
{
    const work             *w = ctx;
    const lc_distance_args *a = w->args;
    for (int64_t i = begin; i < end; i++)
        for (int64_t k = 0; k < 2; k++) {
            int64_t n = w->rows, r = k ? n - 1 - i : i, at = r * (2 * n - r - 1) / 2;
            if (k && r == i) continue;
            w->fn(a->a->data + r * w->m * w->size, a->a->data + (r + 1) * w->m * w->size, a->out->data + at * w->size,
                  n - r - 1, w->m, a->p);
        }
}
static int cpu_pdist(lc_dtype dtype, const void *args)
{
    const lc_distance_args *a = args;
    int64_t                 n = a->a->shape[0], m = a->a->shape[1], each = n * (m ? m : 1);
    work                    w = { a, by_kind(dtype, a->p, true), lc_size_of(dtype), n, n, m };
    if (n > 1) cpu_parallel((n + 1) / 2, CPU_GRAIN / each + 1, n * each / 2, pair_rows, &w);
    return 0;
}
LC_CPU_RUN(_pdist, cpu_pdist, 1u << LC_f32 | 1u << LC_f64)

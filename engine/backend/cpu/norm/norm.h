/* Loops of the normalisations: one set per instruction set (norm_loops.isa.o3.c is compiled for each), chosen by norm_rows.c
 * and norm_channels.c. */
#pragma once
#include "../../args.h"

/* For one element type; everything is contiguous, out may be any of the operands. "each": a weight and a bias per element,
 * NULL if absent. columns: `rows` rows of n elements, one statistic per column. */
typedef struct {
    void (*moments)(const void *x, int64_t n, double *mean, double *square); /* square: sum of (x - mean)^2 */
    double (*squares)(const void *x, int64_t n);
    void (*scale)(void *out, const void *x, int64_t n, double mean, double factor,
                  double shift); /* (x - mean) factor + shift */
    void (*scale_each)(void *out, const void *x, int64_t n, double mean, double factor, const void *weight, const void *bias);
    void (*dots)(const void *g, const void *x, int64_t n, double mean, double sum[2]); /* adds sums of g, g (x - mean) */
    void (*dots_each)(const void *g, const void *x, int64_t n, double mean, const void *weight, double sum[2]); /* weight g */
    void (*slope)(void *out, const void *g, const void *x, int64_t n, double mean,
                  const double by[4]); /* (by0 g - by2 - by1 (x - mean)) by3 */
    void (*slope_each)(void *out, const void *g, const void *x, int64_t n, double mean, const void *weight, const double by[4]);
    void (*sums_each)(const void *g, const void *x, int64_t n, double mean, double factor, void *dweight,
                      void *dbias);                                                           /* adds: g (x - mean) factor, g */
    void (*column_moments)(const void *x, int64_t rows, int64_t n, void *mean, void *square); /* mean: minus the first row */
    void (*column_scale)(void *out, const void *x, int64_t rows, int64_t n, const void *mean, const void *factor,
                         const void *shift, bool stream); /* stream: bypass the cache */
    void (*column_dots)(const void *g, const void *x, int64_t rows, int64_t n, const void *mean, void *sum, void *product);
    void (*column_slope)(void *out, const void *g, const void *x, int64_t rows, int64_t n, const void *mean,
                         const void *const by[3], bool stream);
    /* to (2, n): means and squares of `count` rows; merged with those of `more` rows after them. shift: added to means, or
     * NULL */
    void (*column_merge)(double *to, const void *mean, const void *square, const void *shift, int64_t n, double count,
                         double more);
    void (*column_add)(double *to, const void *sum, const void *product, int64_t n);
} lc_norm_loops;
typedef struct {
    lc_norm_loops f32, f64;
} lc_norms;
const lc_norm_loops *norm_loops_of(lc_dtype work); /* of this CPU */

enum { NORM_TILE = 4096 }; /* elements processed at a time: with their parameters they stay in L1 */

/* Mean and sum of squared differences so far, in tiles: Chan's form of Welford's recurrence. */
typedef struct {
    double count, mean, square;
} norm_moments;
static inline void norm_merge(norm_moments *to, double count, double mean, double square)
{
    double all = to->count + count, apart = mean - to->mean;
    if (to->count == 0) {
        *to = (norm_moments){ count, mean, square };
        return;
    }
    to->square += square + apart * apart * (to->count * count / all);
    to->mean += apart * (count / all);
    to->count = all;
}

/* n elements in the working dtype: in place, or converted into buffer. */
const void *norm_read(const lc_tensor *t, int64_t at, int64_t n, lc_dtype work, void *buffer);
/* Where to write n elements: into t, or into buffer, from which norm_written moves them. */
void *norm_place(const lc_tensor *t, int64_t at, lc_dtype work, void *buffer);
void  norm_written(const lc_tensor *t, int64_t at, int64_t n, lc_dtype work, const void *buffer);
int   norm_no_memory(void);
struct cpu_epilogue;
int cpu_norm_groups_last(lc_dtype dtype, const lc_norm_args *a, const struct cpu_epilogue *finish); /* finish: or NULL */

/* Element i of a tensor of statistics or parameters, which are of the working dtype. */
static inline double norm_at(const lc_tensor *t, int64_t i, double other)
{
    return !t ? other : t->dtype == LC_f32 ? (double)((const float *)t->data)[i] : ((const double *)t->data)[i];
}
static inline void norm_set(lc_tensor *t, int64_t i, double value)
{
    if (!t) return;
    if (t->dtype == LC_f32) ((float *)t->data)[i] = (float)value;
    else ((double *)t->data)[i] = value;
}

/* Batches of small real matrices, several at a time: one lane of the vectors per matrix (lanes.isa.o3.c). */
#pragma once
#include "matrices.h"

enum { LANES_ROWS = 16, LANES_JACOBI_ROWS = 8 }; /* the largest sizes taken */
/* Matrices first .. first + count of the batch, count at most width. work: LANES_WORK elements per lane. */
typedef void (*lc_lane_kernel)(const lc_linalg_args *a, int64_t first, int64_t count, void *work);
enum { LANES_WORK = 4 * LANES_ROWS * LANES_ROWS };
typedef struct {
    int            width[2]; /* matrices at a time: float, double */
    lc_lane_kernel lu[2], solve[2], inv[2], det[2], cholesky[2], qr[2], eigh[2], svd[2];
    /* One matrix (m, n): its columns become orthogonal by rotations, which v (n, n) collects unless it is NULL. Pairs count as orthogonal below tolerance, columns
     * whose squares are below noise as zero. work: COLUMNS_WORK(m, n) elements (own.h). false: it has too many columns for this, or too few. */
    bool (*columns[2])(int64_t m, int64_t n, void *a, int64_t lda, void *v, int64_t ldv, double tolerance, double noise,
                       void *work);
} lc_lanes;
ISA_TABLE(const lc_lanes, lanes)

/* The kernels of this CPU for a batch of matrices up to `rows` rows and columns; NULL: none, or the batch is not worth it. */
static inline const lc_lanes *lanes_for(const lc_linalg_args *a, lc_dtype dtype, int64_t rows)
{
    const lc_lanes *lanes = lanes_of_this_cpu();
    int             width = dtype == LC_f32 ? lanes->width[0] : dtype == LC_f64 ? lanes->width[1] : 0;
    bool            fits = width && a->m[0].rows > 0 && a->m[0].cols > 0 && a->m[0].rows <= rows && a->m[0].cols <= rows;
    return fits && 2 * a->batch >= width ? lanes : NULL;
}

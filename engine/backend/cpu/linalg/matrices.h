/* Batches of matrices as kernels see them: where the i-th lies, how it becomes column-major, and the walk over a batch. */
#pragma once
#include "../../args_linalg.h"
#include "lapack.h"
#include "own.h"
#include <string.h>

static inline char *matrix_at(const lc_matrices *m, int64_t i, int64_t size)
{
    int64_t offset = 0;
    if (m->batch_ndim == 1) offset = i * m->batch_step;
    else
        for (int d = m->batch_ndim - 1; d >= 0; i /= m->batch_size[d], d--) offset += i % m->batch_size[d] * m->batch_stride[d];
    return m->data + offset * size;
}
static inline lc_matrices transposed(lc_matrices m)
{
    int64_t rows = m.rows, step = m.row_step;
    m.rows = m.cols, m.cols = rows, m.row_step = m.col_step, m.col_step = step;
    return m;
}
static inline bool is_column_major(const lc_matrices *m)
{
    return (m->row_step == 1 || m->rows <= 1) && (m->col_step >= m->rows || m->cols <= 1);
}
static inline int64_t leading(int64_t rows) { return rows > 0 ? rows : 1; }

/* Element (i, j) of dst is element (i, j) of src; steps in elements of `size` bytes: 4, 8 or 16. */
void copy_matrix(void *dst, int64_t dst_row, int64_t dst_col, const void *src, int64_t src_row, int64_t src_col, int64_t rows,
                 int64_t cols, int64_t size);

typedef struct linalg_job linalg_job;
struct linalg_job {
    const lc_linalg_args *a;
    int64_t               m, n, k;   /* of the matrices; what each op makes of them */
    size_t                workspace; /* bytes for one matrix at a time */
    int                   lwork, lrwork, liwork;
    bool                  lapack; /* else our own kernels */
    const lc_own_kernels *own;
    void (*one)(const linalg_job *j, int64_t i, char *workspace);
    /* Several matrices at a time (lanes.h): what runs then; one is for groups that it refuses. NULL: one by one. */
    void (*group)(const lc_linalg_args *a, int64_t first, int64_t count, void *workspace);
    int         width;
    bool        may_refuse; /* group says so in the first byte of the workspace: false, this one is not for me */
    atomic_bool no_memory;
};
/* Calls one for every matrix, on several threads where there are several matrices; cost: multiplications of one matrix. */
int linalg_walk(linalg_job *j, double cost);

/* Memory handed out piece by piece from the workspace; with NULL it only counts. */
static inline void *piece(char **at, int64_t elements, size_t size)
{
    void *here = *at;
    *at += ((size_t)leading(elements) * size + 63) & ~(size_t)63;
    return here;
}

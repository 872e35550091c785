/* softmax, log_softmax and their gradients: independent lines along one dimension. The exponentials of a line are one call of the
 * vectorised exp loop. */
#include "cpu.h"
#include "../args.h"
#include "../../tensor/iter.h"
#include <math.h>
#include <string.h>

typedef enum { SOFTMAX, LOG_SOFTMAX, SOFTMAX_BACKWARD, LOG_SOFTMAX_BACKWARD } row_kind;
typedef struct {
    lc_iter   it; /* over the other dimensions: out, in, y */
    lc_row_fn rows;
    row_kind  kind;
    int64_t   n, step[3]; /* along the line; steps in bytes */
    char     *buffer;     /* of a thread: three lines */
} row_walk;

#define T        float
#define NAME(f)  f##_f32
#define LOG      logf
#define DTYPE_ID LC_f32
#include "rows.inc.c"
#define T        double
#define NAME(f)  f##_f64
#define LOG      log
#define DTYPE_ID LC_f64
#include "rows.inc.c"

typedef struct {
    row_walk   walk;
    size_t     bytes;
    atomic_int failed;
} row_job;

static void row_chunk(void *ctx, int64_t begin, int64_t end)
{
    row_job *job = ctx;
    row_walk w = job->walk;
    if (!(w.buffer = lc_alloc(job->bytes))) {
        job->failed = 1;
        return;
    }
    lc_iter_range(&w.it, begin, end, w.rows, &w);
    lc_free(w.buffer, job->bytes);
}

static int run_rows(row_kind kind, lc_dtype dtype, const lc_row_args *a)
{
    const lc_tensor *operand[] = { a->out, a->in, kind < SOFTMAX_BACKWARD ? a->in : a->y };
    int64_t          size = lc_size_of(dtype), bytes[3][LC_MAX_DIMS], shape[LC_MAX_DIMS], lines = 1;
    int              ndim = a->in->ndim, kept = 0;
    row_job          job = { .walk = { .rows = dtype == LC_f32 ? rows_f32 : rows_f64, .kind = kind, .n = 1 } };
    row_walk        *w = &job.walk;
    for (int d = 0; d < ndim; d++) {
        bool along = d == a->dim;
        if (along) w->n = a->in->shape[d];
        else shape[kept] = a->in->shape[d], lines *= shape[kept];
        for (int k = 0; k < 3; k++) *(along ? &w->step[k] : &bytes[k][kept]) = operand[k]->stride[d] * size;
        kept += !along;
    }
    if (!lines || !w->n) return 0;
    for (int k = 0; k < 3 && w->n == 1; k++) w->step[k] = size;
    job.bytes = (size_t)(3 * w->n * size);
    lc_iter_start(&w->it, kept, shape);
    for (int k = 0; k < 3; k++) lc_iter_add_raw(&w->it, operand[k]->data, bytes[k]);
    lc_iter_prepare(&w->it, true);
    cpu_parallel(lines, CPU_GRAIN / w->n + 1, 4 * lines * w->n, row_chunk, &job);
    return job.failed ? lc_fail_int(LC_OutOfMemory, "softmax: no memory for %lld elements", (long long)w->n) : 0;
}
static int cpu_softmax(lc_dtype dtype, const void *args) { return run_rows(SOFTMAX, dtype, args); }
static int cpu_log_softmax(lc_dtype dtype, const void *args) { return run_rows(LOG_SOFTMAX, dtype, args); }
static int cpu_softmax_backward(lc_dtype dtype, const void *args) { return run_rows(SOFTMAX_BACKWARD, dtype, args); }
static int cpu_log_softmax_backward(lc_dtype dtype, const void *args) { return run_rows(LOG_SOFTMAX_BACKWARD, dtype, args); }
LC_CPU_RUN(softmax, cpu_softmax, 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(log_softmax, cpu_log_softmax, 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_softmax_backward_data, cpu_softmax_backward, 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_log_softmax_backward_data, cpu_log_softmax_backward, 1u << LC_f32 | 1u << LC_f64)

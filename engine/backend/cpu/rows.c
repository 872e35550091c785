/* softmax, log_softmax and their gradients: independent lines along one dimension, walked here, computed by lines.c. A line that is contiguous
 * in the output is computed there; others in a buffer, LINE_LANES at a time where they lie side by side in memory. */
#include "cpu.h"
#include "lines.h"
#include "../args.h"
#include "../../tensor/iter.h"
#include <string.h>

typedef struct {
    lc_iter it; /* over the other dimensions: out, in, y */
    lc_line line, wide;
    bool    backward;
    int64_t n, size, step[3]; /* along the line; size of an element; steps in bytes */
    char   *buffer;           /* of a thread: x, y, each LINE_LANES lines */
} row_walk;

static void gather(const row_walk *w, char *to, const char *from, int64_t step, int64_t lanes)
{
    if (lanes == LINE_LANES)
        for (int64_t i = 0; i < w->n; i++) memcpy(to + i * lanes * w->size, from + i * step, (size_t)(LINE_LANES * w->size));
    else if (step == w->size) memmove(to, from, (size_t)(w->n * w->size));
    else if (w->size == 4)
        for (int64_t i = 0; i < w->n; i++) ((float *)to)[i] = *(const float *)(from + i * step);
    else
        for (int64_t i = 0; i < w->n; i++) ((double *)to)[i] = *(const double *)(from + i * step);
}
static void scatter(const row_walk *w, char *to, const char *from, int64_t step, int64_t lanes)
{
    for (int64_t i = 0; i < w->n; i++) memcpy(to + i * step, from + i * lanes * w->size, (size_t)(lanes * w->size));
}

static int run_lines(void *ctx, char *const *ptr, const int64_t *stride, int64_t lines)
{
    const row_walk *w = ctx;
    int64_t         room = w->n * LINE_LANES * w->size;
    char           *x = w->buffer, *y = x + room;
    bool            beside = w->step[0] != w->size && stride[0] == w->size && stride[1] == w->size && stride[2] == w->size;
    for (int64_t l = 0, lanes; l < lines; l += lanes) {
        char       *out = ptr[0] + l * stride[0];
        const char *in = ptr[1] + l * stride[1], *other = ptr[2] + l * stride[2];
        lanes = beside && lines - l >= LINE_LANES ? LINE_LANES : 1;
        bool  packed_x = lanes == 1 && w->step[1] == w->size, packed_y = lanes == 1 && w->step[2] == w->size;
        bool  direct = lanes == 1 && w->step[0] == w->size;
        char *to = direct ? out : x;
        if (!packed_x) gather(w, x, in, w->step[1], lanes);
        if (w->backward && !packed_y) gather(w, y, other, w->step[2], lanes);
        (lanes == 1 ? w->line : w->wide)(to, packed_x ? in : x, packed_y ? other : y, w->n);
        if (!direct) scatter(w, out, to, w->step[0], lanes);
    }
    return 0;
}

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
    lc_iter_range(&w.it, begin, end, run_lines, &w);
    lc_free(w.buffer, job->bytes);
}

extern const lc_lines lc_cpu_lines_base, lc_cpu_lines_avx2 __attribute__((weak)), lc_cpu_lines_avx512 __attribute__((weak)),
    lc_cpu_lines_neon __attribute__((weak));
static const lc_lines *lines_of_this_cpu(void)
{
    const lc_lines *const tables[] = { [LC_ISA_base] = &lc_cpu_lines_base,
                                       [LC_ISA_avx2] = &lc_cpu_lines_avx2,
                                       [LC_ISA_avx512] = &lc_cpu_lines_avx512,
                                       [LC_ISA_neon] = &lc_cpu_lines_neon };
    return tables[lc_cpu_isa()] ? tables[lc_cpu_isa()] : &lc_cpu_lines_base;
}

static int run_rows(line_kind kind, lc_dtype dtype, const lc_row_args *a)
{
    bool             backward = kind >= SOFTMAX_BACKWARD;
    const lc_lines  *table = lines_of_this_cpu();
    const lc_tensor *operand[] = { a->out, a->in, backward ? a->y : a->in };
    int64_t          size = lc_size_of(dtype), bytes[3][LC_MAX_DIMS], shape[LC_MAX_DIMS], lines = 1;
    int              kept = 0;
    row_job          job = { .walk = { .backward = backward, .n = 1, .size = size } };
    row_walk        *w = &job.walk;
    w->line = dtype == LC_f32 ? table->f32[kind] : table->f64[kind];
    w->wide = dtype == LC_f32 ? table->f32_wide[kind] : table->f64_wide[kind];
    for (int d = 0; d < a->in->ndim; d++) {
        bool along = d == a->dim;
        if (along) w->n = a->in->shape[d];
        else shape[kept] = a->in->shape[d], lines *= shape[kept];
        for (int k = 0; k < 3; k++) *(along ? &w->step[k] : &bytes[k][kept]) = operand[k]->stride[d] * size;
        kept += !along;
    }
    if (!lines || !w->n) return 0;
    for (int k = 0; k < 3 && w->n == 1; k++) w->step[k] = size;
    job.bytes = (size_t)(2 * w->n * LINE_LANES * size);
    lc_iter_start(&w->it, kept, shape);
    for (int k = 0; k < 3; k++) lc_iter_add_raw(&w->it, operand[k]->data, bytes[k]);
    lc_iter_prepare(&w->it, true);
    cpu_parallel(lines, CPU_GRAIN / w->n + LINE_LANES, 4 * lines * w->n, row_chunk, &job);
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

/* softmax, log_softmax and their gradients: independent lines along one dimension, walked here, computed by
 * softmax_lines.inc.c. A line that is contiguous in the output is computed there; interleaved lines are computed row by row;
 * others in a buffer, LINE_LANES at a time if they have to be converted. */
#include "../cpu.h"
#include "softmax_lines.h"
#include "../../args.h"
#include "../../../tensor/iter.h"
#include <string.h>

enum { LEAST_SHEET = 8, SHEET_GRAIN = 256 }; /* least number of lines processed row by row; lines per thread */
typedef struct {
    lc_iter  it; /* over the other dimensions: out, in, y */
    lc_line  line, wide;
    lc_sheet sheet;
    bool     backward;
    lc_dtype work, type[3];    /* of the lines, of the operands */
    int64_t  n, size, step[3]; /* along the line; size of a line's element; strides in bytes */
    int64_t  lanes;            /* most lines that are gathered together */
    char    *buffer;           /* per thread: x, y, each `lanes` lines; NULL if everything is computed in place */
} row_walk;

/* Copies operand k to or from a buffer in which `lanes` lines are interleaved. */
static void gather(const row_walk *w, int k, char *to, const char *from, int64_t lanes)
{
    int64_t step = w->step[k], item = lc_size_of(w->type[k]);
    if (lanes == 1) cpu_move(w->work, to, w->size, w->type[k], from, step, w->n);
    else if (w->type[k] == w->work && w->size == 4) /* known size: one load, one store */
        for (int64_t i = 0; i < w->n; i++) memcpy(to + i * LINE_LANES * 4, from + i * step, LINE_LANES * 4);
    else
        for (int64_t i = 0; i < w->n; i++)
            cpu_move(w->work, to + i * lanes * w->size, w->size, w->type[k], from + i * step, item, lanes);
}
static void scatter(const row_walk *w, char *to, const char *from, int64_t lanes)
{
    int64_t step = w->step[0], item = lc_size_of(w->type[0]);
    if (lanes == 1) cpu_move(w->type[0], to, step, w->work, from, w->size, w->n);
    else if (w->type[0] == w->work && w->size == 4)
        for (int64_t i = 0; i < w->n; i++) memcpy(to + i * step, from + i * LINE_LANES * 4, LINE_LANES * 4);
    else
        for (int64_t i = 0; i < w->n; i++)
            cpu_move(w->type[0], to + i * step, item, w->work, from + i * lanes * w->size, w->size, lanes);
}

static int run_lines(void *ctx, char *const *ptr, const int64_t *stride, int64_t lines)
{
    const row_walk *w = ctx;
    int64_t         buffer_bytes = w->n * w->lanes * w->size;
    char           *x = w->buffer, *y = x + buffer_bytes;
    bool            beside = w->step[0] != lc_size_of(w->type[0]), packed[3];
    for (int k = 0; k < 3; k++) {
        packed[k] = w->type[k] == w->work && w->step[k] == w->size;
        beside = beside && stride[k] == lc_size_of(w->type[k]);
    }
    bool same = w->type[0] == w->work && w->type[1] == w->work && w->type[2] == w->work;
    if (beside && same && lines >= LEAST_SHEET) {
        int64_t step[] = { w->step[0] / w->size, w->step[1] / w->size, w->step[2] / w->size };
        w->sheet(ptr[0], ptr[1], ptr[2], w->n, lines, step);
        return 0;
    }
    for (int64_t l = 0, lanes; l < lines; l += lanes) {
        char       *out = ptr[0] + l * stride[0];
        const char *in = ptr[1] + l * stride[1], *other = ptr[2] + l * stride[2];
        lanes = beside && w->lanes > 1 && lines - l >= LINE_LANES ? LINE_LANES : 1;
        bool  alone = lanes == 1, read_x = alone && packed[1], read_y = alone && packed[2], direct = alone && packed[0];
        char *to = direct ? out : x;
        if (!read_x) gather(w, 1, x, in, lanes);
        if (w->backward && !read_y) gather(w, 2, y, other, lanes);
        (alone ? w->line : w->wide)(to, read_x ? in : x, read_y ? other : y, w->n);
        if (!direct) scatter(w, out, to, lanes);
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
    if (job->bytes && !(w.buffer = cpu_scratch(job->bytes))) {
        job->failed = 1;
        return;
    }
    lc_iter_range(&w.it, begin, end, run_lines, &w);
    cpu_scratch_free(w.buffer, job->bytes);
}

ISA_TABLE(const lc_softmax_lines, softmax_lines)

static int run_rows(line_kind kind, lc_dtype dtype, const lc_softmax_args *a)
{
    bool                    backward = kind >= SOFTMAX_BACKWARD;
    const lc_softmax_lines *table = softmax_lines_of_this_cpu();
    const lc_tensor        *operand[] = { a->out, a->in, backward ? a->y : a->in };
    lc_dtype                work = cpu_working_dtype(dtype);
    int64_t                 size = lc_size_of(work), bytes[3][LC_MAX_DIMS], shape[LC_MAX_DIMS], lines = 1;
    int                     kept = 0;
    row_job                 job = { .walk = { .backward = backward, .work = work, .n = 1, .size = size } };
    row_walk               *w = &job.walk;
    w->line = work == LC_f32 ? table->f32[kind] : table->f64[kind];
    w->wide = work == LC_f32 ? table->f32_wide[kind] : table->f64_wide[kind];
    for (int d = 0; d < a->in->ndim; d++) {
        bool along = d == a->dim;
        if (along) w->n = a->in->shape[d];
        else shape[kept] = a->in->shape[d], lines *= shape[kept];
        for (int k = 0; k < 3; k++)
            *(along ? &w->step[k] : &bytes[k][kept]) = operand[k]->stride[d] * lc_size_of(operand[k]->dtype);
        kept += !along;
    }
    if (!lines || !w->n) return 0;
    for (int k = 0; k < 3; k++) w->type[k] = (lc_dtype)operand[k]->dtype;
    for (int k = 0; k < 3 && w->n == 1; k++) w->step[k] = lc_size_of(w->type[k]);
    bool same = true, whole = true;
    for (int k = 0; k < 3; k++) same &= w->type[k] == work, whole &= w->type[k] == work && w->step[k] == size;
    w->lanes = same || w->step[0] == lc_size_of(w->type[0]) ? 1 : LINE_LANES;
    job.bytes = whole ? 0 : (size_t)((1 + backward) * w->n * w->lanes * size);
    w->sheet = work == LC_f32 ? table->f32_sheet[kind] : table->f64_sheet[kind];
    int64_t grain = CPU_GRAIN / w->n + LINE_LANES;
    if (w->step[0] != lc_size_of(w->type[0]) && grain < SHEET_GRAIN) grain = SHEET_GRAIN;
    lc_iter_start(&w->it, kept, shape);
    for (int k = 0; k < 3; k++) lc_iter_add_raw(&w->it, operand[k]->data, bytes[k]);
    lc_iter_prepare(&w->it, true);
    cpu_parallel(lines, grain, 4 * lines * w->n, row_chunk, &job);
    return job.failed ? lc_fail_int(LC_OutOfMemory, "softmax: no memory for %lld elements", (long long)w->n) : 0;
}
static int cpu_softmax(lc_dtype dtype, const void *args) { return run_rows(SOFTMAX, dtype, args); }
static int cpu_log_softmax(lc_dtype dtype, const void *args) { return run_rows(LOG_SOFTMAX, dtype, args); }
static int cpu_softmax_backward(lc_dtype dtype, const void *args) { return run_rows(SOFTMAX_BACKWARD, dtype, args); }
static int cpu_log_softmax_backward(lc_dtype dtype, const void *args) { return run_rows(LOG_SOFTMAX_BACKWARD, dtype, args); }
#define ROWS_OF (1u << LC_f16 | 1u << LC_bf16 | 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(softmax, cpu_softmax, ROWS_OF)
LC_CPU_RUN(log_softmax, cpu_log_softmax, ROWS_OF)
LC_CPU_RUN(_softmax_backward_data, cpu_softmax_backward, ROWS_OF)
LC_CPU_RUN(_log_softmax_backward_data, cpu_log_softmax_backward, ROWS_OF)

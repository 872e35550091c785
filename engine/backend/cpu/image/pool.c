/* Pooling: window bounds are tabulated once per call, threads share planes, pool_planes.isa.o3.c computes them. The gradient
 * of a maximum with indices is a scatter-add at them, plane by plane; without indices, the positions are found again.
 *
 * Bound: an element takes part in kernel / stride operations per dimension. Without overlap (2 x 2) that is little beside
 * reading it; with overlap (3 x 3, stride 2) folding across columns dominates, where every second element of a line is
 * wanted and vectors are deinterleaved. With indices it is arithmetic: a comparison and two selections per element of a
 * window, in row-major order, since the first of equal values counts.
 *
 * Tiles: one output row at a time. The rows under it are folded into one line, which is then folded across
 * (pool_planes.isa.o3.c). The line is the only workspace, it stays in L1, and it includes the padding at its ends, so that
 * no window is clipped. If padding or reach would make it more than WIDEST times as long as the row, windows are read from
 * the tables instead. Adjacent 2 x 2 windows skip the line: two rows are read, the result is written. A plane is never
 * split: no two threads add to one element of a gradient, and the result does not depend on their number.
 *
 * Images with the channels last are pooled in that order, position by position (pool_last.inc.c).
 *
 * Fraction of a copy in the same caches (1 x 64 x 56 x 56, float32, one thread, 87 GB/s; input and output counted once, best
 * of 120 runs beside other work): maximum 2 x 2 0.6 (52 GB/s), average 2 x 2 0.3, average 3 x 3 with stride 2 0.2, maximum 3
 * x 3 with stride 2 0.16, with indices 0.05. So only the first is near memory; the others are bound by the work per line.
 *
 * Rejected: each window on its own (8 operations per element of 3 x 3 instead of 4, without vectors); sums as differences of
 * running sums, in which one infinity would reach every window after it. */
#include "../cpu.h"
#include "pool.h"
#include <string.h>

ISA_TABLE(const lc_pools, pools)

/* Windows of dimension d: first, past and count (result[d] each). */
static void lay_out(const lc_pool_args *a, int d, int64_t *first, int64_t *past, int64_t *count)
{
    int64_t n = a->size[d], m = a->result[d], step = a->dilation[d];
    for (int64_t o = 0; o < m; o++) {
        if (a->adaptive) {
            first[o] = (int64_t)((__int128)o * n / m), past[o] = (int64_t)(((__int128)(o + 1) * n + m - 1) / m);
            count[o] = past[o] - first[o];
            continue;
        }
        int64_t start = o * a->stride[d] - a->padding[d], end = start + (a->kernel[d] - 1) * step + 1;
        int64_t padded = end < n + a->padding[d] ? end : n + a->padding[d];
        first[o] = start < 0 ? start + (-start + step - 1) / step * step : start;
        past[o] = end < n ? end : n;
        count[o] = a->padding_counts ? padded - start : past[o] - first[o];
    }
}

static bool is_paired(const lc_pool_args *a)
{
    bool paired = !a->adaptive && a->kernel[0] == 1 && a->stride[0] == 1;
    for (int d = 0; d < 3; d++) paired = paired && a->padding[d] == 0 && a->dilation[d] == 1;
    for (int d = 1; d < 3; d++) paired = paired && a->kernel[d] == 2 && a->stride[d] == 2 && 2 * a->result[d] <= a->size[d];
    return paired;
}

enum { LAST_PART = 64, LAST_IMAGES = 8 }; /* channels of a unit, unless images are enough units */
enum { WIDEST = 64 };                     /* a line with its padding is at most so many times as long as without */
typedef struct {
    pool_plan           plan;
    lc_pool_planes      planes;
    size_t              bytes;
    atomic_int          failed;
    lc_pool_last        last; /* channels last: */
    pool_kind           kind;
    int64_t             parts; /* of the channels of an image, or of its rows */
    const cpu_epilogue *finish;
} pool_job;
static void pool_chunk(void *ctx, int64_t begin, int64_t end)
{
    pool_job *job = ctx;
    void     *scratch = cpu_scratch(job->bytes);
    if (!scratch) {
        job->failed = 1;
        return;
    }
    const lc_pool_args *a = job->plan.args;
    int64_t             area = a->size[0] * a->size[1] * a->size[2], each = job->finish ? 1 : end - begin;
    for (int64_t plane = begin; plane < end; plane += each) {
        job->planes(&job->plan, plane, plane + each, scratch);
        cpu_finish(job->finish, a->out->data + plane * area * lc_size_of(a->out->dtype), area);
    }
    cpu_scratch_free(scratch, job->bytes);
}
/* Units: rows of results. A backward kernel adds to what other rows add to as well, so its units are parts of the channels. */
static void last_chunk(void *ctx, int64_t begin, int64_t end)
{
    pool_job           *job = ctx;
    const lc_pool_args *a = job->plan.args;
    bool                scatters = job->kind == POOL_AVERAGE_BACKWARD || job->kind == POOL_MAX_GRADIENT;
    int64_t  rows = a->result[0] * a->result[1], area = a->size[0] * a->size[1] * a->size[2], size = lc_size_of(a->in->dtype);
    int64_t *list = cpu_scratch(job->bytes);
    if (!list) {
        job->failed = 1;
        return;
    }
    for (int64_t u = begin; u < end; u++) {
        int64_t image = u / job->parts, part = u % job->parts, c = 0, stop = a->channels;
        if (!scatters) {
            job->last(&job->plan, job->kind, image, part, c, stop, list);
            continue;
        }
        c = part * LAST_PART, stop = c + LAST_PART < stop ? c + LAST_PART : stop;
        if (job->parts == 1) stop = a->channels;
        for (int64_t i = 0; i < area; i++)
            memset(a->out->data + ((image * area + i) * a->channels + c) * size, 0, (size_t)((stop - c) * size));
        for (int64_t r = 0; r < rows; r++) job->last(&job->plan, job->kind, image, r, c, stop, list);
    }
    cpu_scratch_free(list, job->bytes);
}
static void run_last(pool_job *job, int64_t images)
{
    const lc_pool_args *a = job->plan.args;
    int64_t             most[3], work;
    for (int d = 0; d < 3; d++)
        for (int64_t o = most[d] = 0; o < a->result[d]; o++) {
            int64_t wide = (job->plan.past[d][o] - job->plan.first[d][o] + a->dilation[d] - 1) / a->dilation[d];
            most[d] = wide > most[d] ? wide : most[d];
        }
    job->plan.taps = most[0] * most[1] * most[2] + 1, job->bytes = (size_t)(2 * job->plan.taps) * sizeof(int64_t);
    bool scatters = job->kind == POOL_AVERAGE_BACKWARD || job->kind == POOL_MAX_GRADIENT;
    if (!scatters) job->parts = a->result[0] * a->result[1];
    else job->parts = images >= LAST_IMAGES ? 1 : (a->channels + LAST_PART - 1) / LAST_PART;
    work = a->planes * (a->size[0] * a->size[1] * a->size[2] + a->result[0] * a->result[1] * a->result[2] * job->plan.taps / 4);
    int64_t units = images * job->parts;
    cpu_parallel(units, CPU_GRAIN * units / (work + 1) + 1, work, last_chunk, job);
}
static int no_memory(void) { return lc_fail_int(LC_OutOfMemory, "pooling: no memory for its windows"); }
static int run_planes(pool_kind kind, lc_dtype dtype, const lc_pool_args *a)
{
    const lc_pools *table = pools_of_this_cpu();
    int64_t         windows = a->result[0] + a->result[1] + a->result[2], area = a->size[0] * a->size[1] * a->size[2];
    int64_t         reach = a->size[2], results = a->result[0] * a->result[1] * a->result[2];
    pool_job        job = { .plan.args = a, .plan.paired = is_paired(a) };
    cpu_epilogue    finish;
    if (!a->planes || !area) return 0;
    int64_t *places = cpu_scratch((size_t)(3 * windows) * sizeof *places), *at = places;
    if (!places) return no_memory();
    for (int d = 0; d < 3; d++, at += a->result[d - 1]) {
        lay_out(a, d, at, at + windows, at + 2 * windows);
        job.plan.first[d] = at, job.plan.past[d] = at + windows, job.plan.count[d] = at + 2 * windows;
    }
    int64_t needed = (a->result[2] - 1) * a->stride[2] + (a->kernel[2] - 1) * a->dilation[2] + 1;
    int64_t padded = reach + a->padding[2];
    job.plan.clipped = a->adaptive || needed > WIDEST * reach + WIDEST || padded > WIDEST * reach + WIDEST;
    if (!job.plan.clipped) reach = needed > padded ? needed : padded, job.plan.left = a->padding[2];
    job.plan.line = reach;
    job.planes = (dtype == LC_f32 ? table->f32 : dtype == LC_f64 ? table->f64 : table->i64)[kind];
    job.bytes = (size_t)(pool_scratch(&job.plan) * lc_size_of(dtype));
    int64_t each = 2 * (area + results);
    job.kind = kind, job.last = dtype == LC_f32 ? table->last_f32 : table->last_f64;
    if (kind == POOL_MAX_GRADIENT && a->finish.epilogue) {
        cpu_epilogue_start(&finish, a->finish.epilogue, a->finish.in, a->out);
        job.finish = &finish;
    }
    if (a->channels > 1) {
        run_last(&job, a->planes / a->channels);
        if (job.finish) cpu_epilogue_run_all(&finish, a->out->data, a->planes * area);
    } else cpu_parallel(a->planes, CPU_GRAIN / each + 1, a->planes * each, pool_chunk, &job);
    cpu_scratch_free(places, (size_t)(3 * windows) * sizeof *places);
    return job.failed ? no_memory() : 0;
}
static int cpu_max_pool(lc_dtype dtype, const void *args)
{
    const lc_pool_args *a = args;
    if (a->index) return run_planes(POOL_MAX_INDEX, dtype, a);
    return run_planes(dtype != LC_i64 && a->channels == 1 && is_paired(a) ? POOL_MAX_PAIRED : POOL_MAX, dtype, a);
}
static int cpu_max_pool_gradient(lc_dtype dtype, const void *args) { return run_planes(POOL_MAX_GRADIENT, dtype, args); }
static int cpu_average_pool(lc_dtype dtype, const void *args) { return run_planes(POOL_AVERAGE, dtype, args); }
static int cpu_average_pool_backward(lc_dtype dtype, const void *args)
{
    return run_planes(POOL_AVERAGE_BACKWARD, dtype, args);
}

typedef struct {
    const lc_pool_args *args;
    lc_dtype            dtype;
    int64_t             area, results;
    atomic_int          astray; /* an index out of range */
} sum_job;
#define SUM_AT(T)                                                                                                              \
    for (int64_t i = 0; i < n; i += channels)                                                                                  \
        for (int64_t c = 0; c < channels; c++) {                                                                               \
            if ((uint64_t)index[i + c] >= (uint64_t)job->area) job->astray = 1;                                                \
            else ((T *)out)[index[i + c] * channels + c] += ((const T *)in)[i + c];                                            \
        }
static void sum_chunk(void *ctx, int64_t begin, int64_t end)
{
    sum_job *job = ctx;
    int64_t  channels = job->args->channels, n = job->results * channels, size = lc_size_of(job->dtype);
    for (int64_t plane = begin; plane < end; plane++) {
        const int64_t *index = (const int64_t *)job->args->index->data + plane * n;
        const char    *in = job->args->in->data + plane * n * size;
        char          *out = job->args->out->data + plane * job->area * channels * size;
        memset(out, 0, (size_t)(job->area * channels * size));
        if (job->dtype == LC_f32) {
            SUM_AT(float)
        } else {
            SUM_AT(double)
        }
    }
}
static int cpu_max_pool_backward(lc_dtype dtype, const void *args)
{
    const lc_pool_args *a = args;
    sum_job             job = { .args = a, .dtype = dtype };
    job.area = a->size[0] * a->size[1] * a->size[2], job.results = a->result[0] * a->result[1] * a->result[2];
    int64_t each = (job.area + 2 * job.results) * a->channels + 1, units = a->planes / a->channels;
    cpu_parallel(units, CPU_GRAIN / each + 1, units * each, sum_chunk, &job);
    return job.astray ? lc_fail_int(LC_IndexError, "max_pool backward: an index is outside of its plane") : 0;
}

#define FLOATS (1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_max_pool, cpu_max_pool, FLOATS | 1u << LC_i64)
LC_CPU_RUN(_avg_pool, cpu_average_pool, FLOATS | 1u << LC_i64)
LC_CPU_RUN(_avg_pool_backward, cpu_average_pool_backward, FLOATS)
LC_CPU_RUN(_max_pool_backward, cpu_max_pool_backward, FLOATS)
LC_CPU_RUN(_max_pool_gradient, cpu_max_pool_gradient, FLOATS)
LC_CPU_FINISHES(_max_pool_gradient)

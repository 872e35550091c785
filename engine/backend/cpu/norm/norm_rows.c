/* Layer, RMS and group normalisation: rows of channels x inner elements, a mean and a standard deviation each.
 *
 * A row is processed in tiles that stay in L1 (a row of up to NORM_TILE elements is read from memory once), and half
 * precision is converted in them. Threads share rows. If every element has its own parameters (inner == 1: layer and RMS
 * norm), their gradients are summed per chunk of rows, in the pass that computes the gradient of the input; chunks depend on
 * shapes only and are added in order. If a channel has `inner` elements (group norm), the sums per row and channel are kept:
 * they give the gradients of the parameters and of the statistics alike. */
#include "../cpu.h"
#include "norm.h"
#include <math.h>
#include <string.h>

ISA_TABLE(const lc_norms, norms)
const lc_norm_loops *norm_loops_of(lc_dtype work)
{
    const lc_norms *table = norms_of_this_cpu();
    return work == LC_f32 ? &table->f32 : &table->f64;
}

const void *norm_read(const lc_tensor *t, int64_t at, int64_t n, lc_dtype work, void *buffer)
{
    int64_t     size = lc_size_of(t->dtype);
    const char *from = t->data + at * size;
    if (t->dtype == work) return from;
    cpu_move(work, buffer, lc_size_of(work), (lc_dtype)t->dtype, from, size, n);
    return buffer;
}
void *norm_place(const lc_tensor *t, int64_t at, lc_dtype work, void *buffer)
{
    return t->dtype == work ? t->data + at * lc_size_of(work) : buffer;
}
void norm_written(const lc_tensor *t, int64_t at, int64_t n, lc_dtype work, const void *buffer)
{
    int64_t size = lc_size_of(t->dtype);
    if (t->dtype != work) cpu_move((lc_dtype)t->dtype, t->data + at * size, size, work, buffer, lc_size_of(work), n);
}
int norm_no_memory(void) { return lc_fail_int(LC_OutOfMemory, "normalisation: no memory for its tiles"); }

typedef struct {
    const lc_norm_args  *a;
    const lc_norm_loops *loops;
    lc_dtype             work;
    int64_t              length, size, grain; /* of a row; size of an element of the working dtype */
    char                *partial;             /* dweight, dbias per chunk: (chunks, 2, groups * channels) */
    double              *sums;                /* of g and of g (x - mean), per row and channel: (rows, channels, 2) */
    bool                 converts;
    const cpu_epilogue  *finish;
    atomic_int           failed;
} row_job;

static const char *parameter(const row_job *j, const lc_tensor *t, int64_t at) { return t ? t->data + at * j->size : NULL; }
static int64_t     tile_of(int64_t at, int64_t end) { return end - at < NORM_TILE ? end - at : NORM_TILE; }

static void row_statistics(const row_job *j, int64_t row, void *buffer, double *mean, double *rstd)
{
    const lc_norm_args *a = j->a;
    norm_moments        all = { 0 };
    double              m, q;
    for (int64_t i = 0, n; i < j->length; i += n) {
        n = tile_of(i, j->length);
        const void *x = norm_read(a->in, row * j->length + i, n, j->work, buffer);
        if (a->centred) j->loops->moments(x, n, &m, &q), norm_merge(&all, (double)n, m, q);
        else all.square += j->loops->squares(x, n);
    }
    *mean = all.mean, *rstd = 1 / sqrt(all.square / (double)j->length + a->eps);
    norm_set(a->mean, row, *mean), norm_set(a->rstd, row, *rstd);
}

static void rows_forward(void *ctx, int64_t begin, int64_t end)
{
    row_job            *j = ctx;
    const lc_norm_args *a = j->a;
    size_t              bytes = j->converts ? (size_t)(NORM_TILE * j->size) : 1;
    char               *buffer = cpu_scratch(bytes);
    if (!buffer) {
        j->failed = 1;
        return;
    }
    for (int64_t r = begin; r < end; r++) {
        int64_t first = r % a->groups * a->channels;
        double  mean, rstd;
        row_statistics(j, r, buffer, &mean, &rstd);
        for (int64_t i = 0, n; i < j->length; i += n) { /* a tile ends with its channel, if channels have several elements */
            int64_t channel = first + i / a->inner, at = r * j->length + i;
            n = tile_of(i, a->inner == 1 ? j->length : (i / a->inner + 1) * a->inner);
            const void *x = j->converts && i == 0 && n == j->length ? buffer : norm_read(a->in, at, n, j->work, buffer);
            void       *to = norm_place(a->out, at, j->work, buffer);
            if (a->inner == 1)
                j->loops->scale_each(to, x, n, mean, rstd, parameter(j, a->weight, channel), parameter(j, a->bias, channel));
            else j->loops->scale(to, x, n, mean, rstd * norm_at(a->weight, channel, 1), norm_at(a->bias, channel, 0));
            cpu_finish(j->finish, to, n);
            norm_written(a->out, at, n, j->work, buffer);
        }
    }
    cpu_scratch_free(buffer, bytes);
}

/* Coefficients of the input gradient (norm.h: slope). sum: of weight g, of weight g (x - mean). */
static void row_slopes(const row_job *j, const double sum[2], double rstd, double by[4])
{
    double n = (double)j->length;
    by[0] = 1, by[1] = rstd * rstd * sum[1] / n, by[2] = j->a->centred ? sum[0] / n : 0, by[3] = rstd;
}

static void layer_row_backward(const row_job *j, int64_t r, char *g_buffer, char *x_buffer, char *dweight, char *dbias)
{
    const lc_norm_args *a = j->a;
    int64_t             first = r % a->groups * a->channels;
    double              mean = norm_at(a->mean, r, 0), rstd = norm_at(a->rstd, r, 0), sum[2] = { 0 }, by[4];
    for (int64_t i = 0, n; i < j->length && a->out; i += n) {
        n = tile_of(i, j->length);
        const void *g = norm_read(a->grad, r * j->length + i, n, j->work, g_buffer);
        const void *x = norm_read(a->in, r * j->length + i, n, j->work, x_buffer);
        j->loops->dots_each(g, x, n, mean, parameter(j, a->weight, first + i), sum);
    }
    row_slopes(j, sum, rstd, by);
    for (int64_t i = 0, n; i < j->length; i += n) {
        int64_t at = r * j->length + i, from = (first + i) * j->size;
        n = tile_of(i, j->length);
        bool        kept = j->converts && n == j->length && a->out;
        const void *g = kept ? g_buffer : norm_read(a->grad, at, n, j->work, g_buffer);
        const void *x = kept ? x_buffer : norm_read(a->in, at, n, j->work, x_buffer);
        j->loops->sums_each(g, x, n, mean, rstd, dweight ? dweight + from : NULL, dbias ? dbias + from : NULL);
        if (!a->out) continue;
        j->loops->slope_each(norm_place(a->out, at, j->work, x_buffer), g, x, n, mean, parameter(j, a->weight, first + i), by);
        norm_written(a->out, at, n, j->work, x_buffer);
    }
}
static void group_row_backward(const row_job *j, int64_t r, char *g_buffer, char *x_buffer)
{
    const lc_norm_args *a = j->a;
    int64_t             first = r % a->groups * a->channels, n;
    double              mean = norm_at(a->mean, r, 0), rstd = norm_at(a->rstd, r, 0), all[2] = { 0 }, by[4], scaled[4];
    double             *sum = j->sums + r * a->channels * 2;
    memset(sum, 0, (size_t)(a->channels * 2) * sizeof *sum);
    for (int64_t c = 0; c < a->channels; c++, sum += 2) {
        for (int64_t i = 0, at = r * j->length + c * a->inner; i < a->inner; i += n) {
            n = tile_of(i, a->inner);
            j->loops->dots(norm_read(a->grad, at + i, n, j->work, g_buffer), norm_read(a->in, at + i, n, j->work, x_buffer), n,
                           mean, sum);
        }
        all[0] += sum[0] * norm_at(a->weight, first + c, 1), all[1] += sum[1] * norm_at(a->weight, first + c, 1);
    }
    row_slopes(j, all, rstd, by);
    for (int64_t c = 0; c < a->channels && a->out; c++) {
        memcpy(scaled, by, sizeof by), scaled[0] = norm_at(a->weight, first + c, 1);
        for (int64_t i = 0, at = r * j->length + c * a->inner; i < a->inner; i += n) {
            n = tile_of(i, a->inner);
            const void *g = norm_read(a->grad, at + i, n, j->work, g_buffer),
                       *x = norm_read(a->in, at + i, n, j->work, x_buffer);
            j->loops->slope(norm_place(a->out, at + i, j->work, x_buffer), g, x, n, mean, scaled);
            norm_written(a->out, at + i, n, j->work, x_buffer);
        }
    }
}
static void rows_backward(void *ctx, int64_t begin, int64_t end)
{
    row_job            *j = ctx;
    const lc_norm_args *a = j->a;
    int64_t             width = a->groups * a->channels * j->size;
    size_t              bytes = j->converts ? (size_t)(2 * NORM_TILE * j->size) : 1;
    char               *buffer = cpu_scratch(bytes), *dweight = j->partial ? j->partial + begin / j->grain * 2 * width : NULL;
    if (!buffer) {
        j->failed = 1;
        return;
    }
    char *other = j->converts ? buffer + NORM_TILE * j->size : buffer, *dbias = dweight && a->dbias ? dweight + width : NULL;
    if (dweight) memset(dweight, 0, (size_t)(2 * width));
    for (int64_t r = begin; r < end; r++)
        if (a->inner == 1) layer_row_backward(j, r, buffer, other, a->dweight ? dweight : NULL, dbias);
        else group_row_backward(j, r, buffer, other);
    cpu_scratch_free(buffer, bytes);
}

static void start_rows(row_job *j, lc_dtype dtype, const lc_norm_args *a)
{
    *j = (row_job){ .a = a, .work = cpu_working_dtype(dtype) };
    j->loops = norm_loops_of(j->work), j->length = a->channels * a->inner, j->size = lc_size_of(j->work);
    j->converts = dtype != j->work;
    j->grain = CPU_GRAIN / (j->length + 1) + 1;
}
static int cpu_norm_rows(lc_dtype dtype, const void *args)
{
    const lc_norm_args *a = args;
    row_job             j;
    cpu_epilogue        finish, *finishes = a->finish.epilogue ? &finish : NULL;
    if (finishes) cpu_epilogue_start(&finish, a->finish.epilogue, a->finish.in, a->out);
    if (a->last) return cpu_norm_groups_last(dtype, a, finishes);
    start_rows(&j, dtype, a);
    j.finish = finishes;
    if (a->rows) cpu_parallel(a->rows, j.grain, 2 * a->rows * j.length, rows_forward, &j);
    return j.failed ? norm_no_memory() : 0;
}

/* Adds the chunks in order. */
static void add_partials(const row_job *j, int64_t chunks, lc_tensor *to, int64_t which)
{
    int64_t width = j->a->groups * j->a->channels;
    for (int64_t c = 0; c < chunks && to; c++) {
        const char *from = j->partial + (2 * c + which) * width * j->size;
        if (j->work == LC_f32)
            for (int64_t i = 0; i < width; i++) ((float *)to->data)[i] += ((const float *)from)[i];
        else
            for (int64_t i = 0; i < width; i++) ((double *)to->data)[i] += ((const double *)from)[i];
    }
}
static void add_sums(const row_job *j)
{
    const lc_norm_args *a = j->a;
    for (int64_t p = 0; p < a->groups * a->channels; p++) {
        double dweight = 0, dbias = 0;
        for (int64_t r = p / a->channels; r < a->rows; r += a->groups) {
            const double *sum = j->sums + (r * a->channels + p % a->channels) * 2;
            dweight += sum[1] * norm_at(a->rstd, r, 0), dbias += sum[0];
        }
        norm_set(a->dweight, p, dweight), norm_set(a->dbias, p, dbias);
    }
}
static int cpu_norm_rows_backward(lc_dtype dtype, const void *args)
{
    enum { MOST_CHUNKS = 64, LEAST_ROWS = 8 }; /* keeps partial sums small compared with their input */
    const lc_norm_args *a = args;
    row_job             j;
    if (a->last) return cpu_norm_groups_last(dtype, a, NULL);
    start_rows(&j, dtype, a);
    int64_t width = a->groups * a->channels, chunks = 0;
    bool    parameters = a->dweight || a->dbias;
    if (parameters && a->inner == 1) {
        int64_t least = a->rows / MOST_CHUNKS > LEAST_ROWS ? a->rows / MOST_CHUNKS + 1 : LEAST_ROWS;
        j.grain = j.grain > least ? j.grain : least, chunks = (a->rows + j.grain - 1) / j.grain;
        if (a->dweight) memset(a->dweight->data, 0, (size_t)(width * j.size));
        if (a->dbias) memset(a->dbias->data, 0, (size_t)(width * j.size));
    }
    size_t partial = (size_t)(2 * chunks * width * j.size),
           sums = a->inner == 1 ? 0 : (size_t)(2 * a->rows * a->channels) * sizeof(double);
    if (partial) j.partial = cpu_scratch(partial);
    if (sums) j.sums = cpu_scratch(sums);
    if ((partial && !j.partial) || (sums && !j.sums)) j.failed = 1;
    else if (a->rows) cpu_parallel(a->rows, j.grain, 4 * a->rows * j.length, rows_backward, &j);
    if (!j.failed && partial) add_partials(&j, chunks, a->dweight, 0), add_partials(&j, chunks, a->dbias, 1);
    else if (!j.failed && a->inner != 1 && parameters) add_sums(&j);
    if (j.partial) cpu_scratch_free(j.partial, partial);
    if (j.sums) cpu_scratch_free(j.sums, sums);
    return j.failed ? norm_no_memory() : 0;
}
#define FLOATING (1u << LC_f16 | 1u << LC_bf16 | 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_norm_rows, cpu_norm_rows, FLOATING)
LC_CPU_FINISHES(_norm_rows)
LC_CPU_RUN(_norm_rows_backward, cpu_norm_rows_backward, FLOATING)

/* Batch normalisation: (rows, channels, inner), a mean and a standard deviation per channel.
 *
 * If a channel's elements are contiguous (inner is not small), threads share the channels: all planes of a channel are read
 * for the statistics, and again, from L2 if they fit, to be scaled. Otherwise (vectors, channels last) the tensor is a
 * matrix of channels x inner columns, in which every row has one or a few elements of each channel. Threads share chunks of
 * rows, whose columns are reduced in blocks that stay in cache; blocks, chunks and the columns of a channel are then merged
 * in order, in double. float16 and bfloat16 are converted block by block.
 *
 * Group normalisation with the channels last walks the same columns, image by image; a statistic is then merged from the
 * columns of its group. */
#include "../cpu.h"
#include "norm.h"
#include <math.h>
#include <string.h>

enum { NARROW = 32 }; /* planes of fewer elements are columns */

typedef struct {
    const lc_norm_args  *a;
    const lc_norm_loops *loops;
    lc_dtype             work;
    int64_t              size, width, grain, block; /* of an element; columns; rows of a chunk, of a block */
    double              *partial;                   /* (chunks, 2, width) */
    char                *column;                    /* mean, and three factors: (4, width) of the working dtype */
    bool                 converts, stream;          /* stream: results would evict the input from the caches */
    int64_t              first, rows;               /* of this walk: all rows, or those of an image */
    double              *parameters;                /* groups: sums for dweight and dbias, (2, width) */
    const cpu_epilogue  *finish;
    atomic_int           failed;
} channel_job;

/* ---- per channel: from statistics and sums to factors ---- */
static void finish_statistics(const lc_norm_args *a, int64_t c, const norm_moments *all, double *mean, double *rstd)
{
    double variance = all->square / all->count;
    if (a->fixed) *mean = norm_at(a->mean, c, 0), *rstd = norm_at(a->rstd, c, 0);
    else {
        *mean = all->mean, *rstd = 1 / sqrt(variance + a->eps);
        norm_set(a->mean, c, *mean), norm_set(a->rstd, c, *rstd), norm_set(a->variance, c, variance);
    }
}
static void finish_sums(const lc_norm_args *a, int64_t c, const double sum[2], double by[4])
{
    double n = (double)(a->rows * a->inner), rstd = norm_at(a->rstd, c, 0), scale = rstd * norm_at(a->weight, c, 1);
    norm_set(a->dweight, c, sum[1] * rstd), norm_set(a->dbias, c, sum[0]);
    /* with given statistics the gradient depends on g alone: x is not read, even if NaN */
    by[0] = 1, by[1] = a->fixed ? 0 : rstd * rstd * sum[1] / n, by[2] = a->fixed ? 0 : sum[0] / n, by[3] = scale;
}

/* ---- planes ---- */
#define EACH_TILE(a, c)                                                                                                        \
    for (int64_t r_ = 0, n, at; r_ < (a)->rows; r_++)                                                                          \
        for (int64_t i = 0; i < (a)->inner; i += n)                                                                            \
            if (n = (a)->inner - i < NORM_TILE ? (a)->inner - i : NORM_TILE, at = (r_ * (a)->channels + (c)) * (a)->inner + i, \
                true)
static void forward_channel(const channel_job *j, int64_t c, char *buffer)
{
    const lc_norm_args *a = j->a;
    norm_moments        all = { 0 };
    double              mean, rstd, m, q;
    if (!a->fixed) EACH_TILE(a, c)
        {
            j->loops->moments(norm_read(a->in, at, n, j->work, buffer), n, &m, &q);
            norm_merge(&all, (double)n, m, q);
        }
    finish_statistics(a, c, &all, &mean, &rstd);
    EACH_TILE(a, c)
    {
        const void *x = norm_read(a->in, at, n, j->work, buffer);
        void       *to = norm_place(a->out, at, j->work, buffer);
        j->loops->scale(to, x, n, mean, rstd * norm_at(a->weight, c, 1), norm_at(a->bias, c, 0));
        cpu_finish(j->finish, to, n);
        norm_written(a->out, at, n, j->work, buffer);
    }
}
static void backward_channel(const channel_job *j, int64_t c, char *buffer, char *other)
{
    const lc_norm_args *a = j->a;
    double              mean = norm_at(a->mean, c, 0), sum[2] = { 0 }, by[4];
    if (!a->fixed || a->dweight || a->dbias) EACH_TILE(a, c)
    j->loops->dots(norm_read(a->grad, at, n, j->work, buffer), norm_read(a->in, at, n, j->work, other), n, mean, sum);
    finish_sums(a, c, sum, by);
    if (a->out) EACH_TILE(a, c)
        {
            const void *g = norm_read(a->grad, at, n, j->work, buffer),
                       *x = a->fixed ? g : norm_read(a->in, at, n, j->work, other);
            j->loops->slope(norm_place(a->out, at, j->work, other), g, x, n, mean, by);
            norm_written(a->out, at, n, j->work, other);
        }
}
static void channel_chunk(void *ctx, int64_t begin, int64_t end)
{
    channel_job *j = ctx;
    size_t       bytes = j->converts ? (size_t)(2 * NORM_TILE * j->size) : 1;
    char        *buffer = cpu_scratch(bytes);
    if (!buffer) {
        j->failed = 1;
        return;
    }
    for (int64_t c = begin; c < end; c++)
        if (j->a->grad) backward_channel(j, c, buffer, j->converts ? buffer + NORM_TILE * j->size : buffer);
        else forward_channel(j, c, buffer);
    cpu_scratch_free(buffer, bytes);
}

/* ---- columns ---- */
/* to: (2, width), of the `row` preceding rows in this chunk; zeros at its start */
static void column_sums(const channel_job *j, int64_t row, int64_t rows, const void *x, const void *g, char *first,
                        char *second, double *to)
{
    if (g) {
        j->loops->column_dots(g, x, rows, j->width, j->column, first, second);
        j->loops->column_add(to, first, second, j->width);
    } else {
        j->loops->column_moments(x, rows, j->width, first, second);
        j->loops->column_merge(to, first, second, x, j->width, (double)row, (double)rows);
    }
}
/* Statistics or sums of the columns of a chunk of rows. */
static void reduce_chunk(void *ctx, int64_t begin, int64_t end)
{
    channel_job        *j = ctx;
    const lc_norm_args *a = j->a;
    int64_t             width = j->width, buffer_size = j->converts ? j->block * width : 0;
    size_t              bytes = (size_t)((2 * width + 2 * buffer_size) * j->size);
    char               *first = cpu_scratch(bytes), *second, *x_buffer, *g_buffer;
    if (!first) {
        j->failed = 1;
        return;
    }
    double *to = j->partial + begin / j->grain * 2 * width;
    memset(to, 0, (size_t)(2 * width) * sizeof *to);
    second = first + width * j->size, x_buffer = second + width * j->size, g_buffer = x_buffer + buffer_size * j->size;
    for (int64_t r = begin, n; r < end; r += n) {
        int64_t at = (j->first + r) * width;
        n = end - r < j->block ? end - r : j->block;
        const void *x = norm_read(a->in, at, n * width, j->work, x_buffer);
        const void *g = a->grad ? norm_read(a->grad, at, n * width, j->work, g_buffer) : NULL;
        column_sums(j, r - begin, n, x, g, first, second, to);
    }
    cpu_scratch_free(first, bytes);
}
static void apply_chunk(void *ctx, int64_t begin, int64_t end)
{
    channel_job        *j = ctx;
    const lc_norm_args *a = j->a;
    int64_t             width = j->width, line = width * j->size, buffer_size = j->converts ? j->block * width : 0;
    size_t              bytes = (size_t)(2 * buffer_size * j->size) + 1;
    char               *x_buffer = cpu_scratch(bytes), *g_buffer;
    const void         *by[] = { j->column + line, j->column + 2 * line, j->column + 3 * line };
    if (!x_buffer) {
        j->failed = 1;
        return;
    }
    g_buffer = x_buffer + buffer_size * j->size;
    for (int64_t r = begin, n; r < end; r += n) {
        int64_t at = (j->first + r) * width;
        n = end - r < j->block ? end - r : j->block;
        const void *g = a->grad ? norm_read(a->grad, at, n * width, j->work, g_buffer) : NULL;
        const void *x = g && a->fixed ? g : norm_read(a->in, at, n * width, j->work, x_buffer);
        void       *to = norm_place(a->out, at, j->work, x_buffer);
        if (g) j->loops->column_slope(to, g, x, n, width, j->column, by, j->stream);
        else j->loops->column_scale(to, x, n, width, j->column, by[0], by[1], j->stream);
        cpu_finish(j->finish, to, n * width);
        norm_written(a->out, at, n * width, j->work, x_buffer);
    }
    cpu_scratch_free(x_buffer, bytes);
}
/* For all columns of channel c. */
static void set_column(const channel_job *j, int which, int64_t c, double value)
{
    int64_t each = j->parameters ? 1 : j->a->inner;
    for (int64_t i = c * each; i < (c + 1) * each; i++)
        if (j->work == LC_f32) ((float *)j->column)[which * j->width + i] = (float)value;
        else ((double *)j->column)[which * j->width + i] = value;
}
/* Merges the chunks into the first. */
static void merge_chunks(const channel_job *j, int64_t chunks)
{
    const lc_norm_loops *wide = norm_loops_of(LC_f64);
    for (int64_t k = 1; k < chunks; k++) {
        const double *from = j->partial + k * 2 * j->width;
        int64_t       before = k * j->grain, rows = k + 1 < chunks ? j->grain : j->rows - before;
        if (j->a->grad) wide->column_add(j->partial, from, from + j->width, j->width);
        else wide->column_merge(j->partial, from, from + j->width, NULL, j->width, (double)before, (double)rows);
    }
}
static void finish_columns(const channel_job *j, int64_t chunks)
{
    const lc_norm_args *a = j->a;
    const double       *all = j->partial;
    for (int64_t c = 0; c < a->channels; c++) {
        norm_moments of_c = { 0 };
        double       sum[2] = { 0 }, mean, rstd, by[4];
        for (int64_t i = c * a->inner; i < (c + 1) * a->inner && chunks; i++)
            if (a->grad) sum[0] += all[i], sum[1] += all[j->width + i];
            else norm_merge(&of_c, (double)a->rows, all[i], all[j->width + i]);
        if (a->grad) {
            finish_sums(a, c, sum, by);
            set_column(j, 1, c, by[3]), set_column(j, 2, c, by[1] * by[3]), set_column(j, 3, c, by[2] * by[3]);
        } else {
            finish_statistics(a, c, &of_c, &mean, &rstd);
            set_column(j, 0, c, mean), set_column(j, 1, c, rstd * norm_at(a->weight, c, 1));
            set_column(j, 2, c, norm_at(a->bias, c, 0));
        }
    }
}
/* The same for the groups of an image, whose columns are its channels. */
static void finish_groups(const channel_job *j)
{
    const lc_norm_args *a = j->a;
    const double       *all = j->partial, *products = all + j->width;
    for (int64_t g = 0; g < a->groups; g++) {
        int64_t      row = j->first / a->inner * a->groups + g, from = g * a->channels, past = from + a->channels;
        double       n = (double)(a->channels * a->inner), mean, rstd, sum[2] = { 0 };
        norm_moments of_g = { 0 };
        if (!a->grad) {
            for (int64_t c = from; c < past; c++) norm_merge(&of_g, (double)a->inner, all[c], products[c]);
            mean = of_g.mean, rstd = 1 / sqrt(of_g.square / n + a->eps);
            norm_set(a->mean, row, mean), norm_set(a->rstd, row, rstd);
        } else mean = norm_at(a->mean, row, 0), rstd = norm_at(a->rstd, row, 0);
        for (int64_t c = from; c < past && a->grad; c++) {
            double weight = norm_at(a->weight, c, 1);
            sum[0] += weight * all[c], sum[1] += weight * products[c];
            j->parameters[c] += products[c] * rstd, j->parameters[j->width + c] += all[c];
        }
        for (int64_t c = from; c < past; c++) {
            set_column(j, 0, c, mean), set_column(j, 1, c, rstd * norm_at(a->weight, c, 1));
            set_column(j, 2, c, a->grad ? rstd * rstd * rstd * sum[1] / n : norm_at(a->bias, c, 0));
            if (a->grad) set_column(j, 3, c, rstd * sum[0] / n);
        }
    }
}
/* Allocates what a walk over j->rows rows needs; returns the number of chunks. */
static int64_t start_columns(channel_job *j, bool reduces, size_t *partial, size_t *column)
{
    enum {
        MOST_CHUNKS = 64,
        BLOCK = 8 * NORM_TILE,
        LEAST_BLOCK = 16,
        MOST_BLOCK = 64,
        MANY = 16 << 20
    }; /* a block stays in L2; bytes */
    int64_t block = BLOCK / j->width, each = j->rows / MOST_CHUNKS + 1;
    j->stream = !j->converts && !j->finish && j->rows * j->width * j->size >= MANY;
    j->block = block < LEAST_BLOCK ? LEAST_BLOCK : block > MOST_BLOCK ? MOST_BLOCK : block;
    j->grain = CPU_GRAIN / j->width + 1 > each ? CPU_GRAIN / j->width + 1 : each;
    j->grain = (j->grain + j->block - 1) / j->block * j->block; /* a chunk has whole blocks */
    int64_t chunks = reduces ? (j->rows + j->grain - 1) / j->grain : 0;
    *partial = (size_t)(2 * chunks * j->width) * sizeof(double) + 1, *column = (size_t)(4 * j->width * j->size);
    j->partial = cpu_scratch(*partial), j->column = cpu_scratch(*column);
    if (!j->partial || !j->column) j->failed = 1;
    return chunks;
}
static void end_columns(channel_job *j, size_t partial, size_t column)
{
    if (j->partial) cpu_scratch_free(j->partial, partial);
    if (j->column) cpu_scratch_free(j->column, column);
}
static void run_columns(channel_job *j)
{
    const lc_norm_args *a = j->a;
    size_t              partial, column;
    j->rows = a->rows;
    int64_t chunks = start_columns(j, !a->fixed || a->dweight || a->dbias, &partial, &column), cost = 2 * j->rows * j->width;
    for (int64_t c = 0; c < a->channels && a->grad && !j->failed; c++) set_column(j, 0, c, norm_at(a->mean, c, 0));
    if (!j->failed && chunks) cpu_parallel(j->rows, j->grain, cost, reduce_chunk, j);
    if (!j->failed) merge_chunks(j, chunks), finish_columns(j, chunks);
    if (!j->failed && a->out) cpu_parallel(j->rows, j->grain, cost, apply_chunk, j);
    end_columns(j, partial, column);
}
/* rows: images x groups; a row of columns is a pixel. */
int cpu_norm_groups_last(lc_dtype dtype, const lc_norm_args *a, const cpu_epilogue *finish)
{
    lc_dtype    work = cpu_working_dtype(dtype);
    channel_job j = { .a = a, .loops = norm_loops_of(work), .work = work, .converts = work != dtype, .rows = a->inner };
    j.finish = finish;
    j.size = lc_size_of(work), j.width = a->groups * a->channels;
    size_t  partial, column, parameters = (size_t)(2 * j.width) * sizeof(double);
    int64_t chunks = start_columns(&j, true, &partial, &column), cost = 2 * j.rows * j.width;
    if (!(j.parameters = cpu_scratch(parameters))) j.failed = 1;
    else memset(j.parameters, 0, parameters);
    for (int64_t image = 0; image * a->groups < a->rows && !j.failed; image++) {
        j.first = image * a->inner;
        for (int64_t c = 0; c < j.width && a->grad; c++)
            set_column(&j, 0, c, norm_at(a->mean, image * a->groups + c / a->channels, 0));
        cpu_parallel(j.rows, j.grain, cost, reduce_chunk, &j);
        if (!j.failed) merge_chunks(&j, chunks), finish_groups(&j);
        if (!j.failed && a->out) cpu_parallel(j.rows, j.grain, cost, apply_chunk, &j);
    }
    for (int64_t c = 0; c < j.width && !j.failed; c++)
        norm_set(a->dweight, c, j.parameters[c]), norm_set(a->dbias, c, j.parameters[j.width + c]);
    if (j.parameters) cpu_scratch_free(j.parameters, parameters);
    end_columns(&j, partial, column);
    return j.failed ? norm_no_memory() : 0;
}

static int cpu_norm_channels(lc_dtype dtype, const void *args)
{
    const lc_norm_args *a = args;
    lc_dtype            work = cpu_working_dtype(dtype);
    channel_job         j = { .a = a, .loops = norm_loops_of(work), .work = work, .converts = work != dtype };
    int64_t             each = a->rows * a->inner;
    cpu_epilogue        finish;
    if (a->finish.epilogue) cpu_epilogue_start(&finish, a->finish.epilogue, a->finish.in, a->out), j.finish = &finish;
    j.size = lc_size_of(work), j.width = a->channels * a->inner;
    if (!a->channels) return 0;
    if (each && a->inner < NARROW) run_columns(&j);
    else cpu_parallel(a->channels, CPU_GRAIN / (each + 1) + 1, 4 * a->channels * each, channel_chunk, &j);
    return j.failed ? norm_no_memory() : 0;
}
#define FLOATING (1u << LC_f16 | 1u << LC_bf16 | 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_norm_channels, cpu_norm_channels, FLOATING)
LC_CPU_FINISHES(_norm_channels)
LC_CPU_RUN(_norm_channels_backward, cpu_norm_channels, FLOATING)

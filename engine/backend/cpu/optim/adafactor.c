/* Adafactor: the squared gradient of a matrix is kept factored, as means of its rows and of its columns; their product
 * approximates it.
 *
 * Three passes over a parameter, each bound by memory: squares of its rows and columns (and of the parameter, whose size
 * scales the step); the size of the update, which is clipped; the update itself. Between passes only one number per row and
 * column is kept: the update is computed twice rather than stored. Sums are doubles.
 *
 * A parameter is (matrices, rows, columns); a vector is split into rows of PIECE elements, which have no sums. Large
 * parameters are split between the threads, one after the other: into ranges of matrices, or of rows if there is one matrix;
 * such ranges then have separate column sums. Small parameters are units of work themselves. A row that is strided or of
 * another dtype passes through tiles of PIECE elements. Everything is allocated before anything is written. */
#include "../cpu.h"
#include "optimizer.h"
#include <math.h>
#include <string.h>

enum { PIECE = 1024, RANGE = 1 << 15, MOST_RANGES = 16 };

typedef struct { /* a parameter */
    const lc_adafactor_numbers *numbers;
    const lc_adafactor_loops   *loops;
    lc_tensor                  *p, *grad, *row, *column;
    lc_dtype                    work;
    bool                        alone; /* a vector */
    int64_t                     matrices, rows, columns;
    int                         ranges;
    double                     *of_rows, *sums; /* matrices * rows; 3 per range: squares of p, of grad, of the update */
    double                     *of_columns;     /* max(ranges, matrices) * columns */
    double                      by;
} adafactor_state;

static int64_t workspace_size(const adafactor_state *f)
{
    int64_t ranges = f->matrices > f->ranges ? f->matrices : f->ranges;
    return f->alone ? 3 * (int64_t)f->ranges : f->matrices * f->rows + ranges * f->columns + 3 * (int64_t)f->ranges;
}

static void describe(const lc_adafactor_args *a, const lc_step_loops *loops, int i, adafactor_state *f)
{
    lc_tensor *p = a->params[i];
    lc_dtype   work = cpu_working_dtype((lc_dtype)p->dtype);
    *f = (adafactor_state){
        .numbers = &a->numbers[i], .p = p, .grad = a->grads[i], .row = a->rows[i], .column = a->columns[i], .work = work
    };
    f->loops = work == LC_f64 ? &loops->adafactor_f64 : &loops->adafactor_f32;
    f->alone = p->ndim < 2;
    f->columns = f->alone ? PIECE : p->shape[p->ndim - 1];
    f->rows = f->alone ? (p->numel + PIECE - 1) / PIECE : p->shape[p->ndim - 2];
    f->matrices = f->alone || !p->numel ? 1 : p->numel / (f->rows * f->columns);
    int64_t units = f->matrices > 1 ? f->matrices : f->rows, ranges = p->numel / RANGE;
    ranges = ranges < units ? ranges : units;
    f->ranges = ranges < 1 ? 1 : ranges > MOST_RANGES ? MOST_RANGES : (int)ranges;
}

/* ---- rows in the layout of the loops ---- */
static char *element(const lc_tensor *t, int64_t row, int64_t column,
                     int64_t width) /* of a matrix: row counts over all matrices */
{
    int64_t size = lc_size_of((lc_dtype)t->dtype), at = 0;
    if (t->is_contiguous) return t->data + (row * width + column) * size;
    if (t->ndim == 1) return t->data + (row * width + column) * t->stride[0] * size;
    for (int d = t->ndim - 2; d >= 0; row /= t->shape[d--]) at += row % t->shape[d] * t->stride[d];
    return t->data + (at + column * t->stride[t->ndim - 1]) * size;
}
static int64_t step_of(const lc_tensor *t) { return (t->ndim ? t->stride[t->ndim - 1] : 1) * lc_size_of((lc_dtype)t->dtype); }
static void   *loaded(const adafactor_state *f, const lc_tensor *t, int64_t row, int64_t column, int64_t n, char *tile)
{
    char   *at = element(t, row, column, f->columns);
    int64_t size = lc_size_of(f->work);
    if (t->dtype == f->work && (n == 1 || step_of(t) == size)) return at;
    cpu_move(f->work, tile, size, (lc_dtype)t->dtype, at, step_of(t), n);
    return tile;
}
static void store(const adafactor_state *f, lc_tensor *t, int64_t row, int64_t column, int64_t n, void *from, char *tile)
{
    if (from == tile)
        cpu_move((lc_dtype)t->dtype, element(t, row, column, f->columns), step_of(t), f->work, tile, lc_size_of(f->work), n);
}
static double read_factor(lc_tensor *t, int64_t row, int64_t column, int64_t width)
{
    double value;
    cpu_move(LC_f64, (char *)&value, 8, (lc_dtype)t->dtype, element(t, row, column, width), 8, 1);
    return value;
}
static void write_factor(lc_tensor *t, int64_t row, int64_t column, int64_t width, double value)
{
    cpu_move((lc_dtype)t->dtype, element(t, row, column, width), 8, LC_f64, (const char *)&value, 8, 1);
}

/* ---- passes ---- */
typedef enum { MEASURE, SQUARES, APPLY } pass;
static void run_row(const adafactor_state *f, pass pass, int64_t row, double *columns, double *sums)
{
    _Alignas(64) char tiles[3][PIECE * sizeof(double)];
    int64_t           width = f->alone && (row + 1) * PIECE > f->p->numel ? f->p->numel - row * PIECE : f->columns;
    lc_adafactor_row  r = { .share = f->numbers->share,
                            .floor = f->numbers->eps * f->numbers->eps,
                            .shrink = f->numbers->shrink };
    r.alone = f->alone, r.by = f->by, r.row = f->alone ? 1 : f->of_rows[row];
    double own[3] = { 0 };
    for (int64_t at = 0, n; at < width; at += n) {
        n = width - at < PIECE ? width - at : PIECE;
        r.grad = loaded(f, f->grad, row, at, n, tiles[0]);
        if (pass != SQUARES) r.p = loaded(f, f->p, row, at, n, tiles[1]);
        if (pass != MEASURE) {
            r.v = tiles[2];
            if (f->alone) r.v = loaded(f, f->row, row, at, n, tiles[2]);
            else cpu_move(f->work, tiles[2], lc_size_of(f->work), LC_f64, (const char *)(columns + at), 8, n);
        }
        if (pass == MEASURE) f->loops->measure(&r, columns ? columns + at : NULL, own, n);
        else if (pass == SQUARES) own[2] += f->loops->squares(&r, n);
        else {
            f->loops->apply(&r, n);
            store(f, f->p, row, at, n, r.p, tiles[1]);
            if (f->alone) store(f, f->row, row, at, n, r.v, tiles[2]);
        }
    }
    if (pass == MEASURE && !f->alone) f->of_rows[row] = own[1];
    sums[0] += own[0], sums[2] += own[2];
}
static void run_rows(const adafactor_state *f, pass pass, int64_t begin, int64_t end, double *columns, double *sums)
{
    for (int64_t row = begin; row < end; row++) run_row(f, pass, row, columns, sums);
}

/* Updates the averages of one matrix with this step's means; of_rows becomes the factor of its columns' factors. */
static double moved(double x, double to, double w) { return w < 0.5 ? x + w * (to - x) : to - (to - x) * (1 - w); }
static void   average(const adafactor_state *f, int64_t matrix)
{
    double *of_rows = f->of_rows + matrix * f->rows, *of_columns = f->of_columns + matrix * f->columns, mean = 0,
           eps = f->numbers->eps;
    for (int64_t i = 0; i < f->rows; i++) {
        int64_t row = matrix * f->rows + i;
        of_rows[i] = moved(read_factor(f->row, row, 0, 1), of_rows[i] / (double)f->columns, f->numbers->share);
        write_factor(f->row, row, 0, 1, of_rows[i]);
        mean += of_rows[i];
    }
    mean /= (double)f->rows;
    mean = mean < eps ? eps : mean;
    for (int64_t i = 0; i < f->rows; i++) of_rows[i] /= mean;
    for (int64_t j = 0; j < f->columns; j++) {
        of_columns[j] =
            moved(read_factor(f->column, matrix, j, f->columns), of_columns[j] / (double)f->rows, f->numbers->share);
        write_factor(f->column, matrix, j, f->columns, of_columns[j]);
    }
}

typedef struct {
    const adafactor_state *f;
    pass                   pass;
} job;
static void run_range(const job *j, int64_t range)
{
    const adafactor_state *f = j->f;
    double                *sums = f->sums + 3 * range;
    int64_t                units = f->matrices > 1 ? f->matrices : f->rows;
    int64_t                from = range * units / f->ranges, to = (range + 1) * units / f->ranges;
    if (f->matrices == 1) {
        double *columns = f->alone ? NULL : f->of_columns + (j->pass == MEASURE ? range * f->columns : 0);
        return run_rows(f, j->pass, from, to, columns, sums);
    }
    for (int64_t m = from; m < to; m++) {
        double *columns = f->of_columns + m * f->columns;
        run_rows(f, j->pass, m * f->rows, (m + 1) * f->rows, columns, sums);
        if (j->pass != MEASURE) continue;
        average(f, m);
        run_rows(f, SQUARES, m * f->rows, (m + 1) * f->rows, columns, sums);
    }
}
static void run_ranges(void *ctx, int64_t begin, int64_t end)
{
    for (int64_t range = begin; range < end; range++) run_range(ctx, range);
}
static void run_pass(const adafactor_state *f, pass pass)
{
    job j = { f, pass };
    if (f->ranges > 1) cpu_parallel(f->ranges, 1, 2 * f->p->numel, run_ranges, &j);
    else run_range(&j, 0);
}

static void run_parameter(adafactor_state *f, double *workspace)
{
    double size = (double)f->p->numel, sums[3] = { 0 };
    memset(workspace, 0, (size_t)workspace_size(f) * sizeof *workspace);
    f->sums = workspace, f->of_rows = workspace + 3 * f->ranges, f->of_columns = f->of_rows + f->matrices * f->rows;
    run_pass(f, MEASURE);
    if (f->matrices == 1) {
        for (int k = 1; k < f->ranges && !f->alone; k++)
            for (int64_t j = 0; j < f->columns; j++) f->of_columns[j] += f->of_columns[k * f->columns + j];
        if (!f->alone) average(f, 0);
        run_pass(f, SQUARES);
    }
    for (int k = 0; k < 3 * f->ranges; k++) sums[k % 3] += f->sums[k];
    double own = sqrt(sums[0]) / sqrt(size), update = sqrt(sums[2]) / (sqrt(size) * f->numbers->most);
    f->by =
        f->numbers->sign * f->numbers->rate * (own > f->numbers->least ? own : f->numbers->least) / (update > 1 ? update : 1);
    run_pass(f, APPLY);
}

/* ---- all parameters ---- */
typedef struct {
    const lc_adafactor_args *args;
    const lc_step_loops     *loops;
    char                    *workspace;
    int64_t                  each; /* doubles of workspace per small parameter; a large one has all of it */
} all;
static void run_small(void *ctx, int64_t begin, int64_t end)
{
    const all *a = ctx;
    for (int64_t i = begin; i < end; i++) {
        adafactor_state f;
        describe(a->args, a->loops, (int)i, &f);
        if (f.ranges == 1 && f.p->numel) run_parameter(&f, (double *)a->workspace + begin / 16 * a->each);
    }
}

static int cpu_adafactor(UNUSED lc_dtype compute, const void *args)
{
    const lc_adafactor_args *a = args;
    all                      work = { .args = a, .loops = cpu_step_loops() };
    int64_t                  large = 0, numel = 0;
    adafactor_state          f;
    for (int i = 0; i < a->n; i++) {
        describe(a, work.loops, i, &f);
        int64_t size = workspace_size(&f);
        if (f.ranges > 1) large = size > large ? size : large;
        else work.each = size > work.each ? size : work.each, numel += f.p->numel;
    }
    int64_t small = (a->n + 15) / 16 * work.each; /* a chunk of 16 parameters has its own workspace */
    size_t  bytes = (size_t)(small > large ? small : large) * sizeof(double);
    if (!(work.workspace = cpu_scratch(bytes))) return -1;
    for (int i = 0; i < a->n; i++) {
        describe(a, work.loops, i, &f);
        if (f.ranges > 1) run_parameter(&f, (double *)work.workspace);
    }
    cpu_parallel(a->n, 16, 8 * numel, run_small, &work);
    cpu_scratch_free(work.workspace, bytes);
    return 0;
}

#define FLOATING (1u << LC_f16 | 1u << LC_bf16 | 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_fused_adafactor_, cpu_adafactor, FLOATING)

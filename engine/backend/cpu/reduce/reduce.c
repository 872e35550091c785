/* Walks a fold over a tensor.
 *
 * Dimensions are sorted into kept and reduced ones, each group merged where strides allow. Then one of two ways:
 *   inner  memory runs along a reduced dimension: each output folds rows of contiguous elements
 *   outer  memory runs along a kept dimension, the columns: rows of columns are folded into that many states side by side
 * Elements that are not contiguous or not of the fold's dtype pass through a tile. Short reduced rows go the outer way too,
 * with columns gathered: that costs a move per element instead of a start and a finish per few elements.
 *
 * A unit is one output (inner) or a block of columns (outer). Threads share the units if there are many; otherwise the
 * outermost reduced dimension is cut into slices whose states are merged in order. Until then each slice keeps only its
 * state, and slices are so few that they take little memory. (Narrower blocks instead of slices need none, but rows of 512
 * bytes are read at 0.6 of the speed of rows of 2 KiB.) Both depend on shapes only, so results do not depend on the number
 * of threads. For ops with an index, reduced dimensions keep their order: the index counts in it. */
#include "../cpu.h"
#include <stdlib.h>
#include <string.h>

enum { TILE_ROWS = 8, SHORT_ROW = 24, MANY_UNITS = 16, MAX_SLICES = 64 };
enum { PER_COLUMN = 32, MOST_KEPT = 128 << 10 }; /* bytes of a state's two arrays; of all states that wait to be merged */

typedef struct {
    int64_t size, in, value, index; /* steps in bytes */
} dim;
typedef struct {
    const lc_fold *fold;
    lc_dtype       from, work, result, to; /* of the input, the fold, its result, the output */
    lc_dtype       found, at;              /* of the fold's index and of its output: int64, except in aminmax */
    bool           outer, rows;            /* rows: see rows_are_plain */
    int            n_kept, n_reduced;      /* outer: the columns are the last kept dimension */
    dim            kept[LC_MAX_DIMS + 1], reduced[LC_MAX_DIMS + 1];
    int64_t columns, block, blocks; /* outer: size of the column dimension, of a block, number of blocks; inner: 1, 1, 1 */
    int64_t units, slices, slice;   /* slice: extent in reduced[0] */
    int64_t inner_count;            /* elements of one position of reduced[0] */
    char   *in, *value, *index;
    double  parameter;
    char   *partial; /* units x slices, of state_bytes() each; NULL if there is one slice */
} plan;
typedef struct {
    _Alignas(64) char data[TILE_ROWS * FOLD_COLUMNS * 16];
} tile;

/* ---- sorting dimensions ---- */

static void add_dim(dim *dims, int *n, dim d, bool by_stride)
{
    int at = *n;
    while (by_stride && at > 0 && llabs(dims[at - 1].in) < llabs(d.in)) at--; /* outermost first */
    memmove(dims + at + 1, dims + at, (size_t)(*n - at) * sizeof *dims);
    dims[at] = d;
    ++*n;
}
static int merge_dims(dim *dims, int n)
{
    int last = 0;
    for (int i = 1; i < n; i++) {
        dim *o = &dims[last], *d = &dims[i];
        if (o->in == d->in * d->size && o->value == d->value * d->size && o->index == d->index * d->size)
            d->size *= o->size, *o = *d;
        else dims[++last] = *d;
    }
    return n ? last + 1 : 0;
}
static void sort_dims(plan *p, const lc_reduce_args *a)
{
    int64_t in = lc_size_of(p->from), value = a->value ? lc_size_of(a->value->dtype) : 0;
    p->n_kept = p->n_reduced = 0;
    for (int d = 0; d < a->in->ndim; d++) {
        dim entry = { a->in->shape[d], a->in->stride[d] * in, 0, 0 };
        if (entry.size == 1) continue;
        if (a->mask >> d & 1) add_dim(p->reduced, &p->n_reduced, entry, !a->index);
        else {
            entry.value = a->value ? a->value_stride[d] * value : 0;
            entry.index = a->index ? a->index_stride[d] * lc_size_of(p->at) : 0;
            add_dim(p->kept, &p->n_kept, entry, true);
        }
    }
    p->n_kept = merge_dims(p->kept, p->n_kept);
    p->n_reduced = merge_dims(p->reduced, p->n_reduced);
    if (p->n_reduced == 0) p->reduced[p->n_reduced++] = (dim){ .size = 1 };
}

/* ---- planning ---- */

/* Rows in the fold's layout, one output each: nothing to decide per row. */
static bool rows_are_plain(const plan *p, const lc_reduce_args *a)
{
    int64_t size = lc_size_of(p->work);
    return p->n_kept == 1 && p->n_reduced == 1 && !a->index && p->from == p->work && p->to == p->result &&
           p->reduced[0].in == size && llabs(p->kept[0].in) >= size && p->reduced[0].size > 0;
}

static void make_plan(plan *p, const lc_reduce_args *a)
{
    sort_dims(p, a);
    dim    *row = &p->reduced[p->n_reduced - 1], *column = &p->kept[p->n_kept ? p->n_kept - 1 : 0];
    int64_t total = 1, kept = 1;
    p->rows = rows_are_plain(p, a);
    p->outer = !(p->rows && p->fold->rows) && p->n_kept && (llabs(column->in) < llabs(row->in) || row->size < SHORT_ROW) &&
               column->size > 1;
    for (int i = 0; i < p->n_reduced; i++) total *= p->reduced[i].size;
    for (int i = 0; i < p->n_kept - p->outer; i++) kept *= p->kept[i].size;
    p->columns = p->outer ? column->size : 1;
    p->block = p->columns < FOLD_COLUMNS ? p->columns : FOLD_COLUMNS;
    p->blocks = (p->columns + FOLD_COLUMNS - 1) / FOLD_COLUMNS;
    p->units = kept * p->blocks;
    p->inner_count = p->reduced[0].size ? total / p->reduced[0].size : 0;
    p->slices = 1;
    if (p->units < MANY_UNITS && a->in->numel >= 2 * CPU_GRAIN) {
        int64_t wanted = a->in->numel / (CPU_GRAIN * p->units) + 1, most = MOST_KEPT / (PER_COLUMN * p->block);
        if (most > MAX_SLICES) most = MAX_SLICES;
        p->slices = wanted > most / p->units ? most / p->units : wanted;
        if (p->slices > p->reduced[0].size) p->slices = p->reduced[0].size;
        if (p->slices < 1) p->slices = 1;
    }
    p->slice = (p->reduced[0].size + p->slices - 1) / (p->slices ? p->slices : 1);
}

/* ---- folding ---- */

static void fold_columns(const plan *p, lc_fold_state *s, tile *t, const char *in, int64_t n, int64_t rows, int64_t first)
{
    int64_t step = p->reduced[p->n_reduced - 1].in, size = lc_size_of(p->work), column = p->kept[p->n_kept - 1].in;
    if (p->from == p->work && column == size) return p->fold->outer(s, in, rows, step, n, first);
    for (int64_t r = 0, m; r < rows; r += m) {
        m = rows - r < TILE_ROWS ? rows - r : TILE_ROWS;
        for (int64_t i = 0; i < m; i++)
            cpu_move(p->work, t->data + i * n * size, size, p->from, in + (r + i) * step, column, n);
        p->fold->outer(s, t->data, m, n * size, n, first + r);
    }
}
static void fold_row(const plan *p, lc_fold_state *s, tile *t, const char *in, int64_t n, int64_t first)
{
    int64_t step = p->reduced[p->n_reduced - 1].in, size = lc_size_of(p->work);
    enum { ROOM = TILE_ROWS * FOLD_COLUMNS };
    if (p->from == p->work && (step == size || n == 1)) return p->fold->inner(s, in, n, first);
    for (int64_t at = 0, m; at < n; at += m) {
        m = n - at < ROOM ? n - at : ROOM;
        cpu_move(p->work, t->data, size, p->from, in + at * step, step, m);
        p->fold->inner(s, t->data, m, first + at);
    }
}

/* Every position of the reduced dimensions, reduced[0] from begin to end. */
static void fold_slice(const plan *p, lc_fold_state *s, tile *t, const char *in, int64_t n, int64_t begin, int64_t end)
{
    int        last = p->n_reduced - 1;
    int64_t    index[LC_MAX_DIMS + 1], row = last ? p->reduced[last].size : end - begin, first = begin * p->inner_count;
    const dim *red = p->reduced;
    in += begin * red[0].in;
    for (int d = 1; d < last; d++) index[d] = 0;
    if (begin >= end || p->inner_count == 0) return;
    for (int64_t at = begin;;) {
        if (p->outer) fold_columns(p, s, t, in, n, row, first);
        else fold_row(p, s, t, in, row, first);
        first += row;
        int d = last - 1;
        for (; d > 0; d--) {
            in += red[d].in;
            if (++index[d] < red[d].size) break;
            in -= red[d].in * red[d].size;
            index[d] = 0;
        }
        if (d > 0) continue;
        if (last == 0 || ++at >= end) return;
        in += red[0].in;
    }
}

/* Divisions are expensive beside a short row: the usual case, one kept dimension, has none. */
static void unit_at(const plan *p, int64_t unit, char **in, char **value, char **index, int64_t *n)
{
    int64_t block = p->blocks == 1 ? 0 : unit % p->blocks, rest = p->blocks == 1 ? unit : unit / p->blocks;
    int64_t start = block * p->block;
    dim     column = p->outer ? p->kept[p->n_kept - 1] : (dim){ 0 };
    *n = p->columns - start < p->block ? p->columns - start : p->block;
    *in = p->in + start * column.in, *value = p->value + start * column.value, *index = p->index + start * column.index;
    for (int d = p->n_kept - 1 - p->outer; d >= 0; d--) {
        int64_t i = d ? rest % p->kept[d].size : rest;
        if (d) rest /= p->kept[d].size;
        *in += i * p->kept[d].in, *value += i * p->kept[d].value, *index += i * p->kept[d].index;
    }
}

static void finish_unit(const plan *p, const lc_fold_state *s, tile *t, char *value, char *index, int64_t n)
{
    int64_t size = lc_size_of(p->result), step = p->outer ? p->kept[p->n_kept - 1].value : size;
    int64_t at_size = lc_size_of(p->found), at_step = p->outer ? p->kept[p->n_kept - 1].index : at_size;
    int64_t at[FOLD_COLUMNS];
    bool    direct = p->value && p->to == p->result && step == size;
    bool    direct_index = p->index && p->at == p->found && at_step == at_size;
    p->fold->finish(s, n, p->parameter,
                    !p->value ? NULL
                    : direct  ? value
                              : t->data,
                    !p->index      ? NULL
                    : direct_index ? (void *)index
                                   : at);
    if (p->value && !direct) cpu_move(p->to, value, step, p->result, t->data, size, n);
    if (p->index && !direct_index) cpu_move(p->at, index, at_step, p->found, (char *)at, at_size, n);
}

/* Saves and restores a state. */
static size_t state_bytes(const plan *p) { return (size_t)(PER_COLUMN * p->block) + sizeof(int64_t); }
static void   keep_state(const plan *p, const lc_fold_state *s, int64_t task)
{
    size_t bytes = (size_t)(PER_COLUMN / 2 * p->block);
    char  *at = p->partial + (size_t)task * state_bytes(p);
    memcpy(at, s->a, bytes), memcpy(at + bytes, s->b, bytes), memcpy(at + 2 * bytes, &s->count, sizeof s->count);
}
static void take_state(const plan *p, lc_fold_state *s, int64_t task)
{
    size_t      bytes = (size_t)(PER_COLUMN / 2 * p->block);
    const char *at = p->partial + (size_t)task * state_bytes(p);
    memcpy(s->a, at, bytes), memcpy(s->b, at + bytes, bytes), memcpy(&s->count, at + 2 * bytes, sizeof s->count);
}

/* Tasks are units x slices. */
static void run_tasks(void *ctx, int64_t begin, int64_t end)
{
    const plan   *p = ctx;
    tile          t; /* neither is cleared: start and moves write before anything reads */
    lc_fold_state s;
    char         *in, *value, *index;
    int64_t       n;
    for (int64_t task = begin; task < end; task++) {
        int64_t unit = p->slices == 1 ? task : task / p->slices, slice = task - unit * p->slices;
        int64_t from = slice * p->slice, to = from + p->slice;
        unit_at(p, unit, &in, &value, &index, &n);
        p->fold->start(&s, n);
        fold_slice(p, &s, &t, in, n, from, to < p->reduced[0].size ? to : p->reduced[0].size);
        if (p->partial) keep_state(p, &s, task);
        else finish_unit(p, &s, &t, value, index, n);
    }
}

void cpu_fold_rows(const lc_fold *f, const char *in, int64_t in_step, char *value, int64_t value_step, int64_t rows, int64_t n,
                   double parameter)
{
    lc_fold_state s; /* not cleared */
    if (f->rows && n <= FOLD_ROW) return f->rows(in, in_step, value, value_step, rows, n, parameter);
    for (int64_t row = 0; row < rows; row++, in += in_step, value += value_step) {
        f->start(&s, 1);
        f->inner(&s, in, n, 0);
        f->finish(&s, 1, parameter, value, NULL);
    }
}
static void run_plain_rows(void *ctx, int64_t begin, int64_t end)
{
    const plan *p = ctx;
    dim         kept = p->kept[0];
    cpu_fold_rows(p->fold, p->in + begin * kept.in, kept.in, p->value + begin * kept.value, kept.value, end - begin,
                  p->reduced[0].size, p->parameter);
}

static void merge_slices(const plan *p)
{
    tile          t;
    lc_fold_state s, later;
    char         *in, *value, *index;
    int64_t       n;
    for (int64_t unit = 0; unit < p->units; unit++) {
        unit_at(p, unit, &in, &value, &index, &n);
        take_state(p, &s, unit * p->slices);
        for (int64_t i = 1; i < p->slices; i++) {
            take_state(p, &later, unit * p->slices + i);
            p->fold->merge(&s, &later, n);
        }
        finish_unit(p, &s, &t, value, index, n);
    }
}

static lc_dtype result_of(lc_op_id op, lc_dtype work)
{
    return op == LC_OP_any || op == LC_OP_all ? LC_b8 : op == LC_OP_count_nonzero || op == LC_OP__count_numbers ? LC_i64 : work;
}

/* The fold and the dtypes on the way; false: there is no such fold. */
bool cpu_find_fold(lc_op_id op, lc_dtype compute, lc_dtype from, lc_dtype to, cpu_rows *r)
{
    r->work = cpu_working_dtype(compute), r->result = result_of(op, r->work);
    if (r->work == LC_f32 && cpu_working_dtype(from) == LC_f32 && lc_cpu_folds[op][from]) r->work = from; /* halves in place */
    r->plain = from == r->work && to == r->result;
    return (r->fold = lc_cpu_folds[op][r->work]) != NULL;
}
static bool find_fold(plan *p, lc_op_id op, lc_dtype compute, const lc_reduce_args *a)
{
    cpu_rows r;
    bool     found = cpu_find_fold(op, compute, (lc_dtype)a->in->dtype, a->value ? (lc_dtype)a->value->dtype : compute, &r);
    p->from = (lc_dtype)a->in->dtype, p->work = r.work, p->result = r.result, p->fold = r.fold;
    p->to = a->value ? (lc_dtype)a->value->dtype : p->result;
    p->found = op == LC_OP_aminmax ? p->result : LC_i64, p->at = a->index ? (lc_dtype)a->index->dtype : p->found;
    return found;
}

/* Rows that the driver folds one by one, in their dtype or, as halves, through one tile. */
bool cpu_row_fold(lc_op_id op, lc_dtype compute, const lc_reduce_args *a)
{
    plan p;
    if (!a->value || a->index || a->value->numel == 0 || a->in->numel == 0 || !find_fold(&p, op, compute, a)) return false;
    make_plan(&p, a);
    if (p.outer || p.slices != 1) return false;
    if (p.rows) return p.work == cpu_working_dtype(p.work);
    int64_t n = p.reduced[0].size;
    bool    halves = cpu_working_dtype(p.from) == LC_f32 && cpu_working_dtype(p.to) == LC_f32 && p.result == LC_f32;
    return halves && !lc_is_float8(p.from) && !lc_is_float8(p.to) && p.n_kept == 1 && p.n_reduced == 1 && n > 0 &&
           p.reduced[0].in == lc_size_of(p.from) && llabs(p.kept[0].in) >= lc_size_of(p.from) && n <= TILE_ROWS * FOLD_COLUMNS;
}

int cpu_reduce(lc_op_id op, lc_dtype compute, const lc_reduce_args *a)
{
    plan p;
    if (!find_fold(&p, op, compute, a)) return LC_NO_KERNEL;
    p.in = a->in->data, p.value = a->value ? a->value->data : NULL, p.index = a->index ? a->index->data : NULL;
    p.parameter = a->parameter, p.partial = NULL;
    if ((a->value ? a->value : a->index)->numel == 0) return 0;
    make_plan(&p, a);
    size_t bytes = (size_t)(p.units * p.slices) * state_bytes(&p);
    lc_verbose_log("  %s of %s%s: %lld units in %lld slices", p.outer ? "columns" : "rows", lc_dtypes[p.work].name,
                   p.rows             ? ""
                   : p.from != p.work ? ", converted in tiles"
                                      : ", found one by one",
                   (long long)p.units, (long long)p.slices);
    if (p.slices > 1 && !(p.partial = cpu_scratch(bytes))) return -1; /* lc_alloc has set the error */
    int64_t work = a->in->numel / (p.units * (p.slices ? p.slices : 1)) + 1;
    cpu_parallel(p.units * p.slices, CPU_GRAIN / work + 1, a->in->numel,
                 p.rows && !p.outer && p.slices == 1 ? run_plain_rows : run_tasks, &p);
    if (p.partial) {
        merge_slices(&p);
        cpu_scratch_free(p.partial, bytes);
    }
    return 0;
}

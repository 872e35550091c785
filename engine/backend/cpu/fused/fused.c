/* Runs fused programs (backend/fused.h): an interpreter over the loops and folds that single calls use.
 *
 * The iteration is cut into tiles: pieces of one row, or several whole rows that lie evenly in every operand. All steps run on
 * one tile before the next, so registers stay in L1. A step costs one indirect call per tile, or per row of the tile if an
 * operand has one element per row. Operands that are strided or of another dtype pass through a tile of their own, exactly as
 * in elementwise.c: that is what makes the bits equal.
 *
 * Registers of halves hold halves: every step of float16 or bfloat16 rounds its result, as the call alone does, and a loop that
 * reads and writes halves does that on the way. (Registers of rounded float32 would need a pass more per step.) */
#include "../../fused.h"
#include "../cpu.h"
#include <stdlib.h>
#include <string.h>

enum { TILE = 512, FOLD_TILE = 1024, OPERANDS = 4, MOST_BYTES = 160 << 10 };

typedef struct {
    lc_cpu_loop    loop;
    const lc_fold *fold;
    double         parameter;
    int            n_in, in[OPERANDS], out;
    lc_dtype       want[OPERANDS + 1]; /* of the result and of the operands */
    lc_dtype       scalar;             /* of operands that are one element for a row */
    bool           column;             /* one element per row */
    bool           copy;               /* no loop: a conversion */
    bool           converted;          /* a fold through conversions */
    bool           plain;              /* a tile is one call of the loop: every operand is used where it lies */
    unsigned       scalars;            /* plain: operands of one element */
    unsigned       rough;              /* operands that are rounded to `compute` first */
    lc_dtype       compute;
} step;
typedef struct {
    lc_fused_place place;
    lc_dtype       dtype;
    int            size;
    bool           column;
    int64_t        at;             /* REGISTER: byte in the registers */
    int64_t        step, row_step; /* MEMORY: bytes to the next element and to the next row of a tile */
} value;
struct lc_fused {
    int     n_steps, n_values, n_dims; /* n_dims: outer dimensions, outermost first */
    int64_t size[LC_MAX_DIMS];
    int64_t (*stride)[LC_MAX_DIMS]; /* per value */
    int64_t row;                    /* elements of a row */
    int64_t columns, rows;          /* of a tile */
    int64_t across, tiles;          /* tiles in a row, or in the innermost outer dimension; tiles in all */
    int64_t registers, temporary;   /* bytes of a thread: the registers; one of the tiles for conversions */
    bool    scalars;                /* there are SCALAR values */
    step    steps[LC_FUSED_STEPS];
    value  *values;
    _Alignas(16) char numbers[LC_FUSED_STEPS][OPERANDS][16];
};

typedef struct {
    const lc_fused *f;
    char *const    *data;
    char (*numbers)[OPERANDS][16];
} job;
typedef struct { /* of a thread */
    const job *j;
    char      *registers, *temporary;
    char      *at[LC_FUSED_VALUES];
} state;
typedef struct {
    const char *p;
    int64_t     row_step; /* bytes */
    bool        scalar;   /* one element for a row */
} operand;

/* ---- one tile: rows x n elements ---- */

static char *temporary_of(const state *s, int k) { return s->temporary + k * s->j->f->temporary; }

/* The dtype in which a step takes an operand that is one element for a row. */
static lc_dtype wanted_scalar(const step *t, int k) { return t->want[k + 1] == t->want[0] ? t->scalar : t->want[k + 1]; }

static operand find_operand(const state *s, int i, int k, int64_t rows, int64_t n)
{
    const step  *t = &s->j->f->steps[i];
    const value *v = &s->j->f->values[t->in[k]];
    int64_t      step = v->size, row_step = n * v->size;
    if (v->place >= LC_FUSED_SCALAR) return (operand){ s->j->numbers[i][k], 0, true };
    const char *p = s->at[t->in[k]];
    if (v->place == LC_FUSED_MEMORY) step = v->step, row_step = v->row_step;
    else if (v->column) step = 0, row_step = v->size;
    lc_dtype want = step == 0 ? wanted_scalar(t, k) : t->want[k + 1];
    int64_t  size = lc_size_of(want);
    if (v->dtype == want && (step == size || step == 0)) return (operand){ p, row_step, step == 0 };
    char *to = temporary_of(s, k);
    if (step == 0) {
        cpu_move(want, to, size, v->dtype, p, row_step, rows);
        return (operand){ to, size, true };
    }
    for (int64_t r = 0; r < rows; r++) cpu_move(want, to + r * n * size, size, v->dtype, p + r * row_step, step, n);
    return (operand){ to, n * size, false };
}

static void run_row_step(const state *s, int i, int64_t rows, int64_t n)
{
    const step  *t = &s->j->f->steps[i];
    const value *out = &s->j->f->values[t->out];
    const void  *in[OPERANDS];
    operand      o[OPERANDS];
    unsigned     scalars = 0;
    int64_t      size = lc_size_of(t->want[0]);
    bool         memory = out->place == LC_FUSED_MEMORY;
    bool         direct = out->dtype == t->want[0] && (!memory || out->step == size);
    char        *to = direct ? s->at[t->out] : temporary_of(s, OPERANDS);
    int64_t      to_step = direct && memory ? out->row_step : n * size;
    bool         whole = rows == 1 || to_step == n * size;
    for (int k = 0; k < t->n_in; k++) {
        o[k] = find_operand(s, i, k, rows, n);
        in[k] = o[k].p;
        scalars |= (unsigned)o[k].scalar << k;
        whole &= rows == 1 || o[k].row_step == (o[k].scalar ? 0 : n * lc_size_of(t->want[k + 1]));
    }
    if (whole) t->loop(to, in, scalars, rows * n);
    else
        for (int64_t r = 0; r < rows; r++) {
            t->loop(to + r * to_step, in, scalars, n);
            for (int k = 0; k < t->n_in; k++) in[k] = (const char *)in[k] + o[k].row_step;
        }
    if (direct) return;
    int64_t step = memory ? out->step : out->size, row_step = memory ? out->row_step : n * out->size;
    for (int64_t r = 0; r < rows; r++)
        cpu_move(out->dtype, s->at[t->out] + r * row_step, step, t->want[0], to + r * to_step, size, n);
}

/* rows x n elements as rows of n, or, of columns, as one row. */
static void run_copy(const state *s, int i, int64_t rows, int64_t n)
{
    const step  *t = &s->j->f->steps[i];
    const value *in = &s->j->f->values[t->in[0]], *out = &s->j->f->values[t->out];
    const char  *from = in->place >= LC_FUSED_SCALAR ? s->j->numbers[i][0] : s->at[t->in[0]];
    lc_dtype     dtype = in->place >= LC_FUSED_SCALAR ? t->want[1] : in->dtype;
    bool         to_memory = out->place == LC_FUSED_MEMORY, from_memory = in->place == LC_FUSED_MEMORY;
    int64_t      step = from_memory ? in->step : in->column ? 0 : in->size, row_step = step * n;
    int64_t      to_step = to_memory ? out->step : out->size, to_row_step = to_memory ? out->row_step : out->size * n;
    if (from_memory || in->column) row_step = from_memory ? in->row_step : in->size;
    if (in->place >= LC_FUSED_SCALAR) step = row_step = 0;
    if (t->column) step = row_step, to_step = to_memory ? out->row_step : out->size, n = rows, rows = 1;
    else if (row_step == n * step && to_row_step == n * to_step) n *= rows, rows = 1;
    for (int64_t r = 0; r < rows; r++)
        cpu_move(out->dtype, s->at[t->out] + r * to_row_step, to_step, dtype, from + r * row_step, step, n);
}

/* One element per row: the rows of the tile are the elements. */
static void run_column_step(const state *s, int i, int64_t rows)
{
    const step  *t = &s->j->f->steps[i];
    const value *out = &s->j->f->values[t->out];
    const void  *in[OPERANDS];
    unsigned     scalars = 0;
    for (int k = 0; k < t->n_in; k++) {
        const value *v = &s->j->f->values[t->in[k]];
        lc_dtype     want = t->want[k + 1];
        int64_t      size = lc_size_of(want), step = v->place == LC_FUSED_MEMORY ? v->row_step : v->size;
        in[k] = s->at[t->in[k]];
        if (v->place >= LC_FUSED_SCALAR) in[k] = s->j->numbers[i][k], scalars |= 1u << k;
        else if (v->dtype != want || step != size) {
            cpu_move(want, temporary_of(s, k), size, v->dtype, s->at[t->in[k]], step, rows);
            in[k] = temporary_of(s, k);
        }
    }
    int64_t size = lc_size_of(t->want[0]), step = out->place == LC_FUSED_MEMORY ? out->row_step : out->size;
    bool    direct = out->dtype == t->want[0] && step == size;
    char   *to = direct ? s->at[t->out] : temporary_of(s, OPERANDS);
    t->loop(to, in, scalars, rows);
    if (!direct) cpu_move(out->dtype, s->at[t->out], step, t->want[0], to, size, rows);
}

static void run_fold(const state *s, const step *t, int64_t rows, int64_t n)
{
    const value *in = &s->j->f->values[t->in[0]], *out = &s->j->f->values[t->out];
    const char  *from = s->at[t->in[0]];
    char        *to = s->at[t->out];
    int64_t      step = in->place == LC_FUSED_MEMORY ? in->row_step : n * in->size;
    int64_t      to_step = out->place == LC_FUSED_MEMORY ? out->row_step : out->size;
    if (!t->converted) {
        cpu_fold_rows(t->fold, from, step, to, to_step, rows, n, t->parameter);
        return;
    }
    lc_fold_state     f; /* not cleared: start does what is needed */
    _Alignas(16) char found[16];
    int64_t           size = lc_size_of(t->want[1]);
    for (int64_t r = 0; r < rows; r++, from += step, to += to_step) {
        bool direct = in->dtype == t->want[1];
        if (!direct) cpu_move(t->want[1], temporary_of(s, 0), size, in->dtype, from, in->size, n);
        t->fold->start(&f, 1);
        t->fold->inner(&f, direct ? from : temporary_of(s, 0), n, 0);
        t->fold->finish(&f, 1, t->parameter, found, NULL);
        cpu_move(out->dtype, to, out->size, t->want[0], found, lc_size_of(t->want[0]), 1);
    }
}

static void run_tile(const state *s, int64_t rows, int64_t n)
{
    const lc_fused *f = s->j->f;
    for (int i = 0; i < f->n_steps; i++)
        if (f->steps[i].plain) {
            const step *t = &f->steps[i];
            const void *in[OPERANDS];
            for (int k = 0; k < t->n_in; k++) in[k] = s->at[t->in[k]];
            t->loop(s->at[t->out], in, t->scalars, rows * n);
        } else if (f->steps[i].fold) run_fold(s, &f->steps[i], rows, n);
        else if (f->steps[i].copy) run_copy(s, i, rows, n);
        else if (f->steps[i].column) run_column_step(s, i, rows);
        else run_row_step(s, i, rows, n);
}

/* ---- all tiles ---- */

/* Pointers to position `index` of the outer dimensions [0, n). */
static void go_to(state *s, int64_t index, int n)
{
    const lc_fused *f = s->j->f;
    for (int v = 0; v < f->n_values; v++)
        if (f->values[v].place == LC_FUSED_MEMORY) s->at[v] = s->j->data[v];
    for (int d = n - 1; d >= 0; d--) {
        int64_t at = d ? index % f->size[d] : index;
        if (d) index /= f->size[d];
        for (int v = 0; at && v < f->n_values; v++)
            s->at[v] += f->values[v].place == LC_FUSED_MEMORY ? at * f->stride[v][d] : 0;
    }
}
static void advance(state *s, int64_t rows, int64_t columns)
{
    const lc_fused *f = s->j->f;
    for (int v = 0; v < f->n_values; v++)
        if (f->values[v].place == LC_FUSED_MEMORY)
            s->at[v] += rows ? rows * f->values[v].row_step : columns * f->values[v].step;
}

static void run_tiles(void *ctx, int64_t begin, int64_t end)
{
    const job      *j = ctx;
    const lc_fused *f = j->f;
    state           s;
    bool            pieces = f->columns < f->row; /* of rows; else blocks of rows */
    int64_t         inner = f->n_dims ? f->size[f->n_dims - 1] : 1, fresh = -1;
    char            memory[f->registers + (OPERANDS + 1) * f->temporary + 64];
    s.j = j;
    s.registers = (char *)(((uintptr_t)memory + 63) & ~(uintptr_t)63), s.temporary = s.registers + f->registers;
    for (int v = 0; v < f->n_values; v++) s.at[v] = s.registers + f->values[v].at;
    for (int i = 0; i < f->n_steps; i++)
        for (int k = 0; k < f->steps[i].n_in; k++)
            if (f->steps[i].scalars >> k & 1) s.at[f->steps[i].in[k]] = j->numbers[i][k];
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t line = tile / f->across, within = tile - line * f->across;
        if (line != fresh) {
            go_to(&s, line, pieces ? f->n_dims : f->n_dims - (f->n_dims > 0));
            if (within && pieces) advance(&s, 0, within * f->columns);
            else if (within) advance(&s, within * f->rows, 0);
            fresh = line;
        }
        int64_t first = within * (pieces ? f->columns : f->rows), all = pieces ? f->row : inner;
        int64_t many = pieces ? f->columns : f->rows;
        if (first + many > all) many = all - first;
        run_tile(&s, pieces ? 1 : many, pieces ? many : f->row);
        if (pieces) advance(&s, 0, many);
        else advance(&s, many, 0);
    }
}

static void take_number(const step *t, int k, char *to, lc_dtype from, const char *number)
{
    _Alignas(16) char rounded[16];
    if (t->rough >> k & 1 && from != t->compute) {
        cpu_move(t->compute, rounded, 0, from, number, 0, 1);
        from = t->compute, number = rounded;
    }
    cpu_move(wanted_scalar(t, k), to, 0, from, number, 0, 1);
}

static int run_fused(const lc_fused *f, char *const *data)
{
    job               j = { f, data, (char(*)[OPERANDS][16])f->numbers };
    _Alignas(16) char numbers[f->scalars ? f->n_steps : 1][OPERANDS][16];
    if (f->scalars) {
        memcpy(numbers, f->numbers, sizeof numbers);
        for (int i = 0; i < f->n_steps; i++)
            for (int k = 0; k < f->steps[i].n_in; k++) {
                const value *v = &f->values[f->steps[i].in[k]];
                if (v->place == LC_FUSED_SCALAR) take_number(&f->steps[i], k, numbers[i][k], v->dtype, data[f->steps[i].in[k]]);
            }
        j.numbers = numbers;
    }
    int64_t elements = f->columns * f->rows, grain = CPU_GRAIN / 4 / elements + 1;
    if (f->tiles) cpu_parallel(f->tiles, grain, f->tiles * elements, run_tiles, &j);
    return 0;
}

/* ---- making one ---- */

static void drop_fused(lc_fused *f)
{
    if (f) free(f->stride), free(f->values), free(f);
}

/* Dimensions of one element go; the others are sorted by the strides of the first result in memory, unless rows have a
 * meaning; neighbours that every operand steps through evenly become one. */
static int lay_out_dims(lc_fused *f, const lc_fused_program *p)
{
    int order[LC_MAX_DIMS], n = 0, row = 0, lead = -1;
    for (int v = 0; v < p->n_values; v++)
        if (p->values[v].place == LC_FUSED_MEMORY && (lead < 0 || (p->values[v].written && !p->values[lead].written))) lead = v;
    for (int d = 0; d < p->ndim; d++)
        if (p->shape[d] != 1) {
            int at = n++;
            for (; at > 0 && p->row_dims == 0 && lead >= 0; at--) {
                if (p->values[lead].stride[order[at - 1]] >= p->values[lead].stride[d]) break;
                order[at] = order[at - 1];
            }
            order[at] = d;
            row += d >= p->ndim - p->row_dims;
        }
    if (p->row_dims && row == 0) return -1;
    for (int i = 0; i < n; i++) {
        int  d = order[i];
        bool even = f->n_dims > 0 && i != n - row; /* rows do not merge with what is outside them */
        for (int v = 0; v < p->n_values && even; v++)
            even = p->values[v].place != LC_FUSED_MEMORY || f->stride[v][f->n_dims - 1] == p->values[v].stride[d] * p->shape[d];
        if (!even) f->size[f->n_dims++] = 1;
        f->size[f->n_dims - 1] *= p->shape[d];
        for (int v = 0; v < p->n_values; v++) f->stride[v][f->n_dims - 1] = p->values[v].stride[d];
    }
    int64_t elements = 1;
    for (int d = p->ndim - p->row_dims; d < p->ndim; d++) elements *= p->shape[d];
    if (f->n_dims == 0) f->size[f->n_dims++] = 1;
    f->row = f->size[--f->n_dims];
    if (p->row_dims && f->row != elements) return -1; /* some operand does not step through a row evenly */
    for (int v = 0; v < p->n_values; v++) {
        f->values[v].step = f->stride[v][f->n_dims];
        f->values[v].row_step = f->n_dims ? f->stride[v][f->n_dims - 1] : 0;
    }
    return 0;
}

/* A register is free again after the last step that reads it. Columns and rows have registers of their own. */
static void assign_registers(lc_fused *f)
{
    int     last[LC_FUSED_VALUES], owner[2][LC_FUSED_VALUES], n_slots[2] = { 0, 0 };
    int64_t elements[2] = { f->columns * f->rows, f->rows }, start[2];
    int     slot[LC_FUSED_VALUES];
    for (int i = 0; i < f->n_steps; i++) {
        last[f->steps[i].out] = i;
        for (int k = 0; k < f->steps[i].n_in; k++) last[f->steps[i].in[k]] = i;
    }
    for (int v = 0; v < f->n_values; v++) slot[v] = -1;
    for (int i = 0; i < f->n_steps; i++) {
        int v = f->steps[i].out, kind = f->values[v].column;
        if (f->values[v].place != LC_FUSED_REGISTER || slot[v] >= 0) continue;
        int at = 0;
        for (; at < n_slots[kind]; at++) {
            int o = owner[kind][at];
            if (last[o] < i || (last[o] == i && f->values[o].size == f->values[v].size && !f->steps[i].fold)) break;
        }
        n_slots[kind] += at == n_slots[kind];
        owner[kind][at] = v, slot[v] = at;
    }
    int64_t slot_bytes[2];
    for (int kind = 0; kind < 2; kind++) {
        int size = 1;
        for (int v = 0; v < f->n_values; v++)
            if (slot[v] >= 0 && f->values[v].column == kind && f->values[v].size > size) size = f->values[v].size;
        slot_bytes[kind] = (elements[kind] * size + 63) & ~(int64_t)63;
        start[kind] = kind ? start[0] + slot_bytes[0] * n_slots[0] : 0;
    }
    f->registers = start[1] + slot_bytes[1] * n_slots[1];
    for (int v = 0; v < f->n_values; v++)
        if (slot[v] >= 0) f->values[v].at = start[f->values[v].column] + slot[v] * slot_bytes[f->values[v].column];
}

/* Bytes of an element that passes through a tile for conversions; 0: none does. */
static int64_t widest_temporary(const lc_fused *f)
{
    int64_t widest = 0;
    for (int i = 0; i < f->n_steps; i++) {
        const step *t = &f->steps[i];
        for (int k = 0; k <= t->n_in && !t->copy; k++) {
            const value *v = &f->values[k ? t->in[k - 1] : t->out];
            if (v->place >= LC_FUSED_SCALAR) continue;
            bool    memory = v->place == LC_FUSED_MEMORY, one = memory ? v->step == 0 : v->column;
            int64_t size = lc_size_of(k && one && !t->fold ? wanted_scalar(t, k - 1) : t->want[k]);
            bool    moved = v->dtype != t->want[k] || size != lc_size_of(t->want[k]);
            if (memory) moved |= t->column ? v->row_step != v->size : v->step != v->size && v->step != 0;
            if (moved && size > widest) widest = size;
        }
    }
    return widest;
}

/* Halves where they lie, if all are of one dtype and there is such a loop; else through tiles of float32. */
static int find_loop(const lc_fused *f, const lc_fused_step *from, step *t)
{
    bool    half = f->values[t->out].dtype == from->dtype;
    cpu_row row;
    for (int k = 0; k < t->n_in; k++) {
        const value *v = &f->values[t->in[k]];
        half &= v->dtype == from->dtype || v->place >= LC_FUSED_SCALAR;
    }
    if (!(half && cpu_row_loop(from->row, from->dtype, from->n_in, true, &row)) &&
        !cpu_row_loop(from->row, from->dtype, from->n_in, false, &row))
        return -1;
    t->loop = row.loop, t->scalar = row.scalar, t->rough = row.rough, t->compute = from->dtype;
    memcpy(t->want, row.want, sizeof t->want);
    for (int k = 0; k < t->n_in; k++) {
        const value *v = &f->values[t->in[k]];
        if (row.rough >> k & 1 && v->dtype != from->dtype && v->place < LC_FUSED_SCALAR) return -1;
    }
    return 0;
}

static int lay_out_steps(lc_fused *f, const lc_fused_program *p)
{
    for (int i = 0; i < p->n_steps; i++) {
        const lc_fused_step *from = &p->steps[i];
        step                *t = &f->steps[i];
        *t = (step){ .n_in = from->n_in, .out = from->out, .parameter = from->parameter };
        memcpy(t->in, from->in, sizeof t->in);
        t->column = f->values[t->out].column;
        if (from->fold) {
            const value *in = &f->values[t->in[0]], *out = &f->values[t->out];
            cpu_rows     rows;
            if (!cpu_find_fold(from->row, from->dtype, in->dtype, out->dtype, &rows) || !out->column ||
                (in->place == LC_FUSED_MEMORY && in->step != in->size))
                return -1;
            t->fold = rows.fold, t->converted = !rows.plain, t->want[0] = rows.result, t->want[1] = rows.work;
            continue;
        }
        if (from->copy) t->copy = true, t->want[0] = t->want[1] = t->scalar = f->values[t->out].dtype;
        else if (find_loop(f, from, t) < 0) return -1;
        for (int k = 0; k < t->n_in; k++) {
            const lc_fused_value *v = &p->values[t->in[k]];
            if (v->place == LC_FUSED_NUMBER) take_number(t, k, f->numbers[i][k], v->dtype, v->number);
            f->scalars |= v->place == LC_FUSED_SCALAR;
        }
    }
    return 0;
}

static bool lies_plain(const lc_fused *f, const value *v, lc_dtype want)
{
    if (v->dtype != want || v->column) return false;
    if (v->place == LC_FUSED_REGISTER) return true;
    return v->step == v->size && (f->rows == 1 || v->row_step == f->row * v->size);
}
static void find_plain_steps(lc_fused *f)
{
    for (int i = 0; i < f->n_steps; i++) {
        step *t = &f->steps[i];
        t->plain = !t->fold && !t->copy && !t->column && lies_plain(f, &f->values[t->out], t->want[0]);
        for (int k = 0; k < t->n_in; k++) {
            const value *v = &f->values[t->in[k]];
            if (v->place == LC_FUSED_NUMBER) t->scalars |= 1u << k; /* a number belongs to one operand */
            else t->plain &= v->place != LC_FUSED_SCALAR && lies_plain(f, v, t->want[k + 1]);
        }
    }
}

static lc_fused *make_fused(const lc_fused_program *p)
{
    lc_fused *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->values = calloc((size_t)p->n_values + 1, sizeof *f->values);
    f->stride = calloc((size_t)p->n_values + 1, sizeof *f->stride);
    if (!f->values || !f->stride) return drop_fused(f), NULL;
    f->n_steps = p->n_steps, f->n_values = p->n_values;
    for (int v = 0; v < p->n_values; v++)
        f->values[v] = (value){ .place = p->values[v].place,
                                .dtype = p->values[v].dtype,
                                .size = (int)lc_size_of(p->values[v].dtype),
                                .column = p->values[v].column };
    if (lay_out_dims(f, p) < 0 || lay_out_steps(f, p) < 0) return drop_fused(f), NULL;
    int64_t rows = 1, inner = f->n_dims ? f->size[f->n_dims - 1] : 1;
    for (int d = 0; d < f->n_dims; d++) rows *= f->size[d];
    bool whole = p->row_dims > 0 || f->row <= TILE; /* tiles of whole rows */
    f->columns = whole ? f->row : TILE;
    f->rows = whole ? (p->row_dims ? FOLD_TILE : TILE) / (f->row ? f->row : 1) : 1;
    if (f->rows < 1) f->rows = 1;
    if (f->rows > inner) f->rows = inner ? inner : 1;
    if (!whole) f->across = (f->row + TILE - 1) / TILE, f->tiles = rows * f->across;
    else f->across = (inner + f->rows - 1) / f->rows, f->tiles = inner ? rows / inner * f->across : 0;
    if (f->row == 0) f->tiles = 0;
    assign_registers(f);
    find_plain_steps(f);
    f->temporary = (f->columns * f->rows * widest_temporary(f) + 63) & ~(int64_t)63;
    if (f->registers + (OPERANDS + 1) * f->temporary > MOST_BYTES) return drop_fused(f), NULL;
    return f;
}

static bool takes_row(lc_op_id row, lc_dtype compute, int n_in, UNUSED lc_dtype out)
{
    cpu_row found;
    return n_in <= OPERANDS && cpu_row_loop(row, compute, n_in, false, &found);
}
static bool takes_fold(lc_op_id op, lc_dtype compute, const lc_reduce_args *args) { return cpu_row_fold(op, compute, args); }
static bool takes_copy(lc_dtype to, lc_dtype from) { return !lc_is_float8(to) && !lc_is_float8(from); }

const struct lc_fuser lc_cpu_fuser = { .takes_row = takes_row,
                                       .takes_fold = takes_fold,
                                       .takes_copy = takes_copy,
                                       .takes_epilogue = cpu_takes_epilogue,
                                       .make = make_fused,
                                       .run = run_fused,
                                       .drop = drop_fused };

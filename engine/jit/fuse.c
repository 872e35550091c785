/* Regions: runs of neighbouring steps over one iteration shape. See fuse.h.
 *
 * Steps keep their order, so a region is right if running it tile by tile cannot be told from running it step by step: memory
 * that the region writes may be seen by its steps only through one value, at the same positions. Everything else ends the
 * region. */
#include "fuse.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    int      value; /* of the graph; LC_VALUE_NUMBER */
    bool     column, written;
    int64_t  stride[LC_MAX_DIMS]; /* bytes, per dimension of the iteration */
    lc_dtype number_dtype;
    _Alignas(16) char number[16];
} entry;
typedef struct {
    const lc_graph *g;
    lc_device       device;
    int             ndim, row_dims, n_steps, n_entries;
    int64_t         shape[LC_MAX_DIMS], numel;
    int             steps[LC_FUSED_STEPS];
    int             in[LC_FUSED_STEPS][LC_ROW_OPERANDS], out[LC_FUSED_STEPS];
    entry           entries[LC_FUSED_VALUES];
} builder;

/* ---- geometry ---- */
static const lc_tensor *shell(const builder *b, int v) { return &b->g->values[v].shell; }

static int64_t rows_of(const builder *b) /* elements of a column */
{
    int64_t n = 1;
    for (int d = 0; d < b->ndim - b->row_dims; d++) n *= b->shape[d];
    return n;
}
static bool has_shape(const lc_tensor *t, const int64_t *shape, int ndim)
{
    return t->ndim == ndim && lc_same_sizes(t->shape, shape, ndim);
}

static void dense_strides(const builder *b, int ndim, int64_t size, int64_t *stride)
{
    for (int d = ndim - 1; d >= 0; d--) stride[d] = size, size *= b->shape[d];
}

/* Strides of a value with one element per position; false: it has other positions. */
static bool row_strides(const builder *b, const lc_tensor *t, int64_t *stride)
{
    int64_t size = lc_size_of(t->dtype);
    if (t->numel != b->numel) return false;
    if (has_shape(t, b->shape, b->ndim)) {
        for (int d = 0; d < b->ndim; d++) stride[d] = b->shape[d] == 1 ? 0 : t->stride[d] * size;
        return true;
    }
    if (t->is_contiguous) {
        dense_strides(b, b->ndim, size, stride);
        for (int d = 0; d < b->ndim; d++)
            if (b->shape[d] == 1) stride[d] = 0;
    }
    return t->is_contiguous;
}
static bool column_strides(const builder *b, const lc_tensor *t, int64_t *stride)
{
    int     lead = b->ndim - b->row_dims;
    int64_t size = lc_size_of(t->dtype);
    if (b->row_dims == 0 || t->numel != rows_of(b)) return false;
    for (int d = lead; d < b->ndim; d++) stride[d] = 0;
    bool kept = t->ndim == b->ndim && lc_same_sizes(t->shape, b->shape, lead);
    for (int d = lead; d < b->ndim && kept; d++) kept = t->shape[d] == 1;
    if (kept || has_shape(t, b->shape, lead))
        for (int d = 0; d < lead; d++) stride[d] = t->stride[d] * size;
    else if (t->is_contiguous) dense_strides(b, lead, size, stride);
    else return false;
    for (int d = 0; d < lead; d++)
        if (b->shape[d] == 1) stride[d] = 0;
    return true;
}
static bool broadcast_strides(const builder *b, const lc_tensor *t, int64_t *stride)
{
    if (t->ndim > b->ndim) return false;
    for (int d = 0; d < b->ndim; d++) {
        int from = d - (b->ndim - t->ndim);
        stride[d] = from >= 0 && t->shape[from] != 1 ? t->stride[from] * lc_size_of(t->dtype) : 0;
        if (from >= 0 && t->shape[from] != 1 && t->shape[from] != b->shape[d]) return false;
    }
    return true;
}

/* ---- values ---- */

/* The same elements in the same order. */
static bool same_value(const builder *b, int v, int w)
{
    const lc_traced_value *x = &b->g->values[v], *y = &b->g->values[w];
    return v == w || (x->buffer == y->buffer && x->offset == y->offset && x->shell.dtype == y->shell.dtype &&
                      x->shell.is_contiguous && y->shell.is_contiguous && x->shell.numel == y->shell.numel);
}

/* The program's value for value v of the graph; -1: its memory is seen in another way too, or there are too many. */
static int enter(builder *b, int v, const int64_t *stride, bool column, bool writes)
{
    int found = -1;
    for (int i = 0; i < b->n_entries; i++) {
        entry *e = &b->entries[i];
        if (e->value < 0 || b->g->values[e->value].buffer != b->g->values[v].buffer) continue;
        if (same_value(b, e->value, v) && !memcmp(e->stride, stride, (size_t)b->ndim * sizeof *stride) &&
            (e->column == column || !(e->written || writes)))
            found = i;
        else if (e->written || writes) return -1;
    }
    if (found >= 0) {
        b->entries[found].written |= writes, b->entries[found].column |= column;
        return found;
    }
    if (b->n_entries == LC_FUSED_VALUES) return -1;
    entry *e = &b->entries[b->n_entries];
    *e = (entry){ .value = v, .column = column, .written = writes };
    memcpy(e->stride, stride, (size_t)b->ndim * sizeof *stride);
    return b->n_entries++;
}
static int enter_number(builder *b, const lc_step_row *row, int k)
{
    if (b->n_entries == LC_FUSED_VALUES) return -1;
    entry *e = &b->entries[b->n_entries];
    *e = (entry){ .value = LC_VALUE_NUMBER, .number_dtype = row->number_dtype[k] };
    memcpy(e->number, row->number[k], sizeof e->number);
    return b->n_entries++;
}

/* ---- steps ---- */
static void start(builder *b, const lc_step *s)
{
    const lc_tensor *t = shell(b, s->row->fold ? s->row->in[0] : s->out[0]);
    b->n_steps = b->n_entries = 0, b->ndim = t->ndim, b->row_dims = s->row->fold ? s->row->row_dims : 0, b->numel = t->numel;
    memcpy(b->shape, t->shape, (size_t)t->ndim * sizeof *b->shape);
    b->device = s->device;
}

static bool add_fold(builder *b, const lc_step *s, int at)
{
    int64_t          stride[LC_MAX_DIMS];
    const lc_tensor *in = shell(b, s->row->in[0]), *out = shell(b, s->out[0]);
    if (!has_shape(in, b->shape, b->ndim) || (b->row_dims && b->row_dims != s->row->row_dims)) return false;
    b->row_dims = s->row->row_dims;
    if (!row_strides(b, in, stride) || (b->in[at][0] = enter(b, s->row->in[0], stride, false, false)) < 0) return false;
    return column_strides(b, out, stride) && (b->out[at] = enter(b, s->out[0], stride, true, true)) >= 0;
}

static bool add_row(builder *b, const lc_step *s, int at)
{
    int64_t          stride[LC_MAX_DIMS];
    const lc_tensor *out = shell(b, s->out[0]);
    bool             column = !row_strides(b, out, stride), exact = has_shape(out, b->shape, b->ndim);
    if (column && !column_strides(b, out, stride)) return false;
    for (int k = 0; k < s->row->n_in; k++) {
        int64_t at_in[LC_MAX_DIMS];
        int     v = s->row->in[k];
        if (v == LC_VALUE_NUMBER) {
            if ((b->in[at][k] = enter_number(b, s->row, k)) < 0) return false;
            continue;
        }
        const lc_tensor *t = shell(b, v);
        bool             is_column = false;
        if (t->numel == 1 && b->numel != 1) memset(at_in, 0, sizeof at_in);
        else if (column) {
            if (!column_strides(b, t, at_in)) return false;
            is_column = true;
        } else if (!row_strides(b, t, at_in)) {
            int64_t as_column[LC_MAX_DIMS];
            if (!exact || !broadcast_strides(b, t, at_in)) return false;
            is_column = column_strides(b, t, as_column) && !memcmp(at_in, as_column, (size_t)b->ndim * sizeof *at_in);
        }
        if ((b->in[at][k] = enter(b, v, at_in, is_column, false)) < 0) return false;
    }
    return (b->out[at] = enter(b, s->out[0], stride, column, true)) >= 0;
}

static bool add(builder *b, int index)
{
    const lc_step *s = &b->g->steps[index];
    if (b->n_steps == LC_FUSED_STEPS || !s->row || s->device.kind != b->device.kind || s->device.index != b->device.index)
        return false;
    builder *kept = malloc(sizeof *kept); /* a step that does not fit leaves nothing behind */
    if (!kept) return false;
    *kept = *b;
    bool fits = b->numel > 0 && (s->row->fold ? add_fold(b, s, b->n_steps) : add_row(b, s, b->n_steps));
    if (fits) b->steps[b->n_steps++] = index;
    else *b = *kept;
    free(kept);
    return fits;
}

/* ---- regions ---- */

/* uses: how many ends of steps of the plan touch a buffer; a buffer that only the region touches, and that it writes before it
 * reads, needs no memory. */
static bool is_register(const builder *b, const entry *e, const int *uses, const bool *kept)
{
    int buffer = b->g->values[e->value].buffer, here = 0;
    if (!e->written || b->g->buffers[buffer].kind != LC_BUFFER_MADE || kept[buffer]) return false;
    for (int i = 0; i < b->n_steps; i++) {
        const lc_step *s = &b->g->steps[b->steps[i]];
        for (int k = 0; k < s->n_in + s->n_out; k++) here += s->in[k] >= 0 && b->g->values[s->in[k]].buffer == buffer;
    }
    if (here != uses[buffer]) return false;
    for (int i = 0; i < b->n_steps; i++) {
        for (int k = 0; k < b->g->steps[b->steps[i]].row->n_in; k++)
            if (&b->entries[b->in[i][k]] == e) return false;
        if (&b->entries[b->out[i]] == e) return true;
    }
    return false;
}

static bool make_region(const builder *b, const int *uses, const bool *kept, lc_region *to)
{
    lc_fused_program *p = calloc(1, sizeof *p);
    lc_fused_value   *values = calloc(LC_FUSED_VALUES, sizeof *values);
    *to = (lc_region){ .n_steps = b->n_steps, .n_values = b->n_entries, .fuser = lc_backends[b->device.kind]->fuser };
    if (!p || !values) return free(p), free(values), false;
    p->values = values, p->ndim = b->ndim, p->row_dims = b->row_dims, p->n_steps = b->n_steps, p->n_values = b->n_entries;
    memcpy(p->shape, b->shape, sizeof p->shape), memcpy(to->steps, b->steps, sizeof to->steps);
    for (int i = 0; i < b->n_entries; i++) {
        const entry    *e = &b->entries[i];
        lc_fused_value *v = &values[i];
        bool            number = e->value == LC_VALUE_NUMBER;
        v->column = e->column, v->written = e->written,
        v->dtype = number ? e->number_dtype : (lc_dtype)shell(b, e->value)->dtype;
        v->place = number                                                           ? LC_FUSED_NUMBER
                   : shell(b, e->value)->numel == 1 && b->numel != 1 && !e->written ? LC_FUSED_SCALAR
                   : is_register(b, e, uses, kept)                                  ? LC_FUSED_REGISTER
                                                                                    : LC_FUSED_MEMORY;
        memcpy(v->stride, e->stride, sizeof v->stride), memcpy(v->number, e->number, sizeof v->number);
        bool memory = v->place == LC_FUSED_MEMORY || v->place == LC_FUSED_SCALAR;
        to->value[i] = memory ? e->value : LC_VALUE_NONE, to->written[i] = e->written, to->column[i] = e->column;
        to->first[i] = b->n_steps, to->last[i] = -1;
    }
    for (int i = 0; i < b->n_steps; i++) {
        const lc_step_row *row = b->g->steps[b->steps[i]].row;
        p->steps[i] = (lc_fused_step){ .fold = row->fold,
                                       .copy = row->copy,
                                       .row = row->row,
                                       .dtype = row->dtype,
                                       .n_in = row->n_in,
                                       .out = b->out[i],
                                       .parameter = row->parameter };
        memcpy(p->steps[i].in, b->in[i], sizeof p->steps[i].in);
        for (int k = 0; k < row->n_in; k++) to->last[b->in[i][k]] = i;
        if (to->first[b->out[i]] > i) to->first[b->out[i]] = i;
    }
    to->fused = to->fuser->make(p);
    free(p), free(values);
    return to->fused != NULL;
}

/* The longest region that begins at order[0]; 0: none of two steps or more. */
static int region_at(builder *b, const int *order, int n, const int *uses, const bool *kept, lc_region *to)
{
    for (int most = n < LC_FUSED_STEPS ? n : LC_FUSED_STEPS; most >= 2;) {
        start(b, &b->g->steps[order[0]]);
        int many = 0;
        while (many < most && add(b, order[many])) many++;
        if (many < 2) return 0;
        if (make_region(b, uses, kept, to)) return many;
        most = many / 2;
    }
    return 0;
}

void lc_regions_free(lc_region *regions, int n)
{
    for (int i = 0; i < n; i++) regions[i].fuser->drop(regions[i].fused);
    free(regions);
}

int lc_fuse_steps(const lc_graph *g, int *order, int n_order, const int *outputs, int n_outputs, lc_region **regions,
                  int *n_regions)
{
    int     *uses = calloc((size_t)g->n_buffers + 1, sizeof *uses), left = 0;
    bool    *kept = calloc((size_t)g->n_buffers + 1, sizeof *kept);
    builder *b = malloc(sizeof *b);
    *regions = NULL, *n_regions = 0;
    if (!uses || !kept || !b) return free(uses), free(kept), free(b), lc_fail_int(LC_OutOfMemory, "out of memory: fusion");
    b->g = g;
    for (int i = 0; i < n_outputs; i++) kept[g->values[outputs[i]].buffer] = true;
    for (int i = 0; i < n_order; i++) {
        const lc_step *s = &g->steps[order[i]];
        for (int k = 0; k < s->n_in + s->n_out; k++) uses[s->in[k] >= 0 ? g->values[s->in[k]].buffer : g->n_buffers]++;
    }
    for (int i = 0; i < n_order;) {
        lc_region *more = realloc(*regions, ((size_t)*n_regions + 1) * sizeof **regions);
        int        many = 0;
        if (more && g->steps[order[i]].row)
            many = region_at(b, order + i, n_order - i, uses, kept, (*regions = more) + *n_regions);
        else if (more) *regions = more;
        if (many) order[left++] = -1 - (*n_regions)++;
        else order[left++] = order[i];
        i += many ? many : 1;
    }
    free(uses), free(kept), free(b);
    return left;
}

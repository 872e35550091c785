/* Epilogues: elementwise steps that follow a kernel become part of it; it then does them while its result is in registers or
 * in the cache. Only where nothing else sees the result before them.
 *
 *   linear layers     an activation, a residual: the product's own epilogue (fused_linear)
 *   other kernels     whatever rows the backend's kernel takes (lc_row_epilogue): convolutions, norms, gradients of images and
 *                     of pooling; the step that follows may write in place */
#include "../backend/args.h"
#include "../backend/fused.h"
#include "passes.h"
#include <stdlib.h>
#include <string.h>

enum { INPUT, WEIGHT, BIAS, ACTIVATION, SCALE, RESIDUAL, PARAMS }; /* of fused_linear */

static bool is_activation(lc_op_id row)
{
    return row == LC_OP_relu || row == LC_OP_gelu || row == LC_OP_gelu_tanh || row == LC_OP_silu;
}

static bool is_product(const lc_step *s)
{
    return !s->dead && s->frozen && s->device.kind < LC_DEVICE_KINDS &&
           (s->op->id == LC_OP_linear || s->op->id == LC_OP_fused_linear) && (s->dtype == LC_f32 || s->dtype == LC_f64) &&
           (lc_backends[s->device.kind]->can.fuses & LC_FUSES_EPILOGUE) == LC_FUSES_EPILOGUE;
}

/* The step as a call of fused_linear; NULL args: no memory. */
static bool become_fused(lc_step *s)
{
    if (s->op->id == LC_OP_fused_linear) return true;
    lc_value *args = calloc(PARAMS + 1, sizeof *args);
    int      *ends = calloc(5 + 1, sizeof *ends); /* input, weight, bias, residual; the result */
    char     *none = strdup("none");
    if (!args || !ends || !none) return free(args), free(ends), free(none), false;
    for (int k = INPUT; k <= BIAS; k++) args[k] = s->args[k], ends[k] = s->in[k];
    args[ACTIVATION] = (lc_value){ .tag = LC_IS_str, .s = none };
    args[SCALE] = LC_F(1);
    ends[3] = LC_VALUE_NONE, ends[4] = s->out[0];
    free(s->args), free(s->in);
    s->op = lc_ops[LC_OP_fused_linear], s->args = args, s->in = ends, s->out = ends + 4, s->n_in = 4;
    return true;
}

static bool add_activation(lc_step *s, lc_op_id row)
{
    if (s->op->id == LC_OP_fused_linear && (strcmp(s->args[ACTIVATION].s, "none") || s->in[3] >= 0)) return false;
    char *name = strdup(lc_ops[row]->name);
    if (!name || !become_fused(s)) return free(name), false;
    free((void *)s->args[ACTIVATION].s);
    s->args[ACTIVATION].s = name;
    return true;
}

static bool add_residual(const lc_graph *g, lc_step *s, int value)
{
    const lc_tensor *t = value >= 0 ? &g->values[value].shell : NULL, *out = &g->values[s->out[0]].shell;
    if (!t || t->dtype != out->dtype || t->ndim != out->ndim || !lc_same_sizes(t->shape, out->shape, t->ndim) ||
        !t->is_contiguous)
        return false;
    if ((s->op->id == LC_OP_fused_linear && s->in[3] >= 0) || !become_fused(s)) return false;
    s->args[RESIDUAL] = (lc_value){ .tag = LC_IS_tensor, .t = LC_NONE };
    s->in[3] = value;
    return true;
}

/* The same number of elements in the order of memory, whatever the shape. */
static bool alike(const lc_graph *g, int v, int w)
{
    const lc_tensor *a = &g->values[v].shell, *b = &g->values[w].shell;
    return v == w || (a->dtype == b->dtype && a->numel == b->numel && a->is_contiguous && b->is_contiguous);
}
static bool same_place(const lc_graph *g, int v, int w)
{
    const lc_traced_value *a = &g->values[v], *b = &g->values[w];
    return v == w || (v >= 0 && w >= 0 && a->buffer == b->buffer && a->offset == b->offset && alike(g, v, w));
}
/* The value where `to` lies with the shape of y; -1: no memory. */
static int value_at(lc_graph *g, int to, int y)
{
    lc_tensor like = g->values[y].shell; /* the list may move */
    if (like.ndim <= LC_INLINE_DIMS) like.shape = like.dims, like.stride = like.dims + LC_INLINE_DIMS;
    return same_place(g, y, to) ? y : lc_graph_value(g, g->values[to].buffer, g->values[to].offset, &like);
}

/* What follows a product, if it can be its epilogue. */
static bool join_product(lc_graph *g, lc_step *s, const lc_step *next)
{
    const lc_step_row *row = next->row;
    int                y = s->out[0];
    bool               unary = row->n_in == 1, sum = row->row == LC_OP_add && row->n_in == 2;
    if (unary) return is_activation(row->row) && add_activation(s, row->row);
    return sum && add_residual(g, s, row->in[same_place(g, row->in[0], y)]);
}

/* ---- any other kernel ---- */

static bool has_epilogues(const lc_step *s)
{
    const lc_fuser *fuser = s->device.kind < LC_DEVICE_KINDS ? lc_backends[s->device.kind]->fuser : NULL;
    return !s->dead && s->frozen && !s->row && !s->op->writes && !s->out_given && s->n_out > 0 && s->out[0] >= 0 && fuser &&
           fuser->takes_epilogue;
}

enum { NO_MEMORY = -3 };
/* The number of an input with this value; a new one, if there is none; or NO_MEMORY. */
static int input_of(lc_step *s, int value)
{
    for (int k = 0; k < s->n_in; k++)
        if (s->in[k] == value) return k;
    int *ends = calloc((size_t)(s->n_in + s->n_out) + 2, sizeof *ends);
    if (!ends) return NO_MEMORY;
    memcpy(ends, s->in, (size_t)s->n_in * sizeof *ends);
    memcpy(ends + s->n_in + 1, s->out, (size_t)s->n_out * sizeof *ends);
    ends[s->n_in] = value;
    free(s->in);
    s->in = ends, s->n_added++, s->n_in++, s->out = ends + s->n_in;
    return s->n_in - 1;
}

static bool join_kernel(const lc_graph *g, lc_step *s, const lc_step *next)
{
    const lc_step_row *row = next->row;
    const lc_fuser    *fuser = lc_backends[s->device.kind]->fuser;
    if (!fuser->takes_epilogue(s->op->kernel, row->row, row->dtype, row->n_in)) return false;
    if (!s->epilogue && (s->epilogue = aligned_alloc(_Alignof(lc_row_epilogue), sizeof *s->epilogue))) s->epilogue->n = 0;
    if (!s->epilogue || s->epilogue->n == LC_EPILOGUE_STEPS) return false;
    lc_row_epilogue_step *to = &s->epilogue->step[s->epilogue->n];
    *to = (lc_row_epilogue_step){ .row = row->row, .n_in = row->n_in };
    for (int k = 0; k < row->n_in; k++) {
        to->in[k] = row->in[k] == LC_VALUE_NUMBER          ? LC_EPILOGUE_NUMBER
                    : same_place(g, row->in[k], s->out[0]) ? LC_EPILOGUE_RESULT
                                                           : input_of(s, row->in[k]);
        if (to->in[k] == NO_MEMORY) return false;
        to->number_dtype[k] = row->number_dtype[k];
        memcpy(to->number[k], row->number[k], sizeof to->number[k]);
    }
    return s->epilogue->n++, true;
}

/* ---- which step follows ---- */

static bool touches(const lc_graph *g, const lc_step *s, int buffer, bool only_writes)
{
    for (int k = 0; k < s->n_in + s->n_out && !s->dead; k++)
        if (s->in[k] >= 0 && g->values[s->in[k]].buffer == buffer && (!only_writes || lc_step_writes(s, k))) return true;
    return false;
}
static bool touched(const lc_graph *g, int buffer, int from, int to, bool only_writes) /* by steps [from, to) */
{
    for (int i = from; i < to; i++)
        if (touches(g, &g->steps[i], buffer, only_writes)) return true;
    return false;
}

/* Step j writes what it makes of the first result of step i to that result's place, or to memory of its own if nobody else
 * reads that result; and it can do so right behind step i: what it reads is there by then, what it writes is not used yet. */
static bool may_join(const lc_pass *p, int i, int j)
{
    const lc_graph    *g = p->g;
    const lc_step     *s = &g->steps[i], *next = &g->steps[j];
    const lc_step_row *row = next->row;
    int                y = s->out[0], b = g->values[y].buffer;
    if (!row || row->fold || row->copy || !next->frozen || next->n_out != 1 || next->out[0] < 0 ||
        !lc_same_device(s->device, next->device) || !lc_same_plan(p, i, j))
        return false;
    const lc_tensor *from = &g->values[y].shell;
    int              out = g->values[next->out[0]].buffer;
    bool             in_place = same_place(g, next->out[0], y);
    if (!from->is_contiguous || row->dtype != (lc_dtype)from->dtype || !alike(g, next->out[0], y)) return false;
    if (!in_place && (next->op->writes || g->buffers[b].kind != LC_BUFFER_MADE || p->kept[b] || p->writes[b] != 1 ||
                      p->uses[b] != 2 || out == b || touched(g, out, i, j, false)))
        return false;
    bool reads = false;
    for (int k = 0; k < row->n_in; k++) {
        int v = row->in[k];
        reads |= same_place(g, v, y);
        if (v == LC_VALUE_NUMBER || same_place(g, v, y)) continue;
        int of = g->values[v].buffer;
        if (!alike(g, v, y) || of == b || of == out || touched(g, of, i, j, true)) return false;
    }
    return reads;
}

static void forget(lc_pass *p, const lc_step *s, int by)
{
    for (int k = 0; k < s->n_in + s->n_out; k++)
        if (s->in[k] >= 0) p->uses[p->g->values[s->in[k]].buffer] += by;
}

void lc_fuse_epilogues(lc_pass *p)
{
    enum { FAR = 64 }; /* how far behind a step is looked: the work stays linear */
    lc_graph *g = p->g;
    for (int i = 0; i < g->n_steps; i++) {
        lc_step *s = &g->steps[i];
        bool     product = is_product(s);
        if (!product && !has_epilogues(s)) continue;
        for (int j = i + 1; j < g->n_steps && j < i + FAR; j++) {
            lc_step *next = &g->steps[j];
            int      b = g->values[s->out[0]].buffer;
            if (!touches(g, next, b, false)) continue;
            if (!may_join(p, i, j)) break;
            forget(p, s, -1), forget(p, next, -1);
            int  out = value_at(g, next->out[0], s->out[0]);
            bool joined = out >= 0 && (product ? join_product(g, s, next) : join_kernel(g, s, next));
            if (joined) next->dead = true, s->out[0] = out, p->writes[b]--, g->n_epilogues++;
            else forget(p, next, 1);
            forget(p, s, 1);
            if (!joined) break;
        }
        if (s->epilogue && !s->epilogue->n) free(s->epilogue), s->epilogue = NULL;
    }
}

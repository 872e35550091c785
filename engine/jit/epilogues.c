/* Epilogues: an activation of a linear layer's result, or a tensor added to it, becomes part of the product's kernel, which
 * then applies it while the result is in registers. Only where the result itself is read by nothing else. */
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

/* What follows a product, if it can be its epilogue. */
static bool take(lc_graph *g, lc_step *s, const lc_step *next)
{
    const lc_step_row *row = next->row;
    int                y = s->out[0];
    if (!row || row->fold || next->op->writes || row->dtype != s->dtype || next->n_out != 1 || next->out[0] < 0) return false;
    const lc_tensor *from = &g->values[y].shell, *to = &g->values[next->out[0]].shell;
    if (to->dtype != from->dtype || to->ndim != from->ndim || !lc_same_sizes(to->shape, from->shape, to->ndim) ||
        !to->is_contiguous || !from->is_contiguous)
        return false;
    bool taken = row->n_in == 1 && row->in[0] == y         ? is_activation(row->row) && add_activation(s, row->row)
                 : row->row == LC_OP_add && row->n_in == 2 ? add_residual(g, s, row->in[row->in[0] == y])
                                                           : false;
    if (taken) s->out[0] = next->out[0];
    return taken;
}

void lc_fuse_epilogues(lc_pass *p)
{
    lc_graph *g = p->g;
    for (int i = 0; i < g->n_steps; i++) {
        lc_step *s = &g->steps[i];
        for (int j = i + 1; j < g->n_steps && is_product(s); j++) {
            lc_step *next = &g->steps[j];
            if (next->dead) continue;
            int y = s->out[0], b = g->values[y].buffer;
            if (!lc_same_plan(p, i, j) || g->buffers[b].kind != LC_BUFFER_MADE || p->kept[b] || p->writes[b] != 1 ||
                p->uses[b] != 2 || !take(g, s, next))
                break;
            next->dead = true, g->n_epilogues++;
        }
    }
}

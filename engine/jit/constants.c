/* Constants: a step that reads nothing but constants gives the same result in every run. The trace kept that result
 * (lc_buffer.held); if nothing else writes it, it becomes a constant itself and the step goes. */
#include "passes.h"

static bool is_constant(const lc_graph *g, const lc_step *s, int k)
{
    if (s->in[k] < 0) return true;
    const lc_buffer *b = &g->buffers[g->values[s->in[k]].buffer];
    return b->kind == LC_BUFFER_CONSTANT || (s->op->fills && k == 0);
}

void lc_fold_constants(lc_pass *p)
{
    lc_graph *g = p->g;
    for (int i = 0; i < g->n_steps; i++) {
        lc_step   *s = &g->steps[i];
        lc_buffer *b = s->n_out == 1 && s->out[0] >= 0 ? &g->buffers[g->values[s->out[0]].buffer] : NULL;
        if (!b || !b->held || p->kept[b - g->buffers] || p->writes[b - g->buffers] != 1) continue;
        bool constant = true;
        for (int k = 0; k < s->n_in; k++) constant &= is_constant(g, s, k);
        if (!constant) continue;
        b->kind = LC_BUFFER_CONSTANT, b->tensor = b->held, b->held = NULL;
        s->dead = true, g->n_constants++;
    }
    for (int i = 0; i < g->n_buffers; i++)
        if (g->buffers[i].held) lc_release(g->buffers[i].held), g->buffers[i].held = NULL;
}

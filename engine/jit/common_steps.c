/* Common subexpressions: a step that calls the same op with the same arguments on the same values as an earlier step, with
 * nothing written in between, has the same result. Its readers read the earlier one. */
#include "passes.h"
#include <string.h>

bool lc_argument_same(const lc_value *a, const lc_value *b)
{
    if (a->tag != b->tag) return false;
    switch (a->tag) {
    case LC_IS_none:
    case LC_IS_tensor:
        return true; /* tensors are compared as values */
    case LC_IS_int:
        return a->i == b->i;
    case LC_IS_bool:
        return a->b == b->b;
    case LC_IS_float:
        return !memcmp(&a->f, &b->f, sizeof a->f);
    case LC_IS_dtype:
        return a->dt == b->dt;
    case LC_IS_str:
        return !strcmp(a->s, b->s);
    case LC_IS_ints:
        return a->n == b->n && !memcmp(a->is, b->is, (size_t)a->n * sizeof *a->is);
    case LC_IS_tensors:
        return a->n == b->n;
    case LC_IS_floats:
        return a->n == b->n && !memcmp(a->fs, b->fs, (size_t)a->n * sizeof *a->fs);
    case LC_IS_complex:
        return !memcmp(&a->c, &b->c, sizeof a->c);
    case LC_IS_device:
        return lc_same_device(a->dev, b->dev);
    case LC_IS_format:
        return a->fmt == b->fmt;
    case LC_IS_generator:
        return a->gen == b->gen;
    default:
        return false;
    }
}

bool lc_step_is_pure(const lc_pass *p, const lc_step *s)
{
    if (s->dead || !s->frozen || s->op->writes || s->op->random || s->op->reads_values || s->n_out == 0) return false;
    for (int i = 0; i < s->n_out; i++) {
        if (s->out[i] < 0) return false;
        int b = p->g->values[s->out[i]].buffer;
        if (p->g->buffers[b].kind != LC_BUFFER_MADE || p->writes[b] != 1) return false;
    }
    return true;
}

static bool same_step(const lc_graph *g, const lc_step *a, const lc_step *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out || a->dtype != b->dtype ||
        memcmp(a->in, b->in, (size_t)a->n_in * sizeof *a->in) || memcmp(&a->device, &b->device, sizeof a->device))
        return false;
    for (int k = 0; k < a->op->args->n_params; k++)
        if (!lc_argument_same(&a->args[k], &b->args[k])) return false;
    for (int i = 0; i < a->n_out; i++) {
        const lc_traced_value *x = &g->values[a->out[i]], *y = &g->values[b->out[i]];
        if (x->offset != y->offset || x->shell.dtype != y->shell.dtype || x->shell.ndim != y->shell.ndim ||
            !lc_same_sizes(x->shell.shape, y->shell.shape, x->shell.ndim) ||
            !lc_same_sizes(x->shell.stride, y->shell.stride, x->shell.ndim))
            return false;
    }
    return true;
}

bool lc_inputs_written_between(const lc_graph *g, const lc_step *s, int i, int j)
{
    for (int at = i + 1; at < j; at++) {
        const lc_step *t = &g->steps[at];
        for (int k = 0; k < t->n_in + t->n_out && !t->dead; k++)
            for (int m = 0; m < s->n_in && t->in[k] >= 0 && lc_step_writes(t, k); m++)
                if (s->in[m] >= 0 && g->values[s->in[m]].buffer == g->values[t->in[k]].buffer) return true;
    }
    return false;
}

/* All values of buffer `from` become values of `to`. */
static void move_values(lc_graph *g, int from, int to)
{
    int v = g->buffers[from].first_value;
    while (v >= 0) {
        int next = g->values[v].next;
        g->values[v].buffer = to, g->values[v].next = g->buffers[to].first_value, g->buffers[to].first_value = v;
        v = next;
    }
    g->buffers[from].first_value = -1;
}

void lc_share_common_steps(lc_pass *p)
{
    enum { NEAR = 256 }; /* how far back a step is looked for: the work stays linear in the number of steps */
    lc_graph *g = p->g;
    for (int j = 1; j < g->n_steps; j++) {
        lc_step *s = &g->steps[j];
        bool     pure = lc_step_is_pure(p, s);
        for (int i = 0; i < s->n_out && pure; i++) pure = !p->kept[g->values[s->out[i]].buffer];
        for (int i = j - 1; i >= 0 && i > j - NEAR && pure; i--) {
            const lc_step *t = &g->steps[i];
            if (t->op != s->op || !lc_same_plan(p, i, j) || !lc_step_is_pure(p, t) || !same_step(g, t, s) ||
                lc_inputs_written_between(g, s, i, j))
                continue;
            for (int k = 0; k < s->n_out; k++) {
                int from = g->values[s->out[k]].buffer, to = g->values[t->out[k]].buffer;
                if (from != to) move_values(g, from, to);
            }
            s->dead = true, g->n_common++;
            break;
        }
    }
}

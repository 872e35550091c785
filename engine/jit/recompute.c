/* Recomputation: a result that forward makes cheaply and backward reads much later is made again where it is read, instead of
 * lying in memory all the while: an activation, or a layer norm, whose input is kept in any case. The same kernel on the same
 * values gives the same bits.
 *
 * The pass looks at how much memory is live at each step and takes results that are only waiting at the worst moment, the
 * largest first, until none is left there. A repeated step goes right before the first reader behind that moment; this and all
 * later readers read its result. Only where a graph is one plan: what crosses from forward to backward is chosen elsewhere. */
#include "passes.h"
#include "plan.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    int at, next;
} read_node;
typedef struct {
    lc_graph   *g;
    const bool *kept;
    int        *made_by;     /* per buffer: the step whose first result it is, if that may run twice; -1 */
    int        *last, *head; /* per buffer: its last use; the list of its reads */
    int        *again;       /* per buffer: the step before which it is made again; -1: not */
    read_node  *reads;
    int         n_reads;
    int64_t    *live; /* per step: bytes */
} finder;

/* A pass over its inputs that costs about what reading its result would. */
static bool is_cheap(const lc_step *s) { return s->op->kind == LC_KIND_ELEMENTWISE || s->op->cheap; }

static void note_read(finder *f, int buffer, int at)
{
    f->reads[f->n_reads] = (read_node){ at, f->head[buffer] };
    f->head[buffer] = f->n_reads++;
    if (f->last[buffer] < at) f->last[buffer] = at;
}

static void look(finder *f, const lc_pass *p)
{
    lc_graph *g = f->g;
    for (int b = 0; b < g->n_buffers; b++) f->made_by[b] = f->last[b] = f->head[b] = f->again[b] = -1;
    for (int i = 0; i < g->n_steps; i++) {
        const lc_step *s = &g->steps[i];
        for (int k = 0; k < s->n_in && !s->dead; k++)
            if (s->in[k] >= 0) note_read(f, g->values[s->in[k]].buffer, i);
        for (int k = 0; k < s->n_out && !s->dead; k++) {
            if (s->out[k] < 0) continue;
            int b = g->values[s->out[k]].buffer;
            if (f->last[b] < i) f->last[b] = i;
            if (k == 0 && !f->kept[b] && g->buffers[b].bytes >= lc_limits.waits && is_cheap(s) && lc_step_is_pure(p, s))
                f->made_by[b] = i;
        }
    }
    for (int i = 0; i < g->n_steps; i++) { /* what is made here is live until its last use */
        const lc_step *s = &g->steps[i];
        for (int k = 0; k < s->n_out && !s->dead; k++) {
            int b = s->out[k] >= 0 ? g->values[s->out[k]].buffer : -1;
            if (b < 0 || g->buffers[b].kind != LC_BUFFER_MADE || p->writes[b] != 1) continue;
            f->live[i] += (int64_t)g->buffers[b].bytes;
            f->live[f->kept[b] ? g->n_steps : f->last[b] + 1] -= (int64_t)g->buffers[b].bytes;
        }
    }
    for (int i = 1; i < g->n_steps; i++) f->live[i] += f->live[i - 1];
}

/* Whether what step s reads is still there, unchanged, before step `at`. */
static bool inputs_remain(const finder *f, const lc_step *s, int from, int at)
{
    for (int k = 0; k < s->n_in; k++) {
        if (s->in[k] < 0) continue;
        int b = f->g->values[s->in[k]].buffer;
        if (f->g->buffers[b].kind == LC_BUFFER_MADE && (f->last[b] < at || f->again[b] > at)) return false;
    }
    return !lc_inputs_written_between(f->g, s, from, at);
}

/* The buffer that waits at step `peak` and is best made again; *at: where, *since: its last use before. -1: none. */
static int waiting(finder *f, int peak, int *at, int *since)
{
    int best = -1;
    for (int b = 0; b < f->g->n_buffers; b++) {
        int i = f->made_by[b], before = i, after = f->g->n_steps;
        if (i < 0 || i >= peak || f->last[b] <= peak || f->again[b] >= 0 ||
            (best >= 0 && f->g->buffers[b].bytes <= f->g->buffers[best].bytes))
            continue;
        for (int r = f->head[b]; r >= 0; r = f->reads[r].next) {
            int when = f->reads[r].at;
            if (when <= peak && when > before) before = when;
            if (when > peak && when < after) after = when;
        }
        if (before == peak || after == f->g->n_steps) continue;
        if (!inputs_remain(f, &f->g->steps[i], i, after)) {
            f->made_by[b] = -1;
            continue;
        }
        best = b, *at = after, *since = before;
    }
    return best;
}

/* A value of buffer `to` like value v. */
static int moved_value(lc_graph *g, int v, int to)
{
    lc_tensor like = g->values[v].shell; /* the list may move */
    if (like.ndim <= LC_INLINE_DIMS) like.shape = like.dims, like.stride = like.dims + LC_INLINE_DIMS;
    return lc_graph_value(g, to, g->values[v].offset, &like);
}
/* The step reads the buffers that take the place of others by now. false: no memory. */
static bool read_again(lc_graph *g, lc_step *s, const int *now)
{
    for (int k = 0; k < s->n_in; k++) {
        int b = s->in[k] >= 0 ? g->values[s->in[k]].buffer : -1;
        if (b < 0 || now[b] == b) continue;
        int v = moved_value(g, s->in[k], now[b]);
        if (v < 0) return false;
        for (int r = 0; s->row && r < s->row->n_in; r++)
            if (s->row->in[r] == s->in[k]) s->row->in[r] = v;
        s->in[k] = v;
    }
    return true;
}
/* Step `like` once more, with results of its own; its first result takes the place of buffer b. */
static bool repeat(lc_graph *g, const lc_step *like, int b, int *now, lc_step *to)
{
    if (!lc_step_copy(like, to)) return false;
    bool made = read_again(g, to, now);
    for (int k = 0; k < to->n_out && made; k++) {
        int v = to->out[k] >= 0 ? lc_graph_copy_buffer(g, g->values[to->out[k]].buffer) : -1;
        if (v >= 0 && k == 0) now[b] = v;
        made = to->out[k] < 0 || (v >= 0 && (to->out[k] = moved_value(g, to->out[k], v)) >= 0);
    }
    if (!made) now[b] = b, to->dead = true;
    return made;
}

/* The steps anew, with the repeated ones between them. If memory runs out on the way some readers read the first result: that
 * is right too. */
static void insert(finder *f, const int *chosen, int n_chosen)
{
    lc_graph *g = f->g;
    int       n = 0, n_buffers = g->n_buffers, *now = calloc((size_t)n_buffers + 1, sizeof *now);
    lc_step  *steps = calloc((size_t)(g->n_steps + n_chosen) + 1, sizeof *steps);
    if (!now || !steps) {
        free(now), free(steps);
        return;
    }
    for (int b = 0; b < n_buffers; b++) now[b] = b;
    for (int i = 0; i < g->n_steps; i++) {
        for (int k = 0; k < n_chosen; k++) {
            int b = chosen[k];
            if (f->again[b] != i) continue;
            g->n_recomputed += repeat(g, &g->steps[f->made_by[b]], b, now, &steps[n]);
            n += steps[n].op != NULL;
        }
        steps[n] = g->steps[i];
        if (!steps[n].dead) read_again(g, &steps[n], now);
        n++;
    }
    free(g->steps), free(now);
    g->steps = steps, g->n_steps = n;
}

static int compare_steps(const void *a, const void *b, void *made_by)
{
    const int *made = made_by;
    return made[*(const int *)a] - made[*(const int *)b];
}
static int choose(finder *f, int *chosen)
{
    int n = 0;
    for (;;) {
        int peak = 0, at = 0, since = 0;
        for (int i = 1; i < f->g->n_steps; i++)
            if (f->live[i] > f->live[peak]) peak = i;
        int b = (size_t)f->live[peak] > lc_limits.peak ? waiting(f, peak, &at, &since) : -1;
        if (b < 0) break;
        f->again[b] = at, chosen[n++] = b;
        for (int i = since + 1; i < at; i++) f->live[i] -= (int64_t)f->g->buffers[b].bytes;
        const lc_step *s = &f->g->steps[f->made_by[b]];
        for (int k = 0; k < s->n_in; k++)
            if (s->in[k] >= 0) note_read(f, f->g->values[s->in[k]].buffer, at);
    }
    qsort_r(chosen, (size_t)n, sizeof *chosen, compare_steps, f->made_by); /* the order of the program: one may read another */
    return n;
}

void lc_recompute(lc_pass *p)
{
    lc_graph *g = p->g;
    size_t    n = (size_t)g->n_buffers, ends = 0;
    if (p->n_starts > 0 || g->n_steps == 0) return;
    for (int i = 0; i < g->n_steps; i++) ends += (size_t)g->steps[i].n_in;
    int   *ints = calloc(5 * n + 1, sizeof *ints);
    finder f = { g,
                 p->kept,
                 ints,
                 ints + n,
                 ints + 2 * n,
                 ints + 3 * n,
                 calloc(2 * ends + 1, sizeof *f.reads),
                 0,
                 calloc((size_t)g->n_steps + 1, sizeof *f.live) };
    if (ints && f.reads && f.live) {
        look(&f, p);
        int n_chosen = choose(&f, ints + 4 * n);
        if (n_chosen) insert(&f, ints + 4 * n, n_chosen);
    }
    free(ints), free(f.reads), free(f.live);
}

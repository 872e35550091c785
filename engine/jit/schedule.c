/* The order of a plan's steps: an elementwise step whose result nobody reads for a while waits until right before the elementwise step
 * that does, so that both become one fused program. It passes only steps that neither write what it touches nor touch what
 * it writes, so every step still reads and writes the same values. It does not move if that kept more memory alive. */
#include "fuse.h"
#include "passes.h"
#include <stdlib.h>
#include <string.h>

enum { FAR = 64 }; /* steps that one may pass: the work stays linear */

static int buffer_at(const lc_graph *g, const lc_step *s, int k) { return s->in[k] < 0 ? -1 : g->values[s->in[k]].buffer; }

/* Whether their order matters: one writes a buffer that the other touches. */
static bool depend(const lc_graph *g, const lc_step *a, const lc_step *b)
{
    for (int i = 0; i < a->n_in + a->n_out; i++) {
        int x = buffer_at(g, a, i);
        for (int k = 0; x >= 0 && k < b->n_in + b->n_out; k++)
            if (x == buffer_at(g, b, k) && (lc_step_writes(a, i) || lc_step_writes(b, k))) return true;
    }
    return false;
}

/* What would live longer is not more than what would live shorter. last: per buffer, the last step that touches it. */
static bool saves_memory(const lc_graph *g, const lc_step *s, int until, const int *last)
{
    size_t longer = 0, shorter = 0;
    for (int k = 0; k < s->n_in + s->n_out; k++) {
        int b = buffer_at(g, s, k);
        if (b < 0 || g->buffers[b].kind != LC_BUFFER_MADE) continue;
        if (k >= s->n_in) shorter += g->buffers[b].bytes;
        else if (last[b] < until) longer += g->buffers[b].bytes;
    }
    return longer <= shorter;
}

int lc_schedule_steps(const lc_graph *g, int *order, int n)
{
    int *last = calloc((size_t)g->n_buffers + 1, sizeof *last);
    if (!last) return lc_fail_int(LC_OutOfMemory, "out of memory: schedule");
    for (int i = 0; i < n; i++) {
        const lc_step *s = &g->steps[order[i]];
        for (int k = 0; k < s->n_in + s->n_out; k++)
            if (s->in[k] >= 0) last[buffer_at(g, s, k)] = order[i];
    }
    for (int i = n - 2; i >= 0; i--) {
        int            at = order[i], j = i + 1;
        const lc_step *s = &g->steps[at];
        if (!s->row || s->row->fold || g->steps[order[j]].row) continue;
        while (j < n && j < i + FAR && !depend(g, s, &g->steps[order[j]])) j++;
        if (j == n || j == i + FAR || j == i + 1) continue;
        const lc_step *reader = &g->steps[order[j]];
        if (!reader->row || reader->device.kind != s->device.kind || !saves_memory(g, s, order[j], last)) continue;
        memmove(order + i, order + i + 1, (size_t)(j - 1 - i) * sizeof *order);
        order[j - 1] = at;
    }
    free(last);
    return 0;
}

/* Where the buffers of a plan lie, and when they are there.
 *
 * A buffer is in use from the first step that touches it to the last. An elementwise step whose input dies there writes its
 * result in that input's place. Small intermediates get fixed places in one arena, by their lifetimes. A plan that needs more
 * than a cache holds gives its larger intermediates memory of their own, allocated when their first step comes and released
 * behind their last: what backward has read is free for the gradients that it makes, and between two runs nothing is held.
 * (One arena for all of it cannot do that: results outlive the run, so they lie outside, and the arena is as large as the worst
 * moment for the whole run.) */
#include "passes.h"
#include "plan_parts.h"
#include <stdlib.h>
#include <string.h>

lc_plan_limits lc_limits = { .arena = 1 << 20, .block = 32 << 10, .waits = 64 << 10, .peak = 1 << 20 };

static int no_memory(void) { return lc_fail_int(LC_OutOfMemory, "out of memory: plan"); }

/* ---- lifetimes ---- */
static void use(lc_plan *p, int value, int at, bool writes)
{
    source *s = &p->sources[p->graph->values[value].buffer];
    if (s->begin < 0) s->begin = at;
    s->end = at;
    s->written |= writes;
}

static void find_lifetimes(lc_plan *p)
{
    const lc_graph *g = p->graph;
    for (int b = 0; b < g->n_buffers; b++) p->sources[b] = (source){ .begin = -1, .input = -1, .home = b, .next_member = -1 };
    for (int at = 0; at < p->n_order; at++) {
        const lc_region *region = lc_plan_region(p, at);
        for (int i = 0; region && i < region->n_values; i++)
            if (region->value[i] >= 0) use(p, region->value[i], at, region->written[i]);
        if (region) continue;
        const lc_step *s = &g->steps[p->order[at]];
        for (int k = 0; k < s->n_in + s->n_out; k++) {
            p->n_numbers += s->in[k] == LC_VALUE_NUMBER;
            if (s->in[k] >= 0) use(p, s->in[k], at, lc_step_writes(s, k));
        }
        p->n_args += s->op->args->n_params, p->n_ends += s->n_in + s->n_out;
    }
}

static void find_kinds(lc_plan *p, const lc_plan_request *r)
{
    const lc_graph *g = p->graph;
    for (int b = 0; b < g->n_buffers; b++) {
        source *s = &p->sources[b];
        s->kind = s->begin < 0 ? SOURCE_UNUSED : g->buffers[b].kind == LC_BUFFER_MADE ? SOURCE_ARENA : SOURCE_GIVEN;
        s->extra = ((int64_t)g->buffers[b].bytes + 63) & ~(int64_t)63;
        if (g->buffers[b].kind == LC_BUFFER_INPUT) s->input = g->buffers[b].input;
        if (s->kind == SOURCE_GIVEN && s->written) p->writes_given = true;
    }
    for (int i = 0; i < p->n_outputs; i++) { /* results own their memory, or are windows of what was given */
        int b = g->values[p->outputs[i]].buffer;
        p->sources[b].kind = g->buffers[b].kind == LC_BUFFER_MADE ? SOURCE_FRESH : SOURCE_GIVEN;
        if (p->sources[b].begin < 0) p->sources[b].begin = p->sources[b].end = p->n_order;
    }
    for (int i = 0; i < r->n_extra_inputs; i++) {
        int b = r->extra_inputs[i];
        p->sources[b].kind = SOURCE_GIVEN, p->sources[b].input = g->n_inputs + i;
    }
    for (int b = 0; b < g->n_buffers; b++)
        if (p->sources[b].kind == SOURCE_ARENA && g->buffers[b].device.kind != LC_CPU) p->sources[b].kind = SOURCE_BLOCK;
    for (int b = 0; b < g->n_buffers; b++)
        if (p->sources[b].kind == SOURCE_GIVEN && p->sources[b].input >= p->needed) p->needed = p->sources[b].input + 1;
    for (int i = 0; i < g->n_aliases; i++) { /* those of later inputs concern another plan */
        const lc_sharing *a = &g->aliases[i];
        if (a->input >= p->needed && p->sources[a->buffer].kind == SOURCE_GIVEN) p->needed = a->input + 1;
    }
}

/* ---- in place ---- */

/* Element by element in the same bytes. */
static bool same_places(const lc_graph *g, int v, int w)
{
    const lc_traced_value *x = &g->values[v], *y = &g->values[w];
    return x->offset == y->offset && x->shell.ndim == y->shell.ndim &&
           lc_size_of(x->shell.dtype) == lc_size_of(y->shell.dtype) &&
           lc_same_sizes(x->shell.shape, y->shell.shape, x->shell.ndim) &&
           lc_same_sizes(x->shell.stride, y->shell.stride, x->shell.ndim);
}
static bool lies_in(const lc_graph *g, int v, int buffer) { return v >= 0 && g->values[v].buffer == buffer; }

/* Whether the call reads buffer `old` only where it writes its result. */
static bool step_replaces(const lc_graph *g, const lc_step *s, int old)
{
    if (!s->row || s->row->fold || s->row->copy || !s->frozen || s->n_out != 1) return false;
    for (int k = 0; k < s->n_in; k++)
        if (lies_in(g, s->in[k], old) && !same_places(g, s->in[k], s->out[0])) return false;
    return true;
}
/* The same of a region, which runs all its steps on a tile before the next tile: what it reads it must have read when it writes. */
static bool region_replaces(const lc_graph *g, const lc_region *r, int old, int w)
{
    for (int v = 0; v < r->n_values; v++)
        if (lies_in(g, r->value[v], old) && (!same_places(g, r->value[v], r->value[w]) || r->column[v] != r->column[w] ||
                                             r->last[v] > r->first[w] || g->steps[r->steps[r->first[w]]].row->fold))
            return false;
    return true;
}

static bool may_replace(const lc_plan *p, int old, int made, int at)
{
    const source    *from = &p->sources[p->sources[old].home], *to = &p->sources[made];
    const lc_buffer *a = &p->graph->buffers[p->sources[old].home], *b = &p->graph->buffers[made];
    return old != made && (p->sources[old].kind == SOURCE_ARENA || p->sources[old].kind == SOURCE_BLOCK) && from->end == at &&
           from->begin < at && (to->kind == SOURCE_FRESH || to->kind == p->sources[old].kind) && to->begin == at &&
           to->home == made && lc_same_device(a->device, b->device) &&
           (to->kind == SOURCE_FRESH ? a->bytes == b->bytes : from->extra >= to->extra);
}
static void put_in_place(lc_plan *p, int old, int made)
{
    int     home = p->sources[old].home;
    source *from = &p->sources[home], *to = &p->sources[made];
    to->home = home, to->next_member = from->next_member, from->next_member = made;
    from->end = to->end, from->written = true, p->n_in_place++;
    for (int b = home; b >= 0 && to->kind == SOURCE_FRESH; b = p->sources[b].next_member) p->sources[b].kind = SOURCE_FRESH;
}

static void replace_in_region(lc_plan *p, const lc_region *r, int at)
{
    const lc_graph *g = p->graph;
    for (int w = 0; w < r->n_values; w++) {
        if (r->value[w] < 0 || !r->written[w]) continue;
        int made = g->values[r->value[w]].buffer;
        for (int v = 0; v < r->n_values; v++) {
            int old = r->value[v] >= 0 && !r->written[v] ? g->values[r->value[v]].buffer : made;
            if (!may_replace(p, old, made, at) || !region_replaces(g, r, old, w)) continue;
            put_in_place(p, old, made);
            break;
        }
    }
}
static void replace_inputs(lc_plan *p)
{
    const lc_graph *g = p->graph;
    for (int at = 0; at < p->n_order; at++) {
        if (lc_plan_region(p, at)) {
            replace_in_region(p, lc_plan_region(p, at), at);
            continue;
        }
        const lc_step *s = &g->steps[p->order[at]];
        if (s->n_out != 1 || s->out[0] < 0) continue;
        int made = g->values[s->out[0]].buffer;
        for (int k = 0; k < s->n_in; k++) {
            int old = s->in[k] >= 0 ? g->values[s->in[k]].buffer : made;
            if (!may_replace(p, old, made, at) || !step_replaces(g, s, old)) continue;
            put_in_place(p, old, made);
            break;
        }
    }
}

/* ---- the arena ---- */

/* Best fit among the gaps that buffers in use at the same time leave. Large buffers first: small ones fill the gaps. */
static int compare_sizes(const void *a, const void *b, void *sources)
{
    const source *s = sources;
    int64_t       x = s[*(const int *)a].extra, y = s[*(const int *)b].extra;
    return x > y ? -1 : x < y ? 1 : *(const int *)a - *(const int *)b;
}
static int lay_out_arena(lc_plan *p)
{
    int n = 0, *order = calloc((size_t)p->graph->n_buffers + 1, sizeof *order),
        *near = calloc((size_t)p->graph->n_buffers + 1, sizeof *near);
    if (!order || !near) return free(order), free(near), no_memory();
    p->arena_bytes = 0;
    for (int b = 0; b < p->graph->n_buffers; b++)
        if (p->sources[b].kind == SOURCE_ARENA && p->sources[b].home == b) order[n++] = b;
    qsort_r(order, (size_t)n, sizeof *order, compare_sizes, p->sources);
    for (int i = 0; i < n; i++) {
        source *mine = &p->sources[order[i]];
        int     n_near = 0;
        for (int j = 0; j < i; j++) { /* placed ones that live at the same time, by offset */
            const source *other = &p->sources[order[j]];
            if (other->end < mine->begin || mine->end < other->begin) continue;
            int at = n_near++;
            for (; at > 0 && p->sources[near[at - 1]].offset > other->offset; at--) near[at] = near[at - 1];
            near[at] = order[j];
        }
        int64_t best = -1, best_gap = 0, from = 0;
        for (int j = 0; j <= n_near; j++) {
            int64_t to = j < n_near ? p->sources[near[j]].offset : INT64_MAX, gap = to - from;
            if (gap >= mine->extra && (best < 0 || (j < n_near && gap < best_gap))) best = from, best_gap = gap;
            if (j < n_near && p->sources[near[j]].offset + p->sources[near[j]].extra > from)
                from = p->sources[near[j]].offset + p->sources[near[j]].extra;
        }
        for (int b = order[i]; b >= 0; b = p->sources[b].next_member) p->sources[b].offset = best;
        if (p->arena_bytes < (size_t)(best + mine->extra)) p->arena_bytes = (size_t)(best + mine->extra);
    }
    free(order), free(near);
    return 0;
}

/* ---- memory of their own ---- */
static int compare_begins(const void *a, const void *b, void *sources)
{
    const source *s = sources;
    int           x = *(const int *)a, y = *(const int *)b;
    return s[x].begin != s[y].begin ? s[x].begin - s[y].begin : x - y;
}
static int compare_ends(const void *a, const void *b, void *sources)
{
    const source *s = sources;
    int           x = *(const int *)a, y = *(const int *)b;
    return s[x].end != s[y].end ? s[x].end - s[y].end : x - y;
}
static int order_own(lc_plan *p)
{
    int n = p->graph->n_buffers;
    if (!(p->by_begin = calloc(2 * (size_t)n + 1, sizeof *p->by_begin))) return no_memory();
    p->by_end = p->by_begin + n;
    for (int b = 0; b < n; b++)
        if ((p->sources[b].kind == SOURCE_FRESH || p->sources[b].kind == SOURCE_BLOCK) && p->sources[b].home == b)
            p->by_begin[p->n_own] = p->by_end[p->n_own] = b, p->n_own++;
    qsort_r(p->by_begin, (size_t)p->n_own, sizeof *p->by_begin, compare_begins, p->sources);
    qsort_r(p->by_end, (size_t)p->n_own, sizeof *p->by_end, compare_ends, p->sources);
    return 0;
}
/* The most that intermediates and results take at one time. */
static void find_peak(lc_plan *p)
{
    size_t now = p->arena_bytes;
    int    gone = 0;
    for (int i = 0; i < p->n_own; i++) {
        const source *s = &p->sources[p->by_begin[i]];
        for (; gone < p->n_own && p->sources[p->by_end[gone]].end < s->begin; gone++)
            if (p->sources[p->by_end[gone]].kind == SOURCE_BLOCK) now -= (size_t)p->sources[p->by_end[gone]].extra;
        now += (size_t)s->extra;
        if (now > p->peak_bytes) p->peak_bytes = now;
    }
    if (p->peak_bytes < p->arena_bytes) p->peak_bytes = p->arena_bytes;
}

int lc_plan_place(lc_plan *p, const lc_plan_request *r)
{
    int n = p->graph->n_buffers;
    if (!(p->sources = calloc((size_t)n + 1, sizeof *p->sources))) return no_memory();
    find_lifetimes(p), find_kinds(p, r);
    for (int b = 0; b < n; b++)
        if (p->sources[b].kind == SOURCE_ARENA || p->sources[b].kind == SOURCE_BLOCK)
            p->made_bytes += (size_t)p->sources[b].extra;
    replace_inputs(p);
    if (lay_out_arena(p) < 0) return -1;
    if (p->arena_bytes > lc_limits.arena) {
        for (int b = 0; b < n; b++)
            if (p->sources[b].kind == SOURCE_ARENA && (size_t)p->sources[p->sources[b].home].extra >= lc_limits.block)
                p->sources[b].kind = SOURCE_BLOCK;
        if (lay_out_arena(p) < 0) return -1;
    }
    if (order_own(p) < 0) return -1;
    find_peak(p);
    return 0;
}

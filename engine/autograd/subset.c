/* Gradients for some tensors only: a pre-pass finds the nodes that lead to them, so that nothing else runs.
 *
 * Edges lead to lower numbers, so a node with a lower number than every requested input need not be visited. The table is a
 * hash table by address with open addressing. Afterwards nodes are visited in ascending order, so each finds its
 * predecessors decided. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

static size_t slot_of(const lc_subset *s, const lc_node *n)
{
    size_t i = ((uintptr_t)n >> 6) * 0x9E3779B97F4A7C15u & (s->cap - 1);
    while (s->slots[i].node && s->slots[i].node != n) i = (i + 1) & (s->cap - 1);
    return i;
}

static int grow(lc_subset *s)
{
    lc_subset old = *s;
    s->cap = old.cap ? 2 * old.cap : 64;
    if (!(s->slots = lc_alloc(s->cap * sizeof *s->slots))) return *s = old, -1;
    memset(s->slots, 0, s->cap * sizeof *s->slots);
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i].node) s->slots[slot_of(s, old.slots[i].node)] = old.slots[i];
    if (old.cap) lc_free(old.slots, old.cap * sizeof *old.slots);
    return 0;
}

static lc_subset_entry *enter(lc_subset *s, lc_node *n) /* NULL: no memory */
{
    if (2 * (s->len + 1) > s->cap && grow(s) < 0) return NULL;
    lc_subset_entry *e = &s->slots[slot_of(s, n)];
    if (!e->node) e->node = n, s->len++;
    return e;
}

static const lc_subset_entry *entry_of(const lc_subset *s, const lc_node *n) { return &s->slots[slot_of(s, n)]; }

static uint64_t number_of(const lc_node *n) { return atomic_load_explicit(&n->number, memory_order_relaxed); }

typedef struct {
    lc_node **items;
    size_t    len, cap;
} list;

static int append(list *l, lc_node *n)
{
    if (l->len == l->cap) {
        size_t    cap = l->cap ? 2 * l->cap : 64;
        lc_node **items = lc_alloc(cap * sizeof *items);
        if (!items) return -1;
        if (l->len) memcpy(items, l->items, l->len * sizeof *items);
        if (l->cap) lc_free(l->items, l->cap * sizeof *items);
        l->items = items, l->cap = cap;
    }
    l->items[l->len++] = n;
    return 0;
}

static int visit(lc_subset *s, list *l, lc_node *n, uint64_t lowest)
{
    if (!n || number_of(n) < lowest) return 0;
    lc_subset_entry *e = enter(s, n);
    if (!e) return -1;
    if (e->seen) return 0;
    e->seen = true;
    return append(l, n);
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = number_of(*(lc_node *const *)a), y = number_of(*(lc_node *const *)b);
    return x < y ? -1 : x > y;
}

static int walk(lc_subset *s, const lc_edge *roots, int n_roots, uint64_t lowest)
{
    list l = { 0 };
    int  rc = 0;
    for (int i = 0; i < n_roots && rc == 0; i++) rc = visit(s, &l, roots[i].node, lowest);
    for (size_t at = 0; at < l.len && rc == 0; at++)
        for (int k = 0; k < l.items[at]->n_in && rc == 0; k++) rc = visit(s, &l, l.items[at]->edges[k].node, lowest);
    if (rc == 0 && l.len) qsort(l.items, l.len, sizeof *l.items, by_number);
    for (size_t at = 0; at < l.len && rc == 0; at++) {
        lc_node *n = l.items[at];
        bool     leads = false;
        for (int k = 0; k < n->n_in && !leads; k++) leads = lc_subset_wants(s, &n->edges[k]);
        s->slots[slot_of(s, n)].leads = leads;
    }
    if (l.cap) lc_free(l.items, l.cap * sizeof *l.items);
    return rc;
}

int lc_subset_start(lc_subset *s, const lc_edge *roots, int n_roots, lc_tensor *const *inputs, int n_inputs,
                    lc_tensor **captured)
{
    uint64_t lowest = UINT64_MAX;
    *s = (lc_subset){ .n_inputs = n_inputs, .captured = captured };
    if (!(s->inputs = lc_alloc((size_t)n_inputs * sizeof *s->inputs)) || grow(s) < 0) return -1;
    for (int i = 0; i < n_inputs; i++) {
        int failed = 0;
        if (!lc_requires_grad(inputs[i]))
            return lc_fail_int(LC_LucidError, "One of the differentiated Tensors does not require grad");
        lc_node *n = lc_grad_fn(inputs[i], &failed);
        if (failed || (!n && !(n = lc_accumulator(inputs[i])))) return -1;
        s->inputs[i] = (lc_edge){ .node = n, .output = inputs[i]->node ? inputs[i]->node_output : 0 };
        if (number_of(n) < lowest) lowest = number_of(n);
        lc_subset_entry *e = enter(s, n);
        if (!e) return -1;
        e->target = true;
    }
    return walk(s, roots, n_roots, lowest);
}

void lc_subset_end(lc_subset *s)
{
    if (s->inputs) lc_free(s->inputs, (size_t)s->n_inputs * sizeof *s->inputs);
    if (s->cap) lc_free(s->slots, s->cap * sizeof *s->slots);
}

bool lc_subset_leads(const lc_subset *s, const lc_node *n) { return entry_of(s, n)->leads; }

static bool is_input(const lc_subset *s, const lc_node *n, int output)
{
    for (int i = 0; i < s->n_inputs; i++)
        if (s->inputs[i].node == n && s->inputs[i].output == output) return true;
    return false;
}

bool lc_subset_wants(const lc_subset *s, const lc_edge *edge)
{
    if (!edge->node) return false;
    const lc_subset_entry *e = entry_of(s, edge->node);
    return e->leads || (e->target && is_input(s, edge->node, edge->output));
}

bool lc_subset_reached(const lc_subset *s, const lc_edge *edge)
{
    return edge->node && entry_of(s, edge->node)->seen && lc_subset_wants(s, edge);
}

void lc_subset_capture(const lc_subset *s, const lc_node *n, lc_tensor *const *g, int n_g)
{
    if (!s->captured || !entry_of(s, n)->target) return;
    for (int i = 0; i < s->n_inputs; i++) {
        if (s->inputs[i].node != n || s->inputs[i].output >= n_g) continue;
        lc_tensor *old = s->captured[i];
        s->captured[i] = lc_retain(g[s->inputs[i].output]);
        lc_release(old);
    }
}

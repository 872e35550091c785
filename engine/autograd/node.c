/* Nodes: each is one block; they are numbered, and freed without recursion. */
#include "internal.h"
#include "op_calls.gen.h"
#include <stdio.h>
#include <string.h>

void *(*lc_note_take)(void);
void (*lc_note_drop)(void *note);
void (*lc_note_report)(const lc_node *n);

static _Atomic uint64_t next_number = 1;

void lc_node_number(lc_node *n)
{
    atomic_store_explicit(&n->number, atomic_fetch_add_explicit(&next_number, 1, memory_order_relaxed), memory_order_relaxed);
}

/* --- edges ------------------------------------------------------------------------------------------------------------------ */

static const lc_signature no_arguments = { .n_out = 1 };
static const lc_op        accumulate_op = { .name = "accumulate_grad", .py = "AccumulateGrad", .args = &no_arguments };

static void accumulator_drop(lc_object *object)
{
    lc_node *n = (lc_node *)object;
    lc_hooks_release(n->hooks);
    lc_release_all(n->g, n->n_out);
    lc_free(n, n->bytes);
}

lc_node *lc_accumulator(lc_tensor *leaf)
{
    if (leaf->retains_grad) lc_retained_end(leaf); /* it was a result once */
    lc_object **at = &leaf->aside, *found = __atomic_load_n(at, __ATOMIC_ACQUIRE), *none = NULL;
    if (found) return (lc_node *)found;
    size_t   bytes = sizeof(lc_node) + sizeof(lc_tensor *);
    lc_node *n = lc_alloc(bytes);
    if (!n) return NULL;
    memset(n, 0, sizeof *n);
    n->object = (lc_object){ .refs = 1, .drop = accumulator_drop };
    n->op = &accumulate_op, n->bytes = bytes, n->n_out = 1, n->leaf = leaf;
    n->g = (lc_tensor **)(n + 1), n->g[0] = LC_NONE;
    lc_node_number(n);
    if (__atomic_compare_exchange_n(at, &none, &n->object, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return n;
    accumulator_drop(&n->object); /* another thread was faster */
    return (lc_node *)none;
}

int lc_edge_to(lc_tensor *t, lc_edge *edge)
{
    return t->base && lc_view_is_stale(t) && lc_view_refresh(t) < 0 ? -1 : lc_edge_as_is(t, edge);
}

int lc_edge_as_is(lc_tensor *t, lc_edge *edge)
{
    if (!(t->flags & LC_REQUIRES_GRAD)) return 0;
    if (t->node) {
        lc_object_retain((lc_object *)t->node);
        edge->node = t->node, edge->output = t->node_output;
        return 0;
    }
    lc_node *end = lc_accumulator(t);
    if (!end) return -1;
    if (atomic_fetch_add_explicit(&end->uses, 1, memory_order_relaxed) == 0) {
        lc_retain(t), lc_object_retain(&end->object);
        lc_node_number(end);
    }
    edge->node = end, edge->leaf = t;
    return 0;
}

void lc_edge_drop(lc_edge *edge)
{
    lc_edge was = *edge;
    *edge = (lc_edge){ 0 };
    if (was.leaf) {
        if (atomic_fetch_sub_explicit(&was.node->uses, 1, memory_order_acq_rel) != 1) return;
        lc_release(was.leaf);
    }
    if (was.node) lc_node_release(was.node);
}

void lc_history_set(lc_tensor *t, lc_node *n, int output)
{
    lc_node *old = t->node;
    int      old_output = t->node_output;
    lc_object_retain(&n->object);
    t->node = n, t->node_output = output, t->flags |= LC_REQUIRES_GRAD;
    if (t->retains_grad) lc_retained_move(t, old, old_output, n, output);
    if (old) lc_node_release(old);
}

/* --- one block -------------------------------------------------------------------------------------------------------------- */

/* Arguments point to memory of the caller; the node needs its own. */
static size_t argument_bytes(const lc_value *v)
{
    if (v->tag == LC_IS_ints || v->tag == LC_IS_floats) return (size_t)v->n * sizeof(int64_t);
    return v->tag == LC_IS_str ? (strlen(v->s) + 8) & ~(size_t)7 : 0;
}

static char *own_argument(lc_value *v, char *to)
{
    size_t bytes = argument_bytes(v);
    if (v->tag == LC_IS_ints && bytes) v->is = memcpy(to, v->is, bytes); /* an empty list may be NULL */
    if (v->tag == LC_IS_floats && bytes) v->fs = memcpy(to, v->fs, bytes);
    if (v->tag == LC_IS_str) v->s = strcpy(to, v->s);
    if (v->tag == LC_IS_object) lc_object_retain(&v->o->object);
    if (v->tag == LC_IS_generator) lc_object_retain(&v->gen->object);
    return to + bytes;
}

void lc_number_argument(lc_value *v, const lc_tensor *number)
{
    if (v->tag != LC_IS_tensor) return;
    const void *at = number->data;
    switch ((lc_dtype)number->dtype) {
    case LC_b8:
        *v = LC_B(*(const bool *)at);
        break;
    case LC_i64:
        *v = LC_I(*(const int64_t *)at);
        break;
    case LC_c128:
        *v = (lc_value){ .tag = LC_IS_complex, .c = { ((const double *)at)[0], ((const double *)at)[1] } };
        break;
    default:
        *v = LC_F(*(const double *)at);
    }
}

static void node_drop(lc_object *object);

/* Size of the block. *dims: in, the number of sizes and strides of all outputs; out, of inputs and outputs. */
static inline size_t node_bytes(const lc_record *call, size_t *dims)
{
    const lc_op *op = call->op;
    int          n_args = op->args->n_params, n_in = call->n_in, n_out = call->n_out;
    size_t       own = 0;
    for (int k = 0; k < n_in; k++) *dims += 2 * (size_t)(k == 0 && call->overwritten ? call->overwritten : call->in[k])->ndim;
    for (int k = 0; k < n_args; k++) own += argument_bytes(&call->args[k]);
    return sizeof(lc_node) + (size_t)n_in * (sizeof(lc_edge) + sizeof(lc_saved)) +
           (size_t)n_out * (sizeof(lc_saved) + sizeof(lc_tensor *) + sizeof(lc_retained *)) +
           (size_t)n_args * sizeof(lc_value) + *dims * sizeof(int64_t) + own;
}

/* An in-place call must not fail once it has written, so the memory to record it is reserved before it runs. Results have at
 * most one dimension more than the written input; a node that needs more memory allocates it later, or fails. */
int lc_node_reserve(const lc_record *call, lc_reservation **reserved)
{
    size_t          dims = 2 * (size_t)call->n_out * ((size_t)call->in[0]->ndim + 1), bytes = node_bytes(call, &dims);
    lc_reservation *made = lc_alloc(bytes);
    if (!made) return -1;
    made->next = *reserved, made->bytes = bytes, made->n_held = 0;
    *reserved = made;
    return 0;
}

static inline void *take_reservation(lc_reservation **reserved, size_t *bytes)
{
    lc_reservation *found = *reserved;
    if (__builtin_expect(!found, 1) || found->bytes < *bytes || found->n_held) return lc_alloc(*bytes);
    *reserved = found->next, *bytes = found->bytes;
    return found;
}

/* Which inputs and outputs to keep, as IN(k) | OUT(k): those that every gradient reads, and those that the gradients wanted
 * here read. */
uint32_t lc_saves(const lc_record *call)
{
    const lc_op *op = call->op;
    uint32_t     saves = op->saves;
    uint64_t     some[LC_SAVES_FOR / 2];
    memcpy(some, op->saves_for, sizeof some);
    if (!(some[0] | some[1])) return saves;
    for (int k = 0, slot = 0; k < LC_SAVES_FOR && slot < call->n_in; k++)
        for (int many = call->args[k].tag == LC_IS_tensor ? 1 : lc_tensors_of(op, &call->args[k], k); many > 0; many--, slot++)
            if (call->in[slot]->flags & LC_REQUIRES_GRAD) saves |= op->saves_for[k];
    return saves;
}

lc_node *lc_node_new(const lc_record *call, lc_reservation **reserved)
{
    const lc_op *op = call->op;
    int          n_args = op->args->n_params, n_in = call->n_in, n_out = call->n_out;
    size_t       dims = 0;
    uint32_t     saves = lc_saves(call);
    for (int i = 0; i < n_out; i++) dims += 2 * (size_t)call->out[i]->ndim;
    size_t   bytes = node_bytes(call, &dims);
    lc_node *n = take_reservation(reserved, &bytes);
    if (!n) return NULL;
    memset(n, 0, sizeof *n);
    n->object.drop = node_drop;
    atomic_store_explicit(&n->object.refs, 1, memory_order_relaxed);
    n->bytes = bytes, n->op = op, n->n_in = n_in, n->n_out = n_out;
    if (__builtin_expect(lc_queues_used, 0)) lc_node_note_queue(n, call);
    n->edges = (lc_edge *)(n + 1);
    n->in = (lc_saved *)(n->edges + n_in), n->y = n->in + n_in;
    n->g = (lc_tensor **)(n->y + n_out);
    n->retained = (lc_retained **)(n->g + n_out);
    n->args = (lc_value *)(n->retained + n_out);
    int64_t *sizes = (int64_t *)(n->args + n_args);
    for (int k = 0; k < n_in; k++) n->edges[k] = (lc_edge){ 0 }, n->in[k].kind = LC_SAVED_NONE;
    for (int i = 0; i < n_out; i++) n->g[i] = LC_NONE, n->retained[i] = NULL, n->y[i].kind = LC_SAVED_NONE;
    char *own_values = (char *)(sizes + dims);
    for (int k = 0, slot = 0; k < n_args; k++) {
        int many = lc_tensors_of(op, &call->args[k], k);
        n->args[k] = call->args[k];
        for (int i = 0; i < many; i++, slot++) {
            lc_tensor *t = call->in[slot], *kept = slot == 0 && call->overwritten ? call->overwritten : t;
            bool       values = saves >> k & 1, leaf = kept == t && t->flags & LC_REQUIRES_GRAD && !t->node;
            lc_saved_set(&n->in[slot], kept, values, leaf, &sizes);
            if (op->writes & IN(0) && kept == t &&
                t->storage == call->in[0]->storage) /* written since: not what the call read */
                n->in[slot].version = call->version;
            n->saves |= n->in[slot].kind >= LC_SAVED_VALUES;
            if (t->is_number)
                lc_number_argument(&n->args[k], t), n->saves |= values && n_in == 2; /* PyTorch saves it as a tensor */
        }
        own_values = own_argument(&n->args[k], own_values);
    }
    for (int i = 0; i < n_out; i++) {
        lc_saved_set(&n->y[i], call->out[i], saves & OUT(i), false, &sizes);
        n->saves |= n->y[i].kind >= LC_SAVED_VALUES;
    }
    if (lc_modes & LC_ANOMALY && lc_note_take) n->note = lc_note_take();
    return n;
}

/* --- the end of a node ------------------------------------------------------------------------------------------------------ */

static void free_packed(lc_node *n)
{
    if (!n->packed) return;
    for (int i = 0; i < n->n_in + n->n_out; i++)
        if (n->packed[i]) lc_object_release(&n->packed[i]->object);
    lc_free(n->packed, (size_t)(n->n_in + n->n_out) * sizeof *n->packed);
    n->packed = NULL;
}

lc_foreign *lc_node_function(const lc_node *n)
{
    int             n_args = n->op->args->n_params;
    const lc_value *last = n_args ? &n->args[n_args - 1] : NULL;
    return last && last->tag == LC_IS_object ? last->o : NULL;
}

void lc_node_spend(lc_node *n)
{
    lc_foreign *user = lc_node_function(n);
    if (user && user->spend) user->spend(user->payload);
    if (n->spent || !n->saves) return;
    n->spent = true;
    for (int k = 0; k < n->n_in; k++) lc_saved_free(&n->in[k]);
    for (int i = 0; i < n->n_out; i++) lc_saved_free(&n->y[i]);
    free_packed(n);
}

int lc_fail_spent(void)
{
    return lc_fail_int(
        LC_LucidError,
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
        "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
        "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
        "after calling backward.");
}

static void node_end(lc_node *n)
{
    lc_node_spend(n);
    for (int k = 0; k < n->n_in; k++) lc_edge_drop(&n->edges[k]);
    for (int k = 0; k < n->op->args->n_params; k++) {
        lc_value *v = &n->args[k];
        if (v->tag == LC_IS_object) lc_object_release(&v->o->object);
        if (v->tag == LC_IS_generator) lc_object_release(&v->gen->object);
    }
    for (int i = 0; i < n->n_out; i++)
        if (n->g[i] != LC_NONE) lc_release(n->g[i]);
    if (n->hooks) lc_hooks_release(n->hooks);
    if (n->retains) lc_retained_free(n);
    if (n->note) lc_note_drop(n->note);
    lc_free(n, n->bytes);
}

/* Freeing one node may free its predecessors, a million in a row: they are queued instead of freed recursively. */
static void node_drop(lc_object *object)
{
    static _Thread_local lc_node *doomed;
    static _Thread_local bool     draining;
    lc_node                      *n = (lc_node *)object;
    n->next_doomed = doomed, doomed = n;
    if (draining) return;
    draining = true;
    while ((n = doomed)) {
        doomed = n->next_doomed;
        node_end(n);
    }
    draining = false;
}

/* --- names ------------------------------------------------------------------------------------------------------------------ */

/* "addmm" becomes AddmmBackward0, "log_softmax" LogSoftmaxBackward0; in-place forms and aliases have the name of their op. A
 * name that is already capitalised stays (CopySlices, AccumulateGrad). */
int lc_node_name(const lc_node *n, char *text, size_t capacity)
{
    lc_foreign *user = n->leaf ? NULL : lc_node_function(n);
    if (user && user->name) return snprintf(text, capacity, "%s", user->name);
    const lc_op *op = n->op->inplace_of ? n->op->inplace_of : n->op;
    if (op->alias_of) op = op->alias_of;
    const char *name = op->py ? op->py : op->name;
    size_t      at = 0;
    bool        capital = true, whole = *name >= 'A' && *name <= 'Z';
    for (; *name && at + 1 < capacity; name++) {
        if (*name == '_') capital = true;
        else text[at++] = (char)(capital && *name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name), capital = false;
    }
    if (!whole) at += (size_t)snprintf(text + at, capacity - at, "Backward0");
    return at < capacity ? text[at] = 0, (int)at : (int)capacity - 1;
}

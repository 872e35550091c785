/* Saved tensors: how the tape keeps a tensor, and how it becomes one again.
 *
 * PyTorch keeps a tensor object per saved variable. Here forward only writes a small record into the node's block: it holds
 * the storage, copies shape and strides, and makes no tensor. The tensor is made when a gradient runs, with its history if
 * the gradient is itself recorded. A shape without values and a Python scalar need no memory at all: they live on the stack
 * of the caller that runs the gradient, and lc_call refuses to read their values. A leaf is not copied: its edge holds it
 * anyway. */
#include "internal.h"
#include <stdio.h>
#include <string.h>

lc_foreign *(*lc_pack_saved)(lc_tensor *t);

/* The storage of a tensor of which only the shape was kept, so that lc_storage_offset gives the right answer. Nobody may
 * keep it. */
static lc_storage no_storage = { .refs = 1 << 30, .shared_fd = -1 };

void lc_saved_set(lc_saved *s, const lc_tensor *t, bool values, bool is_leaf, int64_t **dims)
{
    if (t == LC_NONE || t->is_number) {
        s->kind = t == LC_NONE ? LC_SAVED_NONE : LC_SAVED_NUMBER;
        return;
    }
    s->kind = !values ? LC_SAVED_SHAPE : is_leaf ? LC_SAVED_LEAF : LC_SAVED_VALUES;
    s->dtype = t->dtype, s->ndim = t->ndim, s->is_contiguous = t->is_contiguous, s->device = t->device;
    s->dims = *dims;
    for (int d = 0; d < t->ndim; d++) s->dims[d] = t->shape[d], s->dims[t->ndim + d] = t->stride[d];
    *dims += 2 * t->ndim;
    if (s->kind == LC_SAVED_SHAPE) {
        s->data = (char *)(uintptr_t)(lc_storage_offset(t) * lc_size_of(t->dtype));
        return;
    }
    s->version = lc_version(t);
    if (s->kind != LC_SAVED_VALUES) return;
    s->data = t->data, s->storage = t->storage, s->cell = t->cell;
    if (s->storage) atomic_fetch_add_explicit(&s->storage->refs, 1, memory_order_relaxed);
    if (s->cell) atomic_fetch_add_explicit(&s->cell->refs, 1, memory_order_relaxed);
}

static void stack_tensor(lc_tensor *t, const lc_saved *s)
{
    memset(t, 0, offsetof(lc_tensor, dims));
    t->refs = 1 << 30;
    t->dtype = s->dtype, t->ndim = s->ndim, t->device = s->device, t->is_contiguous = s->is_contiguous;
    t->data = s->data, t->shape = s->dims, t->stride = s->dims + s->ndim;
    t->numel = 1;
    for (int d = 0; d < s->ndim; d++) t->numel *= t->shape[d];
    if (s->kind == LC_SAVED_SHAPE) t->flags = LC_NO_VALUES, t->storage = &no_storage;
    else t->storage = s->storage, t->cell = s->cell;
}

static lc_tensor *check_version(const lc_saved *s, lc_tensor *t, const lc_edge *history)
{
    uint32_t now = lc_version(t);
    char     maker[96] = "", name[64];
    if (now == s->version) return t;
    if (history && history->node && !history->leaf && lc_node_name(history->node, name, sizeof name))
        snprintf(maker, sizeof maker, ", which is output %d of %s,", history->output, name);
    return lc_fail(
        LC_VersionMismatch,
        "one of the variables needed for gradient computation has been modified by an inplace operation: [%s]%s is at "
        "version %u; expected version %u instead. Hint: enable anomaly detection to find the operation that failed to "
        "compute its gradient, with lucid.autograd.set_detect_anomaly(True).",
        LC_SHAPE(t), maker, now, s->version);
}

/* A fresh alias takes part in the graph again. */
static lc_tensor *with_history(lc_tensor *t, const lc_edge *history)
{
    if (t && history && history->node && !history->leaf && lc_is_differentiable(t->dtype))
        lc_history_set(t, history->node, history->output);
    return t;
}

/* The values come from the user's unpack function; identity and history are those of the packed tensor. */
static lc_tensor *unpacked(lc_foreign *packed, const lc_edge *history, bool attach)
{
    lc_tensor *t = lc_scoped(packed->unpack(packed->payload));
    if (!t || !attach || !history || !history->node) return t;
    lc_tensor *alias = lc_scoped(lc_tensor_alias(t, true));
    if (!alias || !history->leaf) return with_history(alias, history);
    return lc_history_from(alias, history->leaf) < 0 ? NULL : alias;
}

lc_tensor *lc_saved_get(const lc_saved *s, lc_foreign *packed, const lc_edge *history, bool attach, lc_saved_workspace *work)
{
    lc_tensor *t = &work->box.t;
    switch ((lc_saved_kind)s->kind) {
    case LC_SAVED_NONE:
    case LC_SAVED_NUMBER: /* lives in the arguments */
        return LC_NONE;
    case LC_SAVED_SHAPE:
        return stack_tensor(t, s), t;
    case LC_SAVED_LEAF:
        return check_version(s, history->leaf, history);
    case LC_SAVED_PACKED:
        return unpacked(packed, history, attach);
    case LC_SAVED_VALUES:
        break;
    }
    stack_tensor(t, s);
    if (!check_version(s, t, history)) return NULL;
    lc_tensor *alias = lc_scoped(lc_tensor_alias(t, true));
    return attach ? with_history(alias, history) : alias;
}

lc_tensor *lc_saved_shape(const lc_saved *s, lc_saved_workspace *work)
{
    lc_saved shape = *s;
    shape.kind = LC_SAVED_SHAPE, shape.data = NULL;
    stack_tensor(&work->box.t, &shape);
    return &work->box.t;
}

void lc_saved_free(lc_saved *s)
{
    if (s->kind != LC_SAVED_VALUES) return;
    s->kind = LC_SAVED_SHAPE;
    s->data = s->storage ? (char *)(uintptr_t)(s->data - s->storage->data) : NULL;
    lc_storage *storage = s->storage;
    s->storage = NULL;
    if (s->cell && lc_last_reference(&s->cell->refs)) lc_free(s->cell, sizeof *s->cell);
    s->cell = NULL;
    if (storage) lc_storage_release(storage);
}

/* A reference that outlives the workspace. Fails for a tensor whose values were not kept, or were freed: it has only a
 * shape. */
static lc_tensor *outliving(lc_tensor *t, const lc_saved_workspace *work)
{
    if (t == &work->box.t) return lc_fail(LC_LucidError, "this tensor's values were not kept, or are freed already");
    return t ? lc_retain(t) : NULL;
}

lc_tensor *lc_node_saved(lc_node *n, int slot, bool output)
{
    lc_saved_workspace work;
    lc_edge            own = { .node = n, .output = slot };
    lc_foreign        *packed = n->packed ? n->packed[output ? n->n_in + slot : slot] : NULL;
    lc_scope           scope = lc_scope_open();
    lc_tensor *t = lc_saved_get(output ? &n->y[slot] : &n->in[slot], packed, output ? &own : &n->edges[slot], true, &work);
    t = outliving(t, &work);
    lc_scope_close(scope);
    return t;
}

/* --- one tensor kept outside any node --------------------------------------------------------------------------------------- */

struct lc_kept {
    lc_saved    saved;
    lc_edge     history; /* of a tensor that is not the maker's own output */
    lc_foreign *packed;
    lc_tensor  *sparse; /* a sparse tensor is kept as it is: an input itself, an output without history */
    int         output; /* which output of the maker; -1 if it is none */
    size_t      bytes;
    int64_t     dims[];
};

lc_foreign *lc_packed(lc_tensor *t, bool output)
{
    unsigned    modes = lc_modes;
    lc_tensor  *given = output ? lc_detach_alias(t) : lc_retain(t);
    lc_foreign *made = NULL;
    lc_modes |= LC_NO_GRAD;
    if (given) made = lc_pack_saved(given);
    lc_modes = modes;
    lc_release(given);
    return made;
}

lc_kept *lc_keep(lc_tensor *t, lc_node *maker, int output)
{
    size_t   bytes = sizeof(lc_kept) + 2 * (size_t)t->ndim * sizeof(int64_t);
    lc_kept *k = lc_alloc(bytes);
    if (!k) return NULL;
    *k = (lc_kept){ .bytes = bytes, .output = maker ? output : -1 };
    if (t->flags & LC_SPARSE) {
        k->sparse = maker ? lc_detach_alias(t) : lc_retain(t);
        return k->sparse ? k : (lc_kept_drop(k), NULL);
    }
    if (!maker && lc_edge_to(t, &k->history) < 0) return lc_kept_drop(k), NULL;
    lc_saved_set(&k->saved, t, true, k->history.leaf != NULL, &(int64_t *){ k->dims });
    if (!(lc_modes & LC_SAVED_HOOKS)) return k;
    k->packed = lc_packed(t, maker != NULL);
    lc_saved_free(&k->saved);
    k->saved.kind = LC_SAVED_PACKED;
    return k->packed ? k : (lc_kept_drop(k), NULL);
}

lc_tensor *lc_kept_get(const lc_kept *k, lc_node *maker)
{
    lc_saved_workspace work;
    if (k->sparse) return lc_retain(k->sparse);
    lc_edge    own = { .node = maker, .output = k->output };
    lc_scope   scope = lc_scope_open();
    lc_tensor *t = lc_saved_get(&k->saved, k->packed, k->output >= 0 ? &own : &k->history, true, &work);
    t = outliving(t, &work);
    lc_scope_close(scope);
    return t;
}

void lc_kept_drop(lc_kept *k)
{
    lc_saved_free(&k->saved);
    lc_edge_drop(&k->history);
    lc_release(k->sparse);
    if (k->packed) lc_object_release(&k->packed->object);
    lc_free(k, k->bytes);
}

int lc_kept_visit(const lc_kept *k, int (*visit)(void *object, void *arg), void *arg)
{
    return k->packed && k->packed->object.refs == 1 ? visit(k->packed->payload, arg) : 0;
}

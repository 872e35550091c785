/* autograd: the tape, and backward over it. Depends on op.
 *
 * The tape observes calls. If an input requires grad, the tape keeps a node. A node saves arguments and results (shapes
 * always, values only if the op's .saves says so) and has one edge per input, to where that input's gradient goes. Saved
 * tensors carry no history and edges point backwards in time. The graph therefore has no cycles, even after in-place writes,
 * and needs no garbage collector.
 *
 * A node is one block of memory and allocates nothing else. A saved tensor is an lc_saved, which becomes a tensor again when
 * the gradient runs (saved.c). A bare shape and a Python scalar become tensors on the stack of the caller that runs the
 * gradient.
 *
 * Nodes are numbered in the order they are made. A consumer of a result has a higher number than its producer, so backward
 * needs no pre-pass: it always runs the pending node with the highest number, and by then all gradients for that node have
 * arrived.
 *
 * A leaf that was used has an accumulator, the node where its gradient ends. Edges to a leaf are counted. The first edge
 * gives the accumulator a new number and keeps the leaf alive until the last edge is gone. So the hooks of a leaf also see
 * the whole gradient, once.
 *
 * An in-place write through a view v of b is recorded as its meaning: v' = f(v, ...), b' = b with the slice replaced by v'
 * (copy_slices), v = the same view of b'. Earlier views of b notice by the version counter that their history is out of
 * date, and rebuild it from b when it is next needed. */
#pragma once
#include "../op/op.h"

typedef struct lc_node lc_node;
typedef enum { LC_HOOK_GRAD, LC_HOOK_POST_ACCUMULATE, LC_HOOK_NODE_PRE, LC_HOOK_NODE_POST } lc_hook_kind;
typedef struct lc_hook { /* referenced by the list of its node and by the handle that removes it */
    lc_object       object;
    struct lc_hook *next;
    lc_hook_kind    kind;
    int             output;
    uint64_t        id;
    lc_foreign     *callee; /* NULL once removed */
} lc_hook;
typedef struct {
    lc_node   *node;   /* where the gradient goes; NULL: this input needs none */
    lc_tensor *leaf;   /* if node is an accumulator: its leaf. Such edges are counted; the first holds node and leaf */
    int        output; /* of node */
} lc_edge;

typedef enum { LC_SAVED_NONE, LC_SAVED_NUMBER, LC_SAVED_SHAPE, LC_SAVED_VALUES, LC_SAVED_LEAF, LC_SAVED_PACKED } lc_saved_kind;
typedef struct { /* a saved tensor */
    uint8_t          kind, dtype, ndim;
    bool             is_contiguous;
    lc_device        device;
    uint32_t         version;
    lc_storage      *storage; /* VALUES: holds a reference. LEAF: the edge's leaf has the values */
    lc_version_cell *cell;    /* held, if there was one */
    char            *data;    /* SHAPE: the offset in the storage, in bytes */
    int64_t         *dims;    /* shape, then strides */
} lc_saved;

typedef struct lc_retained { /* ties retain_grad's tensor to its node: when one is freed, the other is told */
    lc_object  object;
    lc_tensor *tensor; /* NULL: gone */
} lc_retained;

struct lc_node {
    lc_object    object;
    const lc_op *op;
    LC_ATOMIC(uint64_t) number;
    size_t bytes; /* size of the block that also holds all arrays below */
    int    n_in, n_out;
    bool   saves, spent, retains; /* holds values; they were freed; some of retained[] is set */
    LC_ATOMIC(int) uses;          /* of an accumulator: edges that lead here */
    LC_ATOMIC(void *) run; /* the backward run that g belongs to; another run that reaches this node keeps its own gradients */
    lc_hook      *hooks;
    lc_node      *next_doomed;
    lc_foreign  **packed;   /* saved_tensors_hooks: n_in + n_out, NULL where nothing was packed; NULL if none */
    void         *note;     /* anomaly mode: the host language's record of where this was made; lc_note_drop frees it */
    void         *wrapper;  /* the host language's object for this node: borrowed */
    void         *queue;    /* of its device, where the call ran; NULL: the default one */
    lc_retained **retained; /* n_out; not of an accumulator */
    lc_tensor    *leaf;     /* of an accumulator: borrowed */
    lc_edge      *edges;    /* n_in */
    lc_saved     *in, *y;   /* n_in, n_out */
    lc_tensor   **g;        /* n_out gradients that have arrived */
    lc_value     *args;     /* as in the call; tensors are in in[] */
};

/* Gradients of roots (weighted by grads; LC_NONE for scalars) with respect to everything, or to inputs.
 *   inputs NULL: accumulate into .grad of every leaf.
 *   inputs and captured: captured[i] receives a new reference, or LC_NONE if inputs[i] was not reached; no .grad is touched.
 *   inputs without captured: accumulate into .grad of these only. */
int lc_backward_all(lc_tensor *const *roots, lc_tensor *const *grads, int n_roots, lc_tensor *const *inputs, int n_inputs,
                    lc_tensor **captured, bool retain_graph, bool create_graph);
int lc_backward(lc_tensor *root, lc_tensor *grad, bool retain_graph,
                bool create_graph); /* the usual case; grad may be LC_NONE */

/* Hooks. callee: the reference is taken, also on failure. The hook that comes back is a new reference, for lc_hook_remove. */
lc_hook *lc_hook_add(lc_tensor *t, lc_hook_kind kind, lc_foreign *callee);
lc_hook *lc_node_hook_add(lc_node *n, lc_hook_kind kind, int output, lc_foreign *callee);
void     lc_hook_remove(lc_hook *hook);
int      lc_retain_grad(lc_tensor *t);

/* History. */
lc_node           *lc_grad_fn(lc_tensor *t,
                              int       *failed); /* borrowed; a view's is rebuilt if its base was written. NULL: a leaf, or *failed */
lc_node           *lc_accumulator(lc_tensor *leaf); /* borrowed; made at the first call */
int                lc_view_refresh(lc_tensor *view);
bool               lc_view_is_stale(const lc_tensor *view); /* its base was written since its history was made */
void               lc_node_spend(lc_node *n);               /* free what was saved */
int                lc_fail_spent(void);                     /* raises the error for a node whose values were freed; -1 */
lc_tensor         *lc_node_saved(lc_node *n, int slot,
                                 bool output); /* new reference, with history: input or output `slot` as it was saved */
int                lc_node_name(const lc_node *n, char *text, size_t capacity); /* "MulBackward0" */
int                lc_set_requires_grad(lc_tensor *t, bool on);
static inline bool lc_requires_grad(
    const lc_tensor *t) /* a view requires grad if its base does, even without history of its own */
{
    return t->flags & LC_REQUIRES_GRAD || (t->base && t->base->flags & LC_REQUIRES_GRAD && lc_is_differentiable(t->dtype));
}
static inline bool lc_is_leaf(lc_tensor *t)
{
    int failed;
    return !lc_grad_fn(t, &failed);
}
static inline bool lc_grad_enabled(void) { return !(lc_modes & (LC_NO_GRAD | LC_INFERENCE_MODE)); }
lc_tensor         *lc_detach_alias(lc_tensor *t); /* new reference: shares storage and version, no history */
/* For observers, which keep arguments longer than the call: a scalar tensor on the caller's stack becomes a plain value. */
void lc_number_argument(lc_value *v, const lc_tensor *number);

/* One tensor kept for a gradient outside any node (a user's Function). maker: the node it is output `output` of, else NULL. */
typedef struct lc_kept lc_kept;
lc_kept               *lc_keep(lc_tensor *t, lc_node *maker, int output);
lc_tensor *lc_kept_get(const lc_kept *k, lc_node *maker); /* new reference, with its history; fails if it was written since */
void       lc_kept_drop(lc_kept *k);
int        lc_kept_visit(const lc_kept *k, int (*visit)(void *object, void *arg), void *arg);

/* saved_tensors_hooks: the binding's stack of pack functions. pack returns an object whose unpack gives the tensor back. */
extern lc_foreign *(*lc_pack_saved)(lc_tensor *t);
/* Anomaly mode: make a note at record time; report it when the node's gradient fails or (check_nan) holds a NaN. */
extern void *(*lc_note_take)(void);
extern void (*lc_note_drop)(void *note);
extern void (*lc_note_report)(const lc_node *n);
extern bool                 lc_anomaly_check_nan;
extern LC_THREAD_LOCAL bool lc_backward_partial; /* a run for some tensors only is under way on this thread */
/* For hooks: which of these tensors get a gradient from the innermost run on this thread. Returns the unique number of that
 * run; 0 if there is no run, UINT64_MAX on error. */
uint64_t lc_backward_passes(lc_tensor *const *tensors, int n, bool *passes);
extern int (*lc_check_signals)(
    void); /* called at least every 100 ms of backward; -1 stops it (the host language holds the exception) */

/* Garbage collection of a host language: call visit for every foreign object that is reachable only through t, or through n. */
int lc_visit_foreign(lc_tensor *t, int (*visit)(void *object, void *arg), void *arg);
int lc_node_visit_foreign(const lc_node *n, int (*visit)(void *object, void *arg), void *arg);

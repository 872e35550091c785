/* autograd: the tape and its reverse. Depends on op.
 *
 * The tape observes calls. Where an input requires grad it keeps a node: the arguments as aliases without history (values only
 * where the op's .saves says so; shapes always) and an edge per input to where its gradient goes. Because aliases carry no history and
 * edges point backwards in time, a graph of nodes has no cycle, whatever was written in place; freeing needs no collector.
 *
 * Nodes are numbered as they are made. Everything that used a result has a higher number than what made it, so backward needs no
 * walk ahead: it always runs the pending node with the highest number, and all gradients for it have then arrived.
 *
 * Writing in place through a view of b is recorded as what it means: v' = f(v, ...), b' = b with the slice replaced by v'
 * (copy_slices), v = b' seen through the view again. Views of b made earlier notice by the version that their history is old, and
 * rebuild it from b when it is next asked for. */
#pragma once
#include "../op/op.h"

typedef struct lc_node lc_node;
typedef enum { LC_HOOK_GRAD, LC_HOOK_POST_ACCUMULATE, LC_HOOK_NODE_PRE, LC_HOOK_NODE_POST } lc_hook_kind;
typedef struct lc_hook {
    lc_object       object;
    struct lc_hook *next;
    lc_hook_kind    kind;
    int             output;
    uint64_t        id; /* for removal */
    lc_foreign     *callee;
} lc_hook;
typedef struct {
    lc_node   *node;
    lc_tensor *leaf;
    int        output;
} lc_edge; /* both NULL: this input needs no gradient */

struct lc_node {
    lc_object    object;
    const lc_op *op;
    uint64_t     number;
    size_t       bytes; /* of the one block that holds everything below too */
    int          n_in, n_out;
    bool         spent, pending; /* saved values already freed; queued in a running backward */
    uint64_t     run;            /* the backward that queued it: a backward inside a hook keeps its own books */
    lc_hook     *hooks;
    lc_node     *next_doomed;
    lc_foreign **packed;         /* saved_tensors_hooks: n_in + n_out, NULL where nothing was packed */
    void        *note;           /* anomaly mode: the host language's record of where this was made; lc_note_drop frees it */
    void        *wrapper;        /* the host language's object for this node: borrowed */
    lc_edge     *edges;          /* n_in */
    lc_tensor  **in, **y, **g;   /* n_in, n_out saved aliases; n_out gradients that have arrived */
    lc_tensor  **retain;         /* n_out: tensors whose .grad wants this output's gradient (retain_grad); borrowed; NULL if none */
    lc_value    *args;           /* as in the call, tensors replaced by in[] */
};

/* Gradients of roots (weighted by grads; LC_NONE for scalars) with respect to everything, or to inputs.
 *   inputs NULL: accumulate into .grad of every leaf.
 *   inputs and captured: captured[i] receives a new reference, or LC_NONE if inputs[i] was not reached; no .grad is touched.
 *   inputs without captured: accumulate into .grad of these only. */
int lc_backward_all(lc_tensor *const *roots, lc_tensor *const *grads, int n_roots, lc_tensor *const *inputs, int n_inputs,
                    lc_tensor **captured, bool retain_graph, bool create_graph);
int lc_backward(lc_tensor *root, lc_tensor *grad, bool retain_graph, bool create_graph); /* the usual case; grad may be LC_NONE */

/* Takes the reference on callee, also on failure. id for lc_hook_remove. */
int      lc_hook_add(lc_tensor *t, lc_hook_kind kind, lc_foreign *callee, uint64_t *id);
int      lc_node_hook_add(lc_node *n, lc_hook_kind kind, lc_foreign *callee, uint64_t *id);
void     lc_hook_remove(lc_hook **list, uint64_t id);
int      lc_retain_grad(lc_tensor *t);
lc_node *lc_grad_fn(lc_tensor *t, int *failed); /* borrowed; a view's is rebuilt if its base was written. NULL: a leaf, or *failed */
void     lc_node_spend(lc_node *n);             /* free what was saved */
int      lc_set_requires_grad(lc_tensor *t, bool on);
static inline bool lc_requires_grad(const lc_tensor *t) { return t->flags & LC_REQUIRES_GRAD; }
static inline bool lc_grad_enabled(void) { return !(lc_modes & (LC_NO_GRAD | LC_INFERENCE_MODE)); }
lc_tensor *lc_detach_alias(lc_tensor *t); /* new reference: shares storage and version, no history */

/* saved_tensors_hooks: the binding's stack of pack functions. pack returns an object whose unpack gives the tensor back. */
extern lc_foreign *(*lc_pack_saved)(lc_tensor *t);
/* Anomaly mode: make a note at record time; report it when the node's gradient fails or (check_nan) holds a NaN. */
extern void *(*lc_note_take)(void);
extern void (*lc_note_drop)(void *note);
extern void (*lc_note_report)(const lc_node *n);
extern bool lc_anomaly_check_nan;
extern int (*lc_check_signals)(void); /* called at least every 100 ms of backward; -1 stops it (the host language holds the exception) */

/* Garbage collection of a host language: call visit for every foreign object that is reachable only through t. */
int lc_visit_foreign(lc_tensor *t, int (*visit)(void *object, void *arg), void *arg);

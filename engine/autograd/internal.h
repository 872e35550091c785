/* What the files of this folder share. */
#pragma once
#include "autograd.h"

/* saved.c */
typedef struct { /* stack space for one saved tensor */
    lc_number_box box;
} lc_saved_workspace;
void lc_saved_set(lc_saved *s, const lc_tensor *t, bool values, bool is_leaf, int64_t **dims);
/* The saved tensor as a tensor: on the stack (in work), borrowed, or scoped. NULL: it was overwritten, or unpacking failed. */
lc_tensor *lc_saved_get(const lc_saved *s, lc_foreign *packed, const lc_edge *history, bool attach, lc_saved_workspace *work);
lc_tensor *lc_saved_shape(const lc_saved *s, lc_saved_workspace *work); /* its shape alone, in work */
void       lc_saved_free(lc_saved *s);
/* The object that the user's pack function makes of t. An output is packed without history, which would be a cycle. */
lc_foreign *lc_packed(lc_tensor *t, bool output);

/* node.c */
lc_node *lc_node_new(const lc_record *call,
                     lc_reservation **reserved); /* fills all but edges and number. *reserved: memory taken ahead */
int lc_node_reserve(const lc_record *call, lc_reservation **reserved); /* before the call runs: reserves memory for its node */
uint32_t           lc_saves(const lc_record *call);         /* which inputs and outputs the wanted gradients will read */
int                lc_edge_to(lc_tensor *t, lc_edge *edge); /* the edge to where t's gradient goes; none if it needs none */
int                lc_edge_as_is(lc_tensor *t,
                                 lc_edge   *edge); /* the same, without a refresh: a view that looks stale was written by this very call */
void               lc_edge_drop(lc_edge *edge);
void               lc_node_number(lc_node *n);
void               lc_history_set(lc_tensor *t, lc_node *n, int output); /* makes t output `output` of n */
int                lc_history_from(lc_tensor *t, lc_tensor *source);     /* t's gradient goes to source */
static inline void lc_node_release(lc_node *n) { lc_object_release((lc_object *)n); }

static inline int lc_tensors_of(const lc_op *op, const lc_value *v, int k) /* how many inputs argument k counts for */
{
    if (v->tag == LC_IS_tensors) return v->n;
    return v->tag == LC_IS_tensor || (op->args->params[k].kind == LC_IS_tensor && lc_is_number_tag(v->tag));
}

/* hooks.c */
void lc_hooks_release(lc_hook *hooks);
int  lc_run_grad_hooks(lc_hook **list, int output, lc_tensor **g); /* *g may be replaced; scoped */
int  lc_run_node_hooks(lc_hook **list, lc_hook_kind kind, lc_tensor **changed, int n_changed, lc_tensor *const *other,
                       int n_other);
int  lc_run_post_accumulate_hooks(lc_hook **list, lc_tensor *leaf);
void lc_retained_move(lc_tensor *t, lc_node *from, int from_output, lc_node *to, int to_output);
void lc_retained_end(lc_tensor *t);
void lc_retained_free(lc_node *n);

/* subset.c: which nodes lead to the inputs that backward was asked for. */
typedef struct {
    lc_node *node;
    bool     seen, leads, target; /* walked to; leads to an input; is one */
} lc_subset_entry;
typedef struct {
    lc_subset_entry *slots;
    size_t           cap, len;
    lc_edge         *inputs; /* borrowed edges, one per input */
    lc_tensor      **captured;
    int              n_inputs;
} lc_subset;
int  lc_subset_start(lc_subset *s, const lc_edge *roots, int n_roots, lc_tensor *const *inputs, int n_inputs,
                     lc_tensor **captured);
void lc_subset_end(lc_subset *s);
bool lc_subset_leads(const lc_subset *s, const lc_node *n);      /* its gradient has to run */
bool lc_subset_wants(const lc_subset *s, const lc_edge *edge);   /* a gradient along this edge is of use */
bool lc_subset_reached(const lc_subset *s, const lc_edge *edge); /* and there is a way from the roots to it */
void lc_subset_capture(const lc_subset *s, const lc_node *n, lc_tensor *const *g, int n_g);

/* queues.c: a gradient runs on the queue of its forward call. Only while lc_queues_used. */
enum { LC_RUN_QUEUES = 16 };
typedef struct {
    lc_device device; /* its kind is LC_CPU: the thread is on its own queues */
    void     *own;    /* the thread's queue of that device */
    struct {
        lc_device device;
        void     *queue;
    } used[LC_RUN_QUEUES]; /* by nodes of this run */
    int n_used;
} lc_run_queues;
void lc_node_note_queue(lc_node *n, const lc_record *call);
int  lc_queue_enter(lc_run_queues *q, const lc_node *n);
int  lc_queue_leave(lc_run_queues *q);
/* g goes to `to`: on which queue it may be added to. Returns 1 if the thread is there now and must go back (lc_queue_back). */
typedef struct {
    lc_device device;
    void     *before;
} lc_queue_detour;
int lc_queue_hand_over(const lc_run_queues *q, const lc_node *to, lc_tensor *g, lc_queue_detour *detour);
int lc_queue_back(const lc_queue_detour *detour);
int lc_queues_end(const lc_run_queues *q); /* the thread's queues wait for all that the run used */

/* accumulate.c */
int         lc_accumulate(lc_tensor *leaf, lc_tensor *g, bool create);
int         lc_gradient_add(lc_tensor *to, lc_tensor *g);
int         lc_retained_store(lc_tensor *t, lc_tensor *g);
bool        lc_gradient_unseen(const lc_tensor *g); /* nobody else holds it: it may be taken over or overwritten */
lc_foreign *lc_node_function(const lc_node *n);     /* of a user's Function; NULL of an op */

#include "vmap.h"
#include "../ops/rules.h"
#include <string.h>

static _Thread_local int levels;

int lc_vmap_push(void)
{
    if (levels == 64) return lc_fail_int(LC_LucidError, "vmap: more than 64 levels");
    lc_modes |= LC_BATCH_LEVEL;
    return ++levels;
}
void lc_vmap_pop(void)
{
    if (--levels == 0) lc_modes &= ~(unsigned)LC_BATCH_LEVEL;
}

/* Whether examples should draw the same numbers or their own is the caller's to say; then they run one by one (lucid/func). */
static int refuse_random(lc_record *call)
{
    if (!call->op->random || call->op->kind == LC_KIND_COMPOSITE) return 0; /* the ops that a composite calls are asked */
    return lc_fail_int(
        LC_LucidError,
        "vmap: called random operation %s while in randomness error mode. Please either use the 'same' or 'different' "
        "randomness flags on vmap or perform the randomness operation out of vmap",
        call->op->name);
}
static int               ignore(UNUSED lc_record *call) { return 0; }
static const lc_observer random_guard = { .wakes = LC_BATCH_LEVEL, .before = refuse_random, .after = ignore };

static void batch_drop(lc_object *o)
{
    lc_batch *b = (lc_batch *)o;
    lc_release(b->value);
    lc_free(b, sizeof *b);
}

/* Takes the reference on value, whose dimension 0 is the batch. */
static lc_tensor *wrapped(lc_tensor *value, int level)
{
    lc_batch  *b = value ? lc_alloc(sizeof *b) : NULL;
    lc_tensor *t = b ? lc_tensor_view(value, value->ndim - 1, value->shape + 1, value->stride + 1, 0) : NULL;
    if (!t) {
        lc_free(b, sizeof *b);
        lc_release(value);
        return NULL;
    }
    *b = (lc_batch){ .object = { 1, batch_drop }, .value = value, .level = level };
    t->batch = b;
    t->flags = LC_BATCHED; /* history is the value's */
    return t;
}

lc_tensor *lc_batched(lc_tensor *value, int64_t dim, int level)
{
    if (value->ndim == 0 || dim < -(int64_t)value->ndim || dim >= value->ndim)
        return lc_fail(LC_IndexError, "vmap: in_dim %lld for an input of shape %s", (long long)dim, LC_SHAPE(value));
    if (value->flags & LC_SPARSE)
        return lc_fail(LC_NotImplementedError, "vmap over a sparse tensor is not implemented: its in_dims must be None");
    lc_scope   scope = lc_scope_open();
    lc_tensor *front = lc_movedim(value, (int64_t[]){ dim }, 1, (int64_t[]){ 0 }, 1), *t = NULL;
    if (front) t = wrapped(lc_retain(front), level);
    lc_scope_close(scope);
    return t;
}

static bool batched_at(const lc_tensor *t, int level) { return t->flags & LC_BATCHED && t->batch->level == level; }

lc_tensor *lc_unbatched(lc_tensor *t, int level, int64_t size, int64_t out_dim)
{
    lc_scope   scope = lc_scope_open();
    lc_tensor *value = batched_at(t, level) ? t->batch->value : NULL;
    if (!value) { /* the function's result does not depend on the batch: every example gets it */
        int64_t shape[LC_MAX_DIMS + 1];
        shape[0] = size;
        memcpy(shape + 1, t->shape, (size_t)t->ndim * sizeof *shape);
        value = lc_expand(t, shape, t->ndim + 1);
    }
    if (value && out_dim != 0) value = lc_movedim(value, (int64_t[]){ 0 }, 1, (int64_t[]){ out_dim }, 1);
    if (value) lc_retain(value);
    lc_scope_close(scope);
    return value;
}

/* Elementwise: insert dimensions of size one behind the batch dimension, until the batch is outside the dimensions of all
 * examples. */
static lc_tensor *aligned(lc_tensor *value, int example_ndim, int ndim)
{
    int64_t shape[LC_MAX_DIMS];
    int     n = 0;
    if (example_ndim == ndim) return value;
    shape[n++] = value->shape[0];
    for (int d = example_ndim; d < ndim; d++) shape[n++] = 1;
    for (int d = 0; d < example_ndim; d++) shape[n++] = value->shape[d + 1];
    return lc_reshape(value, shape, n);
}

typedef struct {
    const lc_record *call;
    int              level, ndim; /* ndim: of the largest example */
    int64_t          size;
} batch_call;

/* The call's arguments with tensors replaced by replace(in[k]). in: n_in elements. */
static int replaced_args(const lc_record *call, lc_tensor **in, lc_value *args)
{
    int slot = 0;
    for (int k = 0; k < call->op->args->n_params; k++) {
        args[k] = call->args[k];
        if (call->op->args->params[k].kind == LC_IS_tensor) {
            if (args[k].tag == LC_IS_tensor && !(args[k].t = in[slot])) return -1;
            slot++;
        }
        if (args[k].tag == LC_IS_tensors) args[k].ts = in + slot, slot += args[k].n;
    }
    return 0;
}

static int elementwise_rule(const batch_call *b, lc_tensor **out)
{
    const lc_record *call = b->call;
    lc_value         args[call->op->args->n_params + 1];
    LC_ARRAY(lc_tensor *, in, call->n_in);
    if (!in) return -1;
    lc_scope scope = lc_scope_open();
    for (int k = 0; k < call->n_in; k++)
        in[k] =
            batched_at(call->in[k], b->level) ? aligned(call->in[k]->batch->value, call->in[k]->ndim, b->ndim) : call->in[k];
    int rc = replaced_args(call, in, args) < 0 ? -1 : lc_call(call->op, args, out);
    lc_scope_close(scope);
    return rc;
}

/* No rule: run the examples one by one and stack the results. Correct for every op but slow, so it warns once. */
static int loop_rule(const batch_call *b, lc_tensor **out)
{
    static atomic_bool said;
    const lc_record   *call = b->call;
    lc_value           args[call->op->args->n_params + 1];
    LC_ARRAY(lc_tensor *, in, call->n_in);
    LC_ARRAY(lc_tensor *, one, call->n_out);
    LC_ARRAY(lc_tensor *, results, b->size * call->n_out);
    int     rc = in && one && results ? 0 : -1;
    int64_t done = 0;
    lc_warn_once(&said, "vmap: %s has no batching rule; it runs once per example", call->op->name);
    lc_scope scope = lc_scope_open();
    for (; done < b->size && rc == 0; done++) {
        for (int k = 0; k < call->n_in; k++)
            in[k] = batched_at(call->in[k], b->level) ? lc_select(call->in[k]->batch->value, 0, done) : call->in[k];
        rc = replaced_args(call, in, args) < 0 ? -1 : lc_call(call->op, args, one);
        for (int i = 0; i < call->n_out && rc == 0; i++) rc = (results[i * b->size + done] = lc_scoped(one[i])) ? 0 : -1;
    }
    for (int i = 0; i < call->n_out && rc == 0; i++) {
        lc_tensor *stacked = lc_stack(results + i * b->size, (int)b->size, 0);
        if (stacked) out[i] = lc_retain(stacked);
        else rc = -1;
    }
    lc_scope_close(scope);
    return rc;
}

/* A reduction's dimensions are counted without the batch: name them all, counted with it. LC_NO_RULE: not expressible this way.
 * If a dim that takes a single int is absent, the example is flattened: argmax then counts in the flattened example. */
static int reduction_rule(const batch_call *b, lc_tensor **out)
{
    const lc_record    *call = b->call;
    const lc_signature *sig = call->op->args;
    lc_tensor          *value = call->in[0]->batch->value;
    lc_value            args[sig->n_params + 1];
    int64_t             dims[LC_MAX_DIMS];
    int                 n = 0, ndim = call->in[0]->ndim;
    if (ndim == 0 || call->n_in != 1 || sig->n_params < 2) return LC_NO_RULE;
    memcpy(args, call->args, (size_t)sig->n_params * sizeof *args);
    bool       several = sig->params[1].kind == LC_IS_ints;
    const bool absent = args[1].tag == LC_IS_none || (several && args[1].n == 0);
    if (absent && args[1].tag != LC_IS_none && (sig->params[1].preset.tag != LC_IS_ints || sig->params[1].preset.n))
        return LC_NO_RULE;
    for (int k = 0; absent && k < ndim; k++) dims[n++] = k;
    if (!absent) n = several ? args[1].n : 1;
    if (n > LC_MAX_DIMS) return LC_NO_RULE;
    if (!absent) memcpy(dims, several ? args[1].is : &args[1].i, (size_t)n * sizeof *dims);
    for (int k = 0; k < n; k++) {
        if (dims[k] < -ndim || dims[k] >= ndim) return LC_NO_RULE; /* the example's error */
        dims[k] += dims[k] < 0 ? ndim + 1 : 1;
    }
    lc_scope scope = lc_scope_open();
    if (!several && absent) {
        for (int k = 2; k < sig->n_params; k++)
            if (args[k].tag == LC_IS_bool && args[k].b) return lc_scope_close(scope), LC_NO_RULE; /* keepdim */
        value = lc_reshape(value, (int64_t[]){ b->size, call->in[0]->numel }, 2);
    }
    args[0].t = value;
    args[1] = several ? (lc_value){ .tag = LC_IS_ints, .n = n, .is = dims } : LC_I(dims[0]);
    int rc = value ? lc_call(call->op, args, out) : -1;
    lc_scope_close(scope);
    return rc;
}

/* A view of an example is a geometry; the same geometry with the batch in front is a view of the value. LC_NO_RULE: a view in elements of
 * another size, or of several inputs. */
static int view_rule(const batch_call *b, lc_tensor **out)
{
    const lc_record *call = b->call;
    lc_tensor       *value = call->in[0]->batch->value;
    lc_value         args[call->op->args->n_params + 1];
    LC_ARRAY(lc_tensor *, seen, call->n_out);
    LC_ARRAY(lc_tensor *, in, call->n_in);
    if (!seen || !in) return -1;
    if (call->op->view_of != IN(0) || call->n_in != 1) return LC_NO_RULE;
    lc_scope scope = lc_scope_open();
    memcpy(in, call->in, (size_t)call->n_in * sizeof *in);
    in[0] = lc_scoped(lc_tensor_view(value, value->ndim - 1, value->shape + 1, value->stride + 1, 0));
    int rc = replaced_args(call, in, args) < 0 ? -1 : call->op->call(args, seen);
    for (int i = 0; i < call->n_out && rc == 0; i++) {
        const lc_tensor *t = seen[i];
        if (t->dtype != value->dtype) {
            rc = LC_NO_RULE;
            break;
        }
        int64_t shape[LC_MAX_DIMS + 1] = { b->size }, stride[LC_MAX_DIMS + 1] = { value->stride[0] };
        memcpy(shape + 1, t->shape, (size_t)t->ndim * sizeof *shape);
        memcpy(stride + 1, t->stride, (size_t)t->ndim * sizeof *stride);
        lc_tensor *all = lc_as_strided_from(call->op->grad ? value : lc_detach(value), shape, t->ndim + 1, stride, t->ndim + 1,
                                            (t->data - in[0]->data) / lc_size_of(t->dtype));
        if (all) out[i] = lc_retain(all);
        else rc = -1;
    }
    lc_scope_close(scope);
    return rc;
}

/* Without a gradient of its own a composite is made of ops alone: these are batched one by one. */
static int composite_rule(const lc_record *call)
{
    lc_scope scope = lc_scope_open();
    int      rc = lc_composite_body(call->op, call->args, call->out);
    for (int i = call->n_out - 1; i >= 0; i--)
        if (rc == 0 && call->out[i]) lc_retain(call->out[i]);
        else call->out[i] = NULL, rc = -1;
    lc_scope_close(scope);
    return rc;
}

static bool orders_dimensions(const lc_record *call) /* an argument asks for an order of the example's dimensions in memory */
{
    for (int k = 0; k < call->op->args->n_params; k++) {
        const lc_value *v = &call->args[k];
        if (v->tag == LC_IS_format && v->fmt != LC_PRESERVE_FORMAT && v->fmt != LC_CONTIGUOUS_FORMAT) return true;
    }
    return false;
}

/* Matrices: the batch is one more dimension in front of every operand. */
static int matrices_rule(const batch_call *b, lc_tensor **out)
{
    const lc_record *call = b->call;
    lc_value         args[call->op->args->n_params + 1];
    LC_ARRAY(lc_tensor *, in, call->n_in);
    if (!in) return -1;
    lc_scope scope = lc_scope_open();
    for (int k = 0; k < call->n_in; k++) {
        lc_tensor *t = call->in[k];
        int64_t    shape[LC_MAX_DIMS + 1] = { b->size };
        memcpy(shape + 1, t->shape, (size_t)t->ndim * sizeof *shape);
        in[k] = batched_at(t, b->level) ? t->batch->value : t == LC_NONE ? t : lc_expand(t, shape, t->ndim + 1);
    }
    int rc = replaced_args(call, in, args) < 0 ? -1 : lc_call(call->op, args, out);
    lc_scope_close(scope);
    return rc;
}

/* A product of matrices: matmul over one more dimension. Vectors become matrices of one column or row first. */
static int product_rule(const batch_call *b, lc_tensor **out)
{
    const lc_record *call = b->call;
    const uint8_t   *dims = call->op->operand_dims;
    lc_tensor       *in[2], *y;
    lc_scope         scope = lc_scope_open();
    for (int k = 0; k < 2; k++) {
        lc_tensor *t = call->in[k];
        if (t->ndim != dims[k]) return lc_scope_close(scope), LC_NO_RULE; /* the example's error */
        in[k] = batched_at(t, b->level) ? t->batch->value : t;
        if (dims[k] == 1) in[k] = lc_unsqueeze(in[k], k ? -1 : -2);
    }
    y = lc_matmul(in[0], in[1]);
    for (int k = 0; k < 2 && y; k++)
        if (dims[k] == 1) y = lc_squeeze(y, (const int64_t[]){ -1 }, 1);
    out[0] = y ? lc_retain(y) : NULL;
    lc_scope_close(scope);
    return y ? 0 : -1;
}

/* ---- what an op says of itself (.batching) ---- */
/* The inputs with the batch in front. LC_NO_RULE: one has a batch that may not have it. */
static int batched_inputs(const batch_call *b, lc_tensor **in)
{
    const lc_record *call = b->call;
    const lc_op     *op = call->op;
    for (int k = 0, slot = 0; k < op->args->n_params; k++) {
        const lc_value *v = &call->args[k];
        bool            one = op->args->params[k].kind == LC_IS_tensor, free = !op->batched || op->batched & IN(k);
        for (int n = v->tag == LC_IS_tensors ? v->n : one; n > 0; n--, slot++) {
            lc_tensor *t = call->in[slot];
            int64_t    shape[LC_MAX_DIMS + 1] = { b->size };
            in[slot] = t;
            if (batched_at(t, b->level)) {
                if (!free) return LC_NO_RULE;
                in[slot] = t->batch->value;
            } else if (free && t != LC_NONE && !t->is_number) {
                memcpy(shape + 1, t->shape, (size_t)t->ndim * sizeof *shape);
                if (!(in[slot] = lc_expand(t, shape, t->ndim + 1))) return -1;
            }
        }
    }
    return 0;
}
/* Dimensions counted with the batch. LC_NO_RULE: the example's error, or nothing to count. */
static int moved_dims(const lc_record *call, lc_value *args, int64_t *dims)
{
    int ndim = call->in[0]->ndim;
    for (int k = 0; k < call->op->args->n_params; k++) {
        const lc_param *p = &call->op->args->params[k];
        if (strcmp(p->name, "dim") && strcmp(p->name, "dims")) continue;
        int n = args[k].tag == LC_IS_none ? ndim : p->kind == LC_IS_ints ? args[k].n : 1;
        if (n < 1 || n > LC_MAX_DIMS || (args[k].tag == LC_IS_none && p->kind != LC_IS_ints)) return LC_NO_RULE;
        for (int d = 0; d < n; d++) {
            dims[d] = args[k].tag == LC_IS_none ? d : p->kind == LC_IS_ints ? args[k].is[d] : args[k].i;
            if (dims[d] < -ndim || dims[d] >= ndim) return LC_NO_RULE;
            dims[d] += dims[d] >= 0;
        }
        args[k] = p->kind == LC_IS_ints ? (lc_value){ .tag = LC_IS_ints, .n = n, .is = dims } : LC_I(dims[0]);
        return 0;
    }
    return LC_NO_RULE;
}
static int flattened_samples(const batch_call *b, lc_tensor **in)
{
    int64_t shape[LC_MAX_DIMS];
    if (in[0]->ndim < 2 || !b->size) return LC_NO_RULE;
    memcpy(shape + 1, in[0]->shape + 2, (size_t)(in[0]->ndim - 2) * sizeof *shape);
    shape[0] = in[0]->shape[0] * in[0]->shape[1];
    return (in[0] = lc_reshape(in[0], shape, in[0]->ndim - 1)) ? 0 : -1;
}
static int separated_samples(const batch_call *b, lc_tensor **out)
{
    for (int i = 0; i < b->call->n_out; i++) {
        lc_tensor *t = lc_scoped(out[i]);
        int64_t    shape[LC_MAX_DIMS] = { b->size, t->shape[0] / b->size };
        memcpy(shape + 2, t->shape + 1, (size_t)(t->ndim - 1) * sizeof *shape);
        if (!(out[i] = lc_reshape(t, shape, t->ndim + 1))) return -1;
        lc_retain(out[i]);
    }
    return 0;
}
static int own_rule(const batch_call *b, lc_tensor **out)
{
    const lc_record *call = b->call;
    LC_ARRAY(lc_tensor *, in, call->n_in);
    LC_ARRAY(bool, batched, call->n_in);
    if (!in || !batched) return -1;
    lc_scope scope = lc_scope_open();
    for (int k = 0; k < call->n_in; k++) {
        batched[k] = batched_at(call->in[k], b->level);
        in[k] = batched[k] ? call->in[k]->batch->value : call->in[k];
    }
    int rc = call->op->batch(&(lc_batch_call){ call, in, batched, b->size }, out);
    for (int i = 0; i < call->n_out && rc == 0; i++)
        if (out[i]) lc_retain(out[i]);
        else rc = -1;
    return lc_scope_close(scope), rc;
}
static int declared_rule(const batch_call *b, lc_tensor **out)
{
    const lc_record *call = b->call;
    lc_value         args[call->op->args->n_params + 1];
    int64_t          dims[LC_MAX_DIMS];
    LC_ARRAY(lc_tensor *, in, call->n_in);
    if (!in) return -1;
    lc_scope scope = lc_scope_open();
    int      rc = batched_inputs(b, in);
    if (rc == 0 && call->op->batching == LC_BATCH_BROADCAST) return lc_scope_close(scope), elementwise_rule(b, out);
    if (rc == 0) rc = replaced_args(call, in, args);
    if (rc == 0 && call->op->batching == LC_BATCH_SAMPLES) rc = flattened_samples(b, in), args[0].t = in[0];
    if (rc == 0 && call->op->batching == LC_BATCH_DIMS) {
        for (int k = 1; k < call->n_in && !call->op->batched; k++)
            if (call->in[k]->ndim != call->in[0]->ndim && !call->in[k]->is_number) rc = LC_NO_RULE;
        if (rc == 0) rc = moved_dims(call, args, dims);
    }
    if (rc == 0) rc = lc_call(call->op, args, out);
    if (rc == 0 && call->op->batching == LC_BATCH_SAMPLES) rc = separated_samples(b, out);
    return lc_scope_close(scope), rc;
}

/* In place the result is the written tensor, which keeps its batch: its value is written. */
static int in_place_rule(const batch_call *b)
{
    lc_record *call = (lc_record *)b->call;
    bool       by_element = call->op->kind == LC_KIND_ELEMENTWISE || call->op->batching == LC_BATCH_BROADCAST;
    bool       possible = by_element && call->op->writes == IN(0) && !call->out_given;
    if (!possible) return lc_fail_int(LC_NotImplementedError, "vmap: %s writes in place", call->op->name);
    if (!batched_at(call->in[0], b->level) || call->in[0]->ndim < b->ndim)
        return lc_fail_int(
            LC_LucidError,
            "vmap: %s is not possible in place: the examples' values do not fit into the written tensor, which is "
            "not batched or has fewer dimensions",
            call->op->name);
    if (elementwise_rule(b, call->out) < 0) return -1;
    lc_release(call->out[0]);
    return call->out[0] = lc_retain(call->in[0]), 0;
}

/* Applies the batching rule of the op or of its class: LC_NO_RULE if there is none. */
static int rule_of_class(const batch_call *b, lc_tensor **out)
{
    int rc = b->call->op->batching ? declared_rule(b, out) : LC_NO_RULE;
    if (rc == LC_NO_RULE && b->call->op->batch && b->size) rc = own_rule(b, out);
    if (rc != LC_NO_RULE || b->call->op->batching) return rc;
    switch (b->call->op->kind) {
    case LC_KIND_ELEMENTWISE:
        return orders_dimensions(b->call) ? LC_NO_RULE : elementwise_rule(b, out);
    case LC_KIND_REDUCTION:
    case LC_KIND_LINES:
        return reduction_rule(b, out);
    case LC_KIND_VIEW:
        return view_rule(b, out);
    case LC_KIND_MATRICES:
        return matrices_rule(b, out);
    case LC_KIND_PRODUCT:
        return product_rule(b, out);
    default:
        return LC_NO_RULE;
    }
}

static int batch_transform(lc_record *call)
{
    batch_call b = { .call = call };
    for (int k = 0; k < call->n_in; k++)
        if (call->in[k]->flags & LC_BATCHED && call->in[k]->batch->level > b.level) b.level = call->in[k]->batch->level;
    for (int k = 0; k < call->n_in; k++) {
        if (batched_at(call->in[k], b.level)) b.size = call->in[k]->batch->value->shape[0];
        if (call->in[k]->ndim > b.ndim) b.ndim = call->in[k]->ndim;
    }
    if (refuse_random(call) < 0) return -1;
    if (call->op->kind == LC_KIND_COMPOSITE && !call->op->grad && !call->op->reads_values && !call->out_given)
        return composite_rule(call);
    if (call->op->writes || call->out_given) return in_place_rule(&b);
    int rc = rule_of_class(&b, call->out);
    if (rc == LC_NO_RULE) rc = loop_rule(&b, call->out);
    for (int i = 0; i < call->n_out && rc == 0; i++)
        if (!(call->out[i] = wrapped(call->out[i], b.level))) rc = -1;
    return rc;
}

static __attribute__((constructor)) void start_vmap(void)
{
    lc_batch_transform = batch_transform;
    lc_observe(&random_guard);
}

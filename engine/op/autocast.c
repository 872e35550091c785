/* Autocast: inside `with autocast(...)` ops compute in the dtype that their .amp rule names.
 *
 * A call with a rule is made again with its floating tensors converted and the mode off. So only the rule of the outermost
 * op counts, as in PyTorch; the ops inside a composite follow no rule of their own. float64 is never converted; forms that
 * write (in place, out=) run as they are. Conversions are ordinary recorded calls, so gradients arrive in the dtype of the
 * original tensor.
 *
 * A leaf that requires grad is a parameter: its conversion to the lower dtype is cached until the outermost context ends, in
 * a per-thread table keyed by address. The table holds a reference to the parameter, so that no other tensor can get the
 * same address. A conversion is repeated if the parameter was written since (PyTorch would use the old values), or if it was
 * made under no_grad and is now recorded. */
#include "promote.h"
#include "op_calls.gen.h"
#include <string.h>

typedef struct {
    lc_tensor  *from, *to;
    const char *data; /* from->data at conversion time: x.data = y changes it without a new version */
    uint32_t    version;
} kept_cast;
static LC_HOT_TLS struct {
    kept_cast *kept; /* open addressing; capacity is a power of two, at most half full */
    int        n, capacity, depth;
    uint8_t    dtype[LC_AUTOCAST_KINDS]; /* 0: not set, the default */
    bool       on[LC_AUTOCAST_KINDS], keeps_nothing;
} state;

/* ---- the state of this thread ---- */
bool     lc_autocast_enabled(lc_device_kind kind) { return kind < LC_AUTOCAST_KINDS && state.on[kind]; }
lc_dtype lc_autocast_dtype(lc_device_kind kind)
{
    if (kind >= LC_AUTOCAST_KINDS || !state.dtype[kind]) return kind == LC_CUDA ? LC_f16 : LC_bf16;
    return (lc_dtype)(state.dtype[kind] - 1);
}
void lc_autocast_set(lc_device_kind kind, bool on, lc_dtype dtype)
{
    bool any = false;
    state.on[kind] = on, state.dtype[kind] = (uint8_t)(dtype + 1);
    for (int k = 0; k < LC_AUTOCAST_KINDS; k++) any |= state.on[k];
    lc_modes = any ? lc_modes | LC_AUTOCAST : lc_modes & ~LC_AUTOCAST;
}
bool lc_autocast_keeps(void) { return !state.keeps_nothing; }
void lc_autocast_keep(bool on) { state.keeps_nothing = !on; }
int  lc_autocast_nest(int by) { return state.depth += by; }
void lc_autocast_forget(void)
{
    kept_cast *kept = state.kept;
    int        capacity = state.capacity;
    state.kept = NULL, state.n = state.capacity = 0; /* the releases below may run code of the host language */
    for (int i = 0; i < capacity; i++) lc_release(kept[i].from), lc_release(kept[i].to);
    lc_free(kept, (size_t)capacity * sizeof *kept);
}

/* ---- conversions that are kept ---- */
static kept_cast *place_of(kept_cast *table, int capacity, const lc_tensor *t)
{
    unsigned at = (unsigned)(((uintptr_t)t >> 4) * 0x9E3779B97F4A7C15u >> 32);
    while (table[at & (unsigned)(capacity - 1)].from && table[at & (unsigned)(capacity - 1)].from != t) at++;
    return &table[at & (unsigned)(capacity - 1)];
}
static int grow_cache(void)
{
    if (2 * (state.n + 1) <= state.capacity) return 0;
    int        capacity = state.capacity ? 2 * state.capacity : 64;
    kept_cast *table = lc_alloc((size_t)capacity * sizeof *table);
    if (!table) return -1;
    memset(table, 0, (size_t)capacity * sizeof *table);
    for (int i = 0; i < state.capacity; i++)
        if (state.kept[i].from) *place_of(table, capacity, state.kept[i].from) = state.kept[i];
    lc_free(state.kept, (size_t)state.capacity * sizeof *table);
    return state.kept = table, state.capacity = capacity, 0;
}
static lc_tensor *convert(lc_tensor *t, lc_dtype to) { return lc__to_copy(t, to, t->device, LC_PRESERVE_FORMAT); } /* scoped */
static lc_tensor *convert_and_keep(lc_tensor *t, lc_dtype to)
{
    bool       recording = !(lc_modes & (LC_NO_GRAD | LC_INFERENCE_MODE));
    kept_cast *k = state.capacity ? place_of(state.kept, state.capacity, t) : NULL;
    if (k && k->from && k->to->dtype == to && k->version == lc_version(t) && k->data == t->data &&
        (!recording || k->to->flags & LC_REQUIRES_GRAD) && !(k->to->flags & LC_INFERENCE && !(lc_modes & LC_INFERENCE_MODE)))
        return k->to;
    lc_tensor *made = convert(t, to), *before = NULL;
    if (!made || grow_cache() < 0) return NULL;
    k = place_of(state.kept, state.capacity, t);
    if (k->from) before = k->to;
    else k->from = lc_retain(t), state.n++;
    k->to = lc_retain(made), k->version = lc_version(t), k->data = t->data;
    lc_release(before);
    return made;
}

/* ---- calls ---- */
static bool concerns(const lc_tensor *t, lc_device_kind kind)
{
    return t != LC_NONE && !t->is_number && t->device.kind == kind && lc_is_floating(t->dtype) && t->dtype != LC_f64;
}
static lc_tensor *as_wanted(lc_tensor *t, lc_device_kind kind, lc_dtype to)
{
    if (!concerns(t, kind) || t->dtype == to) return t;
    bool parameter = to == lc_autocast_dtype(kind) && t->dtype == LC_f32 && t->flags & LC_REQUIRES_GRAD && !t->node && !t->base;
    return parameter && !state.keeps_nothing && !(t->flags & LC_BATCHED) ? convert_and_keep(t, to) : convert(t, to);
}

static lc_amp rule_of(const lc_op *op, lc_device_kind kind) { return (lc_amp)(kind == LC_CUDA ? op->amp >> 4 : op->amp & 15); }
bool          lc_autocast_concerns(const lc_record *call)
{
    lc_device_kind kind = (lc_device_kind)call->device.kind;
    return lc_autocast_enabled(kind) && rule_of(call->op, kind) != LC_AMP_KEEP;
}

/* What all inputs are converted to; -1 after lc_fail. */
static int target_of(const lc_record *call)
{
    lc_device_kind kind = (lc_device_kind)call->device.kind;
    lc_dtype       lower = lc_autocast_dtype(kind);
    switch ((int)rule_of(call->op, kind)) {
    case LC_AMP_LOWER & 15:
    case LC_AMP_LSTM & 15:
        return lower;
    case LC_AMP_FP32 & 15:
        return LC_f32;
    case LC_AMP_LIKE_STATE & 15: /* the first floating tensor after argument 0 */
        for (int k = 1; k < call->n_in; k++)
            if (concerns(call->in[k], kind)) return call->in[k]->dtype;
        return lower;
    default: /* the widest: float32 if there is any, else all are of the lower dtype */
        for (int k = 0; k < call->n_in; k++)
            if (concerns(call->in[k], kind) && call->in[k]->dtype == LC_f32) return LC_f32;
        for (int k = 0; k < call->n_in; k++)
            if (concerns(call->in[k], kind) && call->in[k]->dtype != lower)
                return lc_fail_int(LC_LucidError, "%s: unexpected floating dtype %s in autocast to %s", call->op->name,
                                   lc_dtypes[call->in[k]->dtype].name, lc_dtypes[lower].name);
        return lower;
    }
}

/* Of an lstm's states (argument 1): the cells, if they have another width than the output. */
static bool stays(const lc_value *v, int k, int i)
{
    const lc_tensor *h = v->ts[0], *t = v->ts[i];
    return k == 1 && i == 1 && h->ndim && h->ndim == t->ndim && h->shape[h->ndim - 1] != t->shape[t->ndim - 1];
}

int lc_autocast_call(lc_record *call)
{
    const lc_op   *op = call->op;
    lc_device_kind kind = (lc_device_kind)call->device.kind;
    lc_value       args[op->args->n_params];
    LC_ARRAY(lc_tensor *, list, call->n_in);
    if (!list) return -1;
    lc_tensor **next = list;
    int         to = target_of(call), rc = to < 0 ? -1 : 0;
    bool        lstm = rule_of(op, kind) == (LC_AMP_LSTM & 15);
    lc_scope    scope = lc_scope_open();
    for (int k = 0; k < op->args->n_params && rc == 0; k++) {
        lc_value *v = &args[k];
        *v = call->args[k];
        if (v->tag == LC_IS_tensor) rc = (v->t = as_wanted(v->t, kind, (lc_dtype)to)) ? 0 : -1;
        if (v->tag != LC_IS_tensors) continue;
        lc_tensor **start = next;
        for (int i = 0; i < v->n && rc == 0; i++)
            if (lstm && stays(v, k, i)) *next++ = v->ts[i];
            else rc = (*next++ = as_wanted(v->ts[i], kind, (lc_dtype)to)) ? 0 : -1;
        v->ts = start;
    }
    if (rc == 0) rc = lc_call(op, args, call->out);
    lc_scope_close(scope);
    return rc;
}

lc_tensor *lc_autocast_fp32(lc_tensor *t)
{
    lc_device_kind kind = (lc_device_kind)t->device.kind;
    return lc_autocast_enabled(kind) && lc_modes & LC_AUTOCAST ? as_wanted(t, kind, LC_f32) : t;
}

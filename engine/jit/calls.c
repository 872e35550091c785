/* See calls.h. Tensors are numbered: inputs, then tensors from outside and results in the order in which they were met. */
#include "calls.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    const lc_op *op;
    lc_value    *args; /* owned; tensors are found through ends */
    int         *ends; /* numbers of the tensors of all arguments, lists flattened, -1: none; results behind them */
    int          n_in, n_out;
    unsigned     modes;
    bool         out_given;
} one_call;
typedef struct {
    lc_tensor *tensor; /* while recording: held. Later: only of tensors from outside */
    lc_dtype   dtype;
    int        ndim;
    bool       outside, wants, written; /* wants: a gradient */
} numbered;
struct lc_calls {
    one_call *calls;
    numbered *tensors;
    int       n_calls, n_tensors, n_inputs, n_results, *results;
};

enum {
    KEPT_MODES = LC_NO_GRAD,
    REFUSED_MODES = LC_AUTOCAST | LC_INFERENCE_MODE | LC_BATCH_LEVEL | LC_SAVED_HOOKS | LC_ANOMALY
};

_Thread_local bool             lc_calls_incomplete;
static _Thread_local lc_calls *recording;
static _Thread_local int       depth;

static void *grown(void *items, int n, size_t size)
{
    return n & (n - 1) ? items : realloc(items, (n ? 2 * (size_t)n : 1) * size);
}

static void drop_call(one_call *c)
{
    for (int k = 0; c->args && k < c->op->args->n_params; k++) lc_argument_drop(&c->args[k]);
    free(c->args), free(c->ends);
}
void lc_calls_free(lc_calls *c)
{
    if (!c) return;
    for (int i = 0; i < c->n_calls; i++) drop_call(&c->calls[i]);
    for (int i = 0; i < c->n_tensors; i++)
        if (c->tensors[i].tensor) lc_release(c->tensors[i].tensor);
    free(c->calls), free(c->tensors), free(c->results), free(c);
}
void lc_calls_refuse(void)
{
    lc_calls_free(recording);
    recording = NULL;
}

static int known(const lc_calls *c, const lc_tensor *t)
{
    for (int i = c->n_tensors - 1; i >= 0; i--)
        if (c->tensors[i].tensor == t) return i;
    return -1;
}
static int enter(lc_calls *c, lc_tensor *t, bool outside) /* -1: no memory */
{
    numbered *more = grown(c->tensors, c->n_tensors, sizeof *more);
    if (!more) return -1;
    c->tensors = more;
    c->tensors[c->n_tensors] = (numbered){ .tensor = lc_retain(t),
                                           .dtype = (lc_dtype)t->dtype,
                                           .ndim = t->ndim,
                                           .outside = outside,
                                           .wants = t->flags & LC_REQUIRES_GRAD };
    return c->n_tensors++;
}

/* ---- recording ---- */
bool lc_calls_begin(lc_tensor *const *inputs, int n)
{
    lc_calls_refuse();
    depth = 0, lc_calls_incomplete = false;
    if (!lc_trace_running() || (lc_modes & REFUSED_MODES) || !(recording = calloc(1, sizeof *recording))) return false;
    for (int i = 0; i < n; i++) /* the same tensor twice: its first number is never found, which is right for all of them */
        if (enter(recording, inputs[i], false) < 0) return lc_calls_refuse(), false;
    recording->n_inputs = n;
    return true;
}

void lc_calls_enter(void) { depth++; }

static int number_of(lc_calls *c, lc_tensor *t, const lc_graph *g) /* -1: none; -2: it came from nowhere */
{
    if (t == LC_NONE) return -1;
    int at = known(c, t);
    if (at >= 0) return at;
    if (t->trace_id == g->serial << 32) return -2;
    return (at = enter(c, t, true)) < 0 ? -2 : at;
}

static bool record(lc_calls *c, const lc_record *call)
{
    const lc_op *op = call->op;
    int          n_args = op->args->n_params, slot = 0;
    if (op->id == LC_OP_function || op->reads_values || (lc_modes & REFUSED_MODES)) return false;
    one_call *more = grown(c->calls, c->n_calls, sizeof *more);
    if (!more) return false;
    c->calls = more;
    one_call *made = &c->calls[c->n_calls];
    *made = (one_call){ .op = op,
                        .args = calloc((size_t)n_args + 1, sizeof *made->args),
                        .ends = calloc((size_t)(call->n_in + call->n_out) + 1, sizeof *made->ends),
                        .n_in = call->n_in,
                        .n_out = call->n_out,
                        .modes = lc_modes & KEPT_MODES,
                        .out_given = call->out_given };
    c->n_calls++;
    if (!made->args || !made->ends) return false;
    for (int k = 0; k < n_args; k++) {
        made->args[k] = call->args[k];
        if (lc_argument_keep(&made->args[k]) < 0) return false;
        const lc_value *v = &call->args[k];
        int             many = v->tag == LC_IS_tensors ? v->n : op->args->params[k].kind == LC_IS_tensor;
        for (int i = 0; i < many; i++) {
            lc_tensor *t = v->tag == LC_IS_tensors ? v->ts[i] : v->tag == LC_IS_tensor ? v->t : LC_NONE;
            if (slot == call->n_in) return false;
            bool number = t != LC_NONE && t->is_number;
            made->ends[slot] = number ? -1 : number_of(c, t, lc_trace_graph());
            if (number && v->tag == LC_IS_tensors) return false;
            if (made->ends[slot] == -2) return false;
            if (made->ends[slot] >= 0 && op->writes & IN(k)) c->tensors[made->ends[slot]].written = true;
            slot++;
        }
    }
    if (slot != call->n_in) return false;
    for (int i = 0; i < call->n_out; i++) {
        int at = known(c, call->out[i]);
        if (at < 0 && (at = enter(c, call->out[i], false)) < 0) return false;
        made->ends[slot + i] = at;
    }
    return true;
}
void lc_calls_leave(const lc_record *call)
{
    if (depth > 0) depth--;
    if (!recording || depth > 0) return;
    if (!record(recording, call)) lc_calls_refuse();
}

lc_calls *lc_calls_end(lc_tensor *const *results, int n)
{
    lc_calls *c = recording;
    recording = NULL;
    if (!c) return NULL;
    c->results = calloc((size_t)n + 1, sizeof *c->results);
    bool right = c->results && !lc_calls_incomplete;
    for (int i = 0; i < n && right; i++) right = (c->results[i] = known(c, results[i])) >= 0;
    c->n_results = n;
    for (int i = 0; i < c->n_inputs && right; i++) right = !c->tensors[i].written; /* who calls might see half of a change */
    for (int i = 0; i < c->n_tensors; i++) {
        numbered *t = &c->tensors[i];
        if (!t->outside) lc_release(t->tensor), t->tensor = NULL;
    }
    if (!right) lc_calls_free(c);
    return right ? c : NULL;
}

/* ---- two records ---- */
static bool same_call(const one_call *a, const one_call *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out || a->modes != b->modes || a->out_given != b->out_given)
        return false;
    for (int k = 0; k < a->op->args->n_params; k++)
        if (!lc_argument_same(&a->args[k], &b->args[k])) return false;
    return !memcmp(a->ends, b->ends, (size_t)(a->n_in + a->n_out) * sizeof *a->ends);
}
bool lc_calls_alike(const lc_calls *a, const lc_calls *b)
{
    if (a->n_calls != b->n_calls || a->n_tensors != b->n_tensors || a->n_inputs != b->n_inputs ||
        a->n_results != b->n_results || memcmp(a->results, b->results, (size_t)a->n_results * sizeof *a->results))
        return false;
    for (int i = 0; i < a->n_tensors; i++) {
        const numbered *x = &a->tensors[i], *y = &b->tensors[i];
        if (x->tensor != y->tensor || x->dtype != y->dtype || x->ndim != y->ndim || x->wants != y->wants) return false;
    }
    for (int i = 0; i < a->n_calls; i++)
        if (!same_call(&a->calls[i], &b->calls[i])) return false;
    return true;
}

/* ---- once more ---- */
static int run_call(const lc_calls *c, const one_call *call, lc_tensor **now)
{
    int        slot = 0, n_args = call->op->args->n_params;
    lc_value   args[n_args + 1];
    lc_tensor *ends[call->n_in + 1], *out[call->n_out + 1];
    for (int k = 0; k < call->n_in; k++) ends[k] = call->ends[k] < 0 ? LC_NONE : now[call->ends[k]];
    for (int k = 0; k < n_args; k++) {
        args[k] = call->args[k];
        if (args[k].tag == LC_IS_tensors) args[k].ts = ends + slot, slot += args[k].n;
        else if (call->op->args->params[k].kind == LC_IS_tensor) {
            if (args[k].tag == LC_IS_tensor) args[k].t = ends[slot];
            slot++;
        }
    }
    if (lc_count(call->op, args) != call->n_out) return 1;
    for (int i = 0; i < call->n_out && call->out_given; i++) out[i] = now[call->ends[call->n_in + i]];
    unsigned modes = lc_modes;
    lc_modes = (modes & ~(unsigned)KEPT_MODES) | call->modes;
    int rc = call->out_given ? lc_call_out(call->op, args, out) : lc_call(call->op, args, out);
    lc_modes = (lc_modes & ~(unsigned)KEPT_MODES) | (modes & KEPT_MODES);
    for (int i = 0; i < call->n_out && rc >= 0; i++) {
        int             at = call->ends[call->n_in + i];
        const numbered *was = &c->tensors[at];
        if (now[at] && now[at] != out[i]) rc = 1; /* the same tensor then, another one now */
        for (int k = 0; k < at && !now[at] && rc == 0; k++) rc = now[k] == out[i];
        rc =
            rc || out[i]->dtype != was->dtype || out[i]->ndim != was->ndim || !(out[i]->flags & LC_REQUIRES_GRAD) == was->wants;
        if (now[at]) lc_release(out[i]);
        else now[at] = out[i];
    }
    return rc;
}

static lc_tensor *copy_of(lc_tensor *t)
{
    lc_tensor *copy = lc_tensor_new((lc_dtype)t->dtype, t->device, t->ndim, t->shape);
    if (!copy || lc_copy_values(copy, t) == 0) return copy;
    lc_release(copy);
    return NULL;
}

int lc_calls_run(const lc_calls *c, lc_tensor *const *inputs, int n_inputs, lc_tensor **results)
{
    lc_tensor **now = calloc((size_t)c->n_tensors + 1, sizeof *now),
              **before = calloc((size_t)c->n_tensors + 1, sizeof *before);
    int rc = now && before ? 0 : lc_fail_int(LC_OutOfMemory, "out of memory: calls");
    if (rc == 0 && n_inputs != c->n_inputs) rc = lc_fail_int(LC_ValueError, "%d inputs, not %d", n_inputs, c->n_inputs);
    for (int i = 0; i < c->n_tensors && rc == 0; i++) {
        lc_tensor *t = i < n_inputs ? inputs[i] : c->tensors[i].tensor;
        if (t) now[i] = lc_retain(t);
        if (t && c->tensors[i].written) {
            lc_trace_pause(true);
            if (!(before[i] = copy_of(t))) rc = -1;
            lc_trace_pause(false);
        }
    }
    for (int i = 0; i < c->n_calls && rc == 0; i++) rc = run_call(c, &c->calls[i], now);
    for (int i = 0; i < c->n_results && rc == 0; i++) results[i] = lc_retain(now[c->results[i]]);
    for (int i = 0; now && before && i < c->n_tensors; i++) {
        if (before[i] && rc != 0) {
            lc_trace_pause(true);
            lc_copy_values(now[i], before[i]);
            lc_trace_pause(false);
        }
        if (before[i]) lc_release(before[i]);
        if (now[i]) lc_release(now[i]);
    }
    free(now), free(before);
    return rc;
}
int lc_calls_results(const lc_calls *c) { return c->n_results; }

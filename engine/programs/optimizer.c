/* SGD, Adam and AdamW for C programs: PyTorch's steps, made by the fused ops of ops/optim/optimizer.c.
 *
 * A step gathers the parameters that have a gradient. States are made when a parameter makes its first step, so an optimizer costs nothing before that, and
 * a parameter that never gets a gradient never has one. SGD's first momentum is the gradient itself, not damped: parameters without a momentum make a call
 * of their own. */
#include "parts.h"

#include "op_calls.gen.h"
#include <math.h>
#include <string.h>

lc_optimizer *lc_optimizer_new(lc_optimizer_kind kind, lc_tensor *const *params, int n, double lr)
{
    if (kind != LC_SGD && kind != LC_ADAM && kind != LC_ADAMW)
        return lc_fail(LC_ValueError, "lc_optimizer_new: there is no optimizer %d", kind);
    if (n < 1) return lc_fail(LC_ValueError, "optimizer got an empty parameter list");
    if (!(lr >= 0)) return lc_fail(LC_ValueError, "Invalid learning rate: %g", lr);
    for (int i = 0; i < n; i++) {
        if (!params[i]) return NULL; /* an earlier failure passes through */
        if (!lc_is_floating(params[i]->dtype))
            return lc_fail(LC_DtypeMismatch, "parameter %d is %s: an optimizer takes floating point tensors", i,
                           LC_SHAPE(params[i]));
        if (params[i]->flags & LC_SPARSE)
            return lc_fail(LC_NotImplementedError, "parameter %d is sparse: an optimizer takes dense tensors", i);
    }
    size_t        each = (size_t)n * sizeof(lc_tensor *), lists = 2 + LC_OPTIMIZER_STATES;
    lc_optimizer *o = lc_alloc(sizeof *o);
    lc_tensor   **all = o ? lc_alloc(lists * each) : NULL;
    if (!all) {
        if (o) lc_free(o, sizeof *o);
        return NULL;
    }
    memset(all, 0, lists * each);
    *o = (lc_optimizer){
        .kind = kind, .lr = lr, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .n = n, .params = all, .steps = all + n
    };
    if (kind == LC_ADAMW) o->weight_decay = 0.01;
    for (int k = 0; k < LC_OPTIMIZER_STATES; k++) o->states[k] = all + (2 + k) * n;
    for (int i = 0; i < n; i++) all[i] = lc_retain(params[i]);
    return o;
}

void lc_optimizer_free(lc_optimizer *o)
{
    if (!o) return;
    int lists = 2 + LC_OPTIMIZER_STATES;
    lc_release_all(o->params, lists * o->n);
    lc_free(o->params, (size_t)(lists * o->n) * sizeof(lc_tensor *));
    lc_free(o, sizeof *o);
}

void lc_optimizer_zero_grad(lc_optimizer *o)
{
    for (int i = 0; i < o->n; i++) lc_release(o->params[i]->grad), o->params[i]->grad = NULL;
}

/* How many lists of states the settings use, and what PyTorch calls them. */
static int         states_of(const lc_optimizer *o) { return o->kind == LC_SGD ? o->momentum != 0 : o->amsgrad ? 3 : 2; }
static const char *state_name(const lc_optimizer *o, int k)
{
    return o->kind == LC_SGD ? "momentum_buffer" : k == 0 ? "exp_avg" : k == 1 ? "exp_avg_sq" : "max_exp_avg_sq";
}

static int check_settings(const lc_optimizer *o)
{
    bool sgd = o->kind == LC_SGD;
    if (!(o->lr >= 0)) return lc_fail_int(LC_ValueError, "Invalid learning rate: %g", o->lr);
    if (!(o->weight_decay >= 0)) return lc_fail_int(LC_ValueError, "Invalid weight_decay value: %g", o->weight_decay);
    if (sgd && !(o->momentum >= 0)) return lc_fail_int(LC_ValueError, "Invalid momentum value: %g", o->momentum);
    if (sgd && o->nesterov && (o->momentum <= 0 || o->dampening != 0))
        return lc_fail_int(LC_ValueError, "Nesterov momentum requires a momentum and zero dampening");
    if (!sgd && !(o->beta1 >= 0 && o->beta1 < 1 && o->beta2 >= 0 && o->beta2 < 1))
        return lc_fail_int(LC_ValueError, "Invalid beta parameters: %g, %g", o->beta1, o->beta2);
    if (!sgd && !(o->eps >= 0)) return lc_fail_int(LC_ValueError, "Invalid epsilon value: %g", o->eps);
    return 0;
}

/* A state of the parameter's shape and layout, or its count of steps. */
static lc_tensor *zeros_for(lc_tensor *param, bool count)
{
    lc_scope   scope = lc_scope_open();
    lc_value   here = { .tag = LC_IS_device, .dev = { LC_CPU, 0 } };
    lc_tensor *zeros =
        count ? lc_zeros(NULL, 0, LC_OF_DTYPE(LC_f32), here) : lc_zeros_like(param, LC_ABSENT, LC_ABSENT, LC_ABSENT);
    if (zeros) lc_retain(zeros);
    lc_scope_close(scope);
    return zeros;
}

/* Makes what is missing for parameter i; a count of steps with it. */
static int make_states(lc_optimizer *o, int i)
{
    for (int k = 0; k < states_of(o); k++)
        if (!o->states[k][i] && !(o->states[k][i] = zeros_for(o->params[i], false))) return -1;
    if (o->kind != LC_SGD && !o->steps[i] && !(o->steps[i] = zeros_for(o->params[i], true))) return -1;
    return 0;
}

typedef struct { /* the parameters of one call, gathered */
    int         n;
    lc_tensor **params, **grads, **steps, **states[LC_OPTIMIZER_STATES];
} group;

#define LIST(tensors, count)                                                                                                   \
    {                                                                                                                          \
        .tag = LC_IS_tensors, .n = (count), .ts = (tensors)                                                                    \
    }
static int sgd(const lc_optimizer *o, const group *g, bool first)
{
    int momenta = o->momentum != 0 ? g->n : 0;
    return lc__fused_sgd_(g->params, g->n, g->grads, g->n, g->states[0], momenta, o->weight_decay, o->momentum,
                          LC_NUMBER(o->lr), o->dampening, o->nesterov, o->maximize, first, LC_NONE, LC_NONE);
}
static int adam(const lc_optimizer *o, const group *g) /* two ops of one signature */
{
    const lc_op   *op = o->kind == LC_ADAM ? &lc_op__fused_adam_ : &lc_op__fused_adamw_;
    const lc_value given[] = { LIST(g->params, g->n),
                               LIST(g->grads, g->n),
                               LIST(g->states[0], g->n),
                               LIST(g->states[1], g->n),
                               LIST(g->states[2], o->amsgrad ? g->n : 0),
                               LIST(g->steps, g->n),
                               { .tag = LC_IS_tensor, .t = LC_NUMBER(o->lr) },
                               LC_F(o->beta1),
                               LC_F(o->beta2),
                               LC_F(o->weight_decay),
                               LC_F(o->eps),
                               LC_B(o->amsgrad),
                               LC_B(o->maximize),
                               { .tag = LC_IS_tensor, .t = LC_NONE },
                               { .tag = LC_IS_tensor, .t = LC_NONE },
                               LC_B(true) };
    return lc_call_scoped(op, given, NULL);
}

/* One call for parameters that have a gradient; first: for those alone that make their first step with momentum, else for all others. */
static int step_of(lc_optimizer *o, bool first)
{
    bool starts = o->kind == LC_SGD && o->momentum != 0;
    int  rc = 0;
    LC_ARRAY(lc_tensor *, all, (size_t)o->n * (3 + LC_OPTIMIZER_STATES));
    LC_ARRAY(int, numbers, o->n);
    if (!all || !numbers) return -1;
    group g = { 0, all, all + o->n, all + 2 * o->n, { all + 3 * o->n, all + 4 * o->n, all + 5 * o->n } };
    for (int i = 0; i < o->n; i++) {
        lc_tensor *p = o->params[i];
        if (!p->grad || first != (starts && !o->states[0][i])) continue;
        if (p->grad->flags & LC_SPARSE) return lc_fail_int(LC_NotImplementedError, "the gradient of parameter %d is sparse", i);
        g.params[g.n] = p, g.grads[g.n] = p->grad, numbers[g.n++] = i;
    }
    if (g.n == 0) return 0;
    for (int i = 0; i < g.n && rc == 0; i++) {
        rc = make_states(o, numbers[i]);
        g.steps[i] = o->steps[numbers[i]];
        for (int k = 0; k < LC_OPTIMIZER_STATES; k++) g.states[k][i] = o->states[k][numbers[i]];
    }
    if (rc == 0) rc = o->kind == LC_SGD ? sgd(o, &g, first) : adam(o, &g);
    if (rc < 0 && first) /* it was no step: the next one is the first again */
        for (int i = 0; i < g.n; i++) lc_release_all(&o->states[0][numbers[i]], 1);
    return rc;
}

int lc_optimizer_step(lc_optimizer *o)
{
    if (check_settings(o) < 0) return -1;
    unsigned modes = lc_modes;
    lc_modes |= LC_NO_GRAD;
    int status = step_of(o, false);
    if (status == 0) status = step_of(o, true);
    lc_modes = modes;
    return status;
}

/* ---- states by name ---- */
enum { NAME_BYTES = 512 };
static int name_of(char name[NAME_BYTES], const char *prefix, int i, const char *state)
{
    int n = snprintf(name, NAME_BYTES, "%s%d.%s", prefix, i, state);
    return n < NAME_BYTES ? 0 : lc_fail_int(LC_ValueError, "the prefix of an optimizer's states is too long: %d bytes", n);
}

int lc_optimizer_save(const lc_optimizer *o, const char *prefix, lc_state_dict *d)
{
    char name[NAME_BYTES];
    for (int i = 0; i < o->n; i++) {
        for (int k = 0; k < states_of(o); k++)
            if (o->states[k][i] &&
                (name_of(name, prefix, i, state_name(o, k)) < 0 || lc_state_dict_add(d, name, o->states[k][i]) < 0))
                return -1;
        if (o->steps[i] && (name_of(name, prefix, i, "step") < 0 || lc_state_dict_add(d, name, o->steps[i]) < 0)) return -1;
    }
    return 0;
}

/* Two state dicts with the same names: what is in d for this optimizer, and the tensors it goes to. */
static int match(lc_optimizer *o, const char *prefix, const lc_state_dict *d, lc_state_dict *to, lc_state_dict *from)
{
    char name[NAME_BYTES];
    for (int i = 0; i < o->n; i++) {
        int wanted = states_of(o) + (o->kind != LC_SGD), found = 0;
        for (int k = 0; k < wanted; k++) {
            if (name_of(name, prefix, i, k < states_of(o) ? state_name(o, k) : "step") < 0) return -1;
            for (int at = 0; at < d->n; at++)
                if (strcmp(d->names[at], name) == 0) found += lc_state_dict_append(from, name, d->tensors[at]) == 0 ? 1 : -100;
        }
        if (found == 0) continue;
        if (found < 0) return -1;
        if (found < wanted)
            return lc_fail_int(LC_IndexError, "of parameter %d the state dict has some states only (\"%s%d. ...\")", i, prefix,
                               i);
        if (make_states(o, i) < 0) return -1;
        for (int k = 0; k < wanted; k++) {
            bool state = k < states_of(o);
            if (name_of(name, prefix, i, state ? state_name(o, k) : "step") < 0 ||
                lc_state_dict_append(to, name, state ? o->states[k][i] : o->steps[i]) < 0)
                return -1;
        }
    }
    return to->n ? 0
                 : lc_fail_int(LC_IndexError, "the state dict has no states of an optimizer whose names begin with \"%s\"",
                               prefix);
}

int lc_optimizer_load(lc_optimizer *o, const char *prefix, const lc_state_dict *d)
{
    lc_state_dict *to = lc_state_dict_new(), *from = to ? lc_state_dict_new() : NULL;
    int            status = from && match(o, prefix, d, to, from) == 0 ? lc_state_dict_copy(to, from) : -1;
    lc_state_dict_free(to);
    lc_state_dict_free(from);
    return status;
}

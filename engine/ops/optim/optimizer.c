/* Fused optimizer steps over lists of tensors: PyTorch's _fused_adam_ and the like, and the same for algorithms that PyTorch
 * does not fuse.
 *
 * A call updates all parameters of a group, under no_grad. Values per parameter (bias corrections, the decayed learning
 * rate) are computed in double precision, from the parameter's own step count, as torch.optim does (math/steps.inc.c); the
 * kernel gets coefficients (lc_step_numbers). They are computed here, or, if the counts lie on a device with queues, by that
 * device: a captured graph then counts on when it is replayed (capturable=True). The caller has already incremented the step
 * counts (_foreach_add_), as in PyTorch. With `count` the call increments them itself after the update, so that a failed call
 * counts nothing. */
#include "../rules.h"
#include <math.h>
#define FN static
#include "../../backend/math/steps.inc.c"
#undef FN

/* ---- scalars in tensors ---- */
static int read_number(lc_tensor *t, double *value)
{
    if (t->numel != 1) return lc_fail_int(LC_ShapeMismatch, "expected a tensor of one element, got %s", LC_SHAPE(t));
    bool direct = lc_can(t)->host_memory;
    if (direct && t->dtype == LC_f32) return *value = *(const float *)t->data, 0;
    if (direct && t->dtype == LC_f64) return *value = *(const double *)t->data, 0;
    lc_tensor *here = lc_tensor_new(LC_f64, (lc_device){ LC_CPU, 0 }, t->ndim, t->shape);
    int        rc = here ? move_values(here, t) : -1;
    if (rc == 0) *value = *(const double *)here->data;
    lc_release(here);
    return rc;
}
static int number_of(const lc_value *v, double *value) /* a scalar, or a tensor of one element */
{
    return v->tag == LC_IS_tensor ? read_number(v->t, value) : (*value = lc_number_of(v), 0);
}
static int write_number(lc_tensor *t, double value)
{
    if (lc_can(t)->host_memory && t->dtype == LC_f32) return *(float *)t->data = (float)value, 0;
    return fill_tensor(t, LC_NUMBER(value));
}
static double rounded_like(const lc_tensor *t, double value) { return t->dtype == LC_f32 ? (double)(float)value : value; }

/* ---- one call ---- */
typedef struct {
    lc_step_kind kind;
    int          states, steps, lr, maximize,
        scale;         /* how many lists of states; which arguments these are, 0: none. scale: found_inf is next */
    uint32_t optional; /* IN(k): a list that may be empty */
    void (*formula)(const lc_value *in, lc_step_formula *f,
                    lc_step_numbers *c); /* c: f->fixed; its sign is set, the rest is 0 and 1 */
} algorithm;
/* Lists of one value per parameter, between the states and the counts, that go from step to step. */
static int        kept_lists(const algorithm *a) { return a->steps ? a->steps - 2 - a->states : 0; }
static lc_tensor *kept_of(const lc_record *call, const algorithm *a, int k, int i)
{
    return call->args[2 + a->states + k].ts[i];
}

static int lists_fit(const lc_record *call, const algorithm *a)
{
    const lc_value *self = &call->args[0];
    for (int k = 0; k < 2 + a->states; k++) {
        const lc_value *v = &call->args[k];
        if (v->n != self->n && (v->n || !(a->optional & IN(k))))
            return lc_fail_int(LC_LucidError,
                               "%s: lists of tensors must have the same number of them, got %d %s and %d parameters",
                               call->op->name, v->n, call->op->args->params[k].name, self->n);
        for (int i = 0; i < v->n; i++) {
            if (!lc_is_floating(v->ts[i]->dtype))
                return lc_fail_int(LC_DtypeMismatch, "%s: expected floating point tensors, got %s", call->op->name,
                                   lc_dtypes[v->ts[i]->dtype].name);
            if (!lc_same_device(v->ts[i]->device, self->ts[i]->device))
                return lc_fail_int(LC_DeviceMismatch, "%s: parameter %d is on %s, but its %s is on %s", call->op->name, i,
                                   lc_device_names[self->ts[i]->device.kind], call->op->args->params[k].name,
                                   lc_device_names[v->ts[i]->device.kind]);
            if (!lc_same_shape(v->ts[i], self->ts[i]))
                return lc_fail_int(LC_ShapeMismatch, "%s: parameter %d has shape %s, but in %s it is %s", call->op->name, i,
                                   LC_SIZES(self->ts[i]->shape, self->ts[i]->ndim), call->op->args->params[k].name,
                                   LC_SIZES(v->ts[i]->shape, v->ts[i]->ndim));
        }
    }
    for (int k = 2 + a->states; k <= a->steps; k++) /* one value per parameter */
        if (call->args[k].n != self->n)
            return lc_fail_int(LC_LucidError, "%s: got %d %s and %d parameters", call->op->name, call->args[k].n,
                               call->op->args->params[k].name, self->n);
    return 0;
}

static bool counts(const lc_record *call)
{
    return call->args[call->op->args->n_params - 1].b;
} /* count is the last argument */
/* The number of a parameter's step, this one included. */
static int step_of(const lc_record *call, const algorithm *a, int i, double *step)
{
    if (!a->steps) return 0;
    lc_tensor *t = call->args[a->steps].ts[i];
    if (read_number(t, step) < 0) return -1;
    if (counts(call)) *step = rounded_like(t, *step + 1);
    return 0;
}
static int count_steps(const lc_record *call, const algorithm *a)
{
    double step;
    for (int i = 0; a->steps && counts(call) && i < call->args[0].n; i++)
        if (step_of(call, a, i, &step) < 0 || write_number(call->args[a->steps].ts[i], step) < 0) return -1;
    return 0;
}

/* Coefficients of parameter i, and what it keeps for the next step. */
static int numbers_of(const lc_record *call, const algorithm *a, const lc_step_formula *f, double lr, int i,
                      lc_step_numbers *numbers, double kept[LC_STEP_KEPT])
{
    double step = 0;
    if (step_of(call, a, i, &step) < 0) return -1;
    for (int k = 0; k < kept_lists(a); k++)
        if (read_number(kept_of(call, a, k, i), &kept[k]) < 0) return -1;
    return *numbers = step_numbers(f, lr, step, kept, kept_lists(a) && kept_of(call, a, 0, i)->dtype == LC_f32), 0;
}
static int each_number(const lc_record *call, const algorithm *a, const lc_step_formula *f, double lr, lc_step_numbers *numbers)
{
    double before = -1, step = 0, kept[LC_STEP_KEPT];
    for (int i = 0; i < call->args[0].n; i++) {
        if (step_of(call, a, i, &step) < 0) return -1;
        if (i && step == before && !kept_lists(a))
            numbers[i] = numbers[i - 1]; /* parameters with equal step counts share coefficients */
        else if (numbers_of(call, a, f, lr, i, &numbers[i], kept) < 0) return -1;
        before = step;
    }
    return 0;
}

/* After the kernel: what is kept for the next step, and the counts. */
static int keep(const lc_record *call, const algorithm *a, const lc_step_formula *f, double lr)
{
    lc_step_numbers unused;
    double          kept[LC_STEP_KEPT];
    for (int i = 0; kept_lists(a) && i < call->args[0].n; i++) {
        if (numbers_of(call, a, f, lr, i, &unused, kept) < 0) return -1;
        for (int k = 0; k < kept_lists(a); k++)
            if (fill_tensor(kept_of(call, a, k, i), LC_NUMBER(kept[k])) < 0) return -1;
    }
    return count_steps(call, a);
}
static int unscale(const lc_record *call, double scale) /* as in PyTorch, gradients are left without their scale */
{
    for (int i = 0; scale != 1 && i < call->args[1].n; i++) {
        lc_tensor *g = call->args[1].ts[i];
        if (call->backend->elementwise(LC_OP_div, (lc_dtype)g->dtype, g, (lc_tensor *[]){ g, LC_NUMBER(scale) }, 2) < 0)
            return -1;
    }
    return 0;
}

/* Whether the device can read a number by itself: it need not wait for it. */
static bool lies_there(const lc_record *call, const lc_tensor *t)
{
    return t->numel == 1 && (t->dtype == LC_f32 || t->dtype == LC_f64) && lc_same_device(t->device, call->device);
}
/* All that changes from step to step does. */
static bool counts_there(const lc_record *call, const algorithm *a)
{
    if (!call->backend->queue) return false;
    for (int i = 0; i < call->args[0].n; i++)
        if (!lc_same_device(call->args[0].ts[i]->device, call->device)) return false;
    if (!a->steps) return a->lr && call->args[a->lr].tag == LC_IS_tensor && lies_there(call, call->args[a->lr].t);
    for (int k = 2 + a->states; k <= a->steps; k++)
        for (int i = 0; i < call->args[0].n; i++)
            if (!lies_there(call, call->args[k].ts[i])) return false;
    return true;
}

static int step(const lc_record *call, const algorithm *a)
{
    int             n = call->args[0].n, rc = 0;
    double          found_inf = 0, scale = 1, lr = 0;
    lc_step_formula f = { .fixed = { .shrink = 1, .scale = 1 } };
    lc_step_args    args = { .kind = a->kind, .n = n, .formula = &f };
    const lc_value *rate = a->lr ? &call->args[a->lr] : NULL;
    if (lists_fit(call, a) < 0) return -1;
    if (a->scale) {
        lc_tensor *inf = call->args[a->scale + 1].t, *scaled = call->args[a->scale].t;
        if (inf != LC_NONE && read_number(inf, &found_inf) < 0) return -1;
        if (scaled != LC_NONE && read_number(scaled, &scale) < 0) return -1;
    }
    if (found_inf != 0 || n == 0) return 0;
    for (int k = 0; k < 2 + a->states; k++) args.lists[k] = call->args[k].n ? call->args[k].ts : NULL;
    f.fixed.sign = (call->args[a->maximize].b ? -1 : 1) / scale;
    a->formula(call->args, &f, &f.fixed);
    unsigned variant = f.fixed.variant; /* its states must be given */
    if ((variant & LC_STEP_AMSGRAD && !args.lists[4]) || (variant & LC_STEP_CENTERED && !args.lists[3]) ||
        (variant & LC_STEP_MOMENTUM && !args.lists[1 + a->states]))
        return lc_fail_int(LC_LucidError, "%s: a list of states that these options need is empty", call->op->name);
    bool there = counts_there(call, a);
    if (there && rate && rate->tag == LC_IS_tensor && lies_there(call, rate->t)) args.lr = rate->t;
    else if (rate && number_of(rate, &lr) < 0) return -1;
    if (there) {
        f.fixed.lr = lr;
        if (a->steps) args.steps = call->args[a->steps].ts, args.count = counts(call);
        for (int k = 0; k < kept_lists(a); k++) args.kept[k] = call->args[2 + a->states + k].ts;
        rc = run_kernel_with(call, &args);
        return rc == 0 ? unscale(call, scale) : rc;
    }
    lc_step_numbers *numbers = lc_alloc((size_t)n * sizeof *numbers);
    if (!numbers) return -1;
    args.numbers = numbers;
    rc = each_number(call, a, &f, lr, numbers);
    if (rc == 0) rc = run_kernel_with(call, &args);
    lc_free(numbers, (size_t)n * sizeof *numbers);
    if (rc == 0) rc = unscale(call, scale);
    return rc == 0 ? keep(call, a, &f, lr) : rc;
}

/* Weight decay: part of the gradient, or of the parameter itself (AdamW). */
static void decay(lc_step_formula *f, double by, bool decoupled)
{
    if (decoupled) f->decoupled = by;
    else if (by != 0) f->fixed.decay = by, f->fixed.variant |= LC_STEP_L2;
}
#define UPDATE .function = true, .kernel = LC_OP__fused_adam_, .promote = LC_NO_PROMOTION
#define FORMULA(name)                                                                                                          \
    static void name##_formula(UNUSED const lc_value *in, UNUSED lc_step_formula *f, UNUSED lc_step_numbers *c)
#define F(k)    (in[k].f)
#define LISTS   "(self: list[Tensor], grads: list[Tensor], "
#define SCALED  ", grad_scale: Tensor | None = None, found_inf: Tensor | None = None"
#define COUNTED ", count: bool = False) -> None"
#define STEP(op, about, args, written, ...)                                                                                    \
    static int op##run(const lc_record *call) { return step(call, &(const algorithm){ __VA_ARGS__ }); }                        \
    LC_OP(op, .sig = #op LISTS args, .doc = "One step of " about, .writes = written, UPDATE, .run = op##run);

/* ---- SGD ---- */
FORMULA(sgd)
{
    bool first = in[9].b;
    decay(f, F(3), false);
    c->beta1 = F(4), c->beta2 = 1 - F(6);
    if (F(4) != 0) c->variant |= LC_STEP_MOMENTUM | (first ? LC_STEP_FIRST : 0) | (in[7].b ? LC_STEP_NESTEROV : 0);
}
STEP(_fused_sgd_, "SGD for a list of parameters.",
     "momentum_buffer_list: list[Tensor], *, weight_decay: float, momentum: float, lr: Tensor | Number, dampening: float, "
     "nesterov: bool, maximize: bool, is_first_step: bool" SCALED ") -> None",
     IN(0) | IN(1) | IN(2), LC_STEP_SGD, .states = 1, .optional = IN(2), .lr = 5, .maximize = 8, .scale = 10,
     .formula = sgd_formula)

/* ---- Adam and its kin ---- */
static void adam_settings(const lc_value *in, lc_step_formula *f, lc_step_numbers *c)
{
    f->rule = LC_RULE_ADAM, c->beta1 = F(7), c->beta2 = F(8), c->eps = F(10);
    if (in[11].b) c->variant |= LC_STEP_AMSGRAD;
}
FORMULA(adam) { decay(f, F(9), false), adam_settings(in, f, c); }
FORMULA(adamw) { decay(f, F(9), true), adam_settings(in, f, c); }
#define ADAM(op, about, by)                                                                                                    \
    STEP(                                                                                                                      \
        op, about,                                                                                                             \
        "exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor], max_exp_avg_sqs: list[Tensor], state_steps: list[Tensor], *, lr: " \
        "Tensor | Number, beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool" SCALED   \
            COUNTED,                                                                                                           \
        IN(0) | IN(1) | IN(2) | IN(3) | IN(4) | IN(5), LC_STEP_ADAM, .states = 3, .optional = IN(4), .steps = 5, .lr = 6,      \
        .maximize = 12, .scale = 13, .formula = by)
ADAM(_fused_adam_, "Adam for a list of parameters.", adam_formula)
ADAM(_fused_adamw_, "AdamW for a list of parameters.", adamw_formula)

/* PyTorch's form for sparse gradients: eps is added to the root before the bias correction. */
FORMULA(sparse_adam) { f->rule = LC_RULE_SPARSE_ADAM, c->beta1 = F(6), c->beta2 = F(7), c->eps = F(8); }
STEP(_fused_sparse_adam_, "SparseAdam for a list of parameters, with dense gradients.",
     "exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor], state_steps: list[Tensor], *, lr: Tensor | Number, beta1: float, "
     "beta2: float, eps: float, maximize: bool" COUNTED,
     IN(0) | IN(2) | IN(3) | IN(4), LC_STEP_ADAM, .states = 2, .steps = 4, .lr = 5, .maximize = 9,
     .formula = sparse_adam_formula)

FORMULA(adamax)
{
    decay(f, F(8), false);
    f->rule = LC_RULE_ADAMAX, c->beta1 = F(6), c->beta2 = F(7), c->eps = F(9);
}
STEP(_fused_adamax_, "Adamax for a list of parameters.",
     "exp_avgs: list[Tensor], exp_infs: list[Tensor], state_steps: list[Tensor], *, lr: Tensor | Number, beta1: float, beta2: "
     "float, weight_decay: float, eps: float, maximize: bool" COUNTED,
     IN(0) | IN(2) | IN(3) | IN(4), LC_STEP_ADAMAX, .states = 2, .steps = 4, .lr = 5, .maximize = 10, .formula = adamax_formula)

FORMULA(nadam)
{
    decay(f, F(9), in[12].b);
    f->rule = LC_RULE_NADAM, f->more[0] = F(10), c->beta1 = F(7), c->beta2 = F(8), c->eps = F(11);
}
STEP(_fused_nadam_, "NAdam for a list of parameters.",
     "exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor], mu_products: list[Tensor], state_steps: list[Tensor], *, lr: Tensor | "
     "Number, beta1: float, beta2: float, weight_decay: float, momentum_decay: float, eps: float, decoupled_weight_decay: "
     "bool, maximize: bool" COUNTED,
     IN(0) | IN(2) | IN(3) | IN(4) | IN(5), LC_STEP_NADAM, .states = 2, .steps = 5, .lr = 6, .maximize = 13,
     .formula = nadam_formula)

FORMULA(radam)
{
    decay(f, F(8), in[10].b);
    f->rule = LC_RULE_RADAM, c->beta1 = F(6), c->beta2 = F(7), c->eps = F(9);
}
STEP(_fused_radam_, "RAdam for a list of parameters.",
     "exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor], state_steps: list[Tensor], *, lr: Tensor | Number, beta1: float, "
     "beta2: float, weight_decay: float, eps: float, decoupled_weight_decay: bool, maximize: bool" COUNTED,
     IN(0) | IN(2) | IN(3) | IN(4), LC_STEP_RADAM, .states = 2, .steps = 4, .lr = 5, .maximize = 11, .formula = radam_formula)

/* ---- second moments alone ---- */
FORMULA(adagrad)
{
    decay(f, F(6), false);
    f->rule = LC_RULE_ADAGRAD, f->more[0] = F(5), c->eps = F(7);
}
STEP(_fused_adagrad_, "Adagrad for a list of parameters.",
     "state_sums: list[Tensor], state_steps: list[Tensor], *, lr: Tensor | Number, lr_decay: float, weight_decay: float, eps: "
     "float, maximize: bool" SCALED COUNTED,
     IN(0) | IN(1) | IN(2) | IN(3), LC_STEP_ADAGRAD, .states = 1, .steps = 3, .lr = 4, .maximize = 8, .scale = 9,
     .formula = adagrad_formula)

FORMULA(rmsprop)
{
    decay(f, F(9), false);
    c->beta1 = F(7), c->beta2 = F(10), c->eps = F(8);
    c->variant |= (F(10) > 0 ? LC_STEP_MOMENTUM : 0) | (in[11].b ? LC_STEP_CENTERED : 0);
}
STEP(
    _fused_rmsprop_, "RMSprop for a list of parameters.",
    "square_avgs: list[Tensor], grad_avgs: list[Tensor], momentum_buffer_list: list[Tensor], state_steps: list[Tensor], *, lr: "
    "Tensor | Number, alpha: float, eps: float, weight_decay: float, momentum: float, centered: bool, maximize: bool" COUNTED,
    IN(0) | IN(2) | IN(3) | IN(4) | IN(5), LC_STEP_RMSPROP, .states = 3, .optional = IN(3) | IN(4), .lr = 6, .maximize = 12,
    .steps = 5, .formula = rmsprop_formula)

FORMULA(adadelta)
{
    decay(f, F(8), false);
    c->beta1 = F(6), c->eps = F(7);
}
STEP(_fused_adadelta_, "Adadelta for a list of parameters.",
     "square_avgs: list[Tensor], acc_deltas: list[Tensor], state_steps: list[Tensor], *, lr: Tensor | Number, rho: float, eps: "
     "float, weight_decay: float, maximize: bool" COUNTED,
     IN(0) | IN(2) | IN(3) | IN(4), LC_STEP_ADADELTA, .states = 2, .lr = 5, .maximize = 9, .steps = 4,
     .formula = adadelta_formula)

/* ---- averages and signs ---- */
FORMULA(asgd) /* mus and etas hold what the last step left for this one */
{
    decay(f, F(10), false);
    f->rule = LC_RULE_ASGD, f->more[0] = F(6), f->more[1] = F(8), f->more[2] = F(9);
}
STEP(_fused_asgd_, "averaged SGD for a list of parameters.",
     "axs: list[Tensor], mus: list[Tensor], etas: list[Tensor], state_steps: list[Tensor], *, lambd: float, lr: Tensor | "
     "Number, t0: float, alpha: float, weight_decay: float, maximize: bool" COUNTED,
     IN(0) | IN(2) | IN(3) | IN(4) | IN(5), LC_STEP_ASGD, .states = 1, .steps = 5, .lr = 7, .maximize = 11,
     .formula = asgd_formula)

FORMULA(rprop) { c->eps = F(5), c->extra = F(6), c->beta1 = F(7), c->beta2 = F(8); }
STEP(_fused_rprop_, "Rprop for a list of parameters.",
     "prevs: list[Tensor], step_sizes: list[Tensor], state_steps: list[Tensor], *, step_size_min: float, step_size_max: float, "
     "etaminus: float, etaplus: float, maximize: bool" COUNTED,
     IN(0) | IN(2) | IN(3) | IN(4), LC_STEP_RPROP, .states = 2, .maximize = 9, .steps = 4, .formula = rprop_formula)

/* ---- rows and columns ---- */
static double epsilon_of(lc_dtype dtype) /* PyTorch takes the first parameter's for all */
{
    return dtype == LC_f16 ? 0x1p-10 : dtype == LC_bf16 ? 0x1p-7 : dtype == LC_f32 ? 0x1p-23 : 0x1p-52;
}
static int factor_fits(const lc_record *call, const lc_tensor *p, const lc_tensor *factor,
                       int without) /* a dimension that is 1 */
{
    bool fits = factor->ndim == p->ndim && lc_is_floating(factor->dtype);
    for (int d = 0; fits && d < p->ndim; d++) fits = factor->shape[d] == (d == without ? 1 : p->shape[d]);
    return fits ? 0
                : lc_fail_int(LC_ShapeMismatch, "%s: the variance of a parameter of shape %s cannot be %s of shape %s",
                              call->op->name, LC_SIZES(p->shape, p->ndim), lc_dtypes[factor->dtype].name,
                              LC_SIZES(factor->shape, factor->ndim));
}
/* Splits the list of alternating rows and columns, n of each. */
static int factors_of(const lc_record *call, lc_tensor **rows, lc_tensor **columns)
{
    const lc_value *params = &call->args[0], *factors = &call->args[2];
    int             at = 0;
    for (int i = 0; i < params->n; i++) {
        lc_tensor *p = params->ts[i];
        int        many = p->ndim > 1 ? 2 : 1;
        if (at + many > factors->n) return lc_fail_int(LC_LucidError, "%s: too few variances", call->op->name);
        rows[i] = factors->ts[at], columns[i] = many > 1 ? factors->ts[at + 1] : NULL;
        if (factor_fits(call, p, rows[i], many > 1 ? p->ndim - 1 : -1) < 0) return -1;
        if (many > 1 && factor_fits(call, p, columns[i], p->ndim - 2) < 0) return -1;
        at += many;
    }
    return at == factors->n ? 0 : lc_fail_int(LC_LucidError, "%s: too many variances", call->op->name);
}
static const algorithm adafactor = { .steps = 3 };
static int             adafactor_numbers(const lc_record *call, lc_adafactor_numbers *numbers)
{
    const lc_value *in = call->args;
    double          lr, step;
    if (number_of(&in[4], &lr) < 0) return -1;
    for (int i = 0; i < in[0].n; i++) {
        if (step_of(call, &adafactor, i, &step) < 0) return -1;
        numbers[i] = (lc_adafactor_numbers){
            .sign = in[10].b ? -1 : 1,
            .shrink = 1 - lr * in[9].f,
            .share = pow(step, in[5].f),
            .rate = fmin(lr, 1 / sqrt(step)),
            .least = in[7].f,
            .eps = in[6].tag == LC_IS_none ? epsilon_of((lc_dtype)in[0].ts[0]->dtype) : in[6].f,
            .most = in[8].f,
        };
    }
    return 0;
}
static int _fused_adafactor_run(const lc_record *call)
{
    int    n = call->args[0].n, rc = 0;
    size_t each = sizeof(lc_adafactor_numbers) + 2 * sizeof(lc_tensor *);
    if (lists_fit(call, &(const algorithm){ .states = 0 }) < 0) return -1;
    if (call->args[3].n != n)
        return lc_fail_int(LC_LucidError, "%s: got %d state_steps and %d parameters", call->op->name, call->args[3].n, n);
    if (n == 0) return 0;
    lc_adafactor_numbers *numbers = lc_alloc((size_t)n * each);
    if (!numbers) return -1;
    lc_tensor **rows = (lc_tensor **)(numbers + n), **columns = rows + n;
    rc = factors_of(call, rows, columns);
    if (rc == 0) rc = adafactor_numbers(call, numbers);
    if (rc == 0)
        rc = run_kernel_with(call, &(lc_adafactor_args){ n, call->args[0].ts, call->args[1].ts, rows, columns, numbers });
    lc_free(numbers, (size_t)n * each);
    return rc == 0 ? count_steps(call, &adafactor) : rc;
}
LC_OP(_fused_adafactor_,
      .sig = "_fused_adafactor_(self: list[Tensor], grads: list[Tensor], variances: list[Tensor], state_steps: list[Tensor], "
             "*, lr: Tensor | Number, beta2_decay: float, eps1: float | None, eps2: float, d: float, weight_decay: float, "
             "maximize: bool, count: bool = False) -> None",
      .doc = "One step of Adafactor for a list of parameters. variances: a row and a column per matrix, one tensor per vector.",
      .writes = IN(0) | IN(2) | IN(3), .function = true, .promote = LC_NO_PROMOTION, .run = _fused_adafactor_run);

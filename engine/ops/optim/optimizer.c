/* Fused optimizer steps over lists of tensors: PyTorch's _fused_adam_ and the like, and the same for algorithms that PyTorch
 * does not fuse.
 *
 * A call updates all parameters of a group, under no_grad. Values per parameter (bias corrections, the decayed learning
 * rate) are computed here in double precision, from the parameter's own step count, as torch.optim does; the kernel gets
 * coefficients (lc_step_numbers). The caller has already incremented the step counts (_foreach_add_), as in PyTorch. With
 * `count` the call increments them itself after the update, so that a failed call counts nothing. */
#include "../rules.h"
#include <math.h>

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
    const lc_value *in;   /* the call's arguments */
    double          lr;   /* read, if it was a tensor */
    double          step; /* of the parameter at hand; 0 if the algorithm does not count */
    int             i;    /* its number */
} moment;
typedef struct {
    lc_step_kind kind;
    int          states, steps, lr, maximize,
        scale;         /* how many lists of states; which arguments these are, 0: none. scale: found_inf is next */
    uint32_t optional; /* IN(k): a list that may be empty */
    int (*numbers)(const moment *m, lc_step_numbers *c); /* c->sign is set, the rest is 0 and 1 */
    int (*finish)(const moment *m); /* runs after the kernel, for states with one value per parameter. NULL: none */
} algorithm;

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

static int each_number(const lc_record *call, const algorithm *a, double scale, lc_step_numbers *numbers)
{
    moment m = { .in = call->args };
    double before = -1;
    if (a->lr && number_of(&call->args[a->lr], &m.lr) < 0) return -1;
    for (m.i = 0; m.i < call->args[0].n; m.i++) {
        if (step_of(call, a, m.i, &m.step) < 0) return -1;
        if (m.i && m.step == before && !a->finish)
            numbers[m.i] = numbers[m.i - 1]; /* parameters with equal step counts share coefficients */
        else {
            numbers[m.i] =
                (lc_step_numbers){ .sign = (call->args[a->maximize].b ? -1 : 1) / scale, .shrink = 1, .lr = m.lr, .scale = 1 };
            if (a->numbers(&m, &numbers[m.i]) < 0) return -1;
        }
        before = m.step;
    }
    return 0;
}

static int finish(const lc_record *call, const algorithm *a, double scale)
{
    moment m = { .in = call->args };
    int    rc = a->lr ? number_of(&call->args[a->lr], &m.lr) : 0;
    for (m.i = 0; a->finish && m.i < call->args[0].n && rc == 0; m.i++) {
        rc = step_of(call, a, m.i, &m.step);
        if (rc == 0) rc = a->finish(&m);
    }
    for (int i = 0; scale != 1 && i < call->args[1].n && rc == 0;
         i++) { /* as in PyTorch, gradients are left without their scale */
        lc_tensor *g = call->args[1].ts[i];
        rc = call->backend->elementwise(LC_OP_div, (lc_dtype)g->dtype, g, (lc_tensor *[]){ g, LC_NUMBER(scale) }, 2);
    }
    return rc;
}

static int step(const lc_record *call, const algorithm *a)
{
    int          n = call->args[0].n, rc = 0;
    double       found_inf = 0, scale = 1;
    lc_step_args args = { .kind = a->kind, .n = n };
    if (lists_fit(call, a) < 0) return -1;
    if (a->scale) {
        lc_tensor *inf = call->args[a->scale + 1].t, *scaled = call->args[a->scale].t;
        if (inf != LC_NONE && read_number(inf, &found_inf) < 0) return -1;
        if (scaled != LC_NONE && read_number(scaled, &scale) < 0) return -1;
    }
    if (found_inf != 0 || n == 0) return 0;
    for (int k = 0; k < 2 + a->states; k++) args.lists[k] = call->args[k].n ? call->args[k].ts : NULL;
    lc_step_numbers *numbers = lc_alloc((size_t)n * sizeof *numbers);
    if (!numbers) return -1;
    args.numbers = numbers;
    rc = each_number(call, a, scale, numbers);
    for (int i = 0; i < n && rc == 0; i++) /* the variant's states must be given */
        if ((numbers[i].variant & LC_STEP_AMSGRAD && !args.lists[4]) ||
            (numbers[i].variant & LC_STEP_CENTERED && !args.lists[3]) ||
            (numbers[i].variant & LC_STEP_MOMENTUM && !args.lists[1 + a->states]))
            rc = lc_fail_int(LC_LucidError, "%s: a list of states that these options need is empty", call->op->name);
    if (rc == 0) rc = run_kernel_with(call, &args);
    lc_free(numbers, (size_t)n * sizeof *numbers);
    if (rc == 0) rc = finish(call, a, scale);
    return rc == 0 ? count_steps(call, a) : rc;
}

/* Weight decay: part of the gradient, or of the parameter itself (AdamW). */
static void decay(lc_step_numbers *c, double by, double lr, bool decoupled)
{
    if (decoupled) c->shrink = 1 - lr * by;
    else if (by != 0) c->decay = by, c->variant |= LC_STEP_L2;
}
#define UPDATE        .function = true, .kernel = LC_OP__fused_adam_, .promote = LC_NO_PROMOTION
#define NUMBERS(name) static int name##_numbers(UNUSED const moment *m, lc_step_numbers *c)
#define F(k)          (m->in[k].f)
#define LISTS         "(self: list[Tensor], grads: list[Tensor], "
#define SCALED        ", grad_scale: Tensor | None = None, found_inf: Tensor | None = None"
#define COUNTED       ", count: bool = False) -> None"
#define STEP(op, about, args, written, ...)                                                                                    \
    static int op##run(const lc_record *call) { return step(call, &(const algorithm){ __VA_ARGS__ }); }                        \
    LC_OP(op, .sig = #op LISTS args, .doc = "One step of " about, .writes = written, UPDATE, .run = op##run);

/* ---- SGD ---- */
NUMBERS(sgd)
{
    bool first = m->in[9].b;
    decay(c, F(3), 0, false);
    c->beta1 = F(4), c->beta2 = 1 - F(6);
    if (F(4) != 0) c->variant |= LC_STEP_MOMENTUM | (first ? LC_STEP_FIRST : 0) | (m->in[7].b ? LC_STEP_NESTEROV : 0);
    return 0;
}
STEP(_fused_sgd_, "SGD for a list of parameters.",
     "momentum_buffer_list: list[Tensor], *, weight_decay: float, momentum: float, lr: Tensor | Number, dampening: float, "
     "nesterov: bool, maximize: bool, is_first_step: bool" SCALED ") -> None",
     IN(0) | IN(1) | IN(2), LC_STEP_SGD, .states = 1, .optional = IN(2), .lr = 5, .maximize = 8, .scale = 10,
     .numbers = sgd_numbers)

/* ---- Adam and its kin ---- */
static void adam_coefficients(const moment *m, lc_step_numbers *c)
{
    double correction1 = 1 - pow(F(7), m->step), correction2 = 1 - pow(F(8), m->step);
    c->beta1 = F(7), c->beta2 = F(8), c->eps = F(10);
    c->lr = m->lr / correction1, c->scale = 1 / sqrt(correction2);
    if (m->in[11].b) c->variant |= LC_STEP_AMSGRAD;
}
NUMBERS(adam) { return decay(c, F(9), m->lr, false), adam_coefficients(m, c), 0; }
NUMBERS(adamw) { return decay(c, F(9), m->lr, true), adam_coefficients(m, c), 0; }
#define ADAM(op, about, by)                                                                                                    \
    STEP(                                                                                                                      \
        op, about,                                                                                                             \
        "exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor], max_exp_avg_sqs: list[Tensor], state_steps: list[Tensor], *, lr: " \
        "Tensor | Number, beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool" SCALED   \
            COUNTED,                                                                                                           \
        IN(0) | IN(1) | IN(2) | IN(3) | IN(4) | IN(5), LC_STEP_ADAM, .states = 3, .optional = IN(4), .steps = 5, .lr = 6,      \
        .maximize = 12, .scale = 13, .numbers = by)
ADAM(_fused_adam_, "Adam for a list of parameters.", adam_numbers)
ADAM(_fused_adamw_, "AdamW for a list of parameters.", adamw_numbers)

/* PyTorch's form for sparse gradients: eps is added to the root before the bias correction. */
NUMBERS(sparse_adam)
{
    double correction2 = 1 - pow(F(7), m->step);
    c->beta1 = F(6), c->beta2 = F(7), c->eps = F(8);
    c->lr = m->lr * sqrt(correction2) / (1 - pow(F(6), m->step));
    return 0;
}
STEP(_fused_sparse_adam_, "SparseAdam for a list of parameters, with dense gradients.",
     "exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor], state_steps: list[Tensor], *, lr: Tensor | Number, beta1: float, "
     "beta2: float, eps: float, maximize: bool" COUNTED,
     IN(0) | IN(2) | IN(3) | IN(4), LC_STEP_ADAM, .states = 2, .steps = 4, .lr = 5, .maximize = 9,
     .numbers = sparse_adam_numbers)

NUMBERS(adamax)
{
    decay(c, F(8), 0, false);
    c->beta1 = F(6), c->beta2 = F(7), c->eps = F(9), c->lr = m->lr / (1 - pow(F(6), m->step));
    return 0;
}
STEP(_fused_adamax_, "Adamax for a list of parameters.",
     "exp_avgs: list[Tensor], exp_infs: list[Tensor], state_steps: list[Tensor], *, lr: Tensor | Number, beta1: float, beta2: "
     "float, weight_decay: float, eps: float, maximize: bool" COUNTED,
     IN(0) | IN(2) | IN(3) | IN(4), LC_STEP_ADAMAX, .states = 2, .steps = 4, .lr = 5, .maximize = 10, .numbers = adamax_numbers)

/* The momentum schedule: mu of this step and of the next, and the product of all mu so far, one value per parameter. */
static double nadam_mu(const moment *m, double step) { return F(7) * (1 - 0.5 * pow(0.96, step * F(10))); }
static int    nadam_product(const moment *m, double *product)
{
    lc_tensor *t = m->in[4].ts[m->i];
    if (read_number(t, product) < 0) return -1;
    return *product = rounded_like(t, *product * rounded_like(t, nadam_mu(m, m->step))), 0;
}
NUMBERS(nadam)
{
    double product, mu = nadam_mu(m, m->step), next = nadam_mu(m, m->step + 1);
    if (nadam_product(m, &product) < 0) return -1;
    decay(c, F(9), m->lr, m->in[12].b);
    c->beta1 = F(7), c->beta2 = F(8), c->eps = F(11), c->scale = 1 / (1 - pow(F(8), m->step));
    c->lr = m->lr * (1 - mu) / (1 - product), c->extra = m->lr * next / (1 - product * next);
    return 0;
}
static int nadam_finish(const moment *m)
{
    double product;
    return nadam_product(m, &product) < 0 ? -1 : fill_tensor(m->in[4].ts[m->i], LC_NUMBER(product));
}
STEP(_fused_nadam_, "NAdam for a list of parameters.",
     "exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor], mu_products: list[Tensor], state_steps: list[Tensor], *, lr: Tensor | "
     "Number, beta1: float, beta2: float, weight_decay: float, momentum_decay: float, eps: float, decoupled_weight_decay: "
     "bool, maximize: bool" COUNTED,
     IN(0) | IN(2) | IN(3) | IN(4) | IN(5), LC_STEP_NADAM, .states = 2, .steps = 5, .lr = 6, .maximize = 13,
     .numbers = nadam_numbers, .finish = nadam_finish)

/* Rectification starts when the variance of the adaptive rate is tractable: from about the sixth step on. */
NUMBERS(radam)
{
    double b2 = pow(F(7), m->step), correction2 = 1 - b2, longest = 2 / (1 - F(7)) - 1;
    double length = longest - 2 * m->step * b2 / correction2;
    decay(c, F(8), m->lr, m->in[10].b);
    c->beta1 = F(6), c->beta2 = F(7), c->eps = F(9), c->lr = m->lr / (1 - pow(F(6), m->step));
    if (length <= 5) return 0;
    c->variant |= LC_STEP_RECTIFIED;
    c->scale = sqrt(correction2) * sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
    return 0;
}
STEP(_fused_radam_, "RAdam for a list of parameters.",
     "exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor], state_steps: list[Tensor], *, lr: Tensor | Number, beta1: float, "
     "beta2: float, weight_decay: float, eps: float, decoupled_weight_decay: bool, maximize: bool" COUNTED,
     IN(0) | IN(2) | IN(3) | IN(4), LC_STEP_RADAM, .states = 2, .steps = 4, .lr = 5, .maximize = 11, .numbers = radam_numbers)

/* ---- second moments alone ---- */
NUMBERS(adagrad)
{
    decay(c, F(6), 0, false);
    return c->eps = F(7), c->lr = m->lr / (1 + (m->step - 1) * F(5)), 0;
}
STEP(_fused_adagrad_, "Adagrad for a list of parameters.",
     "state_sums: list[Tensor], state_steps: list[Tensor], *, lr: Tensor | Number, lr_decay: float, weight_decay: float, eps: "
     "float, maximize: bool" SCALED COUNTED,
     IN(0) | IN(1) | IN(2) | IN(3), LC_STEP_ADAGRAD, .states = 1, .steps = 3, .lr = 4, .maximize = 8, .scale = 9,
     .numbers = adagrad_numbers)

NUMBERS(rmsprop)
{
    decay(c, F(9), 0, false);
    c->beta1 = F(7), c->beta2 = F(10), c->eps = F(8);
    c->variant |= (F(10) > 0 ? LC_STEP_MOMENTUM : 0) | (m->in[11].b ? LC_STEP_CENTERED : 0);
    return 0;
}
STEP(
    _fused_rmsprop_, "RMSprop for a list of parameters.",
    "square_avgs: list[Tensor], grad_avgs: list[Tensor], momentum_buffer_list: list[Tensor], state_steps: list[Tensor], *, lr: "
    "Tensor | Number, alpha: float, eps: float, weight_decay: float, momentum: float, centered: bool, maximize: bool" COUNTED,
    IN(0) | IN(2) | IN(3) | IN(4) | IN(5), LC_STEP_RMSPROP, .states = 3, .optional = IN(3) | IN(4), .lr = 6, .maximize = 12,
    .steps = 5, .numbers = rmsprop_numbers)

NUMBERS(adadelta)
{
    decay(c, F(8), 0, false);
    return c->beta1 = F(6), c->eps = F(7), 0;
}
STEP(_fused_adadelta_, "Adadelta for a list of parameters.",
     "square_avgs: list[Tensor], acc_deltas: list[Tensor], state_steps: list[Tensor], *, lr: Tensor | Number, rho: float, eps: "
     "float, weight_decay: float, maximize: bool" COUNTED,
     IN(0) | IN(2) | IN(3) | IN(4), LC_STEP_ADADELTA, .states = 2, .lr = 5, .maximize = 9, .steps = 4,
     .numbers = adadelta_numbers)

/* ---- averages and signs ---- */
NUMBERS(asgd) /* mus and etas hold what the last step left for this one */
{
    double mu, eta;
    if (read_number(m->in[3].ts[m->i], &mu) < 0 || read_number(m->in[4].ts[m->i], &eta) < 0) return -1;
    decay(c, F(10), 0, false);
    return c->shrink = 1 - F(6) * eta, c->lr = eta, c->extra = mu, 0;
}
static int asgd_finish(const moment *m)
{
    double eta = m->lr / pow(1 + F(6) * m->lr * m->step, F(9)), mu = 1 / fmax(1, m->step - F(8));
    return fill_tensor(m->in[4].ts[m->i], LC_NUMBER(eta)) < 0 ? -1 : fill_tensor(m->in[3].ts[m->i], LC_NUMBER(mu));
}
STEP(_fused_asgd_, "averaged SGD for a list of parameters.",
     "axs: list[Tensor], mus: list[Tensor], etas: list[Tensor], state_steps: list[Tensor], *, lambd: float, lr: Tensor | "
     "Number, t0: float, alpha: float, weight_decay: float, maximize: bool" COUNTED,
     IN(0) | IN(2) | IN(3) | IN(4) | IN(5), LC_STEP_ASGD, .states = 1, .steps = 5, .lr = 7, .maximize = 11,
     .numbers = asgd_numbers, .finish = asgd_finish)

NUMBERS(rprop) { return c->eps = F(5), c->extra = F(6), c->beta1 = F(7), c->beta2 = F(8), 0; }
STEP(_fused_rprop_, "Rprop for a list of parameters.",
     "prevs: list[Tensor], step_sizes: list[Tensor], state_steps: list[Tensor], *, step_size_min: float, step_size_max: float, "
     "etaminus: float, etaplus: float, maximize: bool" COUNTED,
     IN(0) | IN(2) | IN(3) | IN(4), LC_STEP_RPROP, .states = 2, .maximize = 9, .steps = 4, .numbers = rprop_numbers)

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

/* Elementwise losses: squares, distances, entropies, likelihoods. Those with a kernel are rows of scalar.def, each a hidden
 * op with a gradient op; the public functions broadcast, apply weights and reduce. The gradient of a mean arrives as an
 * expanded scalar, which costs a row nothing, so no gradient needs to know the reduction. */
#include "loss.h"
#include "../../op/promote.h"
#include <math.h>

/* ---- reductions ---- */
int reduction_named(const lc_value *name, reduction *how)
{
    const char *s = name->s;
    if (!strcmp(s, "elementwise_mean"))
        lc_warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead."), s = "mean";
    if (strcmp(s, "none") && strcmp(s, "mean") && strcmp(s, "sum"))
        return lc_fail_int(LC_ValueError, "%s is not a valid value for reduction", s);
    return *how = *s == 'n' ? REDUCE_NONE : *s == 'm' ? REDUCE_MEAN : REDUCE_SUM, 0;
}
int reduction_of(const lc_value *size_average, const lc_value *reduce, const lc_value *name, reduction *how)
{
    if (size_average->tag == LC_IS_none && reduce->tag == LC_IS_none) return reduction_named(name, how);
    bool mean = size_average->tag == LC_IS_none || size_average->b, any = reduce->tag == LC_IS_none || reduce->b;
    *how = !any ? REDUCE_NONE : mean ? REDUCE_MEAN : REDUCE_SUM;
    lc_warn("size_average and reduce args will be deprecated, please use reduction='%s' instead.", !any   ? "none"
                                                                                                   : mean ? "mean"
                                                                                                          : "sum");
    return 0;
}
int reduced_loss(lc_tensor *loss, reduction how, lc_tensor **out)
{
    out[0] = how == REDUCE_NONE ? loss : how == REDUCE_MEAN ? lc_mean(loss, NULL, 0, false) : all_sum(loss);
    return out[0] ? 0 : -1;
}
bool same_sizes(const lc_tensor *a, const lc_tensor *b)
{
    return a->ndim == b->ndim && lc_same_sizes(a->shape, b->shape, a->ndim);
}
/* PyTorch's warning where the shapes of input and target differ. */
static void warn_sizes(const lc_tensor *x, const lc_tensor *target)
{
    if (!same_sizes(x, target))
        lc_warn("Using a target size (%s) that is different to the input size (%s). This will likely lead to incorrect results "
                "due to broadcasting. Please ensure they have the same size.",
                LC_SIZES(target->shape, target->ndim), LC_SIZES(x->shape, x->ndim));
}
lc_tensor *in_dtype_of(lc_tensor *loss, lc_dtype dtype)
{
    return loss && loss->dtype != dtype ? lc_to(loss, dtype, false, false, LC_ABSENT) : loss;
}
/* PyTorch computes these in place: the result keeps shape and dtype of the destination. */
static lc_tensor *written_like(lc_tensor *made, const lc_tensor *like)
{
    if (!made) return NULL;
    if (!same_sizes(made, like))
        return lc_fail(LC_ShapeMismatch, "output with shape %s doesn't match the broadcast shape %s", LC_SHAPE(like),
                       LC_SHAPE(made));
    if (lc_class_of(made->dtype) > lc_class_of(like->dtype))
        return lc_fail(LC_DtypeMismatch, "result type %s can't be cast to the desired output type %s",
                       lc_dtypes[made->dtype].name, lc_dtypes[like->dtype].name);
    return in_dtype_of(made, (lc_dtype)like->dtype);
}
static lc_tensor *weighted_alike(lc_tensor *loss, lc_tensor *weight)
{
    return !loss || weight == LC_NONE ? loss : written_like(lc_mul(loss, weight), loss);
}
int joint_dtype_fits(const char *name, const lc_tensor *x, const lc_tensor *target)
{
    lc_dtype joint = lc_promote_types((lc_dtype)x->dtype, (lc_dtype)target->dtype);
    if (joint == LC_DTYPE_COUNT) return -1;
    if (lc_class_of(joint) <= lc_class_of(x->dtype)) return 0;
    return lc_fail_int(LC_DtypeMismatch, "%s: result type %s can't be cast to the desired output type %s", name,
                       lc_dtypes[joint].name, lc_dtypes[x->dtype].name);
}

/* ---- kernels ---- */
#define ROW      .hidden = true, .shape = broadcast, .run = elementwise
#define ROW_WITH .hidden = true, .shape = broadcast, LOWERED(with_number)

/* The kernel over the tensors of the call and the scalar that is its last argument. */
static int with_number(const lc_record *call, lc_lowering *to)
{
    lower_to(to, call, call->op->kernel, call->in, call->n_in);
    to->in[to->n_in++] = number_operand_in(&to->number[0], &call->args[call->n_in]);
    return 0;
}
/* A loss of x - y: the gradient of y is the negated gradient of x. */
static void difference(const bool *need, lc_tensor **dx, lc_tensor *to_x)
{
    if (need[0]) dx[0] = to_x;
    if (need[1]) dx[1] = lc_neg(to_x);
}
/* The gradient of a gradient g * slope(x - y): to_g, and bend, which is g * slope'. */
static void difference_backward(const bool *need, lc_tensor **dx, lc_tensor *to_g, lc_tensor *bend)
{
    if (need[0]) dx[0] = to_g;
    if (need[1]) dx[1] = bend;
    if (need[2]) dx[2] = lc_neg(bend);
}

GRAD(_mse_backward)
{
    difference_backward(need, dx, lc__mse_backward(g[0], in(1), in(2)), lc_mul(lc_mul(g[0], in(0)), LC_INTEGER(2)));
}
LC_OP(_mse_backward, .sig = "_mse_backward(grad_output: Tensor, input: Tensor, target: Tensor) -> Tensor",
      .doc = "2 * grad_output * (input - target).", ROW, .grad = _mse_backward_grad, .saves = IN(0) | IN(1) | IN(2));
GRAD(_mse) { difference(need, dx, lc__mse_backward(g[0], in(0), in(1))); }
LC_OP(_mse, .sig = "_mse(input: Tensor, target: Tensor) -> Tensor", .doc = "The square of input - target.", ROW,
      .grad = _mse_grad, .saves = IN(0) | IN(1));

/* Inside: where the parabola of smooth_l1 and huber is. */
static lc_tensor *inside(const lc_value *in, lc_tensor *g, lc_tensor *slope)
{
    lc_tensor *near = lc_lt(lc_abs(lc_sub(in(1), in(2))), number_operand(&in[3]));
    return lc_where(near, lc_mul(lc_mul(g, in(0)), slope), LC_INTEGER(0));
}
GRAD(_smooth_l1_backward)
{
    lc_tensor *bend = inside(in, g[0], LC_NUMBER(1 / in[3].f));
    difference_backward(need, dx, lc__smooth_l1_backward(g[0], in(1), in(2), in[3].f), bend);
}
LC_OP(_smooth_l1_backward,
      .sig = "_smooth_l1_backward(grad_output: Tensor, input: Tensor, target: Tensor, beta: float) -> Tensor",
      .doc = "The gradient of _smooth_l1.", ROW_WITH, .grad = _smooth_l1_backward_grad, .saves = IN(0) | IN(1) | IN(2));
GRAD(_smooth_l1) { difference(need, dx, lc__smooth_l1_backward(g[0], in(0), in(1), in[2].f)); }
LC_OP(_smooth_l1, .sig = "_smooth_l1(input: Tensor, target: Tensor, beta: float) -> Tensor",
      .doc = "d * d / (2 * beta) where d = |input - target| is below beta, else d - beta / 2.", ROW_WITH,
      .grad = _smooth_l1_grad, .saves = IN(0) | IN(1));

GRAD(_huber_backward)
{
    difference_backward(need, dx, lc__huber_backward(g[0], in(1), in(2), in[3].f), inside(in, g[0], LC_INTEGER(1)));
}
LC_OP(_huber_backward, .sig = "_huber_backward(grad_output: Tensor, input: Tensor, target: Tensor, delta: float) -> Tensor",
      .doc = "The gradient of _huber.", ROW_WITH, .grad = _huber_backward_grad, .saves = IN(0) | IN(1) | IN(2));
GRAD(_huber) { difference(need, dx, lc__huber_backward(g[0], in(0), in(1), in[2].f)); }
LC_OP(_huber, .sig = "_huber(input: Tensor, target: Tensor, delta: float) -> Tensor",
      .doc = "d * d / 2 where d = |input - target| is at most delta, else delta * (d - delta / 2).", ROW_WITH,
      .grad = _huber_grad, .saves = IN(0) | IN(1));

/* With e = x (1 - x): slope = (x - target) / e. */
GRAD(_bce_backward)
{
    lc_tensor *x = in(1), *target = in(2), *e = lc_clamp_min(lc_mul(x, lc_sub(LC_INTEGER(1), x)), LC_NUMBER(1e-12));
    lc_tensor *gg = lc_mul(g[0], in(0));
    if (need[0]) dx[0] = lc__bce_backward(g[0], x, target);
    if (need[1]) { /* (x x - 2 x target + target) / (e e) */
        lc_tensor *bend = lc_add(lc_mul(x, lc_sub(x, lc_mul(target, LC_INTEGER(2)))), target);
        dx[1] = lc_mul(gg, lc_div(bend, lc_mul(e, e)));
    }
    if (need[2]) dx[2] = lc_neg(lc_div(gg, e));
}
LC_OP(_bce_backward, .sig = "_bce_backward(grad_output: Tensor, input: Tensor, target: Tensor) -> Tensor",
      .doc = "The gradient of _bce.", ROW, .grad = _bce_backward_grad, .saves = IN(0) | IN(1) | IN(2));
GRAD(_bce)
{
    if (need[0]) dx[0] = lc__bce_backward(g[0], in(0), in(1));
    if (need[1]) dx[1] = lc_mul(g[0], lc_sub(lc_log1p(lc_neg(in(0))), lc_log(in(0)))); /* without the clamps, as in PyTorch */
}
LC_OP(_bce, .sig = "_bce(input: Tensor, target: Tensor) -> Tensor",
      .doc = "-(target log(input) + (1 - target) log(1 - input)), logarithms at least -100.", ROW, .grad = _bce_grad,
      .saves = IN(0) | IN(1));

/* x, target, weight z of the positive class: (1 - target) x + (1 + (z - 1) target) softplus(-x). */
GRAD(_bce_logits_backward)
{
    lc_tensor *target = in(2), *z = in(3), *s = lc_sigmoid(lc_neg(in(1))), *gg = lc_mul(g[0], in(0));
    lc_tensor *rest = lc_sub(z, LC_INTEGER(1));
    if (need[0]) dx[0] = lc__bce_logits_backward(g[0], in(1), target, z);
    if (need[1]) {
        lc_tensor *bend = lc_mul(lc_add(lc_mul(rest, target), LC_INTEGER(1)), lc_mul(s, lc_sub(LC_INTEGER(1), s)));
        dx[1] = lc_mul(gg, bend);
    }
    if (need[2]) dx[2] = lc_neg(lc_mul(gg, lc_add(lc_mul(rest, s), LC_INTEGER(1))));
    if (need[3]) dx[3] = lc_neg(lc_mul(gg, lc_mul(target, s)));
}
LC_OP(_bce_logits_backward,
      .sig = "_bce_logits_backward(grad_output: Tensor, input: Tensor, target: Tensor, pos_weight: Tensor | Number) -> Tensor",
      .doc = "The gradient of _bce_logits.", ROW, .grad = _bce_logits_backward_grad, .saves = IN(0) | IN(1) | IN(2) | IN(3));
GRAD(_bce_logits)
{
    lc_tensor *x = in(0), *target = in(1), *z = in(2);
    if (need[0]) dx[0] = lc__bce_logits_backward(g[0], x, target, z);
    if (!need[1] && !need[2]) return;
    lc_tensor *on = lc_logsigmoid(x);
    if (need[1]) dx[1] = lc_mul(g[0], z->is_number ? lc_neg(x) : lc_sub(lc_logsigmoid(lc_neg(x)), lc_mul(on, z)));
    if (need[2]) dx[2] = lc_neg(lc_mul(g[0], lc_mul(target, on)));
}
/* float16 and bfloat16 are rounded at every step, as in PyTorch: sums would show the difference. (1 - target) x - (1 + (z -
 * 1) target) logsigmoid(x). */
static int bce_logits_in_steps(const lc_record *call)
{
    lc_tensor *x = call->in[0], *target = call->in[1], *z = call->in[2], *one = LC_INTEGER(1), *out = call->out[0];
    lc_tensor *on = lc_tensor_new((lc_dtype)out->dtype, out->device, out->ndim, out->shape);
    lc_tensor *share = on ? lc_tensor_new((lc_dtype)out->dtype, out->device, out->ndim, out->shape) : NULL;
    const struct {
        lc_op_id   op;
        lc_tensor *to, *in[2];
        bool       weighs;
    } steps[] = { { LC_OP_logsigmoid, on, { x }, false },        { LC_OP_sub, share, { z, one }, true },
                  { LC_OP_mul, share, { share, target }, true }, { LC_OP_add, share, { share, one }, true },
                  { LC_OP_mul, on, { on, share }, true },        { LC_OP_sub, share, { one, target }, false },
                  { LC_OP_mul, share, { share, x }, false },     { LC_OP_sub, out, { share, on }, false } };
    int rc = share ? 0 : -1;
    for (size_t k = 0; k < sizeof steps / sizeof *steps && rc == 0; k++)
        if (!steps[k].weighs || !z->is_number)
            rc = call->backend->elementwise(steps[k].op, call->dtype, steps[k].to, steps[k].in, steps[k].in[1] ? 2 : 1);
    lc_release(on), lc_release(share);
    return rc;
}
static int bce_logits_run(const lc_record *call)
{
    bool in_steps = working_dtype(call->dtype) != call->dtype && call->out[0]->dtype == call->dtype;
    return in_steps ? bce_logits_in_steps(call) : elementwise(call);
}
LC_OP(_bce_logits, .sig = "_bce_logits(input: Tensor, target: Tensor, pos_weight: Tensor | Number) -> Tensor",
      .doc = "_bce of sigmoid(input), without its overflow; target times pos_weight in its first term.", .hidden = true,
      .kind = LC_KIND_ELEMENTWISE, .shape = broadcast, .run = bce_logits_run, .grad = _bce_logits_grad,
      .saves = IN(0) | IN(1) | IN(2));

/* ---- distances: (input, target, size_average, reduce, reduction, ...) ---- */

/* Losses with weights: the mean divides by the sum of weights, except in huber_loss. */
static int weighed(lc_tensor *loss, lc_tensor *x, lc_tensor *weight, reduction how, bool over_weights, lc_tensor **out)
{
    if (weight == LC_NONE || !loss) return reduced_loss(loss, how, out);
    if (!same_sizes(weight, x)) return lc_fail_int(LC_ValueError, "Weights and input must have the same size.");
    loss = lc_mul(loss, weight);
    if (how != REDUCE_MEAN || !over_weights) return reduced_loss(loss, how, out);
    return (out[0] = lc_div(all_sum(loss), all_sum(weight))) ? 0 : -1;
}
static int mse_loss_call(const lc_value *in, lc_tensor **out)
{
    reduction how;
    warn_sizes(in(0), in(1));
    if (reduction_of(&in[2], &in[3], &in[4], &how) < 0) return -1;
    return weighed(lc__mse(in(0), in(1)), in(0), in[5].t, how, true, out);
}
LC_OP(mse_loss, .sig = "mse_loss(input: Tensor, target: Tensor, " REDUCTION ", weight: Tensor | None = None) -> Tensor",
      .doc = "The mean of the squares of input - target.", LOSS, .call = mse_loss_call);
static int l1_loss_call(const lc_value *in, lc_tensor **out)
{
    reduction how;
    warn_sizes(in(0), in(1));
    if (reduction_of(&in[2], &in[3], &in[4], &how) < 0) return -1;
    return weighed(lc_abs(lc_sub(in(0), in(1))), in(0), in[5].t, how, true, out);
}
LC_OP(l1_loss, .sig = "l1_loss(input: Tensor, target: Tensor, " REDUCTION ", weight: Tensor | None = None) -> Tensor",
      .doc = "The mean of |input - target|.", LOSS, .call = l1_loss_call);
static int smooth_l1_loss_call(const lc_value *in, lc_tensor **out)
{
    reduction how;
    double    beta = in[5].f;
    warn_sizes(in(0), in(1));
    if (reduction_of(&in[2], &in[3], &in[4], &how) < 0) return -1;
    if (!(beta >= 0)) return lc_fail_int(LC_LucidError, "smooth_l1_loss does not support negative values for beta.");
    return reduced_loss(beta == 0 ? lc_abs(lc_sub(in(0), in(1))) : lc__smooth_l1(in(0), in(1), beta), how, out);
}
LC_OP(smooth_l1_loss, .sig = "smooth_l1_loss(input: Tensor, target: Tensor, " REDUCTION ", beta: float = 1.0) -> Tensor",
      .doc = "l1_loss, but quadratic where the difference is below beta.", LOSS, .call = smooth_l1_loss_call);
static int huber_loss_call(const lc_value *in, lc_tensor **out)
{
    reduction how;
    double    delta = in[3].f;
    warn_sizes(in(0), in(1));
    if (reduction_named(&in[2], &how) < 0) return -1;
    if (joint_dtype_fits("huber_loss", in(0), in(1)) < 0) return -1;
    if (!(delta > 0)) return lc_fail_int(LC_LucidError, "huber_loss does not support non-positive values for delta.");
    return weighed(in_dtype_of(lc__huber(in(0), in(1), delta), (lc_dtype)in(0)->dtype), in(0), in[4].t, how, false, out);
}
LC_OP(huber_loss,
      .sig = "huber_loss(input: Tensor, target: Tensor, reduction: str = 'mean', delta: float = 1.0, weight: Tensor | None = "
             "None) -> Tensor",
      .doc = "Half the square of input - target; linear beyond delta.", LOSS, .call = huber_loss_call);

/* ---- entropies ---- */
static int between_zero_and_one(lc_tensor *x, const char *name)
{
    int64_t  good = 1;
    unsigned modes = lc_modes;
    if (!x->numel || !lc_can(x)->values) return 0;
    lc_modes |= LC_NO_GRAD;
    int rc = read_int(lc_logical_and(lc_ge(lc_min(x), LC_INTEGER(0)), lc_le(lc_max(x), LC_INTEGER(1))), &good);
    lc_modes = modes;
    if (rc < 0) return -1;
    return good ? 0 : lc_fail_int(LC_LucidError, "all elements of %s should be between 0 and 1", name);
}
static int binary_cross_entropy_call(const lc_value *in, lc_tensor **out)
{
    reduction  how;
    lc_tensor *x = in(0), *target = in(1);
    if (reduction_of(&in[3], &in[4], &in[5], &how) < 0) return -1;
    if (!same_sizes(x, target))
        return lc_fail_int(LC_ValueError,
                           "Using a target size (%s) that is different to the input size (%s) is deprecated. Please ensure "
                           "they have the same size.",
                           LC_SIZES(target->shape, target->ndim), LC_SIZES(x->shape, x->ndim));
    if (x->dtype != target->dtype)
        return lc_fail_int(LC_DtypeMismatch, "binary_cross_entropy: Found dtype %s but expected %s",
                           lc_dtypes[target->dtype].name, lc_dtypes[x->dtype].name);
    if (refuse_grad(in[2].t, "binary_cross_entropy", "weight") < 0 || between_zero_and_one(x, "input") < 0 ||
        between_zero_and_one(target, "target") < 0)
        return -1;
    return reduced_loss(weighted_alike(lc__bce(x, target), in[2].t), how, out);
}
LC_OP(binary_cross_entropy,
      .sig = "binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, " REDUCTION ") -> Tensor",
      .doc = "The cross entropy of probabilities: -(target log(input) + (1 - target) log(1 - input)).", LOSS,
      .reads_values = true, .call = binary_cross_entropy_call);

static int bce_logits_call(const lc_value *in, lc_tensor **out)
{
    reduction  how;
    lc_tensor *x = in(0), *target = in(1), *positive = in[6].t == LC_NONE ? LC_INTEGER(1) : in[6].t;
    if (reduction_of(&in[3], &in[4], &in[5], &how) < 0) return -1;
    if (!same_sizes(x, target))
        return lc_fail_int(LC_ValueError, "Target size (%s) must be the same as input size (%s)",
                           LC_SIZES(target->shape, target->ndim), LC_SIZES(x->shape, x->ndim));
    if (lc_is_floating(x->dtype) && !lc_is_floating(target->dtype) && !lc_is_complex(target->dtype))
        return lc_fail_int(LC_DtypeMismatch, "result type %s can't be cast to the desired output type %s",
                           lc_dtypes[x->dtype].name, lc_dtypes[target->dtype].name);
    if (refuse_grad(in[2].t, "binary_cross_entropy_with_logits", "weight") < 0 ||
        refuse_grad(in[6].t, "binary_cross_entropy_with_logits", "pos_weight") < 0)
        return -1;
    if (!lc_is_floating(x->dtype))
        return lc_fail_int(LC_NotImplementedError, "binary_cross_entropy_with_logits is not implemented for %s",
                           lc_dtypes[x->dtype].name);
    lc_tensor *loss = written_like(lc__bce_logits(x, target, positive), target); /* PyTorch computes in 1 - target */
    return reduced_loss(weighted_alike(loss, in[2].t), how, out);
}
LC_OP(binary_cross_entropy_with_logits,
      .sig = "binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, " REDUCTION
             ", pos_weight: Tensor | None = None) -> Tensor",
      .doc = "binary_cross_entropy of sigmoid(input), without its overflow.", LOSS, .call = bce_logits_call);

static int kl_div_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *target = in(1);
    bool       batch = !strcmp(in[4].s, "batchmean"), old = in[2].tag != LC_IS_none || in[3].tag != LC_IS_none;
    lc_value   name = in[4];
    reduction  how;
    if (batch) name.s = "sum";
    if (!old && !strcmp(name.s, "mean"))
        lc_warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides only "
            "by the batch size, and aligns with the KL div math definition.");
    if (reduction_of(&in[2], &in[3], &name, &how) < 0) return -1;
    if (!lc_is_floating(x->dtype) || !lc_is_floating(target->dtype))
        return lc_fail_int(LC_DtypeMismatch, "kl_div: Integral and complex inputs not supported.");
    lc_tensor *loss = in[5].b ? lc_mul(lc_exp(target), lc_sub(target, x)) : lc_sub(lc_xlogy(target, target), lc_mul(target, x));
    if (reduced_loss(loss, how, out) < 0) return -1;
    if (batch && x->ndim) out[0] = lc_div(out[0], LC_INTEGER(x->shape[0]));
    return out[0] ? 0 : -1;
}
LC_OP(kl_div, .sig = "kl_div(input: Tensor, target: Tensor, " REDUCTION ", log_target: bool = False) -> Tensor",
      .doc = "The Kullback-Leibler divergence: target * (log(target) - input), input being logarithms.", LOSS,
      .call = kl_div_call);

/* ---- likelihoods ---- */
static int poisson_nll_loss_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *target = in(1), *loss;
    reduction  how;
    if (reduction_of(&in[4], &in[6], &in[7], &how) < 0) return -1;
    if (in[2].b) loss = lc_sub(lc_exp(x), lc_mul(target, x));
    else loss = lc_sub(x, lc_mul(target, lc_log(lc_add(x, LC_NUMBER(in[5].f)))));
    if (in[3].b) { /* Stirling: target log(target) - target + log(2 pi target) / 2 */
        lc_tensor *half = lc_mul(lc_log(lc_mul(target, LC_NUMBER(2 * M_PI))), LC_NUMBER(0.5));
        lc_tensor *term = lc_add(lc_sub(lc_mul(target, lc_log(target)), target), half);
        loss = lc_add(loss, lc_masked_fill(term, lc_le(target, LC_INTEGER(1)), LC_INTEGER(0)));
    }
    return reduced_loss(loss, how, out);
}
LC_OP(poisson_nll_loss,
      .sig =
          "poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: truth | "
          "None = None, eps: float = 1e-08, reduce: truth | None = None, reduction: str = 'mean') -> Tensor",
      .doc = "The negative log likelihood of Poisson distributed targets, with input as rates or their logarithms.", LOSS,
      .call = poisson_nll_loss_call);

/* The variance has the input's shape, or one dimension less, or size one in one dimension. */
static lc_tensor *fitted_variance(lc_tensor *var, const lc_tensor *x)
{
    int64_t others = 0;
    if (same_sizes(var, x)) return var;
    if (var->ndim == x->ndim - 1 && lc_same_sizes(var->shape, x->shape, var->ndim)) return lc_unsqueeze(var, -1);
    for (int d = 0; d < x->ndim && var->ndim == x->ndim; d++) others += var->shape[d] != x->shape[d] ? var->shape[d] : 0;
    return others == 1 ? var : lc_fail(LC_ValueError, "var is of incorrect size");
}
static int gaussian_nll_loss_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *target = in(1), *var = in(2);
    reduction  how;
    int64_t    negative = 0;
    unsigned   modes = lc_modes;
    if (var->is_number && !lc_is_floating(var->dtype))
        return lc_fail_int(LC_TypeError, "gaussian_nll_loss: var must be a tensor or a float");
    if (var->is_number) var = lc_mul(var, lc_ones_like(x, LC_ABSENT, LC_ABSENT, LC_ABSENT));
    lc_modes |= LC_NO_GRAD;
    int rc = !var || !lc_can(var)->values ? 0 : read_int(lc_any(lc_lt(var, LC_INTEGER(0)), NULL, 0, false), &negative);
    lc_modes = modes;
    if (rc < 0 || !var) return -1;
    if (negative) return lc_fail_int(LC_ValueError, "var has negative entry/entries");
    if (!(var = fitted_variance(var, x)) || reduction_named(&in[5], &how) < 0) return -1;
    var = lc_clone(var, LC_PRESERVE_FORMAT);
    lc_modes |= LC_NO_GRAD; /* the clamp has no gradient */
    var = lc_clamp_min_(var, LC_NUMBER(in[4].f));
    lc_modes = modes;
    lc_tensor *loss = lc_add(lc_log(var), lc_div(lc_square(lc_sub(x, target)), var));
    loss = lc_mul(loss, LC_NUMBER(0.5));
    if (in[3].b) loss = lc_add(loss, LC_NUMBER(0.91893853320467274178)); /* log(2 pi) / 2 */
    return reduced_loss(loss, how, out);
}
LC_OP(gaussian_nll_loss,
      .sig = "gaussian_nll_loss(input: Tensor, target: Tensor | Number, var: Tensor | Number, full: bool = False, eps: float = "
             "1e-06, "
             "reduction: str = 'mean') -> Tensor",
      .doc = "The negative log likelihood of targets that are normally distributed around input.", SUM_OF_OPS,
      .reads_values = true, .call = gaussian_nll_loss_call);

/* Losses over classes: nll_loss and cross_entropy. Classes are dimension 1 of the input (n, classes, ...), or dimension 0 if it has no other; the target
 * has a class per position, or (cross_entropy) a probability per element.
 *
 * nll_loss touches one element per position, so it is a gather and little more. cross_entropy with classes is a kernel that
 * never forms the probabilities (cpu/loss/loss.c), with a gradient op of its own. The double backward is made of plain ops. */
#include "loss.h"

#include <stdio.h>

static lc_tensor *in_type(lc_tensor *t, lc_dtype dtype) { return lc_to(t, dtype, false, false, LC_ABSENT); }
static int        class_dim(const lc_tensor *x) { return x->ndim == 1 ? 0 : 1; }

/* PyTorch's checks of input (n, classes, ...), of which a loss in `dtype` is taken, target (n, ...), weight (classes). */
static int check_class_target(const lc_tensor *x, lc_dtype dtype, const lc_tensor *target, const lc_tensor *weight)
{
    int64_t classes = x->ndim ? x->shape[class_dim(x)] : 0;
    if (x->ndim < 1) return lc_fail_int(LC_ValueError, "Expected 1 or more dimensions (got %d)", x->ndim);
    if (x->ndim != 1 && target->ndim && x->shape[0] != target->shape[0])
        return lc_fail_int(LC_ValueError, "Expected input batch_size (%lld) to match target batch_size (%lld).",
                           (long long)x->shape[0], (long long)target->shape[0]);
    if (x->ndim != 1 && !target->ndim)
        return lc_fail_int(x->shape[0] ? LC_ValueError : LC_IndexError,
                           "Expected input batch_size (%lld) to match target batch_size (0).", (long long)x->shape[0]);
    if (x->ndim == 1 && target->ndim == 1 && target->shape[0] != 1)
        return lc_fail_int(LC_ValueError, "For 1D input, 1D target must have size 1, but got target size: %lld",
                           (long long)target->shape[0]);
    bool fits =
        target->ndim == (x->ndim == 1 ? 0 : x->ndim - 1) || (x->ndim == 1 && target->ndim == 1 && target->shape[0] == 1);
    for (int d = 2; d < x->ndim && fits; d++) fits = x->shape[d] == target->shape[d - 1];
    if (!fits)
        return lc_fail_int(LC_ShapeMismatch, "a class per position expected: size mismatch (got input: %s, target: %s)",
                           LC_SIZES(x->shape, x->ndim), LC_SIZES(target->shape, target->ndim));
    if (target->dtype != LC_i64 && (target->dtype != LC_u8 || x->ndim > 2))
        return lc_fail_int(
            LC_DtypeMismatch,
            "expected scalar type Long but found %s: a target of classes is int64%s; one of probabilities has the "
            "input's shape",
            lc_dtypes[target->dtype].name, x->ndim > 2 ? "" : " or uint8");
    if (weight != LC_NONE && (weight->ndim != 1 || weight->numel != classes))
        return lc_fail_int(LC_ShapeMismatch,
                           "weight tensor should be defined either for all %lld classes or no classes but got weight tensor of "
                           "shape: %s",
                           (long long)classes, LC_SIZES(weight->shape, weight->ndim));
    if (weight != LC_NONE && weight->dtype != dtype)
        return lc_fail_int(LC_DtypeMismatch, "expected scalar type %s but found %s", lc_dtypes[dtype].name,
                           lc_dtypes[weight->dtype].name);
    return refuse_grad(weight, "nll_loss", "weight");
}

/* ---- nll_loss: (input, target, weight, size_average, ignore_index, reduce, reduction) ---- */
static lc_tensor *at_classes(lc_tensor *x, int dim, lc_tensor *index)
{
    lc_tensor *chosen = lc_gather(x, dim, index, false);
    long long class;
    if (chosen || lc_error_last_kind() != LC_IndexError || sscanf(lc_error(), "index %lld", &class) != 1) return chosen;
    return lc_fail(LC_IndexError, "Target %lld is out of bounds.", class);
}
static int nll(lc_tensor *x, lc_tensor *target, lc_tensor *weight, int64_t ignored, reduction how, lc_tensor **out)
{
    int        dim = class_dim(x);
    lc_tensor *flat_target = target->dtype == LC_i64 ? target : in_type(target, LC_i64);
    if (x->ndim == 1 && target->ndim == 1) flat_target = lc_reshape(flat_target, NULL, 0);
    lc_tensor *counts = lc_ne(flat_target, LC_INTEGER(ignored));
    lc_tensor *class = lc_where(counts, flat_target, LC_INTEGER(0));
    lc_tensor *index = lc_unsqueeze(class, dim);
    lc_tensor *chosen = x->shape[dim] || index->numel ? lc_squeeze(at_classes(x, dim, index), (int64_t[]){ dim }, 1) : NULL;
    lc_tensor *share = weight == LC_NONE ? NULL : lc_take(weight, class);
    lc_tensor *loss = lc_where(counts, lc_neg(share ? lc_mul(chosen, share) : chosen), LC_INTEGER(0));
    if (how != REDUCE_MEAN) return reduced_loss(loss, how, out);
    lc_tensor *total = share ? all_sum(lc_where(counts, share, LC_INTEGER(0))) : all_sum(counts);
    return (out[0] = lc_div(all_sum(loss), total)) ? 0 : -1;
}
static int nll_loss_call(const lc_value *in, lc_tensor **out)
{
    reduction how;
    if (reduction_of(&in[3], &in[5], &in[6], &how) < 0 || check_class_target(in(0), (lc_dtype)in(0)->dtype, in(1), in[2].t) < 0)
        return -1;
    if (!lc_is_floating(in(0)->dtype))
        return lc_fail_int(LC_NotImplementedError, "nll_loss is not implemented for %s", lc_dtypes[in(0)->dtype].name);
    return nll(in(0), in(1), in[2].t, in[4].i, how, out);
}
LC_OP(nll_loss,
      .sig = "nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: truth | None = None, "
             "ignore_index: int = -100, reduce: truth | None = None, reduction: str = 'mean') -> Tensor",
      .doc = "The negative log likelihood: -input at each target's class, input being logarithms.", LOSS,
      .call = nll_loss_call);

/* ---- the kernel: (input, target, weight, reduction, ignore_index, label_smoothing, wide) ---- */
/* wide: the loss of halves is float32, as under autocast: without a copy of the scores in float32. */
static void entropy_sizes(const lc_tensor *x, lc_cross_entropy_args *a)
{
    int dim = class_dim(x);
    a->n = a->lanes = 1, a->classes = x->shape[dim];
    for (int d = 0; d < dim; d++) a->n *= x->shape[d];
    for (int d = dim + 1; d < x->ndim; d++) a->lanes *= x->shape[d];
}
static int entropy_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0], *target = call->in[1];
    bool             each = call->args[3].i == REDUCE_NONE;
    lc_dtype         work = working_dtype((lc_dtype)x->dtype);
    if (spec_shape(call, &out[0], call->args[6].b ? work : (lc_dtype)x->dtype, each ? target->ndim : 0, target->shape) < 0)
        return -1;
    if (spec_shape(call, &out[1], work, 1, &target->numel) < 0) return -1;
    return spec_shape(call, &out[2], work, 0, NULL);
}
/* Operands in the form the kernel takes. The caller releases them, NULL or not. */
typedef struct {
    lc_tensor *x, *target, *weight, *grad;
} entropy_operands;
static int entropy_start(lc_tensor *x, lc_tensor *target, lc_tensor *weight, lc_tensor *grad, entropy_operands *o,
                         lc_cross_entropy_args *a)
{
    lc_dtype work = working_dtype((lc_dtype)x->dtype);
    *o = (entropy_operands){ .x = packed(x, (lc_dtype)x->dtype), .target = packed(target, LC_i64) };
    if (weight != LC_NONE) o->weight = packed(weight, work);
    if (grad) o->grad = packed(grad, work);
    entropy_sizes(x, a);
    a->in = o->x, a->target = o->target, a->weight = o->weight, a->grad = o->grad;
    return o->x && o->target && (o->weight || weight == LC_NONE) && (o->grad || !grad) ? 0 : -1;
}
static int entropy_end(entropy_operands *o, int rc)
{
    lc_release(o->x), lc_release(o->target), lc_release(o->weight), lc_release(o->grad);
    return rc;
}
static int entropy_run(const lc_record *call)
{
    lc_tensor            *x = call->in[0], *loss = NULL;
    reduction             how = (reduction)call->args[3].i;
    lc_cross_entropy_args a = { .lse = call->out[1],
                                .total = call->out[2],
                                .reduced = how == REDUCE_NONE ? NULL : call->out[0],
                                .mean = how == REDUCE_MEAN,
                                .ignored = call->args[4].i,
                                .smoothing = call->args[5].f };
    entropy_operands      o;
    lc_record             kernel = *call;
    kernel.dtype = (lc_dtype)x->dtype;
    int rc = entropy_start(x, call->in[1], call->in[2], NULL, &o, &a);
    if (rc == 0) rc = (loss = lc_tensor_new((lc_dtype)call->out[1]->dtype, x->device, 1, call->out[1]->shape)) ? 0 : -1;
    a.loss = loss;
    if (rc == 0) rc = run_kernel_with(&kernel, &a);
    if (rc == 0 && how == REDUCE_NONE) {
        lc_tensor *flat = lc_tensor_view(call->out[0], 1, loss->shape, (int64_t[]){ 1 }, 0);
        rc = flat ? call->backend->copy(flat, loss) : -1;
        lc_release(flat);
    }
    lc_release(loss);
    return entropy_end(&o, rc);
}

/* (grad, input, target, weight, lse, total_weight, reduction, ignore_index, label_smoothing) */
static int entropy_backward_shape(const lc_record *call, lc_spec *out)
{
    return spec_like(call, out, call->in[1], (lc_dtype)call->in[1]->dtype), 0;
}
static int entropy_backward_run(const lc_record *call)
{
    lc_tensor            *x = call->in[1];
    lc_cross_entropy_args a = { .lse = call->in[4],
                                .out = call->out[0],
                                .total = call->args[6].i == REDUCE_MEAN ? call->in[5] : NULL,
                                .ignored = call->args[7].i,
                                .smoothing = call->args[8].f };
    entropy_operands      o;
    lc_record             kernel = *call;
    kernel.dtype = (lc_dtype)x->dtype;
    int rc = entropy_start(x, call->in[2], call->in[3], call->in[0], &o, &a);
    return entropy_end(&o, rc == 0 ? run_kernel_with(&kernel, &a) : -1);
}
/* The factor of the softmax in a position's gradient: (1 - eps) times the weight of its class plus eps times the mean
 * weight, shaped to broadcast with the input. Scoped. */
static lc_tensor *pull_of(lc_tensor *x, lc_tensor *target, lc_tensor *weight, int64_t ignored, double eps)
{
    int        dim = class_dim(x);
    lc_tensor *counts = lc_ne(target, LC_INTEGER(ignored)), *one = in_type(counts, (lc_dtype)x->dtype);
    if (weight != LC_NONE) {
        lc_tensor *own = lc_take(weight, lc_where(counts, target, LC_INTEGER(0)));
        lc_tensor *mixed = lc_add(lc_mul(own, LC_NUMBER(1 - eps)), lc_mul(lc_mean(weight, NULL, 0, false), LC_NUMBER(eps)));
        one = lc_mul(one, mixed);
    }
    if (x->ndim == 1) return lc_reshape(one, (int64_t[]){ 1 }, 1);
    return lc_unsqueeze(one, dim);
}
GRAD(_cross_entropy_backward)
{
    lc_dtype   type = (lc_dtype)in(0)->dtype; /* of the loss */
    lc_tensor *x = in_type(in(1), type), *target = in(2), *weight = in(3);
    int64_t    dim = class_dim(in(1)), how = in[6].i;
    if (!x) return;
    if (need[0]) { /* linear in grad */
        lc_tensor *ones = lc_ones_like(in(0), LC_ABSENT, LC_ABSENT, LC_ABSENT);
        lc_tensor *each = lc__cross_entropy_backward(ones, x, target, weight, in(4), in(5), how, in[7].i, in[8].f);
        lc_tensor *moved = lc_mul(in_type(g[0], type), each);
        dx[0] = how != REDUCE_NONE ? all_sum(moved) : lc_reshape(lc_sum(moved, &dim, 1, false), in(0)->shape, in(0)->ndim);
    }
    if (need[1]) { /* pull * grad * softmax' */
        lc_tensor *p = lc_softmax(x, dim, LC_ABSENT), *pull = pull_of(x, target, weight, in[7].i, in[8].f), *grad = in(0);
        if (how == REDUCE_MEAN) grad = lc_div(grad, in_type(in(5), (lc_dtype)x->dtype));
        if (how == REDUCE_NONE) grad = x->ndim == 1 ? lc_reshape(grad, (int64_t[]){ 1 }, 1) : lc_unsqueeze(grad, dim);
        lc_tensor *slope = lc__softmax_backward_data(in_type(g[0], type), p, dim, type);
        dx[1] = in_type(lc_mul(lc_mul(grad, pull), slope), (lc_dtype)in(1)->dtype);
    }
}
LC_OP(_cross_entropy_backward,
      .sig = "_cross_entropy_backward(grad: Tensor, input: Tensor, target: Tensor, weight: Tensor | None, lse: Tensor, "
             "total_weight: Tensor, reduction: int, ignore_index: int, label_smoothing: float) -> Tensor",
      .doc = "The gradient of _cross_entropy.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = entropy_backward_shape,
      .run = entropy_backward_run, .grad = _cross_entropy_backward_grad,
      .saves = IN(0) | IN(1) | IN(2) | IN(3) | IN(4) | IN(5));
GRAD(_cross_entropy)
{
    if (g[0] != LC_NONE) dx[0] = lc__cross_entropy_backward(g[0], in(0), in(1), in(2), y[1], y[2], in[3].i, in[4].i, in[5].f);
}
/* The examples of vmap are samples; each is reduced by itself. */
static int entropy_batch(const lc_batch_call *b, lc_tensor **out)
{
    const lc_value *args = b->call->args;
    lc_tensor      *in[2];
    int             ndim = b->call->in[0]->ndim;
    int64_t         shape[LC_MAX_DIMS + 1] = { b->size };
    if (b->batched[2]) return LC_NO_RULE;
    for (int k = 0; k < 2; k++) {
        const lc_tensor *example = b->call->in[k];
        memcpy(shape + 1, example->shape, (size_t)example->ndim * sizeof *shape);
        in[k] = b->batched[k] ? b->in[k] : lc_expand(b->in[k], shape, example->ndim + 1);
        if (ndim < 2) continue;
        shape[1] *= b->size;
        in[k] = lc_reshape(in[k], shape + 1, example->ndim);
    }
    lc__cross_entropy_out y = lc__cross_entropy(in[0], in[1], b->in[2], REDUCE_NONE, args[4].i, args[5].f, args[6].b);
    if (!y.out) return -1;
    const lc_tensor *target = b->call->in[1];
    lc_tensor       *loss = lc_reshape(y.out, (int64_t[]){ b->size, -1 }, 2), *counts = lc_ne(in[1], LC_INTEGER(args[4].i));
    lc_tensor       *total = lc_to(counts, (lc_dtype)y.out->dtype, false, false, LC_ABSENT);
    if (b->in[2] != LC_NONE) {
        lc_tensor *named = lc_reshape(lc_where(counts, in[1], LC_INTEGER(0)), (int64_t[]){ -1 }, 1);
        total = lc_mul(lc_reshape(total, (int64_t[]){ -1 }, 1), lc_index_select(b->in[2], 0, named));
    }
    total = lc_sum(lc_reshape(total, (int64_t[]){ b->size, -1 }, 2), &(int64_t){ 1 }, 1, false);
    memcpy(shape + 1, target->shape, (size_t)target->ndim * sizeof *shape);
    if (args[3].i == REDUCE_NONE) out[0] = lc_reshape(y.out, shape, target->ndim + 1);
    else {
        loss = lc_sum(loss, &(int64_t){ 1 }, 1, false);
        out[0] = args[3].i == REDUCE_MEAN ? lc_div(loss, total) : loss;
    }
    out[1] = lc_reshape(y.lse, (int64_t[]){ b->size, -1 }, 2), out[2] = total;
    return out[0] && out[1] && total ? 0 : -1;
}
LC_OP(_cross_entropy, .batch = entropy_batch,
      .sig = "_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, "
             "label_smoothing: float, wide: bool) -> (out: Tensor, lse: Tensor, total_weight: Tensor)",
      .doc = "cross_entropy with class targets; the logsumexp of each position, and the total weight.", .hidden = true,
      .promote = LC_NO_PROMOTION, .shape = entropy_shape, .run = entropy_run, .grad = _cross_entropy_grad,
      .saves = IN(0) | IN(1) | IN(2) | OUT(1) | OUT(2));

/* ---- cross_entropy: (input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing) ---- */
static int soft_entropy(lc_tensor *x, lc_tensor *target, lc_tensor *weight, double eps, reduction how, lc_tensor **out)
{
    int64_t dim = class_dim(x), classes = x->shape[dim], rows = classes ? x->numel / classes : 0;
    if (!lc_is_floating(target->dtype))
        return lc_fail_int(LC_DtypeMismatch, "Expected floating point type for target with class probabilities, got %s",
                           lc_dtypes[target->dtype].name);
    if (weight != LC_NONE && (weight->ndim != 1 || weight->numel != classes))
        return lc_fail_int(LC_ShapeMismatch,
                           "cross_entropy: weight tensor should be defined either for all %lld classes or no classes but got "
                           "weight tensor of shape: %s",
                           (long long)classes, LC_SIZES(weight->shape, weight->ndim));
    lc_tensor *log_p = lc_log_softmax(x, dim, LC_ABSENT);
    if (eps > 0) target = lc_add(lc_mul(target, LC_NUMBER(1 - eps)), LC_NUMBER(eps / (double)classes));
    if (weight != LC_NONE) {
        int64_t shape[LC_MAX_DIMS];
        for (int d = 0; d < x->ndim; d++) shape[d] = d == dim ? classes : 1;
        log_p = lc_mul(log_p, lc_reshape(weight, shape, x->ndim));
    }
    lc_tensor *loss = lc_mul(log_p, target);
    if (how == REDUCE_NONE) return (out[0] = lc_neg(lc_sum(loss, &dim, 1, false))) ? 0 : -1;
    lc_tensor *sum = lc_neg(all_sum(loss));
    return (out[0] = how == REDUCE_SUM ? sum : lc_div(sum, LC_INTEGER(rows))) ? 0 : -1;
}
/* Under autocast the loss is float32; the kernel reads halves as they are. */
static bool in_float32(const lc_tensor *x)
{
    return lc_modes & LC_AUTOCAST && lc_autocast_enabled((lc_device_kind)x->device.kind);
}
static int entropy_checked(lc_tensor *x, lc_tensor *target, lc_tensor *weight, int64_t ignored, double eps, reduction how,
                           lc_tensor **out)
{
    if (eps > 1) return lc_fail_int(LC_LucidError, "label_smoothing must be between 0.0 and 1.0. Got: %g", eps);
    if (!(eps > 0)) eps = 0; /* as PyTorch has it */
    if (!x->ndim) return lc_fail_int(LC_IndexError, "cross_entropy: expected 1 or more dimensions, got 0");
    if (same_sizes(x, target) && x->ndim) {
        if (ignored >= 0) return lc_fail_int(LC_LucidError, "ignore_index is not supported for floating point target");
        x = lc_autocast_fp32(x), target = lc_autocast_fp32(target);
        if (weight != LC_NONE) weight = lc_autocast_fp32(weight);
        return x && target && weight ? soft_entropy(x, target, weight, eps, how, out) : -1;
    }
    bool wide = in_float32(x), halves = x->dtype == LC_f16 || x->dtype == LC_bf16;
    if (wide && weight != LC_NONE && !(weight = lc_autocast_fp32(weight))) return -1;
    if (wide && !halves && !(x = lc_autocast_fp32(x))) return -1;
    if (check_class_target(x, wide && halves ? LC_f32 : (lc_dtype)x->dtype, target, weight) < 0) return -1;
    if (!lc_is_floating(x->dtype))
        return lc_fail_int(LC_NotImplementedError, "cross_entropy is not implemented for %s", lc_dtypes[x->dtype].name);
    if (target->dtype != LC_i64 && eps > 0 && weight != LC_NONE)
        return lc_fail_int(LC_DtypeMismatch, "cross_entropy: expected dtype int64 for targets that are smoothed and weighed");
    if (target->dtype != LC_i64 && !(target = in_type(target, LC_i64))) return -1;
    if (x->ndim == 1 && target->ndim == 1) target = lc_reshape(target, NULL, 0);
    return (out[0] = lc__cross_entropy(x, target, weight, how, ignored, eps, wide && halves).out) ? 0 : -1;
}
static int cross_entropy_call(const lc_value *in, lc_tensor **out)
{
    reduction how;
    if (reduction_of(&in[3], &in[5], &in[6], &how) < 0) return -1;
    return entropy_checked(in(0), in(1), in[2].t, in[4].i, in[7].f, how, out);
}
LC_OP(cross_entropy,
      .sig = "cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: truth | None = None, "
             "ignore_index: int = -100, reduce: truth | None = None, reduction: str = 'mean', label_smoothing: float = 0.0) -> "
             "Tensor",
      .doc = "The cross entropy between softmax(input) and a class, or probabilities of classes, per position.",
      .ns = "nn.functional", .call = cross_entropy_call);

/* Margin losses and losses between embeddings. Composites as in PyTorch, except multilabel_margin_loss, which has a kernel
 * over pairs (label, non-label class). */
#include "loss.h"

static lc_tensor *above_zero(lc_tensor *x) { return lc_clamp_min(x, LC_INTEGER(0)); }

static int hinge_embedding_loss_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *target = in(1), *zero = LC_INTEGER(0);
    reduction  how;
    if (reduction_of(&in[3], &in[4], &in[5], &how) < 0) return -1;
    lc_tensor *margin = LC_NUMBER(in[2].f);
    if (!lc_is_differentiable(x->dtype)) /* PyTorch converts it to the input's dtype */
        margin = lc_full(NULL, 0, margin, LC_OF_DTYPE((lc_dtype)x->dtype), (lc_value){ .tag = LC_IS_device, .dev = x->device });
    lc_tensor *apart = above_zero(lc_sub(margin, x));
    lc_tensor *far = lc_where(lc_ne(target, LC_INTEGER(1)), apart, zero);
    return reduced_loss(lc_add(far, lc_where(lc_ne(target, LC_INTEGER(-1)), x, zero)), how, out);
}
LC_OP(hinge_embedding_loss,
      .sig = "hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, " REDUCTION ") -> Tensor",
      .doc = "input where target is 1, max(0, margin - input) where it is -1.", LOSS, .call = hinge_embedding_loss_call);

static int cosine_embedding_loss_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *a = in(0), *b = in(1), *target = in(2);
    int64_t    dim = target->ndim;
    reduction  how;
    if (reduction_of(&in[4], &in[5], &in[6], &how) < 0) return -1;
    if (dim > 1) return lc_fail_int(LC_ShapeMismatch, "0D or 1D target tensor expected, multi-target not supported");
    if (a->ndim != dim + 1 || b->ndim != dim + 1)
        return lc_fail_int(LC_ShapeMismatch,
                           "%lldD target tensor expects %lldD input tensors, but found inputs with sizes %s and %s.",
                           (long long)dim, (long long)dim + 1, LC_SIZES(a->shape, a->ndim), LC_SIZES(b->shape, b->ndim));
    lc_tensor *product = lc_sum(lc_mul(a, b), &dim, 1, false);
    lc_tensor *size_a = lc_add(lc_sum(lc_mul(a, a), &dim, 1, false), LC_NUMBER(1e-12));
    lc_tensor *size_b = lc_add(lc_sum(lc_mul(b, b), &dim, 1, false), LC_NUMBER(1e-12));
    lc_tensor *cosine = lc_div(product, lc_sqrt(lc_mul(size_a, size_b)));
    lc_tensor *alike = lc_where(lc_eq(target, LC_INTEGER(1)), lc_sub(LC_INTEGER(1), cosine), LC_INTEGER(0));
    lc_tensor *apart = above_zero(lc_sub(cosine, LC_NUMBER(in[3].f)));
    return reduced_loss(lc_add(alike, lc_where(lc_eq(target, LC_INTEGER(-1)), apart, LC_INTEGER(0))), how, out);
}
LC_OP(cosine_embedding_loss,
      .sig = "cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, " REDUCTION
             ") -> Tensor",
      .doc = "1 - cosine where target is 1, max(0, cosine - margin) where it is -1.", LOSS, .call = cosine_embedding_loss_call);

static int margin_ranking_loss_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *a = in(0), *b = in(1), *target = in(2);
    reduction  how;
    if (reduction_of(&in[4], &in[5], &in[6], &how) < 0) return -1;
    if (a->ndim != b->ndim || a->ndim != target->ndim)
        return lc_fail_int(LC_ShapeMismatch,
                           "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: %s, "
                           "input2: %s, target: %s",
                           LC_SIZES(a->shape, a->ndim), LC_SIZES(b->shape, b->ndim), LC_SIZES(target->shape, target->ndim));
    return reduced_loss(above_zero(lc_add(lc_mul(lc_neg(target), lc_sub(a, b)), LC_NUMBER(in[3].f))), how, out);
}
LC_OP(margin_ranking_loss,
      .sig = "margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, " REDUCTION
             ") -> Tensor",
      .doc = "max(0, -target * (input1 - input2) + margin).", LOSS, .call = margin_ranking_loss_call);

static int soft_margin_loss_call(const lc_value *in, lc_tensor **out)
{
    reduction how;
    if (reduction_of(&in[2], &in[3], &in[4], &how) < 0 || refuse_grad(in(1), "soft_margin_loss", "target") < 0) return -1;
    lc_dtype dtype = (lc_dtype)in(0)->dtype;
    if (lc_class_of(dtype) < LC_FLOAT)
        return lc_fail_int(LC_DtypeMismatch, "soft_margin_loss is not implemented for %s", lc_dtypes[dtype].name);
    if (joint_dtype_fits("soft_margin_loss", in(0), in(1)) < 0) return -1;
    lc_tensor *along = lc_mul(in(0), in(1));
    if (along && !same_sizes(along, in(0)))
        return lc_fail_int(LC_ShapeMismatch, "output with shape %s doesn't match the broadcast shape %s", LC_SHAPE(in(0)),
                           LC_SHAPE(along));
    lc_tensor *loss = lc_is_complex(dtype) ? lc_log1p(lc_exp(lc_neg(along))) : lc_neg(lc_logsigmoid(along));
    return reduced_loss(in_dtype_of(loss, dtype), how, out);
}
LC_OP(soft_margin_loss, .sig = "soft_margin_loss(input: Tensor, target: Tensor, " REDUCTION ") -> Tensor",
      .doc = "log(1 + exp(-target * input)).", LOSS, .call = soft_margin_loss_call);

static int multilabel_soft_margin_loss_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *y = in(1);
    int64_t    last = x->ndim - 1;
    reduction  how;
    if (reduction_of(&in[3], &in[4], &in[5], &how) < 0) return -1;
    if (x->ndim == 0) return lc_fail_int(LC_IndexError, "Dimension specified as -1 but tensor has no dimensions");
    if (y->is_number && y->dtype == LC_b8) y = LC_INTEGER(lc_number_of(&in[1]) != 0); /* Python's 1 - True */
    lc_tensor *on = lc_mul(y, lc_logsigmoid(x)), *off = lc_mul(lc_sub(LC_INTEGER(1), y), lc_logsigmoid(lc_neg(x)));
    lc_tensor *loss = weighted(lc_neg(lc_add(on, off)), in[2].t);
    return reduced_loss(lc_div(lc_sum(loss, &last, 1, false), LC_INTEGER(x->shape[last])), how, out);
}
LC_OP(multilabel_soft_margin_loss,
      .sig = "multilabel_soft_margin_loss(input: Tensor, target: Tensor | Number, weight: Tensor | None = None, " REDUCTION
             ") -> Tensor",
      .doc = "The mean over classes of each one's binary cross entropy with logits.", SUM_OF_OPS,
      .call = multilabel_soft_margin_loss_call);

/* ---- classes: input (n, classes), or (classes) without a batch ---- */
static int check_classes(const char *name, const lc_tensor *x, const lc_tensor *target)
{
    bool batch = x->ndim == 2, good = x->ndim <= 2 && (batch ? x->shape[1] : x->numel) != 0;
    if (!good)
        return lc_fail_int(LC_ShapeMismatch, "Expected non-empty vector or matrix with optional 0-dim batch size, but got: %s",
                           LC_SHAPE(x));
    if (target->dtype != LC_i64)
        return lc_fail_int(LC_DtypeMismatch, "%s: expected scalar type Long but found %s", name, lc_dtypes[target->dtype].name);
    return 0;
}
static int multi_margin_loss_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *target = in(1), *weight = in[4].t;
    double     p = lc_number_of(&in[2]);
    int64_t    last = 1, rows = x->ndim == 2 ? x->shape[0] : 1, classes = rows ? x->numel / rows : x->shape[1];
    reduction  how;
    if (reduction_of(&in[5], &in[6], &in[7], &how) < 0) return -1;
    if (p != 1 && p != 2) return lc_fail_int(LC_ValueError, "only p == 1 and p == 2 supported");
    if (weight != LC_NONE && weight->ndim != 1) return lc_fail_int(LC_ValueError, "weight must be one-dimensional");
    if (check_classes("multi_margin_loss", x, target) < 0 || refuse_grad(weight, "multi_margin_loss", "weight") < 0) return -1;
    if (target->ndim > 1 || target->numel != rows)
        return lc_fail_int(LC_ShapeMismatch, "inconsistent target size, expected %lld but got %s", (long long)rows,
                           LC_SHAPE(target));
    if (weight != LC_NONE && weight->numel != classes)
        return lc_fail_int(LC_ShapeMismatch, "inconsistent weight size, expected %lld but got %s", (long long)classes,
                           LC_SHAPE(weight));
    if (!lc_is_floating(x->dtype))
        return lc_fail_int(LC_NotImplementedError, "multi_margin_loss is not implemented for %s", lc_dtypes[x->dtype].name);
    if (weight != LC_NONE && weight->dtype != x->dtype)
        return lc_fail_int(LC_DtypeMismatch, "multi_margin_loss: expected a weight of %s but found %s",
                           lc_dtypes[x->dtype].name, lc_dtypes[weight->dtype].name);
    lc_tensor *flat = lc_reshape(x, (int64_t[]){ rows, classes }, 2), *at = lc_reshape(target, (int64_t[]){ rows, 1 }, 2);
    lc_tensor *lack = lc_add(lc_sub(flat, lc_gather(flat, 1, at, false)), LC_NUMBER(in[3].f));
    lack = lc_where(lc_gt(lack, LC_INTEGER(0)), lack, LC_INTEGER(0)); /* NaN does not violate the margin */
    if (p == 2) lack = lc_mul(lack, lack);
    if (weight != LC_NONE) lack = lc_mul(lack, lc_take(weight, at));
    lc_tensor *class = lc_arange(LC_I(classes), LC_OF_DTYPE(LC_i64), (lc_value){ .tag = LC_IS_device, .dev = x->device });
    lc_tensor *loss = lc_sum(lc_where(lc_eq(class, at), LC_INTEGER(0), lack), &last, 1, false);
    loss = lc_div(loss, LC_INTEGER(classes));
    return reduced_loss(target->ndim == 0 ? lc_reshape(loss, NULL, 0) : loss, how, out);
}
LC_OP(multi_margin_loss,
      .sig = "multi_margin_loss(input: Tensor, target: Tensor, p: Number = 1, margin: float = 1.0, weight: Tensor | None = "
             "None, " REDUCTION ") -> Tensor",
      .doc =
          "The sum over other classes of max(0, margin - input[target] + input[class]) ** p, divided by the number of classes.",
      LOSS, .call = multi_margin_loss_call);

/* The labels of a row come before its first -1. The kernel fills a loss per row; backward, a gradient per class. */
static int labels_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    return spec_shape(call, out, (lc_dtype)x->dtype, 1, x->shape);
}
static int labels_run(const lc_record *call, lc_tensor *grad, lc_tensor *in, lc_tensor *target)
{
    lc_record                 rows = *call;
    lc_dtype                  dtype = rows.dtype = working_dtype((lc_dtype)in->dtype);
    lc_tensor                *x = packed(in, dtype), *t = packed(target, LC_i64), *g = grad ? packed(grad, dtype) : NULL;
    lc_tensor                *out = destination(call->out[0], dtype, call->in, call->n_in);
    lc_multilabel_margin_args args = { .out = out, .in = x, .target = t, .grad = g };
    int                       rc = x && t && out && (g || !grad) ? run_kernel_with(&rows, &args) : -1;
    lc_release(x), lc_release(t), lc_release(g);
    return deliver(call->out[0], out, rc);
}
static int labels_forward_run(const lc_record *call) { return labels_run(call, NULL, call->in[0], call->in[1]); }
static int labels_backward_run(const lc_record *call) { return labels_run(call, call->in[0], call->in[1], call->in[2]); }
static int labels_backward_shape(const lc_record *call, lc_spec *out)
{
    return spec_like(call, out, call->in[1], (lc_dtype)call->in[1]->dtype), 0;
}
/* Linear in grad: the result for a gradient of ones, times grad. */
GRAD(_multilabel_margin_backward)
{
    int64_t    last = 1;
    lc_tensor *ones = lc_ones_like(in(0), LC_ABSENT, LC_ABSENT, LC_ABSENT);
    if (need[0]) dx[0] = lc_sum(lc_mul(g[0], lc__multilabel_margin_backward(ones, in(1), in(2))), &last, 1, false);
}
LC_OP(_multilabel_margin_backward, .sig = "_multilabel_margin_backward(grad: Tensor, input: Tensor, target: Tensor) -> Tensor",
      .doc = "The gradient of _multilabel_margin.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = labels_backward_shape,
      .run = labels_backward_run, .grad = _multilabel_margin_backward_grad, .saves = IN(1) | IN(2));
GRAD(_multilabel_margin) { dx[0] = lc__multilabel_margin_backward(g[0], in(0), in(1)); }
LC_OP(
    _multilabel_margin, .sig = "_multilabel_margin(input: Tensor, target: Tensor) -> Tensor",
    .doc =
        "The sum over pairs (label, other class) of max(0, 1 - input[label] + input[class]), divided by the number of classes.",
    .hidden = true, .promote = LC_NO_PROMOTION, .shape = labels_shape, .run = labels_forward_run,
    .grad = _multilabel_margin_grad, .saves = IN(0) | IN(1));
static int multilabel_margin_loss_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *target = in(1);
    int64_t    rows = x->ndim == 2 ? x->shape[0] : 1, shape[] = { rows, rows ? x->numel / rows : 0 };
    reduction  how;
    if (reduction_of(&in[2], &in[3], &in[4], &how) < 0) return -1;
    if (check_classes("multilabel_margin_loss", x, target) < 0) return -1;
    if (!same_sizes(x, target) && !(x->ndim < 2 && target->ndim < 2 && x->numel == target->numel))
        return lc_fail_int(LC_ShapeMismatch, "inconsistent target size: %s for input of size: %s", LC_SHAPE(target),
                           LC_SHAPE(x));
    if (!rows) shape[1] = x->shape[1];
    lc_tensor *loss = lc__multilabel_margin(lc_reshape(x, shape, 2), lc_reshape(target, shape, 2));
    return reduced_loss(target->ndim < 2 ? lc_reshape(loss, NULL, 0) : loss, how, out);
}
LC_OP(multilabel_margin_loss, .sig = "multilabel_margin_loss(input: Tensor, target: Tensor, " REDUCTION ") -> Tensor",
      .doc = "multi_margin_loss with several labels per row; those of a row come before its first -1.", LOSS,
      .call = multilabel_margin_loss_call);

/* ---- triplets ---- */
static lc_tensor *distance(lc_tensor *a, lc_tensor *b, double p, double eps)
{
    int64_t last = -1;
    return lc_linalg_vector_norm(lc_add(lc_sub(a, b), LC_NUMBER(eps)), LC_F(p), &last, 1, false, LC_ABSENT);
}
static int triplet_margin_loss_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *anchor = in(0), *positive = in(1), *negative = in(2);
    double     margin = in[3].f, p = in[4].f, eps = in[5].f;
    reduction  how;
    if (reduction_of(&in[7], &in[8], &in[9], &how) < 0) return -1;
    if (margin <= 0) return lc_fail_int(LC_ValueError, "margin must be greater than 0, got %g", margin);
    if (anchor->ndim != positive->ndim || anchor->ndim != negative->ndim)
        return lc_fail_int(LC_ShapeMismatch,
                           "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but "
                           "got: anchor %dD, positive %dD, and negative %dD inputs",
                           anchor->ndim, positive->ndim, negative->ndim);
    lc_tensor *near = distance(anchor, positive, p, eps), *far = distance(anchor, negative, p, eps);
    if (in[6].b) far = lc_minimum(far, distance(positive, negative, p, eps));
    return reduced_loss(above_zero(lc_sub(lc_add(near, LC_NUMBER(margin)), far)), how, out);
}
LC_OP(triplet_margin_loss,
      .sig = "triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, "
             "eps: float = 1e-06, swap: bool = False, " REDUCTION ") -> Tensor",
      .doc = "max(0, d(anchor, positive) - d(anchor, negative) + margin).", LOSS, .call = triplet_margin_loss_call);

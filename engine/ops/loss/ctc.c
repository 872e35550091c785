/* Connectionist temporal classification: the likelihood of a sequence of labels, given scores per time step, summed over all
 * alignments with blanks and repeats. The kernel (cpu/loss/ctc.c) keeps the forward variables, which its gradient reads.
 *
 * As in PyTorch, the gradient is that of the loss as a function of normalised log_probs: exp(log_probs) minus the posterior
 * of each class. It is linear in the incoming gradient; the second derivative by log_probs raises an error. */
#include "loss.h"
#include <math.h>

/* (log_probs, targets, input_lengths, target_lengths, blank) */
static int64_t longest_of(const lc_value *lengths)
{
    int64_t longest = 0;
    for (int k = 0; k < lengths->n; k++) longest = lengths->is[k] > longest ? lengths->is[k] : longest;
    return longest;
}
static int ctc_check(const lc_tensor *x, const lc_tensor *targets, const lc_value *inputs, const lc_value *labels,
                     int64_t blank)
{
    int64_t steps = x->shape[0], batch = x->shape[1], sum = 0, longest = longest_of(labels);
    if (!(x->dtype == LC_f32 || x->dtype == LC_f64))
        return lc_fail_int(LC_NotImplementedError, "ctc_loss is not implemented for %s", lc_dtypes[x->dtype].name);
    if (blank < 0 || blank >= x->shape[2]) return lc_fail_int(LC_LucidError, "blank must be in label range");
    if (inputs->n != batch) return lc_fail_int(LC_LucidError, "input_lengths must be of size batch_size");
    if (labels->n != batch) return lc_fail_int(LC_LucidError, "target_lengths must be of size batch_size");
    for (int64_t b = 0; b < batch; b++) {
        if (labels->is[b] < 0)
            return lc_fail_int(LC_LucidError, "Expected target_lengths to have value at least 0, but got value %lld",
                               (long long)labels->is[b]);
        if (inputs->is[b] < 0)
            return lc_fail_int(LC_LucidError, "Expected input_lengths to have value at least 0, but got value %lld",
                               (long long)inputs->is[b]);
        if (inputs->is[b] > steps)
            return lc_fail_int(LC_LucidError, "Expected input_lengths to have value at most %lld, but got value %lld",
                               (long long)steps, (long long)inputs->is[b]);
        sum += labels->is[b];
    }
    if (targets->ndim == 1 && targets->shape[0] != sum)
        return lc_fail_int(LC_ShapeMismatch, "Expected tensor to have size %lld at dimension 0, but got size %lld for targets",
                           (long long)sum, (long long)targets->shape[0]);
    if (targets->ndim == 2 && (targets->shape[0] != batch || targets->shape[1] < longest))
        return lc_fail_int(LC_ShapeMismatch,
                           "Expected tensor to have size at least %lld at dimension 1, but got size %s for targets",
                           (long long)longest, LC_SHAPE(targets));
    if (targets->ndim != 1 && targets->ndim != 2)
        return lc_fail_int(LC_ShapeMismatch, "ctc_loss: targets must be of one or two dimensions, got %s", LC_SHAPE(targets));
    return 0;
}
static int ctc_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    int64_t          kept[] = { x->shape[1], x->shape[0], 2 * longest_of(&call->args[3]) + 1 };
    if (ctc_check(x, call->in[1], &call->args[2], &call->args[3], call->args[4].i) < 0) return -1;
    if (spec_shape(call, &out[0], (lc_dtype)x->dtype, 1, kept) < 0) return -1;
    return spec_shape(call, &out[1], (lc_dtype)x->dtype, 3, kept);
}
static int ctc_kernel(const lc_record *call, int first, lc_ctc_args *a, lc_tensor *grad)
{
    lc_tensor      *x = packed(call->in[first], (lc_dtype)call->in[first]->dtype), *t = packed(call->in[first + 1], LC_i64);
    lc_tensor      *g = grad ? packed(grad, (lc_dtype)call->in[first]->dtype) : NULL;
    lc_record       kernel = *call;
    const lc_value *arg = &call->args[first];
    kernel.dtype = (lc_dtype)call->in[first]->dtype;
    a->log_probs = x, a->targets = t, a->grad = g, a->input_length = arg[2].is, a->target_length = arg[3].is;
    a->blank = arg[4].i, a->longest = longest_of(&arg[3]);
    int rc = x && t && (g || !grad) ? run_kernel_with(&kernel, a) : -1;
    return lc_release(x), lc_release(t), lc_release(g), rc;
}
static int ctc_run(const lc_record *call)
{
    return ctc_kernel(call, 0, &(lc_ctc_args){ .nll = call->out[0], .alpha = call->out[1] }, NULL);
}

/* (grad, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity, nll, alpha) */
static int ctc_backward_shape(const lc_record *call, lc_spec *out)
{
    return spec_like(call, out, call->in[1], (lc_dtype)call->in[1]->dtype), 0;
}
static int ctc_backward_run(const lc_record *call)
{
    lc_ctc_args a = { .out = call->out[0], .nll = call->in[3], .alpha = call->in[4], .zero_infinity = call->args[6].b };
    return ctc_kernel(call, 1, &a, call->in[0]);
}
GRAD(_ctc_loss_backward)
{
    lc_tensor *ones = lc_ones_like(in(0), LC_ABSENT, LC_ABSENT, LC_ABSENT);
    int64_t    others[] = { 0, 2 };
    if (need[0]) {
        lc_tensor *each =
            lc__ctc_loss_backward(ones, in(1), in(2), in[3].is, in[3].n, in[4].is, in[4].n, in[5].i, in[6].b, in[7].t, in[8].t);
        dx[0] = lc_sum(lc_mul(g[0], each), others, 2, false);
    }
    if (need[1]) dx[1] = lc_fail(LC_LucidError, "derivative for _ctc_loss_backward is not implemented");
}
LC_OP(_ctc_loss_backward,
      .sig = "_ctc_loss_backward(grad: Tensor, log_probs: Tensor, targets: Tensor, input_lengths: list[int], target_lengths: "
             "list[int], blank: int, zero_infinity: bool, nll: Tensor, alpha: Tensor) -> Tensor",
      .doc = "The gradient of _ctc_loss.", .hidden = true, .promote = LC_NO_PROMOTION, .atomic = true,
      .shape = ctc_backward_shape, .run = ctc_backward_run, .grad = _ctc_loss_backward_grad,
      .saves = IN(0) | IN(1) | IN(2) | IN(7) | IN(8));
GRAD(_ctc_loss)
{
    if (g[0] != LC_NONE)
        dx[0] = lc__ctc_loss_backward(g[0], in(0), in(1), in[2].is, in[2].n, in[3].is, in[3].n, in[4].i, in[5].b, y[0], y[1]);
}
LC_OP(_ctc_loss,
      .sig = "_ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: list[int], target_lengths: list[int], blank: int, "
             "zero_infinity: bool) -> (nll: Tensor, alpha: Tensor)",
      .doc = "The negative log likelihood of each sequence, and the forward variables.", .hidden = true,
      .promote = LC_NO_PROMOTION, .shape = ctc_shape, .run = ctc_run, .grad = _ctc_loss_grad,
      .saves = IN(0) | IN(1) | OUT(0) | OUT(1));

/* ---- ctc_loss: (log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity) ---- */
static int ctc(const lc_value *in, const int64_t *inputs, int n_inputs, const int64_t *labels, int n_labels, lc_tensor **out)
{
    lc_tensor *x = in(0), *targets = in(1);
    bool       alone = x->ndim == 2;
    reduction  how;
    if (reduction_named(&in[5], &how) < 0) return -1;
    if (x->ndim != 2 && x->ndim != 3)
        return lc_fail_int(x->ndim < 2 ? LC_IndexError : LC_ShapeMismatch,
                           "ctc_loss: log_probs must be of two or three dimensions, got %s", LC_SHAPE(x));
    if (!x->numel) return lc_fail_int(LC_ShapeMismatch, "ctc_loss: log_probs tensor must not be empty, got %s", LC_SHAPE(x));
    if (alone) x = lc_unsqueeze(x, 1);
    if (targets->dtype != LC_i64 && !(targets = lc_to(targets, LC_i64, false, false, LC_ABSENT))) return -1;
    lc_tensor *loss = lc__ctc_loss(x, targets, inputs, n_inputs, labels, n_labels, in[4].i, in[6].b).nll;
    if (!loss) return -1;
    if (in[6].b) loss = lc_where(lc_eq(loss, LC_NUMBER(INFINITY)), LC_INTEGER(0), loss);
    if (how == REDUCE_MEAN) {
        lc_tensor *each = lc_scoped(lc_tensor_new(LC_i64, (lc_device){ LC_CPU, 0 }, 1, &(int64_t){ n_labels }));
        if (!each) return -1;
        for (int k = 0; k < n_labels; k++) ((int64_t *)each->data)[k] = labels[k] > 1 ? labels[k] : 1;
        loss = lc_div(loss, lc__to_copy(each, (lc_dtype)x->dtype, x->device, LC_PRESERVE_FORMAT));
    }
    if (alone && how == REDUCE_NONE) loss = lc_reshape(loss, NULL, 0);
    return reduced_loss(loss, how, out);
}
static int ctc_loss_lists_call(const lc_value *in, lc_tensor **out)
{
    return ctc(in, in[2].is, in[2].n, in[3].is, in[3].n, out);
}
static lc_tensor *on_the_host(lc_tensor *lengths)
{
    lc_tensor *here = lc_tensor_new(LC_i64, (lc_device){ LC_CPU, 0 }, lengths->ndim, lengths->shape);
    if (here && move_values(here, lengths) < 0) lc_release(here), here = NULL;
    return here;
}
static int ctc_loss_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *inputs = NULL, *labels = NULL;
    for (int k = 2; k < 4; k++)
        if (lc_is_floating(in(k)->dtype) || lc_is_complex(in(k)->dtype))
            return lc_fail_int(LC_DtypeMismatch, "%s must be integral", k == 2 ? "input_lengths" : "target_lengths");
    inputs = on_the_host(in(2)), labels = on_the_host(in(3));
    int rc = -1;
    if (inputs && labels)
        rc = ctc(in, (const int64_t *)inputs->data, (int)inputs->numel, (const int64_t *)labels->data, (int)labels->numel, out);
    if (inputs) lc_release(inputs);
    if (labels) lc_release(labels);
    return rc;
}
LC_OP(ctc_loss,
      .sig = "ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0, "
             "reduction: str = 'mean', zero_infinity: bool = False) -> Tensor",
      .any_device = IN(2) | IN(3),
      .doc = "The negative log likelihood of label sequences, over all their alignments with the steps of log_probs.", LOSS,
      .promote = LC_NO_PROMOTION, .reads_values = true, .call = ctc_loss_call);
LC_OP(ctc_loss_lists,
      .sig =
          "ctc_loss_lists(log_probs: Tensor, targets: Tensor, input_lengths: tuple[int, ...], target_lengths: tuple[int, ...], "
          "blank: int = 0, reduction: str = 'mean', zero_infinity: bool = False) -> Tensor",
      .py = "ctc_loss", .doc = "The same with lengths in lists.", LOSS, .promote = LC_NO_PROMOTION,
      .call = ctc_loss_lists_call);

/* linear_cross_entropy: the cross entropy of linear(input, weight), without the scores of all positions at once. Rows are
 * taken a few at a time, so that their scores stay near 16 MB however many classes there are; forward keeps one value per
 * row (cpu/loss/loss.c), and backward recomputes the scores of its rows. That costs one more matrix product than keeping the
 * scores. float16 and bfloat16 are computed in float32. */
#include "loss.h"

static int64_t rows_at_once(int64_t asked, int64_t rows, int64_t classes)
{
    int64_t n = asked > 0 ? asked : ((int64_t)1 << 22) / (classes ? classes : 1);
    return n < 1 ? 1 : n > rows ? rows : n;
}

/* (input (n, k), linear_weight (classes, k), target (n), linear_bias, weight, ignore_index, label_smoothing, rows): a loss
 * and a logsumexp per row, and the total weight. */
static int entropy_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *target = in(2);
    lc_dtype   work = working_dtype((lc_dtype)x->dtype);
    lc_value   where = { .tag = LC_IS_device, .dev = x->device };
    int64_t    rows = x->shape[0], step = rows_at_once(in[7].i, rows, in(1)->shape[0]);
    out[0] = lc_empty(&rows, 1, LC_OF_DTYPE((lc_dtype)x->dtype), where, LC_ABSENT);
    out[1] = lc_empty(&rows, 1, LC_OF_DTYPE(work), where, LC_ABSENT);
    out[2] = lc_zeros(NULL, 0, LC_OF_DTYPE(work), where);
    for (int64_t at = 0, n; at < rows && out[0] && out[1] && out[2]; at += n) {
        lc_scope scope = lc_scope_open(); /* frees the scores of these rows too */
        n = rows - at < step ? rows - at : step;
        lc_tensor            *scores = lc_linear(lc_narrow(x, 0, at, n), in(1), in[3].t);
        lc__cross_entropy_out part =
            lc__cross_entropy(scores, lc_narrow(target, 0, at, n), in[4].t, REDUCE_NONE, in[5].i, in[6].f, false);
        bool done = part.out && lc_copy_(lc_narrow(out[0], 0, at, n), part.out, false) &&
                    lc_copy_(lc_narrow(out[1], 0, at, n), part.lse, false) && lc_add_(out[2], part.total_weight);
        lc_scope_close(scope);
        if (!done) return -1;
    }
    return out[0] && out[1] && out[2] ? 0 : -1;
}
static lc_tensor *joined(lc_tensor *sum, lc_tensor *part) { return sum ? lc_add(sum, part) : part; }
static lc_tensor *kept(lc_scope scope, lc_tensor *t)
{
    return t ? lc_scope_take(scope, t) : NULL;
} /* must outlive the scope of a block of rows */
GRAD(_linear_cross_entropy)
{
    lc_tensor  *x = in(0), *w = in(1), *dw = NULL, *db = NULL;
    int64_t     rows = x->shape[0], step = rows_at_once(in[7].i, rows, w->shape[0]), first = 0, n_parts = 0;
    int64_t     most = step ? (rows + step - 1) / step : 0;
    lc_tensor **parts = lc_alloc((size_t)(most + 1) * sizeof *parts);
    if (g[0] == LC_NONE || !parts) {
        if (!parts) lc_fail(LC_OutOfMemory, "linear_cross_entropy: no memory"), dx[0] = NULL;
        lc_free(parts, (size_t)(most + 1) * sizeof *parts);
        return;
    }
    bool failed = false;
    for (int64_t at = 0, n; at < rows && !failed; at += n) {
        lc_scope scope = lc_scope_open();
        n = rows - at < step ? rows - at : step;
        lc_tensor *some = lc_narrow(x, 0, at, n), *scores = lc_linear(some, w, in[3].t);
        lc_tensor *to_scores =
            lc__cross_entropy_backward(lc_narrow(g[0], 0, at, n), scores, lc_narrow(in(2), 0, at, n), in[4].t,
                                       lc_narrow(y[1], 0, at, n), y[2], REDUCE_NONE, in[5].i, in[6].f);
        lc_tensor *part = need[0] ? kept(scope, lc_mm(to_scores, w)) : NULL;
        lc_tensor *to_w = need[1] ? kept(scope, joined(dw, lc_mm(lc_t(to_scores), some))) : NULL;
        lc_tensor *to_b = need[3] ? kept(scope, joined(db, lc_sum(to_scores, &first, 1, false))) : NULL;
        lc_scope_close(scope);
        failed = (need[0] && !part) || (need[1] && !to_w) || (need[3] && !to_b);
        if (part) parts[n_parts++] = lc_scoped(part);
        if (to_w) dw = lc_scoped(to_w);
        if (to_b) db = lc_scoped(to_b);
    }
    if (need[0]) dx[0] = failed ? NULL : n_parts ? lc_cat(parts, (int)n_parts, 0) : zeros_like(x);
    if (need[1]) dx[1] = failed ? NULL : dw ? dw : zeros_like(w);
    if (need[3]) dx[3] = failed ? NULL : db ? db : zeros_like(in[3].t);
    lc_free(parts, (size_t)(most + 1) * sizeof *parts);
}
LC_OP(_linear_cross_entropy,
      .sig =
          "_linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, linear_bias: Tensor | None, weight: "
          "Tensor | None, ignore_index: int, label_smoothing: float, rows: int) -> (loss: Tensor, lse: Tensor, total_weight: "
          "Tensor)",
      .doc = "The cross entropy of each row of linear(input, linear_weight), a few rows at a time.", .hidden = true,
      .promote = LC_NO_PROMOTION, .call = entropy_call, .grad = _linear_cross_entropy_grad,
      .saves = IN(0) | IN(1) | IN(2) | IN(3) | IN(4) | OUT(1) | OUT(2));

static int shapes_fit(const lc_tensor *x, const lc_tensor *w, const lc_tensor *bias)
{
    if (x->ndim < 1 || x->ndim > 2)
        return lc_fail_int(LC_ShapeMismatch, "expected input with dimensionality 1 or 2, got %d", x->ndim);
    if (w->ndim < 2)
        return lc_fail_int(LC_ShapeMismatch, "expected linear_weight with dimensionality at least 2, got %d", w->ndim);
    if (x->shape[x->ndim - 1] != w->shape[w->ndim - 1])
        return lc_fail_int(LC_ShapeMismatch,
                           "expected equal input and linear_weight last dimensions (in_features), got %lld and %lld, "
                           "respectively",
                           (long long)x->shape[x->ndim - 1], (long long)w->shape[w->ndim - 1]);
    if (bias != LC_NONE && (bias->ndim != w->ndim - 1 || !lc_same_sizes(bias->shape, w->shape, bias->ndim)))
        return lc_fail_int(LC_ShapeMismatch,
                           "expected linear_bias of the shape of linear_weight but its last dimension, got %s",
                           LC_SIZES(bias->shape, bias->ndim));
    if (w->ndim > 2 && x->ndim == 1)
        return lc_fail_int(LC_ShapeMismatch, "K-dimensional loss defined by linear_weight shape %s requires batched input",
                           LC_SIZES(w->shape, w->ndim));
    return 0;
}
static lc_tensor *in_working(lc_tensor *t) /* scoped; NULL passes through */
{
    lc_dtype work = t ? working_dtype((lc_dtype)t->dtype) : LC_f32;
    return !t || t->dtype == work ? t : lc_to(t, work, false, false, LC_ABSENT);
}
/* (input, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing, batch_chunk_size) */
static int linear_cross_entropy_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *w = in(1), *target = in(2), *bias = in[3].t, *weight = in[4].t;
    bool       alone = x->ndim == 1;
    int64_t    shape[LC_MAX_DIMS], ignored = -100;
    int        ndim = 0;
    reduction  how;
    if (shapes_fit(x, w, bias) < 0 || reduction_named(&in[5], &how) < 0) return -1;
    if (!alone) shape[ndim++] = x->shape[0];
    for (int d = 0; d < w->ndim - 1; d++) shape[ndim++] = w->shape[d];
    bool soft = target->ndim == ndim && lc_same_sizes(target->shape, shape, ndim);
    if (int_argument(&in[6], &ignored) && soft)
        return lc_fail_int(LC_LucidError, "ignore_index cannot be specified when target contains probabilities");
    lc_dtype dtype = (lc_dtype)x->dtype;
    if (w->dtype != dtype || (bias != LC_NONE && bias->dtype != dtype) || (weight != LC_NONE && weight->dtype != dtype))
        return lc_fail_int(LC_DtypeMismatch, "linear_cross_entropy: input and weights must be of one dtype, got %s and %s",
                           lc_dtypes[dtype].name,
                           LC_SHAPE(w->dtype != dtype ? w
                                    : bias != LC_NONE ? bias
                                                      : weight));
    x = in_working(x), w = in_working(w), target = soft ? in_working(target) : target;
    if (bias != LC_NONE) bias = in_working(bias);
    if (weight != LC_NONE) weight = in_working(weight);
    if (!x || !w || !target || !bias || !weight) return -1;
    bool whole = soft || w->ndim > 2 || target->ndim != (alone ? 0 : 1) || target->dtype != LC_i64 ||
                 (!alone && target->shape[0] != x->shape[0]) || (weight != LC_NONE && weight->numel != w->shape[0]);
    if (whole) { /* or invalid: cross_entropy raises the error */
        lc_tensor *flat = w;
        if (w->ndim > 2) {
            int64_t k = w->shape[w->ndim - 1], m = k ? w->numel / k : 0;
            flat = lc_reshape(w, (int64_t[]){ m, k }, 2);
            if (bias != LC_NONE) bias = lc_reshape(bias, &m, 1);
        }
        lc_tensor *scores = lc_reshape(lc_linear(x, flat, bias), shape, ndim);
        out[0] = in_dtype_of(lc_cross_entropy(scores, target, weight, LC_ABSENT, ignored, LC_ABSENT, in[5].s, in[7].f), dtype);
        return out[0] ? 0 : -1;
    }
    double smoothing = in[7].f > 0 ? in[7].f : 0; /* as in cross_entropy */
    if (smoothing > 1) return lc_fail_int(LC_LucidError, "label_smoothing must be between 0.0 and 1.0. Got: %g", smoothing);
    if (alone) x = lc_unsqueeze(x, 0), target = lc_unsqueeze(target, 0);
    if (!x || !target || refuse_grad(weight, "linear_cross_entropy", "weight") < 0) return -1;
    lc__linear_cross_entropy_out made = lc__linear_cross_entropy(x, w, target, bias, weight, ignored, smoothing, in[8].i);
    if (!made.loss) return -1;
    if (how == REDUCE_MEAN) out[0] = lc_div(all_sum(made.loss), made.total_weight);
    else out[0] = how == REDUCE_SUM ? all_sum(made.loss) : alone ? lc_reshape(made.loss, NULL, 0) : made.loss;
    return (out[0] = in_dtype_of(out[0], dtype)) ? 0 : -1;
}
LC_OP(linear_cross_entropy,
      .sig = "linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None, "
             "weight: Tensor | None = None, reduction: str = 'mean', ignore_index: int | None = None, label_smoothing: float = "
             "0.0, batch_chunk_size: int = 0) -> Tensor",
      .doc = "cross_entropy(linear(input, linear_weight, linear_bias), target) without the scores of all rows at once.", LOSS,
      .promote = LC_NO_PROMOTION, .call = linear_cross_entropy_call);

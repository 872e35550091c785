/* Rotary positions (Su et al., 2021): a query or key is turned by the angles of its position, x cos + rotated(x) sin with the
 * halves of the last dimension exchanged and the new first one negated. As plain ops that is five passes over small tensors. */
#include "../rules.h"

static lc_tensor *half(lc_tensor *t, int64_t which)
{
    int64_t n = t->shape[t->ndim - 1] / 2;
    return lc_narrow(t, -1, which * n, n);
}
static lc_tensor *exchanged(lc_tensor *t, bool negate) /* the halves; negate: the new first one */
{
    lc_tensor *first = half(t, 1), *second = half(t, 0);
    return lc_cat((lc_tensor *[]){ negate ? lc_neg(first) : first, second }, 2, -1);
}
static int rotary_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    bool             fits = x->ndim >= 1 && x->ndim <= 4 && lc_is_floating(x->dtype) && x->shape[x->ndim - 1] % 2 == 0;
    for (int k = 1; k < 3; k++) {
        const lc_tensor *t = call->in[k];
        fits = fits && t->dtype == x->dtype && t->ndim >= 1 && t->ndim <= x->ndim;
        for (int d = 1; fits && d <= t->ndim; d++)
            fits = t->shape[t->ndim - d] == x->shape[x->ndim - d] || (d > 1 && t->shape[t->ndim - d] == 1);
    }
    if (!fits)
        return lc_fail_int(LC_ShapeMismatch,
                           "_rotary: cosines and sines must broadcast to an input of up to 4 dimensions, but got %s, %s and %s",
                           LC_SHAPE(x), LC_SHAPE(call->in[1]), LC_SHAPE(call->in[2]));
    spec_like(call, out, x, (lc_dtype)x->dtype);
    return out->order = LC_ORDER_STRIDES, lc_strides_like(x, out->stride), 0;
}
static int rotary_run(const lc_record *call)
{
    lc_dtype       dtype = call->backend->can.half & LC_HALF_ATTENTION ? (lc_dtype)call->in[0]->dtype
                                                                       : working_dtype((lc_dtype)call->in[0]->dtype);
    lc_record      turned = *call;
    lc_tensor     *out = destination(call->out[0], dtype, call->in, call->n_in), *in[3] = { NULL };
    lc_rotary_args a = { .out = out, .shape = { 1, 1, 1, 1 } };
    int            rc = out ? 0 : -1;
    for (int k = 0; k < 3; k++)
        if (!(in[k] = in_dtype(call->in[k], dtype))) rc = -1;
    for (int d = 1; rc == 0 && d <= out->ndim; d++) {
        a.shape[4 - d] = out->shape[out->ndim - d], a.at[3][4 - d] = out->stride[out->ndim - d];
        for (int k = 0; k < 3; k++)
            if (d <= in[k]->ndim && in[k]->shape[in[k]->ndim - d] > 1) a.at[k][4 - d] = in[k]->stride[in[k]->ndim - d];
    }
    a.in = in[0], a.cos = in[1], a.sin = in[2];
    turned.dtype = working_dtype(dtype);
    if (rc == 0 && out->numel) rc = run_kernel_with(&turned, &a);
    for (int k = 0; k < 3; k++) lc_release(in[k]);
    return out ? deliver(call->out[0], out, rc) : -1;
}
/* dx = g cos + exchanged(g sin): the same op, since -exchanged(sin) takes the place of sin. */
GRAD(_rotary)
{
    if (need[0]) dx[0] = lc__rotary(g[0], in(1), lc_neg(exchanged(in(2), false)));
    if (need[1]) dx[1] = lc_mul(g[0], in(0));
    if (need[2]) dx[2] = lc_mul(g[0], exchanged(in(0), true));
}
/* In vmap by plain ops: the examples' angles lie one dimension in front. */
static int rotary_batch(const lc_batch_call *b, lc_tensor **out)
{
    lc_tensor *in[3];
    for (int k = 0; k < 3; k++) {
        in[k] = b->in[k];
        while (in[k] && b->batched[k] && in[k]->ndim < b->call->in[0]->ndim + 1) in[k] = lc_unsqueeze(in[k], 1);
        if (!in[k]) return -1;
    }
    return (out[0] = lc_add(lc_mul(in[0], in[1]), lc_mul(exchanged(in[0], true), in[2]))) ? 0 : -1;
}
LC_OP(_rotary, .batch = rotary_batch, .sig = "_rotary(input: Tensor, cos: Tensor, sin: Tensor) -> Tensor",
      .doc = "The halves of the last dimension turned by the angles whose cosines and sines are given.",
      .promote = LC_NO_PROMOTION, .shape = rotary_shape, .run = rotary_run, .grad = _rotary_grad, .saves = IN(1) | IN(2),
      .saves_for = { 0, IN(0), IN(0) });

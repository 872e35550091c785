/* Recurrent layers with shapes that the kernels refuse and PyTorch accepts: a bias of one element, a state with more
 * sequences than the input, packed steps of growing or zero size. PyTorch's cells in plain ops, step by step: shapes that
 * broadcast there broadcast here, others give the same error. */
#include "rnn.h"

/* x += y: the result has x's shape, or there is none. */
static lc_tensor *onto(lc_tensor *x, lc_tensor *y)
{
    lc_tensor *sum = lc_add(x, y);
    if (!sum || (sum->ndim == x->ndim && !memcmp(sum->shape, x->shape, (size_t)x->ndim * sizeof *x->shape))) return sum;
    return lc_fail(LC_ShapeMismatch, "recurrent layer: output with shape %s doesn't match the broadcast shape %s",
                   LC_SIZES(x->shape, x->ndim), LC_SIZES(sum->shape, sum->ndim));
}
static int in_parts(lc_tensor *t, int n, lc_tensor **part)
{
    if (!t) return -1;
    int64_t width = t->ndim == 2 ? t->shape[1] : 0, each = (width + n - 1) / n;
    if (each * (n - 1) < width) return lc_chunk(t, n, 1, part);
    return lc_fail_int(LC_ShapeMismatch, "recurrent layer: gates %s are not %d parts", LC_SHAPE(t), n);
}
/* One step of a layer, from the gates (rows, G h) of its input: h and c become the next state. */
static int plain_step(const rnn_layer *l, lc_tensor *gates, lc_tensor **h, lc_tensor **c)
{
    lc_tensor *hidden = lc_linear(*h, l->w_hh, l->b_hh), *in[4], *own[4];
    if (l->kind == LC_RNN_LSTM) {
        if (in_parts(onto(hidden, gates), 4, own) < 0) return -1;
        *c = onto(lc_mul(lc_sigmoid(own[1]), *c), lc_mul(lc_sigmoid(own[0]), lc_tanh(own[2])));
        *h = lc_mul(lc_sigmoid(own[3]), lc_tanh(*c));
        if (l->project != LC_NONE) *h = lc_linear(*h, l->project, LC_NONE);
    } else if (l->kind == LC_RNN_GRU) {
        if (in_parts(gates, 3, in) < 0 || in_parts(hidden, 3, own) < 0) return -1;
        lc_tensor *reset = lc_sigmoid(onto(own[0], in[0])), *update = lc_sigmoid(onto(own[1], in[1]));
        lc_tensor *fresh = lc_tanh(lc_add(in[2], lc_mul(own[2], reset)));
        *h = onto(lc_mul(lc_sub(*h, fresh), update), fresh);
    } else {
        lc_tensor *sum = onto(hidden, gates);
        *h = l->kind == LC_RNN_RELU ? lc_relu(sum) : lc_tanh(sum);
    }
    return *h && *c ? 0 : -1;
}

static lc_tensor *rows(lc_tensor *t, int64_t from, int64_t past)
{
    return t == LC_NONE ? t : lc_narrow(t, 0, from, past - from);
}
static lc_tensor *joined(lc_tensor *a, lc_tensor *b) { return a == LC_NONE ? a : lc_cat((lc_tensor *[]){ a, b }, 2, 0); }
/* All steps of one direction. input: (steps, batch, width), or packed (rows, width) with sizes. ended: arrays of steps + 1. */
static int run_steps(const rnn_layer *l, lc_tensor *input, const int64_t *sizes, int64_t steps, lc_tensor **made,
                     lc_tensor **ended, lc_tensor **out)
{
    lc_tensor *gates = lc_linear(input, l->w_ih, l->b_ih), *h = l->hx, *c = l->cx;
    int64_t at = l->reverse && sizes ? input->shape[0] : 0, last = sizes ? sizes[l->reverse ? steps - 1 : 0] : 0, n_ended = 0;
    lc_tensor **ended_c = ended + steps + 1;
    if (sizes && l->reverse) h = rows(l->hx, 0, last), c = rows(l->cx, 0, last);
    for (int64_t i = 0; i < steps && gates && h && c; i++) {
        int64_t    t = l->reverse ? steps - 1 - i : i, size = sizes ? sizes[t] : 0;
        lc_tensor *now;
        if (sizes && l->reverse) {
            if (size > last) h = joined(h, rows(l->hx, last, size)), c = joined(c, rows(l->cx, last, size));
            at -= size, now = lc_narrow(gates, 0, at, size);
        } else if (sizes) {
            if (size < last) {
                ended[n_ended] = rows(h, size, last), ended_c[n_ended++] = rows(c, size, last);
                h = rows(h, 0, size), c = rows(c, 0, size);
            }
            now = lc_narrow(gates, 0, at, size), at += size;
        } else now = lc_select(gates, 0, t);
        last = size;
        if (!now || !h || !c || plain_step(l, now, &h, &c) < 0) return -1;
        made[t] = h;
    }
    if (!gates || !h || !c) return -1;
    ended[n_ended] = h, ended_c[n_ended++] = c;
    for (int64_t i = 0; i < n_ended / 2; i++) { /* the shortest ended first */
        lc_tensor *a = ended[i], *b = ended_c[i];
        ended[i] = ended[n_ended - 1 - i], ended[n_ended - 1 - i] = a;
        ended_c[i] = ended_c[n_ended - 1 - i], ended_c[n_ended - 1 - i] = b;
    }
    out[0] = sizes ? lc_cat(made, (int)steps, 0) : lc_stack(made, (int)steps, 0);
    out[1] = n_ended > 1 ? lc_cat(ended, (int)n_ended, 0) : h;
    out[2] = c == LC_NONE || n_ended == 1 ? c : lc_cat(ended_c, (int)n_ended, 0);
    return out[0] && out[1] && out[2] ? 0 : -1;
}
int rnn_plain(const rnn_layer *layer, lc_tensor *input, const int64_t *sizes, int64_t steps, lc_tensor **out)
{
    size_t      bytes = (size_t)(3 * steps + 2) * sizeof(lc_tensor *);
    lc_tensor **states = lc_alloc(bytes);
    if (!states) return lc_fail_int(LC_OutOfMemory, "recurrent layer: no memory for its steps");
    int rc = run_steps(layer, input, sizes, steps, states, states + steps, out);
    return lc_free(states, bytes), rc;
}

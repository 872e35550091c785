/* The gradients of a recurrent layer in plain ops, used when gradients are recorded (double backward). It runs all steps
 * forward again, keeps what backward needs, then runs all steps back. Everything is a function of _recurrence's inputs, so
 * derivatives of any order are correct; it is slow compared to the kernels. */
#include "rnn.h"

typedef struct { /* of one step: n rows */
    int64_t    n, start;
    lc_tensor *before, *c_before, *gate[4], *u, *raw, *out; /* gru: r, z, n and what r multiplies; u: tanh(c) */
} step_values;
typedef struct {
    const lc_value *in;
    int64_t         kind, steps, h;
    lc_tensor      *weight, *bias, *project, *state, *cells; /* state, cells: of all sequences, so far */
    step_values    *step;
} formula;

static lc_tensor *one_minus(lc_tensor *t) { return lc_add(lc_neg(t), LC_NUMBER(1)); }
static lc_tensor *slope(lc_tensor *s) { return lc_mul(s, one_minus(s)); } /* of sigmoid, by its value */
static lc_tensor *slope_tanh(lc_tensor *t) { return one_minus(lc_mul(t, t)); }
static lc_tensor *part(const formula *f, lc_tensor *t, int k) { return lc_narrow(t, 1, k * f->h, f->h); }
static lc_tensor *top(lc_tensor *t, int64_t n) { return t ? lc_narrow(t, 0, 0, n) : NULL; }
/* `all` with its first rows replaced. */
static lc_tensor *with_top(lc_tensor *all, lc_tensor *rows, int64_t n)
{
    if (!all || !rows || all->shape[0] == n) return rows;
    return lc_cat((lc_tensor *[]){ rows, lc_narrow(all, 0, n, all->shape[0] - n) }, 2, 0);
}

static void forward_step(formula *f, step_values *s)
{
    lc_tensor *x = lc_narrow(f->in[RNN_GATES].t, 0, s->start, s->n), *hidden;
    s->before = top(f->state, s->n), s->c_before = top(f->cells, s->n);
    hidden = lc_mm(s->before, lc_t(f->weight));
    if (f->bias) hidden = lc_add(hidden, f->bias);
    if (f->kind == LC_RNN_LSTM) {
        lc_tensor *a = lc_add(x, hidden);
        for (int k = 0; k < 4; k++) s->gate[k] = k == 2 ? lc_tanh(part(f, a, k)) : lc_sigmoid(part(f, a, k));
        lc_tensor *c = lc_add(lc_mul(s->gate[1], s->c_before), lc_mul(s->gate[0], s->gate[2]));
        s->u = lc_tanh(c), s->raw = s->out = lc_mul(s->gate[3], s->u);
        if (f->project) s->out = lc_mm(s->raw, lc_t(f->project));
        f->cells = with_top(f->cells, c, s->n);
    } else if (f->kind == LC_RNN_GRU) {
        for (int k = 0; k < 2; k++) s->gate[k] = lc_sigmoid(lc_add(part(f, x, k), part(f, hidden, k)));
        s->gate[3] = part(f, hidden, 2);
        s->gate[2] = lc_tanh(lc_add(part(f, x, 2), lc_mul(s->gate[0], s->gate[3])));
        s->out = lc_add(s->gate[2], lc_mul(s->gate[1], lc_sub(s->before, s->gate[2])));
    } else {
        lc_tensor *a = lc_add(x, hidden);
        s->out = f->kind == LC_RNN_RELU ? lc_relu(a) : lc_tanh(a);
    }
    f->state = with_top(f->state, s->out, s->n);
}

/* dh (n rows) and dc (all rows) of a step become gradients of its gates; dh becomes the direct gradient of the previous
 * state (NULL: none). */
static lc_tensor *back_through(const formula *f, const step_values *s, lc_tensor **dh, lc_tensor **dc, lc_tensor **d_hidden)
{
    lc_tensor *const *q = s->gate, *g = *dh, *d;
    if (f->kind == LC_RNN_LSTM) {
        lc_tensor *e = lc_add(top(*dc, s->n), lc_mul(lc_mul(g, q[3]), slope_tanh(s->u)));
        d = lc_cat((lc_tensor *[]){ lc_mul(lc_mul(e, q[2]), slope(q[0])), lc_mul(lc_mul(e, s->c_before), slope(q[1])),
                                    lc_mul(lc_mul(e, q[0]), slope_tanh(q[2])), lc_mul(lc_mul(g, s->u), slope(q[3])) },
                   4, 1);
        *dc = with_top(*dc, lc_mul(e, q[1]), s->n), *dh = NULL, *d_hidden = d;
    } else if (f->kind == LC_RNN_GRU) {
        lc_tensor *dn = lc_mul(lc_mul(g, one_minus(q[1])), slope_tanh(q[2]));
        lc_tensor *dz = lc_mul(lc_mul(g, lc_sub(s->before, q[2])), slope(q[1])), *dr = lc_mul(lc_mul(dn, q[3]), slope(q[0]));
        d = lc_cat((lc_tensor *[]){ dr, dz, dn }, 3, 1);
        *d_hidden = lc_cat((lc_tensor *[]){ dr, dz, lc_mul(dn, q[0]) }, 3, 1), *dh = lc_mul(g, q[1]);
    } else {
        d = f->kind == LC_RNN_RELU ? lc_threshold_backward(g, s->out, LC_I(0)) : lc_mul(g, slope_tanh(s->out));
        *dh = NULL, *d_hidden = d;
    }
    return d;
}
static lc_tensor *plus(lc_tensor *sum, lc_tensor *t) { return sum ? lc_add(sum, t) : t; }
static void       backward_steps(formula *f, lc_tensor *const *g, lc_tensor **parts, lc_tensor **dx)
{
    bool       reverse = f->in[RNN_REVERSE].b;
    lc_tensor *dh = g[1] == LC_NONE ? zeros_like(f->in[RNN_HX].t) : g[1], *dc = NULL, *d_weight = NULL, *d_bias = NULL,
              *d_project = NULL;
    if (f->cells) dc = g[2] == LC_NONE ? zeros_like(f->cells) : g[2];
    for (int64_t i = f->steps - 1; i >= 0; i--) {
        int64_t      t = reverse ? f->steps - 1 - i : i;
        step_values *s = &f->step[t];
        lc_tensor   *dy = top(dh, s->n), *d_hidden, *direct;
        if (g[0] != LC_NONE) dy = lc_add(dy, lc_narrow(g[0], 0, s->start, s->n));
        if (f->project) d_project = plus(d_project, lc_mm(lc_t(dy), s->raw)), dy = lc_mm(dy, f->project);
        direct = dy;
        parts[t] = back_through(f, s, &direct, &dc, &d_hidden);
        d_weight = plus(d_weight, lc_mm(lc_t(d_hidden), s->before));
        if (f->bias) d_bias = plus(d_bias, lc_sum(d_hidden, &(int64_t){ 0 }, 1, false));
        lc_tensor *to = lc_mm(d_hidden, f->weight);
        dh = with_top(dh, direct ? lc_add(to, direct) : to, s->n);
    }
    dx[RNN_WEIGHT] = d_weight, dx[RNN_HX] = dh;
    if (f->bias) dx[RNN_BIAS] = d_bias;
    if (f->project) dx[RNN_PROJECTION] = d_project;
    if (dc) dx[RNN_CX] = dc;
}
void rnn_formula(const lc_value *in, lc_tensor *const *grads, UNUSED const bool *need, lc_tensor **dx)
{
    int        dtype = in[RNN_GATES].t->dtype;
    lc_tensor *cx = rnn_tensor(&in[RNN_CX]), *g[] = { grads[0], grads[1], in_type(grads[2], dtype) };
    formula    f = { .in = in,
                     .kind = in[RNN_KIND].i,
                     .steps = in[RNN_SIZES].n,
                     .weight = in[RNN_WEIGHT].t,
                     .bias = rnn_tensor(&in[RNN_BIAS]),
                     .project = rnn_tensor(&in[RNN_PROJECTION]),
                     .state = in[RNN_HX].t,
                     .cells = in_type(cx, dtype) };
    size_t     step_bytes = (size_t)f.steps * sizeof(step_values), part_bytes = (size_t)f.steps * sizeof(lc_tensor *);
    f.h = in[RNN_GATES].t->shape[1] / (f.kind == LC_RNN_LSTM ? 4 : f.kind == LC_RNN_GRU ? 3 : 1);
    lc_tensor **parts = lc_alloc(part_bytes);
    if (parts && (f.step = lc_alloc(step_bytes))) {
        for (int64_t t = 0, at = 0; t < f.steps; at += in[RNN_SIZES].is[t++])
            f.step[t] = (step_values){ .n = in[RNN_SIZES].is[t], .start = at };
        for (int64_t i = 0; i < f.steps; i++) forward_step(&f, &f.step[in[RNN_REVERSE].b ? f.steps - 1 - i : i]);
        backward_steps(&f, g, parts, dx);
        if (cx) dx[RNN_CX] = in_type(dx[RNN_CX], cx->dtype);
        if (f.steps) dx[RNN_GATES] = lc_cat(parts, (int)f.steps, 0);
        lc_free(f.step, step_bytes);
    } else dx[RNN_GATES] = lc_fail(LC_OutOfMemory, "recurrent layer: no memory for its steps");
    if (parts) lc_free(parts, part_bytes);
}

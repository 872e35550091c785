/* Normalisations: the ops with kernels, which are hidden. The public ones (norm_public.c) are PyTorch's.
 *
 * _norm_rows has a statistic per row (layer, RMS and group norm), _norm_channels one per channel (batch and instance norm).
 * Statistics have the dtype they are computed in: float32 for float16 and bfloat16. The gradients are ops with kernels of
 * their own; they take the statistics of the forward pass. Their gradients are formulas in which the statistics depend on
 * the input again, so gradients of every order exist. */
#include "norm.h"

lc_tensor *norm_converted(lc_tensor *t, lc_dtype dtype)
{
    return !t || t == LC_NONE || (lc_dtype)t->dtype == dtype ? t : lc_to(t, dtype, false, false, LC_ABSENT);
}
lc_tensor *norm_widened(lc_tensor *t) { return t ? norm_converted(t, working_dtype((lc_dtype)t->dtype)) : NULL; }

norm_statistics norm_normalised(lc_tensor *x, const int64_t *dims, int n, double eps, bool centred)
{
    norm_statistics s = { .mean = LC_NONE };
    lc_tensor      *variance;
    if (centred) {
        s.mean = lc_mean(x, dims, n, true), s.centred = lc_sub(x, s.mean);
        variance = lc_var(x, dims, n, LC_I(0), true);
    } else s.centred = x, variance = lc_mean(lc_mul(x, x), dims, n, true);
    s.variance = variance;
    s.rstd = variance ? lc_rsqrt(lc_add(variance, LC_NUMBER(eps))) : NULL;
    s.hat = lc_mul(s.centred, s.rstd);
    return s;
}
lc_tensor *norm_scaled(lc_tensor *x, lc_tensor *weight, lc_tensor *bias)
{
    if (weight != LC_NONE) x = lc_mul(x, weight);
    return bias == LC_NONE ? x : lc_add(x, bias);
}

/* ---- what the kernels take ---- */

/* New reference: t in the memory order the kernel needs, channels last if `last`. */
static lc_tensor *dense(lc_tensor *t, bool last)
{
    return last ? packed_last(t, (lc_dtype)t->dtype) : packed(t, (lc_dtype)t->dtype);
}
static void output_order(lc_spec *out, bool last)
{
    int64_t step = out->shape[1] ? out->shape[1] : 1;
    if (!last) return;
    out->order = LC_ORDER_STRIDES, out->stride[1] = 1;
    for (int d = out->ndim - 1; d >= 0; d--)
        if (d != 1) out->stride[d] = step, step *= out->shape[d] ? out->shape[d] : 1;
}
typedef struct {
    lc_tensor *owned[8];
    int        n;
    bool       failed;
} holder;
static lc_tensor *held(holder *h, lc_tensor *t) /* NULL is a failure */
{
    if (!t) return h->failed = true, NULL;
    return h->owned[h->n++] = t;
}
/* The dtype in which the kernel takes a weight and a bias, and gives their gradients. */
static lc_dtype parameter_dtype(const lc_record *call, const lc_tensor *weight, const lc_tensor *bias)
{
    const lc_tensor *p = weight == LC_NONE ? bias : weight;
    lc_dtype         work = working_dtype((lc_dtype)call->in[0]->dtype);
    bool             same = p != LC_NONE && (bias == LC_NONE || bias->dtype == p->dtype);
    return same && call->backend->can.half & LC_HALF_NORM && working_dtype((lc_dtype)p->dtype) == work ? (lc_dtype)p->dtype
                                                                                                       : work;
}
static lc_tensor *parameter_of(holder *h, lc_tensor *t, lc_dtype dtype)
{
    return t == LC_NONE ? NULL : held(h, packed(t, dtype));
}
static void forward_parameters(const lc_record *call, holder *h, lc_norm_args *a)
{
    lc_dtype dtype = parameter_dtype(call, call->in[1], call->in[2]);
    a->weight = parameter_of(h, call->in[1], dtype), a->bias = parameter_of(h, call->in[2], dtype);
}
static int finished(holder *h, const lc_record *call, const lc_norm_args *a)
{
    int rc = h->failed ? -1 : run_kernel_with(call, a);
    while (h->n) lc_release(h->owned[--h->n]);
    return rc;
}
static lc_tensor *wanted(const lc_record *call, int k, bool want) { return want ? call->out[k] : NULL; }

static int spec_vector(const lc_record *call, lc_spec *out, int64_t n)
{
    return spec_shape(call, out, working_dtype((lc_dtype)call->in[0]->dtype), 1, &n);
}
static int spec_gradients(const lc_record *call, lc_spec *out, int64_t of_weight, int64_t of_bias) /* of parameters */
{
    lc_dtype dtype = parameter_dtype(call, call->in[4], LC_NONE);
    return spec_shape(call, &out[1], dtype, 1, &of_weight) < 0 ? -1 : spec_shape(call, &out[2], dtype, 1, &of_bias);
}

/* ---- second gradients ---- With h = (x - mean) r, a = w g and E the mean over the elements of a statistic, the first
 * gradients are dx = r P(a), P(t) = t - E[t] - h E[t h], which is symmetric; dw = sum g h; db = sum g. For gradients v, vw,
 * vb of these:
 *   g: w r P(v) + vw h + vb      w: sum g r P(v)      x: r P(H) - r^2 h S
 *   with H = vw g - r (v E[a h] + a E[v h]) and S = E[v a] - E[v] E[a] - E[v h] E[a h]
 * If the norm does not subtract a mean, the terms E[t], E[v] and E[a] vanish. All in a shape to which w broadcasts. */
typedef struct {
    lc_tensor *x, *g, *w, *v, *vw, *vb; /* LC_NONE: not there */
    int64_t    dims[2], sums[2];        /* of a statistic; of a parameter */
    double     eps;
    bool       centred;
} second;
static lc_tensor *expectation(const second *s, lc_tensor *t) { return lc_mean(t, s->dims, 2, true); }
static lc_tensor *projected(const second *s, lc_tensor *h, lc_tensor *t)
{
    lc_tensor *p = lc_sub(t, lc_mul(h, expectation(s, lc_mul(t, h))));
    return s->centred ? lc_sub(p, expectation(s, t)) : p;
}
static lc_tensor *plus(lc_tensor *a, lc_tensor *b) { return a == LC_NONE ? b : lc_add(a, b); }
static lc_tensor *times(lc_tensor *a, lc_tensor *w) { return w == LC_NONE ? a : lc_mul(a, w); }
static void       second_gradients(const second *s, lc_tensor **dg, lc_tensor **dx, lc_tensor **dw)
{
    norm_statistics n = norm_normalised(s->x, s->dims, 2, s->eps, s->centred);
    lc_tensor      *r = n.rstd, *h = n.hat, *v = s->v, *moved = LC_NONE;
    *dg = *dx = *dw = LC_NONE;
    if (v != LC_NONE) {
        lc_tensor *a = times(s->g, s->w), *back = lc_mul(r, projected(s, h, v));
        lc_tensor *ah = expectation(s, lc_mul(a, h)), *vh = expectation(s, lc_mul(v, h));
        lc_tensor *covariance = lc_sub(expectation(s, lc_mul(v, a)), lc_mul(vh, ah));
        if (s->centred) covariance = lc_sub(covariance, lc_mul(expectation(s, v), expectation(s, a)));
        *dg = times(back, s->w);
        if (s->w != LC_NONE) *dw = lc_sum(lc_mul(s->g, back), s->sums, 2, false);
        moved = lc_neg(lc_mul(r, lc_add(lc_mul(v, ah), lc_mul(a, vh))));
        *dx = lc_neg(lc_mul(lc_mul(lc_mul(r, r), h), covariance));
    }
    if (s->vw != LC_NONE) *dg = plus(*dg, lc_mul(s->vw, h)), moved = plus(moved, lc_mul(s->vw, s->g));
    if (s->vb != LC_NONE) *dg = plus(*dg, s->vb);
    if (moved != LC_NONE) *dx = plus(*dx, lc_mul(r, projected(s, h, moved)));
}
static lc_tensor *viewed(lc_tensor *t, const int64_t *shape, int ndim) /* in the dtype of statistics */
{
    return t == LC_NONE ? t : lc_reshape(norm_widened(t), shape, ndim);
}
/* Reshapes a gradient from its shape in `second` to that of the argument. */
static lc_tensor *shaped(lc_tensor *t, const lc_tensor *like)
{
    return t == LC_NONE ? t : norm_converted(lc_reshape(t, like->shape, like->ndim), (lc_dtype)like->dtype);
}

static bool last_of(const lc_tensor *x) { return !x->is_contiguous && suggested_format(x) != LC_CONTIGUOUS_FORMAT; }

/* ---- rows: (input, weight, bias, rows, groups, channels, inner, eps, centred) ---- */
static void row_sizes(lc_norm_args *a, const lc_value *args, int64_t rows) /* args: from groups on */
{
    *a = (lc_norm_args){ .rows = rows, .groups = args[0].i, .channels = args[1].i, .inner = args[2].i };
    a->eps = args[3].f, a->centred = args[4].b;
}
/* Groups of an image with the channels last are read as they lie where the device can. args: from rows on. */
static bool groups_last(const lc_tensor *x, const lc_value *args)
{
    return args[3].i > 1 && x->ndim > 2 && args[1].i * args[2].i == x->shape[1] && args[0].i == x->shape[0] * args[1].i &&
           x->numel && lc_can(x)->last & LC_LAST_GROUPS && last_of(x);
}
static int rows_shape(const lc_record *call, lc_spec *out)
{
    int64_t rows = call->args[3].i;
    spec_like(call, &out[0], call->in[0], (lc_dtype)call->in[0]->dtype);
    output_order(&out[0], groups_last(call->in[0], call->args + 3));
    if (spec_vector(call, &out[1], call->args[8].b ? rows : 0) < 0) return -1;
    return spec_vector(call, &out[2], rows);
}
static int rows_run(const lc_record *call)
{
    lc_norm_args a;
    holder       h = { 0 };
    row_sizes(&a, call->args + 4, call->args[3].i);
    a.last = groups_last(call->in[0], call->args + 3);
    a.in = held(&h, dense(call->in[0], a.last));
    forward_parameters(call, &h, &a);
    a.out = call->out[0], a.mean = wanted(call, 1, a.centred), a.rstd = call->out[2];
    a.finish = (lc_finish){ call->epilogue, call->in };
    return finished(&h, call, &a);
}
/* mean and rstd have gradients too, if they are used: d mean = 1 / n, d rstd = -r^2 h / n. */
static lc_tensor *through_statistics(lc_tensor *x, const lc_value *args, lc_tensor *gmean, lc_tensor *grstd, int64_t rows)
{
    int64_t         length = args[1].i * args[2].i, shape[] = { rows, length }, each[] = { rows, 1 }, dims[] = { 1 };
    norm_statistics s = norm_normalised(lc_reshape(norm_widened(x), shape, 2), dims, 1, args[3].f, args[4].b);
    lc_tensor      *sum = LC_NONE, *share = LC_NUMBER(1 / (double)length);
    if (gmean != LC_NONE) sum = lc_expand(lc_mul(lc_reshape(gmean, each, 2), share), shape, 2);
    if (grstd != LC_NONE) {
        lc_tensor *r2 = lc_mul(s.rstd, s.rstd);
        sum = plus(sum, lc_neg(lc_mul(lc_mul(lc_mul(lc_reshape(grstd, each, 2), share), r2), s.hat)));
    }
    return shaped(sum, x);
}
GRAD(_norm_rows)
{
    lc_tensor *x = in(0), *w = in(1);
    if (g[0] != LC_NONE) {
        lc__norm_rows_backward_out made = lc__norm_rows_backward(g[0], x, y[1], y[2], w, in[3].i, in[4].i, in[5].i, in[6].i,
                                                                 in[7].f, in[8].b, need[0], need[1], need[2]);
        if (need[0]) dx[0] = made.dx;
        if (need[1]) dx[1] = made.dweight ? lc_reshape(made.dweight, w->shape, w->ndim) : NULL;
        if (need[2]) dx[2] = made.dbias ? lc_reshape(made.dbias, in(2)->shape, in(2)->ndim) : NULL;
    }
    if (need[0] && (g[1] != LC_NONE || g[2] != LC_NONE))
        dx[0] = plus(dx[0], through_statistics(x, in + 4, g[1], g[2], in[3].i));
}
/* vmap: more rows. Weights and biases per example are applied afterwards. */
static int rows_batch(const lc_batch_call *b, lc_tensor **out)
{
    const lc_value  *args = b->call->args;
    const lc_tensor *x = b->call->in[0];
    lc_tensor       *kept[] = { b->in[1], b->in[2] };
    bool             after = b->batched[1] || b->batched[2];
    int64_t          shape[LC_MAX_DIMS + 1] = { b->size }, rows = args[3].i;
    if (!rows || !x->numel) return LC_NO_RULE;
    memcpy(shape + 1, x->shape, (size_t)x->ndim * sizeof *shape);
    lc_tensor *all = lc_reshape(b->batched[0] ? b->in[0] : lc_expand(b->in[0], shape, x->ndim + 1), (int64_t[]){ -1 }, 1);
    if (after) kept[0] = kept[1] = LC_NONE;
    lc__norm_rows_out y =
        lc__norm_rows(all, kept[0], kept[1], rows * b->size, args[4].i, args[5].i, args[6].i, args[7].f, args[8].b);
    if (!y.out) return -1;
    lc_tensor *made = y.out;
    for (int k = 1; k < 3 && after; k++) {
        if (b->call->in[k] == LC_NONE) continue;
        int64_t samples = rows / args[4].i, channels = b->call->in[k]->numel;
        if (!channels) return LC_NO_RULE;
        int64_t    inner = x->numel / samples / channels;
        lc_tensor *by = lc_reshape(b->in[k], (int64_t[]){ b->batched[k] ? b->size : 1, 1, channels, 1 }, 4);
        made = lc_reshape(made, (int64_t[]){ b->size, samples, channels, inner }, 4);
        made = k == 1 ? lc_mul(made, by) : lc_add(made, by);
    }
    out[0] = lc_reshape(made, shape, x->ndim + 1);
    out[1] = lc_reshape(y.mean, (int64_t[]){ b->size, y.mean->numel / b->size }, 2);
    out[2] = lc_reshape(y.rstd, (int64_t[]){ b->size, y.rstd->numel / b->size }, 2);
    return out[0] && out[1] && out[2] ? 0 : -1;
}
LC_OP(_norm_rows, .batch = rows_batch,
      .sig = "_norm_rows(input: Tensor, weight: Tensor | None, bias: Tensor | None, rows: int, groups: int, channels: int, "
             "inner: int, eps: float, centred: bool) -> (out: Tensor, mean: Tensor, rstd: Tensor)",
      .doc = "Rows with mean 0 and variance 1, scaled and shifted per channel; their means and 1 / their standard deviations.",
      .hidden = true, .promote = LC_NO_PROMOTION, .shape = rows_shape, .run = rows_run, .grad = _norm_rows_grad,
      .saves = IN(0) | IN(1) | OUT(1) | OUT(2), .cheap = true);

static int rows_backward_shape(const lc_record *call, lc_spec *out)
{
    const lc_value *args = call->args;
    int64_t         n = args[6].i * args[7].i, none = 0;
    if (args[11].b) {
        spec_like(call, &out[0], call->in[1], (lc_dtype)call->in[1]->dtype);
        output_order(&out[0], groups_last(call->in[1], args + 5));
    } else if (spec_shape(call, &out[0], (lc_dtype)call->in[1]->dtype, 1, &none) < 0) return -1;
    return spec_gradients(call, out, args[12].b ? n : 0, args[13].b ? n : 0);
}
static int rows_backward_run(const lc_record *call)
{
    lc_norm_args    a;
    holder          h = { 0 };
    const lc_value *args = call->args;
    lc_dtype        dtype = (lc_dtype)call->in[1]->dtype, work = working_dtype(dtype);
    row_sizes(&a, args + 6, args[5].i);
    a.last = groups_last(call->in[1], args + 5);
    a.grad = held(&h, a.last ? packed_last(call->in[0], dtype) : packed(call->in[0], dtype));
    a.in = held(&h, dense(call->in[1], a.last));
    a.mean = a.centred ? held(&h, packed(call->in[2], work)) : NULL, a.rstd = held(&h, packed(call->in[3], work));
    a.weight = parameter_of(&h, call->in[4], parameter_dtype(call, call->in[4], LC_NONE));
    a.out = wanted(call, 0, args[11].b), a.dweight = wanted(call, 1, args[12].b), a.dbias = wanted(call, 2, args[13].b);
    return finished(&h, call, &a);
}
GRAD(_norm_rows_backward)
{
    int64_t groups = in[6].i, shape[] = { groups ? in[5].i / groups : 0, groups, in[7].i, in[8].i },
            along[] = { groups, in[7].i, 1 };
    second     s = { .dims = { 2, 3 }, .sums = { 0, 3 }, .eps = in[9].f, .centred = in[10].b };
    lc_tensor *dg, *dinput, *dw;
    s.g = viewed(in(0), shape, 4), s.x = viewed(in(1), shape, 4), s.w = viewed(in(4), along, 3);
    s.v = viewed(in[11].b ? g[0] : LC_NONE, shape, 4), s.vw = viewed(in[12].b ? g[1] : LC_NONE, along, 3);
    s.vb = viewed(in[13].b ? g[2] : LC_NONE, along, 3);
    second_gradients(&s, &dg, &dinput, &dw);
    if (need[0] && dg != LC_NONE) dx[0] = shaped(lc_expand(dg, shape, 4), in(0));
    if (need[1]) dx[1] = shaped(dinput, in(1));
    if (in(4) != LC_NONE && need[4]) dx[4] = shaped(dw, in(4));
}
LC_OP(_norm_rows_backward,
      .sig = "_norm_rows_backward(grad: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, rows: int, "
             "groups: int, "
             "channels: int, inner: int, eps: float, centred: bool, wants_input: bool, wants_weight: bool, wants_bias: bool) "
             "-> (dx: "
             "Tensor, dweight: Tensor, dbias: Tensor)",
      .doc = "The gradients of _norm_rows.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = rows_backward_shape,
      .run = rows_backward_run, .grad = _norm_rows_backward_grad, .saves = IN(0) | IN(1) | IN(2) | IN(3) | IN(4));

/* ---- channels: (input, weight, bias, mean, rstd, eps); mean and rstd fix the statistics ---- */
static void channel_sizes(lc_norm_args *a, const lc_tensor *x, double eps, bool fixed)
{
    int64_t channels = x->shape[1], inner = 1;
    bool    last = last_of(x);
    for (int d = 2; d < x->ndim; d++) inner *= x->shape[d];
    *a = (lc_norm_args){
        .rows = x->shape[0] * (last ? inner : 1), .groups = 1, .channels = channels, .inner = last ? 1 : inner
    };
    a->eps = eps, a->fixed = fixed;
}
static int channels_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    int64_t          n = call->in[3] == LC_NONE ? x->shape[1] : 0;
    spec_like(call, &out[0], x, (lc_dtype)x->dtype);
    output_order(&out[0], last_of(x));
    for (int k = 1; k < 4; k++)
        if (spec_vector(call, &out[k], n) < 0) return -1;
    return 0;
}
static int channels_run(const lc_record *call)
{
    lc_norm_args a;
    holder       h = { 0 };
    lc_tensor   *x = call->in[0];
    lc_dtype     work = working_dtype((lc_dtype)x->dtype);
    channel_sizes(&a, x, call->args[5].f, call->in[3] != LC_NONE);
    a.in = held(&h, dense(x, last_of(x)));
    forward_parameters(call, &h, &a);
    a.out = call->out[0], a.mean = call->out[1], a.rstd = call->out[2], a.variance = call->out[3];
    a.finish = (lc_finish){ call->epilogue, call->in };
    if (a.fixed) a.mean = held(&h, packed(call->in[3], work)), a.rstd = held(&h, packed(call->in[4], work));
    return finished(&h, call, &a);
}
GRAD(_norm_channels)
{
    bool                           fixed = in(3) != LC_NONE;
    lc__norm_channels_backward_out made = lc__norm_channels_backward(g[0], in(0), fixed ? in(3) : y[1], fixed ? in(4) : y[2],
                                                                     in(1), in[5].f, fixed, need[0], need[1], need[2]);
    if (need[0]) dx[0] = made.dx;
    if (need[1]) dx[1] = made.dweight;
    if (need[2]) dx[2] = made.dbias;
}
/* The examples of vmap have channels of their own. */
static int channels_batch(const lc_batch_call *b, lc_tensor **out)
{
    const lc_tensor *x = b->call->in[0];
    lc_tensor       *in[5];
    int64_t          shape[LC_MAX_DIMS + 1] = { b->size }, channels[] = { b->size, 0 };
    if (x->ndim < 2) return LC_NO_RULE;
    channels[1] = x->shape[1];
    memcpy(shape + 1, x->shape, (size_t)x->ndim * sizeof *shape);
    in[0] = b->batched[0] ? b->in[0] : lc_expand(b->in[0], shape, x->ndim + 1);
    in[0] = lc_movedim(in[0], (int64_t[]){ 0 }, 1, (int64_t[]){ 1 }, 1);
    shape[1] = x->shape[0], shape[2] = b->size * x->shape[1];
    in[0] = lc_reshape(in[0], shape + 1, x->ndim);
    for (int k = 1; k < 5; k++) {
        in[k] = b->in[k];
        if (in[k] != LC_NONE) in[k] = lc_reshape(b->batched[k] ? in[k] : lc_expand(in[k], channels, 2), (int64_t[]){ -1 }, 1);
    }
    lc__norm_channels_out y = lc__norm_channels(in[0], in[1], in[2], in[3], in[4], b->call->args[5].f);
    if (!y.out) return -1;
    shape[0] = x->shape[0], shape[1] = b->size, shape[2] = x->shape[1];
    out[0] = lc_movedim(lc_reshape(y.out, shape, x->ndim + 1), (int64_t[]){ 1 }, 1, (int64_t[]){ 0 }, 1);
    lc_tensor *statistics[] = { y.mean, y.rstd, y.variance };
    for (int k = 0; k < 3; k++)
        if (!(out[k + 1] = statistics[k]->numel == channels[0] * channels[1]
                               ? lc_reshape(statistics[k], channels, 2)
                               : lc_expand(statistics[k], (int64_t[]){ b->size, statistics[k]->numel }, 2)))
            return -1;
    return out[0] ? 0 : -1;
}
LC_OP(_norm_channels, .batch = channels_batch,
      .sig = "_norm_channels(input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor | None, rstd: Tensor | "
             "None, eps: "
             "float) -> (out: Tensor, mean: Tensor, rstd: Tensor, variance: Tensor)",
      .doc = "Channels with mean 0 and variance 1, or by given statistics, scaled and shifted; and their statistics.",
      .hidden = true, .promote = LC_NO_PROMOTION, .shape = channels_shape, .run = channels_run, .grad = _norm_channels_grad,
      .saves = IN(0) | IN(1) | IN(3) | IN(4) | OUT(1) | OUT(2));

static int channels_backward_shape(const lc_record *call, lc_spec *out)
{
    const lc_value  *args = call->args;
    const lc_tensor *x = call->in[1];
    int64_t          none = 0, n = x->shape[1];
    if (args[7].b) spec_like(call, &out[0], x, (lc_dtype)x->dtype), output_order(&out[0], last_of(x));
    else if (spec_shape(call, &out[0], (lc_dtype)x->dtype, 1, &none) < 0) return -1;
    return spec_gradients(call, out, args[8].b ? n : 0, args[9].b ? n : 0);
}
static int channels_backward_run(const lc_record *call)
{
    lc_norm_args    a;
    holder          h = { 0 };
    const lc_value *args = call->args;
    lc_tensor      *x = call->in[1];
    lc_dtype        work = working_dtype((lc_dtype)x->dtype);
    channel_sizes(&a, x, args[5].f, args[6].b);
    a.grad = held(&h, in_dtype(call->in[0], (lc_dtype)x->dtype));
    if (a.grad) a.grad = held(&h, dense((lc_tensor *)a.grad, last_of(x)));
    a.in = held(&h, dense(x, last_of(x)));
    a.mean = held(&h, packed(call->in[2], work)), a.rstd = held(&h, packed(call->in[3], work));
    a.weight = parameter_of(&h, call->in[4], parameter_dtype(call, call->in[4], LC_NONE));
    a.out = wanted(call, 0, args[7].b), a.dweight = wanted(call, 1, args[8].b), a.dbias = wanted(call, 2, args[9].b);
    return finished(&h, call, &a);
}
/* With fixed statistics dx = w r g is linear. */
static void fixed_gradients(const second *s, lc_tensor *mean, lc_tensor *r, lc_tensor **dg, lc_tensor **dx, lc_tensor **dw)
{
    *dg = *dx = *dw = LC_NONE;
    if (s->v != LC_NONE) {
        lc_tensor *back = lc_mul(r, s->v);
        *dg = times(back, s->w);
        if (s->w != LC_NONE) *dw = lc_sum(lc_mul(s->g, back), s->sums, 2, false);
    }
    if (s->vw != LC_NONE) *dg = plus(*dg, lc_mul(s->vw, lc_mul(lc_sub(s->x, mean), r))), *dx = lc_mul(lc_mul(s->vw, r), s->g);
    if (s->vb != LC_NONE) *dg = plus(*dg, s->vb);
}
GRAD(_norm_channels_backward)
{
    lc_tensor *x = in(1), *dg, *dinput, *dw;
    int64_t    channels = x->shape[1], inner = 1;
    for (int d = 2; d < x->ndim; d++) inner *= x->shape[d];
    int64_t shape[] = { x->shape[0], channels, inner }, along[] = { channels, 1 };
    second  s = { .dims = { 0, 2 }, .sums = { 0, 2 }, .eps = in[5].f, .centred = true };
    s.g = viewed(in(0), shape, 3), s.x = viewed(x, shape, 3), s.w = viewed(in(4), along, 2);
    s.v = viewed(in[7].b ? g[0] : LC_NONE, shape, 3), s.vw = viewed(in[8].b ? g[1] : LC_NONE, along, 2);
    s.vb = viewed(in[9].b ? g[2] : LC_NONE, along, 2);
    if (in[6].b) fixed_gradients(&s, viewed(in(2), along, 2), viewed(in(3), along, 2), &dg, &dinput, &dw);
    else second_gradients(&s, &dg, &dinput, &dw);
    if (need[0] && dg != LC_NONE) dx[0] = shaped(lc_expand(dg, shape, 3), in(0));
    if (need[1]) dx[1] = shaped(dinput, x);
    if (in(4) != LC_NONE && need[4]) dx[4] = shaped(dw, in(4));
}
LC_OP(_norm_channels_backward,
      .sig = "_norm_channels_backward(grad: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, eps: "
             "float, fixed: "
             "bool, wants_input: bool, wants_weight: bool, wants_bias: bool) -> (dx: Tensor, dweight: Tensor, dbias: Tensor)",
      .doc = "The gradients of _norm_channels.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = channels_backward_shape,
      .run = channels_backward_run, .grad = _norm_channels_backward_grad, .saves = IN(0) | IN(1) | IN(2) | IN(3) | IN(4));

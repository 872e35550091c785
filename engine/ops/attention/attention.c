/* Scaled dot product attention. The ops with kernels are hidden. They take four dimensions, (batch, heads, length, width),
 * and a mask of the full size (an expanded mask costs nothing), and never form the matrix of all queries by all keys. The
 * public op brings inputs of any rank and broadcast batches into that form. Dropout, the double backward and the gradient of
 * a mask are formulas over plain ops.
 *
 * Query heads may share heads of keys and values: `grouped` reshapes such operands to (batch, key heads, group, length,
 * width), in which the formulas broadcast. */
#include "../rules.h"
#include <math.h>

static bool       given(const lc_value *v) { return v->tag == LC_IS_tensor && v->t != LC_NONE; }
static lc_tensor *transposed(lc_tensor *t) { return lc_transpose(t, -2, -1); }
static lc_tensor *row_sum(lc_tensor *t) { return lc_sum(t, &(int64_t){ -1 }, 1, true); }
static lc_tensor *times(lc_tensor *t, double factor) { return lc_mul(t, LC_NUMBER(factor)); }
static lc_tensor *in_type(lc_tensor *t, int dtype)
{
    return !t || t->dtype == dtype ? t : lc_to(t, (lc_dtype)dtype, false, false, LC_ABSENT);
}

/* ---- formulas ---- */

/* softmax(scale q k' + mask), zero for a query that may see no key. Both factors are scaled by sqrt(scale), as in PyTorch:
 * the rounding is the same for large logits. */
static lc_tensor *probabilities(lc_tensor *q, lc_tensor *k, lc_tensor *mask, bool causal, double scale)
{
    double     root = sqrt(fabs(scale));
    lc_tensor *s = lc_matmul(times(q, copysign(root, scale)), transposed(times(k, root))), *gone = LC_NUMBER(-INFINITY), *seen;
    if (!s) return NULL;
    if (causal) {
        lc_value boolean = LC_OF_DTYPE(LC_b8), here = { .tag = LC_IS_device, .dev = s->device };
        seen = lc_tril(lc_ones(&s->shape[s->ndim - 2], 2, boolean, here), 0);
        s = lc_where(seen, s, gone);
    }
    if (mask) s = mask->dtype == LC_b8 ? lc_where(mask, s, gone) : lc_add(s, in_type(mask, s->dtype));
    lc_tensor *p = lc_softmax(s, -1, LC_ABSENT);
    if (!mask || !p) return p;
    lc_tensor *blind = lc_all(lc_eq(s, gone), &(int64_t){ -1 }, 1, true);
    return lc_where(blind, LC_NUMBER(0), p);
}
/* (b, h, l, w) as (b, heads, h / heads, l, w), and back. */
static lc_tensor *grouped(lc_tensor *t, int64_t heads)
{
    int64_t group = heads ? t->shape[1] / heads : 1;
    return lc_reshape(t, (int64_t[]){ t->shape[0], heads, group, t->shape[2], t->shape[3] }, 5);
}
static lc_tensor *ungrouped(lc_tensor *t, const lc_tensor *like)
{
    if (!t) return NULL;
    if (t->shape[2] > 1 && like->shape[1] == t->shape[1]) t = lc_sum(t, &(int64_t){ 2 }, 1, true);
    return in_type(same_size_view(t, like->shape, 4), like->dtype);
}

/* ---- forward ---- */

/* Where PyTorch uses its fused kernel, the result has the memory layout of the query. */
static bool like_query(const lc_tensor *q, const lc_tensor *k, const lc_tensor *v)
{
    return q->shape[3] == v->shape[3] && q->numel && k->numel && q->stride[3] == 1 && k->stride[3] == 1 && v->stride[3] == 1;
}
/* float32 for float16 and bfloat16, because gradients are small differences of sums over the output; the halves themselves
 * where the backend's kernels are made for them. */
static lc_dtype result_dtype(const lc_record *call, const lc_tensor *q)
{
    return call->backend->can.half & LC_HALF_ATTENTION ? (lc_dtype)q->dtype : working_dtype((lc_dtype)q->dtype);
}
static int attention_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *q = call->in[0], *k = call->in[1], *v = call->in[2];
    lc_dtype         dtype = working_dtype((lc_dtype)q->dtype);
    int64_t          shape[] = { q->shape[0], q->shape[1], q->shape[2], v->shape[3] };
    if (spec_shape(call, &out[0], result_dtype(call, q), 4, shape) < 0 || spec_shape(call, &out[1], dtype, 3, shape) < 0)
        return -1;
    if (!call->args[6].b || !like_query(q, k, v)) return 0;
    out[0].order = LC_ORDER_STRIDES;
    lc_strides_like(q, out[0].stride);
    return 0;
}
static int attention_run(const lc_record *call)
{
    lc_record         tiles = *call;
    const lc_value   *args = call->args;
    lc_tensor        *mask = call->in[3] == LC_NONE ? NULL : call->in[3];
    lc_attention_args a = { .q = call->in[0],
                            .k = call->in[1],
                            .v = call->in[2],
                            .mask = mask,
                            .lse = call->out[1],
                            .causal = args[4].b,
                            .scale = args[5].f };
    tiles.dtype = working_dtype((lc_dtype)call->in[0]->dtype);
    a.out = destination(call->out[0], result_dtype(call, a.q), call->in, call->n_in);
    return a.out ? deliver(call->out[0], a.out, run_kernel_with(&tiles, &a)) : -1;
}
GRAD(_attention)
{
    lc_tensor *q = in(0), *k = in(1), *v = in(2), *mask = given(&in[3]) ? in(3) : LC_NONE;
    if (g[0] == LC_NONE) return;
    if (need[0] || need[1] || need[2]) {
        lc__attention_backward_out d = lc__attention_backward(g[0], q, k, v, mask, y[0], y[1], in[4].b, in[5].f, in[6].b);
        dx[0] = d.dq, dx[1] = d.dk, dx[2] = d.dv;
    }
    if (!need[3]) return;
    int        work = working_dtype((lc_dtype)q->dtype);
    int64_t    heads = k->shape[1];
    lc_tensor *p = probabilities(grouped(in_type(q, work), heads), lc_unsqueeze(in_type(k, work), 2), grouped(mask, heads),
                                 in[4].b, in[5].f);
    lc_tensor *dp = lc_matmul(grouped(in_type(g[0], work), heads), transposed(lc_unsqueeze(in_type(v, work), 2)));
    lc_tensor *ds = p && dp ? lc__softmax_backward_data(dp, p, -1, p->dtype) : NULL;
    dx[3] = ds ? ungrouped(ds, mask) : NULL;
}
#define IS_ATTENTION .hidden = true, .promote = LC_NO_PROMOTION
/* The examples of vmap are samples of one call; a mask per sample or example goes along. */
static int attention_batch(const lc_batch_call *b, lc_tensor **out)
{
    const lc_value *args = b->call->args;
    lc_tensor      *in[4] = { NULL, NULL, NULL, b->in[3] };
    int64_t         n, shape[5] = { b->size };
    for (int k = 0; k < 4; k++)
        if (k < 3 ? b->call->in[k]->ndim != 4 : b->call->in[k] != LC_NONE && b->call->in[k]->ndim > 4) return LC_NO_RULE;
    n = b->call->in[0]->shape[0];
    for (int k = 0; k < 3; k++) {
        memcpy(shape + 1, b->call->in[k]->shape, 4 * sizeof *shape);
        in[k] = b->batched[k] ? b->in[k] : lc_expand(b->in[k], shape, 5);
        shape[1] *= b->size;
        in[k] = lc_reshape(in[k], shape + 1, 4);
    }
    if (in[3] != LC_NONE && (b->batched[3] || in[3]->ndim == 4)) {
        int ndim = b->call->in[3]->ndim;
        for (int d = 0; d < 4; d++) shape[d + 1] = d < 4 - ndim ? 1 : b->call->in[3]->shape[d - (4 - ndim)];
        shape[0] = b->batched[3] ? b->size : 1;
        in[3] = lc_reshape(in[3], shape, 5);
        shape[0] = b->size, shape[1] = n;
        in[3] = lc_expand(in[3], shape, 5);
        shape[1] *= b->size;
        in[3] = lc_reshape(in[3], shape + 1, 4);
    }
    lc__attention_out y = lc__attention(in[0], in[1], in[2], in[3], args[4].b, args[5].f, args[6].b);
    if (!y.out) return -1;
    memcpy(shape + 2, y.out->shape + 1, 3 * sizeof *shape), shape[0] = b->size, shape[1] = n;
    out[0] = lc_reshape(y.out, shape, 5), out[1] = lc_reshape(y.logsumexp, shape, 4);
    return out[0] && out[1] ? 0 : -1;
}
LC_OP(_attention, .batch = attention_batch,
      .sig = "_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, scale: float, "
             "keeps_layout: bool) -> (out: Tensor, logsumexp: Tensor)",
      .doc = "softmax(scale query key' + mask) value, in tiles; and the logsumexp of each row.", IS_ATTENTION,
      .shape = attention_shape, .run = attention_run, .grad = _attention_grad,
      .saves = IN(0) | IN(1) | IN(2) | IN(3) | OUT(0) | OUT(1));

/* ---- backward ---- */

static int backward_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *q = call->in[1], *k = call->in[2], *v = call->in[3];
    bool             laid_out = call->args[9].b && like_query(q, k, v);
    bool             turned_back = laid_out && !(call->backend->can.half & LC_HALF_ATTENTION);
    for (int i = 0; i < 3; i++) {
        const lc_tensor *t = call->in[1 + i];
        const int64_t   *n = t->shape;
        spec_like(call, &out[i], t, (lc_dtype)t->dtype);
        if (!laid_out) continue;
        out[i].order = LC_ORDER_STRIDES;
        if (turned_back) { /* PyTorch's layout on the CPU: (batch, length, heads, width) in memory; elsewhere the operand's */
            out[i].stride[0] = n[1] * n[2] * n[3], out[i].stride[1] = n[3], out[i].stride[2] = n[1] * n[3],
            out[i].stride[3] = 1;
        } else lc_strides_like(t, out[i].stride);
    }
    return 0;
}
static int backward_run(const lc_record *call)
{
    lc_record         tiles = *call;
    const lc_value   *args = call->args;
    lc_tensor        *g = call->in[0];
    lc_attention_args a = { .q = call->in[1],
                            .k = call->in[2],
                            .v = call->in[3],
                            .mask = call->in[4] == LC_NONE ? NULL : call->in[4],
                            .out = call->in[5],
                            .lse = call->in[6],
                            .causal = args[7].b,
                            .scale = args[8].f,
                            .ordered = lc_modes & LC_DETERMINISTIC };
    lc_tensor        *made[3] = { 0 };
    bool              shared = a.q->shape[1] != a.k->shape[1]; /* sums over heads */
    int               rc = 0;
    tiles.dtype = working_dtype((lc_dtype)a.q->dtype);
    a.grad = g = g->stride[3] == 1 ? lc_retain(g) : packed(g, (lc_dtype)g->dtype);
    for (int i = 0; i < 3 && !rc; i++)
        if (!(made[i] = destination(call->out[i], shared ? tiles.dtype : result_dtype(call, a.q), call->in, call->n_in)))
            rc = -1;
    a.dq = made[0], a.dk = made[1], a.dv = made[2];
    if (!g) rc = -1;
    if (!rc && !a.k->shape[2]) rc = fill_tensor(a.dq, LC_NUMBER(0)); /* no tile of keys reaches it */
    if (!rc) rc = run_kernel_with(&tiles, &a);
    lc_release(g);
    for (int i = 0; i < 3; i++) rc = made[i] ? deliver(call->out[i], made[i], rc) : rc;
    return rc;
}
/* With P = softmax(S), S = scale Q K' + mask, dP = G V', dS = P (dP - sum(P dP)): dQ = scale dS K, dK = scale dS' Q, dV = P'
 * G. For gradients a, b, c of those three: M of dS, N of P by dV, X of dP, Y of P, Z of S. out and logsumexp are functions
 * of the other inputs, so they get no gradient of their own. */
GRAD(_attention_backward)
{
    int        work = working_dtype((lc_dtype)in(1)->dtype);
    int64_t    heads = in(2)->shape[1];
    double     scale = in[8].f;
    lc_tensor *mask = given(&in[4]) ? grouped(in[4].t, heads) : NULL, *op[3], *cot[3];
    for (int i = 0; i < 3; i++) {
        op[i] = in_type(in[1 + i].t, work);
        cot[i] = g[i] == LC_NONE ? zeros_like(op[i]) : in_type(g[i], work);
        op[i] = i ? lc_unsqueeze(op[i], 2) : grouped(op[i], heads),
        cot[i] = i ? lc_unsqueeze(cot[i], 2) : grouped(cot[i], heads);
    }
    lc_tensor *q = op[0], *k = op[1], *v = op[2], *a = cot[0], *b = cot[1], *c = cot[2],
              *G = grouped(in_type(in(0), work), heads);
    lc_tensor *P = probabilities(q, k, mask, in[7].b, scale), *dP = lc_matmul(G, transposed(v));
    if (!P || !dP) return;
    lc_tensor *dS = lc__softmax_backward_data(dP, P, -1, (lc_dtype)work);
    lc_tensor *M = times(lc_add(lc_matmul(a, transposed(k)), lc_matmul(q, transposed(b))), scale), *MP = row_sum(lc_mul(M, P));
    lc_tensor *X = lc_mul(P, lc_sub(M, MP));
    if (need[0]) dx[0] = ungrouped(lc_add(lc_matmul(X, v), lc_matmul(P, c)), in(0));
    if (need[3]) dx[3] = ungrouped(lc_matmul(transposed(X), G), in[3].t);
    if (!need[1] && !need[2] && !need[4]) return;
    lc_tensor *N = lc_matmul(G, transposed(c)), *mean = row_sum(lc_mul(P, dP));
    lc_tensor *Y = lc_sub(lc_add(N, lc_mul(M, lc_sub(dP, mean))), lc_mul(dP, MP)),
              *Z = lc_mul(P, lc_sub(Y, row_sum(lc_mul(Y, P))));
    if (need[1]) dx[1] = ungrouped(times(lc_add(lc_matmul(Z, k), lc_matmul(dS, b)), scale), in(1));
    if (need[2]) dx[2] = ungrouped(times(lc_add(lc_matmul(transposed(Z), q), lc_matmul(transposed(dS), a)), scale), in(2));
    if (need[4]) dx[4] = ungrouped(Z, in[4].t);
}
LC_OP(_attention_backward,
      .sig =
          "_attention_backward(grad: Tensor, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, result: Tensor, "
          "logsumexp: Tensor, is_causal: bool, scale: float, keeps_layout: bool) -> (dq: Tensor, dk: Tensor, dv: Tensor)",
      .doc = "The gradients of _attention; recomputes its tiles.", IS_ATTENTION, .shape = backward_shape, .run = backward_run,
      .grad = _attention_backward_grad, .saves = IN(0) | IN(1) | IN(2) | IN(3) | IN(4));

/* ---- scaled_dot_product_attention ---- */

static int operands_agree(lc_tensor *const *t, const lc_value *in)
{
    const lc_tensor *q = t[0], *k = t[1], *v = t[2];
    if (q->dtype != k->dtype || q->dtype != v->dtype)
        return lc_fail_int(LC_DtypeMismatch, "Expected query, key, and value to have the same dtype, but got %s, %s and %s",
                           LC_SHAPE(q), LC_SHAPE(k), LC_SHAPE(v));
    if (lc_is_complex(q->dtype))
        return lc_fail_int(LC_NotImplementedError, "scaled_dot_product_attention is not implemented for %s", LC_SHAPE(q));
    if (!lc_is_floating(q->dtype))
        return lc_fail_int(LC_DtypeMismatch, "scaled_dot_product_attention: expected floating point operands, got %s",
                           LC_SHAPE(q));
    if (q->ndim < 2 || k->ndim < 2 || v->ndim < 2)
        return lc_fail_int(LC_ShapeMismatch,
                           "Expected query, key, and value to all be at least 2 dimensional, but got %s, %s and %s",
                           LC_SHAPE(q), LC_SHAPE(k), LC_SHAPE(v));
    if (!given(&in[3])) return 0;
    if (in[3].t->dtype != LC_b8 && in[3].t->dtype != LC_f32 && in[3].t->dtype != q->dtype)
        return lc_fail_int(LC_DtypeMismatch,
                           "Expected attn_mask dtype to be bool or float or to match query dtype, but got %s and query %s",
                           LC_SHAPE(in[3].t), LC_SHAPE(q));
    return 0;
}
static int operands_fit(lc_tensor *const *t)
{
    const lc_tensor *q = t[0], *k = t[1], *v = t[2];
    if (q->shape[q->ndim - 1] != k->shape[k->ndim - 1] || k->shape[k->ndim - 2] != v->shape[v->ndim - 2])
        return lc_fail_int(
            LC_ShapeMismatch,
            "scaled_dot_product_attention: widths of query and key, and lengths of key and value, must agree: %s, %s, %s",
            LC_SHAPE(q), LC_SHAPE(k), LC_SHAPE(v));
    return 0;
}
/* enable_gqa: one head of key and value serves several heads of the query. The kernel does that itself if key and value have
 * equally many heads. */
static int share_heads(lc_tensor **t, bool *shared)
{
    int64_t heads[3];
    for (int i = 0; i < 3; i++) {
        if (t[i]->ndim < 3)
            return lc_fail_int(LC_ShapeMismatch, "enable_gqa: expected at least 3 dimensions, got %s", LC_SHAPE(t[i]));
        heads[i] = t[i]->shape[t[i]->ndim - 3];
        if (!heads[i] || heads[0] % heads[i])
            return lc_fail_int(LC_ShapeMismatch,
                               "Number of heads in key and value must divide the number of heads in query: %s, %s, %s",
                               LC_SHAPE(t[0]), LC_SHAPE(t[1]), LC_SHAPE(t[2]));
    }
    *shared = heads[1] == heads[2] && heads[0] != heads[1];
    for (int i = 1; i < 3 && !*shared; i++)
        if (heads[i] != heads[0] && !(t[i] = lc_repeat_interleave(t[i], heads[0] / heads[i], LC_I(-3), LC_ABSENT))) return -1;
    return 0;
}
/* Batch dimensions, all but the last two (three if heads are shared, which then differ), broadcast to one shape of n. */
static int common_batch(lc_tensor *const *t, int kept, int64_t *shape, int *n)
{
    *n = 0;
    for (int i = 0; i < 3; i++) *n = t[i]->ndim - kept > *n ? t[i]->ndim - kept : *n;
    for (int d = 0; d < *n; d++) shape[d] = 1;
    for (int i = 0; i < 3; i++)
        for (int d = t[i]->ndim - kept - 1, to = *n - 1; d >= 0; d--, to--) {
            int64_t size = t[i]->shape[d];
            if (size != shape[to] && size != 1 && shape[to] != 1)
                return lc_fail_int(
                    LC_ShapeMismatch,
                    "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d",
                    (long long)shape[to], (long long)size, to);
            if (size != 1) shape[to] = size;
        }
    return 0;
}
/* t with these batch dimensions before its last `kept`, as (batch, heads, ., .). scoped */
static lc_tensor *as_heads(lc_tensor *t, const int64_t *batch, int n, int kept)
{
    int64_t shape[LC_MAX_DIMS + 3];
    bool    fits = t->ndim == n + kept;
    memcpy(shape, batch, (size_t)n * sizeof *shape);
    for (int d = 0; d < kept; d++) shape[n + d] = t->shape[t->ndim - kept + d];
    for (int d = 0; fits && d < n; d++) fits = t->shape[d] == batch[d];
    if (!fits) t = lc_expand(t, shape, n + kept);
    while (t && t->ndim < 4) t = lc_unsqueeze(t, 0);
    return t && t->ndim > 4 ? lc_flatten(t, 0, t->ndim - 4) : t;
}
/* With dropout, or if the mask requires grad (its gradient is a whole matrix anyway): PyTorch's formula. */
static lc_tensor *on_matrices(lc_tensor **t, const lc_value *in, double scale)
{
    int        dtype = t[0]->dtype, work = working_dtype((lc_dtype)dtype);
    lc_tensor *mask = given(&in[3]) ? in[3].t : NULL;
    if (mask && in[5].b)
        return lc_fail(LC_LucidError, "scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
    lc_tensor *p = probabilities(in_type(t[0], work), in_type(t[1], work), mask, in[5].b, scale);
    return in_type(lc_matmul(in[4].f > 0 ? lc_dropout(p, in[4].f, true) : p, in_type(t[2], work)), dtype);
}
/* Without queries, keys or values: zeros, whatever the mask's shape. */
static bool       is_empty(lc_tensor *const *t) { return !t[2]->numel || !t[0]->shape[t[0]->ndim - 2]; }
static lc_tensor *zeros_of(lc_tensor *const *t)
{
    int64_t    shape[LC_MAX_DIMS];
    lc_tensor *nothing = LC_NUMBER(0);
    memcpy(shape, t[0]->shape, (size_t)t[0]->ndim * sizeof *shape);
    shape[t[0]->ndim - 1] = t[2]->shape[t[2]->ndim - 1];
    for (int i = 0; i < 3; i++) nothing = lc_add(lc_sum(lc_narrow(t[i], -1, 0, 0), NULL, 0, false), nothing);
    return lc_contiguous(lc_expand(nothing, shape, t[0]->ndim), LC_CONTIGUOUS_FORMAT);
}
/* Whether PyTorch uses its fused kernel: four dimensions, the same batch and heads. */
static bool is_regular(lc_tensor *const *t)
{
    bool regular = t[0]->ndim == 4 && t[1]->ndim == 4 && t[2]->ndim == 4;
    for (int d = 0; regular && d < 2; d++) regular = t[0]->shape[d] == t[1]->shape[d] && t[0]->shape[d] == t[2]->shape[d];
    return regular;
}
static int scaled_dot_product_attention_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *t[] = { in(0), in(1), in(2) }, *mask = LC_NONE;
    int64_t    shape[LC_MAX_DIMS + 3];
    bool       shared = false;
    int        n;
    if (operands_agree(t, in) < 0) return -1;
    if (is_empty(t)) return (out[0] = zeros_of(t)) ? 0 : -1;
    if (operands_fit(t) < 0 || (in[7].b && share_heads(t, &shared) < 0)) return -1;
    int64_t width = t[0]->shape[t[0]->ndim - 1];
    double  scale = in[6].tag == LC_IS_float ? in[6].f : 1 / sqrt((double)width);
    bool    wanted = given(&in[3]) && (in[3].t->node || in[3].t->flags & LC_REQUIRES_GRAD); /* the mask's gradient */
    bool    regular = is_regular(t);
    if (!(in[4].f >= 0) && regular && !wanted && like_query(t[0], t[1], t[2])) /* its formula takes such for none */
        return lc_fail_int(LC_LucidError, "dropout probability has to be between 0 and 1, but got %g", in[4].f);
    if (!(in[4].f > 0) && regular && given(&in[3]) && in[3].t->ndim < 2)
        return lc_fail_int(LC_IndexError, "scaled_dot_product_attention: attn_mask %s has no dimensions for queries and keys",
                           LC_SHAPE(in[3].t));
    if (given(&in[3]) && in[5].b && t[0]->ndim != 4)
        return lc_fail_int(LC_LucidError,
                           "scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
    if (in[4].f > 0 || wanted) {
        for (int i = 1; i < 3 && shared; i++) {
            int64_t copies = t[0]->shape[t[0]->ndim - 3] / t[i]->shape[t[i]->ndim - 3];
            if (!(t[i] = lc_repeat_interleave(t[i], copies, LC_I(-3), LC_ABSENT))) return -1;
        }
        return (out[0] = on_matrices(t, in, scale)) ? 0 : -1;
    }
    int  kept = shared ? 3 : 2;
    bool keeps = t[0]->ndim == 4 && t[1]->ndim == 4 && t[2]->ndim == 4;
    if (common_batch(t, kept, shape, &n) < 0) return -1;
    for (int i = 0; i < 3; i++)
        for (int d = 0; keeps && d < n; d++) keeps = t[i]->shape[d] == shape[d];
    int64_t    heads = shared ? t[0]->shape[t[0]->ndim - 3] : 0;
    int        all = n + kept - 2;
    lc_tensor *q = as_heads(t[0], shape, n, kept), *k = as_heads(t[1], shape, n, kept), *v = as_heads(t[2], shape, n, kept);
    if (!q || !k || !v) return -1;
    if (shared) shape[n] = heads; /* from here on: the batch of the query, and of the result */
    if (given(&in[3])) {
        shape[all] = q->shape[2], shape[all + 1] = k->shape[2];
        mask = lc_expand(in[3].t, shape, all + 2);
        while (mask && mask->ndim < 4) mask = lc_unsqueeze(mask, 0);
        if (mask && mask->ndim > 4) mask = lc_flatten(mask, 0, mask->ndim - 4);
    }
    lc_tensor *y = in_type(lc__attention(q, k, v, mask, in[5].b, scale, keeps).out, q->dtype);
    shape[all] = q->shape[2], shape[all + 1] = v->shape[3];
    return (out[0] = y && all != 2 ? same_size_view(y, shape, all + 2) : y) ? 0 : -1;
}
LC_OP(
    scaled_dot_product_attention,
    .sig =
        "scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, "
        "dropout_p: float = 0.0, is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False) -> Tensor",
    .doc =
        "softmax(scale query key' + attn_mask) value over the last two dimensions. A bool mask is True where a query may look; "
        "is_causal lets it look at no later key; enable_gqa lets query heads share keys and values. scale defaults to one over "
        "the square root of the width.",
    .ns = "nn.functional", .random = true, .amp = LC_AMP_LOWER, .call = scaled_dot_product_attention_call);

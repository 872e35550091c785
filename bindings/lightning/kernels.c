/* The engine's kernels on bare float32 memory: tensor headers on the stack, no storage, no call record. Where the set-up of a kernel
 * costs more than the work, there is a plain loop beside it; choose.c decides. The kernels release the GIL themselves where a call
 * takes more than some 20 microseconds. */
#include "lightning.h"
#include "backend/cpu/attention/attention.h"
#include <math.h>

/* A contiguous tensor on memory of others, for one call. */
static lc_tensor *over(lc_tensor *t, const float *data, int ndim, const int64_t *shape)
{
    memset(t, 0, offsetof(lc_tensor, dims));
    t->dtype = LC_f32, t->ndim = (uint8_t)ndim, t->is_contiguous = true, t->data = (char *)data;
    t->shape = t->dims, t->stride = t->dims + LC_INLINE_DIMS, t->numel = 1;
    for (int d = ndim - 1; d >= 0; d--) t->shape[d] = shape[d], t->stride[d] = t->numel, t->numel *= shape[d];
    return t;
}
static int outcome(int rc, bool was_serial)
{
    lc_serial = was_serial;
    return rc < 0 ? py_raise_int() : 0;
}

/* ---- products ---- */
static void direct_product(const float *restrict a, const float *restrict b, float *restrict out, int64_t m, int64_t k,
                           int64_t n)
{
    for (int64_t i = 0; i < m; i++, a += k, out += n) {
        for (int64_t j = 0; j < n; j++) out[j] = a[0] * b[j];
        for (int64_t p = 1; p < k; p++)
            for (int64_t j = 0; j < n; j++) out[j] += a[p] * b[p * n + j];
    }
}
int lightning_product(lightning_way way, const float *a, const float *b, float *out, int64_t m, int64_t k, int64_t n)
{
    if (way == LIGHTNING_DIRECT) return direct_product(a, b, out, m, k, n), 0;
    lc_tensor      ta, tb, to;
    lc_matmul_args args = { .out = over(&to, out, 2, (int64_t[]){ m, n }),
                            .a = over(&ta, a, 2, (int64_t[]){ m, k }),
                            .b = over(&tb, b, 2, (int64_t[]){ k, n }),
                            .batch = 1,
                            .m = m,
                            .n = n,
                            .k = k,
                            .out_row = n,
                            .out_col = 1,
                            .a_row = k,
                            .a_col = 1,
                            .b_row = n,
                            .b_col = 1 };
    bool           was_serial = lc_serial;
    lc_serial |= way == LIGHTNING_SERIAL;
    return outcome(lc_backends[LC_CPU]->run(LC_OP_mm, LC_f32, &args), was_serial);
}

/* ---- attention ---- */
int lightning_attend(lightning_way way, const float *q, const float *k, const float *v, float *out, int64_t seq, int64_t dim,
                     bool causal)
{
    enum { FEW = 64 };
    if (way == LIGHTNING_DIRECT && lc_attention_few(q, k, v, out, seq, dim, causal)) return 0;
    const int64_t shape[] = { 1, 1, seq, dim };
    lc_tensor     tq, tk, tv, to, tl;
    float         few[FEW], *lse = seq <= FEW ? few : lc_alloc((size_t)seq * sizeof *lse);
    if (!lse) return py_raise_int();
    lc_attention_args args = { .q = over(&tq, q, 4, shape),
                               .k = over(&tk, k, 4, shape),
                               .v = over(&tv, v, 4, shape),
                               .out = over(&to, out, 4, shape),
                               .lse = over(&tl, lse, 3, shape),
                               .scale = 1 / sqrt((double)dim),
                               .causal = causal };
    bool              was_serial = lc_serial;
    lc_serial |= way == LIGHTNING_SERIAL;
    int rc = lc_backends[LC_CPU]->run(LC_OP__attention, LC_f32, &args);
    if (lse != few) lc_free(lse, (size_t)seq * sizeof *lse);
    return outcome(rc, was_serial);
}

/* ---- convolution ---- */
int lightning_conv(const float *x, const float *w, const float *bias, float *out, const lightning_conv_shape *s)
{
    lc_tensor    tx, tw, tb, to;
    lc_conv_args args = { .image = over(&tx, x, 4, (int64_t[]){ s->n, s->c, s->h, s->w }),
                          .weight = over(&tw, w, 4, (int64_t[]){ s->o, s->c, s->kh, s->kw }),
                          .result = over(&to, out, 4, (int64_t[]){ s->n, s->o, s->oh, s->ow }),
                          .bias = bias ? over(&tb, bias, 1, (int64_t[]){ s->o }) : NULL,
                          .groups = 1,
                          .stride = { s->stride_h, s->stride_w, 1 },
                          .padding = { s->pad_h, s->pad_w, 0 },
                          .dilation = { 1, 1, 1 },
                          .dims = 2 };
    if (lc_backends[LC_CPU]->run(LC_OP__conv, LC_f32, &args) < 0) return py_raise_int();
    for (int64_t i = 0, n = s->relu ? to.numel : 0; i < n; i++) out[i] = out[i] < 0 ? 0 : out[i]; /* NaN stays */
    return 0;
}

/* ---- element by element ---- */
int lightning_combine(lightning_pointwise what, const float *a, const float *b, float *out, int64_t n)
{
    enum { FEW = 256 };
    static const lc_op_id ops[] = { [LIGHTNING_ADD] = LC_OP_add, [LIGHTNING_SUB] = LC_OP_sub, [LIGHTNING_DIV] = LC_OP_div };
    if (n > FEW) {
        lc_tensor ta, tb, to, *in[] = { over(&ta, a, 1, &n), over(&tb, b, 1, &n) };
        return outcome(lc_backends[LC_CPU]->elementwise(ops[what], LC_f32, over(&to, out, 1, &n), in, 2), lc_serial);
    }
    if (what == LIGHTNING_ADD)
        for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
    else if (what == LIGHTNING_SUB)
        for (int64_t i = 0; i < n; i++) out[i] = a[i] - b[i];
    else
        for (int64_t i = 0; i < n; i++) out[i] = a[i] / b[i];
    return 0;
}

/* The engine's kernels on bare float32 memory: tensor headers on the stack, no storage, no call record. Where the set-up of a kernel
 * costs more than the work, there is a plain loop beside it; choose.c decides. The kernels release the GIL themselves where a call
 * takes more than some 20 microseconds. */
#include "lightning.h"
#include "backend/cpu/attention/attention.h"
#include <math.h>

/* A contiguous tensor on memory of others, for one call. */
static inline lc_tensor *over(lc_tensor *t, lc_device where, const float *data, int ndim, const int64_t *shape)
{
    memset(t, 0, offsetof(lc_tensor, dims));
    t->refs = 1; /* a kernel may hold it for a while; it is not the one that lets go last */
    t->dtype = LC_f32, t->ndim = (uint8_t)ndim, t->is_contiguous = true, t->data = (char *)data, t->device = where;
    t->shape = t->dims, t->stride = t->dims + LC_INLINE_DIMS, t->numel = 1;
    for (int d = ndim - 1; d >= 0; d--) t->shape[d] = shape[d], t->stride[d] = t->numel, t->numel *= shape[d];
    return t;
}
static int outcome(int rc, bool was_serial)
{
    lc_serial = was_serial;
    return rc < 0 ? py_raise_int() : 0;
}

static const lc_device here = { .kind = LC_CPU };

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
static inline int product(lc_device where, const float *a, const float *b, float *out, int64_t m, int64_t k, int64_t n)
{
    lc_tensor      ta, tb, to;
    lc_matmul_args args = { .out = over(&to, where, out, 2, (int64_t[]){ m, n }),
                            .a = over(&ta, where, a, 2, (int64_t[]){ m, k }),
                            .b = over(&tb, where, b, 2, (int64_t[]){ k, n }),
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
    return lc_backends[where.kind]->run(LC_OP_mm, LC_f32, &args);
}
int lightning_product(lightning_way way, const float *a, const float *b, float *out, int64_t m, int64_t k, int64_t n)
{
    if (way == LIGHTNING_DIRECT) return direct_product(a, b, out, m, k, n), 0;
    bool was_serial = lc_serial;
    lc_serial |= way == LIGHTNING_SERIAL;
    return outcome(product(here, a, b, out, m, k, n), was_serial);
}

/* ---- attention ---- */
static inline int attend(lc_device where, const float *q, const float *k, const float *v, float *out, float *lse, int64_t seq,
                         int64_t dim, bool causal)
{
    const int64_t     shape[] = { 1, 1, seq, dim };
    lc_tensor         tq, tk, tv, to, tl;
    lc_attention_args args = { .q = over(&tq, where, q, 4, shape),
                               .k = over(&tk, where, k, 4, shape),
                               .v = over(&tv, where, v, 4, shape),
                               .out = over(&to, where, out, 4, shape),
                               .lse = over(&tl, where, lse, 3, shape),
                               .scale = 1 / sqrt((double)dim),
                               .causal = causal };
    return lc_backends[where.kind]->run(LC_OP__attention, LC_f32, &args);
}
int lightning_attend(lightning_way way, const float *q, const float *k, const float *v, float *out, int64_t seq, int64_t dim,
                     bool causal)
{
    enum { FEW = 64 };
    if (way == LIGHTNING_DIRECT && lc_attention_few(q, k, v, out, seq, dim, causal)) return 0;
    float few[FEW], *lse = seq <= FEW ? few : lc_alloc((size_t)seq * sizeof *lse);
    if (!lse) return py_raise_int();
    bool was_serial = lc_serial;
    lc_serial |= way == LIGHTNING_SERIAL;
    int rc = attend(here, q, k, v, out, lse, seq, dim, causal);
    if (lse != few) lc_free(lse, (size_t)seq * sizeof *lse);
    return outcome(rc, was_serial);
}

/* ---- convolution ---- */
static inline int convolve(lc_device where, const float *x, const float *w, const float *bias, lc_tensor *out,
                           const lightning_conv_shape *s, lc_conv_kept *kept)
{
    lc_tensor    tx, tw, tb;
    lc_conv_args args = { .image = over(&tx, where, x, 4, (int64_t[]){ s->n, s->c, s->h, s->w }),
                          .weight = over(&tw, where, w, 4, (int64_t[]){ s->o, s->c, s->kh, s->kw }),
                          .result = out,
                          .bias = bias ? over(&tb, where, bias, 1, (int64_t[]){ s->o }) : NULL,
                          .groups = 1,
                          .stride = { s->stride_h, s->stride_w, 1 },
                          .padding = { s->pad_h, s->pad_w, 0 },
                          .dilation = { 1, 1, 1 },
                          .dims = 2,
                          .kept = kept };
    return lc_backends[where.kind]->run(LC_OP__conv, LC_f32, &args);
}
static inline lc_tensor *image_over(lc_tensor *t, lc_device where, float *out, const lightning_conv_shape *s)
{
    return over(t, where, out, 4, (int64_t[]){ s->n, s->o, s->oh, s->ow });
}
int lightning_conv(const float *x, const float *w, const float *bias, float *out, const lightning_conv_shape *s,
                   lc_conv_kept *kept)
{
    lc_tensor to;
    if (convolve(here, x, w, bias, image_over(&to, here, out, s), s, kept) < 0) return py_raise_int();
    for (int64_t i = 0, n = s->relu ? to.numel : 0; i < n; i++) out[i] = out[i] < 0 ? 0 : out[i]; /* NaN stays */
    return 0;
}

/* ---- element by element ---- */
static inline int combine(lc_device where, lightning_pointwise what, const float *a, const float *b, float *out, int64_t n)
{
    static const lc_op_id ops[] = { [LIGHTNING_ADD] = LC_OP_add, [LIGHTNING_SUB] = LC_OP_sub, [LIGHTNING_DIV] = LC_OP_div };
    lc_tensor             ta, tb, to, *in[] = { over(&ta, where, a, 1, &n), over(&tb, where, b, 1, &n) };
    return lc_backends[where.kind]->elementwise(ops[what], LC_f32, over(&to, where, out, 1, &n), in, 2);
}
int lightning_combine(lightning_pointwise what, const float *a, const float *b, float *out, int64_t n)
{
    enum { FEW = 256 };
    if (n > FEW) return outcome(combine(here, what, a, b, out, n), lc_serial);
    if (what == LIGHTNING_ADD)
        for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
    else if (what == LIGHTNING_SUB)
        for (int64_t i = 0; i < n; i++) out[i] = a[i] - b[i];
    else
        for (int64_t i = 0; i < n; i++) out[i] = a[i] / b[i];
    return 0;
}

/* ---- on a device: memory is the device's, results are there when it has done what was asked before ---- */
int lightning_launch(lc_device where, const lightning_task *t, lightning_op op, float *const *in, float *out, float *beside)
{
    lc_tensor to;
    switch (op) {
    case LIGHTNING_OP_MATMUL:
        return product(where, in[0], in[1], out, t->dims[0], t->dims[1], t->dims[2]);
    case LIGHTNING_OP_ATTENTION:
        return attend(where, in[0], in[1], in[2], out, beside, t->dims[0], t->dims[1], t->causal);
    case LIGHTNING_OP_CONV:
        if (convolve(where, in[0], in[1], in[2], image_over(&to, where, out, &t->conv), &t->conv, NULL) < 0) return -1;
        return t->conv.relu ? lc_backends[where.kind]->elementwise(LC_OP_relu, LC_f32, &to, (lc_tensor *[]){ &to }, 1) : 0;
    default:
        return combine(where,
                       op == LIGHTNING_OP_ADD   ? LIGHTNING_ADD
                       : op == LIGHTNING_OP_SUB ? LIGHTNING_SUB
                                                : LIGHTNING_DIV,
                       in[0], in[1], out, t->out_size);
    }
}
/* The first `size` numbers again and again until there are `all`. */
int lightning_repeat(lc_device where, const float *from, int64_t size, float *to, int64_t all)
{
    int64_t   turns = all / size, rest = all % size;
    lc_tensor source, target;
    over(&source, where, from, 2, (int64_t[]){ turns, size }), source.stride[0] = 0, source.is_contiguous = false;
    if (turns && lc_backends[where.kind]->copy(over(&target, where, to, 2, (int64_t[]){ turns, size }), &source) < 0) return -1;
    if (!rest) return 0;
    return lc_backends[where.kind]->copy(over(&target, where, to + turns * size, 1, &rest),
                                         over(&source, where, from, 1, &rest));
}
/* Between contiguous numbers of the host and of a device. */
int lightning_move(lc_device to, float *target, lc_device from, const float *source, int64_t n)
{
    lc_tensor a, b;
    return lc_transfer(over(&a, to, target, 1, &n), over(&b, from, source, 1, &n));
}

/* Attention: of halves by cuDNN where it takes it (fused_attention.c); forward by tiles whose scores stay in the chip (flash.c);
 * else, and backward, products and a softmax in between, heads in pieces, so that their scores take at most half a gigabyte. */
#include "../driver.h"
#include <string.h>

typedef struct {
    void   *scores, *slopes, *p, *ds, *mask, *grad, *out, *lse;
    int64_t heads, l, s, ev, first, h, mask_stride[4], grad_stride[4], out_stride[4];
    double  scale;
    int     causal;
} attention_args; /* as in kernels/attention.cuh */
CUDA_BODY(attention);
static const int64_t MOST_BYTES = (int64_t)1 << 29;

typedef struct {
    const lc_attention_args *a;
    lc_dtype                 work, low; /* low: of the factors of products, where all have it */
    int                      device;
    int64_t                  h, group, l, s, e, ev;
} job;

static lc_dtype factor_type(const lc_attention_args *a, lc_dtype work)
{
    lc_dtype t = (lc_dtype)a->q->dtype;
    bool     same = a->k->dtype == t && a->v->dtype == t && (!a->grad || a->grad->dtype == t);
    return same && (t == LC_f16 || t == LC_bf16) ? t : work;
}
static cuda_matrix matrix(const lc_tensor *t, int64_t head, int64_t h, int64_t group, bool flipped)
{
    int64_t b = head / h, i = head % h / group;
    char   *data = t->data + (b * t->stride[0] + i * t->stride[1]) * lc_size_of(t->dtype);
    return (cuda_matrix){ data, group == 1 ? t->stride[1] : 0, t->stride[flipped ? 3 : 2], t->stride[flipped ? 2 : 3],
                          (lc_dtype)t->dtype };
}
static cuda_matrix plain(void *data, lc_dtype dtype, int64_t rows, int64_t cols, bool flipped)
{
    return (cuda_matrix){ data, rows * cols, flipped ? 1 : cols, flipped ? cols : 1, dtype };
}
/* Heads that share strides: those of one batch, and of one key head where several queries share it; `most` at a time. */
static int64_t piece(const job *j, int64_t head, int64_t most)
{
    int64_t step = j->group > 1 ? j->group : j->h, left = step - head % step;
    return left < most ? left : most;
}
static void start(job *j, attention_args *p, lc_dtype work, const lc_attention_args *a)
{
    *j = (job){ a,
                work,
                factor_type(a, work),
                a->q->device.index,
                a->q->shape[1],
                a->k->shape[1] ? a->q->shape[1] / a->k->shape[1] : 1,
                a->q->shape[2],
                a->k->shape[2],
                a->q->shape[3],
                a->v->shape[3] };
    *p = (attention_args){ .l = j->l,
                           .s = j->s,
                           .ev = j->ev,
                           .h = j->h,
                           .scale = a->scale,
                           .causal = a->causal,
                           .mask = a->mask ? a->mask->data : NULL,
                           .grad = a->grad ? a->grad->data : NULL,
                           .out = a->out->data };
    for (int d = 0; d < 4; d++) {
        p->mask_stride[d] = a->mask ? a->mask->stride[d] : 0;
        p->grad_stride[d] = a->grad ? a->grad->stride[d] : 0, p->out_stride[d] = a->out->stride[d];
    }
}
static cuda_program program(const job *j, const char *kernel)
{
    const lc_attention_args *a = j->a;
    return (cuda_program){ &attention_body, kernel,
                           .type = { CUDA_TYPE(j->low), CUDA_TYPE(j->work),
                                     CUDA_TYPE(a->mask ? (lc_dtype)a->mask->dtype : j->work),
                                     CUDA_TYPE(a->grad ? (lc_dtype)a->grad->dtype : j->work), CUDA_TYPE(a->out->dtype) },
                           .variant = a->mask && a->mask->dtype == LC_b8 };
}
static int threads_for(int64_t n) { return n >= 512 ? 256 : n >= 128 ? 128 : 32; }
static int zero(const lc_tensor *t) /* a new tensor: dense */
{
    return cuda_set_bytes(t->data, 0, (size_t)(t->numel * lc_size_of(t->dtype)));
}

static int attention(UNUSED lc_op_id op, lc_dtype work, const void *args)
{
    const lc_attention_args *a = args;
    job                      j;
    attention_args           p;
    start(&j, &p, work, a);
    int64_t all = a->q->shape[0] * j.h, each = j.l * j.s * lc_size_of(work), most = each ? MOST_BYTES / each : 1;
    if (!a->out->numel && !a->lse->numel) return 0;
    if (cuda_use(j.device) < 0) return -1;
    if (!j.s) return zero(a->out) < 0 ? -1 : 0;
    int fused = cuda_dnn_attention(a, false);
    if (fused > 0) fused = cuda_flash_attention(a);
    if (fused <= 0) return fused;
    if (most < 1) most = 1;
    if (most > all) most = all;
    cuda_scratch scratch = { 0 }, other = { 0 };
    if (!(p.scores = cuda_scratch_new(&scratch, j.device, (size_t)(most * each)))) return -1;
    p.p = p.scores;
    if (j.low != work && !(p.p = cuda_scratch_new(&other, j.device, (size_t)(most * j.l * j.s * 2))))
        return cuda_scratch_free(&scratch), -1;
    cuda_program q = program(&j, "forward");
    int          rc = 0;
    for (int64_t head = 0, n; head < all && rc == 0; head += n) {
        n = piece(&j, head, most);
        p.first = head, p.heads = n, p.lse = a->lse->data + head * j.l * lc_size_of(work);
        rc = cuda_product(j.device, work, plain(p.scores, work, j.l, j.s, false), matrix(a->q, head, j.h, 1, false),
                          matrix(a->k, head, j.h, j.group, true), n, j.l, j.s, j.e, a->scale, false);
        if (rc == 0) rc = cuda_blocks(&q, n * j.l, threads_for(j.s), &p);
        if (rc == 0)
            rc = cuda_product(j.device, work, matrix(a->out, head, j.h, 1, false), plain(p.p, j.low, j.l, j.s, false),
                              matrix(a->v, head, j.h, j.group, false), n, j.l, j.ev, j.s, 1, false);
    }
    cuda_scratch_free(&scratch), cuda_scratch_free(&other);
    return rc;
}

/* out (of keys) = sum over the heads that share it of p' x */
static int add_keys(const job *j, const lc_tensor *to, void *p, const lc_tensor *x, int64_t head, int64_t n, int64_t width)
{
    int64_t each = j->l * j->s * lc_size_of(j->low);
    if (j->group == 1)
        return cuda_product(j->device, j->work, matrix(to, head, j->h, 1, false), plain(p, j->low, j->l, j->s, true),
                            matrix(x, head, j->h, 1, false), n, j->s, width, j->l, 1, false);
    int rc = 0;
    for (int64_t i = 0; i < n && rc == 0; i++)
        rc = cuda_product(j->device, j->work, matrix(to, head + i, j->h, j->group, false),
                          plain((char *)p + i * each, j->low, j->l, j->s, true), matrix(x, head + i, j->h, 1, false), 1, j->s,
                          width, j->l, 1, (head + i) % j->group != 0);
    return rc;
}
static int backward_of(lc_dtype work, const lc_attention_args *a)
{
    job            j;
    attention_args p;
    start(&j, &p, work, a);
    int64_t all = a->q->shape[0] * j.h, each = j.l * j.s * lc_size_of(work), most = each ? MOST_BYTES / each : 1;
    if (cuda_use(j.device) < 0) return -1;
    if (!all || !each) return zero(a->dq) < 0 || zero(a->dk) < 0 || zero(a->dv) < 0 ? -1 : 0;
    int fused = cuda_dnn_attention(a, true);
    if (fused <= 0) return fused;
    if (most < 1) most = 1;
    if (most > all) most = all;
    cuda_scratch scratch[4];
    memset(scratch, 0, sizeof scratch);
    size_t low_bytes = (size_t)(most * j.l * j.s * lc_size_of(j.low));
    p.scores = cuda_scratch_new(&scratch[0], j.device, (size_t)(most * each));
    p.slopes = p.scores ? cuda_scratch_new(&scratch[1], j.device, (size_t)(most * each)) : NULL;
    p.p = j.low == work ? p.scores : p.slopes ? cuda_scratch_new(&scratch[2], j.device, low_bytes) : NULL;
    p.ds = j.low == work ? p.slopes : p.p ? cuda_scratch_new(&scratch[3], j.device, low_bytes) : NULL;
    cuda_program q = program(&j, "backward");
    int          rc = p.slopes && p.p && p.ds ? 0 : -1;
    for (int64_t head = 0, n; head < all && rc == 0; head += n) {
        n = piece(&j, head, most);
        p.first = head, p.heads = n, p.lse = a->lse->data + head * j.l * lc_size_of(work);
        rc = cuda_product(j.device, work, plain(p.scores, work, j.l, j.s, false), matrix(a->q, head, j.h, 1, false),
                          matrix(a->k, head, j.h, j.group, true), n, j.l, j.s, j.e, a->scale, false);
        if (rc == 0)
            rc = cuda_product(j.device, work, plain(p.slopes, work, j.l, j.s, false), matrix(a->grad, head, j.h, 1, false),
                              matrix(a->v, head, j.h, j.group, true), n, j.l, j.s, j.ev, 1, false);
        if (rc == 0) rc = cuda_blocks(&q, n * j.l, threads_for(j.s), &p);
        if (rc == 0)
            rc = cuda_product(j.device, work, matrix(a->dq, head, j.h, 1, false), plain(p.ds, j.low, j.l, j.s, false),
                              matrix(a->k, head, j.h, j.group, false), n, j.l, j.e, j.s, 1, false);
        if (rc == 0) rc = add_keys(&j, a->dk, p.ds, a->q, head, n, j.e);
        if (rc == 0) rc = add_keys(&j, a->dv, p.p, a->grad, head, n, j.ev);
    }
    for (int i = 0; i < 4; i++) cuda_scratch_free(&scratch[i]);
    return rc;
}
/* Halves arrive with a gradient in float32 that was rounded to them before: products take it as a half again. */
static int attention_backward(UNUSED lc_op_id op, lc_dtype work, const void *args)
{
    lc_attention_args a = *(const lc_attention_args *)args;
    lc_dtype          low = (lc_dtype)a.q->dtype;
    if ((low != LC_f16 && low != LC_bf16) || a.k->dtype != low || a.v->dtype != low || a.grad->dtype == low)
        return backward_of(work, &a);
    lc_tensor *rounded = lc_tensor_new(low, a.grad->device, 4, a.grad->shape);
    if (!rounded) return -1;
    int rc = cuda_copy(rounded, a.grad);
    a.grad = rounded;
    if (rc == 0) rc = backward_of(work, &a);
    return lc_release(rounded), rc;
}
CUDA_RUN(_attention, attention, CUDA_F32_F64)
CUDA_RUN(_attention_backward, attention_backward, CUDA_F32_F64)

/* Attention by an own kernel that keeps the scores in the chip: of float32, and of halves that cuDNN does not take. Any mask, any
 * strides, shared keys, widths to 256. */
#include "../driver.h"

typedef struct {
    const void *q, *k, *v, *mask;
    void       *out, *lse;
    int64_t     h, group, l, s, tiles;
    int64_t     q_step[4], k_step[4], v_step[4], mask_step[4], out_step[4];
    int         e, ev, causal, wide, out_wide;
    float       scale;
} flash_args; /* as in kernels/flash.cuh */
CUDA_BODY(flash);
enum { LEAST_ROWS = 16, MOST_WIDTH = 256, THREADS = 128 };

/* Rows that are read four elements at a time. */
static bool is_wide(const lc_tensor *t)
{
    int64_t together = t->stride[0] | t->stride[1] | t->stride[2] | t->shape[3];
    return t->stride[3] == 1 && together % 4 == 0 && (uintptr_t)t->data % (uintptr_t)(4 * lc_size_of(t->dtype)) == 0;
}
/* Few queries make few blocks, and wide rows leave no room for tiles: products are faster there. */
static bool suits(const lc_attention_args *a)
{
    int64_t e = a->q->shape[3], ev = a->v->shape[3];
    return a->lse->dtype == LC_f32 && a->k->dtype == a->q->dtype && a->v->dtype == a->q->dtype &&
           a->q->shape[2] >= LEAST_ROWS && e && ev && e <= MOST_WIDTH && ev <= MOST_WIDTH;
}
/* A block's shared memory: 227 KB on a data centre's GPU, 99 KB on most others; Turing has 64 KB, and no asynchronous copies. */
static bool fits(int device, int shared)
{
    enum { MOST_SHARED = 97, TURING = 64 << 10 };
    static _Atomic int known[CUDA_DEVICES];
    int                most = atomic_load_explicit(&known[device], memory_order_relaxed);
    if (!most) atomic_store_explicit(&known[device], most = cuda_attribute(device, MOST_SHARED), memory_order_relaxed);
    return most > TURING && shared <= most;
}

int cuda_flash_attention(const lc_attention_args *a)
{
    if (!suits(a)) return 1;
    int64_t width = a->q->shape[3] > a->v->shape[3] ? a->q->shape[3] : a->v->shape[3], l = a->q->shape[2];
    int     d = (int)(width + 31) / 32 * 32, rows = d <= 64 ? 128 : d <= 128 ? 64 : 32, keys = d <= 64 ? 64 : 32;
    int     shared = 4 * (rows * (d + 8) + keys * (d + 4) + keys * d + rows * (keys + 8));
    if (!fits(a->q->device.index, shared)) return 1;
    int        kind = !a->mask ? 0 : a->mask->dtype == LC_b8 ? 1 << 3 : 1 << 4;
    flash_args p = { .q = a->q->data,
                     .k = a->k->data,
                     .v = a->v->data,
                     .mask = a->mask ? a->mask->data : NULL,
                     .out = a->out->data,
                     .lse = a->lse->data,
                     .h = a->q->shape[1],
                     .group = a->q->shape[1] / a->k->shape[1],
                     .l = l,
                     .s = a->k->shape[2],
                     .tiles = (l + rows - 1) / rows,
                     .e = (int)a->q->shape[3],
                     .ev = (int)a->v->shape[3],
                     .causal = a->causal,
                     .wide = is_wide(a->q) && is_wide(a->k) && is_wide(a->v),
                     .out_wide = is_wide(a->out),
                     .scale = (float)a->scale };
    for (int i = 0; i < 4; i++) {
        p.q_step[i] = a->q->stride[i], p.k_step[i] = a->k->stride[i], p.v_step[i] = a->v->stride[i];
        p.out_step[i] = a->out->stride[i], p.mask_step[i] = a->mask ? a->mask->stride[i] : 0;
    }
    cuda_program q = { &flash_body, "flash",
                       .type = { CUDA_TYPE(a->q->dtype), CUDA_TYPE(a->mask ? (lc_dtype)a->mask->dtype : LC_f32),
                                 CUDA_TYPE(a->out->dtype) },
                       .variant = (int16_t)(d / 32 - 1 + kind) };
    return cuda_blocks_sharing(&q, a->q->shape[0] * p.h * p.tiles, THREADS, shared, &p);
}

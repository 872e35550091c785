/* Decoding on the device: spans stay there, so a step is the same launches whatever the lengths, and can be captured. */
#include "../driver.h"

typedef struct {
    void         *keys, *values, *out, *q, *k, *v, *spans, *parts;
    int64_t       rows, heads, key_heads, capacity, splits, window, width[2];
    int64_t       key_at[3], value_at[3], q_at[3], k_at[3], v_at[3];
    double        scale;
    cuda_trouble *word;
} cached_args; /* as in kernels/decode/cached_attention.cuh */
CUDA_BODY(cached_attention);
enum { WIDEST = 256, SPLIT = 1024, MOST_SPLITS = 32, MULTIPROCESSORS = 16 };

static void strides(int64_t to[3], const lc_tensor *t, int last)
{
    to[0] = t->stride[0], to[1] = t->stride[1], to[2] = t->stride[last];
}
static cached_args start(const lc_cached_args *a)
{
    cached_args p = { .keys = a->keys->data,
                      .values = a->values->data,
                      .spans = a->spans->data,
                      .rows = a->keys->shape[0],
                      .key_heads = a->keys->shape[1],
                      .capacity = a->keys->shape[2],
                      .splits = 1,
                      .window = a->window,
                      .width = { a->keys->shape[3], a->values->shape[3] },
                      .scale = a->scale,
                      .word = cuda_trouble_word(a->keys->device.index) };
    strides(p.key_at, a->keys, 2), strides(p.value_at, a->values, 2);
    return p;
}
static int store(UNUSED lc_op_id op, UNUSED lc_dtype work, const void *args)
{
    const lc_cached_args *a = args;
    if (cuda_use(a->keys->device.index) < 0) return -1;
    cached_args p = start(a);
    p.k = a->k->data, p.v = a->v->data;
    strides(p.k_at, a->k, 3), strides(p.v_at, a->v, 3);
    cuda_program q = { &cached_attention_body, "store", .type = { CUDA_TYPE(a->keys->dtype) } };
    return cuda_map(&q, p.rows * p.key_heads * (p.width[0] + p.width[1]), &p);
}
/* 16 bytes at a time: the first element and every stride must lie on them. */
static bool aligned(const lc_tensor *t)
{
    int64_t size = lc_size_of(t->dtype), wide = 16 / size;
    return (uintptr_t)t->data % 16 == 0 && t->stride[0] % wide == 0 && t->stride[1] % wide == 0 && t->stride[2] % wide == 0;
}
static int answer(UNUSED lc_op_id op, UNUSED lc_dtype work, const void *args)
{
    const lc_cached_args *a = args;
    int64_t               width = a->keys->shape[3];
    int                   device = a->keys->device.index;
    if (width != a->values->shape[3] || width % 8 || width > WIDEST || !aligned(a->keys) || !aligned(a->values))
        return lc_fail_int(LC_NotImplementedError,
                           "cuda: attention over a cache takes keys and values of one width, a multiple of 8 up to %d", WIDEST);
    if (cuda_use(device) < 0) return -1;
    cached_args p = start(a);
    p.heads = a->q->shape[1], p.q = a->q->data, p.out = a->out->data;
    strides(p.q_at, a->q, 3);
    int64_t blocks = p.rows * p.heads, longest = p.window && p.window < p.capacity ? p.window : p.capacity;
    int64_t most = 2 * cuda_attribute(device, MULTIPROCESSORS) / blocks;
    p.splits = longest / SPLIT;
    if (p.splits > most) p.splits = most;
    if (p.splits > MOST_SPLITS) p.splits = MOST_SPLITS;
    if (p.splits < 1) p.splits = 1;
    cuda_scratch scratch = { 0 };
    size_t       bytes = (size_t)(blocks * p.splits * (width + 2)) * sizeof(double);
    if (p.splits > 1 && !(p.parts = cuda_scratch_new(&scratch, device, bytes))) return -1;
    cuda_program q = { &cached_attention_body, "answer", .type = { CUDA_TYPE(a->keys->dtype) },
                       .variant = (int16_t)(width / 8) };
    int          threads = width <= 64 && a->keys->dtype != LC_f64 ? 512 : width <= 128 ? 256 : 128; /* as in the kernel */
    int          rc = cuda_blocks(&q, blocks * p.splits, threads, &p);
    if (rc == 0 && p.splits > 1) q.kernel = "gather", rc = cuda_map(&q, blocks * width, &p);
    cuda_scratch_free(&scratch);
    return rc;
}
CUDA_RUN(_cache_write, store, CUDA_F32_F64)
CUDA_RUN(_cached_attention, answer, CUDA_F32_F64)

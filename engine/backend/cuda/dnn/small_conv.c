/* Small convolutions by own kernels (kernels/small_conv.cuh): one launch with the bias, two for the gradient of a weight. */
#include "../driver.h"

typedef struct {
    void       *out;
    const void *a, *b, *bias;
    int32_t     n, groups, c, m, size[2], result[2], stride[2], padding[2], dilation[2], image[4], weight[4], outcome[4];
    int32_t     tiles, blocks, slices;
    void       *partial;
} small_conv; /* as in kernels/small_conv.cuh */
CUDA_BODY(small_conv);
enum {
    RESULT,
    IMAGE,
    WEIGHT,
    THREADS = 128,
    MOST_WINDOW = 8,
    MOST_SUMS = 64,
    FILLED = 264 /* blocks: two for each processor */
};

/* Above so many multiplications a library's tiles pay, and above so many summed by one thread it waits for memory too long. The
 * sums of a weight's gradient are exchanged between threads, which pays if each of them has summed some places. */
enum { MOST_WORK = 1 << 25, MOST_DEPTH = 1024, LEAST_PLACES = 8 * THREADS };

/* Strides of (n, channel, row, column) that fit 32 bits; one dimension: rows of one. */
static bool strides_of(const lc_tensor *t, int dims, int32_t step[4])
{
    int64_t reach = 0;
    for (int d = 0; d < t->ndim; d++) {
        reach += (t->shape[d] - 1) * t->stride[d];
        if (t->stride[d] < 0 || reach > INT32_MAX) return false;
        step[d < 2 ? d : d + 2 - dims] = (int32_t)t->stride[d];
    }
    if (dims == 1) step[2] = 0;
    return true;
}
static void pair(int32_t to[2], int dims, const int64_t *from, int32_t missing)
{
    to[0] = dims == 1 ? missing : (int32_t)from[0], to[1] = (int32_t)from[dims - 1];
}

static bool suits(int kind, const lc_conv_args *a, lc_dtype dtype)
{
    const lc_tensor *t[3] = { a->image, a->weight, a->result };
    if (a->dims > 2 || (dtype != LC_f32 && dtype != LC_f64)) return false;
    for (int i = 0; i < 3; i++)
        if (t[i]->dtype != dtype || !t[i]->numel) return false;
    for (int d = 0; d < a->dims; d++)
        if (a->weight->shape[2 + d] > MOST_WINDOW || a->padding[d] > INT16_MAX || a->dilation[d] > INT16_MAX) return false;
    int64_t each = a->weight->numel / a->weight->shape[0], m = a->weight->shape[0] / a->groups;
    int64_t deep = kind == RESULT ? each : kind == IMAGE ? each / a->weight->shape[1] * m : 0;
    if (kind == WEIGHT && a->result->numel / a->weight->shape[0] < LEAST_PLACES) return false;
    bool planes = a->image->stride[a->dims + 1] == 1 && a->result->stride[a->dims + 1] == 1;
    return planes && deep <= MOST_DEPTH && a->result->numel <= MOST_WORK / each && a->image->numel <= MOST_WORK;
}

/* kind: 0 result, 1 image, 2 weight is computed, with the bias. 0: done; 1: not a small one; -1 after lc_fail. */
int cuda_small_convolve(int kind, const lc_conv_args *a, lc_dtype dtype)
{
    if (!suits(kind, a, dtype)) return 1;
    const lc_tensor *image = a->image, *weight = a->weight, *result = a->result;
    const lc_tensor *out = kind == RESULT ? result : kind == IMAGE ? image : weight;
    int              dims = a->dims;
    small_conv       p = { .out = out->data,
                           .a = kind == RESULT ? image->data : result->data,
                           .b = kind == WEIGHT ? image->data : weight->data,
                           .bias = kind != WEIGHT && a->bias ? a->bias->data : NULL,
                           .n = (int32_t)image->shape[0],
                           .groups = (int32_t)a->groups,
                           .c = (int32_t)weight->shape[1],
                           .m = (int32_t)(weight->shape[0] / a->groups) };
    int32_t          window[2];
    if (!strides_of(image, dims, p.image) || !strides_of(weight, dims, p.weight) || !strides_of(result, dims, p.outcome))
        return 1;
    pair(p.size, dims, image->shape + 2, 1), pair(p.result, dims, result->shape + 2, 1);
    pair(window, dims, weight->shape + 2, 1), pair(p.stride, dims, a->stride, 1);
    pair(p.padding, dims, a->padding, 0), pair(p.dilation, dims, a->dilation, 1);
    int32_t made = kind == IMAGE ? p.c : p.m, taps = window[0] * window[1], log = 3;
    int64_t places = (int64_t)p.n * (kind == IMAGE ? p.size[0] * p.size[1] : p.result[0] * p.result[1]);
    bool    one = p.stride[0] == 1 && p.stride[1] == 1;
    /* Channels per thread: as many as leave a thread for every lane of the device, and sums in registers. */
    while (log && (1 << (log - 1) >= made ||
                   (kind == WEIGHT ? taps << log > MOST_SUMS
                                   : places * p.groups * ((made + (1 << log) - 1) >> log) < FILLED * THREADS)))
        log--;
    p.tiles = (made + (1 << log) - 1) >> log, p.slices = 1;
    cuda_program q = { &small_conv_body, kind == WEIGHT ? "weights" : "places", .type = { CUDA_TYPE(dtype) },
                       .variant = (int16_t)(kind | log << 2 | (window[0] - 1) << 4 | (window[1] - 1) << 7 | one << 10) };
    if (cuda_use(out->device.index) < 0) return -1;
    if (kind != WEIGHT) {
        p.blocks = (int32_t)((places + THREADS - 1) / THREADS);
        return cuda_blocks(&q, (int64_t)p.blocks * p.tiles * p.groups, THREADS, &p);
    }
    int64_t blocks = (int64_t)p.groups * p.tiles * p.c, most = places / (4 * THREADS) + 1;
    int64_t slices = FILLED / blocks + 1;
    p.slices = (int32_t)(slices < most ? slices : most);
    cuda_scratch scratch = { 0 };
    p.partial = cuda_scratch_new(&scratch, out->device.index, (size_t)(p.slices * weight->numel) * (size_t)lc_size_of(dtype));
    int rc = p.partial ? cuda_blocks(&q, blocks * p.slices, THREADS, &p) : -1;
    if (rc == 0) q.kernel = "add_slices", rc = cuda_map(&q, weight->numel, &p);
    return cuda_scratch_free(&scratch), rc;
}

/* Convolution: small ones by own kernels (small_conv.c), others by cuDNN (cudnn.c), else products with gathered operands
 * (kernels/conv.cuh). */
#include "../driver.h"

typedef struct {
    int64_t n, channel, place[3];
} side;
typedef struct {
    void   *out, *a, *b, *bias;
    int64_t n, groups, c, m, size[3], result[3], kernel[3], stride[3], padding[3], dilation[3];
    side    image, weight, outcome;
    int64_t rows, cols, deep, slices;
    void   *partial;
} conv_args; /* as in kernels/conv.cuh */
CUDA_BODY(conv);

static side side_of(const lc_tensor *t, int dims)
{
    side s = { t->stride[0], t->stride[1], { 0 } };
    for (int d = 0; d < dims; d++) s.place[3 - dims + d] = t->stride[2 + d];
    return s;
}
static void sizes_of(const lc_tensor *t, int dims, int64_t size[3])
{
    for (int d = 0; d < 3; d++) size[d] = d < 3 - dims ? 1 : t->shape[2 + d - (3 - dims)];
}

static int add_bias(const lc_tensor *out, const lc_tensor *bias) /* per channel: the second dimension */
{
    lc_tensor beside = *bias;
    int64_t   shape[5] = { 1, 1, 1, 1, 1 }, stride[5] = { 0 };
    shape[1] = bias->numel, stride[1] = 1;
    beside.ndim = out->ndim, beside.shape = shape, beside.stride = stride, beside.is_contiguous = false;
    return cuda_elementwise(LC_OP_add, lc_working_dtype((lc_dtype)out->dtype), (lc_tensor *)out,
                            (lc_tensor *const[]){ (lc_tensor *)out, &beside }, 2);
}

static int conv(lc_op_id op, lc_dtype dtype, const void *args)
{
    enum { RESULT, IMAGE, WEIGHT, TILE = 64 };
    const lc_conv_args *a = args;
    int                 kind = op == LC_OP__conv ? RESULT : op == LC_OP__conv_input ? IMAGE : WEIGHT, dims = a->dims;
    const lc_tensor    *out = kind == RESULT ? a->result : kind == IMAGE ? a->image : a->weight;
    const lc_tensor    *x = kind == RESULT ? a->image : a->result, *y = kind == WEIGHT ? a->image : a->weight;
    conv_args           p = { out->data,
                              x->data,
                              y->data,
                    kind != WEIGHT && a->bias ? a->bias->data : NULL,
                              .n = a->image->shape[0],
                              .groups = a->groups,
                              .c = a->weight->shape[1],
                              .m = a->weight->shape[0] / a->groups,
                              .image = side_of(a->image, dims),
                              .weight = side_of(a->weight, dims),
                              .outcome = side_of(a->result, dims),
                              .slices = 1 };
    if (!out->numel) return 0;
    if (cuda_use(out->device.index) < 0) return -1;
    if (p.bias && a->bias->dtype != dtype) return lc_fail_int(LC_LucidError, "conv on cuda: a bias of another dtype");
    if (dtype != LC_i64) {
        int done = cuda_small_convolve(kind, a, dtype);
        if (done <= 0) return done;
        done = cuda_dnn_convolve(kind, a);
        if (done <= 0) return done < 0 ? -1 : p.bias ? add_bias(out, a->bias) : 0;
    }
    sizes_of(a->image, dims, p.size), sizes_of(a->result, dims, p.result), sizes_of(a->weight, dims, p.kernel);
    for (int d = 0; d < 3; d++) {
        int from = d - (3 - dims);
        p.stride[d] = from < 0 ? 1 : a->stride[from], p.padding[d] = from < 0 ? 0 : a->padding[from],
        p.dilation[d] = from < 0 ? 1 : a->dilation[from];
    }
    int64_t taps = p.kernel[0] * p.kernel[1] * p.kernel[2], results = p.n * p.result[0] * p.result[1] * p.result[2];
    p.rows = kind == RESULT ? results : kind == IMAGE ? p.n * p.size[0] * p.size[1] * p.size[2] : p.m;
    p.cols = kind == RESULT ? p.m : kind == IMAGE ? p.c : p.c * taps;
    p.deep = kind == RESULT ? p.c * taps : kind == IMAGE ? p.m * taps : results;
    cuda_program q = { &conv_body, "convolve", .type = { CUDA_TYPE(out->dtype), CUDA_TYPE(x->dtype), CUDA_TYPE(y->dtype) },
                       .variant = (int16_t)kind };
    int64_t      blocks = p.groups * ((p.rows + TILE - 1) / TILE) * ((p.cols + TILE - 1) / TILE);
    cuda_scratch scratch = { 0 };
    if (kind == WEIGHT && blocks < 264) {
        p.slices = 264 / blocks + 1;
        if (p.slices > p.deep / 256 + 1) p.slices = p.deep / 256 + 1;
        if (p.slices > 1 &&
            !(p.partial = cuda_scratch_new(&scratch, out->device.index, (size_t)(p.groups * p.slices * p.rows * p.cols) * 8)))
            return -1;
    }
    int rc = cuda_blocks(&q, blocks * p.slices, 256, &p);
    if (rc == 0 && p.partial) q.kernel = "add_slices", rc = cuda_map(&q, p.groups * p.rows * p.cols, &p);
    return cuda_scratch_free(&scratch), rc;
}
CUDA_RUN(_conv, conv, CUDA_F32_F64 | 1u << LC_i64)
CUDA_RUN(_conv_input, conv, CUDA_F32_F64 | 1u << LC_i64)
CUDA_RUN(_conv_weight, conv, CUDA_F32_F64)

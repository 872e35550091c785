/* Pooling and unfolding: a thread per element of the result. The gradient of a maximum adds at its positions, by atomics, or with a
 * thread per plane where the order must not vary. */
#include "../driver.h"

typedef struct {
    void   *out, *index, *in, *grad;
    int64_t planes, size[3], result[3], kernel[3], stride[3], padding[3], dilation[3], divisor, channels;
    int     adaptive, padding_counts, ordered;
} pool_args; /* as in kernels/pool.cuh */
CUDA_BODY(pool);

static int pool(lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_pool_args *a = args;
    pool_args           p = { a->out->data,
                    a->index ? a->index->data : NULL,
                    a->in ? a->in->data : NULL,
                    a->grad ? a->grad->data : NULL,
                              .planes = a->planes,
                              .divisor = a->divisor,
                              .channels = a->channels,
                              .adaptive = a->adaptive,
                              .padding_counts = a->padding_counts };
    enum { INTEGERS, FLOATS, SUMS, HALVES, LARGE = 4 }; /* as in kernels/pool.cuh */
    cuda_program q = { &pool_body, .type = { CUDA_TYPE(dtype) } };
    q.variant = !lc_is_floating(dtype) ? INTEGERS : lc_size_of(dtype) == 2 ? HALVES : FLOATS;
    for (int d = 0; d < 3; d++) {
        p.size[d] = a->size[d], p.result[d] = a->result[d], p.kernel[d] = a->kernel[d], p.stride[d] = a->stride[d];
        p.padding[d] = a->padding[d], p.dilation[d] = a->dilation[d];
    }
    int64_t results = a->planes * a->result[0] * a->result[1] * a->result[2],
            elements = a->planes * a->size[0] * a->size[1] * a->size[2];
    if (results > INT32_MAX || elements > INT32_MAX) q.variant |= LARGE;
    if (!a->out->numel) return 0;
    if (cuda_use(a->out->device.index) < 0) return -1;
    switch (op) {
    case LC_OP__max_pool:
        return q.kernel = "max_pool", cuda_map(&q, results, &p);
    case LC_OP__avg_pool:
        return q.kernel = "average_pool", cuda_map(&q, results, &p);
    case LC_OP__avg_pool_backward:
        return q.kernel = "average_pool_backward", cuda_map(&q, elements, &p);
    case LC_OP_im2col:
        q.variant = lc_size_of(dtype) > 8 ? SUMS : INTEGERS;
        if (!q.variant) q.type[0] = CUDA_WIDTH(dtype);
        return q.kernel = "unfold", cuda_map(&q, a->planes * a->kernel[1] * a->kernel[2] * a->result[1] * a->result[2], &p);
    case LC_OP_col2im:
        q.variant = SUMS;
        return q.kernel = "fold", cuda_map(&q, a->planes * a->size[1] * a->size[2], &p);
    default:
        if (cuda_set_bytes(a->out->data, 0, (size_t)(a->out->numel * lc_size_of(dtype))) < 0) return -1;
        q.kernel = op == LC_OP__max_pool_backward ? "max_pool_backward" : "max_pool_gradient";
        p.ordered = a->ordered;
        return cuda_map(&q, a->ordered ? a->planes : results, &p);
    }
}
enum { SUMMED = 1u << LC_b8 | 1u << LC_c64 | 1u << LC_c128 };
CUDA_RUN(_max_pool, pool, CUDA_FLOATS | 1u << LC_i64)
CUDA_RUN(_avg_pool, pool, CUDA_FLOATS | 1u << LC_i64)
CUDA_RUN(_avg_pool_backward, pool, CUDA_FLOATS)
CUDA_RUN(_max_pool_backward, pool, CUDA_F32_F64)
CUDA_RUN(_max_pool_gradient, pool, CUDA_F32_F64)
CUDA_RUN(im2col, pool, CUDA_FLOATS | SUMMED)
CUDA_RUN(col2im, pool, CUDA_F32_F64 | SUMMED)

/* Linear layers in codes of 8 or 4 bits: few rows of x, so the weight's codes are what is read. */
#include "../driver.h"

typedef struct {
    void   *out, *x, *codes, *scales, *bias;
    int64_t m, n, k, group;
    int     wide;
} quantized_args; /* as in kernels/decode/quantized.cuh */
CUDA_BODY(quantized);
enum { WARPS = 8 };

static int quantized(UNUSED lc_op_id op, UNUSED lc_dtype work, const void *args)
{
    const lc_quantized_args *a = args;
    quantized_args           p = { a->out->data,
                                   a->x->data,
                                   a->codes->data,
                                   a->scales->data,
                         a->bias ? a->bias->data : NULL,
                                   a->m,
                                   a->n,
                                   a->k,
                                   a->group,
                                   a->k % 8 == 0 && a->group % 8 == 0 && (uintptr_t)a->codes->data % 8 == 0 &&
                                       (uintptr_t)a->x->data % 16 == 0 };
    cuda_program q = { &quantized_body, "multiply", .type = { CUDA_TYPE(a->x->dtype) }, .variant = a->codes->dtype == LC_u8 };
    if (cuda_use(a->out->device.index) < 0) return -1;
    return cuda_blocks(&q, (a->n + WARPS - 1) / WARPS, WARPS * 32, &p);
}
CUDA_RUN(_quantized_linear, quantized, 1u << LC_f32)

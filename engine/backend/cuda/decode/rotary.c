/* Rotary positions: one launch for a query or key. */
#include "../driver.h"
#include <string.h>

typedef struct {
    void   *out, *in, *cos, *sin;
    int64_t shape[4], at[4][4];
} rotary_args; /* as in kernels/decode/rotary.cuh */
CUDA_BODY(rotary);

static int rotary(UNUSED lc_op_id op, UNUSED lc_dtype work, const void *args)
{
    const lc_rotary_args *a = args;
    rotary_args           p = { .out = a->out->data, .in = a->in->data, .cos = a->cos->data, .sin = a->sin->data };
    memcpy(p.shape, a->shape, sizeof p.shape), memcpy(p.at, a->at, sizeof p.at);
    if (cuda_use(a->out->device.index) < 0) return -1;
    cuda_program q = { &rotary_body, "turn", .type = { CUDA_TYPE(a->out->dtype) } };
    return cuda_map(&q, a->out->numel / 2, &p);
}
CUDA_RUN(_rotary, rotary, CUDA_F32_F64)

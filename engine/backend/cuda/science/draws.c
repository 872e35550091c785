/* Gamma, Poisson and binomial draws, and the derivatives of gamma and Dirichlet variables by their parameters: maps whose parameters are
 * broadcast to the result. */
#include "science.h"

enum { GAMMA, POISSON, BINOMIAL, GAMMA_SLOPE, DIRICHLET_SLOPE, PARAMETERS = 3, ADVANCE = 256 };
typedef struct {
    void         *out, *parameter[PARAMETERS];
    int64_t       n;
    cuda_drawn    by;
    int           single;
    cuda_trouble *word;
} draw_args; /* as in kernels/science/draws.cuh */
CUDA_MATH_BODY(draws);

static int draw(lc_op_id op, UNUSED lc_dtype dtype, const void *args)
{
    const lc_random_args *a = args;
    int                   device = a->out->device.index, rc = 0;
    int                   kind = op == LC_OP__standard_gamma        ? GAMMA
                                 : op == LC_OP_poisson              ? POISSON
                                 : op == LC_OP_binomial             ? BINOMIAL
                                 : op == LC_OP__standard_gamma_grad ? GAMMA_SLOPE
                                                                    : DIRICHLET_SLOPE;
    draw_args             p = { a->out->data, .n = a->out->numel, .single = a->out->dtype != LC_f64 };
    cuda_program          q = { &draws_body, "draw", .type = { CUDA_TYPE(a->out->dtype) }, .variant = (int16_t)kind };
    lc_tensor            *held[PARAMETERS + 1] = { NULL };
    if (!p.n) return 0;
    if (cuda_use(device) < 0) return -1;
    p.word = cuda_trouble_word(device);
    if (kind <= BINOMIAL && cuda_draw(a->generator, device, ADVANCE, &p.by) < 0) return -1;
    for (int k = 0; k < PARAMETERS && a->parameters[k] && rc == 0; k++) {
        held[k] = lc_tensor_new(LC_f64, a->out->device, a->out->ndim, a->out->shape);
        rc = held[k] ? cuda_copy(held[k], a->parameters[k]) : -1;
        if (rc == 0) p.parameter[k] = held[k]->data;
    }
    if (rc == 0 && !a->out->is_contiguous) {
        held[PARAMETERS] = lc_tensor_new((lc_dtype)a->out->dtype, a->out->device, a->out->ndim, a->out->shape);
        if (held[PARAMETERS]) p.out = held[PARAMETERS]->data;
        else rc = -1;
    }
    if (rc == 0) rc = cuda_map(&q, p.n, &p);
    if (rc == 0 && held[PARAMETERS]) rc = cuda_copy(a->out, held[PARAMETERS]);
    for (int k = 0; k <= PARAMETERS; k++)
        if (held[k]) lc_release(held[k]);
    return rc;
}
CUDA_RUN(_standard_gamma, draw, CUDA_F32_F64)
CUDA_RUN(poisson, draw, CUDA_FLOATS)
CUDA_RUN(binomial, draw, CUDA_F32_F64)
CUDA_RUN(_standard_gamma_grad, draw, CUDA_F32_F64)
CUDA_RUN(_dirichlet_grad, draw, CUDA_F32_F64)

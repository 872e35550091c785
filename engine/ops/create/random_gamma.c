/* Gamma and Dirichlet variables, and implicit gradients through them: the private ops that distributions are made of. */
#include "random.h"
#include <float.h>
#include <math.h>

/* ---- how draws move with their parameters ---- */
static int map_run(const lc_record *call)
{
    lc_random_args args = { .out = call->out[0] };
    for (int k = 0; k < call->n_in; k++) args.parameters[k] = call->in[k];
    return run_kernel_with(call, &args);
}
static int packed_broadcast(const lc_record *call, lc_spec *out)
{
    int rc = broadcast(call, out);
    return out->order = LC_ORDER_CONTIGUOUS, rc;
}
/* PyTorch knows no derivative of these either. */
GRAD(gamma_slope)
{
    for (int k = 0; in[k].tag == LC_IS_tensor; k++)
        if (need[k]) dx[k] = lc_fail(LC_NotImplementedError, "the derivative for '_standard_gamma_grad' is not implemented.");
}
GRAD(dirichlet_slope)
{
    for (int k = 0; in[k].tag == LC_IS_tensor; k++)
        if (need[k]) dx[k] = lc_fail(LC_NotImplementedError, "the derivative for '_dirichlet_grad' is not implemented.");
}
LC_OP(_standard_gamma_grad, .sig = "_standard_gamma_grad(input: Tensor, output: Tensor) -> Tensor",
      .doc = "Derivative of gamma variables `output` by their concentration `input`.", .shape = packed_broadcast,
      .run = map_run, .grad = gamma_slope_grad);
LC_OP(_dirichlet_grad, .sig = "_dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor",
      .doc = "Derivative of beta variables x by alpha, over 1 - x; total is the sum of both concentrations.",
      .shape = packed_broadcast, .run = map_run, .grad = dirichlet_slope_grad);

/* ---- draws ---- */
static int gamma_shape(const lc_record *call, lc_spec *out)
{
    spec_like(call, out, call->in[0], (lc_dtype)call->in[0]->dtype);
    return 0;
}
static int standard_gamma_run(const lc_record *call)
{
    lc_random_args args = { .out = call->out[0],
                            .parameters = { call->in[0] },
                            .generator = generator_for(&call->args[1], call->device) };
    return args.generator ? run_kernel_with(call, &args) : -1;
}
GRAD(_standard_gamma) { dx[0] = lc_mul(g[0], lc__standard_gamma_grad(in(0), y[0])); }
LC_OP(_standard_gamma, .sig = "_standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor",
      .doc = "Gamma variables of scale 1, with input's elements as concentrations.", .random = true, .promote = LC_NO_PROMOTION,
      .shape = gamma_shape, .run = standard_gamma_run, .grad = _standard_gamma_grad, .saves = IN(0) | OUT(0));

/* Gamma variables in float64 over their sum, kept off 0 and 1. */
static int fill_dirichlet(const lc_record *call, lc_generator *generator)
{
    bool       wide = call->out[0]->dtype == LC_f64;
    lc_tensor *alpha = lc_to(call->in[0], LC_f64, false, false, LC_ABSENT);
    lc_tensor *gamma = lc__standard_gamma(alpha, generator);
    lc_tensor *x = lc_div(gamma, lc_sum(gamma, (int64_t[]){ -1 }, 1, true));
    if (!x || move_values(call->out[0], x) < 0) return -1;
    return lc_clamp_(call->out[0], LC_NUMBER(wide ? DBL_MIN : (double)FLT_MIN), LC_NUMBER(1 - (wide ? 0x1p-53 : 0x1p-24))) ? 0
                                                                                                                           : -1;
}
static int sample_dirichlet_run(const lc_record *call)
{
    lc_dtype      dtype = (lc_dtype)call->out[0]->dtype;
    lc_generator *generator = generator_for(&call->args[1], call->device);
    unsigned      modes = lc_modes;
    if (dtype != LC_f32 && dtype != LC_f64)
        return lc_fail_int(LC_NotImplementedError, "_sample_dirichlet is not implemented for %s", lc_dtypes[dtype].name);
    if (!generator || !call->out[0]->numel || !call->backend->can.values) return generator ? 0 : -1;
    lc_scope scope = lc_scope_open();
    lc_modes |= LC_NO_GRAD;
    int rc = fill_dirichlet(call, generator);
    lc_modes = modes;
    return lc_scope_close(scope), rc;
}
GRAD(_sample_dirichlet)
{
    lc_tensor *total = lc_expand_as(lc_sum(in(0), (int64_t[]){ -1 }, 1, true), in(0));
    lc_tensor *mean = lc_sum(lc_mul(y[0], g[0]), (int64_t[]){ -1 }, 1, true);
    dx[0] = lc_mul(lc__dirichlet_grad(y[0], in(0), total), lc_sub(g[0], mean));
}
LC_OP(_sample_dirichlet, .sig = "_sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor",
      .doc = "Dirichlet vectors along the last dimension, with input's elements as concentrations.", .random = true,
      .promote = LC_NO_PROMOTION, .shape = gamma_shape, .run = sample_dirichlet_run, .grad = _sample_dirichlet_grad,
      .saves = IN(0) | OUT(0));

/* Muon: optimizer steps of matrices. Newton-Schulz iterations in bfloat16 make the update nearly orthogonal.
 *
 * One call updates all matrices of a group, one after the other, by matrix products written with ops. If an allocation
 * fails, the current matrix is unchanged and the earlier ones are updated: holding back every update until the end would
 * need memory for all of them. */
#include "../rules.h"
#include <math.h>

static lc_tensor *orthogonalised(lc_tensor *update, const double *by, int64_t steps, double eps)
{
    bool       tall = update->shape[0] > update->shape[1];
    lc_tensor *x = lc__to_copy(update, LC_bf16, update->device, LC_PRESERVE_FORMAT);
    if (tall) x = lc_t(x);
    x = lc_div(x, lc_clamp_min(lc_linalg_vector_norm(x, LC_I(2), NULL, 0, false, LC_ABSENT), LC_NUMBER(eps)));
    for (int64_t i = 0; i < steps; i++) {
        lc_tensor *gram = lc_mm(x, lc_t(x));
        x = lc_addmm(x, lc_addmm(gram, gram, gram, LC_F(by[1]), LC_F(by[2])), x, LC_F(by[0]), LC_I(1));
    }
    return tall ? lc_t(x) : x;
}

static int muon_step(const lc_record *call, int i)
{
    const lc_value *in = call->args;
    lc_tensor      *p = in[0].ts[i], *grad = in[1].ts[i], *buffer = in[2].ts[i];
    double          lr = in[3].f, momentum = in[5].f, rows = (double)p->shape[0], columns = (double)p->shape[1];
    double          ratio = in[10].b ? 0.2 * sqrt(fmax(rows, columns)) : sqrt(fmax(1, rows / columns));
    lc_tensor      *moved = lc_lerp(buffer, grad, LC_NUMBER(1 - momentum));
    lc_tensor      *update = in[6].b ? lc_lerp(grad, moved, LC_NUMBER(momentum)) : moved;
    if (!update) return -1;
    update = orthogonalised(update, in[7].fs, in[9].i, in[8].f);
    lc_tensor *after = lc_add_alpha(lc_mul(p, LC_NUMBER(1 - lr * in[4].f)), update, LC_F(-lr * ratio));
    return after && moved && move_values(buffer, moved) == 0 ? move_values(p, after) : -1;
}

static int _fused_muon_run(const lc_record *call)
{
    const lc_value *in = call->args;
    unsigned        modes = lc_modes;
    int             rc = 0;
    if (in[0].n != in[1].n || in[0].n != in[2].n)
        return lc_fail_int(LC_LucidError, "%s: got %d parameters, %d gradients and %d momentum buffers", call->op->name,
                           in[0].n, in[1].n, in[2].n);
    if (in[7].n != 3) return lc_fail_int(LC_LucidError, "Coefficients must be a tuple of exactly 3 values");
    if (in[9].i >= 100) return lc_fail_int(LC_LucidError, "Number of steps must be less than 100 for computational efficiency");
    for (int i = 0; i < in[0].n; i++)
        for (int k = 0; k < 3; k++)
            if (in[k].ts[i]->ndim != 2 || !lc_same_shape(in[k].ts[i], in[0].ts[i]) || !lc_is_floating(in[k].ts[i]->dtype))
                return lc_fail_int(LC_LucidError, "Param gradient must be a 2D matrix");
    lc_modes |= LC_NO_GRAD;
    for (int i = 0; i < in[0].n && rc == 0; i++) {
        lc_scope scope = lc_scope_open();
        rc = muon_step(call, i);
        lc_scope_close(scope);
    }
    lc_modes = modes;
    return rc;
}
LC_OP(_fused_muon_,
      .sig = "_fused_muon_(self: list[Tensor], grads: list[Tensor], momentum_buffer_list: list[Tensor], *, lr: float, "
             "weight_decay: float, momentum: float, nesterov: bool, ns_coefficients: list[float], eps: float, ns_steps: int, "
             "match_rms_adamw: bool) -> None",
      .doc = "One step of Muon for a list of matrices.", .writes = IN(0) | IN(2), .function = true, .promote = LC_NO_PROMOTION,
      .run = _fused_muon_run);

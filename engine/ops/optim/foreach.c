/* Lists of tensors in one call, like PyTorch's _foreach_*: what optimizers and gradient clipping need besides fused steps. */
#include "../rules.h"
#include <math.h>

/* In place, all tensors with one scalar: everything is checked for all tensors before the first is written. */
static int each_in_place(const lc_record *call, lc_op_id op)
{
    lc_tensor *number = call->in[call->n_in - 1];
    for (int i = 0; i < call->args[0].n; i++) {
        lc_tensor *t = call->args[0].ts[i];
        lc_dtype   dtype = (lc_dtype)t->dtype;
        if (lc_class_of((lc_dtype)number->dtype) > lc_class_of(dtype) || (number->is_number && number_fits(dtype, number) < 0))
            return lc_fail_int(LC_DtypeMismatch, "%s: result type %s can't be cast to the desired output type %s",
                               call->op->name, lc_dtypes[number->dtype].name, lc_dtypes[dtype].name);
        if (number->numel != 1)
            return lc_fail_int(LC_ShapeMismatch, "%s: scalar tensor expected to be 0 dim but it has %d dimensions",
                               call->op->name, number->ndim);
        if (!call->backend->has(op, dtype)) return no_kernel(call);
    }
    for (int i = 0; i < call->args[0].n; i++) {
        lc_tensor *t = call->args[0].ts[i];
        if (call->backend->elementwise(op, (lc_dtype)t->dtype, t, (lc_tensor *[]){ t, number }, 2) < 0) return -1;
    }
    return 0;
}
static int add_run(const lc_record *call) { return each_in_place(call, LC_OP_add); }
LC_OP(_foreach_add_, .sig = "_foreach_add_(self: list[Tensor], scalar: Tensor | Number) -> None",
      .doc = "Add a scalar to every tensor of a list, in place.", .writes = IN(0), .promote = LC_NO_PROMOTION, .run = add_run);
static int mul_run(const lc_record *call) { return each_in_place(call, LC_OP_mul); }
LC_OP(_foreach_mul_, .sig = "_foreach_mul_(self: list[Tensor], scalar: Tensor | Number) -> None",
      .doc = "Multiply every tensor of a list by a scalar, in place.", .writes = IN(0), .promote = LC_NO_PROMOTION,
      .run = mul_run);

static int clamp_run(const lc_record *call)
{
    lc_tensor *const *number = call->in + call->n_in - 2;
    for (int i = 0; i < call->args[0].n; i++) {
        lc_tensor *t = call->args[0].ts[i];
        if (!lc_is_floating(t->dtype) || !call->backend->has(LC_OP_clamp, (lc_dtype)t->dtype)) return no_kernel(call);
    }
    for (int i = 0; i < call->args[0].n; i++) {
        lc_tensor *t = call->args[0].ts[i];
        if (call->backend->elementwise(LC_OP_clamp, (lc_dtype)t->dtype, t, (lc_tensor *[]){ t, number[0], number[1] }, 3) < 0)
            return -1;
    }
    return 0;
}
LC_OP(_foreach_clamp_, .sig = "_foreach_clamp_(self: list[Tensor], min: Tensor | Number, max: Tensor | Number) -> None",
      .doc = "Limit every value of a list of floating point tensors to [min, max], in place.", .writes = IN(0),
      .promote = LC_NO_PROMOTION, .run = clamp_run);

static int norm_count(const lc_value *in) { return in[0].n; }
static int norm_call(const lc_value *in, lc_tensor **out)
{
    if (!in[0].n) return lc_fail_int(LC_LucidError, "_foreach_norm: Tensor list must have at least one tensor.");
    for (int i = 0; i < in[0].n; i++)
        if (!(out[i] = lc_linalg_vector_norm(in[0].ts[i], in[1], NULL, 0, false, in[2]))) return -1;
    return 0;
}
LC_OP(_foreach_norm, .sig = "_foreach_norm(self: list[Tensor], ord: Number = 2, dtype: dtype | None = None) -> list[Tensor]",
      .doc = "The norm of every tensor of a list.", .count = norm_count, .call = norm_call);

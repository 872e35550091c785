/* softmax and log_softmax: a kernel over rows, and gradients that are ops with kernels of their own. The gradients' gradients are formulas. */
#include "../rules.h"

static lc_dtype softmax_dtype(const lc_record *call, const lc_value *asked)
{
    return asked->tag == LC_IS_dtype ? asked->dt : (lc_dtype)call->in[0]->dtype;
}

static int softmax_shape(const lc_record *call, lc_spec *out)
{
    int d;
    if (dim_index(call->args[1].i, call->in[0]->ndim, &d) < 0) return -1;
    return spec_like(call, out, call->in[0], softmax_dtype(call, &call->args[2])), 0;
}
/* in, y (LC_NONE if the op has none) and out in the dtype the kernel computes in; dim is that of argument k. */
static int run_rows(const lc_record *call, lc_tensor *in, lc_tensor *y, lc_dtype result, const lc_value *dim)
{
    lc_softmax_args args;
    lc_record       rows = *call;
    rows.dtype = call->backend->has(call->op->kernel, result)
                     ? result
                     : working_dtype(result); /* half precision: converted here or by the kernel */
    if (dim_index(dim->i, in->ndim, &args.dim) < 0) return -1;
    lc_tensor *a = in_dtype(in, rows.dtype), *b = y == LC_NONE ? lc_retain(y) : in_dtype(y, rows.dtype);
    lc_tensor *out = destination(call->out[0], rows.dtype, call->in, call->n_in);
    args.in = a, args.y = b, args.out = out;
    int rc = a && b && out ? run_kernel_with(&rows, &args) : -1;
    lc_release(a), lc_release(b);
    return deliver(call->out[0], out, rc);
}
static int softmax_run(const lc_record *call)
{
    return run_rows(call, call->in[0], LC_NONE, softmax_dtype(call, &call->args[2]), &call->args[1]);
}

static int backward_shape(const lc_record *call, lc_spec *out)
{
    return spec_like(call, out, call->in[0], call->args[3].dt), 0;
}
static int backward_run(const lc_record *call)
{
    return run_rows(call, call->in[0], call->in[1], call->in[0]->dtype, &call->args[2]);
}

static lc_tensor *row_sum(lc_tensor *t, int64_t dim) { return lc_sum(t, &dim, 1, true); }

GRAD(softmax) { dx[0] = lc__softmax_backward_data(g[0], y[0], in[1].i, in(0)->dtype); }
LC_OP(softmax, .batching = LC_BATCH_DIMS, .sig = "softmax(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor",
      .doc = "exp(input), scaled so that it sums to one along dim.", .method = true, .out = true, .promote = LC_NO_PROMOTION,
      .amp = LC_AMP_GPU_FP32, .shape = softmax_shape, .run = softmax_run, .grad = softmax_grad, .saves = OUT(0));

/* softmax(complex, dtype=real) took the real part; so does the gradient of what its gradient gave the complex input. */
static lc_tensor *as_real_as(lc_tensor *g, const lc_tensor *y)
{
    return lc_is_complex(g->dtype) && !lc_is_complex(y->dtype) ? lc_real(g) : g;
}

/* dx = y (g - sum(g y)): linear in g and quadratic in y. */
GRAD(_softmax_backward_data)
{
    lc_tensor *grad = in(0), *out = in(1), *gg = as_real_as(g[0], out), *weighted = lc_mul(gg, out);
    if (need[0]) dx[0] = lc__softmax_backward_data(gg, out, in[2].i, grad->dtype);
    if (need[1])
        dx[1] = lc_sub(lc_mul(gg, lc_sub(grad, row_sum(lc_mul(grad, out), in[2].i))), lc_mul(grad, row_sum(weighted, in[2].i)));
}
LC_OP(_softmax_backward_data,
      .sig = "_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: dtype) -> Tensor",
      .doc = "The gradient of softmax.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = backward_shape,
      .run = backward_run, .grad = _softmax_backward_data_grad, .saves = IN(0) | IN(1));

GRAD(log_softmax) { dx[0] = lc__log_softmax_backward_data(g[0], y[0], in[1].i, in(0)->dtype); }
LC_OP(log_softmax, .batching = LC_BATCH_DIMS,
      .sig = "log_softmax(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor",
      .doc = "The logarithm of softmax, computed without underflow.", .method = true, .out = true, .promote = LC_NO_PROMOTION,
      .amp = LC_AMP_GPU_FP32, .shape = softmax_shape, .run = softmax_run, .grad = log_softmax_grad, .saves = OUT(0));

/* dx = g - exp(y) sum(g). */
GRAD(_log_softmax_backward_data)
{
    lc_tensor *p = lc_exp(in(1)), *gg = as_real_as(g[0], in(1));
    if (need[0]) dx[0] = lc_sub(gg, row_sum(lc_mul(gg, p), in[2].i));
    if (need[1]) dx[1] = lc_neg(lc_mul(lc_mul(gg, p), row_sum(in(0), in[2].i)));
}
LC_OP(_log_softmax_backward_data,
      .sig = "_log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: dtype) -> Tensor",
      .doc = "The gradient of log_softmax.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = backward_shape,
      .run = backward_run, .grad = _log_softmax_backward_data_grad, .saves = IN(0) | IN(1));

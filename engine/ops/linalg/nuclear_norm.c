/* The nuclear norm, the sum of the singular values, and what its gradients need. */
#include "../rules.h"

static int svd_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    int              row = x->ndim - 2, column = x->ndim - 1;
    if (row < 0) return lc_fail_int(LC_ShapeMismatch, "svd: expected matrices, got %s", LC_SHAPE(x));
    int64_t few = x->shape[row] < x->shape[column] ? x->shape[row] : x->shape[column];
    for (int i = 0; i < 3; i++) spec_like(call, &out[i], x, i == 1 ? lc_real_of(x->dtype) : (lc_dtype)x->dtype);
    out[0].shape[column] = few, out[1].ndim = row + 1, out[1].shape[row] = few, out[2].shape[row] = few;
    return 0;
}
static int svd_run(const lc_record *call)
{
    lc_tensor  *x = packed(call->in[0], (lc_dtype)call->in[0]->dtype);
    lc_svd_args a = { .in = x, .u = call->out[0], .s = call->out[1], .vh = call->out[2] };
    int         rc = x ? run_kernel_with(call, &a) : -1;
    return lc_release(x), rc;
}
LC_OP(_svd, .sig = "_svd(input: Tensor) -> (U: Tensor, S: Tensor, Vh: Tensor)",
      .doc = "Singular values and vectors of matrices: input is U diag(S) Vh.", .hidden = true, .promote = LC_NO_PROMOTION,
      .shape = svd_shape, .run = svd_run);

static lc_tensor *adjoint(lc_tensor *t) { return t ? conj_of(lc_transpose(t, -2, -1)) : NULL; }
static lc_tensor *product(lc_tensor *a, lc_tensor *b) { return a && b ? lc_matmul(a, b) : NULL; }

/* The nearest matrix of orthonormal columns (or rows), U Vh: the gradient of the nuclear norm. Of its change, what lies in the span of U and V is
 * skew and divided by sums of singular values, the rest by singular values. */
static int polar_call(const lc_value *in, lc_tensor **out)
{
    lc__svd_out s = lc__svd(in(0));
    return (out[0] = product(s.U, s.Vh)) ? 0 : -1;
}
GRAD(_polar)
{
    lc__svd_out s = lc__svd(lc_detach(in(0)));
    if (!s.U || !s.S || !s.Vh) {
        dx[0] = NULL;
        return;
    }
    lc_tensor *Uh = adjoint(s.U), *V = adjoint(s.Vh), *inner = product(product(Uh, g[0]), V);
    lc_tensor *sums = lc_add(lc_unsqueeze(s.S, -1), lc_unsqueeze(s.S, -2)), *inverse = lc_reciprocal(lc_unsqueeze(s.S, -2));
    lc_tensor *skew = product(product(s.U, lc_div(lc_sub(inner, adjoint(inner)), sums)), s.Vh);
    lc_tensor *gV = product(g[0], V), *right = lc_sub(gV, product(s.U, inner));
    lc_tensor *Ug = product(Uh, g[0]), *below = lc_sub(Ug, product(inner, s.Vh));
    lc_tensor *tall = product(lc_mul(right, inverse), s.Vh), *wide = product(lc_mul(s.U, inverse), below);
    dx[0] = lc_add(lc_add(skew, tall), wide);
}
LC_OP(_polar, .sig = "_polar(input: Tensor) -> Tensor", .doc = "The nearest matrices with orthonormal columns or rows.",
      .hidden = true, .promote = LC_NO_PROMOTION, .call = polar_call, .grad = _polar_grad, .saves = IN(0));

static int nuclear_norm_call(const lc_value *in, lc_tensor **out)
{
    int64_t last = -1;
    return (out[0] = lc_sum(lc__svd(in(0)).S, &last, 1, false)) ? 0 : -1;
}
GRAD(_nuclear_norm) { dx[0] = lc_mul(lc_unsqueeze(lc_unsqueeze(g[0], -1), -1), lc__polar(in(0))); }
LC_OP(_nuclear_norm, .sig = "_nuclear_norm(input: Tensor) -> Tensor", .doc = "The sum of the singular values of matrices.",
      .hidden = true, .promote = LC_NO_PROMOTION, .call = nuclear_norm_call, .grad = _nuclear_norm_grad, .saves = IN(0));

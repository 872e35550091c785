/* normalize and local_response_norm: plain ops. */
#include "norm.h"

static int normalize_call(const lc_value *in, lc_tensor **out)
{
    if (in[1].tag == LC_IS_complex) return lc_fail_int(LC_LucidError, "normalize: the order of a norm cannot be complex");
    lc_tensor *x = norm_widened(in(0)), *norm = lc_norm_of_order(x, in[1].tag == LC_IS_none ? LC_F(2) : in[1], in[2].is,
                                                                 in[2].tag == LC_IS_none ? 0 : in[2].n, true, LC_ABSENT);
    lc_tensor *y = lc_div(x, lc_clamp_min(norm, LC_NUMBER(in[3].f)));
    return (out[0] = lc_is_floating(in(0)->dtype) ? norm_converted(y, (lc_dtype)in(0)->dtype) : y) ? 0 : -1;
}
LC_OP(normalize,
      .sig = "normalize(input: Tensor, p: Number | None = 2.0, dim: list[int] | None = 1, eps: float = 1e-12) -> Tensor",
      .doc = "Vectors along dim, divided by their norm of order p, or by eps if that is larger.", .ns = "nn.functional",
      .out = true, .call = normalize_call);

/* Means of squares over `size` neighbouring channels, zeros beyond the ends: rows of a plane (channels, rest). */
static int local_response_norm_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    int64_t    size = in[1].i, rest = 1;
    if (x->ndim < 3)
        return lc_fail_int(LC_ValueError, "Expected 3D or higher dimensionality input (got %d dimensions)", x->ndim);
    if (!x->numel) return out[0] = x, 0;
    if (size < 1)
        return lc_fail_int(LC_LucidError, "kernel size should be greater than zero, but got kH: %lld kW: 1", (long long)size);
    if (x->dtype != LC_i64 && !(lc_is_floating(x->dtype) && (x->ndim == 3 || lc_size_of(x->dtype) > 2)))
        return lc_fail_int(LC_NotImplementedError, "local_response_norm is not implemented for %s", LC_SHAPE(x));
    for (int d = 2; d < x->ndim; d++) rest *= x->shape[d];
    int64_t    shape[] = { x->shape[0], x->shape[1], rest }, pad[] = { 0, 0, size / 2, (size - 1) / 2 };
    int64_t    window[] = { size, 1, 1, 1, 0, 0, 1, 1 };
    lc_tensor *squares = lc_reshape(lc_mul(x, x), shape, 3);
    lc_tensor *mean = lc__avg_pool(lc_constant_pad_nd(squares, pad, 4, LC_I(0)), window, 8, false, true, 0);
    lc_tensor *divisor = lc_add(lc_mul(lc_reshape(mean, x->shape, x->ndim), LC_NUMBER(in[2].f)), LC_NUMBER(in[4].f));
    return (out[0] = lc_div(x, lc_pow(divisor, LC_NUMBER(in[3].f)))) ? 0 : -1;
}
LC_OP(
    local_response_norm,
    .sig = "local_response_norm(input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> Tensor",
    .doc = "input / (k + alpha * the mean of squares over size neighbouring channels)^beta.", .ns = "nn.functional",
    .call = local_response_norm_call);

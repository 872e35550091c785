/* Linear layers whose weight is stored in int8 or int4, for inference: the product reads the codes and scales them on the way,
 * so a token costs a quarter or an eighth of the memory traffic of float32.
 *
 * A weight (n, k) is cut along k into groups of group_size; a group has one scale. int8: one code per byte, -127 to 127. int4:
 * two codes per byte, 0 to 15 for -8 to 7; 16 bytes hold 32 codes, the first 16 in the low halves, so that a vector of
 * bytes gives two vectors of neighbours. Devices without the kernel, float64 and
 * inputs of many rows are multiplied by the weight itself. */
#include "matmul.h"

enum {
    BLOCK = 32,    /* codes that int4 keeps together */
    MANY_ROWS = 64 /* from here on the weight is worth converting once; not under a tape, which would keep it */
};
static bool    is_int4(const lc_tensor *w) { return w->dtype == LC_u8; }
static int64_t columns_of(const lc_tensor *w) { return w->ndim == 2 ? w->shape[1] * (is_int4(w) ? 2 : 1) : 0; }
static int     codes_fit(const lc_tensor *w, const lc_tensor *scales, int64_t group)
{
    int64_t k = columns_of(w);
    if (w->ndim != 2 || (w->dtype != LC_i8 && w->dtype != LC_u8))
        return lc_fail_int(LC_DtypeMismatch, "quantized_linear: expected codes (n, k) in int8, or (n, k / 2) in uint8, got %s",
                           LC_SHAPE(w));
    if (group < 1 || k % group || (is_int4(w) && group % BLOCK))
        return lc_fail_int(LC_ValueError, "quantized_linear: %lld columns are not cut into groups of %lld%s", (long long)k,
                           (long long)group, is_int4(w) ? ", a multiple of 32 for int4" : "");
    if (scales->dtype != LC_f32 || scales->ndim != 2 || scales->shape[0] != w->shape[0] || scales->shape[1] != k / group)
        return lc_fail_int(LC_ShapeMismatch, "quantized_linear: expected float32 scales (%lld, %lld), got %s",
                           (long long)w->shape[0], (long long)(k / group), LC_SHAPE(scales));
    return 0;
}

/* ---- the weight in float32 ---- */
static int dequantize_weight_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *w = in(0), *scales = in(1);
    int64_t    group = in[2].i;
    if (codes_fit(w, scales, group) < 0) return -1;
    int64_t n = w->shape[0], k = columns_of(w);
    if (is_int4(w)) {
        lc_tensor *blocks = lc_reshape(w, (int64_t[]){ n, k / BLOCK, BLOCK / 2 }, 3);
        lc_tensor *halves[] = { lc_bitwise_and(blocks, LC_INTEGER(15)), lc_bitwise_right_shift(blocks, LC_INTEGER(4)) };
        w = lc_cat(halves, 2, -1);
    }
    w = lc_to(w, LC_f32, false, false, LC_ABSENT);
    if (is_int4(in(0))) w = lc_sub(w, LC_NUMBER(8));
    w = lc_mul(lc_reshape(w, (int64_t[]){ n, k / group, group }, 3), lc_unsqueeze(scales, -1));
    return (out[0] = lc_reshape(w, (int64_t[]){ n, k }, 2)) ? 0 : -1;
}
LC_OP(dequantize_weight, .sig = "dequantize_weight(weight: Tensor, scales: Tensor, group_size: int) -> Tensor",
      .doc = "The float32 weight (n, k) that codes in int8, or in int4 two to a byte of uint8, and scales per group stand for.",
      .ns = "nn.functional", .call = dequantize_weight_call);

/* ---- the product ---- */
static int quantized_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0], *w = call->in[1], *bias = call->in[3];
    int64_t          shape[LC_MAX_DIMS];
    if (codes_fit(w, call->in[2], call->args[4].i) < 0) return -1;
    if (!lc_is_floating(x->dtype) || x->dtype == LC_f64 || !x->ndim || x->shape[x->ndim - 1] != columns_of(w))
        return lc_fail_int(LC_ShapeMismatch, "quantized_linear: an input %s does not fit a weight for %lld features in float32",
                           LC_SHAPE(x), (long long)columns_of(w));
    if (bias != LC_NONE && (bias->dtype != LC_f32 || bias->ndim != 1 || bias->shape[0] != w->shape[0]))
        return lc_fail_int(LC_ShapeMismatch, "quantized_linear: expected a float32 bias for %lld features, got %s",
                           (long long)w->shape[0], LC_SHAPE(bias));
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof *shape);
    shape[x->ndim - 1] = w->shape[0];
    return spec_shape(call, out, (lc_dtype)x->dtype, x->ndim, shape);
}
static int quantized_run(const lc_record *call)
{
    lc_record  product = *call;
    lc_dtype   dtype = call->backend->can.half & LC_HALF_QUANTIZED ? (lc_dtype)call->in[0]->dtype : LC_f32;
    lc_tensor *x = packed(call->in[0], dtype), *w = packed(call->in[1], (lc_dtype)call->in[1]->dtype),
              *scales = packed(call->in[2], LC_f32), *bias = call->in[3] == LC_NONE ? NULL : packed(call->in[3], LC_f32),
              *out = destination(call->out[0], dtype, call->in, call->n_in);
    int rc = -1;
    product.dtype = LC_f32;
    if (x && w && scales && out && (bias || call->in[3] == LC_NONE)) {
        lc_quantized_args a = { .out = out,
                                .x = x,
                                .codes = w,
                                .scales = scales,
                                .bias = bias,
                                .m = w->shape[0] ? out->numel / w->shape[0] : 0,
                                .n = w->shape[0],
                                .k = columns_of(w),
                                .group = call->args[4].i };
        rc = a.m && a.n ? run_kernel_with(&product, &a) : 0;
    }
    lc_release(x), lc_release(w), lc_release(scales), lc_release(bias);
    return out ? deliver(call->out[0], out, rc) : rc;
}
GRAD(_quantized_linear)
{
    lc_tensor *w = lc_dequantize_weight(in(1), in(2), in[4].i);
    if (need[0] && w) dx[0] = lc_matmul(g[0], lc_to(w, (lc_dtype)g[0]->dtype, false, false, LC_ABSENT));
    if (need[3])
        dx[3] = lc_reshape(g[0], (int64_t[]){ -1, in(1)->shape[0] }, 2), dx[3] = lc_sum(dx[3], &(int64_t){ 0 }, 1, false);
}
LC_OP(_quantized_linear,
      .sig = "_quantized_linear(input: Tensor, weight: Tensor, scales: Tensor, bias: Tensor | None, group_size: int) -> Tensor",
      .doc = "quantized_linear where the device has its kernel.", .hidden = true, .promote = LC_NO_PROMOTION,
      .shape = quantized_shape, .run = quantized_run, .grad = _quantized_linear_grad, .saves = IN(1) | IN(2));

static int quantized_linear_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *bias = in[3].tag == LC_IS_none ? LC_NONE : in(3);
    bool       tracked = x->node || x->flags & LC_REQUIRES_GRAD;
    int64_t    k = x->ndim ? x->shape[x->ndim - 1] : 0, rows = k ? x->numel / k : 0;
    if (x->dtype != LC_f64 && (rows < MANY_ROWS || tracked) &&
        lc_backends[x->device.kind]->has(LC_OP__quantized_linear, LC_f32))
        return (out[0] = lc__quantized_linear(x, in(1), in(2), bias, in[4].i)) ? 0 : -1;
    lc_tensor *w = lc_dequantize_weight(in(1), in(2), in[4].i);
    if (w) w = lc_to(w, (lc_dtype)x->dtype, false, false, LC_ABSENT);
    if (w && bias != LC_NONE) bias = lc_to(bias, (lc_dtype)x->dtype, false, false, LC_ABSENT);
    return (out[0] = w && bias ? lc_linear(x, w, bias) : NULL) ? 0 : -1;
}
LC_OP(quantized_linear,
      .sig =
          "quantized_linear(input: Tensor, weight: Tensor, scales: Tensor, bias: Tensor | None = None, group_size: int = 32) "
          "-> Tensor",
      .doc = "linear with a weight in codes of 8 or 4 bits: int8 (n, k), or uint8 (n, k / 2) with two codes to a byte, and a "
             "float32 scale for every group_size of them, (n, k / group_size).",
      .ns = "nn.functional", .call = quantized_linear_call);

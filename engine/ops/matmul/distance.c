/* Distances and similarities of vectors, products of three, and one-hot vectors: plain ops. */
#include "../rules.h"
#include "../../op/promote.h"

static int cosine_similarity_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x[] = { in(0), in(1) }, *norm[2];
    lc_dtype   dtype;
    unsigned   modes = lc_modes;
    int64_t    dim = in[2].i;
    if (lc_promote(x, 2, LC_KEEP, &dtype) < 0) return -1;
    if (!lc_is_floating(dtype))
        return lc_fail_int(LC_DtypeMismatch, "expected common dtype to be floating point, yet common dtype is %s",
                           lc_dtypes[dtype].name);
    for (int k = 0; k < 2; k++)
        if (lc_class_of(x[k]->dtype) < LC_FLOAT && !(x[k] = lc_to(x[k], dtype, false, false, LC_ABSENT))) return -1;
    if (!(in[3].f >= 0)) return lc_fail_int(LC_LucidError, "cosine_similarity: eps must be non-negative, got: %g", in[3].f);
    lc_tensor *both[2];
    if (lc_broadcast_tensors(x, 2, both) < 0) return -1;
    for (int k = 0; k < 2; k++) { /* the clamp has no gradient */
        norm[k] = lc_clone(lc_linalg_vector_norm(both[k], LC_I(2), &dim, 1, true, LC_ABSENT), LC_PRESERVE_FORMAT);
        if (!norm[k]) return -1;
        lc_modes |= LC_NO_GRAD;
        lc_tensor *limited = lc_clamp_min_(norm[k], LC_NUMBER(in[3].f));
        lc_modes = modes;
        if (!limited) return -1;
    }
    return (out[0] = lc_sum(lc_mul(lc_div(both[0], norm[0]), lc_div(both[1], norm[1])), &dim, 1, false)) ? 0 : -1;
}
LC_OP(cosine_similarity, .amp = LC_AMP_GPU_FP32,
      .sig = "cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor",
      .doc = "The cosine of the angle between vectors along dim.", .promote = LC_NO_PROMOTION, .call = cosine_similarity_call);

static int pairwise_distance_call(const lc_value *in, lc_tensor **out)
{
    int64_t last = -1;
    return (out[0] = lc_norm_of_order(lc_add(lc_sub(in(0), in(1)), LC_NUMBER(in[3].f)), in[2], &last, 1, in[4].b, LC_ABSENT))
               ? 0
               : -1;
}
LC_OP(pairwise_distance,
      .sig = "pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> Tensor",
      .doc = "The norm of order p of x1 - x2 + eps along the last dimension.", .promote = LC_NO_PROMOTION,
      .call = pairwise_distance_call);

/* ---- bilinear: x1 W x2 for each matrix W of weight (out, in1, in2) ---- */
static int bilinear_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *a = in(0), *b = in(1), *w = in(2), *bias = in(3);
    int64_t    shape[LC_MAX_DIMS], batch = 1;
    int        n = a->ndim - 1;
    if (a->ndim != b->ndim)
        return lc_fail_int(LC_ShapeMismatch, "bilinear(): input dimensions do not match: got %d and %d", a->ndim, b->ndim);
    if (n < 0) return lc_fail_int(LC_ShapeMismatch, "bilinear(): inputs need at least 1 dimension");
    if (w->ndim != 3) return lc_fail_int(LC_IndexError, "bilinear(): weight needs 3 dimensions, got %s", LC_SHAPE(w));
    for (int d = 0; d < n; d++) {
        if (a->shape[d] != b->shape[d])
            return lc_fail_int(LC_ShapeMismatch, "bilinear(): input batch dimensions do not match at dim %d: got %lld and %lld",
                               d, (long long)a->shape[d], (long long)b->shape[d]);
        batch *= shape[d] = a->shape[d];
    }
    for (int k = 0; k < 2; k++)
        if (in(k)->shape[n] != w->shape[k + 1])
            return lc_fail_int(LC_ShapeMismatch,
                               "bilinear(): input%d size does not match weight size: got %lld but expected %lld", k + 1,
                               (long long)in(k)->shape[n], (long long)w->shape[k + 1]);
    if (bias != LC_NONE && (bias->ndim != 1 || bias->shape[0] != w->shape[0]))
        return lc_fail_int(bias->ndim ? LC_ShapeMismatch : LC_IndexError,
                           "bilinear(): bias size does not match weight size: got %s but expected %lld", LC_SHAPE(bias),
                           (long long)w->shape[0]);
    if (bias != LC_NONE && bias->dtype != w->dtype)
        return lc_fail_int(LC_DtypeMismatch, "bilinear(): All tensors must have the same dtype, got weight %s and bias %s",
                           LC_SHAPE(w), LC_SHAPE(bias));
    int64_t    results = w->shape[0], m = w->shape[1], k = w->shape[2];
    lc_tensor *left = lc_reshape(a, (int64_t[]){ batch, m }, 2), *right = lc_reshape(b, (int64_t[]){ batch, k, 1 }, 3);
    lc_tensor *flat = lc_reshape(lc_permute(w, (int64_t[]){ 1, 0, 2 }, 3), (int64_t[]){ m, results * k }, 2);
    lc_tensor *y = lc_bmm(lc_reshape(lc_mm(left, flat), (int64_t[]){ batch, results, k }, 3), right);
    shape[n] = results;
    y = lc_reshape(y, shape, n + 1);
    return (out[0] = bias == LC_NONE ? y : lc_add(y, bias)) ? 0 : -1;
}
LC_OP(bilinear, .sig = "bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor",
      .doc = "input1 W input2 for each matrix W in weight, plus bias.", .promote = LC_NO_PROMOTION, .amp = LC_AMP_GPU_WIDEST,
      .call = bilinear_call);

/* ---- one_hot ---- */
static int one_hot_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *here = lc_detach(x);
    int64_t    classes = in[1].i, least = 0, most = 0, shape[LC_MAX_DIMS + 1];
    if (x->dtype != LC_i64)
        return lc_fail_int(LC_DtypeMismatch, "one_hot is only applicable to index tensor of type LongTensor.");
    if (x->ndim >= LC_MAX_DIMS)
        return lc_fail_int(LC_ShapeMismatch, "one_hot: %s has the maximal number of dimensions already", LC_SHAPE(x));
    if (!x->numel && classes <= 0)
        return lc_fail_int(LC_LucidError, "Can not infer total number of classes from empty tensor.");
    if (x->numel && (read_int(lc_min(here), &least) < 0 || read_int(lc_max(here), &most) < 0)) return -1;
    if (least < 0) return lc_fail_int(LC_LucidError, "Class values must be non-negative.");
    if (classes == -1) classes = most + 1;
    if (x->numel && most >= classes) return lc_fail_int(LC_LucidError, "Class values must be smaller than num_classes.");
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof *shape), shape[x->ndim] = classes;
    lc_tensor *zeros = lc_zeros(shape, x->ndim + 1, LC_OF_DTYPE(LC_i64), (lc_value){ .tag = LC_IS_device, .dev = x->device });
    return (out[0] = lc_scatter_value_(zeros, -1, lc_unsqueeze(here, -1), LC_INTEGER(1), NULL)) ? 0 : -1;
}
LC_OP(one_hot, .sig = "one_hot(input: Tensor, num_classes: int = -1) -> Tensor", .ns = "nn.functional",
      .doc = "One-hot vectors of indices; num_classes -1: the largest index plus one.", .reads_values = true,
      .call = one_hot_call);

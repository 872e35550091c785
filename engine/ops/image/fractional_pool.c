/* fractional_max_pool2d and 3d: the largest element of each window. Windows have one size and random positions per channel.
 * The draws are a tensor, uniform in [0, 1): given by the caller, or PyTorch's draws for the same seed. */
#include "../rules.h"

enum { MAX_ND = 3 };

static int fractional_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    const lc_value  *size = &call->args[2];
    int64_t          shape[LC_MAX_DIMS];
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof *shape);
    memcpy(shape + x->ndim - size->n, size->is, (size_t)size->n * sizeof *shape);
    return spec_shape(call, &out[0], (lc_dtype)x->dtype, x->ndim, shape) < 0 ||
                   spec_shape(call, &out[1], LC_i64, x->ndim, shape) < 0
               ? -1
               : 0;
}
static int fractional_run(const lc_record *call)
{
    lc_tensor   *x = call->in[0], *out = call->out[0];
    int          nd = call->args[1].n;
    lc_record    work = *call;
    lc_pool_args a = { .planes = 1, .samples_dtype = (lc_dtype)call->in[1]->dtype };
    work.dtype = working_dtype((lc_dtype)x->dtype);
    for (int d = 0; d < x->ndim - nd; d++) a.planes *= x->shape[d];
    for (int d = 0; d < 3; d++) {
        int at = d - (3 - nd);
        a.size[d] = at < 0 ? 1 : x->shape[x->ndim - nd + at], a.result[d] = at < 0 ? 1 : call->args[2].is[at];
        a.kernel[d] = at < 0 ? 1 : call->args[1].is[at];
    }
    lc_tensor *in = packed(x, work.dtype), *samples = packed(call->in[1], work.dtype), *made = NULL, *index = NULL;
    if (in && samples) made = destination(out, work.dtype, NULL, 0), index = lc_retain(call->out[1]);
    a.in = in, a.samples = samples, a.out = made, a.index = index;
    int rc = made ? out->numel ? run_kernel_with(&work, &a) : 0 : -1;
    lc_release(in), lc_release(samples), lc_release(index);
    return made ? deliver(out, made, rc) : rc;
}
GRAD(_fractional_max_pool)
{
    int nd = in[1].n;
    dx[0] = lc__max_pool_backward(g[0], y[1], in(0)->shape + in(0)->ndim - nd, nd);
}
LC_OP(_fractional_max_pool,
      .sig = "_fractional_max_pool(input: Tensor, kernel_size: list[int], output_size: list[int], samples: Tensor) -> (out: "
             "Tensor, indices: "
             "Tensor)",
      .doc = "The largest element of each window, and where it is in its plane.", .hidden = true, .promote = LC_NO_PROMOTION,
      .shape = fractional_shape, .run = fractional_run, .grad = _fractional_max_pool_grad, .saves = OUT(1));

/* ---- (input, kernel_size, output_size, output_ratio, return_indices, _random_samples) ---- */
static int check_pool(const lc_tensor *x, int nd, const int64_t *kernel, const int64_t *size)
{
    if (x->ndim != nd + 1 && x->ndim != nd + 2)
        return lc_fail_int(LC_ShapeMismatch, "fractional_max_pool%dd(): Expected %dD or %dD tensor, but got: %s", nd, nd + 1,
                           nd + 2, LC_SHAPE(x));
    for (int d = x->ndim - nd - 1; d < x->ndim; d++)
        if (!x->shape[d])
            return lc_fail_int(
                LC_ShapeMismatch,
                "fractional_max_pool%dd(): Expected input to have non-zero size for non-batch dimensions, but got %s", nd,
                LC_SHAPE(x));
    for (int d = 0; d < nd; d++) {
        int64_t n = x->shape[x->ndim - nd + d];
        if (size[d] < 0 || kernel[d] <= 0)
            return lc_fail_int(LC_LucidError,
                               "fractional_max_pool%dd(): kernel_size must be greater than zero and output_size not be "
                               "negative, but got %lld and %lld",
                               nd, (long long)kernel[d], (long long)size[d]);
        if (kernel[d] > n || size[d] > n || size[d] + kernel[d] - (nd < 3) > n) /* of 3 dimensions PyTorch wants one more */
            return lc_fail_int(LC_ShapeMismatch,
                               "fractional_max_pool%dd(): %lld windows of %lld are too large relative to the input's %lld", nd,
                               (long long)size[d], (long long)kernel[d], (long long)n);
    }
    return 0;
}
static int check_samples(const lc_tensor *x, const lc_tensor *samples, int nd)
{
    int64_t batch = x->ndim == nd + 1 ? 1 : x->shape[0], channels = x->shape[x->ndim - nd - 1];
    if (samples->dtype != x->dtype)
        return lc_fail_int(LC_DtypeMismatch,
                           "fractional_max_pool: Expected _random_samples to have the same dtype as input, but got %s and %s",
                           LC_SHAPE(samples), LC_SHAPE(x));
    if (samples->ndim != 3 || samples->shape[0] < batch || samples->shape[1] != channels || samples->shape[2] != nd)
        return lc_fail_int(LC_ShapeMismatch,
                           "fractional_max_pool: Expected _random_samples of shape (%lld, %lld, %d), but got %s",
                           (long long)batch, (long long)channels, nd, LC_SHAPE(samples));
    return 0;
}
static int each(const lc_value *v, int nd, const char *name, int64_t *to)
{
    if (v->n != nd)
        return lc_fail_int(LC_LucidError, "fractional_max_pool%dd: %s must either be a single int, or a tuple of %d ints", nd,
                           name, nd);
    for (int d = 0; d < nd; d++) to[d] = v->is[d];
    return 0;
}
static int fractional(const lc_value *in, int nd, bool both, lc_tensor **out)
{
    lc_tensor      *x = in(0), *samples = in[5].t;
    const lc_value *ratio = &in[3];
    int64_t         kernel[MAX_ND], size[MAX_ND];
    bool            sized = in[2].tag != LC_IS_none;
    if (!sized && ratio->tag == LC_IS_none)
        return lc_fail_int(LC_ValueError, "fractional_max_pool%dd requires specifying either an output_size or an output_ratio",
                           nd);
    if (each(&in[1], nd, "kernel_size", kernel) < 0 || (sized && each(&in[2], nd, "output_size", size) < 0)) return -1;
    if (!sized && ratio->n != nd && (nd == 2 || ratio->n < nd)) /* a scalar, or a list of one, which is wrong as well */
        return lc_fail_int(ratio->n == 1 && nd == 2 ? LC_TypeError
                           : ratio->n < nd          ? LC_IndexError
                                                    : LC_ValueError,
                           "fractional_max_pool%dd requires output_ratio to be %d numbers, got %d", nd, nd, ratio->n);
    if (x->ndim <= nd) return lc_fail_int(LC_IndexError, "fractional_max_pool%dd: too few dimensions: %s", nd, LC_SHAPE(x));
    for (int d = 0; d < nd && !sized; d++) {
        double share = (double)x->shape[x->ndim - nd + d] * ratio->fs[d];
        if (share != share) return lc_fail_int(LC_ValueError, "fractional_max_pool%dd: an output_ratio is not a number", nd);
        size[d] = share > -1 && share < 0x1p62 ? (int64_t)share : -1;
    }
    if (!lc_is_floating(x->dtype))
        return lc_fail_int(LC_NotImplementedError, "fractional_max_pool%dd is not implemented for %s", nd, LC_SHAPE(x));
    if (samples == LC_NONE) {
        int64_t shape[] = { x->ndim == nd + 1 ? 1 : x->shape[0], x->shape[x->ndim - nd - 1], nd };
        samples = lc_rand(shape, 3, LC_OF_DTYPE((lc_dtype)x->dtype), (lc_value){ .tag = LC_IS_device, .dev = x->device }, NULL);
        if (!samples) return -1;
    }
    if (check_pool(x, nd, kernel, size) < 0 || check_samples(x, samples, nd) < 0) return -1;
    lc__fractional_max_pool_out made = lc__fractional_max_pool(x, kernel, nd, size, nd, samples);
    if (both) out[1] = made.indices;
    return (out[0] = made.out) && (!both || out[1]) ? 0 : -1;
}
#define POOLS .ns = "nn.functional", .random = true, .amp = LC_AMP_CPU_FP32, .unnamed = true
#define FRACTIONAL_ARGS(sizes, ratios, indices)                                                                                \
    "(input: Tensor, kernel_size: " sizes ", output_size: " sizes " | None = None, output_ratio: " ratios                      \
    " | None = None, return_indices: " indices ", _random_samples: Tensor | None = None) -> "
#define FRACTIONAL(op, nd, sizes, ratios, dims)                                                                                \
    COMPOSITE(op, fractional(in, nd, false, out))                                                                              \
    LC_OP(op, .sig = #op FRACTIONAL_ARGS(sizes, ratios, "Literal[False] = False") "Tensor",                                    \
          .doc =                                                                                                               \
              "The largest element of windows at random places of the last " dims "; how many, output_size or output_ratio "   \
              "says.",                                                                                                         \
          POOLS, .call = op##_call);                                                                                           \
    COMPOSITE(op##_both, fractional(in, nd, true, out))                                                                        \
    LC_OP(op##_both,                                                                                                           \
          .sig = #op "_both" FRACTIONAL_ARGS(sizes, ratios, "Literal[True] = True") "(out: Tensor, indices: Tensor)",          \
          .doc = "The same, and where it is in its plane.", POOLS, .py = #op, .call = op##_both_call);                         \
    LC_OP(op##_with_indices,                                                                                                   \
          .sig = #op "_with_indices" FRACTIONAL_ARGS(sizes, ratios, "bool = False") "(out: Tensor, indices: Tensor)",          \
          .doc = "What " #op " gives with return_indices=True.", POOLS, .call = op##_both_call);
FRACTIONAL(fractional_max_pool2d, 2, "tuple[int, int]", "list[float]", "two dimensions")
FRACTIONAL(fractional_max_pool3d, 3, "tuple[int, int, int]", "tuple[float, float, float]", "three dimensions")

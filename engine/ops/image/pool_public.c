/* PyTorch's pooling functions (nn.functional): their arguments and their errors, over the ops of pool.c. */
#include "../rules.h"

enum { MAX_ND = 3, LARGEST = INT32_MAX };
#define SPACE   .ns = "nn.functional", .promote = LC_NO_PROMOTION, .unnamed = true
#define WINDOWS "(input: Tensor, kernel_size: list[int], stride: list[int] | None = None, padding: list[int] = 0, "
#define ONE     ", return_indices: Literal[False] | truth = False) -> Tensor"
#define BOTH    ", return_indices: Literal[True] | truth = True) -> (out: Tensor, indices: Tensor)"

/* An argument with one value for all dimensions, or one per dimension. `other` replaces None and (). */
static int each_dim(const lc_value *v, const char *name, int nd, const int64_t *other, int64_t least, int64_t *to)
{
    int n = v->tag == LC_IS_none ? 0 : v->n;
    if (n != 1 && n != nd && (n || !other))
        return lc_fail_int(LC_LucidError, "pool: %s must either be a single int, or a tuple of %d ints", name, nd);
    for (int d = 0; d < nd; d++) {
        to[d] = n ? v->is[n == 1 ? 0 : d] : other[d];
        if (to[d] < least && !strcmp(name, "padding"))
            return lc_fail_int(LC_LucidError, "pad must be non-negative, but got pad: %lld", (long long)to[d]);
        if (to[d] < least)
            return lc_fail_int(LC_LucidError, "pool: %s must be greater than zero, but got %lld", name, (long long)to[d]);
        if (to[d] > LARGEST) return lc_fail_int(LC_LucidError, "pool: %s of %lld is too large", name, (long long)to[d]);
    }
    return 0;
}
static int check_input(const lc_tensor *x, int nd,
                       bool adaptive) /* adaptive: the first dimension may be 0 without a batch, too */
{
    bool good = x->ndim == nd + 1 || x->ndim == nd + 2;
    for (int d = adaptive || x->ndim == nd + 2; good && d < x->ndim; d++) good = x->shape[d] != 0;
    if (good) return 0;
    return lc_fail_int(LC_ShapeMismatch,
                       "Expected %dD or %dD (batch mode) tensor with optional 0 dim batch size for input, but got: %s", nd + 1,
                       nd + 2, LC_SHAPE(x));
}
/* window: kernel, stride, padding, dilation (nd each). dilation NULL: 1. */
static int read_window(const lc_tensor *x, int nd, const lc_value *kernel, const lc_value *stride, const lc_value *padding,
                       const lc_value *dilation, bool ceil, int64_t *window)
{
    int64_t *k = window, *s = k + nd, *p = s + nd, *e = p + nd, one[MAX_ND] = { 1, 1, 1 };
    lc_value none = LC_ABSENT;
    if (each_dim(kernel, "kernel_size", nd, NULL, 1, k) < 0 || each_dim(stride, "stride", nd, k, 1, s) < 0 ||
        each_dim(padding, "padding", nd, NULL, 0, p) < 0 ||
        each_dim(dilation ? dilation : &none, "dilation", nd, dilation ? NULL : one, 1, e) < 0)
        return -1;
    for (int d = 0; d < nd; d++)
        if (p[d] > ((k[d] - 1) * e[d] + 1) / 2)
            return lc_fail_int(LC_LucidError,
                               "pad should be at most half of effective kernel size, but got pad=%lld, kernel_size=%lld and "
                               "dilation=%lld",
                               (long long)p[d], (long long)k[d], (long long)e[d]);
    if (check_input(x, nd, false) < 0) return -1;
    for (int d = 0; d < nd; d++) {
        int64_t extent = x->shape[x->ndim - nd + d] + 2 * p[d] - e[d] * (k[d] - 1) - 1 + (ceil ? s[d] - 1 : 0);
        if (extent < 0)
            return lc_fail_int(LC_ShapeMismatch, "pool: windows of %lld do not fit into input %s. Output size is too small",
                               (long long)((k[d] - 1) * e[d] + 1), LC_SHAPE(x));
    }
    return 0;
}
static int refuse(const lc_tensor *x, const char *name, bool good)
{
    return good ? 0 : lc_fail_int(LC_NotImplementedError, "%s is not implemented for %s", name, LC_SHAPE(x));
}
static bool is_whole(const lc_tensor *x) { return !lc_is_floating(x->dtype) && !lc_is_complex(x->dtype) && x->dtype != LC_b8; }

/* ---- maximum: (input, kernel_size, stride, padding, dilation, ceil_mode, return_indices) ---- */
static int max_window(const lc_value *in, int nd, bool whole, int64_t *window)
{
    if (refuse(in(0), "max_pool", lc_is_floating(in(0)->dtype) || (whole && is_whole(in(0)))) < 0) return -1;
    return read_window(in(0), nd, &in[1], &in[2], &in[3], &in[4], in[5].b, window);
}
static int max_pool(const lc_value *in, lc_tensor **out, int nd)
{
    int64_t window[4 * MAX_ND];
    if (max_window(in, nd, nd > 1, window) < 0) return -1;
    return (out[0] = lc__max_pool(in(0), window, 4 * nd, in[5].b)) ? 0 : -1;
}
static int max_pool_indices(const lc_value *in, lc_tensor **out, int nd)
{
    int64_t window[4 * MAX_ND];
    if (max_window(in, nd, true, window) < 0) return -1;
    lc__max_pool_with_indices_out both = lc__max_pool_with_indices(in(0), window, 4 * nd, in[5].b);
    return (out[0] = both.out) && (out[1] = both.indices) ? 0 : -1;
}
#define MAX_WINDOWS WINDOWS "dilation: list[int] = 1, ceil_mode: bool = False"
#define MAX_POOL(op, nd, dims, ...)                                                                                            \
    COMPOSITE(op, max_pool(in, out, nd))                                                                                       \
    LC_OP(op, .sig = #op MAX_WINDOWS ONE, .doc = "The largest element of each window over the last " dims ".", SPACE,          \
          .call = op##_call, ##__VA_ARGS__);                                                                                   \
    COMPOSITE(op##_both, max_pool_indices(in, out, nd))                                                                        \
    LC_OP(op##_both, .sig = #op "_both" MAX_WINDOWS BOTH,                                                                      \
          .doc = "The largest element of each window over the last " dims ", and where it is in its plane.", SPACE, .py = #op, \
          .call = op##_both_call);                                                                                             \
    LC_OP(op##_with_indices,                                                                                                   \
          .sig = #op "_with_indices" MAX_WINDOWS ", return_indices: truth = False) -> (out: Tensor, indices: Tensor)",         \
          .doc = "What " #op " gives with return_indices=True.", SPACE, .call = op##_both_call);
MAX_POOL(max_pool1d, 1, "dimension")
MAX_POOL(max_pool2d, 2, "two dimensions")
MAX_POOL(max_pool3d, 3, "three dimensions", .amp = LC_AMP_CPU_FP32)

/* ---- average: (input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) ---- */
static int avg_pool(const lc_value *in, lc_tensor **out, int nd, int64_t divisor)
{
    int64_t window[4 * MAX_ND];
    int     dtype = in(0)->dtype;
    bool    good = dtype == LC_i64 || dtype == LC_f32 || dtype == LC_f64 || (nd < 3 && lc_is_floating(in(0)->dtype));
    if (nd == 2 && in(0)->ndim < 3)
        return lc_fail_int(LC_IndexError, "avg_pool2d: Expected 3D or 4D (batch mode) input, but got: %s", LC_SHAPE(in(0)));
    if (refuse(in(0), "avg_pool", good) < 0 || read_window(in(0), nd, &in[1], &in[2], &in[3], NULL, in[4].b, window) < 0)
        return -1;
    for (int d = 0; d < nd && nd == 3; d++) /* in three dimensions padding does not help */
        if (in(0)->shape[in(0)->ndim - nd + d] < window[d])
            return lc_fail_int(LC_ShapeMismatch, "avg_pool3d: input %s is smaller than the kernel", LC_SHAPE(in(0)));
    return (out[0] = lc__avg_pool(in(0), window, 4 * nd, in[4].b, in[5].b, divisor)) ? 0 : -1;
}
static int avg_pool_over(const lc_value *in, lc_tensor **out, int nd)
{
    int64_t divisor = 0;
    if (int_argument(&in[6], &divisor) && !divisor) return lc_fail_int(LC_LucidError, "divisor must be not zero");
    return avg_pool(in, out, nd, divisor);
}
#define AVG_WINDOWS WINDOWS "ceil_mode: bool = False, count_include_pad: bool = True"
#define DIVIDED     AVG_WINDOWS ", divisor_override: int | None = None"
#define AVG_POOL(op, args, function, dims, ...)                                                                                \
    COMPOSITE(op, function)                                                                                                    \
    LC_OP(op, .sig = #op args ") -> Tensor", .doc = "The mean of each window over the last " dims ".", SPACE,                  \
          .call = op##_call, ##__VA_ARGS__);
AVG_POOL(avg_pool1d, AVG_WINDOWS, avg_pool(in, out, 1, 0), "dimension")
AVG_POOL(avg_pool2d, DIVIDED, avg_pool_over(in, out, 2), "two dimensions", .out = true)
AVG_POOL(avg_pool3d, DIVIDED, avg_pool_over(in, out, 3), "three dimensions", .out = true, .amp = LC_AMP_CPU_FP32)

/* ---- adaptive: (input, output_size) ---- */
static bool has_elements(const lc_tensor *x, int nd) /* in every plane; there may be none */
{
    int64_t n = 1;
    for (int d = x->ndim - nd; d < x->ndim; d++) n *= x->shape[d] != 0;
    return n;
}
/* mean: average pooling, for which PyTorch checks less: nothing if there is one window; in one or two dimensions only that
 * there are elements. */
static int adaptive_size(const lc_value *in, int nd, bool mean, int64_t *size)
{
    const lc_tensor *x = in(0);
    int              n = in[1].n;
    if (nd > 1 && n > 1 && x->ndim <= n)
        return lc_fail_int(LC_ValueError, "Input dimension should be at least %d, got %d", n + 1, x->ndim);
    if (n != nd && n != 1) return lc_fail_int(LC_LucidError, "adaptive pool: output_size must be %d ints, got %d", nd, n);
    for (int d = 0; d < nd; d++) size[d] = in[1].is[n == 1 ? 0 : d];
    bool one = mean && size[0] == 1 && size[nd - 1] == 1 && size[nd / 2] == 1;
    if (one && nd > 1) return 0;
    if (x->ndim <= nd || x->ndim > nd + 2) return check_input(x, nd, true);
    for (int d = 0; d < nd; d++)
        if (size[d] < 0)
            return lc_fail_int(LC_LucidError, "adaptive pool: elements of output_size must be greater than or equal to 0");
    if (!(mean && (one || (nd < 3 && has_elements(x, nd)))) && check_input(x, nd, true) < 0) return -1;
    return one ? 0 : refuse(x, "adaptive pool", lc_is_floating(x->dtype));
}
static int adaptive_avg(const lc_value *in, lc_tensor **out, int nd)
{
    int64_t size[MAX_ND];
    if (adaptive_size(in, nd, true, size) < 0) return -1;
    int64_t last[] = { -1, -2, -3 };
    bool    one = size[0] == 1 && size[nd - 1] == 1 && size[nd / 2] == 1; /* one window: the reduction is faster */
    return (out[0] = one ? lc_mean(in(0), last, nd, true) : lc__adaptive_avg_pool(in(0), size, nd)) ? 0 : -1;
}
static int adaptive_max(const lc_value *in, lc_tensor **out, int nd, bool both)
{
    int64_t size[MAX_ND];
    if (adaptive_size(in, nd, false, size) < 0) return -1;
    lc__adaptive_max_pool_out made = lc__adaptive_max_pool(in(0), size, nd);
    if (both) out[1] = made.indices;
    return (out[0] = made.out) ? 0 : -1;
}
#define SIZES "(input: Tensor, output_size: list[int]"
#define ADAPTIVE_AVG(op, nd, dims, ...)                                                                                        \
    COMPOSITE(op, adaptive_avg(in, out, nd))                                                                                   \
    LC_OP(op, .sig = #op SIZES ") -> Tensor", .doc = "Means of output_size windows over the last " dims ".", SPACE,            \
          .call = op##_call, ##__VA_ARGS__);
#define ADAPTIVE_MAX(op, nd, dims, ...)                                                                                        \
    COMPOSITE(op, adaptive_max(in, out, nd, false))                                                                            \
    LC_OP(op, .sig = #op SIZES ONE, .doc = "The largest elements of output_size windows over the last " dims ".", SPACE,       \
          .call = op##_call, ##__VA_ARGS__);                                                                                   \
    COMPOSITE(op##_both, adaptive_max(in, out, nd, true))                                                                      \
    LC_OP(op##_both, .sig = #op "_both" SIZES BOTH,                                                                            \
          .doc = "The largest elements of output_size windows over the last " dims ", and where they are.", SPACE, .py = #op,  \
          .call = op##_both_call, ##__VA_ARGS__);
ADAPTIVE_AVG(adaptive_avg_pool1d, 1, "dimension")
ADAPTIVE_AVG(adaptive_avg_pool2d, 2, "two dimensions")
ADAPTIVE_AVG(adaptive_avg_pool3d, 3, "three dimensions", .amp = LC_AMP_CPU_FP32)
ADAPTIVE_MAX(adaptive_max_pool1d, 1, "dimension")
ADAPTIVE_MAX(adaptive_max_pool2d, 2, "two dimensions")
ADAPTIVE_MAX(adaptive_max_pool3d, 3, "three dimensions", .amp = LC_AMP_CPU_FP32)

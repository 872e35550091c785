/* max_unpool1d to 3d: values at the indices that max_pool returned, zeros elsewhere. A scatter into planes; of equal indices
 * the last one wins. */
#include "../rules.h"

enum { MAX_ND = 3 };

/* (input, indices, kernel_size, stride, padding, output_size). Like PyTorch's, the sizes are those of kernel_size, however many it has. */
static int unpooled_size(const lc_value *in, int nd, int64_t *size)
{
    const lc_tensor *x = in(0);
    const lc_value  *kernel = &in[2], *stride = in[3].tag == LC_IS_none ? kernel : &in[3], *padding = &in[4], *asked = &in[5];
    bool             is_asked = asked->tag != LC_IS_none;
    int              n = kernel->n, skip = is_asked && asked->n == n + 2 ? 2 : 0;
    if (x->ndim < n || stride->n < n || padding->n < n)
        return lc_fail_int(LC_IndexError, "max_unpool%dd: kernel_size, stride and padding do not fit each other and input %s",
                           nd, LC_SHAPE(x));
    if (is_asked && asked->n - skip != n)
        return lc_fail_int(LC_ValueError,
                           "output_size should be a sequence containing %d or %d elements, but it has a length of '%d'", n,
                           n + 2, asked->n);
    for (int d = 0; d < n; d++) {
        int64_t  s = stride->is[d];
        __int128 exact = (__int128)(x->shape[x->ndim - n + d] - 1) * s + kernel->is[d] - 2 * (__int128)padding->is[d];
        int64_t  usual = exact < INT64_MIN / 2 ? INT64_MIN / 2 : (int64_t)exact;
        if (exact > INT64_MAX / 2 || s > INT64_MAX / 2)
            return lc_fail_int(LC_TypeError, "max_unpool%dd: kernel_size, stride and padding make too large a result", nd);
        int64_t made = is_asked ? asked->is[d + skip] : usual;
        if (is_asked && (made <= usual - s || made >= usual + s))
            return lc_fail_int(LC_ValueError, "invalid output_size: dim %d must be between %lld and %lld, but is %lld", d,
                               (long long)(usual - s), (long long)(usual + s), (long long)made);
        if (made < 0)
            return lc_fail_int(LC_ValueError,
                               "max_unpooling: output_size must contain non-negative spatial dimensions, but got %lld",
                               (long long)made);
        if (d < nd) size[d] = made;
    }
    if (n != nd) return lc_fail_int(LC_LucidError, "max_unpool%dd: expected %d sizes, but got %d", nd, nd, n);
    for (int d = 0; d < nd && nd == 3; d++)
        if (stride->is[d] <= 0)
            return lc_fail_int(LC_LucidError, "strides should be greater than zero, but got %lld", (long long)stride->is[d]);
    return 0;
}
static int check_operands(const lc_tensor *x, const lc_tensor *indices, int nd)
{
    if (indices->dtype != LC_i64)
        return lc_fail_int(LC_DtypeMismatch, "elements in indices should be type int64 but got: %s", LC_SHAPE(indices));
    if (x->ndim != nd + 1 && x->ndim != nd + 2)
        return lc_fail_int(LC_ShapeMismatch, "max_unpool%dd: expected %dD or %dD input, but got %s", nd, nd + 1, nd + 2,
                           LC_SHAPE(x));
    if (x->ndim != indices->ndim || !lc_same_sizes(x->shape, indices->shape, x->ndim))
        return lc_fail_int(LC_ShapeMismatch, "Expected shape of indices to be same as that of the input, but got %s and %s",
                           LC_SHAPE(x), LC_SHAPE(indices));
    for (int d = x->ndim - nd - 1; d < x->ndim; d++)
        if (!x->shape[d])
            return lc_fail_int(LC_ShapeMismatch,
                               "max_unpool%dd: expected input to have non-zero size for non-batch dimensions, but got %s", nd,
                               LC_SHAPE(x));
    if (!lc_is_floating(x->dtype))
        return lc_fail_int(LC_NotImplementedError, "max_unpool%dd is not implemented for %s", nd, LC_SHAPE(x));
    return 0;
}
static int unpool(const lc_value *in, int nd, lc_tensor **out)
{
    lc_tensor *x = in(0), *indices = in(1);
    int64_t    size[MAX_ND], shape[LC_MAX_DIMS], area = 1, planes = 1, values = 1;
    if (unpooled_size(in, nd, size) < 0 || check_operands(x, indices, nd) < 0) return -1;
    int kept = x->ndim - nd;
    for (int d = 0; d < kept; d++) planes *= shape[d] = x->shape[d];
    for (int d = 0; d < nd; d++) {
        values *= x->shape[kept + d];
        if (__builtin_mul_overflow(area, shape[kept + d] = size[d], &area))
            return lc_fail_int(LC_LucidError, "max_unpool%dd: a result of size %s is too large", nd, LC_SIZES(size, nd));
    }
    if (!area) { /* no elements, so PyTorch checks no index either */
        lc_tensor *zero = lc_sum(lc_narrow(x, 0, 0, 0), NULL, 0, false);
        return (out[0] = lc_contiguous(lc_expand(zero, shape, x->ndim), LC_CONTIGUOUS_FORMAT)) ? 0 : -1;
    }
    lc_tensor *flat = lc_reshape(x, (int64_t[]){ planes, values }, 2),
              *at = lc_reshape(indices, (int64_t[]){ planes, values }, 2);
    lc_tensor *empty = lc_zeros((int64_t[]){ planes, area }, 2, LC_OF_DTYPE((lc_dtype)x->dtype),
                                (lc_value){ .tag = LC_IS_device, .dev = x->device });
    lc_tensor *made = lc_reshape(lc_scatter(empty, 1, at, flat, NULL), shape, x->ndim);
    if (made && nd == 2 && suggested_format(x) != LC_CONTIGUOUS_FORMAT) made = lc_contiguous(made, suggested_format(x));
    return (out[0] = made) ? 0 : -1;
}

#define UNPOOL(op, nd, sizes, dims)                                                                                            \
    COMPOSITE(op, unpool(in, nd, out))                                                                                         \
    LC_OP(op,                                                                                                                  \
          .sig = #op "(input: Tensor, indices: Tensor, kernel_size: " sizes ", stride: " sizes                                 \
                     " | None = None, padding: " sizes " = 0, output_size: tuple[int, ...] | None = None) -> Tensor",          \
          .doc = "Values put back where max_pool" #nd "d found them in the last " dims ", and zeros elsewhere.",               \
          .ns = "nn.functional", .amp = LC_AMP_CPU_FP32, .call = op##_call);
UNPOOL(max_unpool1d, 1, "tuple[int]", "dimension")
UNPOOL(max_unpool2d, 2, "tuple[int, int]", "two dimensions")
UNPOOL(max_unpool3d, 3, "tuple[int, int, int]", "three dimensions")

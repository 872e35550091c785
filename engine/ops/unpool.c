/* max_unpool1d to 3d: values at the places that max_pool found, zeros elsewhere. A scatter into planes; of equal places the last one counts. */
#include "rules.h"

enum { MAX_ND = 3 };

static int each_dim(const lc_value *v, int nd, const int64_t *other, const char *name, int64_t *to)
{
    int n = v->tag == LC_IS_none ? 0 : v->n;
    if (n != 1 && n != nd && (n || !other))
        return lc_fail_int(LC_LucidError, "max_unpool%dd: %s must be one number, or %d", nd, name, nd);
    for (int d = 0; d < nd; d++) to[d] = n ? v->is[n == 1 ? 0 : d] : other[d];
    return 0;
}
/* (input, indices, kernel_size, stride, padding, output_size) */
static int unpooled_size(const lc_value *in, int nd, int64_t *size)
{
    const lc_tensor *x = in(0);
    const lc_value  *asked = &in[5];
    int64_t          k[MAX_ND], s[MAX_ND], p[MAX_ND];
    if (each_dim(&in[2], nd, NULL, "kernel_size", k) < 0 || each_dim(&in[3], nd, k, "stride", s) < 0 ||
        each_dim(&in[4], nd, NULL, "padding", p) < 0)
        return -1;
    if (x->ndim < nd)
        return lc_fail_int(LC_ShapeMismatch, "max_unpool%dd: expected %dD or %dD input, but got %s", nd, nd + 1, nd + 2,
                           LC_SHAPE(x));
    int skip = asked->tag != LC_IS_none && asked->n == nd + 2 ? 2 : 0;
    if (asked->tag != LC_IS_none && asked->n - skip != nd && !(nd > 1 && asked->n == 1))
        return lc_fail_int(LC_ValueError,
                           "output_size should be a sequence containing %d or %d elements, but it has a length of '%d'", nd,
                           nd + 2, asked->n);
    for (int d = 0; d < nd; d++) {
        __int128 exact = (__int128)(x->shape[x->ndim - nd + d] - 1) * s[d] + k[d] - 2 * (__int128)p[d];
        int64_t  usual = exact < INT64_MIN / 2 ? INT64_MIN / 2 : (int64_t)exact;
        if (exact > INT64_MAX / 2 || s[d] > INT64_MAX / 2)
            return lc_fail_int(LC_TypeError, "max_unpool%dd: kernel_size, stride and padding make too large a result", nd);
        size[d] = asked->tag == LC_IS_none ? usual : asked->is[asked->n == 1 ? 0 : d + skip];
        if (asked->tag != LC_IS_none && (size[d] <= usual - s[d] || size[d] >= usual + s[d]))
            return lc_fail_int(LC_ValueError, "invalid output_size: dim %d must be between %lld and %lld, but is %lld", d,
                               (long long)(usual - s[d]), (long long)(usual + s[d]), (long long)size[d]);
        if (size[d] < 0)
            return lc_fail_int(LC_ValueError,
                               "max_unpooling: output_size must contain non-negative spatial dimensions, but got %lld",
                               (long long)size[d]);
        if (nd == 3 && s[d] <= 0)
            return lc_fail_int(LC_LucidError, "strides should be greater than zero, but got %lld", (long long)s[d]);
    }
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
    if (!lc_is_floating(x->dtype) && (x->dtype == LC_b8 || lc_is_complex(x->dtype)))
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
    lc_tensor *flat = lc_reshape(x, (int64_t[]){ planes, values }, 2),
              *at = lc_reshape(indices, (int64_t[]){ planes, values }, 2);
    lc_tensor *empty = lc_zeros((int64_t[]){ planes, area }, 2, LC_OF_DTYPE((lc_dtype)x->dtype),
                                (lc_value){ .tag = LC_IS_device, .dev = x->device });
    lc_tensor *made = lc_reshape(lc_scatter(empty, 1, at, flat, NULL), shape, x->ndim);
    if (made && nd == 2 && suggested_format(x) != LC_CONTIGUOUS_FORMAT) made = lc_contiguous(made, suggested_format(x));
    return (out[0] = made) ? 0 : -1;
}

#define UNPOOL(op, nd, dims)                                                                                                   \
    COMPOSITE(op, unpool(in, nd, out))                                                                                         \
    LC_OP(op,                                                                                                                  \
          .sig = #op "(input: Tensor, indices: Tensor, kernel_size: list[int], stride: list[int] | None = None, padding: "     \
                     "list[int] = 0, output_size: tuple[int, ...] | None = None) -> Tensor",                                   \
          .doc = "Values put back where max_pool" #nd "d found them in the last " dims ", and zeros elsewhere.",               \
          .ns = "nn.functional", .amp = LC_AMP_CPU_FP32, .call = op##_call);
UNPOOL(max_unpool1d, 1, "dimension")
UNPOOL(max_unpool2d, 2, "two dimensions")
UNPOOL(max_unpool3d, 3, "three dimensions")

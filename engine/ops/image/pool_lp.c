/* lp_pool1d to 3d: the p-norm of each window, computed from averages as PyTorch does. */
#include "../rules.h"
#include <math.h>

/* (input, norm_type, kernel_size, stride, ceil_mode) */
static lc_tensor *pooled(lc_tensor *x, const lc_value *in, int nd, bool average)
{
    const int64_t *k = in[2].is, *s = in[3].tag == LC_IS_none ? NULL : in[3].is;
    int            n = in[2].n, n_s = s ? in[3].n : 0;
    bool           ceil = in[4].b;
    int64_t        zero = 0, one = 1;
    if (average)
        return nd == 1   ? lc_avg_pool1d(x, k, n, s, n_s, &zero, 1, ceil, true)
               : nd == 2 ? lc_avg_pool2d(x, k, n, s, n_s, &zero, 1, ceil, true, LC_ABSENT)
                         : lc_avg_pool3d(x, k, n, s, n_s, &zero, 1, ceil, true, LC_ABSENT);
    return nd == 1   ? lc_max_pool1d(x, k, n, s, n_s, &zero, 1, &one, 1, ceil, false)
           : nd == 2 ? lc_max_pool2d(x, k, n, s, n_s, &zero, 1, &one, 1, ceil, false)
                     : lc_max_pool3d(x, k, n, s, n_s, &zero, 1, &one, 1, ceil, false);
}
static int lp_pool(const lc_value *in, int nd, lc_tensor **out)
{
    double p = lc_number_of(&in[1]), elements = 1;
    if (isinf(p)) {
        lc_tensor *size = lc_abs(in(0)), *most = pooled(p > 0 ? size : lc_neg(size), in, nd, false);
        return (out[0] = p > 0 ? most : lc_neg(most)) ? 0 : -1;
    }
    if (in[2].n != nd)
        return lc_fail_int(nd == 1 ? LC_LucidError : LC_ValueError,
                           "lp_pool%dd: kernel_size must either be a single int, or a tuple of %d ints", nd, nd);
    for (int d = 0; d < nd; d++) elements *= (double)in[2].is[d];
    if (p == 0) return lc_fail_int(LC_ZeroDivisionError, "lp_pool%dd: division by a norm_type of zero", nd);
    lc_tensor *mean = pooled(lc_pow(in(0), number_operand(&in[1])), in, nd, true);
    lc_tensor *sum = lc_mul(lc_mul(lc_sign(mean), lc_relu(lc_abs(mean))), LC_NUMBER(elements));
    return (out[0] = lc_pow(sum, LC_NUMBER(1 / p))) ? 0 : -1;
}
#define LP_POOL(op, sizes, about, ...)                                                                                         \
    LC_OP(op,                                                                                                                  \
          .sig = #op "(input: Tensor, norm_type: Number, kernel_size: " sizes ", stride: list[int] | None = None, ceil_mode: " \
                     "bool = False) -> Tensor",                                                                                \
          .doc = about, .ns = "nn.functional", .call = op##_call, ##__VA_ARGS__);
static int lp_pool1d_call(const lc_value *in, lc_tensor **out)
{
    lc_value args[] = { in[0], in[1], { .tag = LC_IS_ints, .n = 1, .is = &in[2].i }, in[3], in[4] };
    return lp_pool(args, 1, out);
}
/* A list of one is a valid kernel_size only for the infinity norm: otherwise PyTorch multiplies by it, which fails. */
static int lp_pool1d_list_call(const lc_value *in, lc_tensor **out)
{
    if (in[2].n == 1 && !isinf(lc_number_of(&in[1]))) return lc_fail_int(LC_TypeError, "lp_pool1d: kernel_size must be an int");
    return lp_pool(in, 1, out);
}
COMPOSITE(lp_pool2d, lp_pool(in, 2, out))
COMPOSITE(lp_pool3d, lp_pool(in, 3, out))
LP_POOL(lp_pool1d, "int", "The norm of each window over the last dimension.")
LP_POOL(lp_pool1d_list, "tuple[int, ...]", "The same of a list.", .py = "lp_pool1d")
LP_POOL(lp_pool2d, "tuple[int, int]", "The norm of each window over the last two dimensions.")
LP_POOL(lp_pool3d, "tuple[int, int, int]", "The norm of each window over the last three dimensions.")

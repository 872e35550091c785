/* Running sums and products along a dimension. */
#include "rules.h"

/* dtype= says what to compute in; integers and bool become int64 otherwise. */
static int scan_shape(const lc_record *call, lc_spec *out)
{
    int             d;
    const lc_value *dtype = &call->args[2];
    if (dim_index(call->args[1].i, call->in[0]->ndim, &d) < 0) return -1;
    return spec_like(call, out, call->in[0], dtype->tag == LC_IS_dtype ? dtype->dt : call->dtype), 0;
}
static int scan_run(const lc_record *call)
{
    const lc_value *asked = &call->args[2];
    lc_dtype        result = asked->tag == LC_IS_dtype ? asked->dt : call->dtype, dtype = working_dtype(result);
    lc_row_args     args;
    lc_record       scan = *call;
    if (dim_index(call->args[1].i, call->in[0]->ndim, &args.dim) < 0) return -1;
    lc_tensor *narrow = in_dtype(call->in[0], result), *in = narrow ? in_dtype(narrow, dtype) : NULL;
    lc_tensor *out = destination(call->out[0], dtype, call->in, call->n_in);
    args.in = in, args.y = NULL, args.out = out, scan.dtype = dtype;
    int rc = in && out ? run_kernel_with(&scan, &args) : -1;
    lc_release(in), lc_release(narrow);
    return deliver(call->out[0], out, rc);
}

/* The gradient of position i is the sum over j >= i: a running sum from the other end. */
static lc_tensor *summed_from_behind(lc_tensor *g, int64_t dim)
{
    if (!g || !g->ndim) return g; /* NULL: an earlier failure passes through */
    return lc_flip(lc_cumsum(lc_flip(g, &dim, 1), dim, (lc_value){ .tag = LC_IS_none }), &dim, 1);
}
GRAD(cumsum) { dx[0] = summed_from_behind(g[0], in[1].i); }
LC_OP(cumsum, .sig = "cumsum(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor",
      .doc = "Running sums along a dimension.", .method = true, .inplace = true, .out = true, .promote = LC_TO_COUNT,
      .amp = LC_AMP_FP32, .shape = scan_shape, .run = scan_run, .grad = cumsum_grad);

/* Where the input has no zero: sum_{j >= i} g_j y_j / x_i. A zero needs the products that leave it out: replacing the first zero of
 * each line by one gives them for that position, up to the next zero; all other positions behind it get nothing. */
GRAD(cumprod)
{
    lc_tensor *x = in(0), *y0 = y[0], *none = LC_INTEGER(0);
    lc_value   same = { .tag = LC_IS_none };
    int64_t    dim = in[1].i;
    if (!x->ndim) {
        dx[0] = g[0];
        return;
    }
    lc_tensor *xc = conj_of(x), *yc = conj_of(y0);
    lc_tensor *zero = lc_eq(x, none), *zeros = lc_cumsum(zero, dim, same); /* how many so far, this one included */
    lc_tensor *first = lc_logical_and(zero, lc_eq(zeros, LC_INTEGER(1)));
    lc_tensor *before = lc_div(summed_from_behind(lc_mul(g[0], yc), dim), lc_masked_fill(xc, zero, LC_INTEGER(1)));
    lc_tensor *without = lc_cumprod(lc_masked_fill(xc, first, LC_INTEGER(1)), dim, same);
    lc_tensor *between = lc_eq(zeros, LC_INTEGER(1)); /* from the first zero to before the second */
    lc_tensor *at_first = lc_sum(lc_mul(g[0], lc_masked_fill(without, lc_logical_not(between), none)), &dim, 1, true);
    dx[0] = lc_where(first, at_first, lc_masked_fill(before, lc_gt(zeros, none), none));
}
LC_OP(cumprod, .sig = "cumprod(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor",
      .doc = "Running products along a dimension.", .method = true, .inplace = true, .out = true, .promote = LC_TO_COUNT,
      .amp = LC_AMP_FP32, .shape = scan_shape, .run = scan_run, .grad = cumprod_grad, .saves = IN(0) | OUT(0));

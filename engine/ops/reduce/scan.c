/* Scans: running sums, products, extremes and logarithms of sums along a dimension. */
#include "../rules.h"
#include <float.h>

/* The computing dtype is dtype=, else that of out=; else integers and bool become int64. */
static lc_dtype scan_dtype(const lc_record *call)
{
    const lc_value *asked = &call->args[2];
    return asked->tag == LC_IS_dtype ? asked->dt : call->out_given ? (lc_dtype)call->out[0]->dtype : call->dtype;
}
static int scan_shape(const lc_record *call, lc_spec *out)
{
    int d;
    if (dim_index(call->args[1].i, call->in[0]->ndim, &d) < 0) return -1;
    if (call->op->writes && call->args[2].tag == LC_IS_dtype && call->args[2].dt != call->in[0]->dtype)
        return lc_fail_int(LC_DtypeMismatch, "%s: in place, the dtype (%s) must be that of the input (%s)", call->op->name,
                           lc_dtypes[call->args[2].dt].name, lc_dtypes[call->in[0]->dtype].name);
    return spec_like(call, out, call->in[0], scan_dtype(call)), 0;
}
/* The tensor that the kernel writes: out itself if it is contiguous, of this dtype and shares no memory with the input. */
static lc_tensor *scanned_to(const lc_record *call, lc_tensor *out, lc_dtype dtype)
{
    lc_tensor *to = destination(out, dtype, call->in, call->n_in);
    if (to && !to->is_contiguous) lc_release(to), to = lc_tensor_new(dtype, out->device, out->ndim, out->shape);
    return to;
}
static int scan_as(const lc_record *call, lc_dtype result, lc_tensor *index)
{
    lc_dtype     dtype = working_dtype(result);
    lc_scan_args args = { .index = NULL };
    lc_record    scan = *call;
    if (dim_index(call->args[1].i, call->in[0]->ndim, &args.dim) < 0) return -1;
    lc_tensor *narrow = in_dtype(call->in[0], result), *in = narrow ? packed(narrow, dtype) : NULL;
    lc_tensor *out = scanned_to(call, call->out[0], dtype), *at = index ? scanned_to(call, index, LC_i64) : NULL;
    args.in = in, args.out = out, args.index = at, scan.dtype = dtype;
    int rc = in && out && (at || !index) ? run_kernel_with(&scan, &args) : -1;
    lc_release(in), lc_release(narrow);
    rc = deliver(call->out[0], out, rc);
    return index ? deliver(index, at, rc) : rc;
}
static int scan_run(const lc_record *call) { return scan_as(call, scan_dtype(call), NULL); }

/* The gradient of position i is the sum over j >= i: a running sum from the other end. */
static lc_tensor *summed_from_behind(lc_tensor *g, int64_t dim)
{
    if (!g || !g->ndim) return g; /* NULL: an earlier failure passes through */
    return lc_flip(lc_cumsum(lc_flip(g, &dim, 1), dim, (lc_value){ .tag = LC_IS_none }), &dim, 1);
}
GRAD(cumsum) { dx[0] = summed_from_behind(g[0], in[1].i); }
LC_OP(cumsum, .batching = LC_BATCH_DIMS, .casts_out = true,
      .sig = "cumsum(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor",
      .doc = "Running sums along a dimension.", .method = true, .inplace = true, .out = true, .promote = LC_TO_COUNT,
      .amp = LC_AMP_GPU_FP32, .shape = scan_shape, .run = scan_run, .grad = cumsum_grad);

/* Position i of the gradient, correct with zeros and differentiable again: sum_{j >= i} g_j times the product of all x up to
 * j but x_i. */
static lc_tensor *cumprod_slope_at(lc_tensor *g, lc_tensor *x, int64_t dim, int64_t i)
{
    int64_t    n = x->shape[dim];
    lc_tensor *before = lc_prod(lc_narrow(x, dim, 0, i), LC_I(dim), true), *omitted = before;
    if (i < n - 1) {
        lc_tensor *behind = lc_cumprod(lc_narrow(x, dim, i + 1, n - i - 1), dim, LC_ABSENT);
        omitted = lc_cat((lc_tensor *[]){ before, lc_mul(before, behind) }, 2, dim);
    }
    return lc_sum(lc_mul(lc_narrow(g, dim, i, n - i), omitted), &dim, 1, true);
}
static lc_tensor *cumprod_slope(lc_tensor *g, lc_tensor *x, int64_t dim)
{
    int64_t     n = x->shape[dim];
    lc_tensor **part = lc_alloc((size_t)n * sizeof *part), *whole = NULL;
    int64_t     i = 0;
    for (; part && i < n && (part[i] = cumprod_slope_at(g, x, dim, i)); i++) {}
    if (part && i == n) whole = lc_cat(part, (int)n, dim);
    lc_free(part, (size_t)n * sizeof *part);
    return whole;
}
static bool has_zeros(lc_tensor *x) /* a failure counts as one: the next op reports it */
{
    lc_tensor *any = lc_any(lc_eq(x, LC_INTEGER(0)), NULL, 0, false);
    lc_tensor *host = any ? lc__to_copy(any, LC_b8, (lc_device){ LC_CPU, 0 }, LC_CONTIGUOUS_FORMAT) : NULL;
    return !host || !host->data || *(const uint8_t *)host->data;
}

/* Where the input has no zero: sum_{j >= i} g_j y_j / x_i. A zero needs the products that leave it out: replacing the first
 * zero of each line by one gives them for that position, up to the next zero; all later positions get zero. That is valid
 * for these values only, so with zeros a gradient that will be differentiated again is computed position by position. */
GRAD(cumprod)
{
    lc_tensor *x = in(0), *y0 = y[0], *none = LC_INTEGER(0);
    lc_value   same = { .tag = LC_IS_none };
    int64_t    dim = in[1].i < 0 ? in[1].i + x->ndim : in[1].i;
    if (x->numel <= 1 || !x->ndim) {
        dx[0] = g[0];
        return;
    }
    lc_tensor *xc = conj_of(x), *yc = conj_of(y0);
    if (!(lc_modes & LC_NO_GRAD) && has_zeros(x)) {
        dx[0] = cumprod_slope(g[0], xc, dim);
        return;
    }
    lc_tensor *zero = lc_eq(x, none), *zeros = lc_cumsum(zero, dim, same); /* how many so far, this one included */
    lc_tensor *first = lc_logical_and(zero, lc_eq(zeros, LC_INTEGER(1)));
    lc_tensor *before = lc_div(summed_from_behind(lc_mul(g[0], yc), dim), lc_masked_fill(xc, zero, LC_INTEGER(1)));
    lc_tensor *without = lc_cumprod(lc_masked_fill(xc, first, LC_INTEGER(1)), dim, same);
    lc_tensor *between = lc_eq(zeros, LC_INTEGER(1)); /* from the first zero to before the second */
    lc_tensor *at_first = lc_sum(lc_mul(g[0], lc_masked_fill(without, lc_logical_not(between), none)), &dim, 1, true);
    dx[0] = lc_where(first, at_first, lc_masked_fill(before, lc_gt(zeros, none), none));
}
LC_OP(cumprod, .batching = LC_BATCH_DIMS, .casts_out = true,
      .sig = "cumprod(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor",
      .doc = "Running products along a dimension.", .method = true, .inplace = true, .out = true, .promote = LC_TO_COUNT,
      .amp = LC_AMP_GPU_FP32, .shape = scan_shape, .run = scan_run, .grad = cumprod_grad, .saves = IN(0) | OUT(0));

/* ---- running extremes ---- */

static int extremes_shape(const lc_record *call, lc_spec *out)
{
    int d;
    if (dim_index(call->args[1].i, call->in[0]->ndim, &d) < 0) return -1;
    if (lc_is_unsigned(call->dtype) && call->dtype != LC_u8) return no_kernel(call);
    spec_like(call, &out[0], call->in[0], call->dtype);
    return spec_like(call, &out[1], call->in[0], LC_i64), 0;
}
static int extremes_run(const lc_record *call) { return scan_as(call, call->dtype, call->out[1]); }
GRAD(extremes) { dx[0] = in(0)->ndim ? lc_scatter_add(zeros_like(in(0)), in[1].i, y[1], g[0]) : g[0]; }
#define EXTREMES                                                                                                               \
    .method = true, .out = true, .shape = extremes_shape, .run = extremes_run, .grad = extremes_grad, .saves = OUT(1)
LC_OP(cummax, .batching = LC_BATCH_DIMS, .sig = "cummax(input: Tensor, dim: int) -> (values: Tensor, indices: Tensor)",
      .doc = "Largest element so far along a dimension, and where the last such is.", EXTREMES);
LC_OP(cummin, .batching = LC_BATCH_DIMS, .sig = "cummin(input: Tensor, dim: int) -> (values: Tensor, indices: Tensor)",
      .doc = "Smallest element so far along a dimension, and where the last such is.", EXTREMES);

/* ---- logarithms of running sums of exponentials ---- */

static int log_scan_shape(const lc_record *call, lc_spec *out)
{
    int d;
    if (lc_class_of(call->dtype) < LC_FLOAT || call->dtype == LC_c32) return no_kernel(call);
    if (dim_index(call->args[1].i, call->in[0]->ndim, &d) < 0) return -1;
    return spec_like(call, out, call->in[0], call->dtype), 0;
}
static int log_scan_run(const lc_record *call) { return scan_as(call, call->dtype, NULL); }

/* sum_{j >= i} g_j exp(x_i - y_j), in logarithms throughout, so that nothing overflows: a scan from the other end for each sign of g. */
static lc_tensor *log_summed_from_behind(lc_tensor *t, int64_t dim)
{
    return lc_flip(lc_logcumsumexp(lc_flip(t, &dim, 1), dim), &dim, 1);
}
static double lowest_of(lc_dtype dtype) { return dtype == LC_f64 ? -DBL_MAX : dtype == LC_f16 ? -65504 : -0x1.fep127; }
GRAD(logcumsumexp)
{
    lc_tensor *x = in(0), *none = LC_NUMBER(lowest_of((lc_dtype)in(0)->dtype));
    int64_t    dim = in[1].i;
    if (x->ndim == 0) return (void)(dx[0] = g[0]);
    if (lc_is_complex(x->dtype)) {
        lc_tensor *logs = lc_log(conj_of(g[0]));
        dx[0] = conj_of(lc_exp(lc_add(log_summed_from_behind(lc_sub(logs, y[0]), dim), x)));
        return;
    }
    lc_tensor *logs = lc_log(lc_abs(g[0])), *part[2];
    for (int k = 0; k < 2; k++) {
        lc_tensor *mine = k ? lc_lt(g[0], LC_INTEGER(0)) : lc_gt(g[0], LC_INTEGER(0));
        lc_tensor *share = lc_sub(lc_where(mine, logs, none), y[0]);
        part[k] = lc_exp(lc_add(log_summed_from_behind(share, dim), x));
    }
    dx[0] = lc_sub(part[0], part[1]);
}
LC_OP(logcumsumexp, .batching = LC_BATCH_DIMS, .sig = "logcumsumexp(input: Tensor, dim: int) -> Tensor",
      .doc = "log(exp(input[0]) + ... + exp(input[i])) along a dimension, without overflow.", .method = true, .out = true,
      .shape = log_scan_shape, .run = log_scan_run, .grad = logcumsumexp_grad, .saves = IN(0) | OUT(0));

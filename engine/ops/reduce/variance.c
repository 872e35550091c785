/* Variance and standard deviation, with a correction or in the older forms with unbiased=; covariance and correlation. */
#include "reduce.h"

static double correction_of(const lc_value *v) { return v->tag == LC_IS_none ? 1 : lc_number_of(v); }
static int    variance_shape(const lc_record *call, lc_spec *out)
{
    uint64_t mask;
    if (lc_class_of(call->dtype) < LC_FLOAT)
        return lc_fail_int(LC_LucidError, "std and var only support floating point and complex dtypes");
    if (reduced_mask(call, &mask) < 0) return -1;
    if ((double)reduced_count(call->in[0], mask) - correction_of(&call->args[2]) <= 0)
        lc_warn("%s(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel "
                "divided by "
                "output numel).",
                call->op->name);
    return reduced_to(call, out, lc_real_of(call->dtype));
}
/* The variance of complex numbers is that of their real parts plus that of their imaginary parts. */
static int part_variance(const lc_record *call, int part, lc_tensor *to)
{
    lc_tensor *x = call->in[0], *view;
    lc_dtype   real = lc_real_of(x->dtype);
    int64_t    stride[LC_MAX_DIMS];
    lc_record  typed = *call;
    for (int d = 0; d < x->ndim; d++) stride[d] = 2 * x->stride[d];
    if (!(view = lc_tensor_view_as(x, real, x->ndim, x->shape, stride, part * lc_size_of(real)))) return -1;
    typed.op = &lc_op_var, typed.in = &view, typed.dtype = real;
    int rc = reduce_into(&typed, to, NULL, real, correction_of(&call->args[2]));
    lc_release(view);
    return rc;
}
static int complex_variance(const lc_record *call)
{
    lc_tensor *out = call->out[0], *imaginary = lc_tensor_new((lc_dtype)out->dtype, out->device, out->ndim, out->shape);
    lc_record  typed = *call;
    int        rc = imaginary && part_variance(call, 0, out) == 0 && part_variance(call, 1, imaginary) == 0 ? 0 : -1;
    typed.dtype = (lc_dtype)out->dtype;
    if (rc == 0) rc = elementwise_as(&typed, LC_OP_add, (lc_tensor *[]){ out, imaginary }, 2);
    if (rc == 0 && call->op->kernel == LC_OP_std) rc = elementwise_as(&typed, LC_OP_sqrt, &out, 1);
    lc_release(imaginary);
    return rc;
}
static int variance_run(const lc_record *call)
{
    if (lc_is_complex(call->dtype)) return complex_variance(call);
    return reduce_into(call, call->out[0], NULL, call->dtype, correction_of(&call->args[2]));
}
static lc_tensor *variance_slope(lc_tensor *g, lc_tensor *x, const lc_value *dim, const lc_value *correction)
{
    uint64_t mask;
    int64_t  dims[LC_MAX_DIMS];
    int      n = 0;
    if (dims_mask(dim, x->ndim, "var", &mask) < 0) return NULL;
    for (int d = 0; d < x->ndim; d++)
        if (mask >> d & 1) dims[n++] = d;
    double     divisor = (double)reduced_count(x, mask) - correction_of(correction);
    lc_tensor *centred = lc_sub(x, n ? lc_mean(x, dims, n, true) : x);
    return lc_mul(lc_mul(restored(g, x, dim), LC_NUMBER(2 / (divisor > 0 ? divisor : 0))), centred);
}
GRAD(var) { dx[0] = variance_slope(g[0], in(0), &in[1], &in[2]); }
GRAD(std)
{
    lc_tensor *of_variance = lc_where(lc_eq(y[0], LC_INTEGER(0)), LC_INTEGER(0), lc_div(g[0], lc_mul(y[0], LC_INTEGER(2))));
    dx[0] = variance_slope(of_variance, in(0), &in[1], &in[2]);
}
#define VARIANCE .casts_out = true, .shape = variance_shape, .kind = LC_KIND_REDUCTION, .run = variance_run
LC_OP(var,
      .sig =
          "var(input: Tensor, dim: list[int] | None = None, *, correction: Number | None = 1, keepdim: bool = False) -> Tensor",
      .doc = "Variance; the squares are divided by count - correction.", .method = true, .out = true, VARIANCE,
      .grad = var_grad, .saves = IN(0));
LC_OP(std,
      .sig =
          "std(input: Tensor, dim: list[int] | None = None, *, correction: Number | None = 1, keepdim: bool = False) -> Tensor",
      .doc = "Standard deviation; the squares are divided by count - correction.", .method = true, .out = true, VARIANCE,
      .grad = std_grad, .saves = IN(0) | OUT(0));

static int var_unbiased_call(const lc_value *in, lc_tensor **out)
{
    return (out[0] = lc_var(in(0), NULL, 0, LC_I(in[1].b), false)) ? 0 : -1;
}
LC_OP(var_unbiased, .py = "var", .sig = "var_unbiased(input: Tensor, unbiased: bool) -> Tensor",
      .doc = "var with correction 1 or 0.", .method = true, .call = var_unbiased_call);
static int var_unbiased_dim_call(const lc_value *in, lc_tensor **out)
{
    return (out[0] = lc_var(in(0), in[1].is, in[1].n, LC_I(in[2].b), in[3].b)) ? 0 : -1;
}
LC_OP(var_unbiased_dim, .py = "var",
      .sig = "var_unbiased_dim(input: Tensor, dim: list[int], unbiased: bool, keepdim: bool = False) -> Tensor",
      .doc = "var with correction 1 or 0.", .method = true, .out = true, .call = var_unbiased_dim_call);
static int std_unbiased_call(const lc_value *in, lc_tensor **out)
{
    return (out[0] = lc_std(in(0), NULL, 0, LC_I(in[1].b), false)) ? 0 : -1;
}
LC_OP(std_unbiased, .py = "std", .sig = "std_unbiased(input: Tensor, unbiased: bool) -> Tensor",
      .doc = "std with correction 1 or 0.", .method = true, .call = std_unbiased_call);
static int std_unbiased_dim_call(const lc_value *in, lc_tensor **out)
{
    return (out[0] = lc_std(in(0), in[1].is, in[1].n, LC_I(in[2].b), in[3].b)) ? 0 : -1;
}
LC_OP(std_unbiased_dim, .py = "std",
      .sig = "std_unbiased_dim(input: Tensor, dim: list[int], unbiased: bool, keepdim: bool = False) -> Tensor",
      .doc = "std with correction 1 or 0.", .method = true, .out = true, .call = std_unbiased_dim_call);

/* ---- variance and mean ---- */

static int with_mean(lc_tensor *variance, lc_tensor *mean, lc_tensor **out)
{
    return (out[0] = variance) && (out[1] = mean) ? 0 : -1;
}
static const int64_t *dims_of(const lc_value *v) { return v->tag == LC_IS_none ? NULL : v->is; }
static int            dims_count(const lc_value *v) { return v->tag == LC_IS_none ? 0 : v->n; }
#define MEAN_OF(dim, keepdim) lc_mean(in(0), dims_of(dim), dims_count(dim), keepdim)
static int var_mean_call(const lc_value *in, lc_tensor **out)
{
    return with_mean(lc_var(in(0), dims_of(&in[1]), dims_count(&in[1]), in[2], in[3].b), MEAN_OF(&in[1], in[3].b), out);
}
static int std_mean_call(const lc_value *in, lc_tensor **out)
{
    return with_mean(lc_std(in(0), dims_of(&in[1]), dims_count(&in[1]), in[2], in[3].b), MEAN_OF(&in[1], in[3].b), out);
}
static int var_mean_unbiased_call(const lc_value *in, lc_tensor **out)
{
    return with_mean(lc_var(in(0), NULL, 0, LC_I(in[1].b), false), lc_mean(in(0), NULL, 0, false), out);
}
static int std_mean_unbiased_call(const lc_value *in, lc_tensor **out)
{
    return with_mean(lc_std(in(0), NULL, 0, LC_I(in[1].b), false), lc_mean(in(0), NULL, 0, false), out);
}
static int var_mean_unbiased_dim_call(const lc_value *in, lc_tensor **out)
{
    const lc_value *dim = &in[1];
    return with_mean(lc_var(in(0), dims_of(dim), dims_count(dim), LC_I(in[2].b), in[3].b), MEAN_OF(dim, in[3].b), out);
}
static int std_mean_unbiased_dim_call(const lc_value *in, lc_tensor **out)
{
    const lc_value *dim = &in[1];
    return with_mean(lc_std(in(0), dims_of(dim), dims_count(dim), LC_I(in[2].b), in[3].b), MEAN_OF(dim, in[3].b), out);
}
LC_OP(var_mean, .unnamed = true,
      .sig =
          "var_mean(input: Tensor, dim: list[int] | None = None, *, correction: Number | None = 1, keepdim: bool = False) -> "
          "(var: Tensor, mean: Tensor)",
      .doc = "var and mean.", .call = var_mean_call);
LC_OP(std_mean, .unnamed = true,
      .sig =
          "std_mean(input: Tensor, dim: list[int] | None = None, *, correction: Number | None = 1, keepdim: bool = False) -> "
          "(std: Tensor, mean: Tensor)",
      .doc = "std and mean.", .call = std_mean_call);
LC_OP(var_mean_unbiased, .unnamed = true, .py = "var_mean",
      .sig = "var_mean_unbiased(input: Tensor, unbiased: bool) -> (var: Tensor, mean: Tensor)",
      .doc = "var and mean, with correction 1 or 0.", .call = var_mean_unbiased_call);
LC_OP(std_mean_unbiased, .unnamed = true, .py = "std_mean",
      .sig = "std_mean_unbiased(input: Tensor, unbiased: bool) -> (std: Tensor, mean: Tensor)",
      .doc = "std and mean, with correction 1 or 0.", .call = std_mean_unbiased_call);
LC_OP(var_mean_unbiased_dim, .unnamed = true, .py = "var_mean",
      .sig = "var_mean_unbiased_dim(input: Tensor, dim: list[int] | None, unbiased: bool, keepdim: bool = False) -> (var: "
             "Tensor, mean: Tensor)",
      .doc = "var and mean, with correction 1 or 0.", .call = var_mean_unbiased_dim_call);
LC_OP(std_mean_unbiased_dim, .unnamed = true, .py = "std_mean",
      .sig = "std_mean_unbiased_dim(input: Tensor, dim: list[int] | None, unbiased: bool, keepdim: bool = False) -> (std: "
             "Tensor, mean: Tensor)",
      .doc = "std and mean, with correction 1 or 0.", .call = std_mean_unbiased_dim_call);

/* ---- covariance: variables are rows, observations are columns ---- */

static int read_truth(lc_tensor *condition, bool *truth)
{
    lc_tensor *host = lc__to_copy(condition, LC_b8, (lc_device){ LC_CPU, 0 }, LC_CONTIGUOUS_FORMAT);
    if (!host || !host->data) return -1;
    return *truth = *(const uint8_t *)host->data, 0;
}
static int check_weights(lc_tensor *w, int64_t n, bool whole, const char *name)
{
    bool good;
    if (w->ndim > 1)
        return lc_fail_int(LC_ShapeMismatch, "cov(): expected %s to have one or fewer dimensions but got %d", name, w->ndim);
    if (lc_class_of(w->dtype) != (whole ? LC_INT : LC_FLOAT))
        return lc_fail_int(LC_DtypeMismatch, "cov(): expected %s to have %s dtype but got %s", name,
                           whole ? "integral" : "floating point", lc_dtypes[w->dtype].name);
    if (w->numel != n)
        return lc_fail_int(LC_ShapeMismatch,
                           "cov(): expected %s to have the same numel as there are observations in the input "
                           "but got %lld != %lld",
                           name, (long long)w->numel, (long long)n);
    if (n == 0) return 0;
    if (read_truth(lc_ge(lc_amin(w, NULL, 0, false), LC_INTEGER(0)), &good) < 0) return -1;
    return good ? 0 : lc_fail_int(LC_LucidError, "cov(): %s cannot be negative", name);
}
static lc_tensor *total(lc_tensor *t) { return lc_sum(t, NULL, 0, false); }
static lc_tensor *divisor_of(lc_tensor *w, lc_tensor *aweights,
                             int64_t correction) /* of weighted observations; never below zero */
{
    bool       zero, low;
    lc_tensor *sum = total(w), *less = LC_INTEGER(correction);
    if (read_truth(lc_eq(sum, LC_INTEGER(0)), &zero) < 0) return NULL;
    if (zero) return lc_fail(LC_LucidError, "cov(): weights sum to zero, can't be normalized");
    if (aweights != LC_NONE && correction) less = lc_div(lc_mul(less, total(lc_mul(w, aweights))), sum);
    lc_tensor *divisor = lc_sub(sum, less);
    if (read_truth(lc_le(divisor, LC_INTEGER(0)), &low) < 0) return NULL;
    if (low) lc_warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.");
    return low ? lc_mul(divisor, LC_INTEGER(0)) : divisor;
}
static int cov_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *f = in(2), *a = in(3), *w = NULL, *divisor;
    int64_t    correction = in[1].i, one_row[] = { 1, -1 }, last = 1;
    if (x->ndim > 2)
        return lc_fail_int(LC_ShapeMismatch,
                           "cov(): expected input to have two or fewer dimensions but got an input with %d dimensions",
                           x->ndim);
    if (x->dtype == LC_b8) return lc_fail_int(LC_LucidError, "cov(): bool dtype is not supported for input");
    if (x->ndim < 2 && !(x = lc_reshape(x, one_row, 2))) return -1;
    int64_t n = x->shape[1];
    if (f != LC_NONE && check_weights(f, n, true, "fweights") < 0) return -1;
    if (a != LC_NONE && check_weights(a, n, false, "aweights") < 0) return -1;
    if (f != LC_NONE || a != LC_NONE) w = f == LC_NONE ? a : a == LC_NONE ? f : lc_mul(f, a);
    if (w) {
        divisor = divisor_of(w, a, correction);
    } else {
        if (n <= correction)
            lc_warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.");
        divisor = LC_INTEGER(n > correction ? n - correction : 0);
    }
    if (!divisor) return -1;
    lc_tensor *mean = lc_div(lc_sum(w ? lc_mul(x, w) : x, &last, 1, true), w ? total(w) : LC_INTEGER(n));
    lc_tensor *centred = lc_sub(x, mean), *against = conj_of(w ? lc_mul(centred, w) : centred);
    return (out[0] = lc_squeeze(lc_div(lc_matmul(centred, lc_transpose(against, 0, 1)), divisor), NULL, 0)) ? 0 : -1;
}
LC_OP(cov,
      .sig = "cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> "
             "Tensor",
      .doc = "Covariance matrix of variables (rows) over observations (columns).", .method = true, .reads_values = true,
      .call = cov_call);

static lc_tensor *clipped(lc_tensor *t) { return lc_clamp(t, LC_INTEGER(-1), LC_INTEGER(1)); }
static int        corrcoef_call(const lc_value *in, lc_tensor **out)
{
    int64_t column[] = { -1, 1 };
    if (in(0)->ndim > 2)
        return lc_fail_int(LC_ShapeMismatch,
                           "corrcoef(): expected input to have two or fewer dimensions but got an input with %d dimensions",
                           in(0)->ndim);
    lc_tensor *c = lc_cov(in(0), 1, LC_NONE, LC_NONE);
    if (!c) return -1;
    if (c->ndim == 0) return (out[0] = lc_div(c, c)) ? 0 : -1;
    bool       complex = lc_is_complex(c->dtype);
    lc_tensor *variance = lc_diagonal(c, 0, 0, 1), *deviation = lc_sqrt(complex ? lc_real(variance) : variance);
    c = lc_div(lc_div(c, lc_reshape(deviation, column, 2)), deviation);
    if (complex) out[0] = lc_view_as_complex(lc_stack((lc_tensor *[]){ clipped(lc_real(c)), clipped(lc_imag(c)) }, 2, -1));
    else out[0] = clipped(c);
    return out[0] ? 0 : -1;
}
LC_OP(corrcoef, .sig = "corrcoef(input: Tensor) -> Tensor",
      .doc = "Correlation coefficients of variables (rows) over observations (columns).", .method = true,
      .call = corrcoef_call);

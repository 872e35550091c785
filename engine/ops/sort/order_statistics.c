/* Order statistics: medians, kthvalue, mode, quantiles. Gradients go to the elements that were selected. */
#include "../reduce/reduce.h"

/* ---- one element along a dimension: (values, indices) ---- */

static int selected(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    uint64_t         mask;
    if (reduced_mask(call, &mask) < 0) return -1;
    if (reduced_count(x, mask) == 0)
        return lc_fail_int(LC_IndexError, "%s(): Expected reduction dim to have non-zero size.",
                           call->op->py ? call->op->py : call->op->name);
    return reduced_to(call, &out[0], call->dtype) < 0 ? -1 : reduced_to(call, &out[1], LC_i64);
}
/* The kernel reads float16 and bfloat16 directly and computes in float32. */
static bool widened_by_kernel(const lc_record *call)
{
    return call->backend->can.half & LC_HALF_SELECT && working_dtype((lc_dtype)call->in[0]->dtype) == LC_f32;
}
static int select_into(const lc_record *call, int64_t k)
{
    lc_reduce_args a = { .parameter = (double)k };
    lc_dtype       dtype = working_dtype(call->dtype);
    lc_record      typed = *call;
    if (lc_is_unsigned(call->dtype) && call->dtype != LC_u8) return no_kernel(call);
    lc_tensor *in = widened_by_kernel(call) ? lc_retain(call->in[0]) : in_dtype(call->in[0], dtype),
              *value = destination(call->out[0], dtype, call->in, 1);
    lc_tensor *index = destination(call->out[1], LC_i64, call->in, 1);
    a.in = in, a.value = value, a.index = index, typed.dtype = dtype;
    int rc = in && value && index ? reduced_mask(call, &a.mask) : -1;
    if (rc == 0) {
        expanded_strides(in, value, a.mask, a.value_stride);
        expanded_strides(in, index, a.mask, a.index_stride);
        rc = run_kernel_with(&typed, &a);
    }
    lc_release(in);
    rc = deliver(call->out[0], value, rc);
    return deliver(call->out[1], index, rc);
}
static int selected_run(const lc_record *call) { return select_into(call, 0); }

static lc_tensor *selection_slope(lc_tensor *g, lc_tensor *at, lc_tensor *x, const lc_value *dim)
{
    if (x->ndim == 0) return g;
    return lc_scatter_add(zeros_like(x), dim->i, restored(at, x, dim), restored(g, x, dim));
}
GRAD(selected) { dx[0] = selection_slope(g[0], y[1], in(0), &in[1]); }
#define SELECTED .method = true, .out = true, .shape = selected, .grad = selected_grad, .saves = OUT(1)
LC_OP(median_dim, .batching = LC_BATCH_DIMS, .py = "median",
      .sig = "median_dim(input: Tensor, dim: int, keepdim: bool = False) -> (values: Tensor, indices: Tensor)",
      .doc = "Medians along a dimension (the lower one of an even count) and their indices; NaN wins.", SELECTED,
      .kind = LC_KIND_REDUCTION, .run = selected_run);
LC_OP(nanmedian_dim, .batching = LC_BATCH_DIMS, .py = "nanmedian",
      .sig = "nanmedian_dim(input: Tensor, dim: int, keepdim: bool = False) -> (values: Tensor, indices: Tensor)",
      .doc = "Medians along a dimension, ignoring NaN, and their indices.", SELECTED, .kind = LC_KIND_REDUCTION,
      .run = selected_run);
LC_OP(mode, .batching = LC_BATCH_DIMS,
      .sig = "mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> (values: Tensor, indices: Tensor)",
      .doc = "The most frequent value along a dimension (the smallest of them) and one of its indices.", SELECTED,
      .kind = LC_KIND_REDUCTION, .run = selected_run);

static int kthvalue_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    int64_t          k = call->args[1].i;
    int              d;
    if (dim_index(call->args[2].i, x->ndim, &d) < 0) return -1;
    int64_t n = x->ndim ? x->shape[d] : 1;
    if (n == 0) return lc_fail_int(LC_IndexError, "kthvalue(): Expected reduction dim %d to have non-zero size.", d);
    if (k < 1 || k > n) return lc_fail_int(LC_LucidError, "kthvalue(): selected number k out of range for dimension %d", d);
    return reduced_to(call, &out[0], call->dtype) < 0 ? -1 : reduced_to(call, &out[1], LC_i64);
}
static int kthvalue_run(const lc_record *call) { return select_into(call, call->args[1].i - 1); }
GRAD(kthvalue) { dx[0] = selection_slope(g[0], y[1], in(0), &in[2]); }
LC_OP(kthvalue, .batching = LC_BATCH_DIMS,
      .sig = "kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> (values: Tensor, indices: Tensor)",
      .doc = "The k-th smallest elements along a dimension and their indices; NaNs are the largest.", .method = true,
      .out = true, .shape = kthvalue_shape, .run = kthvalue_run, .grad = kthvalue_grad, .saves = OUT(1));

/* ---- of all elements ---- */

static int median_shape(const lc_record *call, lc_spec *out) { return spec_shape(call, out, call->dtype, 0, NULL); }
static int median_run(const lc_record *call)
{
    lc_dtype       dtype = working_dtype(call->dtype);
    lc_reduce_args a = { .mask = 1 };
    lc_record      typed = *call;
    lc_number_box  nan;
    if (call->in[0]->numel == 0) { /* NaN, or its replacement */
        static const int64_t least[LC_DTYPE_COUNT] = { [LC_i32] = INT32_MIN, [LC_i64] = INT64_MIN };
        bool                 whole = lc_class_of(call->dtype) == LC_INT;
        lc_number_init(&nan, LC_f64, __builtin_nan(""), 0);
        return fill_tensor(call->out[0], whole ? lc_number_init_int(&nan, least[call->dtype]) : &nan.t);
    }
    lc_tensor *x = packed(call->in[0], widened_by_kernel(call) ? (lc_dtype)call->in[0]->dtype : dtype);
    lc_tensor *value = destination(call->out[0], dtype, call->in, 1);
    lc_tensor *flat = x ? lc_tensor_view(x, 1, &x->numel, (int64_t[]){ 1 }, 0) : NULL;
    a.in = flat, a.value = value, typed.dtype = dtype;
    int rc = flat && value ? 0 : -1;
    if (rc == 0) rc = lc_is_unsigned(call->dtype) && call->dtype != LC_u8 ? no_kernel(call) : run_kernel_with(&typed, &a);
    lc_release(flat), lc_release(x);
    return deliver(call->out[0], value, rc);
}
GRAD(median) /* ties share the gradient */
{
    lc_tensor *x = in(0), *equal = lc_logical_or(lc_eq(x, y[0]), lc_logical_and(lc_isnan(x), lc_isnan(y[0])));
    dx[0] = lc_where(equal, lc_div(g[0], lc_sum(equal, NULL, 0, false)), LC_INTEGER(0));
}
#define MEDIAN                                                                                                                 \
    .method = true, .out = true, .shape = median_shape, .run = median_run, .grad = median_grad, .saves = IN(0) | OUT(0)
LC_OP(median, .sig = "median(input: Tensor) -> Tensor",
      .doc = "The median of all elements (the lower one of an even count); NaN wins.", MEDIAN);
LC_OP(nanmedian, .sig = "nanmedian(input: Tensor) -> Tensor", .doc = "The median of all elements that are not NaN.", MEDIAN);

/* ---- elements of given ranks, and quantiles made of them ---- */

static int ranked_shape(const lc_record *call, lc_spec *out)
{
    spec_like(call, &out[0], call->in[1], (lc_dtype)call->in[0]->dtype);
    return spec_like(call, &out[1], call->in[1], LC_i64), 0;
}
static int ranked_run(const lc_record *call)
{
    lc_tensor       *x = in_dtype(call->in[0], call->dtype), *rank = packed(call->in[1], LC_i64);
    lc_quantile_args a = { .in = x, .rank = rank, .value = call->out[0], .index = call->out[1] };
    int              rc = x && rank ? run_kernel_with(call, &a) : -1;
    lc_release(x), lc_release(rank);
    return rc;
}
GRAD(_ranked) { dx[0] = lc_scatter_add(zeros_like(in(0)), -1, y[1], g[0]); }
LC_OP(_ranked, .sig = "_ranked(input: Tensor, rank: Tensor) -> (values: Tensor, indices: Tensor)",
      .doc = "Elements of given ranks along the last dimension.", .hidden = true, .promote = LC_NO_PROMOTION,
      .shape = ranked_shape, .run = ranked_run, .grad = _ranked_grad, .saves = OUT(1));

static lc_tensor *at_ranks(lc_tensor *x, lc_tensor *rank, lc_tensor *sorted)
{
    if (!rank || !x) return NULL;
    lc_tensor *whole = lc_to(rank, LC_i64, false, false, LC_ABSENT);
    return sorted ? lc_gather(sorted, -1, whole, false) : lc__ranked(x, whole).values;
}
static int check_quantile(const lc_tensor *x, lc_tensor *q, const char *how)
{
    static const char *const known[] = { "linear", "lower", "higher", "midpoint", "nearest" };
    bool                     is_known = false, good;
    for (int i = 0; i < 5; i++) is_known |= !strcmp(how, known[i]);
    if (!is_known)
        return lc_fail_int(LC_LucidError,
                           "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got %s",
                           how);
    if (x->numel == 0) return lc_fail_int(LC_LucidError, "quantile() input tensor must be non-empty");
    if (q->ndim > 1) return lc_fail_int(LC_ShapeMismatch, "quantile() q must be a scalar or 1D tensor");
    if (x->dtype != LC_f32 && x->dtype != LC_f64)
        return lc_fail_int(LC_DtypeMismatch, "quantile() input tensor must be either float or double dtype");
    if (x->dtype != q->dtype)
        return lc_fail_int(LC_DtypeMismatch, "quantile() q tensor must be same dtype as the input tensor");
    lc_tensor *inside = lc_logical_and(lc_ge(q, LC_INTEGER(0)), lc_le(q, LC_INTEGER(1)));
    lc_tensor *host = lc__to_copy(lc_all(inside, NULL, 0, false), LC_b8, (lc_device){ LC_CPU, 0 }, LC_CONTIGUOUS_FORMAT);
    if (!host || !host->data) return -1;
    good = *(const uint8_t *)host->data;
    return good ? 0 : lc_fail_int(LC_LucidError, "quantile() q values must be in the range [0, 1]");
}

/* Ranks count elements that are not NaN; if NaN wins, they point to the end, where NaNs are sorted. */
static lc_tensor *ranks_of(lc_tensor *x, lc_tensor *q, bool skip)
{
    int64_t    last = x->shape[x->ndim - 1] - 1, dim = -1;
    lc_tensor *none = LC_INTEGER(0), *value = lc_detach(x);
    if (skip) {
        lc_tensor *rank = lc_mul(q, lc_sub(lc__count_numbers(value, &dim, 1, true), LC_INTEGER(1)));
        return lc_masked_fill(rank, lc_lt(rank, none), none);
    }
    return lc_where(lc_isnan(lc_amax(value, &dim, 1, true)), LC_NUMBER((double)last), lc_mul(q, LC_INTEGER(last)));
}
static lc_tensor *quantile_along_last(lc_tensor *x, lc_tensor *q, const char *how, bool skip)
{
    enum { FEW = 256 }; /* quantiles whose ranks are selected together; more are read from a sorted line */
    bool between = !strcmp(how, "linear") || !strcmp(how, "midpoint");
    if (!x || !q) return NULL;
    lc_tensor *rank = ranks_of(x, q, skip), *sorted = NULL;
    if (!rank || (q->numel > FEW && !(sorted = lc_sort(x, -1, false, LC_ABSENT).values))) return NULL;
    if (!strcmp(how, "lower")) rank = lc_floor(rank);
    else if (!strcmp(how, "higher")) rank = lc_ceil(rank);
    else if (!strcmp(how, "nearest")) rank = lc_round(rank);
    if (!between) return at_ranks(x, rank, sorted);
    lc_tensor *below = lc_floor(rank), *ends[] = { below, lc_ceil(rank) },
              *pairs = lc_stack(ends, 2, -1); /* neighbours lie together */
    lc_tensor *both = pairs ? at_ranks(x, lc_flatten(pairs, -2, -1), sorted) : NULL;
    if (!both || !(both = lc_reshape(both, pairs->shape, pairs->ndim))) return NULL;
    lc_tensor *low = lc_select(both, -1, 0), *high = lc_select(both, -1, 1);
    if (*how == 'm') return lc_lerp(low, high, LC_NUMBER(0.5));
    return lc_lerp(low, high, lc_sub(rank, below));
}
static int quantile_of(lc_tensor *x, lc_tensor *q, const lc_value *dim, bool keepdim, const char *how, bool skip,
                       lc_tensor **out)
{
    lc_tensor *moved, *y;
    int64_t    all = -1, front = 0, last = -1, shape[LC_MAX_DIMS + 1];
    int        d, n = 0;
    if (check_quantile(x, q, how) < 0) return -1;
    bool flat = dim->tag == LC_IS_none, many = q->ndim > 0;
    if (flat || x->ndim == 0) {
        if (!flat && dim_index(dim->i, x->ndim, &d) < 0) return -1;
        moved = lc_reshape(x, &all, 1);
    } else {
        if (dim_index(dim->i, x->ndim, &d) < 0) return -1;
        int64_t from = d;
        moved = lc_movedim(x, &from, 1, &last, 1);
    }
    if (!moved || !(y = quantile_along_last(moved, many ? q : lc_unsqueeze(q, 0), how, skip))) return -1;
    y = many ? lc_movedim(y, &last, 1, &front, 1) : lc_squeeze(y, &last, 1);
    if (keepdim && y && x->ndim && !flat) y = lc_unsqueeze(y, many + d);
    if (keepdim && y && flat) {
        if (many) shape[n++] = q->numel;
        for (int e = 0; e < x->ndim; e++) shape[n++] = 1;
        y = lc_reshape(y, shape, n);
    }
    return (out[0] = y) ? 0 : -1;
}
static int quantile_call(const lc_value *in, lc_tensor **out)
{
    return quantile_of(in(0), in(1), &in[2], in[3].b, in[4].s, false, out);
}
static int nanquantile_call(const lc_value *in, lc_tensor **out)
{
    return quantile_of(in(0), in(1), &in[2], in[3].b, in[4].s, true, out);
}
static lc_tensor *one_quantile(const lc_value *in)
{
    lc_value device = { .tag = LC_IS_device, .dev = in(0)->device };
    if (!(in[1].f >= 0 && in[1].f <= 1))
        return lc_fail(LC_LucidError, "quantile() q must be in the range [0, 1] but got %g", in[1].f);
    return lc_full(NULL, 0, LC_NUMBER(in[1].f), LC_OF_DTYPE(lc_is_floating(in(0)->dtype) ? (lc_dtype)in(0)->dtype : LC_f32),
                   device);
}
static int quantile_scalar_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *q = one_quantile(in);
    return q ? quantile_of(in(0), q, &in[2], in[3].b, in[4].s, false, out) : -1;
}
static int nanquantile_scalar_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *q = one_quantile(in);
    return q ? quantile_of(in(0), q, &in[2], in[3].b, in[4].s, true, out) : -1;
}
#define QUANTILE .method = true, .out = true, .reads_values = true, .amp = LC_AMP_CPU_FP32
LC_OP(quantile, .strict_out = true,
      .sig = "quantile(input: Tensor, q: Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "
             "'linear') -> Tensor",
      .doc = "Quantiles of all elements or along a dimension; NaN wins.", QUANTILE, .call = quantile_call);
LC_OP(quantile_scalar, .strict_out = true, .py = "quantile",
      .sig = "quantile_scalar(input: Tensor, q: float, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "
             "'linear') -> Tensor",
      .doc = "One quantile of all elements or along a dimension; NaN wins.", QUANTILE, .call = quantile_scalar_call);
LC_OP(nanquantile, .strict_out = true,
      .sig = "nanquantile(input: Tensor, q: Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "
             "'linear') -> Tensor",
      .doc = "Quantiles, ignoring NaN.", QUANTILE, .call = nanquantile_call);
LC_OP(nanquantile_scalar, .py = "nanquantile",
      .sig = "nanquantile_scalar(input: Tensor, q: float, dim: int | None = None, keepdim: bool = False, *, interpolation: "
             "str = 'linear') -> Tensor",
      .doc = "One quantile, ignoring NaN.", QUANTILE, .call = nanquantile_scalar_call);

/* sort, argsort, msort, topk. Every sort is stable. */
#include "../rules.h"

static int no_complex(const lc_record *call, const char *name)
{
    if (!lc_is_complex(call->in[0]->dtype)) return 0;
    return lc_fail_int(LC_LucidError, "%s does not support complex dtypes, got %s", name, LC_SHAPE(call->in[0]));
}

/* ---- sort, argsort, msort: results are laid out as the input is ---- */
static int sort_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    int              d;
    if (no_complex(call, "sort") < 0 || dim_index(call->args[1].i, x->ndim, &d) < 0) return -1;
    for (int i = 0; i < call->n_out; i++) {
        spec_like(call, &out[i], x, i + 1 == call->n_out ? LC_i64 : (lc_dtype)x->dtype);
        out[i].order = LC_ORDER_STRIDES;
        lc_strides_like(x, out[i].stride);
    }
    return 0;
}
static int sort_run(const lc_record *call)
{
    lc_tensor   *values = call->n_out > 1 ? call->out[0] : NULL;
    lc_sort_args a = { .values = values, .indices = call->out[call->n_out - 1], .in = call->in[0] };
    if (dim_index(call->args[1].i, a.in->ndim, &a.dim) < 0) return -1;
    a.descending = call->args[2].b, a.k = a.in->ndim ? a.in->shape[a.dim] : 1;
    return run_kernel_with(call, &a);
}
GRAD(chosen) { dx[0] = in(0)->ndim ? lc_scatter(zeros_like(in(0)), in[1].i, y[1], g[0], NULL) : g[0]; }
LC_OP(sort, .batching = LC_BATCH_DIMS,
      .sig = "sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None) "
             "-> (values: Tensor, indices: Tensor)",
      .doc = "Sort along a dimension: the values in order and the indices they had. Equal values keep their order; NaN is the "
             "largest.",
      .method = true, .out = true, .promote = LC_NO_PROMOTION, .shape = sort_shape, .run = sort_run, .grad = chosen_grad,
      .saves = OUT(1));
LC_OP(argsort, .batching = LC_BATCH_DIMS,
      .sig = "argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> Tensor",
      .doc = "The indices that sort a dimension. Equal values keep their order.", .method = true, .out = true,
      .kernel = LC_OP_sort, .promote = LC_NO_PROMOTION, .shape = sort_shape, .run = sort_run);

static int msort_shape(const lc_record *call, lc_spec *out)
{
    if (no_complex(call, "msort") < 0) return -1;
    spec_like(call, out, call->in[0], (lc_dtype)call->in[0]->dtype);
    out->order = LC_ORDER_STRIDES;
    return lc_strides_like(call->in[0], out->stride), 0;
}
static int msort_run(const lc_record *call) /* no indices are needed */
{
    const lc_tensor *x = call->in[0];
    lc_sort_args     a = { .values = call->out[0], .in = call->in[0], .k = x->ndim ? x->shape[0] : 1 };
    return run_kernel_with(call, &a);
}
GRAD(msort)
{
    lc_tensor *x = in(0);
    dx[0] = x->ndim ? lc_scatter(zeros_like(x), 0, lc_argsort(x, 0, false, LC_ABSENT), g[0], NULL) : g[0];
}
LC_OP(msort, .sig = "msort(input: Tensor) -> Tensor", .doc = "Sort along the first dimension.", .method = true, .out = true,
      .kernel = LC_OP_sort, .promote = LC_NO_PROMOTION, .shape = msort_shape, .run = msort_run, .grad = msort_grad,
      .saves = IN(0));

/* ---- topk ---- */
static int topk_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    int64_t          k = call->args[1].i;
    int              d;
    if (no_complex(call, "topk") < 0 || dim_index(call->args[2].i, x->ndim, &d) < 0) return -1;
    if (x->dtype == LC_b8) return lc_fail_int(LC_LucidError, "topk does not support bool dtypes");
    if (k < 0 || k > (x->ndim ? x->shape[d] : 1))
        return lc_fail_int(LC_LucidError, "topk: selected index k out of range: %lld of %s along dimension %d", (long long)k,
                           LC_SHAPE(x), d);
    for (int i = 0; i < 2; i++) {
        spec_like(call, &out[i], x, i ? LC_i64 : (lc_dtype)x->dtype);
        if (x->ndim) out[i].shape[d] = k;
    }
    return 0;
}
static int topk_run(const lc_record *call)
{
    const lc_value *v = call->args;
    lc_sort_args    a = { .values = call->out[0], .indices = call->out[1], .in = call->in[0], .k = 1 };
    if (dim_index(v[2].i, a.in->ndim, &a.dim) < 0) return -1;
    a.descending = v[3].b, a.ordered = v[4].b;
    if (a.in->ndim) a.k = v[1].i; /* a 0-d input gives its value even for k = 0, as in PyTorch */
    return run_kernel_with(call, &a);
}
GRAD(topk) { dx[0] = in(0)->ndim ? lc_scatter(zeros_like(in(0)), in[2].i, y[1], g[0], NULL) : g[0]; }
LC_OP(topk, .batching = LC_BATCH_DIMS,
      .sig = "topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) "
             "-> (values: Tensor, indices: Tensor)",
      .doc = "The k largest or smallest elements along a dimension and their indices. NaN is the largest.", .method = true,
      .out = true, .promote = LC_NO_PROMOTION, .shape = topk_shape, .run = topk_run, .grad = topk_grad, .saves = OUT(1));

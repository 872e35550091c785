/* embedding and embedding_bag: rows of a table by index. The ops with kernels are linear in the table, in factors per
 * sample, or in both, and are each other's gradients: sum (rows into bags), backward (bags back into rows) and dot (the
 * gradient of a sample's factor). The kernels refuse indices out of range before they write anything. */
#include "../rules.h"

static int check_table(const lc_record *call, const lc_tensor *table, const lc_tensor *ids)
{
    if (table->ndim != 2)
        return lc_fail_int(LC_ShapeMismatch, "%s: 'weight' must be 2-D, got %s", call->op->name, LC_SHAPE(table));
    if (ids->dtype != LC_i64 && ids->dtype != LC_i32)
        return lc_fail_int(LC_DtypeMismatch,
                           "%s: Expected tensor for argument 'indices' to have one of the following scalar types: Long, "
                           "Int; but got %s instead",
                           call->op->name, LC_SHAPE(ids));
    return 0;
}
static int matrix_spec(const lc_record *call, lc_spec *out, lc_dtype dtype, int64_t rows, int64_t width)
{
    return spec_shape(call, out, dtype, 2, (int64_t[]){ rows, width });
}
static int64_t bags_of(const lc_tensor *bags, const lc_tensor *ids) { return bags == LC_NONE ? ids->numel : bags->numel - 1; }

/* Packed operands of one call; NULL where there are none. */
typedef struct {
    lc_tensor *table, *other, *ids, *bags, *factors;
} operands;
static int run_embedding(const lc_record *call, lc_embedding_args *a, operands from, lc_dtype work)
{
    lc_record  record = *call;
    lc_tensor *kept[5] = { 0 }, *given[5] = { from.table, from.other, from.ids, from.bags, from.factors }, *out = call->out[0];
    int        rc = 0;
    record.dtype = work;
    for (int k = 0; k < 5 && rc == 0; k++)
        if (given[k] && given[k] != LC_NONE && !(kept[k] = packed(given[k], k == 2 || k == 3 ? LC_i64 : work))) rc = -1;
    lc_tensor *made = rc == 0 ? destination(out, work, NULL, 0) : NULL;
    a->table = kept[0], a->other = kept[1], a->ids = kept[2], a->bags = kept[3], a->factors = kept[4], a->out = made;
    a->ordered = lc_modes & LC_DETERMINISTIC;
    a->n = from.ids->numel, a->n_bags = kept[3] ? kept[3]->numel - 1 : a->n;
    rc = made ? run_kernel_with(&record, a) : -1;
    for (int k = 0; k < 5; k++) lc_release(kept[k]);
    return made ? deliver(out, made, rc) : rc;
}
/* ---- rows: (weight, indices, padding_idx, scale_grad_by_freq, sparse) ---- */
static int embedding_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *table = call->in[0], *ids = call->in[1];
    int64_t          shape[LC_MAX_DIMS + 1];
    if (check_table(call, table, ids) < 0) return -1;
    memcpy(shape, ids->shape, (size_t)ids->ndim * sizeof *shape);
    shape[ids->ndim] = table->shape[1];
    return spec_shape(call, out, (lc_dtype)table->dtype, ids->ndim + 1, shape);
}
static int embedding_run(const lc_record *call)
{
    lc_tensor        *table = call->in[0];
    lc_embedding_args a = { .rows = table->shape[0], .width = table->shape[1], .padding = -1 };
    return run_embedding(call, &a, (operands){ .table = table, .ids = call->in[1] }, (lc_dtype)table->dtype);
}
static lc_tensor *as_rows(lc_tensor *g, int64_t n, int64_t width) { return lc_reshape(g, (int64_t[]){ n, width }, 2); }
/* sparse=True: the gradient of a table is a COO tensor with one entry per row that was read, repetitions included. */
static lc_tensor *sparse_gradient(lc_tensor *rows, lc_tensor *ids, const lc_tensor *table, int64_t padding, bool by_frequency)
{
    if (by_frequency)
        return lc_fail(LC_LucidError, "embedding_backward: scale_grad_by_freq not supported with sparse gradients");
    ids = lc_to(ids, LC_i64, false, false, LC_ABSENT);
    if (padding >= 0) {
        lc_tensor *kept = lc_flatten(lc_nonzero(lc_ne(ids, LC_INTEGER(padding)), false), 0, -1);
        ids = lc_index_select(ids, 0, kept), rows = lc_index_select(rows, 0, kept);
    }
    return lc__sparse_coo(lc_unsqueeze(ids, 0), rows, table->shape, 2, false);
}
GRAD(embedding)
{
    const lc_tensor *table = in(0);
    lc_tensor       *rows = as_rows(g[0], in(1)->numel, table->shape[1]);
    if (in[4].b) dx[0] = sparse_gradient(rows, lc_flatten(in(1), 0, -1), table, in[2].i, in[3].b);
    else dx[0] = lc__embedding_backward(rows, lc_flatten(in(1), 0, -1), LC_NONE, LC_NONE, table->shape[0], in[2].i, in[3].b);
}
/* vmap with a table per example: the tables are joined to one. */
static int embedding_batch(const lc_batch_call *b, lc_tensor **out)
{
    const lc_value *args = b->call->args;
    lc_tensor      *table = b->in[0], *ids = b->in[1];
    int64_t         shape[LC_MAX_DIMS + 1] = { b->size };
    int             ndim = b->call->in[1]->ndim;
    if (b->call->in[0]->ndim != 2 || !b->batched[0]) return LC_NO_RULE;
    if (args[2].i >= 0 || args[3].b || args[4].b) return LC_NO_RULE; /* they count rows of one table */
    for (int d = 0; d < ndim; d++) shape[d + 1] = 1;
    lc_value   where = { .tag = LC_IS_device, .dev = ids->device };
    lc_tensor *first = lc_arange(LC_I(b->size), LC_OF_DTYPE(LC_i64), where);
    first = lc_reshape(lc_mul(first, LC_INTEGER(table->shape[1])), shape, ndim + 1);
    lc_tensor *flat = lc_reshape(table, (int64_t[]){ -1, table->shape[2] }, 2);
    return (out[0] = lc_embedding(flat, lc_add(first, ids), -1, false, false)) ? 0 : -1;
}
LC_OP(embedding, .batching = LC_BATCH_FRONT, .batched = IN(1), .batch = embedding_batch,
      .sig = "embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool "
             "= False) "
             "-> Tensor",
      .doc = "The rows of weight that indices name. Row padding_idx gets no gradient; scale_grad_by_freq divides that of a row "
             "by how often "
             "it occurs.",
      .promote = LC_NO_PROMOTION, .shape = embedding_shape, .kind = LC_KIND_MOVE, .run = embedding_run, .grad = embedding_grad,
      .saves = IN(1));

/* ---- the linear ops. bags: (bags + 1), where each starts; None: a bag per sample. factors (samples) or None ---- */
#define IS_LINEAR .hidden = true, .promote = LC_NO_PROMOTION
/* For each sample, how many samples read the same row; for bags as the kernel counts them. */
static lc_tensor *frequency(lc_tensor *ids, const lc_tensor *bags, const lc_tensor *like)
{
    lc_tensor *counts = lc_bincount(ids, LC_NONE, 0), *of = ids;
    if (bags != LC_NONE) {
        lc_tensor *place = lc_sub(lc_cumsum(lc_gt(counts, LC_INTEGER(0)), 0, LC_OF_DTYPE(LC_i64)), LC_INTEGER(1));
        of = lc_index_select(lc_sort(ids, 0, false, LC_ABSENT).values, 0, lc_index_select(place, 0, ids));
    }
    return lc_to(lc_index_select(counts, 0, of), (lc_dtype)like->dtype, false, false, LC_ABSENT);
}
static lc_tensor *per_frequency(lc_tensor *factors, lc_tensor *ids, const lc_tensor *bags, const lc_tensor *like)
{
    lc_tensor *counts = frequency(ids, bags, like);
    return factors == LC_NONE ? lc_reciprocal(counts) : lc_div(factors, counts);
}

static int sum_shape(const lc_record *call,
                     lc_spec         *out) /* (weight, ids, bags, factors, padding_idx, scale_grad_by_freq, sparse) */
{
    const lc_tensor *table = call->args[0].t, *ids = call->args[1].t;
    if (check_table(call, table, ids) < 0) return -1;
    return matrix_spec(call, out, (lc_dtype)table->dtype, bags_of(call->args[2].t, ids), table->shape[1]);
}
static int sum_run(const lc_record *call)
{
    const lc_value   *args = call->args;
    lc_tensor        *table = args[0].t;
    lc_embedding_args a = { .rows = table->shape[0], .width = table->shape[1], .padding = args[4].i };
    return run_embedding(call, &a, (operands){ table, NULL, args[1].t, args[2].t, args[3].t },
                         working_dtype((lc_dtype)table->dtype));
}
static lc_tensor *rows_of_samples(lc_tensor *g, lc_tensor *bags, lc_tensor *factors) /* (samples, width) */
{
    lc_tensor *bag = lc_repeat_interleave_counts(lc_diff(bags, 1, 0, LC_NONE, LC_NONE), LC_ABSENT);
    lc_tensor *rows = lc_index_select(g, 0, bag);
    return factors == LC_NONE ? rows : lc_mul(rows, lc_unsqueeze(factors, 1));
}
GRAD(_embedding_sum)
{
    if (need[0] && in[6].b) dx[0] = sparse_gradient(rows_of_samples(g[0], in(2), in(3)), in(1), in(0), in[4].i, in[5].b);
    else if (need[0]) dx[0] = lc__embedding_backward(g[0], in(1), in(2), in(3), in(0)->shape[0], in[4].i, in[5].b);
    if (in(3) != LC_NONE && need[3]) dx[3] = lc__embedding_dot(g[0], in(0), in(1), in(2), in[4].i);
}
LC_OP(_embedding_sum,
      .sig = "_embedding_sum(weight: Tensor, ids: Tensor, bags: Tensor | None, factors: Tensor | None, padding_idx: int, "
             "scale_grad_by_freq: bool, sparse: bool = False) -> Tensor",
      .doc = "The sum of the rows of each bag.", IS_LINEAR, .shape = sum_shape, .run = sum_run, .grad = _embedding_sum_grad,
      .saves = IN(0) | IN(1) | IN(2) | IN(3));

static int backward_shape(const lc_record *call,
                          lc_spec         *out) /* (grad, ids, bags, factors, rows, padding_idx, scale_grad_by_freq) */
{
    const lc_tensor *grad = call->args[0].t;
    return matrix_spec(call, out, (lc_dtype)grad->dtype, call->args[4].i, grad->shape[1]);
}
static int backward_run(const lc_record *call)
{
    const lc_value   *args = call->args;
    lc_tensor        *grad = args[0].t;
    lc_embedding_args a = { .rows = args[4].i, .width = grad->shape[1], .padding = args[5].i, .by_frequency = args[6].b };
    return run_embedding(call, &a, (operands){ grad, NULL, args[1].t, args[2].t, args[3].t },
                         working_dtype((lc_dtype)grad->dtype));
}
GRAD(_embedding_backward)
{
    lc_tensor *ids = in(1), *factors = in[6].b ? per_frequency(in(3), ids, in(2), in(0)) : in(3);
    if (need[0]) dx[0] = lc__embedding_sum(g[0], ids, in(2), factors, in[5].i, false, false);
    if (in(3) != LC_NONE && need[3]) {
        lc_tensor *dot = lc__embedding_dot(in(0), g[0], ids, in(2), in[5].i);
        dx[3] = in[6].b ? lc_div(dot, frequency(ids, in(2), in(0))) : dot;
    }
}
LC_OP(_embedding_backward,
      .sig = "_embedding_backward(grad: Tensor, ids: Tensor, bags: Tensor | None, factors: Tensor | None, rows: int, "
             "padding_idx: int, "
             "scale_grad_by_freq: bool) -> Tensor",
      .doc = "For each row, the sum of the gradients of the bags it is in.", IS_LINEAR, .shape = backward_shape,
      .run = backward_run, .grad = _embedding_backward_grad, .saves = IN(0) | IN(1) | IN(2) | IN(3));

static int dot_shape(const lc_record *call, lc_spec *out) /* (grad, weight, ids, bags, padding_idx) */
{
    return spec_shape(call, out, (lc_dtype)call->in[0]->dtype, 1, &call->args[2].t->numel);
}
static int dot_run(const lc_record *call)
{
    const lc_value   *args = call->args;
    lc_tensor        *table = args[1].t;
    lc_embedding_args a = { .rows = table->shape[0], .width = table->shape[1], .padding = args[4].i };
    return run_embedding(call, &a, (operands){ table, args[0].t, args[2].t, args[3].t, NULL },
                         working_dtype((lc_dtype)table->dtype));
}
GRAD(_embedding_dot)
{
    if (need[0]) dx[0] = lc__embedding_sum(in(1), in(2), in(3), g[0], in[4].i, false, false);
    if (need[1]) dx[1] = lc__embedding_backward(in(0), in(2), in(3), g[0], in(1)->shape[0], in[4].i, false);
}
LC_OP(_embedding_dot,
      .sig = "_embedding_dot(grad: Tensor, weight: Tensor, ids: Tensor, bags: Tensor | None, padding_idx: int) -> Tensor",
      .doc = "For each sample, its row times its bag's gradient.", IS_LINEAR, .shape = dot_shape, .run = dot_run,
      .grad = _embedding_dot_grad, .saves = IN(0) | IN(1) | IN(2) | IN(3));

static int max_shape(const lc_record *call, lc_spec *out) /* (weight, ids, bags, padding_idx) */
{
    const lc_tensor *table = call->in[0], *ids = call->in[1];
    int64_t          bags = bags_of(call->in[2], ids), width = table->ndim == 2 ? table->shape[1] : 0;
    if (check_table(call, table, ids) < 0 || matrix_spec(call, &out[0], (lc_dtype)table->dtype, bags, width) < 0) return -1;
    return matrix_spec(call, &out[1], LC_i64, bags, width);
}
static int max_run(const lc_record *call)
{
    lc_tensor        *table = call->in[0];
    lc_embedding_args a = {
        .rows = table->shape[0], .width = table->shape[1], .padding = call->args[3].i, .index = call->out[1]
    };
    return run_embedding(call, &a, (operands){ .table = table, .ids = call->in[1], .bags = call->in[2] },
                         working_dtype((lc_dtype)table->dtype));
}
GRAD(_embedding_max) /* a bag without rows has -1 */
{
    lc_tensor *none = lc_lt(y[1], LC_INTEGER(0)), *index = lc_clamp(y[1], LC_INTEGER(0), LC_NONE);
    dx[0] = lc_scatter_add(zeros_like(in(0)), 0, index, lc_masked_fill(g[0], none, LC_INTEGER(0)));
}
LC_OP(_embedding_max,
      .sig = "_embedding_max(weight: Tensor, ids: Tensor, bags: Tensor, padding_idx: int) -> (out: Tensor, index: Tensor)",
      .doc = "The largest of each column over the rows of each bag, and which row has it.", IS_LINEAR, .shape = max_shape,
      .run = max_run, .grad = _embedding_max_grad, .saves = OUT(1));

/* ---- rows longer than max_norm are shortened ---- */
static int embedding_renorm__call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *weight = in(0), *ids = lc_flatten(in(1), 0, -1);
    if (weight->ndim != 2)
        return lc_fail_int(LC_ShapeMismatch, "embedding_renorm_: 'weight' must be 2-D, got %s", LC_SHAPE(weight));
    if (in(1)->dtype != LC_i64 && in(1)->dtype != LC_i32)
        return lc_fail_int(LC_DtypeMismatch, "embedding_renorm_: indices must be int64 or int32, got %s", LC_SHAPE(in(1)));
    lc_tensor *rows = lc_embedding(weight, ids, -1, false, false);
    lc_tensor *norm = lc_linalg_vector_norm(rows, in[3], (int64_t[]){ 1 }, 1, true, LC_ABSENT);
    lc_tensor *scale = lc_div(LC_NUMBER(in[2].f), lc_add(norm, LC_NUMBER(1e-7)));
    lc_tensor *fitting = lc_where(lc_gt(norm, LC_NUMBER(in[2].f)), lc_mul(rows, scale), rows);
    if (!fitting || !lc_index_copy_(weight, 0, lc_to(ids, LC_i64, false, false, LC_ABSENT), fitting)) return -1;
    return *out = weight, 0;
}
LC_OP(embedding_renorm_,
      .sig = "embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor",
      .doc = "Scale the rows that indices name to a norm of max_norm, where it is larger.", .writes = IN(0),
      .call = embedding_renorm__call);

/* ---- bags: (input, weight, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx) ---- */
static int check_bags(const lc_tensor *ids, const lc_tensor *weight, const lc_tensor *offsets, const lc_tensor *factors)
{
    bool weighted = factors != LC_NONE;
    if (weighted && (factors->ndim != ids->ndim || !lc_same_sizes(factors->shape, ids->shape, ids->ndim)))
        return lc_fail_int(
            LC_ValueError,
            "embedding_bag: If per_sample_weights (%s) is not None, then it must have the same shape as the input (%s)",
            LC_SHAPE(factors), LC_SHAPE(ids));
    if (weight->ndim != 2) return lc_fail_int(LC_ValueError, "weight has to be a 2D Tensor, but got %s", LC_SHAPE(weight));
    if (ids->ndim != 1 && ids->ndim != 2)
        return lc_fail_int(LC_ValueError, "input has to be 1D or 2D Tensor, but got %s", LC_SHAPE(ids));
    if (ids->ndim == 2 && offsets != LC_NONE)
        return lc_fail_int(LC_ValueError,
                           "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                           "sequences. However, found offsets %s",
                           LC_SHAPE(offsets));
    if (ids->ndim == 2 && !ids->shape[1])
        return lc_fail_int(LC_LucidError, "embedding_bag: bags of no samples: step must be nonzero");
    if (ids->ndim == 1 && (offsets == LC_NONE || offsets->ndim != 1))
        return lc_fail_int(LC_ValueError, "offsets has to be a 1D Tensor%s", offsets == LC_NONE ? " but got None" : "");
    if (!lc_is_floating(weight->dtype))
        return lc_fail_int(LC_DtypeMismatch, "embedding_bag: expected a floating point weight, got %s", LC_SHAPE(weight));
    if (offsets != LC_NONE && offsets->dtype != LC_i64 && offsets->dtype != LC_i32)
        return lc_fail_int(LC_DtypeMismatch, "embedding_bag: Expected offsets to be Long or Int, but got %s",
                           LC_SHAPE(offsets));
    if (ids->dtype != LC_i64 && ids->dtype != LC_i32)
        return lc_fail_int(LC_DtypeMismatch, "embedding_bag: Expected input to be Long or Int, but got %s", LC_SHAPE(ids));
    if (weighted && factors->dtype != weight->dtype)
        return lc_fail_int(LC_DtypeMismatch, "expected weight and per_sample_weights to have the same dtype, got %s and %s",
                           LC_SHAPE(weight), LC_SHAPE(factors));
    return 0;
}
static lc_tensor *starts_of(lc_tensor *ids, lc_tensor *offsets, bool last) /* (bags + 1), int64 */
{
    lc_value device = { .tag = LC_IS_device, .dev = ids->device }, dtype = LC_OF_DTYPE(LC_i64);
    if (ids->ndim == 2) return lc_mul(lc_arange(LC_I(ids->shape[0] + 1), dtype, device), LC_INTEGER(ids->shape[1]));
    lc_tensor *wide = lc_to(offsets, LC_i64, false, false, LC_ABSENT);
    if (last && !offsets->numel) return lc_fail(LC_LucidError, "include_last_offset: number of offset should be at least 1");
    if (last) return wide;
    return lc_cat((lc_tensor *[]){ wide, lc_full(&(int64_t){ 1 }, 1, LC_INTEGER(ids->numel), dtype, device) }, 2, 0);
}
/* How many samples of each bag count, at least 1: (bags, 1), of like's dtype. */
static lc_tensor *counts_of(lc_tensor *ids, lc_tensor *bags, int64_t padding, const lc_tensor *like)
{
    lc_tensor *starts = bags;
    if (padding >= 0 && ids->numel) {
        lc_tensor *seen = lc_cumsum(lc_ne(ids, LC_INTEGER(padding)), 0, LC_OF_DTYPE(LC_i64));
        lc_tensor *none =
            lc_zeros(&(int64_t){ 1 }, 1, LC_OF_DTYPE(LC_i64), (lc_value){ .tag = LC_IS_device, .dev = ids->device });
        starts = lc_index_select(lc_cat((lc_tensor *[]){ none, seen }, 2, 0), 0, bags);
    }
    lc_tensor *counts = lc_clamp(lc_diff(starts, 1, 0, LC_NONE, LC_NONE), LC_INTEGER(1), LC_NONE);
    return lc_unsqueeze(lc_to(counts, (lc_dtype)like->dtype, false, false, LC_ABSENT), 1);
}
static int embedding_bag_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *ids = in(0), *weight = in(1), *offsets = in(2), *factors = in[6].t;
    int64_t    padding = -1;
    bool       mean = !strcmp(in[4].s, "mean"), max = !strcmp(in[4].s, "max");
    if (weight->dtype == LC_i64 && lc_is_floating(ids->dtype)) {
        lc_warn("Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
                "deprecated, and should "
                "now be `embedding_bag(input, weight, ...)`.");
        weight = in(0), ids = in(1);
    }
    if (check_bags(ids, weight, offsets, factors) < 0) return -1;
    if (!mean && !max && strcmp(in[4].s, "sum")) return lc_fail_int(LC_ValueError, "mode has to be one of sum, mean or max");
    if (max && in[3].b) return lc_fail_int(LC_ValueError, "max mode does not support scaling the gradient by the frequency");
    if (max && in[5].b) return lc_fail_int(LC_ValueError, "max mode does not support sparse weights");
    if (factors != LC_NONE && (mean || max))
        return lc_fail_int(LC_NotImplementedError,
                           "embedding_bag: per_sample_weights is only supported for mode='sum' (got mode='%s')", in[4].s);
    if (int_argument(&in[8], &padding)) {
        int64_t rows = weight->shape[0];
        if (padding < -rows || padding >= rows)
            return lc_fail_int(LC_LucidError,
                               "padding_idx must be within the number of embeddings, -%lld through %lld, but got %lld",
                               (long long)rows, (long long)(rows - 1), (long long)padding);
        padding = padding < 0 ? padding + rows : padding;
    }
    lc_tensor *bags = starts_of(ids, offsets, ids->ndim == 1 && in[7].b), *flat = lc_flatten(ids, 0, -1);
    if (factors != LC_NONE) factors = lc_flatten(factors, 0, -1);
    if (!bags || !flat || !factors) return -1;
    if (max) return (out[0] = lc__embedding_max(weight, flat, bags, padding).out) ? 0 : -1;
    lc_tensor *sum = lc__embedding_sum(weight, flat, bags, factors, padding, in[3].b, in[5].b);
    return (out[0] = sum && mean ? lc_div(sum, counts_of(flat, bags, padding, weight)) : sum) ? 0 : -1;
}
LC_OP(_embedding_bag,
      .sig = "_embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, scale_grad_by_freq: bool = False, "
             "mode: str = 'mean', "
             "sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: "
             "int | None = "
             "None) -> Tensor",
      .doc = "Sums, means or maxima over bags of rows of weight.", .ns = "nn.functional", .promote = LC_NO_PROMOTION,
      .call = embedding_bag_call);

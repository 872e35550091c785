/* take and put: elements by their number in row-major order, whatever the strides; and gather with broadcasting. */
#include "index.h"

static int index_is_long(const lc_record *call)
{
    if (call->in[1]->dtype == LC_i64) return 0;
    return lc_fail_int(LC_DtypeMismatch, "%s(): Expected a long tensor for index, but got %s", call->op->name,
                       LC_SHAPE(call->in[1]));
}
/* The walk over index's shape; `walked` has that shape. */
static int walk_flat(const lc_record *call, lc_tensor *indexed, lc_tensor *walked, lc_index_args *a)
{
    lc_tensor *index = index_for(call->in[1], call->out[0]);
    if (!index) return -1;
    lc_index_operand k = { .index = index, .size = indexed->numel, .step = 1 };
    a->indexed = indexed, a->walked = walked, a->wraps = true, a->flat = !indexed->is_contiguous, a->n_index = 1, a->index = &k;
    a->ndim = index->ndim, a->fresh = is_fresh(call), a->ordered = lc_modes & LC_DETERMINISTIC;
    for (int d = 0; d < index->ndim; d++) {
        a->shape[d] = index->shape[d], a->indexed_stride[d] = 0;
        a->walked_stride[d] = walked->stride[d], k.stride[d] = index->stride[d];
    }
    int rc = run_kernel_with(call, a);
    return lc_release(index), rc;
}

static int take_shape(const lc_record *call, lc_spec *out)
{
    if (index_is_long(call) < 0) return -1;
    if (!call->in[0]->numel && call->in[1]->numel)
        return lc_fail_int(LC_IndexError, "take(): tried to take from an empty tensor");
    return spec_like(call, out, call->in[1], (lc_dtype)call->in[0]->dtype), 0;
}
static int take_run(const lc_record *call)
{
    return walk_flat(call, call->in[0], call->out[0], &(lc_index_args){ .mode = LC_INDEX_READ });
}
GRAD(take) { dx[0] = lc_put_(zeros_like(in(0)), in(1), g[0], true); }
LC_OP(take, .sig = "take(input: Tensor, index: Tensor) -> Tensor", .doc = "Elements by their position in the flattened input.",
      .method = true, .out = true, .any_strides = true, .exact = true, .kernel = LC_OP__index, .promote = LC_NO_PROMOTION,
      .shape = take_shape, .kind = LC_KIND_MOVE, .run = take_run, .grad = take_grad, .saves = IN(1));

static int put_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0], *index = call->in[1], *source = call->in[2];
    if (index_is_long(call) < 0 || same_dtype(call, x, source) < 0) return -1;
    if (index->numel != source->numel)
        return lc_fail_int(LC_IndexError,
                           "put_(): Expected source and index to have the same number of elements, but got %lld and %lld",
                           (long long)source->numel, (long long)index->numel);
    if (!x->numel && index->numel) return lc_fail_int(LC_IndexError, "put_(): Tried to put elements into an empty tensor");
    spec_like(call, out, x, (lc_dtype)x->dtype);
    return out->order = LC_ORDER_STRIDES, lc_strides_like(x, out->stride), 0;
}
static int put_run(const lc_record *call)
{
    lc_index_args a = { .mode = call->args[3].b ? LC_INDEX_ADD : LC_INDEX_WRITE, .start = start_of(call) };
    lc_tensor    *index = call->in[1], *source = call->in[2], *line = NULL;
    int64_t       stride[LC_MAX_DIMS];
    if (lc_same_shape(index, source)) return walk_flat(call, call->out[0], source, &a);
    if (!(source = packed(source, (lc_dtype)source->dtype))) return -1; /* one behind the other, in index's shape */
    lc_contiguous_strides(index->ndim, index->shape, stride);
    line = lc_tensor_view(source, index->ndim, index->shape, stride, 0);
    int rc = line ? walk_flat(call, call->out[0], line, &a) : -1;
    return lc_release(line), lc_release(source), rc;
}
GRAD(put)
{
    if (need[0]) dx[0] = in[3].b ? g[0] : lc_put(g[0], in(1), zeros_like(in(2)), false);
    if (need[2]) dx[2] = same_size_view(lc_take(g[0], in(1)), in(2)->shape, in(2)->ndim);
}
LC_OP(put, .sig = "put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor",
      .doc = "input with elements written, or added, by their position in the flattened input.", .method = true,
      .inplace = true, .any_strides = true, .exact = true, .kernel = LC_OP__index_put, .promote = LC_NO_PROMOTION,
      .nondeterministic = IN(3), .shape = put_shape, .run = put_run, .grad = put_grad, .saves = IN(1));

/* gather with negative indices, which count from the end. */
static int from_the_end_run(const lc_record *call)
{
    return walk_along(call, call->in[0], call->out[0], call->in[1], &(lc_index_args){ .mode = LC_INDEX_READ, .wraps = true });
}
GRAD(_take_along)
{
    int64_t    size = in(0)->ndim ? in(0)->shape[in[1].i < 0 ? in[1].i + in(0)->ndim : in[1].i] : 1;
    lc_tensor *index = lc_where(lc_lt(in(2), LC_INTEGER(0)), lc_add(in(2), LC_INTEGER(size)), in(2));
    dx[0] = lc_scatter_add_(zeros_like(in(0)), in[1].i, index, g[0]);
}
LC_OP(_take_along, .batching = LC_BATCH_DIMS, .sig = "_take_along(input: Tensor, dim: int, index: Tensor) -> Tensor",
      .doc = "gather; negative indices count from the end.", .hidden = true, .any_strides = true, .kernel = LC_OP__index,
      .promote = LC_NO_PROMOTION, .shape = gather_shape, .kind = LC_KIND_MOVE, .run = from_the_end_run,
      .grad = _take_along_grad, .saves = IN(2));
static int take_along_dim_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *index = in(1);
    int64_t    dim, all = -1, shape[2][LC_MAX_DIMS];
    int        d;
    if (!int_argument(&in[2], &dim))
        return (out[0] = lc_gather(lc_reshape(x, &all, 1), 0, lc_reshape(index, &all, 1), false)) ? 0
                                                                                                  : -1; /* none from the end */
    if (x->ndim != index->ndim)
        return lc_fail_int(LC_ShapeMismatch,
                           "take_along_dim(): input and indices should have the same number of dimensions, but got %d "
                           "dimensions for input, and %d dimensions for indices",
                           x->ndim, index->ndim);
    if (dim_index(dim, x->ndim, &d) < 0) return -1;
    for (int e = 0; e < x->ndim; e++) { /* both broadcast, except along dim */
        int64_t a = x->shape[e], b = index->shape[e], wide = a == 1 ? b : a;
        if (e != d && a != b && a != 1 && b != 1)
            return lc_fail_int(LC_ShapeMismatch, "take_along_dim(): %s and %s do not broadcast in dimension %d", LC_SHAPE(x),
                               LC_SHAPE(index), e);
        shape[0][e] = e == d ? a : wide, shape[1][e] = e == d ? b : wide;
    }
    out[0] = lc__take_along(lc_expand(x, shape[0], x->ndim), dim, lc_expand(index, shape[1], x->ndim));
    return out[0] ? 0 : -1;
}
LC_OP(take_along_dim, .strict_out = true,
      .sig = "take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor",
      .doc = "gather with broadcasting; without dim from the flattened input.", .method = true, .out = true,
      .call = take_along_dim_call);

/* Indexing: one kernel pair (args.h: lc_index_args) behind every op. An op says which shape is walked, how `indexed` (the tensor that is
 * indexed) and `walked` (the one that holds a value per position) are stepped through, and which index tensors there are.
 *
 * Advanced indexing x[i, :, mask] is split in two: `index` and `index_put_` turn masks into positions and broadcast the index tensors; the
 * hidden ops `_index` and `_index_put`, which carry kernel and gradient, see int64 tensors of one shape, LC_NONE where a dimension is
 * kept. Where indexed dimensions are neighbours the result takes their place, else it comes first: NumPy's rule. */
#include "index.h"

/* ---- along one dimension: gather, scatter and the index_* family ---- */
static int index_is_integer(const lc_record *call, const lc_tensor *index)
{
    if (index->dtype == LC_i64 || index->dtype == LC_i32) return 0;
    return lc_fail_int(LC_DtypeMismatch, "%s(): Expected dtype int32 or int64 for index, got %s", call->op->name,
                       lc_dtypes[index->dtype].name);
}

int same_dtype(const lc_record *call, const lc_tensor *a, const lc_tensor *b)
{
    if (a->dtype == b->dtype) return 0;
    return lc_fail_int(LC_DtypeMismatch, "%s(): Expected self.dtype to be equal to src.dtype, got %s and %s", call->op->name,
                       LC_SHAPE(a), LC_SHAPE(b));
}

lc_tensor *index_for(lc_tensor *index, const lc_tensor *written)
{
    bool safe = !index->storage || index->storage != written->storage; /* else good indices may turn bad under way */
    if (safe || index->dtype != LC_i64) return in_dtype(index, LC_i64);
    lc_tensor *copy = lc_tensor_new(LC_i64, index->device, index->ndim, index->shape);
    if (copy && lc_backends[index->device.kind]->copy(copy, index) < 0) lc_release(copy), copy = NULL;
    return copy;
}

int walk_along(const lc_record *call, lc_tensor *indexed, lc_tensor *walked, const lc_tensor *shaped, lc_index_args *a)
{
    lc_index_operand k;
    int              d;
    lc_tensor       *index;
    if (dim_index(call->args[1].i, indexed->ndim, &d) < 0) return -1;
    if (!(index = index_for(call->in[1], call->out[0]))) return -1;
    a->indexed = indexed, a->walked = walked, a->n_index = 1, a->index = &k, a->ndim = shaped->ndim, a->fresh = is_fresh(call);
    a->ordered = lc_modes & LC_DETERMINISTIC;
    memcpy(a->shape, shaped->shape, (size_t)shaped->ndim * sizeof *a->shape);
    for (int e = 0; e < shaped->ndim; e++) {
        a->indexed_stride[e] = e == d ? 0 : stride_at(indexed, e);
        a->walked_stride[e] = stride_at(walked, e); /* 0-d: one value for every position */
        k.stride[e] = index->ndim == shaped->ndim ? stride_at(index, e) : e == d ? stride_at(index, 0) : 0;
    }
    k.index = index, k.dim = d, k.size = size_at(indexed, d), k.step = stride_at(indexed, d);
    int rc = run_kernel_with(call, a);
    return lc_release(index), rc;
}

/* gather and scatter: index has the rank of the tensor and is nowhere larger than `bound` (except along dim, where asked). */
static int check_index_shape(const lc_record *call, const lc_tensor *index, const lc_tensor *bound, int dim, const char *what)
{
    bool fits = (index->ndim ? index->ndim : 1) == (bound->ndim ? bound->ndim : 1);
    for (int d = 0; fits && index->numel && d < index->ndim; d++) fits = d == dim || index->shape[d] <= size_at(bound, d);
    if (fits || !index->numel) return 0;
    return lc_fail_int(LC_ShapeMismatch, "%s(): Expected index %s to be no larger than %s %s%s", call->op->name,
                       LC_SIZES(index->shape, index->ndim), what, LC_SIZES(bound->shape, bound->ndim),
                       dim < 0 ? "" : " apart from the indexed dimension");
}

int gather_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0], *index = call->in[1];
    int              d;
    if (index->numel && index_is_integer(call, index) < 0) return -1;
    if (dim_index(call->args[1].i, x->ndim, &d) < 0) return -1;
    if (check_index_shape(call, index, x, d, "input") < 0) return -1;
    return spec_like(call, out, index, x->dtype), 0;
}
static int gather_run(const lc_record *call)
{
    return walk_along(call, call->in[0], call->out[0], call->in[1], &(lc_index_args){ .mode = LC_INDEX_READ });
}
/* sparse_grad=True: the gradient is a COO tensor with an entry for each element that was picked. */
static lc_tensor *picked_gradient(lc_tensor *g, const lc_tensor *x, int64_t dim, lc_tensor *index)
{
    int d;
    if (x->ndim == 0) return g;
    if (dim_index(dim, x->ndim, &d) < 0) return NULL;
    lc_tensor *places = lc_t(lc_nonzero(lc_ge(index, index), false)); /* of all elements of index, in order */
    lc_tensor *picked = lc_to(lc_reshape(index, (int64_t[]){ 1, -1 }, 2), LC_i64, false, false, LC_ABSENT);
    lc_tensor *rows[3] = { lc_narrow(places, 0, 0, d), picked, lc_narrow(places, 0, d + 1, x->ndim - d - 1) };
    return lc__sparse_coo(lc_cat(rows, 3, 0), lc_reshape(g, (int64_t[]){ -1 }, 1), x->shape, x->ndim, false);
}
GRAD(gather)
{
    if (in[3].b) dx[0] = picked_gradient(g[0], in(0), in[1].i, in(2));
    else dx[0] = lc_scatter_add_(zeros_like(in(0)), in[1].i, in(2), g[0]);
}
LC_OP(gather, .batching = LC_BATCH_DIMS,
      .sig = "gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor",
      .doc = "Pick elements along a dimension: out[i][j] = input[index[i][j]][j] for dim 0.", .method = true, .out = true,
      .kernel = LC_OP__index, .any_strides = true, .exact = true, .promote = LC_NO_PROMOTION, .shape = gather_shape,
      .kind = LC_KIND_MOVE, .run = gather_run, .grad = gather_grad, .saves = IN(2));

static int like_input(const lc_record *call, lc_spec *out) { return spec_like(call, out, call->in[0], call->in[0]->dtype), 0; }

int scatter_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0], *index = call->in[1], *src = call->n_in > 2 ? call->in[2] : LC_NONE;
    int              d;
    if (index->numel && index_is_integer(call, index) < 0) return -1;
    if (dim_index(call->args[1].i, x->ndim, &d) < 0) return -1;
    if (check_index_shape(call, index, x, d, "self") < 0) return -1;
    if (!src->is_number && (same_dtype(call, x, src) < 0 || check_index_shape(call, index, src, -1, "src") < 0)) return -1;
    return like_input(call, out);
}

static int scatter_with(const lc_record *call, lc_tensor *src, lc_index_mode mode)
{
    return walk_along(call, call->out[0], src, call->in[1], &(lc_index_args){ .mode = mode, .start = start_of(call) });
}
static int scatter_mode(const lc_record *call, const lc_value *reduce, lc_index_mode *mode)
{
    if (reduce->tag != LC_IS_str) return *mode = LC_INDEX_WRITE, 0;
    if (!strcmp(reduce->s, "add")) return *mode = LC_INDEX_ADD, 0;
    if (!strcmp(reduce->s, "multiply")) return *mode = LC_INDEX_MULTIPLY, 0;
    return lc_fail_int(LC_LucidError, "%s: reduce argument must be either add or multiply, got '%s'", call->op->name,
                       reduce->s);
}
lc_tensor *one_value(const lc_record *call, lc_tensor *number)
{
    lc_tensor *one = lc_tensor_new((lc_dtype)call->in[0]->dtype, call->device, 0, NULL);
    if (one && fill_tensor(one, number) < 0) lc_release(one), one = NULL;
    return one;
}
static int scatter_run(const lc_record *call)
{
    lc_index_mode mode;
    lc_tensor    *value = call->in[2];
    if (scatter_mode(call, &call->args[4], &mode) < 0) return -1;
    if (!value->is_number) return scatter_with(call, value, mode);
    lc_tensor *one = one_value(call, value);
    int        rc = one ? scatter_with(call, one, mode) : -1;
    return lc_release(one), rc;
}

/* Gradients of plain scatter; with reduce= PyTorch has none either, and says so. */
static bool scatter_differentiable(const lc_value *in, lc_tensor **dx)
{
    if (in[4].tag != LC_IS_str) return true;
    lc_fail(LC_NotImplementedError, "scatter with reduce='%s' has no gradient: use scatter_add", in[4].s);
    return dx[0] = NULL, false;
}
lc_tensor *grown(lc_tensor *t, const lc_tensor *like)
{
    for (int d = 0; t && d < like->ndim && t->ndim; d++) {
        int64_t shape[LC_MAX_DIMS], missing = like->shape[d] - t->shape[d];
        if (!missing) continue;
        memcpy(shape, t->shape, (size_t)t->ndim * sizeof *shape);
        shape[d] = missing;
        t = lc_cat((lc_tensor *[]){ t, lc_new_zeros(t, shape, t->ndim, LC_ABSENT, LC_ABSENT) }, 2, d);
    }
    return t;
}
/* The gradient of scatter's src, scoped. Where src is larger than index, the rest of it was never read. */
static lc_tensor *gathered(lc_tensor *g, int64_t dim, lc_tensor *index, const lc_tensor *src)
{
    lc_tensor *picked = grown(lc_gather(g, dim, index, false), src);
    return picked && src->ndim != picked->ndim ? same_size_view(picked, src->shape, src->ndim) : picked;
}
GRAD(scatter)
{
    if (!scatter_differentiable(in, dx)) return;
    if (need[0]) dx[0] = lc_scatter_value(g[0], in[1].i, in(2), LC_INTEGER(0), NULL);
    if (need[2]) dx[2] = gathered(g[0], in[1].i, in(2), in(3));
}
LC_OP(scatter, .batching = LC_BATCH_DIMS,
      .sig = "scatter(input: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str | None = None) -> Tensor",
      .doc = "input with src written at index along dim.", .method = true, .inplace = true, .out = true,
      .kernel = LC_OP__index_put, .any_strides = true, .exact = true, .promote = LC_NO_PROMOTION, .shape = scatter_shape,
      .run = scatter_run, .grad = scatter_grad, .saves = IN(2));
GRAD(scatter_value)
{
    if (scatter_differentiable(in, dx) && need[0]) dx[0] = lc_scatter_value(g[0], in[1].i, in(2), LC_INTEGER(0), NULL);
}
LC_OP(
    scatter_value, .batching = LC_BATCH_DIMS, .batched = IN(0) | IN(2),
    .sig =
        "scatter_value(input: Tensor, dim: int, index: Tensor, value: Tensor | Number, *, reduce: str | None = None) -> Tensor",
    .py = "scatter", .doc = "input with one value written at index along dim.", .method = true, .inplace = true, .out = true,
    .kernel = LC_OP__index_put, .any_strides = true, .exact = true, .promote = LC_NO_PROMOTION, .shape = scatter_shape,
    .run = scatter_run, .grad = scatter_value_grad, .saves = IN(2));

static int scatter_add_run(const lc_record *call) { return scatter_with(call, call->in[2], LC_INDEX_ADD); }
GRAD(scatter_add)
{
    if (need[0]) dx[0] = g[0];
    if (need[2]) dx[2] = gathered(g[0], in[1].i, in(2), in(3));
}
LC_OP(scatter_add, .amp = LC_AMP_GPU_WIDEST, .batching = LC_BATCH_DIMS,
      .sig = "scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor",
      .doc = "input with src added at index along dim: gather's adjoint.", .method = true, .inplace = true, .out = true,
      .kernel = LC_OP__index_put, .any_strides = true, .exact = true, .promote = LC_NO_PROMOTION, .shape = scatter_shape,
      .run = scatter_add_run, .grad = scatter_add_grad, .saves = IN(2));

/* ---- whole slices ---- */
/* index has at most one dimension. */
static int slice_index(const lc_record *call, const lc_tensor *index)
{
    if (index_is_integer(call, index) < 0) return -1;
    if (index->ndim > 1)
        return lc_fail_int(LC_IndexError, "%s(): Index is supposed to be a vector, got %s", call->op->name, LC_SHAPE(index));
    return 0;
}

static int index_select_shape(const lc_record *call, lc_spec *out)
{
    int d;
    if (slice_index(call, call->in[1]) < 0 || dim_index(call->args[1].i, call->in[0]->ndim, &d) < 0) return -1;
    spec_like(call, out, call->in[0], call->in[0]->dtype);
    if (out->ndim) out->shape[d] = call->in[1]->numel;
    else if (call->in[1]->numel != 1)
        return lc_fail_int(LC_IndexError, "index_select(): Index to scalar can have only 1 value, got %lld value(s)",
                           (long long)call->in[1]->numel);
    return 0;
}
static int index_select_run(const lc_record *call)
{
    return walk_along(call, call->in[0], call->out[0], call->out[0], &(lc_index_args){ .mode = LC_INDEX_READ });
}
GRAD(index_select) { dx[0] = lc_index_add_(zeros_like(in(0)), in[1].i, in(2), g[0], LC_I(1)); }
LC_OP(index_select, .batching = LC_BATCH_DIMS, .batched = IN(0),
      .sig = "index_select(input: Tensor, dim: int, index: Tensor) -> Tensor",
      .doc = "The slices of input that a vector of indices names.", .method = true, .out = true, .kernel = LC_OP__index,
      .any_strides = true, .exact = true, .promote = LC_NO_PROMOTION, .shape = index_select_shape, .kind = LC_KIND_MOVE,
      .run = index_select_run, .grad = index_select_grad, .saves = IN(2));

static int check_slices(const lc_record *call, lc_spec *out,
                        bool joins) /* joins: a number and a vector of one fit each other */
{
    const lc_tensor *x = call->in[0], *index = call->in[1], *source = call->in[2];
    int              d;
    if (slice_index(call, index) < 0 || dim_index(call->args[1].i, x->ndim, &d) < 0 || same_dtype(call, x, source) < 0)
        return -1;
    if (!x->ndim != !source->ndim && !joins)
        return lc_fail_int(LC_ShapeMismatch, "%s(): source %s must have the shape of %s, excluding dimension %d",
                           call->op->name, LC_SHAPE(source), LC_SHAPE(x), d);
    bool fits = (x->ndim ? x->ndim : 1) == (source->ndim ? source->ndim : 1) && size_at(source, d) == index->numel;
    for (int e = 0; fits && e < x->ndim; e++) fits = e == d || x->shape[e] == size_at(source, e);
    if (!fits)
        return lc_fail_int(LC_IndexError, "%s(): source %s does not fit %s with %lld indices along dimension %d",
                           call->op->name, LC_SHAPE(source), LC_SHAPE(x), (long long)index->numel, d);
    return like_input(call, out);
}
int        slices_fit(const lc_record *call, lc_spec *out) { return check_slices(call, out, false); }
static int copied_slices_fit(const lc_record *call, lc_spec *out) { return check_slices(call, out, true); }
static int write_slices(const lc_record *call, lc_tensor *source, lc_index_args *a)
{
    a->start = start_of(call);
    return walk_along(call, call->out[0], source, source->ndim ? source : call->out[0], a);
}
static int index_copy_run(const lc_record *call)
{
    return write_slices(call, call->in[2], &(lc_index_args){ .mode = LC_INDEX_WRITE });
}
GRAD(index_copy)
{
    if (need[0]) dx[0] = lc_index_fill(g[0], in[1].i, in(2), LC_INTEGER(0));
    if (need[2]) dx[2] = same_size_view(lc_index_select(g[0], in[1].i, in(2)), in(3)->shape, in(3)->ndim);
}
LC_OP(index_copy, .sig = "index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor",
      .doc = "input with slices replaced by those of source.", .amp = LC_AMP_CPU_WIDEST, .method = true, .inplace = true,
      .out = true, .kernel = LC_OP__index_put, .any_strides = true, .exact = true, .promote = LC_NO_PROMOTION,
      .shape = copied_slices_fit, .run = index_copy_run, .grad = index_copy_grad, .saves = IN(2));

static lc_tensor *scaled(const lc_record *call, lc_tensor *t, const lc_value *alpha) /* new reference */
{
    if (lc_number_of(alpha) == 1 && alpha->tag != LC_IS_complex) return lc_retain(t);
    lc_tensor *by = number_operand(alpha);
    lc_tensor *made = number_fits(call->in[0]->dtype, by) == 0 ? lc_tensor_new(t->dtype, t->device, t->ndim, t->shape) : NULL;
    if (made && call->backend->elementwise(LC_OP_mul, t->dtype, made, (lc_tensor *[]){ t, by }, 2) < 0)
        lc_release(made), made = NULL;
    return made;
}
static int index_add_run(const lc_record *call)
{
    if (!call->out[0]->numel && call->out[0]->ndim > 1) return 0; /* whatever the indices, as in PyTorch */
    lc_tensor *source = scaled(call, call->in[2], &call->args[4]);
    int        rc = source ? write_slices(call, source, &(lc_index_args){ .mode = LC_INDEX_ADD }) : -1;
    return lc_release(source), rc;
}
GRAD(index_add)
{
    if (need[0]) dx[0] = g[0];
    if (!need[2]) return;
    lc_tensor *picked = same_size_view(lc_index_select(g[0], in[1].i, in(2)), in(3)->shape, in(3)->ndim);
    bool       whole = in[4].tag != LC_IS_complex && lc_number_of(&in[4]) == 1;
    dx[2] = whole ? picked : lc_mul(picked, number_operand(&in[4]));
}
LC_OP(index_add, .sig = "index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor",
      .doc = "input with alpha times the slices of source added.", .method = true, .inplace = true, .out = true,
      .kernel = LC_OP__index_put, .any_strides = true, .exact = true, .promote = LC_NO_PROMOTION, .shape = slices_fit,
      .run = index_add_run, .grad = index_add_grad, .saves = IN(2));

static int index_fill_shape(const lc_record *call, lc_spec *out)
{
    int            d;
    const lc_dtype index = (lc_dtype)call->in[1]->dtype;
    if (index != LC_i64)
        return lc_fail_int(LC_IndexError, "index_fill_(): Expected dtype int64 for index, got %s", lc_dtypes[index].name);
    if (slice_index(call, call->in[1]) < 0 || dim_index(call->args[1].i, call->in[0]->ndim, &d) < 0) return -1;
    if (lc_is_complex(call->in[2]->dtype) && !lc_is_complex(call->in[0]->dtype))
        return lc_fail_int(LC_DtypeMismatch, "index_fill_(): Converting complex Scalar to non-complex type is not supported");
    if (call->in[2]->ndim)
        return lc_fail_int(LC_ShapeMismatch,
                           "index_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).",
                           call->in[2]->ndim);
    like_input(call, out);
    return out->order = LC_ORDER_STRIDES, lc_strides_like(call->in[0], out->stride), 0;
}
static int index_fill_run(const lc_record *call)
{
    int              d;
    const lc_tensor *x = call->out[0];
    if (dim_index(call->args[1].i, x->ndim, &d) < 0) return -1;
    lc_tensor *one = one_value(call, call->in[2]), *walked = NULL;
    int64_t    shape[LC_MAX_DIMS], still[LC_MAX_DIMS] = { 0 };
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof *shape);
    if (x->ndim) shape[d] = call->in[1]->numel;
    else if (!call->in[1]->numel) { /* no slice of the only one */
        int kept = call->out[0]->data == call->in[0]->data ? 0 : call->backend->copy(call->out[0], call->in[0]);
        return lc_release(one), kept;
    }
    int rc =
        one && (walked = lc_tensor_view(one, x->ndim, shape, still, 0)) ? 0 : -1; /* the value, in the shape of the slices */
    if (rc == 0)
        rc = walk_along(call, call->out[0], walked, walked,
                        &(lc_index_args){ .mode = LC_INDEX_WRITE, .wraps = true, .start = start_of(call) });
    return lc_release(walked), lc_release(one), rc;
}
GRAD(index_fill)
{
    if (need[0]) dx[0] = lc_index_fill(g[0], in[1].i, in(2), LC_INTEGER(0));
    if (!need[2]) return;
    lc_value b8 = LC_OF_DTYPE(LC_b8), here = { .tag = LC_IS_device, .dev = g[0]->device };
    int64_t  shape[LC_MAX_DIMS];
    int      d = in[1].i < 0 ? (int)in[1].i + g[0]->ndim : (int)in[1].i;
    for (int e = 0; e < g[0]->ndim; e++) shape[e] = e == d ? g[0]->shape[e] : 1;
    lc_tensor *filled =
        lc_index_fill_(lc_zeros(shape, g[0]->ndim, b8, here), in[1].i, in(2), LC_INTEGER(1)); /* each slice once */
    dx[2] = lc_where(filled, g[0], LC_INTEGER(0)); /* the engine sums over the broadcast */
}
LC_OP(index_fill, .batching = LC_BATCH_DIMS, .batched = IN(0),
      .sig = "index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor | Number) -> Tensor",
      .doc = "input with whole slices set to one value.", .method = true, .inplace = true, .kernel = LC_OP__index_put,
      .any_strides = true, .exact = true, .repeats_ok = true, .promote = LC_NO_PROMOTION, .shape = index_fill_shape,
      .run = index_fill_run, .grad = index_fill_grad, .saves = IN(2));

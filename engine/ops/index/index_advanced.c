/* Advanced indexing: x[i, :, mask], and writing there. See index.c. */
#include "index.h"
#include "../../tensor/iter.h"

/* ---- _index and _index_put: int64 index tensors, LC_NONE where a dimension is kept ---- */
typedef struct { /* how the result lies over the indexed tensor */
    lc_index_args    a;
    lc_index_operand k[LC_MAX_DIMS];
    int              end; /* of the indices' dimensions in the result */
} layout;

/* An initialiser would clear 36 KB: dimensions and operands beyond those that lay_out counts are never read. */
static void start_layout(layout *l, lc_index_mode mode, bool fresh)
{
    l->a.mode = mode, l->a.fresh = fresh, l->a.checked = l->a.flat = false, l->a.start = NULL;
    l->a.ordered = lc_modes & LC_DETERMINISTIC;
}

/* The index tensors broadcast together: right-aligned into shape[0 .. n). */
static int broadcast_indices(lc_tensor *const *index, int n_index, int64_t *shape, int *n)
{
    *n = 0;
    for (int k = 0; k < n_index; k++)
        if (index[k] != LC_NONE && index[k]->ndim > *n) *n = index[k]->ndim;
    for (int d = 0; d < *n; d++) shape[d] = 1;
    for (int k = 0; k < n_index; k++)
        for (int d = 0, at = *n - index[k]->ndim; index[k] != LC_NONE && d < index[k]->ndim; d++) {
            int64_t size = index[k]->shape[d];
            if (shape[at + d] == 1) shape[at + d] = size;
            else if (size != 1 && size != shape[at + d]) {
                const lc_tensor *other = index[0];
                for (int j = 0; j < k; j++) other = index[j] != LC_NONE ? index[j] : other;
                return lc_fail_int(LC_IndexError,
                                   "shape mismatch: indexing tensors could not be broadcast together with shapes %s, %s",
                                   LC_SIZES(other->shape, other->ndim), LC_SIZES(index[k]->shape, index[k]->ndim));
            }
        }
    return 0;
}

/* Where the indexed dimensions' place is: the first of them if they are neighbours, else the front. */
static int index_position(lc_tensor *const *index, int n)
{
    int first = -1, last = -1, count = 0;
    for (int k = 0; k < n; k++)
        if (index[k] != LC_NONE) {
            if (first < 0) first = k;
            last = k, count++;
        }
    return count && last - first + 1 == count ? first : 0;
}

static int lay_out(layout *l, const lc_tensor *x, lc_tensor *const *index, int n)
{
    lc_index_args *a = &l->a;
    int64_t        shape[LC_MAX_DIMS];
    int            rank, place = index_position(index, n), first;
    if (n > x->ndim) return lc_fail_int(LC_IndexError, "too many indices for tensor of dimension %d", x->ndim);
    if (broadcast_indices(index, n, shape, &rank) < 0) return -1;
    a->ndim = a->n_index = 0, a->index = l->k, a->wraps = true, first = -1;
    for (int d = 0; d <= x->ndim; d++) {
        bool indexed = d < n && index[d] != LC_NONE;
        if (first < 0 && d == place) { /* the broadcast index dimensions */
            if (a->ndim + rank > LC_MAX_DIMS)
                return lc_fail_int(LC_LucidError, "indexing: more than %d dimensions", LC_MAX_DIMS);
            first = a->ndim;
            for (int e = 0; e < rank; e++) a->shape[a->ndim] = shape[e], a->indexed_stride[a->ndim++] = 0;
            l->end = a->ndim;
        }
        if (d == x->ndim || indexed) continue;
        if (a->ndim == LC_MAX_DIMS) return lc_fail_int(LC_LucidError, "indexing: more than %d dimensions", LC_MAX_DIMS);
        a->shape[a->ndim] = x->shape[d], a->indexed_stride[a->ndim++] = x->stride[d];
    }
    for (int d = 0; d < n; d++) {
        if (index[d] == LC_NONE) continue;
        if (x->shape[d] == 0 && lc_numel_of(rank, shape) != 0)
            return lc_fail_int(LC_IndexError, "index is out of bounds for dimension %d with size 0", d);
        lc_index_operand *k = &l->k[a->n_index++];
        k->index = index[d], k->size = x->shape[d], k->step = x->stride[d], k->dim = d;
        for (int e = 0; e < a->ndim; e++) k->stride[e] = 0;
        for (int e = 0, at = first + rank - index[d]->ndim; e < index[d]->ndim; e++)
            k->stride[at + e] = index[d]->shape[e] == 1 ? 0 : index[d]->stride[e];
    }
    return 0;
}

/* An index as PyTorch reshapes it to the result's dimensions: there are strides in those of size one, and they matter to the order. */
static void reshaped_strides(const layout *l, const lc_index_operand *k, int64_t *stride)
{
    const lc_tensor *t = k->index;
    int              at = l->end - t->ndim;
    for (int d = 0; d < l->a.ndim; d++)
        stride[d] = l->a.shape[d] != 1 ? k->stride[d]
                    : t->ndim == 0     ? 1
                    : d < at           ? t->shape[0] * t->stride[0]
                    : d < l->end       ? t->stride[d - at]
                                       : t->stride[t->ndim - 1];
}

/* Strides as TensorIterator gives them: of the indexed tensor, standing still where indices move it, and of the indices. */
static int index_shape(const lc_record *call, lc_spec *out)
{
    layout     l;
    lc_tensor *seen[LC_OPERANDS];
    int        n = 0, rc = 0;
    if (lay_out(&l, call->in[0], call->in + 1, call->n_in - 1) < 0) return -1;
    if (spec_shape(call, out, call->in[0]->dtype, l.a.ndim, l.a.shape) < 0) return -1;
    if (l.a.n_index + 1 > LC_OPERANDS || lc_numel_of(l.a.ndim, l.a.shape) <= 0) return 0;
    for (int k = -1; k < l.a.n_index && rc == 0; k++) {
        lc_tensor     *t = k < 0 ? call->in[0] : (lc_tensor *)l.k[k].index;
        int64_t        reshaped[LC_MAX_DIMS];
        const int64_t *stride = k < 0 ? l.a.indexed_stride : reshaped;
        if (k >= 0) reshaped_strides(&l, &l.k[k], reshaped);
        if ((seen[n] = lc_tensor_view(t, l.a.ndim, l.a.shape, stride, 0))) n++;
        else rc = -1;
    }
    if (rc == 0) out->order = LC_ORDER_STRIDES, lc_output_strides(seen, n, l.a.ndim, l.a.shape, out->stride);
    return lc_release_all(seen, n), rc;
}
static int index_run(const lc_record *call)
{
    layout l;
    start_layout(&l, LC_INDEX_READ, is_fresh(call));
    if (lay_out(&l, call->in[0], call->in + 1, call->n_in - 1) < 0) return -1;
    l.a.indexed = call->in[0], l.a.walked = call->out[0];
    memcpy(l.a.walked_stride, call->out[0]->stride, (size_t)l.a.ndim * sizeof *l.a.walked_stride);
    return run_kernel_with(call, &l.a);
}
GRAD(_index) { dx[0] = lc__index_put_(zeros_like(in(0)), in[1].ts, in[1].n, g[0], true); }
/* Batched indices are lined up behind the batch; where input has one too, its place is one more index. */
static int index_batch(const lc_batch_call *b, lc_tensor **out)
{
    int        n = b->call->n_in - 1, most = 0, first = -1, last = -1, taken = 0, moved = 0;
    bool       any = false, own = b->batched[0];
    lc_tensor *to[LC_MAX_DIMS + 1];
    if (n >= LC_MAX_DIMS) return LC_NO_RULE;
    for (int k = 0; k < n; k++) {
        const lc_tensor *example = b->call->in[k + 1];
        if (example == LC_NONE) continue;
        if (example->ndim > most) most = example->ndim;
        first = first < 0 ? k : first, last = k, taken++, any |= b->batched[k + 1];
    }
    bool    together = last - first + 1 == taken; /* else the dimensions of the indices come first */
    int64_t shape[LC_MAX_DIMS + 1] = { b->size }, from[LC_MAX_DIMS], dest[LC_MAX_DIMS];
    for (int d = 0; d < most; d++) shape[d + 1] = 1;
    lc_value where = { .tag = LC_IS_device, .dev = b->in[0]->device };
    to[0] = any ? lc_reshape(lc_arange(LC_I(b->size), LC_OF_DTYPE(LC_i64), where), shape, most + 1) : LC_NONE;
    for (int k = 0; k < n; k++) {
        lc_tensor *t = b->in[k + 1];
        if (b->batched[k + 1]) {
            int lead = most - (t->ndim - 1);
            for (int d = 0; d < lead; d++) shape[d + 1] = 1;
            memcpy(shape + 1 + lead, t->shape + 1, (size_t)(t->ndim - 1) * sizeof *shape);
            t = lc_reshape(t, shape, most + 1);
        }
        to[own + k] = t;
    }
    lc_tensor *y = lc__index(b->in[0], to, n + own);
    if (own && any && together) /* the batch is in front, and the indices behind it */
        for (int d = 0; d < most; d++) from[moved] = 1 + d, dest[moved++] = 1 + first + d;
    else if (!own && together) from[moved] = first, dest[moved++] = 0;
    else if (own && !any && !together) from[moved] = most, dest[moved++] = 0;
    return (out[0] = moved ? lc_movedim(y, from, moved, dest, moved) : y) ? 0 : -1;
}
LC_OP(_index, .batch = index_batch, .sig = "_index(input: Tensor, indices: list[Tensor | None]) -> Tensor",
      .doc = "Elements at int64 positions.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = index_shape,
      .kind = LC_KIND_MOVE, .run = index_run, .grad = _index_grad, .saves = IN(1));

static int index_put_shape(const lc_record *call, lc_spec *out)
{
    layout           l;
    const lc_tensor *x = call->in[0], *values = call->in[call->n_in - 1];
    if (lay_out(&l, x, call->in + 1, call->n_in - 2) < 0) return -1;
    int  more = l.a.ndim - values->ndim;
    bool fits = more >= 0;
    for (int d = 0; fits && d < values->ndim; d++) fits = values->shape[d] == 1 || values->shape[d] == l.a.shape[more + d];
    if (!fits)
        return lc_fail_int(LC_ShapeMismatch,
                           "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result of shape %s",
                           LC_SIZES(values->shape, values->ndim), LC_SIZES(l.a.shape, l.a.ndim));
    if (!values->is_number && values->dtype != x->dtype)
        return lc_fail_int(
            LC_DtypeMismatch,
            "Index put requires the source and destination dtypes match, got %s for the destination and %s for the source.",
            lc_dtypes[x->dtype].name, lc_dtypes[values->dtype].name);
    spec_like(call, out, x, x->dtype);
    return out->order = LC_ORDER_STRIDES, lc_strides_like(x, out->stride), 0;
}
static int index_put_run(const lc_record *call)
{
    lc_tensor *values = call->in[call->n_in - 1], *one = NULL;
    layout     l;
    start_layout(&l, call->args[3].b ? LC_INDEX_ADD : LC_INDEX_WRITE, is_fresh(call));
    if (lay_out(&l, call->out[0], call->in + 1, call->n_in - 2) < 0) return -1;
    if (values->is_number) {
        if (!(one = lc_tensor_new(call->out[0]->dtype, call->device, 0, NULL)) || fill_tensor(one, values) < 0)
            return lc_release(one), -1;
        values = one;
    }
    l.a.indexed = call->out[0], l.a.walked = values, l.a.start = call->out[0] == call->in[0] ? NULL : call->in[0];
    memset(l.a.walked_stride, 0, (size_t)l.a.ndim * sizeof *l.a.walked_stride);
    for (int d = 0, at = l.a.ndim - values->ndim; d < values->ndim; d++)
        l.a.walked_stride[at + d] = values->shape[d] == 1 ? 0 : values->stride[d];
    int rc = run_kernel_with(call, &l.a);
    return lc_release(one), rc;
}
GRAD(_index_put)
{
    int n = in[1].n;
    if (need[0]) dx[0] = in[3].b ? g[0] : lc__index_put(g[0], in[1].ts, n, LC_INTEGER(0), false);
    if (need[n + 1]) dx[n + 1] = lc__index(g[0], in[1].ts, n);
}
LC_OP(_index_put,
      .sig = "_index_put(input: Tensor, indices: list[Tensor | None], values: Tensor | Number, accumulate: bool = False) "
             "-> Tensor",
      .doc = "input with values written, or added, at int64 positions.", .hidden = true, .promote = LC_NO_PROMOTION,
      .shape = index_put_shape, .run = index_put_run, .grad = _index_put_grad, .saves = IN(1));
/* In place by nature: an out-of-place form would copy a strided destination twice. */
LC_OP(_index_put_,
      .sig = "_index_put_(input: Tensor, indices: list[Tensor | None], values: Tensor | Number, accumulate: bool = False) "
             "-> Tensor",
      .doc = "Write, or add, values at int64 positions.", .hidden = true, .writes = IN(0), .repeats_ok = true,
      .kernel = LC_OP__index_put, .promote = LC_NO_PROMOTION, .shape = index_put_shape, .run = index_put_run,
      .grad = _index_put_grad, .saves = IN(1));

/* ---- masks and other index dtypes become int64 positions ---- */
static bool is_mask(const lc_tensor *t) { return t->dtype == LC_b8 || t->dtype == LC_u8; }

static lc_tensor *positions(lc_tensor *mask) /* scoped: (ndim, count), a row per dimension */
{
    return lc_transpose(lc_nonzero(mask, false), 0, 1);
}

static int add_mask(const lc_tensor *x, lc_tensor *mask, lc_tensor **made, int *n)
{
    int rank = mask->ndim;
    for (int d = 0; d < rank; d++)
        if (*n + d >= x->ndim || mask->shape[d] != x->shape[*n + d])
            return lc_fail_int(
                LC_IndexError,
                "The shape of the mask %s at index %d does not match the shape of the indexed tensor %s at index %d",
                LC_SIZES(mask->shape, rank), d, LC_SIZES(x->shape, x->ndim), *n + d);
    lc_tensor *where = positions(mask);
    if (!where) return -1;
    for (int d = 0; d < rank; d++)
        if (!(made[(*n)++] = lc_select(where, 0, d))) return -1;
    return 0;
}

/* made: room for x->ndim tensors, scoped. */
static int positions_of(const lc_tensor *x, const lc_value *indices, lc_tensor **made, int *n)
{
    *n = 0;
    for (int k = 0; k < indices->n; k++) {
        lc_tensor *t = indices->ts[k];
        if (*n >= x->ndim) return lc_fail_int(LC_IndexError, "too many indices for tensor of dimension %d", x->ndim);
        if (t == LC_NONE) made[(*n)++] = t;
        else if (is_mask(t)) {
            if (add_mask(x, t, made, n) < 0) return -1;
        } else if (t->dtype != LC_i64 && t->dtype != LC_i32)
            return lc_fail_int(LC_IndexError, "tensors used as indices must be long, int, byte or bool tensors, got %s",
                               LC_SHAPE(t));
        else {
            bool ready = t->dtype == LC_i64 && lc_same_device(t->device, x->device) &&
                         (!t->storage || t->storage != x->storage); /* else writes might turn good indices bad */
            if (!(made[(*n)++] = ready ? t : lc__to_copy(t, LC_i64, x->device, LC_PRESERVE_FORMAT))) return -1;
        }
    }
    return 0;
}

static int index_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *made[LC_MAX_DIMS], *x = in(0), *first = in[1].n == 1 ? in[1].ts[0] : LC_NONE;
    int        n;
    if (first->dtype == LC_b8 && first != LC_NONE && x->ndim && lc_same_shape(first, x) &&
        lc_same_device(first->device, x->device))
        return (out[0] = lc__index_mask(x, first)) ? 0 : -1; /* no positions needed */
    return positions_of(x, &in[1], made, &n) == 0 && (out[0] = lc__index(x, made, n)) ? 0 : -1;
}
LC_OP(index, .sig = "index(input: Tensor, indices: list[Tensor | None]) -> Tensor",
      .doc = "The elements that index tensors and masks name; None keeps a dimension.", .hidden = true, .any_device = IN(1),
      .call = index_call);

/* One mask, after dimensions that are kept, and one value of any dtype: no positions needed. Where the mask starts, or -1. */
static int masked_fill_start(const lc_value *in, const lc_tensor *value)
{
    const lc_tensor *x = in(0), *mask = LC_NONE;
    int              start = 0;
    for (int k = 0; k < in[1].n; k++) {
        if (mask != LC_NONE && in[1].ts[k] != LC_NONE) return -1;
        if (in[1].ts[k] != LC_NONE) mask = in[1].ts[k], start = k;
    }
    bool fits = mask != LC_NONE && mask->dtype == LC_b8 && mask->ndim && start + mask->ndim <= x->ndim;
    for (int d = 0; fits && d < mask->ndim; d++) fits = mask->shape[d] == x->shape[start + d];
    fits = fits && value->numel == 1 && !in[3].b && lc_same_device(mask->device, x->device);
    return fits && (lc_can(value)->host_memory || value->dtype == x->dtype) ? start : -1;
}
static lc_tensor *mask_over(lc_tensor *mask, const lc_tensor *x, int start) /* scoped: with sizes of one around it */
{
    int64_t shape[LC_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) shape[d] = d >= start && d < start + mask->ndim ? mask->shape[d - start] : 1;
    return mask->ndim == x->ndim ? mask : same_size_view(mask, shape, x->ndim);
}
static lc_tensor *as_filling(lc_tensor *value, const lc_tensor *x) /* scoped: 0-d, of the dtype of x */
{
    if (value->is_number) return value;
    if (value->ndim) value = same_size_view(value, NULL, 0);
    return value && value->dtype != x->dtype ? lc__to_copy(value, x->dtype, value->device, LC_PRESERVE_FORMAT) : value;
}
static int index_put__call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *made[LC_MAX_DIMS], *x = in(0), *values = operand(2);
    int        n, start = masked_fill_start(in, values);
    if (start >= 0) return (out[0] = lc_masked_fill_(x, mask_over(in[1].ts[start], x, start), as_filling(values, x))) ? 0 : -1;
    return positions_of(x, &in[1], made, &n) == 0 && (out[0] = lc__index_put_(x, made, n, values, in[3].b)) ? 0 : -1;
}
LC_OP(
    index_put_,
    .sig =
        "index_put_(input: Tensor, indices: list[Tensor | None], values: Tensor | Number, accumulate: bool = False) -> Tensor",
    .doc = "Write, or add, values where index tensors and masks say.", .method = true, .writes = IN(0), .any_device = IN(1),
    .call = index_put__call);

static int index_put_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *made[LC_MAX_DIMS];
    int        n;
    return positions_of(in(0), &in[1], made, &n) == 0 && (out[0] = lc__index_put(in(0), made, n, operand(2), in[3].b)) ? 0 : -1;
}
LC_OP(index_put, .amp = LC_AMP_GPU_WIDEST,
      .sig =
          "index_put(input: Tensor, indices: list[Tensor | None], values: Tensor | Number, accumulate: bool = False) -> Tensor",
      .doc = "input with values written, or added, where index tensors and masks say.", .method = true, .any_device = IN(1),
      .call = index_put_call);

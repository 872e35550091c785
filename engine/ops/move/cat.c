/* Joining tensors: cat, stack and their relatives. One allocation and one copy per input; the backend's copy moves
 * contiguous inputs as whole rows. */
#include "../view/view.h"

/* An empty vector joins any shape: PyTorch keeps this from the time before it had empty tensors of other shapes. */
static bool skipped(const lc_tensor *t) { return t->ndim == 1 && t->shape[0] == 0; }

/* PyTorch's suggest_memory_format: do the strides order the dimensions channels last? Dimensions of size one decide nothing,
 * except batch and channels of a tensor that is contiguous in both formats. */
static bool ordered_channels_last(const lc_tensor *t)
{
    int64_t least = 0;
    if (t->stride[1] == 0) return false;
    for (int i = 0; i < t->ndim; i++) { /* channels, last spatial dimension, ..., first, batch */
        int d = i == 0 ? 1 : i < t->ndim - 1 ? t->ndim - i : 0;
        if (t->shape[d] == 0 || t->stride[d] < least) return false;
        if (d == 0 && least == t->stride[1]) return false;
        least = t->stride[d];
        if (t->shape[d] > 1) least *= t->shape[d];
    }
    return true;
}
lc_memory_format suggested_format(const lc_tensor *t)
{
    if (t->ndim != 4 && t->ndim != 5) return LC_CONTIGUOUS_FORMAT;
    return !ordered_channels_last(t) ? LC_CONTIGUOUS_FORMAT : t->ndim == 4 ? LC_CHANNELS_LAST : LC_CHANNELS_LAST_3D;
}

int in_suggested_format(const lc_tensor *t, lc_spec *out)
{
    lc_memory_format format = suggested_format(t);
    if (format == LC_CONTIGUOUS_FORMAT) return 0;
    out->order = LC_ORDER_STRIDES;
    return lc_format_strides(format, out->ndim, out->shape, out->stride);
}
static int in_common_format(const lc_record *call, lc_spec *out)
{
    lc_memory_format format = suggested_format(call->in[0]);
    for (int k = 1; k < call->n_in; k++)
        if (suggested_format(call->in[k]) != format) return 0;
    return in_suggested_format(call->in[0], out);
}

static int cat_fits(const lc_spec *out, const lc_tensor *t, int k, int d)
{
    if (t->ndim != out->ndim)
        return lc_fail_int(LC_ShapeMismatch, "Tensors must have same number of dimensions: got %d and %d", out->ndim, t->ndim);
    for (int e = 0; e < t->ndim; e++)
        if (e != d && t->shape[e] != out->shape[e])
            return lc_fail_int(LC_ShapeMismatch,
                               "Sizes of tensors must match except in dimension %d. Expected size %lld but got size %lld for "
                               "tensor number %d in the list.",
                               d, (long long)out->shape[e], (long long)t->shape[e], k);
    return 0;
}
static int cat_shape(const lc_record *call, lc_spec *out)
{
    int d, first = 0;
    if (call->n_in == 0) return lc_fail_int(LC_ValueError, "cat(): expected a non-empty list of Tensors");
    for (int k = 0; k < call->n_in && call->out_given; k++)
        if (call->in[k] == call->out[0] || lc_overlap_of(call->in[k], call->out[0]) != LC_OVERLAP_NONE)
            return lc_fail_int(
                LC_LucidError,
                "cat: unsupported operation: some elements of the input tensor and the written-to tensor refer to "
                "a single memory location. Please clone() the tensor before performing the operation.");
    for (int k = 0; k < call->n_in; k++)
        if (call->in[k]->ndim == 0)
            return lc_fail_int(LC_ShapeMismatch, "zero-dimensional tensor (at position %d) cannot be concatenated", k);
    while (first < call->n_in - 1 && skipped(call->in[first])) first++;
    spec_like(call, out, call->in[first], call->dtype);
    if (skipped(call->in[first])) return 0; /* only empty vectors: PyTorch does not check dim */
    if (dim_index(call->args[1].i, out->ndim, &d) < 0) return -1;
    for (int k = first + 1; k < call->n_in; k++) {
        const lc_tensor *t = call->in[k];
        if (skipped(t)) continue;
        if (cat_fits(out, t, k, d) < 0) return -1;
        if (__builtin_add_overflow(out->shape[d], t->shape[d], &out->shape[d]))
            return lc_fail_int(LC_OutOfMemory, "cat: dimension %d overflows", d);
    }
    return in_common_format(call, out);
}
static int cat_run(const lc_record *call)
{
    lc_tensor *out = call->out[0];
    int64_t    start = 0;
    int        d, rc = 0;
    if (out->numel == 0) return 0;
    if (dim_index(call->args[1].i, out->ndim, &d) < 0) return -1;
    for (int k = 0; k < call->n_in && rc == 0; k++) {
        lc_tensor *t = call->in[k];
        if (t->numel) {
            lc_tensor *place = lc_tensor_view(out, out->ndim, t->shape, out->stride, start * out->stride[d]);
            rc = place ? call->backend->copy(place, t) : -1;
            lc_release(place);
        }
        if (!skipped(t)) start += t->shape[d];
    }
    return rc;
}
GRAD(cat)
{
    int64_t start = 0;
    int     d = (int)(in[1].i < 0 ? in[1].i + y[0]->ndim : in[1].i);
    for (int k = 0; k < in[0].n; k++) {
        lc_tensor *t = in[0].ts[k];
        bool       none = skipped(t);
        if (need[k]) dx[k] = none ? zeros_like(t) : lc_narrow(g[0], d, start, t->shape[d]);
        if (!none) start += t->shape[d];
    }
}
LC_OP(cat, .batching = LC_BATCH_DIMS, .casts_out = true, .aliases = "concat concatenate",
      .sig = "cat(tensors: list[Tensor], dim: int = 0) -> Tensor", .doc = "Join tensors along a dimension.", .out = true,
      .amp = LC_AMP_WIDEST, .shape = cat_shape, .kind = LC_KIND_MOVE, .run = cat_run, .grad = cat_grad);

/* PyTorch concatenates along the existing dimension and splits it again: the layout is that of cat. */
static int stack_like_cat(const lc_record *call, lc_spec *out, int d)
{
    int64_t each = out->shape[d];
    if (__builtin_mul_overflow(each, call->n_in, &out->shape[d]))
        return lc_fail_int(LC_OutOfMemory, "stack: dimension %d overflows", d);
    if (in_common_format(call, out) < 0) return -1;
    int n = out->ndim++ - d;
    memmove(&out->shape[d + 1], &out->shape[d], (size_t)n * sizeof *out->shape);
    out->shape[d] = call->n_in, out->shape[d + 1] = each;
    if (out->order != LC_ORDER_STRIDES) return 0;
    memmove(&out->stride[d + 1], &out->stride[d], (size_t)n * sizeof *out->stride);
    return out->stride[d] = out->stride[d + 1] * each, 0;
}
static int stack_shape(const lc_record *call, lc_spec *out)
{
    int d;
    if (call->n_in == 0) return lc_fail_int(LC_LucidError, "stack expects a non-empty TensorList");
    const lc_tensor *first = call->in[0];
    if (dim_index(call->args[1].i, first->ndim + 1, &d) < 0) return -1;
    for (int k = 1; k < call->n_in; k++)
        if (!lc_same_shape(call->in[k], first))
            return lc_fail_int(LC_ShapeMismatch,
                               "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %d",
                               LC_SIZES(first->shape, first->ndim), LC_SIZES(call->in[k]->shape, call->in[k]->ndim), k);
    if (first->ndim == LC_MAX_DIMS)
        return lc_fail_int(LC_ShapeMismatch, "%d dimensions: at most %d are supported", first->ndim + 1, LC_MAX_DIMS);
    spec_like(call, out, first, call->dtype);
    if (d < first->ndim) return stack_like_cat(call, out, d);
    return out->shape[out->ndim++] = call->n_in, 0;
}
static int stack_run(const lc_record *call)
{
    lc_tensor *out = call->out[0];
    geometry   v;
    int        d, rc = 0;
    if (dim_index(call->args[1].i, out->ndim, &d) < 0) return -1;
    geometry_like(out, 0, &v);
    v.ndim--;
    for (int e = d; e < v.ndim; e++) v.shape[e] = v.shape[e + 1], v.stride[e] = v.stride[e + 1];
    for (int k = 0; k < call->n_in && rc == 0; k++, v.offset += out->stride[d]) {
        lc_tensor *place = seen_as(out, &v);
        rc = place ? call->backend->copy(place, call->in[k]) : -1;
        lc_release(place);
    }
    return rc;
}
GRAD(stack)
{
    for (int k = 0; k < in[0].n; k++)
        if (need[k]) dx[k] = lc_select(g[0], in[1].i, k);
}
LC_OP(stack, .batching = LC_BATCH_DIMS, .casts_out = true, .sig = "stack(tensors: list[Tensor], dim: int = 0) -> Tensor",
      .doc = "Join tensors along a new dimension.", .out = true, .amp = LC_AMP_WIDEST, .shape = stack_shape,
      .kind = LC_KIND_MOVE, .run = stack_run, .grad = stack_grad);

/* The numpy-like joins: give every tensor enough dimensions, then cat. */

static lc_tensor *at_least_1d(lc_tensor *t) { return t->ndim ? t : lc_reshape(t, (int64_t[]){ 1 }, 1); }
static lc_tensor *at_least_2d(lc_tensor *t) { return t->ndim > 1 ? t : lc_unsqueeze(at_least_1d(t), 0); }
static lc_tensor *at_least_3d(lc_tensor *t) { return t->ndim > 2 ? t : lc_unsqueeze(at_least_2d(t), -1); }
static lc_tensor *column(lc_tensor *t) { return t->ndim > 1 ? t : lc_reshape(t, (int64_t[]){ t->numel, 1 }, 2); }

static int of_each(const lc_value *in, lc_tensor *(*shape)(lc_tensor *), lc_tensor **out)
{
    for (int k = 0; k < in[0].n; k++)
        if (!(out[k] = shape(in[0].ts[k]))) return -1;
    return 0;
}
static int as_many_as_given(const lc_value *in) { return in[0].n; }
static int atleast_1d_call(const lc_value *in, lc_tensor **out) { return (*out = at_least_1d(in(0))) ? 0 : -1; }
static int atleast_1d_many_call(const lc_value *in, lc_tensor **out) { return of_each(in, at_least_1d, out); }
LC_OP(atleast_1d, .sig = "atleast_1d(input: Tensor) -> Tensor", .doc = "A scalar as a vector; others as they are.",
      .call = atleast_1d_call);
LC_OP(atleast_1d_many, .py = "atleast_1d", .sig = "atleast_1d_many(*tensors: Tensor) -> list[Tensor]",
      .doc = "Scalars as vectors; others as they are.", .count = as_many_as_given, .call = atleast_1d_many_call);
static int atleast_2d_call(const lc_value *in, lc_tensor **out) { return (*out = at_least_2d(in(0))) ? 0 : -1; }
static int atleast_2d_many_call(const lc_value *in, lc_tensor **out) { return of_each(in, at_least_2d, out); }
LC_OP(atleast_2d, .sig = "atleast_2d(input: Tensor) -> Tensor", .doc = "A view with new dimensions in front up to two.",
      .call = atleast_2d_call);
LC_OP(atleast_2d_many, .py = "atleast_2d", .sig = "atleast_2d_many(*tensors: Tensor) -> list[Tensor]",
      .doc = "Views with new dimensions in front up to two.", .count = as_many_as_given, .call = atleast_2d_many_call);
static int atleast_3d_call(const lc_value *in, lc_tensor **out) { return (*out = at_least_3d(in(0))) ? 0 : -1; }
static int atleast_3d_many_call(const lc_value *in, lc_tensor **out) { return of_each(in, at_least_3d, out); }
LC_OP(atleast_3d, .sig = "atleast_3d(input: Tensor) -> Tensor", .doc = "A view with three dimensions or more.",
      .call = atleast_3d_call);
LC_OP(atleast_3d_many, .py = "atleast_3d", .sig = "atleast_3d_many(*tensors: Tensor) -> list[Tensor]",
      .doc = "Views with three dimensions or more.", .count = as_many_as_given, .call = atleast_3d_many_call);

static int cat_each(const lc_value *in, const char *name, lc_tensor *(*each)(lc_tensor *), int64_t dim, lc_tensor **out)
{
    int n = in[0].n;
    if (n == 0) return lc_fail_int(LC_LucidError, "%s expects a non-empty TensorList", name);
    size_t      bytes = (size_t)n * sizeof(lc_tensor *);
    lc_tensor **ts = lc_alloc(bytes);
    if (!ts) return -1;
    for (int k = 0; k < n; k++) ts[k] = each(in[0].ts[k]);
    if (dim < 0) dim = !ts[0] || ts[0]->ndim == 1 ? 0 : 1; /* hstack: vectors end to end, the rest side by side */
    *out = lc_cat(ts, n, dim);
    lc_free(ts, bytes);
    return *out ? 0 : -1;
}
static int hstack_call(const lc_value *in, lc_tensor **out) { return cat_each(in, "hstack", at_least_1d, -1, out); }
LC_OP(hstack, .sig = "hstack(tensors: list[Tensor]) -> Tensor", .doc = "Join along columns.", .out = true, .call = hstack_call);
static int vstack_call(const lc_value *in, lc_tensor **out) { return cat_each(in, "vstack", at_least_2d, 0, out); }
LC_OP(vstack, .aliases = "row_stack", .sig = "vstack(tensors: list[Tensor]) -> Tensor", .doc = "Join along rows.", .out = true,
      .call = vstack_call);
static int dstack_call(const lc_value *in, lc_tensor **out) { return cat_each(in, "dstack", at_least_3d, 2, out); }
LC_OP(dstack, .sig = "dstack(tensors: list[Tensor]) -> Tensor", .doc = "Join along the third dimension.", .out = true,
      .call = dstack_call);
static int column_stack_call(const lc_value *in, lc_tensor **out) { return cat_each(in, "column_stack", column, 1, out); }
LC_OP(column_stack, .sig = "column_stack(tensors: list[Tensor]) -> Tensor", .doc = "Vectors as columns, joined.", .out = true,
      .call = column_stack_call);

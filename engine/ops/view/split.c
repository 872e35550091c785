/* Views of consecutive parts of a dimension: lists. */
#include "view.h"

/* Lists of tensors in gradients: as many as the dimension has elements, so not on the stack. */
static lc_tensor **parts_or_zeros(lc_tensor *const *g, lc_tensor *const *y, int n)
{
    lc_tensor **part = lc_alloc((size_t)(n + 1) * sizeof *part);
    for (int i = 0; part && i < n; i++) part[i] = g[i] == LC_NONE ? zeros_like(y[i]) : g[i];
    return part;
}
/* Dimensions from the widest stride to the narrowest; whether that is another order than their own. */
static bool order_in_memory(const lc_tensor *x, int64_t *order)
{
    int64_t stride[LC_MAX_DIMS];
    bool    moved = false;
    if (x->is_contiguous) return false;
    lc_strides_like(x, stride);
    for (int d = 0, at; d < x->ndim; d++) {
        for (at = d; at > 0 && stride[order[at - 1]] < stride[d]; at--) order[at] = order[at - 1];
        order[at] = d, moved |= at != d;
    }
    return moved;
}
/* The gradient of x lies in memory as x does: what x is a view of (one product for queries, keys and values, say) then gets
 * its gradient without another copy. So parts are joined with their dimensions in the order of x's memory. */
static lc_tensor *joined(const lc_tensor *x, lc_tensor *const *g, lc_tensor *const *y, int n, bool stacked, int64_t dim)
{
    int64_t     order[LC_MAX_DIMS], of_part[LC_MAX_DIMS], back[LC_MAX_DIMS];
    lc_tensor **part = parts_or_zeros(g, y, n);
    bool        moved = part && order_in_memory(x, order);
    int         m = 0;
    dim = dim < 0 ? dim + x->ndim : dim;
    for (int d = 0; moved && d < x->ndim; d++) {
        back[order[d]] = d;
        if (!stacked || order[d] != dim) of_part[m++] = order[d] - (stacked && order[d] > dim);
    }
    for (int i = 0; moved && i < n; i++) part[i] = part[i] ? lc_permute(part[i], of_part, m) : NULL;
    if (moved) dim = back[dim];
    lc_tensor *whole = part ? (stacked ? lc_stack : lc_cat)(part, n, dim) : NULL;
    lc_free(part, (size_t)(n + 1) * sizeof *part);
    return moved && whole ? lc_permute(whole, back, x->ndim) : whole;
}

static int counted(int64_t n, const lc_tensor *x)
{
    if (n > INT32_MAX) return lc_fail_int(LC_OutOfMemory, "%lld views of %s are too many", (long long)n, LC_SHAPE(x));
    return (int)n;
}

static int unbind_count(const lc_value *in)
{
    int d;
    if (dim_index(in[1].i, in(0)->ndim, &d) < 0) return -1;
    if (in(0)->ndim == 0)
        return lc_fail_int(LC_IndexError, "Dimension specified as %lld but tensor has no dimensions", (long long)in[1].i);
    return counted(in(0)->shape[d], in(0));
}
static int unbind_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    geometry   v;
    int        d;
    if (dim_index(in[1].i, x->ndim, &d) < 0 || geometry_like(x, 0, &v) < 0) return -1;
    v.ndim--;
    for (int e = d; e < v.ndim; e++) v.shape[e] = v.shape[e + 1], v.stride[e] = v.stride[e + 1];
    for (int64_t i = 0; i < x->shape[d]; i++)
        if (one_view(x, v.ndim, v.shape, v.stride, i * x->stride[d], &out[i]) < 0) return -1;
    return 0;
}
GRAD(unbind) { dx[0] = joined(in(0), g, y, unbind_count(in), true, in[1].i); }
LC_OP(unbind, .sig = "unbind(input: Tensor, dim: int = 0) -> list[Tensor]", .doc = "A view for each index of a dimension.",
      .method = true, .view_of = IN(0), .count = unbind_count, .copies = true, .call = unbind_call, .grad = unbind_grad);

/* n consecutive parts of dimension d; size(i) is the same for all but the last, or sizes[i]. */
static int consecutive(lc_tensor *x, int d, int n, int64_t each, const int64_t *sizes, lc_tensor **out)
{
    geometry v;
    int64_t  start = 0, size = x->shape[d];
    geometry_like(x, 0, &v);
    for (int i = 0; i < n; i++) {
        v.shape[d] = sizes ? sizes[i] : each < size - start ? each : size - start;
        if (one_view(x, v.ndim, v.shape, v.stride, start * x->stride[d], &out[i]) < 0) return -1;
        start += v.shape[d];
    }
    return 0;
}

static int split_count(const lc_value *in)
{
    int     d;
    int64_t each = in[1].i;
    if (in(0)->ndim == 0) return lc_fail_int(LC_ShapeMismatch, "split expects at least a 1-dimensional tensor");
    if (each < 0)
        return lc_fail_int(LC_LucidError, "split expects split_size be non-negative, but got split_size=%lld", (long long)each);
    if (dim_index(in[2].i, in(0)->ndim, &d) < 0) return -1;
    int64_t size = in(0)->shape[d];
    if (each == 0 && size)
        return lc_fail_int(LC_LucidError, "split_size can only be 0 if dimension size is 0, but got dimension size of %lld",
                           (long long)size);
    return counted(size ? 1 + (size - 1) / each : 1, in(0));
}
static int split_call(const lc_value *in, lc_tensor **out)
{
    int d, n = split_count(in);
    return n < 0 || dim_index(in[2].i, in(0)->ndim, &d) < 0 ? -1 : consecutive(in(0), d, n, in[1].i, NULL, out);
}
GRAD(split) { dx[0] = joined(in(0), g, y, split_count(in), false, in[2].i); }
LC_OP(split, .sig = "split(input: Tensor, split_size: int, dim: int = 0) -> list[Tensor]",
      .doc = "Views of equal size along a dimension; the last may be smaller.", .method = true, .view_of = IN(0),
      .count = split_count, .copies = true, .call = split_call, .grad = split_grad);

static int split_with_sizes_count(const lc_value *in)
{
    int     d;
    int64_t left;
    if (in(0)->ndim == 0) return lc_fail_int(LC_ShapeMismatch, "split expects at least a 1-dimensional tensor");
    if (dim_index(in[2].i, in(0)->ndim, &d) < 0) return -1;
    left = in(0)->shape[d];
    for (int i = 0; i < in[1].n; i++) {
        if (in[1].is[i] < 0)
            return lc_fail_int(LC_LucidError,
                               "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=%s",
                               LC_SIZES(in[1].is, in[1].n));
        left = in[1].is[i] > left ? -1 : left - in[1].is[i];
        if (left < 0) break;
    }
    if (left)
        return lc_fail_int(LC_ShapeMismatch,
                           "split_with_sizes expects split_sizes to sum exactly to %lld (input tensor's size at dimension %d), "
                           "but got split_sizes=%s",
                           (long long)in(0)->shape[d], d, LC_SIZES(in[1].is, in[1].n));
    return in[1].n;
}
static int split_with_sizes_call(const lc_value *in, lc_tensor **out)
{
    int d;
    return dim_index(in[2].i, in(0)->ndim, &d) < 0 ? -1 : consecutive(in(0), d, in[1].n, 0, in[1].is, out);
}
GRAD(split_with_sizes) { dx[0] = joined(in(0), g, y, in[1].n, false, in[2].i); }
LC_OP(split_with_sizes, .sig = "split_with_sizes(input: Tensor, split_sizes: tuple[int, ...], dim: int = 0) -> list[Tensor]",
      .doc = "Views of the given sizes along a dimension.", .method = true, .view_of = IN(0), .count = split_with_sizes_count,
      .copies = true, .call = split_with_sizes_call, .grad = split_with_sizes_grad);
LC_OP(split_sizes, .py = "split", .sig = "split_sizes(input: Tensor, split_size: list[int], dim: int = 0) -> list[Tensor]",
      .doc = "Views of the given sizes along a dimension.", .method = true, .view_of = IN(0), .count = split_with_sizes_count,
      .call = split_with_sizes_call, .grad = split_with_sizes_grad);

/* chunk: split into at most `chunks`; an empty dimension gives that many empty parts. */
static int chunk_size(const lc_value *in, int *d, int64_t *each)
{
    if (in(0)->ndim == 0) return lc_fail_int(LC_ShapeMismatch, "chunk expects at least a 1-dimensional tensor");
    if (in[1].i <= 0)
        return lc_fail_int(LC_LucidError, "chunk expects `chunks` to be greater than 0, got: %lld", (long long)in[1].i);
    if (dim_index(in[2].i, in(0)->ndim, d) < 0) return -1;
    int64_t size = in(0)->shape[*d];
    return *each = size ? 1 + (size - 1) / in[1].i : 0, 0;
}
static int chunk_count(const lc_value *in)
{
    int     d;
    int64_t each;
    if (chunk_size(in, &d, &each) < 0) return -1;
    return counted(each ? 1 + (in(0)->shape[d] - 1) / each : in[1].i, in(0));
}
static int chunk_call(const lc_value *in, lc_tensor **out)
{
    int     d, n = chunk_count(in);
    int64_t each;
    return n < 0 || chunk_size(in, &d, &each) < 0 ? -1 : consecutive(in(0), d, n, each, NULL, out);
}
GRAD(chunk) { dx[0] = joined(in(0), g, y, chunk_count(in), false, in[2].i); }
LC_OP(chunk, .sig = "chunk(input: Tensor, chunks: int, dim: int = 0) -> list[Tensor]",
      .doc = "At most `chunks` views of equal size along a dimension.", .method = true, .view_of = IN(0), .count = chunk_count,
      .call = chunk_call, .grad = chunk_grad);

/* tensor_split: each part is a view of its own (written in place like any other), so these are composites of slice. */
static int tensor_split_dim(const lc_value *in, int *d)
{
    if (in(0)->ndim == 0)
        return lc_fail_int(LC_ShapeMismatch,
                           "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
    return dim_index(in[2].i, in(0)->ndim, d);
}
static int tensor_split_count(const lc_value *in)
{
    if (in[1].i <= 0)
        return lc_fail_int(LC_LucidError, "number of sections must be larger than 0, got %lld", (long long)in[1].i);
    return counted(in[1].i, in(0));
}
static int tensor_split_call(const lc_value *in, lc_tensor **out)
{
    int     d;
    int64_t start = 0, n = in[1].i;
    if (tensor_split_dim(in, &d) < 0) return -1;
    for (int64_t i = 0, stop; i < n; i++, start = stop) {
        stop = start + in(0)->shape[d] / n + (i < in(0)->shape[d] % n);
        if (!(out[i] = lc_slice(in(0), d, LC_I(start), LC_I(stop), 1))) return -1;
    }
    return 0;
}
static int tensor_split_dim_count(const lc_value *in)
{
    int d;
    return tensor_split_dim(in, &d) < 0 ? -1 : tensor_split_count(in);
}
LC_OP(tensor_split, .sig = "tensor_split(input: Tensor, sections: int, dim: int = 0) -> list[Tensor]",
      .doc = "As many views as sections; their sizes differ by one at most.", .method = true, .count = tensor_split_dim_count,
      .call = tensor_split_call);

static int tensor_split_indices_count(const lc_value *in) { return in[1].n + 1; }
static int tensor_split_indices_call(const lc_value *in, lc_tensor **out)
{
    int      d, n = in[1].n;
    lc_value none = { .tag = LC_IS_none };
    if (tensor_split_dim(in, &d) < 0) return -1;
    for (int i = 0; i <= n; i++) {
        lc_value start = i ? LC_I(in[1].is[i - 1]) : none, stop = i < n ? LC_I(in[1].is[i]) : none;
        if (!(out[i] = lc_slice(in(0), d, start, stop, 1))) return -1;
    }
    return 0;
}
LC_OP(tensor_split_indices, .py = "tensor_split",
      .sig = "tensor_split_indices(input: Tensor, indices: list[int], dim: int = 0) -> list[Tensor]",
      .doc = "Views between the given indices.", .method = true, .count = tensor_split_indices_count,
      .call = tensor_split_indices_call);

static int split_points(const lc_value *in, lc_tensor **points) /* new reference: int64, contiguous, on the CPU */
{
    lc_tensor *t = in(1);
    if (t->ndim > 1 || t->dtype != LC_i64 || !lc_can(t)->host_memory)
        return lc_fail_int(LC_DtypeMismatch,
                           "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional int64 "
                           "tensor on cpu, but got %s on %s",
                           LC_SHAPE(t), lc_device_names[t->device.kind]);
    return (*points = packed(t, LC_i64)) ? 0 : -1;
}
static int tensor_split_tensor_count(const lc_value *in)
{
    lc_tensor *points;
    if (split_points(in, &points) < 0) return -1;
    lc_value sections[] = { in[0], LC_I(points->ndim ? 0 : *(int64_t *)points->data) };
    int      n = points->ndim ? counted(points->shape[0] + 1, in(0)) : tensor_split_count(sections);
    return lc_release(points), n;
}
static int tensor_split_tensor_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *points;
    if (split_points(in, &points) < 0) return -1;
    const int64_t *at = (const int64_t *)points->data;
    lc_value       by = points->ndim ? (lc_value){ .tag = LC_IS_ints, .n = (int32_t)points->shape[0], .is = at } : LC_I(*at);
    lc_value       args[] = { in[0], by, in[2] };
    int            rc = points->ndim ? tensor_split_indices_call(args, out) : tensor_split_call(args, out);
    return lc_release(points), rc;
}
LC_OP(tensor_split_tensor, .py = "tensor_split",
      .sig = "tensor_split_tensor(input: Tensor, tensor_indices_or_sections: Tensor, dim: int = 0) -> list[Tensor]",
      .doc = "As tensor_split with a number of sections, or with indices, that are read from a tensor.", .method = true,
      .reads_values = true, .any_device = IN(1), .count = tensor_split_tensor_count, .call = tensor_split_tensor_call);

/* hsplit, vsplit, dsplit: tensor_split along a fixed dimension, into parts of equal size. */
static int split_axis(const lc_value *in, const char *name, int least, int64_t dim, int64_t *axis)
{
    const lc_tensor *x = in(0);
    if (x->ndim < least)
        return lc_fail_int(LC_ShapeMismatch,
                           "%s requires a tensor with at least %d dimension, but got a tensor with %d dimensions!", name, least,
                           x->ndim);
    *axis = least == 1 && x->ndim == 1 ? 0 : dim;
    if (in[1].tag != LC_IS_int || (in[1].i > 0 && x->shape[*axis] % in[1].i == 0)) return 0;
    return lc_fail_int(LC_ShapeMismatch,
                       "%s attempted to split along dimension %lld, but the size of the dimension %lld is not divisible by the "
                       "split_size %lld!",
                       name, (long long)*axis, (long long)x->shape[*axis], (long long)in[1].i);
}
static int split_along(const lc_value *in, const char *name, int least, int64_t dim, lc_tensor **out)
{
    int64_t axis;
    if (split_axis(in, name, least, dim, &axis) < 0) return -1;
    lc_value args[] = { in[0], in[1], LC_I(axis) };
    return in[1].tag == LC_IS_int ? tensor_split_call(args, out) : tensor_split_indices_call(args, out);
}
static int count_along(const lc_value *in, const char *name, int least, int64_t dim)
{
    int64_t axis;
    return split_axis(in, name, least, dim, &axis) < 0 ? -1 : tensor_split_count(in);
}
#define BY_SECTIONS(name) .method = true, .count = name##_count, .call = name##_call
#define BY_INDICES(name)  .method = true, .count = tensor_split_indices_count, .call = name##_call

static int hsplit_call(const lc_value *in, lc_tensor **out) { return split_along(in, "hsplit", 1, 1, out); }
static int hsplit_count(const lc_value *in) { return count_along(in, "hsplit", 1, 1); }
LC_OP(hsplit, .sig = "hsplit(input: Tensor, sections: int) -> list[Tensor]", .doc = "Views of equal width, side by side.",
      BY_SECTIONS(hsplit));
LC_OP(hsplit_indices, .py = "hsplit", .sig = "hsplit_indices(input: Tensor, indices: list[int]) -> list[Tensor]",
      .doc = "Views between columns.", BY_INDICES(hsplit));
static int vsplit_call(const lc_value *in, lc_tensor **out) { return split_along(in, "vsplit", 2, 0, out); }
static int vsplit_count(const lc_value *in) { return count_along(in, "vsplit", 2, 0); }
LC_OP(vsplit, .sig = "vsplit(input: Tensor, sections: int) -> list[Tensor]",
      .doc = "Views of equal height, one below the other.", BY_SECTIONS(vsplit));
LC_OP(vsplit_indices, .py = "vsplit", .sig = "vsplit_indices(input: Tensor, indices: list[int]) -> list[Tensor]",
      .doc = "Views between rows.", BY_INDICES(vsplit));
static int dsplit_call(const lc_value *in, lc_tensor **out) { return split_along(in, "dsplit", 3, 2, out); }
static int dsplit_count(const lc_value *in) { return count_along(in, "dsplit", 3, 2); }
LC_OP(dsplit, .sig = "dsplit(input: Tensor, sections: int) -> list[Tensor]", .doc = "Views of equal depth.",
      BY_SECTIONS(dsplit));
LC_OP(dsplit_indices, .py = "dsplit", .sig = "dsplit_indices(input: Tensor, indices: list[int]) -> list[Tensor]",
      .doc = "Views between indices of the third dimension.", BY_INDICES(dsplit));

/* unsafe_*: the same parts without checks: they may be written in place while recording, and have version counters of their
 * own. */
static int unwatched(int rc, lc_tensor **out, int n)
{
    for (int i = 0; i < n && rc == 0; i++) rc = (out[i] = lc_scoped(lc_tensor_data(out[i]))) ? 0 : -1;
    return rc;
}
#define UNWATCHED(name)                                                                                                        \
    static int unsafe_##name##_call(const lc_value *in, lc_tensor **out)                                                       \
    {                                                                                                                          \
        return unwatched(name##_call(in, out), out, name##_count(in));                                                         \
    }
#define IS_UNWATCHED(name)                                                                                                     \
    .doc = "The parts without the checks of views: writing them in place does not reach input's history.", .method = true,     \
    .count = name##_count, .call = unsafe_##name##_call, .grad = name##_grad

UNWATCHED(chunk)
LC_OP(unsafe_chunk, .sig = "unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> list[Tensor]", IS_UNWATCHED(chunk));
UNWATCHED(split)
LC_OP(unsafe_split, .sig = "unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> list[Tensor]", IS_UNWATCHED(split));
UNWATCHED(split_with_sizes)
LC_OP(unsafe_split_with_sizes,
      .sig = "unsafe_split_with_sizes(input: Tensor, split_sizes: tuple[int, ...], dim: int = 0) -> list[Tensor]",
      IS_UNWATCHED(split_with_sizes));

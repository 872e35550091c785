/* Shape functions as composites over views. The tape records the inner view, or the one copy if no view is possible. */
#include "view.h"

static int give(lc_tensor *result, lc_tensor **out) { return (*out = result) ? 0 : -1; }

/* A copy of the elements in row-major order in a new shape: reshape, if no strides can describe the result. */
static int reshaped(const lc_record *call, lc_spec *out)
{
    return spec_shape(call, out, (lc_dtype)call->in[0]->dtype, call->args[1].n, call->args[1].is);
}
static int reshape_copy_run(const lc_record *call)
{
    geometry   v;
    lc_tensor *x = call->in[0];
    geometry_like(x, 0, &v);
    lc_contiguous_strides(v.ndim, v.shape, v.stride);
    lc_tensor *to = seen_as(call->out[0], &v);
    int        rc = to ? call->backend->copy(to, x) : -1;
    lc_release(to);
    return rc;
}
GRAD(reshape_copy) { dx[0] = lc_reshape(g[0], in(0)->shape, in(0)->ndim); }
LC_OP(reshape_copy, .sig = "reshape_copy(input: Tensor, size: list[int]) -> Tensor", .doc = "A copy in another shape.",
      .hidden = true, .promote = LC_NO_PROMOTION, .shape = reshaped, .kind = LC_KIND_MOVE, .run = reshape_copy_run,
      .grad = reshape_copy_grad);

static int reshape_call(const lc_value *in, lc_tensor **out)
{
    int64_t shape[LC_MAX_DIMS], stride[LC_MAX_DIMS];
    int     ndim = in[1].n;
    if (infer_shape(&in[1], in(0)->numel, shape) < 0) return -1;
    bool view = strides_for_shape(in(0), ndim, shape, stride);
    return give(view ? lc_view(in(0), shape, ndim) : lc_reshape_copy(in(0), shape, ndim), out);
}
LC_OP(reshape, .sig = "reshape(input: Tensor, shape: list[int]) -> Tensor",
      .doc = "The same elements in another shape: a view if possible, else a copy.", .method = true, .call = reshape_call);

static int view_copy_call(const lc_value *in, lc_tensor **out)
{
    int64_t shape[LC_MAX_DIMS];
    return infer_shape(&in[1], in(0)->numel, shape) < 0 ? -1 : give(lc_reshape_copy(in(0), shape, in[1].n), out);
}
LC_OP(view_copy, .sig = "view_copy(input: Tensor, size: list[int]) -> Tensor", .doc = "A copy in another shape.", .out = true,
      .call = view_copy_call);

static int reshape_as_call(const lc_value *in, lc_tensor **out)
{
    return give(lc_reshape(in(0), in(1)->shape, in(1)->ndim), out);
}
LC_OP(reshape_as, .sig = "reshape_as(input: Tensor, other: Tensor) -> Tensor", .doc = "input in the shape of other.",
      .method = true, .function = false, .any_device = IN(1), .call = reshape_as_call);

static int view_as_call(const lc_value *in, lc_tensor **out) { return give(lc_view(in(0), in(1)->shape, in(1)->ndim), out); }
LC_OP(view_as, .sig = "view_as(input: Tensor, other: Tensor) -> Tensor", .doc = "input viewed in the shape of other.",
      .method = true, .function = false, .any_device = IN(1), .call = view_as_call);

static int expand_as_call(const lc_value *in, lc_tensor **out)
{
    return give(lc_expand(in(0), in(1)->shape, in(1)->ndim), out);
}
LC_OP(expand_as, .sig = "expand_as(input: Tensor, other: Tensor) -> Tensor", .doc = "input expanded to the shape of other.",
      .method = true, .function = false, .any_device = IN(1), .call = expand_as_call);

static int broadcast_to_call(const lc_value *in, lc_tensor **out) { return give(lc_expand(in(0), in[1].is, in[1].n), out); }
LC_OP(broadcast_to, .sig = "broadcast_to(input: Tensor, size: list[int]) -> Tensor", .doc = "input expanded to a shape.",
      .method = true, .call = broadcast_to_call);

static int sum_to_size_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    int64_t    dims[LC_MAX_DIMS];
    int        more = x->ndim - in[1].n, n = 0;
    bool       fits = more >= 0;
    for (int d = 0; d < x->ndim && fits; d++) {
        int64_t want = d < more ? 1 : in[1].is[d - more];
        fits = want == x->shape[d] || want == 1;
        if (d < more || want != x->shape[d]) dims[n++] = d;
    }
    if (!fits)
        return lc_fail_int(LC_ShapeMismatch, "size %s is not expandable to size %s.", LC_SIZES(in[1].is, in[1].n),
                           LC_SIZES(x->shape, x->ndim));
    if (n == 0 && in[1].n) return give(x, out);
    return give(lc_reshape(lc_sum(x, dims, n, true), in[1].is, in[1].n), out);
}
LC_OP(sum_to_size, .sig = "sum_to_size(input: Tensor, size: list[int]) -> Tensor",
      .doc = "The sum over the dimensions that broadcasting size to input's shape would repeat.", .method = true,
      .function = false, .call = sum_to_size_call);

static int flatten_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    int64_t    shape[LC_MAX_DIMS], run = 1;
    int        first, last;
    if (dim_index(in[1].i, x->ndim, &first) < 0 || dim_index(in[2].i, x->ndim, &last) < 0) return -1;
    if (first > last)
        return lc_fail_int(LC_LucidError, "flatten() has invalid args: start_dim cannot come after end_dim: %d and %d", first,
                           last);
    if (x->ndim == 0) return give(lc_reshape(x, &run, 1), out);
    if (first == last) return give(x, out);
    for (int d = first; d <= last; d++) run *= x->shape[d];
    for (int d = 0; d < first; d++) shape[d] = x->shape[d];
    shape[first] = run;
    for (int d = last + 1; d < x->ndim; d++) shape[d - (last - first)] = x->shape[d];
    return give(lc_reshape(x, shape, x->ndim - (last - first)), out);
}
LC_OP(flatten, .sig = "flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor",
      .doc = "Some or all dimensions as one.", .method = true, .call = flatten_call);

static int unflatten_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    int64_t    shape[LC_MAX_DIMS], part[LC_MAX_DIMS];
    int        d, more = in[2].n - 1;
    if (dim_index(in[1].i, x->ndim, &d) < 0) return -1;
    if (more < 0) return lc_fail_int(LC_ShapeMismatch, "unflatten: sizes must be non-empty");
    if (x->ndim == 0 || x->ndim + more > LC_MAX_DIMS || infer_shape(&in[2], x->shape[d], part) < 0)
        return lc_fail_int(LC_ShapeMismatch,
                           "unflatten: Provided sizes %s don't multiply up to the size of dim %d (%lld) in the input tensor %s",
                           LC_SIZES(in[2].is, in[2].n), d, (long long)(x->ndim ? x->shape[d] : 1), LC_SHAPE(x));
    for (int e = 0; e < d; e++) shape[e] = x->shape[e];
    for (int e = 0; e <= more; e++) shape[d + e] = part[e];
    for (int e = d + 1; e < x->ndim; e++) shape[e + more] = x->shape[e];
    return give(lc_view(x, shape, x->ndim + more), out);
}
LC_OP(unflatten, .sig = "unflatten(input: Tensor, dim: int, sizes: tuple[int, ...]) -> Tensor",
      .doc = "One dimension as several.", .method = true, .call = unflatten_call);

static int contiguous_call(const lc_value *in, lc_tensor **out)
{
    if (lc_is_contiguous_in(in(0), in[1].fmt)) return give(in(0), out);
    if (in[1].fmt == LC_PRESERVE_FORMAT)
        return lc_fail_int(LC_LucidError, "preserve memory format is unsupported by the contiguous operator");
    return give(lc_clone(in(0), in[1].fmt), out);
}
LC_OP(contiguous, .sig = "contiguous(input: Tensor, *, memory_format: memory_format = contiguous_format) -> Tensor",
      .doc = "input itself if it is laid out that way, else a copy that is.", .method = true, .call = contiguous_call);

static int ravel_call(const lc_value *in, lc_tensor **out)
{
    int64_t all = -1;
    return give(lc_reshape(lc_contiguous(in(0), LC_CONTIGUOUS_FORMAT), in(0)->numel ? &all : &in(0)->numel, 1), out);
}
LC_OP(ravel, .sig = "ravel(input: Tensor) -> Tensor", .doc = "One contiguous dimension; a copy only where needed.",
      .method = true, .call = ravel_call);

/* Orders of dimensions. */

static int transposed_call(const lc_value *in, lc_tensor **out) { return give(lc_transpose(in(0), in[1].i, in[2].i), out); }
LC_OP(swapaxes, .sig = "swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor", .doc = "Another name of transpose.",
      .method = true, .call = transposed_call);

static int distinct_dims(const lc_value *dims, int ndim, const char *name, uint64_t *mask)
{
    int d;
    *mask = 0;
    for (int i = 0; i < dims->n; i++) {
        if (dim_index(dims->is[i], ndim, &d) < 0) return -1;
        if (*mask >> d & 1)
            return lc_fail_int(LC_LucidError, "movedim: repeated dim in `%s` (%s)", name, LC_SIZES(dims->is, dims->n));
        *mask |= (uint64_t)1 << d;
    }
    return 0;
}
static int movedim_call(const lc_value *in, lc_tensor **out)
{
    int64_t  order[LC_MAX_DIMS];
    uint64_t from, to;
    int      ndim = in(0)->ndim, s, d;
    if (in[1].n != in[2].n)
        return lc_fail_int(
            LC_LucidError,
            "movedim: Invalid source or destination dims: source (%s dims) should contain the same number of dims "
            "as destination (%s dims)",
            LC_SIZES(in[1].is, in[1].n), LC_SIZES(in[2].is, in[2].n));
    if (distinct_dims(&in[1], ndim, "source", &from) < 0 || distinct_dims(&in[2], ndim, "destination", &to) < 0) return -1;
    if (ndim == 0) return give(lc_alias(in(0)), out);
    for (int i = 0; i < in[1].n; i++) dim_index(in[1].is[i], ndim, &s), dim_index(in[2].is[i], ndim, &d), order[d] = s;
    for (s = d = 0; d < ndim; d++) {
        if (to >> d & 1) continue;
        while (from >> s & 1) s++;
        order[d] = s++;
    }
    return give(lc_permute(in(0), order, ndim), out);
}
LC_OP(movedim, .aliases = "moveaxis", .sig = "movedim(input: Tensor, source: list[int], destination: list[int]) -> Tensor",
      .doc = "Dimensions moved to other places; the rest keep their order.", .method = true, .call = movedim_call);

/* Lucid's own names. */

static int expand_dims_call(const lc_value *in, lc_tensor **out) { return give(lc_unsqueeze(in(0), in[1].i), out); }
LC_OP(expand_dims, .sig = "expand_dims(input: Tensor, dim: int) -> Tensor", .doc = "Another name of unsqueeze.", .method = true,
      .function = false, .call = expand_dims_call);
static int squeeze_all_call(const lc_value *in, lc_tensor **out) { return give(lc_squeeze(in(0), NULL, 0), out); }
LC_OP(squeeze_all, .sig = "squeeze_all(input: Tensor) -> Tensor", .doc = "squeeze of every dimension of size one.",
      .method = true, .function = false, .call = squeeze_all_call);
static int eval_call(const lc_value *in, lc_tensor **out) { return give(in(0), out); }
LC_OP(eval, .sig = "eval(input: Tensor) -> Tensor", .doc = "input itself: values are computed when an op is called.",
      .method = true, .call = eval_call);

/* The properties T, mT, H and mH of a tensor. */
static int T_call(const lc_value *in, lc_tensor **out)
{
    static atomic_bool said;
    int64_t            order[LC_MAX_DIMS];
    int                ndim = in(0)->ndim;
    if (ndim != 2 && ndim != 0)
        lc_warn_once(&said,
                     "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated. Consider "
                     "`x.mT` to transpose batches of matrices or `x.permute(*range(x.ndim - 1, -1, -1))`.");
    for (int d = 0; d < ndim; d++) order[d] = ndim - 1 - d;
    return give(lc_permute(in(0), order, ndim), out);
}
LC_OP(T, .sig = "T(input: Tensor) -> Tensor", .doc = "Dimensions in reverse order.", .hidden = true, .call = T_call);

static int matrices_only(const lc_tensor *x, const char *name)
{
    if (x->ndim != 1) return 0;
    return lc_fail_int(LC_ShapeMismatch, "tensor.%s is only supported on matrices or batches of matrices. Got 1-D tensor.",
                       name);
}
static int mT_call(const lc_value *in, lc_tensor **out)
{
    if (matrices_only(in(0), "mT") < 0) return -1;
    return give(in(0)->ndim ? lc_transpose(in(0), -2, -1) : lc_alias(in(0)), out);
}
LC_OP(mT, .sig = "mT(input: Tensor) -> Tensor", .doc = "The last two dimensions swapped.", .hidden = true, .call = mT_call);

static int adjoint_of(lc_tensor *x, lc_tensor **out)
{
    return give(conj_of(x->ndim ? lc_transpose(x, -2, -1) : lc_alias(x)), out);
}
static int mH_call(const lc_value *in, lc_tensor **out) { return matrices_only(in(0), "mH") < 0 ? -1 : adjoint_of(in(0), out); }
LC_OP(mH, .sig = "mH(input: Tensor) -> Tensor", .doc = "The last two dimensions swapped, conjugated.", .hidden = true,
      .call = mH_call);
static int adjoint_call(const lc_value *in, lc_tensor **out)
{
    return matrices_only(in(0), "adjoint()") < 0 ? -1 : adjoint_of(in(0), out);
}
LC_OP(adjoint, .sig = "adjoint(input: Tensor) -> Tensor", .doc = "The last two dimensions swapped, conjugated.", .method = true,
      .call = adjoint_call);
static int H_call(const lc_value *in, lc_tensor **out)
{
    if (in(0)->ndim == 2 || in(0)->ndim == 0) return adjoint_of(in(0), out);
    return lc_fail_int(
        LC_ShapeMismatch,
        "tensor.H is only supported on matrices (2-D tensors). Got %d-D tensor. For batches of matrices, consider "
        "using tensor.mH",
        in(0)->ndim);
}
LC_OP(H, .sig = "H(input: Tensor) -> Tensor", .doc = "A matrix transposed and conjugated.", .hidden = true, .call = H_call);

/* Several tensors in one shape. */

static int as_many_as_given(const lc_value *in) { return in[0].n; }
static int broadcast_tensors_call(const lc_value *in, lc_tensor **out)
{
    int64_t shape[LC_MAX_DIMS];
    int     ndim = 0;
    for (int k = 0; k < in[0].n; k++) ndim = in[0].ts[k]->ndim > ndim ? in[0].ts[k]->ndim : ndim;
    for (int d = 0; d < ndim; d++) shape[d] = 1;
    for (int k = 0; k < in[0].n; k++)
        for (int d = 0; d < in[0].ts[k]->ndim; d++) {
            int64_t *size = &shape[ndim - in[0].ts[k]->ndim + d], have = in[0].ts[k]->shape[d];
            if (*size == 1) *size = have;
            else if (have != 1 && have != *size)
                return lc_fail_int(LC_ShapeMismatch,
                                   "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton "
                                   "dimension %d: %s",
                                   (long long)*size, (long long)have, (int)(size - shape), LC_SHAPE(in[0].ts[k]));
        }
    for (int k = 0; k < in[0].n; k++) {
        lc_tensor *t = in[0].ts[k];
        bool       fits = t->ndim == ndim && !memcmp(t->shape, shape, (size_t)ndim * sizeof *shape);
        if (!(out[k] = fits ? t : lc_expand(t, shape, ndim))) return -1;
    }
    return 0;
}
LC_OP(broadcast_tensors, .sig = "broadcast_tensors(*tensors: Tensor) -> list[Tensor]",
      .doc = "Every tensor expanded to the shape all of them broadcast to.", .count = as_many_as_given,
      .call = broadcast_tensors_call);

static int meshgrid_call(const lc_value *in, lc_tensor **out)
{
    static atomic_bool said;
    int64_t            shape[LC_MAX_DIMS];
    int                n = in[0].n;
    bool               xy = in[1].tag == LC_IS_str && !strcmp(in[1].s, "xy");
    if (in[1].tag == LC_IS_none)
        lc_warn_once(&said, "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.");
    else if (!xy && strcmp(in[1].s, "ij"))
        return lc_fail_int(LC_LucidError, "meshgrid: indexing must be one of \"xy\" or \"ij\", but received: %s", in[1].s);
    if (n == 0) return lc_fail_int(LC_LucidError, "meshgrid expects a non-empty TensorList");
    if (n > LC_MAX_DIMS) return lc_fail_int(LC_ShapeMismatch, "%d dimensions: at most %d are supported", n, LC_MAX_DIMS);
    xy = xy && n >= 2;
    for (int k = 0; k < n; k++) {
        lc_tensor *t = in[0].ts[k];
        if (t->ndim > 1)
            return lc_fail_int(LC_ShapeMismatch, "meshgrid: Expected 0D or 1D tensor in the tensor list but got: %s",
                               LC_SHAPE(t));
        if (t->dtype != in[0].ts[0]->dtype)
            return lc_fail_int(LC_DtypeMismatch, "meshgrid expects all tensors to have the same dtype: %s and %s",
                               LC_SHAPE(in[0].ts[0]), LC_SHAPE(t));
        shape[xy && k < 2 ? 1 - k : k] = t->numel;
    }
    for (int k = 0; k < n; k++) {
        int64_t alone[LC_MAX_DIMS];
        for (int d = 0; d < n; d++) alone[d] = 1;
        alone[xy && k < 2 ? 1 - k : k] = in[0].ts[k]->numel;
        if (!(out[k] = lc_expand(lc_view(in[0].ts[k], alone, n), shape, n))) return -1;
    }
    return 0;
}
LC_OP(meshgrid, .sig = "meshgrid(*tensors: Tensor, indexing: str | None = None) -> list[Tensor]",
      .doc = "Coordinates of the grid that the vectors span.", .count = as_many_as_given, .call = meshgrid_call);

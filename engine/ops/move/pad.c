/* Padding: constant_pad_nd writes the input into the middle of a constant; the other modes copy borders from the interior,
 * dimension by dimension, or select elements by index if a width is negative. `pad` counts pairs (before, after) from the
 * last dimension on; negative ones cut. */
#include "../view/view.h"

/* ---- constants ---- */
static int padded_shape(const lc_tensor *x, const lc_value *pad, int64_t *shape)
{
    int dims = pad->n / 2;
    if (pad->n % 2) return lc_fail_int(LC_ShapeMismatch, "Length of pad must be even but instead it equals %d", pad->n);
    if (dims > x->ndim)
        return lc_fail_int(LC_ShapeMismatch,
                           "Length of pad should be no more than twice the number of dimensions of the input. Pad length is %d "
                           "while the input has %d dimensions.",
                           pad->n, x->ndim);
    for (int d = 0; d < x->ndim; d++) {
        int            from_end = x->ndim - 1 - d;
        const int64_t *p = pad->is + 2 * from_end;
        shape[d] = x->shape[d];
        if (from_end >= dims) continue;
        __int128 left = (__int128)shape[d] + (p[0] < 0 ? p[0] : 0) + (p[1] < 0 ? p[1] : 0);
        if (left < 0)
            return lc_fail_int(LC_ShapeMismatch, "padding %lld and %lld cuts more than the %lld elements of dimension %d",
                               (long long)p[0], (long long)p[1], (long long)x->shape[d], d);
        if (__builtin_add_overflow(shape[d], p[0], &shape[d]) || __builtin_add_overflow(shape[d], p[1], &shape[d]) ||
            shape[d] < 0)
            return lc_fail_int(LC_ShapeMismatch,
                               "The input size %lld, plus negative padding %lld and %lld resulted in a negative output size, "
                               "which is invalid. Check dimension %d of your input.",
                               (long long)x->shape[d], (long long)p[0], (long long)p[1], d);
    }
    return 0;
}

/* The part of `x` that stays, or with other = true its position in the padded result. */
static void middle(const lc_tensor *x, const lc_value *pad, bool other, geometry *v)
{
    geometry_like(x, 0, v);
    for (int i = 0; i < pad->n / 2; i++) {
        int     d = x->ndim - 1 - i;
        int64_t before = other ? pad->is[2 * i] : -pad->is[2 * i], after = other ? pad->is[2 * i + 1] : -pad->is[2 * i + 1];
        if (before > 0) v->offset += before * x->stride[d], v->shape[d] -= before;
        if (after > 0) v->shape[d] -= after;
        if (v->shape[d] < 0) v->shape[d] = 0;
    }
    for (int d = 0; d < v->ndim; d++)
        if (v->shape[d] == 0) v->offset = 0;
}

static int constant_pad_nd_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    const lc_value  *pad = &call->args[1];
    int64_t          shape[LC_MAX_DIMS];
    bool             only_cuts = true;
    if (padded_shape(x, pad, shape) < 0 || spec_shape(call, out, (lc_dtype)x->dtype, x->ndim, shape) < 0) return -1;
    for (int i = 0; i < pad->n; i++) only_cuts &= pad->is[i] <= 0;
    if (!only_cuts) return in_suggested_format(x, out);
    geometry v; /* a clone of the middle, which keeps the order of its strides */
    middle(x, pad, false, &v);
    lc_tensor *seen = seen_as((lc_tensor *)x, &v);
    if (!seen) return -1;
    out->order = LC_ORDER_STRIDES;
    lc_strides_like(seen, out->stride);
    return lc_release(seen), 0;
}
static int constant_pad_nd_run(const lc_record *call)
{
    const lc_value *a = call->args;
    geometry        from, to;
    lc_number_box   box;
    middle(call->in[0], &a[1], false, &from);
    middle(call->out[0], &a[1], true, &to);
    lc_tensor *x = seen_as(call->in[0], &from), *place = x ? seen_as(call->out[0], &to) : NULL;
    int        rc = place ? fill_tensor(call->out[0], number_operand_in(&box, &a[2])) : -1;
    if (rc == 0) rc = call->backend->copy(place, x);
    lc_release(place);
    lc_release(x);
    return rc;
}
GRAD(constant_pad_nd)
{
    size_t   bytes = (size_t)(in[1].n + 1) * sizeof(int64_t);
    int64_t *back = lc_alloc(bytes);
    for (int i = 0; back && i < in[1].n; i++) back[i] = -in[1].is[i];
    dx[0] = back ? lc_constant_pad_nd(g[0], back, in[1].n, LC_I(0)) : NULL;
    lc_free(back, bytes);
}
LC_OP(constant_pad_nd, .batching = LC_BATCH_FRONT, .batched = IN(0),
      .sig = "constant_pad_nd(input: Tensor, pad: tuple[int, ...], value: Number = 0) -> Tensor",
      .doc = "input with one value before and after; pairs of widths from the last dimension on.", .promote = LC_NO_PROMOTION,
      .shape = constant_pad_nd_shape, .run = constant_pad_nd_run, .grad = constant_pad_nd_grad);

/* ---- elements of the input ---- */
typedef enum { PAD_REFLECT, PAD_REPLICATE, PAD_CIRCULAR } pad_mode;

/* The source of position i of the result, counted from the input's first element. Negative widths cut first: modes repeat
 * what is left. */
static int64_t source_of(pad_mode mode, int64_t i, int64_t size, int64_t before, int64_t after)
{
    int64_t first = before < 0 ? -before : 0, left = size - first + (after < 0 ? after : 0);
    if (mode == PAD_REPLICATE) return i < 0 ? 0 : i >= size ? size - 1 : i;
    if (mode == PAD_CIRCULAR) return left > 0 ? ((i - first) % left + left) % left + first : 0;
    return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
}
static int check_width(pad_mode mode, int64_t size, int64_t before, int64_t after, int d)
{
    bool fits = mode == PAD_REFLECT    ? before < size && after < size
                : mode == PAD_CIRCULAR ? before <= size && after <= size
                                       : true;
    if (!fits)
        return lc_fail_int(LC_ShapeMismatch,
                           mode == PAD_REFLECT ? "Padding size should be less than the corresponding input dimension, but got: "
                                                 "padding (%lld, %lld) at dimension %d of size %lld"
                                               : "Padding value causes wrapping around more than once: padding (%lld, %lld) at "
                                                 "dimension %d of size %lld",
                           (long long)before, (long long)after, d, (long long)size);
    if (size + before + after < 1 || size == 0)
        return lc_fail_int(LC_ShapeMismatch,
                           "padding (%lld, %lld) at dimension %d of size %lld gives an empty result: this is not supported",
                           (long long)before, (long long)after, d, (long long)size);
    return 0;
}
static lc_tensor *padded_dim(lc_tensor *x, int d, int64_t before, int64_t after, pad_mode mode) /* scoped */
{
    int64_t size = x->shape[d], n = size + before + after;
    if (check_width(mode, size, before, after, d) < 0) return NULL;
    if (before == 0 && after == 0) return x;
    lc_tensor *index = lc_scoped(lc_tensor_new(LC_i64, (lc_device){ LC_CPU, 0 }, 1, &n));
    if (!index) return NULL;
    for (int64_t i = 0; i < n; i++) ((int64_t *)index->data)[i] = source_of(mode, i - before, size, before, after);
    if (!lc_same_device(index->device, x->device)) index = lc__to_copy(index, LC_i64, x->device, LC_PRESERVE_FORMAT);
    return lc_index_select(x, d, index);
}

/* ---- the same where nothing is cut: borders are copied from the result itself, dimension by dimension, and gradients added back ---- */
/* One border of dimension d of a padded tensor, and the part of that dimension it repeats. The padded dimensions before d
 * (first .. d - 1) do not have their borders yet. New references. */
static int border(lc_tensor *t, const lc_value *pad, pad_mode mode, int first, int d, bool after, lc_tensor **edge,
                  lc_tensor **from)
{
    geometry v;
    geometry_like(t, 0, &v);
    for (int e = first; e < d; e++) {
        const int64_t *p = pad->is + 2 * (t->ndim - 1 - e);
        v.offset += p[0] * t->stride[e], v.shape[e] -= p[0] + p[1];
    }
    const int64_t *p = pad->is + 2 * (t->ndim - 1 - d);
    int64_t        width = p[after], size = t->shape[d] - p[0] - p[1], step = t->stride[d], start = v.offset;
    v.shape[d] = width, v.offset = start + (after ? p[0] + size : 0) * step;
    if (!(*edge = seen_as(t, &v))) return -1;
    int64_t at = mode == PAD_REPLICATE  ? p[0] + (after ? size - 1 : 0)
                 : mode == PAD_CIRCULAR ? (after ? p[0] : size)
                                        : (after ? p[0] + size - 2 : 2 * p[0]); /* reflect: backwards from there */
    v.offset = start + at * step, v.stride[d] = mode == PAD_REPLICATE ? 0 : mode == PAD_REFLECT ? -step : step;
    if ((*from = seen_as(t, &v))) return 0;
    lc_release(*edge);
    return -1;
}
static int each_border(const lc_backend *backend, lc_tensor *t, const lc_value *pad, pad_mode mode, bool back)
{
    int n = pad->n / 2, first = t->ndim - n, rc = 0;
    for (int i = 0; i < n && rc == 0; i++)
        for (int after = 0; after < 2 && rc == 0; after++) {
            int        d = back ? first + i : t->ndim - 1 - i; /* the last dimension is padded first, and folded back last */
            lc_tensor *edge, *from;
            if (!pad->is[2 * (t->ndim - 1 - d) + after] || !t->numel) continue;
            if (border(t, pad, mode, first, d, after, &edge, &from) < 0) return -1;
            rc = back ? add_into(backend, from, edge) : backend->copy(edge, from);
            lc_release(edge), lc_release(from);
        }
    return rc;
}
static int move_middle(const lc_record *call, lc_tensor *wide, lc_tensor *narrow, bool out)
{
    geometry v;
    middle(wide, &call->args[1], true, &v);
    lc_tensor *inside = seen_as(wide, &v);
    int        rc = !inside ? -1 : out ? call->backend->copy(narrow, inside) : call->backend->copy(inside, narrow);
    lc_release(inside);
    return rc;
}
static int pad_edges_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    int64_t          shape[LC_MAX_DIMS];
    if (padded_shape(x, &call->args[1], shape) < 0 || spec_shape(call, out, (lc_dtype)x->dtype, x->ndim, shape) < 0) return -1;
    bool keeps = call->args[2].i != PAD_CIRCULAR && call->args[1].n == 2 * (x->ndim - 2); /* all but batch and channels */
    return keeps ? in_suggested_format(x, out) : 0;
}
/* The backend's kernel: the source of each position of a padded dimension is the same for all rows. */
static int pad_by_kernel(const lc_record *call, pad_mode mode)
{
    lc_tensor      *x = call->in[0], *out = call->out[0];
    const lc_value *pad = &call->args[1];
    int64_t         places = 3, *table;
    lc_pad_args     a = { .in = x, .out = out, .outer = 1 };
    for (int d = 0; d < pad->n / 2; d++) places += out->shape[out->ndim - 1 - d];
    if (!(table = lc_alloc((size_t)places * sizeof *table))) return -1;
    int64_t *next = table;
    for (int k = 2; k >= 0; k--) {
        int     d = x->ndim - 3 + k, i = 2 - k;
        bool    padded = i < pad->n / 2;
        int64_t before = padded ? pad->is[2 * i] : 0, after = padded ? pad->is[2 * i + 1] : 0;
        a.size[k] = padded ? x->shape[d] : 1, a.result[k] = padded ? out->shape[d] : 1, a.before[k] = before, a.from[k] = next;
        for (int64_t j = 0; j < a.result[k]; j++) *next++ = source_of(mode, j - before, a.size[k], before, after);
    }
    for (int d = 0; d < x->ndim - pad->n / 2; d++) a.outer *= x->shape[d];
    int rc = run_kernel_with(call, &a);
    lc_free(table, (size_t)places * sizeof *table);
    return rc;
}
static int pad_edges_run(const lc_record *call)
{
    if (call->in[0]->is_contiguous && call->out[0]->is_contiguous && call->backend->has(call->op->kernel, call->dtype))
        return pad_by_kernel(call, (pad_mode)call->args[2].i);
    if (move_middle(call, call->out[0], call->in[0], false) < 0) return -1;
    return each_border(call->backend, call->out[0], &call->args[1], (pad_mode)call->args[2].i, false);
}
GRAD(_pad_edges) { dx[0] = lc__pad_edges_backward(g[0], in[1].is, in[1].n, in[2].i); }
LC_OP(_pad_edges, .sig = "_pad_edges(input: Tensor, pad: list[int], mode: int) -> Tensor",
      .doc = "input padded with its own elements.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = pad_edges_shape,
      .run = pad_edges_run, .grad = _pad_edges_grad);
static int pad_back_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *g = call->in[0];
    const lc_value  *pad = &call->args[1];
    int64_t          shape[LC_MAX_DIMS];
    memcpy(shape, g->shape, (size_t)g->ndim * sizeof *shape);
    for (int i = 0; i < pad->n; i++) shape[g->ndim - 1 - i / 2] -= pad->is[i];
    return spec_shape(call, out, (lc_dtype)g->dtype, g->ndim, shape);
}
static int pad_back_run(const lc_record *call)
{
    lc_tensor *g = call->in[0];
    lc_dtype   work = lc_is_floating(g->dtype) ? working_dtype((lc_dtype)g->dtype) : (lc_dtype)g->dtype;
    lc_tensor *sums = lc_tensor_new(work, g->device, g->ndim, g->shape);
    int        rc = sums ? call->backend->copy(sums, g) : -1;
    if (rc == 0) rc = each_border(call->backend, sums, &call->args[1], (pad_mode)call->args[2].i, true);
    if (rc == 0) rc = move_middle(call, sums, call->out[0], true);
    lc_release(sums);
    return rc;
}
GRAD(_pad_edges_backward) { dx[0] = lc__pad_edges(g[0], in[1].is, in[1].n, in[2].i); }
LC_OP(_pad_edges_backward, .sig = "_pad_edges_backward(grad: Tensor, pad: list[int], mode: int) -> Tensor",
      .doc = "The gradient of padding: gradients of borders are added to the elements they repeat.", .hidden = true,
      .promote = LC_NO_PROMOTION, .shape = pad_back_shape, .run = pad_back_run, .grad = _pad_edges_backward_grad);

static int pad_call(const lc_value *in, lc_tensor **out) /* (input, pad, mode, value) */
{
    static const char *const names[] = { "reflect", "replicate", "circular" };
    lc_tensor               *x = in(0);
    const char              *name = in[2].s;
    int                      mode = 0, n = in[1].n;
    if (!strcmp(name, "constant"))
        return (*out = lc_constant_pad_nd(x, in[1].is, n, in[3].tag == LC_IS_none ? LC_I(0) : in[3])) ? 0 : -1;
    while (mode < 3 && strcmp(name, names[mode])) mode++;
    if (mode == 3) return lc_fail_int(LC_NotImplementedError, "Unrecognised padding mode %s", name);
    if (in[3].tag != LC_IS_none && lc_number_of(&in[3]) != 0)
        return lc_fail_int(LC_LucidError, "Padding mode \"%s\" doesn't take in value argument", name);
    if (n % 2 || n < 2 || n > 6 || (x->ndim != n / 2 + 1 && x->ndim != n / 2 + 2))
        return lc_fail_int(LC_NotImplementedError,
                           "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now: %d widths for %s", n,
                           LC_SHAPE(x));
    if ((mode == PAD_REPLICATE || (mode == PAD_REFLECT && n < 6)) && !(x = lc_autocast_fp32(x)))
        return -1; /* PyTorch's choice */
    bool cuts = false, empty = false;
    for (int d = x->ndim == n / 2 + 2; d < x->ndim; d++) empty |= !x->shape[d];
    if (empty && mode != PAD_CIRCULAR)
        return lc_fail_int(LC_ShapeMismatch,
                           "Expected %dD or %dD (batch mode) tensor with possibly 0 batch size and other non-zero dimensions "
                           "for input, but got: %s",
                           n / 2 + 1, n / 2 + 2, LC_SHAPE(x));
    for (int i = 0; i < n / 2; i++) {
        int d = x->ndim - 1 - i;
        if (check_width((pad_mode)mode, x->shape[d], in[1].is[2 * i], in[1].is[2 * i + 1], d) < 0) return -1;
        cuts |= in[1].is[2 * i] < 0 || in[1].is[2 * i + 1] < 0;
    }
    if (!cuts) return (*out = lc__pad_edges(x, in[1].is, n, mode)) ? 0 : -1;
    for (int i = 0; i < n / 2 && x; i++)
        x = padded_dim(x, x->ndim - 1 - i, in[1].is[2 * i], in[1].is[2 * i + 1], (pad_mode)mode);
    if (x == in(0)) x = lc_clone(x, LC_CONTIGUOUS_FORMAT);
    lc_memory_format format = suggested_format(in(0));
    bool             keeps = mode != PAD_CIRCULAR && in(0)->ndim == n / 2 + 2 && format != LC_CONTIGUOUS_FORMAT;
    if (x && keeps) x = lc_contiguous(x, format);
    return (*out = x) ? 0 : -1;
}
LC_OP(pad, .sig = "pad(input: Tensor, pad: tuple[int, ...], mode: str = 'constant', value: float | None = None) -> Tensor",
      .doc = "input with a border: constant, reflect, replicate or circular; pairs of widths from the last dimension on.",
      .method = true, .call = pad_call);

/* Rearranged channels: pixel_shuffle, pixel_unshuffle and channel_shuffle. Both sides of each are views of more dimensions, and the op is one
 * copy, or a few, between them, in whatever memory format the input has. */
#include "../view/view.h"

/* ---- channels to pixels and back ---- */
/* t (..., C r r, H, W), or with apart = false (..., C, H r, W r), seen as (..., C, r, r, H, W), of which the second r is at j. New reference. */
static lc_tensor *seen_in_pixels(lc_tensor *t, int64_t r, int64_t j, bool apart)
{
    geometry v;
    int      c = t->ndim - 3;
    if (geometry_like(t, 1, &v) < 0) return NULL;
    const int64_t *shape = t->shape, *stride = t->stride;
    int64_t        s = apart ? 1 : r;
    v.ndim = t->ndim + 1;
    if (t->numel) v.offset += j * (apart ? stride[c] : stride[c + 2]);
    v.shape[c] = apart ? shape[c] / (r * r) : shape[c], v.stride[c] = apart ? r * r * stride[c] : stride[c];
    v.shape[c + 1] = r, v.stride[c + 1] = apart ? r * stride[c] : stride[c + 1];
    v.shape[c + 2] = shape[c + 1] / s, v.stride[c + 2] = s * stride[c + 1];
    v.shape[c + 3] = shape[c + 2] / s, v.stride[c + 3] = s * stride[c + 2];
    return seen_as(t, &v);
}
static int pixels_shape(const lc_record *call, lc_spec *out, bool unshuffle, const char *factor)
{
    const lc_tensor *x = call->in[0];
    int64_t          r = call->args[1].i, shape[LC_MAX_DIMS];
    int              c = x->ndim - 3;
    const char      *name = call->op->name;
    if (c < 0)
        return lc_fail_int(LC_ShapeMismatch,
                           "%s expects input to have at least 3 dimensions, but got input with %d dimension(s)", name, x->ndim);
    if (r <= 0) return lc_fail_int(LC_LucidError, "%s expects a positive %s, but got %lld", name, factor, (long long)r);
    if (!unshuffle && r > INT64_MAX / r)
        return lc_fail_int(LC_ValueError, "%s: the square of %s = %lld is too large", name, factor, (long long)r);
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof *shape);
    bool fits = r < 1 << 20;
    if (unshuffle) {
        fits = fits && shape[c + 1] % r == 0 && shape[c + 2] % r == 0; /* without elements PyTorch leaves the shape as it is */
        if (fits && x->numel) shape[c] *= r * r, shape[c + 1] /= r, shape[c + 2] /= r;
    } else {
        fits = fits && shape[c] % (r * r) == 0;
        if (fits) shape[c] /= r * r, shape[c + 1] *= r, shape[c + 2] *= r;
    }
    if (!fits)
        return lc_fail_int(LC_ShapeMismatch, "%s expects sizes that are divisible by %s, but %s is not by %lld", name, factor,
                           LC_SHAPE(x), (long long)r);
    return spec_shape(call, out, (lc_dtype)x->dtype, x->ndim, shape) < 0 ? -1 : in_suggested_format(x, out);
}
static int move_views(const lc_record *call, lc_tensor *to, lc_tensor *from) /* releases both */
{
    int rc = to && from ? call->backend->copy(to, from) : -1;
    lc_release(to), lc_release(from);
    return rc;
}
/* One copy per column of the blocks: its inner loop is then as long as a row, not as a block is wide. */
static int move_pixels(const lc_record *call, bool apart)
{
    int64_t r = call->args[1].i;
    int     rc = 0;
    for (int64_t j = 0; j < r && rc == 0 && call->out[0]->numel; j++) {
        lc_tensor *from = seen_in_pixels(call->in[0], r, j, apart);
        rc = move_views(call, from ? seen_in_pixels(call->out[0], r, j, !apart) : NULL, from);
    }
    return rc;
}
static int shuffle_shape(const lc_record *call, lc_spec *out) { return pixels_shape(call, out, false, "upscale_factor"); }
static int unshuffle_shape(const lc_record *call, lc_spec *out) { return pixels_shape(call, out, true, "downscale_factor"); }
static int shuffle_run(const lc_record *call) { return move_pixels(call, true); }
static int unshuffle_run(const lc_record *call) { return move_pixels(call, false); }

#define MOVES .ns = "nn.functional", .promote = LC_NO_PROMOTION
GRAD(pixel_shuffle) { dx[0] = g[0]->numel ? lc_pixel_unshuffle(g[0], in[1].i) : lc_reshape(g[0], in(0)->shape, in(0)->ndim); }
LC_OP(pixel_shuffle, .batching = LC_BATCH_FRONT, .batched = IN(0),
      .sig = "pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor",
      .doc = "(..., C r r, H, W) as (..., C, H r, W r): r * r channels become a block of pixels.", MOVES,
      .shape = shuffle_shape, .kind = LC_KIND_MOVE, .run = shuffle_run, .grad = pixel_shuffle_grad);
GRAD(pixel_unshuffle) { dx[0] = g[0]->numel ? lc_pixel_shuffle(g[0], in[1].i) : g[0]; }
LC_OP(pixel_unshuffle, .batching = LC_BATCH_FRONT, .batched = IN(0),
      .sig = "pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor",
      .doc = "(..., C, H r, W r) as (..., C r r, H, W): the reverse of pixel_shuffle.", MOVES, .shape = unshuffle_shape,
      .kind = LC_KIND_MOVE, .run = unshuffle_run, .grad = pixel_unshuffle_grad);

/* ---- channels among groups ---- */
static int channels_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    int64_t          groups = call->args[1].i;
    if (x->ndim < 3)
        return lc_fail_int(LC_ShapeMismatch, "channel_shuffle expects input with > 2 dims, but got input with sizes %s",
                           LC_SHAPE(x));
    if (groups <= 0)
        return lc_fail_int(LC_LucidError, "Number of groups to divide channels in must be positive. Value of groups: %lld",
                           (long long)groups);
    if (x->shape[1] % groups)
        return lc_fail_int(LC_ShapeMismatch,
                           "Number of channels must be divisible by groups. Got %lld channels and %lld groups.",
                           (long long)x->shape[1], (long long)groups);
    spec_like(call, out, x, (lc_dtype)x->dtype);
    return in_suggested_format(x, out);
}
/* Dimension 1 as two: the first has size n and a stride of `step` channels, the second a stride of `other`. */
static lc_tensor *seen_in_groups(lc_tensor *t, int64_t n, int64_t step, int64_t other)
{
    geometry v;
    if (geometry_like(t, 1, &v) < 0) return NULL;
    v.ndim = t->ndim + 1;
    for (int d = t->ndim - 1; d > 1; d--) v.shape[d + 1] = t->shape[d], v.stride[d + 1] = t->stride[d];
    v.shape[1] = n, v.stride[1] = step * t->stride[1];
    v.shape[2] = n ? t->shape[1] / n : 0, v.stride[2] = other * t->stride[1];
    return seen_as(t, &v);
}
static int channels_run(const lc_record *call)
{
    int64_t    groups = call->args[1].i, each = call->in[0]->shape[1] / groups;
    lc_tensor *from = seen_in_groups(call->in[0], groups, each, 1),
              *to = from ? seen_in_groups(call->out[0], groups, 1, groups) : NULL;
    return move_views(call, to, from);
}
GRAD(channel_shuffle)
{
    int64_t each = in(0)->shape[1] / in[1].i;
    dx[0] = each ? lc_channel_shuffle(g[0], each) : g[0];
}
LC_OP(channel_shuffle, .batching = LC_BATCH_FRONT, .batched = IN(0),
      .sig = "channel_shuffle(input: Tensor, groups: int) -> Tensor",
      .doc = "Channels (dimension 1) in another order: the first of each group, then the second of each.", MOVES,
      .shape = channels_shape, .kind = LC_KIND_MOVE, .run = channels_run, .grad = channel_shuffle_grad);
static int native_channel_shuffle_call(const lc_value *in, lc_tensor **out)
{
    return (*out = lc_channel_shuffle(in(0), in[1].i)) ? 0 : -1;
}
LC_OP(native_channel_shuffle, .sig = "native_channel_shuffle(input: Tensor, groups: int) -> Tensor",
      .doc = "channel_shuffle, by PyTorch's other name.", MOVES, .call = native_channel_shuffle_call);

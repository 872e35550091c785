/* Decoding: one new token per row of a batch against keys and values in preallocated buffers (batch, key heads, capacity,
 * width). Where a row's tokens begin and end, the device knows alone: spans (batch, 2) in int64, begin and end. So a step is
 * the same calls on the same memory whatever the lengths, and a captured graph runs them all again.
 *
 * _cache_write stores the keys and values of new tokens at the end of each row. _cached_attention answers one query per row
 * from its span, or the last `window` tokens of it (0: all). Neither has a gradient. */
#include "../rules.h"

static int spans_fit(const lc_record *call, const lc_tensor *keys, const lc_tensor *values, const lc_tensor *spans)
{
    if (keys->ndim != 4 || values->ndim != 4 || memcmp(keys->shape, values->shape, 3 * sizeof *keys->shape) ||
        keys->dtype != values->dtype || !lc_is_floating(keys->dtype))
        return lc_fail_int(LC_ShapeMismatch, "%s: expected floating buffers (batch, heads, capacity, width), got %s and %s",
                           call->op->name, LC_SHAPE(keys), LC_SHAPE(values));
    if (keys->stride[3] != 1 || values->stride[3] != 1)
        return lc_fail_int(LC_ValueError, "%s: the buffers must be contiguous along their last dimension", call->op->name);
    if (spans->dtype != LC_i64 || spans->ndim != 2 || spans->shape[0] != keys->shape[0] || spans->shape[1] != 2 ||
        !spans->is_contiguous)
        return lc_fail_int(LC_ShapeMismatch, "%s: expected contiguous int64 spans (%lld, 2), got %s", call->op->name,
                           (long long)keys->shape[0], LC_SHAPE(spans));
    return 0;
}

/* ---- new tokens ---- */
static bool fits_buffer(const lc_tensor *new, const lc_tensor *buffer)
{
    return new->ndim == 4 && new->dtype == buffer->dtype &&new->shape[0] == buffer->shape[0] &&
           new->shape[1] == buffer->shape[1] && new->shape[2] == 1 && new->shape[3] == buffer->shape[3];
}
static int cache_write_run(const lc_record *call)
{
    lc_cached_args a = { .keys = call->in[0], .values = call->in[1], .k = call->in[2], .v = call->in[3], .spans = call->in[4] };
    lc_record      written = *call;
    if (spans_fit(call, a.keys, a.values, a.spans) < 0) return -1;
    if (!fits_buffer(a.k, a.keys) || !fits_buffer(a.v, a.values))
        return lc_fail_int(LC_ShapeMismatch, "_cache_write: one key and value per row are expected, got %s and %s for %s",
                           LC_SHAPE(a.k), LC_SHAPE(a.v), LC_SHAPE(a.keys));
    written.dtype = working_dtype((lc_dtype)a.keys->dtype);
    return a.keys->numel ? run_kernel_with(&written, &a) : 0;
}
LC_OP(_cache_write, .sig = "_cache_write(keys: Tensor, values: Tensor, key: Tensor, value: Tensor, spans: Tensor) -> None",
      .doc = "Store one key and value per row at the end of its span, which does not grow by that.", .promote = LC_NO_PROMOTION,
      .writes = IN(0) | IN(1), .run = cache_write_run);

/* ---- one query per row ---- */
static int cached_attention_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *q = call->in[0], *keys = call->in[1], *values = call->in[2];
    if (spans_fit(call, keys, values, call->in[3]) < 0) return -1;
    if (q->ndim != 4 || q->dtype != keys->dtype || q->shape[0] != keys->shape[0] || q->shape[2] != 1 ||
        q->shape[3] != keys->shape[3] || !keys->shape[1] || q->shape[1] % keys->shape[1] || call->args[5].i < 0)
        return lc_fail_int(LC_ShapeMismatch, "_cached_attention: a query %s does not fit keys %s", LC_SHAPE(q), LC_SHAPE(keys));
    return spec_shape(call, out, (lc_dtype)q->dtype, 4, (int64_t[]){ q->shape[0], q->shape[1], 1, values->shape[3] });
}
static int cached_attention_run(const lc_record *call)
{
    lc_record      answered = *call;
    lc_cached_args a = { .q = call->in[0],
                         .keys = call->in[1],
                         .values = call->in[2],
                         .spans = call->in[3],
                         .scale = call->args[4].f,
                         .window = call->args[5].i };
    lc_dtype       work = working_dtype((lc_dtype)a.q->dtype);
    answered.dtype = work;
    a.out = destination(call->out[0], call->backend->can.half & LC_HALF_ATTENTION ? (lc_dtype)a.q->dtype : work, call->in,
                        call->n_in);
    return a.out ? deliver(call->out[0], a.out, a.out->numel ? run_kernel_with(&answered, &a) : 0) : -1;
}
LC_OP(
    _cached_attention,
    .sig = "_cached_attention(query: Tensor, keys: Tensor, values: Tensor, spans: Tensor, scale: float, window: int) -> Tensor",
    .doc = "softmax(scale query keys') values for one query per row, over the span of each row.", .promote = LC_NO_PROMOTION,
    .shape = cached_attention_shape, .run = cached_attention_run);

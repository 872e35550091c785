/* Masks: one value, a vector of values, or the elements themselves, where a bool tensor holds. */
#include "../rules.h"

static int mask_is_bool(const lc_record *call, const lc_tensor *mask)
{
    if (mask->dtype == LC_b8) return 0;
    return lc_fail_int(LC_DtypeMismatch, "%s only supports boolean masks, but got mask with dtype %s", call->op->name,
                       lc_dtypes[mask->dtype].name);
}

static int masked_fill_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *mask = call->in[1], *value = call->in[2];
    if (mask_is_bool(call, mask) < 0) return -1;
    if (value->ndim)
        return lc_fail_int(LC_ShapeMismatch,
                           "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).",
                           value->ndim);
    if (lc_is_complex(value->dtype) && !value->is_number && !lc_is_complex(call->in[0]->dtype))
        return lc_fail_int(LC_DtypeMismatch, "masked_fill: value of type %s cannot be converted to type %s without overflow",
                           lc_dtypes[value->dtype].name, lc_dtypes[call->in[0]->dtype].name);
    if (value->is_number && number_fits(call->in[0]->dtype, value) < 0) return -1;
    if (broadcast(call, out) < 0) return -1;
    return out->dtype = call->in[0]->dtype, out->order = LC_ORDER_CONTIGUOUS, 0;
}
/* Positions that share memory (an expanded tensor): only those where mask holds are touched. */
static int fill_repeated(const lc_record *call)
{
    int64_t      count = 0;
    lc_dtype     dtype = (lc_dtype)call->out[0]->dtype;
    lc_tensor   *found = lc_tensor_new(LC_i64, call->device, 0, NULL);
    lc_mask_args args = { .mask = call->in[1], .masked = call->out[0], .scatter = true, .count = found };
    int          rc = found ? call->backend->run(LC_OP_masked_scatter, dtype, &args) : -1;
    if (rc == 0 && call->backend->can.values) rc = read_int(found, &count);
    if (rc == 0)
        rc = (args.packed = lc_tensor_new(dtype, call->device, 1, &count)) ? fill_tensor(args.packed, call->in[2]) : -1;
    if (rc == 0) rc = call->backend->run(LC_OP_masked_scatter, dtype, &args);
    return lc_release(args.packed), lc_release(found), rc;
}
static int masked_fill_lower(const lc_record *call, lc_lowering *to)
{
    return lower_to(to, call, LC_OP_where, (lc_tensor *[]){ call->in[1], call->in[2], call->in[0] }, 3);
}
static int masked_fill_run(const lc_record *call)
{
    return call->out[0] == call->in[0] && lc_overlaps_itself(call->out[0]) ? fill_repeated(call) : lowered(call);
}
GRAD(masked_fill)
{
    if (need[0]) dx[0] = lc_masked_fill(g[0], in(1), LC_INTEGER(0));
    if (need[2]) dx[2] = lc_where(in(1), g[0], LC_INTEGER(0)); /* the engine sums over the broadcast */
}
LC_OP(masked_fill, .sig = "masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor",
      .doc = "input with one value where mask holds.", .method = true, .inplace = true, .any_strides = true, .repeats_ok = true,
      .promote = LC_NO_PROMOTION, .shape = masked_fill_shape, .lower = masked_fill_lower, .run = masked_fill_run,
      .kind = LC_KIND_OPAQUE, /* the value is 0-dimensional, it does not broadcast: vmap cannot add its dimension */
      .batching = LC_BATCH_BROADCAST, .batched = IN(0) | IN(1), .grad = masked_fill_grad, .saves = IN(1));

/* ---- one behind the other ---- */
static int masked_select_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor        *both[2], *mask = in(1);
    const lc_backend *backend = lc_backend_of(in(0)->device);
    int64_t           count = 0;
    lc_dtype          dtype = (lc_dtype)in(0)->dtype;
    if (mask->dtype != LC_b8)
        return lc_fail_int(LC_DtypeMismatch, "masked_select: expected BoolTensor for mask, got %s", LC_SHAPE(mask));
    if (!backend || lc_broadcast_tensors((lc_tensor *[]){ in(0), mask }, 2, both) < 0) return -1;
    if (!backend->can.values || !lc_can(mask)->values) /* a number's worth on the CPU may go with either */
        return lc_fail_int(LC_NotImplementedError, "masked_select: the size of the result is unknown on meta");
    if (!backend->has(LC_OP_masked_select, dtype))
        return lc_fail_int(LC_NotImplementedError, "masked_select is not implemented for %s on %s", lc_dtypes[dtype].name,
                           backend->name);
    lc_mask_args args = { .mask = both[1],
                          .masked = both[0],
                          .count = lc_scoped(lc_tensor_new(LC_i64, in(0)->device, 0, NULL)) };
    if (!args.count || backend->run(LC_OP_masked_select, dtype, &args) < 0 || read_int(args.count, &count) < 0) return -1;
    args.packed = lc_scoped(lc_tensor_new(dtype, in(0)->device, 1, &count));
    if (!args.packed || backend->run(LC_OP_masked_select, dtype, &args) < 0) return -1;
    return out[0] = args.packed, 0;
}
GRAD(masked_select)
{
    lc_tensor *both[2];
    if (lc_broadcast_tensors((lc_tensor *[]){ zeros_like(in(0)), in(1) }, 2, both) < 0) dx[0] = NULL;
    else
        dx[0] =
            lc_masked_scatter_(lc_clone(both[0], LC_CONTIGUOUS_FORMAT), in(1), g[0]); /* the engine sums over the broadcast */
}
LC_OP(masked_select, .sig = "masked_select(input: Tensor, mask: Tensor) -> Tensor",
      .doc = "The elements where mask holds, as a vector.", .method = true, .out = true, .exact = true, .reads_values = true,
      .call = masked_select_call, .grad = masked_select_grad, .saves = IN(1));
LC_OP(_index_mask, .py = "index", .sig = "_index_mask(input: Tensor, mask: Tensor) -> Tensor",
      .doc = "masked_select as x[mask] calls it: PyTorch's step back has indexing's name.", .hidden = true,
      .reads_values = true, .call = masked_select_call, .grad = masked_select_grad, .saves = IN(1));

static int masked_scatter_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0], *mask = call->in[1];
    int              more = x->ndim - mask->ndim;
    bool             fits = more >= 0;
    if (mask_is_bool(call, mask) < 0) return -1;
    if (x->dtype != call->in[2]->dtype)
        return lc_fail_int(LC_DtypeMismatch, "masked_scatter: expected self and source to have same dtypes but got %s and %s",
                           lc_dtypes[x->dtype].name, lc_dtypes[call->in[2]->dtype].name);
    for (int d = 0; fits && d < mask->ndim; d++) fits = mask->shape[d] == 1 || mask->shape[d] == x->shape[more + d];
    if (!fits)
        return lc_fail_int(LC_ShapeMismatch, "masked_scatter_: mask %s does not broadcast to %s", LC_SHAPE(mask), LC_SHAPE(x));
    return spec_like(call, out, x, (lc_dtype)x->dtype), 0;
}
static int masked_scatter_run(const lc_record *call)
{
    lc_tensor   *source = packed(call->in[2], (lc_dtype)call->in[2]->dtype);
    lc_mask_args args = { .mask = call->in[1], .masked = call->out[0], .packed = source, .scatter = true };
    int          rc = source ? run_kernel_with(call, &args) : -1;
    return lc_release(source), rc;
}
GRAD(masked_scatter_)
{
    if (need[0]) dx[0] = lc_masked_fill(g[0], in(1), LC_INTEGER(0));
    if (!need[2]) return;
    lc_tensor *read = lc_masked_select(g[0], in(1));
    int64_t    rest = read ? in(2)->numel - read->numel : 0;
    if (rest) read = lc_cat((lc_tensor *[]){ read, lc_new_zeros(read, &rest, 1, LC_ABSENT, LC_ABSENT) }, 2, 0);
    dx[2] = read ? same_size_view(read, in(2)->shape, in(2)->ndim) : NULL;
}
LC_OP(masked_scatter_, .sig = "masked_scatter_(input: Tensor, mask: Tensor, source: Tensor) -> Tensor",
      .doc = "Write the elements of source one after the other where mask holds.", .method = true, .function = false,
      .writes = IN(0), .exact = true, .kernel = LC_OP_masked_scatter, .promote = LC_NO_PROMOTION, .shape = masked_scatter_shape,
      .run = masked_scatter_run, .grad = masked_scatter__grad, .saves = IN(1));

static int masked_scatter_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *both[2];
    if (lc_broadcast_tensors((lc_tensor *[]){ in(0), in(1) }, 2, both) < 0) return -1;
    return (out[0] = lc_masked_scatter_(lc_clone(both[0], LC_CONTIGUOUS_FORMAT), in(1), in(2))) ? 0 : -1;
}
LC_OP(masked_scatter, .sig = "masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor",
      .doc = "input with the elements of source one after the other where mask holds.", .method = true, .out = true,
      .call = masked_scatter_call);

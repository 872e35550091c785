/* Copies: copy_, fill, and conversions between dtypes and devices.
 *
 * A conversion that changes nothing returns its input, as in PyTorch. Transfers between devices move contiguous bytes only:
 * values are converted and made contiguous at the source, sent by the accelerator's backend, and copied to their strides at
 * the destination. non_blocking lets a copy from or to page-locked memory return before it is done (lc_non_blocking). */
#include "../rules.h"
#include <math.h>

/* ---- shared with other op files (rules.h) ---- */
int number_fits(lc_dtype dtype, const lc_tensor *number)
{
    static const double limits[LC_DTYPE_COUNT] = { [LC_u8] = 255,
                                                   [LC_i8] = 127,
                                                   [LC_i16] = 32767,
                                                   [LC_i32] = 2147483647.0,
                                                   [LC_i64] = 0x1p63,
                                                   [LC_f16] = 65504,
                                                   [LC_f32] = 0x1.fffffep127,
                                                   [LC_bf16] = 0x1.fep127,
                                                   [LC_f64] = INFINITY,
                                                   [LC_u16] = 65535,
                                                   [LC_u32] = 4294967295.0,
                                                   [LC_u64] = 0x1p64,
                                                   [LC_f8_e4m3fn] = 448,
                                                   [LC_f8_e5m2] = 57344,
                                                   [LC_f8_e4m3fnuz] = 240,
                                                   [LC_f8_e5m2fnuz] = 57344,
                                                   [LC_f8_e8m0fnu] = 0x1p127 };
    lc_dtype            real = lc_real_of(dtype);
    bool                whole = lc_class_of(dtype) == LC_INT, complex = number->dtype == LC_c128, fits = true;
    double              part[2] = { 0, 0 };
    if (dtype == LC_b8) return 0;
    if (number->dtype == LC_i64) part[0] = (double)*(const int64_t *)number->data;
    else if (number->dtype == LC_b8) part[0] = *(const uint8_t *)number->data;
    else memcpy(part, number->data, complex ? 16 : 8);
    if (complex && !lc_is_complex(dtype) && part[1] != 0) fits = false;
    for (int i = 0; i < 2 && fits; i++) {
        double low = lc_is_unsigned(real) || !whole ? -limits[real] : -limits[real] - (real != LC_i64);
        if (lc_is_unsigned(real) && number->dtype != LC_i64) low = 0; /* -1 as uint8 wraps to 255, -1.0 does not */
        if (!isfinite(part[i])) fits = !whole && !(isinf(part[i]) && lc_is_float8(real) && real != LC_f8_e5m2);
        else
            fits = part[i] >= low && (part[i] <= limits[real]) &&
                   !(real == LC_i64 && number->dtype != LC_i64 && part[i] == 0x1p63);
    }
    return fits ? 0
                : lc_fail_int(LC_LucidError, "value cannot be converted to type %s without overflow", lc_dtypes[dtype].name);
}

int numbers_fit(const lc_record *call, lc_dtype dtype)
{
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i]->is_number && number_fits(dtype, call->in[i]) < 0) return -1;
    return 0;
}

static int transfer(lc_tensor *to, lc_tensor *from) /* between devices; from has its final dtype and is contiguous */
{
    bool       direct = to->is_contiguous && lc_same_shape(to, from);
    lc_tensor *landed = direct ? lc_retain(to) : lc_tensor_new(from->dtype, to->device, from->ndim, from->shape);
    int        rc = landed ? lc_transfer(landed, from) : -1;
    if (rc == 0 && !direct) rc = lc_backend_of(to->device)->copy(to, landed);
    lc_release(landed);
    return rc;
}

int move_values(lc_tensor *to, lc_tensor *from)
{
    const lc_backend *here = lc_backend_of(to->device);
    if (!here) return -1;
    if (!here->can.values) return 0;
    if (!lc_can(from)->values) return lc_fail_int(LC_NotImplementedError, "Cannot copy out of meta tensor; no data!");
    if (from->is_number || lc_same_device(to->device, from->device)) return here->copy(to, from);
    lc_tensor *sent = packed(from, to->dtype), *stop = NULL;
    int        rc = sent ? 0 : -1;
    if (rc == 0 && !lc_can(from)->host_memory && !here->can.host_memory &&
        !lc_same_kind(from->device, to->device)) { /* between two kinds of accelerators by way of the host */
        stop = lc_tensor_new(sent->dtype, (lc_device){ LC_CPU, 0 }, sent->ndim, sent->shape);
        rc = stop ? transfer(stop, sent) : -1;
    }
    if (rc == 0) rc = transfer(to, stop ? stop : sent);
    lc_release(sent), lc_release(stop);
    return rc;
}

int fill_tensor(lc_tensor *to, lc_tensor *value)
{
    if (value->ndim != 0)
        return lc_fail_int(LC_ShapeMismatch, "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.",
                           value->ndim);
    if (!value->is_number) return move_values(to, value);
    const lc_backend *here = lc_backend_of(to->device);
    return here && number_fits(to->dtype, value) == 0 ? here->fill(to, value) : -1;
}

lc_tensor *in_dtype(lc_tensor *t, lc_dtype dtype) { return t->dtype == dtype ? lc_retain(t) : packed(t, dtype); }

lc_tensor *destination(lc_tensor *out, lc_dtype dtype, lc_tensor *const *in, int n_in)
{
    bool direct = out->dtype == dtype;
    for (int k = 0; k < n_in; k++) direct &= !out->storage || in[k]->storage != out->storage;
    return direct ? lc_retain(out) : lc_tensor_new(dtype, out->device, out->ndim, out->shape);
}
int deliver(lc_tensor *out, lc_tensor *made, int rc)
{
    if (rc == 0 && made != out) rc = lc_backend_of(out->device)->copy(out, made);
    return lc_release(made), rc;
}

lc_tensor *number_operand_in(lc_number_box *box, const lc_value *v)
{
    switch (v->tag) {
    case LC_IS_int:
        return lc_number_init_int(box, v->i);
    case LC_IS_bool:
        return lc_number_init(box, LC_b8, v->b, 0);
    case LC_IS_complex:
        return lc_number_init(box, LC_c128, v->c.re, v->c.im);
    default:
        return lc_number_init(box, LC_f64, v->f, 0);
    }
}

/* ---- writes ---- */
static int like_destination(const lc_record *call, lc_spec *out)
{
    spec_like(call, out, call->in[0], call->in[0]->dtype);
    return out->order = LC_ORDER_STRIDES, lc_strides_like(call->in[0], out->stride), 0;
}

static int source_fits(const lc_record *call, lc_spec *out)
{
    if (broadcast(call, out) < 0) return -1;
    return out->dtype = call->in[0]->dtype, out->device = call->in[0]->device, 0;
}
static int copy_run(const lc_record *call)
{
    lc_non_blocking = call->args[2].b;
    int rc = move_values(call->out[0], call->in[1]);
    return lc_non_blocking = false, rc;
}
static lc_tensor *on_device_of(lc_tensor *g, const lc_tensor *t)
{
    return lc_same_device(g->device, t->device) ? g : lc__to_copy(g, g->dtype, t->device, LC_PRESERVE_FORMAT);
}
GRAD(copy_)
{
    if (need[0]) dx[0] = zeros_like(in(0)); /* the overwritten values have no gradient */
    if (need[1]) dx[1] = on_device_of(g[0], in(1));
}
LC_OP(copy_, .batching = LC_BATCH_BROADCAST,
      .sig = "copy_(input: Tensor, src: Tensor | Number, non_blocking: bool = False) -> Tensor",
      .doc = "Overwrite input with src, which is broadcast and converted.", .method = true, .function = false, .writes = IN(0),
      .any_device = IN(1), .any_library = IN(1), .promote = LC_NO_PROMOTION, .shape = source_fits, .run = copy_run,
      .grad = copy__grad);

static int fill_run(const lc_record *call)
{
    if (!call->in[1]->is_number &&
        lc_overlaps_itself(call->out[0])) /* PyTorch fills an expanded tensor only with a Python scalar */
        return lc_fail_int(LC_LucidError,
                           "fill_: unsupported operation: more than one element of the written-to tensor refers to a single "
                           "memory location. Please clone() the tensor before performing the operation.");
    return fill_tensor(call->out[0], call->in[1]);
}
GRAD(fill)
{
    if (need[0]) dx[0] = zeros_like(in(0));
    if (need[1]) dx[1] = on_device_of(g[0], in(1)); /* the engine sums over the broadcast */
}
LC_OP(fill, .batching = LC_BATCH_BROADCAST, .batched = IN(0), .sig = "fill(input: Tensor, value: Tensor | Number) -> Tensor",
      .doc = "A tensor like input with one value everywhere.", .inplace = true, .fills = true, .any_device = IN(1),
      .promote = LC_NO_PROMOTION, .any_strides = true, .repeats_ok = true, .shape = like_destination, .run = fill_run,
      .grad = fill_grad);

static int zero_run(const lc_record *call)
{
    lc_number_box box;
    return fill_tensor(call->out[0], lc_number_init_int(&box, 0));
}
GRAD(zero_) { dx[0] = zeros_like(in(0)); }
LC_OP(zero_, .batching = LC_BATCH_BROADCAST, .sig = "zero_(input: Tensor) -> Tensor", .doc = "Set every element to zero.",
      .method = true, .writes = IN(0), .fills = true, .repeats_ok = true, .promote = LC_NO_PROMOTION, .shape = like_destination,
      .run = zero_run, .grad = zero__grad);

/* ---- conversions ---- */
static int converted(const lc_record *call, lc_spec *out)
{
    const lc_value *a = call->args;
    spec_like(call, out, call->in[0], a[1].dt);
    out->device = a[2].dev;
    if (a[3].fmt == LC_CONTIGUOUS_FORMAT) return 0;
    out->order = LC_ORDER_STRIDES;
    if (a[3].fmt != LC_PRESERVE_FORMAT) return lc_format_strides(a[3].fmt, out->ndim, out->shape, out->stride);
    return lc_strides_like(call->in[0], out->stride), 0;
}
static int converted_run(const lc_record *call)
{
    static atomic_bool said;
    if (lc_is_complex(call->in[0]->dtype) && lc_class_of(call->out[0]->dtype) < LC_COMPLEX && call->out[0]->dtype != LC_b8)
        lc_warn_once(&said, "Casting complex values to real discards the imaginary part");
    return move_values(call->out[0], call->in[0]);
}
GRAD(_to_copy) { dx[0] = on_device_of(g[0], in(0)); } /* the engine converts the dtype back */
LC_OP(_to_copy,
      .sig = "_to_copy(input: Tensor, dtype: dtype, device: device, memory_format: memory_format = preserve_format) -> Tensor",
      .doc = "A copy in another dtype, device or memory format.", .hidden = true, .any_device = IN(0),
      .promote = LC_NO_PROMOTION, .shape = converted, .kind = LC_KIND_ELEMENTWISE, .converts = true, .run = converted_run,
      .grad = _to_copy_grad);

static int convert(lc_tensor *x, lc_dtype dtype, lc_device device, bool copy, const lc_value *format, lc_tensor **out)
{
    lc_memory_format wanted = format->tag == LC_IS_format ? format->fmt : LC_PRESERVE_FORMAT;
    bool             laid_out = wanted == LC_PRESERVE_FORMAT || suggested_format(x) == wanted;
    bool             nothing = !copy && x->dtype == dtype && lc_same_device(x->device, device) && laid_out;
    return (out[0] = nothing ? x : lc__to_copy(x, dtype, device, wanted)) ? 0 : -1;
}

static int convert_there(lc_tensor *x, lc_dtype dtype, lc_device device, bool non_blocking, bool copy, const lc_value *format,
                         lc_tensor **out)
{
    lc_non_blocking = non_blocking;
    int rc = convert(x, dtype, device, copy, format, out);
    return lc_non_blocking = false, rc;
}

static int to_dtype_call(const lc_value *in, lc_tensor **out)
{
    return convert(in(0), in[1].dt, in(0)->device, in[3].b, &in[4], out);
}
LC_OP(to,
      .sig = "to(input: Tensor, dtype: dtype, non_blocking: bool = False, copy: bool = False, *, "
             "memory_format: memory_format | None = None) -> Tensor",
      .doc = "The tensor in another dtype; itself if it has it already and copy is false.", .method = true, .function = false,
      .call = to_dtype_call);

static int to_device_call(const lc_value *in, lc_tensor **out)
{
    lc_dtype  dtype = in[2].tag == LC_IS_dtype ? in[2].dt : (lc_dtype)in(0)->dtype;
    lc_device device = in[1].tag == LC_IS_device ? in[1].dev : in(0)->device;
    return convert_there(in(0), dtype, device, in[3].b, in[4].b, &in[5], out);
}
LC_OP(to_device,
      .sig = "to_device(input: Tensor, device: device | None = None, dtype: dtype | None = None, non_blocking: bool = False, "
             "copy: bool = False, *, memory_format: memory_format | None = None) -> Tensor",
      .py = "to", .doc = "The tensor on another device, in another dtype, or both.", .method = true, .function = false,
      .call = to_device_call);

static int to_other_call(const lc_value *in, lc_tensor **out)
{
    return convert_there(in(0), in(1)->dtype, in(1)->device, in[2].b, in[3].b, &in[4], out);
}
LC_OP(to_other,
      .sig = "to_other(input: Tensor, other: Tensor, non_blocking: bool = False, copy: bool = False, *, "
             "memory_format: memory_format | None = None) -> Tensor",
      .py = "to", .doc = "The tensor with the dtype and on the device of other.", .method = true, .function = false,
      .any_device = IN(0) | IN(1), .call = to_other_call);

static int type_as_call(const lc_value *in, lc_tensor **out)
{
    return convert(in(0), in(1)->dtype, in(1)->device, false, &(lc_value){ .tag = LC_IS_none }, out);
}
LC_OP(type_as, .sig = "type_as(input: Tensor, other: Tensor) -> Tensor",
      .doc = "input with the dtype and on the device of other.", .method = true, .function = false, .any_device = IN(0) | IN(1),
      .call = type_as_call);

#define CONVERSION(name, to)                                                                                                   \
    static int name##_call(const lc_value *in, lc_tensor **out)                                                                \
    {                                                                                                                          \
        return convert(in(0), LC_##to, in(0)->device, false, &in[1], out);                                                     \
    }
CONVERSION(float, f32)
CONVERSION(double, f64)
CONVERSION(half, f16)
CONVERSION(bfloat16, bf16)
CONVERSION(int, i32)
CONVERSION(long, i64)
CONVERSION(short, i16)
CONVERSION(char, i8)
CONVERSION(byte, u8)
CONVERSION(bool, b8)
CONVERSION(chalf, c32)
CONVERSION(cfloat, c64)
CONVERSION(cdouble, c128)
#define IS_CONVERSION(name)                                                                                                    \
    .doc = "The tensor converted; itself if it is of that dtype already.", .method = true, .function = false,                  \
    .call = name##_call

LC_OP(float, .sig = "float(input: Tensor, memory_format: memory_format | None = None) -> Tensor", IS_CONVERSION(float));
LC_OP(double, .sig = "double(input: Tensor, memory_format: memory_format | None = None) -> Tensor", IS_CONVERSION(double));
LC_OP(half, .sig = "half(input: Tensor, memory_format: memory_format | None = None) -> Tensor", IS_CONVERSION(half));
LC_OP(bfloat16, .sig = "bfloat16(input: Tensor, memory_format: memory_format | None = None) -> Tensor",
      IS_CONVERSION(bfloat16));
LC_OP(int, .sig = "int(input: Tensor, memory_format: memory_format | None = None) -> Tensor", IS_CONVERSION(int));
LC_OP(long, .sig = "long(input: Tensor, memory_format: memory_format | None = None) -> Tensor", IS_CONVERSION(long));
LC_OP(short, .sig = "short(input: Tensor, memory_format: memory_format | None = None) -> Tensor", IS_CONVERSION(short));
LC_OP(char, .sig = "char(input: Tensor, memory_format: memory_format | None = None) -> Tensor", IS_CONVERSION(char));
LC_OP(byte, .sig = "byte(input: Tensor, memory_format: memory_format | None = None) -> Tensor", IS_CONVERSION(byte));
LC_OP(bool, .sig = "bool(input: Tensor, memory_format: memory_format | None = None) -> Tensor", IS_CONVERSION(bool));
LC_OP(chalf, .sig = "chalf(input: Tensor, memory_format: memory_format | None = None) -> Tensor", IS_CONVERSION(chalf));
LC_OP(cfloat, .sig = "cfloat(input: Tensor, memory_format: memory_format | None = None) -> Tensor", IS_CONVERSION(cfloat));
LC_OP(cdouble, .sig = "cdouble(input: Tensor, memory_format: memory_format | None = None) -> Tensor", IS_CONVERSION(cdouble));

static int cpu_call(const lc_value *in, lc_tensor **out)
{
    return convert(in(0), in(0)->dtype, (lc_device){ LC_CPU, 0 }, false, &in[1], out);
}
LC_OP(cpu, .sig = "cpu(input: Tensor, memory_format: memory_format | None = None) -> Tensor",
      .doc = "The tensor in CPU memory.", .method = true, .function = false, .call = cpu_call);

static int cuda_call(const lc_value *in, lc_tensor **out)
{
    lc_device device = in[1].tag == LC_IS_device ? in[1].dev : lc_current_device(LC_CUDA);
    if (!lc_same_kind(device, (lc_device){ LC_CUDA, 0 }))
        return lc_fail_int(LC_LucidError, "Invalid device, must be cuda device, got %s", lc_device_names[device.kind]);
    return convert_there(in(0), in(0)->dtype, device, in[2].b, false, &in[3], out);
}
LC_OP(cuda,
      .sig = "cuda(input: Tensor, device: device | None = None, non_blocking: bool = False, "
             "memory_format: memory_format | None = None) -> Tensor",
      .doc = "The tensor in the memory of a GPU.", .method = true, .function = false, .call = cuda_call);

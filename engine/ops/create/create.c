/* Factories: constants, ranges, identity. A missing dtype or device means the default, or that of the tensor in the *_like
 * forms. Sizes are checked where the tensor is allocated. */
#include "create.h"
#include <math.h>

static lc_dtype dtype_or(const lc_value *v, lc_dtype otherwise) { return v->tag == LC_IS_dtype ? v->dt : otherwise; }

static void place(lc_spec *out, const lc_value *device, lc_device otherwise)
{
    out->device = device->tag == LC_IS_device ? device->dev : otherwise;
}

/* The dtype of out= or dtype=, else `otherwise`. A conflict between the two is an error, as in PyTorch. */
static int wanted_dtype(const lc_record *call, const lc_value *dtype, lc_dtype otherwise, lc_dtype *found)
{
    *found = dtype_or(dtype, call->out_given ? (lc_dtype)call->out[0]->dtype : otherwise);
    if (call->out_given && *found != call->out[0]->dtype)
        return lc_fail_int(LC_DtypeMismatch, "dtype %s does not match dtype of out parameter (%s)", lc_dtypes[*found].name,
                           lc_dtypes[call->out[0]->dtype].name);
    return 0;
}

int factory_shape(const lc_record *call, lc_spec *out, const lc_value *dtype, lc_dtype otherwise, const lc_value *device,
                  int ndim, const int64_t *shape)
{
    lc_dtype wanted;
    if (wanted_dtype(call, dtype, otherwise, &wanted) < 0 || spec_shape(call, out, wanted, ndim, shape) < 0) return -1;
    place(out, device, lc_default_device);
    return 0;
}

static int in_format(lc_spec *out, const lc_value *format)
{
    if (format->tag != LC_IS_format || format->fmt == LC_CONTIGUOUS_FORMAT) return 0;
    if (format->fmt == LC_PRESERVE_FORMAT)
        return lc_fail_int(LC_LucidError, "preserve_format needs a tensor to take the strides of");
    out->order = LC_ORDER_STRIDES;
    return lc_format_strides(format->fmt, out->ndim, out->shape, out->stride);
}

static int fill_constant(const lc_record *call, double value)
{
    lc_number_box box;
    return call->backend->fill(call->out[0], lc_number_init(&box, LC_f64, value, 0)); /* 0 and 1 fit every dtype */
}
static int with_zeros(const lc_record *call) { return fill_constant(call, 0); }
static int with_ones(const lc_record *call) { return fill_constant(call, 1); }
static int with_input(const lc_record *call) { return fill_tensor(call->out[0], call->in[call->n_in - 1]); }
static int as_it_is(const lc_record *call) /* as in PyTorch: deterministic mode fills uninitialised memory */
{
    static const int64_t largest[LC_DTYPE_COUNT] = {
        [LC_b8] = 1,          [LC_u8] = 255,         [LC_i8] = 127,        [LC_i16] = 32767,    [LC_u16] = 65535,
        [LC_i32] = INT32_MAX, [LC_u32] = UINT32_MAX, [LC_i64] = INT64_MAX, [LC_u64] = INT64_MAX
    };
    lc_tensor *t = call->out[0];
    if (!(lc_modes & LC_DETERMINISTIC) || !lc_deterministic_fills) return 0;
    if (lc_class_of(t->dtype) < LC_FLOAT) return fill_tensor(t, LC_INTEGER(largest[t->dtype]));
    lc_number_box box;
    return fill_tensor(t, lc_number_init(&box, lc_is_complex(t->dtype) ? LC_c128 : LC_f64, NAN, NAN));
}

/* ---- (size, *, dtype, device) ---- */
int of_size(const lc_record *call, lc_spec *out)
{
    const lc_value *a = call->args;
    return factory_shape(call, out, &a[1], lc_default_dtype, &a[2], a[0].n, a[0].is);
}
LC_OP(zeros, .sig = "zeros(size: list[int], *, dtype: dtype | None = None, device: device | None = None) -> Tensor",
      .doc = "A tensor of zeros.", .factory = true, .empty = true, .out = true, .shape = of_size, .run = with_zeros);
LC_OP(ones, .sig = "ones(size: list[int], *, dtype: dtype | None = None, device: device | None = None) -> Tensor",
      .doc = "A tensor of ones.", .factory = true, .out = true, .shape = of_size, .run = with_ones);

static int of_size_in_format(const lc_record *call, lc_spec *out)
{
    return of_size(call, out) < 0 ? -1 : in_format(out, &call->args[3]);
}
LC_OP(empty,
      .sig = "empty(size: list[int], *, dtype: dtype | None = None, device: device | None = None, "
             "memory_format: memory_format | None = None) -> Tensor",
      .doc = "An uninitialised tensor.", .factory = true, .empty = true, .out = true, .shape = of_size_in_format,
      .run = as_it_is, .uninitialised = true);

static lc_dtype dtype_of_value(const lc_tensor *value) /* a Python float gives the default dtype */
{
    lc_dtype_class class = lc_class_of(value->dtype);
    if (class == LC_COMPLEX) return lc_default_dtype == LC_f64 ? LC_c128 : LC_c64;
    return class == LC_FLOAT ? lc_default_dtype : class == LC_INT ? LC_i64 : LC_b8;
}
static int full_size(const lc_record *call, lc_spec *out)
{
    const lc_value *a = call->args;
    return factory_shape(call, out, &a[2], dtype_of_value(call->in[0]), &a[3], a[0].n, a[0].is);
}
LC_OP(
    full,
    .sig =
        "full(size: tuple[int, ...], fill_value: Tensor | Number, *, dtype: dtype | None = None, device: device | None = None) "
        "-> Tensor",
    .doc = "A tensor filled with one value.", .factory = true, .out = true, .any_device = IN(1), .shape = full_size,
    .run = with_input);

static int with_strides(const lc_value *size, const lc_value *stride, lc_spec *out)
{
    if (size->n != stride->n)
        return lc_fail_int(LC_ShapeMismatch, "dimensionality of sizes (%d) must match dimensionality of strides (%d)", size->n,
                           stride->n);
    for (int d = 0; d < stride->n; d++)
        if ((out->stride[d] = stride->is[d]) < 0)
            return lc_fail_int(LC_LucidError, "empty_strided: negative stride %lld", (long long)stride->is[d]);
    out->order = LC_ORDER_STRIDES;
    return 0;
}
static int strided_size(const lc_record *call, lc_spec *out)
{
    const lc_value *a = call->args;
    if (factory_shape(call, out, &a[2], lc_default_dtype, &a[3], a[0].n, a[0].is) < 0) return -1;
    return with_strides(&a[0], &a[1], out);
}
LC_OP(empty_strided,
      .sig = "empty_strided(size: tuple[int, ...], stride: tuple[int, ...], *, dtype: dtype | None = None, device: device | "
             "None = None) "
             "-> Tensor",
      .doc = "An uninitialised tensor with given strides.", .factory = true, .shape = strided_size, .run = as_it_is,
      .uninitialised = true);

static int permuted_size(const lc_record *call, lc_spec *out) /* (size, physical_layout, *, dtype, device) */
{
    const lc_value *a = call->args;
    uint64_t        seen = 0;
    int64_t         step = 1;
    if (a[0].n != a[1].n)
        return lc_fail_int(LC_ShapeMismatch,
                           "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = %d "
                           "is not equal to len(physical_layout) = %d",
                           a[0].n, a[1].n);
    if (factory_shape(call, out, &a[2], lc_default_dtype, &a[3], a[0].n, a[0].is) < 0) return -1;
    for (int i = a[1].n - 1; i >= 0; i--) {
        int64_t d = a[1].is[i];
        if (d < 0 || d >= a[0].n || seen >> d & 1)
            return lc_fail_int(LC_LucidError, "Dimension out of range or given twice: %s", LC_SIZES(a[1].is, a[1].n));
        seen |= (uint64_t)1 << d;
        out->stride[d] = step;
        if (__builtin_mul_overflow(step, a[0].is[d] ? a[0].is[d] : 1, &step))
            return lc_fail_int(LC_OutOfMemory, "empty_permuted: %s is too large", LC_SIZES(a[0].is, a[0].n));
    }
    out->order = LC_ORDER_STRIDES;
    return 0;
}
LC_OP(empty_permuted,
      .sig = "empty_permuted(size: tuple[int, ...], physical_layout: tuple[int, ...], *, dtype: dtype | None = None, "
             "device: device | None = None) -> Tensor",
      .doc = "An uninitialised tensor, dense, with its dimensions in a given order in memory.", .factory = true,
      .shape = permuted_size, .run = as_it_is, .uninitialised = true);

static int one_number(const lc_record *call, lc_spec *out)
{
    return factory_shape(call, out, &call->args[1], lc_default_dtype, &call->args[2], 0, NULL);
}
LC_OP(scalar_tensor,
      .sig = "scalar_tensor(s: Tensor | Number, *, dtype: dtype | None = None, device: device | None = None) -> Tensor",
      .doc = "A 0-d tensor holding s.", .factory = true, .any_device = IN(0), .shape = one_number, .run = with_input);

/* ---- like another tensor: (input, [value,] *, dtype, device, memory_format) ---- */
int like_another(const lc_record *call, lc_spec *out)
{
    const lc_value  *a = call->args + call->n_in; /* the keyword arguments follow the tensors */
    const lc_tensor *t = call->in[0];
    spec_like(call, out, t, dtype_or(&a[0], t->dtype));
    place(out, &a[1], t->device);
    if (a[2].tag == LC_IS_format && a[2].fmt != LC_PRESERVE_FORMAT) return in_format(out, &a[2]);
    out->order = LC_ORDER_STRIDES;
    lc_strides_like(t, out->stride);
    return 0;
}
LC_OP(zeros_like, .batching = LC_BATCH_FRONT, .batched = IN(0),
      .sig = "zeros_like(input: Tensor, *, dtype: dtype | None = None, device: device | None = None, "
             "memory_format: memory_format | None = None) -> Tensor",
      .doc = "Zeros in the shape of input.", .factory = true, .empty = true, .promote = LC_NO_PROMOTION, .shape = like_another,
      .run = with_zeros);
LC_OP(ones_like, .batching = LC_BATCH_FRONT, .batched = IN(0),
      .sig = "ones_like(input: Tensor, *, dtype: dtype | None = None, device: device | None = None, "
             "memory_format: memory_format | None = None) -> Tensor",
      .doc = "Ones in the shape of input.", .factory = true, .promote = LC_NO_PROMOTION, .shape = like_another,
      .run = with_ones);
LC_OP(empty_like, .batching = LC_BATCH_FRONT, .batched = IN(0),
      .sig = "empty_like(input: Tensor, *, dtype: dtype | None = None, device: device | None = None, "
             "memory_format: memory_format | None = None) -> Tensor",
      .doc = "An uninitialised tensor in the shape of input.", .factory = true, .empty = true, .promote = LC_NO_PROMOTION,
      .shape = like_another, .run = as_it_is, .uninitialised = true);
LC_OP(full_like, .batching = LC_BATCH_FRONT, .batched = IN(0),
      .sig =
          "full_like(input: Tensor, fill_value: Tensor | Number, *, dtype: dtype | None = None, device: device | None = None, "
          "memory_format: memory_format | None = None) -> Tensor",
      .doc = "One value in the shape of input.", .factory = true, .promote = LC_NO_PROMOTION, .any_device = IN(1),
      .shape = like_another, .run = with_input);

static int new_size(const lc_record *call, lc_spec *out) /* (input, size, [value,] *, dtype, device) */
{
    const lc_value *a = call->args + 1 + call->n_in;
    if (spec_shape(call, out, dtype_or(&a[0], call->in[0]->dtype), call->args[1].n, call->args[1].is) < 0) return -1;
    place(out, &a[1], call->in[0]->device);
    return 0;
}
/* vmap: every example gets a tensor that it may write. */
static int new_batch(const lc_batch_call *b, lc_tensor **out)
{
    const lc_record *call = b->call;
    lc_value         args[call->op->args->n_params + 1];
    int64_t          size[LC_MAX_DIMS + 1] = { b->size };
    int              n = call->args[1].n;
    if (n >= LC_MAX_DIMS || !b->batched[0] || (call->n_in > 1 && b->batched[1])) return LC_NO_RULE;
    memcpy(args, call->args, (size_t)call->op->args->n_params * sizeof *args);
    memcpy(size + 1, call->args[1].is, (size_t)n * sizeof *size);
    args[0].t = b->in[0], args[1].is = size, args[1].n = n + 1;
    return lc_call_scoped(call->op, args, out);
}
LC_OP(new_zeros, .batch = new_batch,
      .sig = "new_zeros(input: Tensor, size: list[int], *, dtype: dtype | None = None, device: device | None = None) -> Tensor",
      .doc = "Zeros with the dtype and device of input.", .factory = true, .empty = true, .method = true, .function = false,
      .promote = LC_NO_PROMOTION, .shape = new_size, .run = with_zeros);
LC_OP(new_ones, .batch = new_batch,
      .sig = "new_ones(input: Tensor, size: list[int], *, dtype: dtype | None = None, device: device | None = None) -> Tensor",
      .doc = "Ones with the dtype and device of input.", .factory = true, .method = true, .function = false,
      .promote = LC_NO_PROMOTION, .shape = new_size, .run = with_ones);
LC_OP(new_empty, .batch = new_batch,
      .sig = "new_empty(input: Tensor, size: list[int], *, dtype: dtype | None = None, device: device | None = None) -> Tensor",
      .doc = "An uninitialised tensor with the dtype and device of input.", .factory = true, .empty = true, .method = true,
      .function = false, .promote = LC_NO_PROMOTION, .shape = new_size, .run = as_it_is, .uninitialised = true);
static int new_strided_size(const lc_record *call, lc_spec *out) /* (input, size, stride, *, dtype, device) */
{
    const lc_value *a = call->args;
    if (spec_shape(call, out, dtype_or(&a[3], call->in[0]->dtype), a[1].n, a[1].is) < 0) return -1;
    place(out, &a[4], call->in[0]->device);
    return with_strides(&a[1], &a[2], out);
}
LC_OP(new_empty_strided,
      .sig = "new_empty_strided(input: Tensor, size: tuple[int, ...], stride: tuple[int, ...], *, dtype: dtype | None = None, "
             "device: device | None = None) -> Tensor",
      .doc = "An uninitialised tensor with given strides and the dtype and device of input.", .factory = true, .method = true,
      .function = false, .promote = LC_NO_PROMOTION, .shape = new_strided_size, .run = as_it_is, .uninitialised = true);
LC_OP(new_full, .batch = new_batch,
      .sig = "new_full(input: Tensor, size: tuple[int, ...], fill_value: Tensor | Number, *, dtype: dtype | None = None, "
             "device: device | None = None) -> Tensor",
      .doc = "One value, with the dtype and device of input.", .factory = true, .method = true, .function = false,
      .promote = LC_NO_PROMOTION, .any_device = IN(2), .shape = new_size, .run = with_input);

/* ---- ranges ---- */
static lc_dtype dtype_of_numbers(const lc_value *a, int n)
{
    for (int k = 0; k < n; k++)
        if (a[k].tag == LC_IS_float || a[k].tag == LC_IS_complex) return lc_default_dtype;
    return LC_i64;
}
static int64_t int_of(const lc_value *v) { return v->tag == LC_IS_int ? v->i : (int64_t)lc_number_of(v); }

/* The number of steps from start up to but without end: exact for integers, else by a quotient in float64. */
static int range_size(lc_dtype dtype, const lc_value *start, const lc_value *end, const lc_value *step, int64_t *n)
{
    double from = lc_number_of(start), to = lc_number_of(end), by = lc_number_of(step);
    if (by == 0) return lc_fail_int(LC_LucidError, "step must be nonzero");
    if (!isfinite(from) || !isfinite(to)) return lc_fail_int(LC_LucidError, "unsupported range: %g -> %g", from, to);
    if (by > 0 ? to < from : to > from)
        return lc_fail_int(LC_LucidError, "upper bound and lower bound inconsistent with step sign");
    double steps = ceil((to - from) / by);
    if (dtype == LC_i64) {
        __int128 distance = (__int128)int_of(end) - int_of(start), each = int_of(step);
        if (each == 0) return lc_fail_int(LC_ValueError, "step must be nonzero");
        __int128 count = (distance + each - (each > 0 ? 1 : -1)) / each;
        steps = (double)count;
        if (count <= INT64_MAX) return *n = (int64_t)count, 0;
    }
    if (!(steps >= 0 && steps < 0x1p62)) return lc_fail_int(LC_LucidError, "invalid size, possible overflow?");
    return *n = (int64_t)steps, 0;
}

static int arange_shape(const lc_record *call, lc_spec *out, const lc_value *start, const lc_value *end, const lc_value *step,
                        const lc_value *options)
{
    lc_dtype dtype;
    int64_t  n;
    lc_value given[] = { *start, *end, *step };
    if (wanted_dtype(call, &options[0], dtype_of_numbers(given, 3), &dtype) < 0) return -1;
    if (range_size(dtype, start, end, step, &n) < 0 || spec_shape(call, out, dtype, 1, &n) < 0) return -1;
    place(out, &options[1], lc_default_device);
    return 0;
}

int run_factory(const lc_record *call, const void *args)
{
    lc_record made = *call;
    made.dtype = call->out[0]->dtype, made.device = call->out[0]->device;
    made.backend = lc_backend_of(made.device);
    return made.backend ? run_kernel_with(&made, args) : -1;
}

static int arange_run(const lc_record *call, const lc_value *start, const lc_value *step)
{
    return run_factory(call, &(lc_ramp_args){ .out = call->out[0],
                                              .start = lc_number_of(start),
                                              .step = lc_number_of(step),
                                              .start_int = int_of(start),
                                              .step_int = int_of(step) });
}
static const lc_value from_zero = { .tag = LC_IS_int, .i = 0 }, by_one = { .tag = LC_IS_int, .i = 1 };
static int            to_end(const lc_record *call, lc_spec *out)
{
    return arange_shape(call, out, &from_zero, &call->args[0], &by_one, &call->args[1]);
}
static int to_end_run(const lc_record *call) { return arange_run(call, &from_zero, &by_one); }
LC_OP(arange, .sig = "arange(end: Number, *, dtype: dtype | None = None, device: device | None = None) -> Tensor",
      .doc = "The integers 0, 1, ... below end.", .factory = true, .out = true, .shape = to_end, .run = to_end_run);

static int start_to_end(const lc_record *call, lc_spec *out)
{
    return arange_shape(call, out, &call->args[0], &call->args[1], &call->args[2], &call->args[3]);
}
static int start_to_end_run(const lc_record *call) { return arange_run(call, &call->args[0], &call->args[2]); }
LC_OP(arange_start,
      .sig = "arange_start(start: Number, end: Number, step: Number = 1, *, dtype: dtype | None = None, "
             "device: device | None = None) -> Tensor",
      .py = "arange", .kernel = LC_OP_arange, .doc = "start, start + step, ... up to but excluding end.", .factory = true,
      .out = true, .shape = start_to_end, .run = start_to_end_run);

/* linspace and logspace: complex if an end is complex. */
static double   imaginary_of(const lc_value *v) { return v->tag == LC_IS_complex ? v->c.im : 0; }
static lc_dtype dtype_of_ends(const lc_value *a)
{
    bool complex = a[0].tag == LC_IS_complex || a[1].tag == LC_IS_complex;
    return !complex ? lc_default_dtype : lc_default_dtype == LC_f64 ? LC_c128 : LC_c64;
}
static int ramp_size(const lc_record *call, lc_spec *out, const lc_value *options)
{
    const lc_value *a = call->args;
    if (a[2].i < 0) return lc_fail_int(LC_LucidError, "number of steps must be non-negative");
    return factory_shape(call, out, &options[0], dtype_of_ends(a), &options[1], 1, &a[2].i);
}
static int ramp_run(const lc_record *call, const lc_value *base)
{
    const lc_value *a = call->args;
    return run_factory(call, &(lc_ramp_args){ .out = call->out[0],
                                              .start = lc_number_of(&a[0]),
                                              .start_im = imaginary_of(&a[0]),
                                              .end = lc_number_of(&a[1]),
                                              .end_im = imaginary_of(&a[1]),
                                              .base = lc_number_of(base),
                                              .base_im = imaginary_of(base) });
}
static int linspace_size(const lc_record *call, lc_spec *out) { return ramp_size(call, out, &call->args[3]); }
static int linspace_run(const lc_record *call) { return ramp_run(call, &by_one); }
LC_OP(linspace,
      .sig = "linspace(start: Number, end: Number, steps: int, *, dtype: dtype | None = None, device: device | None = None) "
             "-> Tensor",
      .doc = "steps values from start to end, both included, evenly spaced.", .factory = true, .out = true,
      .shape = linspace_size, .run = linspace_run);

static int logspace_size(const lc_record *call, lc_spec *out) { return ramp_size(call, out, &call->args[4]); }
static int logspace_run(const lc_record *call) { return ramp_run(call, &call->args[3]); }
LC_OP(logspace,
      .sig = "logspace(start: Number, end: Number, steps: int, base: Number = 10.0, *, dtype: dtype | None = None, "
             "device: device | None = None) -> Tensor",
      .doc = "steps powers of base, their exponents evenly spaced from start to end, both included.", .factory = true,
      .out = true, .shape = logspace_size, .run = logspace_run);

/* Ends that are tensors are read as scalars. These overloads get the tensors that cannot be read. */
static int not_a_number_call(const lc_value *in, UNUSED lc_tensor **out)
{
    return lc_fail_int(LC_ShapeMismatch,
                       "linspace and logspace only support 0-dimensional start and end tensors: got %s and %s", LC_SHAPE(in(0)),
                       LC_SHAPE(in(1)));
}
LC_OP(linspace_of_tensors, .py = "linspace",
      .sig = "linspace_of_tensors(start: Tensor | Number, end: Tensor | Number, steps: int, *, dtype: dtype | None = None, "
             "device: device | None = None) -> Tensor",
      .doc = "linspace between two 0-d tensors.", .factory = true, .call = not_a_number_call);
LC_OP(logspace_of_tensors, .py = "logspace",
      .sig = "logspace_of_tensors(start: Tensor | Number, end: Tensor | Number, steps: int, base: Number = 10.0, *, "
             "dtype: dtype | None = None, device: device | None = None) -> Tensor",
      .doc = "logspace between two 0-d tensors.", .factory = true, .call = not_a_number_call);

static int eye_size(const lc_record *call, lc_spec *out)
{
    const lc_value *a = call->args;
    int64_t         shape[2] = { a[0].i, a[0].i };
    int_argument(&a[1], &shape[1]);
    for (int d = 0; d < 2; d++)
        if (shape[d] < 0)
            return lc_fail_int(LC_LucidError, "%c must be greater or equal to 0, got %lld", "nm"[d], (long long)shape[d]);
    return factory_shape(call, out, &a[2], lc_default_dtype, &a[3], 2, shape);
}
static int eye_run(const lc_record *call)
{
    lc_tensor *out = call->out[0], *diagonal;
    int64_t    n = out->shape[0] < out->shape[1] ? out->shape[0] : out->shape[1], step = out->stride[0] + out->stride[1];
    if (with_zeros(call) < 0 || !(diagonal = lc_tensor_view(out, 1, &n, &step, 0))) return -1;
    lc_number_box one;
    int           rc = fill_tensor(diagonal, lc_number_init_int(&one, 1));
    return lc_release(diagonal), rc;
}
LC_OP(eye, .sig = "eye(n: int, m: int | None = None, *, dtype: dtype | None = None, device: device | None = None) -> Tensor",
      .doc = "Ones on the diagonal, zeros elsewhere.", .factory = true, .out = true, .shape = eye_size, .run = eye_run);

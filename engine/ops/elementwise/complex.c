/* Complex numbers: parts as views, conjugates. conj() computes at once; there is no lazy conjugate bit. */
#include "../rules.h"
#include "../../op/promote.h"

GRAD(conj) { dx[0] = conj_of(g[0]); }
static int conj_run(const lc_record *call)
{
    if (lc_is_complex(call->dtype)) return elementwise(call);
    bool in_place = call->out[0]->data == call->in[0]->data; /* a real number is its own conjugate */
    return in_place ? 0 : call->backend->copy(call->out[0], call->in[0]);
}
#define CONJUGATE .kernel = LC_OP__conj_physical, .kind = LC_KIND_ELEMENTWISE, .shape = same, .run = conj_run, .grad = conj_grad
LC_OP(_conj_physical, .sig = "_conj_physical(input: Tensor) -> Tensor", .doc = "The conjugate of complex numbers.",
      .hidden = true, CONJUGATE);
LC_OP(conj_physical_, .sig = "conj_physical_(input: Tensor) -> Tensor", .doc = "Conjugate every element.", .method = true,
      .writes = IN(0), CONJUGATE);

static int conj_call(const lc_value *in, lc_tensor **out) { return (out[0] = conj_of(in(0))) ? 0 : -1; }
LC_OP(conj_physical, .strict_out = true, .sig = "conj_physical(input: Tensor) -> Tensor",
      .doc = "Elementwise complex conjugate; real tensors themselves.", .method = true, .out = true, .call = conj_call);
LC_OP(conj, .sig = "conj(input: Tensor) -> Tensor", .doc = "The complex conjugate; real tensors themselves.", .method = true,
      .call = conj_call);

static int itself_call(const lc_value *in, lc_tensor **out) { return (out[0] = in(0)), 0; }
LC_OP(resolve_conj, .sig = "resolve_conj(input: Tensor) -> Tensor", .doc = "input: conjugates are never pending here.",
      .method = true, .call = itself_call);

LC_OP(resolve_neg, .sig = "resolve_neg(input: Tensor) -> Tensor", .doc = "input: negations are never pending here.",
      .method = true, .call = itself_call);

/* A complex number is a pair of reals in memory: part 0 or 1 of every pair. */
lc_tensor *complex_part(lc_tensor *x, int part)
{
    int64_t  stride[LC_MAX_DIMS];
    lc_dtype real = lc_real_of(x->dtype);
    for (int d = 0; d < x->ndim; d++) stride[d] = 2 * x->stride[d];
    return lc_tensor_view_as(x, real, x->ndim, x->shape, stride, part * lc_size_of(real));
}
static int one_part(lc_tensor *x, int part, lc_tensor **out) { return (out[0] = lc_scoped(complex_part(x, part))) ? 0 : -1; }
static int real_call(const lc_value *in, lc_tensor **out)
{
    return lc_is_complex(in(0)->dtype) ? one_part(in(0), 0, out) : ((out[0] = in(0)), 0);
}
GRAD(real) { dx[0] = g[0]; } /* the engine makes it complex */
LC_OP(real, .sig = "real(input: Tensor) -> Tensor", .doc = "The real parts, as a view.", .view_of = IN(0), .call = real_call,
      .grad = real_grad);

static int imag_call(const lc_value *in, lc_tensor **out)
{
    if (!lc_is_complex(in(0)->dtype))
        return lc_fail_int(LC_LucidError, "imag is not implemented for tensors with non-complex dtypes.");
    return one_part(in(0), 1, out);
}
GRAD(imag)
{
    lc_number_box i;
    dx[0] = lc_mul(g[0], lc_number_init(&i, LC_c128, 0, 1));
}
LC_OP(imag, .sig = "imag(input: Tensor) -> Tensor", .doc = "The imaginary parts, as a view.", .view_of = IN(0),
      .call = imag_call, .grad = imag_grad);

static int view_as_real_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    int64_t    shape[LC_MAX_DIMS], stride[LC_MAX_DIMS];
    if (!lc_is_complex(x->dtype)) return lc_fail_int(LC_LucidError, "view_as_real is only supported for complex tensors");
    if (x->ndim == LC_MAX_DIMS)
        return lc_fail_int(LC_ValueError, "view_as_real: at most %d dimensions are supported", LC_MAX_DIMS);
    for (int d = 0; d < x->ndim; d++) shape[d] = x->shape[d], stride[d] = 2 * x->stride[d];
    shape[x->ndim] = 2, stride[x->ndim] = 1;
    return (out[0] = lc_scoped(lc_tensor_view_as(x, lc_real_of(x->dtype), x->ndim + 1, shape, stride, 0))) ? 0 : -1;
}
GRAD(view_as_real) { dx[0] = lc_view_as_complex(lc_contiguous(g[0], LC_CONTIGUOUS_FORMAT)); }
LC_OP(view_as_real, .sig = "view_as_real(input: Tensor) -> Tensor",
      .doc = "A last dimension of real and imaginary part, as a view.", .view_of = IN(0), .copies = true,
      .call = view_as_real_call, .grad = view_as_real_grad);

static int view_as_complex_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    int64_t    stride[LC_MAX_DIMS];
    bool fits = (x->dtype == LC_f16 || x->dtype == LC_f32 || x->dtype == LC_f64) && x->ndim && x->shape[x->ndim - 1] == 2 &&
                x->stride[x->ndim - 1] == 1;
    for (int d = 0; d + 1 < x->ndim && fits; d++) {
        fits = x->stride[d] % 2 == 0;
        stride[d] = x->stride[d] / 2;
    }
    if (!fits)
        return lc_fail_int(
            LC_LucidError,
            "view_as_complex: expected a float16, float32 or float64 tensor with a last dimension of size 2 and stride 1, and "
            "even strides; got %s",
            LC_SHAPE(x));
    return (out[0] = lc_scoped(lc_tensor_view_as(x, lc_complex_of((lc_dtype)x->dtype), x->ndim - 1, x->shape, stride, 0))) ? 0
                                                                                                                           : -1;
}
GRAD(view_as_complex) { dx[0] = lc_view_as_real(g[0]); }
LC_OP(view_as_complex, .sig = "view_as_complex(input: Tensor) -> Tensor",
      .doc = "Pairs along the last dimension as complex numbers, as a view.", .view_of = IN(0), .copies = true,
      .amp = LC_AMP_CPU_FP32, .call = view_as_complex_call, .grad = view_as_complex_grad);

/* ---- complex numbers from two real ones ---- */

static int paired(const lc_record *call, lc_spec *out)
{
    const lc_tensor *a = call->in[0], *b = call->in[1];
    if (!lc_is_floating(a->dtype) || !lc_is_floating(b->dtype) || a->dtype == LC_bf16 || b->dtype == LC_bf16)
        return lc_fail_int(LC_DtypeMismatch, "Expected both inputs to be Half, Float or Double tensors but got %s and %s",
                           lc_dtypes[a->dtype].name, lc_dtypes[b->dtype].name);
    if (a->dtype != b->dtype)
        return lc_fail_int(LC_DtypeMismatch, "Expected object of scalar type %s but got scalar type %s for second argument",
                           lc_dtypes[a->dtype].name, lc_dtypes[b->dtype].name);
    if (call->op->kernel == LC_OP_polar && a->dtype == LC_f16) return no_kernel(call);
    if (broadcast(call, out) < 0) return -1;
    out->dtype = lc_complex_of((lc_dtype)a->dtype);
    if (call->out_given && call->out[0]->dtype != out->dtype)
        return lc_fail_int(LC_DtypeMismatch, "Expected object of scalar type %s but got scalar type %s for argument 'out'",
                           lc_dtypes[out->dtype].name, lc_dtypes[call->out[0]->dtype].name);
    return 0;
}
static int complex_run(const lc_record *call)
{
    int rc = 0;
    for (int k = 0; k < 2 && rc == 0; k++) {
        lc_tensor *part = complex_part(call->out[0], k);
        rc = part ? call->backend->copy(part, call->in[k]) : -1;
        lc_release(part);
    }
    return rc;
}
GRAD(complex)
{
    if (need[0]) dx[0] = lc_real(g[0]);
    if (need[1]) dx[1] = lc_imag(g[0]);
}
LC_OP(complex, .sig = "complex(real: Tensor, imag: Tensor) -> Tensor", .doc = "Complex numbers with these parts.", .out = true,
      .kind = LC_KIND_ELEMENTWISE, .shape = paired, .run = complex_run, .grad = complex_grad);

static int polar_run(const lc_record *call)
{
    static const lc_op_id kernel[] = { LC_OP_polar_real, LC_OP_polar_imag };
    lc_record             of_part = *call;
    int                   rc = 0;
    for (int k = 0; k < 2 && rc == 0; k++) {
        lc_tensor *part = complex_part(call->out[0], k);
        of_part.out = &part;
        rc = part ? elementwise_as(&of_part, kernel[k], call->in, 2) : -1;
        lc_release(part);
    }
    return rc;
}
GRAD(polar)
{
    lc_number_box box;
    lc_tensor    *back = conj_of(g[0]);
    if (need[0]) dx[0] = lc_real(lc_mul(back, lc_sgn(y[0])));
    if (need[1]) dx[1] = lc_real(lc_mul(back, lc_mul(y[0], lc_number_init(&box, LC_c128, 0, 1))));
}
LC_OP(polar, .sig = "polar(abs: Tensor, angle: Tensor) -> Tensor",
      .doc = "Complex numbers with these absolute values and angles.", .out = true, .amp = LC_AMP_CPU_FP32,
      .kind = LC_KIND_ELEMENTWISE, .shape = paired, .run = polar_run, .grad = polar_grad, .saves = OUT(0));
#define KERNEL_OF_PAIR .hidden = true, .shape = broadcast, .run = elementwise
LC_OP(polar_real, .sig = "polar_real(abs: Tensor, angle: Tensor) -> Tensor", .doc = "abs * cos(angle).", KERNEL_OF_PAIR);
LC_OP(polar_imag, .sig = "polar_imag(abs: Tensor, angle: Tensor) -> Tensor", .doc = "abs * sin(angle).", KERNEL_OF_PAIR);

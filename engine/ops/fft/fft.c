/* Fourier transforms: three hidden ops with kernels, and the 22 functions of the namespace fft over them.
 *
 * _fft_c2c transforms complex numbers, _fft_r2c real ones, whose spectrum is Hermitian (of its last dimension the first n / 2 + 1 are enough), _fft_c2r
 * goes back from such a half. The public functions convert, pad or cut their input to the lengths asked for, and say how to normalise. Each of the three
 * is linear, and its gradient is a transform the other way; what the half of a spectrum leaves out counts twice, once for each of its sides.
 *
 * Results lie in memory as PyTorch's do: dimensions that are not transformed in the order of the input's strides, then those that are. */
#include "../rules.h"
#include "../../backend/args_fft.h"
#include <math.h>

enum { NORM_NONE, NORM_ROOT, NORM_N };

/* ---- the ops with kernels ---- */

static double scale_of(int64_t normalization, const lc_tensor *signal, const int *dims, int n_dims)
{
    double n = 1;
    for (int k = 0; k < n_dims; k++) n *= (double)signal->shape[dims[k]];
    return normalization == NORM_ROOT ? 1 / sqrt(n) : normalization == NORM_N ? 1 / n : 1;
}
static int dims_of(const lc_value *v, int ndim, int *dims)
{
    for (int k = 0; k < v->n; k++)
        if (dim_index(v->is[k], ndim, &dims[k]) < 0) return -1;
    return 0;
}
/* dims[0 .. n) in the order of descending strides. */
static void sort_dims(int *dims, int n, const int64_t *stride)
{
    for (int k = 1; k < n; k++)
        for (int i = k; i > 0 && stride[dims[i - 1]] < stride[dims[i]]; i--) {
            int other = dims[i];
            dims[i] = dims[i - 1], dims[i - 1] = other;
        }
}
/* The strides of a result of this shape: of a transform over dims, of which the last `fixed` keep their places. */
static void strides_like(int ndim, const int64_t *shape, const int64_t *from, const int *dims, int n_dims, int fixed,
                         int64_t *stride)
{
    int     order[LC_MAX_DIMS], n = 0;
    int64_t step = 1;
    for (int d = 0; d < ndim; d++) {
        bool outer = true;
        for (int k = 0; k < n_dims; k++) outer &= dims[k] != d;
        if (outer) order[n++] = d;
    }
    sort_dims(order, n, from);
    memcpy(order + n, dims, (size_t)n_dims * sizeof *order);
    sort_dims(order + n, n_dims - fixed, from);
    for (int k = ndim - 1; k >= 0; k--) stride[order[k]] = step, step *= shape[order[k]] > 1 ? shape[order[k]] : 1;
}
static int transform_shape(const lc_record *call, lc_spec *out, lc_dtype dtype, int64_t last, int fixed)
{
    const lc_tensor *x = call->in[0];
    int              dims[LC_MAX_DIMS], n = call->args[1].n;
    int64_t          from[LC_MAX_DIMS];
    if (dims_of(&call->args[1], x->ndim, dims) < 0) return -1;
    spec_like(call, out, x, dtype);
    memcpy(from, x->stride, (size_t)x->ndim * sizeof *from);
    if (last < 0 && n > 1) { /* to real: the other dimensions go first */
        strides_like(x->ndim, x->shape, x->stride, dims, n - 1, 0, from);
        dims[0] = dims[n - 1], n = 1;
    }
    if (last) out->shape[dims[n - 1]] = last < 0 ? -last : last;
    out->order = LC_ORDER_STRIDES;
    strides_like(x->ndim, out->shape, from, dims, n, fixed, out->stride);
    return 0;
}
static int transform(const lc_record *call, lc_fft_kind kind, bool backward, bool whole)
{
    int              dims[LC_MAX_DIMS];
    const lc_value  *v = &call->args[1];
    const lc_tensor *signal = kind == LC_FFT_C2R ? call->out[0] : call->in[0];
    if (dims_of(v, call->in[0]->ndim, dims) < 0) return -1;
    return run_kernel_with(call, &(lc_fft_args){ .in = call->in[0],
                                                 .out = call->out[0],
                                                 .kind = kind,
                                                 .n_dims = v->n,
                                                 .dims = dims,
                                                 .backward = backward,
                                                 .whole = whole,
                                                 .scale = scale_of(call->args[2].i, signal, dims, v->n) });
}
#define TRANSFORM .hidden = true, .kind = LC_KIND_LINES, .promote = LC_NO_PROMOTION

static int c2c_shape(const lc_record *call, lc_spec *out) { return transform_shape(call, out, call->dtype, 0, 0); }
static int c2c_run(const lc_record *call) { return transform(call, LC_FFT_C2C, !call->args[3].b, false); }
GRAD(_fft_c2c) { dx[0] = lc__fft_c2c(g[0], in[1].is, in[1].n, in[2].i, !in[3].b); }
LC_OP(_fft_c2c, .sig = "_fft_c2c(input: Tensor, dim: list[int], normalization: int, forward: bool) -> Tensor",
      .doc = "Discrete Fourier transform of complex numbers over dim.", TRANSFORM, .shape = c2c_shape, .run = c2c_run,
      .grad = _fft_c2c_grad);

/* The half of a spectrum of length n along dim, with what has an opposite in the other half multiplied by a number. */
static lc_tensor *weighted(lc_tensor *half, int64_t dim, int64_t n, double by)
{
    int64_t size = n / 2 + 1, inner = n - size;
    if (!half || inner == 0) return half;
    lc_tensor *part[3] = { lc_narrow(half, dim, 0, 1), lc_mul(lc_narrow(half, dim, 1, inner), LC_NUMBER(by)),
                           lc_narrow(half, dim, inner + 1, size - inner - 1) };
    return lc_cat(part, size - inner - 1 ? 3 : 2, dim);
}
static int r2c_shape(const lc_record *call, lc_spec *out)
{
    int d;
    if (dim_index(call->args[1].is[call->args[1].n - 1], call->in[0]->ndim, &d) < 0) return -1;
    int64_t n = call->in[0]->shape[d];
    return transform_shape(call, out, call->dtype == LC_f64 ? LC_c128 : LC_c64, call->args[3].b ? n / 2 + 1 : n, 1);
}
static int r2c_run(const lc_record *call) { return transform(call, LC_FFT_R2C, false, !call->args[3].b); }
/* Of the half only: the real part of a transform back is one to real numbers, which counts the inner frequencies twice. */
GRAD(_fft_r2c)
{
    int64_t n = in(0)->shape[in[1].is[in[1].n - 1] + (in[1].is[in[1].n - 1] < 0 ? in(0)->ndim : 0)];
    if (!in[3].b) dx[0] = lc_real(lc__fft_c2c(g[0], in[1].is, in[1].n, in[2].i, false));
    else dx[0] = lc__fft_c2r(weighted(g[0], in[1].is[in[1].n - 1], n, 0.5), in[1].is, in[1].n, in[2].i, n);
}
LC_OP(_fft_r2c, .sig = "_fft_r2c(input: Tensor, dim: list[int], normalization: int, onesided: bool) -> Tensor",
      .doc = "Discrete Fourier transform of real numbers over dim; onesided: the first half of the last of them.", TRANSFORM,
      .shape = r2c_shape, .run = r2c_run, .grad = _fft_r2c_grad);

static int c2r_shape(const lc_record *call, lc_spec *out)
{
    int64_t n = call->args[3].i;
    return transform_shape(call, out, call->dtype == LC_c128 ? LC_f64 : LC_f32, -n, 1);
}
static int c2r_run(const lc_record *call) { return transform(call, LC_FFT_C2R, true, false); }
GRAD(_fft_c2r) { dx[0] = weighted(lc__fft_r2c(g[0], in[1].is, in[1].n, in[2].i, true), in[1].is[in[1].n - 1], in[3].i, 2); }
LC_OP(_fft_c2r, .sig = "_fft_c2r(input: Tensor, dim: list[int], normalization: int, last_dim_size: int) -> Tensor",
      .doc = "Real numbers whose discrete Fourier transform over dim is input, the first half of a Hermitian spectrum.",
      TRANSFORM, .shape = c2r_shape, .run = c2r_run, .grad = _fft_c2r_grad);

/* ---- what the public functions share ---- */

static int norm_of(const lc_value *v, bool forward, int64_t *norm)
{
    const char *name = v->tag == LC_IS_str ? v->s : "backward";
    bool        mine = !strcmp(name, forward ? "forward" : "backward"), other = !strcmp(name, forward ? "backward" : "forward");
    if (!mine && !other && strcmp(name, "ortho")) return lc_fail_int(LC_LucidError, "Invalid normalization mode: \"%s\"", name);
    return *norm = mine ? NORM_N : other ? NORM_NONE : NORM_ROOT, 0;
}
static const char *pytorchs_name(lc_dtype dtype) { return lc_dtypes[dtype].name; }
/* scoped: in a dtype that there are kernels for; integers in the default one. */
static lc_tensor *promoted(lc_tensor *x, bool complex)
{
    lc_dtype dtype = (lc_dtype)x->dtype;
    if (lc_class_of(dtype) < LC_FLOAT) dtype = lc_default_dtype;
    if (dtype != LC_f32 && dtype != LC_f64 && dtype != LC_c64 && dtype != LC_c128)
        return lc_fail(LC_DtypeMismatch, "Unsupported dtype %s", pytorchs_name(dtype));
    if (complex && !lc_is_complex(dtype)) dtype = dtype == LC_f64 ? LC_c128 : LC_c64;
    return dtype == x->dtype ? x : lc_to(x, dtype, false, false, LC_ABSENT);
}
static int check_points(int64_t n)
{
    return n < 1 ? lc_fail_int(LC_LucidError, "Invalid number of data points (%lld) specified", (long long)n) : 0;
}
static int wrap_dim(int64_t dim, const lc_tensor *x, int *d)
{
    if (!x->ndim) return lc_fail_int(LC_IndexError, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
    return dim_index(dim, x->ndim, d);
}
static lc_tensor *resized(lc_tensor *x, int d, int64_t n) /* scoped: cut at the end, or with zeros */
{
    if (!x || x->shape[d] == n) return x;
    if (x->shape[d] > n) return lc_narrow(x, d, 0, n);
    int64_t pad[2 * LC_MAX_DIMS] = { 0 };
    int     behind = x->ndim - 1 - d;
    pad[2 * behind + 1] = n - x->shape[d];
    return lc_constant_pad_nd(x, pad, 2 * (behind + 1), LC_I(0));
}
static int refuse_complex(const char *name, const lc_tensor *x)
{
    if (!lc_is_complex(x->dtype)) return 0;
    return lc_fail_int(LC_DtypeMismatch, "%s expects a real input tensor, but got %s", name, LC_SHAPE(x));
}

/* ---- one dimension: (input, n, dim, norm) ---- */

static int one_dim(const lc_value *in, bool complex, lc_tensor **x, int64_t *dim)
{
    int d;
    if (!(*x = promoted(in(0), complex)) || wrap_dim(in[2].i, *x, &d) < 0) return -1;
    int64_t n = (*x)->shape[d];
    int_argument(&in[1], &n);
    if (check_points(n) < 0) return -1;
    return *dim = d, *x = resized(*x, d, n), *x ? 0 : -1;
}
static int c2c_or_whole(const lc_value *in, bool forward, lc_tensor **out)
{
    lc_tensor *x;
    int64_t    dim, norm;
    if (one_dim(in, false, &x, &dim) < 0 || norm_of(&in[3], forward, &norm) < 0) return -1;
    if (lc_is_complex(x->dtype)) out[0] = lc__fft_c2c(x, &dim, 1, norm, forward);
    else {
        out[0] = lc__fft_r2c(x, &dim, 1, norm, false);
        if (out[0] && !forward) out[0] = conj_of(out[0]);
    }
    return out[0] ? 0 : -1;
}
static int half_from_real(const char *name, const lc_value *in, bool forward, lc_tensor **out)
{
    lc_tensor *x;
    int64_t    dim, norm;
    if (refuse_complex(name, in(0)) < 0 || one_dim(in, false, &x, &dim) < 0 || norm_of(&in[3], forward, &norm) < 0) return -1;
    out[0] = lc__fft_r2c(x, &dim, 1, norm, true);
    if (out[0] && !forward) out[0] = conj_of(out[0]);
    return out[0] ? 0 : -1;
}
static int real_from_half(const lc_value *in, bool forward, lc_tensor **out)
{
    lc_tensor *x = promoted(in(0), true);
    int        d;
    int64_t    norm;
    if (!x || wrap_dim(in[2].i, x, &d) < 0) return -1;
    int64_t dim = d, n = 2 * (x->shape[d] - 1);
    int_argument(&in[1], &n);
    if (check_points(n) < 0 || norm_of(&in[3], forward, &norm) < 0) return -1;
    x = resized(x, d, n / 2 + 1);
    if (x && forward) x = conj_of(x);
    return (out[0] = x ? lc__fft_c2r(x, &dim, 1, norm, n) : NULL) ? 0 : -1;
}
#define ONE "(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor"
#define ONE_DIMENSION(op, plain, text, ...)                                                                                    \
    COMPOSITE(fft_##op, __VA_ARGS__)                                                                                           \
    LC_OP(fft_##op, .sig = "fft_" #op ONE, .py = #op, .ns = "fft", .doc = text, .out = true, .plain_out = plain,               \
          .call = fft_##op##_call);
ONE_DIMENSION(fft, true, "The discrete Fourier transform along dim.", c2c_or_whole(in, true, out))
ONE_DIMENSION(ifft, true, "The inverse discrete Fourier transform along dim.", c2c_or_whole(in, false, out))
ONE_DIMENSION(rfft, true,
              "The discrete Fourier transform of real numbers along dim: the first n // 2 + 1 frequencies, which say all.",
              half_from_real("rfft", in, true, out))
ONE_DIMENSION(irfft, true, "The inverse of rfft: n real numbers, by default 2 * (input.size(dim) - 1).",
              real_from_half(in, false, out))
ONE_DIMENSION(hfft, true,
              "The discrete Fourier transform of a Hermitian signal, of which input is the first half: n real numbers.",
              real_from_half(in, true, out))
ONE_DIMENSION(ihfft, false, "The inverse of hfft: the first n // 2 + 1 numbers of a Hermitian signal.",
              half_from_real("ihfft", in, false, out))

/* ---- several dimensions: (input, s, dim, norm) ---- */

typedef struct {
    int64_t dim[LC_MAX_DIMS], size[LC_MAX_DIMS], norm;
    int     n;
} many;
static int many_of(const lc_value *in, const lc_tensor *x, bool forward, many *m)
{
    const lc_value *s = &in[1], *dim = &in[2];
    uint64_t        seen = 0;
    const bool      sized = s->tag != LC_IS_none, given = dim->tag != LC_IS_none;
    m->n = given ? dim->n : sized ? s->n : x->ndim;
    for (int k = 0; given && k < dim->n; k++) {
        int d;
        if (wrap_dim(dim->is[k], x, &d) < 0) return -1;
        if (seen >> d & 1) return lc_fail_int(LC_LucidError, "FFT dims must be unique");
        seen |= 1ull << d, m->dim[k] = d;
    }
    if (sized && given && s->n != dim->n)
        return lc_fail_int(LC_LucidError, "When given, dim and shape arguments must have the same length");
    if (sized && s->n > x->ndim)
        return lc_fail_int(LC_LucidError, "Got shape with %d values but input tensor only has %d dimensions.", s->n, x->ndim);
    for (int k = 0; k < m->n; k++) {
        if (!given) m->dim[k] = x->ndim - m->n + k;
        m->size[k] = sized && s->is[k] != -1 ? s->is[k] : x->ndim ? x->shape[m->dim[k]] : 1;
        if (check_points(m->size[k]) < 0) return -1;
    }
    return norm_of(&in[3], forward, &m->norm);
}
static lc_tensor *all_resized(lc_tensor *x, const many *m)
{
    for (int k = 0; k < m->n && x; k++)
        if (x->ndim) x = resized(x, (int)m->dim[k], m->size[k]);
    return x;
}
static int some_axis(const char *name, const many *m)
{
    return m->n ? 0 : lc_fail_int(LC_LucidError, "%s must transform at least one axis", name);
}
static int many_c2c(const lc_value *in, bool forward, lc_tensor **out)
{
    many       m;
    lc_tensor *x = promoted(in(0), true);
    if (!x || many_of(in, x, forward, &m) < 0 || !(x = all_resized(x, &m))) return -1;
    out[0] = m.n && x->ndim ? lc__fft_c2c(x, m.dim, m.n, m.norm, forward) : lc_clone(x, LC_PRESERVE_FORMAT);
    return out[0] ? 0 : -1;
}
static int many_r2c(const char *name, const lc_value *in, bool forward, lc_tensor **out)
{
    many m;
    if (refuse_complex(name, in(0)) < 0) return -1;
    lc_tensor *x = promoted(in(0), false);
    if (!x || many_of(in, x, forward, &m) < 0 || some_axis(name, &m) < 0 || !(x = all_resized(x, &m))) return -1;
    if (forward) return (out[0] = lc__fft_r2c(x, m.dim, m.n, m.norm, true)) ? 0 : -1;
    x = lc__fft_r2c(x, m.dim + m.n - 1, 1, m.norm, true);
    x = x ? conj_of(x) : NULL;
    return (out[0] = x && m.n > 1 ? lc__fft_c2c(x, m.dim, m.n - 1, m.norm, false) : x) ? 0 : -1;
}
static int many_c2r(const char *name, const lc_value *in, bool forward, lc_tensor **out)
{
    many       m;
    lc_tensor *x = promoted(in(0), true);
    if (!x || many_of(in, x, forward, &m) < 0 || some_axis(name, &m) < 0) return -1;
    const bool said = in[1].tag != LC_IS_none && in[1].is[m.n - 1] != -1;
    int64_t   *half = &m.size[m.n - 1], last = said ? *half : 2 * (*half - 1);
    *half = last / 2 + 1;
    if (check_points(last) < 0 || !(x = all_resized(x, &m))) return -1;
    if (!forward) return (out[0] = lc__fft_c2r(x, m.dim, m.n, m.norm, last)) ? 0 : -1;
    if (m.n > 1) x = lc__fft_c2c(x, m.dim, m.n - 1, m.norm, true);
    return (out[0] = x ? lc__fft_c2r(conj_of(x), m.dim + m.n - 1, 1, m.norm, last) : NULL) ? 0 : -1;
}
#define MANY(dims) "(input: Tensor, s: list[int] | None = None, dim: list[int] " dims ", norm: str | None = None) -> Tensor"
#define MANY_DIMENSIONS(op, dims, text, ...)                                                                                   \
    COMPOSITE(fft_##op, __VA_ARGS__)                                                                                           \
    LC_OP(fft_##op, .sig = "fft_" #op MANY(dims), .py = #op, .ns = "fft", .doc = text, .out = true, .plain_out = true,         \
          .call = fft_##op##_call);
#define ALL_DIMS "| None = None"
#define TWO_DIMS "= (-2, -1)"
MANY_DIMENSIONS(fftn, ALL_DIMS, "The discrete Fourier transform over several dimensions, by default all.",
                many_c2c(in, true, out))
MANY_DIMENSIONS(ifftn, ALL_DIMS, "The inverse discrete Fourier transform over several dimensions, by default all.",
                many_c2c(in, false, out))
MANY_DIMENSIONS(rfftn, ALL_DIMS,
                "The discrete Fourier transform of real numbers over several dimensions; of the last, the first half.",
                many_r2c("rfftn", in, true, out))
MANY_DIMENSIONS(irfftn, ALL_DIMS, "The inverse of rfftn: real numbers.", many_c2r("irfftn", in, false, out))
MANY_DIMENSIONS(hfftn, ALL_DIMS,
                "The discrete Fourier transform of a signal that is Hermitian over several dimensions: real numbers.",
                many_c2r("hfftn", in, true, out))
MANY_DIMENSIONS(ihfftn, ALL_DIMS, "The inverse of hfftn.", many_r2c("ihfftn", in, false, out))
MANY_DIMENSIONS(fft2, TWO_DIMS, "The discrete Fourier transform over two dimensions.", many_c2c(in, true, out))
MANY_DIMENSIONS(ifft2, TWO_DIMS, "The inverse discrete Fourier transform over two dimensions.", many_c2c(in, false, out))
MANY_DIMENSIONS(rfft2, TWO_DIMS,
                "The discrete Fourier transform of real numbers over two dimensions; of the last, the first half.",
                many_r2c("rfft2", in, true, out))
MANY_DIMENSIONS(irfft2, TWO_DIMS, "The inverse of rfft2: real numbers.", many_c2r("irfft2", in, false, out))
MANY_DIMENSIONS(hfft2, TWO_DIMS,
                "The discrete Fourier transform of a signal that is Hermitian over two dimensions: real numbers.",
                many_c2r("hfft2", in, true, out))
MANY_DIMENSIONS(ihfft2, TWO_DIMS, "The inverse of hfft2.", many_r2c("ihfft2", in, false, out))

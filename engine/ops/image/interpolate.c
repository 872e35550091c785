/* interpolate and PyTorch's other names for it. The ops with kernels are hidden: one resizes an image of one to three
 * dimensions, the other is its transpose. Each is the gradient of the other. The kernels walk channels-last images as they
 * are, and results stay channels last. */
#include "../view/view.h"
#include <math.h>

enum { MAX_ND = 3 };

/* A view in the kernel's order, with dimension 1 moved to the end if it is channels last. New reference. */
static lc_tensor *channels_behind(lc_tensor *t)
{
    int     last = t->ndim - 1;
    int64_t shape[LC_MAX_DIMS], stride[LC_MAX_DIMS];
    shape[0] = t->shape[0], stride[0] = t->stride[0], shape[last] = t->shape[1], stride[last] = t->stride[1];
    for (int d = 2; d < t->ndim; d++) shape[d - 1] = t->shape[d], stride[d - 1] = t->stride[d];
    return lc_tensor_view(t, t->ndim, shape, stride, 0);
}

static int resized_spec(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0];
    const lc_value  *size = &call->args[1];
    int64_t          shape[MAX_ND + 2] = { x->shape[0], x->shape[1] };
    memcpy(shape + 2, size->is, (size_t)size->n * sizeof *shape);
    if (spec_shape(call, out, (lc_dtype)x->dtype, x->ndim, shape) < 0) return -1;
    return in_suggested_format(x, out);
}

/* (input, size, image, scales, mode, align_corners): size: of the result; image: the sizes of the image that is
 * interpolated. */
static int resize(const lc_record *call, bool backward)
{
    const lc_value     *args = call->args, *scales = &args[2];
    lc_tensor          *x = call->in[0], *to = call->out[0];
    lc_record           work = *call;
    int                 nd = x->ndim - 2;
    bool                behind = !to->is_contiguous && suggested_format(to) != LC_CONTIGUOUS_FORMAT;
    lc_interpolate_args a = { .inner = behind ? x->shape[1] : 1,
                              .mode = (lc_interpolation)args[3].i,
                              .align_corners = args[4].b,
                              .backward = backward,
                              .ordered = lc_modes & LC_DETERMINISTIC };
    work.dtype = x->dtype == LC_u8 ? LC_u8 : working_dtype((lc_dtype)x->dtype);
    for (int d = 0; d < 3; d++) {
        int at = d - (3 - nd);
        a.size[d] = at < 0 ? 1 : (backward ? to : x)->shape[2 + at],
        a.result[d] = at < 0 ? 1 : (backward ? x : to)->shape[2 + at];
        a.scale[d] = at < 0 || at >= scales->n ? 0 : scales->fs[at];
    }
    a.planes = behind ? x->shape[0] : x->shape[0] * x->shape[1];
    lc_tensor *from = behind ? channels_behind(x) : lc_retain(x), *into = behind ? channels_behind(to) : lc_retain(to);
    lc_tensor *in = from ? packed(from, work.dtype) : NULL, *made = NULL;
    if (in && into)
        made = into->is_contiguous && into->dtype == work.dtype
                   ? lc_retain(into)
                   : lc_tensor_new(work.dtype, into->device, into->ndim, into->shape);
    a.in = in, a.out = made;
    int rc = made ? to->numel ? run_kernel_with(&work, &a) : 0 : -1;
    if (made) rc = deliver(into, made, rc);
    lc_release(from), lc_release(in), lc_release(into);
    return rc;
}
static int interpolate_run(const lc_record *call) { return resize(call, false); }
static int backward_run(const lc_record *call) { return resize(call, true); }

#define IS_RESIZE .hidden = true, .promote = LC_NO_PROMOTION, .shape = resized_spec
GRAD(_interpolate)
{
    dx[0] = lc__interpolate_backward(g[0], in(0)->shape + 2, in(0)->ndim - 2, in[2].fs, in[2].n, in[3].i, in[4].b);
}
LC_OP(_interpolate, .batching = LC_BATCH_SAMPLES, .batched = IN(0),
      .sig = "_interpolate(input: Tensor, size: list[int], scales: list[float], mode: int, align_corners: bool) -> Tensor",
      .doc = "Images at another size.", IS_RESIZE, .run = interpolate_run, .grad = _interpolate_grad);
GRAD(_interpolate_backward)
{
    dx[0] = lc__interpolate(g[0], in(0)->shape + 2, in(0)->ndim - 2, in[2].fs, in[2].n, in[3].i, in[4].b);
}
LC_OP(_interpolate_backward,
      .sig =
          "_interpolate_backward(grad: Tensor, size: list[int], scales: list[float], mode: int, align_corners: bool) -> Tensor",
      .doc = "Gradients of images, from those of the images at another size.", IS_RESIZE, .run = backward_run,
      .grad = _interpolate_backward_grad);

/* ---- PyTorch's functions ---- */
typedef struct {
    const char      *name;
    lc_interpolation mode;
    int              nd;      /* 0: all; -1: area, which is adaptive pooling */
    bool             corners; /* modes with align_corners */
} mode_row;
static const mode_row modes[] = { { "nearest", LC_NEAREST, 0, false }, { "nearest-exact", LC_NEAREST_EXACT, 0, false },
                                  { "area", LC_NEAREST, -1, false },   { "linear", LC_LINEAR, 1, true },
                                  { "bilinear", LC_LINEAR, 2, true },  { "trilinear", LC_LINEAR, 3, true },
                                  { "bicubic", LC_CUBIC, 2, true },    { "lanczos", LC_LANCZOS_ANTIALIAS, 2, true } };
enum { MODES = sizeof modes / sizeof *modes };

/* A list has one value per dimension; a scalar stands for all. */
static int check_length(const lc_value *v, int nd, const char *what, const lc_tensor *x)
{
    int n = v->n;
    if (lc_is_number_tag(v->tag) || n == nd) return 0;
    return lc_fail_int(
        LC_ValueError,
        "Input and %s must have the same number of spatial dimensions, but got input %s and %d numbers. Please provide "
        "input tensor in (N, C, d1, d2, ...,dK) format and %s in (o1, o2, ...,oK) format.",
        what, LC_SHAPE(x), n, what);
}
static int output_size(const lc_value *in, const lc_tensor *x, int nd, bool recompute, bool area, int64_t *size, double *scales,
                       int *n_scales)
{
    const lc_value *asked = &in[1], *scale = &in[2];
    bool            sized = asked->tag != LC_IS_none;
    *n_scales = 0;
    if (sized && recompute)
        return lc_fail_int(LC_ValueError, "recompute_scale_factor is not meaningful with an explicit size.");
    if (check_length(sized ? asked : scale, nd, sized ? "output size" : "scale_factor", x) < 0) return -1;
    for (int d = 0; d < nd; d++) {
        if (sized) {
            size[d] = asked->tag == LC_IS_int ? asked->i : asked->is[d];
            continue;
        }
        double factor = scale->tag == LC_IS_float ? scale->f : scale->fs[d], exact = (double)x->shape[2 + d] * factor;
        if (!(exact > -1 && exact < 0x1p62))
            return lc_fail_int(LC_LucidError, "interpolate: a scale_factor of %g cannot be applied to input %s", factor,
                               LC_SHAPE(x));
        size[d] = (int64_t)exact;
        if (!recompute && !area) scales[(*n_scales)++] = factor;
    }
    return 0;
}
static int check_sizes(const lc_tensor *x, int nd, const int64_t *size)
{
    for (int d = 0; d < nd; d++)
        if (x->shape[2 + d] <= 0 || size[d] <= 0)
            return lc_fail_int(LC_ShapeMismatch,
                               "Input and output sizes should be greater than 0, but got input %s and output size %lld in "
                               "spatial dimension %d",
                               LC_SHAPE(x), (long long)size[d], d);
    if (!x->shape[1])
        return lc_fail_int(LC_ShapeMismatch, "Non-empty %dD data tensor expected but got a tensor with sizes %s", nd + 2,
                           LC_SHAPE(x));
    return 0;
}
static bool takes_dtype(const lc_tensor *x, lc_interpolation mode, int nd)
{
    if (x->dtype == LC_u8) return nd == 2 || mode <= LC_NEAREST_EXACT;
    if (mode >= LC_LINEAR_ANTIALIAS) return x->dtype == LC_f32 || x->dtype == LC_f64;
    return lc_is_floating(x->dtype);
}

static int interpolate_as(lc_tensor *x, const lc_value *in, const mode_row *row, bool align_corners, bool recompute,
                          bool antialias, lc_tensor **out)
{
    int64_t          size[MAX_ND];
    double           scales[MAX_ND];
    int              nd = x->ndim - 2, n_scales = 0;
    lc_interpolation mode = row->mode;
    if (nd >= 1 && nd <= MAX_ND && output_size(in, x, nd, recompute, row->nd < 0, size, scales, &n_scales) < 0) return -1;
    if (antialias && (mode < LC_LINEAR || row->nd != 2 || nd != 2))
        return lc_fail_int(
            LC_ValueError,
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input");
    if (nd < 1 || nd > MAX_ND || (row->nd > 0 && row->nd != nd))
        return lc_fail_int(LC_NotImplementedError, "Got %dD input, but %s mode needs %s input", x->ndim, row->name,
                           row->nd == 1   ? "3D"
                           : row->nd == 2 ? "4D"
                           : row->nd == 3 ? "5D"
                                          : "3D, 4D or 5D");
    if (row->nd < 0) {
        lc_tensor *pooled = nd == 1   ? lc_adaptive_avg_pool1d(x, size, nd)
                            : nd == 2 ? lc_adaptive_avg_pool2d(x, size, nd)
                                      : lc_adaptive_avg_pool3d(x, size, nd);
        return (out[0] = pooled) ? 0 : -1;
    }
    if (mode == LC_LANCZOS_ANTIALIAS && (align_corners || !antialias))
        return lc_fail_int(LC_ValueError, align_corners ? "Lanczos mode does not support align_corners=True"
                                                        : "Lanczos mode requires antialias=True");
    if (antialias && mode < LC_LINEAR_ANTIALIAS) mode = mode == LC_LINEAR ? LC_LINEAR_ANTIALIAS : LC_CUBIC_ANTIALIAS;
    if (check_sizes(x, nd, size) < 0) return -1;
    if (!takes_dtype(x, mode, nd))
        return lc_fail_int(LC_NotImplementedError, "interpolate with mode %s is not implemented for %s", row->name,
                           LC_SHAPE(x));
    return (out[0] = lc__interpolate(x, size, nd, scales, n_scales, mode, align_corners)) ? 0 : -1;
}
static const mode_row *mode_named(const char *name)
{
    for (int k = 0; k < MODES; k++)
        if (!strcmp(modes[k].name, name)) return &modes[k];
    return lc_fail(
        LC_NotImplementedError,
        "Input Error: Only 3D, 4D and 5D input Tensors supported for the modes: nearest | linear | bilinear | bicubic | "
        "trilinear | lanczos | area | nearest-exact (got %s)",
        name);
}
static int interpolate(const lc_value *in, const char *name, const lc_value *corners, bool recompute, bool antialias,
                       lc_tensor **out)
{
    bool sized = in[1].tag != LC_IS_none, scaled = in[2].tag != LC_IS_none;
    if (sized == scaled)
        return lc_fail_int(LC_ValueError, sized ? "only one of size or scale_factor should be defined"
                                                : "either size or scale_factor should be defined");
    const mode_row *row = mode_named(name);
    if (!row) return -1;
    if (!row->corners && corners->tag != LC_IS_none)
        return lc_fail_int(
            LC_ValueError,
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear");
    return interpolate_as(in(0), in, row, corners->tag == LC_IS_bool && corners->b, recompute, antialias, out);
}
static bool is_true(const lc_value *v) { return v->tag == LC_IS_bool && v->b; }

static int interpolate_call(const lc_value *in, lc_tensor **out)
{
    return interpolate(in, in[3].s, &in[4], is_true(&in[5]), in[6].b, out);
}
LC_OP(interpolate, .amp = LC_AMP_GPU_FP32,
      .sig =
          "interpolate(input: Tensor, size: int | None = None, scale_factor: float | None = None, mode: str = 'nearest', "
          "align_corners: bool | None = None, recompute_scale_factor: bool | None = None, antialias: bool = False) -> Tensor",
      .doc = "Images (batch, channels, sizes) at another size, which is given or scale_factor times theirs. mode: nearest, "
             "nearest-exact, "
             "linear, bilinear, bicubic, trilinear, area or lanczos.",
      .ns = "nn.functional", .call = interpolate_call);
LC_OP(interpolate_sizes, .amp = LC_AMP_GPU_FP32,
      .sig = "interpolate_sizes(input: Tensor, size: list[int] | None = None, scale_factor: list[float] | None = None, mode: "
             "str = 'nearest', align_corners: bool | None = None, recompute_scale_factor: bool | None = None, antialias: bool "
             "= False) -> Tensor",
      .py = "interpolate", .doc = "The same with a size or factor per dimension.", .ns = "nn.functional",
      .call = interpolate_call);

#define OLD_NAME(name) lc_warn("`nn.functional." name "` is deprecated. Use `nn.functional.interpolate` instead.")
static int upsample_call(const lc_value *in, lc_tensor **out)
{
    OLD_NAME("upsample");
    return interpolate(in, in[3].s, &in[4], false, false, out);
}
LC_OP(upsample,
      .sig = "upsample(input: Tensor, size: int | None = None, scale_factor: float | None = None, mode: str = 'nearest', "
             "align_corners: bool | None = None) -> Tensor",
      .doc = "interpolate, by its old name.", .ns = "nn.functional", .call = upsample_call);
LC_OP(upsample_sizes,
      .sig = "upsample_sizes(input: Tensor, size: list[int] | None = None, scale_factor: list[float] | None = None, mode: str "
             "= 'nearest', align_corners: bool | None = None) -> Tensor",
      .py = "upsample", .doc = "The same with a size or factor per dimension.", .ns = "nn.functional", .call = upsample_call);
static int upsample_nearest_call(const lc_value *in, lc_tensor **out)
{
    OLD_NAME("upsample_nearest");
    return interpolate(in, "nearest", &LC_ABSENT, false, false, out);
}
LC_OP(upsample_nearest,
      .sig = "upsample_nearest(input: Tensor, size: int | None = None, scale_factor: float | None = None) -> Tensor",
      .doc = "interpolate with mode nearest.", .ns = "nn.functional", .call = upsample_nearest_call);
LC_OP(upsample_nearest_sizes,
      .sig = "upsample_nearest_sizes(input: Tensor, size: list[int] | None = None, scale_factor: list[float] | None = None) -> "
             "Tensor",
      .py = "upsample_nearest", .doc = "The same with a size or factor per dimension.", .ns = "nn.functional",
      .call = upsample_nearest_call);
static int upsample_bilinear_call(const lc_value *in, lc_tensor **out)
{
    OLD_NAME("upsample_bilinear");
    return interpolate(in, "bilinear", &LC_B(true), false, false, out);
}
LC_OP(upsample_bilinear,
      .sig = "upsample_bilinear(input: Tensor, size: int | None = None, scale_factor: float | None = None) -> Tensor",
      .doc = "interpolate with mode bilinear and align_corners=True.", .ns = "nn.functional", .call = upsample_bilinear_call);
LC_OP(upsample_bilinear_sizes,
      .sig = "upsample_bilinear_sizes(input: Tensor, size: list[int] | None = None, scale_factor: list[float] | None = None) "
             "-> Tensor",
      .py = "upsample_bilinear", .doc = "The same with a size or factor per dimension.", .ns = "nn.functional",
      .call = upsample_bilinear_call);

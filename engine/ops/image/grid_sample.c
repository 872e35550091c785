/* grid_sample: values of an image, or a volume, at the positions of a grid; affine_grid makes such grids. Coordinates run
 * from -1 to 1 across the image, x first. The op with a kernel is hidden, and so is its gradient; the double backward is in
 * grid_sample_double_backward.c. */
#include "grid_sample.h"

static void sizes_of(const lc_tensor *x, const lc_tensor *grid, const lc_value *how, lc_grid_args *a)
{
    *a = (lc_grid_args){
        .images = x->shape[0], .channels = x->shape[1], .axes = x->ndim - 2, .positions = 1, .size = { 1, 1, 1 }
    };
    for (int d = 0; d < a->axes; d++) a->size[3 - a->axes + d] = x->shape[2 + d], a->positions *= grid->shape[1 + d];
    a->mode = (lc_grid_mode)how[0].i, a->padding = (lc_grid_padding)how[1].i, a->align_corners = how[2].b;
}

/* Offsets are as wide as elements; planes with more elements than int32 can count use the wider ones. */
static lc_dtype dtype_for(const lc_grid_args *a, const lc_tensor *x)
{
    return a->size[0] * a->size[1] * a->size[2] > INT32_MAX ? LC_f64 : working_dtype((lc_dtype)x->dtype);
}

/* ---- (input, grid, mode, padding, align_corners) ---- */
static int sample_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0], *grid = call->in[1];
    int64_t          shape[LC_MAX_DIMS] = { x->shape[0], x->shape[1] };
    for (int d = 2; d < x->ndim; d++) shape[d] = grid->shape[d - 1];
    return spec_shape(call, out, (lc_dtype)x->dtype, x->ndim, shape);
}
static int sample_run(const lc_record *call)
{
    lc_record    work = *call;
    lc_grid_args a;
    sizes_of(call->in[0], call->in[1], call->args + 2, &a);
    work.dtype = dtype_for(&a, call->in[0]);
    lc_tensor *x = packed(call->in[0], work.dtype), *grid = packed(call->in[1], work.dtype);
    lc_tensor *out = x && grid ? destination(call->out[0], work.dtype, NULL, 0) : NULL;
    a.image = x, a.grid = grid, a.out = out;
    int rc = out ? run_kernel_with(&work, &a) : -1;
    lc_release(x), lc_release(grid);
    return out ? deliver(call->out[0], out, rc) : rc;
}
GRAD(_grid_sample)
{
    lc__grid_sample_backward_out made =
        lc__grid_sample_backward(g[0], in(0), in(1), in[2].i, in[3].i, in[4].b, need[0], need[1]);
    if (need[0]) dx[0] = made.input;
    if (need[1]) dx[1] = made.grid;
}
LC_OP(_grid_sample, .sig = "_grid_sample(input: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor",
      .doc = "Values of images at positions.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = sample_shape,
      .run = sample_run, .grad = _grid_sample_grad, .saves = IN(0) | IN(1));

/* ---- (grad, input, grid, mode, padding, align_corners, of_input, of_grid): a gradient that is not wanted is empty ---- */
static int backward_shape(const lc_record *call, lc_spec *out)
{
    for (int k = 0; k < 2; k++) {
        const lc_tensor *t = call->in[1 + k];
        bool             asked = call->args[6 + k].b;
        if (spec_shape(call, &out[k], (lc_dtype)t->dtype, asked ? t->ndim : 1, asked ? t->shape : (int64_t[]){ 0 }) < 0)
            return -1;
    }
    return 0;
}
static int backward_run(const lc_record *call)
{
    lc_record    work = *call;
    lc_grid_args a;
    lc_tensor   *given[3], *made[2] = { NULL, NULL };
    bool         good = true;
    sizes_of(call->in[1], call->in[2], call->args + 3, &a);
    work.dtype = dtype_for(&a, call->in[1]);
    for (int k = 0; k < 3; k++) good &= (given[k] = packed(call->in[k], work.dtype)) != NULL;
    for (int k = 0; k < 2 && good; k++)
        if (call->args[6 + k].b) good &= (made[k] = destination(call->out[k], work.dtype, NULL, 0)) != NULL;
    a.grad = given[0], a.image = given[1], a.grid = given[2], a.d_image = made[0], a.d_grid = made[1];
    int rc = good ? run_kernel_with(&work, &a) : -1;
    for (int k = 0; k < 3; k++) lc_release(given[k]);
    for (int k = 0; k < 2; k++)
        if (made[k]) rc = deliver(call->out[k], made[k], rc);
    return rc;
}
LC_OP(_grid_sample_backward,
      .sig =
          "_grid_sample_backward(grad: Tensor, image: Tensor, positions: Tensor, mode: int, padding: int, align_corners: bool, "
          "of_input: bool, of_grid: bool) -> (input: Tensor, grid: Tensor)",
      .doc = "The gradients of images and positions, from those of the values.", .hidden = true, .promote = LC_NO_PROMOTION,
      .atomic = true, .shape = backward_shape, .run = backward_run, .grad = grid_sample_backward_grad,
      .saves = IN(0) | IN(1) | IN(2));

/* ---- PyTorch's functions ---- */
static int check(const lc_value *in, int axes, const char *name)
{
    const lc_tensor *x = in(0), *grid = in(1);
    if (!lc_is_floating(x->dtype) || x->dtype != grid->dtype)
        return lc_fail_int(LC_LucidError, "%s(): expected input and grid of one floating point dtype, got %s and %s", name,
                           LC_SHAPE(x), LC_SHAPE(grid));
    if (x->ndim != axes + 2 || grid->ndim != axes + 2)
        return lc_fail_int(LC_LucidError, "%s(): expected %dD input and grid, got %s and %s", name, axes + 2, LC_SHAPE(x),
                           LC_SHAPE(grid));
    if (x->shape[0] != grid->shape[0])
        return lc_fail_int(LC_LucidError, "%s(): expected grid and input to have same batch size, got %s and %s", name,
                           LC_SHAPE(x), LC_SHAPE(grid));
    if (grid->shape[axes + 1] != axes)
        return lc_fail_int(LC_LucidError, "%s(): expected grid to have size %d in last dimension, got %s", name, axes,
                           LC_SHAPE(grid));
    for (int d = 2; d < x->ndim; d++)
        if (!x->shape[d])
            return lc_fail_int(LC_LucidError, "%s(): expected input to have non-empty spatial dimensions, got %s", name,
                               LC_SHAPE(x));
    if (in[2].i < LC_GRID_BILINEAR || in[2].i > (axes == 2 ? LC_GRID_BICUBIC : LC_GRID_NEAREST))
        return lc_fail_int(LC_LucidError, "%s(): interpolation mode %lld does not exist for %dD input", name,
                           (long long)in[2].i, axes + 2);
    if (in[3].i < LC_GRID_ZEROS || in[3].i > LC_GRID_REFLECTION)
        return lc_fail_int(LC_LucidError, "%s(): padding mode %lld does not exist", name, (long long)in[3].i);
    return 0;
}

static int sample(const lc_value *in, int axes, const char *name, lc_tensor **out)
{
    if (check(in, axes, name) < 0) return -1;
    return (out[0] = lc__grid_sample(in(0), in(1), in[2].i, in[3].i, in[4].b)) ? 0 : -1;
}
#define SAMPLING .amp = (lc_amp)(LC_AMP_CPU_FP32 | LC_AMP_GPU_WIDEST)
static int grid_sampler_2d_call(const lc_value *in, lc_tensor **out) { return sample(in, 2, "grid_sampler_2d", out); }
static int grid_sampler_3d_call(const lc_value *in, lc_tensor **out) { return sample(in, 3, "grid_sampler_3d", out); }
static int grid_sampler_call(const lc_value *in, lc_tensor **out)
{
    return sample(in, in(0)->ndim == 5 ? 3 : 2, "grid_sampler", out);
}
LC_OP(grid_sampler_2d,
      .sig = "grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> "
             "Tensor",
      .doc = "Values of images (batch, channels, height, width) at positions (batch, rows, columns, xy) between -1 and 1.",
      SAMPLING, .call = grid_sampler_2d_call);
LC_OP(grid_sampler_3d,
      .sig = "grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> "
             "Tensor",
      .doc = "Values of volumes (batch, channels, depth, height, width) at positions (batch, planes, rows, columns, xyz).",
      SAMPLING, .call = grid_sampler_3d_call);
LC_OP(
    grid_sampler,
    .sig =
        "grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor",
    .doc = "grid_sampler_2d or grid_sampler_3d, by the dimensions of input.", SAMPLING, .call = grid_sampler_call);

static int number_of(const char *name, const char *const *names, const char *what)
{
    for (int k = 0; k < 3; k++)
        if (!strcmp(name, names[k])) return k;
    return lc_fail_int(LC_ValueError, "nn.functional.grid_sample(): expected %s to be '%s', '%s' or '%s', but got: '%s'", what,
                       names[0], names[1], names[2], name);
}
static bool corners(const lc_value *v)
{
    if (v->tag == LC_IS_none)
        lc_warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
                "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.");
    return v->tag == LC_IS_bool && v->b;
}
static int grid_sample_call(const lc_value *in, lc_tensor **out)
{
    static const char *const modes[] = { "bilinear", "nearest", "bicubic" }, *const paddings[] = { "zeros", "border",
                                                                                                   "reflection" };
    int mode = number_of(in[2].s, modes, "mode");
    int padding = mode < 0 ? -1 : number_of(in[3].s, paddings, "padding_mode");
    if (padding < 0) return -1;
    lc_value how[] = { in[0], in[1], LC_I(mode), LC_I(padding), LC_B(corners(&in[4])) };
    return sample(how, in(0)->ndim == 5 ? 3 : 2, "grid_sampler", out);
}
LC_OP(grid_sample,
      .sig = "grid_sample(input: Tensor, grid: Tensor, mode: str = 'bilinear', padding_mode: str = 'zeros', align_corners: "
             "bool | None = None) "
             "-> Tensor",
      .doc = "Values of images (batch, channels, sizes) at the positions of grid (batch, sizes, coordinates), between -1 and "
             "1. mode: bilinear, "
             "nearest or bicubic; padding_mode: zeros, border or reflection.",
      .ns = "nn.functional", SAMPLING, .call = grid_sample_call);

/* From -1 to 1, at the ends of n elements or in the middle of each; shaped to run along dimension d of the `dims` of a grid. */
static lc_tensor *coordinates(const lc_tensor *theta, int64_t n, bool align_corners, int d, int dims)
{
    lc_value   dtype = LC_OF_DTYPE((lc_dtype)theta->dtype), device = { .tag = LC_IS_device, .dev = theta->device };
    int64_t    shape[] = { 1, 1, 1 };
    lc_tensor *line = n <= 1 ? lc_zeros(&n, 1, dtype, device) : lc_linspace(LC_I(-1), LC_I(1), n, dtype, device);
    if (!align_corners && n > 1) line = lc_div(lc_mul(line, LC_INTEGER(n - 1)), LC_INTEGER(n));
    shape[d] = n;
    return lc_reshape(line, shape, dims);
}
static int affine_grid_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor     *theta = in(0), *parts[4];
    const int64_t *size = in[1].is;
    int            axes = in[1].n - 2;
    bool           align = corners(&in[2]);
    if (!lc_is_floating(theta->dtype))
        return lc_fail_int(LC_ValueError, "Expected theta to have floating point type, but got %s", LC_SHAPE(theta));
    if (axes != 2 && axes != 3)
        return lc_fail_int(
            LC_NotImplementedError,
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got %d sizes.", in[1].n);
    if (theta->ndim != 3 || theta->shape[1] != axes || theta->shape[2] != axes + 1)
        return lc_fail_int(LC_ValueError, "Expected a batch of %dD affine matrices of shape Nx%dx%d. Got %s.", axes, axes,
                           axes + 1, LC_SHAPE(theta));
    bool unit = false;
    for (int d = 0; d < in[1].n; d++) {
        unit |= d >= 2 && size[d] == 1;
        if (size[d] <= 0)
            return lc_fail_int(LC_ValueError, "Expected non-zero, positive output size. Got %lld", (long long)size[d]);
    }
    if (align && unit)
        lc_warn("Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is "
                "not an intended "
                "use case of affine_grid. See the documentation of affine_grid for details.");
    if (size[0] != theta->shape[0])
        return lc_fail_int(LC_ShapeMismatch, "affine_grid: expected %lld matrices, got %s", (long long)size[0],
                           LC_SHAPE(theta));
    int64_t shape[5] = { size[0] }, positions = 1;
    for (int d = 0; d < axes; d++)
        if (__builtin_mul_overflow(positions, shape[1 + d] = size[2 + d], &positions))
            return lc_fail_int(LC_LucidError, "affine_grid: a grid of size %s is too large", LC_SIZES(size + 2, axes));
    shape[1 + axes] = axes;
    lc_value dtype = LC_OF_DTYPE((lc_dtype)theta->dtype), device = { .tag = LC_IS_device, .dev = theta->device };
    if (positions > 1 << 24 && !lc_empty(shape, axes + 2, dtype, device, LC_ABSENT)) return -1; /* none of it if not all */
    for (int a = 0; a < axes; a++) /* x runs along the last dimension */
        parts[a] = lc_expand(coordinates(theta, size[2 + axes - 1 - a], align, axes - 1 - a, axes), size + 2, axes);
    parts[axes] = lc_ones(size + 2, axes, dtype, device);
    lc_tensor *base = lc_reshape(lc_stack(parts, axes + 1, -1), (int64_t[]){ positions, axes + 1 }, 2);
    return (out[0] = lc_reshape(lc_matmul(base, lc_transpose(theta, 1, 2)), shape, axes + 2)) ? 0 : -1;
}
LC_OP(affine_grid, .sig = "affine_grid(theta: Tensor, size: tuple[int, ...], align_corners: bool | None = None) -> Tensor",
      .doc = "Grids for grid_sample: positions of an image of this size (batch, channels, sizes), moved by affine matrices.",
      .ns = "nn.functional", .call = affine_grid_call);

/* grid_sampler: values of an image, or a volume, at the positions of a grid.
 *
 * A composite over (batch, channels, positions): every neighbour of a position is one gather, weighted and added, so that gradients of
 * every order come from the ops. Coordinates run from -1 to 1 across the image, x first. Neighbours outside count as zero. */
#include "rules.h"

enum { BILINEAR, NEAREST, BICUBIC };
enum { ZEROS, BORDER, REFLECTION };
enum { AXES = 3 };

typedef struct {
    lc_tensor *image; /* (batch, channels, elements), of the working dtype */
    int64_t    size[AXES], step[AXES];
    int        axes, padding;
    bool       align_corners;
} source;
typedef struct {
    lc_tensor *index, *weight; /* (batch, positions); index is whole numbers of the working dtype */
    lc_tensor *inside;         /* bool; NULL: nothing but the axis' bounds */
} neighbour;

static lc_tensor *clipped(lc_tensor *c, int64_t size) { return lc_clamp(c, LC_INTEGER(0), LC_INTEGER(size - 1)); }

/* Back and forth between low and low + span. */
static lc_tensor *reflected(lc_tensor *c, double low, double span)
{
    if (span <= 0) return lc_mul(c, LC_INTEGER(0));
    lc_tensor *away = lc_abs(lc_sub(c, LC_NUMBER(low))), *rest = lc_fmod(away, LC_NUMBER(span));
    lc_tensor *turns = lc_floor(lc_div(away, LC_NUMBER(span)));
    lc_tensor *even = lc_eq(lc_fmod(turns, LC_INTEGER(2)), LC_INTEGER(0));
    return lc_add(lc_where(even, rest, lc_rsub(rest, LC_NUMBER(span), LC_I(1))), LC_NUMBER(low));
}
static lc_tensor *padded(const source *s, lc_tensor *c, int64_t size)
{
    if (s->padding == REFLECTION) c = s->align_corners ? reflected(c, 0, (double)(size - 1)) : reflected(c, -0.5, (double)size);
    return !c || s->padding == ZEROS ? c : clipped(c, size);
}
static lc_tensor *in_elements(const source *s, lc_tensor *c, int64_t size) /* from -1 .. 1 */
{
    lc_tensor *shifted = lc_add(c, LC_INTEGER(1));
    return s->align_corners ? lc_mul(shifted, LC_NUMBER((double)(size - 1) / 2))
                            : lc_div(lc_sub(lc_mul(shifted, LC_INTEGER(size)), LC_INTEGER(1)), LC_INTEGER(2));
}

/* The cubic convolution weights of Keys with a = -0.75, of the four neighbours of a position t after the second. */
static lc_tensor *near_cubic(lc_tensor *t) /* |t| <= 1 */
{
    lc_tensor *p = lc_sub(lc_mul(t, LC_NUMBER(1.25)), LC_NUMBER(2.25));
    return lc_add(lc_mul(lc_mul(p, t), t), LC_INTEGER(1));
}
static lc_tensor *far_cubic(lc_tensor *t) /* 1 < |t| < 2 */
{
    lc_tensor *p = lc_add(lc_mul(t, LC_NUMBER(-0.75)), LC_NUMBER(3.75));
    return lc_add(lc_mul(lc_sub(lc_mul(p, t), LC_INTEGER(6)), t), LC_INTEGER(3));
}

/* What lies around coordinate c of an axis; returns how many, -1 for a failure. */
static int neighbours(const source *s, lc_tensor *c, int64_t size, int mode, neighbour *n)
{
    c = in_elements(s, c, size);
    if (mode != BICUBIC && c) c = padded(s, c, size);
    if (!c) return -1;
    if (mode == NEAREST) { /* constant almost everywhere: the gradient is zero, not absent */
        lc_tensor *flat = lc_sign(c);
        *n = (neighbour){ .index = lc_round(c), .weight = lc_add(lc_sub(flat, lc_detach(flat)), LC_INTEGER(1)) };
        return n->index && n->weight ? 1 : -1;
    }
    lc_tensor *below = lc_floor(c), *t = lc_sub(c, below), *rest = t ? lc_rsub(t, LC_INTEGER(1), LC_I(1)) : NULL;
    if (!rest) return -1;
    if (mode == BILINEAR) {
        n[0] = (neighbour){ .index = below, .weight = rest };
        n[1] = (neighbour){ .index = lc_add(below, LC_INTEGER(1)), .weight = t };
        return n[1].index ? 2 : -1;
    }
    lc_tensor *weights[] = { far_cubic(lc_add(t, LC_INTEGER(1))), near_cubic(t), near_cubic(rest),
                             far_cubic(lc_add(rest, LC_INTEGER(1))) };
    for (int k = 0; k < 4; k++) {
        n[k] = (neighbour){ .index = padded(s, lc_detach(lc_add(below, LC_INTEGER(k - 1))), size), .weight = weights[k] };
        if (!n[k].index || !n[k].weight) return -1;
    }
    return 4;
}

/* The sum over all combinations of neighbours from axis `axis` on. at: what the axes before add up to. */
static lc_tensor *gathered(const source *s, neighbour (*around)[4], const int *count, int axis, neighbour at, lc_tensor *sum)
{
    if (axis == s->axes) {
        lc_tensor *index = lc_to(lc_where(at.inside, at.index, LC_INTEGER(0)), LC_i64, false, false, LC_ABSENT);
        lc_tensor *weight = lc_unsqueeze(lc_where(at.inside, at.weight, LC_INTEGER(0)), 1);
        if (!index || !weight) return NULL;
        lc_tensor *wide =
            lc_expand(lc_unsqueeze(index, 1), (int64_t[]){ index->shape[0], s->image->shape[1], index->shape[1] }, 3);
        lc_tensor *part = lc_mul(lc_gather(s->image, 2, wide, false), weight);
        return sum ? lc_add(sum, part) : part;
    }
    for (int k = 0; k < count[axis]; k++) {
        const neighbour *n = &around[axis][k];
        lc_tensor       *inside = lc_logical_and(lc_ge(n->index, LC_INTEGER(0)), lc_lt(n->index, LC_INTEGER(s->size[axis])));
        lc_tensor       *offset = lc_mul(lc_detach(n->index), LC_INTEGER(s->step[axis]));
        if (!inside || !offset) return NULL;
        neighbour next = { .index = axis ? lc_add(at.index, offset) : offset,
                           .weight = axis ? lc_mul(at.weight, n->weight) : n->weight,
                           .inside = axis ? lc_logical_and(at.inside, inside) : inside };
        if (!next.index || !next.weight || !next.inside) return NULL;
        if (!(sum = gathered(s, around, count, axis + 1, next, sum))) return NULL;
    }
    return sum;
}

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
    if (in[2].i < BILINEAR || in[2].i > (axes == 2 ? BICUBIC : NEAREST))
        return lc_fail_int(LC_LucidError, "%s(): interpolation mode %lld does not exist for %dD input", name,
                           (long long)in[2].i, axes + 2);
    if (in[3].i < ZEROS || in[3].i > REFLECTION)
        return lc_fail_int(LC_LucidError, "%s(): padding mode %lld does not exist", name, (long long)in[3].i);
    return 0;
}

static int sample(const lc_value *in, int axes, const char *name, lc_tensor **out)
{
    if (check(in, axes, name) < 0) return -1;
    lc_dtype result = (lc_dtype)in(0)->dtype,
             work = in[2].i == BICUBIC ? LC_f64 : working_dtype(result); /* cubic weights cancel */
    lc_tensor *x = lc_to(in(0), work, false, false, LC_ABSENT), *grid = lc_to(in(1), work, false, false, LC_ABSENT);
    if (!x || !grid) return -1;
    source    s = { .axes = axes, .padding = (int)in[3].i, .align_corners = in[4].b };
    neighbour around[AXES][4];
    int64_t   shape[AXES + 2] = { x->shape[0], x->shape[1] }, elements = 1, positions = 1;
    int       count[AXES];
    for (int a = 0; a < axes; a++) {
        s.size[a] = x->shape[x->ndim - 1 - a], s.step[a] = elements, elements *= s.size[a];
        positions *= shape[2 + a] = grid->shape[1 + a];
    }
    s.image = lc_reshape(x, (int64_t[]){ shape[0], shape[1], elements }, 3);
    for (int a = 0; a < axes; a++) {
        lc_tensor *c = s.image ? lc_reshape(lc_select(grid, -1, a), (int64_t[]){ shape[0], positions }, 2) : NULL;
        if (!c || (count[a] = neighbours(&s, c, s.size[a], (int)in[2].i, around[a])) < 0) return -1;
    }
    lc_tensor *sum = gathered(&s, around, count, 0, (neighbour){ 0 }, NULL);
    if (sum) out[0] = lc_to(lc_reshape(sum, shape, axes + 2), result, false, false, LC_ABSENT);
    return sum && out[0] ? 0 : -1;
}
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
      .call = grid_sampler_2d_call);
LC_OP(grid_sampler_3d,
      .sig = "grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> "
             "Tensor",
      .doc = "Values of volumes (batch, channels, depth, height, width) at positions (batch, planes, rows, columns, xyz).",
      .call = grid_sampler_3d_call);
LC_OP(
    grid_sampler,
    .sig =
        "grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor",
    .doc = "grid_sampler_2d or grid_sampler_3d, by the dimensions of input.", .call = grid_sampler_call);

/* Double backward of grid_sample. The gradient of the image's gradient uses the same two kernels, because samples are linear
 * in the image. The gradient of the grid's gradient needs samples with other weights: the first and second derivatives of
 * the weights by coordinates. Those are a composite over (batch, channels, positions): every neighbour of a position is one
 * gather and one scatter, so gradients of every higher order come from the ops. The factors of the axes are first multiplied
 * into weights of shape (batch, positions). */
#include "grid_sample.h"

enum { AXES = 3, TAPS = 4 };
typedef struct {               /* an element beside each position along one axis: (batch, positions) */
    lc_tensor *index, *inside; /* int64, within the axis; bool */
    lc_tensor *weight[3];      /* and its derivatives by the grid's coordinate; NULL: zero */
} neighbour;
typedef struct {
    lc_tensor *image; /* (batch, channels, elements), of the working dtype */
    int64_t    size[AXES], step[AXES], batch, channels, elements, positions;
    int        axes, padding, count;
    bool       align_corners;
    neighbour  around[AXES][TAPS];
} source;

static lc_tensor *clipped(lc_tensor *c, int64_t size) { return lc_clamp(c, LC_INTEGER(0), LC_INTEGER(size - 1)); }

/* Reflects between low and low + span. */
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
    if (s->padding == LC_GRID_REFLECTION)
        c = s->align_corners ? reflected(c, 0, (double)(size - 1)) : reflected(c, -0.5, (double)size);
    return !c || s->padding == LC_GRID_ZEROS ? c : clipped(c, size);
}
static lc_tensor *in_elements(const source *s, lc_tensor *c, int64_t size) /* from -1 .. 1 */
{
    lc_tensor *shifted = lc_add(c, LC_INTEGER(1));
    return s->align_corners ? lc_mul(shifted, LC_NUMBER((double)(size - 1) / 2))
                            : lc_div(lc_sub(lc_mul(shifted, LC_INTEGER(size)), LC_INTEGER(1)), LC_INTEGER(2));
}

/* The derivative of the padded coordinate by c: 0 where it is clipped, -1 where it is reflected. NULL: 1. */
static lc_tensor *slope_of_padding(const source *s, lc_tensor *c, int64_t size)
{
    if (s->padding == LC_GRID_ZEROS) return NULL;
    lc_tensor *sign = NULL, *seen = c;
    if (s->padding == LC_GRID_REFLECTION) {
        double     low = s->align_corners ? 0 : -0.5, span = (double)(s->align_corners ? size - 1 : size);
        lc_tensor *away = lc_sub(c, LC_NUMBER(low)), *turns = lc_floor(lc_div(lc_abs(away), LC_NUMBER(span > 0 ? span : 1)));
        lc_tensor *odd = lc_ne(lc_fmod(turns, LC_INTEGER(2)), LC_INTEGER(0));
        sign = lc_where(lc_ne(odd, lc_lt(away, LC_INTEGER(0))), LC_NUMBER(-1), LC_NUMBER(1));
        seen = reflected(c, low, span);
    }
    lc_tensor *within = lc_logical_and(lc_gt(seen, LC_INTEGER(0)), lc_lt(seen, LC_INTEGER(size - 1)));
    lc_tensor *moves = lc_to(within, (lc_dtype)c->dtype, false, false, LC_ABSENT);
    return sign ? lc_mul(moves, sign) : moves;
}

/* Keys' cubic with a = -0.75 and its derivatives: |x| <= 1, and 1 < |x| < 2. */
static lc_tensor *polynomial(lc_tensor *x, const double *c) /* c[0] x^3 + c[1] x^2 + c[2] x + c[3] */
{
    lc_tensor *sum = lc_add(lc_mul(x, LC_NUMBER(c[0])), LC_NUMBER(c[1]));
    for (int k = 2; k < 4; k++) sum = lc_add(lc_mul(sum, x), LC_NUMBER(c[k]));
    return sum;
}
static lc_tensor *cubic(lc_tensor *x, bool far, int order)
{
    static const double near_is[3][4] = { { 1.25, -2.25, 0, 1 }, { 0, 3.75, -4.5, 0 }, { 0, 0, 7.5, -4.5 } };
    static const double far_is[3][4] = { { -0.75, 3.75, -6, 3 }, { 0, -2.25, 7.5, -6 }, { 0, 0, -4.5, 7.5 } };
    return polynomial(x, far ? far_is[order] : near_is[order]);
}

static int place(const source *s, neighbour *n, lc_tensor *index, int64_t size)
{
    lc_tensor *still = lc_detach(index);
    n->inside = lc_logical_and(lc_ge(still, LC_INTEGER(0)), lc_lt(still, LC_INTEGER(size)));
    n->index = lc_to(lc_where(n->inside, still, LC_INTEGER(0)), LC_i64, false, false, LC_ABSENT);
    return s && n->inside && n->index ? 0 : -1;
}
/* The neighbours of coordinate c along an axis. */
static int find(const source *s, lc_tensor *c, int64_t size, int mode, neighbour *n)
{
    double scale = (double)(s->align_corners ? size - 1 : size) / 2;
    if (!(c = in_elements(s, c, size))) return -1;
    if (mode == LC_GRID_BICUBIC) {
        lc_tensor *below = lc_floor(c), *t = lc_sub(c, below), *rest = lc_rsub(t, LC_INTEGER(1), LC_I(1));
        lc_tensor *x[] = { lc_add(t, LC_INTEGER(1)), t, rest, lc_add(rest, LC_INTEGER(1)) };
        for (int k = 0; k < 4; k++) {
            if (!x[k] || place(s, &n[k], padded(s, lc_add(below, LC_INTEGER(k - 1)), size), size) < 0) return -1;
            for (int order = 0; order < 3; order++) {
                double factor = order == 0 ? 1 : order == 1 ? (k < 2 ? scale : -scale) : scale * scale;
                n[k].weight[order] = lc_mul(cubic(x[k], k == 0 || k == 3, order), LC_NUMBER(factor));
            }
        }
        return 0;
    }
    lc_tensor *moves = slope_of_padding(s, c, size);
    if (!(c = padded(s, c, size))) return -1;
    if (mode == LC_GRID_NEAREST) {
        n[0].weight[0] =
            lc_ones(c->shape, c->ndim, LC_OF_DTYPE((lc_dtype)c->dtype), (lc_value){ .tag = LC_IS_device, .dev = c->device });
        return place(s, &n[0], lc_round(c), size);
    }
    lc_tensor *below = lc_floor(c), *t = lc_sub(c, below);
    if (!t || place(s, &n[0], below, size) < 0 || place(s, &n[1], lc_add(below, LC_INTEGER(1)), size) < 0) return -1;
    n[1].weight[0] = t, n[0].weight[0] = lc_rsub(t, LC_INTEGER(1), LC_I(1));
    n[1].weight[1] = moves ? lc_mul(moves, LC_NUMBER(scale))
                           : lc_full(t->shape, t->ndim, LC_NUMBER(scale), LC_OF_DTYPE((lc_dtype)t->dtype),
                                     (lc_value){ .tag = LC_IS_device, .dev = t->device });
    n[0].weight[1] = lc_neg(n[1].weight[1]);
    return 0;
}
/* in: (grad, image, positions, mode, padding, align_corners, ...) */
static int prepare(source *s, const lc_value *in, lc_tensor *image)
{
    lc_dtype   work = working_dtype((lc_dtype)image->dtype);
    lc_tensor *x = lc_to(image, work, false, false, LC_ABSENT), *grid = lc_to(in(2), work, false, false, LC_ABSENT);
    if (!x || !grid) return -1;
    *s = (source){
        .axes = x->ndim - 2, .padding = (int)in[4].i, .align_corners = in[5].b, .batch = x->shape[0], .channels = x->shape[1]
    };
    s->count = in[3].i == LC_GRID_BICUBIC ? 4 : in[3].i == LC_GRID_NEAREST ? 1 : 2, s->elements = s->positions = 1;
    for (int a = 0; a < s->axes; a++) {
        s->size[a] = x->shape[x->ndim - 1 - a], s->step[a] = s->elements, s->elements *= s->size[a];
        s->positions *= grid->shape[1 + a];
    }
    s->image = lc_reshape(x, (int64_t[]){ s->batch, s->channels, s->elements }, 3);
    for (int a = 0; a < s->axes; a++) {
        lc_tensor *c = lc_reshape(lc_select(grid, -1, a), (int64_t[]){ s->batch, s->positions }, 2);
        if (!s->image || !c || find(s, c, s->size[a], (int)in[3].i, s->around[a]) < 0) return -1;
    }
    return 0;
}

/* Neighbour k of every position: its index in the image (batch, positions), and its weight, differentiated `order` times per
 * axis, zero outside the image. NULL: zero. */
static lc_tensor *index_of(const source *s, int k)
{
    lc_tensor *index = NULL;
    for (int a = 0; a < s->axes; a++, k /= s->count) {
        lc_tensor *offset = lc_mul(s->around[a][k % s->count].index, LC_INTEGER(s->step[a]));
        index = a ? lc_add(index, offset) : offset;
    }
    return index;
}
static lc_tensor *weight_of(const source *s, int k, const int *order)
{
    lc_tensor *weight = NULL, *inside = NULL;
    for (int a = 0; a < s->axes; a++, k /= s->count) {
        const neighbour *n = &s->around[a][k % s->count];
        if (!n->weight[order[a]]) return NULL;
        weight = a ? lc_mul(weight, n->weight[order[a]]) : n->weight[order[a]];
        inside = a ? lc_logical_and(inside, n->inside) : n->inside;
    }
    return lc_where(inside, weight, LC_INTEGER(0));
}
static lc_tensor *plus(lc_tensor *a, lc_tensor *b) { return !a ? b : !b ? a : lc_add(a, b); }
static lc_tensor *times(lc_tensor *a, lc_tensor *b) { return a && b ? lc_mul(a, b) : NULL; }
static lc_tensor *as_given(lc_tensor *t, const lc_tensor *like) /* zeros for NULL */
{
    return t ? lc_to(lc_reshape(t, like->shape, like->ndim), (lc_dtype)like->dtype, false, false, LC_ABSENT) : zeros_like(like);
}

/* L = <gi, d_image> + <gg, d_grid>, where d_image is linear in grad, and d_grid in grad and the image. */
void grid_sample_backward_grad(lc_tensor *const *g, UNUSED lc_tensor *const *y, const lc_value *in, const bool *need,
                               lc_tensor **dx)
{
    lc_tensor *grad = in(0), *image = in(1), *grid = in(2), *gi = in[6].b && g[0] != LC_NONE ? g[0] : NULL;
    lc_tensor *gg = in[7].b && g[1] != LC_NONE ? g[1] : NULL, *of_grad = NULL, *of_image = NULL,
              *of_grid[AXES] = { NULL, NULL, NULL };
    source   s;
    unsigned failed = lc_failed_calls;
    if (gg) {
        if (prepare(&s, in, image) < 0) return;
        lc_dtype   work = (lc_dtype)s.image->dtype;
        lc_tensor *values =
            lc_reshape(lc_to(grad, work, false, false, LC_ABSENT), (int64_t[]){ s.batch, s.channels, s.positions }, 3);
        lc_tensor *along[AXES];
        int        taps = s.axes == 3 ? s.count * s.count * s.count : s.count * s.count;
        for (int a = 0; a < s.axes; a++)
            along[a] =
                lc_reshape(lc_to(lc_select(gg, -1, a), work, false, false, LC_ABSENT), (int64_t[]){ s.batch, s.positions }, 2);
        for (int k = 0; k < taps && failed == lc_failed_calls; k++) {
            lc_tensor *blend = NULL, *bend[AXES] = { NULL }, *seen = NULL;
            for (int a = 0; a < s.axes; a++) {
                int order[AXES] = { 0 };
                order[a] = 1;
                blend = plus(blend, times(along[a], weight_of(&s, k, order)));
                for (int b = 0; b < s.axes && need[2]; b++) {
                    int both[AXES] = { 0 };
                    both[a]++, both[b]++;
                    bend[a] = plus(bend[a], times(along[b], weight_of(&s, k, both)));
                }
            }
            lc_tensor *wide = lc_expand(lc_unsqueeze(index_of(&s, k), 1), (int64_t[]){ s.batch, s.channels, s.positions }, 3);
            bool       bent = bend[0] || bend[1] || bend[2];
            if ((need[0] && blend) || bent) seen = lc_gather(s.image, 2, wide, false);
            if (need[0] && blend) of_grad = plus(of_grad, times(seen, lc_unsqueeze(blend, 1)));
            if (need[1] && blend) {
                if (!of_image) of_image = zeros_like(s.image);
                of_image = lc_scatter_add_(of_image, 2, wide, times(values, lc_unsqueeze(blend, 1)));
            }
            lc_tensor *dot = bent ? lc_sum(times(values, seen), (int64_t[]){ 1 }, 1, false) : NULL;
            for (int a = 0; a < s.axes && bent; a++) of_grid[a] = plus(of_grid[a], times(bend[a], dot));
        }
    }
    lc_tensor *turns = NULL;
    if (failed != lc_failed_calls) return; /* NULL stood for zero above */
    if (need[2] && gg) {
        bool any = false;
        for (int a = 0; a < s.axes; a++) any |= of_grid[a] != NULL;
        for (int a = 0; a < s.axes && any; a++)
            if (!of_grid[a])
                of_grid[a] = lc_zeros((int64_t[]){ s.batch, s.positions }, 2, LC_OF_DTYPE((lc_dtype)s.image->dtype),
                                      (lc_value){ .tag = LC_IS_device, .dev = grid->device });
        if (any) turns = as_given(lc_stack(of_grid, s.axes, -1), grid);
    }
    lc_tensor *by_grad = of_grad ? as_given(of_grad, grad) : NULL;
    if (need[0]) dx[0] = as_given(plus(by_grad, gi ? lc__grid_sample(gi, grid, in[3].i, in[4].i, in[5].b) : NULL), grad);
    if (need[1]) dx[1] = as_given(of_image, image);
    if (need[2]) {
        lc_tensor *straight = gi ? lc__grid_sample_backward(grad, gi, grid, in[3].i, in[4].i, in[5].b, false, true).grid : NULL;
        dx[2] = as_given(plus(turns, straight), grid);
    }
}

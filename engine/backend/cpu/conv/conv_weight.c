/* The gradient of a convolution's weights: per tap, the sum over the grid of gradient times image.
 *
 * The image lies in a strip (conv_strip.c), the gradient beside it with the same pitch and zeros in the gaps between rows.
 * Then every weight is one dot product of two contiguous vectors, the image's at the offset of the tap. A dot tile
 * (conv_tiles.isa.o3.c) computes 5 x 5 of them at once from 10 loaded vectors, and nothing is transposed.
 *
 * A unit of work is a block of rows and channels of the weights and walks over all images, so no two units write the same
 * weights. If there are few blocks (LeNet has one), the images are split into parts with separate sums, added in order at
 * the end. The number of parts depends on shapes only.
 *
 * Image elements beside a gap are multiplied with zero. If such an element is infinite, the product is NaN: sums that are
 * not finite are recomputed without gaps. */
#include "conv.h"
#include <math.h>
#include <string.h>

enum {
    WIDEST = 1024,
    STRIP = 64 << 10,
    ROW_BLOCK = 64,
    UNITS = 8,
    SHORTEST = 20,
    LONG_ENOUGH = 768,
    MAX_COLUMNS = 16,
    MAX_TILE = 64
};

typedef struct {
    conv_grid          grid;
    conv_image         image, grad;
    const conv_dot_fn *dot;
    lc_dtype           dtype;
    int64_t            size, lanes, groups, rows, channels; /* rows, channels: per group */
    int64_t            row_block, row_blocks, channel_block, channel_blocks, parts, items;
    int64_t            strip_rows, strip_columns, strips_down, strips_across, images, weights;
    char              *sums; /* parts x weights */
    atomic_int         failed;
} weight_job;
typedef struct {
    char    *strip, *grad;
    int64_t *offset;
    int64_t  grad_step;
} weight_scratch;

static char *gradient_at(const conv_image *g, const conv_part *part, int64_t n, int64_t row)
{
    return g->data + (n * g->n_step + row * g->channel_step + part->plane * g->step[0] + part->row * g->step[1] +
                      part->column * g->step[2]) *
                         lc_size_of(g->dtype);
}
/* The gradient has no gaps and fills whole vectors: it is read in place. */
static bool gradient_is_flat(const weight_job *j, const conv_part *part, const conv_layout *l, int64_t rows)
{
    const conv_image *g = &j->grad;
    return g->dtype == j->dtype && g->step[2] == 1 && (g->step[1] == part->columns || part->rows == 1) &&
           rows >= j->dot->rows && l->pitch == part->columns && l->flat % j->lanes == 0;
}
/* Rows of one image, zero-padded to `length`. */
static void fill_gradient(const weight_job *j, const conv_part *part, int64_t pitch, int64_t length, const char *from,
                          int64_t rows, char *to, int64_t to_step)
{
    const conv_image *g = &j->grad;
    int64_t           size = j->size, from_size = lc_size_of(g->dtype);
    bool              across = g->channel_step == 1 && g->step[2] != 1 && rows > 1 && g->dtype == j->dtype;
    for (int64_t r = 0; across && r < part->rows; r++)
        lc_cpu_moves.transpose[size == 8](to + r * pitch * size, to_step * size, from + r * g->step[1] * size,
                                          g->step[2] * size, rows, part->columns, false);
    for (int64_t i = 0; i < rows; i++, to += to_step * size)
        for (int64_t r = 0; r < part->rows; r++) {
            int64_t end = r + 1 < part->rows ? pitch : length - r * pitch;
            if (!across)
                conv_move_row(j->dtype, to + r * pitch * size, size, g->dtype,
                              from + (i * g->channel_step + r * g->step[1]) * from_size, g->step[2] * from_size, part->columns);
            memset(to + (r * pitch + part->columns) * size, 0, (size_t)((end - part->columns) * size));
        }
}

typedef struct { /* the input of a dot tile: `images` of a part, image_step elements apart in both operands */
    conv_part   part;
    int64_t     images, image_step, pitch, a_step;
    const char *a, *x;
} dot_source;
#define EXACT(T)                                                                                                               \
    T sum = 0;                                                                                                                 \
    for (int64_t n = 0; n < s->images; n++)                                                                                    \
        for (int64_t r = 0; r < s->part.rows; r++)                                                                             \
            for (int64_t c = 0, at = n * s->image_step + r * s->pitch; c < s->part.columns; c++, at++)                         \
                sum += ((const T *)a)[at] * ((const T *)x)[at];                                                                \
    return (double)sum
static double exact_f32(const dot_source *s, const void *a, const void *x) { EXACT(float); }
static double exact_f64(const dot_source *s, const void *a, const void *x) { EXACT(double); }

/* Adds a tile's sums, from its row `skip` on, to the weights (rows, columns), to_step elements apart. */
#define ADD_TILE(T, exact)                                                                                                     \
    for (int64_t i = skip; i < rows; i++) {                                                                                    \
        const T *sum = (const T *)tile + i * width;                                                                            \
        T       *at = (T *)to + i * to_step, odd = 0;                                                                          \
        for (int64_t k = 0; k < columns; k++) odd += sum[k] - sum[k];                                                          \
        for (int64_t k = 0; k < columns && odd == 0; k++) at[k] += sum[k];                                                     \
        for (int64_t k = 0; k < columns && odd != 0; k++)                                                                      \
            at[k] += isfinite(sum[k]) ? sum[k] : (T)exact(s, (const T *)a + i * s->a_step, (const T *)s->x + offset[k]);       \
    }
static void add_tile(const weight_job *j, const dot_source *s, const char *a, const int64_t *offset, const void *tile,
                     int64_t skip, int64_t rows, int64_t columns, char *to, int64_t to_step)
{
    int width = j->dot->columns;
    if (j->dtype == LC_f32) ADD_TILE(float, exact_f32) else ADD_TILE(double, exact_f64)
}
/* Locates the item's images and gradients: in place, or copied side by side. Returns elements per channel of the image. */
static int64_t lay_item(const weight_job *j, int64_t n, int64_t channel, int64_t channels, int64_t row, int64_t rows,
                        const weight_scratch *s, dot_source *from, int64_t *length)
{
    conv_layout l;
    conv_part  *part = &from->part;
    char       *strip = s->strip;
    bool        as_it_is =
        from->images == 1 && conv_is_strip(&j->grid, &j->image, part, n, channel, channels, j->dtype, &l, s->offset, &strip);
    if (!as_it_is) conv_lay_out(&j->grid, &j->image, part, &l, s->offset);
    int64_t whole = (l.flat + j->lanes - 1) / j->lanes * j->lanes;
    from->image_step = (l.lead + l.pitch * (part->rows + tap_range(&j->grid.axis[1])) + 15) / 16 * 16;
    if (whole > from->image_step) from->image_step = whole;
    if (!as_it_is) l.channel_size += (from->images - 1) * from->image_step;
    for (int64_t i = 0; i < from->images && !as_it_is; i++)
        conv_fill_strip(&j->grid, &j->image, part, &l, n + i, channel, channels, j->dtype,
                        strip + i * from->image_step * j->size);
    from->pitch = l.pitch, from->x = strip, from->a = s->grad, from->a_step = s->grad_step;
    *length = (from->images - 1) * from->image_step + whole;
    if (from->images == 1 && gradient_is_flat(j, part, &l, rows))
        from->a = gradient_at(&j->grad, part, n, row), from->a_step = j->grad.channel_step;
    else
        for (int64_t i = 0; i < from->images; i++)
            fill_gradient(j, part, l.pitch, i + 1 < from->images ? from->image_step : whole,
                          gradient_at(&j->grad, part, n + i, row), rows, s->grad + i * from->image_step * j->size,
                          s->grad_step);
    return l.channel_size;
}
static void run_item(const weight_job *j, int64_t item, int64_t group, int64_t row, int64_t rows, int64_t channel,
                     int64_t channels, const weight_scratch *s, char *sums)
{
    int64_t   across = item % j->strips_across, rest = item / j->strips_across, down = rest % j->strips_down;
    int64_t   planes = j->grid.axis[0].count, taps = j->grid.taps, all = channels * taps, width = j->dot->columns;
    int64_t   n = rest / j->strips_down / planes * j->images, length, offset[MAX_COLUMNS];
    conv_part part = { .plane = rest / j->strips_down % planes,
                       .row = down * j->strip_rows,
                       .column = across * j->strip_columns };
    int64_t   left = j->grid.axis[1].count - part.row, wide = j->grid.axis[2].count - part.column;
    part.rows = left < j->strip_rows ? left : j->strip_rows, part.columns = wide < j->strip_columns ? wide : j->strip_columns;
    if (part.rows <= 0 || part.columns <= 0) return;
    dot_source from = { .part = part, .images = j->image.n - n < j->images ? j->image.n - n : j->images };
    int64_t    channel_size =
        lay_item(j, n, group * j->channels + channel, channels, group * j->rows + row, rows, s, &from, &length);
    _Alignas(64) char tile[MAX_TILE * sizeof(double)];
    for (int64_t c = 0; c < all; c += width) {
        int64_t columns = all - c < width ? all - c : width;
        for (int64_t k = 0, at; k < width; k++) {
            at = c + (k < columns ? k : columns - 1);
            offset[k] = at / taps * channel_size + s->offset[at % taps];
        }
        for (int64_t i = 0; i < rows; i += j->dot->rows) { /* the last tile overlaps its predecessor to be whole, if it can */
            int64_t     over = i + j->dot->rows - rows, at = over > 0 && i >= over ? i - over : i;
            char       *to = sums + (((group * j->rows + row + at) * j->channels + channel) * taps + c) * j->size;
            const char *a = from.a + at * from.a_step * j->size;
            j->dot->run(length, a, from.a_step, from.x, offset, tile);
            add_tile(j, &from, a, offset, tile, i - at, rows - at < j->dot->rows ? rows - at : j->dot->rows, columns, to,
                     j->channels * taps);
        }
    }
}
/* The largest strip of one image if several are side by side. */
static int64_t image_size(const weight_job *j)
{
    int64_t range = tap_range(&j->grid.axis[2]);
    int64_t height = j->strip_rows + tap_range(&j->grid.axis[1]);
    return ((j->strip_columns + range) * (height + 1) + CONV_SLACK) / 16 * 16;
}
static void run_units(void *ctx, int64_t begin, int64_t end)
{
    weight_job *j = ctx;
    int64_t     strip =
        (conv_strip_size(&j->grid, j->strip_rows, j->strip_columns) + (j->images - 1) * image_size(j)) * j->channel_block;
    int64_t        rows = j->row_block + j->dot->rows;
    weight_scratch s = { .grad_step = j->images * image_size(j) };
    size_t bytes = (size_t)((strip + rows * s.grad_step) * j->size + 64 + (j->grid.taps + 1) * (int64_t)sizeof(int64_t));
    char  *block = cpu_scratch(bytes);
    if (!block) {
        j->failed = 1;
        return;
    }
    s.grad = block, s.strip = block + rows * s.grad_step * j->size;
    s.offset = (int64_t *)(s.strip + (strip * j->size + 7) / 8 * 8);
    memset(block, 0, (size_t)(rows * s.grad_step * j->size)); /* zero the tile's surplus rows */
    for (int64_t u = begin; u < end; u++) {
        int64_t part = u % j->parts, rest = u / j->parts, channel = rest % j->channel_blocks * j->channel_block;
        int64_t row = rest / j->channel_blocks % j->row_blocks * j->row_block, group = rest / j->channel_blocks / j->row_blocks;
        int64_t rows_here = j->rows - row < j->row_block ? j->rows - row : j->row_block;
        int64_t channels = j->channels - channel < j->channel_block ? j->channels - channel : j->channel_block;
        for (int64_t item = j->items * part / j->parts;
             item < j->items * (part + 1) / j->parts && rows_here > 0 && channels > 0; item++)
            run_item(j, item, group, row, rows_here, channel, channels, &s, j->sums + part * j->weights * j->size);
    }
    cpu_scratch_free(block, bytes);
}

static void choose_dot(weight_job *j, const conv_kernels *kernels)
{
    double best = INFINITY;
    for (int k = 0; k < CONV_DOTS; k++) { /* a tile's time is the larger of its multiply-adds and its loads */
        const conv_dot_fn *dot = &kernels->dot[k];
        double             sums = dot->rows * dot->columns, reads = 1.25 * (dot->rows + dot->columns);
        double cost = (double)pieces(j->rows, dot->rows) * (double)pieces(j->channel_block * j->grid.taps, dot->columns) *
                      (sums > reads ? sums : reads);
        if (cost < best) best = cost, j->dot = dot;
    }
}
static void choose_cuts(weight_job *j)
{
    const conv_axis *axis = j->grid.axis;
    int64_t          down = axis[1].count, taps = j->grid.taps;
    j->row_block = conv_cut(j->rows, ROW_BLOCK), j->row_blocks = pieces(j->rows, j->row_block);
    int64_t least = (SHORTEST + taps - 1) / taps, wanted = pieces(UNITS, j->groups * j->row_blocks);
    j->channel_block = conv_cut(j->channels, j->channels / wanted > least ? j->channels / wanted : least);
    j->channel_block = conv_cut(j->channels, j->channel_block < ROW_BLOCK ? j->channel_block : ROW_BLOCK);
    j->channel_blocks = pieces(j->channels, j->channel_block);
    j->strip_columns = conv_cut(axis[2].count, WIDEST), j->strips_across = pieces(axis[2].count, j->strip_columns);
    while (down > 1 && (conv_strip_size(&j->grid, down, j->strip_columns) * j->channel_block > STRIP ||
                        j->row_block * down * j->strip_columns > STRIP))
        down = (down + 1) / 2;
    j->strip_rows = conv_cut(axis[1].count, down), j->strips_down = pieces(axis[1].count, j->strip_rows);
    int64_t flat = j->strip_rows * (j->strip_columns + axis[2].shift_max - axis[2].shift_min);
    j->images = j->grid.planes == 1 && flat < LONG_ENOUGH ? LONG_ENOUGH / flat : 1; /* small images side by side */
    if (j->images > (j->image.n + 7) / 8) j->images = (j->image.n + 7) / 8;
    if (j->images < 1) j->images = 1;
    j->items = pieces(j->image.n, j->images) * axis[0].count * j->strips_down * j->strips_across;
    int64_t units = j->groups * j->row_blocks * j->channel_blocks;
    j->parts = units < UNITS ? pieces(UNITS, units) : 1;
    if (j->parts > j->items) j->parts = j->items;
}
#define ADD_PART(T)                                                                                                            \
    for (int64_t i = 0; i < j.weights; i++) ((T *)j.sums)[i] += ((const T *)j.sums)[p * j.weights + i];
static int weights_by_dots(weight_job *job, const lc_conv_args *a, const conv_kernels *kernels)
{
    weight_job j = *job;
    conv_axis *axis = j.grid.axis;
    j.grid.taps = axis[0].taps * axis[1].taps * axis[2].taps, j.grid.planes = axis[0].taps * axis[1].phases * axis[2].phases;
    choose_cuts(&j), choose_dot(&j, kernels);
    size_t  bytes = (size_t)((j.parts ? j.parts : 1) * j.weights * j.size);
    int64_t units = j.groups * j.row_blocks * j.channel_blocks * j.parts;
    if (!(j.sums = cpu_scratch(bytes))) return conv_no_memory();
    memset(j.sums, 0, bytes);
    int64_t each = j.rows * j.channels * j.grid.taps * axis[0].count * axis[1].count * axis[2].count / 16 * j.image.n;
    if (units) cpu_parallel(units, CPU_GRAIN / (j.groups * each / units + 1) + 1, j.groups * each, run_units, &j);
    for (int64_t p = 1; p < j.parts; p++) {
        if (j.dtype == LC_f32) {
            ADD_PART(float)
        } else {
            ADD_PART(double)
        }
    }
    cpu_move((lc_dtype)a->weight->dtype, a->weight->data, lc_size_of(a->weight->dtype), j.dtype, j.sums, j.size, j.weights);
    cpu_scratch_free(j.sums, bytes);
    return j.failed ? conv_no_memory() : 0;
}

typedef struct {
    weight_job         *job;
    const lc_conv_args *a;
    const conv_kernels *kernels;
} weight_run;
#define STRATEGY(name)                                                                                                         \
    static int by_##name(void *run)                                                                                            \
    {                                                                                                                          \
        const weight_run *r = run;                                                                                             \
        return conv_weight_##name(r->job->dtype, r->a, r->job->grid.axis);                                                     \
    }
STRATEGY(winograd)
STRATEGY(depthwise_last)
STRATEGY(depthwise)
STRATEGY(im2col)
STRATEGY(outer)
static int by_dots(void *run)
{
    const weight_run *r = run;
    return weights_by_dots(r->job, r->a, r->kernels);
}
static const lc_strategy weight_gradients[] = { { "Winograd", NULL, by_winograd },
                                                { "depthwise, channels last", NULL, by_depthwise_last },
                                                { "depthwise planes", NULL, by_depthwise },
                                                { "im2col", NULL, by_im2col },
                                                { "outer products of pixels", NULL, by_outer },
                                                { "dot products over strips", NULL, by_dots } };

static int cpu_conv_weight(lc_dtype dtype, const void *args)
{
    const lc_conv_args *a = args;
    const conv_kernels *kernels = conv_kernels_of(dtype);
    weight_job          j = { CONV_SIDES(dtype, a), .lanes = kernels->lanes, .weights = a->weight->numel };
    if (!j.weights) return 0;
    int rc = conv_forward_axes(a, j.grid.axis, j.grad.size);
    if (!rc) rc = RUN_STRATEGIES("gradient of convolution weights", weight_gradients, &((weight_run){ &j, a, kernels }));
    conv_free_axes(a, j.grid.axis);
    return rc;
}
LC_CPU_RUN(_conv_weight, cpu_conv_weight, 1u << LC_f32 | 1u << LC_f64)

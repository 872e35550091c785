/* The gradient of a convolution's weights as a sum of outer products: per pixel of the gradient, its channels times the
 * image elements under the kernel.
 *
 * Both operands lie in channels-last strips. Lanes are channels of the gradient, and a tile (conv_tiles.isa.o3.c) multiplies
 * them with neighbouring image elements, one at a time: there are no horizontal sums, and no lane holds padding or a gap. If
 * the kernel's taps in a row are contiguous, so are their channels; then even few channels fill a tile (7 taps of 3 channels
 * are rows of 11 and 10). The loop is bound by multiply-adds; strips of about 200 pixels stay in L1, and sums are added to
 * memory once per strip.
 *
 * A unit of work is a block of channels on either side or, if there are few weights, a part of the images with separate
 * sums, added in order at the end. The number of parts depends on shapes only. */
#include "conv.h"
#include <string.h>

enum { PIXELS = 196, JOINED_PIXELS = 336, UNITS = 8, FEW_WEIGHTS = 160 << 10, ROW_BLOCK = 64, TOGETHER = 16 };

typedef struct {
    const conv_axis    *axis;
    conv_image          image, grad;
    const conv_kernels *kernels;
    lc_dtype            dtype;
    int64_t             size, groups, rows, channels, taps; /* rows, channels: per group */
    int64_t             row_block, row_blocks, channel_block, channel_blocks, parts, items;
    int64_t             strip_rows, strip_columns, strips_down, strips_across;
    int64_t             least[3], pitch, width, height, grad_pitch; /* the image's strip: pixel pitch, size */
    int64_t             sum_step, sum_block, part_size;             /* elements per row of sums, per block of rows, per part */
    bool                joined;                                     /* the taps of a row are contiguous in the strip */
    char               *sums;
    atomic_int          failed;
} outer_job;

/* Channels-last pixels of an image: rows y .. y + height, columns x .. x + width, zero outside the image. */
static void fill_pixels(const conv_image *from, lc_dtype dtype, int64_t n, int64_t channel, int64_t channels, int64_t z,
                        int64_t y, int64_t height, int64_t x, int64_t width, char *to, int64_t pitch)
{
    int64_t     size = lc_size_of(dtype), from_size = lc_size_of(from->dtype), pixel = pitch * size;
    int64_t     first = smaller(larger(0, -x), width), past = larger(first, smaller(width, from->size[2] - x)), rows = 1;
    const char *base = from->data + (n * from->n_step + channel * from->channel_step + z * from->step[0]) * from_size;
    bool        transposed = from->channel_step != 1 && from->step[2] == 1 && from->dtype == dtype;
    for (int64_t i = 0; i < height; i += rows, to += rows * width * pixel) {
        const char *line = base + ((y + i) * from->step[1] + (x + first) * from->step[2]) * from_size;
        rows = 1;
        if (z < 0 || z >= from->size[0] || y + i < 0 || y + i >= from->size[1]) {
            memset(to, 0, (size_t)(width * pixel));
            continue;
        }
        if (transposed && !first && past == width && from->step[1] == width) rows = smaller(height - i, from->size[1] - y - i);
        memset(to, 0, (size_t)(first * pixel)), memset(to + past * pixel, 0, (size_t)((width - past) * pixel));
        char *at = to + first * pixel;
        if (transposed)
            for (int64_t c = 0; c < channels; c += TOGETHER) /* as many rows as the prefetcher follows */
                lc_cpu_moves.transpose[size == 8](at + c * size, pixel, line + c * from->channel_step * size,
                                                  from->channel_step * size, rows * (past - first),
                                                  smaller(TOGETHER, channels - c), false);
        else
            for (int64_t c = first; c < past; c++, at += pixel, line += from->step[2] * from_size)
                conv_move_row(dtype, at, size, from->dtype, line, from->channel_step * from_size, channels);
    }
}
/* The source of the next strip, prefetched between tiles: runs of cache lines, one run per channel. */
typedef struct {
    const char *at;
    int64_t     step, runs, lines, line; /* step: bytes from run to run. line: the next one of the first run */
} outer_ahead;
typedef struct {
    char       *image, *grad;
    int64_t    *offset;
    outer_ahead ahead[2];
    int64_t     fetched; /* lines per tile */
} outer_scratch;
static void fetch(outer_ahead *a, int64_t lines)
{
    for (; lines > 0 && a->runs; lines--) {
        __builtin_prefetch(a->at + 64 * a->line, 0, 2);
        if (++a->line == a->lines) a->line = 0, a->runs--, a->at += a->step;
    }
}
static outer_ahead ahead_of(const conv_image *x, int64_t n, int64_t channel, int64_t channels, int64_t z, int64_t y,
                            int64_t height, int64_t column, int64_t width)
{
    int64_t size = lc_size_of(x->dtype), top = larger(0, y), bottom = smaller(x->size[1], y + height);
    int64_t left = larger(0, column), right = smaller(x->size[2], column + width);
    if (x->step[2] != 1 || n >= x->n || z < 0 || z >= x->size[0] || top >= bottom || left >= right) return (outer_ahead){ 0 };
    const char *at = x->data + (n * x->n_step + channel * x->channel_step + z * x->step[0] + top * x->step[1] + left) * size;
    int64_t     bytes = ((bottom - top - 1) * x->step[1] + right - left) * size;
    return (outer_ahead){ .at = at, .step = x->channel_step * size, .runs = channels, .lines = pieces(bytes, 64) };
}
typedef struct {
    int64_t group, row, rows, channel, channels;
    char   *sums;
} outer_unit;

/* The tiles of one strip for rows row .. row + rows of the gradient. */
static void add_columns(const outer_job *j, const outer_unit *u, outer_scratch *s, conv_tile *tile, int64_t x_row, int64_t row,
                        int64_t rows)
{
    const conv_axis *axis = j->axis;
    int64_t          lines = j->joined ? 1 : axis[2].taps, length = j->joined ? axis[2].taps * u->channels : u->channels;
    int64_t          tiles = pieces(length, j->kernels->rows), tap = 0;
    for (int64_t d = 0; d < axis[0].taps; d++)
        for (int64_t i = 0; i < axis[1].taps; i++)
            for (int64_t k = 0; k < lines; k++, tap++) {
                int64_t at = d * j->height * x_row + (axis[1].offset[i] - j->least[1]) * x_row +
                             (j->joined ? 0 : axis[2].offset[k] - j->least[2]) * j->pitch;
                for (int64_t t = 0; t < tiles; t++) {
                    int64_t first = length * t / tiles, past = length * (t + 1) / tiles;
                    int64_t to = j->joined ? tap * length + first : (u->channel + first) * j->taps + tap;
                    tile->a = s->image + (at + first) * j->size, tile->x = s->grad + row * j->size;
                    tile->out = u->sums + (to * j->sum_step + row) * j->size;
                    conv_run_tile(j->kernels, j->size, tile, past - first, rows, NULL, 0);
                    fetch(&s->ahead[0], s->fetched), fetch(&s->ahead[1], s->fetched);
                }
            }
}
static void add_products(const outer_job *j, const outer_unit *u, outer_scratch *s, int64_t rows, int64_t columns,
                         int64_t width)
{
    int64_t   x_row = width * j->pitch, length = j->joined ? j->axis[2].taps * u->channels : u->channels;
    int64_t   tiles = pieces(length, j->kernels->rows), wide = j->kernels->tile[length / tiles - 1].columns;
    conv_tile tile = { .channels = rows,
                       .taps = columns,
                       .channel_step = columns * j->grad_pitch,
                       .out_step = j->joined ? j->sum_step : j->taps * j->sum_step,
                       .offset = s->offset,
                       .a_channel = j->axis[1].step * x_row,
                       .a_tap = j->axis[2].step * j->pitch,
                       .add = true };
    if (wide != j->kernels->tile[pieces(length, tiles) - 1].columns) wide = u->rows;
    int64_t lines = j->joined ? j->taps / j->axis[2].taps : j->taps, most = 0;
    for (int i = 0; i < 2; i++) most = larger(most, s->ahead[i].runs * s->ahead[i].lines);
    s->fetched = pieces(most, lines * tiles * pieces(u->rows, wide));
    for (int64_t row = 0; row < u->rows; row += wide) /* the part of the gradient that a tile reads stays in L1 */
        add_columns(j, u, s, &tile, x_row, row, smaller(wide, u->rows - row));
}
typedef struct {
    int64_t n, z, row, rows, column, columns;
} outer_place;
static outer_place place_of(const outer_job *j, int64_t item)
{
    const conv_axis *axis = j->axis;
    int64_t          across = item % j->strips_across, rest = item / j->strips_across, planes = axis[0].count;
    outer_place      p = { .n = rest / j->strips_down / planes, .z = rest / j->strips_down % planes };
    p.row = rest % j->strips_down * j->strip_rows, p.column = across * j->strip_columns;
    p.rows = smaller(j->strip_rows, axis[1].count - p.row), p.columns = smaller(j->strip_columns, axis[2].count - p.column);
    return p;
}
static void run_item(const outer_job *j, int64_t item, bool last, const outer_unit *u, outer_scratch *s)
{
    const conv_axis *axis = j->axis;
    outer_place      p = place_of(j, item), next = place_of(j, item + 1);
    int64_t          row = u->group * j->rows + u->row, channel = u->group * j->channels + u->channel;
    if (p.rows <= 0 || p.columns <= 0) return;
    int64_t width = j->width - (j->strip_columns - p.columns) * axis[2].step;
    int64_t height = j->height - (j->strip_rows - p.rows) * axis[1].step;
    fill_pixels(&j->grad, j->dtype, p.n, row, u->rows, p.z, p.row, p.rows, p.column, p.columns, s->grad, j->grad_pitch);
    for (int64_t d = 0; d < axis[0].taps; d++)
        fill_pixels(&j->image, j->dtype, p.n, channel, u->channels, p.z * axis[0].step + axis[0].offset[d],
                    p.row * axis[1].step + j->least[1], height, p.column * axis[2].step + j->least[2], width,
                    s->image + d * j->height * width * j->pitch * j->size, j->pitch);
    s->ahead[0] = s->ahead[1] = (outer_ahead){ 0 };
    if (!last) {
        s->ahead[0] = ahead_of(&j->grad, next.n, row, u->rows, next.z, next.row, next.rows, next.column, next.columns);
        s->ahead[1] = ahead_of(&j->image, next.n, channel, u->channels, next.z * axis[0].step + axis[0].offset[0],
                               next.row * axis[1].step + j->least[1], height, next.column * axis[2].step + j->least[2], width);
    }
    add_products(j, u, s, p.rows, p.columns, width);
}
static void run_units(void *ctx, int64_t begin, int64_t end)
{
    outer_job *j = ctx;
    int64_t    image = j->axis[0].taps * j->height * j->width * j->pitch + CONV_SLACK;
    int64_t    grad = j->strip_rows * j->strip_columns * j->grad_pitch + CONV_SLACK;
    size_t     bytes = (size_t)((image + grad) * j->size) + (size_t)j->strip_columns * sizeof(int64_t);
    char      *block = cpu_scratch(bytes);
    if (!block) {
        j->failed = 1;
        return;
    }
    outer_scratch s = { .offset = (int64_t *)block, .image = block + j->strip_columns * (int64_t)sizeof(int64_t) };
    s.grad = s.image + image * j->size;
    memset(s.image, 0, (size_t)((image + grad) * j->size)); /* gaps between pixels are read too */
    for (int64_t k = 0; k < j->strip_columns; k++) s.offset[k] = k * j->grad_pitch;
    for (int64_t t = begin; t < end; t++) {
        int64_t    part = t % j->parts, rest = t / j->parts, block_of = rest / j->channel_blocks % j->row_blocks;
        outer_unit u = { .group = rest / j->channel_blocks / j->row_blocks, .row = block_of * j->row_block };
        u.channel = rest % j->channel_blocks * j->channel_block;
        u.rows = smaller(j->row_block, j->rows - u.row), u.channels = smaller(j->channel_block, j->channels - u.channel);
        u.sums = j->sums + (part * j->part_size + (u.group * j->row_blocks + block_of) * j->sum_block) * j->size;
        int64_t past = j->items * (part + 1) / j->parts;
        for (int64_t item = j->items * part / j->parts; item < past; item++)
            if (u.rows > 0 && u.channels > 0) run_item(j, item, item + 1 == past, &u, &s);
    }
    cpu_scratch_free(block, bytes);
}

/* ---- reduce the parts' sums and store the weights in their order: (row, channel, tap) ---- */
#define ADD_PARTS(T)                                                                                                           \
    for (int64_t p = 1; p < j->parts; p++)                                                                                     \
        for (int64_t i = begin; i < end; i++) ((T *)j->sums)[i] += ((const T *)j->sums)[p * j->part_size + i];
static void add_parts(void *ctx, int64_t begin, int64_t end)
{
    const outer_job *j = ctx;
    if (j->dtype == LC_f32) {
        ADD_PARTS(float)
    } else {
        ADD_PARTS(double)
    }
}
static int store_weights(const outer_job *j, lc_tensor *weight)
{
    int64_t length = j->channels * j->taps, size = j->size, across = j->axis[2].taps;
    size_t  bytes = (size_t)(j->row_block * length * size);
    char   *transposed = cpu_scratch(bytes);
    if (!transposed) return -1;
    for (int64_t b = 0; b < j->groups * j->row_blocks; b++) {
        int64_t row = b % j->row_blocks * j->row_block, rows = smaller(j->row_block, j->rows - row);
        char   *sums = j->sums + b * j->sum_block * size;
        if (rows <= 0) continue;
        if (!j->joined)
            lc_cpu_moves.transpose[size == 8](transposed, length * size, sums, j->sum_step * size, rows, length, false);
        else
            for (int64_t k = 0; k < length; k++) { /* (taps down, taps across, channel) */
                int64_t tap = k / j->channels, at = k % j->channels * j->taps + tap / across * across + tap % across;
                cpu_move(j->dtype, transposed + at * size, length * size, j->dtype, sums + k * j->sum_step * size, size, rows);
            }
        cpu_move((lc_dtype)weight->dtype,
                 weight->data + (b / j->row_blocks * j->rows + row) * length * lc_size_of(weight->dtype),
                 lc_size_of(weight->dtype), j->dtype, transposed, size, rows * length);
    }
    cpu_scratch_free(transposed, bytes);
    return 0;
}

/* ---- whether it suits, and the block sizes ---- */
static int64_t odd_lines(int64_t elements, int64_t lanes) /* spreads pixels over all cache sets */
{
    int64_t lines = pieces(elements, lanes);
    return (lines | 1) * lanes;
}
static void choose_cuts(outer_job *j)
{
    const conv_axis *axis = j->axis;
    int64_t          lanes = j->kernels->lanes, few = j->rows * j->channels * j->taps <= FEW_WEIGHTS;
    j->row_block = few ? j->rows : conv_cut(j->rows, ROW_BLOCK), j->row_blocks = pieces(j->rows, j->row_block);
    int64_t wanted = pieces(UNITS, j->groups * j->row_blocks);
    j->channel_block = few || j->joined ? j->channels : conv_cut(j->channels, larger(pieces(j->channels, wanted), 2 * lanes));
    j->channel_blocks = pieces(j->channels, j->channel_block);
    int64_t pixels = j->joined ? JOINED_PIXELS : PIXELS; /* joined: image rows are short and read again for each strip */
    j->strip_columns = conv_cut(axis[2].count, pixels), j->strips_across = pieces(axis[2].count, j->strip_columns);
    j->strip_rows = conv_cut(axis[1].count, larger(1, pixels / j->strip_columns));
    j->strips_down = pieces(axis[1].count, j->strip_rows);
    for (int d = 1; d < 3; d++) {
        int64_t least = axis[d].offset[0], most = least;
        for (int64_t k = 1; k < axis[d].taps; k++)
            least = smaller(least, axis[d].offset[k]), most = larger(most, axis[d].offset[k]);
        j->least[d] = least;
        *(d == 1 ? &j->height : &j->width) =
            ((d == 1 ? j->strip_rows : j->strip_columns) - 1) * axis[d].step + most - least + 1;
    }
    j->pitch = j->joined ? j->channels : odd_lines(j->channel_block, lanes), j->grad_pitch = odd_lines(j->row_block, lanes);
    int64_t length = j->joined ? axis[2].taps * j->channels : j->channel_block, tiles = pieces(length, j->kernels->rows);
    j->sum_step = larger(conv_padded(j->kernels, length / tiles, j->row_block),
                         conv_padded(j->kernels, pieces(length, tiles), j->row_block));
    if (j->channels % j->channel_block) /* the last block uses other tiles */
        for (int64_t rows = 1; rows <= j->kernels->rows; rows++)
            j->sum_step = larger(j->sum_step, conv_padded(j->kernels, rows, j->row_block));
    j->sum_block = j->channels * j->taps * j->sum_step, j->part_size = j->groups * j->row_blocks * j->sum_block;
    j->items = j->image.n * axis[0].count * j->strips_down * j->strips_across;
    int64_t units = j->groups * j->row_blocks * j->channel_blocks;
    j->parts = units < UNITS && few ? larger(1, smaller(pieces(UNITS, units), j->items)) : 1;
}
static bool suits(const outer_job *j)
{
    int64_t length = j->joined ? j->axis[2].taps * j->channels : j->channels, tiles = pieces(length, j->kernels->rows);
    int64_t rows = pieces(length, tiles), lanes = conv_padded(j->kernels, rows, j->rows);
    return length >= 5 && 10 * j->rows >= 6 * lanes;
}
int conv_weight_outer(lc_dtype dtype, const lc_conv_args *a, const conv_axis *axis)
{
    outer_job j = { CONV_SIDES(dtype, a), .axis = axis, .kernels = conv_kernels_of(dtype) };
    j.taps = axis[0].taps * axis[1].taps * axis[2].taps;
    j.joined = axis[2].taps > 1 && j.channels < 2 * j.kernels->rows;
    for (int64_t k = 1; k < axis[2].taps; k++) j.joined &= axis[2].offset[k] == axis[2].offset[0] + k;
    if (!suits(&j)) return LC_DECLINED;
    choose_cuts(&j);
    size_t bytes = (size_t)(j.parts * j.part_size * j.size);
    if (!(j.sums = cpu_scratch(bytes))) return conv_no_memory();
    memset(j.sums, 0, bytes);
    int64_t units = j.groups * j.row_blocks * j.channel_blocks * j.parts;
    int64_t work = j.grad.channels * j.channels * j.taps * axis[0].count * axis[1].count * axis[2].count / 16 * j.image.n;
    cpu_parallel(units, CPU_GRAIN / (work / units + 1) + 1, work, run_units, &j);
    if (j.parts > 1) cpu_parallel(j.part_size, CPU_GRAIN, j.part_size * j.parts, add_parts, &j);
    if (j.failed || store_weights(&j, a->weight) < 0) j.failed = 1;
    cpu_scratch_free(j.sums, bytes);
    return j.failed ? conv_no_memory() : 0;
}

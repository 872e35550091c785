/* The gradient of a convolution's weights for small images: few outputs, many weights, and each weight is a short sum.
 *
 * It is the matrix product gradient (rows, pixels) times panel (pixels, weights of a row). This file packs the panel
 * (im2col): per pixel, the elements under the kernel, for a block of channels small enough that the panel stays in L2 while
 * all rows are multiplied with it. The gradient is read in place, and sums go from registers straight to the weights. Sums
 * over strips (conv_weight_outer.c) would be cleared, accumulated and transposed in memory, which took three times as long
 * as the multiplications for images of 2 x 2 pixels. The loop is bound by multiply-adds and by writing the weights.
 *
 * A unit of work is a block of channels. Its size depends on shapes only. */
#include "conv.h"
#include <string.h>

enum { MOST_PIXELS = 1024, LEAST_ROWS = 32, PANEL = 64 << 10, UNITS = 8, LEAST_COLUMNS = 128, SPILL = 8 };

typedef struct {
    const conv_axis    *axis;
    conv_image          image, grad;
    const conv_kernels *kernels;
    lc_tensor          *weight;
    lc_dtype            dtype;
    int64_t             size, groups, rows, channels, taps, tiles; /* rows, channels, tiles: per group */
    int64_t             pixels, block, blocks, pitch;              /* pixels: per image. pitch: panel elements per pixel */
    int64_t             least[3], extent[3];                       /* the part of an image that kernels touch: start and size */
    bool                joined;                                    /* the taps of a row are contiguous */
    atomic_int          failed;
} panel_job;
typedef struct {
    char    *panel, *plane, *tile;
    int64_t *x_offset, *a_offset, *place,
        *tap; /* per pixel: offsets in panel, gradient and plane; per row of taps, or per tap: offset in the plane */
} panel_scratch;

/* One channel of one image with its padding. */
static void fill_plane(const panel_job *j, int64_t n, int64_t channel, char *to)
{
    const conv_image *x = &j->image;
    const int64_t    *extent = j->extent, *least = j->least;
    int64_t size = lc_size_of(x->dtype), first = larger(0, -least[2]), past = smaller(extent[2], x->size[2] - least[2]);
    memset(to, 0, (size_t)(extent[0] * extent[1] * extent[2] * j->size));
    for (int64_t d = 0; d < extent[0]; d++)
        for (int64_t h = 0; h < extent[1] && past > first; h++) {
            int64_t z = d + least[0], y = h + least[1];
            if (z < 0 || z >= x->size[0] || y < 0 || y >= x->size[1]) continue;
            conv_move_row(j->dtype, to + ((d * extent[1] + h) * extent[2] + first) * j->size, j->size, x->dtype,
                          x->data + (n * x->n_step + channel * x->channel_step + z * x->step[0] + y * x->step[1] +
                                     (first + least[2]) * x->step[2]) *
                                        size,
                          x->step[2] * size, past - first);
        }
}
/* The elements under the kernel, per pixel. A row of taps is copied with its successors, which the next copies overwrite. */
#define COPY(bytes)                                                                                                            \
    for (int64_t p = 0; p < j->pixels; p++, to += pitch)                                                                       \
        for (int64_t r = 0; r < rows; r++) memcpy(to + r * line, from + s->place[p] + s->tap[r], bytes)
#define EACH(T)                                                                                                                \
    for (int64_t p = 0; p < j->pixels; p++, to += pitch)                                                                       \
        for (int64_t k = 0; k < j->taps; k++) *(T *)(to + k * (int64_t)sizeof(T)) = *(const T *)(from + s->place[p] + s->tap[k])
static void fill_panel(const panel_job *j, const panel_scratch *s, char *to)
{
    int64_t     line = j->axis[2].taps * j->size, rows = j->taps / j->axis[2].taps, pitch = j->pitch * j->size;
    const char *from = s->plane;
    if (j->joined && line <= 16) COPY(16);
    else if (j->joined) COPY(32);
    else if (j->size == 4) EACH(uint32_t);
    else EACH(uint64_t);
}
static void run_tiles(const panel_job *j, const panel_scratch *s, int64_t group, int64_t channel, int64_t channels)
{
    int64_t           lanes = j->kernels->lanes, columns = channels * j->taps, all = j->channels * j->taps, size = j->size;
    static const char zeros[CONV_MAX_ROWS * sizeof(double)];
    for (int64_t t = 0; t < j->tiles; t++) {
        int64_t             row = j->rows * t / j->tiles, rows = j->rows * (t + 1) / j->tiles - row;
        const conv_tile_fn *fn = &j->kernels->strided[rows - 1];
        conv_tile           tile = { .channels = j->image.n,
                                     .taps = j->pixels,
                                     .channel_step = j->pixels * j->pitch,
                                     .x_step = lanes,
                                     .a_channel = j->grad.n_step,
                                     .a_row = j->grad.channel_step,
                                     .offset = s->x_offset,
                                     .a_offset = s->a_offset,
                                     .a = j->grad.data + (group * j->rows + row) * j->grad.channel_step * size,
                                     .start = zeros };
        for (int64_t c = 0, n; c < columns; c += n) {
            int64_t at = (group * j->rows + row) * all + channel * j->taps + c;
            bool    wide = 2 * (columns - c) > fn->columns, whole;
            n = wide ? fn->columns : lanes;
            whole = n <= columns - c && (lc_dtype)j->weight->dtype == j->dtype;
            tile.x = s->panel + c * size;
            tile.out = whole ? j->weight->data + at * size : s->tile, tile.out_step = whole ? all : n;
            (wide ? fn->wide : fn->one)(&tile);
            for (int64_t i = 0, to_size = lc_size_of(j->weight->dtype); i < rows && !whole; i++)
                cpu_move((lc_dtype)j->weight->dtype, j->weight->data + (at + i * all) * to_size, to_size, j->dtype,
                         s->tile + i * n * size, size, smaller(n, columns - c));
        }
    }
}
static void find_places(const panel_job *j, const panel_scratch *s)
{
    const conv_axis *axis = j->axis;
    const int64_t   *extent = j->extent, *step = j->grad.step;
    int64_t          p = 0, k = 0;
    for (int64_t z = 0; z < axis[0].count; z++)
        for (int64_t y = 0; y < axis[1].count; y++)
            for (int64_t x = 0; x < axis[2].count; x++, p++) {
                s->x_offset[p] = p * j->pitch, s->a_offset[p] = z * step[0] + y * step[1] + x * step[2];
                s->place[p] = ((z * axis[0].step * extent[1] + y * axis[1].step) * extent[2] + x * axis[2].step) * j->size;
            }
    for (int64_t d = 0; d < axis[0].taps; d++)
        for (int64_t h = 0; h < axis[1].taps; h++)
            for (int64_t w = 0; w < (j->joined ? 1 : axis[2].taps); w++)
                s->tap[k++] = (((axis[0].offset[d] - j->least[0]) * extent[1] + axis[1].offset[h] - j->least[1]) * extent[2] +
                               axis[2].offset[w] - j->least[2]) *
                              j->size;
}
static void run_units(void *ctx, int64_t begin, int64_t end)
{
    panel_job *j = ctx;
    int64_t    panel = j->image.n * j->pixels * j->pitch + CONV_SLACK, tile = CONV_MAX_ROWS * CONV_SLACK;
    int64_t    plane = j->extent[0] * j->extent[1] * j->extent[2] + CONV_SLACK;
    size_t     bytes = (size_t)((panel + tile + plane) * j->size) + (size_t)(3 * j->pixels + j->taps) * sizeof(int64_t);
    char      *block = cpu_scratch(bytes);
    if (!block) {
        j->failed = 1;
        return;
    }
    panel_scratch s = { .x_offset = (int64_t *)block };
    s.a_offset = s.x_offset + j->pixels, s.place = s.a_offset + j->pixels, s.tap = s.place + j->pixels;
    s.panel = (char *)(s.tap + j->taps), s.tile = s.panel + panel * j->size, s.plane = s.tile + tile * j->size;
    find_places(j, &s);
    for (int64_t u = begin; u < end; u++) {
        int64_t group = u / j->blocks, channel = u % j->blocks * j->block, channels = smaller(j->block, j->channels - channel);
        for (int64_t n = 0; n < j->image.n; n++)
            for (int64_t c = 0; c < channels; c++) {
                fill_plane(j, n, group * j->channels + channel + c, s.plane);
                fill_panel(j, &s, s.panel + (n * j->pixels * j->pitch + c * j->taps) * j->size);
            }
        if (channels > 0) run_tiles(j, &s, group, channel, channels);
    }
    cpu_scratch_free(block, bytes);
}
int conv_weight_im2col(lc_dtype dtype, const lc_conv_args *a, const conv_axis *axis)
{
    panel_job j = { CONV_SIDES(dtype, a), .axis = axis, .kernels = conv_kernels_of(dtype), .weight = a->weight };
    j.taps = axis[0].taps * axis[1].taps * axis[2].taps, j.pixels = axis[0].count * axis[1].count * axis[2].count;
    int64_t pixels = j.image.n * j.pixels;
    if (j.rows < LEAST_ROWS || j.grad.dtype != dtype || !pixels || pixels > MOST_PIXELS) return LC_DECLINED;
    for (int d = 0; d < 3; d++) {
        int64_t least = axis[d].offset[0], most = least;
        for (int64_t k = 1; k < axis[d].taps; k++)
            least = smaller(least, axis[d].offset[k]), most = larger(most, axis[d].offset[k]);
        j.least[d] = least, j.extent[d] = (axis[d].count - 1) * axis[d].step + most - least + 1;
    }
    j.joined = axis[2].taps * j.size <= SPILL * 4;
    for (int64_t k = 1; k < axis[2].taps; k++) j.joined &= axis[2].offset[k] == axis[2].offset[0] + k;
    j.tiles = pieces(j.rows, j.kernels->rows);
    int64_t wanted = j.channels / pieces(UNITS, j.groups), least = pieces(LEAST_COLUMNS, j.taps);
    j.block = smaller(larger(wanted, least), larger(1, PANEL / pixels / j.taps));
    if (j.block > 16) j.block -= j.block % 16;
    j.block = larger(1, smaller(j.block, j.channels)), j.blocks = pieces(j.channels, j.block);
    j.pitch = pieces(j.block * j.taps + SPILL, 16) * 16;
    int64_t units = j.groups * j.blocks, work = j.grad.channels * j.channels * j.taps * pixels / 16;
    cpu_parallel(units, CPU_GRAIN / (work / units + 1) + 1, work, run_units, &j);
    return j.failed ? conv_no_memory() : 0;
}

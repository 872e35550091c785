/* Convolution of small images with many channels, where a row of one image would fill a part of a vector.
 *
 * Results of several images lie side by side as one row of columns, and a strip has such a row for each channel and tap: what a matrix product
 * would read, for a block of channels and some images at a time. Tiles (conv_tiles.c) then read whole vectors, and a weight that was read serves all
 * those images. Every element is copied once per tap and block of rows, which pays where it is multiplied with many rows. Where an element of
 * the strip comes from is the same for all channels: a table of places, made once per task. */
#include "conv.h"
#include <string.h>

enum { AREA = 64, LEAST_ROWS = 32, COLUMNS = 128, FEWEST = 64, TASKS = 8 };

typedef struct {
    int64_t area, images, sets, step; /* area: results per image and plane. step: columns of a strip */
} small_cut;
static int64_t   pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }
static int64_t   smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static small_cut cut_of(const conv_job *j)
{
    small_cut c = { .area = j->grid.axis[1].count * j->grid.axis[2].count };
    int64_t   others = j->groups * j->grid.axis[0].count * pieces(j->tiles, j->tile_block);
    c.images = smaller(j->from.n, pieces(COLUMNS, c.area));
    while (c.images > 1 && c.images * c.area > FEWEST && pieces(j->from.n, c.images) * others < TASKS)
        c.images = pieces(c.images, 2);
    c.sets = pieces(j->from.n, c.images), c.step = pieces(c.images * c.area, 16) * 16;
    return c;
}
bool conv_is_small(const conv_job *j)
{
    return j->grid.taps && j->rows >= LEAST_ROWS && j->grid.axis[1].count * j->grid.axis[2].count <= AREA;
}

/* Places of the elements that a tap meets, from the first channel's start on; -1: padding. */
static void find_places(const conv_job *j, const small_cut *cut, int64_t n, int64_t images, int64_t plane, int64_t *place)
{
    const conv_axis  *axis = j->grid.axis;
    const conv_image *x = &j->from;
    for (int64_t d = 0; d < axis[0].taps; d++)
        for (int64_t h = 0; h < axis[1].taps; h++)
            for (int64_t w = 0; w < axis[2].taps; w++, place += cut->step) {
                int64_t *at = place, z = plane * axis[0].step + axis[0].offset[d];
                for (int64_t i = 0; i < images; i++)
                    for (int64_t r = 0; r < axis[1].count; r++)
                        for (int64_t c = 0; c < axis[2].count; c++) {
                            int64_t y = r * axis[1].step + axis[1].offset[h], v = c * axis[2].step + axis[2].offset[w];
                            bool    there = z >= 0 && z < x->size[0] && y >= 0 && y < x->size[1] && v >= 0 && v < x->size[2];
                            *at++ = there ? (n + i) * x->n_step + z * x->step[0] + y * x->step[1] + v * x->step[2] : -1;
                        }
                while (at < place + cut->step) *at++ = -1;
            }
}
#define FILL(T)                                                                                                                \
    for (int64_t k = 0; k < n; k++) ((T *)to)[k] = place[k] < 0 ? 0 : ((const T *)from)[place[k]]
static void fill_channel(const conv_job *j, int64_t channel, const int64_t *place, int64_t n, char *to)
{
    int64_t     size = lc_size_of(j->from.dtype);
    const char *from = j->from.data + channel * j->from.channel_step * size;
    if (j->from.dtype == LC_f32 && j->dtype == LC_f32) FILL(uint32_t);
    else if (j->from.dtype == LC_f64) FILL(uint64_t);
    else
        for (int64_t k = 0; k < n; k++, to += j->size)
            if (place[k] < 0) memset(to, 0, (size_t)j->size);
            else cpu_move(j->dtype, to, j->size, j->from.dtype, from + place[k] * size, size, 1);
}
static void store(const conv_job *j, const small_cut *cut, int64_t n, int64_t images, int64_t plane, int64_t row, int64_t rows,
                  const char *from, int64_t step)
{
    const conv_image *to = &j->to;
    int64_t           size = lc_size_of(to->dtype), columns = j->grid.axis[2].count;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < images; k++)
            for (int64_t r = 0; r < j->grid.axis[1].count; r++) {
                conv_part part = { .plane = plane, .row = r };
                conv_move_row(to->dtype, conv_target(to, &part, n + k, row + i), to->step[2] * size, j->dtype,
                              from + (i * step + k * cut->area + r * columns) * j->size, j->size, columns);
            }
}
static void run_task(const conv_job *j, const small_cut *cut, int64_t task, char *strip, char *result, int64_t *place,
                     int64_t *offset)
{
    int64_t blocks = pieces(j->tiles, j->tile_block), planes = j->grid.axis[0].count, taps = j->grid.taps;
    int64_t block = task % blocks, plane = task / blocks % planes, group = task / blocks / planes % j->groups;
    int64_t n = task / blocks / planes / j->groups * cut->images, images = smaller(cut->images, j->from.n - n);
    int64_t first = block * j->tile_block, past = smaller(first + j->tile_block, j->tiles), step = cut->step + CONV_SLACK;
    bool    wanted = !j->only;
    for (int64_t i = 0; i < images && !wanted; i++) wanted = j->only[n + i];
    if (!wanted || first >= past) return;
    find_places(j, cut, n, images, plane, place);
    for (int64_t k = 0; k < taps; k++) offset[k] = k * cut->step;
    for (int64_t c = 0, channels; c < j->channels; c += channels) {
        channels = smaller(j->channels - c, j->channel_block);
        for (int64_t i = 0; i < channels; i++)
            fill_channel(j, group * j->channels + c + i, place, taps * cut->step, strip + i * taps * cut->step * j->size);
        for (int64_t t = first; t < past; t++) {
            int64_t   row = conv_tile_start(j, t), rows = conv_tile_start(j, t + 1) - row;
            conv_tile tile = { .channels = channels,
                               .taps = taps,
                               .channel_step = taps * cut->step,
                               .out_step = step,
                               .a_channel = taps * rows,
                               .a_tap = rows,
                               .offset = offset,
                               .a = j->packed + ((group * j->rows + row) * j->channels + c * rows) * taps * j->size,
                               .x = strip,
                               .start = j->bias + (group * j->rows + row) * j->size,
                               .out = result + (row - conv_tile_start(j, first)) * step * j->size,
                               .add = c > 0 };
            conv_run_tile(j->kernels, j->size, &tile, rows, images * cut->area, NULL, 0);
        }
    }
    int64_t row = conv_tile_start(j, first);
    store(j, cut, n, images, plane, group * j->rows + row, conv_tile_start(j, past) - row, result, step);
}
static void run_tasks(void *ctx, int64_t begin, int64_t end)
{
    conv_job *j = ctx;
    small_cut cut = cut_of(j);
    int64_t   strip = j->channel_block * j->grid.taps * cut.step + CONV_SLACK, taps = j->grid.taps;
    int64_t   result = j->tile_block * j->kernels->rows * (cut.step + CONV_SLACK), table = taps * (cut.step + 1);
    size_t    bytes = (size_t)((strip + result) * j->size) + (size_t)table * sizeof(int64_t);
    char     *block = cpu_scratch(bytes);
    if (!block) {
        j->failed = 1;
        return;
    }
    int64_t *place = (int64_t *)block;
    char    *at = block + table * (int64_t)sizeof *place;
    memset(at + (strip - CONV_SLACK) * j->size, 0, (size_t)(CONV_SLACK * j->size));
    for (int64_t t = begin; t < end; t++) run_task(j, &cut, t, at, at + strip * j->size, place, place + taps * cut.step);
    cpu_scratch_free(block, bytes);
}
void conv_small(conv_job *j)
{
    small_cut cut = cut_of(j);
    int64_t   tasks = cut.sets * j->groups * j->grid.axis[0].count * pieces(j->tiles, j->tile_block);
    int64_t   each = j->tile_block * j->kernels->rows * j->channels * j->grid.taps * cut.step / 16 + 1;
    cpu_parallel(tasks, CPU_GRAIN / each + 1, tasks * each, run_tasks, j);
}

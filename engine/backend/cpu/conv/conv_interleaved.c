/* Convolution of small images with many channels. There, a row of one image would fill only part of a vector, and each
 * weight would be read for few results.
 *
 * Several images are interleaved: per channel, the strip holds the padded image with the elements of all images at one
 * position side by side. A row of results of all images is then contiguous, and so is the input under a tap, at one constant
 * offset. Nothing is copied per tap, and rows of 4 elements of 8 images are two whole vectors. With a stride, the image is
 * split into phases, as in conv_strip.c.
 *
 * Weights are read in place (a tile takes any stride between its rows): packing them would cost as much as multiplying them
 * with 32 results. The loop is bound by multiply-adds, then by reading the weights.
 *
 * A unit of work is a set of images, a group and a plane. Threads share the units if there are many, otherwise the tiles of
 * each unit. */
#include "conv.h"
#include <string.h>

enum { AREA = 64, LEAST_ROWS = 32, COLUMNS = 128, STRIP = 384 << 10, FEWEST = 16, UNITS = 8 };

typedef struct {
    const conv_job *conv;
    int64_t         images, units, channel_block;
    bool            dealt; /* units to threads */
    atomic_int      failed;
} small_job;
typedef struct {
    const small_job *job;
    int64_t          n, images, group, plane;          /* the unit: images n .. n + images */
    int64_t          row, plane_size, channel_size;    /* of the strip, in elements; row: of all images */
    int64_t          lines, line_vectors, result_step; /* results: lines of whole vectors */
    int64_t          channel, channels;                /* the current block */
    int64_t         *offset, *a_offset;
    char            *strip, *result;
} small_unit;

static int64_t result_lines(const conv_job *c) { return tap_range(&c->grid.axis[2]) ? c->grid.axis[1].count : 1; }
static int64_t line_vectors(const conv_job *c, int64_t images)
{
    const conv_axis *axis = c->grid.axis;
    return pieces(axis[1].count * axis[2].count / result_lines(c) * images, c->kernels->lanes);
}
static int64_t place_size(const conv_job *c) /* strip elements per channel and image */
{
    const conv_axis *axis = c->grid.axis;
    return c->grid.planes * (axis[1].count + tap_range(&axis[1])) * (axis[2].count + tap_range(&axis[2]));
}

/* ---- the strip ---- */
#define MOVE(T)                                                                                                                \
    for (int64_t i = 0; i < n; i++) ((T *)to)[i * to_step] = ((const T *)from)[i * from_step]
static inline void move(lc_dtype to_dtype, char *to, int64_t to_step, lc_dtype dtype, const char *from, int64_t from_step,
                        int64_t n) /* steps in elements */
{
    int64_t size = lc_size_of(dtype), to_size = lc_size_of(to_dtype);
    if (to_dtype != dtype) cpu_move(to_dtype, to, to_step * to_size, dtype, from, from_step * size, n);
    else if (size == 4) MOVE(uint32_t);
    else if (size == 8) MOVE(uint64_t);
    else MOVE(uint16_t);
}
static void fill_plane(const small_unit *u, int64_t channel, int64_t z, int64_t row_phase, int64_t phase, char *to)
{
    const conv_job   *c = u->job->conv;
    const conv_image *x = &c->from;
    const conv_axis  *rows = &c->grid.axis[1], *columns = &c->grid.axis[2];
    int64_t           size = lc_size_of(x->dtype), height = rows->count + tap_range(rows), residue = columns->residue[phase];
    int64_t           first = larger(0, columns->shift_min);
    int64_t           past = smaller(pieces(x->size[2] - residue, columns->step), columns->count + columns->shift_max);
    for (int64_t i = 0; i < height && past > first; i++, to += u->row * c->size) {
        int64_t y = (rows->shift_min + i) * rows->step + rows->residue[row_phase];
        if (y < 0 || y >= x->size[1]) continue;
        const char *from = x->data + (u->n * x->n_step + channel * x->channel_step + z * x->step[0] + y * x->step[1] +
                                      (first * columns->step + residue) * x->step[2]) *
                                         size;
        char *at = to + (first - columns->shift_min) * u->images * c->size;
        for (int64_t k = 0; k < u->images; k++, from += x->n_step * size, at += c->size)
            move(c->dtype, at, u->images, x->dtype, from, columns->step * x->step[2], past - first);
    }
}
static void fill_channels(void *ctx, int64_t begin, int64_t end)
{
    const small_unit *u = ctx;
    const conv_job   *c = u->job->conv;
    const conv_axis  *axis = c->grid.axis;
    char             *plane = u->strip + begin * u->channel_size * c->size;
    memset(plane, 0, (size_t)((end - begin) * u->channel_size * c->size));
    for (int64_t i = begin; i < end; i++)
        for (int64_t d = 0; d < axis[0].taps; d++)
            for (int64_t q = 0; q < axis[1].phases; q++)
                for (int64_t p = 0; p < axis[2].phases; p++, plane += u->plane_size * c->size) {
                    int64_t z = u->plane * axis[0].step + axis[0].offset[d];
                    if (z >= 0 && z < c->from.size[0]) fill_plane(u, u->group * c->channels + u->channel + i, z, q, p, plane);
                }
}

/* ---- tiles ---- */
static int64_t vector_at(const small_unit *u, int64_t v) /* start of a result vector in the strip */
{
    return v / u->line_vectors * u->row + v % u->line_vectors * u->job->conv->kernels->lanes;
}
static void store_rows(const small_unit *u, int64_t row, int64_t rows)
{
    const conv_job   *c = u->job->conv;
    const conv_image *to = &c->to;
    int64_t           size = lc_size_of(to->dtype), columns = c->grid.axis[2].count, down = c->grid.axis[1].count;
    int64_t           line = u->lines > 1 ? u->line_vectors * c->kernels->lanes : columns * u->images;
    conv_part         part = { .plane = u->plane };
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < u->images; k++) {
            char *at = conv_target(to, &part, u->n + k, u->group * c->rows + row + i);
            for (int64_t r = 0; r < down; r++)
                move(to->dtype, at + r * to->step[1] * size, to->step[2], c->dtype,
                     u->result + ((row + i) * u->result_step + r * line + k) * c->size, u->images, columns);
            conv_finish_rows(c, at, down, columns);
        }
}
static void run_tiles(void *ctx, int64_t begin, int64_t end)
{
    const small_unit   *u = ctx;
    const conv_job     *c = u->job->conv;
    const conv_kernels *kernels = c->kernels;
    int64_t             vectors = u->lines * u->line_vectors, size = c->size;
    for (int64_t t = begin; t < end; t++) {
        int64_t             row = conv_tile_start(c, t), rows = conv_tile_start(c, t + 1) - row;
        const conv_tile_fn *fn = &kernels->strided[rows - 1];
        conv_tile           tile = { .channels = u->channels,
                                     .taps = c->grid.taps,
                                     .channel_step = u->channel_size,
                                     .out_step = u->result_step,
                                     .a_channel = c->weight_channel,
                                     .a_row = c->weight_row,
                                     .offset = u->offset,
                                     .a_offset = u->a_offset,
                                     .a = c->weight +
                                          (u->group * c->weight_group + row * c->weight_row + u->channel * c->weight_channel) * size,
                                     .start = c->bias + (u->group * c->rows + row) * size,
                                     .add = u->channel > 0 };
        for (int64_t v = 0, wide = fn->columns / kernels->lanes, n; v < vectors; v += n) {
            int64_t at = vector_at(u, v), last = vector_at(u, v + wide - 1) - at;
            tile.x_step = wide > 1 ? last / (wide - 1) : 0, n = v + wide <= vectors ? wide : 1;
            for (int64_t i = 1; i < wide && n > 1; i++)
                if (vector_at(u, v + i) - at != i * tile.x_step) n = 1;
            tile.x = u->strip + at * size;
            tile.out = u->result + (row * u->result_step + v * kernels->lanes) * size;
            if (n > 1) fn->wide(&tile);
            else fn->one(&tile);
        }
        if (u->channel + u->channels == c->channels) store_rows(u, row, rows);
    }
}

/* ---- units ---- */
static void lay_out(small_unit *u)
{
    const conv_job  *c = u->job->conv;
    const conv_axis *axis = c->grid.axis;
    const int64_t   *tap = c->weight_tap;
    int64_t          k = 0, row = (axis[2].count + tap_range(&axis[2])) * u->images;
    u->row = row, u->plane_size = row * (axis[1].count + tap_range(&axis[1]));
    u->channel_size = u->plane_size * c->grid.planes;
    u->lines = result_lines(c), u->line_vectors = line_vectors(c, u->images);
    u->result_step = u->lines * u->line_vectors * c->kernels->lanes;
    for (int64_t d = 0; d < axis[0].taps; d++)
        for (int64_t h = 0; h < axis[1].taps; h++)
            for (int64_t w = 0; w < axis[2].taps; w++, k++) {
                int64_t plane = (d * axis[1].phases + axis[1].phase[h]) * axis[2].phases + axis[2].phase[w];
                u->offset[k] = plane * u->plane_size + (axis[1].shift[h] - axis[1].shift_min) * row +
                               (axis[2].shift[w] - axis[2].shift_min) * u->images;
                u->a_offset[k] = axis[0].at[d] * tap[0] + axis[1].at[h] * tap[1] + axis[2].at[w] * tap[2];
            }
}
static void each(const small_job *j, int64_t n, int64_t cost, void (*fn)(void *, int64_t, int64_t), small_unit *u)
{
    if (j->dealt) fn(u, 0, n);
    else cpu_parallel(n, CPU_GRAIN * n / (cost + 1) + 1, cost, fn, u);
}
static void run_unit(const small_job *j, int64_t unit, small_unit *u)
{
    const conv_job *c = j->conv;
    int64_t         planes = c->grid.axis[0].count;
    u->plane = unit % planes, u->group = unit / planes % c->groups, u->n = unit / planes / c->groups * j->images;
    u->images = smaller(j->images, c->from.n - u->n);
    bool wanted = !c->only && u->images > 0;
    for (int64_t i = 0; i < u->images && !wanted; i++) wanted = c->only[u->n + i];
    if (!wanted) return;
    lay_out(u);
    for (u->channel = 0; u->channel < c->channels; u->channel += u->channels) {
        u->channels = smaller(j->channel_block, c->channels - u->channel);
        memset(u->strip + u->channels * u->channel_size * c->size, 0, (size_t)(CONV_SLACK * c->size));
        each(j, u->channels, u->channels * u->channel_size, fill_channels, u);
        each(j, c->tiles, c->rows * u->channels * c->grid.taps * u->result_step / 16, run_tiles, u);
    }
}
static void run_units(void *ctx, int64_t begin, int64_t end)
{
    small_job      *j = ctx;
    const conv_job *c = j->conv;
    int64_t         strip = j->channel_block * place_size(c) * j->images + CONV_SLACK, taps = c->grid.taps;
    int64_t         result = c->rows * result_lines(c) * line_vectors(c, j->images) * c->kernels->lanes;
    size_t          bytes = (size_t)((strip + result) * c->size) + (size_t)(2 * taps) * sizeof(int64_t);
    char           *block = cpu_scratch(bytes);
    if (!block) {
        j->failed = 1;
        return;
    }
    small_unit u = { .job = j, .offset = (int64_t *)block };
    u.a_offset = u.offset + taps, u.result = (char *)(u.a_offset + taps), u.strip = u.result + result * c->size;
    for (int64_t i = begin; i < end; i++) run_unit(j, i, &u);
    cpu_scratch_free(block, bytes);
}
bool conv_suits_interleaved(const conv_job *c)
{
    return c->grid.taps && c->channels && c->rows >= LEAST_ROWS && c->grid.axis[1].count * c->grid.axis[2].count <= AREA;
}
int conv_interleaved(const conv_job *c)
{
    small_job j = { .conv = c };
    int64_t   n = c->from.n, others = c->groups * c->grid.axis[0].count, best = INT64_MAX, size = place_size(c) * c->size;
    int64_t   most = larger(1, COLUMNS / (c->grid.axis[1].count * c->grid.axis[2].count));
    for (int64_t images = 1; images <= smaller(n, most); images++) { /* fewest vectors, then fewest passes */
        int64_t sets = pieces(n, images), last = n - (sets - 1) * images;
        int64_t vectors = (sets - 1) * line_vectors(c, images) + line_vectors(c, last);
        int64_t cost = 8 * vectors * result_lines(c) + sets;
        if (images > 1 && size * images * FEWEST > STRIP) break;
        if (cost <= best) best = cost, j.images = images;
    }
    j.units = pieces(n, j.images) * others, j.dealt = j.units >= UNITS;
    j.channel_block = conv_cut(c->channels, larger(FEWEST, STRIP / (size * j.images)));
    int64_t cost = c->rows * c->channels * c->grid.taps * c->grid.axis[1].count * c->grid.axis[2].count / 16 * n * others;
    if (j.dealt) cpu_parallel(j.units, 1, cost, run_units, &j);
    else run_units(&j, 0, j.units);
    return j.failed ? -1 : 0;
}

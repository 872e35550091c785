/* Strips: a part of an image in the layout that tiles read.
 *
 * One flat index walks the output grid: row r, column t is r * pitch + t, gaps between rows included. The rows of the strip
 * have the same `pitch`, so the input under a tap lies at one constant offset from the flat index, through all rows. Padding
 * is zeros at the ends of rows. The zeros at the right of a row are also those at the left of the next row, so a 3x3 kernel
 * with padding costs one extra column, not two. With a stride, the image is split into phases (every second row and column,
 * and so on), each a plane of the strip; within a phase the stride is one. Every tap of the first of three dimensions has
 * its own plane.
 *
 * A strip accepts any strides and dtype as input, holds what one task needs, and stays in the cache. */
#include "conv.h"
#include <string.h>

conv_image conv_image_of(const lc_tensor *t, int dims)
{
    conv_image x = { .data = t->data, .dtype = (lc_dtype)t->dtype, .n = t->shape[0], .channels = t->shape[1] };
    x.n_step = t->stride[0], x.channel_step = t->stride[1];
    x.begin = t->storage ? t->storage->data : t->data, x.end = t->storage ? x.begin + t->storage->bytes : t->data;
    for (int d = 0; d < 3; d++) x.size[d] = 1, x.step[d] = 0;
    for (int d = 0; d < dims; d++) x.size[3 - dims + d] = t->shape[2 + d], x.step[3 - dims + d] = t->stride[2 + d];
    return x;
}

int conv_axis_init(conv_axis *a, int64_t kernel, int64_t count, int64_t step)
{
    *a = (conv_axis){ .count = count, .step = step };
    a->offset = cpu_scratch((size_t)(5 * kernel + 1) * sizeof(int64_t));
    if (!a->offset) return -1;
    a->at = a->offset + kernel, a->shift = a->at + kernel, a->phase = a->shift + kernel, a->residue = a->phase + kernel;
    return 0;
}
void conv_axis_free(conv_axis *a, int64_t kernel)
{
    if (a->offset) cpu_scratch_free(a->offset, (size_t)(5 * kernel + 1) * sizeof(int64_t));
}
void conv_axis_add(conv_axis *a, int64_t offset, int64_t at)
{
    int64_t k = a->taps++, residue = (offset % a->step + a->step) % a->step, shift = (offset - residue) / a->step, phase = 0;
    while (phase < a->phases && a->residue[phase] != residue) phase++;
    if (phase == a->phases) a->residue[a->phases++] = residue;
    a->offset[k] = offset, a->at[k] = at, a->shift[k] = shift, a->phase[k] = phase;
    if (!k || shift < a->shift_min) a->shift_min = shift;
    if (!k || shift > a->shift_max) a->shift_max = shift;
}

/* End of the columns of phase p that a part needs, counted in the phase; at least layout->first. */
static int64_t phase_end(const conv_axis *a, int64_t p, int64_t size, const conv_part *part, int64_t first)
{
    int64_t there = (size - a->residue[p] + a->step - 1) / a->step;
    return larger(first, smaller(there, part->column + part->columns + a->shift_max));
}
int64_t conv_strip_size(const conv_grid *g, int64_t rows, int64_t columns)
{
    int64_t range = tap_range(&g->axis[2]), height = rows + tap_range(&g->axis[1]);
    int64_t plane = (columns + range) * (height + 1) + CONV_SLACK;
    return plane * larger(g->planes, 1);
}
void conv_lay_out(const conv_grid *g, const conv_image *x, const conv_part *part, conv_layout *to, int64_t *offset)
{
    const conv_axis *rows = &g->axis[1], *columns = &g->axis[2];
    int64_t          least = part->column + columns->shift_min, past = part->column + part->columns + columns->shift_max;
    int64_t          height = part->rows + tap_range(rows), k = 0;
    to->first = smaller(larger(0, least), past);
    to->pitch = larger(part->columns, past - to->first);
    for (int64_t p = 0; p < columns->phases; p++)
        to->pitch = larger(to->pitch, phase_end(columns, p, x->size[2], part, to->first) - least);
    to->lead = to->first - least;
    to->plane_size = to->lead + to->pitch * height + CONV_SLACK;
    to->channel_size = to->plane_size * larger(g->planes, 1);
    to->flat = (part->rows - 1) * to->pitch + part->columns;
    for (int64_t d = 0; d < g->axis[0].taps; d++)
        for (int64_t i = 0; i < rows->taps; i++)
            for (int64_t j = 0; j < columns->taps; j++) {
                int64_t plane = (d * rows->phases + rows->phase[i]) * columns->phases + columns->phase[j];
                offset[k++] = plane * to->plane_size + to->lead + (rows->shift[i] - rows->shift_min) * to->pitch +
                              columns->shift[j] + part->column - to->first;
            }
}

/* The rows of this image already have a strip's layout: no padding, no phases, no conversion. Reads past the last row must
 * stay inside the image's memory. */
bool conv_is_strip(const conv_grid *g, const conv_image *x, const conv_part *part, int64_t n, int64_t first, int64_t channels,
                   lc_dtype dtype, conv_layout *to, int64_t *offset, char **data)
{
    const conv_axis *depth = &g->axis[0], *rows = &g->axis[1], *columns = &g->axis[2];
    int64_t row = part->row + rows->shift_min, column = part->column + columns->shift_min, z = part->plane * depth->step, k = 0;
    int64_t past_row = part->row + part->rows + rows->shift_max, past = part->column + part->columns + columns->shift_max;
    int64_t size = lc_size_of(dtype), range = tap_range(columns);
    if (x->dtype != dtype || x->step[2] != 1 || rows->step != 1 || columns->step != 1 || !g->taps || !channels) return false;
    if (row < 0 || column < 0 || past_row > x->size[1] || past > x->size[2] || x->step[1] < part->columns) return false;
    if (x->step[1] > part->columns + range || x->channel_step < 0) return false;
    for (int64_t d = 0; d < depth->taps; d++)
        if (z + depth->offset[d] < 0 || z + depth->offset[d] >= x->size[0]) return false;
    *to = (conv_layout){ .pitch = x->step[1], .channel_size = x->channel_step, .first = part->column };
    to->flat = (part->rows - 1) * to->pitch + part->columns;
    char   *start = x->data + (n * x->n_step + first * x->channel_step) * size;
    int64_t furthest = 0;
    for (int64_t d = 0; d < depth->taps; d++)
        for (int64_t i = 0; i < rows->taps; i++)
            for (int64_t j = 0; j < columns->taps; j++) {
                int64_t at = (z + depth->offset[d]) * x->step[0] + (part->row + rows->shift[i]) * x->step[1] + part->column +
                             columns->shift[j];
                offset[k++] = at, furthest = larger(furthest, at);
            }
    if (start + ((channels - 1) * x->channel_step + furthest + to->flat + CONV_SLACK) * size > x->end) return false;
    return *data = start, true;
}

void conv_move_row(lc_dtype to, char *dst, int64_t dst_step, lc_dtype from, const char *src, int64_t src_step, int64_t n)
{
    int64_t size = lc_size_of(to);
    if (to != from || size != 4 || dst_step != 4) cpu_move(to, dst, dst_step, from, src, src_step, n);
    else if (src_step == 4) memcpy(dst, src, (size_t)n * 4);
    else if (src_step == 0) {
        uint32_t one, *all = (uint32_t *)dst;
        memcpy(&one, src, 4);
        for (int64_t i = 0; i < n; i++) all[i] = one;
    } else
        for (int64_t i = 0; i < n; i++) memcpy(dst + 4 * i, src + src_step * i, 4);
}

/* Rows of one plane: the source of each row, or padding. */
typedef struct {
    const conv_grid   *g;
    const conv_image  *x;
    const conv_part   *part;
    const conv_layout *layout;
    int64_t            size, height, length, column_step; /* of element, plane, row; column_step: between elements */
    int64_t            row_phase, at, from; /* the plane's offset in the strip, and its first column in the image */
    bool               there;
} plane_rows;
static bool row_source(const plane_rows *r, int64_t i, int64_t *from)
{
    const conv_axis *rows = &r->g->axis[1];
    int64_t          y = (r->part->row + rows->shift_min + i) * rows->step + rows->residue[r->row_phase];
    *from = r->from + y * r->x->step[1];
    return r->there && y >= 0 && y < r->x->size[1];
}
static void fill_plane(const plane_rows *r, int64_t channels, lc_dtype dtype, char *to)
{
    const conv_image  *x = r->x;
    const conv_layout *l = r->layout;
    int64_t            size = r->size, from_size = lc_size_of(x->dtype), from;
    bool across = x->channel_step == 1 && r->column_step != 1 && channels > 1 && x->dtype == dtype && (size == 4 || size == 8);
    bool merged =
        r->column_step == 1 && x->dtype == dtype && r->length == l->pitch && x->step[1] * r->g->axis[1].step == l->pitch;
    for (int64_t c = 0; c < channels; c++) {
        char *plane = to + (c * l->channel_size + r->at) * size, *row = plane + l->lead * size;
        memset(plane, 0, (size_t)(l->lead * size));
        memset(row + l->pitch * r->height * size, 0, (size_t)(CONV_SLACK * size));
        for (int64_t i = 0, n = 1; i < r->height; i += n, row += n * l->pitch * size) {
            n = 1;
            if (!row_source(r, i, &from)) {
                memset(row, 0, (size_t)(l->pitch * size));
                continue;
            }
            const char *source = x->data + (from + c * x->channel_step) * from_size;
            if (merged) {
                for (int64_t next; i + n < r->height && row_source(r, i + n, &next);) n++;
                memcpy(row, source, (size_t)(n * l->pitch * size));
                continue;
            }
            if (!across) conv_move_row(dtype, row, size, x->dtype, source, r->column_step * from_size, r->length);
            memset(row + r->length * size, 0, (size_t)((l->pitch - r->length) * size));
        }
    }
    for (int64_t i = 0; across && i < r->height; i++)
        if (row_source(r, i, &from))
            lc_cpu_moves.transpose[size == 8](to + (r->at + l->lead + i * l->pitch) * size, l->channel_size * size,
                                              x->data + from * size, r->column_step * size, channels, r->length, false);
}
void conv_fill_strip(const conv_grid *g, const conv_image *x, const conv_part *part, const conv_layout *layout, int64_t n,
                     int64_t first, int64_t channels, lc_dtype dtype, char *to)
{
    const conv_axis *depth = &g->axis[0], *rows = &g->axis[1], *columns = &g->axis[2];
    plane_rows       r = { .g = g, .x = x, .part = part, .layout = layout, .size = lc_size_of(dtype) };
    r.height = part->rows + tap_range(rows), r.column_step = columns->step * x->step[2];
    for (int64_t d = 0; d < depth->taps; d++) {
        int64_t z = part->plane * depth->step + depth->offset[d];
        r.there = z >= 0 && z < x->size[0];
        for (r.row_phase = 0; r.row_phase < rows->phases; r.row_phase++)
            for (int64_t p = 0; p < columns->phases; p++, r.at += layout->plane_size) {
                r.length = phase_end(columns, p, x->size[2], part, layout->first) - layout->first;
                r.from = n * x->n_step + first * x->channel_step + z * x->step[0] +
                         (layout->first * columns->step + columns->residue[p]) * x->step[2];
                fill_plane(&r, channels, dtype, to);
            }
    }
}

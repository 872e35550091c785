/* Winograd convolution for float32 and kernels of 3 to 5 taps in a row (or in each phase of it: 7 taps with stride 2 are
 * phases of 4 and 3).
 *
 * The transforms F(4,3), F(4,4) and F(4,5) are one-dimensional: each row of the image becomes 6 to 8 rows of values at
 * evaluation points (conv_winograd_transform.isa.o3.c), one value per tile of 4 elements. At each point, what remains is a
 * convolution with the kernel's columns alone, done by the tiles of conv_tiles.isa.o3.c. 4 results cost 6 multiplications
 * instead of 12 (3 taps), 7 instead of 16, 8 instead of 20. Compared with two-dimensional 4 x 4 tiles, a row is transformed
 * once whatever the kernel's height, any vertical and depth stride and dilation works, and the error is smaller: 1.5 to 2
 * times that of plain sums.
 *
 * Tiles overlap in the image but their transforms do not, so transformed rows are contiguous, and so are images side by
 * side: small images fill vectors too. A task is a strip of rows of one or several images and a block of output channels;
 * for each tile of those it walks through the points and applies the output transform. With many small images, as many as a
 * vector has lanes are transposed first, so that lanes are images, and the results are transposed back at the end: rows of
 * 10 elements need no shuffles. The workspace is one copy of the transformed weights plus, per thread, a strip and its
 * results at each point.
 *
 * A non-finite element would contaminate its whole tile. The output transform detects that, and such images are recomputed
 * by another strategy. Whether Winograd is used, and all block sizes, depend on shapes only. */
#include "conv.h"
#include <math.h>
#include <string.h>

enum {
    STRIP = 512 << 10,
    NEAR_STRIP = 160 << 10,
    RESULTS = 32 << 10,
    LEAST_WORK = 1 << 17,
    TASKS = 4,
    MAX_ACROSS = 512,
    INPUT_TRANSFORM = 60, /* cycles */
    OUTPUT_TRANSFORM = 48,
    COPY = 25,
    GAP = 16,
    MAX_TRANSPOSED = 8,
    MANY_RESULTS = 4 << 20
};

typedef const conv_points points_by_taps[3]; /* for 3, 4 and 5 taps */
ISA_TABLE(points_by_taps, conv_points)
const conv_points *conv_points_of(int64_t taps)
{
    return taps >= 3 && taps <= 5 ? &(*conv_points_of_this_cpu())[taps - 3] : NULL;
}

typedef struct {
    const conv_job    *conv;
    const conv_points *points;
    int64_t            across, images, rows, strips, sets; /* tiles per row; per strip: images, rows; their number */
    int64_t            taps, planes, reach; /* taps, planes: of columns. reach: taps per row, in the widest phase */
    int64_t            blocks, line;
    float             *packed;
    bool               transposed;    /* lanes are images */
    bool              *again, stream; /* stream: results are too large for the cache, so stores bypass it */
    atomic_int         failed;
} wino_job;
typedef struct {
    int64_t pitch, plane_size, channel_size, point_size, flat, result_step; /* of a strip, in elements */
} wino_layout;
typedef struct {
    float   *strip, *result, *line, *lines; /* line: two of them. lines: per phase, zero outside the image */
    float   *transposed;                    /* a plane of all images as (element, image), after one zero per image */
    int64_t *offset;
} wino_scratch;

static wino_layout lay_out(const wino_job *j, int64_t images, int64_t rows)
{
    const conv_job *c = j->conv;
    wino_layout     l = { .pitch = images * j->across };
    l.plane_size = (rows + tap_range(&c->grid.axis[1])) * l.pitch + GAP;
    l.channel_size = j->planes * l.plane_size, l.point_size = c->channels * l.channel_size;
    l.flat = rows * l.pitch, l.result_step = l.flat + CONV_SLACK;
    return l;
}

/* ---- transformed weights: (group, tile, point, channel, vertical tap, row of the tile) ---- */
static void pack_tile(const wino_job *j, int64_t group, int64_t first, int64_t rows)
{
    const conv_job  *c = j->conv;
    const conv_axis *axis = c->grid.axis, *across = &axis[2];
    const float     *weight = (const float *)c->weight + group * c->weight_group + first * c->weight_row;
    float *to = j->packed + (group * c->rows + first) * c->channels * j->taps * j->points->points, tap[CONV_POINTS][16];
    for (int64_t channel = 0; channel < c->channels; channel++)
        for (int64_t d = 0; d < axis[0].taps; d++)
            for (int64_t i = 0; i < axis[1].taps; i++)
                for (int64_t p = 0; p < across->phases; p++, to += rows) {
                    const float *from = weight + channel * c->weight_channel + axis[0].at[d] * c->weight_tap[0] +
                                        axis[1].at[i] * c->weight_tap[1];
                    memset(tap, 0, sizeof tap);
                    for (int64_t k = 0; k < across->taps; k++)
                        for (int64_t r = 0; r < rows && across->phase[k] == p; r++)
                            tap[across->shift[k] - across->shift_min][r] =
                                from[r * c->weight_row + across->at[k] * c->weight_tap[2]];
                    j->points->transform_weight((const float(*)[16])tap, (int)rows, to, rows * c->channels * j->taps);
                }
}
static void pack_tiles(void *ctx, int64_t begin, int64_t end)
{
    const wino_job *j = ctx;
    for (int64_t t = begin; t < end; t++) {
        int64_t first = conv_tile_start(j->conv, t % j->conv->tiles), past = conv_tile_start(j->conv, t % j->conv->tiles + 1);
        pack_tile(j, t / j->conv->tiles, first, past - first);
    }
}

/* ---- strips ---- */
/* One row of the image as a line: in place if it meets no padding and all reads stay inside its memory, otherwise copied. */
static const float *line_of(const wino_job *j, int64_t n, int64_t channel, int64_t z, int64_t y, int64_t phase, float *line)
{
    const conv_image *x = &j->conv->from;
    const conv_axis  *a = &j->conv->grid.axis[2];
    int64_t           first = larger(0, a->shift_min), size = lc_size_of(x->dtype), step = a->step * x->step[2];
    int64_t           there = pieces(x->size[2] - a->residue[phase], a->step);
    const char       *row = x->data + (n * x->n_step + channel * x->channel_step + z * x->step[0] + y * x->step[1] +
                                 (first * a->step + a->residue[phase]) * x->step[2]) *
                                    size;
    if (x->dtype == LC_f32 && step == 1 && first == a->shift_min && first + a->count + j->reach - 1 <= there &&
        row + j->line * 4 <= x->end)
        return (const float *)row;
    int64_t past = smaller(there, a->shift_min + 4 * j->across + j->reach - 1);
    if (past > first && x->dtype == LC_f32 && step == 2)
        j->points->every_second((const float *)row, past - first, line + first - a->shift_min);
    else if (past > first)
        conv_move_row(LC_f32, (char *)(line + first - a->shift_min), 4, x->dtype, row, step * size, past - first);
    return line;
}
/* The same row of several images side by side: their tiles, and in `next` the elements after each tile. */
static void fill_lines(const wino_job *j, int64_t n, int64_t images, int64_t channel, int64_t z, int64_t y, int64_t phase,
                       float *line, float *tiles, float *next)
{
    int64_t length = 4 * j->across;
    for (int64_t k = 0; k < images; k++, tiles += length, next += length) {
        const float *from = line_of(j, n + k, channel, z, y, phase, line);
        for (int64_t i = 0; i < length; i += 16) /* the next image overwrites the surplus */
            memcpy(tiles + i, from + i, 64), memcpy(next + i, from + i + 4, 64);
    }
}
static int64_t transposed_size(const wino_job *j) /* elements per plane, of the source or the result */
{
    const conv_image *x = &j->conv->from, *to = &j->conv->to;
    return larger(x->size[1] * x->size[2], to->size[1] * to->size[2]);
}
static void transpose_plane(const wino_job *j, int64_t n, int64_t images, int64_t channel, float *to)
{
    const conv_image *x = &j->conv->from;
    int64_t           size = x->size[1] * x->size[2], step = j->images * (int64_t)sizeof *to;
    if (images < j->images) memset(to, 0, (size_t)(size * step));
    lc_cpu_moves.transpose[0]((char *)to, step, x->data + (n * x->n_step + channel * x->channel_step) * (int64_t)sizeof *to,
                              x->n_step * (int64_t)sizeof *to, size, images, false);
}
static void fill_transposed(const wino_job *j, const wino_layout *l, const wino_scratch *s, int64_t n, int64_t images,
                            int64_t group, const conv_part *part)
{
    const conv_axis  *axis = j->conv->grid.axis, *across = &axis[2];
    const conv_image *x = &j->conv->from;
    int64_t           height = part->rows + tap_range(&axis[1]), channels = j->conv->channels, lanes = j->images;
    float            *to = s->strip;
    const float      *zeros = s->transposed, *plane = s->transposed + lanes, *column[4 * MAX_TRANSPOSED + CONV_POINTS];
    for (int64_t c = 0; c < channels; c++) {
        transpose_plane(j, n, images, group * channels + c, s->transposed + lanes);
        for (int64_t q = 0; q < axis[1].phases; q++)
            for (int64_t p = 0; p < across->phases; p++, to += l->plane_size)
                for (int64_t i = 0; i < height; i++) {
                    int64_t y = (part->row + axis[1].shift_min + i) * axis[1].step + axis[1].residue[q];
                    if (y < 0 || y >= x->size[1]) continue; /* no tap reads this row */
                    for (int64_t k = 0; k < 4 * j->across + j->reach - 1; k++) {
                        int64_t at = (across->shift_min + k) * across->step + across->residue[p];
                        bool    there = at >= 0 && at < x->size[2];
                        column[k] = there ? plane + (y * x->size[2] + at) * lanes : zeros;
                    }
                    j->points->transform_input_batch(column, j->across, lanes, to + i * l->pitch, l->point_size);
                }
    }
}
static void store_transposed(const wino_job *j, const wino_layout *l, const wino_scratch *s, int64_t n, int64_t images,
                             int64_t row, int64_t rows, const conv_part *part)
{
    const conv_image *to = &j->conv->to;
    float            *plane = s->transposed + j->images;
    int64_t           line = part->columns * j->images;
    for (int64_t i = 0; i < rows; i++) {
        bool finite = true;
        for (int64_t r = 0; r < part->rows; r++)
            finite &= j->points->transform_output_batch(s->result + i * l->result_step + r * l->pitch, rows * l->result_step,
                                                        part->columns, j->images, ((const float *)j->conv->bias)[row + i],
                                                        plane + r * line);
        for (int64_t k = 0; k < images && !finite; k++) __atomic_store_n(&j->again[n + k], true, __ATOMIC_RELAXED);
        lc_cpu_moves.transpose[0](conv_target(to, part, n, row + i), to->n_step * (int64_t)sizeof *plane, (const char *)plane,
                                  j->images * (int64_t)sizeof *plane, images, part->rows * part->columns, false);
        for (int64_t k = 0; k < images && j->conv->finish; k++)
            conv_finish_rows(j->conv, conv_target(to, part, n + k, row + i), part->rows, part->columns);
    }
}
static void fill_strip(const wino_job *j, const wino_layout *l, const wino_scratch *s, int64_t n, int64_t images, int64_t group,
                       const conv_part *part)
{
    const conv_axis *axis = j->conv->grid.axis;
    int64_t          height = part->rows + tap_range(&axis[1]), channels = j->conv->channels, points = j->points->points;
    float           *plane = s->strip, *tiles = s->line, *next = s->line + j->line;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t d = 0; d < axis[0].taps; d++)
            for (int64_t q = 0; q < axis[1].phases; q++)
                for (int64_t p = 0; p < axis[2].phases; p++, plane += l->plane_size) {
                    int64_t z = part->plane * axis[0].step + axis[0].offset[d], depth = j->conv->from.size[0];
                    float  *to = plane, *line = s->lines + p * j->line;
                    for (int64_t i = 0; i < height; i++, to += l->pitch) {
                        int64_t y = (part->row + axis[1].shift_min + i) * axis[1].step + axis[1].residue[q];
                        if (z < 0 || z >= depth || y < 0 || y >= j->conv->from.size[1])
                            for (int64_t v = 0; v < points; v++)
                                memset(to + v * l->point_size, 0, (size_t)l->pitch * sizeof *to);
                        else if (images == 1) {
                            const float *from = line_of(j, n, group * channels + c, z, y, p, line);
                            j->points->transform_input(from, from + 4, j->across, to, l->point_size);
                        } else {
                            fill_lines(j, n, images, group * channels + c, z, y, p, line, tiles, next);
                            j->points->transform_input(tiles, next, l->pitch, to, l->point_size);
                        }
                    }
                }
}
static void store_results(const wino_job *j, const wino_layout *l, const wino_scratch *s, int64_t n, int64_t images,
                          int64_t row, int64_t rows, const conv_part *part)
{
    const conv_image *to = &j->conv->to;
    int64_t           size = lc_size_of(to->dtype);
    const float      *bias = (const float *)j->conv->bias;
    for (int64_t i = 0; i < rows; i++) {
        char *line = conv_target(to, part, n, row + i);
        for (int64_t r = 0; r < part->rows; r++, line += to->step[1] * size) {
            const float *from = s->result + i * l->result_step + r * l->pitch;
            bool         there = images == 1 && to->dtype == LC_f32 && to->step[2] == 1;
            if (!j->points->transform_output(from, rows * l->result_step, l->pitch, bias[row + i],
                                             there ? (float *)line : s->line, there ? part->columns : j->line,
                                             there && j->stream))
                for (int64_t k = 0; k < images; k++) __atomic_store_n(&j->again[n + k], true, __ATOMIC_RELAXED);
            for (int64_t k = 0; k < images && !there; k++)
                conv_move_row(to->dtype, line + k * to->n_step * size, to->step[2] * size, LC_f32,
                              (const char *)(s->line + 4 * k * j->across), 4, part->columns);
        }
        for (int64_t k = 0; k < images && j->conv->finish; k++)
            conv_finish_rows(j->conv, conv_target(to, part, n + k, row + i), part->rows, part->columns);
    }
}
/* A tile along the strip. If lanes are images, rows of results are as long as tiles are wide: taps that meet padding above
 * or below the image are skipped, row by row. */
static void run_tile(const wino_job *j, const wino_layout *l, const conv_tile *like, int64_t rows, const conv_part *part)
{
    const conv_axis *a = &j->conv->grid.axis[1];
    int64_t          each = j->taps / a->taps, height = j->conv->from.size[1];
    for (int64_t r = 0, n = 0, from, past, last_from = -1, last_past = -1; r <= part->rows; r++, n++) {
        from = 0, past = a->taps;
        if (j->transposed && r < part->rows) {
            int64_t y = (part->row + r) * a->step;
            while (from < past && (y + a->offset[from] < 0 || y + a->offset[from] >= height)) from++;
            while (from < past && (y + a->offset[past - 1] < 0 || y + a->offset[past - 1] >= height)) past--;
        }
        if (r && (r == part->rows || from != last_from || past != last_past)) { /* the preceding n rows have the same taps */
            conv_tile tile = *like;
            int64_t   at = (r - n) * l->pitch, skip = last_from * each;
            tile.taps = (last_past - last_from) * each, tile.offset += skip;
            tile.a = (const float *)like->a + skip * rows, tile.x = (const float *)like->x + at;
            tile.out = (float *)like->out + at;
            conv_run_tile(j->conv->kernels, j->conv->size, &tile, rows, n * l->pitch, NULL, 0);
            n = 0;
        }
        last_from = from, last_past = past;
    }
}
static void run_task(const wino_job *j, int64_t task, const wino_scratch *s)
{
    static const float none[16];
    const conv_job    *c = j->conv;
    const conv_axis   *axis = c->grid.axis;
    int64_t            strip = task % j->strips, rest = task / j->strips, planes = axis[0].count;
    conv_part          part = { .plane = rest % planes, .row = strip * j->rows, .columns = axis[2].count };
    int64_t            block = rest / planes % j->blocks, group = rest / planes / j->blocks % c->groups;
    int64_t            n = rest / planes / j->blocks / c->groups * j->images, images = smaller(j->images, c->from.n - n);
    part.rows = smaller(j->rows, axis[1].count - part.row);
    if (part.rows <= 0 || images <= 0) return;
    wino_layout l = lay_out(j, j->transposed ? j->images : images, part.rows);
    int64_t     k = 0, points = j->points->points, past = smaller((block + 1) * c->tile_block, c->tiles);
    for (int64_t d = 0; d < axis[0].taps; d++)
        for (int64_t i = 0; i < axis[1].taps; i++)
            for (int64_t p = 0; p < axis[2].phases; p++)
                s->offset[k++] = ((d * axis[1].phases + axis[1].phase[i]) * axis[2].phases + p) * l.plane_size +
                                 (axis[1].shift[i] - axis[1].shift_min) * l.pitch;
    (j->transposed ? fill_transposed : fill_strip)(j, &l, s, n, images, group, &part);
    for (int64_t t = block * c->tile_block; t < past; t++) {
        int64_t row = conv_tile_start(c, t), rows = conv_tile_start(c, t + 1) - row, all = c->channels * j->taps;
        for (int64_t p = 0; p < points; p++) {
            conv_tile tile = { .channels = c->channels,
                               .channel_step = l.channel_size,
                               .out_step = l.result_step,
                               .a_channel = j->taps * rows,
                               .a_tap = rows,
                               .offset = s->offset,
                               .a = j->packed + ((group * c->rows + row) * points + p * rows) * all,
                               .x = s->strip + p * l.point_size,
                               .start = none,
                               .out = s->result + p * rows * l.result_step };
            run_tile(j, &l, &tile, rows, &part);
        }
        (j->transposed ? store_transposed : store_results)(j, &l, s, n, images, group * c->rows + row, rows, &part);
    }
}
static void run_tasks(void *ctx, int64_t begin, int64_t end)
{
    wino_job   *j = ctx;
    wino_layout l = lay_out(j, j->images, j->rows);
    int64_t     strip = j->points->points * l.point_size + CONV_SLACK, lines = (j->conv->grid.axis[2].phases + 2) * j->line;
    int64_t     result = j->points->points * j->conv->kernels->rows * l.result_step;
    int64_t     transposed = j->transposed ? (transposed_size(j) + 1) * j->images + CONV_SLACK : 0;
    size_t      bytes = (size_t)(strip + lines + result + transposed) * sizeof(float) + (size_t)(j->taps + 1) * sizeof(int64_t);
    char       *block = cpu_scratch(bytes);
    if (!block) {
        j->failed = 1;
        return;
    }
    wino_scratch s = { .offset = (int64_t *)block, .strip = (float *)(block + (size_t)(j->taps + 1) * sizeof(int64_t)) };
    s.result = s.strip + strip, s.line = s.result + result, s.lines = s.line + 2 * j->line, s.transposed = s.line + lines;
    memset(s.transposed, 0, (size_t)(transposed ? j->images : 0) * sizeof(float));
    memset(s.lines, 0, (size_t)(lines - 2 * j->line) * sizeof(float));
    for (int64_t t = begin; t < end; t++) run_task(j, t, &s);
    j->points->fence();
    cpu_scratch_free(block, bytes);
}

/* ---- whether it suits, and the block sizes ---- */
static void choose_cuts(wino_job *j)
{
    const conv_job *c = j->conv;
    int64_t         n = c->from.n, down = c->grid.axis[1].count, points = j->points->points, lanes = c->kernels->lanes;
    double          best = INFINITY;
    j->images = j->rows = 1;
    for (int64_t strips = 1, rows; strips <= down; strips++) {
        rows = pieces(down, strips);
        for (int64_t images = 1; images <= n && (images == 1 || rows == down); images *= 2) {
            wino_layout l = lay_out(j, images, rows);
            int64_t     tasks = pieces(n, images) * pieces(down, rows) * c->grid.axis[0].count * c->groups * j->blocks;
            if (points * l.point_size > STRIP && (rows > 1 || images > 1)) continue;
            if (c->kernels->rows * points * l.flat > 2 * RESULTS && (rows > 1 || images > 1)) continue;
            if (tasks < TASKS && (rows > 4 || images > 1)) continue;
            int64_t wide = c->kernels->tile[smaller(c->kernels->rows, c->rows) - 1].columns, rest = l.flat % wide;
            double  columns =
                (double)(l.flat - rest) + (2 * rest > wide ? (double)wide : 1.3 * (double)(pieces(rest, lanes) * lanes));
            double cost = (double)(points * j->taps * c->channels * smaller(c->rows, 128)) / (double)lanes * columns;
            if (points * l.point_size > NEAR_STRIP) cost *= 1.05;
            cost += (double)(c->channels * j->planes * (rows + tap_range(&c->grid.axis[1]))) *
                    (double)(INPUT_TRANSFORM * pieces(l.pitch, lanes) + COPY * images);
            cost +=
                (double)(smaller(c->rows, 128) * rows) * (double)(OUTPUT_TRANSFORM * pieces(l.pitch, lanes) + COPY * images);
            cost = cost / (double)(rows * images) * (1 + (double)(pieces(down, rows) * rows - down) / (double)down / 4);
            if (cost < best) best = cost, j->images = images, j->rows = rows;
        }
    }
    j->strips = pieces(down, j->rows), j->sets = pieces(n, j->images);
}
/* Images as lanes: planes are small, contiguous, and there are enough of them. */
static bool is_transposed(wino_job *j)
{
    const conv_job   *c = j->conv;
    const conv_image *x = &c->from, *to = &c->to;
    const conv_axis  *axis = c->grid.axis;
    int64_t           lanes = c->kernels->lanes, sets = pieces(x->n, lanes);
    if (x->dtype != LC_f32 || to->dtype != LC_f32 || to->shifts || axis[0].taps != 1 || axis[0].count != 1 || axis[0].offset[0])
        return false;
    if (x->step[2] != 1 || x->step[1] != x->size[2] || to->step[2] != 1 || to->step[1] != to->size[2]) return false;
    if (j->across > MAX_TRANSPOSED || sets < 2 || 8 * sets * lanes > 9 * x->n || to->size[1] != axis[1].count) return false;
    j->images = lanes, j->rows = axis[1].count, j->strips = 1, j->sets = sets;
    wino_layout l = lay_out(j, lanes, j->rows);
    return j->points->points * l.point_size <= NEAR_STRIP &&
           smaller(c->kernels->rows, c->rows) * j->points->points * l.flat <= 2 * RESULTS;
}
static bool suits(const wino_job *j)
{
    const conv_job  *c = j->conv;
    const conv_axis *axis = c->grid.axis;
    int64_t          taps = c->grid.taps, columns = axis[2].count, n = j->points->points;
    if (columns < 6 || j->across > MAX_ACROSS || c->channels * c->rows * taps * columns * axis[1].count < LEAST_WORK)
        return false;
    double plain = (double)(4 * taps * c->rows * c->channels), less = (double)(n * j->taps * c->rows * c->channels);
    less += (double)(c->channels * j->planes * INPUT_TRANSFORM + c->rows * OUTPUT_TRANSFORM);
    return less * (double)(4 * j->across) < 0.85 * plain * (double)columns;
}
int conv_winograd(const conv_job *job, bool *again)
{
    const conv_axis *axis = job->grid.axis;
    wino_job         j = { .conv = job, .reach = tap_range(&axis[2]) + 1, .again = again };
    if (job->dtype != LC_f32 || !job->grid.taps || !job->channels || !(j.points = conv_points_of(j.reach))) return LC_DECLINED;
    j.taps = axis[0].taps * axis[1].taps * axis[2].phases, j.planes = axis[0].taps * axis[1].phases * axis[2].phases;
    j.across = pieces(axis[2].count, 4), j.blocks = pieces(job->tiles, job->tile_block);
    if (!suits(&j)) return LC_DECLINED;
    j.stream =
        !job->finish && job->to.n * job->to.channels * job->to.size[0] * job->to.size[1] * job->to.size[2] >= MANY_RESULTS;
    if (!(j.transposed = is_transposed(&j))) choose_cuts(&j);
    j.line = 4 * pieces(j.across * j.images, job->kernels->lanes) * job->kernels->lanes + 32;
    size_t bytes = (size_t)(job->groups * job->rows * job->channels * j.taps * j.points->points) * sizeof(float);
    bool   is_there;
    if (!(j.packed = conv_packed(job, bytes, CONV_PACKED_POINTS, &is_there))) return -1;
    int64_t tile = job->kernels->rows * job->channels * j.taps * j.points->points, tiles = job->groups * job->tiles;
    if (!is_there) cpu_parallel(tiles, CPU_GRAIN / (tile + 1) + 1, tiles * tile, pack_tiles, &j);
    int64_t tasks = j.sets * axis[0].count * job->groups * j.blocks * j.strips;
    int64_t each = job->rows * job->channels * j.taps * j.points->points * j.rows * j.images * j.across / j.blocks / 16 + 1;
    cpu_parallel(tasks, CPU_GRAIN / each + 1, tasks * each, run_tasks, &j);
    conv_packed_end(job, j.packed, bytes, CONV_PACKED_POINTS);
    return j.failed ? -1 : 0;
}

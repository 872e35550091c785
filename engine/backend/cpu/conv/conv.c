/* Convolution and transposed convolution (the gradient of the image): the tiles of conv_tiles.isa.o3.c over the strips of
 * conv_strip.c.
 *
 * Both are one loop: each element of an output grid is a sum over channels and taps. A transposed convolution with stride s
 * has s output grids (phases) per dimension. Each phase holds every s-th element of the image, and every tap belongs to
 * exactly one phase, so no inserted zero is ever multiplied.
 *
 * The loop is bound by multiply-adds: per channel and tap, a 13 x 32 tile does 26 of them and loads 2 vectors and 13
 * weights. Weights are packed once per call into the order in which tiles read them. A task is a strip of rows of one image
 * and up to 128 output channels. A long sum is split into blocks of channels, so that the weights of one tile stay in L1
 * while the tile walks along the strip. Results accumulate in a buffer with the strip's pitch and are copied to the output
 * row by row; that copy handles layouts and half precision. The workspace is one packed copy of the weights plus, per
 * thread, a strip and the buffer. All block sizes depend on shapes only.
 *
 * A small transposed convolution sums over channels first, then over taps: PyTorch's order, so results agree to the last
 * digit.
 *
 * Rejected: im2col with the matrix product's kernel. It writes each image element once per tap and halves the speed when
 * channels are few. Where it pays, conv_winograd.c does the same work with fewer multiplications. */
#include "conv.h"
#include <string.h>

ISA_TABLE(const lc_conv_tiles, conv_tiles)
const lc_conv_tiles *conv_tiles_here(void) { return conv_tiles_of_this_cpu(); }
const conv_kernels  *conv_kernels_of(lc_dtype dtype)
{
    const lc_conv_tiles *table = conv_tiles_of_this_cpu();
    return dtype == LC_f32 ? &table->f32 : &table->f64;
}
int conv_no_memory(void) { return lc_fail_int(LC_OutOfMemory, "convolution: no memory for its tiles"); }

enum {
    WIDEST = 1024,
    STRIP = 96 << 10,
    GATHERED = 64 << 10,
    WEIGHTS = 8192,
    ROW_BLOCK = 128,
    TASKS = 16,
    SHORT = 64,
    SHORT_SUM = 128,
    LITTLE = 1 << 18
};

/* ---- packed weights: (group, tile, channel, tap, row of the tile) ---- */
#define PACK(T)                                                                                                                \
    for (int64_t c = 0; c < j->channels; c++)                                                                                  \
        for (int64_t d = 0; d < axis[0].taps; d++)                                                                             \
            for (int64_t h = 0; h < axis[1].taps; h++) {                                                                       \
                const T *line = (const T *)weight + c * j->weight_channel + axis[0].at[d] * tap[0] + axis[1].at[h] * tap[1];   \
                for (int64_t w = 0; w < axis[2].taps; w++, to += rows) {                                                       \
                    const T *from = line + axis[2].at[w] * tap[2];                                                             \
                    for (int64_t i = 0; i < rows; i++) to[i] = from[i * row_step];                                             \
                }                                                                                                              \
            }
static lc_conv_kept *keeper(const conv_job *j) { return j->only ? NULL : j->kept; }
void                *conv_packed(const conv_job *j, size_t bytes, int form, bool *is_there)
{
    lc_conv_kept *k = keeper(j);
    *is_there = k && k->form == form && k->bytes == bytes;
    if (!k) return cpu_scratch(bytes);
    if (*is_there) return k->data;
    lc_free(k->data, k->bytes);
    *k = (lc_conv_kept){ .data = lc_alloc(bytes) };
    if (k->data) k->bytes = bytes;
    return k->data;
}
void conv_packed_end(const conv_job *j, void *packed, size_t bytes, int form)
{
    lc_conv_kept *k = keeper(j);
    if (k) k->form = form;
    else cpu_scratch_free(packed, bytes);
}
static void pack_tiles(void *ctx, int64_t begin, int64_t end)
{
    conv_job        *j = ctx;
    const conv_axis *axis = j->grid.axis;
    const int64_t   *tap = j->weight_tap, size = j->size, row_step = j->weight_row;
    for (int64_t t = begin; t < end; t++) {
        int64_t group = t / j->tiles, first = conv_tile_start(j, t % j->tiles),
                rows = conv_tile_start(j, t % j->tiles + 1) - first;
        const char *weight = j->weight + (group * j->weight_group + first * row_step) * size;
        char       *at = j->packed + (group * j->rows + first) * j->channels * j->grid.taps * size;
        if (size == 4) {
            uint32_t *to = (uint32_t *)at;
            PACK(uint32_t)
        } else {
            uint64_t *to = (uint64_t *)at;
            PACK(uint64_t)
        }
    }
}

/* ---- tasks ---- */
char *conv_target(const conv_image *to, const conv_part *part, int64_t n, int64_t row)
{
    int64_t at = to->shifts ? row / to->shifts * to->channel_step + to->shift[row % to->shifts] : row * to->channel_step;
    return to->data + (n * to->n_step + at + part->plane * to->step[0] + part->row * to->step[1] + part->column * to->step[2]) *
                          lc_size_of(to->dtype);
}
static bool flat_rows(const conv_image *to, const conv_part *part) /* rows of the part are contiguous */
{
    return to->step[2] == 1 && (to->step[1] == part->columns || part->rows == 1);
}
static void store_rows(const conv_job *j, const conv_part *part, const conv_layout *l, char *at, int64_t rows, const char *from,
                       int64_t step)
{
    const conv_image *to = &j->to;
    int64_t           size = j->size, to_size = lc_size_of(to->dtype), lines = part->rows, columns = part->columns;
    if (to->channel_step == 1 && to->step[2] != 1 && rows > 1 && to->dtype == j->dtype) {
        for (int64_t r = 0; r < lines; r++)
            lc_cpu_moves.transpose[size == 8](at + r * to->step[1] * size, to->step[2] * size, from + r * l->pitch * size,
                                              step * size, columns, rows, false);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t r = 0; r < lines; r++)
            conv_move_row(to->dtype, at + (i * to->channel_step + r * to->step[1]) * to_size, to->step[2] * to_size, j->dtype,
                          from + (i * step + r * l->pitch) * size, size, columns);
}
int64_t conv_run_tile(const conv_kernels *kernels, int64_t size, conv_tile *tile, int64_t rows, int64_t flat, char *to,
                      int64_t to_step)
{
    const conv_tile_fn *fn = &kernels->tile[rows - 1];
    const char         *x = tile->x;
    char               *out = tile->out;
    int64_t             out_step = tile->out_step, there = 0;
    for (int64_t f = 0, n; f < flat; f += n) {
        bool wide = 2 * (flat - f) > fn->columns;
        n = wide ? fn->columns : kernels->lanes;
        bool at_once = to && f + n <= flat;
        tile->x = x + f * size, tile->out = (at_once ? to : out) + f * size, tile->out_step = at_once ? to_step : out_step;
        if (wide) fn->wide(tile);
        else fn->one(tile);
        if (at_once) there = f + n;
    }
    return there;
}
void conv_finish_rows(const conv_job *j, char *at, int64_t rows, int64_t columns)
{
    bool whole = j->to.step[1] == columns;
    for (int64_t r = 0; r < (whole ? 1 : rows) && j->finish; r++)
        cpu_epilogue_run(j->finish, at + r * j->to.step[1] * j->size, whole ? rows * columns : columns);
}
int64_t conv_padded(const conv_kernels *kernels, int64_t rows, int64_t flat)
{
    int64_t wide = kernels->tile[rows - 1].columns, rest = flat % wide, lanes = kernels->lanes;
    return flat - rest + (2 * rest > wide ? wide : (rest + lanes - 1) / lanes * lanes);
}
typedef struct {
    char    *strip, *gathered;
    int64_t *offset;
    int64_t  gathered_step;
} conv_scratch;
static void run_task(const conv_job *j, int64_t task, const conv_scratch *s)
{
    int64_t blocks = pieces(j->tiles, j->tile_block), across = task % j->strips_across, rest = task / j->strips_across;
    int64_t down = rest % j->strips_down, planes = j->grid.axis[0].count;
    rest /= j->strips_down;
    conv_part part = { .plane = rest % planes, .row = down * j->strip_rows, .column = across * j->strip_columns };
    rest /= planes;
    int64_t block = rest % blocks, group = rest / blocks % j->groups, n = rest / blocks / j->groups;
    int64_t first = block * j->tile_block, past = first + j->tile_block < j->tiles ? first + j->tile_block : j->tiles;
    int64_t left = j->grid.axis[1].count - part.row, wide = j->grid.axis[2].count - part.column, taps = j->grid.taps;
    if (j->only && !j->only[n]) return;
    part.rows = left < j->strip_rows ? left : j->strip_rows, part.columns = wide < j->strip_columns ? wide : j->strip_columns;
    if (part.rows <= 0 || part.columns <= 0) return;
    conv_layout layout;
    char       *strip = s->strip;
    bool        as_it_is =
        conv_is_strip(&j->grid, &j->from, &part, n, group * j->channels, j->channels, j->dtype, &layout, s->offset, &strip);
    if (!as_it_is) conv_lay_out(&j->grid, &j->from, &part, &layout, s->offset);
    bool one = j->channel_block >= j->channels,
         flat_out = layout.pitch == part.columns && flat_rows(&j->to, &part) && j->to.dtype == j->dtype;
    for (int64_t c = 0, channels; c < j->channels || !c; c += channels) {
        channels = j->channels - c < j->channel_block ? j->channels - c : j->channel_block;
        if (!as_it_is)
            conv_fill_strip(&j->grid, &j->from, &part, &layout, n, group * j->channels + c, channels, j->dtype, strip);
        for (int64_t t = first; t < past; t++) {
            int64_t   row = conv_tile_start(j, t), rows = conv_tile_start(j, t + 1) - row;
            char     *out = s->gathered + (one ? 0 : row - conv_tile_start(j, first)) * s->gathered_step * j->size;
            conv_tile tile = { .channels = channels,
                               .taps = taps,
                               .channel_step = layout.channel_size,
                               .out_step = s->gathered_step,
                               .a_channel = taps * rows,
                               .a_tap = rows,
                               .offset = s->offset,
                               .a = j->packed + ((group * j->rows + row) * j->channels + c * rows) * taps * j->size,
                               .x = as_it_is ? strip + c * layout.channel_size * j->size : strip,
                               .start = j->bias + (group * j->rows + row) * j->size,
                               .out = out,
                               .add = c > 0 };
            char     *to = conv_target(&j->to, &part, n, group * j->rows + row);
            int64_t   there = 0;
            for (int64_t k = 0; k < (j->by_tap ? taps : 1); k++) {
                conv_tile each = tile;
                if (j->by_tap)
                    each.taps = 1, each.offset += k, each.a = (const char *)tile.a + k * rows * j->size, each.add |= k > 0;
                there = conv_run_tile(j->kernels, j->size, &each, rows, layout.flat, flat_out ? to : NULL, j->to.channel_step);
            }
            if (c + channels < j->channels) continue;
            for (int64_t i = 0; i < rows && flat_out; i++)
                memcpy(to + (i * j->to.channel_step + there) * j->size, out + (i * s->gathered_step + there) * j->size,
                       (size_t)((layout.flat - there) * j->size));
            if (!flat_out) store_rows(j, &part, &layout, to, rows, out, s->gathered_step);
            for (int64_t i = 0; i < rows && j->finish; i++)
                conv_finish_rows(j, to + i * j->to.channel_step * j->size, part.rows, part.columns);
        }
        if (!channels) break;
    }
}
static void run_tasks(void *ctx, int64_t begin, int64_t end)
{
    conv_job    *j = ctx;
    int64_t      strip = conv_strip_size(&j->grid, j->strip_rows, j->strip_columns) * j->channel_block;
    int64_t      range = tap_range(&j->grid.axis[2]);
    int64_t      rows = j->channel_block >= j->channels ? j->kernels->rows : j->tile_block * j->kernels->rows;
    conv_scratch s = { .gathered_step = ((j->strip_columns + range) * (j->strip_rows + 1) + CONV_SLACK) / 16 * 16 };
    size_t bytes = (size_t)((strip + rows * s.gathered_step) * j->size + 64 + (j->grid.taps + 1) * (int64_t)sizeof(int64_t));
    char  *block = cpu_scratch(bytes);
    if (!block) {
        j->failed = 1;
        return;
    }
    s.gathered = block, s.strip = block + rows * s.gathered_step * j->size;
    s.offset = (int64_t *)(s.strip + (strip * j->size + 7) / 8 * 8);
    for (int64_t t = begin; t < end; t++) run_task(j, t, &s);
    cpu_scratch_free(block, bytes);
}

/* ---- depthwise: one kernel per channel ---- */
static bool by_planes(const conv_job *j, conv_plane *p)
{
    const conv_axis *axis = j->grid.axis;
    if (j->rows != 1 || j->channels != 1 || axis[0].taps != 1 || axis[0].count != 1 || axis[0].offset[0] || !j->grid.taps)
        return false;
    if (axis[1].step != 1 || axis[2].step != 1 || j->from.step[2] != 1 || j->to.step[2] != 1) return false;
    if (j->from.dtype != j->dtype || j->to.dtype != j->dtype) return false;
    int64_t past = j->from.size[2] - axis[2].shift_max, columns = axis[2].count;
    *p = (conv_plane){ .low = j->from.begin,
                       .high = j->from.end,
                       .x_row = j->from.step[1],
                       .out_row = j->to.step[1],
                       .height = j->from.size[1],
                       .width = j->from.size[2],
                       .rows = axis[1].count,
                       .columns = columns,
                       .row_taps = axis[1].taps,
                       .column_taps = axis[2].taps,
                       .first = axis[2].shift_min < 0 ? -axis[2].shift_min : 0,
                       .past = past < columns ? past : columns,
                       .row_offset = axis[1].offset,
                       .column_offset = axis[2].offset };
    return p->past - p->first >= j->kernels->lanes;
}
static void run_planes(void *ctx, int64_t begin, int64_t end)
{
    const conv_job *j = ctx;
    conv_plane      p;
    by_planes(j, &p);
    for (int64_t t = begin; t < end; t++) {
        int64_t n = t / j->groups, group = t % j->groups;
        p.x = j->from.data + (n * j->from.n_step + group * j->from.channel_step) * j->size;
        p.out = j->to.data + (n * j->to.n_step + group * j->to.channel_step) * j->size;
        p.a = j->packed + group * j->grid.taps * j->size, p.start = j->bias + group * j->size;
        j->kernels->plane(&p);
        conv_finish_rows(j, p.out, p.rows, p.columns);
    }
}

int64_t conv_cut(int64_t n, int64_t most)
{
    int64_t pieces = (n + most - 1) / most;
    return pieces ? (n + pieces - 1) / pieces : 1;
}
static int with_packed_weights(conv_job *j, bool planes)
{
    int64_t taps = j->grid.taps ? j->grid.taps : 1, images = j->from.n * j->groups * j->grid.axis[0].count;
    int64_t blocks = pieces(j->tiles, j->tile_block);
    size_t  bytes = (size_t)(j->groups * j->rows * j->channels * taps * j->size + 1);
    bool    is_there;
    j->packed = conv_packed(j, bytes, CONV_PACKED_TILES, &is_there);
    if (!j->packed) return -1;
    int64_t tile = j->kernels->rows * j->channels * taps, tasks = images * blocks * j->strips_down * j->strips_across;
    if (j->grid.taps && !is_there)
        cpu_parallel(j->groups * j->tiles, CPU_GRAIN / (tile + 1) + 1, j->groups * j->tiles * tile, pack_tiles, j);
    int64_t each = j->row_cost * j->strip_rows / 16 + 1, plane = j->grid.axis[1].count * j->grid.axis[2].count;
    if (planes) cpu_parallel(images, 4 * CPU_GRAIN / (taps * plane) + 1, tasks * each, run_planes, j);
    else cpu_parallel(tasks, CPU_GRAIN / each + 1, tasks * each, run_tasks, j);
    conv_packed_end(j, j->packed, bytes, CONV_PACKED_TILES);
    return j->failed ? -1 : 0;
}
void conv_prepare(conv_job *j)
{
    const conv_axis *axis = j->grid.axis;
    j->grid.taps = axis[0].taps * axis[1].taps * axis[2].taps, j->grid.planes = axis[0].taps * axis[1].phases * axis[2].phases;
    int64_t taps = j->grid.taps ? j->grid.taps : 1, down = axis[1].count, most = WEIGHTS / (taps * j->kernels->rows);
    j->tiles = pieces(j->rows, j->kernels->rows);
    j->tile_block = conv_cut(j->tiles, ROW_BLOCK / j->kernels->rows);
    int64_t blocks = pieces(j->tiles, j->tile_block), block_rows = j->tile_block * j->kernels->rows;
    if (taps == 1 && j->channels > 2 * SHORT) most = SHORT; /* the part of the image that a tile reads stays in L1 */
    j->channel_block = conv_cut(j->channels, most ? most : 1);
    j->strip_columns = conv_cut(axis[2].count, WIDEST), j->strips_across = pieces(axis[2].count, j->strip_columns);
    bool    long_sum = j->channel_block < j->channels;
    int64_t images = j->from.n * j->groups * axis[0].count;
    j->row_cost = j->rows * j->channels * taps * j->strip_columns / blocks + 1;
    for (int64_t rows = down; rows > 1; rows = (rows + 1) / 2) {
        down = rows;
        if (conv_strip_size(&j->grid, rows, j->strip_columns) * j->channel_block <= STRIP &&
            (!long_sum || block_rows * rows * j->strip_columns <= GATHERED) &&
            (images * blocks * j->strips_across * (axis[1].count / rows) >= TASKS || rows <= 4 ||
             j->row_cost * rows <= 1 << 20))
            break;
        down = (rows + 1) / 2;
    }
    j->strip_rows = conv_cut(axis[1].count, down), j->strips_down = pieces(axis[1].count, j->strip_rows);
}
/* ---- how to compute a grid ---- */
typedef struct {
    conv_job *job;
    bool     *again; /* one flag per image: all false, or job->only if only some images are wanted */
} grid_run;
static bool suits_winograd(const void *run) { return !((const grid_run *)run)->job->only; }
static bool suits_product(const void *run) { return conv_suits_product(((const grid_run *)run)->job); }
static bool suits_depthwise_last(const void *run) { return conv_suits_depthwise_last(((const grid_run *)run)->job); }
static bool suits_interleaved(const void *run) { return conv_suits_interleaved(((const grid_run *)run)->job); }
static bool suits_depthwise(const void *run) { return by_planes(((const grid_run *)run)->job, &(conv_plane){ 0 }); }
static int  by_winograd(void *run);
/* For strategies that write the result in no order, and all images of it: the epilogue follows. */
static int finish_all(const conv_job *j, int rc)
{
    if (j->finish && !rc) cpu_epilogue_run_all(j->finish, j->to.data, j->to.n * j->to.n_step);
    return rc;
}
static int by_product(void *run) { return finish_all(((grid_run *)run)->job, conv_product(((grid_run *)run)->job)); }
static int by_depthwise_last(void *run)
{
    return finish_all(((grid_run *)run)->job, conv_depthwise_last(((grid_run *)run)->job));
}
static int by_interleaved(void *run) { return conv_interleaved(((grid_run *)run)->job); }
static int by_depthwise(void *run) { return with_packed_weights(((grid_run *)run)->job, true); }
static int by_strips(void *run) { return with_packed_weights(((grid_run *)run)->job, false); }

static const lc_strategy convolutions[] = { { "one product", suits_product, by_product },
                                            { "depthwise, channels last", suits_depthwise_last, by_depthwise_last },
                                            { "Winograd", suits_winograd, by_winograd },
                                            { "interleaved small images", suits_interleaved, by_interleaved },
                                            { "depthwise planes", suits_depthwise, by_depthwise },
                                            { "tiles over strips", NULL, by_strips } };
static int               by_winograd(void *run)
{
    grid_run *r = run;
    int       rc = conv_winograd(r->job, r->again);
    if (rc || !memchr(r->again, true, (size_t)r->job->from.n)) return rc;
    r->job->only = r->again;
    return RUN_STRATEGIES("convolution of images that are not finite", convolutions, run); /* every strategy but this one */
}
static int run_grid(conv_job *j, bool *again)
{
    const conv_axis *axis = j->grid.axis;
    if (!j->from.n || !axis[0].count || !axis[1].count || !axis[2].count || !j->rows) return 0;
    conv_prepare(j);
    return RUN_STRATEGIES("convolution", convolutions, &((grid_run){ j, again }));
}

/* ---- the two ops ---- */
static void read_window(const lc_conv_args *a, int64_t *kernel, int64_t *tap, conv_window *window) /* three of each */
{
    const lc_tensor *w = a->weight;
    for (int d = 0; d < 3; d++) {
        int  k = d - 3 + a->dims;
        bool there = k >= 0;
        kernel[d] = there ? w->shape[2 + k] : 1, tap[d] = there ? w->stride[2 + k] : 0;
        window[d] = there ? (conv_window){ a->stride[k], a->padding[k], a->dilation[k] } : (conv_window){ 1, 0, 1 };
    }
}
int conv_forward_axes(const lc_conv_args *a, conv_axis *axis, const int64_t *count)
{
    int64_t     kernel[3], tap[3];
    conv_window window[3];
    read_window(a, kernel, tap, window);
    for (int d = 0; d < 3; d++) {
        if (conv_axis_init(&axis[d], kernel[d], count[d], window[d].stride) < 0) return conv_no_memory();
        for (int64_t k = 0; k < kernel[d]; k++) conv_axis_add(&axis[d], k * window[d].dilation - window[d].padding, k);
    }
    return 0;
}
void conv_free_axes(const lc_conv_args *a, conv_axis *axis)
{
    int64_t     kernel[3], tap[3];
    conv_window window[3];
    read_window(a, kernel, tap, window);
    for (int d = 0; d < 3; d++) conv_axis_free(&axis[d], kernel[d]);
}
typedef struct {
    conv_job    job;
    int64_t     kernel[3];
    conv_window window[3];
    bool       *again; /* per image */
    char       *memory;
    size_t      bytes;
} conv_call;
/* finish: memory for the epilogue, if there is one */
static int start(conv_call *c, const lc_conv_args *a, lc_dtype dtype, bool transposed, cpu_epilogue *finish)
{
    const lc_tensor *w = a->weight;
    *c = (conv_call){ .job = { .dtype = dtype, .size = lc_size_of(dtype), .groups = a->groups, .weight = w->data } };
    conv_job *j = &c->job;
    j->kernels = conv_kernels_of(dtype);
    j->from = conv_image_of(transposed ? a->result : a->image, a->dims);
    j->to = conv_image_of(transposed ? a->image : a->result, a->dims);
    j->rows = j->to.channels / a->groups, j->channels = j->from.channels / a->groups;
    j->weight_row = w->stride[transposed], j->weight_channel = w->stride[!transposed];
    j->weight_group = (transposed ? j->channels : j->rows) * w->stride[0];
    read_window(a, c->kernel, j->weight_tap, c->window);
    int64_t bias = j->to.channels * j->size;
    c->bytes = (size_t)(bias + j->from.n + 1), c->memory = cpu_scratch(c->bytes);
    if (!c->memory) return conv_no_memory();
    memset(c->memory, 0, c->bytes); /* zeros if there is no bias */
    if (a->bias)
        cpu_move(dtype, c->memory, j->size, (lc_dtype)a->bias->dtype, a->bias->data, lc_size_of(a->bias->dtype),
                 j->to.channels);
    j->bias = c->memory, c->again = (bool *)(c->memory + bias);
    if (a->finish.epilogue) {
        cpu_epilogue_start(finish, a->finish.epilogue, a->finish.in, transposed ? a->image : a->result);
        j->finish = finish;
    }
    return 0;
}
static int finish(conv_call *c, int rc)
{
    if (c->memory) cpu_scratch_free(c->memory, c->bytes);
    return rc < 0 ? conv_no_memory() : rc;
}
/* All strategies but the product read weights best in the order of a contiguous one: from channels last, packing took six
 * times as long as a copy and the convolution together (512 to 512 channels, 4 x 4). */
static int with_plain_weight(lc_cpu_run run, lc_dtype dtype, const lc_conv_args *a)
{
    lc_conv_args plain = *a;
    lc_tensor   *w = lc_tensor_new((lc_dtype)a->weight->dtype, a->weight->device, a->weight->ndim, a->weight->shape);
    int          rc = w ? cpu_copy(w, a->weight) : -1;
    plain.weight = w, plain.kept = NULL;
    if (!rc) rc = run(dtype, &plain);
    return lc_release(w), rc;
}
static int cpu_conv(lc_dtype dtype, const void *args)
{
    const lc_conv_args *a = args;
    conv_call           c;
    cpu_epilogue        epilogue;
    bool                suits = a->weight->is_contiguous;
    if (dtype == LC_i64) return suits ? conv_direct(a, false) : with_plain_weight(cpu_conv, dtype, a);
    int rc = start(&c, a, dtype, false, &epilogue);
    c.job.kept = a->kept;
    if (!rc && !(rc = conv_forward_axes(a, c.job.grid.axis, c.job.to.size)) && (suits |= conv_suits_product(&c.job)))
        rc = run_grid(&c.job, c.again);
    conv_free_axes(a, c.job.grid.axis);
    rc = finish(&c, rc);
    return rc || suits ? rc : with_plain_weight(cpu_conv, dtype, a);
}
/* The image's elements at first[d], first[d] + stride[d], ... */
static int run_transposed(const conv_call *c, const int64_t *first)
{
    conv_job          j = c->job;
    const conv_image *to = &c->job.to;
    int               rc = 0;
    for (int d = 0; d < 3; d++) {
        const conv_window *w = &c->window[d];
        j.to.data += first[d] * to->step[d] * lc_size_of(to->dtype);
        if (conv_axis_init(&j.grid.axis[d], c->kernel[d], (to->size[d] - first[d] + w->stride - 1) / w->stride, 1) < 0) rc = -1;
        for (int64_t k = 0; k < c->kernel[d] && !rc; k++) {
            int64_t at = first[d] + w->padding - k * w->dilation;
            if (at % w->stride == 0) conv_axis_add(&j.grid.axis[d], at / w->stride, k);
        }
        j.to.step[d] *= w->stride;
    }
    int64_t taps = j.grid.axis[0].taps * j.grid.axis[1].taps * j.grid.axis[2].taps, products = taps * j.channels;
    j.by_tap = taps && products <= SHORT_SUM && products * to->channels * to->size[2] * to->size[1] < LITTLE;
    if (!j.only) memset(c->again, 0, (size_t)j.from.n);
    if (!rc) rc = run_grid(&j, c->again);
    for (int d = 0; d < 3; d++) conv_axis_free(&j.grid.axis[d], c->kernel[d]);
    return rc;
}
static int run_phases(const conv_call *c)
{
    int64_t first[3], steps[3];
    int     rc = 0;
    for (int d = 0; d < 3; d++) {
        steps[d] = c->window[d].stride;
        if (steps[d] > c->job.to.size[d]) steps[d] = c->job.to.size[d];
    }
    for (first[0] = 0; first[0] < steps[0]; first[0]++)
        for (first[1] = 0; first[1] < steps[1]; first[1]++)
            for (first[2] = 0; first[2] < steps[2] && !rc; first[2]++) rc = run_transposed(c, first);
    return rc;
}
static int all_phases_at_once(void *call)
{
    conv_call *c = call;
    int        rc = conv_transpose_phases(&c->job, c->window, c->kernel, c->again);
    if (rc || !memchr(c->again, true, (size_t)c->job.from.n)) return rc;
    c->job.only = c->again;
    return run_phases(c);
}
static int as_product(void *call)
{
    conv_call *c = call;
    return finish_all(&c->job, conv_transpose_product(&c->job, c->window, c->kernel));
}
static bool suits_all_phases(const void *call) { return !conv_suits_depthwise_last(&((const conv_call *)call)->job); }
static bool is_one_phase(const conv_call *c)
{
    return c->window[0].stride == 1 && c->window[1].stride == 1 && c->window[2].stride == 1;
}
static int               one_phase_at_a_time(void *call) { return run_phases(call); }
static const lc_strategy transposed_convolutions[] = { { "one product", NULL, as_product },
                                                       { "all phases at once", suits_all_phases, all_phases_at_once },
                                                       { "one phase at a time", NULL, one_phase_at_a_time } };
static int               cpu_conv_input(lc_dtype dtype, const void *args)
{
    const lc_conv_args *a = args;
    conv_call           c;
    cpu_epilogue        epilogue;
    bool                plain = a->weight->is_contiguous;
    if (dtype == LC_i64) return plain ? conv_direct(a, true) : with_plain_weight(cpu_conv_input, dtype, a);
    int                 rc = start(&c, a, dtype, true, &epilogue);
    const cpu_epilogue *last = c.job.finish; /* behind all else, unless the one grid of a stride of 1 is final */
    if (last && is_one_phase(&c) && conv_weights_are_finite(a)) last = NULL;
    if (last) c.job.finish = NULL;
    if (!rc && plain) rc = RUN_STRATEGIES("transposed convolution", transposed_convolutions, &c);
    else if (!rc) rc = as_product(&c);
    if (!rc && !c.job.finish) conv_recompute_border(a, dtype);
    if (!rc && last) cpu_epilogue_run_all(last, c.job.to.data, c.job.to.n * c.job.to.n_step);
    rc = finish(&c, rc);
    return rc == LC_DECLINED ? with_plain_weight(cpu_conv_input, dtype, a) : rc;
}

#define DTYPES (1u << LC_f32 | 1u << LC_f64 | 1u << LC_i64)
LC_CPU_RUN(_conv, cpu_conv, DTYPES)
LC_CPU_RUN(_conv_input, cpu_conv_input, DTYPES)
LC_CPU_FINISHES(_conv)
LC_CPU_FINISHES(_conv_input)

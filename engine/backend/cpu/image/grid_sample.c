/* Grid sampling of images, and its gradients. Forward, and the gradient of the grid, share positions between threads, tile
 * by tile. The gradient of the image shares planes, because the sums of one plane belong to one thread; so it computes the
 * tap tables again for every group of channels. If a plane fits into L2, both interleave a group of channels there and walk
 * that copy (grid_sample_taps.isa.o3.c). Block sizes depend on shapes alone. */
#include "../cpu.h"
#include "grid_sample.h"
#include <string.h>

ISA_TABLE(const lc_grids, grids)
static const lc_grid_taps *taps_of_this_cpu(lc_dtype dtype)
{
    const lc_grids *table = grids_of_this_cpu();
    return dtype == LC_f32 ? &table->f32 : &table->f64;
}

enum {
    TILE = 1024,
    LANE_TILE = 256,
    LANES_FIT = 3 << 19,
    GROUP = 16
}; /* channels of an image that share a table of taps, backward */
typedef struct {
    const lc_grid_args *a;
    const lc_grid_taps *taps;
    int64_t             size, area, tiles, groups; /* bytes of an element, elements of a plane, tiles and groups of an image */
    grid_tile           tile;                      /* without memory */
    size_t              bytes;
    atomic_int          failed;
} grid_job;

static const char *positions_at(const grid_job *job, int64_t image, int64_t p)
{
    return job->a->grid->data + (image * job->a->positions + p) * job->a->axes * job->size;
}
static int64_t in_tile(const grid_job *job, int64_t p)
{
    return job->a->positions - p < job->tile.tile ? job->a->positions - p : job->tile.tile;
}
static bool new_tile(grid_job *job, grid_tile *t)
{
    int64_t table = job->tile.taps * job->tile.tile * job->size;
    *t = job->tile, t->place = cpu_scratch(job->bytes);
    if (!t->place) {
        job->failed = 1;
        return false;
    }
    t->weight = (char *)t->place + table, t->slope = (char *)t->weight + table;
    return true;
}

static void sample_chunk(void *ctx, int64_t begin, int64_t end)
{
    grid_job           *job = ctx;
    const lc_grid_args *a = job->a;
    grid_tile           t;
    if (!new_tile(job, &t)) return;
    for (int64_t i = begin; i < end; i++) {
        int64_t image = i / job->tiles, p = i % job->tiles * t.tile, n = in_tile(job, p);
        job->taps->lay(a, positions_at(job, image, p), n, false, &t);
        for (int64_t c = image * a->channels; c < (image + 1) * a->channels; c++)
            job->taps->gather(&t, a->out->data + (c * a->positions + p) * job->size, a->image->data + c * job->area * job->size,
                              n);
    }
    cpu_scratch_free(t.place, job->bytes);
}
static void grid_chunk(void *ctx, int64_t begin, int64_t end)
{
    grid_job           *job = ctx;
    const lc_grid_args *a = job->a;
    grid_tile           t;
    if (!new_tile(job, &t)) return;
    for (int64_t i = begin; i < end; i++) {
        int64_t image = i / job->tiles, p = i % job->tiles * t.tile, n = in_tile(job, p);
        char   *out = (char *)a->d_grid->data + (image * a->positions + p) * a->axes * job->size;
        job->taps->lay(a, positions_at(job, image, p), n, true, &t);
        char *sum = (char *)t.slope + a->axes * t.taps * t.tile * job->size; /* (axes, tile), after the slopes */
        memset(sum, 0, (size_t)(a->axes * t.tile * job->size));
        for (int64_t c = image * a->channels; c < (image + 1) * a->channels; c++)
            job->taps->slope(&t, a->axes, sum, a->image->data + c * job->area * job->size,
                             a->grad->data + (c * a->positions + p) * job->size, n);
        for (int64_t k = 0; k < n * a->axes; k++) {
            int64_t from = k % a->axes * t.tile + k / a->axes;
            memcpy(out + k * job->size, sum + from * job->size, (size_t)job->size);
        }
    }
    cpu_scratch_free(t.place, job->bytes);
}
static void image_chunk(void *ctx, int64_t begin, int64_t end)
{
    grid_job           *job = ctx;
    const lc_grid_args *a = job->a;
    grid_tile           t;
    if (!new_tile(job, &t)) return;
    for (int64_t i = begin; i < end; i++) {
        int64_t image = i / job->groups, first = i % job->groups * GROUP;
        int64_t past = first + GROUP < a->channels ? first + GROUP : a->channels, base = image * a->channels;
        memset(a->d_image->data + (base + first) * job->area * job->size, 0, (size_t)((past - first) * job->area * job->size));
        for (int64_t p = 0; p < a->positions; p += t.tile) {
            int64_t n = in_tile(job, p);
            job->taps->lay(a, positions_at(job, image, p), n, false, &t);
            for (int64_t c = base + first; c < base + past; c++)
                job->taps->scatter(&t, a->d_image->data + c * job->area * job->size,
                                   a->grad->data + (c * a->positions + p) * job->size, n);
        }
    }
    cpu_scratch_free(t.place, job->bytes);
}

/* ---- the same with interleaved channels: rows (-1, elements of a plane; lanes), and a tile of positions (tile, lanes) ---- */
static bool lanes_pay(const grid_job *job)
{
    const lc_grid_args *a = job->a;
    int64_t             lanes = GRID_LANE_BYTES / job->size, groups = (a->channels + lanes - 1) / lanes;
    return a->channels * 2 >= lanes && a->images * groups > 1 && job->area <= LANES_FIT / GRID_LANE_BYTES &&
           a->positions * 8 >= job->area;
}
static void lane_chunk(void *ctx, int64_t begin, int64_t end)
{
    grid_job           *job = ctx;
    const lc_grid_args *a = job->a;
    int64_t             lanes = GRID_LANE_BYTES / job->size, plane = job->area * job->size, line = a->positions * job->size;
    size_t              bytes = (size_t)((job->area + 1 + job->tile.tile) * GRID_LANE_BYTES);
    lc_transpose        transpose_block = lc_cpu_moves.transpose[job->size == 8];
    grid_tile           t;
    char               *side = cpu_scratch(bytes);
    if (!side) job->failed = 1;
    if (!side || !new_tile(job, &t)) return cpu_scratch_free(side, bytes);
    char *rows = side + GRID_LANE_BYTES, *some = rows + plane * lanes;
    memset(side, 0, bytes);
    for (int64_t i = begin; i < end; i++) {
        int64_t image = i / job->groups, first = i % job->groups * lanes, base = image * a->channels + first;
        int64_t n_lanes = a->channels - first < lanes ? a->channels - first : lanes;
        if (a->out) transpose_block(rows, GRID_LANE_BYTES, a->image->data + base * plane, plane, job->area, n_lanes, false);
        else memset(rows, 0, (size_t)(plane * lanes));
        for (int64_t p = 0; p < a->positions; p += t.tile) {
            int64_t n = in_tile(job, p);
            job->taps->lay(a, positions_at(job, image, p), n, false, &t);
            if (a->out) {
                job->taps->gather_lanes(&t, some, rows, n);
                transpose_block(a->out->data + base * line + p * job->size, line, some, GRID_LANE_BYTES, n_lanes, n, false);
            } else {
                transpose_block(some, GRID_LANE_BYTES, a->grad->data + base * line + p * job->size, line, n, n_lanes, false);
                job->taps->scatter_lanes(&t, rows, some, n);
            }
        }
        if (!a->out) transpose_block(a->d_image->data + base * plane, plane, rows, GRID_LANE_BYTES, n_lanes, job->area, false);
    }
    cpu_scratch_free(t.place, job->bytes);
    cpu_scratch_free(side, bytes);
}
static void run_lanes(grid_job *job, int64_t cost)
{
    int64_t lanes = GRID_LANE_BYTES / job->size;
    job->tile.tile = job->tile.tile < LANE_TILE ? job->tile.tile : LANE_TILE;
    job->groups = (job->a->channels + lanes - 1) / lanes;
    cpu_parallel(job->a->images * job->groups, 1, cost, lane_chunk, job);
}

static int cpu_grid_sample(lc_dtype dtype, const void *args)
{
    const lc_grid_args *a = args;
    grid_job            job = { .a = a, .taps = taps_of_this_cpu(dtype), .size = lc_size_of(dtype) };
    job.area = a->size[0] * a->size[1] * a->size[2];
    int64_t each = a->mode == LC_GRID_BICUBIC   ? 4
                   : a->mode == LC_GRID_NEAREST ? 1
                                                : 2,
            taps = each * each * (a->axes == 3 ? each : 1);
    job.tile = (grid_tile){ .taps = taps, .tile = a->positions < TILE ? a->positions : TILE };
    if (!a->positions) job.tile.tile = 1;
    job.bytes = (size_t)(job.tile.tile * job.size * (taps * (2 + (a->d_grid ? a->axes : 0)) + a->axes));
    job.tiles = (a->positions + job.tile.tile - 1) / job.tile.tile, job.groups = (a->channels + GROUP - 1) / GROUP;
    int64_t cost = a->images * a->positions * taps * (a->channels + 8);
    if (a->d_grid && a->mode == LC_GRID_NEAREST) /* a step function: its derivative is zero, whatever the values are */
        memset(a->d_grid->data, 0, (size_t)(a->images * a->positions * a->axes * job.size));
    else if (a->d_grid) cpu_parallel(a->images * job.tiles, 1, cost, grid_chunk, &job);
    if ((a->out || a->d_image) && lanes_pay(&job)) run_lanes(&job, cost);
    else if (a->out) cpu_parallel(a->images * job.tiles, 1, cost, sample_chunk, &job);
    else if (a->d_image) cpu_parallel(a->images * job.groups, 1, cost, image_chunk, &job);
    return job.failed ? lc_fail_int(LC_OutOfMemory, "grid_sample: no memory for a tile") : 0;
}
#define FLOATS (1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_grid_sample, cpu_grid_sample, FLOATS)
LC_CPU_RUN(_grid_sample_backward, cpu_grid_sample, FLOATS)

/* Interpolation, forward and backward: a linear map per dimension, stored once per call as the elements and weights (taps)
 * of every result. Backward is the transposed map, stored the same way: for every element, the results that read it. So one
 * walk serves both, it only reads, and its sums do not depend on how many threads share the rows.
 *
 * Rows are interpolated horizontally and then combined vertically (interpolate_rows.isa.o3.c). A thread keeps as many rows
 * as one result needs, in slots by their index, where neighbouring results find them again. */
#include "../cpu.h"
#include "interpolate.h"
#include <math.h>
#include <string.h>

ISA_TABLE(const lc_interpolates, interpolates)

/* ---- positions and weights ---- */
static int64_t width_of(lc_interpolation mode) /* filter width in elements */
{
    static const int8_t width[] = { 1, 1, 2, 4, 2, 4, 6 };
    return width[mode];
}
#define T       float
#define FMA     fmaf
#define NAME(f) f##_f32
#include "interpolate_axis.inc.c"
#define T       double
#define FMA     fma
#define NAME(f) f##_f64
#include "interpolate_axis.inc.c"

static int axis_alloc(interpolate_axis *x, int64_t n, int64_t size, int64_t entries)
{
    x->n = n, x->size = size;
    x->start = cpu_scratch((size_t)(n + 1 + entries) * sizeof *x->start + (size_t)entries * sizeof *x->weight);
    if (!x->start) return lc_fail_int(LC_OutOfMemory, "interpolate: no memory for its weights");
    x->index = x->start + n + 1, x->weight = (double *)(x->index + entries), x->taps = entries; /* taps: see axis_measure */
    return 0;
}
static void axis_free(interpolate_axis *x, int64_t entries)
{
    if (x->start)
        cpu_scratch_free(x->start, (size_t)(x->n + 1 + entries) * sizeof *x->start + (size_t)entries * sizeof *x->weight);
}
static void axis_measure(interpolate_axis *x)
{
    x->taps = x->span = 1, x->copies = x->whole = true;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t low = x->size, high = 0, taps = x->start[i + 1] - x->start[i];
        for (int64_t j = x->start[i]; j < x->start[i + 1]; j++) {
            low = x->index[j] < low ? x->index[j] : low, high = x->index[j] > high ? x->index[j] : high;
            x->copies &= x->weight[j] == 1;
        }
        x->ragged |= i && taps != x->start[1] - x->start[0];
        x->copies &= taps == 1, x->whole &= taps == 1 && low == i;
        x->taps = taps > x->taps ? taps : x->taps;
        if (taps && high - low + 1 > x->span) x->span = high - low + 1;
    }
    x->whole = x->whole && x->copies && x->n == x->size;
}
/* Integer weights as in PyTorch: taps on one element are merged, and weights have as many bits as keep the largest within
 * 16. */
static void axis_quantize(interpolate_axis *x)
{
    double  largest = 0;
    int64_t kept = 0;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t first = kept;
        for (int64_t j = x->start[i]; j < x->start[i + 1]; j++) {
            if (kept > first && x->index[kept - 1] == x->index[j]) x->weight[kept - 1] += x->weight[j];
            else x->index[kept] = x->index[j], x->weight[kept++] = x->weight[j];
            largest = x->weight[kept - 1] > largest ? x->weight[kept - 1] : largest;
        }
        x->start[i] = first;
    }
    x->start[x->n] = kept;
    for (x->bits = 0; x->bits < 22; x->bits++)
        if ((int)(0.5 + largest * (1 << (x->bits + 1))) >= 1 << 15) break;
    for (int64_t j = 0; j < kept; j++) {
        double w = x->weight[j] * (1 << x->bits);
        x->weight[j] = w < 0 ? (int)(w - 0.5) : (int)(w + 0.5);
    }
}
static int axis_transpose(const interpolate_axis *x, interpolate_axis *t)
{
    int64_t entries = x->start[x->n];
    if (axis_alloc(t, x->size, x->n, entries) < 0) return -1;
    memset(t->start, 0, (size_t)(t->n + 1) * sizeof *t->start);
    for (int64_t j = 0; j < entries; j++) t->start[x->index[j] + 1]++;
    for (int64_t i = 0; i < t->n; i++) t->start[i + 1] += t->start[i];
    for (int64_t i = 0; i < x->n; i++)
        for (int64_t j = x->start[i]; j < x->start[i + 1]; j++) {
            int64_t at = t->start[x->index[j]]++;
            t->index[at] = i, t->weight[at] = x->weight[j];
        }
    for (int64_t i = t->n; i > 0; i--) t->start[i] = t->start[i - 1];
    t->start[0] = 0;
    return 0;
}
/* entries: for axis_free. */
static int axis_prepare(const lc_interpolate_args *a, int d, lc_dtype dtype, interpolate_axis *x, int64_t *entries)
{
    int64_t n = a->result[d], size = a->size[d], capacity = width_of(a->mode);
    bool    antialias = a->mode >= LC_LINEAR_ANTIALIAS, bytes = dtype == LC_u8 && a->mode > LC_NEAREST_EXACT;
    bool    same = n == size && (a->mode == LC_LINEAR || bytes || n == 1);
    if (antialias) {
        double step = step_f64(a, d), support = (double)capacity * 0.5 * (step > 1 ? step : 1);
        capacity = (int64_t)ceil(support) * 2 + 1;
        capacity = capacity > size ? size : capacity;
    }
    *entries = same ? n : n * capacity;
    if (axis_alloc(x, n, size, *entries) < 0) return -1;
    if (same) {
        for (int64_t i = 0; i < n; i++) x->start[i] = i, x->index[i] = i, x->weight[i] = 1;
        x->start[n] = n;
    } else if (antialias && dtype == LC_f32) windows_f32(a, d, x, capacity);
    else if (antialias) windows_f64(a, d, x, capacity);
    else if (dtype == LC_f64 || bytes) lay_out_f64(a, d, x);
    else lay_out_f32(a, d, x);
    if (a->backward) {
        interpolate_axis t = { 0 };
        int              rc = axis_transpose(x, &t);
        int64_t          used = x->start[x->n];
        axis_free(x, *entries);
        *x = t, *entries = used;
        if (rc < 0) return x->start = NULL, -1;
    }
    axis_measure(x);
    if (bytes && !x->copies) axis_quantize(x);
    return 0;
}

/* ---- blocks of permuted results ---- */
enum { BLOCK_TAPS = 8 };
static size_t block_bytes(const interpolate_blocks *b, int64_t size)
{
    return (size_t)b->blocks * (sizeof *b->base + 2 * (size_t)(b->taps * b->lanes * size)) + 64;
}
static int blocks_prepare(interpolate_plan *p, int lanes, int64_t size)
{
    const interpolate_axis *x = &p->axis[2];
    interpolate_blocks     *b = &p->block;
    if (!lanes || p->inner > 1 || x->whole || x->taps > BLOCK_TAPS || x->n < lanes || x->size < 2 * lanes) return 0;
    *b = (interpolate_blocks){ .lanes = lanes,
                               .blocks = (x->n + lanes - 1) / lanes,
                               .taps = x->ragged && x->taps < 3 ? 3 : x->taps };
    char *memory = cpu_scratch(block_bytes(b, size));
    if (!memory) return lc_fail_int(LC_OutOfMemory, "interpolate: no memory for its weights");
    b->base = (int64_t *)memory; /* vectors are aligned behind it */
    char *tables = (char *)(((uintptr_t)(b->base + b->blocks) + 63) & ~(uintptr_t)63);
    b->place = tables, b->weight = tables + b->blocks * b->taps * lanes * size;
    for (int64_t k = 0; k < b->blocks; k++) {
        int64_t first = k * lanes, past = first + lanes < x->n ? first + lanes : x->n, low = x->size, high = 0;
        for (int64_t j = x->start[first]; j < x->start[past]; j++)
            low = x->index[j] < low ? x->index[j] : low, high = x->index[j] > high ? x->index[j] : high;
        low = low > x->size - 2 * lanes ? x->size - 2 * lanes : low;
        if (high - low >= 2 * lanes) {
            cpu_scratch_free(memory, block_bytes(b, size));
            return b->lanes = 0;
        }
        b->base[k] = low;
        for (int64_t i = 0; i < lanes; i++)
            for (int64_t t = 0; t < b->taps; t++) {
                bool    there = first + i < x->n && x->start[first + i] + t < x->start[first + i + 1];
                int64_t j = there ? x->start[first + i] + t : 0, at = (k * b->taps + t) * lanes + i;
                int64_t place = there ? x->index[j] - low : b->taps > 2 ? -1 : 0;
                double  weight = there ? x->weight[j] : 0;
                if (size == 4) ((int32_t *)b->place)[at] = (int32_t)place, ((float *)b->weight)[at] = (float)weight;
                else ((int64_t *)b->place)[at] = place, ((double *)b->weight)[at] = weight;
            }
    }
    return 0;
}

/* ---- rows ---- */
typedef struct {
    interpolate_plan           plan;
    const lc_interpolate_rows *rows;
    int64_t                    size, line, slots, mixed; /* bytes of an element, of a line; mixed: the most lines of a row */
    size_t                     bytes;
    atomic_int                 failed;
} interpolate_job;

static void interpolate_chunk(void *ctx, int64_t begin, int64_t end)
{
    interpolate_job        *job = ctx;
    const interpolate_plan *p = &job->plan;
    const interpolate_axis *deep = &p->axis[0], *high = &p->axis[1];
    char                   *scratch = cpu_scratch(job->bytes);
    if (!scratch) {
        job->failed = 1;
        return;
    }
    const void **lines = (const void **)scratch;
    double      *weights = (double *)(lines + job->mixed);
    int64_t     *held = (int64_t *)(weights + job->mixed), in_row = p->from[2] * p->inner * job->size;
    char        *slots = (char *)(((uintptr_t)(held + job->slots) + 63) & ~(uintptr_t)63);
    int64_t      out_row = p->to[2] * p->inner * job->size, rows = p->to[0] * p->to[1], plane_rows = p->from[0] * p->from[1];
    for (int64_t s = 0; s < job->slots; s++) held[s] = -1;
    for (int64_t r = begin; r < end; r++) {
        int64_t     plane = r / rows, o0 = r % rows / p->to[1], o1 = r % p->to[1], m = 0;
        const char *in = p->args->in->data + plane * plane_rows * in_row;
        for (int64_t i = deep->start[o0]; i < deep->start[o0 + 1]; i++)
            for (int64_t j = high->start[o1]; j < high->start[o1 + 1]; j++, m++) {
                int64_t row = deep->index[i] * p->from[1] + high->index[j], id = plane * plane_rows + row;
                int64_t slot = deep->index[i] % deep->span * high->span + high->index[j] % high->span;
                weights[m] = deep->weight[i] * high->weight[j];
                lines[m] = in + row * in_row;
                if (p->axis[2].whole) continue;
                char *line = slots + slot * job->line;
                if (held[slot] != id) job->rows->across(p, line, lines[m]), held[slot] = id;
                lines[m] = line;
            }
        char *out = p->args->out->data + r * out_row;
        if (deep->copies && high->copies) memcpy(out, lines[0], (size_t)out_row);
        else job->rows->down(out, lines, weights, m, p->to[2] * p->inner, high->bits);
    }
    cpu_scratch_free(scratch, job->bytes);
}

static int cpu_interpolate(lc_dtype dtype, const void *args)
{
    const lc_interpolate_args *a = args;
    const lc_interpolates     *table = interpolates_of_this_cpu();
    interpolate_job            job = { .plan = { .args = a, .inner = a->inner } };
    interpolate_plan          *p = &job.plan;
    int64_t                    entries[3];
    int                        rc = 0;
    job.rows = dtype == LC_f32 ? &table->f32 : dtype == LC_f64 ? &table->f64 : &table->u8, job.size = lc_size_of(dtype);
    for (int d = 0; d < 3 && rc == 0; d++) {
        p->from[d] = a->backward ? a->result[d] : a->size[d], p->to[d] = a->backward ? a->size[d] : a->result[d];
        rc = axis_prepare(a, d, dtype, &p->axis[d], &entries[d]);
    }
    if (rc == 0) rc = blocks_prepare(p, job.rows->lanes, job.size);
    if (rc == 0) {
        int64_t rows = a->planes * p->to[0] * p->to[1], width = p->to[2] * p->inner;
        job.mixed = p->axis[0].taps * p->axis[1].taps;
        job.slots = p->axis[2].whole ? 0 : p->axis[0].span * p->axis[1].span;
        job.line = ((width + 2 * p->block.lanes) * job.size + 63) & ~(int64_t)63;
        job.bytes = (size_t)(job.mixed * 16 + job.slots * (8 + job.line) + 128);
        int64_t each = width * (p->axis[2].taps + job.mixed);
        cpu_parallel(rows, 4 * CPU_GRAIN / (each + 1) + 1, rows * each, interpolate_chunk, &job);
        if (job.failed) rc = lc_fail_int(LC_OutOfMemory, "interpolate: no memory for its rows");
    }
    if (p->block.lanes) cpu_scratch_free(p->block.base, block_bytes(&p->block, job.size));
    for (int d = 0; d < 3; d++) axis_free(&p->axis[d], entries[d]);
    return rc;
}
#define FLOATS (1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_interpolate, cpu_interpolate, FLOATS | 1u << LC_u8)
LC_CPU_RUN(_interpolate_backward, cpu_interpolate, FLOATS)

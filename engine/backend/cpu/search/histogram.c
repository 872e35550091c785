/* Histograms: histc, histogram and bincount convert values to bin numbers, tile by tile, and count these. Blocks of the
 * input have separate tables, added at the end; their number depends on sizes only. Counts are int64 and sums double,
 * whatever the result's dtype; in half precision PyTorch's stop at 2048 or 256. */
#include "lookup.h"
#include "../sort/sort_lines.h"
#include "../../args.h"
#include <math.h>
#include <string.h>

enum { TILE = BIN_TILE, MOST_BLOCKS = 16, MOST_CELLS = 1 << 14 }; /* cells of all tables, or a few times the result's */

/* ---- tables ---- */
typedef struct count_job count_job;
struct count_job {
    const void *args;
    /* Bin numbers of elements [at, at + n), n <= TILE, `cells` if outside: in buffer, or in place. */
    const int64_t *(*tile)(const count_job *job, int64_t at, int64_t n, int64_t *buffer);
    const lc_tensor *weight; /* float32 or float64, or NULL */
    int64_t          n, cells, block, blocks;
    int              outside, tables; /* a cell for points outside, or none; tables per block, used in turn */
    void            *table;           /* of cells + outside int64 or double each */
};
static void count_tile(int64_t *table, int64_t second, const int64_t *index, int64_t n)
{
    int64_t i = 0; /* two tables: equal neighbours do not wait for each other */
    for (; i + 1 < n; i += 2) table[index[i]]++, table[second + index[i + 1]]++;
    if (i < n) table[index[i]]++;
}
static void add_tile(double *table, const lc_tensor *weight, bool alone, int64_t at, const int64_t *index, int64_t n)
{
    const float  *single = (const float *)weight->data + at;
    const double *real = (const double *)weight->data + at;
    if (weight->dtype == LC_f32 && alone) /* few elements: rounded after each, as PyTorch's sums are */
        for (int64_t i = 0; i < n; i++) table[index[i]] = (float)table[index[i]] + single[i];
    else if (weight->dtype == LC_f32)
        for (int64_t i = 0; i < n; i++) table[index[i]] += single[i];
    else
        for (int64_t i = 0; i < n; i++) table[index[i]] += real[i];
}
static void count_blocks(void *ctx, int64_t begin, int64_t end)
{
    const count_job *job = ctx;
    int64_t          stride = job->cells + job->outside, buffer[TILE];
    for (int64_t b = begin; b < end; b++) {
        int64_t *table = (int64_t *)job->table + b * job->tables * stride;
        int64_t  stop = (b + 1) * job->block < job->n ? (b + 1) * job->block : job->n;
        memset(table, 0, (size_t)(job->tables * stride) * sizeof *table);
        for (int64_t at = b * job->block, n; at < stop; at += n) {
            n = stop - at < TILE ? stop - at : TILE;
            const int64_t *index = job->tile(job, at, n, buffer);
            if (job->weight) add_tile((double *)table, job->weight, job->blocks == 1, at, index, n);
            else count_tile(table, job->tables > 1 ? stride : 0, index, n);
        }
    }
}
static void deliver(const count_job *job, lc_tensor *out)
{
    int64_t tile[TILE], stride = job->cells + job->outside, tables = job->tables * job->blocks;
    double  sums[TILE];
    for (int64_t at = 0, n; at < job->cells; at += n) {
        n = job->cells - at < TILE ? job->cells - at : TILE;
        memset(tile, 0, sizeof tile), memset(sums, 0, sizeof sums);
        for (int64_t t = 0; t < tables; t++)
            for (int64_t i = 0; i < n; i++)
                if (job->weight) sums[i] += ((double *)job->table)[t * stride + at + i];
                else tile[i] += ((int64_t *)job->table)[t * stride + at + i];
        cpu_move((lc_dtype)out->dtype, out->data + at * lc_size_of(out->dtype), lc_size_of(out->dtype),
                 job->weight ? LC_f64 : LC_i64, job->weight ? (char *)sums : (char *)tile, 8, n);
    }
}
static int count_into(count_job *job, lc_tensor *out, const char *name)
{
    int64_t few[2 * 257];
    job->blocks = job->n / CPU_GRAIN;
    if (job->blocks > MOST_BLOCKS) job->blocks = MOST_BLOCKS;
    job->tables = !job->weight && job->n / 8 >= job->cells ? 2 : 1;
    int64_t most = (MOST_CELLS / job->cells + 4) / job->tables;
    job->blocks = job->blocks < 1 ? 1 : job->blocks > most ? most : job->blocks;
    job->block = (job->n + job->blocks - 1) / job->blocks;
    if (job->tables * job->blocks == 1 && !job->weight && !job->outside && out->dtype == LC_i64) /* the result is the table */
        return job->table = out->data, count_blocks(job, 0, 1), 0;
    size_t bytes = (size_t)(job->blocks * job->tables * (job->cells + job->outside)) * sizeof(int64_t);
    if (!(job->table = bytes <= sizeof few ? few : cpu_scratch(bytes)))
        return lc_fail_int(LC_OutOfMemory, "%s: no memory for %lld bins", name, (long long)job->cells);
    cpu_parallel(job->blocks, 1, job->n, count_blocks, job);
    deliver(job, out);
    if (job->table != few) cpu_scratch_free(job->table, bytes);
    return 0;
}

/* ---- histogram ---- */
typedef struct {
    const lc_histogram_args *args;
    bin_line                 line[LC_MAX_DIMS];
    bool                     search;
} histogram;

/* The bin by searching the edges, which may be anything. */
static void search_bins(lc_dtype dtype, const char *in, int64_t step, int64_t n, const bin_line *b, int32_t *bin)
{
    double  x[TILE], inside[TILE]; /* of either dtype */
    int64_t place[TILE], where[TILE + 1], size = lc_size_of(dtype), m = 0;
    cpu_move(dtype, (char *)x, size, dtype, in, step * size, n);
    for (int64_t i = 0; i < n; i++) { /* many may be outside: those are not searched */
        double v = dtype == LC_f32 ? ((float *)x)[i] : x[i];
        where[m] = i, m += (v >= b->low) & (v <= b->high);
        bin[i] = -1;
    }
    cpu_gather(size, (char *)inside, size, (char *)x, size, where, m);
    cpu_lookup(dtype)->search(b->edges, NULL, b->ordered, b->bins + 1, inside, m, true, place);
    for (int64_t i = 0; i < m; i++) bin[where[i]] = (int32_t)(place[i] <= b->bins ? place[i] - 1 : b->bins - 1);
}
static const int64_t *histogram_tile(const count_job *job, int64_t at, int64_t n, int64_t *index)
{
    const histogram         *h = job->args;
    const lc_histogram_args *a = h->args;
    lc_dtype                 dtype = (lc_dtype)a->in->dtype;
    int32_t                  bin[TILE];
    for (int d = 0; d < a->dims; d++) {
        const char *x = a->in->data + (at * a->dims + d) * lc_size_of(dtype);
        int64_t     bins = h->line[d].bins;
        if (h->search) search_bins(dtype, x, a->dims, n, &h->line[d], bin);
        else cpu_lookup(dtype)->bins(x, a->dims, n, &h->line[d], bin);
        if (d == 0)
            for (int64_t i = 0; i < n; i++) index[i] = bin[i];
        else
            for (int64_t i = 0; i < n; i++) index[i] = index[i] < 0 || bin[i] < 0 ? -1 : index[i] * bins + bin[i];
    }
    for (int64_t i = 0; i < n; i++) index[i] = index[i] < 0 ? job->cells : index[i];
    return index;
}

typedef struct {
    const lc_tensor *in;
    int64_t          blocks;
    double           low[MOST_BLOCKS], high[MOST_BLOCKS];
} range_job;
static void range_blocks(void *ctx, int64_t begin, int64_t end)
{
    range_job *r = ctx;
    int64_t    n = r->in->numel, block = (n + r->blocks - 1) / r->blocks;
    for (int64_t b = begin; b < end; b++) {
        int64_t start = b * block < n ? b * block : n - 1, count = n - start < block ? n - start : block;
        cpu_lookup((lc_dtype)r->in->dtype)
            ->range(r->in->data + start * lc_size_of(r->in->dtype), count, &r->low[b], &r->high[b]);
    }
}
/* histc's range: as given, or that of the values; a single value gets a bin's width around it. */
static int choose_range(const lc_histogram_args *a, bin_line *line)
{
    range_job r = { .in = a->in, .blocks = a->in->numel / CPU_GRAIN };
    line->low = a->low, line->high = a->high;
    if (a->low == a->high && a->in->numel) {
        r.blocks = r.blocks < 1 ? 1 : r.blocks > MOST_BLOCKS ? MOST_BLOCKS : r.blocks;
        cpu_parallel(r.blocks, 1, a->in->numel, range_blocks, &r);
        line->low = r.low[0], line->high = r.high[0];
        for (int64_t b = 0; b < r.blocks; b++) {
            line->low = r.low[b] < line->low || r.low[b] != r.low[b] ? r.low[b] : line->low;
            line->high = r.high[b] > line->high || r.high[b] != r.high[b] ? r.high[b] : line->high;
        }
    }
    if (line->low == line->high) line->low -= 1, line->high += 1;
    if (!isfinite(line->low) || !isfinite(line->high))
        return lc_fail_int(LC_LucidError, "histc: range of [%g, %g] is not finite", line->low, line->high);
    if (line->low >= line->high) return lc_fail_int(LC_LucidError, "histc: max must be larger than min");
    return 0;
}
static int cpu_histogram(UNUSED lc_dtype compute, const void *args)
{
    const lc_histogram_args *a = args;
    histogram                h = { .args = a, .search = a->edges && !a->even };
    for (int d = 0; d < a->dims; d++) {
        h.line[d].bins = a->out->shape[d], h.line[d].edges = NULL;
        if (!a->edges) {
            if (choose_range(a, &h.line[d]) < 0) return -1;
            continue;
        }
        const lc_tensor *e = a->edges[d];
        int64_t          size = lc_size_of(e->dtype);
        h.line[d].edges = e->data, h.line[d].ordered = h.search && cpu_lookup((lc_dtype)e->dtype)->in_order(e->data, e->numel);
        cpu_move(LC_f64, (char *)&h.line[d].low, 8, (lc_dtype)e->dtype, e->data, size, 1);
        cpu_move(LC_f64, (char *)&h.line[d].high, 8, (lc_dtype)e->dtype, e->data + (e->numel - 1) * size, size, 1);
    }
    count_job job = { .args = &h, .tile = histogram_tile, .weight = a->weight, .cells = a->out->numel, .outside = 1 };
    job.n = a->dims ? a->in->numel / a->dims : 0;
    return count_into(&job, a->out, "histogram");
}
#define FLOAT_BITS 0 LC_EACH_floating(LC_SORTABLE_BIT, )
LC_CPU_RUN(histc, cpu_histogram, FLOAT_BITS | 1u << LC_f16 | 1u << LC_bf16)
LC_CPU_RUN(_histogram, cpu_histogram, FLOAT_BITS)

/* ---- bincount ---- */
static const int64_t *whole_numbers(const lc_tensor *in, int64_t at, int64_t n, int64_t *buffer)
{
    int64_t size = lc_size_of(in->dtype);
    if (in->dtype == LC_i64) return (const int64_t *)in->data + at;
    cpu_move(LC_i64, (char *)buffer, 8, (lc_dtype)in->dtype, in->data + at * size, size, n);
    return buffer;
}
static const int64_t *bincount_tile(const count_job *job, int64_t at, int64_t n, int64_t *buffer)
{
    return whole_numbers(((const lc_bincount_args *)job->args)->in, at, n, buffer);
}
typedef struct {
    const lc_tensor *in;
    _Atomic int64_t  most;
    atomic_int       negative;
} extent_job;
static void extent_chunk(void *ctx, int64_t begin, int64_t end)
{
    extent_job *e = ctx;
    uint64_t    most = 0; /* a negative number becomes a large one */
    int64_t     buffer[TILE];
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at < TILE ? end - at : TILE;
        const int64_t *x = whole_numbers(e->in, at, n, buffer);
        uint64_t       here = cpu_sort_kernels()->largest((const uint64_t *)x, n);
        most = here > most ? here : most;
    }
    if (most > INT64_MAX) e->negative = 1;
    else
        for (int64_t seen = e->most; (int64_t)most > seen && !atomic_compare_exchange_weak(&e->most, &seen, (int64_t)most);)
            continue;
}
static int cpu_bincount(UNUSED lc_dtype compute, const void *args)
{
    const lc_bincount_args *a = args;
    extent_job              e = { .in = a->in };
    count_job               job = { .args = a, .tile = bincount_tile, .weight = a->weights, .n = a->in->numel };
    if (a->out) return job.cells = a->out->numel, count_into(&job, a->out, "bincount");
    cpu_parallel(a->in->numel, CPU_GRAIN, a->in->numel, extent_chunk, &e);
    if (e.negative) return lc_fail_int(LC_LucidError, "bincount only supports 1-d non-negative integral inputs.");
    *(int64_t *)a->size->data = a->in->numel ? e.most + 1 : 0;
    return 0;
}
LC_CPU_RUN(bincount, cpu_bincount, 0 LC_EACH_integral(LC_SORTABLE_BIT, ))

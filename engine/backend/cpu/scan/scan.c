/* cumsum, cumprod, cummax, cummin: the input is (outer, n, inner), contiguous, and so is the output. If inner is one, a unit
 * of work is a line; otherwise it is a block of neighbouring lines, which are interleaved. Few long lines of sums are cut
 * into pieces: their totals first, then each piece from the preceding total. The cuts depend on shapes only, so results do
 * not depend on the number of threads. */
#include "../cpu.h"
#include "scan_lines.h"
#include "../../args.h"
#include <string.h>

ISA_TABLE(const lc_scans, scans)
static const lc_scan *scan_of(scan_kind kind, lc_dtype dtype)
{
    const lc_scans *const table = scans_of_this_cpu();
    return &(*table)[kind][dtype];
}

enum { PIECE = 1 << 13, MAX_PIECES = 1 << 12 };
typedef union {
    double   f[2];
    uint64_t i;
} sum_box;
typedef struct {
    const lc_scan *scan;
    char          *out;
    const char    *in;
    int64_t       *at;
    int64_t        n, inner, size, blocks;
    int64_t        pieces, piece; /* of each line */
    sum_box       *totals;        /* lines x pieces */
} scan_job;

static void scan_units(void *ctx, int64_t begin, int64_t end)
{
    const scan_job *j = ctx;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t block = unit % j->blocks, first = unit / j->blocks * j->n * j->inner + block * SCAN_LANES;
        int64_t lanes = j->inner - block * SCAN_LANES < SCAN_LANES ? j->inner - block * SCAN_LANES : SCAN_LANES;
        void   *out = j->out + first * j->size;
        sum_box zero = { { 0, 0 } };
        if (j->inner == 1) j->scan->line(out, j->at ? j->at + first : NULL, j->in + first * j->size, j->n, &zero);
        else j->scan->lanes(out, j->at ? j->at + first : NULL, j->in + first * j->size, j->n, lanes, j->inner);
    }
}
static int64_t piece_size(const scan_job *j, int64_t piece)
{
    return j->n - piece * j->piece < j->piece ? j->n - piece * j->piece : j->piece;
}
static void add_pieces(void *ctx, int64_t begin, int64_t end)
{
    const scan_job *j = ctx;
    for (int64_t k = begin; k < end; k++) {
        int64_t line = k / j->pieces, piece = k % j->pieces;
        j->scan->total(&j->totals[k], j->in + (line * j->n + piece * j->piece) * j->size, piece_size(j, piece));
    }
}
static void scan_piece(const scan_job *j, int64_t k, sum_box *before)
{
    int64_t line = k / j->pieces, piece = k % j->pieces, first = line * j->n + piece * j->piece;
    j->scan->line(j->out + first * j->size, NULL, j->in + first * j->size, piece_size(j, piece), before);
}
static void scan_pieces(void *ctx, int64_t begin, int64_t end)
{
    const scan_job *j = ctx;
    for (int64_t k = begin; k < end; k++) scan_piece(j, k, &j->totals[k]);
}
/* Replaces the total of piece k by the sum of the pieces before it. */
static void place_piece(scan_job *j, int64_t k, sum_box *before, bool whole)
{
    sum_box mine = j->totals[k];
    j->totals[k] = *before;
    if (whole) before->i += mine.i;
    else before->f[0] += mine.f[0], before->f[1] += mine.f[1];
}
static int scan_in_pieces(scan_job *j, int64_t lines, lc_dtype dtype)
{
    bool    alone = lc_num_threads() == 1, whole = lc_class_of(dtype) < LC_FLOAT;
    sum_box before;
    j->piece = PIECE;
    while ((j->n + j->piece - 1) / j->piece > MAX_PIECES) j->piece *= 2;
    j->pieces = (j->n + j->piece - 1) / j->piece;
    int64_t tasks = lines * j->pieces;
    size_t  bytes = (size_t)tasks * sizeof *j->totals;
    if (!(j->totals = cpu_scratch(bytes))) return -1;
    if (!alone) cpu_parallel(tasks, 4, lines * j->n, add_pieces, j);
    for (int64_t k = 0; k < tasks; k++) {
        if (k % j->pieces == 0) before = (sum_box){ { 0, 0 } };
        if (!alone) place_piece(j, k, &before, whole);
        else scan_piece(j, k, &before);
    }
    if (!alone) cpu_parallel(tasks, 4, lines * j->n, scan_pieces, j);
    cpu_scratch_free(j->totals, bytes);
    return 0;
}

static int run_scan(scan_kind kind, lc_dtype dtype, const lc_scan_args *a)
{
    int64_t  outer, few = 4;
    scan_job j = { .scan = scan_of(kind, dtype), .out = a->out->data, .in = a->in->data, .size = lc_size_of(dtype) };
    j.at = a->index ? (int64_t *)a->index->data : NULL;
    cpu_split_at(a->in, a->dim, &outer, &j.n, &j.inner);
    if (a->in->numel == 0) return 0;
    j.blocks = (j.inner + SCAN_LANES - 1) / SCAN_LANES;
    if (j.inner == 1 && outer < few && j.n >= 2 * PIECE && j.scan->total) return scan_in_pieces(&j, outer, dtype);
    int64_t work = j.n * (j.inner < SCAN_LANES ? j.inner : SCAN_LANES);
    cpu_parallel(outer * j.blocks, CPU_GRAIN / work + 1, a->in->numel, scan_units, &j);
    return 0;
}
static int cpu_cumsum(lc_dtype dtype, const void *args) { return run_scan(CUMSUM, dtype, args); }
static int cpu_cumprod(lc_dtype dtype, const void *args) { return run_scan(CUMPROD, dtype, args); }
static int cpu_cummax(lc_dtype dtype, const void *args) { return run_scan(CUMMAX, dtype, args); }
static int cpu_cummin(lc_dtype dtype, const void *args) { return run_scan(CUMMIN, dtype, args); }
#define DTYPE_BIT(op, dtype) | 1u << LC_##dtype
LC_CPU_RUN(cumsum, cpu_cumsum, 0 LC_EACH_arith(DTYPE_BIT, ))
LC_CPU_RUN(cumprod, cpu_cumprod, 0 LC_EACH_arith(DTYPE_BIT, ))
LC_CPU_RUN(cummax, cpu_cummax, 0 LC_EACH_ordered(DTYPE_BIT, ))
LC_CPU_RUN(cummin, cpu_cummin, 0 LC_EACH_ordered(DTYPE_BIT, ))

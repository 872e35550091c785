/* Order statistics: median, nanmedian, kthvalue, mode, and an element of a given rank (several ranks: quantile.c).
 *
 * Radix select finds an element of a given rank by the digits of the keys, in linear time whatever the values: no
 * comparisons, no branch mispredictions. Equal values rank by index, as in a stable sort; for medians PyTorch has the same
 * rule. For kthvalue and mode, PyTorch reports the index that its algorithm happens to end on (its own quickselect, and
 * std::sort). So if a value occurs several times, we follow those algorithms step by step, and only then does a line need a
 * workspace of its own size (in PyTorch it always does). A line of up to 24 KiB is converted to keys in a buffer; a longer
 * one is read again for each digit. Threads share the lines. */
#include "radix_select.h"
#include "../math/scalar_math.h"
#include "../../args.h"
#include "../../../tensor/iter.h"
#include <string.h>
#pragma GCC diagnostic ignored "-Wtautological-compare" /* x != x for integers: the code serves all dtypes */
#pragma GCC diagnostic ignored "-Wtype-limits"

typedef enum { MEDIAN, NANMEDIAN, KTHVALUE, MODE, RANKED } rank_kind;
enum {
    RANK_DIGIT = 11,
    RANK_TILE = 1024,                                   /* elements of a long line processed at a time */
    RANK_SHORT = 24 << 10,                              /* bytes of a line whose keys are kept */
    RANK_SCRATCH = 2 * RANK_SHORT + RANK_TILE * 8 + 64, /* keys, then the line or tiles of it */
};
static int64_t wanted_rank(rank_kind kind, int64_t n, int64_t nans, int64_t k)
{
    if (kind == MEDIAN && nans) return n - nans; /* the first NaN */
    return kind == MEDIAN || kind == NANMEDIAN ? n > nans ? (n - nans - 1) / 2 : 0 : k;
}

/* Keys are unsigned integers as wide as the elements. */
#define KEY_u8  uint8_t
#define KEY_i8  uint8_t
#define KEY_i16 uint16_t
#define KEY_i32 uint32_t
#define KEY_i64 uint64_t
#define KEY_f32 uint32_t
#define KEY_f64 uint64_t
#define T       CAT(lc, SFX)
#define K       CAT(KEY, SFX)
#define NAME(f) CAT(f, SFX)

#define IS_FLOAT 0
#define SFX      u8
#include "radix_select.inc.c"
#define SFX i8
#include "radix_select.inc.c"
#define SFX i16
#include "radix_select.inc.c"
#define SFX i32
#include "radix_select.inc.c"
#define SFX i64
#include "radix_select.inc.c"
#undef IS_FLOAT
#define IS_FLOAT 1
#define SFX      f32
#include "radix_select.inc.c"
#define SFX f64
#include "radix_select.inc.c"

/* Returns an index, or -1 if out of memory. */
typedef int64_t (*line_fn)(rank_kind kind, const rank_line *l, int64_t k, void *scratch);
static const line_fn lines[LC_DTYPE_COUNT] = {
#define LINE(op, dtype) [LC_##dtype] = line_##dtype,
    LC_EACH_real(LINE, )[LC_b8] = line_u8,
};
/* Scratch bytes. Short line: keys and, unless contiguous, elements. Long line: remaining keys and a tile. */
size_t cpu_rank_scratch(int64_t n, int64_t size, bool moved)
{
    return n * size > RANK_SHORT ? RANK_SCRATCH : RANK_SHORT + 64 + (moved ? (size_t)(n * size) : 0);
}

int64_t cpu_rank_one(const rank_line *l, int64_t k, void *scratch)
{
    return lines[l->work](RANKED, l, k, scratch);
} /* never -1 */
int cpu_rank_fits(int64_t n)
{
    return n <= UINT32_MAX ? 0 : lc_fail_int(LC_LucidError, "more than 2^32 elements (%lld) cannot be ranked", (long long)n);
}

/* ---- one element of each line: lc_reduce_args whose mask names one dimension and whose parameter is k ---- */
typedef struct {
    lc_iter    it; /* over the other dimensions: in, value, index */
    rank_kind  kind;
    line_fn    line;
    rank_line  each; /* all but x */
    int64_t    size, k;
    bool       has_index;
    char      *scratch;
    atomic_int failed;
} rank_walk;

static int rank_lines(void *ctx, char *const *ptr, const int64_t *stride, int64_t count)
{
    const rank_walk *w = ctx;
    rank_line        l = w->each;
    for (int64_t i = 0; i < count; i++) {
        l.x = ptr[0] + i * stride[0];
        int64_t at = w->line(w->kind, &l, w->k, w->scratch);
        if (at < 0) return -1;
        cpu_move(l.work, ptr[1] + i * stride[1], w->size, l.from, l.x + at * l.step, l.step, 1);
        if (w->has_index) *(int64_t *)(ptr[2] + i * stride[2]) = at;
    }
    return 0;
}
static void rank_chunk(void *ctx, int64_t begin, int64_t end)
{
    rank_walk *job = ctx, w = *job;
    size_t     bytes = cpu_rank_scratch(w.each.n, w.size, w.each.from != w.each.work || w.each.step != w.size);
    if (!(w.scratch = cpu_scratch(bytes)) || lc_iter_range(&w.it, begin, end, rank_lines, &w) < 0) job->failed = 1;
    cpu_scratch_free(w.scratch, bytes);
}
static int run_rank(rank_kind kind, lc_dtype dtype, const lc_reduce_args *a)
{
    int64_t   size = lc_size_of(dtype), item = lc_size_of(a->in->dtype), bytes[3][LC_MAX_DIMS], shape[LC_MAX_DIMS], count = 1;
    int       kept = 0;
    rank_walk w = { .kind = kind, .line = lines[dtype], .size = size };
    w.each = (rank_line){ .step = item, .n = 1, .from = (lc_dtype)a->in->dtype, .work = dtype };
    w.k = (int64_t)a->parameter, w.has_index = a->index;
    for (int d = 0; d < a->in->ndim; d++) {
        if (a->mask >> d & 1) {
            w.each.n = a->in->shape[d];
            if (w.each.n > 1) w.each.step = a->in->stride[d] * item;
            continue;
        }
        shape[kept] = a->in->shape[d], count *= shape[kept];
        bytes[0][kept] = a->in->stride[d] * item, bytes[1][kept] = a->value_stride[d] * size;
        bytes[2][kept++] = a->index ? a->index_stride[d] * 8 : 0;
    }
    if (!count) return 0;
    if (cpu_rank_fits(w.each.n) < 0) return -1;
    lc_iter_start(&w.it, kept, shape);
    lc_iter_add_raw(&w.it, a->in->data, bytes[0]);
    lc_iter_add_raw(&w.it, a->value->data, bytes[1]);
    lc_iter_add_raw(&w.it, a->index ? a->index->data : a->value->data, bytes[2]);
    lc_iter_prepare(&w.it, true);
    cpu_parallel(count, CPU_GRAIN / (8 * w.each.n) + 1, 8 * count * w.each.n, rank_chunk, &w);
    return w.failed ? lc_fail_int(LC_OutOfMemory, "no memory to rank %lld elements", (long long)w.each.n) : 0;
}
static int cpu_median(lc_dtype dtype, const void *args) { return run_rank(MEDIAN, dtype, args); }
static int cpu_nanmedian(lc_dtype dtype, const void *args) { return run_rank(NANMEDIAN, dtype, args); }
static int cpu_kthvalue(lc_dtype dtype, const void *args) { return run_rank(KTHVALUE, dtype, args); }
static int cpu_mode(lc_dtype dtype, const void *args) { return run_rank(MODE, dtype, args); }
#define DTYPE_BIT(op, dtype) | 1u << LC_##dtype
LC_CPU_RUN(median_dim, cpu_median, 0 LC_EACH_real(DTYPE_BIT, ))
LC_CPU_RUN(median, cpu_median, 0 LC_EACH_real(DTYPE_BIT, ))
LC_CPU_RUN(nanmedian, cpu_nanmedian, 0 LC_EACH_real(DTYPE_BIT, ))
LC_CPU_RUN(nanmedian_dim, cpu_nanmedian, 0 LC_EACH_real(DTYPE_BIT, ))
LC_CPU_RUN(kthvalue, cpu_kthvalue, 0 LC_EACH_real(DTYPE_BIT, ))
LC_CPU_RUN(mode, cpu_mode, 0 LC_EACH_ordered(DTYPE_BIT, ))

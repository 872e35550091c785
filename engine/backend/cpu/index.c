/* Indexing of every kind: gather, scatter, index_select, advanced indexing, embedding rows. One walk (args.h: lc_index_args) with a row
 * function per element width for moves, per dtype for sums.
 *
 * Nothing is written before every index is known to be in range. Several index tensors are folded into one tensor of offsets first, over
 * their own broadcast shape, so the walk always has three operands: many, each, index.
 *
 * Threads. Reads split anywhere. Writes split along a dimension that no index decides: two chunks then never meet in `many`, and within
 * a chunk the order of the walk is kept. So duplicates are summed, or win, in the same order whatever the number of threads. */
#include "convert.h"
#include "cpu.h"
#include "../args.h"
#include "../../tensor/iter.h"
#include <string.h>

typedef struct {
    int64_t size, step; /* step in bytes */
} indexed_row;

static inline int64_t index_offset(const indexed_row *row, const char *at)
{
    int64_t index = *(const int64_t *)at;
    return (index < 0 ? index + row->size : index) * row->step;
}

typedef struct {
    uint64_t low, high;
} wide;
#define T       uint8_t
#define NAME(f) f##_1
#include "index_move.inc.c"
#define T       uint16_t
#define NAME(f) f##_2
#include "index_move.inc.c"
#define T       uint32_t
#define NAME(f) f##_4
#include "index_move.inc.c"
#define T       uint64_t
#define NAME(f) f##_8
#include "index_move.inc.c"
#define T       wide
#define NAME(f) f##_16
#include "index_move.inc.c"

/* A row that accumulates into `many`: COMBINE is the dtype's arithmetic. */
#define ACCUMULATE(name, T, COMBINE)                                                                                           \
    static int name(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)                                             \
    {                                                                                                                          \
        const indexed_row *row = ctx;                                                                                          \
        if (stride[2] == 0 && stride[0] == sizeof(T) && stride[1] == sizeof(T)) {                                              \
            T       *to = (T *)(ptr[0] + index_offset(row, ptr[2]));                                                           \
            const T *each = (const T *)ptr[1];                                                                                 \
            for (int64_t i = 0; i < n; i++) to[i] = (T)COMBINE(to[i], each[i]);                                                \
        } else                                                                                                                 \
            for (int64_t i = 0; i < n; i++) {                                                                                  \
                T *to = (T *)(ptr[0] + i * stride[0] + index_offset(row, ptr[2] + i * stride[2]));                             \
                *to = (T)COMBINE(*to, *(const T *)(ptr[1] + i * stride[1]));                                                   \
            }                                                                                                                  \
        return 0;                                                                                                              \
    }
#define ACCUMULATES(dtype, T, PLUS, TIMES) ACCUMULATE(add_##dtype, T, PLUS) ACCUMULATE(multiply_##dtype, T, TIMES)
#define PLUS(a, b)                         ((a) + (b))
#define TIMES(a, b)                        ((a) * (b))
#define ANY(a, b)                          ((a) | (b))
#define BOTH(a, b)                         ((a) & (b))
#define F16_PLUS(a, b)                     lc_f32_to_f16(lc_f16_to_f32(a) + lc_f16_to_f32(b))
#define F16_TIMES(a, b)                    lc_f32_to_f16(lc_f16_to_f32(a) * lc_f16_to_f32(b))
#define BF16_PLUS(a, b)                    lc_f32_to_bf16(lc_bf16_to_f32(a) + lc_bf16_to_f32(b))
#define BF16_TIMES(a, b)                   lc_f32_to_bf16(lc_bf16_to_f32(a) * lc_bf16_to_f32(b))
#define C32_PLUS(a, b)                     c32_of_c64(c64_of_c32(a) + c64_of_c32(b))
#define C32_TIMES(a, b)                    c32_of_c64(c64_of_c32(a) * c64_of_c32(b))
ACCUMULATES(b8, uint8_t, ANY, BOTH)
ACCUMULATES(u8, uint8_t, PLUS, TIMES)
ACCUMULATES(i8, int8_t, PLUS, TIMES)
ACCUMULATES(i16, int16_t, PLUS, TIMES)
ACCUMULATES(i32, uint32_t, PLUS, TIMES) /* unsigned: sums wrap */
ACCUMULATES(i64, uint64_t, PLUS, TIMES)
ACCUMULATES(u16, uint16_t, PLUS, TIMES)
ACCUMULATES(u32, uint32_t, PLUS, TIMES)
ACCUMULATES(u64, uint64_t, PLUS, TIMES)
ACCUMULATES(f16, uint16_t, F16_PLUS, F16_TIMES)
ACCUMULATES(bf16, uint16_t, BF16_PLUS, BF16_TIMES)
ACCUMULATES(f32, float, PLUS, TIMES)
ACCUMULATES(f64, double, PLUS, TIMES)
ACCUMULATES(c32, uint32_t, C32_PLUS, C32_TIMES)
ACCUMULATES(c64, _Complex float, PLUS, TIMES)
ACCUMULATES(c128, _Complex double, PLUS, TIMES)

static lc_row_fn row_function(lc_index_mode mode, lc_dtype dtype)
{
    static const lc_row_fn moves[17][2] = { [1] = { read_1, write_1 },
                                            [2] = { read_2, write_2 },
                                            [4] = { read_4, write_4 },
                                            [8] = { read_8, write_8 },
                                            [16] = { read_16, write_16 } };
    static const lc_row_fn sums[LC_DTYPE_COUNT][2] = {
#define DTYPE(name, ctype, acc, py, class) [LC_##name] = { add_##name, multiply_##name },
#include "../../core/dtype.def"
#undef DTYPE
    };
    return mode <= LC_INDEX_WRITE ? moves[lc_size_of(dtype)][mode] : sums[dtype][mode - LC_INDEX_ADD];
}

/* ---- ranges ---- */
typedef struct {
    lc_iter     it;
    int64_t     low, size; /* good: low <= index < size */
    _Atomic int bad;
} range_check;

static int row_in_range(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const range_check *check = ctx;
    uint64_t           span = (uint64_t)(check->size - check->low);
    bool               bad = false;
    if (stride[0] == sizeof(int64_t))
        for (int64_t i = 0; i < n; i++) bad |= (uint64_t)(((const int64_t *)ptr[0])[i] - check->low) >= span;
    else
        for (int64_t i = 0; i < n; i++) bad |= (uint64_t)(*(const int64_t *)(ptr[0] + i * stride[0]) - check->low) >= span;
    return bad;
}
static int name_bad_index(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const lc_index_operand *k = *(const lc_index_operand **)ctx;
    int64_t                 low = *((const int64_t **)ctx)[1];
    for (int64_t i = 0; i < n; i++) {
        int64_t index = *(const int64_t *)(ptr[0] + i * stride[0]);
        if (index < low || index >= k->size)
            return lc_fail_int(LC_IndexError, "index %lld is out of bounds for dimension %d with size %lld", (long long)index,
                               k->dim, (long long)k->size);
    }
    return 0;
}
static void check_chunk(void *ctx, int64_t begin, int64_t end)
{
    range_check *check = ctx;
    if (lc_iter_range(&check->it, begin, end, row_in_range, check)) check->bad = 1;
}
static int check_range(const lc_index_operand *k, bool wraps)
{
    range_check check = { .low = wraps ? -k->size : 0, .size = k->size };
    lc_iter_start(&check.it, k->index->ndim, k->index->shape);
    lc_iter_add(&check.it, k->index);
    lc_iter_prepare(&check.it, true);
    cpu_parallel(k->index->numel, CPU_GRAIN, k->index->numel, check_chunk, &check);
    return check.bad ? lc_iter_range(&check.it, 0, k->index->numel, name_bad_index, (const void *[]){ k, &check.low }) : 0;
}

/* ---- several index tensors become one tensor of offsets ---- */
static int add_offsets(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    for (int64_t i = 0; i < n; i++) *(int64_t *)(ptr[0] + i * stride[0]) += index_offset(ctx, ptr[1] + i * stride[1]);
    return 0;
}
static int64_t *fold_indices(const lc_index_args *a, int64_t *stride, int64_t *count)
{
    int64_t shape[LC_MAX_DIMS], bytes[2][LC_MAX_DIMS];
    *count = 1;
    for (int d = a->ndim - 1; d >= 0; d--) {
        bool used = false;
        for (int k = 0; k < a->n_index; k++) used |= a->index[k].stride[d] != 0;
        shape[d] = used ? a->shape[d] : 1;
        stride[d] = used ? *count : 0;
        *count *= shape[d];
    }
    int64_t *offsets = lc_alloc((size_t)*count * sizeof *offsets);
    if (!offsets) return NULL;
    memset(offsets, 0, (size_t)*count * sizeof *offsets);
    for (int k = 0; k < a->n_index; k++) {
        lc_iter it;
        for (int d = 0; d < a->ndim; d++) bytes[0][d] = stride[d] * 8, bytes[1][d] = a->index[k].stride[d] * 8;
        lc_iter_start(&it, a->ndim, shape);
        lc_iter_add_raw(&it, (char *)offsets, bytes[0]);
        lc_iter_add_raw(&it, a->index[k].index->data, bytes[1]);
        lc_iter_prepare(&it, true);
        lc_iter_range(&it, 0, *count, add_offsets, &(indexed_row){ a->index[k].size, a->index[k].step });
    }
    return offsets;
}

/* ---- the walk ---- */
typedef struct {
    const lc_index_args *args;
    const char          *index;
    int64_t              index_stride[LC_MAX_DIMS];
    indexed_row          row;
    lc_row_fn            fn;
    lc_iter              it;         /* reads: prepared once */
    int                  split_dim;  /* writes */
    bool                 whole_rows; /* reads: chunks count rows, not elements */
} walk;

static void start_walk(const walk *w, lc_iter *it, const int64_t *shape, int64_t shift)
{
    const lc_index_args *a = w->args;
    int64_t              bytes[3][LC_MAX_DIMS], size = lc_size_of(a->many->dtype), s = w->split_dim;
    for (int d = 0; d < a->ndim; d++)
        bytes[0][d] = a->many_stride[d] * size, bytes[1][d] = a->each_stride[d] * size, bytes[2][d] = w->index_stride[d] * 8;
    lc_iter_start(it, a->ndim, shape);
    lc_iter_add_raw(it, a->many->data + (shift ? shift * bytes[0][s] : 0), bytes[0]);
    lc_iter_add_raw(it, a->each->data + (shift ? shift * bytes[1][s] : 0), bytes[1]);
    lc_iter_add_raw(it, (char *)w->index + (shift ? shift * bytes[2][s] : 0), bytes[2]);
    lc_iter_prepare(it, a->mode == LC_INDEX_READ);
}
/* Elements [begin, end) of a prepared walk. A table of rows, the usual case, needs none of the iterator's bookkeeping. */
static void walk_range(const walk *w, const lc_iter *it, int64_t begin, int64_t end)
{
    int64_t n = lc_iter_row(it), step[3];
    if (it->ndim != 2 || begin % n || end % n) {
        lc_iter_range(it, begin, end, w->fn, (void *)&w->row);
        return;
    }
    for (int k = 0; k < 3; k++) step[k] = lc_iter_step(it, k);
    for (int64_t row = begin / n; row < end / n; row++) {
        char *ptr[3];
        for (int k = 0; k < 3; k++) ptr[k] = it->ptr[k] + row * it->stride[k][0];
        w->fn((void *)&w->row, ptr, step, n);
    }
}
static void read_chunk(void *ctx, int64_t begin, int64_t end)
{
    const walk *w = ctx;
    int64_t     n = w->whole_rows ? lc_iter_row(&w->it) : 1;
    walk_range(w, &w->it, begin * n, end * n);
}
static void write_chunk(void *ctx, int64_t begin, int64_t end)
{
    const walk *w = ctx;
    int64_t     shape[LC_MAX_DIMS], numel = 1;
    lc_iter     it;
    memcpy(shape, w->args->shape, (size_t)w->args->ndim * sizeof *shape);
    if (w->split_dim >= 0) shape[w->split_dim] = end - begin;
    for (int d = 0; d < w->args->ndim; d++) numel *= shape[d];
    start_walk(w, &it, shape, begin);
    walk_range(w, &it, 0, numel);
}
static void run_walk(walk *w, int64_t numel)
{
    const lc_index_args *a = w->args;
    w->split_dim = -1;
    if (a->mode == LC_INDEX_READ) {
        start_walk(w, &w->it, a->shape, 0);
        int64_t row = lc_iter_row(&w->it);
        w->whole_rows = row <= CPU_GRAIN;
        if (w->whole_rows) cpu_parallel(numel / row, CPU_GRAIN / row, numel, read_chunk, w);
        else cpu_parallel(numel, CPU_GRAIN, numel, read_chunk, w);
        return;
    }
    for (int d = 0; d < a->ndim; d++) /* the largest dimension that indices do not decide; the first of equals */
        if (a->many_stride[d] != 0 && (w->split_dim < 0 || a->shape[d] > a->shape[w->split_dim])) w->split_dim = d;
    /* One piece per thread, of whole cache lines: unlike elsewhere the cut may follow the number of threads, because no sum crosses it. */
    int64_t n = w->split_dim < 0 ? 1 : a->shape[w->split_dim], threads = numel <= CPU_GRAIN ? 1 : lc_num_threads();
    int64_t grain = ((n + threads - 1) / threads + 15) / 16 * 16;
    cpu_parallel(n, grain, numel, write_chunk, w);
}

static int cpu_index(UNUSED lc_dtype compute, const void *args)
{
    const lc_index_args *a = args;
    int64_t              numel = 1, count = 0, *offsets = NULL;
    lc_dtype             dtype = a->many->dtype;
    for (int d = 0; d < a->ndim; d++) numel *= a->shape[d];
    for (int k = 0; k < a->n_index && numel; k++)
        if (check_range(&a->index[k], a->wraps) < 0) return -1;
    if (a->start && cpu_copy(a->many, a->start) < 0) return -1;
    if (!numel) return 0;
    walk w = { .args = a, .row = { 0, lc_size_of(dtype) }, .fn = row_function(a->mode, dtype) };
    if (a->n_index == 1) {
        w.index = a->index[0].index->data, w.row.size = a->index[0].size, w.row.step *= a->index[0].step;
        memcpy(w.index_stride, a->index[0].stride, sizeof w.index_stride);
    } else {
        if (!(offsets = fold_indices(a, w.index_stride, &count))) return -1;
        w.index = (const char *)offsets;
    }
    run_walk(&w, numel);
    if (offsets) lc_free(offsets, (size_t)count * sizeof *offsets);
    return 0;
}

LC_CPU_RUN(_index, cpu_index, ~0u)
LC_CPU_RUN(_index_put, cpu_index, ~0u)

/* Indexing of every kind: gather, scatter, index_select, advanced indexing, embedding rows. One walk (args.h: lc_index_args)
 * with a row function per element width for moves, per dtype for arithmetic (index_rows.c).
 *
 * Rows check every index before they use it. If one is bad, a new output tensor is discarded; if an existing tensor is
 * written, a walk over the indices alone comes first. Several index tensors, and positions in a tensor that only looks flat,
 * become offsets tile by tile.
 *
 * Threads. Reads split anywhere. Writes split along a dimension that no index determines: two chunks then never meet in
 * `indexed`, and within a chunk the order of the walk is kept. So duplicates are summed, or win, in the same order whatever
 * the number of threads. */
#include "index.h"
#include <string.h>

enum { TILE = 1024, MOST_AT_ONCE = LC_OPERANDS - 2 }; /* indices per tile; index tensors of one walk */

typedef struct {
    const lc_index_args *args;
    lc_row_fn            fn;
    lc_indexed_row       row;
    int                  n_index;    /* operands of the walk from the third on */
    lc_iter              it;         /* reads: prepared once */
    int                  split_dim;  /* writes */
    bool                 whole_rows; /* reads: chunks count rows, not elements */
    _Atomic int          bad;
} walk;

static void start(walk *w, const lc_index_args *a, lc_row_fn fn, int n_index) /* not the iterator, which is large */
{
    w->args = a, w->fn = fn, w->n_index = n_index, w->row = (lc_indexed_row){ 0 };
    w->split_dim = -1, w->whole_rows = false, w->bad = 0;
}

/* ---- ranges ---- */
static inline int64_t lowest(const lc_index_args *a, int64_t size) { return a->wraps ? -size : 0; }
static bool           all_good(const char *index, int64_t stride, int64_t n, int64_t low, int64_t size)
{
    uint64_t span = (uint64_t)(size - low);
    bool     bad = false;
    if (stride == sizeof(int64_t))
        for (int64_t i = 0; i < n; i++) bad |= (uint64_t)(((const int64_t *)index)[i] - low) >= span;
    else
        for (int64_t i = 0; i < n; i++) bad |= (uint64_t)(*(const int64_t *)(index + i * stride) - low) >= span;
    return !bad;
}

typedef struct {
    lc_iter                 it;
    const lc_index_operand *operand;
    int64_t                 low;
    _Atomic int             bad;
} range_check;
static int row_in_range(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const range_check *check = ctx;
    return !all_good(ptr[0], stride[0], n, check->low, check->operand->size);
}
static int name_bad_index(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const range_check *check = ctx;
    for (int64_t i = 0; i < n; i++) {
        int64_t index = *(const int64_t *)(ptr[0] + i * stride[0]);
        if (index < check->low || index >= check->operand->size)
            return lc_fail_int(LC_IndexError, "index %lld is out of bounds for dimension %d with size %lld", (long long)index,
                               check->operand->dim, (long long)check->operand->size);
    }
    return 0;
}
static void check_chunk(void *ctx, int64_t begin, int64_t end)
{
    range_check *check = ctx;
    if (lc_iter_range(&check->it, begin, end, row_in_range, check)) check->bad = 1;
}
static int check_range(const lc_index_operand *k, int64_t low) /* expanded dimensions are checked once */
{
    range_check check;
    int64_t     shape[LC_MAX_DIMS], numel = 1;
    check.operand = k, check.low = low, check.bad = 0;
    for (int d = 0; d < k->index->ndim; d++) numel *= shape[d] = k->index->stride[d] ? k->index->shape[d] : 1;
    lc_iter_start(&check.it, k->index->ndim, shape);
    lc_iter_add(&check.it, k->index);
    lc_iter_prepare(&check.it, true);
    cpu_parallel(numel, CPU_GRAIN, numel, check_chunk, &check);
    return check.bad ? lc_iter_range(&check.it, 0, numel, name_bad_index, &check) : 0;
}
static int check_ranges(const lc_index_args *a)
{
    for (int k = 0; k < a->n_index; k++)
        if (check_range(&a->index[k], lowest(a, a->index[k].size)) < 0) return -1;
    return 0;
}

/* ---- rows ---- */
static lc_indexed_row row_along(const lc_index_args *a, int k)
{
    const lc_index_operand *o = &a->index[k];
    return (lc_indexed_row){ o->size, o->step * lc_size_of(a->indexed->dtype), a->wraps ? o->size : 0 };
}
static inline int64_t offset_in(const lc_tensor *t, int64_t position) /* offset of an element by its number, in elements */
{
    int64_t offset = 0;
    for (int d = t->ndim - 1; d >= 0; d--) {
        offset += position % t->shape[d] * t->stride[d];
        position /= t->shape[d];
    }
    return offset;
}
/* Offsets in bytes of n positions; false: an index is out of range. */
static bool offsets_of(const walk *w, char *const *ptr, const int64_t *stride, int64_t start, int64_t n, int64_t *offsets)
{
    const lc_index_args *a = w->args;
    int64_t              size = lc_size_of(a->indexed->dtype);
    memset(offsets, 0, (size_t)n * sizeof *offsets);
    for (int j = 0; j < a->n_index; j++) {
        lc_indexed_row row = row_along(a, j);
        const char    *at = ptr[2 + j] + start * stride[2 + j];
        for (int64_t i = 0; i < n; i++) {
            uint64_t k = cpu_index_at(&row, at + i * stride[2 + j]);
            if (k >= (uint64_t)row.size) return false;
            offsets[i] += a->flat ? offset_in(a->indexed, (int64_t)k) * size : (int64_t)k * row.step;
        }
    }
    return true;
}
static int offset_row(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    walk   *w = ctx;
    int64_t offsets[TILE];
    bool    still = true;
    for (int k = 0; k < w->n_index; k++) still &= stride[2 + k] == 0;
    for (int64_t start = 0, m; start < n; start += m) {
        m = still || n - start < TILE ? n - start : TILE;
        if (!offsets_of(w, ptr, stride, start, still ? 1 : m, offsets)) return 1;
        char *at[] = { ptr[0] + start * stride[0], ptr[1] + start * stride[1], (char *)offsets };
        w->fn(&(lc_indexed_row){ INT64_MAX, 1, 0 }, at, (int64_t[]){ stride[0], stride[1], still ? 0 : 8 }, m);
    }
    return 0;
}

/* ---- the walk ---- */
static void start_walk(const walk *w, lc_iter *it, const int64_t *shape, int64_t shift)
{
    const lc_index_args *a = w->args;
    int64_t              bytes[LC_MAX_DIMS], size = lc_size_of(a->indexed->dtype), s = w->split_dim;
    lc_iter_start(it, a->ndim, shape);
    for (int k = -2; k < w->n_index; k++) {
        const int64_t *stride = k == -2 ? a->indexed_stride : k == -1 ? a->walked_stride : a->index[k].stride;
        char          *data = k == -2 ? a->indexed->data : k == -1 ? a->walked->data : a->index[k].index->data;
        for (int d = 0; d < a->ndim; d++) bytes[d] = stride[d] * (k < 0 ? size : (int64_t)sizeof(int64_t));
        lc_iter_add_raw(it, data + (shift ? shift * bytes[s] : 0), bytes);
    }
    lc_iter_prepare(it, a->mode == LC_INDEX_READ);
}
/* Elements [begin, end) of a prepared walk. A table of rows, the usual case, needs none of the iterator's bookkeeping. */
static int walk_range(walk *w, const lc_iter *it, int64_t begin, int64_t end)
{
    int64_t   n = lc_iter_row(it), step[LC_OPERANDS];
    bool      plain = w->n_index == 1 && !w->args->flat;
    lc_row_fn row = plain ? w->fn : offset_row;
    void     *ctx = plain ? (void *)&w->row : w;
    if (it->ndim != 2 || begin % n || end % n) return lc_iter_range(it, begin, end, row, ctx);
    for (int k = 0; k < it->operands; k++) step[k] = lc_iter_step(it, k);
    for (int64_t r = begin / n; r < end / n; r++) {
        char *ptr[LC_OPERANDS];
        for (int k = 0; k < it->operands; k++) ptr[k] = it->ptr[k] + r * it->stride[k][0];
        if (row(ctx, ptr, step, n)) return 1;
    }
    return 0;
}
static void read_chunk(void *ctx, int64_t begin, int64_t end)
{
    walk   *w = ctx;
    int64_t n = w->whole_rows ? lc_iter_row(&w->it) : 1;
    if (walk_range(w, &w->it, begin * n, end * n)) w->bad = 1;
}
static void write_chunk(void *ctx, int64_t begin, int64_t end)
{
    walk   *w = ctx;
    int64_t shape[LC_MAX_DIMS], numel = 1;
    lc_iter it;
    memcpy(shape, w->args->shape, (size_t)w->args->ndim * sizeof *shape);
    if (w->split_dim >= 0) shape[w->split_dim] = end - begin;
    for (int d = 0; d < w->args->ndim; d++) numel *= shape[d];
    start_walk(w, &it, shape, begin);
    if (walk_range(w, &it, 0, numel)) w->bad = 1;
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
    for (int d = 0; d < a->ndim; d++) /* the largest dimension that indices do not determine; the first of equals */
        if (a->indexed_stride[d] != 0 && (w->split_dim < 0 || a->shape[d] > a->shape[w->split_dim])) w->split_dim = d;
    /* One piece per thread, of whole cache lines: unlike elsewhere, the cut may follow the number of threads, because no sum
     * crosses it. */
    int64_t n = w->split_dim < 0 ? 1 : a->shape[w->split_dim], threads = numel <= CPU_GRAIN ? 1 : lc_num_threads();
    int64_t grain = ((n + threads - 1) / threads + 15) / 16 * 16;
    cpu_parallel(n, grain, numel, write_chunk, w);
}

/* More index tensors than a walk has operands: all but the last few are first combined into one tensor of offsets. */
static int add_offsets(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const lc_indexed_row *row = ctx; /* in elements */
    for (int64_t i = 0; i < n; i++)
        *(int64_t *)(ptr[0] + i * stride[0]) += (int64_t)cpu_index_at(row, ptr[1] + i * stride[1]) * row->step;
    return 0;
}
static int run_many(const lc_index_args *a, lc_row_fn fn, int64_t numel)
{
    int64_t          shape[LC_MAX_DIMS], stride[LC_MAX_DIMS], bytes[LC_MAX_DIMS], count = 1;
    int              first = MOST_AT_ONCE - 1;
    lc_index_operand operand[MOST_AT_ONCE];
    lc_index_args    rest = *a;
    for (int d = a->ndim - 1; d >= 0; d--) {
        bool used = false;
        for (int k = first; k < a->n_index; k++) used |= a->index[k].stride[d] != 0;
        shape[d] = used ? a->shape[d] : 1, stride[d] = used ? count : 0, count *= shape[d];
    }
    lc_tensor *offsets = lc_tensor_new(LC_i64, a->indexed->device, 1, &count);
    if (!offsets) return -1;
    memset(offsets->data, 0, (size_t)count * sizeof(int64_t));
    for (int k = first; k < a->n_index; k++) { /* the walk itself adds them up: `indexed` is the content of the index tensor */
        lc_iter it;
        lc_iter_start(&it, a->ndim, shape);
        for (int d = 0; d < a->ndim; d++) bytes[d] = stride[d] * 8;
        lc_iter_add_raw(&it, offsets->data, bytes);
        for (int d = 0; d < a->ndim; d++) bytes[d] = a->index[k].stride[d] * 8;
        lc_iter_add_raw(&it, a->index[k].index->data, bytes);
        lc_iter_prepare(&it, true);
        lc_iter_range(&it, 0, count, add_offsets,
                      &(lc_indexed_row){ a->index[k].size, a->index[k].step, a->wraps ? a->index[k].size : 0 });
    }
    memcpy(operand, a->index, (size_t)first * sizeof *operand);
    operand[first] = (lc_index_operand){ .index = offsets, .size = INT64_MAX, .step = 1 };
    memcpy(operand[first].stride, stride, sizeof stride);
    rest.index = operand, rest.n_index = MOST_AT_ONCE;
    walk w;
    start(&w, &rest, fn, MOST_AT_ONCE);
    run_walk(&w, numel);
    return lc_release(offsets), 0;
}

static int cpu_index(UNUSED lc_dtype compute, const void *args)
{
    const lc_index_args *a = args;
    int64_t              numel = 1;
    lc_dtype             dtype = a->indexed->dtype;
    walk                 w;
    start(&w, a, cpu_index_row(a->mode, dtype), a->n_index);
    if (!w.fn) return LC_NO_KERNEL;
    for (int d = 0; d < a->ndim; d++) numel *= a->shape[d];
    bool unknown = !a->fresh && !a->checked;
    if (numel && (unknown || a->n_index > MOST_AT_ONCE) && check_ranges(a) < 0) return -1;
    if (a->start && cpu_copy(a->indexed, a->start) < 0) return -1;
    if (!numel) return 0;
    if (a->n_index > MOST_AT_ONCE) return run_many(a, w.fn, numel);
    if (a->n_index == 1) w.row = row_along(a, 0);
    run_walk(&w, numel);
    return w.bad ? check_ranges(a) : 0;
}

LC_CPU_RUN(_index, cpu_index, ~0u)
LC_CPU_RUN(_index_put, cpu_index, ~0u)

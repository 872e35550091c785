/* sort along a dimension: each line becomes sorted records (sort.c), and records become values and indices. */
#include "sort_lines.h"
#include "../strategy.h"
#include <string.h>

/* ---- records to results ---- */
#define GATHER(T)                                                                                                              \
    for (int64_t i = 0; i < n; i++) *(T *)(to + i * to_step) = *(const T *)(from + index[i] * from_step)
void cpu_gather(int64_t size, char *to, int64_t to_step, const char *from, int64_t from_step, const int64_t *index, int64_t n)
{
    if (size == 1) GATHER(uint8_t);
    else if (size == 2) GATHER(uint16_t);
    else if (size == 4) GATHER(uint32_t);
    else GATHER(uint64_t);
}

typedef struct {
    const sorted_line *line;
    line_ends          at;
    const line_walk   *walk;
} emission;
static void emit(void *ctx, int64_t begin, int64_t end)
{
    const emission    *e = ctx;
    const sorted_line *line = e->line;
    const line_walk   *w = e->walk;
    uint64_t           key[SORT_TILE];
    int64_t            index[SORT_TILE];
    for (int64_t at = begin, n; at < end; at += n) {
        bool gathered = line->lossy || line->cut;
        n = end - at < SORT_TILE ? end - at : SORT_TILE;
        cpu_sort_read(line, at, n, e->at.values && !gathered ? key : NULL, index);
        if (!e->at.values) (void)0;
        else if (gathered)
            cpu_gather(lc_size_of(w->dtype), e->at.values + at * w->step[1], w->step[1], e->at.in, w->step[0], index, n);
        else line->key->store(e->at.values + at * w->step[1], w->step[1], n, line->flip, key);
        if (!e->at.indices) continue;
        char *to = e->at.indices + at * w->step[2];
        if (w->step[2] == sizeof *index) memcpy(to, index, (size_t)n * sizeof *index);
        else
            for (int64_t i = 0; i < n; i++) *(int64_t *)(to + i * w->step[2]) = index[i];
    }
}
void cpu_emit_sorted(const line_walk *w, const sorted_line *line, line_ends at, int64_t n)
{
    emission e = { line, at, w };
    if (w->parallel) cpu_parallel(n, CPU_GRAIN, n, emit, &e);
    else emit(&e, 0, n);
}

sort_workspace cpu_workspace_in_results(const line_walk *w, line_ends at)
{
    int64_t        size = lc_size_of(w->dtype);
    sort_workspace workspace = { .place = at.indices };
    if (at.values && w->step[1] == size) {
        uintptr_t first = ((uintptr_t)at.values + 7) / 8 * 8, end = (uintptr_t)at.values + (uintptr_t)(w->k * size);
        workspace.spare = (uint64_t *)first, workspace.spares = end > first ? (int64_t)(end - first) / 8 : 0;
    }
    return workspace;
}

/* ---- tiny lines: loaded together up to a full tile, insertion-sorted, and stored together ---- */
enum { TINY = 8 };
static void insert_in_order(uint64_t *key, int64_t *index, int64_t n)
{
    index[0] = 0;
    for (int64_t i = 1; i < n; i++) {
        uint64_t k = key[i];
        int64_t  j = i;
        for (; j > 0 && k < key[j - 1]; j--) key[j] = key[j - 1], index[j] = index[j - 1];
        key[j] = k, index[j] = i;
    }
}
static void sort_tiny_lines(const line_walk *w, char *const *ptr, const int64_t *stride, int64_t lines)
{
    const lc_sort_key *as = cpu_sort_key(w->dtype);
    uint64_t           key[SORT_TILE], flip = w->descending ? as->all : 0;
    int64_t            index[SORT_TILE], n = w->n, size = lc_size_of(w->dtype), most = SORT_TILE / n;
    key_summary        s;
    for (int64_t l = 0, rows; l < lines; l += rows) {
        rows = lines - l < most ? lines - l : most;
        line_ends at = cpu_line_ends(w, ptr, stride, l);
        as->load(at.in, size, rows * n, flip, key, &s);
        for (int64_t r = 0; r < rows; r++) insert_in_order(key + r * n, index + r * n, n);
        for (int64_t r = 0; at.values && s.lossy && r < rows; r++)
            cpu_gather(size, at.values + r * n * size, size, at.in + r * n * size, size, index + r * n, n);
        if (at.values && !s.lossy) as->store(at.values, size, rows * n, flip, key);
        if (at.indices) memcpy(at.indices, index, (size_t)(rows * n) * sizeof *index);
    }
}
/* Lines are contiguous, and so is the sequence of lines. */
static bool lines_are_packed(const line_walk *w, const int64_t *stride)
{
    bool packed = true;
    for (int k = 0; k < 3; k++) {
        int64_t size = k == 2 ? (int64_t)sizeof(int64_t) : lc_size_of(w->dtype);
        if (k == 0 || (k == 1 ? w->values : w->indices)) packed &= w->step[k] == size && stride[k] == w->n * size;
    }
    return packed;
}

/* ---- long contiguous lines of values alone: sorted in the output, without records ---- */
static void get_records(const char *from, int64_t size, uint64_t *key, int64_t n)
{
    for (int64_t i = 0; size == 2 && i < n; i++) key[i] = ((const uint16_t *)from)[i];
    for (int64_t i = 0; size == 4 && i < n; i++) key[i] = ((const uint32_t *)from)[i];
    for (int64_t i = 0; size == 8 && i < n; i++) key[i] = ((const uint64_t *)from)[i];
}
static int64_t first_at_least(const char *records, int64_t size, const sorted_line *line, uint64_t bound)
{
    int64_t  low = 0, high = line->n;
    uint64_t key;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        get_records(records + middle * size, size, &key, 1);
        key = (key << line->shift) + line->least;
        *(key < bound ? &low : &high) = middle + (key < bound);
    }
    return low;
}
/* Keys lose the signs of zeros and the bits of NaNs: these are copied from the input, in order, from `next` on. */
static void restore_equals(const line_walk *w, const lc_sort_key *as, line_ends at, uint64_t zero, const int64_t *next)
{
    int64_t     size = lc_size_of(w->dtype), to[2] = { next[0], next[1] };
    uint64_t    key[SORT_TILE];
    key_summary s;
    for (int64_t i = 0, n; i < w->n; i += n) {
        n = w->n - i < SORT_TILE ? w->n - i : SORT_TILE;
        as->load(at.in + i * w->step[0], w->step[0], n, 0, key, &s);
        for (int64_t j = 0; j < n; j++)
            if (key[j] == zero || key[j] == as->nan)
                memcpy(at.values + to[key[j] != zero]++ * size, at.in + (i + j) * w->step[0], (size_t)size);
    }
}
static void count_values(const line_walk *w, line_ends at) /* bytes */
{
    const lc_sort_key *as = cpu_sort_key(w->dtype);
    int64_t            count[256] = { 0 };
    uint64_t           key[SORT_TILE];
    key_summary        s;
    for (int64_t i = 0, n; i < w->n; i += n) {
        n = w->n - i < SORT_TILE ? w->n - i : SORT_TILE;
        as->load(at.in + i * w->step[0], w->step[0], n, w->descending ? as->all : 0, key, &s);
        for (int64_t j = 0; j < n; j++) count[key[j]]++;
    }
    for (uint64_t k = 0; k < 256; at.values += count[k++]) {
        char value;
        as->store(&value, 1, 1, w->descending ? as->all : 0, &k);
        memset(at.values, value, (size_t)count[k]);
    }
}
static int sort_values(const line_walk *w, line_ends at)
{
    const lc_sort_key *as = cpu_sort_key(w->dtype);
    int64_t            size = lc_size_of(w->dtype), equals[2] = { 0 };
    uint64_t           key[SORT_TILE], zero = 0;
    key_summary        s;
    sorted_line        line;
    if (size == 1) return count_values(w, at), 0;
    if (cpu_sort_in_place(w->dtype, at.in, w->step[0], w->n, w->descending, false, w->parallel,
                          &(sort_workspace){ .place = at.values }, &line) < 0)
        return -1;
    if (line.lossy) {
        as->load((const char *)&(uint64_t){ 0 }, size, 1, 0, &zero, &s);
        equals[0] = first_at_least(at.values, size, &line, zero ^ line.flip);
        equals[1] = first_at_least(at.values, size, &line, as->nan ^ line.flip);
    }
    for (int64_t i = 0, n; i < w->n; i += n) {
        n = w->n - i < SORT_TILE ? w->n - i : SORT_TILE;
        get_records(at.values + i * size, size, key, n);
        for (int64_t j = 0; j < n; j++) key[j] = (key[j] << line.shift) + line.least;
        as->store(at.values + i * size, size, n, line.flip, key);
    }
    if (line.lossy) restore_equals(w, as, at, zero, equals);
    return 0;
}

/* ---- choice of method: several lines of one walk at a time ---- */
typedef struct {
    const line_thread *thread;
    char *const       *ptr;
    const int64_t     *stride;
    int64_t            lines;
} line_run;
static const line_walk *walk_of(const void *run) { return ((const line_run *)run)->thread->walk; }
static bool             suits_insertion(const void *run)
{
    return walk_of(run)->n <= TINY && lines_are_packed(walk_of(run), ((const line_run *)run)->stride);
}
static bool suits_buffers(const void *run) { return walk_of(run)->bytes; }
static bool suits_values(const void *run) { return !walk_of(run)->indices; }
static int  by_insertion(void *run)
{
    const line_run *r = run;
    return sort_tiny_lines(walk_of(run), r->ptr, r->stride, r->lines), 0;
}
static int by_buffers(void *run)
{
    const line_run  *r = run;
    const line_walk *w = walk_of(run);
    uint64_t        *one = (uint64_t *)r->thread->memory, *two = one + cpu_sort_capacity(w->n);
    for (int64_t l = 0; l < r->lines; l++) {
        sorted_line line;
        line_ends   at = cpu_line_ends(w, r->ptr, r->stride, l);
        if (cpu_sort_line(w->dtype, at.in, w->step[0], w->n, w->descending, true, w->parallel, one, two, &line) < 0) return -1;
        cpu_emit_sorted(w, &line, at, w->n);
    }
    return 0;
}
static int by_values(void *run)
{
    const line_run *r = run;
    for (int64_t l = 0; l < r->lines; l++)
        if (sort_values(walk_of(run), cpu_line_ends(walk_of(run), r->ptr, r->stride, l)) < 0) return -1;
    return 0;
}
enum { BUFFERED = 1 << 16 }; /* longest line that two buffers of records, close to the core, sort faster */
static int in_results(void *run)
{
    const line_run  *r = run;
    const line_walk *w = walk_of(run);
    for (int64_t l = 0; l < r->lines; l++) {
        sorted_line    line;
        line_ends      at = cpu_line_ends(w, r->ptr, r->stride, l);
        sort_workspace workspace = cpu_workspace_in_results(w, at);
        int            rc =
            w->n <= BUFFERED && workspace.spares >= w->n
                           ? cpu_sort_line(w->dtype, at.in, w->step[0], w->n, w->descending, true, w->parallel, workspace.place,
                                           workspace.spare, &line)
                           : cpu_sort_in_place(w->dtype, at.in, w->step[0], w->n, w->descending, true, w->parallel, &workspace, &line);
        if (rc < 0) return -1;
        cpu_emit_sorted(w, &line, at, w->n);
    }
    return 0;
}
static const lc_strategy sorts[] = { { "insertion, a tile of lines at a time", suits_insertion, by_insertion },
                                     { "records in two buffers", suits_buffers, by_buffers },
                                     { "values where they will be", suits_values, by_values },
                                     { "records in the memory of the results", NULL, in_results } };
static int               sort_lines(void *ctx, char *const *ptr, const int64_t *stride, int64_t lines)
{
    const line_thread *t = ctx;
    bool               first = ptr[0] == t->walk->it.ptr[0]; /* one message per call */
    return RUN_STRATEGIES(first ? "sort" : NULL, sorts, &((line_run){ t, ptr, stride, lines }));
}

/* ---- all lines, shared between threads ---- */
typedef struct {
    line_walk  walk; /* not cleared: most of it is space for dimensions */
    lc_row_fn  run;
    atomic_int failed;
} line_job;
static void line_chunk(void *ctx, int64_t begin, int64_t end)
{
    line_job         *job = ctx;
    size_t            bytes = job->walk.bytes;
    _Alignas(64) char small[SORT_SMALL_BYTES];
    line_thread       t = { &job->walk, bytes <= sizeof small ? small : cpu_scratch(bytes) };
    if (!t.memory || lc_iter_range(&job->walk.it, begin, end, job->run, &t) < 0) job->failed = 1;
    if (t.memory && t.memory != small) cpu_scratch_free(t.memory, bytes);
}

int cpu_each_line(lc_dtype dtype, const lc_sort_args *a, lc_row_fn run, size_t bytes, int64_t most_parallel)
{
    const lc_tensor *in = a->in, *values = a->values ? a->values : a->in, *indices = a->indices ? a->indices : a->in;
    const lc_tensor *operand[] = { in, values, indices };
    int64_t          byte_stride[3][LC_MAX_DIMS], shape[LC_MAX_DIMS], lines = 1;
    int              kept = 0;
    line_job         job;
    line_walk       *w = &job.walk;
    job.run = run, job.failed = 0;
    w->dtype = dtype, w->n = in->ndim ? in->shape[a->dim] : 1, w->k = a->k, w->bytes = bytes;
    w->descending = a->descending, w->ordered = a->ordered, w->values = a->values, w->indices = a->indices;
    for (int d = 0; d < in->ndim; d++) {
        bool along = d == a->dim;
        if (!along) lines *= shape[kept] = in->shape[d];
        for (int k = 0; k < 3; k++)
            *(along ? &w->step[k] : &byte_stride[k][kept]) = operand[k]->stride[d] * lc_size_of(operand[k]->dtype);
        kept += !along;
    }
    if (!lines || !w->n || !a->k) return 0;
    for (int k = 0; k < 3 && w->n == 1; k++) w->step[k] = lc_size_of(operand[k]->dtype); /* a single element has any stride */
    lc_iter_start(&w->it, kept, shape);
    for (int k = 0; k < 3; k++) lc_iter_add_raw(&w->it, operand[k]->data, byte_stride[k]);
    lc_iter_prepare(&w->it, true);
    w->parallel = lines < most_parallel;
    cpu_parallel(lines, w->parallel ? lines : CPU_GRAIN / 4 / w->n + 1, 4 * lines * w->n, line_chunk, &job);
    return job.failed ? lc_fail_int(LC_OutOfMemory, "sort: no memory for lines of %lld elements", (long long)w->n) : 0;
}

static int cpu_sort(lc_dtype dtype, const void *args)
{
    const lc_sort_args *a = args;
    int64_t             n = a->in->ndim ? a->in->shape[a->dim] : 1;
    size_t              bytes = (size_t)cpu_sort_capacity(n) * 2 * sizeof(uint64_t);
    bool                in_place = bytes > SORT_MEMORY && (a->indices ? a->indices : a->values)->stride[a->dim] == 1;
    return cpu_each_line(dtype, a, sort_lines, in_place ? 0 : bytes, 4);
}
LC_CPU_RUN(sort, cpu_sort, 0 LC_EACH_sortable(LC_SORTABLE_BIT, ))

/* topk: the k best of each line. PyTorch calls std::partial_sort and std::nth_element, and these decide which of several
 * equal values is taken and in which order they come. So wherever values are equal, the algorithms of libstdc++ are followed
 * step by step.
 *
 * Few of many (64 k <= n): a heap holds the best so far, and every later element is compared with its worst. A tile of
 * elements whose best does not enter is skipped as a whole, which is most tiles. Otherwise, a handful is kept sorted by
 * insertion. For more, sorting the line (sort.c) is faster than selecting; in a long line only the chosen elements are
 * sorted, in the memory of the outputs. If two chosen elements are equal, or the last chosen equals the first rejected, the
 * selection is repeated as libstdc++ does it. Only then does a contiguous line need a workspace: 8 bytes per element for a
 * key and an index, or 16 if keys need more than 32 bits. Each exchange depends on all previous ones, so nothing less
 * suffices; if all are chosen, the pairs fit into the memory of the indices. */
#include "sort_lines.h"
#include <string.h>

typedef struct {
    uint64_t key;
    int64_t  index;
} entry;
/* A (key, index) pair in one integer, for keys of at most 32 bits. */
typedef uint64_t packed;

static int twice_log(int64_t n) { return 2 * (63 - __builtin_clzll((uint64_t)n)); }
enum { THRESHOLD = 16 };
#define E            entry
#define NAME(f)      f
#define BEFORE(a, b) ((a)->key < (b)->key)
#include "topk_select.inc.c"
#define E            packed
#define NAME(f)      f##_packed
#define BEFORE(a, b) (*(a) >> 32 < *(b) >> 32)
#include "topk_select.inc.c"

/* ---- a line ---- */
static void load_entries(const line_walk *w, const char *in, int64_t at, int64_t n, entry *to)
{
    uint64_t           key[SORT_TILE];
    const lc_sort_key *as = cpu_sort_key(w->dtype);
    key_summary        unused;
    for (int64_t stop = at + n, m; at < stop; at += m) {
        m = stop - at < SORT_TILE ? stop - at : SORT_TILE;
        as->load(in + at * w->step[0], w->step[0], m, w->descending ? as->all : 0, key, &unused);
        for (int64_t i = 0; i < m; i++) *to++ = (entry){ key[i], at + i };
    }
}
static void select_few(const line_walk *w, const char *in, entry *heap)
{
    uint64_t           key[SORT_TILE];
    const lc_sort_key *as = cpu_sort_key(w->dtype);
    key_summary        tile;
    uint64_t           flip = w->descending ? as->all : 0;
    bool               packed = w->step[0] == lc_size_of(w->dtype);
    load_entries(w, in, 0, w->k, heap);
    make_heap(heap, w->k);
    for (int64_t at = w->k, n; at < w->n; at += n) {
        n = w->n - at < SORT_TILE ? w->n - at : SORT_TILE;
        if (packed && !as->any_below(in + at * w->step[0], n, flip, heap->key)) continue;
        as->load(in + at * w->step[0], w->step[0], n, flip, key, &tile);
        for (int64_t i = 0; tile.least < heap->key && i < n; i++)
            if (key[i] < heap->key) sift(heap, 0, w->k, (entry){ key[i], at + i });
    }
    sort_heap(heap, w->k);
}
static bool has_equals(const sorted_line *line, int64_t n) /* among the first n */
{
    uint64_t key[SORT_TILE], last = 0;
    for (int64_t at = 0, m; at < n; at += m) {
        m = n - at < SORT_TILE ? n - at : SORT_TILE;
        cpu_sort_read(line, at, m, key, NULL);
        bool equal = at && key[0] == last;
        for (int64_t i = 1; i < m; i++) equal |= key[i] == key[i - 1];
        if (equal) return true;
        last = key[m - 1];
    }
    return false;
}
static void emit_indices(const line_walk *w, const int64_t *index, int64_t i, int64_t n, line_ends at)
{
    if (at.values) cpu_gather(lc_size_of(w->dtype), at.values + i * w->step[1], w->step[1], at.in, w->step[0], index, n);
    for (int64_t j = 0; j < n && at.indices; j++) *(int64_t *)(at.indices + (i + j) * w->step[2]) = index[j];
}
static void emit_entries(const line_walk *w, const entry *e, line_ends at)
{
    int64_t index[SORT_TILE];
    for (int64_t i = 0, n; i < w->k; i += n, e += n) {
        n = w->k - i < SORT_TILE ? w->k - i : SORT_TILE;
        for (int64_t j = 0; j < n; j++) index[j] = e[j].index;
        emit_indices(w, index, i, n, at);
    }
}
/* Sorts the whole line. Returns false if that leaves a choice among equal values, or if the order of an unsorted result
 * matters. */
static int sorted_instead(const line_thread *t, line_ends at, bool *answered)
{
    const line_walk *w = t->walk;
    sorted_line      line;
    uint64_t        *record = (uint64_t *)t->memory;
    if (cpu_sort_line(w->dtype, at.in, w->step[0], w->n, w->descending, true, w->parallel, record,
                      record + cpu_sort_capacity(w->n), &line) < 0)
        return -1;
    *answered = !has_equals(&line, w->k < w->n ? w->k + 1 : w->n);
    if (*answered) cpu_emit_sorted(w, &line, at, w->k);
    return 0;
}
/* The same for a long line: only the chosen elements are sorted, in the memory of the indices if that is contiguous. */
static int chosen_instead(const line_walk *w, line_ends at, bool *answered)
{
    sorted_line    line;
    sort_workspace workspace = cpu_workspace_in_results(w, at);
    size_t         bytes = w->step[2] == sizeof(int64_t) ? 0 : (size_t)w->k * sizeof(uint64_t);
    workspace.k = w->k;
    if (bytes && !(workspace.place = cpu_scratch(bytes))) return -1;
    int rc = cpu_sort_in_place(w->dtype, at.in, w->step[0], w->n, w->descending, true, w->parallel, &workspace, &line);
    if ((*answered = rc == 0)) cpu_emit_sorted(w, &line, at, w->k);
    if (bytes) cpu_scratch_free(workspace.place, bytes);
    return rc < 0 ? -1 : 0;
}
/* libstdc++'s result for the whole line. Wider keys whose differences fit into 32 bits are packed, too. */
static bool fit_packed(const line_walk *w, const char *in, key_summary *all)
{
    uint64_t           key[SORT_TILE];
    const lc_sort_key *as = cpu_sort_key(w->dtype);
    key_summary        s;
    *all = (key_summary){ 0 };
    if (w->n > UINT32_MAX) return false;
    if (as->all <= UINT32_MAX) return true;
    for (int64_t at = 0, m; at < w->n; at += m) {
        m = w->n - at < SORT_TILE ? w->n - at : SORT_TILE;
        as->load(in + at * w->step[0], w->step[0], m, w->descending ? as->all : 0, key, &s);
        if (at) cpu_join_summaries(all, &s);
        else *all = s;
        if ((all->most - all->least) >> 32) return false;
    }
    return true;
}
static int select_packed_line(const line_walk *w, line_ends at, uint64_t least)
{
    uint64_t           key[SORT_TILE];
    int64_t            index[SORT_TILE];
    const lc_sort_key *as = cpu_sort_key(w->dtype);
    key_summary        unused;
    bool               in_output = w->k == w->n && w->step[2] == sizeof(packed);
    size_t             bytes = (size_t)w->n * sizeof(packed);
    packed            *all = in_output ? (packed *)at.indices : cpu_scratch(bytes);
    if (!all) return -1;
    for (int64_t i = 0, m; i < w->n; i += m) {
        m = w->n - i < SORT_TILE ? w->n - i : SORT_TILE;
        as->load(at.in + i * w->step[0], w->step[0], m, w->descending ? as->all : 0, key, &unused);
        for (int64_t j = 0; j < m; j++) all[i + j] = (key[j] - least) << 32 | (uint64_t)(i + j);
    }
    choose_packed(all, w->n, w->k, w->ordered);
    for (int64_t i = 0, m; i < w->k; i += m) {
        m = w->k - i < SORT_TILE ? w->k - i : SORT_TILE;
        for (int64_t j = 0; j < m; j++) index[j] = (int64_t)(all[i + j] & UINT32_MAX);
        emit_indices(w, index, i, m, at);
    }
    if (!in_output) cpu_scratch_free(all, bytes);
    return 0;
}
static int select_line(const line_walk *w, line_ends at)
{
    key_summary s;
    size_t      bytes = (size_t)w->n * sizeof(entry);
    if (fit_packed(w, at.in, &s)) return select_packed_line(w, at, s.least);
    entry *entries = cpu_scratch(bytes);
    if (!entries) return -1;
    load_entries(w, at.in, 0, w->n, entries);
    choose(entries, w->n, w->k, w->ordered);
    emit_entries(w, entries, at);
    return cpu_scratch_free(entries, bytes), 0;
}
/* The line is read several times: if it is not contiguous, it is copied first. */
static int long_line(const line_walk *w, line_ends at)
{
    line_walk near = *w;
    int64_t   size = lc_size_of(w->dtype);
    size_t    bytes = w->step[0] == size ? 0 : (size_t)(w->n * size);
    char     *copy = bytes ? cpu_scratch(bytes) : NULL;
    bool      answered = false;
    if (bytes && !copy) return -1;
    if (copy) cpu_move(w->dtype, copy, size, w->dtype, at.in, w->step[0], w->n), at.in = copy, near.step[0] = size;
    int rc = w->n <= UINT32_MAX ? chosen_instead(&near, at, &answered) : 0;
    if (rc == 0 && !answered) rc = select_line(&near, at);
    if (copy) cpu_scratch_free(copy, bytes);
    return rc;
}
/* The k + 1 best of n keys, sorted by insertion: most of a line is worse than the kept ones. False if two of them are equal. */
enum { HANDFUL = 16 };
static bool best_few(const uint64_t *key, int64_t n, int64_t first, entry *best, int64_t *kept, int64_t capacity)
{
    int64_t have = *kept;
    bool    equal = false;
    for (int64_t i = 0; i < n; i++) {
        uint64_t k = key[i];
        if (have == capacity && k >= best[capacity - 1].key) {
            equal |= k == best[capacity - 1].key;
            continue;
        }
        int64_t j = have < capacity ? have++ : capacity - 1;
        for (; j > 0 && k < best[j - 1].key; j--) best[j] = best[j - 1];
        equal |= j > 0 && k == best[j - 1].key;
        best[j] = (entry){ k, first + i };
    }
    *kept = have;
    return !equal;
}
static bool insert_instead(const line_walk *w, const char *in, entry *best)
{
    uint64_t           key[SORT_TILE];
    const lc_sort_key *as = cpu_sort_key(w->dtype);
    key_summary        unused;
    int64_t            kept = 0, capacity = w->k < w->n ? w->k + 1 : w->k;
    bool               clear = true;
    for (int64_t at = 0, m; at < w->n && clear; at += m) {
        m = w->n - at < SORT_TILE ? w->n - at : SORT_TILE;
        as->load(in + at * w->step[0], w->step[0], m, w->descending ? as->all : 0, key, &unused);
        clear = best_few(key, m, at, best, &kept, capacity);
    }
    return clear;
}
/* Tiny contiguous lines with contiguous results: loaded together up to a full tile, and written together. */
enum { TINY = 8 };
static bool are_tiny(const line_walk *w, const int64_t *stride)
{
    int64_t size = lc_size_of(w->dtype), wide = sizeof(int64_t);
    return w->n <= TINY && w->step[0] == size && stride[0] == w->n * size && w->step[1] == size && stride[1] == w->k * size &&
           w->step[2] == wide && stride[2] == w->k * wide;
}
static void topk_tiny_lines(const line_walk *w, char *const *ptr, const int64_t *stride, int64_t lines)
{
    const lc_sort_key *as = cpu_sort_key(w->dtype);
    entry              entries[TINY + 1];
    uint64_t           key[SORT_TILE];
    int64_t            index[SORT_TILE], from[SORT_TILE], n = w->n, k = w->k, size = lc_size_of(w->dtype), most = SORT_TILE / n;
    key_summary        unused;
    for (int64_t l = 0, rows; l < lines; l += rows) {
        rows = lines - l < most ? lines - l : most;
        line_ends at = cpu_line_ends(w, ptr, stride, l);
        as->load(at.in, size, rows * n, w->descending ? as->all : 0, key, &unused);
        for (int64_t r = 0; r < rows; r++) {
            int64_t kept = 0;
            if (!w->ordered || !best_few(key + r * n, n, 0, entries, &kept, k < n ? k + 1 : k)) {
                for (int64_t i = 0; i < n; i++) entries[i] = (entry){ key[r * n + i], i };
                choose(entries, n, k, w->ordered);
            }
            for (int64_t i = 0; i < k; i++) index[r * k + i] = entries[i].index, from[r * k + i] = r * n + entries[i].index;
        }
        cpu_gather(size, at.values, size, at.in, size, from, rows * k);
        memcpy(at.indices, index, (size_t)(rows * k) * sizeof *index);
    }
}
static size_t line_bytes(int64_t n) { return (size_t)cpu_sort_capacity(n) * sizeof(entry); }
static bool   is_long(int64_t n) { return line_bytes(n) > SORT_MEMORY; }
static int    topk_lines(void *ctx, char *const *ptr, const int64_t *stride, int64_t lines)
{
    const line_thread *t = ctx;
    const line_walk   *w = t->walk;
    entry             *entries = (entry *)t->memory;
    entry              handful[HANDFUL + 1];
    bool               few = w->k <= w->n / 64, sorts = w->n > (w->ordered ? TINY : SORT_TILE);
    bool               inserts = !few && w->ordered && w->k <= HANDFUL && lc_class_of(w->dtype) != LC_INT;
    if (lc_class_of(w->dtype) == LC_INT && w->k <= w->n / 4) sorts = false; /* integers are often equal */
    if (are_tiny(w, stride)) return topk_tiny_lines(w, ptr, stride, lines), 0;
    for (int64_t l = 0; l < lines; l++) {
        line_ends at = cpu_line_ends(w, ptr, stride, l);
        bool      answered = false;
        if (few) {
            select_few(w, at.in, entries);
            emit_entries(w, entries, at);
        } else if (is_long(w->n)) {
            if (long_line(w, at) < 0) return -1;
        } else if (inserts && insert_instead(w, at.in, handful)) emit_entries(w, handful, at);
        else {
            if (sorts && !inserts && sorted_instead(t, at, &answered) < 0) return -1;
            if (answered) continue;
            load_entries(w, at.in, 0, w->n, entries);
            choose(entries, w->n, w->k, w->ordered);
            emit_entries(w, entries, at);
        }
    }
    return 0;
}

static int cpu_topk(lc_dtype dtype, const void *args)
{
    const lc_sort_args *a = args;
    int64_t             n = a->in->ndim ? a->in->shape[a->dim] : 1;
    size_t              bytes = is_long(n) ? 0 : line_bytes(n);
    if (a->k <= n / 64) bytes = (size_t)a->k * sizeof(entry);
    return cpu_each_line(dtype, a, topk_lines, bytes, a->k <= n / 64 ? 0 : 4);
}
LC_CPU_RUN(topk, cpu_topk, 1u << LC_f16 | 1u << LC_bf16 LC_EACH_real(LC_SORTABLE_BIT, ))

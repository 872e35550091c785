/* topk: the k best of each line. Which of several equal values is taken, and in which order they come, is what PyTorch's calls of
 * std::partial_sort and std::nth_element decide; so the algorithms of libstdc++ are repeated here step by step, wherever values are equal.
 *
 * Few of many (64 k <= n): a heap of the best so far, and every later element against the worst of it. A tile of elements whose best does not
 * enter is skipped as a whole, which is most of them. Otherwise, a handful is kept in order by insertion; more, and the line is sorted
 * (sort.c), which is faster than selecting. Of a long line the last to be chosen is found by its rank (rank.c), and the chosen are collected
 * and sorted in the room of the indices. If two of the chosen are equal, or the last and the first not chosen, the selection is repeated
 * as libstdc++ does it; only then does a long line take memory. */
#include "rank.h"
#include "sort_lines.h"
#include <string.h>

typedef struct {
    uint64_t key;
    int64_t  index;
} entry;
static inline bool before(const entry *a, const entry *b) { return a->key < b->key; }
static inline void swap(entry *a, entry *b)
{
    entry x = *a;
    *a = *b, *b = x;
}

/* ---- heaps: the worst on top ---- */
static void sift(entry *heap, int64_t hole, int64_t n, entry value)
{
    int64_t top = hole, child = hole;
    while (child < (n - 1) / 2) {
        child = 2 * (child + 1);
        child -= before(&heap[child], &heap[child - 1]);
        heap[hole] = heap[child], hole = child;
    }
    if ((n & 1) == 0 && child == (n - 2) / 2) child = 2 * child + 1, heap[hole] = heap[child], hole = child;
    for (int64_t parent = (hole - 1) / 2; hole > top && before(&heap[parent], &value); parent = (hole - 1) / 2)
        heap[hole] = heap[parent], hole = parent;
    heap[hole] = value;
}
static void make_heap(entry *heap, int64_t n)
{
    for (int64_t parent = (n - 2) / 2; n > 1 && parent >= 0; parent--) sift(heap, parent, n, heap[parent]);
}
static void sort_heap(entry *heap, int64_t n)
{
    while (n-- > 1) {
        entry last = heap[n];
        heap[n] = heap[0];
        sift(heap, 0, n, last);
    }
}
static void heap_select(entry *first, int64_t k, int64_t n)
{
    make_heap(first, k);
    for (int64_t i = k; i < n; i++)
        if (before(&first[i], first)) {
            entry value = first[i];
            first[i] = first[0];
            sift(first, 0, k, value);
        }
}

/* ---- quicksort's parts ---- */
static void insert_unguarded(entry *last)
{
    entry value = *last;
    for (; before(&value, last - 1); last--) *last = last[-1];
    *last = value;
}
static void insertion_sort(entry *first, entry *last)
{
    for (entry *i = first + 1; first != last && i < last; i++)
        if (before(i, first)) {
            entry value = *i;
            for (entry *j = i; j > first; j--) *j = j[-1];
            *first = value;
        } else insert_unguarded(i);
}
static entry *cut(entry *first, entry *last) /* around the median of three, which goes to first */
{
    entry *a = first + 1, *b = first + (last - first) / 2, *c = last - 1, *pivot = first;
    if (before(a, b)) swap(first, before(b, c) ? b : before(a, c) ? c : a);
    else swap(first, before(a, c) ? a : before(b, c) ? c : b);
    for (first++;; first++) {
        while (before(first, pivot)) first++;
        last--;
        while (before(pivot, last)) last--;
        if (first >= last) return first;
        swap(first, last);
    }
}
static int  twice_log(int64_t n) { return 2 * (63 - __builtin_clzll((uint64_t)n)); }
static void nth_element(entry *first, entry *nth, entry *last)
{
    int depth = twice_log(last - first);
    while (last - first > 3) {
        if (depth-- == 0) {
            heap_select(first, nth + 1 - first, last - first);
            return swap(first, nth);
        }
        entry *middle = cut(first, last);
        *(middle <= nth ? &first : &last) = middle;
    }
    insertion_sort(first, last);
}
enum { THRESHOLD = 16 };
static void quicksort(entry *first, entry *last, int depth) /* down to pieces of THRESHOLD */
{
    while (last - first > THRESHOLD) {
        if (depth-- == 0) {
            make_heap(first, last - first);
            return sort_heap(first, last - first);
        }
        entry *middle = cut(first, last);
        quicksort(middle, last, depth);
        last = middle;
    }
}
static void std_sort(entry *first, entry *last)
{
    if (first == last) return;
    quicksort(first, last, twice_log(last - first));
    entry *guarded = last - first > THRESHOLD ? first + THRESHOLD : last;
    insertion_sort(first, guarded);
    for (entry *i = guarded; i < last; i++) insert_unguarded(i);
}

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
static void emit_entries(const line_walk *w, const entry *e, line_ends at)
{
    int64_t index[SORT_TILE];
    for (int64_t i = 0, n; i < w->k; i += n, e += n) {
        n = w->k - i < SORT_TILE ? w->k - i : SORT_TILE;
        for (int64_t j = 0; j < n; j++) index[j] = e[j].index;
        if (at.values) cpu_gather(lc_size_of(w->dtype), at.values + i * w->step[1], w->step[1], at.in, w->step[0], index, n);
        for (int64_t j = 0; j < n && at.indices; j++) *(int64_t *)(at.indices + (i + j) * w->step[2]) = index[j];
    }
}
/* Sorts the whole line. Not an answer (false) if that leaves a choice among equals, or the order of what is not to be in order. */
static int sorted_instead(const line_thread *t, line_ends at, bool *answered)
{
    const line_walk *w = t->walk;
    sorted_line      line;
    uint64_t        *record = (uint64_t *)t->memory;
    if (cpu_sort_line(w->dtype, at.in, w->step[0], w->n, w->descending, true, w->parallel, record, record + cpu_sort_room(w->n),
                      &line) < 0)
        return -1;
    *answered = !has_equals(&line, w->k < w->n ? w->k + 1 : w->n);
    if (*answered) cpu_emit_sorted(w, &line, at, w->k);
    return 0;
}
/* The same for a long line of at most 4 bytes each, whose indices lie together: only what is chosen is sorted, where the indices will be. */
static void collected_instead(const line_thread *t, line_ends at, bool *answered)
{
    const line_walk   *w = t->walk;
    const lc_sort_key *as = cpu_sort_key(w->dtype);
    rank_line          l = { at.in, w->step[0], w->n, w->dtype, lc_working_dtype(w->dtype) };
    int64_t            last = cpu_rank_one(&l, w->descending ? w->n - w->k : w->k - 1, t->memory), found = 0;
    uint64_t           key[SORT_TILE], below[SORT_TILE], bound, flip = w->descending ? as->all : 0;
    uint64_t          *record = (uint64_t *)at.indices, *spare = (uint64_t *)t->memory, *sorted = record;
    key_summary        s;
    as->load(at.in + last * w->step[0], w->step[0], 1, flip, &bound, &s);
    for (int64_t i = 0, n, m = 0; i < w->n; i += n, m = 0) {
        n = w->n - i < SORT_TILE ? w->n - i : SORT_TILE;
        as->load(at.in + i * w->step[0], w->step[0], n, flip, key, &s);
        if (s.least > bound) continue;
        for (int64_t j = 0; j < n; j++) below[m] = key[j] << 32 | (uint64_t)(i + j), m += key[j] <= bound;
        if (found + m > w->k) return; /* the first not chosen equals the last */
        memcpy(record + found, below, (size_t)m * sizeof *below), found += m;
    }
    if (w->k > SORT_TILE && (size_t)w->k * sizeof *spare <= w->bytes)
        sorted = cpu_sort_records(record, spare, w->k, 32, 32, 0, NULL);
    else cpu_sort_place(record, sizeof *record, w->k, 0, 64, w->parallel);
    if (sorted != record) memcpy(record, sorted, (size_t)w->k * sizeof *record);
    for (int64_t i = 1; i < w->k; i++)
        if ((record[i] ^ record[i - 1]) >> 32 == 0) return;
    for (int64_t i = 0; i < w->k; i++) record[i] &= UINT32_MAX;
    cpu_gather(lc_size_of(w->dtype), at.values, w->step[1], at.in, w->step[0], (const int64_t *)record, w->k);
    *answered = true;
}
static void select_from(const line_walk *w, entry *entries)
{
    nth_element(entries, entries + w->k - 1, entries + w->n);
    if (w->ordered) std_sort(entries, entries + w->k - 1);
}
/* The k + 1 best of n keys in their order, by insertion: most of a line is worse than what is kept. False if two of them are equal. */
enum { HANDFUL = 16 };
static bool best_few(const uint64_t *key, int64_t n, int64_t first, entry *best, int64_t *kept, int64_t room)
{
    int64_t have = *kept;
    bool    equal = false;
    for (int64_t i = 0; i < n; i++) {
        uint64_t k = key[i];
        if (have == room && k >= best[room - 1].key) {
            equal |= k == best[room - 1].key;
            continue;
        }
        int64_t j = have < room ? have++ : room - 1;
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
    int64_t            kept = 0, room = w->k < w->n ? w->k + 1 : w->k;
    bool               clear = true;
    for (int64_t at = 0, m; at < w->n && clear; at += m) {
        m = w->n - at < SORT_TILE ? w->n - at : SORT_TILE;
        as->load(in + at * w->step[0], w->step[0], m, w->descending ? as->all : 0, key, &unused);
        clear = best_few(key, m, at, best, &kept, room);
    }
    return clear;
}
/* Tiny lines, one after the other in memory, results too: as many as fit a tile are loaded together, and written together. */
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
                select_from(w, entries);
            }
            for (int64_t i = 0; i < k; i++) index[r * k + i] = entries[i].index, from[r * k + i] = r * n + entries[i].index;
        }
        cpu_gather(size, at.values, size, at.in, size, from, rows * k);
        memcpy(at.indices, index, (size_t)(rows * k) * sizeof *index);
    }
}
static size_t line_bytes(int64_t n) { return (size_t)cpu_sort_room(n) * sizeof(entry); }
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
        line_ends   at = cpu_line_ends(w, ptr, stride, l);
        bool        answered = false;
        size_t      bytes = few || !is_long(w->n) ? 0 : line_bytes(w->n);
        line_thread with = *t;
        int         rc = 0;
        if (few) select_few(w, at.in, entries);
        else if (inserts && insert_instead(w, at.in, handful)) {
            emit_entries(w, handful, at);
            continue;
        } else {
            bool collects = bytes && lc_size_of(w->dtype) <= 4 && w->n <= UINT32_MAX && w->step[2] == sizeof(int64_t);
            if (sorts && collects && w->k == w->n) { /* all of them */
                sorted_line line;
                rc = cpu_sort_in_place(w->dtype, at.in, w->step[0], w->n, w->descending, true, w->parallel, at.indices, &line);
                answered = rc == 0 && !has_equals(&line, w->n);
                if (answered) cpu_emit_sorted(w, &line, at, w->n);
                if (rc < 0) return -1;
            } else if (sorts && !inserts && collects) collected_instead(t, at, &answered);
            if (answered) continue;
            if (bytes && !(with.memory = cpu_scratch(bytes))) return -1;
            if (sorts && !inserts && !collects) rc = sorted_instead(&with, at, &answered);
            entries = (entry *)with.memory;
            if (rc == 0 && !answered) load_entries(w, at.in, 0, w->n, entries), select_from(w, entries);
        }
        if (rc == 0 && !answered) emit_entries(w, entries, at);
        if (bytes) cpu_scratch_free(with.memory, bytes);
        if (rc < 0) return -1;
    }
    return 0;
}

static int cpu_topk(lc_dtype dtype, const void *args)
{
    const lc_sort_args *a = args;
    int64_t             n = a->in->ndim ? a->in->shape[a->dim] : 1;
    size_t              bytes = is_long(n) ? cpu_rank_scratch(n, lc_size_of(lc_working_dtype(dtype)), true) : line_bytes(n);
    if (a->k <= n / 64) bytes = (size_t)a->k * sizeof(entry);
    return cpu_each_line(dtype, a, topk_lines, bytes, a->k <= n / 64 ? 0 : 4);
}
LC_CPU_RUN(topk, cpu_topk, 1u << LC_f16 | 1u << LC_bf16 LC_EACH_real(LC_SORTABLE_BIT, ))

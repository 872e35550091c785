/* unique and unique_consecutive. Single values are sorted (sort.c) and neighbours compared; where keys take few bits they are only counted in
 * a table, which also says where each value went. Slices are sorted by merging, comparing element by element. */
#include "sort.h"
#include "../args.h"
#include <string.h>

/* ---- groups: from a run of keys in order to the distinct ones ---- */
typedef struct {
    const lc_unique_args *args;
    const lc_sort_key    *key;
    uint64_t              last;
    int64_t               seen, found;
} grouping;

/* n <= SORT_TILE keys; index: where they were, NULL: in this order */
static void group(grouping *g, const uint64_t *key, const int64_t *index, int64_t n)
{
    const lc_unique_args *a = g->args;
    uint64_t              distinct[SORT_TILE], before = g->seen ? g->last : ~key[0];
    uint8_t               fresh[SORT_TILE];
    uint16_t              start[SORT_TILE + 1];
    int64_t               size = lc_size_of(a->values->dtype);
    int64_t               count = cpu_sort_kernels()->starts(key, before, g->key->nan, n, fresh, start);
    if (a->inverse)
        for (int64_t i = 0, group = g->found - 1; i < n; i++) {
            group += fresh[i];
            a->inverse[index ? index[i] : g->seen + i] = group;
        }
    for (int64_t i = 0; i < count; i++) distinct[i] = key[start[i]];
    g->key->store(a->values->data + g->found * size, size, count, 0, distinct);
    for (int64_t i = 0; a->counts && i < count; i++) a->counts[g->found + i] = g->seen + start[i];
    g->last = key[n - 1], g->seen += n, g->found += count;
}
static int finish_groups(const lc_unique_args *a, int64_t found) /* counts hold where groups start */
{
    for (int64_t i = 0; a->counts && i < found; i++) a->counts[i] = (i + 1 < found ? a->counts[i + 1] : a->n) - a->counts[i];
    return *a->found = found, 0;
}

/* ---- single values ---- */
typedef void (*tile_fn)(void *ctx, const uint64_t *key, int64_t at, int64_t n);
static void each_tile(const lc_unique_args *a, tile_fn fn, void *ctx, key_summary *all)
{
    const lc_sort_key *as = cpu_sort_key((lc_dtype)a->in->dtype);
    int64_t            size = lc_size_of(a->in->dtype);
    uint64_t           key[SORT_TILE];
    key_summary        s;
    for (int64_t at = 0, n; at < a->n; at += n) {
        n = a->n - at < SORT_TILE ? a->n - at : SORT_TILE;
        as->load(a->in->data + at * size, size, n, 0, key, &s);
        if (fn) fn(ctx, key, at, n);
        if (!all) continue;
        if (!at) *all = s;
        all->varying |= s.varying | (s.least ^ all->least);
        all->least = s.least < all->least ? s.least : all->least;
        all->most = s.most > all->most ? s.most : all->most;
        all->lossy |= s.lossy;
    }
}
static void group_tile(void *ctx, const uint64_t *key, UNUSED int64_t at, int64_t n) { group(ctx, key, NULL, n); }

enum { TABLE_BITS = 13 };
typedef struct {
    const lc_unique_args *args;
    uint64_t              least;
    int                   shift;
    int64_t               count[1 << TABLE_BITS];
} key_table;
static void count_tile(void *ctx, const uint64_t *key, UNUSED int64_t at, int64_t n)
{
    key_table *t = ctx;
    for (int64_t i = 0; i < n; i++) t->count[(key[i] - t->least) >> t->shift]++;
}
static void place_tile(void *ctx, const uint64_t *key, int64_t at, int64_t n)
{
    const key_table *t = ctx;
    for (int64_t i = 0; i < n; i++) t->args->inverse[at + i] = t->count[(key[i] - t->least) >> t->shift];
}
static int unique_by_table(const lc_unique_args *a, const key_summary *s)
{
    key_table          t = { .args = a, .least = s->least, .shift = s->varying ? __builtin_ctzll(s->varying) : 0 };
    const lc_sort_key *as = cpu_sort_key((lc_dtype)a->in->dtype);
    int64_t            size = lc_size_of(a->in->dtype), found = 0, last = (int64_t)((s->most - s->least) >> t.shift);
    each_tile(a, count_tile, &t, NULL);
    for (int64_t k = 0; k <= last; k++) {
        if (!t.count[k]) continue;
        uint64_t key = ((uint64_t)k << t.shift) + t.least;
        as->store(a->values->data + found * size, size, 1, 0, &key);
        if (a->counts) a->counts[found] = t.count[k];
        t.count[k] = found++;
    }
    if (a->inverse) each_tile(a, place_tile, &t, NULL);
    return *a->found = found, 0;
}
static int unique_by_sorting(const lc_unique_args *a)
{
    lc_dtype    dtype = (lc_dtype)a->in->dtype;
    size_t      bytes = cpu_sort_bytes(dtype, a->n);
    void       *memory = cpu_scratch(bytes);
    grouping    g = { .args = a, .key = cpu_sort_key(dtype) };
    sorted_line line;
    uint64_t    key[SORT_TILE];
    int64_t     index[SORT_TILE];
    int rc = memory ? cpu_sort_line(dtype, a->in->data, lc_size_of(dtype), a->n, false, a->inverse, true, memory, &line) : -1;
    for (int64_t at = 0, n; rc == 0 && at < a->n; at += n) {
        n = a->n - at < SORT_TILE ? a->n - at : SORT_TILE;
        cpu_sort_read(&line, at, n, key, a->inverse ? index : NULL);
        group(&g, key, index, n);
    }
    if (memory) cpu_scratch_free(memory, bytes);
    return rc < 0 ? lc_fail_int(LC_OutOfMemory, "unique: no memory for %lld values", (long long)a->n)
                  : finish_groups(a, g.found);
}
/* Runs cut down to their first, and nothing else wanted: no keys needed. */
#define SQUEEZE(T)                                                                                                             \
    do {                                                                                                                       \
        const T *x = (const T *)a->in->data;                                                                                   \
        T       *to = (T *)a->values->data, last = to[0] = x[0];                                                               \
        for (int64_t i = 1; i < a->n; i++) {                                                                                   \
            T here = x[i];                                                                                                     \
            to[found] = here, found += here != last, last = here;                                                              \
        }                                                                                                                      \
    } while (0)
static int squeeze(const lc_unique_args *a)
{
    int64_t found = 1;
    switch (lc_size_of(a->in->dtype)) {
    case 1:
        SQUEEZE(uint8_t);
        break;
    case 2:
        SQUEEZE(uint16_t);
        break;
    case 4:
        if (a->in->dtype == LC_f32) SQUEEZE(float);
        else SQUEEZE(uint32_t);
        break;
    default:
        if (a->in->dtype == LC_f64) SQUEEZE(double);
        else SQUEEZE(uint64_t);
    }
    return *a->found = found, 0;
}
static int unique_values(const lc_unique_args *a)
{
    key_summary all = { 0 };
    grouping    g = { .args = a, .key = cpu_sort_key((lc_dtype)a->in->dtype) };
    bool        half = a->in->dtype == LC_f16 || a->in->dtype == LC_bf16; /* equal by key, not by bits */
    if (a->consecutive && !a->inverse && !a->counts && !half) return squeeze(a);
    if (a->consecutive) {
        each_tile(a, group_tile, &g, NULL);
        return finish_groups(a, g.found);
    }
    if (a->n <= SORT_TILE) return unique_by_sorting(a);
    each_tile(a, NULL, NULL, &all);
    uint64_t range = (all.most - all.least) >> (all.varying ? __builtin_ctzll(all.varying) : 0);
    return !all.lossy && range < 1u << TABLE_BITS ? unique_by_table(a, &all) : unique_by_sorting(a);
}

/* ---- slices ---- */
static int compare_slices(const uint64_t *key, int64_t width, int64_t a, int64_t b)
{
    const uint64_t *x = key + a * width, *y = key + b * width;
    for (int64_t i = 0; i < width; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}
static int64_t *sort_slices(const uint64_t *key, int64_t width, int64_t n, int64_t *a, int64_t *b) /* a, b: n each */
{
    for (int64_t i = 0; i < n; i++) a[i] = i;
    for (int64_t half = 1; half < n; half *= 2) {
        for (int64_t start = 0; start < n; start += 2 * half) {
            int64_t i = start, middle = start + half < n ? start + half : n, j = middle;
            int64_t stop = middle + half < n ? middle + half : n;
            for (int64_t k = start; k < stop; k++)
                b[k] = i < middle && (j >= stop || compare_slices(key, width, a[i], a[j]) <= 0) ? a[i++] : a[j++];
        }
        int64_t *swap = a;
        a = b, b = swap;
    }
    return a;
}
static bool has_nan(const uint64_t *key, int64_t width, uint64_t nan)
{
    bool found = false;
    for (int64_t i = 0; nan && i < width; i++) found |= key[i] == nan;
    return found;
}
static int unique_slices(const lc_unique_args *a)
{
    const lc_sort_key *as = cpu_sort_key((lc_dtype)a->in->dtype);
    int64_t            size = lc_size_of(a->in->dtype), elements = a->n * a->width, found = 0;
    size_t             bytes = (size_t)(elements + 2 * a->n) * sizeof(uint64_t);
    uint64_t          *key = cpu_scratch(bytes);
    key_summary        unused;
    if (!key) return lc_fail_int(LC_OutOfMemory, "unique: no memory for %lld values", (long long)elements);
    int64_t *order = (int64_t *)key + elements;
    as->load(a->in->data, size, elements, 0, key, &unused);
    if (!a->consecutive) order = sort_slices(key, a->width, a->n, order, order + a->n);
    else
        for (int64_t i = 0; i < a->n; i++) order[i] = i;
    for (int64_t i = 0; i < a->n; i++) {
        const uint64_t *here = key + order[i] * a->width;
        bool            fresh = !i || compare_slices(key, a->width, order[i - 1], order[i]) || has_nan(here, a->width, as->nan);
        if (fresh) a->first[found] = order[i];
        if (fresh && a->counts) a->counts[found] = i;
        found += fresh;
        if (a->inverse) a->inverse[order[i]] = found - 1;
    }
    cpu_scratch_free(key, bytes);
    return finish_groups(a, found);
}

static int cpu_unique(UNUSED lc_dtype compute, const void *args)
{
    const lc_unique_args *a = args;
    if (!a->n) return *a->found = 0, 0;
    return a->values ? unique_values(a) : unique_slices(a);
}
LC_CPU_RUN(unique, cpu_unique, 0 LC_EACH_sortable(LC_SORTABLE_BIT, ))

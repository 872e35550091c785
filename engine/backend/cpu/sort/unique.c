/* unique and unique_consecutive. If the keys of single values have few bits, they are only counted in a histogram, which
 * also gives the position of each value. Values that mostly repeat are collected in a hash set of keys, and the set is
 * sorted. Otherwise the values are sorted in the memory of the result (sort_in_place.inc.c), or with their indices in that
 * of `inverse`, and neighbours are compared: no memory but the results'. `inverse` then holds the group of each value in
 * sorted order; another sort, by index, moves them to their positions. Slices are merge-sorted, comparing element by
 * element. */
#include "sort.h"
#include "../../args.h"
#include <string.h>

static int      bits_of(uint64_t x) { return x ? 64 - __builtin_clzll(x) : 0; }
static int64_t *counts_of(const lc_unique_args *a) { return a->outputs->counts ? (int64_t *)a->outputs->counts->data : NULL; }
static int64_t *inverse_of(const lc_unique_args *a) { return a->inverse ? (int64_t *)a->inverse->data : NULL; }
static int64_t *found_of(const lc_unique_args *a) { return (int64_t *)a->found->data; }
static int      set_found(const lc_unique_args *a, int64_t n) { return *found_of(a) = n, 0; }

/* ---- groups: from sorted keys to the distinct ones ---- */
typedef struct {
    const lc_unique_args *args;
    const lc_sort_key    *key;
    char                 *values; /* NULL: only counted */
    int64_t              *counts;
    bool                  later; /* inverse gets (index, group), in this order */
    uint64_t              last;
    int64_t               seen, found;
} grouping;
static grouping grouping_of(const lc_unique_args *a)
{
    return (grouping){ .args = a, .key = cpu_sort_key((lc_dtype)a->in->dtype) };
}
static int with_outputs(grouping *g, int64_t n)
{
    if (g->args->make(g->args, n) < 0) return -1;
    g->values = g->args->outputs->chosen->data, g->counts = counts_of(g->args);
    return 0;
}

/* n <= SORT_TILE keys; index: their original positions; NULL: unchanged */
static void group(grouping *g, const uint64_t *key, const int64_t *index, int64_t n)
{
    int64_t *inverse = inverse_of(g->args);
    uint64_t distinct[SORT_TILE], before = g->seen ? g->last : ~key[0];
    uint8_t  fresh[SORT_TILE];
    uint16_t start[SORT_TILE + 1];
    int64_t  size = lc_size_of(g->args->in->dtype);
    int64_t  count = cpu_sort_kernels()->starts(key, before, g->key->nan, n, fresh, start);
    for (int64_t i = 0, group = g->found - 1; g->values && inverse && i < n; i++) {
        group += fresh[i];
        if (g->later) inverse[g->seen + i] = index[i] << 32 | group;
        else inverse[index ? index[i] : g->seen + i] = group;
    }
    for (int64_t i = 0; i < count; i++) distinct[i] = key[start[i]];
    if (g->values && g->args->consecutive)
        for (int64_t i = 0; i < count; i++) /* the element, not its key: zeros have signs */
            memcpy(g->values + (g->found + i) * size, g->args->in->data + (g->seen + start[i]) * size, (size_t)size);
    else if (g->values) g->key->store(g->values + g->found * size, size, count, 0, distinct);
    for (int64_t i = 0; g->counts && i < count; i++) g->counts[g->found + i] = g->seen + start[i];
    g->last = key[n - 1], g->seen += n, g->found += count;
}
static int no_memory(const lc_unique_args *a)
{
    return lc_fail_int(LC_OutOfMemory, "unique: no memory for %lld values", (long long)a->n);
}
static int finish_groups(const lc_unique_args *a, int64_t found) /* counts hold the starts of groups */
{
    int64_t *counts = counts_of(a);
    for (int64_t i = 0; counts && i < found; i++) counts[i] = (i + 1 < found ? counts[i + 1] : a->n) - counts[i];
    return set_found(a, found);
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
    int64_t         *inverse = inverse_of(t->args) + at;
    for (int64_t i = 0; i < n; i++) inverse[i] = t->count[(key[i] - t->least) >> t->shift];
}
static int unique_by_table(const lc_unique_args *a, const key_summary *s)
{
    key_table          t = { .args = a, .least = s->least, .shift = s->varying ? __builtin_ctzll(s->varying) : 0 };
    const lc_sort_key *as = cpu_sort_key((lc_dtype)a->in->dtype);
    int64_t            size = lc_size_of(a->in->dtype), found = 0, last = (int64_t)((s->most - s->least) >> t.shift);
    each_tile(a, count_tile, &t, NULL);
    for (int64_t k = 0; k <= last; k++) found += t.count[k] != 0;
    if (a->make(a, found) < 0) return -1;
    int64_t *counts = counts_of(a);
    found = 0;
    for (int64_t k = 0; k <= last; k++) {
        if (!t.count[k]) continue;
        uint64_t key = ((uint64_t)k << t.shift) + t.least;
        as->store(a->outputs->chosen->data + found * size, size, 1, 0, &key);
        if (counts) counts[found] = t.count[k];
        t.count[k] = found++;
    }
    if (a->inverse) each_tile(a, place_tile, &t, NULL);
    return set_found(a, found);
}

/* In the memory of the results. size: of the records there. */
typedef struct {
    char    *to;
    int64_t  size;
    uint64_t least;
    int      shift, index_bits;
} packing;
static void pack_tile(void *ctx, const uint64_t *key, int64_t at, int64_t n)
{
    const packing *p = ctx;
    char          *to = p->to + at * p->size;
    for (int64_t i = 0; i < n && p->size == 2; i++) ((uint16_t *)to)[i] = (uint16_t)((key[i] - p->least) >> p->shift);
    for (int64_t i = 0; i < n && p->size == 4; i++) ((uint32_t *)to)[i] = (uint32_t)((key[i] - p->least) >> p->shift);
    for (int64_t i = 0; i < n && p->size == 8; i++)
        ((uint64_t *)to)[i] = (key[i] - p->least) >> p->shift << p->index_bits | (p->index_bits ? (uint64_t)(at + i) : 0);
}
static void unpack_tile(const packing *p, int64_t at, int64_t n, uint64_t *key, int64_t *index)
{
    const char *from = p->to + at * p->size;
    uint64_t    mask = p->index_bits ? ~0ull >> (64 - p->index_bits) : 0;
    for (int64_t i = 0; i < n && p->size == 2; i++) key[i] = ((const uint16_t *)from)[i];
    for (int64_t i = 0; i < n && p->size == 4; i++) key[i] = ((const uint32_t *)from)[i];
    for (int64_t i = 0; i < n && p->size == 8; i++) key[i] = ((const uint64_t *)from)[i];
    for (int64_t i = 0; i < n && p->index_bits; i++) index[i] = (int64_t)(key[i] & mask);
    for (int64_t i = 0; i < n; i++) key[i] = (key[i] >> p->index_bits << p->shift) + p->least;
}
/* Values that mostly repeat: a hash set of keys needs less memory than all keys. */
#define NO_KEY (~0ull) /* also the largest 8-byte key: that one is counted separately, as NaNs are */
typedef struct {
    uint64_t multiplier, apart, *key;
    int64_t *count, found, seen, most, others; /* count: NULL if not wanted; others: with the key `apart` */
    int      bits;
    bool     counts, left; /* left: gave up: too many keys, or out of memory */
} key_set;
static size_t set_bytes(const key_set *s) { return (s->counts ? 2 : 1) * sizeof(uint64_t) << s->bits; }
static bool   set_allocate(key_set *s, int bits)
{
    s->bits = bits, s->key = cpu_scratch(set_bytes(s));
    if (!s->key) return s->left = true, false;
    s->count = s->counts ? (int64_t *)(s->key + (1ll << bits)) : NULL;
    memset(s->key, 0xff, sizeof *s->key << bits);
    if (s->counts) memset(s->count, 0, sizeof *s->count << bits);
    return true;
}
static void set_free(key_set *s)
{
    if (s->key) cpu_scratch_free(s->key, set_bytes(s));
}
static inline uint64_t set_slot(const key_set *s, uint64_t key) /* the slot that holds key, or the free one for it */
{
    uint64_t at = key * s->multiplier >> (64 - s->bits), mask = (1ull << s->bits) - 1;
    while (s->key[at] != key && s->key[at] != NO_KEY) at = (at + 1) & mask;
    return at;
}
static void set_grow(key_set *s)
{
    key_set old = *s;
    if (set_allocate(s, old.bits + 1))
        for (int64_t i = 0; i < 1ll << old.bits; i++) {
            if (old.key[i] == NO_KEY) continue;
            uint64_t at = set_slot(s, old.key[i]);
            s->key[at] = old.key[i];
            if (s->counts) s->count[at] = old.count[i];
        }
    set_free(&old);
}
static void set_tile(void *ctx, const uint64_t *key, UNUSED int64_t at, int64_t n)
{
    enum { TRIAL = 1 << 15 };
    key_set *s = ctx;
    if (!s->left && s->found + n > 1ll << (s->bits - 1)) set_grow(s);
    if (s->left) return;
    for (int64_t i = 0; i < n; i++) {
        if (key[i] == s->apart) {
            s->others++;
            continue;
        }
        uint64_t slot = set_slot(s, key[i]);
        s->found += s->key[slot] == NO_KEY;
        s->key[slot] = key[i];
        if (s->counts) s->count[slot]++;
    }
    s->seen += n;
    s->left = s->found > s->most || (s->seen == TRIAL && s->found + s->others > TRIAL - TRIAL / 64); /* nearly all are new */
}
static int set_to_groups(const lc_unique_args *a, const key_set *s, const key_summary *all)
{
    grouping g = grouping_of(a);
    packing  p = { .size = lc_size_of(a->in->dtype),
                   .least = all->least,
                   .shift = all->varying ? __builtin_ctzll(all->varying) : 0 };
    int64_t  apart = s->others && !g.key->nan ? 1 : s->others, held = 0, at = 0;
    uint64_t key[SORT_TILE];
    if (with_outputs(&g, s->found + apart) < 0) return -1;
    p.to = g.values;
    for (int64_t i = 0; i < 1ll << s->bits; i++) {
        if (s->key[i] != NO_KEY) key[held++] = s->key[i];
        if (held == SORT_TILE) pack_tile(&p, key, at, held), at += held, held = 0;
    }
    pack_tile(&p, key, at, held);
    cpu_sort_place(p.to, p.size, s->found, 0, bits_of((all->most - all->least) >> p.shift), true);
    for (int64_t n, i = 0; i < s->found; i += n) {
        n = s->found - i < SORT_TILE ? s->found - i : SORT_TILE;
        unpack_tile(&p, i, n, key, NULL);
        g.key->store(g.values + i * p.size, p.size, n, 0, key);
        for (int64_t j = 0; g.counts && j < n; j++) g.counts[i + j] = s->count[set_slot(s, key[j])];
    }
    for (int64_t i = s->found; i < s->found + apart; i++) {
        g.key->store(g.values + i * p.size, p.size, 1, 0, &s->apart);
        if (g.counts) g.counts[i] = g.key->nan ? 1 : s->others;
    }
    return set_found(a, s->found + apart);
}
/* 1 if there are too many. */
static int unique_by_set(const lc_unique_args *a, const key_summary *all)
{
    enum { FIRST_BITS = 10, REPEATS = 16 };
    uint64_t nan = cpu_sort_key((lc_dtype)a->in->dtype)->nan;
    key_set s = { .multiplier = 0x9e3779b97f4a7c15u, .apart = nan ? nan : NO_KEY, .counts = a->counts, .most = a->n / REPEATS };
    if (set_allocate(&s, FIRST_BITS)) each_tile(a, set_tile, &s, NULL);
    int rc = s.left ? 1 : set_to_groups(a, &s, all);
    set_free(&s);
    return rc;
}
static void each_sorted_tile(const packing *p, const sorted_line *line, grouping *g)
{
    uint64_t key[SORT_TILE];
    int64_t  index[SORT_TILE];
    for (int64_t at = 0, n, all = g->args->n; at < all; at += n) {
        n = all - at < SORT_TILE ? all - at : SORT_TILE;
        if (line) cpu_sort_read(line, at, n, key, index);
        else unpack_tile(p, at, n, key, index);
        group(g, key, index, n);
    }
}
static int unique_in_place(const lc_unique_args *a, const key_summary *s)
{
    grouping g = grouping_of(a);
    packing  p = { .size = lc_size_of(a->in->dtype), .least = s->least, .shift = s->varying ? __builtin_ctzll(s->varying) : 0 };
    int      bits = bits_of((s->most - s->least) >> p.shift);
    sorted_line sorted, *line = NULL;
    if (a->inverse) p.to = a->inverse->data, p.size = 8, p.index_bits = bits_of((uint64_t)(a->n - 1)), g.later = true;
    else if (with_outputs(&g, a->n) < 0) return -1;
    else p.to = g.values;
    if (bits + p.index_bits > 64) {
        line = &sorted;
        if (cpu_sort_in_place((lc_dtype)a->in->dtype, a->in->data, p.size, a->n, false, true, true,
                              &(sort_workspace){ .place = inverse_of(a) }, line) < 0)
            return no_memory(a);
    } else {
        each_tile(a, pack_tile, &p, NULL);
        cpu_sort_place(p.to, p.size, a->n, s->lossy ? 0 : p.index_bits, p.index_bits + bits,
                       true); /* every NaN is a group, in input order */
    }
    if (a->inverse) { /* counted first */
        each_sorted_tile(&p, line, &g);
        int64_t found = g.found;
        g.seen = g.found = 0;
        if (with_outputs(&g, found) < 0) return -1;
    }
    each_sorted_tile(&p, line, &g);
    if (a->inverse) {
        int64_t *inverse = inverse_of(a);
        cpu_sort_place(inverse, 8, a->n, 32, 32 + p.index_bits, true);
        for (int64_t i = 0; i < a->n; i++) inverse[i] &= UINT32_MAX;
    }
    return finish_groups(a, g.found);
}
static int unique_by_sorting(const lc_unique_args *a) /* with buffers: few elements, or bytes */
{
    lc_dtype    dtype = (lc_dtype)a->in->dtype;
    int64_t     size = lc_size_of(dtype), capacity = cpu_sort_capacity(a->n);
    size_t      bytes = (size_t)capacity * 2 * sizeof(uint64_t);
    grouping    g = grouping_of(a);
    sorted_line line;
    if (with_outputs(&g, a->n) < 0) return -1;
    uint64_t *memory = cpu_scratch(bytes);
    int rc = memory ? cpu_sort_line(dtype, a->in->data, size, a->n, false, a->inverse != NULL, true, memory, memory + capacity,
                                    &line)
                    : -1;
    if (rc == 0) each_sorted_tile(NULL, &line, &g);
    if (memory) cpu_scratch_free(memory, bytes);
    return rc < 0 ? no_memory(a) : finish_groups(a, g.found);
}
/* Only the first of each run is wanted: needs no keys. */
#define SQUEEZE(T)                                                                                                             \
    do {                                                                                                                       \
        const T *x = (const T *)a->in->data;                                                                                   \
        for (int64_t i = 1; i < a->n; i++) found += x[i] != x[i - 1];                                                          \
        if (a->make(a, found) < 0) return -1;                                                                                  \
        T *to = (T *)a->outputs->chosen->data, last = *to++ = x[0];                                                            \
        for (int64_t i = 1, k = 0; k < found - 1; i++) {                                                                       \
            T here = x[i];                                                                                                     \
            to[k] = here, k += here != last, last = here;                                                                      \
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
    return set_found(a, found);
}
/* Both zeros have the same key: the result's zero takes the sign of the first one. Values are sorted. */
static uint64_t bits_at(const char *values, int64_t size, int64_t i)
{
    uint64_t bits = 0;
    memcpy(&bits, values + i * size, (size_t)size);
    return bits << (64 - 8 * size);
}
static void restore_zero(const lc_unique_args *a)
{
    char   *values = a->outputs->chosen->data;
    int64_t size = lc_size_of(a->in->dtype), low = 0, high = *found_of(a), i = 0;
    if (lc_class_of(a->in->dtype) != LC_FLOAT) return;
    while (low < high) { /* the first non-negative one */
        int64_t middle = low + (high - low) / 2;
        if (bits_at(values, size, middle) >> 63) low = middle + 1;
        else high = middle;
    }
    if (low == *found_of(a) || bits_at(values, size, low)) return;
    while (bits_at(a->in->data, size, i) << 1) i++;
    memcpy(values + low * size, a->in->data + i * size, (size_t)size);
}
static int unique_values(const lc_unique_args *a)
{
    key_summary all = { 0 };
    grouping    g = grouping_of(a);
    bool        half = a->in->dtype == LC_f16 || a->in->dtype == LC_bf16; /* equal by key, not by bits */
    if (a->consecutive && !a->inverse && !a->counts && !half) return squeeze(a);
    if (a->consecutive) { /* counted first */
        each_tile(a, group_tile, &g, NULL);
        int64_t found = g.found;
        g.seen = g.found = 0;
        if (with_outputs(&g, found) < 0) return -1;
        each_tile(a, group_tile, &g, NULL);
        return finish_groups(a, g.found);
    }
    if (a->n <= SORT_TILE) return unique_by_sorting(a);
    each_tile(a, NULL, NULL, &all);
    uint64_t range = (all.most - all.least) >> (all.varying ? __builtin_ctzll(all.varying) : 0);
    if (!all.lossy && range < 1u << TABLE_BITS) return unique_by_table(a, &all);
    int rc = a->inverse ? 1 : unique_by_set(a, &all);
    if (rc <= 0) return rc;
    bool fits = !a->inverse || a->n <= INT32_MAX; /* an index and a group */
    return fits && lc_size_of(a->in->dtype) > 1 ? unique_in_place(a, &all) : unique_by_sorting(a);
}

/* ---- slices ---- */
static int64_t slice_keys(const lc_unique_args *a, const lc_sort_key *as, int64_t slice, int64_t at, int64_t most,
                          uint64_t *key)
{
    int64_t     size = lc_size_of(a->in->dtype), n = a->width - at < most ? a->width - at : most;
    key_summary unused;
    as->load(a->in->data + (slice * a->width + at) * size, size, n, 0, key, &unused);
    return n;
}
static int compare_slices(const lc_unique_args *a, const lc_sort_key *as, int64_t one, int64_t two)
{
    uint64_t x[SORT_TILE], y[SORT_TILE];
    for (int64_t at = 0, n, most = 8; at < a->width; at += n, most = SORT_TILE) { /* most differ early */
        n = slice_keys(a, as, one, at, most, x), slice_keys(a, as, two, at, most, y);
        for (int64_t i = 0; i < n; i++)
            if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    }
    return 0;
}
static int64_t *sort_slices(const lc_unique_args *args, const lc_sort_key *as, int64_t *a,
                            int64_t *b) /* a, b: n elements each */
{
    int64_t n = args->n;
    for (int64_t i = 0; i < n; i++) a[i] = i;
    for (int64_t half = 1; half < n; half *= 2) {
        for (int64_t start = 0; start < n; start += 2 * half) {
            int64_t i = start, middle = start + half < n ? start + half : n, j = middle;
            int64_t stop = middle + half < n ? middle + half : n;
            for (int64_t k = start; k < stop; k++)
                b[k] = i < middle && (j >= stop || compare_slices(args, as, a[i], a[j]) <= 0) ? a[i++] : a[j++];
        }
        int64_t *swap = a;
        a = b, b = swap;
    }
    return a;
}
static bool has_nan(const lc_unique_args *a, const lc_sort_key *as, int64_t slice)
{
    uint64_t key[SORT_TILE];
    bool     found = false;
    for (int64_t at = 0, n; as->nan && at < a->width && !found; at += n) {
        n = slice_keys(a, as, slice, at, SORT_TILE, key);
        for (int64_t i = 0; i < n; i++) found |= key[i] == as->nan;
    }
    return found;
}
static int unique_slices(const lc_unique_args *a)
{
    const lc_sort_key *as = cpu_sort_key((lc_dtype)a->in->dtype);
    int64_t            found = 0;
    size_t             bytes = (size_t)(2 * a->n) * sizeof(int64_t);
    if (a->make(a, a->n) < 0) return -1;
    int64_t *memory = cpu_scratch(bytes), *order = memory, *first = (int64_t *)a->outputs->chosen->data, *counts = counts_of(a);
    int64_t *inverse = inverse_of(a);
    if (!memory) return lc_fail_int(LC_OutOfMemory, "unique: no memory for %lld slices", (long long)a->n);
    if (!a->consecutive) order = sort_slices(a, as, memory, memory + a->n);
    else
        for (int64_t i = 0; i < a->n; i++) order[i] = i;
    for (int64_t i = 0; i < a->n; i++) {
        bool fresh = !i || compare_slices(a, as, order[i - 1], order[i]) || has_nan(a, as, order[i]);
        if (fresh) first[found] = order[i];
        if (fresh && counts) counts[found] = i;
        found += fresh;
        if (inverse) inverse[order[i]] = found - 1;
    }
    cpu_scratch_free(memory, bytes);
    return finish_groups(a, found);
}

static int cpu_unique(UNUSED lc_dtype compute, const void *args)
{
    const lc_unique_args *a = args;
    if (!a->n) return set_found(a, 0), a->make(a, 0);
    if (a->slices) return unique_slices(a);
    if (unique_values(a) < 0) return -1;
    if (!a->consecutive) restore_zero(a);
    return 0;
}
LC_CPU_RUN(unique, cpu_unique, 0 LC_EACH_sortable(LC_SORTABLE_BIT, ))

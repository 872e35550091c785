/* searchsorted (bucketize is the same), and isin: a hash table of the tests' keys. */
#include "../sort/sort.h"
#include "lookup.h"
#include "../../args.h"
#include <string.h>

/* ---- searchsorted ---- */
enum { SEARCH_TILE = 512 };
typedef const lc_lookup lookup_table[LC_DTYPE_COUNT];
ISA_TABLE(lookup_table, lookup)
const lc_lookup *cpu_lookup(lc_dtype dtype) { return &(*lookup_of_this_cpu())[dtype]; }

typedef struct {
    const lc_search_args *args;
    const lc_lookup      *kernels;
    bool                  ordered; /* the only sequence is known to be sorted */
} search_job;
static void search_chunk(void *ctx, int64_t begin, int64_t end)
{
    const search_job     *job = ctx;
    const lc_search_args *a = job->args;
    int64_t               size = lc_size_of(a->values->dtype), place[SEARCH_TILE], last = -1;
    bool                  ordered = job->ordered;
    for (int64_t at = begin, n; at < end; at += n) {
        int64_t row = a->one ? 0 : at / a->each, stop = a->one ? end : (row + 1) * a->each;
        n = (stop < end ? stop : end) - at;
        const char    *sequence = a->sequence->data + row * a->n * size;
        const int64_t *sorter = a->sorter ? (const int64_t *)a->sorter->data + row * a->n : NULL;
        if (!a->one && row != last) ordered = !sorter && 16 * n >= a->n && job->kernels->in_order(sequence, a->n), last = row;
        n = n < SEARCH_TILE ? n : SEARCH_TILE;
        int64_t *to = a->out->dtype == LC_i64 ? (int64_t *)a->out->data + at : place;
        job->kernels->search(sequence, sorter, ordered, a->n, a->values->data + at * size, n, a->right, to);
        for (int64_t i = 0; to == place && i < n; i++) ((int32_t *)a->out->data)[at + i] = (int32_t)place[i];
    }
}
static int cpu_searchsorted(lc_dtype compute, const void *args)
{
    const lc_search_args *a = args;
    search_job            job = { .args = a, .kernels = cpu_lookup(compute) };
    for (int64_t i = 0; a->sorter && i < a->sorter->numel; i++)
        if ((uint64_t)((const int64_t *)a->sorter->data)[i] >= (uint64_t)a->n)
            return lc_fail_int(LC_LucidError, "searchsorted: sorter index out of range: %lld of %lld",
                               (long long)((const int64_t *)a->sorter->data)[i], (long long)a->n);
    job.ordered = a->one && !a->sorter && 16 * a->values->numel >= a->n && job.kernels->in_order(a->sequence->data, a->n);
    cpu_parallel(a->values->numel, CPU_GRAIN / 4, 4 * a->values->numel, search_chunk, &job);
    return 0;
}
LC_CPU_RUN(searchsorted, cpu_searchsorted, 0 LC_EACH_real(LC_SORTABLE_BIT, ))

/* ---- isin ---- */
typedef struct {
    const lc_isin_args *args;
    const lc_sort_key  *key;
    uint64_t           *slot, empty; /* slots hold keys; free slots hold `empty`, which is also a key */
    int                 shift;
} key_set;
static uint64_t home(const key_set *s, uint64_t key) { return key * 0x9e3779b97f4a7c15u >> s->shift; }
static bool     holds(const key_set *s, uint64_t key)
{
    uint64_t mask = ~0ull >> s->shift, h = home(s, key), here;
    while ((here = s->slot[h]) != key && here != s->empty) h = (h + 1) & mask;
    return here == key;
}
static void enter(key_set *s, uint64_t key)
{
    uint64_t mask = ~0ull >> s->shift, h = home(s, key);
    while (s->slot[h] != key && s->slot[h] != s->empty) h = (h + 1) & mask;
    s->slot[h] = key;
}
static void isin_chunk(void *ctx, int64_t begin, int64_t end)
{
    const key_set *s = ctx;
    bool          *out = (bool *)s->args->out->data;
    int64_t        size = lc_size_of(s->args->elements->dtype);
    uint64_t       key[SORT_TILE];
    key_summary    unused;
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at < SORT_TILE ? end - at : SORT_TILE;
        s->key->load(s->args->elements->data + at * size, size, n, 0, key, &unused);
        for (int64_t i = 0; i < n; i++) out[at + i] = holds(s, key[i]) != s->args->invert;
        for (int64_t i = 0; s->key->nan && i < n; i++)
            if (key[i] == s->key->nan) out[at + i] = s->args->invert;
    }
}
static int cpu_isin(lc_dtype compute, const void *args)
{
    const lc_isin_args *a = args;
    int64_t             size = lc_size_of(compute), tests = a->tests->numel;
    int                 bits = 66 - __builtin_clzll((uint64_t)tests | 1); /* at most a quarter of the slots are taken */
    size_t              bytes = sizeof(uint64_t) << bits;
    key_set             s = { .args = a, .key = cpu_sort_key(compute), .shift = 64 - bits };
    uint64_t            key[SORT_TILE];
    key_summary         unused;
    if (!tests) return memset(a->out->data, a->invert, (size_t)a->out->numel), 0;
    if (!(s.slot = cpu_scratch(bytes)))
        return lc_fail_int(LC_OutOfMemory, "isin: no memory for %lld test elements", (long long)tests);
    s.key->load(a->tests->data, size, 1, 0, &s.empty, &unused);
    for (int64_t i = 0; i < (int64_t)1 << bits; i++) s.slot[i] = s.empty;
    for (int64_t at = 0, n; at < tests; at += n) {
        n = tests - at < SORT_TILE ? tests - at : SORT_TILE;
        s.key->load(a->tests->data + at * size, size, n, 0, key, &unused);
        for (int64_t i = 0; i < n; i++) enter(&s, key[i]);
    }
    cpu_parallel(a->out->numel, CPU_GRAIN, a->out->numel, isin_chunk, &s);
    cpu_scratch_free(s.slot, bytes);
    return 0;
}
LC_CPU_RUN(isin, cpu_isin, 0 LC_EACH_real(LC_SORTABLE_BIT, ) | 1u << LC_f16 | 1u << LC_bf16)

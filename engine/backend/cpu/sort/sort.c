/* Sorting a line: values become keys (unsigned integers in the order of the values); a key and the index of its value form
 * one record, and records are sorted as integers. Equal values stay in the order of their indices: every sort here is
 * stable, as PyTorch's is.
 *
 * A first pass finds the smallest and largest key and the bits that vary. Subtracting the smallest key and dropping constant
 * low bits leaves as few bits as the values need, so 64 bits hold key and index of everything except 8-byte values with a
 * wide range. For those, a record keeps the leading bits of the key. Few records then tie; those that do are rebuilt from
 * the omitted bits and sorted once more (break_ties). Records of 128 bits took twice the memory and, moved six times, more
 * time.
 *
 * With buffers, an LSD radix sort takes 11 bits per pass (three passes for float32, one for small integers): no comparisons
 * and no branch mispredictions. A line of up to 256 is merge-sorted instead. All threads sort one long line; several lines
 * get one thread each.
 *
 * The workspace is two buffers of records, 16 bytes per element of a line and thread, up to SORT_MEMORY. Records of a longer
 * line go to the memory of its index output: a histogram of the top digit is built, and each record is moved to its part, in
 * order. The memory of the value output serves as a second buffer: each thread takes a piece of it to sort a part. Parts too
 * large for a piece are sorted in place (sort_in_place.inc.c), which takes twice as long. Long lines have buffers only if
 * their index output is not contiguous.
 *
 * The k smallest alone: count the top digit of all keys; then, among the keys that share the digit of the k-th one, count
 * the next digits until few are left. That gives the largest key for which records are made. */
#include "sort.h"
#include "../../args.h"
#include "../../../tensor/iter.h"
#include <string.h>

/* ---- keys ---- */
ISA_TABLE(const lc_sort_kernels, sort)
const lc_sort_kernels *cpu_sort_kernels(void) { return sort_of_this_cpu(); }
const lc_sort_key     *cpu_sort_key(lc_dtype dtype) { return cpu_sort_kernels()->key[dtype]; }

void cpu_join_summaries(key_summary *all, const key_summary *s)
{
    all->varying |= s->varying | (s->least ^ all->least);
    all->least = s->least < all->least ? s->least : all->least;
    all->most = s->most > all->most ? s->most : all->most;
    all->lossy |= s->lossy;
}

/* ---- records ---- */
enum { PARALLEL_LINE = 1 << 17, MOST_BLOCKS = 64 };

int64_t cpu_sort_capacity(int64_t n) /* short lines are rounded up (cpu_sort_short) */
{
    int64_t capacity = 8;
    while (capacity < n && capacity < SORT_TILE) capacity *= 2;
    return capacity < n ? n : capacity;
}

static int bits_of(uint64_t x) { return x ? 64 - __builtin_clzll(x) : 0; }
/* Chooses the key bits that a record keeps; returns their number. */
static int plan_records(sorted_line *line, const key_summary *all, bool with_index)
{
    int bits = bits_of(all->most - all->least), alike = all->varying ? __builtin_ctzll(all->varying) : 0, capacity;
    line->lossy = all->lossy, line->least = all->least;
    line->index_bits = with_index ? bits_of((uint64_t)(line->n - 1)) : 0;
    capacity = 64 - line->index_bits, line->cut = bits - alike > capacity;
    line->shift = line->cut ? bits - capacity : alike;
    return bits - line->shift;
}
static inline uint64_t record_of(const sorted_line *line, uint64_t key) /* without its index */
{
    return (key - line->least) >> line->shift << line->index_bits;
}
static uint64_t index_mask(const sorted_line *line) { return line->index_bits ? ~0ull >> (64 - line->index_bits) : 0; }

static void read_index(const sorted_line *line, const uint64_t *record, int64_t n, int64_t *index)
{
    uint64_t mask = index_mask(line);
    for (int64_t i = 0; i < n; i++) index[i] = (int64_t)(record[i] & mask);
}
static void keys_of_records(const sorted_line *line, const uint64_t *record, int64_t n, uint64_t *key)
{
    uint64_t    value[SORT_TILE], mask = index_mask(line);
    key_summary unused;
    if (line->cut) { /* 8 bytes each */
        for (int64_t i = 0; i < n; i++) value[i] = *(const uint64_t *)(line->from + (int64_t)(record[i] & mask) * line->step);
        line->key->load((const char *)value, sizeof *value, n, line->flip, key, &unused);
    } else
        for (int64_t i = 0; i < n; i++) key[i] = (record[i] >> line->index_bits << line->shift) + line->least;
}

static bool in_order(const uint64_t *a, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (a[i] < a[i - 1]) return false;
    return true;
}
static bool has_equals(const sorted_line *line, const uint64_t *a, int64_t n)
{
    bool equal = false;
    for (int64_t i = 1; i < n; i++) equal |= (a[i] ^ a[i - 1]) >> line->index_bits == 0;
    return equal;
}
/* Records are sorted except for the last `left` bits of their keys. spare: NULL, or a buffer of the same size. True if some
 * keys are equal. */
static bool break_ties(const sorted_line *line, uint64_t *a, uint64_t *spare, int64_t n, int left, bool parallel)
{
    int      low = line->index_bits, width = left < 64 - low ? left : 64 - low;
    uint64_t key[SORT_TILE], mask = index_mask(line), bits = ~0ull >> (64 - width);
    bool     equal = false;
    for (int64_t i = 1, end; i < n; i++) {
        if ((a[i] ^ a[i - 1]) >> low) continue;
        int64_t   first = i - 1, count;
        uint64_t *run = a + first, *sorted;
        for (end = i + 1; end < n && !((a[end] ^ *run) >> low);) end++;
        count = end - first, i = end;
        for (int64_t at = 0, m; at < count; at += m) {
            m = count - at < SORT_TILE ? count - at : SORT_TILE;
            keys_of_records(line, run + at, m, key);
            for (int64_t j = 0; j < m; j++)
                run[at + j] = ((key[j] - line->least) >> (left - width) & bits) << low | (run[at + j] & mask);
        }
        if (!in_order(run, count)) {
            if (spare && count > SORT_TILE && count <= INT32_MAX) {
                sorted = cpu_sort_records(run, spare + first, count, low, width, 0, NULL);
                if (sorted != run) memcpy(run, sorted, (size_t)count * sizeof *run);
            } else cpu_sort_place(run, sizeof *run, count, 0, low + width, parallel);
        }
        if (left > width) equal |= break_ties(line, run, spare ? spare + first : NULL, count, left - width, parallel);
        else equal |= has_equals(line, run, count);
    }
    return equal;
}

/* ---- with buffers ---- */
typedef struct { /* loads a long line block by block */
    const sorted_line *line;
    int64_t            block;
    uint64_t          *to;
    key_summary       *summary;
} key_load;
static void load_blocks(void *ctx, int64_t begin, int64_t end)
{
    const key_load    *l = ctx;
    const sorted_line *line = l->line;
    for (int64_t b = begin; b < end; b++) {
        int64_t at = b * l->block, n = line->n - at < l->block ? line->n - at : l->block;
        line->key->load(line->from + at * line->step, line->step, n, line->flip, l->to + at, &l->summary[b]);
    }
}
static int64_t blocks_of(int64_t n) /* adapts to the number of threads: the result does not depend on it */
{
    int64_t blocks = 2 * lc_num_threads(), most = n / SORT_TILE ? n / SORT_TILE : 1;
    if (blocks > MOST_BLOCKS) blocks = MOST_BLOCKS;
    return blocks < most ? blocks : most;
}
int cpu_sort_line(lc_dtype dtype, const char *from, int64_t step, int64_t n, bool descending, bool with_index, bool parallel,
                  uint64_t *record, uint64_t *spare, sorted_line *line)
{
    const lc_sort_key *key = cpu_sort_key(dtype);
    bool               split = parallel && n >= PARALLEL_LINE && lc_num_threads() > 1;
    int64_t            blocks = split || n > INT32_MAX ? blocks_of(n) : 0, *count = NULL; /* counts per block are 32 bits */
    key_summary        all, each[MOST_BLOCKS];
    if (blocks && !(count = cpu_scratch((size_t)blocks * sizeof *count << SORT_DIGIT))) return -1;
    *line = (sorted_line){ .key = key, .flip = descending ? key->all : 0, .n = n, .from = from, .step = step };
    if (blocks) {
        key_load load = { line, (n + blocks - 1) / blocks, record, each };
        cpu_parallel(blocks, 1, n, load_blocks, &load);
        all = each[0];
        for (int64_t b = 1; b < blocks && b * load.block < n; b++) cpu_join_summaries(&all, &each[b]);
    } else key->load(from, step, n, line->flip, record, &all);
    int bits = plan_records(line, &all, with_index);
    if (with_index)
        for (int64_t i = 0; i < n; i++) record[i] = record_of(line, record[i]) | (uint64_t)i;
    else
        for (int64_t i = 0; i < n; i++) record[i] = record_of(line, record[i]);
    line->record = cpu_sort_records(record, spare, n, line->index_bits, bits, blocks, count);
    if (line->cut) break_ties(line, line->record, line->record == record ? spare : record, n, line->shift, parallel);
    if (count) cpu_scratch_free(count, (size_t)blocks * sizeof *count << SORT_DIGIT);
    return 0;
}

/* ---- in the memory of the index output ---- */
typedef struct {
    const sorted_line    *line;
    const sort_workspace *workspace;
    int64_t               block, blocks; /* elements per block, and number of blocks */
    int64_t              *count;         /* 1 << SORT_DIGIT per block: counts, then the next position in each part */
    key_summary          *summary;
    int                   below;     /* record bits below the top digit */
    int64_t               parts;     /* number of digits to sort, */
    const int64_t        *end;       /* and the end of each */
    int64_t               size;      /* record size in bytes: 8, or that of the values when sorting without indices */
    int64_t               most;      /* larger parts are split between threads */
    int64_t               each;      /* spare records per thread */
    int                   slots;     /* so often */
    atomic_ullong         taken;     /* one bit per piece */
    atomic_bool           equal;     /* two keys are equal, which the caller excluded */
    uint64_t              low, high; /* range of keys considered while selecting the k smallest, */
    int                   shift;     /* and the bits below the digit being counted */
    uint32_t             *narrow;    /* 1 << SORT_DIGIT per block; or the keys, */
    int64_t              *section;   /* and the next position of each block */
} placing;
typedef enum { SUMMARISE, COUNT, NARROW, COLLECT, MOVE } place_pass;
static int64_t those_between(uint64_t low, uint64_t high, uint64_t *key, int64_t n, uint8_t *from)
{
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t k = key[i];
        key[m] = k, from[m] = (uint8_t)i, m += k - low <= high - low;
    }
    return m;
}
static inline __attribute__((always_inline)) void pass_block(const placing *p, int64_t b, place_pass pass)
{
    const sorted_line *line = p->line;
    int64_t            at = b * p->block, end = line->n - at < p->block ? line->n : at + p->block;
    int64_t           *count = p->count + (b << SORT_DIGIT);
    uint32_t          *narrow = p->narrow + (b << SORT_DIGIT);
    uint64_t           key[SORT_TILE];
    uint8_t            from[SORT_TILE];
    key_summary        s;
    for (int64_t n, m; at < end; at += n) {
        n = m = end - at < SORT_TILE ? end - at : SORT_TILE;
        line->key->load(line->from + at * line->step, line->step, n, line->flip, key, &s);
        if (pass >= NARROW && p->workspace->k) {
            if (s.least > p->high || s.most < p->low) continue;
            m = those_between(p->low, p->high, key, n, from);
        }
        if (pass == SUMMARISE && at == b * p->block) p->summary[b] = s;
        else if (pass == SUMMARISE) cpu_join_summaries(&p->summary[b], &s);
        else if (pass == COUNT)
            for (int64_t i = 0; i < m; i++) count[record_of(line, key[i]) >> p->below]++;
        else if (pass == NARROW)
            for (int64_t i = 0; i < m; i++) narrow[(key[i] - p->low) >> p->shift]++;
        else if (pass == COLLECT)
            for (int64_t i = 0; i < m; i++) ((uint64_t *)p->narrow)[p->section[b]++] = key[i];
        else if (p->workspace->k)
            for (int64_t i = 0; i < m; i++) {
                uint64_t r = record_of(line, key[i]);
                line->record[count[r >> p->below]++] = r | (uint64_t)(at + from[i]);
            }
        else
            for (int64_t i = 0; i < n; i++) {
                uint64_t r = record_of(line, key[i]);
                int64_t  to = count[r >> p->below]++;
                if (p->size == 4) ((uint32_t *)line->record)[to] = (uint32_t)r;
                else if (p->size == 2) ((uint16_t *)line->record)[to] = (uint16_t)r;
                else line->record[to] = line->index_bits ? r | (uint64_t)(at + i) : r;
            }
    }
}
#define BLOCKS_PASS(name, pass)                                                                                                \
    static void name(void *ctx, int64_t begin, int64_t end)                                                                    \
    {                                                                                                                          \
        for (int64_t b = begin; b < end; b++) pass_block(ctx, b, pass);                                                        \
    }
BLOCKS_PASS(summarise_blocks, SUMMARISE)
BLOCKS_PASS(count_blocks, COUNT)
BLOCKS_PASS(narrow_blocks, NARROW)
BLOCKS_PASS(collect_blocks, COLLECT)
BLOCKS_PASS(move_blocks, MOVE)

/* Of the keys with digit d, `need` are among the k smallest. Looks at the next digits of those alone until few are left, and
 * sorts them. The largest of them becomes `high`, and kept holds the count up to it per block. False if the next element has
 * the same key. */
enum { COLLECTED = (sizeof(uint32_t) << SORT_DIGIT) / sizeof(uint64_t) };
static bool find_last(placing *p, int64_t d, int64_t need, int64_t *kept)
{
    const sorted_line *line = p->line;
    int64_t            inside[MOST_BLOCKS], sections[MOST_BLOCKS], all = 0;
    uint64_t           key[COLLECTED], most = p->high;
    p->shift = line->shift + p->below - line->index_bits, p->low = line->least + ((uint64_t)d << p->shift);
    for (int64_t b = 0; b < p->blocks; b++) all += inside[b] = p->count[(b << SORT_DIGIT) + d], kept[b] = 0;
    for (;;) {
        uint64_t last = ~(~0ull << p->shift);
        p->high = most - p->low < last ? most : p->low + last;
        if (need == all) break;
        if (all <= COLLECTED) {
            for (int64_t b = 0, sum = 0; b < p->blocks; b++) sections[b] = sum, sum += inside[b];
            p->section = sections;
            cpu_parallel(p->blocks, 1, line->n, collect_blocks, p);
            const uint64_t *collected = (const uint64_t *)p->narrow;
            memcpy(key, collected, (size_t)all * sizeof *key);
            cpu_sort_place(key, sizeof *key, all, 0, 64, false);
            p->low = 0, p->high = key[need - 1];
            for (int64_t b = 0, i = 0; b < p->blocks; b++)
                for (; i < sections[b]; i++) kept[b] += collected[i] <= p->high;
            return key[need] != p->high;
        }
        if (!p->shift) return false;
        int      width = p->shift < SORT_DIGIT ? p->shift : SORT_DIGIT;
        uint64_t digit = 0;
        p->shift -= width;
        memset(p->narrow, 0, (size_t)p->blocks * sizeof *p->narrow << SORT_DIGIT);
        cpu_parallel(p->blocks, 1, line->n, narrow_blocks, p);
        for (;; digit++, need -= all) {
            all = 0;
            for (int64_t b = 0; b < p->blocks; b++) all += inside[b] = p->narrow[((uint64_t)b << SORT_DIGIT) + digit];
            if (need <= all) break;
            for (int64_t b = 0; b < p->blocks; b++) kept[b] += inside[b];
        }
        p->low += digit << p->shift;
    }
    for (int64_t b = 0; b < p->blocks; b++) kept[b] += inside[b];
    p->low = 0;
    return true;
}
/* The position of each block's records in each part; returns the number of parts. Zero: the k smallest cannot be told from
 * their equals. */
static int64_t place_parts(placing *p, int64_t digits)
{
    int64_t kept[MOST_BLOCKS], sum = 0;
    for (int64_t d = 0; d < digits; d++) {
        int64_t before = sum;
        for (int64_t b = 0; b < p->blocks; b++) {
            int64_t *c = &p->count[(b << SORT_DIGIT) + d];
            sum += *c;
        }
        bool last = p->workspace->k && sum >= p->workspace->k;
        if (last && !find_last(p, d, p->workspace->k - before, kept)) return 0;
        sum = before;
        for (int64_t b = 0; b < p->blocks; b++) {
            int64_t *c = &p->count[(b << SORT_DIGIT) + d], here = last ? kept[b] : *c;
            *c = sum, sum += here;
        }
        if (last) return d + 1;
    }
    return digits;
}
/* Claims a free piece of the spare memory; -1 if there is none for n. */
static int take_slot(placing *p, int64_t n)
{
    for (int i = 0; i < p->slots && n <= p->each; i++)
        if (!(atomic_fetch_or(&p->taken, 1ull << i) >> i & 1)) return i;
    return -1;
}
static void sort_part(placing *p, int64_t d, bool parallel)
{
    const sorted_line *line = p->line;
    int64_t            at = d ? p->end[d - 1] : 0, n = p->end[d] - at;
    uint64_t          *a = (uint64_t *)((char *)line->record + at * p->size), *spare = NULL, *sorted;
    int                low = line->index_bits, slot = n > SORT_TILE ? take_slot(p, n) : -1;
    if (n < 2) return;
    if (slot >= 0) spare = p->workspace->spare + slot * p->each;
    if (p->size == (int64_t)sizeof *a && in_order(a, n)) (void)0;
    else if (spare) { /* records came in the order of their indices */
        if ((sorted = cpu_sort_records(a, spare, n, low, p->below - low, 0, NULL)) != a)
            memcpy(a, sorted, (size_t)n * sizeof *a);
    } else cpu_sort_place(a, p->size, n, line->cut ? low : 0, p->below, parallel);
    bool equal = line->cut ? break_ties(line, a, spare, n, line->shift, parallel) : p->workspace->k && has_equals(line, a, n);
    if (equal && p->workspace->k) p->equal = true;
    if (slot >= 0) atomic_fetch_and(&p->taken, ~(1ull << slot));
}
static void sort_parts(void *ctx, int64_t begin, int64_t end)
{
    placing *p = ctx;
    for (int64_t d = begin; d < end && !p->equal; d++)
        if (p->end[d] - (d ? p->end[d - 1] : 0) <= p->most) sort_part(p, d, false);
}
static void share_spare(placing *p, bool parallel)
{
    p->slots = parallel ? lc_num_threads() : 1;
    if (p->slots > MOST_BLOCKS) p->slots = MOST_BLOCKS;
    p->each = p->workspace->spare && p->size == sizeof(uint64_t) ? p->workspace->spares / p->slots : 0;
    if (p->each > INT32_MAX) p->each = INT32_MAX;
}
int cpu_sort_in_place(lc_dtype dtype, const char *from, int64_t step, int64_t n, bool descending, bool with_index,
                      bool parallel, const sort_workspace *workspace, sorted_line *line)
{
    const lc_sort_key *key = cpu_sort_key(dtype);
    int64_t            blocks = parallel ? blocks_of(n) : 1, total = workspace->k ? workspace->k : n;
    key_summary        each[MOST_BLOCKS];
    placing p = { .line = line, .workspace = workspace, .size = with_index ? 8 : lc_size_of(dtype), .summary = each };
    p.block = (n + blocks - 1) / blocks, p.blocks = blocks = (n + p.block - 1) / p.block;
    size_t bytes = (size_t)blocks * (sizeof *p.count + (workspace->k ? sizeof *p.narrow : 0)) << SORT_DIGIT;
    *line = (sorted_line){
        .key = key, .flip = descending ? key->all : 0, .n = n, .from = from, .step = step, .record = workspace->place
    };
    if (!(p.count = cpu_scratch(bytes))) return -1;
    p.narrow = (uint32_t *)(p.count + (blocks << SORT_DIGIT));
    cpu_parallel(blocks, 1, n, summarise_blocks, &p);
    for (int64_t b = 1; b < blocks; b++) cpu_join_summaries(&each[0], &each[b]);
    p.high = each[0].most;
    p.equal = workspace->k && p.high - each[0].least < (uint64_t)workspace->k - 1; /* fewer distinct keys than k */
    int bits = plan_records(line, &each[0], with_index), width = bits < SORT_DIGIT ? bits : SORT_DIGIT;
    while (width > 4 && n >> width < 8) width--;
    p.below = line->index_bits + bits - width;
    for (int64_t b = 0; b < blocks; b++) memset(p.count + (b << SORT_DIGIT), 0, sizeof *p.count << width);
    if (!p.equal) {
        cpu_parallel(blocks, 1, n, count_blocks, &p);
        p.equal = !(p.parts = place_parts(&p, 1 << width));
    }
    if (!p.equal) cpu_parallel(blocks, 1, n, move_blocks, &p);
    p.end = p.count + ((blocks - 1) << SORT_DIGIT); /* after the last block has moved */
    p.most = parallel && total / 4 > PARALLEL_LINE ? total / 4 : total;
    if (!p.equal && (bits > width || line->cut || workspace->k)) {
        share_spare(&p, false);
        for (int64_t d = 0; p.most < total && d < p.parts; d++)
            if (p.end[d] - (d ? p.end[d - 1] : 0) > p.most) sort_part(&p, d, true);
        share_spare(&p, parallel);
        if (parallel) cpu_parallel(p.parts, 1, 8 * total, sort_parts, &p);
        else sort_parts(&p, 0, p.parts);
    }
    cpu_scratch_free(p.count, bytes);
    return p.equal;
}

void cpu_sort_read(const sorted_line *line, int64_t at, int64_t n, uint64_t *key, int64_t *index)
{
    if (key) keys_of_records(line, line->record + at, n, key);
    if (index) read_index(line, line->record + at, n, index);
}

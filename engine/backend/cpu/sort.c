/* Sorting a line: values become keys, unsigned numbers in the order of the values; a key and the index of its value become one record, and
 * records are sorted as numbers. Equal values then come in the order of their indices: every sort here is stable, as PyTorch's is.
 *
 * A first pass finds the least and the largest key and which bits vary. Subtracting the least and dropping low bits that are all alike leaves
 * as few bits as the values need, so that 64 bits hold key and index of everything but 8-byte values that spread widely. Of those a record
 * keeps the leading bits of the key. Few are then alike; those that are have their records made anew, of the bits that were left out, and are
 * sorted once more (break_ties). Records of 128 bits took twice the room and, moved six times, longer.
 *
 * With buffers the digits of the keys are sorted from the lowest up, 11 bits at a time (three passes for float32, one for small integers): no
 * comparisons and no branches to predict. A line of up to 256 is merged instead. One long line is sorted by all threads, several by one each.
 *
 * Working memory is two buffers of records, 16 bytes per element of a line and thread, up to SORT_MEMORY. The results of a longer line of 8-byte
 * values are such buffers themselves, if they lie one after the other. Otherwise its records go where the
 * indices will be written: the first digit, from the top, is counted and each record put into its part, in order; the parts are sorted where
 * they lie (sort_place.inc.c). Only where indices do not lie one after the other do long lines have buffers too. */
#include "sort.h"
#include "../args.h"
#include "../../tensor/iter.h"
#include <string.h>

/* ---- keys ---- */
extern const lc_sort_kernels lc_cpu_sort_base, lc_cpu_sort_avx2 __attribute__((weak)), lc_cpu_sort_avx512 __attribute__((weak)),
    lc_cpu_sort_neon __attribute__((weak));
const lc_sort_kernels *cpu_sort_kernels(void)
{
    const lc_sort_kernels *const tables[] = { [LC_ISA_base] = &lc_cpu_sort_base,
                                              [LC_ISA_avx2] = &lc_cpu_sort_avx2,
                                              [LC_ISA_avx512] = &lc_cpu_sort_avx512,
                                              [LC_ISA_neon] = &lc_cpu_sort_neon };
    const lc_sort_kernels       *table = tables[lc_cpu_isa()];
    return table ? table : &lc_cpu_sort_base;
}
const lc_sort_key *cpu_sort_key(lc_dtype dtype) { return cpu_sort_kernels()->key[dtype]; }

static void join_summaries(key_summary *all, const key_summary *s)
{
    all->varying |= s->varying | (s->least ^ all->least);
    all->least = s->least < all->least ? s->least : all->least;
    all->most = s->most > all->most ? s->most : all->most;
    all->lossy |= s->lossy;
}

/* ---- records ---- */
enum { PARALLEL_LINE = 1 << 17, MOST_BLOCKS = 64 };

int64_t cpu_sort_room(int64_t n) /* short lines are rounded up (cpu_sort_short) */
{
    int64_t room = 8;
    while (room < n && room < SORT_TILE) room *= 2;
    return room < n ? n : room;
}

static int bits_of(uint64_t x) { return x ? 64 - __builtin_clzll(x) : 0; }
/* What a record keeps of a key; returns how many bits that are. */
static int plan_records(sorted_line *line, const key_summary *all, bool with_index)
{
    int bits = bits_of(all->most - all->least), alike = all->varying ? __builtin_ctzll(all->varying) : 0, room;
    line->lossy = all->lossy, line->least = all->least;
    line->index_bits = with_index ? bits_of((uint64_t)(line->n - 1)) : 0;
    room = 64 - line->index_bits, line->cut = bits - alike > room;
    line->shift = line->cut ? bits - room : alike;
    return bits - line->shift;
}
static inline uint64_t record_of(const sorted_line *line, uint64_t key) /* but for its index */
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
/* Records are in order but for the last `left` bits of their keys. spare: NULL, or as much room again. */
static void break_ties(const sorted_line *line, uint64_t *a, uint64_t *spare, int64_t n, int left, bool parallel)
{
    int      low = line->index_bits, width = left < 64 - low ? left : 64 - low;
    uint64_t key[SORT_TILE], mask = index_mask(line), bits = ~0ull >> (64 - width);
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
        if (left > width) break_ties(line, run, spare ? spare + first : NULL, count, left - width, parallel);
    }
}

/* ---- with buffers ---- */
typedef struct { /* loading a long line, block by block */
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
static int64_t blocks_of(int64_t n) /* for the threads there are: the result does not depend on it */
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
    int64_t            blocks = split || n > INT32_MAX ? blocks_of(n) : 0, *count = NULL; /* counts of one block are 32 bits */
    key_summary        all, each[MOST_BLOCKS];
    if (blocks && !(count = cpu_scratch((size_t)blocks * sizeof *count << SORT_DIGIT))) return -1;
    *line = (sorted_line){ .key = key, .flip = descending ? key->all : 0, .n = n, .from = from, .step = step };
    if (blocks) {
        key_load load = { line, (n + blocks - 1) / blocks, record, each };
        cpu_parallel(blocks, 1, n, load_blocks, &load);
        all = each[0];
        for (int64_t b = 1; b < blocks && b * load.block < n; b++) join_summaries(&all, &each[b]);
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

/* ---- in the room of the indices ---- */
typedef struct {
    const sorted_line *line;
    int64_t            block, *count; /* elements of a block; 1 << SORT_DIGIT of each, then where the next of a part goes */
    key_summary       *summary;
    int                below; /* bits of records below the first digit */
    const int64_t     *end;   /* of each part */
    int64_t            size;  /* of a record in bytes: 8, or as the values that are sorted without their indices */
    int64_t            most;  /* larger parts are not one thread's */
} placing;
typedef enum { SUMMARISE, COUNT, MOVE } place_pass;
static inline __attribute__((always_inline)) void pass_block(const placing *p, int64_t b, place_pass pass)
{
    const sorted_line *line = p->line;
    int64_t            at = b * p->block, end = line->n - at < p->block ? line->n : at + p->block, *count = NULL;
    uint64_t           key[SORT_TILE];
    key_summary        s;
    if (pass != SUMMARISE) count = p->count + (b << SORT_DIGIT);
    for (int64_t n; at < end; at += n) {
        n = end - at < SORT_TILE ? end - at : SORT_TILE;
        line->key->load(line->from + at * line->step, line->step, n, line->flip, key, &s);
        if (pass == SUMMARISE && at == b * p->block) p->summary[b] = s;
        else if (pass == SUMMARISE) join_summaries(&p->summary[b], &s);
        else if (pass == COUNT)
            for (int64_t i = 0; i < n; i++) count[record_of(line, key[i]) >> p->below]++;
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
static void summarise_blocks(void *ctx, int64_t begin, int64_t end)
{
    for (int64_t b = begin; b < end; b++) pass_block(ctx, b, SUMMARISE);
}
static void count_blocks(void *ctx, int64_t begin, int64_t end)
{
    for (int64_t b = begin; b < end; b++) pass_block(ctx, b, COUNT);
}
static void move_blocks(void *ctx, int64_t begin, int64_t end)
{
    for (int64_t b = begin; b < end; b++) pass_block(ctx, b, MOVE);
}
static void sort_part(const placing *p, int64_t d, bool parallel)
{
    const sorted_line *line = p->line;
    int64_t            at = d ? p->end[d - 1] : 0, n = p->end[d] - at;
    uint64_t          *a = (uint64_t *)((char *)line->record + at * p->size);
    if (p->size < (int64_t)sizeof *a || !in_order(a, n))
        cpu_sort_place(a, p->size, n, line->cut ? line->index_bits : 0, p->below, parallel);
    if (line->cut) break_ties(line, a, NULL, n, line->shift, parallel);
}
static void sort_parts(void *ctx, int64_t begin, int64_t end)
{
    const placing *p = ctx;
    for (int64_t d = begin; d < end; d++)
        if (p->end[d] - (d ? p->end[d - 1] : 0) <= p->most) sort_part(p, d, false);
}
int cpu_sort_in_place(lc_dtype dtype, const char *from, int64_t step, int64_t n, bool descending, bool with_index,
                      bool parallel, void *place, sorted_line *line)
{
    const lc_sort_key *key = cpu_sort_key(dtype);
    int64_t            blocks = parallel ? blocks_of(n) : 1, sum = 0;
    key_summary        each[MOST_BLOCKS];
    placing            p = {
                   .line = line, .size = with_index ? 8 : lc_size_of(dtype), .block = (n + blocks - 1) / blocks, .summary = each
    };
    blocks = (n + p.block - 1) / p.block;
    size_t bytes = (size_t)blocks * sizeof *p.count << SORT_DIGIT;
    *line = (sorted_line){ .key = key, .flip = descending ? key->all : 0, .n = n, .from = from, .step = step, .record = place };
    if (!(p.count = cpu_scratch(bytes))) return -1;
    memset(p.count, 0, bytes);
    cpu_parallel(blocks, 1, n, summarise_blocks, &p);
    for (int64_t b = 1; b < blocks; b++) join_summaries(&each[0], &each[b]);
    int bits = plan_records(line, &each[0], with_index), width = bits < SORT_DIGIT ? bits : SORT_DIGIT;
    p.below = line->index_bits + bits - width;
    cpu_parallel(blocks, 1, n, count_blocks, &p);
    for (int64_t d = 0; d < 1 << width; d++)
        for (int64_t b = 0; b < blocks; b++) {
            int64_t *c = &p.count[(b << SORT_DIGIT) + d], here = *c;
            *c = sum, sum += here;
        }
    cpu_parallel(blocks, 1, n, move_blocks, &p);
    p.end = p.count + ((blocks - 1) << SORT_DIGIT); /* after the last block has moved */
    p.most = parallel && n / 4 > PARALLEL_LINE ? n / 4 : n;
    if (bits > width || line->cut) {
        for (int64_t d = 0; p.most < n && d < 1 << width; d++)
            if (p.end[d] - (d ? p.end[d - 1] : 0) > p.most) sort_part(&p, d, true);
        if (parallel) cpu_parallel(1 << width, 1, 8 * n, sort_parts, &p);
        else sort_parts(&p, 0, 1 << width);
    }
    cpu_scratch_free(p.count, bytes);
    return 0;
}

void cpu_sort_read(const sorted_line *line, int64_t at, int64_t n, uint64_t *key, int64_t *index)
{
    if (key) keys_of_records(line, line->record + at, n, key);
    if (index) read_index(line, line->record + at, n, index);
}

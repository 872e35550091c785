/* Sorting a line: values become keys, unsigned numbers in the order of the values; a key and the index of its value become one record, and
 * records are sorted as numbers. Equal values then come in the order of their indices: every sort here is stable, as PyTorch's is.
 *
 * A first pass finds the least and the largest key and which bits vary. Subtracting the least and dropping low bits that are all alike leaves
 * as few bits as the values need, so 64 bits hold key and index of everything but long lines of doubles; those take 128 bits. Then the digits
 * of the keys are sorted from the lowest up, 11 bits at a time (three passes for float32, one for small integers): no comparisons and no
 * branches to predict. A line of up to 256 is merged instead. One long line is sorted by all threads, several by one each.
 *
 * Working memory is two buffers of records: 16 bytes per element of a line (32 for 8-byte values), per thread, up to SORT_MEMORY. Records of
 * longer lines lie where the indices will be written, and are sorted there (sort_place.inc.c): half as fast, and no memory at all. Only where key
 * and index take more than 64 bits, or indices do not lie one after the other, do long lines have buffers too. */
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

/* ---- records ---- */
enum { DIGIT_BITS = 11, MOST_DIGITS = 8, PARALLEL_LINE = 1 << 17, MOST_BLOCKS = 64 };
typedef struct {
    const void *from;
    void       *to;
    int64_t     n, block, *count; /* elements per block; count: 1 << DIGIT_BITS of each block */
    int         shift;
    uint32_t    mask;
} digit_pass;

#define RUNS    (cpu_sort_kernels()->runs)
#define R       uint64_t
#define NAME(f) f##_64
#include "sort_records.inc.c"
#undef RUNS
#define R       unsigned __int128
#define NAME(f) f##_128
#include "sort_records.inc.c"

enum { PLACE_BITS = 8 };
static int place_width(int64_t n, int bits) /* parts of a few dozen: more, where values are uneven */
{
    int width = 0;
    while (width < PLACE_BITS && n >> width > 32) width++;
    return width < bits ? width : bits;
}
#define R       uint16_t
#define NAME(f) f##_16
#include "sort_place.inc.c"
#define R       uint32_t
#define NAME(f) f##_32
#include "sort_place.inc.c"
#define R       uint64_t
#define NAME(f) f##_64
#include "sort_place.inc.c"
void cpu_sort_place(void *a, int64_t size, int64_t n, int low, int bits)
{
    if (size == 2) place_long_16(a, n, low, bits);
    else if (size == 4) place_long_32(a, n, low, bits);
    else place_long_64(a, n, low, bits);
}

static int64_t record_room(int64_t n) /* short lines are rounded up (sort_short) */
{
    int64_t room = 8;
    while (room < n && room < SORT_TILE) room *= 2;
    return room < n ? n : room;
}
size_t cpu_sort_bytes(lc_dtype dtype, int64_t n) { return (size_t)(record_room(n) * (lc_size_of(dtype) == 8 ? 32 : 16)); }

static int bits_of(uint64_t x) { return x ? 64 - __builtin_clzll(x) : 0; }

typedef struct { /* loading a long line, block by block */
    const lc_sort_key *key;
    const char        *from;
    int64_t            step, n, block;
    uint64_t           flip, *to;
    key_summary       *summary;
} key_load;
static void load_blocks(void *ctx, int64_t begin, int64_t end)
{
    const key_load *l = ctx;
    for (int64_t b = begin; b < end; b++) {
        int64_t at = b * l->block, n = l->n - at < l->block ? l->n - at : l->block;
        l->key->load(l->from + at * l->step, l->step, n, l->flip, l->to + at, &l->summary[b]);
    }
}

/* Keys become records in place, or in a second buffer if they are wide. */
static void pack_narrow(uint64_t *record, int64_t n, const sorted_line *line, bool with_index)
{
    if (with_index)
        for (int64_t i = 0; i < n; i++) record[i] = (record[i] - line->least) >> line->shift << line->index_bits | (uint64_t)i;
    else
        for (int64_t i = 0; i < n; i++) record[i] = (record[i] - line->least) >> line->shift;
}
static void pack_wide(unsigned __int128 *record, const uint64_t *key, int64_t n, const sorted_line *line)
{
    for (int64_t i = 0; i < n; i++) record[i] = (unsigned __int128)((key[i] - line->least) >> line->shift) << 64 | (uint64_t)i;
}

int cpu_sort_line(lc_dtype dtype, const char *from, int64_t step, int64_t n, bool descending, bool with_index, bool parallel,
                  void *memory, sorted_line *line)
{
    const lc_sort_key *key = cpu_sort_key(dtype);
    bool               split = (parallel && n >= PARALLEL_LINE) || n > INT32_MAX; /* counts of one block are 32 bits */
    int64_t            blocks = split ? n / (PARALLEL_LINE / 2) : 0, *count = NULL;
    key_summary        all, each[MOST_BLOCKS];
    bool               may_be_wide = lc_size_of(dtype) == 8;
    uint64_t          *narrow = memory;
    int64_t            room = record_room(n);
    unsigned __int128 *wide = memory;
    if (blocks > MOST_BLOCKS) blocks = MOST_BLOCKS;
    if (blocks && !(count = cpu_scratch((size_t)blocks * sizeof *count << DIGIT_BITS))) return -1;
    line->key = key, line->flip = descending ? key->all : 0, line->n = n, line->lossy = false;
    if (may_be_wide) narrow += 2 * room; /* keys lie where the second wide buffer will be */
    if (blocks) {
        key_load load = { key, from, step, n, (n + blocks - 1) / blocks, line->flip, narrow, each };
        cpu_parallel(blocks, 1, n, load_blocks, &load);
        all = each[0];
        for (int64_t b = 1; b < blocks; b++) {
            if ((n + blocks - 1) / blocks * b >= n) break;
            all.varying |= each[b].varying | (each[b].least ^ all.least);
            all.least = each[b].least < all.least ? each[b].least : all.least;
            all.most = each[b].most > all.most ? each[b].most : all.most;
            all.lossy |= each[b].lossy;
        }
    } else key->load(from, step, n, line->flip, narrow, &all);
    line->lossy = all.lossy, line->least = all.least;
    line->shift = all.varying ? __builtin_ctzll(all.varying) : 0;
    line->index_bits = with_index ? bits_of((uint64_t)(n - 1)) : 0;
    int bits = bits_of((all.most - all.least) >> line->shift);
    line->wide = bits + line->index_bits > 64;
    if (line->wide) {
        pack_wide(wide, narrow, n, line);
        line->index_bits = 64;
        line->record = sort_128(wide, wide + room, n, 64, bits, blocks, count);
    } else {
        pack_narrow(narrow, n, line, with_index);
        line->record = sort_64(narrow, narrow + room, n, line->index_bits, bits, blocks, count);
    }
    if (count) cpu_scratch_free(count, (size_t)blocks * sizeof *count << DIGIT_BITS);
    return 0;
}

int cpu_sort_in_place(lc_dtype dtype, const char *from, int64_t step, int64_t n, bool descending, bool parallel,
                      uint64_t *place, sorted_line *line)
{
    const lc_sort_key *key = cpu_sort_key(dtype);
    key_summary        all;
    line->key = key, line->flip = descending ? key->all : 0, line->n = n;
    key->load(from, step, n, line->flip, place, &all);
    line->lossy = all.lossy, line->least = all.least;
    line->shift = all.varying ? __builtin_ctzll(all.varying) : 0;
    line->index_bits = bits_of((uint64_t)(n - 1)), line->wide = false, line->record = place;
    int bits = bits_of((all.most - all.least) >> line->shift) + line->index_bits;
    if (bits > 64) return 1;
    pack_narrow(place, n, line, true);
    if (parallel) place_long_64(place, n, 0, bits);
    else place_64(place, n, 0, bits);
    return 0;
}

void cpu_sort_read(const sorted_line *line, int64_t at, int64_t n, uint64_t *key, int64_t *index)
{
    int      low = line->index_bits, shift = line->shift;
    uint64_t mask = low ? ~0ull >> (64 - low) : 0, least = line->least;
    if (line->wide) {
        const unsigned __int128 *r = (const unsigned __int128 *)line->record + at;
        for (int64_t i = 0; i < n; i++) key[i] = ((uint64_t)(r[i] >> 64) << shift) + least;
        for (int64_t i = 0; index && i < n; i++) index[i] = (int64_t)r[i];
    } else {
        const uint64_t *r = (const uint64_t *)line->record + at;
        for (int64_t i = 0; i < n; i++) key[i] = (r[i] >> low << shift) + least;
        for (int64_t i = 0; index && i < n; i++) index[i] = (int64_t)(r[i] & mask);
    }
}

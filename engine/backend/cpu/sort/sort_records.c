/* Sorting records with a second buffer. Records are unsigned integers with their index in the low bits, so no two are equal
 * and any sort is stable. */
#include "sort_records.h"
#include "keys.h"
#include <string.h>

enum { DIGIT_BITS = SORT_DIGIT, MOST_DIGITS = 8 };
typedef struct {
    const uint64_t *from;
    uint64_t       *to;
    int64_t         n, block, *count; /* elements per block; count: 1 << DIGIT_BITS per block */
    int             shift;
    uint32_t        mask;
} digit_pass;

/* ---- short lines: sorting networks of eight, then branchless merges from both ends at once ---- */
static inline void order(uint64_t *a, int i, int j)
{
    uint64_t x = a[i], y = a[j];
    a[i] = x < y ? x : y, a[j] = x < y ? y : x;
}
static void eight(uint64_t *a)
{
    static const uint8_t pair[19][2] = { { 0, 2 }, { 1, 3 }, { 4, 6 }, { 5, 7 }, { 0, 4 }, { 1, 5 }, { 2, 6 },
                                         { 3, 7 }, { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6, 7 }, { 2, 4 }, { 3, 5 },
                                         { 1, 4 }, { 3, 6 }, { 1, 2 }, { 3, 4 }, { 5, 6 } };
#pragma GCC unroll 19
    for (int i = 0; i < 19; i++) order(a, pair[i][0], pair[i][1]);
}
static inline void merge(const uint64_t *a, uint64_t *to, int64_t half) /* a: two sorted halves */
{
    int64_t low = 0, high = 0; /* elements taken from the front and from the back of the first half */
    for (int64_t i = 0; i < half; i++) {
        uint64_t x = a[low], y = a[half + i - low], u = a[half - 1 - high], v = a[2 * half - 1 - i + high];
        to[i] = x < y ? x : y, low += x < y;
        to[2 * half - 1 - i] = u > v ? u : v, high += u > v;
    }
}
uint64_t *cpu_sort_short(uint64_t *a, uint64_t *b, int64_t n) /* both hold n rounded up to a power of two, at least 8 */
{
    lc_sort_runs runs = cpu_sort_kernels()->runs;
    int64_t      whole = 8;
    while (whole < n) whole *= 2;
    for (int64_t i = n; i < whole; i++) a[i] = ~(uint64_t)0;
    if (whole >= 64)
        for (int64_t i = 0; i < whole; i += 64) runs(a + i);
    else
        for (int64_t i = 0; i < whole; i += 8) eight(a + i);
    for (int64_t half = 8; half < whole; half *= 2) {
        for (int64_t i = 0; i < whole; i += 2 * half) merge(a + i, b + i, half);
        uint64_t *swap = a;
        a = b, b = swap;
    }
    return a;
}

/* ---- long lines: LSD radix sort. One pass in advance builds the histograms of all digits. ---- */
static inline __attribute__((always_inline)) void count_digits(const uint64_t *a, int64_t n, int low, int width, int digits,
                                                               uint32_t (*count)[1 << DIGIT_BITS])
{
    uint32_t mask = (1u << width) - 1;
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = a[i] >> low;
        for (int d = 0; d < digits; d++) count[d][(uint32_t)(r >> d * width) & mask]++;
    }
}
static uint64_t *sort_digits(uint64_t *a, uint64_t *b, int64_t n, int low, int bits)
{
    uint32_t count[MOST_DIGITS][1 << DIGIT_BITS];
    int      widest = n < 4096 ? 8 : DIGIT_BITS, digits = (bits + widest - 1) / widest, width = (bits + digits - 1) / digits;
    uint32_t size = 1u << width, mask = size - 1;
    for (int d = 0; d < digits; d++) memset(count[d], 0, size * sizeof **count);
    switch (digits) { /* separate loops, with nothing left to decide inside them */
    case 1:
        count_digits(a, n, low, width, 1, count);
        break;
    case 2:
        count_digits(a, n, low, width, 2, count);
        break;
    case 3:
        count_digits(a, n, low, width, 3, count);
        break;
    default:
        count_digits(a, n, low, width, digits, count);
    }
    for (int d = 0; d < digits; d++) {
        uint32_t *to = count[d], sum = 0;
        for (uint32_t k = 0; k < size; k++) {
            uint32_t c = to[k];
            to[k] = sum, sum += c;
        }
        int shift = low + d * width;
        for (int64_t i = 0; i < n; i++) {
            uint64_t r = a[i];
            b[to[(uint32_t)(r >> shift) & mask]++] = r;
        }
        uint64_t *swap = a;
        a = b, b = swap;
    }
    return a;
}

/* One line by all threads: for each digit, blocks build histograms, then move their records behind those of the blocks
 * before them. */
static void count_blocks(void *ctx, int64_t begin, int64_t end)
{
    const digit_pass *p = ctx;
    for (int64_t block = begin; block < end; block++) {
        const uint64_t *a = p->from;
        int64_t *count = p->count + (block << DIGIT_BITS), stop = (block + 1) * p->block < p->n ? (block + 1) * p->block : p->n;
        memset(count, 0, sizeof *count << DIGIT_BITS);
        for (int64_t i = block * p->block; i < stop; i++) count[(uint32_t)(a[i] >> p->shift) & p->mask]++;
    }
}
static void move_blocks(void *ctx, int64_t begin, int64_t end)
{
    const digit_pass *p = ctx;
    for (int64_t block = begin; block < end; block++) {
        const uint64_t *a = p->from;
        uint64_t       *b = p->to;
        int64_t *at = p->count + (block << DIGIT_BITS), stop = (block + 1) * p->block < p->n ? (block + 1) * p->block : p->n;
        for (int64_t i = block * p->block; i < stop; i++) {
            uint64_t r = a[i];
            b[at[(uint32_t)(r >> p->shift) & p->mask]++] = r;
        }
    }
}
static uint64_t *sort_blocks(uint64_t *a, uint64_t *b, int64_t n, int low, int bits, int64_t blocks, int64_t *count)
{
    int        digits = (bits + DIGIT_BITS - 1) / DIGIT_BITS, width = (bits + digits - 1) / digits;
    digit_pass p = { .n = n, .block = (n + blocks - 1) / blocks, .count = count, .mask = (1u << width) - 1 };
    for (int d = 0; d < digits; d++) {
        int64_t sum = 0;
        p.from = a, p.to = b, p.shift = low + d * width;
        cpu_parallel(blocks, 1, n, count_blocks, &p);
        for (uint32_t k = 0; k <= p.mask; k++)
            for (int64_t block = 0; block < blocks; block++) {
                int64_t *c = &count[(block << DIGIT_BITS) + k], here = *c;
                *c = sum, sum += here;
            }
        cpu_parallel(blocks, 1, n, move_blocks, &p);
        uint64_t *swap = a;
        a = b, b = swap;
    }
    return a;
}

uint64_t *cpu_sort_records(uint64_t *a, uint64_t *b, int64_t n, int low, int bits, int64_t blocks, int64_t *count)
{
    if (!bits) return a;
    if (n <= SORT_TILE) return cpu_sort_short(a, b, n);
    return blocks ? sort_blocks(a, b, n, low, bits, blocks, count) : sort_digits(a, b, n, low, bits);
}

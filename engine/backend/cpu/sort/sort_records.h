/* Sorts records, which are unsigned integers: with a second buffer, or in place. See sort.c. */
#pragma once
#include "../cpu.h"

enum { SORT_TILE = 256, SORT_DIGIT = 11 };

/* Sorts n records by their bits from low up to low + bits; returns a or b, which both have capacity for n, short ones
 * rounded up (cpu_sort_short). blocks: 0, or the number of blocks for all threads; count then holds 1 << SORT_DIGIT per
 * block. */
uint64_t *cpu_sort_records(uint64_t *a, uint64_t *b, int64_t n, int low, int bits, int64_t blocks, int64_t *count);
/* n <= SORT_TILE whole records; both buffers hold n rounded up to a power of two, at least 8. */
uint64_t *cpu_sort_short(uint64_t *a, uint64_t *b, int64_t n);

/* Sorts integers of size bytes (2, 4, 8) in place by their bits from low up to `bits`; higher bits must be equal. `all`: by
 * all threads. */
void cpu_sort_place(void *a, int64_t size, int64_t n, int low, int bits, bool all);

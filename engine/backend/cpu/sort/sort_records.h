/* Records, which are unsigned numbers, in order: with a second buffer, or where they lie. See sort.c. */
#pragma once
#include "../cpu.h"

enum { SORT_TILE = 256, SORT_DIGIT = 11 };

/* n records by their bits from low up to low + bits; returns a or b, which both have room for n, short ones rounded up (cpu_sort_short).
 * blocks: 0, or by all threads, so many at a time; count then has room for 1 << SORT_DIGIT for each. */
uint64_t *cpu_sort_records(uint64_t *a, uint64_t *b, int64_t n, int low, int bits, int64_t blocks, int64_t *count);
/* n <= SORT_TILE whole records; both have room for n rounded up to a power of two, at least 8. */
uint64_t *cpu_sort_short(uint64_t *a, uint64_t *b, int64_t n);

/* Numbers of size bytes (2, 4, 8), sorted where they lie by their bits from low up to `bits`; higher ones must be alike. `all`: by all threads. */
void cpu_sort_place(void *a, int64_t size, int64_t n, int low, int bits, bool all);

/* Sorted records of a line: what sort, topk, unique and isin read. See sort.c. */
#pragma once
#include "cpu.h"
#include "keys.h"

/* Record: (key - least) >> shift, then index_bits of index; 64 bits, or 128 if wide. */
typedef struct {
    const lc_sort_key *key;
    uint64_t           least, flip;
    int                shift, index_bits;
    bool               wide, lossy;
    int64_t            n;
    const void        *record; /* n, in order: in the memory given */
} sorted_line;

enum { SORT_TILE = 256, SORT_SMALL_BYTES = 2 * SORT_TILE * 16, SORT_MEMORY = 64 << 10 /* bytes of buffers at most */ };
size_t cpu_sort_bytes(lc_dtype dtype, int64_t n); /* of memory for one line */
/* Sort n elements, step bytes apart. parallel: one long line, by all threads (allocates a table of counts; -1 if there is no memory). */
int cpu_sort_line(lc_dtype dtype, const char *from, int64_t step, int64_t n, bool descending, bool with_index, bool parallel,
                  void *memory, sorted_line *line);
/* The same without memory: n records in `place`, which is written. 1 if they do not fit 64 bits: then nothing is sorted. */
int cpu_sort_in_place(lc_dtype dtype, const char *from, int64_t step, int64_t n, bool descending, bool parallel,
                      uint64_t *place, sorted_line *line);
/* Numbers of size bytes (2, 4, 8), sorted where they lie by their bits from low up to `bits`; higher ones must be alike. By all threads. */
void cpu_sort_place(void *a, int64_t size, int64_t n, int low, int bits);
/* Keys (still flipped) and indices of records [at, at + n), n <= SORT_TILE; index may be NULL. */
void cpu_sort_read(const sorted_line *line, int64_t at, int64_t n, uint64_t *key, int64_t *index);

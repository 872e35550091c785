/* Sorted records of a line, which sort, topk, unique and isin read. See sort.c. */
#pragma once
#include "../cpu.h"
#include "keys.h"
#include "sort_records.h"

/* Record: (key - least) >> shift, then index_bits of index. */
typedef struct {
    const lc_sort_key *key;
    uint64_t           least, flip;
    int                shift, index_bits;
    bool               lossy, cut; /* cut: some key bits are not in the records and are read again */
    int64_t            n, step;
    const char        *from;
    uint64_t          *record; /* n sorted records, in the given memory */
} sorted_line;

enum { SORT_SMALL_BYTES = 2 * SORT_TILE * 8, SORT_MEMORY = 64 << 10 /* most bytes of buffers */ };
int64_t cpu_sort_capacity(int64_t n); /* records per buffer for n elements */
/* Sorts n elements, step bytes apart, with two buffers. parallel: one long line, by all threads (allocates a table of
 * counts; -1 if out of memory). */
int cpu_sort_line(lc_dtype dtype, const char *from, int64_t step, int64_t n, bool descending, bool with_index, bool parallel,
                  uint64_t *record, uint64_t *spare, sorted_line *line);
/* The same for a long line, in the memory where its records will stay, with a table of counts. Without indices, records are
 * as large as the elements. */
typedef struct {
    void     *place; /* n records, or k */
    uint64_t *spare; /* NULL, or memory for so many more records: faster */
    int64_t   spares;
    int64_t   k; /* 0: all; else the k smallest, provided that no two of them are equal and none equals the next one */
} sort_workspace;
/* -1: out of memory; 1: not as k requires, and place is unordered. */
int cpu_sort_in_place(lc_dtype dtype, const char *from, int64_t step, int64_t n, bool descending, bool with_index,
                      bool parallel, const sort_workspace *workspace, sorted_line *line);
/* Keys (still flipped) and indices of records [at, at + n), n <= SORT_TILE; either may be NULL. For records of 8 bytes. */
void cpu_sort_read(const sorted_line *line, int64_t at, int64_t n, uint64_t *key, int64_t *index);

/* Keys: unsigned integers in the order of the values, so that all sorting and comparing is done on integers. -0 has the key
 * of 0, every NaN the largest key. One set of functions per instruction set (keys.isa.o3.c is compiled for each). */
#pragma once
#include "../../../core/core.h"

/* Every ordered dtype, with those that are computed in another dtype. */
#define LC_EACH_sortable(R, op)    LC_EACH_ordered(R, op) R(op, u16) R(op, u32) R(op, u64) R(op, f16) R(op, bf16)
#define LC_SORTABLE_BIT(op, dtype) | 1u << LC_##dtype

typedef struct {
    uint64_t least, most, varying; /* varying: bits that differ between keys */
    bool     lossy;                /* a -0 or a NaN was seen: keys do not determine every value */
} key_summary;
/* Sorts 64 records into eight runs of eight. */
typedef void (*lc_sort_runs)(uint64_t *record);

typedef struct {
    /* Strides in bytes; flip: 0, or `all` to reverse the order. */
    void (*load)(const char *from, int64_t step, int64_t n, uint64_t flip, uint64_t *key, key_summary *s);
    void (*store)(char *to, int64_t step, int64_t n, uint64_t flip, const uint64_t *key);
    bool (*any_below)(const char *from, int64_t n, uint64_t flip, uint64_t key); /* contiguous: any key below this? */
    uint64_t all;                                                                /* mask of a key's bits */
    uint64_t nan;                                                                /* the key of NaN, or 0 */
} lc_sort_key;
typedef struct {
    const lc_sort_key *key[LC_DTYPE_COUNT];
    lc_sort_runs       runs;
    /* fresh[i]: key i differs from its predecessor (`last` for the first), or is NaN; n < 65536. Writes their indices to
     * start, which holds up to n + 1, and returns their count. */
    int64_t (*starts)(const uint64_t *key, uint64_t last, uint64_t nan, int64_t n, uint8_t *fresh, uint16_t *start);
    uint64_t (*largest)(const uint64_t *x, int64_t n);
} lc_sort_kernels;
const lc_sort_kernels *cpu_sort_kernels(void);
void                   cpu_join_summaries(key_summary *all, const key_summary *s);
const lc_sort_key     *cpu_sort_key(lc_dtype dtype); /* NULL if the dtype has no order */

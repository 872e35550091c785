/* Keys: unsigned numbers in the order of the values, so that everything that sorts or compares does so with integers. -0 has the key of 0,
 * every NaN the largest. One set of functions per instruction set (keys.isa.o3.c is compiled for each). */
#pragma once
#include "../../../core/core.h"

/* Every dtype that has an order, with those that are computed in another. */
#define LC_EACH_sortable(R, op)    LC_EACH_ordered(R, op) R(op, u16) R(op, u32) R(op, u64) R(op, f16) R(op, bf16)
#define LC_SORTABLE_BIT(op, dtype) | 1u << LC_##dtype

typedef struct {
    uint64_t least, most, varying; /* varying: bits that are not the same in all keys */
    bool     lossy;                /* a -0 or a NaN was seen: keys do not give every value back */
} key_summary;
/* 64 records become eight runs of eight, each sorted. */
typedef void (*lc_sort_runs)(uint64_t *record);

typedef struct {
    /* Steps in bytes; flip: 0, or `all` to turn the order around. */
    void (*load)(const char *from, int64_t step, int64_t n, uint64_t flip, uint64_t *key, key_summary *s);
    void (*store)(char *to, int64_t step, int64_t n, uint64_t flip, const uint64_t *key);
    bool (*any_below)(const char *from, int64_t n, uint64_t flip, uint64_t key); /* contiguous: is one less than this key? */
    uint64_t all;                                                                /* the bits of a key */
    uint64_t nan;                                                                /* the key of NaN; 0: there is none */
} lc_sort_key;
typedef struct {
    const lc_sort_key *key[LC_DTYPE_COUNT];
    lc_sort_runs       runs;
    /* fresh[i]: key i is another than the one before it (`last` before the first), or NaN's; n < 65536. Their indices go to start, which has
     * room for one more than n; returns how many there are. */
    int64_t (*starts)(const uint64_t *key, uint64_t last, uint64_t nan, int64_t n, uint8_t *fresh, uint16_t *start);
    uint64_t (*largest)(const uint64_t *x, int64_t n);
} lc_sort_kernels;
const lc_sort_kernels *cpu_sort_kernels(void);
void                   cpu_join_summaries(key_summary *all, const key_summary *s);
const lc_sort_key     *cpu_sort_key(lc_dtype dtype); /* NULL: values without an order */

/* Radix select: elements of given ranks in a line (median.c, quantile.c). */
#pragma once
#include "../cpu.h"

typedef struct {
    const char *x;
    int64_t     step, n; /* bytes between elements */
    lc_dtype    from, work;
} rank_line;

size_t  cpu_rank_scratch(int64_t n, int64_t size,
                         bool moved); /* bytes; moved: the elements are not contiguous, or have another dtype */
int64_t cpu_rank_one(const rank_line *l, int64_t k, void *scratch); /* index of rank k; ties by index, NaNs last */
int     cpu_rank_fits(int64_t n);                                   /* -1 with an error set: too many */

/* Elements of given ranks in a line (median.c, quantile.c). */
#pragma once
#include "../cpu.h"

typedef struct {
    const char *x;
    int64_t     step, n; /* bytes from one element to the next */
    lc_dtype    from, work;
} rank_line;

size_t  cpu_rank_scratch(int64_t n, int64_t size,
                         bool moved); /* bytes; moved: elements do not lie together, or are of another dtype */
int64_t cpu_rank_one(const rank_line *l, int64_t k, void *scratch); /* the index of rank k; equals rank by index, NaNs last */
int     cpu_rank_fits(int64_t n);                                   /* -1, explained: too many */

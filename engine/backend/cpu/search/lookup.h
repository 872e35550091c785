/* Searching and binning: positions of values in a sorted sequence, or in bins of equal width. One set per instruction set
 * (lookup.isa.o3.c is compiled for each). */
#pragma once
#include "../../../core/core.h"

typedef struct {
    double      low, high;
    int64_t     bins;
    const void *edges;   /* bins + 1; NULL: equal bins */
    bool        ordered; /* edges are searched, and are sorted */
} bin_line;
enum { BIN_TILE = 256 };

typedef struct {
    /* Sorted upwards, and without NaN. */
    bool (*in_order)(const void *sequence, int64_t n);
    /* Positions of `count` values in a sequence of n, read in the order of sorter (NULL: as it is); ordered: in_order. */
    void (*search)(const void *sequence, const int64_t *sorter, bool ordered, int64_t n, const void *values, int64_t count,
                   bool right, int64_t *place);
    /* Floating dtypes only: the minimum and maximum of n > 0 values; NaN if there is one. */
    void (*range)(const void *in, int64_t n, double *low, double *high);
    /* The bin of n <= BIN_TILE values, step elements apart, if edges are equidistant; -1: outside. */
    void (*bins)(const void *in, int64_t step, int64_t n, const bin_line *b, int32_t *bin);
} lc_lookup;
const lc_lookup *cpu_lookup(lc_dtype dtype);

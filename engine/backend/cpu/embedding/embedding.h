/* Rows of embeddings: one set of kernels per instruction set (embedding_rows.isa.o3.c is compiled for each), driven by
 * embedding.c. */
#pragma once
#include "../../args.h"

typedef struct {
    /* out (width) = the sum of factor[i] times row at[i] of table, i < n; factor NULL: 1 each */
    void (*sum)(void *out, const void *table, const int64_t *at, const void *factor, int64_t n, int64_t width);
    /* out[b] = the sum of factor[i] times table[at[i]], bags[b] <= i < bags[b + 1], for begin <= b < end: rows of one element.
     * false: an id is not below rows. */
    bool (*products)(void *out, const void *table, const int64_t *at, const void *factor, const int64_t *bags, int64_t begin,
                     int64_t end, int64_t rows);
    double (*dot)(const void *a, const void *b, int64_t n);
    void (*scale)(void *row, double divisor, int64_t n);
    /* out and index (width): the elementwise maximum of out and a row, whose number is id */
    void (*larger)(void *out, int64_t *index, const void *row, int64_t id, int64_t n);
} lc_embedding_rows;
typedef struct {
    lc_embedding_rows f32, f64;
} lc_embeddings;

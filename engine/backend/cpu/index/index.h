/* Rows of an indexed walk: n positions; ptr[0] is `indexed`, ptr[1] `walked`, ptr[2] the int64 index. A row stops before the
 * first index that is out of range, and returns 1. */
#pragma once
#include "../cpu.h"
#include "../../args.h"
#include "../../../tensor/iter.h"

typedef struct {
    int64_t size, step, wrap; /* of the indexed dimension; step in bytes; wrap: size, or 0 if no index may be negative */
} lc_indexed_row;

lc_row_fn cpu_index_row(lc_index_mode mode, lc_dtype dtype); /* takes an lc_indexed_row; NULL: unsupported arithmetic */

/* Position along the dimension; as an unsigned number it is below size if the index is good. */
static inline uint64_t cpu_index_at(const lc_indexed_row *row, const char *at)
{
    int64_t index = *(const int64_t *)at;
    return (uint64_t)(index + ((index >> 63) & row->wrap));
}
/* for (i in 0 .. n) { k: the position; body } */
#define FOR_GOOD_INDICES(body)                                                                                                 \
    for (int64_t i = 0; i < n; i++) {                                                                                          \
        uint64_t k = cpu_index_at(row, index + i * stride[2]);                                                                 \
        if (__builtin_expect(k >= (uint64_t)row->size, 0)) return 1;                                                           \
        body;                                                                                                                  \
    }

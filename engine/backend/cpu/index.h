/* Rows of an indexed walk: n positions, of which ptr[0] is `many`, ptr[1] `each`, ptr[2] the int64 index. Indices are in range. */
#pragma once
#include "cpu.h"
#include "../args.h"
#include "../../tensor/iter.h"

typedef struct {
    int64_t size, step; /* of the dimension that is indexed; step in bytes */
} lc_indexed_row;

lc_row_fn cpu_index_row(lc_index_mode mode, lc_dtype dtype); /* takes an lc_indexed_row; NULL: no such arithmetic */

static inline int64_t cpu_index_offset(const lc_indexed_row *row, const char *at)
{
    int64_t index = *(const int64_t *)at;
    return (index + ((index >> 63) & row->size)) * row->step;
}

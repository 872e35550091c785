/* Lines along a dimension of in, values and indices, shared by sort and topk. */
#pragma once
#include "sort.h"
#include "../../args.h"
#include "../../../tensor/iter.h"

typedef struct {
    lc_iter  it; /* over the other dimensions: in, values, indices */
    lc_dtype dtype;
    int64_t  n, k, step[3]; /* per line: elements, results, strides in bytes */
    bool     descending, ordered, values, indices, parallel;
    size_t   bytes; /* workspace per thread */
} line_walk;
typedef struct { /* what run gets */
    const line_walk *walk;
    char            *memory;
} line_thread;
typedef struct {
    const char *in;
    char       *values, *indices; /* NULL: not wanted */
} line_ends;
static inline line_ends cpu_line_ends(const line_walk *w, char *const *ptr, const int64_t *stride, int64_t l)
{
    return (line_ends){ ptr[0] + l * stride[0], w->values ? ptr[1] + l * stride[1] : NULL,
                        w->indices ? ptr[2] + l * stride[2] : NULL };
}
/* Calls run(line_thread, ...) for every line, several lines per thread; fewer than most_parallel lines run one after the
 * other, with w->parallel set. run returns -1 if out of memory. */
int cpu_each_line(lc_dtype dtype, const lc_sort_args *a, lc_row_fn run, size_t bytes, int64_t most_parallel);
/* Records in the memory of a line's indices, which is contiguous; the values, if contiguous, are spare memory. */
sort_workspace cpu_workspace_in_results(const line_walk *w, line_ends at);
/* The first n records as values and indices. */
void cpu_emit_sorted(const line_walk *w, const sorted_line *line, line_ends at, int64_t n);
/* to[i] = from[index[i]]; element size and strides in bytes. */
void cpu_gather(int64_t size, char *to, int64_t to_step, const char *from, int64_t from_step, const int64_t *index, int64_t n);

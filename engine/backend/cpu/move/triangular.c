/* tril and triu: in each matrix row, one part is copied and the rest cleared. */
#include "../cpu.h"
#include "../../args.h"
#include <string.h>

typedef struct {
    const lc_triangle_args *a;
    int64_t                 rows, columns, size;
} triangle_job;

static void copy_part(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n, int64_t size)
{
    if (to == from || n <= 0) return;
    if (to_step == size && from_step == size) memmove(to, from, (size_t)(n * size));
    else if (size == 4)
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, 4);
    else if (size == 8)
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, 8);
    else
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, (size_t)size);
}
static void clear_part(char *to, int64_t step, int64_t n, int64_t size)
{
    if (n <= 0) return;
    if (step == size) memset(to, 0, (size_t)(n * size));
    else
        for (int64_t i = 0; i < n; i++) memset(to + i * step, 0, (size_t)size);
}

/* Rows [begin, end), counted through all matrices. */
static void triangle_rows(void *ctx, int64_t begin, int64_t end)
{
    const triangle_job     *job = ctx;
    const lc_triangle_args *a = job->a;
    int                     last = a->out->ndim - 1;
    int64_t to_step = a->out->stride[last] * job->size, from_step = a->in->stride[last] * job->size, n = job->columns;
    for (int64_t at = begin; at < end; at++) {
        int64_t to_offset = 0, from_offset = 0, rest = at, r = at % job->rows;
        for (int d = last - 1; d >= 0; d--) {
            int64_t i = rest % a->out->shape[d];
            rest /= a->out->shape[d];
            to_offset += i * a->out->stride[d], from_offset += i * a->in->stride[d];
        }
        __int128    edge = (__int128)r + a->diagonal + !a->upper; /* the lower part is [0, split) */
        int64_t     split = edge < 0 ? 0 : edge > n ? n : (int64_t)edge;
        char       *to = a->out->data + to_offset * job->size;
        const char *from = a->in->data + from_offset * job->size;
        if (a->upper) {
            clear_part(to, to_step, split, job->size);
            copy_part(to + split * to_step, to_step, from + split * from_step, from_step, n - split, job->size);
        } else {
            copy_part(to, to_step, from, from_step, split, job->size);
            clear_part(to + split * to_step, to_step, n - split, job->size);
        }
    }
}

static int cpu_triangle(lc_dtype dtype, const void *args)
{
    const lc_triangle_args *a = args;
    int                     last = a->out->ndim - 1;
    triangle_job            job = { a, a->out->shape[last - 1], a->out->shape[last], lc_size_of(dtype) };
    if (a->out->numel == 0) return 0;
    int64_t rows = a->out->numel / job.columns, grain = CPU_GRAIN / job.columns + 1;
    cpu_parallel(rows, grain, a->out->numel, triangle_rows, &job);
    return 0;
}
LC_CPU_RUN(tril, cpu_triangle, ~0u)

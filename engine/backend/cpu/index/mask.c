/* masked_select and masked_scatter pair the k-th true position of a mask, in row-major order, with the k-th element of a
 * vector. A first walk counts per chunk, so that every chunk of the second walk knows its start in the vector. */
#include "../cpu.h"
#include "../../args.h"
#include "../../../tensor/iter.h"
#include <string.h>

#define TEMPLATE "index/mask_move.inc.c"
#include "../each_width.inc.c"

typedef struct {
    const lc_mask_args *args;
    lc_iter             it;            /* mask, then `masked` */
    int64_t             numel, *found; /* true positions before each chunk, and their total */
} mask_job;
typedef struct {
    const mask_job *m;
    int64_t         at, left, size;
} piece;

static int count_row(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const uint8_t *mask = (const uint8_t *)ptr[0];
    int64_t        found = 0;
    if (stride[0] == 1)
        for (int64_t at = 0; at < n; at += 128) { /* counts in bytes: the most lanes per vector */
            int64_t end = n - at < 128 ? n : at + 128;
            uint8_t some = 0;
            for (int64_t i = at; i < end; i++) some += mask[i] != 0;
            found += some;
        }
    else
        for (int64_t i = 0; i < n; i++) found += mask[i * stride[0]] != 0;
    *(int64_t *)ctx += found;
    return 0;
}
static void count_chunk(void *ctx, int64_t begin, int64_t end)
{
    mask_job *m = ctx;
    for (int64_t c = begin; c < end; c++) {
        int64_t first = c * CPU_GRAIN, last = first + CPU_GRAIN < m->numel ? first + CPU_GRAIN : m->numel, found = 0;
        lc_iter_range(&m->it, first, last, count_row, &found);
        m->found[c + 1] = found;
    }
}

#define BY_SIZE(f, ...)                                                                                                        \
    (p->size == 1   ? f##_1(__VA_ARGS__)                                                                                       \
     : p->size == 2 ? f##_2(__VA_ARGS__)                                                                                       \
     : p->size == 4 ? f##_4(__VA_ARGS__)                                                                                       \
     : p->size == 8 ? f##_8(__VA_ARGS__)                                                                                       \
                    : f##_16(__VA_ARGS__))
static int move_row(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    piece         *p = ctx;
    char          *packed = p->m->args->packed->data + p->at * p->size;
    const uint8_t *mask = (const uint8_t *)ptr[0];
    int64_t        moved = p->m->args->scatter ? BY_SIZE(scatter, ptr[1], stride[1], packed, mask, stride[0], n, p->left)
                                               : BY_SIZE(select, packed, ptr[1], stride[1], mask, stride[0], n, p->left);
    p->at += moved, p->left -= moved;
    return p->left == 0;
}
static void move_chunk(void *ctx, int64_t begin, int64_t end)
{
    mask_job *m = ctx;
    for (int64_t c = begin; c < end; c++) {
        int64_t first = c * CPU_GRAIN, last = first + CPU_GRAIN < m->numel ? first + CPU_GRAIN : m->numel;
        piece   p = { m, m->found[c], m->found[c + 1] - m->found[c], lc_size_of(m->args->masked->dtype) };
        if (p.left) lc_iter_range(&m->it, first, last, move_row, &p);
    }
}

static int cpu_masked(UNUSED lc_dtype compute, const void *args)
{
    mask_job         m = { .args = args };
    const lc_tensor *masked = m.args->masked;
    int64_t          chunks = (masked->numel + CPU_GRAIN - 1) / CPU_GRAIN;
    size_t           bytes = (size_t)(chunks + 1) * sizeof *m.found;
    m.numel = masked->numel;
    if (!(m.found = cpu_scratch(bytes))) return -1;
    m.found[0] = 0;
    lc_iter_start(&m.it, masked->ndim, masked->shape);
    lc_iter_add(&m.it, m.args->mask);
    lc_iter_add(&m.it, masked);
    lc_iter_prepare(&m.it, false);
    cpu_parallel(chunks, 1, m.numel, count_chunk, &m);
    for (int64_t c = 0; c < chunks; c++) m.found[c + 1] += m.found[c];
    int64_t count = m.found[chunks], capacity = m.args->packed ? m.args->packed->numel : count;
    if (m.args->count) *(int64_t *)m.args->count->data = count;
    if (m.args->packed && capacity >= count) cpu_parallel(chunks, 1, m.numel, move_chunk, &m);
    cpu_scratch_free(m.found, bytes);
    if (capacity >= count) return 0;
    return lc_fail_int(LC_LucidError,
                       "masked_scatter: expected number of elements of source < number of ones in mask: %lld and %lld",
                       (long long)capacity, (long long)count);
}
LC_CPU_RUN(masked_select, cpu_masked, ~0u)
LC_CPU_RUN(masked_scatter, cpu_masked, ~0u)

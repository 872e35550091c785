/* Padding by a tensor's own elements: reflect, replicate, circular.
 *
 * Bound by memory, so it is one pass in the order of the result: each output row copies an input row, and the few elements
 * before and after come from that row while it is in L1. Threads share rows. */
#include "../../args.h"
#include "../cpu.h"
#include <string.h>

#define EDGES(T)                                                                                                               \
    for (int64_t i = 0; i < before; i++) ((T *)to)[i] = ((const T *)row)[from[i]];                                             \
    for (int64_t i = before + a->size[2]; i < a->result[2]; i++) ((T *)to)[i] = ((const T *)row)[from[i]];

typedef struct {
    uint64_t half[2];
} sixteen;
static void pad_chunk(void *ctx, int64_t begin, int64_t end)
{
    const lc_pad_args *a = ctx;
    int64_t            size = lc_size_of(a->in->dtype), before = a->before[2];
    const int64_t     *from = a->from[2];
    for (int64_t r = begin; r < end; r++) {
        int64_t     y = r % a->result[1], z = r / a->result[1] % a->result[0], o = r / a->result[1] / a->result[0];
        const char *row = a->in->data + ((o * a->size[0] + a->from[0][z]) * a->size[1] + a->from[1][y]) * a->size[2] * size;
        char       *to = a->out->data + r * a->result[2] * size;
        memcpy(to + before * size, row, (size_t)(a->size[2] * size));
        switch (size) {
        case 1:
            EDGES(uint8_t) break;
        case 2:
            EDGES(uint16_t) break;
        case 4:
            EDGES(uint32_t) break;
        case 8:
            EDGES(uint64_t) break;
        default:
            EDGES(sixteen)
        }
    }
}
static int cpu_pad_edges(UNUSED lc_dtype dtype, const void *args)
{
    const lc_pad_args *a = args;
    int64_t            rows = a->outer * a->result[0] * a->result[1];
    cpu_parallel(rows, CPU_GRAIN / (a->result[2] + 1) + 1, rows * a->result[2], pad_chunk, (void *)a);
    return 0;
}
LC_CPU_RUN(_pad_edges, cpu_pad_edges, ~0u)

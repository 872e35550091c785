/* Decoding on the CPU: a row's span is read here, and its part of the buffers goes to the kernel of attention (attention.c). */
#include "../cpu.h"
#include "attention.h"
#include <string.h>

static int span_of(const lc_cached_args *a, int64_t row, int64_t *begin, int64_t *end)
{
    const int64_t *span = (const int64_t *)a->spans->data + 2 * row;
    *begin = span[0], *end = span[1];
    if (*begin >= 0 && *begin <= *end && *end <= a->keys->shape[2]) return 0;
    return lc_fail_int(LC_IndexError, "the span [%lld, %lld) of row %lld does not fit a capacity of %lld", (long long)*begin,
                       (long long)*end, (long long)row, (long long)a->keys->shape[2]);
}
static void store(lc_tensor *to, const lc_tensor *from, int64_t row, int64_t at)
{
    size_t size = (size_t)lc_size_of(to->dtype);
    for (int64_t head = 0; head < to->shape[1]; head++) {
        char       *out = to->data + (size_t)(row * to->stride[0] + head * to->stride[1] + at * to->stride[2]) * size;
        const char *in = from->data + (size_t)(row * from->stride[0] + head * from->stride[1]) * size;
        for (int64_t i = 0; i < to->shape[3]; i++)
            memcpy(out + (size_t)i * size, in + (size_t)(i * from->stride[3]) * size, size);
    }
}
static int cpu_cache_write(lc_dtype dtype, const void *args)
{
    (void)dtype;
    const lc_cached_args *a = args;
    int64_t               begin, end;
    for (int64_t row = 0; row < a->keys->shape[0]; row++) {
        if (span_of(a, row, &begin, &end) < 0) return -1;
        if (end == a->keys->shape[2])
            return lc_fail_int(LC_IndexError, "row %lld of the cache is full: %lld tokens", (long long)row, (long long)end);
    }
    for (int64_t row = 0; row < a->keys->shape[0]; row++) {
        span_of(a, row, &begin, &end);
        store(a->keys, a->k, row, end), store(a->values, a->v, row, end);
    }
    return 0;
}

/* Row `row` of a tensor and n positions of it from `begin` on, for the length of a call. */
static lc_tensor *part(lc_tensor *to, const lc_tensor *of, int64_t row, int64_t begin, int64_t n)
{
    memset(to, 0, offsetof(lc_tensor, dims));
    to->dtype = of->dtype, to->ndim = 4, to->shape = to->dims, to->stride = to->dims + LC_INLINE_DIMS;
    memcpy(to->shape, of->shape, 4 * sizeof *to->shape), memcpy(to->stride, of->stride, 4 * sizeof *to->stride);
    to->shape[0] = 1, to->shape[2] = n, to->numel = to->shape[1] * n * to->shape[3];
    to->data = of->data + (row * of->stride[0] + begin * of->stride[2]) * lc_size_of(of->dtype);
    return to;
}
static int cpu_cached_attention(lc_dtype dtype, const void *args)
{
    const lc_cached_args *a = args;
    int64_t               rows = a->q->shape[0], heads = a->q->shape[1], begin, end;
    size_t                bytes = (size_t)(heads * lc_size_of(dtype));
    void                 *lse = cpu_scratch(bytes);
    int rc = lse ? 0 : lc_fail_int(LC_OutOfMemory, "_cached_attention: no memory for %lld sums", (long long)heads);
    for (int64_t row = 0; row < rows && !rc; row++) {
        if ((rc = span_of(a, row, &begin, &end)) < 0) break;
        if (a->window && end - begin > a->window) begin = end - a->window;
        lc_tensor         q, k, v, out, sums = { .data = lse, .dtype = (uint8_t)dtype };
        lc_attention_args one = { .q = part(&q, a->q, row, 0, 1),
                                  .k = part(&k, a->keys, row, begin, end - begin),
                                  .v = part(&v, a->values, row, begin, end - begin),
                                  .out = part(&out, a->out, row, 0, 1),
                                  .lse = &sums,
                                  .scale = a->scale };
        rc = lc_backends[LC_CPU]->run(LC_OP__attention, dtype, &one);
    }
    cpu_scratch_free(lse, bytes);
    return rc;
}
#define FLOATS (1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_cache_write, cpu_cache_write, FLOATS)
LC_CPU_RUN(_cached_attention, cpu_cached_attention, FLOATS)

/* Copies of one dtype between layouts. Where inner dimensions lie side by side in both tensors, elements move as pieces of up to 16
 * bytes: a transposed batch of heads then moves as fast as memory allows, because a thread's index arithmetic is paid per piece. */
#include "../driver.h"
#include "../../../tensor/iter.h"
#include <stdlib.h>

enum { DIMS = 8, WIDEST = 16 };
typedef struct {
    uint32_t n, reciprocal, shift;
} length;
typedef struct {
    uint32_t n;
    int      ndim;
    length   shape[DIMS];
    int32_t  to_stride[DIMS], from_stride[DIMS];
    char    *to, *from;
} strided_copy_args; /* as in kernels/strided_copy.cuh */
CUDA_BODY(strided_copy);

/* i / n is (high half of i * reciprocal + i) >> shift, for i below 2^31 (Granlund and Montgomery). */
static length length_of(uint32_t n)
{
    uint32_t shift = 0;
    while (1ull << shift < n) shift++;
    return (length){ n, (uint32_t)((((1ull << shift) - n) << 32) / n + 1), shift };
}

/* The most bytes that move at once: a power of two that divides the run they share, every stride and both addresses. */
static int piece_bytes(const lc_iter *it, int size)
{
    int      last = it->ndim - 1;
    uint64_t all = (uintptr_t)it->ptr[0] | (uintptr_t)it->ptr[1];
    if (it->shape[last] > 1 && (it->stride[0][last] != size || it->stride[1][last] != size)) return size;
    for (int d = 0; d < last; d++) all |= (uint64_t)it->stride[0][d] | (uint64_t)it->stride[1][d];
    all |= (uint64_t)(it->shape[last] * size);
    int bytes = WIDEST;
    while (bytes > size && all % (uint64_t)bytes) bytes /= 2;
    return bytes;
}

int cuda_strided_copy(lc_tensor *to, const lc_tensor *from)
{
    int     size = (int)lc_size_of(to->dtype);
    lc_iter it;
    if (to->numel == 0) return 0;
    lc_iter_start(&it, to->ndim, to->shape);
    lc_iter_add(&it, to), lc_iter_add(&it, from);
    lc_iter_prepare(&it, true);
    int     bytes = piece_bytes(&it, size), last = it.ndim - 1;
    int64_t n = it.numel / (bytes / size), reach[2] = { 0 };
    if (it.ndim > DIMS || n > INT32_MAX) return LC_NO_KERNEL;
    if (it.ndim == 1 && bytes < WIDEST / 2 && it.stride[0][0] == size && it.stride[1][0] == size)
        return LC_NO_KERNEL; /* an odd number of elements in one run: flat_wide is wider */
    if (bytes > size) it.shape[last] /= bytes / size, it.stride[0][last] = it.stride[1][last] = bytes;
    strided_copy_args a = { .n = (uint32_t)n, .ndim = it.ndim, .to = it.ptr[0], .from = it.ptr[1] };
    for (int d = 0; d < it.ndim; d++) {
        for (int k = 0; k < 2; k++) {
            if (it.stride[k][d] % bytes) return LC_NO_KERNEL;
            reach[k] += (it.shape[d] - 1) * llabs(it.stride[k][d] / bytes);
        }
        a.shape[d] = length_of((uint32_t)it.shape[d]);
        a.to_stride[d] = (int32_t)(it.stride[0][d] / bytes), a.from_stride[d] = (int32_t)(it.stride[1][d] / bytes);
    }
    if (reach[0] > INT32_MAX || reach[1] > INT32_MAX) return LC_NO_KERNEL;
    if (cuda_use(to->device.index) < 0) return -1;
    cuda_program p = { &strided_copy_body, "strided_copy", .type = { cuda_width_code(bytes) } };
    return cuda_map(&p, (n + 1) / 2, &a);
}

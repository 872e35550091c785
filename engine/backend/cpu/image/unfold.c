/* unfold and fold: windows of a plane as columns of a matrix (im2col), and the sum of columns back into a plane (col2im).
 *
 * Bound: unfold computes nothing, fold one addition per element. So memory bounds them, and for narrow images the moves of
 * short rows. A plane is read `kernel` times, from the cache; the matrix, `kernel` times as large, is written (or read)
 * once.
 *
 * Tiles: one row of the matrix is one tap of the window over all positions. For each tap, the positions inside the plane are
 * a range of rows and a range of columns, found by two divisions (`inside`): no element is tested. So a tap is a block of
 * short rows, each moved (or added) as a whole, with zeros before and after, and writes go upwards only. Threads share
 * planes; in fold each thread owns the plane it sums into, and taps are added in order, so that the result does not depend
 * on the number of threads.
 *
 * Fraction of a copy of as many bytes (31 GB/s, one thread, float32, 8 x 16 x 56 x 56, best of 120 runs beside other work):
 * unfold 3 x 3 with padding 0.5 (16 GB/s), fold 0.7 (21), unfold 2 x 2 with stride 2 0.4 (13). In the caches (28 x 28) they
 * are no faster, 13 and 21, where a copy does 87: rows of 28 to 56 elements are too short for the overhead of starting one.
 *
 * Rejected: position by position (as many small moves as there are elements); gathering by a table of indices (8 bytes read
 * for 4 moved). Convolutions do not come here: their im2col is implicit (conv.c). */
#include "../cpu.h"
#include "../../args.h"
#include <string.h>

typedef struct {
    const lc_pool_args *args;
    lc_dtype            dtype;
    int64_t             size, area, results, taps;
} unfold_job;

/* Positions first .. past of dimension d whose tap k is in the plane, and its offset for position 0. */
static int64_t inside(const lc_pool_args *a, int d, int64_t k, int64_t *first, int64_t *past)
{
    int64_t at = k * a->dilation[d] - a->padding[d], step = a->stride[d], left = a->size[d] - at;
    *first = at < 0 ? (-at + step - 1) / step : 0, *past = left > 0 ? (left + step - 1) / step : 0;
    if (*past > a->result[d]) *past = a->result[d];
    if (*first > *past) *first = *past;
    return at;
}
static void unfold_planes(void *ctx, int64_t begin, int64_t end)
{
    const unfold_job   *j = ctx;
    const lc_pool_args *a = j->args;
    int64_t             size = j->size, wide = a->result[2], top, bottom, left, right;
    for (int64_t plane = begin; plane < end; plane++)
        for (int64_t tap = 0; tap < j->taps; tap++) {
            const char *from = a->in->data + plane * j->area * size;
            char       *to = a->out->data + (plane * j->taps + tap) * j->results * size;
            int64_t     row = inside(a, 1, tap / a->kernel[2], &top, &bottom),
                    column = inside(a, 2, tap % a->kernel[2], &left, &right);
            memset(to, 0, (size_t)(top * wide * size));
            for (int64_t y = top; y < bottom; y++) {
                char       *line = to + y * wide * size;
                const char *source = from + ((row + y * a->stride[1]) * a->size[2] + column + left * a->stride[2]) * size;
                memset(line, 0, (size_t)(left * size));
                if (right > left)
                    cpu_move(j->dtype, line + left * size, size, j->dtype, source, a->stride[2] * size, right - left);
                memset(line + right * size, 0, (size_t)((wide - right) * size));
            }
            memset(to + bottom * wide * size, 0, (size_t)((a->result[1] - bottom) * wide * size));
        }
}
#define ADD_LINES(T, op)                                                                                                       \
    for (int64_t y = top; y < bottom; y++) {                                                                                   \
        const T *line = (const T *)from + y * wide;                                                                            \
        T       *sums = (T *)to + (row + y * a->stride[1]) * a->size[2] + column;                                              \
        if (step == 1)                                                                                                         \
            for (int64_t x = left; x < right; x++) sums[x] op line[x];                                                         \
        else                                                                                                                   \
            for (int64_t x = left; x < right; x++) sums[x * step] op line[x];                                                  \
    }
static void fold_planes(void *ctx, int64_t begin, int64_t end)
{
    const unfold_job   *j = ctx;
    const lc_pool_args *a = j->args;
    int64_t             size = j->size, wide = a->result[2], step = a->stride[2], top, bottom, left, right;
    for (int64_t plane = begin; plane < end; plane++) {
        char *to = a->out->data + plane * j->area * size;
        memset(to, 0, (size_t)(j->area * size));
        for (int64_t tap = 0; tap < j->taps; tap++) {
            const char *from = a->in->data + (plane * j->taps + tap) * j->results * size;
            int64_t     row = inside(a, 1, tap / a->kernel[2], &top, &bottom),
                    column = inside(a, 2, tap % a->kernel[2], &left, &right);
            switch (j->dtype) {
            case LC_f32:
                ADD_LINES(float, +=)
                break;
            case LC_f64:
                ADD_LINES(double, +=)
                break;
            case LC_c64:
                ADD_LINES(_Complex float, +=)
                break;
            case LC_c128:
                ADD_LINES(_Complex double, +=)
                break;
            default:
                ADD_LINES(uint8_t, |=)
            }
        }
    }
}
static int run_windows(lc_dtype dtype, const lc_pool_args *a, void (*fn)(void *, int64_t, int64_t))
{
    unfold_job j = { .args = a, .dtype = dtype, .size = lc_size_of(dtype) };
    j.area = a->size[1] * a->size[2], j.results = a->result[1] * a->result[2], j.taps = a->kernel[1] * a->kernel[2];
    int64_t each = j.area + j.results * j.taps + 1;
    cpu_parallel(a->planes, CPU_GRAIN / each + 1, a->planes * each, fn, &j);
    return 0;
}
static int cpu_unfold(lc_dtype dtype, const void *args) { return run_windows(dtype, args, unfold_planes); }
static int cpu_fold(lc_dtype dtype, const void *args) { return run_windows(dtype, args, fold_planes); }

#define SUMMED (1u << LC_f32 | 1u << LC_f64 | 1u << LC_c64 | 1u << LC_c128 | 1u << LC_b8)
LC_CPU_RUN(im2col, cpu_unfold, SUMMED | 1u << LC_f16 | 1u << LC_bf16)
LC_CPU_RUN(col2im, cpu_fold, SUMMED)

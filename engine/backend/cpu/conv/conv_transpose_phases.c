/* A transposed convolution with a stride and few channels (such as the gradient of an RGB image) as one grid.
 *
 * Elements first, first + stride, ... of the image form a grid (a phase) with its own taps (conv.c). With few channels, each
 * phase is a tile of few rows, and all phases read the same strip. Here they are the rows of one grid: four phases of three
 * channels are twelve rows. Its taps are the union of the phases' taps, with zero weights where a phase lacks a tap. 7 taps
 * with stride 2 are phases of 3 and 4 taps, with a union of 4: a quarter of the products is wasted, and still it takes a
 * third of the time.
 *
 * Zero times infinity is not zero. Therefore only the Winograd strategy runs this grid, because it detects non-finite
 * results; it leaves such images to the phases one by one. */
#include "conv.h"
#include <string.h>

enum { MOST_PHASES = 16, MOST_ROWS = 28 };

typedef struct {
    int64_t phases, taps, *phase, *tap; /* taps of a dimension; per kernel tap: its phase, and its index in the grid */
} joined_axis;

/* Taps of one dimension: all distinct offsets. */
static void join_axis(const conv_window *w, int64_t kernel, conv_axis *axis, joined_axis *to)
{
    to->phases = w->stride;
    for (int64_t k = 0; k < kernel; k++) {
        int64_t from = k * w->dilation - w->padding, phase = (from % w->stride + w->stride) % w->stride;
        int64_t offset = (phase - from) / w->stride, t = 0;
        while (t < axis->taps && axis->offset[t] != offset) t++;
        if (t == axis->taps) conv_axis_add(axis, offset, t);
        to->phase[k] = phase, to->tap[k] = t;
    }
    to->taps = axis->taps;
}
/* Weights (group, row, phase, channel, tap). */
static void join_weights(const conv_job *j, const joined_axis *axis, const int64_t *kernel, int64_t phases, float *to)
{
    const float *weight = (const float *)j->weight;
    int64_t      taps = axis[0].taps * axis[1].taps * axis[2].taps;
    memset(to, 0, (size_t)(j->groups * j->rows * phases * j->channels * taps) * sizeof *to);
    for (int64_t r = 0; r < j->groups * j->rows; r++)
        for (int64_t c = 0; c < j->channels; c++)
            for (int64_t d = 0; d < kernel[0]; d++)
                for (int64_t h = 0; h < kernel[1]; h++)
                    for (int64_t w = 0; w < kernel[2]; w++) {
                        int64_t phase =
                            (axis[0].phase[d] * axis[1].phases + axis[1].phase[h]) * axis[2].phases + axis[2].phase[w];
                        int64_t tap = (axis[0].tap[d] * axis[1].taps + axis[1].tap[h]) * axis[2].taps + axis[2].tap[w];
                        to[((r * phases + phase) * j->channels + c) * taps + tap] =
                            weight[r / j->rows * j->weight_group + r % j->rows * j->weight_row + c * j->weight_channel +
                                   d * j->weight_tap[0] + h * j->weight_tap[1] + w * j->weight_tap[2]];
                    }
}
static int run_joined(conv_job *j, const conv_job *like, const conv_window *window, const int64_t *kernel,
                      const joined_axis *axis, int64_t phases, bool *again)
{
    int64_t taps = axis[0].taps * axis[1].taps * axis[2].taps, rows = j->groups * j->rows * phases, shift[MOST_PHASES];
    size_t  bytes = (size_t)(rows * (j->channels * taps + 1)) * sizeof(float);
    float  *weight = cpu_scratch(bytes), *bias = weight + rows * j->channels * taps;
    if (!weight) return -1;
    join_weights(like, axis, kernel, phases, weight);
    for (int64_t r = 0; r < rows; r++) bias[r] = ((const float *)like->bias)[r / phases];
    for (int64_t p = 0; p < phases; p++)
        shift[p] = p / axis[2].phases / axis[1].phases * j->to.step[0] + p / axis[2].phases % axis[1].phases * j->to.step[1] +
                   p % axis[2].phases * j->to.step[2];
    j->to.shifts = phases, j->to.shift = shift, j->rows *= phases;
    for (int d = 0; d < 3; d++) j->to.step[d] *= window[d].stride;
    j->weight = (const char *)weight, j->bias = (const char *)bias;
    j->weight_tap[0] = axis[1].taps * axis[2].taps, j->weight_tap[1] = axis[2].taps, j->weight_tap[2] = 1;
    j->weight_channel = taps, j->weight_row = j->channels * taps, j->weight_group = j->rows * j->weight_row;
    conv_prepare(j);
    int rc = conv_winograd(j, again);
    cpu_scratch_free(weight, bytes);
    return rc;
}
int conv_transpose_phases(const conv_job *like, const conv_window *window, const int64_t *kernel, bool *again)
{
    conv_job    j = *like;
    joined_axis axis[3];
    int64_t     phases = window[0].stride * window[1].stride * window[2].stride, capacity = kernel[0] + kernel[1] + kernel[2];
    int64_t     taps = kernel[0] * kernel[1] * kernel[2];
    if (j.dtype != LC_f32 || phases < 2 || phases > MOST_PHASES || 2 * j.rows > j.kernels->rows + 1 ||
        j.rows * phases > MOST_ROWS)
        return LC_DECLINED;
    for (int d = 0; d < 3; d++)
        if (j.to.size[d] % window[d].stride || kernel[d] < window[d].stride)
            return LC_DECLINED; /* all phases have the same size, and none is empty */
    int64_t *tables = cpu_scratch((size_t)(2 * capacity) * sizeof *tables), *next = tables;
    if (!tables) return -1;
    int rc = 0;
    for (int d = 0; d < 3; d++, next += 2 * kernel[d - 1]) {
        axis[d].phase = next, axis[d].tap = next + kernel[d];
        if (conv_axis_init(&j.grid.axis[d], kernel[d], j.to.size[d] / window[d].stride, 1) < 0) rc = -1;
        else join_axis(&window[d], kernel[d], &j.grid.axis[d], &axis[d]);
    }
    if (!rc && 2 * phases * axis[0].taps * axis[1].taps * axis[2].taps > 3 * taps) rc = 1;
    if (!rc) rc = run_joined(&j, like, window, kernel, axis, phases, again);
    for (int d = 0; d < 3; d++) conv_axis_free(&j.grid.axis[d], kernel[d]);
    cpu_scratch_free(tables, (size_t)(2 * capacity) * sizeof *tables);
    return rc;
}

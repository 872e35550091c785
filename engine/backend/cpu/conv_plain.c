/* Convolution of integers, which wrap: plain sums, one result after the other. */
#include "conv.h"

typedef struct {
    const lc_conv_args *args;
    conv_image          from, to;
    int64_t             rows, channels, kernel[3], tap[3], stride[3], padding[3], dilation[3];
    bool                transposed;
} plain_job;

/* Which element of the source meets tap k at t, in dimension d; -1: none. */
static int64_t source_at(const plain_job *j, int d, int64_t t, int64_t k)
{
    int64_t at = j->transposed ? t + j->padding[d] - k * j->dilation[d] : t * j->stride[d] - j->padding[d] + k * j->dilation[d];
    if (j->transposed && (at < 0 || at % j->stride[d])) return -1;
    if (j->transposed) at /= j->stride[d];
    return at < j->from.size[d] ? at : -1;
}
static uint64_t plain_sum(const plain_job *j, int64_t n, int64_t row, const int64_t *t)
{
    const lc_tensor *w = j->args->weight;
    const int64_t   *weight = (const int64_t *)w->data, *from = (const int64_t *)j->from.data;
    int64_t          group = row / j->rows, at[3], k[3];
    uint64_t         sum = j->args->bias ? (uint64_t)((const int64_t *)j->args->bias->data)[row] : 0;
    for (k[0] = 0; k[0] < j->kernel[0]; k[0]++)
        for (k[1] = 0; k[1] < j->kernel[1]; k[1]++)
            for (k[2] = 0; k[2] < j->kernel[2]; k[2]++) {
                int64_t x = n * j->from.n_step, y = 0;
                bool    there = true;
                for (int d = 0; d < 3; d++) {
                    there = there && (at[d] = source_at(j, d, t[d], k[d])) >= 0;
                    x += at[d] * j->from.step[d], y += k[d] * j->tap[d];
                    if (!there) break;
                }
                for (int64_t c = 0; there && c < j->channels; c++) {
                    int64_t outer = j->transposed ? group * j->channels + c : row, inner = j->transposed ? row % j->rows : c;
                    sum += (uint64_t)from[x + (group * j->channels + c) * j->from.channel_step] *
                           (uint64_t)weight[y + outer * w->stride[0] + inner * w->stride[1]];
                }
            }
    return sum;
}
static void plain_planes(void *ctx, int64_t begin, int64_t end) /* of all images, a channel each */
{
    const plain_job *j = ctx;
    int64_t          t[3];
    for (int64_t p = begin; p < end; p++)
        for (t[0] = 0; t[0] < j->to.size[0]; t[0]++)
            for (t[1] = 0; t[1] < j->to.size[1]; t[1]++)
                for (t[2] = 0; t[2] < j->to.size[2]; t[2]++) {
                    int64_t n = p / j->to.channels, row = p % j->to.channels, at = n * j->to.n_step + row * j->to.channel_step;
                    for (int d = 0; d < 3; d++) at += t[d] * j->to.step[d];
                    ((uint64_t *)j->to.data)[at] = plain_sum(j, n, row, t);
                }
}
int conv_plain(const lc_conv_args *a, bool transposed)
{
    plain_job j = { .args = a, .transposed = transposed };
    j.from = conv_image_of(transposed ? a->result : a->image, a->dims);
    j.to = conv_image_of(transposed ? a->image : a->result, a->dims);
    j.rows = j.to.channels / a->groups, j.channels = j.from.channels / a->groups;
    for (int d = 0; d < 3; d++) j.kernel[d] = j.stride[d] = j.dilation[d] = 1;
    for (int d = 3 - a->dims, k = 0; d < 3; d++, k++) {
        j.kernel[d] = a->weight->shape[2 + k], j.tap[d] = a->weight->stride[2 + k], j.stride[d] = a->stride[k];
        j.padding[d] = a->padding[k], j.dilation[d] = a->dilation[k];
    }
    int64_t each = j.to.size[0] * j.to.size[1] * j.to.size[2] * j.kernel[0] * j.kernel[1] * j.kernel[2] * (j.channels + 1);
    cpu_parallel(j.to.n * j.to.channels, CPU_GRAIN / (each + 1) + 1, j.to.n * j.to.channels * each, plain_planes, &j);
    return 0;
}

/* Direct sums, one after the other: for integers, which wrap, and for the few floats that the tiles get wrong.
 *
 * Tiles multiply weights by the zero padding around an image. The product is 0 unless the weight is infinite or NaN. In
 * PyTorch, the gradient of an image and a transposed convolution sum only over elements that exist; of its other
 * convolutions, some kernels multiply the padding and some do not. So results at the border that became NaN are recomputed
 * here. To find out whether there are any, we scan the weights or the result, whichever is smaller. */
#include "conv.h"
#include <string.h>

typedef struct {
    const lc_conv_args *args;
    conv_image          from, to;
    int64_t             rows, channels, taps, kernel[3], tap[3], stride[3], padding[3], dilation[3];
    lc_dtype            dtype;
    bool                transposed;
} plain_job;

/* The source element under tap k at position t in dimension d; -1 if outside. */
static int64_t source_at(const plain_job *j, int d, int64_t t, int64_t k)
{
    int64_t at = j->transposed ? t + j->padding[d] - k * j->dilation[d] : t * j->stride[d] - j->padding[d] + k * j->dilation[d];
    if (j->transposed && (at < 0 || at % j->stride[d])) return -1;
    if (j->transposed) at /= j->stride[d];
    return at < j->from.size[d] ? at : -1;
}
typedef struct { /* the channels of one tap: start and stride */
    int64_t x, weight, weight_step;
} plain_line;
static bool find_line(const plain_job *j, int64_t n, int64_t row, const int64_t *t, int64_t tap, plain_line *line)
{
    const lc_tensor *w = j->args->weight;
    int64_t          group = row / j->rows, first = group * j->channels;
    line->x = n * j->from.n_step + first * j->from.channel_step, line->weight_step = w->stride[!j->transposed];
    line->weight = j->transposed ? first * w->stride[0] + row % j->rows * w->stride[1] : row * w->stride[0];
    for (int d = 2; d >= 0; d--) {
        int64_t k = tap % j->kernel[d], at = source_at(j, d, t[d], k);
        if (at < 0) return false;
        line->x += at * j->from.step[d], line->weight += k * j->tap[d], tap /= j->kernel[d];
    }
    return true;
}
static uint64_t plain_sum(const plain_job *j, int64_t n, int64_t row, const int64_t *t)
{
    const uint64_t *weight = (const uint64_t *)j->args->weight->data, *from = (const uint64_t *)j->from.data;
    uint64_t        sum = j->args->bias ? ((const uint64_t *)j->args->bias->data)[row] : 0;
    plain_line      l;
    for (int64_t tap = 0; tap < j->taps; tap++)
        for (int64_t c = 0, there = find_line(j, n, row, t, tap, &l); there && c < j->channels; c++)
            sum += from[l.x + c * j->from.channel_step] * weight[l.weight + c * l.weight_step];
    return sum;
}
static int64_t place_of(const conv_image *to, int64_t n, int64_t row, const int64_t *t)
{
    return n * to->n_step + row * to->channel_step + t[0] * to->step[0] + t[1] * to->step[1] + t[2] * to->step[2];
}
/* Visits every position of channels begin..end, counted over all images. */
typedef void (*plain_place)(const plain_job *j, int64_t n, int64_t row, const int64_t *t, int64_t at);
static inline __attribute__((always_inline)) void each_place(const plain_job *j, int64_t begin, int64_t end, plain_place place)
{
    int64_t t[3];
    for (int64_t p = begin; p < end; p++)
        for (t[0] = 0; t[0] < j->to.size[0]; t[0]++)
            for (t[1] = 0; t[1] < j->to.size[1]; t[1]++)
                for (t[2] = 0; t[2] < j->to.size[2]; t[2]++) {
                    int64_t n = p / j->to.channels, row = p % j->to.channels;
                    place(j, n, row, t, place_of(&j->to, n, row, t));
                }
}
static void store_sum(const plain_job *j, int64_t n, int64_t row, const int64_t *t, int64_t at)
{
    ((uint64_t *)j->to.data)[at] = plain_sum(j, n, row, t);
}
static void      plain_planes(void *ctx, int64_t begin, int64_t end) { each_place(ctx, begin, end, store_sum); }
static plain_job start(const lc_conv_args *a, lc_dtype dtype, bool transposed)
{
    plain_job j = { .args = a, .dtype = dtype, .transposed = transposed };
    j.from = conv_image_of(transposed ? a->result : a->image, a->dims);
    j.to = conv_image_of(transposed ? a->image : a->result, a->dims);
    j.rows = j.to.channels / a->groups, j.channels = j.from.channels / a->groups;
    for (int d = 0; d < 3; d++) j.kernel[d] = j.stride[d] = j.dilation[d] = 1;
    for (int d = 3 - a->dims, k = 0; d < 3; d++, k++) {
        j.kernel[d] = a->weight->shape[2 + k], j.tap[d] = a->weight->stride[2 + k], j.stride[d] = a->stride[k];
        j.padding[d] = a->padding[k], j.dilation[d] = a->dilation[k];
    }
    j.taps = j.kernel[0] * j.kernel[1] * j.kernel[2];
    return j;
}
static void run_planes(plain_job *j, int64_t each, void (*planes)(void *ctx, int64_t begin, int64_t end))
{
    cpu_parallel(j->to.n * j->to.channels, CPU_GRAIN / (each + 1) + 1, j->to.n * j->to.channels * each, planes, j);
}
int conv_direct(const lc_conv_args *a, bool transposed)
{
    plain_job j = start(a, LC_i64, transposed);
    run_planes(&j, j.to.size[0] * j.to.size[1] * j.to.size[2] * j.taps * (j.channels + 1), plain_planes);
    return 0;
}

/* ---- recomputing the border when weights are not finite ---- */
static double element(lc_dtype dtype, const char *data, int64_t at)
{
    double value;
    cpu_move(LC_f64, (char *)&value, 8, dtype, data + at * lc_size_of(dtype), 0, 1);
    return value;
}
static double float_sum(const plain_job *j, int64_t n, int64_t row, const int64_t *t)
{
    const lc_tensor *weight = j->args->weight, *bias = j->args->bias;
    double           sum = bias ? element((lc_dtype)bias->dtype, bias->data, row) : 0;
    plain_line       l;
    for (int64_t tap = 0; tap < j->taps; tap++)
        for (int64_t c = 0, there = find_line(j, n, row, t, tap, &l); there && c < j->channels && sum == sum; c++)
            sum += element(j->from.dtype, j->from.data, l.x + c * j->from.channel_step) *
                   element(j->dtype, weight->data, l.weight + c * l.weight_step);
    return sum;
}
static bool at_border(const plain_job *j, const int64_t *t) /* some tap lies outside the image */
{
    for (int d = 0; d < 3; d++)
        for (int64_t k = 0; k < j->kernel[d]; k++) {
            int64_t at = t[d] + j->padding[d] - k * j->dilation[d];
            if (at % j->stride[d] == 0 && (at < 0 || at / j->stride[d] >= j->from.size[d])) return true;
        }
    return false;
}
static void recompute(const plain_job *j, int64_t n, int64_t row, const int64_t *t, int64_t at)
{
    double value = element(j->to.dtype, j->to.data, at);
    if (value == value || !at_border(j, t)) return;
    value = float_sum(j, n, row, t);
    cpu_move(j->to.dtype, j->to.data + at * lc_size_of(j->to.dtype), 0, LC_f64, (const char *)&value, 8, 1);
}
static void border_planes(void *ctx, int64_t begin, int64_t end) { each_place(ctx, begin, end, recompute); }
#define COUNT(T, exponent) /* counts infinite and NaN elements */                                                              \
    for (int64_t i = 0; i < t->numel; i++) found += (((const T *)t->data)[i] & (T)(exponent)) == (T)(exponent);
static bool all_finite(const lc_tensor *t)
{
    int64_t found = 0;
    if (t->dtype == LC_f64) COUNT(uint64_t, 0x7ffull << 52)
    else if (t->dtype == LC_f32) COUNT(uint32_t, 0xffu << 23)
    else COUNT(uint16_t, t->dtype == LC_f16 ? 0x1f << 10 : 0xff << 7)
    return !found;
}
bool conv_weights_are_finite(const lc_conv_args *a)
{
    return a->weight->is_contiguous && a->weight->numel < a->image->numel && all_finite(a->weight);
}
void conv_recompute_border(const lc_conv_args *a, lc_dtype dtype)
{
    if (conv_weights_are_finite(a) || (lc_is_dense(a->image) && all_finite(a->image))) return;
    plain_job j = start(a, dtype, true);
    run_planes(&j, j.to.size[0] * j.to.size[1] * j.to.size[2], border_planes);
}

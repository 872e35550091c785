/* The gradient of depthwise weights: one 3 x 3 kernel per channel.
 *
 * It reads hardly more than it computes, so planes are read in place. Per gradient vector, nine image vectors at the offsets
 * of the taps are multiplied into nine vectors of sums (conv_tiles.isa.o3.c); lanes outside the image are masked. Building
 * strips for the dot tiles took four times as long. Threads share the channels; images are summed in order, in double. */
#include "conv.h"
#include <string.h>

enum { CHANNELS = 8, BESIDE = 128 }; /* fewest channels worth a thread; margin in elements around a copy */

typedef struct {
    conv_image          image, grad;
    const conv_axis    *down, *right;
    const conv_kernels *kernels;
    lc_tensor          *weight;
    lc_dtype            dtype;
    int64_t             size, left, past; /* first column read, and one past the last, of each row */
    atomic_int          failed;
} plane_job;

/* The plane of an image, or a copy if reads beside its rows would leave the image's memory. */
static const char *plane_of(const plane_job *j, int64_t n, int64_t channel, char *copy, int64_t *row)
{
    const conv_image *x = &j->image;
    const char       *from = x->data + (n * x->n_step + channel * x->channel_step) * j->size;
    int64_t           line = x->size[2] * j->size;
    *row = x->step[1];
    if (*row >= 0 && from + j->left * j->size >= x->begin && from + ((x->size[1] - 1) * *row + j->past) * j->size <= x->end)
        return from;
    for (int64_t y = 0; y < x->size[1]; y++)
        memcpy(copy + BESIDE * j->size + y * line, from + y * *row * j->size, (size_t)line);
    *row = x->size[2];
    return copy + BESIDE * j->size;
}
static void run_channels(void *ctx, int64_t begin, int64_t end)
{
    plane_job *j = ctx;
    size_t     bytes = (size_t)((j->image.size[1] * j->image.size[2] + 2 * BESIDE) * j->size);
    char      *copy = cpu_scratch(bytes);
    if (!copy) {
        j->failed = 1;
        return;
    }
    _Alignas(64) char made[9 * sizeof(double)];
    conv_plane        p = { .out = made, .height = j->image.size[1], .width = j->image.size[2] };
    p.rows = j->down->count, p.columns = j->right->count, p.out_row = j->grad.step[1];
    p.row_offset = j->down->offset, p.column_offset = j->right->offset;
    p.first = larger(0, -j->left), p.past = smaller(p.columns, p.width - (j->past - p.columns));
    for (int64_t c = begin; c < end; c++) {
        double sum[9] = { 0 };
        for (int64_t n = 0; n < j->image.n; n++) {
            p.x = plane_of(j, n, c, copy, &p.x_row);
            p.a = j->grad.data + (n * j->grad.n_step + c * j->grad.channel_step) * j->size;
            j->kernels->plane_dots(&p);
            for (int i = 0; i < 9; i++)
                sum[i] += j->dtype == LC_f32 ? (double)((const float *)made)[i] : ((const double *)made)[i];
        }
        int64_t size = lc_size_of(j->weight->dtype);
        cpu_move((lc_dtype)j->weight->dtype, j->weight->data + 9 * c * size, size, LC_f64, (const char *)sum, sizeof *sum, 9);
    }
    cpu_scratch_free(copy, bytes);
}
int conv_weight_depthwise(lc_dtype dtype, const lc_conv_args *a, const conv_axis *axis)
{
    plane_job j = {
        .down = &axis[1], .right = &axis[2], .kernels = conv_kernels_of(dtype), .weight = a->weight, .dtype = dtype
    };
    j.image = conv_image_of(a->image, a->dims), j.grad = conv_image_of(a->result, a->dims), j.size = lc_size_of(dtype);
    int64_t        channels = j.image.channels, columns = j.right->count;
    const int64_t *right = j.right->offset;
    if (channels < CHANNELS || a->groups != channels || j.grad.channels != channels || !j.image.n || !j.image.size[1])
        return LC_DECLINED;
    if (axis[0].taps != 1 || axis[0].count != 1 || axis[0].offset[0] || j.down->taps != 3 || j.right->taps != 3)
        return LC_DECLINED;
    if (j.down->step != 1 || j.right->step != 1 || columns < j.kernels->lanes || !j.down->count) return LC_DECLINED;
    if (j.image.dtype != dtype || j.grad.dtype != dtype || j.image.step[2] != 1 || j.grad.step[2] != 1) return LC_DECLINED;
    j.left = smaller(right[0], right[2]), j.past = columns + larger(right[0], right[2]);
    if (j.left < -BESIDE || j.past > j.image.size[2] + BESIDE) return LC_DECLINED;
    int64_t work = channels * j.image.n * 9 * j.down->count * columns / 16;
    cpu_parallel(channels, CPU_GRAIN * channels / (work + 1) + 1, work, run_channels, &j);
    return j.failed ? conv_no_memory() : 0;
}

/* Winograd's method for the gradient of weights over many small images: float32, kernels of 3 to 5 taps in a row.
 *
 * conv_winograd.c computes results = R ((W w) * (V x)), with a product per evaluation point. So the gradient of w is W'
 * times the sum over tiles of (R' g) * (V x): for 5 taps, 8 multiplications per tile of 4 elements instead of 20. Lanes are
 * images, as many as a vector has. A set of images is transposed and transformed (conv_winograd_transform.isa.o3.c). Then
 * all rows of a plane are contiguous, and the sum per point, pair of channels and vertical tap is one product of contiguous
 * vectors, computed by the dot tiles of conv_tiles.isa.o3.c. Threads share the sets in at most MOST_SHARES shares, whose
 * sums are added in order.
 *
 * The workspace per thread is the transformed set, which stays in L2; the sums take points / taps times the size of the
 * weights per share. If a sum is not finite, it declines and the caller uses the next strategy: an infinite element would
 * contaminate its whole tile. */
#include "conv.h"
#include <string.h>

enum {
    MOST_SHARES = 16,
    MOST_VALUES = 208 << 10,
    MOST_SUMS = 64 << 10,
    MAX_ACROSS = 8,
    MAX_COLUMNS = 16,
    MAX_TILE = 64,
    INPUT_TRANSFORM = 35,
    GRAD_TRANSFORM = 20,
    TRANSPOSE = 8
};

typedef struct {
    const conv_axis   *down, *right;
    conv_image         image, grad;
    const conv_dot_fn *dot;
    const conv_points *points;
    int64_t    rows, channels, lanes, across, height, pitch; /* rows, channels: of the weights. pitch: of a transformed row */
    int64_t    image_plane, grad_plane, image_point, grad_point, transposed, sums_step, sets, share; /* share: sets */
    float     *sums; /* (shares, points, rows, channels, vertical taps) */
    atomic_int failed;
} winograd_job;

/* One plane of a set of images, transposed: (element, image). */
static void transpose(const winograd_job *j, const conv_image *x, int64_t n, int64_t images, int64_t channel, float *to)
{
    int64_t size = x->size[1] * x->size[2], step = j->lanes * (int64_t)sizeof *to;
    if (images < j->lanes) memset(to, 0, (size_t)(size * step));
    lc_cpu_moves.transpose[0]((char *)to, step, x->data + (n * x->n_step + channel * x->channel_step) * (int64_t)sizeof *to,
                              x->n_step * (int64_t)sizeof *to, size, images, false);
}
static void transform_image(const winograd_job *j, int64_t n, int64_t images, const float *zeros, float *plane, float *to)
{
    const conv_image *x = &j->image;
    const float      *column[4 * MAX_ACROSS + CONV_POINTS];
    for (int64_t c = 0; c < j->channels; c++, to += j->image_plane) {
        transpose(j, x, n, images, c, plane);
        for (int64_t i = 0; i < j->height; i++) {
            int64_t y = i + j->down->shift_min;
            for (int64_t k = 0; k < 4 * j->across + j->right->taps - 1; k++) {
                int64_t at = k + j->right->shift_min;
                bool    there = y >= 0 && y < x->size[1] && at >= 0 && at < x->size[2];
                column[k] = there ? plane + (y * x->size[2] + at) * j->lanes : zeros;
            }
            j->points->transform_input_batch(column, j->across, j->lanes, to + i * j->pitch, j->image_point);
        }
    }
}
static void transform_output_grad(const winograd_job *j, int64_t n, int64_t images, const float *zeros, float *plane, float *to)
{
    const conv_image *g = &j->grad;
    const float      *column[4 * MAX_ACROSS];
    for (int64_t r = 0; r < j->rows; r++, to += j->grad_plane) {
        transpose(j, g, n, images, r, plane);
        for (int64_t y = 0; y < g->size[1]; y++) {
            for (int64_t k = 0; k < 4 * j->across; k++)
                column[k] = k < g->size[2] ? plane + (y * g->size[2] + k) * j->lanes : zeros;
            j->points->transform_grad(column, j->across, j->lanes, to + y * j->pitch, j->grad_point);
        }
    }
}
/* All sums of one point: (rows, channels, vertical taps); add: accumulate. */
static void run_point(const winograd_job *j, const float *image, const float *grad, float *sums, bool add)
{
    int64_t taps = j->down->taps, all = j->channels * taps, width = j->dot->columns, tall = j->dot->rows, offset[MAX_COLUMNS];
    float   tile[MAX_TILE];
    for (int64_t c = 0; c < all; c += width) {
        int64_t columns = smaller(width, all - c);
        for (int64_t k = 0; k < width; k++) {
            int64_t at = c + smaller(k, columns - 1);
            offset[k] = at / taps * j->image_plane + (j->down->shift[at % taps] - j->down->shift_min) * j->pitch;
        }
        for (int64_t r = 0; r < j->rows; r += tall) { /* the last tile overlaps; suits() checked that it can */
            int64_t at = smaller(r, j->rows - tall);
            j->dot->run(j->grad_plane, grad + at * j->grad_plane, j->grad_plane, image, offset, tile);
            for (int64_t i = r - at; i < tall; i++) {
                float *to = sums + (at + i) * all + c, *from = tile + i * width;
                for (int64_t k = 0; k < columns; k++) to[k] = add ? to[k] + from[k] : from[k];
            }
        }
    }
}
static void run_shares(void *ctx, int64_t begin, int64_t end)
{
    winograd_job *j = ctx;
    int64_t       n = j->points->points, image = n * j->image_point, grad = n * j->grad_point;
    size_t        bytes = (size_t)(image + grad + (j->transposed + 1) * j->lanes) * sizeof(float);
    float        *block = cpu_scratch(bytes), *zeros = block + image + grad;
    if (!block) {
        j->failed = 1;
        return;
    }
    memset(zeros, 0, (size_t)j->lanes * sizeof *zeros);
    for (int64_t s = begin * j->share; s < smaller(end * j->share, j->sets); s++) {
        int64_t first = s * j->lanes, images = smaller(j->lanes, j->image.n - first);
        transform_image(j, first, images, zeros, zeros + j->lanes, block);
        transform_output_grad(j, first, images, zeros, zeros + j->lanes, block + image);
        for (int64_t p = 0; p < n; p++)
            run_point(j, block + p * j->image_point, block + image + p * j->grad_point,
                      j->sums + (s / j->share * n + p) * j->sums_step, s % j->share);
    }
    cpu_scratch_free(block, bytes);
}

static bool is_plane(const conv_image *x)
{
    return x->dtype == LC_f32 && x->size[0] == 1 && x->step[2] == 1 && x->step[1] == x->size[2];
}
static bool suits(winograd_job *j, const conv_kernels *kernels)
{
    int64_t n = j->points->points, columns = j->right->count, taps = j->down->taps * j->right->taps, lanes = kernels->lanes;
    if (!is_plane(&j->image) || !is_plane(&j->grad) || j->down->step != 1 || j->right->step != 1) return false;
    for (int64_t k = 1; k < j->right->taps; k++)
        if (j->right->offset[k] != j->right->offset[0] + k) return false;
    j->lanes = lanes, j->sets = pieces(j->image.n, lanes), j->across = pieces(columns, 4);
    if (j->sets < 2 || 8 * j->sets * lanes > 9 * j->image.n || j->across > MAX_ACROSS) return false;
    j->height = j->down->count + tap_range(j->down), j->pitch = j->across * lanes;
    j->image_plane = j->height * j->pitch, j->grad_plane = j->down->count * j->pitch;
    j->image_point = j->channels * j->image_plane, j->grad_point = j->rows * j->grad_plane;
    j->transposed = larger(j->image.size[1] * j->image.size[2], j->down->count * columns);
    j->sums_step = j->rows * j->channels * j->down->taps;
    if (n * (j->image_point + j->grad_point) > MOST_VALUES || n * j->sums_step > MOST_SUMS) return false;
    int64_t plain = j->rows * j->channels * taps * j->down->count * columns, best = INT64_MAX; /* cycles per set */
    for (int k = 0; k < CONV_DOTS; k++) {
        const conv_dot_fn *dot = &kernels->dot[k];
        int64_t            tile = larger(dot->rows * dot->columns, 5 * (dot->rows + dot->columns) / 4);
        int64_t            cost = pieces(j->rows, dot->rows) * pieces(j->channels * j->down->taps, dot->columns) * tile;
        if (cost < best && dot->rows <= j->rows) best = cost, j->dot = dot;
    }
    if (best == INT64_MAX) return false;
    int64_t less =
        n * best * j->down->count * j->across + (INPUT_TRANSFORM * j->image_point + GRAD_TRANSFORM * j->grad_point) / lanes;
    less += TRANSPOSE * (j->channels * j->image.size[1] * j->image.size[2] + j->rows * j->down->count * columns);
    return 2 * less < 3 * plain; /* which gathers, too */
}
int conv_weight_winograd(lc_dtype dtype, const lc_conv_args *a, const conv_axis *axis)
{
    winograd_job j = { .down = &axis[1], .right = &axis[2], .points = conv_points_of(axis[2].taps) };
    j.image = conv_image_of(a->image, a->dims), j.grad = conv_image_of(a->result, a->dims);
    j.rows = a->result->shape[1], j.channels = a->image->shape[1];
    if (dtype != LC_f32 || (lc_dtype)a->weight->dtype != LC_f32 || a->groups != 1 || axis[0].taps != 1 || axis[0].count != 1 ||
        axis[0].offset[0] || !j.points || !suits(&j, conv_kernels_of(dtype)))
        return LC_DECLINED;
    j.share = pieces(j.sets, MOST_SHARES);
    int64_t all = j.points->points * j.sums_step, each = all * j.down->count * j.across, shares = pieces(j.sets, j.share);
    size_t  bytes = (size_t)(shares * all) * sizeof(float);
    if (!(j.sums = cpu_scratch(bytes))) return conv_no_memory();
    cpu_parallel(shares, 1, j.sets * each, run_shares, &j);
    for (int64_t s = 1; s < shares && !j.failed; s++)
        for (int64_t i = 0; i < all; i++) j.sums[i] += j.sums[s * all + i];
    bool finite = !j.failed && j.points->transform_weight_grad(j.sums, j.sums_step, (float *)a->weight->data);
    cpu_scratch_free(j.sums, bytes);
    return j.failed ? conv_no_memory() : !finite;
}

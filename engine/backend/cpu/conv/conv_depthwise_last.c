/* Depthwise convolution in channels-last order: the channels of a pixel are contiguous, and each has a kernel of its own, so
 * that vectors run over channels and the taps of a result are whole vectors apart.
 *
 * Weights are copied once per call into the order (tap, channel). Usual kernels (up to 7 taps in a row, side by side) run on
 * groups of results side by side (conv_depthwise_pixels.inc.c): rows of taps outside the image are left out, pixels outside
 * it are read from zeros, which are there only if all weights are finite. For all others the taps that lie inside the image
 * are listed per result; sums of a block of channels stay in registers while they walk the list. The gradient of the image
 * is the same walk over the grid of its phase. The gradient of the weights adds products of pixels, per tap, to sums
 * (tap, channel) of a part of the rows; parts are cut by shapes and added in order. */
#include "conv.h"
#include "../../../core/random.h" /* LC_WIDE */
#include <string.h>

typedef float vector __attribute__((vector_size(32), aligned(4), may_alias));
enum { LANES = 8, MOST_PARTS = 16 };

typedef struct {
    const conv_job *conv;
    const float    *weight; /* (tap, channel) */
    const float    *zeros;  /* one pixel of them */
    void (*pixels)(const conv_pixels *p);
    atomic_int failed;
} last_job;

bool conv_suits_depthwise_last(const conv_job *c)
{
    return c->rows == 1 && c->channels == 1 && c->groups >= LANES && c->dtype == LC_f32 && c->from.dtype == LC_f32 &&
           c->to.dtype == LC_f32 && c->from.channel_step == 1 && c->to.channel_step == 1 && !c->to.shifts && !c->only;
}

/* `pixels` results side by side that meet the same taps, steps apart: what the loops below walk along. */
typedef struct {
    float         *out;
    const float   *x, *other; /* the image; weights (tap, channel), or the gradient */
    int64_t        pixels, out_step, x_step, taps, channels;
    const int64_t *at, *tap; /* per listed tap: where in the image, and its number */
} stretch;

/* Four results share the weights that are in registers; returns how many channels it has done. */
static inline __attribute__((always_inline)) int64_t four_sums(const stretch *s, const float *start, float *out, const float *x)
{
    int64_t       c = 0, step = s->x_step;
    const vector *p;
    for (; c + 2 * LANES <= s->channels; c += 2 * LANES) {
        vector a[4], b[4];
        for (int i = 0; i < 4; i++) a[i] = *(p = (const vector *)(start + c)), b[i] = p[1];
        for (int64_t k = 0; k < s->taps; k++) {
            const vector *w = (const vector *)(s->other + s->tap[k] * s->channels + c);
            const float  *from = x + s->at[k] + c;
            vector        low = w[0], high = w[1];
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) p = (const vector *)(from + i * step), a[i] += p[0] * low, b[i] += p[1] * high;
        }
        for (int i = 0; i < 4; i++) {
            vector *to = (vector *)(out + i * s->out_step + c);
            to[0] = a[i], to[1] = b[i];
        }
    }
    return c;
}

/* Sums over the taps of weight times image, from `start`. */
LC_LOOP sums_loop(const stretch *s, const float *start)
{
    const float *weight = s->other;
    int64_t      channels = s->channels, taps = s->taps;
    for (int64_t i = 0, done = 0, c; i < s->pixels; i++) {
        const float *x = s->x + i * s->x_step;
        float       *out = s->out + i * s->out_step;
        if (i % 4 == 0) done = i + 4 <= s->pixels ? four_sums(s, start, out, x) : 0;
        c = done;
        for (; c + LANES <= channels; c += LANES) {
            vector a = *(const vector *)(start + c);
            for (int64_t k = 0; k < taps; k++)
                a += *(const vector *)(x + s->at[k] + c) * *(const vector *)(weight + s->tap[k] * channels + c);
            *(vector *)(out + c) = a;
        }
        for (; c < channels; c++) {
            float a = start[c];
            for (int64_t k = 0; k < taps; k++) a += x[s->at[k] + c] * weight[s->tap[k] * channels + c];
            out[c] = a;
        }
    }
}
LC_WIDE(sums, (const stretch *s, const float *start), s, start)

/* out (tap, channel) += the gradient (out_step: of it) times the image under each tap */
LC_LOOP products_loop(const stretch *s)
{
    int64_t channels = s->channels;
    for (int64_t k = 0, c; k < s->taps; k++) {
        float       *to = s->out + s->tap[k] * channels;
        const float *x = s->x + s->at[k];
        for (c = 0; c + LANES <= channels; c += LANES) {
            vector a = *(vector *)(to + c);
            for (int64_t i = 0; i < s->pixels; i++)
                a += *(const vector *)(s->other + i * s->out_step + c) * *(const vector *)(x + i * s->x_step + c);
            *(vector *)(to + c) = a;
        }
        for (; c < channels; c++)
            for (int64_t i = 0; i < s->pixels; i++) to[c] += s->other[i * s->out_step + c] * x[i * s->x_step + c];
    }
}
LC_WIDE(products, (const stretch *s), s)

/* The next results from position[2] on that meet the same taps: one at the border, all that lie inside. */
static int64_t side_by_side(const conv_axis *axis, const conv_image *x, int64_t column)
{
    int64_t least = 0, most = 0, count = 0, all = axis[2].count - column;
    for (int64_t l = 0; l < axis[2].taps; l++)
        least = smaller(least, axis[2].offset[l]), most = larger(most, axis[2].offset[l]);
    if (column * axis[2].step + least < 0) return 1;
    count = x->size[2] > most ? (x->size[2] - most - 1) / axis[2].step + 1 - column : 0; /* x * step + most < size */
    return larger(1, smaller(count, all));
}

/* The taps of a position that lie inside the image: where, and their numbers. */
static int64_t list_taps(const conv_axis *axis, const conv_image *x, const int64_t *position, int64_t *at, int64_t *tap)
{
    int64_t n = 0, k = 0;
    for (int64_t i = 0; i < axis[0].taps; i++)
        for (int64_t j = 0; j < axis[1].taps; j++) {
            int64_t z = position[0] * axis[0].step + axis[0].offset[i], y = position[1] * axis[1].step + axis[1].offset[j];
            bool    there = z >= 0 && z < x->size[0] && y >= 0 && y < x->size[1];
            int64_t row = z * x->step[0] + y * x->step[1];
            for (int64_t l = 0; l < axis[2].taps; l++, k++) {
                int64_t column = position[2] * axis[2].step + axis[2].offset[l];
                if (there && column >= 0 && column < x->size[2]) at[n] = row + column * x->step[2], tap[n++] = k;
            }
        }
    return n;
}

static void run_rows(void *ctx, int64_t begin, int64_t end)
{
    last_job         *j = ctx;
    const conv_job   *c = j->conv;
    const conv_axis  *axis = c->grid.axis;
    const conv_image *to = &c->to;
    size_t            bytes = (size_t)(2 * c->grid.taps + 1) * sizeof(int64_t);
    int64_t          *at = cpu_scratch(bytes), *tap = at ? at + c->grid.taps : NULL;
    if (!at) {
        j->failed = 1;
        return;
    }
    for (int64_t row = begin; row < end; row++) {
        int64_t p[3] = { row / axis[1].count % axis[0].count, row % axis[1].count, 0 };
        int64_t n = row / axis[1].count / axis[0].count;
        float  *out = (float *)to->data + n * to->n_step + p[0] * to->step[0] + p[1] * to->step[1];
        stretch s = { out,
                      (const float *)c->from.data + n * c->from.n_step,
                      j->weight,
                      .out_step = to->step[2],
                      .at = at,
                      .tap = tap,
                      .x_step = axis[2].step * c->from.step[2],
                      .channels = c->groups };
        for (; p[2] < axis[2].count; p[2] += s.pixels, s.out += s.pixels * s.out_step) {
            s.pixels = side_by_side(axis, &c->from, p[2]), s.taps = list_taps(axis, &c->from, p, at, tap);
            sums(&s, (const float *)c->bias);
        }
    }
    cpu_scratch_free(at, bytes);
}

/* The number of the tap of a row that stands l-th from the left; -1 if taps are not side by side. */
static int64_t from_left(const conv_axis *axis, int64_t l)
{
    int64_t way = axis->taps > 1 ? axis->offset[1] - axis->offset[0] : 1;
    for (int64_t k = 1; k < axis->taps; k++)
        if ((way != 1 && way != -1) || axis->offset[k] - axis->offset[k - 1] != way) return -1;
    return way == 1 ? l : axis->taps - 1 - l;
}

/* Rows of results, in groups of pixels side by side. */
static void run_groups(void *ctx, int64_t begin, int64_t end)
{
    last_job         *j = ctx;
    const conv_job   *c = j->conv;
    const conv_axis  *axis = c->grid.axis;
    const conv_image *to = &c->to, *from = &c->from;
    int64_t           channels = c->groups, across = axis[2].taps, most = axis[0].taps * axis[1].taps, width = axis[2].count,
            inputs = (CONV_PIXELS - 1) * axis[2].step + across, left = axis[2].offset[from_left(&axis[2], 0)];
    size_t        bytes = (size_t)(most * (inputs + 2)) * sizeof(float *) + (size_t)channels * sizeof(float);
    const float **x = cpu_scratch(bytes), **row_at = x ? x + most * inputs : NULL, **weight = x ? row_at + most : NULL;
    float        *out[CONV_PIXELS], *beyond = x ? (float *)(weight + most) : NULL;
    if (!x) {
        j->failed = 1;
        return;
    }
    for (int64_t row = begin; row < end; row++) {
        int64_t n = row / axis[1].count / axis[0].count, plane = row / axis[1].count % axis[0].count,
                down = row % axis[1].count;
        const float *image = (const float *)from->data + n * from->n_step;
        float       *line = (float *)to->data + n * to->n_step + plane * to->step[0] + down * to->step[1];
        conv_pixels  p = { .x = x, .weight = weight, .start = (const float *)c->bias, .out = out, .channels = channels };
        for (int64_t i = 0, k = 0; i < axis[0].taps; i++)
            for (int64_t h = 0; h < axis[1].taps; h++, k++) {
                int64_t z = plane * axis[0].step + axis[0].offset[i], y = down * axis[1].step + axis[1].offset[h];
                if (z < 0 || z >= from->size[0] || y < 0 || y >= from->size[1]) continue;
                weight[p.rows] = j->weight + k * across * channels;
                row_at[p.rows++] = image + z * from->step[0] + y * from->step[1];
            }
        for (int64_t first = 0; first < width; first += CONV_PIXELS) {
            if (first && first + CONV_PIXELS > width) first = width - CONV_PIXELS; /* some of them again */
            int64_t column = first * axis[2].step + left, low = smaller(larger(-column, 0), inputs),
                    high = larger(smaller(from->size[2] - column, inputs), low);
            for (int64_t r = 0; r < p.rows; r++) {
                const float **at = x + r * inputs, *pixel = row_at[r] + column * from->step[2];
                for (int64_t i = 0; i < low; i++) at[i] = j->zeros;
                for (int64_t i = low; i < high; i++) at[i] = pixel + i * from->step[2];
                for (int64_t i = high; i < inputs; i++) at[i] = j->zeros;
            }
            for (int64_t i = 0; i < CONV_PIXELS; i++) out[i] = first + i < width ? line + (first + i) * to->step[2] : beyond;
            j->pixels(&p);
        }
    }
    cpu_scratch_free(x, bytes);
}

/* Weights as (tap, channel), taps of a row from the left if they are side by side; returns whether all are finite. */
static bool arrange_weights(const conv_job *c, bool side, float *to)
{
    enum { BLOCK = 16 }; /* channels whose kernels stay in L1 */
    const conv_axis *axis = c->grid.axis;
    int64_t          channels = c->groups;
    float            check = 0;
    bool             turn = side && from_left(&axis[2], 0) > 0;
    for (int64_t first = 0; first < channels; first += BLOCK) {
        int64_t count = smaller(BLOCK, channels - first), k = 0;
        for (int64_t d = 0; d < axis[0].taps; d++)
            for (int64_t h = 0; h < axis[1].taps; h++)
                for (int64_t l = 0; l < axis[2].taps; l++, k++) {
                    int64_t      w = turn ? axis[2].taps - 1 - l : l;
                    const float *from = (const float *)c->weight + axis[0].at[d] * c->weight_tap[0] +
                                        axis[1].at[h] * c->weight_tap[1] + axis[2].at[w] * c->weight_tap[2] +
                                        first * c->weight_group;
                    float *at = to + k * channels + first;
                    for (int64_t i = 0; i < count; i++) at[i] = from[i * c->weight_group], check += at[i] * 0;
                }
    }
    return check == 0; /* infinity times 0 is not a number */
}

int conv_depthwise_last(const conv_job *c)
{
    const conv_axis     *axis = c->grid.axis;
    const lc_conv_tiles *tiles = conv_tiles_here();
    int64_t              channels = c->groups, across = axis[2].taps, step = axis[2].step;
    size_t               bytes = (size_t)((c->grid.taps + 1) * channels + 1) * sizeof(float);
    float               *weight = cpu_scratch(bytes), *zeros = weight ? weight + c->grid.taps * channels : NULL;
    last_job             j = { .conv = c, .weight = weight, .zeros = zeros };
    if (!weight) return -1;
    bool side = across <= CONV_MOST_ACROSS && step <= CONV_MOST_STEP && channels >= tiles->f32.lanes && c->grid.taps > 0 &&
                from_left(&axis[2], 0) >= 0;
    if (side) j.pixels = tiles->pixels[step - 1][across];
    memset(zeros, 0, (size_t)channels * sizeof *zeros);
    if (!arrange_weights(c, j.pixels, weight) && j.pixels) {
        j.pixels = NULL; /* pixels outside the image must not meet infinity */
        arrange_weights(c, false, weight);
    }
    int64_t rows = c->from.n * axis[0].count * axis[1].count, each = axis[2].count * channels * c->grid.taps / 8 + 1;
    cpu_parallel(rows, CPU_GRAIN / each + 1, rows * each, j.pixels ? run_groups : run_rows, &j);
    cpu_scratch_free(weight, bytes);
    return j.failed ? -1 : 0;
}

/* ---- the gradient of the weights ---- */
typedef struct {
    const conv_axis *axis;
    conv_image       image, grad;
    float           *sums; /* (part, tap, channel) */
    int64_t          taps, channels, rows, parts;
    atomic_int       failed;
} weight_job;
static void run_parts(void *ctx, int64_t begin, int64_t end)
{
    weight_job      *j = ctx;
    const conv_axis *axis = j->axis;
    size_t           bytes = (size_t)(2 * j->taps + 1) * sizeof(int64_t);
    int64_t         *at = cpu_scratch(bytes), *tap = at ? at + j->taps : NULL;
    if (!at) {
        j->failed = 1;
        return;
    }
    for (int64_t part = begin; part < end; part++) {
        float *total = j->sums + part * j->taps * j->channels;
        memset(total, 0, (size_t)(j->taps * j->channels) * sizeof *total);
        for (int64_t row = j->rows * part / j->parts; row < j->rows * (part + 1) / j->parts; row++) {
            int64_t      p[3] = { row / axis[1].count % axis[0].count, row % axis[1].count, 0 };
            int64_t      n = row / axis[1].count / axis[0].count;
            const float *g = (const float *)j->grad.data + n * j->grad.n_step + p[0] * j->grad.step[0] + p[1] * j->grad.step[1];
            stretch      s = { total,
                               (const float *)j->image.data + n * j->image.n_step,
                               g,
                               .out_step = j->grad.step[2],
                               .at = at,
                               .tap = tap,
                               .x_step = axis[2].step * j->image.step[2],
                               .channels = j->channels };
            for (; p[2] < axis[2].count; p[2] += s.pixels, s.other += s.pixels * s.out_step) {
                s.pixels = side_by_side(axis, &j->image, p[2]), s.taps = list_taps(axis, &j->image, p, at, tap);
                products(&s);
            }
        }
    }
    cpu_scratch_free(at, bytes);
}

int conv_weight_depthwise_last(lc_dtype dtype, const lc_conv_args *a, const conv_axis *axis)
{
    weight_job j = { .axis = axis, .image = conv_image_of(a->image, a->dims), .grad = conv_image_of(a->result, a->dims) };
    lc_tensor *w = a->weight;
    j.channels = a->groups, j.taps = axis[0].taps * axis[1].taps * axis[2].taps;
    if (dtype != LC_f32 || j.image.dtype != LC_f32 || j.grad.dtype != LC_f32 || w->dtype != LC_f32 || a->groups < LANES ||
        w->shape[0] != a->groups || w->shape[1] != 1 || j.image.channel_step != 1 || j.grad.channel_step != 1 ||
        !w->is_contiguous)
        return LC_DECLINED;
    j.rows = j.image.n * axis[0].count * axis[1].count;
    j.parts = smaller(MOST_PARTS, larger(1, j.rows / 8));
    size_t bytes = (size_t)(j.parts * j.taps * j.channels + 1) * sizeof(float);
    if (!(j.sums = cpu_scratch(bytes))) return conv_no_memory();
    int64_t work = j.rows * axis[2].count * j.channels * j.taps / 8 + 1;
    cpu_parallel(j.parts, CPU_GRAIN / (work / j.parts + 1) + 1, work, run_parts, &j);
    for (int64_t c = 0; c < j.channels && !j.failed; c++)
        for (int64_t k = 0; k < j.taps; k++) {
            float sum = 0;
            for (int64_t part = 0; part < j.parts; part++) sum += j.sums[(part * j.taps + k) * j.channels + c];
            ((float *)w->data)[c * j.taps + k] = sum;
        }
    cpu_scratch_free(j.sums, bytes);
    return j.failed ? conv_no_memory() : 0;
}

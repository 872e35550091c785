/* Convolution as one matrix product, for few positions and many channels.
 *
 * There the weights are most of the memory that a call touches, and the other strategies pack or transform them for a handful
 * of results. The product reads them once, as they lie: a row of the weights is the elements under the kernel in the order
 * (channel, tap), or (tap, channel) if they are in channels_last order. This file copies the image's elements in the same
 * order, a row per position (im2col), and calls the product op, whose result takes any strides, so that both layouts of the
 * result are written in place. Copying costs 1 / output channels of the multiplications. A kernel of one tap needs no copy.
 *
 * A transposed convolution whose kernels do not overlap (stride and kernel alike) is a product, too: of positions and input
 * channels by (output channel, tap), whose columns are then dealt to the image. */
#include "conv.h"
#include <string.h>

enum { MOST_PATCHES = 16 << 20 };

/* Whether indices of these sizes, the innermost first, run through memory at one stride; *step is it. */
static bool is_progression(int n, const int64_t *size, const int64_t *stride, int64_t *step)
{
    int64_t next = 0;
    *step = 1;
    for (int i = 0; i < n; i++) {
        if (size[i] == 1) continue;
        if (!next) *step = next = stride[i];
        else if (stride[i] != next) return false;
        next *= size[i];
    }
    return true;
}

typedef struct {
    const conv_job *conv;
    bool            taps_inside; /* the weights' order: taps of a channel, then channels */
    int64_t         terms, term_step, positions, out_step, in_step;
    char           *patches;
    const char     *a;
    int64_t         a_row, a_col;
} product_job;

static bool position_step(const conv_image *x, const int64_t *count, const int64_t *every, int64_t *step)
{
    const int64_t size[4] = { count[2], count[1], count[0], x->n };
    const int64_t stride[4] = { x->step[2] * every[2], x->step[1] * every[1], x->step[0] * every[0], x->n_step };
    return is_progression(4, size, stride, step);
}

static bool plan(const conv_job *c, product_job *p)
{
    const conv_axis *axis = c->grid.axis;
    const int64_t   *tap = c->weight_tap, count[3] = { axis[0].count, axis[1].count, axis[2].count };
    const int64_t    inner[4] = { axis[2].taps, axis[1].taps, axis[0].taps, c->channels };
    const int64_t    outer[4] = { c->channels, axis[2].taps, axis[1].taps, axis[0].taps };
    *p = (product_job){ .conv = c, .terms = c->channels * axis[0].taps * axis[1].taps * axis[2].taps };
    if (c->only || c->by_tap || c->groups != 1 || c->to.shifts || !p->terms) return false;
    if (c->from.dtype != c->dtype || c->to.dtype != c->dtype) return false;
    for (int d = 0; d < 3; d++)
        for (int64_t k = 0; k < axis[d].taps; k++)
            if (axis[d].at[k] != k) return false;
    p->taps_inside = is_progression(4, inner, (int64_t[]){ tap[2], tap[1], tap[0], c->weight_channel }, &p->term_step);
    if (!p->taps_inside && !is_progression(4, outer, (int64_t[]){ c->weight_channel, tap[2], tap[1], tap[0] }, &p->term_step))
        return false;
    if (!position_step(&c->to, count, (int64_t[]){ 1, 1, 1 }, &p->out_step)) return false;
    p->positions = c->from.n * count[0] * count[1] * count[2];
    return true;
}

/* The image as it lies, for kernels of one tap without padding. */
static bool reads_image(product_job *p)
{
    const conv_job  *c = p->conv;
    const conv_axis *axis = c->grid.axis;
    int64_t          count[3], every[3];
    for (int d = 0; d < 3; d++) {
        count[d] = axis[d].count, every[d] = axis[d].step;
        if (axis[d].taps != 1 || axis[d].offset[0] || (count[d] - 1) * every[d] >= c->from.size[d]) return false;
    }
    return position_step(&c->from, count, every, &p->in_step);
}

/* Limits as measured: against Winograd, and against the tiles, which read channels last slowly. */
bool conv_suits_product(const conv_job *c)
{
    product_job p;
    if (!plan(c, &p) || c->rows < 32) return false;
    if (reads_image(&p)) return c->channels >= 32 && (c->from.channel_step == 1 || p.positions <= 256);
    if (p.positions * p.terms * c->size > MOST_PATCHES) return false;
    return c->from.channel_step == 1 ? p.positions <= 1024 && p.positions <= 6 * c->rows
                                     : p.positions <= 256 && p.positions < 4 * c->rows;
}

/* ---- patches ---- */
#define GATHER(T)                                                                                                              \
    {                                                                                                                          \
        const T *x = (const T *)from;                                                                                          \
        T       *out = (T *)to;                                                                                                \
        if (p->taps_inside)                                                                                                    \
            for (int64_t ch = 0; ch < c->channels; ch++, x += c->from.channel_step, out += taps)                               \
                for (int64_t i = 0; i < inside; i++) out[index[i]] = x[at[i]];                                                 \
        else                                                                                                                   \
            for (int64_t i = 0; i < inside; i++)                                                                               \
                for (int64_t ch = 0; ch < c->channels; ch++)                                                                   \
                    out[index[i] * c->channels + ch] = x[at[i] + ch * c->from.channel_step];                                   \
    }
static void fill_patches(void *ctx, int64_t begin, int64_t end)
{
    product_job     *p = ctx;
    const conv_job  *c = p->conv;
    const conv_axis *axis = c->grid.axis;
    int64_t          taps = c->grid.taps, size = c->size;
    int64_t         *index = cpu_scratch((size_t)(2 * taps) * sizeof *index), *at = index ? index + taps : NULL;
    if (!index) {
        atomic_store((atomic_int *)&c->failed, 1);
        return;
    }
    for (int64_t position = begin; position < end; position++) {
        int64_t rest = position, first[3], inside = 0, t = 0;
        for (int d = 2; d >= 0; d--) first[d] = rest % axis[d].count * axis[d].step, rest /= axis[d].count;
        for (int64_t i = 0; i < axis[0].taps; i++)
            for (int64_t j = 0; j < axis[1].taps; j++)
                for (int64_t k = 0; k < axis[2].taps; k++, t++) {
                    int64_t z = first[0] + axis[0].offset[i], y = first[1] + axis[1].offset[j],
                            x = first[2] + axis[2].offset[k];
                    if (z < 0 || z >= c->from.size[0] || y < 0 || y >= c->from.size[1] || x < 0 || x >= c->from.size[2])
                        continue;
                    index[inside] = t, at[inside++] = z * c->from.step[0] + y * c->from.step[1] + x * c->from.step[2];
                }
        const char *from = c->from.data + rest * c->from.n_step * size;
        char       *to = p->patches + position * p->terms * size;
        if (inside < taps) memset(to, 0, (size_t)(p->terms * size));
        if (size == 4) GATHER(uint32_t)
        else GATHER(uint64_t)
    }
    cpu_scratch_free(index, (size_t)(2 * taps) * sizeof *index);
}

static lc_tensor matrix(const void *data, lc_dtype dtype)
{
    return (lc_tensor){ .data = (char *)data, .dtype = (uint8_t)dtype, .device = { LC_CPU, 0 } };
}
static int multiply(lc_dtype dtype, const void *a, const void *b, const void *out, lc_matmul_args *g)
{
    lc_tensor of[3] = { matrix(a, dtype), matrix(b, dtype), matrix(out, dtype) };
    g->a = &of[0], g->b = &of[1], g->out = &of[2], g->batch = 1;
    return lc_cpu_runs[LC_OP_mm](dtype, g);
}

int conv_product(conv_job *c)
{
    product_job p;
    plan(c, &p);
    size_t bytes = reads_image(&p) ? 0 : (size_t)(p.positions * p.terms * c->size);
    if (bytes) {
        if (!(p.patches = cpu_scratch(bytes))) return -1;
        cpu_parallel(p.positions, CPU_GRAIN / p.terms + 1, p.positions * p.terms, fill_patches, &p);
    }
    lc_tensor          bias = matrix(c->bias, c->dtype);
    lc_matmul_epilogue e = {
        .scale = 1, .addend_scale = 1, .addend = &bias, .addend_stride = { 0, 0, 1 }, .activation = LC_OP_COUNT
    };
    lc_matmul_args g = { .m = p.positions, .n = c->rows, .k = p.terms, .epilogue = &e };
    g.a_row = bytes ? p.terms : p.in_step, g.a_col = bytes ? 1 : c->from.channel_step;
    g.b_row = p.term_step, g.b_col = c->weight_row;
    g.out_row = p.out_step, g.out_col = c->to.channel_step;
    int rc = c->failed ? -1 : multiply(c->dtype, bytes ? p.patches : c->from.data, c->weight, c->to.data, &g);
    if (bytes) cpu_scratch_free(p.patches, bytes);
    return rc;
}

/* ---- transposed: columns (positions, terms of the weights), then sums per element of the image ---- */
typedef struct {
    const conv_job    *conv;
    const conv_window *window;
    const int64_t     *kernel;
    char              *columns;
    int64_t            terms, taps;
    bool               taps_inside;
    atomic_int         failed;
} deal_job;

#define DEAL(T)                                                                                                                \
    {                                                                                                                          \
        const T *from = (const T *)j->columns, *bias = (const T *)c->bias;                                                     \
        T       *out = (T *)c->to.data + place, *sum = step == 1 ? out : (T *)line;                                            \
        for (int64_t r = 0; r < rows; r++) sum[r] = bias[r];                                                                   \
        for (int64_t i = 0; i < meets; i++) {                                                                                  \
            const T *x = from + at[i];                                                                                         \
            if (apart == 1)                                                                                                    \
                for (int64_t r = 0; r < rows; r++) sum[r] += x[r];                                                             \
            else                                                                                                               \
                for (int64_t r = 0; r < rows; r++) sum[r] += x[r * apart];                                                     \
        }                                                                                                                      \
        for (int64_t r = 0; r < rows && step != 1; r++) out[r * step] = sum[r];                                                \
    }
static int64_t meeting(const deal_job *j, int d, int64_t element, int64_t k) /* the position, or -1 */
{
    const conv_window *w = &j->window[d];
    int64_t            at = element + w->padding - k * w->dilation;
    return at >= 0 && at % w->stride == 0 && at / w->stride < j->conv->from.size[d] ? at / w->stride : -1;
}
static void deal_elements(void *ctx, int64_t begin, int64_t end)
{
    deal_job         *j = ctx;
    const conv_job   *c = j->conv;
    const conv_image *to = &c->to, *x = &c->from;
    const int64_t    *kernel = j->kernel;
    int64_t           rows = c->rows, step = to->channel_step, apart = j->taps_inside ? j->taps : 1;
    size_t            bytes = (size_t)j->taps * sizeof(int64_t) + (size_t)(rows * c->size);
    int64_t          *at = cpu_scratch(bytes);
    if (!at) {
        j->failed = 1;
        return;
    }
    char *line = (char *)(at + j->taps);
    for (int64_t e = begin; e < end; e++) {
        int64_t rest = e, element[3], meets = 0, p[3];
        for (int d = 2; d >= 0; d--) element[d] = rest % to->size[d], rest /= to->size[d];
        for (int64_t z = 0; z < kernel[0]; z++)
            for (int64_t y = 0; y < kernel[1] && (p[0] = meeting(j, 0, element[0], z)) >= 0; y++)
                for (int64_t w = 0; w < kernel[2] && (p[1] = meeting(j, 1, element[1], y)) >= 0; w++) {
                    if ((p[2] = meeting(j, 2, element[2], w)) < 0) continue;
                    int64_t position = ((rest * x->size[0] + p[0]) * x->size[1] + p[1]) * x->size[2] + p[2];
                    int64_t tap = (z * kernel[1] + y) * kernel[2] + w;
                    at[meets++] = position * j->terms + tap * (j->taps_inside ? 1 : rows);
                }
        int64_t place = rest * to->n_step;
        for (int d = 0; d < 3; d++) place += element[d] * to->step[d];
        if (c->size == 4) DEAL(float)
        else DEAL(double)
    }
    cpu_scratch_free(at, bytes);
}

static bool suits_transposed(const deal_job *j, int64_t positions, size_t bytes)
{
    const conv_job *c = j->conv;
    bool            apart = true; /* kernels do not overlap */
    for (int d = 0; d < 3; d++)
        apart &= j->kernel[d] == 1 || (j->kernel[d] <= j->window[d].stride && j->window[d].dilation == 1);
    if (c->channels < 32 || bytes > MOST_PATCHES) return false;
    if (c->to.channel_step != 1) return positions <= 200 && positions < 4 * c->channels;
    return apart || (positions <= 1024 && positions <= 8 * c->channels);
}

int conv_transpose_product(const conv_job *c, const conv_window *window, const int64_t *kernel)
{
    const int64_t *tap = c->weight_tap, one[3] = { 1, 1, 1 };
    int64_t        taps = kernel[0] * kernel[1] * kernel[2], in_step, term_step;
    deal_job       j = { .conv = c, .window = window, .kernel = kernel, .taps = taps, .terms = c->rows * taps };
    int64_t        positions = c->from.n * c->from.size[0] * c->from.size[1] * c->from.size[2];
    const int64_t  inner[4] = { kernel[2], kernel[1], kernel[0], c->rows },
                  outer[4] = { c->rows, kernel[2], kernel[1], kernel[0] };
    j.taps_inside = is_progression(4, inner, (int64_t[]){ tap[2], tap[1], tap[0], c->weight_row }, &term_step);
    if (!j.taps_inside && !is_progression(4, outer, (int64_t[]){ c->weight_row, tap[2], tap[1], tap[0] }, &term_step))
        return LC_DECLINED;
    if (c->groups != 1 || c->from.dtype != c->dtype || c->to.dtype != c->dtype || !positions || !j.terms) return LC_DECLINED;
    if (!position_step(&c->from, c->from.size, one, &in_step)) return LC_DECLINED;
    size_t bytes = (size_t)(positions * j.terms * c->size);
    if (!suits_transposed(&j, positions, bytes)) return LC_DECLINED;
    if (!(j.columns = cpu_scratch(bytes))) return -1;
    lc_matmul_args g = { .m = positions, .n = j.terms, .k = c->channels };
    g.a_row = in_step, g.a_col = c->from.channel_step, g.b_row = c->weight_channel, g.b_col = term_step;
    g.out_row = j.terms, g.out_col = 1;
    int     rc = multiply(c->dtype, c->from.data, c->weight, j.columns, &g);
    int64_t elements = c->to.n * c->to.size[0] * c->to.size[1] * c->to.size[2];
    if (!rc) cpu_parallel(elements, CPU_GRAIN / c->rows + 1, positions * j.terms, deal_elements, &j);
    cpu_scratch_free(j.columns, bytes);
    return j.failed ? -1 : rc;
}

/* Fractional pooling: windows of one size at random positions, per plane. Positions are computed in the dtype of the draws,
 * with its roundings, as PyTorch does: they decide which elements are in a window. */
#include "../cpu.h"
#include "../../args.h"
#include <math.h>

typedef struct {
    const lc_pool_args *args;
    lc_dtype            dtype;
    int                 dims;
    atomic_int          failed;
} fractional_job;

static double rounded(lc_dtype dtype, double x)
{
    if (dtype == LC_f64) return x;
    float f = (float)x;
    return dtype == LC_f16 ? lc_f16_to_f32(lc_f32_to_f16(f)) : dtype == LC_bf16 ? lc_bf16_to_f32(lc_f32_to_bf16(f)) : f;
}
static int64_t within(double place, int64_t last) { return !(place > 0) ? 0 : place < (double)last ? (int64_t)place : last; }
/* The starts of the m windows of k elements among n: start (m). */
static void draw_places(lc_dtype dtype, double sample, int64_t n, int64_t m, int64_t k, int64_t *start)
{
    double  step = m > 1 ? rounded(dtype, rounded(dtype, (double)(n - k)) / rounded(dtype, (double)(m - 1))) : 0;
    int64_t first = (int64_t)rounded(dtype, sample * step);
    for (int64_t i = 0; i < m - 1; i++) {
        double at = rounded(dtype, rounded(dtype, rounded(dtype, (double)i) + sample) * step);
        start[i] = within((double)(int64_t)at - (double)first, n - k);
    }
    start[m - 1] = n - k;
}

#define POOL(T)                                                                                                                \
    do {                                                                                                                       \
        const T *in = (const T *)a->in->data + plane * area;                                                                   \
        T       *out = (T *)a->out->data + plane * results;                                                                    \
        for (int64_t r = 0; r < results; r++) {                                                                                \
            const int64_t *k = a->kernel, d0 = start[0][r / (a->result[1] * a->result[2])];                                    \
            int64_t        h0 = start[1][r / a->result[2] % a->result[1]], w0 = start[2][r % a->result[2]];                    \
            int64_t        where = (d0 * a->size[1] + h0) * a->size[2] + w0;                                                   \
            T              best = (T)-INFINITY;                                                                                \
            for (int64_t d = d0; d < d0 + k[0]; d++)                                                                           \
                for (int64_t h = h0; h < h0 + k[1]; h++)                                                                       \
                    for (int64_t w = w0; w < w0 + k[2]; w++) {                                                                 \
                        int64_t at = (d * a->size[1] + h) * a->size[2] + w;                                                    \
                        if (in[at] > best || in[at] != in[at]) best = in[at], where = at;                                      \
                    }                                                                                                          \
            out[r] = best, index[r] = where;                                                                                   \
        }                                                                                                                      \
    } while (0)
static void fractional_chunk(void *ctx, int64_t begin, int64_t end)
{
    fractional_job     *job = ctx;
    const lc_pool_args *a = job->args;
    int64_t             area = a->size[0] * a->size[1] * a->size[2], results = a->result[0] * a->result[1] * a->result[2];
    size_t              bytes = (size_t)(a->result[0] + a->result[1] + a->result[2]) * sizeof(int64_t);
    int64_t *places = cpu_scratch(bytes), *start[3] = { places, places + a->result[0], places + a->result[0] + a->result[1] };
    if (!places) {
        job->failed = 1;
        return;
    }
    for (int64_t plane = begin; plane < end; plane++) {
        int64_t *index = (int64_t *)a->index->data + plane * results;
        for (int d = 0; d < 3; d++) {
            int     draw = job->dims == 2 ? 2 - d : d; /* two dimensions: the first draw belongs to the last one */
            int64_t at = plane * job->dims + draw;
            double  sample = job->dims == 2 && d == 0 ? 0
                             : job->dtype == LC_f32   ? (double)((const float *)a->samples->data)[at]
                                                      : ((const double *)a->samples->data)[at];
            draw_places(a->samples_dtype, sample, a->size[d], a->result[d], a->kernel[d], start[d]);
        }
        if (job->dtype == LC_f32) POOL(float);
        else POOL(double);
    }
    cpu_scratch_free(places, bytes);
}
static int cpu_fractional_max_pool(lc_dtype dtype, const void *args)
{
    const lc_pool_args *a = args;
    fractional_job      job = { .args = a, .dtype = dtype, .dims = (int)a->samples->shape[2] };
    int64_t             each = a->result[0] * a->result[1] * a->result[2] * a->kernel[0] * a->kernel[1] * a->kernel[2] + 1;
    cpu_parallel(a->planes, CPU_GRAIN / each + 1, a->planes * each, fractional_chunk, &job);
    return job.failed ? lc_fail_int(LC_OutOfMemory, "fractional_max_pool: no memory for its windows") : 0;
}
LC_CPU_RUN(_fractional_max_pool, cpu_fractional_max_pool, 1u << LC_f32 | 1u << LC_f64)

/* Products with a weight in codes: threads share the rows of the weight, and walk over the rows of x in blocks, so that codes
 * are converted once per block. A tile of weight rows stays in the cache while the blocks pass. */
#include "../cpu.h"
#include "quantized.h"

ISA_TABLE(const lc_quantized, quantized)

enum { WEIGHT_ROWS = 32 }; /* of a tile */
typedef struct {
    const lc_quantized_args *a;
    const lc_quantized      *kernels;
    const float             *sums; /* int4: 8 times the sum of x over every group, (m, groups) */
} quantized_job;

static void multiply_chunk(void *ctx, int64_t begin, int64_t end)
{
    const quantized_job     *job = ctx;
    const lc_quantized_args *a = job->a;
    bool                     int4 = a->codes->dtype == LC_u8;
    int64_t                  groups = a->k / a->group, bytes = int4 ? a->k / 2 : a->k;
    const float             *x = (const float *)a->x->data, *scales = (const float *)a->scales->data,
                *bias = a->bias ? (const float *)a->bias->data : NULL;
    float *out = (float *)a->out->data;
    for (int64_t from = begin; from < end; from += WEIGHT_ROWS) {
        int64_t to = from + WEIGHT_ROWS < end ? from + WEIGHT_ROWS : end;
        for (int64_t row = 0; row < a->m;) {
            int64_t          rows = a->m - row >= QUANTIZED_ROWS ? QUANTIZED_ROWS : 1;
            lc_quantized_dot dot = rows == 1 ? (int4 ? job->kernels->int4_one : job->kernels->int8_one)
                                             : (int4 ? job->kernels->int4_rows : job->kernels->int8_rows);
            for (int64_t j = from; j < to; j++)
                dot(out + row * a->n + j, a->n, x + row * a->k, a->codes->data + j * bytes, scales + j * groups,
                    int4 ? job->sums + row * groups : NULL, bias ? bias[j] : 0, a->k, a->group);
            row += rows;
        }
    }
}
static int cpu_quantized_linear(lc_dtype dtype, const void *args)
{
    (void)dtype;
    const lc_quantized_args *a = args;
    quantized_job            job = { a, quantized_of_this_cpu(), NULL };
    int64_t                  groups = a->k / a->group;
    size_t                   bytes = (size_t)(a->m * groups) * sizeof(float);
    float                   *sums = NULL;
    if (a->codes->dtype == LC_u8) {
        if (!(sums = cpu_scratch(bytes))) return lc_fail_int(LC_OutOfMemory, "quantized_linear: no memory for sums");
        const float *x = (const float *)a->x->data;
        for (int64_t i = 0; i < a->m * groups; i++) {
            double sum = 0;
            for (int64_t c = 0; c < a->group; c++) sum += (double)x[i * a->group + c];
            sums[i] = (float)(8 * sum);
        }
    }
    job.sums = sums;
    cpu_parallel(a->n, CPU_GRAIN / (a->k * (a->m < 16 ? a->m : 16) / 8 + 1) + 1, a->n * a->k * a->m / 8, multiply_chunk, &job);
    cpu_scratch_free(sums, bytes);
    return 0;
}
LC_CPU_RUN(_quantized_linear, cpu_quantized_linear, 1u << LC_f32)

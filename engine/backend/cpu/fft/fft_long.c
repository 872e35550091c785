/* Fourier transforms of lines that no cache holds, one at a time, by all threads.
 *
 * n = n1 n2: the line is a matrix (n1, n2) in rows. Groups of neighbouring columns are transformed, multiplied with twiddles and written to a second
 * matrix; then groups of its rows, whose results lie side by side again. Each number comes from memory twice, in runs of a whole vector, and is
 * transformed in L2. The twiddles of a group of columns are those of its first column, found from two short tables in double, times those of
 * the lanes, which are the same for all groups: a table of all n would be another line to read.
 *
 * Where n has a large prime factor the line is multiplied with a chirp and convolved (Bluestein) by two transforms of a length that has none. */
#include "../cpu.h"
#include "fft.h"
#include <string.h>

typedef struct {
    const fft_plan    *plan;
    const fft_kernels *run;
    char              *to, *work;
    const char        *from;
    int64_t            step, apart, size;
    bool               backward;
    double             scale;
    size_t             bytes;
    atomic_int         failed;
} long_job;

static void swap_parts(fft_planes *p)
{
    void *re = p->re;
    p->re = p->im, p->im = re;
}
/* exp(-2 pi i k first / n) for all k < n1, as the kernels read them. */
static void first_twiddles(const fft_plan *plan, int64_t first, void *to)
{
    for (int64_t k = 0; k < fft_n1(plan); k++) {
        const int64_t t = k * first; /* < n */
        const double *a = plan->coarse + 2 * (t / plan->stride), *b = plan->fine + 2 * (t % plan->stride);
        const double  c = a[0] * b[0] - a[1] * b[1], s = a[0] * b[1] + a[1] * b[0];
        if (plan->real == LC_f64) ((double *)to)[2 * k] = c, ((double *)to)[2 * k + 1] = s;
        else ((float *)to)[2 * k] = (float)c, ((float *)to)[2 * k + 1] = (float)s;
    }
}
static void columns_chunk(void *ctx, int64_t begin, int64_t end)
{
    long_job       *job = ctx;
    const fft_plan *plan = job->plan;
    const int       lanes = job->run->lanes;
    const int64_t   n1 = fft_n1(plan), n2 = plan->n / n1;
    char           *scratch = cpu_scratch(job->bytes);
    int64_t         offset[FFT_LANES];
    if (!scratch) {
        job->failed = 1;
        return;
    }
    for (int64_t group = begin; group < end; group++) {
        const int64_t first = group * lanes, count = n2 - first < lanes ? n2 - first : lanes;
        fft_planes    p[3];
        fft_planes_at(scratch, plan->columns, lanes, p);
        for (int l = 0; l < lanes; l++) offset[l] = 2 * (first + l);
        fft_lines from = { .base = (char *)job->from, .offset = offset, .step = 2 * n2, .apart = 1 }, to = from;
        to.base = job->work;
        char *twiddles = scratch + fft_workspace(plan->columns, lanes) * job->size;
        first_twiddles(plan, first, twiddles);
        job->run->load(p[0], lanes, &from, n1, (int)count);
        if (job->backward) swap_parts(&p[0]);
        job->run->run(plan->columns, lanes, &p[0], &p[1], &p[2]);
        job->run->turn(p[0], lanes, n1, twiddles, plan->lane);
        job->run->store(&to, lanes, p[0], n1, (int)count, 1.0);
    }
    cpu_scratch_free(scratch, job->bytes);
}
static void rows_chunk(void *ctx, int64_t begin, int64_t end)
{
    long_job       *job = ctx;
    const fft_plan *plan = job->plan;
    const int       lanes = job->run->lanes;
    const int64_t   n1 = fft_n1(plan), n2 = plan->n / n1;
    char           *scratch = cpu_scratch(job->bytes);
    int64_t         in[FFT_LANES], out[FFT_LANES];
    if (!scratch) {
        job->failed = 1;
        return;
    }
    for (int64_t group = begin; group < end; group++) {
        const int64_t first = group * lanes, count = n1 - first < lanes ? n1 - first : lanes;
        fft_planes    p[3];
        fft_planes_at(scratch, plan->rows, lanes, p);
        for (int l = 0; l < lanes; l++) in[l] = 2 * n2 * (first + l), out[l] = job->step * (first + l);
        fft_lines from = { .base = job->work, .offset = in, .step = 2, .apart = 1 };
        fft_lines to = { .base = job->to, .offset = out, .step = job->step * n1, .apart = job->apart };
        job->run->load(p[0], lanes, &from, n2, (int)count);
        job->run->run(plan->rows, lanes, &p[0], &p[1], &p[2]);
        if (job->backward) swap_parts(&p[0]);
        job->run->store(&to, lanes, p[0], n2, (int)count, job->scale);
    }
    cpu_scratch_free(scratch, job->bytes);
}
static int run_steps(long_job *job)
{
    const fft_plan *plan = job->plan;
    const int       lanes = job->run->lanes;
    const int64_t   n1 = fft_n1(plan), n2 = plan->n / n1, a = fft_workspace(plan->columns, lanes) + 2 * n1,
                  b = fft_workspace(plan->rows, lanes);
    job->bytes = (size_t)((a > b ? a : b) * job->size);
    cpu_parallel((n2 + lanes - 1) / lanes, 4, plan->n, columns_chunk, job);
    if (!job->failed) cpu_parallel((n1 + lanes - 1) / lanes, 4, plan->n, rows_chunk, job);
    return job->failed ? lc_fail_int(LC_OutOfMemory, "fft: no memory for a line of %lld", (long long)plan->n) : 0;
}

/* to[k] = from[k] w[k] scale for k < n, zero for n <= k < all. swap: the parts of what is read, or written, change places. */
typedef struct {
    char       *to;
    const char *from, *w;
    int64_t     n, step, apart;
    bool        wide, swap_in, swap_out;
    double      scale;
} chirp_job;
#define CHIRP(T)                                                                                                               \
    for (int64_t k = begin; k < end; k++) {                                                                                    \
        T       *y = (T *)j->to + k * j->step, c = 0, s = 0;                                                                   \
        const T *x = (const T *)j->from + 2 * k, *w = (const T *)j->w + 2 * k;                                                 \
        if (k < j->n) {                                                                                                        \
            T re = x[j->swap_in], im = x[!j->swap_in];                                                                         \
            c = (T)((re * w[0] - im * w[1]) * (T)j->scale), s = (T)((re * w[1] + im * w[0]) * (T)j->scale);                    \
        }                                                                                                                      \
        y[j->swap_out ? j->apart : 0] = c, y[j->swap_out ? 0 : j->apart] = s;                                                  \
    }
static void chirp_chunk(void *ctx, int64_t begin, int64_t end)
{
    const chirp_job *j = ctx;
    if (j->wide) CHIRP(double)
    else CHIRP(float)
}
static int run_chirp(const long_job *job)
{
    const fft_plan *plan = job->plan, *inner = plan->inner;
    const int64_t   n = plan->n, m = inner->n, part = 2 * m * job->size;
    char           *a = job->work, *b = a + part, *work = b + part;
    chirp_job       in = { a, job->from, plan->chirp, n, 2, 1, plan->real == LC_f64, job->backward, false, 1.0 };
    chirp_job       middle = { b, b, plan->spectrum, m, 2, 1, in.wide, false, false, 1.0 };
    chirp_job       out = { job->to, a, plan->chirp, n, job->step, job->apart, in.wide, false, job->backward, job->scale };
    cpu_parallel(m, CPU_GRAIN, m, chirp_chunk, &in);
    if (fft_long_run(inner, b, 2, 1, a, work, false, 1.0) < 0) return -1;
    cpu_parallel(m, CPU_GRAIN, m, chirp_chunk, &middle);
    if (fft_long_run(inner, a, 2, 1, b, work, true, 1.0) < 0) return -1;
    return cpu_parallel(n, CPU_GRAIN, n, chirp_chunk, &out), 0;
}

int64_t fft_long_work(const fft_plan *plan)
{
    return plan->inner ? 4 * plan->inner->n + fft_long_work(plan->inner) : 2 * plan->n;
}
int fft_long_run(const fft_plan *plan, char *to, int64_t step, int64_t apart, const char *from, char *work, bool backward,
                 double scale)
{
    long_job job = { .plan = plan,
                     .run = fft_kernels_of(plan->real),
                     .to = to,
                     .work = work,
                     .from = from,
                     .step = step,
                     .apart = apart,
                     .size = lc_size_of(plan->real),
                     .backward = backward,
                     .scale = scale };
    return plan->inner ? run_chirp(&job) : run_steps(&job);
}

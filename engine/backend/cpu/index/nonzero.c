/* nonzero: elements are counted in chunks, then each chunk writes from where those before it end. */
#include "../cpu.h"
#include "../../args.h"
#include "../../../tensor/iter.h"

enum { NONZERO_TILE = 512 };
typedef struct {
    const lc_nonzero_args *args;
    int64_t                at, found;                     /* elements seen, nonzero ones */
    int64_t                last, coordinate[LC_MAX_DIMS]; /* of the last one found */
} nonzero_walk;

/* Advances the coordinates from the last element found to the element at `at`: a division only where a line ends. */
static void put_position(nonzero_walk *w, int64_t at)
{
    const lc_tensor *in = w->args->in;
    int64_t         *column = (int64_t *)w->args->out->data + w->found++, count = w->args->out->shape[0], d = in->ndim - 1;
    w->coordinate[d] += at - w->last, w->last = at;
    for (; d > 0 && w->coordinate[d] >= in->shape[d]; d--) {
        w->coordinate[d - 1] += w->coordinate[d] / in->shape[d];
        w->coordinate[d] %= in->shape[d];
    }
    for (d = 0; d < in->ndim; d++) column[d * count] = w->coordinate[d];
}
static void put_positions(nonzero_walk *w, const uint16_t *where, int64_t n)
{
    if (w->args->in->ndim > 1)
        for (int64_t i = 0; i < n; i++) put_position(w, w->at + where[i]);
    else {
        int64_t *to = (int64_t *)w->args->out->data + w->found;
        if (w->args->in->ndim)
            for (int64_t i = 0; i < n; i++) to[i] = w->at + where[i];
        w->found += n;
    }
}
static int nonzero_row(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    nonzero_walk *w = ctx;
    uint8_t       tile[NONZERO_TILE];
    uint16_t      where[NONZERO_TILE + 1];
    for (int64_t start = 0, m; start < n; start += m) {
        const uint8_t *set = (const uint8_t *)ptr[0] + start * stride[0];
        int64_t        here = 0;
        m = n - start < NONZERO_TILE ? n - start : NONZERO_TILE;
        if (w->args->in->dtype != LC_b8 || stride[0] != 1) {
            cpu_move(LC_b8, (char *)tile, 1, w->args->in->dtype, ptr[0] + start * stride[0], stride[0], m);
            set = tile;
        }
        if (!w->args->out) {
            uint16_t some = 0;
            for (int64_t i = 0; i < m; i++) some += set[i] != 0;
            w->found += some;
        } else { /* branchless: masks are hard to predict */
            for (int64_t i = 0; i < m; i++) where[here] = (uint16_t)i, here += set[i] != 0;
            put_positions(w, where, here);
        }
        w->at += m;
    }
    return 0;
}

typedef struct {
    const lc_nonzero_args *args;
    lc_iter                it;
    int64_t               *found; /* per chunk: count; then start of its positions */
    int64_t                grain;
} nonzero_job;
static void nonzero_chunk(void *ctx, int64_t begin, int64_t end)
{
    nonzero_job *job = ctx;
    nonzero_walk w = { .args = job->args, .at = begin };
    int64_t     *found = &job->found[begin / job->grain];
    if (w.args->out) w.found = *found;
    lc_iter_range(&job->it, begin, end, nonzero_row, &w);
    *found = w.found;
}
static int cpu_nonzero(UNUSED lc_dtype compute, const void *args)
{
    const lc_nonzero_args *a = args;
    lc_nonzero_args        counting = { .in = a->in };
    int64_t                n = a->in->numel, few[64], sum = 0;
    nonzero_job            job = { .args = &counting, .found = few, .grain = CPU_GRAIN };
    int64_t                chunks = (n + job.grain - 1) / job.grain;
    size_t                 bytes = (size_t)chunks * sizeof *few;
    if (!n && !a->out) *(int64_t *)a->count->data = 0;
    if (!n) return 0;
    if (chunks > 64 && !(job.found = cpu_scratch(bytes)))
        return lc_fail_int(LC_OutOfMemory, "nonzero: no memory for the counts of %lld chunks", (long long)chunks);
    lc_iter_start(&job.it, a->in->ndim, a->in->shape);
    lc_iter_add(&job.it, a->in);
    lc_iter_prepare(&job.it, false);
    if (chunks > 1 || !a->out) cpu_parallel(n, job.grain, n, nonzero_chunk, &job);
    else job.found[0] = 0;
    for (int64_t c = 0; c < chunks; c++) {
        int64_t here = job.found[c];
        job.found[c] = sum, sum += here;
    }
    if (a->out) {
        job.args = a;
        cpu_parallel(n, job.grain, n, nonzero_chunk, &job);
    } else *(int64_t *)a->count->data = sum;
    if (chunks > 64) cpu_scratch_free(job.found, bytes);
    return 0;
}
LC_CPU_RUN(nonzero, cpu_nonzero, ~0u)

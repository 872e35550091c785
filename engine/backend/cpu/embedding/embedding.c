/* Embeddings: rows of a table, sums of them over bags, and the gradients.
 *
 * The gradient of a table is a sum per row over the samples that read it. A stable counting sort first orders the samples by
 * row, so that every row is written once: with its sum, or as part of a run of zeros. Nothing is cleared in advance, threads
 * share rows without locks, and sums are in the order of the samples whichever thread computes them. */
#include "../cpu.h"
#include "embedding.h"
#include <string.h>

ISA_TABLE(const lc_embeddings, embeddings)
static const lc_embedding_rows *rows_of_this_cpu(lc_dtype dtype)
{
    const lc_embeddings *table = embeddings_of_this_cpu();
    return dtype == LC_f32 ? &table->f32 : &table->f64;
}

typedef struct {
    const lc_embedding_args *a;
    const lc_embedding_rows *rows;
    const int64_t           *ids, *bags;
    int64_t                 *start, *bag_of; /* backward: (rows + 1) and, sorted by row, the bag of each sample */
    int64_t                 *divisor;        /* backward: (rows), divisor of each row's sum; NULL: 1 */
    char                    *factors;        /* backward: in the same order; NULL: 1 each */
    int64_t                  size;
    atomic_int               failed, astray; /* no memory; an id is not a row */
} embedding_job;

/* Whether all ids are rows: a negative number, or one above the last row, leaves a sign. */
static bool are_rows(const int64_t *ids, int64_t n, int64_t rows)
{
    uint64_t signs = 0;
    for (int64_t i = 0; i < n; i++) signs |= (uint64_t)ids[i] | ((uint64_t)rows - 1 - (uint64_t)ids[i]);
    return !(signs >> 63);
}
static int refuse_ids(const lc_embedding_args *a)
{
    const int64_t *ids = (const int64_t *)a->ids->data;
    for (int64_t i = 0; i < a->n; i++)
        if ((uint64_t)ids[i] >= (uint64_t)a->rows)
            return lc_fail_int(LC_IndexError, "embedding: index out of range: %lld is not a row of a table of %lld",
                               (long long)ids[i], (long long)a->rows);
    return 0;
}
static int check_bags(const lc_embedding_args *a)
{
    const int64_t *bags = a->bags ? (const int64_t *)a->bags->data : NULL;
    if (!bags || !a->n_bags) return 0;
    if (bags[0] != 0)
        return lc_fail_int(LC_LucidError,
                           "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                           "However, got %lld",
                           (long long)bags[0]);
    for (int64_t b = 0; b < a->n_bags; b++)
        if (bags[b + 1] < bags[b] || bags[b + 1] > a->n)
            return lc_fail_int(LC_LucidError,
                               "offsets must not decrease, and offsets[-1] can not be greater than input's length(%lld)",
                               (long long)a->n);
    return 0;
}
static int check_ids(const lc_embedding_args *a)
{
    if (!are_rows((const int64_t *)a->ids->data, a->n, a->rows) && refuse_ids(a) < 0) return -1;
    return check_bags(a);
}
static embedding_job job_of(const lc_embedding_args *a, lc_dtype dtype)
{
    return (embedding_job){ .a = a,
                            .rows = rows_of_this_cpu(dtype),
                            .ids = (const int64_t *)a->ids->data,
                            .bags = a->bags ? (const int64_t *)a->bags->data : NULL,
                            .size = lc_size_of(dtype) };
}
static int     no_memory(void) { return lc_fail_int(LC_OutOfMemory, "embedding: no memory for the order of its samples"); }
static int64_t first_of(const embedding_job *job, int64_t bag) { return job->bags ? job->bags[bag] : bag; }
static int64_t past_of(const embedding_job *job, int64_t bag) { return job->bags ? job->bags[bag + 1] : bag + 1; }

/* ---- rows ---- */
static void copy_chunk(void *ctx, int64_t begin, int64_t end)
{
    const embedding_job *job = ctx;
    size_t               bytes = (size_t)(job->a->width * lc_size_of(job->a->table->dtype));
    char                *out = job->a->out->data;
    const char          *table = job->a->table->data;
    for (int64_t i = begin; i < end; i++) {
        if (i + 4 < end) __builtin_prefetch(table + job->ids[i + 4] * (int64_t)bytes);
        memcpy(out + i * (int64_t)bytes, table + job->ids[i] * (int64_t)bytes, bytes);
    }
}
static int cpu_embedding(lc_dtype dtype, const void *args)
{
    const lc_embedding_args *a = args;
    embedding_job            job = job_of(a, dtype == LC_f64 ? LC_f64 : LC_f32);
    if (check_ids(a) < 0) return -1;
    cpu_parallel(a->n, CPU_GRAIN / (a->width + 1) + 1, a->n * a->width, copy_chunk, &job);
    return 0;
}

/* ---- sums over bags ---- */
static void sum_chunk(void *ctx, int64_t begin, int64_t end)
{
    const embedding_job *job = ctx;
    const char          *factors = job->a->factors ? job->a->factors->data : NULL;
    int64_t              row = job->a->width * job->size;
    if (job->a->width == 1 && job->bags && factors && job->a->padding < 0) {
        if (!job->rows->products(job->a->out->data, job->a->table->data, job->ids, factors, job->bags, begin, end,
                                 job->a->rows))
            ((embedding_job *)ctx)->astray = 1;
        return;
    }
    for (int64_t b = begin; b < end; b++) {
        int64_t first = first_of(job, b), past = past_of(job, b);
        char   *out = job->a->out->data + b * row;
        if (!are_rows(job->ids + first, past - first, job->a->rows)) { /* here, while they are in the cache */
            ((embedding_job *)ctx)->astray = 1;
            return;
        }
        if (job->a->padding < 0) {
            job->rows->sum(out, job->a->table->data, job->ids + first, factors ? factors + first * job->size : NULL,
                           past - first, job->a->width);
            continue;
        }
        int64_t  kept = 0, most = past - first; /* without the samples of the padding row */
        size_t   bytes = (size_t)(most + 1) * (sizeof(int64_t) + 8);
        int64_t *at = cpu_scratch(bytes);
        if (!at) {
            ((embedding_job *)ctx)->failed = 1;
            return;
        }
        char *some = (char *)(at + most + 1);
        for (int64_t i = first; i < past; i++) {
            if (job->ids[i] == job->a->padding) continue;
            if (factors) memcpy(some + kept * job->size, factors + i * job->size, (size_t)job->size);
            at[kept++] = job->ids[i];
        }
        job->rows->sum(out, job->a->table->data, at, factors ? some : NULL, kept, job->a->width);
        cpu_scratch_free(at, bytes);
    }
}
static int cpu_embedding_sum(lc_dtype dtype, const void *args)
{
    const lc_embedding_args *a = args;
    embedding_job            job = job_of(a, dtype);
    if (check_bags(a) < 0) return -1;
    int64_t in_bags = !a->bags ? a->n_bags : a->n_bags ? job.bags[a->n_bags] : 0; /* ids outside of all bags count, too */
    if (!are_rows(job.ids + in_bags, a->n - in_bags, a->rows)) return refuse_ids(a);
    int64_t cost = (a->n + a->n_bags) * a->width, each = cost / (a->n_bags + 1) + 1;
    cpu_parallel(a->n_bags, CPU_GRAIN / each + 1, cost, sum_chunk, &job);
    if (job.astray) return refuse_ids(a);
    return job.failed ? no_memory() : 0;
}

/* ---- the gradient of a table ---- */
static void in_order_of_rows(embedding_job *job)
{
    const lc_embedding_args *a = job->a;
    int64_t                 *start = job->start;
    memset(start, 0, (size_t)(a->rows + 1) * sizeof *start);
    for (int64_t i = 0, n = job->bags ? job->bags[a->n_bags] : a->n; i < n && a->n_bags; i++) start[job->ids[i] + 1]++;
    for (int64_t r = 0; r < a->rows; r++) start[r + 1] += start[r];
    for (int64_t b = 0; b < a->n_bags; b++)
        for (int64_t i = first_of(job, b); i < past_of(job, b); i++) {
            int64_t at = start[job->ids[i]]++;
            job->bag_of[at] = b;
            if (job->factors) memcpy(job->factors + at * job->size, a->factors->data + i * job->size, (size_t)job->size);
        }
    for (int64_t r = a->rows; r > 0; r--) start[r] = start[r - 1];
    start[0] = 0;
}
/* Divides by the number of samples per row. PYTORCH-QUIRK: with bags, PyTorch divides the k-th occurring row by the sample
 * count of the k-th sample's row, in the order of rows, and so does this. */
static void find_divisors(const embedding_job *job)
{
    const int64_t *start = job->start;
    for (int64_t r = 0, k = 0, other = 0; r < job->a->rows; r++) {
        job->divisor[r] = start[r + 1] - start[r];
        if (!job->bags || !job->divisor[r]) continue;
        while (start[other + 1] <= k) other++;
        job->divisor[r] = start[other + 1] - start[other], k++;
    }
}
static void backward_chunk(void *ctx, int64_t begin, int64_t end)
{
    const embedding_job     *job = ctx;
    const lc_embedding_args *a = job->a;
    int64_t                  row = a->width * job->size;
    for (int64_t r = begin, past; r < end; r = past) {
        char *out = a->out->data + r * row;
        for (past = r; past < end && (job->start[past] == job->start[past + 1] || past == a->padding);) past++;
        if (past > r) {
            memset(out, 0, (size_t)((past - r) * row));
            continue;
        }
        int64_t first = job->start[r], n = job->start[r + 1] - first;
        job->rows->sum(out, a->table->data, job->bag_of + first, job->factors ? job->factors + first * job->size : NULL, n,
                       a->width);
        if (job->divisor && job->divisor[r] > 1) job->rows->scale(out, (double)job->divisor[r], a->width);
        past = r + 1;
    }
}
static int cpu_embedding_backward(lc_dtype dtype, const void *args)
{
    const lc_embedding_args *a = args;
    embedding_job            job = job_of(a, dtype);
    if (check_ids(a) < 0) return -1;
    int64_t divisors = a->by_frequency ? a->rows : 0;
    size_t  bytes = (size_t)(a->rows + 1 + a->n + divisors) * sizeof(int64_t) + (a->factors ? (size_t)(a->n * job.size) : 0);
    if (!(job.start = cpu_scratch(bytes))) return no_memory();
    job.bag_of = job.start + a->rows + 1, job.divisor = a->by_frequency ? job.bag_of + a->n : NULL;
    job.factors = a->factors ? (char *)(job.bag_of + a->n + divisors) : NULL;
    in_order_of_rows(&job);
    if (job.divisor) find_divisors(&job);
    cpu_parallel(a->rows, CPU_GRAIN / (a->width + 1) + 1, (a->rows + a->n) * a->width, backward_chunk, &job);
    cpu_scratch_free(job.start, bytes);
    return 0;
}

/* ---- dot products of rows, and the maximum of a bag ---- */
static void dot_chunk(void *ctx, int64_t begin, int64_t end)
{
    const embedding_job     *job = ctx;
    const lc_embedding_args *a = job->a;
    int64_t                  row = a->width * job->size;
    for (int64_t b = begin; b < end; b++)
        for (int64_t i = first_of(job, b); i < past_of(job, b); i++) {
            bool   counts = job->ids[i] != a->padding;
            double v = counts ? job->rows->dot(a->table->data + job->ids[i] * row, a->other->data + b * row, a->width) : 0;
            if (job->size == 4) ((float *)a->out->data)[i] = (float)v;
            else ((double *)a->out->data)[i] = v;
        }
}
static int cpu_embedding_dot(lc_dtype dtype, const void *args)
{
    const lc_embedding_args *a = args;
    embedding_job            job = job_of(a, dtype);
    if (check_ids(a) < 0) return -1;
    memset(a->out->data, 0, (size_t)(a->n * job.size)); /* samples outside all bags */
    int64_t cost = a->n * a->width, each = cost / (a->n_bags + 1) + 1;
    cpu_parallel(a->n_bags, CPU_GRAIN / each + 1, cost, dot_chunk, &job);
    return 0;
}
static void max_chunk(void *ctx, int64_t begin, int64_t end)
{
    const embedding_job     *job = ctx;
    const lc_embedding_args *a = job->a;
    int64_t                  row = a->width * job->size;
    for (int64_t b = begin; b < end; b++) {
        char    *out = a->out->data + b * row;
        int64_t *index = (int64_t *)a->index->data + b * a->width;
        memset(out, 0, (size_t)row);
        memset(index, 0xff, (size_t)a->width * sizeof *index); /* -1 */
        for (int64_t i = first_of(job, b); i < past_of(job, b); i++)
            if (job->ids[i] != a->padding)
                job->rows->larger(out, index, a->table->data + job->ids[i] * row, job->ids[i], a->width);
    }
}
static int cpu_embedding_max(lc_dtype dtype, const void *args)
{
    const lc_embedding_args *a = args;
    embedding_job            job = job_of(a, dtype);
    if (check_ids(a) < 0) return -1;
    int64_t cost = (a->n + a->n_bags) * a->width, each = cost / (a->n_bags + 1) + 1;
    cpu_parallel(a->n_bags, CPU_GRAIN / each + 1, cost, max_chunk, &job);
    return 0;
}
#define FLOATS (1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(embedding, cpu_embedding, ~0u)
LC_CPU_RUN(_embedding_sum, cpu_embedding_sum, FLOATS)
LC_CPU_RUN(_embedding_backward, cpu_embedding_backward, FLOATS)
LC_CPU_RUN(_embedding_dot, cpu_embedding_dot, FLOATS)
LC_CPU_RUN(_embedding_max, cpu_embedding_max, FLOATS)

/* Attention: which thread computes which tile. Forward, a task is a tile of queries of one head. Backward, a task is a key
 * head with the query heads that share it: its tiles of keys run in order, so that sums into dq have one order whatever the
 * number of threads. A task's workspace is a few tiles. */
#include "../cpu.h"
#include "attention.h"
#include <math.h>
#include <string.h>

ISA_TABLE(const lc_attention, attention)
ISA_TABLE(const attention_few_fn, attention_few)
static const attention_kernels *kernels_of_this_cpu(lc_dtype dtype)
{
    const lc_attention *table = attention_of_this_cpu();
    return dtype == LC_f32 ? &table->f32 : &table->f64;
}

typedef struct {
    const lc_attention_args *args;
    const attention_kernels *kernels;
    lc_dtype                 dtype;
    int64_t                  heads, group, tiles; /* heads of q, and how many of them share one of k; tiles of queries */
    char                    *delta;               /* backward: (b, h, l) */
    size_t                   bytes;               /* of a thread's workspace */
    atomic_int               failed;
} attention_job;

static attention_matrix matrix_of(const lc_tensor *t, int64_t batch, int64_t head)
{
    if (!t) return (attention_matrix){ 0 };
    int64_t at = batch * t->stride[0] + head * t->stride[1];
    return (attention_matrix){ t->data + at * lc_size_of(t->dtype), t->stride[2], t->stride[3], (lc_dtype)t->dtype };
}
static attention_head head_of(const attention_job *job, int64_t number, void *workspace)
{
    const lc_attention_args *a = job->args;
    int64_t                  b = number / job->heads, i = number % job->heads, shared = i / job->group;
    int64_t                  l = a->q->shape[2], at = number * l * lc_size_of(job->dtype);
    return (attention_head){ .l = l,
                             .s = a->k->shape[2],
                             .e = a->q->shape[3],
                             .ev = a->v->shape[3],
                             .scale = a->scale,
                             .causal = a->causal,
                             .q = matrix_of(a->q, b, i),
                             .k = matrix_of(a->k, b, shared),
                             .v = matrix_of(a->v, b, shared),
                             .out = matrix_of(a->out, b, i),
                             .mask = matrix_of(a->mask, b, i),
                             .grad = matrix_of(a->grad, b, i),
                             .dq = matrix_of(a->dq, b, i),
                             .dk = matrix_of(a->dk, b, shared),
                             .dv = matrix_of(a->dv, b, shared),
                             .lse = a->lse->data + at,
                             .delta = job->delta ? job->delta + at : NULL,
                             .workspace = workspace,
                             .move = cpu_move,
                             .transpose = lc_cpu_moves.transpose[job->dtype == LC_f64] };
}

static void forward_tasks(void *ctx, int64_t begin, int64_t end)
{
    attention_job *job = ctx;
    void          *workspace = cpu_scratch(job->bytes);
    if (!workspace) job->failed = 1;
    for (int64_t task = begin; workspace && task < end; task++) {
        attention_head h = head_of(job, task / job->tiles, workspace);
        job->kernels->rows(&h, task % job->tiles * ATTENTION_ROWS);
    }
    if (workspace) cpu_scratch_free(workspace, job->bytes);
}
static void backward_tasks(void *ctx, int64_t begin, int64_t end)
{
    attention_job  *job = ctx;
    size_t          heads_bytes = (size_t)job->group * sizeof(attention_head);
    void           *workspace = cpu_scratch(job->bytes);
    attention_head *heads = workspace ? cpu_scratch(heads_bytes) : NULL;
    if (!heads) job->failed = 1;
    for (int64_t task = begin; heads && task < end; task++) {
        for (int64_t i = 0; i < job->group; i++) {
            heads[i] = head_of(job, task * job->group + i, workspace);
            job->kernels->sums(&heads[i]);
        }
        for (int64_t key = 0; key < heads->s; key += ATTENTION_KEYS) job->kernels->keys(heads, job->group, key);
    }
    if (heads) cpu_scratch_free(heads, heads_bytes);
    if (workspace) cpu_scratch_free(workspace, job->bytes);
}

static int prepare(attention_job *job, lc_dtype dtype, const lc_attention_args *a, int64_t *cost)
{
    const lc_tensor *q = a->q, *k = a->k, *v = a->v;
    job->args = a, job->dtype = dtype, job->kernels = kernels_of_this_cpu(dtype);
    job->heads = q->shape[1], job->group = k->shape[1] ? q->shape[1] / k->shape[1] : 1;
    job->tiles = (q->shape[2] + ATTENTION_ROWS - 1) / ATTENTION_ROWS;
    job->bytes = (size_t)(attention_workspace(q->shape[3], v->shape[3]) * lc_size_of(dtype));
    *cost = (k->shape[2] + 1) * (q->shape[3] + v->shape[3] + 16) / (a->causal ? 2 : 1) + 1; /* of a query */
    return 0;
}
static int outcome(const attention_job *job)
{
    if (job->failed) return lc_fail_int(LC_OutOfMemory, "scaled_dot_product_attention: no memory for its tiles");
    return 0;
}
static int cpu_attention(lc_dtype dtype, const void *args)
{
    const lc_attention_args *a = args;
    attention_job            job = { 0 };
    int64_t                  each;
    prepare(&job, dtype, a, &each);
    int64_t tasks = a->q->shape[0] * job.heads * job.tiles;
    if (!tasks) return 0;
    each *= a->q->shape[2] < ATTENTION_ROWS ? a->q->shape[2] : ATTENTION_ROWS;
    cpu_parallel(tasks, (1 << 18) / each + 1, tasks * each / 16, forward_tasks, &job);
    return outcome(&job);
}
static int cpu_attention_backward(lc_dtype dtype, const void *args)
{
    const lc_attention_args *a = args;
    attention_job            job = { 0 };
    int64_t                  each, l = a->q->shape[2], tasks = a->k->shape[0] * a->k->shape[1];
    prepare(&job, dtype, a, &each);
    size_t bytes = (size_t)(a->q->shape[0] * job.heads * l * lc_size_of(dtype)) + 1;
    if (!tasks) return 0;
    if (!(job.delta = cpu_scratch(bytes))) {
        job.failed = 1;
        return outcome(&job);
    }
    each *= 3 * l * job.group + 1;
    cpu_parallel(tasks, (1 << 18) / each + 1, tasks * each / 16, backward_tasks, &job);
    cpu_scratch_free(job.delta, bytes);
    return outcome(&job);
}

bool lc_attention_few(const float *q, const float *k, const float *v, float *out, int64_t seq, int64_t dim, bool causal)
{
    if (seq < 1 || dim < 1 || seq > ATTENTION_FEW || dim > ATTENTION_FEW) return false;
    (*attention_few_of_this_cpu())(q, k, v, out, seq, dim, (float)(1 / sqrt((double)dim)), causal);
    return true;
}
#define FLOATS (1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_attention, cpu_attention, FLOATS)
LC_CPU_RUN(_attention_backward, cpu_attention_backward, FLOATS)

/* Connectionist temporal classification. A sequence of n labels is extended to 2 n + 1 states by blanks between, before and
 * after them. alpha[t][s] is the log probability of all paths that are in state s at time t; a step comes from the same
 * state, from the previous one, or from two before if that skips a blank between different labels. The step is a loop over
 * states without dependences (cross_entropy.inc.c, compiled per instruction set): with two impossible states in front of the
 * line there is no edge case, and a forbidden skip adds -infinity. Backward runs the same step over the reversed line. alpha
 * + beta minus one score is the log posterior of a state, at most 0, so posteriors are summed without logarithms. Samples
 * are independent: threads take whole ones. The bound is three exponentials and a logarithm per state and step. */
#include "../cpu.h"
#include "cross_entropy.h"
#include "../../args.h"
#include <math.h>
#include <string.h>

typedef struct {
    const lc_ctc_args            *a;
    const lc_cross_entropy_lines *lines;
    lc_dtype                      dtype;
    int64_t                       steps, batch, classes, size;
    const int64_t                *first; /* start of each sample's labels */
    atomic_int                    failed;
} ctc_job;

/* Workspace of one sample, in elements of the dtype: three lines with two impossible states in front, scores, and the
 * posteriors of a step. */
typedef struct {
    char    *now, *before, *skip, *score, *share;
    int64_t *label; /* of each state */
    int64_t  states;
} ctc_lines;
enum { FRONT = 2 };

static double at(const ctc_job *j, const void *p, int64_t i)
{
    return j->dtype == LC_f32 ? (double)((const float *)p)[i] : ((const double *)p)[i];
}
static void put(const ctc_job *j, void *p, int64_t i, double v)
{
    if (j->dtype == LC_f32) ((float *)p)[i] = (float)v;
    else ((double *)p)[i] = v;
}
static size_t workspace_bytes(const ctc_job *j)
{
    size_t states = (size_t)(2 * j->a->longest + 1);
    return (4 * (states + FRONT) + (size_t)j->classes) * (size_t)j->size + states * sizeof(int64_t);
}
/* The states of sample b, from the first to the last or reversed. */
static void lay_out(const ctc_job *j, int64_t b, bool reversed, char *workspace, ctc_lines *l)
{
    int64_t        n = j->a->target_length[b], most = 2 * j->a->longest + 1 + FRONT;
    const int64_t *target = (const int64_t *)j->a->targets->data + j->first[b];
    l->states = 2 * n + 1;
    l->label = (int64_t *)workspace, workspace += (most - FRONT) * (int64_t)sizeof(int64_t);
    l->now = workspace, l->before = l->now + most * j->size, l->skip = l->before + most * j->size;
    l->score = l->skip + most * j->size, l->share = l->score + most * j->size;
    for (int64_t s = 0; s < l->states; s++) {
        int64_t from = reversed ? l->states - 1 - s : s;
        l->label[s] = from % 2 ? target[from / 2] : j->a->blank;
        bool may = s > 1 && l->label[s] != l->label[s - 2];
        put(j, l->skip, s, may ? 0 : -INFINITY);
    }
    for (int64_t s = 0; s < FRONT; s++) put(j, l->now, s, -INFINITY), put(j, l->before, s, -INFINITY);
}
static const char *scores_of(const ctc_job *j, int64_t t, int64_t b)
{
    return j->a->log_probs->data + (t * j->batch + b) * j->classes * j->size;
}
/* The line of one step in l->now; `start`: it is the first step. */
static void advance(const ctc_job *j, ctc_lines *l, int64_t t, int64_t b, bool start)
{
    const char *score = scores_of(j, t, b);
    char       *old = l->before;
    for (int64_t s = 0; s < l->states; s++) put(j, l->score, s, at(j, score, l->label[s]));
    l->before = l->now, l->now = old;
    if (!start) {
        j->lines->align(l->now + FRONT * j->size, l->before + FRONT * j->size, l->skip, l->score, l->states);
        return;
    }
    for (int64_t s = 0; s < l->states; s++) put(j, l->now, FRONT + s, s < 2 ? at(j, l->score, s) : -INFINITY);
}
static double joined(double x, double y)
{
    double m = x > y ? x : y;
    return m == -INFINITY ? m : m + log(exp(x - m) + exp(y - m));
}

static void forward_sample(const ctc_job *j, int64_t b, char *workspace)
{
    const lc_ctc_args *a = j->a;
    int64_t            steps = a->input_length[b], states = 2 * a->longest + 1, n = a->target_length[b];
    char              *alpha = a->alpha->data + b * j->steps * states * j->size;
    ctc_lines          l;
    lay_out(j, b, false, workspace, &l);
    for (int64_t k = 0; k < j->steps * states; k++) put(j, alpha, k, -INFINITY);
    for (int64_t t = 0; t < steps; t++) {
        advance(j, &l, t, b, t == 0);
        memcpy(alpha + t * states * j->size, l.now + FRONT * j->size, (size_t)(l.states * j->size));
    }
    double last = steps ? at(j, l.now, FRONT + 2 * n) : n ? -INFINITY : 0;
    put(j, a->nll->data, b, -(steps && n ? joined(last, at(j, l.now, FRONT + 2 * n - 1)) : last));
}

static void fill(const ctc_job *j, int64_t from, int64_t to, int64_t b, double value)
{
    for (int64_t t = from; t < to; t++)
        for (int64_t c = 0; c < j->classes; c++) put(j, j->a->out->data, (t * j->batch + b) * j->classes + c, value);
}
static void backward_sample(const ctc_job *j, int64_t b, char *workspace)
{
    const lc_ctc_args *a = j->a;
    int64_t            steps = a->input_length[b], states = 2 * a->longest + 1;
    const char        *alpha = a->alpha->data + b * j->steps * states * j->size;
    double             nll = at(j, a->nll->data, b), g = at(j, a->grad->data, b);
    ctc_lines          l;
    fill(j, steps, j->steps, b, 0);
    if (nll == INFINITY) {
        fill(j, 0, steps, b, a->zero_infinity ? 0 : NAN);
        return;
    }
    if (isnan(nll)) {
        fill(j, 0, steps, b, NAN);
        return;
    }
    lay_out(j, b, true, workspace, &l);
    for (int64_t t = steps - 1; t >= 0; t--) {
        const char *score = scores_of(j, t, b);
        advance(j, &l, t, b, t == steps - 1);
        for (int64_t c = 0; c < j->classes; c++) put(j, l.share, c, 0);
        for (int64_t s = 0; s < l.states; s++) {
            double both = at(j, alpha, t * states + l.states - 1 - s) + at(j, l.now, FRONT + s) - at(j, l.score, s) + nll;
            if (s == 0 && t == steps - 1 && l.states > 1 && l.label[1] == l.label[0])
                continue; /* PyTorch's last label overwrites */
            if (both > -INFINITY) put(j, l.share, l.label[s], at(j, l.share, l.label[s]) + exp(both));
        }
        for (int64_t c = 0; c < j->classes; c++)
            put(j, a->out->data, (t * j->batch + b) * j->classes + c, (exp(at(j, score, c)) - at(j, l.share, c)) * g);
    }
}
static void ctc_chunk(void *ctx, int64_t begin, int64_t end)
{
    ctc_job *j = ctx;
    size_t   bytes = workspace_bytes(j);
    char    *workspace = cpu_scratch(bytes);
    if (!workspace) {
        j->failed = 1;
        return;
    }
    for (int64_t b = begin; b < end; b++) (j->a->out ? backward_sample : forward_sample)(j, b, workspace);
    cpu_scratch_free(workspace, bytes);
}

static int cpu_ctc(lc_dtype dtype, const void *args)
{
    const lc_ctc_args *a = args;
    int64_t            batch = a->log_probs->shape[1], states = 2 * a->longest + 1;
    ctc_job            j = { .a = a,
                             .lines = cpu_cross_entropy_lines(dtype),
                             .dtype = dtype,
                             .steps = a->log_probs->shape[0],
                             .batch = batch,
                             .classes = a->log_probs->shape[2],
                             .size = lc_size_of(dtype) };
    const int64_t     *target = (const int64_t *)a->targets->data;
    int64_t           *first = cpu_scratch((size_t)(batch + 1) * sizeof *first), rc = 0;
    if (!first) return lc_fail_int(LC_OutOfMemory, "ctc_loss: no memory for %lld samples", (long long)batch);
    first[0] = 0;
    for (int64_t b = 0; b < batch; b++)
        first[b + 1] = first[b] + (a->targets->ndim == 1 ? a->target_length[b] : a->targets->shape[1]);
    for (int64_t b = 0; b < batch && rc == 0; b++)
        for (int64_t k = first[b]; k < first[b] + a->target_length[b] && rc == 0; k++)
            if (target[k] < 0 || target[k] >= j.classes)
                rc = lc_fail_int(LC_IndexError, "ctc_loss: target %lld is out of range", (long long)target[k]);
    j.first = first;
    if (rc == 0 && batch)
        cpu_parallel(batch, 1 + CPU_GRAIN / (8 * states * j.steps + 1), 16 * batch * states * j.steps, ctc_chunk, &j);
    cpu_scratch_free(first, (size_t)(batch + 1) * sizeof *first);
    if (j.failed) return lc_fail_int(LC_OutOfMemory, "ctc_loss: no memory for %lld states", (long long)states);
    return (int)rc;
}
LC_CPU_RUN(_ctc_loss, cpu_ctc, 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_ctc_loss_backward, cpu_ctc, 1u << LC_f32 | 1u << LC_f64)

/* Optimizer steps: one walk over the elements of all parameters, as if they were concatenated.
 *
 * A network has many small tensors. The sum of their elements is split into chunks for the threads, so that two hundred
 * vectors share the threads as one large matrix does. A chunk finds its first parameter by bisection. If all tensors of a
 * parameter are dense, in the same order and of float or double, the loop runs on them in place; otherwise lc_iter yields
 * rows, and operands that are strided or of another dtype pass through tiles in L1. float16 and bfloat16 are computed in
 * float32 and rounded once per step. */
#include "../cpu.h"
#include "optimizer.h"
#include "../../../tensor/iter.h"
#include <string.h>

enum { TILE = 512, STEP_GRAIN = 1 << 13 };

ISA_TABLE(const lc_step_loops, steps)
const lc_step_loops *cpu_step_loops(void) { return steps_of_this_cpu(); }

typedef struct {
    const lc_step_args  *args;
    const lc_step_loops *loops;
    const int64_t       *start; /* n + 1: start of each parameter among all elements */
} job;

typedef struct { /* one parameter */
    lc_step_loop           loop;
    const lc_step_numbers *numbers;
    int                    n, list[LC_STEP_LISTS]; /* the lists that the call has */
    lc_dtype               work;
    lc_dtype               dtype[LC_STEP_LISTS];
    char                  *tile; /* LC_STEP_LISTS x TILE of work */
} one;

static int tiled_row(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    one    *o = ctx;
    int64_t size = lc_size_of(o->work);
    for (int64_t begin = 0, m; begin < n; begin += m) {
        void *x[LC_STEP_LISTS] = { 0 };
        m = n - begin < TILE ? n - begin : TILE;
        for (int k = 0; k < o->n; k++) {
            char *at = ptr[k] + begin * stride[k], *tile = o->tile + o->list[k] * TILE * size;
            bool  direct = o->dtype[k] == o->work && stride[k] == size;
            if (!direct) cpu_move(o->work, tile, size, o->dtype[k], at, stride[k], m);
            x[o->list[k]] = direct ? at : tile;
        }
        o->loop(x, o->numbers, o->numbers->variant, m);
        for (int k = 0; k < o->n; k++) {
            char *at = ptr[k] + begin * stride[k], *tile = o->tile + o->list[k] * TILE * size;
            if (x[o->list[k]] == tile && o->list[k] != 1) cpu_move(o->dtype[k], at, stride[k], o->work, tile, size, m);
        }
    }
    return 0;
}

static bool lie_alike(const lc_step_args *a, int i, lc_dtype work)
{
    const lc_tensor *p = a->lists[0][i];
    if (p->dtype != work || !lc_is_dense(p)) return false;
    for (int k = 1; k < LC_STEP_LISTS; k++) {
        const lc_tensor *t = a->lists[k] ? a->lists[k][i] : p;
        if (t->dtype != work) return false;
        if ((!t->is_contiguous || !p->is_contiguous) && memcmp(t->stride, p->stride, (size_t)p->ndim * sizeof *p->stride))
            return false;
    }
    return true;
}

static void run_part(const job *j, int i, int64_t begin, int64_t end)
{
    const lc_step_args *a = j->args;
    lc_dtype            work = cpu_working_dtype((lc_dtype)a->lists[0][i]->dtype);
    lc_step_loop        loop = (work == LC_f64 ? j->loops->f64 : j->loops->f32)[a->kind];
    if (lie_alike(a, i, work)) {
        void *x[LC_STEP_LISTS] = { 0 };
        for (int k = 0; k < LC_STEP_LISTS; k++)
            if (a->lists[k]) x[k] = a->lists[k][i]->data + begin * lc_size_of(work);
        return loop(x, &a->numbers[i], a->numbers[i].variant, end - begin);
    }
    _Alignas(64) char tile[LC_STEP_LISTS * TILE * sizeof(double)];
    one               o = { .loop = loop, .numbers = &a->numbers[i], .work = work, .tile = tile };
    lc_iter           it;
    lc_iter_start(&it, a->lists[0][i]->ndim, a->lists[0][i]->shape);
    for (int k = 0; k < LC_STEP_LISTS; k++) {
        if (!a->lists[k]) continue;
        lc_iter_add(&it, a->lists[k][i]);
        o.dtype[o.n] = (lc_dtype)a->lists[k][i]->dtype, o.list[o.n++] = k;
    }
    lc_iter_prepare(&it, true);
    lc_iter_range(&it, begin, end, tiled_row, &o);
}

static void run_chunk(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    int        low = 0, high = j->args->n;
    while (high - low > 1) { /* the last parameter that starts at or before begin */
        int mid = low + (high - low) / 2;
        if (j->start[mid] <= begin) low = mid;
        else high = mid;
    }
    for (int i = low; i < j->args->n && j->start[i] < end; i++) {
        int64_t from = begin > j->start[i] ? begin - j->start[i] : 0;
        int64_t to = (end < j->start[i + 1] ? end : j->start[i + 1]) - j->start[i];
        if (from < to) run_part(j, i, from, to);
    }
}

static int cpu_step(UNUSED lc_dtype compute, const void *args)
{
    const lc_step_args *a = args;
    size_t              bytes = ((size_t)a->n + 1) * sizeof(int64_t);
    int64_t            *start = cpu_scratch(bytes);
    if (!start) return -1;
    start[0] = 0;
    for (int i = 0; i < a->n; i++) start[i + 1] = start[i] + a->lists[0][i]->numel;
    job j = { .args = a, .loops = cpu_step_loops(), .start = start };
    cpu_parallel(start[a->n], STEP_GRAIN, 4 * start[a->n], run_chunk, &j);
    cpu_scratch_free(start, bytes);
    return 0;
}

#define FLOATING (1u << LC_f16 | 1u << LC_bf16 | 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_fused_adam_, cpu_step, FLOATING) /* one kernel for all of them */

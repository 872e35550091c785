/* Optimizer steps: many parameters in one launch. Tensors of a parameter that do not lie alike are stepped in contiguous
 * copies. */
#include "../driver.h"
#include <string.h>

enum { MOST = 20, PIECE = 1024 };
typedef struct {
    int             n;
    int64_t         block[MOST + 1], elements[MOST];
    char           *lists[LC_STEP_LISTS][MOST];
    lc_step_numbers by[MOST], *made[MOST];
} steps_args; /* as in kernels/optim/optimizer.cuh */
typedef struct {
    int              n, count;
    lc_step_formula  formula;
    lc_step_numbers *made;
    void            *lr, *steps[MOST], *kept[LC_STEP_KEPT][MOST];
    uint32_t         lr_wide, steps_wide, kept_wide[LC_STEP_KEPT];
} counts_args; /* likewise */
CUDA_BODY(optimizer);

static int flush(steps_args *p, const cuda_program *q)
{
    int rc = p->n ? cuda_blocks(q, p->block[p->n], 256, p) : 0;
    p->n = 0, p->block[0] = 0;
    return rc;
}

static bool lie_alike(const lc_step_args *a, int i)
{
    const lc_tensor *p = a->lists[0][i];
    if (!lc_is_dense(p)) return false;
    for (int k = 1; k < LC_STEP_LISTS; k++) {
        const lc_tensor *t = a->lists[k] ? a->lists[k][i] : p;
        if (t->is_contiguous && p->is_contiguous) continue;
        for (int d = 0; d < p->ndim; d++)
            if (p->shape[d] != 1 && t->stride[d] != p->stride[d]) return false;
    }
    return true;
}

static int states_fit(const lc_step_args *a) /* before anything is written */
{
    for (int i = 0; i < a->n; i++) {
        const lc_tensor *first = NULL;
        for (int k = 2; k < LC_STEP_LISTS; k++) {
            const lc_tensor *state = a->lists[k] ? a->lists[k][i] : NULL;
            if (state && first && state->dtype != first->dtype)
                return lc_fail_int(LC_NotImplementedError, "cuda: optimizer states of several dtypes");
            first = state ? state : first;
        }
    }
    return 0;
}

static void *number_at(const lc_tensor *x, int bit, uint32_t *wide)
{
    *wide |= (uint32_t)(x->dtype == LC_f64) << bit;
    return x->data;
}
/* Coefficients on the device, n of them, from what lies there. */
static int make_numbers(const lc_step_args *a, lc_step_numbers *made)
{
    cuda_program q = { &optimizer_body, "coefficients", .variant = (int16_t)a->kind }; /* whatever the types */
    int          rc = 0;
    q.type[0] = q.type[1] = q.type[2] = CUDA_TYPE(LC_f32);
    for (int from = 0; from < a->n && rc == 0; from += MOST) {
        counts_args p = {
            .n = a->n - from < MOST ? a->n - from : MOST, .count = a->count, .formula = *a->formula, .made = made + from
        };
        if (a->lr) p.lr = number_at(a->lr, 0, &p.lr_wide);
        for (int t = 0; t < p.n; t++) {
            if (a->steps) p.steps[t] = number_at(a->steps[from + t], t, &p.steps_wide);
            for (int k = 0; k < LC_STEP_KEPT; k++)
                if (a->kept[k]) p.kept[k][t] = number_at(a->kept[k][from + t], t, &p.kept_wide[k]);
        }
        rc = cuda_map(&q, p.n, &p);
    }
    return rc;
}

enum { /* algorithms whose coefficients depend on the number of the step */
       COUNTING = 1 << LC_STEP_ADAM | 1 << LC_STEP_ADAGRAD | 1 << LC_STEP_ADAMAX | 1 << LC_STEP_NADAM | 1 << LC_STEP_RADAM |
                  1 << LC_STEP_ASGD
};
static int steps(UNUSED lc_op_id op, UNUSED lc_dtype compute, const void *args)
{
    const lc_step_args *a = args;
    steps_args          p = { .n = 0 };
    cuda_program        q = { &optimizer_body, "step", .variant = (int16_t)a->kind };
    lc_tensor          *copies[LC_STEP_LISTS] = { 0 };
    int                 rc = 0, device = -1;
    cuda_scratch        scratch = { 0 };
    lc_step_numbers    *made = NULL;
    if (a->numbers && cuda_capturing() && COUNTING >> a->kind & 1)
        return lc_fail_int(LC_NotImplementedError,
                           "the coefficients of this optimizer depend on its count of steps, which a captured "
                           "graph would repeat: make it with capturable=True, or call step() outside of the graph");
    if (states_fit(a) < 0) return -1;
    if (!a->numbers) {
        int where = a->lists[0][0]->device.index;
        if (cuda_use(where) < 0 || !(made = cuda_scratch_new(&scratch, where, (size_t)a->n * sizeof *made))) return -1;
        rc = make_numbers(a, made);
    }
    for (int i = 0; i < a->n && rc == 0; i++) {
        lc_tensor *t = a->lists[0][i], *x[LC_STEP_LISTS];
        if (!t->numel) continue;
        bool   alike = lie_alike(a, i);
        int8_t type[CUDA_TYPES] = { CUDA_TYPE(t->dtype), CUDA_TYPE(a->lists[1][i]->dtype) };
        for (int k = 2; k < LC_STEP_LISTS; k++)
            if (a->lists[k]) type[2] = CUDA_TYPE(a->lists[k][i]->dtype);
        if (!type[2]) type[2] = type[0];
        if (rc == 0 && (p.n == MOST || (p.n && (memcmp(type, q.type, sizeof type) || device != t->device.index))))
            rc = flush(&p, &q);
        device = t->device.index;
        if (rc < 0 || (rc = cuda_use(device)) < 0) break;
        memcpy(q.type, type, sizeof type);
        for (int k = 0; k < LC_STEP_LISTS && rc == 0; k++) {
            x[k] = a->lists[k] ? a->lists[k][i] : NULL;
            if (!x[k] || alike) continue;
            lc_tensor *copy = lc_tensor_new((lc_dtype)x[k]->dtype, x[k]->device, x[k]->ndim, x[k]->shape);
            rc = copy ? cuda_copy(copy, x[k]) : -1;
            copies[k] = x[k] = copy;
        }
        for (int k = 0; k < LC_STEP_LISTS && rc == 0; k++) p.lists[k][p.n] = x[k] ? x[k]->data : NULL;
        if (rc == 0) {
            p.elements[p.n] = t->numel, p.made[p.n] = made ? made + i : NULL;
            if (!made) p.by[p.n] = a->numbers[i];
            p.block[p.n + 1] = p.block[p.n] + (t->numel + PIECE - 1) / PIECE, p.n++;
        }
        if (alike) continue;
        if (rc == 0) rc = flush(&p, &q);
        for (int k = 0; k < LC_STEP_LISTS; k++) {
            if (rc == 0 && copies[k] && k != 1) rc = cuda_copy(a->lists[k][i], copies[k]);
            if (copies[k]) lc_release(copies[k]), copies[k] = NULL;
        }
    }
    if (rc == 0) rc = flush(&p, &q);
    return cuda_scratch_free(&scratch), rc;
}
CUDA_RUN(_fused_adam_, steps, CUDA_FLOATS) /* one kernel for all of them */

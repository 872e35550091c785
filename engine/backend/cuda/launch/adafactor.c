/* Adafactor: a few launches per parameter. Tensors that are not contiguous are stepped in contiguous copies. */
#include "launch.h"

enum { PIECE = 1024, TENSORS = 4 };
typedef struct {
    void   *p, *grad, *row, *column;
    int64_t n, matrices, rows, columns;
    int     alone;
    double  sign, shrink, share, rate, least, eps, most;
    double *of_rows, *of_columns, *parts, *by;
} adafactor_args; /* as in kernels/optim/adafactor.cuh */
CUDA_BODY(adafactor);

static int launch(cuda_program *q, adafactor_args *p)
{
    int64_t rows = p->matrices * p->rows;
#define BLOCKS(name, blocks)   (q->kernel = name, cuda_blocks(q, blocks, 256, p))
#define ELEMENTS(name, number) (q->kernel = name, cuda_map(q, number, p))
    if (BLOCKS("measure", rows) < 0) return -1;
    if (!p->alone && (ELEMENTS("average_columns", p->matrices * p->columns) < 0 || BLOCKS("average_rows", p->matrices) < 0))
        return -1;
    if (BLOCKS("size_of_update", rows) < 0 || BLOCKS("size_of_step", 1) < 0) return -1;
    return ELEMENTS("apply", p->n);
#undef BLOCKS
#undef ELEMENTS
}

static int step_parameter(const lc_adafactor_args *a, int i)
{
    const lc_adafactor_numbers *c = &a->numbers[i];
    lc_tensor                  *given[TENSORS] = { a->params[i], a->grads[i], a->rows[i], a->columns[i] }, *x[TENSORS] = { 0 };
    lc_tensor                  *p = given[0];
    bool                        alone = p->ndim < 2;
    int                         rc = 0;
    cuda_scratch                scratch = { 0 };
    if (!p->numel) return 0;
    if (given[3] && given[3]->dtype != given[2]->dtype)
        return lc_fail_int(LC_NotImplementedError, "cuda: optimizer states of several dtypes");
    if (cuda_use(p->device.index) < 0) return -1;
    for (int k = 0; k < TENSORS && rc == 0; k++) {
        if (!given[k]) continue;
        x[k] = given[k]->is_contiguous ? lc_retain(given[k])
                                       : lc_tensor_new((lc_dtype)given[k]->dtype, p->device, given[k]->ndim, given[k]->shape);
        rc = !x[k] ? -1 : x[k] == given[k] ? 0 : cuda_copy(x[k], given[k]);
    }
    if (rc == 0) {
        cuda_program   q = { &adafactor_body,
                             .type = { CUDA_TYPE(p->dtype), CUDA_TYPE(given[1]->dtype), CUDA_TYPE(given[2]->dtype) } };
        adafactor_args s = { x[0]->data, x[1]->data, x[2]->data, x[3] ? x[3]->data : NULL, .n = p->numel, .alone = alone };
        s.columns = alone ? PIECE : p->shape[p->ndim - 1];
        s.rows = alone ? (p->numel + PIECE - 1) / PIECE : p->shape[p->ndim - 2];
        s.matrices = alone ? 1 : p->numel / (s.rows * s.columns);
        s.sign = c->sign, s.shrink = c->shrink, s.share = c->share, s.rate = c->rate, s.least = c->least;
        s.eps = c->eps, s.most = c->most;
        int64_t rows = s.matrices * s.rows, columns = s.matrices * s.columns;
        s.of_rows = cuda_scratch_new(&scratch, p->device.index, (size_t)(3 * rows + columns + 1) * sizeof(double));
        rc = s.of_rows ? 0 : -1;
        if (rc == 0)
            s.parts = s.of_rows + rows, s.of_columns = s.parts + 2 * rows, s.by = s.of_columns + columns, rc = launch(&q, &s);
    }
    for (int k = 0; k < TENSORS; k++) {
        if (rc == 0 && x[k] && x[k] != given[k] && k != 1) rc = cuda_copy(given[k], x[k]);
        if (x[k]) lc_release(x[k]);
    }
    return cuda_scratch_free(&scratch), rc;
}
static int adafactor(UNUSED lc_op_id op, UNUSED lc_dtype dtype, const void *args)
{
    const lc_adafactor_args *a = args;
    int                      rc = 0;
    for (int i = 0; i < a->n && rc == 0; i++) rc = step_parameter(a, i);
    return rc;
}
CUDA_RUN(_fused_adafactor_, adafactor, CUDA_FLOATS)

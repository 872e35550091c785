/* Reductions, scans and ramps of complex numbers. Most need no kernel: the parts of a sum are sums of reals that lie two apart, any and all and
 * counts ask which elements are zero. */
#include "science.h"
#include "../../../tensor/iter.h"
#include <string.h>

enum { AXES = 12, THREADS = 128 };
typedef struct {
    int     ndim;
    int64_t n, shape[AXES], in[AXES], out[AXES];
} axes;
typedef struct {
    axes  kept, reduced;
    char *in, *out;
} fold_args; /* as in kernels/science/complex_lines.cuh */
CUDA_MATH_BODY(complex_lines);

static bool by_parts(lc_op_id op) { return op == LC_OP_sum || op == LC_OP_mean; }
static bool by_zeros(lc_op_id op) { return op == LC_OP_any || op == LC_OP_all || op == LC_OP_count_nonzero; }
bool        cuda_folds_complex(lc_op_id op) { return by_parts(op) || by_zeros(op) || op == LC_OP_prod; }

/* A complex tensor as a real one with a last dimension of two. */
static lc_tensor parts_of(const lc_tensor *t, int64_t *shape, int64_t *stride)
{
    lc_tensor real = *t;
    real.dtype = (uint8_t)lc_real_of(t->dtype), real.ndim++, real.numel *= 2, real.shape = shape, real.stride = stride;
    for (int d = 0; d < t->ndim; d++) shape[d] = t->shape[d], stride[d] = 2 * t->stride[d];
    shape[t->ndim] = 2, stride[t->ndim] = 1;
    return real;
}
static int fold_parts(lc_op_id op, const lc_reduce_args *a)
{
    int64_t        shape[2][LC_MAX_DIMS + 1], stride[2][LC_MAX_DIMS + 1];
    lc_tensor      in = parts_of(a->in, shape[0], stride[0]), value = parts_of(a->value, shape[1], stride[1]);
    lc_reduce_args r = { .in = &in, .value = &value, .mask = a->in->ndim ? a->mask : 0, .parameter = a->parameter };
    if (a->in->ndim >= LC_MAX_DIMS)
        return lc_fail_int(LC_NotImplementedError, "cuda: a complex sum over %d dimensions", LC_MAX_DIMS);
    for (int d = 0; d < a->in->ndim; d++) r.value_stride[d] = 2 * a->value_stride[d];
    r.value_stride[a->in->ndim] = 1;
    return cuda_reduce(op, lc_working_dtype((lc_dtype)in.dtype), &r);
}
static int fold_zeros(lc_op_id op, const lc_reduce_args *a)
{
    lc_reduce_args r = *a;
    if (!(r.in = lc_tensor_new(LC_b8, a->in->device, a->in->ndim, a->in->shape))) return -1;
    int rc = r.in->numel ? cuda_copy(r.in, a->in) : 0;
    if (rc == 0) rc = cuda_reduce(op, LC_b8, &r);
    return lc_release(r.in), rc;
}
static int take_axes(axes *to, const lc_reduce_args *a, bool reduced)
{
    int64_t shape[LC_MAX_DIMS], stride[2][LC_MAX_DIMS];
    int     n = 0;
    lc_iter it;
    for (int d = 0; d < a->in->ndim; d++)
        if ((a->mask >> d & 1) == reduced) {
            shape[n] = a->in->shape[d], stride[0][n] = a->in->stride[d] * lc_size_of(a->in->dtype);
            stride[1][n] = reduced ? 0 : a->value_stride[d] * lc_size_of(a->value->dtype), n++;
        }
    lc_iter_start(&it, n, shape);
    lc_iter_add_raw(&it, NULL, stride[0]), lc_iter_add_raw(&it, NULL, stride[1]);
    lc_iter_prepare(&it, true);
    if (it.ndim > AXES) return lc_fail_int(LC_NotImplementedError, "cuda: a product over more than %d dimensions", AXES);
    to->ndim = it.ndim, to->n = it.numel;
    for (int d = 0; d < it.ndim; d++) to->shape[d] = it.shape[d], to->in[d] = it.stride[0][d], to->out[d] = it.stride[1][d];
    return 0;
}
int cuda_reduce_complex(lc_op_id op, const lc_reduce_args *a)
{
    if ((by_parts(op) || op == LC_OP_prod) &&
        a->in->dtype != a->value->dtype) { /* cast first; a real dtype has no imaginary parts */
        lc_reduce_args r = *a;
        lc_dtype       to = (lc_dtype)a->value->dtype;
        if (!(r.in = lc_tensor_new(to, a->in->device, a->in->ndim, a->in->shape))) return -1;
        int rc = r.in->numel ? cuda_copy(r.in, a->in) : 0;
        if (rc == 0) rc = lc_is_complex(to) ? cuda_reduce_complex(op, &r) : cuda_reduce(op, lc_working_dtype(to), &r);
        return lc_release(r.in), rc;
    }
    if (by_parts(op)) return fold_parts(op, a);
    if (by_zeros(op)) return fold_zeros(op, a);
    if (op != LC_OP_prod || a->in->dtype != a->value->dtype) return LC_NO_KERNEL;
    fold_args    p = { .in = a->in->data, .out = a->value->data };
    cuda_program q = { &complex_lines_body, "product", .type = { CUDA_TYPE(a->in->dtype) } };
    if (!a->value->numel) return 0;
    if (cuda_use(a->in->device.index) < 0 || take_axes(&p.kept, a, false) < 0 || take_axes(&p.reduced, a, true) < 0) return -1;
    return cuda_blocks(&q, p.kept.n, THREADS, &p);
}

typedef struct {
    void   *out, *in;
    int64_t outer, n, inner;
} scan_args;
int cuda_scan_complex(lc_op_id op, lc_dtype dtype, const lc_scan_args *a, int64_t outer, int64_t n, int64_t inner)
{
    scan_args    p = { a->out->data, a->in->data, outer, n, inner };
    cuda_program q = { &complex_lines_body, "scan", .type = { CUDA_TYPE(dtype) }, .variant = op == LC_OP_logcumsumexp };
    return cuda_map(&q, outer * inner, &p);
}

typedef struct {
    void   *out;
    int64_t n, step_out;
    _Alignas(16) double start[2];
    double step[2], end[2], base[2];
    int    power;
} ramp_args;
int cuda_ramp_complex(lc_op_id op, lc_dtype dtype, const lc_ramp_args *a)
{
    int64_t      n = a->out->numel;
    ramp_args    p = { a->out->data,
                       n,
                    n ? a->out->stride[0] : 1,
                       { a->start, a->start_im },
                       .end = { a->end, a->end_im },
                       .base = { a->base, a->base_im },
                       .power = op == LC_OP_logspace };
    cuda_program q = { &complex_lines_body, "ramp", .type = { CUDA_TYPE(dtype) } };
    for (int k = 0; k < 2 && n > 1; k++) p.step[k] = (p.end[k] - p.start[k]) / (double)(n - 1);
    return cuda_map(&q, n, &p);
}

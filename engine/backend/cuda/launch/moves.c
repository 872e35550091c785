/* Ramps, triangles, padding, whole-tensor comparisons, nonzero and masked elements. */
#include "../science/science.h"
#include "../../../tensor/iter.h"
#include <string.h>

enum { DIMS = 12, PIECE = 1024 };
typedef struct {
    void   *out, *in;
    int64_t n, step_out, columns, rows, diagonal, shape[DIMS], out_stride[DIMS], in_stride[DIMS];
    int     ndim, upper, whole, power;
    double  start, step, end, base, low, high;
    int64_t start_int, step_int, size[3], result[3];
    void   *from[3];
    void   *flag;
    int     kind;
} moves_args; /* as in kernels/moves.cuh */
CUDA_BODY(moves);
enum { COMPUTED = 1 };

static double rounded(lc_dtype dtype, double v)
{
    switch (dtype) {
    case LC_f32:
        return (double)(float)v;
    case LC_f16:
        return (double)lc_f16_to_f32(lc_f32_to_f16((float)v));
    case LC_bf16:
        return (double)lc_bf16_to_f32(lc_f32_to_bf16((float)v));
    default:
        return lc_class_of(dtype) == LC_INT ? (double)(int64_t)v : v;
    }
}
static int ramp(lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_ramp_args *a = args;
    int64_t             n = a->out->numel;
    moves_args          p = { a->out->data,
                              .n = n,
                              .step_out = n ? a->out->stride[0] : 1,
                              .whole = lc_class_of(dtype) == LC_INT,
                              .start = a->start,
                              .step = a->step,
                              .end = a->end,
                              .base = a->base,
                              .start_int = a->start_int,
                              .step_int = a->step_int };
    cuda_program        q = { &moves_body, "arange", .type = { CUDA_TYPE(dtype) }, .variant = COMPUTED };
    if (!n) return 0;
    if (cuda_use(a->out->device.index) < 0) return -1;
    if (lc_is_complex(dtype)) return cuda_ramp_complex(op, dtype, a);
    if (op != LC_OP_arange) {
        p.start = n == 1 ? a->start : rounded(dtype, a->start), p.end = rounded(dtype, a->end);
        p.step = n > 1 ? (p.end - p.start) / (double)(n - 1) : 0, p.power = op == LC_OP_logspace;
        if (lc_is_floating(dtype)) p.step = rounded(dtype, p.step);
        q.kernel = "even";
    }
    return cuda_map(&q, n, &p);
}
CUDA_RUN(arange, ramp, ~(1u << LC_b8 | CUDA_COMPLEX))
CUDA_RUN(linspace, ramp, ~(1u << LC_b8 | 1u << LC_c32))
CUDA_RUN(logspace, ramp, ~(1u << LC_b8 | 1u << LC_c32))

static int triangle(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_triangle_args *a = args;
    int                     last = a->out->ndim - 1;
    moves_args              p = { a->out->data,         a->in->data,       .n = a->out->numel,
                                  .ndim = a->out->ndim, .upper = a->upper, .diagonal = a->diagonal };
    cuda_program            q = { &moves_body, "triangle", .type = { CUDA_WIDTH(dtype) } };
    if (!p.n) return 0;
    if (p.ndim > DIMS) return lc_fail_int(LC_NotImplementedError, "cuda: tril and triu of more than %d dimensions", DIMS);
    if (cuda_use(a->out->device.index) < 0) return -1;
    p.columns = a->out->shape[last], p.rows = a->out->shape[last - 1];
    for (int d = 0; d < p.ndim; d++)
        p.shape[d] = a->out->shape[d], p.out_stride[d] = a->out->stride[d], p.in_stride[d] = a->in->stride[d];
    return cuda_map(&q, p.n, &p);
}
CUDA_RUN(tril, triangle, ~0u)

static int pad_edges(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_pad_args *a = args;
    moves_args         p = { a->out->data, a->in->data, .n = a->out->numel };
    cuda_program       q = { &moves_body, "pad", .type = { CUDA_WIDTH(dtype) } };
    cuda_scratch       scratch = { 0 };
    int64_t            lengths = a->result[0] + a->result[1] + a->result[2];
    if (!p.n) return 0;
    if (cuda_use(a->out->device.index) < 0) return -1;
    int64_t *table = cuda_scratch_new(&scratch, a->out->device.index, (size_t)lengths * 8);
    int      rc = table ? 0 : -1;
    for (int d = 0; d < 3 && rc == 0; table += a->result[d++]) {
        p.size[d] = a->size[d], p.result[d] = a->result[d], p.from[d] = table;
        rc = cuda_upload(table, a->from[d], (size_t)a->result[d] * 8);
    }
    if (rc == 0) rc = cuda_map(&q, p.n, &p);
    return cuda_scratch_free(&scratch), rc;
}
CUDA_RUN(_pad_edges, pad_edges, ~0u)

static int within(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_within_args *a = args;
    moves_args            p = { .in = a->x->data,
                                .n = a->x->numel,
                                .ndim = a->x->ndim,
                                .low = a->low,
                                .high = a->high,
                                .kind = a->kind,
                                .flag = a->within->data };
    cuda_program          q = { &moves_body, "within", .type = { CUDA_TYPE(dtype) }, .variant = COMPUTED };
    if (p.ndim > DIMS) return lc_fail_int(LC_NotImplementedError, "cuda: a check of more than %d dimensions", DIMS);
    if (cuda_use(a->x->device.index) < 0 || cuda_set_bytes(a->within->data, 1, 1) < 0) return -1;
    for (int d = 0; d < p.ndim; d++) p.shape[d] = a->x->shape[d], p.in_stride[d] = a->x->stride[d];
    q.type[0] = CUDA_TYPE(a->x->dtype);
    return cuda_map(&q, p.n, &p);
}
CUDA_RUN(_within, within, ~CUDA_COMPLEX)

/* equal: the comparison, and whether it holds everywhere. */
static int equal(UNUSED lc_op_id op, lc_dtype compute, const void *args)
{
    const lc_equal_args *a = args;
    if (cuda_use(a->x->device.index) < 0) return -1;
    if (!a->x->numel) return cuda_set_bytes(a->equal->data, 1, 1);
    lc_tensor *same = lc_tensor_new(LC_b8, a->x->device, a->x->ndim, a->x->shape);
    if (!same) return -1;
    int rc = cuda_elementwise(LC_OP_eq, compute, same, (lc_tensor *const[]){ (lc_tensor *)a->x, (lc_tensor *)a->y }, 2);
    if (rc == 0) {
        lc_reduce_args r = { .in = same, .value = a->equal, .mask = same->ndim == 64 ? ~0ull : (1ull << same->ndim) - 1 };
        rc = cuda_reduce(LC_OP_all, LC_b8, &r);
    }
    return lc_release(same), rc;
}
CUDA_RUN(equal, equal, ~0u)

/* ---- elements under a mask ---- */
typedef struct {
    void   *mask, *starts, *count, *masked, *packed, *positions;
    int64_t n, pieces, total, shape[DIMS], stride[DIMS];
    int     ndim, scatter;
} chosen_args;

static lc_tensor *dense_mask(const lc_tensor *mask, int ndim, const int64_t *shape)
{
    lc_tensor *dense = lc_tensor_new(LC_b8, mask->device, ndim, shape);
    if (dense && dense->numel && cuda_copy(dense, mask) < 0) lc_release(dense), dense = NULL;
    return dense;
}
static int start_chosen(chosen_args *p, const cuda_program *like)
{
    cuda_program q = *like;
    q.kernel = "count_pieces";
    if (p->n && cuda_blocks(&q, p->pieces, 128, p) < 0) return -1;
    q.kernel = "start_pieces";
    return cuda_blocks(&q, 1, 256, p);
}
static int chosen(const lc_tensor *mask, const lc_tensor *of, chosen_args *p, cuda_program *q, bool moves, int64_t capacity)
{
    int64_t      total = 0;
    cuda_scratch scratch = { 0 }, one = { 0 };
    lc_tensor   *dense = dense_mask(mask, of->ndim, of->shape);
    if (!dense) return -1;
    if (of->ndim > DIMS)
        return lc_release(dense), lc_fail_int(LC_NotImplementedError, "cuda: masks of more than %d dimensions", DIMS);
    p->mask = dense->data, p->n = of->numel, p->pieces = (of->numel + PIECE - 1) / PIECE, p->ndim = of->ndim;
    for (int d = 0; d < of->ndim; d++) p->shape[d] = of->shape[d], p->stride[d] = of->stride[d];
    int rc = (p->starts = cuda_scratch_new(&scratch, of->device.index, (size_t)(p->pieces + 1) * 8)) ? 0 : -1;
    if (rc == 0 && !p->count) rc = (p->count = cuda_scratch_new(&one, of->device.index, 8)) ? 0 : -1;
    if (rc == 0) rc = start_chosen(p, q);
    if (rc == 0 && moves && capacity >= 0) { /* the elements there must be enough: the count is read */
        rc = cuda_read(&total, p->count, 8);
        if (rc == 0 && capacity < total)
            rc = lc_fail_int(LC_LucidError,
                             "masked_scatter: expected number of elements of source < number of ones in mask: %lld and %lld",
                             (long long)capacity, (long long)total);
    }
    if (rc == 0 && moves && p->n) q->kernel = "move_chosen", rc = cuda_blocks(q, p->pieces, 256, p);
    cuda_scratch_free(&scratch), cuda_scratch_free(&one);
    return lc_release(dense), rc;
}
static int nonzero(UNUSED lc_op_id op, UNUSED lc_dtype dtype, const void *args)
{
    const lc_nonzero_args *a = args;
    chosen_args            p = { .count = a->out ? NULL : a->count->data,
                                 .positions = a->out ? a->out->data : NULL,
                                 .total = a->out ? a->out->shape[0] : 0 };
    cuda_program           q = { &moves_body, .type = { CUDA_TYPE(LC_u8) } };
    if (cuda_use(a->in->device.index) < 0) return -1;
    if (a->out && !a->out->numel) return 0;
    return chosen(a->in, a->in, &p, &q, a->out, -1);
}
CUDA_RUN(nonzero, nonzero, ~0u)
static int masked(UNUSED lc_op_id op, UNUSED lc_dtype dtype, const void *args)
{
    const lc_mask_args *a = args;
    chosen_args         p = { .count = a->count ? a->count->data : NULL,
                              .masked = a->masked->data,
                              .packed = a->packed ? a->packed->data : NULL,
                              .scatter = a->scatter };
    cuda_program        q = { &moves_body, .type = { CUDA_WIDTH(a->masked->dtype) } };
    if (cuda_use(a->masked->device.index) < 0) return -1;
    return chosen(a->mask, a->masked, &p, &q, a->packed, a->packed ? a->packed->numel : -1);
}
CUDA_RUN(masked_select, masked, ~0u)
CUDA_RUN(masked_scatter, masked, ~0u)

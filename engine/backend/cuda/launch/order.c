/* Scans, sorts, and what sorted lines give: topk, medians, kthvalue, mode, ranks. */
#include "launch.h"

/* A tensor as (outer, n, inner) along a dimension; steps in elements. */
typedef struct {
    int64_t outer, n, inner, outer_step, step, inner_step;
} split;
static bool merged(const lc_tensor *t, int from, int to, int64_t *size, int64_t *step) /* dimensions [from, to) as one */
{
    *size = 1, *step = 0;
    for (int d = to - 1; d >= from; d--) {
        if (t->shape[d] == 1) continue;
        if (*size == 1) *step = t->stride[d];
        else if (t->stride[d] != *step * *size) return false;
        *size *= t->shape[d];
    }
    return true;
}
static bool split_at(const lc_tensor *t, int dim, split *s)
{
    if (t->ndim == 0) return *s = (split){ 1, 1, 1, 0, 1, 0 }, true;
    s->n = t->shape[dim], s->step = t->stride[dim];
    return merged(t, 0, dim, &s->outer, &s->outer_step) && merged(t, dim + 1, t->ndim, &s->inner, &s->inner_step);
}

/* ---- scans ---- */
typedef struct {
    void   *out, *index, *in;
    int64_t outer, n, inner;
} scan_args;
CUDA_BODY(scan);
static int scan(lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_scan_args *a = args;
    split               s;
    scan_args           p = { a->out->data, a->index ? a->index->data : NULL, a->in->data, 1, 1, 1 };
    int kind = op == LC_OP_cumsum ? 0 : op == LC_OP_cumprod ? 1 : op == LC_OP_cummax ? 2 : op == LC_OP_cummin ? 3 : 4;
    if (!a->out->numel) return 0;
    if (cuda_use(a->out->device.index) < 0) return -1;
    split_at(a->in, a->dim, &s);
    if (lc_is_complex(dtype) && op != LC_OP_cumsum) return cuda_scan_complex(op, dtype, a, s.outer, s.n, s.inner);
    if (lc_is_complex(dtype)) s.inner *= 2, dtype = lc_real_of(dtype); /* the parts of a sum are sums */
    p.outer = s.outer, p.n = s.n, p.inner = s.inner;
    cuda_program q = { &scan_body, "lanes", .type = { CUDA_TYPE(dtype) }, .variant = (int16_t)kind };
    int64_t      lines = s.outer * s.inner;
    if (s.n <= 32 || (s.inner > 1 && lines >= 2048)) return cuda_map(&q, lines, &p);
    return q.kernel = "line", cuda_blocks(&q, lines, 256, &p);
}
CUDA_RUN(cumsum, scan, CUDA_REAL | 1u << LC_c64 | 1u << LC_c128)
CUDA_RUN(cumprod, scan, CUDA_REAL | 1u << LC_c64 | 1u << LC_c128)
CUDA_RUN(cummax, scan, CUDA_REAL | 1u << LC_b8)
CUDA_RUN(cummin, scan, CUDA_REAL | 1u << LC_b8)
CUDA_RUN(logcumsumexp, scan, CUDA_F32_F64 | 1u << LC_c64 | 1u << LC_c128)

/* ---- sorts ---- */
typedef struct {
    void   *in, *order, *next;
    int64_t lines, n, run, k, in_line_outer, in_line_inner, in_step, inner;
    void   *values, *indices;
    int64_t out_outer, out_inner, out_step, at_outer, at_inner, at_step;
    void   *rank;
    int64_t m, kind;
} sort_args;
CUDA_BODY(sort);

typedef struct {
    sort_args    p;
    cuda_program q;
    lc_tensor   *copy; /* of an input whose dimensions do not merge */
    cuda_scratch scratch;
} sorting;
static int start_sort(sorting *s, const lc_tensor *in, int dim, bool descending)
{
    split x;
    int   device = in->device.index;
    if (cuda_use(device) < 0) return -1;
    if (!split_at(in, dim, &x)) {
        if (!(s->copy = lc_tensor_new((lc_dtype)in->dtype, in->device, in->ndim, in->shape)) || cuda_copy(s->copy, in) < 0)
            return -1;
        in = s->copy, split_at(in, dim, &x);
    }
    if (x.n > INT32_MAX) return lc_fail_int(LC_NotImplementedError, "cuda: sorting lines of more than 2^31 elements");
    s->p = (sort_args){ .in = in->data,
                        .lines = x.outer * x.inner,
                        .n = x.n,
                        .k = x.n,
                        .inner = x.inner,
                        .in_line_outer = x.outer_step,
                        .in_line_inner = x.inner_step,
                        .in_step = x.step };
    s->q = (cuda_program){ &sort_body, "start", .type = { CUDA_TYPE(in->dtype) }, .variant = descending };
    int64_t all = s->p.lines * x.n;
    char   *both = cuda_scratch_new(&s->scratch, device, (size_t)(2 * all) * sizeof(int));
    if (!both) return -1;
    s->p.order = both, s->p.next = both + all * (int64_t)sizeof(int);
    if (cuda_map(&s->q, all, &s->p) < 0) return -1;
    s->q.kernel = "merge";
    for (s->p.run = 1; s->p.run < x.n; s->p.run *= 2) {
        if (cuda_map(&s->q, all, &s->p) < 0) return -1;
        void *made = s->p.next;
        s->p.next = s->p.order, s->p.order = made;
    }
    return 0;
}
int cuda_order(const lc_tensor *keys, cuda_scratch *scratch, const int **order)
{
    sorting s = { 0 };
    int     rc = start_sort(&s, keys, 0, false);
    *scratch = s.scratch, *order = s.p.order;
    return rc;
}
static int end_sort(sorting *s, int rc)
{
    cuda_scratch_free(&s->scratch);
    if (s->copy) lc_release(s->copy);
    return rc;
}
/* Outputs as lines, like the input; through a contiguous copy where their dimensions do not merge. */
static int place_output(lc_tensor *t, int dim, lc_tensor **through, void **data, int64_t *outer, int64_t *inner, int64_t *step)
{
    split x;
    *through = NULL;
    if (!t) return 0;
    if (!split_at(t, dim, &x)) {
        if (!(*through = lc_tensor_new((lc_dtype)t->dtype, t->device, t->ndim, t->shape))) return -1;
        split_at(*through, dim, &x), *data = (*through)->data;
    } else *data = t->data;
    *outer = x.outer_step, *inner = x.inner_step, *step = x.step;
    return 0;
}
static int deliver(lc_tensor *to, lc_tensor *through, int rc)
{
    if (through && rc == 0) rc = cuda_copy(to, through);
    if (through) lc_release(through);
    return rc;
}

static int sort(lc_op_id op, UNUSED lc_dtype dtype, const void *args)
{
    const lc_sort_args *a = args;
    sorting             s = { 0 };
    lc_tensor          *v = NULL, *i = NULL;
    if (!a->in->numel) return 0;
    int rc = start_sort(&s, a->in, a->dim, a->descending);
    if (rc == 0) rc = place_output(a->values, a->dim, &v, &s.p.values, &s.p.out_outer, &s.p.out_inner, &s.p.out_step);
    if (rc == 0) rc = place_output(a->indices, a->dim, &i, &s.p.indices, &s.p.at_outer, &s.p.at_inner, &s.p.at_step);
    s.p.k = op == LC_OP_topk ? a->k : s.p.n;
    if (rc == 0) s.q.kernel = "take", rc = cuda_map(&s.q, s.p.lines * s.p.k, &s.p);
    rc = deliver(a->values, v, rc), rc = deliver(a->indices, i, rc);
    return end_sort(&s, rc);
}
CUDA_RUN(sort, sort, ~CUDA_COMPLEX)
CUDA_RUN(topk, sort, CUDA_REAL | CUDA_HALVES)

static int order_statistic(lc_op_id op, UNUSED lc_dtype dtype, const void *args)
{
    const lc_reduce_args *a = args;
    sorting               s = { 0 };
    lc_tensor            *in = a->in, *flat = NULL;
    int                   dim = 0;
    for (int d = 0; d < in->ndim; d++)
        if (a->mask >> d & 1) dim = d;
    if (!in->numel) return 0;
    if (in->dtype != a->value->dtype) { /* ranked in the computing dtype */
        if (!(flat = lc_tensor_new((lc_dtype)a->value->dtype, in->device, in->ndim, in->shape)) || cuda_copy(flat, in) < 0)
            return flat ? lc_release(flat), -1 : -1;
        in = flat;
    }
    int rc = start_sort(&s, in, dim, false);
    if (rc == 0) {
        lc_tensor at = *a->value,
                  index = a->index ? *a->index : *a->value; /* as lines: strides per dimension of in, none along dim */
        at.ndim = index.ndim = in->ndim, at.shape = index.shape = in->shape, at.stride = (int64_t *)a->value_stride;
        index.stride = (int64_t *)(a->index ? a->index_stride : a->value_stride);
        split x, y;
        if (!split_at(&at, dim, &x) || !split_at(&index, dim, &y))
            rc = lc_fail_int(LC_NotImplementedError, "cuda: an order statistic into a tensor with these strides");
        s.p.values = a->value->data, s.p.out_outer = x.outer_step, s.p.out_inner = x.inner_step;
        s.p.indices = a->index ? a->index->data : NULL, s.p.at_outer = y.outer_step, s.p.at_inner = y.inner_step;
        s.p.kind = op == LC_OP_kthvalue ? 2
                   : op == LC_OP_mode   ? 3
                                        : op == LC_OP_nanmedian || op == LC_OP_nanmedian_dim,
        s.p.k = (int64_t)a->parameter;
    }
    if (rc == 0) s.q.kernel = "choose", rc = cuda_map(&s.q, s.p.lines, &s.p);
    if (flat) lc_release(flat);
    return end_sort(&s, rc);
}
CUDA_RUN(median, order_statistic, CUDA_REAL)
CUDA_RUN(median_dim, order_statistic, CUDA_REAL)
CUDA_RUN(nanmedian, order_statistic, CUDA_REAL)
CUDA_RUN(nanmedian_dim, order_statistic, CUDA_REAL)
CUDA_RUN(kthvalue, order_statistic, CUDA_REAL)
CUDA_RUN(mode, order_statistic, CUDA_REAL | 1u << LC_b8)

static int ranked(UNUSED lc_op_id op, UNUSED lc_dtype dtype, const void *args)
{
    const lc_quantile_args *a = args;
    sorting                 s = { 0 };
    if (!a->rank->numel || !a->in->numel) return 0;
    int rc = start_sort(&s, a->in, a->in->ndim ? a->in->ndim - 1 : 0, false);
    s.p.rank = a->rank->data, s.p.values = a->value ? a->value->data : NULL, s.p.indices = a->index ? a->index->data : NULL;
    if (rc == 0) s.p.m = a->rank->numel / s.p.lines, s.q.kernel = "choose", rc = cuda_map(&s.q, a->rank->numel, &s.p);
    return end_sort(&s, rc);
}
CUDA_RUN(_ranked, ranked, CUDA_F32_F64)

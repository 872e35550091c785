/* searchsorted, isin, histograms, bincount, unique: by bisection of sorted sequences, and counts by atomic additions of 64-bit numbers.
 * The sizes of bincount's and unique's results depend on values: these calls wait for the device. */
#include "science.h"
#include <math.h>
#include <string.h>

/* ---- bytes there and back ---- */
int cuda_zero_bytes(void *p, size_t n) { return cuda_set_bytes(p, 0, n); }
int cuda_zero(const lc_tensor *t) { return cuda_zero_bytes(t->data, (size_t)(t->numel * lc_size_of(t->dtype))); }
int cuda_to_host(void *to, const void *from, size_t n, UNUSED int device) { return cuda_read(to, from, n); }
int cuda_to_device(void *to, const void *from, size_t n) { return cuda_upload(to, from, n); }

/* ---- searchsorted, isin ---- */
typedef struct {
    void         *out, *sequence, *values, *sorter;
    int64_t       n, each, count;
    int           one, right, invert, by_order;
    cuda_trouble *word;
} search_args;
CUDA_BODY(search);
enum { SEARCH, COUNT, HISTOGRAM };
static int searchsorted(UNUSED lc_op_id op, UNUSED lc_dtype dtype, const void *args)
{
    const lc_search_args *a = args;
    int                   device = a->out->device.index;
    search_args           p = { a->out->data,
                                a->sequence->data,
                                a->values->data,
                      a->sorter ? a->sorter->data : NULL,
                                a->n,
                                a->each,
                                a->out->numel,
                                a->one,
                                a->right,
                                false,
                                false,
                                NULL };
    cuda_program          q = { &search_body, "search", .type = { CUDA_TYPE(a->values->dtype), CUDA_TYPE(a->out->dtype) },
                                .variant = SEARCH };
    if (!p.count) return 0;
    if (cuda_use(device) < 0) return -1;
    p.word = cuda_trouble_word(device);
    return cuda_map(&q, p.count, &p);
}
CUDA_RUN(searchsorted, searchsorted, ~(CUDA_COMPLEX | 1u << LC_b8))

static int isin(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_isin_args *a = args;
    int64_t             n = a->tests->numel;
    search_args         p = { a->out->data, .values = a->elements->data, .n = n,       .count = a->out->numel,
                              .one = 1,     .invert = a->invert,         .by_order = 1 };
    cuda_program        q = { &search_body, "member", .type = { CUDA_TYPE(dtype), CUDA_TYPE(LC_i64) }, .variant = SEARCH };
    if (!p.count) return 0;
    if (cuda_use(a->out->device.index) < 0) return -1;
    lc_tensor *sorted = lc_tensor_new(dtype, a->tests->device, 1, &n), line = *a->tests;
    int        rc = sorted ? 0 : -1;
    line.ndim = 1, line.shape = &n, line.stride = &(int64_t){ 1 };
    if (rc == 0 && n)
        rc = cuda_call(LC_OP_sort, dtype, &(lc_sort_args){ .values = sorted, .in = &line, .k = n, .ordered = true });
    if (rc == 0) p.sequence = sorted->data, rc = cuda_map(&q, p.count, &p);
    if (sorted) lc_release(sorted);
    return rc;
}
CUDA_RUN(isin, isin, ~(CUDA_COMPLEX | 1u << LC_b8))

/* ---- counts ---- */
enum { DIMS = 8 };
typedef struct {
    void   *in, *weight, *table;
    int64_t n;
    int     dims, even;
    int64_t bins[DIMS];
    void   *edges[DIMS];
    double  low[DIMS], high[DIMS];
} count_args;
/* Counts into a table of 64-bit cells, then to the dtype of the result. */
static int count_into(count_args *p, cuda_program *q, lc_tensor *out, bool weighted)
{
    lc_tensor *table = lc_tensor_new(weighted ? LC_f64 : LC_i64, out->device, out->ndim, out->shape);
    int        rc = table ? cuda_zero(table) : -1;
    if (rc == 0 && p->n) p->table = table->data, rc = cuda_map(q, p->n, p);
    if (rc == 0 && out->numel) rc = cuda_copy(out, table);
    if (table) lc_release(table);
    return rc;
}
/* The smallest and largest value of a contiguous tensor, NaN if there is one: waits. */
static int range_of(const lc_tensor *in, double range[2])
{
    lc_dtype       dtype = (lc_dtype)in->dtype;
    lc_tensor     *both = lc_tensor_new(dtype, in->device, 1, &(int64_t){ 2 }), *wide = NULL, most, line = *in;
    lc_reduce_args r = { .in = &line, .value = both, .index = &most, .mask = 1 };
    int            rc = both ? 0 : -1;
    line.ndim = 1, line.shape = &(int64_t){ in->numel }, line.stride = &(int64_t){ 1 };
    if (rc == 0) most = *both, most.data += lc_size_of(dtype), rc = cuda_reduce(LC_OP_aminmax, lc_working_dtype(dtype), &r);
    if (rc == 0 && !(wide = lc_tensor_new(LC_f64, in->device, 1, &(int64_t){ 2 }))) rc = -1;
    if (rc == 0) rc = cuda_copy(wide, both);
    if (rc == 0) rc = cuda_to_host(range, wide->data, 16, in->device.index);
    if (both) lc_release(both);
    if (wide) lc_release(wide);
    return rc;
}
static int choose_range(const lc_histogram_args *a, double *low, double *high)
{
    double range[2] = { a->low, a->high };
    if (a->low == a->high && a->in->numel && range_of(a->in, range) < 0) return -1;
    if (range[0] == range[1]) range[0] -= 1, range[1] += 1;
    *low = range[0], *high = range[1];
    if (!isfinite(*low) || !isfinite(*high))
        return lc_fail_int(LC_LucidError, "histc: range of [%g, %g] is not finite", *low, *high);
    return *low >= *high ? lc_fail_int(LC_LucidError, "histc: max must be larger than min") : 0;
}
static int ends_of(const lc_tensor *edges, double *low, double *high)
{
    double     ends[2];
    int64_t    last = edges->numel - 1, apart = last ? last : 1;
    lc_tensor *wide = lc_tensor_new(LC_f64, edges->device, 1, &(int64_t){ 2 }), two = *edges;
    two.ndim = 1, two.numel = 2, two.shape = &(int64_t){ 2 }, two.stride = &apart;
    if (!last) two.stride = &(int64_t){ 0 };
    int rc = wide ? cuda_copy(wide, &two) : -1;
    if (rc == 0) rc = cuda_to_host(ends, wide->data, 16, edges->device.index);
    if (wide) lc_release(wide);
    return *low = ends[0], *high = ends[1], rc;
}
static int histogram(UNUSED lc_op_id op, UNUSED lc_dtype dtype, const void *args)
{
    const lc_histogram_args *a = args;
    count_args               p = { a->in->data, a->weight ? a->weight->data : NULL, .dims = a->dims, .even = a->even };
    cuda_program             q = { &search_body, "each_point",
                                   .type = { CUDA_TYPE(a->in->dtype), CUDA_TYPE(a->weight ? a->weight->dtype : LC_f64) },
                                   .variant = HISTOGRAM };
    if (a->dims > DIMS) return lc_fail_int(LC_NotImplementedError, "cuda: histograms of more than %d dimensions", DIMS);
    if (cuda_use(a->out->device.index) < 0) return -1;
    p.n = a->dims ? a->in->numel / a->dims : 0;
    for (int d = 0; d < a->dims; d++) {
        p.bins[d] = a->out->shape[d], p.edges[d] = a->edges ? a->edges[d]->data : NULL;
        if ((a->edges ? ends_of(a->edges[d], &p.low[d], &p.high[d]) : choose_range(a, &p.low[d], &p.high[d])) < 0) return -1;
    }
    return count_into(&p, &q, a->out, a->weight);
}
CUDA_RUN(histc, histogram, CUDA_FLOATS)
CUDA_RUN(_histogram, histogram, CUDA_F32_F64)

static int bincount(UNUSED lc_op_id op, UNUSED lc_dtype dtype, const void *args)
{
    const lc_bincount_args *a = args;
    double                  range[2] = { 0, -1 };
    if (cuda_use(a->in->device.index) < 0) return -1;
    if (!a->out) { /* how many */
        if (a->in->numel && range_of(a->in, range) < 0) return -1;
        if (range[0] < 0) return lc_fail_int(LC_LucidError, "bincount only supports 1-d non-negative integral inputs.");
        int64_t size = (int64_t)range[1] + 1;
        return cuda_to_device(a->size->data, &size, sizeof size);
    }
    count_args   p = { a->in->data, a->weights ? a->weights->data : NULL, .n = a->in->numel };
    cuda_program q = { &search_body, "each_value",
                       .type = { CUDA_TYPE(a->in->dtype), CUDA_TYPE(a->weights ? a->weights->dtype : LC_f64) },
                       .variant = COUNT };
    return count_into(&p, &q, a->out, a->weights);
}
CUDA_RUN(bincount, bincount, CUDA_INTS)

/* ---- unique ---- */
typedef struct {
    void   *in, *order, *next, *fresh, *starts, *chosen, *counts, *inverse;
    int64_t n, width, run, groups;
    int     slices, sorted;
} unique_args;
CUDA_BODY(unique);
static int sort_slices(unique_args *p, cuda_program *q)
{
    q->kernel = "start";
    int rc = cuda_map(q, p->n, p);
    q->kernel = "merge";
    for (p->run = 1; p->run < p->n && rc == 0; p->run *= 2) {
        rc = cuda_map(q, p->n, p);
        void *made = p->next;
        p->next = p->order, p->order = made;
    }
    return rc;
}
static int make_groups(const lc_unique_args *a, unique_args *p, cuda_program *q, lc_tensor *fresh, lc_tensor *count)
{
    int64_t         groups = 0;
    lc_tensor      *starts = NULL;
    lc_nonzero_args chosen = { .in = fresh, .count = count };
    if (cuda_call(LC_OP_nonzero, LC_b8, &chosen) < 0) return -1;
    if (cuda_to_host(&groups, count->data, 8, a->in->device.index) < 0 || a->make(a, groups) < 0) return -1;
    if (!(starts = lc_tensor_new(LC_i64, a->in->device, 2, (int64_t[]){ groups, 1 }))) return -1;
    chosen.out = starts;
    int rc = cuda_call(LC_OP_nonzero, LC_b8, &chosen);
    p->starts = starts->data, p->groups = groups, p->chosen = a->outputs->chosen->data;
    p->counts = a->outputs->counts ? a->outputs->counts->data : NULL;
    if (rc == 0) q->kernel = "choose", rc = cuda_map(q, groups, p);
    if (rc == 0 && a->inverse) p->inverse = a->inverse->data, q->kernel = "invert", rc = cuda_map(q, p->n, p);
    if (rc == 0) rc = cuda_to_device(a->found->data, &groups, 8);
    return lc_release(starts), rc;
}
static int unique(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_unique_args *a = args;
    int                   device = a->in->device.index, rc = 0;
    unique_args           p = { a->in->data, .n = a->n, .width = a->width, .slices = a->slices, .sorted = !a->consecutive };
    cuda_program          q = { &unique_body, .type = { CUDA_TYPE(dtype) } };
    cuda_scratch          scratch = { 0 };
    if (cuda_use(device) < 0) return -1;
    if (a->n > INT32_MAX) return lc_fail_int(LC_NotImplementedError, "cuda: unique of more than 2^31 values");
    if (!a->n) return a->make(a, 0) < 0 ? -1 : cuda_to_device(a->found->data, &(int64_t){ 0 }, 8);
    lc_tensor *fresh = lc_tensor_new(LC_b8, a->in->device, 1, &a->n), *count = lc_tensor_new(LC_i64, a->in->device, 0, NULL);
    if (!fresh || !count) rc = -1;
    if (rc == 0 && p.sorted) {
        p.order = cuda_scratch_new(&scratch, device, (size_t)a->n * 2 * sizeof(int));
        p.next = (char *)p.order + a->n * (int64_t)sizeof(int);
        rc = p.order ? sort_slices(&p, &q) : -1;
    }
    if (rc == 0) p.fresh = fresh->data, q.kernel = "mark", rc = cuda_map(&q, a->n, &p);
    if (rc == 0) rc = make_groups(a, &p, &q, fresh, count);
    if (fresh) lc_release(fresh);
    if (count) lc_release(count);
    return cuda_scratch_free(&scratch), rc;
}
CUDA_RUN(unique, unique, ~CUDA_COMPLEX)

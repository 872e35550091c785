/* Indexing of every kind and embeddings. A bad index is skipped and reported (driver.h); reads give zero there.
 *
 * What meets at one element is combined by atomics; where the order must not vary (a->ordered), the positions are sorted by their
 * element, stably, and the first of each group combines its group. Only the dimensions along which an index moves are sorted:
 * along the others, positions of different groups cannot meet. */
#include "launch.h"
#include "../../../tensor/iter.h"
#include <string.h>

enum { DIMS = 12, INDICES = 6 };
typedef struct {
    void         *indexed, *walked;
    int           ndim, n_index, wraps, flat, flat_ndim;
    int64_t       n, shape[DIMS], indexed_stride[DIMS], walked_stride[DIMS];
    void         *index[INDICES];
    int64_t       stride[INDICES][DIMS], size[INDICES], step[INDICES], dim[INDICES];
    int64_t       flat_shape[DIMS], flat_stride[DIMS];
    cuda_trouble *word;
    void         *keys, *from;
    const int    *order;
    int64_t       sorted;
    int           sorted_ndim;
} index_args;
CUDA_BODY(index);

/* Whether the order of duplicates shows in the result: sums of integers, extremes and a single value give the same in any. */
static bool order_matters(const lc_index_args *a, lc_dtype dtype)
{
    bool one = true;
    for (int d = 0; d < a->ndim; d++) one = one && (a->walked_stride[d] == 0 || a->shape[d] == 1);
    if (a->mode == LC_INDEX_WRITE) return !one;
    return (a->mode == LC_INDEX_ADD || a->mode == LC_INDEX_MULTIPLY) && lc_is_floating(dtype);
}
/* The dimensions of the walk, those along which an index moves first. */
static void moving_first(const lc_index_args *a, int place[LC_MAX_DIMS])
{
    int n = 0;
    for (int pass = 1; pass >= 0; pass--)
        for (int d = 0; d < a->ndim; d++) {
            bool moves = false;
            for (int k = 0; k < a->n_index; k++) moves = moves || (a->index[k].stride[d] && a->shape[d] != 1);
            if (moves == pass) place[n++] = d;
        }
}
static bool moves_along(const index_args *p, int d)
{
    bool moves = false;
    for (int k = 0; k < p->n_index; k++) moves = moves || p->stride[k][d];
    return moves;
}
static int run_sorted(cuda_program *q, index_args *p, int device)
{
    cuda_scratch from = { 0 }, order = { 0 };
    lc_tensor   *keys = lc_tensor_new(LC_i64, (lc_device){ LC_CUDA, (int8_t)device }, 1, &p->sorted);
    int          rc = keys && (p->from = cuda_scratch_new(&from, device, (size_t)p->sorted * 8)) ? 0 : -1;
    if (rc == 0) p->keys = keys->data, q->kernel = "place", rc = cuda_map(q, p->sorted, p);
    if (rc == 0) rc = cuda_order(keys, &order, &p->order);
    if (rc == 0) q->kernel = "combine", rc = cuda_map(q, p->n, p);
    if (keys) lc_release(keys);
    return cuda_scratch_free(&from), cuda_scratch_free(&order), rc;
}

static int run_index(UNUSED lc_op_id op, UNUSED lc_dtype compute, const void *args)
{
    const lc_index_args *a = args;
    index_args           p = { a->indexed->data, a->walked->data, .n_index = a->n_index, .wraps = a->wraps, .flat = a->flat };
    lc_dtype             dtype = (lc_dtype)a->indexed->dtype;
    bool                 moves = a->mode <= LC_INDEX_WRITE, parts = !moves && lc_is_complex(dtype);
    if (parts && a->mode != LC_INDEX_ADD) return LC_NO_KERNEL;
    if (a->n_index > INDICES || a->ndim + parts > LC_MAX_DIMS)
        return lc_fail_int(LC_NotImplementedError, "cuda: indexing with more than %d index tensors", INDICES);
    if (cuda_use(a->indexed->device.index) < 0) return -1;
    if (a->start && cuda_copy(a->indexed, a->start) < 0) return -1;
    lc_iter it;
    bool    sorted = a->ordered && order_matters(a, parts ? lc_real_of(dtype) : dtype);
    int     place[LC_MAX_DIMS];
    int64_t shape[LC_MAX_DIMS], stride[2 + INDICES][LC_MAX_DIMS], scale = 1 + parts;
    moving_first(a, place);
    for (int d = 0; d < a->ndim; d++) {
        int from = sorted ? place[d] : d;
        shape[d] = a->shape[from], stride[0][d] = a->indexed_stride[from] * scale,
        stride[1][d] = a->walked_stride[from] * scale;
        for (int k = 0; k < a->n_index; k++) stride[2 + k][d] = a->index[k].stride[from];
    }
    if (parts) { /* complex numbers are added as pairs of reals: a dimension more */
        dtype = lc_real_of(dtype), shape[a->ndim] = 2, stride[0][a->ndim] = stride[1][a->ndim] = 1;
        for (int k = 0; k < a->n_index; k++) stride[2 + k][a->ndim] = 0;
    }
    lc_iter_start(&it, a->ndim + parts, shape);
    for (int k = 0; k < 2 + a->n_index; k++) lc_iter_add_raw(&it, NULL, stride[k]);
    lc_iter_prepare(&it, !sorted);
    if (it.ndim > DIMS || (a->flat && a->indexed->ndim > DIMS))
        return lc_fail_int(LC_NotImplementedError, "cuda: indexing over more than %d dimensions", DIMS);
    p.ndim = it.ndim, p.n = it.numel;
    for (int d = 0; d < it.ndim; d++) {
        p.shape[d] = it.shape[d], p.indexed_stride[d] = it.stride[0][d], p.walked_stride[d] = it.stride[1][d];
        for (int k = 0; k < a->n_index; k++) p.stride[k][d] = it.stride[2 + k][d];
    }
    for (int k = 0; k < a->n_index; k++)
        p.index[k] = a->index[k].index->data, p.size[k] = a->index[k].size, p.step[k] = a->index[k].step * scale,
        p.dim[k] = a->index[k].dim;
    if (a->flat) {
        p.flat_ndim = a->indexed->ndim;
        for (int d = 0; d < p.flat_ndim; d++)
            p.flat_shape[d] = a->indexed->shape[d], p.flat_stride[d] = a->indexed->stride[d] * scale;
    }
    p.word = cuda_trouble_word(a->indexed->device.index);
    cuda_program q = { &index_body, "run", .type = { moves ? CUDA_WIDTH(dtype) : CUDA_TYPE(dtype) },
                       .variant = (int16_t)a->mode };
    for (p.sorted = 1; sorted && p.sorted_ndim < p.ndim && moves_along(&p, p.sorted_ndim); p.sorted_ndim++)
        p.sorted *= p.shape[p.sorted_ndim];
    return sorted && p.n && p.sorted > 1 ? run_sorted(&q, &p, a->indexed->device.index) : cuda_map(&q, p.n, &p);
}
CUDA_RUN(_index, run_index, ~0u)
CUDA_RUN(_index_put, run_index, ~0u)

/* ---- embeddings ---- */
typedef struct {
    void         *out, *index, *table, *other, *ids, *bags, *factors;
    int64_t       n, n_bags, rows, width, padding;
    cuda_trouble *word;
    void         *counts;
    const int    *order;
} embedding_args;
CUDA_BODY(embedding);
#define DATA(t) ((t) ? (t)->data : NULL)
static int run_embedding(lc_op_id op, UNUSED lc_dtype compute, const void *args)
{
    const lc_embedding_args *a = args;
    int                      device = a->out->device.index, rc = 0;
    lc_dtype                 dtype = (lc_dtype)a->out->dtype;
    embedding_args           p = {
                  a->out->data,     DATA(a->index), DATA(a->table), DATA(a->other), a->ids->data, DATA(a->bags),
                  DATA(a->factors), a->n,           a->n_bags,      a->rows,        a->width,     .padding = a->padding
    };
    cuda_program q = { &embedding_body, .type = { CUDA_TYPE(dtype) }, .variant = 1 };
    cuda_scratch scratch = { 0 };
    if (cuda_use(device) < 0) return -1;
    p.word = cuda_trouble_word(device);
    int64_t samples = a->n * a->width, bags = (a->bags ? a->n_bags : a->n) * a->width;
    if (!a->bags) p.n_bags = a->n;
    if (op == LC_OP_embedding) {
        q.kernel = "copy_rows", q.type[0] = CUDA_WIDTH(dtype), q.variant = 0;
        return cuda_map(&q, samples, &p);
    }
    if (op == LC_OP__embedding_sum) return q.kernel = "sum_rows", cuda_map(&q, bags, &p);
    if (op == LC_OP__embedding_dot) return q.kernel = "dot_rows", cuda_map(&q, a->n, &p);
    if (op == LC_OP__embedding_max) return q.kernel = "max_rows", cuda_map(&q, bags, &p);
    if (!a->out->numel) return 0;
    if (cuda_set_bytes(a->out->data, 0, (size_t)(a->out->numel * lc_size_of(dtype))) < 0) return -1;
    if (a->by_frequency) {
        if (a->bags) return lc_fail_int(LC_NotImplementedError, "scale_grad_by_freq with bags is not implemented on cuda");
        if (!(p.counts = cuda_scratch_new(&scratch, device, (size_t)a->rows * 8))) return -1;
        rc = cuda_set_bytes(p.counts, 0, (size_t)a->rows * 8);
        if (rc == 0) q.kernel = "count_rows", rc = cuda_map(&q, a->n, &p);
    }
    cuda_scratch order = { 0 };
    if (rc == 0 && a->ordered && a->n) {
        lc_tensor *ids = lc_tensor_view((lc_tensor *)a->ids, 1, &a->n, &(int64_t){ 1 }, 0);
        rc = ids ? cuda_order(ids, &order, &p.order) : -1;
        if (ids) lc_release(ids);
    }
    if (rc == 0) q.kernel = a->ordered ? "add_sorted_rows" : "add_rows", rc = cuda_map(&q, samples, &p);
    return cuda_scratch_free(&scratch), cuda_scratch_free(&order), rc;
}
CUDA_RUN(embedding, run_embedding, ~0u)
CUDA_RUN(_embedding_sum, run_embedding, CUDA_F32_F64)
CUDA_RUN(_embedding_backward, run_embedding, CUDA_F32_F64)
CUDA_RUN(_embedding_dot, run_embedding, CUDA_F32_F64)
CUDA_RUN(_embedding_max, run_embedding, CUDA_F32_F64)

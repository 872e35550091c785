/* Reductions: the layout decides how outputs and elements are spread over threads (kernels/reduce.cuh). How they are spread
 * depends on shapes and strides only, so results repeat. */
#include "../../folds.h"
#include "../science/science.h"
#include "../../../tensor/iter.h"
#include <string.h>

enum { DIMS = 12, THREADS = 256 };
typedef struct {
    int     ndim;
    int64_t n, shape[DIMS], in[DIMS], value[DIMS], index[DIMS];
} part;
typedef struct {
    part    kept, reduced;
    char   *in, *value, *index;
    void   *partial;
    int64_t slices;
    double  parameter;
    int     neighbours;
} reduction; /* as in kernels/reduce.cuh */
enum { STATE_BYTES = 24 };

CUDA_BODY(reduce);
static int fold_of(lc_op_id op)
{
    static const lc_op_id folds[] = {
#define X(op) LC_OP_##op,
        EACH_FOLD(X)
#undef X
    };
    for (int i = 0; i < (int)(sizeof folds / sizeof *folds); i++)
        if (folds[i] == op) return i;
    return -1;
}
bool cuda_has_fold(lc_op_id op, lc_dtype compute)
{
    if (lc_is_complex(compute)) return cuda_folds_complex(op);
    if (fold_of(op) < 0) return false;
    return compute != LC_u64 || op == LC_OP_any || op == LC_OP_all || op == LC_OP_count_nonzero;
}

static int take_part(part *p, const lc_reduce_args *a, bool reduced)
{
    int64_t shape[LC_MAX_DIMS], stride[3][LC_MAX_DIMS];
    int     n = 0;
    lc_iter it;
    for (int d = 0; d < a->in->ndim; d++)
        if ((a->mask >> d & 1) == reduced) {
            shape[n] = a->in->shape[d];
            stride[0][n] = a->in->stride[d] * lc_size_of(a->in->dtype);
            stride[1][n] = a->value && !reduced ? a->value_stride[d] * lc_size_of(a->value->dtype) : 0;
            stride[2][n] = a->index && !reduced ? a->index_stride[d] * lc_size_of(a->index->dtype) : 0;
            n++;
        }
    lc_iter_start(&it, n, shape);
    for (int k = 0; k < 3; k++) lc_iter_add_raw(&it, NULL, stride[k]);
    lc_iter_prepare(&it, !(reduced && a->index)); /* an index counts in the order of the dimensions */
    if (it.ndim > DIMS) return lc_fail_int(LC_NotImplementedError, "cuda: a reduction over more than %d dimensions", DIMS);
    *p = (part){ .ndim = it.ndim, .n = it.numel };
    for (int d = 0; d < it.ndim; d++)
        p->shape[d] = it.shape[d], p->in[d] = it.stride[0][d], p->value[d] = it.stride[1][d], p->index[d] = it.stride[2][d];
    return 0;
}

/* Folds that only add (IS_PLAIN in the kernels). */
static bool only_adds(lc_op_id op)
{
    return op == LC_OP_sum || op == LC_OP_mean || op == LC_OP_nansum || op == LC_OP_count_nonzero || op == LC_OP_norm_one ||
           op == LC_OP_norm_two || op == LC_OP__count_numbers;
}

/* Sums of many rows, column by column, as for the gradient of a bias. Slices of rows make enough blocks to hide the latency of
 * memory, and so many that the last wave of blocks does not count. */
static int sum_columns(cuda_program *p, reduction *r, int device, int size)
{
    enum { WAVES = 16 * 132, LEAST_ROWS = 64 };
    int64_t      wide = 16 / size, columns = r->kept.n, blocks = (columns + 32 * wide - 1) / (32 * wide);
    cuda_scratch scratch = { 0 };
    r->neighbours = columns % wide == 0 && columns >= 16 * wide && (uintptr_t)r->in % 16 == 0 && r->reduced.in[0] % 16 == 0;
    r->slices = (WAVES + blocks - 1) / blocks;
    if (r->slices > r->reduced.n / LEAST_ROWS) r->slices = r->reduced.n / LEAST_ROWS;
    if (r->slices < 1) r->slices = 1;
    if (r->slices > 1 && !(r->partial = cuda_scratch_new(&scratch, device, (size_t)(columns * r->slices * 8)))) return -1;
    p->kernel = "wide_columns";
    int rc = cuda_blocks(p, blocks * r->slices, THREADS, r);
    if (rc == 0 && r->partial) p->kernel = "wide_slices", rc = cuda_blocks(p, (columns + 31) / 32, THREADS, r);
    cuda_scratch_free(&scratch);
    return rc;
}

int cuda_reduce(lc_op_id op, lc_dtype compute, const lc_reduce_args *a)
{
    const lc_tensor *x = a->in;
    int              fold = fold_of(op);
    lc_tensor       *result = a->value ? a->value : a->index;
    lc_dtype         acc = compute == LC_f64 ? LC_f64 : lc_is_floating(compute) ? LC_f32 : LC_i64;
    if (fold < 0) return LC_NO_KERNEL;
    if (lc_is_complex(x->dtype) || (a->value && lc_is_complex(a->value->dtype))) return cuda_reduce_complex(op, a);
    reduction r = { .in = x->data, .slices = 1, .parameter = a->parameter };
    if (result->numel == 0) return 0;
    if (cuda_use(x->device.index) < 0 || take_part(&r.kept, a, false) < 0 || take_part(&r.reduced, a, true) < 0) return -1;
    r.value = a->value ? a->value->data : NULL, r.index = a->index ? a->index->data : NULL;
    cuda_program p = { &reduce_body,
                       .type = { CUDA_TYPE(x->dtype), CUDA_TYPE(a->value ? a->value->dtype : LC_i64), CUDA_TYPE(acc) },
                       .variant = (int16_t)fold };
    int64_t      near = r.reduced.ndim ? r.reduced.in[r.reduced.ndim - 1] : 0;
    int64_t      beside = r.kept.ndim ? r.kept.in[r.kept.ndim - 1] : INT64_MAX, outputs = r.kept.n, n = r.reduced.n;
    bool         columns = r.kept.ndim && beside < near && r.kept.shape[r.kept.ndim - 1] > 8;
    if (n <= 8 || (n <= 64 && columns && outputs >= 1 << 15)) return p.kernel = "each", cuda_map(&p, outputs, &r);
    int size = (int)lc_size_of(x->dtype);
    if (columns && n >= 4 * 64 && only_adds(op) && r.kept.ndim == 1 && r.reduced.ndim == 1 && beside == size)
        return sum_columns(&p, &r, x->device.index, size);
    int64_t blocks = columns ? (outputs + 31) / 32 : outputs, least = columns ? 64 : 4096, enough = 4 * 132;
    if (blocks < enough) {
        r.slices = (enough + blocks - 1) / blocks;
        if (r.slices > n / least) r.slices = n / least;
        if (r.slices < 1) r.slices = 1;
    }
    cuda_scratch scratch = { 0 };
    if (r.slices > 1 && !(r.partial = cuda_scratch_new(&scratch, x->device.index, (size_t)(outputs * r.slices * STATE_BYTES))))
        return -1;
    int threads = columns || n >= 1024 ? THREADS : n >= 256 ? 128 : 32;
    p.kernel = columns ? "columns" : "rows";
    int rc = cuda_blocks(&p, blocks * r.slices, threads, &r);
    if (rc == 0 && r.partial) p.kernel = "slices", rc = cuda_blocks(&p, outputs, r.slices > 64 ? 128 : 32, &r);
    cuda_scratch_free(&scratch);
    return rc;
}

/* Products with what follows them: scale, addend, activation, residual, a second product of low rank. In order: a kernel of
 * our own for small products of one launch (kernels/small_product.cuh), cuBLASLt's epilogues (blaslt.c), else the product and
 * then elementwise steps. */
#include "products.h"
#include <string.h>

typedef struct {
    void   *out, *a, *b, *addend, *residual, *down, *up;
    int64_t batch, m, n, k, rank, together, out_at[3], a_at[3], b_at[3], addend_at[3], residual_at[3], down_at[2], up_at[2];
    double  scale, addend_scale, low_scale;
    int     accumulate, low_aligned;
} small_product; /* as in kernels/small_product.cuh */
CUDA_BODY(small_product);
enum { MOST_WARPS = 8, TILE = 32, MOST_RANK = 16, MOST_FACTORS = 1 << 24, ENOUGH_BLOCKS = 264, PIECE = 16, BESIDE = 16 };

int cuda_activation(lc_op_id op) /* its number in the kernels' texts; -1: none of them */
{
    switch (op) {
    case LC_OP_COUNT:
        return 0;
    case LC_OP_relu:
        return 1;
    case LC_OP_gelu:
        return 2;
    case LC_OP_gelu_tanh:
        return 3;
    case LC_OP_silu:
        return 4;
    default:
        return -1;
    }
}

/* Large products are cuBLAS's, halves tensor cores', unless there is one row: then the matrix is read once, whoever reads it. */
static bool is_small(const lc_matmul_args *a, lc_dtype dtype)
{
    const lc_matmul_epilogue *e = a->epilogue;
    bool                      one = a->m == 1 && a->batch == 1, halves = one && lc_size_of((lc_dtype)a->a->dtype) == 2;
    if (dtype != LC_f32 || (lc_cuda_tf32 && !halves)) return false;
    if (halves) dtype = (lc_dtype)a->a->dtype;
    if (a->out->dtype != dtype || a->a->dtype != dtype || a->b->dtype != dtype) return false;
    int64_t most = a->low ? 2 * MOST_FACTORS : MOST_FACTORS; /* otherwise a correction is three launches */
    if (a->low &&
        (a->low->rank > MOST_RANK || a->m > 128 || a->batch > 1 || a->low->down->dtype != dtype || a->low->up->dtype != dtype))
        return false;
    if (e && ((e->addend && e->addend->dtype != dtype) || (e->residual && e->residual->dtype != dtype))) return false;
    if (e && cuda_activation(e->activation) < 0) return false;
    return a->k > 0 && a->k <= (halves ? 1 << 14 : 4096) && a->m <= 512 && a->batch * a->m * a->n <= most / a->k;
}
static bool in_pieces(const void *p, int64_t step, int64_t size)
{
    return ((uintptr_t)p | (uint64_t)(step * size)) % PIECE == 0;
}
int cuda_small_product(const lc_matmul_args *a, lc_dtype dtype)
{
    const lc_matmul_epilogue *e = a->epilogue;
    if (!is_small(a, dtype)) return 1;
    small_product p = { .out = a->out->data,
                        .a = a->a->data,
                        .b = a->b->data,
                        .batch = a->batch,
                        .m = a->m,
                        .n = a->n,
                        .k = a->k,
                        .out_at = { a->out_batch, a->out_row, a->out_col },
                        .a_at = { a->a_batch, a->a_row, a->a_col },
                        .b_at = { a->b_batch, a->b_row, a->b_col },
                        .scale = e ? e->scale : 1,
                        .accumulate = a->accumulate };
    if (e && e->addend) {
        p.addend = e->addend->data, p.addend_scale = e->addend_scale;
        memcpy(p.addend_at, e->addend_stride, sizeof p.addend_at);
    }
    if (e && e->residual) {
        p.residual = e->residual->data;
        memcpy(p.residual_at, e->residual_stride, sizeof p.residual_at);
    }
    if (a->low) {
        p.down = a->low->down->data, p.up = a->low->up->data, p.rank = a->low->rank, p.low_scale = a->low->scale;
        memcpy(p.down_at, a->low->down_stride, sizeof p.down_at), memcpy(p.up_at, a->low->up_stride, sizeof p.up_at);
        p.low_aligned = p.rank % 8 == 0 && p.down_at[1] == 1 && p.down_at[0] % 4 == 0 && (uintptr_t)p.down % 16 == 0;
    }
    dtype = (lc_dtype)a->a->dtype;
    int64_t size = lc_size_of(dtype), wide = PIECE / size;
    bool    one = a->m == 1, halves = size == 2, along = a->a_col == 1 && a->b_row == 1; /* both contiguous along k */
    bool    smooth = along && in_pieces(p.a, a->k | a->a_batch | a->a_row, size) && in_pieces(p.b, a->b_batch | a->b_col, size);
    bool    columns = one && a->batch == 1 && !a->low && a->b_col == 1 && a->n > 1 && in_pieces(p.b, a->n | a->b_row, size);
    if (halves && !smooth && !columns) return 1;
    int64_t      rows = one ? 1 : 8, cols = one ? 4 : 8, tiles = (a->n + cols - 1) / cols, lines = (a->m + rows - 1) / rows;
    cuda_program q = { &small_product_body, .type = { CUDA_TYPE(dtype), CUDA_TYPE(dtype), CUDA_TYPE(dtype) },
                       .variant = (int16_t)((e ? cuda_activation(e->activation) : 0) | smooth << 3 | (a->low != NULL) << 4) };
    if (columns) return q.kernel = "columns", cuda_blocks(&q, (a->n + BESIDE - 1) / BESIDE, 32 * MOST_WARPS, &p);
    if (along || a->low || a->m * a->n <= rows * cols) {
        int64_t warp_takes = halves ? 4 * 32 * wide : smooth ? 32 * wide : 32, warps = MOST_WARPS;
        while (warps > 1 && a->k <= warps / 2 * warp_takes) warps /= 2;
        p.together = a->low && tiles * lines > ENOUGH_BLOCKS ? 4 : 1; /* they share the narrow product */
        q.kernel = "lanes", q.variant |= (int16_t)(one << 5);
        return cuda_blocks(&q, a->batch * lines * ((tiles + p.together - 1) / p.together), (int)(32 * warps), &p);
    }
    q.kernel = "tiles";
    return cuda_blocks(&q, a->batch * ((a->m + TILE - 1) / TILE) * ((a->n + TILE - 1) / TILE), 256, &p);
}

/* ---- steps after a product ---- */
typedef struct {
    lc_tensor t;
    int64_t   shape[3], stride[3];
} matrices; /* a view that lives on the stack */
static lc_tensor *view_of(matrices *v, const lc_tensor *t, const lc_matmul_args *a, int64_t batch, int64_t row, int64_t col)
{
    v->t = *t, v->t.ndim = 3, v->t.shape = v->shape, v->t.stride = v->stride, v->t.is_contiguous = false;
    v->shape[0] = a->batch, v->shape[1] = a->m, v->shape[2] = a->n;
    v->stride[0] = batch, v->stride[1] = row, v->stride[2] = col;
    v->t.numel = a->batch * a->m * a->n;
    return &v->t;
}
static int step(lc_op_id op, lc_dtype dtype, lc_tensor *out, lc_tensor *x, lc_tensor *y)
{
    lc_tensor *in[] = { out, x, y };
    int        rc = cuda_elementwise(op, dtype, out, in, y ? 3 : x ? 2 : 1);
    return rc == LC_NO_KERNEL ? lc_fail_int(LC_NotImplementedError, "cuda: an epilogue without a kernel") : rc;
}
/* The product has its scale already. */
int cuda_epilogue_steps(const lc_matmul_args *a, lc_dtype dtype)
{
    const lc_matmul_epilogue *e = a->epilogue;
    matrices                  of_out, of_addend, of_residual;
    lc_tensor                *out = view_of(&of_out, a->out, a, a->out_batch, a->out_row, a->out_col);
    double                    addend_scale = e->addend_scale;
    lc_tensor                 number = { .data = (char *)&addend_scale, .dtype = LC_f64, .numel = 1, .is_contiguous = true };
    int                       rc = 0;
    if (e->addend) {
        const int64_t *s = e->addend_stride;
        lc_tensor     *x = view_of(&of_addend, e->addend, a, s[0], s[1], s[2]);
        rc = addend_scale == 1 ? step(LC_OP_add, dtype, out, x, NULL) : step(LC_OP_add_scaled, dtype, out, x, &number);
    }
    if (rc == 0 && e->activation != LC_OP_COUNT) rc = step(e->activation, dtype, out, NULL, NULL);
    if (rc == 0 && e->residual) {
        const int64_t *s = e->residual_stride;
        rc = step(LC_OP_add, dtype, out, view_of(&of_residual, e->residual, a, s[0], s[1], s[2]), NULL);
    }
    return rc;
}

/* Matrix products: small ones by a kernel of our own, then cuBLAS where it takes the strides and types, else a kernel that takes
 * all. products.h has the ways that know epilogues. */
#include "products.h"
#include <string.h>

typedef struct {
    void   *out, *a, *b;
    int64_t batch, m, n, k, out_batch, out_row, out_col, a_batch, a_row, a_col, b_batch, b_row, b_col;
    double  scale;
    int     accumulate;
} product;
CUDA_BODY(matmul);
bool lc_cuda_tf32;

/* cuBLAS is column-major: the row-major product out = a b is out^T = b^T a^T there. An operand fits if one of its strides is
 * 1. */
static bool fits_blas(const cuda_matrix *x, int64_t rows, int64_t cols, int *transposed, int *ld)
{
    bool    plain = (x->col == 1 || cols == 1) && (x->row >= cols || rows == 1);
    bool    flipped = (x->row == 1 || rows == 1) && (x->col >= rows || cols == 1);
    int64_t lead = plain ? (rows == 1 && x->row < cols ? cols : x->row) : (cols == 1 && x->col < rows ? rows : x->col);
    *transposed = !plain, *ld = (int)lead;
    return (plain || flipped) && lead < INT32_MAX && lead > 0;
}
static int blas_code(lc_dtype dtype)
{
    return dtype == LC_f32    ? 0
           : dtype == LC_f64  ? 1
           : dtype == LC_f16  ? 2
           : dtype == LC_bf16 ? 14
           : dtype == LC_c64  ? 4
           : dtype == LC_c128 ? 5
                              : -1;
}

/* -1 after lc_fail; 1: cuBLAS does not take it */
static int by_blas(int device, cuda_matrix out, cuda_matrix a, cuda_matrix b, int64_t batch, int64_t m, int64_t n, int64_t k,
                   double scale, bool accumulate)
{
    int  type = blas_code(a.dtype), to = blas_code(out.dtype), ta, tb, tc, lda, ldb, ldc;
    bool same = a.dtype == b.dtype && type >= 0 && to >= 0 &&
                (out.dtype == a.dtype || (out.dtype == LC_f32 && lc_size_of(a.dtype) == 2));
    if (!same || k <= 0 || m >= INT32_MAX || n >= INT32_MAX || k >= INT32_MAX || batch >= INT32_MAX) return 1;
    if (!fits_blas(&a, m, k, &ta, &lda) || !fits_blas(&b, k, n, &tb, &ldb) || !fits_blas(&out, m, n, &tc, &ldc)) return 1;
    if (tc) { /* out is transposed: out^T = b^T a^T, where every operand is flipped too */
        cuda_matrix x = { out.data, out.batch, out.col, out.row, out.dtype }, y = { b.data, b.batch, b.col, b.row, b.dtype };
        return by_blas(device, x, y, (cuda_matrix){ a.data, a.batch, a.col, a.row, a.dtype }, batch, n, m, k, scale,
                       accumulate);
    }
    cublas_handle blas = cuda_blas(device);
    if (!blas) return 1;
    float       alpha[2] = { (float)scale }, beta[2] = { accumulate }; /* of complex numbers, with an imaginary part */
    double      alpha64[2] = { scale }, beta64[2] = { accumulate };
    bool        wide = a.dtype == LC_f64 || a.dtype == LC_c128;
    const void *by = wide ? (void *)alpha64 : alpha, *keep = wide ? (void *)beta64 : beta;
    int         compute = wide ? 70
                          : (a.dtype == LC_f32 || a.dtype == LC_c64) && lc_cuda_tf32
                              ? 77
                              : 68; /* CUBLAS_COMPUTE_64F, _32F_FAST_TF32, _32F */
    int rc = cuda.cublasGemmStridedBatchedEx(blas, tb, ta, (int)n, (int)m, (int)k, by, b.data, type, ldb, b.batch, a.data, type,
                                             lda, a.batch, keep, out.data, to, ldc, out.batch, (int)batch, compute, -1);
    return rc == 0                        ? 0
           : rc == 15 /* NOT_SUPPORTED */ ? 1
                                          : lc_fail_int(LC_LucidError, "cuBLAS: the product failed with status %d", rc);
}

/* Complex numbers without cuBLAS: four products of their parts, which lie two apart. */
static cuda_matrix part_of(cuda_matrix x, int k)
{
    lc_dtype real = lc_real_of(x.dtype);
    return (cuda_matrix){ (char *)x.data + k * lc_size_of(real), 2 * x.batch, 2 * x.row, 2 * x.col, real };
}
static int by_parts(int device, cuda_matrix out, cuda_matrix a, cuda_matrix b, int64_t batch, int64_t m, int64_t n, int64_t k,
                    double scale, bool accumulate)
{
    int rc = 0;
    for (int i = 0; i < 4 && rc == 0; i++) { /* re re - im im, re im + im re */
        int      x = i % 2, y = i / 2;
        lc_dtype real = lc_real_of(out.dtype);
        rc = cuda_product(device, real, part_of(out, x ^ y), part_of(a, x), part_of(b, y), batch, m, n, k,
                          x & y ? -scale : scale, accumulate || y);
    }
    return rc;
}

int cuda_product(int device, lc_dtype acc, cuda_matrix out, cuda_matrix a, cuda_matrix b, int64_t batch, int64_t m, int64_t n,
                 int64_t k, double scale, bool accumulate)
{
    enum { TILE = 64 };
    if (batch * m * n == 0) return 0;
    if (cuda_use(device) < 0) return -1;
    int rc = by_blas(device, out, a, b, batch, m, n, k, scale, accumulate);
    if (rc <= 0) return rc;
    if (lc_is_complex(out.dtype)) return by_parts(device, out, a, b, batch, m, n, k, scale, accumulate);
    product      p = { out.data, a.data,  b.data, batch, m,       n,     k,     out.batch, out.row,
                       out.col,  a.batch, a.row,  a.col, b.batch, b.row, b.col, scale,     accumulate };
    cuda_program q = { &matmul_body, "multiply", .type = { CUDA_TYPE(out.dtype), CUDA_TYPE(a.dtype), CUDA_TYPE(b.dtype) },
                       .variant = acc == LC_f64 && out.dtype != LC_f64 };
    lc_verbose_log("matmul on cuda: own kernel (no cuBLAS call for these strides or dtypes)");
    if (m < 16 || n < 16) return q.kernel = "multiply_each", cuda_map(&q, batch * m * n, &p);
    return cuda_blocks(&q, batch * ((m + TILE - 1) / TILE) * ((n + TILE - 1) / TILE), 256, &p);
}

/* cuBLASLt does not say how exact its GELU is; the device's own tanh is good to 11 bits. So float32 gets it as a step, unless
 * its products may be as short. */
static int with_exact_gelu(const lc_matmul_args *a, lc_dtype dtype)
{
    lc_matmul_epilogue first = *a->epilogue, last = { .scale = 1, .activation = first.activation };
    lc_matmul_args     product = *a, step = *a;
    last.residual = first.residual, memcpy(last.residual_stride, first.residual_stride, sizeof last.residual_stride);
    first.activation = LC_OP_COUNT, first.residual = NULL, product.epilogue = &first, step.epilogue = &last;
    int rc = cuda_large_product(&product, dtype);
    return rc == 0 ? cuda_epilogue_steps(&step, dtype) : rc;
}
int cuda_large_product(const lc_matmul_args *a, lc_dtype dtype)
{
    int rc = 1;
    if (a->epilogue && a->epilogue->activation == LC_OP_gelu_tanh && a->out->dtype == LC_f32 && !lc_cuda_tf32)
        return with_exact_gelu(a, dtype);
    if (a->epilogue && (rc = cuda_lt_product(a, dtype)) <= 0) return rc;
    cuda_matrix out = { a->out->data, a->out_batch, a->out_row, a->out_col, (lc_dtype)a->out->dtype };
    cuda_matrix x = { a->a->data, a->a_batch, a->a_row, a->a_col, (lc_dtype)a->a->dtype };
    cuda_matrix y = { a->b->data, a->b_batch, a->b_row, a->b_col, (lc_dtype)a->b->dtype };
    rc = cuda_product(a->out->device.index, dtype, out, x, y, a->batch, a->m, a->n, a->k, a->epilogue ? a->epilogue->scale : 1,
                      a->accumulate);
    return rc == 0 && a->epilogue ? cuda_epilogue_steps(a, dtype) : rc;
}
static int matmul(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_matmul_args *a = args;
    if (a->batch * a->m * a->n == 0) return 0;
    if (cuda_use(a->out->device.index) < 0) return -1;
    int rc = cuda_small_product(a, dtype);
    if (rc <= 0) return rc;
    if (a->low) return LC_NO_KERNEL;
    return (rc = cuda_aligned_product(a, dtype)) <= 0 ? rc : cuda_large_product(a, dtype);
}
static int product_with_sums(UNUSED lc_op_id op, UNUSED lc_dtype dtype, const void *args)
{
    const lc_matmul_args *a = args;
    if (cuda_use(a->out->device.index) < 0) return -1;
    int rc = cuda_lt_sums(a);
    return rc <= 0 ? rc : LC_NO_KERNEL;
}
CUDA_RUN(_mm_sums, product_with_sums, 1u << LC_f32)
CUDA_RUN(mm, matmul, CUDA_REAL | CUDA_HALVES | 1u << LC_c64 | 1u << LC_c128)

/* Matrix products. mm, bmm, mv and dot are one kernel (args.h: lc_matmul_args) with different names for its axes: operands go in with
 * whatever strides they have, so transposes cost nothing here. matmul chooses among them by rank. */
#include "matmul.h"
#include <math.h>

static int same_dtypes(const lc_record *call)
{
    if (call->in[0]->dtype == call->in[1]->dtype) return 0;
    return lc_fail_int(LC_DtypeMismatch, "%s: expected both to have the same dtype, but got: %s != %s", call->op->name,
                       lc_dtypes[call->in[0]->dtype].name, lc_dtypes[call->in[1]->dtype].name);
}

/* The axes of both operands and of the result as (batch, rows, columns); a missing axis has size one and stride zero. */
typedef struct {
    int64_t size[3], stride[3];
} matrix;
static matrix as_matrix(const lc_tensor *t, int first)
{
    matrix m = { { 1, 1, 1 }, { 0, 0, 0 } };
    for (int d = 0; d < t->ndim; d++) m.size[first + d] = t->shape[d], m.stride[first + d] = t->stride[d];
    return m;
}

int matrix_product_with(const lc_record *call, lc_dtype dtype, lc_tensor *a, lc_tensor *b, lc_tensor *out, int a_first,
                        int b_first, int out_first, const lc_matmul_epilogue *epilogue, bool accumulate)
{
    matrix         A = as_matrix(a, a_first), B = as_matrix(b, b_first), C = as_matrix(out, out_first);
    lc_matmul_args args = { .out = out,
                            .a = a,
                            .b = b,
                            .batch = C.size[0],
                            .m = C.size[1],
                            .n = C.size[2],
                            .k = A.size[2],
                            .out_batch = C.stride[0],
                            .out_row = C.stride[1],
                            .out_col = C.stride[2],
                            .a_batch = A.stride[0],
                            .a_row = A.stride[1],
                            .a_col = A.stride[2],
                            .b_batch = B.stride[0],
                            .b_row = B.stride[1],
                            .b_col = B.stride[2],
                            .accumulate = accumulate,
                            .epilogue = epilogue };
    lc_record      product = *call;
    product.dtype = dtype;
    return run_kernel_with(&product, &args);
}
int matrix_product(const lc_record *call, lc_dtype dtype, lc_tensor *a, lc_tensor *b, lc_tensor *out, int a_first, int b_first,
                   int out_first)
{
    return matrix_product_with(call, dtype, a, b, out, a_first, b_first, out_first, NULL, false);
}
static int run_product(const lc_record *call, int a_first, int b_first, int out_first)
{
    lc_dtype   dtype = working_dtype(call->dtype);
    lc_tensor *a = for_product(call, call->in[0], dtype), *b = for_product(call, call->in[1], dtype),
              *out = destination(call->out[0], dtype_for_product(call, call->out[0], dtype), call->in, call->n_in);
    int rc = a && b && out ? matrix_product(call, dtype, a, b, out, a_first, b_first, out_first) : -1;
    lc_release(a), lc_release(b);
    return deliver(call->out[0], out, rc);
}

/* ---- two matrices ---- */
int matrices_fit(const lc_tensor *a, const lc_tensor *b)
{
    if (a->ndim != 2) return lc_fail_int(LC_ShapeMismatch, "mm: self must be a matrix, got %s", LC_SHAPE(a));
    if (b->ndim != 2) return lc_fail_int(LC_ShapeMismatch, "mm: mat2 must be a matrix, got %s", LC_SHAPE(b));
    if (a->shape[1] != b->shape[0])
        return lc_fail_int(LC_ShapeMismatch, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
                           (long long)a->shape[0], (long long)a->shape[1], (long long)b->shape[0], (long long)b->shape[1]);
    return 0;
}
static int mm_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *a = call->in[0], *b = call->in[1];
    if (matrices_fit(a, b) < 0 || same_dtypes(call) < 0) return -1;
    return spec_shape(call, out, a->dtype, 2, (int64_t[]){ a->shape[0], b->shape[1] });
}
static int mm_run(const lc_record *call) { return run_product(call, 1, 1, 1); }
GRAD(mm)
{
    if (need[0]) dx[0] = lc_mm(g[0], adjoint(in(1)));
    if (need[1]) dx[1] = lc_mm(adjoint(in(0)), g[0]);
}
LC_OP(mm, .any_strides = true, .sig = "mm(input: Tensor, mat2: Tensor) -> Tensor", .kind = LC_KIND_PRODUCT,
      .operand_dims = { 2, 2 }, .doc = "The product of two matrices.", .method = true, .out = true, .promote = LC_NO_PROMOTION,
      .amp = LC_AMP_LOWER, .shape = mm_shape, .run = mm_run, .grad = mm_grad, .saves_for = { IN(1), IN(0) });

/* The gradients of a weight and of a bias read the same matrix, so a kernel can make both. Where it does not, it answers
 * LC_NO_KERNEL, and the two are made one after the other. */
static int mm_sums_shape(const lc_record *call, lc_spec *out)
{
    int of = call->args[2].b;
    return mm_shape(call, out) < 0 ? -1 : spec_shape(call, &out[1], out->dtype, 1, &call->in[of]->shape[of]);
}
static int mm_sums_run(const lc_record *call)
{
    lc_tensor     *a = call->in[0], *b = call->in[1], *out = call->out[0], *sums = call->out[1];
    bool           of = call->args[2].b;
    lc_dtype       dtype = working_dtype(call->dtype);
    matrix         x = as_matrix(of ? b : a, 1), y = as_matrix(of ? a : b, 1), z = as_matrix(out, 1);
    int            row = 1 + of, col = 2 - of; /* of the right operand: those of the transposed product's left one */
    lc_matmul_args args = { .out = out, .a = of ? b : a, .b = of ? a : b, .sums = sums, .batch = 1 };
    args.m = z.size[row], args.n = z.size[col], args.k = x.size[col];
    args.out_row = z.stride[row], args.out_col = z.stride[col], args.a_row = x.stride[row], args.a_col = x.stride[col];
    args.b_row = y.stride[row], args.b_col = y.stride[col];
    int rc = call->backend->run(LC_OP__mm_sums, dtype, &args);
    if (rc != LC_NO_KERNEL) return rc;
    lc_reduce_args sum = { .in = args.a, .value = sums, .mask = 2u >> of };
    sum.value_stride[of] = 1;
    rc = matrix_product(call, dtype, a, b, out, 1, 1, 1);
    return rc == 0 && (rc = call->backend->reduce(LC_OP_sum, call->dtype, &sum)) == LC_NO_KERNEL ? no_kernel(call) : rc;
}
bool gives_sums(const lc_tensor *g, const lc_tensor *x, const lc_tensor *bias)
{
    return bias->ndim == 1 && g->ndim > 1 && bias->shape[0] == g->shape[g->ndim - 1] && g->dtype == x->dtype &&
           working_dtype((lc_dtype)g->dtype) != g->dtype && lc_modes & LC_NO_GRAD &&
           !((g->flags | x->flags) & (LC_BATCHED | LC_SPARSE)) && lc_backends[g->device.kind]->has(LC_OP__mm_sums, LC_f32);
}
LC_OP(_mm_sums, .any_strides = true, .hidden = true,
      .sig = "_mm_sums(input: Tensor, mat2: Tensor, right: bool) -> (product: Tensor, sums: Tensor)",
      .doc = "mm, and the sums of input's rows or, with right, of mat2's columns. float16 and bfloat16; without gradients.",
      .kernel = LC_OP_mm, .promote = LC_NO_PROMOTION, .shape = mm_sums_shape, .run = mm_sums_run);

/* ---- batches of matrices ---- */
int batches_fit(const lc_tensor *a, const lc_tensor *b)
{
    if (a->ndim != 3 || b->ndim != 3)
        return lc_fail_int(LC_ShapeMismatch, "bmm: batch1 and batch2 must be 3D tensors, got %s and %s", LC_SHAPE(a),
                           LC_SHAPE(b));
    if (a->shape[0] != b->shape[0] || a->shape[2] != b->shape[1])
        return lc_fail_int(LC_ShapeMismatch,
                           "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].",
                           (long long)a->shape[0], (long long)a->shape[2], (long long)b->shape[0], (long long)b->shape[1]);
    return 0;
}
static int bmm_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *a = call->in[0], *b = call->in[1];
    if (batches_fit(a, b) < 0 || same_dtypes(call) < 0) return -1;
    return spec_shape(call, out, a->dtype, 3, (int64_t[]){ a->shape[0], a->shape[1], b->shape[2] });
}
static int bmm_run(const lc_record *call) { return run_product(call, 0, 0, 0); }
GRAD(bmm)
{
    if (need[0]) dx[0] = lc_bmm(g[0], adjoint(in(1)));
    if (need[1]) dx[1] = lc_bmm(adjoint(in(0)), g[0]);
}
LC_OP(bmm, .any_strides = true, .sig = "bmm(input: Tensor, mat2: Tensor) -> Tensor", .kind = LC_KIND_PRODUCT,
      .operand_dims = { 3, 3 }, .doc = "The products of two batches of matrices.", .method = true, .out = true,
      .kernel = LC_OP_mm, .promote = LC_NO_PROMOTION, .amp = LC_AMP_LOWER, .shape = bmm_shape, .run = bmm_run, .grad = bmm_grad,
      .saves_for = { IN(1), IN(0) });

/* ---- vectors ---- */
int matrix_fits_vector(const lc_tensor *a, const lc_tensor *b)
{
    if (a->ndim != 2 || b->ndim != 1)
        return lc_fail_int(LC_ShapeMismatch, "vector + matrix @ vector expected, got %s and %s", LC_SHAPE(a), LC_SHAPE(b));
    if (a->shape[1] != b->shape[0])
        return lc_fail_int(LC_ShapeMismatch, "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
                           (long long)a->shape[0], (long long)a->shape[0], (long long)a->shape[1], (long long)b->shape[0]);
    return 0;
}
static int mv_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *a = call->in[0], *b = call->in[1];
    if (a->ndim == 0) return lc_fail_int(LC_IndexError, "mv: Dimension specified as 0 but tensor has no dimensions");
    if (matrix_fits_vector(a, b) < 0 || same_dtypes(call) < 0) return -1;
    return spec_shape(call, out, a->dtype, 1, &a->shape[0]);
}
static int mv_run(const lc_record *call) { return run_product(call, 1, 1, 1); }
GRAD(mv)
{
    if (need[0]) dx[0] = lc_mul(lc_unsqueeze(g[0], 1), conj_of(in(1)));
    if (need[1]) dx[1] = lc_mv(adjoint(in(0)), g[0]);
}
LC_OP(mv, .any_strides = true, .sig = "mv(input: Tensor, vec: Tensor) -> Tensor", .kind = LC_KIND_PRODUCT,
      .operand_dims = { 2, 1 }, .doc = "A matrix times a vector.", .method = true, .out = true, .kernel = LC_OP_mm,
      .promote = LC_NO_PROMOTION, .amp = LC_AMP_GPU_LOWER, .shape = mv_shape, .run = mv_run, .grad = mv_grad,
      .saves_for = { IN(1), IN(0) });

static int dot_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *a = call->in[0], *b = call->in[1];
    if (a->ndim != 1 || b->ndim != 1)
        return lc_fail_int(LC_ShapeMismatch, "1D tensors expected, but got %dD and %dD tensors", a->ndim, b->ndim);
    if (same_dtypes(call) < 0) return -1;
    if (a->numel != b->numel)
        return lc_fail_int(
            LC_ShapeMismatch,
            "inconsistent tensor size, expected tensor [%lld] and src [%lld] to have the same number of elements",
            (long long)a->numel, (long long)b->numel);
    return spec_shape(call, out, a->dtype, 0, NULL);
}
static int dot_run(const lc_record *call) { return run_product(call, 2, 1, 1); }
GRAD(dot)
{
    if (need[0]) dx[0] = lc_mul(g[0], conj_of(in(1)));
    if (need[1]) dx[1] = lc_mul(g[0], conj_of(in(0)));
}
LC_OP(dot, .any_strides = true, .sig = "dot(input: Tensor, tensor: Tensor) -> Tensor", .kind = LC_KIND_PRODUCT,
      .operand_dims = { 1, 1 }, .doc = "The sum of the products of two vectors.", .method = true, .out = true,
      .kernel = LC_OP_mm, .promote = LC_NO_PROMOTION, .amp = LC_AMP_GPU_WIDEST, .shape = dot_shape, .run = dot_run,
      .grad = dot_grad, .saves_for = { IN(1), IN(0) });

static int vdot_call(const lc_value *in, lc_tensor **out) { return (out[0] = lc_dot(conj_of(in(0)), in(1))) ? 0 : -1; }
LC_OP(vdot, .strict_out = true, .sig = "vdot(input: Tensor, other: Tensor) -> Tensor",
      .doc = "The sum of the products of two vectors, the first one conjugated.", .method = true, .out = true,
      .call = vdot_call);

/* ---- matmul ---- */
/* The batch dimensions (all but `kept` of each) broadcast together. */
static int batch_shape(const lc_tensor *a, const lc_tensor *b, int64_t *shape, int *n, int64_t *count)
{
    int na = a->ndim - 2, nb = b->ndim - 2;
    *n = na > nb ? na : nb, *count = 1;
    for (int d = 0; d < *n; d++) {
        int     da = d - (*n - na), db = d - (*n - nb);
        int64_t x = da < 0 ? 1 : a->shape[da], y = db < 0 ? 1 : b->shape[db];
        if (x != y && x != 1 && y != 1)
            return lc_fail_int(
                LC_ShapeMismatch,
                "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d",
                (long long)x, (long long)y, d);
        *count *= shape[d] = x == 1 ? y : x;
    }
    return 0;
}
static lc_tensor *as_batch(lc_tensor *t, int64_t *shape, int n,
                           int64_t count) /* scoped: expanded, then (count, rows, columns) */
{
    int64_t rows = t->shape[t->ndim - 2], columns = t->shape[t->ndim - 1];
    if (t->ndim == 2) return lc_expand(t, (int64_t[]){ count, rows, columns }, 3); /* stride 0: nothing is copied */
    shape[n] = rows, shape[n + 1] = columns;
    return lc_reshape(lc_expand(t, shape, n + 2), (int64_t[]){ count, rows, columns }, 3);
}
static lc_tensor *batched(lc_tensor *a, lc_tensor *b)
{
    int64_t shape[LC_MAX_DIMS + 2], count;
    int     n;
    if (!a || !b || batch_shape(a, b, shape, &n, &count) < 0) return NULL;
    if (a->shape[a->ndim - 1] != b->shape[b->ndim - 2])
        return lc_fail(LC_ShapeMismatch, "matmul: shapes cannot be multiplied: %s and %s", LC_SHAPE(a), LC_SHAPE(b));
    lc_tensor *left = as_batch(a, shape, n, count), *right = as_batch(b, shape, n, count);
    if (!left || !right) return NULL;
    shape[n] = a->shape[a->ndim - 2], shape[n + 1] = b->shape[b->ndim - 1];
    return lc_reshape(lc_bmm(left, right), shape, n + 2);
}

/* A batch times one matrix or vector: the batch and its rows are the rows of one larger matrix. */
static lc_tensor *folded(lc_tensor *a, lc_tensor *b)
{
    int64_t shape[LC_MAX_DIMS], k = a->shape[a->ndim - 1], rows = 1;
    memcpy(shape, a->shape, (size_t)a->ndim * sizeof *shape);
    for (int d = 0; d < a->ndim - 1; d++) rows *= shape[d];
    lc_tensor *flat = lc_reshape(a, (int64_t[]){ rows, k }, 2);
    if (!flat) return NULL;
    if (b->ndim == 1) return lc_reshape(lc_mv(flat, b), shape, a->ndim - 1);
    shape[a->ndim - 1] = b->shape[1];
    return lc_reshape(lc_mm(flat, b), shape, a->ndim);
}
static int matmul_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *a = in(0), *b = in(1);
    if (!a->ndim || !b->ndim)
        return lc_fail_int(LC_ShapeMismatch, "both arguments to matmul need to be at least 1D, but they are %dD and %dD",
                           a->ndim, b->ndim);
    if (a->ndim == 1 && b->ndim == 1) out[0] = lc_dot(a, b);
    else if (a->ndim == 2 && b->ndim == 1) out[0] = lc_mv(a, b);
    else if (a->ndim == 1 && b->ndim == 2) out[0] = lc_squeeze(lc_mm(lc_unsqueeze(a, 0), b), &(int64_t){ 0 }, 1);
    else if (a->ndim == 2 && b->ndim == 2) out[0] = lc_mm(a, b);
    else if (b->ndim <= 2) out[0] = folded(a, b);
    else if (a->ndim == 1) out[0] = lc_squeeze(batched(lc_unsqueeze(a, 0), b), &(int64_t){ -2 }, 1);
    else out[0] = batched(a, b);
    return out[0] ? 0 : -1;
}
LC_OP(matmul, .strict_out = true, .sig = "matmul(input: Tensor, other: Tensor) -> Tensor",
      .doc = "The matrix product: of vectors, matrices and batches, which broadcast.", .method = true, .out = true,
      .amp = LC_AMP_LOWER, .call = matmul_call);

static int outer_call(const lc_value *in, lc_tensor **out)
{
    if (in(0)->ndim != 1 || in(1)->ndim != 1)
        return lc_fail_int(LC_ShapeMismatch, "outer: Expected 1-D arguments, but got %s and %s", LC_SHAPE(in(0)),
                           LC_SHAPE(in(1)));
    return (out[0] = lc_mul(lc_unsqueeze(in(0), 1), in(1))) ? 0 : -1;
}
LC_OP(outer, .aliases = "ger", .sig = "outer(input: Tensor, vec2: Tensor) -> Tensor",
      .doc = "Every product of an element of each vector.", .method = true, .out = true, .call = outer_call);

/* ---- powers and chains ---- */
static int matrix_power_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *base = in(0), *power = NULL;
    int64_t    n = in[1].i;
    if (base->ndim < 2 || base->shape[base->ndim - 1] != base->shape[base->ndim - 2])
        return lc_fail_int(LC_ShapeMismatch, "linalg.matrix_power: A must be batches of square matrices, but got %s",
                           LC_SHAPE(base));
    if (n < 0) {
        base = lc_linalg_inv(base);
        n = n == INT64_MIN ? INT64_MAX : -n;
        power = n == 1 ? base : NULL;
        if (power) return (out[0] = power) ? 0 : -1;
    }
    if (n == 0) {
        lc_value here = { .tag = LC_IS_device, .dev = base->device };
        power = lc_eye(base->shape[base->ndim - 1], LC_ABSENT, LC_OF_DTYPE((lc_dtype)base->dtype), here);
        power = lc_copy_(lc_clone(base, LC_CONTIGUOUS_FORMAT), power, false); /* with a history, and no gradient */
    }
    for (; n > 0 && base; n >>= 1) { /* squares of the base, and the product of those whose bit is set */
        if (n & 1) power = power ? lc_matmul(power, base) : base;
        if (n > 1) base = lc_matmul(base, base);
        if (!power && n & 1) return -1;
    }
    if (power == in(0)) power = lc_clone(power, LC_CONTIGUOUS_FORMAT);
    return base && (out[0] = power) ? 0 : -1;
}
LC_OP(matrix_power, .sig = "matrix_power(input: Tensor, n: int) -> Tensor",
      .doc = "A square matrix, or a batch of them, to an integer power.", .method = true, .out = true,
      .call = matrix_power_call);

/* The cheapest order of a chain of products, by the number of multiplications: cost[i][j] of the matrices i to j, cut after at[i][j]. */
enum { CHAIN = 64 };
static lc_tensor *chained(lc_tensor *const *ts, uint8_t (*at)[CHAIN], int i, int j)
{
    return i == j ? ts[i] : lc_mm(chained(ts, at, i, at[i][j]), chained(ts, at, at[i][j] + 1, j));
}
static int chain_matmul_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *const *ts = in[0].ts;
    int               n = in[0].n;
    double            cost[CHAIN][CHAIN];
    uint8_t           at[CHAIN][CHAIN];
    if (n < 1 || n > CHAIN) return lc_fail_int(LC_ValueError, "chain_matmul: expected 1 to %d matrices, got %d", CHAIN, n);
    for (int i = 0; i < n; i++)
        if (ts[i]->ndim != 2)
            return lc_fail_int(LC_ShapeMismatch, "Tensor dimension is %d, expected 2 instead: %s", ts[i]->ndim,
                               LC_SHAPE(ts[i]));
    for (int i = 0; i + 1 < n; i++)
        if (matrices_fit(ts[i], ts[i + 1]) < 0) return -1;
    for (int length = 0; length < n; length++)
        for (int i = 0, j = length; j < n; i++, j++) {
            cost[i][j] = length ? HUGE_VAL : 0;
            for (int k = i; k < j; k++) {
                double sum =
                    cost[i][k] + cost[k + 1][j] + (double)ts[i]->shape[0] * (double)ts[k]->shape[1] * (double)ts[j]->shape[1];
                if (sum < cost[i][j]) cost[i][j] = sum, at[i][j] = (uint8_t)k;
            }
        }
    out[0] = n == 1 ? lc_clone(ts[0], LC_PRESERVE_FORMAT) : chained(ts, at, 0, n - 1);
    return out[0] ? 0 : -1;
}
LC_OP(chain_matmul, .sig = "chain_matmul(*matrices: Tensor) -> Tensor",
      .doc = "The product of several matrices, in the order that takes the fewest multiplications.", .out = true,
      .call = chain_matmul_call);

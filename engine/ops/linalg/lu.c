/* LU factorisation and what is made of it: solutions of systems, inverses, determinants. */
#include "linalg.h"
#include <math.h>

/* ---- lu_factor ---- */

static int lu_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *A = call->in[0];
    return spec_matrices(call, &out[0], (lc_dtype)A->dtype, A, 2, rows_of_matrix(A), cols_of_matrix(A)) |
           spec_vectors(call, &out[1], LC_i32, A, 2, fewer(A)) | spec_numbers(call, &out[2], LC_i32, A, 2);
}
static int lu_run(const lc_record *call)
{
    lc_linalg_args a = { .name = "lu_factor", .batch = batch_of(call->in[0], 2), .pivot = call->args[1].b };
    a.m[0] = matrices_of(call->in[0], 2), a.m[1] = matrices_of(call->out[0], 2), a.m[2] = matrices_of(call->out[1], 1);
    a.m[3] = matrices_of(call->out[2], 0);
    return run_kernel_with(call, &a) < 0 ? -1 : check_info(call, call->out[2], call->args[2].s);
}
/* Of A = P L U, by the gradients of L and U; LC_NONE: none. */
static lc_tensor *lu_gradient(lc_tensor *gL, lc_tensor *gU, lc_tensor *P, lc_tensor *L, lc_tensor *U)
{
    if (!L || !U || !gL || !gU) return NULL; /* an op before this failed */
    int64_t    m = rows_of_matrix(L), n = cols_of_matrix(U), k = m < n ? m : n;
    lc_tensor *sum = NULL;
    if (m == n) { /* P L^-H [tril(L^H gL, -1) + triu(gU U^H)] U^-H */
        if (is_given(gL)) sum = lc_tril(mm(mH(L), gL), -1);
        if (is_given(gU)) {
            lc_tensor *upper = lc_triu(mm(gU, mH(U)), 0);
            sum = sum ? lc_add(sum, upper) : upper;
        }
        sum = lc__linalg_solve_triangular(mH(U), sum, false, false, false);
        sum = lc__linalg_solve_triangular(mH(L), sum, true, true, true);
    } else if (m < n) { /* the columns of A behind the square reach U alone */
        lc_tensor *U1 = part(U, -1, 0, k), *first = NULL, *phi = NULL;
        if (is_given(gL)) phi = lc_tril(mm(mH(L), gL), -1);
        if (is_given(gU)) {
            lc_tensor *lower = lc_tril(mm(gU, mH(U)), -1);
            phi = phi ? lc_sub(phi, lower) : lc_neg(lower);
        }
        first = lc__linalg_solve_triangular(mH(U1), phi, false, false, false);
        if (is_given(gU)) {
            first = lc_add(first, part(gU, -1, 0, k));
            sum = lc_cat((lc_tensor *[]){ first, part(gU, -1, k, n - k) }, 2, -1);
        } else
            sum =
                lc_cat((lc_tensor *[]){ first, lc_zeros_like(part(U, -1, k, n - k), LC_ABSENT, LC_ABSENT, LC_ABSENT) }, 2, -1);
        sum = lc__linalg_solve_triangular(mH(L), sum, true, true, true);
    } else {
        lc_tensor *L1 = part(L, -2, 0, k), *first = NULL, *phi = NULL;
        if (is_given(gU)) phi = lc_triu(mm(gU, mH(U)), 0);
        if (is_given(gL)) {
            lc_tensor *upper = lc_triu(mm(mH(L), gL), 0);
            phi = phi ? lc_sub(phi, upper) : lc_neg(upper);
        }
        first = lc__linalg_solve_triangular(mH(L1), phi, true, true, true);
        if (is_given(gL)) {
            first = lc_add(first, part(gL, -2, 0, k));
            sum = lc_cat((lc_tensor *[]){ first, part(gL, -2, k, m - k) }, 2, -2);
        } else
            sum =
                lc_cat((lc_tensor *[]){ first, lc_zeros_like(part(L, -2, k, m - k), LC_ABSENT, LC_ABSENT, LC_ABSENT) }, 2, -2);
        sum = lc__linalg_solve_triangular(mH(U), sum, false, false, false);
    }
    return P ? mm(P, sum) : sum;
}
GRAD(_linalg_lu)
{
    lc_tensor       *LU = y[0], *gL = LC_NONE, *gU = LC_NONE;
    int64_t          k = fewer(LU);
    lc_lu_unpack_out parts = lc_lu_unpack(LU, y[1], true, true);
    if (is_given(g[0])) gL = lc_tril(part(g[0], -1, 0, k), -1), gU = lc_triu(part(g[0], -2, 0, k), 0);
    dx[0] = is_given(g[0]) ? lu_gradient(gL, gU, parts.P, parts.L, parts.U) : LC_NONE;
}
LC_OP(_linalg_lu, .sig = "_linalg_lu(A: Tensor, pivot: bool, check: str) -> (LU: Tensor, pivots: Tensor, info: Tensor)",
      .doc = "The factors of A in one matrix.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = lu_shape, .run = lu_run,
      .any_strides = true, .grad = _linalg_lu_grad, .saves = OUT(0) | OUT(1), .kind = LC_KIND_MATRICES);

static int lu_factor(lc_tensor *A, bool pivot, const char *check, const char *function, int n, lc_tensor **out)
{
    if (check_matrices(A, function, "A") < 0 || check_floating(A, function) < 0) return -1;
    lc__linalg_lu_out r = lc__linalg_lu(A, pivot, check);
    out[0] = r.LU, out[1] = r.pivots;
    if (n > 2) out[2] = r.info;
    return r.LU ? 0 : -1;
}
COMPOSITE(linalg_lu_factor_ex, lu_factor(in(0), in[1].b, in[2].b ? "linalg.lu_factor_ex" : "", "linalg.lu_factor_ex", 3, out))
LC_OP(linalg_lu_factor_ex,
      .sig = "linalg_lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> (LU: Tensor, pivots: "
             "Tensor, info: Tensor)",
      .doc = "The LU factorisation with pivots, in one matrix, and per matrix the first zero pivot (from 1; 0: none).",
      .py = "lu_factor_ex", .ns = "linalg", .out = true, .call = linalg_lu_factor_ex_call);
COMPOSITE(linalg_lu_factor, lu_factor(in(0), in[1].b, "linalg.lu_factor", "linalg.lu_factor", 2, out))
LC_OP(linalg_lu_factor, .sig = "linalg_lu_factor(A: Tensor, *, pivot: bool = True) -> (LU: Tensor, pivots: Tensor)",
      .doc = "The LU factorisation with pivots, in one matrix, as lu_solve takes it.", .py = "lu_factor", .ns = "linalg",
      .out = true, .call = linalg_lu_factor_call);
COMPOSITE(_lu_with_info, lu_factor(in(0), in[1].b, in[2].b ? "lu" : "", "lu", 3, out))
LC_OP(_lu_with_info,
      .sig = "_lu_with_info(input: Tensor, pivot: bool = True, check_errors: bool = True) -> (LU: Tensor, pivots: Tensor, "
             "info: Tensor)",
      .doc = "The LU factorisation with pivots, in one matrix, and per matrix the first zero pivot.",
      .call = _lu_with_info_call, .amp = LC_AMP_CPU_FP32);

/* ---- the factors as matrices ---- */

static int permutation_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *pivots = call->in[0];
    int64_t          n = call->args[1].i, shape[LC_MAX_DIMS + 2];
    memcpy(shape, pivots->shape, (size_t)pivots->ndim * sizeof *shape);
    shape[pivots->ndim - 1] = n, shape[pivots->ndim] = n;
    return spec_shape(call, out, call->args[2].dt, pivots->ndim + 1, shape);
}
/* Rows are exchanged on the host: there is nothing to compute. */
static int permutation_run(const lc_record *call)
{
    lc_tensor *out = call->out[0], *P = out, *pivots;
    lc_device  host = { LC_CPU, 0 };
    bool       away = call->backend->can.values && !call->backend->can.host_memory;
    if (away) {
        P = lc_tensor_new((lc_dtype)out->dtype, host, out->ndim, out->shape);
        pivots = P ? lc_tensor_new(LC_i32, host, call->in[0]->ndim, call->in[0]->shape) : NULL;
        if (pivots && move_values(pivots, call->in[0]) < 0) lc_release(pivots), pivots = NULL;
    } else pivots = packed(call->in[0], LC_i32);
    int64_t n = call->args[1].i, k = pivots ? pivots->shape[pivots->ndim - 1] : 0, batch = P ? batch_of(P, 2) : 0;
    int     rc = pivots ? fill_tensor(P, LC_NUMBER(0)) : -1;
    LC_ARRAY(int64_t, row, n + 1);
    if (!row) rc = -1;
    lc_tensor *one = rc == 0 ? lc_tensor_new((lc_dtype)P->dtype, P->device, 0, NULL) : NULL;
    if (rc == 0) rc = one ? fill_tensor(one, LC_NUMBER(1)) : -1;
    int64_t size = lc_size_of(P->dtype);
    for (int64_t b = 0; b < batch && rc == 0 && P->data; b++) {
        const int32_t *p = (const int32_t *)pivots->data + b * k;
        for (int64_t i = 0; i < n; i++) row[i] = i;
        for (int64_t i = 0; i < k; i++) {
            int64_t other = (int64_t)p[i] - 1, t = row[i];
            if (other < 0 || other >= n) {
                rc = lc_fail_int(LC_LucidError, "lu_unpack: LU_pivots must be integers from 1 to %lld; one is %d", (long long)n,
                                 p[i]);
                break;
            }
            row[i] = row[other], row[other] = t;
        }
        for (int64_t i = 0; i < n && rc == 0; i++)
            memcpy(P->data + (b * n * n + row[i] * n + i) * size, one->data, (size_t)size);
    }
    if (away && rc == 0) rc = move_values(out, P);
    if (away && P) lc_release(P);
    lc_release(one);
    return lc_release(pivots), rc;
}
LC_OP(_permutation_of, .sig = "_permutation_of(pivots: Tensor, n: int, dtype: dtype) -> Tensor",
      .doc = "The matrix P of a factorisation with these exchanges of rows.", .hidden = true, .promote = LC_NO_PROMOTION,
      .shape = permutation_shape, .run = permutation_run, .kind = LC_KIND_MATRICES);

static lc_tensor *empty_of(const lc_tensor *t)
{
    return lc_zeros((int64_t[]){ 0 }, 1, LC_OF_DTYPE((lc_dtype)t->dtype), (lc_value){ .tag = LC_IS_device, .dev = t->device });
}
static int lu_unpack_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *LU = in(0), *pivots = in(1);
    if (check_matrices(LU, "lu_unpack", "LU_data") < 0) return -1;
    if (in[3].b && pivots->dtype != LC_i32)
        return lc_fail_int(
            LC_LucidError,
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype. Note: this function is "
            "intended to be used with the output produced by torch.linalg.lu_factor");
    int64_t m = rows_of_matrix(LU), n = cols_of_matrix(LU), k = fewer(LU);
    if (in[3].b && (pivots->ndim != LU->ndim - 1 || pivots->shape[pivots->ndim - 1] != k))
        return lc_fail_int(LC_ShapeMismatch, "lu_unpack: LU_pivots of shape %s do not fit LU_data of shape %s",
                           LC_SHAPE(pivots), LC_SHAPE(LU));
    out[0] = in[3].b ? lc__permutation_of(pivots, m, (lc_dtype)LU->dtype) : empty_of(LU);
    lc_tensor *ones =
        in[2].b ? lc_eye(m, LC_I(k), LC_OF_DTYPE((lc_dtype)LU->dtype), (lc_value){ .tag = LC_IS_device, .dev = LU->device })
                : NULL;
    out[1] = in[2].b ? lc_add(lc_contiguous(lc_tril(part(LU, -1, 0, k), -1), LC_CONTIGUOUS_FORMAT), ones) : empty_of(LU);
    out[2] = in[2].b ? lc_contiguous(lc_triu(m == k ? LU : part(LU, -2, 0, k), 0), LC_CONTIGUOUS_FORMAT) : empty_of(LU);
    (void)n;
    return out[0] && out[1] && out[2] ? 0 : -1;
}
LC_OP(lu_unpack,
      .sig = "lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> (P: "
             "Tensor, L: Tensor, "
             "U: Tensor)",
      .doc = "The factors P, L and U of what lu_factor gives.", .out = true, .call = lu_unpack_call);
static int linalg_lu_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *A = in(0);
    if (check_matrices(A, "linalg.lu", "A") < 0 || check_floating(A, "linalg.lu") < 0) return -1;
    lc__linalg_lu_out r = lc__linalg_lu(A, in[1].b, "");
    if (!r.LU) return -1;
    lc_lu_unpack_out u = lc_lu_unpack(r.LU, r.pivots, true, in[1].b);
    out[0] = u.P, out[1] = u.L, out[2] = u.U;
    return u.U ? 0 : -1;
}
LC_OP(linalg_lu, .sig = "linalg_lu(A: Tensor, *, pivot: bool = True) -> (P: Tensor, L: Tensor, U: Tensor)",
      .doc = "A = P L U: a permutation, a unit lower and an upper triangular matrix.", .py = "lu", .ns = "linalg", .out = true,
      .call = linalg_lu_call);

/* ---- lu_solve ---- */

static int lu_solve_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *B = call->in[2];
    if (call->args[3].b) return spec_matrices(call, out, (lc_dtype)B->dtype, B, 2, rows_of_matrix(B), cols_of_matrix(B));
    spec_like(call, out, B, (lc_dtype)B->dtype);
    return 0;
}
static int lu_solve_run(const lc_record *call)
{
    lc_linalg_args a = {
        .name = "linalg.lu_solve", .batch = batch_of(call->in[0], 2), .left = call->args[3].b, .adjoint = call->args[4].b
    };
    a.m[0] = matrices_of(call->in[0], 2), a.m[1] = matrices_of(call->in[1], 1), a.m[2] = matrices_of(call->in[2], 2);
    a.m[3] = matrices_of(call->out[0], 2);
    const int32_t *p = call->backend->can.host_memory ? (const int32_t *)a.m[1].data : NULL; /* else the kernel checks */
    for (int64_t i = 0; i < a.m[1].rows && call->in[1]->is_contiguous && p; i++) /* a wrong pivot must not reach memory */
        for (int64_t b = 0; b < a.batch; b++)
            if (p[b * a.m[1].rows + i] < 1 || p[b * a.m[1].rows + i] > a.m[0].rows)
                return lc_fail_int(LC_LucidError,
                                   "Pivots given to lu_solve must all be greater or equal to 1 and at most the size of LU.");
    return run_kernel_with(call, &a);
}
GRAD(_linalg_lu_solve)
{
    bool       left = in[3].b, adjoint = in[4].b;
    lc_tensor *LU = in(0), *X = y[0], *gB = lc__linalg_lu_solve(LU, in(1), g[0], left, !adjoint);
    if (need[2]) dx[2] = gB;
    if (!need[0]) return;
    lc_tensor       *gA = left ? (adjoint ? mm(X, mH(gB)) : mm(gB, mH(X))) : adjoint ? mm(mH(gB), X) : mm(mH(X), gB);
    lc_lu_unpack_out parts = lc_lu_unpack(LU, in(1), true, true);
    lc_tensor       *R = lc_neg(mm(mT(parts.P), gA));
    dx[0] = lc_add(lc_tril(mm(R, mH(parts.U)), -1), lc_triu(mm(mH(parts.L), R), 0));
}
LC_OP(_linalg_lu_solve, .sig = "_linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Tensor",
      .doc = "Solutions by the factors of a matrix.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = lu_solve_shape,
      .run = lu_solve_run, .any_strides = true, .grad = _linalg_lu_solve_grad, .saves = IN(0) | IN(1) | OUT(0),
      .kind = LC_KIND_MATRICES);

static int lu_solve(lc_tensor *LU, lc_tensor *pivots, lc_tensor *B, bool left, bool adjoint, const char *f, lc_tensor **out)
{
    if (check_floating(LU, f) < 0 || check_square(LU, f, "LU") < 0 || check_matrices(B, f, "B") < 0) return -1;
    if (check_same_dtype(LU, B, f, "LU", "B") < 0) return -1;
    if (pivots->dtype != LC_i32)
        return lc_fail_int(LC_LucidError, "%s: Expected pivots to be a Tensor of torch.int32, but got %s", f,
                           lc_dtypes[pivots->dtype].name);
    if (pivots->ndim != LU->ndim - 1 || !lc_same_sizes(pivots->shape, LU->shape, pivots->ndim))
        return lc_fail_int(LC_ShapeMismatch,
                           "%s: Number of pivots per batch should be same as the dimension of the matrix: LU %s, pivots %s", f,
                           LC_SHAPE(LU), LC_SHAPE(pivots));
    if ((left ? rows_of_matrix(B) : cols_of_matrix(B)) != rows_of_matrix(LU))
        return lc_fail_int(LC_ShapeMismatch, "%s: Incompatible shapes of LU and B for the equation %s: %s and %s", f,
                           left ? "AX = B" : "XA = B", LC_SHAPE(LU), LC_SHAPE(B));
    lc_tensor *full, *ignored;
    if (broadcast_batches(LU, 2, B, 2, f, &full, &B) < 0) return -1;
    if (broadcast_batches(pivots, 1, full, 2, f, &pivots, &ignored) < 0) return -1;
    return (out[0] = lc__linalg_lu_solve(full, lc_contiguous(pivots, LC_CONTIGUOUS_FORMAT), B, left, adjoint)) ? 0 : -1;
}
COMPOSITE(linalg_lu_solve, lu_solve(in(0), in(1), in(2), in[3].b, in[4].b, "linalg.lu_solve", out))
LC_OP(linalg_lu_solve,
      .sig = "linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor",
      .doc = "The solution of A X = B (or X A = B), by the factors that lu_factor gives.", .py = "lu_solve", .ns = "linalg",
      .out = true, .call = linalg_lu_solve_call);
COMPOSITE(lu_solve, lu_solve(in(1), in(2), in(0), true, false, "lu_solve", out))
LC_OP(lu_solve, .sig = "lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor",
      .doc = "The solution of A x = input, by the factors that lu_factor gives.", .method = true, .out = true,
      .call = lu_solve_call);

/* ---- solve ---- */

static int solve_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *A = call->in[0], *B = call->in[1];
    int64_t          n = rows_of_matrix(A);
    int rc = spec_matrices(call, &out[1], (lc_dtype)A->dtype, A, 2, n, n) | spec_vectors(call, &out[2], LC_i32, A, 2, n) |
             spec_numbers(call, &out[3], LC_i32, A, 2);
    if (call->args[2].b) rc |= spec_matrices(call, &out[0], (lc_dtype)B->dtype, B, 2, rows_of_matrix(B), cols_of_matrix(B));
    else spec_like(call, &out[0], B, (lc_dtype)B->dtype);
    if (call->args[3].b && B->ndim > 2) { /* vectors: PyTorch lays them out as if they were the columns of matrices */
        int d = B->ndim - 2;
        out[0].stride[d - 1] = 1, out[0].stride[d] = B->shape[d - 1], out[0].stride[d + 1] = 1;
    }
    return rc;
}
static int solve_run(const lc_record *call)
{
    lc_linalg_args a = { .name = "linalg.solve", .batch = batch_of(call->in[0], 2), .left = call->args[2].b, .pivot = true };
    for (int k = 0; k < 2; k++) a.m[k] = matrices_of(call->in[k], 2), a.m[2 + k] = matrices_of(call->out[k], 2);
    a.m[4] = matrices_of(call->out[2], 1), a.m[5] = matrices_of(call->out[3], 0);
    return run_kernel_with(call, &a) < 0 ? -1 : check_info(call, call->out[3], call->args[4].s);
}
/* While the gradient is recorded for another one, A itself has to take part; else its factors are there. */
GRAD(_linalg_solve)
{
    bool       left = in[2].b, again = !(lc_modes & LC_NO_GRAD);
    lc_tensor *gB, *X = y[0];
    if (!is_given(g[0])) return;
    gB = again ? lc__linalg_solve(mH(in(0)), g[0], left, false, "").result : lc__linalg_lu_solve(y[1], y[2], g[0], left, true);
    if (need[1]) dx[1] = gB;
    if (need[0]) dx[0] = lc_neg(left ? mm(gB, mH(X)) : mm(mH(X), gB));
}
LC_OP(_linalg_solve,
      .sig = "_linalg_solve(A: Tensor, B: Tensor, left: bool, vector: bool, check: str) -> (result: Tensor, LU: Tensor, "
             "pivots: Tensor, "
             "info: Tensor)",
      .doc = "Solutions, and the factors of A.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = solve_shape,
      .run = solve_run, .any_strides = true, .grad = _linalg_solve_grad, .saves = IN(0) | OUT(0) | OUT(1) | OUT(2),
      .kind = LC_KIND_MATRICES);

/* B is a vector per matrix: its shape is A's without the last dimension, or it has one dimension. */
static bool is_vector(const lc_tensor *A, const lc_tensor *B)
{
    return B->ndim == 1 || (A->ndim - 1 == B->ndim && lc_same_sizes(A->shape, B->shape, B->ndim));
}
static int solve(lc_tensor *A, lc_tensor *B, bool left, const char *check, const char *f, int n, lc_tensor **out)
{
    if (check_floating(A, f) < 0 || check_same_dtype(A, B, f, "A", "B") < 0 || check_square(A, f, "A") < 0) return -1;
    bool vector = is_vector(A, B);
    if (vector && !left)
        return lc_fail_int(LC_ShapeMismatch,
                           "%s: Vector broadcasting of the left hand side is not supported for left=False. In this case "
                           "linalg.solve is equivalent to B / A.squeeze(-1)",
                           f);
    if (vector) B = lc_unsqueeze(B, -1);
    if (!B || check_matrices(B, f, "B") < 0) return -1;
    if ((left ? rows_of_matrix(B) : cols_of_matrix(B)) != rows_of_matrix(A))
        return lc_fail_int(LC_ShapeMismatch, "%s: Incompatible shapes of A and B for the equation %s: %s and %s", f,
                           left ? "AX = B" : "XA = B", LC_SHAPE(A), LC_SHAPE(B));
    if (broadcast_batches(A, 2, B, 2, f, &A, &B) < 0) return -1;
    lc__linalg_solve_out r = lc__linalg_solve(A, B, left, vector, check);
    if (!r.result) return -1;
    out[0] = vector ? lc_squeeze(r.result, (int64_t[]){ -1 }, 1) : r.result;
    if (n > 1) out[1] = r.info;
    return out[0] ? 0 : -1;
}
COMPOSITE(linalg_solve, solve(in(0), in(1), in[2].b, "linalg.solve", "linalg.solve", 1, out))
LC_OP(linalg_solve, .sig = "linalg_solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor",
      .doc = "The solution X of A X = B, or of X A = B if left is False. Raises LinAlgError if A is singular.", .py = "solve",
      .ns = "linalg", .out = true, .call = linalg_solve_call, .amp = LC_AMP_CPU_FP32);
COMPOSITE(linalg_solve_ex, solve(in(0), in(1), in[2].b, in[3].b ? "linalg.solve_ex" : "", "linalg.solve_ex", 2, out))
LC_OP(linalg_solve_ex,
      .sig = "linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> (result: Tensor, "
             "info: Tensor)",
      .doc = "As solve, and per matrix the first zero pivot (from 1; 0: none) instead of an error.", .py = "solve_ex",
      .ns = "linalg", .out = true, .call = linalg_solve_ex_call);

/* ---- inv ---- */

static int inv_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *A = call->in[0];
    return spec_matrices(call, &out[0], (lc_dtype)A->dtype, A, 2, rows_of_matrix(A), rows_of_matrix(A)) |
           spec_numbers(call, &out[1], LC_i32, A, 2);
}
static int inv_run(const lc_record *call)
{
    lc_linalg_args a = { .name = "linalg.inv", .batch = batch_of(call->in[0], 2), .pivot = true };
    a.m[0] = matrices_of(call->in[0], 2), a.m[1] = matrices_of(call->out[0], 2), a.m[2] = matrices_of(call->out[1], 0);
    return run_kernel_with(call, &a) < 0 ? -1 : check_info(call, call->out[1], call->args[1].s);
}
GRAD(_linalg_inv)
{
    lc_tensor *Xh = is_given(g[0]) ? mH(y[0]) : NULL;
    if (is_given(g[0])) dx[0] = lc_neg(mm(Xh, mm(g[0], Xh)));
}
LC_OP(_linalg_inv, .sig = "_linalg_inv(A: Tensor, check: str) -> (inverse: Tensor, info: Tensor)", .doc = "Inverses.",
      .hidden = true, .promote = LC_NO_PROMOTION, .shape = inv_shape, .run = inv_run, .any_strides = true,
      .grad = _linalg_inv_grad, .saves = OUT(0), .kind = LC_KIND_MATRICES);
static int inv(lc_tensor *A, const char *check, const char *f, int n, lc_tensor **out)
{
    if (check_square(A, f, "A") < 0 || check_floating(A, f) < 0) return -1;
    lc__linalg_inv_out r = lc__linalg_inv(A, check);
    out[0] = r.inverse;
    if (n > 1) out[1] = r.info;
    return r.inverse ? 0 : -1;
}
COMPOSITE(linalg_inv, inv(in(0), "linalg.inv", "linalg.inv", 1, out))
LC_OP(linalg_inv, .sig = "linalg_inv(A: Tensor) -> Tensor", .doc = "The inverse of A. Raises LinAlgError if there is none.",
      .py = "inv", .ns = "linalg", .out = true, .call = linalg_inv_call, .amp = LC_AMP_CPU_FP32);
LC_OP(inverse, .sig = "inverse(input: Tensor) -> Tensor", .doc = "The inverse of a matrix: linalg.inv.", .method = true,
      .out = true, .call = linalg_inv_call, .amp = LC_AMP_CPU_FP32);
COMPOSITE(linalg_inv_ex, inv(in(0), in[1].b ? "linalg.inv_ex" : "", "linalg.inv_ex", 2, out))
LC_OP(linalg_inv_ex, .sig = "linalg_inv_ex(A: Tensor, *, check_errors: bool = False) -> (inverse: Tensor, info: Tensor)",
      .doc = "The inverse, and per matrix the first zero pivot (from 1; 0: none) instead of an error.", .py = "inv_ex",
      .ns = "linalg", .out = true, .call = linalg_inv_ex_call, .amp = LC_AMP_CPU_FP32);

/* ---- determinants ---- */

static int det_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *A = call->in[0];
    int              factors = call->n_out - 2;
    lc_dtype         dtype = (lc_dtype)A->dtype;
    if (factors == 2 && spec_numbers(call, &out[1], lc_real_of(dtype), A, 2) < 0) return -1;
    if (!call->args[1].b)
        return spec_numbers(call, &out[0], dtype, A, 2) | spec_nothing(call, &out[factors], dtype) |
               spec_nothing(call, &out[factors + 1], LC_i32);
    return spec_numbers(call, &out[0], dtype, A, 2) |
           spec_matrices(call, &out[factors], dtype, A, 2, rows_of_matrix(A), rows_of_matrix(A)) |
           spec_vectors(call, &out[factors + 1], LC_i32, A, 2, rows_of_matrix(A));
}
static int det_run(const lc_record *call)
{
    lc_linalg_args a = {
        .name = "linalg.det", .batch = batch_of(call->in[0], 2), .pivot = true, .hermitian = call->n_out == 4
    };
    int factors = call->n_out - 2;
    a.m[0] = matrices_of(call->in[0], 2);
    for (int k = 0; k < factors; k++) a.m[1 + k] = matrices_of(call->out[k], 0);
    int64_t n = rows_of_matrix(call->in[0]);
    a.m[1 + factors] = (lc_matrices){ .rows = n, .cols = n }, a.m[2 + factors] = (lc_matrices){ .rows = n, .cols = 1 };
    if (call->args[1].b)
        a.m[1 + factors] = matrices_of(call->out[factors], 2), a.m[2 + factors] = matrices_of(call->out[factors + 1], 1);
    return run_kernel_with(call, &a);
}
static lc_tensor *products_before(lc_tensor *S) /* element i is the product of the elements before it */
{
    int64_t    n = S ? S->shape[S->ndim - 1] : 0;
    lc_tensor *one = S ? lc_ones_like(part(S, -1, 0, 1), LC_ABSENT, LC_ABSENT, LC_ABSENT) : NULL;
    return one ? lc_cumprod(lc_cat((lc_tensor *[]){ one, part(S, -1, 0, n - 1) }, 2, -1), -1, LC_ABSENT) : NULL;
}
/* The cofactors of A = U S Vh: det(U) det(Vh) U D Vh, where D has the products of all other singular values. */
static lc_tensor *cofactors(lc_tensor *A)
{
    lc__linalg_svd_out r = lc__linalg_svd(A, false, true, "linalg.svd");
    if (!r.S) return NULL;
    int64_t    last[] = { -1 };
    lc_tensor *D = lc_mul(products_before(r.S), lc_flip(products_before(lc_flip(r.S, last, 1)), last, 1));
    lc_tensor *turn = lc_mul(lc__linalg_det(r.U, wants_grad(r.U)).result, lc__linalg_det(r.Vh, wants_grad(r.Vh)).result);
    return turn ? lc_mul(column_of(column_of(conj_of(turn))), mm(lc_mul(r.U, row_of(D)), r.Vh)) : NULL;
}
static bool can_ask(const lc_tensor *t) /* a device would have to be waited for, and vmap hides values */
{
    return lc_can(t)->host_memory && !(t->flags & LC_BATCHED);
}
static int any_zero(lc_tensor *t, bool *any)
{
    int64_t    found = 0;
    lc_tensor *zero = t && can_ask(t) ? lc_any(lc_eq(lc_detach(t), LC_NUMBER(0)), NULL, 0, false) : t;
    if (!zero || (zero != t && read_int(zero, &found) < 0)) return -1;
    return *any = found, 0;
}
/* Without asking whether there are zeros: the factors and the determinant of a matrix whose zero pivots are as small as a
 * rounding of the largest element of U. Its cofactors differ from those of A by as little, and it has an inverse. */
static lc_tensor *without_zero_pivots(lc_tensor *LU, lc_tensor *pivots, lc_tensor **det)
{
    lc_dtype   real = lc_real_of((lc_dtype)LU->dtype);
    int64_t    both[] = { -2, -1 }, *last = &both[1], n = rows_of_matrix(LU);
    lc_value   here = { .tag = LC_IS_device, .dev = LU->device };
    lc_tensor *d = diagonal_of(LU), *most = d ? column_of(lc_amax(lc_triu(lc_abs(LU), 0), both, 2, false)) : NULL;
    lc_tensor *least = most ? lc_add(lc_mul(most, LC_NUMBER(real == LC_f64 ? 0x1p-52 : 0x1p-23)), LC_NUMBER(1e-30)) : NULL;
    lc_tensor *more = least ? lc_mul(lc_eq(d, LC_NUMBER(0)), least) : NULL;
    lc_tensor *moved = more ? lc_ne(pivots, lc_arange_start(LC_I(1), LC_I(n + 1), LC_I(1), LC_OF_DTYPE(LC_i32), here)) : NULL;
    lc_tensor *odd = moved ? lc_remainder(lc_sum(moved, last, 1, false), LC_NUMBER(2)) : NULL;
    lc_tensor *sign = odd ? lc_add(lc_mul(odd, LC_NUMBER(-2)), LC_NUMBER(1)) : NULL;
    *det = sign ? lc_mul(lc_prod(lc_add(d, more), LC_I(-1), false), sign) : NULL;
    return *det ? lc_add(LU, lc_diag_embed(more, 0, -2, -1)) : NULL;
}
/* g det A^-H, by the factors if this gradient has none of its own. Where A has no inverse, by its cofactors. */
GRAD(_linalg_det)
{
    if (!is_given(g[0])) return;
    bool       again = !(lc_modes & LC_NO_GRAD), singular = false;
    lc_tensor *LU = y[1], *det = y[0];
    if (rows_of_matrix(LU) == 1) dx[0] = column_of(column_of(g[0]));
    else if (any_zero(diagonal_of(LU), &singular) < 0) dx[0] = NULL;
    else if (singular) dx[0] = lc_mul(column_of(column_of(g[0])), cofactors(in(0)));
    else {
        if (!again && !can_ask(LU) && LU->numel) LU = without_zero_pivots(LU, y[2], &det);
        lc_tensor *d = det ? lc_mul(g[0], conj_of(det)) : NULL, *I = LU ? identity_like(LU, rows_of_matrix(LU)) : NULL;
        lc_tensor *right = d && I ? lc_mul(column_of(column_of(d)), I) : NULL;
        if (again) dx[0] = lc__linalg_solve(mH(in(0)), right, true, false, "").result;
        else dx[0] = right ? lc__linalg_lu_solve(LU, y[2], lc_expand(right, LU->shape, LU->ndim), true, true) : NULL;
    }
}
LC_OP(_linalg_det, .sig = "_linalg_det(A: Tensor, factors: bool) -> (result: Tensor, LU: Tensor, pivots: Tensor)",
      .doc = "Determinants, and the factors if they are wanted: the gradient needs them.", .hidden = true,
      .promote = LC_NO_PROMOTION, .shape = det_shape, .run = det_run, .any_strides = true, .grad = _linalg_det_grad,
      .saves = IN(0) | OUT(0) | OUT(1) | OUT(2), .kind = LC_KIND_MATRICES);
static int det(lc_tensor *A, lc_tensor **out)
{
    if (check_square(A, "linalg.det", "A") < 0 || check_floating(A, "linalg.det") < 0) return -1;
    return (out[0] = lc__linalg_det(A, wants_grad(A)).result) ? 0 : -1;
}
COMPOSITE(linalg_det, det(in(0), out))
LC_OP(linalg_det, .sig = "linalg_det(A: Tensor) -> Tensor", .doc = "The determinant.", .py = "det", .ns = "linalg", .out = true,
      .call = linalg_det_call);
LC_OP(det, .sig = "det(input: Tensor) -> Tensor", .doc = "The determinant of a square matrix.", .method = true,
      .call = linalg_det_call);

/* Of log |det A|: A^-H. Of the sign, e^(i phi): only its angle moves, and only if it is complex. */
GRAD(_linalg_slogdet)
{
    bool       again = !(lc_modes & LC_NO_GRAD), complex = lc_is_complex(y[0]->dtype);
    lc_tensor *d = is_given(g[1]) ? g[1] : LC_NONE, *LU = y[2];
    if (complex && is_given(g[0])) {
        lc_tensor *turn = lc_mul(conj_of(g[0]), y[0]); /* the part along i sign */
        lc_tensor *angle = turn ? lc_imag(turn) : NULL;
        lc_tensor *both = angle ? lc_complex(lc_zeros_like(angle, LC_ABSENT, LC_ABSENT, LC_ABSENT), lc_neg(angle)) : NULL;
        d = is_given(d) ? lc_add(d, both) : both;
    }
    if (!is_given(d)) return;
    lc_tensor *I = identity_like(LU, rows_of_matrix(LU)), *right = d ? lc_mul(column_of(column_of(d)), I) : NULL;
    if (again) dx[0] = lc__linalg_solve(mH(in(0)), right, true, false, "").result;
    else dx[0] = right ? lc__linalg_lu_solve(LU, y[3], lc_expand(right, LU->shape, LU->ndim), true, true) : NULL;
}
LC_OP(_linalg_slogdet,
      .sig = "_linalg_slogdet(A: Tensor, factors: bool) -> (sign: Tensor, logabsdet: Tensor, LU: Tensor, pivots: Tensor)",
      .doc = "Signs and logarithms of determinants, and the factors if they are wanted.", .hidden = true,
      .promote = LC_NO_PROMOTION, .shape = det_shape, .run = det_run, .any_strides = true, .grad = _linalg_slogdet_grad,
      .saves = IN(0) | OUT(0) | OUT(2) | OUT(3), .kind = LC_KIND_MATRICES);
static int slogdet(lc_tensor *A, lc_tensor **out)
{
    if (check_square(A, "linalg.slogdet", "A") < 0 || check_floating(A, "linalg.slogdet") < 0) return -1;
    lc__linalg_slogdet_out r = lc__linalg_slogdet(A, wants_grad(A));
    out[0] = r.sign, out[1] = r.logabsdet;
    return r.sign ? 0 : -1;
}
COMPOSITE(linalg_slogdet, slogdet(in(0), out))
LC_OP(linalg_slogdet, .sig = "linalg_slogdet(A: Tensor) -> (sign: Tensor, logabsdet: Tensor)",
      .doc = "The sign of the determinant (of a complex one: its direction) and the logarithm of its absolute value.",
      .py = "slogdet", .ns = "linalg", .out = true, .call = linalg_slogdet_call);
LC_OP(slogdet, .sig = "slogdet(input: Tensor) -> (sign: Tensor, logabsdet: Tensor)",
      .doc = "The sign and the logarithm of the absolute value of the determinant.", .method = true, .out = true,
      .call = linalg_slogdet_call);
/* NaN where a real determinant is negative. */
static int logdet_call(const lc_value *in, lc_tensor **out)
{
    if (check_square(in(0), "logdet", "A") < 0 || check_floating(in(0), "logdet") < 0) return -1;
    lc__linalg_slogdet_out r = lc__linalg_slogdet(in(0), wants_grad(in(0)));
    if (!r.sign) return -1;
    if (lc_is_complex(in(0)->dtype)) out[0] = lc_add(lc_log(r.sign), r.logabsdet);
    else
        out[0] = lc_where(lc_eq(r.sign, LC_NUMBER(-1)), lc_full_like(r.sign, LC_NUMBER(NAN), LC_ABSENT, LC_ABSENT, LC_ABSENT),
                          r.logabsdet);
    return out[0] ? 0 : -1;
}
LC_OP(logdet, .sig = "logdet(input: Tensor) -> Tensor", .doc = "The logarithm of the determinant; NaN if that is negative.",
      .method = true, .call = logdet_call);

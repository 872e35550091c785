/* Cholesky and LDL factorisations, triangular systems. */
#include "linalg.h"

/* ---- solve_triangular ---- */

static int triangular_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *B = call->in[1];
    return spec_matrices(call, out, (lc_dtype)B->dtype, B, 2, rows_of_matrix(B), cols_of_matrix(B));
}
static int triangular_run(const lc_record *call)
{
    lc_linalg_args a = { .name = "linalg.solve_triangular",
                         .batch = batch_of(call->in[0], 2),
                         .upper = call->args[2].b,
                         .left = call->args[3].b,
                         .unit = call->args[4].b };
    a.m[0] = matrices_of(call->in[0], 2), a.m[1] = matrices_of(call->in[1], 2), a.m[2] = matrices_of(call->out[0], 2);
    return run_kernel_with(call, &a);
}
GRAD(_linalg_solve_triangular)
{
    bool       upper = in[2].b, left = in[3].b, unit = in[4].b;
    lc_tensor *gB = lc__linalg_solve_triangular(mH(in(0)), g[0], !upper, left, unit);
    if (need[1]) dx[1] = gB;
    if (!need[0]) return;
    lc_tensor *gA = lc_neg(left ? mm(gB, mH(y[0])) : mm(mH(y[0]), gB));
    dx[0] = upper ? lc_triu(gA, unit) : lc_tril(gA, unit ? -1 : 0);
}
LC_OP(_linalg_solve_triangular,
      .sig = "_linalg_solve_triangular(A: Tensor, B: Tensor, upper: bool, left: bool, unitriangular: bool) -> Tensor",
      .doc = "Solutions of triangular systems of one batch.", .hidden = true, .promote = LC_NO_PROMOTION,
      .shape = triangular_shape, .run = triangular_run, .any_strides = true, .grad = _linalg_solve_triangular_grad,
      .saves = IN(0) | OUT(0), .kind = LC_KIND_MATRICES);

static lc_tensor *triangular(lc_tensor *A, lc_tensor *B, bool upper, bool left, bool unit, const char *f)
{
    if (!A) return NULL; /* an op before this failed */
    if (check_floating(A, f) < 0 || check_same_dtype(A, B, f, "A", "B") < 0 || check_square(A, f, "A") < 0 ||
        check_matrices(B, f, "B") < 0)
        return NULL;
    if ((left ? rows_of_matrix(B) : cols_of_matrix(B)) != rows_of_matrix(A))
        return lc_fail(LC_ShapeMismatch, "%s: Incompatible shapes of A and B for the equation %s: %s and %s", f,
                       left ? "AX = B" : "XA = B", LC_SHAPE(A), LC_SHAPE(B));
    return broadcast_batches(A, 2, B, 2, f, &A, &B) < 0 ? NULL : lc__linalg_solve_triangular(A, B, upper, left, unit);
}
COMPOSITE(linalg_solve_triangular,
          (out[0] = triangular(in(0), in(1), in[2].b, in[3].b, in[4].b, "linalg.solve_triangular")) ? 0 : -1)
LC_OP(linalg_solve_triangular,
      .sig = "linalg_solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> "
             "Tensor",
      .doc = "The solution of A X = B (or X A = B) for a triangular A, of which the other triangle is not read.",
      .py = "solve_triangular", .ns = "linalg", .out = true, .call = linalg_solve_triangular_call);
static int triangular_solve_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *B = in(0), *A = in(1);
    bool       upper = in[2].b, transposed = in[3].b;
    if (check_square(A, "triangular_solve", "A") < 0 || check_matrices(B, "triangular_solve", "b") < 0) return -1;
    out[1] = lc_clone(mT(A), LC_CONTIGUOUS_FORMAT);
    out[1] = mT(out[1]);
    out[0] = triangular(transposed ? mT(A) : A, B, upper != transposed, true, in[4].b, "triangular_solve");
    if (out[1] && A->ndim < (out[0] ? out[0]->ndim : 0)) {
        int64_t shape[LC_MAX_DIMS];
        memcpy(shape, out[0]->shape, (size_t)out[0]->ndim * sizeof *shape);
        shape[out[0]->ndim - 1] = cols_of_matrix(A), shape[out[0]->ndim - 2] = rows_of_matrix(A);
        out[1] = lc_expand(out[1], shape, out[0]->ndim);
    }
    return out[0] && out[1] ? 0 : -1;
}
LC_OP(triangular_solve,
      .sig = "triangular_solve(input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = "
             "False) -> (solution: "
             "Tensor, cloned_coefficient: Tensor)",
      .doc = "The solution of A X = input for a triangular A, and a copy of A. linalg.solve_triangular is the newer form.",
      .method = true, .out = true, .call = triangular_solve_call, .amp = LC_AMP_CPU_FP32);

/* ---- cholesky ---- */

static int cholesky_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *A = call->in[0];
    return spec_matrices(call, &out[0], (lc_dtype)A->dtype, A, 2, rows_of_matrix(A), rows_of_matrix(A)) |
           spec_numbers(call, &out[1], LC_i32, A, 2);
}
static int cholesky_run(const lc_record *call)
{
    lc_linalg_args a = { .name = "linalg.cholesky", .batch = batch_of(call->in[0], 2), .upper = call->args[1].b };
    a.m[0] = matrices_of(call->in[0], 2), a.m[1] = matrices_of(call->out[0], 2), a.m[2] = matrices_of(call->out[1], 0);
    return run_kernel_with(call, &a) < 0 ? -1 : check_info(call, call->out[1], call->args[2].s);
}
GRAD(_linalg_cholesky) /* L^-H sym(tril(L^H gL)) L^-1 / 2 */
{
    if (!is_given(g[0])) return;
    bool       upper = in[1].b;
    lc_tensor *L = upper ? mH(y[0]) : y[0], *gL = upper ? mH(g[0]) : g[0];
    lc_tensor *phi = lc_tril(mm(mH(L), gL), 0), *gA = lc_add(phi, mH(lc_tril(phi, -1)));
    gA = lc__linalg_solve_triangular(mH(L), gA, true, true, false);
    dx[0] = lc_mul(lc__linalg_solve_triangular(L, gA, false, false, false), LC_NUMBER(0.5));
}
LC_OP(_linalg_cholesky, .sig = "_linalg_cholesky(A: Tensor, upper: bool, check: str) -> (L: Tensor, info: Tensor)",
      .doc = "The Cholesky factors of matrices.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = cholesky_shape,
      .run = cholesky_run, .any_strides = true, .grad = _linalg_cholesky_grad, .saves = OUT(0), .kind = LC_KIND_MATRICES);
static int cholesky(lc_tensor *A, bool upper, const char *check, const char *f, int n, lc_tensor **out)
{
    if (check_square(A, f, "A") < 0 || check_floating(A, f) < 0) return -1;
    lc__linalg_cholesky_out r = lc__linalg_cholesky(A, upper, check);
    out[0] = r.L;
    if (n > 1) out[1] = r.info;
    return r.L ? 0 : -1;
}
COMPOSITE(linalg_cholesky, cholesky(in(0), in[1].b, "linalg.cholesky", "linalg.cholesky", 1, out))
LC_OP(linalg_cholesky, .sig = "linalg_cholesky(A: Tensor, *, upper: bool = False) -> Tensor",
      .doc = "L with A = L L^H, for a Hermitian positive definite A of which one triangle is read; or U with A = U^H U. Raises "
             "LinAlgError if A is "
             "not positive definite.",
      .py = "cholesky", .ns = "linalg", .out = true, .call = linalg_cholesky_call, .amp = LC_AMP_CPU_FP32);
COMPOSITE(linalg_cholesky_ex, cholesky(in(0), in[1].b, in[2].b ? "linalg.cholesky_ex" : "", "linalg.cholesky_ex", 2, out))
LC_OP(
    linalg_cholesky_ex,
    .sig = "linalg_cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> (L: Tensor, info: Tensor)",
    .doc =
        "As cholesky, and per matrix the order of the first leading minor that is not positive (0: none) instead of an error.",
    .py = "cholesky_ex", .ns = "linalg", .out = true, .call = linalg_cholesky_ex_call, .amp = LC_AMP_CPU_FP32);
COMPOSITE(cholesky, cholesky(in(0), in[1].b, "cholesky", "cholesky", 1, out))
LC_OP(cholesky, .sig = "cholesky(input: Tensor, upper: bool = False) -> Tensor",
      .doc = "The Cholesky factor of a matrix: linalg.cholesky.", .method = true, .out = true, .call = cholesky_call,
      .amp = LC_AMP_CPU_FP32);

/* ---- with a Cholesky factor ---- */

static lc_tensor *solution_by_factor(lc_tensor *B, lc_tensor *L, bool upper) /* the other triangle of L is not read */
{
    lc_tensor *first = lc__linalg_solve_triangular(upper ? mH(L) : L, B, false, true, false);
    return lc__linalg_solve_triangular(upper ? L : mH(L), first, true, true, false);
}
static int cholesky_solve_one_call(const lc_value *in, lc_tensor **out)
{
    return (out[0] = solution_by_factor(in(0), in(1), in[2].b)) ? 0 : -1;
}
GRAD(_cholesky_solve)
{
    bool       upper = in[2].b;
    lc_tensor *gB = lc__cholesky_solve(g[0], in(1), upper);
    if (need[0]) dx[0] = gB;
    if (!need[1]) return;
    lc_tensor *both = mm(gB, mH(y[0]));
    both = lc_add(both, mH(both));
    dx[1] = lc_neg(upper ? mm(in(1), both) : mm(both, in(1)));
}
LC_OP(_cholesky_solve, .sig = "_cholesky_solve(B: Tensor, L: Tensor, upper: bool) -> Tensor",
      .doc = "Solutions by Cholesky factors of one batch.", .hidden = true, .promote = LC_NO_PROMOTION,
      .call = cholesky_solve_one_call, .grad = _cholesky_solve_grad, .saves = IN(1) | OUT(0));
static int cholesky_solve_call(const lc_value *in, lc_tensor **out)
{
    static const char f[] = "cholesky_solve";
    lc_tensor        *B = in(0), *L = in(1);
    if (check_matrices(B, f, "B") < 0 || check_square(L, f, "L") < 0 || check_floating(L, f) < 0) return -1;
    if (check_same_dtype(B, L, f, "B", "L") < 0) return -1;
    if (rows_of_matrix(B) != rows_of_matrix(L))
        return lc_fail_int(
            LC_ShapeMismatch,
            "Incompatible matrix sizes for cholesky_solve: each A matrix is %lld by %lld but each b matrix is %lld by %lld",
            (long long)rows_of_matrix(L), (long long)rows_of_matrix(L), (long long)rows_of_matrix(B),
            (long long)cols_of_matrix(B));
    if (broadcast_batches(B, 2, L, 2, f, &B, &L) < 0) return -1;
    return (out[0] = lc__cholesky_solve(B, L, in[2].b)) ? 0 : -1;
}
LC_OP(cholesky_solve, .sig = "cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor",
      .doc = "The solution of A X = input, by the Cholesky factor of A.", .method = true, .out = true,
      .call = cholesky_solve_call, .amp = LC_AMP_CPU_FP32);
static int cholesky_inverse_one_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *L = in(0), *I = lc_expand(identity_like(L, rows_of_matrix(L)), L->shape, L->ndim);
    return (out[0] = solution_by_factor(I, L, in[1].b)) ? 0 : -1;
}
GRAD(_cholesky_inverse)
{
    bool       upper = in[1].b;
    lc_tensor *both = mm3(y[0], lc_add(g[0], mH(g[0])), y[0]);
    dx[0] = lc_neg(upper ? mm(in(0), both) : mm(both, in(0)));
}
LC_OP(_cholesky_inverse, .sig = "_cholesky_inverse(L: Tensor, upper: bool) -> Tensor", .doc = "Inverses by Cholesky factors.",
      .hidden = true, .promote = LC_NO_PROMOTION, .call = cholesky_inverse_one_call, .grad = _cholesky_inverse_grad,
      .saves = IN(0) | OUT(0));
static int cholesky_inverse_call(const lc_value *in, lc_tensor **out)
{
    if (check_square(in(0), "cholesky_inverse", "L") < 0 || check_floating(in(0), "cholesky_inverse") < 0) return -1;
    return (out[0] = lc__cholesky_inverse(in(0), in[1].b)) ? 0 : -1;
}
LC_OP(cholesky_inverse, .sig = "cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor",
      .doc = "The inverse of the matrix whose Cholesky factor is L.", .method = true, .out = true,
      .call = cholesky_inverse_call, .amp = LC_AMP_CPU_FP32);

/* ---- ldl ---- */

static int ldl_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *A = call->in[0];
    return spec_matrices(call, &out[0], (lc_dtype)A->dtype, A, 2, rows_of_matrix(A), rows_of_matrix(A)) |
           spec_vectors(call, &out[1], LC_i32, A, 2, rows_of_matrix(A)) | spec_numbers(call, &out[2], LC_i32, A, 2);
}
static int ldl_run(const lc_record *call)
{
    lc_linalg_args a = { .name = "linalg.ldl_factor", .batch = batch_of(call->in[0], 2), .hermitian = call->args[1].b };
    a.m[0] = matrices_of(call->in[0], 2), a.m[1] = matrices_of(call->out[0], 2), a.m[2] = matrices_of(call->out[1], 1);
    a.m[3] = matrices_of(call->out[2], 0);
    return run_kernel_with(call, &a) < 0 ? -1 : check_info(call, call->out[2], call->args[2].s);
}
GRAD(_linalg_ldl_factor)
{
    dx[0] = lc_fail(LC_NotImplementedError, "the derivative for 'linalg_ldl_factor_ex' is not implemented");
}
LC_OP(_linalg_ldl_factor,
      .sig = "_linalg_ldl_factor(A: Tensor, hermitian: bool, check: str) -> (LD: Tensor, pivots: Tensor, info: Tensor)",
      .doc = "The factors of symmetric matrices.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = ldl_shape,
      .run = ldl_run, .any_strides = true, .grad = _linalg_ldl_factor_grad, .kind = LC_KIND_MATRICES);
static int ldl_factor(lc_tensor *A, bool hermitian, const char *check, const char *f, int n, lc_tensor **out)
{
    if (check_square(A, f, "A") < 0 || check_floating(A, f) < 0) return -1;
    lc__linalg_ldl_factor_out r = lc__linalg_ldl_factor(A, hermitian, check);
    out[0] = r.LD, out[1] = r.pivots;
    if (n > 2) out[2] = r.info;
    return r.LD ? 0 : -1;
}
COMPOSITE(linalg_ldl_factor_ex,
          ldl_factor(in(0), in[1].b, in[2].b ? "linalg.ldl_factor_ex" : "", "linalg.ldl_factor_ex", 3, out))
LC_OP(linalg_ldl_factor_ex,
      .sig = "linalg_ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> (LD: Tensor, pivots: "
             "Tensor, info: Tensor)",
      .doc = "As ldl_factor, and per matrix the first zero of D (from 1; 0: none) instead of an error.", .py = "ldl_factor_ex",
      .ns = "linalg", .out = true, .call = linalg_ldl_factor_ex_call);
COMPOSITE(linalg_ldl_factor, ldl_factor(in(0), in[1].b, "linalg.ldl_factor", "linalg.ldl_factor", 2, out))
LC_OP(linalg_ldl_factor, .sig = "linalg_ldl_factor(A: Tensor, *, hermitian: bool = False) -> (LD: Tensor, pivots: Tensor)",
      .doc = "The factors of a symmetric (or Hermitian) matrix that need not be positive definite, as ldl_solve takes them.",
      .py = "ldl_factor", .ns = "linalg", .out = true, .call = linalg_ldl_factor_call);

static int ldl_solve_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *B = call->in[2];
    return spec_matrices(call, out, (lc_dtype)B->dtype, B, 2, rows_of_matrix(B), cols_of_matrix(B));
}
static int ldl_solve_run(const lc_record *call)
{
    lc_linalg_args a = { .name = "linalg.ldl_solve", .batch = batch_of(call->in[0], 2), .hermitian = call->args[3].b };
    a.m[0] = matrices_of(call->in[0], 2), a.m[1] = matrices_of(call->in[1], 1), a.m[2] = matrices_of(call->in[2], 2);
    a.m[3] = matrices_of(call->out[0], 2);
    return run_kernel_with(call, &a);
}
GRAD(_linalg_ldl_solve)
{
    if (need[0]) dx[0] = lc_fail(LC_NotImplementedError, "the derivative for 'linalg_ldl_solve' is not implemented");
    if (need[2]) dx[2] = lc_fail(LC_NotImplementedError, "the derivative for 'linalg_ldl_solve' is not implemented");
}
LC_OP(_linalg_ldl_solve, .sig = "_linalg_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> Tensor",
      .doc = "Solutions by LDL factors of one batch.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = ldl_solve_shape,
      .run = ldl_solve_run, .any_strides = true, .grad = _linalg_ldl_solve_grad, .kind = LC_KIND_MATRICES);
static int linalg_ldl_solve_call(const lc_value *in, lc_tensor **out)
{
    static const char f[] = "linalg.ldl_solve";
    lc_tensor        *LD = in(0), *pivots = in(1), *B = in(2), *ignored;
    if (check_square(LD, f, "LD") < 0 || check_floating(LD, f) < 0) return -1;
    if (B->ndim < 2)
        return lc_fail_int(LC_ShapeMismatch,
                           "linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has %d dimensions instead",
                           B->ndim);
    if (pivots->ndim != LD->ndim - 1 || !lc_same_sizes(pivots->shape, LD->shape, pivots->ndim))
        return lc_fail_int(LC_ShapeMismatch,
                           "linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with "
                           "shape %s instead",
                           LC_SHAPE(pivots));
    if (lc_class_of(pivots->dtype) != LC_INT)
        return lc_fail_int(LC_LucidError, "linalg.ldl_solve: Expected pivots to be integers. Got %s",
                           lc_dtypes[pivots->dtype].name);
    if (check_same_dtype(LD, B, f, "LD", "B") < 0) return -1;
    if (rows_of_matrix(B) != rows_of_matrix(LD))
        return lc_fail_int(LC_ShapeMismatch, "linalg.ldl_solve: Incompatible shapes of LD and B: %s and %s", LC_SHAPE(LD),
                           LC_SHAPE(B));
    if (broadcast_batches(LD, 2, B, 2, f, &LD, &B) < 0 || broadcast_batches(pivots, 1, LD, 2, f, &pivots, &ignored) < 0)
        return -1;
    pivots = lc_to(pivots, LC_i32, false, false, LC_ABSENT);
    return (out[0] = lc__linalg_ldl_solve(LD, pivots, B, in[3].b)) ? 0 : -1;
}
LC_OP(linalg_ldl_solve, .sig = "linalg_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor",
      .doc = "The solution of A X = B, by what ldl_factor gives.", .py = "ldl_solve", .ns = "linalg", .out = true,
      .call = linalg_ldl_solve_call);

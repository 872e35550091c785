/* Eigenvalues and singular values. */
#include "linalg.h"

static lc_tensor *skew(lc_tensor *t) { return t ? lc_sub(t, mH(t)) : NULL; }

/* ---- eigh ---- */

static int eigh_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *A = call->in[0];
    lc_dtype         dtype = (lc_dtype)A->dtype;
    int64_t          n = rows_of_matrix(A);
    int              rc = spec_vectors(call, &out[0], lc_real_of(dtype), A, 2, n) | spec_numbers(call, &out[2], LC_i32, A, 2);
    return rc | (call->args[2].b ? spec_matrices(call, &out[1], dtype, A, 2, n, n) : spec_nothing(call, &out[1], dtype));
}
static int eigh_run(const lc_record *call)
{
    lc_linalg_args a = {
        .name = "linalg.eigh", .batch = batch_of(call->in[0], 2), .upper = call->args[1].b, .vectors = call->args[2].b
    };
    a.m[0] = matrices_of(call->in[0], 2), a.m[1] = matrices_of(call->out[0], 1), a.m[3] = matrices_of(call->out[2], 0);
    if (a.vectors) a.m[2] = matrices_of(call->out[1], 2);
    if (!call->in[0]->numel) return fill_tensor(call->out[2], LC_INTEGER(0));
    return run_kernel_with(call, &a) < 0 ? -1 : check_info(call, call->out[2], call->args[3].s);
}
/* A loss must not depend on the phase of a vector, which is free: then V^H gV has a real diagonal. */
static int check_phase(lc_tensor *diagonal, const char *function)
{
    if (!diagonal || !lc_is_complex(diagonal->dtype) || !lc_can(diagonal)->host_memory || diagonal->flags & LC_BATCHED)
        return 0;
    lc_tensor *imaginary = lc_abs(lc_imag(lc_detach(diagonal))),
              *bad = imaginary ? lc_any(lc_gt(imaginary, LC_NUMBER(1e-2)), NULL, 0, false) : NULL;
    int64_t depends = 0;
    if (!bad || read_int(bad, &depends) < 0) return -1;
    return depends
               ? lc_fail_int(LC_LucidError,
                             "%s: The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. The "
                             "specified loss function depends on this quantity, so it is ill-defined.",
                             function)
               : 0;
}
static lc_tensor *differences(lc_tensor *L) /* element (i, j) is L_j - L_i, the diagonal 1 */
{
    lc_tensor *E = L ? lc_sub(row_of(L), column_of(L)) : NULL;
    return E ? lc_add(E, identity_like(E, cols_of_matrix(E))) : NULL;
}
static lc_tensor *without_diagonal(lc_tensor *t) { return t ? lc_sub(t, as_diagonal(diagonal_of(t))) : NULL; }
GRAD(_linalg_eigh)
{
    lc_tensor *gL = g[0], *gV = g[1], *L = y[0], *V = y[1];
    if (!in[2].b) {
        dx[0] = lc_fail(LC_LucidError, "linalg_eigh_backward: eigenvectors were not computed");
        return;
    }
    if (!is_given(gL) && !is_given(gV)) return;
    if (!is_given(gV)) {
        dx[0] = mm(lc_mul(V, row_of(gL)), mH(V));
        return;
    }
    lc_tensor *inner = mm(mH(V), gV);
    if (check_phase(diagonal_of(inner), "linalg_eigh_backward") < 0) {
        dx[0] = NULL;
        return;
    }
    inner = lc_mul(skew(inner), LC_NUMBER(0.5)); /* the gradient is Hermitian */
    inner = lc_div(without_diagonal(inner), differences(L));
    if (is_given(gL)) inner = lc_add(inner, as_diagonal(gL));
    dx[0] = mm3(V, inner, mH(V));
}
LC_OP(_linalg_eigh,
      .sig = "_linalg_eigh(A: Tensor, upper: bool, vectors: bool, check: str) -> (eigenvalues: Tensor, eigenvectors: Tensor, "
             "info: Tensor)",
      .doc = "Eigenvalues and vectors of Hermitian matrices.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = eigh_shape,
      .run = eigh_run, .any_strides = true, .grad = _linalg_eigh_grad, .saves = OUT(0) | OUT(1), .kind = LC_KIND_MATRICES);
static int eigh(lc_tensor *A, const char *uplo, bool vectors, const char *f, int n, lc_tensor **out)
{
    bool upper = uplo[0] == 'U' || uplo[0] == 'u';
    if (check_square(A, f, "A") < 0 || check_floating(A, f) < 0) return -1;
    if ((!upper && uplo[0] != 'L' && uplo[0] != 'l') || uplo[1])
        return lc_fail_int(LC_LucidError, "%s: Expected UPLO argument to be 'L' or 'U', but got %s", f, uplo);
    lc__linalg_eigh_out r = lc__linalg_eigh(A, upper, vectors || wants_grad(A), f);
    out[0] = r.eigenvalues;
    if (n > 1) out[1] = r.eigenvectors;
    return r.eigenvalues ? 0 : -1;
}
COMPOSITE(linalg_eigh, eigh(in(0), in[1].s, true, "linalg.eigh", 2, out))
LC_OP(linalg_eigh, .sig = "linalg_eigh(A: Tensor, UPLO: str = 'L') -> (eigenvalues: Tensor, eigenvectors: Tensor)",
      .doc = "The eigenvalues, ascending, and vectors (as columns) of a symmetric or Hermitian matrix, of which one triangle "
             "is read.",
      .py = "eigh", .ns = "linalg", .out = true, .call = linalg_eigh_call, .amp = LC_AMP_CPU_FP32);
COMPOSITE(linalg_eigvalsh, eigh(in(0), in[1].s, false, "linalg.eigvalsh", 1, out))
LC_OP(linalg_eigvalsh, .sig = "linalg_eigvalsh(A: Tensor, UPLO: str = 'L') -> Tensor",
      .doc = "The eigenvalues, ascending, of a symmetric or Hermitian matrix, of which one triangle is read.", .py = "eigvalsh",
      .ns = "linalg", .out = true, .call = linalg_eigvalsh_call, .amp = LC_AMP_CPU_FP32);

/* ---- eig ---- */

static lc_dtype complex_of(lc_dtype dtype) { return lc_real_of(dtype) == LC_f64 ? LC_c128 : LC_c64; }
static int      eig_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *A = call->in[0];
    lc_dtype         dtype = complex_of((lc_dtype)A->dtype);
    int64_t          n = rows_of_matrix(A);
    int              rc = spec_vectors(call, &out[0], dtype, A, 2, n) | spec_numbers(call, &out[2], LC_i32, A, 2);
    return rc | (call->args[1].b ? spec_matrices(call, &out[1], dtype, A, 2, n, n) : spec_nothing(call, &out[1], dtype));
}
static int check_finite(const lc_record *call, const char *f)
{
    if (!call->backend->can.host_memory) return 0;
    lc_scope   scope = lc_scope_open();
    lc_tensor *all = lc_all(lc_isfinite(lc_detach(call->in[0])), NULL, 0, false);
    int64_t    finite = 1;
    int        rc = all ? read_int(all, &finite) : -1;
    lc_scope_close(scope);
    return rc < 0 || finite ? rc : lc_fail_int(LC_LucidError, "%s: input tensor should not contain infs or NaNs.", f);
}
static int eig_run(const lc_record *call)
{
    lc_linalg_args a = { .name = "linalg.eig", .batch = batch_of(call->in[0], 2), .vectors = call->args[1].b };
    a.m[0] = matrices_of(call->in[0], 2), a.m[1] = matrices_of(call->out[0], 1), a.m[3] = matrices_of(call->out[2], 0);
    if (a.vectors) a.m[2] = matrices_of(call->out[1], 2);
    if (!call->in[0]->numel) return fill_tensor(call->out[2], LC_INTEGER(0));
    if (check_finite(call, "torch.linalg.eig") < 0 || run_kernel_with(call, &a) < 0) return -1;
    return check_info(call, call->out[2], call->args[2].s);
}
GRAD(_linalg_eig)
{
    lc_tensor *gL = g[0], *gV = g[1], *L = y[0], *V = y[1], *inner;
    if (!in[1].b) {
        dx[0] = lc_fail(LC_LucidError, "linalg_eig_backward: eigenvectors were not computed");
        return;
    }
    if (!is_given(gL) && !is_given(gV)) return;
    lc_tensor *Vh = mH(V);
    if (is_given(gV)) {
        lc_tensor *VhgV = mm(Vh, gV), *diagonal = diagonal_of(VhgV);
        if (check_phase(diagonal, "linalg_eig_backward") < 0) {
            dx[0] = NULL;
            return;
        }
        inner = lc_sub(VhgV, lc_mul(mm(Vh, V), row_of(lc_real(diagonal))));
        inner = lc_div(without_diagonal(inner), conj_of(differences(L)));
        if (is_given(gL)) inner = lc_add(inner, as_diagonal(gL));
        inner = mm(inner, Vh);
    } else inner = lc_mul(column_of(gL), Vh);
    dx[0] = lc__linalg_solve(Vh, inner, true, false, "").result;
    if (dx[0] && !lc_is_complex(in(0)->dtype)) dx[0] = lc_real(dx[0]);
}
LC_OP(_linalg_eig,
      .sig = "_linalg_eig(A: Tensor, vectors: bool, check: str) -> (eigenvalues: Tensor, eigenvectors: Tensor, info: Tensor)",
      .doc = "Eigenvalues and vectors of matrices.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = eig_shape,
      .run = eig_run, .any_strides = true, .grad = _linalg_eig_grad, .saves = OUT(0) | OUT(1), .kind = LC_KIND_MATRICES);
static int eig(lc_tensor *A, bool vectors, const char *f, int n, lc_tensor **out)
{
    if (check_square(A, f, "A") < 0 || check_floating(A, f) < 0) return -1;
    lc__linalg_eig_out r = lc__linalg_eig(A, vectors || wants_grad(A), f);
    out[0] = r.eigenvalues;
    if (n > 1) out[1] = r.eigenvectors;
    return r.eigenvalues ? 0 : -1;
}
COMPOSITE(linalg_eig, eig(in(0), true, "linalg.eig", 2, out))
LC_OP(linalg_eig, .sig = "linalg_eig(A: Tensor) -> (eigenvalues: Tensor, eigenvectors: Tensor)",
      .doc = "The eigenvalues and vectors (as columns) of a square matrix; both are complex.", .py = "eig", .ns = "linalg",
      .out = true, .call = linalg_eig_call, .amp = LC_AMP_CPU_FP32);
COMPOSITE(linalg_eigvals, eig(in(0), false, "linalg.eigvals", 1, out))
LC_OP(linalg_eigvals, .sig = "linalg_eigvals(A: Tensor) -> Tensor",
      .doc = "The eigenvalues of a square matrix; they are complex.", .py = "eigvals", .ns = "linalg", .out = true,
      .call = linalg_eigvals_call, .amp = LC_AMP_CPU_FP32);

/* ---- svd ---- */

static int svd_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *A = call->in[0];
    lc_dtype         dtype = (lc_dtype)A->dtype;
    int64_t          m = rows_of_matrix(A), n = cols_of_matrix(A), k = fewer(A);
    bool             full = call->args[1].b;
    if (spec_vectors(call, &out[1], lc_real_of(dtype), A, 2, k) < 0 || spec_numbers(call, &out[3], LC_i32, A, 2) < 0) return -1;
    if (!call->args[2].b) return spec_nothing(call, &out[0], dtype) | spec_nothing(call, &out[2], dtype);
    return spec_matrices(call, &out[0], dtype, A, 2, m, full ? m : k) |
           spec_matrices(call, &out[2], dtype, A, 2, full ? n : k, n);
}
static int fill_identity(lc_tensor *t) /* of what has no elements to factorise, the vectors are any basis */
{
    lc_scope   scope = lc_scope_open();
    lc_tensor *I = t->numel ? identity_like(t, rows_of_matrix(t)) : t;
    int        rc = !I ? -1 : t->numel ? move_values(t, I) : 0;
    lc_scope_close(scope);
    return rc;
}
static int svd_run(const lc_record *call)
{
    lc_linalg_args a = {
        .name = "linalg.svd", .batch = batch_of(call->in[0], 2), .full = call->args[1].b, .vectors = call->args[2].b
    };
    a.m[0] = matrices_of(call->in[0], 2), a.m[2] = matrices_of(call->out[1], 1), a.m[4] = matrices_of(call->out[3], 0);
    if (a.vectors) a.m[1] = matrices_of(call->out[0], 2), a.m[3] = matrices_of(call->out[2], 2);
    if (!call->in[0]->numel) {
        if (fill_tensor(call->out[3], LC_INTEGER(0)) < 0) return -1;
        return !a.vectors || !a.full ? 0 : fill_identity(call->out[0]) < 0 ? -1 : fill_identity(call->out[2]);
    }
    return run_kernel_with(call, &a) < 0 ? -1 : check_info(call, call->out[3], call->args[3].s);
}
/* Both phases of a pair of vectors may turn together; a loss that depends on it has no gradient. */
static int check_pairs(lc_tensor *U, lc_tensor *V)
{
    lc_tensor *u = U ? lc_imag(diagonal_of(lc_detach(U))) : NULL, *v = V ? lc_imag(diagonal_of(lc_detach(V))) : NULL;
    lc_tensor *one = u ? u : v, *sum = u && v ? lc_add(u, v) : one;
    if (!one || !lc_can(one)->host_memory || one->flags & LC_BATCHED) return one ? 0 : -1;
    lc_tensor *limit = lc_add(lc_mul(lc_abs(v ? v : u), LC_NUMBER(v && u ? 1e-2 : 0)), LC_NUMBER(1e-2));
    lc_tensor *bad = lc_any(lc_gt(lc_abs(sum), limit), NULL, 0, false);
    int64_t    depends = 0;
    if (!bad || read_int(bad, &depends) < 0) return -1;
    return depends ? lc_fail_int(LC_LucidError, "svd_backward: The singular vectors in the complex case are specified up to "
                                                "multiplication by e^{i phi}. The "
                                                "specified loss function depends on this phase term, making it ill-defined.")
                   : 0;
}
static lc_tensor *svd_gradient(lc_tensor *gU, lc_tensor *gS, lc_tensor *gVh, lc_tensor *U, lc_tensor *S, lc_tensor *Vh)
{
    int64_t m = rows_of_matrix(U), n = cols_of_matrix(Vh), k = S->shape[S->ndim - 1];
    if (!is_given(gU) && !is_given(gVh)) return m >= n ? mm(U, lc_mul(column_of(gS), Vh)) : mm(lc_mul(U, row_of(gS)), Vh);
    bool       complex = lc_is_complex(U->dtype);
    lc_tensor *UhgU = is_given(gU) ? skew(mm(mH(U), gU)) : NULL, *VhgV = is_given(gVh) ? skew(mm(Vh, mH(gVh))) : NULL;
    if (complex && check_pairs(UhgU, VhgV) < 0) return NULL;
    lc_tensor *E = differences(lc_square(S)), *inner;
    if (UhgU && VhgV) inner = lc_div(lc_add(lc_mul(UhgU, row_of(S)), lc_mul(column_of(S), VhgV)), E);
    else if (UhgU) inner = lc_mul(lc_div(UhgU, E), row_of(S));
    else inner = lc_mul(column_of(S), lc_div(VhgV, E));
    inner = without_diagonal(inner);
    if (is_given(gS)) inner = lc_add(inner, as_diagonal(gS));
    if (complex && UhgU && VhgV) inner = lc_add(inner, as_diagonal(lc_div(diagonal_of(UhgU), lc_mul(S, LC_NUMBER(2)))));
    lc_tensor *gA = mm(U, inner);
    if (m > k && UhgU) { /* what leaves the span of U */
        lc_tensor *out = lc_div(gU, row_of(S));
        gA = lc_add(gA, lc_sub(out, mm(U, mm(mH(U), out))));
    }
    gA = mm(gA, Vh);
    if (n > k && VhgV) {
        lc_tensor *out = lc_div(gVh, column_of(S));
        gA = lc_add(gA, mm(U, lc_sub(out, mm(mm(out, mH(Vh)), Vh))));
    }
    return gA;
}
GRAD(_linalg_svd)
{
    lc_tensor *S = y[1], *U = y[0], *Vh = y[2];
    if (!in[2].b) {
        dx[0] = lc_fail(LC_LucidError, "svd_backward: singular vectors were not computed");
        return;
    }
    if (!is_given(g[0]) && !is_given(g[1]) && !is_given(g[2])) return;
    int64_t    k = S->shape[S->ndim - 1];
    bool       full = in[1].b;
    lc_tensor *gU = full && is_given(g[0]) ? part(g[0], -1, 0, k) : g[0],
              *gVh = full && is_given(g[2]) ? part(g[2], -2, 0, k) : g[2];
    dx[0] = svd_gradient(gU, g[1], gVh, full ? part(U, -1, 0, k) : U, S, full ? part(Vh, -2, 0, k) : Vh);
}
LC_OP(_linalg_svd,
      .sig = "_linalg_svd(A: Tensor, full_matrices: bool, vectors: bool, check: str) -> (U: Tensor, S: Tensor, Vh: Tensor, "
             "info: Tensor)",
      .doc = "Singular values and vectors of matrices.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = svd_shape,
      .run = svd_run, .any_strides = true, .grad = _linalg_svd_grad, .saves = OUT(0) | OUT(1) | OUT(2),
      .kind = LC_KIND_MATRICES);
static int check_svd(lc_tensor *A, const char *driver, const char *f)
{
    if (check_matrices(A, f, "A") < 0 || check_floating(A, f) < 0) return -1;
    return driver ? lc_fail_int(LC_LucidError,
                                "%s: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.", f)
                  : 0;
}
static int linalg_svd_call(const lc_value *in, lc_tensor **out)
{
    if (check_svd(in(0), in[2].tag == LC_IS_str ? in[2].s : NULL, "linalg.svd") < 0) return -1;
    lc__linalg_svd_out r = lc__linalg_svd(in(0), in[1].b, true, "linalg.svd");
    out[0] = r.U, out[1] = r.S, out[2] = r.Vh;
    return r.U ? 0 : -1;
}
LC_OP(
    linalg_svd,
    .sig =
        "linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> (U: Tensor, S: Tensor, Vh: Tensor)",
    .doc = "A = U diag(S) Vh: singular values, descending, and vectors; U and Vh are square if full_matrices.", .py = "svd",
    .ns = "linalg", .out = true, .call = linalg_svd_call, .amp = LC_AMP_CPU_FP32);
static int linalg_svdvals_call(const lc_value *in, lc_tensor **out)
{
    if (check_svd(in(0), in[1].tag == LC_IS_str ? in[1].s : NULL, "linalg.svdvals") < 0) return -1;
    return (out[0] = lc__linalg_svd(in(0), false, wants_grad(in(0)), "linalg.svdvals").S) ? 0 : -1;
}
LC_OP(linalg_svdvals, .sig = "linalg_svdvals(A: Tensor, *, driver: str | None = None) -> Tensor",
      .doc = "The singular values, descending.", .py = "svdvals", .ns = "linalg", .out = true, .call = linalg_svdvals_call,
      .amp = LC_AMP_CPU_FP32);
/* The old form gives V, not its adjoint, and zeros where vectors are not asked for. */
static int svd_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *A = in(0);
    if (check_svd(A, NULL, "linalg.svd") < 0) return -1;
    lc__linalg_svd_out r = lc__linalg_svd(A, !in[1].b, in[2].b || wants_grad(A), "linalg.svd");
    if (!r.S) return -1;
    out[0] = r.U, out[1] = r.S, out[2] = mH(r.Vh);
    if (in[2].b) return out[2] ? 0 : -1;
    int64_t shape[LC_MAX_DIMS];
    memcpy(shape, A->shape, (size_t)A->ndim * sizeof *shape);
    lc_value dtype = LC_OF_DTYPE((lc_dtype)A->dtype), device = { .tag = LC_IS_device, .dev = A->device };
    shape[A->ndim - 1] = shape[A->ndim - 2];
    out[0] = lc_zeros(shape, A->ndim, dtype, device);
    shape[A->ndim - 1] = shape[A->ndim - 2] = cols_of_matrix(A);
    out[2] = lc_zeros(shape, A->ndim, dtype, device);
    return out[0] && out[2] ? 0 : -1;
}
LC_OP(svd, .sig = "svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> (U: Tensor, S: Tensor, V: Tensor)",
      .doc = "input = U diag(S) V^H. linalg.svd is the newer form, which gives V^H.", .method = true, .out = true,
      .call = svd_call, .amp = LC_AMP_CPU_FP32);

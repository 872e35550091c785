/* QR decompositions and products of reflections. */
#include "linalg.h"

enum { REDUCED, COMPLETE, ONLY_R };
static int mode_of(const char *text)
{
    if (!strcmp(text, "reduced")) return REDUCED;
    if (!strcmp(text, "complete")) return COMPLETE;
    if (!strcmp(text, "r")) return ONLY_R;
    return lc_fail_int(LC_LucidError,
                       "qr received unrecognized mode '%s' but expected one of 'reduced' (default), 'r', or 'complete'", text);
}
static int qr_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *A = call->in[0];
    int              mode = mode_of(call->args[1].s);
    if (mode < 0 || check_matrices(A, "linalg.qr", "A") < 0 || check_floating(A, "linalg.qr") < 0) return -1;
    int64_t m = rows_of_matrix(A), k = mode == COMPLETE ? m : fewer(A);
    if (spec_matrices(call, &out[1], (lc_dtype)A->dtype, A, 2, k, cols_of_matrix(A)) < 0) return -1;
    return mode == ONLY_R ? spec_nothing(call, &out[0], (lc_dtype)A->dtype)
                          : spec_matrices(call, &out[0], (lc_dtype)A->dtype, A, 2, m, k);
}
static int qr_run(const lc_record *call)
{
    int            mode = mode_of(call->args[1].s);
    lc_linalg_args a = {
        .name = "linalg.qr", .batch = batch_of(call->in[0], 2), .full = mode == COMPLETE, .vectors = mode != ONLY_R
    };
    a.m[0] = matrices_of(call->in[0], 2), a.m[2] = matrices_of(call->out[1], 2);
    if (a.vectors) a.m[1] = matrices_of(call->out[0], 2);
    return run_kernel_with(call, &a);
}
/* Of a matrix with at least as many rows as columns: (gQ + Q sym(triu(gR R^H - Q^H gQ))) R^-H. */
static lc_tensor *tall_gradient(lc_tensor *gQ, lc_tensor *gR, lc_tensor *Q, lc_tensor *R)
{
    lc_tensor *M = is_given(gR) ? mm(gR, mH(R)) : NULL;
    if (is_given(gQ)) {
        lc_tensor *inner = mm(mH(Q), gQ);
        M = is_given(gR) ? lc_sub(M, inner) : lc_neg(inner);
    }
    lc_tensor *gA = mm(Q, symmetrised(lc_triu(M, 0)));
    if (is_given(gQ)) gA = lc_add(gA, gQ);
    return lc__linalg_solve_triangular(mH(R), gA, false, false, false);
}
GRAD(linalg_qr)
{
    int        mode = mode_of(in[1].s);
    lc_tensor *gQ = g[0], *gR = g[1], *Q = y[0], *R = y[1];
    if (mode == ONLY_R) {
        dx[0] =
            lc_fail(LC_LucidError, "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
                                   "linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr.");
        return;
    }
    int64_t m = rows_of_matrix(Q), n = cols_of_matrix(R);
    if (mode == COMPLETE && m > n) {
        dx[0] = lc_fail(LC_LucidError, "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
        return;
    }
    if (!is_given(gQ) && !is_given(gR)) return;
    if (m >= n) {
        dx[0] = tall_gradient(gQ, gR, Q, R);
        return;
    }
    lc_tensor *U = part(R, -1, 0, m), *V = part(R, -1, m, n - m), *gU = LC_NONE; /* A = Q [U, V] */
    if (is_given(gR)) {
        lc_tensor *gV = part(gR, -1, m, n - m), *more = mm(mm(Q, V), mH(gV));
        gU = part(gR, -1, 0, m);
        gQ = is_given(gQ) ? lc_add(gQ, more) : more;
        dx[0] = lc_cat((lc_tensor *[]){ tall_gradient(gQ, gU, Q, U), mm(Q, gV) }, 2, -1);
    } else
        dx[0] =
            lc_cat((lc_tensor *[]){ tall_gradient(gQ, gU, Q, U), lc_zeros_like(V, LC_ABSENT, LC_ABSENT, LC_ABSENT) }, 2, -1);
}
LC_OP(
    linalg_qr, .sig = "linalg_qr(A: Tensor, mode: str = 'reduced') -> (Q: Tensor, R: Tensor)",
    .doc =
        "A = Q R: orthonormal columns and an upper triangular matrix. mode: 'reduced', 'complete' (a square Q) or 'r' (no Q).",
    .py = "qr", .ns = "linalg", .out = true, .promote = LC_NO_PROMOTION, .shape = qr_shape, .run = qr_run, .any_strides = true,
    .grad = linalg_qr_grad, .saves = OUT(0) | OUT(1), .kind = LC_KIND_MATRICES, .amp = LC_AMP_CPU_FP32);
static int qr_call(const lc_value *in, lc_tensor **out)
{
    lc_linalg_qr_out r = lc_linalg_qr(in(0), in[1].b ? "reduced" : "complete");
    out[0] = r.Q, out[1] = r.R;
    return r.Q ? 0 : -1;
}
LC_OP(qr, .sig = "qr(input: Tensor, some: bool = True) -> (Q: Tensor, R: Tensor)",
      .doc = "The QR decomposition of a matrix: linalg.qr.", .method = true, .out = true, .call = qr_call,
      .amp = LC_AMP_CPU_FP32);

/* ---- geqrf ---- */

static int geqrf_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *A = call->in[0];
    if (check_matrices(A, "geqrf", "input") < 0 || check_floating(A, "geqrf") < 0) return -1;
    return spec_matrices(call, &out[0], (lc_dtype)A->dtype, A, 2, rows_of_matrix(A), cols_of_matrix(A)) |
           spec_vectors(call, &out[1], (lc_dtype)A->dtype, A, 2, fewer(A));
}
static int geqrf_run(const lc_record *call)
{
    lc_linalg_args a = { .name = "geqrf", .batch = batch_of(call->in[0], 2) };
    a.m[0] = matrices_of(call->in[0], 2), a.m[1] = matrices_of(call->out[0], 2), a.m[2] = matrices_of(call->out[1], 1);
    return run_kernel_with(call, &a);
}
GRAD(geqrf) { dx[0] = lc_fail(LC_NotImplementedError, "the derivative for 'geqrf' is not implemented"); }
LC_OP(geqrf, .sig = "geqrf(input: Tensor) -> (a: Tensor, tau: Tensor)",
      .doc = "R above the vectors of the reflections whose product is Q, and their factors: what householder_product and ormqr "
             "take.",
      .method = true, .out = true, .promote = LC_NO_PROMOTION, .shape = geqrf_shape, .run = geqrf_run, .any_strides = true,
      .grad = geqrf_grad, .kind = LC_KIND_MATRICES, .amp = LC_AMP_CPU_FP32);

/* ---- products of reflections ---- */

/* Gradients of Y = H_0 ... H_(k-1) C, or of its adjoint's product with C, by A (vectors below the diagonal), tau and C. H = I - tau v v^H; with G
 * the gradient of H: gtau = -v^H G v, gv = -conj(tau) G v - tau G^H v. */
typedef struct {
    lc_tensor *A, *tau, *C;
} reflected;
static lc_tensor *vector_of(lc_tensor *unit, int64_t i) { return part(unit, -1, i, 1); } /* (..., m, 1) */
static lc_tensor *factor_of(lc_tensor *tau, int64_t i) { return column_of(part(tau, -1, i, 1)); }
static lc_tensor *reflect(lc_tensor *x, lc_tensor *v, lc_tensor *tau) { return lc_sub(x, mm(lc_mul(tau, v), mm(mH(v), x))); }
static int        reflections_gradient(lc_tensor *g, lc_tensor *A, lc_tensor *tau, lc_tensor *C, bool adjoint, reflected *d)
{
    int64_t m = rows_of_matrix(A), k = tau->shape[tau->ndim - 1], n = cols_of_matrix(A);
    LC_ARRAY(lc_tensor *, before, k + 1); /* what each reflection was applied to */
    LC_ARRAY(lc_tensor *, gv, n + 1);
    LC_ARRAY(lc_tensor *, gt, k + 1);
    if (!before || !gv || !gt) return -1;
    lc_tensor *unit = lc_add(lc_tril(A, -1), lc_eye(m, LC_I(n), LC_OF_DTYPE((lc_dtype)A->dtype),
                                                    (lc_value){ .tag = LC_IS_device, .dev = A->device }));
    if (!unit) return -1;
    lc_tensor *x = C;
    for (int64_t step = 0; step < k && x; step++) {
        int64_t i = adjoint ? step : k - 1 - step;
        before[i] = x;
        x = reflect(x, vector_of(unit, i), adjoint ? conj_of(factor_of(tau, i)) : factor_of(tau, i));
    }
    for (int64_t step = k - 1; step >= 0 && x && g; step--) {
        int64_t    i = adjoint ? step : k - 1 - step;
        lc_tensor *v = vector_of(unit, i), *t = factor_of(tau, i), *b = before[i];
        if (!v || !t) return -1;
        /* G = g b^H for H; of the adjoint it is b g^H */
        lc_tensor *Gv = adjoint ? mm(b, mm(mH(g), v)) : mm(g, mm(mH(b), v)),
                  *Gh = adjoint ? mm(g, mm(mH(b), v)) : mm(b, mm(mH(g), v));
        gt[i] = lc_neg(mm(mH(v), Gv));
        gv[i] = lc_neg(lc_add(lc_mul(conj_of(t), Gv), lc_mul(t, Gh)));
        g = reflect(g, v, adjoint ? t : conj_of(t));
        if (!gt[i] || !gv[i]) return -1;
    }
    if (!x || !g) return -1;
    for (int64_t i = k; i < n; i++) gv[i] = lc_zeros_like(vector_of(unit, i), LC_ABSENT, LC_ABSENT, LC_ABSENT);
    d->C = g;
    d->A = n ? lc_tril(lc_cat(gv, (int)n, -1), -1) : lc_zeros_like(A, LC_ABSENT, LC_ABSENT, LC_ABSENT);
    d->tau = k ? lc_squeeze(lc_cat(gt, (int)k, -1), (int64_t[]){ -2 }, 1) : lc_zeros_like(tau, LC_ABSENT, LC_ABSENT, LC_ABSENT);
    return d->A && d->tau ? 0 : -1;
}

static int check_reflections(const lc_tensor *A, const lc_tensor *tau, const char *f, int64_t most);
static int householder_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *A = call->in[0];
    if (check_reflections(A, call->in[1], "linalg.householder_product", A->ndim ? A->shape[A->ndim - 1] : 0) < 0) return -1;
    return spec_matrices(call, out, (lc_dtype)A->dtype, A, 2, rows_of_matrix(A), cols_of_matrix(A));
}
static int householder_run(const lc_record *call)
{
    lc_linalg_args a = { .name = "linalg.householder_product", .batch = batch_of(call->in[0], 2) };
    a.m[0] = matrices_of(call->in[0], 2), a.m[1] = matrices_of(call->in[1], 1), a.m[2] = matrices_of(call->out[0], 2);
    return run_kernel_with(call, &a);
}
GRAD(_householder_product)
{
    lc_tensor *A = in(0);
    lc_tensor *E = lc_eye(rows_of_matrix(A), LC_I(cols_of_matrix(A)), LC_OF_DTYPE((lc_dtype)A->dtype),
                          (lc_value){ .tag = LC_IS_device, .dev = A->device });
    reflected  d = { NULL, NULL, NULL };
    if (!in(1)->numel) return; /* no reflections */
    if (!E || reflections_gradient(g[0], A, in(1), E, false, &d) < 0) d.A = d.tau = NULL;
    if (need[0]) dx[0] = d.A;
    if (need[1]) dx[1] = d.tau;
}
LC_OP(_householder_product, .sig = "_householder_product(input: Tensor, tau: Tensor) -> Tensor",
      .doc = "Products of reflections of one batch.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = householder_shape,
      .run = householder_run, .any_strides = true, .grad = _householder_product_grad, .saves = IN(0) | IN(1),
      .kind = LC_KIND_MATRICES);
static int check_reflections(const lc_tensor *A, const lc_tensor *tau, const char *f, int64_t most)
{
    if (A->ndim < 2) return lc_fail_int(LC_ShapeMismatch, "%s: input must have at least 2 dimensions.", f);
    if (check_floating(A, f) < 0) return -1;
    if (tau->ndim != A->ndim - 1 || !lc_same_sizes(tau->shape, A->shape, A->ndim - 2))
        return lc_fail_int(LC_ShapeMismatch,
                           "%s: Expected tau to have one dimension less than input and the same batch; got %s and %s", f,
                           LC_SHAPE(A), LC_SHAPE(tau));
    if (tau->shape[tau->ndim - 1] > most)
        return lc_fail_int(LC_ShapeMismatch,
                           "%s: input.shape[-1] must be greater than or equal to tau.shape[-1]; got %s and %s", f, LC_SHAPE(A),
                           LC_SHAPE(tau));
    if (A->dtype != tau->dtype)
        return lc_fail_int(LC_LucidError, "%s: tau dtype %s does not match input dtype %s", f, lc_dtypes[tau->dtype].name,
                           lc_dtypes[A->dtype].name);
    return 0;
}
static int householder_product_call(const lc_value *in, lc_tensor **out)
{
    static const char f[] = "torch.linalg.householder_product";
    if (check_reflections(in(0), in(1), f, in(0)->ndim ? cols_of_matrix(in(0)) : 0) < 0) return -1;
    if (rows_of_matrix(in(0)) < cols_of_matrix(in(0)))
        return lc_fail_int(LC_ShapeMismatch, "%s: input.shape[-2] must be greater than or equal to input.shape[-1]; got %s", f,
                           LC_SHAPE(in(0)));
    return (out[0] = lc__householder_product(in(0), in(1))) ? 0 : -1;
}
LC_OP(linalg_householder_product, .sig = "linalg_householder_product(A: Tensor, tau: Tensor) -> Tensor",
      .doc = "The first columns of the product of the reflections that geqrf gives: Q.", .py = "householder_product",
      .ns = "linalg", .out = true, .call = householder_product_call, .amp = LC_AMP_CPU_FP32);
LC_OP(orgqr, .sig = "orgqr(input: Tensor, tau: Tensor) -> Tensor",
      .doc = "The product of reflections: linalg.householder_product.", .method = true, .out = true,
      .call = householder_product_call, .amp = LC_AMP_CPU_FP32);

static int ormqr_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *C = call->in[2];
    return spec_matrices(call, out, (lc_dtype)C->dtype, C, 2, rows_of_matrix(C), cols_of_matrix(C));
}
static int ormqr_run(const lc_record *call)
{
    lc_linalg_args a = {
        .name = "ormqr", .batch = batch_of(call->in[0], 2), .left = call->args[3].b, .adjoint = call->args[4].b
    };
    a.m[0] = matrices_of(call->in[0], 2), a.m[1] = matrices_of(call->in[1], 1), a.m[2] = matrices_of(call->in[2], 2);
    a.m[3] = matrices_of(call->out[0], 2);
    return run_kernel_with(call, &a);
}
GRAD(_ormqr)
{
    bool      left = in[3].b, adjoint = in[4].b;
    reflected d = { NULL, NULL, NULL };
    if (need[2]) dx[2] = lc__ormqr(in(0), in(1), g[0], left, !adjoint);
    if ((!need[0] && !need[1]) || !in(1)->numel) return;
    /* C Q is the adjoint of Q^H C^H */
    int rc = left ? reflections_gradient(g[0], in(0), in(1), in(2), adjoint, &d)
                  : reflections_gradient(mH(g[0]), in(0), in(1), mH(in(2)), !adjoint, &d);
    if (rc < 0) d.A = d.tau = NULL;
    if (need[0]) dx[0] = d.A;
    if (need[1]) dx[1] = d.tau;
}
LC_OP(_ormqr, .sig = "_ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool, transpose: bool) -> Tensor",
      .doc = "Products with Q of one batch.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = ormqr_shape,
      .run = ormqr_run, .any_strides = true, .grad = _ormqr_grad, .saves = IN(0) | IN(1) | IN(2), .kind = LC_KIND_MATRICES);
static int ormqr_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *A = in(0), *tau = in(1), *C = in(2);
    bool       left = in[3].b;
    if (A->ndim < 2 || C->ndim < 2)
        return lc_fail_int(LC_ShapeMismatch, "torch.ormqr: input and other must have at least 2 dimensions.");
    int64_t side = left ? rows_of_matrix(C) : cols_of_matrix(C);
    if (tau->ndim && side < tau->shape[tau->ndim - 1])
        return lc_fail_int(LC_ShapeMismatch, "torch.ormqr: other.shape[%d] must be greater than or equal to tau.shape[-1]",
                           left ? -2 : -1);
    if (side != rows_of_matrix(A))
        return lc_fail_int(LC_ShapeMismatch, "torch.ormqr: other.shape[%d] must be equal to input.shape[-2]", left ? -2 : -1);
    if (check_reflections(A, tau, "torch.ormqr", cols_of_matrix(A)) < 0) return -1;
    if (C->ndim != A->ndim || !lc_same_sizes(C->shape, A->shape, A->ndim - 2))
        return lc_fail_int(LC_ShapeMismatch,
                           "torch.ormqr: Expected batch dimensions of other to be equal to input's; got %s and %s", LC_SHAPE(A),
                           LC_SHAPE(C));
    if (C->dtype != A->dtype)
        return lc_fail_int(
            LC_LucidError,
            "torch.ormqr: Expected input and other to have the same dtype, but input has dtype %s and other has dtype %s",
            lc_dtypes[A->dtype].name, lc_dtypes[C->dtype].name);
    return (out[0] = lc__ormqr(A, tau, C, left, in[4].b)) ? 0 : -1;
}
LC_OP(ormqr, .sig = "ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor",
      .doc = "The product of Q, given by reflections as geqrf gives them, and other; of Q's adjoint if transpose.",
      .method = true, .out = true, .call = ormqr_call, .amp = LC_AMP_CPU_FP32);

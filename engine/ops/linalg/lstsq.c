/* Least squares and pseudo-inverses. */
#include "linalg.h"

static const char *const drivers[] = { [LC_GELSY] = "gelsy", [LC_GELS] = "gels", [LC_GELSD] = "gelsd", [LC_GELSS] = "gelss" };
static int               driver_of(const char *name, const lc_tensor *A)
{
    const lc_capabilities *can = lc_can(A);
    if (can->values && !can->host_memory) /* PYTORCH-QUIRK: an accelerator has one driver */
        return !name || !strcmp(name, "gels")
                   ? LC_GELS
                   : lc_fail_int(LC_LucidError,
                                 "torch.linalg.lstsq: parameter `driver` should be one of (gels) on this device");
    for (int i = 0; i < 4 && name; i++)
        if (!strcmp(name, drivers[i])) return i;
    return name ? lc_fail_int(LC_LucidError,
                              "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
                : LC_GELSY;
}

/* ---- lstsq ---- */

static int lstsq_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *A = call->in[0], *B = call->in[1];
    lc_dtype         dtype = (lc_dtype)A->dtype, real = lc_real_of(dtype);
    int64_t          m = rows_of_matrix(A), n = cols_of_matrix(A), k = cols_of_matrix(B), most = m > n ? m : n;
    int              driver = driver_of(call->args[3].s, A), last = A->ndim - 1;
    if (spec_matrices(call, &out[0], dtype, A, 2, n, k) < 0 || spec_numbers(call, &out[4], LC_i32, A, 2) < 0) return -1;
    for (int64_t d = last, step = 1; d >= 0; d--) { /* a part of matrices with as many rows as the right sides have */
        int dim = (int)(d == last ? last - 1 : d == last - 1 ? last : d);
        out[0].stride[dim] = step;
        step *= d == last ? most : out[0].shape[dim] > 1 ? out[0].shape[dim] : 1;
    }
    bool over = m > n && driver != LC_GELSY, values = driver == LC_GELSD || driver == LC_GELSS, ranked = driver != LC_GELS;
    return (over ? spec_vectors(call, &out[1], real, A, 2, k) : spec_nothing(call, &out[1], real)) |
           (ranked ? spec_numbers(call, &out[2], LC_i64, A, 2) : spec_nothing(call, &out[2], LC_i64)) |
           (values ? spec_vectors(call, &out[3], real, A, 2, fewer(A)) : spec_nothing(call, &out[3], real));
}
static int lstsq_run(const lc_record *call)
{
    const lc_tensor *A = call->in[0];
    int              driver = driver_of(call->args[3].s, A);
    lc_linalg_args   a = { .name = "linalg.lstsq", .batch = batch_of(A, 2), .driver = driver, .rcond = call->args[2].f };
    a.m[0] = matrices_of(A, 2), a.m[1] = matrices_of(call->in[1], 2), a.m[2] = matrices_of(call->out[0], 2);
    if (rows_of_matrix(A) > cols_of_matrix(A) && driver != LC_GELSY) a.m[3] = matrices_of(call->out[1], 1);
    if (driver != LC_GELS) a.m[4] = matrices_of(call->out[2], 0);
    if (driver == LC_GELSD || driver == LC_GELSS) a.m[5] = matrices_of(call->out[3], 1);
    a.m[6] = matrices_of(call->out[4], 0);
    if (!A->numel || !call->in[1]->numel) {
        for (int i = 0; i < call->n_out; i++)
            if (call->out[i]->numel && fill_tensor(call->out[i], LC_INTEGER(0)) < 0) return -1;
        return 0;
    }
    return run_kernel_with(call, &a) < 0 ? -1 : check_info(call, call->out[4], "linalg.lstsq");
}
static lc_tensor *pinv_gradient(lc_tensor *g, lc_tensor *P, lc_tensor *A);
/* X is pinv(A) B; residuals are the squares of A X - B. */
GRAD(_linalg_lstsq)
{
    lc_tensor *A = in(0), *B = in(1), *X = y[0], *gA = NULL, *gB = NULL;
    if (is_given(g[0])) {
        lc_tensor *P = lc_linalg_pinv(A, LC_NONE, LC_NONE, false);
        if (need[0]) gA = pinv_gradient(mm(g[0], mH(B)), P, A);
        if (need[1]) gB = mm(mH(P), g[0]);
    }
    if (is_given(g[1]) && g[1]->numel) {
        lc_tensor *twice = lc_mul(lc_mul(lc_sub(mm(A, X), B), row_of(g[1])), LC_NUMBER(2));
        if (need[0]) gA = gA ? lc_add(gA, mm(twice, mH(X))) : mm(twice, mH(X));
        if (need[1]) gB = gB ? lc_sub(gB, twice) : lc_neg(twice);
    }
    if (gA) dx[0] = gA;
    if (gB) dx[1] = gB;
}
LC_OP(
    _linalg_lstsq,
    .sig =
        "_linalg_lstsq(A: Tensor, B: Tensor, rcond: float, driver: str) -> (solution: Tensor, residuals: Tensor, rank: Tensor, "
        "singular_values: Tensor, info: Tensor)",
    .doc = "Least squares of one batch.", .hidden = true, .promote = LC_NO_PROMOTION, .shape = lstsq_shape, .run = lstsq_run,
    .any_strides = true, .grad = _linalg_lstsq_grad, .saves = IN(0) | IN(1) | OUT(0), .kind = LC_KIND_MATRICES);
static int linalg_lstsq_call(const lc_value *in, lc_tensor **out)
{
    static const char f[] = "torch.linalg.lstsq";
    lc_tensor        *A = in(0), *B = in(1);
    if (check_floating(A, f) < 0) return -1;
    if (A->ndim < 2) return lc_fail_int(LC_ShapeMismatch, "torch.linalg.lstsq: input must have at least 2 dimensions.");
    if (B->ndim < 1) return lc_fail_int(LC_ShapeMismatch, "torch.linalg.lstsq: other must have at least 1 dimension.");
    if (A->dtype != B->dtype)
        return lc_fail_int(LC_LucidError,
                           "torch.linalg.lstsq: Expected input and other to have the same dtype, but got %s and %s",
                           lc_dtypes[A->dtype].name, lc_dtypes[B->dtype].name);
    bool vector = B->ndim == 1 || (A->ndim - 1 == B->ndim && lc_same_sizes(A->shape, B->shape, B->ndim));
    if (vector && !(B = lc_unsqueeze(B, -1))) return -1;
    if (rows_of_matrix(A) != rows_of_matrix(B))
        return lc_fail_int(LC_ShapeMismatch, "torch.linalg.lstsq: input.size(-2) should match other.size(-%d): %s and %s",
                           vector ? 1 : 2, LC_SHAPE(A), LC_SHAPE(B));
    int driver = driver_of(in[3].tag == LC_IS_str ? in[3].s : NULL, A);
    if (driver < 0 || broadcast_batches(A, 2, B, 2, f, &A, &B) < 0) return -1;
    int64_t              most = rows_of_matrix(A) > cols_of_matrix(A) ? rows_of_matrix(A) : cols_of_matrix(A);
    double               epsilon = lc_real_of(A->dtype) == LC_f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
    double               rcond = in[2].tag == LC_IS_none ? epsilon * (double)most : lc_number_of(&in[2]);
    lc__linalg_lstsq_out r = lc__linalg_lstsq(A, B, rcond, drivers[driver]);
    if (!r.solution) return -1;
    out[0] = vector ? lc_squeeze(r.solution, (int64_t[]){ -1 }, 1) : r.solution;
    out[1] = r.residuals, out[2] = r.rank, out[3] = lc_detach(r.singular_values);
    return out[0] && out[3] ? 0 : -1;
}
LC_OP(linalg_lstsq,
      .sig = "linalg_lstsq(input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None) -> (solution: "
             "Tensor, residuals: "
             "Tensor, rank: Tensor, singular_values: Tensor)",
      .doc = "X with the least |A X - B| for each matrix; driver: 'gelsy' (default), 'gels' (full rank), 'gelsd', 'gelss'.",
      .py = "lstsq", .ns = "linalg", .out = true, .call = linalg_lstsq_call, .amp = LC_AMP_CPU_FP32);

/* ---- pinv ---- */

static lc_tensor *real_number(const lc_tensor *like, double value)
{
    return lc_full(NULL, 0, LC_NUMBER(value), LC_OF_DTYPE(lc_real_of(like->dtype)),
                   (lc_value){ .tag = LC_IS_device, .dev = like->device });
}
/* The largest of atol and rtol times the largest value, per matrix; what was not given: eps times the longer side, unless atol was. */
static lc_tensor *tolerance_of(lc_tensor *A, lc_tensor *largest, const lc_value *atol, const lc_value *rtol)
{
    bool       has_atol = atol->tag != LC_IS_none && !(atol->tag == LC_IS_tensor && atol->t == LC_NONE);
    bool       has_rtol = rtol->tag != LC_IS_none && !(rtol->tag == LC_IS_tensor && rtol->t == LC_NONE);
    int64_t    most = rows_of_matrix(A) > cols_of_matrix(A) ? rows_of_matrix(A) : cols_of_matrix(A);
    double     epsilon = lc_real_of(A->dtype) == LC_f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
    lc_tensor *a = has_atol ? as_strong_tensor(atol->t) : real_number(A, 0);
    lc_tensor *usual = real_number(A, epsilon * (double)most);
    lc_tensor *r = has_rtol ? as_strong_tensor(rtol->t) : usual;
    if (a && r && (lc_is_complex(a->dtype) || lc_is_complex(r->dtype)))
        return lc_fail(LC_LucidError, "atol and rtol tensors of complex type are not supported");
    if (has_atol && !has_rtol && a && usual) r = lc_where(lc_gt(a, LC_NUMBER(0)), real_number(A, 0), usual);
    return a && r && largest ? lc_maximum(a, lc_mul(r, largest)) : NULL;
}
static lc_tensor *pinv_gradient(lc_tensor *g, lc_tensor *P, lc_tensor *A)
{
    lc_tensor *Ph = mH(P), *gh = mH(g);
    if (!Ph || !gh || !A) return NULL;
    if (rows_of_matrix(A) <= cols_of_matrix(A)) {
        lc_tensor *K = mm(gh, P), *KPh = mm(K, Ph);
        lc_tensor *sum = lc_add(lc_neg(mH(mm(P, K))), lc_sub(KPh, mm(mm(A, P), KPh)));
        return lc_add(sum, mm(mm(Ph, P), lc_sub(gh, mm(K, A))));
    }
    lc_tensor *K = mm(P, gh), *PhK = mm(Ph, K);
    lc_tensor *sum = lc_add(lc_neg(mH(mm(K, P))), mm(mm(lc_sub(gh, mm(A, K)), P), Ph));
    return lc_add(sum, lc_sub(PhK, mm(mm(PhK, P), A)));
}
static int pinv_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *A = in(0), *values, *keep, *S, *zero = LC_NUMBER(0);
    if (in[3].b) {
        lc__linalg_eigh_out r = lc__linalg_eigh(A, false, true, "linalg.eigh");
        if (!r.eigenvalues) return -1;
        S = lc_abs(r.eigenvalues);
        lc_tensor *limit = tolerance_of(A, lc_amax(S, (int64_t[]){ -1 }, 1, false), &in[1], &in[2]);
        keep = limit ? lc_gt(S, column_of(limit)) : NULL;
        values = lc_where(keep, lc_reciprocal(r.eigenvalues), zero);
        values = values ? lc_to(values, lc_real_of(A->dtype), false, false, LC_ABSENT) : NULL;
        return (out[0] = lc_contiguous(mm(lc_mul(r.eigenvectors, row_of(values)), mH(r.eigenvectors)), LC_CONTIGUOUS_FORMAT))
                   ? 0
                   : -1;
    }
    lc__linalg_svd_out r = lc__linalg_svd(A, false, true, "linalg.svd");
    if (!r.S) return -1;
    lc_tensor *limit = tolerance_of(A, part(r.S, -1, 0, 1), &in[1], &in[2]);
    if (limit && limit->ndim && (in[1].t != LC_NONE || in[2].t != LC_NONE)) /* tolerances per matrix */
        limit = tolerance_of(A, lc_select(r.S, -1, 0), &in[1], &in[2]), limit = limit ? column_of(limit) : NULL;
    keep = limit ? lc_gt(r.S, limit) : NULL;
    values = lc_where(keep, lc_reciprocal(r.S), zero);
    values = values ? lc_to(values, lc_real_of(A->dtype), false, false, LC_ABSENT) : NULL;
    return (out[0] = lc_contiguous(mm(lc_mul(mH(r.Vh), row_of(values)), mH(r.U)), LC_CONTIGUOUS_FORMAT)) ? 0 : -1;
}
GRAD(_linalg_pinv) { dx[0] = pinv_gradient(g[0], y[0], in(0)); }
LC_OP(_linalg_pinv, .sig = "_linalg_pinv(A: Tensor, atol: Tensor | None, rtol: Tensor | None, hermitian: bool) -> Tensor",
      .doc = "Pseudo-inverses.", .hidden = true, .promote = LC_NO_PROMOTION, .call = pinv_call, .grad = _linalg_pinv_grad,
      .saves = IN(0) | OUT(0));
static int pinv(lc_tensor *A, lc_tensor *atol, lc_tensor *rtol, bool hermitian, lc_tensor **out)
{
    static const char f[] = "linalg.pinv";
    if (check_matrices(A, f, "A") < 0 || check_floating(A, f) < 0 || (hermitian && check_square(A, f, "A") < 0)) return -1;
    if (!A->numel) { /* the gradient of nothing is recorded too */
        lc_tensor *adjoint = mH(A);
        return (out[0] = adjoint ? lc_contiguous(adjoint, LC_CONTIGUOUS_FORMAT) : NULL) ? 0 : -1;
    }
    atol = is_given(atol) ? as_strong_tensor(atol) : atol, rtol = is_given(rtol) ? as_strong_tensor(rtol) : rtol;
    return (out[0] = lc__linalg_pinv(A, atol, rtol, hermitian)) ? 0 : -1;
}
COMPOSITE(linalg_pinv, pinv(in(0), in(1), in(2), in[3].b, out))
LC_OP(linalg_pinv,
      .sig = "linalg_pinv(A: Tensor, *, atol: Tensor | Number | None = None, rtol: Tensor | Number | None = None, hermitian: "
             "bool = False) -> Tensor",
      .doc = "The pseudo-inverse: singular values below max(atol, rtol times the largest) count as zero.", .py = "pinv",
      .ns = "linalg", .out = true, .call = linalg_pinv_call);
COMPOSITE(linalg_pinv_rcond, pinv(in(0), LC_NONE, in(1), in[2].b, out))
LC_OP(linalg_pinv_rcond, .sig = "linalg_pinv_rcond(A: Tensor, rcond: Tensor | Number, hermitian: bool = False) -> Tensor",
      .doc = "The pseudo-inverse: singular values below rcond times the largest count as zero.", .py = "pinv", .ns = "linalg",
      .out = true, .call = linalg_pinv_rcond_call);
COMPOSITE(pinverse, pinv(in(0), LC_NONE, in(1), false, out))
LC_OP(pinverse, .sig = "pinverse(input: Tensor, rcond: Tensor | Number = 1e-15) -> Tensor",
      .doc = "The pseudo-inverse: linalg.pinv.", .method = true, .amp = LC_AMP_CPU_FP32, .call = pinverse_call);

/* ---- matrix_rank ---- */

static int rank_of(lc_tensor *A, const lc_value *atol, const lc_value *rtol, bool hermitian, lc_tensor **out)
{
    static const char f[] = "linalg.matrix_rank";
    if (check_matrices(A, f, "A") < 0 || check_floating(A, f) < 0 || (hermitian && check_square(A, f, "A") < 0)) return -1;
    A = lc_detach(A);
    if (A && !A->numel) {
        int64_t batch = batch_of(A, 2);
        (void)batch;
        out[0] = lc_zeros(A->shape, A->ndim - 2, LC_OF_DTYPE(LC_i64), (lc_value){ .tag = LC_IS_device, .dev = A->device });
        return out[0] ? 0 : -1;
    }
    lc_tensor *S = !A          ? NULL
                   : hermitian ? lc_abs(lc__linalg_eigh(A, false, false, "linalg.eigvalsh").eigenvalues)
                               : lc__linalg_svd(A, false, false, "linalg.svd").S;
    lc_tensor *limit = S ? tolerance_of(A, lc_amax(S, (int64_t[]){ -1 }, 1, false), atol, rtol) : NULL;
    return (out[0] = limit ? lc_sum(lc_gt(S, column_of(limit)), (int64_t[]){ -1 }, 1, false) : NULL) ? 0 : -1;
}
static int linalg_matrix_rank_call(const lc_value *in, lc_tensor **out) { return rank_of(in(0), &in[1], &in[2], in[3].b, out); }
LC_OP(linalg_matrix_rank,
      .sig = "linalg_matrix_rank(A: Tensor, *, atol: Tensor | Number | None = None, rtol: Tensor | Number | None = None, "
             "hermitian: bool = False) -> "
             "Tensor",
      .doc = "How many singular values exceed max(atol, rtol times the largest).", .py = "matrix_rank", .ns = "linalg",
      .out = true, .call = linalg_matrix_rank_call, .amp = LC_AMP_CPU_FP32);
static int linalg_matrix_rank_tol_call(const lc_value *in, lc_tensor **out)
{
    lc_number_box  box;
    const lc_value zero = { .tag = LC_IS_tensor, .t = lc_number_init(&box, LC_f64, 0, 0) };
    return rank_of(in(0), &in[1], &zero, in[2].b, out);
}
LC_OP(linalg_matrix_rank_tol,
      .sig = "linalg_matrix_rank_tol(A: Tensor, tol: Tensor | Number, hermitian: bool = False) -> Tensor",
      .doc = "How many singular values exceed tol.", .py = "matrix_rank", .ns = "linalg", .out = true,
      .call = linalg_matrix_rank_tol_call, .amp = LC_AMP_CPU_FP32);

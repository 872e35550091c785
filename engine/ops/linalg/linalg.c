/* What linalg.h promises. */
#include "linalg.h"
#include <stdio.h>

int check_matrices(const lc_tensor *t, const char *function, const char *argument)
{
    if (t->ndim >= 2) return 0;
    return lc_fail_int(LC_ShapeMismatch, "%s: The input tensor %s must have at least 2 dimensions. Got %s", function, argument,
                       LC_SHAPE(t));
}
int check_square(const lc_tensor *t, const char *function, const char *argument)
{
    if (check_matrices(t, function, argument) < 0) return -1;
    if (rows_of_matrix(t) == cols_of_matrix(t)) return 0;
    return lc_fail_int(LC_ShapeMismatch, "%s: %s must be batches of square matrices, but they are %lld by %lld matrices",
                       function, argument, (long long)rows_of_matrix(t), (long long)cols_of_matrix(t));
}
int check_floating(const lc_tensor *t, const char *function)
{
    if (!lc_is_differentiable(t->dtype))
        return lc_fail_int(LC_LucidError, "%s: Expected a floating point or complex tensor as input. Got %s", function,
                           lc_dtypes[t->dtype].name);
    if (t->dtype == LC_f32 || t->dtype == LC_f64 || t->dtype == LC_c64 || t->dtype == LC_c128) return 0;
    return lc_fail_int(LC_LucidError, "%s: Low precision dtypes not supported. Got %s", function, lc_dtypes[t->dtype].name);
}
int check_same_dtype(const lc_tensor *a, const lc_tensor *b, const char *function, const char *first, const char *second)
{
    if (a->dtype == b->dtype) return 0;
    return lc_fail_int(LC_LucidError,
                       "%s: Expected %s and %s to have the same dtype, but found %s of type %s and %s of type %s instead",
                       function, first, second, first, lc_dtypes[a->dtype].name, second, lc_dtypes[b->dtype].name);
}

/* What an info of LAPACK means, by the function that gave it. */
static int explain(const char *function, const char *where, int info)
{
    const char *f = function;
    if (info < 0)
        return strstr(f, "eig") || strstr(f, "svd")
                   ? lc_fail_int(LC_LinAlgError,
                                 "%s: %sThe algorithm failed to converge because the input matrix contained non-finite values.",
                                 f, where)
                   : lc_fail_int(LC_LinAlgError,
                                 "%s: %sArgument %d has illegal value. Most certainly there is a bug in the implementation "
                                 "calling the backend library.",
                                 f, where, -info);
    if (strstr(f, "inv"))
        return lc_fail_int(
            LC_LinAlgError,
            "%s: %sThe diagonal element %d is zero, the inversion could not be completed because the input matrix is "
            "singular.",
            f, where, info);
    if (strstr(f, "cholesky"))
        return lc_fail_int(
            LC_LinAlgError,
            "%s: %sThe factorization could not be completed because the input is not positive-definite (the leading "
            "minor of order %d is not positive-definite).",
            f, where, info);
    if (strstr(f, "svd"))
        return lc_fail_int(
            LC_LinAlgError,
            "%s: %sThe algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
            "singular values (error code: %d).",
            f, where, info);
    if (strstr(f, "eig"))
        return lc_fail_int(
            LC_LinAlgError,
            "%s: %sThe algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
            "eigenvalues (error code: %d).",
            f, where, info);
    if (strstr(f, "lstsq"))
        return lc_fail_int(
            LC_LinAlgError,
            "%s: %sThe least squares solution could not be computed because the input matrix does not have full rank "
            "(error code: %d).",
            f, where, info);
    if (strstr(f, "solve"))
        return lc_fail_int(LC_LinAlgError, "%s: %sThe solver failed because the input matrix is singular.", f, where);
    if (strstr(f, "lu"))
        return lc_fail_int(
            LC_LinAlgError,
            "%s: %sU[%d,%d] is zero and using it on lu_solve would result in a division by zero. If you still want to "
            "perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
            f, where, info, info);
    return lc_fail_int(LC_LinAlgError, "%s: %sThe factorization failed: element %d of the diagonal is zero.", f, where, info);
}
static int explain_first(const lc_tensor *info, const char *function) /* of the infos that are not zero */
{
    lc_matrices m = matrices_of(info, 0);
    for (int64_t i = 0; i < info->numel; i++) {
        int64_t offset = 0, rest = i;
        if (m.batch_ndim == 1) offset = i * m.batch_step;
        else
            for (int d = m.batch_ndim - 1; d >= 0; rest /= m.batch_size[d], d--)
                offset += rest % m.batch_size[d] * m.batch_stride[d];
        int  code = ((const int32_t *)m.data)[offset];
        char where[48] = "";
        if (!code) continue;
        if (info->ndim) snprintf(where, sizeof where, "(Batch element %lld): ", (long long)i);
        return explain(function, where, code);
    }
    return 0;
}
int check_info(const lc_record *call, const lc_tensor *info, const char *function)
{
    if (!function || !*function || !call->backend->can.values) return 0;
    if (!call->backend->can.host_memory) { /* waits for the device, as PyTorch does */
        lc_tensor *here = lc_tensor_new(LC_i32, (lc_device){ LC_CPU, 0 }, info->ndim, info->shape);
        int        rc = here ? move_values(here, (lc_tensor *)info) : -1;
        if (rc == 0) rc = explain_first(here, function);
        if (here) lc_release(here);
        return rc;
    }
    return explain_first(info, function);
}
static int batch_shape(const lc_tensor *like, int core, int64_t *shape)
{
    memcpy(shape, like->shape, (size_t)(like->ndim - core) * sizeof *shape);
    return like->ndim - core;
}
int spec_matrices(const lc_record *call, lc_spec *out, lc_dtype dtype, const lc_tensor *like, int core, int64_t rows,
                  int64_t cols)
{
    int64_t shape[LC_MAX_DIMS + 2];
    int     n = batch_shape(like, core, shape);
    shape[n] = cols, shape[n + 1] = rows;
    if (spec_shape(call, out, dtype, n + 2, shape) < 0) return -1;
    lc_contiguous_strides(n + 2, shape, out->stride); /* of the transposed matrices */
    out->shape[n] = rows, out->shape[n + 1] = cols;
    int64_t step = out->stride[n];
    out->stride[n] = out->stride[n + 1], out->stride[n + 1] = step;
    out->order = LC_ORDER_STRIDES;
    return 0;
}
int spec_vectors(const lc_record *call, lc_spec *out, lc_dtype dtype, const lc_tensor *like, int core, int64_t n)
{
    int64_t shape[LC_MAX_DIMS + 2];
    int     ndim = batch_shape(like, core, shape);
    shape[ndim] = n;
    return spec_shape(call, out, dtype, ndim + 1, shape);
}
int spec_numbers(const lc_record *call, lc_spec *out, lc_dtype dtype, const lc_tensor *like, int core)
{
    return spec_shape(call, out, dtype, like->ndim - core, like->shape);
}
int spec_nothing(const lc_record *call, lc_spec *out, lc_dtype dtype)
{
    return spec_shape(call, out, dtype, 1, (int64_t[]){ 0 });
}

lc_matrices matrices_of(const lc_tensor *t, int core)
{
    int         n = t->ndim - core;
    lc_matrices m = {
        .data = t->data, .rows = 1, .cols = 1, .row_step = 1, .col_step = 1, .batch_ndim = 1, .device = t->device.index
    };
    if (core == 2) m.rows = t->shape[n], m.cols = t->shape[n + 1], m.row_step = t->stride[n], m.col_step = t->stride[n + 1];
    if (core == 1) m.rows = t->shape[n], m.row_step = t->stride[n], m.col_step = m.rows;
    int64_t step = 0, size = 1;
    bool    even = true;
    for (int d = n - 1; d >= 0 && even; d--) {
        if (t->shape[d] == 1) continue;
        if (size == 1) m.batch_step = t->stride[d];
        else even = t->stride[d] == step;
        step = t->stride[d] * t->shape[d], size *= t->shape[d];
    }
    if (!even) m.batch_ndim = n, m.batch_size = t->shape, m.batch_stride = t->stride;
    return m;
}
int64_t batch_of(const lc_tensor *t, int core)
{
    int64_t n = 1;
    for (int d = 0; d < t->ndim - core; d++) n *= t->shape[d];
    return n;
}

int broadcast_batches(lc_tensor *a, int core_a, lc_tensor *b, int core_b, const char *function, lc_tensor **a_out,
                      lc_tensor **b_out)
{
    int     na = a->ndim - core_a, nb = b->ndim - core_b, n = na > nb ? na : nb;
    int64_t shape[LC_MAX_DIMS + 2];
    bool    same = na == nb;
    for (int d = 0; d < n; d++) {
        int64_t x = d < n - na ? 1 : a->shape[d - (n - na)], y = d < n - nb ? 1 : b->shape[d - (n - nb)];
        if (x != y && x != 1 && y != 1)
            return lc_fail_int(LC_ShapeMismatch, "%s: the batches of %s and %s do not broadcast together", function,
                               LC_SHAPE(a), LC_SHAPE(b));
        shape[d] = x == 1 ? y : x;
        same = same && x == y;
    }
    *a_out = a, *b_out = b;
    if (same) return 0;
    memcpy(shape + n, a->shape + na, (size_t)core_a * sizeof *shape);
    *a_out = lc_expand(a, shape, n + core_a);
    memcpy(shape + n, b->shape + nb, (size_t)core_b * sizeof *shape);
    *b_out = lc_expand(b, shape, n + core_b);
    return *a_out && *b_out ? 0 : -1;
}

lc_tensor *identity_like(const lc_tensor *t, int64_t n)
{
    return lc_eye(n, LC_ABSENT, LC_OF_DTYPE((lc_dtype)t->dtype), (lc_value){ .tag = LC_IS_device, .dev = t->device });
}
lc_tensor *symmetrised(lc_tensor *t)
{
    lc_tensor *sum = t ? lc_add(t, mH(t)) : NULL;
    return sum ? lc_sub(sum, as_diagonal(lc_mul(diagonal_of(sum), LC_NUMBER(0.5)))) : NULL;
}

/* The exponential of matrices: the Taylor polynomial of degree 18 of A / 2^s, squared s times, with s per matrix so that the polynomial is exact
 * to rounding. Every squaring doubles the relative error, so s is as small as the degree allows. */
#include "linalg.h"
#include <math.h>

enum { DEGREE = 18 };
static lc_tensor *taylor(lc_tensor *x, lc_tensor *I) /* Paterson and Stockmeyer: 18 = 3 * 6, by powers to the sixth */
{
    static const double inverse_factorial[DEGREE + 1] = { 1.0,
                                                          1.0,
                                                          1.0 / 2,
                                                          1.0 / 6,
                                                          1.0 / 24,
                                                          1.0 / 120,
                                                          1.0 / 720,
                                                          1.0 / 5040,
                                                          1.0 / 40320,
                                                          1.0 / 362880,
                                                          1.0 / 3628800,
                                                          1.0 / 39916800,
                                                          1.0 / 479001600,
                                                          1.0 / 6227020800,
                                                          1.0 / 87178291200,
                                                          1.0 / 1307674368000,
                                                          1.0 / 20922789888000,
                                                          1.0 / 355687428096000,
                                                          1.0 / 6402373705728000 };
    lc_tensor          *power[7] = { I, x }, *sum = NULL;
    for (int k = 2; k <= 6; k++) power[k] = mm(power[k / 2], power[k - k / 2]);
    for (int block = 2; block >= 0; block--) {
        lc_tensor *part = NULL;
        for (int k = 0; k < 6; k++) {
            lc_tensor *term = lc_mul(power[k], LC_NUMBER(inverse_factorial[6 * block + k]));
            part = part ? lc_add(part, term) : term;
        }
        if (block == 2) sum = lc_add(part, lc_mul(power[6], LC_NUMBER(inverse_factorial[DEGREE])));
        else sum = lc_add(part, mm(power[6], sum));
    }
    return sum;
}
static int matrix_exp_one_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *A = in(0), *I = identity_like(A, rows_of_matrix(A));
    lc_dtype   real = lc_real_of(A->dtype), wide = lc_working_dtype(real);
    lc_tensor *norms =
        lc_amax(lc_sum(lc_abs(A), (int64_t[]){ -2 }, 1, false), (int64_t[]){ -1 }, 1, false); /* largest sums of columns */
    norms = norms ? lc_to(norms, wide == LC_f64 ? LC_f64 : LC_f32, false, false, LC_ABSENT) : NULL;
    double     reach = wide == LC_f64 ? 1.09 : 3.01; /* up to this norm the polynomial is exact to rounding */
    lc_tensor *s = norms ? lc_ceil(lc_log2(lc_div(norms, LC_NUMBER(reach)))) : NULL;
    s = lc_clamp(s, LC_NUMBER(0), LC_NUMBER(1100)); /* NaN stays */
    if (!s) return -1;
    lc_tensor *most = lc_amax(lc_nan_to_num(s, LC_F(0), LC_F(0), LC_F(0)), NULL, 0, false);
    int64_t    squarings = 0;
    lc_tensor *count = most ? lc_to(most, LC_i64, false, false, LC_ABSENT) : NULL;
    if (!count || (lc_can(A)->values && read_int(count, &squarings) < 0)) return -1;
    lc_tensor *scale = lc_to(lc_exp2(lc_neg(s)), real, false, false, LC_ABSENT);
    lc_tensor *x = lc_mul(A, column_of(column_of(scale))), *sum = taylor(x, I);
    if (squarings > 1000 && real != LC_f64) squarings = 1000;
    for (int64_t k = 0; k < squarings && sum; k++) {
        lc_tensor *more = lc_gt(column_of(column_of(s)), LC_NUMBER((double)k));
        sum = lc_where(more, mm(sum, sum), sum);
    }
    return (out[0] = sum) ? 0 : -1;
}
/* The derivative along G is the upper right block of exp of [[A, G], [0, A]]; of the adjoint for gradients. */
GRAD(_matrix_exp)
{
    lc_tensor *Ah = mH(in(0)), *zero = Ah ? lc_zeros_like(Ah, LC_ABSENT, LC_ABSENT, LC_ABSENT) : NULL;
    if (!zero) {
        dx[0] = NULL;
        return;
    }
    int64_t    n = rows_of_matrix(Ah);
    lc_tensor *top = lc_cat((lc_tensor *[]){ Ah, g[0] }, 2, -1), *bottom = lc_cat((lc_tensor *[]){ zero, Ah }, 2, -1);
    lc_tensor *E = lc__matrix_exp(lc_cat((lc_tensor *[]){ top, bottom }, 2, -2));
    dx[0] = part(part(E, -2, 0, n), -1, n, n);
}
LC_OP(_matrix_exp, .sig = "_matrix_exp(A: Tensor) -> Tensor", .doc = "Exponentials of matrices that have elements.",
      .hidden = true, .promote = LC_NO_PROMOTION, .reads_values = true, .call = matrix_exp_one_call, .grad = _matrix_exp_grad,
      .saves = IN(0));
static int matrix_exp_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *A = in(0);
    if (check_square(A, "linalg.matrix_exp", "A") < 0) return -1;
    if (!lc_is_differentiable(A->dtype))
        return lc_fail_int(LC_LucidError, "linalg.matrix_exp: Expected a floating point or complex tensor as input. Got %s",
                           lc_dtypes[A->dtype].name);
    if (!A->numel) return (out[0] = lc_clone(A, LC_CONTIGUOUS_FORMAT)) ? 0 : -1;
    if (rows_of_matrix(A) == 1) return (out[0] = lc_exp(A)) ? 0 : -1;
    return (out[0] = lc__matrix_exp(A)) ? 0 : -1;
}
LC_OP(linalg_matrix_exp, .sig = "linalg_matrix_exp(A: Tensor) -> Tensor", .doc = "The exponential of a square matrix.",
      .py = "matrix_exp", .ns = "linalg", .call = matrix_exp_call);
LC_OP(matrix_exp, .sig = "matrix_exp(input: Tensor) -> Tensor", .doc = "The exponential of a square matrix.", .method = true,
      .call = matrix_exp_call);

/* Window functions of the main namespace, by PyTorch's formulas. periodic: one more point is computed, and left out. (n, periodic, ...) */
#include "../rules.h"
#include <math.h>

typedef struct {
    int64_t  n; /* points that are computed */
    lc_value dtype, device;
} window_spec;
/* 1: out[0] is there already, of no or of one point. The options are the last two arguments. */
static int begin(const char *name, const lc_value *in, const lc_value *options, window_spec *w, lc_tensor **out)
{
    const int64_t  n = in[0].i;
    const lc_dtype dtype = options[0].tag == LC_IS_dtype ? options[0].dt : lc_default_dtype;
    if (lc_class_of(dtype) < LC_FLOAT)
        return lc_fail_int(LC_LucidError, "%s expects floating point dtypes, got: %s", name, lc_dtypes[dtype].name);
    if (lc_is_complex(dtype))
        return lc_fail_int(LC_NotImplementedError, "%s is not implemented for %s", name, lc_dtypes[dtype].name);
    if (n < 0)
        return lc_fail_int(LC_LucidError, "%s requires non-negative window_length, got window_length=%lld", name, (long long)n);
    *w = (window_spec){ n + (in[1].b ? 1 : 0), LC_OF_DTYPE(dtype), options[1] };
    if (n > 1) return 0;
    return (out[0] = lc_ones(&n, 1, w->dtype, w->device)) ? 1 : -1;
}
static int finish(const lc_value *in, lc_tensor *x, lc_tensor **out)
{
    return (out[0] = x && in[1].b ? lc_clone(lc_narrow(x, 0, 0, in[0].i), LC_CONTIGUOUS_FORMAT) : x) ? 0 : -1;
}
static lc_tensor *ramp(const window_spec *w, double step) /* 0, step, ... */
{
    return lc_mul(lc_arange(LC_I(w->n), w->dtype, w->device), LC_NUMBER(step));
}
static int cosine(const char *name, const lc_value *in, const lc_value *options, double alpha, double beta, lc_tensor **out)
{
    window_spec w;
    int         rc = begin(name, in, options, &w, out);
    if (rc) return rc < 0 ? -1 : 0;
    return finish(in, lc_add(lc_mul(lc_cos(ramp(&w, 2 * M_PI / (double)(w.n - 1))), LC_NUMBER(-beta)), LC_NUMBER(alpha)), out);
}
#define OPTIONS "*, dtype: dtype | None = None, device: device | None = None) -> Tensor"
#define WINDOW  .factory = true
COMPOSITE(hann_window, cosine("hann_window", in, in + 2, 0.5, 0.5, out))
LC_OP(hann_window, .sig = "hann_window(window_length: int, periodic: bool = True, " OPTIONS,
      .doc = "The Hann window, 1/2 - 1/2 cos(2 pi n / N): N is window_length, or one less if not periodic.", WINDOW,
      .call = hann_window_call);
COMPOSITE(hamming_window, cosine("hamming_window", in, in + 4, in[2].f, in[3].f, out))
LC_OP(hamming_window,
      .sig = "hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, " OPTIONS,
      .doc = "The Hamming window, alpha - beta cos(2 pi n / N): N is window_length, or one less if not periodic.", WINDOW,
      .call = hamming_window_call);

static int blackman_window_call(const lc_value *in, lc_tensor **out)
{
    window_spec w;
    int         rc = begin("blackman_window", in, in + 2, &w, out);
    if (rc) return rc < 0 ? -1 : 0;
    lc_tensor *x = ramp(&w, M_PI / (double)(w.n - 1));
    lc_tensor *slow = lc_mul(lc_cos(lc_mul(x, LC_INTEGER(2))), LC_NUMBER(0.5));
    lc_tensor *fast = lc_mul(lc_cos(lc_mul(x, LC_INTEGER(4))), LC_NUMBER(0.08));
    return finish(in, lc_add(lc_sub(fast, slow), LC_NUMBER(0.42)), out);
}
LC_OP(blackman_window, .sig = "blackman_window(window_length: int, periodic: bool = True, " OPTIONS,
      .doc = "The Blackman window, 0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N): N is window_length, or one less if not "
             "periodic.",
      WINDOW, .call = blackman_window_call);

static int bartlett_window_call(const lc_value *in, lc_tensor **out)
{
    window_spec w;
    int         rc = begin("bartlett_window", in, in + 2, &w, out);
    if (rc) return rc < 0 ? -1 : 0;
    lc_tensor *x = ramp(&w, 2.0 / (double)(w.n - 1));
    return finish(in, lc_minimum(x, lc_add(lc_neg(x), LC_INTEGER(2))), out);
}
LC_OP(bartlett_window, .sig = "bartlett_window(window_length: int, periodic: bool = True, " OPTIONS,
      .doc = "The Bartlett window, a triangle from 0 to 1 to 0 over N: N is window_length, or one less if not periodic.",
      WINDOW, .call = bartlett_window_call);

static int kaiser_window_call(const lc_value *in, lc_tensor **out)
{
    window_spec w;
    int         rc = begin("kaiser_window", in, in + 3, &w, out);
    if (rc) return rc < 0 ? -1 : 0;
    const lc_dtype dtype = w.dtype.dt;
    const double   middle = (double)(w.n - 1) / 2, beta = in[2].f;
    w.dtype = LC_OF_DTYPE(working_dtype(dtype)); /* halves are rounded once */
    lc_tensor *x = lc_arange(LC_I(w.n), w.dtype, w.device);
    x = lc_div(lc_sub(x, LC_NUMBER(middle)), LC_NUMBER(middle)); /* -1 .. 1 */
    lc_tensor *y = lc_mul(lc_sqrt(lc_clamp_min(lc_sub(LC_INTEGER(1), lc_square(x)), LC_INTEGER(0))), LC_NUMBER(beta));
    lc_tensor *most = lc_i0(lc_full((int64_t[]){ 1 }, 0, LC_NUMBER(beta), w.dtype, w.device));
    x = lc_div(lc_i0(y), most);
    if (x && dtype != x->dtype) x = lc_to(x, dtype, false, false, LC_ABSENT);
    return finish(in, x, out);
}
LC_OP(
    kaiser_window, .sig = "kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, " OPTIONS,
    .doc = "The Kaiser window, i0(beta sqrt(1 - (2 n / N - 1)^2)) / i0(beta): N is window_length, or one less if not periodic.",
    WINDOW, .call = kaiser_window_call);

/* Frequencies of Fourier transforms: which they are, and in which order. */
#include "../rules.h"

/* ---- shifts: (input, dim) ---- */

static int shifted(const lc_value *in, bool back, lc_tensor **out)
{
    const lc_tensor *x = in(0);
    int64_t          by[LC_MAX_DIMS], dims[LC_MAX_DIMS];
    const int        n = in[1].tag == LC_IS_none ? x->ndim : in[1].n;
    for (int k = 0; k < n; k++) {
        int d = k;
        if (in[1].tag != LC_IS_none && dim_index(in[1].is[k], x->ndim, &d) < 0) return -1;
        int64_t size = x->ndim ? x->shape[d] : 1;
        dims[k] = d, by[k] = back ? (size + 1) / 2 : size / 2;
    }
    return (out[0] = lc_roll(in(0), by, n, dims, n)) ? 0 : -1;
}
COMPOSITE(fft_fftshift, shifted(in, false, out))
LC_OP(fft_fftshift, .sig = "fft_fftshift(input: Tensor, dim: list[int] | None = None) -> Tensor", .py = "fftshift", .ns = "fft",
      .doc = "Frequencies in ascending order: zero goes to the middle.", .call = fft_fftshift_call);
COMPOSITE(fft_ifftshift, shifted(in, true, out))
LC_OP(fft_ifftshift, .sig = "fft_ifftshift(input: Tensor, dim: list[int] | None = None) -> Tensor", .py = "ifftshift",
      .ns = "fft", .doc = "The inverse of fftshift: zero goes to the front.", .call = fft_ifftshift_call);

/* ---- frequencies: (n, d, dtype, device) ---- */

static int frequencies(const char *name, const lc_value *in, bool half, lc_tensor **out)
{
    const int64_t  n = in[0].i;
    const lc_dtype dtype = in[2].tag == LC_IS_dtype ? in[2].dt : lc_default_dtype;
    if (lc_class_of(dtype) < LC_FLOAT) return lc_fail_int(LC_LucidError, "%s requires a floating point or complex dtype", name);
    if (n < 0) return lc_fail_int(LC_LucidError, "%s: n must not be negative, got %lld", name, (long long)n);
    const int64_t size = half ? n / 2 + 1 : n, above = half ? size : n - n / 2; /* those that are not negative */
    lc_tensor    *up = lc_arange(LC_I(above), in[2].tag == LC_IS_none ? LC_OF_DTYPE(dtype) : in[2], in[3]), *all = up;
    if (up && !half && above < n) {
        lc_tensor *down = lc_arange_start(LC_I(-(n / 2)), LC_I(0), LC_I(1), LC_OF_DTYPE(dtype), in[3]);
        all = down ? lc_cat((lc_tensor *[]){ up, down }, 2, 0) : NULL;
    }
    return (out[0] = all ? lc_mul(all, LC_NUMBER(1.0 / ((double)n * lc_number_of(&in[1])))) : NULL) ? 0 : -1;
}
#define FREQUENCIES "(n: int, d: float = 1.0, *, dtype: dtype | None = None, device: device | None = None) -> Tensor"
COMPOSITE(fft_fftfreq, frequencies("fftfreq", in, false, out))
LC_OP(fft_fftfreq, .sig = "fft_fftfreq" FREQUENCIES, .py = "fftfreq", .ns = "fft",
      .doc = "The frequencies of fft of n samples, d apart, in cycles per unit: 0, 1, ..., then the negative ones, over n d.",
      .factory = true, .out = true, .call = fft_fftfreq_call);
COMPOSITE(fft_rfftfreq, frequencies("rfftfreq", in, true, out))
LC_OP(fft_rfftfreq, .sig = "fft_rfftfreq" FREQUENCIES, .py = "rfftfreq", .ns = "fft",
      .doc = "The frequencies of rfft of n samples, d apart, in cycles per unit: 0, 1, ..., n // 2, over n d.", .factory = true,
      .out = true, .call = fft_rfftfreq_call);

/* Short-time Fourier transforms: frames of a signal, each multiplied with a window and transformed; and back, by overlapping and adding. Composites:
 * frames are a view, so only the product with the window is memory of its own. */
#include "../rules.h"

enum { NORM_NONE, NORM_ROOT, NORM_N };
static bool bool_or(const lc_value *v, bool otherwise) { return v->tag == LC_IS_bool ? v->b : otherwise; }
static bool has_tensor(const lc_value *v) { return v->tag == LC_IS_tensor && v->t != LC_NONE; }
static bool complex_tensor(const lc_value *v) { return has_tensor(v) && lc_is_complex(v->t->dtype); }

/* What both have: (input, n_fft, hop_length, win_length, window, ...) */
typedef struct {
    int64_t    n_fft, hop, win, left;
    lc_tensor *window; /* scoped; of n_fft, with zeros around a shorter one. LC_NONE: ones */
} framing;
static int framing_of(const char *name, const lc_value *in, framing *f)
{
    *f = (framing){ .n_fft = in[1].i, .hop = in[1].i / 4, .win = in[1].i, .window = LC_NONE };
    int_argument(&in[2], &f->hop), int_argument(&in[3], &f->win);
    if (f->win <= 0 || f->win > f->n_fft)
        return lc_fail_int(LC_LucidError, "%s(%s, n_fft=%lld): expected 0 < win_length <= n_fft, but got win_length=%lld", name,
                           LC_SHAPE(in(0)), (long long)f->n_fft, (long long)f->win);
    if (has_tensor(&in[4]) && (in(4)->ndim != 1 || in(4)->shape[0] != f->win))
        return lc_fail_int(
            LC_ShapeMismatch,
            "%s(%s, n_fft=%lld): expected a 1D window tensor of size equal to win_length=%lld, but got window with "
            "size %s",
            name, LC_SHAPE(in(0)), (long long)f->n_fft, (long long)f->win, LC_SIZES(in(4)->shape, in(4)->ndim));
    f->left = (f->n_fft - f->win) / 2;
    if (has_tensor(&in[4])) f->window = in(4);
    else if (f->win < f->n_fft) {
        lc_dtype real = lc_real_of((lc_dtype)in(0)->dtype);
        f->window = lc_ones(&f->win, 1, LC_OF_DTYPE(real), (lc_value){ .tag = LC_IS_device, .dev = in(0)->device });
    }
    if (f->window && f->window != LC_NONE && f->win < f->n_fft)
        f->window = lc_constant_pad_nd(f->window, (int64_t[]){ f->left, f->n_fft - f->win - f->left }, 2, LC_I(0));
    return f->window ? 0 : -1;
}

/* (..., center 5, pad_mode, normalized, onesided, return_complex, align_to_window 10) */
static lc_tensor *centered(lc_tensor *x, int64_t n_fft, const char *mode)
{
    int64_t   pad[2] = { n_fft / 2, n_fft / 2 }, shape[3] = { 1, 1, 1 };
    const int ndim = x->ndim;
    if (ndim < 1 || ndim > 3) return x;
    memcpy(shape + 3 - ndim, x->shape, (size_t)ndim * sizeof *shape);
    x = lc_pad(lc_reshape(x, shape, 3), pad, 2, mode, LC_ABSENT);
    return x ? lc_reshape(x, x->shape + 3 - ndim, ndim) : NULL;
}
static int stft_call(const lc_value *in, lc_tensor **out)
{
    static atomic_bool no_window, real_result;
    lc_tensor         *x = in(0);
    framing            f;
    if (!has_tensor(&in[4]))
        lc_warn_once(&no_window,
                     "A window was not provided. A rectangular window will be applied, which is known to cause "
                     "spectral leakage. Other windows such as lucid.hann_window or lucid.hamming_window are "
                     "recommended to reduce spectral leakage. To suppress this warning and use a rectangular window, "
                     "explicitly set `window=lucid.ones(n_fft, device=<device>)`.");
    if (in[5].b && in[10].tag == LC_IS_bool)
        return lc_fail_int(LC_LucidError, "stft align_to_window should only be set when center = false");
    if (in[5].b && !(x = centered(x, in[1].i, in[6].s))) return -1;
    const bool complex = lc_is_complex(x->dtype) || complex_tensor(&in[4]);
    if (in[9].tag != LC_IS_bool && !complex)
        return lc_fail_int(LC_LucidError,
                           "stft requires the return_complex parameter be given for real inputs, and will further "
                           "require that return_complex=True in a future release.");
    if (!bool_or(&in[9], true))
        lc_warn_once(&real_result,
                     "stft with return_complex=False is deprecated. In a future release, stft will return complex "
                     "tensors for all inputs, and return_complex=False will raise an error.\nNote: you can still "
                     "call lucid.view_as_real on the complex output to recover the old return format.");
    if (lc_class_of((lc_dtype)x->dtype) < LC_FLOAT)
        return lc_fail_int(LC_LucidError, "stft(%s): expected a tensor of floating point or complex values", LC_SHAPE(x));
    if (x->ndim < 1 || x->ndim > 2) return lc_fail_int(LC_ShapeMismatch, "stft(%s): expected a 1D or 2D tensor", LC_SHAPE(x));
    const bool alone = x->ndim == 1;
    if (alone && !(x = lc_unsqueeze(x, 0))) return -1;
    const int64_t length = x->shape[1], n_fft = in[1].i;
    if (n_fft <= 0 || n_fft > length)
        return lc_fail_int(LC_LucidError, "stft(%s): expected 0 < n_fft < %lld, but got n_fft=%lld", LC_SHAPE(x),
                           (long long)length, (long long)n_fft);
    if (framing_of("stft", in, &f) < 0) return -1;
    if (f.hop <= 0)
        return lc_fail_int(LC_LucidError, "stft(%s, n_fft=%lld): expected hop_length > 0, but got hop_length=%lld", LC_SHAPE(x),
                           (long long)n_fft, (long long)f.hop);
    if (bool_or(&in[10], false) && f.win < n_fft)
        x = lc_constant_pad_nd(x, (int64_t[]){ f.left, n_fft - f.win - f.left }, 2, LC_I(0));
    x = x ? lc_unfold(x, 1, n_fft, f.hop) : NULL; /* (batch, frames, n_fft) */
    if (x && f.window != LC_NONE) x = lc_mul(x, f.window);
    if (!x) return -1;
    const int64_t last = 2, norm = in[7].b ? NORM_ROOT : NORM_NONE;
    const bool    onesided = bool_or(&in[8], !lc_is_complex(x->dtype));
    if (x->dtype != LC_f32 && x->dtype != LC_f64 && x->dtype != LC_c64 && x->dtype != LC_c128)
        return lc_fail_int(LC_DtypeMismatch, "stft: Unsupported dtype %s", lc_dtypes[x->dtype].name);
    if (lc_is_complex(x->dtype) && onesided)
        return lc_fail_int(LC_LucidError, "Cannot have onesided output if window or input is complex");
    x = lc_is_complex(x->dtype) ? lc__fft_c2c(x, &last, 1, norm, true) : lc__fft_r2c(x, &last, 1, norm, onesided);
    x = x ? lc_transpose(x, 1, 2) : NULL;
    if (x && alone) x = lc_select(x, 0, 0);
    if (x && !bool_or(&in[9], true)) x = lc_view_as_real(x);
    return (out[0] = x) ? 0 : -1;
}
LC_OP(
    stft,
    .sig =
        "stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None "
        "= None, center: bool = True, pad_mode: str = 'reflect', normalized: bool = False, onesided: bool | None = None, "
        "return_complex: bool | None = None, align_to_window: bool | None = None) -> Tensor",
    .doc =
        "Short-time Fourier transform: the spectra of overlapping frames of a signal, (frequencies, frames) or with a batch in "
        "front.",
    .method = true, .call = stft_call);

/* (..., center 5, normalized, onesided, length, return_complex 9) */
static lc_tensor *overlapped(lc_tensor *frames, int64_t n, int64_t n_fft, int64_t hop) /* (batch, frames, n_fft): added up */
{
    return frames ? lc_unfold_backward(frames, (int64_t[]){ frames->shape[0], n }, 2, 1, n_fft, hop) : NULL;
}
static int istft_check(const lc_value *in, const framing *f)
{
    lc_tensor *x = in(0);
    if (f->hop <= 0 || f->hop > f->win)
        return lc_fail_int(LC_LucidError,
                           "istft(%s, n_fft=%lld): expected 0 < hop_length <= win_length, but got hop_length=%lld", LC_SHAPE(x),
                           (long long)f->n_fft, (long long)f->hop);
    const bool    onesided = bool_or(&in[7], x->shape[x->ndim - 2] != f->n_fft);
    const int64_t wanted = onesided ? f->n_fft / 2 + 1 : f->n_fft;
    if (x->shape[x->ndim - 2] != wanted)
        return lc_fail_int(LC_LucidError,
                           "istft(%s): expected the frequency dimension (2nd to the last) of the input tensor to match %s when "
                           "onesided=%s, but got %lld",
                           LC_SHAPE(x), onesided ? "n_fft / 2 + 1" : "n_fft", onesided ? "True" : "False",
                           (long long)x->shape[x->ndim - 2]);
    if (in[9].b && onesided) return lc_fail_int(LC_LucidError, "Cannot have onesided output if window or input is complex");
    if (!in[9].b && complex_tensor(&in[4]))
        return lc_fail_int(LC_LucidError, "Complex windows are incompatible with return_complex=False");
    return 0;
}
static int istft_call(const lc_value *in, lc_tensor **out)
{
    static atomic_bool no_window;
    lc_tensor         *x = in(0);
    framing            f;
    if (!has_tensor(&in[4]))
        lc_warn_once(&no_window,
                     "A window was not provided. A rectangular window will be applied. Please provide the same window "
                     "used by stft to make the inversion lossless. To suppress this warning and use a rectangular "
                     "window, explicitly set `window=lucid.ones(n_fft, device=<device>)`.");
    if (!lc_is_complex(x->dtype))
        return lc_fail_int(LC_DtypeMismatch, "istft requires a complex-valued input tensor matching the output from stft with "
                                             "return_complex=True.");
    if (x->dtype == LC_c32) return lc_fail_int(LC_DtypeMismatch, "istft: Unsupported dtype %s", lc_dtypes[x->dtype].name);
    if (x->ndim < 2)
        return lc_fail_int(LC_IndexError, "istft(%s): expected a tensor with 2 or 3 dimensions, but got %d", LC_SHAPE(x),
                           x->ndim);
    if (x->numel == 0) return lc_fail_int(LC_LucidError, "istft(%s): input tensor cannot be empty.", LC_SHAPE(x));
    if (x->ndim > 3)
        return lc_fail_int(LC_ShapeMismatch, "istft(%s): expected a tensor with 2 or 3 dimensions, but got %d", LC_SHAPE(x),
                           x->ndim);
    if (framing_of("istft", in, &f) < 0 || istft_check(in, &f) < 0) return -1;
    const bool alone = x->ndim == 2;
    if (alone && !(x = lc_unsqueeze(x, 0))) return -1;
    const int64_t n_frames = x->shape[2], n = f.n_fft + f.hop * (n_frames - 1), last = 2, norm = in[6].b ? NORM_ROOT : NORM_N;
    const int64_t start = in[5].b ? f.n_fft / 2 : 0;
    int64_t       length = n - 2 * start;
    int_argument(&in[8], &length);
    if (length < 0) return lc_fail_int(LC_LucidError, "istft: length must not be negative, got %lld", (long long)length);
    x = lc_transpose(x, 1, 2);
    if (x && in[9].b) x = lc__fft_c2c(x, &last, 1, norm, false);
    else if (x) x = lc__fft_c2r(lc_narrow(x, 2, 0, f.n_fft / 2 + 1), &last, 1, norm, f.n_fft);
    lc_tensor *window = f.window;
    if (window == LC_NONE && x)
        window = lc_ones(&f.n_fft, 1, LC_OF_DTYPE(lc_real_of((lc_dtype)x->dtype)),
                         (lc_value){ .tag = LC_IS_device, .dev = x->device });
    if (!x || !window) return -1;
    lc_tensor    *power = lc_expand(lc_square(window), (int64_t[]){ 1, n_frames, f.n_fft }, 3);
    lc_tensor    *y = overlapped(lc_mul(x, window), n, f.n_fft, f.hop), *sum = overlapped(power, n, f.n_fft, f.hop);
    const int64_t kept = start + length > n ? n - start : length;
    y = y ? lc_narrow(y, 1, start, kept) : NULL, sum = sum ? lc_narrow(sum, 1, start, kept) : NULL;
    if (!y || !sum) return -1;
    if (kept > 0) {
        int64_t    gap = 0;
        lc_tensor *least = lc_lt(lc_amin(lc_abs(lc_detach(sum)), NULL, 0, false), LC_NUMBER(1e-11));
        if (!least || read_int(least, &gap) < 0) return -1;
        if (gap)
            return lc_fail_int(LC_LucidError,
                               "istft(%s, n_fft=%lld, hop_length=%lld, win_length=%lld): window overlap add min: 1",
                               LC_SHAPE(in(0)), (long long)f.n_fft, (long long)f.hop, (long long)f.win);
    }
    y = lc_div(y, sum);
    if (y && kept < length) {
        lc_warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please "
            "check your center and hop_length settings.");
        y = lc_constant_pad_nd(y, (int64_t[]){ 0, length - kept }, 2, LC_I(0));
    }
    return (out[0] = y && alone ? lc_select(y, 0, 0) : y) ? 0 : -1;
}
LC_OP(
    istft,
    .sig =
        "istft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None "
        "= None, center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None, "
        "return_complex: bool = False) -> Tensor",
    .doc = "The inverse of stft: the signal whose frames have these spectra, or is nearest to that.", .method = true,
    .reads_values = true, .call = istft_call);

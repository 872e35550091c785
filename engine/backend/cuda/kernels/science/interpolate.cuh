/* Interpolation (args.h: lc_interpolate_args). Each thread finds the taps of its result, dimension by dimension, and sums; backward it adds its
 * gradient to the elements under the same taps, so the order of sums varies; `gather` has a thread per element instead, which finds the results
 * whose taps it lies under. T: the elements; U: positions and weights are computed in it, as PyTorch does. */
enum { NEAREST, NEAREST_EXACT, LINEAR, CUBIC, LINEAR_ANTIALIAS, CUBIC_ANTIALIAS, LANCZOS_ANTIALIAS };
struct interpolate_args {
    T       *out;
    const T *in;
    i64      planes, inner, size[3], result[3];
    double   scale[3];
    int      mode, align_corners;
};
struct taps {
    i64 first, count, last;
    U   rest, center, inverse, total; /* rest: of linear and cubic; the others of windows */
};
__device__ inline U cubic(U x, U a)
{
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}
__device__ inline U sinc(U x)
{
    return x == 0 ? (U)1 : (U)(sin(3.14159265358979323846 * (double)x) / (3.14159265358979323846 * (double)x));
}
__device__ inline U filter(int mode, U x)
{
    x = x < 0 ? -x : x;
    if (mode == CUBIC_ANTIALIAS) return x < 2 ? cubic(x, (U)-0.5) : (U)0;
    if (mode == LANCZOS_ANTIALIAS) return x < 3 ? sinc(x) * sinc(x / 3) : (U)0;
    return x < 1 ? 1 - x : (U)0;
}
__device__ inline U window_weight(const interpolate_args &p, const taps &t, i64 k)
{
    return filter(p.mode, ((U)k + (U)t.first - t.center + (U)0.5) * t.inverse);
}
__device__ inline taps taps_of(const interpolate_args &p, int d, i64 i)
{
    i64  in = p.size[d], out = p.result[d];
    U    step = p.align_corners  ? (out > 1 ? (U)(in - 1) / (U)(out - 1) : (U)0)
                : p.scale[d] > 0 ? (U)(1.0 / p.scale[d])
                                 : (U)in / (U)out;
    taps t = { i, 1, in - 1, 0, 0, 0, 0 };
    if (in == out && (p.mode == LINEAR || out == 1) && p.mode < LINEAR_ANTIALIAS) return t;
    if (p.mode >= LINEAR_ANTIALIAS) {
        U wide = (U)(p.mode == LINEAR_ANTIALIAS  ? 1
                     : p.mode == CUBIC_ANTIALIAS ? 2
                                                 : 3),
          support = step >= 1 ? wide * step : wide;
        t.inverse = step >= 1 ? 1 / step : (U)1, t.center = step * ((U)i + (U)0.5);
        i64 first = (i64)(t.center - support + (U)0.5), past = (i64)(t.center + support + (U)0.5);
        t.first = first < 0 ? 0 : first, t.count = (past > in ? in : past) - t.first;
        for (i64 k = 0; k < t.count; k++) t.total += window_weight(p, t, k);
        return t;
    }
    U at = p.align_corners || p.mode == NEAREST ? step * (U)i : (U)fma(step, (U)i + (U)0.5, (U)-0.5);
    if (p.mode <= NEAREST_EXACT) {
        i64 near = (i64)floor((double)(p.mode == NEAREST ? at : at + (U)0.5));
        t.first = near < in - 1 ? near : in - 1;
        return t;
    }
    if (p.mode == LINEAR && at < 0) at = 0;
    i64 floored = (i64)floor((double)at);
    t.first = floored < in - 1 ? floored : in - 1;
    t.rest = at - (U)t.first, t.rest = t.rest < 0 ? (U)0 : t.rest > 1 ? (U)1 : t.rest;
    t.count = 2;
    if (p.mode == CUBIC) t.count = 4, t.first--;
    return t;
}
__device__ inline i64 element(const taps &t, i64 k)
{
    i64 at = t.first + k;
    return at < 0 ? 0 : at > t.last ? t.last : at;
}
__device__ inline U weight(const interpolate_args &p, const taps &t, i64 k)
{
    if (t.count == 1 && p.mode < LINEAR_ANTIALIAS) return 1;
    if (p.mode == LINEAR) return k ? t.rest : 1 - t.rest;
    if (p.mode == CUBIC) return cubic(k < 2 ? t.rest + (U)(1 - k) : 1 - t.rest + (U)(k - 2), (U)-0.75);
    U w = window_weight(p, t, k);
    return t.total != 0 ? w / t.total : w;
}
#define EACH_TAP(i)                                                                                                            \
    i64  area = p.result[0] * p.result[1] * p.result[2], channel = i % p.inner, at = i / p.inner, plane = at / area;           \
    taps z = taps_of(p, 0, at / p.result[2] / p.result[1] % p.result[0]), y = taps_of(p, 1, at / p.result[2] % p.result[1]),   \
         x = taps_of(p, 2, at % p.result[2]);                                                                                  \
    for (i64 a = 0; a < z.count; a++)                                                                                          \
        for (i64 b = 0; b < y.count; b++)                                                                                      \
            for (i64 c = 0; c < x.count; c++)
#define PLACE                                                                                                                  \
    ((((plane * p.size[0] + element(z, a)) * p.size[1] + element(y, b)) * p.size[2] + element(x, c)) * p.inner + channel)
#if VARIANT == 0 /* nearest, of any type */
KERNEL(copy, interpolate_args, p)
{
    EACH(i, p.planes * p.result[0] * p.result[1] * p.result[2] * p.inner) { EACH_TAP(i) p.out[i] = p.in[PLACE]; }
}
#else
KERNEL(forward, interpolate_args, p)
{
    EACH(i, p.planes * p.result[0] * p.result[1] * p.result[2] * p.inner)
    {
        U sum = 0;
        EACH_TAP(i) sum += weight(p, z, a) * weight(p, y, b) * weight(p, x, c) * p.in[PLACE];
        p.out[i] = sum;
    }
}
KERNEL(backward, interpolate_args, p) /* in: the gradient; out starts as zeros */
{
    EACH(i, p.planes * p.result[0] * p.result[1] * p.result[2] * p.inner)
    {
        U g = p.in[i];
        EACH_TAP(i) atomicAdd(p.out + PLACE, weight(p, z, a) * weight(p, y, b) * weight(p, x, c) * g);
    }
}
/* Along dimension d: the first result whose last tap reaches element `at`. Taps move with the result. */
__device__ inline i64 first_over(const interpolate_args &p, int d, i64 at)
{
    i64 low = 0, high = p.result[d];
    while (low < high) {
        i64  mid = low + (high - low) / 2;
        taps t = taps_of(p, d, mid);
        if (element(t, t.count - 1) < at) low = mid + 1;
        else high = mid;
    }
    return low;
}
/* The weight of element `at` in result i along dimension d; past: no later result has it. */
__device__ inline U share(const interpolate_args &p, int d, i64 i, i64 at, bool &past)
{
    taps t = taps_of(p, d, i);
    U    sum = 0;
    past = element(t, 0) > at;
    for (i64 k = 0; k < t.count; k++)
        if (element(t, k) == at) sum += weight(p, t, k);
    return sum;
}
KERNEL(gather, interpolate_args, p)
{
    EACH(i, p.planes * p.size[0] * p.size[1] * p.size[2] * p.inner)
    {
        i64  channel = i % p.inner, at = i / p.inner, x = at % p.size[2], y = at / p.size[2] % p.size[1];
        i64  z = at / p.size[2] / p.size[1] % p.size[0], plane = at / p.size[2] / p.size[1] / p.size[0];
        i64  low0 = first_over(p, 0, z), low1 = first_over(p, 1, y), low2 = first_over(p, 2, x);
        U    sum = 0;
        bool past;
        for (i64 a = low0; a < p.result[0]; a++) {
            U w0 = share(p, 0, a, z, past);
            if (past) break;
            for (i64 b = low1; b < p.result[1]; b++) {
                U w1 = w0 * share(p, 1, b, y, past);
                if (past) break;
                for (i64 c = low2; c < p.result[2]; c++) {
                    U w2 = share(p, 2, c, x, past);
                    if (past) break;
                    sum +=
                        w1 * w2 * p.in[(((plane * p.result[0] + a) * p.result[1] + b) * p.result[2] + c) * p.inner + channel];
                }
            }
        }
        p.out[i] = sum;
    }
}
#endif

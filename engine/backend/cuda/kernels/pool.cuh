/* Pooling and unfolding (args.h: lc_pool_args): a thread per element of the result. T: the elements. VARIANT: which kernels, and
 * LARGE, for tensors that 32 bits do not index. */
enum { INTEGERS, FLOATS, SUMS /* folding and unfolding alone, of any type that adds */, HALVES, LARGE = 4 };
#define KIND (VARIANT & 3)
struct pool_args {
    T       *out;
    i64     *index;
    const T *in, *grad;
    i64      planes, size[3], result[3], kernel[3], stride[3], padding[3], dilation[3], divisor, channels;
    int      adaptive, padding_counts, ordered;
};
typedef acc_of<T>::type A;
#if VARIANT & 4
typedef i64 I;
#else
typedef i32 I;
#endif
struct window {
    I first, past, step, count;
};
__device__ inline window window_of(const pool_args &p, int d, I o)
{
    I n = p.size[d], m = p.result[d], step = p.dilation[d];
    if (p.adaptive) {
        I first = (i64)o * n / m, past = ((i64)(o + 1) * n + m - 1) / m;
        return window{ first, past, 1, past - first };
    }
    I end_padded = n + (I)p.padding[d], start = o * (I)p.stride[d] - (I)p.padding[d],
      end = start + ((I)p.kernel[d] - 1) * step + 1;
    I first = start < 0 ? start + (-start + step - 1) / step * step : start, past = end < n ? end : n;
    return window{ first, past, step, p.padding_counts ? (end < end_padded ? end : end_padded) - start : past - first };
}
/* Planes lie one after the other, or channels are neighbours and the planes of an image interleave: element `at` of a plane. */
__device__ inline i64 element_of(const pool_args &p, I plane, I at, I area)
{
    I channels = p.channels;
    return channels == 1 ? (i64)plane * area + at : ((i64)(plane / channels) * area + at) * channels + plane % channels;
}
__device__ inline void split(const pool_args &p, I i, I area, I *plane, I *at) /* the other way round */
{
    I channels = p.channels, whole = channels == 1 ? i : i / channels;
    *plane = whole / area, *at = whole - *plane * area;
    if (channels != 1) *plane = *plane * channels + (i - whole * channels);
}
struct windows {
    window a, b, c;
};
__device__ inline windows windows_of(const pool_args &p, I o)
{
    I m1 = p.result[1], m2 = p.result[2], upper = o / m2, top = upper / m1;
    return windows{ window_of(p, 0, top), window_of(p, 1, upper - top * m1), window_of(p, 2, o - upper * m2) };
}
#define RESULTS ((I)p.result[0] * (I)p.result[1] * (I)p.result[2])
#define AREA    ((I)p.size[0] * (I)p.size[1] * (I)p.size[2])
#if KIND != 2
__device__ inline I largest(const pool_args &p, const T *in, const windows &w, T *best) /* in: the plane's first element */
{
    I    n1 = p.size[1], n2 = p.size[2], step = p.channels, last = (I)p.size[0] * n1 * n2 - 1;
    I    found = (w.a.first * n1 + w.b.first) * n2 + w.c.first;
    bool any = false;
    A    most = 0;
    if (found > last) found = last;
    for (I x = w.a.first; x < w.a.past; x += w.a.step)
        for (I y = w.b.first; y < w.b.past; y += w.b.step)
            for (I z = w.c.first; z < w.c.past; z += w.c.step) {
                I at = (x * n1 + y) * n2 + z;
                T element = in[(i64)at * step];
                A v = (A)value(element);
                if (!any || v > most || v != v) most = v, found = at, any = true, *best = element;
            }
    if (!any) *best = made<T>::of(sizeof(A) == 8 && (A)0.5 == 0 ? (A)(-9223372036854775807ll - 1) : (A)-infinity<float>());
    return found;
}
KERNEL(max_pool, pool_args, p)
{
    EACH(i, p.planes * RESULTS)
    {
        I plane, o;
        T best;
        split(p, i, RESULTS, &plane, &o);
        I at = largest(p, p.in + element_of(p, plane, 0, AREA), windows_of(p, o), &best);
        p.out[i] = best;
        if (p.index) p.index[i] = at;
    }
}
KERNEL(average_pool, pool_args, p)
{
    EACH(i, p.planes * RESULTS)
    {
        I plane, o, n1 = p.size[1], n2 = p.size[2], step = p.channels;
        A sum = 0;
        split(p, i, RESULTS, &plane, &o);
        windows  w = windows_of(p, o);
        const T *in = p.in + element_of(p, plane, 0, AREA);
        for (I x = w.a.first; x < w.a.past; x += w.a.step)
            for (I y = w.b.first; y < w.b.past; y += w.b.step)
                for (I z = w.c.first; z < w.c.past; z += w.c.step) sum += (A)value(in[(i64)((x * n1 + y) * n2 + z) * step]);
        p.out[i] = made<T>::of(sum / (p.divisor ? (A)p.divisor : (A)((i64)w.a.count * w.b.count * w.c.count)));
    }
}
#endif
#if KIND == 1 || KIND == 3                                                         /* floating: gradients */
__device__ inline void outputs_of(const pool_args &p, int d, I i, I *low, I *high) /* whose windows may hold element i */
{
    i64 n = p.size[d], m = p.result[d];
    if (p.adaptive) *low = i * m / n, *high = ((i + 1) * m + n - 1) / n;
    else {
        i64 reach = (p.kernel[d] - 1) * p.dilation[d], at = i + p.padding[d];
        *low = at - reach <= 0 ? 0 : (at - reach + p.stride[d] - 1) / p.stride[d], *high = at / p.stride[d] + 1;
    }
    if (*high > m) *high = m;
}
KERNEL(average_pool_backward, pool_args, p)
{
    EACH(i, p.planes * AREA)
    {
        I plane, at, n1 = p.size[1], n2 = p.size[2], low[3], high[3];
        A sum = 0;
        split(p, i, AREA, &plane, &at);
        I z = at % n2, y = at / n2 % n1, x = at / n2 / n1;
        outputs_of(p, 0, x, &low[0], &high[0]), outputs_of(p, 1, y, &low[1], &high[1]), outputs_of(p, 2, z, &low[2], &high[2]);
        for (I o0 = low[0]; o0 < high[0]; o0++) {
            window a = window_of(p, 0, o0);
            if (x < a.first || x >= a.past) continue;
            for (I o1 = low[1]; o1 < high[1]; o1++) {
                window b = window_of(p, 1, o1);
                if (y < b.first || y >= b.past) continue;
                for (I o2 = low[2]; o2 < high[2]; o2++) {
                    window c = window_of(p, 2, o2);
                    if (z < c.first || z >= c.past) continue;
                    I o = (o0 * (I)p.result[1] + o1) * (I)p.result[2] + o2;
                    A g = (A)value(p.in[element_of(p, plane, o, RESULTS)]);
                    sum += g / (p.divisor ? (A)p.divisor : (A)((i64)a.count * b.count * c.count));
                }
            }
        }
        p.out[i] = made<T>::of(sum);
    }
}
#endif
#if KIND == 1
/* Gradients of a maximum: out starts as zeros. A thread per result, or per plane, whose results it adds in their order. */
#define EACH_RESULT(plane, o)                                                                                                  \
    I in_turn = p.ordered ? RESULTS : 1;                                                                                       \
    EACH(first, p.planes *RESULTS / in_turn)                                                                                   \
    for (I plane, o, turn = result_of(p, first, &plane, &o); turn < in_turn; turn++, o++)
__device__ inline I result_of(const pool_args &p, i64 first, I *plane, I *o)
{
    if (p.ordered) *plane = first, *o = 0;
    else split(p, first, RESULTS, plane, o);
    return 0;
}
__device__ inline void add(const pool_args &p, T *to, T v)
{
    if (p.ordered) *to = made<T>::of((A)value(*to) + (A)value(v));
    else atomicAdd(to, v);
}
KERNEL(max_pool_backward, pool_args, p)
{
    EACH_RESULT(plane, o)
    {
        i64 i = element_of(p, plane, o, RESULTS), at = p.index[i];
        if ((u64)at < (u64)AREA) add(p, p.out + element_of(p, plane, (I)at, AREA), p.in[i]);
    }
}
KERNEL(max_pool_gradient, pool_args, p) /* the positions are found again */
{
    EACH_RESULT(plane, o)
    {
        T best;
        I at = largest(p, p.in + element_of(p, plane, 0, AREA), windows_of(p, o), &best);
        add(p, p.out + element_of(p, plane, at, AREA), p.grad[element_of(p, plane, o, RESULTS)]);
    }
}
#endif
#if KIND == 1 || KIND == 2
KERNEL(fold, pool_args, p) /* col2im: dimensions 1 and 2 */
{
    EACH(i, p.planes * p.size[1] * p.size[2])
    {
        i64 x = i % p.size[2], y = i / p.size[2] % p.size[1], plane = i / p.size[2] / p.size[1];
        A   sum = 0;
        for (i64 ky = 0; ky < p.kernel[1]; ky++)
            for (i64 kx = 0; kx < p.kernel[2]; kx++) {
                i64 oy = y + p.padding[1] - ky * p.dilation[1], ox = x + p.padding[2] - kx * p.dilation[2];
                if (oy < 0 || ox < 0 || oy % p.stride[1] || ox % p.stride[2]) continue;
                oy /= p.stride[1], ox /= p.stride[2];
                if (oy >= p.result[1] || ox >= p.result[2]) continue;
                sum += (A)value(
                    p.in[((plane * p.kernel[1] * p.kernel[2] + ky * p.kernel[2] + kx) * p.result[1] + oy) * p.result[2] + ox]);
            }
        p.out[i] = made<T>::of(sum);
    }
}
#endif
KERNEL(unfold, pool_args, p) /* im2col */
{
    i64 taps = p.kernel[1] * p.kernel[2];
    EACH(i, p.planes * taps * p.result[1] * p.result[2])
    {
        i64 ox = i % p.result[2], oy = i / p.result[2] % p.result[1], tap = i / p.result[2] / p.result[1] % taps;
        i64 plane = i / p.result[2] / p.result[1] / taps,
            y = oy * p.stride[1] - p.padding[1] + tap / p.kernel[2] * p.dilation[1];
        i64 x = ox * p.stride[2] - p.padding[2] + tap % p.kernel[2] * p.dilation[2];
        T   zero = {};
        p.out[i] = y < 0 || x < 0 || y >= p.size[1] || x >= p.size[2] ? zero : p.in[(plane * p.size[1] + y) * p.size[2] + x];
    }
}

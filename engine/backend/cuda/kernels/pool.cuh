/* Pooling and unfolding (args.h: lc_pool_args): a thread per element of the result. T: the elements. */
struct pool_args {
    T       *out;
    i64     *index;
    const T *in, *grad;
    i64      planes, size[3], result[3], kernel[3], stride[3], padding[3], dilation[3], divisor;
    int      adaptive, padding_counts, ordered;
};
typedef acc_of<T>::type A;
struct window {
    i64 first, past, step, count;
};
__device__ inline window window_of(const pool_args &p, int d, i64 o)
{
    i64 n = p.size[d], m = p.result[d], step = p.dilation[d];
    if (p.adaptive) {
        i64 first = o * n / m, past = ((o + 1) * n + m - 1) / m;
        return window{ first, past, 1, past - first };
    }
    i64 start = o * p.stride[d] - p.padding[d], end = start + (p.kernel[d] - 1) * step + 1;
    i64 padded = end < n + p.padding[d] ? end : n + p.padding[d];
    i64 first = start < 0 ? start + (-start + step - 1) / step * step : start, past = end < n ? end : n;
    return window{ first, past, step, p.padding_counts ? padded - start : past - first };
}
#define PLACE(i)                                                                                                               \
    i64    results = p.result[0] * p.result[1] * p.result[2], area = p.size[0] * p.size[1] * p.size[2], plane = i / results;   \
    i64    o2 = i % p.result[2], o1 = i / p.result[2] % p.result[1], o0 = i / p.result[2] / p.result[1] % p.result[0];         \
    window a = window_of(p, 0, o0), b = window_of(p, 1, o1), c = window_of(p, 2, o2)
#if VARIANT < 2 /* 0 integers, 1 floating, 2 folding and unfolding alone, of any type that adds */
__device__ inline i64 largest(const pool_args &p, const T *in, window a, window b, window c, T *best)
{
    i64  found = (a.first * p.size[1] + b.first) * p.size[2] + c.first, last = p.size[0] * p.size[1] * p.size[2] - 1;
    bool any = false;
    A    most = 0;
    if (found > last) found = last;
    for (i64 x = a.first; x < a.past; x += a.step)
        for (i64 y = b.first; y < b.past; y += b.step)
            for (i64 z = c.first; z < c.past; z += c.step) {
                i64 at = (x * p.size[1] + y) * p.size[2] + z;
                A   v = (A)value(in[at]);
                if (!any || v > most || v != v) most = v, found = at, any = true, *best = in[at];
            }
    if (!any) *best = made<T>::of(sizeof(A) == 8 && (A)0.5 == 0 ? (A)(-9223372036854775807ll - 1) : (A)-infinity<float>());
    return found;
}
KERNEL(max_pool, pool_args, p)
{
    EACH(i, p.planes * p.result[0] * p.result[1] * p.result[2])
    {
        PLACE(i);
        T   best;
        i64 at = largest(p, p.in + plane * area, a, b, c, &best);
        p.out[i] = best;
        if (p.index) p.index[i] = at;
    }
}
KERNEL(average_pool, pool_args, p)
{
    EACH(i, p.planes * p.result[0] * p.result[1] * p.result[2])
    {
        PLACE(i);
        A        sum = 0;
        const T *in = p.in + plane * area;
        for (i64 x = a.first; x < a.past; x += a.step)
            for (i64 y = b.first; y < b.past; y += b.step)
                for (i64 z = c.first; z < c.past; z += c.step) sum += (A)value(in[(x * p.size[1] + y) * p.size[2] + z]);
        p.out[i] = made<T>::of(sum / (p.divisor ? (A)p.divisor : (A)(a.count * b.count * c.count)));
    }
}
#endif
#if VARIANT == 1                                                                         /* floating: gradients */
__device__ inline void outputs_of(const pool_args &p, int d, i64 i, i64 *low, i64 *high) /* whose windows may hold element i */
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
    EACH(i, p.planes * p.size[0] * p.size[1] * p.size[2])
    {
        i64 z = i % p.size[2], y = i / p.size[2] % p.size[1], x = i / p.size[2] / p.size[1] % p.size[0];
        i64 plane = i / (p.size[0] * p.size[1] * p.size[2]), low[3], high[3];
        A   sum = 0;
        outputs_of(p, 0, x, &low[0], &high[0]), outputs_of(p, 1, y, &low[1], &high[1]), outputs_of(p, 2, z, &low[2], &high[2]);
        for (i64 o0 = low[0]; o0 < high[0]; o0++) {
            window a = window_of(p, 0, o0);
            if (x < a.first || x >= a.past) continue;
            for (i64 o1 = low[1]; o1 < high[1]; o1++) {
                window b = window_of(p, 1, o1);
                if (y < b.first || y >= b.past) continue;
                for (i64 o2 = low[2]; o2 < high[2]; o2++) {
                    window c = window_of(p, 2, o2);
                    if (z < c.first || z >= c.past) continue;
                    A g = (A)value(p.in[((plane * p.result[0] + o0) * p.result[1] + o1) * p.result[2] + o2]);
                    sum += g / (p.divisor ? (A)p.divisor : (A)(a.count * b.count * c.count));
                }
            }
        }
        p.out[i] = made<T>::of(sum);
    }
}
/* Gradients of a maximum: out starts as zeros. A thread per result, or per plane, whose results it adds in their order. */
#define EACH_RESULT(i)                                                                                                         \
    i64 in_turn = p.ordered ? p.result[0] * p.result[1] * p.result[2] : 1;                                                     \
    EACH(first, p.planes *p.result[0] * p.result[1] * p.result[2] / in_turn)                                                   \
    for (i64 i = first * in_turn; i < (first + 1) * in_turn; i++)
__device__ inline void add(const pool_args &p, T *to, T v)
{
    if (p.ordered) *to = made<T>::of((A)value(*to) + (A)value(v));
    else atomicAdd(to, v);
}
KERNEL(max_pool_backward, pool_args, p)
{
    i64 results = p.result[0] * p.result[1] * p.result[2], area = p.size[0] * p.size[1] * p.size[2];
    EACH_RESULT(i) if ((u64)p.index[i] < (u64)area) add(p, p.out + i / results * area + p.index[i], p.in[i]);
}
KERNEL(max_pool_gradient, pool_args, p) /* the positions are found again */
{
    EACH_RESULT(i)
    {
        PLACE(i);
        T best;
        add(p, p.out + plane * area + largest(p, p.in + plane * area, a, b, c, &best), p.grad[i]);
    }
}
#endif
#if VARIANT
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

/* Complex numbers: products of elements, running products and logarithms of running sums, ramps. T: the elements. VARIANT, of a scan: 0
 * product, 1 log of the sum of exponentials. */
typedef acc_of<T>::type A;
enum { AXES = 12 };
struct axes {
    int ndim;
    i64 n, shape[AXES], in[AXES], out[AXES];
};
struct fold_args {
    axes  kept, reduced; /* byte offsets; out: of kept ones */
    char *in, *out;
};
__device__ inline i64 offset_of(const axes &a, i64 at, bool out)
{
    i64 offset = 0;
    for (int d = a.ndim - 1; d >= 0; d--) offset += at % a.shape[d] * (out ? a.out[d] : a.in[d]), at /= a.shape[d];
    return offset;
}
BLOCK_KERNEL(product, fold_args,
             p) /* a block of 128 threads per result; each multiplies a run of elements, runs are joined in order */
{
    __shared__ A parts[128];
    i64          each = (p.reduced.n + 127) / 128, begin = threadIdx.x * each, base = offset_of(p.kept, blockIdx.x, false);
    A            all(1);
    for (i64 i = begin; i < begin + each && i < p.reduced.n; i++)
        all *= A(value(*(const T *)(p.in + base + offset_of(p.reduced, i, false))));
    parts[threadIdx.x] = all;
    __syncthreads();
    if (threadIdx.x) return;
    for (int t = 1; t < 128; t++) all *= parts[t];
    *(T *)(p.out + offset_of(p.kept, blockIdx.x, true)) = made<T>::of(all);
}
struct scan_args {
    T       *out;
    const T *in;
    i64      outer, n, inner;
};
__device__ inline c128 joined(c128 total, c128 x)
{
    if (VARIANT == 0) return total * x;
    if (x != x || total != total) return c128(NAN, NAN);
    c128 low = x.re < total.re ? x : total, high = x.re < total.re ? total : x;
    if (!isfinite(high.re) && low.re == high.re) return high.re < 0 ? low : log(exp(low) + exp(high));
    double size = exp(low.re - high.re), angle = low.im - high.im, re = size == 0 ? 0 : size * cos(angle),
           im = size == 0 ? 0 : size * sin(angle);
    return c128(0.5 * log1p(re * (2 + re) + im * im) + high.re, atan2(im, 1 + re) + high.im);
}
KERNEL(scan, scan_args, p) /* a thread per line */
{
    EACH(line, p.outer * p.inner)
    {
        i64  first = line / p.inner * p.n * p.inner + line % p.inner;
        c128 total = VARIANT ? c128(-INFINITY, 0) : c128(1);
        for (i64 i = 0; i < p.n; i++) {
            i64 at = first + i * p.inner;
            total = joined(total, c128(p.in[at]));
            if (VARIANT == 0) total = c128(T(total));
            p.out[at] = T(total);
        }
    }
}
struct ramp_args {
    T   *out;
    i64  n, step_out;
    c128 start, step, end, base;
    int  power;
};
KERNEL(ramp, ramp_args, p) /* from both ends */
{
    EACH(i, p.n)
    {
        c128 v = i < p.n / 2 || p.n == 1 ? p.start + p.step * (double)i : p.end - p.step * (double)(p.n - 1 - i);
        p.out[i * p.step_out] = T(p.power ? m_pow(p.base, v) : v);
    }
}

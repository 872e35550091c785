/* Fractional pooling (args.h: lc_pool_args): windows of one size at drawn positions, which are computed with the roundings of the dtype of the
 * draws, U, as PyTorch does: they decide which elements are in a window. T: the elements. */
struct fractional_args {
    T       *out;
    i64     *index;
    const T *in, *samples;
    i64      planes, size[3], result[3], kernel[3];
    int      dims;
};
__device__ inline double rounded(double x) { return sizeof(U) == 8 ? x : (double)value(made<U>::of((float)x)); }
__device__ inline i64    start_of(const fractional_args &p, i64 plane, int d, i64 i)
{
    i64 n = p.size[d], m = p.result[d], k = p.kernel[d], last = n - k;
    if (i == m - 1) return last;
    int    draw = p.dims == 2 ? 2 - d : d; /* two dimensions: the first draw belongs to the last one */
    double sample = p.dims == 2 && d == 0 ? 0 : (double)p.samples[plane * p.dims + draw];
    double step = m > 1 ? rounded(rounded((double)last) / rounded((double)(m - 1))) : 0;
    i64    first = (i64)rounded(sample * step);
    double at = (double)(i64)rounded(rounded(rounded((double)i) + sample) * step) - (double)first;
    return !(at > 0) ? 0 : at < (double)last ? (i64)at : last;
}
KERNEL(pool, fractional_args, p)
{
    i64 results = p.result[0] * p.result[1] * p.result[2], area = p.size[0] * p.size[1] * p.size[2];
    EACH(i, p.planes * results)
    {
        i64      plane = i / results, r = i % results, d0 = start_of(p, plane, 0, r / (p.result[1] * p.result[2]));
        i64      h0 = start_of(p, plane, 1, r / p.result[2] % p.result[1]), w0 = start_of(p, plane, 2, r % p.result[2]);
        i64      where = (d0 * p.size[1] + h0) * p.size[2] + w0;
        const T *in = p.in + plane * area;
        T        best = -infinity<T>();
        for (i64 d = d0; d < d0 + p.kernel[0]; d++)
            for (i64 h = h0; h < h0 + p.kernel[1]; h++)
                for (i64 w = w0; w < w0 + p.kernel[2]; w++) {
                    i64 at = (d * p.size[1] + h) * p.size[2] + w;
                    if (in[at] > best || in[at] != in[at]) best = in[at], where = at;
                }
        p.out[i] = best, p.index[i] = where;
    }
}

/* Distances of rows (args.h: lc_distance_args) and products with a weight in codes (lc_quantized_args). T: the elements; of products f32 alone.
 * A NaN is the largest distance in pdist and is passed over in cdist, as in PyTorch. */
struct distance_args {
    T       *out;
    const T *a, *b;
    i64      batch, n, m, k;
    double   p;
    int      pairs;
};
__device__ inline T distance(const distance_args &p, const T *x, const T *y)
{
    T    r = 0;
    bool most = p.p - p.p != 0; /* infinite */
    for (i64 i = 0; i < p.k; i++) {
        T d = x[i] - y[i];
        d = d < 0 ? -d : d;
        if (p.p == 0) r += d != d ? d : (T)(d != 0);
        else if (most) r = d > r || (p.pairs && d != d) ? d : r;
        else r += p.p == 1 ? d : p.p == 2 ? d * d : (T)pow(d, (T)p.p);
    }
    return p.p == 0 || p.p == 1 || most ? r : p.p == 2 ? (T)sqrt(r) : (T)pow(r, (T)(1 / p.p));
}
KERNEL(all_pairs, distance_args, p)
{
    EACH(i, p.batch * p.n * p.m)
    {
        i64 row = i / p.m, batch = row / p.n;
        p.out[i] = distance(p, p.a + row * p.k, p.b + (batch * p.m + i % p.m) * p.k);
    }
}
KERNEL(own_pairs, distance_args, p) /* rows x < y of one matrix, in the order of x */
{
    EACH(i, p.n * p.n)
    {
        i64 x = i / p.n, y = i % p.n;
        if (x < y) p.out[x * (2 * p.n - x - 1) / 2 + y - x - 1] = distance(p, p.a + x * p.k, p.a + y * p.k);
    }
}
#if VARIANT
struct quantized_args {
    f32       *out;
    const f32 *x, *scales, *bias;
    const u8  *codes;
    i64        m, n, k, group;
    int        halves; /* two codes to a byte: 16 bytes hold 32 codes, the first 16 in their low halves */
};
BLOCK_KERNEL(multiply_codes, quantized_args, p) /* a block per result */
{
    i64       row = blockIdx.x / p.n, j = blockIdx.x % p.n;
    const u8 *codes = p.codes + j * (p.halves ? p.k / 2 : p.k);
    f32       sum = 0;
    for (i64 c = threadIdx.x; c < p.k; c += blockDim.x) {
        int code = p.halves ? (codes[c / 32 * 16 + c % 16] >> (c % 32 / 16 * 4) & 15) - 8 : (int)(i8)codes[c];
        sum += p.x[row * p.k + c] * p.scales[j * (p.k / p.group) + c / p.group] * (f32)code;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) p.out[row * p.n + j] = sum + (p.bias ? p.bias[j] : 0.f);
}
#endif

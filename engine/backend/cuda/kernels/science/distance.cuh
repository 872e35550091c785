/* Distances of rows (args.h: lc_distance_args). T: the elements. A NaN is the largest distance in pdist and is passed over in cdist, as in PyTorch. */
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

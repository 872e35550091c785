/* Scans (args.h: lc_scan_args): (outer, n, inner), along n. T: the elements. VARIANT: 0 sum, 1 product, 2 maximum, 3 minimum, 4
 * log of the sum of exponentials (in double). */
#if VARIANT >= 4
typedef f64 A;
#else
typedef acc_of<T>::type A;
#endif
struct scan_args {
    T       *out;
    i64     *index;
    const T *in;
    i64      outer, n, inner;
};
struct state {
    A   v;
    i64 at; /* -1: nothing yet */
};
__device__ inline state joined(state a, state b) /* a comes first */
{
    if (a.at < 0) return b;
    if (b.at < 0) return a;
    if (VARIANT == 0) return state{ a.v + b.v, b.at };
    if (VARIANT == 1) return state{ a.v * b.v, b.at };
    if (VARIANT == 2) return b.v != b.v || (a.v == a.v && b.v >= a.v) ? b : a;
    if (VARIANT == 3) return b.v != b.v || (a.v == a.v && b.v <= a.v) ? b : a;
    if (b.v != b.v || a.v != a.v) return state{ a.v + b.v, b.at };
    A low = a.v < b.v ? a.v : b.v, high = a.v < b.v ? b.v : a.v;
    return state{ low != high || high - high == 0 ? (A)log1p(exp((double)(low - high))) + high : high, b.at };
}
__device__ inline void put(const scan_args &p, i64 offset, state s)
{
    p.out[offset] = made<T>::of(s.v);
    if (p.index) p.index[offset] = s.at;
}
KERNEL(lanes, scan_args, p) /* a thread per line */
{
    EACH(line, p.outer * p.inner)
    {
        i64   at = line / p.inner * p.n * p.inner + line % p.inner;
        state s = { 0, -1 };
        for (i64 i = 0; i < p.n; i++) {
            s = joined(s, state{ (A)value(p.in[at + i * p.inner]), i });
            put(p, at + i * p.inner, s);
        }
    }
}
BLOCK_KERNEL(line, scan_args, p) /* a block per line, 256 elements at a time */
{
    __shared__ state shared[2][256];
    i64              at = blockIdx.x / p.inner * p.n * p.inner + blockIdx.x % p.inner;
    state            before = { 0, -1 };
    for (i64 first = 0; first < p.n; first += 256) {
        i64   i = first + threadIdx.x;
        state s = { 0, -1 };
        int   now = 0;
        if (i < p.n) s = state{ (A)value(p.in[at + i * p.inner]), i };
        shared[0][threadIdx.x] = s;
        __syncthreads();
        for (int step = 1; step < 256; step *= 2, now ^= 1) {
            s = shared[now][threadIdx.x];
            if (threadIdx.x >= step) s = joined(shared[now][threadIdx.x - step], s);
            shared[now ^ 1][threadIdx.x] = s;
            __syncthreads();
        }
        s = joined(before, shared[now][threadIdx.x]);
        if (i < p.n) put(p, at + i * p.inner, s);
        before = joined(before, shared[now][255]);
        __syncthreads();
    }
}

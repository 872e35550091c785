/* Attention by products: the scores of some heads in memory, a block per row of them. T: the probabilities (and their gradient)
 * as the next product reads them, U: scores, V: mask, W: grad, X: out. VARIANT: 1: the mask is boolean. */
struct attention_args {
    U       *scores, *slopes; /* slopes: of the probabilities; backward only */
    T       *p, *ds;          /* may share the memory of scores and slopes */
    const V *mask;
    const W *grad;
    const X *out;
    U       *lse;                    /* of these heads, contiguous */
    i64      heads, l, s, ev, first; /* first: number of the first head, for mask, grad and out */
    i64      h, mask_stride[4], grad_stride[4], out_stride[4];
    double   scale;
    int      causal;
};
__device__ inline float  power(float x) { return expf(x); }
__device__ inline double power(double x) { return exp(x); }
__device__ inline U      score(const attention_args &p, i64 head, i64 row, i64 col)
{
    if (p.causal && col > row) return -infinity<U>();
    U x = p.scores[(head * p.l + row) * p.s + col];
    if (!p.mask) return x;
    i64  b = (p.first + head) / p.h, i = (p.first + head) % p.h;
    auto m = value(p.mask[b * p.mask_stride[0] + i * p.mask_stride[1] + row * p.mask_stride[2] + col * p.mask_stride[3]]);
    return VARIANT ? (m ? x : -infinity<U>()) : x + (U)m;
}
BLOCK_KERNEL(forward, attention_args, p)
{
    i64 head = blockIdx.x / p.l, row = blockIdx.x % p.l;
    U   most = -infinity<U>(), sum = 0;
    for (i64 c = threadIdx.x; c < p.s; c += blockDim.x) {
        U x = score(p, head, row, c);
        most = x != x || x > most ? x : most;
    }
    most = block_max(most);
    bool blind = most == -infinity<U>();
    for (i64 c = threadIdx.x; c < p.s && !blind; c += blockDim.x) sum += power(score(p, head, row, c) - most);
    sum = block_sum(sum);
    /* the last pass: a row of p may lie in the row of scores, and is written after it was read by the same thread */
    for (i64 c = threadIdx.x; c < p.s; c += blockDim.x) {
        U x = blind ? (U)0 : power(score(p, head, row, c) - most) / sum;
        p.p[(head * p.l + row) * p.s + c] = made<T>::of(x);
    }
    if (threadIdx.x == 0) p.lse[head * p.l + row] = blind ? -infinity<U>() : most + log(sum);
}
BLOCK_KERNEL(backward, attention_args, p)
{
    i64      head = blockIdx.x / p.l, row = blockIdx.x % p.l, b = (p.first + head) / p.h, i = (p.first + head) % p.h;
    const W *g = p.grad + b * p.grad_stride[0] + i * p.grad_stride[1] + row * p.grad_stride[2];
    const X *y = p.out + b * p.out_stride[0] + i * p.out_stride[1] + row * p.out_stride[2];
    U        delta = 0, lse = p.lse[head * p.l + row];
    for (i64 c = threadIdx.x; c < p.ev; c += blockDim.x)
        delta += (U)value(g[c * p.grad_stride[3]]) * (U)value(y[c * p.out_stride[3]]);
    delta = block_sum(delta);
    for (i64 c = threadIdx.x; c < p.s; c += blockDim.x) {
        i64 at = (head * p.l + row) * p.s + c;
        U   x = lse == -infinity<U>() ? (U)0 : power(score(p, head, row, c) - lse), d = p.slopes[at];
        p.p[at] = made<T>::of(x), p.ds[at] = made<T>::of(x == 0 ? (U)0 : x * (d - delta) * (U)p.scale);
    }
}

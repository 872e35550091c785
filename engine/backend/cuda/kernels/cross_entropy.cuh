/* Cross entropy (args.h: lc_cross_entropy_args). T: in and out, U: the computing type, V: reduced. A position is (n, lane);
 * its scores are `lanes` apart. */
typedef acc_of<T>::type A;
struct entropy_args {
    const T   *in;
    T         *out;
    const i64 *target;
    const U   *weight, *grad;
    U         *loss, *lse, *total;
    V         *reduced;
    i64        n, classes, lanes, ignored, shared_grad;
    double     smoothing;
    int        mean;
    trouble   *word;
    A         *all_weights;
};
__device__ inline float  power(float x) { return expf(x); }
__device__ inline double power(double x) { return exp(x); }
__device__ inline A      weight_of(const entropy_args &p, i64 c)
{
    return c == p.ignored ? (A)0 : p.weight ? (A)value(p.weight[c]) : (A)1;
}
__device__ inline bool bad(const entropy_args &p, i64 c) { return c != p.ignored && (u64)c >= (u64)p.classes; }
BLOCK_KERNEL(weights, entropy_args, p) /* the sum of the weights of all classes */
{
    A sum = 0;
    for (i64 c = threadIdx.x; c < p.classes; c += blockDim.x) sum += p.weight ? (A)value(p.weight[c]) : (A)1;
    sum = block_sum(sum);
    if (threadIdx.x == 0) *p.all_weights = sum;
}
__device__ inline void put_loss(const entropy_args &p, i64 at, const T *x, A lse, A weighed)
{
    i64 c = p.target[at];
    p.lse[at] = made<U>::of(lse);
    A loss = 0;
    if (bad(p, c)) report(p.word, 2, c, 0, p.classes);
    else if (c != p.ignored) {
        loss = weight_of(p, c) * (lse - (A)value(x[c * p.lanes]));
        if (p.smoothing != 0)
            loss = (A)(1 - p.smoothing) * loss + (A)(p.smoothing / (double)p.classes) * (*p.all_weights * lse - weighed);
    }
    p.loss[at] = made<U>::of(loss);
}
BLOCK_KERNEL(forward_rows, entropy_args, p) /* a block per position */
{
    i64      at = blockIdx.x;
    const T *x = p.in + at / p.lanes * p.classes * p.lanes + at % p.lanes;
    A        most = -infinity<A>(), sum = 0, weighed = 0;
    for (i64 c = threadIdx.x; c < p.classes; c += blockDim.x) {
        A s = value(x[c * p.lanes]);
        most = s > most ? s : most;
        if (p.smoothing != 0) weighed += (p.weight ? (A)value(p.weight[c]) : (A)1) * s;
    }
    most = block_max(most);
    for (i64 c = threadIdx.x; c < p.classes; c += blockDim.x) sum += power((A)value(x[c * p.lanes]) - most);
    sum = block_sum(sum);
    if (p.smoothing != 0) weighed = block_sum(weighed);
    if (threadIdx.x == 0) put_loss(p, at, x, most + log(sum), weighed);
}
KERNEL(forward_each, entropy_args, p) /* a thread per position */
{
    EACH(at, p.n * p.lanes)
    {
        const T *x = p.in + at / p.lanes * p.classes * p.lanes + at % p.lanes;
        A        most = -infinity<A>(), sum = 0, weighed = 0;
        for (i64 c = 0; c < p.classes; c++) {
            A s = value(x[c * p.lanes]);
            most = s > most ? s : most;
            if (p.smoothing != 0) weighed += (p.weight ? (A)value(p.weight[c]) : (A)1) * s;
        }
        for (i64 c = 0; c < p.classes; c++) sum += power((A)value(x[c * p.lanes]) - most);
        put_loss(p, at, x, most + log(sum), weighed);
    }
}
BLOCK_KERNEL(sums, entropy_args, p) /* one block */
{
    double loss = 0, total = 0;
    for (i64 i = threadIdx.x; i < p.n * p.lanes; i += blockDim.x) {
        loss += (double)value(p.loss[i]);
        if (!bad(p, p.target[i])) total += (double)weight_of(p, p.target[i]);
    }
    loss = block_sum(loss), total = block_sum(total);
    if (threadIdx.x) return;
    *p.total = made<U>::of(total);
    if (p.reduced) *p.reduced = made<V>::of(p.mean ? loss / total : loss);
}
KERNEL(backward, entropy_args, p) /* a thread per score */
{
    EACH(i, p.n * p.classes * p.lanes)
    {
        i64 c = i / p.lanes % p.classes, at = i / (p.classes * p.lanes) * p.lanes + i % p.lanes, hit = p.target[at];
        A   d = 0;
        if (hit != p.ignored && !bad(p, hit)) {
            A g = (A)value(p.grad[p.shared_grad ? 0 : at]), own = weight_of(p, hit),
              even = (A)(p.smoothing / (double)p.classes);
            if (p.total) g /= (A)value(*p.total);
            A pull = g * (A)(1 - p.smoothing) * own + (p.smoothing != 0 ? g * even * *p.all_weights : (A)0);
            d = pull * power((A)value(p.in[i]) - (A)value(p.lse[at]));
            if (p.smoothing != 0) d -= g * even * (p.weight ? (A)value(p.weight[c]) : (A)1);
            if (c == hit) d -= g * (A)(1 - p.smoothing) * own;
        }
        p.out[i] = made<T>::of(d);
    }
}

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
    double    *parts; /* sums of losses and weights, of slices of many positions; or NULL */
    i64        slices;
};
__device__ inline float  power(float x) { return sizeof(T) == 2 ? fast_exp2(x * 1.4426950408889634f) : expf(x); }
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
BLOCK_KERNEL(forward_rows, entropy_args, p) /* a block per position, one lane: scores side by side, read once */
{
    const T *x = p.in + blockIdx.x * p.classes;
    A        most = -infinity<A>(), sum = 0, weighed = 0;
    each_of_row<A>(x, p.classes, [&](i64 c, const A *scores, int n) {
        add_powers(scores, n, most, sum, [](A s) { return power(s); });
        if (p.smoothing != 0)
            for (int j = 0; j < n; j++) weighed += (p.weight ? (A)value(p.weight[c + j]) : (A)1) * scores[j];
    });
    A own = most;
    most = block_max(most);
    sum = block_sum(sum == 0 ? (A)0 : sum * power(own - most));
    if (p.smoothing != 0) weighed = block_sum(weighed);
    if (threadIdx.x == 0) put_loss(p, blockIdx.x, x, most + log(sum), weighed);
}
__device__ inline void forward_one(const entropy_args &p, i64 at)
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
KERNEL(forward_each, entropy_args, p) /* a thread per position */ { EACH(at, p.n * p.lanes) forward_one(p, at); }
/* Of a block: losses and weights of positions [begin, end). */
__device__ inline void add_positions(const entropy_args &p, i64 begin, i64 end, double &loss, double &total)
{
    for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) {
        loss += (double)value(p.loss[i]);
        if (!bad(p, p.target[i])) total += (double)weight_of(p, p.target[i]);
    }
}
BLOCK_KERNEL(sum_slices, entropy_args, p) /* a block per slice */
{
    i64    all = p.n * p.lanes, length = (all + p.slices - 1) / p.slices, begin = blockIdx.x * length;
    double loss = 0, total = 0;
    add_positions(p, begin, begin + length < all ? begin + length : all, loss, total);
    loss = block_sum(loss), total = block_sum(total);
    if (threadIdx.x == 0) p.parts[2 * blockIdx.x] = loss, p.parts[2 * blockIdx.x + 1] = total;
}
/* One block: the sums over all positions. */
__device__ inline void put_sums(const entropy_args &p)
{
    double loss = 0, total = 0;
    if (p.parts)
        for (i64 i = threadIdx.x; i < p.slices; i += blockDim.x) loss += p.parts[2 * i], total += p.parts[2 * i + 1];
    else add_positions(p, 0, p.n * p.lanes, loss, total);
    loss = block_sum(loss), total = block_sum(total);
    if (threadIdx.x) return;
    *p.total = made<U>::of(total);
    if (p.reduced) *p.reduced = made<V>::of(p.mean ? loss / total : loss);
}
BLOCK_KERNEL(sums, entropy_args, p) { put_sums(p); }
BLOCK_KERNEL(forward_few, entropy_args, p) /* few positions of few classes: one block does it all */
{
    for (i64 at = threadIdx.x; at < p.n * p.lanes; at += blockDim.x) forward_one(p, at);
    put_sums(p); /* of losses that the same thread wrote */
}
/* The gradient of one score; g: of the loss of its position, pull: of the logarithm of the sum. */
struct slope {
    A pull, even, own;
};
__device__ inline slope slope_of(const entropy_args &p, i64 at, i64 hit)
{
    if (hit == p.ignored || bad(p, hit)) return slope{ (A)0, (A)0, (A)0 };
    A g = (A)value(p.grad[p.shared_grad ? 0 : at]), own = weight_of(p, hit), even = (A)(p.smoothing / (double)p.classes);
    if (p.total) g /= (A)value(*p.total);
    return slope{ g * (A)(1 - p.smoothing) * own + (p.smoothing != 0 ? g * even * *p.all_weights : (A)0), g * even,
                  g * (A)(1 - p.smoothing) * own };
}
__device__ inline A slope_at(const entropy_args &p, const slope &s, A score, A lse, i64 c, i64 hit)
{
    if (s.pull == 0 && s.own == 0) return 0; /* ignored: no score matters, not even a NaN */
    A d = s.pull * power(score - lse);
    if (p.smoothing != 0) d -= s.even * (p.weight ? (A)value(p.weight[c]) : (A)1);
    return c == hit ? d - s.own : d;
}
KERNEL(backward, entropy_args, p) /* a thread per score */
{
    EACH(i, p.n * p.classes * p.lanes)
    {
        i64   c = i / p.lanes % p.classes, at = i / (p.classes * p.lanes) * p.lanes + i % p.lanes, hit = p.target[at];
        slope s = slope_of(p, at, hit);
        p.out[i] = made<T>::of(slope_at(p, s, (A)value(p.in[i]), (A)value(p.lse[at]), c, hit));
    }
}
KERNEL(backward_rows, entropy_args, p) /* a block per position, one lane */
{
    i64   at = blockIdx.x, hit = p.target[at];
    slope s = slope_of(p, at, hit);
    A     lse = (A)value(p.lse[at]);
    bool  none = s.pull == 0 && s.own == 0; /* ignored: no score matters, not even a NaN */
    map_row<A>(p.out + at * p.classes, p.in + at * p.classes, p.classes, [&](i64 c, A *x, int n) {
#pragma unroll
        for (int j = 0; j < n; j++) x[j] = none ? (A)0 : s.pull * power(x[j] - lse);
        if (p.smoothing != 0)
            for (int j = 0; j < n; j++) x[j] -= s.even * (p.weight ? (A)value(p.weight[c + j]) : (A)1);
        if ((u64)(hit - c) < (u64)n)
#pragma unroll
            for (int j = 0; j < n; j++) x[j] -= hit - c == j ? s.own : (A)0;
    });
}

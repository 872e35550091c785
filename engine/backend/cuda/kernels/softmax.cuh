/* softmax, log_softmax and their gradients. T: out, U: in, V: y (the forward's output; only the gradients read it). OP: 0
 * softmax, 1 log_softmax, 2 and 3 their gradients. A line is one softmax; steps are in elements. VARIANT: the op, and how a
 * line is held (rows.c). */
typedef acc_of<T>::type A;
#define OP   (VARIANT & 3)
#define HELD (VARIANT >> 2 & 1)
enum { DIMS = 8 };
struct lines_args {
    char *out, *in, *y;
    i64   n, lines, step[3];
    int   ndim;
    i64   shape[DIMS], stride[3][DIMS];
};
struct line {
    T       *out;
    const U *in;
    const V *y;
};
__device__ inline line line_at(const lines_args &p, i64 left)
{
    i64 at[3] = { 0, 0, 0 };
    for (int d = p.ndim - 1; d >= 0; d--) {
        i64 index = left;
        if (d) left /= p.shape[d], index -= left * p.shape[d];
        for (int k = 0; k < 3; k++) at[k] += index * p.stride[k][d];
    }
    return line{ (T *)p.out + at[0], (const U *)p.in + at[1], (const V *)p.y + at[2] };
}
/* Halves need no more than the hardware's own exponential. */
__device__ inline float  power(float x) { return sizeof(T) == 2 && sizeof(U) == 2 ? __expf(x) : expf(x); }
__device__ inline double power(double x) { return exp(x); }
__device__ inline A      written(A x, A y, A most, A sum)
{
    return OP == 0 ? power(x - most) / sum : OP == 1 ? x - most - sum : OP == 2 ? (x - sum) * y : x - power(y) * sum;
}
#if HELD
/* A row in registers, read once. */
enum { WARP = (VARIANT >> 3 & 1) != 0, WIDE = VARIANT >> 4 & 1 ? 16 / (int)sizeof(U) : 1, CHUNKS = 1 << (VARIANT >> 5 & 3) };
enum { EACH_THREAD = CHUNKS * WIDE, FAST = sizeof(T) == 2 && sizeof(U) == 2 };
#define LOG2_E 1.4426950408889634f
__device__ inline float  powers(float x, float from) { return FAST ? fast_exp2((x - from) * LOG2_E) : expf(x - from); }
__device__ inline double powers(double x, double from) { return exp(x - from); }
__device__ inline float  over(float x) { return FAST ? fast_reciprocal(x) : 1 / x; }
__device__ inline double over(double x) { return 1 / x; }
struct share { /* what some elements have: their maximum, and the sum of their powers from there */
    A most, sum;
};
__device__ inline share joined(share own)
{
    A most = warp_fold(own.most, [](A a, A b) { return larger(a, b); });
    if (own.most != most) own.sum *= powers(own.most, most); /* equal: -inf perhaps, of elements that are masked */
    return share{ most, warp_fold(own.sum, [](A a, A b) { return a + b; }) };
}
BLOCK_KERNEL(held, lines_args, p)
{
    int  lane = WARP ? threadIdx.x % 32 : threadIdx.x, threads = WARP ? 32 : blockDim.x;
    i64  at = WARP ? blockIdx.x * 4 + threadIdx.x / 32 : blockIdx.x;
    bool there = at < p.lines;
    line l = line_at(p, there ? at : 0);
    int  n = there ? (int)p.n : 0;
    A    x[EACH_THREAD], y[EACH_THREAD], sum = 0;
    if (OP < 2) {
        hold<WIDE, CHUNKS>(x, l.in, n, lane, threads, -infinity<A>());
        A own = x[0];
#pragma unroll
        for (int i = 1; i < EACH_THREAD; i++) own = larger(own, x[i]);
        if (WARP) own = warp_fold(own, [](A a, A b) { return larger(a, b); });
        /* A thread's powers start at its own maximum: the threads of a block wait for each other once. */
        A base = own == -infinity<A>() ? (A)0 : own;
#pragma unroll
        for (int i = 0; i < EACH_THREAD; i++) y[i] = powers(x[i], base), sum += y[i];
        share all = { own, sum };
        if (WARP) all.sum = warp_fold(sum, [](A a, A b) { return a + b; });
        else {
            __shared__ share part[32];
            all = joined(all);
            if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = all;
            __syncthreads();
            all = joined(threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : share{ -infinity<A>(), (A)0 });
        }
        if (OP == 0) {
            /* A thread that has only -inf has powers of zero, unless the row has nothing else: then all is not-a-number. */
            A by = (own == base || all.most == own ? powers(own, all.most) : (A)0) * over(all.sum);
#pragma unroll
            for (int i = 0; i < EACH_THREAD; i++) x[i] = y[i] * by;
        } else {
            A log_sum = log(all.sum);
#pragma unroll
            for (int i = 0; i < EACH_THREAD; i++) x[i] = x[i] - all.most - log_sum;
        }
    } else {
        hold<WIDE, CHUNKS>(x, l.in, n, lane, threads, (A)0);
        hold<WIDE, CHUNKS>(y, l.y, n, lane, threads, (A)0);
#pragma unroll
        for (int i = 0; i < EACH_THREAD; i++) sum += OP == 2 ? x[i] * y[i] : x[i];
        sum = shared_sum<WARP>(sum);
#pragma unroll
        for (int i = 0; i < EACH_THREAD; i++) x[i] = OP == 2 ? (x[i] - sum) * y[i] : x[i] - powers(y[i], 0) * sum;
    }
    release<WIDE, CHUNKS>(x, l.out, n, lane, threads);
}
#else
/* 16 bytes at a time, where both sides have one type: whether it did. */
template <class F> __device__ bool          mapped(T *to, const T *row, i64 n, F f) { return map_row<A>(to, row, n, f), true; }
template <class S, class F> __device__ bool mapped(T *, const S *, i64, F) { return false; }
BLOCK_KERNEL(rows, lines_args, p) /* a block per line */
{
    line l = line_at(p, blockIdx.x);
    A    most = 0, sum = 0;
    if (OP < 2) {
        most = -infinity<A>();
        auto power_of = [](A x) { return power(x); };
        if (p.step[1] == 1) each_of_row<A>(l.in, p.n, [&](i64, const A *x, int n) { add_powers(x, n, most, sum, power_of); });
        else
            for (i64 i = threadIdx.x; i < p.n; i += blockDim.x) {
                A x = value(l.in[i * p.step[1]]);
                add_powers(&x, 1, most, sum, power_of);
            }
        A own = most;
        most = block_max(most);
        sum = block_sum(sum == 0 ? (A)0 : sum * power(own - most));
        if (OP == 1) sum = log(sum);
    } else {
        for (i64 i = threadIdx.x; i < p.n; i += blockDim.x) {
            A g = value(l.in[i * p.step[1]]);
            sum += OP == 2 ? g * (A)value(l.y[i * p.step[2]]) : g;
        }
        sum = block_sum(sum);
    }
    auto write = [&](i64, A *x, int n) {
#pragma unroll
        for (int j = 0; j < n; j++) x[j] = written(x[j], (A)0, most, sum);
    };
    if (OP < 2 && p.step[0] == 1 && p.step[1] == 1 && mapped(l.out, l.in, p.n, write)) return;
    for (i64 i = threadIdx.x; i < p.n; i += blockDim.x)
        l.out[i * p.step[0]] =
            made<T>::of(written((A)value(l.in[i * p.step[1]]), OP < 2 ? (A)0 : (A)value(l.y[i * p.step[2]]), most, sum));
}
KERNEL(columns, lines_args, p) /* a thread per line: neighbours in memory are different lines, or lines are short */
{
    EACH(at, p.lines)
    {
        line l = line_at(p, at);
        A    most = 0, sum = 0;
        if (OP < 2) {
            most = -infinity<A>();
            for (i64 i = 0; i < p.n; i++) {
                A x = value(l.in[i * p.step[1]]);
                most = x != x || x > most ? x : most;
            }
            for (i64 i = 0; i < p.n; i++) sum += power(value(l.in[i * p.step[1]]) - most);
            if (OP == 1) sum = log(sum);
        } else
            for (i64 i = 0; i < p.n; i++) {
                A g = value(l.in[i * p.step[1]]);
                sum += OP == 2 ? g * (A)value(l.y[i * p.step[2]]) : g;
            }
        for (i64 i = 0; i < p.n; i++)
            l.out[i * p.step[0]] =
                made<T>::of(written((A)value(l.in[i * p.step[1]]), OP < 2 ? (A)0 : (A)value(l.y[i * p.step[2]]), most, sum));
    }
}
#endif

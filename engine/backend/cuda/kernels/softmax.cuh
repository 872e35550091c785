/* softmax, log_softmax and their gradients. T: out, U: in, V: y (the forward's output; only the gradients read it). VARIANT:
 * 0 softmax, 1 log_softmax, 2 and 3 their gradients. A line is one softmax; steps are in elements. */
typedef acc_of<T>::type A;
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
__device__ inline float  power(float x) { return expf(x); }
__device__ inline double power(double x) { return exp(x); }
__device__ inline A      written(A x, A y, A most, A sum)
{
    return VARIANT == 0   ? power(x - most) / sum
           : VARIANT == 1 ? x - most - sum
           : VARIANT == 2 ? (x - sum) * y
                          : x - power(y) * sum;
}
BLOCK_KERNEL(rows, lines_args, p) /* a block per line */
{
    line l = line_at(p, blockIdx.x);
    A    most = 0, sum = 0;
    if (VARIANT < 2) {
        most = -infinity<A>();
        for (i64 i = threadIdx.x; i < p.n; i += blockDim.x) {
            A x = value(l.in[i * p.step[1]]);
            most = x != x || x > most ? x : most;
        }
        most = block_max(most);
        for (i64 i = threadIdx.x; i < p.n; i += blockDim.x) sum += power(value(l.in[i * p.step[1]]) - most);
        sum = block_sum(sum);
        if (VARIANT == 1) sum = log(sum);
    } else {
        for (i64 i = threadIdx.x; i < p.n; i += blockDim.x) {
            A g = value(l.in[i * p.step[1]]);
            sum += VARIANT == 2 ? g * (A)value(l.y[i * p.step[2]]) : g;
        }
        sum = block_sum(sum);
    }
    for (i64 i = threadIdx.x; i < p.n; i += blockDim.x)
        l.out[i * p.step[0]] =
            made<T>::of(written((A)value(l.in[i * p.step[1]]), VARIANT < 2 ? (A)0 : (A)value(l.y[i * p.step[2]]), most, sum));
}
KERNEL(columns, lines_args, p) /* a thread per line: neighbours in memory are different lines, or lines are short */
{
    EACH(at, p.lines)
    {
        line l = line_at(p, at);
        A    most = 0, sum = 0;
        if (VARIANT < 2) {
            most = -infinity<A>();
            for (i64 i = 0; i < p.n; i++) {
                A x = value(l.in[i * p.step[1]]);
                most = x != x || x > most ? x : most;
            }
            for (i64 i = 0; i < p.n; i++) sum += power(value(l.in[i * p.step[1]]) - most);
            if (VARIANT == 1) sum = log(sum);
        } else
            for (i64 i = 0; i < p.n; i++) {
                A g = value(l.in[i * p.step[1]]);
                sum += VARIANT == 2 ? g * (A)value(l.y[i * p.step[2]]) : g;
            }
        for (i64 i = 0; i < p.n; i++)
            l.out[i * p.step[0]] = made<T>::of(
                written((A)value(l.in[i * p.step[1]]), VARIANT < 2 ? (A)0 : (A)value(l.y[i * p.step[2]]), most, sum));
    }
}

/* A step of Adafactor for one parameter (args.h: lc_adafactor_args), formulas and precision as in cpu/optim: sums are doubles, the
 * update is computed twice rather than stored. A parameter is (matrices, rows, columns); a vector is cut into rows of `columns`, the
 * last one shorter, which have no sums. T: the parameter, U: its gradient, V: the variances. */
typedef acc_of<T>::type A;
struct adafactor_args {
    T       *p;
    const U *grad;
    V       *row, *column;
    i64      n, matrices, rows, columns;
    int      alone; /* a vector: `row` has a variance per element */
    double   sign, shrink, share, rate, least, eps, most;
    double  *of_rows, *of_columns, *parts, *by; /* per row; per column of each matrix; two per row; one */
};
template <class S> __device__ S towards(S x, S to, S w) { return w < (S)0.5 ? x + w * (to - x) : to - (to - x) * (1 - w); }
#define EACH_OF_ROW(i)                                                                                                         \
    i64 begin = (i64)blockIdx.x * p.columns, end = begin + p.columns < p.n ? begin + p.columns : p.n;                          \
    for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x)

BLOCK_KERNEL(measure, adafactor_args, p) /* a block per row: its squares */
{
    double own = 0, moved = 0;
    EACH_OF_ROW(i)
    {
        double x = (double)value(p.p[i]), g = (double)value(p.grad[i]);
        own += x * x, moved += g * g;
    }
    own = block_sum(own), moved = block_sum(moved);
    if (threadIdx.x) return;
    p.parts[2 * blockIdx.x] = own;
    if (!p.alone) p.of_rows[blockIdx.x] = moved;
}
KERNEL(average_columns, adafactor_args, p)
{
    EACH(c, p.matrices * p.columns)
    {
        const U *from = p.grad + c / p.columns * p.rows * p.columns + c % p.columns;
        double   sum = 0;
        for (i64 r = 0; r < p.rows; r++) {
            double g = (double)value(from[r * p.columns]);
            sum += g * g;
        }
        sum = towards((double)value(p.column[c]), sum / (double)p.rows, p.share);
        p.column[c] = made<V>::of(sum), p.of_columns[c] = sum;
    }
}
BLOCK_KERNEL(average_rows, adafactor_args, p) /* a block per matrix; of_rows becomes the factor of the columns' variances */
{
    double *of_rows = p.of_rows + blockIdx.x * p.rows, mean = 0;
    V      *row = p.row + blockIdx.x * p.rows;
    for (i64 r = threadIdx.x; r < p.rows; r += blockDim.x) {
        of_rows[r] = towards((double)value(row[r]), of_rows[r] / (double)p.columns, p.share);
        row[r] = made<V>::of(of_rows[r]), mean += of_rows[r];
    }
    mean = block_sum(mean) / (double)p.rows;
    mean = mean < p.eps ? p.eps : mean;
    for (i64 r = threadIdx.x; r < p.rows; r += blockDim.x) of_rows[r] /= mean;
}
__device__ inline A variance(const adafactor_args &p, i64 i, A g)
{
    if (p.alone) return towards((A)value(p.row[i]), g * g, (A)p.share);
    i64 row = i / p.columns;
    return (A)p.of_columns[row / p.rows * p.columns + i % p.columns] * (A)p.of_rows[row];
}
__device__ inline A at_least(A floor, A v) { return v > floor || v != v ? v : floor; }
BLOCK_KERNEL(size_of_update, adafactor_args, p) /* a block per row: squares of the update */
{
    double sum = 0;
    A      floor = (A)(p.eps * p.eps);
    EACH_OF_ROW(i)
    {
        A g = (A)value(p.grad[i]);
        sum += (double)(g / at_least(floor, variance(p, i, g)) * g);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) p.parts[2 * blockIdx.x + 1] = sum;
}
BLOCK_KERNEL(size_of_step, adafactor_args, p) /* one block */
{
    double own = 0, update = 0, size = sqrt((double)p.n);
    for (i64 r = threadIdx.x; r < p.matrices * p.rows; r += blockDim.x) own += p.parts[2 * r], update += p.parts[2 * r + 1];
    own = sqrt(block_sum(own)) / size, update = sqrt(block_sum(update)) / (size * p.most);
    if (threadIdx.x == 0) *p.by = p.sign * p.rate * (own > p.least ? own : p.least) / (update > 1 ? update : 1);
}
KERNEL(apply, adafactor_args, p)
{
    A floor = (A)(p.eps * p.eps), shrink = (A)p.shrink, by = (A)*p.by;
    EACH(i, p.n)
    {
        A g = (A)value(p.grad[i]), v = variance(p, i, g);
        p.p[i] = made<T>::of((A)value(p.p[i]) * shrink - by * (g / (A)sqrt(at_least(floor, v))));
        if (p.alone) p.row[i] = made<V>::of(v);
    }
}

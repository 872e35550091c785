/* Sorted sequences and counts (args.h: lc_search_args, lc_isin_args, lc_histogram_args, lc_bincount_args). T: the elements; U: the result of
 * searchsorted, or the weights of counts. */
__device__ inline bool less(T x, T y) /* NaN is the largest */
{
    auto a = value(x), b = value(y);
    return b != b ? a == a : a < b;
}
__device__ inline bool above(T x, T y) { return value(x) > value(y); }
__device__ inline bool reaches(T x, T y) { return value(x) >= value(y); }
struct search_args {
    void      *out;
    const T   *sequence, *values;
    const i64 *sorter;
    i64        n, each, count;
    int        one, right, invert, by_order; /* by_order: a NaN is the largest, as sort has it; else PyTorch's comparisons */
    trouble   *word;
};
__device__ inline i64 place_of(const search_args &p, const T *sequence, const i64 *sorter, T v)
{
    i64 low = 0, high = p.n;
    while (low < high) {
        i64 mid = low + (high - low) / 2, at = mid;
        if (sorter) {
            at = sorter[mid];
            if ((u64)at >= (u64)p.n) {
                report(p.word, 1, at, 0, p.n);
                return 0;
            }
        }
        if (p.by_order ? less(sequence[at], v) : p.right ? !above(sequence[at], v) : !reaches(sequence[at], v)) low = mid + 1;
        else high = mid;
    }
    return low;
}
#if VARIANT == 0
KERNEL(search, search_args, p)
{
    EACH(i, p.count)
    {
        i64 row = p.one ? 0 : i / p.each;
        ((U *)p.out)[i] = (U)place_of(p, p.sequence + row * p.n, p.sorter ? p.sorter + row * p.n : 0, p.values[i]);
    }
}
KERNEL(member, search_args, p) /* whether the sequence has the value; NaN is no member */
{
    EACH(i, p.count)
    {
        T   v = p.values[i];
        i64 at = place_of(p, p.sequence, 0, v);
        ((u8 *)p.out)[i] = (at < p.n && value(p.sequence[at]) == value(v)) != (p.invert != 0);
    }
}
#else            /* counts, in 64 bits: integers, or doubles for weights */
enum { DIMS = 8 };
struct count_args {
    const T *in;
    const U *weight; /* or NULL */
    void    *table;
    i64      n;
    int      dims, even;
    i64      bins[DIMS];
    const T *edges[DIMS]; /* or NULL: of equal width */
    double   low[DIMS], high[DIMS];
};
__device__ inline void count(const count_args &p, i64 cell, i64 i)
{
    if (p.weight) atomicAdd((double *)p.table + cell, (double)value(p.weight[i]));
    else atomicAdd((unsigned long long *)p.table + cell, 1ull);
}
KERNEL(each_value, count_args, p) /* bincount */ { EACH(i, p.n) count(p, (i64)value(p.in[i]), i); }
#if VARIANT == 2 /* histograms, of floating points; every step is rounded as a computation in T would */
typedef acc_of<T>::type A;
__device__ inline A     rounded(A x) { return (A)value(made<T>::of(x)); }
__device__ inline i64   bin_of(const count_args &p, int d, T x)
{
    A   v = (A)value(x), low = (A)p.low[d], high = (A)p.high[d];
    i64 last = p.bins[d] - 1, at;
    if (!(v >= low && v <= high)) return -1;
    const T *edge = p.edges[d];
    if (edge && !p.even) {
        i64 from = 0, to = p.bins[d] + 1; /* the first edge above v */
        while (from < to) {
            i64 mid = from + (to - from) / 2;
            if ((A)value(edge[mid]) <= v) from = mid + 1;
            else to = mid;
        }
        return from <= p.bins[d] ? from - 1 : last;
    }
    at = (i64)rounded(rounded(rounded(v - low) * rounded((A)p.bins[d])) / rounded(high - low));
    if (at > last) at = last;
    if (edge) { /* values near an edge may be on the wrong side of it */
        at += at < last && v >= (A)value(edge[at + 1]);
        at -= at > 0 && v < (A)value(edge[at]);
    }
    return at;
}
KERNEL(each_point, count_args, p)
{
    EACH(i, p.n)
    {
        i64 cell = 0;
        for (int d = 0; d < p.dims && cell >= 0; d++) {
            i64 bin = bin_of(p, d, p.in[i * p.dims + d]);
            cell = bin < 0 ? -1 : cell * p.bins[d] + bin;
        }
        if (cell >= 0) count(p, cell, i);
    }
}
#endif
#endif

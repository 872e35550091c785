/* Stable sorts along lines by merging: runs of 1, 2, 4 ... elements; each element finds its place in the other run of its pair by
 * bisection. Between passes lie the elements' numbers. T: the elements; VARIANT 1: descending. NaN is the largest. */
struct sort_args {
    const T *in;
    int     *order, *next; /* lines x n */
    i64      lines, n, run, k;
    i64      in_line_outer, in_line_inner, in_step, inner; /* offsets of a line: (line / inner) outer + (line % inner) inner */
    T       *values;
    i64     *indices;
    i64      out_outer, out_inner, out_step, at_outer, at_inner, at_step; /* of values, of indices */
    const i64 *rank;                                                      /* ranks per line (m of them), or NULL */
    i64        m, kind;
};
__device__ inline bool before(T x, T y) /* strictly */
{
    auto a = value(x), b = value(y);
    bool a_nan = a != a, b_nan = b != b;
    if (VARIANT) return a_nan ? !b_nan : b_nan ? false : a > b;
    return b_nan ? !a_nan : a_nan ? false : a < b;
}
__device__ inline const T *line_of(const sort_args &p, i64 line)
{
    return p.in + line / p.inner * p.in_line_outer + line % p.inner * p.in_line_inner;
}
KERNEL(start, sort_args, p) { EACH(i, p.lines * p.n) p.order[i] = (int)(i % p.n); }
KERNEL(merge, sort_args, p)
{
    EACH(i, p.lines * p.n)
    {
        i64        line = i / p.n, at = i % p.n, pair = at / (2 * p.run) * 2 * p.run, middle = pair + p.run;
        const T   *x = line_of(p, line);
        const int *order = p.order + line * p.n;
        int        me = order[at];
        if (middle > p.n) middle = p.n;
        i64  end = pair + 2 * p.run < p.n ? pair + 2 * p.run : p.n;
        bool first = at < middle;
        i64  low = first ? middle : pair, high = first ? end : middle;
        T    mine = x[me * p.in_step];
        while (low < high) { /* how many of the other run come before it: equal ones only if they are in the first run */
            i64 mid = low + (high - low) / 2;
            T   other = x[order[mid] * p.in_step];
            if (first ? before(other, mine) : !before(mine, other)) low = mid + 1;
            else high = mid;
        }
        i64 place = first ? at - pair + (low - middle) : at - middle + (low - pair);
        p.next[line * p.n + pair + place] = me;
    }
}
KERNEL(take, sort_args, p) /* the first k of each line */
{
    EACH(i, p.lines * p.k)
    {
        i64 line = i / p.k, at = i % p.k, me = p.order[line * p.n + at];
        if (p.values)
            p.values[line / p.inner * p.out_outer + line % p.inner * p.out_inner + at * p.out_step] =
                line_of(p, line)[me * p.in_step];
        if (p.indices) p.indices[line / p.inner * p.at_outer + line % p.inner * p.at_inner + at * p.at_step] = me;
    }
}
/* One element of each line. kind: 0 median, 1 nanmedian, 2 the k-th, 3 the most frequent; or the ranks given. */
KERNEL(choose, sort_args, p)
{
    i64 m = p.rank ? p.m : 1;
    EACH(i, p.lines * m)
    {
        i64        line = i / m, nans = 0, at = p.k;
        const T   *x = line_of(p, line);
        const int *order = p.order + line * p.n;
        if (p.rank) at = p.rank[i];
        else if (p.kind < 2) {
            while (nans < p.n) {
                auto v = value(x[order[p.n - 1 - nans] * p.in_step]);
                if (v == v) break;
                nans++;
            }
            at = p.kind == 0 && nans ? p.n - nans : p.n > nans ? (p.n - nans - 1) / 2 : 0;
        } else if (p.kind == 3) {
            i64 best = 0;
            for (i64 from = 0, to; from < p.n; from = to) {
                for (to = from + 1; to < p.n && !before(x[order[from] * p.in_step], x[order[to] * p.in_step]);) to++;
                if (to - from > best) best = to - from, at = to - 1;
            }
        }
        i64 me = order[at];
        if (p.values) p.values[p.rank ? i : line / p.inner * p.out_outer + line % p.inner * p.out_inner] = x[me * p.in_step];
        if (p.indices) p.indices[p.rank ? i : line / p.inner * p.at_outer + line % p.inner * p.at_inner] = me;
    }
}

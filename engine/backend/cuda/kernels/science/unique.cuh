/* unique (args.h: lc_unique_args): slices of `width` elements are merge-sorted by their numbers; slices that differ from their neighbour start
 * a group. A slice with a NaN equals none. T: the elements. */
struct unique_args {
    const T   *in;
    int       *order, *next;
    u8        *fresh;
    const i64 *starts; /* of the groups, in sorted order */
    void      *chosen; /* elements; or, of slices, i64: the first slice of each group */
    i64       *counts, *inverse;
    i64        n, width, run, groups;
    int        slices, sorted;
};
__device__ inline bool less(T x, T y) /* NaN is the largest */
{
    auto a = value(x), b = value(y);
    return b != b ? a == a : a < b;
}
__device__ inline bool before(const unique_args &p, i64 x, i64 y) /* strictly */
{
    for (i64 c = 0; c < p.width; c++) {
        T a = p.in[x * p.width + c], b = p.in[y * p.width + c];
        if (less(a, b)) return true;
        if (less(b, a)) return false;
    }
    return false;
}
__device__ inline bool differ(const unique_args &p, i64 x, i64 y)
{
    for (i64 c = 0; c < p.width; c++)
        if (!(value(p.in[x * p.width + c]) == value(p.in[y * p.width + c]))) return true;
    return false;
}
__device__ inline i64 at(const unique_args &p, i64 i) { return p.sorted ? p.order[i] : i; }
KERNEL(start, unique_args, p) { EACH(i, p.n) p.order[i] = (int)i; }
KERNEL(merge, unique_args, p) /* as in sort.cuh */
{
    EACH(i, p.n)
    {
        i64  pair = i / (2 * p.run) * 2 * p.run, middle = pair + p.run < p.n ? pair + p.run : p.n;
        i64  end = pair + 2 * p.run < p.n ? pair + 2 * p.run : p.n;
        bool first = i < middle;
        i64  low = first ? middle : pair, high = first ? end : middle, me = p.order[i];
        while (low < high) {
            i64 mid = low + (high - low) / 2, other = p.order[mid];
            if (first ? before(p, other, me) : !before(p, me, other)) low = mid + 1;
            else high = mid;
        }
        p.next[pair + (first ? i - pair + (low - middle) : i - middle + (low - pair))] = (int)me;
    }
}
KERNEL(mark, unique_args, p) { EACH(i, p.n) p.fresh[i] = i == 0 || differ(p, at(p, i - 1), at(p, i)); }
KERNEL(choose, unique_args, p)
{
    EACH(g, p.groups)
    {
        i64 from = p.starts[g], slice = at(p, from);
        if (p.slices) ((i64 *)p.chosen)[g] = slice;
        else ((T *)p.chosen)[g] = p.in[slice];
        if (p.counts) p.counts[g] = (g + 1 < p.groups ? p.starts[g + 1] : p.n) - from;
    }
}
KERNEL(invert, unique_args, p) /* the last group that starts at or before i */
{
    EACH(i, p.n)
    {
        i64 low = 0, high = p.groups;
        while (high - low > 1) {
            i64 mid = low + (high - low) / 2;
            if (p.starts[mid] <= i) low = mid;
            else high = mid;
        }
        p.inverse[at(p, i)] = low;
    }
}

/* Embeddings (args.h: lc_embedding_args). T: the elements. */
struct embedding_args {
    T         *out;
    i64       *index;
    const T   *table, *other;
    const i64 *ids, *bags;
    const T   *factors;
    i64        n, n_bags, rows, width, padding;
    trouble   *word;
    i64       *counts;
    const int *order; /* the samples, sorted by their rows */
};
__device__ inline bool good(const embedding_args &p, i64 row)
{
    if ((u64)row < (u64)p.rows) return true;
    report(p.word, 4, row, 0, p.rows);
    return false;
}
KERNEL(copy_rows, embedding_args, p) /* T: a type of the elements' size */
{
    EACH(at, p.n * p.width)
    {
        i64 i = at / p.width, row = p.ids[i];
        T   zero = {};
        p.out[at] = good(p, row) ? p.table[row * p.width + at % p.width] : zero;
    }
}
#if VARIANT
typedef acc_of<T>::type A;
__device__ inline i64   bag_of(const embedding_args &p, i64 i) /* the last bag that starts at or before i; -1: none */
{
    if (!p.bags) return i;
    i64 low = 0, high = p.n_bags;
    if (!p.n_bags || i >= p.bags[p.n_bags]) return -1;
    while (high - low > 1) {
        i64 mid = low + (high - low) / 2;
        if (p.bags[mid] <= i) low = mid;
        else high = mid;
    }
    return low;
}
KERNEL(sum_rows, embedding_args, p)
{
    EACH(at, p.n_bags * p.width)
    {
        i64 bag = at / p.width, c = at % p.width, first = p.bags ? p.bags[bag] : bag, past = p.bags ? p.bags[bag + 1] : bag + 1;
        A   sum = 0;
        for (i64 i = first; i < past; i++) {
            i64 row = p.ids[i];
            if (row == p.padding || !good(p, row)) continue;
            A v = (A)value(p.table[row * p.width + c]);
            sum += p.factors ? v * (A)value(p.factors[i]) : v;
        }
        p.out[at] = made<T>::of(sum);
    }
}
KERNEL(count_rows, embedding_args, p)
{
    EACH(i, p.n) if ((u64)p.ids[i] < (u64)p.rows) atomicAdd((unsigned long long *)&p.counts[p.ids[i]], 1ull);
}
__device__ inline A part_of(const embedding_args &p, i64 i, i64 bag, i64 row,
                            i64 c) /* of sample i in the gradient of its row */
{
    A v = (A)value(p.table[bag * p.width + c]);
    if (p.factors) v *= (A)value(p.factors[i]);
    if (p.counts) v /= (A)p.counts[row];
    return v;
}
KERNEL(add_rows, embedding_args, p) /* the gradient of a table: out starts as zeros */
{
    EACH(at, p.n * p.width)
    {
        i64 i = at / p.width, c = at % p.width, row = p.ids[i], bag = bag_of(p, i);
        if (bag < 0 || row == p.padding || !good(p, row)) continue;
        atomicAdd(p.out + row * p.width + c, part_of(p, i, bag, row, c));
    }
}
KERNEL(add_sorted_rows, embedding_args, p) /* the first sample of each row adds the others, in their order */
{
    EACH(at, p.n * p.width)
    {
        i64 i = at / p.width, c = at % p.width, row = p.ids[p.order[i]];
        if (row == p.padding || (i && p.ids[p.order[i - 1]] == row) || !good(p, row)) continue;
        A sum = 0;
        for (; i < p.n && p.ids[p.order[i]] == row; i++) {
            i64 bag = bag_of(p, p.order[i]);
            if (bag >= 0) sum += part_of(p, p.order[i], bag, row, c);
        }
        p.out[row * p.width + c] = made<T>::of(sum);
    }
}
KERNEL(dot_rows, embedding_args, p)
{
    EACH(i, p.n)
    {
        i64 row = p.ids[i], bag = bag_of(p, i);
        A   sum = 0;
        if (bag >= 0 && row != p.padding && good(p, row))
            for (i64 c = 0; c < p.width; c++)
                sum += (A)value(p.table[row * p.width + c]) * (A)value(p.other[bag * p.width + c]);
        p.out[i] = made<T>::of(sum);
    }
}
KERNEL(max_rows, embedding_args, p)
{
    EACH(at, p.n_bags * p.width)
    {
        i64 bag = at / p.width, c = at % p.width, first = p.bags ? p.bags[bag] : bag, past = p.bags ? p.bags[bag + 1] : bag + 1;
        A   best = 0;
        i64 found = -1;
        for (i64 i = first; i < past; i++) {
            i64 row = p.ids[i];
            if (row == p.padding || !good(p, row)) continue;
            A v = (A)value(p.table[row * p.width + c]);
            if (found < 0 || v > best) best = v, found = row;
        }
        p.out[at] = made<T>::of(best), p.index[at] = found;
    }
}
#endif

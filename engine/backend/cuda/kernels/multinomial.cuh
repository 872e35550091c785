/* multinomial with replacement. T: the weights, (rows, categories): they become their running sums. */
struct multinomial_args {
    i64       *out;
    T         *weights;
    const f64 *drawn; /* (rows, samples) in (0, 1] */
    i64        rows, categories, samples;
    trouble   *word;
};
KERNEL(accumulate, multinomial_args, p) /* a thread per row: in order, as a sum of probabilities must not depend on threads */
{
    EACH(r, p.rows)
    {
        f64 sum = 0;
        for (i64 c = 0; c < p.categories; c++) {
            f64 w = (f64)p.weights[r * p.categories + c];
            if (!(w >= 0) || w - w != 0) report(p.word, 3, 0, 0, 0);
            sum += w, p.weights[r * p.categories + c] = (T)sum;
        }
        if (!(sum > 0)) report(p.word, 3, 0, 0, 0);
    }
}
KERNEL(choose, multinomial_args, p)
{
    EACH(i, p.rows * p.samples)
    {
        const T *sums = p.weights + i / p.samples * p.categories;
        T        wanted = (T)(p.drawn[i] * (f64)sums[p.categories - 1]);
        i64      low = 0, high = p.categories - 1;
        while (low < high) {
            i64 mid = low + (high - low) / 2;
            if (sums[mid] >= wanted) high = mid;
            else low = mid + 1;
        }
        p.out[i] = low;
    }
}

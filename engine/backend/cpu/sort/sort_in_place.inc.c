/* Included once per record width R: sorts unsigned integers in place, by their bits from low up to `bits`.
 *
 * An MSD radix sort (American flag sort): build a histogram of the top digit, exchange every misplaced number with one that
 * belongs there until each part holds its own, then sort the parts one by one. Parts of up to SORT_TILE are merge-sorted in
 * a tile. The sort is not stable: where order matters, records contain an index. If all numbers share the digit, constant
 * bits are skipped. */
static void NAME(place_tile)(R *a, int64_t n)
{
    uint64_t one[SORT_TILE], two[SORT_TILE], *sorted;
    for (int64_t i = 0; i < n; i++) one[i] = a[i];
    sorted = cpu_sort_short(one, two, n);
    for (int64_t i = 0; i < n; i++) a[i] = (R)sorted[i];
}
/* Partitions by the digit of width bits at shift; end: the end of each part. False if there is only one part. */
static bool NAME(place_parts)(R *a, int64_t n, int shift, int width, int64_t *end)
{
    int64_t  next[1 << PLACE_BITS], at = 0, digits = 1 << width;
    uint32_t mask = (1u << width) - 1;
    memset(end, 0, (size_t)digits * sizeof *end);
    for (int64_t i = 0; i < n; i++) end[(uint32_t)(a[i] >> shift) & mask]++;
    if (end[(uint32_t)(a[0] >> shift) & mask] == n) return false;
    for (int64_t d = 0; d < digits; d++) next[d] = at, at = end[d] += at;
    for (int64_t d = 0; d < digits; d++)
        while (next[d] < end[d]) {
            R        r = a[next[d]], other;
            uint32_t to;
            while ((to = (uint32_t)(r >> shift) & mask) != d) other = a[next[to]], a[next[to]++] = r, r = other;
            a[next[d]++] = r;
        }
    return true;
}
static int NAME(differing_bits)(const R *a, int64_t n)
{
    R differ = 0;
    for (int64_t i = 1; i < n; i++) differ |= a[i] ^ a[0];
    return differ ? 64 - __builtin_clzll(differ) : 0;
}
static void NAME(place)(R *a, int64_t n, int low, int bits)
{
    int64_t end[1 << PLACE_BITS];
    if (n <= SORT_TILE) {
        if (n > 1 && bits > low) NAME(place_tile)(a, n);
        return;
    }
    if (bits <= low) return;
    int width = place_width(n, bits - low);
    if (!NAME(place_parts)(a, n, bits - width, width, end)) return NAME(place)(a, n, low, NAME(differing_bits)(a, n));
    for (int64_t d = 0, at = 0; d < 1 << width; at = end[d++]) NAME(place)(a + at, end[d] - at, low, bits - width);
}
typedef struct {
    R             *a;
    const int64_t *end;
    int            low, bits;
} NAME(part_job);
static void NAME(place_some)(void *ctx, int64_t begin, int64_t stop)
{
    const NAME(part_job) *job = ctx;
    for (int64_t d = begin; d < stop; d++) {
        int64_t at = d ? job->end[d - 1] : 0;
        NAME(place)(job->a + at, job->end[d] - at, job->low, job->bits);
    }
}
/* The same by all threads, except for the first digit. */
static void NAME(place_long)(R *a, int64_t n, int low, int bits)
{
    int64_t end[1 << PLACE_BITS];
    if (n < PLACE_PARALLEL || bits - low <= PLACE_BITS) return NAME(place)(a, n, low, bits);
    if (!NAME(place_parts)(a, n, bits - PLACE_BITS, PLACE_BITS, end))
        return NAME(place_long)(a, n, low, NAME(differing_bits)(a, n));
    cpu_parallel(1 << PLACE_BITS, 1, 8 * n, NAME(place_some), &(NAME(part_job)){ a, end, low, bits - PLACE_BITS });
}
#undef R
#undef NAME

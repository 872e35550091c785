/* Included per dtype: places of values in a sorted sequence. Every search reads what PyTorch's does (that decides the result if NaN stands in
 * the sequence), LANES of them side by side and without a branch on what it finds: at each of `steps` steps something is left to search,
 * after them at most one element. */
static inline bool NAME(after)(const T *sequence, const int64_t *sorter, int64_t at, T value, bool right)
{
    T x = sequence[sorter ? sorter[at] : at];
    return right ? !(x > value) : !(x >= value);
}
static void NAME(search)(const void *in, const int64_t *sorter, int64_t n, const void *values, int64_t count, bool right,
                         int64_t *out)
{
    const T *sequence = in, *value = values;
    int      steps = n ? 63 - __builtin_clzll((uint64_t)n + 1) : 0;
    for (int64_t first = 0; first < count; first += LANES, value += LANES) {
        int64_t start[LANES] = { 0 }, left[LANES], lanes = count - first < LANES ? count - first : LANES;
        T       wanted[LANES] = { 0 };
        for (int l = 0; l < LANES; l++) left[l] = n;
        for (int64_t l = 0; l < lanes; l++) wanted[l] = value[l];
        for (int s = 0; s < steps; s++)
            for (int l = 0; l < LANES; l++) {
                int64_t half = left[l] >> 1, past = NAME(after)(sequence, sorter, start[l] + half, wanted[l], right);
                start[l] += (half + 1) & -past;
                left[l] = half - (past & ~left[l] & 1);
            }
        for (int64_t l = 0; l < lanes; l++)
            out[first + l] = start[l] + (left[l] && NAME(after)(sequence, sorter, start[l], wanted[l], right));
    }
}
#undef T
#undef NAME

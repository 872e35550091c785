/* Included once per dtype: positions of values in a sorted sequence, LANES branchless searches side by side. */

/* In a sorted sequence without NaN, every search takes the same steps. */
static bool NAME(in_order)(const void *in, int64_t n)
{
    const T *x = in;
    bool     sorted = n == 0 || x[0] == x[0];
    for (int64_t i = 1; i < n; i++) sorted &= x[i - 1] <= x[i];
    return sorted;
}
static inline __attribute__((always_inline)) bool NAME(goes_on)(T x, T value, bool right)
{
    return right ? !(x > value) : !(x >= value);
}
static inline __attribute__((always_inline)) void NAME(search_in_order)(const T *sequence, int64_t n, const T *value,
                                                                        bool right, int64_t *place)
{
    int64_t at[LANES] = { 0 };
    for (int64_t left = n; left > 1;) {
        int64_t half = left >> 1;
        for (int l = 0; l < LANES; l++) at[l] += half & -(int64_t)NAME(goes_on)(sequence[at[l] + half - 1], value[l], right);
        left -= half;
    }
    for (int l = 0; l < LANES; l++) place[l] = n ? at[l] + NAME(goes_on)(sequence[at[l]], value[l], right) : 0;
}

/* In any other, each search reads the same elements as PyTorch's, which decides the result: at each of `steps` steps
 * something is left to search, after them at most one element. */
static inline __attribute__((always_inline)) void NAME(search_any)(const T *sequence, const int64_t *sorter, int64_t n,
                                                                   const T *value, bool right, int64_t *place)
{
    int64_t start[LANES] = { 0 }, left[LANES];
    int     steps = n ? 63 - __builtin_clzll((uint64_t)n + 1) : 0;
    for (int l = 0; l < LANES; l++) left[l] = n;
    for (int s = 0; s < steps; s++)
        for (int l = 0; l < LANES; l++) {
            int64_t half = left[l] >> 1, at = start[l] + half;
            int64_t past = NAME(goes_on)(sequence[sorter ? sorter[at] : at], value[l], right);
            start[l] += (half + 1) & -past;
            left[l] = half - (past & ~left[l] & 1);
        }
    for (int l = 0; l < LANES; l++) {
        place[l] = start[l];
        if (left[l]) place[l] += NAME(goes_on)(sequence[sorter ? sorter[start[l]] : start[l]], value[l], right);
    }
}
static void NAME(search)(const void *in, const int64_t *sorter, bool ordered, int64_t n, const void *values, int64_t count,
                         bool right, int64_t *out)
{
    const T *value = values;
    for (int64_t first = 0; first < count; first += LANES, value += LANES) {
        bool     whole = count - first >= LANES;
        T        some[LANES] = { 0 };
        int64_t  places[LANES], *place = whole ? out + first : places;
        const T *wanted = whole ? value : some;
        for (int64_t l = 0; !whole && l < count - first; l++) some[l] = value[l];
        if (ordered && right) NAME(search_in_order)(in, n, wanted, true, place);
        else if (ordered) NAME(search_in_order)(in, n, wanted, false, place);
        else if (sorter) NAME(search_any)(in, sorter, n, wanted, right, place);
        else if (right) NAME(search_any)(in, NULL, n, wanted, true, place);
        else NAME(search_any)(in, NULL, n, wanted, false, place);
        for (int64_t l = 0; !whole && l < count - first; l++) out[first + l] = places[l];
    }
}

/* Moves elements of type T (a width, not a dtype) where a mask is true, compacted; n positions, up to `left` moves.
 * Branchless: masks are hard to predict. An element moved too early is overwritten by the next. Returns the number of moves. */
static int64_t NAME(select)(char *to, const char *from, int64_t step, const uint8_t *mask, int64_t mask_step, int64_t n,
                            int64_t left)
{
    T      *at = (T *)to;
    int64_t k = 0;
    if (step == sizeof(T) && mask_step == 1)
        for (int64_t i = 0; i < n && k < left; i++) at[k] = ((const T *)from)[i], k += mask[i] != 0;
    else
        for (int64_t i = 0; i < n && k < left; i++) at[k] = *(const T *)(from + i * step), k += mask[i * mask_step] != 0;
    return k;
}
static int64_t NAME(scatter)(char *to, int64_t step, const char *from, const uint8_t *mask, int64_t mask_step, int64_t n,
                             int64_t left)
{
    const T *at = (const T *)from;
    int64_t  k = 0;
    for (int64_t i = 0; i < n && k < left; i++) {
        uintptr_t x = (uintptr_t)to + (uintptr_t)(i * step), next = (uintptr_t)(at + k);
        bool      holds = mask[i * mask_step] != 0;
        *(T *)x = *(const T *)(x + ((next - x) & -(uintptr_t)holds)); /* itself, or the next one */
        k += holds;
    }
    return k;
}
#undef T
#undef NAME

/* Included once per kind of value: K is the unsigned type of its width, KEY(x) and VALUE(k) convert between bits and key. */
static inline __attribute__((always_inline)) void NAME(load_from)(const char *from, int64_t step, int64_t n, uint64_t flip,
                                                                  uint64_t *key, key_summary *s)
{
    K least = (K) ~(K)0, most = 0, set = 0, clear = 0, lossy = 0, reverse = (K)flip;
    for (int64_t i = 0; i < n; i++) {
        K x = *(const K *)(from + i * step), k = (K)(KEY(x) ^ reverse);
        lossy |= LOSSY(x);
        least = k < least ? k : least, most = k > most ? k : most, set |= k, clear |= (K)~k;
        key[i] = k;
    }
    s->least = least, s->most = most, s->varying = set & clear, s->lossy = lossy != 0;
}
static void NAME(load)(const char *from, int64_t step, int64_t n, uint64_t flip, uint64_t *key, key_summary *s)
{
    if (step == sizeof(K)) NAME(load_from)(from, sizeof(K), n, flip, key, s);
    else NAME(load_from)(from, step, n, flip, key, s);
}
static void NAME(store)(char *to, int64_t step, int64_t n, uint64_t flip, const uint64_t *key)
{
    K reverse = (K)flip;
    if (step == sizeof(K))
        for (int64_t i = 0; i < n; i++) ((K *)to)[i] = (K)VALUE((K)((K)key[i] ^ reverse));
    else
        for (int64_t i = 0; i < n; i++) *(K *)(to + i * step) = (K)VALUE((K)((K)key[i] ^ reverse));
}
static bool NAME(any_below)(const char *from, int64_t n, uint64_t flip, uint64_t key)
{
    K reverse = (K)flip, bound = (K)key, below = 0;
    for (int64_t i = 0; i < n; i++) {
        K x = ((const K *)from)[i];
        below |= (K)((K)(KEY(x) ^ reverse) < bound);
    }
    return below != 0;
}
#define ENTRY                                                                                                                  \
    {                                                                                                                          \
        NAME(load), NAME(store), NAME(any_below), (K) ~(K)0, NAN_KEY                                                           \
    }
static const lc_sort_key NAME(key) = ENTRY;
#undef ENTRY
#undef K
#undef NAME

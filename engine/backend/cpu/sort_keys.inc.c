/* Included per kind of value: T as it lies in memory, K the unsigned type of its width, TO_KEY and FROM_KEY between them. */
static void NAME(load)(const char *from, int64_t step, int64_t n, uint64_t flip, uint64_t *key, key_summary *s)
{
    K    least = (K) ~(K)0, most = 0, set = 0, clear = 0, turn = (K)flip;
    bool lossy = false;
    if (step == sizeof(T))
        for (int64_t i = 0; i < n; i++) {
            K x = ((const K *)from)[i], k = (K)(TO_KEY(x) ^ turn);
            lossy |= LOSSY(x);
            least = k < least ? k : least, most = k > most ? k : most, set |= k, clear |= (K)~k;
            key[i] = k;
        }
    else
        for (int64_t i = 0; i < n; i++) {
            K x = *(const K *)(from + i * step), k = (K)(TO_KEY(x) ^ turn);
            lossy |= LOSSY(x);
            least = k < least ? k : least, most = k > most ? k : most, set |= k, clear |= (K)~k;
            key[i] = k;
        }
    s->least = least, s->most = most, s->varying = set & clear, s->lossy = lossy;
}
static void NAME(store)(char *to, int64_t step, int64_t n, uint64_t flip, const uint64_t *key)
{
    K turn = (K)flip;
    if (step == sizeof(T))
        for (int64_t i = 0; i < n; i++) ((K *)to)[i] = (K)FROM_KEY((K)((K)key[i] ^ turn));
    else
        for (int64_t i = 0; i < n; i++) *(K *)(to + i * step) = (K)FROM_KEY((K)((K)key[i] ^ turn));
}
static const lc_sort_key NAME(key) = { NAME(load), NAME(store), (K) ~(K)0, NAN_KEY };
#undef T
#undef K
#undef NAME

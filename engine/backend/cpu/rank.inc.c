/* Order statistics of lines of T; K is the unsigned integer of its size. See rank.c. */
typedef struct {
    T        v;
    uint32_t i; /* where it stood in its line */
} NAME(item);
#define ITEM NAME(item)
#define SWAP(x, y)                                                                                                             \
    do {                                                                                                                       \
        ITEM swapped = (x);                                                                                                    \
        (x) = (y), (y) = swapped;                                                                                              \
    } while (0)

/* ---- keys: unsigned numbers in the order of the values; NaNs last, zeros alike ---- */
INLINE K NAME(key)(T x)
{
    K bits, sign = (K)1 << (8 * sizeof(K) - 1);
    if (x != x) return (K) ~(K)0;
    if (x == 0) x = 0;
    __builtin_memcpy(&bits, &x, sizeof bits);
    if (IS_FLOAT) return (K)(bits & sign ? ~bits : bits | sign);
    return (K)((T)-1 < 0 ? bits ^ sign : bits);
}

/* The key of rank k, by digits from the top: count, keep those of the digit that holds the rank, go on with the next. `later` is how many
 * elements with this key come before the one of rank k in the order of their indices; alike: whether there may be several. */
static K NAME(key_of_rank)(const T *x, int64_t n, int64_t k, K *keys, int64_t *later, bool *alike)
{
    enum { LONG = 1 << 12, MOST = sizeof(K) == 1 ? 8 : 11 };
    uint32_t  count[1 << MOST];
    const int bits = n < LONG ? 8 : MOST, digits = 1 << bits;
    int       shift = 8 * (int)sizeof(K) - bits;
    int64_t   m = n;
    for (int64_t i = 0; i < n; i++) keys[i] = NAME(key)(x[i]);
    for (;;) {
        int64_t kept = 0, digit = 0;
        memset(count, 0, (size_t)digits * sizeof *count);
        for (int64_t i = 0; i < m; i++) count[keys[i] >> shift & (digits - 1)]++;
        while (k >= count[digit]) k -= count[digit++];
        for (int64_t i = 0; i < m && count[digit] < m; i++) { /* no branch to predict */
            K key = keys[i];
            keys[kept] = key;
            kept += (int64_t)(key >> shift & (digits - 1)) == digit;
        }
        m = count[digit];
        if (m == 1 || shift == 0) break;
        shift = shift > bits ? shift - bits : 0;
    }
    *later = k, *alike = m > 1;
    return keys[0];
}
static int64_t NAME(place_of_key)(const T *x, int64_t n, K key, int64_t later)
{
    int64_t i = 0;
    for (; i < n; i++)
        if (NAME(key)(x[i]) == key && later-- == 0) break;
    return i;
}

/* ---- introsort, step by step as the C++ library of PyTorch's builds does it ---- */
#define LESS(x, y) ((x).v < (y).v) /* NaNs end up anywhere, as they do there; no loop runs past one */

static void NAME(push_heap)(ITEM *a, int64_t hole, int64_t top, ITEM value)
{
    int64_t parent = (hole - 1) / 2;
    for (; hole > top && LESS(a[parent], value); parent = (hole - 1) / 2) a[hole] = a[parent], hole = parent;
    a[hole] = value;
}
static void NAME(adjust_heap)(ITEM *a, int64_t hole, int64_t n, ITEM value)
{
    int64_t top = hole, second = hole;
    while (second < (n - 1) / 2) {
        second = 2 * (second + 1);
        if (LESS(a[second], a[second - 1])) second--;
        a[hole] = a[second], hole = second;
    }
    if ((n & 1) == 0 && second == (n - 2) / 2) {
        second = 2 * (second + 1);
        a[hole] = a[second - 1], hole = second - 1;
    }
    NAME(push_heap)(a, hole, top, value);
}
static void NAME(pop_heap)(ITEM *a, int64_t n, ITEM *result)
{
    ITEM value = *result;
    *result = a[0];
    NAME(adjust_heap)(a, 0, n, value);
}
static void NAME(heap_select)(ITEM *a, int64_t middle, int64_t n)
{
    for (int64_t parent = (middle - 2) / 2; middle >= 2 && parent >= 0; parent--)
        NAME(adjust_heap)(a, parent, middle, a[parent]);
    for (int64_t i = middle; i < n; i++)
        if (LESS(a[i], a[0])) NAME(pop_heap)(a, middle, &a[i]);
}
static void NAME(insertion_sort)(ITEM *a, int64_t from, int64_t n)
{
    for (int64_t i = from; i < n; i++) {
        ITEM    value = a[i];
        int64_t at = i;
        for (; at > 0 && LESS(value, a[at - 1]); at--) a[at] = a[at - 1];
        a[at] = value;
    }
}
static int64_t NAME(partition)(ITEM *a, int64_t first, int64_t last)
{
    ITEM *result = &a[first], *x = &a[first + 1], *y = &a[first + (last - first) / 2], *z = &a[last - 1], *median;
    if (LESS(*x, *y)) median = LESS(*y, *z) ? y : LESS(*x, *z) ? z : x;
    else median = LESS(*x, *z) ? x : LESS(*y, *z) ? z : y;
    SWAP(*result, *median);
    for (first++;; first++) {
        while (LESS(a[first], *result)) first++;
        last--;
        while (LESS(*result, a[last])) last--;
        if (first >= last) return first;
        SWAP(a[first], a[last]);
    }
}
static int  NAME(depth)(int64_t n) { return 2 * (63 - __builtin_clzll((unsigned long long)n)); }
static void NAME(introsort)(ITEM *a, int64_t first, int64_t last, int depth)
{
    while (last - first > 16) {
        if (depth-- == 0) {
            NAME(heap_select)(a + first, last - first, last - first);
            for (int64_t n = last - first; n > 1; n--) NAME(pop_heap)(a + first, n - 1, &a[first + n - 1]);
            return;
        }
        int64_t cut = NAME(partition)(a, first, last);
        NAME(introsort)(a, cut, last, depth);
        last = cut;
    }
}
/* PyTorch's own quickselect (kthvalue). */
#undef LESS
#define LESS(x, y) (((x).v < (y).v) | (((x).v == (x).v) & ((y).v != (y).v))) /* NaNs last */
static void NAME(quick_select)(ITEM *a, int64_t k, int64_t n)
{
    int64_t left = 0, right = n - 1;
    while (right > left) {
        if (right == left + 1) {
            if (LESS(a[right], a[left])) SWAP(a[left], a[right]);
            return;
        }
        SWAP(a[left + (right - left) / 2], a[left + 1]);
        if (LESS(a[right], a[left + 1])) SWAP(a[left + 1], a[right]);
        if (LESS(a[right], a[left])) SWAP(a[left], a[right]);
        if (LESS(a[left], a[left + 1])) SWAP(a[left + 1], a[left]);
        int64_t i = left + 1, j = right;
        ITEM    pivot = a[left];
        for (;;) {
            do i++;
            while (LESS(a[i], pivot));
            do j--;
            while (LESS(pivot, a[j]));
            if (j < i) break;
            SWAP(a[i], a[j]);
        }
        SWAP(a[left], a[j]);
        if (j <= k) left = i;
        if (j >= k) right = j - 1;
    }
}

/* ---- lines ---- */

static void NAME(listed)(const T *x, int64_t n, ITEM *a)
{
    for (int64_t i = 0; i < n; i++) a[i] = (ITEM){ x[i], (uint32_t)i };
}
static int64_t NAME(select_line)(rank_kind kind, const T *x, int64_t n, int64_t k, void *scratch)
{
    ITEM   *a = scratch;
    int64_t nans = 0, later;
    bool    alike;
    if (kind == MEDIAN || kind == NANMEDIAN) {
        for (int64_t i = 0; i < n; i++) nans += x[i] != x[i];
        if (kind == MEDIAN && nans) k = n - nans; /* the first NaN */
        else k = n > nans ? (n - nans - 1) / 2 : 0;
    }
    K key = NAME(key_of_rank)(x, n, k, scratch, &later, &alike);
    if (kind != KTHVALUE || !alike) return NAME(place_of_key)(x, n, key, later);
    NAME(listed)(x, n, a);
    NAME(quick_select)(a, k, n);
    return a[k].i;
}
static int64_t NAME(mode_line)(const T *x, int64_t n, void *scratch)
{
    ITEM   *a = scratch;
    int64_t best = 0, most = 0, run = 0;
    NAME(listed)(x, n, a);
    NAME(introsort)(a, 0, n, NAME(depth)(n));
    NAME(insertion_sort)(a, 1, n);
    for (int64_t i = 0; i < n; i++) {
        run++;
        if (i < n - 1 && a[i].v == a[i + 1].v) continue;
        if (run > most) most = run, best = a[i].i;
        run = 0;
    }
    return best;
}
static int64_t NAME(line)(rank_kind kind, const void *x, int64_t n, int64_t k, void *scratch)
{
    return kind == MODE ? NAME(mode_line)(x, n, scratch) : NAME(select_line)(kind, x, n, k, scratch);
}
#undef ITEM
#undef SWAP
#undef LESS
#undef T
#undef K
#undef NAME

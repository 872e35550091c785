/* Order statistics of lines of T; K is the unsigned integer of its size. See median.c. */
typedef struct __attribute__((packed)) { /* packed: not padded to 16 bytes */
    T        v;
    uint32_t i; /* index in its line */
} NAME(item);
#define ITEM NAME(item)
#define SWAP(x, y)                                                                                                             \
    do {                                                                                                                       \
        ITEM swapped = (x);                                                                                                    \
        (x) = (y), (y) = swapped;                                                                                              \
    } while (0)

/* ---- keys: unsigned integers in the order of the values; NaNs last, both zeros equal ---- */
INLINE K NAME(key)(T x)
{
    K bits, sign = (K)1 << (8 * sizeof(K) - 1);
    if (x != x) return (K) ~(K)0;
    if (x == 0) x = 0;
    __builtin_memcpy(&bits, &x, sizeof bits);
    if (IS_FLOAT) return (K)(bits & sign ? ~bits : bits | sign);
    return (K)((T)-1 < 0 ? bits ^ sign : bits);
}

/* Keys of a line; returns the number of NaNs. */
static int64_t NAME(make_keys)(const T *x, int64_t n, K *keys)
{
    enum { BLOCK = 128 }; /* few enough for the smallest K to count */
    int64_t nans = 0;
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t end = n - at < BLOCK ? n : at + BLOCK;
        K       here = 0;
        for (int64_t i = at; i < end; i++) keys[i] = NAME(key)(x[i]), here += x[i] != x[i];
        nans += (int64_t)here;
    }
    return nans;
}

/* The key of rank k of n keys, which are overwritten. Radix select from the top digit: build a histogram, keep the keys in
 * the bin that holds the rank, continue with the next digit. `later`: how many elements with this key precede the one of
 * rank k by index; alike: whether there may be several. */
static K NAME(key_of_rank)(int64_t n, int64_t k, K *keys, int64_t *later, bool *alike)
{
    enum { LONG = 1 << 12, MOST = sizeof(K) == 1 ? 8 : 11 };
    uint32_t  count[2][1 << MOST]; /* for even and odd elements: equal neighbours would wait for each other's store */
    const int bits = n < LONG ? 8 : MOST, digits = 1 << bits;
    int       shift = 8 * (int)sizeof(K) - bits;
    int64_t   m = n;
    for (;;) {
        int64_t kept = 0, digit = 0, i = 0, here;
        for (int c = 0; c < 2; c++) memset(count[c], 0, (size_t)digits * sizeof *count[c]);
        for (; i + 2 <= m; i += 2) count[0][keys[i] >> shift & (digits - 1)]++, count[1][keys[i + 1] >> shift & (digits - 1)]++;
        if (i < m) count[0][keys[i] >> shift & (digits - 1)]++;
        while (here = (int64_t)count[0][digit] + count[1][digit], k >= here) k -= here, digit++;
        for (i = 0; i < m && here < m; i++) { /* branchless */
            K key = keys[i];
            keys[kept] = key;
            kept += (int64_t)(key >> shift & (digits - 1)) == digit;
        }
        m = here;
        if (m == 1 || shift == 0) break;
        shift = shift > bits ? shift - bits : 0;
    }
    *later = k, *alike = m > 1;
    return keys[0];
}
/* The index of rank k among a few keys: compares each with all. */
static int64_t NAME(tiny_rank)(int64_t n, int64_t k, const K *keys, bool *alike)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t before = 0, same = 0;
        for (int64_t j = 0; j < n; j++) before += keys[j] < keys[i], same += keys[j] == keys[i];
        *alike = same > 1;
        for (int64_t j = 0; *alike && j < i; j++) before += keys[j] == keys[i];
        if (before == k) return i;
    }
    return 0; /* not reached: every rank has an element */
}
/* The index of occurrence number `later` (from zero) of the value v, or of NaN: counts block by block, then searches the
 * block. n if there are fewer occurrences; then later is what is left to count. */
static int64_t NAME(place_of)(const T *x, int64_t n, T v, int64_t *later)
{
    enum { BLOCK = 64 };
    int64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        K here = 0;
        if (v == v)
            for (int64_t c = 0; c < BLOCK; c++) here += x[i + c] == v;
        else
            for (int64_t c = 0; c < BLOCK; c++) here += x[i + c] != x[i + c];
        if ((int64_t)here > *later) break;
        *later -= (int64_t)here;
    }
    for (; i < n; i++)
        if ((x[i] == v || (v != v && x[i] != x[i])) && (*later)-- == 0) break;
    return i;
}

/* ---- introsort, step by step as in the C++ library that PyTorch's builds use ---- */
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

static T NAME(value_of)(K key) /* the inverse of key */
{
    K bits = key, sign = (K)1 << (8 * sizeof(K) - 1);
    T x;
    if (IS_FLOAT) bits = key & sign ? key ^ sign : (K)~key;
    else if ((T)-1 < 0) bits ^= sign;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

/* Elements [at, at + m) of a line: in place, or copied to buffer. */
static const T *NAME(read)(const rank_line *l, int64_t at, int64_t m, void *buffer)
{
    const char *from = l->x + at * l->step;
    if (l->from == l->work && l->step == sizeof(T)) return (const T *)from;
    return cpu_move(l->work, buffer, sizeof(T), l->from, from, l->step, m), buffer;
}
static int64_t NAME(find)(const rank_line *l, T v, int64_t later, void *buffer)
{
    for (int64_t at = 0, m; at < l->n; at += m) {
        m = l->n - at < RANK_TILE ? l->n - at : RANK_TILE;
        const T *x = NAME(read)(l, at, m, buffer);
        int64_t  place = NAME(place_of)(x, m, v, &later);
        if (place < m) return at + place;
    }
    return 0; /* not reached: it exists */
}

/* One pass over a long line: the histogram of the digit at shift of keys with this prefix or, if kept is given, those keys.
 * Returns the number of NaNs. */
static int64_t NAME(pass)(const rank_line *l, K prefix, int above, int shift, int digits, uint32_t (*count)[1 << RANK_DIGIT],
                          K *kept, void *buffer)
{
    K       key[RANK_TILE];
    int64_t nans = 0;
    for (int64_t at = 0, m; at < l->n; at += m) {
        m = l->n - at < RANK_TILE ? l->n - at : RANK_TILE;
        nans += NAME(make_keys)(NAME(read)(l, at, m, buffer), m, key);
        if (kept) { /* branchless */
            for (int64_t i = 0; i < m; i++) *kept = key[i], kept += key[i] >> above == prefix;
        } else if (above == 8 * sizeof(K)) { /* all */
            for (int64_t i = 0; i < m; i++) count[i & 1][key[i] >> shift]++;
        } else
            for (int64_t i = 0; i < m; i++) count[i & 1][key[i] >> shift & (K)(digits - 1)] += key[i] >> above == prefix;
    }
    return nans;
}
/* A long line keeps no keys: it is read again for each digit until the remaining keys fit the scratch. */
static K NAME(key_of_long)(const rank_line *l, rank_kind kind, int64_t k, void *scratch, int64_t *later, bool *alike)
{
    enum { MOST = RANK_SHORT / sizeof(K), BITS = sizeof(K) == 1 ? 8 : RANK_DIGIT };
    uint32_t count[2][1 << RANK_DIGIT];
    K       *keys = scratch, prefix = 0;
    void    *buffer = keys + MOST + 1;
    int      above = 8 * sizeof(K), shift = above - BITS;
    int64_t  here = l->n;
    for (;;) {
        int     digits = 1 << (above - shift);
        int64_t digit = 0;
        for (int c = 0; c < 2; c++) memset(count[c], 0, (size_t)digits * sizeof *count[c]);
        int64_t nans = NAME(pass)(l, prefix, above, shift, digits, count, NULL, buffer);
        if (above == 8 * sizeof(K)) k = wanted_rank(kind, l->n, nans, k);
        while (here = (int64_t)count[0][digit] + count[1][digit], k >= here) k -= here, digit++;
        prefix = (K)(above == 8 * sizeof(K) ? digit : (int64_t)(prefix << (above - shift)) | digit), above = shift;
        if (shift == 0) return *later = k, *alike = here > 1, prefix;
        if (here <= MOST) break;
        shift = shift > BITS ? shift - BITS : 0;
    }
    NAME(pass)(l, prefix, above, 0, 1, NULL, keys, buffer);
    return NAME(key_of_rank)(here, k, keys, later, alike);
}

static ITEM *NAME(listed)(const rank_line *l, void *buffer, size_t *bytes) /* NULL: out of memory */
{
    ITEM *a = cpu_scratch(*bytes = (size_t)(l->n + 1) * sizeof *a);
    for (int64_t at = 0, m; a && at < l->n; at += m) {
        m = l->n - at < RANK_TILE ? l->n - at : RANK_TILE;
        const T *x = NAME(read)(l, at, m, buffer);
        for (int64_t i = 0; i < m; i++) a[at + i] = (ITEM){ x[i], (uint32_t)(at + i) };
    }
    return a;
}
static int64_t NAME(select_line)(rank_kind kind, const rank_line *l, int64_t k, void *scratch)
{
    int64_t n = l->n, later;
    bool    alike, is_short = n * (int64_t)sizeof(T) <= RANK_SHORT;
    char   *buffer =
        (char *)scratch + RANK_SHORT + sizeof(T); /* copies of non-contiguous elements: a short line, a tile of a long one */
    K key;
    if (is_short) {
        const T *x = NAME(read)(l, 0, n, buffer);
        k = wanted_rank(kind, n, NAME(make_keys)(x, n, scratch), k);
        if (n <= 16) {
            int64_t at = NAME(tiny_rank)(n, k, scratch, &alike);
            if (kind != KTHVALUE || !alike) return at;
        }
        key = NAME(key_of_rank)(n, k, scratch, &later, &alike);
        if (kind != KTHVALUE || !alike) return NAME(place_of)(x, n, NAME(value_of)(key), &later);
    } else {
        key = NAME(key_of_long)(l, kind, k, scratch, &later, &alike);
        if (kind != KTHVALUE || !alike) return NAME(find)(l, NAME(value_of)(key), later, buffer);
    }
    size_t bytes;
    ITEM  *a = NAME(listed)(l, buffer, &bytes);
    if (!a) return -1;
    NAME(quick_select)(a, k, n);
    int64_t at = a[k].i;
    return cpu_scratch_free(a, bytes), at;
}
static int64_t NAME(mode_line)(const rank_line *l, void *buffer)
{
    size_t  bytes;
    ITEM   *a = NAME(listed)(l, buffer, &bytes);
    int64_t n = l->n, best = 0, most = 0, run = 0;
    if (!a) return -1;
    NAME(introsort)(a, 0, n, NAME(depth)(n));
    NAME(insertion_sort)(a, 1, n);
    for (int64_t i = 0; i < n; i++) {
        run++;
        if (i < n - 1 && a[i].v == a[i + 1].v) continue;
        if (run > most) most = run, best = a[i].i;
        run = 0;
    }
    return cpu_scratch_free(a, bytes), best;
}
static int64_t NAME(line)(rank_kind kind, const rank_line *l, int64_t k, void *scratch)
{
    return kind == MODE ? NAME(mode_line)(l, scratch) : NAME(select_line)(kind, l, k, scratch);
}
#undef ITEM
#undef SWAP
#undef LESS
#undef SFX

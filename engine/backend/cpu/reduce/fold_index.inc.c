/* The first best element and its index. The includer (folds.inc.c) defines FOLD, VALUE_FOLD (the same without index) and
 * BETTER(x, m), which is false for equal values. */
#define NAME(part) CAT(CAT(FOLD, part), SFX)
static SMALL void NAME(start)(lc_fold_state *s, int64_t n)
{
    for (int64_t c = 0; c < n; c++) STATE(T, s, a)[c] = 0, STATE(int64_t, s, b)[c] = -1;
}
INLINE void NAME(offer)(lc_fold_state *s, int64_t c, T x, int64_t at)
{
    T       *m = STATE(T, s, a) + c;
    int64_t *i = STATE(int64_t, s, b) + c;
    if (*i < 0 || BETTER(x, *m)) *m = x, *i = at;
}
static void NAME(outer)(lc_fold_state *s, const void *in, int64_t rows, int64_t row_bytes, int64_t n, int64_t first)
{
    T       *m = STATE(T, s, a);
    int64_t *at = STATE(int64_t, s, b), r = 0;
    if (n && at[0] < 0) {
        const T *p = ROW_AT(0);
        for (int64_t c = 0; c < n; c++) m[c] = p[c], at[c] = first;
        r = 1;
    }
    for (; r < rows; r++) {
        const T *p = ROW_AT(r);
        INDEPENDENT
        for (int64_t c = 0; c < n; c++) {
            T    x = p[c], y = m[c];
            bool better = BETTER(x, y);
            m[c] = better ? x : y;
            at[c] = better ? first + r : at[c];
        }
    }
}
/* The first index of x, which is one of m elements; tests 64 at a time. */
INLINE int64_t NAME(find)(const T *p, int64_t m, T x)
{
    int64_t i = 0;
    for (; i + 64 < m; i += 64) {
        __typeof__(_Generic((T)0, float : (int32_t)0, double : (int64_t)0, default : (T)0)) any = 0;
        if (x == x)
            for (int c = 0; c < 64; c++) any |= p[i + c] == x;
        else
            for (int c = 0; c < 64; c++) any |= p[i + c] != p[i + c];
        if (any) break;
    }
    while (i < m - 1 && !(p[i] == x || (x != x && p[i] != p[i]))) i++;
    return i;
}
/* A block at a time: its best value by vectors; its index only if that beats the best so far. */
static void NAME(inner)(lc_fold_state *s, const void *in, int64_t n, int64_t first)
{
    enum { BLOCK = 2048 };
    const T *p = in;
    for (int64_t start = 0; start < n; start += BLOCK) {
        int64_t       m = n - start < BLOCK ? n - start : BLOCK;
        lc_fold_state best;
        CAT(CAT(VALUE_FOLD, start), SFX)(&best, 1);
        CAT(CAT(VALUE_FOLD, inner), SFX)(&best, p + start, m, 0);
        T x = STATE(T, &best, a)[0];
        if (STATE(int64_t, s, b)[0] >= 0 && !BETTER(x, STATE(T, s, a)[0])) continue;
        STATE(T, s, a)[0] = x, STATE(int64_t, s, b)[0] = first + start + NAME(find)(p + start, m, x);
    }
}
static SMALL void NAME(merge)(lc_fold_state *to, const lc_fold_state *from, int64_t n)
{
    for (int64_t c = 0; c < n; c++)
        if (STATE(const int64_t, from, b)[c] >= 0)
            NAME(offer)(to, c, STATE(const T, from, a)[c], STATE(const int64_t, from, b)[c]);
}
static SMALL void NAME(finish)(const lc_fold_state *s, int64_t n, UNUSED double parameter, void *value, void *index)
{
    for (int64_t c = 0; c < n; c++) {
        if (value) ((T *)value)[c] = STATE(const T, s, a)[c];
        if (index) ((int64_t *)index)[c] = STATE(const int64_t, s, b)[c];
    }
}
static const lc_fold CAT(FOLD, SFX) UNUSED = { NAME(start), NAME(inner), NAME(outer), NAME(merge), NAME(finish), NULL };
#undef NAME
#undef FOLD
#undef VALUE_FOLD
#undef BETTER

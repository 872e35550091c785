/* A fold with one accumulator of type A per state. The includer (folds.inc.c) defines FOLD, A, EMPTY, STEP, RESULT and, if elements are
 * looked at through something, LOAD. */
#ifndef LOAD
#define LOAD(x) (x)
#endif
#define NAME(part) CAT(CAT(FOLD, part), SFX)
static SMALL void NAME(start)(lc_fold_state *s, int64_t n)
{
    for (int64_t c = 0; c < n; c++) STATE(A, s, a)[c] = (A)(EMPTY);
}
INLINE void NAME(four)(A *m, const void *in, int64_t row_bytes, int64_t n) /* rows */
{
    const T *p0 = ROW_AT(0), *p1 = ROW_AT(1), *p2 = ROW_AT(2), *p3 = ROW_AT(3);
    INDEPENDENT
    for (int64_t c = 0; c < n; c++) {
        A x0 = (A)LOAD(p0[c]), x1 = (A)LOAD(p1[c]), x2 = (A)LOAD(p2[c]), x3 = (A)LOAD(p3[c]);
        A low = STEP(x0, x1), high = STEP(x2, x3), x = STEP(low, high);
        m[c] = STEP(m[c], x);
    }
}
INLINE void NAME(one)(A *m, const T *p, int64_t n)
{
    INDEPENDENT
    for (int64_t c = 0; c < n; c++) {
        A x = (A)LOAD(p[c]);
        m[c] = STEP(m[c], x);
    }
}
static void NAME(outer)(lc_fold_state *s, const void *in, int64_t rows, int64_t row_bytes, int64_t n, UNUSED int64_t first)
{
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) NAME(four)(STATE(A, s, a), ROW_AT(r), row_bytes, n);
    for (; r < rows; r++) NAME(one)(STATE(A, s, a), ROW_AT(r), n);
}
static SMALL void NAME(merge)(lc_fold_state *to, const lc_fold_state *from, int64_t n)
{
    for (int64_t c = 0; c < n; c++) STATE(A, to, a)[c] = STEP(STATE(A, to, a)[c], STATE(const A, from, a)[c]);
}
static void NAME(inner)(lc_fold_state *s, const void *in, int64_t n, UNUSED int64_t first)
{
    enum { LANES = 64 };
    A        m[LANES];
    const T *p = in;
    int64_t  i = 0;
    for (int c = 0; c < LANES; c++) m[c] = (A)(EMPTY);
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        fetch_ahead(p + i, 4 * LANES * sizeof(T));
        NAME(four)(m, p + i, LANES * sizeof(T), LANES);
    }
    for (; i + LANES <= n; i += LANES) NAME(one)(m, p + i, LANES);
    NAME(one)(m, p + i, n - i);
    for (int c = 0; c < 32; c++) m[c] = STEP(m[c], m[c + 32]);
    for (int c = 0; c < 16; c++) m[c] = STEP(m[c], m[c + 16]);
    for (int c = 1; c < 16; c++) m[0] = STEP(m[0], m[c]);
    STATE(A, s, a)[0] = STEP(STATE(A, s, a)[0], m[0]);
}
static SMALL void NAME(finish)(const lc_fold_state *s, int64_t n, UNUSED double parameter, void *value, UNUSED int64_t *index)
{
    for (int64_t c = 0; c < n; c++) ((RESULT *)value)[c] = (RESULT)STATE(const A, s, a)[c];
}
static const lc_fold CAT(FOLD, SFX) UNUSED = { NAME(start), NAME(inner), NAME(outer), NAME(merge), NAME(finish) };
#undef NAME
#undef FOLD
#undef A
#undef LOAD
#undef EMPTY
#undef STEP
#undef RESULT

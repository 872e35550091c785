/* A fold with one accumulator of type A per state. The includer (folds.inc.c) defines FOLD, EMPTY, and LOAD if elements are
 * mapped first; then LARGEST or SMALLEST, or else A, STEP, RESULT and, if four can be folded more cheaply, FOUR. */
#if defined LARGEST || defined SMALLEST
#define A      T
#define RESULT T
#endif
#ifdef LARGEST
#define STEP(m, x) m_max(x, m)
#if KIND == FLOATING
#define ROUGH(x, y)      ((x) > (y) ? (x) : (y))
#define ROUGH_MASK(x, y) ((x) > (y))
#endif
#elif defined SMALLEST
#define STEP(m, x) m_min(x, m)
#if KIND == FLOATING
#define ROUGH(x, y)      ((x) < (y) ? (x) : (y))
#define ROUGH_MASK(x, y) ((x) < (y))
#endif
#endif
#ifndef LOAD
#define LOAD(x) (x)
#endif
#define NAME(part) CAT(CAT(FOLD, part), SFX)
static SMALL void NAME(start)(lc_fold_state *s, int64_t n)
{
    for (int64_t c = 0; c < n; c++) STATE(A, s, a)[c] = (A)(EMPTY);
}
INLINE A NAME(four)(A m, const T *p0, const T *p1, const T *p2, const T *p3)
{
#ifdef FOUR
    return STEP(m, (A)FOUR(*p0, *p1, *p2, *p3));
#else
    A x0 = (A)LOAD(*p0), x1 = (A)LOAD(*p1), x2 = (A)LOAD(*p2), x3 = (A)LOAD(*p3);
    A y = STEP(m, x0);
    y = STEP(y, x1), y = STEP(y, x2);
    return STEP(y, x3);
#endif
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
    A      *m = STATE(A, s, a);
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        const T *p0 = ROW_AT(r), *p1 = ROW_AT(r + 1), *p2 = ROW_AT(r + 2), *p3 = ROW_AT(r + 3);
        INDEPENDENT
        for (int64_t c = 0; c < n; c++) m[c] = NAME(four)(m[c], p0 + c, p1 + c, p2 + c, p3 + c);
    }
    for (; r < rows; r++) NAME(one)(m, ROW_AT(r), n);
}
static SMALL void NAME(merge)(lc_fold_state *to, const lc_fold_state *from, int64_t n)
{
    for (int64_t c = 0; c < n; c++) STATE(A, to, a)[c] = STEP(STATE(A, to, a)[c], STATE(const A, from, a)[c]);
}
#ifdef ROUGH
/* One value of sixteen lanes, NaN if any of them is tainted: in registers, where a chain of comparisons took as long as 500
 * elements. */
typedef __typeof__(_Generic((T)0, float : (int32_t)0, default : (int64_t)0)) NAME(flag);
typedef T NAME(quad) __attribute__((vector_size(4 * sizeof(T)), may_alias));
typedef NAME(flag) NAME(flags) __attribute__((vector_size(4 * sizeof(T)), may_alias));
INLINE void NAME(rough)(NAME(quad) * x, const NAME(quad) * y)
{
    NAME(flags) first = ROUGH_MASK(*x, *y);
    *x = (NAME(quad))((first & (NAME(flags)) * x) | (~first & (NAME(flags)) * y));
}
INLINE T NAME(settled)(const T *lane, const NAME(flag) * tainted) /* both aligned to their total size */
{
    const NAME(quad) *q = (const NAME(quad) *)lane;
    const NAME(flags) *t = (const NAME(flags) *)tainted;
    NAME(quad) x = q[0], y = q[2];
    NAME(flags) any = (t[0] | t[1]) | (t[2] | t[3]);
    NAME(rough)(&x, q + 1), NAME(rough)(&y, q + 3), NAME(rough)(&x, &y);
    y = __builtin_shufflevector(x, x, 2, 3, 2, 3), NAME(rough)(&x, &y);
    y = __builtin_shufflevector(x, x, 1, 1, 1, 1), NAME(rough)(&x, &y);
    any |= __builtin_shufflevector(any, any, 2, 3, 2, 3);
    return any[0] | any[1] ? (T)NAN : x[0];
}
#endif
/* Four rows of lanes at a time: few enough that memory is read nearly in order. If NaN wins (ROUGH), the four are folded as
 * if there were none, and a vector comparison of two at a time detects NaNs. */
static void NAME(inner)(lc_fold_state *s, const void *in, int64_t n, UNUSED int64_t first)
{
    enum { LANES = 16 };
    _Alignas(64) A m[LANES];
    const T       *p = in;
    int64_t        i = 0;
    for (int c = 0; c < LANES; c++) m[c] = (A)(EMPTY);
#ifdef ROUGH
    _Alignas(64) NAME(flag) tainted[LANES] = { 0 };
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        const T *p0 = p + i, *p1 = p0 + LANES, *p2 = p1 + LANES, *p3 = p2 + LANES;
        IN_REGISTERS
        for (int c = 0; c < LANES; c++) {
            T x0 = LOAD(p0[c]), x1 = LOAD(p1[c]), x2 = LOAD(p2[c]), x3 = LOAD(p3[c]);
            T low = ROUGH(x0, x1), high = ROUGH(x2, x3), x = ROUGH(low, high);
            m[c] = ROUGH(m[c], x);
            tainted[c] |= __builtin_isunordered(x0, x1) | __builtin_isunordered(x2, x3);
        }
    }
    for (; i + LANES <= n; i += LANES) {
        IN_REGISTERS
        for (int c = 0; c < LANES; c++) m[c] = ROUGH(m[c], LOAD(p[i + c])), tainted[c] |= LOAD(p[i + c]) != LOAD(p[i + c]);
    }
    for (int c = 0; i < n; i++, c++) m[c] = ROUGH(m[c], LOAD(p[i])), tainted[c] |= LOAD(p[i]) != LOAD(p[i]);
    m[0] = NAME(settled)(m, tainted);
#else
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        const T *q = p + i;
        IN_REGISTERS
        for (int c = 0; c < LANES; c++) m[c] = NAME(four)(m[c], q + c, q + c + LANES, q + c + 2 * LANES, q + c + 3 * LANES);
    }
    for (; i + LANES <= n; i += LANES) NAME(one)(m, p + i, LANES);
    NAME(one)(m, p + i, n - i);
    for (int c = 0; c < 8; c++) m[c] = STEP(m[c], m[c + 8]);
    for (int c = 1; c < 8; c++) m[0] = STEP(m[0], m[c]);
#endif
    STATE(A, s, a)[0] = STEP(STATE(A, s, a)[0], m[0]);
}
static SMALL void NAME(finish)(const lc_fold_state *s, int64_t n, UNUSED double parameter, void *value, UNUSED void *index)
{
    for (int64_t c = 0; c < n; c++) ((RESULT *)value)[c] = (RESULT)STATE(const A, s, a)[c];
}
static const lc_fold CAT(FOLD, SFX) UNUSED = { NAME(start), NAME(inner), NAME(outer), NAME(merge), NAME(finish), NULL };
#undef NAME
#undef FOLD
#undef A
#undef LOAD
#undef EMPTY
#undef STEP
#undef ROUGH
#undef ROUGH_MASK
#undef FOUR
#undef LARGEST
#undef SMALLEST
#undef RESULT

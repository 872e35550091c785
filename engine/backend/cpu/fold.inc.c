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
static NOINLINE void NAME(outer)(lc_fold_state *s, const void *in, int64_t rows, int64_t row_bytes, int64_t n,
                                 UNUSED int64_t first)
{
    A      *m = STATE(A, s, a);
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        const T *p0 = ROW_AT(r), *p1 = ROW_AT(r + 1), *p2 = ROW_AT(r + 2), *p3 = ROW_AT(r + 3);
        INDEPENDENT
        for (int64_t c = 0; c < n; c++) {
            A x0 = (A)LOAD(p0[c]), x1 = (A)LOAD(p1[c]), x2 = (A)LOAD(p2[c]), x3 = (A)LOAD(p3[c]);
            A low = STEP(x0, x1), high = STEP(x2, x3), x = STEP(low, high);
            m[c] = STEP(m[c], x);
        }
    }
    for (; r < rows; r++) {
        const T *p = ROW_AT(r);
        INDEPENDENT
        for (int64_t c = 0; c < n; c++) {
            A x = (A)LOAD(p[c]);
            m[c] = STEP(m[c], x);
        }
    }
}
static SMALL void NAME(merge)(lc_fold_state *to, const lc_fold_state *from, int64_t n)
{
    for (int64_t c = 0; c < n; c++) STATE(A, to, a)[c] = STEP(STATE(A, to, a)[c], STATE(const A, from, a)[c]);
}
static void NAME(inner)(lc_fold_state *s, const void *in, int64_t n, UNUSED int64_t first)
{
    lc_fold_state part;
    A            *m = STATE(A, &part, a);
    int64_t       across = LANES(n), rows = n / across, tail = n % across, lanes = rows ? across : tail;
    NAME(start)(&part, lanes);
    if (rows) NAME(outer)(&part, in, rows, across * (int64_t)sizeof(T), across, 0);
    if (tail) NAME(outer)(&part, (const T *)in + rows * across, 1, 0, tail, 0);
    for (; lanes > 1; lanes = lanes - lanes / 2) /* by halves: vectors again */
        for (int64_t c = 0, half = lanes - lanes / 2; c < lanes / 2; c++) m[c] = STEP(m[c], m[c + half]);
    NAME(merge)(s, &part, n > 0);
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

/* A sum over LOAD(x) of each element x. The includer (folds.inc.c) defines FOLD, FINISH(total) and, unless elements are
 * added as they are, LOAD; COUNTS if LOAD is a predicate: then sums are integers; else OF_PARTS, the vector form of LOAD, if
 * there is one.
 * a: sums, b: their rounding errors (float64). */
#ifndef LOAD
#define LOAD(x) (x)
#endif
#ifdef COUNTS
#define ACC         int64_t
#define EIGHT       int32_t
#define RESULT      int64_t
#define COMPENSATED 0
#else
#define ACC         SUM
#define EIGHT       PART
#define RESULT      T
#define COMPENSATED (KIND == FLOATING && sizeof(T) == 8)
#endif
#define NAME(part) CAT(CAT(FOLD, part), SFX)
static void NAME(start)(lc_fold_state *s, int64_t n)
{
    memset(s->a, 0, (size_t)n * sizeof(ACC));
    if (COMPENSATED) memset(s->b, 0, (size_t)n * sizeof(ACC));
}
INLINE void NAME(add)(ACC *total, ACC *lost, ACC x)
{
    ACC t = *total + x, back = t - *total;
    if (COMPENSATED) *lost += (*total - (t - back)) + (x - back);
    *total = t;
}
INLINE EIGHT NAME(eight)(const T *p, int64_t row_bytes) /* one element of each of eight rows */
{
    const char *in = (const char *)p;
    EIGHT       low = ((EIGHT)LOAD(*ROW_AT(0)) + (EIGHT)LOAD(*ROW_AT(1))) + ((EIGHT)LOAD(*ROW_AT(2)) + (EIGHT)LOAD(*ROW_AT(3)));
    EIGHT high = ((EIGHT)LOAD(*ROW_AT(4)) + (EIGHT)LOAD(*ROW_AT(5))) + ((EIGHT)LOAD(*ROW_AT(6)) + (EIGHT)LOAD(*ROW_AT(7)));
    return low + high;
}
static void NAME(outer)(lc_fold_state *s, const void *in, int64_t rows, int64_t row_bytes, int64_t n, UNUSED int64_t first)
{
    ACC    *total = STATE(ACC, s, a), *lost = STATE(ACC, s, b);
    int64_t r = 0;
    for (; r + 8 <= rows; r += 8) {
        const T *p = ROW_AT(r);
        INDEPENDENT
        for (int64_t c = 0; c < n; c++) NAME(add)(&total[c], &lost[c], (ACC)NAME(eight)(p + c, row_bytes));
    }
    for (; r < rows; r++) {
        const T *p = ROW_AT(r);
        INDEPENDENT
        for (int64_t c = 0; c < n; c++) NAME(add)(&total[c], &lost[c], (ACC)LOAD(p[c]));
    }
}
static SMALL void NAME(merge)(lc_fold_state *to, const lc_fold_state *from, int64_t n)
{
    for (int64_t c = 0; c < n; c++) {
        NAME(add)(&STATE(ACC, to, a)[c], &STATE(ACC, to, b)[c], STATE(const ACC, from, a)[c]);
        if (COMPENSATED) STATE(ACC, to, b)[c] += STATE(const ACC, from, b)[c];
    }
}
/* Lanes side by side, added by pairwise halving at the end of a chunk: chunks are short enough that lanes need no
 * compensation. Memory is read strictly in order: prefetchers follow nothing else as fast. */
#ifndef COUNTS
#include "fold_lanes.inc.c"
#else
INLINE void NAME(chunk)(lc_fold_state *s, const T *p, int64_t n, int64_t width)
{
    enum { LANES = LANES_OF(64) };
    ACC     lane[LANES] = { 0 };
    EIGHT   rest[LANES] = { 0 }; /* fewer than eight rows, added in turn */
    int64_t i = 0;
    for (; i + 8 * LANES <= n; i += 8 * LANES) {
        INDEPENDENT
        for (int c = 0; c < LANES; c++) lane[c] += (ACC)NAME(eight)(p + i + c, LANES * sizeof(T));
    }
    for (; i + LANES <= n; i += LANES)
        for (int c = 0; c < LANES; c++) rest[c] += (EIGHT)LOAD(p[i + c]);
    for (int c = 0; i < n; i++, c++) rest[c] += (EIGHT)LOAD(p[i]);
    for (int c = 0; c < LANES; c++) lane[c] += (ACC)rest[c];
    for (int half = LANES / 2; half >= width; half /= 2)
        for (int c = 0; c < half; c++) lane[c] += lane[c + half];
    for (int64_t c = 0; c < width; c++) NAME(add)(&STATE(ACC, s, a)[c], &STATE(ACC, s, b)[c], lane[c]);
}
#endif
INLINE void NAME(lanes)(lc_fold_state *s, const T *p, int64_t n, int64_t width)
{
    for (; n > FOLD_ROW; p += FOLD_ROW, n -= FOLD_ROW) NAME(chunk)(s, p, FOLD_ROW, width);
    NAME(chunk)(s, p, n, width);
}
static void NAME(inner)(lc_fold_state *s, const void *in, int64_t n, UNUSED int64_t first) { NAME(lanes)(s, in, n, 1); }
INLINE ACC  NAME(total)(const lc_fold_state *s, int64_t c) /* the error term of an infinite sum is NaN, so it is ignored */
{
    ACC total = STATE(const ACC, s, a)[c];
    return COMPENSATED && total - total == 0 ? total + STATE(const ACC, s, b)[c] : total;
}
static void NAME(finish)(const lc_fold_state *s, int64_t n, UNUSED double parameter, void *value, UNUSED void *index)
{
    for (int64_t c = 0; c < n; c++) ((RESULT *)value)[c] = (RESULT)FINISH(NAME(total)(s, c));
}
#ifdef COUNTS
static const lc_fold UNUSED CAT(FOLD, SFX) = { NAME(start), NAME(inner), NAME(outer), NAME(merge), NAME(finish), NULL };
#else
static void NAME(rows)(const void *in, int64_t in_step, void *value, int64_t value_step, int64_t rows, int64_t n,
                       UNUSED double parameter)
{
    for (int64_t r = 0; r < rows; r++) {
        NAME(sums) sum = NAME(row)((const T *)((const char *)in + r * in_step), n);
        *(RESULT *)((char *)value + r * value_step) = (RESULT)FINISH(sum.even + sum.odd);
    }
}
static const lc_fold UNUSED CAT(FOLD, SFX) = { NAME(start), NAME(inner), NAME(outer), NAME(merge), NAME(finish), NAME(rows) };
#endif
#undef NAME
#undef FOLD
#undef LOAD
#undef FINISH
#undef COUNTS
#undef ACC
#undef EIGHT
#undef RESULT
#undef COMPENSATED

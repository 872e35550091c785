/* Folds over one element type. The includer defines T, the accumulator ACC, PART (what eight elements are added up in before they
 * reach the accumulator) and SFX. Complex types are folded as pairs of reals where that is the same thing (sums). */
#define STATE(type, s, which) ((type *)(s)->which)
#define ROW_AT(r)             ((const T *)((const char *)in + (r)*row_bytes))

#if !COMPLEX
#ifndef CELL /* T, unless vectors of it cannot be */
#define CELL T
#endif
/* ---- sum ---- */
static void CAT(sum_start, SFX)(lc_fold_state *s, int64_t n)
{
    memset(s->a, 0, (size_t)n * sizeof(ACC));
    if (COMPENSATED) memset(s->b, 0, (size_t)n * sizeof(ACC));
}
INLINE void CAT(sum_add, SFX)(ACC *total, ACC *lost, ACC x)
{
#if COMPENSATED
    ACC t = *total + x, back = t - *total;
    *lost += (*total - (t - back)) + (x - back);
    *total = t;
#else
    (void)lost;
    *total += x;
#endif
}
static void CAT(sum_outer, SFX)(lc_fold_state *s, const void *in, int64_t rows, int64_t row_bytes, int64_t n,
                                UNUSED int64_t first)
{
    ACC    *total = STATE(ACC, s, a), *lost = STATE(ACC, s, b);
    int64_t r = 0;
    for (; r + 8 <= rows; r += 8) {
        const T *p0 = ROW_AT(r), *p1 = ROW_AT(r + 1), *p2 = ROW_AT(r + 2), *p3 = ROW_AT(r + 3);
        const T *p4 = ROW_AT(r + 4), *p5 = ROW_AT(r + 5), *p6 = ROW_AT(r + 6), *p7 = ROW_AT(r + 7);
        INDEPENDENT
        for (int64_t c = 0; c < n; c++) {
            PART low = ((PART)p0[c] + (PART)p1[c]) + ((PART)p2[c] + (PART)p3[c]);
            PART high = ((PART)p4[c] + (PART)p5[c]) + ((PART)p6[c] + (PART)p7[c]);
            CAT(sum_add, SFX)(&total[c], &lost[c], (ACC)(low + high));
        }
    }
    for (; r < rows; r++) {
        const T *p = ROW_AT(r);
        INDEPENDENT
        for (int64_t c = 0; c < n; c++) CAT(sum_add, SFX)(&total[c], &lost[c], (ACC)p[c]);
    }
}
static SMALL void CAT(sum_merge, SFX)(lc_fold_state *to, const lc_fold_state *from, int64_t n)
{
    for (int64_t c = 0; c < n; c++) {
        CAT(sum_add, SFX)(&STATE(ACC, to, a)[c], &STATE(ACC, to, b)[c], STATE(const ACC, from, a)[c]);
        if (COMPENSATED) STATE(ACC, to, b)[c] += STATE(const ACC, from, b)[c];
    }
}
/* Lanes side by side, added up by halves at the end of a chunk: short enough that lanes need no compensation. Memory is read strictly in
 * order: prefetchers follow nothing else as fast. Vectors are written out, half a cache line of PARTs each, because arrays of lanes
 * do not stay in registers. width 2: real and imaginary parts in turns. */
#define VECTOR(type) __attribute__((vector_size(32 / sizeof(PART) * sizeof(type))))
typedef PART CAT(parts, SFX) VECTOR(PART);
typedef ACC  CAT(accs, SFX) VECTOR(ACC);
typedef CELL CAT(cells, SFX) __attribute__((vector_size(32 / sizeof(PART) * sizeof(T)), aligned(sizeof(T)), may_alias));
#define PARTS_AT(p) __builtin_convertvector(*(const CAT(cells, SFX) *)(p), CAT(parts, SFX))
#define TO_ACCS(p)  __builtin_convertvector(p, CAT(accs, SFX))
INLINE void CAT(sum_chunk, SFX)(lc_fold_state *s, const T *in, int64_t n, int64_t width)
{
    enum { HALF = 32 / sizeof(PART), LANES = 2 * HALF, ROWS = 8 };
    union {
        CAT(accs, SFX) half[2];
        ACC lane[LANES];
    } sum = { { { 0 }, { 0 } } };
    CAT(accs, SFX) low = sum.half[0], high = sum.half[1];
    int64_t i = 0;
    for (; i + ROWS * LANES <= n; i += ROWS * LANES) {
        const T *p = in + i;
        CAT(parts, SFX) part0 = PARTS_AT(p), part1 = PARTS_AT(p + HALF);
        for (int r = 1; r < ROWS; r++) {
            p += LANES;
            part0 += PARTS_AT(p), part1 += PARTS_AT(p + HALF);
        }
        low += TO_ACCS(part0), high += TO_ACCS(part1);
    }
    for (; i + LANES <= n; i += LANES) low += TO_ACCS(PARTS_AT(in + i)), high += TO_ACCS(PARTS_AT(in + i + HALF));
    sum.half[0] = low, sum.half[1] = high;
    for (int c = 0; i < n; i++, c++) sum.lane[c] += (ACC)in[i];
    for (int c = 0; c < HALF; c++) sum.lane[c] += sum.lane[c + HALF];
    for (int c = 0; c < HALF / 2; c++) sum.lane[c] += sum.lane[c + HALF / 2];
    for (int c = 0; c < HALF / 4 && HALF > 4; c++) sum.lane[c] += sum.lane[c + HALF / 4];
    if (width == 1) sum.lane[0] += sum.lane[1];
    for (int64_t c = 0; c < width; c++) CAT(sum_add, SFX)(&STATE(ACC, s, a)[c], &STATE(ACC, s, b)[c], sum.lane[c]);
}
#undef VECTOR
#undef PARTS_AT
#undef TO_ACCS
INLINE void CAT(sum_lanes, SFX)(lc_fold_state *s, const T *in, int64_t n, int64_t width)
{
    enum { CHUNK = 1 << 14 };
    for (; n > CHUNK; in += CHUNK, n -= CHUNK) CAT(sum_chunk, SFX)(s, in, CHUNK, width);
    CAT(sum_chunk, SFX)(s, in, n, width);
}
static void CAT(sum_inner, SFX)(lc_fold_state *s, const void *in, int64_t n, UNUSED int64_t first)
{
    CAT(sum_lanes, SFX)(s, in, n, 1);
}
INLINE ACC CAT(sum_total, SFX)(const lc_fold_state *s, int64_t c) /* what an infinite sum lost is not a number */
{
    ACC total = STATE(const ACC, s, a)[c];
#if COMPENSATED
    if (total - total == 0) total += STATE(const ACC, s, b)[c];
#endif
    return total;
}
static void CAT(sum_finish, SFX)(const lc_fold_state *s, int64_t n, UNUSED double parameter, void *value, UNUSED int64_t *index)
{
    for (int64_t c = 0; c < n; c++) ((T *)value)[c] = (T)CAT(sum_total, SFX)(s, c);
}
static const lc_fold UNUSED CAT(sum, SFX) = { CAT(sum_start, SFX), CAT(sum_inner, SFX), CAT(sum_outer, SFX),
                                              CAT(sum_merge, SFX), CAT(sum_finish, SFX) };
#if FLOATING
static void CAT(mean_finish, SFX)(const lc_fold_state *s, int64_t n, double parameter, void *value, UNUSED int64_t *index)
{
    for (int64_t c = 0; c < n; c++) ((T *)value)[c] = (T)(CAT(sum_total, SFX)(s, c) / parameter);
}
static const lc_fold CAT(mean, SFX) = { CAT(sum_start, SFX), CAT(sum_inner, SFX), CAT(sum_outer, SFX), CAT(sum_merge, SFX),
                                        CAT(mean_finish, SFX) };
#endif
#endif

/* ---- folds with one accumulator: prod, amax, amin, any, all ---- */
#define FOLD       prod
#define A          PROD
#define EMPTY      1
#define STEP(m, x) ((PROD)((UPROD)(m) * (UPROD)(x)))
#define RESULT     T
#include "fold.inc.c"
#if !COMPLEX
#define FOLD       amax
#define A          T
#define EMPTY      LOWEST
#define STEP(m, x) m_max(x, m)
#if FLOATING
#define ROUGH(x, y) ((x) > (y) ? (x) : (y))
#endif
#define RESULT T
#include "fold.inc.c"
#define FOLD       amin
#define A          T
#define EMPTY      HIGHEST
#define STEP(m, x) m_min(x, m)
#if FLOATING
#define ROUGH(x, y) ((x) < (y) ? (x) : (y))
#endif
#define RESULT T
#include "fold.inc.c"
#endif
#define FOLD       any
#define A          uint8_t
#define LOAD(x)    ((x) != 0)
#define EMPTY      0
#define STEP(m, x) ((uint8_t)((m) | (x)))
#define RESULT     lc_b8
#include "fold.inc.c"
#define FOLD       all
#define A          uint8_t
#define LOAD(x)    ((x) != 0)
#define EMPTY      1
#define STEP(m, x) ((uint8_t)((m) & (x)))
#define RESULT     lc_b8
#include "fold.inc.c"

#if !COMPLEX
/* ---- extremes with their index: the first one wins, a NaN wins over everything. a: value, b: index, -1 while there is none ---- */
#define FOLD         max_dim
#define VALUE_FOLD   amax
#define BETTER(x, m) (((x) > (m)) | (((x) != (x)) & ((m) == (m))))
#include "fold_index.inc.c"
#define FOLD         min_dim
#define VALUE_FOLD   amin
#define BETTER(x, m) (((x) < (m)) | (((x) != (x)) & ((m) == (m))))
#include "fold_index.inc.c"
#endif

#undef COMPLEX
#undef T
#undef ACC
#undef PART
#undef CELL
#undef PROD
#undef UPROD
#undef SFX
#undef LOWEST
#undef HIGHEST
#undef COMPENSATED
#undef FLOATING

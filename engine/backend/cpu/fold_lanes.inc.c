/* Sums of a chunk in vectors, written out, half a cache line of PARTs each, because arrays of lanes do not stay in registers. The includer
 * defines NAME, T, CELL, PART, ACC and LOAD of one element, and PARTS_AT if vectors of elements take more than a conversion. */
#define VECTOR(type) __attribute__((vector_size(32 / sizeof(PART) * sizeof(type))))
typedef PART NAME(parts) VECTOR(PART);
typedef ACC  NAME(accs) VECTOR(ACC);
typedef CELL NAME(cells) __attribute__((vector_size(32 / sizeof(PART) * sizeof(T)), aligned(sizeof(T)), may_alias));
#ifndef PARTS_AT
#define PARTS_AT(p) __builtin_convertvector(*(const NAME(cells) *)(p), NAME(parts))
#endif
#define TO_ACCS(p) __builtin_convertvector(p, NAME(accs))
INLINE void NAME(chunk)(lc_fold_state *s, const T *in, int64_t n, int64_t width)
{
    enum { HALF = 32 / sizeof(PART), LANES = 2 * HALF, ROWS = 8 };
    if (width == 1 && n < LANES) { /* short rows: not worth the lanes */
        ACC even = 0, odd = 0;
        for (; n >= 2; n -= 2, in += 2) even += (ACC)LOAD(in[0]), odd += (ACC)LOAD(in[1]);
        if (n) even += (ACC)LOAD(in[0]);
        NAME(add)(STATE(ACC, s, a), STATE(ACC, s, b), even + odd);
        return;
    }
    union {
        NAME(accs) half[2];
        ACC lane[LANES];
    } sum = { { { 0 }, { 0 } } };
    NAME(accs) low = sum.half[0], high = sum.half[1];
    int64_t i = 0;
    for (; i + ROWS * LANES <= n; i += ROWS * LANES) {
        const T *p = in + i;
        NAME(parts) part0 = PARTS_AT(p), part1 = PARTS_AT(p + HALF);
        for (int r = 1; r < ROWS; r++) {
            p += LANES;
            part0 += PARTS_AT(p), part1 += PARTS_AT(p + HALF);
        }
        low += TO_ACCS(part0), high += TO_ACCS(part1);
    }
    for (; i + LANES <= n; i += LANES) low += TO_ACCS(PARTS_AT(in + i)), high += TO_ACCS(PARTS_AT(in + i + HALF));
    sum.half[0] = low, sum.half[1] = high;
    for (int c = 0; i < n; i++, c++) sum.lane[c] += (ACC)LOAD(in[i]);
    for (int c = 0; c < HALF; c++) sum.lane[c] += sum.lane[c + HALF];
    for (int c = 0; c < HALF / 2; c++) sum.lane[c] += sum.lane[c + HALF / 2];
    for (int c = 0; c < HALF / 4 && HALF > 4; c++) sum.lane[c] += sum.lane[c + HALF / 4];
    if (width == 1) sum.lane[0] += sum.lane[1];
    for (int64_t c = 0; c < width; c++) NAME(add)(&STATE(ACC, s, a)[c], &STATE(ACC, s, b)[c], sum.lane[c]);
}
#undef VECTOR
#undef PARTS_AT
#undef TO_ACCS

/* The sum of a chunk by vectors, in registers: no arrays of lanes, and no state, because stores to either would alias loads
 * that lie a multiple of 4 KiB away. Elements at even and at odd positions are summed separately, so that complex numbers
 * are summed like reals. The includer defines NAME, T, CELL, PART, ACC (of 8 bytes) and LOAD of one element, PARTS_AT if
 * vectors of elements take more than a conversion, FIRST_AT and SECOND_AT if two vectors are read better as one, and
 * OF_PARTS if LOAD maps an element. */
typedef PART NAME(parts) __attribute__((vector_size(32)));
typedef CELL NAME(cells) __attribute__((vector_size(32 / sizeof(PART) * sizeof(T)), aligned(sizeof(T)), may_alias));
typedef ACC  NAME(four) __attribute__((vector_size(4 * sizeof(ACC))));
typedef struct {
    ACC even, odd;
} NAME(sums);
#ifndef OF_PARTS
#define OF_PARTS(x) (x)
#endif
#ifndef PARTS_AT
#define PARTS_AT(p) OF_PARTS(__builtin_convertvector(*(const NAME(cells) *)(p), NAME(parts)))
#endif
#ifndef FIRST_AT
#define FIRST_AT(p)  PARTS_AT(p)
#define SECOND_AT(p) PARTS_AT((p) + HALF)
#endif
#define HALVED (sizeof(PART) < sizeof(ACC)) /* a vector of parts becomes two of sums */
#define ADD(first, second, parts)                                                                                              \
    first += __builtin_convertvector(__builtin_shufflevector(parts, parts, 0, 1, 2, 3), NAME(four));                           \
    if (HALVED) second += __builtin_convertvector(__builtin_shufflevector(parts, parts, 4, 5, 6, 7), NAME(four));
static __attribute__((noinline)) NAME(sums) NAME(row)(const T *in, int64_t n)
{
    enum { HALF = 32 / sizeof(PART), LANES = 2 * HALF, ROWS = 8 };
    NAME(four) sum0 = { 0 }, sum1 = sum0, sum2 = sum0, sum3 = sum0;
    NAME(sums) rest = { 0, 0 };
    for (; n >= ROWS * LANES; n -= ROWS * LANES) {
        NAME(parts) part0 = FIRST_AT(in), part1 = SECOND_AT(in);
        in += LANES;
        IN_REGISTERS
        for (int r = 1; r < ROWS; r++, in += LANES) part0 += FIRST_AT(in), part1 += SECOND_AT(in);
        ADD(sum0, sum1, part0)
        ADD(sum2, sum3, part1)
    }
    for (; n >= HALF; n -= HALF, in += HALF) {
        NAME(parts) part = PARTS_AT(in);
        ADD(sum0, sum1, part)
    }
    for (; n >= 2; n -= 2, in += 2) rest.even += (ACC)LOAD(in[0]), rest.odd += (ACC)LOAD(in[1]);
    if (n) rest.even += (ACC)LOAD(in[0]);
    sum0 = (sum0 + sum1) + (sum2 + sum3);
    rest.even += sum0[0] + sum0[2], rest.odd += sum0[1] + sum0[3];
    return rest;
}
INLINE void NAME(chunk)(lc_fold_state *s, const T *in, int64_t n,
                        int64_t width) /* width 2: real and imaginary parts alternate */
{
    NAME(sums) sum = NAME(row)(in, n);
    NAME(add)(STATE(ACC, s, a), STATE(ACC, s, b), width == 1 ? sum.even + sum.odd : sum.even);
    if (width == 2) NAME(add)(STATE(ACC, s, a) + 1, STATE(ACC, s, b) + 1, sum.odd);
}
#undef PARTS_AT
#undef FIRST_AT
#undef SECOND_AT
#undef OF_PARTS
#undef HALVED
#undef ADD

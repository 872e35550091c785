/* Scans of T, sums kept in SUM. See scan_lines.h. */
#if ORDERED
typedef SUM NAME(sums) __attribute__((vector_size(4 * sizeof(SUM))));
typedef T   NAME(cells) __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));
#define SUMS_AT(p)  __builtin_convertvector(*(const NAME(cells) *)(p), NAME(sums))
#define TO_CELLS(v) __builtin_convertvector(v, NAME(cells))
/* Sums within four. A macro: functions that pass vectors have an ABI per instruction set. */
#define PREFIX(x)  (x += __builtin_shufflevector(x, none, 4, 0, 1, 2), x += __builtin_shufflevector(x, none, 4, 5, 0, 1))
#define LAST_OF(x) __builtin_shufflevector(x, x, 3, 3, 3, 3)
#endif
/* Sums of the line alone, from zero; the sum before it is added to each element on output. So the total of a line, its last
 * sum, depends neither on the sum before it nor on whether it was written. */
static inline __attribute__((always_inline)) SUM NAME(sum_core)(T *y, const T *x, int64_t n, SUM start)
{
    SUM     total = 0;
    int64_t i = 0;
#if ORDERED
    NAME(sums) shift = { start, start, start, start }, none = { 0 }, before = none;
    for (; i + 8 <= n; i += 8) {
        NAME(sums) a = SUMS_AT(x + i), b = SUMS_AT(x + i + 4);
        PREFIX(a), PREFIX(b);
        NAME(sums) first = LAST_OF(a), base = shift + before;
        if (y) *(NAME(cells) *)(y + i) = TO_CELLS(base + a), *(NAME(cells) *)(y + i + 4) = TO_CELLS(base + first + b);
        before += first + LAST_OF(b);
    }
    total = before[0];
#undef SUMS_AT
#undef TO_CELLS
#undef LAST_OF
#undef PREFIX
#endif
    for (; i < n; i++) {
        total += (SUM)x[i];
        if (y) y[i] = (T)(start + total);
    }
    return total;
}
static void NAME(sum_total)(void *sum, const void *in, int64_t n) { *(SUM *)sum = NAME(sum_core)(NULL, in, n, 0); }
static void NAME(sum_line)(void *out, int64_t *at, const void *in, int64_t n, void *sum)
{
    (void)at;
    *(SUM *)sum += NAME(sum_core)(out, in, n, *(SUM *)sum);
}
static void NAME(product_line)(void *out, int64_t *at, const void *in, int64_t n, void *sum)
{
    const T *x = in;
    T       *y = out;
    SUM      product = 1;
    (void)at, (void)sum;
    for (int64_t i = 0; i < n; i++) y[i] = (T)(product *= (SUM)x[i]);
}
#define LANES_OF(name, start, OP)                                                                                              \
    static void NAME(name)(void *out, int64_t *at, const void *in, int64_t n, int64_t lanes, int64_t step)                     \
    {                                                                                                                          \
        SUM state[SCAN_LANES];                                                                                                 \
        (void)at;                                                                                                              \
        for (int64_t l = 0; l < lanes; l++) state[l] = start;                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                                      \
            const T *x = (const T *)in + i * step;                                                                             \
            T       *y = (T *)out + i * step;                                                                                  \
            INDEPENDENT                                                                                                        \
            for (int64_t l = 0; l < lanes; l++) {                                                                              \
                SUM s = state[l] OP(SUM) x[l];                                                                                 \
                state[l] = s;                                                                                                  \
                y[l] = (T)s;                                                                                                   \
            }                                                                                                                  \
        }                                                                                                                      \
    }
LANES_OF(sum_lanes, 0, +)
LANES_OF(product_lanes, 1, *)
#undef LANES_OF

#if ORDERED
/* Reports the last of equal values; once there is a NaN, the last NaN. */
#define EXTREMES(name, OP)                                                                                                     \
    static void NAME(name##_line)(void *out, int64_t *at, const void *in, int64_t n, void *sum)                                \
    {                                                                                                                          \
        const T *x = in;                                                                                                       \
        T       *y = out, m = x[0];                                                                                            \
        int64_t  best = 0;                                                                                                     \
        (void)sum;                                                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                                                      \
            if ((x[i] OP m) | (x[i] != x[i])) m = x[i], best = i;                                                              \
            y[i] = m, at[i] = best;                                                                                            \
        }                                                                                                                      \
    }                                                                                                                          \
    static void NAME(name##_lanes)(void *out, int64_t *at, const void *in, int64_t n, int64_t lanes, int64_t step)             \
    {                                                                                                                          \
        for (int64_t l = 0; l < lanes; l++) ((T *)out)[l] = ((const T *)in)[l], at[l] = 0;                                     \
        for (int64_t i = 1; i < n; i++) {                                                                                      \
            const T *x = (const T *)in + i * step, *m = (const T *)out + (i - 1) * step;                                       \
            T       *y = (T *)out + i * step;                                                                                  \
            int64_t *to = at + i * step, *from = to - step;                                                                    \
            INDEPENDENT                                                                                                        \
            for (int64_t l = 0; l < lanes; l++) {                                                                              \
                bool better = (x[l] OP m[l]) | (x[l] != x[l]);                                                                 \
                y[l] = better ? x[l] : m[l];                                                                                   \
                to[l] = better ? i : from[l];                                                                                  \
            }                                                                                                                  \
        }                                                                                                                      \
    }
EXTREMES(max, >=)
EXTREMES(min, <=)
#undef EXTREMES
#endif
#undef SFX

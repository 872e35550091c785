/* Running sums and products of T, kept in SUM, for up to SCAN_LANES neighbouring lines at once. Steps in bytes. The usual case, a full set of
 * lines side by side, has constants where the general one has variables, so that it is vectorised. */
#define SCAN_LINES(lanes, out_lane, in_lane, OP)                                                                               \
    for (int64_t i = 0; i < n; i++, out += out_step, in += in_step)                                                            \
        for (int64_t l = 0; l < (lanes); l++) {                                                                                \
            state[l] = OP(state[l], (SUM) * (const T *)(in + l * (int64_t)(in_lane)));                                         \
            *(T *)(out + l * (int64_t)(out_lane)) = (T)state[l];                                                               \
        }
#define SCAN(name, start, OP)                                                                                                  \
    static void name(char *out, const char *in, int64_t lanes, int64_t out_lane, int64_t in_lane, int64_t n, int64_t out_step, \
                     int64_t in_step)                                                                                          \
    {                                                                                                                          \
        SUM state[SCAN_LANES];                                                                                                 \
        for (int64_t l = 0; l < lanes; l++) state[l] = start;                                                                  \
        if (lanes == SCAN_LANES && out_lane == sizeof(T) && in_lane == sizeof(T))                                              \
            SCAN_LINES(SCAN_LANES, sizeof(T), sizeof(T), OP)                                                                   \
        else SCAN_LINES(lanes, out_lane, in_lane, OP)                                                                          \
    }
SCAN(NAME(cumsum), 0, PLUS)
SCAN(NAME(cumprod), 1, TIMES)
#undef SCAN
#undef SCAN_LINES
#undef T
#undef SUM
#undef NAME

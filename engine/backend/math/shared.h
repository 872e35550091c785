/* Definitions that scalar.def's rows use and the CPU and CUDA share, whatever the type: macros over T, the type of the row,
 * and functions of integers. The includer provides int64_t and the like, FN, and trunc_div_i64 and fmod_i64, which differ in
 * their result for a divisor of zero. Formulas per type: real.inc.c, remainder.inc.c, divisors.inc.c. */
#define m_six(x)   ((x) < 0 ? (T)0 : (x) > 6 ? (T)6 : (x)) /* within [0, 6]; NaN stays */
#define m_logit(x) m_log((x) / ((T)1 - (x)))
/* Shifts by a negative amount or past the width shift everything out; copies of the sign come in from the left. */
#define BITS_OF(x)          ((int)sizeof(x) * 8)
#define m_shift_left(x, y)  ((uint64_t)(int64_t)(y) >= (uint64_t)BITS_OF(x) ? (T)0 : (T)((uint64_t)(x) << (y)))
#define m_shift_right(x, y) ((T)((x) >> ((uint64_t)(int64_t)(y) >= (uint64_t)BITS_OF(x) ? BITS_OF(x) - ((T)-1 < 0) : (y))))

/* Integer division rounds down, as in Python. */
FN int64_t remainder_i64(int64_t x, int64_t y)
{
    int64_t r = fmod_i64(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
FN int64_t floor_divide_i64(int64_t x, int64_t y) { return trunc_div_i64(x, y) - (fmod_i64(x, y) != 0 && (x < 0) != (y < 0)); }
FN int64_t pow_i64(int64_t x, int64_t y) /* wraps; a negative power is the truncated quotient 1 / x^-y */
{
    uint64_t result = 1, base = (uint64_t)x;
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
    for (; y; y >>= 1, base *= base)
        if (y & 1) result *= base;
    return (int64_t)result;
}
/* The next float16 or bfloat16: bit patterns of one sign are ordered like their values. x is not NaN; up: towards positive
 * infinity. */
FN uint16_t next_half(uint16_t x, bool up)
{
    if ((x & 0x7fff) == 0) return up ? 1 : 0x8001;
    return (uint16_t)(up == !(x >> 15) ? x + 1 : x - 1);
}

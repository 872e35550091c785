/* Mantissa and exponent of an R by its bits, and the maximum and minimum of two numbers where NaN loses: by selections,
 * which vectorise. */
MATH R NAME(mantissa)(R x)
{
    R a = ABS(x) < MIN_NORMAL ? x * (R)((U)1 << MANTISSA) : x;
    U u = BITS(a);
    R m = AS((u & ~((U)(2 * BIAS + 1) << (MANTISSA - 1))) | (U)(BIAS - 1) << (MANTISSA - 1));
    return x == 0 || !(ABS(x) < (R)INFINITY) ? x : m;
}
MATH R NAME(exponent)(R x)
{
    bool tiny = ABS(x) < MIN_NORMAL;
    U    u = BITS(tiny ? x * (R)((U)1 << MANTISSA) : x);
    R    e = (R)((int32_t)(u >> (MANTISSA - 1) & (2 * BIAS + 1)) - (BIAS - 1)) - (tiny ? MANTISSA : 0);
    return x == 0 || !(ABS(x) < (R)INFINITY) ? 0 : e;
}
MATH R NAME(fmax)(R x, R y)
{
    R t = x >= y ? x : y;
    t = x != x ? y : t;
    return y != y ? x : t;
}
MATH R NAME(fmin)(R x, R y)
{
    R t = x <= y ? x : y;
    t = x != x ? y : t;
    return y != y ? x : t;
}
#undef R
#undef U
#undef NAME
#undef BITS
#undef AS
#undef ABS
#undef MANTISSA
#undef BIAS
#undef MIN_NORMAL

/* gcd and lcm of integers of type INT (UINT: its unsigned type). gcd is Euclid's; the lowest value is its own absolute
 * value. */
FN INT NAME(gcd)(INT x, INT y)
{
    UINT a = x < 0 ? 0 - (UINT)x : (UINT)x, b = y < 0 ? 0 - (UINT)y : (UINT)y;
    while (b) {
        UINT r = a % b;
        a = b, b = r;
    }
    return (INT)a;
}
FN INT NAME(lcm)(INT x, INT y)
{
    INT d = NAME(gcd)(x, y), m = d == 0 ? 0 : (INT)((UINT)(x / d) * (UINT)y);
    return m < 0 ? (INT)(0 - (UINT)m) : m;
}
#undef INT
#undef UINT
#undef NAME

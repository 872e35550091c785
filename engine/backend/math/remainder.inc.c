/* Division of reals of type R that rounds down, as in Python. FMOD(x, y) is the remainder with the sign of x. */
FN R NAME(remainder)(R x, R y)
{
    R r = FMOD(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
FN R NAME(floor_divide)(R x, R y) /* the true quotient rounded down, not the rounded quotient */
{
    R r = FMOD(x, y), q = (x - r) / y;
    q = r != 0 && (y < 0) != (r < 0) ? q - 1 : q;
    R f = m_floor(q), near = q - f > (R)0.5 ? f + 1 : f;
    near = q == 0 ? m_copysign((R)0, x / y) : near;
    return y == 0 ? x / y : near;
}
#undef R
#undef NAME
#undef FMOD

/* Formulas over real numbers of type R that the CPU and CUDA share; NAME(f) is the name of f for R, FN makes a function
 * local. m_* functions choose by type: each backend has its own exp, log1p and so on. Selections instead of branches: the
 * CPU vectorises them. */
FN R NAME(max)(R x, R y) /* NaN wins. In two steps: gcc cannot vectorise the nested condition */
{
    R t = x > y ? x : y;
    return x != x ? x : t;
}
FN R NAME(min)(R x, R y)
{
    R t = x < y ? x : y;
    return x != x ? x : t;
}
FN R NAME(clamp)(R x, R low, R high) /* x where it equals a bound (-0 stays -0); a NaN in high propagates by itself */
{
    R t = x < low ? low : x, u = t <= high ? t : high;
    return UNORDERED(x, low) ? x + low : u;
}
FN R NAME(softplus)(R x) { return NAME(max)(x, 0) + m_log1p(m_exp(-m_abs(x))); }
FN R NAME(logaddexp)(R x, R y)
{
    R d = m_abs(x - y), s = NAME(max)(x, y) + m_log1p(m_exp(-d));
    return x == y ? x + (R)0.69314718055994530942 : s;
}
FN R NAME(logaddexp2)(R x, R y)
{
    R d = m_abs(x - y), s = NAME(max)(x, y) + m_log1p(m_exp2(-d)) * (R)1.44269504088896340736;
    return x == y ? x + 1 : s;
}
FN R NAME(xlogy)(R x, R y)
{
    R p = x == 0 ? (R)0 : x * m_log(y);
    return NAME(is_nan)(y) ? y : p;
}
FN R NAME(xlog1py)(R x, R y)
{
    R p = x == 0 ? (R)0 : x * m_log1p(y);
    return NAME(is_nan)(y) ? y : p;
}
FN R NAME(sinc)(R x) { return x == 0 ? 1 : m_sin(x * (R)3.14159265358979323846) / (x * (R)3.14159265358979323846); }
FN R NAME(selu)(R x)
{
    R t = x > 0 ? x : (R)1.6732632423543772848170429916717 * m_expm1(x);
    return (R)1.0507009873554804934193349852946 * t;
}
/* mish: tanh(log(1 + e)) = n / (n + 2) with e = exp(x), n = e (e + 2). From 20 on it is 1. */
FN R NAME(mish)(R x)
{
    R e = m_exp(x > 20 ? (R)20 : x), n = e * (e + 2);
    return x * (n / (n + 2));
}
FN R NAME(mish_slope)(R x)
{
    R c = x > 20 ? (R)20 : x, e = m_exp(c), n = e * (e + 2), r = 1 / (n + 2);
    return r * (n + 4 * (c * e) * (1 + e) * r) + (x - x); /* NaN at infinity, as in PyTorch */
}
FN R NAME(silu_backward)(R g, R x)
{
    R s = m_sigmoid(x);
    return g * s * (1 + x * (1 - s));
}
FN R NAME(gelu_tanh_slope)(R x)
{
    R k = (R)0.79788456080286535588, c = (R)0.044715, t = m_tanh(k * (x + c * x * x * x));
    return (R)0.5 * (1 + t) + (R)0.5 * x * (1 - t * t) * k * (1 + 3 * c * x * x);
}
#undef R
#undef NAME

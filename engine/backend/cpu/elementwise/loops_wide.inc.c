/* Float32 in 512-bit vectors by hand: exp and the activations built on it. Included by loops.isa.c.
 *
 * An element is 8 bytes of memory traffic, so these are bound by memory once sixteen of them take less than some twenty
 * instructions. The loops that the compiler generates from scalar_math.h take more: powers of two as two factors, so that
 * results may be subnormal, and quotients that keep the only divider busy for sixteen cycles. Here vscalefps multiplies by
 * any power of two at once, and a quotient is a product with a 14-bit reciprocal, corrected once. The last elements go
 * through a mask, so every element takes the same operations at every position. */
typedef __m512 wide;
#define OF(x)          _mm512_set1_ps(x)
#define FUSED(a, b, c) _mm512_fmadd_ps(a, b, c)

/* a / d for a finite d that is not small, to 0.6 ulp. */
INLINE wide quotient(wide a, wide d)
{
    wide r = _mm512_rcp14_ps(d), q = a * r;
    return FUSED(_mm512_fnmadd_ps(q, d, a), r, q);
}
INLINE wide magnitude(wide x) { return _mm512_abs_ps(x); }
/* y, which is not negative, with the sign of x */
INLINE wide signed_as(wide y, wide x)
{
    __m512i top = _mm512_set1_epi32((int32_t)0x80000000u);
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(top, _mm512_castps_si512(x), _mm512_castps_si512(y), 0xea));
}
/* c = k ln 2 + r; (exp(r) - 1 - r) / (r r) is the fit of degree 4, to 3e-9. */
#define REDUCED(c)                                                                                                             \
    wide t = FUSED(c, OF(1.44269504f), OF(ROUND32)), k = t - OF(ROUND32);                                                      \
    wide r = FUSED(k, OF(2.12194440e-4f), FUSED(k, OF(-0.693359375f), c));                                                     \
    wide p = FUSED(FUSED(OF(1.3814519728e-3f), r, OF(8.3687476791e-3f)), r, OF(4.1668391249e-2f));                             \
    p = FUSED(FUSED(p, r, OF(1.6666520372e-1f)), r, OF(4.9999993430e-1f));

INLINE wide exp_wide(wide x) /* 1 ulp */
{
    wide c = _mm512_min_ps(OF(89.f), _mm512_max_ps(OF(-104.f), x)); /* NaN, the second operand, propagates */
    REDUCED(c)
    return _mm512_scalef_ps(FUSED(FUSED(p, r, OF(1.f)), r, OF(1.f)), k);
}
INLINE wide tanh_wide(wide x) /* expm1(2 a) / (expm1(2 a) + 2) */
{
    wide a = magnitude(x), c = _mm512_min_ps(OF(20.f), a + a);
    REDUCED(c)
    wide s = _mm512_scalef_ps(OF(1.f), k), e = FUSED(FUSED(p, r * r, r), s, s - OF(1.f));
    return signed_as(quotient(e, e + OF(2.f)), x);
}
INLINE wide sigmoid_wide(wide x) /* by exp(-|x|), which is at most 1 */
{
    wide c = _mm512_max_ps(OF(-104.f), -magnitude(x));
    REDUCED(c)
    wide z = _mm512_scalef_ps(FUSED(FUSED(p, r, OF(1.f)), r, OF(1.f)), k);
    return quotient(_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, OF(0.f), _CMP_LT_OQ), OF(1.f), z), OF(1.f) + z);
}
/* 2^t for t = k + r, k integer: as raised_f32, to 9e-8. */
INLINE wide raised_wide(wide r, wide k, __mmask16 kept)
{
    wide p = FUSED(FUSED(OF(1.326472733e-03f), r, OF(9.671512953e-03f)), r, OF(5.550733745e-02f));
    p = FUSED(FUSED(FUSED(p, r, OF(2.402224208e-01f)), r, OF(6.931469776e-01f)), r, OF(1.f));
    return _mm512_maskz_scalef_ps(kept, p, k);
}
INLINE wide silu_wide(wide x) /* x / (1 + exp(-x)); -inf / inf is NaN */
{
    wide c = _mm512_min_ps(OF(104.f), _mm512_max_ps(OF(-90.f), x));
    wide t = FUSED(c, OF(-1.44269504f), OF(ROUND32)), k = t - OF(ROUND32);
    return x / (OF(1.f) + raised_wide(FUSED(c, OF(-1.44269504f), -k), k, 0xffff));
}
/* As gelu_f32: the tail of the normal distribution at -|x| is a power of two; from 6.5 on it is zero. */
INLINE wide gelu_wide(wide x)
{
    wide a = -magnitude(x), b = _mm512_max_ps(OF(-6.5f), a);
    wide e = FUSED(FUSED(OF(-2.372626786e-06f), b, OF(-3.433506173e-07f)), b, OF(5.975400502e-04f));
    e = FUSED(FUSED(FUSED(e, b, OF(7.663069873e-03f)), b, OF(5.289809160e-02f)), b, OF(-4.590827902e-01f));
    e = FUSED(FUSED(e, b, OF(1.151119369e+00f)), b, OF(-9.999997427e-01f));
    wide k = (e + OF(ROUND32)) - OF(ROUND32), tail = raised_wide(e - k, k, _mm512_cmp_ps_mask(a, OF(-6.5f), _CMP_NLT_UQ));
    return FUSED(_mm512_min_ps(x, b), tail, _mm512_max_ps(OF(0.f), x));
}
#define WIDE_KERNEL(op)                                                                                                        \
    static void wide_##op(void *out_, const void *const *in, unsigned scalars, int64_t n)                                      \
    {                                                                                                                          \
        float       *out = out_;                                                                                               \
        const float *a = in[0];                                                                                                \
        int64_t      i = 0;                                                                                                    \
        if (scalars) {                                                                                                         \
            float y = _mm512_cvtss_f32(op##_wide(OF(a[0])));                                                                   \
            for (; i < n; i++) out[i] = y;                                                                                     \
            return;                                                                                                            \
        }                                                                                                                      \
        for (; i + 16 <= n; i += 16) _mm512_storeu_ps(out + i, op##_wide(_mm512_loadu_ps(a + i)));                             \
        if (i == n) return;                                                                                                    \
        __mmask16 rest = (__mmask16)((1u << (n - i)) - 1);                                                                     \
        _mm512_mask_storeu_ps(out + i, rest, op##_wide(_mm512_maskz_loadu_ps(rest, a + i)));                                   \
    }
WIDE_KERNEL(exp)
WIDE_KERNEL(tanh)
WIDE_KERNEL(sigmoid)
WIDE_KERNEL(silu)
WIDE_KERNEL(gelu)
#define WIDE_ENTRY(op) { ROW_##op##_floating, LC_f32, wide_##op },
#define BY_HAND        WIDE_ENTRY(exp) WIDE_ENTRY(tanh) WIDE_ENTRY(sigmoid) WIDE_ENTRY(silu) WIDE_ENTRY(gelu)
#undef OF
#undef FUSED
#undef REDUCED

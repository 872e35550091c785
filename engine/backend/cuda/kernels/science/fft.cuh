/* Fourier transforms of lines: gathered into lines of complex numbers, transformed in place of each other by cuFFT or by the passes here, and
 * scattered. T: the complex type. Passes are Stockham's: in pass L -> L r, element j L r + t of a line is the sum over s of w^(s t) times element
 * (j + s m) L + t % L, where w is the root of unity of order L r and m = n / (L r): every pass reads and writes whole lines, in order. */
enum { DIMS = 12 };
struct fft_args {
    T          *to;
    const T    *from;
    const T    *roots; /* n of them */
    const char *in;
    char       *out;
    i64         first, lines, n, L, radix,
        half;                 /* first: the line that `to` and `from` start with; half: C2R: elements that there are */
    int ndim, real, backward; /* real: what is read or written is the real part alone */
    i64 shape[DIMS], step[DIMS], along,
        keep; /* of the side that is read or written, in elements; keep: how many of n are written */
    double scale;
};
#if VARIANT /* double */
typedef f64 R;
#else
typedef f32 R;
#endif
__device__ inline i64 line_offset(const fft_args &p, i64 line)
{
    i64 offset = 0;
    for (int d = p.ndim - 1; d >= 0; d--) offset += line % p.shape[d] * p.step[d], line /= p.shape[d];
    return offset;
}
KERNEL(gather, fft_args, p)
{
    EACH(i, p.lines * p.n)
    {
        i64  k = i % p.n, at = line_offset(p, p.first + i / p.n);
        bool above = p.half && k >= p.half; /* the other half of a Hermitian spectrum */
        i64  place = at + (above ? p.n - k : k) * p.along;
        T    v = p.real ? T(((const R *)p.in)[place]) : ((const T *)p.in)[place];
        if (above) v.im = -v.im;
        p.to[i] = v;
    }
}
KERNEL(scatter, fft_args, p)
{
    EACH(i, p.lines * p.keep)
    {
        i64 k = i % p.keep, line = i / p.keep, place = line_offset(p, p.first + line) + k * p.along;
        T   v = p.from[line * p.n + k] * (R)p.scale;
        if (p.real) ((R *)p.out)[place] = v.re;
        else ((T *)p.out)[place] = v;
    }
}
KERNEL(make_roots, fft_args, p)
{
    EACH(i, p.n)
    {
        double x = 2 * (double)i / (double)p.n;
        p.to[i] = T((R)cospi(x), (R)(p.backward ? sinpi(x) : -sinpi(x)));
    }
}
KERNEL(pass, fft_args, p)
{
    i64 whole = p.L * p.radix, m = p.n / whole;
    EACH(i, p.lines * p.n)
    {
        i64      at = i % p.n, j = at / whole, t = at % whole, k = t % p.L;
        const T *x = p.from + (i - at);
        if (p.radix <= 16) {
            T sum(0);
            for (i64 s = 0; s < p.radix; s++) sum += x[(j + s * m) * p.L + k] * p.roots[s * t % whole * m];
            p.to[i] = sum;
        } else { /* many terms: summed in double */
            c128 sum(0);
            for (i64 s = 0; s < p.radix; s++) sum += c128(x[(j + s * m) * p.L + k]) * c128(p.roots[s * t % whole * m]);
            p.to[i] = T(sum);
        }
    }
}

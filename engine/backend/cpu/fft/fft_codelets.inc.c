/* Transforms of 2 to 16 elements in registers, on vectors: included once per element type, with T, NAME and LANES defined. In place, in order.
 * w: cosine and sine of -2 pi k / r for the whole r; a codelet inside a larger one reads it in steps. */
typedef T NAME(vec) __attribute__((vector_size(LANES * sizeof(T)), aligned(sizeof(T)), may_alias));
typedef struct {
    NAME(vec) r, i;
} NAME(cx);
#define vec NAME(vec)
#define cx  NAME(cx)

INLINE cx NAME(add)(cx a, cx b) { return (cx){ a.r + b.r, a.i + b.i }; }
INLINE cx NAME(sub)(cx a, cx b) { return (cx){ a.r - b.r, a.i - b.i }; }
INLINE cx NAME(mul)(cx a, T c, T s) { return (cx){ a.r * c - a.i * s, a.r * s + a.i * c }; }
INLINE cx NAME(mulv)(cx a, vec c, vec s) { return (cx){ a.r * c - a.i * s, a.r * s + a.i * c }; }
INLINE cx NAME(turned)(cx a) { return (cx){ a.i, -a.r }; } /* times -i */

INLINE void NAME(dft2)(cx *x, UNUSED const T *w, UNUSED int step)
{
    cx a = x[0];
    x[0] = NAME(add)(a, x[1]), x[1] = NAME(sub)(a, x[1]);
}
INLINE void NAME(dft4)(cx *x, UNUSED const T *w, UNUSED int step)
{
    cx a = NAME(add)(x[0], x[2]), b = NAME(sub)(x[0], x[2]), c = NAME(add)(x[1], x[3]), d = NAME(turned)(NAME(sub)(x[1], x[3]));
    x[0] = NAME(add)(a, c), x[2] = NAME(sub)(a, c), x[1] = NAME(add)(b, d), x[3] = NAME(sub)(b, d);
}
INLINE void NAME(dft8)(cx *x, UNUSED const T *w, UNUSED int step)
{
    const T half = (T)0.70710678118654752440;
    cx      e[4] = { x[0], x[2], x[4], x[6] }, o[4] = { x[1], x[3], x[5], x[7] };
    NAME(dft4)(e, NULL, 0), NAME(dft4)(o, NULL, 0);
    o[1] = (cx){ (o[1].r + o[1].i) * half, (o[1].i - o[1].r) * half };
    o[2] = NAME(turned)(o[2]);
    o[3] = (cx){ (o[3].i - o[3].r) * half, (o[3].r + o[3].i) * -half };
    UNROLL for (int k = 0; k < 4; k++) x[k] = NAME(add)(e[k], o[k]), x[k + 4] = NAME(sub)(e[k], o[k]);
}
/* Odd n, by sums and differences of opposite elements. */
INLINE void NAME(odd)(cx *x, const int n, const T *w, const int step)
{
    const int h = n / 2;
    cx        a[FFT_ODD / 2 + 1], b[FFT_ODD / 2 + 1], x0 = x[0], sum = x0;
    UNROLL for (int i = 1; i <= h; i++)
    {
        a[i] = NAME(add)(x[i], x[n - i]), b[i] = NAME(sub)(x[i], x[n - i]);
        sum = NAME(add)(sum, a[i]);
    }
    x[0] = sum;
    UNROLL for (int k = 1; k <= h; k++)
    {
        cx u = x0, v = { { 0 }, { 0 } };
        UNROLL for (int i = 1; i <= h; i++)
        {
            T c = w[2 * step * (i * k % n)], s = w[2 * step * (i * k % n) + 1];
            u.r += a[i].r * c, u.i += a[i].i * c;
            v.r += b[i].r * s, v.i += b[i].i * s;
        }
        x[k] = (cx){ u.r - v.i, u.i + v.r }, x[n - k] = (cx){ u.r + v.i, u.i - v.r };
    }
}
#define ODD(n)                                                                                                                 \
    INLINE void NAME(dft##n)(cx * x, const T *w, int step) { NAME(odd)(x, n, w, step); }
ODD(3)
ODD(5)
ODD(7)
ODD(11)
ODD(13)
#undef ODD
/* n = p q without a common factor: element (i q + j p) mod n, frequency (k q q' + l p p') mod n, where q q' = 1 mod p and p p' = 1 mod q. No twiddles. */
#define COPRIME(n, p, q, qq, pp)                                                                                               \
    INLINE void NAME(dft##n)(cx * x, const T *w, int step)                                                                     \
    {                                                                                                                          \
        cx y[p][q], z[p];                                                                                                      \
        UNROLL for (int i = 0; i < p; i++)                                                                                     \
        {                                                                                                                      \
            UNROLL for (int j = 0; j < q; j++) y[i][j] = x[(i * q + j * p) % n];                                               \
            NAME(dft##q)(y[i], w, step * p);                                                                                   \
        }                                                                                                                      \
        UNROLL for (int l = 0; l < q; l++)                                                                                     \
        {                                                                                                                      \
            UNROLL for (int i = 0; i < p; i++) z[i] = y[i][l];                                                                 \
            NAME(dft##p)(z, w, step * q);                                                                                      \
            UNROLL for (int k = 0; k < p; k++) x[(k * q * qq + l * p * pp) % n] = z[k];                                        \
        }                                                                                                                      \
    }
COPRIME(6, 2, 3, 1, 2)
COPRIME(10, 2, 5, 1, 3)
COPRIME(12, 3, 4, 1, 3)
COPRIME(14, 2, 7, 1, 4)
COPRIME(15, 3, 5, 2, 2)
#undef COPRIME
/* n = p p, with twiddles between. */
#define SQUARE(n, p)                                                                                                           \
    INLINE void NAME(dft##n)(cx * x, const T *w, int step)                                                                     \
    {                                                                                                                          \
        cx y[p][p], z[p];                                                                                                      \
        UNROLL for (int j = 0; j < p; j++)                                                                                     \
        {                                                                                                                      \
            UNROLL for (int i = 0; i < p; i++) z[i] = x[i * p + j];                                                            \
            NAME(dft##p)(z, w, step * p);                                                                                      \
            UNROLL for (int k = 0; k < p; k++) y[k][j] = 4 * j * k == n ? NAME(turned)(z[k])                                   \
                                                         : j && k                                                              \
                                                             ? NAME(mul)(z[k], w[2 * step * j * k], w[2 * step * j * k + 1])   \
                                                             : z[k];                                                           \
        }                                                                                                                      \
        UNROLL for (int k = 0; k < p; k++)                                                                                     \
        {                                                                                                                      \
            NAME(dft##p)(y[k], w, step * p);                                                                                   \
            UNROLL for (int l = 0; l < p; l++) x[k + p * l] = y[k][l];                                                         \
        }                                                                                                                      \
    }
SQUARE(9, 3)
SQUARE(16, 4)
#undef SQUARE

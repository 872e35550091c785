/* Passes, convolutions, loads and stores for one element type: T, NAME, LANES, ZIP_LOW, ZIP_HIGH, EVENS, ODDS and REVERSED are defined. */
#include "fft_codelets.inc.c"

INLINE vec  NAME(at)(const T *p) { return *(const vec *)p; }
INLINE void NAME(put)(T *p, vec v) { *(vec *)p = v; }

/* Where the next vector of a row of s starts, if there is one: the last overlaps the one before. A row shorter than a vector is one vector all the
 * same: what it writes behind its row is written again by the rows that follow, in order, or lies in the pad. */
#define EACH_VECTOR(q, s) for (int64_t q = 0; q >= 0; q = q + LANES >= (s) ? -1 : q + 2 * LANES <= (s) ? q + LANES : (s)-LANES)

/* ---- passes ---- */

#define PASS(radix)                                                                                                            \
    INLINE void NAME(rows##radix)(const fft_pass *p, const T *xr, const T *xi, T *yr, T *yi, int64_t j, const bool turns)      \
    {                                                                                                                          \
        const int64_t m = p->m, s = p->s, from = j * s, to = j * radix * s;                                                    \
        const T      *w = p->roots, *t = (const T *)p->twiddle + 2 * (radix - 1) * j;                                          \
        EACH_VECTOR(q, s)                                                                                                      \
        {                                                                                                                      \
            cx x[radix];                                                                                                       \
            UNROLL for (int i = 0; i < radix; i++) x[i] =                                                                      \
                (cx){ NAME(at)(xr + from + i * m * s + q), NAME(at)(xi + from + i * m * s + q) };                              \
            NAME(dft##radix)(x, w, 1);                                                                                         \
            UNROLL for (int k = 0; k < radix; k++)                                                                             \
            {                                                                                                                  \
                cx y = turns && k ? NAME(mul)(x[k], t[2 * k - 2], t[2 * k - 1]) : x[k];                                        \
                NAME(put)(yr + to + k * s + q, y.r), NAME(put)(yi + to + k * s + q, y.i);                                      \
            }                                                                                                                  \
        }                                                                                                                      \
    }                                                                                                                          \
    static void NAME(pass##radix)(const fft_pass *p, const T *restrict xr, const T *restrict xi, T *restrict yr,               \
                                  T *restrict yi)                                                                              \
    {                                                                                                                          \
        NAME(rows##radix)(p, xr, xi, yr, yi, 0, false);                                                                        \
        for (int64_t j = 1; j < p->m; j++) NAME(rows##radix)(p, xr, xi, yr, yi, j, true);                                      \
    }
/* The first pass over a single line: vectors are neighbours j, and the results of each j go side by side. */
#define FIRST(radix, PLACE)                                                                                                    \
    static void NAME(first##radix)(const fft_pass *p, const T *restrict xr, const T *restrict xi, T *restrict yr,              \
                                   T *restrict yi)                                                                             \
    {                                                                                                                          \
        const int64_t m = p->m;                                                                                                \
        const T      *w = p->roots, *t = p->twiddle;                                                                           \
        EACH_VECTOR(j, m)                                                                                                      \
        {                                                                                                                      \
            cx  x[radix];                                                                                                      \
            vec re[radix], im[radix];                                                                                          \
            UNROLL for (int i = 0; i < radix; i++) x[i] = (cx){ NAME(at)(xr + i * m + j), NAME(at)(xi + i * m + j) };          \
            NAME(dft##radix)(x, w, 1);                                                                                         \
            re[0] = x[0].r, im[0] = x[0].i;                                                                                    \
            UNROLL for (int k = 1; k < radix; k++)                                                                             \
            {                                                                                                                  \
                cx y = NAME(mulv)(x[k], NAME(at)(t + (2 * k - 2) * m + j), NAME(at)(t + (2 * k - 1) * m + j));                 \
                re[k] = y.r, im[k] = y.i;                                                                                      \
            }                                                                                                                  \
            PLACE(yr + j * radix, re, radix);                                                                                  \
            PLACE(yi + j * radix, im, radix);                                                                                  \
        }                                                                                                                      \
    }
/* r vectors interleaved, r a power of two: rounds of zipping the first half with the second. */
INLINE void NAME(interleave)(T *y, vec *a, const int r)
{
    vec b[16];
    UNROLL for (int round = 1; round < r; round *= 2)
    {
        UNROLL for (int i = 0; i < r / 2; i++) b[2 * i] = ZIP_LOW(a[i], a[i + r / 2]),
                                                     b[2 * i + 1] = ZIP_HIGH(a[i], a[i + r / 2]);
        UNROLL for (int i = 0; i < r; i++) a[i] = b[i];
    }
    UNROLL for (int i = 0; i < r; i++) NAME(put)(y + i * LANES, a[i]);
}
static __attribute__((noinline)) void NAME(scatter)(T *y, const vec *a, int r) /* any r: through memory */
{
    const T *x = (const T *)a;
    for (int l = 0; l < LANES; l++)
        for (int k = 0; k < r; k++) y[l * r + k] = x[k * LANES + l];
}
#define EACH_RADIX(X) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)
EACH_RADIX(PASS)
FIRST(2, NAME(interleave))
FIRST(4, NAME(interleave))
FIRST(8, NAME(interleave))
FIRST(16, NAME(interleave))
FIRST(3, NAME(scatter))
FIRST(5, NAME(scatter))
FIRST(6, NAME(scatter))
FIRST(7, NAME(scatter))
FIRST(9, NAME(scatter))
FIRST(10, NAME(scatter))
FIRST(11, NAME(scatter))
FIRST(12, NAME(scatter))
FIRST(13, NAME(scatter))
FIRST(14, NAME(scatter))
FIRST(15, NAME(scatter))

/* Primes above the codelets. */
static void NAME(pass_odd)(const fft_pass *p, const T *restrict xr, const T *restrict xi, T *restrict yr, T *restrict yi)
{
    const int     r = p->radix;
    const int64_t m = p->m, s = p->s;
    for (int64_t j = 0; j < m; j++) {
        const T *t = (const T *)p->twiddle + 2 * (r - 1) * j;
        EACH_VECTOR(q, s)
        {
            cx x[FFT_ODD];
            for (int i = 0; i < r; i++) x[i] = (cx){ NAME(at)(xr + (j + i * m) * s + q), NAME(at)(xi + (j + i * m) * s + q) };
            NAME(odd)(x, r, p->roots, 1);
            for (int k = 0; k < r; k++) {
                cx y = m > 1 && k ? NAME(mul)(x[k], t[2 * k - 2], t[2 * k - 1]) : x[k];
                NAME(put)(yr + (j * r + k) * s + q, y.r), NAME(put)(yi + (j * r + k) * s + q, y.i);
            }
        }
    }
}
typedef void (*NAME(pass))(const fft_pass *, const T *restrict, const T *restrict, T *restrict, T *restrict);
#define ENTRY(r)       [r] = NAME(pass##r),
#define FIRST_ENTRY(r) [r] = NAME(first##r),
static const NAME(pass) NAME(passes)[] = { EACH_RADIX(ENTRY) }, NAME(firsts)[] = { EACH_RADIX(FIRST_ENTRY) };

static void NAME(run_direct)(const fft_plan *plan, int lanes, fft_planes *a, fft_planes *b)
{
    for (int k = 0; k < plan->n_passes; k++) {
        fft_pass pass = plan->pass[k];
        pass.s *= lanes;
        NAME(pass)
        f = pass.radix > FFT_CODELETS ? NAME(pass_odd)
            : lanes == 1 && k == 0    ? NAME(firsts)[pass.radix]
                                      : NAME(passes)[pass.radix];
        f(&pass, a->re, a->im, b->re, b->im);
        fft_planes made = *b;
        *b = *a, *a = made;
    }
}

/* ---- convolutions ---- */

/* x[k] *= w[k], n rows. */
static void NAME(multiply)(T *xr, T *xi, int lanes, int64_t n, const T *w)
{
    if (lanes == 1) {
        for (int64_t k = 0; k < n; k++) {
            T r = xr[k], i = xi[k];
            xr[k] = r * w[2 * k] - i * w[2 * k + 1], xi[k] = r * w[2 * k + 1] + i * w[2 * k];
        }
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        cx x = NAME(mul)((cx){ NAME(at)(xr + k * LANES), NAME(at)(xi + k * LANES) }, w[2 * k], w[2 * k + 1]);
        NAME(put)(xr + k * LANES, x.r), NAME(put)(xi + k * LANES, x.i);
    }
}
/* b is convolved with what plan->spectrum is of. The result is in b; both b and c are swapped in their parts: an inverse transform is one of swapped
 * planes. */
static void NAME(convolve)(const fft_plan *plan, int lanes, fft_planes *b, fft_planes *c, T *sum_re, T *sum_im)
{
    NAME(run_direct)(plan->inner, lanes, b, c);
    if (sum_re) memcpy(sum_re, b->re, (size_t)lanes * sizeof(T)), memcpy(sum_im, b->im, (size_t)lanes * sizeof(T));
    NAME(multiply)(b->re, b->im, lanes, plan->inner->n, plan->spectrum);
    fft_planes back = { b->im, b->re }, work = { c->im, c->re };
    NAME(run_direct)(plan->inner, lanes, &back, &work);
    *b = (fft_planes){ back.im, back.re }, *c = (fft_planes){ work.im, work.re };
}
static void NAME(run_rader)(const fft_plan *plan, int lanes, fft_planes *a, fft_planes *b, fft_planes *c)
{
    const int64_t n = plan->n - 1;
    const size_t  row = (size_t)lanes * sizeof(T);
    for (int part = 0; part < 2; part++) {
        const T *from = part ? a->im : a->re;
        T       *to = part ? b->im : b->re;
        if (lanes == 1)
            for (int64_t k = 0; k < n; k++) to[k] = from[plan->gather[k]];
        else
            for (int64_t k = 0; k < n; k++) memcpy(to + k * lanes, from + plan->gather[k] * (int64_t)lanes, row);
    }
    T sum[2][FFT_LANES], first[2][FFT_LANES];
    memcpy(first[0], a->re, row), memcpy(first[1], a->im, row);
    NAME(convolve)(plan, lanes, b, c, sum[0], sum[1]);
    for (int part = 0; part < 2; part++) {
        const T *from = part ? b->im : b->re;
        T       *to = part ? a->im : a->re;
        for (int l = 0; l < lanes; l++) to[l] = first[part][l] + sum[part][l];
        if (lanes == 1)
            for (int64_t k = 0; k < n; k++) to[plan->scatter[k]] = first[part][0] + from[k];
        else
            for (int64_t k = 0; k < n; k++)
                NAME(put)(to + plan->scatter[k] * (int64_t)LANES, NAME(at)(first[part]) + NAME(at)(from + k * LANES));
    }
}
static void NAME(run_bluestein)(const fft_plan *plan, int lanes, fft_planes *a, fft_planes *b, fft_planes *c)
{
    const size_t line = (size_t)(plan->n * lanes), rest = (size_t)(plan->inner->n * lanes) - line;
    NAME(multiply)(a->re, a->im, lanes, plan->n, plan->chirp);
    memcpy(b->re, a->re, line * sizeof(T)), memcpy(b->im, a->im, line * sizeof(T));
    memset((T *)b->re + line, 0, rest * sizeof(T)), memset((T *)b->im + line, 0, rest * sizeof(T));
    NAME(convolve)(plan, lanes, b, c, NULL, NULL);
    NAME(multiply)(b->re, b->im, lanes, plan->n, plan->chirp);
    memcpy(a->re, b->re, line * sizeof(T)), memcpy(a->im, b->im, line * sizeof(T));
}
static void NAME(run)(const fft_plan *plan, int lanes, fft_planes *a, fft_planes *b, fft_planes *c)
{
    if (plan->algorithm == FFT_DIRECT) NAME(run_direct)(plan, lanes, a, b);
    else if (plan->algorithm == FFT_RADER) NAME(run_rader)(plan, lanes, a, b, c);
    else NAME(run_bluestein)(plan, lanes, a, b, c);
}

/* ---- lines in memory ---- */

static bool NAME(adjacent)(const fft_lines *l, int64_t step)
{
    for (int k = 1; k < LANES; k++)
        if (l->offset[k] != l->offset[0] + k * step) return false;
    return true;
}
/* LANES rows of LANES numbers, transposed. */
INLINE void NAME(transpose)(vec *a)
{
    vec b[LANES];
    UNROLL for (int round = 1; round < LANES; round *= 2)
    {
        UNROLL for (int i = 0; i < LANES / 2; i++)
        {
            b[2 * i] = ZIP_LOW(a[i], a[i + LANES / 2]), b[2 * i + 1] = ZIP_HIGH(a[i], a[i + LANES / 2]);
        }
        UNROLL for (int i = 0; i < LANES; i++) a[i] = b[i];
    }
}
static void NAME(load_line)(T *re, T *im, const fft_lines *from, int64_t n)
{
    const T *x = (const T *)from->base + from->offset[0];
    int64_t  e = 0;
    if (from->real) {
        if (from->step == 1) memcpy(re, x, (size_t)n * sizeof(T));
        else
            for (; e < n; e++) re[e] = x[e * from->step];
        memset(im, 0, (size_t)n * sizeof(T));
        return;
    }
    if (from->step == 2 && from->apart == 1)
        for (; e + LANES <= n; e += LANES) {
            vec a = NAME(at)(x + 2 * e), b = NAME(at)(x + 2 * e + LANES);
            NAME(put)(re + e, EVENS(a, b)), NAME(put)(im + e, ODDS(a, b));
        }
    for (; e < n; e++) re[e] = x[e * from->step], im[e] = x[e * from->step + from->apart];
}
static void NAME(store_line)(const fft_lines *to, const T *re, const T *im, int64_t n, T scale)
{
    T      *y = (T *)to->base + to->offset[0];
    int64_t e = 0;
    if (to->real) {
        for (; e < n; e++) y[e * to->step] = re[e] * scale;
        return;
    }
    if (to->step == 2 && to->apart == 1)
        for (; e + LANES <= n; e += LANES) {
            vec a = NAME(at)(re + e) * scale, b = NAME(at)(im + e) * scale;
            NAME(put)(y + 2 * e, ZIP_LOW(a, b)), NAME(put)(y + 2 * e + LANES, ZIP_HIGH(a, b));
        }
    for (; e < n; e++) y[e * to->step] = re[e] * scale, y[e * to->step + to->apart] = im[e] * scale;
}
static void NAME(load)(fft_planes to, int lanes, const fft_lines *from, int64_t n, int count)
{
    T       *re = to.re, *im = to.im;
    const T *base = (const T *)from->base;
    int64_t  e = 0, step = from->step, apart = from->apart;
    if (lanes == 1) return NAME(load_line)(re, im, from, n);
    if (from->real) memset(im, 0, (size_t)(n * LANES) * sizeof(T));
    if (count == LANES && !from->real && apart == 1 && step == 2) {
        for (; e + LANES / 2 <= n; e += LANES / 2) {
            vec a[LANES];
            UNROLL for (int l = 0; l < LANES; l++) a[l] = NAME(at)(base + from->offset[l] + 2 * e);
            NAME(transpose)(a);
            UNROLL for (int k = 0; k < LANES / 2; k++)
            {
                NAME(put)(re + (e + k) * LANES, a[2 * k]), NAME(put)(im + (e + k) * LANES, a[2 * k + 1]);
            }
        }
    } else if (count == LANES && !from->real && apart == 1 && NAME(adjacent)(from, 2)) {
        for (base += from->offset[0]; e < n; e++) {
            vec a = NAME(at)(base + e * step), b = NAME(at)(base + e * step + LANES);
            NAME(put)(re + e * LANES, EVENS(a, b)), NAME(put)(im + e * LANES, ODDS(a, b));
        }
    } else if (count == LANES && NAME(adjacent)(from, 1)) {
        for (base += from->offset[0]; e < n; e++) {
            NAME(put)(re + e * LANES, NAME(at)(base + e * step));
            if (!from->real) NAME(put)(im + e * LANES, NAME(at)(base + e * step + apart));
        }
    }
    for (; e < n; e++)
        for (int l = 0; l < LANES; l++) {
            const T *x = base + from->offset[l < count ? l : count - 1] + e * step;
            re[e * LANES + l] = x[0];
            if (!from->real) im[e * LANES + l] = x[apart];
        }
}
static void NAME(store)(const fft_lines *to, int lanes, fft_planes from, int64_t n, int count, double by)
{
    const T *re = from.re, *im = from.im, scale = (T)by;
    T       *base = (T *)to->base;
    int64_t  e = 0, step = to->step, apart = to->apart;
    if (lanes == 1) return NAME(store_line)(to, re, im, n, scale);
    if (count == LANES && !to->real && apart == 1 && step == 2) {
        for (; e + LANES / 2 <= n; e += LANES / 2) {
            vec a[LANES];
            UNROLL for (int k = 0; k < LANES / 2; k++)
            {
                a[2 * k] = NAME(at)(re + (e + k) * LANES) * scale, a[2 * k + 1] = NAME(at)(im + (e + k) * LANES) * scale;
            }
            NAME(transpose)(a);
            UNROLL for (int l = 0; l < LANES; l++) NAME(put)(base + to->offset[l] + 2 * e, a[l]);
        }
    } else if (count == LANES && !to->real && apart == 1 && NAME(adjacent)(to, 2)) {
        for (base += to->offset[0]; e < n; e++) {
            vec a = NAME(at)(re + e * LANES) * scale, b = NAME(at)(im + e * LANES) * scale;
            NAME(put)(base + e * step, ZIP_LOW(a, b)), NAME(put)(base + e * step + LANES, ZIP_HIGH(a, b));
        }
    } else if (count == LANES && NAME(adjacent)(to, 1)) {
        for (base += to->offset[0]; e < n; e++) {
            NAME(put)(base + e * step, NAME(at)(re + e * LANES) * scale);
            if (!to->real) NAME(put)(base + e * step + apart, NAME(at)(im + e * LANES) * scale);
        }
    }
    for (; e < n; e++)
        for (int l = 0; l < count; l++) {
            T *y = base + to->offset[l] + e * step;
            y[0] = re[e * LANES + l] * scale;
            if (!to->real) y[apart] = im[e * LANES + l] * scale;
        }
}

/* ---- real lines as complex ones of half the length ----
 * z[e] = x[2e] + i x[2e + 1] has the spectrum Z. With E = (Z[k] + conj Z[h-k]) / 2 and P = i w^k (Z[k] - conj Z[h-k]) / 2, the spectrum of x is X[k] = E - P,
 * X[h-k] = conj(E + P). Backward, where nothing is divided: with E = X[k] + conj X[h-k] and P = i conj(w^k) (X[k] - conj X[h-k]), Z[k] = E + P and
 * Z[h-k] = conj(E - P). Both ways are one function of a pair. */
typedef struct {
    cx low, high;
} NAME(pair);
INLINE NAME(pair) NAME(split_pair)(cx a, cx b, vec c, vec s) /* c, s: half of w^k */
{
    const T half = (T)0.5;
    cx      e = { (a.r + b.r) * half, (a.i - b.i) * half }, o = { a.r - b.r, a.i + b.i }, t = NAME(mulv)(o, c, s);
    cx      p = { -t.i, t.r };
    return (NAME(pair)){ NAME(sub)(e, p), { e.r + p.r, -(e.i + p.i) } };
}
INLINE NAME(pair) NAME(join_pair)(cx a, cx b, vec c, vec s)
{
    cx e = { a.r + b.r, a.i - b.i }, o = { a.r - b.r, a.i + b.i }, t = NAME(mulv)(o, c, -s);
    cx p = { -t.i, t.r };
    return (NAME(pair)){ NAME(add)(e, p), { e.r - p.r, -(e.i - p.i) } };
}
/* w: cosines of all k, then sines of all k, h / 2 + 1 of each, and a pad. */
#define PAIRS(name, SCALE, ...)                                                                                                \
    static void NAME(name)(fft_planes to, fft_planes from, int lanes, int64_t h, const void *w)                                \
    {                                                                                                                          \
        const T *xr = from.re, *xi = from.im, *c = w, *s = c + h / 2 + 1 + FFT_PAD;                                            \
        T       *yr = to.re, *yi = to.im;                                                                                      \
        int64_t  k = 1;                                                                                                        \
        for (int l = 0; l < lanes; l++) __VA_ARGS__                                                                            \
        if (lanes == 1)                                                                                                        \
            for (; k + LANES <= (h + 1) / 2; k += LANES) {                                                                     \
                const int64_t far = h - k - LANES + 1;                                                                         \
                cx            a = { NAME(at)(xr + k), NAME(at)(xi + k) },                                                      \
                   b = { REVERSED(NAME(at)(xr + far)), REVERSED(NAME(at)(xi + far)) };                                         \
                NAME(pair) y = NAME(name##_pair)(a, b, NAME(at)(c + k) * SCALE, NAME(at)(s + k) * SCALE);                      \
                NAME(put)(yr + k, y.low.r), NAME(put)(yi + k, y.low.i);                                                        \
                NAME(put)(yr + far, REVERSED(y.high.r)), NAME(put)(yi + far, REVERSED(y.high.i));                              \
            }                                                                                                                  \
        for (; k <= h / 2; k++) {                                                                                              \
            const int64_t at = k * lanes, far = (h - k) * lanes;                                                               \
            vec           none = { 0 }, cs = none + c[k] * SCALE, sn = none + s[k] * SCALE;                                    \
            cx            a, b;                                                                                                \
            if (lanes == 1) a = (cx){ none + xr[at], none + xi[at] }, b = (cx){ none + xr[far], none + xi[far] };              \
            else a = (cx){ NAME(at)(xr + at), NAME(at)(xi + at) }, b = (cx){ NAME(at)(xr + far), NAME(at)(xi + far) };         \
            NAME(pair) y = NAME(name##_pair)(a, b, cs, sn);                                                                    \
            if (lanes == 1) yr[at] = y.low.r[0], yi[at] = y.low.i[0], yr[far] = y.high.r[0], yi[far] = y.high.i[0];            \
            else {                                                                                                             \
                NAME(put)(yr + at, y.low.r), NAME(put)(yi + at, y.low.i);                                                      \
                NAME(put)(yr + far, y.high.r), NAME(put)(yi + far, y.high.i);                                                  \
            }                                                                                                                  \
        }                                                                                                                      \
    }
PAIRS(split, (T)0.5, {
    T r = xr[l], i = xi[l];
    yr[l] = r + i, yi[l] = 0, yr[h * lanes + l] = r - i, yi[h * lanes + l] = 0;
})
PAIRS(join, (T)1, {
    T first = xr[l], last = xr[h * lanes + l];
    yr[l] = first + last, yi[l] = first - last;
})

static void NAME(turn)(fft_planes x, UNUSED int lanes, int64_t n1, const void *first, const void *lane)
{
    const T *f = first, *each = lane;
    T       *xr = x.re, *xi = x.im;
    for (int64_t k = 1; k < n1; k++) {
        cx y = { NAME(at)(xr + k * LANES), NAME(at)(xi + k * LANES) };
        y = NAME(mulv)(y, NAME(at)(each + 2 * k * LANES), NAME(at)(each + (2 * k + 1) * LANES));
        y = NAME(mul)(y, f[2 * k], f[2 * k + 1]);
        NAME(put)(xr + k * LANES, y.r), NAME(put)(xi + k * LANES, y.i);
    }
}

#undef PAIRS
#undef ENTRY
#undef FIRST_ENTRY
#undef EACH_RADIX
#undef FIRST
#undef PASS
#undef EACH_VECTOR
#undef cx
#undef vec
#undef T
#undef NAME
#undef LANES
#undef ZIP_LOW
#undef ZIP_HIGH
#undef EVENS
#undef ODDS
#undef REVERSED

/* Fourier transforms of lines: plans (fft_plan.c), the kernels that run them (fft_lines.isa.o3.c, compiled per instruction set) and the driver over
 * tensors (fft.c).
 *
 * Representation. A transform works on planes: the real parts of all elements, then, elsewhere, the imaginary parts. An element is a row of `lanes`
 * numbers: one line at a time has one lane, a group of lines one lane per line, as many as a vector has. A pass of radix r over rows reads r of
 * them at a time, and every operation is between whole vectors: no kernel shuffles, but the first pass of a single line and what loads and stores lines.
 *
 * A plan is one of three:
 *   direct     n is a product of radices: Stockham passes from one pair of planes to the other, which leave the result in order
 *   Rader      n is a prime and n - 1 is such a product: a cyclic convolution of length n - 1
 *   Bluestein  any other n: a convolution of length at least 2n - 1, with a chirp
 * Twiddles are computed in a wider type and rounded once. */
#pragma once
#include "../../args_fft.h"

enum {
    FFT_CODELETS = 16, /* radices 2 .. 16 have code of their own */
    FFT_ODD = 61,      /* primes up to this are radices too, summed directly */
    FFT_PASSES = 40,
    FFT_PAD = 32, /* numbers behind a plane that vectors may touch */
    FFT_LANES = 16
};

typedef struct {
    int     radix;
    int64_t m, s; /* rows: element (j + i m) s + q becomes (j r + k) s + q, for j < m, q < s */
    const void *
        twiddle; /* by j, then k = 1 .. r-1: cosine, sine. Of a first pass with one lane: by k, cosines of all j, then sines of all j */
    const void *roots; /* cosine and sine of -2 pi k / r, k < r */
} fft_pass;

/* What a plan is for; with its length and element type, the key of the cache. */
typedef enum {
    FFT_GROUP,  /* lines side by side, a vector's worth of lanes */
    FFT_SINGLE, /* one line, in one lane */
    FFT_HALVES, /* no transform: the twiddles between a real line of 2n numbers and a complex one of n */
    FFT_LONG    /* one line in memory, in two rounds of groups */
} fft_role;
typedef enum { FFT_DIRECT, FFT_RADER, FFT_BLUESTEIN } fft_algorithm;
typedef struct fft_plan fft_plan;
struct fft_plan {
    int64_t         n;
    lc_dtype        real; /* f32, f64 */
    fft_role        role;
    fft_algorithm   algorithm;
    int             n_passes;
    fft_pass        pass[FFT_PASSES];
    const fft_plan *inner;            /* Rader, Bluestein: of the convolution; direct, and of the same role */
    const int32_t  *gather, *scatter; /* Rader: (n - 1) powers of a generator, and of its inverse */
    const void     *chirp;            /* Bluestein: (n, 2) exp(-i pi k^2 / n) */
    const void     *spectrum;         /* Rader, Bluestein: (inner n, 2) of what the line is convolved with, over inner n */
    const void     *halves;           /* FFT_HALVES: cosines, then sines, of -2 pi k / 2n for k <= n / 2, each with a pad */
    /* FFT_LONG, direct: n = n1 n2, element i1 n2 + i2, frequency k1 + n1 k2. Groups of columns, twiddles, groups of rows. */
    const fft_plan *columns, *rows; /* of n1, n2 */
    const double   *coarse, *fine;  /* exp(-2 pi i t / n) = coarse[t / stride] fine[t % stride] */
    int64_t         stride;
    const void     *lane; /* (n1, 2, lanes) exp(-2 pi i k1 l / n) */
    /* the cache's */
    atomic_int users;
    int64_t    used; /* when, in look-ups */
    struct {
        void  *at;
        size_t bytes;
    } block[4];
};
static inline int64_t fft_n1(const fft_plan *plan) { return plan->columns->n; }

typedef struct {
    void *re, *im;
} fft_planes;

/* Where lines are. Element e of line l: real part at base + offset[l] + e * step, imaginary part `apart` behind it; in numbers, not bytes. */
typedef struct {
    char          *base;
    const int64_t *offset;
    int64_t        step, apart;
    bool           real; /* there are no imaginary parts: they are zero, or are not stored */
} fft_lines;

typedef struct {
    int lanes; /* numbers in a vector */
    /* a: the line or lines; b, c: workspace. The result is in what a is afterwards; c is for convolutions only */
    void (*run)(const fft_plan *plan, int lanes, fft_planes *a, fft_planes *b, fft_planes *c);
    void (*load)(fft_planes to, int lanes, const fft_lines *from, int64_t n, int count);
    void (*store)(const fft_lines *to, int lanes, fft_planes from, int64_t n, int count, double scale);
    /* A real line of 2h numbers went as h complex ones: its spectrum of h + 1; w: exp(-2 pi i k / 2h), k <= h / 2. And back. */
    void (*split)(fft_planes to, fft_planes from, int lanes, int64_t h, const void *w);
    void (*join)(fft_planes to, fft_planes from, int lanes, int64_t h, const void *w);
    /* rows k of x times exp(-2 pi i k (first + lane) / n): first[] (n1, 2) for lane 0, lane[] (n1, 2, lanes) */
    void (*turn)(fft_planes x, int lanes, int64_t n1, const void *first, const void *lane);
} fft_kernels;
typedef struct {
    fft_kernels of[2]; /* f32, f64 */
} lc_ffts;

/* Plans: held until given back. NULL after lc_fail: no memory. */
const fft_plan *fft_plan_get(fft_role role, int64_t n, lc_dtype real);
void            fft_plan_put(const fft_plan *plan);    /* NULL is allowed */
bool            fft_single_fits(int64_t n, int lanes); /* whether the first pass over one line has a vector's worth of work */
/* Numbers of workspace that planes a, b and c of a plan take with this many lanes; fft_planes_at makes them there. */
int64_t            fft_workspace(const fft_plan *plan, int lanes);
void               fft_planes_at(void *workspace, const fft_plan *plan, int lanes, fft_planes planes[3]);
const fft_kernels *fft_kernels_of(lc_dtype real);
/* A long line of contiguous complex numbers, to elements that are `step` apart, their parts `apart`. work: fft_long_work numbers. -1: no memory. */
int     fft_long_run(const fft_plan *plan, char *to, int64_t step, int64_t apart, const char *from, char *work, bool backward,
                     double scale);
int64_t fft_long_work(const fft_plan *plan);

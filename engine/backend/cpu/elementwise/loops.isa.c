/* Elementwise kernels. Compiled once per instruction set; LC_ISA names the list this build exports, LC_BASELINE says that
 * this one must be complete. A wider build inherits what it leaves out (cpu.c): compile time and size grow only where speed
 * does.
 *
 * Every row of scalar.def becomes, per dtype, a scalar function and a kernel that inlines it into a loop of loops.inc.c. */
#include "../convert.h"
#include <string.h>
#include "../kernels.h"
#ifdef __F16C__
#include <immintrin.h>
#endif
#pragma GCC diagnostic ignored "-Wtype-limits" /* x < 0 for unsigned x: expressions serve all dtypes */

#define LOOP(name) INLINE void CAT(name##_loop, SFX)

/* Integers gain nothing measurable from the widest vectors: memory bounds them. */
#define KEEP(...) __VA_ARGS__
#define DROP(...)
#ifdef LC_BASELINE
#define PAYS_libm KEEP
#else
#define PAYS_libm DROP
#endif
#define PAYS_simd KEEP
#define PAYS_deep KEEP
#define PAYS_half KEEP
#define PAYS_sign KEEP
#ifdef __AVX512F__
#define WHOLE DROP
#else
#define WHOLE KEEP
#endif
#define WIDTH_b8   WHOLE
#define WIDTH_u8   WHOLE
#define WIDTH_i8   WHOLE
#define WIDTH_i16  WHOLE
#define WIDTH_i32  WHOLE
#define WIDTH_i64  WHOLE
#define WIDTH_f32  KEEP
#define WIDTH_f64  KEEP
#define WIDTH_c64  WHOLE
#define WIDTH_c128 WHOLE

/* Loops from every dtype to itself and to bool, and from complex to real. */
#define T   lc_b8
#define O   lc_b8
#define SFX b8
#include "loops.inc.c"
#define unary_loop_b8_b8  unary_loop_b8
#define binary_loop_b8_b8 binary_loop_b8
#define T                 lc_u8
#define O                 lc_u8
#define SFX               u8
#include "loops.inc.c"
#define T   lc_u8
#define O   lc_b8
#define SFX u8_b8
#include "loops.inc.c"
#define T   lc_i8
#define O   lc_i8
#define SFX i8
#include "loops.inc.c"
#define T   lc_i8
#define O   lc_b8
#define SFX i8_b8
#include "loops.inc.c"
#define T   lc_i16
#define O   lc_i16
#define SFX i16
#include "loops.inc.c"
#define T   lc_i16
#define O   lc_b8
#define SFX i16_b8
#include "loops.inc.c"
#define T   lc_i32
#define O   lc_i32
#define SFX i32
#include "loops.inc.c"
#define T   lc_i32
#define O   lc_b8
#define SFX i32_b8
#include "loops.inc.c"
#define T   lc_i64
#define O   lc_i64
#define SFX i64
#include "loops.inc.c"
#define T   lc_i64
#define O   lc_b8
#define SFX i64_b8
#include "loops.inc.c"
#define T   lc_f32
#define O   lc_f32
#define SFX f32
#include "loops.inc.c"
#define T   lc_f32
#define O   lc_b8
#define SFX f32_b8
#include "loops.inc.c"
#define T   lc_f64
#define O   lc_f64
#define SFX f64
#include "loops.inc.c"
#define T   lc_f64
#define O   lc_b8
#define SFX f64_b8
#include "loops.inc.c"
#define T   lc_c64
#define O   lc_c64
#define SFX c64
#include "loops.inc.c"
#define T   lc_c64
#define O   lc_b8
#define SFX c64_b8
#include "loops.inc.c"
#define T   lc_c128
#define O   lc_c128
#define SFX c128
#include "loops.inc.c"
#define T   lc_c128
#define O   lc_b8
#define SFX c128_b8
#include "loops.inc.c"
#define T   lc_c64
#define O   lc_f32
#define SFX c64_real
#include "loops.inc.c"
#define T   lc_c128
#define O   lc_f64
#define SFX c128_real
#include "loops.inc.c"
typedef lc_f32 real_of_c64;
typedef lc_f64 real_of_c128;

/* Three and four operands: scalar operands are expanded over a block, so that one loop serves all combinations except the
 * usual one, scalars after a tensor. x may have another type. */
enum { BLOCK = 256 };
#define EXPAND(type, k)                                                                                                        \
    type        expanded##k[BLOCK];                                                                                            \
    const type *p##k = in[k];                                                                                                  \
    if (scalars >> k & 1) {                                                                                                    \
        for (int64_t i = 0; i < BLOCK && i < n; i++) expanded##k[i] = p##k[0];                                                 \
        p##k = expanded##k;                                                                                                    \
    }
#define QUATERNARY_LOOP(T, f)                                                                                                  \
    if (scalars == 14) {                                                                                                       \
        const T *a = in[0], y = *(const T *)in[1], z = *(const T *)in[2], w = *(const T *)in[3];                               \
        T       *o = out;                                                                                                      \
        INDEPENDENT                                                                                                            \
        for (int64_t i = 0; i < n; i++) o[i] = f(a[i], y, z, w);                                                               \
    } else if (scalars == 8) {                                                                                                 \
        const T *a = in[0], *b = in[1], *c = in[2], w = *(const T *)in[3];                                                     \
        T       *o = out;                                                                                                      \
        INDEPENDENT                                                                                                            \
        for (int64_t i = 0; i < n; i++) o[i] = f(a[i], b[i], c[i], w);                                                         \
    } else {                                                                                                                   \
        EXPAND(T, 0)                                                                                                           \
        EXPAND(T, 1)                                                                                                           \
        EXPAND(T, 2)                                                                                                           \
        EXPAND(T, 3)                                                                                                           \
        for (int64_t at = 0; at < n; at += BLOCK) {                                                                            \
            int64_t  m = n - at < BLOCK ? n - at : BLOCK;                                                                      \
            T       *o = (T *)out + at;                                                                                        \
            const T *a = scalars & 1 ? p0 : p0 + at, *b = scalars & 2 ? p1 : p1 + at;                                          \
            const T *c = scalars & 4 ? p2 : p2 + at, *d = scalars & 8 ? p3 : p3 + at;                                          \
            INDEPENDENT                                                                                                        \
            for (int64_t i = 0; i < m; i++) o[i] = f(a[i], b[i], c[i], d[i]);                                                  \
        }                                                                                                                      \
    }
#define TERNARY_LOOP(X, T, f)                                                                                                  \
    if (scalars == 6) {                                                                                                        \
        const X *a = in[0];                                                                                                    \
        const T  y = *(const T *)in[1], z = *(const T *)in[2];                                                                 \
        T       *o = out;                                                                                                      \
        INDEPENDENT                                                                                                            \
        for (int64_t i = 0; i < n; i++) o[i] = f(a[i], y, z);                                                                  \
    } else {                                                                                                                   \
        EXPAND(X, 0)                                                                                                           \
        EXPAND(T, 1)                                                                                                           \
        EXPAND(T, 2)                                                                                                           \
        for (int64_t at = 0; at < n; at += BLOCK) {                                                                            \
            int64_t  m = n - at < BLOCK ? n - at : BLOCK;                                                                      \
            T       *o = (T *)out + at;                                                                                        \
            const X *a = scalars & 1 ? p0 : p0 + at;                                                                           \
            const T *b = scalars & 2 ? p1 : p1 + at, *c = scalars & 4 ? p2 : p2 + at;                                          \
            INDEPENDENT                                                                                                        \
            for (int64_t i = 0; i < m; i++) o[i] = f(a[i], b[i], c[i]);                                                        \
        }                                                                                                                      \
    }

/* Rows with long expressions (`deep`): a kernel holds its expression once, as a vector loop over contiguous operands whose
 * count is a multiple of WHOLE. Scalar operands are expanded over a block; the last elements are computed in a block of
 * their own, filled up with copies of the last one. What is left of a loop and the combinations of scalars would each
 * be another copy: they made these rows three to seven times as large. */
#ifdef LC_BASELINE
enum { WHOLE = 1 };
#else
enum { WHOLE = 16 };
#endif
typedef void whole_loop(void *out, const void *const *in, int64_t n);
static void  fill(void *to, const void *value, int64_t size, int64_t n)
{
    if (size == 4)
        for (int64_t i = 0; i < n; i++) ((uint32_t *)to)[i] = *(const uint32_t *)value;
    else
        for (int64_t i = 0; i < n; i++) ((uint64_t *)to)[i] = *(const uint64_t *)value;
}
static __attribute__((noinline)) void run_deep(void *out, const void *const *in, int operands, unsigned scalars, int64_t n,
                                               int64_t size, whole_loop *loop)
{
    _Alignas(64) char expanded[4][BLOCK * sizeof(double)], last[WHOLE * sizeof(double)];
    const void       *p[4];
    bool              one = scalars == (1u << operands) - 1; /* all elements are the same */
    int64_t           total = one ? 1 : n, step = scalars ? BLOCK : n;
    int64_t           filled = total < BLOCK ? (total + WHOLE - 1) / WHOLE * WHOLE : BLOCK;
    for (int k = 0; k < operands; k++) {
        p[k] = in[k];
        if (scalars >> k & 1) fill(expanded[k], in[k], size, filled), p[k] = expanded[k];
    }
    for (int64_t at = 0; at < total;) {
        int64_t m = total - at < step ? total - at : step, whole = m & -(int64_t)WHOLE, left = m - whole;
        if (whole) {
            loop((char *)out + at * size, p, whole);
            for (int k = 0; k < operands; k++) p[k] = (const char *)p[k] + (scalars >> k & 1 ? 0 : whole * size);
        }
        if (left) {
            for (int k = 0; k < operands; k++) {
                if (scalars >> k & 1) continue;
                memcpy(expanded[k], p[k], (size_t)(left * size));
                fill(expanded[k] + left * size, expanded[k] + (left - 1) * size, size, WHOLE - left);
                p[k] = expanded[k];
            }
            loop(last, p, WHOLE);
            memcpy((char *)out + (at + whole) * size, last, (size_t)(left * size));
        }
        at += m;
    }
    if (one && n > 0) memcpy(last, out, (size_t)size), fill(out, last, size, n);
}

/* sin, cos and the like for arguments that the vector code cannot reduce. A block without any takes the vector loop; results
 * are the same. The test uses an integer as wide as the elements: the compiler does not vectorise a bool. */
#define FAR_LOOP(R, I, dt, abs, limit)                                                                                         \
    INLINE void far_loop_##dt(R *out, const R *a, int64_t n, R (*f)(R), R (*library)(R))                                       \
    {                                                                                                                          \
        R kept[BLOCK];                                                                                                         \
        for (int64_t at = 0; at < n; at += BLOCK, out += BLOCK, a += BLOCK) {                                                  \
            int64_t m = (n - at < BLOCK ? n - at : BLOCK) & -(int64_t)WHOLE;                                                   \
            I       far = 0;                                                                                                   \
            for (int64_t i = 0; i < m; i++) far |= abs(a[i]) >= limit;                                                         \
            if (far) memcpy(kept, a, (size_t)m * sizeof(R));                                                                   \
            INDEPENDENT                                                                                                        \
            for (int64_t i = 0; i < m; i++) out[i] = f(a[i]);                                                                  \
            for (int64_t i = 0; far && i < m; i++)                                                                             \
                if (abs(kept[i]) >= limit) out[i] = library(kept[i]);                                                          \
        }                                                                                                                      \
    }
FAR_LOOP(float, int32_t, f32, __builtin_fabsf, FAR)
FAR_LOOP(double, int64_t, f64, __builtin_fabs, FAR64)
/* Remainders of quotients that vectors cannot compute exactly: infinite, NaN, by zero or just large. */
#define FAR_PAIR_LOOP(R, I, dt, abs)                                                                                           \
    INLINE void far_pair_loop_##dt(R *out, const R *a, const R *b, int64_t n, R (*f)(R, R), R (*library)(R, R))                \
    {                                                                                                                          \
        for (int64_t at = 0; at < n; at += BLOCK, out += BLOCK, a += BLOCK, b += BLOCK) {                                      \
            int64_t m = (n - at < BLOCK ? n - at : BLOCK) & -(int64_t)WHOLE;                                                   \
            I       far = 0;                                                                                                   \
            for (int64_t i = 0; i < m; i++) far |= !(abs(a[i]) < abs(b[i]) * (R)NEAR_##dt);                                    \
            if (far) {                                                                                                         \
                for (int64_t i = 0; i < m; i++) out[i] = library(a[i], b[i]);                                                  \
                continue;                                                                                                      \
            }                                                                                                                  \
            INDEPENDENT                                                                                                        \
            for (int64_t i = 0; i < m; i++) out[i] = f(a[i], b[i]);                                                            \
        }                                                                                                                      \
    }
FAR_PAIR_LOOP(float, int32_t, f32, __builtin_fabsf)
FAR_PAIR_LOOP(double, int64_t, f64, __builtin_fabs)
static float  trigamma_far_f32(float x) { return (float)trigamma((double)x, true); }
static double trigamma_far_f64(double x) { return trigamma(x, false); }
/* Bessel functions far out: sine and cosine are the library's. */
#define FAR_BESSEL(name, ...)                                                                                                  \
    static double special_##name##_far(double x) { return __VA_ARGS__; }                                                       \
    static float  special_##name##_far_f32(float x) { return (float)special_##name##_far((double)x); }
FAR_BESSEL(j0, j0_by(x, sin(x), cos(x)))
FAR_BESSEL(j1, j1_by(x, sin(x), cos(x)))
FAR_BESSEL(y0, y0_by(x, sin(x), cos(x)))
FAR_BESSEL(y1, y1_by(x, sin(x), cos(x)))
FAR_BESSEL(spherical_j0, spherical_j0_by(x, sin(x)))
FAR_BESSEL(airy, airy_by(x, airy_zeta(fabs(x)), airy_low(fabs(x)), sin(airy_zeta(fabs(x))), cos(airy_zeta(fabs(x)))))
#define far_f32_special_bessel_j0           special_j0_far_f32
#define far_f64_special_bessel_j0           special_j0_far
#define far_f32_special_bessel_j1           special_j1_far_f32
#define far_f64_special_bessel_j1           special_j1_far
#define far_f32_special_bessel_y0           special_y0_far_f32
#define far_f64_special_bessel_y0           special_y0_far
#define far_f32_special_bessel_y1           special_y1_far_f32
#define far_f64_special_bessel_y1           special_y1_far
#define far_f32_special_spherical_bessel_j0 special_spherical_j0_far_f32
#define far_f64_special_spherical_bessel_j0 special_spherical_j0_far
#define far_f32_special_airy_ai             special_airy_far_f32
#define far_f64_special_airy_ai             special_airy_far
#define far_f32_fmod                        fmodf
#define far_f32_remainder                   remainder_far_f32
#define far_f32_floor_divide                floor_divide_far_f32
#define far_f64_fmod                        fmod
#define far_f64_remainder                   remainder_far_f64
#define far_f64_floor_divide                floor_divide_far_f64
#define far_f32_sin                         sinf
#define far_f32_cos                         cosf
#define far_f32_tan                         tanf
#define far_f32_sinc                        sinc_far_f32
#define far_f32_trigamma                    trigamma_far_f32
#define far_f64_trigamma                    trigamma_far_f64
#define far_f64_sin                         sin
#define far_f64_cos                         cos
#define far_f64_tan                         tan
#define far_f64_sinc                        sinc_far_f64

/* Polynomials by recurrence, in double: a step for a block of elements at a time, as far as the highest degree in it; each
 * element keeps the value at its own. Degrees that the scalar function has in closed form go there. */
enum { CLOSED_FROM = 64 };
typedef struct {
    double t[BLOCK], degree[BLOCK], p[BLOCK], q[BLOCK], y[BLOCK];
} steps;
typedef void   walk(steps *s, int32_t highest, bool same, int64_t m);
typedef double polynomial_at(double t, double degree);
#define STEPS_polynomial(t, y, first, step, closed) first, step
#define AT_polynomial(t, y, ...)                    polynomial(t_of_x, degree, __VA_ARGS__)
#define SHIFTED_polynomial(t, ...)                                                                                             \
    ({                                                                                                                         \
        double x = 0; /* t is x, or 2 x - 1 */                                                                                 \
        (t) != 0;                                                                                                              \
    })
INLINE void walk_steps(steps *s, int32_t highest, bool same, int64_t m, double (*first)(double),
                       double (*step)(double, double, double, double))
{
    double *t = s->t, *p = s->p, *q = s->q, *y = s->y;
    m = (m + 15) & -16; /* whole vectors: the rest of the block is computed and not used */
    for (int64_t i = 0; i < m; i++) p[i] = 1, q[i] = first(t[i]);
    if (same) {
        for (int32_t k = 1; k < highest; k++)
            for (int64_t i = 0; i < m; i++) {
                double r = step(t[i], k, p[i], q[i]);
                p[i] = q[i], q[i] = r;
            }
        return;
    }
    for (int64_t i = 0; i < m; i++) y[i] = s->degree[i] < 1 ? 1 : q[i];
    for (int64_t i = 0; i < m; i++) y[i] = s->degree[i] < 0 ? 0 : y[i];
    for (int32_t k = 1; k < highest; k++)
        for (int64_t i = 0; i < m; i++) {
            double r = step(t[i], k, p[i], q[i]);
            p[i] = q[i], q[i] = r;
            y[i] = s->degree[i] > k ? r : y[i];
        }
}
#define STEPS_LOOP(R, dt)                                                                                                      \
    static __attribute__((noinline)) void steps_loop_##dt(R *out, const R *a, const R *b, unsigned scalars, int64_t n,         \
                                                          bool shifted, walk *steps_of, polynomial_at *value)                  \
    {                                                                                                                          \
        steps s;                                                                                                               \
        for (int64_t at = 0; at < n; at += BLOCK) {                                                                            \
            int64_t m = n - at < BLOCK ? n - at : BLOCK, looked_at = scalars & 2 ? 1 : m;                                      \
            double  highest = 0;                                                                                               \
            for (int64_t i = 0; i < looked_at; i++) {                                                                          \
                double d = (double)b[i] > 1e6 ? 1e6 : (double)b[i];                                                            \
                s.degree[i] = (double)(int32_t)(d > -1 ? d : -1);                                                              \
            }                                                                                                                  \
            for (int64_t i = 0; i < looked_at; i++) highest = s.degree[i] > highest ? s.degree[i] : highest;                   \
            if (scalars & 1)                                                                                                   \
                for (int64_t i = 0; i < m; i++) s.t[i] = (double)a[0];                                                         \
            else                                                                                                               \
                for (int64_t i = 0; i < m; i++) s.t[i] = (double)a[i];                                                         \
            for (int64_t i = 0; i < m && shifted; i++) s.t[i] = (double)(R)((R)s.t[i] + (R)s.t[i] - 1);                        \
            if (highest > CLOSED_FROM) {                                                                                       \
                for (int64_t i = 0; i < m; i++) out[i] = (R)value(s.t[i], (double)b[scalars & 2 ? 0 : i]);                     \
            } else {                                                                                                           \
                for (int64_t i = m; i < ((m + 15) & -16); i++) s.t[i] = 0, s.degree[i] = -1;                                   \
                steps_of(&s, (int32_t)highest, scalars & 2, m);                                                                \
                R low = (R)(s.degree[0] < 0 ? 0 : 1);                                                                          \
                if (!(scalars & 2))                                                                                            \
                    for (int64_t i = 0; i < m; i++) out[i] = (R)s.y[i];                                                        \
                else                                                                                                           \
                    for (int64_t i = 0; i < m; i++) out[i] = highest > 0 ? (R)s.q[i] : low;                                    \
            }                                                                                                                  \
            out += m, a += scalars & 1 ? 0 : m, b += scalars & 2 ? 0 : m;                                                      \
        }                                                                                                                      \
    }
STEPS_LOOP(float, f32)
STEPS_LOOP(double, f64)

/* A row's scalar function and its kernel, chosen by kind. row is (kind, op, dtypes, expression). */
#define UNWRAP(...)                      __VA_ARGS__
#define APPLY(F, ...)                    F(__VA_ARGS__)
#define DEFINE(dt, kind, op, types, ...) DEFINE_##kind(dt, op, __VA_ARGS__)
#define DEFINITION(row, dt)              WIDTH_##dt(APPLY(DEFINE, dt, UNWRAP row))
#define KERNEL(op, dt)                   static void cpu_##op##_##dt(void *out, const void *const *in, unsigned scalars, int64_t n)
#define SCALAR_FUNCTION(result, op, dt, params, ...)                                                                           \
    INLINE result op##_x_##dt params                                                                                           \
    {                                                                                                                          \
        typedef lc_##dt T UNUSED;                                                                                              \
        return (result)(__VA_ARGS__);                                                                                          \
    }
#define DEFINE_UNARY(dt, op, ...)                                                                                              \
    SCALAR_FUNCTION(lc_##dt, op, dt, (lc_##dt x), __VA_ARGS__)                                                                 \
    KERNEL(op, dt) { unary_loop_##dt(out, in[0], scalars, n, op##_x_##dt); }
#define DEFINE_UNARY_REAL(dt, op, ...)                                                                                         \
    SCALAR_FUNCTION(real_of_##dt, op, dt, (lc_##dt x), __VA_ARGS__)                                                            \
    KERNEL(op, dt) { unary_loop_##dt##_real(out, in[0], scalars, n, op##_x_##dt); }
#define DEFINE_PREDICATE(dt, op, ...)                                                                                          \
    SCALAR_FUNCTION(lc_b8, op, dt, (lc_##dt x), __VA_ARGS__)                                                                   \
    KERNEL(op, dt) { unary_loop_##dt##_b8(out, in[0], scalars, n, op##_x_##dt); }
#define DEFINE_BINARY(dt, op, ...)                                                                                             \
    SCALAR_FUNCTION(lc_##dt, op, dt, (lc_##dt x, lc_##dt y), __VA_ARGS__)                                                      \
    KERNEL(op, dt) { binary_loop_##dt(out, in[0], in[1], scalars, n, op##_x_##dt); }
/* The functions of doubles serve both types. */
#define STEPS_OF_f32(op, ...)                                                                                                  \
    static void cpu_##op##_f32_whole(steps *s, int32_t highest, bool same, int64_t m)                                          \
    {                                                                                                                          \
        walk_steps(s, highest, same, m, STEPS_##__VA_ARGS__);                                                                  \
    }                                                                                                                          \
    static double op##_at(double t_of_x, double degree) { return AT_##__VA_ARGS__; }
#define STEPS_OF_f64(op, ...)
#define DEFINE_BINARY_STEPS(dt, op, ...)                                                                                       \
    STEPS_OF_##dt(op, __VA_ARGS__) KERNEL(op, dt)                                                                              \
    {                                                                                                                          \
        steps_loop_##dt(out, in[0], in[1], scalars, n, SHIFTED_##__VA_ARGS__, cpu_##op##_f32_whole, op##_at);                  \
    }
#define DEFINE_COMPARE(dt, op, ...)                                                                                            \
    SCALAR_FUNCTION(lc_b8, op, dt, (lc_##dt x, lc_##dt y), __VA_ARGS__)                                                        \
    KERNEL(op, dt) { binary_loop_##dt##_b8(out, in[0], in[1], scalars, n, op##_x_##dt); }
#define DEFINE_TERNARY(dt, op, ...)                                                                                            \
    SCALAR_FUNCTION(lc_##dt, op, dt, (lc_##dt x, lc_##dt y, lc_##dt z), __VA_ARGS__)                                           \
    KERNEL(op, dt) { TERNARY_LOOP(lc_##dt, lc_##dt, op##_x_##dt) }
#define DEFINE_QUATERNARY(dt, op, ...)                                                                                         \
    SCALAR_FUNCTION(lc_##dt, op, dt, (lc_##dt x, lc_##dt y, lc_##dt z, lc_##dt w), __VA_ARGS__)                                \
    KERNEL(op, dt) { QUATERNARY_LOOP(lc_##dt, op##_x_##dt) }
#define DEFINE_SELECT(dt, op, ...)                                                                                             \
    SCALAR_FUNCTION(lc_##dt, op, dt, (lc_b8 x, lc_##dt y, lc_##dt z), __VA_ARGS__)                                             \
    KERNEL(op, dt) { TERNARY_LOOP(lc_b8, lc_##dt, op##_x_##dt) }

/* `deep` rows. */
#define LOADED(k) ((const T *)in[k])[i]
#define WHOLE_KERNEL(dt, op, operands, ...)                                                                                    \
    static void cpu_##op##_##dt##_whole(void *out, const void *const *in, int64_t n)                                           \
    {                                                                                                                          \
        typedef lc_##dt T;                                                                                                     \
        T *o            UNUSED = out;                                                                                          \
        n &= -(int64_t)WHOLE;                                                                                                  \
        __VA_ARGS__;                                                                                                           \
    }                                                                                                                          \
    KERNEL(op, dt) { run_deep(out, in, operands, scalars, n, sizeof(lc_##dt), cpu_##op##_##dt##_whole); }
#define WHOLE_LOOP(...)                                                                                                        \
    INDEPENDENT                                                                                                                \
    for (int64_t i = 0; i < n; i++) o[i] = __VA_ARGS__
#define DEFINE_DEEP_UNARY(dt, op, ...)                                                                                         \
    SCALAR_FUNCTION(lc_##dt, op, dt, (lc_##dt x), __VA_ARGS__)                                                                 \
    WHOLE_KERNEL(dt, op, 1, WHOLE_LOOP(op##_x_##dt(LOADED(0))))
#define DEFINE_DEEP_UNARY_FAR(dt, op, ...)                                                                                     \
    SCALAR_FUNCTION(lc_##dt, op, dt, (lc_##dt x), __VA_ARGS__)                                                                 \
    WHOLE_KERNEL(dt, op, 1, far_loop_##dt(out, in[0], n, op##_x_##dt, far_##dt##_##op))
#define DEFINE_DEEP_BINARY(dt, op, ...)                                                                                        \
    SCALAR_FUNCTION(lc_##dt, op, dt, (lc_##dt x, lc_##dt y), __VA_ARGS__)                                                      \
    WHOLE_KERNEL(dt, op, 2, WHOLE_LOOP(op##_x_##dt(LOADED(0), LOADED(1))))
#define DEFINE_DEEP_BINARY_FAR(dt, op, ...)                                                                                    \
    SCALAR_FUNCTION(lc_##dt, op, dt, (lc_##dt x, lc_##dt y), __VA_ARGS__)                                                      \
    WHOLE_KERNEL(dt, op, 2, far_pair_loop_##dt(out, in[0], in[1], n, op##_x_##dt, far_##dt##_##op))
#define DEFINE_DEEP_BINARY_STEPS DEFINE_BINARY_STEPS
#define DEFINE_DEEP_TERNARY(dt, op, ...)                                                                                       \
    SCALAR_FUNCTION(lc_##dt, op, dt, (lc_##dt x, lc_##dt y, lc_##dt z), __VA_ARGS__)                                           \
    WHOLE_KERNEL(dt, op, 3, WHOLE_LOOP(op##_x_##dt(LOADED(0), LOADED(1), LOADED(2))))
#define DEFINE_DEEP_QUATERNARY(dt, op, ...)                                                                                    \
    SCALAR_FUNCTION(lc_##dt, op, dt, (lc_##dt x, lc_##dt y, lc_##dt z, lc_##dt w), __VA_ARGS__)                                \
    WHOLE_KERNEL(dt, op, 4, WHOLE_LOOP(op##_x_##dt(LOADED(0), LOADED(1), LOADED(2), LOADED(3))))
#define FORM_libm(kind)                 kind
#define FORM_simd(kind)                 kind
#define FORM_half(kind)                 kind
#define FORM_sign(kind)                 kind
#define FORM_deep(kind)                 DEEP_##kind
#define ROW(kind, op, types, pays, ...) PAYS_##pays(LC_EACH_##types(DEFINITION, (FORM_##pays(kind), op, types, __VA_ARGS__)))
#include "../../scalar.def"

#ifdef __F16C__
/* The `half` rows again: some float16 or bfloat16 elements at a time are widened into registers. A scalar operand is a
 * float32 here. */
#ifdef __AVX512F__
/* bfloat16: elements at even positions, then those at odd ones, a shift or a mask each. */
enum { AT_ONCE_f16 = 16, AT_ONCE_bf16 = 32 };
INLINE void widen_f16(float *to, const uint16_t *from)
{
    _mm512_storeu_ps(to, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from)));
}
INLINE void narrow_f16(uint16_t *to, const float *from)
{
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtps_ph(_mm512_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
}
INLINE void widen_bf16(float *to, const uint16_t *from)
{
    __m512i both = _mm512_loadu_si512(from);
    _mm512_storeu_si512(to, _mm512_slli_epi32(both, 16));
    _mm512_storeu_si512(to + 16, _mm512_and_si512(both, _mm512_set1_epi32((int)0xffff0000)));
}
INLINE __m512i rounded_bf16(const float *from) /* lc_f32_to_bf16 in the upper halves; the lower ones are not cleared */
{
    __m512  f = _mm512_loadu_ps(from);
    __m512i u = _mm512_castps_si512(f), odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i up = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
    return _mm512_mask_mov_epi32(up, _mm512_cmp_ps_mask(f, f, _CMP_UNORD_Q), _mm512_set1_epi32(0x7fc00000));
}
INLINE void narrow_bf16(uint16_t *to, const float *from)
{
    __m512i even = _mm512_srli_epi32(rounded_bf16(from), 16);
    _mm512_storeu_si512(to, _mm512_mask_blend_epi16(0xaaaaaaaa, even, rounded_bf16(from + 16)));
}
#else
enum { AT_ONCE_f16 = 16, AT_ONCE_bf16 = 16 };
INLINE void widen_f16(float *to, const uint16_t *from)
{
    const __m128i *p = (const __m128i *)from;
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(p)));
    _mm256_storeu_ps(to + 8, _mm256_cvtph_ps(_mm_loadu_si128(p + 1)));
}
INLINE void narrow_f16(uint16_t *to, const float *from)
{
    __m128i *p = (__m128i *)to;
    _mm_storeu_si128(p, _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(p + 1, _mm256_cvtps_ph(_mm256_loadu_ps(from + 8), _MM_FROUND_TO_NEAREST_INT));
}
INLINE void widen_bf16(float *to, const uint16_t *from)
{
    const __m128i *p = (const __m128i *)from;
    for (int k = 0; k < 2; k++)
        _mm256_storeu_si256((__m256i *)to + k, _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p + k)), 16));
}
INLINE __m256i rounded_bf16(const float *from) /* lc_f32_to_bf16, eight at a time, in 32 bits each */
{
    __m256  f = _mm256_loadu_ps(from);
    __m256i u = _mm256_castps_si256(f), odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i up = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd), 16);
    return _mm256_blendv_epi8(up, _mm256_set1_epi32(0x7fc0), _mm256_castps_si256(_mm256_cmp_ps(f, f, _CMP_UNORD_Q)));
}
INLINE void narrow_bf16(uint16_t *to, const float *from)
{
    __m256i packed = _mm256_packus_epi32(rounded_bf16(from), rounded_bf16(from + 8));
    _mm256_storeu_si256((__m256i *)to, _mm256_permute4x64_epi64(packed, 0xd8));
}
#endif
#define HALF_LOOPS(dt)                                                                                                         \
    INLINE void half_block_##dt(uint16_t *out, const uint16_t *p, const uint16_t *q, float *a, float *b, unsigned scalars,     \
                                float (*f)(float, float))                                                                      \
    {                                                                                                                          \
        float o[AT_ONCE_##dt];                                                                                                 \
        if (!(scalars & 1)) widen_##dt(a, p);                                                                                  \
        if (!(scalars & 2)) widen_##dt(b, q);                                                                                  \
        INDEPENDENT                                                                                                            \
        for (int k = 0; k < AT_ONCE_##dt; k++) o[k] = f(a[k], b[k]);                                                           \
        narrow_##dt(out, o);                                                                                                   \
    }                                                                                                                          \
    INLINE void half_loop_##dt(uint16_t *out, const void *const *in, unsigned scalars, int64_t n, float (*f)(float, float))    \
    {                                                                                                                          \
        const uint16_t *p = in[0], *q = in[1];                                                                                 \
        float           a[AT_ONCE_##dt], b[AT_ONCE_##dt];                                                                      \
        uint16_t        rest[3][AT_ONCE_##dt] = { 0 };                                                                         \
        int64_t         i = 0, left;                                                                                           \
        for (int k = 0; k < AT_ONCE_##dt; k++) {                                                                               \
            a[k] = scalars & 1 ? *(const float *)in[0] : 0;                                                                    \
            b[k] = scalars & 2 ? *(const float *)in[1] : 0;                                                                    \
        }                                                                                                                      \
        for (; i + AT_ONCE_##dt <= n; i += AT_ONCE_##dt) half_block_##dt(out + i, p + i, q + i, a, b, scalars, f);             \
        if (!(left = n - i)) return;                                                                                           \
        if (!(scalars & 1)) memcpy(rest[0], p + i, (size_t)left * 2);                                                          \
        if (!(scalars & 2)) memcpy(rest[1], q + i, (size_t)left * 2);                                                          \
        half_block_##dt(rest[2], rest[0], rest[1], a, b, scalars, f);                                                          \
        memcpy(out + i, rest[2], (size_t)left * 2);                                                                            \
    }
HALF_LOOPS(f16)
HALF_LOOPS(bf16)
/* scalars is a constant in each call, so that the operands' blocks stay in registers. A unary op receives its operand twice. */
#define HALF_BINARY(op, dt)                                                                                                    \
    KERNEL(op, dt)                                                                                                             \
    {                                                                                                                          \
        if (scalars == 0) half_loop_##dt(out, in, 0, n, op##_x_f32);                                                           \
        else if (scalars == 1) half_loop_##dt(out, in, 1, n, op##_x_f32);                                                      \
        else if (scalars == 2) half_loop_##dt(out, in, 2, n, op##_x_f32);                                                      \
        else half_loop_##dt(out, in, 3, n, op##_x_f32);                                                                        \
    }
#define HALF_UNARY(op, dt)                                                                                                     \
    INLINE float op##_alone_##dt(float x, UNUSED float y) { return op##_x_f32(x); }                                            \
    KERNEL(op, dt)                                                                                                             \
    {                                                                                                                          \
        float       unused = 0;                                                                                                \
        const void *both[] = { in[0], &unused };                                                                               \
        if (scalars) half_loop_##dt(out, both, 3, n, op##_alone_##dt);                                                         \
        else half_loop_##dt(out, both, 2, n, op##_alone_##dt);                                                                 \
    }
/* `sign` rows change nothing but the sign, which has the same position in float16 and bfloat16. */
#define SIGN_neg(u) ((u) ^ 0x8000)
#define SIGN_abs(u) ((u)&0x7fff)
#define HALF_SIGN(op, dt)                                                                                                      \
    KERNEL(op, dt)                                                                                                             \
    {                                                                                                                          \
        const uint16_t *p = in[0];                                                                                             \
        uint16_t       *o = out, number[AT_ONCE_##dt];                                                                         \
        float           x[AT_ONCE_##dt] = { 0 };                                                                               \
        if (scalars) {                                                                                                         \
            x[0] = *(const float *)in[0];                                                                                      \
            narrow_##dt(number, x);                                                                                            \
            for (int64_t i = 0; i < n; i++) o[i] = (uint16_t)SIGN_##op(number[0]);                                             \
            return;                                                                                                            \
        }                                                                                                                      \
        INDEPENDENT                                                                                                            \
        for (int64_t i = 0; i < n; i++) o[i] = (uint16_t)SIGN_##op(p[i]);                                                      \
    }
#define HALF_ROW_half(kind, op) HALF_##kind(op, f16) HALF_##kind(op, bf16)
#define HALF_ROW_sign(kind, op) HALF_SIGN(op, f16) HALF_SIGN(op, bf16)
#define HALF_ROW_simd(kind, op)
#define HALF_ROW_deep(kind, op)
#define HALF_ROW_libm(kind, op)
#define ROW(kind, op, types, pays, ...) HALF_ROW_##pays(kind, op)
#include "../../scalar.def"
#endif

/* Products of complex numbers, several per vector: the compiler would vectorise the loop above one at a time. The same
 * operations. */
#if defined __AVX2__ && !defined __AVX512F__
#define PRODUCT(dt, R, N, PAIRED, REAL, IMAG, SIGNS)                                                                           \
    static void product_##dt(void *out, const void *const *in, unsigned scalars, int64_t n)                                    \
    {                                                                                                                          \
        typedef R      pairs __attribute__((vector_size(32), aligned(sizeof(R)), may_alias));                                  \
        const lc_##dt *a = in[0], *b = in[1];                                                                                  \
        lc_##dt       *o = out;                                                                                                \
        int64_t        i = 0;                                                                                                  \
        for (; scalars == 0 && i + N <= n; i += N) {                                                                           \
            pairs x = *(const pairs *)(a + i), y = *(const pairs *)(b + i), swapped = __builtin_shufflevector(y, y, PAIRED);   \
            pairs p = __builtin_shufflevector(x, x, REAL) * y, q = __builtin_shufflevector(x, x, IMAG) * swapped;              \
            pairs less = p - q, more = p + q;                                                                                  \
            *(pairs *)(o + i) = __builtin_shufflevector(less, more, SIGNS);                                                    \
        }                                                                                                                      \
        if (i < n) cpu_mul_##dt(o + i, (const void *[]){ a + i, b + i }, scalars, n - i);                                      \
    }
#define LIST(...) __VA_ARGS__
PRODUCT(c64, float, 4, LIST(1, 0, 3, 2, 5, 4, 7, 6), LIST(0, 0, 2, 2, 4, 4, 6, 6), LIST(1, 1, 3, 3, 5, 5, 7, 7),
        LIST(0, 9, 2, 11, 4, 13, 6, 15))
PRODUCT(c128, double, 2, LIST(1, 0, 3, 2), LIST(0, 0, 2, 2), LIST(1, 1, 3, 3), LIST(0, 5, 2, 7))
#define PRODUCTS { ROW_mul_complex, LC_c64, product_c64 }, { ROW_mul_complex, LC_c128, product_c128 },
#else
#define PRODUCTS
#endif

#ifdef __AVX512F__
#include "loops_wide.inc.c"
#else
#define BY_HAND
#endif

#ifndef LC_BASELINE
#include "loops_gamma.inc.c"
#else
#define GAMMA_IN_GROUPS
#endif

/* The list of them. */
#undef DEFINITION
#define LISTED(dt, kind, op, types, ...) { ROW_##op##_##types, LC_##dt, cpu_##op##_##dt },
#define DEFINITION(row, dt)              WIDTH_##dt(APPLY(LISTED, dt, UNWRAP row))
#define ROW(kind, op, types, pays, ...)  PAYS_##pays(LC_EACH_##types(DEFINITION, (kind, op, types, __VA_ARGS__)))
const lc_loop_entry CAT(lc_cpu_loops, LC_ISA)[] = {
#include "../../scalar.def"
#ifdef __F16C__
#define LISTED_half(op, types) { ROW_##op##_##types, LC_f16, cpu_##op##_f16 }, { ROW_##op##_##types, LC_bf16, cpu_##op##_bf16 },
#define LISTED_sign            LISTED_half
#define LISTED_simd(op, types)
#define LISTED_deep(op, types)
#define LISTED_libm(op, types)
#define ROW(kind, op, types, pays, ...) LISTED_##pays(op, types)
#include "../../scalar.def"
#endif
    PRODUCTS GAMMA_IN_GROUPS BY_HAND{ 0 } /* later entries replace earlier ones */
};

/* Contiguous conversions. */
#ifdef __F16C__
static void convert_f16_f32(void *to, const void *from, int64_t n)
{
    const uint16_t *x = from;
    float          *y = to;
    int64_t         i = 0;
#ifdef __AVX512F__
    for (; i + 16 <= n; i += 16) _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(x + i))));
#endif
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
    for (; i < n; i++) y[i] = _cvtsh_ss(x[i]);
}
static void convert_f32_f16(void *to, const void *from, int64_t n)
{
    const float *x = from;
    uint16_t    *y = to;
    int64_t      i = 0;
#ifdef __AVX512F__
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(y + i), _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; i++) y[i] = _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT);
}
#else
static void convert_f16_f32(void *to, const void *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((float *)to)[i] = lc_f16_to_f32(((const uint16_t *)from)[i]);
}
static void convert_f32_f16(void *to, const void *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((uint16_t *)to)[i] = lc_f32_to_f16(((const float *)from)[i]);
}
#endif
#define CONVERT(from, to)                                                                                                      \
    static void convert_##from##_##to(void *restrict out, const void *restrict in, int64_t n)                                  \
    {                                                                                                                          \
        const lc_##from *x = in;                                                                                               \
        lc_##to         *y = out;                                                                                              \
        for (int64_t i = 0; i < n; i++) y[i] = (lc_##to)STORE_##to(LOAD_##from(x[i]));                                         \
    }
#define COMMON_CONVERSIONS(X)                                                                                                  \
    X(bf16, f32)                                                                                                               \
    X(f32, bf16)                                                                                                               \
    X(f32, f64)                                                                                                                \
    X(f64, f32)                                                                                                                \
    X(i32, f32)                                                                                                                \
    X(i64, f32)                                                                                                                \
    X(u8, f32)                                                                                                                 \
    X(b8, f32)                                                                                                                 \
    X(f32, i32)                                                                                                                \
    X(f32, i64) X(f32, b8) X(i64, f64) X(f64, i64) X(i32, i64) X(i64, i32) X(b8, i64) X(u8, i64) X(f32, c64) X(f64, c128)
COMMON_CONVERSIONS(CONVERT)
#define CONVERSION(from, to) { LC_##from, LC_##to, convert_##from##_##to },
const lc_convert_entry CAT(lc_cpu_converts, LC_ISA)[] = {
    { LC_f16, LC_f32, convert_f16_f32 },
    { LC_f32, LC_f16, convert_f32_f16 },
    COMMON_CONVERSIONS(CONVERSION){ 0 },
};

/* Compiled once per instruction set: see cross_entropy.h. The argument of exp is at most zero, up to rounding: the
 * exponential needs no upper bound and flushes underflow to zero, which saves a third of its instructions. */
#include "cross_entropy.h"
#include "../kernels.h"
#include "../math/scalar_math.h"
#include <math.h>

enum { PARTS = 16 };
#ifndef __clang__
#undef INDEPENDENT
#define INDEPENDENT _Pragma("GCC ivdep") _Pragma("GCC unroll 1") /* if unrolled first, it is not vectorised */
#endif

MATH float falling_exp_f32(float x)
{
    int32_t n;
    float   c = x < -87.f ? -87.f : x, p = 1.f + expm1_reduced_f32(c, &n), e = p * as_f32((uint32_t)(n + 127) << 23);
    return x < -87.f ? 0.f : e;
}
MATH double falling_exp_f64(double x)
{
    int64_t n;
    double  c = x < -708. ? -708. : x, p = 1 + expm1_reduced_f64(c, &n), e = p * as_f64((uint64_t)(n + 1023) << 52);
    return x < -708. ? 0. : e;
}

#define T       float
#define LOG     log_f32
#define EXP     falling_exp_f32
#define NAME(f) CAT(f, f32)
#include "cross_entropy.inc.c"
#define T       double
#define LOG     log_f64
#define EXP     falling_exp_f64
#define NAME(f) CAT(f, f64)
#include "cross_entropy.inc.c"

#define LINES(dt)                                                                                                              \
    {                                                                                                                          \
        line_##dt, line_backward_##dt, wide_##dt, wide_backward_##dt, align_##dt                                               \
    }
const lc_cross_entropy CAT(lc_cpu_cross_entropy, LC_ISA) = { LINES(f32), LINES(f64) };

/* Compiled once per instruction set: see lines.h. The exponentials are one call of the vectorised loop that exp itself uses. */
#include "lines.h"
#include "cpu.h"
#include <math.h>
#include <string.h>

enum { PARTS = LINE_LANES };
static inline void exp_of(lc_dtype dtype, void *x, int64_t n)
{
    lc_cpu_loops[LC_OP_exp][dtype](x, (const void *[]){ x }, 0, n);
}

#define T         float
#define LOG       logf
#define EXP(x, n) exp_of(LC_f32, x, n)
#define NAME(f)   f##_f32
#define JOINED    1
#include "lines.inc.c"
#define NAME(f) f##_f32_wide
#define JOINED  0
#include "lines.inc.c"
#undef T
#undef LOG
#undef EXP
#define T         double
#define LOG       log
#define EXP(x, n) exp_of(LC_f64, x, n)
#define NAME(f)   f##_f64
#define JOINED    1
#include "lines.inc.c"
#define NAME(f) f##_f64_wide
#define JOINED  0
#include "lines.inc.c"

#define LINES(suffix)                                                                                                          \
    {                                                                                                                          \
        softmax_##suffix, log_softmax_##suffix, softmax_backward_##suffix, log_softmax_backward_##suffix                       \
    }
#define TABLE_OF(isa) lc_cpu_lines_##isa
#define TABLE(isa)    TABLE_OF(isa)
const lc_lines TABLE(LC_ISA) = { LINES(f32), LINES(f64), LINES(f32_wide), LINES(f64_wide) };

/* Compiled once per instruction set: see optimizer.h.
 *
 * A step is bound by memory if the parameters are large (AdamW reads four arrays and writes three: 28 bytes per element),
 * and by the divider if they are in cache: one square root and one division per element. Therefore bias corrections are
 * folded into the coefficients, as factors, once per parameter: no element is divided by something that all elements share.
 *
 * The terms are known before the loop: one loop per variant, from one body. */
#include "optimizer.h"
#include "../kernels.h"
#include <math.h>

#define T       float
#define NAME(f) f##_f32
#define SQRT(x) sqrtf(x)
#define ABS(x)  fabsf(x)
#include "optimizer_loops.inc.c"
#define T       double
#define NAME(f) f##_f64
#define SQRT(x) sqrt(x)
#define ABS(x)  fabs(x)
#include "optimizer_loops.inc.c"

#define LOOPS(type)                                                                                                            \
    {                                                                                                                          \
        [LC_STEP_SGD] = sgd_##type, [LC_STEP_ADAM] = adam_##type, [LC_STEP_ADAGRAD] = adagrad_##type,                          \
        [LC_STEP_RMSPROP] = rmsprop_##type, [LC_STEP_ADADELTA] = adadelta_##type, [LC_STEP_ADAMAX] = adamax_##type,            \
        [LC_STEP_NADAM] = nadam_##type, [LC_STEP_RADAM] = radam_##type, [LC_STEP_ASGD] = asgd_##type,                          \
        [LC_STEP_RPROP] = rprop_##type,                                                                                        \
    }
#define FACTORED(type)                                                                                                         \
    {                                                                                                                          \
        measure_##type, squares_##type, apply_##type                                                                           \
    }
const lc_step_loops CAT(lc_cpu_steps, LC_ISA) = { LOOPS(f32), LOOPS(f64), FACTORED(f32), FACTORED(f64) };

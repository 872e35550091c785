/* Steps of optimizers: one set of loops per instruction set (optimizer_loops.c is compiled for each), chosen by optimizer.c. */
#pragma once
#include "../args.h"

/* n elements of one parameter, contiguous, all of one type: x[0] the parameter, x[1] its gradient (read only), then the states. */
typedef void (*lc_step_loop)(void *const *x, const lc_step_numbers *c, unsigned variant, int64_t n);
typedef struct {
    lc_step_loop f32[LC_STEPS], f64[LC_STEPS];
} lc_step_loops;

/* Optimizer steps: one set of loops per instruction set (optimizer_loops.isa.c is compiled for each), chosen by optimizer.c. */
#pragma once
#include "../../args.h"

/* n elements of one parameter, contiguous, all of one type: x[0] the parameter, x[1] its gradient (read only), then the
 * states. */
typedef void (*lc_step_loop)(void *const *x, const lc_step_numbers *c, unsigned variant, int64_t n);

/* Adafactor, n elements of one row. v: the columns' factors, which times `row` are the variances; or, if `alone`, the
 * averages before this step. */
typedef struct {
    void       *p, *v;
    const void *grad;
    double      row, share, floor; /* floor: the smallest variance */
    double      shrink, by;        /* p = p * shrink - by * update */
    bool        alone;
} lc_adafactor_row;
typedef struct {
    void (*measure)(const lc_adafactor_row *r, double *columns, double *sums,
                    int64_t n); /* squares: of p into sums[0], of grad into sums[1] and columns, unless `alone` */
    double (*squares)(const lc_adafactor_row *r, int64_t n); /* the sum of the squares of the update */
    void (*apply)(const lc_adafactor_row *r, int64_t n);     /* writes p, and v if alone */
} lc_adafactor_loops;

typedef struct {
    lc_step_loop       f32[LC_STEPS], f64[LC_STEPS];
    lc_adafactor_loops adafactor_f32, adafactor_f64;
} lc_step_loops;
const lc_step_loops *cpu_step_loops(void); /* of this CPU */

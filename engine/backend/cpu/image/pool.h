/* Planes of a pooling op: one set of kernels per instruction set (pool_planes.isa.o3.c is compiled for each), chosen by
 * pool.c. */
#pragma once
#include "../../args.h"

typedef enum {
    POOL_MAX,
    POOL_MAX_INDEX,
    POOL_AVERAGE,
    POOL_AVERAGE_BACKWARD,
    POOL_MAX_GRADIENT,
    POOL_MAX_PAIRED,
    POOL_KINDS
} pool_kind;

/* Common to all planes. Output position o of dimension d takes the inputs first[d][o] .. past[d][o] - 1, dilation[d] apart,
 * and contributes count[d][o] to the divisor. */
typedef struct {
    const lc_pool_args *args;
    const int64_t      *first[3], *past[3], *count[3];
    int64_t line, left; /* elements of a row with its padding, as far as windows reach; of these, padding on the left */
    bool    clipped;    /* rows have no padding: windows are read from the tables */
    int64_t taps;       /* the most elements of a window */
    bool    paired;     /* adjacent windows of 1 x 2 x 2, all within the plane */
} pool_plan;

/* Elements of scratch: a line, and four rows of output. */
static inline int64_t pool_scratch(const pool_plan *p) { return p->line + 4 * p->args->result[2]; }

typedef void (*lc_pool_planes)(const pool_plan *plan, int64_t begin, int64_t end, void *scratch);
/* Images with the channels last: a row of positions, some of the channels. list: scratch of 2 p->taps. */
typedef void (*lc_pool_last)(const pool_plan *p, pool_kind kind, int64_t image, int64_t row, int64_t c, int64_t end,
                             int64_t *list);
typedef struct {
    lc_pool_planes f32[POOL_KINDS], f64[POOL_KINDS], i64[POOL_KINDS];
    lc_pool_last   last_f32, last_f64;
} lc_pools;

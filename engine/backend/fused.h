/* fused: several elementwise rows and row reductions as one kernel. The compiler describes a program; a backend that can fuse
 * makes it runnable.
 *
 * A program walks one iteration shape. Its trailing `row_dims` dimensions are a row, if it reduces rows; otherwise rows have
 * no meaning. A value has one element per position, or one per row (column). Each step writes one value:
 *   an elementwise step   row `row` of scalar.def, computed in `dtype`
 *   a copy                its input, in the dtype of its result
 *   a fold                the reduction `row` of every row of its input; the result is a column
 * Steps run in order for one tile of positions after another, so a value that only the program reads needs no memory: it is a
 * register, a tile in the cache. Every step gives the bits that the same call gives alone. */
#pragma once
#include "backend.h"

enum { LC_FUSED_STEPS = 48, LC_FUSED_VALUES = 96 };

typedef enum {
    LC_FUSED_REGISTER, /* lives in the program */
    LC_FUSED_MEMORY,   /* a tensor; the run gets its first element */
    LC_FUSED_SCALAR,   /* a tensor of one element, read before the first step */
    LC_FUSED_NUMBER    /* known when the program is made */
} lc_fused_place;

typedef struct {
    lc_fused_place place;
    lc_dtype       dtype;
    bool           column, written;
    int64_t        stride[LC_MAX_DIMS]; /* MEMORY: bytes per dimension of the iteration; 0: broadcast */
    _Alignas(16) char number[16];       /* NUMBER */
} lc_fused_value;

typedef struct {
    bool     fold, copy;
    lc_op_id row;
    lc_dtype dtype;
    int      n_in, in[4], out;
    double   parameter; /* of a fold */
} lc_fused_step;

typedef struct {
    int             ndim, row_dims, n_steps, n_values;
    int64_t         shape[LC_MAX_DIMS];
    lc_fused_step   steps[LC_FUSED_STEPS];
    lc_fused_value *values; /* LC_FUSED_VALUES of them */
} lc_fused_program;

typedef struct lc_fused lc_fused;
typedef struct lc_fuser {
    /* Can a call be a step? It must give the same bits in a program as alone. */
    bool (*takes_row)(lc_op_id row, lc_dtype compute, int n_in, lc_dtype out);
    bool (*takes_fold)(lc_op_id op, lc_dtype compute, const lc_reduce_args *args);
    bool (*takes_copy)(lc_dtype to, lc_dtype from);
    /* Can the row be part of the epilogue of this kernel (lc_row_epilogue), all in one dtype? NULL: never. */
    bool (*takes_epilogue)(lc_op_id kernel, lc_op_id row, lc_dtype dtype, int n_in);
    lc_fused *(*make)(const lc_fused_program *program);   /* NULL without lc_fail: these strides or sizes are not for fusing */
    int (*run)(const lc_fused *fused, char *const *data); /* data: per value, the first element of MEMORY and SCALAR ones */
    void (*drop)(lc_fused *fused);
} lc_fuser;

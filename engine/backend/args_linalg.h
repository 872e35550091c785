/* Arguments of the kernels of linear algebra. Every operand is a batch of matrices with steps of its own; a vector is a matrix of one column, a
 * number (info, a determinant) one of one element. Kernels read and write operands where they lie. */
#pragma once
#include "backend.h"

typedef struct {
    char          *data;
    int64_t        rows, cols, row_step, col_step; /* steps in elements */
    int64_t        batch_step;                     /* from one matrix to the next, if batch_ndim is 1 */
    int            batch_ndim;                     /* else the batch has this many dimensions: */
    const int64_t *batch_size, *batch_stride;
    int            device; /* number of the device, where there are several of a kind */
} lc_matrices;

enum { LC_LINALG_OPERANDS = 8 };
typedef struct {
    const char *name; /* of the op, for messages */
    int64_t     batch;
    lc_matrices m[LC_LINALG_OPERANDS]; /* inputs, then outputs, in the op's order; data NULL: an output nobody wants */
    bool        upper, left, unit, pivot, adjoint, hermitian, vectors, full;
    int         driver; /* of lstsq */
    double      rcond;
} lc_linalg_args;

const char *lc_lapack_path(void); /* the library that is used, loading it if need be; "": none */

/* Drivers of lstsq, in the order of their names in ops/linalg/lstsq.c. */
enum { LC_GELSY, LC_GELS, LC_GELSD, LC_GELSS };

/* What the files of linear algebra share: operands as contiguous column-major matrices in memory of the call, and who factorises them. */
#pragma once
#include "../../args_linalg.h"
#include "science.h"

enum { LINALG_PIECES = 16 };
#define LINALG_INTS LC_f32 /* pivots and infos only move, as 32 bits */
typedef struct {
    const lc_linalg_args *a;
    lc_dtype              dtype, real;
    int                   device;
    int64_t               batch;
    int                   rc; /* the first failure: what follows does nothing */
    int                   n_pieces;
    cuda_scratch          piece[LINALG_PIECES];
} linalg_call;
typedef struct {
    char   *data;
    int64_t rows, cols;
} dense; /* of a batch, one after the other */

typedef struct {
    void   *a, *b, *tau, *piv, *info, *w, *work;
    int64_t m, n, k, cols, lda, a_size;
    int     upper, trans, unit, pivot, left, logarithm, hermitian;
} linalg_args; /* as in kernels/science/linalg.cuh */

enum { PART_ALL, PART_UPPER, PART_LOWER, PART_IDENTITY };
linalg_call linalg_start(lc_dtype dtype, const lc_linalg_args *a);
int         linalg_end(linalg_call *c);                                    /* gives memory back; the result of the call */
void       *linalg_memory(linalg_call *c, int64_t elements, int64_t size); /* per matrix */
dense       linalg_blank(linalg_call *c, int64_t rows, int64_t cols);
lc_matrices linalg_flipped(lc_matrices m); /* transposed */
lc_matrices linalg_view(const linalg_call *c, dense d);
/* Elements of rows x cols, as dtype; from ignored for the identity. */
void  linalg_move(linalg_call *c, lc_dtype dtype, lc_matrices to, lc_matrices from, int64_t rows, int64_t cols, int part,
                  bool conjugate);
dense linalg_fetch(linalg_call *c, lc_matrices from, bool conjugate);
void  linalg_put(linalg_call *c, lc_matrices to, dense from, int part); /* nothing if `to` is not wanted */
void  linalg_put_as(linalg_call *c, lc_dtype dtype, lc_matrices to, void *from,
                    int64_t n);                                                     /* vectors of n: pivots, infos, reals */
void  linalg_run(linalg_call *c, const char *kernel, int64_t size, linalg_args *p); /* a block per matrix; size: of its rows */

void linalg_narrow(linalg_call *c, void *to, const void *from, int64_t n); /* int64 to int32 */

void linalg_getrf(linalg_call *c, dense a, void *piv, void *info, bool pivot);
void linalg_geqrf(linalg_call *c, dense a, void *tau);
void linalg_orgqr(linalg_call *c, dense a, int64_t k, void *tau);
void linalg_ormqr(linalg_call *c, dense a, void *tau, int64_t k, dense b, bool left, bool adjoint);
void linalg_trsm(linalg_call *c, bool upper, int trans, bool unit, int64_t n, dense a, dense b);

/* cuSOLVER, for matrices that are large enough (solver.c): false: it does not do this call. */
bool solver_takes(const linalg_call *c, int64_t n);
void solver_getrf(linalg_call *c, dense a, void *piv, void *info); /* piv: int32 */
void solver_potrf(linalg_call *c, dense a, bool upper, void *info);
void solver_geqrf(linalg_call *c, dense a, void *tau);
void solver_eigh(linalg_call *c, dense a, void *w, bool vectors, void *info);
void solver_svd(linalg_call *c, dense a, dense u, void *s, dense vh, bool vectors, void *info);
bool solver_eig(linalg_call *c, dense a, void *w, dense v, bool vectors, void *info);

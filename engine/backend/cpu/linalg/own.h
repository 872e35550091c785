/* Our own factorisations, for small matrices and for machines without LAPACK: one table per instruction set and element type (own.isa.o3.c). All
 * matrices are column-major with a leading dimension in elements; conventions (signs, pivots, info) are LAPACK's. */
#pragma once
#include "../cpu.h"

#define COLUMNS_WORK(m, n) (((m) + (n) + 4) * ((n) + 32) + 16)
typedef struct {
    /* P L U, unit L; piv counts from 1. pivot false: no exchanges. Returns info: the first zero pivot, from 1, or 0. */
    int (*getrf)(int64_t m, int64_t n, void *a, int64_t lda, int32_t *piv, bool pivot);
    /* Of the lower (or upper) triangle. Returns info: the first leading minor that is not positive, or 0. */
    int (*potrf)(int64_t n, void *a, int64_t lda, bool upper);
    /* b (n, k) := op(a)^-1 b; trans: 'N', 'T' or 'C'. */
    void (*trsm)(bool upper, char trans, bool unit, int64_t n, int64_t k, const void *a, int64_t lda, void *b, int64_t ldb);
    void (*geqrf)(int64_t m, int64_t n, void *a, int64_t lda, void *tau);
    /* The first n columns of the product of the k reflections below the diagonal of a. */
    void (*orgqr)(int64_t m, int64_t n, int64_t k, void *a, int64_t lda, const void *tau);
    /* c (m, n) := op(Q) c or c op(Q), Q of k reflections. */
    void (*ormqr)(bool left, bool adjoint, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *tau,
                  void *c, int64_t ldc);
    /* Eigenvalues in ascending order of the Hermitian matrix whose lower triangle is in a; a becomes the vectors (undefined if they are not wanted). work: n (n + 5) elements. 0, or 1: no
     * convergence (non-finite input). */
    int (*eigh)(int64_t n, void *a, int64_t lda, void *w, void *work, bool vectors);
    /* Singular values in descending order of a (m, n), m >= n; a becomes U (m, n), v (n, n) the right vectors unless it is NULL. work:
     * COLUMNS_WORK(m, n) elements. */
    int (*svd)(int64_t m, int64_t n, void *a, int64_t lda, void *s, void *v, int64_t ldv, void *work);
} lc_own_kernels;
typedef struct {
    lc_own_kernels of[4]; /* float, double, complex float, complex double: as lapack_type */
} lc_owns;
ISA_TABLE(const lc_owns, owns)

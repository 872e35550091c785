/* LAPACK, loaded when the first matrix needs it (lapack.c). */
#pragma once
#include "../cpu.h"

typedef enum {
#define ROUTINE(name, real, complex) LAPACK_##name,
#include "lapack.def"
#undef ROUTINE
    LAPACK_COUNT
} lapack_routine;
typedef enum { LAPACK_s, LAPACK_d, LAPACK_c, LAPACK_z, LAPACK_TYPES } lapack_type;

/* Filled by lapack_open; Fortran's conventions, 32-bit integers. All arguments are addresses, and lengths of strings at the end. */
extern void (*lapack_routines[LAPACK_TYPES][LAPACK_COUNT])();

bool lapack_open(void); /* loads the library at the first call; false: there is none, own kernels do what they can */
/* Whether this shape is for LAPACK: large enough, and there is one. work: multiplications of one matrix. */
int lapack_missing(const char *op); /* lc_fail: the op needs a library; names the package. Returns -1 */
/* How many threads the library may use in the calls that follow. Ours: as many as lc_num_threads(); 1 while we run several calls at once. */
void lapack_threads(int n);

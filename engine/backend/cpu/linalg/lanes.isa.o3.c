/* Compiled once per instruction set: factorisations of many small matrices at a time.
 *
 * Matrices of four rows leave vectors empty and every loop all prologue. So W of them are interleaved, element (i, j) of each side by side, and every
 * step is done for all of them at once: a loop over lanes, which the compiler turns into one or two vectors. Lanes never wait for each other: what
 * differs between them (the row of a pivot, whether a rotation is needed) is chosen by masks. The last group of a batch is filled up with copies
 * of its last matrix.
 *
 * Rejected: gathers for the exchange of rows (slower than masked exchanges up to sixteen rows), complex types (rare in such batches). */
#include "lanes.h"
#include <float.h>
#include <math.h>
#include <string.h>
#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are passed between functions of this file alone */

#define TABLE_OF(isa) lc_cpu_lanes_##isa
#define TABLE(isa)    TABLE_OF(isa)
#ifdef LC_BASELINE /* without vectors there is nothing to gain */
const lc_lanes TABLE(LC_ISA) = { .width = { 0, 0 } };
#else
#ifdef __AVX512F__
#define BYTES 64
#elif defined __AVX__
#define BYTES 32
#else
#define BYTES 16
#endif
/* Lanes of x, then of y, that make row k and row k + s of the exchanged pair. */
#define UPPER_OF(l, s) ((l) & (s) ? W + (l) - (s) : (l)) % (2 * W) /* stages that a narrower vector has not compile, too */
#define LOWER_OF(l, s) ((l) & (s) ? W + (l) : (l) + (s)) % (2 * W)
#define ACROSS(l, s)   ((l) ^ (s)) % W
#define LANES_2(F, s)  F(0, s), F(1, s)
#define LANES_4(F, s)  LANES_2(F, s), F(2, s), F(3, s)
#define LANES_8(F, s)  LANES_4(F, s), F(4, s), F(5, s), F(6, s), F(7, s)
#define LANES_16(F, s) LANES_8(F, s), F(8, s), F(9, s), F(10, s), F(11, s), F(12, s), F(13, s), F(14, s), F(15, s)

#define T       float
#define W       (BYTES / 4)
#define I       int32_t
#define EPSILON FLT_EPSILON
#define TINY    FLT_MIN
#define NAME(f) f##_f32
#if BYTES == 64
#define EACH_LANE LANES_16
#elif BYTES == 32
#define EACH_LANE LANES_8
#else
#define EACH_LANE LANES_4
#endif
#include "lanes.inc.c"
#include "columns.inc.c"
#define T       double
#define W       (BYTES / 8)
#define I       int64_t
#define EPSILON DBL_EPSILON
#define TINY    DBL_MIN
#define NAME(f) f##_f64
#if BYTES == 64
#define EACH_LANE LANES_8
#elif BYTES == 32
#define EACH_LANE LANES_4
#else
#define EACH_LANE LANES_2
#endif
#include "lanes.inc.c"
#include "columns.inc.c"

#define BOTH(f)                                                                                                                \
    {                                                                                                                          \
        f##_f32, f##_f64                                                                                                       \
    }
const lc_lanes TABLE(LC_ISA) = {
    .width = { BYTES / 4, BYTES / 8 },
    .lu = BOTH(lu),
    .solve = BOTH(solve),
    .inv = BOTH(inv),
    .det = BOTH(det),
    .cholesky = BOTH(cholesky),
    .qr = BOTH(qr),
    .eigh = BOTH(eigh),
    .svd = BOTH(svd),
    .columns = BOTH(columns),
};
#endif

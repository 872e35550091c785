/* Running sums, products and extremes. Compiled once per instruction set: see scans.h.
 *
 * A sum must wait for the one before it: eight elements are summed among themselves first, so that it waits once for eight. Products are not
 * regrouped: a partial product may overflow where the whole does not. */
#include "kernels.h"
#include "scans.h"
#pragma GCC diagnostic ignored "-Wtautological-compare" /* x != x of an integer: written for all dtypes */

#define CAT_(a, b) a##_##b
#define CAT(a, b)  CAT_(a, b)
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Sums are kept as PyTorch keeps them: floats in double. Unsigned: they wrap. */
#define ORDERED 1
#define T       uint8_t
#define SUM     uint64_t
#define NAME(f) f##_u8
#include "scan.inc.c"
#define T       int8_t
#define SUM     uint64_t
#define NAME(f) f##_i8
#include "scan.inc.c"
#define T       int16_t
#define SUM     uint64_t
#define NAME(f) f##_i16
#include "scan.inc.c"
#define T       int32_t
#define SUM     uint64_t
#define NAME(f) f##_i32
#include "scan.inc.c"
#define T       int64_t
#define SUM     uint64_t
#define NAME(f) f##_i64
#include "scan.inc.c"
#define T       float
#define SUM     double
#define NAME(f) f##_f32
#include "scan.inc.c"
#define T       double
#define SUM     double
#define NAME(f) f##_f64
#include "scan.inc.c"
#undef ORDERED
#define ORDERED 0
#define T       _Complex float
#define SUM     _Complex double
#define NAME(f) f##_c64
#include "scan.inc.c"
#define T       _Complex double
#define SUM     _Complex double
#define NAME(f) f##_c128
#include "scan.inc.c"

#define SUMS(op, dt)     [LC_##dt] = { sum_total_##dt, sum_line_##dt, sum_lanes_##dt },
#define PRODUCTS(op, dt) [LC_##dt] = { NULL, product_line_##dt, product_lanes_##dt },
#define MAXIMA(op, dt)   [LC_##dt] = { NULL, max_line_##dt, max_lanes_##dt },
#define MINIMA(op, dt)   [LC_##dt] = { NULL, min_line_##dt, min_lanes_##dt },
const lc_scans CAT(lc_cpu_scans, LC_ISA) = {
    [CUMSUM] = { LC_EACH_arith(SUMS, ) },
    [CUMPROD] = { LC_EACH_arith(PRODUCTS, ) },
    [CUMMAX] = { LC_EACH_real(MAXIMA, )[LC_b8] = { NULL, max_line_u8, max_lanes_u8 } },
    [CUMMIN] = { LC_EACH_real(MINIMA, )[LC_b8] = { NULL, min_line_u8, min_lanes_u8 } },
};

/* Running sums, products and extremes. Compiled once per instruction set: see scan_lines.h.
 *
 * A sum must wait for its predecessor: eight elements are summed among themselves first, so that it waits once for eight.
 * Products are not regrouped: a partial product may overflow where the whole does not. */
#include "../kernels.h"
#include "../math/scalar_math.h"
#include "scan_lines.h"
#pragma GCC diagnostic ignored "-Wtautological-compare" /* x != x for integers: the code serves all dtypes */

/* Sums are kept as in PyTorch: floats in double. Unsigned: they wrap. */
#define SUM_u8   uint64_t
#define SUM_i8   uint64_t
#define SUM_i16  uint64_t
#define SUM_i32  uint64_t
#define SUM_i64  uint64_t
#define SUM_f32  double
#define SUM_f64  double
#define SUM_c64  lc_c128
#define SUM_c128 lc_c128
#define T        CAT(lc, SFX)
#define SUM      CAT(SUM, SFX)
#define NAME(f)  CAT(f, SFX)
#define ORDERED  1
#define SFX      u8
#include "scan_lines.inc.c"
#define SFX i8
#include "scan_lines.inc.c"
#define SFX i16
#include "scan_lines.inc.c"
#define SFX i32
#include "scan_lines.inc.c"
#define SFX i64
#include "scan_lines.inc.c"
#define SFX f32
#include "scan_lines.inc.c"
#define SFX f64
#include "scan_lines.inc.c"
#undef ORDERED
#define ORDERED 0
#define SFX     c64
#include "scan_lines.inc.c"
#define SFX c128
#include "scan_lines.inc.c"

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

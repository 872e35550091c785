/* Searching and binning per dtype (lookup.h). */
#include "lookup.h"
#include <math.h>
#pragma GCC diagnostic ignored "-Wtautological-compare" /* x != x for integers: the code serves all dtypes */

enum { LANES = 8 };
#define AS_IS(x)      (x)
#define F16_ROUND(x)  lc_f16_to_f32(lc_f32_to_f16(x))
#define BF16_ROUND(x) lc_bf16_to_f32(lc_f32_to_bf16(x))

#define T       uint8_t
#define NAME(f) f##_u8
#include "lookup_search.inc.c"
#undef T
#undef NAME
#define T       int8_t
#define NAME(f) f##_i8
#include "lookup_search.inc.c"
#undef T
#undef NAME
#define T       int16_t
#define NAME(f) f##_i16
#include "lookup_search.inc.c"
#undef T
#undef NAME
#define T       int32_t
#define NAME(f) f##_i32
#include "lookup_search.inc.c"
#undef T
#undef NAME
#define T       int64_t
#define NAME(f) f##_i64
#include "lookup_search.inc.c"
#undef T
#undef NAME
#define T       float
#define W       float
#define LOAD    AS_IS
#define ROUND   AS_IS
#define NAME(f) f##_f32
#include "lookup_search.inc.c"
#include "lookup_bins.inc.c"
#undef T
#undef NAME
#define T       double
#define W       double
#define LOAD    AS_IS
#define ROUND   AS_IS
#define NAME(f) f##_f64
#include "lookup_search.inc.c"
#include "lookup_bins.inc.c"
#undef T
#undef NAME
/* float16 and bfloat16 are binned directly, but searched in float32. */
#define T       uint16_t
#define W       float
#define LOAD    lc_f16_to_f32
#define ROUND   F16_ROUND
#define NAME(f) f##_f16
#include "lookup_bins.inc.c"
#undef NAME
#define W       float
#define LOAD    lc_bf16_to_f32
#define ROUND   BF16_ROUND
#define NAME(f) f##_bf16
#include "lookup_bins.inc.c"

#define TABLE_OF(isa) lc_cpu_lookup_##isa
#define TABLE(isa)    TABLE_OF(isa)
extern const lc_lookup TABLE(LC_ISA)[LC_DTYPE_COUNT];
const lc_lookup        TABLE(LC_ISA)[LC_DTYPE_COUNT] = {
#define INTEGER(op, dtype) [LC_##dtype] = { in_order_##dtype, search_##dtype, 0, 0 },
    LC_EACH_integral(INTEGER, )
#define FLOATING(op, dtype) [LC_##dtype] = { in_order_##dtype, search_##dtype, range_##dtype, bins_##dtype },
        LC_EACH_floating(FLOATING, )[LC_f16] = { 0, 0, range_f16, bins_f16 },
    [LC_bf16] = { 0, 0, range_bf16, bins_bf16 },
};

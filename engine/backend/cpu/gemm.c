/* Compiled once per instruction set. Sums here are fused multiply-adds where the machine has them: a product of matrices is not compared
 * bit for bit with anything, and they are half of its speed. */
#include "gemm.h"
#include <string.h>
#ifdef __clang__
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("fp-contract=fast")
#endif

#if defined __AVX512F__
enum { VECTOR_BYTES = 64, ROWS = 14 };
#elif defined __AVX2__
enum { VECTOR_BYTES = 32, ROWS = 6 };
#else
enum { VECTOR_BYTES = 16, ROWS = 4 };
#endif

#define T       float
#define NAME(x) x##_f32
#include "gemm.inc.c"
#define T       double
#define NAME(x) x##_f64
#include "gemm.inc.c"

#define TABLE_OF(isa) lc_cpu_gemm_##isa
#define TABLE(isa)    TABLE_OF(isa)
const lc_gemm TABLE(LC_ISA) = { .f32 = { ROWS, COLUMNS_f32, micro_f32, micro_into_f32, pack_f32, dot_f32 },
                                .f64 = { ROWS, COLUMNS_f64, micro_f64, micro_into_f64, pack_f64, dot_f64 } };

/* The matmul op: matmul.c shares products between threads; half precision has its own file. */
#pragma once
#include "../../args.h"

int cpu_matmul_half(lc_dtype dtype, const lc_matmul_args *g); /* operands: each of dtype or half precision */

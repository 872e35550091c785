/* Products of matrices as whole calls: matmul.c shares them between threads; those of other dtypes than the computing one are apart. */
#pragma once
#include "../../args.h"

int cpu_matmul_halves(lc_dtype dtype, const lc_matmul_args *g); /* a, b, out, addend, residual: each of dtype or a half */

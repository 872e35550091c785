/* The ways to multiply, in the order in which matmul.c tries them. 0: done; 1: not this way; -1 after lc_fail. */
#pragma once
#include "../driver.h"

int cuda_activation(lc_op_id op);
int cuda_small_product(const lc_matmul_args *a, lc_dtype dtype);   /* own kernel, with any epilogue */
int cuda_lt_product(const lc_matmul_args *a, lc_dtype dtype);      /* cuBLASLt, with epilogues that it has */
int cuda_lt_sums(const lc_matmul_args *a);                         /* cuBLASLt, with the sums of a's rows */
int cuda_aligned_product(const lc_matmul_args *a, lc_dtype dtype); /* on padded copies, aligned.c */
int cuda_large_product(const lc_matmul_args *a, lc_dtype dtype);   /* cuBLASLt, cuBLAS, own kernel: takes everything */
int cuda_epilogue_steps(const lc_matmul_args *a, lc_dtype dtype);  /* after a product */

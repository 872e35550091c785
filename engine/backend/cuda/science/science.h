/* What the files of this folder share. */
#pragma once
#include "../driver.h"

int cuda_zero(const lc_tensor *t);                                  /* contiguous: all bytes zero */
int cuda_zero_bytes(void *p, size_t n);                             /* device memory */
int cuda_to_host(void *to, const void *from, size_t n, int device); /* waits; raises what kernels reported */
int cuda_to_device(void *to, const void *from, size_t n);
/* One of this backend's whole-call kernels, by another. */
static inline int cuda_call(lc_op_id op, lc_dtype dtype, const void *args)
{
    return lc_cuda_run_dtypes[op] >> dtype & 1 ? lc_cuda_runs[op](op, dtype, args) : LC_NO_KERNEL;
}

/* Complex numbers where the kernels of real ones do not do (complex.c). */
bool cuda_folds_complex(lc_op_id op);
int  cuda_reduce_complex(lc_op_id op, const lc_reduce_args *a);
int  cuda_scan_complex(lc_op_id op, lc_dtype dtype, const lc_scan_args *a, int64_t outer, int64_t n, int64_t inner);
int  cuda_ramp_complex(lc_op_id op, lc_dtype dtype, const lc_ramp_args *a);

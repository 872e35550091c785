/* The CUDA backend: the same op ids, the same scalar.def rows, compiled from text for the dtypes of a call. Whole-call kernels
 * enter themselves (CUDA_RUN). An op without a kernel is refused by name; nothing is computed on the host instead. */
#include "driver.h"
#include <stdlib.h>
#include <string.h>

cuda_run lc_cuda_runs[LC_OP_COUNT];
uint32_t lc_cuda_run_dtypes[LC_OP_COUNT];

static int cuda_fill(lc_tensor *to, const lc_tensor *number) { return cuda_copy(to, number); }

static int cuda_synchronize(int index)
{
    if (cuda_use(index) < 0) return -1;
    if (cuda_capturing()) return cuda_wait(); /* which says why not */
    void *host = lc_host_unlock ? lc_host_unlock() : NULL;
    int   rc = cuda.cuCtxSynchronize();
    if (host) lc_host_relock(host);
    return cuda_check(rc, "cuCtxSynchronize") < 0 ? -1 : cuda_raise_trouble(index);
}

static bool cuda_has(lc_op_id op, lc_dtype compute)
{
    return lc_cuda_run_dtypes[op] >> compute & 1 || cuda_has_row(op, compute) || cuda_has_fold(op, lc_working_dtype(compute));
}
bool       lc_cuda_has_kernel(int op, int dtype) { return cuda_has((lc_op_id)op, (lc_dtype)dtype); }
static int cuda_run_op(lc_op_id op, lc_dtype compute, const void *args)
{
    int rc = lc_cuda_run_dtypes[op] >> compute & 1 ? lc_cuda_runs[op](op, compute, args) : LC_NO_KERNEL;
    return rc == 0 ? cuda_launched() : rc; /* libraries launch too */
}

static const lc_backend lc_cuda = {
    .name = "cuda",
    .can = { .values = true,
             .fuses = LC_FUSES_EPILOGUE | LC_FUSES_ACCUMULATION | LC_FUSES_LOW_RANK,
             .half = LC_HALF_MATMUL | LC_HALF_ATTENTION | LC_HALF_QUANTIZED | LC_HALF_CONV | LC_HALF_POOLS | LC_HALF_NORM |
                     LC_HALF_FACTORS,
             .last = LC_LAST_POOLS | LC_LAST_CONV,
             .image_format = LC_CONTIGUOUS_FORMAT },
    .has = cuda_has,
    .elementwise = cuda_elementwise,
    .reduce = cuda_reduce,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .run = cuda_run_op,
    .memory = &cuda_memory,
    .transfer = cuda_transfer,
    .synchronize = cuda_synchronize,
    .queue = lc_cuda_stream_get,
    .set_queue = lc_cuda_stream_set,
    .queue_waits = lc_cuda_stream_wait_stream,
    .used_on_queue = lc_cuda_record_stream,
    .activity = &cuda_activity,
    .device_count = cuda_device_count,
    .current_device = lc_cuda_current_device,
};

static const lc_backend                 *open_cuda(void) { return cuda_use(0) < 0 ? NULL : &lc_cuda; }
static __attribute__((constructor)) void register_cuda(void) { lc_backend_openers[LC_CUDA] = open_cuda; }

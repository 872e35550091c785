/* The CUDA driver, NVRTC and cuBLAS, loaded at first use: nothing of CUDA is needed to build, to import, or to run on the
 * CPU.
 *
 * Only the few entry points that the backend calls are declared, with the types of the driver's ABI. Work goes to one stream
 * per device, the default one; calls enqueue and return. */
#pragma once
#include "../args.h"

typedef int      cu_result;
typedef uint64_t cu_pointer; /* device address */
typedef void    *cu_function, *cu_module, *cu_context, *nvrtc_program, *cublas_handle;

#define CUDA_DRIVER_CALLS(X)                                                                                                   \
    X(cuInit, (unsigned flags))                                                                                                \
    X(cuDeviceGetCount, (int *count))                                                                                          \
    X(cuDeviceGetAttribute, (int *value, int attribute, int device))                                                           \
    X(cuDevicePrimaryCtxRetain, (cu_context * context, int device))                                                            \
    X(cuCtxSetCurrent, (cu_context context))                                                                                   \
    X(cuCtxSynchronize, (void))                                                                                                \
    X(cuMemAlloc_v2, (cu_pointer * p, size_t bytes))                                                                           \
    X(cuMemFree_v2, (cu_pointer p))                                                                                            \
    X(cuMemHostAlloc, (void **p, size_t bytes, unsigned flags))                                                                \
    X(cuMemFreeHost, (void *p))                                                                                                \
    X(cuMemcpyHtoD_v2, (cu_pointer to, const void *from, size_t bytes))                                                        \
    X(cuMemcpyDtoH_v2, (void *to, cu_pointer from, size_t bytes))                                                              \
    X(cuModuleLoadData, (cu_module * module, const void *image))                                                               \
    X(cuModuleGetFunction, (cu_function * f, cu_module module, const char *name))                                              \
    X(cuLaunchKernel, (cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,            \
                       unsigned shared, void *stream, void **params, void **extra))                                            \
    X(cuGetErrorString, (cu_result error, const char **text))
#define CUDA_NVRTC_CALLS(X)                                                                                                    \
    X(nvrtcCreateProgram,                                                                                                      \
      (nvrtc_program * p, const char *source, const char *name, int n, const char *const *headers, const char *const *names))  \
    X(nvrtcCompileProgram, (nvrtc_program p, int n, const char *const *options))                                               \
    X(nvrtcDestroyProgram, (nvrtc_program * p))                                                                                \
    X(nvrtcGetCUBINSize, (nvrtc_program p, size_t * bytes))                                                                    \
    X(nvrtcGetCUBIN, (nvrtc_program p, char *image))                                                                           \
    X(nvrtcGetProgramLogSize, (nvrtc_program p, size_t * bytes))                                                               \
    X(nvrtcGetProgramLog, (nvrtc_program p, char *log))
#define CUDA_BLAS_CALLS(X)                                                                                                     \
    X(cublasCreate_v2, (cublas_handle * handle))                                                                               \
    X(cublasGemmStridedBatchedEx,                                                                                              \
      (cublas_handle handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda,       \
       long long stride_a, const void *b, int type_b, int ldb, long long stride_b, const void *beta, void *c, int type_c,      \
       int ldc, long long stride_c, int batch, int compute, int algorithm))

typedef struct {
#define X(name, args) cu_result(*name) args;
    CUDA_DRIVER_CALLS(X) CUDA_NVRTC_CALLS(X) CUDA_BLAS_CALLS(X)
#undef X
} cuda_calls;
extern cuda_calls cuda;

enum { CUDA_DEVICES = 16 };
int           cuda_use(int index);     /* makes the device current on this thread; 0, or -1 with the reason */
int           cuda_current(void);      /* the device this thread last used */
int           cuda_device_count(void); /* 0 if there is no driver */
int           cuda_check(cu_result result, const char *what); /* 0, or -1 with the driver's text */
int           cuda_need_nvrtc(void);
cublas_handle cuda_blas(int index); /* NULL after lc_fail */

/* The kernel "run" of a program, compiled for the current device. key names the program in this process; source(ctx) returns
 * its text (malloc'd) and is called only if the key is new. */
cu_function cuda_kernel(const char *key, char *(*source)(const void *ctx), const void *ctx);
int         cuda_launch(cu_function f, int64_t blocks, int threads, void *args);

char *lc_cuda_kernel_text(int i); /* tools/check_cuda_text.py */

extern const lc_device_allocator cuda_memory;

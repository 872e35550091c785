#include "driver.h"
#include <pthread.h>
#include <stdio.h>

cuda_calls cuda;

static struct {
    pthread_mutex_t lock;
    bool            tried, ready, nvrtc;
    int             devices;
    char            why[256];
    cu_context      context[CUDA_DEVICES];
    cublas_handle   blas[CUDA_DEVICES];
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };
static _Thread_local int current = -1;

static int load(const char *const *names, const char *what, const char *const *symbols, void **slots, int n)
{
    void *lib = lc_dylib_open(names, what);
    if (!lib) return -1;
    for (int i = 0; i < n; i++)
        if (!(slots[i] = lc_dylib_symbol(lib, symbols[i])))
            return lc_fail_int(LC_GpuNotAvailable, "%s lacks %s", what, symbols[i]);
    return 0;
}

#define NAME(name, args)  #name,
#define COUNT(name, args) +1
#define LOAD(calls, first, what, ...)                                                                                          \
    load((const char *const[]){ __VA_ARGS__, NULL }, what, (const char *const[]){ calls(NAME) }, (void **)&cuda.first,         \
         0 calls(COUNT))

int cuda_check(cu_result result, const char *what)
{
    const char *text = NULL;
    if (result == 0) return 0;
    if (cuda.cuGetErrorString) cuda.cuGetErrorString(result, &text);
    return lc_fail_int(result == 2 ? LC_OutOfMemory : LC_LucidError, "CUDA: %s failed: %s (%d)", what, text ? text : "unknown",
                       result);
}

static int start(void)
{
    if (LOAD(CUDA_DRIVER_CALLS, cuInit, "the CUDA driver", "libcuda.so.1", "libcuda.so") < 0) return -1;
    if (cuda_check(cuda.cuInit(0), "cuInit") < 0 || cuda_check(cuda.cuDeviceGetCount(&state.devices), "cuDeviceGetCount") < 0)
        return -1;
    if (state.devices > CUDA_DEVICES) state.devices = CUDA_DEVICES;
    return state.devices ? 0 : lc_fail_int(LC_GpuNotAvailable, "CUDA: there is no device");
}

static int ready(void)
{
    if (!state.tried) {
        state.tried = true;
        state.ready = start() == 0;
        if (!state.ready) snprintf(state.why, sizeof state.why, "%s", lc_error());
    }
    return state.ready ? 0 : lc_fail_int(LC_GpuNotAvailable, "device cuda is not available: %s", state.why);
}

int cuda_device_count(void)
{
    pthread_mutex_lock(&state.lock);
    int n = ready() == 0 ? state.devices : 0;
    pthread_mutex_unlock(&state.lock);
    return n;
}

int cuda_current(void) { return current; }

int cuda_use(int index)
{
    if (index == current) return 0;
    pthread_mutex_lock(&state.lock);
    int rc = ready();
    if (rc == 0 && (index < 0 || index >= state.devices))
        rc = lc_fail_int(LC_GpuNotAvailable, "cuda:%d: there are %d CUDA devices", index, state.devices);
    if (rc == 0 && !state.context[index])
        rc = cuda_check(cuda.cuDevicePrimaryCtxRetain(&state.context[index], index), "cuDevicePrimaryCtxRetain");
    if (rc == 0) rc = cuda_check(cuda.cuCtxSetCurrent(state.context[index]), "cuCtxSetCurrent");
    pthread_mutex_unlock(&state.lock);
    if (rc == 0) current = index;
    return rc;
}

int cuda_need_nvrtc(void)
{
    pthread_mutex_lock(&state.lock);
    int rc = state.nvrtc ? 0
                         : LOAD(CUDA_NVRTC_CALLS, nvrtcCreateProgram, "NVRTC", "libnvrtc.so.13", "libnvrtc.so.12",
                                "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so");
    if (rc == 0) state.nvrtc = true;
    pthread_mutex_unlock(&state.lock);
    return rc;
}

cublas_handle cuda_blas(int index)
{
    if (cuda_use(index) < 0) return NULL;
    pthread_mutex_lock(&state.lock);
    int rc = cuda.cublasGemmStridedBatchedEx ? 0
                                             : LOAD(CUDA_BLAS_CALLS, cublasCreate_v2, "cuBLAS", "libcublas.so.13",
                                                    "libcublas.so.12", "libcublas.so", "/usr/local/cuda/lib64/libcublas.so");
    if (rc == 0 && !state.blas[index] && cuda.cublasCreate_v2(&state.blas[index]) != 0)
        lc_fail(LC_LucidError, "cuBLAS: cublasCreate failed");
    cublas_handle handle = rc == 0 ? state.blas[index] : NULL;
    pthread_mutex_unlock(&state.lock);
    return handle;
}

int cuda_launch(cu_function f, int64_t blocks, int threads, void *args)
{
    if (blocks == 0) return 0;
    return cuda_check(
        cuda.cuLaunchKernel(f, (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, 0, NULL, (void *[]){ args }, NULL),
        "cuLaunchKernel");
}

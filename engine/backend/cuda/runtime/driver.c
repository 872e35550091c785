#include "runtime.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cuda_calls cuda;

static struct {
    pthread_mutex_t lock;
    bool            tried, ready, nvrtc, no_blas, sync, forked; /* forked: CUDA was started by the parent */
    int             devices;
    char            why[512];
    cu_context      context[CUDA_DEVICES];
    cuda_trouble   *trouble[CUDA_DEVICES];
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };
LC_HOT_TLS cuda_place cuda_here = { .device = -1 };

int cuda_load(const char *const *names, const char *what, const char *wheel, const char *const *symbols, void **slots, int n)
{
    void *lib = cuda_library(names, what, wheel);
    if (!lib) return -1;
    for (int i = 0; i < n; i++)
        if (!(slots[i] = lc_dylib_symbol(lib, symbols[i])))
            return lc_fail_int(LC_GpuNotAvailable, "%s lacks %s: a newer version is needed", what, symbols[i]);
    return 0;
}

#define NAME(name, args)  #name,
#define COUNT(name, args) +1
#define LOAD(calls, first, what, wheel, ...)                                                                                   \
    cuda_load((const char *const[]){ __VA_ARGS__, NULL }, what, wheel, (const char *const[]){ calls(NAME) },                   \
              (void **)&cuda.first, 0 calls(COUNT))

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
    if (LOAD(CUDA_DRIVER_CALLS, cuInit, "the CUDA driver", NULL, "libcuda.so.1", "libcuda.so") < 0) return -1;
    if (cuda_check(cuda.cuInit(0), "cuInit") < 0 || cuda_check(cuda.cuDeviceGetCount(&state.devices), "cuDeviceGetCount") < 0)
        return -1;
    if (state.devices > CUDA_DEVICES) state.devices = CUDA_DEVICES;
    const char *sync = getenv("LUCID_SYNC");
    state.sync = sync && *sync && *sync != '0';
    return state.devices ? 0 : lc_fail_int(LC_GpuNotAvailable, "the driver found no CUDA device");
}

bool        cuda_usable(void) { return state.ready && !state.forked; }
static void forget_after_fork(void) /* in the child: the next use raises */
{
    cuda_here = (cuda_place){ .device = -1 }, state.forked = true;
}

void cuda_lock(pthread_mutex_t *lock)
{
    if (pthread_mutex_trylock(lock) == 0) return;
    void *host = lc_host_unlock ? lc_host_unlock() : NULL;
    pthread_mutex_lock(lock);
    if (host) lc_host_relock(host);
}

static int ready(void)
{
    if (!state.tried) {
        state.tried = true;
        pthread_atfork(NULL, NULL, forget_after_fork);
        state.ready = start() == 0;
        if (!state.ready) snprintf(state.why, sizeof state.why, "%s", lc_error());
    }
    if (!state.ready) return lc_fail_int(LC_GpuNotAvailable, "device cuda is not available: %s", state.why);
    if (state.forked)
        return lc_fail_int(LC_LucidError, "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, "
                                          "you must use the 'spawn' start method");
    return 0;
}

int cuda_device_count(void)
{
    cuda_lock(&state.lock);
    int n = ready() == 0 ? state.devices : 0;
    pthread_mutex_unlock(&state.lock);
    return n;
}

COLD int cuda_make_current(int index)
{
    enum { PORTABLE = 1 };
    cuda_lock(&state.lock);
    int rc = ready();
    if (rc == 0 && (index < 0 || index >= state.devices))
        rc = lc_fail_int(LC_GpuNotAvailable, "cuda:%d: there are %d CUDA devices", index, state.devices);
    if (rc == 0 && !state.context[index])
        rc = cuda_check(cuda.cuDevicePrimaryCtxRetain(&state.context[index], index), "cuDevicePrimaryCtxRetain");
    if (rc == 0) rc = cuda_check(cuda.cuCtxSetCurrent(state.context[index]), "cuCtxSetCurrent");
    if (rc == 0 && !state.trouble[index]) {
        void *word = NULL;
        rc = cuda_check(cuda.cuMemHostAlloc(&word, sizeof(cuda_trouble), PORTABLE), "cuMemHostAlloc");
        if (rc == 0) memset(word, 0, sizeof(cuda_trouble)), state.trouble[index] = word;
    }
    pthread_mutex_unlock(&state.lock);
    if (rc == 0) cuda_here = (cuda_place){ .device = index, .stream = cuda_stream_of(index) };
    return rc;
}
cu_context cuda_context(int index) { return state.context[index]; }

int cuda_attribute(int index, int attribute)
{
    int value = 0;
    if (cuda_use(index) == 0) cuda.cuDeviceGetAttribute(&value, attribute, index);
    return value;
}

int cuda_need_nvrtc(void)
{
    cuda_lock(&state.lock);
    int rc = state.nvrtc ? 0
                         : LOAD(CUDA_NVRTC_CALLS, nvrtcVersion, "NVRTC", "cuda_nvrtc", "libnvrtc.so.13", "libnvrtc.so.12",
                                "libnvrtc.so");
    if (rc == 0) state.nvrtc = true;
    pthread_mutex_unlock(&state.lock);
    return rc;
}

/* Products have a kernel of their own: a missing cuBLAS is not an error. */
static int load_blas(void)
{
    cuda_lock(&state.lock);
    int rc = cuda.cublasGemmStridedBatchedEx ? 0
                                             : LOAD(CUDA_BLAS_CALLS, cublasCreate_v2, "cuBLAS", "cublas", "libcublas.so.13",
                                                    "libcublas.so.12", "libcublas.so");
    if (rc < 0) lc_verbose_log("products on cuda: %s", lc_error());
    state.no_blas = rc < 0;
    pthread_mutex_unlock(&state.lock);
    return rc;
}
static int blas_create(void **handle) { return load_blas() < 0 ? -1 : cuda.cublasCreate_v2(handle); }
static int blas_set_stream(void *handle, cu_stream stream)
{
    enum { WORKSPACE = 32 << 20 }; /* what cuBLAS asks for on Hopper. Its own pool may not be used while a graph is captured */
    void *space = cuda_workspace(WORKSPACE);
    int   rc = space ? cuda.cublasSetStream_v2(handle, stream) : -1;
    return rc ? rc : cuda.cublasSetWorkspace_v2(handle, space, WORKSPACE);
}
cublas_handle cuda_blas(int index)
{
    static const cuda_handle_kind kind = { blas_create, blas_set_stream };
    if (state.no_blas || cuda_use(index) < 0) return NULL;
    return cuda_handle(CUDA_HANDLE_BLAS, &kind);
}

/* ---- what kernels report ---- */
cuda_trouble *cuda_trouble_word(int index) { return state.trouble[index]; }
int           cuda_raise_trouble(int index)
{
    cuda_trouble *word = state.trouble[index], found;
    if (!word || !((volatile cuda_trouble *)word)->kind) return 0;
    found = *word;
    memset(word, 0, sizeof *word);
    switch (found.kind) {
    case CUDA_BAD_TARGET:
        return lc_fail_int(LC_IndexError, "Target %lld is out of bounds. (on cuda; LUCID_SYNC=1 raises at the call)",
                           (long long)found.value);
    case CUDA_BAD_PROBABILITY:
        return lc_fail_int(LC_LucidError,
                           "probability tensor contains either `inf`, `nan` or element < 0 (on cuda; LUCID_SYNC=1 raises at "
                           "the call)");
    case CUDA_BAD_RATE:
        return lc_fail_int(LC_LucidError,
                           "invalid Poisson rate, expected rate to be non-negative (on cuda; LUCID_SYNC=1 raises "
                           "at the call)");
    case CUDA_BAD_EMBEDDING:
        return lc_fail_int(
            LC_IndexError,
            "index out of range in self: %lld, the table has %lld rows (on cuda; LUCID_SYNC=1 raises at the call)",
            (long long)found.value, (long long)found.high);
    default:
        return lc_fail_int(LC_IndexError,
                           "index %lld is out of bounds for dimension %lld with size %lld (on cuda; LUCID_SYNC=1 raises at the "
                           "call)",
                           (long long)found.value, (long long)found.low, (long long)found.high);
    }
}

int cuda_launched(void) /* LUCID_SYNC=1: after every launch */
{
    if (!state.sync || cuda_capturing()) return 0;
    return cuda_check(cuda.cuStreamSynchronize(cuda_stream()), "a kernel") < 0 ? -1 : cuda_raise_trouble(cuda_current());
}

int cuda_launch(cu_function f, int64_t blocks, int threads, int shared, const void *args)
{
    enum { SHARED_MOST = 8, SHARED_PLAIN = 48 << 10 };
    if (blocks == 0) return 0;
    if (blocks > INT32_MAX) return lc_fail_int(LC_LucidError, "cuda: a call needs %lld blocks", (long long)blocks);
    if (shared > SHARED_PLAIN && cuda_check(cuda.cuFuncSetAttribute(f, SHARED_MOST, shared), "cuFuncSetAttribute") < 0)
        return -1;
    cu_result result = cuda.cuLaunchKernel(f, (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, (unsigned)shared, cuda_stream(),
                                           (void *[]){ (void *)args }, NULL);
    if (__builtin_expect(result != 0, 0)) return cuda_check(result, "cuLaunchKernel");
    return __builtin_expect(state.sync, 0) ? cuda_launched() : 0;
}

/* ---- what the host language asks ---- */
int lc_cuda_device_info(int index, lc_cuda_info *info)
{
    size_t bytes = 0;
    if (cuda_use(index) < 0) return -1;
    *info = (lc_cuda_info){ .total_memory = 0 };
    const struct {
        int *to, attribute; /* the driver's numbers */
    } asked[] = {
        { &info->major, 75 },
        { &info->minor, 76 },
        { &info->processors, 16 },
        { &info->threads_per_processor, 39 },
        { &info->l2_bytes, 38 },
        { &info->warp, 10 },
        { &info->threads_per_block, 1 },
        { &info->shared_per_block, 8 },
        { &info->shared_per_processor, 81 },
        { &info->registers_per_processor, 82 },
        { &info->clock_khz, 13 },
        { &info->memory_clock_khz, 36 },
        { &info->memory_bus_bits, 37 },
        { &info->integrated, 18 },
        { &info->multi_gpu, 84 },
        { &info->pci_bus, 33 },
        { &info->pci_device, 34 },
        { &info->pci_domain, 50 },
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) *asked[i].to = cuda_attribute(index, asked[i].attribute);
    cuda.cuDriverGetVersion(&info->driver);
    cuda.cuDeviceGetUuid_v2(info->uuid, index);
    if (cuda_check(cuda.cuDeviceGetName(info->name, sizeof info->name, index), "cuDeviceGetName") < 0) return -1;
    if (cuda_check(cuda.cuDeviceTotalMem_v2(&bytes, index), "cuDeviceTotalMem") < 0) return -1;
    return info->total_memory = (int64_t)bytes, 0;
}
bool lc_cuda_initialized(void) { return state.ready; }
int  lc_cuda_can_access(int device, int other, int *can)
{
    if (cuda_use(device) < 0 || cuda_use(other) < 0) return -1;
    return device == other ? (*can = 0, 0)
                           : cuda_check(cuda.cuDeviceCanAccessPeer(can, device, other), "cuDeviceCanAccessPeer");
}
int lc_cuda_device_of(const void *p, int *device)
{
    enum { ORDINAL = 9 };
    if (cuda_use(cuda_current() < 0 ? lc_cuda_current_device() : cuda_current()) < 0) return -1;
    return cuda_check(cuda.cuPointerGetAttribute(device, ORDINAL, (cu_pointer)(uintptr_t)p), "cuPointerGetAttribute");
}
int lc_cuda_memory_info(int index, int64_t *unused, int64_t *total)
{
    size_t rest = 0, all = 0;
    if (cuda_use(index) < 0 || cuda_check(cuda.cuMemGetInfo_v2(&rest, &all), "cuMemGetInfo") < 0) return -1;
    return *unused = (int64_t)rest, *total = (int64_t)all, 0;
}
void lc_cuda_load_libraries(void)
{
    if (cuda_device_count() > 0 && cuda_use(0) == 0) cuda_need_nvrtc(), cuda_blas(0), cuda_dnn_load(0), cuda_load_cupti();
}

/* The functions of lightning_core.h. Their memory is host memory, so copies are complete when a call returns; synchronising waits for
 * what the package lightning_core launched on a CUDA device, if there is one. What a device offers stands in one table. */
#include "../backend/backend.h"
#include "accelerator.h"
#include "trace.h"
#include <stdlib.h>
#include <string.h>

static lcError_t noted(lc_runtime_event_type type, lcError_t status, size_t size, int64_t detail0, int64_t detail1)
{
    lc_runtime_note(type, (int)status, size, detail0, detail1);
    return status;
}

/* ---- memory ---- */
lcError_t lcMalloc(void **pointer, size_t bytes)
{
    lcError_t status = pointer && bytes ? LC_SUCCESS : LC_INVALID_VALUE;
    if (pointer) *pointer = NULL;
    bool fits = bytes >> 47 == 0; /* what a process can address */
    if (status == LC_SUCCESS && !(fits && (*pointer = malloc(bytes)))) status = LC_OUT_OF_MEMORY;
    return noted(LC_EVENT_malloc_device, status, bytes, 0, 0);
}
lcError_t lcFree(void *pointer)
{
    free(pointer);
    return noted(LC_EVENT_free_device, LC_SUCCESS, 0, 0, 0);
}
lcError_t lcMemcpy(void *to, const void *from, size_t bytes, lcMemcpyKind kind)
{
    bool known = (unsigned)kind <= LC_MEMCPY_DEVICE_TO_DEVICE, there = !bytes || (to && from);
    if (known && there && bytes) memmove(to, from, bytes);
    return noted(LC_EVENT_memcpy, known && there ? LC_SUCCESS : LC_INVALID_VALUE, bytes, kind, 0);
}
lcError_t lcDeviceSynchronize(void)
{
    bool done = !lc_runtime_found_cuda() || lc_device_synchronize(lc_current_device(LC_CUDA)) == 0;
    return noted(LC_EVENT_device_synchronize, done ? LC_SUCCESS : LC_DRIVER_ERROR, 0, 0, 0);
}

/* ---- devices ---- */
lcError_t lcGetDeviceCount(int *count)
{
    int found = lc_runtime_uses_cuda(LC_DEVICE_CUDA) ? lc_device_count(LC_CUDA) : 1;
    if (count) *count = found;
    return noted(LC_EVENT_get_device_count, count ? LC_SUCCESS : LC_INVALID_VALUE, 0, found, 0);
}
static lcDeviceKind active(void) { return lc_runtime_uses_cuda(LC_DEVICE_CUDA) ? LC_DEVICE_CUDA : LC_DEVICE_CPU; }
static lcDeviceKind preferred(int64_t what)
{
    lcDeviceKind found = active();
    return noted(LC_EVENT_preferred_device_for, LC_SUCCESS, 0, what, found), found;
}
lcDeviceKind lcGetPreferredDeviceForInference(void) { return preferred(0); }
lcDeviceKind lcGetPreferredDeviceForTraining(void) { return preferred(1); }
int          lcIsCudaAvailable(void)
{
    return noted(LC_EVENT_is_cuda_available, LC_SUCCESS, 0, 0, 0), lc_runtime_uses_cuda(LC_DEVICE_CUDA);
}
int           lcIsMetalAvailable(void) { return noted(LC_EVENT_is_metal_available, LC_SUCCESS, 0, 0, 0), 0; }
lcMemoryModel lcGetMemoryModel(void) { return LC_MEMORY_HOST_MANAGED_COMPAT; }
const char   *lcGetMemoryModelName(void) { return "host-managed-compat"; }
const char   *lcBackendName(void)
{
    return noted(LC_EVENT_backend_name, LC_SUCCESS, 0, 0, 0), active() == LC_DEVICE_CUDA ? "cuda" : "cpu";
}

/* ---- synchronisation ---- */
static atomic_int default_policy; /* mode | boundary flag << 2 */

static bool      known_mode(lcSyncPolicy policy) { return (unsigned)policy.mode <= LC_SYNC_NEVER; }
static lcError_t apply(lcSyncPolicy policy)
{
    lcError_t status = known_mode(policy) ? LC_SUCCESS : LC_INVALID_VALUE;
    bool      waits = policy.mode == LC_SYNC_ALWAYS || (policy.mode == LC_SYNC_AUTO && lc_runtime_found_cuda());
    if (status == LC_SUCCESS && waits) status = lcDeviceSynchronize();
    return noted(LC_EVENT_apply_sync_policy, status, 0, policy.mode, policy.trace_sync_boundary != 0);
}
lcError_t lcSetDefaultSyncPolicy(lcSyncPolicy policy)
{
    if (!known_mode(policy)) return LC_INVALID_VALUE;
    atomic_store(&default_policy, (int)policy.mode | (policy.trace_sync_boundary != 0) << 2);
    return LC_SUCCESS;
}
lcError_t lcGetDefaultSyncPolicy(lcSyncPolicy *policy)
{
    int now = atomic_load(&default_policy);
    if (!policy) return LC_INVALID_VALUE;
    *policy = (lcSyncPolicy){ .mode = (lcSyncMode)(now & 3), .trace_sync_boundary = now >> 2 };
    return LC_SUCCESS;
}
lcError_t lcApplySyncPolicy(lcSyncPolicy policy) { return apply(policy); }
lcError_t lcApplyDefaultSyncPolicy(void)
{
    lcSyncPolicy policy;
    lcGetDefaultSyncPolicy(&policy);
    return apply(policy);
}

/* ---- what a device offers ---- */
static const struct {
    lcMemoryModel memory;
    const char   *compute_tag, *memory_tag, *sync_tag;
} devices[] = {
    [LC_DEVICE_CPU] = { LC_MEMORY_HOST_MANAGED_COMPAT, "cpu.eager.dispatch", "cpu.host_memory", "cpu.noop_sync" },
    [LC_DEVICE_CUDA] = { LC_MEMORY_NATIVE_DEVICE, "cuda.runtime.dispatch", "cuda.memory", "cuda.device_sync" },
    [LC_DEVICE_METAL] = { LC_MEMORY_HOST_MANAGED_COMPAT, "metal.compute.dispatch", "metal.host_managed_memory",
                          "metal.command_sync" },
};
static int is_here(lcDeviceKind device) /* built and available */
{
    return device == LC_DEVICE_CPU || (device == LC_DEVICE_CUDA && lc_runtime_uses_cuda(device));
}

lcError_t lcGetBackendCapabilities(lcDeviceKind device, lcBackendCapabilities *capabilities)
{
    if ((unsigned)device > LC_DEVICE_METAL || !capabilities) return LC_INVALID_VALUE;
    int here = is_here(device);
    *capabilities = (lcBackendCapabilities){ .device = device,
                                             .built = here,
                                             .available = here,
                                             .compute_surface = here,
                                             .memory_surface = here && device != LC_DEVICE_CPU,
                                             .sync_surface = here && device != LC_DEVICE_CPU,
                                             .runtime_trace_surface = 1,
                                             .sync_policy_surface = 1,
                                             .memory_model = devices[device].memory };
    return LC_SUCCESS;
}
lcError_t lcGetActiveBackendCapabilities(lcBackendCapabilities *capabilities)
{
    return lcGetBackendCapabilities(active(), capabilities);
}
lcError_t lcGetBackendInterfaceContract(lcDeviceKind device, lcBackendInterfaceContract *contract)
{
    if ((unsigned)device > LC_DEVICE_METAL || !contract) return LC_INVALID_VALUE;
    int here = is_here(device);
    *contract = (lcBackendInterfaceContract){
        .device = device,
        .compute = { here, 1, devices[device].compute_tag },
        .memory = { here, here && device != LC_DEVICE_CPU, 1, devices[device].memory, devices[device].memory_tag },
        .sync = { here, 1, 1, devices[device].sync_tag },
        .profiler = { 1, 1, 1, LC_RUNTIME_EVENTS, "runtime.trace.ring" },
    };
    return lcGetBackendCapabilities(device, &contract->capabilities);
}
lcError_t lcGetActiveBackendInterfaceContract(lcBackendInterfaceContract *contract)
{
    return lcGetBackendInterfaceContract(active(), contract);
}

/* ---- names and versions ---- */
const char *lcGetErrorString(lcError_t error)
{
    static const char *const names[] = { "success",       "not initialized", "invalid value", "out of memory",
                                         "not supported", "driver error",    "unknown error" };
    return names[(unsigned)error < LC_UNKNOWN ? error : LC_UNKNOWN];
}
lcError_t lcGetApiVersion(int *major, int *minor, int *patch)
{
    if (major) *major = LC_API_VERSION_MAJOR;
    if (minor) *minor = LC_API_VERSION_MINOR;
    if (patch) *patch = LC_API_VERSION_PATCH;
    return LC_SUCCESS;
}
const char *lcGetApiVersionString(void) { return LC_API_VERSION_STRING; }
size_t      lcGetStructSize(lcStructId id)
{
    static const size_t sizes[] = { 0,
                                    sizeof(lcBackendCapabilities),
                                    sizeof(lcComputeInterfaceContract),
                                    sizeof(lcMemoryInterfaceContract),
                                    sizeof(lcSyncInterfaceContract),
                                    sizeof(lcProfilerInterfaceContract),
                                    sizeof(lcBackendInterfaceContract) };
    return (unsigned)id < sizeof sizes / sizeof *sizes ? sizes[id] : 0;
}
lcError_t lcCheckStructSize(lcStructId id, size_t size)
{
    return size && lcGetStructSize(id) == size ? LC_SUCCESS : LC_INVALID_VALUE;
}

/* lightning_core.h: the runtime functions of Lightning Core's C API, on liblucid. Link with -llucid
 * (`python -m lucid.config --cflags --libs`).
 *
 * Memory here is host memory: lcMalloc, lcMemcpy in every direction and lcDeviceSynchronize work on any machine, and a "device"
 * pointer is an ordinary pointer. There is no Metal device; a CUDA device is there if the operators of the Python package
 * lightning_core can compute on it, and lcDeviceSynchronize waits for them. The package reports the same state, and its trace records
 * these calls. Every call is thread-safe. */
#ifndef LIGHTNING_CORE_H
#define LIGHTNING_CORE_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

#define LC_API_VERSION_MAJOR  0
#define LC_API_VERSION_MINOR  6
#define LC_API_VERSION_PATCH  0
#define LC_API_VERSION_STRING "0.6.0"

typedef enum {
    LC_SUCCESS = 0,
    LC_NOT_INITIALIZED,
    LC_INVALID_VALUE,
    LC_OUT_OF_MEMORY,
    LC_NOT_SUPPORTED,
    LC_DRIVER_ERROR,
    LC_UNKNOWN
} lcError_t;
typedef enum {
    LC_MEMCPY_HOST_TO_HOST = 0,
    LC_MEMCPY_HOST_TO_DEVICE,
    LC_MEMCPY_DEVICE_TO_HOST,
    LC_MEMCPY_DEVICE_TO_DEVICE
} lcMemcpyKind;
typedef enum { LC_DEVICE_CPU = 0, LC_DEVICE_CUDA, LC_DEVICE_METAL } lcDeviceKind;
typedef enum { LC_MEMORY_NATIVE_DEVICE = 0, LC_MEMORY_HOST_MANAGED_COMPAT } lcMemoryModel;
typedef enum { LC_SYNC_AUTO = 0, LC_SYNC_ALWAYS, LC_SYNC_NEVER } lcSyncMode;

typedef struct {
    lcSyncMode mode;
    int        trace_sync_boundary;
} lcSyncPolicy;
typedef struct {
    lcDeviceKind  device;
    int           built, available, compute_surface, memory_surface, sync_surface, profiling_surface;
    int           runtime_trace_surface, sync_policy_surface;
    lcMemoryModel memory_model;
} lcBackendCapabilities;
typedef struct {
    int         available, op_dispatch_trace_surface;
    const char *driver_tag;
} lcComputeInterfaceContract;
typedef struct {
    int           available, allocator_surface, memcpy_surface;
    lcMemoryModel memory_model;
    const char   *driver_tag;
} lcMemoryInterfaceContract;
typedef struct {
    int         available, sync_policy_surface, trace_sync_boundary_surface;
    const char *driver_tag;
} lcSyncInterfaceContract;
typedef struct {
    int         available, runtime_trace_surface, op_dispatch_trace_surface;
    size_t      trace_capacity;
    const char *driver_tag;
} lcProfilerInterfaceContract;
typedef struct {
    lcDeviceKind                device;
    lcBackendCapabilities       capabilities;
    lcComputeInterfaceContract  compute;
    lcMemoryInterfaceContract   memory;
    lcSyncInterfaceContract     sync;
    lcProfilerInterfaceContract profiler;
} lcBackendInterfaceContract;
typedef enum {
    LC_STRUCT_BACKEND_CAPABILITIES = 1,
    LC_STRUCT_COMPUTE_INTERFACE_CONTRACT,
    LC_STRUCT_MEMORY_INTERFACE_CONTRACT,
    LC_STRUCT_SYNC_INTERFACE_CONTRACT,
    LC_STRUCT_PROFILER_INTERFACE_CONTRACT,
    LC_STRUCT_BACKEND_INTERFACE_CONTRACT
} lcStructId;

lcError_t lcMalloc(void **pointer, size_t bytes);
lcError_t lcFree(void *pointer); /* NULL is allowed */
lcError_t lcMemcpy(void *to, const void *from, size_t bytes, lcMemcpyKind kind);
lcError_t lcDeviceSynchronize(void);

lcError_t     lcGetDeviceCount(int *count); /* of CUDA devices; 1 if there is none: the CPU */
lcDeviceKind  lcGetPreferredDeviceForInference(void);
lcDeviceKind  lcGetPreferredDeviceForTraining(void);
int           lcIsCudaAvailable(void);
int           lcIsMetalAvailable(void);
lcMemoryModel lcGetMemoryModel(void);
const char   *lcGetMemoryModelName(void);
const char   *lcBackendName(void);

lcError_t lcSetDefaultSyncPolicy(lcSyncPolicy policy);
lcError_t lcGetDefaultSyncPolicy(lcSyncPolicy *policy);
lcError_t lcApplySyncPolicy(lcSyncPolicy policy);
lcError_t lcApplyDefaultSyncPolicy(void);

lcError_t lcGetBackendCapabilities(lcDeviceKind device, lcBackendCapabilities *capabilities);
lcError_t lcGetActiveBackendCapabilities(lcBackendCapabilities *capabilities);
lcError_t lcGetBackendInterfaceContract(lcDeviceKind device, lcBackendInterfaceContract *contract);
lcError_t lcGetActiveBackendInterfaceContract(lcBackendInterfaceContract *contract);

const char *lcGetErrorString(lcError_t error);

/* What the library was built with, for programs built with another header. An argument may be NULL. */
lcError_t   lcGetApiVersion(int *major, int *minor, int *patch);
const char *lcGetApiVersionString(void);
size_t      lcGetStructSize(lcStructId id);                /* 0: no such struct */
lcError_t   lcCheckStructSize(lcStructId id, size_t size); /* LC_INVALID_VALUE if the sizes differ */

#ifdef __cplusplus
}
#endif
#endif

/* The runtime functions of lightning_core.h from C: memory, copies, synchronisation, what the machine offers, and the checks that a
 * program built with another version of the header makes.
 *
 *     cc runtime.c $(python -m lucid.config --cflags --libs) && ./a.out */
#include <lightning_core/lightning_core.h>
#include <stdio.h>
#include <string.h>

#define CHECK(x)                                                                                                               \
    do {                                                                                                                       \
        if (!(x)) {                                                                                                            \
            printf("line %d: %s\n", __LINE__, #x);                                                                             \
            return 1;                                                                                                          \
        }                                                                                                                      \
    } while (0)

static int memory(void)
{
    float a[4] = { 1, 2, 3, 4 }, b[4] = { 0, 0, 0, 0 };
    void *p = NULL, *q = NULL;
    CHECK(lcMalloc(&p, sizeof a) == LC_SUCCESS && lcMalloc(&q, sizeof a) == LC_SUCCESS);
    CHECK(lcMemcpy(p, a, sizeof a, LC_MEMCPY_HOST_TO_DEVICE) == LC_SUCCESS);
    CHECK(lcMemcpy(q, p, sizeof a, LC_MEMCPY_DEVICE_TO_DEVICE) == LC_SUCCESS);
    CHECK(lcDeviceSynchronize() == LC_SUCCESS);
    CHECK(lcMemcpy(b, q, sizeof a, LC_MEMCPY_DEVICE_TO_HOST) == LC_SUCCESS && !memcmp(a, b, sizeof a));
    CHECK(lcMemcpy(b, q, sizeof a, (lcMemcpyKind)9) == LC_INVALID_VALUE);
    CHECK(lcMemcpy(NULL, q, sizeof a, LC_MEMCPY_HOST_TO_HOST) == LC_INVALID_VALUE);
    CHECK(lcFree(p) == LC_SUCCESS && lcFree(q) == LC_SUCCESS && lcFree(NULL) == LC_SUCCESS);
    CHECK(lcMalloc(NULL, 4) == LC_INVALID_VALUE && lcMalloc(&p, (size_t)-1 / 2) == LC_OUT_OF_MEMORY && !p);
    return 0;
}

static int synchronisation(void)
{
    lcSyncPolicy policy = { LC_SYNC_ALWAYS, 1 }, now;
    CHECK(lcSetDefaultSyncPolicy(policy) == LC_SUCCESS && lcGetDefaultSyncPolicy(&now) == LC_SUCCESS);
    CHECK(now.mode == LC_SYNC_ALWAYS && now.trace_sync_boundary == 1 && lcApplyDefaultSyncPolicy() == LC_SUCCESS);
    policy.mode = (lcSyncMode)7;
    CHECK(lcApplySyncPolicy(policy) == LC_INVALID_VALUE && lcSetDefaultSyncPolicy(policy) == LC_INVALID_VALUE);
    CHECK(lcGetDefaultSyncPolicy(NULL) == LC_INVALID_VALUE);
    return 0;
}

static int devices(void)
{
    int                        count = 0;
    lcBackendCapabilities      c;
    lcBackendInterfaceContract i;
    int                        cuda = lcIsCudaAvailable();
    lcDeviceKind               best = cuda ? LC_DEVICE_CUDA : LC_DEVICE_CPU;
    CHECK(lcGetDeviceCount(&count) == LC_SUCCESS && (cuda ? count >= 1 : count == 1));
    CHECK(!lcIsMetalAvailable() && !strcmp(lcBackendName(), cuda ? "cuda" : "cpu"));
    CHECK(lcGetPreferredDeviceForInference() == best && lcGetPreferredDeviceForTraining() == best);
    CHECK(lcGetMemoryModel() == LC_MEMORY_HOST_MANAGED_COMPAT && !strcmp(lcGetMemoryModelName(), "host-managed-compat"));
    CHECK(lcGetActiveBackendCapabilities(&c) == LC_SUCCESS && c.device == best && c.available && c.compute_surface);
    CHECK(lcGetBackendCapabilities(LC_DEVICE_METAL, &c) == LC_SUCCESS && !c.available && !c.built);
    CHECK(lcGetBackendCapabilities((lcDeviceKind)5, &c) == LC_INVALID_VALUE);
    CHECK(lcGetActiveBackendInterfaceContract(&i) == LC_SUCCESS && i.profiler.trace_capacity == 4096);
    CHECK(lcGetBackendInterfaceContract(LC_DEVICE_CUDA, &i) == LC_SUCCESS && !strcmp(i.memory.driver_tag, "cuda.memory"));
    return 0;
}

static int versions(void)
{
    int major, minor, patch;
    CHECK(lcGetApiVersion(&major, &minor, &patch) == LC_SUCCESS);
    CHECK(major == LC_API_VERSION_MAJOR && minor == LC_API_VERSION_MINOR && patch == LC_API_VERSION_PATCH);
    CHECK(!strcmp(lcGetApiVersionString(), LC_API_VERSION_STRING));
    CHECK(lcGetStructSize(LC_STRUCT_BACKEND_CAPABILITIES) == sizeof(lcBackendCapabilities));
    CHECK(lcGetStructSize((lcStructId)9) == 0);
    CHECK(lcCheckStructSize(LC_STRUCT_BACKEND_INTERFACE_CONTRACT, sizeof(lcBackendInterfaceContract)) == LC_SUCCESS);
    CHECK(lcCheckStructSize(LC_STRUCT_BACKEND_INTERFACE_CONTRACT, 1) == LC_INVALID_VALUE);
    CHECK(!strcmp(lcGetErrorString(LC_NOT_SUPPORTED), "not supported"));
    CHECK(!strcmp(lcGetErrorString((lcError_t)99), "unknown error"));
    return 0;
}

int main(void)
{
    int failed = memory() || synchronisation() || devices() || versions();
    if (!failed) printf("backend %s, API %s: %s\n", lcBackendName(), lcGetApiVersionString(), lcGetErrorString(LC_SUCCESS));
    return failed;
}

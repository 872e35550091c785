/* The user's own CUDA C: compiled by NVRTC for the current device, kept in the cache folder like the backend's kernels, launched on
 * the current stream. A kernel is an extern "C" __global__ function; its arguments are addresses and numbers of the sizes that the
 * caller gives. */
#include "runtime.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARGUMENTS = 64, MOST_OPTIONS = 24 };
typedef struct own {
    struct own *next;
    uint64_t    hash;
    int         device;
    size_t      length;
    cu_module   module;
    char        key[]; /* the source and the options */
} own;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static own            *all;

/* source, then every option behind a zero byte */
static char *key_of(const char *source, const char *const *options, int n, size_t *length)
{
    *length = strlen(source) + 1;
    for (int i = 0; i < n; i++) *length += strlen(options[i]) + 1;
    char *key = malloc(*length), *at = key;
    if (!key) return lc_fail(LC_OutOfMemory, "out of memory: the source of a kernel");
    for (int i = -1; i < n; i++) {
        const char *part = i < 0 ? source : options[i];
        memcpy(at, part, strlen(part) + 1), at += strlen(part) + 1;
    }
    return key;
}

static cu_module module_of(const char *source, const char *const *options, int n)
{
    size_t    length;
    char     *key = key_of(source, options, n, &length);
    cu_module module = NULL;
    if (!key) return NULL;
    uint64_t hash = cuda_hash(CUDA_HASH_START, key, length);
    cuda_lock(&lock);
    own *o = all;
    while (o && (o->hash != hash || o->device != cuda_current() || o->length != length || memcmp(o->key, key, length)))
        o = o->next;
    if (o) module = o->module;
    else if ((o = malloc(sizeof *o + length))) {
        int before = cuda_relax_capture();
        o->module = module = cuda_module_from(source, hash, options, n);
        cuda_restore_capture(before);
        if (module) {
            o->hash = hash, o->device = cuda_current(), o->length = length;
            memcpy(o->key, key, length);
            o->next = all, all = o;
        } else free(o);
    } else lc_fail(LC_OutOfMemory, "out of memory: a kernel");
    pthread_mutex_unlock(&lock);
    return free(key), module;
}

int lc_cuda_run_kernel(int device, const char *source, const char *name, const char *const *options, int n_options,
                       const unsigned grid[3], const unsigned block[3], unsigned shared, const lc_cuda_argument *args, int n)
{
    enum { SHARED_MOST = 8, SHARED_PLAIN = 48 << 10 };
    void       *at[MOST_ARGUMENTS];
    cu_function f = NULL;
    if (n > MOST_ARGUMENTS) return lc_fail_int(LC_ValueError, "run_kernel: %d arguments; at most %d", n, MOST_ARGUMENTS);
    if (n_options > MOST_OPTIONS)
        return lc_fail_int(LC_ValueError, "run_kernel: %d options; at most %d", n_options, MOST_OPTIONS);
    if (cuda_use(device) < 0) return -1;
    cu_module module = module_of(source, options, n_options);
    if (!module) return -1;
    int before = cuda_relax_capture(); /* it may load code */
    int rc = cuda.cuModuleGetFunction(&f, module, name);
    cuda_restore_capture(before);
    if (rc != 0)
        return lc_fail_int(LC_ValueError, "run_kernel: the source has no kernel '%s': declare it extern \"C\" __global__",
                           name);
    if (shared > SHARED_PLAIN && cuda_check(cuda.cuFuncSetAttribute(f, SHARED_MOST, (int)shared), "cuFuncSetAttribute") < 0)
        return -1;
    for (int i = 0; i < n; i++) at[i] = (void *)args[i].value;
    if (cuda_check(
            cuda.cuLaunchKernel(f, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, cuda_stream(), at, NULL),
            name) < 0)
        return -1;
    return cuda_launched();
}

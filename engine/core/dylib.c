/* Shared libraries that are used when they are there: the CUDA family, LAPACK. Nothing is linked against them, so nothing of them is
 * needed to build, install or import. The host may add folders (the lib/ of nvidia-* wheels); those are tried before the
 * system's own search. */
#include "core.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MAX_FOLDERS = 64 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char           *folders[MAX_FOLDERS];
static int             n_folders;

int lc_dylib_add_path(const char *folder)
{
    size_t bytes = strlen(folder) + 1;
    char  *copy = lc_alloc(bytes);
    if (!copy) return -1;
    memcpy(copy, folder, bytes);
    pthread_mutex_lock(&lock);
    bool fits = n_folders < MAX_FOLDERS;
    if (fits) folders[n_folders++] = copy; /* never removed: libraries are never unloaded either */
    pthread_mutex_unlock(&lock);
    if (fits) return 0;
    lc_free(copy, bytes);
    return lc_fail_int(LC_LucidError, "more than %d library folders", MAX_FOLDERS);
}

static void *open_in_folders(const char *name)
{
    char path[4096];
    for (int i = 0; i < n_folders; i++)
        if (snprintf(path, sizeof path, "%s/%s", folders[i], name) < (int)sizeof path) {
            void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            if (lib) return lib;
        }
    return NULL;
}

/* Libraries that come with a GPU or for one: their absence means there is no usable GPU here. */
static bool is_gpu_library(const char *name)
{
    static const char *const prefixes[] = { "libcu", "libnv", "libnccl" };
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

void *lc_dylib_open(const char *const *names, const char *what)
{
    char reason[512] = "no candidates";
    pthread_mutex_lock(&lock);
    void *lib = NULL;
    for (const char *const *name = names; *name && !lib; name++) {
        lib = strchr(*name, '/') ? NULL : open_in_folders(*name);
        if (!lib && !(lib = dlopen(*name, RTLD_NOW | RTLD_LOCAL))) {
            const char *text = dlerror();
            snprintf(reason, sizeof reason, "%s", text ? text : "unknown error");
        }
        if (lib) lc_tell("%s: loaded %s", what, *name);
    }
    pthread_mutex_unlock(&lock);
    if (lib) return lib;
    bool gpu = names[0] && is_gpu_library(names[0]);
    return lc_fail(gpu ? LC_GpuNotAvailable : LC_LucidError, "%s is not available: %s", what, reason);
}

void *lc_dylib_symbol(void *lib, const char *name)
{
    void *symbol = dlsym(lib, name);
    return symbol ? symbol : lc_fail(LC_LucidError, "the symbol %s is missing from a library: a version mismatch?", name);
}

/* Optional shared libraries: the CUDA family, LAPACK. They are loaded at run time and never linked, so building, installing
 * and importing need none of them. */
#include "core.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* GPU libraries: if they are missing, there is no usable GPU. */
static bool is_gpu_library(const char *name)
{
    static const char *const prefixes[] = { "libcu", "libnv", "libnccl" };
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

void *lc_dylib_open(const char *const *names, const char *what)
{
    char  reason[512] = "no candidates";
    void *lib = NULL;
    for (const char *const *name = names; *name && !lib; name++) {
        if (!(lib = dlopen(*name, RTLD_NOW | RTLD_LOCAL))) {
            const char *text = dlerror();
            snprintf(reason, sizeof reason, "%s", text ? text : "unknown error");
        }
        if (lib) lc_verbose_log("%s: loaded %s", what, *name);
    }
    if (lib) return lib;
    bool gpu = names[0] && is_gpu_library(names[0]);
    return lc_fail(gpu ? LC_GpuNotAvailable : LC_LucidError, "%s is not available: %s", what, reason);
}

void *lc_dylib_symbol(void *lib, const char *name)
{
    void *symbol = dlsym(lib, name);
    return symbol ? symbol : lc_fail(LC_LucidError, "the symbol %s is missing from a library: a version mismatch?", name);
}

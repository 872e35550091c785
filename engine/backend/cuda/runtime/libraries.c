/* Where the libraries of CUDA are: $LUCID_CUDA_PATH and its lib64 and lib, where the system looks, the nvidia-* wheels of
 * this Python, /usr/local/cuda. The toolkit has a folder of its own for CUPTI. */
#include "../driver.h"
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 640, LIBRARIES = 12 };
static struct {
    const char *what;
    char        path[ROOM];
} loaded[LIBRARIES];

static void note(const char *what, const char *path)
{
    for (int i = 0; i < LIBRARIES; i++)
        if (!loaded[i].what || !strcmp(loaded[i].what, what)) {
            loaded[i].what = what;
            snprintf(loaded[i].path, ROOM, "%s", path);
            return;
        }
}

/* NVRTC opens its builtins by name: they must be loaded already when the folder is not on the system's path. */
static void open_beside(const char *folder, const char *start)
{
    DIR *d = opendir(folder);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d));)
        if (!strncmp(e->d_name, start, strlen(start))) {
            char path[2 * ROOM];
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        }
    closedir(d);
}

static void *open_in(const char *folder, const char *const *sonames, const char *what)
{
    char path[2 * ROOM];
    for (const char *const *name = sonames; *name; name++) {
        snprintf(path, sizeof path, "%s/%s", folder, *name);
        void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!lib) continue;
        if (!strncmp(*name, "libnvrtc", 8)) open_beside(folder, "libnvrtc-builtins.so.");
        return note(what, path), lc_verbose_log("%s: loaded %s", what, path), lib;
    }
    return NULL;
}

void *cuda_library(const char *const *sonames, const char *what, const char *wheel)
{
    char        folder[2 * ROOM], nvidia[ROOM];
    const char *given = getenv("LUCID_CUDA_PATH");
    void       *lib = NULL;
    if (given && *given) {
        static const char *const under[] = { "", "/lib64", "/lib", "/extras/CUPTI/lib64" };
        for (int i = 0; i < 4 && !lib; i++)
            snprintf(folder, sizeof folder, "%s%s", given, under[i]), lib = open_in(folder, sonames, what);
        if (lib) return lib;
    }
    for (const char *const *name = sonames; *name && !lib; name++)
        if ((lib = dlopen(*name, RTLD_NOW | RTLD_LOCAL))) note(what, *name);
    if (lib) return lib;
    if (wheel && lc_host_package && lc_host_package("nvidia", nvidia, sizeof nvidia)) {
        const char *const packages[] = { "cu13", wheel };
        for (int i = 0; i < 2 && !lib; i++)
            snprintf(folder, sizeof folder, "%s/%s/lib", nvidia, packages[i]), lib = open_in(folder, sonames, what);
        if (lib) return lib;
    }
    if ((lib = open_in("/usr/local/cuda/lib64", sonames, what))) return lib;
    if ((lib = open_in("/usr/local/cuda/extras/CUPTI/lib64", sonames, what))) return lib;
    if (!wheel)
        return lc_fail(LC_GpuNotAvailable,
                       "%s (%s) was not found: install NVIDIA's driver, or set LUCID_CUDA_PATH to its folder", what,
                       sonames[0]);
    return lc_fail(LC_GpuNotAvailable,
                   "%s (%s) was not found in LUCID_CUDA_PATH, on the system's path, in nvidia-* wheels or in /usr/local/cuda: "
                   "pip install nvidia-%s, or install the CUDA toolkit",
                   what, sonames[0],
                   !strcmp(wheel, "cudnn")        ? "cudnn-cu13"
                   : !strcmp(wheel, "cuda_nvrtc") ? "cuda-nvrtc"
                   : !strcmp(wheel, "cuda_cupti") ? "cuda-cupti"
                                                  : wheel);
}

const char *lc_cuda_library(int i, char text[512])
{
    if (i < 0 || i >= LIBRARIES || !loaded[i].what) return NULL;
    snprintf(text, 512, "%s: %.480s", loaded[i].what, loaded[i].path);
    return text;
}

/* Kernels are text. NVRTC compiles a program for the device it runs on, at first use; the cubin is kept in $LUCID_CACHE_DIR
 * (default ~/.cache/lucid), named by a hash of source and architecture, so the next process only loads it. */
#include "driver.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOTS = 256, PATH_ROOM = 512 };
typedef struct entry {
    struct entry *next;
    int           device;
    char         *key;
    cu_function   f;
} entry;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry          *entries[SLOTS];

static uint64_t hash_text(const char *s)
{
    uint64_t h = 1469598103934665603u;
    for (; *s; s++) h = (h ^ (uint8_t)*s) * 1099511628211u;
    return h;
}

static int architecture(void) /* 90 for sm_90; the numbers are the driver's names for the two attributes */
{
    int major = 0, minor = 0;
    cuda.cuDeviceGetAttribute(&major, 75, cuda_current());
    cuda.cuDeviceGetAttribute(&minor, 76, cuda_current());
    return 10 * major + minor;
}

static bool cache_path(char path[PATH_ROOM], const char *source)
{
    const char *dir = getenv("LUCID_CACHE_DIR"), *home = getenv("HOME");
    char        folder[PATH_ROOM / 2];
    if (!dir && !home) return false;
    if (!dir) {
        snprintf(folder, sizeof folder, "%s/.cache", home);
        mkdir(folder, 0700);
    }
    snprintf(folder, sizeof folder, dir ? "%s" : "%s/.cache/lucid", dir ? dir : home);
    mkdir(folder, 0700);
    return snprintf(path, PATH_ROOM, "%s/%016llx-sm%d.cubin", folder, (unsigned long long)hash_text(source), architecture()) <
           PATH_ROOM;
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *image = NULL;
    long  n;
    if (!f) return NULL;
    if (fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) > 0 && (image = malloc((size_t)n))) {
        rewind(f);
        if (fread(image, 1, (size_t)n, f) != (size_t)n) free(image), image = NULL;
    }
    fclose(f);
    return image;
}

static void write_file(const char *path, const char *image, size_t n) /* atomically: under a temporary name first */
{
    char temporary[PATH_ROOM + 16];
    snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
    FILE *f = fopen(temporary, "wb");
    if (!f) return;
    bool whole = fwrite(image, 1, n, f) == n;
    if (fclose(f) != 0 || !whole || rename(temporary, path) != 0) remove(temporary);
}

static void report_log(nvrtc_program p, int rc)
{
    size_t length = 0;
    char  *log = cuda.nvrtcGetProgramLogSize(p, &length) == 0 ? calloc(1, length + 1) : NULL;
    if (log) cuda.nvrtcGetProgramLog(p, log);
    lc_fail(LC_LucidError, "NVRTC: compilation failed (%d): %.300s", rc, log ? log : "");
    free(log);
}

static char *compiled(const char *source, size_t *n)
{
    nvrtc_program p;
    char          arch[32], *image = NULL;
    if (cuda_need_nvrtc() < 0) return NULL;
    snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d", architecture());
    if (cuda.nvrtcCreateProgram(&p, source, "lucid.cu", 0, NULL, NULL) != 0) return lc_fail(LC_LucidError, "NVRTC: no program");
    /* No fused multiply-add: as on the CPU, a product and a sum round twice, so elementwise results agree. */
    int rc = cuda.nvrtcCompileProgram(p, 3, (const char *const[]){ arch, "--fmad=false", "--std=c++17" });
    if (rc == 0 && cuda.nvrtcGetCUBINSize(p, n) == 0 && (image = malloc(*n))) cuda.nvrtcGetCUBIN(p, image);
    if (!image) report_log(p, rc);
    cuda.nvrtcDestroyProgram(&p);
    return image;
}

static cu_function built(const char *source)
{
    char        path[PATH_ROOM], *image;
    bool        on_disk = cache_path(path, source);
    cu_module   module;
    cu_function f = NULL;
    size_t      n = 0;
    if (!(image = on_disk ? read_file(path) : NULL)) {
        if (!(image = compiled(source, &n))) return NULL;
        if (on_disk) write_file(path, image, n);
    }
    if (cuda_check(cuda.cuModuleLoadData(&module, image), "cuModuleLoadData") == 0)
        cuda_check(cuda.cuModuleGetFunction(&f, module, "run"), "cuModuleGetFunction");
    free(image);
    return f;
}

cu_function cuda_kernel(const char *key, char *(*source)(const void *ctx), const void *ctx)
{
    entry **slot = &entries[hash_text(key) % SLOTS], *e;
    pthread_mutex_lock(&lock);
    for (e = *slot; e && (e->device != cuda_current() || strcmp(e->key, key)); e = e->next)
        ;
    cu_function f = e ? e->f : NULL;
    if (!f) {
        char *text = source(ctx);
        f = text ? built(text) : lc_fail(LC_OutOfMemory, "out of memory: kernel text");
        free(text);
        if (f && (e = malloc(sizeof *e))) {
            *e = (entry){ .next = *slot, .device = cuda_current(), .key = strdup(key), .f = f };
            if (e->key) *slot = e;
            else free(e);
        }
    }
    pthread_mutex_unlock(&lock);
    return f;
}

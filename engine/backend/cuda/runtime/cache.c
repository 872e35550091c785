/* The cache folder: $LUCID_CACHE_DIR, else ~/.cache/lucid. Compiled kernels and plans of libraries are files in it, named by all
 * that they depend on. A file is written under a temporary name first, so it is whole or absent. */
#include "../driver.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 512 };

uint64_t cuda_hash(uint64_t h, const void *data, size_t n)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < n; i++) h = (h ^ bytes[i]) * 1099511628211u;
    return h;
}

static bool path_of(char path[PATH_ROOM], const char *name)
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
    return snprintf(path, PATH_ROOM, "%s/%s", folder, name) < PATH_ROOM;
}

char *cuda_cache_read(const char *name, size_t *n)
{
    char path[PATH_ROOM], *image = NULL;
    if (!path_of(path, name)) return NULL;
    FILE *f = fopen(path, "rb");
    long  size;
    if (!f) return NULL;
    if (fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) > 0 && (image = malloc((size_t)size))) {
        rewind(f);
        if (fread(image, 1, (size_t)size, f) != (size_t)size) free(image), image = NULL;
        else *n = (size_t)size;
    }
    fclose(f);
    return image;
}

void cuda_cache_write(const char *name, const char *image, size_t n)
{
    char path[PATH_ROOM], temporary[PATH_ROOM + 16];
    if (!path_of(path, name)) return;
    snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
    FILE *f = fopen(temporary, "wb");
    if (!f) return;
    bool whole = fwrite(image, 1, n, f) == n;
    if (fclose(f) != 0 || !whole || rename(temporary, path) != 0) remove(temporary);
}

/* Storages: engine memory on the CPU is header and bytes in one cached block; memory of other devices and owners is reached
 * through `data`. */
#include "tensor.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

LC_SHORT_LOOPS

const lc_device_allocator *lc_device_memory[LC_DEVICE_KINDS];
int (*lc_device_open)(lc_device device);
uint64_t lc_trace_births;

static void set_header(lc_storage *s, lc_device device, char *data, size_t bytes)
{
    s->refs = 1;
    s->device = device;
    s->read_only = s->pinned = false;
    s->version = 0;
    s->shared_fd = -1;
    s->bytes = bytes;
    s->data = data;
    s->deleter = NULL;
    s->owner = NULL;
    s->trace_id = lc_trace_births;
}

static COLD lc_storage *storage_elsewhere(lc_device device, size_t bytes)
{
    if (!lc_device_memory[device.kind] && lc_device_open(device) < 0) return NULL;
    const lc_device_allocator *memory = lc_device_memory[device.kind];
    lc_storage                *s = lc_alloc(sizeof *s);
    if (!s) return NULL;
    set_header(s, device, NULL, bytes);
    if (memory->alloc(s) == 0) return lc_memory_count((lc_device_kind)device.kind, (int64_t)bytes), s;
    lc_free(s, sizeof *s);
    return NULL;
}

lc_storage *lc_storage_new(lc_device device, size_t bytes)
{
    if (bytes > PTRDIFF_MAX / 2) return lc_fail(LC_OutOfMemory, "out of memory: %zu bytes", bytes);
    if (device.kind != LC_CPU) return storage_elsewhere(device, bytes);
    lc_storage *s = lc_alloc(sizeof *s + bytes);
    if (!s) return NULL;
    set_header(s, device, s->inline_data, bytes);
    lc_memory_count(LC_CPU, (int64_t)bytes);
    return s;
}

lc_storage *lc_storage_foreign(lc_device device, void *data, size_t bytes, void (*deleter)(lc_storage *), void *owner)
{
    lc_storage *s = lc_alloc(sizeof *s);
    if (!s) return NULL;
    set_header(s, device, data, bytes);
    s->deleter = deleter, s->owner = owner;
    lc_memory_count((lc_device_kind)device.kind, (int64_t)bytes);
    return s;
}

void lc_storage_release(lc_storage *s)
{
    if (!s || !lc_last_reference(&s->refs)) return;
    lc_memory_count((lc_device_kind)s->device.kind, -(int64_t)s->bytes);
    bool inline_bytes = s->data == s->inline_data;
    if (s->deleter) s->deleter(s);
    lc_free(s, sizeof *s + (inline_bytes ? s->bytes : 0));
}

/* Shared memory: a memfd, so that nothing is left in a file system when every process has gone. */
static void unmap(lc_storage *s)
{
    if (s->bytes) munmap(s->data, s->bytes);
    if (s->shared_fd >= 0) close(s->shared_fd);
}

lc_storage *lc_storage_map_fd(int fd, size_t bytes)
{
    struct stat info;
    void       *p = NULL;
    if (fstat(fd, &info) < 0 || (size_t)info.st_size < bytes) {
        close(fd);
        return lc_fail(LC_ValueError, "shared memory: the descriptor does not hold %zu bytes", bytes);
    }
    if (bytes && (p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED) {
        close(fd);
        return lc_fail(LC_OutOfMemory, "shared memory: cannot map %zu bytes: %s", bytes, strerror(errno));
    }
    lc_storage *s = lc_storage_foreign((lc_device){ LC_CPU, 0 }, p, bytes, unmap, NULL);
    if (s) s->shared_fd = fd;
    else {
        if (bytes) munmap(p, bytes);
        close(fd);
    }
    return s;
}

lc_storage *lc_storage_shared(size_t bytes)
{
    int fd = memfd_create("lucid", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0) {
        lc_fail(LC_OutOfMemory, "shared memory: %zu bytes: %s", bytes, strerror(errno));
        if (fd >= 0) close(fd);
        return NULL;
    }
    return lc_storage_map_fd(fd, bytes);
}

lc_storage *lc_storage_map_file(const char *path, size_t bytes, bool shared)
{
    struct stat info;
    void       *p = NULL;
    int         fd = open(path, (shared ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0666);
    if (fd < 0 || fstat(fd, &info) < 0) {
        lc_fail(LC_LucidError, "unable to open file <%s> in %s mode: %s (%d)", path, shared ? "read-write" : "read-only",
                strerror(errno), errno);
        goto failed;
    }
    if ((size_t)info.st_size < bytes && !shared) {
        lc_fail(LC_LucidError, "file <%s> has %lld bytes, %zu are asked for", path, (long long)info.st_size, bytes);
        goto failed;
    }
    if ((size_t)info.st_size < bytes && ftruncate(fd, (off_t)bytes) < 0) {
        lc_fail(LC_LucidError, "unable to stretch file <%s> to %zu bytes: %s", path, bytes, strerror(errno));
        goto failed;
    }
    if (bytes && (p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, fd, 0)) == MAP_FAILED) {
        lc_fail(LC_OutOfMemory, "unable to map %zu bytes of file <%s>: %s", bytes, path, strerror(errno));
        goto failed;
    }
    close(fd); /* the mapping stays */
    lc_storage *s = lc_storage_foreign((lc_device){ LC_CPU, 0 }, p, bytes, unmap, NULL);
    if (!s && bytes) munmap(p, bytes);
    return s;
failed:
    if (fd >= 0) close(fd);
    return NULL;
}

lc_storage *lc_storage_pinned(lc_device_kind accelerator, size_t bytes)
{
    const lc_device_allocator *memory = lc_device_memory[accelerator];
    if (!memory || !memory->alloc_pinned)
        return lc_fail(LC_GpuNotAvailable, "pin_memory: needs an accelerator, and there is none");
    lc_storage *s = lc_storage_foreign((lc_device){ LC_CPU, 0 }, NULL, bytes, NULL, NULL);
    if (s && memory->alloc_pinned(s) < 0) return lc_storage_release(s), NULL;
    if (s) s->pinned = true;
    return s;
}

int lc_tensor_share_memory(lc_tensor *t)
{
    lc_storage *old = t->storage;
    if (t->device.kind != LC_CPU || !old) return lc_fail_int(LC_NotImplementedError, "share_memory_: only for CPU tensors");
    if (old->shared_fd >= 0) return 0;
    lc_storage *s = lc_storage_shared(old->bytes);
    if (!s) return -1;
    if (old->bytes) memcpy(s->data, old->data, old->bytes);
    atomic_store(&s->version, atomic_load(&old->version));
    t->data = s->data + (t->data - old->data);
    t->storage = s;
    lc_storage_release(old);
    return 0;
}

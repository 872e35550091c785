/* Device memory: freed blocks are cached by size (rounded to 512 bytes, from 1 MiB on to 2 MiB) and reused. All work of a
 * device goes to one stream, so a block may be reused at once. If the device is out of memory, the cache is released and the
 * allocation is tried again. */
#include "driver.h"
#include <pthread.h>
#include <stdlib.h>

typedef struct block {
    struct block *next;
    cu_pointer    p;
    size_t        bytes;
    int           device;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block          *cached;

static size_t rounded(size_t bytes)
{
    size_t unit = bytes < (1u << 20) ? 512 : 2u << 20;
    return (bytes + unit - 1) / unit * unit;
}

static block *take(size_t bytes, int device)
{
    pthread_mutex_lock(&lock);
    block **at = &cached, *b;
    while ((b = *at) && (b->bytes != bytes || b->device != device)) at = &b->next;
    if (b) *at = b->next;
    pthread_mutex_unlock(&lock);
    return b;
}

static void give_back_all(void)
{
    pthread_mutex_lock(&lock);
    for (block *b; (b = cached); free(b)) {
        cached = b->next;
        if (cuda_use(b->device) == 0) cuda.cuMemFree_v2(b->p);
    }
    pthread_mutex_unlock(&lock);
}

static void keep(lc_storage *s)
{
    block *b = s->owner;
    pthread_mutex_lock(&lock);
    b->next = cached, cached = b;
    pthread_mutex_unlock(&lock);
}

static int cuda_alloc(lc_storage *s)
{
    size_t bytes = rounded(s->bytes ? s->bytes : 1);
    block *b = take(bytes, s->device.index);
    if (!b) {
        if (cuda_use(s->device.index) < 0) return -1;
        if (!(b = malloc(sizeof *b))) return lc_fail_int(LC_OutOfMemory, "out of memory: block header");
        *b = (block){ .bytes = bytes, .device = s->device.index };
        if (cuda.cuMemAlloc_v2(&b->p, bytes) != 0) {
            give_back_all();
            if (cuda_use(s->device.index) < 0 || cuda.cuMemAlloc_v2(&b->p, bytes) != 0) {
                free(b);
                return lc_fail_int(LC_OutOfMemory, "CUDA out of memory: %zu bytes", s->bytes);
            }
        }
    }
    s->data = (char *)(uintptr_t)b->p, s->owner = b, s->deleter = keep;
    return 0;
}

static void free_pinned(lc_storage *s) { cuda.cuMemFreeHost(s->data); }
static int  cuda_alloc_pinned(lc_storage *s)
{
    enum { PORTABLE = 1 };                                                /* pinned for every device */
    if (cuda_use(cuda_current() < 0 ? 0 : cuda_current()) < 0) return -1; /* any device's context */
    void *p;
    if (cuda.cuMemHostAlloc(&p, s->bytes ? s->bytes : 1, PORTABLE) != 0)
        return lc_fail_int(LC_OutOfMemory, "out of page-locked memory: %zu bytes", s->bytes);
    s->data = p, s->deleter = free_pinned;
    return 0;
}

const lc_device_allocator cuda_memory = { .alloc = cuda_alloc, .alloc_pinned = cuda_alloc_pinned };

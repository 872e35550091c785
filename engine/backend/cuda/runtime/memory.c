/* Device memory. Sizes are rounded up (512 bytes; from 1 MiB on an eighth of the next smaller power of two), freed blocks are
 * kept by device and size and reused. All work of a device goes to one stream, so a block may be reused at once. If the
 * device is out of memory, the cache is released and the allocation is tried again. */
#include "../driver.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct block {
    struct block *next;
    cu_pointer    p;
    size_t        bytes;
    int           device;
} block;

enum { BINS = 1024 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block          *bins[BINS];
static int64_t         cached_bytes, cached_blocks, driver_allocs, driver_frees, retries, reserved, most_reserved;

static size_t rounded(size_t bytes)
{
    if (bytes <= 1u << 20) return bytes ? (bytes + 511) / 512 * 512 : 512;
    size_t unit = (size_t)1 << (63 - __builtin_clzll(bytes) - 3);
    return (bytes + unit - 1) / unit * unit;
}
static block **bin_of(size_t bytes, int device)
{
    return &bins[((bytes >> 9) * 0x9e3779b97f4a7c15u >> 40 ^ (unsigned)device * 31u) % BINS];
}

static block *take(size_t bytes, int device)
{
    pthread_mutex_lock(&lock);
    block **at = bin_of(bytes, device), *b;
    while ((b = *at) && (b->bytes != bytes || b->device != device)) at = &b->next;
    if (b) *at = b->next, cached_bytes -= (int64_t)bytes, cached_blocks--;
    pthread_mutex_unlock(&lock);
    return b;
}

void lc_cuda_empty_cache(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < BINS; i++)
        for (block *b; (b = bins[i]); free(b)) {
            bins[i] = b->next;
            if (cuda_use(b->device) == 0) cuda.cuMemFree_v2(b->p);
            cached_bytes -= (int64_t)b->bytes, reserved -= (int64_t)b->bytes, cached_blocks--, driver_frees++;
        }
    pthread_mutex_unlock(&lock);
}

static void keep(lc_storage *s)
{
    block *b = s->owner;
    pthread_mutex_lock(&lock);
    block **bin = bin_of(b->bytes, b->device);
    b->next = *bin, *bin = b;
    cached_bytes += (int64_t)b->bytes, cached_blocks++;
    pthread_mutex_unlock(&lock);
}

static COLD int out_of_memory(size_t bytes, int device)
{
    size_t rest = 0, total = 0;
    if (cuda_use(device) == 0) cuda.cuMemGetInfo_v2(&rest, &total);
    return lc_fail_int(
        LC_OutOfMemory,
        "CUDA out of memory. Tried to allocate %.2f MiB on device %d, which has %.2f GiB in all and %.2f GiB free; "
        "this process holds %.2f GiB",
        (double)bytes / 0x1p20, device, (double)total / 0x1p30, (double)rest / 0x1p30, (double)reserved / 0x1p30);
}

static int cuda_alloc(lc_storage *s)
{
    if (s->bytes > (size_t)1 << 48) return out_of_memory(s->bytes, s->device.index);
    size_t bytes = rounded(s->bytes);
    block *b = take(bytes, s->device.index);
    if (!b) {
        if (cuda_use(s->device.index) < 0) return -1;
        if (!(b = malloc(sizeof *b))) return lc_fail_int(LC_OutOfMemory, "out of memory: block header");
        *b = (block){ .bytes = bytes, .device = s->device.index };
        if (cuda.cuMemAlloc_v2(&b->p, bytes) != 0) {
            lc_cuda_empty_cache();
            if (cuda_use(s->device.index) < 0 || cuda.cuMemAlloc_v2(&b->p, bytes) != 0)
                return free(b), out_of_memory(s->bytes, s->device.index);
            retries++;
        }
        pthread_mutex_lock(&lock);
        driver_allocs++, reserved += (int64_t)bytes;
        if (reserved > most_reserved) most_reserved = reserved;
        pthread_mutex_unlock(&lock);
    }
    s->data = (char *)(uintptr_t)b->p, s->owner = b, s->deleter = keep;
    return 0;
}

void *cuda_scratch_new(cuda_scratch *s, int device, size_t bytes)
{
    memset(s, 0, sizeof *s);
    s->s.device = (lc_device){ LC_CUDA, (int8_t)device }, s->s.bytes = bytes ? bytes : 1;
    return cuda_alloc(&s->s) < 0 ? NULL : s->s.data;
}
void cuda_scratch_free(cuda_scratch *s)
{
    if (s->s.data) keep(&s->s), s->s.data = NULL;
}

void lc_cuda_memory_numbers(int64_t out[8])
{
    pthread_mutex_lock(&lock);
    const int64_t numbers[8] = {
        cached_bytes, cached_blocks, driver_allocs, driver_frees, retries, reserved, most_reserved, 0
    };
    memcpy(out, numbers, sizeof numbers);
    pthread_mutex_unlock(&lock);
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

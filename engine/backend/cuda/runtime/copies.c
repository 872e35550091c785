/* Copies between host and device, and between devices, on the current stream.
 *
 * Page-locked memory is copied by the device alone; with non_blocking nobody waits. Pageable memory has to go through page-locked
 * memory: the driver does that for short copies; for long ones here, in pieces, so that all threads fill one buffer while the
 * device empties the other. A copy to the host without non_blocking waits: its caller reads the values next. */
#include "runtime.h"
#include <string.h>

enum { PIECE = 8 << 20, BUFFERS = 3, THROUGH_RING = 4 << 20, GRAIN = 512 << 10 };

static struct {
    pthread_mutex_t lock; /* one copy at a time; another one takes the driver's way */
    lc_storage      buffer[BUFFERS];
} ring = { .lock = PTHREAD_MUTEX_INITIALIZER };

static cu_pointer at(const void *p) { return (cu_pointer)(uintptr_t)p; }
typedef struct {
    char       *to;
    const char *from;
} moved;
static void move_part(void *ctx, int64_t begin, int64_t end)
{
    const moved *m = ctx;
    memcpy(m->to + begin, m->from + begin, (size_t)(end - begin));
}
static void move_host(char *to, const char *from, size_t bytes)
{
    lc_parallel_for((int64_t)bytes, GRAIN, move_part, &(moved){ to, from });
}

static int piece(char *host, char *device, size_t bytes, bool up)
{
    return cuda_check(up ? cuda.cuMemcpyHtoDAsync_v2(at(device), host, bytes, cuda_stream())
                         : cuda.cuMemcpyDtoHAsync_v2(host, at(device), bytes, cuda_stream()),
                      "cuMemcpyAsync");
}
/* Buffer i % BUFFERS carries piece i. Up: fill, send. Down: send, and empty it a turn later. */
static int through_ring(char *host, char *device, size_t bytes, bool up)
{
    cu_event passed[BUFFERS] = { 0 };
    size_t   pieces = (bytes + PIECE - 1) / PIECE;
    int      rc = 0, index = cuda_current();
    for (int k = 0; k < BUFFERS && rc == 0; k++) {
        ring.buffer[k].bytes = PIECE;
        if (!ring.buffer[k].data) rc = cuda_alloc_pinned(&ring.buffer[k]);
        if (rc == 0 && !(passed[k] = cuda_event_take(index))) rc = -1;
    }
    for (size_t i = 0; i < pieces + (up ? 0 : BUFFERS - 1) && rc == 0; i++) {
        size_t k = i % BUFFERS, last = up ? i : i - (BUFFERS - 1);
        if (i < pieces) {
            size_t n = i + 1 < pieces ? PIECE : bytes - i * PIECE;
            if (up && i >= BUFFERS) rc = cuda_check(cuda.cuEventSynchronize(passed[k]), "cuEventSynchronize");
            if (up && rc == 0) move_host(ring.buffer[k].data, host + i * PIECE, n);
            if (rc == 0) rc = piece(ring.buffer[k].data, device + i * PIECE, n, up);
            if (rc == 0) rc = cuda_check(cuda.cuEventRecord(passed[k], cuda_stream()), "cuEventRecord");
        }
        if (!up && rc == 0 && i >= BUFFERS - 1 && last < pieces) {
            rc = cuda_check(cuda.cuEventSynchronize(passed[last % BUFFERS]), "cuEventSynchronize");
            if (rc == 0)
                move_host(host + last * PIECE, ring.buffer[last % BUFFERS].data,
                          last + 1 < pieces ? PIECE : bytes - last * PIECE);
        }
    }
    if (cuda_check(cuda.cuStreamSynchronize(cuda_stream()), "cuStreamSynchronize") < 0) rc = -1; /* the buffers are free */
    for (int k = 0; k < BUFFERS; k++)
        if (passed[k]) cuda_event_give(index, passed[k]);
    return rc;
}

static int between_devices(lc_tensor *to, const lc_tensor *from, size_t bytes)
{
    int source = from->device.index, target = to->device.index;
    if (cuda_use(target) < 0 || cuda_use(source) < 0) return -1;
    cu_stream by = cuda_stream_of(source), then = cuda_stream_of(target);
    if (source != target && lc_cuda_stream_wait_stream(source, by, target, then) < 0) return -1; /* `to` may be in use there */
    if (cuda_use(source) < 0) return -1;
    int rc =
        cuda_check(cuda.cuMemcpyPeerAsync(at(to->data), cuda_context(target), at(from->data), cuda_context(source), bytes, by),
                   "cuMemcpyPeer");
    if (rc == 0 && source != target) rc = lc_cuda_stream_wait_stream(target, then, source, by);
    return rc;
}

int cuda_transfer(lc_tensor *to, const lc_tensor *from)
{
    size_t bytes = (size_t)(to->numel * lc_size_of(to->dtype));
    bool   up = to->device.kind == LC_CUDA, may_return = lc_non_blocking;
    if (bytes == 0) return cuda_use(up ? to->device.index : from->device.index);
    if (up && from->device.kind == LC_CUDA) return between_devices(to, from, bytes);
    int         index = up ? to->device.index : from->device.index;
    lc_storage *host = up ? from->storage : to->storage;
    char       *there = up ? to->data : from->data, *here = up ? from->data : to->data;
    bool        pinned = host && host->pinned;
    if (cuda_use(index) < 0) return -1;
    if (pinned) {
        if (piece(here, there, bytes, up) < 0) return -1;
        return may_return || cuda_capturing() ? cuda_pinned_used(host) : cuda_wait();
    }
    void *lock = bytes >= 1 << 20 && lc_host_unlock ? lc_host_unlock() : NULL;
    int   rc;
    if (bytes >= THROUGH_RING && !cuda_capturing() && pthread_mutex_trylock(&ring.lock) == 0) {
        rc = through_ring(here, there, bytes, up);
        pthread_mutex_unlock(&ring.lock);
        if (rc == 0 && !up) rc = cuda_raise_trouble(index);
    } else rc = up ? cuda_upload(there, here, bytes) : cuda_read(here, there, bytes);
    if (lock) lc_host_relock(lock);
    return rc;
}

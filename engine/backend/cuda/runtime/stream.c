/* Devices and streams of a thread, and events.
 *
 * A thread has a current device, the one that "cuda" without a number means, and on every device a current stream, at first the
 * default stream. Kernels run on the current stream of the device of their tensors. That is PyTorch's model; so is the pool: 32
 * streams per device and priority, given out in turn and never destroyed, so that the memory of a stream can be kept by its
 * address. All of them run beside the default stream, without waiting for it. */
#include "runtime.h"
#include <stdlib.h>
#include <string.h>

enum { POOL = 32, PRIORITIES = 2, NON_BLOCKING = 1, NOT_READY = 600 };
enum { BLOCKING_SYNC = 1, NO_TIMES = 2, INTERPROCESS = 4 };

static _Thread_local int       chosen;
static _Thread_local cu_stream streams[CUDA_DEVICES];

/* ---- devices ---- */
int lc_cuda_current_device(void) { return chosen; }
int lc_cuda_set_device(int index)
{
    if (cuda_use(index) < 0) return -1;
    return chosen = index, 0;
}

/* ---- streams ---- */
static struct {
    pthread_mutex_t lock;
    cu_stream       stream[CUDA_DEVICES][PRIORITIES][POOL];
    unsigned        next[CUDA_DEVICES][PRIORITIES];
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

int lc_cuda_stream_new(int device, int priority, void **stream)
{
    if (cuda_use(device) < 0) return -1;
    int high = priority < 0, rc = 0;
    pthread_mutex_lock(&pool.lock);
    cu_stream *at = &pool.stream[device][high][pool.next[device][high]++ % POOL];
    if (!*at) {
        int least = 0, greatest = 0, before = cuda_relax_capture();
        cuda.cuCtxGetStreamPriorityRange(&least, &greatest);
        rc = cuda_check(cuda.cuStreamCreateWithPriority(at, NON_BLOCKING, high ? greatest : 0), "cuStreamCreateWithPriority");
        cuda_restore_capture(before);
    }
    *stream = *at;
    pthread_mutex_unlock(&pool.lock);
    return rc;
}
int lc_cuda_stream_priority(int device, void *stream) /* of the pool's; 0 of any other */
{
    for (int i = 0; i < POOL; i++)
        if (stream && pool.stream[device][1][i] == stream) return -1;
    return 0;
}
cu_stream cuda_stream_of(int index) { return streams[index]; }
void     *lc_cuda_stream_get(int device) { return device >= 0 && device < CUDA_DEVICES ? streams[device] : NULL; }
int       lc_cuda_stream_set(int device, void *stream)
{
    if (cuda_use(device) < 0) return -1;
    streams[device] = cuda_here.stream = stream;
    if (stream) lc_queues_used = true;
    return 0;
}

static int asked(cu_result rc, const char *what) { return rc == 0 ? 1 : rc == NOT_READY ? 0 : cuda_check(rc, what); }
static int waited(cu_result (*wait)(void *), void *on, int device, const char *what) /* without the host language's lock */
{
    void *host = lc_host_unlock ? lc_host_unlock() : NULL;
    int   rc = wait(on);
    if (host) lc_host_relock(host);
    return cuda_check(rc, what) < 0 ? -1 : cuda_raise_trouble(device);
}
int lc_cuda_stream_query(int device, void *stream)
{
    return cuda_use(device) < 0 ? -1 : asked(cuda.cuStreamQuery(stream), "cuStreamQuery");
}
int lc_cuda_stream_wait(int device, void *stream)
{
    return cuda_use(device) < 0 ? -1 : waited(cuda.cuStreamSynchronize, stream, device, "cuStreamSynchronize");
}
int lc_cuda_stream_wait_event(int device, void *stream, void *event)
{
    return cuda_use(device) < 0 ? -1 : cuda_check(cuda.cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
}
int lc_cuda_stream_wait_stream(int device, void *stream, int other_device, void *other)
{
    if (cuda_use(other_device) < 0) return -1;
    cu_event event = cuda_event_take(other_device);
    if (!event) return -1;
    int rc = cuda_check(cuda.cuEventRecord(event, other), "cuEventRecord");
    if (rc == 0) rc = lc_cuda_stream_wait_event(device, stream, event);
    return cuda_event_give(other_device, event), rc;
}

/* ---- events ---- */
int lc_cuda_event_new(int device, bool times, bool blocking, void **event)
{
    unsigned flags = (times ? 0 : NO_TIMES) | (blocking ? BLOCKING_SYNC : 0);
    return cuda_use(device) < 0 ? -1 : cuda_check(cuda.cuEventCreate(event, flags), "cuEventCreate");
}
void lc_cuda_event_free(int device, void *event)
{
    if (cuda_usable() && cuda_use(device) == 0) cuda.cuEventDestroy_v2(event);
}
int lc_cuda_event_record(int device, void *event, void *stream)
{
    return cuda_use(device) < 0 ? -1 : cuda_check(cuda.cuEventRecord(event, stream), "cuEventRecord");
}
int lc_cuda_event_query(int device, void *event)
{
    return cuda_use(device) < 0 ? -1 : asked(cuda.cuEventQuery(event), "cuEventQuery");
}
int lc_cuda_event_wait(int device, void *event)
{
    return cuda_use(device) < 0 ? -1 : waited(cuda.cuEventSynchronize, event, device, "cuEventSynchronize");
}
int lc_cuda_event_time(int device, void *start, void *end, float *milliseconds)
{
    if (cuda_use(device) < 0) return -1;
    cu_result rc = cuda.cuEventElapsedTime(milliseconds, start, end);
    if (rc == NOT_READY)
        return lc_fail_int(LC_LucidError, "elapsed_time: both events must be completed before their times can be compared");
    return cuda_check(rc, "cuEventElapsedTime");
}

/* The runtime's own events are used again: making one costs more than recording it. */
enum { SPARE = 64 };
static struct {
    pthread_mutex_t lock;
    cu_event        event[CUDA_DEVICES][SPARE];
    int             n[CUDA_DEVICES];
} spare = { .lock = PTHREAD_MUTEX_INITIALIZER };
cu_event cuda_event_take(int device)
{
    cu_event event = NULL;
    pthread_mutex_lock(&spare.lock);
    if (spare.n[device]) event = spare.event[device][--spare.n[device]];
    pthread_mutex_unlock(&spare.lock);
    if (!event && lc_cuda_event_new(device, false, false, &event) < 0) return NULL;
    return event;
}
void cuda_event_give(int device, cu_event event)
{
    pthread_mutex_lock(&spare.lock);
    bool kept = spare.n[device] < SPARE;
    if (kept) spare.event[device][spare.n[device]++] = event;
    pthread_mutex_unlock(&spare.lock);
    if (!kept) lc_cuda_event_free(device, event);
}

/* ---- fills and copies on the current stream ---- */
static cu_pointer at(const void *p) { return (cu_pointer)(uintptr_t)p; }

int cuda_set_bytes(void *to, unsigned char value, size_t bytes)
{
    return bytes ? cuda_check(cuda.cuMemsetD8Async(at(to), value, bytes, cuda_stream()), "cuMemsetD8Async") : 0;
}
int cuda_move_bytes(void *to, const void *from, size_t bytes)
{
    return bytes ? cuda_check(cuda.cuMemcpyDtoDAsync_v2(at(to), at(from), bytes, cuda_stream()), "cuMemcpyDtoD") : 0;
}
static int cannot_while_capturing(void)
{
    return lc_fail_int(LC_LucidError,
                       "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor "
                       "is pinned, and nothing can be read there");
}
int cuda_upload(void *to, const void *from, size_t bytes) /* the driver takes pageable memory before it returns */
{
    if (!bytes) return 0;
    if (cuda_capturing()) return cannot_while_capturing();
    return cuda_check(cuda.cuMemcpyHtoDAsync_v2(at(to), from, bytes, cuda_stream()), "cuMemcpyHtoD");
}
int cuda_wait(void)
{
    if (cuda_capturing()) return cannot_while_capturing();
    return waited(cuda.cuStreamSynchronize, cuda_stream(), cuda_current(), "cuStreamSynchronize");
}
int cuda_read(void *to, const void *from, size_t bytes)
{
    if (cuda_capturing()) return cannot_while_capturing();
    if (bytes && cuda_check(cuda.cuMemcpyDtoHAsync_v2(to, at(from), bytes, cuda_stream()), "cuMemcpyDtoH") < 0) return -1;
    return cuda_wait();
}

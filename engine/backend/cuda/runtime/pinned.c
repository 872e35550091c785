/* Page-locked host memory: the device reads and writes it itself, so copies need not wait. Making it is slow, so freed blocks are
 * kept, by powers of two. A copy that may still run when its tensor is freed has recorded an event; the block is used again when
 * that has passed. map_host page-locks memory that exists, and shows it to the device. */
#include "runtime.h"
#include <stdlib.h>
#include <unistd.h>

enum { LEAST = 12, CLASSES = 40, PORTABLE = 1, MAPPED = 2 };
typedef struct host_block {
    struct host_block *next;
    void              *p;
    int class, n_events;
    struct {
        cu_event event;
        int      device;
    } * events;
} host_block;

static struct {
    pthread_mutex_t lock;
    host_block     *kept[CLASSES], *waits;
    int64_t         bytes;
} h = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int class_of(size_t bytes)
{
    int class = 0;
    while (class < CLASSES - 1 && (size_t)1 << (LEAST + class) < bytes) class ++;
    return class;
}
static bool is_done(host_block *b, bool wait) /* the lock is held */
{
    while (b->n_events) {
        int device = b->events[b->n_events - 1].device;
        if (cuda_use(device) < 0) return false;
        cu_event event = b->events[b->n_events - 1].event;
        if ((wait ? cuda.cuEventSynchronize(event) : cuda.cuEventQuery(event)) != 0) return false;
        cuda_event_give(device, event), b->n_events--;
    }
    free(b->events), b->events = NULL;
    return true;
}
static void look_at_waits(bool wait)
{
    for (host_block **at = &h.waits, *b; (b = *at);)
        if (is_done(b, wait)) *at = b->next, b->next = h.kept[b->class], h.kept[b->class] = b;
        else at = &b->next;
}
static void give_back(lc_storage *s)
{
    host_block *b = s->owner;
    if (!b || !cuda_usable()) return;
    pthread_mutex_lock(&h.lock);
    host_block **list = b->n_events ? &h.waits : &h.kept[b->class];
    b->next = *list, *list = b;
    pthread_mutex_unlock(&h.lock);
}
int cuda_alloc_pinned(lc_storage *s)
{
    int before = cuda_current();
    if (cuda_use(before < 0 ? lc_cuda_current_device() : before) < 0) return -1; /* any device's context */
    int class = class_of(s->bytes ? s->bytes : 1);
    pthread_mutex_lock(&h.lock);
    if (h.waits && !cuda_captures_running()) look_at_waits(false);
    host_block *b = h.kept[class];
    if (b) h.kept[class] = b->next;
    pthread_mutex_unlock(&h.lock);
    if (before >= 0) cuda_use(before);
    if (!b && (b = calloc(1, sizeof *b))) {
        b->class = class;
        int relaxed = cuda_relax_capture();
        int rc = s->bytes >> 46 ? 2 : cuda.cuMemHostAlloc(&b->p, (size_t)1 << (LEAST + class), PORTABLE | MAPPED);
        cuda_restore_capture(relaxed);
        if (rc != 0) free(b), b = NULL;
    }
    if (!b) return lc_fail_int(LC_OutOfMemory, "out of page-locked memory: %zu bytes", s->bytes);
    s->data = b->p, s->owner = b, s->deleter = give_back;
    return 0;
}

int cuda_pinned_used(lc_storage *s)
{
    host_block *b = s->owner;
    if (cuda_capturing()) return cuda_capture_hold(s); /* replays use it again */
    if (s->deleter != give_back) return cuda_wait();   /* page-locked by somebody else, who may free it at any time */
    cu_event event = cuda_event_take(cuda_current());
    if (!event || cuda_check(cuda.cuEventRecord(event, cuda_stream()), "cuEventRecord") < 0) {
        if (event) cuda_event_give(cuda_current(), event);
        return -1;
    }
    pthread_mutex_lock(&h.lock);
    void *more = realloc(b->events, ((size_t)b->n_events + 1) * sizeof *b->events);
    if (more) b->events = more, b->events[b->n_events].event = event, b->events[b->n_events++].device = cuda_current();
    pthread_mutex_unlock(&h.lock);
    if (more) return 0;
    cuda_event_give(cuda_current(), event);
    return cuda_wait();
}

void lc_cuda_host_empty_cache(void)
{
    if (!cuda_usable() || cuda_captures_running()) return;
    int before = cuda_current();
    pthread_mutex_lock(&h.lock);
    look_at_waits(true);
    for (int class = 0; class < CLASSES; class ++)
        for (host_block *b; (b = h.kept[class]); free(b)) h.kept[class] = b->next, cuda.cuMemFreeHost(b->p);
    pthread_mutex_unlock(&h.lock);
    if (before >= 0) cuda_use(before);
}

/* ---- memory that exists ---- */
typedef struct {
    void  *start;
    size_t bytes;
    void (*deleter)(lc_storage *);
    void *owner;
} registered;
static void unregister(lc_storage *s)
{
    registered *r = s->owner;
    if (cuda_usable()) cuda.cuMemHostUnregister(r->start);
    s->deleter = r->deleter, s->owner = r->owner;
    free(r);
    if (s->deleter) s->deleter(s);
}
int lc_cuda_register_host(lc_storage *s)
{
    uintptr_t   page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)s->data / page * page;
    registered *r = malloc(sizeof *r);
    if (!r) return lc_fail_int(LC_OutOfMemory, "out of memory: map_host");
    *r = (registered){ (void *)first, ((uintptr_t)s->data + s->bytes + page - 1) / page * page - first, s->deleter, s->owner };
    int rc = cuda_use(cuda_current() < 0 ? lc_cuda_current_device() : cuda_current());
    if (rc == 0) rc = cuda_check(cuda.cuMemHostRegister_v2(r->start, r->bytes, PORTABLE | MAPPED), "cuMemHostRegister");
    if (rc < 0) return free(r), -1;
    s->owner = r, s->deleter = unregister, s->pinned = true;
    return 0;
}
static void let_go(lc_storage *s) { lc_storage_release(s->owner); }
lc_storage *lc_cuda_map_host(lc_storage *s, int device) /* the same memory as the device sees it; s is page-locked */
{
    cu_pointer at = 0;
    if (cuda_use(device) < 0 || cuda_check(cuda.cuMemHostGetDevicePointer_v2(&at, s->data, 0), "cuMemHostGetDevicePointer") < 0)
        return NULL;
    lc_storage *seen = lc_storage_foreign((lc_device){ LC_CUDA, (int8_t)device }, (char *)(uintptr_t)at, s->bytes, let_go, s);
    if (seen) atomic_fetch_add(&s->refs, 1);
    return seen;
}

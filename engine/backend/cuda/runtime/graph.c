/* Captured graphs. While a thread captures, its calls are recorded by the driver instead of run; a replay runs them all with one
 * call, on the same addresses. Therefore
 *   memory   that is allocated meanwhile comes from a private pool (memory.c), and everything the calls use lives as long as the
 *            graph: workspaces of libraries, page-locked memory that is copied from;
 *   random   kernels read seed and counter from the device: a replay writes the generator's there first, and moves it on by as much
 *            as the capture drew, so that replays draw what eager calls would have drawn;
 *   values   cannot be read: what needs one raises. */
#include "runtime.h"
#include <stdlib.h>
#include <string.h>

enum { DRAWERS = 8, HELD = 64 };
/* A replay writes seeds and counters before anything of the graph runs, so they may not lie in its pool: memory that is free when a
 * capture first draws has been written by earlier steps, and is again. */
#define POOL_OF_NUMBERS UINT64_MAX
typedef struct {
    lc_generator *generator;
    lc_storage   *numbers;         /* on the device: seed, offset */
    uint64_t      before, advance; /* the offset when the capture first drew, and how far beyond it calls have drawn */
} drawer;
struct cuda_capture {
    cuda_capture     *next; /* in the list `left` */
    uint64_t          number, pool;
    int               device, n_drawers, n_held;
    cu_stream         stream;
    cu_graph          graph;
    cu_graph_run      run;
    struct workspace *workspaces;
    drawer            drawers[DRAWERS];
    lc_storage      **held;
};
static _Atomic uint64_t            last_number;
static _Atomic int                 running;
static _Thread_local cuda_capture *now;
static pthread_mutex_t             lock = PTHREAD_MUTEX_INITIALIZER;
static cuda_capture               *left; /* freed while a capture ran, which must not wait for the device */

bool               cuda_capturing(void) { return now; }
bool               cuda_captures_running(void) { return atomic_load_explicit(&running, memory_order_relaxed); }
uint64_t           cuda_capture_now(void) { return now ? now->number : 0; }
uint64_t           cuda_capture_pool(void) { return now ? now->pool : 0; }
struct workspace **cuda_capture_workspaces(void) { return now ? &now->workspaces : NULL; }
int                cuda_relax_capture(void)
{
    int mode = 2;
    cuda.cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}
void cuda_restore_capture(int before) { cuda.cuThreadExchangeStreamCaptureMode(&before); }

int cuda_capture_hold(lc_storage *s)
{
    lc_storage **more = realloc(now->held, ((size_t)now->n_held + 1) * sizeof *more);
    if (!more) return lc_fail_int(LC_OutOfMemory, "out of memory: a captured graph");
    now->held = more, more[now->n_held++] = s;
    atomic_fetch_add(&s->refs, 1);
    return 0;
}

int cuda_draw(lc_generator *g, int device, uint64_t advance, cuda_drawn *drawn)
{
    if (g->device.kind != LC_CUDA) g = lc_generator_default_of((lc_device){ LC_CUDA, (int8_t)device });
    *drawn = (cuda_drawn){ 0 };
    if (!now) {
        pthread_mutex_lock(&g->lock);
        drawn->seed = g->seed, drawn->offset = g->offset;
        g->offset += advance;
        pthread_mutex_unlock(&g->lock);
        return 0;
    }
    bool    fresh = false;
    drawer *d = now->drawers;
    while (d < now->drawers + now->n_drawers && d->generator != g) d++;
    if (d == now->drawers + now->n_drawers) {
        if (now->n_drawers == DRAWERS)
            return lc_fail_int(LC_NotImplementedError, "a captured graph may use at most %d generators", DRAWERS);
        uint64_t pool = now->pool;
        now->pool = POOL_OF_NUMBERS;
        d->numbers = lc_storage_new((lc_device){ LC_CUDA, (int8_t)device }, 16);
        now->pool = pool;
        if (!d->numbers) return -1;
        lc_object_retain(&g->object);
        d->generator = g, d->advance = 0, now->n_drawers++, fresh = true;
    }
    pthread_mutex_lock(&g->lock); /* it moves on as outside of a capture: its state can be taken and set (checkpoint does) */
    if (fresh) d->before = g->offset;
    drawn->offset = g->offset - d->before, drawn->replayed = (uint64_t *)(void *)d->numbers->data;
    g->offset += advance;
    if ((int64_t)(g->offset - d->before - d->advance) > 0) d->advance = g->offset - d->before;
    pthread_mutex_unlock(&g->lock);
    return 0;
}
static void nothing_was_drawn(cuda_capture *c) /* only replays draw */
{
    for (drawer *d = c->drawers; d < c->drawers + c->n_drawers; d++) {
        pthread_mutex_lock(&d->generator->lock);
        d->generator->offset = d->before;
        pthread_mutex_unlock(&d->generator->lock);
    }
}

bool     lc_cuda_capturing(void) { return now; }
uint64_t lc_cuda_pool_new(void) { return 1 + atomic_fetch_add(&last_number, 1); }

void *lc_cuda_capture_begin(uint64_t pool, int mode)
{
    int device = lc_cuda_current_device();
    if (cuda_use(device) < 0) return NULL;
    if (now) return lc_fail(LC_LucidError, "this thread is capturing a graph already");
    if (!cuda_stream())
        return lc_fail(LC_LucidError,
                       "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to "
                       "replay them on the default stream.)");
    cuda_capture *c = calloc(1, sizeof *c);
    if (!c) return lc_fail(LC_OutOfMemory, "out of memory: a captured graph");
    c->number = lc_cuda_pool_new(), c->pool = pool ? pool : c->number, c->device = device, c->stream = cuda_stream();
    atomic_fetch_add(&running, 1);
    if (cuda_check(cuda.cuStreamBeginCapture_v2(c->stream, mode), "cuStreamBeginCapture") < 0)
        return atomic_fetch_sub(&running, 1), free(c), NULL;
    cuda_pool_hold(c->pool);
    return now = c;
}
static void free_left(void)
{
    pthread_mutex_lock(&lock);
    cuda_capture *c = cuda_captures_running() ? NULL : left;
    if (c) left = NULL;
    pthread_mutex_unlock(&lock);
    for (cuda_capture *next; c; c = next) next = c->next, lc_cuda_graph_free(c);
}
int lc_cuda_capture_end(void *of) /* the graph that is ready to replay; empty: 1 */
{
    cuda_capture *c = of;
    size_t        nodes = 0;
    if (c != now) return lc_fail_int(LC_LucidError, "capture_end: this thread is not capturing that graph");
    if (cuda_use(c->device) < 0) return -1;
    int rc = cuda_check(cuda.cuStreamEndCapture(c->stream, &c->graph), "cuStreamEndCapture");
    now = NULL, atomic_fetch_sub(&running, 1);
    nothing_was_drawn(c);
    cuda_memory_after_capture(), free_left();
    if (rc == 0 && !c->graph)
        rc = lc_fail_int(LC_LucidError, "the capture was invalidated: a call that cannot be captured came between");
    if (rc == 0) rc = cuda_check(cuda.cuGraphGetNodes(c->graph, NULL, &nodes), "cuGraphGetNodes");
    if (rc == 0) rc = cuda_check(cuda.cuGraphInstantiateWithFlags(&c->run, c->graph, 0), "cuGraphInstantiate");
    return rc < 0 ? -1 : nodes == 0;
}
int lc_cuda_graph_replay(void *of)
{
    cuda_capture *c = of;
    if (cuda_use(c->device) < 0) return -1;
    if (!c->run) return lc_fail_int(LC_LucidError, "Called CUDAGraph::replay without a preceding successful capture.");
    for (drawer *d = c->drawers; d < c->drawers + c->n_drawers; d++) {
        uint64_t numbers[2];
        pthread_mutex_lock(&d->generator->lock);
        numbers[0] = d->generator->seed, numbers[1] = d->generator->offset;
        d->generator->offset += d->advance;
        pthread_mutex_unlock(&d->generator->lock);
        for (int i = 0; i < 4; i++)
            if (cuda_check(cuda.cuMemsetD32Async((cu_pointer)(uintptr_t)d->numbers->data + 4u * (unsigned)i,
                                                 (unsigned)(numbers[i / 2] >> 32 * (i % 2)), 1, cuda_stream()),
                           "cuMemsetD32Async") < 0)
                return -1;
    }
    return cuda_check(cuda.cuGraphLaunch(c->run, cuda_stream()), "cuGraphLaunch") < 0 ? -1 : cuda_launched();
}
void lc_cuda_graph_free(void *of)
{
    cuda_capture *c = of;
    if (!c || !cuda_usable()) return;
    if (c == now) { /* it failed half way */
        cu_graph dropped = NULL;
        if (cuda_use(c->device) == 0) cuda.cuStreamEndCapture(c->stream, &dropped);
        if (dropped) cuda.cuGraphDestroy(dropped);
        now = NULL, atomic_fetch_sub(&running, 1);
        nothing_was_drawn(c);
        cuda_memory_after_capture(), free_left();
    }
    if (cuda_captures_running()) {
        pthread_mutex_lock(&lock);
        c->next = left, left = c;
        pthread_mutex_unlock(&lock);
        return;
    }
    int before = cuda_current();
    if (cuda_use(c->device) == 0) {
        if (c->run) cuda.cuCtxSynchronize(), cuda.cuGraphExecDestroy(c->run); /* a replay may be under way in its memory */
        if (c->graph) cuda.cuGraphDestroy(c->graph);
    }
    for (int i = 0; i < c->n_drawers; i++) {
        lc_storage_release(c->drawers[i].numbers);
        lc_object_release(&c->drawers[i].generator->object);
    }
    for (int i = 0; i < c->n_held; i++) lc_storage_release(c->held[i]);
    cuda_workspaces_free(c->workspaces);
    cuda_pool_drop(c->pool);
    free(c->held), free(c);
    if (before >= 0) cuda_use(before);
}
uint64_t lc_cuda_graph_pool(void *of) { return ((cuda_capture *)of)->pool; }
int      lc_cuda_graph_print(void *of, const char *path)
{
    cuda_capture *c = of;
    if (!c->graph) return lc_fail_int(LC_LucidError, "debug_dump: nothing was captured");
    return cuda_check(cuda.cuGraphDebugDotPrint(c->graph, path, 1), "cuGraphDebugDotPrint");
}
int lc_cuda_stream_captures(int device, void *stream) /* 1, 0, -1 */
{
    int status = 0;
    if (cuda_use(device) < 0 || cuda_check(cuda.cuStreamIsCapturing(stream, &status), "cuStreamIsCapturing") < 0) return -1;
    return status != 0;
}

/* Handles of cuBLAS, cuDNN and their like, and the workspaces of their calls.
 *
 * A handle may be used by one thread at a time and works on one stream. So every thread has its own, per library and device,
 * and moves it when the current stream has changed. A thread that ends leaves its handles to the next one.
 *
 * A workspace may be shared by calls of one stream, which run in order, and not by two streams. A captured graph runs again on
 * any stream, so the calls in it get memory of the graph's own (runtime/graph.c keeps it as long as the graph). */
#include "../driver.h"
#include "runtime.h"
#include <stdlib.h>

typedef struct {
    void     *handle;
    cu_stream stream;
    uint64_t  capture; /* the capture it was last set to */
} held_handle;
typedef struct workspace {
    struct workspace *next;
    int               device;
    cu_stream         stream;
    size_t            bytes;
    cuda_scratch      memory;
} workspace;
typedef struct mine {
    struct mine *next; /* of those that threads left */
    held_handle  held[CUDA_HANDLE_KINDS][CUDA_DEVICES];
    workspace   *workspaces;
} mine;

static pthread_mutex_t     lock = PTHREAD_MUTEX_INITIALIZER;
static mine               *left;
static pthread_key_t       exit_key;
static pthread_once_t      once = PTHREAD_ONCE_INIT;
static _Thread_local mine *own;

static void leave(void *of)
{
    mine *m = of;
    pthread_mutex_lock(&lock);
    m->next = left, left = m;
    pthread_mutex_unlock(&lock);
}
static void  make_key(void) { pthread_key_create(&exit_key, leave); }
static mine *of_this_thread(void)
{
    if (own) return own;
    pthread_once(&once, make_key);
    pthread_mutex_lock(&lock);
    if ((own = left)) left = own->next;
    pthread_mutex_unlock(&lock);
    if (!own) own = calloc(1, sizeof *own);
    if (own) pthread_setspecific(exit_key, own);
    return own;
}

void *cuda_handle(int of, const cuda_handle_kind *kind)
{
    mine        *m = of_this_thread();
    held_handle *h = m ? &m->held[of][cuda_current()] : NULL;
    uint64_t     capture = cuda_capture_now();
    if (!h) return NULL;
    if (__builtin_expect(h->handle && h->stream == cuda_stream() && h->capture == capture, 1)) return h->handle;
    if (!h->handle) {
        int before = cuda_relax_capture();
        int rc = kind->create(&h->handle);
        cuda_restore_capture(before);
        if (rc != 0) return h->handle = NULL;
    }
    h->stream = cuda_stream(), h->capture = capture;
    if (kind->set_stream(h->handle, h->stream) == 0) return h->handle;
    h->capture = UINT64_MAX; /* set again at the next call */
    return NULL;
}

/* Memory that lives on for later calls of this thread on this stream, or as long as the graph that is captured. */
void *cuda_workspace(size_t bytes)
{
    mine       *m = of_this_thread();
    workspace **list = cuda_capture_workspaces(), *w;
    if (!m) return lc_fail(LC_OutOfMemory, "out of memory: a thread's handles");
    if (!list) list = &m->workspaces;
    for (w = *list; w && (w->device != cuda_current() || w->stream != cuda_stream()); w = w->next)
        ;
    if (w && w->bytes >= bytes) return w->memory.s.data;
    if (!w) {
        if (!(w = calloc(1, sizeof *w))) return lc_fail(LC_OutOfMemory, "out of memory: a workspace");
        *w = (workspace){ .next = *list, .device = cuda_current(), .stream = cuda_stream() }, *list = w;
    }
    cuda_scratch_free(&w->memory);
    w->bytes = bytes;
    return cuda_scratch_new(&w->memory, cuda_current(), bytes) ? w->memory.s.data : (w->bytes = 0, NULL);
}
void cuda_workspaces_free(struct workspace *list)
{
    for (workspace *w; (w = list); free(w)) list = w->next, cuda_scratch_free(&w->memory);
}

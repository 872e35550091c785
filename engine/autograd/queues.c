/* Devices with several queues (CUDA's streams): a gradient runs on the queue on which its forward call ran, as in PyTorch.
 *
 *   a node     notes the queue of its call. While it runs, the thread is on that queue; then it returns to its own.
 *   a gradient that goes to a node of another queue makes that queue wait for what is in the producer's, and is added up there.
 *              Its memory is not reused before that queue is done with it.
 *   a leaf     gets its gradient on the queue that backward was called on.
 *   the end    that queue waits for every other one that the run used.
 *
 * So backward is ordered with the calls around it like any other call. Without queues none of this is reached: lc_queues_used
 * is set by the first thread that leaves a default queue. */
#include "internal.h"

static const lc_backend *queued_backend(lc_device device)
{
    const lc_backend *b = lc_backends[device.kind];
    return b && b->queue ? b : NULL;
}

void lc_node_note_queue(lc_node *n, const lc_record *call)
{
    for (int k = 0; k < call->n_in + call->n_out; k++) {
        const lc_tensor  *t = k < call->n_in ? call->in[k] : call->out[k - call->n_in];
        const lc_backend *b = t == LC_NONE || t->is_number ? NULL : queued_backend(t->device);
        if (!b) continue;
        n->queue = b->queue(t->device.index);
        return;
    }
}

static bool device_of(const lc_node *n, lc_device *device) /* false: its gradient uses no queue */
{
    for (int k = 0; k < n->n_in + n->n_out && !n->leaf; k++) {
        const lc_saved *s = k < n->n_in ? &n->in[k] : &n->y[k - n->n_in];
        if (s->kind == LC_SAVED_NONE || s->kind == LC_SAVED_NUMBER) continue; /* they have no device */
        if (queued_backend(s->device)) return *device = s->device, true;
    }
    return false;
}

int lc_queue_enter(lc_run_queues *q, const lc_node *n)
{
    lc_device device;
    q->device = (lc_device){ LC_CPU, 0 };
    if (!device_of(n, &device)) return 0;
    const lc_backend *b = lc_backends[device.kind];
    void             *own = b->queue(device.index);
    if (own == n->queue) return 0;
    int known = 0;
    while (known < q->n_used && !(lc_same_device(q->used[known].device, device) && q->used[known].queue == n->queue)) known++;
    if (known == LC_RUN_QUEUES) { /* more than are remembered: wait for the first one now */
        if (b->queue_waits(device.index, own, q->used[0].device.index, q->used[0].queue) < 0) return -1;
        q->used[0] = q->used[--q->n_used], known = q->n_used;
    }
    if (known == q->n_used) {
        q->used[q->n_used].device = device, q->used[q->n_used++].queue = n->queue;
        if (b->queue_waits(device.index, n->queue, device.index, own) < 0) return -1; /* what the caller did before */
    }
    if (b->set_queue(device.index, n->queue) < 0) return -1;
    return q->device = device, q->own = own, 0;
}
int lc_queue_leave(lc_run_queues *q)
{
    lc_device device = q->device;
    q->device = (lc_device){ LC_CPU, 0 };
    return queued_backend(device) ? lc_backends[device.kind]->set_queue(device.index, q->own) : 0;
}

int lc_queue_hand_over(const lc_run_queues *q, const lc_node *to, lc_tensor *g, lc_queue_detour *detour)
{
    const lc_backend *b = g == LC_NONE ? NULL : queued_backend(g->device);
    lc_device         device;
    if (!b) return 0;
    void *now = b->queue(g->device.index), *own = lc_same_device(q->device, g->device) ? q->own : now;
    void *there = device_of(to, &device) && lc_same_device(device, g->device) ? to->queue : own;
    if (there == now) return 0;
    if (b->queue_waits(g->device.index, there, g->device.index, now) < 0) return -1;
    if (g->storage && b->used_on_queue(g->storage, there) < 0) return -1;
    if (b->set_queue(g->device.index, there) < 0) return -1;
    return *detour = (lc_queue_detour){ g->device, now }, 1;
}
int lc_queue_back(const lc_queue_detour *detour)
{
    return lc_backends[detour->device.kind]->set_queue(detour->device.index, detour->before);
}

int lc_queues_end(const lc_run_queues *q)
{
    int rc = 0;
    for (int i = 0; i < q->n_used && rc == 0; i++) {
        const lc_backend *b = lc_backends[q->used[i].device.kind];
        int               index = q->used[i].device.index;
        rc = b->queue_waits(index, b->queue(index), index, q->used[i].queue);
    }
    return rc;
}

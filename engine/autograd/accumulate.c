/* Where gradients end: in .grad of a leaf.
 *
 * Several threads may run backward into one leaf. A lock per leaf would cost memory in every tensor, so leaves share a few.
 * Adding may release the host language's lock (the GIL) around a long kernel, so a thread that waits here must not hold it. */
#include "internal.h"
#include "op_calls.gen.h"
#include <pthread.h>

enum { STRIPES = 64 };
static pthread_mutex_t stripes[STRIPES] = { [0 ... STRIPES - 1] = PTHREAD_MUTEX_INITIALIZER };

static pthread_mutex_t *lock_of(const lc_tensor *leaf)
{
    pthread_mutex_t *m = &stripes[((uintptr_t)leaf >> 6) * 0x9E3779B97F4A7C15u >> 58];
    if (pthread_mutex_trylock(m) == 0) return m;
    void *host = lc_host_unlock ? lc_host_unlock() : NULL;
    pthread_mutex_lock(m);
    if (lc_host_unlock) lc_host_relock(host);
    return m;
}

bool lc_gradient_unseen(const lc_tensor *g)
{
    if (g->refs != 1 || g->wrapper || g->node || !g->storage) return false;
    int others = 0; /* a view's base keeps the storage too; that is fine if only the view keeps the base */
    if (g->base && g->base->storage == g->storage) {
        if (g->base->refs > 2 || g->base->wrapper || g->base->grad) return false; /* the view and the scope */
        others = 1;
    }
    return g->storage->refs == 1 + others;
}

/* to += g, unrecorded. Without observers the kernel is called directly: this runs once per parameter and step. */
int lc_gradient_add(lc_tensor *to, lc_tensor *g)
{
    const lc_backend *backend = lc_backends[to->device.kind];
    bool              plain = lc_modes == LC_NO_GRAD && !((to->flags | g->flags) & ~(LC_REQUIRES_GRAD | LC_IS_VIEW)) &&
                 to->dtype == g->dtype && lc_same_shape(to, g) && lc_same_device(to->device, g->device) && backend &&
                 !to->storage->read_only && to->storage != g->storage && !lc_overlaps_itself(to);
    int rc = plain ? backend->elementwise(LC_OP_add, (lc_dtype)to->dtype, to, (lc_tensor *[]){ to, g }, 2) : LC_NO_KERNEL;
    if (rc == LC_NO_KERNEL && to->flags & LC_SPARSE) { /* a sparse one becomes the sum, which is dense if g is */
        lc_tensor *sum = lc_add(to, g);
        if (!sum || lc_tensor_become(to, sum) < 0) return -1;
        return lc_bump_version(to), 0;
    }
    if (rc == LC_NO_KERNEL) return lc_add_(to, g) ? 0 : -1; /* the op reports the error */
    if (rc == 0) lc_bump_version(to);
    return rc;
}

/* PyTorch's layout contract: like the leaf if that is dense, else contiguous. */
static bool laid_out_like(const lc_tensor *g, const lc_tensor *leaf)
{
    return lc_is_dense(leaf) ? lc_same_strides(g, leaf) : g->is_contiguous;
}

static lc_tensor *copied(lc_tensor *leaf, lc_tensor *g, bool create)
{
    int64_t stride[LC_MAX_DIMS];
    if (g->flags & LC_SPARSE) return create ? lc_clone(g, LC_PRESERVE_FORMAT) : lc_scoped(lc_tensor_alias(g, true));
    if (lc_is_dense(leaf))
        for (int d = 0; d < leaf->ndim; d++) stride[d] = leaf->stride[d];
    else lc_contiguous_strides(leaf->ndim, leaf->shape, stride);
    lc_tensor *copy = lc_scoped(lc_tensor_new_strided(g->dtype, g->device, g->ndim, g->shape, stride));
    if (!copy) return NULL;
    if (lc_copy_values(copy, g) < 0) return NULL;
    if (create && lc_requires_grad(g) && lc_history_from(copy, g) < 0) return NULL;
    return copy;
}

static lc_tensor *first_gradient(lc_tensor *leaf, lc_tensor *g, bool create) /* new reference */
{
    if (create || !lc_gradient_unseen(g) || !laid_out_like(g, leaf)) {
        lc_tensor *copy = copied(leaf, g, create);
        return copy ? lc_retain(copy) : NULL;
    }
    return g->base ? lc_tensor_alias(g, true) : lc_retain(g);
}

int lc_accumulate(lc_tensor *leaf, lc_tensor *g, bool create)
{
    pthread_mutex_t *m = lock_of(leaf);
    lc_tensor       *old = leaf->grad, *made = NULL;
    int              rc = 0;
    if (!old) made = first_gradient(leaf, g, create), rc = made ? 0 : -1;
    else if (create) {
        if ((made = lc_add(old, g))) lc_retain(made);
        else rc = -1;
    } else rc = lc_gradient_add(old, g);
    if (made) leaf->grad = made;
    pthread_mutex_unlock(m);
    if (made && old) lc_release(old); /* may run code of the host: not under the lock */
    return rc;
}

/* retain_grad: a copy, because the gradient itself goes on to the node. */
int lc_retained_store(lc_tensor *t, lc_tensor *g)
{
    bool       create = lc_grad_enabled();
    lc_tensor *old = t->grad, *made = old ? lc_add(old, g) : copied(t, g, create);
    if (!made) return -1;
    t->grad = lc_retain(made);
    if (old) lc_release(old);
    return 0;
}

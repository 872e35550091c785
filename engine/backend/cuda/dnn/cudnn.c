/* Convolutions by cuDNN, where it is installed and takes them; conv.c has kernels for the rest. Descriptors and the choice of an
 * algorithm are kept per shape. */
#include "../driver.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct { /* cudnnConvolution*AlgoPerf_t */
    int    algorithm, status;
    float  time;
    size_t memory;
    int    determinism, math, reserved[3];
} performance;
#define CUDNN_CALLS(X)                                                                                                         \
    X(cudnnCreate, (void **handle))                                                                                            \
    X(cudnnSetStream, (void *handle, cu_stream stream))                                                                        \
    X(cudnnCreateTensorDescriptor, (void **d))                                                                                 \
    X(cudnnSetTensorNdDescriptor, (void *d, int type, int n, const int *shape, const int *stride))                             \
    X(cudnnCreateFilterDescriptor, (void **d))                                                                                 \
    X(cudnnSetFilterNdDescriptor, (void *d, int type, int format, int n, const int *shape))                                    \
    X(cudnnCreateConvolutionDescriptor, (void **d))                                                                            \
    X(cudnnSetConvolutionNdDescriptor,                                                                                         \
      (void *d, int n, const int *padding, const int *stride, const int *dilation, int mode, int type))                        \
    X(cudnnSetConvolutionGroupCount, (void *d, int groups))                                                                    \
    X(cudnnSetConvolutionMathType, (void *d, int math))                                                                        \
    X(cudnnGetConvolutionForwardAlgorithm_v7,                                                                                  \
      (void *handle, void *x, void *w, void *conv, void *y, int asked, int *returned, performance *p))                         \
    X(cudnnGetConvolutionBackwardDataAlgorithm_v7,                                                                             \
      (void *handle, void *w, void *dy, void *conv, void *dx, int asked, int *returned, performance *p))                       \
    X(cudnnGetConvolutionBackwardFilterAlgorithm_v7,                                                                           \
      (void *handle, void *x, void *dy, void *conv, void *dw, int asked, int *returned, performance *p))                       \
    X(cudnnConvolutionForward, (void *handle, const void *alpha, void *dx, const void *x, void *dw, const void *w, void *conv, \
                                int algorithm, void *space, size_t bytes, const void *beta, void *dy, void *y))                \
    X(cudnnConvolutionBackwardData,                                                                                            \
      (void *handle, const void *alpha, void *dw, const void *w, void *ddy, const void *dy, void *conv, int algorithm,         \
       void *space, size_t bytes, const void *beta, void *ddx, void *dx))                                                      \
    X(cudnnConvolutionBackwardFilter,                                                                                          \
      (void *handle, const void *alpha, void *ddx, const void *x, void *ddy, const void *dy, void *conv, int algorithm,        \
       void *space, size_t bytes, const void *beta, void *ddw, void *dw))
static struct {
#define X(name, args) int(*name) args;
    CUDNN_CALLS(X)
#undef X
} dnn;

struct lc_cuda_conv    lc_cuda_conv;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void           *loaded;
static bool            missing;

static int set_stream(void *handle, cu_stream stream) { return dnn.cudnnSetStream(handle, stream); }
static int load(void)
{
    static const char *const names[] = { "libcudnn.so.9", "libcudnn.so", NULL };
    static const char *const symbols[] = {
#define X(name, args) #name,
        CUDNN_CALLS(X)
#undef X
    };
    void *lib = loaded = loaded ? loaded : cuda_library(names, "cuDNN", "cudnn");
    for (size_t i = 0; lib && !dnn.cudnnConvolutionBackwardFilter && i < sizeof symbols / sizeof *symbols; i++)
        if (!(((void **)&dnn)[i] = lc_dylib_symbol(lib, symbols[i]))) lib = NULL;
    if (!lib) lc_verbose_log("convolution on cuda: own kernels, cuDNN is not there");
    missing = !lib;
    return lib ? 0 : -1;
}
static int create(void **handle)
{
    cuda_lock(&lock);
    int rc = load();
    pthread_mutex_unlock(&lock);
    return rc < 0 ? -1 : dnn.cudnnCreate(handle);
}
static void *handle_of(int device) /* of this thread, on its current stream; NULL: there is none */
{
    static const cuda_handle_kind kind = { create, set_stream };
    return missing || cuda_use(device) < 0 ? NULL : cuda_handle(CUDA_HANDLE_DNN, &kind);
}
void *cuda_dnn_handle(int device, void **library)
{
    void *handle = handle_of(device);
    *library = loaded;
    return handle;
}
void cuda_dnn_load(int device) { handle_of(device); }

typedef struct {
    int device, kind, type, dims, groups, tf32, last, ordered, image[5], image_stride[5], weight[5], result[5],
        result_stride[5], padding[3], stride[3], dilation[3];
} shape_key;
typedef struct plan {
    struct plan *next;
    shape_key    key;
    void        *image, *weight, *result, *conv;
    int          algorithm; /* -1: cuDNN does not take it */
    size_t       bytes;
} plan;
enum { SLOTS = 256 };
static plan *plans[SLOTS];

static bool sizes(const lc_tensor *t, int size[5], int stride[5], int dims)
{
    int n = dims + 2, pad = dims == 1; /* one dimension: a second of size one before it */
    for (int d = 0; d < n; d++) {
        int to = d < 2 ? d : d + pad;
        if (t->shape[d] > INT32_MAX / 2 || t->stride[d] > INT32_MAX / 2 || t->stride[d] < 0 || t->numel > INT32_MAX)
            return false;
        size[to] = (int)t->shape[d];
        if (stride) stride[to] = (int)t->stride[d];
    }
    if (pad) size[2] = 1;
    if (pad && stride) stride[2] = (int)(t->shape[2] * t->stride[2]);
    return true;
}
static void choose(plan *p, void *handle)
{
    const shape_key *k = &p->key;
    int              n = k->dims + 2, returned = 0, rc;
    performance      found[8];
    rc = dnn.cudnnCreateTensorDescriptor(&p->image) || dnn.cudnnCreateFilterDescriptor(&p->weight) ||
         dnn.cudnnCreateTensorDescriptor(&p->result) || dnn.cudnnCreateConvolutionDescriptor(&p->conv) ||
         dnn.cudnnSetTensorNdDescriptor(p->image, k->type, n, k->image, k->image_stride) ||
         dnn.cudnnSetTensorNdDescriptor(p->result, k->type, n, k->result, k->result_stride) ||
         dnn.cudnnSetFilterNdDescriptor(p->weight, k->type, k->last, n, k->weight) ||
         dnn.cudnnSetConvolutionNdDescriptor(p->conv, k->dims, k->padding, k->stride, k->dilation, 1, k->type == 1 ? 1 : 0) ||
         dnn.cudnnSetConvolutionGroupCount(p->conv, k->groups) ||
         dnn.cudnnSetConvolutionMathType(p->conv, k->type == 0 && !k->tf32 ? 3
                                                  : k->type == 1           ? 0
                                                                           : 1);
    p->algorithm = -1;
    if (rc) return;
    rc = k->kind == 0
             ? dnn.cudnnGetConvolutionForwardAlgorithm_v7(handle, p->image, p->weight, p->conv, p->result, 8, &returned, found)
         : k->kind == 1 ? dnn.cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, p->weight, p->result, p->conv, p->image, 8,
                                                                          &returned, found)
                        : dnn.cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, p->image, p->result, p->conv, p->weight, 8,
                                                                            &returned, found);
    for (int i = 0; rc == 0 && i < returned && p->algorithm < 0; i++)
        if (found[i].status == 0 && found[i].memory < (size_t)1 << 31 && (!k->ordered || found[i].determinism)) {
            p->algorithm = found[i].algorithm, p->bytes = found[i].memory;
            dnn.cudnnSetConvolutionMathType(p->conv, k->type == 0 && !k->tf32 ? 3 : found[i].math);
        }
}
static plan *plan_for(const shape_key *key, void *handle)
{
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < sizeof *key / sizeof(int); i++) h = (h ^ (uint64_t)(unsigned)((const int *)key)[i]) * 1099511628211u;
    plan **slot = &plans[h >> 56], *p;
    for (p = *slot; p && memcmp(&p->key, key, sizeof *key); p = p->next)
        ;
    if (p || !(p = calloc(1, sizeof *p))) return p;
    p->key = *key, p->next = *slot, *slot = p;
    choose(p, handle);
    return p;
}

/* Channels are neighbours in memory: as an image of channels_last, or a weight of such. Strides of dimensions of size 1 say nothing. */
static bool is_last(const lc_tensor *t)
{
    int64_t step = t->shape[1];
    if (t->stride[1] != 1 && t->shape[1] != 1) return false;
    for (int d = t->ndim - 1; d >= 2; d--) {
        if (t->stride[d] != step && t->shape[d] != 1) return false;
        step *= t->shape[d];
    }
    return t->stride[0] == step || t->shape[0] == 1;
}
/* Contiguous, or with channels last, of that type; a new reference. */
static lc_tensor *as_type(const lc_tensor *t, lc_dtype dtype, bool last, bool filled)
{
    if (t->dtype == dtype && (last ? is_last(t) : t->is_contiguous)) return lc_retain((lc_tensor *)t);
    int64_t shape[5], order[5];
    for (int d = 0; d < t->ndim; d++) { /* made with channels behind the others, then seen in their place */
        int from = !last || d == 0 ? d : d == t->ndim - 1 ? 1 : d + 1;
        shape[d] = t->shape[from], order[from] = d;
    }
    lc_tensor *c = lc_tensor_new(dtype, t->device, t->ndim, shape);
    if (c && last) {
        int64_t stride[5];
        for (int d = 0; d < t->ndim; d++) stride[d] = c->stride[order[d]];
        lc_tensor *seen = lc_tensor_view(c, t->ndim, t->shape, stride, 0);
        lc_release(c), c = seen;
    }
    if (c && filled && cuda_copy(c, t) < 0) lc_release(c), c = NULL;
    return c;
}

/* kind: 0 result, 1 image, 2 weight is computed, without bias. 0: done; 1: not by cuDNN; -1 after lc_fail. */
int cuda_dnn_convolve(int kind, const lc_conv_args *a)
{
    lc_dtype  type = (lc_dtype)a->image->dtype;
    shape_key key;
    memset(&key, 0, sizeof key);
    if (lc_cuda_conv.off || type != a->result->dtype || !(CUDA_FLOATS >> type & 1) || a->dims > 3 || !a->image->numel ||
        !a->result->numel || !a->weight->numel)
        return 1;
    key = (shape_key){ .device = a->image->device.index,
                       .kind = kind,
                       .dims = a->dims == 1 ? 2 : a->dims,
                       .groups = (int)a->groups,
                       .tf32 = lc_cuda_tf32 && !lc_cuda_conv.exact,
                       .ordered = a->ordered || lc_cuda_conv.ordered };
    key.type = type == LC_f32 ? 0 : type == LC_f64 ? 1 : type == LC_f16 ? 2 : 9;
    if (!sizes(a->image, key.image, key.image_stride, a->dims) || !sizes(a->weight, key.weight, NULL, a->dims) ||
        !sizes(a->result, key.result, key.result_stride, a->dims))
        return 1;
    for (int d = 0; d < key.dims; d++) {
        int from = a->dims == 1 ? d - 1 : d;
        key.padding[d] = from < 0 ? 0 : (int)a->padding[from], key.stride[d] = from < 0 ? 1 : (int)a->stride[from];
        key.dilation[d] = from < 0 ? 1 : (int)a->dilation[from];
    }
    /* Images with channels last take a weight that lies so too: no transposes in between. */
    key.last = a->dims == 2 && a->weight->shape[1] > 1 && is_last(a->image) && is_last(a->result);
    void *handle = handle_of(key.device);
    cuda_lock(&lock);
    plan *p = handle ? plan_for(&key, handle) : NULL;
    if (p && p->algorithm < 0 && key.last) key.last = 0, p = plan_for(&key, handle);
    pthread_mutex_unlock(&lock);
    if (!p || p->algorithm < 0) return 1;
    cuda_scratch scratch = { 0 };
    lc_tensor   *w = as_type(a->weight, type, key.last, kind != 2);
    void        *space = p->bytes && w ? cuda_scratch_new(&scratch, key.device, p->bytes) : NULL;
    float        one = 1, zero = 0;
    double       one64 = 1, zero64 = 0;
    const void  *alpha = type == LC_f64 ? (void *)&one64 : &one, *beta = type == LC_f64 ? (void *)&zero64 : &zero;
    int          rc = w && (space || !p->bytes) ? 0 : -1;
    if (rc == 0) {
        rc = kind == 0 ? dnn.cudnnConvolutionForward(handle, alpha, p->image, a->image->data, p->weight, w->data, p->conv,
                                                     p->algorithm, space, p->bytes, beta, p->result, a->result->data)
             : kind == 1
                 ? dnn.cudnnConvolutionBackwardData(handle, alpha, p->weight, w->data, p->result, a->result->data, p->conv,
                                                    p->algorithm, space, p->bytes, beta, p->image, a->image->data)
                 : dnn.cudnnConvolutionBackwardFilter(handle, alpha, p->image, a->image->data, p->result, a->result->data,
                                                      p->conv, p->algorithm, space, p->bytes, beta, p->weight, w->data);
        if (rc != 0)
            lc_verbose_log("convolution on cuda: cuDNN refused with status %d, own kernels follow", rc), p->algorithm = -1,
                                                                                                         rc = 1;
        else if (kind == 2 && w != a->weight) rc = cuda_copy(a->weight, w);
    }
    if (w) lc_release(w);
    return cuda_scratch_free(&scratch), rc;
}

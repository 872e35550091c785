#include "graph.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { /* kinds of descriptors */
       POINTWISE = 0,
       CONFIG = 3,
       HEURISTIC = 4,
       PLAN = 5,
       OP_POINTWISE = 13,
       GRAPH = 15,
       PACK = 16,
       TENSOR = 17,
       MATMUL = 18,
       OP_MATMUL = 19,
       REDUCTION = 21,
       OP_REDUCTION = 22,
       OP_RESHAPE = 31
};
enum { /* types of attributes */
       A_HANDLE = 0,
       A_DATA_TYPE = 1,
       A_BOOL = 2,
       A_INT64 = 3,
       A_POINTER = 6,
       A_HEURISTIC_MODE = 8,
       A_POINTWISE_MODE = 14,
       A_DESCRIPTOR = 15,
       A_REDUCTION = 18,
       A_CHAR = 24
};
#define GRAPH_CALLS(X)                                                                                                         \
    X(cudnnGetVersion, size_t, (void))                                                                                         \
    X(cudnnBackendCreateDescriptor, int, (int type, dnn_descriptor *d))                                                        \
    X(cudnnBackendDestroyDescriptor, int, (dnn_descriptor d))                                                                  \
    X(cudnnBackendFinalize, int, (dnn_descriptor d))                                                                           \
    X(cudnnBackendSetAttribute, int, (dnn_descriptor d, int name, int type, int64_t n, const void *value))                     \
    X(cudnnBackendGetAttribute, int, (dnn_descriptor d, int name, int type, int64_t asked, int64_t *n, void *value))           \
    X(cudnnBackendExecute, int, (void *handle, dnn_descriptor plan, dnn_descriptor pack))
static struct {
#define X(name, result, args) result(*name) args;
    GRAPH_CALLS(X)
#undef X
} dnn;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a handle serves one thread at a time */
static int             state;                            /* 0 not tried, 1 ready, -1 missing */

bool dnn_ready(int device)
{
    void *library = NULL;
    if (state < 0 || !cuda_dnn_handle(device, &library)) return false;
    cuda_lock(&lock);
    if (state == 0) {
        state = 1;
        static const char *const names[] = {
#define X(name, result, args) #name,
            GRAPH_CALLS(X)
#undef X
        };
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (!(((void **)&dnn)[i] = lc_dylib_symbol(library, names[i]))) state = -1;
        if (state < 0) lc_verbose_log("cuDNN lacks its graph interface");
    }
    pthread_mutex_unlock(&lock);
    return state > 0;
}

void dnn_start(dnn_graph *g) { memset(g, 0, sizeof *g), g->next_id = 1000; }
void dnn_free(dnn_graph *g)
{
    for (int i = g->n_all; i--;) dnn.cudnnBackendDestroyDescriptor(g->all[i]);
    g->n_all = g->n_ops = 0;
}
static dnn_descriptor create(dnn_graph *g, int type)
{
    dnn_descriptor d = NULL;
    if (g->failed || g->n_all == DNN_DESCRIPTORS || dnn.cudnnBackendCreateDescriptor(type, &d) != 0) g->failed = true;
    else g->all[g->n_all++] = d;
    return d;
}
static void set(dnn_graph *g, dnn_descriptor d, int name, int type, int64_t n, const void *value)
{
    if (g->failed) return;
    int rc = dnn.cudnnBackendSetAttribute(d, name, type, n, value);
    if (rc != 0) lc_verbose_log("cuDNN: attribute %d: status %d", name, rc), g->failed = true;
}
static dnn_descriptor finish(dnn_graph *g, dnn_descriptor d)
{
    if (!g->failed && dnn.cudnnBackendFinalize(d) != 0) g->failed = true;
    return d;
}
static void add(dnn_graph *g, dnn_descriptor op)
{
    finish(g, op);
    if (g->n_ops == DNN_OPS) g->failed = true;
    if (!g->failed) g->ops[g->n_ops++] = op;
}

static dnn_descriptor tensor(dnn_graph *g, int64_t id, int type, const dnn_shape *s, bool within, bool by_value)
{
    dnn_descriptor d = create(g, TENSOR);
    int64_t        alignment = 16;
    set(g, d, 901, A_DATA_TYPE, 1, &type);
    set(g, d, 902, A_INT64, 4, s->size);
    set(g, d, 903, A_INT64, 4, s->stride);
    set(g, d, 906, A_INT64, 1, &id);
    set(g, d, 900, A_INT64, 1, &alignment);
    set(g, d, 907, A_BOOL, 1, &within);
    if (by_value) set(g, d, 908, A_BOOL, 1, &by_value);
    return finish(g, d);
}
dnn_descriptor dnn_tensor(dnn_graph *g, int64_t id, int type, const dnn_shape *s)
{
    return tensor(g, id, type, s, false, false);
}
dnn_descriptor dnn_number(dnn_graph *g, int64_t id)
{
    return tensor(g, id, DNN_FLOAT, &(dnn_shape){ { 1, 1, 1, 1 }, { 1, 1, 1, 1 } }, false, true);
}
dnn_descriptor dnn_value(dnn_graph *g, int type, const dnn_shape *s) { return tensor(g, g->next_id++, type, s, true, false); }

static void part(dnn_graph *g, dnn_descriptor op, int name, dnn_descriptor d)
{
    if (d) set(g, op, name, A_DESCRIPTOR, 1, &d);
}
void dnn_pointwise(dnn_graph *g, int mode, int compute, dnn_descriptor x, dnn_descriptor b, dnn_descriptor t, dnn_descriptor y,
                   int axis)
{
    dnn_descriptor p = create(g, POINTWISE);
    set(g, p, 0, A_POINTWISE_MODE, 1, &mode);
    set(g, p, 1, A_DATA_TYPE, 1, &compute);
    if (axis >= 0) set(g, p, 9, A_INT64, 1, &(int64_t){ axis });
    finish(g, p);
    dnn_descriptor op = create(g, OP_POINTWISE);
    part(g, op, 750, p), part(g, op, 751, x), part(g, op, 752, b), part(g, op, 758, t), part(g, op, 753, y);
    add(g, op);
}
void dnn_reduce(dnn_graph *g, int mode, dnn_descriptor x, dnn_descriptor y)
{
    int            compute = DNN_FLOAT;
    dnn_descriptor p = create(g, REDUCTION);
    set(g, p, 1600, A_REDUCTION, 1, &mode);
    set(g, p, 1601, A_DATA_TYPE, 1, &compute);
    finish(g, p);
    dnn_descriptor op = create(g, OP_REDUCTION);
    part(g, op, 1612, p), part(g, op, 1610, x), part(g, op, 1611, y);
    add(g, op);
}
void dnn_matmul(dnn_graph *g, dnn_descriptor a, dnn_descriptor b, dnn_descriptor c)
{
    int            compute = DNN_FLOAT;
    dnn_descriptor p = create(g, MATMUL);
    set(g, p, 1500, A_DATA_TYPE, 1, &compute);
    finish(g, p);
    dnn_descriptor op = create(g, OP_MATMUL);
    part(g, op, 1520, a), part(g, op, 1521, b), part(g, op, 1522, c), part(g, op, 1523, p);
    add(g, op);
}
void dnn_reshape(dnn_graph *g, dnn_descriptor x, dnn_descriptor y)
{
    dnn_operation(g, OP_RESHAPE, (dnn_part[]){ { 2200, x }, { 2201, y }, { 0 } });
}
void dnn_operation(dnn_graph *g, int type, const dnn_part *parts)
{
    dnn_descriptor op = create(g, type);
    for (; parts->tensor; parts++) part(g, op, parts->attribute, parts->tensor);
    add(g, op);
}

/* ---- plans ---- */
static void file_name(char name[96], const void *key, size_t n)
{
    snprintf(name, 96, "%016llx-sm%d-cudnn%zu.json", (unsigned long long)cuda_hash(CUDA_HASH_START, key, n),
             cuda_architecture(), dnn.cudnnGetVersion());
}
static bool take_workspace(dnn_plan *p)
{
    int64_t n = 0, bytes = 0;
    if (dnn.cudnnBackendGetAttribute(p->plan, 402, A_INT64, 1, &n, &bytes) != 0 || bytes < 0) return false;
    p->bytes = (size_t)bytes;
    return true;
}
static void drop(dnn_plan *p)
{
    if (p->plan) dnn.cudnnBackendDestroyDescriptor(p->plan);
    p->plan = NULL;
}
bool dnn_plan_restored(int device, const void *key, size_t n, dnn_plan *p)
{
    char   name[96];
    size_t length = 0;
    void  *library, *handle = cuda_dnn_handle(device, &library);
    file_name(name, key, n);
    char *text = cuda_cache_read(name, &length);
    p->plan = NULL;
    if (!text) return false;
    cuda_lock(&lock);
    bool good = dnn.cudnnBackendCreateDescriptor(PLAN, &p->plan) == 0 &&
                dnn.cudnnBackendSetAttribute(p->plan, 400, A_HANDLE, 1, &handle) == 0 &&
                dnn.cudnnBackendSetAttribute(p->plan, 405, A_CHAR, (int64_t)length, text) == 0 &&
                dnn.cudnnBackendFinalize(p->plan) == 0 && take_workspace(p);
    if (!good) drop(p);
    pthread_mutex_unlock(&lock);
    lc_verbose_log("cuDNN: plan %s %s", name, good ? "restored" : "does not load");
    return free(text), good;
}
static void keep_on_disk(const dnn_plan *p, const void *key, size_t n)
{
    char    name[96];
    int64_t length = 0, got = 0;
    if (dnn.cudnnBackendGetAttribute(p->plan, 405, A_CHAR, 0, &length, NULL) != 0 || length <= 0) return;
    char *text = malloc((size_t)length);
    file_name(name, key, n);
    if (text && dnn.cudnnBackendGetAttribute(p->plan, 405, A_CHAR, length, &got, text) == 0 && got > 0 && got <= length)
        cuda_cache_write(name, text, (size_t)got);
    free(text);
}
/* The first engine that takes the graph, in the order of cuDNN's heuristic. */
bool dnn_plan_of(dnn_graph *g, int device, const void *key, size_t n, dnn_plan *p)
{
    enum { MOST = 16, MODE_A = 3 };
    void          *library, *handle = cuda_dnn_handle(device, &library);
    int            mode = MODE_A;
    int64_t        found = 0;
    dnn_descriptor config[MOST];
    p->plan = NULL;
    cuda_lock(&lock);
    dnn_descriptor graph = create(g, GRAPH);
    set(g, graph, 800, A_HANDLE, 1, &handle);
    set(g, graph, 801, A_DESCRIPTOR, g->n_ops, g->ops);
    finish(g, graph);
    dnn_descriptor heuristic = create(g, HEURISTIC);
    set(g, heuristic, 201, A_DESCRIPTOR, 1, &graph);
    set(g, heuristic, 200, A_HEURISTIC_MODE, 1, &mode);
    finish(g, heuristic);
    for (int i = 0; i < MOST; i++) config[i] = create(g, CONFIG);
    if (!g->failed && dnn.cudnnBackendGetAttribute(heuristic, 202, A_DESCRIPTOR, MOST, &found, config) != 0) g->failed = true;
    for (int i = 0; i < found && i < MOST && !g->failed && !p->plan; i++) {
        bool good = dnn.cudnnBackendCreateDescriptor(PLAN, &p->plan) == 0 &&
                    dnn.cudnnBackendSetAttribute(p->plan, 400, A_HANDLE, 1, &handle) == 0 &&
                    dnn.cudnnBackendSetAttribute(p->plan, 401, A_DESCRIPTOR, 1, &config[i]) == 0 &&
                    dnn.cudnnBackendFinalize(p->plan) == 0 && take_workspace(p);
        if (!good) drop(p);
    }
    if (p->plan) keep_on_disk(p, key, n);
    pthread_mutex_unlock(&lock);
    return p->plan;
}
int dnn_execute(int device, const dnn_plan *p, int n, const int64_t *ids, void *const *data, void *workspace)
{
    void          *library, *handle = cuda_dnn_handle(device, &library);
    dnn_descriptor pack = NULL;
    cuda_lock(&lock);
    int rc = dnn.cudnnBackendCreateDescriptor(PACK, &pack);
    if (rc == 0) rc = dnn.cudnnBackendSetAttribute(pack, 1000, A_INT64, n, ids);
    if (rc == 0) rc = dnn.cudnnBackendSetAttribute(pack, 1001, A_POINTER, n, data);
    if (rc == 0) rc = dnn.cudnnBackendSetAttribute(pack, 1003, A_POINTER, 1, &workspace);
    if (rc == 0) rc = dnn.cudnnBackendFinalize(pack);
    if (rc == 0) rc = dnn.cudnnBackendExecute(handle, p->plan, pack);
    if (pack) dnn.cudnnBackendDestroyDescriptor(pack);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* Graphs of cuDNN's backend interface: a few operations that cuDNN runs as one kernel. A caller describes tensors and
 * operations (dnn_tensor, dnn_pointwise, ...), takes a plan (dnn_plan_of) and runs it with the addresses of the tensors.
 *
 * A plan takes up to a second to build. It is kept in memory by the caller and on disk as cuDNN's JSON, which is restored in
 * milliseconds. Names and numbers are those of cuDNN's ABI. */
#pragma once
#include "../driver.h"

enum { DNN_FLOAT = 0, DNN_HALF = 2, DNN_INT32 = 4, DNN_BFLOAT16 = 9, DNN_BOOL = 11 };
enum {
    DNN_ADD = 0,
    DNN_MUL = 1,
    DNN_DIV = 6,
    DNN_SUB = 9,
    DNN_EXP = 13,
    DNN_LOG = 15,
    DNN_IDENTITY = 21,
    DNN_CMP_GE = 303,
    DNN_GEN_INDEX = 501,
    DNN_BINARY_SELECT = 601
};
enum { DNN_REDUCE_ADD = 0, DNN_REDUCE_MAX = 3 };

typedef void *dnn_descriptor;
enum { DNN_OPS = 40, DNN_DESCRIPTORS = 160 };
typedef struct {
    int            n_ops, n_all;
    dnn_descriptor ops[DNN_OPS], all[DNN_DESCRIPTORS];
    int64_t        next_id; /* of tensors that only the graph has */
    bool           failed;
} dnn_graph;
typedef struct {
    int64_t size[4], stride[4];
} dnn_shape;

bool dnn_ready(int device); /* cuDNN is there, with this interface */
void dnn_start(dnn_graph *g);
void dnn_free(dnn_graph *g);
/* A tensor of the call, a number of the call (on the host), or a value within the graph. */
dnn_descriptor dnn_tensor(dnn_graph *g, int64_t id, int type, const dnn_shape *s);
dnn_descriptor dnn_number(dnn_graph *g, int64_t id);
dnn_descriptor dnn_value(dnn_graph *g, int type, const dnn_shape *s);
/* y = mode(x), mode(x, b), or b where t is false; axis: of DNN_GEN_INDEX, else -1. */
void dnn_pointwise(dnn_graph *g, int mode, int compute, dnn_descriptor x, dnn_descriptor b, dnn_descriptor t, dnn_descriptor y,
                   int axis);
void dnn_reduce(dnn_graph *g, int mode, dnn_descriptor x, dnn_descriptor y);
void dnn_matmul(dnn_graph *g, dnn_descriptor a, dnn_descriptor b, dnn_descriptor c);
void dnn_reshape(dnn_graph *g, dnn_descriptor x, dnn_descriptor y);
/* An operation of one descriptor with tensors as attributes: pairs up to a NULL descriptor. */
typedef struct {
    int            attribute;
    dnn_descriptor tensor;
} dnn_part;
void dnn_operation(dnn_graph *g, int type, const dnn_part *parts);

typedef struct {
    dnn_descriptor plan;
    size_t         bytes; /* of workspace */
} dnn_plan;
/* true: from disk. The key's bytes name the file. */
bool dnn_plan_restored(int device, const void *key, size_t n, dnn_plan *p);
bool dnn_plan_of(dnn_graph *g, int device, const void *key, size_t n, dnn_plan *p); /* false: cuDNN has none */
/* 0; or cuDNN's status */
int dnn_execute(int device, const dnn_plan *p, int n, const int64_t *ids, void *const *data, void *workspace);

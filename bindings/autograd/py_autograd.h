/* Bindings of autograd: grad_fn objects, hooks, a user's Function. */
#pragma once
#include "../py.h"

/* py_node.c. A node and its Python object: PyNode, or, for a user's Function, its ctx. Both start the same way. */
typedef struct {
    PyObject_HEAD lc_node *n;    /* PyNode: held. PyCtx: borrowed, NULL once the node is gone */
    lc_tensor             *leaf; /* of an AccumulateGrad: held */
    PyObject              *weakrefs;
} PyNode;
extern PyTypeObject PyNode_Type, PyHandle_Type;
int                 py_add_node_methods(void); /* of Tensor: grad_fn, register_hook, ... */

/* py_function.c */
extern PyTypeObject PyCtx_Type, PyUserFunction_Type;
PyObject           *py_context_of(const lc_node *n); /* borrowed: the ctx of a user's Function; NULL if n is no such node */

/* py_foreign.c: Python callables that the engine holds. New references, NULL after lc_fail. */
lc_foreign *py_foreign_hook(PyObject *callee, lc_hook_kind kind);
int         py_foreign_failed(void);                 /* reports the pending Python exception to the engine; -1 */
PyObject   *py_tensors(lc_tensor *const *ts, int n); /* a tuple; None for LC_NONE */
int         py_visit(void *object, void *context);   /* for lc_visit_foreign; context: a py_visitor */
typedef struct {
    visitproc visit;
    void     *arg;
} py_visitor;

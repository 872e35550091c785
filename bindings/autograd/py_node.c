/* grad_fn objects. A node has at most one, made when Python first asks for it; the node's pointer to it is borrowed. Each op
 * has a type of its own, so that type(y.grad_fn).__name__ is PyTorch's: MulBackward0. */
#include "py_autograd.h"

#define NODE(self) (((PyNode *)(self))->n)

static lc_node *live(PyObject *self) /* NULL raised */
{
    lc_node *n = NODE(self);
    if (!n) PyErr_Format(PyExc_RuntimeError, "%s: the recorded call this belongs to is gone", Py_TYPE(self)->tp_name);
    return n;
}

/* --- identity ------------------------------------------------------------------------------------------------------------------ */

static PyTypeObject *type_of(const lc_node *n) /* borrowed */
{
    static PyObject *types; /* name: type */
    char             name[64];
    lc_node_name(n, name, sizeof name);
    if (!types && !(types = PyDict_New())) return NULL;
    PyObject *type = PyDict_GetItemString(types, name);
    if (type) return (PyTypeObject *)type;
    type = PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){s(),ss}", name, &PyNode_Type, "__slots__", "__module__",
                                 "lucid.autograd.graph");
    if (type && PyDict_SetItemString(types, name, type) < 0) Py_CLEAR(type);
    Py_XDECREF(type);
    return (PyTypeObject *)type;
}

/* A new reference; None for NULL. */
static PyObject *py_node(lc_node *n)
{
    if (!n) Py_RETURN_NONE;
    PyObject *context = py_context_of(n);
    if (context) return Py_NewRef(context);
    if (n->wrapper) return Py_NewRef(n->wrapper);
    PyTypeObject *type = type_of(n);
    PyNode       *self = type ? (PyNode *)type->tp_alloc(type, 0) : NULL;
    if (!self) return NULL;
    lc_object_retain(&n->object);
    self->n = n, n->wrapper = self;
    if (n->leaf) self->leaf = lc_retain(n->leaf);
    return (PyObject *)self;
}

static PyObject *py_grad_fn(lc_tensor *t)
{
    int      failed;
    lc_node *n = lc_grad_fn(t, &failed);
    return failed ? py_raise() : py_node(n);
}

static int node_traverse(PyObject *self, visitproc visit, void *arg)
{
    lc_node   *n = NODE(self);
    py_visitor v = { visit, arg };
    return n && n->object.refs == 1 ? lc_node_visit_foreign(n, py_visit, &v) : 0;
}

static int node_clear(PyObject *self)
{
    PyNode  *node = (PyNode *)self;
    lc_node *n = node->n;
    node->n = NULL;
    if (n) n->wrapper = NULL, lc_object_release(&n->object);
    lc_tensor *leaf = node->leaf;
    node->leaf = NULL;
    lc_release(leaf);
    return 0;
}

static void node_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (((PyNode *)self)->weakrefs) PyObject_ClearWeakRefs(self);
    node_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *node_new(PyTypeObject *type, UNUSED PyObject *args, UNUSED PyObject *kwargs)
{
    return PyErr_Format(PyExc_TypeError, "cannot create '%s' instances", type->tp_name);
}

/* --- what it shows ---------------------------------------------------------------------------------------------------------------- */

static PyObject *node_name(PyObject *self, UNUSED PyObject *unused) { return PyUnicode_FromString(Py_TYPE(self)->tp_name); }

static PyObject *node_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<%s object at %p>", Py_TYPE(self)->tp_name, (void *)self);
}

static PyObject *edge_pair(const lc_edge *edge)
{
    PyObject *node = py_node(edge->node);
    return node ? Py_BuildValue("(Ni)", node, edge->output) : NULL;
}

static PyObject *get_next_functions(PyObject *self, UNUSED void *unused)
{
    lc_node  *n = live(self);
    PyObject *tuple = n ? PyTuple_New(n->n_in) : NULL;
    for (int k = 0; tuple && k < n->n_in; k++) {
        PyObject *pair = edge_pair(&n->edges[k]);
        if (pair) PyTuple_SET_ITEM(tuple, k, pair);
        else Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *get_metadata(PyObject *self, UNUSED void *unused)
{
    lc_node *n = live(self);
    if (n && !n->note) n->note = PyDict_New();
    return n ? Py_XNewRef(n->note) : NULL;
}

static PyObject *get_sequence_number(PyObject *self, UNUSED void *unused)
{
    lc_node *n = live(self);
    return n ? PyLong_FromUnsignedLongLong(n->number) : NULL;
}

static PyObject *get_requires_grad(UNUSED PyObject *self, UNUSED void *unused) { Py_RETURN_TRUE; }

/* --- saved values: _saved_self, _saved_other, _saved_result, _saved_dim ... ---------------------------------------------------- */

static PyObject *saved_tensor(const lc_node *n, int slot, bool output)
{
    if (n->spent) return lc_fail_spent(), py_raise();
    if ((output ? n->y : n->in)[slot].kind == LC_SAVED_SHAPE) Py_RETURN_NONE; /* no wanted gradient reads it */
    return py_wrap(lc_node_saved((lc_node *)n, slot, output));
}

static PyObject *plain_value(const lc_value *v)
{
    switch (v->tag) {
    case LC_IS_int:
        return PyLong_FromLongLong(v->i);
    case LC_IS_float:
        return PyFloat_FromDouble(v->f);
    case LC_IS_bool:
        return PyBool_FromLong(v->b);
    case LC_IS_str:
        return PyUnicode_FromString(v->s);
    case LC_IS_none:
        Py_RETURN_NONE;
    case LC_IS_ints: {
        PyObject *tuple = PyTuple_New(v->n);
        for (int i = 0; tuple && i < v->n; i++) PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(v->is[i]));
        return tuple;
    }
    default:
        return NULL;
    }
}

static bool may_save(const lc_op *op, uint32_t end)
{
    uint32_t all = op->saves;
    for (int k = 0; k < LC_SAVES_FOR; k++) all |= op->saves_for[k];
    return all & end;
}

static PyObject *saved_value(const lc_node *n, const char *name) /* NULL without exception: there is none */
{
    const lc_signature *sig = n->op->args;
    if (!strcmp(name, "self")) name = "input";
    for (int k = 0, slot = 0; k < sig->n_params; k++) {
        const lc_param *p = &sig->params[k];
        bool            here = !strcmp(p->name, name);
        if (here && p->kind == LC_IS_tensor && may_save(n->op, IN(k)) && !lc_is_number_tag(n->args[k].tag))
            return saved_tensor(n, slot, false);
        if (here && p->kind != LC_IS_tensor && p->kind != LC_IS_tensors) return plain_value(&n->args[k]);
        slot += p->kind == LC_IS_tensors ? n->args[k].n : p->kind == LC_IS_tensor;
    }
    return !strcmp(name, "result") && may_save(n->op, OUT(0)) ? saved_tensor(n, 0, true) : NULL;
}

static PyObject *node_getattr(PyObject *self, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    lc_node    *n = NODE(self);
    if (text && n && !strncmp(text, "_saved_", 7)) {
        PyObject *value = saved_value(n, text + 7);
        if (value || PyErr_Occurred()) return value;
    }
    if (text && n && n->leaf && !strcmp(text, "variable")) return py_wrap(lc_retain(n->leaf));
    return PyObject_GenericGetAttr(self, name);
}

/* --- hooks -------------------------------------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD lc_hook *hook;
} PyHandle;

/* Takes the reference; NULL raises the engine's error. */
static PyObject *py_handle(lc_hook *hook)
{
    if (!hook) return py_raise();
    PyHandle *handle = PyObject_New(PyHandle, &PyHandle_Type);
    if (!handle) return lc_object_release(&hook->object), NULL;
    handle->hook = hook;
    return (PyObject *)handle;
}

static PyObject *handle_remove(PyObject *self, UNUSED PyObject *unused)
{
    lc_hook_remove(((PyHandle *)self)->hook);
    Py_RETURN_NONE;
}
static PyObject *handle_enter(PyObject *self, UNUSED PyObject *unused) { return Py_NewRef(self); }
static PyObject *handle_exit(PyObject *self, UNUSED PyObject *args) { return handle_remove(self, NULL); }
static PyObject *handle_id(PyObject *self, UNUSED void *unused)
{
    return PyLong_FromUnsignedLongLong(((PyHandle *)self)->hook->id);
}
static void handle_dealloc(PyObject *self)
{
    lc_object_release(&((PyHandle *)self)->hook->object);
    PyObject_Free(self);
}

static PyMethodDef handle_methods[] = {
    { "remove", handle_remove, METH_NOARGS, "Take the hook away." },
    { "__enter__", handle_enter, METH_NOARGS, NULL },
    { "__exit__", handle_exit, METH_VARARGS, "Take the hook away." },
    { 0 },
};
static PyGetSetDef handle_attributes[] = { { "id", handle_id, NULL, "A number of its own.", NULL }, { 0 } };
PyTypeObject       PyHandle_Type = {
          PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid._C.RemovableHandle",
          .tp_basicsize = sizeof(PyHandle),
          .tp_dealloc = handle_dealloc,
          .tp_flags = Py_TPFLAGS_DEFAULT,
          .tp_doc = "What registering a hook returns: remove() takes it away, and so does the end of a with block.",
          .tp_methods = handle_methods,
          .tp_getset = handle_attributes
};

static PyObject *not_callable(PyObject *hook)
{
    return PyErr_Format(PyExc_TypeError, "a hook must be callable, got %s", Py_TYPE(hook)->tp_name);
}

static PyObject *add_node_hook(PyObject *self, PyObject *hook, lc_hook_kind kind)
{
    lc_node *n = live(self);
    if (!n) return NULL;
    if (!PyCallable_Check(hook)) return not_callable(hook);
    lc_foreign *callee = py_foreign_hook(hook, kind);
    return callee ? py_handle(lc_node_hook_add(n, kind, 0, callee)) : py_raise();
}
static PyObject *node_register_hook(PyObject *self, PyObject *hook) { return add_node_hook(self, hook, LC_HOOK_NODE_POST); }
static PyObject *node_register_prehook(PyObject *self, PyObject *hook) { return add_node_hook(self, hook, LC_HOOK_NODE_PRE); }

static PyMethodDef py_node_methods[] = {
    { "name", node_name, METH_NOARGS, "What kind of step this is: MulBackward0." },
    { "register_hook", node_register_hook, METH_O,
      "Call hook(grad_inputs, grad_outputs) after the gradient ran; it may replace grad_inputs." },
    { "register_prehook", node_register_prehook, METH_O,
      "Call hook(grad_outputs) before the gradient runs; it may replace them." },
    { 0 },
};
static PyGetSetDef py_node_attributes[] = {
    { "next_functions", get_next_functions, NULL, "Where the gradients go: a pair (function, output number) per tensor input.",
      NULL },
    { "metadata", get_metadata, NULL, "A dict for notes; anomaly mode puts the traceback there.", NULL },
    { "_sequence_nr", get_sequence_number, NULL, "Nodes are numbered as they are made.", NULL },
    { "requires_grad", get_requires_grad, NULL, NULL, NULL },
    { 0 },
};
PyTypeObject PyNode_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid._C.Node",
                             .tp_basicsize = sizeof(PyNode),
                             .tp_dealloc = node_dealloc,
                             .tp_repr = node_repr,
                             .tp_getattro = node_getattr,
                             .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                             .tp_doc = "One recorded step, as backward will take it.",
                             .tp_traverse = node_traverse,
                             .tp_clear = node_clear,
                             .tp_weaklistoffset = offsetof(PyNode, weakrefs),
                             .tp_methods = py_node_methods,
                             .tp_getset = py_node_attributes,
                             .tp_new = node_new };

/* --- what tensors offer ------------------------------------------------------------------------------------------------------------- */

static PyObject *add_tensor_hook(PyObject *self, PyObject *hook, lc_hook_kind kind)
{
    if (!PyCallable_Check(hook)) return not_callable(hook);
    lc_foreign *callee = py_foreign_hook(hook, kind);
    return callee ? py_handle(lc_hook_add(py_tensor(self), kind, callee)) : py_raise();
}
static PyObject *register_hook(PyObject *self, PyObject *hook) { return add_tensor_hook(self, hook, LC_HOOK_GRAD); }
static PyObject *register_post_hook(PyObject *self, PyObject *hook)
{
    return add_tensor_hook(self, hook, LC_HOOK_POST_ACCUMULATE);
}
static PyObject *get_grad_fn(PyObject *self, UNUSED void *unused) { return py_grad_fn(py_tensor(self)); }

static PyMethodDef tensor_methods[] = {
    { "register_hook", register_hook, METH_O,
      "Call hook(grad) whenever the gradient of this tensor is computed; it may return another." },
    { "register_post_accumulate_grad_hook", register_post_hook, METH_O,
      "Call hook(tensor) after .grad of this leaf was updated." },
    { 0 },
};
static PyGetSetDef tensor_attributes[] = {
    { "grad_fn", get_grad_fn, NULL, "The recorded step that made this tensor; None for a leaf.", NULL },
    { 0 },
};

int py_add_node_methods(void)
{
    for (PyMethodDef *m = tensor_methods; m->ml_name; m++) {
        PyObject *method = PyDescr_NewMethod(&PyTensor_Type, m);
        int       rc = method ? PyDict_SetItemString(PyTensor_Type.tp_dict, m->ml_name, method) : -1;
        Py_XDECREF(method);
        if (rc < 0) return -1;
    }
    PyObject *grad_fn = PyDescr_NewGetSet(&PyTensor_Type, tensor_attributes);
    int       rc = grad_fn ? PyDict_SetItemString(PyTensor_Type.tp_dict, "grad_fn", grad_fn) : -1;
    Py_XDECREF(grad_fn);
    return rc;
}

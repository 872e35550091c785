/* Tensor: subclassable, garbage collected, with attributes and weak references. This file has its lifetime; its members are
 * in py_attribute.c, py_method.c, py_number.c, py_index.c, py_exchange.c, py_reduce.c and, above all, in the op table. */
#include "../py.h"
#include <structmember.h>

enum { SPARE = 128 };
static PyTensor *spare[SPARE]; /* wrappers of exactly this type, kept for reuse */
static int       n_spare;

static void adopt(PyTensor *self, lc_tensor *t)
{
    self->t = t, self->owns = true, self->dict = self->weakrefs = self->size = NULL;
    t->wrapper = self;
}

PyObject *py_wrap(lc_tensor *t)
{
    if (!t) return py_raise();
    PyTensor *self = t->wrapper;
    if (self &&
        t->owns_wrapper) { /* flip back: the wrapper owns the tensor again, the caller gets the tensor's reference to the wrapper */
        t->owns_wrapper = false, self->owns = true;
        return (PyObject *)self;
    }
    if (self) {
        lc_release(t);
        return Py_NewRef(self);
    }
    if (t == LC_NONE) {
        lc_release(t);
        Py_RETURN_NONE;
    }
    if (n_spare) Py_SET_REFCNT(self = spare[--n_spare], 1); /* the type is still there */
    else if (!(self = PyObject_GC_New(PyTensor, &PyTensor_Type))) {
        lc_release(t);
        return NULL;
    }
    adopt(self, t);
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

PyObject *py_wrap_as(PyTypeObject *type, lc_tensor *t)
{
    if (!t) return py_raise();
    if (type == &PyTensor_Type) return py_wrap(t);
    PyTensor *self = (PyTensor *)type->tp_alloc(type, 0);
    if (!self) return lc_release(t), NULL;
    adopt(self, t);
    return (PyObject *)self;
}

/* A wrapper that nobody else holds gives its tensor to the new one; else the new one gets an alias, which is recorded. */
PyObject *py_as_class(PyObject *o, PyTypeObject *type)
{
    static const lc_op *alias;
    PyTensor           *self = (PyTensor *)o;
    bool fresh = Py_TYPE(o) == &PyTensor_Type && Py_REFCNT(o) == 1 && self->owns && !self->dict && !self->weakrefs;
    if (!alias && !(alias = py_engine_op("alias"))) return py_fail(NotImplementedError, "alias");
    if (!fresh) {
        lc_tensor *t = py_call_raw(alias, &(lc_value){ .tag = LC_IS_tensor, .t = self->t }, 1);
        return t ? py_wrap_as(type, t) : NULL;
    }
    lc_tensor *t = lc_retain(self->t);
    t->wrapper = NULL;
    PyObject *made = py_wrap_as(type, t);
    if (made) self->owns = false, self->t = NULL, lc_release(t);
    else t->wrapper = self;
    return made;
}

PyObject *py_wrap_optional(lc_tensor *t) { return t && t != LC_NONE ? py_wrap(lc_retain(t)) : Py_NewRef(Py_None); }

static bool flips_to_tensor(PyTensor *self) /* called with no Python reference left */
{
    bool has_state = self->dict || self->weakrefs || Py_TYPE(self) != &PyTensor_Type;
    if (!self->t || !self->owns || !has_state || self->t->refs == 1) return false;
    Py_SET_REFCNT(self, 1);
    self->t->owns_wrapper = true, self->owns = false;
    lc_release(self->t);
    return true;
}

/* The engine drops the last reference on a tensor that keeps its wrapper. If a weak reference was followed in the meantime, Python still
 * uses the wrapper: it becomes the owner again. The engine may be running without the lock. */
static bool wrapper_takes_over(lc_tensor *t)
{
    PyGILState_STATE lock = PyGILState_Ensure();
    PyTensor        *self = t->wrapper;
    bool             used = Py_REFCNT(self) > 1;
    t->owns_wrapper = false;
    if (used) self->owns = true, atomic_store(&t->refs, 1);
    else self->t = NULL, t->wrapper = NULL;
    Py_DECREF(self);
    PyGILState_Release(lock);
    return used;
}

static int visit_object(void *object, void *arg)
{
    void **context = arg;
    return ((visitproc)(uintptr_t)context[0])(object, context[1]);
}

static int tensor_traverse(PyObject *o, visitproc visit, void *arg)
{
    PyTensor *self = (PyTensor *)o;
    if (Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_VISIT(Py_TYPE(o));
    Py_VISIT(self->dict);
    void *context[] = { (void *)(uintptr_t)visit, arg };
    return self->t && self->owns ? lc_visit_foreign(self->t, visit_object, context) : 0;
}

static int tensor_clear(PyObject *o)
{
    PyTensor *self = (PyTensor *)o;
    if (self->t && self->owns && self->t->refs == 1) lc_tensor_forget(self->t);
    Py_CLEAR(self->dict);
    return 0;
}

static void tensor_dealloc(PyObject *o)
{
    PyTensor     *self = (PyTensor *)o;
    PyTypeObject *type = Py_TYPE(o);
    if (flips_to_tensor(self) || (type->tp_finalize && PyObject_CallFinalizerFromDealloc(o) < 0)) return;
    PyObject_GC_UnTrack(o);
    if (self->weakrefs) PyObject_ClearWeakRefs(o);
    Py_CLEAR(self->dict);
    Py_CLEAR(self->size);
    if (self->t) self->t->wrapper = NULL;
    if (self->t && self->owns) lc_release(self->t);
    if (type == &PyTensor_Type && n_spare < SPARE) {
        spare[n_spare++] = self;
        return;
    }
    type->tp_free(o);
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_DECREF(type);
}

/* CPython gives every subclass a deallocator that destroys __dict__ before asking us; flipping must come first. For the same reason
 * a traverse of ours, which visits the type, replaces the inherited one that would visit it a second time. */
static PyObject *tensor_init_subclass(PyObject *cls, UNUSED PyObject *const *args, UNUSED Py_ssize_t n, UNUSED PyObject *names)
{
    PyTypeObject *type = (PyTypeObject *)cls;
    if (type->tp_basicsize != PyTensor_Type.tp_basicsize)
        return PyErr_Format(PyExc_TypeError, "%s: a Tensor subclass cannot add __slots__", type->tp_name);
    type->tp_dealloc = tensor_dealloc, type->tp_traverse = tensor_traverse, type->tp_clear = tensor_clear;
    if (py_note_subclass(type) < 0) return NULL;
    Py_RETURN_NONE;
}

static lc_tensor *empty_of_sizes(PyObject *args) /* Tensor(2, 3): uninitialised values */
{
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    int64_t    shape[LC_MAX_DIMS];
    if (n > LC_MAX_DIMS) return lc_fail(LC_ValueError, "Tensor: at most %d dimensions", LC_MAX_DIMS);
    for (Py_ssize_t i = 0; i < n; i++)
        if (py_convert_int(PyTuple_GET_ITEM(args, i), &shape[i]) != 1)
            return lc_fail(LC_TypeError, "Tensor: expected sizes, or the data as one argument");
    return lc_tensor_new(lc_default_dtype, lc_default_device, (int)n, n ? shape : (int64_t[]){ 0 });
}

static lc_tensor *from_one(PyObject *data, PyObject *dtype, PyObject *device)
{
    lc_dtype  dt = lc_default_dtype;
    lc_device dev = lc_default_device;
    if (dtype && dtype != Py_None && py_convert_dtype(dtype, &dt) != 1) return lc_fail(LC_TypeError, "Tensor: dtype expected");
    if (device && device != Py_None && py_convert_device(device, &dev) != 1)
        return PyErr_Occurred() ? NULL : lc_fail(LC_TypeError, "Tensor: device expected");
    if (py_is_tensor(data)) return lc_tensor_alias(py_tensor(data), true);
    return py_from_data(data, &dt, device && device != Py_None ? &dev : NULL);
}

/* Tensor(), Tensor(2, 3), Tensor(data): PyTorch's legacy constructor, which subclasses inherit. */
static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "data", "dtype", "device", "requires_grad", NULL };
    PyObject    *data = NULL, *dtype = NULL, *device = NULL;
    int          requires_grad = 0;
    PyObject    *first = PyTuple_GET_SIZE(args) == 1 && !kwargs ? PyTuple_GET_ITEM(args, 0) : NULL;
    if (first && PyObject_TypeCheck(first, &PySize_Type)) args = first, first = NULL; /* Tensor(x.size()) */
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    bool       number = first && !PySequence_Check(first) && !py_is_tensor(first); /* arrays of NumPy are sequences, too */
    bool       sizes = !kwargs && (!first || (number && !PyBool_Check(first) && PyIndex_Check(first)));
    if (number && !sizes && PyNumber_Check(first))
        return PyErr_Format(PyExc_TypeError, "new(): data must be a sequence (got %s)", Py_TYPE(first)->tp_name);
    if (!sizes && !PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOp:Tensor", names, &data, &dtype, &device, &requires_grad))
        return NULL;
    lc_tensor *t = sizes && n == 0 ? lc_tensor_new(lc_default_dtype, lc_default_device, 1, (int64_t[]){ 0 })
                   : sizes         ? empty_of_sizes(args)
                                   : from_one(data, dtype, device);
    if (!t) return PyErr_Occurred() ? NULL : py_raise();
    if (requires_grad && lc_set_requires_grad(t, true) < 0) return lc_release(t), py_raise();
    return py_wrap_as(type, t);
}

static int tensor_init(UNUSED PyObject *self, UNUSED PyObject *args, UNUSED PyObject *kwargs) { return 0; }

static PyObject *printed(PyObject *self, const char *function)
{
    PyObject *module = PyImport_ImportModule("lucid._print");
    PyObject *text = module ? PyObject_CallMethod(module, function, "O", self) : NULL;
    Py_XDECREF(module);
    return text;
}
static PyObject *tensor_repr(PyObject *self)
{
    PyObject *result = py_overrides ? py_try_override_slot("__repr__", &self, 1) : NULL;
    return result || PyErr_Occurred() ? result : printed(self, "tensor_repr");
}

static PyObject *tensor_iter(PyObject *self)
{
    static const lc_op *unbind;
    if (py_tensor(self)->ndim == 0) return PyErr_Format(PyExc_TypeError, "iteration over a 0-d tensor");
    if (!unbind && !(unbind = py_engine_op("unbind"))) return py_fail(NotImplementedError, "unbind");
    PyObject *parts = py_overrides && Py_TYPE(self) != &PyTensor_Type
                          ? PyObject_CallMethod(self, "unbind", "i", 0)
                          : py_call(unbind, (lc_value[]){ { .tag = LC_IS_tensor, .t = py_tensor(self) }, LC_I(0) }, 2);
    PyObject *iterator = parts ? PyObject_GetIter(parts) : NULL;
    Py_XDECREF(parts);
    return iterator;
}

PyTypeObject PyTensor_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid.Tensor",
                               .tp_basicsize = sizeof(PyTensor),
                               .tp_dealloc = tensor_dealloc,
                               .tp_repr = tensor_repr,
                               .tp_as_number = &py_number_methods,
                               .tp_as_mapping = &py_mapping_methods,
                               .tp_as_sequence = &py_sequence_methods,
                               .tp_as_buffer = &py_buffer_methods,
                               .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                               .tp_doc = "A strided array that can record its history.",
                               .tp_traverse = tensor_traverse,
                               .tp_clear = tensor_clear,
                               .tp_richcompare = py_compare,
                               .tp_iter = tensor_iter,
                               .tp_weaklistoffset = offsetof(PyTensor, weakrefs),
                               .tp_dictoffset = offsetof(PyTensor, dict),
                               .tp_methods = py_methods,
                               .tp_getset = py_attributes,
                               .tp_init = tensor_init,
                               .tp_new = tensor_new };

static PyMethodDef lifetime_methods[] = { { "__init_subclass__", (PyCFunction)(void (*)(void))tensor_init_subclass,
                                            METH_FASTCALL | METH_KEYWORDS | METH_CLASS, NULL },
                                          { 0 } };

/* Methods come from several files; the type takes one table, the others are added to its dict. */
static int add_methods(PyMethodDef *methods)
{
    for (PyMethodDef *m = methods; m->ml_name; m++) {
        PyObject *method = m->ml_flags & METH_CLASS    ? PyDescr_NewClassMethod(&PyTensor_Type, m)
                           : m->ml_flags & METH_STATIC ? PyCFunction_NewEx(m, NULL, NULL)
                                                       : PyDescr_NewMethod(&PyTensor_Type, m);
        if (method && m->ml_flags & METH_STATIC) Py_SETREF(method, PyStaticMethod_New(method));
        int failed = method ? PyDict_SetItemString(PyTensor_Type.tp_dict, m->ml_name, method) : -1;
        Py_XDECREF(method);
        if (failed) return -1;
    }
    return 0;
}

int py_add_tensor(PyObject *module)
{
    PyTensor_Type.tp_hash = PyBaseObject_Type.tp_hash; /* by identity, though == compares values */
    lc_wrapper_takes_over = wrapper_takes_over;
    if (PyType_Ready(&PyTensor_Type) < 0 || py_add_attributes() < 0 || add_methods(lifetime_methods) < 0 ||
        add_methods(py_exchange_methods) < 0 || add_methods(py_reduce_methods) < 0 || add_methods(py_override_methods) < 0 ||
        add_methods(py_python_methods) < 0 || add_methods(py_sparse_methods) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "Tensor", (PyObject *)&PyTensor_Type);
}

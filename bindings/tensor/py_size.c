/* Size: a tuple of ints with its own repr and numel(), which stays a Size when sliced or concatenated. */
#include "../py.h"

PyObject *py_size(const int64_t *values, int n)
{
    PyObject *self = PySize_Type.tp_alloc(&PySize_Type, n);
    for (int i = 0; self && i < n; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (value) PyTuple_SET_ITEM(self, i, value);
        else Py_CLEAR(self);
    }
    return self;
}

static PyObject *from_tuple(PyObject *items) /* steals */
{
    if (!items || !PyTuple_Check(items)) return items;
    PyObject *self = PySize_Type.tp_alloc(&PySize_Type, PyTuple_GET_SIZE(items));
    for (Py_ssize_t i = 0; self && i < PyTuple_GET_SIZE(items); i++)
        PyTuple_SET_ITEM(self, i, Py_NewRef(PyTuple_GET_ITEM(items, i)));
    Py_DECREF(items);
    return self;
}

static PyObject *size_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *self = PyTuple_Type.tp_new(type, args, kwargs);
    for (Py_ssize_t i = 0; self && i < PyTuple_GET_SIZE(self); i++) {
        PyObject *item = PyTuple_GET_ITEM(self, i);
        int64_t   value;
        if (PyLong_CheckExact(item)) continue;
        int fit = py_convert_int(item, &value);
        if (fit == 1) {
            PyObject *number = PyLong_FromLongLong(value);
            if (!number) Py_CLEAR(self);
            else PyTuple_SET_ITEM(self, i, number), Py_DECREF(item);
            continue;
        }
        if (fit == 0)
            PyErr_Format(PyExc_TypeError, "lucid.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                         Py_TYPE(item)->tp_name);
        Py_CLEAR(self);
    }
    return self;
}

static PyObject *size_repr(PyObject *self)
{
    PyObject *list = PySequence_List(self), *text = list ? PyUnicode_FromFormat("%s.Size(%R)", py_package, list) : NULL;
    Py_XDECREF(list);
    return text;
}
static PyObject *size_numel(PyObject *self, UNUSED PyObject *unused)
{
    int64_t n = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); i++) n *= PyLong_AsLongLong(PyTuple_GET_ITEM(self, i));
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(n);
}
static PyObject *size_reduce(PyObject *self, UNUSED PyObject *unused)
{
    PyObject *plain = PySequence_Tuple(self);
    return plain ? Py_BuildValue("O(N)", &PySize_Type, plain) : NULL;
}
static PyObject *size_subscript(PyObject *self, PyObject *key)
{
    PyObject *found = PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
    return PySlice_Check(key) ? from_tuple(found) : found;
}
static PyObject *size_add(PyObject *a, PyObject *b) /* either side may be the Size */
{
    if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
    return from_tuple(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
static PyObject *size_concat(PyObject *a, PyObject *b)
{
    if (!PyTuple_Check(b))
        return PyErr_Format(PyExc_TypeError, "can only concatenate tuple (not \"%s\") to lucid.Size", Py_TYPE(b)->tp_name);
    return size_add(a, b);
}
static PyObject *size_repeat(PyObject *self, Py_ssize_t n)
{
    return from_tuple(PyTuple_Type.tp_as_sequence->sq_repeat(self, n));
}

static PyNumberMethods   number = { .nb_add = size_add };
static PySequenceMethods sequence = { .sq_concat = size_concat, .sq_repeat = size_repeat };
static PyMappingMethods  mapping = { .mp_subscript = size_subscript };
static PyMethodDef       methods[] = { { "numel", size_numel, METH_NOARGS, "The product of the sizes." },
                                       { "__reduce__", size_reduce, METH_NOARGS, NULL },
                                       { 0 } };
PyTypeObject             PySize_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid.Size",
                                         .tp_itemsize = sizeof(PyObject *),
                                         .tp_flags = Py_TPFLAGS_DEFAULT,
                                         .tp_doc = "The size of every dimension of a tensor.",
                                         .tp_repr = size_repr,
                                         .tp_as_number = &number,
                                         .tp_as_sequence = &sequence,
                                         .tp_as_mapping = &mapping,
                                         .tp_methods = methods,
                                         .tp_new = size_new };

int py_add_size(PyObject *module)
{
    PySize_Type.tp_base = &PyTuple_Type;
    if (PyType_Ready(&PySize_Type) < 0) return -1;
    return PyModule_AddObjectRef(module, "Size", (PyObject *)&PySize_Type);
}

/* UntypedStorage: the memory behind a tensor, as an object. */
#include "../py.h"

typedef struct {
    PyObject_HEAD lc_storage *s;
} PyStorage;
#define S ((PyStorage *)self)->s

PyObject *py_storage(lc_storage *s)
{
    PyStorage *self = PyObject_New(PyStorage, &PyStorage_Type);
    if (!self) return NULL;
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    self->s = s;
    return (PyObject *)self;
}

lc_storage *py_storage_of(PyObject *o) { return Py_TYPE(o) == &PyStorage_Type ? ((PyStorage *)o)->s : NULL; }

static PyObject *storage_new(UNUSED PyTypeObject *type, PyObject *args, UNUSED PyObject *kwargs)
{
    long long bytes;
    if (!PyArg_ParseTuple(args, "L:UntypedStorage", &bytes)) return NULL;
    if (bytes < 0) return PyErr_Format(PyExc_RuntimeError, "a storage cannot have %lld bytes", bytes);
    lc_storage *s = lc_storage_new((lc_device){ LC_CPU, 0 }, (size_t)bytes);
    if (!s) return py_raise();
    PyObject *self = py_storage(s);
    lc_storage_release(s);
    return self;
}
static void storage_dealloc(PyObject *self)
{
    lc_storage_release(S);
    Py_TYPE(self)->tp_free(self);
}

static PyObject  *data_ptr(PyObject *self, UNUSED PyObject *unused) { return PyLong_FromVoidPtr(S->data); }
static PyObject  *nbytes(PyObject *self, UNUSED PyObject *unused) { return PyLong_FromSize_t(S->bytes); }
static Py_ssize_t length(PyObject *self) { return (Py_ssize_t)S->bytes; }
static PyObject  *is_shared(PyObject *self, UNUSED PyObject *unused) { return PyBool_FromLong(S->shared_fd >= 0); }
static PyObject  *is_pinned(PyObject *self, UNUSED PyObject *unused) { return PyBool_FromLong(S->pinned); }
static PyObject  *shared_fd(PyObject *self, UNUSED PyObject *unused) { return PyLong_FromLong(S->shared_fd); }
static PyObject  *get_device(PyObject *self, UNUSED void *unused) { return py_device(S->device); }
static PyObject  *storage_repr(PyObject *self)
{
    return PyUnicode_FromFormat("[lucid.UntypedStorage(device=%s) of size %zu]", lc_device_names[S->device.kind], S->bytes);
}
static Py_hash_t storage_hash(PyObject *self) { return _Py_HashPointer(S); }
static PyObject *compare(PyObject *a, PyObject *b, int how) /* two objects for the same memory are equal */
{
    if (Py_TYPE(b) != &PyStorage_Type || (how != Py_EQ && how != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((((PyStorage *)a)->s == ((PyStorage *)b)->s) == (how == Py_EQ));
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    if (S->device.kind != LC_CPU) return PyErr_Format(PyExc_BufferError, "the memory is not on the CPU"), -1;
    return PyBuffer_FillInfo(view, self, S->data, (Py_ssize_t)S->bytes, S->read_only, flags);
}

static PyBufferProcs     buffer = { .bf_getbuffer = get_buffer };
static PySequenceMethods sequence = { .sq_length = length };
static PyGetSetDef       attributes[] = { { "device", get_device, NULL, "Where it is.", NULL }, { 0 } };
static PyMethodDef       methods[] = { { "data_ptr", data_ptr, METH_NOARGS, "The address of the first byte." },
                                       { "nbytes", nbytes, METH_NOARGS, "Its size in bytes." },
                                       { "size", nbytes, METH_NOARGS, "Its size in bytes." },
                                       { "is_shared", is_shared, METH_NOARGS, "Whether other processes can see it." },
                                       { "is_pinned", is_pinned, METH_NOARGS, "Whether it is page-locked." },
                                       { "_shared_fd", shared_fd, METH_NOARGS, "The file descriptor behind shared memory, or -1." },
                                       { 0 } };
PyTypeObject             PyStorage_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid.UntypedStorage",
                                            .tp_basicsize = sizeof(PyStorage),
                                            .tp_dealloc = storage_dealloc,
                                            .tp_flags = Py_TPFLAGS_DEFAULT,
                                            .tp_doc = "The memory behind a tensor.",
                                            .tp_repr = storage_repr,
                                            .tp_hash = storage_hash,
                                            .tp_richcompare = compare,
                                            .tp_as_buffer = &buffer,
                                            .tp_as_sequence = &sequence,
                                            .tp_methods = methods,
                                            .tp_getset = attributes,
                                            .tp_new = storage_new };

int py_add_storage(PyObject *module)
{
    if (PyType_Ready(&PyStorage_Type) < 0) return -1;
    return PyModule_AddObjectRef(module, "UntypedStorage", (PyObject *)&PyStorage_Type);
}

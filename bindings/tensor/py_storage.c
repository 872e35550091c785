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

static PyObject *take(lc_storage *s) /* takes the reference; NULL raises */
{
    PyObject *self = s ? py_storage(s) : py_raise();
    lc_storage_release(s);
    return self;
}
static PyObject *of_bytes(PyObject *values) /* UntypedStorage([1, 2]) */
{
    lc_dtype   dtype = LC_u8;
    lc_tensor *t = py_from_data(values, &dtype, NULL);
    if (!t) return NULL;
    PyObject *self = t->ndim == 1 ? py_storage(t->storage)
                                  : PyErr_Format(PyExc_TypeError, "UntypedStorage: expected a size or a list of bytes");
    lc_release(t);
    return self;
}
static PyObject *storage_new(UNUSED PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "", "device", NULL };
    PyObject    *first = NULL, *device = Py_None;
    lc_device    on = { LC_CPU, 0 };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:UntypedStorage", names, &first, &device)) return NULL;
    if (device != Py_None && py_convert_device(device, &on) != 1)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "UntypedStorage: device expected");
    if (first && !PyIndex_Check(first)) return of_bytes(first);
    long long bytes = first ? PyLong_AsLongLong(first) : 0;
    if (bytes < 0) return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_RuntimeError, "a storage cannot have %lld bytes", bytes);
    return take(lc_storage_new(on, (size_t)bytes));
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

/* A part of the memory is a storage that keeps the whole alive. */
static void      release_whole(lc_storage *part) { lc_storage_release(part->owner); }
static PyObject *part_of(PyObject *self, PyObject *slice)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0) return NULL;
    Py_ssize_t n = PySlice_AdjustIndices((Py_ssize_t)S->bytes, &start, &stop, step);
    if (step != 1)
        return PyErr_Format(PyExc_RuntimeError, "trying to slice with a step of %zd, but only a step of 1 is supported", step);
    lc_storage *part = lc_storage_foreign(S->device, S->data + start, (size_t)n, release_whole, S);
    if (!part) return py_raise();
    atomic_fetch_add_explicit(&S->refs, 1, memory_order_relaxed);
    part->read_only = S->read_only;
    return take(part);
}
static unsigned char *byte_at(PyObject *self, PyObject *key)
{
    Py_ssize_t i = PyNumber_AsSsize_t(key, PyExc_IndexError), n = (Py_ssize_t)S->bytes;
    if (i == -1 && PyErr_Occurred()) return NULL;
    if (i < -n || i >= n) return PyErr_Format(PyExc_IndexError, "index %zd out of range for storage of size %zd", i, n), NULL;
    if (S->device.kind != LC_CPU) return PyErr_Format(PyExc_RuntimeError, "the memory is not on the CPU"), NULL;
    return (unsigned char *)S->data + (i < 0 ? i + n : i);
}
static PyObject *get_item(PyObject *self, PyObject *key)
{
    if (PySlice_Check(key)) return part_of(self, key);
    const unsigned char *byte = byte_at(self, key);
    return byte ? PyLong_FromLong(*byte) : NULL;
}
static int set_item(PyObject *self, PyObject *key, PyObject *value)
{
    if (!value) return PyErr_Format(PyExc_TypeError, "bytes of a storage cannot be deleted"), -1;
    if (S->read_only) return PyErr_Format(PyExc_RuntimeError, "the memory is read-only"), -1;
    if (PySlice_Check(key)) {
        PyObject *part = part_of(self, key), *done = part ? PyObject_CallMethod(part, "fill_", "O", value) : NULL;
        Py_XDECREF(part);
        Py_XDECREF(done);
        return done ? 0 : -1;
    }
    long           number = PyLong_AsLong(value);
    unsigned char *byte = number == -1 && PyErr_Occurred() ? NULL : byte_at(self, key);
    if (byte) *byte = (unsigned char)number;
    return byte ? 0 : -1;
}

#define IN_PYTHON(X)                                                                                                           \
    X(tolist, "The bytes as numbers.")                                                                                         \
    X(fill_, "Write one number to every byte.")                                                                                \
    X(copy_, "Write the bytes of another storage.")                                                                            \
    X(clone, "A copy of the memory.")                                                                                          \
    X(cpu, "The bytes in main memory.")                                                                                        \
    X(cuda, "The bytes in the memory of a CUDA device.")                                                                       \
    X(to, "The bytes on a device.")                                                                                            \
    X(pin_memory, "A copy in page-locked memory.")                                                                             \
    X(new, "An empty storage.")                                                                                                \
    X(resize_, "Refused, unless the size is what it is.")                                                                      \
    X(share_memory_, "Refused, unless other processes can see it: Tensor.share_memory_ moves a tensor's.")                     \
    X(byteswap, "Reverse the order of the bytes of every element of a dtype.")                                                 \
    X(type, "The name of the class, or the bytes as elements of another dtype.")
#define X(name, doc)                                                                                                           \
    static PyObject *m_##name(PyObject *self, PyObject *args, PyObject *kwargs)                                                \
    {                                                                                                                          \
        return py_in_python("lucid._namespace.storage_methods", #name, self, args, kwargs);                                    \
    }
IN_PYTHON(X)
#undef X

static PyObject *from_file(UNUSED PyObject *unused, PyObject *args, PyObject *kwargs)
{
    PyObject *module = PyImport_ImportModule("lucid._namespace.storage_methods"),
             *function = module ? PyObject_GetAttrString(module, "from_file") : NULL;
    PyObject *made = function ? PyObject_Call(function, args, kwargs) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(module);
    return made;
}
static PyObject *itself(PyObject *self, UNUSED PyObject *unused) { return Py_NewRef(self); }
static PyObject *one(UNUSED PyObject *self, UNUSED PyObject *unused) { return PyLong_FromLong(1); }
static PyObject *no(UNUSED PyObject *self, UNUSED PyObject *unused) { Py_RETURN_FALSE; }
static PyObject *get_none(UNUSED PyObject *self, UNUSED void *unused) { Py_RETURN_NONE; }
static PyObject *get_is_cuda(PyObject *self, UNUSED void *unused) { return PyBool_FromLong(S->device.kind == LC_CUDA); }
static PyObject *device_index(PyObject *self, UNUSED PyObject *unused)
{
    return PyLong_FromLong(S->device.kind == LC_CPU ? -1 : S->device.index);
}

static PyMappingMethods  mapping = { .mp_length = length, .mp_subscript = get_item, .mp_ass_subscript = set_item };
static PyBufferProcs     buffer = { .bf_getbuffer = get_buffer };
static PySequenceMethods sequence = { .sq_length = length };
static PyGetSetDef       attributes[] = { { "device", get_device, NULL, "Where it is.", NULL },
                                          { "is_cuda", get_is_cuda, NULL, "Whether it is a CUDA device's.", NULL },
                                          { "filename", get_none, NULL, "None: which file is mapped is not kept.", NULL },
                                          { 0 } };
static PyMethodDef       methods[] = {
          { "data_ptr", data_ptr, METH_NOARGS, "The address of the first byte." },
          { "nbytes", nbytes, METH_NOARGS, "Its size in bytes." },
          { "size", nbytes, METH_NOARGS, "Its size in bytes." },
          { "is_shared", is_shared, METH_NOARGS, "Whether other processes can see it." },
          { "is_pinned", is_pinned, METH_NOARGS, "Whether it is page-locked." },
          { "untyped", itself, METH_NOARGS, "Itself." },
          { "element_size", one, METH_NOARGS, "1: a byte." },
          { "resizable", no, METH_NOARGS, "Whether resize_ can change the size: no." },
          { "get_device", device_index, METH_NOARGS, "The index of its GPU, -1 on the CPU." },
          { "from_file", (PyCFunction)(void (*)(void))from_file, METH_VARARGS | METH_KEYWORDS | METH_STATIC,
            "The bytes of a file, mapped: (filename, shared=False, nbytes=0)." },
#define X(name, doc) { #name, (PyCFunction)(void (*)(void))m_##name, METH_VARARGS | METH_KEYWORDS, doc },
    IN_PYTHON(X)
#undef X
        { "_shared_fd", shared_fd, METH_NOARGS, "The file descriptor behind shared memory, or -1." },
    { 0 }
};
PyTypeObject PyStorage_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid.UntypedStorage",
                                .tp_basicsize = sizeof(PyStorage),
                                .tp_dealloc = storage_dealloc,
                                .tp_flags = Py_TPFLAGS_DEFAULT,
                                .tp_doc = "The memory behind a tensor.",
                                .tp_repr = storage_repr,
                                .tp_hash = storage_hash,
                                .tp_richcompare = compare,
                                .tp_as_buffer = &buffer,
                                .tp_as_sequence = &sequence,
                                .tp_as_mapping = &mapping,
                                .tp_methods = methods,
                                .tp_getset = attributes,
                                .tp_new = storage_new };

int py_add_storage(PyObject *module)
{
    if (PyType_Ready(&PyStorage_Type) < 0) return -1;
    return PyModule_AddObjectRef(module, "UntypedStorage", (PyObject *)&PyStorage_Type);
}

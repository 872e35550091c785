/* Memory shared with other libraries: the buffer protocol, NumPy (through __array_interface__ and the buffer protocol, so it
 * is no build dependency and is imported when first needed), and objects that export a buffer.
 *
 * An exported buffer holds the storage, not the tensor: x.data = y or resize_ may replace a tensor's memory while an array
 * still uses the old. Imported memory becomes a storage whose deleter releases the owner; it may run on a thread without the
 * GIL. */
#include "core/crc32.h"
#include "../py.h"

/* --- out: the buffer protocol ------------------------------------------------------------------------------------------------ */
static const char *const format_codes[LC_DTYPE_COUNT] = {
    [LC_b8] = "?",  [LC_u8] = "B",  [LC_i8] = "b",   [LC_i16] = "h",   [LC_i32] = "i", [LC_i64] = "q", [LC_f16] = "e",
    [LC_f32] = "f", [LC_f64] = "d", [LC_c64] = "Zf", [LC_c128] = "Zd", [LC_u16] = "H", [LC_u32] = "I", [LC_u64] = "Q",
};
typedef struct {
    lc_storage *storage;
    Py_ssize_t  dims[]; /* shape, then strides in bytes */
} export;

enum { ORDERED = PyBUF_C_CONTIGUOUS | PyBUF_F_CONTIGUOUS | PyBUF_ANY_CONTIGUOUS };
static int cannot(const char *why) { return PyErr_SetString(PyExc_BufferError, why), -1; }

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    lc_tensor *t = py_tensor(self);
    int64_t    size = lc_size_of(t->dtype);
    view->obj = NULL;
    if (t->device.kind != LC_CPU || !t->storage) return cannot("only tensors in main memory have a buffer");
    if (lc_requires_grad(t) && lc_grad_enabled()) return cannot("a tensor that requires grad has no buffer: use detach()");
    if (py_check_values(t) < 0) return -1;
    if (!format_codes[t->dtype]) return cannot("bfloat16 and complex32 have no buffer format");
    if (flags & PyBUF_WRITABLE && t->storage->read_only) return cannot("the memory is read-only");
    bool any_order = (flags & PyBUF_STRIDES) == PyBUF_STRIDES && !(flags & (ORDERED & ~PyBUF_STRIDES));
    if (!any_order && !t->is_contiguous) return cannot("the tensor is not contiguous");
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && t->ndim > 1) return cannot("the tensor is not in Fortran order");
    export *e = PyMem_Malloc(sizeof *e + 2 * ((size_t)t->ndim + 1) * sizeof *e->dims);
    if (!e) return PyErr_NoMemory(), -1;
    for (int d = 0; d < t->ndim; d++) e->dims[d] = t->shape[d], e->dims[t->ndim + d] = t->stride[d] * size;
    atomic_fetch_add_explicit(&t->storage->refs, 1, memory_order_relaxed);
    e->storage = t->storage;
    *view = (Py_buffer){ .buf = t->data,
                         .obj = Py_NewRef(self),
                         .len = t->numel * size,
                         .itemsize = size,
                         .readonly = t->storage->read_only,
                         .ndim = t->ndim,
                         .format = flags & PyBUF_FORMAT ? (char *)format_codes[t->dtype] : NULL,
                         .shape = flags & PyBUF_ND ? e->dims : NULL,
                         .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? e->dims + t->ndim : NULL,
                         .internal = e };
    return 0;
}

static void release_buffer(UNUSED PyObject *self, Py_buffer *view)
{
    export *e = view->internal;
    lc_storage_release(e->storage);
    PyMem_Free(e);
}
PyBufferProcs py_buffer_methods = { .bf_getbuffer = get_buffer, .bf_releasebuffer = release_buffer };

static PyObject *numpy_function(const char *name, PyObject *argument)
{
    PyObject *numpy = PyImport_ImportModule("numpy"), *result = numpy ? PyObject_CallMethod(numpy, name, "O", argument) : NULL;
    Py_XDECREF(numpy);
    return result;
}

static PyObject *as_numpy(PyObject *self)
{
    const lc_tensor *t = py_tensor(self);
    if (lc_requires_grad(t) && lc_grad_enabled()) /* as in PyTorch: under no_grad no history is lost */
        return py_fail(LucidError, "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    if (t->device.kind != LC_CPU)
        return PyErr_Format(
            PyExc_TypeError,
            "can't convert %s device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
            lc_device_names[t->device.kind]);
    if (!format_codes[t->dtype]) return PyErr_Format(PyExc_TypeError, "Got unsupported ScalarType BFloat16");
    PyObject *view = PyMemoryView_FromObject(self), *array = view ? numpy_function("asarray", view) : NULL;
    Py_XDECREF(view);
    return array;
}

static PyObject *m_numpy(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "force", NULL };
    int          force = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:numpy", names, &force)) return NULL;
    if (!force) return as_numpy(self);
    PyObject *plain = PyObject_CallMethod(self, "detach", NULL), *here = plain ? PyObject_CallMethod(plain, "cpu", NULL) : NULL;
    PyObject *array = here ? as_numpy(here) : NULL;
    Py_XDECREF(plain);
    Py_XDECREF(here);
    return array;
}

static PyObject *m_array(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "dtype", "copy", NULL };
    PyObject    *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", names, &dtype, &copy)) return NULL;
    PyObject *array = as_numpy(self);
    if (array && dtype != Py_None) {
        PyObject *method = PyObject_GetAttrString(array, "astype"), *positional = Py_BuildValue("(O)", dtype);
        PyObject *keywords = Py_BuildValue("{s:O}", "copy", Py_False);
        Py_SETREF(array, method && positional && keywords ? PyObject_Call(method, positional, keywords) : NULL);
        Py_XDECREF(method);
        Py_XDECREF(positional);
        Py_XDECREF(keywords);
    }
    if (array && copy == Py_True) Py_SETREF(array, PyObject_CallMethod(array, "copy", NULL));
    return array;
}

/* --- in: arrays ------------------------------------------------------------------------------------------------------------------ */
bool py_is_array(PyObject *o)
{
    static PyObject *name;
    PyTypeObject    *type = Py_TYPE(o);
    if (type == &PyFloat_Type || type == &PyLong_Type || type == &PyList_Type || type == &PyTuple_Type || type == &PyBool_Type)
        return false;
    if (!name && !(name = PyUnicode_InternFromString("__array_interface__"))) return PyErr_Clear(), false;
    return _PyType_Lookup(type, name) != NULL;
}

static void drop_owner(lc_storage *s)
{
    if (!Py_IsInitialized()) return; /* the interpreter has ended, with all its objects */
    PyGILState_STATE lock = PyGILState_Ensure();
    Py_DECREF((PyObject *)s->owner);
    PyGILState_Release(lock);
}

/* A tensor on memory that owner keeps. Strides in elements; none negative. NULL after lc_fail. */
static lc_tensor *on_memory(PyObject *owner, void *data, bool read_only, lc_dtype dtype, int ndim, const int64_t *shape,
                            const int64_t *stride)
{
    int64_t bytes = lc_size_of(dtype);
    for (int d = 0; d < ndim; d++)
        bytes = shape[d] == 0 ? 0 : bytes == 0 ? 0 : bytes + (shape[d] - 1) * stride[d] * lc_size_of(dtype);
    lc_storage *s = lc_storage_foreign((lc_device){ LC_CPU, 0 }, data, (size_t)bytes, drop_owner, owner);
    if (!s) return NULL;
    Py_INCREF(owner);
    s->read_only = read_only;
    lc_tensor *t = lc_tensor_on(s, dtype, ndim, shape, stride, 0);
    lc_storage_release(s);
    return t;
}

static int dtype_of_typestr(const char *text, lc_dtype *dtype)
{
    static const struct {
        char     code[4];
        lc_dtype dtype;
    } known[] = { { "b1", LC_b8 },    { "u1", LC_u8 },  { "i1", LC_i8 },  { "i2", LC_i16 }, { "i4", LC_i32 },
                  { "i8", LC_i64 },   { "f2", LC_f16 }, { "f4", LC_f32 }, { "f8", LC_f64 }, { "c8", LC_c64 },
                  { "c16", LC_c128 }, { "u2", LC_u16 }, { "u4", LC_u32 }, { "u8", LC_u64 } };
    bool native = text[0] == '<' || text[0] == '|' || text[0] == '=';
    for (size_t i = 0; native && i < sizeof known / sizeof *known; i++)
        if (!strcmp(text + 1, known[i].code)) return *dtype = known[i].dtype, 1;
    return 0;
}

static int read_dims(PyObject *tuple, int64_t *dims, int n)
{
    if (!tuple || !PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != n)
        return PyErr_Format(PyExc_ValueError, "malformed __array_interface__"), -1;
    for (int d = 0; d < n; d++)
        if (py_convert_int(PyTuple_GET_ITEM(tuple, d), &dims[d]) != 1) return -1;
    return 0;
}

static int read_strides(PyObject *strides, int64_t size, int n, const int64_t *shape, int64_t *stride)
{
    if (!strides || strides == Py_None) return lc_contiguous_strides(n, shape, stride), 0;
    if (read_dims(strides, stride, n) < 0) return -1;
    for (int d = 0; d < n; d++) {
        if (stride[d] < 0)
            return PyErr_Format(PyExc_ValueError,
                                "At least one stride in the given numpy array is negative, and tensors with negative strides "
                                "are not currently supported. (You can probably work around this by making a copy of your "
                                "array with array.copy().)"),
                   -1;
        if (stride[d] % size)
            return PyErr_Format(PyExc_ValueError, "given numpy array strides not a multiple of the element byte size. Copy the "
                                                  "numpy array to reallocate the memory."),
                   -1;
        stride[d] /= size;
    }
    return 0;
}

static lc_tensor *from_interface(PyObject *owner, PyObject *interface)
{
    PyObject   *shape = PyDict_GetItemString(interface, "shape"), *data = PyDict_GetItemString(interface, "data");
    PyObject   *code = PyDict_GetItemString(interface, "typestr");
    const char *text = code && PyUnicode_Check(code) ? PyUnicode_AsUTF8(code) : NULL;
    int64_t     sizes[LC_MAX_DIMS], strides[LC_MAX_DIMS];
    lc_dtype    dtype;
    if (!text || !shape || !PyTuple_Check(shape) || !data || !PyTuple_Check(data) || PyTuple_GET_SIZE(data) != 2 ||
        PyTuple_GET_SIZE(shape) > LC_MAX_DIMS)
        return PyErr_Format(PyExc_ValueError, "malformed __array_interface__"), NULL;
    if (*text == '>')
        return PyErr_Format(PyExc_ValueError, "given numpy array has byte order different from the native byte order. "
                                              "Conversion between byte orders is currently not supported."),
               NULL;
    if (dtype_of_typestr(text, &dtype) != 1)
        return PyErr_Format(PyExc_TypeError,
                            "can't convert np.ndarray of type %s. The only supported types are: float64, float32, float16, "
                            "complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.",
                            text),
               NULL;
    int n = (int)PyTuple_GET_SIZE(shape), read_only = PyObject_IsTrue(PyTuple_GET_ITEM(data, 1));
    if (read_dims(shape, sizes, n) < 0 ||
        read_strides(PyDict_GetItemString(interface, "strides"), lc_size_of(dtype), n, sizes, strides) < 0)
        return NULL;
    void *at = PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0));
    if (PyErr_Occurred()) return NULL;
    lc_tensor *t = on_memory(owner, at, read_only == 1, dtype, n, sizes, strides);
    return t ? t : (py_raise(), NULL);
}

lc_tensor *py_from_array(PyObject *array, UNUSED bool writable_only)
{
    PyObject *owner = py_is_numpy_scalar(array) ? PyObject_CallMethod(array, "__array__", NULL) : Py_NewRef(array);
    PyObject *interface = owner ? PyObject_GetAttrString(owner, "__array_interface__") : NULL;
    if (interface && !PyDict_Check(interface)) {
        PyErr_SetString(PyExc_ValueError, "malformed __array_interface__");
        Py_CLEAR(interface);
    }
    lc_tensor *t = interface ? from_interface(owner, interface) : NULL;
    Py_XDECREF(interface);
    Py_XDECREF(owner);
    return t;
}

static PyObject *from_numpy(UNUSED PyObject *module, PyObject *array)
{
    if (strcmp(Py_TYPE(array)->tp_name, "numpy.ndarray") && !(py_is_array(array) && !py_is_numpy_scalar(array)))
        return PyErr_Format(PyExc_TypeError, "expected np.ndarray (got %s)", Py_TYPE(array)->tp_name);
    lc_tensor *t = py_from_array(array, true);
    return t ? py_wrap(t) : NULL;
}

static PyObject *m_array_wrap(UNUSED PyObject *self, PyObject *args) /* NumPy functions of tensors give tensors */
{
    PyObject  *array = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : Py_None;
    lc_tensor *t = py_from_array(array, true);
    return t ? py_wrap(t) : NULL;
}

/* --- in: buffers ------------------------------------------------------------------------------------------------------------------- */
static lc_tensor *over_buffer(PyObject *buffer, lc_dtype dtype, Py_ssize_t count, Py_ssize_t offset)
{
    PyObject *view = PyMemoryView_FromObject(buffer);
    if (!view) return NULL;
    const Py_buffer *b = PyMemoryView_GET_BUFFER(view);
    Py_ssize_t       size = lc_size_of(dtype), left = b->len - offset;
    lc_tensor       *t = NULL;
    if (b->len == 0 || count == 0)
        PyErr_Format(PyExc_ValueError, "both buffer length (%zd) and count (%zd) must not be 0", b->len, count);
    else if (offset < 0 || offset >= b->len)
        PyErr_Format(PyExc_ValueError,
                     "offset (%zd bytes) must be non-negative and no greater than buffer length (%zd bytes) minus 1", offset,
                     b->len);
    else if (count < 0 && left % size)
        PyErr_Format(PyExc_ValueError,
                     "buffer length (%zd bytes) after offset (%zd bytes) must be a multiple of element size (%zd)", b->len,
                     offset, size);
    else if (count > left / size)
        PyErr_Format(PyExc_ValueError,
                     "requested buffer length (%zd * %zd bytes) after offset (%zd bytes) must not be greater than actual "
                     "buffer length (%zd bytes)",
                     count, size, offset, b->len);
    else if (!PyBuffer_IsContiguous(b, 'C')) PyErr_SetString(PyExc_ValueError, "the buffer is not contiguous");
    else if (!(t = on_memory(view, (char *)b->buf + offset, b->readonly, dtype, 1,
                             (int64_t[]){ count < 0 ? left / size : count }, (int64_t[]){ 1 })))
        py_raise();
    Py_DECREF(view);
    return t;
}

static PyObject *frombuffer(UNUSED PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "buffer", "dtype", "count", "offset", "requires_grad", NULL };
    PyObject    *buffer, *dtype = Py_None;
    Py_ssize_t   count = -1, offset = 0;
    int          requires_grad = 0;
    lc_dtype     dt;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$Onnp:frombuffer", names, &buffer, &dtype, &count, &offset,
                                     &requires_grad))
        return NULL;
    if (py_convert_dtype(dtype, &dt) != 1)
        return PyErr_Format(PyExc_TypeError, "frombuffer(): argument 'dtype' must be a dtype, not %s", Py_TYPE(dtype)->tp_name);
    if (!PyObject_CheckBuffer(buffer))
        return PyErr_SetString(PyExc_ValueError, "object does not implement Python buffer protocol."), NULL;
    lc_tensor *t = over_buffer(buffer, dt, count, offset);
    if (t && requires_grad && lc_set_requires_grad(t, true) < 0) return lc_release(t), py_raise();
    return t ? py_wrap(t) : NULL;
}

static PyObject *from_file(UNUSED PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "filename", "shared", "size", "dtype", "requires_grad", NULL };
    PyObject    *name, *path, *dtype = Py_None, *shared = Py_None, *result = NULL;
    Py_ssize_t   size = 0;
    int          requires_grad = 0;
    lc_dtype     dt = lc_default_dtype;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|On$Op:from_file", names, &name, &shared, &size, &dtype, &requires_grad))
        return NULL;
    if (dtype != Py_None && py_convert_dtype(dtype, &dt) != 1)
        return PyErr_Format(PyExc_TypeError, "from_file(): argument 'dtype' must be a dtype, not %s", Py_TYPE(dtype)->tp_name);
    int writes = PyObject_IsTrue(shared);
    if (writes < 0 || !PyUnicode_FSConverter(name, &path)) return NULL;
    lc_storage *s = NULL;
    if (size < 0 || size > PTRDIFF_MAX / lc_size_of(dt)) py_fail(LucidError, "from_file(): size %zd is not possible", size);
    else if (!(s = lc_storage_map_file(PyBytes_AS_STRING(path), (size_t)(size * lc_size_of(dt)), writes))) py_raise();
    lc_tensor *t = s ? lc_tensor_on(s, dt, 1, (int64_t[]){ size }, (int64_t[]){ 1 }, 0) : NULL;
    if (s && (!t || (requires_grad && lc_set_requires_grad(t, true) < 0))) py_raise(), lc_release(t);
    else if (t) result = py_wrap(t);
    lc_storage_release(s);
    Py_DECREF(path);
    return result;
}

static PyObject *crc32(UNUSED PyObject *module, PyObject *args)
{
    Py_buffer    data;
    unsigned int crc = 0;
    if (!PyArg_ParseTuple(args, "y*|I:_crc32", &data, &crc)) return NULL;
    Py_BEGIN_ALLOW_THREADS crc = lc_crc32(crc, data.buf, (size_t)data.len);
    Py_END_ALLOW_THREADS   PyBuffer_Release(&data);
    return PyLong_FromUnsignedLong(crc);
}

lc_tensor *py_pinned(const lc_tensor *t)
{
    lc_device gpu = { .kind = LC_CUDA };
    int64_t   elements = 1;
    if (t->device.kind != LC_CPU || !t->storage)
        return py_fail(LucidError, "cannot pin '%s': only dense CPU tensors can be pinned", lc_device_names[t->device.kind]),
               NULL;
    if (!lc_backend_of(gpu)) return py_raise(), NULL;
    for (int d = 0; d < t->ndim; d++) elements += (t->shape[d] - 1) * t->stride[d];
    lc_storage *s = lc_storage_pinned(LC_CUDA, t->numel ? (size_t)(elements * lc_size_of(t->dtype)) : 0);
    lc_tensor  *copy = s ? lc_tensor_on(s, (lc_dtype)t->dtype, t->ndim, t->shape, t->stride, 0) : NULL;
    lc_storage_release(s);
    if (!copy || lc_backend_of(t->device)->copy(copy, t) < 0) return lc_release(copy), py_raise(), NULL;
    return copy;
}

lc_tensor *py_pinned_instead(lc_tensor *t)
{
    lc_tensor *pinned = py_pinned(t);
    lc_release(t);
    return pinned;
}

#define KEYWORDS(f) (PyCFunction)(void (*)(void))(f), METH_VARARGS | METH_KEYWORDS
PyMethodDef py_exchange_methods[] = { { "numpy", KEYWORDS(m_numpy), "A NumPy array on the same memory." },
                                      { "__array__", KEYWORDS(m_array), NULL },
                                      { "__array_wrap__", m_array_wrap, METH_VARARGS, NULL },
                                      { "__dlpack__", KEYWORDS(py_dlpack), "A DLPack capsule of this tensor." },
                                      { "__dlpack_device__", py_dlpack_device, METH_NOARGS, "DLPack's device type and index." },
                                      { 0 } };
PyMethodDef py_exchange_functions[] = {
    { "from_numpy", from_numpy, METH_O, "from_numpy(ndarray, /)\n--\n\nA tensor on the memory of a NumPy array." },
    { "_crc32", crc32, METH_VARARGS, "The checksum of zip archives, of a buffer after the bytes that gave a checksum." },
    { "frombuffer", KEYWORDS(frombuffer),
      "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n--\n\nA 1-d tensor on the memory of a buffer.\n\n"
      ">>> lucid.frombuffer(bytearray([1, 2, 3]), dtype=lucid.uint8).tolist()\n[1, 2, 3]\n" },
    { "from_file", KEYWORDS(from_file),
      "from_file(filename, shared=None, size=0, *, dtype=None, requires_grad=False)\n--\n\nA 1-d tensor of size elements on a "
      "file's bytes, read as they are touched. shared=True writes changes to the file, which is made if it is not there; "
      "otherwise "
      "they stay in this tensor.\n\n"
      ">>> import tempfile, os\n>>> path = os.path.join(tempfile.mkdtemp(), 'numbers')\n"
      ">>> lucid.from_file(path, shared=True, size=3, dtype=lucid.int32).fill_(7).tolist()\n[7, 7, 7]\n"
      ">>> lucid.from_file(path, size=2, dtype=lucid.int32).tolist()\n[7, 7]\n" },
    { "from_dlpack", KEYWORDS(py_from_dlpack),
      "from_dlpack(ext_tensor, *, device=None, copy=None)\n--\n\nA tensor on the memory of another library's.\n\n"
      ">>> x = lucid.ones(2)\n>>> lucid.from_dlpack(x).data_ptr() == x.data_ptr()\nTrue\n" },
    { 0 }
};

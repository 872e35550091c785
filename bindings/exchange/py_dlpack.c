/* DLPack: tensors handed from library to library in a capsule, without a copy. Version 1 structs carry flags; the older ones
 * cannot express "read-only", so read-only memory is not exported to consumers that want those. */
#include "../py.h"
#include "../../engine/backend/cuda/report.h"

typedef struct {
    int32_t type, id;
} dl_device;
typedef struct {
    void     *data;
    dl_device device;
    int32_t   ndim;
    uint8_t   code, bits;
    uint16_t  lanes;
    int64_t  *shape, *strides; /* strides in elements; NULL: contiguous */
    uint64_t  byte_offset;
} dl_tensor;
typedef struct dl_managed {
    dl_tensor tensor;
    void     *context;
    void (*deleter)(struct dl_managed *);
} dl_managed;
typedef struct dl_versioned {
    uint32_t major, minor;
    void    *context;
    void (*deleter)(struct dl_versioned *);
    uint64_t  flags;
    dl_tensor tensor;
} dl_versioned;
enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_READ_ONLY = 1 };
enum { DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT = 4, DL_COMPLEX, DL_BOOL };

static int code_of(int dtype)
{
    if (dtype == LC_b8) return DL_BOOL;
    if (lc_is_unsigned(dtype)) return DL_UINT;
    static const uint8_t float8[] = { 10, 12, 11, 13, 14 }; /* DLPack's numbers, in the order of dtype.def */
    if (dtype == LC_bf16) return DL_BFLOAT;
    if (lc_is_float8(dtype)) return float8[dtype - LC_f8_e4m3fn];
    return lc_class_of(dtype) == LC_INT ? DL_INT : lc_class_of(dtype) == LC_FLOAT ? DL_FLOAT : DL_COMPLEX;
}
static int dtype_of(const dl_tensor *d, lc_dtype *dtype)
{
    for (int k = 0; k < LC_DTYPE_COUNT && d->lanes == 1; k++)
        if (code_of(k) == d->code && lc_size_of(k) * 8 == d->bits) return *dtype = (lc_dtype)k, 0;
    return py_fail(TypeError, "from_dlpack: type code %d with %d bits and %d lanes is not supported", d->code, d->bits,
                   d->lanes),
           -1;
}

/* --- out ------------------------------------------------------------------------------------------------------------------------- */
static void delete_old(dl_managed *m)
{
    lc_release(m->context);
    free(m);
}
static void delete_new(dl_versioned *m)
{
    lc_release(m->context);
    free(m);
}
static void end_old(PyObject *capsule) /* no consumer took it */
{
    dl_managed *m = PyCapsule_IsValid(capsule, "dltensor") ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    if (m) m->deleter(m);
}
static void end_new(PyObject *capsule)
{
    dl_versioned *m =
        PyCapsule_IsValid(capsule, "dltensor_versioned") ? PyCapsule_GetPointer(capsule, "dltensor_versioned") : NULL;
    if (m) m->deleter(m);
}

static dl_device device_of(const lc_tensor *t)
{
    return (dl_device){ t->device.kind == LC_CUDA ? DL_CUDA : DL_CPU, t->device.kind == LC_CUDA ? t->device.index : 0 };
}

static void describe(dl_tensor *d, lc_tensor *t) /* the capsule owns t, so shape and strides live as long as the capsule */
{
    *d = (dl_tensor){ .data = t->data,
                      .device = device_of(t),
                      .ndim = t->ndim,
                      .code = (uint8_t)code_of(t->dtype),
                      .bits = (uint8_t)(lc_size_of(t->dtype) * 8),
                      .lanes = 1,
                      .shape = t->shape,
                      .strides = t->stride };
}

static PyObject *old_capsule(lc_tensor *t)
{
    dl_managed *m = malloc(sizeof *m);
    if (!m) return lc_release(t), PyErr_NoMemory();
    *m = (dl_managed){ .context = t, .deleter = delete_old };
    describe(&m->tensor, t);
    PyObject *capsule = PyCapsule_New(m, "dltensor", end_old);
    if (!capsule) delete_old(m);
    return capsule;
}
static PyObject *new_capsule(lc_tensor *t)
{
    dl_versioned *m = malloc(sizeof *m);
    if (!m) return lc_release(t), PyErr_NoMemory();
    *m = (dl_versioned){
        .major = 1, .minor = 0, .context = t, .deleter = delete_new, .flags = t->storage->read_only ? DL_READ_ONLY : 0
    };
    describe(&m->tensor, t);
    PyObject *capsule = PyCapsule_New(m, "dltensor_versioned", end_new);
    if (!capsule) delete_new(m);
    return capsule;
}

/* Streams, as the protocol numbers them: None and 1 are the legacy default stream, 2 that of the thread; -1: nobody waits. */
static int consumer_waits(const lc_tensor *t, PyObject *stream)
{
    if (t->device.kind != LC_CUDA) {
        if (stream == Py_None || (PyLong_Check(stream) && PyLong_AsLong(stream) == -1)) return 0;
        return PyErr_Format(PyExc_BufferError, "__dlpack__: stream is only for CUDA tensors"), -1;
    }
    long long number = stream == Py_None ? 1 : PyLong_AsLongLong(stream);
    if (PyErr_Occurred()) return -1;
    void *theirs = number <= 1 ? NULL : (void *)(uintptr_t)number, *ours = lc_cuda_stream_get(t->device.index);
    if (number == -1 || theirs == ours) return 0;
    return lc_cuda_stream_wait_stream(t->device.index, theirs, t->device.index, ours) < 0 ? (py_raise(), -1) : 0;
}

PyObject *py_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "stream", "max_version", "dl_device", "copy", NULL };
    PyObject    *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    lc_tensor   *t = py_tensor(self);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream, &version, &device, &copy)) return NULL;
    if (lc_requires_grad(t))
        return PyErr_Format(PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()");
    if (py_check_values(t) < 0) return NULL;
    if (t->device.kind == LC_META || !t->storage)
        return PyErr_Format(PyExc_BufferError, "a tensor without values cannot be exported");
    if (device != Py_None) {
        dl_device wanted;
        if (!PyArg_ParseTuple(device, "ii", &wanted.type, &wanted.id)) return NULL;
        if (wanted.type != device_of(t).type || wanted.id != device_of(t).id)
            return PyErr_Format(PyExc_BufferError, "__dlpack__: copies to another device are made with Tensor.to");
    }
    long major = 0;
    if (version != Py_None) {
        long minor;
        if (!PyArg_ParseTuple(version, "ll", &major, &minor)) return NULL;
    }
    if (major < 1 && t->storage->read_only && copy != Py_True)
        return PyErr_Format(PyExc_BufferError, "read-only memory needs DLPack 1.0 or a copy");
    if (consumer_waits(t, stream) < 0) return NULL;
    lc_tensor *kept = copy == Py_True ? py_from_data(self, NULL, NULL) : lc_tensor_alias(t, true);
    if (!kept) return PyErr_Occurred() ? NULL : py_raise();
    return major >= 1 ? new_capsule(kept) : old_capsule(kept);
}

PyObject *py_dlpack_device(PyObject *self, UNUSED PyObject *unused)
{
    if (py_tensor(self)->device.kind == LC_META) return PyErr_Format(PyExc_ValueError, "Unknown device type meta for Dlpack");
    dl_device d = device_of(py_tensor(self));
    return Py_BuildValue("ii", d.type, d.id);
}

/* --- in -------------------------------------------------------------------------------------------------------------------------- */
static void give_back_old(lc_storage *s)
{
    dl_managed *m = s->owner;
    if (m->deleter) m->deleter(m);
}
static void give_back_new(lc_storage *s)
{
    dl_versioned *m = s->owner;
    if (m->deleter) m->deleter(m);
}

static int read_geometry(const dl_tensor *d, lc_device *device, lc_dtype *dtype, int64_t *strides, int64_t *bytes)
{
    if (d->device.type == DL_CPU || d->device.type == DL_CUDA_HOST) *device = (lc_device){ LC_CPU, 0 };
    else if (d->device.type == DL_CUDA) *device = (lc_device){ LC_CUDA, (int8_t)d->device.id };
    else return py_fail(DeviceMismatch, "from_dlpack: device type %d is not supported", d->device.type), -1;
    if (!lc_backend_of(*device)) return py_raise(), -1;
    if (dtype_of(d, dtype) < 0) return -1;
    if (d->ndim < 0 || d->ndim > LC_MAX_DIMS) return py_fail(ValueError, "from_dlpack: %d dimensions", d->ndim), -1;
    if (d->strides) memcpy(strides, d->strides, (size_t)d->ndim * sizeof *strides);
    else lc_contiguous_strides(d->ndim, d->shape, strides);
    int64_t last = 0, empty = 0;
    for (int k = 0; k < d->ndim; k++) {
        if (strides[k] < 0 && d->shape[k] > 1)
            return py_fail(ValueError, "from_dlpack: negative strides are not supported"), -1;
        if (d->shape[k] == 0) empty = 1;
        else last += (d->shape[k] - 1) * strides[k];
    }
    return *bytes = empty ? 0 : (last + 1) * lc_size_of(*dtype), 0;
}

/* Takes `managed` on success only. */
static lc_tensor *adopt(const dl_tensor *d, void *managed, void (*deleter)(lc_storage *), bool read_only)
{
    lc_device device;
    lc_dtype  dtype;
    int64_t   strides[LC_MAX_DIMS], bytes;
    if (read_geometry(d, &device, &dtype, strides, &bytes) < 0) return NULL;
    lc_storage *s = lc_storage_foreign(device, (char *)d->data + d->byte_offset, (size_t)bytes, NULL, managed);
    if (!s) return py_raise(), NULL;
    s->read_only = read_only;
    lc_tensor *t = lc_tensor_on(s, dtype, d->ndim, d->shape, strides, 0);
    if (t) s->deleter = deleter;
    else py_raise();
    lc_storage_release(s);
    return t;
}

static PyObject *from_capsule(PyObject *capsule)
{
    lc_tensor *t = NULL;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        dl_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (m->major > 1)
            return PyErr_Format(PyExc_BufferError, "from_dlpack: DLPack %u.%u is not supported", m->major, m->minor);
        t = adopt(&m->tensor, m, give_back_new, m->flags & DL_READ_ONLY);
        if (t) PyCapsule_SetName(capsule, "used_dltensor_versioned");
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
        t = adopt(&m->tensor, m, give_back_old, false);
        if (t) PyCapsule_SetName(capsule, "used_dltensor");
    } else
        return py_fail(LucidError,
                       "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
                       "might have already constructed a tensor from it once.");
    return t ? py_wrap(t) : NULL;
}

static PyObject *stream_for(PyObject *object) /* None: it is not on a CUDA device; NULL raised */
{
    int       type = 0, index = 0;
    PyObject *device = PyObject_HasAttrString(object, "__dlpack_device__")
                           ? PyObject_CallMethod(object, "__dlpack_device__", NULL)
                           : Py_BuildValue("(ii)", DL_CPU, 0);
    bool      known = device && PyTuple_Check(device) && PyTuple_GET_SIZE(device) == 2;
    PyObject *parts = known ? PyTuple_Pack(2, PyTuple_GET_ITEM(device, 0), PyTuple_GET_ITEM(device, 1)) : NULL;
    if (device && !known) PyErr_Format(PyExc_TypeError, "__dlpack_device__ must return two numbers");
    if (parts) type = (int)PyLong_AsLong(PyTuple_GET_ITEM(parts, 0)), index = (int)PyLong_AsLong(PyTuple_GET_ITEM(parts, 1));
    Py_XDECREF(device);
    Py_XDECREF(parts);
    if (PyErr_Occurred()) return NULL;
    if (type != DL_CUDA) return Py_NewRef(Py_None);
    if (!lc_backend_of((lc_device){ LC_CUDA, (int8_t)index })) return py_raise();
    void *stream = lc_cuda_stream_get(index);
    return PyLong_FromUnsignedLongLong(stream ? (unsigned long long)(uintptr_t)stream : 1);
}

static PyObject *ask_for_capsule(PyObject *object)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__"), *none = method ? PyTuple_New(0) : NULL;
    PyObject *stream = none ? stream_for(object) : NULL; /* on which the memory will be used */
    PyObject *keywords = stream ? Py_BuildValue("{s:(ii)}", "max_version", 1, 0) : NULL;
    if (keywords && stream != Py_None && PyDict_SetItemString(keywords, "stream", stream) < 0) Py_CLEAR(keywords);
    PyObject *capsule = keywords ? PyObject_Call(method, none, keywords) : NULL;
    if (keywords && !capsule && PyErr_ExceptionMatches(PyExc_TypeError)) { /* from before max_version */
        PyErr_Clear();
        if (PyDict_DelItemString(keywords, "max_version") == 0) capsule = PyObject_Call(method, none, keywords);
    }
    Py_XDECREF(stream);
    Py_XDECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(keywords);
    return capsule;
}

static PyObject *replaced(PyObject *x, const char *method, PyObject *argument) /* steals x */
{
    PyObject *result = argument ? PyObject_CallMethod(x, method, "O", argument) : PyObject_CallMethod(x, method, NULL);
    Py_DECREF(x);
    return result;
}

PyObject *py_from_dlpack(UNUSED PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "ext_tensor", "device", "copy", NULL };
    PyObject    *object, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", names, &object, &device, &copy)) return NULL;
    bool      asks = !PyCapsule_CheckExact(object) && PyObject_HasAttrString(object, "__dlpack__");
    PyObject *capsule = asks ? ask_for_capsule(object) : Py_NewRef(object);
    PyObject *result = capsule ? from_capsule(capsule) : NULL;
    Py_XDECREF(capsule);
    if (result && copy == Py_True) result = replaced(result, "clone", NULL);
    return result && device != Py_None ? replaced(result, "to", device) : result;
}

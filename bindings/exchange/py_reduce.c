/* Copies and pickles of tensors. Both keep everything besides the values: strides, requires_grad, class, attributes, and,
 * for deepcopy, the gradient. Values are stored as bytes; NumPy is not needed. Between processes (multiprocessing) values
 * are not copied at all: lucid.multiprocessing registers a reducer that sends the descriptor of shared memory. */
#include "../py.h"

static PyObject *int_tuple(const int64_t *values, int n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(values[i]));
    return tuple;
}

static PyObject *module_function(const char *name)
{
    PyObject *module = PyImport_ImportModule("lucid._C"), *function = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    return function;
}

/* The elements without the rest of their storage, in stride order if the tensor is dense. */
static lc_tensor *compact(lc_tensor *t)
{
    int64_t stride[LC_MAX_DIMS];
    lc_strides_like(t, stride);
    lc_tensor        *copy = lc_tensor_new_strided((lc_dtype)t->dtype, (lc_device){ LC_CPU, 0 }, t->ndim, t->shape, stride);
    const lc_backend *backend = copy ? lc_backend_of(t->device) : NULL;
    int               rc = !backend ? -1 : 0;
    if (rc == 0 && t->device.kind == LC_META) rc = lc_fail_int(LC_NotImplementedError, "a meta tensor has no values to copy");
    if (rc == 0 && t->device.kind == LC_CPU) rc = backend->copy(copy, t);
    else if (rc == 0) {
        lc_tensor *dense = lc_tensor_new_strided((lc_dtype)t->dtype, t->device, t->ndim, t->shape, stride);
        rc = dense && backend->copy(dense, t) == 0 ? 0 : -1;
        lc_tensor *flat_to =
            rc == 0 ? lc_tensor_on(copy->storage, LC_u8, 1, (int64_t[]){ (int64_t)copy->storage->bytes }, (int64_t[]){ 1 }, 0)
                    : NULL;
        lc_tensor *flat_from =
            flat_to ? lc_tensor_on(dense->storage, LC_u8, 1, (int64_t[]){ (int64_t)copy->storage->bytes }, (int64_t[]){ 1 }, 0)
                    : NULL;
        rc = flat_from ? lc_transfer(flat_to, flat_from) : -1;
        lc_release(flat_to), lc_release(flat_from), lc_release(dense);
    }
    if (rc < 0) lc_release(copy), copy = NULL;
    return copy;
}

static PyObject *state_of(PyObject *self)
{
    PyObject *dict = ((PyTensor *)self)->dict;
    return dict && PyDict_GET_SIZE(dict) ? Py_NewRef(dict) : Py_NewRef(Py_None);
}

/* Sparse tensors are taken apart in Python: indices and values are pickled and copied as tensors of their own. */
static PyObject *in_sparse(const char *function, PyObject *self)
{
    PyObject *module = PyImport_ImportModule("lucid.sparse._pickle"),
             *result = module ? PyObject_CallMethod(module, function, "O", self) : NULL;
    Py_XDECREF(module);
    return result;
}

static PyObject *m_reduce_ex(PyObject *self, UNUSED PyObject *protocol)
{
    lc_tensor *t = py_tensor(self);
    if (t->flags & LC_SPARSE) return in_sparse("reduced", self);
    if (py_check_values(t) < 0) return NULL;
    PyObject  *device = py_device(t->device), *rebuild = module_function("_rebuild_tensor");
    PyObject  *bytes = Py_NewRef(Py_None), *shape = int_tuple(t->shape, t->ndim), *stride;
    lc_tensor *plain = t->device.kind == LC_META ? lc_retain(t) : compact(t);
    if (!plain) return Py_XDECREF(device), Py_XDECREF(rebuild), Py_DECREF(bytes), Py_XDECREF(shape), py_raise();
    if (plain->data)
        Py_SETREF(bytes, PyBytes_FromStringAndSize(plain->data, (Py_ssize_t)(plain->numel * lc_size_of(plain->dtype))));
    stride = int_tuple(plain->stride, plain->ndim);
    lc_release(plain);
    return Py_BuildValue("N(ONNNONO)N", rebuild, Py_TYPE(self), bytes, shape, stride, &py_dtypes[t->dtype], device,
                         lc_requires_grad(t) ? Py_True : Py_False, state_of(self));
}

static int read_ints(PyObject *tuple, int64_t *values, int *n)
{
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > LC_MAX_DIMS)
        return PyErr_Format(PyExc_TypeError, "expected a tuple of sizes"), -1;
    *n = (int)PyTuple_GET_SIZE(tuple);
    for (int i = 0; i < *n; i++)
        if (py_convert_int(PyTuple_GET_ITEM(tuple, i), &values[i]) != 1)
            return PyErr_Format(PyExc_TypeError, "expected a tuple of sizes"), -1;
    return 0;
}

static lc_tensor *rebuilt(PyObject *bytes, PyObject *shape, PyObject *stride, lc_dtype dtype, lc_device device)
{
    int64_t sizes[LC_MAX_DIMS], strides[LC_MAX_DIMS];
    int     n, m;
    if (read_ints(shape, sizes, &n) < 0 || read_ints(stride, strides, &m) < 0) return NULL;
    if (n != m) return PyErr_Format(PyExc_ValueError, "%d sizes and %d strides", n, m), NULL;
    if (bytes == Py_None) return lc_tensor_new_strided(dtype, device, n, sizes, strides);
    if (!PyBytes_Check(bytes)) return PyErr_Format(PyExc_TypeError, "expected bytes"), NULL;
    lc_storage *s = lc_storage_new((lc_device){ LC_CPU, 0 }, (size_t)PyBytes_GET_SIZE(bytes));
    if (!s) return NULL;
    memcpy(s->data, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    lc_tensor *t = lc_tensor_on(s, dtype, n, sizes, strides, 0); /* checks that the bytes suffice */
    lc_storage_release(s);
    if (!t || device.kind == LC_CPU) return t;
    PyObject  *here = py_wrap(t);
    lc_tensor *moved = here ? py_from_data(here, &dtype, &device) : NULL;
    Py_XDECREF(here);
    return moved;
}

static PyObject *rebuild_tensor(UNUSED PyObject *module, PyObject *args)
{
    PyObject *type, *bytes, *shape, *stride, *dtype, *device;
    int       requires_grad;
    lc_dtype  dt;
    lc_device dev;
    if (!PyArg_ParseTuple(args, "OOOOOOp:_rebuild_tensor", &type, &bytes, &shape, &stride, &dtype, &device, &requires_grad))
        return NULL;
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, &PyTensor_Type) || py_convert_dtype(dtype, &dt) != 1 ||
        py_convert_device(device, &dev) != 1)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "malformed tensor pickle");
    lc_tensor *t = rebuilt(bytes, shape, stride, dt, dev);
    if (!t) return PyErr_Occurred() ? NULL : py_raise();
    if (requires_grad && lc_set_requires_grad(t, true) < 0) return lc_release(t), py_raise();
    return py_wrap_as((PyTypeObject *)type, t);
}

/* deepcopy: a copy with the same strides, class and attributes; the gradient is copied too. */
static int copy_grad(PyObject *copy, PyObject *self, PyObject *memo)
{
    PyObject *grad = py_wrap_optional(py_tensor(self)->grad), *module = PyImport_ImportModule("copy");
    PyObject *fresh = grad && module ? PyObject_CallMethod(module, "deepcopy", "OO", grad, memo) : NULL;
    int       rc = fresh ? PyObject_SetAttrString(copy, "grad", fresh) : -1;
    Py_XDECREF(grad);
    Py_XDECREF(module);
    Py_XDECREF(fresh);
    return rc;
}

static int copy_state(PyObject *copy, PyObject *self, PyObject *memo)
{
    PyObject *dict = ((PyTensor *)self)->dict;
    if (!dict) return 0;
    PyObject *module = PyImport_ImportModule("copy"),
             *fresh = module ? PyObject_CallMethod(module, "deepcopy", "OO", dict, memo) : NULL;
    int rc = fresh ? PyObject_SetAttrString(copy, "__dict__", fresh) : -1;
    Py_XDECREF(module);
    Py_XDECREF(fresh);
    return rc;
}

/* A storage that other tensors may share is copied once and whole: views stay views of each other. */
static lc_tensor *copy_sharing(lc_tensor *t, PyObject *memo)
{
    lc_storage *s = t->storage, *fresh = NULL;
    PyObject   *key = Py_BuildValue("(sN)", "storage", PyLong_FromVoidPtr(s)),
             *known = key ? PyDict_GetItemWithError(memo, key) : NULL;
    if (known) fresh = py_tensor(known)->storage;
    else if (key && !PyErr_Occurred() && (fresh = lc_storage_new(s->device, s->bytes))) memcpy(fresh->data, s->data, s->bytes);
    lc_tensor *copy =
        fresh ? lc_tensor_on(fresh, (lc_dtype)t->dtype, t->ndim, t->shape, t->stride, lc_storage_offset(t)) : NULL;
    if (fresh && !known) {
        lc_tensor *held = copy ? lc_tensor_alias(copy, true) : NULL;
        PyObject  *keeper = held ? py_wrap(held) : NULL;
        if (!keeper || PyDict_SetItem(memo, key, keeper) < 0) lc_release(copy), copy = NULL;
        Py_XDECREF(keeper);
        lc_storage_release(fresh);
    }
    Py_XDECREF(key);
    return copy;
}

static lc_tensor *sparse_copy(lc_tensor *t)
{
    const lc_op *clone = py_engine_op("clone");
    lc_tensor   *plain = lc_tensor_alias(t, true);
    lc_tensor   *copy = plain && clone ? py_call_raw(clone, &(lc_value){ .tag = LC_IS_tensor, .t = plain }, 1) : NULL;
    lc_release(plain);
    return copy;
}

static lc_tensor *plain_copy(lc_tensor *t)
{
    if (t->flags & LC_SPARSE) return sparse_copy(t);
    int64_t stride[LC_MAX_DIMS];
    lc_strides_like(t, stride);
    lc_tensor        *copy = lc_tensor_new_strided((lc_dtype)t->dtype, t->device, t->ndim, t->shape, stride);
    const lc_backend *backend = copy ? lc_backend_of(t->device) : NULL;
    if (copy && t->device.kind != LC_META && (!backend || backend->copy(copy, t) < 0)) lc_release(copy), copy = NULL;
    return copy;
}

static PyObject *m_deepcopy(PyObject *self, PyObject *memo)
{
    lc_tensor *t = py_tensor(self);
    PyObject  *key = PyLong_FromVoidPtr(self), *known = key && PyDict_Check(memo) ? PyDict_GetItemWithError(memo, key) : NULL;
    if (known || !key || PyErr_Occurred()) return Py_XDECREF(key), Py_XNewRef(known);
    if (t->node && lc_requires_grad(t)) {
        Py_DECREF(key);
        return py_fail(
            LucidError,
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.");
    }
    const lc_storage *s = t->storage; /* engine memory that other tensors hold too */
    bool              seen =
        s && !(t->flags & LC_SPARSE) && t->data && t->device.kind == LC_CPU && !s->deleter && s->shared_fd < 0 && s->refs > 1;
    lc_tensor *values = seen && PyDict_Check(memo) ? copy_sharing(t, memo) : plain_copy(t);
    PyObject  *copy = values ? py_wrap_as(Py_TYPE(self), values) : py_raise();
    bool       failed = !copy || (lc_requires_grad(t) && lc_set_requires_grad(py_tensor(copy), true) < 0 && !py_raise()) ||
                  (PyDict_Check(memo) && PyDict_SetItem(memo, key, copy) < 0) || (t->grad && copy_grad(copy, self, memo) < 0) ||
                  copy_state(copy, self, memo) < 0;
    Py_DECREF(key);
    if (failed) Py_CLEAR(copy);
    return copy;
}

/* copy.copy: another tensor on the same memory. */
static PyObject *m_copy(PyObject *self, UNUSED PyObject *unused)
{
    lc_tensor *t = py_tensor(self), *alias = lc_tensor_alias(t, true);
    if (alias && lc_requires_grad(t) && lc_set_requires_grad(alias, true) < 0) return lc_release(alias), py_raise();
    PyObject *copy = py_wrap_as(Py_TYPE(self), alias), *dict = ((PyTensor *)self)->dict,
             *state = dict ? PyDict_Copy(dict) : NULL;
    if (copy && dict && (!state || PyObject_SetAttrString(copy, "__dict__", state) < 0)) Py_CLEAR(copy);
    Py_XDECREF(state);
    return copy;
}

static PyObject *m_setstate(PyObject *self, PyObject *state)
{
    if (state != Py_None && PyObject_SetAttrString(self, "__dict__", state) < 0) return NULL;
    Py_RETURN_NONE;
}

/* --- between processes ----------------------------------------------------------------------------------------------------------- */
/* _share(tensor) -> (descriptor, bytes, shape, stride, offset, dtype): the values are moved to shared memory first. None:
 * other tensors use the storage, so it cannot be moved. */
static PyObject *share(UNUSED PyObject *module, PyObject *object)
{
    if (!py_is_tensor(object)) return PyErr_Format(PyExc_TypeError, "expected a Tensor");
    lc_tensor *t = py_tensor(object);
    if (t->storage && t->storage->shared_fd < 0 && t->storage->refs > 1)
        return Py_NewRef(Py_None); /* other tensors use the same memory */
    if (lc_tensor_share_memory(t) < 0) return py_raise();
    return Py_BuildValue("inNNLO", t->storage->shared_fd, (Py_ssize_t)t->storage->bytes, int_tuple(t->shape, t->ndim),
                         int_tuple(t->stride, t->ndim), (long long)lc_storage_offset(t), &py_dtypes[t->dtype]);
}

/* _from_shared(type, descriptor, bytes, shape, stride, offset, dtype, requires_grad): takes the descriptor. */
static PyObject *from_shared(UNUSED PyObject *module, PyObject *args)
{
    PyObject  *type, *shape, *stride, *dtype;
    int        fd, requires_grad, n, m;
    Py_ssize_t bytes;
    long long  offset;
    int64_t    sizes[LC_MAX_DIMS], strides[LC_MAX_DIMS];
    lc_dtype   dt;
    if (!PyArg_ParseTuple(args, "OinOOLOp:_from_shared", &type, &fd, &bytes, &shape, &stride, &offset, &dtype, &requires_grad))
        return NULL;
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, &PyTensor_Type) || py_convert_dtype(dtype, &dt) != 1 ||
        read_ints(shape, sizes, &n) < 0 || read_ints(stride, strides, &m) < 0 || n != m || bytes < 0)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "malformed shared tensor");
    lc_storage *s = lc_storage_map_fd(fd, (size_t)bytes);
    lc_tensor  *t = s ? lc_tensor_on(s, dt, n, sizes, strides, offset) : NULL;
    lc_storage_release(s);
    if (t && requires_grad && lc_set_requires_grad(t, true) < 0) lc_release(t), t = NULL;
    return t ? py_wrap_as((PyTypeObject *)type, t) : py_raise();
}

/* set_: a tensor on an existing storage. */
static PyObject *on_storage(UNUSED PyObject *module, PyObject *args)
{
    PyObject *storage, *dtype, *shape, *stride;
    int64_t   sizes[LC_MAX_DIMS], strides[LC_MAX_DIMS];
    long long offset;
    int       n, m;
    lc_dtype  dt;
    if (!PyArg_ParseTuple(args, "OOOOL:_on_storage", &storage, &dtype, &shape, &stride, &offset)) return NULL;
    if (!py_storage_of(storage) || py_convert_dtype(dtype, &dt) != 1)
        return PyErr_Format(PyExc_TypeError, "expected a storage and a dtype");
    if (read_ints(shape, sizes, &n) < 0 || read_ints(stride, strides, &m) < 0) return NULL;
    if (n != m) return PyErr_Format(PyExc_RuntimeError, "mismatch in length of strides and shape: %d and %d", m, n);
    if (offset < 0) return PyErr_Format(PyExc_RuntimeError, "Tensor: invalid storage offset %lld", offset);
    lc_tensor *t = lc_tensor_on(py_storage_of(storage), dt, n, sizes, strides, offset);
    return t ? py_wrap(t) : py_raise();
}

PyMethodDef py_reduce_methods[] = { { "__reduce_ex__", m_reduce_ex, METH_O, NULL },
                                    { "__copy__", m_copy, METH_NOARGS, NULL },
                                    { "__deepcopy__", m_deepcopy, METH_O, NULL },
                                    { "__setstate__", m_setstate, METH_O, NULL },
                                    { 0 } };
PyMethodDef py_reduce_functions[] = {
    { "_rebuild_tensor", rebuild_tensor, METH_VARARGS, "What pickling made of a tensor." },
    { "_share", share, METH_O, "Move a tensor to shared memory; how another process finds it." },
    { "_on_storage", on_storage, METH_VARARGS, "A tensor of given dtype, shape, strides and offset on a storage." },
    { "_from_shared", from_shared, METH_VARARGS, "A tensor in another process's shared memory." },
    { 0 }
};

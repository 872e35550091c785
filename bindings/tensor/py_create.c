/* lucid.tensor, as_tensor, asarray: tensors from Python data. */
#include "../py.h"

typedef struct {
    PyObject *data;
    bool      has_dtype, has_device, requires_grad, pin_memory, copy, alias, detached;
    lc_dtype  dtype;
    lc_device device;
} request;

static bool named(PyObject *name, const char *text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; }

static int read_option(request *r, const char *function, PyObject *name, PyObject *value)
{
    bool *flag = named(name, "requires_grad") ? &r->requires_grad
                 : named(name, "pin_memory")  ? &r->pin_memory
                 : named(name, "copy")        ? &r->copy
                                              : NULL;
    if (flag) {
        int truth = PyObject_IsTrue(value);
        r->detached = !truth && flag == &r->requires_grad; /* explicit requires_grad=False */
        if (flag == &r->copy) r->alias = value == Py_False;
        return truth < 0 ? -1 : (*flag = truth, 0);
    }
    if ((named(name, "data") || named(name, "obj")) && !r->data) return r->data = value, 0;
    int fit = 0;
    if (named(name, "dtype")) fit = value == Py_None ? 1 : py_convert_dtype(value, &r->dtype), r->has_dtype = value != Py_None;
    else if (named(name, "device"))
        fit = value == Py_None ? 1 : py_convert_device(value, &r->device), r->has_device = value != Py_None;
    else return PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", function, name), -1;
    if (fit == 0) PyErr_Format(PyExc_TypeError, "%s(): argument '%U' must not be %s", function, name, Py_TYPE(value)->tp_name);
    return fit == 1 ? 0 : -1;
}

/* positional: how many options may be positional (as_tensor: dtype, device). */
static int read_request(request *r, const char *function, int positional, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    static const char *const order[] = { "dtype", "device" };
    *r = (request){ .data = n > 0 ? args[0] : NULL };
    if (n > 1 + positional)
        return PyErr_Format(PyExc_TypeError, "%s() takes %d positional arguments (%zd given)", function, 1 + positional, n), -1;
    for (Py_ssize_t i = 1; i < n; i++) {
        PyObject *name = PyUnicode_FromString(order[i - 1]);
        int       rc = name ? read_option(r, function, name, args[i]) : -1;
        Py_XDECREF(name);
        if (rc < 0) return -1;
    }
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++)
        if (read_option(r, function, PyTuple_GET_ITEM(names, i), args[n + i]) < 0) return -1;
    if (!r->data) return PyErr_Format(PyExc_TypeError, "%s() missing 1 required positional arguments: \"data\"", function), -1;
    return 0;
}

static PyObject *finish(const request *r, lc_tensor *t)
{
    if (t && lc_modes & LC_INFERENCE_MODE) t->flags |= LC_INFERENCE;
    if (t && r->pin_memory) t = py_pinned_instead(t);
    if (t && r->requires_grad && lc_set_requires_grad(t, true) < 0) return lc_release(t), py_raise();
    return t ? py_wrap(t) : NULL;
}

static lc_tensor *copy_of(const request *r)
{
    return py_from_data(r->data, r->has_dtype ? &r->dtype : NULL, r->has_device ? &r->device : NULL);
}

/* What another library's object holds, as a tensor on its memory (__dlpack__) or as an array (__array__); NULL: neither, or raised. */
static PyObject *foreign(PyObject *o)
{
    if (py_is_tensor(o) || PyLong_Check(o) || PyFloat_Check(o) || PyList_Check(o) || PyTuple_Check(o) || PyUnicode_Check(o) ||
        PyType_Check(o))
        return NULL;
    if (Py_TYPE(o) == &PyStorage_Type) { /* its bytes */
        PyObject *none = py_wrap(lc_tensor_new(LC_u8, (lc_device){ LC_CPU, 0 }, 1, (int64_t[]){ 0 }));
        PyObject *bytes = none ? PyObject_CallMethod(none, "set_", "O", o) : NULL;
        Py_XDECREF(none);
        return bytes;
    }
    if (py_is_array(o) || py_is_numpy_scalar(o)) return NULL;
    PyObject *type = (PyObject *)Py_TYPE(o);
    if (PyObject_HasAttrString(type, "__dlpack__")) {
        PyObject *plain = PyObject_HasAttrString(type, "detach") ? PyObject_CallMethod(o, "detach", NULL) : Py_NewRef(o);
        PyObject *args = plain ? PyTuple_Pack(1, plain) : NULL, *t = args ? py_from_dlpack(NULL, args, NULL) : NULL;
        Py_XDECREF(plain);
        Py_XDECREF(args);
        if (t || !PyObject_HasAttrString(type, "__array__")) return t;
        PyErr_Clear();
    }
    if (PyObject_HasAttrString(o,
                               "__cuda_array_interface__")) { /* of the object: PyTorch's CPU tensors have the name and raise */
        PyObject *interop = PyImport_ImportModule("lucid.cuda.interop");
        PyObject *made = interop ? PyObject_CallMethod(interop, "from_array_interface", "O", o) : NULL;
        Py_XDECREF(interop);
        return made;
    }
    return PyObject_HasAttrString(type, "__array__") ? PyObject_CallMethod(o, "__array__", NULL) : NULL;
}

PyObject *py_foreign_tensor(PyObject *o)
{
    PyObject *held = foreign(o);
    if (!held || py_is_tensor(held)) return held;
    lc_tensor *t = py_is_array(held) ? py_from_array(held, true) : py_from_data(held, NULL, NULL);
    Py_DECREF(held);
    return t ? py_wrap(t) : NULL;
}

static PyObject *tensor(UNUSED PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    request   r;
    PyObject *other = py_overrides ? py_try_modes("tensor", args, n, names) : NULL;
    if (other || PyErr_Occurred()) return other;
    if (read_request(&r, "tensor", 0, args, n, names) < 0) return NULL;
    if (py_is_tensor(r.data) &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                     "sourceTensor.detach().clone().requires_grad_(True), rather than lucid.tensor(sourceTensor).",
                     1) < 0)
        return NULL;
    PyObject *held = foreign(r.data);
    if (PyErr_Occurred()) return NULL;
    if (held) r.data = held;
    PyObject *made = finish(&r, copy_of(&r));
    Py_XDECREF(held);
    return made;
}

/* x itself, or with another dtype or device x.to(...), which is recorded. */
static PyObject *converted(const request *r)
{
    lc_tensor *t = py_tensor(r->data);
    PyObject  *x = Py_NewRef(r->data);
    if (r->has_dtype && r->dtype != (lc_dtype)t->dtype) Py_SETREF(x, PyObject_CallMethod(x, "to", "O", &py_dtypes[r->dtype]));
    if (x && r->has_device && !lc_same_device(r->device, t->device)) {
        PyObject *device = py_device(r->device);
        Py_SETREF(x, device ? PyObject_CallMethod(x, "to", "O", device) : NULL);
        Py_XDECREF(device);
    }
    return x;
}

static PyObject *share_own(const request *r)
{
    if (r->copy || !(py_is_tensor(r->data) || py_is_array(r->data))) return finish(r, copy_of(r));
    if (py_is_tensor(r->data)) return converted(r);
    lc_tensor *t = py_from_array(r->data, true);
    if (!t) return NULL;
    request   shared = *r;
    PyObject *result = shared.data = py_wrap(t);
    if (!result) return NULL;
    if (!shared.has_device && lc_default_device.kind != LC_CPU) shared.has_device = true, shared.device = lc_default_device;
    result = converted(&shared);
    Py_DECREF(shared.data);
    return result;
}

static PyObject *share_or_copy(const request *r)
{
    PyObject *held = foreign(r->data);
    if (PyErr_Occurred()) return NULL;
    if (!held) return share_own(r);
    request inner = *r;
    inner.data = held;
    PyObject *result = share_own(&inner);
    Py_DECREF(held);
    return result;
}

static PyObject *as_tensor(UNUSED PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    request   r;
    PyObject *other = py_overrides ? py_try_modes("as_tensor", args, n, names) : NULL;
    if (other || PyErr_Occurred()) return other;
    return read_request(&r, "as_tensor", 2, args, n, names) < 0 ? NULL : share_or_copy(&r);
}

/* asarray(obj, *, dtype, device, copy, requires_grad): PyTorch names the first argument obj. */
static PyObject *asarray(UNUSED PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    request   r;
    PyObject *other = py_overrides ? py_try_modes("asarray", args, n, names) : NULL;
    if (other || PyErr_Occurred()) return other;
    if (read_request(&r, "asarray", 0, args, n, names) < 0) return NULL;
    bool own = py_is_tensor(r.data) || py_is_array(r.data) || Py_TYPE(r.data) == &PyStorage_Type ||
               PyObject_HasAttrString((PyObject *)Py_TYPE(r.data), "__dlpack__");
    if (r.alias && !own) return PyErr_SetString(PyExc_ValueError, "can't alias arbitrary sequence into a tensor."), NULL;
    PyObject *made = share_or_copy(&r), *whole = NULL;
    if (made && r.alias && made != r.data) { /* the memory differs if a copy was made all the same */
        request plain = { .data = r.data };
        whole = share_or_copy(&plain);
        if (whole && py_tensor(whole)->numel && py_tensor(whole)->data != py_tensor(made)->data)
            PyErr_Format(PyExc_ValueError, "can't alias tensor with dtype '%s' into dtype '%s' or to another device.",
                         lc_dtypes[py_tensor(whole)->dtype].name, lc_dtypes[py_tensor(made)->dtype].name);
        Py_XDECREF(whole);
        if (PyErr_Occurred()) Py_CLEAR(made);
    }
    if (made && r.requires_grad && !lc_requires_grad(py_tensor(made)) && lc_set_requires_grad(py_tensor(made), true) < 0) {
        Py_DECREF(made);
        return py_raise();
    }
    if (made && r.detached && lc_requires_grad(py_tensor(made))) Py_SETREF(made, PyObject_CallMethod(made, "detach", NULL));
    return made;
}

PyMethodDef py_create_functions[] = {
    { "tensor", (PyCFunction)(void (*)(void))tensor, METH_FASTCALL | METH_KEYWORDS,
      "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n--\n\nA new tensor with a copy of the "
      "data.\n\n"
      ">>> lucid.tensor([[1, 2], [3, 4]]).shape\nlucid.Size([2, 2])\n" },
    { "as_tensor", (PyCFunction)(void (*)(void))as_tensor, METH_FASTCALL | METH_KEYWORDS,
      "as_tensor(data, dtype=None, device=None)\n--\n\nThe data as a tensor, without a copy where that is possible.\n\n"
      ">>> x = lucid.ones(2)\n>>> lucid.as_tensor(x) is x\nTrue\n" },
    { "asarray", (PyCFunction)(void (*)(void))asarray, METH_FASTCALL | METH_KEYWORDS,
      "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False)\n--\n\nThe object as a tensor, sharing memory "
      "if it can.\n\n"
      ">>> lucid.asarray([1, 2]).tolist()\n[1, 2]\n" },
    { 0 }
};

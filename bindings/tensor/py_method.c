/* Methods of tensors that are not ops: geometry, reading and writing values, autograd. */
#include "../py.h"
#include "../../engine/backend/cuda/report.h"

#define T            py_tensor(self)
#define METHOD(name) static PyObject *m_##name(PyObject *self, UNUSED PyObject *unused)
#define FAST(f)      (PyCFunction)(void (*)(void))(f), METH_FASTCALL | METH_KEYWORDS
#define KEYWORDS(f)  (PyCFunction)(void (*)(void))(f), METH_VARARGS | METH_KEYWORDS

static int find_dim(const lc_tensor *t, PyObject *dim, int *found)
{
    int64_t d, n = t->ndim ? t->ndim : 1;
    int     fit = py_convert_int(dim, &d);
    if (fit < 0) return -1;
    if (fit == 0) return PyErr_Format(PyExc_TypeError, "dim must be int, not %s", Py_TYPE(dim)->tp_name), -1;
    if (t->ndim == 0) return py_fail(IndexError, "Dimension specified as %lld but tensor has no dimensions", (long long)d), -1;
    if (d < -n || d >= n)
        return py_fail(IndexError, "Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)",
                       (long long)-n, (long long)n - 1, (long long)d),
               -1;
    return *found = (int)(d < 0 ? d + n : d), 0;
}

/* f(), f(dim) or f(dim=dim): None if it is not there. */
static int one_dim(const char *name, PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **dim)
{
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0);
    bool       known =
        !names || PyTuple_GET_SIZE(names) == 0 || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "dim") == 0;
    if (total > 1 || !known) return PyErr_Format(PyExc_TypeError, "%s() takes no arguments but dim", name), -1;
    return *dim = total ? args[0] : Py_None, 0;
}

static PyObject *m_size(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *dim;
    int       d;
    if (one_dim("size", args, n, names, &dim) < 0) return NULL;
    lc_calls_incomplete = true;
    if (dim == Py_None) return PyObject_GetAttrString(self, "shape");
    return find_dim(T, dim, &d) < 0 ? NULL : PyLong_FromLongLong(T->shape[d]);
}

static PyObject *m_stride(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *dim;
    int       d;
    if (one_dim("stride", args, n, names, &dim) < 0) return NULL;
    lc_calls_incomplete = true;
    if (dim != Py_None) return find_dim(T, dim, &d) < 0 ? NULL : PyLong_FromLongLong(T->stride[d]);
    PyObject *strides = PyTuple_New(T->ndim);
    for (d = 0; strides && d < T->ndim; d++) PyTuple_SET_ITEM(strides, d, PyLong_FromLongLong(T->stride[d]));
    return strides;
}

METHOD(dim) { return PyLong_FromLong(T->ndim); }
METHOD(numel) { return lc_calls_incomplete = true, PyLong_FromLongLong(T->numel); }
METHOD(element_size) { return PyLong_FromLong((long)lc_size_of(T->dtype)); }
METHOD(data_ptr)
{
    return lc_calls_incomplete = true,
           py_check_dense(T, "the data pointer") < 0 ? NULL : PyLong_FromVoidPtr(T->numel ? T->data : NULL);
}
METHOD(storage_offset) { return lc_calls_incomplete = true, PyLong_FromLongLong(lc_storage_offset(T)); }
METHOD(_is_view) { return PyBool_FromLong(T->view != LC_NOT_A_VIEW); }
METHOD(is_inference) { return PyBool_FromLong(T->flags & LC_INFERENCE); }
METHOD(is_floating_point) { return PyBool_FromLong(lc_is_floating(T->dtype)); }
METHOD(is_conj) { return (void)self, Py_NewRef(Py_False); } /* conj() computes at once */
METHOD(is_neg) { return (void)self, Py_NewRef(Py_False); }
METHOD(is_complex) { return PyBool_FromLong(lc_is_complex(T->dtype)); }
METHOD(is_signed) { return PyBool_FromLong(T->dtype != LC_b8 && !lc_is_unsigned(T->dtype)); }
METHOD(get_device) { return PyLong_FromLong(T->device.kind == LC_CPU ? -1 : T->device.index); }
METHOD(item) { return py_item(T); }
METHOD(tolist) { return py_to_nested(T); }
METHOD(is_shared) { return PyBool_FromLong(T->storage && T->storage->shared_fd >= 0); }
static int for_cuda(PyObject *args, PyObject *kwargs) /* their one argument, a device: 1, 0, -1 */
{
    static char *names[] = { "device", NULL };
    PyObject    *device = Py_None;
    lc_device    where = { LC_CUDA, 0 };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &device)) return -1;
    if (device != Py_None && py_convert_device(device, &where) != 1)
        return PyErr_Occurred() ? -1 : (PyErr_SetString(PyExc_TypeError, "device expected"), -1);
    return where.kind == LC_CUDA;
}
static PyObject *m_is_pinned(PyObject *self, PyObject *args, PyObject *kwargs)
{
    int fit = for_cuda(args, kwargs);
    return fit < 0 ? NULL : PyBool_FromLong(fit && T->storage && T->storage->pinned);
}
METHOD(untyped_storage)
{
    lc_calls_incomplete = true;
    return py_check_dense(T, "the storage") < 0 ? NULL
           : T->storage                         ? py_storage(T->storage)
                                                : py_fail(LucidError, "this tensor has no storage");
}
static PyObject *m_pin_memory(PyObject *self, PyObject *args, PyObject *kwargs)
{
    int fit = for_cuda(args, kwargs);
    if (fit < 1) return fit < 0 ? NULL : py_fail(LucidError, "pin_memory: memory is pinned for CUDA devices only");
    if (T->storage && T->storage->pinned) return Py_NewRef(self);
    lc_tensor *t = py_pinned(T);
    return t ? py_wrap(t) : NULL;
}
/* Views would keep the old memory, so there may be none. lucid.multiprocessing registers the reducer for shared memory;
 * nobody else needs it. */
METHOD(share_memory_)
{
    if (py_check_dense(T, "the memory") < 0) return NULL;
    if (T->storage && T->storage->shared_fd < 0 && T->storage->refs > 1)
        return py_fail(LucidError, "share_memory_: other tensors use the same memory; clone() the tensor first");
    if (lc_tensor_share_memory(T) < 0) return py_raise();
    PyObject *module = PyImport_ImportModule("lucid.multiprocessing");
    Py_XDECREF(module);
    return module ? Py_NewRef(self) : NULL;
}

static PyObject *m_is_contiguous(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "memory_format", NULL };
    PyObject    *format = (PyObject *)&py_formats[LC_CONTIGUOUS_FORMAT];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O!:is_contiguous", names, &PyFormat_Type, &format)) return NULL;
    int value = ((PyFormat *)format)->value;
    lc_calls_incomplete = true;
    if (value == LC_PRESERVE_FORMAT)
        return py_fail(LucidError, "preserve memory format is unsupported by the contiguous operator");
    return PyBool_FromLong(lc_is_contiguous_in(T, (lc_memory_format)value));
}

/* --- values ----------------------------------------------------------------------------------------------------------------- */
METHOD(complex)
{
    if (T->numel != 1) return PyErr_Format(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
    PyObject *value = py_item(T), *result = value ? PyObject_CallOneArg((PyObject *)&PyComplex_Type, value) : NULL;
    Py_XDECREF(value);
    return result;
}

static PyObject *m_format(PyObject *self, PyObject *spec)
{
    if (T->ndim || T->device.kind == LC_META || Py_TYPE(self) != &PyTensor_Type)
        return PyObject_CallMethod((PyObject *)&PyBaseObject_Type, "__format__", "OO", self, spec);
    PyObject *value = py_item(T), *text = value ? PyObject_Format(value, spec) : NULL;
    Py_XDECREF(value);
    return text;
}

METHOD(reversed)
{
    if (T->ndim == 0) return Py_NewRef(self);
    return PyObject_CallMethod(self, "flip", "i", 0);
}

METHOD(dir)
{
    PyObject *names = PyObject_Dir((PyObject *)Py_TYPE(self)), *own = ((PyTensor *)self)->dict,
             *keys = own ? PyDict_Keys(own) : NULL;
    if (names && keys) Py_SETREF(names, PySequence_InPlaceConcat(names, keys));
    Py_XDECREF(keys);
    if (names && PyList_Sort(names) < 0) Py_CLEAR(names);
    return names;
}

/* --- autograd ------------------------------------------------------------------------------------------------------------------ */
static PyObject *m_requires_grad_(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "requires_grad", NULL };
    PyObject    *on = Py_True;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O!:requires_grad_", names, &PyBool_Type, &on)) return NULL;
    lc_calls_incomplete = true;
    return lc_set_requires_grad(T, on == Py_True) < 0 ? py_raise() : Py_NewRef(self);
}

METHOD(retain_grad)
{
    if (lc_retain_grad(T) < 0) return py_raise();
    Py_RETURN_NONE;
}

/* With inputs=: the general path, lucid.autograd.backward. */
static PyObject *backward_to(PyObject *self, PyObject *gradient, PyObject *retain, int create, PyObject *inputs)
{
    PyObject *module = PyImport_ImportModule("lucid.autograd"), *result = NULL;
    PyObject *function = module ? PyObject_GetAttrString(module, "backward") : NULL;
    PyObject *args = Py_BuildValue("(OO)", self, gradient);
    PyObject *kwargs =
        Py_BuildValue("{s:O,s:O,s:O}", "retain_graph", retain, "create_graph", create ? Py_True : Py_False, "inputs", inputs);
    if (function && args && kwargs) result = PyObject_Call(function, args, kwargs);
    Py_XDECREF(module);
    Py_XDECREF(function);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return result;
}

static PyObject *m_backward(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "gradient", "retain_graph", "create_graph", "inputs", NULL };
    PyObject    *gradient = Py_None, *retain = Py_None, *inputs = Py_None;
    int          create = 0;
    bool         any = PyTuple_GET_SIZE(args) || kwargs; /* loss.backward() needs no parsing */
    if (any && !PyArg_ParseTupleAndKeywords(args, kwargs, "|OOpO:backward", names, &gradient, &retain, &create, &inputs))
        return NULL;
    if (gradient != Py_None && !py_is_tensor(gradient))
        return PyErr_Format(PyExc_TypeError, "gradients can be either Tensors or None, but got %s", Py_TYPE(gradient)->tp_name);
    if (inputs != Py_None) return backward_to(self, gradient, retain, create, inputs);
    int keep = retain == Py_None ? create : PyObject_IsTrue(retain);
    if (keep < 0) return NULL;
    if (lc_backward(T, gradient == Py_None ? LC_NONE : py_tensor(gradient), keep, create) < 0) return py_raise();
    Py_RETURN_NONE;
}

/* --- the same tensor as another class ------------------------------------------------------------------------------------------ */
static PyTypeObject *tensor_class(PyObject *cls)
{
    if (PyType_Check(cls) && PyType_IsSubtype((PyTypeObject *)cls, &PyTensor_Type)) return (PyTypeObject *)cls;
    return PyErr_Format(PyExc_TypeError, "cls must be a type that inherits from Tensor"), NULL;
}

static PyObject *m_as_subclass(PyObject *self, PyObject *cls)
{
    PyTypeObject *type = tensor_class(cls);
    return type ? py_as_class(self, type) : NULL;
}

/* _make_subclass(cls, data, require_grad=False): the constructor of Parameter. Shares the values, has no history. */
static PyObject *m_make_subclass(UNUSED PyObject *unused, PyObject *args)
{
    PyObject *cls, *data;
    int       requires_grad = 0;
    if (!PyArg_ParseTuple(args, "OO!|p:_make_subclass", &cls, &PyTensor_Type, &data, &requires_grad)) return NULL;
    PyTypeObject *type = tensor_class(cls);
    lc_tensor    *t = type ? lc_tensor_alias(py_tensor(data), true) : NULL;
    if (!t) return type ? py_raise() : NULL;
    if (requires_grad && lc_set_requires_grad(t, true) < 0) return lc_release(t), py_raise();
    return py_wrap_as(type, t);
}

static PyObject *m_make_wrapper(UNUSED PyObject *unused, UNUSED PyObject *args, UNUSED PyObject *kwargs)
{
    return py_fail(NotImplementedError,
                   "_make_wrapper_subclass: tensors without memory that answer through __torch_dispatch__ are not supported; "
                   "a subclass with memory (Tensor._make_subclass, Tensor.as_subclass) and __torch_function__ is");
}

/* --- dtype and device moves in one word: x.float(), x.cpu() -------------------------------------------------------------------- */
static PyObject *call_to(PyObject *self, PyObject *target)
{
    return target ? PyObject_CallMethod(self, "to", "O", target) : NULL;
}

static PyObject *cast(PyObject *self, lc_dtype to)
{
    return T->dtype == to ? Py_NewRef(self) : call_to(self, (PyObject *)&py_dtypes[to]);
}
#define DTYPE(name, ctype, acc, py, class)                                                                                     \
    UNUSED METHOD(to_##name) { return cast(self, LC_##name); }
#include "../../engine/core/dtype.def"
#undef DTYPE

METHOD(cpu)
{
    PyObject *cpu = py_device((lc_device){ LC_CPU, 0 }), *moved = call_to(self, cpu);
    Py_XDECREF(cpu);
    return moved;
}

static PyObject *m_metal(UNUSED PyObject *self, UNUSED PyObject *unused)
{
    return py_fail(GpuNotAvailable, "metal: this build has no Metal backend");
}

static PyObject *m_cuda(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "device", "non_blocking", NULL };
    PyObject    *device = Py_None;
    int          non_blocking = 0;
    lc_device    to = { LC_CUDA, (int8_t)lc_cuda_current_device() };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Op:cuda", names, &device, &non_blocking)) return NULL;
    int fit = device == Py_None ? 1 : py_convert_device(device, &to);
    if (fit == 0 || (fit == 1 && to.kind != LC_CUDA))
        return PyErr_Format(PyExc_RuntimeError, "Invalid device, must be cuda device");
    if (fit < 0 || !lc_backend_of(to)) return fit < 0 ? NULL : py_raise();
    PyObject *target = py_device(to);
    PyObject *moved =
        target ? PyObject_CallMethod(self, "to", "OOO", target, Py_None, non_blocking ? Py_True : Py_False) : NULL;
    Py_XDECREF(target);
    return moved;
}

static const char *const type_names[LC_DTYPE_COUNT] = {
    [LC_b8] = "Bool",
    [LC_u8] = "Byte",
    [LC_i8] = "Char",
    [LC_i16] = "Short",
    [LC_i32] = "Int",
    [LC_i64] = "Long",
    [LC_f16] = "Half",
    [LC_bf16] = "BFloat16",
    [LC_f32] = "Float",
    [LC_f64] = "Double",
    [LC_c32] = "ComplexHalf",
    [LC_c64] = "ComplexFloat",
    [LC_c128] = "ComplexDouble",
    [LC_u16] = "UInt16",
    [LC_u32] = "UInt32",
    [LC_u64] = "UInt64",
    [LC_f8_e4m3fn] = "Float8_e4m3fn",
    [LC_f8_e5m2] = "Float8_e5m2",
    [LC_f8_e4m3fnuz] = "Float8_e4m3fnuz",
    [LC_f8_e5m2fnuz] = "Float8_e5m2fnuz",
    [LC_f8_e8m0fnu] = "Float8_e8m0fnu",
};
static int dtype_of_type_name(PyObject *name, lc_dtype *dtype) /* "lucid.FloatTensor" */
{
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL, *dot = text ? strrchr(text, '.') : NULL;
    char        full[48];
    for (int d = 0; d < LC_DTYPE_COUNT && text; d++) {
        snprintf(full, sizeof full, "%sTensor", type_names[d]);
        if (!strcmp(dot ? dot + 1 : text, full)) return *dtype = (lc_dtype)d, 1;
    }
    return 0;
}
static PyObject *m_type(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "dtype", "non_blocking", NULL };
    PyObject    *dtype = Py_None;
    int          non_blocking = 0;
    lc_dtype     to;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Op:type", names, &dtype, &non_blocking)) return NULL;
    if (dtype == Py_None)
        return PyUnicode_FromFormat("%s.%s%sTensor", py_package, T->device.kind == LC_CUDA ? "cuda." : "",
                                    type_names[T->dtype]);
    PyObject *of_type = PyType_Check(dtype) ? PyObject_GetAttrString(dtype, "dtype") : NULL; /* lucid.FloatTensor.dtype */
    PyErr_Clear();
    bool known = of_type || !PyType_Check(dtype) ? py_convert_dtype(of_type ? of_type : dtype, &to) == 1 : false;
    known = known || dtype_of_type_name(dtype, &to) == 1;
    Py_XDECREF(of_type);
    if (!known) return PyErr_Format(PyExc_ValueError, "invalid type: %R", dtype);
    return call_to(self, (PyObject *)&py_dtypes[to]);
}

static PyObject *m_new_tensor(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "data", "dtype", "device", "requires_grad", NULL };
    PyObject    *data, *dtype = Py_None, *device = Py_None;
    int          requires_grad = 0;
    lc_dtype     dt = (lc_dtype)T->dtype;
    lc_device    dev = T->device;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOp:new_tensor", names, &data, &dtype, &device, &requires_grad))
        return NULL;
    if (dtype != Py_None && py_convert_dtype(dtype, &dt) != 1)
        return PyErr_Format(PyExc_TypeError, "new_tensor(): dtype expected");
    if (device != Py_None && py_convert_device(device, &dev) != 1)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "new_tensor(): device expected");
    lc_tensor *t = py_from_data(data, &dt, &dev);
    if (t && requires_grad && lc_set_requires_grad(t, true) < 0) return lc_release(t), py_raise();
    return t ? py_wrap(t) : NULL;
}

PyMethodDef py_methods[] = {
    { "size", FAST(m_size), "The shape, or the size of one dimension." },
    { "stride", FAST(m_stride), "Elements from one index to the next, per dimension or of one." },
    { "dim", m_dim, METH_NOARGS, "How many dimensions there are." },
    { "ndimension", m_dim, METH_NOARGS, "How many dimensions there are." },
    { "numel", m_numel, METH_NOARGS, "How many elements there are." },
    { "nelement", m_numel, METH_NOARGS, "How many elements there are." },
    { "element_size", m_element_size, METH_NOARGS, "Bytes per element." },
    { "data_ptr", m_data_ptr, METH_NOARGS, "The address of the first element." },
    { "storage_offset", m_storage_offset, METH_NOARGS, "Elements between the start of the storage and the first element." },
    { "untyped_storage", m_untyped_storage, METH_NOARGS, "The memory behind it." },
    { "is_contiguous", KEYWORDS(m_is_contiguous), "Whether elements lie in memory in the order of a memory format." },
    { "_is_view", m__is_view, METH_NOARGS, "Whether it is a view of another tensor." },
    { "is_inference", m_is_inference, METH_NOARGS, "Whether it was made in inference mode." },
    { "is_floating_point", m_is_floating_point, METH_NOARGS, "Whether the dtype is a float." },
    { "is_conj", m_is_conj, METH_NOARGS, "Whether a conjugation is pending: never." },
    { "is_neg", m_is_neg, METH_NOARGS, "Whether a negation is pending: never." },
    { "is_complex", m_is_complex, METH_NOARGS, "Whether the dtype is complex." },
    { "is_signed", m_is_signed, METH_NOARGS, "Whether the dtype has negative numbers." },
    { "get_device", m_get_device, METH_NOARGS, "The index of its GPU, -1 on the CPU." },
    { "is_shared", m_is_shared, METH_NOARGS, "Whether other processes can see the memory." },
    { "share_memory_", m_share_memory_, METH_NOARGS, "Move the values to memory that other processes can share." },
    { "is_pinned", KEYWORDS(m_is_pinned), "Whether the memory is page-locked." },
    { "pin_memory", KEYWORDS(m_pin_memory), "A copy in page-locked memory." },
    { "item", m_item, METH_NOARGS, "The one value as a Python number." },
    { "tolist", m_tolist, METH_NOARGS, "The values as nested lists." },
    { "requires_grad_", KEYWORDS(m_requires_grad_), "Set requires_grad; returns the tensor." },
    { "retain_grad", m_retain_grad, METH_NOARGS, "Keep the gradient of this result in .grad." },
    { "backward", KEYWORDS(m_backward), "Run the tape backwards from here." },
    { "as_subclass", m_as_subclass, METH_O, "The same tensor as an instance of a subclass." },
    { "_make_subclass", m_make_subclass, METH_VARARGS | METH_STATIC,
      "The same values as an instance of a subclass, without history." },
    { "_make_wrapper_subclass", (PyCFunction)(void (*)(void))m_make_wrapper, METH_VARARGS | METH_KEYWORDS | METH_STATIC,
      "PyTorch's name; not supported." },
    { "new_tensor", KEYWORDS(m_new_tensor), "A copy of the data with this dtype and device." },
    { "float", m_to_f32, METH_NOARGS, "As float32." },
    { "double", m_to_f64, METH_NOARGS, "As float64." },
    { "half", m_to_f16, METH_NOARGS, "As float16." },
    { "bfloat16", m_to_bf16, METH_NOARGS, "As bfloat16." },
    { "int", m_to_i32, METH_NOARGS, "As int32." },
    { "long", m_to_i64, METH_NOARGS, "As int64." },
    { "short", m_to_i16, METH_NOARGS, "As int16." },
    { "char", m_to_i8, METH_NOARGS, "As int8." },
    { "byte", m_to_u8, METH_NOARGS, "As uint8." },
    { "bool", m_to_b8, METH_NOARGS, "As bool." },
    { "chalf", m_to_c32, METH_NOARGS, "As complex32." },
    { "cfloat", m_to_c64, METH_NOARGS, "As complex64." },
    { "cdouble", m_to_c128, METH_NOARGS, "As complex128." },
    { "cpu", m_cpu, METH_NOARGS, "In main memory." },
    { "cuda", KEYWORDS(m_cuda), "On a CUDA device." },
    { "metal", m_metal, METH_NOARGS, "On a Metal device: there is no such backend, so this raises GpuNotAvailable." },
    { "type", KEYWORDS(m_type), "The name of the tensor type, or the tensor as another." },
    { "__complex__", m_complex, METH_NOARGS, NULL },
    { "__format__", m_format, METH_O, NULL },
    { "__reversed__", m_reversed, METH_NOARGS, NULL },
    { "__dir__", m_dir, METH_NOARGS, NULL },
    { 0 }
};

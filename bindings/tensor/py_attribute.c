/* Attributes of tensors. Properties that call an op (x.T, x.real) name it; the others read a field. */
#include "../py.h"

#define GET(name) static PyObject *get_##name(UNUSED PyObject *self, UNUSED void *unused)
#define T         py_tensor(self)

/* x.shape is read far more often than it changes: the last Size is cached, and compared with the tensor before it is reused. */
static inline bool size_is_current(const PyTensor *self)
{
    const lc_tensor *t = self->t;
    if (!self->size || Py_SIZE(self->size) != t->ndim || t->ndim > PY_SEEN) return false;
    for (int d = 0; d < t->ndim; d++)
        if (self->seen[d] != t->shape[d]) return false;
    return true;
}
static COLD PyObject *fresh_size(PyTensor *self)
{
    Py_XSETREF(self->size, py_size(self->t->shape, self->t->ndim));
    for (int d = 0; d < self->t->ndim && d < PY_SEEN; d++) self->seen[d] = self->t->shape[d];
    return Py_XNewRef(self->size);
}
static COLD PyObject *other_shape(PyObject *descriptor, PyObject *self) /* NULL without an exception: as of any tensor */
{
    if (!py_is_tensor(self))
        return PyErr_Format(PyExc_TypeError, "shape is an attribute of tensors, not of %s", Py_TYPE(self)->tp_name);
    return py_overrides ? py_override_attribute(descriptor, "__get__", &self, 1) : NULL;
}
/* A descriptor of its own: the interpreter's getset costs two more calls, and this attribute is hot. */
static PyObject *shape_get(PyObject *descriptor, PyObject *self, UNUSED PyObject *type)
{
    if (!self) return Py_NewRef(descriptor);
    lc_calls_incomplete = true;
    if (Py_TYPE(self) != &PyTensor_Type || py_overrides) {
        PyObject *result = other_shape(descriptor, self);
        if (result || PyErr_Occurred()) return result;
    }
    return size_is_current((PyTensor *)self) ? Py_NewRef(((PyTensor *)self)->size) : fresh_size((PyTensor *)self);
}
static int shape_set(UNUSED PyObject *descriptor, UNUSED PyObject *self, UNUSED PyObject *value)
{
    return PyErr_SetString(PyExc_AttributeError, "attribute 'shape' of 'lucid.Tensor' objects is not writable"), -1;
}
static PyObject    *shape_name(UNUSED PyObject *self, UNUSED void *unused) { return PyUnicode_FromString("shape"); }
static PyGetSetDef  shape_members[] = { { "__name__", shape_name, NULL, NULL, NULL }, { 0 } };
static PyTypeObject shape_type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid._C.shape_attribute",
                                   .tp_basicsize = sizeof(PyObject),
                                   .tp_flags = Py_TPFLAGS_DEFAULT,
                                   .tp_doc = "The size of every dimension.",
                                   .tp_getset = shape_members,
                                   .tp_descr_get = shape_get,
                                   .tp_descr_set = shape_set };

int py_add_attributes(void)
{
    if (PyType_Ready(&shape_type) < 0) return -1;
    PyObject *shape = PyObject_New(PyObject, &shape_type);
    int       rc = shape ? PyDict_SetItemString(PyTensor_Type.tp_dict, "shape", shape) : -1;
    Py_XDECREF(shape);
    return rc;
}

GET(dtype) { return Py_NewRef(&py_dtypes[T->dtype]); }
GET(device) { return py_device(T->device); }
GET(ndim) { return PyLong_FromLong(T->ndim); }
GET(itemsize) { return PyLong_FromLong((long)lc_size_of(T->dtype)); }
GET(nbytes)
{
    lc_calls_incomplete = true;
    if (T->flags & LC_SPARSE)
        return py_fail(LucidError,
                       "nbytes is not defined for sparse tensors: add the nbytes of indices and values, or multiply "
                       "numel() by element_size()");
    return PyLong_FromLongLong(T->numel * lc_size_of(T->dtype));
}
GET(version)
{
    if (T->flags & LC_INFERENCE) return py_fail(LucidError, "Inference tensors do not track version counter.");
    return PyLong_FromUnsignedLong(lc_version(T));
}
GET(requires_grad) { return PyBool_FromLong(lc_requires_grad(T)); }
GET(is_leaf) { return PyBool_FromLong(!lc_requires_grad(T) || lc_is_leaf(T)); }
GET(retains_grad) { return PyBool_FromLong(T->retains_grad); }
GET(output_nr) { return PyLong_FromLong(T->node ? T->node_output : 0); }
GET(is_metal) { return (void)self, Py_NewRef(Py_False); }
GET(cuda_array_interface)
{
    PyObject *module = PyImport_ImportModule("lucid.cuda.interop");
    PyObject *made = module ? PyObject_CallMethod(module, "array_interface", "O", self) : NULL;
    Py_XDECREF(module);
    return made;
}
GET(is_cuda) { return PyBool_FromLong(T->device.kind == LC_CUDA); }
GET(is_cpu) { return PyBool_FromLong(T->device.kind == LC_CPU); }
GET(is_meta) { return PyBool_FromLong(T->device.kind == LC_META); }
GET(false) { return Py_NewRef(Py_False); }
GET(base) { return py_wrap_optional(T->base); }
GET(array_priority) { return PyLong_FromLong(1000); }
GET(data) { return py_wrap(lc_tensor_data(T)); }
static int set_data(PyObject *self, PyObject *value, UNUSED void *unused)
{
    lc_calls_incomplete = true;
    if (!value || !py_is_tensor(value)) return PyErr_Format(PyExc_TypeError, "data must be a Tensor"), -1;
    const lc_tensor *from = py_tensor(value);
    if (lc_requires_grad(T) && !lc_is_differentiable(from->dtype))
        return py_fail(LucidError, "data set to a tensor that requires gradients must be floating point or complex dtype"), -1;
    if (T->node && !lc_same_shape(T, from))
        return py_fail(LucidError, "data of a result that has history must keep its shape"), -1;
    return lc_tensor_become(T, from) < 0 ? py_raise_int() : 0;
}

static int set_requires_grad(PyObject *self, PyObject *value, UNUSED void *unused)
{
    lc_calls_incomplete = true;
    if (!value || !PyBool_Check(value)) return PyErr_Format(PyExc_RuntimeError, "requires_grad must be a bool"), -1;
    return lc_set_requires_grad(T, value == Py_True) < 0 ? py_raise_int() : 0;
}

GET(grad)
{
    if (!T->grad && T->node && !T->retains_grad && lc_requires_grad(T)) {
        int rc = PyErr_WarnEx(
            PyExc_UserWarning,
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't "
            "be populated during autograd.backward(). If you indeed want the .grad field to be populated for a "
            "non-leaf Tensor, use .retain_grad() on the non-leaf Tensor.",
            1);
        if (rc < 0) return NULL;
    }
    return py_wrap_optional(T->grad);
}
static int set_grad(PyObject *self, PyObject *value, UNUSED void *unused)
{
    lc_calls_incomplete = true;
    lc_tensor *old = T->grad, *fresh = NULL;
    if (value && value != Py_None) {
        if (!py_is_tensor(value))
            return PyErr_Format(PyExc_TypeError, "assigned grad expected to be a Tensor or None but got grad of type %s",
                                Py_TYPE(value)->tp_name),
                   -1;
        fresh = py_tensor(value);
        if (fresh == T) return py_fail(LucidError, "can't assign Variable as its own grad"), -1;
        if (fresh->dtype != T->dtype)
            return py_fail(LucidError, "assigned grad has data of a different type: %s for %s", LC_SHAPE(fresh), LC_SHAPE(T)),
                   -1;
        if (!lc_same_device(fresh->device, T->device))
            return py_fail(LucidError, "assigned grad has data located on a different device"), -1;
        if (!lc_same_shape(fresh, T))
            return py_fail(LucidError, "assigned grad has data of a different size: %s for %s", LC_SHAPE(fresh), LC_SHAPE(T)),
                   -1;
        lc_retain(fresh);
    }
    T->grad = fresh;
    lc_release(old);
    return 0;
}

/* Properties that call an op: x.T is the op T. */
typedef struct {
    const char  *name;
    const lc_op *op; /* found when first asked for */
} disguise;
static disguise as_T = { "T", NULL }, as_mT = { "mT", NULL }, as_H = { "H", NULL }, as_mH = { "mH", NULL },
                as_real = { "real", NULL }, as_imag = { "imag", NULL };

static PyObject *get_disguised(PyObject *self, void *closure)
{
    disguise *d = closure;
    if (!d->op && !(d->op = py_engine_op(d->name))) return py_fail(NotImplementedError, "%s is not implemented", d->name);
    return py_call(d->op, &(lc_value){ .tag = LC_IS_tensor, .t = T }, 1);
}
static int set_part(PyObject *self, PyObject *value, void *closure) /* x.real = y writes through the view */
{
    PyObject *part = get_disguised(self, closure);
    PyObject *done = part && value ? PyObject_CallMethod(part, "copy_", "O", value) : NULL;
    Py_XDECREF(part);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

PyGetSetDef py_attributes[] = {
    { "dtype", get_dtype, NULL, "The type of the elements.", NULL },
    { "device", get_device, NULL, "Where the elements are.", NULL },
    { "layout", py_layout, NULL, "How the elements are kept: lucid.strided, lucid.sparse_coo, lucid.sparse_csr, ...", NULL },
    { "ndim", get_ndim, NULL, "How many dimensions there are.", NULL },
    { "itemsize", get_itemsize, NULL, "Bytes per element.", NULL },
    { "nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL },
    { "requires_grad", get_requires_grad, set_requires_grad, "Whether gradients are wanted.", NULL },
    { "grad", get_grad, set_grad, "The gradient that backward accumulated, or None.", NULL },
    { "is_leaf", get_is_leaf, NULL, "Whether no recorded call made it.", NULL },
    { "retains_grad", get_retains_grad, NULL, "Whether backward keeps the gradient of this result.", NULL },
    { "output_nr", get_output_nr, NULL, "Which output of its grad_fn it is.", NULL },
    { "data", get_data, set_data, "The same values without history.", NULL },
    { "T", get_disguised, NULL, "All dimensions reversed.", &as_T },
    { "mT", get_disguised, NULL, "The last two dimensions swapped.", &as_mT },
    { "H", get_disguised, NULL, "The conjugate transpose of a matrix.", &as_H },
    { "mH", get_disguised, NULL, "The conjugate transpose of the last two dimensions.", &as_mH },
    { "real", get_disguised, set_part, "The real part, a view.", &as_real },
    { "imag", get_disguised, set_part, "The imaginary part, a view.", &as_imag },
    { "__cuda_array_interface__", get_cuda_array_interface, NULL, "Where its values are on a CUDA device, for other libraries.",
      NULL },
    { "is_cuda", get_is_cuda, NULL, "Whether it is on a CUDA device.", NULL },
    { "is_metal", get_is_metal, NULL, "Whether it is on a Metal device: there is no such backend, so never.", NULL },
    { "is_cpu", get_is_cpu, NULL, "Whether it is in main memory.", NULL },
    { "is_meta", get_is_meta, NULL, "Whether it has a shape and no values.", NULL },
    { "is_sparse", py_is_sparse, NULL, "Whether the layout is lucid.sparse_coo.", NULL },
    { "is_quantized", get_false, NULL, "Always False.", NULL },
    { "is_mkldnn", get_false, NULL, "Always False.", NULL },
    { "is_nested", get_false, NULL, "Always False.", NULL },
    { "is_sparse_csr", py_is_sparse_csr, NULL, "Whether the layout is lucid.sparse_csr.", NULL },
    { "is_mps", get_false, NULL, "Always False.", NULL },
    { "is_xpu", get_false, NULL, "Always False.", NULL },
    { "is_xla", get_false, NULL, "Always False.", NULL },
    { "is_ipu", get_false, NULL, "Always False.", NULL },
    { "is_maia", get_false, NULL, "Always False.", NULL },
    { "is_mtia", get_false, NULL, "Always False.", NULL },
    { "is_vulkan", get_false, NULL, "Always False.", NULL },
    { "_base", get_base, NULL, "The tensor this is a view of, or None.", NULL },
    { "_version", get_version, NULL, "How often the values were written in place.", NULL },
    { "__array_priority__", get_array_priority, NULL, NULL, NULL },
    { "__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL },
    { 0 }
};

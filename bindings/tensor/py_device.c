/* device: a kind and, for GPUs, an index that may be left open ("cuda" is the current one of the thread that uses it). "gpu" means the machine's accelerator. */
#include "../py.h"
#include "../../engine/backend/cuda/report.h"
#include <errno.h>

/* Kinds that can be named and compared, and have no backend: their numbers follow the engine's. */
static const char *const other_kinds[] = { "mps",    "xpu",    "hpu", "mtia",  "xla",  "ipu",  "maia", "vulkan",
                                           "opengl", "opencl", "hip", "ideep", "fpga", "lazy", "vpu",  "privateuseone" };
enum { OTHER_KINDS = sizeof other_kinds / sizeof *other_kinds };
static const char *name_of(int kind)
{
    return kind < LC_DEVICE_KINDS ? lc_device_names[kind] : other_kinds[kind - LC_DEVICE_KINDS];
}

static PyDevice *made(lc_device_kind kind, bool has_index, int index)
{
    PyDevice *self = PyObject_New(PyDevice, &PyDevice_Type);
    if (self) self->value = (lc_device){ (uint8_t)kind, (int8_t)index }, self->has_index = has_index;
    return self;
}

PyObject *py_device(lc_device device)
{
    static PyDevice *cpu;
    if (device.kind != LC_CPU) return (PyObject *)made(device.kind, device.kind != LC_META, device.index);
    if (!cpu) cpu = made(LC_CPU, false, 0);
    return Py_XNewRef(cpu);
}

static int unknown(const char *text)
{
    return PyErr_Format(PyExc_RuntimeError, "Expected one of cpu, cuda, meta, gpu device type at start of device string: %s",
                        text),
           -1;
}

static int parse(const char *text, PyDevice *device)
{
    const char *colon = strchr(text, ':');
    size_t      n = colon ? (size_t)(colon - text) : strlen(text);
    int         kind = n == 3 && !strncmp(text, "gpu", n) ? LC_CUDA : -1;
    if (n == 5 && !strncmp(text, "metal", n)) return py_fail(GpuNotAvailable, "metal: this build has no Metal backend"), -1;
    for (int k = 0; k < LC_DEVICE_KINDS + OTHER_KINDS; k++)
        if (strlen(name_of(k)) == n && !strncmp(text, name_of(k), n)) kind = k;
    if (kind < 0) return unknown(text);
    device->value = (lc_device){ (uint8_t)kind, 0 }, device->has_index = colon;
    if (!colon) return 0;
    char *end;
    long  index = strtol(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || *end || index > INT8_MAX)
        return PyErr_Format(PyExc_RuntimeError, "Invalid device string: '%s'", text), -1;
    return device->value.index = (int8_t)index, 0;
}

/* 1, 0 not a device, -1 raised. The engine knows only complete devices (complete), and the CPU has no index. */
static int read_device(PyObject *o, PyDevice *device)
{
    int64_t index;
    if (Py_TYPE(o) == &PyDevice_Type)
        return device->value = ((PyDevice *)o)->value, device->has_index = ((PyDevice *)o)->has_index, 1;
    if (PyUnicode_Check(o)) {
        const char *text = PyUnicode_AsUTF8(o);
        return text && parse(text, device) == 0 ? 1 : -1;
    }
    int fit = py_is_tensor(o) ? 0 : py_convert_int(o, &index); /* x.to(tensor) is another overload */
    if (fit != 1) return fit;
    if (index < 0 || index > INT8_MAX)
        return PyErr_Format(PyExc_RuntimeError, "Device index must be between 0 and 127, got %lld", (long long)index), -1;
    return device->value = (lc_device){ LC_CUDA, (int8_t)index }, device->has_index = true, 1;
}

static lc_device complete(const PyDevice *d) /* an open index: the current device of this thread */
{
    if (d->value.kind != LC_CUDA) return (lc_device){ d->value.kind, 0 };
    return d->has_index ? d->value : (lc_device){ LC_CUDA, (int8_t)lc_cuda_current_device() };
}

int py_convert_device(PyObject *o, lc_device *device)
{
    PyDevice read;
    int      fit = read_device(o, &read);
    if (fit == 1 && read.value.kind >= LC_DEVICE_KINDS)
        return py_fail(GpuNotAvailable, "this build has no backend for device '%s'", name_of(read.value.kind)), -1;
    if (fit == 1) *device = complete(&read);
    return fit;
}

static PyObject *device_new(UNUSED PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "type", "index", NULL };
    PyObject    *what, *index = Py_None;
    PyDevice     read;
    int64_t      i;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", names, &what, &index)) return NULL;
    int fit = read_device(what, &read);
    if (fit == 0) PyErr_Format(PyExc_TypeError, "device(): argument 'type' must be str, not %s", Py_TYPE(what)->tp_name);
    if (fit != 1) return NULL;
    if (index != Py_None) {
        if (read.has_index)
            return PyErr_Format(PyExc_RuntimeError,
                                "type (string) must not include an index because index was passed explicitly: %S", what);
        if ((fit = py_convert_int(index, &i)) != 1 || i < 0 || i > INT8_MAX)
            return fit < 0 ? NULL
                           : PyErr_Format(PyExc_RuntimeError, "Device index must not be negative, nor above 127: %S", index);
        read.has_index = true, read.value.index = (int8_t)i;
    }
    return (PyObject *)made(read.value.kind, read.has_index, read.value.index);
}

#define D ((PyDevice *)self)
static const char *kind_name(PyObject *self) { return name_of(D->value.kind); }
static PyObject   *device_repr(PyObject *self)
{
    return D->has_index ? PyUnicode_FromFormat("device(type='%s', index=%d)", kind_name(self), D->value.index)
                        : PyUnicode_FromFormat("device(type='%s')", kind_name(self));
}
static PyObject *device_str(PyObject *self)
{
    return D->has_index ? PyUnicode_FromFormat("%s:%d", kind_name(self), D->value.index)
                        : PyUnicode_FromString(kind_name(self));
}
static Py_hash_t device_hash(PyObject *self) { return D->value.kind * 1000 + (D->has_index ? D->value.index + 1 : 0); }
static PyObject *device_compare(PyObject *a, PyObject *b, int how)
{
    if (Py_TYPE(b) != &PyDevice_Type || (how != Py_EQ && how != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((device_hash(a) == device_hash(b)) == (how == Py_EQ));
}
static PyObject *device_type(PyObject *self, UNUSED void *unused) { return PyUnicode_FromString(kind_name(self)); }
static PyObject *device_index(PyObject *self, UNUSED void *unused)
{
    return D->has_index ? PyLong_FromLong(D->value.index) : Py_NewRef(Py_None);
}
static PyObject *device_reduce(PyObject *self, UNUSED PyObject *unused)
{
    return D->has_index ? Py_BuildValue("O(si)", &PyDevice_Type, kind_name(self), D->value.index)
                        : Py_BuildValue("O(s)", &PyDevice_Type, kind_name(self));
}

/* with device: new tensors are made there. Blocks nest, so the previous devices form a stack. */
enum { NESTED = 64 };
static lc_device entered[NESTED];
static int       n_entered;
static PyObject *device_enter(PyObject *self, UNUSED PyObject *unused)
{
    if (n_entered == NESTED) return PyErr_Format(PyExc_RuntimeError, "more than %d nested device blocks", NESTED);
    if (D->value.kind >= LC_DEVICE_KINDS)
        return py_fail(GpuNotAvailable, "this build has no backend for device '%s'", kind_name(self)), NULL;
    entered[n_entered++] = lc_default_device;
    lc_default_device = complete(D);
    return Py_NewRef(self);
}
static PyObject *device_exit(UNUSED PyObject *self, UNUSED PyObject *error)
{
    if (n_entered) lc_default_device = entered[--n_entered];
    Py_RETURN_NONE;
}

static PyGetSetDef attributes[] = { { "type", device_type, NULL, "The kind of device.", NULL },
                                    { "index", device_index, NULL, "Which one, or None.", NULL },
                                    { 0 } };
static PyMethodDef methods[] = { { "__reduce__", device_reduce, METH_NOARGS, NULL },
                                 { "__enter__", device_enter, METH_NOARGS, NULL },
                                 { "__exit__", device_exit, METH_VARARGS, NULL },
                                 { 0 } };
PyTypeObject       PyDevice_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid.device",
                                     .tp_basicsize = sizeof(PyDevice),
                                     .tp_flags = Py_TPFLAGS_DEFAULT,
                                     .tp_doc = "device(type, index=None): where tensors are.",
                                     .tp_repr = device_repr,
                                     .tp_str = device_str,
                                     .tp_hash = device_hash,
                                     .tp_richcompare = device_compare,
                                     .tp_methods = methods,
                                     .tp_getset = attributes,
                                     .tp_new = device_new };

/* ---- what backends say of themselves ---- */
static PyObject *device_count(UNUSED PyObject *module, PyObject *kind)
{
    long k = PyLong_AsLong(kind);
    if (k == -1 && PyErr_Occurred()) return NULL;
    return PyLong_FromLong(k >= 0 && k < LC_DEVICE_KINDS ? lc_device_count((lc_device_kind)k) : 0);
}

static PyObject *device_can(UNUSED PyObject *module, PyObject *tensor)
{
    if (!py_is_tensor(tensor)) return PyErr_Format(PyExc_TypeError, "expected a tensor, got %s", Py_TYPE(tensor)->tp_name);
    const lc_backend *b = lc_backends[py_tensor(tensor)->device.kind];
    return Py_BuildValue("{s:O,s:O,s:O}", "values", b->can.values ? Py_True : Py_False, "host_memory",
                         b->can.host_memory ? Py_True : Py_False, "queue", b->synchronize ? Py_True : Py_False);
}
/* Real floating point tensors whose device has the kernel that updates a list of parameters. */
static PyObject *takes_fused_steps(UNUSED PyObject *module, PyObject *list)
{
    PyObject *items = PySequence_Fast(list, "expected a list of parameters");
    bool      all = true;
    if (!items) return NULL;
    for (Py_ssize_t i = 0; all && i < PySequence_Fast_GET_SIZE(items); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(items, i);
        if (!(all = py_is_tensor(item))) break;
        const lc_tensor  *t = py_tensor(item);
        const lc_backend *b = lc_backends[t->device.kind];
        all = lc_is_floating(t->dtype) && b->can.values && b->has(LC_OP__fused_adam_, (lc_dtype)t->dtype);
    }
    Py_DECREF(items);
    return PyBool_FromLong(all);
}

static PyMethodDef functions[] = {
    { "_device_count", device_count, METH_O, "Devices of a kind." },
    { "_device_can", device_can, METH_O, "What a tensor's device declares: values, host_memory, queue." },
    { "_takes_fused_steps", takes_fused_steps, METH_O, "Whether one fused call updates all of these parameters." },
    { 0 },
};

int py_add_devices(PyObject *module)
{
    if (PyType_Ready(&PyDevice_Type) < 0 || PyModule_AddFunctions(module, functions) < 0) return -1;
    return PyModule_AddObjectRef(module, "device", (PyObject *)&PyDevice_Type);
}

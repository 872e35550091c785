/* Generator: an independent random stream. */
#include "py.h"
#include "../engine/jit/trace.h"
#include <sys/random.h>

#define FIRST_SEED 67280421310721ull /* PyTorch's default seed */
#define G          ((PyGenerator *)self)->g

static PyObject *wrap_generator(lc_generator *g) /* takes the reference */
{
    if (!g) return py_raise();
    PyGenerator *self = PyObject_New(PyGenerator, &PyGenerator_Type);
    if (!self) return lc_object_release(&g->object), NULL;
    self->g = g, self->weakrefs = NULL;
    return (PyObject *)self;
}

static PyObject *generator_new(UNUSED PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "device", NULL };
    PyObject    *device = NULL;
    lc_device    where = { LC_CPU, 0 };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", names, &device)) return NULL;
    int fit = device && device != Py_None ? py_convert_device(device, &where) : 1;
    if (fit == 0)
        PyErr_Format(PyExc_TypeError, "Generator(): argument 'device' must be a device, not %s", Py_TYPE(device)->tp_name);
    return fit == 1 ? wrap_generator(lc_generator_new(where, FIRST_SEED)) : NULL;
}

static void generator_dealloc(PyObject *self)
{
    if (((PyGenerator *)self)->weakrefs) PyObject_ClearWeakRefs(self);
    lc_object_release(&G->object);
    Py_TYPE(self)->tp_free(self);
}

/* A plan draws numbers where the generator is; it does not put it anywhere. */
static void break_trace(void)
{
    if (lc_modes & LC_TRACING) lc_trace_break("the state of a random generator is set");
}

static PyObject *manual_seed(PyObject *self, PyObject *seed) /* negative seeds wrap around 64 bits, as in PyTorch */
{
    PyObject *index = PyNumber_Index(seed);
    if (!index) return NULL;
    break_trace();
    int      overflow;
    int64_t  small = PyLong_AsLongLongAndOverflow(index, &overflow);
    uint64_t value = overflow > 0 ? PyLong_AsUnsignedLongLong(index) : (uint64_t)small;
    Py_DECREF(index);
    if (overflow < 0 || PyErr_Occurred())
        return PyErr_Clear(), PyErr_Format(PyExc_RuntimeError, "Overflow when unpacking long long");
    lc_generator_seed(G, value);
    return Py_NewRef(self);
}

static PyObject *seed(PyObject *self, UNUSED PyObject *unused)
{
    uint64_t value;
    break_trace();
    if (getrandom(&value, sizeof value, 0) != sizeof value) return PyErr_SetFromErrno(PyExc_OSError);
    lc_generator_seed(G, value);
    return PyLong_FromUnsignedLongLong(value);
}

static PyObject *initial_seed(PyObject *self, UNUSED PyObject *unused) { return PyLong_FromUnsignedLongLong(G->seed); }

static PyObject *get_state(PyObject *self, UNUSED PyObject *unused)
{
    lc_tensor *t = lc_tensor_new(LC_u8, (lc_device){ LC_CPU, 0 }, 1, (int64_t[]){ (int64_t)lc_generator_state_bytes(G) });
    if (t) lc_generator_get_state(G, (uint8_t *)t->data);
    return py_wrap(t);
}

static PyObject *set_state(PyObject *self, PyObject *state)
{
    break_trace();
    if (!py_is_tensor(state) || py_tensor(state)->dtype != LC_u8 || !py_tensor(state)->is_contiguous ||
        py_tensor(state)->device.kind != LC_CPU)
        return PyErr_Format(PyExc_TypeError, "expected a lucid.ByteTensor, but got %s", Py_TYPE(state)->tp_name);
    if (lc_generator_set_state(G, (const uint8_t *)py_tensor(state)->data, (size_t)py_tensor(state)->numel) < 0)
        return py_raise();
    return Py_NewRef(self);
}

static PyObject *clone_state(PyObject *self, UNUSED PyObject *unused)
{
    uint8_t       bytes[LC_GENERATOR_STATE_BYTES];
    lc_generator *copy = lc_generator_new(G->device, G->seed);
    if (!copy) return py_raise();
    lc_generator_get_state(G, bytes);
    if (lc_generator_set_state(copy, bytes, lc_generator_state_bytes(G)) < 0)
        return lc_object_release(&copy->object), py_raise();
    return wrap_generator(copy);
}

static PyObject *restore(UNUSED PyObject *cls, PyObject *args) /* _restore(device, seed, state) */
{
    PyObject *device, *number, *state;
    lc_device where;
    if (!PyArg_ParseTuple(args, "OOO", &device, &number, &state) || py_convert_device(device, &where) != 1) return NULL;
    PyObject *self = wrap_generator(lc_generator_new(where, PyLong_AsUnsignedLongLongMask(number)));
    PyObject *done = self ? set_state(self, state) : NULL;
    Py_XDECREF(done);
    if (!done) Py_CLEAR(self);
    return self;
}
static PyObject *reduce(PyObject *self, UNUSED PyObject *unused)
{
    PyObject *rebuild = PyObject_GetAttrString((PyObject *)&PyGenerator_Type, "_restore");
    PyObject *device = py_device(G->device), *number = initial_seed(self, NULL), *state = get_state(self, NULL);
    return Py_BuildValue("N(NNN)", rebuild, device, number, state);
}

static PyObject   *get_device(PyObject *self, UNUSED void *unused) { return py_device(G->device); }
static PyGetSetDef attributes[] = { { "device", get_device, NULL, "Where its numbers are drawn.", NULL }, { 0 } };
static PyMethodDef methods[] = { { "manual_seed", manual_seed, METH_O, "Start anew from a seed; returns the generator." },
                                 { "seed", seed, METH_NOARGS, "Start from a seed no one can foresee; returns it." },
                                 { "initial_seed", initial_seed, METH_NOARGS, "The seed it started from." },
                                 { "get_state", get_state, METH_NOARGS, "Its state as a tensor of bytes." },
                                 { "set_state", set_state, METH_O, "Continue from a state." },
                                 { "clone_state", clone_state, METH_NOARGS, "Another generator in the same state." },
                                 { "_restore", restore, METH_VARARGS | METH_STATIC, "What pickling made of a generator." },
                                 { "__reduce__", reduce, METH_NOARGS, NULL },
                                 { 0 } };
PyTypeObject       PyGenerator_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid.Generator",
                                        .tp_basicsize = sizeof(PyGenerator),
                                        .tp_dealloc = generator_dealloc,
                                        .tp_flags = Py_TPFLAGS_DEFAULT,
                                        .tp_doc = "Generator(device='cpu'): a random stream.",
                                        .tp_weaklistoffset = offsetof(PyGenerator, weakrefs),
                                        .tp_methods = methods,
                                        .tp_getset = attributes,
                                        .tp_new = generator_new };

static PyObject *device_generator(UNUSED PyObject *module, PyObject *index)
{
    long i = PyLong_AsLong(index);
    if (i == -1 && PyErr_Occurred()) return NULL;
    lc_generator *g = lc_generator_default_of((lc_device){ LC_CUDA, (int8_t)(i & (LC_GPU_GENERATORS - 1)) });
    lc_object_retain(&g->object);
    return wrap_generator(g);
}
static PyMethodDef functions[] = { { "_cuda_generator", device_generator, METH_O, "The default generator of a CUDA device." },
                                   { 0 } };

int py_add_generator(PyObject *module)
{
    if (PyModule_AddFunctions(module, functions) < 0) return -1;
    if (PyType_Ready(&PyGenerator_Type) < 0 || PyModule_AddObjectRef(module, "Generator", (PyObject *)&PyGenerator_Type) < 0)
        return -1;
    lc_object_retain(&lc_generator_default()->object);
    PyObject *shared = wrap_generator(lc_generator_default());
    int       rc = shared ? PyModule_AddObjectRef(module, "default_generator", shared) : -1;
    Py_XDECREF(shared);
    return rc;
}

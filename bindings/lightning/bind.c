/* Arguments of the functions of lightning_core: positional and keyword arguments into slots, and the conversions they share. */
#include "lightning.h"

static int prepare(lightning_signature *s)
{
    int n = 0;
    for (; s->params[n]; n++)
        if (!s->names[n] && !(s->names[n] = PyUnicode_InternFromString(s->params[n]))) return -1;
    return s->n = n, 0;
}

static int place_of(const lightning_signature *s, PyObject *name)
{
    for (int i = 0; i < s->n; i++)
        if (s->names[i] == name) return i;
    for (int i = 0; i < s->n; i++)
        if (PyUnicode_Compare(s->names[i], name) == 0) return i;
    return -1;
}

int lightning_bind(lightning_signature *s, PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **slots)
{
    if (!s->n && prepare(s) < 0) return -1;
    if (n > s->n) return PyErr_Format(PyExc_TypeError, "%s() takes at most %d arguments, %zd were given", s->name, s->n, n), -1;
    for (int i = 0; i < s->n; i++) slots[i] = i < n ? args[i] : NULL;
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        int       at = place_of(s, name);
        if (at < 0) return PyErr_Format(PyExc_TypeError, "%s() has no argument '%U'", s->name, name), -1;
        if (slots[at]) return PyErr_Format(PyExc_TypeError, "%s() got '%U' twice", s->name, name), -1;
        slots[at] = args[n + i];
    }
    for (int i = 0; i < s->required; i++)
        if (!slots[i]) return PyErr_Format(PyExc_TypeError, "%s() misses the argument '%s'", s->name, s->params[i]), -1;
    return 0;
}

int lightning_size(PyObject *o, const char *name, int64_t *value)
{
    if (PyBool_Check(o) || !PyIndex_Check(o))
        return PyErr_Format(PyExc_TypeError, "%s must be an int, not %s", name, Py_TYPE(o)->tp_name), -1;
    *value = PyNumber_AsSsize_t(o, PyExc_OverflowError);
    if (*value == -1 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
        PyErr_Clear();
        return PyErr_Format(PyExc_TypeError, "%s does not fit 64 bits", name), -1;
    }
    if (*value < 0) return PyErr_Format(PyExc_TypeError, "%s must not be negative", name), -1;
    return 0;
}
int lightning_size_or(PyObject *o, const char *name, int64_t preset, int64_t *value)
{
    if (o) return lightning_size(o, name, value);
    return *value = preset, 0;
}

int lightning_flag(PyObject *o, const char *name, bool preset, bool *value)
{
    *value = preset;
    if (!o) return 0;
    if (o == Py_True || o == Py_False) return *value = o == Py_True, 0;
    if (!PyLong_Check(o) && !py_is_numpy_scalar(o))
        return PyErr_Format(PyExc_TypeError, "%s must be a bool, not %s", name, Py_TYPE(o)->tp_name), -1;
    int truth = PyObject_IsTrue(o);
    return *value = truth > 0, truth < 0 ? -1 : 0;
}

int lightning_device(PyObject *o, lcDeviceKind preset, lcDeviceKind *device)
{
    *device = preset;
    if (!o) return 0;
    if (!PyUnicode_Check(o)) return PyErr_Format(PyExc_TypeError, "device must be a string, not %s", Py_TYPE(o)->tp_name), -1;
    if (PyUnicode_CompareWithASCIIString(o, "metal") == 0) *device = LC_DEVICE_METAL;
    else if (PyUnicode_CompareWithASCIIString(o, "cpu") == 0) *device = LC_DEVICE_CPU;
    else if (PyUnicode_CompareWithASCIIString(o, "cuda") == 0) *device = LC_DEVICE_CUDA;
    else return PyErr_Format(PyExc_ValueError, "device must be \"metal\", \"cpu\" or \"cuda\", not '%U'", o), -1;
    return 0;
}

PyObject *lightning_fail(lcError_t status) { return PyErr_SetString(PyExc_RuntimeError, lcGetErrorString(status)), NULL; }

PyObject *lightning_wrong(const char *function, const char *what)
{
    return PyErr_Format(PyExc_ValueError, "%s: %s", function, what), NULL;
}
int lightning_read_all(PyObject *const *objects, lightning_array *arrays, int n)
{
    memset(arrays, 0, (size_t)n * sizeof *arrays);
    for (int i = 0; i < n; i++)
        if (lightning_read(objects[i], &arrays[i]) < 0) return -1;
    return 0;
}
bool lightning_has_size(const lightning_array *a, int64_t rows, int64_t columns)
{
    int64_t n;
    return !__builtin_mul_overflow(rows, columns, &n) && a->size == n;
}

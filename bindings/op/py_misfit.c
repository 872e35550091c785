/* The error if no overload fits the arguments: a TypeError that names them, or a ValueError if an argument is not one of the
 * allowed words. */
#include "../py.h"

static PyObject *type_list(PyObject *const *args, Py_ssize_t n, PyObject *names) /* "(Tensor, dim=str)" */
{
    PyObject  *list = PyList_New(0), *text = NULL, *comma = PyUnicode_FromString(", ");
    Py_ssize_t n_names = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; list && comma && i < n + n_names; i++) {
        const char *type = strrchr(Py_TYPE(args[i])->tp_name, '.');
        type = type ? type + 1 : Py_TYPE(args[i])->tp_name;
        PyObject *item =
            i < n ? PyUnicode_FromString(type) : PyUnicode_FromFormat("%U=%s", PyTuple_GET_ITEM(names, i - n), type);
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    if (list && comma) text = PyUnicode_Join(comma, list);
    Py_XDECREF(list);
    Py_XDECREF(comma);
    return text;
}

static PyObject *invalid_combination(const PyOp *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    const char *name = py_public_name(self->overload[0].op);
    PyObject   *expected = PyUnicode_FromString(""), *got = type_list(args, n, names);
    for (int i = 0; i < self->n && expected; i++)
        Py_SETREF(expected, PyUnicode_FromFormat("%U\n * %s%s", expected, name, strchr(self->overload[i].op->sig, '(')));
    if (expected && got)
        PyErr_Format(PyExc_TypeError, "%s() received an invalid combination of arguments - got (%U), but expected%s:%U", name,
                     got, self->n > 1 ? " one of" : "", expected);
    Py_XDECREF(expected);
    Py_XDECREF(got);
    return NULL;
}

/* The argument for parameter k; NULL: none. */
static PyObject *given(const py_overload *o, PyObject *const *args, Py_ssize_t n, PyObject *names, int k)
{
    if (k < n && k < o->n_positional) return args[k];
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++)
        if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i), o->names[k]) == 0) return args[n + i];
    return NULL;
}
/* Whether the argument names fit the function, whatever their types. */
static bool are_its_own(const py_overload *o, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    const lc_signature *sig = o->op->args;
    Py_ssize_t          found = 0, n_names = names ? PyTuple_GET_SIZE(names) : 0;
    for (int k = 0; k < sig->n_params; k++) {
        bool here = given(o, args, n, names, k) != NULL;
        if (!here && sig->params[k].required) return false;
        found += here;
    }
    return found == n + n_names;
}
static bool is_among(PyObject *value, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n && PyUnicode_Check(value); i++)
        if (PyUnicode_CompareWithASCIIString(value, names[i]) == 0) return true;
    return false;
}
static PyObject *wrong_name(const py_overload *o, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    static const char *const reductions[] = { "none", "mean", "sum", "elementwise_mean", "batchmean" };
    const lc_signature      *sig = o->op->args;
    for (int k = 0; k < sig->n_params; k++) {
        const char *name = sig->params[k].name;
        bool        reduction = !strcmp(name, "reduction"), mode = !strcmp(name, "compute_mode");
        PyObject   *value = reduction || mode ? given(o, args, n, names, k) : NULL;
        bool        good =
            value && (reduction ? is_among(value, reductions, sizeof reductions / sizeof *reductions) : PyUnicode_Check(value));
        if (value && !good) return PyErr_Format(PyExc_ValueError, "%R is not a valid value for %s", value, name);
    }
    return NULL;
}

PyObject *py_misfit(const PyOp *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    const py_overload *o = &self->overload[0];
    if (are_its_own(o, args, n, names)) wrong_name(o, args, n, names);
    if (PyErr_Occurred()) return NULL;
    return invalid_combination(self, args, n, names);
}

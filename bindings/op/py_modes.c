/* Switches of the thread that lucid.amp and lucid.use_deterministic_algorithms set. Devices are integers here: lucid/amp/
 * names them. */
#include "../py.h"

static PyObject *autocast_get(UNUSED PyObject *m, PyObject *arg)
{
    long kind = PyLong_AsLong(arg);
    if (kind < 0 || kind >= LC_AUTOCAST_KINDS) return PyErr_Format(PyExc_ValueError, "no such kind of device");
    return Py_BuildValue("(NOO)", PyBool_FromLong(lc_autocast_enabled((lc_device_kind)kind)),
                         (PyObject *)&py_dtypes[lc_autocast_dtype((lc_device_kind)kind)],
                         lc_autocast_keeps() ? Py_True : Py_False);
}
static PyObject *autocast_set(UNUSED PyObject *m, PyObject *args)
{
    PyObject *dtype;
    lc_dtype  d;
    int       kind, on, keeps;
    if (!PyArg_ParseTuple(args, "ipOp:_autocast_set", &kind, &on, &dtype, &keeps)) return NULL;
    if (py_convert_dtype(dtype, &d) != 1 || kind < 0 || kind >= LC_AUTOCAST_KINDS)
        return PyErr_Format(PyExc_TypeError, "autocast: expected a dtype, not %s", Py_TYPE(dtype)->tp_name);
    lc_autocast_set((lc_device_kind)kind, on, d);
    lc_autocast_keep(keeps);
    Py_RETURN_NONE;
}
static PyObject *autocast_nest(UNUSED PyObject *m, PyObject *by)
{
    return PyLong_FromLong(lc_autocast_nest(by == Py_True ? 1 : -1));
}
static PyObject *autocast_forget(UNUSED PyObject *m, UNUSED PyObject *unused)
{
    lc_autocast_forget();
    Py_RETURN_NONE;
}

static PyObject *deterministic(UNUSED PyObject *m, UNUSED PyObject *unused)
{
    return PyLong_FromLong(!(lc_modes & LC_DETERMINISTIC) ? 0 : lc_deterministic_warns ? 1 : 2);
}
static PyObject *set_deterministic(UNUSED PyObject *m, PyObject *level)
{
    long to = PyLong_AsLong(level);
    if (to == -1 && PyErr_Occurred()) return NULL;
    lc_modes = to ? lc_modes | LC_DETERMINISTIC : lc_modes & ~LC_DETERMINISTIC;
    lc_deterministic_warns = to == 1;
    Py_RETURN_NONE;
}
static PyObject *set_fill(UNUSED PyObject *m, PyObject *on)
{
    int  want = PyObject_IsTrue(on);
    bool before = lc_deterministic_fills;
    if (want < 0) return NULL;
    lc_deterministic_fills = want;
    return PyBool_FromLong(before);
}

PyMethodDef py_mode_functions[] = {
    { "_autocast_get", autocast_get, METH_O, "(enabled, dtype, keeps casts) for a kind of device, on this thread." },
    { "_autocast_set", autocast_set, METH_VARARGS, "Set (kind, enabled, dtype, keeps casts) on this thread." },
    { "_autocast_nest", autocast_nest, METH_O, "Enter (True) or leave (False) a context; returns how deep it is now." },
    { "_autocast_forget", autocast_forget, METH_NOARGS, "Drop the casts of parameters that were kept." },
    { "_deterministic", deterministic, METH_NOARGS,
      "What ops that are not deterministic do on this thread: 0 run, 1 warn, 2 raise." },
    { "_set_deterministic", set_deterministic, METH_O, "Set what _deterministic() says." },
    { "_set_deterministic_fill", set_fill, METH_O,
      "Whether uninitialised memory is filled while ops must be deterministic; returns what it was." },
    { 0 },
};

/* The engine's profiler for lucid.profiler: start and stop, ranges of the user, and the events as Python objects. */
#include "../py.h"
#include "../../engine/op/profile.h"
#include <frameobject.h> /* PyFrame_GetBack, until Python 3.11 */

static PyObject *stacks; /* a list of tuples of "file(line): function", while a recording notes them */

enum { FRAMES = 64 };
static int note_stack(void)
{
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject        *lines = PyList_New(0);
    PyFrameObject   *frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
    for (int n = 0; frame && lines && n < FRAMES; n++) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        PyObject     *line = PyUnicode_FromFormat("%U(%d): %U", code->co_filename, PyFrame_GetLineNumber(frame), code->co_name);
        if (!line || PyList_Append(lines, line) < 0) Py_CLEAR(lines);
        Py_XDECREF(line);
        Py_DECREF(code);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    int index = -1;
    if (lines && stacks && PyList_Append(stacks, lines) == 0) index = (int)PyList_GET_SIZE(stacks) - 1;
    Py_XDECREF(lines);
    PyErr_Clear();
    PyGILState_Release(lock);
    return index;
}

static PyObject *start(UNUSED PyObject *m, PyObject *args)
{
    int shapes, memory, with_stacks, devices;
    if (!PyArg_ParseTuple(args, "pppp:_profile_start", &shapes, &memory, &with_stacks, &devices)) return NULL;
    unsigned what = (shapes ? LC_PROFILE_SHAPES : 0) | (memory ? LC_PROFILE_MEMORY : 0) | (with_stacks ? LC_PROFILE_STACKS : 0);
    if (devices) what |= LC_PROFILE_DEVICES;
    if (lc_profile_start(what) < 0) return py_raise();
    Py_XSETREF(stacks, with_stacks ? PyList_New(0) : NULL);
    lc_profile_stack = note_stack;
    return Py_BuildValue("z", lc_profile_refused());
}

static const int64_t *read_shape(const int64_t *at, PyObject **shape, PyObject **dtype)
{
    if (*at == LC_SHAPE_OTHER) return *shape = PyList_New(0), *dtype = PyUnicode_FromString(""), at + 1;
    int n = (int)at[0];
    *dtype = PyUnicode_FromString(lc_dtypes[at[1]].name);
    *shape = PyList_New(n);
    for (int d = 0; *shape && d < n; d++) PyList_SET_ITEM(*shape, d, PyLong_FromLongLong(at[2 + d]));
    return at + 2 + n;
}

static const int64_t *read_argument(const int64_t *at, PyObject **shape, PyObject **dtype)
{
    if (*at != LC_SHAPE_LIST) return read_shape(at, shape, dtype);
    Py_ssize_t n = (Py_ssize_t)at[1];
    at += 2;
    *shape = PyList_New(n), *dtype = PyUnicode_FromString("TensorList");
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *one, *type;
        at = read_shape(at, &one, &type);
        Py_XDECREF(type);
        if (*shape && one) PyList_SET_ITEM(*shape, i, one);
        else {
            Py_XDECREF(one);
            Py_CLEAR(*shape);
        }
    }
    return at;
}

static PyObject *shapes_of(const lc_event *e) /* (shapes, dtypes), one of each per parameter */
{
    if (!e->shapes) Py_RETURN_NONE;
    const int64_t *at = lc_profile_shapes() + e->shapes - 1;
    int            n = e->op->args->n_params;
    PyObject      *shapes = PyList_New(n), *dtypes = PyList_New(n);
    for (int k = 0; shapes && dtypes && k < n; k++) {
        PyObject *shape, *dtype;
        at = read_argument(at, &shape, &dtype);
        if (shape && dtype) PyList_SET_ITEM(shapes, k, shape), PyList_SET_ITEM(dtypes, k, dtype);
        else {
            Py_XDECREF(shape);
            Py_XDECREF(dtype);
            Py_CLEAR(shapes);
        }
    }
    if (shapes && dtypes) return Py_BuildValue("(NN)", shapes, dtypes);
    Py_XDECREF(shapes);
    Py_XDECREF(dtypes);
    return NULL;
}

/* (kind, name, start, end, parent, (shapes, dtypes) or None, bytes, elements of the output, index of the stack) */
static PyObject *event_tuple(const lc_event *e)
{
    PyObject *shapes = shapes_of(e);
    if (!shapes) return NULL;
    return Py_BuildValue("(IsddiNLLi)", e->kind,
                         e->op     ? e->op->name
                         : e->name ? e->name
                                   : "",
                         lc_profile_ns(e->start), lc_profile_ns(e->end), e->parent, shapes, (long long)e->memory,
                         (long long)e->out_numel, e->stack);
}

/* [(kind, name, start, end, number of the event, number of the call, device, stream, bytes, grid, block, registers, shared)] */
static PyObject *activities(void)
{
    PyObject *all = PyList_New(0);
    int64_t   base = lc_profile_base();
    for (size_t i = 0; all && lc_profile_activity(i); i++) {
        const lc_activity *a = lc_profile_activity(i);
        PyObject          *one =
            Py_BuildValue("(isddLIiiL(iii)(iii)ii)", a->kind, a->name, (double)(a->start - base), (double)(a->end - base),
                          (long long)a->mark, a->call, a->device, a->stream, (long long)a->bytes, a->grid[0], a->grid[1],
                          a->grid[2], a->block[0], a->block[1], a->block[2], a->registers, a->shared);
        if (!one || PyList_Append(all, one) < 0) Py_CLEAR(all);
        Py_XDECREF(one);
    }
    return all;
}

static PyObject *stop(UNUSED PyObject *m, UNUSED PyObject *unused)
{
    if (!lc_profile_is_on()) return PyErr_Format(PyExc_RuntimeError, "no profiler is running on this thread");
    lc_profile_stop();
    Py_ssize_t n = (Py_ssize_t)lc_profile_count();
    PyObject  *events = PyList_New(n);
    for (Py_ssize_t i = 0; events && i < n; i++) {
        PyObject *event = event_tuple(lc_profile_event((size_t)i));
        if (event) PyList_SET_ITEM(events, i, event);
        else Py_CLEAR(events);
    }
    if (!events) return NULL;
    PyObject *lines = stacks ? stacks : PyList_New(0);
    stacks = NULL;
    return Py_BuildValue("(NNLnN)", events, lines, (long long)lc_profile_base(), (Py_ssize_t)lc_profile_lost(), activities());
}

static PyObject *open_range(UNUSED PyObject *m, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) return NULL;
    if (!lc_profile_is_on()) return PyLong_FromLong(-1);
    return PyLong_FromLongLong(lc_profile_open(LC_EVENT_USER, lc_profile_keep(text)));
}
static PyObject *end_range(UNUSED PyObject *m, PyObject *event)
{
    long long i = PyLong_AsLongLong(event);
    if (i == -1 && PyErr_Occurred()) return NULL;
    lc_profile_close(i);
    Py_RETURN_NONE;
}
static PyObject *is_on(UNUSED PyObject *m, UNUSED PyObject *unused) { return PyBool_FromLong(lc_profile_is_on()); }

PyMethodDef py_profile_functions[] = {
    { "_profile_start", start, METH_VARARGS,
      "Record the calls of this thread, and devices: (shapes, memory, stacks, devices). Why devices refuse, or None." },
    { "_profile_stop", stop, METH_NOARGS,
      "(events, stacks, when it began in ns, how many events were lost, what ran on devices)" },
    { "_profile_open", open_range, METH_O, "Open a range; returns its number, -1 if nothing records." },
    { "_profile_close", end_range, METH_O, "Close a range." },
    { "_profile_is_on", is_on, METH_NOARGS, "Whether calls of this thread are recorded." },
    { 0 },
};

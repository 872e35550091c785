/* Records of calls (engine/jit/calls.h) for lucid.compile: made while a function is traced, run for inputs of other sizes. */
#include "../../engine/jit/calls.h"
#include "py_jit.h"

typedef struct {
    PyObject_HEAD lc_calls *calls;
} PyCalls;
static PyTypeObject PyCalls_Type;

static void calls_dealloc(PyObject *o)
{
    lc_calls_free(((PyCalls *)o)->calls);
    Py_TYPE(o)->tp_free(o);
}

static PyObject *calls_alike(PyObject *self, PyObject *other)
{
    if (Py_TYPE(other) != &PyCalls_Type) return PyErr_Format(PyExc_TypeError, "not a record of calls");
    return PyBool_FromLong(lc_calls_alike(((PyCalls *)self)->calls, ((PyCalls *)other)->calls));
}

static PyObject *calls_run(PyObject *self, PyObject *inputs)
{
    lc_tensor **list;
    int         n, n_results = lc_calls_results(((PyCalls *)self)->calls);
    if (py_tensors_of(inputs, &list, &n) < 0) return NULL;
    lc_tensor **results = PyMem_Calloc((size_t)n_results + 1, sizeof *results);
    int         rc = results ? lc_calls_run(((PyCalls *)self)->calls, list, n, results) : -2;
    PyMem_Free(list);
    PyObject *made = NULL;
    if (rc == 1) made = Py_NewRef(Py_None);
    else if (rc == -1) made = py_raise();
    else if (rc < 0) PyErr_NoMemory();
    else made = PyList_New(n_results);
    for (int i = 0; i < n_results && rc == 0; i++) {
        PyObject *t = made ? py_wrap(results[i]) : NULL;
        if (t) PyList_SET_ITEM(made, i, t);
        else {
            if (!made) lc_release(results[i]);
            Py_CLEAR(made);
        }
    }
    PyMem_Free(results);
    return made;
}

static PyMethodDef calls_methods[] = {
    { "alike", calls_alike, METH_O,
      "Whether another record has the same calls with the same arguments, sizes of tensors aside." },
    { "run", calls_run, METH_O, "The calls again with these inputs: a list; None if one gives something of another form." },
    { 0 },
};
static PyTypeObject PyCalls_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid._C._Calls",
                                     .tp_basicsize = sizeof(PyCalls),
                                     .tp_dealloc = calls_dealloc,
                                     .tp_methods = calls_methods,
                                     .tp_flags = Py_TPFLAGS_DEFAULT,
                                     .tp_doc = "What a traced function asked of the engine." };

static PyObject *calls_begin(UNUSED PyObject *module, PyObject *inputs)
{
    lc_tensor **list;
    int         n;
    if (py_tensors_of(inputs, &list, &n) < 0) return NULL;
    bool recording = lc_calls_begin(list, n);
    PyMem_Free(list);
    return PyBool_FromLong(recording);
}
static PyObject *calls_end(UNUSED PyObject *module, PyObject *results)
{
    lc_tensor **list;
    int         n;
    if (py_tensors_of(results, &list, &n) < 0) return NULL;
    lc_calls *calls = lc_calls_end(list, n);
    PyMem_Free(list);
    if (!calls) Py_RETURN_NONE;
    PyCalls *made = PyObject_New(PyCalls, &PyCalls_Type);
    if (made) made->calls = calls;
    else lc_calls_free(calls);
    return (PyObject *)made;
}

static PyMethodDef functions[] = {
    { "_calls_begin", calls_begin, METH_O, "Record the calls of the running trace, too; False: it cannot." },
    { "_calls_end", calls_end, METH_O, "The record, with these results; None if it does not say all that was done." },
    { 0 },
};
int py_add_calls(PyObject *module)
{
    return PyModule_AddType(module, &PyCalls_Type) < 0 ? -1 : PyModule_AddFunctions(module, functions);
}

/* Engine functions for lucid.func and lucid.cuda: batched tensors, devices. */
#include "../py.h"
#include "../../engine/transform/vmap.h"

static PyObject *vmap_push(UNUSED PyObject *module, UNUSED PyObject *unused)
{
    int level = lc_vmap_push();
    return level < 0 ? py_raise() : PyLong_FromLong(level);
}

static PyObject *vmap_pop(UNUSED PyObject *module, UNUSED PyObject *unused)
{
    lc_vmap_pop();
    Py_RETURN_NONE;
}

static PyObject *batched(UNUSED PyObject *module, PyObject *args)
{
    PyObject *value;
    long long dim;
    int       level;
    if (!PyArg_ParseTuple(args, "O!Li:_batched", &PyTensor_Type, &value, &dim, &level)) return NULL;
    return py_wrap(lc_batched(py_tensor(value), dim, level));
}

static PyObject *unbatched(UNUSED PyObject *module, PyObject *args)
{
    PyObject *value;
    long long size, dim;
    int       level;
    if (!PyArg_ParseTuple(args, "O!iLL:_unbatched", &PyTensor_Type, &value, &level, &size, &dim)) return NULL;
    return py_wrap(lc_unbatched(py_tensor(value), level, size, dim));
}

static PyObject *batch_of(UNUSED PyObject *module, PyObject *value)
{
    const lc_batch *batch = py_is_tensor(value) && py_tensor(value)->flags & LC_BATCHED ? py_tensor(value)->batch : NULL;
    if (!batch) Py_RETURN_NONE;
    PyObject *whole = py_wrap(lc_retain(batch->value));
    return whole ? Py_BuildValue("Ni", whole, batch->level) : NULL;
}

static PyMethodDef functions[] = {
    { "_vmap_push", vmap_push, METH_NOARGS, "Enter a vmap level." },
    { "_vmap_pop", vmap_pop, METH_NOARGS, "Leave the innermost vmap level." },
    { "_batched", batched, METH_VARARGS, "(value, dim, level): value seen without its dimension dim." },
    { "_unbatched", unbatched, METH_VARARGS, "(value, level, size, dim): with the batch at dim." },
    { "_batch_of", batch_of, METH_O, "(value, level) of a batched tensor, None of another." },
    { 0 },
};

int py_add_transforms(PyObject *module) { return PyModule_AddFunctions(module, functions); }

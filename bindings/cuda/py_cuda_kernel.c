/* run_kernel: the user's CUDA C on tensors and numbers. lucid/cuda/kernels.py checks and names; here arguments become the bytes
 * that a kernel reads. */
#include "../py.h"
#include "../../engine/backend/cuda/report.h"
#include <string.h>

enum { MOST_ARGUMENTS = 64, MOST_OPTIONS = 24 };

static int sizes(PyObject *list, unsigned to[3])
{
    for (int i = 0; i < 3; i++) {
        unsigned long n = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(list, i));
        if (PyErr_Occurred()) return -1;
        to[i] = (unsigned)n;
    }
    return 0;
}
/* (code, value): p an address, otherwise a code of the struct module. */
static int read_argument(PyObject *item, lc_cuda_argument *a)
{
    const char *code;
    PyObject   *value;
    if (!PyArg_ParseTuple(item, "sO", &code, &value)) return -1;
    memset(a, 0, sizeof *a);
    if (*code == 'f' || *code == 'd') {
        double d = PyFloat_AsDouble(value);
        float  f = (float)d;
        memcpy(a->value, *code == 'f' ? (void *)&f : (void *)&d, *code == 'f' ? 4 : 8);
    } else { /* little-endian: the first bytes are the number in a shorter type */
        unsigned long long u =
            *code == 'p' || *code == 'Q' ? PyLong_AsUnsignedLongLong(value) : (unsigned long long)PyLong_AsLongLong(value);
        memcpy(a->value, &u, 8);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *run_kernel(UNUSED PyObject *module, PyObject *args)
{
    const char      *source, *name, *options[MOST_OPTIONS];
    int              device;
    unsigned         shared, grid[3], block[3];
    PyObject        *given_options, *given_grid, *given_block, *list;
    lc_cuda_argument values[MOST_ARGUMENTS];
    if (!PyArg_ParseTuple(args, "issO!O!O!IO!", &device, &source, &name, &PyTuple_Type, &given_options, &PyTuple_Type,
                          &given_grid, &PyTuple_Type, &given_block, &shared, &PyTuple_Type, &list))
        return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(list), n_options = PyTuple_GET_SIZE(given_options);
    if (n > MOST_ARGUMENTS || n_options > MOST_OPTIONS || PyTuple_GET_SIZE(given_grid) != 3 ||
        PyTuple_GET_SIZE(given_block) != 3)
        return PyErr_Format(PyExc_ValueError,
                            "run_kernel: at most %d arguments and %d options; grid and block of three numbers", MOST_ARGUMENTS,
                            MOST_OPTIONS);
    if (sizes(given_grid, grid) < 0 || sizes(given_block, block) < 0) return NULL;
    for (Py_ssize_t i = 0; i < n_options; i++)
        if (!(options[i] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(given_options, i)))) return NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        if (read_argument(PyTuple_GET_ITEM(list, i), &values[i]) < 0) return NULL;
    if (!lc_backend_of((lc_device){ LC_CUDA, (int8_t)device }) ||
        lc_cuda_run_kernel(device, source, name, options, (int)n_options, grid, block, shared, values, (int)n) < 0)
        return py_raise();
    Py_RETURN_NONE;
}
static PyObject *compile_log(UNUSED PyObject *module, UNUSED PyObject *unused)
{
    const char *log = lc_cuda_compile_log();
    return log ? PyUnicode_DecodeUTF8(log, (Py_ssize_t)strlen(log), "replace") : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    { "_cuda_run_kernel", run_kernel, METH_VARARGS,
      "(device, source, name, options, grid, block, shared, arguments): compile if need be, and launch." },
    { "_cuda_compile_log", compile_log, METH_NOARGS, "What NVRTC said when it last refused a source on this thread." },
    { 0 },
};
int py_add_cuda_kernel(PyObject *module) { return PyModule_AddFunctions(module, functions); }

/* The op table for tools: what the reference page and tests read about every op with a Python name. */
#include "../py.h"
#include "../../engine/op/promote.h"

/* The dtypes that a single input may have on the CPU: those whose computing dtype has a kernel. */
static PyObject *dtypes_of(const lc_op *op)
{
    const lc_backend *cpu = lc_backends[LC_CPU];
    PyObject         *names = PyList_New(0);
    for (int d = 0; names && d < LC_DTYPE_COUNT; d++) {
        lc_dtype compute = (lc_dtype)d;
        if (lc_class_of(d) < LC_FLOAT && op->promote == LC_TO_FLOAT) compute = lc_default_dtype;
        if (lc_class_of(d) < LC_FLOAT && op->promote == LC_TO_COUNT) compute = LC_i64;
        if (!cpu->has(op->kernel, compute)) continue;
        PyObject *name = PyUnicode_FromString(lc_dtypes[d].name);
        if (!name || PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyObject *row(const lc_op *op)
{
    PyObject *dtypes = dtypes_of(op);
    if (!dtypes) return NULL;
    static const char *const kinds[] = { [LC_KIND_OPAQUE] = "opaque",       [LC_KIND_ELEMENTWISE] = "elementwise",
                                         [LC_KIND_REDUCTION] = "reduction", [LC_KIND_LINES] = "lines",
                                         [LC_KIND_MOVE] = "move",           [LC_KIND_MATRICES] = "matrices",
                                         [LC_KIND_VIEW] = "view",           [LC_KIND_COMPOSITE] = "composite",
                                         [LC_KIND_PRODUCT] = "product" };
    return Py_BuildValue("{s:s,s:s,s:s,s:s,s:s,s:s,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:s,s:N}", "name", op->name, "public",
                         op->py ? op->py : op->name, "space", op->ns ? op->ns : "", "signature", op->sig, "doc",
                         op->doc ? op->doc : "", "kind", kinds[op->kind], "function", op->function ? Py_True : Py_False,
                         "method", op->method ? Py_True : Py_False, "out", op->out ? Py_True : Py_False, "gradient",
                         op->grad ? Py_True : Py_False, "random", op->random ? Py_True : Py_False, "reads_values",
                         op->reads_values ? Py_True : Py_False, "factory", op->factory ? Py_True : Py_False, "inplace_of",
                         op->inplace_of ? op->inplace_of->name : "", "dtypes", dtypes);
}

static PyObject *op_table(UNUSED PyObject *m, UNUSED PyObject *unused)
{
    PyObject *rows = PyList_New(0);
    for (int id = 0; rows && id < LC_OP_COUNT; id++) {
        if (lc_ops[id]->hidden) continue;
        PyObject *one = row(lc_ops[id]);
        if (!one || PyList_Append(rows, one) < 0) Py_CLEAR(rows);
        Py_XDECREF(one);
    }
    return rows;
}

static PyMethodDef functions[] = { { "_op_table", op_table, METH_NOARGS, "A dict per op that has a Python name." }, { 0 } };
int                py_add_table(PyObject *m) { return PyModule_AddFunctions(m, functions); }

/* What the files of this folder share. */
#pragma once
#include "../py.h"

int py_tensors_of(PyObject *sequence, lc_tensor ***list, int *n); /* borrowed tensors of a list or tuple; PyMem_Free(*list) */
int py_add_calls(PyObject *module);

/* What a weak reference refers to: a new reference. NULL: it is gone. */
static inline PyObject *py_weak_target(PyObject *weak)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *target = NULL;
    if (PyWeakref_GetRef(weak, &target) < 0) PyErr_Clear(); /* never: it is a weak reference */
    return target;
#else
    PyObject *target = PyWeakref_GetObject(weak);
    return target == Py_None ? NULL : Py_NewRef(target);
#endif
}

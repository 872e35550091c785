/* Shared by the files of this folder only. */
#pragma once
#include "../py.h"

enum { PY_HOOKS_ON, PY_NO_SUBCLASS, PY_NO_HOOKS };
extern LC_HOT_TLS int       py_hooks_off;  /* what this thread has switched off: hooks of classes, or modes too */
extern LC_HOT_TLS PyObject *py_mode_stack; /* a list, innermost last; NULL: never used */

bool               py_has_hook(PyObject *o); /* of its class; a list or tuple has none itself */
int                py_collect_hooked(PyObject *o, PyObject *found);
PyObject          *py_ask(PyObject *found, PyObject *func, PyObject *args, PyObject *kwargs); /* modes first */
int                py_arm(void); /* Tensor's methods and attributes ask for overrides from now on */
int                py_add_override_types(PyObject *module);
static inline bool py_modes_active(void)
{
    return py_mode_stack && PyList_GET_SIZE(py_mode_stack) && py_hooks_off != PY_NO_HOOKS;
}

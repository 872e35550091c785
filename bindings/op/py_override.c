/* __lucid_function__(cls, func, types, args, kwargs): a class takes over the ops its instances are passed to.
 *
 * Plain programs have no such class, so one flag decides: py_overrides is set when the first Tensor subclass with an
 * override is made. An object that has the method but is not a Tensor is asked when the op does not accept it. */
#include "../py.h"

bool                   py_overrides;
static PyObject       *hook_name;
static LC_HOT_TLS bool disabled; /* inside super().__lucid_function__ */

static PyObject *own_hook(PyTypeObject *type) /* borrowed; NULL: none, or Tensor's */
{
    if (!hook_name && !(hook_name = PyUnicode_InternFromString("__lucid_function__"))) return NULL;
    PyObject *found = _PyType_Lookup(type, hook_name), *base = PyDict_GetItem(PyTensor_Type.tp_dict, hook_name);
    return found && found != base && found != Py_None ? found : NULL;
}

int py_note_subclass(PyTypeObject *type)
{
    if (own_hook(type)) py_overrides = true;
    return PyErr_Occurred() ? -1 : 0;
}

static bool overrides(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    return type != &PyTensor_Type && !PyLong_CheckExact(o) && !PyFloat_CheckExact(o) && !PyUnicode_CheckExact(o) &&
           own_hook(type);
}

/* Instances with a hook, subclasses before their bases, each type once: PyTorch's (and NumPy's) order. */
static int note(PyObject *o, PyObject *found)
{
    if (!overrides(o)) return 0;
    Py_ssize_t at = PyList_GET_SIZE(found);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(found); i++) {
        PyTypeObject *known = Py_TYPE(PyList_GET_ITEM(found, i));
        if (known == Py_TYPE(o)) return 0;
        if (at == PyList_GET_SIZE(found) && PyType_IsSubtype(Py_TYPE(o), known)) at = i;
    }
    return PyList_Insert(found, at, o);
}

static int search(PyObject *o, PyObject *found)
{
    if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) return note(o, found);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++)
        if (note(PySequence_Fast_GET_ITEM(o, i), found) < 0) return -1;
    return 0;
}

static PyObject *types_of(PyObject *found)
{
    PyObject *types = PyTuple_New(PyList_GET_SIZE(found));
    for (Py_ssize_t i = 0; types && i < PyList_GET_SIZE(found); i++)
        PyTuple_SET_ITEM(types, i, Py_NewRef(Py_TYPE(PyList_GET_ITEM(found, i))));
    return types;
}

static PyObject *ask(PyObject *found, PyObject *func, PyObject *args, PyObject *kwargs)
{
    PyObject *types = types_of(found), *result = types ? Py_NewRef(Py_NotImplemented) : NULL;
    for (Py_ssize_t i = 0; result == Py_NotImplemented && i < PyList_GET_SIZE(found); i++) {
        PyObject *hook = PyObject_GetAttr((PyObject *)Py_TYPE(PyList_GET_ITEM(found, i)), hook_name);
        Py_SETREF(result, hook ? PyObject_CallFunctionObjArgs(hook, func, types, args, kwargs, NULL) : NULL);
        Py_XDECREF(hook);
    }
    Py_XDECREF(types);
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
    return PyErr_Format(PyExc_TypeError, "no implementation found for %R on types that implement __lucid_function__", func);
}

PyObject *py_try_override(PyObject *func, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    if (disabled) return NULL;
    PyObject  *found = PyList_New(0), *result = NULL;
    Py_ssize_t n_names = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; found && i < n + n_names; i++)
        if (search(args[i], found) < 0) Py_CLEAR(found);
    if (found && PyList_GET_SIZE(found)) {
        PyObject *positional = PyTuple_New(n), *kwargs = PyDict_New();
        for (Py_ssize_t i = 0; positional && i < n; i++) PyTuple_SET_ITEM(positional, i, Py_NewRef(args[i]));
        for (Py_ssize_t i = 0; kwargs && i < n_names; i++)
            if (PyDict_SetItem(kwargs, PyTuple_GET_ITEM(names, i), args[n + i]) < 0) Py_CLEAR(kwargs);
        if (positional && kwargs) result = ask(found, func, positional, kwargs);
        Py_XDECREF(positional);
        Py_XDECREF(kwargs);
    }
    Py_XDECREF(found);
    return result;
}

/* Tensors in the result become instances of cls, as in PyTorch's default. */
static PyObject *as_class(PyObject *result, PyObject *cls) /* steals result */
{
    if (!result) return NULL;
    if (Py_TYPE(result) == &PyTensor_Type && cls != (PyObject *)&PyTensor_Type) {
        Py_SETREF(result, PyObject_CallMethod(result, "as_subclass", "O", cls));
        return result;
    }
    if (!PyTuple_Check(result)) return result;
    PyObject *converted = PyTuple_New(PyTuple_GET_SIZE(result));
    for (Py_ssize_t i = 0; converted && i < PyTuple_GET_SIZE(result); i++) {
        PyObject *item = as_class(Py_NewRef(PyTuple_GET_ITEM(result, i)), cls);
        if (item) PyTuple_SET_ITEM(converted, i, item);
        else Py_CLEAR(converted);
    }
    if (converted && !PyTuple_CheckExact(result))
        Py_SETREF(converted, PyObject_CallOneArg((PyObject *)Py_TYPE(result), converted));
    Py_DECREF(result);
    return converted;
}

static PyObject *lucid_function(PyObject *cls, PyObject *args)
{
    PyObject *func, *types, *positional = NULL, *kwargs = NULL;
    if (!PyArg_ParseTuple(args, "OO|O!O:__lucid_function__", &func, &types, &PyTuple_Type, &positional, &kwargs)) return NULL;
    PyObject *none = PyTuple_New(0);
    if (!none) return NULL;
    bool before = disabled;
    disabled = true;
    PyObject *result = PyObject_Call(func, positional ? positional : none, kwargs == Py_None ? NULL : kwargs);
    result = as_class(result, cls);
    disabled = before;
    Py_DECREF(none);
    return result;
}

PyMethodDef py_override_methods[] = {
    { "__lucid_function__", lucid_function, METH_VARARGS | METH_CLASS,
      "Called as (func, types, args, kwargs) in place of an op; a subclass may define its own." },
    { 0 }
};

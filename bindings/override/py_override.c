/* __torch_function__(func, types, args, kwargs), also spelled __lucid_function__: a class takes over the calls that its
 * instances are passed to. So does a mode, an object on a stack of the thread, with every call.
 *
 * A Tensor subclass that defines nothing inherits Tensor's: results become instances of the subclass. Parameter opts out
 * with _disabled_torch_function_impl, so a program with plain tensors and parameters alone has nothing to look for, and one
 * flag decides: py_overrides is set by the first class that takes part, by the first mode, and by the first object that is no
 * Tensor but has the method, which is noticed when an op does not accept it. Then py_arm changes the descriptors of Tensor
 * in place (py_arm.c): before that methods and attributes do not ask at all. */
#include "py_override.h"

bool                     py_overrides, py_nobody_answered;
static bool              armed;    /* a class takes part: the flag stays */
static atomic_int        in_modes; /* entered modes of all threads */
LC_HOT_TLS int           py_hooks_off;
LC_HOT_TLS PyObject     *py_mode_stack;
static PyObject         *names[2], *defaults[2], *disabled_impl;
static const char *const spelled[2] = { "__torch_function__", "__lucid_function__" };

static PyObject   *disabled_function(PyObject *module, PyObject *args);
static PyMethodDef disabled_method = { "_disabled_torch_function_impl", disabled_function, METH_VARARGS,
                                       "A __torch_function__ that lets calls pass: a class that says so takes no part." };

static int start(void)
{
    for (int i = 0; i < 2; i++) {
        if (!(names[i] = PyUnicode_InternFromString(spelled[i]))) return -1;
        defaults[i] = PyDict_GetItem(PyTensor_Type.tp_dict, names[i]);
    }
    return 0;
}

static int depth(PyTypeObject *type, PyObject *name) /* how far away the class is that defines it */
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); i++)
        if (PyDict_Contains(((PyTypeObject *)PyTuple_GET_ITEM(type->tp_mro, i))->tp_dict, name) == 1) return (int)i;
    return INT_MAX;
}

/* A tensor of PyTorch itself, in a process that has both: its hook is for PyTorch's functions and would only call ours again. */
static bool is_pytorchs(PyTypeObject *type)
{
    if (PyType_IsSubtype(type, &PyTensor_Type)) return false;
    for (Py_ssize_t i = 0; type->tp_mro && i < PyTuple_GET_SIZE(type->tp_mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(type->tp_mro, i);
        PyObject     *home = base->tp_flags & Py_TPFLAGS_HEAPTYPE ? PyDict_GetItemString(base->tp_dict, "__module__") : NULL;
        if (home && PyUnicode_Check(home) && !PyUnicode_CompareWithASCIIString(home, "torch") &&
            !strcmp(base->tp_name, "Tensor"))
            return true;
    }
    return false;
}

/* The name under which a class takes part, borrowed; NULL: it does not. The spelling that stands nearer decides. */
static PyObject *hook_of(PyTypeObject *type)
{
    if (!names[0] && start() < 0) return NULL;
    PyObject *own[2], *lookup;
    for (int i = 0; i < 2; i++) {
        lookup = _PyType_Lookup(type, names[i]);
        own[i] = lookup == defaults[i] ? NULL : lookup;
    }
    int i = own[0] && own[1] ? depth(type, names[1]) < depth(type, names[0]) : !own[0];
    if (own[i]) return own[i] == disabled_impl || own[i] == Py_None || is_pytorchs(type) ? NULL : names[i];
    return PyType_IsSubtype(type, &PyTensor_Type) ? names[0] : NULL;
}

/* Static types are Python's and ours: none of them takes part. */
static inline PyObject *hook_for(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    return type->tp_flags & Py_TPFLAGS_HEAPTYPE ? hook_of(type) : NULL;
}
bool py_has_hook(PyObject *o) { return hook_for(o) != NULL; }

int py_note_override(void)
{
    if (armed) return 0;
    armed = py_overrides = true;
    return py_arm();
}
int        py_note_subclass(PyTypeObject *type) { return hook_of(type) ? py_note_override() : PyErr_Occurred() ? -1 : 0; }
static int count_modes(int by)
{
    py_overrides = atomic_fetch_add(&in_modes, by) + by > 0 || armed;
    return 0;
}
int py_push_mode(PyObject *mode)
{
    static bool once;
    if (!once && py_arm() < 0) return -1;
    once = true;
    if (!py_mode_stack && !(py_mode_stack = PyList_New(0))) return -1;
    return PyList_Append(py_mode_stack, mode) < 0 ? -1 : count_modes(1);
}
PyObject *py_pop_mode(void)
{
    Py_ssize_t n = py_mode_stack ? PyList_GET_SIZE(py_mode_stack) : 0;
    if (!n) return PyErr_Format(PyExc_RuntimeError, "no mode is active");
    PyObject *mode = Py_NewRef(PyList_GET_ITEM(py_mode_stack, n - 1));
    if (PyList_SetSlice(py_mode_stack, n - 1, n, NULL) < 0) return Py_DECREF(mode), NULL;
    count_modes(-1);
    return mode;
}

/* Instances with a hook, subclasses before their bases, each type once: PyTorch's (and NumPy's) order. */
int py_collect_hooked(PyObject *o, PyObject *found)
{
    if (!hook_for(o)) return PyErr_Occurred() ? -1 : 0;
    Py_ssize_t at = PyList_GET_SIZE(found);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(found); i++) {
        PyTypeObject *known = Py_TYPE(PyList_GET_ITEM(found, i));
        if (known == Py_TYPE(o)) return 0;
        if (at == PyList_GET_SIZE(found) && PyType_IsSubtype(Py_TYPE(o), known)) at = i;
    }
    return PyList_Insert(found, at, o);
}

static int search(PyObject *o, PyObject **found) /* makes the list when there is something to put into it */
{
    bool       many = PyList_CheckExact(o) || PyTuple_CheckExact(o);
    Py_ssize_t n = many ? PySequence_Fast_GET_SIZE(o) : 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = many ? PySequence_Fast_GET_ITEM(o, i) : o;
        if (Py_TYPE(item) == &PyTensor_Type || !hook_for(item)) continue;
        if (!*found && !(*found = PyList_New(0))) return -1;
        if (py_collect_hooked(item, *found) < 0) return -1;
    }
    return 0;
}

static PyObject *types_of(PyObject *found)
{
    PyObject *types = PyTuple_New(PyList_GET_SIZE(found));
    for (Py_ssize_t i = 0; types && i < PyList_GET_SIZE(found); i++)
        PyTuple_SET_ITEM(types, i, Py_NewRef(Py_TYPE(PyList_GET_ITEM(found, i))));
    return types;
}

/* The innermost mode is asked with itself taken off the stack, so what it calls reaches the next one. */
static PyObject *ask_mode(PyObject *func, PyObject *types, PyObject *args, PyObject *kwargs)
{
    PyObject *mode = py_pop_mode();
    if (!mode) return NULL;
    PyObject *hook = PyObject_GetAttr(mode, names[0]);
    PyObject *result = hook ? PyObject_CallFunctionObjArgs(hook, func, types, args, kwargs, NULL) : NULL;
    Py_XDECREF(hook);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (py_push_mode(mode) < 0) Py_CLEAR(result);
    else PyErr_Restore(type, value, trace);
    Py_DECREF(mode);
    return result;
}

PyObject *py_ask(PyObject *found, PyObject *func, PyObject *args, PyObject *kwargs)
{
    PyObject *types = types_of(found), *result = Py_NewRef(Py_NotImplemented);
    if (!types) Py_CLEAR(result);
    if (result && py_modes_active()) Py_SETREF(result, ask_mode(func, types, args, kwargs));
    for (Py_ssize_t i = 0; result == Py_NotImplemented && i < PyList_GET_SIZE(found); i++) {
        PyObject *o = PyList_GET_ITEM(found, i), *name = hook_for(o), *hook = name ? PyObject_GetAttr(o, name) : NULL;
        Py_SETREF(result, hook ? PyObject_CallFunctionObjArgs(hook, func, types, args, kwargs, NULL) : NULL);
        Py_XDECREF(hook);
    }
    if (result == Py_NotImplemented) {
        py_nobody_answered = true;
        PyErr_Format(PyExc_TypeError,
                     "Multiple dispatch failed for %R; all __torch_function__ handlers returned NotImplemented: %R", func,
                     types);
        Py_CLEAR(result);
    }
    Py_XDECREF(types);
    return result;
}

/* Vectorcall's arguments as (args, kwargs). */
static int gather(PyObject *const *args, Py_ssize_t n, PyObject *keys, PyObject **positional, PyObject **kwargs)
{
    Py_ssize_t n_keys = keys ? PyTuple_GET_SIZE(keys) : 0;
    *positional = PyTuple_New(n), *kwargs = PyDict_New();
    for (Py_ssize_t i = 0; *positional && i < n; i++) PyTuple_SET_ITEM(*positional, i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; *kwargs && i < n_keys; i++)
        if (PyDict_SetItem(*kwargs, PyTuple_GET_ITEM(keys, i), args[n + i]) < 0) Py_CLEAR(*kwargs);
    return *positional && *kwargs ? 0 : -1;
}

PyObject *py_try_override(PyObject *func, PyObject *const *args, Py_ssize_t n, PyObject *keys)
{
    PyObject  *found = NULL, *result = NULL, *positional = NULL, *kwargs = NULL;
    Py_ssize_t all = n + (keys ? PyTuple_GET_SIZE(keys) : 0);
    int        failed = 0;
    if (py_hooks_off == PY_NO_HOOKS || (!names[0] && start() < 0)) return NULL;
    for (Py_ssize_t i = 0; py_hooks_off == PY_HOOKS_ON && !failed && i < all; i++) failed = search(args[i], &found);
    if (!failed && !found && py_modes_active()) failed = !(found = PyList_New(0));
    if (!failed && found && py_note_override() == 0 && gather(args, n, keys, &positional, &kwargs) == 0)
        result = py_ask(found, func, positional, kwargs);
    Py_XDECREF(positional);
    Py_XDECREF(kwargs);
    Py_XDECREF(found);
    return result;
}

PyObject *py_try_override_slot(const char *name, PyObject *const *args, Py_ssize_t n)
{
    return py_try_override(PyDict_GetItemString(PyTensor_Type.tp_dict, name), args, n, NULL);
}

PyObject *py_try_modes(const char *function, PyObject *const *args, Py_ssize_t n, PyObject *keys)
{
    if (!py_modes_active()) return NULL;
    PyObject *module = PyImport_ImportModule("lucid._C"), *func = module ? PyObject_GetAttrString(module, function) : NULL;
    PyObject *positional = NULL, *kwargs = NULL, *found = PyList_New(0), *result = NULL;
    if (func && found && gather(args, n, keys, &positional, &kwargs) == 0) result = py_ask(found, func, positional, kwargs);
    Py_XDECREF(module);
    Py_XDECREF(func);
    Py_XDECREF(positional);
    Py_XDECREF(kwargs);
    Py_XDECREF(found);
    return result;
}

/* --- the default ---------------------------------------------------------------------------------------------------------------- */
static PyObject *converted(PyObject *result, PyTypeObject *cls);
static PyObject *converted_items(PyObject *result, PyTypeObject *cls)
{
    PyObject *items = PySequence_Tuple(result);
    for (Py_ssize_t i = 0; items && i < PyTuple_GET_SIZE(items); i++) {
        PyObject *item = converted(Py_NewRef(PyTuple_GET_ITEM(items, i)), cls), *before = PyTuple_GET_ITEM(items, i);
        if (!item) return Py_DECREF(items), NULL;
        PyTuple_SET_ITEM(items, i, item);
        Py_DECREF(before);
    }
    return items;
}

/* Tensors in the result become instances of cls. */
static PyObject *converted(PyObject *result, PyTypeObject *cls) /* steals result */
{
    if (!result) return NULL;
    if (py_is_tensor(result)) {
        if (!PyType_IsSubtype(Py_TYPE(result), cls)) Py_SETREF(result, py_as_class(result, cls));
        return result;
    }
    bool tuple = PyTuple_Check(result);
    if ((!tuple && !PyList_Check(result)) || Py_TYPE(result) == &PySize_Type) return result;
    PyObject *items = converted_items(result, cls);
    if (items && !PyTuple_CheckExact(result)) Py_SETREF(items, PyObject_CallOneArg((PyObject *)Py_TYPE(result), items));
    Py_DECREF(result);
    return items;
}

static PyObject *call_without_hooks(PyObject *func, PyObject *args, PyObject *kwargs)
{
    int       before = py_hooks_off;
    PyObject *none = args ? Py_NewRef(args) : PyTuple_New(0);
    if (!before) py_hooks_off = PY_NO_SUBCLASS;
    PyObject *result = none ? PyObject_Call(func, none, kwargs == Py_None ? NULL : kwargs) : NULL;
    py_hooks_off = before;
    Py_XDECREF(none);
    return result;
}

static PyObject *disabled_function(UNUSED PyObject *module, PyObject *args)
{
    PyObject *func, *types, *positional = NULL, *kwargs = NULL;
    if (!PyArg_ParseTuple(args, "OO|O!O:__torch_function__", &func, &types, &PyTuple_Type, &positional, &kwargs)) return NULL;
    return call_without_hooks(func, positional, kwargs);
}

/* x.grad and x._base are other tensors that live on: they stay what they are. */
static bool keeps_class(PyObject *func)
{
    PyObject *owner = PyObject_GetAttrString(func, "__self__");
    bool      keeps = false;
    if (owner && Py_TYPE(owner) == &PyGetSetDescr_Type && PyDescr_TYPE(owner) == &PyTensor_Type)
        keeps = PyUnicode_CompareWithASCIIString(PyDescr_NAME(owner), "grad") == 0 ||
                PyUnicode_CompareWithASCIIString(PyDescr_NAME(owner), "_base") == 0;
    PyErr_Clear();
    Py_XDECREF(owner);
    return keeps;
}

static bool has_pytorchs(PyObject *args, bool lists) /* lists: also in lists of tensors */
{
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(args); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(args, i);
        bool      many = PyList_CheckExact(item) || PyTuple_CheckExact(item);
        if (many ? lists && has_pytorchs(item, false) : is_pytorchs(Py_TYPE(item))) return true;
    }
    return false;
}

static PyObject *default_function(PyObject *cls, PyObject *args, PyObject *keywords)
{
    static char *keys[] = { "func", "types", "args", "kwargs", NULL };
    PyObject    *func, *types, *positional = NULL, *kwargs = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|O!O:__torch_function__", keys, &func, &types, &PyTuple_Type,
                                     &positional, &kwargs))
        return NULL;
    PyObject *listed = PySequence_Tuple(types);
    if (!listed) return NULL;
    bool known = true;
    for (Py_ssize_t i = 0; known && i < PyTuple_GET_SIZE(listed); i++) {
        PyObject *type = PyTuple_GET_ITEM(listed, i);
        known = PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)cls, (PyTypeObject *)type);
    }
    Py_DECREF(listed);
    if (!known || (positional && has_pytorchs(positional, true))) return Py_NewRef(Py_NotImplemented);
    PyObject *result = call_without_hooks(func, positional, kwargs);
    if (!result || cls == (PyObject *)&PyTensor_Type || keeps_class(func)) return result;
    return converted(result, (PyTypeObject *)cls);
}

#define DEFAULT(name)                                                                                                          \
    {                                                                                                                          \
        name, (PyCFunction)(void (*)(void))default_function, METH_VARARGS | METH_KEYWORDS | METH_CLASS,                        \
            "Called as (func, types, args, kwargs) in place of a call; a subclass may define its own."                         \
    }
PyMethodDef py_override_methods[] = { DEFAULT("__torch_function__"), DEFAULT("__lucid_function__"), { 0 } };

int py_add_overrides(PyObject *module)
{
    disabled_impl = PyCFunction_New(&disabled_method, NULL);
    if (!disabled_impl || PyModule_AddObjectRef(module, disabled_method.ml_name, disabled_impl) < 0) return -1;
    return py_add_override_types(module);
}

/* lucid._C.ModuleBase: the hot part of nn.Module. Calling a module, finding its parameters, and setting its attributes
 * happen in every step of a training loop, for every layer; the rest of nn.Module is Python (lucid/nn/modules/module.py),
 * with all state in __dict__.
 *
 * An instance caches pointers to its dicts (of parameters, of hooks, ...) so that a call need not look them up to see that
 * they are empty. Setting one of these attributes clears the cache; the next use fills it again. */
#include "py.h"

enum { PARAMETERS, BUFFERS, MODULES, N_MEMBERS, FIRST_HOOKS = N_MEMBERS, N_DICTS = 7 };
static const char *const dict_names[N_DICTS] = { "_parameters",        "_buffers",        "_modules",
                                                 "_forward_hooks",     "_backward_hooks", "_forward_pre_hooks",
                                                 "_backward_pre_hooks" };
static PyObject         *dict_keys[N_DICTS], *forward_key, *with_hooks_key, *assign_key;
static PyObject         *global_hooks; /* a list of dicts; a call takes the slow path if one of them has an entry */

typedef struct {
    PyObject_HEAD PyObject *dicts[N_DICTS];
} PyModuleBase;

static void forget(PyModuleBase *self)
{
    for (int i = 0; i < N_DICTS; i++) Py_CLEAR(self->dicts[i]);
}
static int remember(PyModuleBase *self) /* -1 raised: Module.__init__ did not run */
{
    for (int i = 0; i < N_DICTS; i++) {
        if (self->dicts[i]) continue;
        PyObject *dict = PyObject_GenericGetAttr((PyObject *)self, dict_keys[i]);
        if (dict && !PyDict_Check(dict)) {
            PyErr_Format(PyExc_TypeError, "%s of a module must be a dict, not %s", dict_names[i], Py_TYPE(dict)->tp_name);
            Py_CLEAR(dict);
        }
        if (!dict) return -1;
        self->dicts[i] = dict;
    }
    return 0;
}

/* --- attributes ------------------------------------------------------------------------------------------------------------------- */
static PyObject *find_member(PyModuleBase *self, PyObject *name) /* borrowed; NULL with or without an exception */
{
    for (int i = 0; i < N_MEMBERS; i++) {
        PyObject *found = PyDict_GetItemWithError(self->dicts[i], name);
        if (found || PyErr_Occurred()) return found;
    }
    return NULL;
}
static PyObject *base_getattr(PyObject *o, PyObject *name) /* __getattr__: names that normal look-up does not find */
{
    PyModuleBase *self = (PyModuleBase *)o;
    if (self->dicts[N_DICTS - 1] || remember(self) == 0) {
        PyObject *found = find_member(self, name);
        if (found) return Py_NewRef(found);
        if (PyErr_Occurred()) return NULL;
    } else if (PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    else return NULL;
    return PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'", Py_TYPE(o)->tp_name, name);
}

#if PY_VERSION_HEX < 0x030C0000
/* Before 3.12 Python makes an exception with a message before it asks __getattr__. */
static PyObject *quick_getattr(PyObject *o, PyObject *name)
{
    PyObject *found = _PyObject_GenericGetAttrWithDict(o, name, NULL, 1);
    return found || PyErr_Occurred() ? found : base_getattr(o, name);
}
static PyObject *base_init_subclass(PyObject *cls, PyObject *args, PyObject *kwargs)
{
    PyTypeObject *type = (PyTypeObject *)cls;
    PyObject     *name = PyUnicode_InternFromString("__getattr__"), *usual = PyUnicode_InternFromString("__getattribute__");
    extern PyTypeObject PyModuleBase_Type;
    if (name && usual && _PyType_Lookup(type, name) == PyDict_GetItem(PyModuleBase_Type.tp_dict, name) &&
        _PyType_Lookup(type, usual) == PyDict_GetItem(PyBaseObject_Type.tp_dict, usual))
        type->tp_getattro = quick_getattr;
    Py_XDECREF(name);
    Py_XDECREF(usual);
    /* the next class of the method resolution order, which may be typing.Generic's */
    PyObject *next = PyObject_CallFunctionObjArgs((PyObject *)&PySuper_Type, (PyObject *)&PyModuleBase_Type, cls, NULL);
    PyObject *method = next ? PyObject_GetAttrString(next, "__init_subclass__") : NULL,
             *result = method ? PyObject_Call(method, args, kwargs) : NULL;
    Py_XDECREF(next);
    Py_XDECREF(method);
    return result;
}
#endif

static bool is_dict_name(PyObject *name)
{
    for (int i = 0; i < N_DICTS; i++)
        if (name == dict_keys[i] || PyUnicode_CompareWithASCIIString(name, dict_names[i]) == 0) return true;
    return false;
}
static int base_setattr(PyObject *o, PyObject *name, PyObject *value)
{
    PyModuleBase       *self = (PyModuleBase *)o;
    extern PyTypeObject PyModuleBase_Type;
    if (PyUnicode_Check(name) && PyUnicode_GET_LENGTH(name) && PyUnicode_READ_CHAR(name, 0) == '_' && is_dict_name(name)) {
        forget(self);
        return PyObject_GenericSetAttr(o, name, value);
    }
    bool special = value && (py_is_tensor(value) || PyObject_TypeCheck(value, &PyModuleBase_Type));
    if (!special) {
        if (!self->dicts[N_DICTS - 1] && remember(self) < 0) { /* before Module.__init__ */
            if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
            PyErr_Clear();
            return PyObject_GenericSetAttr(o, name, value);
        }
        special = find_member(self, name) != NULL;
        if (PyErr_Occurred()) return -1;
    }
    if (!special) return PyObject_GenericSetAttr(o, name, value);
    if (!value) {
        for (int i = 0; i < N_MEMBERS; i++)
            if (PyDict_GetItemWithError(self->dicts[i], name)) return PyDict_DelItem(self->dicts[i], name);
        return -1;
    }
    PyObject *done = PyObject_CallMethodObjArgs(o, assign_key, name, value, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Methods, not the type's own slot: object.__setattr__(module, name, value) then works, as programs expect. */
static PyObject *m_setattr(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2 || !PyUnicode_Check(args[0])) return PyErr_Format(PyExc_TypeError, "__setattr__() takes a name and a value");
    if (base_setattr(o, args[0], args[1]) < 0) return NULL;
    Py_RETURN_NONE;
}
static PyObject *m_delattr(PyObject *o, PyObject *name)
{
    if (!PyUnicode_Check(name)) return PyErr_Format(PyExc_TypeError, "__delattr__() takes a name");
    if (base_setattr(o, name, NULL) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *set_plain(PyObject *o, PyObject *args) /* object.__setattr__ */
{
    PyObject *name, *value;
    if (!PyArg_ParseTuple(args, "UO:_set_plain", &name, &value) || PyObject_GenericSetAttr(o, name, value) < 0) return NULL;
    Py_RETURN_NONE;
}

/* --- calling ---------------------------------------------------------------------------------------------------------------------- */
static bool hooked(const PyModuleBase *self)
{
    Py_ssize_t n = 0;
    for (int i = FIRST_HOOKS; i < N_DICTS; i++) n += PyDict_GET_SIZE(self->dicts[i]);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(global_hooks); i++) n += PyDict_GET_SIZE(PyList_GET_ITEM(global_hooks, i));
    return n > 0;
}
static PyObject *base_call(PyObject *o, PyObject *args, PyObject *kwargs)
{
    PyModuleBase *self = (PyModuleBase *)o;
    if (!self->dicts[N_DICTS - 1] && remember(self) < 0) return NULL;
    PyObject *forward = PyObject_GetAttr(o, hooked(self) ? with_hooks_key : forward_key),
             *result = forward ? PyObject_Call(forward, args, kwargs) : NULL;
    Py_XDECREF(forward);
    return result;
}

/* The dicts an instance remembers are all in __dict__. */
static PyObject *base_getstate(PyObject *o, UNUSED PyObject *unused) { return PyObject_GenericGetDict(o, NULL); }

/* _note_global_hooks(dict): from now on calls of all modules check it. */
static PyObject *note_global_hooks(UNUSED PyObject *cls, PyObject *dict)
{
    if (!PyDict_Check(dict)) return PyErr_Format(PyExc_TypeError, "a dict of hooks, not %s", Py_TYPE(dict)->tp_name);
    if (PyList_Append(global_hooks, dict) < 0) return NULL;
    Py_RETURN_NONE;
}

/* --- the type --------------------------------------------------------------------------------------------------------------------- */
static int base_traverse(PyObject *o, visitproc visit, void *arg)
{
    for (int i = 0; i < N_DICTS; i++) Py_VISIT(((PyModuleBase *)o)->dicts[i]);
    return 0;
}
static int  base_clear(PyObject *o) { return forget((PyModuleBase *)o), 0; }
static void base_dealloc(PyObject *o)
{
    PyObject_GC_UnTrack(o);
    forget((PyModuleBase *)o);
    Py_TYPE(o)->tp_free(o);
}

static PyMethodDef base_methods[] = {
    { "__getattr__", base_getattr, METH_O, "A parameter, buffer or module of this name." },
#if PY_VERSION_HEX < 0x030C0000
    { "__init_subclass__", (PyCFunction)(void (*)(void))base_init_subclass, METH_VARARGS | METH_KEYWORDS | METH_CLASS, NULL },
#endif
    { "__setattr__", (PyCFunction)(void (*)(void))m_setattr, METH_FASTCALL, "Set an attribute: members are registered." },
    { "__delattr__", m_delattr, METH_O, "Remove an attribute or a member." },
    { "_set_plain", set_plain, METH_VARARGS, "Set an attribute as any object does." },
    { "__getstate__", base_getstate, METH_NOARGS, "What is pickled and copied: __dict__." },
    { "_note_global_hooks", note_global_hooks, METH_O | METH_CLASS, "Let calls of all modules look into a dict of hooks." },
    { 0 },
};
PyTypeObject PyModuleBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid._C.ModuleBase",
    .tp_basicsize = sizeof(PyModuleBase),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "What is hot in nn.Module: calls and attributes.",
    .tp_new = PyType_GenericNew,
    .tp_dealloc = base_dealloc,
    .tp_traverse = base_traverse,
    .tp_clear = base_clear,
    .tp_call = base_call,
    .tp_methods = base_methods,
};

int py_add_module_base(PyObject *module)
{
    for (int i = 0; i < N_DICTS; i++)
        if (!(dict_keys[i] = PyUnicode_InternFromString(dict_names[i]))) return -1;
    forward_key = PyUnicode_InternFromString("forward");
    with_hooks_key = PyUnicode_InternFromString("_call_with_hooks");
    assign_key = PyUnicode_InternFromString("_assign");
    global_hooks = PyList_New(0);
    if (!forward_key || !with_hooks_key || !assign_key || !global_hooks || PyType_Ready(&PyModuleBase_Type) < 0) return -1;
    return PyModule_AddObjectRef(module, "ModuleBase", (PyObject *)&PyModuleBase_Type);
}

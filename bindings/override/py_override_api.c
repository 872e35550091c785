/* What lucid.overrides is made of: the contexts that switch overrides off, the stack of modes, questions about arguments, and
 * Overridable, the form of functions written in Python. */
#include "py_override.h"
#include <structmember.h>

/* --- contexts ---------------------------------------------------------------------------------------------------------------------- */
typedef struct {
    PyObject_HEAD int before;
} PySwitch;
static PyTypeObject no_subclass_type, no_hooks_type;

static PyObject *enter(PyObject *self, UNUSED PyObject *unused)
{
    int level = Py_TYPE(self) == &no_hooks_type ? PY_NO_HOOKS : PY_NO_SUBCLASS;
    ((PySwitch *)self)->before = py_hooks_off;
    if (py_hooks_off < level) py_hooks_off = level;
    Py_RETURN_NONE;
}
static PyObject *leave(PyObject *self, UNUSED PyObject *args)
{
    py_hooks_off = ((PySwitch *)self)->before;
    Py_RETURN_NONE;
}
static PyMethodDef context_methods[] = { { "__enter__", enter, METH_NOARGS, NULL },
                                         { "__exit__", leave, METH_VARARGS, NULL },
                                         { 0 } };
#define CONTEXT(variable, name, doc)                                                                                           \
    static PyTypeObject variable = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid._C." name,                                \
                                     .tp_basicsize = sizeof(PySwitch),                                                         \
                                     .tp_flags = Py_TPFLAGS_DEFAULT,                                                           \
                                     .tp_doc = doc,                                                                            \
                                     .tp_methods = context_methods,                                                            \
                                     .tp_new = PyType_GenericNew }
CONTEXT(no_subclass_type, "DisableTorchFunctionSubclass", "A context in which classes do not take over calls; modes do.");
CONTEXT(no_hooks_type, "DisableTorchFunction", "A context in which neither classes nor modes take over calls.");

/* --- Overridable: calls its function unless an argument takes over ------------------------------------------------------------------ */
typedef struct {
    PyObject_HEAD vectorcallfunc call;
    PyObject                    *function, *weakrefs;
} PyOverridable;

static PyObject *overridable_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    PyObject *result = py_try_override(self, args, PyVectorcall_NARGS(nargs), names);
    if (result || PyErr_Occurred()) return result;
    return PyObject_Vectorcall(((PyOverridable *)self)->function, args, nargs, names);
}
static PyObject *overridable_new(PyTypeObject *type, PyObject *args, UNUSED PyObject *kwargs)
{
    PyObject *function;
    if (!PyArg_ParseTuple(args, "O:overridable", &function)) return NULL;
    PyOverridable *self = (PyOverridable *)type->tp_alloc(type, 0);
    if (self) self->call = overridable_call, self->function = Py_NewRef(function);
    return (PyObject *)self;
}
static int overridable_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((PyOverridable *)self)->function);
    return 0;
}
static int overridable_clear(PyObject *self)
{
    Py_CLEAR(((PyOverridable *)self)->function);
    return 0;
}
static void overridable_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (((PyOverridable *)self)->weakrefs) PyObject_ClearWeakRefs(self);
    overridable_clear(self);
    Py_TYPE(self)->tp_free(self);
}
static PyObject *overridable_getattro(PyObject *self, PyObject *name) /* __doc__, __module__ and all others: the function's */
{
    const char *text = PyUnicode_AsUTF8(name);
    bool        own = text && (!strcmp(text, "__wrapped__") || !strcmp(text, "__reduce__") || !strcmp(text, "__reduce_ex__") ||
                        !strcmp(text, "__class__"));
    return own ? PyObject_GenericGetAttr(self, name) : PyObject_GetAttr(((PyOverridable *)self)->function, name);
}
static PyObject *overridable_repr(PyObject *self) { return PyObject_Repr(((PyOverridable *)self)->function); }
static PyObject *overridable_get(PyObject *self, PyObject *instance, UNUSED PyObject *type)
{
    return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}
static PyObject *overridable_reduce(PyObject *self, UNUSED PyObject *unused) /* pickled by name, as a function */
{
    return PyObject_GetAttrString(((PyOverridable *)self)->function, "__qualname__");
}
static PyMethodDef  overridable_methods[] = { { "__reduce__", overridable_reduce, METH_NOARGS, NULL }, { 0 } };
static PyMemberDef  overridable_members[] = { { "__wrapped__", T_OBJECT, offsetof(PyOverridable, function), READONLY, NULL },
                                              { 0 } };
static PyTypeObject overridable_type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid._C.overridable",
                                         .tp_basicsize = sizeof(PyOverridable),
                                         .tp_vectorcall_offset = offsetof(PyOverridable, call),
                                         .tp_weaklistoffset = offsetof(PyOverridable, weakrefs),
                                         .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC,
                                         .tp_doc = "A function whose tensor arguments may take over the call.",
                                         .tp_call = PyVectorcall_Call,
                                         .tp_new = overridable_new,
                                         .tp_dealloc = overridable_dealloc,
                                         .tp_traverse = overridable_traverse,
                                         .tp_clear = overridable_clear,
                                         .tp_getattro = overridable_getattro,
                                         .tp_descr_get = overridable_get,
                                         .tp_repr = overridable_repr,
                                         .tp_methods = overridable_methods,
                                         .tp_members = overridable_members };

/* --- questions --------------------------------------------------------------------------------------------------------------------- */
static bool any_hooked(PyObject *const *args, Py_ssize_t n)
{
    if (py_modes_active()) return true;
    for (Py_ssize_t i = 0; i < n && py_hooks_off == PY_HOOKS_ON; i++)
        if (Py_TYPE(args[i]) != &PyTensor_Type && py_has_hook(args[i])) return true;
    return false;
}
static PyObject *has_unary(UNUSED PyObject *m, PyObject *o) { return PyBool_FromLong(any_hooked(&o, 1)); }
static PyObject *has_variadic(UNUSED PyObject *m, PyObject *const *args, Py_ssize_t n)
{
    return PyBool_FromLong(any_hooked(args, n));
}
static PyObject *has_any(UNUSED PyObject *m, PyObject *relevant)
{
    PyObject *items = PySequence_Fast(relevant, "has_torch_function: expected a sequence");
    if (!items) return NULL;
    bool any = any_hooked(PySequence_Fast_ITEMS(items), PySequence_Fast_GET_SIZE(items));
    Py_DECREF(items);
    return PyBool_FromLong(any);
}

static PyObject *overloaded(UNUSED PyObject *m, PyObject *relevant)
{
    PyObject *items = PySequence_Tuple(relevant), *found = items ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; found && i < PyTuple_GET_SIZE(items); i++)
        if (py_collect_hooked(PyTuple_GET_ITEM(items, i), found) < 0) Py_CLEAR(found);
    Py_XDECREF(items);
    return found;
}

static PyObject *handle(UNUSED PyObject *m, PyObject *args, PyObject *kwargs) /* (func, relevant, *args, **kwargs) */
{
    if (PyTuple_GET_SIZE(args) < 2) return PyErr_Format(PyExc_TypeError, "handle_torch_function: expected func, relevant_args");
    PyObject *found = overloaded(NULL, PyTuple_GET_ITEM(args, 1)), *rest = PyTuple_GetSlice(args, 2, PY_SSIZE_T_MAX);
    PyObject *named = kwargs ? Py_NewRef(kwargs) : PyDict_New(), *result = NULL;
    if (found && rest && named) result = py_ask(found, PyTuple_GET_ITEM(args, 0), rest, named);
    Py_XDECREF(found);
    Py_XDECREF(rest);
    Py_XDECREF(named);
    return result;
}

/* --- modes ------------------------------------------------------------------------------------------------------------------------- */
static PyObject *push(UNUSED PyObject *m, PyObject *mode)
{
    if (py_push_mode(mode) < 0) return NULL;
    Py_RETURN_NONE;
}
static PyObject *pop(UNUSED PyObject *m, UNUSED PyObject *unused) { return py_pop_mode(); }
static PyObject *stack_length(UNUSED PyObject *m, UNUSED PyObject *unused)
{
    return PyLong_FromSsize_t(py_mode_stack ? PyList_GET_SIZE(py_mode_stack) : 0);
}
static PyObject *stack_at(UNUSED PyObject *m, PyObject *index)
{
    Py_ssize_t i = PyLong_AsSsize_t(index);
    if (i == -1 && PyErr_Occurred()) return NULL;
    if (!py_mode_stack) return PyErr_Format(PyExc_IndexError, "no mode is active");
    return Py_XNewRef(PyList_GetItem(py_mode_stack, i));
}
static PyObject *mode_enabled(UNUSED PyObject *m, UNUSED PyObject *unused) { return PyBool_FromLong(py_modes_active()); }
static PyObject *hooks_enabled(UNUSED PyObject *m, UNUSED PyObject *unused)
{
    return PyBool_FromLong(py_hooks_off == PY_HOOKS_ON);
}
static PyObject *all_disabled(UNUSED PyObject *m, UNUSED PyObject *unused)
{
    return PyBool_FromLong(py_hooks_off == PY_NO_HOOKS);
}

static PyMethodDef functions[] = {
    { "_has_torch_function", has_any, METH_O, "Whether one of a sequence, or a mode, takes over calls." },
    { "_has_torch_function_unary", has_unary, METH_O, "Whether an argument, or a mode, takes over calls." },
    { "_has_torch_function_variadic", (PyCFunction)(void (*)(void))has_variadic, METH_FASTCALL,
      "Whether one of the arguments, or a mode, takes over calls." },
    { "_get_overloaded_args", overloaded, METH_O,
      "Those of a sequence whose classes take over calls, in the order of asking." },
    { "_handle_torch_function", (PyCFunction)(void (*)(void))handle, METH_VARARGS | METH_KEYWORDS,
      "(func, relevant_args, *args, **kwargs): what modes and classes say." },
    { "_push_on_torch_function_stack", push, METH_O, "Enter a mode." },
    { "_pop_torch_function_stack", pop, METH_NOARGS, "Leave the innermost mode; returns it." },
    { "_len_torch_function_stack", stack_length, METH_NOARGS, "How many modes are active." },
    { "_get_function_stack_at", stack_at, METH_O, "An active mode, the outermost at 0." },
    { "_is_torch_function_mode_enabled", mode_enabled, METH_NOARGS, "Whether a mode is active." },
    { "_is_torch_function_enabled", hooks_enabled, METH_NOARGS, "Whether classes may take over calls." },
    { "_is_torch_function_all_disabled", all_disabled, METH_NOARGS, "Whether neither classes nor modes take over calls." },
    { 0 },
};

int py_add_override_types(PyObject *module)
{
    PyTypeObject *const types[] = { &no_subclass_type, &no_hooks_type, &overridable_type };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (PyModule_AddType(module, types[i]) < 0) return -1;
    return PyModule_AddFunctions(module, functions);
}

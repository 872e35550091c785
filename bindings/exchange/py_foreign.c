/* Python callables that the engine holds: hooks, packed tensors, and the switches of anomaly mode. */
#include "../autograd/py_autograd.h"

/* --- to and from the engine --------------------------------------------------------------------------------------------------- */

int py_foreign_failed(void) { return lc_fail_int(LC_ForeignError, "a Python function raised"); }

/* Steals the object. A new reference for a Tensor, LC_NONE for None; NULL after lc_fail(ForeignError). */
static lc_tensor *py_taken(PyObject *result)
{
    lc_tensor *t = NULL;
    if (result == Py_None) t = lc_retain(LC_NONE);
    else if (result && py_is_tensor(result)) t = lc_retain(py_tensor(result));
    else if (result) PyErr_Format(PyExc_TypeError, "expected a Tensor or None, got %s", Py_TYPE(result)->tp_name);
    Py_XDECREF(result);
    if (!t) py_foreign_failed();
    return t;
}

static PyObject *wrapped(lc_tensor *t) { return t == LC_NONE ? Py_NewRef(Py_None) : py_wrap(lc_retain(t)); }

PyObject *py_tensors(lc_tensor *const *ts, int n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) {
        PyObject *item = wrapped(ts[i]);
        if (item) PyTuple_SET_ITEM(tuple, i, item);
        else Py_CLEAR(tuple);
    }
    return tuple;
}

int py_visit(void *object, void *context)
{
    py_visitor *v = context;
    return v->visit(object, v->arg);
}

static void foreign_drop(lc_object *object)
{
    lc_foreign *f = (lc_foreign *)object;
    PyObject   *payload = f->payload;
    lc_free(f, sizeof *f);
    Py_DECREF(payload);
}

lc_foreign *py_foreign(PyObject *payload)
{
    lc_foreign *f = lc_alloc(sizeof *f);
    if (f) *f = (lc_foreign){ .object = { 1, foreign_drop }, .payload = Py_NewRef(payload) };
    return f;
}

/* --- hooks ------------------------------------------------------------------------------------------------------------------------ */

static PyObject *name_of(PyObject *callee)
{
    PyObject *name = PyObject_GetAttrString(callee, "__name__");
    if (name) return name;
    PyErr_Clear();
    return PyObject_Str(callee);
}

static int check_replacement(PyObject *callee, const lc_tensor *made, const lc_tensor *g)
{
    const char *what = !lc_same_shape(made, g)                    ? "size"
                       : made->dtype != g->dtype                  ? "type"
                       : !lc_same_device(made->device, g->device) ? "device"
                                                                  : NULL;
    if (!what) return 0;
    PyObject *name = name_of(callee);
    if (name) PyErr_Format(PyExc_RuntimeError, "hook '%U' has changed the %s of value", name, what);
    Py_XDECREF(name);
    return py_foreign_failed();
}

static lc_tensor *call_grad_hook(void *payload, lc_tensor *g)
{
    PyObject *grad = wrapped(g), *result = grad ? PyObject_CallOneArg(payload, grad) : NULL;
    Py_XDECREF(grad);
    if (result && result != Py_None && !py_is_tensor(result)) {
        PyErr_Format(PyExc_TypeError, "expected Variable, but hook returned '%s'", Py_TYPE(result)->tp_name);
        Py_CLEAR(result);
    }
    if (g == LC_NONE && result && result != Py_None) {
        PyErr_SetString(PyExc_RuntimeError, "can't replace a None gradient with a non-None value");
        Py_CLEAR(result);
    }
    lc_tensor *made = py_taken(result);
    if (made && made != LC_NONE && check_replacement(payload, made, g) < 0) lc_release(made), made = NULL;
    return made;
}

static lc_tensor *call_leaf_hook(void *payload, lc_tensor *leaf) /* post accumulate: its return value is ignored */
{
    PyObject *param = wrapped(leaf), *result = param ? PyObject_CallOneArg(payload, param) : NULL;
    Py_XDECREF(param);
    Py_XDECREF(result);
    return result ? lc_retain(LC_NONE) : (py_foreign_failed(), NULL);
}

/* The hook's return value replaces ts[]; scoped. */
static int replace(PyObject *callee, PyObject *answer, lc_tensor **ts, int n)
{
    if (answer == Py_None) return 0;
    PyObject *tuple = PyTuple_Check(answer) ? Py_NewRef(answer) : PyTuple_Pack(1, answer);
    int       rc = tuple ? 0 : -1;
    if (rc == 0 && PyTuple_GET_SIZE(tuple) != n) {
        PyErr_Format(PyExc_RuntimeError, "hook %R has returned an incorrect number of values (got %zd, but expected %d)",
                     callee, PyTuple_GET_SIZE(tuple), n);
        rc = -1;
    }
    for (int i = 0; i < n && rc == 0; i++) {
        PyObject  *item = PyTuple_GET_ITEM(tuple, i);
        lc_tensor *t = py_taken(Py_NewRef(item));
        if (!t || (t != LC_NONE && ts[i] != LC_NONE && check_replacement(callee, t, ts[i]) < 0)) rc = -1;
        if (rc == 0) ts[i] = lc_scoped(t);
        else lc_release(t);
    }
    Py_XDECREF(tuple);
    return rc;
}

static int call_node_hook(void *payload, lc_tensor **changed, int n_changed, lc_tensor *const *other, int n_other)
{
    PyObject *first = py_tensors(changed, n_changed), *second = other && first ? py_tensors(other, n_other) : NULL,
             *answer = NULL;
    if (first && (second || !other)) answer = PyObject_CallFunctionObjArgs(payload, first, second, NULL);
    int rc = answer ? replace(payload, answer, changed, n_changed) : -1;
    Py_XDECREF(first);
    Py_XDECREF(second);
    Py_XDECREF(answer);
    return rc < 0 ? py_foreign_failed() : 0;
}

lc_foreign *py_foreign_hook(PyObject *callee, lc_hook_kind kind)
{
    lc_foreign *f = py_foreign(callee);
    if (!f) return NULL;
    if (kind == LC_HOOK_GRAD) f->hook = call_grad_hook;
    else if (kind == LC_HOOK_POST_ACCUMULATE) f->hook = call_leaf_hook;
    else f->node_hook = call_node_hook;
    return f;
}

/* --- saved_tensors_hooks: per thread a list of (pack, unpack); the last one is in force ---------------------------------------- */

static PyObject *hook_stack(void) /* borrowed */
{
    PyObject *state = PyThreadState_GetDict(), *stack = state ? PyDict_GetItemString(state, "lucid.saved_hooks") : NULL;
    if (stack || !state) return stack;
    stack = PyList_New(0);
    if (stack && PyDict_SetItemString(state, "lucid.saved_hooks", stack) < 0) Py_CLEAR(stack);
    Py_XDECREF(stack);
    return stack;
}

static PyObject *push_saved_hooks(UNUSED PyObject *module, PyObject *args)
{
    PyObject *stack = hook_stack();
    if (PyTuple_GET_SIZE(args) != 2) return PyErr_Format(PyExc_TypeError, "expected a pack and an unpack function");
    if (!stack || PyList_Append(stack, args) < 0) return NULL;
    lc_modes |= LC_SAVED_HOOKS;
    Py_RETURN_NONE;
}

static PyObject *pop_saved_hooks(UNUSED PyObject *module, UNUSED PyObject *unused)
{
    PyObject  *stack = hook_stack();
    Py_ssize_t n = stack ? PyList_GET_SIZE(stack) : 0;
    if (!n) return PyErr_Format(PyExc_RuntimeError, "no saved_tensors_hooks are active");
    if (PyList_SetSlice(stack, n - 1, n, NULL) < 0) return NULL;
    if (n == 1) lc_modes &= ~(unsigned)LC_SAVED_HOOKS;
    Py_RETURN_NONE;
}

static lc_tensor *call_unpack(void *payload) /* payload: (unpack, what pack returned) */
{
    PyObject  *result = PyObject_CallOneArg(PyTuple_GET_ITEM((PyObject *)payload, 0), PyTuple_GET_ITEM((PyObject *)payload, 1));
    lc_tensor *t;
    if (result && !py_is_tensor(result)) {
        PyErr_Format(PyExc_TypeError, "Output of saved tensor unpack_hook expected to be a Tensor but got result of type %s",
                     Py_TYPE(result)->tp_name);
        Py_CLEAR(result);
    }
    t = py_taken(result);
    return t;
}

static lc_foreign *pack_saved(lc_tensor *t)
{
    PyObject *stack = hook_stack(), *pair = stack ? PyList_GET_ITEM(stack, PyList_GET_SIZE(stack) - 1) : NULL;
    PyObject *tensor = pair ? wrapped(t) : NULL,
             *packed = tensor ? PyObject_CallOneArg(PyTuple_GET_ITEM(pair, 0), tensor) : NULL;
    PyObject   *payload = packed ? PyTuple_Pack(2, PyTuple_GET_ITEM(pair, 1), packed) : NULL;
    lc_foreign *f = payload ? py_foreign(payload) : (py_foreign_failed(), NULL);
    if (f) f->unpack = call_unpack;
    Py_XDECREF(tensor);
    Py_XDECREF(packed);
    Py_XDECREF(payload);
    return f;
}

/* --- anomaly mode: a node's note is its metadata, a dict with the traceback -------------------------------------------------------- */

static PyObject *call_module(const char *module, const char *function, PyObject *arg) /* arg may be NULL; steals it */
{
    PyObject *m = PyImport_ImportModule(module), *f = m ? PyObject_GetAttrString(m, function) : NULL;
    PyObject *result = f ? PyObject_CallFunctionObjArgs(f, arg, NULL) : NULL;
    Py_XDECREF(m);
    Py_XDECREF(f);
    Py_XDECREF(arg);
    return result;
}

static void *take_note(void)
{
    PyObject *note = PyDict_New(), *lines = note ? call_module("traceback", "format_stack", NULL) : NULL;
    if (!lines || PyDict_SetItemString(note, "traceback_", lines) < 0) PyErr_Clear();
    Py_XDECREF(lines);
    return note;
}

static void drop_note(void *note) { Py_DECREF((PyObject *)note); }

static void report_note(const lc_node *n)
{
    PyObject *type, *value, *trace;
    char      name[64];
    PyErr_Fetch(&type, &value, &trace);
    PyObject *lines = PyDict_GetItemString(n->note, "traceback_"), *empty = PyUnicode_FromString("");
    PyObject *text = lines && empty ? PyUnicode_Join(empty, lines) : NULL;
    lc_node_name(n, name, sizeof name);
    if (text)
        PyErr_WarnFormat(PyExc_UserWarning, 1, "Error detected in %s. Traceback of forward call that caused the error:\n%U",
                         name, text);
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(empty);
    PyErr_Restore(type, value, trace);
}

static PyObject *set_anomaly(UNUSED PyObject *module, PyObject *args)
{
    int on, check_nan;
    if (!PyArg_ParseTuple(args, "pp:_set_anomaly", &on, &check_nan)) return NULL;
    lc_modes = on ? lc_modes | LC_ANOMALY : lc_modes & ~(unsigned)LC_ANOMALY;
    lc_anomaly_check_nan = check_nan;
    Py_RETURN_NONE;
}

static PyObject *anomaly(UNUSED PyObject *module, UNUSED PyObject *unused)
{
    return Py_BuildValue("(NN)", PyBool_FromLong((lc_modes & LC_ANOMALY) != 0), PyBool_FromLong(lc_anomaly_check_nan));
}

static int check_signals(void) { return PyErr_CheckSignals() < 0 ? py_foreign_failed() : 0; }

static PyMethodDef functions[] = {
    { "_push_saved_hooks", push_saved_hooks, METH_VARARGS, "Pack what is saved for backward from now on, on this thread." },
    { "_pop_saved_hooks", pop_saved_hooks, METH_NOARGS, "Undo the last _push_saved_hooks." },
    { "_set_anomaly", set_anomaly, METH_VARARGS, "Anomaly mode on or off, and whether it looks for NaN." },
    { "_anomaly", anomaly, METH_NOARGS, "(enabled, check_nan)" },
    { 0 },
};

int py_add_autograd(PyObject *module)
{
    lc_pack_saved = pack_saved;
    lc_note_take = take_note, lc_note_drop = drop_note, lc_note_report = report_note;
    lc_check_signals = check_signals;
    PyTypeObject *types[] = { &PyNode_Type, &PyHandle_Type, &PyCtx_Type, &PyUserFunction_Type };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const char *name = strrchr(types[i]->tp_name, '.') + 1;
        if (PyType_Ready(types[i]) < 0 || PyModule_AddObjectRef(module, name, (PyObject *)types[i]) < 0) return -1;
    }
    return py_add_node_methods() < 0 ? -1 : PyModule_AddFunctions(module, functions);
}

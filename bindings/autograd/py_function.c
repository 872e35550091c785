/* A user's Function. apply runs forward (unrecorded), then calls the op `function` with the results, which the tape records
 * like any op. The node holds the ctx; the ctx has a borrowed pointer to the node while that lives. save_for_backward keeps
 * tensors through the engine (lc_keep): version checks and saved_tensors_hooks apply as to any saved tensor. */
#include "py_autograd.h"
#include "op_calls.gen.h"

typedef struct {
    PyNode      node; /* node.n is borrowed */
    PyObject   *dict;
    PyObject   *to_save, *dirty, *constant; /* tuples of what the user named in forward, or NULL */
    PyObject   *needs;                      /* tuple of bools, one per argument of apply */
    lc_kept   **kept;                       /* n_kept; NULL where None was saved */
    lc_tensor **outputs;                    /* the results of forward, while apply runs */
    bool       *is_constant, *is_tensor;    /* per output; per argument */
    int         n_kept, n_out, n_args;
    bool        keeps_none, freed;
} PyCtx;
#define CONTEXT(self) ((PyCtx *)(self))

/* --- life ---------------------------------------------------------------------------------------------------------------------- */

static void free_kept(PyCtx *c)
{
    lc_kept **kept = c->kept;
    int       n = c->n_kept;
    c->kept = NULL, c->n_kept = 0;
    for (int i = 0; i < n; i++)
        if (kept[i]) lc_kept_drop(kept[i]);
    PyMem_Free(kept);
}

static int context_traverse(PyObject *self, visitproc visit, void *arg)
{
    PyCtx     *c = CONTEXT(self);
    py_visitor v = { visit, arg };
    Py_VISIT(c->dict);
    Py_VISIT(c->to_save);
    Py_VISIT(c->dirty);
    Py_VISIT(c->constant);
    Py_VISIT(c->needs);
    for (int i = 0; i < c->n_kept; i++)
        if (c->kept[i]) {
            int rc = lc_kept_visit(c->kept[i], py_visit, &v);
            if (rc) return rc;
        }
    return 0;
}

static int context_clear(PyObject *self)
{
    PyCtx *c = CONTEXT(self);
    Py_CLEAR(c->dict);
    Py_CLEAR(c->to_save);
    Py_CLEAR(c->dirty);
    Py_CLEAR(c->constant);
    free_kept(c);
    return 0;
}

static void context_dealloc(PyObject *self)
{
    PyCtx *c = CONTEXT(self);
    PyObject_GC_UnTrack(self);
    if (c->node.weakrefs) PyObject_ClearWeakRefs(self);
    context_clear(self);
    Py_CLEAR(c->needs);
    PyMem_Free(c->is_constant);
    PyMem_Free(c->is_tensor);
    Py_TYPE(self)->tp_free(self);
}

static void foreign_drop(lc_object *object) /* the node released its ctx */
{
    lc_foreign *f = (lc_foreign *)object;
    PyObject   *context = f->payload;
    lc_free(f, sizeof *f);
    CONTEXT(context)->node.n = NULL;
    Py_DECREF(context);
}

PyObject *py_context_of(const lc_node *n)
{
    const lc_signature *sig = n->op->args;
    const lc_value     *last = sig->n_params ? &n->args[sig->n_params - 1] : NULL;
    return last && last->tag == LC_IS_object && last->o->object.drop == foreign_drop ? last->o->payload : NULL;
}

/* --- methods of the ctx -------------------------------------------------------------------------------------------------- */

static PyObject *keep_tuple(PyObject **slot, PyObject *args)
{
    Py_XSETREF(*slot, Py_NewRef(args));
    Py_RETURN_NONE;
}
static PyObject *save_for_backward(PyObject *self, PyObject *args) { return keep_tuple(&CONTEXT(self)->to_save, args); }
static PyObject *mark_dirty(PyObject *self, PyObject *args) { return keep_tuple(&CONTEXT(self)->dirty, args); }
static PyObject *mark_constant(PyObject *self, PyObject *args) { return keep_tuple(&CONTEXT(self)->constant, args); }
static PyObject *set_materialize_grads(PyObject *self, PyObject *on)
{
    int yes = PyObject_IsTrue(on);
    if (yes < 0) return NULL;
    CONTEXT(self)->keeps_none = !yes;
    Py_RETURN_NONE;
}

static PyObject *get_saved_tensors(PyObject *self, UNUSED void *unused)
{
    PyCtx *c = CONTEXT(self);
    if (c->freed) return lc_fail_spent(), py_raise();
    if (!c->kept && c->to_save) return Py_NewRef(c->to_save); /* still in forward, or nothing was recorded */
    PyObject *tuple = PyTuple_New(c->n_kept);
    for (int i = 0; tuple && i < c->n_kept; i++) {
        PyObject *t = c->kept[i] ? py_wrap(lc_kept_get(c->kept[i], c->node.n)) : Py_NewRef(Py_None);
        if (t) PyTuple_SET_ITEM(tuple, i, t);
        else Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *get_needs(PyObject *self, UNUSED void *unused)
{
    return CONTEXT(self)->needs ? Py_NewRef(CONTEXT(self)->needs) : PyTuple_New(0);
}
static PyObject *get_materialize(PyObject *self, UNUSED void *unused) { return PyBool_FromLong(!CONTEXT(self)->keeps_none); }
static int       set_materialize(PyObject *self, PyObject *value, UNUSED void *unused)
{
    PyObject *done = value ? set_materialize_grads(self, value) : NULL;
    Py_XDECREF(done);
    return done ? 0 : -1;
}
static PyObject *optional(PyObject *o) { return Py_NewRef(o ? o : Py_None); }
static PyObject *get_to_save(PyObject *self, UNUSED void *unused) { return optional(CONTEXT(self)->to_save); }
static PyObject *get_dirty(PyObject *self, UNUSED void *unused) { return optional(CONTEXT(self)->dirty); }
static PyObject *get_constant(PyObject *self, UNUSED void *unused) { return optional(CONTEXT(self)->constant); }

/* --- the engine calls back -------------------------------------------------------------------------------------------------------- */

static int give_outputs(void *payload, lc_tensor **out, int n)
{
    for (int i = 0; i < n; i++) out[i] = lc_retain(CONTEXT(payload)->outputs[i]);
    return 0;
}

/* The class's own version of one of Function's static methods. New reference; NULL without exception: it has none. */
static PyObject *overridden(PyObject *cls, const char *name)
{
    PyObject *f = PyObject_GetAttrString(cls, name), *plain = PyObject_GetAttrString((PyObject *)&PyUserFunction_Type, name);
    if (f == plain) Py_CLEAR(f);
    Py_XDECREF(plain);
    PyErr_Clear();
    return f;
}

static PyObject *user_backward(PyObject *context) /* new reference */
{
    PyObject *cls = PyObject_GetAttrString(context, "_forward_cls"), *f = cls ? overridden(cls, "backward") : NULL;
    if (cls && !f) f = PyObject_GetAttrString(cls, "vjp");
    Py_XDECREF(cls);
    return f;
}

static PyObject *call_user_backward(PyObject *context, lc_tensor *const *g, int n)
{
    PyObject *f = user_backward(context), *grads = f ? py_tensors(g, n) : NULL, *args = grads ? PyTuple_New(n + 1) : NULL;
    PyObject *result = NULL;
    if (args) {
        PyTuple_SET_ITEM(args, 0, Py_NewRef(context));
        for (int i = 0; i < n; i++) PyTuple_SET_ITEM(args, i + 1, Py_NewRef(PyTuple_GET_ITEM(grads, i)));
        result = PyObject_Call(f, args, NULL);
    }
    Py_XDECREF(f);
    Py_XDECREF(grads);
    Py_XDECREF(args);
    if (result && !PyTuple_Check(result)) {
        PyObject *list = PyList_Check(result) ? PyList_AsTuple(result) : PyTuple_Pack(1, result);
        Py_SETREF(result, list);
    }
    return result;
}

/* One gradient per argument of apply; more are fine if they are None. */
static int check_count(PyObject *context, PyObject *grads)
{
    Py_ssize_t n = PyTuple_GET_SIZE(grads), expected = CONTEXT(context)->n_args, extra = n;
    while (extra > expected && PyTuple_GET_ITEM(grads, extra - 1) == Py_None) extra--;
    if (extra == expected) return 0;
    PyErr_Format(PyExc_RuntimeError, "function %s returned an incorrect number of gradients (expected %zd, got %zd)",
                 Py_TYPE(context)->tp_name, expected, n);
    return -1;
}

static int take_gradients(PyObject *context, PyObject *grads, lc_tensor **dx)
{
    PyCtx *c = CONTEXT(context);
    int    n = 0;
    for (int k = 0; k < c->n_args; k++) {
        PyObject *g = PyTuple_GET_ITEM(grads, k);
        if (!c->is_tensor[k] && g != Py_None) {
            PyErr_Format(
                PyExc_RuntimeError,
                "function %s returned a gradient different than None at position %d, but the corresponding forward input was "
                "not a Variable",
                Py_TYPE(context)->tp_name, k + 1);
            return lc_release_all(dx, n), -1;
        }
        if (!c->is_tensor[k]) continue;
        if (g != Py_None && !py_is_tensor(g)) {
            PyErr_Format(PyExc_RuntimeError, "expected Variable or None (got %s)", Py_TYPE(g)->tp_name);
            return lc_release_all(dx, n), -1;
        }
        dx[n++] = lc_retain(g == Py_None ? LC_NONE : py_tensor(g));
    }
    return 0;
}

static int call_backward(void *payload, lc_tensor *const *g, int n_out, UNUSED const bool *need, lc_tensor **dx,
                         UNUSED int n_in)
{
    PyObject *context = Py_NewRef(payload), *grads = call_user_backward(context, g, n_out);
    int       rc = grads && check_count(context, grads) == 0 ? take_gradients(context, grads, dx) : -1;
    Py_XDECREF(grads);
    Py_DECREF(context);
    return rc < 0 ? py_foreign_failed() : 0;
}

static void spend(void *payload)
{
    PyCtx *c = payload;
    if (!c->n_kept) return;
    c->freed = true;
    free_kept(c);
}

/* --- apply -------------------------------------------------------------------------------------------------------------------------- */

/* class CubeBackward(FunctionCtx), made at the first apply of Cube. New reference. */
static PyObject *context_class(PyObject *cls)
{
    if (cls == (PyObject *)&PyUserFunction_Type)
        return Py_NewRef(&PyCtx_Type); /* forward raises the error that it is missing */
    PyObject *found = PyDict_GetItemString(((PyTypeObject *)cls)->tp_dict, "_backward_cls");
    if (found) return Py_NewRef(found);
    PyObject *module = PyObject_GetAttrString(cls, "__module__"),
             *name = PyUnicode_FromFormat("%sBackward", ((PyTypeObject *)cls)->tp_name);
    PyObject *made = NULL;
    if (module && name)
        made = PyObject_CallFunction((PyObject *)&PyType_Type, "O(O){sOsOs()}", name, &PyCtx_Type, "_forward_cls", cls,
                                     "__module__", module, "__slots__");
    Py_XDECREF(module);
    Py_XDECREF(name);
    if (made && PyObject_SetAttrString(cls, "_backward_cls", made) < 0) Py_CLEAR(made);
    return made;
}

static int index_of(PyObject *tuple, PyObject *o)
{
    for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(tuple); i++)
        if (PyTuple_GET_ITEM(tuple, i) == o) return (int)i;
    return -1;
}

static int note_arguments(PyCtx *c, PyObject *args, bool *recording)
{
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    bool       any = false;
    c->n_args = (int)n;
    c->needs = PyTuple_New(n);
    c->is_tensor = PyMem_Calloc((size_t)n + 1, sizeof *c->is_tensor);
    if (!c->needs || !c->is_tensor) return PyErr_NoMemory(), -1;
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *o = PyTuple_GET_ITEM(args, k);
        c->is_tensor[k] = py_is_tensor(o);
        bool need = c->is_tensor[k] && lc_requires_grad(py_tensor(o));
        PyTuple_SET_ITEM(c->needs, k, PyBool_FromLong(need));
        any |= need;
    }
    *recording = any && lc_grad_enabled();
    return 0;
}

static PyObject *call_forward(PyObject *cls, PyObject *context, PyObject *args, bool separate)
{
    PyObject *forward = PyObject_GetAttrString(cls, "forward"), *result = NULL;
    if (forward && separate) {
        result = PyObject_Call(forward, args, NULL);
        PyObject *done = result ? PyObject_CallMethod(cls, "setup_context", "OOO", context, args, result) : NULL;
        if (!done) Py_CLEAR(result);
        Py_XDECREF(done);
    } else if (forward) {
        PyObject *with = PyTuple_New(PyTuple_GET_SIZE(args) + 1);
        if (with) {
            PyTuple_SET_ITEM(with, 0, Py_NewRef(context));
            for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args); k++)
                PyTuple_SET_ITEM(with, k + 1, Py_NewRef(PyTuple_GET_ITEM(args, k)));
            result = PyObject_Call(forward, with, NULL);
        }
        Py_XDECREF(with);
    }
    Py_XDECREF(forward);
    return result;
}

static int check_dirty(const PyCtx *c, PyObject *args, PyObject *outputs)
{
    for (Py_ssize_t i = 0; c->dirty && i < PyTuple_GET_SIZE(c->dirty); i++) {
        PyObject *o = PyTuple_GET_ITEM(c->dirty, i);
        if (!py_is_tensor(o))
            return PyErr_Format(PyExc_TypeError, "mark_dirty can only accept variables, but argument %zd is of type %s", i,
                                Py_TYPE(o)->tp_name),
                   -1;
        if (index_of(outputs, o) < 0)
            return PyErr_SetString(PyExc_RuntimeError,
                                   "Some elements marked as dirty during the forward method were not returned as output. "
                                   "The inputs that are modified inplace must all be outputs of the Function."),
                   -1;
        lc_tensor *t = py_tensor(o);
        if (index_of(args, o) >= 0 && lc_grad_enabled() && t->flags & LC_REQUIRES_GRAD && !t->node)
            return PyErr_SetString(PyExc_RuntimeError,
                                   "a leaf Variable that requires grad has been used in an in-place operation."),
                   -1;
    }
    return 0;
}

/* The tensor that apply returns for o: o itself, or a view with its own history if o is an unchanged input or was returned
 * before. */
static PyObject *own_output(const PyCtx *c, PyObject *args, PyObject *outputs, Py_ssize_t i)
{
    PyObject *o = PyTuple_GET_ITEM(outputs, i);
    if (!py_is_tensor(o)) return Py_NewRef(o);
    bool       dirty = index_of(c->dirty, o) >= 0, again = index_of(outputs, o) < i;
    lc_tensor *t = py_tensor(o), *view;
    if (t->view == LC_VIEW_NO_GRAD && !dirty) t->view = LC_VIEW_BY_FUNCTION;
    if (dirty && !again && t->storage) lc_bump_version(t);
    if (dirty || (index_of(args, o) < 0 && !again)) return Py_NewRef(o);
    unsigned modes = lc_modes;
    lc_modes |= LC_NO_GRAD;
    int rc = lc_call(&lc_op_alias, (lc_value[]){ { .tag = LC_IS_tensor, .t = t } }, &view);
    lc_modes = modes;
    if (rc < 0) return py_raise();
    view->view = LC_VIEW_BY_FUNCTION;
    return py_wrap(view);
}

/* The results of forward as the tuple that apply returns; *single: forward returned one value, not a tuple. */
static PyObject *own_outputs(const PyCtx *c, PyObject *args, PyObject *result, bool *single)
{
    *single = !PyTuple_Check(result) && !PyList_Check(result);
    PyObject *raw = *single ? PyTuple_Pack(1, result) : PySequence_Tuple(result), *own = NULL;
    if (raw && check_dirty(c, args, raw) == 0) own = PyTuple_New(PyTuple_GET_SIZE(raw));
    for (Py_ssize_t i = 0; own && i < PyTuple_GET_SIZE(raw); i++) {
        PyObject *o = own_output(c, args, raw, i);
        if (o) PyTuple_SET_ITEM(own, i, o);
        else Py_CLEAR(own);
    }
    Py_XDECREF(raw);
    return own;
}

static int keep_saved(PyCtx *c, lc_tensor *const *out)
{
    Py_ssize_t n = c->to_save ? PyTuple_GET_SIZE(c->to_save) : 0;
    if (!n) return 0;
    if (!(c->kept = PyMem_Calloc((size_t)n, sizeof *c->kept))) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PyTuple_GET_ITEM(c->to_save, i);
        int       output = c->n_out;
        c->n_kept = (int)i + 1;
        if (o == Py_None) continue;
        if (!py_is_tensor(o))
            return PyErr_Format(PyExc_TypeError, "save_for_backward can only save variables, but argument %zd is of type %s", i,
                                Py_TYPE(o)->tp_name),
                   -1;
        if (py_tensor(o)->flags & LC_INFERENCE)
            return py_fail(LucidError, "Inference tensors cannot be saved for backward. To work around you can make a clone to "
                                       "get a normal tensor and use it in autograd."),
                   -1;
        while (--output >= 0 && out[output] != py_tensor(o)) {}
        if (!(c->kept[i] = lc_keep(py_tensor(o), output >= 0 ? c->node.n : NULL, output))) return py_raise_int();
    }
    Py_CLEAR(c->to_save);
    return 0;
}

static lc_foreign *foreign_of(PyCtx *c)
{
    lc_foreign *f = lc_alloc(sizeof *f);
    if (f)
        *f = (lc_foreign){ .object = { 1, foreign_drop },
                           .payload = Py_NewRef((PyObject *)c),
                           .forward = give_outputs,
                           .backward = call_backward,
                           .spend = spend,
                           .name = Py_TYPE(c)->tp_name,
                           .n_out = c->n_out,
                           .constant = c->is_constant,
                           .keeps_none = c->keeps_none };
    return f;
}

/* inputs and outputs: the tensors among args and results. */
static int record(PyCtx *c, lc_tensor **in, int n_in, lc_tensor **out)
{
    LC_ARRAY(lc_tensor *, made, c->n_out);
    lc_foreign *f = made ? foreign_of(c) : NULL;
    if (!f) return py_raise_int();
    c->outputs = out;
    lc_value args[] = { { .tag = LC_IS_tensors, .n = n_in, .ts = in }, { .tag = LC_IS_object, .o = f } };
    int      rc = lc_call(&lc_op_function, args, made);
    c->outputs = NULL, c->node.n = f->node;
    if (rc < 0) py_raise();
    else {
        rc = keep_saved(c, out);
        lc_release_all(made, c->n_out);
    }
    lc_object_release(&f->object);
    return rc;
}

static int tensors_in(PyObject *tuple, lc_tensor **ts)
{
    int n = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (py_is_tensor(PyTuple_GET_ITEM(tuple, i))) ts[n++] = py_tensor(PyTuple_GET_ITEM(tuple, i));
    return n;
}

static int record_call(PyCtx *c, PyObject *args, PyObject *outputs)
{
    size_t      n_args = (size_t)PyTuple_GET_SIZE(args), n_out = (size_t)PyTuple_GET_SIZE(outputs);
    lc_tensor **in = PyMem_Malloc((n_args + n_out + 1) * sizeof *in), **out = in + n_args;
    c->is_constant = PyMem_Calloc(n_out + 1, sizeof *c->is_constant);
    if (!in || !c->is_constant) return PyMem_Free(in), PyErr_NoMemory(), -1;
    c->n_out = tensors_in(outputs, out);
    for (Py_ssize_t i = 0, k = 0; i < PyTuple_GET_SIZE(outputs); i++) {
        PyObject *o = PyTuple_GET_ITEM(outputs, i);
        if (py_is_tensor(o)) c->is_constant[k++] = index_of(c->constant, o) >= 0 || !lc_is_differentiable(py_tensor(o)->dtype);
    }
    int rc = c->n_out ? record(c, in, tensors_in(args, in), out) : 0;
    PyMem_Free(in);
    return rc;
}

/* Arguments with forward's defaults filled in: setup_context sees all of them. New reference. */
static PyObject *complete_arguments(PyObject *cls, PyObject *args, PyObject *kwargs)
{
    PyObject *inspect = PyImport_ImportModule("inspect"), *forward = inspect ? PyObject_GetAttrString(cls, "forward") : NULL;
    PyObject *signature = forward ? PyObject_CallMethod(inspect, "signature", "O", forward) : NULL;
    PyObject *bind = signature ? PyObject_GetAttrString(signature, "bind") : NULL,
             *bound = bind ? PyObject_Call(bind, args, kwargs) : NULL;
    PyObject *done = bound ? PyObject_CallMethod(bound, "apply_defaults", NULL) : NULL;
    PyObject *full = done ? PyObject_GetAttrString(bound, "args") : NULL;
    Py_XDECREF(inspect), Py_XDECREF(forward), Py_XDECREF(signature), Py_XDECREF(bind), Py_XDECREF(bound), Py_XDECREF(done);
    return full;
}

static PyObject *run_apply(PyObject *cls, PyObject *context, PyObject *args, bool separate)
{
    PyCtx   *c = CONTEXT(context);
    bool     recording, single;
    unsigned modes = lc_modes;
    if (note_arguments(c, args, &recording) < 0) return NULL;
    lc_modes |= LC_NO_GRAD;
    PyObject *result = call_forward(cls, context, args, separate);
    lc_modes = modes;
    PyObject *outputs = result ? own_outputs(c, args, result, &single) : NULL;
    Py_XDECREF(result);
    if (outputs && recording && record_call(c, args, outputs) < 0) Py_CLEAR(outputs);
    Py_CLEAR(c->dirty);
    Py_CLEAR(c->constant);
    if (!recording) Py_CLEAR(c->to_save);
    if (!outputs || !single) return outputs;
    PyObject *one = Py_NewRef(PyTuple_GET_ITEM(outputs, 0));
    Py_DECREF(outputs);
    return one;
}

static PyObject *function_apply(PyObject *cls, PyObject *args, PyObject *kwargs)
{
    PyObject *setup = overridden(cls, "setup_context");
    bool      separate = setup != NULL;
    Py_XDECREF(setup);
    if (kwargs && PyDict_GET_SIZE(kwargs) && !separate)
        return PyErr_Format(PyExc_TypeError, "%s.apply() takes no keyword arguments", ((PyTypeObject *)cls)->tp_name);
    PyObject *full = separate ? complete_arguments(cls, args, kwargs) : Py_NewRef(args),
             *type = full ? context_class(cls) : NULL;
    PyObject *context = type ? ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0) : NULL;
    PyObject *result = context ? run_apply(cls, context, full, separate) : NULL;
    Py_XDECREF(full);
    Py_XDECREF(type);
    Py_XDECREF(context);
    return result;
}

static PyObject *no_forward(UNUSED PyObject *self, UNUSED PyObject *args)
{
    return PyErr_Format(PyExc_NotImplementedError, "You must implement the forward function for custom autograd.Function.");
}
static PyObject *no_backward(UNUSED PyObject *self, UNUSED PyObject *args)
{
    return PyErr_Format(PyExc_NotImplementedError,
                        "You must implement either the backward or vjp method for your custom autograd.Function to "
                        "use it with backward mode AD.");
}
static PyObject *no_setup(UNUSED PyObject *self, UNUSED PyObject *args)
{
    return PyErr_Format(PyExc_NotImplementedError, "setup_context is not implemented.");
}

static PyMethodDef context_methods[] = {
    { "save_for_backward", save_for_backward, METH_VARARGS,
      "Keep tensors (or None) for backward: they come back as saved_tensors." },
    { "mark_dirty", mark_dirty, METH_VARARGS, "Name the inputs that forward wrote in place; they must be outputs too." },
    { "mark_non_differentiable", mark_constant, METH_VARARGS, "Name the outputs that have no gradient." },
    { "set_materialize_grads", set_materialize_grads, METH_O,
      "False: backward gets None, not zeros, for a gradient that did not arrive." },
    { 0 },
};
static PyGetSetDef context_attributes[] = {
    { "saved_tensors", get_saved_tensors, NULL, "What save_for_backward kept.", NULL },
    { "saved_variables", get_saved_tensors, NULL, "An old name of saved_tensors.", NULL },
    { "needs_input_grad", get_needs, NULL, "Per argument of apply: does it need a gradient?", NULL },
    { "materialize_grads", get_materialize, set_materialize, NULL, NULL },
    { "to_save", get_to_save, NULL, NULL, NULL },
    { "dirty_tensors", get_dirty, NULL, NULL, NULL },
    { "non_differentiable", get_constant, NULL, NULL, NULL },
    { "__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL },
    { 0 },
};
PyTypeObject PyCtx_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid.autograd.function.FunctionCtx",
                            .tp_basicsize = sizeof(PyCtx),
                            .tp_base = &PyNode_Type,
                            .tp_dealloc = context_dealloc,
                            .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                            .tp_doc = "What forward tells backward: save_for_backward, and attributes of your own.",
                            .tp_traverse = context_traverse,
                            .tp_clear = context_clear,
                            .tp_dictoffset = offsetof(PyCtx, dict),
                            .tp_methods = context_methods,
                            .tp_getset = context_attributes,
                            .tp_new = PyType_GenericNew };

static PyObject *no_call(UNUSED PyObject *self, UNUSED PyObject *args, UNUSED PyObject *kwargs)
{
    return PyErr_Format(PyExc_RuntimeError,
                        "Legacy autograd function with non-static forward method is deprecated. Please use new-style "
                        "autograd function with static forward method: call it by apply.");
}

static const char function_doc[] =
    "A differentiable function of your own: static methods forward(ctx, *args) and backward(ctx, *grads).\n\n"
    "forward puts on ctx what backward needs; backward returns a gradient (or None) per argument of forward. Call it by "
    "apply.\n\n"
    ">>> class Double(lucid.autograd.Function):\n"
    "...     @staticmethod\n"
    "...     def forward(ctx, x):\n"
    "...         return x * 2\n"
    "...     @staticmethod\n"
    "...     def backward(ctx, grad):\n"
    "...         return grad * 2\n"
    ">>> x = lucid.tensor([3.0], requires_grad=True)\n"
    ">>> Double.apply(x).sum().backward(); x.grad\n"
    "tensor([2.])";
static PyMethodDef function_methods[] = {
    { "apply", (PyCFunction)(void (*)(void))function_apply, METH_VARARGS | METH_KEYWORDS | METH_CLASS,
      "Run forward, and record it." },
    { "forward", no_forward, METH_VARARGS | METH_STATIC,
      "forward(ctx, *args), or forward(*args) beside setup_context(ctx, inputs, output)." },
    { "backward", no_backward, METH_VARARGS | METH_STATIC,
      "backward(ctx, *grads): a gradient (or None) per argument of forward." },
    { "vjp", no_backward, METH_VARARGS | METH_STATIC, "Another name of backward." },
    { "setup_context", no_setup, METH_VARARGS | METH_STATIC, "setup_context(ctx, inputs, output): keep what backward needs." },
    { 0 },
};
PyTypeObject PyUserFunction_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid.autograd.function.Function",
                                     .tp_basicsize = sizeof(PyCtx),
                                     .tp_base = &PyCtx_Type,
                                     .tp_dealloc = context_dealloc,
                                     .tp_call = no_call,
                                     .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                                     .tp_doc = function_doc,
                                     .tp_traverse = context_traverse,
                                     .tp_clear = context_clear,
                                     .tp_dictoffset = offsetof(PyCtx, dict),
                                     .tp_methods = function_methods,
                                     .tp_new = PyType_GenericNew };

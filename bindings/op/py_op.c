/* PyOp: one object is both lucid.sinh and Tensor.sinh. The vectorcall below serves every op; argument tables drive it. */
#include "../py.h"
#include <structmember.h>

static PyObject *by_name, *return_types; /* public name with its namespace ("nn.functional.relu") to PyOp */

const lc_op *py_engine_op(const char *name)
{
    for (int id = 0; id < LC_OP_COUNT; id++)
        if (!strcmp(lc_ops[id]->name, name)) return lc_ops[id];
    return NULL;
}

PyOp *py_op_named(const char *name) { return (PyOp *)PyDict_GetItemString(by_name, name); }

/* Several results: a named tuple; a plain tuple for a list or if the names are internal. Takes the references in out. */
static PyObject *pack(const py_overload *o, lc_tensor **out, int n)
{
    PyTypeObject *tuple = o->tuple;
    if (n == 1 && o->op->args->alone) return py_wrap(out[0]);
    if (o->op->args->n_out == 0) Py_RETURN_NONE;
    PyObject *result = tuple ? PyStructSequence_New(tuple) : PyTuple_New(n);
    for (int i = 0; i < n; i++) {
        PyObject *o = py_wrap(out[i]);
        if (result && o && tuple) PyStructSequence_SET_ITEM(result, i, o);
        else if (result && o) PyTuple_SET_ITEM(result, i, o);
        else {
            Py_XDECREF(o);
            Py_CLEAR(result);
        }
    }
    return result;
}

static PyObject *invoke_many(const py_overload *o, const lc_value *args)
{
    lc_tensor *small[PY_OUTPUTS], **out = small;
    int        n = lc_count(o->op, args);
    if (n < 0) return py_raise();
    if (n > PY_OUTPUTS && !(out = PyMem_Malloc((size_t)n * sizeof *out))) return PyErr_NoMemory();
    PyObject *result = lc_call(o->op, args, out) < 0 ? py_raise() : pack(o, out, n);
    if (out != small) PyMem_Free(out);
    return result;
}

/* layout=sparse_...: the op says on the meta device what it would make; a sparse tensor of that has no entries. */
static COLD PyObject *make_sparse(const lc_op *op, py_args *a)
{
    lc_tensor *like = NULL;
    if (!op->empty)
        return PyErr_Format(PyExc_NotImplementedError, "%s(...) is not implemented for sparse layouts", py_public_name(op));
    for (int k = 0; k < op->args->n_params; k++) {
        if (op->args->params[k].kind != LC_IS_device) continue;
        if (a->v[k].tag == LC_IS_device && a->v[k].dev.kind != LC_CPU)
            return PyErr_Format(PyExc_NotImplementedError, "sparse tensors exist on the CPU alone");
        a->v[k] = (lc_value){ .tag = LC_IS_device, .dev = { .kind = LC_META } };
    }
    if (lc_call(op, a->v, &like) < 0) return py_raise();
    PyObject *module = PyImport_ImportModule("lucid.sparse.construct"), *given = module ? py_wrap(like) : NULL;
    PyObject *made = given ? PyObject_CallMethod(module, "_without_entries", "OOOO", given, (PyObject *)&py_layouts[a->layout],
                                                 a->requires_grad ? Py_True : Py_False, a->pin_memory ? Py_True : Py_False)
                           : NULL;
    if (!module) lc_release(like);
    Py_XDECREF(given);
    Py_XDECREF(module);
    return made;
}

static PyObject *invoke_out(const py_overload *o, py_args *a)
{
    if (a->n_out < 0) return make_sparse(o->op, a);
    int n = lc_count(o->op, a->v);
    if (n < 0) return py_raise();
    if (n != a->n_out)
        return PyErr_Format(PyExc_TypeError, "%s(): out= needs %d tensors, got %d", py_public_name(o->op), n, a->n_out);
    if (lc_call_out(o->op, a->v, a->out) < 0) return py_raise();
    if (a->requires_grad && lc_set_requires_grad(a->out[0], true) < 0) return lc_release_all(a->out, n), py_raise();
    if (o->op->args->n_out < 0) { /* a list of tensors was written: PyTorch returns nothing */
        lc_release_all(a->out, n);
        Py_RETURN_NONE;
    }
    return o->op->args->n_out == 1 ? py_wrap(a->out[0]) : pack(o, a->out, n);
}

static PyObject *finish_factory(const py_args *a, lc_tensor *t)
{
    if (a->pin_memory && !(t = py_pinned_instead(t))) return NULL;
    if (a->requires_grad && lc_set_requires_grad(t, true) < 0) return lc_release(t), py_raise();
    return py_wrap(t);
}

static PyObject *invoke(const py_overload *o, py_args *a)
{
    lc_tensor   *out;
    const lc_op *op = o->op;
    if (a->n_out) return invoke_out(o, a);
    if (op->args->n_out != 1) return invoke_many(o, a->v);
    if (o->in_place && a->v[op->args->n_params - 1].b) op = o->in_place;
    if (lc_call(op, a->v, &out) < 0) return py_raise();
    return a->requires_grad || a->pin_memory ? finish_factory(a, out) : py_wrap(out);
}

lc_tensor *py_call_raw(const lc_op *op, const lc_value *args, int n)
{
    lc_value   v[PY_PARAMS];
    lc_tensor *out;
    for (int k = 0; k < op->args->n_params; k++) v[k] = k < n ? args[k] : op->args->params[k].preset;
    if (lc_call(op, v, &out) < 0) return py_raise(), NULL;
    return out;
}

PyObject *py_call(const lc_op *op, const lc_value *args, int n)
{
    lc_value v[PY_PARAMS];
    if (op->args->n_out == 1) {
        lc_tensor *t = py_call_raw(op, args, n);
        return t ? py_wrap(t) : NULL;
    }
    for (int k = 0; k < op->args->n_params; k++) v[k] = k < n ? args[k] : op->args->params[k].preset;
    return invoke_many(&(py_overload){ .op = op }, v);
}

/* NULL without an exception: no overload fits. */
static PyObject *call_overloads(const PyOp *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    for (int i = 0; i < self->n; i++) {
        py_args a;
        py_args_start(&a);
        int       fit = py_bind(&self->overload[i], args, n, names, &a);
        PyObject *result = fit == 1 ? invoke(&self->overload[i], &a) : NULL;
        py_args_end(&a);
        if (fit) return result;
    }
    return NULL;
}

/* The result of an override, else of the op; NULL without an exception: no overload fits. Most programs have no override:
 * then an object with one is noticed only when the op does not accept it. */
static PyObject *call(const PyOp *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *result = py_overrides ? py_try_override((PyObject *)self, args, n, names) : NULL;
    if (!result && !PyErr_Occurred()) result = call_overloads(self, args, n, names);
    if (!result && !PyErr_Occurred() && !py_overrides) result = py_try_override((PyObject *)self, args, n, names);
    return result;
}

static PyObject      *op_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names);
static COLD PyObject *call_narrow(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *narrow = py_narrow(args, n + (names ? PyTuple_GET_SIZE(names) : 0), false), *result = NULL;
    if (narrow) result = op_call(self, PySequence_Fast_ITEMS(narrow), (size_t)n, names);
    Py_XDECREF(narrow);
    return result;
}
/* Once more, with tensors made of what another library's objects hold; NULL without an exception: there are none. */
static COLD PyObject *call_with_foreign(PyOp *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    uint32_t  allowed = self->overload[0].op->any_library;
    PyObject *held[32], *used[32], *result = NULL;
    int       n_held = 0;
    if (!allowed || n > 32 || names) return NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *t = allowed >> i & 1 ? py_foreign_tensor(args[i]) : NULL;
        used[i] = t ? held[n_held++] = t : args[i];
    }
    if (n_held && !PyErr_Occurred()) result = call(self, used, n, NULL);
    while (n_held) Py_DECREF(held[--n_held]);
    return result;
}

/* PYTORCH-QUIRK: in the order of old, x.add_(2, y), numbers stand before the tensors that they scale; PyTorch still takes them
 * for alpha=, beta= and value=, and says so. NULL without an exception: this is no such call. */
static COLD PyObject *call_numbers_first(PyOp *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    enum { MOST = 16 };
    const py_overload *o = &self->overload[self->n - 1];
    const lc_param    *params = o->op->args->params;
    Py_ssize_t         given = names ? PyTuple_GET_SIZE(names) : 0, tensors = 0, numbers = 0;
    PyObject          *used[MOST], *scale[2], *keys[MOST];
    if (n + given > MOST || n < 3 || !py_is_tensor(args[n - 1])) return NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (py_is_tensor(args[i])) used[tensors++] = args[i];
        else if (tensors < 2 && numbers < 2 && PyNumber_Check(args[i]) && !PyBool_Check(args[i])) scale[numbers++] = args[i];
        else return NULL;
    }
    for (Py_ssize_t i = 0; i < given; i++) used[tensors + i] = args[n + i], keys[i] = PyTuple_GET_ITEM(names, i);
    Py_ssize_t named = 0;
    for (int k = o->n_positional; k < o->op->args->n_params && named < numbers; k++)
        if (params[k].kind == LC_IS_number)
            keys[given + named] = o->names[k], used[tensors + given + named] = scale[named], named++;
    if (tensors != o->n_positional || !numbers || named < numbers) return NULL;
    if (PyErr_WarnFormat(PyExc_UserWarning, 1, "%s(): a number before the tensors is deprecated; give it as %U=",
                         py_public_name(o->op), keys[given]) < 0)
        return NULL;
    PyObject *all = PyTuple_New(given + numbers);
    for (Py_ssize_t i = 0; all && i < given + numbers; i++) PyTuple_SET_ITEM(all, i, Py_NewRef(keys[i]));
    PyObject *result = all ? call(self, used, tensors, all) : NULL;
    Py_XDECREF(all);
    return result;
}

static PyObject *op_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargs);
    PyObject  *result = call((PyOp *)self, args, n, names);
    if (!result && !PyErr_Occurred()) result = call_with_foreign((PyOp *)self, args, n, names);
    if (!result && !PyErr_Occurred()) result = call_numbers_first((PyOp *)self, args, n, names);
    if (!result && py_wide_number && PyErr_Occurred() == PyExc_OverflowError) return call_narrow(self, args, n, names);
    return result || PyErr_Occurred() ? result : py_misfit((PyOp *)self, args, n, names);
}

PyObject *py_call_operator(PyOp *op, PyObject *const *args, Py_ssize_t n)
{
    py_nobody_answered = false;
    PyObject *result = call(op, args, n, NULL);
    if (!result && py_nobody_answered) PyErr_Clear(); /* the method of the other operand is next */
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_NotImplemented);
}

static PyObject *op_get(PyObject *self, PyObject *instance, UNUSED PyObject *type)
{
    return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

static const lc_op   *first(PyObject *self) { return ((PyOp *)self)->overload[0].op; }
static PyObject      *op_name(PyObject *self, UNUSED void *unused) { return PyUnicode_FromString(py_public_name(first(self))); }
static COLD PyObject *documented(PyObject   *self,
                                 const char *function) /* lucid._docs makes it; None: the op table lacks the op */
{
    PyObject *docs = PyImport_ImportModule("lucid._docs"), *made = NULL;
    if (docs)
        made = PyObject_CallMethod(docs, function, "ss", first(self)->ns ? first(self)->ns : "", py_public_name(first(self)));
    Py_XDECREF(docs);
    return made;
}
static PyObject *op_doc(PyObject *self, UNUSED void *unused)
{
    PyObject *text = documented(self, "text");
    if (text != Py_None) return text;
    Py_DECREF(text);
    return PyUnicode_FromFormat("%s\n\n%s", first(self)->sig, first(self)->doc ? first(self)->doc : "");
}
static PyObject *op_text_signature(PyObject *self, UNUSED void *unused)
{
    return PyUnicode_FromString(first(self)->args->text);
}
static PyObject *op_signature(PyObject *self, UNUSED void *unused) { return documented(self, "signature"); }
static PyObject *op_kwdefaults(PyObject *self, UNUSED void *unused) { return documented(self, "keyword_defaults"); }
static PyObject *op_module(PyObject *self, UNUSED void *unused)
{
    return first(self)->ns ? PyUnicode_FromFormat("lucid.%s", first(self)->ns) : PyUnicode_FromString("lucid");
}
static PyObject *op_repr(PyObject *self) { return PyUnicode_FromFormat("<op %s>", first(self)->sig); }

/* Pickled by name; an op that is a method only is found on the type. */
static PyObject *op_reduce(PyObject *self, UNUSED PyObject *unused)
{
    if (first(self)->function) return op_name(self, NULL);
    PyObject *getattr = PyDict_GetItemString(PyEval_GetBuiltins(), "getattr");
    return Py_BuildValue("O(Os)", getattr, (PyObject *)&PyTensor_Type, py_public_name(first(self)));
}

static PyGetSetDef op_attributes[] = { { "__name__", op_name, NULL, NULL, NULL },
                                       { "__qualname__", op_name, NULL, NULL, NULL },
                                       { "__doc__", op_doc, NULL, NULL, NULL },
                                       { "__module__", op_module, NULL, NULL, NULL },
                                       { "__signature__", op_signature, NULL, NULL, NULL },
                                       { "__kwdefaults__", op_kwdefaults, NULL, NULL, NULL },
                                       { "__text_signature__", op_text_signature, NULL, NULL, NULL },
                                       { 0 } };
static PyMethodDef op_methods[] = { { "__reduce__", op_reduce, METH_NOARGS, NULL }, { 0 } };
PyTypeObject       PyOp_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid.Op",
                                 .tp_basicsize = sizeof(PyOp),
                                 .tp_dictoffset = offsetof(PyOp, dict),
                                 .tp_vectorcall_offset = offsetof(PyOp, call),
                                 .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                                 .tp_call = PyVectorcall_Call,
                                 .tp_descr_get = op_get,
                                 .tp_repr = op_repr,
                                 .tp_getset = op_attributes,
                                 .tp_methods = op_methods };

static PyObject *tuple_repr(PyObject *self) /* one field per line, as PyTorch */
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject     *text = PyUnicode_FromFormat("%s(", type->tp_name);
    for (Py_ssize_t i = 0; text && i < PyTuple_GET_SIZE(self); i++)
        Py_SETREF(text,
                  PyUnicode_FromFormat("%U%s\n%s=%R", text, i ? "," : "", type->tp_members[i].name, PyTuple_GET_ITEM(self, i)));
    if (text) Py_SETREF(text, PyUnicode_FromFormat("%U)", text));
    return text;
}

static PyTypeObject *tuple_type(const lc_op *op)
{
    static char            name[LC_OP_COUNT][64];
    PyStructSequence_Field fields[PY_OUTPUTS + 1] = { { 0 } };
    PyStructSequence_Desc  desc = { name[op->id], op->doc, fields, op->args->n_out };
    const char            *as = op->ns ? op->name : py_public_name(op); /* linalg.qr gives a linalg_qr, as PyTorch's */
    snprintf(name[op->id], sizeof name[0], "lucid.return_types.%s", as);
    for (int i = 0; i < op->args->n_out; i++) fields[i].name = op->args->out_names[i];
    PyTypeObject *type = PyStructSequence_NewType(&desc);
    if (type) type->tp_repr = tuple_repr;
    if (type && PyDict_SetItemString(return_types, as, (PyObject *)type) < 0) Py_CLEAR(type);
    return type;
}

/* Ops whose result is a Python value (-> bool): reads the engine's tensor and releases it. */
static PyObject *item_call(PyObject *self, PyObject *const *args, size_t n, PyObject *names)
{
    PyObject *result = op_call(self, args, n, names), *value = NULL;
    if (result && py_is_tensor(result)) value = py_item(py_tensor(result));
    else return result;
    Py_DECREF(result);
    return value;
}

static PyOp *op_object(PyObject *key) /* borrowed: kept in by_name */
{
    PyOp *known = (PyOp *)PyDict_GetItemWithError(by_name, key);
    if (known || PyErr_Occurred()) return known;
    PyOp *made = PyObject_New(PyOp, &PyOp_Type);
    if (!made) return NULL;
    made->call = op_call, made->n = 0, made->dict = NULL;
    int failed = PyDict_SetItem(by_name, key, (PyObject *)made);
    Py_DECREF(made);
    return failed ? NULL : made;
}

/* Publishes an op: as a function of the module, or in the dict `_namespaced` under "nn.functional.relu"; and as a method. */
static int place(PyObject *module, PyObject *namespaced, const lc_op *op, PyObject *name, PyObject *key, PyOp *self)
{
    if (op->function && op->ns && PyDict_SetItem(namespaced, key, (PyObject *)self) < 0) return -1;
    if (op->function && !op->ns && PyDict_SetItem(PyModule_GetDict(module), name, (PyObject *)self) < 0) return -1;
    return op->method ? PyDict_SetItem(PyTensor_Type.tp_dict, name, (PyObject *)self) : 0;
}

static int add_named(PyObject *module, PyObject *namespaced, const lc_op *op, PyObject *name, PyObject *key)
{
    PyOp *self = op_object(key);
    if (!self) return -1;
    if (self->n == PY_OVERLOADS) return PyErr_Format(PyExc_SystemError, "too many overloads of %U", key), -1;
    py_overload *o = &self->overload[self->n];
    if (py_prepare_overload(o, op) < 0) return -1;
    if (op->args->n_out > 1 && !op->unnamed && !(o->tuple = tuple_type(op))) return -1;
    self->n++;
    if (op->args->item) self->call = item_call;
    return place(module, namespaced, op, name, key, self);
}

static int add_op(PyObject *module, PyObject *namespaced, const lc_op *op)
{
    const char *space = op->ns ? op->ns : op->function ? "" : "Tensor"; /* Tensor.where is not lucid.where */
    PyObject   *name = PyUnicode_InternFromString(py_public_name(op));
    PyObject   *key = name && *space ? PyUnicode_FromFormat("%s.%U", space, name) : Py_XNewRef(name);
    int         rc = key ? add_named(module, namespaced, op, name, key) : -1;
    Py_XDECREF(key);
    Py_XDECREF(name);
    return rc;
}

/* Public names, for tests that every op has samples. */
static PyObject   *op_names(UNUSED PyObject *module, UNUSED PyObject *unused) { return PyDict_Keys(by_name); }
static PyMethodDef names_function = { "_op_names", op_names, METH_NOARGS, "The public names of all ops." };

int py_add_ops(PyObject *module)
{
    PyObject *names = PyCFunction_New(&names_function, NULL);
    if (!names || PyModule_AddObjectRef(module, "_op_names", names) < 0) return -1;
    Py_DECREF(names);
    PyObject *namespaced = PyDict_New();
    if (!(by_name = PyDict_New()) || !(return_types = PyDict_New()) || !namespaced) return -1;
    if (PyModule_AddObjectRef(module, "_namespaced", namespaced) < 0 ||
        PyModule_AddObjectRef(module, "_return_types", return_types) < 0)
        return -1;
    Py_DECREF(namespaced);
    for (int id = 0; id < LC_OP_COUNT; id++)
        if (!lc_ops[id]->hidden && add_op(module, namespaced, lc_ops[id]) < 0) return -1;
    PyType_Modified(&PyTensor_Type);
    return 0;
}

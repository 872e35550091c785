/* What lucid.compile needs of the engine: traces, graphs, plans, and guards that hold or do not.
 *
 * A guard is a dict (a module's globals, an object's attributes) and what some of its names were during the trace. Dicts have a version in CPython up
 * to 3.12: as long as it has not moved nothing has to be compared. */
#include "py_jit.h"
#include "../../engine/autograd/autograd.h"
#include "../../engine/jit/passes.h"
#include "../../engine/jit/plan.h"
#include "../../engine/jit/trace.h"

int py_tensors_of(PyObject *sequence, lc_tensor ***list, int *n)
{
    *list = NULL;
    if (!PyTuple_Check(sequence) && !PyList_Check(sequence))
        return PyErr_Format(PyExc_TypeError, "expected a list of tensors"), -1;
    *n = (int)PySequence_Fast_GET_SIZE(sequence);
    if (!(*list = PyMem_Calloc((size_t)*n + 1, sizeof **list))) return PyErr_NoMemory(), -1;
    for (int i = 0; i < *n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(sequence, i);
        if (!py_is_tensor(item)) return PyMem_Free(*list), PyErr_Format(PyExc_TypeError, "element %d is not a Tensor", i), -1;
        (*list)[i] = py_tensor(item);
    }
    return 0;
}

/* ---- graphs ---- */
typedef struct {
    PyObject_HEAD lc_graph *graph;
} PyGraph;
static void graph_dealloc(PyObject *o)
{
    lc_graph *g = ((PyGraph *)o)->graph;
    if (g) lc_object_release(&g->object);
    Py_TYPE(o)->tp_free(o);
}
static int append_new(PyObject *list, PyObject *item) /* takes the reference */
{
    int rc = item ? PyList_Append(list, item) : -1;
    return Py_XDECREF(item), rc;
}
static PyObject *generator_object(lc_generator *g)
{
    PyGenerator *made = PyObject_New(PyGenerator, &PyGenerator_Type);
    if (made) made->g = g, made->weakrefs = NULL, lc_object_retain(&g->object);
    return (PyObject *)made;
}
/* Tensors from outside; `written`: only those whose memory the steps write. */
static PyObject *externals(const lc_graph *g, bool written)
{
    PyObject *list = PyList_New(0);
    for (int b = 0; list && b < g->n_buffers; b++) {
        if (g->buffers[b].kind != LC_BUFFER_EXTERNAL || (written && !g->buffers[b].writes)) continue;
        if (append_new(list, py_wrap(lc_retain(g->buffers[b].tensor))) < 0) Py_CLEAR(list);
    }
    return list;
}
/* Tensors and generators that the steps use and that are no inputs. */
static PyObject *graph_outside(PyObject *self, UNUSED PyObject *unused)
{
    const lc_graph *g = ((PyGraph *)self)->graph;
    PyObject       *list = externals(g, false);
    for (int i = 0; i < g->n_steps; i++) {
        const lc_step *s = &g->steps[i];
        for (int k = 0; list && k < s->op->args->n_params; k++)
            if (s->args[k].tag == LC_IS_generator && s->args[k].gen && append_new(list, generator_object(s->args[k].gen)) < 0)
                Py_CLEAR(list);
    }
    return list;
}
static PyObject   *graph_written(PyObject *self, UNUSED PyObject *unused) { return externals(((PyGraph *)self)->graph, true); }
static PyMethodDef graph_methods[] = {
    { "written", graph_written, METH_NOARGS, "Tensors from outside whose memory the steps write." },
    { "outside", graph_outside, METH_NOARGS, "Tensors and generators that the steps use and that are no inputs." },
    { 0 },
};
static PyTypeObject PyGraph_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid._C._Graph",
                                     .tp_basicsize = sizeof(PyGraph),
                                     .tp_dealloc = graph_dealloc,
                                     .tp_methods = graph_methods,
                                     .tp_flags = Py_TPFLAGS_DEFAULT,
                                     .tp_doc = "What a traced function did." };

static PyObject *trace_begin(UNUSED PyObject *module, PyObject *inputs)
{
    lc_tensor **list;
    int         n;
    if (py_tensors_of(inputs, &list, &n) < 0) return NULL;
    int rc = lc_trace_begin(list, n);
    return PyMem_Free(list), rc < 0 ? py_raise() : PyBool_FromLong(rc == 0);
}
static PyObject *trace_input(UNUSED PyObject *module, PyObject *t)
{
    if (!py_is_tensor(t)) return PyErr_Format(PyExc_TypeError, "not a Tensor");
    int n = lc_trace_input(py_tensor(t));
    return n < 0 ? py_raise() : PyLong_FromLong(n);
}
static PyObject *trace_steps(UNUSED PyObject *module, UNUSED PyObject *unused) { return PyLong_FromLong(lc_trace_steps()); }
static PyObject *trace_running(UNUSED PyObject *module, UNUSED PyObject *unused) { return PyBool_FromLong(lc_trace_running()); }
static PyObject *trace_break(UNUSED PyObject *module, PyObject *why)
{
    const char *text = PyUnicode_AsUTF8(why);
    if (!text) return NULL;
    lc_trace_break(text);
    Py_RETURN_NONE;
}
static PyObject *trace_pause(UNUSED PyObject *module, PyObject *on)
{
    int want = PyObject_IsTrue(on);
    if (want < 0) return NULL;
    lc_trace_pause(want);
    Py_RETURN_NONE;
}
static PyObject *trace_end(UNUSED PyObject *module, UNUSED PyObject *unused)
{
    lc_graph *graph = lc_trace_end();
    PyGraph  *made = graph ? PyObject_New(PyGraph, &PyGraph_Type) : NULL;
    if (!graph) return py_raise();
    if (made) made->graph = graph;
    else lc_object_release(&graph->object);
    return (PyObject *)made;
}

/* Hooks of a leaf fire when a gradient is traced, and would fire again when it arrives. */
static PyObject *has_hooks(UNUSED PyObject *module, PyObject *t)
{
    if (!py_is_tensor(t)) return PyErr_Format(PyExc_TypeError, "not a Tensor");
    const lc_node *n = py_tensor(t)->node ? py_tensor(t)->node : lc_accumulator(py_tensor(t));
    if (!n) return py_raise();
    for (const lc_hook *h = n->hooks; h; h = h->next)
        if (h->callee && h->kind != LC_HOOK_POST_ACCUMULATE) Py_RETURN_TRUE;
    Py_RETURN_FALSE;
}
static PyObject *trace_made(UNUSED PyObject *module, PyObject *t)
{
    const lc_graph *g = lc_trace_graph();
    return PyBool_FromLong(g && py_is_tensor(t) && py_tensor(t)->trace_id == g->serial << 32);
}

/* Tensors from outside, not inputs, that the trace has touched: all, or those that require a gradient. */
static PyObject *touched(bool wanting)
{
    lc_graph *g = lc_trace_graph();
    PyObject *list = PyList_New(0);
    for (int b = 0; g && list && b < g->n_buffers; b++) {
        lc_tensor *t = g->buffers[b].tensor;
        if (g->buffers[b].kind != LC_BUFFER_EXTERNAL || (wanting && !(t->flags & LC_REQUIRES_GRAD))) continue;
        if (append_new(list, py_wrap(lc_retain(t))) < 0) Py_CLEAR(list);
    }
    return list;
}
static PyObject *trace_wanting(UNUSED PyObject *module, UNUSED PyObject *unused) { return touched(true); }
static PyObject *trace_outside(UNUSED PyObject *module, UNUSED PyObject *unused) { return touched(false); }

/* ---- plans ---- */
typedef struct {
    PyObject_HEAD lc_plan *plan;
    int                    n_outputs;
} PyPlan;
extern PyTypeObject PyPlan_Type;
static void         plan_dealloc(PyObject *o)
{
    lc_plan_free(((PyPlan *)o)->plan);
    Py_TYPE(o)->tp_free(o);
}

/* Buffers that the steps before `cut` make and those after it read: as values of bytes, and as numbers of buffers. */
static int saved_buffers(lc_graph *g, int cut, int **buffers)
{
    int n = lc_graph_saved(g, 0, cut, g->n_steps, NULL, 0);
    *buffers = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof **buffers);
    if (*buffers) return lc_graph_saved(g, 0, cut, g->n_steps, *buffers, n);
    if (n >= 0) PyErr_NoMemory();
    else py_raise();
    return -1;
}

static PyObject *plan_new(UNUSED PyTypeObject *type, PyObject *args, UNUSED PyObject *kwargs)
{
    PyObject   *graph, *outputs;
    lc_tensor **list = NULL;
    int         first, last, cut, n = 0, n_saved = 0, *saved = NULL, *values = NULL, *same = NULL;
    PyPlan     *made = NULL;
    if (!PyArg_ParseTuple(args, "O!iiiO:_Plan", &PyGraph_Type, &graph, &first, &last, &cut, &outputs)) return NULL;
    lc_graph *g = ((PyGraph *)graph)->graph;
    if (last < 0) last = g->n_steps;
    if (py_tensors_of(outputs, &list, &n) < 0) return NULL;
    if (cut >= 0 && (n_saved = saved_buffers(g, cut, &saved)) < 0) goto end;
    bool forward = cut >= 0 && first < cut;
    values = PyMem_Calloc((size_t)(n + n_saved) + 1, sizeof *values),
    same = PyMem_Calloc((size_t)(n + n_saved) + 1, sizeof *same);
    if (!values || !same) {
        PyErr_NoMemory();
        goto end;
    }
    for (int i = 0; i < n; i++)
        if ((values[i] = lc_trace_value_of(g, list[i])) < 0) {
            PyErr_Format(PyExc_LookupError, "output %d was not made by a recorded call", i);
            goto end;
        }
    for (int i = 0; i < n + n_saved; i++) {
        same[i] = -1;
        for (int k = 0; i < n && k < g->n_inputs; k++)
            if (g->inputs[k] == list[i]) same[i] = k;
    }
    for (int i = 0; i < n_saved && forward; i++)
        if ((values[n + i] = lc_graph_whole(g, saved[i])) < 0) goto failed;
    lc_plan_request request = {
        .graph = g, .first = first, .last = last, .outputs = values, .same_as = same, .extra_inputs = saved
    };
    request.n_outputs = n + (forward ? n_saved : 0), request.n_extra_inputs = forward || cut < 0 ? 0 : n_saved;
    lc_plan *plan = lc_plan_new(&request);
    if (!plan) goto failed;
    if ((made = PyObject_New(PyPlan, &PyPlan_Type))) made->plan = plan, made->n_outputs = request.n_outputs;
    else lc_plan_free(plan);
    goto end;
failed:
    py_raise();
end:
    PyMem_Free(list), PyMem_Free(saved), PyMem_Free(values), PyMem_Free(same);
    return (PyObject *)made;
}

/* (graph, tensors, starts): the passes of the engine over a graph whose results are these tensors. starts: the steps at which
 * plans begin, behind the first. */
static PyObject *simplify(UNUSED PyObject *module, PyObject *args)
{
    PyObject   *graph, *outputs, *starts;
    lc_tensor **list = NULL;
    int         n = 0, found = 0, rc = -1;
    if (!PyArg_ParseTuple(args, "O!OO!:_simplify", &PyGraph_Type, &graph, &outputs, &PyList_Type, &starts)) return NULL;
    if (py_tensors_of(outputs, &list, &n) < 0) return NULL;
    lc_graph *g = ((PyGraph *)graph)->graph;
    int       n_starts = (int)PyList_GET_SIZE(starts), *numbers = PyMem_Calloc((size_t)(n + n_starts) + 1, sizeof *numbers);
    for (int i = 0; i < n_starts && numbers; i++) numbers[i] = (int)PyLong_AsLong(PyList_GET_ITEM(starts, i));
    for (int i = 0; i < n && numbers; i++)
        if ((numbers[n_starts + found] = lc_trace_value_of(g, list[i])) >= 0) found++;
    if (!numbers) PyErr_NoMemory();
    else if (!PyErr_Occurred() && (rc = lc_simplify(g, numbers + n_starts, found, numbers, n_starts)) < 0) py_raise();
    PyMem_Free(numbers), PyMem_Free(list);
    if (rc < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *run_plan(PyPlan *p, lc_tensor *const *inputs,
                          int n) /* a list; None: the memory lies in another way than in the trace */
{
    LC_ARRAY(lc_tensor *, out, p->n_outputs);
    if (!out) return py_raise();
    int rc = lc_plan_run(p->plan, inputs, n, out);
    if (rc < 0) return py_raise();
    if (rc == 1) Py_RETURN_NONE;
    PyObject *list = PyList_New(p->n_outputs);
    for (int i = 0; i < p->n_outputs; i++) {
        PyObject *t = list ? py_wrap(out[i]) : NULL;
        if (t) PyList_SET_ITEM(list, i, t);
        else {
            if (!list) lc_release(out[i]);
            Py_CLEAR(list);
        }
    }
    return list;
}
static PyObject *plan_run(PyObject *self, PyObject *inputs)
{
    lc_tensor **list;
    int         n;
    if (py_tensors_of(inputs, &list, &n) < 0) return NULL;
    PyObject *result = run_plan((PyPlan *)self, list, n);
    PyMem_Free(list);
    return result;
}
static PyObject *plan_times(PyObject *self, PyObject *inputs)
{
    PyPlan     *p = (PyPlan *)self;
    lc_tensor **list;
    int         n, n_steps = lc_plan_describe(p->plan).steps;
    if (py_tensors_of(inputs, &list, &n) < 0) return NULL;
    double     *seconds = PyMem_Calloc((size_t)n_steps + 1, sizeof *seconds);
    lc_tensor **out = PyMem_Calloc((size_t)p->n_outputs + 1, sizeof *out);
    int         rc = seconds && out ? lc_plan_time(p->plan, list, n, out, seconds) : -2;
    PyObject   *made = rc == 0 ? PyList_New(n_steps) : rc == 1 ? Py_NewRef(Py_None) : rc == -1 ? py_raise() : PyErr_NoMemory();
    for (int i = 0; i < n_steps && rc == 0 && made; i++) PyList_SET_ITEM(made, i, PyFloat_FromDouble(seconds[i]));
    if (rc == 0) lc_release_all(out, p->n_outputs);
    PyMem_Free(list), PyMem_Free(seconds), PyMem_Free(out);
    return made;
}
static PyObject *plan_fits(PyObject *self, PyObject *inputs)
{
    lc_tensor **list;
    int         n;
    if (py_tensors_of(inputs, &list, &n) < 0) return NULL;
    bool fits = lc_plan_fits(((PyPlan *)self)->plan, list, n);
    return PyMem_Free(list), PyBool_FromLong(fits);
}
static PyObject *plan_set_number(PyObject *self, PyObject *args)
{
    const char *name;
    int         k;
    double      value;
    if (!PyArg_ParseTuple(args, "sid", &name, &k, &value)) return NULL;
    return PyLong_FromLong(lc_plan_set_number(((PyPlan *)self)->plan, name, k, value));
}
static PyObject *plan_text(PyObject *self, UNUSED PyObject *unused)
{
    char     *text = lc_plan_text(((PyPlan *)self)->plan);
    PyObject *result = text ? PyUnicode_FromString(text) : PyErr_NoMemory();
    return free(text), result;
}
static PyObject *plan_facts(PyObject *self, UNUSED PyObject *unused)
{
    lc_plan_facts f = lc_plan_describe(((PyPlan *)self)->plan);
    return Py_BuildValue("{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:n,s:n,s:n}", "steps", f.steps, "dropped", f.dropped, "frozen",
                         f.frozen, "fused_steps", f.fused_steps, "fused_regions", f.fused_regions, "given_outputs",
                         f.given_outputs, "in_place", f.in_place, "recomputed", f.recomputed, "host_steps", f.host_steps,
                         "peak_bytes", (Py_ssize_t)f.peak_bytes, "arena_bytes", (Py_ssize_t)f.arena_bytes, "made_bytes",
                         (Py_ssize_t)f.made_bytes);
}
static PyMethodDef plan_methods[] = {
    { "run", plan_run, METH_O, "Run with these tensors; None if their memory is arranged in another way than in the trace." },
    { "times", plan_times, METH_O, "Run with these tensors: the seconds that every step took; None as run." },
    { "fits", plan_fits, METH_O, "Whether the memory of these tensors is arranged as in the trace." },
    { "set_number", plan_set_number, METH_VARARGS,
      "(name, k, value): argument `name` of the k-th step that has one; how many have." },
    { "text", plan_text, METH_NOARGS, "A line per step." },
    { "facts", plan_facts, METH_NOARGS, "Counts of steps and bytes." },
    { 0 },
};
PyTypeObject PyPlan_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid._C._Plan",
                             .tp_basicsize = sizeof(PyPlan),
                             .tp_dealloc = plan_dealloc,
                             .tp_new = plan_new,
                             .tp_methods = plan_methods,
                             .tp_flags = Py_TPFLAGS_DEFAULT,
                             .tp_doc =
                                 "_Plan(graph, first, last, cut, outputs): steps [first, last) of a graph, ready to run." };

/* ---- guards ---- */
typedef struct {
    PyObject  *where;          /* a dict, a list, a set, a cell, or an object with attributes */
    PyObject  *names, *values; /* tuples; names only of dicts and attributes. Of a set: a frozenset in a tuple */
    Py_ssize_t size;           /* of a dict that must not grow; -1: it may */
    uint64_t   version;
} guard;
typedef struct {
    PyObject_HEAD guard *guards;
    int                  n;
} PyGuards;

static void guards_dealloc(PyObject *o)
{
    PyGuards *g = (PyGuards *)o;
    PyObject_GC_UnTrack(o);
    for (int i = 0; i < g->n; i++) {
        Py_XDECREF(g->guards[i].where);
        Py_XDECREF(g->guards[i].names);
        Py_XDECREF(g->guards[i].values);
    }
    PyMem_Free(g->guards);
    PyObject_GC_Del(o);
}
static int guards_traverse(PyObject *o, visitproc visit, void *arg)
{
    PyGuards *g = (PyGuards *)o;
    for (int i = 0; i < g->n; i++) {
        Py_VISIT(g->guards[i].where);
        Py_VISIT(g->guards[i].values);
    }
    return 0;
}

static uint64_t version_of(PyObject *dict)
{
#if PY_VERSION_HEX < 0x030D0000
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return ((PyDictObject *)dict)->ma_version_tag;
#pragma GCC diagnostic pop
#else
    (void)dict;
    return 0; /* never equal: everything is compared */
#endif
}

/* Plain values are compared, bit by bit, everything else must be the same object. */
static bool same_number(double a, double b) { return !memcmp(&a, &b, sizeof a) || (a != a && b != b); }
static int  is_still(PyObject *now, PyObject *then)
{
    if (now == then) return 1;
    if (!now || !then || Py_TYPE(now) != Py_TYPE(then)) return 0;
    if (PyFloat_Check(now)) return same_number(PyFloat_AS_DOUBLE(now), PyFloat_AS_DOUBLE(then));
    if (PyComplex_Check(now)) {
        Py_complex a = PyComplex_AsCComplex(now), b = PyComplex_AsCComplex(then);
        return same_number(a.real, b.real) && same_number(a.imag, b.imag);
    }
    if (PyTuple_Check(now)) {
        if (PyTuple_GET_SIZE(now) != PyTuple_GET_SIZE(then)) return 0;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(now); i++) {
            int still = is_still(PyTuple_GET_ITEM(now, i), PyTuple_GET_ITEM(then, i));
            if (still != 1) return still;
        }
        return 1;
    }
    return PyLong_Check(now) || PyUnicode_Check(now) || PyBytes_Check(now) ? PyObject_RichCompareBool(now, then, Py_EQ) : 0;
}

static int names_hold(const guard *g) /* of a dict or of attributes */
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(g->values); i++) {
        PyObject *name = PyTuple_GET_ITEM(g->names, i), *then = PyTuple_GET_ITEM(g->values, i), *now;
        if (PyDict_Check(g->where)) now = Py_XNewRef(PyDict_GetItemWithError(g->where, name));
        else now = PyObject_GetAttr(g->where, name);
        if (!now && PyErr_Occurred()) {
            if (PyDict_Check(g->where) || !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
            PyErr_Clear();
        }
        int still = then == Py_Ellipsis && !now ? 1 : is_still(now, then); /* Ellipsis: the name was not there */
        Py_XDECREF(now);
        if (still != 1) return still;
    }
    return 1;
}

static int holds(guard *g) /* 1, 0 or -1 */
{
    Py_ssize_t n = PyTuple_GET_SIZE(g->values);
    if (PyDict_Check(g->where)) {
        uint64_t version = version_of(g->where);
        if (version && version == g->version) return 1;
        int still = g->size >= 0 && PyDict_GET_SIZE(g->where) != g->size ? 0 : names_hold(g);
        if (still == 1) g->version = version;
        return still;
    }
    if (PyCell_Check(g->where)) return is_still(PyCell_GET(g->where), PyTuple_GET_ITEM(g->values, 0));
    if (PyAnySet_Check(g->where)) return PyObject_RichCompareBool(g->where, PyTuple_GET_ITEM(g->values, 0), Py_EQ);
    if (!PyList_Check(g->where)) return names_hold(g);
    if (PyList_GET_SIZE(g->where) != n) return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        int still = is_still(PyList_GET_ITEM(g->where, i), PyTuple_GET_ITEM(g->values, i));
        if (still != 1) return still;
    }
    return 1;
}

static PyObject *guards_new(PyTypeObject *type, PyObject *args, UNUSED PyObject *kwargs)
{
    PyObject *list;
    if (!PyArg_ParseTuple(args, "O!:_Guards", &PyList_Type, &list)) return NULL;
    PyGuards *made = (PyGuards *)type->tp_alloc(type, 0);
    if (!made) return NULL;
    made->guards = PyMem_Calloc((size_t)PyList_GET_SIZE(list) + 1, sizeof *made->guards);
    if (!made->guards) return Py_DECREF(made), PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        guard *g = &made->guards[i];
        int    whole = 0;
        bool   named;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "OOO!|p", &g->where, &g->names, &PyTuple_Type, &g->values, &whole) ||
            (named = !(PyList_Check(g->where) || PyCell_Check(g->where) || PyAnySet_Check(g->where)),
             named && (!PyTuple_Check(g->names) || PyTuple_GET_SIZE(g->names) != PyTuple_GET_SIZE(g->values))) ||
            (!named && !PyList_Check(g->where) && PyTuple_GET_SIZE(g->values) != 1)) {
            *g = (guard){ 0 };
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "a guard is (dict or object, names, values, whole), (list, None, values), "
                                                 "(set, None, (values,)) or (cell, None, (value,))");
            return Py_DECREF(made), NULL;
        }
        g->size = whole && PyDict_Check(g->where) ? PyDict_GET_SIZE(g->where) : -1;
        Py_INCREF(g->where), Py_INCREF(g->names), Py_INCREF(g->values);
        made->n++;
    }
    return (PyObject *)made;
}

/* The number of the first guard that does not hold; -1: all do. */
static PyObject *guards_check(PyObject *self, UNUSED PyObject *unused)
{
    PyGuards *g = (PyGuards *)self;
    for (int i = 0; i < g->n; i++) {
        int rc = holds(&g->guards[i]);
        if (rc < 0) return NULL;
        if (rc == 0) return PyLong_FromLong(i);
    }
    return PyLong_FromLong(-1);
}
static bool guards_hold(PyObject *self)
{
    PyGuards *g = (PyGuards *)self;
    for (int i = 0; i < g->n; i++) {
        int rc = holds(&g->guards[i]);
        if (rc < 0) PyErr_Clear();
        if (rc != 1) return false;
    }
    return true;
}
static PyMethodDef guards_methods[] = {
    { "check", guards_check, METH_NOARGS, "The first guard that does not hold, -1 if all do." }, { 0 }
};
static PyTypeObject PyGuards_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid._C._Guards",
                                      .tp_basicsize = sizeof(PyGuards),
                                      .tp_dealloc = guards_dealloc,
                                      .tp_traverse = guards_traverse,
                                      .tp_new = guards_new,
                                      .tp_methods = guards_methods,
                                      .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                                      .tp_doc = "_Guards([(dict, names, values), ...]): what a trace relied on." };

/* ---- the quick way in ----
 * An entry is a plan with what must be so for it to be right: shapes and dtypes of the inputs, modes of the thread, guards. A call whose arguments are tensors by
 * position, and nothing else, goes through the entries here; every other call, and a call for which none fits, goes to Python (slow). */
typedef struct {
    PyObject  *guards, *plan, *finish; /* finish: None if the result is the one output, else a function of the list */
    lc_tensor *specs;                  /* geometry of the inputs */
    int       *first;                  /* per input: the first that is the same tensor */
    int        n;
    unsigned   modes;
    lc_dtype   default_dtype;
} entry;
typedef struct {
    PyObject_HEAD entry *entries;
    int                  n;
    Py_ssize_t           hits;
    PyObject            *slow, *owner, *without; /* owner: NULL, or a weak reference to the object whose method slow is */
    vectorcallfunc       vectorcall;
} PyEntries;
enum {
    MOST_INPUTS = 64,
    WATCHED = LC_NO_GRAD | LC_INFERENCE_MODE | LC_AUTOCAST | LC_DETERMINISTIC | LC_ANOMALY | LC_BATCH_LEVEL | LC_SAVED_HOOKS |
              LC_TRACING
};

static bool fits(const lc_tensor *t, const lc_tensor *spec)
{
    return t->dtype == spec->dtype && t->ndim == spec->ndim && (t->flags & ~LC_IS_VIEW) == spec->flags &&
           lc_same_device(t->device, spec->device) && lc_same_sizes(t->shape, spec->shape, t->ndim) &&
           lc_same_sizes(t->stride, spec->stride, t->ndim);
}

/* Which arguments are one tensor is a part of a call's form: a function may ask. */
static bool same_among(lc_tensor *const *in, const entry *e)
{
    for (int k = 1; k < e->n; k++)
        for (int j = 0; j < k; j++)
            if ((in[j] == in[k]) != (e->first[k] == e->first[j])) return false;
    return true;
}

/* NotImplemented: the memory lies in another way than in the trace. The entry may go while its plan runs: another thread traces, a hook forgets all
 * plans. */
static PyObject *run_entry(PyEntries *c, const entry *e, PyObject *const *args, lc_tensor *const *in, int n)
{
    PyObject *plan = Py_NewRef(e->plan), *finish = Py_NewRef(e->finish), *result = NULL, *list = NULL;
    PyPlan   *p = (PyPlan *)plan;
    if (plan == Py_None) {
        c->hits++;
        result = PyObject_Vectorcall(finish, args, (size_t)n, NULL);
    } else if (finish == Py_None && p->n_outputs == 1) {
        lc_tensor *out;
        int        rc = lc_plan_run(p->plan, in, n, &out);
        c->hits += rc != 1;
        result = rc == 1 ? Py_NewRef(Py_NotImplemented) : rc < 0 ? py_raise() : py_wrap(out);
    } else if ((list = run_plan(p, in, n)) == Py_None) {
        result = Py_NewRef(Py_NotImplemented);
    } else {
        c->hits++;
        result = list ? PyObject_CallOneArg(finish, list) : NULL;
    }
    Py_XDECREF(list);
    Py_DECREF(plan);
    Py_DECREF(finish);
    return result;
}

/* The owner holds its entries, and they do not hold it: whoever drops it drops its plans, at once. */
static PyObject *call_slowly(PyEntries *c, PyObject *const *args, size_t nargsf, PyObject *names)
{
    if (!c->owner) return PyObject_Vectorcall(c->slow, args, nargsf, names);
    PyObject *owner = py_weak_target(c->owner), *method = owner ? PyMethod_New(c->slow, owner) : NULL, *result = NULL;
    if (!owner) return PyObject_Vectorcall(c->without, args, nargsf, names);
    Py_DECREF(owner);
    if (method) result = PyObject_Vectorcall(method, args, PyVectorcall_NARGS(nargsf), names);
    Py_XDECREF(method);
    return result;
}

static PyObject *entries_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    PyEntries *c = (PyEntries *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    lc_tensor *in[MOST_INPUTS];
    bool       plain = !names && n <= MOST_INPUTS;
    for (Py_ssize_t k = 0; k < n && plain; k++) {
        plain = Py_TYPE(args[k]) == &PyTensor_Type;
        if (plain) in[k] = py_tensor(args[k]);
    }
    for (int i = 0; i < c->n && plain; i++) {
        entry *e = &c->entries[i];
        if (e->n != n || e->modes != (lc_modes & WATCHED) || e->default_dtype != lc_default_dtype) continue;
        bool same = true;
        for (int k = 0; k < e->n && same; k++) same = fits(in[k], &e->specs[k]);
        if (!same || !same_among(in, e) || !guards_hold(e->guards)) continue;
        PyObject *result = run_entry(c, e, args, in, (int)n);
        if (result != Py_NotImplemented) return result;
        Py_DECREF(result);
    }
    return call_slowly(c, args, nargsf, names);
}

static void entry_clear(entry *e)
{
    for (int k = 0; k < e->n; k++)
        if (e->specs[k].ndim > LC_INLINE_DIMS) PyMem_Free(e->specs[k].shape);
    PyMem_Free(e->specs), PyMem_Free(e->first);
    Py_XDECREF(e->guards);
    Py_XDECREF(e->plan);
    Py_XDECREF(e->finish);
}
static PyObject *entries_clear_method(PyObject *self, UNUSED PyObject *unused)
{
    PyEntries *c = (PyEntries *)self;
    while (c->n) {
        entry e = c->entries[--c->n];
        entry_clear(&e);
    }
    c->hits = 0;
    Py_RETURN_NONE;
}
static void entries_dealloc(PyObject *o)
{
    PyObject_GC_UnTrack(o);
    Py_XDECREF(entries_clear_method(o, NULL));
    PyMem_Free(((PyEntries *)o)->entries);
    Py_XDECREF(((PyEntries *)o)->slow);
    Py_XDECREF(((PyEntries *)o)->owner);
    Py_XDECREF(((PyEntries *)o)->without);
    PyObject_GC_Del(o);
}
static int entries_traverse(PyObject *o, visitproc visit, void *arg)
{
    PyEntries *c = (PyEntries *)o;
    Py_VISIT(c->slow);
    Py_VISIT(c->owner);
    Py_VISIT(c->without);
    for (int i = 0; i < c->n; i++) {
        Py_VISIT(c->entries[i].guards);
        Py_VISIT(c->entries[i].finish);
    }
    return 0;
}
static int entries_clear(PyObject *o)
{
    Py_XDECREF(entries_clear_method(o, NULL));
    Py_CLEAR(((PyEntries *)o)->slow);
    Py_CLEAR(((PyEntries *)o)->owner);
    Py_CLEAR(((PyEntries *)o)->without);
    return 0;
}

static PyObject *entries_new(PyTypeObject *type, PyObject *args, UNUSED PyObject *kwargs)
{
    PyObject *slow, *without = Py_None;
    if (!PyArg_ParseTuple(args, "O|O:_Entries", &slow, &without)) return NULL;
    PyEntries *made = (PyEntries *)type->tp_alloc(type, 0);
    if (!made) return NULL;
    made->vectorcall = entries_call, made->without = Py_NewRef(without);
    if (PyMethod_Check(slow)) {
        if (!(made->owner = PyWeakref_NewRef(PyMethod_GET_SELF(slow), NULL))) return Py_DECREF(made), NULL;
        slow = PyMethod_GET_FUNCTION(slow);
    }
    made->slow = Py_NewRef(slow);
    return (PyObject *)made;
}

static int copy_spec(lc_tensor *spec, const lc_tensor *t)
{
    int64_t *dims = spec->dims;
    *spec = (lc_tensor){ .dtype = t->dtype, .ndim = t->ndim, .device = t->device, .flags = t->flags & (uint16_t)~LC_IS_VIEW };
    if (t->ndim > LC_INLINE_DIMS && !(dims = PyMem_Malloc(2 * (size_t)t->ndim * sizeof *dims))) return PyErr_NoMemory(), -1;
    spec->shape = dims, spec->stride = dims + (t->ndim > LC_INLINE_DIMS ? t->ndim : LC_INLINE_DIMS);
    memcpy(spec->shape, t->shape, t->ndim * sizeof *dims);
    memcpy(spec->stride, t->stride, t->ndim * sizeof *dims);
    return 0;
}

/* (inputs, guards, plan, finish): a plan for calls like the one with these inputs, in the modes of now. The oldest goes when there are `most`. */
static PyObject *entries_add(PyObject *self, PyObject *args)
{
    PyEntries  *c = (PyEntries *)self;
    PyObject   *inputs, *guards, *plan, *finish;
    lc_tensor **list;
    int         most;
    entry       e = { 0 };
    if (!PyArg_ParseTuple(args, "OO!OOi", &inputs, &PyGuards_Type, &guards, &plan, &finish, &most)) return NULL;
    if (plan != Py_None && Py_TYPE(plan) != &PyPlan_Type) return PyErr_Format(PyExc_TypeError, "plan must be a _Plan or None");
    if (py_tensors_of(inputs, &list, &e.n) < 0) return NULL;
    int n = e.n;
    e.n = 0, e.specs = PyMem_Calloc((size_t)n + 1, sizeof *e.specs), e.first = PyMem_Calloc((size_t)n + 1, sizeof *e.first);
    bool made = e.specs && e.first;
    for (; e.n < n && made; e.n++) {
        while (list[e.first[e.n]] != list[e.n]) e.first[e.n]++;
        made = copy_spec(&e.specs[e.n], list[e.n]) == 0;
    }
    PyMem_Free(list);
    entry *more = made ? PyMem_Realloc(c->entries, ((size_t)c->n + 1) * sizeof *more) : NULL;
    if (!more) return entry_clear(&e), PyErr_NoMemory();
    e.guards = Py_NewRef(guards), e.plan = Py_NewRef(plan), e.finish = Py_NewRef(finish);
    e.modes = lc_modes & WATCHED, e.default_dtype = lc_default_dtype;
    c->entries = more;
    if (c->n >= most) {
        entry oldest = c->entries[0];
        memmove(c->entries, c->entries + 1, (size_t)--c->n * sizeof e);
        entry_clear(&oldest);
    }
    c->entries[c->n++] = e;
    Py_RETURN_NONE;
}
static PyObject *entries_hits(PyObject *self, UNUSED void *unused) { return PyLong_FromSsize_t(((PyEntries *)self)->hits); }

static PyMethodDef entries_methods[] = {
    { "add", entries_add, METH_VARARGS, "(inputs, guards, plan, finish, most): a plan for calls with tensors like these." },
    { "clear", entries_clear_method, METH_NOARGS, "Forget all plans." },
    { 0 },
};
static PyGetSetDef  entries_getset[] = { { "hits", entries_hits, NULL, "Calls that a plan answered.", NULL }, { 0 } };
static PyTypeObject PyEntries_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid._C._Entries",
                                       .tp_basicsize = sizeof(PyEntries),
                                       .tp_dealloc = entries_dealloc,
                                       .tp_traverse = entries_traverse,
                                       .tp_clear = entries_clear,
                                       .tp_new = entries_new,
                                       .tp_call = PyVectorcall_Call,
                                       .tp_vectorcall_offset = offsetof(PyEntries, vectorcall),
                                       .tp_methods = entries_methods,
                                       .tp_getset = entries_getset,
                                       .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                                                   Py_TPFLAGS_BASETYPE,
                                       .tp_doc =
                                           "_Entries(slow, without=None): plans of a function; calls that none fits go to "
                                           "slow. A method is held weakly; when its object is gone they go to without." };

/* For a write that leaves the values as they are and only records a history. */
static PyObject *set_version(UNUSED PyObject *module, PyObject *args)
{
    PyObject    *t;
    unsigned int version;
    if (!PyArg_ParseTuple(args, "OI", &t, &version)) return NULL;
    if (!py_is_tensor(t)) return PyErr_Format(PyExc_TypeError, "not a Tensor");
    lc_tensor *x = py_tensor(t);
    if (x->cell) atomic_store(&x->cell->version, version);
    else if (x->storage) atomic_store(&x->storage->version, version);
    Py_RETURN_NONE;
}
static PyObject *batch_level(UNUSED PyObject *module, UNUSED PyObject *unused)
{
    return PyBool_FromLong(lc_modes & LC_BATCH_LEVEL);
}
static PyObject *modes_key(UNUSED PyObject *module, UNUSED PyObject *unused)
{
    return Py_BuildValue("Ii", lc_modes & WATCHED, (int)lc_default_dtype);
}

static PyObject *plan_limits(UNUSED PyObject *module, PyObject *args)
{
    lc_plan_limits before = lc_limits;
    Py_ssize_t     arena, block, waits, peak;
    if (!PyArg_ParseTuple(args, "nnnn:_plan_limits", &arena, &block, &waits, &peak)) return NULL;
    if (arena < 0 || block < 0 || waits < 0 || peak < 0) return PyErr_Format(PyExc_ValueError, "limits are not negative");
    lc_limits = (lc_plan_limits){ (size_t)arena, (size_t)block, (size_t)waits, (size_t)peak };
    return Py_BuildValue("(nnnn)", (Py_ssize_t)before.arena, (Py_ssize_t)before.block, (Py_ssize_t)before.waits,
                         (Py_ssize_t)before.peak);
}

static PyMethodDef functions[] = {
    { "_plan_limits", plan_limits, METH_VARARGS,
      "(arena, block, waits, peak): from how many bytes on new plans save memory; returns what it was." },
    { "_trace_begin", trace_begin, METH_O,
      "Record from now on what is done with these tensors; False if another trace is running." },
    { "_trace_input", trace_input, METH_O, "One more input." },
    { "_trace_outside", trace_outside, METH_NOARGS, "Tensors from outside that the trace has touched." },
    { "_trace_steps", trace_steps, METH_NOARGS, "Steps recorded so far." },
    { "_trace_made", trace_made, METH_O, "Whether a tensor was made since the trace began." },
    { "_has_hooks", has_hooks, METH_O, "Whether a gradient that arrives at this leaf calls hooks." },
    { "_trace_wanting", trace_wanting, METH_NOARGS, "Tensors from outside that the trace read and that require a gradient." },
    { "_trace_running", trace_running, METH_NOARGS, "Whether this thread is being traced." },
    { "_trace_break", trace_break, METH_O, "The function cannot be replayed, and why." },
    { "_trace_pause", trace_pause, METH_O, "True: what follows is not recorded and counts as made outside; False: go on." },
    { "_simplify", simplify, METH_VARARGS,
      "(graph, tensors, starts): the passes over a graph whose results these tensors are." },
    { "_trace_end", trace_end, METH_NOARGS, "The graph; raises if the trace broke." },
    { "_set_version", set_version, METH_VARARGS, "(tensor, n): as if its values had been written n times." },
    { "_batch_level", batch_level, METH_NOARGS, "Whether vmap is running on this thread." },
    { "_plan_modes", modes_key, METH_NOARGS, "The modes that a plan depends on." },
    { 0 },
};

int py_add_plans(PyObject *module)
{
    PyTypeObject *types[] = { &PyGraph_Type, &PyPlan_Type, &PyGuards_Type, &PyEntries_Type };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (PyModule_AddType(module, types[i]) < 0) return -1;
    return py_add_calls(module) < 0 ? -1 : PyModule_AddFunctions(module, functions);
}

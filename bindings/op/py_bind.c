/* Binds positional and keyword arguments to a signature.
 *
 * Keyword names are interned, here and in the caller's code, so comparing pointers almost always decides. A name that
 * matches no parameter may be NumPy's name for one (axis for dim), or a keyword that many ops accept: out=, and for
 * factories requires_grad=, layout=, pin_memory=. */
#include "../py.h"

enum { KEYWORD_out, KEYWORD_requires_grad, KEYWORD_layout, KEYWORD_pin_memory, KEYWORDS };
static PyObject *keywords[KEYWORDS];

static struct {
    const char *said, *meant;
    PyObject   *name, *parameter;
} aliases[] = {
    { "axis", "dim", 0, 0 },     { "keepdims", "keepdim", 0, 0 }, { "x", "input", 0, 0 },
    { "a", "input", 0, 0 },      { "x1", "input", 0, 0 },         { "x2", "other", 0, 0 },
    { "self", "input", 0, 0 },   { "axis", "dims", 0, 0 },        { "split_size_or_sections", "split_size", 0, 0 },
    { "tensor", "input", 0, 0 },
};
enum { ALIASES = sizeof aliases / sizeof *aliases };

int py_start_binding(void)
{
    static const char *const names[KEYWORDS] = { "out", "requires_grad", "layout", "pin_memory" };
    for (int i = 0; i < KEYWORDS; i++)
        if (!(keywords[i] = PyUnicode_InternFromString(names[i]))) return -1;
    for (int i = 0; i < ALIASES; i++) {
        aliases[i].name = PyUnicode_InternFromString(aliases[i].said);
        aliases[i].parameter = PyUnicode_InternFromString(aliases[i].meant);
        if (!aliases[i].name || !aliases[i].parameter) return -1;
    }
    return 0;
}

/* The table of parameters has few distinct names, each one literal: this saves thousands of look-ups in Python's intern
 * table at import. */
static PyObject *interned(const char *text)
{
    static struct {
        const char *text;
        PyObject   *name;
    } known[512];
    size_t at = ((uintptr_t)text ^ (uintptr_t)text >> 9) % 512;
    if (known[at].text != text) {
        PyObject *name = PyUnicode_InternFromString(text);
        if (!name) return NULL;
        Py_XSETREF(known[at].name, name);
        known[at].text = text;
    }
    return Py_NewRef(known[at].name);
}

int py_prepare_overload(py_overload *o, const lc_op *op)
{
    const lc_signature *sig = op->args;
    if (sig->n_params > PY_PARAMS) return PyErr_Format(PyExc_SystemError, "%s: too many parameters", op->name), -1;
    *o = (py_overload){ .op = op, .names = PyMem_Calloc((size_t)sig->n_params + 1, sizeof *o->names) };
    if (!o->names) return PyErr_NoMemory(), -1;
    for (int k = 0; k < sig->n_params; k++) {
        if (!(o->names[k] = interned(sig->params[k].name))) return -1;
        o->n_positional += !sig->params[k].keyword_only;
    }
    const lc_param *flag = sig->n_params ? &sig->params[sig->n_params - 1] : NULL;
    if (flag && !strcmp(flag->name, "inplace")) {
        char form[128];
        snprintf(form, sizeof form, "%s_", op->name);
        if (!(o->in_place = py_engine_op(form)))
            return PyErr_Format(PyExc_SystemError, "%s: there is no %s for inplace=True", op->name, form), -1;
    }
    const lc_param *last = o->n_positional ? &sig->params[o->n_positional - 1] : NULL;
    o->star = last && ((last->kind == LC_IS_ints && last->each >= 0) || last->star);
    return 0;
}

void *py_scratch(py_args *a, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes <= PY_SCRATCH - a->used) return a->used += bytes, a->memory + a->used - bytes;
    py_block *block = PyMem_Malloc(sizeof *block + bytes);
    if (!block) return PyErr_NoMemory();
    block->next = a->blocks, a->blocks = block;
    return block->bytes;
}

static COLD void end_slowly(py_args *a)
{
    for (int i = 0; i < a->n_held; i++)
        for (int k = 0; k < a->held[i].n; k++) lc_release(a->held[i].list[k]);
    if (a->foreign) lc_object_release(&a->foreign->object);
    for (py_block *b = a->blocks, *next; b; b = next) next = b->next, PyMem_Free(b);
}

void py_args_end(py_args *a)
{
    if (a->n_held || a->foreign || a->blocks) end_slowly(a);
}

static int find_name(PyObject *const *names, int n, PyObject *name)
{
    for (int k = 0; k < n; k++)
        if (names[k] == name) return k;
    if (PyUnicode_CHECK_INTERNED(name)) return -1;
    for (int k = 0; k < n; k++)
        if (PyUnicode_Compare(names[k], name) == 0) return k;
    return -1;
}

int py_find_parameter(const py_overload *o, PyObject *name)
{
    int k = find_name(o->names, o->op->args->n_params, name);
    for (int i = 0; i < ALIASES && k < 0; i++)
        if (find_name(&aliases[i].name, 1, name) == 0) k = find_name(o->names, o->op->args->n_params, aliases[i].parameter);
    return k;
}

bool py_is_common_keyword(const lc_op *op, PyObject *name)
{
    int k = find_name(keywords, KEYWORDS, name);
    return k == KEYWORD_out ? op->out : k >= 0 && op->factory;
}

static int take_out(PyObject *value, py_args *a)
{
    bool       many = PyTuple_Check(value) || PyList_Check(value);
    Py_ssize_t n = many ? PySequence_Fast_GET_SIZE(value) : 1;
    if (value == Py_None) return 1;
    if (n == 0 || n > PY_OUTPUTS) return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *t = many ? PySequence_Fast_GET_ITEM(value, i) : value;
        if (!py_is_tensor(t)) return 0;
        a->out[i] = py_tensor(t);
    }
    return a->n_out < 0 ? 0 : (a->n_out = (int)n, 1);
}

static int take_flag(PyObject *value, bool *flag)
{
    if (value == Py_None) return 1;
    return PyBool_Check(value) ? *flag = value == Py_True, 1 : 0;
}

/* A keyword that is not a parameter of the op. */
static int bind_common(const lc_op *op, PyObject *name, PyObject *value, py_args *a)
{
    int k = find_name(keywords, KEYWORDS, name);
    if (k == KEYWORD_out && op->out) return take_out(value, a);
    if (k < 0 || k == KEYWORD_out || !op->factory) return 0;
    if (k == KEYWORD_requires_grad) return take_flag(value, &a->requires_grad);
    if (k == KEYWORD_pin_memory) return take_flag(value, &a->pin_memory);
    if (value == Py_None || value == (PyObject *)&py_layouts[0]) return 1;
    if (Py_TYPE(value) != &PyLayout_Type || a->n_out) return 0;
    return a->layout = (uint8_t)((PyFormat *)value)->value, a->n_out = -1, 1;
}

static int bind_keywords(const py_overload *o, PyObject *const *values, PyObject *names, uint32_t *given, py_args *a)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        int       k = py_find_parameter(o, name);
        if (k >= 0 && *given >> k & 1) return 0;
        int fit = k < 0 ? bind_common(o->op, name, values[i], a) : py_convert(values[i], &o->op->args->params[k], &a->v[k], a);
        if (fit != 1) return fit;
        if (k >= 0) *given |= 1u << k;
    }
    return 1;
}

static PyObject *gather_rest(PyObject *const *args, Py_ssize_t n)
{
    PyObject *rest = PyTuple_New(n);
    for (Py_ssize_t i = 0; rest && i < n; i++) PyTuple_SET_ITEM(rest, i, Py_NewRef(args[i]));
    return rest;
}

/* x.view(2, 3): the remaining positional arguments are the list. Its values are copied into scratch, because they outlive
 * the tuple. */
static int bind_star(const py_overload *o, PyObject *const *args, Py_ssize_t n, py_args *a)
{
    int k = o->n_positional - 1;
    for (Py_ssize_t i = k; i < n && !o->op->args->params[k].required; i++)
        if (PyBool_Check(args[i])) return 0; /* std(0, True): another overload's unbiased */
    PyObject *rest = gather_rest(args + k, n - k);
    int       fit = rest ? py_convert(rest, &o->op->args->params[k], &a->v[k], a) : -1;
    Py_XDECREF(rest);
    return fit;
}

/* x.view(2**63): the int is an element of a list, for which PyTorch raises another error. */
static COLD int failed(const py_overload *o, PyObject *arg, Py_ssize_t k)
{
    bool listed = o->star && k == o->n_positional - 1 && o->op->args->params[k].kind == LC_IS_ints && PyLong_CheckExact(arg);
    if (listed && PyErr_ExceptionMatches(PyExc_ValueError))
        PyErr_Format(PyExc_TypeError,
                     "%s(): failed to unpack the object at pos 1 with error \"Overflow when unpacking long long\"",
                     o->op->name);
    return -1;
}

int py_bind(const py_overload *o, PyObject *const *args, Py_ssize_t n, PyObject *names, py_args *a)
{
    const lc_signature *sig = o->op->args;
    Py_ssize_t          plain = n;
    uint32_t            given = 0;
    int                 fit = 1;
    if (n > o->n_positional || (n == o->n_positional && o->star && py_is_tensor(args[n - 1]))) {
        if (!o->star) return 0;
        plain = o->n_positional - 1;
        if ((fit = bind_star(o, args, n, a)) != 1) return fit;
        given = 1u << plain;
    }
    for (Py_ssize_t k = 0; k < plain; k++)
        if ((fit = py_convert(args[k], &sig->params[k], &a->v[k], a)) != 1) return fit < 0 ? failed(o, args[k], k) : fit;
    given |= (1u << plain) - 1;
    if (names && (fit = bind_keywords(o, args + n, names, &given, a)) != 1) return fit;
    for (int k = (int)plain; k < sig->n_params; k++) {
        if (given >> k & 1) continue;
        if (sig->params[k].required) return 0;
        a->v[k] = sig->params[k].preset;
    }
    return 1;
}

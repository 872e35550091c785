/* The error if no overload fits the arguments: a TypeError that names them, or a ValueError if an argument is not one of the
 * allowed words.
 *
 * The TypeError's first line says which argument is wrong if that is certain: a keyword that no overload has (with the nearest
 * one that it has), or the argument on which every overload fails. What was given and the overloads follow. */
#include "../py.h"

static const char *type_name(PyObject *o)
{
    const char *type = strrchr(Py_TYPE(o)->tp_name, '.');
    return type ? type + 1 : Py_TYPE(o)->tp_name;
}
static PyObject *type_list(PyObject *const *args, Py_ssize_t n, PyObject *names) /* "(Tensor, dim=str)" */
{
    PyObject  *list = PyList_New(0), *text = NULL, *comma = PyUnicode_FromString(", ");
    Py_ssize_t n_names = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; list && comma && i < n + n_names; i++) {
        const char *type = type_name(args[i]);
        PyObject   *item =
            i < n ? PyUnicode_FromString(type) : PyUnicode_FromFormat("%U=%s", PyTuple_GET_ITEM(names, i - n), type);
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    if (list && comma) text = PyUnicode_Join(comma, list);
    Py_XDECREF(list);
    Py_XDECREF(comma);
    return text;
}

/* ---- the first line ---- */
static int distance(const char *a, const char *b) /* letters to change, add or leave out */
{
    enum { MOST = 40 };
    int    row[MOST + 1];
    size_t n = strlen(a), m = strlen(b);
    if (n > MOST || m > MOST) return MOST;
    for (size_t j = 0; j <= m; j++) row[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int changed = diagonal + (a[i - 1] != b[j - 1]), other = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            diagonal = row[j], row[j] = changed < other ? changed : other;
        }
    }
    return row[m];
}
static const char *nearest_parameter(const PyOp *self, const char *name)
{
    const char *nearest = NULL;
    int         least = ((int)strlen(name) + 1) / 2 + 1; /* half of the letters may be wrong */
    for (int i = 0; i < self->n; i++)
        for (int k = 0; k < self->overload[i].op->args->n_params; k++) {
            const char *known = self->overload[i].op->args->params[k].name;
            int         far = distance(name, known);
            if (far < least) least = far, nearest = known;
        }
    return nearest;
}
static PyObject *unknown_keyword(const PyOp *self, const char *op, PyObject *names)
{
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        bool      known = false;
        for (int k = 0; k < self->n && !known; k++)
            known = py_find_parameter(&self->overload[k], name) >= 0 || py_is_common_keyword(self->overload[k].op, name);
        const char *text = known ? NULL : PyUnicode_AsUTF8(name), *nearest = text ? nearest_parameter(self, text) : NULL;
        if (!known && !text) return NULL;
        if (nearest)
            return PyUnicode_FromFormat("%s() got an unexpected keyword argument '%s'; did you mean '%s'?\n", op, text,
                                        nearest);
        if (!known) return PyUnicode_FromFormat("%s() got an unexpected keyword argument '%s'\n", op, text);
    }
    return PyUnicode_FromString("");
}

static int number_of(const py_overload *o, PyObject *names, Py_ssize_t i) /* of the parameter for keyword i */
{
    return py_find_parameter(o, PyTuple_GET_ITEM(names, i));
}
static bool fits(const py_overload *o, int k, PyObject *value)
{
    py_args scratch;
    py_args_start(&scratch);
    int fit = py_convert(value, &o->op->args->params[k], &scratch.v[k], &scratch);
    py_args_end(&scratch);
    if (fit < 0) PyErr_Clear();
    return fit != 0;
}
/* The number of the first argument that the overload does not accept because of its type; -1: the arguments fail for another
 * reason. */
static Py_ssize_t wrong_type(const py_overload *o, PyObject *const *args, Py_ssize_t n, PyObject *names, int *parameter)
{
    Py_ssize_t n_names = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < n + n_names; i++) {
        bool rest = i < n && o->star && i >= o->n_positional - 1 && !PyTuple_Check(args[i]) && !PyList_Check(args[i]);
        if (i < n && i >= o->n_positional && !rest) return -1;
        *parameter = i >= n ? number_of(o, names, i - n) : rest ? o->n_positional - 1 : (int)i;
        if (*parameter < 0) continue;
        if (rest && o->op->args->params[*parameter].star ? !py_is_tensor(args[i]) : !fits(o, *parameter, args[i])) return i;
    }
    return -1;
}
/* The text of parameter k in the signature: "list[int]" of "dim: list[int] = 0". */
static PyObject *annotation(const lc_op *op, int k)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%s: ", op->args->params[k].name);
    const char *at = strstr(op->sig, wanted), *end;
    int         depth = 0;
    while (at && at[-1] != '(' && at[-1] != ' ' && at[-1] != '*') at = strstr(at + 1, wanted);
    if (!at) return PyUnicode_FromString(op->args->params[k].name);
    for (end = at += strlen(wanted); *end; end++) {
        depth += *end == '[', depth -= *end == ']';
        if (!depth && (*end == ',' || *end == ')' || !strncmp(end, " = ", 3))) break;
    }
    return PyUnicode_FromStringAndSize(at, end - at);
}
/* What a list holds that it must not: ", whose element 1 is str" */
static PyObject *wrong_element(const lc_param *p, PyObject *value)
{
    bool tensors = p->kind == LC_IS_tensors, listed = tensors || p->kind == LC_IS_ints || p->kind == LC_IS_floats;
    if (!listed || !(PyList_Check(value) || PyTuple_Check(value))) return PyUnicode_FromString("");
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(value, i);
        bool      number = PyLong_Check(item) || (p->kind == LC_IS_floats && PyFloat_Check(item));
        if (tensors ? !py_is_tensor(item) : !number)
            return PyUnicode_FromFormat(", whose element %zd is %s", i, type_name(item));
    }
    return PyUnicode_FromString("");
}
static PyObject *wrong_argument(const PyOp *self, const char *op, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    Py_ssize_t common = -1;
    int        parameter = 0, first = 0;
    PyObject  *types = NULL;
    for (int i = 0; i < self->n; i++) {
        const py_overload *o = &self->overload[i];
        Py_ssize_t         at = wrong_type(o, args, n, names, &parameter);
        if (at < 0 || (i && at != common)) return Py_XDECREF(types), PyUnicode_FromString("");
        PyObject *type = annotation(o->op, parameter);
        if (!type) return Py_XDECREF(types), NULL;
        common = at;
        if (!types) types = type, first = parameter;
        else {
            if (PyUnicode_Find(types, type, 0, PY_SSIZE_T_MAX, 1) == -1)
                Py_SETREF(types, PyUnicode_FromFormat("%U or %U", types, type));
            Py_DECREF(type);
            if (!types) return NULL;
        }
    }
    char place[32] = "";
    if (common < n) snprintf(place, sizeof place, " (position %zd)", common + 1);
    PyObject *element = wrong_element(&self->overload[0].op->args->params[first], args[common]), *text = NULL;
    if (element)
        text = PyUnicode_FromFormat("%s(): argument '%s'%s must be %U, not %s%U\n", op,
                                    self->overload[0].op->args->params[first].name, place, types, type_name(args[common]),
                                    element);
    Py_XDECREF(element);
    Py_DECREF(types);
    return text;
}
static PyObject *missing_arguments(const PyOp *self, const char *op, Py_ssize_t n, PyObject *names)
{
    const py_overload *o = &self->overload[0];
    const char        *absent = NULL;
    for (int k = (int)n; self->n == 1 && k < o->op->args->n_params && !absent; k++) {
        bool given = !o->op->args->params[k].required;
        for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names) && !given; i++) given = number_of(o, names, i) == k;
        if (!given) absent = o->op->args->params[k].name;
    }
    return absent ? PyUnicode_FromFormat("%s() missing a required argument: '%s'\n", op, absent) : PyUnicode_FromString("");
}
static PyObject *first_line(const PyOp *self, const char *op, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *line = unknown_keyword(self, op, names);
    if (line && !PyUnicode_GET_LENGTH(line)) Py_SETREF(line, wrong_argument(self, op, args, n, names));
    if (line && !PyUnicode_GET_LENGTH(line)) Py_SETREF(line, missing_arguments(self, op, n, names));
    return line;
}

static PyObject *invalid_combination(const PyOp *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    const char *name = py_public_name(self->overload[0].op);
    PyObject   *expected = PyUnicode_FromString(""), *got = type_list(args, n, names);
    PyObject   *line = first_line(self, name, args, n, names);
    for (int i = 0; i < self->n && expected; i++)
        Py_SETREF(expected, PyUnicode_FromFormat("%U\n * %s%s", expected, name, strchr(self->overload[i].op->sig, '(')));
    if (expected && got && line)
        PyErr_Format(PyExc_TypeError, "%U%s() received an invalid combination of arguments - got (%U), but expected%s:%U", line,
                     name, got, self->n > 1 ? " one of" : "", expected);
    Py_XDECREF(line);
    Py_XDECREF(expected);
    Py_XDECREF(got);
    return NULL;
}

/* The argument for parameter k; NULL: none. */
static PyObject *given(const py_overload *o, PyObject *const *args, Py_ssize_t n, PyObject *names, int k)
{
    if (k < n && k < o->n_positional) return args[k];
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++)
        if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i), o->names[k]) == 0) return args[n + i];
    return NULL;
}
/* Whether the argument names fit the function, whatever their types. */
static bool are_its_own(const py_overload *o, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    const lc_signature *sig = o->op->args;
    Py_ssize_t          found = 0, n_names = names ? PyTuple_GET_SIZE(names) : 0;
    for (int k = 0; k < sig->n_params; k++) {
        bool here = given(o, args, n, names, k) != NULL;
        if (!here && sig->params[k].required) return false;
        found += here;
    }
    return found == n + n_names;
}
static bool is_among(PyObject *value, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n && PyUnicode_Check(value); i++)
        if (PyUnicode_CompareWithASCIIString(value, names[i]) == 0) return true;
    return false;
}
static PyObject *wrong_name(const py_overload *o, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    static const char *const reductions[] = { "none", "mean", "sum", "elementwise_mean", "batchmean" };
    const lc_signature      *sig = o->op->args;
    for (int k = 0; k < sig->n_params; k++) {
        const char *name = sig->params[k].name;
        bool        reduction = !strcmp(name, "reduction"), mode = !strcmp(name, "compute_mode");
        PyObject   *value = reduction || mode ? given(o, args, n, names, k) : NULL;
        bool        good =
            value && (reduction ? is_among(value, reductions, sizeof reductions / sizeof *reductions) : PyUnicode_Check(value));
        if (value && !good) return PyErr_Format(PyExc_ValueError, "%R is not a valid value for %s", value, name);
    }
    return NULL;
}

PyObject *py_misfit(const PyOp *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    const py_overload *o = &self->overload[0];
    if (are_its_own(o, args, n, names)) wrong_name(o, args, n, names);
    if (PyErr_Occurred()) return NULL;
    return invalid_combination(self, args, n, names);
}

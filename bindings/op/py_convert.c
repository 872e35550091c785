/* Converters from Python objects to values, one per annotation. */
#include "../py.h"

static int long_value(PyObject *o, int64_t *i, PyObject *class) /* class: of the error */
{
    int overflow;
    *i = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) return PyErr_SetString(class, "Overflow when unpacking long long"), -1;
    return *i == -1 && PyErr_Occurred() ? -1 : 1;
}

/* An int that does not fit 64 bits. After a failure the caller of an op checks py_wide_number: together with floats it may
 * become a float (py_narrow). */
bool       py_wide_number;
static int number_value(PyObject *o, int64_t *i)
{
    int overflow;
    *i = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return 1;
    py_wide_number = true;
    PyErr_SetString(PyExc_OverflowError, "int too big to convert");
    return -1;
}
static bool is_wide(PyObject *o)
{
    int overflow = 0;
    if (PyLong_Check(o)) PyLong_AsLongLongAndOverflow(o, &overflow);
    return overflow != 0;
}
static bool is_inexact(PyObject *o)
{
    lc_dtype dtype = LC_b8;
    if (py_is_tensor(o)) return lc_is_differentiable(py_tensor(o)->dtype);
    return py_convert_dtype(o, &dtype) == 1 && lc_is_differentiable(dtype);
}
PyObject *py_narrow(PyObject *const *args, Py_ssize_t n, bool wraps)
{
    PyObject *narrow = PyTuple_New(n);
    bool      inexact = false;
    PyErr_Clear();
    py_wide_number = false;
    for (Py_ssize_t i = 0; i < n; i++) inexact |= is_inexact(args[i]);
    for (Py_ssize_t i = 0; narrow && i < n; i++) {
        PyObject *made = is_wide(args[i]) ? NULL : Py_NewRef(args[i]);
        if (!made) {
            unsigned long long bits = PyLong_AsUnsignedLongLong(args[i]); /* OverflowError beyond 64 bits, as in PyTorch */
            if (PyErr_Occurred()) made = NULL;
            else if (inexact) made = PyFloat_FromDouble((double)bits);
            else if (wraps) made = PyLong_FromLongLong((long long)bits);
            else PyErr_SetString(py_error_class(LC_LucidError), "value cannot be converted to type int64 without overflow");
        }
        if (made) PyTuple_SET_ITEM(narrow, i, made);
        else Py_CLEAR(narrow);
    }
    return narrow;
}

static bool is_plain_scalar(PyObject *o) /* a 0-d tensor that is accepted as a scalar */
{
    return py_is_tensor(o) && py_tensor(o)->ndim == 0 && !lc_requires_grad(py_tensor(o));
}

/* NumPy scalars and 0-d tensors are first converted to a Python scalar. */
static int through_item(PyObject *o, lc_value *v)
{
    PyObject *item = py_is_tensor(o) ? py_item(py_tensor(o)) : PyObject_CallMethod(o, "item", NULL);
    int       fit = item ? !py_is_numpy_scalar(item) && py_convert_number(item, v) : -1;
    Py_XDECREF(item);
    return fit;
}

int py_convert_number(PyObject *o, lc_value *v)
{
    if (PyFloat_Check(o)) return v->tag = LC_IS_float, v->f = PyFloat_AS_DOUBLE(o), 1;
    if (PyBool_Check(o)) return v->tag = LC_IS_bool, v->b = o == Py_True, 1;
    if (PyLong_Check(o)) return v->tag = LC_IS_int, number_value(o, &v->i);
    if (PyComplex_Check(o))
        return v->tag = LC_IS_complex, v->c.re = PyComplex_RealAsDouble(o), v->c.im = PyComplex_ImagAsDouble(o), 1;
    return py_is_numpy_scalar(o) ? through_item(o, v) : 0;
}

int py_convert_slow_operand(PyObject *o, const lc_param *param, lc_value *v)
{
    if (param->number_ok) {
        int fit = py_convert_number(o, v);
        if (fit) return fit;
    }
    if (!PyType_IsSubtype(Py_TYPE(o), &PyTensor_Type)) return 0;
    return v->tag = LC_IS_tensor, v->t = py_tensor(o), 1;
}

/* Anything with __index__ but bool; a 0-d tensor of integers. */
int py_convert_int(PyObject *o, int64_t *i)
{
    if (PyLong_CheckExact(o)) return long_value(o, i, PyExc_ValueError);
    if (PyBool_Check(o) || !PyIndex_Check(o)) return 0;
    if (py_is_tensor(o) && (!is_plain_scalar(o) || lc_class_of(py_tensor(o)->dtype) != LC_INT)) return 0;
    PyObject *index = PyNumber_Index(o);
    int       fit = index ? long_value(index, i, PyExc_ValueError) : -1;
    Py_XDECREF(index);
    return fit;
}

static int convert_float(PyObject *o, double *f)
{
    lc_value number;
    if (PyFloat_CheckExact(o)) return *f = PyFloat_AS_DOUBLE(o), 1;
    int fit = is_plain_scalar(o) ? through_item(o, &number) : py_convert_number(o, &number);
    if (fit == 1) *f = lc_number_of(&number);
    return fit == 1 ? number.tag != LC_IS_complex : fit;
}

typedef int (*converter)(PyObject *o, const lc_param *p, lc_value *v, py_args *scratch);

static int to_tensor(PyObject *o, const lc_param *p, lc_value *v, UNUSED py_args *scratch)
{
    return py_convert_operand(o, p, v);
}

static bool is_sequence(PyObject *o) { return PyList_Check(o) || PyTuple_Check(o); }

static int to_tensors(PyObject *o, const lc_param *p, lc_value *v, py_args *scratch)
{
    if (!is_sequence(o)) return 0;
    Py_ssize_t  n = PySequence_Fast_GET_SIZE(o);
    lc_tensor **list = py_scratch(scratch, (size_t)(n + 1) * sizeof *list);
    if (!list) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(o, i);
        if (item == Py_None && p->holes_ok) list[i] = LC_NONE;
        else if (py_is_tensor(item)) list[i] = py_tensor(item);
        else return 0;
    }
    if (PyList_Check(o)) {
        if (scratch->n_held == PY_HELD) return PyErr_Format(PyExc_SystemError, "%s: too many lists of tensors", p->name), -1;
        for (Py_ssize_t i = 0; i < n; i++) lc_retain(list[i]);
        scratch->held[scratch->n_held].list = list, scratch->held[scratch->n_held++].n = (int)n;
    }
    v->n = (int32_t)n, v->ts = list;
    return 1;
}

static int to_int(PyObject *o, UNUSED const lc_param *p, lc_value *v, UNUSED py_args *scratch)
{
    return py_convert_int(o, &v->i);
}
static int to_float(PyObject *o, UNUSED const lc_param *p, lc_value *v, UNUSED py_args *scratch)
{
    return convert_float(o, &v->f);
}

static int to_number(PyObject *o, UNUSED const lc_param *p, lc_value *v, UNUSED py_args *scratch)
{
    return is_plain_scalar(o) ? through_item(o, v) : py_convert_number(o, v);
}

static int to_bool(PyObject *o, const lc_param *p, lc_value *v, UNUSED py_args *scratch)
{
    if (p->truthy &&
        !PyBool_Check(o)) { /* PYTORCH-QUIRK: flags that PyTorch's Python code tests accept any truthy object (inplace=1) */
        int  truth = PyObject_IsTrue(o);
        bool another = p->only && truth != (p->only > 0); /* for another overload */
        return truth < 0 ? -1 : another ? 0 : (v->b = truth, 1);
    }
    if (p->only && o != (p->only > 0 ? Py_True : Py_False)) return 0;
    if (PyBool_Check(o)) return v->b = o == Py_True, 1;
    if (!py_is_numpy_scalar(o) || !strstr(Py_TYPE(o)->tp_name, "bool")) return 0;
    int truth = PyObject_IsTrue(o);
    return truth < 0 ? -1 : (v->b = truth, 1);
}

static int to_complex(PyObject *o, UNUSED const lc_param *p, lc_value *v, UNUSED py_args *scratch)
{
    lc_value number;
    int      fit = is_plain_scalar(o) ? through_item(o, &number) : py_convert_number(o, &number);
    if (fit != 1) return fit;
    double im = number.tag == LC_IS_complex ? number.c.im : 0;
    return v->c.re = lc_number_of(&number), v->c.im = im, 1;
}

/* PyTorch checks the type of the first element of a list only: later ones may be True (1) or any tensor with one integer. */
static int listed_int(PyObject *item, Py_ssize_t at, int64_t *i)
{
    if (PyLong_CheckExact(item)) return py_convert_int(item, i);
    if (PyBool_Check(item)) return at ? *i = item == Py_True, 1 : 0;
    const lc_tensor *t = py_is_tensor(item) ? py_tensor(item) : NULL;
    if (!t || t->ndim == 0 || t->numel != 1 || lc_class_of(t->dtype) != LC_INT) return py_convert_int(item, i);
    PyObject *value = PyNumber_Index(item);
    int       fit = value ? py_convert_int(value, i) : -1;
    Py_XDECREF(value);
    return fit;
}

static int to_ints(PyObject *o, const lc_param *p, lc_value *v, py_args *scratch) /* one int stands for a list */
{
    bool       many = is_sequence(o);
    Py_ssize_t n = many ? PySequence_Fast_GET_SIZE(o) : p->each > 0 ? p->each : 1;
    if (!many && p->each < 0) return 0;
    int64_t *list = py_scratch(scratch, (size_t)(n + 1) * sizeof *list);
    if (!list) return -1;
    v->n = (int32_t)n, v->is = list;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (many && i >= PySequence_Fast_GET_SIZE(o)) return 0; /* an __index__ shortened the list */
        PyObject *item = many ? PySequence_Fast_GET_ITEM(o, i) : o;
        int       fit = many ? listed_int(item, i, &list[i]) : py_convert_int(item, &list[i]);
        if (fit < 0 && many && PyLong_CheckExact(item)) /* in a list PyTorch raises another error */
            PyErr_Format(PyExc_TypeError,
                         "failed to unpack the object at pos %zd with error \"Overflow when unpacking long long\"", i + 1);
        if (fit != 1) return fit;
    }
    return 1;
}

static int to_floats(PyObject *o, const lc_param *p, lc_value *v, py_args *scratch)
{
    bool       many = is_sequence(o);
    Py_ssize_t n = many ? PySequence_Fast_GET_SIZE(o) : p->each > 0 ? p->each : 1;
    if (!many && p->each < 0) return 0;
    double *list = py_scratch(scratch, (size_t)(n + 1) * sizeof *list);
    if (!list) return -1;
    v->n = (int32_t)n, v->fs = list;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (many && i >= PySequence_Fast_GET_SIZE(o)) return 0;
        int fit = convert_float(many ? PySequence_Fast_GET_ITEM(o, i) : o, &list[i]);
        if (fit != 1) return fit;
    }
    return 1;
}

static int to_str(PyObject *o, UNUSED const lc_param *p, lc_value *v, UNUSED py_args *scratch)
{
    if (!PyUnicode_Check(o)) return 0;
    return (v->s = PyUnicode_AsUTF8(o)) ? 1 : -1;
}

int py_convert_dtype(PyObject *o, lc_dtype *dtype)
{
    if (Py_TYPE(o) == &PyDtype_Type) return *dtype = ((PyDtype *)o)->value, 1;
    if (o == (PyObject *)&PyFloat_Type) return *dtype = LC_f64, 1;
    if (o == (PyObject *)&PyLong_Type) return *dtype = LC_i64, 1;
    if (o == (PyObject *)&PyBool_Type) return *dtype = LC_b8, 1;
    if (o == (PyObject *)&PyComplex_Type) return *dtype = LC_c128, 1;
    return 0;
}

static int to_dtype(PyObject *o, UNUSED const lc_param *p, lc_value *v, UNUSED py_args *scratch)
{
    return py_convert_dtype(o, &v->dt);
}

static int to_device(PyObject *o, UNUSED const lc_param *p, lc_value *v, UNUSED py_args *scratch)
{
    return py_convert_device(o, &v->dev);
}

static int to_format(PyObject *o, const lc_param *p, lc_value *v, UNUSED py_args *scratch)
{
    if (o == Py_None && p->preset.fmt == LC_PRESERVE_FORMAT) return v->fmt = LC_PRESERVE_FORMAT, 1;
    return Py_TYPE(o) == &PyFormat_Type ? v->fmt = (lc_memory_format)((PyFormat *)o)->value, 1 : 0;
}

static int to_generator(PyObject *o, UNUSED const lc_param *p, lc_value *v, UNUSED py_args *scratch)
{
    return Py_TYPE(o) == &PyGenerator_Type ? v->gen = ((PyGenerator *)o)->g, 1 : 0;
}

static int to_object(PyObject *o, UNUSED const lc_param *p, lc_value *v, py_args *scratch)
{
    return (v->o = scratch->foreign = py_foreign(o)) ? 1 : py_raise_int();
}

int py_convert(PyObject *o, const lc_param *param, lc_value *v, py_args *scratch)
{
    static const converter converters[] = {
        [LC_IS_tensor] = to_tensor, [LC_IS_tensors] = to_tensors,     [LC_IS_int] = to_int,
        [LC_IS_float] = to_float,   [LC_IS_complex] = to_complex,     [LC_IS_bool] = to_bool,
        [LC_IS_number] = to_number, [LC_IS_ints] = to_ints,           [LC_IS_floats] = to_floats,
        [LC_IS_str] = to_str,       [LC_IS_dtype] = to_dtype,         [LC_IS_device] = to_device,
        [LC_IS_format] = to_format, [LC_IS_generator] = to_generator, [LC_IS_object] = to_object,
    };
    v->tag = param->kind;
    if (o == Py_None && param->none_ok) {
        if (param->kind == LC_IS_tensor) v->t = LC_NONE;
        else v->tag = LC_IS_none;
        return 1;
    }
    bool all = param->kind == LC_IS_ints && !param->required && param->preset.n == 0; /* dim=() means None */
    if (o == Py_None && all) return *v = param->preset, 1;
    return converters[param->kind](o, param, v, scratch);
}

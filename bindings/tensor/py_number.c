/* Operators. One row per operator names its op; the ops are found once, after they exist. A Python scalar on the left is
 * passed directly if the op accepts one there, else the row's reflected op gets the operands swapped. */
#include "../py.h"

#define ROWS(X)                                                                                                                \
    X(add, "add", "add")                                                                                                       \
    X(sub, "sub", "rsub")                                                                                                      \
    X(mul, "mul", "mul")                                                                                                       \
    X(div, "div", NULL)                                                                                                        \
    X(floordiv, "floor_divide", NULL)                                                                                          \
    X(mod, "remainder", NULL)                                                                                                  \
    X(pow, "pow", NULL)                                                                                                        \
    X(matmul, "matmul", NULL)                                                                                                  \
    X(lshift, "bitwise_left_shift", NULL)                                                                                      \
    X(rshift, "bitwise_right_shift", NULL)                                                                                     \
    X(and, "bitwise_and", "bitwise_and")                                                                                       \
    X(or, "bitwise_or", "bitwise_or")                                                                                          \
    X(xor, "bitwise_xor", "bitwise_xor")                                                                                       \
    X(iadd, "add_", NULL)                                                                                                      \
    X(isub, "sub_", NULL)                                                                                                      \
    X(imul, "mul_", NULL)                                                                                                      \
    X(idiv, "div_", NULL)                                                                                                      \
    X(ifloordiv, "floor_divide_", NULL)                                                                                        \
    X(imod, "remainder_", NULL)                                                                                                \
    X(ipow, "pow_", NULL)                                                                                                      \
    X(ilshift, "bitwise_left_shift_", NULL)                                                                                    \
    X(irshift, "bitwise_right_shift_", NULL)                                                                                   \
    X(iand, "bitwise_and_", NULL)                                                                                              \
    X(ior, "bitwise_or_", NULL)                                                                                                \
    X(ixor, "bitwise_xor_", NULL)                                                                                              \
    X(lt, "lt", "gt")                                                                                                          \
    X(le, "le", "ge")                                                                                                          \
    X(eq, "eq", "eq")                                                                                                          \
    X(ne, "ne", "ne")                                                                                                          \
    X(gt, "gt", "lt")                                                                                                          \
    X(ge, "ge", "le")                                                                                                          \
    X(neg, "neg", NULL)                                                                                                        \
    X(positive, "positive", NULL)                                                                                              \
    X(abs, "abs", NULL)                                                                                                        \
    X(invert, "bitwise_not", NULL)                                                                                             \
    X(reciprocal, "reciprocal", NULL)

enum {
#define X(id, name, reflected) ROW_##id,
    ROWS(X)
#undef X
        N_ROWS
};
typedef struct {
    PyOp *op, *reflected;
} row;
static row rows[N_ROWS];
/* What an override of the right operand is asked for. */
static const char *const right[N_ROWS] = {
    [ROW_add] = "__radd__",       [ROW_sub] = "__rsub__",       [ROW_mul] = "__rmul__",           [ROW_div] = "__rdiv__",
    [ROW_mod] = "__rmod__",       [ROW_pow] = "__rpow__",       [ROW_floordiv] = "__rfloordiv__", [ROW_matmul] = "__rmatmul__",
    [ROW_lshift] = "__rlshift__", [ROW_rshift] = "__rrshift__", [ROW_and] = "__rand__",           [ROW_or] = "__ror__",
    [ROW_xor] = "__rxor__"
};

/* The names of Python 2, which PyTorch's tensors still have. */
static int start_old_names(void)
{
    static const char *const names[][2] = { { "__div__", "__truediv__" },
                                            { "__rdiv__", "__rtruediv__" },
                                            { "__idiv__", "__itruediv__" },
                                            { "__long__", "__int__" },
                                            { "__nonzero__", "__bool__" } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        PyObject *method = PyDict_GetItemString(PyTensor_Type.tp_dict, names[i][1]);
        if (!method || PyDict_SetItemString(PyTensor_Type.tp_dict, names[i][0], method) < 0) return -1;
    }
    return 0;
}

int py_start_operators(void)
{
#define X(id, name, other) rows[ROW_##id] = (row){ py_op_named(name), other ? py_op_named(other) : NULL };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnonnull"
    ROWS(X)
#pragma GCC diagnostic pop
#undef X
    return start_old_names();
}

/* The fast path: tensors and Python scalars that the first overload takes, no override. 0: take the slow path. */
static inline bool call_directly(const PyOp *op, PyObject *a, PyObject *b, PyObject **result)
{
    lc_value            v[PY_PARAMS];
    lc_tensor          *out;
    const lc_op        *o = op->overload[0].op;
    const lc_signature *sig = o->args;
    if (py_overrides || sig->n_params < 2 || sig->params[1].kind != LC_IS_tensor || sig->params[0].kind != LC_IS_tensor)
        return false;
    if (py_convert_operand(a, &sig->params[0], &v[0]) != 1 || py_convert_operand(b, &sig->params[1], &v[1]) != 1) return false;
    for (int k = 2; k < sig->n_params; k++) v[k] = sig->params[k].preset;
    *result = lc_call(o, v, &out) < 0 ? py_raise() : py_wrap(out);
    return true;
}

static bool           is_wide_error(void) { return py_wide_number && PyErr_Occurred() == PyExc_OverflowError; }
static PyObject      *binary(int id, PyObject *a, PyObject *b);
static COLD PyObject *binary_narrow(int id, PyObject *a, PyObject *b) /* beside integers an operand of 64 bits wraps */
{
    PyObject *narrow = py_narrow((PyObject *[]){ a, b }, 2, true), *result = NULL;
    if (narrow) result = binary(id, PyTuple_GET_ITEM(narrow, 0), PyTuple_GET_ITEM(narrow, 1));
    Py_XDECREF(narrow);
    return result;
}
static COLD PyObject *try_reflected(int id, PyObject *a, PyObject *b) /* 1 - x asks as x.__rsub__(1) */
{
    const row *r = &rows[id];
    if (!right[id] || py_is_tensor(a) || !py_is_tensor(b)) return NULL;
    PyObject *func = r->op == r->reflected ? (PyObject *)r->op : PyDict_GetItemString(PyTensor_Type.tp_dict, right[id]);
    return py_try_override(func, (PyObject *[]){ b, a }, 2, NULL);
}
static PyObject *binary(int id, PyObject *a, PyObject *b)
{
    const row *r = &rows[id];
    PyObject  *result;
    if (__builtin_expect(r->op && call_directly(r->op, a, b, &result), 1)) return result;
    if (r->op && is_wide_error()) return binary_narrow(id, a, b);
    if (!r->op || PyErr_Occurred()) return PyErr_Occurred() ? NULL : Py_NewRef(Py_NotImplemented);
    if (py_overrides && (result = try_reflected(id, a, b))) return result;
    if (PyErr_Occurred()) return NULL;
    result = py_call_operator(r->op, (PyObject *[]){ a, b }, 2);
    if (!result && is_wide_error()) return binary_narrow(id, a, b);
    if (result != Py_NotImplemented || !r->reflected || py_is_tensor(a)) return result;
    Py_DECREF(result);
    return py_call_operator(r->reflected, (PyObject *[]){ b, a }, 2);
}

static PyObject *unary(int id, PyObject *a)
{
    if (!rows[id].op) return py_fail(NotImplementedError, "this operator has no op");
    return PyObject_Vectorcall((PyObject *)rows[id].op, (PyObject *[]){ a }, 1, NULL);
}

/* tensor == array, which NumPy leaves to us. PyTorch supports no other comparison of the two. */
static COLD PyObject *equal_to_array(PyObject *a, PyObject *array, PyObject *unknown)
{
    lc_tensor *t = py_from_array(array, false);
    if (!t) return PyErr_Clear(), unknown; /* of strings or objects: not equal */
    PyObject *other = py_wrap(t), *result = other ? binary(ROW_eq, a, other) : NULL;
    Py_XDECREF(other);
    Py_DECREF(unknown);
    return result;
}

PyObject *py_compare(PyObject *a, PyObject *b, int how)
{
    static const int ids[] = {
        [Py_LT] = ROW_lt, [Py_LE] = ROW_le, [Py_EQ] = ROW_eq, [Py_NE] = ROW_ne, [Py_GT] = ROW_gt, [Py_GE] = ROW_ge
    };
    PyObject *result = binary(ids[how], a, b);
    return result == Py_NotImplemented && how == Py_EQ && py_is_array(b) ? equal_to_array(a, b, result) : result;
}

#define BINARY(id)                                                                                                             \
    static PyObject *nb_##id(PyObject *a, PyObject *b) { return binary(ROW_##id, a, b); }
#define UNARY(id)                                                                                                              \
    static PyObject *nb_##id(PyObject *a) { return unary(ROW_##id, a); }
BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(floordiv)
BINARY(mod)
BINARY(matmul)
BINARY(lshift)
BINARY(rshift)
BINARY(and)
BINARY(or)
BINARY(xor) BINARY(iadd) BINARY(isub) BINARY(imul) BINARY(idiv) BINARY(ifloordiv) BINARY(imod) BINARY(ilshift) BINARY(irshift)
    BINARY(iand) BINARY(ior) BINARY(ixor) UNARY(neg) UNARY(positive) UNARY(abs)
    /* scalar / tensor is computed as scalar * reciprocal: PyTorch's rounding. */
    static PyObject *nb_div(PyObject *a, PyObject *b)
{
    lc_value number;
    if (py_overrides) { /* an override must see one call, of div */
        PyObject *result = try_reflected(ROW_div, a, b);
        if (result || PyErr_Occurred()) return result;
    }
    if (py_is_tensor(a) || py_convert_number(a, &number) != 1) {
        if (is_wide_error()) return binary_narrow(ROW_div, a, b);
        return PyErr_Occurred() ? NULL : binary(ROW_div, a, b);
    }
    PyObject *inverse = unary(ROW_reciprocal, b), *result = inverse ? binary(ROW_mul, inverse, a) : NULL;
    Py_XDECREF(inverse);
    return result;
}

static PyObject *nb_invert(PyObject *a)
{
    if (lc_class_of(py_tensor(a)->dtype) > LC_INT)
        return PyErr_Format(PyExc_TypeError, "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return unary(ROW_invert, a);
}

static PyObject *power(int id, PyObject *a, PyObject *b, PyObject *modulus)
{
    if (modulus != Py_None) return Py_NewRef(Py_NotImplemented);
    return binary(id, a, b);
}
static PyObject *nb_pow(PyObject *a, PyObject *b, PyObject *modulus) { return power(ROW_pow, a, b, modulus); }
static PyObject *nb_ipow(PyObject *a, PyObject *b, PyObject *modulus) { return power(ROW_ipow, a, b, modulus); }

/* Values. */
static int nb_bool(PyObject *self)
{
    PyObject *other = py_overrides ? py_try_override_slot("__bool__", &self, 1) : NULL;
    if (other) {
        int truth = PyObject_IsTrue(other);
        Py_DECREF(other);
        return truth;
    }
    if (PyErr_Occurred()) return -1;
    const lc_tensor *t = py_tensor(self);
    if (t->numel != 1) {
        py_fail(LucidError, "Boolean value of Tensor with %s is ambiguous", t->numel ? "more than one value" : "no values");
        return -1;
    }
    PyObject *value = py_item(t);
    int       truth = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return truth;
}

static PyObject *one_value(PyObject *self)
{
    if (py_tensor(self)->numel != 1)
        return PyErr_Format(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
    return py_item(py_tensor(self));
}
static PyObject *through(const char *slot, PyObject *self, PyObject *(*convert)(PyObject *))
{
    PyObject *other = py_overrides ? py_try_override_slot(slot, &self, 1) : NULL;
    if (other || PyErr_Occurred()) return other;
    PyObject *value = one_value(self), *result = value ? convert(value) : NULL;
    Py_XDECREF(value);
    return result;
}
static PyObject *real_float(PyObject *value)
{
    if (PyComplex_Check(value) && PyComplex_ImagAsDouble(value) != 0)
        return PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type double without overflow");
    return PyComplex_Check(value) ? PyFloat_FromDouble(PyComplex_RealAsDouble(value)) : PyNumber_Float(value);
}
static PyObject *real_int(PyObject *value)
{
    PyObject *real = PyComplex_Check(value) ? real_float(value) : Py_NewRef(value), *result = real ? PyNumber_Long(real) : NULL;
    Py_XDECREF(real);
    return result;
}
static PyObject *nb_int(PyObject *self) { return through("__int__", self, real_int); }
static PyObject *nb_float(PyObject *self) { return through("__float__", self, real_float); }
static PyObject *nb_index(PyObject *self)
{
    const lc_tensor *t = py_tensor(self);
    if (t->numel != 1 || lc_class_of(t->dtype) > LC_INT)
        return PyErr_Format(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
    return through("__index__", self, PyNumber_Long);
}

PyNumberMethods py_number_methods = { .nb_add = nb_add,
                                      .nb_subtract = nb_sub,
                                      .nb_multiply = nb_mul,
                                      .nb_remainder = nb_mod,
                                      .nb_power = nb_pow,
                                      .nb_negative = nb_neg,
                                      .nb_positive = nb_positive,
                                      .nb_absolute = nb_abs,
                                      .nb_bool = nb_bool,
                                      .nb_invert = nb_invert,
                                      .nb_lshift = nb_lshift,
                                      .nb_rshift = nb_rshift,
                                      .nb_and = nb_and,
                                      .nb_xor = nb_xor,
                                      .nb_or = nb_or,
                                      .nb_int = nb_int,
                                      .nb_float = nb_float,
                                      .nb_inplace_add = nb_iadd,
                                      .nb_inplace_subtract = nb_isub,
                                      .nb_inplace_multiply = nb_imul,
                                      .nb_inplace_remainder = nb_imod,
                                      .nb_inplace_power = nb_ipow,
                                      .nb_inplace_lshift = nb_ilshift,
                                      .nb_inplace_rshift = nb_irshift,
                                      .nb_inplace_and = nb_iand,
                                      .nb_inplace_xor = nb_ixor,
                                      .nb_inplace_or = nb_ior,
                                      .nb_floor_divide = nb_floordiv,
                                      .nb_true_divide = nb_div,
                                      .nb_inplace_floor_divide = nb_ifloordiv,
                                      .nb_inplace_true_divide = nb_idiv,
                                      .nb_index = nb_index,
                                      .nb_matrix_multiply = nb_matmul };

/* Type promotion (op/promote.h) for Python: result_type, promote_types, can_cast. */
#include "../py.h"
#include "../../engine/op/promote.h"

static PyObject *dtype_object(lc_dtype dtype)
{
    if (dtype == LC_DTYPE_COUNT) return py_raise();
    return Py_NewRef((PyObject *)&py_dtypes[dtype]);
}

static int two_dtypes(PyObject *args, PyObject *kwargs, const char *format, char **names, lc_dtype *found)
{
    PyObject *given[2];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, names, &given[0], &given[1])) return -1;
    for (int i = 0; i < 2; i++) {
        int fit = py_convert_dtype(given[i], &found[i]);
        if (fit == 0)
            PyErr_Format(PyExc_TypeError, "%s(): argument '%s' (position %d) must be lucid.dtype, not %s",
                         strchr(format, ':') + 1, names[i], i + 1, Py_TYPE(given[i])->tp_name);
        if (fit != 1) return -1;
    }
    return 0;
}

static PyObject *promote_types(UNUSED PyObject *m, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "type1", "type2", NULL };
    lc_dtype     d[2];
    return two_dtypes(args, kwargs, "OO:promote_types", names, d) < 0 ? NULL : dtype_object(lc_promote_types(d[0], d[1]));
}

static PyObject *can_cast(UNUSED PyObject *m, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "from_", "to", NULL };
    lc_dtype     d[2];
    return two_dtypes(args, kwargs, "OO:can_cast", names, d) < 0 ? NULL : PyBool_FromLong(lc_can_cast(d[0], d[1]));
}

static lc_tensor *operand(PyObject *o, lc_number_box *box)
{
    lc_value v;
    if (py_is_tensor(o)) return py_tensor(o);
    int fit = py_convert_number(o, &v);
    if (fit == 0) PyErr_Format(PyExc_TypeError, "result_type() expects tensors and numbers, not %s", Py_TYPE(o)->tp_name);
    if (fit != 1) return NULL;
    if (v.tag == LC_IS_int) return lc_number_init_int(box, v.i);
    if (v.tag == LC_IS_complex) return lc_number_init(box, LC_c128, v.c.re, v.c.im);
    return lc_number_init(box, v.tag == LC_IS_bool ? LC_b8 : LC_f64, lc_number_of(&v), 0);
}

static PyObject *result_type(UNUSED PyObject *m, PyObject *args, PyObject *kwargs)
{
    static char  *names[] = { "tensor", "other", NULL };
    PyObject     *given[2];
    lc_number_box box[2];
    lc_tensor    *in[2];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:result_type", names, &given[0], &given[1])) return NULL;
    for (int i = 0; i < 2; i++)
        if (!(in[i] = operand(given[i], &box[i]))) return NULL;
    return dtype_object(lc_result_type(in, 2));
}

#define KEYWORDS(f) (PyCFunction)(void (*)(void))(f), METH_VARARGS | METH_KEYWORDS
static PyMethodDef functions[] = {
    { "promote_types", KEYWORDS(promote_types),
      "promote_types(type1, type2)\n--\n\nThe smallest dtype that holds numbers of both.\n\n>>> "
      "lucid.promote_types(lucid.int32, "
      "lucid.float16)\nlucid.float16\n" },
    { "can_cast", KEYWORDS(can_cast),
      "can_cast(from_, to)\n--\n\nWhether results of one dtype may be written into another: never to a lower class (complex, "
      "float, int, bool).\n\n>>> lucid.can_cast(lucid.int64, lucid.float32), lucid.can_cast(lucid.float32, "
      "lucid.int64)\n(True, "
      "False)\n" },
    { "result_type", KEYWORDS(result_type),
      "result_type(tensor, other)\n--\n\nThe dtype of what arithmetic makes of two tensors or numbers.\n\n>>> "
      "lucid.result_type(lucid.ones(2, dtype=lucid.int8), 1.5)\nlucid.float32\n" },
    { 0 },
};
int py_add_promotion(PyObject *m) { return PyModule_AddFunctions(m, functions); }

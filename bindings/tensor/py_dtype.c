/* dtype, memory_format and layout: names that compare by identity, print as lucid.name and pickle by it. */
#include "../py.h"
#include "../../engine/op/promote.h"
#include "../../engine/tensor/sparse.h"

static PyObject *name_text(const char *name) { return PyUnicode_FromFormat("%s.%s", py_package, name); }
static lc_dtype  dtype_value(PyObject *self) { return ((PyDtype *)self)->value; }

/* Tells pickle the module of the name: without it pickle searches every module. */
static PyObject *home_module(UNUSED PyObject *self, UNUSED void *unused) { return PyUnicode_FromString("lucid"); }

static PyObject *dtype_repr(PyObject *self) { return name_text(lc_dtypes[dtype_value(self)].name); }
static PyObject *dtype_reduce(PyObject *self, UNUSED PyObject *unused)
{
    return PyUnicode_FromString(lc_dtypes[dtype_value(self)].name);
}
static PyObject *dtype_floating(PyObject *self, UNUSED void *unused)
{
    return PyBool_FromLong(lc_is_floating(dtype_value(self)));
}
static PyObject *dtype_complex(PyObject *self, UNUSED void *unused)
{
    return PyBool_FromLong(lc_is_complex(dtype_value(self)));
}
static PyObject *dtype_itemsize(PyObject *self, UNUSED void *unused) { return PyLong_FromLong(lc_size_of(dtype_value(self))); }
static PyObject *dtype_signed(PyObject *self, UNUSED void *unused)
{
    lc_dtype d = dtype_value(self);
    return PyBool_FromLong(d != LC_b8 && d != LC_f8_e8m0fnu && !lc_is_unsigned(d));
}
static PyObject *dtype_to_real(PyObject *self, UNUSED PyObject *unused)
{
    return Py_NewRef((PyObject *)&py_dtypes[lc_real_of(dtype_value(self))]);
}
static PyObject *dtype_to_complex(PyObject *self, UNUSED PyObject *unused)
{
    lc_dtype d = dtype_value(self);
    if (lc_is_complex(d)) return Py_NewRef(self);
    if (!lc_is_floating(d) || lc_is_float8(d)) return py_fail(LucidError, "there is no complex type for %s", lc_dtypes[d].name);
    return Py_NewRef(&py_dtypes[lc_complex_of(d)]);
}

static PyGetSetDef dtype_attributes[] = { { "is_floating_point", dtype_floating, NULL, "Whether it is a float.", NULL },
                                          { "is_complex", dtype_complex, NULL, "Whether it is complex.", NULL },
                                          { "is_signed", dtype_signed, NULL, "Whether it has negative numbers.", NULL },
                                          { "itemsize", dtype_itemsize, NULL, "Bytes per element.", NULL },
                                          { "__module__", home_module, NULL, NULL, NULL },
                                          { 0 } };
static PyMethodDef dtype_methods[] = { { "to_real", dtype_to_real, METH_NOARGS, "The type of a complex type's parts." },
                                       { "to_complex", dtype_to_complex, METH_NOARGS,
                                         "The complex type with parts of this type." },
                                       { "__reduce__", dtype_reduce, METH_NOARGS, NULL },
                                       { 0 } };
PyTypeObject       PyDtype_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid.dtype",
                                    .tp_basicsize = sizeof(PyDtype),
                                    .tp_flags = Py_TPFLAGS_DEFAULT,
                                    .tp_doc = "The type of a tensor's elements.",
                                    .tp_repr = dtype_repr,
                                    .tp_methods = dtype_methods,
                                    .tp_getset = dtype_attributes };
PyDtype            py_dtypes[LC_DTYPE_COUNT];

int py_add_dtypes(PyObject *module)
{
    if (PyType_Ready(&PyDtype_Type) < 0 || PyModule_AddObjectRef(module, "dtype", (PyObject *)&PyDtype_Type) < 0) return -1;
    for (int d = 0; d < LC_DTYPE_COUNT; d++) {
        PyObject_Init((PyObject *)&py_dtypes[d], &PyDtype_Type);
        py_dtypes[d].value = (lc_dtype)d;
        if (PyModule_AddObjectRef(module, lc_dtypes[d].name, (PyObject *)&py_dtypes[d]) < 0) return -1;
    }
    return 0;
}

static PyObject *format_repr(PyObject *self) { return name_text(((PyFormat *)self)->name); }
static PyObject *format_reduce(PyObject *self, UNUSED PyObject *unused)
{
    return PyUnicode_FromString(((PyFormat *)self)->name);
}
static PyGetSetDef format_attributes[] = { { "__module__", home_module, NULL, NULL, NULL }, { 0 } };
static PyMethodDef format_methods[] = { { "__reduce__", format_reduce, METH_NOARGS, NULL }, { 0 } };
PyTypeObject       PyFormat_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid.memory_format",
                                     .tp_basicsize = sizeof(PyFormat),
                                     .tp_flags = Py_TPFLAGS_DEFAULT,
                                     .tp_doc = "The order of elements in memory.",
                                     .tp_repr = format_repr,
                                     .tp_methods = format_methods,
                                     .tp_getset = format_attributes };
PyTypeObject       PyLayout_Type = { PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lucid.layout",
                                     .tp_basicsize = sizeof(PyFormat),
                                     .tp_flags = Py_TPFLAGS_DEFAULT,
                                     .tp_doc = "How a tensor keeps its elements.",
                                     .tp_repr = format_repr,
                                     .tp_methods = format_methods,
                                     .tp_getset = format_attributes };
PyFormat           py_formats[] = { [LC_CONTIGUOUS_FORMAT] = { .name = "contiguous_format" },
                                    [LC_CHANNELS_LAST] = { .name = "channels_last" },
                                    [LC_CHANNELS_LAST_3D] = { .name = "channels_last_3d" },
                                    [LC_PRESERVE_FORMAT] = { .name = "preserve_format" } };

static int add_name(PyObject *module, PyFormat *f, PyTypeObject *type, int value)
{
    PyObject_Init((PyObject *)f, type);
    f->value = value;
    return PyModule_AddObjectRef(module, f->name, (PyObject *)f);
}

int py_add_formats(PyObject *module)
{
    if (PyType_Ready(&PyFormat_Type) < 0 || PyModule_AddObjectRef(module, "memory_format", (PyObject *)&PyFormat_Type) < 0)
        return -1;
    if (PyType_Ready(&PyLayout_Type) < 0 || PyModule_AddObjectRef(module, "layout", (PyObject *)&PyLayout_Type) < 0) return -1;
    for (int i = 0; i <= LC_PRESERVE_FORMAT; i++)
        if (add_name(module, &py_formats[i], &PyFormat_Type, i) < 0) return -1;
    for (int i = 0; i < LC_LAYOUTS; i++) {
        py_layouts[i].name = lc_layout_names[i];
        if (add_name(module, &py_layouts[i], &PyLayout_Type, i) < 0) return -1;
    }
    return 0;
}

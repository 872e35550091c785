/* NumPy arrays, read where they lie. An exact float32 ndarray is read through the layout of its C struct, which NumPy promises to
 * every compiled extension: the buffer protocol answers the same questions in 150 ns, and a call here has 350. The first
 * array compares the two; if they differ, or for any other object, the buffer protocol or a conversion is the way.
 *
 * New arrays come from PyArray_New, entry 93 of NumPy's table of functions in every version; without the table from numpy.empty. */
#include "lightning.h"

typedef struct { /* the public part of NumPy's PyArrayObject */
    PyObject_HEAD char *data;
    int                 nd;
    Py_ssize_t         *dims, *strides;
    PyObject           *base, *descr;
    int                 flags;
} array_object;
enum { CONTIGUOUS = 1, ALIGNED = 0x100, WRITEABLE = 0x400, READABLE_AS_IT_IS = CONTIGUOUS | ALIGNED };
enum { NEW_ARRAY = 93, NUMPY_FLOAT = 11 };
typedef PyObject *(*new_array_fn)(PyTypeObject *, int, const Py_ssize_t *, int, const Py_ssize_t *, void *, int, int,
                                  PyObject *);

static PyTypeObject *array_type;
static PyObject     *float_descr, *numpy_asarray, *numpy_empty, *asarray_names;
static bool          direct; /* the layout is as we know it */
static new_array_fn  new_array;

static new_array_fn find_new_array(void)
{
    static const char *const homes[] = { "numpy._core._multiarray_umath", "numpy.core._multiarray_umath" };
    for (int i = 0; i < 2; i++) {
        PyObject *home = PyImport_ImportModule(homes[i]), *capsule = home ? PyObject_GetAttrString(home, "_ARRAY_API") : NULL;
        void    **table = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
        Py_XDECREF(capsule);
        Py_XDECREF(home);
        if (table) return (new_array_fn)table[NEW_ARRAY];
        PyErr_Clear();
    }
    return NULL;
}

/* Whether the struct of an array says what its buffer says. */
static bool layout_is_known(PyObject *array)
{
    Py_buffer           view;
    const array_object *a = (const array_object *)array;
    if (Py_TYPE(array) != array_type || PyObject_GetBuffer(array, &view, PyBUF_FULL) < 0) return PyErr_Clear(), false;
    bool same = a->data == view.buf && a->nd == view.ndim && a->nd == 2 && a->descr == float_descr &&
                (a->flags & (READABLE_AS_IT_IS | WRITEABLE)) == (READABLE_AS_IT_IS | WRITEABLE);
    for (int d = 0; same && d < a->nd; d++) same = a->dims[d] == view.shape[d] && a->strides[d] == view.strides[d];
    PyBuffer_Release(&view);
    return same;
}

static int start(void) /* loads NumPy, with the first array; -1 raised */
{
    static const Py_ssize_t dims[] = { 3, 5 };
    PyObject               *numpy = PyImport_ImportModule("numpy");
    if (!numpy) {
        PyErr_SetString(PyExc_ImportError, "lightning_core works on NumPy arrays: pip install numpy");
        return -1;
    }
    array_type = (PyTypeObject *)PyObject_GetAttrString(numpy, "ndarray");
    numpy_asarray = PyObject_GetAttrString(numpy, "asarray");
    float_descr = PyObject_CallMethod(numpy, "dtype", "s", "float32");
    asarray_names = Py_BuildValue("(ss)", "dtype", "order");
    PyObject *empty = PyObject_GetAttrString(numpy, "empty");
    Py_DECREF(numpy);
    if (!array_type || !numpy_asarray || !float_descr || !asarray_names || !empty) return -1;
    numpy_empty = empty;
    new_array_fn make = find_new_array();
    PyObject    *sample = PyObject_CallFunction(empty, "((nn)O)", dims[0], dims[1], float_descr);
    if (!sample) return numpy_empty = NULL, -1;
    direct = layout_is_known(sample);
    Py_DECREF(sample);
    PyObject *made = direct && make ? make(array_type, 2, dims, NUMPY_FLOAT, NULL, NULL, 0, 0, NULL) : NULL;
    if (made && layout_is_known(made)) new_array = make;
    else PyErr_Clear();
    Py_XDECREF(made);
    return 0;
}

static Py_ssize_t product_of(int nd, const Py_ssize_t *dims)
{
    Py_ssize_t n = 1;
    for (int d = 0; d < nd; d++) n *= dims[d];
    return n;
}
static inline bool as_it_is(PyObject *o, int flags, lightning_array *a)
{
    const array_object *array = (const array_object *)o;
    if (!direct || Py_TYPE(o) != array_type || array->descr != float_descr || (array->flags & flags) != flags) return false;
    a->data = (float *)array->data, a->nd = array->nd, a->dims = array->dims, a->size = product_of(array->nd, array->dims);
    return true;
}
static int from_buffer(PyObject *o, int flags, lightning_array *a)
{
    if (PyObject_GetBuffer(o, &a->view, flags) < 0) return -1;
    a->from_buffer = true;
    a->data = a->view.buf, a->nd = a->view.ndim, a->dims = a->view.shape, a->size = product_of(a->nd, a->dims);
    return 0;
}

int lightning_read(PyObject *o, lightning_array *a)
{
    a->owner = NULL, a->from_buffer = false;
    if (as_it_is(o, READABLE_AS_IT_IS, a)) return 0;
    if (!numpy_empty) return start() < 0 ? -1 : lightning_read(o, a);
    if (PyUnicode_Check(o) || PyBytes_Check(o) || PyDict_Check(o) || o == Py_None)
        return PyErr_Format(PyExc_TypeError, "an array of numbers is expected, not %s", Py_TYPE(o)->tp_name), -1;
    PyObject *order = PyUnicode_InternFromString("C"), *call[] = { o, float_descr, order };
    a->owner = order ? PyObject_Vectorcall(numpy_asarray, call, 1, asarray_names) : NULL;
    Py_XDECREF(order);
    if (!a->owner) return -1;
    if (as_it_is(a->owner, READABLE_AS_IT_IS, a)) return 0;
    if (from_buffer(a->owner, PyBUF_C_CONTIGUOUS, a) < 0) return -1;
    if ((uintptr_t)a->data % _Alignof(float) == 0) return 0;
    PyObject *aligned = PyObject_CallMethod(a->owner, "copy", NULL); /* asarray lets odd addresses pass */
    PyBuffer_Release(&a->view), a->from_buffer = false;
    Py_SETREF(a->owner, aligned);
    return aligned ? from_buffer(aligned, PyBUF_C_CONTIGUOUS, a) : -1;
}

int lightning_write(PyObject *o, lightning_array *a)
{
    a->owner = NULL, a->from_buffer = false;
    if (as_it_is(o, READABLE_AS_IT_IS | WRITEABLE, a)) return 0;
    if (!numpy_empty) return start() < 0 ? -1 : lightning_write(o, a);
    if (!PyObject_CheckBuffer(o))
        return PyErr_Format(PyExc_TypeError, "out must be a float32 array, not %s", Py_TYPE(o)->tp_name), -1;
    if (from_buffer(o, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE, a) < 0) {
        PyErr_Clear();
        return PyErr_SetString(PyExc_ValueError, "out must be a writable, C-contiguous float32 array"), -1;
    }
    const char *format = a->view.format ? a->view.format : "B";
    if (a->view.itemsize == 4 && (!strcmp(format, "f") || !strcmp(format, "=f") || !strcmp(format, "<f")) &&
        (uintptr_t)a->data % _Alignof(float) == 0)
        return 0;
    PyErr_SetString(PyExc_ValueError, "out must be float32: another dtype would need a hidden copy");
    return -1;
}

void lightning_end(lightning_array *arrays, int n)
{
    for (int i = 0; i < n; i++) {
        if (__builtin_expect(arrays[i].from_buffer, 0)) PyBuffer_Release(&arrays[i].view);
        Py_XDECREF(arrays[i].owner);
    }
}

PyObject *lightning_new(int nd, const Py_ssize_t *dims, float **data)
{
    if (new_array) {
        PyObject *array = new_array(array_type, nd, dims, NUMPY_FLOAT, NULL, NULL, 0, 0, NULL);
        if (array) *data = (float *)((array_object *)array)->data;
        return array;
    }
    PyObject *shape = PyTuple_New(nd);
    for (int d = 0; shape && d < nd; d++) PyTuple_SET_ITEM(shape, d, PyLong_FromSsize_t(dims[d]));
    PyObject       *array = shape ? PyObject_CallFunctionObjArgs(numpy_empty, shape, float_descr, NULL) : NULL;
    lightning_array made = { 0 };
    Py_XDECREF(shape);
    if (array && from_buffer(array, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE, &made) < 0) Py_CLEAR(array);
    if (array) *data = made.data, PyBuffer_Release(&made.view); /* the memory of an array does not move */
    return array;
}

/* ---- results ---- */
int lightning_target_new(lightning_target *t, int nd, const Py_ssize_t *dims)
{
    t->to = NULL;
    return (t->array = lightning_new(nd, dims, &t->data)) ? 0 : -1;
}
int lightning_target_over(lightning_target *t, const lightning_array *out, const lightning_array *in, int n)
{
    bool overlaps = false;
    t->array = NULL, t->to = NULL, t->data = out->data, t->bytes = (size_t)out->size * sizeof(float);
    for (int i = 0; i < n; i++) overlaps |= out->data < in[i].data + in[i].size && in[i].data < out->data + out->size;
    if (!overlaps) return 0;
    t->to = out->data, t->data = lc_alloc(t->bytes);
    return t->data ? 0 : py_raise_int();
}
PyObject *lightning_target_end(lightning_target *t, int rc)
{
    if (t->to) {
        if (!rc) memcpy(t->to, t->data, t->bytes);
        lc_free(t->data, t->bytes);
    }
    if (rc < 0) return Py_XDECREF(t->array), NULL;
    return t->array ? t->array : Py_NewRef(Py_None);
}

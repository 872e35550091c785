/* Nested Python lists in and out.
 *
 * In: two passes. The first finds the shape (from first elements, as PyTorch does) and the kinds of scalars; the second
 * stores the values and checks the lengths of lists. Lists of Python scalars are walked without any call; tensors, arrays
 * and NumPy scalars inside them take a slower path through their own dtype and value. */
#include "../py.h"
#include "../../engine/jit/trace.h"
#include "../../engine/tensor/sparse.h"
#include "../../engine/op/promote.h"

enum { SEEN_BOOL = 1, SEEN_INT = 2, SEEN_FLOAT = 4, SEEN_COMPLEX = 8 };
typedef struct {
    int      ndim;
    int64_t  shape[LC_MAX_DIMS];
    unsigned seen;  /* kinds of Python scalars */
    int      found; /* promoted dtype of all other values; -1: none */
    lc_dtype dtype; /* to store */
} plan;

static bool is_list(PyObject *o) { return PyList_Check(o) || PyTuple_Check(o); }
static bool is_level(PyObject *o) /* a dimension rather than a value */
{
    if (is_list(o)) return true;
    if (py_is_tensor(o) || PyUnicode_Check(o) || PyBytes_Check(o) || PyDict_Check(o)) return false;
    if (!PySequence_Check(o)) return false;
    if (PySequence_Size(o) >= 0) return true;
    return PyErr_Clear(), false; /* 0-d arrays claim to be sequences */
}

static int measure_shape(PyObject *data, plan *p)
{
    PyObject *o = Py_NewRef(data);
    while (is_level(o)) {
        Py_ssize_t n = PySequence_Size(o);
        if (p->ndim == LC_MAX_DIMS)
            return Py_DECREF(o), PyErr_Format(PyExc_ValueError, "too many dimensions '%s'", Py_TYPE(data)->tp_name), -1;
        p->shape[p->ndim++] = n;
        PyObject *first = n ? PySequence_GetItem(o, 0) : NULL;
        Py_SETREF(o, first);
        if (n == 0 || !o) break;
    }
    if (!o && PyErr_Occurred()) return -1;
    if (o && p->ndim && PyUnicode_Check(o))
        return Py_DECREF(o), PyErr_Format(PyExc_ValueError, "too many dimensions 'str'"), -1;
    Py_XDECREF(o);
    return 0;
}

static int note_dtype(plan *p, lc_dtype dtype)
{
    p->found = p->found < 0 ? (int)dtype : (int)lc_promote_types((lc_dtype)p->found, dtype);
    return p->found == LC_DTYPE_COUNT ? py_raise_int() : 0;
}

static int note_value(PyObject *o, plan *p)
{
    if (PyFloat_CheckExact(o)) p->seen |= SEEN_FLOAT;
    else if (PyBool_Check(o)) p->seen |= SEEN_BOOL;
    else if (PyLong_Check(o)) p->seen |= SEEN_INT;
    else if (PyComplex_CheckExact(o)) p->seen |= SEEN_COMPLEX;
    else if (py_is_tensor(o)) return note_dtype(p, (lc_dtype)py_tensor(o)->dtype);
    else if (py_is_array(o)) {
        lc_tensor *t = py_from_array(o, false);
        if (!t) return -1;
        note_dtype(p, (lc_dtype)t->dtype);
        lc_release(t);
    } else if (PyFloat_Check(o)) p->seen |= SEEN_FLOAT;
    else if (PyComplex_Check(o)) p->seen |= SEEN_COMPLEX;
    else if (PyUnicode_Check(o) || PyBytes_Check(o) || is_list(o))
        return PyErr_Format(PyExc_TypeError, "new(): invalid data type '%s'", Py_TYPE(o)->tp_name), -1;
    else return PyErr_Format(PyExc_RuntimeError, "Could not infer dtype of %s", Py_TYPE(o)->tp_name), -1;
    return 0;
}

static int note_values(PyObject *o, int depth, plan *p)
{
    if (depth >= p->ndim || (!is_list(o) && !is_level(o))) return note_value(o, p);
    PyObject *items = is_list(o) ? Py_NewRef(o) : PySequence_Fast(o, "not a sequence");
    if (!items) return -1;
    int rc = 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items) && rc == 0; i++)
        rc = note_values(PySequence_Fast_GET_ITEM(items, i), depth + 1, p);
    Py_DECREF(items);
    return rc;
}

static lc_dtype chosen_dtype(const plan *p)
{
    int numbers = p->seen & SEEN_COMPLEX ? (int)lc_complex_of(lc_default_dtype)
                  : p->seen & SEEN_FLOAT ? (int)lc_default_dtype
                  : p->seen & SEEN_INT   ? (int)LC_i64
                  : p->seen & SEEN_BOOL  ? (int)LC_b8
                                         : -1;
    if (numbers < 0 && p->found < 0) return lc_default_dtype; /* no values at all */
    if (numbers < 0 || p->found < 0) return (lc_dtype)(numbers < 0 ? p->found : numbers);
    lc_dtype both = lc_promote_types((lc_dtype)p->found, (lc_dtype)numbers);
    return both == LC_DTYPE_COUNT ? (lc_dtype)p->found : both; /* a uint16 among Python scalars */
}

static int raise_overflow(int dtype)
{
    return PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type %s without overflow", lc_dtypes[dtype].name), -1;
}

static int store_int(int64_t i, int dtype, void *at)
{
    static const int bits[] = {
        [LC_u8] = 8, [LC_i8] = 7, [LC_i16] = 15, [LC_i32] = 31, [LC_i64] = 63, [LC_u16] = 16, [LC_u32] = 32, [LC_u64] = 63
    };
    int64_t limit = dtype == LC_i64 || dtype == LC_u64 ? INT64_MAX : ((int64_t)1 << bits[dtype]) - 1;
    int64_t least = lc_is_unsigned(dtype) ? -limit : -limit - 1; /* as PyTorch: -1 is a uint8 */
    if (i > limit || i < least) return raise_overflow(dtype);
    memcpy(at, &i, (size_t)lc_size_of(dtype)); /* little endian */
    return 0;
}

static int store_real(double x, int dtype, void *at)
{
    switch (dtype) {
    case LC_f32:
        *(float *)at = (float)x;
        return 0;
    case LC_f64:
        *(double *)at = x;
        return 0;
    case LC_f16:
        *(uint16_t *)at = lc_f32_to_f16((float)x);
        return 0;
    case LC_bf16:
        *(uint16_t *)at = lc_f32_to_bf16((float)x);
        return 0;
    case LC_c32:
        ((uint16_t *)at)[0] = lc_f32_to_f16((float)x), ((uint16_t *)at)[1] = 0;
        return 0;
    case LC_c64:
        ((float *)at)[0] = (float)x, ((float *)at)[1] = 0;
        return 0;
    case LC_c128:
        ((double *)at)[0] = x, ((double *)at)[1] = 0;
        return 0;
    case LC_b8:
        *(bool *)at = x != 0;
        return 0;
    default:
        if (lc_is_float8(dtype)) return *(uint8_t *)at = lc_f32_to_f8((lc_dtype)dtype, (float)x), 0;
        if (!(x > -0x1p63 && x < 0x1p63) || (x < 0 && lc_is_unsigned(dtype))) return raise_overflow(dtype);
        return store_int((int64_t)x, dtype, at);
    }
}

static int store_complex(PyObject *o, int dtype, void *at)
{
    double re = PyComplex_RealAsDouble(o), im = PyComplex_ImagAsDouble(o);
    if (dtype == LC_c64) ((float *)at)[0] = (float)re, ((float *)at)[1] = (float)im;
    else if (dtype == LC_c32) ((uint16_t *)at)[0] = lc_f32_to_f16((float)re), ((uint16_t *)at)[1] = lc_f32_to_f16((float)im);
    else if (dtype == LC_c128) ((double *)at)[0] = re, ((double *)at)[1] = im;
    else if (dtype == LC_b8) *(bool *)at = re != 0 || im != 0;
    else return PyErr_Format(PyExc_TypeError, "must be real number, not complex"), -1;
    return 0;
}

static int store_item(PyObject *item, int dtype, void *at) /* steals item */
{
    int rc = item ? py_element_store(item, dtype, at) : -1;
    Py_XDECREF(item);
    return rc;
}

int py_element_store(PyObject *o, int dtype, void *at)
{
    if (PyFloat_Check(o)) return store_real(PyFloat_AS_DOUBLE(o), dtype, at);
    if (PyLong_Check(o)) { /* bool too */
        int     overflow;
        int64_t i = PyLong_AsLongLongAndOverflow(o, &overflow);
        if (dtype == LC_b8) return *(bool *)at = overflow || i, 0;
        if (overflow > 0 && dtype == LC_u64) {
            *(uint64_t *)at = PyLong_AsUnsignedLongLong(o);
            return PyErr_Occurred() ? -1 : 0;
        }
        if (overflow && lc_class_of(dtype) == LC_INT)
            return PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long"), -1;
        if (lc_class_of(dtype) == LC_INT) return store_int(i, dtype, at);
        double x = overflow ? PyLong_AsDouble(o) : (double)i;
        return x == -1 && PyErr_Occurred() ? -1 : store_real(x, dtype, at);
    }
    if (PyComplex_Check(o)) return store_complex(o, dtype, at);
    if (py_is_tensor(o) && py_tensor(o)->numel != 1)
        return PyErr_SetString(PyExc_ValueError, "only one element tensors can be converted to Python scalars"), -1;
    if (py_is_tensor(o)) return store_item(py_item(py_tensor(o)), dtype, at);
    if (py_is_array(o) || py_is_numpy_scalar(o)) return store_item(PyObject_CallMethod(o, "item", NULL), dtype, at);
    if (PyIndex_Check(o)) return store_item(PyNumber_Index(o), dtype, at);
    return PyErr_Format(PyExc_TypeError, "'%s' object cannot be interpreted as a number", Py_TYPE(o)->tp_name), -1;
}

static int store_level(PyObject *items, int depth, const plan *p, char **at);

static int store(PyObject *o, int depth, const plan *p, char **at)
{
    if (depth == p->ndim) {
        if (py_element_store(o, p->dtype, *at) < 0) return -1;
        return *at += lc_size_of(p->dtype), 0;
    }
    if (is_list(o)) return store_level(o, depth, p, at);
    if (!is_level(o)) return PyErr_Clear(), PyErr_SetString(PyExc_TypeError, "not a sequence"), -1;
    PyObject *items = PySequence_Fast(o, "not a sequence");
    int       rc = items ? store_level(items, depth, p, at) : -1;
    Py_XDECREF(items);
    return rc;
}

static int store_level(PyObject *items, int depth, const plan *p, char **at)
{
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items), i = 0;
    if (n != p->shape[depth])
        return PyErr_Format(PyExc_ValueError, "expected sequence of length %lld at dim %d (got %zd)",
                            (long long)p->shape[depth], depth, n),
               -1;
    if (depth == p->ndim - 1 && p->dtype == LC_f32) { /* the usual case: a row of floats */
        float *row = (float *)*at;
        for (PyObject **item = PySequence_Fast_ITEMS(items); i < n && PyFloat_CheckExact(item[i]); i++)
            row[i] = (float)PyFloat_AS_DOUBLE(item[i]);
        *at += i * (Py_ssize_t)sizeof *row;
    }
    for (; i < n; i++) {
        if (i >= PySequence_Fast_GET_SIZE(items))
            return PyErr_SetString(PyExc_RuntimeError, "the list changed while it was read"), -1;
        if (store(PySequence_Fast_GET_ITEM(items, i), depth + 1, p, at) < 0) return -1;
    }
    return 0;
}

/* A tensor on the CPU with the same values: t itself if it is there. New reference, NULL raised. */
static lc_tensor *on_cpu(const lc_tensor *t)
{
    if (t->device.kind == LC_CPU) return lc_retain((lc_tensor *)t);
    if (t->device.kind == LC_META) return lc_fail(LC_NotImplementedError, "Cannot copy out of meta tensor; no data!");
    const lc_backend *backend = lc_backend_of(t->device);
    lc_tensor        *dense = NULL, *copy = NULL;
    if (backend) dense = lc_tensor_new((lc_dtype)t->dtype, t->device, t->ndim, t->shape);
    if (dense && backend->copy(dense, t) == 0)
        copy = lc_tensor_new((lc_dtype)t->dtype, (lc_device){ LC_CPU, 0 }, t->ndim, t->shape);
    if (copy && lc_transfer(copy, dense) < 0) lc_release(copy), copy = NULL;
    lc_release(dense);
    return copy;
}

static lc_tensor *moved_to(lc_tensor *t, const lc_device *device) /* takes t, which is new and on the CPU */
{
    if (!t || !device || device->kind == LC_CPU) return t;
    const lc_backend *backend = lc_backend_of(*device);
    lc_tensor        *copy = backend ? lc_tensor_new((lc_dtype)t->dtype, *device, t->ndim, t->shape) : NULL;
    if (copy && backend->can.values && lc_transfer(copy, t) < 0) lc_release(copy), copy = NULL;
    lc_release(t);
    return copy;
}

static lc_tensor *from_numbers(PyObject *data, const lc_dtype *dtype)
{
    plan p;
    p.ndim = 0, p.seen = 0, p.found = -1;
    if (measure_shape(data, &p) < 0) return NULL;
    if (dtype) p.dtype = *dtype;
    else if (note_values(data, 0, &p) < 0) return NULL;
    else p.dtype = chosen_dtype(&p);
    lc_tensor *t = lc_tensor_new(p.dtype, (lc_device){ LC_CPU, 0 }, p.ndim, p.shape);
    if (!t) return py_raise(), NULL;
    char *at = t->data;
    if (store(data, 0, &p, &at) == 0) return t;
    lc_release(t);
    return NULL;
}

/* On the same device, without history; the order of dimensions is kept. */
static lc_tensor *copy_as(const lc_tensor *from, lc_dtype dtype)
{
    int64_t stride[LC_MAX_DIMS];
    lc_strides_like(from, stride);
    lc_tensor        *t = lc_tensor_new_strided(dtype, from->device, from->ndim, from->shape, stride);
    const lc_backend *backend = t ? lc_backend_of(from->device) : NULL;
    if (t && (!backend || backend->copy(t, from) < 0)) lc_release(t), t = NULL;
    return t;
}

/* A copy of anything tensor() accepts. dtype and device NULL: those of the data. */
lc_tensor *py_from_data(PyObject *data, const lc_dtype *dtype, const lc_device *device)
{
    lc_tensor *t = NULL, *source = NULL;
    if (py_is_tensor(data)) source = lc_retain(py_tensor(data));
    else if (py_is_array(data)) {
        if (!(source = py_from_array(data, false))) return NULL;
    } else {
        if (!(t = from_numbers(data, dtype))) return NULL;
        t = moved_to(t, device ? device : &lc_default_device);
        if (t && lc_modes & LC_TRACING) lc_trace_constant(t); /* from plain data: the guards of the trace watch that */
        return t ? t : (py_raise(), NULL);
    }
    if (source->device.kind != LC_CPU && (!device || lc_same_device(*device, source->device)))
        t = copy_as(source, dtype ? *dtype : (lc_dtype)source->dtype);
    else {
        lc_tensor       *near = on_cpu(source);
        const lc_device *to = device ? device : py_is_tensor(data) ? NULL : &lc_default_device;
        t = near ? moved_to(copy_as(near, dtype ? *dtype : (lc_dtype)near->dtype), to) : NULL;
        lc_release(near);
    }
    lc_release(source);
    return t ? t : (py_raise(), NULL);
}

static PyObject *py_element(int dtype, const void *at)
{
    switch (dtype) {
    case LC_b8:
        return PyBool_FromLong(*(const uint8_t *)at);
    case LC_u8:
        return PyLong_FromLong(*(const uint8_t *)at);
    case LC_i8:
        return PyLong_FromLong(*(const int8_t *)at);
    case LC_i16:
        return PyLong_FromLong(*(const int16_t *)at);
    case LC_i32:
        return PyLong_FromLong(*(const int32_t *)at);
    case LC_i64:
        return PyLong_FromLongLong(*(const int64_t *)at);
    case LC_u16:
        return PyLong_FromLong(*(const uint16_t *)at);
    case LC_u32:
        return PyLong_FromLongLong(*(const uint32_t *)at);
    case LC_u64:
        return PyLong_FromUnsignedLongLong(*(const uint64_t *)at);
    case LC_f16:
        return PyFloat_FromDouble((double)lc_f16_to_f32(*(const uint16_t *)at));
    case LC_bf16:
        return PyFloat_FromDouble((double)lc_bf16_to_f32(*(const uint16_t *)at));
    case LC_f32:
        return PyFloat_FromDouble((double)*(const float *)at);
    case LC_f64:
        return PyFloat_FromDouble(*(const double *)at);
    case LC_c32:
        return PyComplex_FromDoubles((double)lc_f16_to_f32(((const uint16_t *)at)[0]),
                                     (double)lc_f16_to_f32(((const uint16_t *)at)[1]));
    case LC_c64:
        return PyComplex_FromDoubles((double)((const float *)at)[0], (double)((const float *)at)[1]);
    default:
        if (lc_is_float8(dtype)) return PyFloat_FromDouble((double)lc_f8_to_f32((lc_dtype)dtype, *(const uint8_t *)at));
        return PyComplex_FromDoubles(((const double *)at)[0], ((const double *)at)[1]);
    }
}

static PyObject *nested(const lc_tensor *t, int depth, const char *at)
{
    if (depth == t->ndim) return py_element(t->dtype, at);
    PyObject *list = PyList_New(t->shape[depth]);
    int64_t   step = t->stride[depth] * lc_size_of(t->dtype);
    for (int64_t i = 0; list && i < t->shape[depth]; i++) {
        PyObject *item = nested(t, depth + 1, at + i * step);
        if (item) PyList_SET_ITEM(list, i, item);
        else Py_CLEAR(list);
    }
    return list;
}

int py_check_values(const lc_tensor *t)
{
    if (lc_modes & LC_TRACING) lc_reading_values("a tensor whose values are looked at in the host language");
    if (!(t->flags & (LC_NO_VALUES | LC_BATCHED | LC_SPARSE))) return 0;
    if (t->flags & LC_SPARSE)
        return PyErr_Format(PyExc_TypeError,
                            "can't look at the memory of a %s tensor (tolist, numpy, buffers). Use Tensor.to_dense() first.",
                            lc_layout_names[lc_layout_of(t)]),
               -1;
    if (t->flags & LC_NO_VALUES) lc_fail(LC_LucidError, "the values of this tensor were not kept");
    else lc_fail(LC_LucidError, "vmap: a batched tensor has no single value to read; use ops, or leave vmap first");
    return py_raise_int();
}

static PyObject *values_of(const lc_tensor *t, PyObject *(*read)(const lc_tensor *, int, const char *))
{
    if (py_check_values(t) < 0) return NULL;
    lc_tensor *near = on_cpu(t);
    PyObject  *values = near ? read(near, 0, near->data) : py_raise();
    lc_release(near);
    return values;
}

PyObject *py_to_nested(const lc_tensor *t) { return values_of(t, nested); }

static PyObject *single(const lc_tensor *t, UNUSED int depth, const char *at) { return py_element(t->dtype, at); }
PyObject        *py_item(const lc_tensor *t)
{
    if (t->numel != 1)
        return py_fail(LucidError, "a Tensor with %lld elements cannot be converted to Scalar", (long long)t->numel);
    if (t->device.kind == LC_META) return py_fail(LucidError, "Tensor.item() cannot be called on meta tensors");
    if (py_check_values(t) < 0) return NULL;
    return t->device.kind == LC_CPU && t->data ? py_element(t->dtype, t->data) : values_of(t, single);
}

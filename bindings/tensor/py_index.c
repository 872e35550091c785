/* x[...] and x[...] = v.
 *
 * Items are applied from left to right. Ints, slices and None are views of what came before; tensors, lists and masks are collected,
 * each with the dimension it stands for, and given to `index` (or `index_put_`) in the end. A mask stands for as many dimensions as
 * it has. True and False add a dimension of size one and index it with [0] or []. */
#include "../py.h"

static struct {
    const char  *name;
    const lc_op *op;
} used[] = { { "select", 0 }, { "slice", 0 }, { "unsqueeze", 0 }, { "index", 0 }, { "index_put_", 0 },
             { "copy_", 0 },  { "fill_", 0 }, { "alias", 0 },     { "view", 0 } };
enum { SELECT, SLICE, UNSQUEEZE, INDEX, INDEX_PUT, COPY, FILL, ALIAS, VIEW, USED };

int py_start_indexing(void)
{
    for (int i = 0; i < USED; i++) used[i].op = py_engine_op(used[i].name);
    return 0;
}

#define TENSOR(x) ((lc_value){ .tag = LC_IS_tensor, .t = (x) })

static lc_tensor *call(int which, const lc_value *args, int n)
{
    if (!used[which].op) return py_fail(NotImplementedError, "%s", used[which].name), NULL;
    return py_call_raw(used[which].op, args, n);
}

typedef struct {
    lc_tensor *t;                    /* the result of the views so far; owned */
    int        dim;                  /* of t: where the next item applies */
    int        item;                 /* position of the item, for messages */
    lc_tensor *indices[LC_MAX_DIMS]; /* owned; LC_NONE: a whole dimension */
    int        n, covered;           /* entries of indices, and how many dimensions of t they stand for */
} cursor;

static int become(cursor *c, lc_tensor *t) /* takes t */
{
    if (!t) return -1;
    lc_release(c->t);
    return c->t = t, 0;
}

static int fail_index(const char *text) { return PyErr_SetString(py_error_class(LC_IndexError), text), -1; }

static int apply_int(cursor *c, int64_t i)
{
    if (c->t->ndim == 0)
        return fail_index("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
                          "convert a 0-dim tensor to a number");
    if (c->dim >= c->t->ndim) return fail_index("too many indices for tensor");
    int64_t n = c->t->shape[c->dim];
    if (i < -n || i >= n)
        return py_fail(IndexError, "index %lld is out of bounds for dimension %d with size %lld", (long long)i, c->item,
                       (long long)n),
               -1;
    return become(c, call(SELECT, (lc_value[]){ TENSOR(c->t), LC_I(c->dim), LC_I(i) }, 3));
}

static int apply_slice(cursor *c, PyObject *slice)
{
    Py_ssize_t start, stop, step;
    if (c->t->ndim == 0) return fail_index("slice() cannot be applied to a 0-dim tensor.");
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0) return -1;
    if (step < 0) return PyErr_SetString(PyExc_ValueError, "step must be greater than zero"), -1;
    Py_ssize_t size = (Py_ssize_t)c->t->shape[c->dim];
    PySlice_AdjustIndices(size, &start, &stop, step);
    if (stop < start) stop = start;
    int d = c->dim++;
    if (start == 0 && stop == size && step == 1) return 0;
    return become(c, call(SLICE, (lc_value[]){ TENSOR(c->t), LC_I(d), LC_I(start), LC_I(stop), LC_I(step) }, 5));
}

static int apply_none(cursor *c)
{
    int d = c->dim++;
    return become(c, call(UNSQUEEZE, (lc_value[]){ TENSOR(c->t), LC_I(d) }, 2));
}

static int record(cursor *c, lc_tensor *index, int stands_for) /* takes index */
{
    while (c->covered < c->dim && c->n < LC_MAX_DIMS - 1) c->indices[c->n++] = lc_retain(LC_NONE), c->covered++;
    if (c->n >= LC_MAX_DIMS - 1) return lc_release(index), fail_index("too many indices for tensor");
    c->indices[c->n++] = index;
    c->dim += stands_for, c->covered += stands_for;
    return 0;
}

static int apply_truth(cursor *c, bool truth)
{
    int d = c->dim;
    if (apply_none(c) < 0) return -1;
    c->dim = d;
    lc_tensor *index = lc_tensor_new(LC_i64, (lc_device){ LC_CPU, 0 }, 1, (int64_t[]){ truth });
    if (!index) return py_raise_int();
    if (truth) *(int64_t *)index->data = 0;
    return record(c, index, 1);
}

static bool is_mask(const lc_tensor *t) { return t->dtype == LC_b8 || t->dtype == LC_u8; }

static int apply_tensor(cursor *c, lc_tensor *index)
{
    bool narrow = index->dtype == LC_i8 || index->dtype == LC_i16; /* only 0-d ones are indices */
    if (lc_class_of(index->dtype) > LC_INT || (narrow && index->ndim))
        return fail_index("tensors used as indices must be long, int, byte or bool tensors");
    if (index->ndim == 0 && index->device.kind != LC_META && !(index->flags & LC_BATCHED)) {
        PyObject *value = py_item(index);
        int64_t   i = value ? PyLong_AsLongLong(value) : -1;
        Py_XDECREF(value);
        if (PyErr_Occurred()) return -1;
        return is_mask(index) ? apply_truth(c, i != 0) : apply_int(c, i);
    }
    return record(c, lc_retain(index), is_mask(index) ? index->ndim : 1);
}

static int apply_sequence(cursor *c, PyObject *item)
{
    lc_tensor *index = py_from_data(item, NULL, &c->t->device);
    if (!index) return -1;
    if (index->numel == 0 && lc_class_of(index->dtype) > LC_INT) { /* x[[]]: a list of no ints */
        lc_tensor *ints = lc_tensor_new(LC_i64, index->device, index->ndim, index->shape);
        lc_release(index);
        if (!(index = ints)) return py_raise_int();
    }
    int rc = apply_tensor(c, index);
    lc_release(index);
    return rc;
}

static int apply(cursor *c, PyObject *item, int rest) /* rest: dimensions that an ellipsis stands for */
{
    int64_t i;
    if (item == Py_None) return apply_none(c);
    if (item == Py_Ellipsis) return c->dim += rest, 0;
    if (PyBool_Check(item)) return apply_truth(c, item == Py_True);
    if (PySlice_Check(item)) return apply_slice(c, item);
    if (py_is_tensor(item)) return apply_tensor(c, py_tensor(item));
    if (!PyLong_Check(item) && (py_is_array(item) || PySequence_Check(item)) && !py_is_numpy_scalar(item))
        return apply_sequence(c, item);
    int fit = py_convert_int(item, &i);
    if (fit == 0)
        return PyErr_Format(
                   py_error_class(LC_IndexError),
                   "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got %s)",
                   Py_TYPE(item)->tp_name),
               -1;
    return fit < 0 ? -1 : apply_int(c, i);
}

static bool array_is_mask(PyObject *item)
{
    PyObject *dtype = PyObject_GetAttrString(item, "dtype"), *kind = dtype ? PyObject_GetAttrString(dtype, "kind") : NULL;
    bool      mask = kind && PyUnicode_Check(kind) && PyUnicode_CompareWithASCIIString(kind, "b") == 0;
    Py_XDECREF(dtype);
    Py_XDECREF(kind);
    PyErr_Clear();
    return mask;
}

static int stands_for(PyObject *item) /* how many dimensions an item uses up */
{
    if (item == Py_None || item == Py_Ellipsis || PyBool_Check(item)) return 0;
    if (py_is_tensor(item)) return is_mask(py_tensor(item)) ? py_tensor(item)->ndim : 1;
    if (PyList_Check(item)) { /* a nested list of bools is a mask */
        int depth = 0;
        while (PyList_Check(item) && PyList_GET_SIZE(item)) item = PyList_GET_ITEM(item, 0), depth++;
        return depth && PyBool_Check(item) ? depth : 1;
    }
    if (py_is_array(item) && array_is_mask(item)) {
        PyObject *ndim = PyObject_GetAttrString(item, "ndim");
        int       n = ndim ? (int)PyLong_AsLong(ndim) : 1;
        Py_XDECREF(ndim);
        return PyErr_Clear(), n;
    }
    return 1;
}

static int apply_tuple(cursor *c, PyObject *items)
{
    int total = 0, ndim = c->t->ndim;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); i++) total += stands_for(PyTuple_GET_ITEM(items, i));
    if (total > ndim) return py_fail(IndexError, "too many indices for tensor of dimension %d", ndim), -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); i++) {
        c->item = (int)i;
        if (apply(c, PyTuple_GET_ITEM(items, i), ndim - total) < 0) return -1;
    }
    return 0;
}

/* A list that holds tensors, lists, slices, None or an ellipsis means the tuple of its items: NumPy's old rule, which PyTorch keeps. */
static bool is_tuple_in_disguise(PyObject *key)
{
    if (PyTuple_Check(key)) return true;
    if (!PyList_Check(key) || PyList_GET_SIZE(key) >= 32) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(key); i++) {
        PyObject *item = PyList_GET_ITEM(key, i);
        if (py_is_tensor(item) || PySequence_Check(item) || PySlice_Check(item) || item == Py_Ellipsis || item == Py_None)
            return true;
    }
    return false;
}

static void end(cursor *c)
{
    lc_release(c->t);
    for (int i = 0; i < c->n; i++) lc_release(c->indices[i]);
}

static int walk(cursor *c, lc_tensor *t, PyObject *key)
{
    c->t = lc_retain(t), c->dim = c->item = c->n = c->covered = 0;
    if (!is_tuple_in_disguise(key)) {
        if (stands_for(key) > t->ndim && !PyLong_Check(key) && !PySlice_Check(key))
            return py_fail(IndexError, "too many indices for tensor of dimension %d", t->ndim), -1;
        return apply(c, key, 0);
    }
    PyObject *items = PySequence_Tuple(key);
    int       rc = items ? apply_tuple(c, items) : -1;
    Py_XDECREF(items);
    return rc;
}

/* Indices may come from the CPU whatever the tensor's device; the op wants them where the tensor is. */
static int bring_indices(cursor *c)
{
    for (int i = 0; i < c->n; i++) {
        lc_tensor *index = c->indices[i];
        if (index == LC_NONE || lc_same_device(index->device, c->t->device)) continue;
        PyObject  *wrapped = py_wrap(lc_retain(index));
        lc_tensor *moved = wrapped ? py_from_data(wrapped, NULL, &c->t->device) : NULL;
        Py_XDECREF(wrapped);
        if (!moved) return -1;
        lc_release(index);
        c->indices[i] = moved;
    }
    return 0;
}

static lc_tensor *result_of(cursor *c, lc_tensor *t)
{
    if (c->n) {
        if (bring_indices(c) < 0) return NULL;
        return call(INDEX, (lc_value[]){ TENSOR(c->t), { .tag = LC_IS_tensors, .n = c->n, .ts = c->indices } }, 2);
    }
    if (c->t != t) return lc_retain(c->t);
    return call(ALIAS, (lc_value[]){ TENSOR(t) }, 1); /* x[...] is a new tensor */
}

static PyObject *get_item(PyObject *self, PyObject *key)
{
    cursor     c;
    lc_tensor *t = py_tensor(self);
    if (py_overrides) {
        PyObject *result = py_try_override_slot("__getitem__", (PyObject *[]){ self, key }, 2);
        if (result || PyErr_Occurred()) return result;
    }
    lc_calls_incomplete |= !PyLong_CheckExact(key);             /* slices are cut to sizes here */
    if (PyLong_CheckExact(key) && t->ndim && used[SELECT].op) { /* x[3] */
        int     overflow;
        int64_t i = PyLong_AsLongLongAndOverflow(key, &overflow);
        if (i >= -t->shape[0] && i < t->shape[0] && !overflow)
            return py_call(used[SELECT].op, (lc_value[]){ TENSOR(t), LC_I(0), LC_I(i) }, 3);
    }
    lc_tensor *found = walk(&c, t, key) < 0 ? NULL : result_of(&c, t);
    end(&c);
    return found ? py_wrap(found) : NULL;
}

/* --- assignment -------------------------------------------------------------------------------------------------------------------- */
static int check_number(PyObject *value, int dtype) /* 1: a scalar that fits, 0: not a scalar */
{
    lc_value number;
    char     at[16];
    int      fit = PyFloat_Check(value) && lc_is_floating(dtype) ? 1 : py_convert_number(value, &number);
    if (fit < 0 && py_wide_number) PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
    if (fit != 1) return fit;
    if (PyComplex_Check(value) && !lc_is_complex(dtype) && dtype != LC_b8 && PyComplex_ImagAsDouble(value) != 0)
        return PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type %s without overflow", lc_dtypes[dtype].name),
               -1;
    return PyComplex_Check(value) && !lc_is_complex(dtype) ? 1 : py_element_store(value, dtype, at) < 0 ? -1 : 1;
}

/* Broadcasting adds leading dimensions, so leading dimensions of size one can be dropped. New reference. */
static lc_tensor *without_leading_ones(lc_tensor *value)
{
    int skip = 0;
    while (skip < value->ndim && value->shape[skip] == 1) skip++;
    if (!skip) return lc_retain(value);
    return call(VIEW, (lc_value[]){ TENSOR(value), { .tag = LC_IS_ints, .n = value->ndim - skip, .is = value->shape + skip } },
                2);
}

static int done(lc_tensor *t)
{
    lc_release(t);
    return t ? 0 : -1;
}

static int assign_number(cursor *c, PyObject *value)
{
    lc_value number;
    lc_dtype dtype = (lc_dtype)c->t->dtype;
    if (!c->n) {
        if (py_convert_number(value, &number) != 1) return -1;
        if (lc_overlaps_itself(c->t))
            return py_fail(LucidError,
                           "unsupported operation: more than one element of the written-to tensor refers to a single memory "
                           "location. Please clone() the tensor before performing the operation."),
                   -1;
        if (number.tag == LC_IS_complex && !lc_is_complex(dtype))
            number = LC_F(dtype == LC_b8 ? number.c.re != 0 || number.c.im != 0 : number.c.re);
        return done(call(FILL, (lc_value[]){ TENSOR(c->t), number }, 2));
    }
    lc_tensor *filled = py_from_data(value, &dtype, &c->t->device);
    if (!filled) return -1;
    int rc = done(call(INDEX_PUT,
                       (lc_value[]){ TENSOR(c->t), { .tag = LC_IS_tensors, .n = c->n, .ts = c->indices }, TENSOR(filled) }, 3));
    lc_release(filled);
    return rc;
}

static int assign_tensor(cursor *c, lc_tensor *value)
{
    lc_tensor *fitted = without_leading_ones(value);
    if (!fitted) return -1;
    lc_value put[] = { TENSOR(c->t), { .tag = LC_IS_tensors, .n = c->n, .ts = c->indices }, TENSOR(fitted) };
    int      rc = c->n ? done(call(INDEX_PUT, put, 3)) : done(call(COPY, (lc_value[]){ TENSOR(c->t), TENSOR(fitted) }, 2));
    lc_release(fitted);
    return rc;
}

static int set_item(PyObject *self, PyObject *key, PyObject *value)
{
    cursor c;
    int    number = 0;
    if (!value) return PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items"), -1;
    lc_calls_incomplete = true;
    if (py_overrides) {
        PyObject *result = py_try_override_slot("__setitem__", (PyObject *[]){ self, key, value }, 3);
        Py_XDECREF(result);
        if (result || PyErr_Occurred()) return result ? 0 : -1;
    }
    if (!py_is_tensor(value) && (number = check_number(value, py_tensor(self)->dtype)) != 1) {
        PyObject *made = number == 0 ? py_foreign_tensor(value) : NULL; /* another library's */
        int       rc = made ? set_item(self, key, made) : -1;
        Py_XDECREF(made);
        if (made) return rc;
        if (number == 0 && !PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "can't assign a %s to a %s tensor", Py_TYPE(value)->tp_name,
                         lc_dtypes[py_tensor(self)->dtype].name);
        return -1;
    }
    if (key == Py_False) return 0; /* selects nothing, whatever the shape of value, as in PyTorch */
    int rc = walk(&c, py_tensor(self), key);
    if (rc == 0) rc = c.n ? bring_indices(&c) : 0;
    if (rc == 0) rc = number ? assign_number(&c, value) : assign_tensor(&c, py_tensor(value));
    end(&c);
    return rc;
}

/* --- sequence ------------------------------------------------------------------------------------------------------------------------ */
static Py_ssize_t length(PyObject *self)
{
    lc_calls_incomplete = true;
    PyObject *other = py_overrides ? py_try_override_slot("__len__", &self, 1) : NULL;
    if (other) {
        Py_ssize_t n = PyLong_AsSsize_t(other);
        Py_DECREF(other);
        return n;
    }
    if (PyErr_Occurred()) return -1;
    if (py_tensor(self)->ndim == 0) return PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor"), -1;
    return (Py_ssize_t)py_tensor(self)->shape[0];
}

static PyObject *item_at(PyObject *self, Py_ssize_t i) /* PySequence_GetItem; negative indices come adjusted */
{
    PyObject *key = PyLong_FromSsize_t(i), *item = key ? get_item(self, key) : NULL;
    Py_XDECREF(key);
    return item;
}

static int contains(PyObject *self, PyObject *value)
{
    lc_value  number;
    PyObject *other = py_overrides ? py_try_override_slot("__contains__", (PyObject *[]){ self, value }, 2) : NULL;
    if (other) {
        int truth = PyObject_IsTrue(other);
        Py_DECREF(other);
        return truth;
    }
    if (PyErr_Occurred()) return -1;
    if (!py_is_tensor(value) && py_convert_number(value, &number) != 1) {
        if (!PyErr_Occurred())
            py_fail(LucidError, "Tensor.__contains__ only supports Tensor or scalar, but you passed in a %s.",
                    Py_TYPE(value)->tp_name);
        return -1;
    }
    PyObject *equal = PyObject_RichCompare(self, value, Py_EQ), *any = equal ? PyObject_CallMethod(equal, "any", NULL) : NULL;
    int       found = any ? PyObject_IsTrue(any) : -1;
    Py_XDECREF(equal);
    Py_XDECREF(any);
    return found;
}

PyMappingMethods  py_mapping_methods = { .mp_length = length, .mp_subscript = get_item, .mp_ass_subscript = set_item };
PySequenceMethods py_sequence_methods = { .sq_length = length, .sq_item = item_at, .sq_contains = contains };

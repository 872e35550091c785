/* Methods of tensors that are written in Python (lucid/_methods.py), because they call Python functions or are never hot.
 * The first call of one loads the module. */
#include "py.h"

PyObject *py_in_python(const char *home, const char *name, PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject  *module = PyImport_ImportModule(home), *function = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject  *full = function ? PyTuple_New(n + 1) : NULL, *result = NULL;
    if (full) {
        PyTuple_SET_ITEM(full, 0, Py_NewRef(self));
        for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(full, i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
        result = PyObject_Call(function, full, kwargs);
    }
    Py_XDECREF(full);
    Py_XDECREF(function);
    Py_XDECREF(module);
    return result;
}

#define METHODS(X)                                                                                                             \
    X(apply_, "Replace every element by what a Python function makes of it.")                                                  \
    X(map_, "Replace every element by a Python function of it and of another tensor's.")                                       \
    X(map2_, "Replace every element by a Python function of it and of two other tensors'.")                                    \
    X(is_same_size, "Whether another tensor has the same shape.")                                                              \
    X(is_set_to, "Whether another tensor looks at the same elements of the same memory.")                                      \
    X(is_nonzero, "Whether the one value is not zero.")                                                                        \
    X(lu, "The LU factorisation with pivots, in one matrix.")                                                                  \
    X(is_distributed, "Whether the values are distributed over processes: never.")                                             \
    X(const_data_ptr, "The address of the first element, to read.")                                                            \
    X(to_sparse, "The tensor in a sparse layout.")                                                                             \
    X(to_sparse_coo, "The tensor as indices and values.")                                                                      \
    X(to_sparse_csr, "The tensor in rows that are compressed.")                                                                \
    X(to_sparse_csc, "The tensor in columns that are compressed.")                                                             \
    X(to_sparse_bsr, "The tensor in rows of blocks that are compressed.")                                                      \
    X(to_sparse_bsc, "The tensor in columns of blocks that are compressed.")                                                   \
    X(sparse_resize_, "Give a COO tensor another size, and other sparse and dense dimensions, in place.")                      \
    X(sparse_resize_and_clear_, "The same, without its entries.")                                                              \
    X(dim_order, "Dimensions from the outermost to the innermost in memory.")                                                  \
    X(storage, "The memory behind it, as elements of its dtype.")                                                              \
    X(storage_type, "The legacy class of its storage: lucid.FloatStorage.")                                                    \
    X(record_stream, "Keep the memory until a stream of a GPU is done; nothing to do on the CPU.")                             \
    X(new, "PyTorch's old constructor, with this tensor's dtype.")                                                             \
    X(hash_tensor, "The elements, as 64-bit patterns, joined by exclusive or.")                                                \
    X(slice_inverse, "A view in the shape of the tensor that it is a slice of.")                                               \
    X(module_load, "What load_state_dict puts in its place.")                                                                  \
    X(set_, "Look at the memory of another tensor, or at a storage, from now on.")

#define X(name, doc)                                                                                                           \
    static PyObject *m_##name(PyObject *self, PyObject *args, PyObject *kwargs)                                                \
    {                                                                                                                          \
        return py_in_python("lucid._methods", #name, self, args, kwargs);                                                      \
    }
METHODS(X)
#undef X

PyMethodDef py_python_methods[] = {
#define X(name, doc) { #name, (PyCFunction)(void (*)(void))m_##name, METH_VARARGS | METH_KEYWORDS, doc },
    METHODS(X)
#undef X
        { 0 }
};

/* What is asked of sparse tensors and is no op: layout, counts of dimensions and entries. Names of layouts. */
#include "../py.h"
#include "../../engine/tensor/sparse.h"

#define T            py_tensor(self)
#define METHOD(name) static PyObject *m_##name(PyObject *self, UNUSED PyObject *unused)

PyFormat py_layouts[LC_LAYOUTS];

PyObject *py_layout(PyObject *self, UNUSED void *unused) { return Py_NewRef(&py_layouts[lc_layout_of(T)]); }
PyObject *py_is_sparse(PyObject *self, UNUSED void *unused) { return PyBool_FromLong(lc_layout_of(T) == LC_SPARSE_COO); }
PyObject *py_is_sparse_csr(PyObject *self, UNUSED void *unused) { return PyBool_FromLong(lc_layout_of(T) == LC_SPARSE_CSR); }

static const char *layout_word(const lc_tensor *t) /* PyTorch's, in messages */
{
    static const char *const words[LC_LAYOUTS] = { "Strided", "Sparse", "SparseCsr", "SparseCsc", "SparseBsr", "SparseBsc" };
    return words[lc_layout_of(t)];
}
int py_check_dense(const lc_tensor *t, const char *what)
{
    if (!(t->flags & LC_SPARSE)) return 0;
    py_fail(NotImplementedError, "Cannot access %s of a %s tensor", what, lc_layout_names[lc_layout_of(t)]);
    return -1;
}

METHOD(sparse_dim) { return PyLong_FromLong(T->flags & LC_SPARSE ? lc_sparse_dim(T) : 0); }
METHOD(dense_dim) { return PyLong_FromLong(T->flags & LC_SPARSE ? lc_dense_dim(T) : T->ndim); }
METHOD(nnz)
{
    if (!(T->flags & LC_SPARSE)) return py_fail(NotImplementedError, "_nnz is not implemented for strided tensors");
    return PyLong_FromLongLong(lc_nnz(T));
}
METHOD(is_coalesced)
{
    if (lc_layout_of(T) == LC_SPARSE_COO) return PyBool_FromLong(T->sparse->coalesced);
    return py_fail(LucidError, "is_coalesced expected sparse coordinate tensor layout but got %s", layout_word(T));
}
static PyObject *m_coalesced_(PyObject *self, PyObject *on)
{
    int truth = PyObject_IsTrue(on);
    if (lc_layout_of(T) != LC_SPARSE_COO)
        return py_fail(LucidError, "_coalesced_ expected sparse coordinate tensor layout but got %s", layout_word(T));
    if (truth < 0) return NULL;
    lc_tensor *t = lc_sparse_new(LC_SPARSE_COO, T->ndim, T->shape, T->sparse->index, T->sparse->values, truth);
    int        rc = t ? lc_tensor_become(T, t) : -1;
    lc_release(t);
    return rc < 0 ? py_raise() : Py_NewRef(self);
}

PyMethodDef py_sparse_methods[] = {
    { "sparse_dim", m_sparse_dim, METH_NOARGS, "How many dimensions are sparse: none of a dense tensor." },
    { "dense_dim", m_dense_dim, METH_NOARGS, "How many dimensions are not sparse: all of a dense tensor." },
    { "_nnz", m_nnz, METH_NOARGS, "How many entries a sparse tensor has; of a batch, each matrix." },
    { "is_coalesced", m_is_coalesced, METH_NOARGS, "Whether the indices of a COO tensor are sorted and none occurs twice." },
    { "_coalesced_", m_coalesced_, METH_O, "Say that a COO tensor is coalesced, or not, without looking." },
    { 0 }
};

"""Sparse tensors: the functions of `torch.sparse`.

A sparse tensor is a `Tensor` with another `layout`: it keeps the places and the values of the elements that are not zero.

>>> s = lucid.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
>>> s @ lucid.ones(3, 1)
tensor([[3.],
        [9.]])

Constructors are in `construct`; `docs/sparse.md` says what works on sparse tensors.
"""

from .. import _C
from ._invariants import check_sparse_tensor_invariants
from .construct import sparse_coo_tensor

__all__ = [
    "BFloat16Tensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "addmm",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "spsolve",
    "sum",
]


def _of_dtype(name, dtype):
    """PyTorch's old constructors: torch.sparse.FloatTensor(indices, values, size)."""

    def made(*args):
        if args and isinstance(args[0], _C.Tensor):
            return sparse_coo_tensor(*args, dtype=dtype)
        return sparse_coo_tensor(size=args[0] if len(args) == 1 and not isinstance(args[0], int) else args or (0,), dtype=dtype)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"""PyTorch's old constructor of COO tensors, for {dtype}: of indices, values and a size, or of sizes alone.

    >>> lucid.sparse.{name}(2, 3).dtype
    {dtype}
    """
    return made


FloatTensor = _of_dtype("FloatTensor", _C.float32)
DoubleTensor = _of_dtype("DoubleTensor", _C.float64)
HalfTensor = _of_dtype("HalfTensor", _C.float16)
BFloat16Tensor = _of_dtype("BFloat16Tensor", _C.bfloat16)
LongTensor = _of_dtype("LongTensor", _C.int64)
IntTensor = _of_dtype("IntTensor", _C.int32)
ShortTensor = _of_dtype("ShortTensor", _C.int16)
CharTensor = _of_dtype("CharTensor", _C.int8)
ByteTensor = _of_dtype("ByteTensor", _C.uint8)


def mm(mat1, mat2, reduce=None):
    """The product of two matrices of which one or both are sparse. Two sparse ones make a sparse one.

    Gradients of a sparse matrix have its indices. reduce: of a CSR and a dense matrix, how the products of a row become
    one: "sum", "mean", "amax" or "amin". A row without entries gives zeros.

    >>> s = lucid.eye(2).to_sparse() * 3
    >>> lucid.sparse.mm(s, lucid.ones(2, 2))
    tensor([[3., 3.],
            [3., 3.]])
    >>> lucid.sparse.mm(lucid.tensor([[1.0, 2.0], [0.0, 0.0]]).to_sparse_csr(), lucid.eye(2), "amax")
    tensor([[1., 2.],
            [0., 0.]])
    """
    if reduce is None:
        return _C.mm(mat1, mat2)
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, mean, amax or amin, got {reduce}")
    if mat1.layout is not _C.sparse_csr or mat2.layout is not _C.strided:
        raise RuntimeError(f"sparse.mm: reduce expects a sparse_csr and a dense matrix, got {mat1.layout} and {mat2.layout}")
    return _mm_reduced(mat1, mat2, reduce)


def _mm_reduced(mat1, mat2, reduce):
    if reduce == "sum":
        return _C.mm(mat1, mat2)
    if mat1.ndim != 2 or mat2.ndim != 2 or mat1.shape[1] != mat2.shape[0]:
        sizes = f"{tuple(mat1.shape)} and {tuple(mat2.shape)}"
        raise RuntimeError(f"sparse.mm: shapes {sizes} cannot be multiplied")
    counts = mat1.crow_indices().diff()
    if reduce == "mean":
        return _C.mm(mat1, mat2) / counts.clamp(min=1).unsqueeze(1)
    entries = mat1.to_sparse_coo()
    rows, columns = entries.indices()
    terms = entries.values().unsqueeze(1) * mat2.index_select(0, columns)
    return mat2.new_zeros(mat1.shape[0], mat2.shape[1]).index_reduce(0, rows, terms, reduce, include_self=False)


def addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    """beta * mat + alpha * (mat1 @ mat2), where mat1 is sparse.

    >>> lucid.sparse.addmm(lucid.ones(2, 2), lucid.eye(2).to_sparse(), lucid.ones(2, 2), alpha=2.0)
    tensor([[3., 3.],
            [3., 3.]])
    """
    return _C.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):  # noqa: A002
    """alpha * (mat1 @ mat2), computed only at the places of a CSR matrix, + beta * input.

    >>> pattern = lucid.eye(2).to_sparse_csr()
    >>> lucid.sparse.sampled_addmm(pattern, lucid.ones(2, 3), lucid.ones(3, 2)).to_dense()
    tensor([[4., 0.],
            [0., 4.]])
    """
    made = _C._sparse_sampled_addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    if out is None:
        return made
    out.data = made.detach()
    return out


def spsolve(input, other, *, left=True):  # noqa: A002
    """The solution of a sparse system. PyTorch solves it on a GPU alone, with cuDSS; so it raises here.

    On a CPU, use a dense matrix, or scipy.sparse.linalg.spsolve:

    >>> a = lucid.tensor([[2.0, 0.0], [1.0, 1.0]]).to_sparse_csr()
    >>> lucid.linalg.solve(a.to_dense(), lucid.tensor([2.0, 3.0]))
    tensor([1., 2.])
    """
    raise NotImplementedError(
        "sparse.spsolve needs a GPU and cuDSS, as in PyTorch; use linalg.solve(input.to_dense(), other) or SciPy's spsolve"
    )


def sum(input, dim=None, dtype=None):  # noqa: A001
    """The sum of all elements, or over dimensions: a sparse tensor as long as a sparse dimension is left, else a dense one.

    >>> s = lucid.sparse_coo_tensor([[0, 1], [1, 1]], [2.0, 3.0], (2, 2))
    >>> lucid.sparse.sum(s), lucid.sparse.sum(s, dim=0).to_dense()
    (tensor(5.), tensor([0., 5.]))
    """
    dim = () if dim is None else dim
    return input.sum(dim) if dtype is None else input.sum(dim, dtype=dtype)


def softmax(input, dim, *, dtype=None):  # noqa: A002
    """softmax over the entries of each line along dim. Elements that are not stored count as -inf: they stay zero.

    >>> s = lucid.sparse_coo_tensor([[0, 0, 1], [0, 2, 1]], [1.0, 1.0, 5.0], (2, 3))
    >>> lucid.sparse.softmax(s, 1).to_dense()
    tensor([[0.5000, 0.0000, 0.5000],
            [0.0000, 1.0000, 0.0000]])
    """
    return _C._sparse_softmax(input, dim, dtype=dtype)


def log_softmax(input, dim, *, dtype=None):  # noqa: A002
    """The logarithm of `softmax`, at the entries.

    >>> s = lucid.sparse_coo_tensor([[0, 0, 1], [0, 2, 1]], [1.0, 1.0, 5.0], (2, 3))
    >>> lucid.sparse.log_softmax(s, 1).values()
    tensor([-0.6931, -0.6931,  0.0000])
    """
    return _C._sparse_log_softmax(input, dim, dtype=dtype)


def spdiags(diagonals, offsets, shape, layout=None):
    """The sparse matrix with these diagonals: row k of diagonals lies on diagonal offsets[k], aligned by columns.

    >>> lucid.sparse.spdiags(lucid.tensor([[1.0, 2.0, 3.0]]), lucid.tensor([1]), (3, 3)).to_dense()
    tensor([[0., 2., 0.],
            [0., 0., 3.],
            [0., 0., 0.]])
    """
    layouts = (_C.sparse_coo, _C.sparse_csr, _C.sparse_csc)
    if layout is not None and layout not in layouts:
        raise RuntimeError(f"spdiags(): only output layouts Sparse, SparseCsc, and SparseCsr are supported, got {layout}")
    diagonals = diagonals.unsqueeze(0) if diagonals.ndim == 1 else diagonals
    offsets = offsets.reshape(1) if offsets.ndim == 0 else offsets
    if len(shape) != 2:
        raise RuntimeError("spdiags(): Output shape must be 2d")
    if offsets.dtype != _C.int64 or offsets.ndim != 1:
        raise RuntimeError(f"spdiags(): Offset Tensor must be a vector of Long, got {offsets.dtype}{list(offsets.shape)}")
    if diagonals.ndim != 2 or diagonals.shape[0] != offsets.shape[0]:
        raise RuntimeError(
            f"spdiags(): Number of diagonals ({diagonals.shape[0]}) does not match the number of offsets ({offsets.shape[0]})"
        )
    if offsets.unique().numel() != offsets.numel():
        raise RuntimeError("spdiags(): Offset tensor contains duplicate values")
    height, width = shape
    columns = _C.arange(min(diagonals.shape[1], width))
    rows = columns - offsets.unsqueeze(1)
    keep = (rows >= 0) & (rows < height)
    which, column = keep.nonzero(as_tuple=True)
    made = sparse_coo_tensor(_C.stack([rows[which, column], column]), diagonals[which, column], (height, width))
    return made if layout in (None, _C.sparse_coo) else made.to_sparse(layout=layout)

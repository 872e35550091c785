"""Norms and products of vectors and matrices. Factorisations are not here yet, nor what needs one: solve, det, inv, svd,
nuclear norms.

>>> lucid.linalg.norm(lucid.tensor([3.0, 4.0]))
tensor(5.)
"""

import math

from . import _C
from ._C import matmul, matrix_power
from ._C import norm as _norm

__all__ = [
    "cross",
    "diagonal",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "multi_dot",
    "norm",
    "vander",
    "vecdot",
    "vector_norm",
]


def _given(out, result):
    return result if out is None else _into(out, result)


def _into(out, result):
    if not _C.can_cast(result.dtype, out.dtype):
        raise RuntimeError(f"result type {result.dtype} can't be cast to the desired output type {out.dtype}")
    return out.resize_(result.shape).copy_(result)


def _floats(x, dtype, function):
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise RuntimeError(f"{function}: Expected a floating point or complex tensor as input. Got {x.dtype}")
    return x if dtype is None else x.to(dtype)


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):  # noqa: A002 (PyTorch's names)
    """The norm of vectors: the ord-th root of the sum of |x|**ord over dim, or over everything.

    >>> lucid.linalg.vector_norm(lucid.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
    tensor([ 5., 10.])
    """
    x = _floats(x, dtype, "linalg.vector_norm")
    dims = tuple(range(x.ndim)) if dim is None or isinstance(dim, (tuple, list)) and not dim else dim
    if x.ndim == 0:
        return _given(out, _norm(x.reshape(1), ord, dim=0))
    return _given(out, _norm(x, ord, dim=dims, keepdim=keepdim))


_BY_SUMS = {1: (0, _C.amax), -1: (0, _C.amin), math.inf: (1, _C.amax), -math.inf: (1, _C.amin)}  # sums over which, then


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):  # noqa: A002
    """The norm of matrices: "fro", or 1, -1, inf, -inf, the largest or smallest sum of a column or row. Those that need
    singular values (2, -2, "nuc") raise NotImplementedError.

    >>> lucid.linalg.matrix_norm(lucid.tensor([[1.0, -2.0], [3.0, 4.0]]), ord=1)
    tensor(6.)
    """
    A = _floats(A, dtype, "linalg.matrix_norm")
    if A.ndim < 2 or len(dim) != 2 or dim[0] % A.ndim == dim[1] % A.ndim:
        raise RuntimeError(f"linalg.matrix_norm: dim must be two dimensions of a matrix. Got {dim} of {A.ndim}")
    if ord == "fro":
        return _given(out, _norm(A, 2, dim=tuple(dim), keepdim=keepdim))
    if ord in ("nuc", 2, -2):
        raise NotImplementedError(f"linalg.matrix_norm: ord={ord} needs singular values, which are not computed yet")
    if ord not in _BY_SUMS:
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    summed, choose = _BY_SUMS[ord]
    result = choose(A.abs().sum(dim[summed], keepdim=True), dim[1 - summed], keepdim=True)
    return _given(out, result if keepdim else result.squeeze(tuple(dim)))


def norm(A, ord=None, dim=None, keepdim=False, *, out=None, dtype=None):  # noqa: A002
    """The norm of a vector or a matrix: of vectors along one dim, of matrices along two; without ord, of all values of dim
    as one vector.

    >>> x = lucid.ones(2, 2)
    >>> lucid.linalg.norm(x), lucid.linalg.norm(x, ord=1), lucid.linalg.norm(x, dim=1)
    (tensor(2.), tensor(2.), tensor([1.4142, 1.4142]))
    """
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype, out=out)
    if dim is None and A.ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D.")
    dim = (tuple(range(A.ndim)) if A.ndim == 1 else (0, 1)) if dim is None else dim
    if not isinstance(dim, int) and len(dim) == 2:
        return matrix_norm(A, ord, dim, keepdim, dtype=dtype, out=out)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: Order {ord} is for matrices")
    return vector_norm(A, ord, dim, keepdim, dtype=dtype, out=out)


def cross(input, other, *, dim=-1, out=None):  # noqa: A002
    """The cross product along a dimension of size 3.

    >>> lucid.linalg.cross(lucid.eye(3)[0], lucid.eye(3)[1])
    tensor([0., 0., 1.])
    """
    return _C.cross(input, other, dim, out=out)


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """A view of the diagonals of matrices.

    >>> lucid.linalg.diagonal(lucid.eye(2))
    tensor([1., 1.])
    """
    return _C.diagonal(A, offset, dim1, dim2)


def multi_dot(tensors, *, out=None):
    """The product of matrices, in the order that takes the fewest multiplications; the first and last may be vectors.

    >>> lucid.linalg.multi_dot([lucid.ones(2, 3), lucid.ones(3, 4), lucid.ones(4)])
    tensor([12., 12.])
    """
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    tensors = list(tensors)
    first, last = tensors[0].ndim == 1, tensors[-1].ndim == 1
    tensors[0] = tensors[0].unsqueeze(0) if first else tensors[0]
    tensors[-1] = tensors[-1].unsqueeze(1) if last else tensors[-1]
    for i, t in enumerate(tensors):
        if t.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {t.ndim}D")
    result = _C.chain_matmul(*tensors)
    result = result.squeeze(-1) if last else result
    return _given(out, result.squeeze(0) if first else result)


def vecdot(x, y, *, dim=-1, out=None):
    """The products of vectors, summed over dim; x is conjugated.

    >>> lucid.linalg.vecdot(lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if x.dtype != y.dtype:
        raise RuntimeError(f"linalg.vecdot: Expected x and y to have the same dtype, but found {x.dtype} and {y.dtype} instead")
    return _given(out, (x.conj() * y if x.dtype.is_complex else x * y).sum(dim))


def vander(x, N=None):
    """Powers of values as rows: 1, x, x**2, ...

    >>> lucid.linalg.vander(lucid.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    n = x.shape[-1] if N is None else N
    if n < 2 and N is not None and N <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = x.unsqueeze(-1).expand(*x.shape, n - 1).cumprod(-1)
    return _C.cat([_C.ones_like(x.unsqueeze(-1), dtype=powers.dtype), powers], -1)

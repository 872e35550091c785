"""Functions whose arguments differ from those of the op they call."""

from .. import _C


@_C.overridable
def cross(input, other, *, dim=-1, out=None):  # noqa: A002 (PyTorch's names)
    """The cross product along a dimension of size 3.

    >>> lucid.linalg.cross(lucid.eye(3)[0], lucid.eye(3)[1])
    tensor([0., 0., 1.])
    """
    return _C.cross(input, other, dim, out=out)


@_C.overridable
def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """A view of the diagonals of matrices.

    >>> lucid.linalg.diagonal(lucid.eye(2))
    tensor([1., 1.])
    """
    return _C.diagonal(A, offset, dim1, dim2)

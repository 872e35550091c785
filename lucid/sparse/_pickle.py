"""How Python's pickle sees a sparse tensor: as its indices and values, which are tensors of their own."""

from .. import _C
from .construct import _rebuild_sparse_tensor, pieces


def _rebuilt(kind, layout, data, requires_grad):
    made = _rebuild_sparse_tensor(layout, data)
    made = made if kind is _C.Tensor else made.as_subclass(kind)
    return made.requires_grad_() if requires_grad else made


def reduced(t):
    """What `__reduce_ex__` gives.

    >>> reduced(lucid.eye(2).to_sparse())[1][1]
    lucid.sparse_coo
    """
    return _rebuilt, (type(t), t.layout, pieces(t), t.requires_grad), t.__dict__ or None

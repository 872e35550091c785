"""Making sparse tensors: `sparse_coo_tensor` and its kin, conversions between layouts, and the checks of what they are given.

Indices are always looked at: a tensor that breaks its layout's rules would read memory that is not its own later on. What
`check_invariants` adds is only asked for by name in PyTorch; here it changes nothing.
"""

import math

from .. import _C
from .._C import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided

LAYOUTS = (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)  # by the engine's number
_BY_ROW, _BY_COLUMN, _BLOCKED = (sparse_csr, sparse_bsr), (sparse_csc, sparse_bsc), (sparse_bsr, sparse_bsc)


def _number(layout):
    if not isinstance(layout, _C.layout):
        raise TypeError(f"layout must be a lucid.layout, not {type(layout).__name__}")
    return LAYOUTS.index(layout)


def _indices(given, device, kinds=(_C.int64,)):
    made = given if isinstance(given, _C.Tensor) else _C.tensor(given, dtype=_C.int64 if len(given) == 0 else None)
    if made.dtype not in kinds:
        if made.dtype.is_floating_point or made.dtype.is_complex or made.dtype == _C.bool:
            raise RuntimeError(f"indices must be an int64 tensor, got {made.dtype}")
        made = made.to(_C.int64)
    return made if device is None else made.to(device)


def _values(given, dtype, device):
    made = given if isinstance(given, _C.Tensor) else _C.tensor(given)
    return made.to(device=device, dtype=dtype)


def _finish(t, requires_grad, pin_memory):
    if pin_memory:
        raise NotImplementedError("pin_memory=True is not implemented for sparse tensors")
    return t.requires_grad_() if requires_grad else t


def _sizes(size):
    return [int(n) for n in size]


def sparse_coo_tensor(
    indices=None, values=None, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
    check_invariants=None, is_coalesced=None,
):  # fmt: skip
    """A sparse tensor of values at indices, which are columns: `indices[:, k]` is the place of `values[k]`.

    Values at the same place are summed when the tensor is used; `coalesce` does it at once. Without size the tensor is as
    large as the indices need. Values with more than one dimension are rows, or larger, of dense dimensions. Gradients flow
    into values.

    >>> lucid.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if values is None:
        if indices is not None and size is not None:
            raise TypeError("sparse_coo_tensor(): values are missing")
        size = _sizes(indices if size is None else size)
        dtype = _C.get_default_dtype() if dtype is None else dtype
        index = _C.empty((len(size), 0), dtype=_C.int64, device=device)
        values = _C.empty((0,), dtype=dtype, device=device)
        return _finish(_C._sparse_coo(index, values, size, True), requires_grad, pin_memory)
    values = _values(values, dtype, device)
    index = _indices(indices, values.device)
    if index.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(index.shape)}")
    sparse_dim, nnz = index.shape
    if values.ndim == 0 and nnz == 1:
        values = values.reshape(1)
    if values.ndim == 0 or values.shape[0] != nnz:
        got = values.shape[0] if values.ndim else 0
        raise RuntimeError(f"indices and values must have same nnz, but got nnz from indices: {nnz}, nnz from values: {got}")
    dense = list(values.shape[1:])
    if size is None:
        if nnz == 0:
            size = [0] * sparse_dim + dense
        else:
            size = [n + 1 for n in index.amax(1).tolist()] + dense
    size = _sizes(size)
    _check_coo(index, values, size, sparse_dim, dense, nnz)
    if is_coalesced and nnz > 1 and sparse_dim:
        keys = _linear(index, size)
        if not bool((keys[1:] > keys[:-1]).all()):
            raise ValueError("cannot set is_coalesced to true: the indices are not sorted, or some occur twice")
    coalesced = bool(is_coalesced) if is_coalesced is not None else nnz < 2
    return _finish(_C._sparse_coo(index, values, size, coalesced), requires_grad, pin_memory)


def _linear(index, size):
    keys = index[0]
    for row, n in zip(index[1:], size[1:]):
        keys = keys * n + row
    return keys


def _check_coo(index, values, size, sparse_dim, dense, nnz):
    if len(size) != sparse_dim + len(dense):
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({len(dense)}), but got {len(size)}"
        )
    if size[sparse_dim:] != dense:
        raise RuntimeError(f"values has incorrect size, expected {[nnz, *size[sparse_dim:]]}, got {list(values.shape)}")
    if nnz == 0 or sparse_dim == 0:
        return
    low, high = index.amin(1).tolist(), index.amax(1).tolist()
    for d in range(sparse_dim):
        if low[d] < 0:
            raise RuntimeError(f"found negative index {low[d]} for dim {d}")
        if high[d] >= size[d]:
            raise RuntimeError(f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index {high[d]}")


def sparse_compressed_tensor(
    compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None, device=None, pin_memory=False,
    requires_grad=False, check_invariants=None,
):  # fmt: skip
    """A sparse tensor in one of the compressed layouts, which `layout` names.

    >>> t = lucid.sparse_compressed_tensor([0, 1, 2], [1, 0], [3.0, 4.0], layout=lucid.sparse_csr)
    >>> t.to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    if layout not in (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc):
        raise RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {layout}")
    values = _values(values, dtype, device)
    kinds = (_C.int64, _C.int32)
    compressed, plain = _indices(compressed_indices, values.device, kinds), _indices(plain_indices, values.device, kinds)
    if compressed.dtype != plain.dtype:
        raise RuntimeError(
            f"compressed_indices and plain_indices must have the same dtype, got {compressed.dtype} and {plain.dtype}"
        )
    batch, block = compressed.ndim - 1, 2 if layout in _BLOCKED else 0
    if batch < 0 or plain.ndim != batch + 1 or values.ndim < batch + 1 + block:
        raise RuntimeError(
            "compressed_indices, plain_indices and values must have matching dimensions, got "
            f"{list(compressed.shape)}, {list(plain.shape)} and {list(values.shape)} for {layout}"
        )
    height, width = tuple(values.shape[batch + 1 : batch + 3]) if block else (1, 1)
    lines = compressed.shape[-1] - 1
    across = int(plain.max()) + 1 if plain.numel() else 0
    if size is None:
        inner = [lines * height, across * width] if layout in _BY_ROW else [across * height, lines * width]
        size = [*compressed.shape[:-1], *inner, *values.shape[batch + 1 + block :]]
    size = _sizes(size)
    _check_compressed(compressed, plain, values, size, layout, batch, (height, width))
    return _finish(_C._sparse_compressed(compressed, plain, values, size, _number(layout)), requires_grad, pin_memory)


def _check_compressed(compressed, plain, values, size, layout, batch, block):
    by_row = layout in _BY_ROW
    c_name, p_name = ("crow_indices", "col_indices") if by_row else ("ccol_indices", "row_indices")
    dense = values.ndim - batch - 1 - (2 if layout in _BLOCKED else 0)
    if len(size) != batch + 2 + dense:
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense dimensionalities "
            f"(={batch} + 2 + {dense}) but got {len(size)}"
        )
    rows, columns = size[batch], size[batch + 1]
    if rows % block[0] or columns % block[1]:
        raise RuntimeError(f"tensor shape {[rows, columns]} must be divisible by blocksize {list(block)}")
    lines, across = rows // block[0], columns // block[1]
    lines, across = (lines, across) if by_row else (across, lines)
    nnz = plain.shape[-1]
    if list(compressed.shape) != [*size[:batch], lines + 1]:
        raise RuntimeError(
            f"{c_name}.shape[-1] must be equal to the number of {'rows' if by_row else 'columns'} + 1 (={lines + 1}), "
            f"but got {compressed.shape[-1]}"
        )
    if list(plain.shape[:-1]) != size[:batch] or list(values.shape[: batch + 1]) != [*size[:batch], nnz]:
        raise RuntimeError(f"{p_name} and values must have the same batch and number of entries, got {list(plain.shape)} and "
                           f"{list(values.shape)} for size {size}")  # fmt: skip
    if list(values.shape[values.ndim - dense :]) != size[batch + 2 :]:
        raise RuntimeError(f"values.shape[-{dense}:] must be equal to the dense part of size {size}, got {list(values.shape)}")
    if math.prod(size[:batch]) == 0:
        return
    if bool((compressed[..., 0] != 0).any()):
        raise RuntimeError(f"`{c_name}[..., 0] == 0` is not satisfied.")
    if bool((compressed[..., -1] != nnz).any()):
        raise RuntimeError(f"`{c_name}[..., -1] == nnz` is not satisfied.")
    counts = compressed.diff(dim=-1)
    if lines and (bool((counts < 0).any()) or bool((counts > across).any())):
        raise RuntimeError(
            f"`0 <= {c_name}[..., 1:] - {c_name}[..., :-1] <= n{'cols' if by_row else 'rows'}` is not satisfied."
        )
    if nnz == 0:
        return
    if int(plain.min()) < 0:
        raise RuntimeError(f"`0 <= {p_name}` is not satisfied.")
    if int(plain.max()) >= across:
        raise RuntimeError(f"`{p_name} < n{'cols' if by_row else 'rows'}` is not satisfied.")
    line = _C.repeat_interleave(counts.reshape(-1).to(_C.int64))
    keys = line * across + plain.reshape(-1)
    if not bool((keys[1:] > keys[:-1]).all()):
        raise RuntimeError(
            f"`{p_name}[..., {c_name}[..., i - 1]:{c_name}[..., i]] for all i = 1, ..., n{'rows' if by_row else 'cols'} are "
            "sorted and distinct along the last dimension values` is not satisfied."
        )


def sparse_csr_tensor(
    crow_indices, col_indices, values, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
    check_invariants=None,
):  # fmt: skip
    """A sparse tensor by rows: row r has the entries `crow_indices[r]` to `crow_indices[r + 1]`, in columns `col_indices`.

    >>> lucid.sparse_csr_tensor([0, 2, 2, 3], [0, 1, 1], [1.0, 2.0, 3.0]).to_dense()
    tensor([[1., 2.],
            [0., 0.],
            [0., 3.]])
    """
    return sparse_compressed_tensor(
        crow_indices, col_indices, values, size, dtype=dtype, layout=sparse_csr, device=device, pin_memory=pin_memory,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


def sparse_csc_tensor(
    ccol_indices, row_indices, values, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
    check_invariants=None,
):  # fmt: skip
    """A sparse tensor by columns: column c has the entries `ccol_indices[c]` to `ccol_indices[c + 1]`, in rows `row_indices`.

    >>> lucid.sparse_csc_tensor([0, 1, 2], [1, 0], [1.0, 2.0]).to_dense()
    tensor([[0., 2.],
            [1., 0.]])
    """
    return sparse_compressed_tensor(
        ccol_indices, row_indices, values, size, dtype=dtype, layout=sparse_csc, device=device, pin_memory=pin_memory,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


def sparse_bsr_tensor(
    crow_indices, col_indices, values, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
    check_invariants=None,
):  # fmt: skip
    """A sparse tensor by rows of blocks, which values holds: (blocks, height, width).

    >>> lucid.sparse_bsr_tensor([0, 1], [1], lucid.ones(1, 1, 2)).to_dense()
    tensor([[0., 0., 1., 1.]])
    """
    return sparse_compressed_tensor(
        crow_indices, col_indices, values, size, dtype=dtype, layout=sparse_bsr, device=device, pin_memory=pin_memory,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


def sparse_bsc_tensor(
    ccol_indices, row_indices, values, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
    check_invariants=None,
):  # fmt: skip
    """A sparse tensor by columns of blocks, which values holds: (blocks, height, width).

    >>> lucid.sparse_bsc_tensor([0, 1], [1], lucid.ones(1, 1, 2)).to_dense()
    tensor([[0., 0.],
            [1., 1.]])
    """
    return sparse_compressed_tensor(
        ccol_indices, row_indices, values, size, dtype=dtype, layout=sparse_bsc, device=device, pin_memory=pin_memory,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


def _without_entries(like, layout, requires_grad, pin_memory):
    """Zeros in a sparse layout, in the shape and dtype of like: what `zeros(..., layout=...)` makes."""
    size, dtype = like.shape, like.dtype
    if layout is sparse_coo:
        return sparse_coo_tensor(size=size, dtype=dtype, requires_grad=requires_grad, pin_memory=pin_memory)
    if layout in _BLOCKED:
        raise RuntimeError(f"expected a sparse layout without blocks, but got {layout}: a size alone says no size of blocks")
    if len(size) < 2:
        raise RuntimeError(f"a {layout} tensor has at least two dimensions, got size {tuple(size)}")
    batch, lines = size[:-2], size[-2] if layout in _BY_ROW else size[-1]
    compressed = _C.zeros((*batch, lines + 1), dtype=_C.int64)
    return sparse_compressed_tensor(
        compressed, _C.zeros((*batch, 0), dtype=_C.int64), _C.zeros((*batch, 0), dtype=dtype), size, layout=layout,
        requires_grad=requires_grad, pin_memory=pin_memory,
    )  # fmt: skip


def to_layout(t, layout, sparse_dim=None, dense_dim=None, blocksize=None):
    """What `Tensor.to_sparse` and its kin call.

    >>> to_layout(lucid.eye(2), lucid.sparse_csr).col_indices()
    tensor([0, 1])
    """
    number = _number(layout)
    if layout == strided:
        return t.to_dense()
    if blocksize is not None:
        blocksize = tuple(blocksize)
    if layout in _BLOCKED and t.layout != layout and blocksize is None:
        raise RuntimeError(f"to_sparse: a blocksize is needed for {layout}")
    if layout not in _BLOCKED and blocksize is not None:
        raise RuntimeError(f"to_sparse: conversion to {layout} takes no blocksize")
    if blocksize is not None and len(blocksize) != 2:
        raise RuntimeError(f"to_sparse: blocksize needs to be a tuple of size 2, but got {len(blocksize)}")
    if t.layout == sparse_coo and sparse_dim not in (None, t.sparse_dim()):
        raise RuntimeError(
            "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported"
        )
    if t.layout != strided and dense_dim not in (None, t.dense_dim()):
        raise RuntimeError(f"to_sparse: a {t.layout} tensor with {t.dense_dim()} dense dimensions cannot get {dense_dim}")
    if layout != sparse_coo and t.layout == strided and t.ndim - (dense_dim or 0) < 2:
        raise RuntimeError(f"to_sparse: {layout} needs at least two dimensions that are not dense, got {list(t.shape)}")
    return _C._to_layout(t, number, sparse_dim, dense_dim or 0, blocksize or ())


def resized(t, size, sparse_dim, dense_dim, clear=False):
    """What `Tensor.sparse_resize_` makes of a COO tensor.

    >>> resized(lucid.eye(2).to_sparse(), (2, 3), 2, 0).to_dense()
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if t.layout != sparse_coo:
        raise RuntimeError(f"sparse_resize_ expected sparse coordinate tensor layout but got {t.layout}")
    size = _sizes(size)
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), but got {len(size)}"
        )
    t = t.detach()
    if clear or t._nnz() == 0:
        index = _C.empty((sparse_dim, 0), dtype=_C.int64)
        return _C._sparse_coo(index, _C.empty((0, *size[sparse_dim:]), dtype=t.dtype), size, t._nnz() < 2 or clear)
    if (sparse_dim, dense_dim) != (t.sparse_dim(), t.dense_dim()):
        raise RuntimeError("changing the number of sparse or dense dimensions of a non-empty sparse tensor is not supported")
    if size[sparse_dim:] != list(t.shape[sparse_dim:]) or any(a < b for a, b in zip(size, t.shape)):
        raise RuntimeError(
            "shrinking the size of a non-empty sparse tensor, or changing its dense dimensions, is not supported: "
            f"{list(t.shape)} to {size}"
        )
    return _C._sparse_coo(t._indices(), t._values(), size, t.is_coalesced())


def _rebuild_sparse_tensor(layout, data):
    """What a pickled sparse tensor is made of again: PyTorch's format."""
    if layout == sparse_coo:
        indices, values, size = data[:3]
        return sparse_coo_tensor(indices, values, size, is_coalesced=data[3] if len(data) > 3 else None)
    if layout in (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc):
        compressed, plain, values, size = data
        return sparse_compressed_tensor(compressed, plain, values, size, layout=layout)
    raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")


def pieces(t):
    """Indices, values, size and, for COO, whether it is coalesced: the arguments of `_rebuild_sparse_tensor`.

    >>> pieces(lucid.eye(2).to_sparse_csr())[:2]
    (tensor([0, 1, 2]), tensor([0, 1]))
    """
    t = t.detach()
    if t.layout == sparse_coo:
        return (t._indices(), t._values(), tuple(t.shape), t.is_coalesced())
    compressed = (t.crow_indices(), t.col_indices()) if t.layout in _BY_ROW else (t.ccol_indices(), t.row_indices())
    return (*compressed, t.values(), tuple(t.shape))

"""Functions whose names PyTorch keeps private, but which its exported programs, its op database and other libraries call.

>>> lucid._safe_softmax(lucid.tensor([float("-inf"), float("-inf")]), 0)
tensor([0., 0.])
"""

from .. import _C
from .toplevel import segment_reduce as _segment_reduce  # noqa: F401


def _batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps, *, out=None):  # noqa: A002 (PyTorch's names)
    """Batch norm in training: (output, mean, 1 / deviation, empty); the running statistics are updated."""
    if out is not None:
        raise RuntimeError("_batch_norm_with_update: out= is not implemented")
    how = (weight, bias, running_mean, running_var, True, momentum, eps)
    return (*_C.native_batch_norm(input, *how), _C.empty(0, dtype=_C.uint8))


def _native_batch_norm_legit(input, weight, bias, *rest, out=None):  # noqa: A002
    """`native_batch_norm`; the running statistics may be left out."""
    rest = rest if len(rest) == 5 else (None, None, *rest)
    return _C.native_batch_norm(input, weight, bias, *rest, **({} if out is None else {"out": out}))


def _chunk_cat(tensors, dim, num_chunks, *, out=None):
    """Each tensor in num_chunks pieces along dim (zeros make them equal), flattened from there on and joined piece by piece."""
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    ndim = tensors[0].ndim
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    dim %= ndim
    parts = []
    for t in tensors:
        if t.shape[:dim] != tensors[0].shape[:dim] or t.dtype != tensors[0].dtype or not t.numel():
            raise RuntimeError(
                f"_chunk_cat expects tensors that are not empty, of one dtype, with the same sizes before dim {dim}: "
                f"got {tuple(t.shape)} and {tuple(tensors[0].shape)}"
            )
        missing = -t.shape[dim] % num_chunks
        if missing:
            t = _C.cat([t, t.new_zeros((*t.shape[:dim], missing, *t.shape[dim + 1 :]))], dim)
        parts.append(t.reshape(*t.shape[:dim], num_chunks, -1))
    return _C.cat(parts, dim + 1, **({} if out is None else {"out": out}))


def _safe_softmax(input, dim, dtype=None):  # noqa: A002
    """Softmax, and 0 where all of a line is -inf."""
    values = input if dtype is None else input.to(dtype)
    nothing = (values == float("-inf")).all(dim, keepdim=True)
    return values.masked_fill(nothing, 0.0).softmax(dim).masked_fill(nothing, 0.0)


def _softmax_backward_data(grad_output, output, dim, input_dtype):
    """The gradient of softmax from its output; float16 and bfloat16 in float32."""
    wide = _C.promote_types(output.dtype, _C.float32)
    g, y = grad_output.to(wide), output.to(wide)
    return (y * (g - (g * y).sum(dim, keepdim=True))).to(input_dtype)


def _within(input, indices):  # noqa: A002
    """Indices whose masked-out elements may be anything, moved into the tensor."""
    return tuple(slice(None) if i is None else i.clamp(0, max(input.shape[d] - 1, 0)) for d, i in enumerate(indices))


def _unsafe_masked_index(input, mask, indices, fill):  # noqa: A002
    """input[indices] where the mask says True, else fill."""
    if not input.numel():
        shape = _C.broadcast_tensors(mask, *(i for i in indices if i is not None))[0].shape
        return input.new_full(shape, fill)
    found = input[_within(input, indices)]
    return found.masked_fill(~mask, fill)


def _unsafe_masked_index_put_accumulate(input, mask, indices, values):  # noqa: A002
    """Add values to input[indices] where the mask says True."""
    if not input.numel():
        return input.clone()
    return input.index_put(_within(input, indices), values.masked_fill(~mask, 0), accumulate=True)

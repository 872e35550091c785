"""Functions that PyTorch has at top level besides `nn.functional`: losses whose reduction is a number, and a few of their own.

>>> lucid.kl_div(lucid.zeros(2), lucid.ones(2), 2)
tensor(0.)

Numbers for `reduction`: 0 is "none", 1 "mean", 2 "sum".
"""

from .. import _C
from ..nn import functional

__all__ = [
    "adaptive_max_pool1d",
    "affine_grid_generator",
    "binary_cross_entropy_with_logits",
    "cond",
    "convolution",
    "cosine_embedding_loss",
    "ctc_loss",
    "embedding_bag",
    "frobenius_norm",
    "hash_tensor",
    "hinge_embedding_loss",
    "kl_div",
    "margin_ranking_loss",
    "native_channel_shuffle",
    "norm_except_dim",
    "poisson_nll_loss",
    "segment_reduce",
    "slice_inverse",
    "triplet_margin_loss",
    "while_loop",
]

_REDUCTIONS = ("none", "mean", "sum")


def _word(reduction):
    if isinstance(reduction, bool) or not isinstance(reduction, int) or not 0 <= reduction < 3:
        raise ValueError(f"reduction must be 0 (none), 1 (mean) or 2 (sum), got {reduction!r}")
    return _REDUCTIONS[reduction]


# ---- losses ----


@_C.overridable
def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=1):  # noqa: A002 (PyTorch's names)
    """`nn.functional.binary_cross_entropy_with_logits` with a number for the reduction.

    >>> lucid.binary_cross_entropy_with_logits(lucid.zeros(2), lucid.ones(2))
    tensor(0.6931)
    """
    return functional.binary_cross_entropy_with_logits(input, target, weight, reduction=_word(reduction), pos_weight=pos_weight)


@_C.overridable
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=1):
    """`nn.functional.cosine_embedding_loss` with a number for the reduction.

    >>> lucid.cosine_embedding_loss(lucid.eye(2), lucid.eye(2), lucid.ones(2))
    tensor(0.)
    """
    return functional.cosine_embedding_loss(input1, input2, target, margin, reduction=_word(reduction))


@_C.overridable
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
    """`nn.functional.ctc_loss` with a number for the reduction.

    >>> lucid.ctc_loss(lucid.zeros(2, 1, 3), lucid.tensor([[1]]), [2], [1])
    tensor(-1.0986)
    """
    how = {"blank": blank, "reduction": _word(reduction), "zero_infinity": zero_infinity}
    return functional.ctc_loss(log_probs, targets, input_lengths, target_lengths, **how)


@_C.overridable
def hinge_embedding_loss(input, target, margin=1.0, reduction=1):  # noqa: A002
    """`nn.functional.hinge_embedding_loss` with a number for the reduction.

    >>> lucid.hinge_embedding_loss(lucid.tensor([0.25, 0.5]), lucid.tensor([1.0, -1.0]), reduction=0)
    tensor([0.2500, 0.5000])
    """
    return functional.hinge_embedding_loss(input, target, margin, reduction=_word(reduction))


@_C.overridable
def kl_div(input, target, reduction=1, *, log_target=False):  # noqa: A002
    """`nn.functional.kl_div` with a number for the reduction.

    >>> lucid.kl_div(lucid.tensor([-1.0, 0.0]), lucid.ones(2), 2)
    tensor(1.)
    """
    return functional.kl_div(input, target, reduction=_word(reduction), log_target=log_target)


@_C.overridable
def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=1):
    """`nn.functional.margin_ranking_loss` with a number for the reduction.

    >>> lucid.margin_ranking_loss(lucid.zeros(2), lucid.ones(2), lucid.ones(2))
    tensor(1.)
    """
    return functional.margin_ranking_loss(input1, input2, target, margin, reduction=_word(reduction))


@_C.overridable
def poisson_nll_loss(input, target, log_input, full, eps, reduction):  # noqa: A002
    """`nn.functional.poisson_nll_loss` with a number for the reduction.

    >>> lucid.poisson_nll_loss(lucid.zeros(2), lucid.ones(2), True, False, 1e-8, 2)
    tensor(2.)
    """
    return functional.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_word(reduction))


@_C.overridable
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=1):
    """`nn.functional.triplet_margin_loss` with a number for the reduction.

    >>> x = lucid.zeros(1, 2)
    >>> lucid.triplet_margin_loss(x, x, x)
    tensor(1.)
    """
    return functional.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=_word(reduction))


# ---- layers ----


@_C.overridable
def adaptive_max_pool1d(input, output_size):  # noqa: A002
    """The maxima and where they are: `nn.functional.adaptive_max_pool1d` with indices.

    >>> lucid.adaptive_max_pool1d(lucid.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return functional.adaptive_max_pool1d(input, output_size, return_indices=True)


@_C.overridable
def affine_grid_generator(theta, size, align_corners):
    """`nn.functional.affine_grid`.

    >>> lucid.affine_grid_generator(lucid.eye(2, 3).unsqueeze(0), [1, 1, 1, 2], False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    return functional.affine_grid(theta, size, align_corners)


@_C.overridable
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):  # noqa: A002
    """A convolution, or a transposed one, over as many dimensions as the weight has behind its first two.

    >>> lucid.convolution(lucid.ones(1, 1, 3), lucid.ones(1, 1, 2), None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2.]]])
    """
    name = f"conv_transpose{weight.ndim - 2}d" if transposed else f"conv{weight.ndim - 2}d"
    if not 3 <= weight.ndim <= 5:
        raise RuntimeError(f"expected a weight of 3, 4 or 5 dimensions, got one of shape {tuple(weight.shape)}")
    if not transposed:
        return getattr(functional, name)(input, weight, bias, stride, padding, dilation, groups)
    return getattr(functional, name)(input, weight, bias, stride, padding, output_padding, groups, dilation)


@_C.overridable
def embedding_bag(
    weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None,
    include_last_offset=False, padding_idx=None,
):  # fmt: skip
    """Bags of embeddings as `nn.functional.embedding_bag`, with a number for the mode: 0 is "sum", 1 "mean", 2 "max".

    PyTorch returns three tensors that its gradient needs besides; here they are empty.

    >>> lucid.embedding_bag(lucid.eye(3), lucid.tensor([0, 1, 2]), lucid.tensor([0, 2]))[0]
    tensor([[1., 1., 0.],
            [0., 0., 1.]])
    """
    if isinstance(mode, bool) or mode not in (0, 1, 2):
        raise ValueError(f"mode must be 0 (sum), 1 (mean) or 2 (max), got {mode!r}")
    result = functional.embedding_bag(
        indices,
        weight,
        offsets,
        scale_grad_by_freq=scale_grad_by_freq,
        mode=("sum", "mean", "max")[mode],
        sparse=sparse,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )
    return (result, *(indices.new_empty(0) for _ in range(3)))


@_C.overridable
def native_channel_shuffle(input, groups):  # noqa: A002
    """`nn.functional.channel_shuffle`.

    >>> lucid.native_channel_shuffle(lucid.arange(4.0).reshape(1, 4, 1, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    return functional.channel_shuffle(input, groups)


# ---- norms ----


@_C.overridable
def frobenius_norm(input, dim=(), keepdim=False, *, out=None):  # noqa: A002
    """The root of the sum of squares over one or two dimensions, or over everything.

    >>> lucid.frobenius_norm(lucid.tensor([[3.0, 4.0]]), [0, 1])
    tensor(5.)
    """
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead.")
    from .. import linalg

    return linalg.vector_norm(input, 2, dims or None, keepdim, out=out)


@_C.overridable
def norm_except_dim(v, pow=2, dim=0):  # noqa: A002
    """The norm over all dimensions but one, which keeps its place; over all for dim=-1.

    >>> lucid.norm_except_dim(lucid.tensor([[3.0, 4.0], [6.0, 8.0]]))
    tensor([[ 5.],
            [10.]])
    """
    if dim == -1:
        return _C.norm(v, pow)
    others = [d for d in range(v.ndim) if d != dim]
    return _C.norm(v, pow, others, True) if others else v.abs()


# ---- segments, hashes, slices ----


_SCATTERED = {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin", "prod": "prod"}
_OF_NOTHING = {"sum": 0.0, "mean": float("nan"), "max": float("-inf"), "min": float("inf"), "prod": 1.0}


@_C.overridable
def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """Reduce consecutive segments of `data` along `axis`: "sum", "mean", "max", "min" or "prod".

    `lengths` says how long the segments are, or `offsets` where they start and the last one ends; their dimensions before the
    last are those of `data` before `axis`. `initial` joins every segment; an empty one gives it, or else the identity.

    >>> lucid.segment_reduce(lucid.tensor([1.0, 2.0, 3.0]), "sum", lengths=lucid.tensor([2, 0, 1]))
    tensor([3., 0., 3.])
    """
    if reduce not in _SCATTERED:
        raise RuntimeError(f"unsupported reduction {reduce!r}: expected one of {', '.join(_SCATTERED)}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if (lengths is None) == (offsets is None):
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    axis = axis + data.ndim if axis < 0 else axis
    if lengths is None:
        lengths = offsets.diff(dim=-1)
    if lengths.ndim != axis + 1:
        raise RuntimeError(
            f"segment_reduce(): expected lengths of {axis + 1} dimensions for axis {axis}, got {tuple(lengths.shape)}"
        )
    if data.numel() == 0 and data.ndim and data.shape[axis] and not lengths.numel():
        raise RuntimeError("segment_reduce(): expected data that is not empty")
    count, length = lengths.shape[-1], data.shape[axis]
    ends = lengths.cumsum(-1)
    if not unsafe and lengths.numel():
        if (lengths < 0).any():
            raise RuntimeError("lengths contains negative value!")
        if not (ends[..., -1] == length).all():
            raise RuntimeError(f"segment_reduce(): the sum of lengths must be data.size(axis), which is {length}")
    places = _C.arange(length, device=data.device).expand(*lengths.shape[:-1], length).contiguous()
    segment = _C.searchsorted(ends.contiguous(), places, right=True)  # count: behind the last one
    behind = data.shape[axis + 1 :]
    index = segment.reshape(*segment.shape, *(1 for _ in behind)).expand(data.shape)
    shape = (*lengths.shape[:-1], count + 1, *behind)
    if reduce == "mean":
        total = data.new_full(shape, 0.0 if initial is None else initial).scatter_add(axis, index, data).narrow(axis, 0, count)
        number = lengths.reshape(*lengths.shape, *(1 for _ in behind)).to(data.dtype)
        empty = _OF_NOTHING["mean"] if initial is None else initial
        return _C.where(number > 0, total / number, data.new_full([], empty))
    start = data.new_full(shape, _OF_NOTHING[reduce] if initial is None else initial)
    return start.scatter_reduce(axis, index, data, _SCATTERED[reduce]).narrow(axis, 0, count).contiguous()


@_C.overridable
def hash_tensor(input, dim=(), *, keepdim=False, mode=0, out=None):  # noqa: A002
    """The elements, as 64-bit patterns, joined by exclusive or: over dim, or all of them. uint64.

    >>> lucid.hash_tensor(lucid.tensor([1, 2, 4]))
    tensor(7, dtype=lucid.uint64)
    """
    if mode != 0:
        raise RuntimeError(f"hash_tensor: mode={mode} is not supported, only 0 (exclusive or)")
    if input.dtype.is_complex:
        raise NotImplementedError(f"hash_tensor is not implemented for {input.dtype}")
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    bits = input.to(_C.float64).view(_C.int64) if input.dtype.is_floating_point else input.to(_C.int64)
    bits = bits.clone(memory_format=_C.contiguous_format) if input.dtype.itemsize == 8 else bits  # the result is no view
    own = sorted(d % max(bits.ndim, 1) for d in dims) if dims else list(range(bits.ndim))
    if any(not -max(bits.ndim, 1) <= d < max(bits.ndim, 1) for d in dims):
        raise IndexError(f"hash_tensor: dim {dim} is out of range for a tensor of {bits.ndim} dimensions")
    kept = [n for d, n in enumerate(bits.shape) if d not in own]
    shape = [1 if d in own else n for d, n in enumerate(bits.shape)] if keepdim else kept
    if bits.ndim:
        bits = bits.permute(*own, *(d for d in range(bits.ndim) if d not in own)).reshape(-1, *kept)
        if not bits.shape[0]:
            bits = bits.new_zeros((1, *kept))
        while bits.shape[0] > 1:
            half = bits.shape[0] // 2
            rest = bits[2 * half :]
            bits = bits[:half] ^ bits[half : 2 * half]
            bits = _C.cat([bits, rest]) if rest.shape[0] else bits
    result = bits.reshape(shape).view(_C.uint64)
    return result if out is None else out.resize_(result.shape).copy_(result)


@_C.overridable
def slice_inverse(input, src, dim=0, start=None, end=None, step=1):  # noqa: A002
    """A view of the memory of `input` in the shape of `src`, of which `input` is a slice.

    >>> x = lucid.arange(4.0)
    >>> lucid.slice_inverse(x[1:3], x, 0, 1, 3)
    tensor([0., 1., 2., 3.])
    """
    dim = dim + src.ndim if dim < 0 else dim
    begin = 0 if start is None else start
    begin = max(begin + src.shape[dim], 0) if begin < 0 else begin
    return input.as_strided(src.shape, src.stride(), input.storage_offset() - begin * src.stride(dim))


# ---- control flow ----


def cond(pred, true_fn, false_fn, operands=()):
    """true_fn(*operands) if pred is true, else false_fn(*operands).

    >>> lucid.cond(lucid.tensor(True), lambda x: x + 1, lambda x: x - 1, (lucid.zeros(1),))
    tensor([1.])
    """
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if isinstance(pred, _C.Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    return (true_fn if pred else false_fn)(*operands)


def while_loop(cond_fn, body_fn, carried_inputs):
    """body_fn again and again on what it returned, as long as cond_fn says so; a tuple.

    >>> lucid.while_loop(lambda i: i < 3, lambda i: (i + 1,), (lucid.tensor(0),))
    (tensor(3),)
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    carried = tuple(carried_inputs)
    while cond_fn(*carried):
        result = body_fn(*carried)
        carried = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    return carried

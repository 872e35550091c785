"""embedding and embedding_bag: the steps before their ops. max_norm rescales rows of the weight in place, which no recorded op
may do."""

from .. import _C


@_C.overridable
def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):  # noqa: A002
    """The rows of weight that input names. Row padding_idx gets no gradient; rows longer than max_norm are scaled to it.

    >>> lucid.nn.functional.embedding(lucid.tensor([2, 0]), lucid.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    tensor([[5., 6.],
            [1., 2.]])
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.shape[0]
        if not -rows <= padding_idx < max(rows, 1):
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx = padding_idx + rows if padding_idx < 0 else padding_idx
    if max_norm is not None:
        _C.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    return _C.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


@_C.overridable
def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False,
                  per_sample_weights=None, include_last_offset=False, padding_idx=None):  # noqa: A002  # fmt: skip
    """Sums, means or maxima (mode) over bags of rows of weight. Bags are the rows of input, or start at the offsets into it.

    >>> table = lucid.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> lucid.nn.functional.embedding_bag(lucid.tensor([2, 0, 1]), table, lucid.tensor([0, 1]), mode="sum")
    tensor([[5., 6.],
            [4., 6.]])
    """
    bag = _C._namespaced["nn.functional._embedding_bag"]
    try:
        if max_norm is not None:
            _C.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
        return bag(
            input, weight, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
        )
    except Exception:
        _refuse_bags(input, weight, offsets, mode, per_sample_weights)
        raise


def _refuse_bags(input, weight, offsets, mode, per_sample_weights):  # noqa: A002
    """The checks in PyTorch's order."""
    if weight.dtype == _C.int64 and input.is_floating_point():
        weight, input = input, weight  # noqa: A001
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError("embedding_bag: per_sample_weights must have the same shape as the input")
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2 and offsets is not None:
        raise ValueError("if input is 2D, then offsets has to be None, as each row of it is a bag")
    if input.dim() == 1 and (offsets is None or offsets.dim() != 1):
        raise ValueError("offsets has to be a 1D Tensor")
    if input.dim() not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(f"embedding_bag: per_sample_weights is only supported for mode='sum' (got mode='{mode}')")

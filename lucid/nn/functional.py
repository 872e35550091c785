"""Functions of neural networks: PyTorch's `torch.nn.functional`."""

from .. import _C
from .._C import _namespaced
from ._attention import multi_head_attention_forward  # noqa: F401
from ._embedding import embedding, embedding_bag  # noqa: F401
from ._grouped import grouped_mm  # noqa: F401
from ._positional import apply_rotary_emb, sinusoidal_embedding, sinusoidal_embedding_2d  # noqa: F401

globals().update(
    {key.removeprefix("nn.functional."): op for key, op in _namespaced.items() if key.startswith("nn.functional.")}
)
# functions that are in the main namespace too
_SHARED = (
    "relu relu_ selu selu_ celu celu_ rrelu rrelu_ threshold threshold_ prelu hardshrink sigmoid tanh "
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
    "rms_norm cosine_similarity pairwise_distance pdist bilinear pad"
)
globals().update({name: getattr(_C, name) for name in _SHARED.split()})


def _resolves_none(op, ndim):
    """output_size may say None for a dimension that keeps its size."""

    def pool(input, output_size, *args, **kwargs):  # noqa: A002
        if isinstance(output_size, (list, tuple)) and len(output_size) == 1:
            raise _C.ShapeMismatch(f"{op.__name__}: output_size must be one number, or a number for each of {ndim} dimensions")
        if isinstance(output_size, (list, tuple)) and None in output_size:
            output_size = [old if new is None else new for new, old in zip(output_size, input.shape[-len(output_size) :])]
        return op(input, output_size, *args, **kwargs)

    pool.__name__ = pool.__qualname__ = op.__name__
    shape, size = (2, *[4] * ndim), (None, *[1] * (ndim - 1))
    pool.__doc__ = f"""{op.__doc__}

    >>> tuple(lucid.nn.functional.{op.__name__}(lucid.ones{shape}, {size}).shape)
    (2, 4{", 1" * (ndim - 1)})
    """
    return _C.overridable(pool)


adaptive_avg_pool2d = _resolves_none(adaptive_avg_pool2d, 2)  # noqa: F821
adaptive_avg_pool3d = _resolves_none(adaptive_avg_pool3d, 3)  # noqa: F821
adaptive_max_pool2d = _resolves_none(adaptive_max_pool2d, 2)  # noqa: F821
adaptive_max_pool3d = _resolves_none(adaptive_max_pool3d, 3)  # noqa: F821


def _with_indices(pool, shape):
    """A pooling function that returns the indices too."""

    def pooled(input, output_size, return_indices=True):  # noqa: A002
        return pool(input, output_size, True)

    pooled.__name__ = pooled.__qualname__ = f"{pool.__name__}_with_indices"
    pooled.__doc__ = f"""{pool.__name__} that returns the maxima and where they are.

    >>> values, indices = lucid.nn.functional.{pool.__name__}_with_indices(lucid.ones{shape}, 1)
    """
    return _C.overridable(pooled)


adaptive_max_pool1d_with_indices = _with_indices(adaptive_max_pool1d, (2, 4))  # noqa: F821
adaptive_max_pool2d_with_indices = _with_indices(adaptive_max_pool2d, (2, 4, 4))
adaptive_max_pool3d_with_indices = _with_indices(adaptive_max_pool3d, (2, 4, 4, 4))


@_C.overridable
def conv_tbc(input, weight, bias, pad=0):  # noqa: A002
    """A convolution over time: input (time, batch, channels), weight (taps, channels, output channels).

    >>> lucid.nn.functional.conv_tbc(lucid.ones(3, 1, 2), lucid.ones(2, 2, 1), lucid.zeros(1)).flatten()
    tensor([4., 4.])
    """
    if input.ndim != 3 or weight.ndim != 3 or bias.ndim != 1:
        raise RuntimeError(
            f"conv_tbc: expected input and weight of 3 dimensions and bias of 1, got {tuple(input.shape)}, "
            f"{tuple(weight.shape)} and {tuple(bias.shape)}"
        )
    return _C.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


_linear_cross_entropy = linear_cross_entropy  # noqa: F821


@_C.overridable
def linear_cross_entropy(
    input,  # noqa: A002
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
    """cross_entropy(linear(input, linear_weight, linear_bias), target) without the scores of all rows at once.

    options: a `lucid.nn.LinearCrossEntropyOptions`, which says how many rows are taken at a time.

    >>> x, w = lucid.ones(4, 3), lucid.ones(5, 3)
    >>> lucid.nn.functional.linear_cross_entropy(x, w, lucid.tensor([0, 1, 2, 4]))
    tensor(1.6094)
    """
    rows = 0
    if options is not None:
        from ._options import rows_of_options

        rows = rows_of_options(options, input, linear_weight)
    return _linear_cross_entropy(
        input,
        linear_weight,
        target,
        linear_bias=linear_bias,
        weight=weight,
        reduction=reduction,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        batch_chunk_size=rows,
    )


@_C.overridable
def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """triplet_margin_loss with a distance of your own: a function of two tensors.

    >>> a, p, n = lucid.zeros(2, 3), lucid.ones(2, 3), lucid.full((2, 3), 2.0)
    >>> lucid.nn.functional.triplet_margin_with_distance_loss(a, p, n, distance_function=lambda x, y: (x - y).abs().sum(-1))
    tensor(0.)
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise _C.ShapeMismatch(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    distance = pairwise_distance if distance_function is None else distance_function  # noqa: F821
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _C.minimum(far, distance(positive, negative))
    loss = _C.clamp_min(margin + near - far, 0)
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


__all__ = sorted(name for name in globals() if not name.startswith("_"))

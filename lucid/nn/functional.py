"""Functions of neural networks: PyTorch's `torch.nn.functional`."""

from .. import _C
from .._C import _namespaced
from ._attention import multi_head_attention_forward  # noqa: F401
from ._embedding import embedding, embedding_bag  # noqa: F401

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
        if isinstance(output_size, (list, tuple)) and None in output_size:
            sizes = input.shape[-ndim:]
            if len(output_size) == len(sizes):
                output_size = [old if new is None else new for new, old in zip(output_size, sizes)]
        return op(input, output_size, *args, **kwargs)

    pool.__name__ = pool.__qualname__ = op.__name__
    shape, size = (2, *[4] * ndim), (None, *[1] * (ndim - 1))
    pool.__doc__ = f"""{op.__doc__}

    >>> tuple(lucid.nn.functional.{op.__name__}(lucid.ones{shape}, {size}).shape)
    (2, 4{", 1" * (ndim - 1)})
    """
    return pool


adaptive_avg_pool2d = _resolves_none(adaptive_avg_pool2d, 2)  # noqa: F821
adaptive_avg_pool3d = _resolves_none(adaptive_avg_pool3d, 3)  # noqa: F821
adaptive_max_pool2d = _resolves_none(adaptive_max_pool2d, 2)  # noqa: F821
adaptive_max_pool3d = _resolves_none(adaptive_max_pool3d, 3)  # noqa: F821

__all__ = sorted(name for name in globals() if not name.startswith("_"))

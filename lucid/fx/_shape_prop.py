"""`ShapeProp`: runs a graph once and notes the shape of every result."""

from typing import Any, NamedTuple

from .. import _C
from .interpreter import Interpreter
from .node import map_aggregate


class TensorMetadata(NamedTuple):
    """The shape, dtype and strides of a result.

    >>> from lucid.fx._shape_prop import TensorMetadata
    >>> TensorMetadata._fields[:2]
    ('shape', 'dtype')
    """

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: Any
    memory_format: Any
    is_quantized: bool
    qparams: Any


def _described(value):
    if not isinstance(value, _C.Tensor):
        return value
    form = _C.contiguous_format if value.is_contiguous() else None
    return TensorMetadata(value.shape, value.dtype, value.requires_grad, value.stride(), form, False, {})


class ShapeProp(Interpreter):
    """Notes in `node.meta["tensor_meta"]` what every node gave.

    >>> from lucid.fx.passes.shape_prop import ShapeProp
    >>> traced = lucid.fx.symbolic_trace(lambda x: lucid.relu(x))
    >>> _ = ShapeProp(traced).propagate(lucid.ones(2, 3))
    >>> [tuple(node.meta["tensor_meta"].shape) for node in traced.graph.nodes][0]
    (2, 3)
    """

    def run_node(self, n):
        result = super().run_node(n)
        n.meta["tensor_meta"] = map_aggregate(result, _described)
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        """Run the graph."""
        return self.run(*args)

"""Layers."""

from importlib import import_module

from . import activation, attention, container
from .module import Module

_PARTS = [
    import_module(f"{__name__}.{part}")
    for part in (
        "activation",
        "adaptive",
        "attention",
        "conv",
        "dropout",
        "linear",
        "linear_cross_entropy",
        "loss",
        "normalization",
        "padding",
        "pooling",
        "positional",
        "rnn",
        "shape",
        "sparse",
        "transformer",
    )
]
_CONTAINERS = ("ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential")
globals().update({name: getattr(part, name) for part in _PARTS for name in part.__all__})
activation.MultiheadAttention = attention.MultiheadAttention  # where PyTorch has it
globals().update({name: getattr(container, name) for name in _CONTAINERS})
for _part in _PARTS:  # classes made from tables say where they are found
    for _name in _part.__all__:
        if getattr(_part, _name).__module__ == "lucid.nn.modules":
            getattr(_part, _name).__module__ = _part.__name__

__all__ = sorted({"Module", *_CONTAINERS, *(name for part in _PARTS for name in part.__all__)})

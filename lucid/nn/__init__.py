"""Neural networks: layers, containers, losses, and utilities for them.

>>> model = lucid.nn.Sequential(lucid.nn.Linear(4, 16), lucid.nn.ReLU(), lucid.nn.Linear(16, 3))
>>> loss = lucid.nn.CrossEntropyLoss()(model(lucid.ones(2, 4)), lucid.tensor([0, 2]))
>>> loss.backward()
>>> tuple(model[0].weight.grad.shape)
(16, 4)
"""

from . import functional, hooks, init, modules, parameter, utils
from .hooks import *
from .modules import *
from .parameter import Buffer, Parameter

_MODULES = ("attention", "common_types", "grad", "parallel")
_LAZY = ("LinearCrossEntropyOptions", "UninitializedParameter", "UninitializedBuffer")

__all__ = [
    *hooks.__all__,
    *modules.__all__,
    *_LAZY[:1],
    "Buffer",
    "Parameter",
    "functional",
    "hooks",
    "init",
    "parameter",
    "utils",
]


def __getattr__(name):
    if name.startswith("Lazy"):  # overrides every op: not before somebody needs it
        from .modules import lazy

        if name in lazy.__all__:
            return getattr(lazy, name)
    if name == "LinearCrossEntropyOptions":  # dataclasses takes as long to load as all of nn
        from ._options import LinearCrossEntropyOptions

        return LinearCrossEntropyOptions
    if name in _MODULES or name == "DataParallel":
        from importlib import import_module

        return import_module(f"lucid.nn.{name}") if name in _MODULES else import_module("lucid.nn.parallel").DataParallel
    if name in _LAZY:
        return getattr(parameter, name)
    from .. import _declared

    return _declared.look("nn", name)


def __dir__():
    from .modules.lazy import __all__ as lazy

    return sorted({*globals(), *lazy, *_LAZY, *_MODULES, "DataParallel"})

"""Modules that mark where a model would be quantized; in a model that is not, they do what they do in PyTorch."""

from .._C import add, cat, mul
from ..nn.modules.module import Module

__all__ = ["DeQuantStub", "FloatFunctional", "QuantStub"]


class QuantStub(Module):
    """Marks where values become quantized: the identity.

    >>> lucid.ao.quantization.QuantStub()(1)
    1
    """

    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig is not None:
            self.qconfig = qconfig

    def forward(self, x):
        """The input."""
        return x


class DeQuantStub(QuantStub):
    """Marks where values become floats again: the identity.

    >>> lucid.ao.quantization.DeQuantStub()(1)
    1
    """


class FloatFunctional(Module):
    """Operations as methods, so that tools find them.

    >>> lucid.nn.quantized.FloatFunctional().add(lucid.ones(1), lucid.ones(1))
    tensor([2.])
    """

    def forward(self, x):
        """Not called: the methods are."""
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x, y):
        return add(x, y)

    def add_scalar(self, x, y):
        return add(x, y)

    def mul(self, x, y):
        return mul(x, y)

    def mul_scalar(self, x, y):
        return mul(x, y)

    def cat(self, x, dim=0):
        return cat(x, dim=dim)

    def add_relu(self, x, y):
        return add(x, y).relu()

    def matmul(self, x, y):
        return x @ y

"""Neural networks."""

from . import functional, init
from ._options import LinearCrossEntropyOptions
from .parameter import Parameter

__all__ = ["LinearCrossEntropyOptions", "Parameter", "functional", "init"]

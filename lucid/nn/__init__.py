"""Neural networks."""

from . import functional, init
from .parameter import Parameter

__all__ = ["Parameter", "functional", "init"]

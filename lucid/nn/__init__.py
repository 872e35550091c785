"""Neural networks."""

from . import init
from .parameter import Parameter

__all__ = ["Parameter", "init"]

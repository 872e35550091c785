"""TorchScript's queries and decorators, for modules written with them. Lucid has no TorchScript compiler: code runs as Python,
queries return False, and decorators change nothing.

>>> lucid.jit.is_scripting() or lucid.jit.is_tracing()
False
"""

from typing import Final

__all__ = ["Final", "annotate", "export", "ignore", "is_scripting", "is_tracing", "unused"]


def is_scripting():
    """Whether this is compiled code: no.

    >>> lucid.jit.is_scripting()
    False
    """
    return False


def is_tracing():
    """Whether calls are recorded for TorchScript: no.

    >>> lucid.jit.is_tracing()
    False
    """
    return False


def annotate(the_type, the_value):
    """The value; the type is for a compiler.

    >>> lucid.jit.annotate(list[int], [])
    []
    """
    return the_value


def export(fn):
    """Mark a method that a compiler should take along.

    >>> @lucid.jit.export
    ... def f():
    ...     return 1
    >>> f()
    1
    """
    return fn


def unused(fn):
    """Mark a method that a compiler should leave out.

    >>> lucid.jit.unused(abs) is abs
    True
    """
    return fn


def ignore(drop=False, **kwargs):
    """Mark a method that a compiler should leave to Python; with or without arguments.

    >>> lucid.jit.ignore(abs) is abs, lucid.jit.ignore(drop=True)(abs) is abs
    (True, True)
    """
    return drop if callable(drop) else lambda fn: fn

"""cuDNN: not used. Its settings are kept and change nothing.

>>> lucid.backends.cudnn.deterministic
False
"""

import sys

from ._switch import kept

__all__ = ["flags", "is_acceptable", "is_available", "set_flags", "version"]

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True


def is_available():
    """Whether cuDNN is used: no.

    >>> lucid.backends.cudnn.is_available()
    False
    """
    return False


def version():
    """The version of cuDNN: there is none.

    >>> lucid.backends.cudnn.version() is None
    True
    """


def is_acceptable(tensor):
    """Whether cuDNN would take a tensor: no.

    >>> lucid.backends.cudnn.is_acceptable(lucid.ones(2))
    False
    """
    return False


def set_flags(_enabled=None, _benchmark=None, _benchmark_limit=None, _deterministic=None, _allow_tf32=None):
    """Set switches; returns what they were.

    >>> before = lucid.backends.cudnn.set_flags(_benchmark=True)
    >>> before == lucid.backends.cudnn.set_flags(*before)
    False
    """
    new = {
        "enabled": _enabled,
        "benchmark": _benchmark,
        "benchmark_limit": _benchmark_limit,
        "deterministic": _deterministic,
        "allow_tf32": _allow_tf32,
    }
    before = tuple(globals()[name] for name in new)
    globals().update({name: value for name, value in new.items() if value is not None})
    return before


def flags(enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True):
    """Switches that hold within a `with` block.

    >>> with lucid.backends.cudnn.flags(deterministic=True):
    ...     lucid.backends.cudnn.deterministic
    True
    """
    return kept(
        sys.modules[__name__],
        enabled=enabled,
        benchmark=benchmark,
        benchmark_limit=benchmark_limit,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
    )

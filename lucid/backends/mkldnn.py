"""oneDNN, formerly MKL-DNN: not used. Its settings are kept and change nothing.

>>> lucid.backends.mkldnn.is_available()
False
"""

import sys

from ._switch import kept

__all__ = ["flags", "is_available"]

enabled = True
deterministic = False
allow_tf32 = True


def is_available():
    """Whether it is used: no, kernels are Lucid's own.

    >>> lucid.backends.mkldnn.is_available()
    False
    """
    return False


def flags(enabled=False, deterministic=False, allow_tf32=True):
    """Switches that hold within a `with` block.

    >>> with lucid.backends.mkldnn.flags(enabled=False):
    ...     lucid.backends.mkldnn.enabled
    False
    """
    return kept(sys.modules[__name__], enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32)

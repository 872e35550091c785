"""Apple's GPUs: this build has no backend for them.

>>> lucid.backends.mps.is_available()
False
"""

__all__ = ["is_available", "is_built"]


def is_built():
    """Whether this build can use them: no.

    >>> lucid.backends.mps.is_built()
    False
    """
    return False


def is_available():
    """Whether there is one to use: no.

    >>> lucid.backends.mps.is_available()
    False
    """
    return False

"""Intel's MKL: not used.

>>> lucid.backends.mkl.is_available()
False
"""

__all__ = ["is_available"]


def is_available():
    """Whether it is used: no, kernels and threads are Lucid's own.

    >>> lucid.backends.mkl.is_available()
    False
    """
    return False

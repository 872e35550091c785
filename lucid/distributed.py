"""Distributed computation: not in this build, as in PyTorch built without it. Queries work.

>>> lucid.distributed.is_available() and lucid.distributed.is_initialized()
False
"""

__all__ = ["is_available", "is_initialized"]


def is_available():
    """Whether this build supports distributed computation: no.

    >>> lucid.distributed.is_available()
    False
    """
    return False


def is_initialized():
    """Whether there is a group of processes: no.

    >>> lucid.distributed.is_initialized()
    False
    """
    return False

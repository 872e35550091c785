"""CUDA devices. Nothing of CUDA is loaded before it is asked for."""

from .. import _C

__all__ = ["device_count", "is_available", "synchronize"]

_CUDA = 1


def device_count():
    """How many CUDA devices there are; 0 without a driver.

    >>> import lucid
    >>> lucid.cuda.device_count() >= 0
    True
    """
    return _C._device_count(_CUDA)


def is_available():
    """Whether there is a CUDA device to use.

    >>> import lucid
    >>> lucid.cuda.is_available() == (lucid.cuda.device_count() > 0)
    True
    """
    return device_count() > 0


def synchronize(device=0):
    """Wait until all work of a device is done. Raises GpuNotAvailable where there is none.

    >>> import lucid
    >>> if lucid.cuda.is_available():
    ...     lucid.cuda.synchronize()
    """
    _C._cuda_synchronize(device)

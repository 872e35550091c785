"""The accelerator of this machine: a CUDA device, or none.

>>> device = lucid.accelerator.current_accelerator().type if lucid.accelerator.is_available() else "cpu"
>>> device in ("cpu", "cuda")
True
"""

from . import _C, cuda

__all__ = ["current_accelerator", "device_count", "is_available", "synchronize"]


def is_available():
    """Whether there is an accelerator to use.

    >>> lucid.accelerator.is_available() == lucid.cuda.is_available()
    True
    """
    return cuda.is_available()


def device_count():
    """How many accelerators there are.

    >>> lucid.accelerator.device_count() == lucid.cuda.device_count()
    True
    """
    return cuda.device_count()


def current_accelerator(check_available=False):
    """The kind of accelerator, as a device; None without one.

    >>> lucid.accelerator.current_accelerator() is None or lucid.accelerator.is_available()
    True
    """
    return _C.device("cuda") if cuda.is_available() else None


def synchronize(device=None):
    """Wait until all work of an accelerator is done. Raises GpuNotAvailable where there is none.

    >>> if lucid.accelerator.is_available():
    ...     lucid.accelerator.synchronize()
    """
    cuda.synchronize(0 if device is None else device)


def __getattr__(name):
    from . import _declared

    return _declared.look("accelerator", name)

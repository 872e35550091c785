"""Names of `torch.cuda`, `torch.xpu` and `torch.mps` that programs call with or without a device."""

from .. import _C

_NO_DEVICE = "there is no such device (torch.xpu.is_available() is False)"


def __getattr__(name):
    from .. import cuda

    if name == "_initialized":
        return cuda.is_initialized()
    if name == "has_cuda":
        from ..backends import cuda as backend

        return backend.is_built()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Event:
    """A point in the work of an Intel GPU, for `isinstance`: making one raises.

    >>> lucid._declared.cuda.Event()
    Traceback (most recent call last):
    RuntimeError: ...
    """

    def __init__(self, enable_timing=False):
        raise RuntimeError(_NO_DEVICE)


class Stream:
    """A queue of work of an Intel GPU, for `isinstance`: making one raises.

    >>> isinstance(None, lucid._declared.cuda.Stream)
    False
    """

    def __init__(self, device=None, priority=0, **kwargs):
        raise RuntimeError(_NO_DEVICE)


def _lazy_call(callable, **kwargs):
    """Called once there is a device: now, or never."""
    from .. import cuda

    if cuda.is_available():
        callable()


def amp_definitely_not_available():
    """Whether mixed precision has no device.

    >>> from lucid._declared.cuda import amp_definitely_not_available
    >>> amp_definitely_not_available() == (not lucid.cuda.is_available())
    True
    """
    from .. import cuda

    return not cuda.is_available()


def bad_fork():
    """Whether this process was forked from one that used CUDA, which it cannot then use.

    >>> lucid._declared.cuda.bad_fork()
    False
    """
    return _C._cuda_initialized() and not _C._device_count(1)


def zero(*args, **kwargs):
    """Bytes in use on a device that is not there.

    >>> lucid._declared.cuda.zero()
    0
    """
    return 0


def no_states():
    """The random states of devices that are not there.

    >>> lucid._declared.cuda.no_states()
    []
    """
    return []


def no_xpu(*args, **kwargs):
    """Raises: there is no backend for Intel's GPUs.

    >>> lucid._declared.cuda.no_xpu()
    Traceback (most recent call last):
    RuntimeError: ...
    """
    raise RuntimeError("there is no XPU device (torch.xpu.is_available() is False)")


def no_mps(*args, **kwargs):
    """Raises: there is no backend for Apple's GPUs.

    >>> lucid._declared.cuda.no_mps()
    Traceback (most recent call last):
    RuntimeError: ...
    """
    raise RuntimeError("there is no MPS device (torch.mps.is_available() is False)")

"""Names of `torch.cuda`, `torch.xpu` and `torch.mps` that programs call with or without a device.

Without one, what asks about a device raises, and what reports on memory or streams answers for none, as in PyTorch.
"""

from .. import _C
from .contexts import nothing

default_generators = ()
_NO_DEVICE = "there is no CUDA device (torch.cuda.is_available() is False)"


def __getattr__(name):
    from .. import cuda

    if name == "_initialized":
        return cuda.is_initialized()
    if name == "has_cuda":
        from ..backends import cuda as backend

        return backend.is_built()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Event:
    """A point in the work of a device, for timing and waiting: making one raises where there is no device.

    >>> if not lucid.cuda.is_available():
    ...     lucid._declared.cuda.Event()
    Traceback (most recent call last):
    RuntimeError: ...
    """

    def __init__(self, enable_timing=False, blocking=False, interprocess=False):
        _device()


class Stream:
    """A queue of work of a device: making one raises where there is no device.

    >>> isinstance(None, lucid._declared.cuda.Stream)
    False
    """

    def __init__(self, device=None, priority=0, **kwargs):
        _device()


class StreamContext(nothing):
    """A block on a stream; None is the current one.

    >>> with lucid._declared.cuda.StreamContext(None):
    ...     1
    1
    """


def stream(stream):
    """A block on a stream; None changes nothing.

    >>> with lucid._declared.cuda.stream(None):
    ...     1
    1
    """
    return StreamContext(stream)


class device(nothing):  # noqa: N801 (PyTorch's name)
    """A block in which a device is the current one: the one there is, or none.

    >>> with lucid._declared.cuda.device(None):
    ...     1
    1
    """

    def __init__(self, device):
        if device is not None and index_of(device) > 0:
            raise RuntimeError(f"cuda.device: {device} is not there: this process uses device 0")


device_of = nothing


def index_of(device, optional=False, allow_cpu=False):
    """The number of a device.

    >>> from lucid._declared.cuda import index_of
    >>> index_of("cuda:1"), index_of(None)
    (1, 0)
    """
    if device is None:
        return 0
    if isinstance(device, int):
        return device
    device = _C.device(device) if isinstance(device, str) else device
    return device.index or 0


def _device():
    from .. import cuda

    if not cuda.is_available():
        raise RuntimeError(_NO_DEVICE)
    raise NotImplementedError("cuda: streams and events of a device are not in Lucid yet")


def _needs(value):
    def ask(*args, **kwargs):
        """Raises where there is no device.

        >>> callable(lucid._declared.cuda.current_device)
        True
        """
        from .. import cuda

        if not cuda.is_available():
            raise RuntimeError(_NO_DEVICE)
        return value() if value else None

    return ask


current_device = _needs(lambda: 0)
set_device = _needs(None)
set_stream = _needs(None)
current_blas_handle = _needs(None)


def _unknown(name):
    def ask(*args, **kwargs):
        """Raises: without a device there is nothing to ask, and with one the answer is not there yet.

        >>> callable(lucid._declared.cuda.current_stream)
        True
        """
        from .. import cuda

        if not cuda.is_available():
            raise RuntimeError(_NO_DEVICE)
        raise NotImplementedError(f"cuda.{name} is not in Lucid yet")

    return ask


get_device_capability, get_device_properties, get_device_name = map(
    _unknown, ("get_device_capability", "get_device_properties", "get_device_name")
)
current_stream, default_stream, mem_get_info = map(_unknown, ("current_stream", "default_stream", "mem_get_info"))
get_rng_state, set_rng_state, initial_seed = map(_unknown, ("get_rng_state", "set_rng_state", "initial_seed"))
utilization, temperature, power_draw = map(_unknown, ("utilization", "temperature", "power_draw"))
clock_rate, cudart, can_device_access_peer = map(_unknown, ("clock_rate", "cudart", "can_device_access_peer"))
caching_allocator_alloc, check_error = map(_unknown, ("caching_allocator_alloc", "check_error"))
graph_pool_handle, make_graphed_callables = map(_unknown, ("graph_pool_handle", "make_graphed_callables"))
set_per_process_memory_fraction, memory_snapshot = map(_unknown, ("set_per_process_memory_fraction", "memory_snapshot"))
_lazy_init = _unknown("_lazy_init")


def _lazy_call(callable, **kwargs):
    """Called once there is a device: now, or never."""
    from .. import cuda

    if cuda.is_available():
        callable()


def get_arch_list():
    """The kinds of GPUs that code was compiled for beforehand: none, kernels are compiled at first use.

    >>> lucid._declared.cuda.get_arch_list()
    []
    """
    return []


def get_gencode_flags():
    """The flags they were compiled with.

    >>> lucid._declared.cuda.get_gencode_flags()
    ''
    """
    return ""


def memory_stats(device=None):
    """Bytes in use on the device, by PyTorch's names.

    >>> lucid._declared.cuda.memory_stats()["allocated_bytes.all.current"] >= 0
    True
    """
    stats = _C.memory_stats("cuda")
    return {
        "allocated_bytes.all.current": stats["allocated_bytes"],
        "allocated_bytes.all.peak": stats["peak_bytes"],
        "reserved_bytes.all.current": stats["allocated_bytes"] + stats["cached_bytes"],
    }


def memory_summary(device=None, abbreviated=False):
    """Bytes in use on the device, as text.

    >>> "allocated" in lucid._declared.cuda.memory_summary()
    True
    """
    return "\n".join(f"{name}: {value}" for name, value in memory_stats(device).items())


def reset_max_memory_allocated(device=None):
    """Start the peak anew.

    >>> lucid._declared.cuda.reset_max_memory_allocated()
    """
    _C.reset_peak_memory_stats("cuda")


reset_max_memory_cached = reset_accumulated_memory_stats = reset_max_memory_allocated


def memory_cached(device=None):
    """Bytes kept from the driver.

    >>> lucid._declared.cuda.memory_cached() >= 0
    True
    """
    from .. import cuda

    return cuda.memory_reserved(device)


max_memory_cached = memory_cached


def is_current_stream_capturing():
    """Whether work is being recorded into a graph of the device: no.

    >>> lucid._declared.cuda.is_current_stream_capturing()
    False
    """
    return False


def is_tf32_supported():
    """Whether devices compute in TF32.

    >>> lucid._declared.cuda.is_tf32_supported() in (True, False)
    True
    """
    from .. import cuda

    return cuda.is_available()


def ipc_collect():
    """Give back memory shared by processes that ended: none is.

    >>> lucid._declared.cuda.ipc_collect()
    """


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


def accelerator_now(device=None):
    """Bytes in use on the accelerator.

    >>> lucid._declared.cuda.accelerator_now() >= 0
    True
    """
    return _C.memory_stats("cuda")["allocated_bytes"]


def accelerator_peak(device=None):
    """The most bytes in use on the accelerator.

    >>> lucid._declared.cuda.accelerator_peak() >= 0
    True
    """
    return _C.memory_stats("cuda")["peak_bytes"]


def accelerator_reset(device=None):
    """Start the peak anew.

    >>> lucid._declared.cuda.accelerator_reset()
    """
    _C.reset_peak_memory_stats("cuda")

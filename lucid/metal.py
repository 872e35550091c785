"""Metal devices: this build has no Metal backend. Queries work; functions that need a device raise `GpuNotAvailable`.

>>> lucid.metal.is_available()
False
"""

from ._C import GpuNotAvailable

__all__ = [
    "MetalEvent",
    "MetalStream",
    "empty_cache",
    "get_cache_memory",
    "get_device_name",
    "is_available",
    "is_shared",
    "manual_seed",
    "max_memory_allocated",
    "memory_allocated",
    "reset_peak_memory_stats",
    "run_kernel",
    "shared_tensor",
    "synchronize",
    "to_shared",
]


def is_available():
    """Whether there is a Metal device: no.

    >>> lucid.metal.is_available()
    False
    """
    return False


def is_shared(tensor):
    """Whether a tensor is in memory that a Metal device sees: never.

    >>> lucid.metal.is_shared(lucid.ones(2))
    False
    """
    return tensor.is_metal


def memory_allocated():
    """Bytes in use on the device: none.

    >>> lucid.metal.memory_allocated()
    0
    """
    return 0


def max_memory_allocated():
    """The most bytes in use on the device so far: none.

    >>> lucid.metal.max_memory_allocated()
    0
    """
    return 0


def get_cache_memory():
    """Bytes kept for reuse on the device: none.

    >>> lucid.metal.get_cache_memory()
    0
    """
    return 0


def empty_cache():
    """Give back what is kept for reuse: there is nothing.

    >>> lucid.metal.empty_cache()
    """


def reset_peak_memory_stats():
    """Start `max_memory_allocated` anew: it is zero.

    >>> lucid.metal.reset_peak_memory_stats()
    """


def _needs_device(name, what):
    def raises(*args, **kwargs):
        raise GpuNotAvailable(f"metal.{name}: this build has no Metal backend")

    raises.__name__ = raises.__qualname__ = name
    raises.__doc__ = f"""{what} Raises `GpuNotAvailable`.

    >>> lucid.metal.{name}()
    Traceback (most recent call last):
    lucid.GpuNotAvailable: metal.{name}: this build has no Metal backend
    """
    return raises


MetalEvent = _needs_device("MetalEvent", "A point in a stream of work.")
MetalStream = _needs_device("MetalStream", "A stream of work.")
get_device_name = _needs_device("get_device_name", "What the device is called.")
manual_seed = _needs_device("manual_seed", "Seed the device's random stream.")
run_kernel = _needs_device("run_kernel", "Run a kernel written in Metal's language.")
shared_tensor = _needs_device("shared_tensor", "A tensor in memory that both sides see.")
synchronize = _needs_device("synchronize", "Wait for the device.")
to_shared = _needs_device("to_shared", "A copy in memory that both sides see.")

"""CUDA devices. CUDA libraries are loaded at first use.

Queries and seeding work with or without a device; without one the answers are PyTorch's.
"""

from .. import _C
from .._C import OutOfMemory as OutOfMemoryError

__all__ = [
    "OutOfMemoryError",
    "device_count",
    "empty_cache",
    "get_rng_state_all",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_rng_state_all",
    "synchronize",
]

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


def is_initialized():
    """Whether CUDA can be used: devices are initialised at first use, so this is `is_available`.

    >>> lucid.cuda.is_initialized() and not lucid.cuda.is_available()
    False
    """
    return is_available()


def init():
    """Make sure that there is a device to use. Raises GpuNotAvailable where there is none.

    >>> if lucid.cuda.is_available():
    ...     lucid.cuda.init()
    """
    _C._cuda_synchronize(0)


def is_bf16_supported(including_emulation=True):
    """Whether devices compute in bfloat16.

    >>> lucid.cuda.is_bf16_supported() and not lucid.cuda.is_available()
    False
    """
    return is_available()


def manual_seed(seed):
    """Seed the random stream of the device. No op draws on a device yet: the CPU's stream is `lucid.manual_seed`'s.

    >>> lucid.cuda.manual_seed(0)
    """
    int(seed)


def manual_seed_all(seed):
    """Seed the random streams of all devices; see `manual_seed`.

    >>> lucid.cuda.manual_seed_all(0)
    """
    int(seed)


def seed():
    """Seed the device from the system's entropy; see `manual_seed`.

    >>> lucid.cuda.seed()
    """


def seed_all():
    """Seed all devices from the system's entropy; see `manual_seed`.

    >>> lucid.cuda.seed_all()
    """


def get_rng_state_all():
    """The states of the random streams of all devices: there are none.

    >>> lucid.cuda.get_rng_state_all()
    []
    """
    return []


def set_rng_state_all(new_states):
    """Continue the streams from what `get_rng_state_all` returned.

    >>> lucid.cuda.set_rng_state_all(lucid.cuda.get_rng_state_all())
    """
    if len(new_states):
        raise _C.GpuNotAvailable("set_rng_state_all: no device has a random stream")


def empty_cache():
    """Give back memory that is kept for reuse: none is.

    >>> lucid.cuda.empty_cache()
    """


def memory_allocated(device=None):
    """Bytes in use on the devices.

    >>> lucid.cuda.memory_allocated() >= 0
    True
    """
    return _C.memory_stats("cuda")["allocated_bytes"]


def max_memory_allocated(device=None):
    """The most bytes in use on the devices so far.

    >>> lucid.cuda.max_memory_allocated() >= 0
    True
    """
    return _C.memory_stats("cuda")["peak_bytes"]


def memory_reserved(device=None):
    """Bytes kept from the driver.

    >>> lucid.cuda.memory_reserved() >= 0
    True
    """
    stats = _C.memory_stats("cuda")
    return stats["allocated_bytes"] + stats["cached_bytes"]


def max_memory_reserved(device=None):
    """The most bytes kept from the driver so far.

    >>> lucid.cuda.max_memory_reserved() >= 0
    True
    """
    return max(max_memory_allocated(device), memory_reserved(device))


def reset_peak_memory_stats(device=None):
    """Start `max_memory_allocated` anew.

    >>> lucid.cuda.reset_peak_memory_stats()
    """
    _C.reset_peak_memory_stats("cuda")


def __getattr__(name):
    if name == "amp":
        from importlib import import_module

        return import_module("lucid.cuda.amp")
    if name.endswith("Tensor"):
        from .._namespace import legacy

        if name in legacy.__all__:
            return legacy.on_cuda(name)
    from .. import _declared

    return _declared.look("cuda", name)

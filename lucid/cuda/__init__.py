"""CUDA devices. CUDA libraries are loaded at first use.

Queries and seeding work with or without a device; without one the answers are PyTorch's.
"""

from .. import _C
from .._C import OutOfMemory as OutOfMemoryError

__all__ = [
    "OutOfMemoryError",
    "current_device",
    "device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "synchronize",
]

_CUDA = 1
_GENERATORS = 16  # whether there are devices or not: a seed set before the first use counts


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


def synchronize(device=None):
    """Wait until all work of a device is done. Raises GpuNotAvailable where there is none.

    >>> import lucid
    >>> if lucid.cuda.is_available():
    ...     lucid.cuda.synchronize()
    """
    _C._cuda_synchronize(_index(device))


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


def _index(device):
    """The number of a device given as a number, a name, a device or None."""
    if device is None:
        return 0
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    device = _C.device(device)
    if device.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return device.index or 0


def current_device():
    """The device that "cuda" means: the first one.

    >>> lucid.cuda.current_device()
    0
    """
    return 0


def set_device(device):
    """Choose the device that "cuda" means. Only the first one can be chosen; others are named, "cuda:1".

    >>> lucid.cuda.set_device(0)
    """
    if _index(device) > 0:
        raise NotImplementedError("set_device: name the device instead: x.to('cuda:1')")


class device:
    """A `with` block in which "cuda" means a device; see `set_device`.

    >>> with lucid.cuda.device(0):
    ...     lucid.cuda.current_device()
    0
    """

    def __init__(self, device):
        self.idx = _index(device)

    def __enter__(self):
        set_device(self.idx)
        return self

    def __exit__(self, *error):
        pass


class _Properties:
    """What `get_device_properties` returns."""

    def __init__(self, index):
        self.name, self.total_memory, self.major, self.minor, processors, threads, self.L2_cache_size, _ = _C._cuda_info(index)
        self.multi_processor_count, self.max_threads_per_multi_processor = processors, threads

    def __repr__(self):
        return (
            f"_CudaDeviceProperties(name={self.name!r}, major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count}, "
            f"L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


def get_device_properties(device=None):
    """Name, memory, compute capability and number of processors of a device. Raises GpuNotAvailable where there is none.

    >>> if lucid.cuda.is_available():
    ...     assert lucid.cuda.get_device_properties(0).total_memory > 0
    """
    return _Properties(_index(device))


def get_device_name(device=None):
    """The name of a device.

    >>> if lucid.cuda.is_available():
    ...     assert lucid.cuda.get_device_name()
    """
    return get_device_properties(device).name


def get_device_capability(device=None):
    """The compute capability of a device, such as (9, 0).

    >>> if lucid.cuda.is_available():
    ...     assert len(lucid.cuda.get_device_capability()) == 2
    """
    properties = get_device_properties(device)
    return properties.major, properties.minor


def _generator(device):
    return _C._cuda_generator(_index(device))


def manual_seed(seed):
    """Seed the random stream of the device. It has the numbers of PyTorch's on the same model of GPU.

    >>> lucid.cuda.manual_seed(0)
    """
    _generator(None).manual_seed(int(seed))


def manual_seed_all(seed):
    """Seed the random streams of all devices.

    >>> lucid.cuda.manual_seed_all(0)
    """
    for index in range(_GENERATORS):
        _generator(index).manual_seed(int(seed))


def seed():
    """Seed the device from the system's entropy.

    >>> lucid.cuda.seed()
    """
    _generator(None).seed()


def seed_all():
    """Seed all devices with one seed from the system's entropy.

    >>> lucid.cuda.seed_all()
    """
    manual_seed_all(_generator(None).seed())


def initial_seed():
    """The seed that the device's random stream started from.

    >>> lucid.cuda.manual_seed(7)
    >>> lucid.cuda.initial_seed()
    7
    """
    return _generator(None).initial_seed()


def get_rng_state(device="cuda"):
    """The state of a device's random stream: its seed and its counter.

    >>> lucid.cuda.get_rng_state().shape
    lucid.Size([16])
    """
    return _generator(device).get_state()


def set_rng_state(new_state, device="cuda"):
    """Continue a device's random stream from what `get_rng_state` returned.

    >>> lucid.cuda.set_rng_state(lucid.cuda.get_rng_state())
    """
    _generator(device).set_state(new_state.cpu())


def get_rng_state_all():
    """The states of the random streams of all devices.

    >>> len(lucid.cuda.get_rng_state_all()) == lucid.cuda.device_count()
    True
    """
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states):
    """Continue the streams from what `get_rng_state_all` returned.

    >>> lucid.cuda.set_rng_state_all(lucid.cuda.get_rng_state_all())
    """
    if len(new_states) > device_count():
        raise _C.GpuNotAvailable(f"set_rng_state_all: {len(new_states)} states, but {device_count()} devices")
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def empty_cache():
    """Give memory that is kept for reuse back to the driver.

    >>> lucid.cuda.empty_cache()
    """
    _C._cuda_empty_cache()


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
    """Bytes held from the driver: in use, or kept for reuse.

    >>> lucid.cuda.memory_reserved() >= lucid.cuda.memory_allocated()
    True
    """
    return _C._cuda_memory_numbers()[5]


def max_memory_reserved(device=None):
    """The most bytes held from the driver so far.

    >>> lucid.cuda.max_memory_reserved() >= lucid.cuda.memory_reserved()
    True
    """
    return _C._cuda_memory_numbers()[6]


def reset_peak_memory_stats(device=None):
    """Start `max_memory_allocated` anew.

    >>> lucid.cuda.reset_peak_memory_stats()
    """
    _C.reset_peak_memory_stats("cuda")


def mem_get_info(device=None):
    """Free and total bytes of a device, by its driver. Raises GpuNotAvailable where there is none.

    >>> if lucid.cuda.is_available():
    ...     free, total = lucid.cuda.mem_get_info()
    """
    return _C._cuda_memory_info(_index(device))


def memory_stats(device=None):
    """What the allocator counts, under PyTorch's names.

    >>> lucid.cuda.memory_stats()["num_alloc_retries"] >= 0
    True
    """
    cached, blocks, allocations, frees, retries, reserved, peak = _C._cuda_memory_numbers()
    return {
        "allocated_bytes.all.current": memory_allocated(),
        "allocated_bytes.all.peak": max_memory_allocated(),
        "reserved_bytes.all.current": reserved,
        "reserved_bytes.all.peak": peak,
        "inactive_split_bytes.all.current": 0,
        "cached_bytes.all.current": cached,
        "cached_blocks.all.current": blocks,
        "num_device_alloc": allocations,
        "num_device_free": frees,
        "num_alloc_retries": retries,
    }


def memory_summary(device=None, abbreviated=False):
    """`memory_stats` as text.

    >>> "reserved" in lucid.cuda.memory_summary()
    True
    """
    return "\n".join(f"{name:34}{value:>20,}" for name, value in memory_stats(device).items())


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

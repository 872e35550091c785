"""CUDA devices. CUDA libraries are loaded at first use.

Queries and seeding work with or without a device; without one the answers are PyTorch's.
"""

from .. import _C
from .._C import OutOfMemory as OutOfMemoryError
from ._devices import device, device_of
from ._devices import index_of as _index
from .graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    make_graphed_callables,
)
from .kernels import CompileError, Kernel, run_kernel
from .memory import (
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    caching_allocator_enable,
    change_current_allocator,
    device_memory_used,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    list_gpu_processes,
    map_host,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from .nvml import clock_rate, memory_usage, power_draw, temperature, utilization
from .profiler import CudaError, check_error, cudart, cudaStatus
from .streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    is_current_stream_capturing,
    set_stream,
    stream,
)

__all__ = [
    "CompileError",
    "Kernel",
    "run_kernel",
    "CUDAGraph",
    "CudaError",
    "Event",
    "ExternalStream",
    "MemPool",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_enable",
    "can_device_access_peer",
    "change_current_allocator",
    "check_error",
    "clock_rate",
    "cudart",
    "cudaStatus",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_from_external",
    "get_sync_debug_mode",
    "graph",
    "graph_pool_handle",
    "host_memory_stats",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "list_gpu_processes",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "map_host",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "power_draw",
    "memory_usage",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "stream",
    "synchronize",
    "temperature",
    "use_mem_pool",
    "utilization",
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
    """Whether the driver is in use: it is loaded when something first asks for a device.

    >>> lucid.cuda.is_initialized() and not lucid.cuda.is_available()
    False
    """
    return _C._cuda_initialized()


def init():
    """Make sure that there is a device to use. Raises GpuNotAvailable where there is none.

    >>> if lucid.cuda.is_available():
    ...     lucid.cuda.init()
    """
    _C._cuda_open()
    if not is_available():  # a forked process
        synchronize()


def is_bf16_supported(including_emulation=True):
    """Whether the current device computes in bfloat16; including_emulation=False: whether its processors have products of it.

    >>> lucid.cuda.is_bf16_supported() and not lucid.cuda.is_available()
    False
    """
    return is_available() and (including_emulation or get_device_properties().major >= 8)


def is_tf32_supported():
    """Whether the current device has products in TF32.

    >>> lucid.cuda.is_tf32_supported() and not lucid.cuda.is_available()
    False
    """
    return is_available() and get_device_properties().major >= 8


def current_device():
    """The device that "cuda" means to this thread.

    >>> lucid.cuda.current_device()
    0
    """
    return _C._cuda_current_device()


def set_device(device):
    """Choose the device that "cuda" means to this thread from now on. A negative number changes nothing.

    >>> if lucid.cuda.is_available():
    ...     lucid.cuda.set_device(0)
    """
    if not (isinstance(device, int) and device < 0):
        _C._cuda_set_device(_index(device))


class _Properties:
    """What `get_device_properties` returns."""

    def __init__(self, index):
        self.__dict__.update(_C._cuda_info(index))
        self.gcnArchName = self.name

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


def can_device_access_peer(device, peer_device):
    """Whether a device reads the memory of another one without the host.

    >>> if lucid.cuda.device_count() > 1:
    ...     assert lucid.cuda.can_device_access_peer(0, 1) in (True, False)
    """
    return _C._cuda_can_access(_index(device), _index(peer_device))


def ipc_collect():
    """Give back memory shared by processes that ended: none is shared.

    >>> lucid.cuda.ipc_collect()
    """


def get_arch_list():
    """The kinds of GPUs that kernels are compiled for: those of the devices here, at first use.

    >>> len(lucid.cuda.get_arch_list()) <= lucid.cuda.device_count()
    True
    """
    return sorted({"sm_" + "".join(map(str, get_device_capability(index))) for index in range(device_count())})


def get_gencode_flags():
    """The same as flags of NVIDIA's compiler.

    >>> isinstance(lucid.cuda.get_gencode_flags(), str)
    True
    """
    kinds = [kind[3:] for kind in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{kind},code=sm_{kind}" for kind in kinds)


def set_sync_debug_mode(debug_mode):
    """Calls that wait are not watched: only "default" is accepted.

    >>> lucid.cuda.set_sync_debug_mode("default")
    """
    if debug_mode not in (0, "default"):
        raise NotImplementedError("set_sync_debug_mode: calls that wait are not watched")


def get_sync_debug_mode():
    """0: calls that wait are not watched.

    >>> lucid.cuda.get_sync_debug_mode()
    0
    """
    return 0


_MODULES = (
    "amp",
    "comm",
    "graphed",
    "graphs",
    "history",
    "interop",
    "kernels",
    "memory",
    "nvml",
    "nvtx",
    "profiler",
    "streams",
)


def __getattr__(name):
    if name in _MODULES:
        from importlib import import_module

        return import_module(f"lucid.cuda.{name}")
    if name.endswith("Tensor"):
        from .._namespace import legacy

        if name in legacy.__all__:
            return legacy.on_cuda(name)
    if name == "default_generators":  # a device may come into use later
        return tuple(map(_generator, range(device_count())))
    from .. import _declared

    return _declared.look("cuda", name)

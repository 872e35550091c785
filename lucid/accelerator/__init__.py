"""The accelerator of this machine: its CUDA devices, or none. The functions are those of `lucid.cuda`, whatever the device.

>>> device = lucid.accelerator.current_accelerator().type if lucid.accelerator.is_available() else "cpu"
>>> device in ("cpu", "cuda")
True
"""

from .. import _C, cuda
from ..cuda import current_device as current_device_index
from ..cuda import (
    current_stream,
    device_count,
    empty_cache,
    is_available,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    set_stream,
    synchronize,
)
from ..cuda import mem_get_info as get_memory_info
from ..cuda import set_device as set_device_index

current_device_idx, set_device_idx = current_device_index, set_device_index

__all__ = [
    "Graph",
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def current_accelerator(check_available=False):
    """The kind of accelerator, as a device; None without one.

    >>> lucid.accelerator.current_accelerator() is None or lucid.accelerator.is_available()
    True
    """
    return _C.device("cuda") if cuda.is_available() else None


def get_device_capability(device=None, /):
    """What a device can do: `supported_dtypes`, those of tensors that it can hold.

    >>> if lucid.accelerator.is_available():
    ...     assert lucid.float16 in lucid.accelerator.get_device_capability()["supported_dtypes"]
    """
    cuda.get_device_properties(device)  # raises where there is none
    return {"supported_dtypes": {dtype for dtype in vars(_C).values() if isinstance(dtype, _C.dtype)}}


def empty_host_cache():
    """Give page-locked memory that is kept for reuse back to the system.

    >>> lucid.accelerator.empty_host_cache()
    """
    _C._cuda_host_empty_cache()


class device_index(cuda.device):
    """A `with` block in which a device is the current one; None changes nothing.

    >>> with lucid.accelerator.device_index(None):
    ...     x = lucid.ones(1)
    """

    def __init__(self, device, /):
        super().__init__(device)


class Graph(cuda.CUDAGraph):
    """A captured graph that is its own `with` block: calls on the current stream, which is not the default one, go into it.

    >>> if lucid.accelerator.is_available():
    ...     x, graph = lucid.zeros(1, device="cuda"), lucid.accelerator.Graph()
    ...     with lucid.Stream(), graph:
    ...         x += 1
    ...     graph.replay()
    ...     assert x.item() == 1
    """

    def __init__(self, keep_graph=False, *, pool=None, capture_error_mode="default"):
        super().__init__(keep_graph)
        self.graph_pool, self.capture_error_mode = pool, capture_error_mode

    def __enter__(self):
        synchronize()
        empty_cache()
        mode = "global" if self.capture_error_mode == "default" else self.capture_error_mode
        self.capture_begin(self.graph_pool, mode)

    def __exit__(self, *error):
        self.capture_end()


def __getattr__(name):
    from .. import _declared

    return _declared.look("accelerator", name)

"""Memory of devices: what is in use, what is kept for reuse, and limits. Functions take a device; None is the current one.

>>> lucid.cuda.memory_allocated() <= lucid.cuda.memory_reserved()
True
"""

from .. import _C
from ._devices import index_of

__all__ = [
    "MemPool",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_enable",
    "change_current_allocator",
    "device_memory_used",
    "empty_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "list_gpu_processes",
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
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]

_ALLOCATED, _RESERVED = 4, 5  # positions in the engine's counts


def empty_cache():
    """Give memory that is kept for reuse back to the driver, on all devices.

    >>> lucid.cuda.empty_cache()
    """
    _C._cuda_empty_cache()


def memory_allocated(device=None):
    """Bytes that tensors and workspaces hold.

    >>> lucid.cuda.memory_allocated() >= 0
    True
    """
    return _C._cuda_memory_count(index_of(device), _ALLOCATED, False)


def max_memory_allocated(device=None):
    """The most bytes that tensors and workspaces held.

    >>> lucid.cuda.max_memory_allocated() >= lucid.cuda.memory_allocated()
    True
    """
    return _C._cuda_memory_count(index_of(device), _ALLOCATED, True)


def memory_reserved(device=None):
    """Bytes held from the driver: in use, or kept for reuse.

    >>> lucid.cuda.memory_reserved() >= lucid.cuda.memory_allocated()
    True
    """
    return _C._cuda_memory_count(index_of(device), _RESERVED, False)


def max_memory_reserved(device=None):
    """The most bytes held from the driver.

    >>> lucid.cuda.max_memory_reserved() >= lucid.cuda.memory_reserved()
    True
    """
    return _C._cuda_memory_count(index_of(device), _RESERVED, True)


def memory_cached(device=None):
    """`memory_reserved` by its old name.

    >>> lucid.cuda.memory_cached() == lucid.cuda.memory_reserved()
    True
    """
    return memory_reserved(device)


def max_memory_cached(device=None):
    """`max_memory_reserved` by its old name.

    >>> lucid.cuda.max_memory_cached() == lucid.cuda.max_memory_reserved()
    True
    """
    return max_memory_reserved(device)


def reset_peak_memory_stats(device=None):
    """Start the peaks anew.

    >>> lucid.cuda.reset_peak_memory_stats()
    >>> lucid.cuda.max_memory_allocated() == lucid.cuda.memory_allocated()
    True
    """
    _C._cuda_memory_reset(index_of(device), True)


def reset_max_memory_allocated(device=None):
    """`reset_peak_memory_stats` by its old name.

    >>> lucid.cuda.reset_max_memory_allocated()
    """
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device=None):
    """`reset_peak_memory_stats` by its old name.

    >>> lucid.cuda.reset_max_memory_cached()
    """
    reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device=None):
    """Start the sums of what was allocated and freed anew.

    >>> lucid.cuda.reset_accumulated_memory_stats()
    >>> lucid.cuda.memory_stats()["allocation.all.allocated"]
    0
    """
    _C._cuda_memory_reset(index_of(device), False)


def mem_get_info(device=None):
    """Free and total bytes of a device, by its driver. Raises GpuNotAvailable where there is none.

    >>> if lucid.cuda.is_available():
    ...     free, total = lucid.cuda.mem_get_info()
    """
    return _C._cuda_memory_info(index_of(device))


def device_memory_used(device=None):
    """Bytes of a device that any process uses.

    >>> if lucid.cuda.is_available():
    ...     assert lucid.cuda.device_memory_used() >= 0
    """
    free, total = mem_get_info(device)
    return total - free


def memory_stats(device=None):
    """What the allocator counts, under PyTorch's names.

    >>> lucid.cuda.memory_stats()["num_alloc_retries"]
    0
    """
    stats = _C._cuda_memory_stats(index_of(device))
    stats["max_split_size"] = -1
    stats["num_sync_all_streams"] = stats["num_alloc_retries"]
    return dict(sorted(stats.items()))


def memory_stats_as_nested_dict(device=None):
    """`memory_stats` as dicts in dicts: what, pool, current or peak.

    >>> lucid.cuda.memory_stats_as_nested_dict()["allocation"]["all"]["current"] >= 0
    True
    """
    nested = {}
    for name, value in memory_stats(device).items():
        at = nested
        *path, last = name.split(".")
        for part in path:
            at = at.setdefault(part, {})
        at[last] = value
    return nested


def memory_summary(device=None, abbreviated=False):
    """`memory_stats` as a table; abbreviated: only of all pools together.

    >>> print(lucid.cuda.memory_summary(abbreviated=True).splitlines()[1])
    CUDA memory of device 0: 0 times out of memory, 0 retries
    """
    stats, index = memory_stats(device), index_of(device)
    rows = [
        ("allocated", "allocated_bytes", True),
        ("asked for", "requested_bytes", True),
        ("reserved", "reserved_bytes", True),
        ("free in segments", "inactive_split_bytes", True),
        ("allocations", "allocation", False),
        ("segments", "segment", False),
        ("free parts", "inactive_split", False),
    ]
    pools = [("all", "")] if abbreviated else [("all", ""), ("large_pool", "  large"), ("small_pool", "  small")]
    width = 22 + 4 * 15
    title = f"CUDA memory of device {index}: {stats['num_ooms']} times out of memory, {stats['num_alloc_retries']} retries"
    lines = ["=" * width, title, "-" * width, f"{'':22}" + "".join(f"{h:>15}" for h in ("now", "peak", "taken", "freed"))]
    for label, name, is_bytes in rows:
        for pool, prefix in pools:
            parts = [stats[f"{name}.{pool}.{part}"] for part in ("current", "peak", "allocated", "freed")]
            lines.append(f"{prefix or label:22}" + "".join(f"{_size(n) if is_bytes else f'{n:,}':>15}" for n in parts))
    return "\n".join([*lines, "=" * width])


def _size(n):
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if n >= 10 << shift:
            return f"{n >> shift:,} {unit}"
    return f"{n:,} B"


def memory_snapshot(mempool_id=None, include_traces=True):
    """The allocator's segments and the blocks in them, as PyTorch's snapshots name them. They have no stack traces.

    >>> all(segment["total_size"] > 0 for segment in lucid.cuda.memory_snapshot())
    True
    """
    segments = {}
    for device, start, total, address, size, asked, state, small, stream, pool in _C._cuda_memory_blocks():
        segment = segments.setdefault(
            start,
            {
                "device": device,
                "address": start,
                "total_size": total,
                "allocated_size": 0,
                "active_size": 0,
                "requested_size": 0,
                "stream": stream,
                "segment_type": "small" if small else "large",
                "segment_pool_id": (0, pool),
                "is_expandable": False,
                "frames": [],
                "blocks": [],
            },
        )
        used, active = state == "active_allocated", state != "inactive"
        segment["allocated_size"] += size * used
        segment["active_size"] += size * active
        segment["requested_size"] += asked * active
        segment["blocks"].append(
            {"address": address, "size": size, "requested_size": asked * active, "state": state, "frames": []}
        )
    found = sorted(segments.values(), key=lambda s: s["address"])
    return found if mempool_id is None else [s for s in found if s["segment_pool_id"] == tuple(mempool_id)]


def set_per_process_memory_fraction(fraction, device=None):
    """This process may hold a fraction of a device's memory; more raises OutOfMemoryError.

    >>> if lucid.cuda.is_available():
    ...     lucid.cuda.set_per_process_memory_fraction(1.0)
    """
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _C._cuda_memory_limit(index_of(device), fraction)


def get_per_process_memory_fraction(device=None):
    """That fraction.

    >>> if lucid.cuda.is_available():
    ...     assert lucid.cuda.get_per_process_memory_fraction() == 1.0
    """
    return _C._cuda_memory_limit_of(index_of(device))


def host_memory_stats():
    """Page-locked host memory has no counts.

    >>> lucid.cuda.host_memory_stats()
    {}
    """
    return {}


def get_allocator_backend():
    """ "native": the engine's own allocator.

    >>> lucid.cuda.get_allocator_backend()
    'native'
    """
    return "native"


def list_gpu_processes(device=None):
    """What this process holds of a device. Other processes are seen by `nvidia-smi`.

    >>> if lucid.cuda.is_available():
    ...     assert lucid.cuda.list_gpu_processes().startswith("GPU:0")
    """
    import os

    index = index_of(device)
    return f"GPU:{index}\nprocess {os.getpid():>10d} uses {memory_reserved(index) / 2**20:>12.3f} MB GPU memory"


def caching_allocator_alloc(size, device=None, stream=None):
    """Memory of the allocator, as an address for another library; `caching_allocator_delete` gives it back.

    >>> if lucid.cuda.is_available():
    ...     lucid.cuda.caching_allocator_delete(lucid.cuda.caching_allocator_alloc(512))
    """
    from .streams import ExternalStream, StreamContext

    index = index_of(device)
    handle = 0 if stream is None else getattr(stream, "cuda_stream", stream)
    with StreamContext(None if stream is None else ExternalStream(handle, index)):
        block = _C.empty(max(int(size), 1), dtype=_C.uint8, device=_C.device("cuda", index))
    _given_out[block.data_ptr()] = block
    return block.data_ptr()


_given_out = {}


def caching_allocator_delete(mem_ptr):
    """Give back what `caching_allocator_alloc` returned.

    >>> if lucid.cuda.is_available():
    ...     lucid.cuda.caching_allocator_delete(lucid.cuda.caching_allocator_alloc(512))
    """
    if _given_out.pop(mem_ptr, None) is None:
        raise ValueError(f"caching_allocator_delete: {mem_ptr:#x} was not given out")


def caching_allocator_enable(value=True):
    """The allocator is always on; LUCID_CUDA_CACHE=0 in the environment makes every block the driver's own.

    >>> lucid.cuda.caching_allocator_enable(True)
    """
    if not value:
        raise NotImplementedError("caching_allocator_enable: set LUCID_CUDA_CACHE=0 before the process starts")


def change_current_allocator(allocator):
    """Other allocators are not supported.

    >>> lucid.cuda.change_current_allocator(None)
    Traceback (most recent call last):
    NotImplementedError: ...
    """
    raise NotImplementedError("change_current_allocator: the allocator cannot be replaced")


class MemPool:
    """A pool of memory that several graphs share: pass its `id` as their pool.

    >>> if lucid.cuda.is_available():
    ...     pool = lucid.cuda.MemPool()
    ...     graph = lucid.cuda.CUDAGraph()
    ...     with lucid.cuda.graph(graph, pool=pool.id):
    ...         x = lucid.zeros(3, device="cuda")
    """

    def __init__(self, allocator=None, use_on_oom=False, no_split=False):
        if allocator is not None or use_on_oom or no_split:
            raise NotImplementedError("MemPool: only the engine's own allocator")
        self.id = (0, _C._cuda_pool_new())

    def snapshot(self, include_traces=True):
        """The segments of the pool, as `memory_snapshot` names them."""
        return memory_snapshot(self.id)


def use_mem_pool(pool, device=None):
    """Only captured graphs have pools of their own.

    >>> lucid.cuda.use_mem_pool(None)
    Traceback (most recent call last):
    NotImplementedError: ...
    """
    raise NotImplementedError("use_mem_pool: only captured graphs allocate from pools of their own: cuda.graph(g, pool=...)")


def map_host(tensor, device=None):
    """A tensor in CPU memory as a device sees it, without a copy: both are the same memory.

    The memory is page-locked first, in place. Kernels then read and write it over the bus: right for what is read once, or too
    large for the device. Wait for the device before the CPU reads what kernels wrote.

    >>> if lucid.cuda.is_available():
    ...     x = lucid.arange(1 << 16, dtype=lucid.float32)
    ...     assert lucid.cuda.map_host(x).sum().item() == x.sum().item()
    """
    if not isinstance(tensor, _C.Tensor):
        raise TypeError(f"map_host: expected a tensor, got {type(tensor).__name__}")
    if tensor.device.type != "cpu":
        raise ValueError(f"map_host: expected a tensor in CPU memory, got one on {tensor.device}")
    if tensor.requires_grad:
        raise ValueError("map_host: the tensor requires a gradient; detach() it")
    if not tensor.is_pinned() and tensor.untyped_storage().nbytes() < 65536:
        raise ValueError(
            "map_host: memory of less than 64 KiB shares its pages with other objects; pin_memory() makes a copy that fits"
        )
    _C._cuda_register_host(tensor)
    return _C._cuda_map_host(tensor, index_of(device))


def __getattr__(name):
    if name in ("_dump_snapshot", "_record_memory_history", "_set_allocator_settings", "_snapshot"):
        from . import history

        return getattr(history, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

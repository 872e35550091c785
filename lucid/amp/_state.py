"""The switches of autocast on this thread, by device: what `autocast` sets and restores."""

from .. import _C

KINDS = {"cpu": 0, "cuda": 1, "gpu": 1}
_OTHERS = ("mps", "xpu", "hpu", "mtia", "xla", "ipu", "maia", "privateuseone")


def kind_of(device_type):
    """The engine's id of a device type that autocast supports.

    >>> lucid.amp._state.kind_of("cpu")
    0
    """
    if not isinstance(device_type, str):
        raise TypeError(f"expected a device type as str, got {type(device_type).__name__}")
    kind = KINDS.get(device_type.partition(":")[0])
    if kind is None:
        raise RuntimeError(f"unknown device type for autocast: {device_type!r}")
    return kind


def is_autocast_available(device_type):
    """Whether autocast supports this device type.

    >>> lucid.amp.is_autocast_available("cpu")
    True
    """
    return device_type in KINDS


def _set(device_type, enabled=None, dtype=None, keeps=None):
    kind = kind_of(device_type)
    now = _C._autocast_get(kind)
    given = (enabled, dtype, keeps)
    _C._autocast_set(kind, *(old if new is None else new for old, new in zip(now, given)))


def is_autocast_enabled(device_type="cuda"):
    """Whether autocast is on for a kind of device, on this thread.

    >>> with lucid.autocast("cpu"):
    ...     lucid.is_autocast_enabled("cpu")
    True
    """
    if isinstance(device_type, str) and device_type.partition(":")[0] in _OTHERS:  # named by PyTorch, not supported here
        return False
    return _C._autocast_get(kind_of(device_type))[0]


def is_any_autocast_enabled():
    """Whether autocast is on for any kind of device, on this thread.

    >>> lucid.amp._state.is_any_autocast_enabled()
    False
    """
    return any(_C._autocast_get(kind)[0] for kind in set(KINDS.values()))


def get_autocast_dtype(device_type):
    """The lower dtype that autocast uses on a kind of device.

    >>> lucid.get_autocast_dtype("cpu")
    lucid.bfloat16
    """
    return _C._autocast_get(kind_of(device_type))[1]


def set_autocast_enabled(*args):
    """Switch autocast on or off: `(device_type, enabled)`, or `(enabled)` for CUDA. `autocast` does it for a block.

    >>> lucid.set_autocast_enabled("cpu", False)
    """
    device_type, enabled = args if len(args) == 2 else ("cuda", *args)
    _set(device_type, enabled=bool(enabled))


def set_autocast_dtype(device_type, dtype):
    """Set the lower dtype that autocast uses on a kind of device.

    >>> lucid.set_autocast_dtype("cpu", lucid.bfloat16)
    """
    _set(device_type, dtype=dtype)


def is_autocast_cpu_enabled():
    """Whether autocast is on for the CPU.

    >>> lucid.is_autocast_cpu_enabled()
    False
    """
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled):
    """Switch autocast on or off for the CPU.

    >>> lucid.set_autocast_cpu_enabled(False)
    """
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype():
    """The lower dtype that autocast uses on the CPU.

    >>> lucid.get_autocast_cpu_dtype()
    lucid.bfloat16
    """
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype):
    """Set the lower dtype that autocast uses on the CPU.

    >>> lucid.set_autocast_cpu_dtype(lucid.bfloat16)
    """
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype():
    """The lower dtype that autocast uses on CUDA.

    >>> lucid.get_autocast_gpu_dtype()
    lucid.float16
    """
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype):
    """Set the lower dtype that autocast uses on CUDA.

    >>> lucid.set_autocast_gpu_dtype(lucid.float16)
    """
    set_autocast_dtype("cuda", dtype)


def is_autocast_cache_enabled():
    """Whether converted parameters are cached until the outermost `autocast` ends.

    >>> lucid.is_autocast_cache_enabled()
    True
    """
    return _C._autocast_get(0)[2]


def set_autocast_cache_enabled(enabled):
    """Cache converted parameters, or convert them at each use.

    >>> lucid.set_autocast_cache_enabled(True)
    """
    _set("cpu", keeps=bool(enabled))


def clear_autocast_cache():
    """Drop the cached conversions of parameters.

    >>> lucid.clear_autocast_cache()
    """
    _C._autocast_forget()


def autocast_increment_nesting():
    """Enter a level of autocast; returns how many there are.

    >>> lucid.autocast_increment_nesting(), lucid.autocast_decrement_nesting()
    (1, 0)
    """
    return _C._autocast_nest(True)


def autocast_decrement_nesting():
    """Leave a level of autocast; returns how many are left.

    >>> lucid.autocast_increment_nesting(), lucid.autocast_decrement_nesting()
    (1, 0)
    """
    return _C._autocast_nest(False)

"""Names of the main namespace that programs call once: PyTorch's switches and deprecated functions."""

import math

from .. import _C

_precision = "highest"
_warn_always = False


def set_float32_matmul_precision(precision):
    """Allow float32 products on a GPU to round their factors to TF32 ("high", "medium") or not ("highest").
    The CPU's products are always computed in float32.

    >>> lucid.set_float32_matmul_precision("high")
    >>> lucid.get_float32_matmul_precision()
    'high'
    >>> lucid.set_float32_matmul_precision("highest")
    """
    global _precision
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision in ("highest", "high", "medium"):
        _precision = precision
        _C._cuda_set_tf32(precision != "highest")
    else:
        from warnings import warn

        warn(f"{precision} is not one of 'highest', 'high', 'medium'; the current setting stays", stacklevel=2)


def get_float32_matmul_precision():
    """The value set by `set_float32_matmul_precision`.

    >>> lucid.get_float32_matmul_precision()
    'highest'
    """
    return _precision


def set_warn_always(b, /):
    """Set whether warnings that appear once per process should appear every time. The value is only kept: Python's filters
    decide.

    >>> lucid.set_warn_always(False)
    """
    global _warn_always
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _warn_always = b


def is_warn_always_enabled():
    """The value set by `set_warn_always`.

    >>> lucid.is_warn_always_enabled()
    False
    """
    return _warn_always


def get_device(input):  # noqa: A002 (PyTorch's name)
    """The number of the CUDA device a tensor is on; -1 on the CPU.

    >>> lucid.get_device(lucid.ones(1))
    -1
    """
    return input.get_device()


def is_distributed(input):  # noqa: A002
    """Whether a tensor's values are distributed over processes: never.

    >>> lucid.is_distributed(lucid.ones(1))
    False
    """
    return input.is_distributed()


def range(start=0, end=None, step=1, *, out=None, dtype=None, layout=_C.strided, device=None, requires_grad=False):  # noqa: A001
    """Numbers from start to end, end included. Deprecated in PyTorch in favour of `arange`, which excludes the end.

    >>> lucid.range(1, 4)
    tensor([1., 2., 3., 4.])
    """
    from warnings import warn

    if layout is not _C.strided:
        raise NotImplementedError(f"range: layout {layout} is not supported")
    warn(
        "range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range "
        "builtin. Instead, use arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    if end is None:
        raise TypeError("range() missing 1 required positional arguments: 'end'")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    dtype = (out.dtype if out is not None else None) if dtype is None else dtype
    counted = _C.arange(math.floor((end - start) / step) + 1, dtype=_C.float64, device=device)
    values = (counted * step + start).to(_C.get_default_dtype() if dtype is None else dtype)
    if out is not None:
        return out.resize_(values.shape).copy_(values)
    return values.requires_grad_() if requires_grad else values


def set_anomaly_enabled(mode, check_nan=True):
    """Switch anomaly detection on or off, as `autograd.set_detect_anomaly` does.

    >>> lucid.set_anomaly_enabled(False)
    """
    _C._set_anomaly(mode, check_nan)


def get_device_module(device=None):
    """The module of a kind of device, `lucid.cuda` or its like.

    >>> lucid.get_device_module("cuda").__name__
    'lucid.cuda'
    """
    from importlib import import_module

    kind = "cuda" if device is None else _C.device(device).type
    try:
        return import_module(f"lucid.{kind}")
    except ModuleNotFoundError:
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as 'lucid.{kind}'.") from None

"""cuDNN: whether convolutions on CUDA devices use it, and how.

`enabled = False` makes own kernels convolve; `deterministic = True` leaves cuDNN the algorithms that give the same bits in
every run; convolutions of float32 round to TF32 where both `allow_tf32` and `backends.cuda.matmul.allow_tf32` are set.
Algorithms are always chosen per shape: `benchmark` and `benchmark_limit` are kept and change nothing.

>>> lucid.backends.cudnn.deterministic
False
"""

import sys
import types

from .. import _C
from ._switch import Precision, kept

__all__ = ["flags", "is_acceptable", "is_available", "set_flags", "version"]

benchmark = False
benchmark_limit = 10
_set = {"enabled": True, "deterministic": False, "allow_tf32": True}


def _apply(name, value):
    _set[name] = bool(value)
    _C._cuda_set_conv(not _set["enabled"], _set["deterministic"], not _set["allow_tf32"])


class _Cudnn(types.ModuleType):
    """A module whose settings take effect when they are assigned."""

    enabled = property(lambda self: _set["enabled"], lambda self, value: _apply("enabled", value))
    deterministic = property(lambda self: _set["deterministic"], lambda self, value: _apply("deterministic", value))
    allow_tf32 = property(lambda self: _set["allow_tf32"], lambda self, value: _apply("allow_tf32", value))

    @property
    def fp32_precision(self):
        """`conv.fp32_precision`."""
        return conv.fp32_precision

    @fp32_precision.setter
    def fp32_precision(self, value):
        conv.fp32_precision = value


rnn = types.SimpleNamespace(fp32_precision="none")  # kept: recurrent layers multiply as backends.cuda.matmul says
conv = Precision(lambda: _set["allow_tf32"], lambda allowed: _apply("allow_tf32", allowed))


def _path():
    """Where cuDNN was found; None without it or without a device."""
    from .. import cuda

    found = _C._cuda_libraries() if cuda.is_available() else []
    return next((line.partition(": ")[2] for line in found if line.startswith("cuDNN: ")), None)


def is_available():
    """Whether there is a CUDA device and cuDNN is found.

    >>> lucid.backends.cudnn.is_available() and not lucid.cuda.is_available()
    False
    """
    return _path() is not None


def version():
    """The version of cuDNN as a number, 90100 for 9.1.0; None where it is not found.

    >>> (lucid.backends.cudnn.version() is None) == (not lucid.backends.cudnn.is_available())
    True
    """
    from ctypes import CDLL, c_size_t

    path = _path()
    if path is None:
        return None
    ask = CDLL(path).cudnnGetVersion
    ask.restype = c_size_t
    return ask()


def is_acceptable(tensor):
    """Whether cuDNN would take a tensor.

    >>> lucid.backends.cudnn.is_acceptable(lucid.ones(2))
    False
    """
    taken = (_C.float16, _C.bfloat16, _C.float32, _C.float64)
    return tensor.device.type == "cuda" and tensor.dtype in taken and _set["enabled"] and is_available()


def set_flags(_enabled=None, _benchmark=None, _benchmark_limit=None, _deterministic=None, _allow_tf32=None):
    """Set switches; returns what they were.

    >>> before = lucid.backends.cudnn.set_flags(_benchmark=True)
    >>> before == lucid.backends.cudnn.set_flags(*before)
    False
    """
    new = {
        "enabled": _enabled,
        "benchmark": _benchmark,
        "benchmark_limit": _benchmark_limit,
        "deterministic": _deterministic,
        "allow_tf32": _allow_tf32,
    }
    module = sys.modules[__name__]
    before = tuple(getattr(module, name) for name in new)
    for name, value in new.items():
        if value is not None:
            setattr(module, name, value)
    return before


def flags(enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True):
    """Switches that hold within a `with` block.

    >>> with lucid.backends.cudnn.flags(deterministic=True):
    ...     lucid.backends.cudnn.deterministic
    True
    """
    return kept(
        sys.modules[__name__],
        enabled=enabled,
        benchmark=benchmark,
        benchmark_limit=benchmark_limit,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
    )


sys.modules[__name__].__class__ = _Cudnn

"""Ranges and marks for NVIDIA's profilers. Without their library every call does nothing.

>>> with lucid.cuda.nvtx.range("step"):
...     x = lucid.ones(2)
"""

import contextlib
import ctypes
import functools
import os
import sys

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def _candidates():
    """Where libnvToolsExt is, or the library of nvtx3 that a profiler names."""
    for folder in (os.environ.get("LUCID_CUDA_PATH"), "/usr/local/cuda"):
        if folder:
            for inner in ("", "lib64", "lib"):
                yield os.path.join(folder, inner, "libnvToolsExt.so.1")
    yield "libnvToolsExt.so.1"
    for folder in sys.path:
        yield os.path.join(folder, "nvidia", "nvtx", "lib", "libnvToolsExt.so.1")


@functools.cache
def _library():
    for path in _candidates():
        if path.startswith("lib") or os.path.exists(path):
            with contextlib.suppress(OSError):
                library = ctypes.CDLL(path)
                library.nvtxRangeStartA.restype = ctypes.c_uint64
                library.nvtxRangeEnd.argtypes = [ctypes.c_uint64]
                return library
    return None


def _call(name, *args, otherwise=None):
    library = _library()
    return otherwise if library is None else getattr(library, name)(*args)


def range_push(msg):
    """Open a range that lies in the one that is open on this thread; how many were open before.

    >>> lucid.cuda.nvtx.range_push("forward") >= -2
    True
    >>> lucid.cuda.nvtx.range_pop() >= -2
    True
    """
    return _call("nvtxRangePushA", str(msg).encode(), otherwise=0)


def range_pop():
    """Close the innermost range; how many are open now.

    >>> lucid.cuda.nvtx.range_push("forward") >= lucid.cuda.nvtx.range_pop() - 1
    True
    """
    return _call("nvtxRangePop", otherwise=0)


def range_start(msg):
    """Open a range that any thread may close; its number.

    >>> lucid.cuda.nvtx.range_end(lucid.cuda.nvtx.range_start("epoch"))
    """
    return _call("nvtxRangeStartA", str(msg).encode(), otherwise=0)


def range_end(range_id):
    """Close the range of this number.

    >>> lucid.cuda.nvtx.range_end(lucid.cuda.nvtx.range_start("epoch"))
    """
    _call("nvtxRangeEnd", range_id)


def mark(msg):
    """Mark this moment.

    >>> lucid.cuda.nvtx.mark("loaded")
    """
    _call("nvtxMarkA", str(msg).encode())


@contextlib.contextmanager
def range(msg, *args, **kwargs):  # noqa: A001 (PyTorch's name)
    """A `with` block as a range, or a decorator; the message is formatted with the arguments.

    >>> with lucid.cuda.nvtx.range("batch {}", 3):
    ...     x = lucid.ones(2)
    """
    range_push(str(msg).format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()

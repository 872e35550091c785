"""Where NVIDIA's profilers begin and end to record, and what programs call of CUDA's runtime, by the driver's functions.

>>> if lucid.cuda.is_available():
...     with lucid.cuda.profiler.profile():  # nsys profile --capture-range=cudaProfilerApi
...         x = lucid.ones(2, device="cuda")
"""

import contextlib
import ctypes
import functools

from .. import _C

__all__ = ["CudaError", "check_error", "cudaStatus", "cudart", "init", "profile", "start", "stop"]


class cudaStatus:  # noqa: N801 (PyTorch's name)
    """Numbers that calls of `cudart` return.

    >>> lucid.cuda.cudaStatus.SUCCESS
    0
    """

    SUCCESS = 0
    ERROR_NOT_READY = 34


class CudaError(RuntimeError):
    """A call of `cudart` that failed, by its number.

    >>> issubclass(lucid.cuda.CudaError, RuntimeError)
    True
    """

    def __init__(self, code):
        super().__init__(f"{cudart().cudaGetErrorString(code)} ({int(code)})")


def check_error(res):
    """Raise CudaError unless a call of `cudart` succeeded.

    >>> lucid.cuda.check_error(0)
    """
    if res != cudaStatus.SUCCESS:
        raise CudaError(res)


class _Runtime:
    """The calls, each of which returns a number; the driver's are the same. They act on the current device."""

    def __init__(self, driver):
        self._driver = driver
        driver.cuMemHostRegister_v2.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint]
        driver.cuMemHostUnregister.argtypes = [ctypes.c_void_p]

    def cudaProfilerStart(self):  # noqa: N802
        return self._driver.cuProfilerStart()

    def cudaProfilerStop(self):  # noqa: N802
        return self._driver.cuProfilerStop()

    def cudaMemGetInfo(self, device):  # noqa: N802
        from .memory import mem_get_info

        return mem_get_info(device)

    def cudaHostRegister(self, address, size, flags=0):  # noqa: N802
        return self._driver.cuMemHostRegister_v2(address, size, flags)

    def cudaHostUnregister(self, address):  # noqa: N802
        return self._driver.cuMemHostUnregister(address)

    def cudaGetErrorString(self, code):  # noqa: N802
        text = ctypes.c_char_p()
        self._driver.cuGetErrorString(int(code), ctypes.byref(text))
        return text.value.decode() if text.value else "unrecognized error code"


@functools.cache
def _runtime():
    found = (line.partition(": ") for line in _C._cuda_libraries())
    return _Runtime(ctypes.CDLL(next(path for what, _, path in found if what == "the CUDA driver")))


def cudart():
    """What programs call of CUDA's runtime: the profiler's switches, page-locking, free memory. Raises without a device.

    >>> if lucid.cuda.is_available():
    ...     free, total = lucid.cuda.cudart().cudaMemGetInfo(0)
    """
    _C._cuda_open()
    return _runtime()


def start():
    """Profilers that wait for it begin to record.

    >>> if lucid.cuda.is_available():
    ...     lucid.cuda.profiler.start()
    """
    check_error(cudart().cudaProfilerStart())


def stop():
    """Profilers stop to record.

    >>> if lucid.cuda.is_available():
    ...     lucid.cuda.profiler.stop()
    """
    check_error(cudart().cudaProfilerStop())


def init(output_file, flags=None, output_mode="key_value"):
    """Refused: profilers are set up from outside, as by `nsys profile`.

    >>> lucid.cuda.profiler.init("x")
    Traceback (most recent call last):
    NotImplementedError: ...
    """
    raise NotImplementedError(
        "cuda.profiler.init: set the profiler up from outside: nsys profile --capture-range=cudaProfilerApi"
    )


@contextlib.contextmanager
def profile():
    """A block that profilers record.

    >>> if lucid.cuda.is_available():
    ...     with lucid.cuda.profiler.profile():
    ...         pass
    """
    start()
    try:
        yield
    finally:
        stop()

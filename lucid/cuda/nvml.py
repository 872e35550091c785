"""What NVIDIA's management library (libnvidia-ml, a part of the driver) knows of a device: load, temperature, power, clocks.

It is loaded at the first question; where it is missing, that raises RuntimeError.

>>> if lucid.cuda.is_available():
...     print(lucid.cuda.temperature(), "degrees")  # doctest: +SKIP
"""

import ctypes
import functools
import os

from .. import _C
from ._devices import index_of

__all__ = ["clock_rate", "memory_usage", "power_draw", "temperature", "utilization"]

_TEMPERATURE_OF_THE_CHIP, _CLOCK_OF_THE_PROCESSORS = 0, 1  # nvmlTemperatureSensors_t, nvmlClockType_t


class _Load(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


@functools.cache
def _library():
    name = "libnvidia-ml.so.1"
    for path in (os.path.join(os.environ.get("LUCID_CUDA_PATH") or "", name), name):
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        library.nvmlErrorString.restype = ctypes.c_char_p
        _checked(library, library.nvmlInit_v2())
        return library
    raise RuntimeError(f"{name}, a part of NVIDIA's driver, was not found in LUCID_CUDA_PATH or where the system looks")


def _checked(library, status):
    if status:
        raise RuntimeError(f"NVML: {library.nvmlErrorString(status).decode()}")


def _ask(name, device, *args):
    """Call a function of NVML for a device; the last argument is where it answers."""
    info = _C._cuda_info(index_of(device))  # raises where there is no device
    library = _library()
    place = f"{info['pci_domain_id']:08x}:{info['pci_bus_id']:02x}:{info['pci_device_id']:02x}.0"
    handle = ctypes.c_void_p()
    _checked(library, library.nvmlDeviceGetHandleByPciBusId_v2(place.encode(), ctypes.byref(handle)))
    _checked(library, getattr(library, name)(handle, *args[:-1], ctypes.byref(args[-1])))
    return args[-1]


def utilization(device=None):
    """The percentage of the last sample period in which kernels ran.

    >>> lucid.cuda.utilization()  # doctest: +SKIP
    """
    return _ask("nvmlDeviceGetUtilizationRates", device, _Load()).gpu


def memory_usage(device=None):
    """The percentage of the last sample period in which device memory was read or written.

    >>> lucid.cuda.memory_usage()  # doctest: +SKIP
    """
    return _ask("nvmlDeviceGetUtilizationRates", device, _Load()).memory


def temperature(device=None):
    """The temperature of the chip in degrees Celsius.

    >>> lucid.cuda.temperature()  # doctest: +SKIP
    """
    return _ask("nvmlDeviceGetTemperature", device, _TEMPERATURE_OF_THE_CHIP, ctypes.c_uint()).value


def power_draw(device=None):
    """What the device draws, in milliwatts.

    >>> lucid.cuda.power_draw()  # doctest: +SKIP
    """
    return _ask("nvmlDeviceGetPowerUsage", device, ctypes.c_uint()).value


def clock_rate(device=None):
    """The present clock of the device's processors, in MHz.

    >>> lucid.cuda.clock_rate()  # doctest: +SKIP
    """
    return _ask("nvmlDeviceGetClockInfo", device, _CLOCK_OF_THE_PROCESSORS, ctypes.c_uint()).value

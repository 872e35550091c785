"""Names of kernels. Those of C++ come mangled from the driver; the C++ runtime of the system, if there is one, undoes that."""

import ctypes
import functools

__all__ = ["demangled"]


@functools.cache
def _demangler():
    try:
        library = ctypes.CDLL("libstdc++.so.6")
        demangle, free = library.__cxa_demangle, library.free
    except (OSError, AttributeError):
        return None
    demangle.restype, demangle.argtypes = ctypes.c_void_p, [ctypes.c_char_p] + 3 * [ctypes.c_void_p]
    free.restype, free.argtypes = None, [ctypes.c_void_p]
    return demangle, free


@functools.lru_cache(1024)
def demangled(name):
    """A C++ function's name as it is written, or the name as it is.

    >>> from lucid.profiler._names import demangled
    >>> demangled("scale"), demangled("_Z5scaleIfEvPfi") in ("void scale<float>(float*, int)", "_Z5scaleIfEvPfi")
    ('scale', True)
    """
    functions = _demangler() if name.startswith("_Z") else None
    if functions is None:
        return name
    demangle, free = functions
    text = demangle(name.encode(), None, None, None)
    if not text:
        return name
    written = ctypes.string_at(text).decode(errors="replace")
    free(text)
    return written

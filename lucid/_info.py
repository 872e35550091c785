"""The limits of number types: `finfo` and `iinfo`."""

from . import _C

_FLOATS = {  # name: mantissa bits, largest exponent, decimal digits of precision
    "float16": (10, 15, 3),
    "bfloat16": (7, 127, 2),
    "float32": (23, 127, 6),
    "float64": (52, 1023, 15),
    "float8_e5m2": (2, 15, 0),
}
_BYTES = {  # floats of one byte that use their codes otherwise: spacing at 1, largest, smallest normal number
    "float8_e4m3fn": (2.0**-3, 448.0, 2.0**-6),
    "float8_e4m3fnuz": (2.0**-3, 240.0, 2.0**-7),
    "float8_e5m2fnuz": (2.0**-3, 57344.0, 2.0**-15),  # PyTorch's spacing; numbers above 1 are 1/4 apart
    "float8_e8m0fnu": (1.0, 2.0**127, 2.0**-127),
}
_PART_OF = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_INTEGERS = {"uint8": 8, "int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32, "uint64": 64}


def _name(dtype):
    return str(dtype).rsplit(".", 1)[-1]


class _Limits:
    def __eq__(self, other):
        return type(self) is type(other) and self.dtype == other.dtype

    def __hash__(self):
        return hash((type(self), self.dtype))


class finfo(_Limits):
    """Limits of a floating point type (by default the default type); of its parts for a complex one.

    >>> lucid.finfo(lucid.float16).max
    65504.0
    >>> lucid.finfo(lucid.float32).eps == 2.0**-23
    True
    """

    def __init__(self, type=None):  # noqa: A002 (PyTorch's name)
        name = _name(_C.get_default_dtype() if type is None else type)
        self.dtype = _PART_OF.get(name, name)
        if self.dtype in _BYTES:
            self.eps, self.max, self.tiny = _BYTES[self.dtype]
            digits = 0
        elif self.dtype in _FLOATS:
            mantissa, exponent, digits = _FLOATS[self.dtype]
            self.eps = 2.0**-mantissa
            self.max = (2.0 - self.eps) * 2.0**exponent
            self.tiny = 2.0 ** (1 - exponent)
        else:
            raise TypeError(f"lucid.finfo() requires a floating point input type. Use lucid.iinfo to handle {type}")
        self.bits = 8 * getattr(_C, self.dtype).itemsize
        self.smallest_normal = self.tiny
        self.min = self.tiny if self.dtype == "float8_e8m0fnu" else -self.max  # that one has no sign
        self.resolution = float(f"1e-{digits}")

    def __repr__(self):
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return "finfo(" + "".join(f"{n}={getattr(self, n):g}, " for n in names) + f"dtype={self.dtype})"


class iinfo(_Limits):
    """Limits of an integer type.

    >>> lucid.iinfo(lucid.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    def __init__(self, type):  # noqa: A002 (PyTorch's name)
        self.dtype = _name(type)
        if self.dtype == "bool":
            raise TypeError("lucid.bool is not supported by lucid.iinfo")
        if self.dtype not in _INTEGERS:
            raise TypeError(f"lucid.iinfo() requires an integer input type. Use lucid.finfo to handle {type}")
        self.bits = _INTEGERS[self.dtype]
        unsigned = self.dtype[0] == "u"
        self.min = 0 if unsigned else -(1 << (self.bits - 1))
        self.max = (1 << (self.bits - (not unsigned))) - 1

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

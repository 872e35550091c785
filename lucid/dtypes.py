"""The dtypes.

>>> lucid.dtypes.float32 is lucid.float32
True
"""

from . import (
    bfloat16,
    bool,  # noqa: A004
    bool_,
    complex64,
    complex128,
    double,
    dtype,
    float,  # noqa: A004
    float16,
    float32,
    float64,
    half,
    int,  # noqa: A004
    int8,
    int16,
    int32,
    int64,
    long,
    short,
    uint8,
)

__all__ = [
    "bfloat16",
    "bool",
    "bool_",
    "complex64",
    "complex128",
    "double",
    "dtype",
    "float",
    "float16",
    "float32",
    "float64",
    "half",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "long",
    "short",
    "uint8",
]

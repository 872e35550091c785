"""The CPU.

>>> lucid.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
True
"""

from .._C import _isa

__all__ = ["get_cpu_capability"]


def get_cpu_capability():
    """The instruction set the kernels use, by PyTorch's names.

    >>> isinstance(lucid.backends.cpu.get_cpu_capability(), str)
    True
    """
    return {"avx2": "AVX2", "avx512": "AVX512"}.get(_isa(), "DEFAULT")

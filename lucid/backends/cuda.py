"""PyTorch's settings for CUDA devices. `matmul.allow_tf32` chooses the precision of float32 products; the others are kept.

>>> lucid.backends.cuda.matmul.allow_tf32 = True
>>> lucid.backends.cuda.matmul.allow_tf32
True
>>> lucid.backends.cuda.matmul.allow_tf32 = False
"""

import sys

from .. import cuda
from .._namespace import switches
from ._switch import kept

__all__ = [
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "sdp_kernel",
]


class _Matmul:
    """Precision of matrix products on CUDA devices; other names are refused."""

    __slots__ = (
        "allow_bf16_reduced_precision_reduction",
        "allow_fp16_accumulation",
        "allow_fp16_reduced_precision_reduction",
    )

    def __init__(self):
        self.allow_fp16_accumulation = False
        self.allow_fp16_reduced_precision_reduction = self.allow_bf16_reduced_precision_reduction = True

    @property
    def allow_tf32(self):
        """Whether float32 products may round their factors to TF32: `set_float32_matmul_precision`."""
        return switches.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed):
        switches.set_float32_matmul_precision("high" if allowed else "highest")


matmul = _Matmul()
_flash = _efficient = _math = _cudnn = True


def is_built():
    """Whether this build can use CUDA devices; `cuda.is_available` says whether there is one.

    >>> lucid.backends.cuda.is_built() or not lucid.cuda.is_available()
    True
    """
    return cuda.is_available()


def _switch(name, variable):
    def enabled():
        return globals()[variable]

    def enable(enabled):
        globals()[variable] = bool(enabled)

    for function, called, what in (
        (enabled, f"{name}_sdp_enabled", "Whether a kind of attention may be used on CUDA devices: what it was told."),
        (enable, f"enable_{name}_sdp", "Keep whether a kind of attention may be used on CUDA devices."),
    ):
        function.__name__ = function.__qualname__ = called
        function.__doc__ = f"""{what}

    >>> lucid.backends.cuda.enable_{name}_sdp(True)
    >>> lucid.backends.cuda.{name}_sdp_enabled()
    True
    """
    return enabled, enable


flash_sdp_enabled, enable_flash_sdp = _switch("flash", "_flash")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _switch("mem_efficient", "_efficient")
math_sdp_enabled, enable_math_sdp = _switch("math", "_math")
cudnn_sdp_enabled, enable_cudnn_sdp = _switch("cudnn", "_cudnn")


def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """Kinds of attention on CUDA devices, for a `with` block. On the CPU there is one, which is always used.

    >>> with lucid.backends.cuda.sdp_kernel(enable_flash=False):
    ...     lucid.backends.cuda.flash_sdp_enabled()
    False
    """
    return kept(
        sys.modules[__name__], _flash=enable_flash, _math=enable_math, _efficient=enable_mem_efficient, _cudnn=enable_cudnn
    )

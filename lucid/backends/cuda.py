"""PyTorch's settings for CUDA devices. `matmul.allow_tf32` chooses the precision of float32 products; the others are kept.

>>> lucid.backends.cuda.matmul.allow_tf32 = True
>>> lucid.backends.cuda.matmul.allow_tf32
True
>>> lucid.backends.cuda.matmul.allow_tf32 = False
"""

import sys

from .. import _C, cuda
from .._namespace import switches
from ._switch import Precision, kept

__all__ = [
    "allow_fp16_bf16_reduction_math_sdp",
    "cudnn_sdp_enabled",
    "cufft_plan_cache",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "fp16_bf16_reduction_math_sdp_allowed",
    "is_built",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "preferred_blas_library",
    "preferred_linalg_library",
    "sdp_kernel",
]


class _Matmul(Precision):
    """Precision of matrix products on CUDA devices; other names are refused."""

    __slots__ = (
        "allow_bf16_reduced_precision_reduction",
        "allow_fp16_accumulation",
        "allow_fp16_reduced_precision_reduction",
    )

    def __init__(self):
        super().__init__(lambda: self.allow_tf32, lambda allowed: type(self).allow_tf32.fset(self, allowed))
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


def allow_fp16_bf16_reduction_math_sdp(enabled):
    """Keep whether attention by products may add in half precision. It adds in float32.

    >>> lucid.backends.cuda.allow_fp16_bf16_reduction_math_sdp(False)
    """
    global _reduced
    _reduced = bool(enabled)


def fp16_bf16_reduction_math_sdp_allowed():
    """What `allow_fp16_bf16_reduction_math_sdp` was told.

    >>> lucid.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    False
    """
    return _reduced


_reduced = False
_libraries = {"linalg": "default", "blas": "default"}


def _preferred(kind, known, backend):
    if backend is not None:
        if backend not in known:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(known)}.")
        _libraries[kind] = backend
    return _libraries[kind]


def preferred_linalg_library(backend=None):
    """The library that was named for factorisations: it is kept. cuSOLVER or own kernels work, by the size of the matrices.

    >>> lucid.backends.cuda.preferred_linalg_library()
    'default'
    """
    return _preferred("linalg", ("default", "cusolver", "magma"), backend)


def preferred_blas_library(backend=None):
    """The library that was named for products: it is kept. cuBLASLt, cuBLAS or own kernels multiply, by shape.

    >>> lucid.backends.cuda.preferred_blas_library()
    'default'
    """
    return _preferred("blas", ("default", "cublas", "cublaslt", "ck"), backend)


class _Plans:
    """The plans of Fourier transforms that are kept; `[device]` is the same for one device."""

    max_size = 4096

    def clear(self):
        """Drop them."""
        _C._clear_cache()

    def __getitem__(self, device):
        return self


cufft_plan_cache = _Plans()


def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """Kinds of attention on CUDA devices, for a `with` block. On the CPU there is one, which is always used.

    >>> with lucid.backends.cuda.sdp_kernel(enable_flash=False):
    ...     lucid.backends.cuda.flash_sdp_enabled()
    False
    """
    return kept(
        sys.modules[__name__], _flash=enable_flash, _math=enable_math, _efficient=enable_mem_efficient, _cudnn=enable_cudnn
    )

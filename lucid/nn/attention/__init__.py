"""Which kernels attention may use. On the CPU there is one, for every call, which neither keeps nor forms the matrix of scores.

>>> from lucid.nn.attention import SDPBackend, sdpa_kernel
>>> q = lucid.ones(1, 2, 4)
>>> with sdpa_kernel(SDPBackend.MATH):
...     lucid.nn.functional.scaled_dot_product_attention(q, q, q).shape
lucid.Size([1, 2, 4])
"""

from contextlib import contextmanager
from enum import IntEnum

from ...backends import cuda
from ...backends._switch import kept

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(IntEnum):
    """Kinds of kernels, by PyTorch's names.

    >>> lucid.nn.attention.SDPBackend.FLASH_ATTENTION.name
    'FLASH_ATTENTION'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_SWITCHES = {
    "_flash": SDPBackend.FLASH_ATTENTION,
    "_efficient": SDPBackend.EFFICIENT_ATTENTION,
    "_math": SDPBackend.MATH,
    "_cudnn": SDPBackend.CUDNN_ATTENTION,
}


@contextmanager
def sdpa_kernel(backends, set_priority=False):
    """In the block attention may use these kernels only. The CPU's is taken for MATH and for FLASH_ATTENTION, as PyTorch has
    both there; a list with neither raises, as its calls do.

    >>> with lucid.nn.attention.sdpa_kernel([lucid.nn.attention.SDPBackend.FLASH_ATTENTION]):
    ...     lucid.backends.cuda.math_sdp_enabled()
    False
    """
    backends = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(backends, (list, tuple)) or not all(isinstance(b, SDPBackend) for b in backends):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    if not {SDPBackend.MATH, SDPBackend.FLASH_ATTENTION} & set(backends):
        raise RuntimeError(f"sdpa_kernel: no kernel of {[b.name for b in backends]} on the CPU")
    with kept(cuda, **{name: backend in backends for name, backend in _SWITCHES.items()}):
        yield


def __getattr__(name):
    if name in ("bias", "flex_attention"):
        from importlib import import_module

        return import_module(f"lucid.nn.attention.{name}")
    raise AttributeError(f"module 'lucid.nn.attention' has no attribute {name!r}")

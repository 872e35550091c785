"""Mixed precision by its deprecated names, which imply CUDA.

>>> lucid.cuda.amp.GradScaler(enabled=False).get_scale()
1.0
"""

from ... import amp
from ..._C import float16

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """`amp.autocast("cuda", ...)`.

    >>> with lucid.cuda.amp.autocast(enabled=False):
    ...     lucid.ones(2).dtype
    lucid.float32
    """

    def __init__(self, enabled=True, dtype=float16, cache_enabled=True):
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`amp.GradScaler("cuda", ...)`.

    >>> lucid.cuda.amp.GradScaler(enabled=False).is_enabled()
    False
    """

    def __init__(self, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """`amp.custom_fwd` for CUDA devices.

    >>> callable(lucid.cuda.amp.custom_fwd(lambda ctx, x: x))
    True
    """
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    """`amp.custom_bwd` for CUDA devices.

    >>> callable(lucid.cuda.amp.custom_bwd(lambda ctx, g: g))
    True
    """
    return amp.custom_bwd(bwd, device_type="cuda")

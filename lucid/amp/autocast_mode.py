"""`autocast`, and decorators for forward and backward of an `autograd.Function` that is used inside it."""

import functools
from collections.abc import Iterable, Mapping

from .. import _C
from ..autograd.grad_mode import _Switch
from ._state import KINDS, is_autocast_available, kind_of

_LOWER = (_C.bfloat16, _C.float16)


class autocast(_Switch):
    """Inside the block, on this thread, autocast chooses the dtype of ops: products and convolutions compute in `dtype`
    (bfloat16 on the CPU), losses and other sums that need it in float32, everything else in the dtype of its inputs.

    device_type: "cpu" or "cuda"; dtype: bfloat16 or float16; enabled: False makes a region inside another one compute as
    usual; cache_enabled: keep converted parameters until the outermost block ends. It also decorates functions.

    >>> weight = lucid.ones(2, 2, requires_grad=True)
    >>> with lucid.autocast("cpu"):
    ...     product = weight @ weight
    ...     with lucid.autocast("cpu", enabled=False):
    ...         exact = weight @ weight
    >>> product.dtype, exact.dtype
    (lucid.bfloat16, lucid.float32)
    >>> product.sum().backward()
    >>> weight.grad.dtype
    lucid.float32
    """

    __slots__ = ("_cache_enabled", "_enabled", "_kind", "device", "fast_dtype")

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device, self._kind = device_type, kind_of(device_type)
        _, lower, keeps = _C._autocast_get(self._kind)
        self.fast_dtype = lower if dtype is None else dtype
        self._cache_enabled = keeps if cache_enabled is None else cache_enabled
        self._enabled = bool(enabled) and self._possible()
        self._before = []

    def _possible(self):
        import warnings

        if self._kind == 1:
            from .. import cuda

            if not cuda.is_available():
                warnings.warn("CUDA is not available. Disabling autocast.", stacklevel=3)
                return False
        if self.fast_dtype not in _LOWER:
            name = self.device.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of {', '.join(map(str, _LOWER))} currently.",
                stacklevel=3,
            )
            return False
        return True

    def __enter__(self):
        self._before.append(_C._autocast_get(self._kind))
        _C._autocast_nest(True)
        _C._autocast_set(self._kind, self._enabled, self.fast_dtype, self._cache_enabled)
        return self

    def __exit__(self, *error):
        if _C._autocast_nest(False) == 0:
            _C._autocast_forget()
        _C._autocast_set(self._kind, *self._before.pop())

    def __call__(self, function):
        if not callable(function):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(function).__name__}. Did you mean to use autocast as a "
                "context manager? For example:\n    with lucid.autocast(device_type=...):\n        output = model(input)"
            )
        return super().__call__(function)

    def clone(self):
        """A fresh switch of the same setting."""
        return type(self)(self.device, self.fast_dtype, self._enabled, self._cache_enabled)


def _cast(value, kind, dtype):
    """Convert floating tensors of a device type to dtype, in nested containers; float64 stays."""
    if isinstance(value, _C.Tensor):
        concerned = value.is_floating_point() and KINDS.get(value.device.type) == kind and value.dtype is not _C.float64
        return value.to(dtype) if concerned else value
    if isinstance(value, (str, bytes)) or type(value).__module__ == "numpy":
        return value
    if isinstance(value, Mapping):
        return {_cast(k, kind, dtype): _cast(v, kind, dtype) for k, v in value.items()}
    if isinstance(value, Iterable):
        made = (_cast(v, kind, dtype) for v in value)
        return type(value)(made) if isinstance(value, (list, tuple)) else made
    return value


def _check_type(device_type):
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorate `forward` of an `autograd.Function` for use inside `autocast`. cast_inputs: floating inputs are converted to
    this dtype, and autocast is off inside `forward`; without it `forward` runs under autocast.

    >>> class Product(lucid.autograd.Function):
    ...     @staticmethod
    ...     @lucid.amp.custom_fwd(device_type="cpu", cast_inputs=lucid.float32)
    ...     def forward(ctx, a, b):
    ...         ctx.save_for_backward(a, b)
    ...         return a @ b
    ...     @staticmethod
    ...     @lucid.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         a, b = ctx.saved_tensors
    ...         return grad @ b.T, a.T @ grad
    >>> with lucid.autocast("cpu"):
    ...     Product.apply(lucid.ones(2, 2), lucid.ones(2, 2)).dtype
    lucid.float32
    """
    _check_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args, **kwargs):
        kind = kind_of(device_type)
        on, args[0]._dtype, _ = _C._autocast_get(kind)
        args[0]._fwd_used_autocast = on and cast_inputs is None
        if cast_inputs is None or not on:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, kind, cast_inputs), **_cast(kwargs, kind, cast_inputs))

    return forward


def custom_bwd(bwd=None, *, device_type):
    """Decorate `backward` of an `autograd.Function`: it runs with the autocast state of `forward`, which `custom_fwd`
    decorates.

    >>> class Double(lucid.autograd.Function):
    ...     @staticmethod
    ...     @lucid.amp.custom_fwd(device_type="cpu")
    ...     def forward(ctx, a):
    ...         return a * 2
    ...     @staticmethod
    ...     @lucid.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> a = lucid.ones(1, requires_grad=True)
    >>> Double.apply(a).backward()
    >>> a.grad
    tensor([2.])
    """
    _check_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return backward


__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

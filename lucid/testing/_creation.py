"""Tensors of random values for tests."""

import math
import warnings

from .. import _C
from .._info import finfo, iinfo


def _interval(low, high, default, lowest, highest, dtype):
    low, high = (d if given is None else given for given, d in zip((low, high), default, strict=True))
    if low != low or high != high:
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and (dtype.is_floating_point or dtype.is_complex):
        warnings.warn(
            "Passing `low==high` to `lucid.testing.make_tensor` for floating or complex types is deprecated. "
            "Use `lucid.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < lowest or low >= highest:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{lowest}, {highest})"
        )
    return min(max(low, lowest), highest), min(max(high, lowest), highest)


def _uniform(shape, low, high, dtype, device):
    drawn = _C.rand(shape, dtype=dtype, device=device)
    if high - low >= finfo(dtype).max:  # the span itself would overflow
        return (drawn * (high / 2 - low / 2) + low / 2) * 2
    return drawn * (high - low) + low


def _values(shape, low, high, dtype, device):
    if dtype.is_floating_point or dtype.is_complex:
        limits = finfo(dtype)
        low, high = _interval(low, high, (-9, 9), limits.min, limits.max, dtype)
        if dtype.is_floating_point:
            return _uniform(shape, low, high, dtype, device)
        part = getattr(_C, limits.dtype)
        real, imag = (_uniform(shape, low, high, part, device).to(dtype) for _ in range(2))
        return real + imag * 1j
    if dtype == _C.bool:
        low, high = _interval(low, high, (0, 2), 0, 2, dtype)
    else:
        limits = iinfo(dtype)
        highest = limits.max + (dtype != _C.int64)  # randint's upper end is exclusive, and an int64 itself
        low, high = _interval(low, high, (-9, 10), limits.min, highest, dtype)
    return _C.randint(math.ceil(low), math.ceil(high), shape, device=device).to(dtype)


def make_tensor(
    *shape,
    dtype,
    device,
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    """A tensor of uniform random values from [low, high): by default [-9, 9), clamped to the range of the dtype.

    >>> t = lucid.testing.make_tensor(2, 3, dtype=lucid.float64, device="cpu", low=0, high=1)
    >>> t.shape, bool((t >= 0).all()), bool((t < 1).all())
    (lucid.Size([2, 3]), True, True)
    """
    shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else tuple(shape)
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got {noncontiguous=} and {memory_format=}"
        )
    real = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not real:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    if noncontiguous and math.prod(shape) > 1:
        t = _values((*shape[:-1], 2 * shape[-1]), low, high, dtype, device)[..., 1::2]
    else:
        t = _values(shape, low, high, dtype, device)
        t = t if memory_format is None else t.clone(memory_format=memory_format)
    if exclude_zero:
        tiny = finfo(dtype).tiny if real else 1
        t[t == 0] = complex(tiny, tiny) if dtype.is_complex else tiny
    return t.requires_grad_(requires_grad) if real else t

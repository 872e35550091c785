"""Reductions and normalisations over the elements that a mask keeps, by the names of PyTorch's `torch.masked`.

>>> import lucid
>>> x = lucid.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
>>> mask = lucid.tensor([[True, False, True], [False, False, False]])
>>> lucid.masked.sum(x, 1, mask=mask)
tensor([4., 0.])
>>> lucid.masked.mean(x, 1, mask=mask)
tensor([2., nan])

All functions take `mask`, a tensor of bool that is broadcast to the input: True keeps an element. A dropped element is
replaced by the identity of the reduction (0 in a sum, -inf in a maximum), so a reduction over nothing gives that; `mean`,
`median`, `var` and `std` of nothing are NaN. `dtype` is the dtype of the result. Tensors that carry a mask of their own
(`MaskedTensor`) are not implemented.
"""

import math

from . import _C, _info, linalg

__all__ = [
    "MaskedTensor",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "as_masked_tensor",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "masked_tensor",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]


def _lowest(input):  # noqa: A002 (PyTorch's names)
    if input.dtype.is_floating_point or input.dtype.is_complex:
        return -math.inf
    return False if input.dtype == _C.bool else _info.iinfo(input.dtype).min


def _highest(input):  # noqa: A002
    if input.dtype.is_floating_point or input.dtype.is_complex:
        return math.inf
    return True if input.dtype == _C.bool else _info.iinfo(input.dtype).max


def _own_mask(input, mask):  # noqa: A002
    """The mask as bool and in the shape of the input."""
    if mask.ndim > input.ndim:
        raise IndexError(
            f"expected a mask that can be broadcast to the input: it has {mask.ndim} dimensions, the input {input.ndim}"
        )
    return mask.to(_C.bool).broadcast_to(input.shape)


def _kept(input, mask, identity):  # noqa: A002
    """The input with `identity` (a number, or a function of the input) where the mask says False."""
    if mask is None:
        return input
    value = identity(input) if callable(identity) else identity
    return _C.where(_own_mask(input, mask), input, _C.tensor(value, dtype=input.dtype, device=input.device))


def _dims(dim, ndim):
    """Every dimension that dim means, in order: all of them for None or ()."""
    given = range(ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    given = range(ndim) if not len(given) else given
    found = set()
    for d in given:
        if not -max(ndim, 1) <= d < max(ndim, 1):
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-max(ndim, 1)}, {max(ndim, 1) - 1}], but got {d})"
            )
        if d % max(ndim, 1) in found:
            raise RuntimeError(f"dim={d % max(ndim, 1)} appears multiple times in the list of dims")
        found.add(d % max(ndim, 1))
    return tuple(sorted(found))


def _counted(dtype):
    """What integers are summed in."""
    return dtype if dtype.is_floating_point or dtype.is_complex else _C.int64


def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):  # noqa: A001, A002
    """The sum of the kept elements over dim; 0 where there are none.

    >>> lucid.masked.sum(lucid.tensor([1, 2, 3]), mask=lucid.tensor([True, False, True]))
    tensor(4)
    """
    dtype = _counted(input.dtype) if dtype is None else dtype
    kept = _kept(input, mask, 0)
    return kept.sum(dtype=dtype) if input.ndim == 0 else kept.sum(_dims(dim, input.ndim), bool(keepdim), dtype=dtype)


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):  # noqa: A002
    """The product of the kept elements over dim; 1 where there are none.

    >>> lucid.masked.prod(lucid.tensor([2.0, 3.0, 4.0]), mask=lucid.tensor([True, False, True]))
    tensor(8.)
    """
    dtype = _counted(input.dtype) if dtype is None else dtype
    result = _kept(input, mask, 1)
    for d in reversed(_dims(dim, input.ndim)):  # prod takes one dimension
        result = result.prod(d, bool(keepdim))
    return result.to(dtype)


def cumsum(input, dim, *, dtype=None, mask=None):  # noqa: A002
    """Sums of the kept elements up to each place along dim.

    >>> lucid.masked.cumsum(lucid.tensor([1.0, 2.0, 3.0]), 0, mask=lucid.tensor([True, False, True]))
    tensor([1., 1., 4.])
    """
    dtype = input.dtype if dtype is None else dtype
    return _kept(input, mask, 0).cumsum(_dims(dim, input.ndim)[0], dtype=dtype).to(dtype)


def cumprod(input, dim, *, dtype=None, mask=None):  # noqa: A002
    """Products of the kept elements up to each place along dim.

    >>> lucid.masked.cumprod(lucid.tensor([2.0, 3.0, 4.0]), 0, mask=lucid.tensor([True, False, True]))
    tensor([2., 2., 8.])
    """
    dtype = input.dtype if dtype is None else dtype
    return _kept(input, mask, 1).cumprod(_dims(dim, input.ndim)[0], dtype=dtype).to(dtype)


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):  # noqa: A002
    """The largest kept element over dim; -inf, or the lowest integer, where there is none.

    >>> lucid.masked.amax(lucid.tensor([1.0, 9.0, 3.0]), mask=lucid.tensor([True, False, True]))
    tensor(3.)
    """
    result = _kept(input, mask, _lowest).amax(_dims(dim, input.ndim), bool(keepdim))
    return result if dtype is None else result.to(dtype)


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):  # noqa: A002
    """The smallest kept element over dim; inf, or the highest integer, where there is none.

    >>> lucid.masked.amin(lucid.tensor([1.0, 0.0, 3.0]), mask=lucid.tensor([True, False, True]))
    tensor(1.)
    """
    result = _kept(input, mask, _highest).amin(_dims(dim, input.ndim), bool(keepdim))
    return result if dtype is None else result.to(dtype)


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):  # noqa: A002
    """Where the largest kept element is, in the dtype of the input unless dtype says otherwise.

    >>> lucid.masked.argmax(lucid.tensor([1.0, 9.0, 3.0]), dtype=lucid.int64, mask=lucid.tensor([True, False, True]))
    tensor(2)
    """
    return _kept(input, mask, _lowest).argmax(dim, bool(keepdim)).to(input.dtype if dtype is None else dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):  # noqa: A002
    """Where the smallest kept element is, in the dtype of the input unless dtype says otherwise.

    >>> lucid.masked.argmin(lucid.tensor([1.0, 0.0, 3.0]), dtype=lucid.int64, mask=lucid.tensor([True, False, True]))
    tensor(0)
    """
    return _kept(input, mask, _highest).argmin(dim, bool(keepdim)).to(input.dtype if dtype is None else dtype)


def _number_kept(input, dim, mask, keepdim):  # noqa: A002
    mask = _C.ones(input.shape, dtype=_C.bool, device=input.device) if mask is None else _own_mask(input, mask)
    return mask.to(_C.int64) if input.ndim == 0 else mask.sum(_dims(dim, input.ndim), keepdim)


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):  # noqa: A002
    """The mean of the kept elements over dim; NaN where there are none.

    >>> lucid.masked.mean(lucid.tensor([1.0, 9.0, 3.0]), mask=lucid.tensor([True, False, True]))
    tensor(2.)
    """
    which, dtype = ("Input", input.dtype) if dtype is None else ("Optional", dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {which} dtype must be either a floating point or complex dtype. "
            f"Got: {dtype}"
        )
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / _number_kept(input, dim, mask, bool(keepdim))


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):  # noqa: A002
    """The median of the kept elements along dim; NaN where there are none, which integers refuse.

    >>> lucid.masked.median(lucid.tensor([1.0, 9.0, 3.0]), 0, mask=lucid.tensor([True, False, True]))
    tensor(1.)
    """
    floating = input.dtype.is_floating_point
    values = input if floating else input.to(_C.float32)
    result = _kept(values, mask, math.nan).nanmedian(_dims(dim, input.ndim)[0], keepdim).values
    if floating:
        return result
    if result.isnan().any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return result.to(input.dtype if dtype is None else dtype)


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):  # noqa: A002
    """The norm of the kept elements over dim; 0 where there are none, inf for ord=-inf.

    >>> lucid.masked.norm(lucid.tensor([3.0, 9.0, 4.0]), 2.0, mask=lucid.tensor([True, False, True]))
    tensor(5.)
    """
    kept = _kept(input, mask, math.inf if ord == -math.inf else 0)
    dtype = input.dtype if dtype is None else dtype
    return linalg.vector_norm(kept, ord, _dims(dim, input.ndim), bool(keepdim), dtype=dtype)


def _variance(input, dim, unbiased, correction, keepdim, dtype, mask):  # noqa: A002
    """The variance and the dtype it is wanted in."""
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    correction = float(unbiased is None or unbiased) if correction is None else float(correction)
    inexact = input.dtype.is_floating_point or input.dtype.is_complex
    dtype = dtype if dtype is not None else input.dtype if inexact else _C.float32
    computed = dtype if dtype.is_floating_point or dtype.is_complex else _C.float32
    count = _number_kept(input, dim, mask, True)
    distance = input - sum(input, dim, keepdim=True, dtype=dtype, mask=mask) / count
    total = sum(distance * distance.conj(), dim, keepdim=keepdim, dtype=computed, mask=mask)
    real = total.real.dtype if computed.is_complex else computed
    count = count.reshape(total.shape).to(real) if correction else count.reshape(total.shape)
    left = _C.maximum(count - correction, count.new_zeros([])) if correction else count
    return total / left, dtype


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):  # noqa: A002
    """The variance of the kept elements over dim, divided by their number less `correction` (1); NaN where there are none.

    >>> lucid.masked.var(lucid.tensor([1.0, 9.0, 3.0]), mask=lucid.tensor([True, False, True]))
    tensor(2.)
    """
    result, dtype = _variance(input, dim, unbiased, correction, bool(keepdim), dtype, mask)
    return result.to(dtype)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):  # noqa: A002
    """The standard deviation of the kept elements over dim: the root of `var`.

    >>> lucid.masked.std(lucid.tensor([1.0, 9.0, 5.0]), unbiased=False, mask=lucid.tensor([True, False, True]))
    tensor(2.)
    """
    result, dtype = _variance(input, dim, unbiased, correction, bool(keepdim), dtype, mask)
    return result.sqrt().to(dtype)


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):  # noqa: A002
    """The logarithm of the sum of the exponentials of the kept elements over dim; -inf where there are none.

    >>> lucid.masked.logsumexp(lucid.tensor([0.0, 9.0, 0.0]), 0, mask=lucid.tensor([True, False, True]))
    tensor(0.6931)
    """
    values = _kept(input, mask, _lowest)
    values = (
        values.to(_C.promote_types(values.dtype, _C.float32)) if values.dtype.is_floating_point else values
    )  # not in halves
    return values.logsumexp(_dims(dim, input.ndim), keepdim).to(input.dtype if dtype is None else dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):  # noqa: A002
    """The logarithm of exp(input) + exp(other), elementwise and without the dropped elements of either.

    >>> lucid.masked.logaddexp(lucid.zeros(2), lucid.zeros(2), input_mask=lucid.tensor([True, False]))
    tensor([0.6931, 0.0000])
    """
    result = _C.logaddexp(_kept(input, input_mask, _lowest), _kept(other, other_mask, _lowest))
    return result.to(input.dtype if dtype is None else dtype)


def softmax(input, dim, *, dtype=None, mask=None):  # noqa: A002
    """The softmax of the kept elements along dim; the others are 0. NaN where none is kept.

    >>> lucid.masked.softmax(lucid.tensor([0.0, 9.0, 0.0]), 0, mask=lucid.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    dtype = input.dtype if dtype is None else dtype
    return _kept(input, mask, _lowest).softmax(_dims(dim, input.ndim)[0], dtype=dtype)


def log_softmax(input, dim, *, dtype=None, mask=None):  # noqa: A002
    """The logarithm of `softmax`; the dropped elements are -inf.

    >>> lucid.masked.log_softmax(lucid.tensor([0.0, 9.0, 0.0]), 0, mask=lucid.tensor([True, False, True]))
    tensor([-0.6931,    -inf, -0.6931])
    """
    dtype = input.dtype if dtype is None else dtype
    return _kept(input, mask, _lowest).log_softmax(_dims(dim, input.ndim)[0], dtype=dtype)


def softmin(input, dim, *, dtype=None, mask=None):  # noqa: A002
    """The softmax of the negated kept elements along dim; the others are 0.

    >>> lucid.masked.softmin(lucid.tensor([0.0, 9.0, 0.0]), 0, mask=lucid.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    dtype = input.dtype if dtype is None else dtype
    return (-_kept(input, mask, _highest)).softmax(_dims(dim, input.ndim)[0], dtype=dtype)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):  # noqa: A002
    """The kept elements divided by their norm along dim, which is taken as `eps` at least; the others are 0.

    >>> lucid.masked.normalize(lucid.tensor([3.0, 9.0, 4.0]), 2.0, 0, mask=lucid.tensor([True, False, True]))
    tensor([0.6000, 0.0000, 0.8000])
    """
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _kept(input, mask, 0) / _C.maximum(length, length.new_full([], eps))


def _no_masked_tensors(*args, **kwargs):
    raise NotImplementedError("tensors that carry a mask are not implemented; the functions of lucid.masked take mask=")


class MaskedTensor:
    """A tensor with a mask of its own, in PyTorch. Not implemented: making one raises NotImplementedError.

    >>> lucid.masked.is_masked_tensor(lucid.ones(2))
    False
    """

    __new__ = staticmethod(_no_masked_tensors)


def masked_tensor(data, mask, requires_grad=False):
    """Raises NotImplementedError: see `MaskedTensor`.

    >>> lucid.masked.masked_tensor(lucid.ones(2), lucid.ones(2, dtype=lucid.bool))
    Traceback (most recent call last):
        ...
    NotImplementedError: tensors that carry a mask are not implemented; the functions of lucid.masked take mask=
    """
    _no_masked_tensors(data, mask, requires_grad)


def as_masked_tensor(data, mask):
    """Raises NotImplementedError: see `MaskedTensor`.

    >>> lucid.masked.as_masked_tensor(lucid.ones(2), lucid.ones(2, dtype=lucid.bool))
    Traceback (most recent call last):
        ...
    NotImplementedError: tensors that carry a mask are not implemented; the functions of lucid.masked take mask=
    """
    _no_masked_tensors(data, mask)


def is_masked_tensor(obj, /):
    """Whether obj is a `MaskedTensor`: False for everything that exists here.

    >>> lucid.masked.is_masked_tensor(lucid.ones(2))
    False
    """
    return isinstance(obj, MaskedTensor)

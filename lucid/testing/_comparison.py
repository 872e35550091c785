"""`assert_close`: nested structures compared leaf by leaf, with PyTorch's tolerances and messages."""

import cmath
from collections.abc import Mapping, Sequence

from .. import _C

_TOLERANCES = {  # dtype or Python scalar type: rtol, atol. Types not listed must be equal
    "float16": (0.001, 1e-5),
    "bfloat16": (0.016, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
    float: (1e-7, 1e-7),
    complex: (1e-7, 1e-7),
}
_EXACT = (0.0, 0.0)


class _Mismatch(Exception):
    """A mismatch, and the item of the structure it belongs to."""

    def __init__(self, kind, text, where):
        self.kind, self.text, self.where = kind, text, where

    def error(self, msg):
        if isinstance(msg, str):
            return self.kind(msg)
        text = self.text
        if self.where:
            text += "\n\nThe failure occurred for item " + "".join(str([item]) for item in self.where)
        return self.kind(msg(text) if callable(msg) else text)


class _Options:
    def __init__(self, **options):
        self.__dict__.update(options)

    def tolerances(self, *kinds, where):
        """The loosest of the kinds' tolerances, unless given."""
        if (self.rtol is None) != (self.atol is None):
            missing = "rtol" if self.rtol is None else "atol"
            text = f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
            raise _Mismatch(ValueError, text, where)
        if self.rtol is not None:
            return self.rtol, self.atol
        rtols, atols = zip(*(_TOLERANCES.get(kind, _EXACT) for kind in kinds), strict=True)
        return max(rtols), max(atols)


# --- messages
# -------------------------------------------------------------------------------------------------------------------


def _difference(kind, value, index, tolerance, exact):
    text = f"{kind.title()} difference: {value}" if index is None else f"Greatest {kind} difference: {value} at index {index}"
    return text if exact else text + f" (up to {tolerance} allowed)"


def _message(subject, extra, absolute, relative, rtol, atol):
    """absolute, relative: the difference and its index."""
    exact = rtol == 0 and atol == 0
    return "\n".join(
        [
            f"{subject} are not {'equal' if exact else 'close'}!\n",
            extra,
            _difference("absolute", *absolute, atol, exact),
            _difference("relative", *relative, rtol, exact),
        ]
    )


def _number_message(actual, expected, rtol, atol):
    absolute = abs(actual - expected)
    relative = float("inf") if expected == 0 else absolute / abs(expected)
    extra = f"Expected {expected} but got {actual}."
    return _message("Scalars", extra, (absolute, None), (relative, None), rtol, atol)


def _greatest(differences, shape):
    """The largest, and its index in a tensor of that shape."""
    flat = differences.argmax().item()
    value, index = differences[flat].item(), []
    for size in reversed(shape):
        flat, place = divmod(flat, size)
        index.insert(0, place)
    return value, tuple(index)


def _tensor_message(actual, expected, matches, rtol, atol):
    shape = tuple(actual.shape)
    n, wrong = matches.numel(), matches.numel() - int(matches.sum().item())
    extra = f"Mismatched elements: {wrong} / {n} ({wrong / n:.1%})"
    actual, expected, matches = actual.reshape(-1), expected.reshape(-1), matches.reshape(-1)
    absolute = (actual - expected).abs().masked_fill(matches, 0)
    relative = (absolute / expected.abs()).masked_fill(matches, 0)
    return _message("Tensor-likes", extra, _greatest(absolute, shape), _greatest(relative, shape), rtol, atol)


# --- leaves
# ---------------------------------------------------------------------------------------------------------------------


def _compare_none(actual, expected, options, where):
    if actual is not expected:
        raise _Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}", where)


def _compare_bools(actual, expected, options, where):
    if actual is not expected:
        raise _Mismatch(AssertionError, f"Booleans mismatch: {actual} is not {expected}", where)


def _compare_numbers(actual, expected, options, where):
    rtol, atol = options.tolerances(type(actual), type(expected), where=where)
    if options.check_dtype and type(actual) is not type(expected):
        raise _Mismatch(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.", where)
    if actual == expected or options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
        return
    difference = abs(actual - expected)
    if not (cmath.isfinite(difference) and difference <= atol + rtol * abs(expected)):
        raise _Mismatch(AssertionError, _number_message(actual, expected, rtol, atol), where)


def _dtype_name(dtype):
    return str(dtype).rsplit(".", 1)[-1]


def _check_attributes(actual, expected, options, where):
    checks = [
        ("shape", True, actual.shape, expected.shape),
        ("layout", options.check_layout, actual.layout, expected.layout),
        ("stride()", options.check_stride, actual.stride(), expected.stride()),
        ("device", options.check_device, actual.device, expected.device),
        ("dtype", options.check_dtype, actual.dtype, expected.dtype),
    ]
    for name, wanted, a, e in checks:
        if wanted and a != e:
            raise _Mismatch(AssertionError, f"The values for attribute '{name}' do not match: {a} != {e}.", where)


def _matches(actual, expected, rtol, atol, equal_nan):
    matches = actual == expected
    if equal_nan:
        matches = matches | ((actual != actual) & (expected != expected))
    if rtol == 0 and atol == 0:
        return matches
    difference = (actual - expected).abs()
    return matches | ((difference <= expected.abs() * rtol + atol) & (difference != float("inf")))


def _compare_sparse(actual, expected, options, where):
    """Part by part, if both have one layout: indices are equal, values are close."""
    from ..sparse.construct import pieces

    if actual.layout != expected.layout:
        _compare_tensors(actual.to_dense(), expected.to_dense(), options, where)
        return
    if actual._nnz() != expected._nnz():
        kind = str(actual.layout).rsplit("_", 1)[-1].upper()
        text = f"The number of specified values in sparse {kind} tensors does not match: {actual._nnz()} != {expected._nnz()}"
        raise _Mismatch(AssertionError, text, where)
    for a, e in zip(pieces(actual), pieces(expected)):
        if isinstance(a, _C.Tensor):
            _compare_tensors(a, e, options, where)


def _compare_tensors(actual, expected, options, where):
    rtol, atol = options.tolerances(_dtype_name(actual.dtype), _dtype_name(expected.dtype), where=where)
    _check_attributes(actual, expected, options, where)
    if "meta" in (actual.device.type, expected.device.type):
        return
    if actual.layout != _C.strided or expected.layout != _C.strided:
        _compare_sparse(actual, expected, options, where)
        return
    actual, expected = actual.detach(), expected.detach()
    if actual.device != expected.device:
        actual, expected = actual.cpu(), expected.cpu()
    # Small integers would wrap around, and bools have no difference.
    a, e = (t if t.dtype.is_floating_point or t.dtype.is_complex else t.to(_C.int64) for t in (actual, expected))
    matches = _matches(a, e, rtol, atol, options.equal_nan)
    if matches.all().item():
        return
    if actual.shape:
        text = _tensor_message(a, e, matches, rtol, atol)
    else:
        text = _number_message(actual.item(), expected.item(), rtol, atol)
    raise _Mismatch(AssertionError, text, where)


def _comparison(actual, expected, options, where):
    """The leaves to compare, and how; TypeError if these two cannot be compared."""
    if actual is None or expected is None:
        return _compare_none, actual, expected
    if isinstance(actual, bool) and isinstance(expected, bool):
        return _compare_bools, actual, expected
    numbers = (int, float, complex)
    if isinstance(actual, numbers) and isinstance(expected, numbers):
        return _compare_numbers, actual, expected
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if related and (options.allow_subclasses or type(actual) is type(expected)):
        try:
            return _compare_tensors, *(t if isinstance(t, _C.Tensor) else _C.as_tensor(t) for t in (actual, expected))
        except (TypeError, ValueError, RuntimeError):
            pass
    text = f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
    raise _Mismatch(TypeError, text, where)


# --- structures
# -----------------------------------------------------------------------------------------------------------------


def _is_sequence(value):
    return isinstance(value, Sequence) and not isinstance(value, str)


def _sorted(keys):
    try:
        return sorted(keys)
    except TypeError:
        return list(keys)


def _leaves(actual, expected, options, where=()):
    """All comparisons a pair of structures asks for, in order."""
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise _Mismatch(AssertionError, text, where)
        keys = range(len(actual))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
        if missing or additional:
            text = (
                f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {_sorted(missing)}\n"
                f"Additional keys in the actual mapping: {_sorted(additional)}"
            )
            raise _Mismatch(AssertionError, text, where)
        keys = _sorted(actual.keys())
    else:
        compare, a, e = _comparison(actual, expected, options, where)
        return [(compare, a, e, where)]
    return [leaf for key in keys for leaf in _leaves(actual[key], expected[key], options, (*where, key))]


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """Raise AssertionError unless `abs(actual - expected) <= atol + rtol * abs(expected)` everywhere.

    Tensors, numbers, and sequences and mappings of them. Without tolerances the dtype chooses them; integers must be
    equal. `msg` replaces the message where values or attributes differ, or is called with it.

    >>> lucid.testing.assert_close(lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 2.0 + 1e-6]))
    >>> lucid.testing.assert_close(lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 3.0]))
    Traceback (most recent call last):
    AssertionError: Tensor-likes are not close!
    <BLANKLINE>
    Mismatched elements: 1 / 2 (50.0%)
    Greatest absolute difference: 1.0 at index (1,) (up to 1e-05 allowed)
    Greatest relative difference: 0.3333333432674408 at index (1,) (up to 1.3e-06 allowed)
    """
    __tracebackhide__ = True
    options = _Options(
        allow_subclasses=allow_subclasses,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    try:
        leaves = _leaves(actual, expected, options)
    except _Mismatch as mismatch:
        raise mismatch.error(None) from None
    try:
        for compare, a, e, where in leaves:
            compare(a, e, options, where)
    except _Mismatch as mismatch:
        raise mismatch.error(msg if mismatch.kind is AssertionError else None) from None


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """The older `assert_close`: numbers and sequences are taken for tensors, dtypes and devices may differ, NaN equals NaN.

    >>> lucid.testing.assert_allclose(lucid.ones(2), [1.0, 1.0])
    """
    from warnings import warn

    warn("assert_allclose is deprecated, use assert_close instead", FutureWarning, stacklevel=2)
    actual = actual if isinstance(actual, _C.Tensor) else _C.tensor(actual)
    expected = expected if isinstance(expected, _C.Tensor) else _C.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = {_C.float16: (1e-3, 1e-3), _C.float32: (1e-4, 1e-5), _C.float64: (1e-5, 1e-8)}.get(
            actual.dtype, (0.0, 0.0)
        )
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)

"""The same program with both libraries: data that can be compared, or the kind of error that was raised."""

import math
import warnings

KINDS = (KeyError, IndexError, TypeError, AttributeError, ValueError, NotImplementedError, RuntimeError, AssertionError)


def plain(value):
    """Data that can be compared between the libraries."""
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return str(value.dtype).split(".")[-1], tuple(value.shape), value.tolist(), value.requires_grad
    if isinstance(value, dict):
        return [(k, plain(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.replace("torch.", "lucid.") if isinstance(value, str) else value


def attempt(function, m):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(function(m))
        except Exception as error:  # noqa: BLE001 (whatever PyTorch raises is the specification)
            return next(k.__name__ for k in KINDS if isinstance(error, k))


def assert_close(mine, theirs, rel=1e-5, absolute=1e-6, path=""):
    """Equal, but for the rounding of numbers."""
    if isinstance(mine, complex) and isinstance(theirs, complex):
        assert_close([mine.real, mine.imag], [theirs.real, theirs.imag], rel, absolute, path)
    elif isinstance(mine, float) and isinstance(theirs, float):
        same = math.isclose(mine, theirs, rel_tol=rel, abs_tol=absolute) or math.isnan(mine) and math.isnan(theirs)
        assert same, f"{path}: {mine} is not {theirs}"
    elif isinstance(mine, (list, tuple)) and isinstance(theirs, (list, tuple)):
        assert len(mine) == len(theirs), f"{path}: {mine} is not {theirs}"
        for i, (a, b) in enumerate(zip(mine, theirs)):
            assert_close(a, b, rel, absolute, f"{path}[{i}]")
    else:
        assert mine == theirs, f"{path}: {mine!r} is not {theirs!r}"

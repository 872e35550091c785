"""The Python array API standard: Lucid through the shim (namespace.py) against array_api_strict, a reference on NumPy.

The standard's public test-suite (array-api-tests) is not on PyPI; these are properties of the same kind: for every function,
arrays of every dtype the standard defines for it, any shape and layout, special values; results have the same dtype, shape and
values. What differs is in GAPS with the reason, and in docs/array-api.md.
"""

import warnings

import array_api_strict as strict
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given

import lucid
from tests.properties import examples

from . import cases as c
from .namespace import MISSING, xp

warnings.filterwarnings("ignore")
AXIS = {"descending": st.booleans(), "stable": st.just(True)}
UNARY = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_invert", "ceil", "conj", "cos", "cosh", "exp", "expm1",
    "floor", "imag", "isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10", "logical_not", "negative", "positive",
    "real", "reciprocal", "round", "sign", "signbit", "sin", "sinh", "square", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip
BINARY = [
    "add", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "copysign", "divide", "equal", "greater", "greater_equal",
    "hypot", "less", "less_equal", "logaddexp", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply",
    "nextafter", "not_equal", "subtract",
]  # fmt: skip
SUMMED = tuple(d for d in c.NUMERIC if d != "uint8")  # sums of uint8 are int64 in PyTorch, uint64 in the standard
CASES = {
    **{name: c.unary(name) for name in UNARY},
    **{name: c.binary(name) for name in BINARY},
    **{f"{name} with numbers": c.with_scalar(name) for name in ("add", "multiply", "subtract", "divide", "maximum", "minimum")},
    "floor_divide": c.binary("floor_divide", dtypes=c.INTEGERS + c.FLOATS, special=False, low=1),
    "remainder": c.binary("remainder", dtypes=c.INTEGERS + c.FLOATS, special=False, low=1),
    "pow": c.binary("pow", dtypes=c.INTEGERS + c.FLOATS, special=False, low=0, high=5),
    "bitwise_left_shift": c.binary("bitwise_left_shift", dtypes=c.INTEGERS, low=0, high=6),
    "bitwise_right_shift": c.binary("bitwise_right_shift", dtypes=c.INTEGERS, low=0, high=6),
    **{name: c.reduction(name, dtypes=SUMMED, special=False, empty=True) for name in ("sum", "prod")},
    **{name: c.reduction(name, dtypes=c.INTEGERS + c.FLOATS) for name in ("max", "min")},
    **{name: c.reduction(name, dtypes=c.FLOATS, special=False) for name in ("mean", "std", "var")},
    **{name: c.reduction(name, dtypes=c.ALL, empty=True) for name in ("all", "any", "count_nonzero")},
    **{name: c.reduction(name, dtypes=c.INTEGERS + c.FLOATS, axes=False, special=False) for name in ("argmax", "argmin")},
    "cumulative_sum": c.along("cumulative_sum", SUMMED, {"include_initial": st.booleans()}, special=False),
    "cumulative_prod": c.along("cumulative_prod", SUMMED, {"include_initial": st.booleans()}, special=False),
    "sort": c.along("sort", c.INTEGERS + c.FLOATS, AXIS, special=False),
    "argsort": c.along("argsort", c.INTEGERS + c.FLOATS, AXIS, special=False),
    **{name: c.shaping(c.sets(name), dtypes=c.INTEGERS + c.FLOATS, special=False)
       for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values")},
    "nonzero": c.shaping(lambda x, draw: lambda xp, a: list(xp.nonzero(a))),
    "isin": c.shaping(lambda x, draw: lambda xp, a: xp.isin(a, xp.reshape(a, (-1,))[:2]), dtypes=c.INTEGERS, special=False),
    "searchsorted": c.shaping(c.searches, dtypes=c.INTEGERS + c.FLOATS, special=False),
    "reshape": c.shaping(c.reshapes),
    "permute_dims": c.shaping(c.permutes),
    "roll": c.shaping(c.rolls),
    "flip": c.shaping(c.flips),
    "moveaxis": c.shaping(c.moves),
    "squeeze": c.shaping(c.squeezes),
    "expand_dims": c.shaping(c.expands),
    "concat": c.shaping(c.joins("concat")),
    "stack": c.shaping(c.joins("stack")),
    "tile": c.shaping(c.tiles),
    "repeat": c.shaping(c.repeats),
    "unstack": c.shaping(c.unstacks),
    "broadcast_to, broadcast_arrays": c.shaping(c.broadcasts),
    "take": c.shaping(c.takes),
    "take_along_axis": c.shaping(c.takes_along),
    "tril": c.shaping(c.triangles("tril"), least=2),
    "triu": c.shaping(c.triangles("triu"), least=2),
    "matrix_transpose": c.shaping(lambda x, draw: lambda xp, a: [xp.matrix_transpose(a), a.mT], least=2),
    "clip": c.shaping(c.clips, dtypes=c.INTEGERS + c.FLOATS, special=False),
    "where": c.shaping(c.wheres),
    "diff": c.shaping(c.diffs, dtypes=c.INTEGERS + c.FLOATS, special=False),
    **{name: c.products(name) for name in ("matmul", "vecdot", "tensordot", "linalg.outer")},
    "getitem": c.indexing(),
    "setitem": c.indexing(write=True),
    "boolean masks": c.masks(),
    "creation": c.creation(),
    "astype": c.conversions(),
    "operators": c.operators(),
}  # fmt: skip

GAPS = {  # name: reason
    "unique_all": "array_api_compat has none for PyTorch",
}


def numbers(library, a):
    """The array in a library, with its strides: a transposed one is made as a transposed view."""
    if a.ndim > 1 and not a.flags.c_contiguous:
        return library.permute_dims(numbers(library, np.ascontiguousarray(a.T)), tuple(reversed(range(a.ndim))))
    made = library.asarray(a.reshape(-1).tolist(), dtype=getattr(library, a.dtype.name))
    return library.reshape(made, a.shape)


def same(ours, theirs, signs=True):
    """signs: of zeros too."""
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            same(a, b, signs)
        return
    if not hasattr(theirs, "dtype"):
        assert ours == theirs
        return
    name = str(ours.dtype).split(".")[-1]
    expected = np.asarray(theirs._array)
    assert name == expected.dtype.name, f"dtype {name}, not {expected.dtype.name}"
    assert tuple(ours.shape) == expected.shape, f"shape {tuple(ours.shape)}, not {expected.shape}"
    found = np.array(ours.tolist(), dtype=name).reshape(expected.shape)
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(found, expected)
        return
    tolerance = 2e-5 if name in ("float32", "complex64") else 1e-11
    np.testing.assert_allclose(
        found, expected, rtol=tolerance, atol=10 * tolerance
    )  # std of equal numbers: the reference rounds
    if signs and expected.dtype.kind == "f":
        zeros = (found == 0) & (expected == 0)
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]), "signs of zeros")


@pytest.fixture(autouse=True, scope="module")
def float64_by_default():
    """As in the reference; the standard leaves it open."""
    lucid.set_default_dtype(lucid.float64)
    yield
    lucid.set_default_dtype(lucid.float32)


FROM_ZERO = ("cumulative_sum",)  # starts from +0, as PyTorch's: -0 becomes 0


@pytest.mark.parametrize("name", CASES)
def test_standard(name):
    if name in GAPS:
        pytest.xfail(GAPS[name])

    compared = []

    @examples(40, suppress_health_check=list(HealthCheck))
    @given(CASES[name])
    def check(case):
        function, arrays = case
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                theirs = function(strict, *[numbers(strict, a) for a in arrays])
            except (TypeError, ValueError, IndexError, OverflowError, AttributeError):
                return  # the standard leaves it open
        compared.append(name)
        same(function(xp, *[numbers(xp, a) for a in arrays]), theirs, name not in FROM_ZERO)

    check()
    assert len(compared) >= 5


def test_names():
    """Every function of the standard is there."""
    names = [n for n in strict.__all__ if not n.startswith("_") and "strict" not in n.lower() and n != "Device"]
    missing = [n for n in names if not hasattr(xp, n) or f"torch.{n}" in MISSING]
    assert [n for n in missing if n not in GAPS] == []


def test_data_types():
    for a in c.ALL:
        for b in c.ALL:
            for question in ("can_cast", "result_type"):
                try:
                    theirs = getattr(strict, question)(getattr(strict, a), getattr(strict, b))
                except TypeError:
                    continue
                ours = getattr(xp, question)(getattr(xp, a), getattr(xp, b))
                if ours is True and question == "can_cast":
                    continue  # PyTorch allows more: bool to numbers, any integer to any other
                assert str(ours).split(".")[-1] == str(getattr(theirs, "_np_dtype", theirs)), (question, a, b)
        for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"):
            assert xp.isdtype(getattr(xp, a), kind) == strict.isdtype(getattr(strict, a), kind), (a, kind)
    for name in c.FLOATS + c.COMPLEX:
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(xp.finfo(getattr(xp, name)), field) == getattr(strict.finfo(getattr(strict, name)), field)
    for name in c.INTEGERS:
        for field in ("bits", "max", "min"):
            assert getattr(xp.iinfo(getattr(xp, name)), field) == getattr(strict.iinfo(getattr(strict, name)), field)


def test_constants_and_exchange():
    assert (xp.e, xp.inf, xp.pi, xp.newaxis) == (strict.e, strict.inf, strict.pi, strict.newaxis) and xp.nan != xp.nan
    x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert np.from_dlpack(x).tolist() == x.tolist() == xp.from_dlpack(np.array(x.tolist())).tolist()
    info = xp.__array_namespace_info__()
    assert {"cpu"} <= {str(d) for d in info.devices()} and info.default_dtypes()["real floating"] == xp.float64

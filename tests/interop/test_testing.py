"""lucid.testing against torch.testing: what is close, which error, which message."""

import pytest
import torch

import lucid

nan, inf = float("nan"), float("inf")


def outcome(library, make, **options):
    actual, expected = make(library)
    try:
        library.testing.assert_close(actual, expected, **options)
    except Exception as error:
        return type(error), str(error).replace("torch", "lucid")
    return None


def t(m, data, dtype=None):
    return m.tensor(data, dtype=getattr(m, dtype) if dtype else None)


CASES = {
    "equal": lambda m: (t(m, [1.0, 2.0]), t(m, [1.0, 2.0])),
    "close": lambda m: (t(m, [1.0, 2.0]), t(m, [1.0, 2.0 + 1e-6])),
    "far": lambda m: (t(m, [1.0, 4.0, 5.0]), t(m, [1.0, 2.0, 3.0])),
    "far in two dimensions": lambda m: (t(m, [[1.0, 4.0], [5.0, 0.5]]), t(m, [[1.0, 2.0], [0.0, 0.25]])),
    "float64": lambda m: (t(m, [1.0], "float64"), t(m, [1.0 + 1e-6], "float64")),
    "float16": lambda m: (t(m, [1.0], "float16"), t(m, [1.001], "float16")),
    "bfloat16": lambda m: (t(m, [1.0], "bfloat16"), t(m, [1.01], "bfloat16")),
    "complex": lambda m: (t(m, [1 + 1j, 2j], "complex64"), t(m, [1 + 1j, 3j], "complex64")),
    "integers": lambda m: (t(m, [1, 2, 3]), t(m, [1, 5, 3])),
    "bytes": lambda m: (t(m, [1, 2], "uint8"), t(m, [255, 2], "uint8")),
    "bools": lambda m: (t(m, [True, False]), t(m, [True, True])),
    "scalar": lambda m: (t(m, 1.0), t(m, 2.0)),
    "scalar zero": lambda m: (t(m, 1.0), t(m, 0.0)),
    "nan": lambda m: (t(m, [nan, 1.0]), t(m, [nan, 1.0])),
    "infinite": lambda m: (t(m, [inf, -inf]), t(m, [inf, -inf])),
    "infinite and not": lambda m: (t(m, [inf, 1.0]), t(m, [1.0, inf])),
    "shape": lambda m: (t(m, [1.0, 2.0]), t(m, [1.0, 2.0, 3.0])),
    "dtype": lambda m: (t(m, [1.0]), t(m, [1.0], "float64")),
    "stride": lambda m: (m.ones(2, 3), m.ones(3, 2).t()),
    "device": lambda m: (m.ones(2), m.ones(2, device="meta")),
    "empty": lambda m: (m.ones(0, 3), m.ones(0, 3)),
    "numbers": lambda m: (1.0, 1.5),
    "close numbers": lambda m: (1.0, 1.0 + 1e-9),
    "types of numbers": lambda m: (1, 1.0),
    "nan numbers": lambda m: (nan, nan),
    "Python bools": lambda m: (True, False),
    "None": lambda m: (None, None),
    "None and a number": lambda m: (None, 1.0),
    "list": lambda m: ([t(m, [1.0]), 2], [t(m, [1.0]), 3]),
    "lengths": lambda m: ([1, 2], [1]),
    "nested": lambda m: ({"a": [1.0, (2.0, 3.0)]}, {"a": [1.0, (2.0, 4.0)]}),
    "keys": lambda m: ({"a": 1, "c": 2}, {"a": 1, "b": 2}),
    "unrelated": lambda m: (t(m, [1.0]), [1.0]),
    "strings": lambda m: ("a", "a"),
}


OPTIONS = {
    "defaults": {},
    "exact": {"rtol": 0.0, "atol": 0.0},
    "loose": {"rtol": 0.5, "atol": 0.0},
    "equal_nan": {"equal_nan": True},
    "any dtype": {"check_dtype": False},
    "strides": {"check_stride": True},
    "one tolerance": {"rtol": 0.1},
    "message": {"msg": "mine"},
    "around the message": {"msg": lambda text: f"<{text}>"},
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("case", CASES)
def test_assert_close(case, options):
    assert outcome(lucid, CASES[case], **OPTIONS[options]) == outcome(torch, CASES[case], **OPTIONS[options])


def test_gradients_and_subclasses():
    x = lucid.ones(2, requires_grad=True)
    lucid.testing.assert_close(x, lucid.ones(2))
    lucid.testing.assert_close(lucid.nn.Parameter(lucid.ones(2)), lucid.ones(2))
    with pytest.raises(TypeError):
        lucid.testing.assert_close(lucid.nn.Parameter(lucid.ones(2)), lucid.ones(2), allow_subclasses=False)


DTYPES = [
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "bool",
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("noncontiguous", [False, True])
def test_make_tensor(dtype, noncontiguous):
    for library in (lucid, torch):
        kind = getattr(library, dtype)
        x = library.testing.make_tensor(3, 40, dtype=kind, device="cpu", noncontiguous=noncontiguous)
        assert x.dtype == kind and tuple(x.shape) == (3, 40) and x.is_contiguous() != noncontiguous
        values = [part for row in x.tolist() for v in row for part in (complex(v).real, complex(v).imag)]
        low, high = (0, 1) if dtype == "bool" else (0 if dtype == "uint8" else -9, 9)
        assert all(low <= v <= high for v in values) and len(set(values)) > 1


def test_make_tensor_options():
    make = lucid.testing.make_tensor
    x = make((5, 5), dtype=lucid.float32, device="cpu", low=2, high=3, requires_grad=True)
    assert x.requires_grad and 2 <= x.min().item() and x.max().item() <= 3
    assert make((100,), dtype=lucid.int64, device="cpu", low=0, high=2, exclude_zero=True).tolist() == [1] * 100
    assert make((), dtype=lucid.float32, device="cpu").shape == ()


@pytest.mark.parametrize(
    "options",
    [
        {"low": 2, "high": 1},
        {"low": nan},
        {"noncontiguous": True, "memory_format": "contiguous_format"},
        {"dtype": "int64", "requires_grad": True},
        {"dtype": "uint8", "low": -5, "high": -1},
    ],
)
def test_make_tensor_refuses(options):
    for library in (lucid, torch):
        given = {"dtype": "float32", **options}
        for name in ("dtype", "memory_format"):
            if name in given:
                given[name] = getattr(library, given[name])
        with pytest.raises(ValueError):
            library.testing.make_tensor(3, device="cpu", **given)

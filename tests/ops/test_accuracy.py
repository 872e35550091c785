"""What kernels promise beyond agreeing with PyTorch: errors in units of the last place, the same result at every position in a
tensor, for every number of threads, and sums that do not drift."""

import math

import numpy as np
import pytest

import lucid

FUNCTIONS = {
    "exp": (np.exp, -104, 89),
    "log": (np.log, None, None),
    "sin": (np.sin, -1e5, 1e5),
    "cos": (np.cos, -1e5, 1e5),
    "tanh": (np.tanh, -12, 12),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -85, 85),
    "sqrt": (np.sqrt, 0, 1e6),
    "exp2": (np.exp2, -126, 127),
    "expm1": (np.expm1, -30, 88),
    "log1p": (np.log1p, -0.9999, 1e6),
    "log2": (np.log2, None, None),
    "log10": (np.log10, None, None),
    "sinh": (np.sinh, -88, 88),
    "cosh": (np.cosh, -88, 88),
    "tan": (np.tan, -1e4, 1e4),
    "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -50, 50),
    "asinh": (np.arcsinh, -1e5, 1e5),
    "acosh": (np.arccosh, 1, 1e5),
    "atanh": (np.arctanh, -0.99999, 0.99999),
    "erf": (np.vectorize(math.erf), -5, 5),
    "erfc": (np.vectorize(math.erfc), -4, 8),
    "lgamma": (np.vectorize(math.lgamma), 0.001, 100),
}
LIMITS = {"tan": 4, "erfc": 6}  # float32: 2 ulp, unless named here
PAIRS = {"pow": (np.power, 0.01, 100, -5, 5), "atan2": (np.arctan2, -9, 9, -9, 9), "hypot": (np.hypot, -9, 9, -9, 9)}


@pytest.fixture(autouse=True)
def threads():
    before = lucid.get_num_threads()
    yield
    lucid.set_num_threads(before)


def arguments(low, high, rng, dtype):
    """Uniform over the range, and log-uniform over all magnitudes."""
    if low is None:
        return np.exp(rng.uniform(np.log(1e-300 if dtype == "float64" else 1e-44), 80, 60000)).astype(dtype)
    magnitudes = np.exp(rng.uniform(np.log(1e-30), np.log(high), 30000)) * rng.choice([-1, 1], 30000)
    return np.clip(np.concatenate([rng.uniform(low, high, 30000), magnitudes]), low, high).astype(dtype)


def ulps(got, exact, dtype):
    """Distance in units in the last place of the exact value rounded to dtype."""
    with np.errstate(over="ignore"):
        rounded = exact.astype(dtype)
    unit = np.spacing(np.abs(rounded)).astype(np.longdouble)
    return np.abs(got.astype(np.longdouble) - exact) / unit


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_ulps(name, dtype):
    reference, low, high = FUNCTIONS[name]
    if (name, dtype) == ("lgamma", "float64"):
        pytest.skip("the reference is less exact")
    x = arguments(low, high, np.random.default_rng(1), dtype)
    got = np.array(getattr(lucid, name)(lucid.tensor(x.tolist(), dtype=getattr(lucid, dtype))).tolist())
    exact = reference(x.astype(np.longdouble))
    error = ulps(got, exact, dtype)
    worst = int(np.nanargmax(error))
    assert error[worst] <= (LIMITS.get(name, 2) if dtype == "float32" else 4), (
        f"{name}({x[worst]!r}) = {got[worst]!r}, exactly {exact[worst]!r}: {error[worst]:.2f} ulp"
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PAIRS)
def test_ulps_of_two(name, dtype):
    reference, low, high, other_low, other_high = PAIRS[name]
    rng = np.random.default_rng(4)
    x, y = rng.uniform(low, high, 60000).astype(dtype), rng.uniform(other_low, other_high, 60000).astype(dtype)
    got = getattr(lucid, name)(lucid.from_numpy(x), lucid.from_numpy(y)).numpy()
    error = ulps(got, reference(x.astype(np.longdouble), y.astype(np.longdouble)), dtype)
    assert np.max(error) <= 2


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) | {"pow", "add"}))
def test_position_does_not_matter(name):
    """The value at index i is the value of a tensor that holds nothing else: vector bodies and tails agree."""
    x = lucid.tensor(np.random.default_rng(2).uniform(0.1, 30, 67).tolist())
    x = x / 31 if name in ("asin", "acos", "atanh") else x + 1 if name == "acosh" else x
    more = (x,) if name in ("pow", "add") else ()
    whole = getattr(lucid, name)(x, *more).tolist()
    for i in range(67):
        single = x[i : i + 1]
        assert getattr(lucid, name)(single, *((single,) if more else ())).tolist() == [whole[i]]
        assert getattr(lucid, name)(x[i:], *((x[i:],) if more else ())).tolist() == whole[i:]


REDUCTIONS = [("sum", {}), ("sum", {"dim": 0}), ("sum", {"dim": 1}), ("mean", {}), ("var", {}), ("var", {"dim": 0}),
              ("prod", {}), ("max", {"dim": 0}), ("argmax", {}), ("logsumexp", {"dim": 1}), ("std", {"dim": 1})]  # fmt: skip


@pytest.mark.parametrize("name, arguments", REDUCTIONS)
@pytest.mark.parametrize("shape", [(300, 700), (100000, 3), (3, 100000)])
def test_number_of_threads_does_not_matter(name, arguments, shape):
    lucid.manual_seed(0)
    x = lucid.rand(*shape)
    results = []
    for n in (1, 2, 3, 7):
        lucid.set_num_threads(n)
        result = getattr(x, name)(**arguments)
        results.append([t.tolist() for t in result] if isinstance(result, tuple) else result.tolist())
    assert all(r == results[0] for r in results)


@pytest.mark.parametrize("dtype, limit", [("float32", 1.0), ("float64", 4.0)])
@pytest.mark.parametrize(
    "shape, dims", [((1_000_000,), (0,)), ((1000, 1000), (0,)), ((1000, 1000), (1,)), ((100, 100, 100), (0, 2))]
)
def test_sums_do_not_drift(shape, dims, dtype, limit):
    x = np.random.default_rng(3).uniform(0, 1, shape).astype(dtype)
    got = np.array(lucid.from_numpy(x).sum(dims).tolist())
    error = ulps(got, x.astype(np.longdouble).sum(axis=dims), dtype)
    assert np.max(error) <= limit

"""Results of ops for signed zeros, infinities, NaN, the smallest and the largest numbers: the same kind of value as PyTorch.

Every function of one or two tensors with all pairs of such values, and a table of calls of x, which is one value, two, or many.
Compared are signs, zeros, infinities and NaN of floats, and integers exactly. Where PyTorch has two answers, in
vectors and one by one, either is right.
"""

import math

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo

import lucid
from tests.oracle import of_torch

FLOATS, INTEGERS = ("float32", "float64", "float16", "bfloat16"), ("int8", "uint8", "int16", "int32", "int64")
DIVIDING = (
    "fmod",
    "remainder",
    "floor_divide",
    "div",
    "true_divide",
    "gcd",
    "lcm",
)  # of the least integer by -1, PyTorch's end in SIGFPE
FAR_APART = ("fmod", "remainder", "igamma", "igammac")  # of numbers far apart PyTorch's vectors make NaN, or are not exact
TWO_WAYS = {"maximum", "minimum", "max", "min", "fmax", "fmin"}  # of 0 and -0: one or the other
CALLS = """
    x.amax() | x.amin() | x.argmax() | x.argmin() | x.max(0) | x.min(0) | x.all() | x.any() | x.count_nonzero()
    x.nansum() | x.norm() | x.norm(1) | x.norm(3) | x.norm(math.inf) | x.norm(-math.inf) | x.norm(0) | x.cummax(0)
    x.cummin(0) | x.softmax(0) | x.logsumexp(0) | x.sort(stable=True) | x.argsort(stable=True) | x.unique()
    x.unique(return_inverse=True, return_counts=True) | x.unique_consecutive()
    x.unique_consecutive(return_counts=True) | x.topk(1) | x.kthvalue(1) | x.mode() | x.median(0) | x.diff()
    x.outer(x) | x.nonzero() | x.flip(0) | x.isclose(x) | x.signbit() | x.nan_to_num() | x.nan_to_num(1, 2, 3)
    x + 0 | x - 0 | 0 - x | x * 0 | x * -1 | x.clamp(0) | x.clamp(max=0) | x.clamp(min=-0.0) | x.clamp(0, 0)
    x.clamp(2, 1) | x.clamp_min(0) | x.clamp_max(-0.0) | x.clamp(math.nan) | x.clamp(-1, math.nan)
    x.copysign(-0.0) | x.xlogy(0) | x.logit() | x.addcmul(x, x) | x.addcdiv(x, x) | x.where(x > 0, -x)
    x.sub(x, alpha=0) | x.heaviside(x) | x.round(decimals=1) | x.float() / 0.0 | x.float() / -0.0 | 1 / x.float()
    x.half() ** 0.5 | x.float() ** 0.5 | x.float() ** -0.5 | x.half() ** -0.5 | x.float() ** 0 | x.float() ** -1
    x.float() ** -2 | x.float() ** math.inf | 2 ** x.float() | (-1) ** x.float() | x.float() % -1
    x.float_power(2) | x.float_power(0.5) | x.float_power(-0.5) | x.float() // 1 | x.float() // math.inf | x.half()
    x.bfloat16() | x.float().div(2, rounding_mode='floor') | x.float().div(0.0, rounding_mode='trunc')
    x.double().float() | x.bool() | x.float().frexp()
"""


def names(kind):
    return sorted({op.name for op in op_db if isinstance(op, kind) and "." not in op.name and hasattr(lucid, op.name)})


def values(dtype):
    if not dtype.is_floating_point:
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        return torch.tensor([low, high, 0, 1, 2, 5, high - 1, *((-1, -2, low + 1) if low else ())], dtype=dtype)
    most, least = torch.finfo(dtype).max, torch.finfo(dtype).smallest_normal * 64
    return torch.tensor(
        [0.0, -0.0, 1, -1, math.inf, -math.inf, math.nan, least, -least, most, -most, 0.5, -2.5, 3, 2, -3], dtype=dtype
    )


def kind(number):
    if not isinstance(number, float) or math.isnan(number) or math.isinf(number):
        return str(number)
    return f"{math.copysign(1, number):+.0f}" + "zero" * (number == 0)


def kinds(result):
    if isinstance(result, tuple):
        return [kinds(part) for part in result]
    if result.dtype in (torch.complex64, torch.complex128, lucid.complex64, lucid.complex128):
        result = (torch if isinstance(result, torch.Tensor) else lucid).view_as_real(result)
    return [kind(number) for number in result.reshape(-1).tolist()]


def outcome(function, *tensors):
    try:
        return kinds(function(*tensors))
    except (RuntimeError, IndexError, TypeError):
        return "refused"


def differences(name, ours, theirs, tensors):
    """What is of another kind than PyTorch's, where that has a result."""
    mine, expected = outcome(ours, *map(of_torch, tensors)), outcome(theirs, *tensors)
    if expected == "refused" or mine == expected:
        return []
    n = len(tensors[0])
    if mine == "refused" or len(expected) != n or not isinstance(expected[0], str):
        return [f"{name} of {[t.tolist() for t in tensors]}: {mine}, not {expected}"]
    alone = {i: outcome(theirs, *(t[i : i + 1].clone() for t in tensors)) for i in range(n) if mine[i] != expected[i]}
    at = [i for i in alone if alone[i] != [mine[i]]]
    return [f"{name} of {[t[i].item() for t in tensors]}: {mine[i]}, not {expected[i]}" for i in at]


def operands(name, dtype):
    v = values(dtype)
    a, b = v.repeat_interleave(len(v)), v.repeat(len(v))
    x, y = a.double(), b.double()
    keep = torch.ones(len(a), dtype=torch.bool)
    if not dtype.is_floating_point and name in DIVIDING:
        keep = (b != 0) & (a != torch.iinfo(dtype).min) & (b != torch.iinfo(dtype).min)
    elif name in TWO_WAYS:
        keep = (x != 0) | (y != 0)
    elif name in FAR_APART:
        keep = ~(x.isfinite() & y.isfinite()) | ((x.abs() < 1e4) & (y.abs() > 0.1) & (y.abs() < 1e4) & (x.abs() > 0.1))
    return a[keep], b[keep]


@pytest.mark.parametrize("dtype", (*FLOATS, *INTEGERS))
def test_functions(dtype):
    found = []
    dtype = getattr(torch, dtype)
    for name in set(names(UnaryUfuncInfo)) - ({"erf"} if dtype is torch.bfloat16 else set()):  # PyTorch's of small ones is 0
        found += differences(name, getattr(lucid, name), getattr(torch, name), [values(dtype).repeat(3)])
    for name in names(BinaryUfuncInfo):
        found += differences(name, getattr(lucid, name), getattr(torch, name), operands(name, dtype))
    assert not found


@pytest.mark.parametrize("dtype", (*FLOATS, "int8", "int64"))
def test_calls(dtype):
    found = []
    v = values(getattr(torch, dtype))
    cases = [*v.reshape(-1, 1), *torch.cartesian_prod(v, v)[::3], v, v.flip(0)]
    for statement in (s.strip() for line in CALLS.split("\n") for s in line.split(" | ") if s.strip()):
        call = eval(f"lambda x: {statement}", {"math": math})  # noqa: S307
        for x in cases:
            found += differences(statement, call, call, [x.clone()])
    assert not found


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_extremes_see_nan_anywhere(dtype):
    """Whole blocks of a row, lanes, what is left: row r has its NaN at place r, the last row has none."""
    for n in (1, 7, 16, 21, 64, 135):
        x = torch.randn(n + 1, n, generator=torch.Generator().manual_seed(n)).to(getattr(torch, dtype))
        x[:n].fill_diagonal_(math.nan)
        y = of_torch(x)
        for name in ("amax", "amin"):
            assert kinds(getattr(y, name)(1)) == kinds(getattr(x, name)(1))
            assert getattr(y, name)(1)[-1].item() == getattr(x, name)(1)[-1].item()

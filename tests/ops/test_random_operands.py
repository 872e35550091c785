"""Random shapes, strides and dtypes at ops, against PyTorch: the same result, or both refuse."""

import warnings

import numpy as np
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import lucid
from tests.ops.samples.sample import ALL, S
from tests.properties import examples

from .harness import assert_same, error_class

BINARY = (
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "minimum",
    "eq",
    "lt",
    "ge",
    "remainder",
    "floor_divide",
    "pow",
    "bitwise_and",
    "where",
)
UNARY = ("neg", "abs", "exp", "sqrt", "tanh", "sigmoid", "relu", "logical_not", "isnan", "sign", "clone", "contiguous")
REDUCTIONS = ("sum", "mean", "prod", "amax", "amin", "argmax", "any", "all", "var", "std", "logsumexp", "cumsum", "softmax")
LOOSE = S("any", rtol=3e-2, atol=3e-2)  # half precision of long products; the sample tables hold the tight bounds
NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.5, float("nan"), float("inf"), -float("inf"), 100.0]


@st.composite
def geometry(draw, most=4):
    """A shape, an order in which the dimensions lie in memory, a step per dimension, and dimensions that are expanded."""
    shape = draw(st.lists(st.sampled_from([0, 1, 1, 2, 3, 5]), max_size=most))
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 2, 3])) for _ in shape]
    expanded = [draw(st.booleans()) and draw(st.booleans()) for _ in shape]
    return tuple(shape), tuple(order), tuple(steps), tuple(expanded)


@st.composite
def operand(draw, most=4, dtypes=ALL):
    layout, dtype = draw(geometry(most)), draw(st.sampled_from(dtypes))
    values = draw(st.lists(st.sampled_from(NUMBERS), min_size=4, max_size=16))
    return layout, dtype, values


def numbers(values, n, dtype):
    data = np.resize(np.array(values), n)
    if dtype.startswith(("int", "uint", "bool", "complex")):  # infinities of complex numbers: each library has its own
        data = np.abs(np.nan_to_num(data, nan=3, posinf=7, neginf=5))
    return data.astype("float32" if dtype == "bfloat16" else dtype)


def make(m, spec):
    (shape, order, steps, expanded), dtype, values = spec
    size = [1 if e else s for s, e in zip(shape, expanded)]
    lies = [size[d] * steps[d] for d in order]
    data = numbers(values, int(np.prod(lies, dtype=int)), dtype)
    if m is torch:
        flat = torch.from_numpy(data).to(getattr(torch, dtype))
    else:
        flat = lucid.tensor(data.tolist(), dtype=getattr(lucid, dtype))
    x = flat.reshape(lies)[tuple(slice(None, None, steps[d]) for d in order)] if lies else flat.reshape(())
    return x.permute([order.index(d) for d in range(len(order))]).expand(shape) if shape else x


def both(f):
    """Run on both libraries; the results, or nothing after checking that both refused."""
    done = []
    for m in (lucid, torch):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                done.append((f(m), None))
        except Exception as error:  # noqa: BLE001  the class is compared
            done.append((None, error))
    (ours, our_error), (theirs, their_error) = done
    if their_error is not None:
        assert our_error is not None, f"PyTorch raises {their_error!r}; Lucid returned {ours}"
        assert isinstance(our_error, (error_class(their_error), RuntimeError)), f"{our_error!r} instead of {their_error!r}"
        return
    if our_error is not None:
        raise our_error
    if theirs is not None:
        assert_same(ours, theirs, LOOSE, "result")


@examples(400)
@given(st.sampled_from(BINARY), operand(), operand())
def test_binary(name, a, b):
    assume(not ("complex" in a[1] + b[1] and "float16" in a[1] + b[1]))  # PyTorch's complex32
    assume(a[1] == b[1] or not any(a[0][3] + b[0][3]))  # an expanded operand that is converted has other strides there
    if name in ("add", "sub") and "complex" in a[1] + b[1]:  # PyTorch's alpha is a complex one, which makes inf + nan j of inf
        assume(np.isfinite(a[2] + b[2]).all())
    if name == "where":
        both(lambda m: m.where(make(m, a) > 0, make(m, a), make(m, b)) if "complex" not in a[1] else None)
    else:
        both(lambda m: getattr(m, name)(make(m, a), make(m, b)))


@examples(300)
@given(st.sampled_from(BINARY[:-1]), operand(), st.sampled_from([True, 2, -3, 0.5, 1e10, float("nan"), 2 + 1j]))
def test_numbers(name, a, number):
    assume(name != "pow" or not a[1].endswith("float16"))  # PyTorch first converts the exponent to float16 or bfloat16
    assume(not (isinstance(number, complex) and a[1] == "float16"))  # PyTorch's complex32
    both(lambda m: getattr(m, name)(make(m, a), number))


@examples(300)
@given(st.sampled_from(UNARY), operand())
def test_unary(name, a):
    both(lambda m: getattr(make(m, a), name)())


@examples(400)
@given(st.sampled_from(REDUCTIONS), operand(), st.integers(-5, 5))
def test_reductions(name, a, dim):
    assume(name != "softmax" or a[1].startswith(("float", "bfloat")))  # PyTorch takes integers if there are none to take
    assume(
        name not in ("logsumexp", "amax", "amin") or "complex" not in a[1]
    )  # PyTorch takes them if empty; logsumexp is missing here
    both(lambda m: getattr(make(m, a), name)(dim))


@examples(200)
@given(operand(), operand())
def test_in_place(a, b):
    def run(m):
        x = make(m, a)
        return x, x.mul_(make(m, b))

    both(run)


@examples(200)
@given(st.lists(operand(3), min_size=1, max_size=3), st.integers(-4, 4))
def test_cat(parts, dim):
    assume(any(p[0][0] != (0,) for p in parts))  # PyTorch skips such parts, and then does not look at dim
    both(lambda m: m.cat([make(m, p) for p in parts], dim))


@examples(200)
@given(operand(3, ("float32", "float64", "int64", "complex64")), operand(3, ("float32", "float64", "int64", "complex64")))
def test_matmul(a, b):
    assume(a[1] == b[1])  # PyTorch accepts two dtypes if nothing is computed
    both(lambda m: make(m, a) @ make(m, b))

"""Printing, character for character as PyTorch prints."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lucid
from lucid import _print
from tests.properties import examples

FLOATS = ["float32", "float64", "float16", "bfloat16"]
DTYPES = [*FLOATS, "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128"]
nan, inf = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def default_options():
    yield
    torch.set_printoptions(profile="default")
    _print.set_printoptions(profile="default")


def set_both(**options):
    torch.set_printoptions(**options)
    lucid.set_printoptions(**options)


def as_lucid(t):
    data, name = t.detach(), str(t.dtype).removeprefix("torch.")
    flat = lucid.tensor(data.reshape(-1).tolist(), dtype=getattr(lucid, name))
    return flat.reshape(tuple(t.shape)).requires_grad_(t.requires_grad)


def check(t):
    assert repr(as_lucid(t)).replace("lucid.", "torch.") == repr(t)


@st.composite
def tensors(draw):
    dtype = getattr(torch, draw(st.sampled_from(DTYPES)))
    small = st.lists(st.sampled_from([0, 1, 2, 3, 7]), max_size=4)
    shape = draw(small | st.sampled_from([[40], [1001], [40, 40], [2, 600], [600, 2], [11, 10, 10]]))
    scale = draw(st.sampled_from([1, 1, 10, 1e-3, 1e-6, 1e5, 1e10]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    wide = torch.complex128 if dtype.is_complex else torch.float64
    t = torch.randn(shape, dtype=wide, generator=generator) * scale
    if draw(st.booleans()):
        t = torch.view_as_real(t).round().view(wide).reshape(shape) if dtype.is_complex else t.round()
    if not (dtype.is_complex or dtype.is_floating_point):
        return t.clamp(-100, 100).to(dtype)
    special = draw(st.sampled_from([None, nan, inf, -inf, 0.0, -0.0]))
    if special is not None and t.numel():
        t.view(-1)[draw(st.integers(0, t.numel() - 1))] = special
    return t.to(dtype).requires_grad_(draw(st.booleans()))


options = st.fixed_dictionaries(
    {
        "precision": st.sampled_from([None, 0, 2, 8]),
        "threshold": st.sampled_from([None, 0, 5, 50]),
        "edgeitems": st.sampled_from([None, 0, 1, 2]),
        "linewidth": st.sampled_from([None, 20, 40, 200]),
        "sci_mode": st.sampled_from([None, True, False]),
        "profile": st.sampled_from(["short", "full", "default"]),
    }
)


@examples(300)
@given(tensors())
def test_random_tensors(t):
    set_both(profile="default")
    check(t)


@examples(300)
@given(tensors(), options)
def test_random_options(t, chosen):
    set_both(**chosen)
    check(t)


@examples(200)
@given(tensors(), options)
def test_layout_of_foreign_tensors(t, chosen):
    """The printer alone, on PyTorch's tensors and their history."""
    set_both(**chosen)
    assert _print.tensor_repr(t) == repr(t)
    if t.requires_grad:
        assert _print.tensor_repr(t * 2) == repr(t * 2)


@pytest.mark.parametrize(
    "data, dtype",
    [
        (1.0, "float32"),
        (nan, "float32"),
        (1e10, "float64"),
        (0.1, "float16"),
        (True, "bool"),
        (-7, "int8"),
        (1 - 2j, "complex64"),
        (complex(0.0, -0.0), "complex64"),
        ([1.0, nan, inf, -inf], "float32"),
        ([nan, inf], "bfloat16"),
        ([0.0, -0.0], "float32"),
        ([1e-5, 1.0], "float32"),
        ([1e9, 1.0], "float64"),
        ([65504.0, 6e-8], "float16"),
        ([5e-324, 1.7e308], "float64"),
        ([-(2**63), 2**63 - 1], "int64"),
        ([[1 + 1j, nan], [inf, 1e9j]], "complex128"),
        ([[]], "float32"),
        ([[], []], "int64"),
        ([], "bool"),
    ],
)
def test_table(data, dtype):
    check(torch.tensor(data, dtype=getattr(torch, dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("default", ["float32", "float64", "float16"])
def test_default_dtype_is_left_out(dtype, default):
    t, u = torch.ones(2, dtype=getattr(torch, dtype)), lucid.ones(2, dtype=getattr(lucid, dtype))
    torch.set_default_dtype(getattr(torch, default))
    lucid.set_default_dtype(getattr(lucid, default))
    try:
        assert repr(u).replace("lucid.", "torch.") == repr(t)
    finally:
        torch.set_default_dtype(torch.float32)
        lucid.set_default_dtype(lucid.float32)


@pytest.mark.parametrize("name", ["float32", "float64", "int64", "bool"])
def test_meta(name):
    t = torch.empty(2, 3, dtype=getattr(torch, name), device="meta")
    u = lucid.empty(2, 3, dtype=getattr(lucid, name), device="meta")
    assert repr(u).replace("lucid.", "torch.") == repr(t)


def test_history_is_shown():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 4.], grad_fn=<MulBackward0>)"
    with lucid.no_grad():
        assert repr(x * 2) == "tensor([2., 4.])"


def test_printing_records_nothing():
    x = lucid.rand(40, 40).requires_grad_()
    repr(x)
    assert lucid.is_grad_enabled() and x.grad_fn is None


def test_str_and_format():
    x, y = lucid.tensor(1.5), torch.tensor(1.5)
    assert str(x) == str(y)
    assert f"{x}" == f"{y}"
    assert f"{x:.3f}" == f"{y:.3f}"


def test_strided_views():
    t = torch.arange(24.0).reshape(2, 3, 4)
    u = as_lucid(t)
    assert repr(u.transpose(0, 2)) == repr(t.transpose(0, 2))
    assert repr(u[:, ::2, 1:]) == repr(t[:, ::2, 1:])
    assert repr(u[0].expand(3, 3, 4)) == repr(t[0].expand(3, 3, 4))


def test_subclasses_and_parameters():
    class Mine(lucid.Tensor):
        pass

    class Mass(lucid.nn.Parameter):
        pass

    p = lucid.nn.Parameter(lucid.tensor([1.0]))
    assert repr(p) == "Parameter containing:\ntensor([1.], requires_grad=True)"
    assert repr(Mass(lucid.tensor([1.0]))) == "Parameter containing:\nParameter(Mass([1.], requires_grad=True))"
    assert repr(lucid.Tensor._make_subclass(Mine, lucid.tensor([1.0]))) == "Mine([1.])"


def test_options_are_restored():
    before = lucid.get_printoptions()
    with lucid.printoptions(precision=1, linewidth=20, sci_mode=True):
        assert lucid.get_printoptions()["precision"] == 1
        assert repr(lucid.tensor([1.5])) == "tensor([1.5e+00])"
    assert lucid.get_printoptions() == before


@pytest.mark.parametrize("profile", ["default", "short", "full"])
def test_profiles(profile):
    set_both(profile=profile)
    check(torch.arange(2000.0) / 7)


def test_batched_tensors():
    texts = []
    for m in (lucid, torch):
        m.func.vmap(m.func.vmap(lambda x: texts.append(repr(x)) or x))(m.arange(4.0).reshape(2, 2))  # noqa: B023
    assert texts[0] == texts[1]

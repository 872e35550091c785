"""The Tensor object: construction from Python data, numbers in and out, operators, attributes, argument binding."""
# ruff: noqa: B023 (every lambda here is called before its loop goes on)

import math
import operator
import pickle
import sys

import numpy
import pytest
import torch

import lucid
from tests.oracle import assert_same, both, of_torch

# --- lucid.tensor -----------------------------------------------------------------------------------------------------------
DATA = [
    1,
    1.5,
    True,
    2 - 1j,
    [],
    [[], []],
    [[[]]],
    [1, 2, 3],
    [1, 2.5],
    [True, 2],
    [True, False],
    [1, 2j],
    [[1, 2], [3, 4]],
    ((1, 2), [3, 4.0]),
    [[[1.0]], [[2.0]]],
    range(3),
    [float("nan"), float("inf")],
    [2**53 + 1],
    [-(2**63), 2**63 - 1],
    numpy.float32(1.5),
    [numpy.float32(1.5), 2],
    [numpy.float64(1.5)],
    [numpy.int32(3), 1.5],
    [numpy.bool_(True)],
    [numpy.int64(3), numpy.int64(4)],
    numpy.arange(4).reshape(2, 2),
    [numpy.ones(2), numpy.zeros(2)],
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("data", DATA, ids=repr)
def test_tensor(data):
    both(lambda: lucid.tensor(data), lambda: torch.tensor(data))
    if "np." in repr(data):  # PyTorch refuses to convert NumPy's numbers, Lucid converts them like Python's
        return
    for name in ("float64", "float16", "bfloat16", "int32", "int8", "uint8", "bool", "complex64"):
        both(lambda: lucid.tensor(data, dtype=getattr(lucid, name)), lambda: torch.tensor(data, dtype=getattr(torch, name)))


REFUSED = [
    [[1, 2], [1, 2, 3]],
    [[1], 2],
    [1, [2]],
    [[1, 2], [[3], [4]]],
    ["a"],
    "a",
    None,
    [None],
    {1: 2},
    {1, 2},
    [2**70],
    object(),
]


@pytest.mark.parametrize("data", REFUSED, ids=lambda d: repr(d)[:20])
def test_tensor_refused(data):
    assert both(lambda: lucid.tensor(data), lambda: torch.tensor(data))


@pytest.mark.parametrize("value", [300, -300, -1, 1.5, float("nan"), float("inf"), 1j, 2**40, 1e300, 2**70, True])
@pytest.mark.parametrize("name", ["uint8", "int8", "int64", "float16", "float32", "bool", "complex64"])
def test_values_out_of_range(value, name):
    both(lambda: lucid.tensor([value], dtype=getattr(lucid, name)), lambda: torch.tensor([value], dtype=getattr(torch, name)))


def test_error_texts():
    with pytest.raises(ValueError, match=r"expected sequence of length 2 at dim 1 \(got 3\)"):
        lucid.tensor([[1, 2], [1, 2, 3]])
    with pytest.raises(RuntimeError, match="Could not infer dtype of NoneType"):
        lucid.tensor(None)
    with pytest.raises(RuntimeError, match="without overflow"):
        lucid.tensor(300, dtype=lucid.uint8)
    for bad in ({"dtype": "float32"}, {"nothing": 1}, {"device": 1.5}):
        with pytest.raises(TypeError):
            lucid.tensor([1.0], **bad)
    with pytest.raises(TypeError):
        lucid.tensor()
    with pytest.raises(RuntimeError, match="floating point"):
        lucid.tensor([1], requires_grad=True)


def test_tensors_in_lists():
    assert lucid.tensor([numpy.array(1.5), numpy.array(2)]).tolist() == [1.5, 2]
    assert lucid.tensor([lucid.tensor(1.0), 2]).tolist() == [1, 2]
    assert lucid.tensor([lucid.tensor(1), 2.5]).dtype is lucid.float32
    assert lucid.tensor([lucid.tensor(1, dtype=lucid.float64), 2]).dtype is lucid.float64
    with pytest.raises((ValueError, RuntimeError)):
        lucid.tensor([lucid.ones(2), lucid.ones(2)])


def test_tensor_of_tensor():
    x = lucid.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="copy construct"):
        y = lucid.tensor(x)
    assert y.tolist() == [1, 1] and not y.requires_grad and y.data_ptr() != x.data_ptr()
    assert lucid.as_tensor(x) is x and lucid.as_tensor(x, dtype=lucid.float64).dtype is lucid.float64
    assert lucid.as_tensor([1, 2], lucid.float32).dtype is lucid.float32
    assert lucid.tensor([1.0], requires_grad=True).is_leaf and lucid.tensor([1.0], device="meta").is_meta
    assert lucid.scalar_tensor(3).dtype is lucid.float32 and lucid.scalar_tensor(3, dtype=lucid.int8).item() == 3


def test_a_list_that_changes_while_it_is_read():
    data = []

    class Shrinking:
        def __index__(self):
            data.clear()
            return 1

    data.extend([1, Shrinking(), 2, 3])
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        lucid.tensor(data, dtype=lucid.int64)


def test_legacy_constructor():
    assert lucid.Tensor().shape == (0,) and lucid.Tensor(2, 3).shape == (2, 3) and lucid.Tensor(5).shape == (5,)
    assert lucid.Tensor([1, 2]).tolist() == [1, 2] and lucid.Tensor([1, 2]).dtype is lucid.float32
    x = lucid.ones(2)
    assert lucid.Tensor(x).data_ptr() == x.data_ptr()
    with pytest.raises(TypeError):
        lucid.Tensor("a", "b")
    with pytest.raises((RuntimeError, ValueError)):
        lucid.Tensor(-1)


# --- numbers out ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]
)
@pytest.mark.parametrize("value", [0, 1, 2.5, -3])
def test_item(name, value):
    if value < 0 and name in ("uint8", "bool"):
        value = 1
    x, t = lucid.tensor(value, dtype=getattr(lucid, name)), torch.tensor(value, dtype=getattr(torch, name))
    for read in (lambda v: v.item(), bool, int, float, complex, lambda v: v.tolist(), lambda v: format(v, ""), round):
        if read is round and name == "complex64":
            continue
        both(lambda: read(x), lambda: read(t))
    both(lambda: operator.index(x), lambda: operator.index(t))


def test_single_values_only():
    for read in (bool, int, float, lambda v: v.item(), operator.index, complex):
        for shape in ((2,), (0,), (1, 2)):
            assert both(lambda: read(lucid.ones(shape)), lambda: read(torch.ones(shape)))
        assert read(lucid.ones((1, 1), dtype=lucid.int64)) == 1
    assert [1, 2, 3][lucid.tensor(1)] == 2
    assert f"{lucid.tensor(3.14159):.2f}" == "3.14"
    with pytest.raises(TypeError):
        f"{lucid.ones(2):.2f}"  # noqa: B018
    with pytest.raises(TypeError, match="0-d"):
        len(lucid.tensor(1))
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        bool(lucid.ones(2))
    for dtype in ("meta",):
        with pytest.raises(RuntimeError):
            lucid.ones((), device=dtype).item()


# --- operators --------------------------------------------------------------------------------------------------------------
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]
COMPARE = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("op", ARITHMETIC + COMPARE, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ["float32", "int64", "float16"])
def test_operators(op, name):
    t = torch.tensor([1, 2, 3], dtype=getattr(torch, name))
    u = torch.tensor([[2.0], [5.0]])
    x, y = of_torch(t), of_torch(u)
    both(lambda: op(x, y), lambda: op(t, u))
    for number in (2, 2.5, True, numpy.int64(2)):
        both(lambda: op(x, number), lambda: op(t, number))
        if not isinstance(number, numpy.generic):
            both(lambda: op(number, x), lambda: op(number, t))
    for other in ("a", None, [1], {}):
        both(lambda: op(x, other), lambda: op(t, other))
        both(lambda: op(other, x), lambda: op(other, t))


@pytest.mark.parametrize("op", BITS, ids=lambda f: f.__name__)
def test_bit_operators(op):
    t = torch.tensor([1, 6, 3])
    x = of_torch(t)
    both(lambda: op(x, x), lambda: op(t, t))
    both(lambda: op(x, 2), lambda: op(t, 2))
    both(lambda: op(2, x), lambda: op(2, t))
    if op in BITS[:3]:
        both(lambda: op(x > 2, x < 4), lambda: op(t > 2, t < 4))
    assert both(lambda: op(lucid.ones(2), 1), lambda: op(torch.ones(2), 1))


def test_unary_operators():
    t = torch.tensor([1.5, -2.0])
    x = of_torch(t)
    for op in (operator.neg, operator.pos, abs):
        both(lambda: op(x), lambda: op(t))
    both(lambda: ~of_torch(torch.tensor([1, -2])), lambda: ~torch.tensor([1, -2]))
    both(lambda: ~of_torch(t > 0), lambda: ~(t > 0))
    both(lambda: of_torch(torch.ones(2, 3)) @ of_torch(torch.ones(3)), lambda: torch.ones(2, 3) @ torch.ones(3))
    assert both(lambda: x @ 2, lambda: t @ 2)
    assert both(lambda: ~x, lambda: ~t)


IN_PLACE = [
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod, operator.ipow,
]  # fmt: skip


@pytest.mark.parametrize("op", IN_PLACE, ids=lambda f: f.__name__)
def test_in_place_operators(op):
    for other in (2, 1.5, torch.tensor([2.0, 3.0])):
        t = torch.tensor([3.0, -4.0])
        x = of_torch(t)
        y = op(x, of_torch(other) if isinstance(other, torch.Tensor) else other)
        assert y is x and x._version == 1
        assert_same(x, op(t, other))
    x = lucid.tensor([1, 2])
    with pytest.raises(RuntimeError):
        x += 1.5
    assert x.tolist() == [1, 2]


def test_equality_and_hash():
    x = lucid.ones(2)
    assert {x: 1}[x] == 1 and hash(x) == hash(x) and (x == x).tolist() == [True, True]
    assert (x == None) is False and (x != None) is True  # noqa: E711
    assert x in [x] and hash(lucid.ones(2)) != hash(x)


# --- attributes -------------------------------------------------------------------------------------------------------------
def test_geometry():
    t = torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)[1:]
    x = of_torch(t)
    for ask in (
        lambda v: tuple(v.shape), lambda v: tuple(v.size()), lambda v: v.size(-1), lambda v: v.stride(), lambda v: v.stride(1),
        lambda v: v.dim(), lambda v: v.ndim, lambda v: v.numel(), lambda v: v.nelement(), lambda v: v.element_size(),
        lambda v: v.itemsize, lambda v: v.nbytes, lambda v: v.storage_offset(), lambda v: v.is_contiguous(),
        lambda v: v.is_leaf,
        lambda v: v.requires_grad, lambda v: v.grad, lambda v: v.is_cuda, lambda v: v.is_meta, lambda v: v.is_shared(),
        lambda v: v.output_nr, lambda v: v.retains_grad, lambda v: v.ndimension(), lambda v: v.get_device(),
        lambda v: v.is_floating_point(), lambda v: v.is_complex(), lambda v: v.is_signed(), lambda v: v.is_inference(),
        lambda v: v.is_pinned(), lambda v: v.is_sparse, lambda v: len(v), lambda v: v.T.shape[0], lambda v: v.mT.stride(),
        lambda v: v.size(3), lambda v: v.stride(-4), lambda v: v.size(dim=1), lambda v: v.size(1, 2),
        lambda v: v.size(x=1), lambda v: v.size("a"), lambda v: v.H,
    ):  # fmt: skip
        both(lambda: ask(x), lambda: ask(t))
    for shape in ((2, 3, 4, 5), (1, 1, 1, 1), (2, 3), (2, 1, 1, 4)):
        for m in ("contiguous_format", "channels_last"):
            a, b = lucid.zeros(shape), torch.zeros(shape)
            assert a.is_contiguous(memory_format=getattr(lucid, m)) == b.is_contiguous(memory_format=getattr(torch, m))


def test_requires_grad():
    x = lucid.ones(2)
    assert x.requires_grad_() is x and x.requires_grad and x.is_leaf
    y = x * 2
    assert y.requires_grad and not y.is_leaf and not y.detach().requires_grad
    for call in (
        lambda: setattr(y, "requires_grad", False),
        lambda: setattr(lucid.ones(2, dtype=lucid.int64), "requires_grad", True),
    ):
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(RuntimeError):
        x.requires_grad = "yes"
    assert not x.requires_grad_(False).requires_grad


def test_grad_attribute():
    x = lucid.ones(2, requires_grad=True)
    assert x.grad is None
    g = lucid.ones(2)
    x.grad = g
    assert x.grad is g
    for bad in (lucid.ones(3), lucid.ones(2, dtype=lucid.float64), x, lucid.ones(2, device="meta")):
        with pytest.raises(RuntimeError):
            x.grad = bad
    with pytest.raises(TypeError):
        x.grad = 1
    del x.grad
    assert x.grad is None
    with pytest.warns(UserWarning, match="not a leaf"):
        assert (x * 2).grad is None


def test_data():
    x = lucid.ones(2, requires_grad=True)
    d = x.data
    d.add_(1)
    assert x.tolist() == [2, 2] and x._version == 0 and d._version == 1 and not d.requires_grad
    x.data = lucid.zeros(3)
    assert x.tolist() == [0, 0, 0] and x.requires_grad
    with pytest.raises(TypeError):
        x.data = [1]
    with pytest.raises(RuntimeError):
        x.data = lucid.zeros(3, dtype=lucid.int64)


def test_conversions():
    t = torch.tensor([0.0, 1.5, -2.0])
    x = of_torch(t)
    for name in ("float", "double", "half", "bfloat16", "int", "long", "short", "char", "bool", "cfloat", "cdouble", "cpu"):
        both(lambda: getattr(x, name)(), lambda: getattr(t, name)())
    assert x.float() is x and x.cpu() is x and x.double() is not x
    assert x.type() == "lucid.FloatTensor" and x.type(lucid.float64).dtype is lucid.float64
    assert x.type("lucid.LongTensor").dtype is lucid.int64
    with pytest.raises(ValueError):
        x.type("nonsense")
    assert x.new_tensor([1, 2]).dtype is lucid.float32 and x.new_tensor([1], dtype=lucid.int8).dtype is lucid.int8
    with pytest.raises(lucid.GpuNotAvailable):
        lucid.ones(1).pin_memory()


def test_attributes_and_dir():
    x = lucid.ones(2)
    x.note = 5
    assert x.note == 5 and x.__dict__ == {"note": 5} and "note" in dir(x) and "sum" in dir(x)
    with pytest.raises(AttributeError):
        x.missing  # noqa: B018
    with pytest.raises(AttributeError):
        x.shape = (3,)

    class Slotted(lucid.Tensor):
        pass

    with pytest.raises(TypeError, match="slots"):

        class Bad(lucid.Tensor):
            __slots__ = ("a",)


# --- arguments --------------------------------------------------------------------------------------------------------------
def test_keywords_and_aliases():
    x = lucid.arange(6.0).reshape(2, 3)
    expected = x.sum(1, True).tolist()
    for call in (
        lambda: x.sum(dim=1, keepdim=True), lambda: x.sum(axis=1, keepdims=True),
        lambda: lucid.sum(input=x, dim=1, keepdim=True),
        lambda: lucid.sum(x, (1,), keepdim=True), lambda: x.sum([1], True), lambda: x.sum(keepdim=True, dim=lucid.tensor(1)),
        lambda: x.sum(**{"".join(["d", "im"]): 1, "".join(["keep", "dim"]): True}),
    ):  # fmt: skip
        assert call().tolist() == expected
    assert lucid.add(x1=x, x2=x).tolist() == (x + x).tolist()


def test_star_form():
    x = lucid.arange(6.0)
    for call in (x.view, x.reshape):
        for args in ((2, 3), ((2, 3),), ([2, 3],), (lucid.Size([2, 3]),), (2, -1), (lucid.tensor(2), numpy.int64(3))):
            assert call(*args).shape == (2, 3)
    assert lucid.zeros(2, 3).shape == lucid.zeros((2, 3)).shape == lucid.zeros(size=(2, 3)).shape == (2, 3)
    assert x.view(2, 3).permute(1, 0).shape == (3, 2) and x.view(6).shape == (6,) and x.expand(2, 6).shape == (2, 6)
    assert lucid.zeros(()).shape == () and lucid.zeros([]).shape == ()


BAD_CALLS = [
    lambda m, x: m.sum(x, "a"),
    lambda m, x: m.sum(),
    lambda m, x: m.sum(x, nothing=1),
    lambda m, x: m.sum(x, 0, dim=0),
    lambda m, x: x.sum(0, 1),
    lambda m, x: x.sum(0, False, 0),
    lambda m, x: x.sum(1.0),
    lambda m, x: x.sum(True),
    lambda m, x: m.add(x),
    lambda m, x: m.add(x, "a"),
    lambda m, x: x.unsqueeze(1.5),
    lambda m, x: x.unsqueeze(),
    lambda m, x: m.cat(x),
    lambda m, x: m.cat([x, 1]),
    lambda m, x: m.cat([x, None]),
    lambda m, x: m.zeros("a"),
    lambda m, x: m.zeros(2, dtype=3),
    lambda m, x: m.zeros(2, requires_grad="yes"),
    lambda m, x: m.zeros(2, layout=3),
    lambda m, x: m.zeros(1.5),
    lambda m, x: m.zeros(),
]


@pytest.mark.parametrize("call", BAD_CALLS)
def test_bad_calls(call):
    with pytest.raises(TypeError):
        call(torch, torch.ones(2, 2))
    with pytest.raises(TypeError):
        call(lucid, lucid.ones(2, 2))


def test_error_lists_signatures():
    with pytest.raises(
        TypeError, match=r"max\(\) received an invalid combination of arguments - got \(Tensor, str\), but expected one of:"
    ):
        lucid.max(lucid.ones(2), "a")
    with pytest.raises(TypeError, match=r"(?s)got \(Tensor, dim=str\).*sum\(input: Tensor"):
        lucid.sum(lucid.ones(2), dim="a")


def test_error_names_the_argument():
    x = lucid.ones(2)
    calls = [
        (
            lambda: lucid.zeros(2, dtpye=lucid.float32),
            r"^zeros\(\) got an unexpected keyword argument 'dtpye'; did you mean 'dtype'\?",
        ),
        (lambda: x.sum(dmi=1), r"unexpected keyword argument 'dmi'; did you mean 'dim'\?"),
        (lambda: lucid.zeros(2, entirely_other=1), r"unexpected keyword argument 'entirely_other'\n"),
        (
            lambda: lucid.stack([1, 2]),
            r"argument 'tensors' \(position 1\) must be list\[Tensor\], not list, whose element 0 is int",
        ),
        (lambda: lucid.cat([x, "a"]), r"not list, whose element 1 is str"),
        (lambda: lucid.zeros(2, dtype="float"), r"argument 'dtype' must be dtype \| None, not str"),
        (lambda: x.sum(1.5), r"argument 'dim' \(position 2\) must be list\[int\] \| None, not float"),
        (lambda: lucid.nn.functional.conv2d(x, "w"), r"argument 'weight' \(position 2\) must be Tensor, not str"),
        (lambda: lucid.softmax(x), r"softmax\(\) missing a required argument: 'dim'"),
        (lambda: x.view(2, "a"), r"view\(\)"),
        (lambda: lucid.where(x, 1), r"^where\(\) received an invalid combination"),
        (lambda: lucid.zeros(**{"\ud800": 1}), "."),
    ]
    for call, text in calls:
        with pytest.raises((TypeError, UnicodeEncodeError), match=text):
            call()


def test_errors_of_losses_products_and_kernels():
    logits, F = lucid.randn(3, 4), lucid.nn.functional
    for loss in (F.cross_entropy, F.nll_loss):
        with pytest.raises(IndexError, match=r"Target 5 is out of bounds\."):
            loss(logits, lucid.tensor([0, 5, 1]))
        with pytest.raises(RuntimeError, match="Long but found float32: a target of classes is int64 or uint8"):
            loss(logits, lucid.ones(3))
    with pytest.raises(RuntimeError, match="subscript j has size 4 for operand 1 which does not broadcast"):
        lucid.einsum("ij,jk->ik", lucid.ones(2, 3), lucid.ones(4, 2))
    with pytest.raises(RuntimeError, match="subscript i is repeated for operand 0"):
        lucid.einsum("ii->i", lucid.ones(2, 3))
    with pytest.raises(RuntimeError, match=r"input size per channel: \[2, 5\]\. Kernel size: \[3, 3\]"):
        F.conv2d(lucid.ones(1, 1, 2, 5), lucid.ones(1, 1, 3, 3))


def test_big_ints():
    x = lucid.ones(2)
    for call in (lambda: x + 2**70, lambda: lucid.full((2,), 2**70)):
        with pytest.raises((RuntimeError, OverflowError)):
            call()
    for call, error in ((lambda: x.unsqueeze(2**70), ValueError), (lambda: x.view(2**70), TypeError)):
        with pytest.raises(error, match="Overflow"):
            call()
    assert (lucid.tensor([1]) + (2**62)).item() == 2**62 + 1


def test_out():
    x, y, out = lucid.ones(2), lucid.tensor([1.0, 2.0]), lucid.empty(2)
    assert lucid.add(x, y, out=out) is out and out.tolist() == [2, 3] and out._version == 1
    assert lucid.add(x, y, out=None).tolist() == [2, 3]
    values, indices = lucid.empty(0), lucid.empty(0, dtype=lucid.int64)
    result = lucid.max(lucid.tensor([[1.0, 3.0]]), dim=1, out=(values, indices))
    assert result.values is values and result[1] is indices and values.tolist() == [3] and indices.tolist() == [1]
    with pytest.raises(TypeError):
        lucid.max(x, dim=0, out=out)
    with pytest.raises(RuntimeError):
        lucid.add(x, y, out=lucid.empty(2, dtype=lucid.int64))
    with pytest.raises(TypeError):
        x.view(2, out=out)


def test_factories():
    assert lucid.zeros(2, requires_grad=True).requires_grad and lucid.ones(2, layout=lucid.strided, pin_memory=False).ndim
    with pytest.raises(RuntimeError):
        lucid.zeros(2, dtype=lucid.int64, requires_grad=True)
    with pytest.raises(lucid.GpuNotAvailable):
        lucid.zeros(2, pin_memory=True)


def test_named_tuples():
    result = lucid.max(lucid.tensor([[1.0, 3.0], [4.0, 2.0]]), dim=1)
    assert (
        result.values.tolist() == [3, 4]
        and result.indices.tolist() == [1, 0]
        and isinstance(result, tuple)
        and len(result) == 2
    )
    values, indices = result
    assert values is result[0] and indices is result[1] and "values=" in repr(result)
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is type(result) is lucid.return_types.max and again.values.tolist() == [3, 4]
    assert type(lucid.ones(3).unbind()) is tuple


def test_numbers_are_weak():
    t, x = torch.ones(2, dtype=torch.float16), lucid.ones(2, dtype=lucid.float16)
    for number in (2, 2.5, True, math.pi):
        both(lambda: x + number, lambda: t + number)
    both(lambda: lucid.ones(2, dtype=lucid.int8) * 1.5, lambda: torch.ones(2, dtype=torch.int8) * 1.5)
    both(lambda: lucid.ones(2) * 1j, lambda: torch.ones(2) * 1j)


# --- subclasses -------------------------------------------------------------------------------------------------------------
def test_subclasses():
    class Mine(lucid.Tensor):
        def __init__(self, *args, **kwargs):
            self.made = True

    x = Mine([1.0, 2.0])
    assert x.made and x.tolist() == [1, 2] and isinstance(x, lucid.Tensor)
    y = lucid.ones(2).as_subclass(Mine)
    assert type(y) is Mine and y.data_ptr()
    base = lucid.ones(2, requires_grad=True)
    z = base.as_subclass(Mine)
    (z * 2).sum().backward()
    assert base.grad.tolist() == [2, 2]
    p = lucid.Tensor._make_subclass(Mine, base, True)
    assert p.is_leaf and p.requires_grad and p.data_ptr() == base.data_ptr()
    for bad in (int, 3):
        with pytest.raises(TypeError):
            base.as_subclass(bad)


def test_reference_counts():
    x, y = lucid.ones(64), lucid.ones(64)
    before = [sys.getrefcount(v) for v in (x, y, lucid.float32, lucid.add)]
    for _ in range(100):
        x + y, x + 1, 2 - x, x.sum(dim=0), x[0], x[1:3], x.view(8, 8), x.shape, x.dtype, x.device, lucid.cat([x, y]), x.tolist()
        x == None, x[None], x.max(0), lucid.tensor([1.0]), x.size(), x.stride(), x.unbind(), lucid.add(x, y, out=y)  # noqa: E711
        for bad in (lambda: x + "a", lambda: x.sum("a"), lambda: x[99], lambda: lucid.cat([x, 1])):
            with pytest.raises((TypeError, IndexError)):
                bad()
    assert [sys.getrefcount(v) for v in (x, y, lucid.float32, lucid.add)] == before

"""Floats of one byte: PyTorch's rounding, limits, files and refusals. Moves work here also where PyTorch has no kernel."""

import copy
import io
import pickle
import warnings

import numpy
import pytest
import torch

import lucid

NAMES = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
WIDER = ["float64", "float32", "float16", "bfloat16", "complex64", "bool", "int8"]


def same_dtype(theirs):
    return getattr(lucid, str(theirs).split(".")[1])


def outcome(call):
    """What a call gives, as plain values; None if it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call()
        except (RuntimeError, TypeError, NotImplementedError):
            return None
    if not isinstance(found, (torch.Tensor, lucid.Tensor)):
        return repr(found).replace("lucid", "torch")
    return str(found.dtype).split(".")[1], found.shape, found.stride(), repr(found.tolist())


@pytest.mark.parametrize("name", NAMES)
def test_rounding(name):
    """Of floats with all bits of sign, exponent and the upper half of the mantissa; a tie, just below and just above it."""
    ours, theirs = getattr(lucid, name), getattr(torch, name)
    upper = numpy.arange(1 << 21, dtype=numpy.uint32) << 11
    for rest in (0, 1, 0x7FF):
        x = torch.from_numpy((upper | rest).view(numpy.float32))
        expected, found = x.to(theirs).view(torch.uint8).numpy(), lucid.from_numpy(x.numpy()).to(ours).view(lucid.uint8).numpy()
        assert numpy.array_equal(expected, found)


@pytest.mark.parametrize("name", NAMES)
def test_conversions(name):
    ours, theirs = getattr(lucid, name), getattr(torch, name)
    codes = torch.arange(256, dtype=torch.uint8)
    all_of_it, same = codes.view(theirs), lucid.from_numpy(codes.numpy()).view(ours)
    for wide in [*WIDER, *NAMES]:
        a, b = all_of_it.to(getattr(torch, wide)), same.to(getattr(lucid, wide))
        if wide == "int8":  # of NaN and large numbers it is whatever the machine gives
            inside = all_of_it.float().abs() < 100
            a, b = a[inside], b[lucid.from_numpy(inside.numpy())]
        assert outcome(lambda a=a: a) == outcome(lambda b=b: b), wide
    for wide in [*WIDER, "int64", "uint8", "uint16"]:
        values = [0, 1, 3, 100] if wide != "bool" else [False, True]
        a, b = torch.tensor(values).to(getattr(torch, wide)), lucid.tensor(values).to(getattr(lucid, wide))
        assert b.to(ours).tolist() == a.to(theirs).tolist()
    assert same[::3].float().tolist()[:9] == all_of_it[::3].float().tolist()[:9]
    strided = lucid.zeros(2, 300, dtype=ours).t().copy_(lucid.arange(600.0).reshape(300, 2) / 7)
    assert strided.tolist() == (torch.arange(600.0).reshape(300, 2) / 7).to(theirs).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_limits(name):
    ours, theirs = getattr(lucid, name), getattr(torch, name)
    for field in ("itemsize", "is_floating_point", "is_complex", "is_signed"):
        assert getattr(ours, field) == getattr(theirs, field)
    assert str(ours) == f"lucid.{name}" and pickle.loads(pickle.dumps(ours)) is ours and same_dtype(theirs) is ours
    for field in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution"):
        assert getattr(lucid.finfo(ours), field) == getattr(torch.finfo(theirs), field), field
    assert repr(lucid.finfo(ours)) == repr(torch.finfo(theirs))


def calls(m):
    """Calls that PyTorch's CPU takes, by name."""
    f, e = m.float8_e4m3fn, m.float8_e5m2
    x = m.tensor([1.0, 2.5, -3.0, 500.0, 0.001, float("nan"), float("inf")])
    a, b, ones = x.to(f), x.to(e), m.ones(2, 3, dtype=f)
    return {
        "repr": lambda: repr(a) + repr(b) + repr(ones) + repr(a[0]) + repr(ones[:0]),
        "item": lambda: (a[1].item(), b.tolist()[:5], a.type(), a.is_floating_point()),
        "equal elements": lambda: a == a,
        "other elements": lambda: b != b,
        "a number": lambda: a == 2.5,
        "isnan": lambda: a.isnan(),
        "isinf": lambda: b.isinf(),
        "abs": lambda: a.abs(),
        "where": lambda: m.where(a == a, a, a),
        "cat": lambda: m.cat([a, a]),
        "stack": lambda: m.stack([ones, ones], 1),
        "index": lambda: a[[0, 2]],
        "mask": lambda: a[x > 0],
        "select": lambda: ones.index_select(1, m.tensor([2, 0])),
        "put": lambda: a.clone().index_put_((m.tensor([1]),), m.ones(1, dtype=f)),
        "roll": lambda: a.roll(2),
        "pad": lambda: m.nn.functional.pad(a, (1, 2)),
        "repeat": lambda: ones.repeat(2, 2),
        "repeat_interleave": lambda: a.repeat_interleave(2),
        "reshape": lambda: ones.t().reshape(6),
        "split": lambda: a.split(3)[1],
        "unfold": lambda: a.unfold(0, 2, 1),
        "masked_select": lambda: a.masked_select(x > 0),
        "embedding": lambda: m.nn.functional.embedding(m.tensor([1, 0]), ones),
        "view as bytes": lambda: a.view(m.uint8),
        "view of bytes": lambda: m.tensor([1, 200], dtype=m.uint8).view(f),
        "fill": lambda: a.clone().fill_(3),
        "factories": lambda: m.cat(
            [m.zeros(1, dtype=f), m.full((1,), 1.5, dtype=f), m.tensor([7.0, 1e9], dtype=f), m.ones_like(a)]
        ),
        "assignment": lambda: a.clone().__setitem__(0, 2.0),
        "copy": lambda: m.zeros(7).copy_(a),
        "copy across": lambda: m.zeros(7, dtype=e).copy_(a),
        "deepcopy": lambda: copy.deepcopy(a),
        "frombuffer": lambda: m.frombuffer(bytearray(b"\x38\x40"), dtype=f),
        "diag": lambda: m.ones(2, dtype=f).diag(),
        "can_cast": lambda: (m.can_cast(f, m.float32), m.can_cast(m.float32, f), m.can_cast(f, m.int32)),
        "gradient": lambda: m.autograd.grad((y := m.ones(2, requires_grad=True)).to(f).float().sum(), y)[0],
    }


@pytest.mark.parametrize("name", calls(torch))
def test_calls(name):
    expected = outcome(calls(torch)[name])
    assert expected is not None and outcome(calls(lucid)[name]) == expected


def refused(m):
    f, e = m.float8_e4m3fn, m.float8_e5m2
    a, x, F = m.ones(4, dtype=f), m.ones(4), m.nn.functional
    return [
        *(lambda op=op: op(a, a) for op in (m.add, m.sub, m.div, m.lt, m.maximum, m.bitwise_and, m.logical_and)),
        *(lambda op=op: op(a) for op in (m.neg, m.sum, m.exp, m.sort, m.cumsum, m.argmax, m.relu, m.sigmoid, m.unique, m.std)),
        *(lambda op=op: op(2, dtype=f) for op in (m.rand, m.randn, m.arange)),
        lambda: a + x,
        lambda: a == x,
        lambda: m.cat([a, x]),
        lambda: m.cat([a, a.to(e)]),
        lambda: m.promote_types(f, m.float32),
        lambda: m.promote_types(f, e),
        lambda: m.promote_types(m.bool, f),
        lambda: a * 2,
        lambda: a.clone().add_(1),
        lambda: a.numpy(),
        lambda: m.full((2,), 500.0, dtype=f),
        lambda: m.full((2,), float("inf"), dtype=f),
        lambda: a * 1j,
        lambda: a.softmax(0),
        lambda: F.layer_norm(a, (4,)),
        lambda: F.max_pool1d(a.view(1, 1, 4), 2),
    ]


def test_arithmetic_is_refused():
    for theirs, ours in zip(refused(torch), refused(lucid)):
        assert outcome(theirs) is None and outcome(ours) is None


@pytest.mark.parametrize("name", NAMES)
def test_files(name, tmp_path):
    ours, theirs = getattr(lucid, name), getattr(torch, name)
    x, y = lucid.arange(1.0, 9.0).to(ours), torch.arange(1.0, 9.0).to(theirs)
    file = io.BytesIO()
    lucid.save({"x": x, "part": x[2:]}, file)
    file.seek(0)
    read = torch.load(file)
    assert read["part"].dtype is theirs and read["part"].tolist() == y[2:].tolist()
    file = io.BytesIO()
    torch.save([y, torch.nn.Parameter(y)], file)
    file.seek(0)
    read = lucid.load(file)
    assert read[0].dtype is ours and read[1].tolist() == y.tolist()
    assert pickle.loads(pickle.dumps(x)).tolist() == y.tolist()
    lucid.save_safetensors({"x": x}, tmp_path / "x.safetensors")
    back = lucid.load_safetensors(tmp_path / "x.safetensors")["x"]
    assert back.dtype is ours and back.tolist() == y.tolist()
    if name != "float8_e8m0fnu":
        assert lucid.from_dlpack(y).tolist() == torch.from_dlpack(x).tolist() == y.tolist()


def test_compiled_and_mapped():
    def f(x):
        z = x.to(lucid.float8_e4m3fn)
        return (z.float() * 2 + 1).to(lucid.float8_e5m2), z == z, lucid.cat([z, z]), z.abs()

    x = lucid.tensor([1.03, -500.0, float("nan")])
    compiled = lucid.compile(f)
    for _ in range(3):
        assert [repr(t.tolist()) for t in compiled(x)] == [repr(t.tolist()) for t in f(x)]
    assert lucid.vmap(lambda z: z.to(lucid.float8_e5m2))(lucid.ones(2, 3)).dtype is lucid.float8_e5m2


@pytest.mark.parametrize("out", ["float32", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize("second", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("rowwise", [False, True])
def test_scaled_mm(out, second, rowwise):
    results = []
    for m in (torch, lucid):
        m.manual_seed(0)
        a, b = m.randn(16, 32).to(m.float8_e4m3fn), m.randn(32, 16).t().contiguous().t().to(getattr(m, second))
        scales = (m.rand(16, 1) + 0.5, m.rand(1, 16) + 0.5) if rowwise else (m.tensor(0.5), m.tensor(1.5))
        result = m._scaled_mm(a, b, *scales, bias=None if rowwise else m.arange(16.0), out_dtype=getattr(m, out))
        assert result.dtype is getattr(m, out)
        results.append(result.float().numpy())
    step = {"float32": 1e-5, "bfloat16": 2**-7, "float8_e4m3fn": 2**-3}[out]  # sums in another order may round to a neighbour
    assert numpy.allclose(*results, rtol=step, atol=1e-4) and (abs(results[0] - results[1]) > 1e-4).mean() < 0.1


def test_scaled_mm_refuses():
    a, one = lucid.ones(16, 16).to(lucid.float8_e4m3fn), lucid.tensor(1.0)
    for bad in (
        (a.float(), a, one, one),
        (a, a, one.double(), one),
        (a, a, lucid.ones(3), one),
        (a[0], a, one, one),
        (a, a[:8], one, one),
    ):
        with pytest.raises((RuntimeError, ValueError)):
            lucid._scaled_mm(*bad)

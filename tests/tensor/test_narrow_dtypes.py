"""Dtypes that are stored narrow and computed wide: complex32, uint16, uint32; and uint64, which is only stored."""

import numpy
import pytest
import torch

import lucid

UNSIGNED = ("uint16", "uint32", "uint64")
NAMES = ("bool", "uint8", "int8", "int16", "int32", "int64", *UNSIGNED, "float16", "bfloat16", "float32", "float64",
         "complex32", "complex64", "complex128")  # fmt: skip


def outcome(call):
    try:
        return str(call()).split(".")[-1]
    except RuntimeError:
        return "RuntimeError"


@pytest.mark.parametrize("a", NAMES)
def test_common_type(a):
    for b in NAMES:
        x, y = (getattr(torch, n) for n in (a, b))
        theirs = outcome(lambda x=x, y=y: torch.promote_types(x, y))
        x, y = (lucid.zeros(2, dtype=getattr(lucid, n)) for n in (a, b))
        ours = outcome(lambda x=x, y=y: lucid.cat((x, y)).dtype)
        assert ours == theirs, (a, b)


@pytest.mark.parametrize("to", NAMES)
def test_conversions(to):
    values = {"int64": [0, 1, 3, 200, 60000], "float32": [0.0, 1.5, 100.25], "float64": [0.0, 2.75]}
    for name in (*UNSIGNED, "complex32", *values):
        source = values.get(name, [1, 2, 250])
        theirs = torch.tensor(source, dtype=getattr(torch, name)).to(getattr(torch, to))
        ours = lucid.tensor(source, dtype=getattr(lucid, name)).to(getattr(lucid, to))
        assert ours.tolist() == theirs.tolist(), (name, to)


@pytest.mark.parametrize("name", UNSIGNED)
def test_unsigned_limits(name):
    dtype, most = getattr(lucid, name), torch.iinfo(getattr(torch, name)).max
    assert lucid.iinfo(dtype).max == most and lucid.iinfo(dtype).min == 0
    x = lucid.tensor([0, most], dtype=dtype)
    assert x.tolist() == [0, most] and x[1].item() == most
    assert not dtype.is_signed
    with pytest.raises((RuntimeError, OverflowError)):
        lucid.tensor([most + 1], dtype=dtype)
    array = x.numpy()
    assert array.dtype == name and array.tolist() == [0, most]
    assert lucid.from_numpy(numpy.array([7, most], dtype=name)).dtype is dtype
    assert lucid.from_dlpack(array).tolist() == [0, most]


def test_unsigned_arithmetic_wraps():
    x = lucid.tensor([1, 65535], dtype=lucid.uint16)
    assert (x * 2).tolist() == [2, 65534] and (x * 2).dtype is lucid.uint16
    assert (x + x).tolist() == [2, 65534]
    assert x.sum().item() == 65536 and x.sum().dtype is lucid.int64
    with pytest.raises(NotImplementedError):
        lucid.tensor([1], dtype=lucid.uint64) + lucid.tensor([1], dtype=lucid.uint64)


def test_complex32():
    source = [1 + 2j, 3 - 1j, 0.5j]
    x, y = lucid.tensor(source, dtype=lucid.complex32), torch.tensor(source, dtype=torch.complex32)
    assert x.real.dtype is lucid.float16 and x.real.tolist() == y.real.tolist()
    assert x.abs().tolist() == y.abs().tolist()
    assert (x * x).tolist() == (y * y).tolist() and (x * x).dtype is lucid.complex32
    assert (lucid.ones(2, dtype=lucid.half) * 1j).dtype is lucid.complex32
    assert lucid.view_as_real(x).tolist() == torch.view_as_real(y).tolist()
    assert x.chalf().data_ptr() == x.data_ptr() and x.type() == "lucid.ComplexHalfTensor"
    assert repr(x) == repr(y).replace("torch", "lucid")

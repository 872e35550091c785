"""dtype, device, Size, Generator, memory_format, layout: they compare, hash, print and pickle like PyTorch's."""

import copy
import pickle

import pytest
import torch

import lucid

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


def again(x):
    return [copy.copy(x), copy.deepcopy(x), *(pickle.loads(pickle.dumps(x, p)) for p in range(2, pickle.HIGHEST_PROTOCOL + 1))]


@pytest.mark.parametrize("name", DTYPES)
def test_dtype(name):
    mine, theirs = getattr(lucid, name), getattr(torch, name)
    assert repr(mine) == f"lucid.{name}" == str(mine)
    for attribute in ("is_floating_point", "is_complex", "is_signed", "itemsize"):
        assert getattr(mine, attribute) == getattr(theirs, attribute), attribute
    assert str(mine.to_real())[6:] == str(theirs.to_real())[6:]
    if name.startswith(("float", "bfloat", "complex")):
        assert str(mine.to_complex())[6:] == str(theirs.to_complex())[6:]
    else:
        with pytest.raises(RuntimeError):
            mine.to_complex()
    assert all(x is mine for x in again(mine))
    assert isinstance(mine, lucid.dtype) and {mine: 1}[mine] == 1 and mine != "float32"
    assert lucid.zeros(1, dtype=mine).dtype is mine


def test_dtype_names():
    assert (
        lucid.float is lucid.float32
        and lucid.double is lucid.float64
        and lucid.long is lucid.int64
        and lucid.int is lucid.int32
    )
    for python, dtype in ((float, "float64"), (int, "int64"), (bool, "bool"), (complex, "complex128")):
        assert lucid.zeros(1, dtype=python).dtype is getattr(lucid, dtype)
    with pytest.raises(TypeError):
        lucid.zeros(1, dtype="float32")
    with pytest.raises(TypeError):
        lucid.dtype()


def test_default_dtype():
    try:
        lucid.set_default_dtype(lucid.float64)
        assert lucid.tensor(1.5).dtype is lucid.float64 and lucid.zeros(2).dtype is lucid.get_default_dtype()
        assert lucid.tensor(1j).dtype is lucid.complex128
    finally:
        lucid.set_default_dtype(lucid.float32)
    for bad in (lucid.int64, lucid.complex64, "float32", 3):
        with pytest.raises(TypeError):
            lucid.set_default_dtype(bad)


@pytest.mark.parametrize("args", [("cpu",), ("cuda",), ("cuda:1",), ("meta",), ("cpu", 0), ("cuda", 3)])
def test_device(args):
    mine, theirs = lucid.device(*args), torch.device(*args)
    assert repr(mine) == repr(theirs) and str(mine) == str(theirs)
    assert (mine.type, mine.index) == (theirs.type, theirs.index)
    assert all(x == mine and hash(x) == hash(mine) for x in again(mine))
    assert lucid.device(str(mine)) == mine == lucid.device(mine)


def test_device_comparison():
    names = ["cpu", "cuda", "cuda:0", "cuda:1", "meta", "cpu:0"]
    for a in names:
        for b in names:
            assert (lucid.device(a) == lucid.device(b)) == (torch.device(a) == torch.device(b)) == (a == b)
    assert lucid.device("cpu") != "cpu" and lucid.device("cpu") != 1
    assert lucid.device("gpu") == lucid.device("cuda") and lucid.device("gpu:1") == lucid.device("cuda:1")


@pytest.mark.parametrize("bad", ["foo", "", "cuda:", "cuda:x", "cuda:-1", "cuda:1:2", "cuda:1000", ":1"])
def test_device_refused(bad):
    with pytest.raises(RuntimeError):
        lucid.device(bad)
    with pytest.raises(RuntimeError):
        lucid.zeros(1, device=bad)


def test_device_absent():
    with pytest.raises(lucid.GpuNotAvailable):
        lucid.device("metal")
    with pytest.raises(TypeError):
        lucid.device(1.5)
    with pytest.raises(RuntimeError):
        lucid.device("cuda:1", 2)


def test_default_device():
    with lucid.device("meta"):
        assert lucid.zeros(2).is_meta and lucid.tensor([1.0]).is_meta
        with lucid.device("cpu"):
            assert not lucid.zeros(2).is_meta
        assert lucid.get_default_device() == lucid.device("meta")
    assert lucid.zeros(2).device == lucid.device("cpu")
    lucid.set_default_device("meta")
    assert lucid.zeros(2).is_meta
    lucid.set_default_device(None)
    assert not lucid.zeros(2).is_meta


def test_size():
    mine, theirs = lucid.Size([2, 3]), torch.Size([2, 3])
    assert repr(mine) == repr(theirs).replace("torch", "lucid")
    assert mine == (2, 3) and hash(mine) == hash((2, 3)) and mine.numel() == 6 and lucid.Size([]).numel() == 1
    for value in (mine + (1,), (1,) + mine, mine * 2, 2 * mine, mine[:1], mine[::-1], mine[0:0], lucid.zeros(2, 3).shape):
        assert type(value) is lucid.Size
    assert mine + (1,) == (2, 3, 1) and (1,) + mine == (1, 2, 3) and mine * 2 == (2, 3, 2, 3) and mine[::-1] == (3, 2)
    assert mine[0] == 2 and mine[-1] == 3 and type(mine[0]) is int and isinstance(mine, tuple)
    assert all(x == mine and type(x) is lucid.Size for x in again(mine))
    assert lucid.Size(lucid.tensor([2, 3])) == mine and lucid.Size() == ()
    for bad in ([2, 3.0], ["a"], [True], 3):
        with pytest.raises(TypeError):
            lucid.Size(bad)
    with pytest.raises(TypeError):
        mine + [1]
    assert lucid.zeros(mine).shape == mine and lucid.zeros(2, 3).reshape(lucid.Size([6])).shape == (6,)


def test_shape_follows_the_tensor():
    x = lucid.zeros(2, 3)
    assert x.shape == (2, 3)
    x.t_()
    assert x.shape == (3, 2) == x.size() and x.size(0) == 3 and x.size(dim=-1) == 2
    x.data = lucid.zeros(4)
    assert x.shape == (4,)


def test_generator():
    g, h = lucid.Generator(), torch.Generator()
    assert g.initial_seed() == h.initial_seed() and g.device == lucid.device("cpu")
    assert g.manual_seed(7) is g and h.manual_seed(7).initial_seed() == g.initial_seed()
    assert g.get_state().tolist() == h.get_state().tolist()
    state = g.get_state()
    a = lucid.rand(5, generator=g)
    assert a.tolist() == torch.rand(5, generator=h).tolist()
    copies = again(g)[2:] + [g.clone_state()]
    b = lucid.rand(5, generator=g).tolist()
    assert all(lucid.rand(5, generator=c).tolist() == b for c in copies)
    g.set_state(state)
    assert lucid.rand(5, generator=g).tolist() == a.tolist()
    assert g.seed() == g.initial_seed() and g.seed() != g.seed()
    for seed in (-1, 2**64 - 1, -(2**63)):
        assert g.manual_seed(seed).initial_seed() == h.manual_seed(seed).initial_seed()
    with pytest.raises((TypeError, RuntimeError)):
        g.manual_seed(2**64)
    with pytest.raises(TypeError):
        g.manual_seed(1.5)
    with pytest.raises(TypeError):
        g.set_state([1, 2])
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        g.set_state(lucid.zeros(3, dtype=lucid.uint8))


def test_names():
    for name in ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format", "strided"):
        value = getattr(lucid, name)
        assert repr(value) == f"lucid.{name}" and all(x is value for x in again(value))
    assert isinstance(lucid.channels_last, lucid.memory_format) and isinstance(lucid.strided, lucid.layout)
    assert lucid.zeros(1).layout is lucid.strided and lucid.channels_last != lucid.contiguous_format


def test_ops_are_objects():
    import inspect

    assert lucid.sum.__name__ == "sum" and lucid.sum.__module__ == "lucid" and "sum(" in lucid.sum.__doc__
    assert lucid.Tensor.sum is lucid.sum and pickle.loads(pickle.dumps(lucid.sum)) is lucid.sum
    assert list(inspect.signature(lucid.unsqueeze).parameters) == ["input", "dim"]
    assert "sum" in repr(lucid.sum) and callable(lucid.sum)
    assert lucid.ones(3).sum.__self__.shape == (3,)


def test_errors_have_classes():
    assert issubclass(lucid.LucidError, RuntimeError)
    for name in ("OutOfMemory", "ShapeMismatch", "DtypeMismatch", "DeviceMismatch", "VersionMismatch", "GpuNotAvailable"):
        assert issubclass(getattr(lucid, name), lucid.LucidError)
    assert issubclass(lucid.IndexError, IndexError) and issubclass(lucid.IndexError, lucid.LucidError)
    assert issubclass(lucid.NotImplementedError, NotImplementedError)
    with pytest.raises(lucid.ShapeMismatch, match=r"2.*3"):
        lucid.zeros(2) + lucid.zeros(3)
    with pytest.raises(lucid.LucidError):
        lucid.empty(2**61, 2**61)
    with pytest.raises(lucid.OutOfMemory):
        lucid.empty(2**45)


def test_flush_denormal():
    tiny = lucid.full((100_000,), 1e-40)  # subnormal; large enough that threads share it
    assert lucid.set_flush_denormal(True)
    try:
        assert (tiny * 0.5).count_nonzero() == 0
    finally:
        assert lucid.set_flush_denormal(False)
    assert (tiny * 0.5).count_nonzero() == tiny.numel()

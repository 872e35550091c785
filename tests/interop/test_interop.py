"""Memory shared with others: NumPy, buffers, DLPack; copies and pickles; other processes."""

import copy
import gc
import io
import multiprocessing
import pickle
import weakref

import numpy
import pytest
import torch

import lucid
from tests.oracle import assert_same, of_torch

NUMPY = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]


# --- NumPy ------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NUMPY)
def test_numpy_both_ways(name):
    a = numpy.arange(12).reshape(3, 4).astype(name)
    x = lucid.from_numpy(a)
    assert x.dtype is getattr(lucid, name) and x.tolist() == a.tolist() and x.data_ptr() == a.ctypes.data
    b = x.numpy()
    assert b.dtype == a.dtype and b.ctypes.data == a.ctypes.data and (b == a).all()
    x[0, 0] = 1
    assert a[0, 0] == 1
    a[1, 1] = 0
    assert x[1, 1].item() == 0


def test_numpy_strides():
    a = numpy.arange(24.0).reshape(2, 3, 4)
    for view in (a.T, a[:, ::2], a[1], a[..., 1], a[:0], numpy.broadcast_to(a[0, 0], (3, 4)), numpy.array(1.5)):
        x = lucid.from_numpy(view)
        assert x.tolist() == view.tolist() and x.shape == view.shape
        if view.size:
            assert x.stride() == tuple(s // 8 for s in view.strides)
    x = lucid.arange(24.0).reshape(2, 3, 4)
    for y in (x.permute(2, 0, 1), x[:, ::2], x[1], x[:0], x[0, 0, 0], x[:1].expand(3, 3, 4)):
        b = y.numpy()
        assert b.tolist() == y.tolist() and b.shape == y.shape
        if y.numel():
            assert b.strides == tuple(4 * s for s in y.stride())


def test_numpy_keeps_memory_alive():
    a = numpy.ones(1000)
    gone = weakref.ref(a)
    x = lucid.from_numpy(a)
    y = x[3:]
    del a, x
    gc.collect()
    assert gone() is not None and y.sum().item() == 997
    del y
    gc.collect()
    assert gone() is None
    x = lucid.ones(1000)
    b = x.numpy()
    x.data = lucid.zeros(5)  # x goes elsewhere; the array still has its memory
    del x
    gc.collect()
    lucid.zeros(1000)
    assert b.sum() == 1000


def test_numpy_refused():
    with pytest.raises(TypeError, match="expected np.ndarray"):
        lucid.from_numpy([1, 2])
    with pytest.raises(ValueError, match="negative"):
        lucid.from_numpy(numpy.ones(3)[::-1])
    with pytest.raises(ValueError, match="multiple of the element"):
        lucid.from_numpy(numpy.zeros(4, dtype="i1,f4")["f1"])
    with pytest.raises(ValueError, match="byte order"):
        lucid.from_numpy(numpy.ones(2, ">f4"))
    for bad in (numpy.array(["a"]), numpy.array([object()]), numpy.ones(2, "M8[s]")):
        with pytest.raises(TypeError, match="can't convert"):
            lucid.from_numpy(bad)
    with pytest.raises(RuntimeError, match="requires grad"):
        lucid.ones(2, requires_grad=True).numpy()
    with pytest.raises(TypeError):
        lucid.ones(2, dtype=lucid.bfloat16).numpy()
    with pytest.raises(TypeError):
        lucid.ones(2, device="meta").numpy()
    assert lucid.ones(2, requires_grad=True).numpy(force=True).tolist() == [1, 1]


def test_read_only_memory():
    a = numpy.ones(3)
    a.flags.writeable = False
    x = lucid.from_numpy(a)
    with pytest.raises(lucid.LucidError, match="read-only"):
        x.add_(1)
    with pytest.raises(lucid.LucidError, match="read-only"):
        x[0] = 5
    assert a.tolist() == [1, 1, 1] and (x + 1).tolist() == [2, 2, 2]
    assert not x.numpy().flags.writeable and memoryview(x).readonly


def test_numpy_functions_of_tensors():
    x = lucid.tensor([1.0, 4.0])
    assert numpy.asarray(x).dtype == "float32" and numpy.array(x, dtype="float64").tolist() == [1, 4]
    assert isinstance(numpy.sqrt(x), lucid.Tensor) and numpy.sqrt(x).tolist() == [1, 2]
    assert numpy.sum(numpy.asarray(x)) == 5
    copied = numpy.array(x, copy=True)
    copied[0] = 9
    assert x[0].item() == 1
    with pytest.raises(RuntimeError, match="requires grad"):
        numpy.asarray(lucid.ones(2, requires_grad=True))
    leaf = lucid.ones(2, requires_grad=True)
    with lucid.no_grad():
        leaf.numpy()[0], numpy.asarray(leaf)[1] = 2, 3  # what is not recorded may be read and written
    assert leaf.tolist() == [2, 3]
    assert (x + numpy.float32(1)).dtype is lucid.float32 and (numpy.float64(2) * x).tolist() == [2, 8]
    assert x.sum(dim=numpy.int64(0)).item() == 5


@pytest.mark.parametrize("make", ["tensor", "as_tensor", "asarray"])
def test_from_arrays(make):
    a = numpy.arange(3.0)
    x = getattr(lucid, make)(a)
    assert x.dtype is lucid.float64 and x.tolist() == [0, 1, 2]
    a[0] = 7
    assert (x[0].item() == 7) == (make != "tensor")
    assert getattr(lucid, make)(a, dtype=lucid.int32).tolist() == [7, 1, 2]
    assert getattr(lucid, make)(a[::-1].copy()).tolist() == [2, 1, 7]
    assert getattr(lucid, make)(numpy.float32(2.5)).dtype is lucid.float32


# --- buffers ----------------------------------------------------------------------------------------------------------------
def test_buffer_protocol():
    x = lucid.arange(6, dtype=lucid.int32).reshape(2, 3)
    m = memoryview(x)
    assert m.format == "i" and m.shape == (2, 3) and m.strides == (12, 4) and m.tolist() == x.tolist()
    m[0, 1] = 40
    assert x[0, 1].item() == 40
    assert memoryview(x.t()).tolist() == x.t().tolist()
    assert bytes(lucid.tensor([1, 2], dtype=lucid.uint8)) == b"\x01\x02"
    with pytest.raises(BufferError):
        memoryview(lucid.ones(2, requires_grad=True))
    with pytest.raises((BufferError, TypeError)):
        b"".join([x.t()])
    with pytest.raises((BufferError, TypeError)):
        io.BytesIO(b"12345678").readinto(x.t())
    io.BytesIO(b"\0" * 24).readinto(x)
    assert x.tolist() == [[0] * 3] * 2


def test_frombuffer():
    b = bytearray(range(16))
    for args in ({}, {"count": 2}, {"offset": 4}, {"count": 1, "offset": 8}):
        mine, theirs = lucid.frombuffer(b, dtype=lucid.int32, **args), torch.frombuffer(b, dtype=torch.int32, **args)
        assert_same(mine, theirs)
    x = lucid.frombuffer(b, dtype=lucid.uint8)
    x[0] = 99
    assert b[0] == 99
    with pytest.raises(BufferError):
        b.append(1)  # the tensor holds the buffer
    for args in ({"offset": 1}, {"count": 9}, {"offset": 16}, {"offset": -1}, {"count": 0}):
        with pytest.raises(ValueError):
            lucid.frombuffer(b, dtype=lucid.int32, **args)
    with pytest.raises(ValueError):
        lucid.frombuffer(b"", dtype=lucid.int32)
    with pytest.raises(lucid.LucidError, match="read-only"):
        lucid.frombuffer(b"1234", dtype=lucid.int32).add_(1)
    with pytest.raises(ValueError):
        lucid.frombuffer(3, dtype=lucid.int32)


# --- DLPack -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [*NUMPY, "bfloat16"])
def test_dlpack_with_torch(name):
    t = torch.arange(12).reshape(3, 4).to(getattr(torch, name))
    for view in (t, t.T, t[:, ::2], t[1], t[:0], t[0, 0]):
        x = lucid.from_dlpack(view)
        assert_same(x, view)
        back = torch.from_dlpack(x)
        assert back.data_ptr() == view.data_ptr() or not view.numel()
        assert_same(x, back)
    x = lucid.from_dlpack(t)
    x[0, 0] = 1
    assert t[0, 0] == 1


def test_dlpack_with_numpy():
    a = numpy.arange(6.0).reshape(2, 3)
    assert lucid.from_dlpack(a).data_ptr() == a.ctypes.data
    x = lucid.arange(6.0).reshape(2, 3)
    assert numpy.from_dlpack(x).tolist() == x.tolist()
    a.flags.writeable = False
    y = lucid.from_dlpack(a)
    with pytest.raises(lucid.LucidError, match="read-only"):
        y.add_(1)
    with pytest.raises(BufferError):
        y.__dlpack__()  # an old capsule cannot say that it is read-only
    assert not numpy.from_dlpack(y).flags.writeable


def test_dlpack_capsules():
    x = lucid.ones(3)
    old, new = x.__dlpack__(), x.__dlpack__(max_version=(1, 0))
    assert "dltensor_versioned" in repr(new) and "dltensor_versioned" not in repr(old)
    assert x.__dlpack_device__() == (1, 0) == torch.ones(1).__dlpack_device__()
    for capsule in (old, new):
        y = lucid.from_dlpack(capsule)
        assert y.data_ptr() == x.data_ptr()
        with pytest.raises(RuntimeError, match="consumed only once"):
            lucid.from_dlpack(capsule)
    assert lucid.from_dlpack(x.__dlpack__(copy=True)).data_ptr() != x.data_ptr()
    assert lucid.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert lucid.from_dlpack(x, device="cpu").data_ptr() == x.data_ptr()
    x.__dlpack__()  # dropped without being taken
    with pytest.raises(BufferError):
        lucid.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(RuntimeError):
        lucid.from_dlpack(3)


# --- copies -----------------------------------------------------------------------------------------------------------------
class Tagged(lucid.Tensor):
    pass


def variants():
    x = lucid.arange(12.0).reshape(3, 4)
    yield from (x, x.t(), x[:, ::2], x[:1].expand(3, 4), x[:0], x[0, 0], x.to(lucid.bfloat16), x.to(lucid.complex64), x > 3)
    yield lucid.ones(2, requires_grad=True)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol):
    for x in variants():
        y = pickle.loads(pickle.dumps(x, protocol))
        assert y.tolist() == x.tolist() and y.dtype is x.dtype and y.requires_grad == x.requires_grad
        assert y.stride() == x.clone().stride() if x.numel() > 1 else True
    t = lucid.ones(2).as_subclass(Tagged)
    t.note = {"a": [1]}
    y = pickle.loads(pickle.dumps(t, protocol))
    assert type(y) is Tagged and y.note == t.note
    meta = pickle.loads(pickle.dumps(lucid.zeros(2, 3, device="meta"), protocol))
    assert meta.is_meta and meta.shape == (2, 3)
    result = pickle.loads(pickle.dumps(lucid.ones(2, requires_grad=True) * 2, protocol))  # the graph stays behind
    assert result.is_leaf and result.requires_grad and result.tolist() == [2.0, 2.0]


def test_pickles_are_checked():
    rebuild, args = lucid.ones(2, 3).__reduce_ex__(2)[:2]
    assert rebuild(*args).tolist() == [[1.0] * 3] * 2
    kind, values, shape, stride, dtype, device, grad = args
    for bad in (
        (kind, values[:-1], shape, stride, dtype, device, grad),
        (kind, values, (3, 3), stride, dtype, device, grad),
        (kind, values, shape, (300, 1), dtype, device, grad),
        (kind, values, (-2, 3), stride, dtype, device, grad),
        (int, values, shape, stride, dtype, device, grad),
        (kind, values, shape, stride, "float32", device, grad),
        (kind, 5, shape, stride, dtype, device, grad),
    ):
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            rebuild(*bad)


def test_copy_and_deepcopy():
    for x in variants():
        y = copy.deepcopy(x)
        assert y.tolist() == x.tolist() and y.dtype is x.dtype and y.requires_grad == x.requires_grad
        assert y.data_ptr() != x.data_ptr() or not x.numel()
        z = copy.copy(x)
        assert z is not x and z.data_ptr() == x.data_ptr() and z.stride() == x.stride()
    x = lucid.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    x.note = [1]
    shared = [x, x, x.grad]
    a, b, g = copy.deepcopy(shared)
    assert a is b and a.grad is g and g.tolist() == [3, 3] and a.note == [1] and a.note is not x.note
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)


# --- processes --------------------------------------------------------------------------------------------------------------
def add_one(x, done):
    x.add_(1)
    done.put(x.sum().item())


def answer(inbox, outbox):
    x = inbox.get()
    x.mul_(2)
    outbox.put((x, x.sum().item()))
    inbox.get()  # until the other side has taken what it was sent


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_shared_memory(method):
    context = multiprocessing.get_context(method)
    x = lucid.zeros(4)
    assert not x.is_shared() and x.share_memory_() is x and x.is_shared()
    done = context.Queue()
    process = context.Process(target=add_one, args=(x, done))
    process.start()
    assert done.get(timeout=60) == 4
    process.join(60)
    assert process.exitcode == 0 and x.tolist() == [1.0] * 4


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_tensors_in_queues(method):
    context = multiprocessing.get_context(method)
    inbox, outbox = context.Queue(), context.Queue()
    process = context.Process(target=answer, args=(inbox, outbox))
    process.start()
    p = lucid.nn.Parameter(lucid.ones(3), requires_grad=False).share_memory_()
    p.note = "kept"
    inbox.put(p)
    y, total = outbox.get(timeout=60)
    assert total == 6 and y.tolist() == p.tolist() == [2.0] * 3 and type(y) is lucid.nn.Parameter and y.note == "kept"
    inbox.put(None)
    process.join(60)
    assert process.exitcode == 0


def test_sharing_is_refused_where_views_would_part():
    x = lucid.zeros(4)
    y = x[1:]
    with pytest.raises(lucid.LucidError, match="same memory"):
        y.share_memory_()
    del y
    assert x.share_memory_().is_shared()
    assert x[1:].is_shared() and x.untyped_storage().is_shared()


def test_storage():
    x = lucid.arange(6.0)
    s = x.untyped_storage()
    assert isinstance(s, lucid.UntypedStorage) and s.nbytes() == len(s) == 24 and s.data_ptr() == x.data_ptr()
    assert x[2:].untyped_storage() == s and x[2:].storage_offset() == 2 and lucid.ones(6).untyped_storage() != s
    assert len({s, x[1:].untyped_storage()}) == 1
    del x
    assert numpy.frombuffer(s, dtype="float32").tolist() == [0, 1, 2, 3, 4, 5]
    assert of_torch(torch.ones(2)).untyped_storage().device == lucid.device("cpu")


def test_from_file(tmp_path):
    path = tmp_path / "numbers"
    shared = lucid.from_file(path, shared=True, size=4)
    shared.copy_(lucid.arange(4.0))
    assert torch.from_file(str(path), size=4).tolist() == [0, 1, 2, 3]
    private = lucid.from_file(str(path), size=2, dtype=lucid.float32)
    private.fill_(9)
    assert private.tolist() == [9, 9] and shared.tolist() == [0, 1, 2, 3]
    shared[0] = 5
    del shared, private
    assert lucid.from_file(path, False, 4).tolist() == [5, 1, 2, 3]
    assert lucid.from_file(path, size=0).tolist() == []
    for wrong in (lambda: lucid.from_file(path, size=5), lambda: lucid.from_file(tmp_path / "none", size=1),
                  lambda: lucid.from_file(path, size=-1), lambda: lucid.from_file(path, size=1 << 62),
                  lambda: lucid.from_file(tmp_path, shared=True, size=1)):  # fmt: skip
        with pytest.raises(RuntimeError):
            wrong()
    with pytest.raises(TypeError):
        lucid.from_file(path, size=1, dtype=3)

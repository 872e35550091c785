"""Every engine allocation behind the Python interface fails once: an error each time, nothing lost, and the next try works."""

import copy
import ctypes
import gc
import pathlib
import pickle

import numpy
import pytest

import lucid

ENGINE = ctypes.CDLL(str(pathlib.Path(lucid._C.__file__).with_name("liblucid.so")))
FAIL_AT = ctypes.c_long.in_dll(ENGINE, "lc_alloc_fail_at")
ENGINE.lc_live_blocks.restype = ctypes.c_long
ARRAY = numpy.arange(6.0).reshape(2, 3)


def train():
    w = lucid.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    y = (w * 2 + 1)[0, 1:].sum() / w.detach().max()
    y.backward()
    return w.grad


WORK = {
    "tensor": lambda: lucid.tensor([[1, 2.0], [3, 4]]),
    "array": lambda: lucid.from_numpy(ARRAY) + lucid.tensor(ARRAY),
    "numpy": lambda: lucid.ones(2, 3).t().numpy(),
    "buffer": lambda: lucid.frombuffer(bytearray(8), dtype=lucid.float32),
    "dlpack": lambda: lucid.from_dlpack(lucid.ones(2, 3)),
    "operators": lambda: 2 - lucid.ones(3) * 3.5 / lucid.ones(1) ** 2,
    "views": lambda: lucid.ones(2, 3).t()[1:, None, ..., 0].expand(2, 4).unbind(),
    "index": lambda: lucid.ones(3, 4)[[0, 2], lucid.tensor([1, 1])][True][lucid.tensor([[True, False]])],
    "assign": lambda: lucid.zeros(3, 4).__setitem__((lucid.tensor([0, 2]), slice(1, 3)), lucid.ones(1, 1, 2)),
    "mask": lambda: lucid.zeros(3).__setitem__(lucid.tensor([True, False, True]), 5),
    "lists": lambda: lucid.cat([lucid.ones(2), lucid.ones(3)]).split(2),
    "out": lambda: lucid.add(lucid.ones(3), 1, out=lucid.empty(0)),
    "named": lambda: lucid.ones(2, 3).max(dim=1),
    "copies": lambda: (copy.copy(lucid.ones(2)), copy.deepcopy(lucid.ones(2, requires_grad=True))),
    "pickle": lambda: pickle.loads(pickle.dumps(lucid.ones(2, 3).t())),
    "subclass": lambda: lucid.nn.Parameter(lucid.ones(2)).data,
    "share": lambda: lucid.ones(2).share_memory_(),
    "generator": lambda: lucid.rand(3, generator=lucid.Generator().manual_seed(1)),
    "values": lambda: (lucid.ones(2).tolist(), lucid.ones(1).item(), lucid.ones(2).untyped_storage()),
    "backward": train,
}


class Operands:
    def __init__(self):
        self.x, self.strided, self.wide = lucid.randn(4, 3), lucid.randn(3, 4).t(), lucid.randn(40, 50)
        self.half, self.leaf = self.x.half(), lucid.randn(4, 3, requires_grad=True)
        self.rows, self.index = lucid.tensor([2, 0]), lucid.tensor([[0, 1, 2], [2, 1, 0]])
        self.mask = lucid.tensor([True, False, True, True])
        self.column = self.mask[:, None]


OPS = {
    "gather": lambda o: o.x.gather(0, o.index),
    "scatter": lambda o: o.x.scatter(0, o.index, o.x[:2]),
    "scatter value": lambda o: o.x.scatter(0, o.index, 2.0),
    "index_select int32": lambda o: o.x.index_select(0, o.rows.int()),
    "index_add": lambda o: o.x.index_add(0, o.rows, o.x[:2], alpha=2),
    "index_fill": lambda o: o.x.index_fill(0, o.rows, 1),
    "index_copy_": lambda o: o.strided.index_copy_(0, o.rows, o.x[:2]),
    "getitem": lambda o: o.x[o.rows],
    "getitem two": lambda o: o.x[o.rows, o.rows.int()],
    "getitem mask": lambda o: o.x[o.mask],
    "index_put": lambda o: o.x.index_put((o.rows,), o.x[0]),
    "setitem mask": lambda o: o.x.clone().__setitem__(o.mask, 1.0),
    "setitem values": lambda o: o.x.clone().__setitem__(o.mask, o.x[:3]),
    "masked_fill": lambda o: o.x.masked_fill(o.column, 1.0),
    "masked_select": lambda o: o.x.masked_select(o.column),
    "nonzero": lambda o: o.x.nonzero(as_tuple=True),
    "take": lambda o: o.x.take(o.rows),
    "take_along_dim": lambda o: o.x.take_along_dim(o.index, 0),
    "mm": lambda o: o.x.t() @ o.x,
    "mm in blocks": lambda o: o.wide @ o.wide.t(),
    "mm of halves": lambda o: o.half @ o.half.t(),
    "matmul": lambda o: lucid.matmul(lucid.ones(2, 1, 4, 3), o.x.t()),
    "addmm": lambda o: lucid.addmm(o.x[:, 0], o.x, o.x.t(), beta=2, alpha=3),
    "cumsum": lambda o: o.half.cumsum(0),
    "softmax": lambda o: o.half.softmax(0),
    "log_softmax": lambda o: o.x.log_softmax(1),
    "randn": lambda o: lucid.randn(5, dtype=lucid.complex64),
    "randperm": lambda o: lucid.randperm(6, dtype=lucid.int32),
    "bernoulli": lambda o: lucid.bernoulli(o.x.sigmoid()),
    "dropout": lambda o: lucid.dropout(o.x, 0.5, True),
    "full": lambda o: lucid.full((2,), lucid.tensor(2.0)),
    "copy_": lambda o: o.x.clone().copy_(o.half),
    "tril": lambda o: o.x.tril(),
}
DIFFERENTIATED = {
    "gather": lambda o, x: x.gather(0, o.index),
    "getitem": lambda o, x: x[o.rows],
    "scatter": lambda o, x: x.scatter(0, o.index, x[:2]),
    "mm": lambda o, x: x @ x.t(),
    "softmax": lambda o, x: x.softmax(1),
    "cumprod": lambda o, x: x.cumprod(1),
    "index_put": lambda o, x: x.index_put((o.rows,), x[0]),
    "masked_select": lambda o, x: x.masked_select(o.column),
    "index_add": lambda o, x: x.index_add(0, o.rows, x[:2], alpha=2),
}


def differentiate(operands, function):
    operands.leaf.grad = None
    y = function(operands, operands.leaf * 1)
    (y * y).sum().backward()


def fails_cleanly(call):
    """The n-th allocation fails, for every n until a call needs fewer: an error each time, and no block is lost."""
    call(), call()
    gc.collect()
    before = ENGINE.lc_live_blocks()
    for n in range(1, 500):
        FAIL_AT.value = n
        try:
            call()
            done = True
        except (lucid.OutOfMemory, MemoryError):
            done = False
        finally:
            left, FAIL_AT.value = FAIL_AT.value, 0
        gc.collect()
        assert ENGINE.lc_live_blocks() <= before, f"failing allocation {n} leaks"
        if done:
            assert left > 0, f"failing allocation {n} went unnoticed"
            break
    assert done and n > 1


@pytest.mark.parametrize("name", WORK)
def test_allocation_failures(name):
    fails_cleanly(WORK[name])


@pytest.mark.parametrize("name", OPS)
def test_ops(name):
    operands = Operands()
    fails_cleanly(lambda: OPS[name](operands))


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_gradients(name):
    operands = Operands()
    fails_cleanly(lambda: differentiate(operands, DIFFERENTIATED[name]))

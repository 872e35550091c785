"""Every engine allocation behind the Python interface fails once: an error each time, nothing lost, and the next try works.
Ops and their gradients: test_faults.py."""

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
LONG = lucid.arange(0.0, 300000.0) % 70001  # for kernels whose working memory depends on sizes


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
    "sort": lambda: (LONG.sort(), LONG.argsort(0, True), LONG[:300000].sort(), LONG.topk(900), lucid.msort(LONG)),
    "unique": lambda: (LONG[:3000].unique(return_inverse=True, return_counts=True), lucid.ones(3, 2).unique(dim=0)),
    "positions": lambda: (LONG.nonzero(), lucid.nonzero_static(LONG, size=3), lucid.unravel_index(lucid.tensor(7), (3, 4))),
    "search": lambda: (lucid.searchsorted(lucid.ones(3), LONG[:9]), lucid.isin(LONG[:9], LONG[:900])),
    "counts": lambda: (lucid.histc(LONG, 900), lucid.histogram(LONG, 9, density=True), lucid.bincount(lucid.tensor([1, 900]))),
    "grid": lambda: lucid.histogramdd(LONG.reshape(-1, 2), [30, 20]),
}


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

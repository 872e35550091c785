"""The n-th allocation fails, for every n: an error each time, nothing lost, no operand changed, and the next try works.

Forward and backward of every sample, in all its forms; then what the Python interface does besides calling ops.
"""

import copy
import gc
import os
import pickle
import warnings

import numpy
import pytest

import lucid
from tests.ops.harness import build, flat
from tests.ops.samples.sample import T
from tests.ops.test_ops import BY_SAMPLE, call

ARRAY = numpy.arange(6.0).reshape(2, 3)
LONG = lucid.arange(0.0, 300000.0) % 70001  # for kernels whose working memory depends on sizes


def operands(sample, leaves):
    """A call that writes its operands gets copies: leaves may not be written."""
    writes = sample.fn is not None or sample.op.endswith("_")
    return [x.clone() for x in leaves] if writes else leaves


def plain(sample, leaves):
    names_dtype = isinstance(getattr(lucid, sample.op, None), lucid.dtype)  # lucid.float is none of the ops: x.float() is
    return call(lucid, sample, operands(sample, leaves), method=names_dtype and sample.op)


def in_place(sample, leaves):
    """What is written has history, and stays as it was after a failure, which may come while the call is recorded."""
    copies = [x.clone() for x in leaves]
    before = copies[0].clone().detach()
    try:
        return call(lucid, sample, copies, method=sample.op + "_")
    except lucid.OutOfMemory:
        lucid._C._fail_allocation(0)
        assert str(before.tolist()) == str(copies[0].tolist()), "a failing in-place call changed its operand"
        raise


def into_out(sample, leaves):
    """out= of no elements: it grows, and stays as it was after a failure."""
    values = [x.detach() for x in leaves]
    results = plain(sample, values)
    out = [lucid.empty(0, dtype=y.dtype) for y in flat(results)]
    try:
        call(lucid, sample, values, out=out[0] if isinstance(results, lucid.Tensor) else tuple(out))
    except lucid.OutOfMemory:
        assert all(y.dtype == x.dtype for x, y in zip(out, flat(results)))
        raise


def forms(sample):
    yield plain
    if sample.fn is None and sample.out and not sample.random:
        yield into_out
    first = next(iter(sample.args), None)
    if sample.fn is None and sample.inplace and isinstance(first, T) and hasattr(lucid.Tensor, sample.op + "_"):
        yield in_place


def magnitude(tensors):
    return [y.abs().square().sum() for y in tensors if y is not None and y.requires_grad]


def forward_backward(form, sample, leaves):
    """Gradients into .grad; then, where there are second ones, once more with a graph of the gradients."""
    loss = magnitude(flat(form(sample, leaves)))
    if not loss or not sample.grad:
        return
    lucid.autograd.backward(loss)
    if sample.gradgrad:
        wanted = [x for x in leaves if x.requires_grad]
        again = magnitude(flat(form(sample, leaves)))
        first = magnitude(lucid.autograd.grad(again, wanted, create_graph=True, allow_unused=True))
        if first:
            lucid.autograd.grad(first, wanted, allow_unused=True)


def fails_at(n, work):
    """Work while the n-th allocation fails. False: it was not reached, and nothing was noticed."""
    lucid._C._fail_allocation(n)
    try:
        work()
    except (lucid.OutOfMemory, MemoryError):
        return True
    finally:
        unreached = lucid._C._fail_allocation(0) > 0
    assert unreached, f"the failure of allocation {n} went unnoticed"
    return False


def attempt(form, sample, leaves, n):
    """True if the n-th allocation was reached, which must then be an OutOfMemory."""
    try:
        return fails_at(n, lambda: forward_backward(form, sample, leaves))
    finally:
        for x in leaves:
            x.grad = None


def works(form, sample, leaves):
    """The first call fills caches that stay. Many samples are errors, or are with some dtypes."""
    try:
        forward_backward(form, sample, leaves)
    except Exception:  # noqa: BLE001
        return False
    finally:
        for x in leaves:
            x.grad = None
    return True


def fail_everywhere(form, sample, leaves):
    values = str([x.tolist() for x in leaves])
    gc.collect()
    before, n = lucid._C.live_blocks(), 1
    while attempt(form, sample, leaves, n):
        n += 1
    gc.collect()
    assert lucid._C.live_blocks() == before, f"leaked after one of {n} failures of {form.__name__}"
    assert values == str([x.tolist() for x in leaves]), f"{form.__name__} changed an operand"


def try_dtype(sample, dtype):
    """The number of forms that work."""
    leaves = build(lucid, sample, dtype, grad=sample.grad)
    usable = [form for form in forms(sample) if works(form, sample, leaves)]
    for form in usable:
        fail_everywhere(form, sample, leaves)
    return len(usable)


def samples_of(op):
    """All of them, or with LUCID_FEW_SAMPLES (under sanitizers, which take their time) a few that lie far apart."""
    every = [p.values[0] for p in BY_SAMPLE if p.values[0].op == op]
    few = int(os.environ.get("LUCID_FEW_SAMPLES", 0)) or len(every)
    return every[:: -(-len(every) // few)]


@pytest.mark.parametrize("op", sorted({p.values[0].op for p in BY_SAMPLE}))
def test_every_allocation(op):
    """In float64, or else another dtype that the op takes; and in float16, which most kernels convert."""
    samples = samples_of(op)
    tried = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in samples:
            tried += next(filter(None, (try_dtype(sample, dtype) for dtype in sorted(sample.dtypes, key="float64".__ne__))), 0)
            if "float16" in sample.dtypes:
                tried += try_dtype(sample, "float16")
    if len(samples) == len(
        [p for p in BY_SAMPLE if p.values[0].op == op]
    ):  # samples that are errors are passed over, but not all
        assert tried, "no sample works"


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
    "topk": lambda: (LONG[:60000].topk(5000), LONG[:20000].reshape(-1, 2).topk(900, 0), LONG[69000:90000].topk(9999)),
    "unique": lambda: (LONG[:3000].unique(return_inverse=True, return_counts=True), lucid.ones(3, 2).unique(dim=0)),
    "positions": lambda: (LONG.nonzero(), lucid.nonzero_static(LONG, size=3), lucid.unravel_index(lucid.tensor(7), (3, 4))),
    "search": lambda: (lucid.searchsorted(lucid.ones(3), LONG[:9]), lucid.isin(LONG[:9], LONG[:900])),
    "counts": lambda: (lucid.histc(LONG, 900), lucid.histogram(LONG, 9, density=True), lucid.bincount(lucid.tensor([1, 900]))),
    "grid": lambda: lucid.histogramdd(LONG.reshape(-1, 2), [30, 20]),
}


@pytest.mark.parametrize("name", WORK)
def test_interface(name):
    work = WORK[name]
    work(), work()
    gc.collect()
    before, n = lucid._C.live_blocks(), 1
    while fails_at(n, work):
        n += 1
    gc.collect()
    assert n > 1 and lucid._C.live_blocks() <= before, f"leaked after one of {n} failures"

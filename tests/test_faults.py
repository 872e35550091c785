"""The n-th allocation fails, for every n, in forward and backward of every sample: an error, no leak, no operand changed."""

import gc
import os
import warnings

import pytest

import lucid

from .ops.harness import build, flat
from .ops.sample import T
from .ops.test_ops import BY_SAMPLE, call


def operands(sample, leaves):
    """A call that writes its operands gets copies: leaves may not be written."""
    writes = sample.fn is not None or sample.op.endswith("_")
    return [x.clone() for x in leaves] if writes else leaves


def plain(sample, leaves):
    names_dtype = isinstance(getattr(lucid, sample.op, None), lucid.dtype)  # lucid.float is none of the ops: x.float() is
    return call(lucid, sample, operands(sample, leaves), method=names_dtype and sample.op)


def in_place(sample, leaves):
    return call(lucid, sample, [x.clone() for x in leaves], method=sample.op + "_")


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


def attempt(form, sample, leaves, n):
    """True if the n-th allocation was reached, which must then be an OutOfMemory."""
    lucid._C._fail_allocation(n)
    try:
        forward_backward(form, sample, leaves)
    except lucid.OutOfMemory:
        return True
    finally:
        unreached = lucid._C._fail_allocation(0) > 0
        for x in leaves:
            x.grad = None
    assert unreached, f"the failure of allocation {n} went unnoticed"
    return False


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
    """How many forms work."""
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

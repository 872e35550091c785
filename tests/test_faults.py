"""The n-th allocation fails, for every n, in forward and backward of every sample: an error each time, nothing leaked, nothing changed."""

import gc
import warnings

import pytest

import lucid

from .ops.harness import build, flat
from .ops.sample import T
from .ops.test_ops import BY_SAMPLE, call

TRIED = {"failures": 0, "samples": 0}


@pytest.fixture(scope="module", autouse=True)
def quick_collections():
    """What is there already (PyTorch, pytest) is not looked at again by every gc.collect() below."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def operands(sample, leaves):
    """A call that writes its operands gets copies: leaves may not be written."""
    writes = sample.fn is not None or sample.op.endswith("_")
    return [x.clone() for x in leaves] if writes else leaves


def plain(sample, leaves):
    return call(lucid, sample, operands(sample, leaves))


def in_place(sample, leaves):
    return call(lucid, sample, [x.clone() for x in leaves], method=sample.op + "_")


def forms(sample):
    yield plain
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


def fail_everywhere(form, sample, leaves):
    try:
        forward_backward(form, sample, leaves)  # the first call fills caches that stay
    except Exception:  # noqa: BLE001  a sample of an error, or of one with these dtypes
        return
    finally:
        for x in leaves:
            x.grad = None
    values = str([x.tolist() for x in leaves])
    gc.collect()
    before, n = lucid._C.live_blocks(), 1
    while attempt(form, sample, leaves, n):
        n += 1
    gc.collect()
    assert lucid._C.live_blocks() == before, f"leaked after one of {n} failures of {form.__name__}"
    assert values == str([x.tolist() for x in leaves]), f"{form.__name__} changed an operand"
    TRIED["failures"] += n - 1
    TRIED["samples"] += n > 1


@pytest.mark.parametrize("sample", BY_SAMPLE)
def test_every_allocation(sample):
    dtype = "float64" if "float64" in sample.dtypes else sample.dtypes[-1]
    leaves = build(lucid, sample, dtype, grad=sample.grad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for form in forms(sample):
            fail_everywhere(form, sample, leaves)


def test_failures_were_injected():
    """Runs last in this file: the loop above is not empty."""
    assert TRIED["failures"] >= 5 * TRIED["samples"], TRIED

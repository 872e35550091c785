"""Who keeps what alive: long chains, wrappers with state, reference cycles, hooks, user functions."""

import gc
import weakref

import pytest

import lucid
from lucid.nn import Parameter
from tests.autograd.programs import blocks


def test_million_nodes():
    before = blocks()
    x = lucid.tensor([1.0], requires_grad=True)
    for backward in (True, False):
        y = x
        for _ in range(1_000_000):
            y = y + 1
        if backward:
            y.backward()
            assert x.grad.tolist() == [1.0]
        del y
    del x
    assert blocks() == before


def test_wrappers_keep_state():
    x = Parameter(lucid.tensor([1.0]))
    (x * 3).sum().backward()
    assert x.grad is x.grad
    x.grad.tag = "kept"
    seen = weakref.ref(x.grad)
    gc.collect()
    assert x.grad.tag == "kept" and seen() is x.grad
    held = seen()
    x.grad = None
    assert held.tolist() == [3.0] and held.tag == "kept"
    y = x * 2  # the node keeps the parameter; its wrapper keeps the attribute
    x.name = "weight"
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref().name == "weight"
    del y, held
    assert ref() is None and seen() is None


class Cube(lucid.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.x * ctx.x * 3


def make_leaf_hook_cycle():
    x = lucid.tensor([1.0], requires_grad=True)
    x.register_hook(lambda g: x)
    return x, x


def make_hook_cycle():
    x = lucid.tensor([1.0], requires_grad=True)
    h = x * 2
    h.register_hook(lambda g: h)
    return x, h


def make_ctx_cycle():
    x = lucid.tensor([2.0], requires_grad=True)
    y = Cube.apply(x)
    return x, y


def make_grad_cycle():
    x = lucid.tensor([1.0], requires_grad=True)
    (x * 1).sum().backward()
    x.grad.owner = x
    return x, x


@pytest.mark.parametrize("make", [make_leaf_hook_cycle, make_hook_cycle, make_ctx_cycle, make_grad_cycle])
def test_cycles_are_collected(make):
    gc.collect()
    before = blocks()
    x, y = make()
    if make is make_ctx_cycle:
        y.ctx = [y]
    refs = weakref.ref(x), weakref.ref(y)
    del x, y
    gc.collect()
    assert refs[0]() is None and refs[1]() is None
    assert blocks() == before


def test_function_and_hooks():
    x = lucid.tensor([2.0], requires_grad=True)
    y = Cube.apply(x)
    y.register_hook(lambda g: g * 10)
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward()
    assert x.grad.tolist() == [120.0] and seen == [[120.0]]

    class Bad(Cube):
        backward = staticmethod(lambda ctx, g: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        Bad.apply(x).sum().backward()

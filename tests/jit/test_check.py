"""LUCID_COMPILE_CHECK=1: eager beside every compiled call. A wrong plan must be caught, whatever it gets wrong."""

import copy

import pytest

import lucid
import lucid.nn as nn
import lucid.nn.functional as F
from lucid._compile import check


@pytest.fixture(autouse=True)
def checking(monkeypatch):
    monkeypatch.setenv("LUCID_COMPILE_CHECK", "1")


def lying(f):
    """A compiled function whose eager side can be replaced by another function than the one it was traced from."""
    compiled = lucid.compile(f, fullgraph=True)
    assert isinstance(compiled, check.CheckedFunction)
    return compiled


def replace(compiled, other):
    compiled._fn = other


@pytest.mark.parametrize("honest, lie, words", [
    (lambda x: x * 2, lambda x: x * 2 + 1e-6, "output 0: "),
    (lambda x: (x, x * 2), lambda x: (x * 1, x * 2), "output 0 is input"),
    (lambda x: (x + 1, x * 2), lambda x: (x + 1, x * 3), "output 1: 3 of 3 elements"),
    (lambda x: x * 2, lambda x: (x * 2,), "the result is a"),
    (lambda x: x * 2, lambda x: (x * 2).double(), "dtype"),
    (lambda x: x.add_(1) * 2, lambda x: (x + 1) * 2, "input 0 after the call"),
    (lambda x: x * 0, lambda x: x * -0.0, "0.0, eager -0.0"),
    (lambda x: x + 1, lambda x: (lucid.rand(2), x + 1)[1], "generator"),
])  # fmt: skip
def test_differences_are_found(honest, lie, words):
    compiled = lying(honest)
    for _ in range(3):
        compiled(lucid.ones(3))
    replace(compiled, lie)
    with pytest.raises(check.Difference, match=words):
        compiled(lucid.ones(3))


def test_the_name_of_the_function_is_told():
    def halved(x):
        return x / 2

    compiled = lying(halved)
    compiled(lucid.ones(3))
    replace(compiled, lambda x: x * 1)
    compiled._fn.__qualname__ = "halved"
    with pytest.raises(check.Difference, match="halved: output 0: 3 of 3 elements differ, the first at 0: 0.5, eager 1.0"):
        compiled(lucid.ones(3))


def test_gradients_are_compared():
    w = lucid.randn(3, requires_grad=True)
    compiled = lying(lambda x: (x * w).sum())
    for _ in range(3):
        compiled(lucid.full((3,), 2.0, requires_grad=True)).backward()
    replace(compiled, lambda x: (x * w.detach()).sum() + (w - w.detach()).sum())
    loss = compiled(lucid.full((3,), 2.0, requires_grad=True))
    with pytest.raises(check.Difference, match="gradient 1"):
        loss.backward()


def test_tensors_from_outside_are_compared():
    seen = lucid.zeros(2)

    def count(x):
        seen.add_(x)
        return x * 2

    compiled = lying(count)
    for _ in range(4):
        compiled(lucid.ones(2))
    assert seen.tolist() == [4, 4]  # eager's writes are taken back
    replace(compiled, lambda x: x * 2)
    with pytest.raises(check.Difference, match="from outside"):
        compiled(lucid.ones(2))


def test_what_is_right_passes_and_counts_once():
    lucid.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 2))
    twin = copy.deepcopy(net)
    compiled = lucid.compile(net, fullgraph=True)
    for i in range(4):
        results = []
        for model in (compiled, twin):
            lucid.manual_seed(i)
            x = lucid.arange(24.0).view(6, 4).div(10).requires_grad_()
            y = model(x)
            y.square().sum().backward()
            results.append((y, x.grad, lucid.get_rng_state(), *model.buffers(), *[p.grad for p in model.parameters()]))
        for a, b in zip(*results):
            assert check.difference(a, b) is None
    assert compiled.cache_info().hits == 3


def test_generators_given_and_enclosed():
    enclosed = lucid.Generator().manual_seed(1)
    compiled = lying(lambda x, g: x + lucid.rand(3, generator=g) + lucid.rand(3, generator=enclosed))
    given, results = lucid.Generator().manual_seed(2), []
    for _ in range(4):
        results.append(compiled(lucid.ones(3), given))
    a, b = lucid.Generator().manual_seed(1), lucid.Generator().manual_seed(2)
    for r in results:
        assert r.equal(lucid.ones(3) + lucid.rand(3, generator=b) + lucid.rand(3, generator=a))


def test_inputs_that_share_memory():
    def f(a, b):
        a.mul_(2)
        return a + b

    x, compiled = lucid.arange(6.0), lying(f)
    for a, b in ((x[:4], x[2:]), (x[:4], x[2:]), (x[:4], x[:4])):
        wanted = x.clone()
        first = wanted[:4]
        second = wanted[2:] if b.storage_offset() else first
        expected = f(first, second)
        assert compiled(a, b).equal(expected) and x.equal(wanted)


def test_steps_are_compared():
    lucid.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    twin = copy.deepcopy(net)
    optimizers = [lucid.optim.Adam(m.parameters(), lr=0.01) for m in (net, twin)]
    step = lucid.compile_step(net, F.cross_entropy, optimizers[0], grad_clip=0.5)
    assert isinstance(step, check.CheckedStep)
    x, t = lucid.randn(5, 4), lucid.randint(0, 3, (5,))
    for _ in range(4):
        step(x, t)
        optimizers[1].zero_grad()
        F.cross_entropy(twin(x), t).backward()
        nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
        optimizers[1].step()
        assert all(p.equal(q) and p.grad.equal(q.grad) for p, q in zip(net.parameters(), twin.parameters()))
    assert step.cache_info().hits == 2
    step._eager = lambda *inputs: lucid.zeros(())
    with pytest.raises(check.Difference, match="the loss"):
        step(x, t)


def test_steps_with_a_scaler_are_compared():
    net = nn.Linear(4, 3)
    scaler = lucid.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    step = lucid.compile_step(net, F.cross_entropy, lucid.optim.SGD(net.parameters(), lr=0.1), scaler=scaler)
    x, t = lucid.randn(5, 4), lucid.randint(0, 3, (5,))
    for _ in range(6):
        step(x, t)
    assert step.cache_info().hits == 4 and scaler.get_scale() == 32.0


def test_it_is_off_without_the_variable(monkeypatch):
    monkeypatch.delenv("LUCID_COMPILE_CHECK")
    assert type(lucid.compile(lambda x: x)) is not check.CheckedFunction

"""Activation checkpoints beside PyTorch's."""

import warnings

import pytest
import torch
import torch.utils.checkpoint

import lucid
from lucid.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential


def gradients(m, how):
    m.manual_seed(0)
    net = m.nn.Sequential(m.nn.Linear(4, 8), m.nn.Dropout(0.5), m.nn.Tanh(), m.nn.Linear(8, 2))
    x = m.rand(3, 4, requires_grad=True)
    y = net(x) if how is None else m.utils.checkpoint.checkpoint(net, x, use_reentrant=how)
    y.square().sum().backward()
    m.utils.checkpoint.checkpoint_sequential(net, 2, x, use_reentrant=bool(how)).sum().backward()
    return [*(p.grad.tolist() for p in net.parameters()), x.grad.tolist(), m.rand(1).tolist()]


@pytest.mark.parametrize("how", [True, False])
def test_gradients_and_random_numbers(how):
    ours = gradients(lucid, how)
    assert ours == gradients(lucid, None)
    for a, b in zip(ours, gradients(torch, how), strict=True):
        assert torch.allclose(torch.tensor(a), torch.tensor(b), rtol=1e-5, atol=1e-6)


def test_memory_is_not_kept():
    def work(x):
        for _ in range(20):
            x = x.sin()
        return x

    def held(run):
        x = lucid.ones(100_000, requires_grad=True)
        before = lucid.memory_stats()["allocated_bytes"]
        y = run(x)
        after = lucid.memory_stats()["allocated_bytes"]
        y.sum().backward()
        return after - before, x.grad

    plain, gradient = held(work)
    small, again = held(lambda x: checkpoint(work, x, use_reentrant=False))
    assert small < plain / 5 and lucid.equal(gradient, again)


def test_second_derivatives_nested_and_retained():
    x = lucid.ones(3, requires_grad=True)

    def inner(x):
        return checkpoint(lambda v: v.exp() * v, x, use_reentrant=False).sin()

    def value(run):
        y = run(x).sum()
        (g,) = lucid.autograd.grad(y, x, create_graph=True)
        (gg,) = lucid.autograd.grad(g.sum(), x)
        return g.tolist(), gg.tolist()

    expected = value(lambda x: (x.exp() * x).sin())
    assert value(inner)[0] == pytest.approx(expected[0], rel=1e-6)
    found = value(lambda x: checkpoint(inner, x, use_reentrant=False))
    assert found[0] == pytest.approx(expected[0], rel=1e-6) and found[1] == pytest.approx(expected[1], rel=1e-5)
    y = checkpoint(inner, x, use_reentrant=False).sum()
    first = lucid.autograd.grad(y, x, retain_graph=True)[0]
    assert lucid.equal(first, lucid.autograd.grad(y, x)[0])


def test_keywords_contexts_and_no_grad():
    entered = []

    class Context:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *_):
            pass

    x = lucid.ones(2, requires_grad=True)
    y = checkpoint(
        lambda x, *, scale: x.sin() * scale, x, use_reentrant=False, context_fn=lambda: (Context("a"), Context("b")), scale=3.0
    )
    assert entered == ["a"]
    y.sum().backward()
    assert entered == ["a", "b"]
    with lucid.no_grad():
        assert not checkpoint(lambda x: x.sin(), x, use_reentrant=False).requires_grad


def test_autocast_comes_back():
    seen = []

    def work(x):
        y = x @ x
        seen.append(y.dtype)
        return y.float().sin()

    x = lucid.rand(3, 3, requires_grad=True)
    with lucid.autocast("cpu", dtype=lucid.bfloat16):
        y = checkpoint(work, x, use_reentrant=False)
    y.sum().backward()
    assert seen[0] == lucid.bfloat16 and set(seen) == {lucid.bfloat16}


def test_errors():
    x = lucid.ones(2, requires_grad=True)
    turns = []

    def changes(x):
        turns.append(1)
        return (x.sin() if len(turns) == 1 else x.view(2, 1).sin().view(2)).exp()

    y = checkpoint(changes, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="was"):
        y.sum().backward()

    def fewer(x):
        turns.append(1)
        return x.sin().sin() if len(turns) == 1 else x.sin()

    turns.clear()
    with pytest.raises(CheckpointError, match="2 tensors at first and 1"):
        checkpoint(fewer, x, use_reentrant=False).sum().backward()
    with pytest.raises(ValueError, match="keyword"):
        checkpoint(lambda x, a: x, x, use_reentrant=True, a=1)
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(lambda x: x, x, use_reentrant=False, determinism_check="some")
    with pytest.raises(NotImplementedError, match="debug"):
        checkpoint(lambda x: x, x, use_reentrant=False, debug=True)
    with pytest.raises(ValueError, match="segments"):
        checkpoint_sequential([lucid.sin], 2, x, use_reentrant=False)
    with pytest.warns(UserWarning, match="use_reentrant"):
        checkpoint(lambda x: x.sin(), x)
    with warnings.catch_warnings(), pytest.raises(ZeroDivisionError):
        checkpoint(lambda x: 1 / 0, x, use_reentrant=False)

"""Random programs of views and in-place writes: Lucid and PyTorch agree on every value, every gradient and every refusal."""

import random

import pytest
import torch

import lucid

from .programs import plain


def view(L, t, rng):
    kinds = [lambda: t.view(-1), lambda: t.unsqueeze(0), lambda: t.detach()]
    if t.ndim:
        d = rng.randrange(t.ndim)
        size = t.shape[d]
        kinds += [lambda: t.select(d, rng.randrange(size)), lambda: t.narrow(d, 0, 1 + rng.randrange(size))] if size else []
        kinds += [lambda: t.transpose(0, d), lambda: t.expand(2, *t.shape), lambda: t.unbind(0)[0], lambda: t[..., ::2]]
    return rng.choice(kinds)()


def fresh(L, t, other, rng):
    return rng.choice(
        [lambda: t * 1.5, lambda: t * t, lambda: t + other, lambda: (t * 0.25).exp(), lambda: t.sum(), lambda: t.clone()]
    )()


def write(L, t, other, rng):
    if other.shape != t.shape or other.stride() != t.stride():
        other = other.clone()  # reading elements while overwriting them is undefined
    return rng.choice([lambda: t.mul_(0.5), lambda: t.add_(other), lambda: t.mul_(other), lambda: t.copy_(other)])()


def close(a, b):
    """Equal, but for the last digits of floats."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    return a == pytest.approx(b, rel=1e-4) if isinstance(a, float) and isinstance(b, float) else a == b


def run(L, seed):
    """What happened, step by step, as plain values."""
    rng, log = random.Random(seed), []
    leaves = [L.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True), L.tensor([0.5, 1.5, 2.5], requires_grad=True)]
    tensors = [*leaves, L.zeros(2, 3), leaves[0] * 2]
    for _ in range(10):
        kind, (t, other) = rng.random(), rng.sample(tensors[1:], 2)
        inner = rng.getstate()
        try:
            if kind < 0.1:
                with L.no_grad():
                    made = view(L, t, rng)
            elif kind < 0.4:
                made = view(L, t, rng)
            elif kind < 0.65:
                made = fresh(L, t, other, rng)
            elif kind < 0.7:
                with L.no_grad():
                    made = write(L, t, other, rng)
            else:
                made = write(L, t, other, rng)
        except RuntimeError as problem:
            if str(problem).startswith("a leaf") and t._base is not None:
                return None  # PyTorch asks a view whose base got history whether it is a leaf before it rebuilds its own
            log.append("refused")
            rng.setstate(inner)
            rng.random()
            continue
        tensors.append(made)
        log.append((plain(made.detach()), made.requires_grad, made._version))
    rng.setstate(random.Random(seed + 1).getstate())
    for t in rng.sample(tensors, 3):
        try:
            loss = (t * t).sum()
            if loss.requires_grad:
                loss.backward(retain_graph=True)
            log.append([None if x.grad is None else plain(x.grad) for x in leaves])
        except RuntimeError:
            log.append("backward refused")
            for x in leaves:
                x.grad = None
    return log


@pytest.mark.parametrize("part", range(20))
def test_random_programs(part):
    refused = 0
    for seed in range(part * 50, part * 50 + 50):
        theirs = run(torch, seed)
        if theirs is None:
            continue
        assert close(run(lucid, seed), theirs), f"seed {seed}"
        refused += sum(isinstance(step, str) for step in theirs)
    assert 0 < refused < 50 * 13

"""max_pool and its gradient, which finds its places again: every width of row, ties, NaN, windows side by side and others."""

import pytest
import torch

import lucid
from tests.oracle import equal_values


def values(shape, dtype):
    torch.manual_seed(sum(shape))
    x = torch.randint(-2, 3, shape).to(dtype)  # many ties
    x.view(-1)[::17] = float("nan")
    x.view(-1)[::13] = -float("inf")
    return x


def gradients(lib, x, given, function, *settings):
    x = x.requires_grad_()
    y = getattr(lib.nn.functional, function)(x, *settings)
    (g,) = lib.autograd.grad(y, x, given(y), create_graph=True)
    weights = lib.arange(float(g.numel())).view(g.shape).to(g.dtype)
    incoming = given(y).requires_grad_()
    (again,) = lib.autograd.grad(getattr(lib.nn.functional, function)(x, *settings), x, incoming, create_graph=True)
    (second,) = lib.autograd.grad((again * weights).sum(), incoming)
    return y.detach(), g, second


def counted(lib):
    return lambda y: (lib.arange(float(y.numel())).view(y.shape) % 7 + 1).to(y.dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("settings", [(2,), (2, 2, 0, 1, True), (2, 1), (3, 2, 1)], ids=str)
def test_every_width(settings, dtype):
    for width in [2, 3, 4, 5, 7, 8, 10, 15, 16, 17, 28, 31, 32, 34, 67]:
        theirs = values((2, 3, width % 5 + 2, width), getattr(torch, dtype))
        ours = lucid.tensor(theirs.float().tolist()).to(getattr(lucid, dtype))
        mine = gradients(lucid, ours, counted(lucid), "max_pool2d", *settings)
        other = gradients(torch, theirs, counted(torch), "max_pool2d", *settings)
        for a, b in zip(mine, other):
            assert equal_values(a.float().tolist(), b.float().tolist()), width


def test_three_dimensions():
    theirs = values((2, 3, 4, 6), torch.float32)
    ours = lucid.tensor(theirs.tolist())
    mine = gradients(lucid, ours, counted(lucid), "max_pool3d", (1, 2, 2))
    other = gradients(torch, theirs, counted(torch), "max_pool3d", (1, 2, 2))
    assert all(equal_values(a.tolist(), b.tolist()) for a, b in zip(mine, other))

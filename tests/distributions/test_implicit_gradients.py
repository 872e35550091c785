"""Gradients through gamma, beta and Dirichlet variables, beside derivatives of quantiles computed with many digits."""

import mpmath
import pytest
import torch

import lucid

A = [1e-4, 0.01, 0.3, 1.0, 2.5, 10.0, 97.0, 400.0, 999.0, 1001.0, 5e3, 1e6]


def derivative(function, x, at):
    """-(dF/da) / (dF/dx) for F(a, x)."""
    with mpmath.workdps(50):
        h = mpmath.mpf(10) ** -15
        a, x = mpmath.mpf(at), mpmath.mpf(x)
        by_a = (function(a * (1 + h), x) - function(a * (1 - h), x)) / (2 * h * a)
        by_x = (function(a, x * (1 + h)) - function(a, x * (1 - h))) / (2 * h * x)
        return float(-by_a / by_x)


@pytest.mark.parametrize("a", A)
def test_gamma(a):
    lucid.manual_seed(0)
    alpha = lucid.full((8,), a, dtype=lucid.float64)
    x = lucid._C._standard_gamma(alpha)
    mine = lucid._C._standard_gamma_grad(alpha, x).tolist()
    for value, got in zip(x.tolist(), mine):
        if value < 1e-280:
            continue
        if a <= 1e4:
            want = derivative(lambda a, x: mpmath.gammainc(a, 0, x, regularized=True), value, a)
            assert abs(got - want) <= (1e-10 if a <= 1000 else 1e-8) * abs(want)
        else:
            assert abs(got - 1 - (value - a) / (2 * a)) < 1e-5  # 1 + z / (2 sqrt(a))


@pytest.mark.parametrize("a", [0.01, 0.3, 1.0, 2.5, 10.0, 97.0, 1e3])
@pytest.mark.parametrize("b", [0.01, 0.5, 1.0, 7.0, 150.0])
def test_beta(a, b):
    for x in (1e-3, 0.1, 0.3, 0.5, 0.8, 0.999):
        with mpmath.workdps(50):
            below = float(mpmath.betainc(a, b, 0, x, regularized=True))
        if not 1e-12 < below < 1 - 1e-12:
            continue  # hardly ever drawn
        got = lucid._C._dirichlet_grad(*(lucid.tensor([v], dtype=lucid.float64) for v in (x, a, a + b))).item()
        want = derivative(lambda a, x, b=b: mpmath.betainc(a, b, 0, x, regularized=True), x, a) / (1 - x)
        assert abs(got - want) <= 1e-9 * abs(want)


def test_beside_pytorch():
    """Its approximations are within 1e-3 or so."""
    torch.manual_seed(0)
    alpha = torch.logspace(-1, 3, 400, dtype=torch.float64)
    x = torch._standard_gamma(alpha)
    mine = lucid._C._standard_gamma_grad(
        lucid.tensor(alpha.tolist(), dtype=lucid.float64), lucid.tensor(x.tolist(), dtype=lucid.float64)
    )
    theirs = torch._standard_gamma_grad(alpha, x)
    assert max(abs(a - b) / (abs(b) + 1e-3) for a, b in zip(mine.tolist(), theirs.tolist())) < 5e-3


def test_means_move_as_they_should():
    """d E[x] / d parameter, from the gradients of many samples."""
    d = lucid.distributions
    lucid.manual_seed(0)
    n = 200_000
    a = lucid.tensor([0.5, 3.0], requires_grad=True)
    (grad,) = lucid.autograd.grad(d.Gamma(a, 2.0).rsample((n,)).mean(0).sum(), a)
    lucid.testing.assert_close(grad, lucid.tensor([0.5, 0.5]), rtol=0.02, atol=0)
    (grad,) = lucid.autograd.grad(d.Beta(a, 2.0).rsample((n,)).mean(0).sum(), a)
    lucid.testing.assert_close(grad, 2.0 / (a.detach() + 2) ** 2, rtol=0.02, atol=0)
    c = lucid.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (grad,) = lucid.autograd.grad(d.Dirichlet(c).rsample((n,)).mean(0)[1], c)
    lucid.testing.assert_close(grad, lucid.tensor([-2.0, 4.0, -2.0]) / 36, rtol=0.03, atol=0)


def test_refusals():
    x = lucid.tensor([0.5, 2.0], requires_grad=True)
    for op in (lucid._C._standard_gamma, lucid._C._sample_dirichlet):
        (first,) = lucid.autograd.grad(op(x).square().sum(), x, create_graph=True)
        with pytest.raises((RuntimeError, NotImplementedError)):
            lucid.autograd.grad(first.sum(), x)
        with pytest.raises(NotImplementedError):
            op(x.detach().half())
    nan = float("nan")
    assert lucid._C._standard_gamma_grad(lucid.tensor([nan, 1.0, 0.0]), lucid.tensor([1.0, nan, 0.0])).isnan().tolist() == [
        True,
        True,
        False,
    ]

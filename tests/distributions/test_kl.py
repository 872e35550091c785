"""Divergences beside PyTorch's, for every pair it has a formula for, and estimates beside the formulas."""

import itertools
import warnings

import pytest
import torch

import lucid
from tests.distributions.families import MADE, spd
from tests.nn.programs import assert_close, attempt

# Per class, distributions that broadcast against each other, with the cases that are infinite or lie on a border.
OF = {
    "Bernoulli": lambda d, m: [
        d.Bernoulli(m.tensor([0.0, 0.3, 1.0])),
        d.Bernoulli(logits=m.tensor([[-1.0], [2.0]])),
        d.Bernoulli(m.tensor([1.0, 0.5, 0.0])),
    ],
    "Beta": lambda d, m: [d.Beta(m.tensor([0.5, 2.0, 9.0]), m.tensor([0.5, 3.0, 4.0])), d.Beta(1.0, m.tensor([[2.0], [0.1]]))],
    "Binomial": lambda d, m: [
        d.Binomial(m.tensor([4.0, 5.0, 6.0]), m.tensor([0.1, 0.5, 0.9])),
        d.Binomial(4, 0.3),
        d.Binomial(7, 0.3),
    ],
    "Categorical": lambda d, m: [
        d.Categorical(m.tensor([[0.5, 0.5, 0.0], [1.0, 1.0, 2.0]])),
        d.Categorical(logits=m.tensor([0.1, 2.0, -1.0])),
        d.Categorical(m.tensor([0.5, 0.0, 0.5])),
    ],
    "Cauchy": lambda d, m: [d.Cauchy(m.tensor([0.0, 1.0]), 2.0), d.Cauchy(-1.0, 0.5)],
    "ContinuousBernoulli": lambda d, m: [
        d.ContinuousBernoulli(m.tensor([0.1, 0.5, 0.9])),
        d.ContinuousBernoulli(m.tensor([[0.3], [0.8]])),
    ],
    "Dirichlet": lambda d, m: [
        d.Dirichlet(m.tensor([[0.5, 2.0, 9.0], [0.3, 0.2, 0.1]])),
        d.Dirichlet(m.tensor([1.0, 2.0, 3.0])),
    ],
    "Exponential": lambda d, m: [d.Exponential(m.tensor([0.5, 2.0, 1.0])), d.Exponential(3.0)],
    "Gamma": lambda d, m: [
        d.Gamma(m.tensor([0.5, 2.0, 7.0]), m.tensor([1.0, 0.5, 3.0])),
        d.Gamma(2.0, m.tensor([[0.5], [2.0]])),
    ],
    "Geometric": lambda d, m: [d.Geometric(m.tensor([0.2, 0.9])), d.Geometric(logits=m.tensor(0.3))],
    "Gumbel": lambda d, m: [d.Gumbel(m.tensor([0.5, 2.0, -1.0]), 3.0), d.Gumbel(0.0, m.tensor([[0.5], [2.0]]))],
    "HalfNormal": lambda d, m: [d.HalfNormal(m.tensor([0.5, 2.0])), d.HalfNormal(1.0)],
    "Independent": lambda d, m: [
        d.Independent(d.Normal(m.zeros(2, 3), m.ones(3)), 1),
        d.Independent(d.Normal(m.ones(3), 2.0), 1),
        d.Independent(d.Normal(m.ones(3, 3), 2.0), 2),
    ],
    "Laplace": lambda d, m: [d.Laplace(m.tensor([0.0, 1.0, -1.0]), 2.0), d.Laplace(0.5, m.tensor([[0.5], [2.0]]))],
    "LogNormal": lambda d, m: [d.LogNormal(m.tensor([0.0, 1.0]), 0.5), d.LogNormal(0.0, 1.0)],
    "Normal": lambda d, m: [
        d.Normal(m.tensor([0.0, 1.0, -2.0]), m.tensor([1.0, 0.5, 3.0])),
        d.Normal(0.5, m.tensor([[0.5], [2.0]])),
    ],
    "OneHotCategorical": lambda d, m: [
        d.OneHotCategorical(m.tensor([0.5, 0.5, 0.0])),
        d.OneHotCategorical(m.tensor([0.1, 0.9, 0.0])),
    ],
    "Pareto": lambda d, m: [
        d.Pareto(m.tensor([1.0, 2.0, 0.5]), m.tensor([0.5, 1.5, 4.0])),
        d.Pareto(0.7, m.tensor([[1.0], [2.5]])),
    ],
    "Poisson": lambda d, m: [d.Poisson(m.tensor([0.5, 4.0])), d.Poisson(2.0)],
    "TransformedDistribution": lambda d, m: [
        d.TransformedDistribution(d.Normal(m.zeros(2), s), [d.AffineTransform(b, 2.0), d.ExpTransform()])
        for s, b in ((1.0, 0.0), (2.0, 0.0), (2.0, 1.0))
    ],
    "Uniform": lambda d, m: [
        d.Uniform(m.tensor([0.2, 0.6, 2.0]), m.tensor([0.5, 0.9, 4.0])),
        d.Uniform(m.tensor([[-1.0], [0.1]]), 1.5),
        d.Uniform(-2.0, 2.0),
    ],
}
OF_NORMALS = {
    "MultivariateNormal": lambda d, m: [
        d.MultivariateNormal(m.tensor([1.0, 2.0, 3.0]), spd(m, 3)),
        d.MultivariateNormal(m.zeros(2, 3), spd(m, 2, 3, seed=1)),
    ],
    "LowRankMultivariateNormal": lambda d, m: [
        MADE["LowRankMultivariateNormal"](d, m),
        d.LowRankMultivariateNormal(m.zeros(3), m.ones(3, 1), m.ones(3)),
    ],
}
if "MultivariateNormal" in MADE:
    OF |= OF_NORMALS


def test_every_pair_of_pytorch_is_registered():
    pairs = [tuple({(a.__name__, b.__name__) for a, b in m.distributions.kl._KL_REGISTRY}) for m in (lucid, torch)]
    assert set(pairs[0]) >= set(pairs[1])
    asked = {name for pair in pairs[1] for name in pair} - {"ExponentialFamily"} - set(OF_NORMALS)
    assert asked <= set(OF)


@pytest.mark.parametrize("names", list(itertools.product(OF, OF)), ids="-".join)
def test_pairs(names):
    def program(m):
        d, result = m.distributions, []
        for p, q in itertools.product(OF[names[0]](d, m), OF[names[1]](d, m)):

            def one(m, d=d, p=p, q=q):
                shape = m.broadcast_shapes(p.batch_shape, q.batch_shape)  # PyTorch's constants and masks do not broadcast
                return d.kl_divergence(p.expand(shape), q.expand(shape))

            result.append(attempt(one, m))
        return result

    if set(names) == {"ContinuousBernoulli", "Uniform"}:
        return  # below: PyTorch is wrong about borders
    for mine, theirs in zip(program(lucid), program(torch), strict=True):
        if theirs != "RuntimeError" or "LowRank" not in names[0]:  # of factors that do not broadcast
            assert_close(mine, theirs, rel=2e-4, absolute=2e-5)


def test_uniform_and_continuous_bernoulli():
    """PyTorch finds an infinite divergence where the supports are equal."""
    d = lucid.distributions
    unit, cb = d.Uniform(0.0, 1.0), d.ContinuousBernoulli(lucid.tensor([0.2, 0.7]))
    for p, q in ((unit, cb), (cb, unit)):
        lucid.manual_seed(0)
        x = p.sample((200_000, 1) if p is unit else (200_000,))
        lucid.testing.assert_close(d.kl_divergence(p, q), (p.log_prob(x) - q.log_prob(x)).mean(0), atol=3e-3, rtol=0)
    assert d.kl_divergence(cb, d.Uniform(0.1, 1.0)).isinf().all() and d.kl_divergence(d.Uniform(-0.1, 1.0), cb).isinf().all()


FINITE = [
    (p, q)
    for p, q in itertools.product(OF, OF)
    if p != q
    and p in ("Beta", "Exponential", "Gamma", "Normal", "Uniform", "Laplace", "Gumbel")
    and q in ("Normal", "Gumbel", "Exponential", "Gamma", "Laplace", "Uniform", "Beta")
]


@pytest.mark.parametrize("names", FINITE, ids="-".join)
def test_formulas_beside_estimates(names):
    """The mean of log p(x) - log q(x) over samples of p, where all of them have a density under q."""
    d = lucid.distributions
    p, q = (OF[name](d, lucid)[0] for name in names)
    kl = _formula(p, q)
    if kl is None:
        return
    lucid.manual_seed(1)
    estimate = d.kl._estimate(p, q, 100_000)
    finite = kl.isfinite()
    assert lucid.equal(finite, estimate.isfinite())
    lucid.testing.assert_close(estimate[finite], kl[finite], rtol=0.05, atol=0.03)


def _formula(p, q):
    try:
        return lucid.distributions.kl_divergence(p, q)
    except NotImplementedError:
        return None


def test_estimates():
    d = lucid.distributions
    with pytest.raises(NotImplementedError, match="No KL"):
        d.kl_divergence(d.StudentT(3.0), d.Normal(0.0, 1.0))
    loc = lucid.tensor(0.5, requires_grad=True)
    lucid.manual_seed(0)
    kl = d.kl_divergence(d.StudentT(5.0, loc), d.Normal(0.0, 2.0), samples=200_000)
    kl.backward()
    assert abs(loc.grad.item() - 0.5 / 4) < 5e-3  # of loc ** 2 / (2 * 2 ** 2)
    exact = d.kl_divergence(d.Normal(0.0, 1.0), d.Normal(1.0, 1.0), samples=3)  # the formula, not three samples
    assert exact.item() == 0.5
    assert d.kl_divergence(d.Normal(0.0, 1.0), d.Weibull(1.0, 1.0), samples=100).item() == float("inf")
    assert d.kl_divergence(d.Binomial(3, 0.5), d.Poisson(1.5), samples=10).shape == ()
    for samples in (0, 1.5):
        with pytest.raises(ValueError):
            d.kl_divergence(d.StudentT(3.0), d.Normal(0.0, 1.0), samples=samples)
    with pytest.raises(ValueError):
        d.kl_divergence(d.Dirichlet(lucid.ones(2)), d.Cauchy(0.0, 1.0), samples=5)


def test_registering():
    for m in (lucid, torch):
        d = m.distributions

        class A(d.Normal):
            pass

        class B(d.Normal):
            pass

        before = dict(d.kl._KL_REGISTRY)
        try:
            d.register_kl(A, d.Normal)(lambda p, q: "left")
            assert d.kl_divergence(A(0.0, 1.0), B(0.0, 1.0)) == "left"
            d.register_kl(d.Normal, B)(lambda p, q: "right")
            with pytest.warns(RuntimeWarning, match="Ambiguous"):
                assert d.kl_divergence(A(0.0, 1.0), B(0.0, 1.0)) == "left"
            d.register_kl(A, B)(lambda p, q: "both")
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert d.kl_divergence(A(0.0, 1.0), B(0.0, 1.0)) == "both"
        finally:
            d.kl._KL_REGISTRY.clear()
            d.kl._KL_REGISTRY.update(before)
            d.kl._KL_MEMOIZE.clear()
    with pytest.raises(TypeError):
        lucid.distributions.register_kl(3, lucid.distributions.Normal)


@pytest.mark.parametrize("name", ["Normal", "Gamma", "Beta", "Dirichlet", "Exponential", "Poisson", "Bernoulli logits"])
def test_bregman_divergences_and_entropies(name):
    """What exponential families have without formulas of their own."""
    d = lucid.distributions
    p = MADE[name](d, lucid)
    q = type(p)(
        *(v.detach() * 1.5 + 0.25 for v in (getattr(p, k) for k in p.arg_constraints))
        if name != "Bernoulli logits"
        else [None, p.logits + 1]
    )
    lucid.testing.assert_close(d.kl._exponential_family(p, q), d.kl_divergence(p, q), rtol=1e-4, atol=1e-5)
    if name in ("Gamma", "Exponential"):
        lucid.testing.assert_close(d.ExponentialFamily.entropy(p), p.entropy(), rtol=1e-4, atol=1e-5)


def test_broadcasting():
    d = lucid.distributions
    for p, q in itertools.product(OF, OF):
        for a, b in itertools.product(OF[p](d, lucid), OF[q](d, lucid)):
            try:
                shape = lucid.broadcast_shapes(a.batch_shape, b.batch_shape)
            except RuntimeError:
                continue
            kl = _formula(a, b) if p != "Binomial" and a.event_shape == b.event_shape else None
            assert kl is None or kl.shape == shape, (p, q)

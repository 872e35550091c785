"""Distributions by themselves: samples have the moments and the distribution function they should, densities an area of one."""

import math

import pytest

import lucid
from tests.distributions.families import MADE

N = 20_000
HEAVY = ("Cauchy", "HalfCauchy", "StudentT", "InverseGamma", "FisherSnedecor", "Pareto", "GeneralizedPareto", "LogNormal")


def made(name):
    return MADE[name](lucid.distributions, lucid)


def asked(d, name):
    try:
        return getattr(d, name)
    except NotImplementedError:
        return None


@pytest.mark.parametrize("name", [n for n in MADE if n.split()[0] not in HEAVY and "Wishart" not in n and "VonMises" not in n])
def test_moments(name):
    d = made(name)
    mean, variance = asked(d, "mean"), asked(d, "variance")
    if mean is None or variance is None or mean.isnan().any():
        return
    lucid.manual_seed(0)
    x = d.sample((N,))
    error = (x.mean(0) - mean) / (variance / N).sqrt().clamp(min=1e-6)
    assert error.abs().max() < 5  # standard deviations of the mean
    assert ((x.var(0) - variance).abs() <= 0.15 * variance + 1e-4).all()


@pytest.mark.parametrize("name", [n for n in MADE if made(n).support.event_dim == 0])
def test_kolmogorov_smirnov(name):
    """The largest distance between cdf and the share of samples below."""
    d = made(name)
    try:
        if d.support.is_discrete:
            return
        lucid.manual_seed(1)
        x = d.sample((4_000,)).sort(0)[0]
        below = d.cdf(x)
    except NotImplementedError:
        return
    rank = (lucid.arange(4_000, dtype=x.dtype) + 0.5).reshape((-1,) + (1,) * (x.dim() - 1)) / 4_000
    assert (below - rank).abs().max() < 2.2 / math.sqrt(4_000)  # p = 1e-4


@pytest.mark.parametrize("name", [n for n in MADE if made(n).support.event_dim == 0])
def test_inverse_distribution_functions(name):
    d = made(name)
    u = lucid.linspace(0.05, 0.95, 10).reshape((-1,) + (1,) * len(d.batch_shape))
    try:
        x = d.icdf(u)
        lucid.testing.assert_close(d.cdf(x), u.expand(x.shape).to(x.dtype), rtol=1e-3, atol=1e-3)
    except NotImplementedError:
        return


LINES = {  # where to integrate, for densities over the line that are neither too steep nor too wide
    "Normal": (-40, 40),
    "Laplace": (-60, 60),
    "Gumbel": (-20, 120),
    "LogNormal": (1e-6, 200),
    "HalfNormal": (0, 30),
    "Exponential": (0, 80),
    "Uniform": (-1, 3),
    "Gamma numbers": (1e-6, 60),
    "Weibull": (1e-6, 30),
    "Beta numbers": (1e-6, 1 - 1e-6),
    "ContinuousBernoulli": (0, 1),
    "Kumaraswamy": None,
    "LogitRelaxedBernoulli": (-60, 60),
    "VonMises": (-math.pi, math.pi),
    "MixtureSameFamily": (-20, 20),
    "StudentT number": (-4000, 4000),
    "GeneralizedPareto": None,
}


@pytest.mark.parametrize("name", [n for n, ends in LINES.items() if ends])
def test_densities_integrate_to_one(name):
    """By the trapezoid rule. Outside of the support of one element of a batch the density is left out."""
    d = MADE[name](lucid.distributions, lucid)
    d._validate_args = False
    low, high = LINES[name]
    x = lucid.linspace(low, high, 200_001, dtype=lucid.float64)
    column = x.reshape((-1,) + (1,) * len(d.batch_shape))
    inside = d.support.check(column)
    density = d.log_prob(column).double().exp().where(inside, 0.0)
    area = ((density[1:] + density[:-1]) / 2 * (x[1] - x[0])).sum(0)
    assert (area - 1).abs().max() < 5e-3


@pytest.mark.parametrize(
    "name", ["Bernoulli", "Categorical", "OneHotCategorical", "Binomial number", "Poisson", "Geometric", "NegativeBinomial"]
)
def test_probabilities_sum_to_one(name):
    d = made(name)
    values = d.enumerate_support(expand=False) if d.has_enumerate_support else lucid.arange(400.0).reshape(-1, 1)
    assert (d.log_prob(values).exp().sum(0) - 1).abs().max() < 1e-4


def test_samples_of_vectors():
    d = lucid.distributions
    lucid.manual_seed(0)
    assert (d.Dirichlet(lucid.full((5,), 0.1)).sample((1000,)).sum(-1) - 1).abs().max() < 1e-5
    assert (d.Multinomial(7, lucid.ones(3)).sample((100,)).sum(-1) == 7).all()
    assert (d.LogisticNormal(lucid.zeros(3), 1.0).sample((100,)).sum(-1) - 1).abs().max() < 1e-5
    factors = d.LKJCholesky(4, 0.7).sample((500,))
    assert d.constraints.corr_cholesky.holds(factors)
    angles = d.VonMises(3.0, 0.5).sample((10_000,))
    assert angles.abs().max() <= math.pi + 1e-6 and abs((angles - 3).cos().mean() - (1 - d.VonMises(3.0, 0.5).variance)) < 0.02


def test_mixtures_choose_for_each_element():
    """PyTorch refuses a `Categorical` with fewer batch dimensions than the components."""
    d = lucid.distributions
    lucid.manual_seed(0)
    mixture = d.MixtureSameFamily(d.Categorical(lucid.ones(2)), d.Normal(lucid.tensor([-5.0, 5.0]).expand(3, 2), 0.1))
    x = mixture.sample((2000,)) > 0
    assert x.shape == (2000, 3) and (x.float().mean(0) - 0.5).abs().max() < 0.05
    assert 0.4 < (x[:, 0] == x[:, 1]).float().mean() < 0.6

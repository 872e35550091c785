"""Distributions beside PyTorch's: what they say about themselves, what they draw, and what they refuse."""

import itertools

import pytest
import torch

import lucid
from tests.nn.programs import assert_close, attempt

MADE = {
    "Normal": lambda d, m: d.Normal(m.tensor([0.0, 1.0, -2.0]), m.tensor([1.0, 0.5, 3.0])),
    "Normal numbers": lambda d, m: d.Normal(0, 2.0),
    "Normal broadcast": lambda d, m: d.Normal(m.zeros(2, 1), m.tensor([1.0, 2.0, 3.0])),
    "Uniform": lambda d, m: d.Uniform(m.tensor([0.0, -1.0]), m.tensor([1.0, 3.0])),
    "Exponential": lambda d, m: d.Exponential(m.tensor([0.5, 2.0])),
    "Laplace": lambda d, m: d.Laplace(m.tensor([0.0, 1.0]), 2.0),
    "Cauchy": lambda d, m: d.Cauchy(m.tensor([0.0, 1.0]), 2.0),
    "LogNormal": lambda d, m: d.LogNormal(m.tensor([0.0, 1.0]), 0.5),
    "HalfNormal": lambda d, m: d.HalfNormal(m.tensor([0.5, 2.0])),
    "HalfCauchy": lambda d, m: d.HalfCauchy(m.tensor([0.5, 2.0])),
    "Gumbel": lambda d, m: d.Gumbel(m.tensor([0.5, 2.0]), 3.0),
    "Gumbel numbers": lambda d, m: d.Gumbel(1, 3.0),
    "Bernoulli": lambda d, m: d.Bernoulli(m.tensor([0.0, 0.3, 0.5, 1.0])),
    "Bernoulli logits": lambda d, m: d.Bernoulli(logits=m.tensor([-1.0, 2.0])),
    "Categorical": lambda d, m: d.Categorical(m.tensor([[1.0, 2.0, 1.0], [0.0, 1.0, 3.0]])),
    "Categorical logits": lambda d, m: d.Categorical(logits=m.tensor([0.5, -1.0, 2.0])),
    "OneHotCategorical": lambda d, m: d.OneHotCategorical(m.tensor([[1.0, 2.0, 1.0], [0.0, 1.0, 3.0]])),
    "Poisson": lambda d, m: d.Poisson(m.tensor([0.5, 4.0])),
    "Geometric": lambda d, m: d.Geometric(m.tensor([0.2, 0.9])),
    "Geometric logits": lambda d, m: d.Geometric(logits=m.tensor([0.2, 0.9])),
    "Independent": lambda d, m: d.Independent(d.Normal(m.zeros(2, 3), m.ones(3)), 1),
    "Independent of bits": lambda d, m: d.Independent(d.Bernoulli(m.tensor([0.2, 0.7])), 1),
}
ASKED = ["mean", "mode", "variance", "stddev", "batch_shape", "event_shape", "has_rsample", "has_enumerate_support"]
ALIKE = [(p, q) for p, q in itertools.product(MADE, MADE) if p.split()[0] == q.split()[0]]


def seen(name, what):
    def program(m):
        m.manual_seed(3)
        return what(MADE[name](m.distributions, m), m)

    ours, theirs = (attempt(program, m) for m in (lucid, torch))
    assert_close(ours, theirs)


@pytest.mark.parametrize("name", MADE)
def test_attributes(name):
    for asked in ASKED:
        seen(name, lambda d, m, asked=asked: (getattr(d, asked), 0))
    seen(name, lambda d, m: repr(d))
    seen(name, lambda d, m: (d.entropy(), d.perplexity()))
    seen(name, lambda d, m: str(d.support))
    for expand in (True, False):
        seen(name, lambda d, m, expand=expand: d.enumerate_support(expand))


@pytest.mark.parametrize("name", MADE)
def test_samples_and_densities(name):
    for shape in ((), (2,), (3, 2)):
        seen(name, lambda d, m, shape=shape: d.sample(shape))
        seen(name, lambda d, m, shape=shape: d.rsample(shape))
        seen(name, lambda d, m, shape=shape: d.log_prob(d.sample(shape)))
        seen(name, lambda d, m, shape=shape: d.expand((2, *d.batch_shape)).sample(shape))
        seen(name, lambda d, m, shape=shape: d.expand((2, *d.batch_shape)).log_prob(d.sample(shape)))
    seen(name, lambda d, m: d.cdf(d.sample((4,))))
    seen(name, lambda d, m: d.icdf(m.tensor([0.25, 0.5])[:, None]))
    seen(name, lambda d, m: (d.log_prob(d.sample() - 0.5), d.log_prob(m.full((7,), -1.5))))
    seen(name, lambda d, m: d.log_prob(m.full((7,), -1.5)))
    seen(name, lambda d, m: d.log_prob(1.0))


@pytest.mark.parametrize("name", [n for n in MADE if "OneHot" not in n])
def test_gradients(name):
    def program(m):
        m.manual_seed(3)
        d = MADE[name](m.distributions, m)
        inner = getattr(d, "base_dist", d)
        given = [v.detach().clone().requires_grad_() for k, v in vars(inner).items() if k in inner.arg_constraints]
        made = type(inner)(*given) if "logits" not in vars(inner) else type(inner)(logits=given[0])
        x = (made.rsample if made.has_rsample else made.sample)((4,))
        loss = made.log_prob(x.detach()).clamp(-50, 50).sum() + (x * x).sum()
        return m.autograd.grad(loss, given)

    assert_close(*(attempt(program, m) for m in (lucid, torch)))


@pytest.mark.parametrize("names", ALIKE, ids="-".join)
def test_divergences(names):
    def program(m):
        p, q = (MADE[n](m.distributions, m) for n in names)
        return m.distributions.kl_divergence(p, q)

    assert_close(*(attempt(program, m) for m in (lucid, torch)))


PAIRS = {
    "Exponential": lambda d, m: (d.Exponential(m.tensor([1.0, 2.0])), d.Exponential(3.0)),
    "Laplace": lambda d, m: (d.Laplace(m.tensor([1.0, 2.0]), 2.0), d.Laplace(0.0, 1.0)),
    "Poisson": lambda d, m: (d.Poisson(2.0), d.Poisson(m.tensor([1.0, 4.0]))),
    "Geometric": lambda d, m: (d.Geometric(0.3), d.Geometric(m.tensor([0.2, 0.9]))),
    "Uniform": lambda d, m: (d.Uniform(0.0, 1.0), d.Uniform(m.tensor([-1.0, 0.5]), 2.0)),
    "OneHotCategorical": lambda d, m: tuple(d.OneHotCategorical(m.tensor(v)) for v in ([0.5, 0.5, 0.0], [0.1, 0.9, 0.0])),
    "Categorical without mass": lambda d, m: tuple(d.Categorical(m.tensor(v)) for v in ([0.5, 0.5, 0.0], [1.0, 0.0, 0.0])),
}
REFUSED = {
    "scale": lambda d, m: d.Normal(0.0, -1.0),
    "scale, unchecked": lambda d, m: d.Normal(0.0, -1.0, validate_args=False).scale,
    "nan": lambda d, m: d.Normal(float("nan"), 1.0),
    "half of a negative scale": lambda d, m: d.HalfNormal(-1.0),
    "strings": lambda d, m: d.Normal("a", 1.0),
    "interval": lambda d, m: d.Uniform(1.0, 0.0),
    "rate": lambda d, m: d.Exponential(0.0),
    "probability": lambda d, m: d.Bernoulli(1.5),
    "both": lambda d, m: d.Bernoulli(0.5, 0.5),
    "neither": lambda d, m: d.Categorical(),
    "a number of classes": lambda d, m: d.Categorical(m.tensor(0.5)),
    "negative probabilities": lambda d, m: d.Categorical(m.tensor([-1.0, 2.0])),
    "nan logits": lambda d, m: d.Categorical(logits=m.tensor([float("nan"), 2.0])),
    "class": lambda d, m: d.Categorical(m.ones(3)).log_prob(m.tensor(3)),
    "success": lambda d, m: d.Geometric(0.0),
    "dims": lambda d, m: d.Independent(d.Normal(0.0, 1.0), 1),
    "no pair": lambda d, m: d.kl_divergence(d.Normal(0.0, 1.0), d.Poisson(1.0)),
    "no such attribute": lambda d, m: d.Bernoulli(0.5).bogus,
    "base": lambda d, m: d.Distribution().mean,
}


@pytest.mark.parametrize("name", [*PAIRS, *REFUSED])
def test_pairs_and_refusals(name):
    def program(m):
        if name in PAIRS:
            return m.distributions.kl_divergence(*PAIRS[name](m.distributions, m))
        return REFUSED[name](m.distributions, m)

    assert_close(*(attempt(program, m) for m in (lucid, torch)))


def test_validation_can_be_switched_off():
    for m in (lucid, torch):
        m.distributions.Distribution.set_default_validate_args(False)
        try:
            assert m.distributions.Normal(0.0, -1.0).scale.item() == -1
        finally:
            m.distributions.Distribution.set_default_validate_args(True)
        with pytest.raises(ValueError):
            m.distributions.Distribution.set_default_validate_args(None)

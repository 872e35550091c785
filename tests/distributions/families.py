"""Distributions of every class, made with either library: d is its `distributions`, m the library."""

import lucid
import lucid.linalg
from tests.nn.programs import assert_close, attempt

NAN = float("nan")


def spd(m, *shape, seed=0):
    """Positive definite matrices."""
    g = m.Generator().manual_seed(seed)
    a = m.randn(*shape, shape[-1], generator=g, dtype=m.float64).to(m.float32)
    return a @ a.mT + shape[-1] * m.eye(shape[-1])


MADE = {
    "Normal": lambda d, m: d.Normal(m.tensor([0.0, 1.0, -2.0]), m.tensor([1.0, 0.5, 3.0])),
    "Normal numbers": lambda d, m: d.Normal(0, 2.0),
    "Normal broadcast": lambda d, m: d.Normal(m.zeros(2, 1), m.tensor([1.0, 2.0, 3.0])),
    "Normal float64": lambda d, m: d.Normal(m.zeros(3, dtype=m.float64), 2.0),
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
    "OneHotCategoricalStraightThrough": lambda d, m: d.OneHotCategoricalStraightThrough(m.tensor([[1.0, 2.0], [1.0, 3.0]])),
    "Poisson": lambda d, m: d.Poisson(m.tensor([0.5, 4.0])),
    "Geometric": lambda d, m: d.Geometric(m.tensor([0.2, 0.9])),
    "Geometric logits": lambda d, m: d.Geometric(logits=m.tensor([0.2, 0.9])),
    "Independent": lambda d, m: d.Independent(d.Normal(m.zeros(2, 3), m.ones(3)), 1),
    "Independent of bits": lambda d, m: d.Independent(d.Bernoulli(m.tensor([0.2, 0.7])), 1),
    "Independent of none": lambda d, m: d.Independent(d.Bernoulli(m.tensor([0.2, 0.7])), 0),
    "Gamma": lambda d, m: d.Gamma(m.tensor([0.3, 1.0, 20.0]), m.tensor([1.0, 2.0, 0.5])),
    "Gamma numbers": lambda d, m: d.Gamma(2, 3.0),
    "Gamma float64": lambda d, m: d.Gamma(m.tensor([0.3, 1.5, 700.0], dtype=m.float64), 2.0),
    "Chi2": lambda d, m: d.Chi2(m.tensor([0.5, 3.0, 11.0])),
    "InverseGamma": lambda d, m: d.InverseGamma(m.tensor([0.8, 1.5, 4.0]), m.tensor([1.0, 2.0, 0.5])),
    "FisherSnedecor": lambda d, m: d.FisherSnedecor(m.tensor([1.0, 3.0, 7.0]), m.tensor([1.5, 4.0, 9.0])),
    "StudentT": lambda d, m: d.StudentT(m.tensor([0.7, 1.5, 5.0]), m.tensor([0.0, 1.0, -1.0]), 2.0),
    "StudentT number": lambda d, m: d.StudentT(3.0),
    "Beta": lambda d, m: d.Beta(m.tensor([0.5, 2.0, 9.0]), m.tensor([0.5, 3.0, 4.0])),
    "Beta numbers": lambda d, m: d.Beta(2, 3.0),
    "Dirichlet": lambda d, m: d.Dirichlet(m.tensor([[0.5, 2.0, 9.0], [0.3, 0.2, 0.1]])),
    "Pareto": lambda d, m: d.Pareto(m.tensor([1.0, 2.0, 0.5]), m.tensor([0.5, 1.5, 4.0])),
    "Weibull": lambda d, m: d.Weibull(m.tensor([1.0, 2.0]), m.tensor([1.5, 3.0])),
    "GeneralizedPareto": lambda d, m: d.GeneralizedPareto(m.tensor([0.0, 1.0, 2.0]), 2.0, m.tensor([-0.5, 0.0, 0.3])),
    "Kumaraswamy": lambda d, m: d.Kumaraswamy(m.tensor([0.5, 2.0]), m.tensor([0.7, 3.0])),
    "ContinuousBernoulli": lambda d, m: d.ContinuousBernoulli(m.tensor([0.1, 0.4995, 0.5, 0.9])),
    "ContinuousBernoulli logits": lambda d, m: d.ContinuousBernoulli(logits=m.tensor([-1.0, 0.001, 2.0])),
    "RelaxedBernoulli": lambda d, m: d.RelaxedBernoulli(m.tensor(0.7), m.tensor([0.1, 0.5, 0.9])),
    "RelaxedBernoulli logits": lambda d, m: d.RelaxedBernoulli(m.tensor(0.7), logits=m.tensor([0.1, -0.5])),
    "LogitRelaxedBernoulli": lambda d, m: d.relaxed_bernoulli.LogitRelaxedBernoulli(m.tensor(0.7), m.tensor([0.1, 0.5])),
    "RelaxedOneHotCategorical": lambda d, m: d.RelaxedOneHotCategorical(
        m.tensor(0.7), m.tensor([[1.0, 2.0, 1.0], [3.0, 1.0, 1.0]])
    ),
    "ExpRelaxedCategorical": lambda d, m: d.relaxed_categorical.ExpRelaxedCategorical(
        m.tensor(0.7), logits=m.tensor([1.0, 2.0])
    ),
    "LogisticNormal": lambda d, m: d.LogisticNormal(m.tensor([[0.0, 1.0], [1.0, -1.0]]), m.tensor([1.0, 0.5])),
    "LogisticNormal number": lambda d, m: d.LogisticNormal(0.5, 1.0),
    "Binomial": lambda d, m: d.Binomial(m.tensor([3.0, 10.0, 40.0]), m.tensor([0.1, 0.5, 0.9])),
    "Binomial number": lambda d, m: d.Binomial(5, logits=m.tensor([0.1, -2.0])),
    "NegativeBinomial": lambda d, m: d.NegativeBinomial(m.tensor([0.0, 3.0, 2.5]), m.tensor([0.1, 0.5, 0.9])),
    "NegativeBinomial logits": lambda d, m: d.NegativeBinomial(4, logits=m.tensor([0.1, -2.0])),
    "Multinomial": lambda d, m: d.Multinomial(6, m.tensor([[1.0, 2.0, 1.0], [0.0, 1.0, 3.0]])),
    "Multinomial logits": lambda d, m: d.Multinomial(3, logits=m.tensor([0.5, -1.0, 2.0])),
    "VonMises": lambda d, m: d.VonMises(m.tensor([0.0, 1.0, 3.0]), m.tensor([0.1, 2.0, 50.0])),
    "MixtureSameFamily": lambda d, m: d.MixtureSameFamily(
        d.Categorical(m.tensor([[1.0, 3.0]]).expand(3, 2)), d.Normal(m.tensor([[-1.0, 1.0], [0.0, 2.0], [1.0, 1.0]]), 0.5)
    ),
    "MixtureSameFamily of vectors": lambda d, m: d.MixtureSameFamily(
        d.Categorical(m.ones(2, 3)), d.Independent(d.Gamma(m.ones(2, 3, 4), 2.0), 1)
    ),
    "TransformedDistribution": lambda d, m: d.TransformedDistribution(
        d.Normal(m.zeros(3), 1.0), [d.AffineTransform(1.0, m.tensor([[2.0], [-1.0]])), d.SigmoidTransform()]
    ),
    "TransformedDistribution of vectors": lambda d, m: d.TransformedDistribution(
        d.Normal(m.zeros(2, 3), 1.0), [d.StickBreakingTransform()]
    ),
    "TransformedDistribution reshaped": lambda d, m: d.TransformedDistribution(
        d.Independent(d.Exponential(m.ones(5, 6)), 1), [d.ReshapeTransform((6,), (2, 3)), d.ExpTransform()]
    ),
    "TransformedDistribution by nothing": lambda d, m: d.TransformedDistribution(d.Uniform(0.0, 1.0), []),
    "LKJCholesky": lambda d, m: d.LKJCholesky(3, m.tensor([0.5, 1.0, 2.0], dtype=m.float64)),
    "LKJCholesky number": lambda d, m: d.LKJCholesky(4),
}
OF_MATRICES = {  # these need factorisations
    "MultivariateNormal": lambda d, m: d.MultivariateNormal(m.tensor([1.0, 2.0, 3.0]), spd(m, 3)),
    "MultivariateNormal batch": lambda d, m: d.MultivariateNormal(m.zeros(4, 1, 3), precision_matrix=spd(m, 2, 3)),
    "MultivariateNormal tril": lambda d, m: d.MultivariateNormal(
        m.zeros(2, 3), scale_tril=m.tensor([[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [-1.0, 0.2, 0.7]])
    ),
    "LowRankMultivariateNormal": lambda d, m: d.LowRankMultivariateNormal(
        m.tensor([1.0, 2.0, 3.0]), m.tensor([[1.0, 0.5], [0.0, 2.0], [-1.0, 1.0]]), m.tensor([[0.5, 1.0, 2.0], [1.0, 1.0, 1.0]])
    ),
    "Wishart": lambda d, m: d.Wishart(m.tensor([4.0, 6.5]), spd(m, 3) / 3),
    "Wishart number": lambda d, m: d.Wishart(4.0, precision_matrix=spd(m, 2)),
    "Wishart tril": lambda d, m: d.Wishart(5.0, scale_tril=m.tensor([[1.0, 0.0], [0.5, 2.0]])),
}
if hasattr(lucid.linalg, "cholesky"):
    MADE |= OF_MATRICES


def compare(program, rel=1e-5, absolute=1e-6):
    """A program with both libraries, after the same seed."""

    def seeded(m):
        m.manual_seed(3)
        return program(m.distributions, m)

    assert_close(*(attempt(seeded, m) for m in libraries()), rel, absolute)


def libraries():
    import torch

    return lucid, torch

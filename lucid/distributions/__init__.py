"""Probability distributions: samples, log densities, entropies, divergences, as policies and variational models need them.

>>> from lucid.distributions import Categorical, Normal, kl_divergence
>>> policy = Categorical(logits=lucid.tensor([0.0, 0.0]))
>>> action = policy.sample()
>>> policy.log_prob(action)
tensor(-0.6931)
>>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
tensor(0.5000)

With the same seed samples are PyTorch's.
"""

from . import constraints
from .bernoulli import Bernoulli
from .categorical import Categorical
from .cauchy import Cauchy
from .changed import Gumbel, HalfCauchy, HalfNormal, LogNormal
from .distribution import Distribution, ExponentialFamily
from .exponential import Exponential
from .geometric import Geometric
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .poisson import Poisson
from .uniform import Uniform

__all__ = [
    "Bernoulli",
    "Categorical",
    "Cauchy",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "Laplace",
    "LogNormal",
    "Normal",
    "OneHotCategorical",
    "Poisson",
    "Uniform",
    "constraints",
    "kl_divergence",
    "register_kl",
]

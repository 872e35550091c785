"""Probability distributions: samples, log densities, entropies, divergences, as policies and variational models need them.

>>> from lucid.distributions import Categorical, Normal, kl_divergence
>>> policy = Categorical(logits=lucid.tensor([0.0, 0.0]))
>>> action = policy.sample()
>>> policy.log_prob(action)
tensor(-0.6931)
>>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
tensor(0.5000)

With the same seed samples are PyTorch's. A file holds a family and its relatives; PyTorch has a module per class, and those
names can be imported as well: `from lucid.distributions.half_normal import HalfNormal`.
"""

import sys

from . import (
    bernoulli,
    binomial,
    categorical,
    cauchy,
    constraint_registry,
    constraints,
    dirichlet,
    distribution,
    exponential,
    gamma,
    independent,
    kl,
    laplace,
    mixture_same_family,
    multivariate_normal,
    normal,
    poisson,
    transformed_distribution,
    transforms,
    uniform,
    utils,
    von_mises,
    wishart,
)
from .bernoulli import Bernoulli, ContinuousBernoulli, RelaxedBernoulli
from .binomial import Binomial, Geometric, NegativeBinomial
from .categorical import (
    Categorical,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    RelaxedOneHotCategorical,
)
from .cauchy import Cauchy, HalfCauchy
from .constraint_registry import biject_to, transform_to
from .dirichlet import Beta, Dirichlet
from .distribution import Distribution, ExponentialFamily
from .exponential import Exponential, GeneralizedPareto, Pareto, Weibull
from .gamma import Chi2, FisherSnedecor, Gamma, InverseGamma, StudentT
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .mixture_same_family import MixtureSameFamily
from .multivariate_normal import LowRankMultivariateNormal, MultivariateNormal
from .normal import HalfNormal, LogisticNormal, LogNormal, Normal
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .transforms import *  # noqa: F403 (the names of its __all__)
from .uniform import Gumbel, Kumaraswamy, Uniform
from .von_mises import VonMises
from .wishart import LKJCholesky, Wishart

_OTHER_NAMES = {  # PyTorch's modules whose classes are in a file of another name
    bernoulli: "continuous_bernoulli relaxed_bernoulli",
    binomial: "geometric negative_binomial",
    categorical: "multinomial one_hot_categorical relaxed_categorical",
    cauchy: "half_cauchy",
    dirichlet: "beta",
    distribution: "exp_family",
    exponential: "generalized_pareto pareto weibull",
    gamma: "chi2 fishersnedecor inverse_gamma studentT",
    multivariate_normal: "lowrank_multivariate_normal",
    normal: "half_normal log_normal logistic_normal",
    uniform: "gumbel kumaraswamy",
    wishart: "lkj_cholesky",
}
for _module, _names in _OTHER_NAMES.items():
    for _name in _names.split():
        globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _module

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraints",
    "kl_divergence",
    "register_kl",
    "transform_to",
    *transforms.__all__,
]

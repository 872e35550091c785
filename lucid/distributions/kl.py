"""Divergences between distributions: a function per pair of classes; more can be registered, and the rest can be estimated.

Pairs of different families share their arithmetic: KL(p || q) = -entropy(p) - E[log q(x)], and log q(x) is linear in few
statistics of x. A function per q computes the second term from the mean and variance of p, the mean of log x (`_MEAN_LOG`)
or of exp(-x / s) (`_MEAN_EXP`). Pairs whose q cannot produce what p does are in one list and give infinity.
"""

import copy
import math
import warnings

from .. import _C, broadcast_shapes
from ..nn.functional import softplus
from .bernoulli import Bernoulli, ContinuousBernoulli
from .binomial import Binomial, Geometric
from .categorical import Categorical, OneHotCategorical
from .cauchy import Cauchy
from .dirichlet import Beta, Dirichlet
from .distribution import HALF_LOG_2PI, Distribution, ExponentialFamily
from .exponential import Exponential, Pareto
from .gamma import Gamma
from .independent import Independent
from .laplace import Laplace
from .multivariate_normal import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    _batch_mahalanobis,
    _batch_trace_xxt,
    _linalg,
    _log_diagonal,
)
from .normal import HalfNormal, Normal
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Gumbel, Uniform
from .utils import _sum_rightmost, euler_constant

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY = {}  # pairs of classes, to functions
_KL_MEMOIZE = {}  # the same for subclasses that were asked for


def register_kl(type_p, type_q):
    """Decorate the function that computes `kl_divergence` for two classes of distributions, or subclasses of them.

    >>> class Mine(lucid.distributions.Normal):
    ...     pass
    >>> @lucid.distributions.register_kl(Mine, Mine)
    ... def kl_mine_mine(p, q):
    ...     return lucid.zeros(p.batch_shape)
    >>> lucid.distributions.kl_divergence(Mine(0.0, 1.0), Mine(1.0, 1.0))
    tensor(0.)
    """
    for cls, name in ((type_p, "type_p"), (type_q, "type_q")):
        if not isinstance(cls, type):  # PyTorch takes any class: Pyro's distributions have a base of their own
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {cls}")

    def register(function):
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return register


def _find(type_p, type_q):
    """The function of the most specific pair: closest in p, then in q. A warning if closest in q, then in p, is another one."""
    pairs = [(a, b) for a, b in _KL_REGISTRY if issubclass(type_p, a) and issubclass(type_q, b)]
    if not pairs:
        return None

    def distance(pair):
        return type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1])

    left, right = min(pairs, key=distance), min(pairs, key=lambda pair: distance(pair)[::-1])
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[left]


def kl_divergence(p, q, *, samples=None):
    """How much longer messages get on average, in nats, if they are made for q and come from p.

    >>> fair, not_fair = (lucid.distributions.Bernoulli(v) for v in (0.5, 0.9))
    >>> lucid.distributions.kl_divergence(fair, not_fair)
    tensor(0.5108)

    A pair of families without a formula raises NotImplementedError; `samples=n` asks for an estimate from n samples of p in
    this case, with gradients where p has `rsample`.

    >>> _ = lucid.manual_seed(0)
    >>> d = lucid.distributions
    >>> d.kl_divergence(d.Laplace(0.0, 1.0), d.StudentT(2.0), samples=100_000).round(decimals=2)
    tensor(0.0300)
    """
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _find(*pair)
    function = _KL_MEMOIZE[pair]
    try:
        if function is None:
            raise NotImplementedError(
                f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
            )
        return function(p, q)
    except NotImplementedError:
        if samples is None:
            raise
    return _estimate(p, q, samples)


def _unchecked(distribution):
    """A copy that accepts samples outside of its support, in its parts too."""
    new = copy.copy(distribution)
    for name, value in vars(distribution).items():
        if isinstance(value, Distribution):
            new.__dict__[name] = _unchecked(value)
    new._validate_args = False
    return new


def _estimate(p, q, samples):
    if p.event_shape != q.event_shape:
        raise ValueError(f"kl_divergence: p and q have different event shapes: {p.event_shape} and {q.event_shape}")
    if not isinstance(samples, int) or samples < 1:
        raise ValueError(f"kl_divergence: samples must be a positive integer, got {samples}")
    x = (p.rsample if p.has_rsample else p.sample)((samples,))
    possible = q.support.check(x)
    return (p.log_prob(x) - _C.where(possible, _unchecked(q).log_prob(x), -math.inf)).mean(0)


# --- a family and itself ---


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = _C.where(q.probs == 0, math.inf, terms)
    return _C.where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    def part(a, log_ratio, b):
        return _C.where(a == 0, 0.0, _C.where(b == 0, math.inf, a * log_ratio))

    ones = part(p.probs, softplus(-q.logits) - softplus(-p.logits), q.probs)
    return ones + part(1 - p.probs, softplus(q.logits) - softplus(p.logits), 1 - q.probs)


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    one = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return _C.where(p.total_count > q.total_count, math.inf, p.total_count * one)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    def log_factor(d):
        return d._cont_bern_log_norm() + (-d.probs).log1p()

    return p.mean * (p.logits - q.logits) + log_factor(p) - log_factor(q)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - _C.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    a, b = p.concentration, q.concentration
    shapes = b.lgamma() - a.lgamma() + (a - b) * a.digamma()
    return b * (p.rate / q.rate).log() + shapes + (q.rate - p.rate) * (a / p.rate)


def _dirichlets(a, b):
    """Of concentrations along the last dimension."""
    total_a, total_b = a.sum(-1), b.sum(-1)
    spread = ((a - b) * (a.digamma() - total_a.digamma().unsqueeze(-1))).sum(-1)
    return total_a.lgamma() - total_b.lgamma() - (a.lgamma() - b.lgamma()).sum(-1) + spread


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    return _dirichlets(p.concentration, q.concentration)


@register_kl(Beta, Beta)
def _beta(p, q):
    return _dirichlets(p._dirichlet.concentration, q._dirichlet.concentration)


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    scales, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -scales.log() + distance / q.scale + scales * _C.exp(-distance / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return -ratio.log() + distance + ratio * euler_constant + ((1 + ratio).lgamma() - distance).exp() - (1 + euler_constant)


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _C.where(p.scale < q.scale, math.inf, result)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return _C.where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p.base_dist, q.base_dist)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    """Bregman's divergence of the logarithm of the normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman divergences"
        )
    mine, normalizer, means = p._normalizer_with_gradients()
    theirs = q._natural_params
    result = q._log_normalizer(*theirs) - normalizer
    for a, b, mean in zip(mine, theirs, means, strict=True):
        result = result - _sum_rightmost((b - a) * mean, len(q.event_shape))
    return result


# --- normal vectors ---


def _same_event(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed"
        )
    return p.event_shape[0]


def _log_det(d):
    return d._log_det() if isinstance(d, LowRankMultivariateNormal) else 2 * _log_diagonal(d._unbroadcasted_scale_tril)


def _factors(d):
    """Matrices F of which the covariance is the sum of F F^T."""
    if isinstance(d, LowRankMultivariateNormal):
        return d._unbroadcasted_cov_factor, d._unbroadcasted_cov_diag.sqrt().diag_embed()
    return (d._unbroadcasted_scale_tril,)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _to_multivariate_normal(p, q):
    n, factor = _same_event(p, q), q._unbroadcasted_scale_tril
    trace = sum(_batch_trace_xxt(_linalg().solve_triangular(factor, f, upper=False)) for f in _factors(p))
    distance = _batch_mahalanobis(factor, q.loc - p.loc)
    return 0.5 * (_log_det(q) - _log_det(p) + trace + distance - n)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _to_low_rank_normal(p, q):
    n, a, root = _same_event(p, q), q._whitened(), q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
    trace = sum(_batch_trace_xxt(f * root) - _batch_trace_xxt(a @ f) for f in _factors(p))
    return 0.5 * (_log_det(q) - _log_det(p) + trace + q._mahalanobis(q.loc - p.loc) - n)


# --- different families ---


def _pairs(sources, target, function=None):
    """Register a function, or decorate one, for several classes of p and one of q."""

    def register(f):
        for source in sources:
            register_kl(source, target)(f)
        return f

    return register if function is None else register(function)


def _infinite(p, q):
    shape = broadcast_shapes(p.batch_shape, q.batch_shape)
    like = (
        next(v for v in map(p.__dict__.get, p.arg_constraints) if v is not None)
        if not isinstance(p, Beta)
        else p.concentration1
    )
    return _C.full(shape, math.inf, dtype=like.dtype, device=like.device)


_LINE = (Normal, Laplace, Gumbel)  # any number
for _target, _sources in {
    Beta: (Exponential, Gamma, Pareto, *_LINE),
    ContinuousBernoulli: (Exponential, Gamma, Pareto, *_LINE),
    Uniform: (Exponential, Gamma, Pareto, *_LINE),
    Exponential: _LINE,
    Gamma: _LINE,
    Pareto: (Beta, ContinuousBernoulli, Exponential, Gamma, *_LINE),
    Bernoulli: (Poisson,),
    Binomial: (Poisson,),
}.items():
    _pairs(_sources, _target, _infinite)


def _x_log_x(x):
    return x.xlogy(x)


def _uniform_mean_log(p):
    return (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1


_MEAN_LOG = {
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Exponential: lambda p: -euler_constant - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: _uniform_mean_log,
}
_MEAN_EXP = {  # of exp(-x / s)
    Exponential: lambda p, s: p.rate * s / (p.rate * s + 1),
    Gamma: lambda p, s: (1 + (p.rate * s).reciprocal()).pow(-p.concentration),
    Normal: lambda p, s: (-p.loc / s + 0.5 * (p.scale / s).pow(2)).exp(),
    Uniform: lambda p, s: s / (p.high - p.low) * ((-p.low / s).exp() - (-p.high / s).exp()),
}


def _statistic(table, p):
    return next(function for cls, function in table.items() if isinstance(p, cls))


def _impossible(p, q, result):
    """Infinity where p, a uniform distribution, reaches below what q can produce."""
    return _C.where(p.low < q.support.lower_bound, math.inf, result) if isinstance(p, Uniform) else result


@_pairs((Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Uniform), Normal)
def _to_normal(p, q):
    return -p.entropy() + q.scale.log() + HALF_LOG_2PI + (p.variance + (p.mean - q.loc).pow(2)) / (2 * q.scale.pow(2))


@register_kl(Pareto, Normal)
def _pareto_to_normal(p, q):
    return _C.where(p.alpha <= 2, math.inf, _to_normal(p, q))


@_pairs((Beta, ContinuousBernoulli, Gamma, Pareto, Uniform), Exponential)
def _to_exponential(p, q):
    return _impossible(p, q, -p.entropy() - q.rate.log() + q.rate * p.mean)


@_pairs((Beta, Exponential, Pareto, Uniform), Gamma)
def _to_gamma(p, q):
    a, mean_log = q.concentration, _statistic(_MEAN_LOG, p)(p)
    return _impossible(p, q, -p.entropy() + a.lgamma() - a * q.rate.log() - (a - 1) * mean_log + q.rate * p.mean)


@_pairs((Exponential, Gamma, Normal, Uniform), Gumbel)
def _to_gumbel(p, q):
    mean_exp = _statistic(_MEAN_EXP, p)(p, q.scale) * (q.loc / q.scale).exp()
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) / q.scale + mean_exp


@_pairs((Beta, ContinuousBernoulli), Uniform)
def _to_uniform(p, q):
    return _C.where((q.low > 0) | (q.high < 1), math.inf, (q.high - q.low).log() - p.entropy())


@_pairs((Beta, Uniform), ContinuousBernoulli)
def _to_continuous_bernoulli(p, q):
    result = -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()
    return _C.where((p.low < 0) | (p.high > 1), math.inf, result) if isinstance(p, Uniform) else result


@register_kl(Bernoulli, Poisson)
def _bernoulli_to_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Normal, Laplace)
def _normal_to_laplace(p, q):
    distance = p.loc - q.loc
    z = distance / p.scale
    mean_size = math.sqrt(2 / math.pi) * p.scale * (-0.5 * z.pow(2)).exp() + distance * _C.erf(math.sqrt(0.5) * z)
    return (2 * q.scale).log() + mean_size / q.scale - p.entropy()


@register_kl(Uniform, Beta)
def _uniform_to_beta(p, q):
    a, b, width = q.concentration1, q.concentration0, p.high - p.low
    mean_log_rest = (_x_log_x(1 - p.low) - _x_log_x(1 - p.high)) / width - 1
    result = a.lgamma() + b.lgamma() - (a + b).lgamma() - width.log() - (a - 1) * _uniform_mean_log(p) - (b - 1) * mean_log_rest
    return _C.where((p.high > 1) | (p.low < 0), math.inf, result)


@register_kl(Uniform, Pareto)
def _uniform_to_pareto(p, q):
    result = (q.alpha + 1) * _uniform_mean_log(p) - (q.alpha * q.scale.pow(q.alpha) * (p.high - p.low)).log()
    return _C.where(p.low < q.scale, math.inf, result)

"""Divergences between distributions: one function per pair of classes, and more can be registered."""

from .. import _C
from ..nn.functional import softplus
from .bernoulli import Bernoulli
from .categorical import Categorical
from .cauchy import Cauchy
from .changed import EULER, Gumbel, HalfCauchy, HalfNormal, LogNormal
from .distribution import Distribution
from .exponential import Exponential
from .geometric import Geometric
from .independent import Independent
from .laplace import Laplace
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .poisson import Poisson
from .uniform import Uniform

_PAIRS = {}


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
        if not (isinstance(cls, type) and issubclass(cls, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {cls}")

    def register(function):
        _PAIRS[type_p, type_q] = function
        return function

    return register


def kl_divergence(p, q):
    """How much longer messages get on average, in nats, if they are made for q and come from p.

    >>> fair, not_fair = (lucid.distributions.Bernoulli(v) for v in (0.5, 0.9))
    >>> lucid.distributions.kl_divergence(fair, not_fair)
    tensor(0.5108)
    """
    known = [(a, b) for a, b in _PAIRS if isinstance(p, a) and isinstance(q, b)]
    if not known:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")
    distance = {pair: type(p).__mro__.index(pair[0]) + type(q).__mro__.index(pair[1]) for pair in known}
    return _PAIRS[min(known, key=distance.get)](p, q)


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = _C.where((q.probs == 0).expand_as(terms), float("inf"), terms)
    return _C.where((p.probs == 0).expand_as(terms), 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    def part(a, log_ratio, b):
        a_, b_ = _C.broadcast_tensors(a, b)
        terms = _C.where(b_ == 0, float("inf"), a * log_ratio)
        return _C.where(a_ == 0, 0.0, terms)

    ones = part(p.probs, softplus(-q.logits) - softplus(-p.logits), q.probs)
    return ones + part(1 - p.probs, softplus(q.logits) - softplus(p.logits), 1 - q.probs)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return _C.where((q.low > p.low) | (q.high < p.high), float("inf"), result)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    scales, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -scales.log() + distance / q.scale + scales * _C.exp(-distance / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - _C.log1p(-q.probs) / p.probs - q.logits


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return p._sum(kl_divergence(p.base_dist, q.base_dist))


@register_kl(LogNormal, LogNormal)
@register_kl(HalfNormal, HalfNormal)
@register_kl(HalfCauchy, HalfCauchy)
def _changed(p, q):  # one function of both
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return -ratio.log() + distance + ratio * EULER + ((1 + ratio).lgamma() - distance).exp() - (1 + EULER)

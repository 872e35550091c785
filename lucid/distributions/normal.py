"""The normal distribution and what is made of normal variables: their exponentials, their sizes, points on a simplex."""

import math

from .. import _C
from . import constraints
from .distribution import HALF_LOG_2PI, NO_SHAPE, ExponentialFamily, LocScale, of_part
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform, ExpTransform, StickBreakingTransform
from .utils import _standard_normal

__all__ = ["HalfNormal", "LogNormal", "LogisticNormal", "Normal"]


class Normal(LocScale, ExponentialFamily):
    """The normal distribution of mean loc and standard deviation scale.

    >>> normal = lucid.distributions.Normal(lucid.zeros(2), 0.5)
    >>> normal.log_prob(lucid.zeros(2))
    tensor([-0.2258, -0.2258])
    >>> normal.rsample((3,)).shape
    lucid.Size([3, 2])
    """

    _mean_carrier_measure = 0
    mean = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale.pow(2))

    def sample(self, sample_shape=NO_SHAPE):
        shape = self._extended_shape(sample_shape)
        return _C.normal(self.loc.detach().expand(shape), self.scale.detach().expand(shape))

    def rsample(self, sample_shape=NO_SHAPE):
        return self.loc + _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device) * self.scale

    def log_prob(self, value):
        self._check(value)
        return -((value - self.loc) ** 2) / (2 * self.scale**2) - self.scale.log() - HALF_LOG_2PI

    def cdf(self, value):
        self._check(value)
        return 0.5 * (1 + _C.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value):
        return self.loc + self.scale * _C.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return 0.5 + HALF_LOG_2PI + _C.log(self.scale)

    @property
    def _natural_params(self):
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, x, y):
        return -0.25 * x.pow(2) / y + 0.5 * _C.log(-math.pi / y)


class _OfNormal(TransformedDistribution):
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    has_rsample = True
    loc, scale = of_part("base_dist.loc"), of_part("base_dist.scale")


class LogNormal(_OfNormal):
    """Numbers whose logarithms are normal, of mean loc and standard deviation scale.

    >>> lucid.distributions.LogNormal(0.0, 1.0).log_prob(lucid.tensor(1.0))
    tensor(-0.9189)
    """

    support = constraints.positive

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args)

    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())
    variance = property(lambda self: self.scale.pow(2).expm1() * (2 * self.loc + self.scale.pow(2)).exp())

    def entropy(self):
        return self.base_dist.entropy() + self.loc


class LogisticNormal(_OfNormal):
    """Points on a simplex: normal vectors through a `StickBreakingTransform`.

    >>> lucid.distributions.LogisticNormal(lucid.zeros(3), lucid.ones(3)).sample().shape
    lucid.Size([4])
    """

    support = constraints.simplex
    loc, scale = of_part("base_dist.base_dist.loc"), of_part("base_dist.base_dist.scale")

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base if base.batch_shape else base.expand((1,)), StickBreakingTransform(), validate_args)


class Half(TransformedDistribution):
    """Sizes of numbers of a distribution that is symmetric around 0.

    >>> isinstance(lucid.distributions.HalfNormal(1.0), lucid.distributions.normal.Half)
    True
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _whole = Normal

    def __init__(self, scale, validate_args=None):
        super().__init__(self._whole(0, scale, validate_args=False), AbsTransform(), validate_args)

    scale = of_part("base_dist.scale")
    mode = property(lambda self: _C.zeros_like(self.scale))

    def log_prob(self, value):
        self._check(value)
        value = _C.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return _C.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value):
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value):
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(Half):
    """Sizes of normal numbers of mean 0.

    >>> lucid.distributions.HalfNormal(2.0).mean
    tensor(1.5958)
    """

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))

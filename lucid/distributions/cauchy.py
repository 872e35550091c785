"""Ratios of normal variables, and their sizes."""

import math

from .. import _C
from .distribution import NO_SHAPE, LocScale, of_part
from .normal import Half

__all__ = ["Cauchy", "HalfCauchy"]


class Cauchy(LocScale):
    """The ratio of two normal numbers, moved by loc and stretched by scale; it has no mean.

    >>> lucid.distributions.Cauchy(0.0, 1.0).mean
    tensor(nan)
    """

    mean = property(lambda self: _C.full_like(self.loc, math.nan))
    variance = property(lambda self: _C.full_like(self.loc, math.inf))

    def rsample(self, sample_shape=NO_SHAPE):
        return self.loc + self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_() * self.scale

    def log_prob(self, value):
        self._check(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value):
        self._check(value)
        return _C.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value):
        return _C.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()


class HalfCauchy(Half):
    """Sizes of numbers of a Cauchy distribution around 0.

    >>> lucid.distributions.HalfCauchy(1.0).cdf(lucid.tensor(1.0))
    tensor(0.5000)
    """

    _whole = Cauchy
    mean = property(lambda self: _C.full_like(self.scale, math.inf))
    variance = of_part("base_dist.variance")

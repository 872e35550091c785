"""Normal numbers."""

import math

from .. import _C
from .distribution import HALF_LOG_2PI, NO_SHAPE, ExponentialFamily, LocScale


class Normal(LocScale, ExponentialFamily):
    """The normal distribution of mean loc and standard deviation scale.

    >>> normal = lucid.distributions.Normal(lucid.zeros(2), 0.5)
    >>> normal.log_prob(lucid.zeros(2))
    tensor([-0.2258, -0.2258])
    >>> normal.rsample((3,)).shape
    lucid.Size([3, 2])
    """

    mean = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale.pow(2))

    def sample(self, sample_shape=NO_SHAPE):
        shape = self._extended_shape(sample_shape)
        return _C.normal(self.loc.detach().expand(shape), self.scale.detach().expand(shape))

    def rsample(self, sample_shape=NO_SHAPE):
        shape = self._extended_shape(sample_shape)
        return self.loc + _C.empty(shape, dtype=self.loc.dtype, device=self.loc.device).normal_() * self.scale

    def log_prob(self, value):
        self._validate_sample(value)
        return -((value - self.loc) ** 2) / (2 * self.scale**2) - self.scale.log() - HALF_LOG_2PI

    def cdf(self, value):
        self._validate_sample(value)
        return 0.5 * (1 + _C.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value):
        return self.loc + self.scale * _C.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return 0.5 + HALF_LOG_2PI + _C.log(self.scale)

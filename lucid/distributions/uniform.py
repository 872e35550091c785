"""Numbers of an interval."""

import math

from .. import _C
from . import constraints
from .distribution import NO_SHAPE, Distribution, broadcast_all, shape_of


class Uniform(Distribution):
    """Every value from low to below high alike.

    >>> lucid.distributions.Uniform(0.0, 4.0).log_prob(lucid.tensor(1.0)).exp()
    tensor(0.2500)
    """

    has_rsample = True
    arg_constraints = {"low": constraints.real, "high": constraints.real}

    def __init__(self, low, high, validate_args=None):
        self.low, self.high = broadcast_all(low, high)
        super().__init__(shape_of((low, high), self.low), validate_args=validate_args)
        if self._validate_args and not _C.lt(self.low, self.high).all():
            raise ValueError("Uniform is not defined when low>= high")

    support = property(lambda self: constraints.interval(self.low, self.high))
    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: math.nan * self.high)
    stddev = property(lambda self: (self.high - self.low) / 12**0.5)
    variance = property(lambda self: (self.high - self.low).pow(2) / 12)

    def rsample(self, sample_shape=NO_SHAPE):
        shape = self._extended_shape(sample_shape)
        return self.low + _C.rand(shape, dtype=self.low.dtype, device=self.low.device) * (self.high - self.low)

    def log_prob(self, value):
        self._validate_sample(value)
        inside = (self.low.le(value) & self.high.gt(value)).type_as(self.low)
        return _C.log(inside) - _C.log(self.high - self.low)

    def cdf(self, value):
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return _C.log(self.high - self.low)

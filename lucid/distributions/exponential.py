"""Waiting times."""

from .. import _C
from . import constraints
from .distribution import NO_SHAPE, ExponentialFamily, broadcast_all, shape_of


class Exponential(ExponentialFamily):
    """Waiting times: density rate * exp(-rate * x).

    >>> lucid.distributions.Exponential(2.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate, validate_args=None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(shape_of((rate,), self.rate), validate_args=validate_args)

    mean = stddev = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: _C.zeros_like(self.rate))
    variance = property(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape=NO_SHAPE):
        shape = self._extended_shape(sample_shape)
        return self.rate.new_empty(shape).exponential_() / self.rate

    def log_prob(self, value):
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        self._validate_sample(value)
        return 1 - _C.exp(-self.rate * value)

    def icdf(self, value):
        return -_C.log1p(-value) / self.rate

    def entropy(self):
        return 1.0 - _C.log(self.rate)

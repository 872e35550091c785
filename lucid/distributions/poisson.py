"""Numbers of events."""

from .. import _C
from . import constraints
from .distribution import NO_SHAPE, ExponentialFamily, broadcast_all, shape_of


class Poisson(ExponentialFamily):
    """How many events happen that happen at a rate.

    >>> lucid.distributions.Poisson(3.0).mean
    tensor(3.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(shape_of((rate,), self.rate), validate_args=validate_args)

    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())

    def sample(self, sample_shape=NO_SHAPE):
        return _C.poisson(self.rate.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

"""The Laplace distribution."""

from .. import _C
from .distribution import NO_SHAPE, LocScale
from .utils import limits

__all__ = ["Laplace"]


class Laplace(LocScale):
    """Density exp(-|x - loc| / scale) / (2 * scale).

    >>> lucid.distributions.Laplace(0.0, 1.0).variance
    tensor(2.)
    """

    mean = property(lambda self: self.loc)
    variance = property(lambda self: 2 * self.scale.pow(2))
    stddev = property(lambda self: 2**0.5 * self.scale)

    def rsample(self, sample_shape=NO_SHAPE):
        shape = self._extended_shape(sample_shape)
        u = self.loc.new_empty(shape).uniform_(limits(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * _C.log1p(-u.abs())

    def log_prob(self, value):
        self._check(value)
        return -_C.log(2 * self.scale) - _C.abs(value - self.loc) / self.scale

    def cdf(self, value):
        self._check(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * _C.expm1(-away.abs() / self.scale)

    def icdf(self, value):
        term = value - 0.5
        return self.loc - self.scale * term.sign() * _C.log1p(-2 * term.abs())

    def entropy(self):
        return 1 + _C.log(2 * self.scale)

"""The uniform distribution, and what is computed from one uniform variable: Gumbel's and Kumaraswamy's distributions."""

import math

from .. import _C
from . import constraints
from .distribution import NO_SHAPE, Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform, PowerTransform
from .utils import broadcast_all, euler_constant, limits

__all__ = ["Gumbel", "Kumaraswamy", "Uniform"]


class Uniform(Distribution):
    """Every value from low to below high alike.

    >>> lucid.distributions.Uniform(0.0, 4.0).log_prob(lucid.tensor(1.0)).exp()
    tensor(0.2500)
    """

    has_rsample = True

    def __init__(self, low, high, validate_args=None):
        self._set(validate_args, low=low, high=high)

    @property
    def arg_constraints(self):
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.interval(self.low, self.high)

    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: math.nan * self.high)
    stddev = property(lambda self: (self.high - self.low) / 12**0.5)
    variance = property(lambda self: (self.high - self.low).pow(2) / 12)

    def rsample(self, sample_shape=NO_SHAPE):
        shape = self._extended_shape(sample_shape)
        return self.low + _C.rand(shape, dtype=self.low.dtype, device=self.low.device) * (self.high - self.low)

    def log_prob(self, value):
        self._check(value)
        inside = (self.low.le(value) & self.high.gt(value)).type_as(self.low)
        return _C.log(inside) - _C.log(self.high - self.low)

    def cdf(self, value):
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return _C.log(self.high - self.low)


class Gumbel(TransformedDistribution):
    """The largest of many numbers, moved by loc and stretched by scale: -log(-log(u)) of numbers u between 0 and 1.

    >>> lucid.distributions.Gumbel(1.0, 2.0).mean
    tensor(2.1544)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        edge = limits(self.loc.dtype)
        ends = (_C.full_like(self.loc, end) for end in (edge.tiny, 1 - edge.eps))
        log = ExpTransform().inv
        transforms = [log, AffineTransform(0, -_C.ones_like(self.scale)), log, AffineTransform(loc, -self.scale)]
        super().__init__(Uniform(*ends, validate_args=validate_args), transforms, validate_args)

    mean = property(lambda self: self.loc + self.scale * euler_constant)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def log_prob(self, value):
        self._check(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def entropy(self):
        return self.scale.log() + (1 + euler_constant)


class Kumaraswamy(TransformedDistribution):
    """Numbers between 0 and 1, much like `Beta`, with a distribution function that is a formula: 1 - (1 - x ** a) ** b.

    >>> lucid.distributions.Kumaraswamy(1.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        ends = (_C.full_like(self.concentration0, end) for end in (0, 1))
        transforms = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(Uniform(*ends, validate_args=validate_args), transforms, validate_args)

    def _moment(self, n):
        a, b = 1 + n / self.concentration1, self.concentration0
        return b * (a.lgamma() + b.lgamma() - (a + b).lgamma()).exp()

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1).pow(2))

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return log_mode.masked_fill((b < 1) | (a < 1), math.nan).exp()

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * ((b + 1).digamma() + euler_constant) - a.log() - b.log()

"""The exponential distribution and its relatives: powers and exponentials of it, and tails."""

import math

from .. import _C
from . import constraints
from .distribution import NO_SHAPE, Distribution, ExponentialFamily
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Exponential", "GeneralizedPareto", "Pareto", "Weibull"]


class Exponential(ExponentialFamily):
    """Waiting times: density rate * exp(-rate * x).

    >>> lucid.distributions.Exponential(2.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate, validate_args=None):
        self._set(validate_args, rate=rate)

    mean = stddev = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: _C.zeros_like(self.rate))
    variance = property(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape=NO_SHAPE):
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value):
        self._check(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        self._check(value)
        return 1 - _C.exp(-self.rate * value)

    def icdf(self, value):
        return -_C.log1p(-value) / self.rate

    def entropy(self):
        return 1.0 - _C.log(self.rate)

    _natural_params = property(lambda self: (-self.rate,))

    def _log_normalizer(self, x):
        return -_C.log(-x)


class Pareto(TransformedDistribution):
    """Numbers above scale whose tail falls as a power: density alpha * scale ** alpha / x ** (alpha + 1).

    >>> lucid.distributions.Pareto(1.0, 3.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale, alpha, validate_args=None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)], validate_args)

    @property
    def mean(self):
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    mode = property(lambda self: self.scale)

    @property
    def variance(self):
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.greater_than_eq(self.scale)

    def entropy(self):
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(TransformedDistribution):
    """Times until a failure whose rate is a power of the time.

    >>> lucid.distributions.Weibull(1.0, 1.0).mean  # with concentration 1 an exponential
    tensor(1.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(_C.ones_like(self.scale), validate_args=validate_args)
        transforms = [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]
        super().__init__(base, transforms, validate_args)

    concentration_reciprocal = property(lambda self: self.concentration.reciprocal())

    def _moment(self, n):
        return _C.lgamma(1 + n * self.concentration_reciprocal)

    mean = property(lambda self: self.scale * self._moment(1).exp())
    variance = property(lambda self: self.scale.pow(2) * (self._moment(2).exp() - (2 * self._moment(1)).exp()))

    @property
    def mode(self):
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration_reciprocal

    def entropy(self):
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1


class GeneralizedPareto(Distribution):
    """What exceeds a high threshold loc: an exponential for concentration 0, else a power law, which ends for negative ones.

    >>> lucid.distributions.GeneralizedPareto(0.0, 1.0, 0.0).cdf(lucid.tensor(1.0))
    tensor(0.6321)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self._set(validate_args, loc=loc, scale=scale, concentration=concentration)

    def _split(self):
        """Where the concentration is 0, and concentrations to divide by."""
        zero = _C.isclose(self.concentration, _C.zeros_like(self.concentration))
        return zero, self.concentration.masked_fill(zero, 1.0)

    def rsample(self, sample_shape=NO_SHAPE):
        return self.icdf(_C.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value):
        self._check(value)
        z, (zero, concentration) = (value - self.loc) / self.scale, self._split()
        power = 1 / concentration + _C.ones_like(z)
        curved = _C.where(power == 0, power, power * _C.log1p(concentration * z))
        return -self.scale.log() - _C.where(zero, z, curved)

    def log_survival_function(self, value):
        """The logarithm of the probability of more than a value."""
        self._check(value)
        z, (zero, concentration) = (value - self.loc) / self.scale, self._split()
        return _C.where(zero, -z, -_C.log1p(concentration * z) / concentration)

    def log_cdf(self, value):
        """The logarithm of `cdf`."""
        return _C.log1p(-_C.exp(self.log_survival_function(value)))

    def cdf(self, value):
        return self.log_cdf(value).exp()

    def icdf(self, value):
        log_tail, (zero, concentration) = _C.log1p(-value), self._split()
        curved = self.loc + self.scale / concentration * _C.expm1(-concentration * log_tail)
        return _C.where(zero, self.loc - self.scale * log_tail, curved)

    @property
    def mean(self):
        finite = self.concentration < 1
        return _C.where(finite, self.loc + self.scale / (1 - _C.where(finite, self.concentration, 0.5)), math.nan)

    @property
    def variance(self):
        finite = self.concentration < 0.5
        c = _C.where(finite, self.concentration, 0.25)
        return _C.where(finite, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.nan)

    mode = property(lambda self: self.loc)

    def entropy(self):
        return _C.broadcast_to(self.scale.log() + self.concentration + 1, self._batch_shape)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        upper = _C.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)

"""The gamma distribution and what is made of gamma variables: chi-squared, inverse gamma, Fisher's and Student's distributions.

Samples have gradients by the concentration: the derivative of a quantile, computed by `_standard_gamma_grad`.
"""

import math

from .. import _C
from . import constraints
from .distribution import NO_SHAPE, Distribution, ExponentialFamily, of_part
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform
from .utils import _standard_normal, limits

__all__ = ["Chi2", "FisherSnedecor", "Gamma", "InverseGamma", "StudentT"]


class Gamma(ExponentialFamily):
    """Waiting times for several events: density proportional to x ** (concentration - 1) * exp(-rate * x).

    >>> gamma = lucid.distributions.Gamma(3.0, 2.0)
    >>> gamma.mean, gamma.log_prob(lucid.tensor(1.0))
    (tensor(1.5000), tensor(-0.6137))
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration, rate, validate_args=None):
        self._set(validate_args, concentration=concentration, rate=rate)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.pow(2))

    def rsample(self, sample_shape=NO_SHAPE):
        shape = self._extended_shape(sample_shape)
        value = _C._standard_gamma(self.concentration.expand(shape)) / self.rate
        value.detach().clamp_(min=limits(value.dtype).tiny)
        return value

    def log_prob(self, value):
        a, rate = self.concentration, self.rate
        value = _C.as_tensor(value, dtype=rate.dtype, device=rate.device)
        self._check(value)
        return a.xlogy(rate) + (a - 1).xlogy(value) - rate * value - a.lgamma()

    def cdf(self, value):
        self._check(value)
        return _C.igamma(self.concentration, self.rate * value)

    def entropy(self):
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * a.digamma()

    _natural_params = property(lambda self: (self.concentration - 1, -self.rate))

    def _log_normalizer(self, x, y):
        return _C.lgamma(x + 1) + (x + 1) * _C.log(-y.reciprocal())


class Chi2(Gamma):
    """The sum of df squares of normal numbers.

    >>> lucid.distributions.Chi2(3.0).mean
    tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    df = property(lambda self: self.concentration * 2)

    def expand(self, batch_shape, _instance=None):
        new = super().expand(batch_shape, _instance)
        new.concentration, new.rate = self.concentration.expand(new._batch_shape), self.rate.expand(new._batch_shape)
        return new


class InverseGamma(TransformedDistribution):
    """1 / x of gamma variables x.

    >>> lucid.distributions.InverseGamma(3.0, 2.0).mean
    tensor(1.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args)

    concentration, rate = of_part("base_dist.concentration"), of_part("base_dist.rate")
    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def mean(self):
        a = self.concentration
        return _C.where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def variance(self):
        a = self.concentration
        return _C.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self):
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared variables, each over its degrees of freedom.

    >>> lucid.distributions.FisherSnedecor(2.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        self._set(validate_args, df1=df1, df2=df2)
        self._gamma1, self._gamma2 = (Gamma(df * 0.5, df, validate_args=validate_args) for df in (self.df1, self.df2))

    @property
    def mean(self):
        df2 = self.df2.masked_fill(self.df2 <= 2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self):
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, math.nan)

    @property
    def variance(self):
        df2 = self.df2.masked_fill(self.df2 <= 4, math.nan)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape=NO_SHAPE):
        x1, x2 = self._gamma1.rsample(sample_shape), self._gamma2.rsample(sample_shape)
        tiny = limits(x2.dtype).tiny
        return (x1 / x2.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value):
        self._check(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        constant = (a + b).lgamma() - a.lgamma() - b.lgamma() + a * ratio.log()
        return constant + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()


class StudentT(Distribution):
    """A normal variable over the root of a chi-squared one over df, moved by loc and stretched by scale: heavy tails.

    >>> lucid.distributions.StudentT(3.0).variance
    tensor(3.)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self._set(validate_args, df=df, loc=loc, scale=scale)
        self._chi2 = Chi2(self.df, validate_args=validate_args)

    mean = property(lambda self: self.loc.masked_fill(self.df <= 1, math.nan))
    mode = property(lambda self: self.loc)

    @property
    def variance(self):
        df = self.df
        variance = _C.where(df > 2, self.scale.pow(2) * df / (df - 2), math.inf)
        return variance.masked_fill(df <= 1, math.nan)

    def rsample(self, sample_shape=NO_SHAPE):
        x = _standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        return self.loc + self.scale * (x * (self._chi2.rsample(sample_shape) / self.df).rsqrt())

    def _half_lgammas(self):
        return (0.5 * self.df).lgamma() - (0.5 * (self.df + 1.0)).lgamma()

    def log_prob(self, value):
        self._check(value)
        y = (value - self.loc) / self.scale
        constant = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + self._half_lgammas()
        return -0.5 * (self.df + 1.0) * (y**2.0 / self.df).log1p() - constant

    def entropy(self):
        df, above = self.df, 0.5 * (self.df + 1)
        log_beta = self._half_lgammas() + math.lgamma(0.5)
        return self.scale.log() + above * (above.digamma() - (0.5 * df).digamma()) + 0.5 * df.log() + log_beta

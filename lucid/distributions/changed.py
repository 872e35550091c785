"""Numbers of another distribution, changed by a function: their exponentials, their sizes, logarithms of logarithms."""

import math

from .. import _C
from .._info import finfo
from ..autograd.grad_mode import no_grad
from . import constraints
from .cauchy import Cauchy
from .distribution import NO_SHAPE, Distribution, broadcast_all
from .normal import Normal
from .uniform import Uniform

EULER = 0.57721566490153286060


class _Changed(Distribution):
    """Draws from `base_dist`, and changes what it drew."""

    has_rsample = True

    def __init__(self, base_dist, validate_args=None):
        self.base_dist = base_dist
        super().__init__(base_dist.batch_shape, base_dist.event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = super().expand(batch_shape, _instance)
        new.base_dist = self.base_dist.expand(batch_shape)
        return new

    def sample(self, sample_shape=NO_SHAPE):
        with no_grad():
            return self._changed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=NO_SHAPE):
        return self._changed(self.base_dist.rsample(sample_shape))


class LogNormal(_Changed):
    """Numbers whose logarithms are normal, of mean loc and standard deviation scale.

    >>> lucid.distributions.LogNormal(0.0, 1.0).log_prob(lucid.tensor(1.0))
    tensor(-0.9189)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())
    variance = property(lambda self: self.scale.pow(2).expm1() * (2 * self.loc + self.scale.pow(2)).exp())

    def _changed(self, x):
        return x.exp()

    def log_prob(self, value):
        self._validate_sample(value)
        x = value.log()
        return self.base_dist.log_prob(x) - x

    def cdf(self, value):
        return self.base_dist.cdf(value.log())

    def icdf(self, value):
        return self.base_dist.icdf(value).exp()

    def entropy(self):
        return self.base_dist.entropy() + self.loc


class _Half(_Changed):
    """Sizes of numbers that are as often negative as positive."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    scale = property(lambda self: self.base_dist.scale)
    mode = property(lambda self: _C.zeros_like(self.scale))

    def _changed(self, x):
        return x.abs()

    def log_prob(self, value):
        self._validate_sample(value)
        value = _C.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return _C.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value):
        self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value):
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """Sizes of normal numbers of mean 0.

    >>> lucid.distributions.HalfNormal(2.0).mean
    tensor(1.5958)
    """

    def __init__(self, scale, validate_args=None):
        super().__init__(Normal(0, scale, validate_args=validate_args), validate_args)

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))


class HalfCauchy(_Half):
    """Sizes of numbers of a Cauchy distribution around 0.

    >>> lucid.distributions.HalfCauchy(1.0).cdf(lucid.tensor(1.0))
    tensor(0.5000)
    """

    def __init__(self, scale, validate_args=None):
        super().__init__(Cauchy(0, scale, validate_args=validate_args), validate_args)

    mean = property(lambda self: _C.full_like(self.scale, math.inf))
    variance = property(lambda self: self.base_dist.variance)


class Gumbel(_Changed):
    """The largest of many numbers, moved by loc and stretched by scale: -log(-log(u)) of numbers u between 0 and 1.

    >>> lucid.distributions.Gumbel(1.0, 2.0).mean
    tensor(2.1544)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = finfo(self.loc.dtype)
        ends = limits.tiny, 1 - limits.eps
        if isinstance(loc, _C.Tensor) or isinstance(scale, _C.Tensor):
            ends = (_C.full_like(self.loc, end) for end in ends)
        super().__init__(Uniform(*ends, validate_args=validate_args), validate_args)

    mean = property(lambda self: self.loc + self.scale * EULER)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def _changed(self, x):
        return self.loc - self.scale * (-x.log()).log()

    def log_prob(self, value):
        self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def cdf(self, value):
        return self.base_dist.cdf((-((self.loc - value) / self.scale).exp()).exp())

    def icdf(self, value):
        return self._changed(self.base_dist.icdf(value))

    def entropy(self):
        return self.scale.log() + (1 + EULER)

"""One trial with two outcomes; and numbers between 0 and 1 in its place: continuous Bernoulli, and its relaxation with a
temperature."""

import math

from .. import _C
from ..autograd.grad_mode import no_grad
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from .distribution import NO_SHAPE, Distribution, EitherMixin, ExponentialFamily, of_part
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs, lazy_property

__all__ = ["Bernoulli", "ContinuousBernoulli", "LogitRelaxedBernoulli", "RelaxedBernoulli"]
PROBS_OR_LOGITS = {"probs": constraints.unit_interval, "logits": constraints.real}


class Bernoulli(EitherMixin, ExponentialFamily):
    """1 with probability probs, else 0.

    >>> lucid.distributions.Bernoulli(0.25).log_prob(lucid.tensor(1.0)).exp()
    tensor(0.2500)
    """

    arg_constraints = PROBS_OR_LOGITS
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._set(validate_args, **self._given(probs, logits))

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self):
        mode = (self.probs >= 0.5).to(self.probs)
        return mode.masked_fill(self.probs == 0.5, math.nan)

    def sample(self, sample_shape=NO_SHAPE):
        with no_grad():
            return _C.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand=True):
        return self._enumerate(_C.arange(2, dtype=self._param.dtype, device=self._param.device), expand)

    _natural_params = property(lambda self: (_C.logit(self.probs),))

    def _log_normalizer(self, x):
        return _C.log1p(_C.exp(x))


class ContinuousBernoulli(EitherMixin, ExponentialFamily):
    """Numbers x between 0 and 1 with a density proportional to probs ** x * (1 - probs) ** (1 - x). Near probs = 1/2,
    between `lims`, formulas that divide 0 by 0 there give way to the first terms of their series.

    >>> lucid.distributions.ContinuousBernoulli(0.25).mean
    tensor(0.4102)
    """

    arg_constraints = PROBS_OR_LOGITS
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        self._lims = lims
        self._set(validate_args, **self._given(probs, logits))
        if logits is None:
            self.probs = clamp_probs(self.probs)

    @lazy_property
    def probs(self):
        return clamp_probs(_C.sigmoid(self.logits))

    def _far(self):
        """Whether probs is far from 1/2, and probs, moved away where it is not."""
        far = (self.probs <= self._lims[0]) | (self.probs > self._lims[1])
        return far, _C.where(far, self.probs, self._lims[0])

    def _cont_bern_log_norm(self):
        far, p = self._far()
        small = p <= 0.5
        width = _C.where(
            small, (-2.0 * _C.where(small, p, 0.0)).log1p(), (2.0 * _C.where(small, 1.0, p) - 1.0).log()
        )  # log |1 - 2p|
        x = (self.probs - 0.5).pow(2)
        series = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return _C.where(far, ((-p).log1p() - p.log()).abs().log() - width, series)

    @property
    def mean(self):
        far, p = self._far()
        x = self.probs - 0.5
        series = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x
        return _C.where(far, p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log()), series)

    @property
    def variance(self):
        far, p = self._far()
        x = (self.probs - 0.5).pow(2)
        series = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return _C.where(far, p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / ((-p).log1p() - p.log()).pow(2), series)

    def rsample(self, sample_shape=NO_SHAPE):
        return self.icdf(_C.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value):
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value):
        self._check(value)
        far, p = self._far()
        inside = _C.where(far, (p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0) / (2.0 * p - 1.0), value)
        return _C.where(value <= 0.0, 0.0, _C.where(value >= 1.0, 1.0, inside))

    def icdf(self, value):
        far, p = self._far()
        log_q = (-p).log1p()
        return _C.where(far, ((value * (2.0 * p - 1.0) - p).log1p() - log_q) / (p.log() - log_q), value)

    def entropy(self):
        log_q, log_p = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log_q - log_p) - self._cont_bern_log_norm() - log_q

    _natural_params = property(lambda self: (self.logits,))

    def _log_normalizer(self, x):
        far = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = _C.where(far, x, self._lims[0] - 0.5)
        return _C.where(far, cut.expm1().abs().log() - cut.abs().log(), 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)


class LogitRelaxedBernoulli(EitherMixin, Distribution):
    """The log odds of a `RelaxedBernoulli`.

    >>> from lucid.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
    >>> LogitRelaxedBernoulli(lucid.tensor(1.0), 0.5).log_prob(lucid.tensor(0.0))
    tensor(-1.3863)
    """

    arg_constraints = PROBS_OR_LOGITS
    support = constraints.real

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        self._set(validate_args, **self._given(probs, logits))

    def rsample(self, sample_shape=NO_SHAPE):
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(_C.rand(shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value):
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        distance = logits - value.mul(self.temperature)
        return self.temperature.log() + distance - 2 * distance.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1 that come close to 0 or 1 at a low temperature, with gradients by probs.

    >>> lucid.distributions.RelaxedBernoulli(lucid.tensor(0.5), lucid.tensor([0.1, 0.9])).rsample().shape
    lucid.Size([2])
    """

    arg_constraints = PROBS_OR_LOGITS
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)

    temperature, probs, logits = (of_part("base_dist." + name) for name in ("temperature", "probs", "logits"))

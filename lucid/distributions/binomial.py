"""Counts of successes and failures: binomial, negative binomial, geometric."""

from .. import _C
from ..autograd.grad_mode import no_grad
from ..nn.functional import binary_cross_entropy_with_logits, logsigmoid
from . import constraints
from .distribution import NO_SHAPE, Distribution, EitherMixin
from .gamma import Gamma
from .utils import broadcast_all, lazy_property, limits

__all__ = ["Binomial", "Geometric", "NegativeBinomial"]


class _Counted(EitherMixin, Distribution):
    """Trials with a success probability and `total_count`, which takes the dtype of the probabilities."""

    def __init__(self, total_count, probs, logits, validate_args):
        ((name, value),) = self._given(probs, logits).items()
        count, value = broadcast_all(total_count, value)
        self._set(validate_args, **{"total_count": count.type_as(value), name: value})


class Binomial(_Counted):
    """How many of total_count trials succeed, each with probability probs.

    >>> lucid.distributions.Binomial(4, 0.25).mean
    tensor(1.)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        super().__init__(total_count, probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=NO_SHAPE):
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return _C.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        self._check(value)
        n, logits = self.total_count, self.logits
        # max(logits, 0), with half of both one-sided gradients at 0
        positive = (logits.clamp(min=0) + logits - logits.clamp(max=0)) / 2
        chosen = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return value * logits + chosen - n * positive - n * (-logits.abs()).exp().log1p()

    def entropy(self):
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        count = int(self.total_count.max())
        if self.total_count.min() != count:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        return self._enumerate(_C.arange(1 + count, dtype=self._param.dtype, device=self._param.device), expand)


class NegativeBinomial(_Counted):
    """How many trials succeed before total_count fail, each with success probability probs; total_count need not be an integer.

    >>> lucid.distributions.NegativeBinomial(3.0, 0.5).mean
    tensor(3.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        super().__init__(total_count, probs, logits, validate_args)

    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / _C.sigmoid(-self.logits))

    @lazy_property
    def _gamma(self):
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape=NO_SHAPE):
        with no_grad():
            return _C.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value):
        self._check(value)
        n, logits = self.total_count, self.logits
        chosen = (n + value).lgamma() - (1.0 + value).lgamma() - n.lgamma()
        return n * logsigmoid(-logits) + value * logsigmoid(logits) + chosen.masked_fill(n + value == 0.0, 0.0)


class Geometric(EitherMixin, Distribution):
    """How many trials fail before the first that succeeds, with probability probs.

    >>> lucid.distributions.Geometric(0.25).mean
    tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._set(validate_args, **self._given(probs, logits))
        if self._validate_args and probs is not None and not constraints.positive.holds(self.probs):
            value = self.probs
            raise ValueError(
                f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} "
                f"to be positive but found invalid values:\n{value[~(value > 0)]}"
            )

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: _C.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape=NO_SHAPE):
        with no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(limits(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs

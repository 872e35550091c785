"""Yes or no."""

from .. import _C
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from .distribution import NO_SHAPE, Either, broadcast_all, log_odds, shape_of


class Bernoulli(Either):
    """1 with probability probs, else 0.

    >>> lucid.distributions.Bernoulli(0.25).log_prob(lucid.tensor(1.0)).exp()
    tensor(0.2500)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._given, value = self._read(probs, logits)
        (self.__dict__[self._given],) = broadcast_all(value)
        super().__init__(shape_of((value,), self.__dict__[self._given]), validate_args=validate_args)

    def _other(self, name):
        return _C.sigmoid(self.logits) if name == "probs" else log_odds(self.probs)

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    param_shape = property(lambda self: self.__dict__[self._given].size())

    @property
    def mode(self):
        mode = (self.probs >= 0.5).to(self.probs)
        return mode.masked_fill(self.probs == 0.5, float("nan"))

    def sample(self, sample_shape=NO_SHAPE):
        return _C.bernoulli(self.probs.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand=True):
        given = self.__dict__[self._given]
        values = _C.arange(2, dtype=given.dtype, device=given.device).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

"""Numbers of failures."""

from .. import _C
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from .distribution import NO_SHAPE, Either, broadcast_all, log_odds, shape_of


class Geometric(Either):
    """How many trials fail before the first that succeeds, with probability probs.

    >>> lucid.distributions.Geometric(0.25).mean
    tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._given, value = self._read(probs, logits)
        (self.__dict__[self._given],) = broadcast_all(value)
        super().__init__(shape_of((value,), self.__dict__[self._given]), validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ValueError(f"Expected parameter probs of distribution {self!r} to be positive but found invalid values")

    def _other(self, name):
        return _C.sigmoid(self.logits) if name == "probs" else log_odds(self.probs)

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: _C.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape=NO_SHAPE):
        from .._info import finfo

        probs = self.probs.detach()
        u = probs.new_empty(self._extended_shape(sample_shape)).uniform_(finfo(probs.dtype).tiny, 1)
        return (u.log() / (-probs).log1p()).floor()

    def log_prob(self, value):
        self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs

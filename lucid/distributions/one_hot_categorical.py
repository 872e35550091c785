"""One of several, as a vector."""

from .. import _C
from ..nn.functional import one_hot
from . import constraints
from .categorical import Categorical
from .distribution import NO_SHAPE, Distribution


class OneHotCategorical(Distribution):
    """As `Categorical`, with samples that are 1 at the number drawn and 0 elsewhere.

    >>> lucid.distributions.OneHotCategorical(lucid.tensor([0.0, 1.0])).sample()
    tensor([0., 1.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def expand(self, batch_shape, _instance=None):
        new = object.__new__(type(self)) if _instance is None else _instance
        new._categorical = self._categorical.expand(batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    probs = mean = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    variance = property(lambda self: self.probs * (1 - self.probs))
    param_shape = property(lambda self: self._categorical.param_shape)

    def _one_hot(self, indices):
        return one_hot(indices, self._event_shape[0]).to(self.probs)

    @property
    def mode(self):
        return self._one_hot(self.probs.argmax(-1))

    def sample(self, sample_shape=NO_SHAPE):
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value):
        self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        n = self._event_shape[0]
        values = _C.eye(n, dtype=self.probs.dtype, device=self.probs.device).view((n,) + (1,) * len(self._batch_shape) + (n,))
        return values.expand((n, *self._batch_shape, n)) if expand else values
